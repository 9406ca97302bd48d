# awk -v other=AFTER -v names=NAMES -f only_callers_came.awk BEFORE
#
# Two outputs of perf sched timehist, before and after perfjit, must be the same line by line, but that a caller which was
# [unknown] may be a function of the JIT's, one of the lines of NAMES; and that a chain which ended, as where perf 7's libdw
# finds no file, may go on with those.
BEGIN {
    while ((getline name <names) > 0)
        is_the_jits[name] = 1
}

function differs() {
    if (bad++ < 5)
        print "< " $0 "\n> " after
}

# Behind FRONT, the columns if it is the first caller of its line.
function is_named(was, is, front) {
    front = was
    return sub(/\[unknown\]$/, "", front) && index(is, front) == 1 &&
           substr(is, length(front) + 1) in is_the_jits
}

function only_callers_came(was, is, was_count, is_count, i) {
    was_count = split($0, was, " <- ")
    is_count = split(after, is, " <- ")
    for (i = 1; i <= was_count; i++)
        if (was[i] != is[i] && !is_named(was[i], is[i]))
            return 0
    for (; i <= is_count; i++)
        if (!(is[i] in is_the_jits))
            return 0
    return is_count >= was_count
}

(getline after <other) <= 0 {
    print "it ends before line " NR
    bad++
    exit
}

$0 != after && !only_callers_came() { differs() }

END {
    if (!bad && (getline after <other) > 0) {
        print "it goes on after line " NR
        bad++
    }
    exit bad > 0
}
