# The example compiler, recorded while it compiles, moves and forgets code: every name against its own log.
load helper

tinyjit=$here/../../examples/tinyjit

setup_file() {
    require_perf || return 0
    cd "$BATS_FILE_TMPDIR" || return
    for script in demo churn; do
        for wx in '' --wx; do
            recording $script$wx record_tinyjit $script $wx || return
        done
    done
}

record_tinyjit() { # SCRIPT [--wx]
    local seconds=0.6 rate=5000
    [ "$RECORDINGS" = live ] || seconds=0.06 rate=20000 # a dump of 0.6 s is large
    [ "$RECORDINGS" = live ] || [ -z "$2" ] || seconds=0.09 # it flips memory, too
    PERFJIT=dump JITDUMPDIR=$PWD record $1$2.data -F $rate "$BUILD/tinyjit" --seconds=$seconds $2 --truth=$1$2.truth "$tinyjit/$1.tj" >/dev/null
}

setup() {
    require_perf
    cd "$BATS_FILE_TMPDIR"
}

# A sample can hit code only between the events that tinyjit notes down, so nothing less than all will do.
check_truth() {
    local layout score samples right
    for layout in image function; do
        perfjit inject -q -i "$1.data" -o "$BATS_TEST_TMPDIR/out.data" --layout $layout
        score=$(samples "$BATS_TEST_TMPDIR/out.data" | "$BUILD/producers/truth_check" "$1.truth")
        echo "# $1, $layout layout: $score" >&3
        read -r _ samples _ right _ <<<"$score"
        [ "$samples" -ge 500 ]
        [ "$right" -eq "$samples" ]
    done
}

# bats test_tags=both
@test "demo: every sample in the arena has the right name" {
    check_truth demo
}

# bats test_tags=both
@test "demo --wx: every sample in the arena has the right name" {
    check_truth demo--wx
}

# bats test_tags=both
@test "churn: every sample in the arena has the right name" {
    check_truth churn
}

# bats test_tags=both
@test "churn --wx: every sample in the arena has the right name" {
    check_truth churn--wx
}

@test "the truth is one that can be missed: names without their times are mostly wrong" {
    local score samples wrong
    perfjit inject -q -i churn.data -o "$BATS_TEST_TMPDIR/out.data"
    score=$(samples "$BATS_TEST_TMPDIR/out.data" | awk '{ $1 = "999999999.000000000:"; print }' |
        "$BUILD/producers/truth_check" churn.truth 2>/dev/null)
    read -r _ samples _ _ _ wrong _ <<<"$score"
    [ "$samples" -ge 500 ]
    [ $((2 * wrong)) -gt "$samples" ] || complain "$score"
}

# perf looks for maps in /tmp itself.
# bats test_tags=live
@test "PERFJIT=map: plain perf report names the functions" {
    cd "$BATS_TEST_TMPDIR"
    PERFJIT=map JITDUMPDIR=$PWD perf record -q -e cpu-clock -F 2000 -o map.data "$BUILD/tinyjit" --seconds=1 --no-inline \
        --truth=truth "$tinyjit/demo.tj" >/dev/null
    [[ $(grep '^# pid' truth) =~ pid\ ([0-9]+), ]]
    local map=/tmp/perf-${BASH_REMATCH[1]}.map
    perf report --stdio --no-inline -i map.data >report
    rm "$map"
    grep -qE '\[\.\] tj::fib ' report
    grep -qE '\[\.\] tj::count_primes ' report
    run ! grep -E '\[JIT\].* \[\.\] 0x' report
    [ -z "$(find . -name 'jit-*.dump')" ]
}

@test "PERFJIT unset: no file appears" {
    cd "$BATS_TEST_TMPDIR"
    local output pid
    JITDUMPDIR=$PWD "$BUILD/tinyjit" --seconds=0.2 --truth=truth "$tinyjit/demo.tj" >/dev/null
    [[ $(grep '^# pid' truth) =~ pid\ ([0-9]+), ]]
    pid=${BASH_REMATCH[1]}
    [ "$(find . -mindepth 1)" = ./truth ]
    [ ! -e "/tmp/perf-$pid.map" ]
    [ ! -e "/tmp/jit-$pid.dump" ]
}
