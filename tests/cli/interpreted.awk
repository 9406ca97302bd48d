# Chains of tests/producers/interpreted, compared with its own log.
#
#     perf script --no-inline -F time,ip,sym --ns -i perf.jit.data |
#         awk -v log_path=FILE -v ends=REGEX -f interpreted.awk
#
# A chain from work() is exact if it has the functions that the log has at that moment, each between two frames of run(),
# then main(), and its last frame matches ENDS.  It is near if only frames of the interpreter are not so: a frame pointer
# shows no caller of who has not set his own yet.  So is any other chain with those functions, or with one more or less, the
# innermost: run() notes down after it is called, and before it returns.  Samples from outside the time of the log are not
# looked at.  With -v perfs=1 perf has unwound: a chain that it ends in run(), which is C, is cut, no fault of a trampoline; nor is
# one that ends in the first trampoline behind a run() that has just been called: that has its frame pointer from there.
# Not looked at either are those of which perf found nothing but that they are in the vdso, or came from there.  Prints
# "chains N exact N near N wrong N functions N cut N", and the first wrong ones.
BEGIN {
    while ((getline line < log_path) > 0) {
        split(line, words, " ")
        time[++events] = words[1] + 0
        entered[events] = words[2] == "enter" ? words[3] : ""
    }
    RS = ""
    FS = "\n"
    at = 1
}

function step_to(ns) {
    for (; at <= events && time[at] <= ns; at++)
        if (entered[at] != "")
            stack[++depth] = entered[at]
        else
            depth--
}

function expected(    text, i) {
    for (i = depth; i >= 1; i--)
        text = text "run;" stack[i] ";"
    return text "main;"
}

function without_first(names) {
    return substr(names, index(names, ";") + 1)
}

# Whether the one frame that is not the kernel's has no name.
function is_vdsos(    i) {
    for (i = 2; i < NF; i++)
        if ($i !~ /^[ \t]*ffff[0-9a-f]+ /)
            return 0
    return $NF ~ /\[unknown\]/
}

function wrong(text) {
    if (++wrongs <= 5)
        print "at " $1 " log: " expected() "\n  chain: " text > "/dev/stderr"
}

{
    split(substr($1, match($1, /[0-9]+\.[0-9]+/), RLENGTH), parts, ".")
    ns = parts[1] * 1000000000 + parts[2]
    step_to(ns)
    if (at == 1 || at > events || is_vdsos())
        next
    chain = ""
    for (i = 2; i <= NF; i++) {
        sub(/^[ \t]*[0-9a-f]+ /, "", $i)
        sub(/ \(.*\)$/, "", $i)
        chain = chain $i ";"
    }
    chains++
    whole = $NF ~ ends
    if ($2 == "work" && whole && index(chain, "work;" expected()) == 1) {
        exact++
        for (i = 1; i <= depth; i++)
            seen[stack[i]]
        next
    }
    in_chain = in_log = ""
    for (i = 2; i <= NF; i++)
        if ($i ~ /^fn_/)
            in_chain = in_chain $i ";"
    for (i = depth; i >= 1; i--)
        in_log = in_log stack[i] ";"
    differs = in_chain != in_log
    if ($2 != "work" && (without_first(in_chain) == in_log || in_chain == without_first(in_log)))
        differs = 0
    if (whole && !differs)
        near++
    else if (perfs && $2 == "work" && $NF == "run" && index("work;" expected(), chain) == 1)
        cut++
    else if (perfs && chain ~ /^run;fn_[0-9]+;$/)
        cut++
    else
        wrong(chain)
}

END {
    for (name in seen)
        functions++
    printf "chains %d exact %d near %d wrong %d functions %d cut %d\n", chains, exact, near, wrongs, functions, cut
}
