#!/usr/bin/env bash
# Run one of the programs and files that run.sh lists, and show what it says when it has ended: several run side by side.
# run.sh sets BUILD, TAGS, any of which a bats test must match, and RESULTS, the directory that takes how many passed.
set -uo pipefail
cd "$(dirname "$0")/.."
name=${1:?usage: tests/run_one.sh NAME}
log=$RESULTS/${name//\//.}.log
began=${EPOCHREALTIME/./}

run_test() {
    case $name in
    # perfjit reads what perf keeps below HOME of the kernel's symbols: nobody's but the tests' own.
    cli/*) HOME=$RESULTS with_mounts bats --tap --timing $(printf -- '--filter-tags %s ' $TAGS) "tests/$name" ;;
    */replay/*) replay "${name##*/}" ;;
    *) in_memory "$BUILD/$name" ;;
    esac
}

# A unit's files, too, are in memory, but where a file's generation is asked for, which tmpfs has not.
in_memory() {
    if [ -z "${FILES_IN_MEMORY:-}" ] || grep -qx "disk unit/${name##*/}" tests/levels; then
        "$@"
    else
        unshare --mount sh -c 'mount -t tmpfs -o mode=1777 tests "$FILES_IN_MEMORY" && TMPDIR=$FILES_IN_MEMORY exec "$@"' sh "$@"
    fi
}

# A perf record reads all 120 000 symbols of the kernel, nine tenths of what it takes to begin and to end.  It has few to read, but in
# files with tests of their names, or that run bats as an ordinary user, who may mount no /proc of which something is covered.  A file
# with the tag libc_names has the C library's debug information.
with_mounts() {
    local LIBC_BARE=
    [ ! -e /usr/lib/debug/.build-id ] || grep -q 'file_tags=.*libc_names' "tests/$name" || LIBC_BARE=${FEW_SYMBOLS:-}
    export LIBC_BARE
    if [ "${MOUNT_KERNEL_SYMBOLS:-}" != yes ] || grep -qE 'KERNEL_SYMBOLS=|bats_as_user' "tests/$name"; then
        "$@"
    else
        unshare --mount sh -c 'mount --bind "$KERNEL_SYMBOLS" /proc/kallsyms || exit
            [ -z "$FEW_SYMBOLS" ] || mount --bind "$FEW_SYMBOLS/node" "$NODE" || exit
            [ -z "$LIBC_BARE" ] || mount --bind "$LIBC_BARE/build-id" /usr/lib/debug/.build-id || exit
            [ -z "$FILES_IN_MEMORY" ] || { mount -t tmpfs -o mode=1777 tests "$FILES_IN_MEMORY" && export TMPDIR="$FILES_IN_MEMORY"; } || exit
            exec "$@"' sh "$@"
    fi
}

# A fuzz target: its first inputs, and those that once were too much.
replay() {
    if timeout 60 "$BUILD/$name" "$RESULTS/seeds/$1" $(find tests/fuzz/regressions -name "$1-*.hex" 2>/dev/null); then
        echo "ok 1 - $1"
    else
        echo "not ok 1 - $1"
    fi
}

# The units' cmocka and bats write TAP, a line a test.  Of a skipped one cmocka 1.1 says "not ok 1 # SKIP", bats "ok 1 ... # skip";
# what is unavailable (cli/helper.bash) is no skipped one.
lines() {
    grep -aiE "^$1" "$log" | grep -aciE $2 '# *skip'
}

TIMEFORMAT='%U %S'
{ time run_test >"$log" 2>&1; } 2>"$log.cpu"
status=$?
cpu_ms=$(awk '{ printf "%d", ($1 + $2) * 1000 }' "$log.cpu")
unavailable=$(grep -aciE '^ok .*# *skip unavailable: ' "$log")
skipped=$(($(lines '(not )?ok ' '') - unavailable))
passed=$(lines 'ok ' -v)
failed=$(lines 'not ok ' -v)
[ $status -eq 0 ] || [ "$failed" -gt 0 ] || failed=1
echo "$passed $failed $skipped $unavailable" >"$RESULTS/${name//\//.}.count"

# What did not pass, once more for the end of a long output: each failed test with its reasons, or the end of what ended without one.
failures() {
    awk '/^not ok/ { left = 12 } /^ok/ { left = tolower($0) ~ /# *skip/ && tolower($0) !~ /# *skip unavailable: / } left && left-- { print; said = 1 }
         END { exit !said }' "$log" || tail -15 "$log"
}
[ $((failed + skipped + status)) -eq 0 ] || { echo "-- $name" && failures; } >"$RESULTS/${name//\//.}.failures"

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
