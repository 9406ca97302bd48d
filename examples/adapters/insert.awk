# Insert lines into a program's sources: awk -f insert.awk HOOKS SOURCE >OUTPUT
#
# HOOKS has blocks of lines, each behind a line that says where they go in SOURCE, by its name without folders:
#
#     @ FILE after|before PATTERN            the first line that matches
#     @ FILE after|before PATTERN @ START    the first one from the first line on that matches START
#
# A place that is not found is an error: the program has changed there.
function base_name(path) {
    sub(/.*\//, "", path)
    return path
}

function read_place(text,    parts, words) {
    hook = 0
    sub(/^@ /, "", text)
    split(text, words, " ")
    if (words[1] != base_name(ARGV[2]))
        return
    hook = ++hooks
    side[hook] = words[2]
    sub(/^[^ ]+ [^ ]+ /, "", text)
    split(text, parts, " @ ")
    pattern[hook] = parts[1]
    start[hook] = parts[2]
}

# The lines of all hooks on this side of the line, which matches them.
function insert(which,    i) {
    for (i = 1; i <= hooks; i++)
        if (matched[i] && side[i] == which) {
            printf "%s", lines[i]
            done[i] = 1
            matched[i] = 0
        }
}

FNR == NR && /^@ / { read_place($0); next }
FNR == NR { if (hook) lines[hook] = lines[hook] $0 "\n"; next }

{
    for (i = 1; i <= hooks; i++) {
        if (start[i] == "" || $0 ~ start[i])
            begun[i] = 1
        matched[i] = begun[i] && !done[i] && $0 ~ pattern[i]
    }
    insert("before")
    print
    insert("after")
}

END {
    for (i = 1; i <= hooks; i++)
        if (!done[i]) {
            printf "%s: no line matches \"%s\"\n", ARGV[2], pattern[i] >"/dev/stderr"
            exit 1
        }
}
