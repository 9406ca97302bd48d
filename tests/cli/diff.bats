#!/usr/bin/env bats
# perfjit diff: two sets of recordings of tinyjit, of which one calls its function half as often again.  The judge of sums is
# perfjit report, which perf judges (answers.bats).
load helper

setup_file() {
    require_perf || return 0
    cd "$BATS_FILE_TMPDIR" || return
    mkdir old changed
    printf 'fn inner(n) { var i = 0; while i < n { i = i + 1; } return i; }\nfn main() { var n = 0; while n < 1000 { inner(100000); n = n + 1; } return 0; }\n' >old/work.tj
    sed 's/n < 1000 /n < 3000 /' old/work.tj >changed/work.tj
    export PERFJIT=dump JITDUMPDIR=$PWD
    for run in 1 2 3 4 5 6; do
        record base$run -F 2000 -g "$BUILD/tinyjit" --no-inline old/work.tj
        record new$run -F 2000 -g "$BUILD/tinyjit" --no-inline changed/work.tj
    done
    perf record -q -k mono -e task-clock -F 2000 -o other "$BUILD/tinyjit" old/work.tj
}

setup() {
    require_perf
    cd "$BATS_FILE_TMPDIR" || return
}

@test "three times the work is slower, by the function that does it, and faster the other way" {
    perfjit diff -q --base base? --new new? >text
    grep -q '^slower: +[0-9.]* % in all, 6 against 6 runs, p 0.0[0-4][0-9]*$' text
    grep -Eq ' slower +tj::inner  work.tj$' text
    perfjit diff -q --paired --base base? --new new? | grep -q '^slower: .* in pairs, p 0.0[0-4][0-9]*$'
    perfjit diff -q --base new? --new base? | grep -q '^faster: -'
    perfjit diff -q --base base? --new new? | cmp - text
}

@test "the means are those of the runs" {
    local mean
    mean=$(for run in base?; do perfjit report -q --json "$run"; done | jq -s '[.[].total] | add / length / 1e6 * 10 | round / 10')
    perfjit diff -q --base base? --new new? >text
    awk -v mean="$mean" '/\(in all\)/ { exit !($1 - mean < 0.11 && mean - $1 < 0.11) }' text
    awk '/\(in all\)/ { all = $1; next } / ms / { sum += $1 } END { exit !(all - sum < 1 && sum - all < 1) }' <(perfjit diff -q -n 0 --base base? --new new?)
}

@test "the report is written, then --fail-on decides the status" {
    run perfjit diff -q --fail-on regression:2% -o gate --base base? --new new?
    [ "$status" = 4 ]
    grep -q ^slower gate
    perfjit diff -q --fail-on regression:2% --fail-on unknown --base new? --new base?
    perfjit diff -q --fail-on regression:9999% --base base? --new new?
    perfjit diff -q --base base? --new new?
}

@test "too few runs have no verdict, in words, and fail only on request" {
    perfjit diff -q --base base1 base2 base3 --new new? >text
    grep -q '^no verdict: 3 against 6 runs are too few' text
    ! grep -Eq ' (slower|faster) ' text || complain "it is there"
    perfjit diff -q --paired --base base[1-5] --new new[1-5] | grep -q '^no verdict: 5 against 5'
    perfjit diff -q --fail-on regression:1% --base base1 --new new1
    run perfjit diff -q --fail-on unknown --base base1 --new new1
    [ "$status" = 4 ]
}

@test "bad input: a side that is missing, other events, no recording, wrong words" {
    local words
    for words in "--base base1" "--new new1" "base1 --new new1" "--paired --base base1 --new new1 new2" \
        "--floor x --base base1 --new new1" "--fail-on slow --base base1 --new new1"; do
        # shellcheck disable=SC2086
        run perfjit diff $words
        [ "$status" = 2 ] || complain "$words: $status"
    done
    run perfjit diff -q --base base1 --new other
    [ "$status" = 1 ]
    [[ "$output" == *"another event, task-clock"* ]]
    run perfjit diff -q --base base1 --new old/work.tj
    [ "$status" = 1 ]
}
