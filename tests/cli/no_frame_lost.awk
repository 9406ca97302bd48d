# awk -v ours=OURS [-v most_others=PERCENT] [-v rough=PERCENT] -f no_frame_lost.awk PERFS
#
# Two outputs of perf script, with a sample's head in the first line of a paragraph and a frame in each other one: PERFS as perf unwinds,
# OURS of chains that perfjit unwound.  All heads are the same, and each chain of ours has all frames of perf's, in their order; it may
# go on where perf's ends, and have callers that perf leaves out.  What perf prints where it finds nothing ([unknown], ffffffffffffffff) is
# no frame.  Nor, in few chains (one, and 2 % of all), need ours have what perf has after a frame from which ours goes on by two or more:
# perf takes what is in a register's popped place for a return address, __quick_exit_funcs in glibc's exit, say, a table of data.  Says
# how many chains are equal, have more at the end, and have more between; these are at most PERCENT of all.
#
# rough: code's times are found anew for each output, to some us.  So up to PERCENT of all samples, those nearest to a change of code, have
# another first frame in the one than in the other, and are not compared: which is right, truth_check says.
BEGIN {
    RS = ""
    FS = "\n"
    most_others = most_others == "" ? 100 : most_others
}

# The addresses of frames are relative to files, and these differ.
function frame(text) {
    sub(/^[ \t]*[0-9a-f]+ /, "", text)
    sub(/ \([^()]*\.so\)$/, "", text)
    return text
}

function is_nothing(text) {
    return text ~ /^\[unknown\]/ || text ~ /^ffffffffffffffff/
}

(getline other <ours) <= 0 {
    print "ours ends before sample " NR
    bad++
    exit
}

{
    count = split(other, has, "\n")
    at = 1
    between = 0
    from = 0
    lost = $1 != has[1]
    if (rough && !lost && frame($2) != frame(has[2])) {
        edges++
        next
    }
    for (i = 2; i <= NF && !lost; i++) {
        wanted = frame($i)
        if (is_nothing(wanted) && (at >= count || frame(has[at + 1]) != wanted))
            continue
        from = at
        for (at++; at <= count && frame(has[at]) != wanted; at++)
            between++
        lost = at > count
    }
    if (lost && from >= 2 && count - from >= 2) {
        lost = 0
        astray++
    }
    if (lost && bad++ < 3)
        print "perf's:\n" $0 "\nours:\n" other
    if (between && at <= count)
        more_between++
    else if (at != count)
        longer++
    else
        equal++
}

END {
    if (!bad && (getline other <ours) > 0) {
        print "ours goes on after sample " NR
        bad++
    }
    printf "# %d chains: %d as perf has them, %d longer, %d with callers between, %d where perf ends astray\n", NR, equal, longer, more_between, astray
    if (edges)
        printf "# %d near to a change of code\n", edges
    exit bad || edges * 100 > rough * NR || astray > 1 + NR / 50 || more_between * 100 > most_others * NR
}
