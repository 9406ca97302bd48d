# awk -v other=AFTER [-v any_file=yes] -f only_names_came.awk BEFORE
#
# Two outputs of perf script, before and after perfjit, must be the same line by line, but that a frame in memory which had no name
# may have one of the JIT's.  perf calls such memory by several names, among them a process that had it before a fork.  Where there is
# no file (perf 7), or no mapping of the process at all (perf 6.1), perf unwinds nothing: an empty chain may have frames afterwards, and
# one that ended there may go on with the JIT's frame, or one in unknown memory, or in the file "loops", which address_churn maps over
# JIT code and which has no symbols.  The mapping by which a runtime names its dump is not passed on: a chain that follows a stray
# frame pointer into it shows unknown memory there.  With any_file the memory may have been any file's before, without a symbol.
BEGIN {
    memory = any_file == "yes" ? "\\(.*\\)$" : "\\((/tmp/perf-[0-9]+\\.map|\\[JIT\\] tid [0-9]+|//anon|\\[anon:.*|\\[unknown\\]|/?/?memfd:.*|/dev/shm/.*|/.*/jit-[0-9]+\\.dump|.* \\(deleted\\))\\)$"
    jit = "(/jit-[a-z0-9_]+[^/]*\\.so|\\[unloaded JIT code\\])\\)$"
}

function differs() {
    if (bad++ < 5)
        print "< " $0 "\n> " after
}

# A frame of a call chain.  Its address is, with perf 6.1, relative to the file.
function is_chained(text) {
    return text ~ /^[ \t]+[0-9a-f]+ [^ ]/ && text !~ / [0-9]+\/[0-9]+ /
}

function front(text) {
    return substr(text, 1, index(text, " [unknown] ("))
}

function is_the_jits(text) {
    return text ~ jit || (text ~ memory && index(text, " [unknown] ("))
}

(getline after <other) <= 0 {
    print "it ends before line " NR
    bad++
    exit
}

function may_go_on(text) {
    return is_the_jits(text) || text ~ / \[unknown\] \(.*\/loops\)$/
}

$0 == "" && is_chained(after) && (may_go_on(after) || !in_chain) {
    while (after != "" && (getline after <other) > 0)
        continue
}

{ in_chain = is_chained($0) }

$0 == after { next }

$0 ~ memory && index($0, " [unknown] (") && is_the_jits(after) {
    if (is_chained($0) != is_chained(after) || (!is_chained($0) && index(after, front($0)) != 1))
        differs()
    next
}

{ differs() }

END {
    if (!bad && (getline after <other) > 0) {
        print "it goes on after line " NR
        bad++
    }
    if (bad)
        print bad " differences"
    exit bad > 0
}
