#!/usr/bin/env bats
# A dump of bounded size: all that is alive, and all of the history that is left, has its name.

load helper

setup() {
    require_perf
    cd "$BATS_TEST_TMPDIR"
}

# churn RING FUNCTIONS LIVE SPELLS: record ring_churn; $dump, $longest_us, $largest_bytes are what it says of itself.
churn() {
    recording "$1" record_churn "$@"
    read -r dump longest_us largest_bytes <said
    [ "$RECORDINGS" != stored ] || dump=$recorded_root$dump
    echo "# $2 functions in $1: longest add $longest_us us, at most $largest_bytes bytes" >&3
}

record_churn() {
    PERFJIT=dump,ring=$1 record ring.data "$BUILD/producers/ring_churn" "$2" "$3" "$4" truth >said
}

# judge [FROM_S]: what truth_check says of the samples, or of those from a time on.
judge() {
    perf script -i out.data -F pid,tid,time,ip,sym --ns --no-inline 2>/dev/null |
        awk -v from="${1:-0}" '{ time = $2; sub(/:$/, "", time); if (time + 0 >= from + 0) print }' |
        "$BUILD/producers/truth_check" -m 1 truth 2>disagree | head -n 1
}

check_churn() { # BYTES
    local begin score samples right wrong missing
    [ "$largest_bytes" -le "$1" ] || complain "the dump was larger than $1: $largest_bytes"
    perfjit inject -q -i ring.data -o out.data
    begin=$(perfjit dump "$dump" | awk '$4 == "CODE_HISTORY" && !n++ { print $3 }')
    [ -n "$begin" ] || complain "no CODE_HISTORY in $dump"
    score=$(judge)
    echo "# all: $score" >&3
    read -r _ samples _ right _ wrong _ missing _ <<<"$score"
    [ "$samples" -ge 200 ] && [ "$wrong" -eq 0 ] || complain "$score; $(cat disagree)"
    score=$(judge "$begin")
    echo "# since the history begins, $begin: $score" >&3
    read -r _ samples _ right _ wrong _ missing _ <<<"$score"
    [ "$samples" -ge 20 ] && [ "$right" -eq "$samples" ] || complain "$score; $(cat disagree)"
}

# Without a name is what was dropped, and nothing else.
only_dropped_is_missing() {
    perfjit check ring.data >report || [ $? -eq 3 ]
    grep -q 'logged, but dropped' report || complain "$(cat report)"
    ! grep -Eq 'not-logged|before-load' report || complain "$(cat report)"
}

@test "20 000 functions in 4 MiB: what is alive and what is left of the history have their names" {
    churn 4M 20000 1000 3
    check_churn $((4 << 20))
    only_dropped_is_missing
}

# bats test_tags=live
@test "200 000 functions in 8 MiB: the same" {
    churn 8M 200000 3000 8
    check_churn $((8 << 20))
    only_dropped_is_missing
}

# bats test_tags=all
@test "6 million functions, an hour of 100 000 a minute, in 64 MiB" {
    churn 64M 6000000 20000 12
    check_churn $((64 << 20))
}
