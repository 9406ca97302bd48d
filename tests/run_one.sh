#!/usr/bin/env bash
# Run one of the programs and files that run.sh lists, and show what it says when it has ended: several run side by side.
#
# run.sh sets BUILD, TAGS, any of which a bats test must match, RESULTS, the directory that takes how many passed, and KEPT, which takes
# the files of tests that failed once.
set -uo pipefail
cd "$(dirname "$0")/.."
name=${1:?usage: tests/run_one.sh NAME}
flat=${name//\//.}
log=$RESULTS/$flat.log
began=${EPOCHREALTIME/./}

# perfjit reads the kernel's symbols that perf keeps below HOME: those of the tests alone.
run_test() {
    case $name in
    cli/*) HOME=$RESULTS run_bats 1 ;;
    */replay/*) replay "${name##*/}" ;;
    *) "$BUILD/$name" ;;
    esac
}

# run_bats WHICH [OPTION...]: its files are below $RESULTS/WHICH.FILE, and stay there if a test fails.
run_bats() {
    local files=$RESULTS/$1.${flat#cli.} status=0
    mkdir -m 1777 "$files"
    TMPDIR=$files bats --tap --timing --no-tempdir-cleanup $(printf -- '--filter-tags %s ' $TAGS) "${@:2}" "tests/$name" || status=$?
    [ $status -ne 0 ] || rm -rf "$files"
    return $status
}

# A fuzz target: its first inputs, and those that once were too much.
replay() {
    if timeout 60 "$BUILD/$name" "$RESULTS/seeds/$1" $(find tests/fuzz/regressions -name "$1-*.hex" 2>/dev/null); then
        echo "ok 1 - $1"
    else
        echo "not ok 1 - $1"
    fi
}

# The units' cmocka and bats write TAP, a line for each test.  Of a skipped test cmocka 1.1 says "not ok 1 # SKIP", bats "ok 1 ... # skip".
# An unavailable test (cli/helper.bash) is not a skipped one.
lines() {
    grep -aiE "^$1" "$2" | grep -aciE $3 '# *skip'
}

# failed_tests LOG: their names as a regular expression; nothing if a whole file failed.
failed_tests() {
    sed -nE 's/^not ok [0-9]+ (.*) in [0-9]+(ms|sec)$/\1/p' "$1" | grep -v '^setup_file failed' |
        sed -E 's/[][(){}.*+?^$|\\]/\\&/g' | paste -sd '|' | sed -E 's/^(.+)$/^(\1)$/'
}

# A test that failed while it recorded runs up to twice more.  If it passes then, it is unstable, and its files stay in KEPT.
run_again() {
    local try pattern left=$log
    unstable=0
    for try in 2 3; do
        pattern=$(failed_tests "$left")
        HOME=$RESULTS run_bats "$try" ${pattern:+-f "$pattern"} >"$RESULTS/$flat.$try" 2>&1 || true
        left=$RESULTS/$flat.$try
        [ "$(lines 'not ok ' "$left" -v)" -gt 0 ] || break
    done
    local still=$(lines 'not ok ' "$left" -v)
    [ "$(lines 'ok ' "$left" -v)" -gt 0 ] || [ "$still" -gt 0 ] || still=$failed # it did not even run
    unstable=$((failed - still))
    [ $unstable -gt 0 ] || return
    mkdir -p "$KEPT"
    cp -r "$RESULTS/1.${flat#cli.}" "$KEPT/${flat#cli.}" 2>/dev/null
    grep -aE '^not ok' "$log" | grep -avxFf <(grep -aE '^not ok' "$left" | sed 's/ in [0-9]*ms$//') |
        sed -E "s,^not ok [0-9]+ (.*) in [0-9]+ms\$,unstable: $name: \\1 (kept: $KEPT/${flat#cli.})," >"$RESULTS/$flat.unstable"
    passed=$((passed + unstable))
    failed=$still
    status=$((still > 0))
}

TIMEFORMAT='%U %S'
{ time run_test >"$log" 2>&1; } 2>"$log.cpu"
status=$?
cpu_ms=$(awk '{ printf "%d", ($1 + $2) * 1000 }' "$log.cpu")
unavailable=$(grep -aciE '^ok .*# *skip unavailable: ' "$log")
skipped=$(($(lines '(not )?ok ' "$log" '') - unavailable))
passed=$(lines 'ok ' "$log" -v)
failed=$(lines 'not ok ' "$log" -v)
unstable=0
[ $status -eq 0 ] || [ "$failed" -gt 0 ] || failed=1
[[ $failed -eq 0 || $name != cli/* || $RECORDINGS = stored ]] || run_again
rm -rf "$RESULTS"/{1,2,3}."${flat#cli.}"
echo "$passed $failed $skipped $unavailable $unstable" >"$RESULTS/$flat.count"

# The tests that did not pass, for the end of a long output: each failed test with its reasons, or the end of what ended without one.
failures() {
    awk '/^not ok/ { left = 12 } /^ok/ { left = tolower($0) ~ /# *skip/ && tolower($0) !~ /# *skip unavailable: / } left && left-- { print; said = 1 }
         END { exit !said }' "$log" || tail -15 "$log"
}
[ $((failed + skipped + status + unstable)) -eq 0 ] || { echo "-- $name" && failures; } >"$RESULTS/$flat.failures"

[ $((passed + failed + skipped + unavailable + status)) -gt 0 ] || exit 0
{
    flock 9
    echo "== $name: $passed passed in $(((${EPOCHREALTIME/./} - began) / 1000)) ms, $cpu_ms of a processor's"
    case $name in
    cli/*) grep -av '^1\.\.' "$log" ;;
    */replay/*) [ "$failed" = 0 ] && grep -a ' inputs$' "$log" || tail -30 "$log" ;;
    *) grep -avE '^(ok|1\.\.|# ok - tests)' "$log" ;;
    esac
    [ $status -eq 0 ] || echo "$name: ended with status $status"
} 9>"$RESULTS/output"
exit 0
