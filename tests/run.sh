#!/usr/bin/env bash
# Run the tests of a level with the build in BUILD_DIR and close with "N passed, N failed, N skipped".
#
#     tests/run.sh BUILD_DIR check|live|all
#
# README.md says what belongs to which level; tests/levels and the tags in cli/ decide.  As many programs and bats files run side
# by side as JOBS says (default: the number of processors, at most four).
#
# A test that can't run on this machine is skipped and says why.  With CI=true a skip counts as a failure, because nobody reads it
# there.  Tests of other programs whose sources neither this repository nor the setup targets have are counted apart, as unavailable.
#
# A test that records (levels live and all) and fails runs up to twice more: run_one.sh.  If it passes then it is unstable, and more
# than two unstable tests are a failure.
set -uo pipefail
cd "$(dirname "$0")/.."
usage="usage: tests/run.sh BUILD_DIR check|live|all"
export BUILD=${1:?$usage}
level=${2:?$usage}
MOST_UNSTABLE=2
case $level in
check) TAGS='!live,!all' BRIEF=10 RECORDINGS=stored ;;
live) TAGS='live,!all both,!all' BRIEF=10 RECORDINGS=live ;;
all) TAGS='live both all' BRIEF= RECORDINGS=live ;;
*) echo "$usage" >&2; exit 2 ;;
esac
# A bats test runs if it matches one of TAGS.  BRIEF: sweeps take few steps.  RECORDINGS: cli/helper.bash.  cmocka's units write TAP, too.
export TAGS BRIEF RECORDINGS CMOCKA_MESSAGE_OUTPUT=TAP
# python3 may be a script that looks for one, as pyenv's: eight times as slow, and tests call it a thousand times.
python=$(python3 -c 'import sys; print(sys.executable)') && PATH=${python%/*}:$PATH
RESULTS=$(mktemp -d) || exit 1
export RESULTS KEPT=$BUILD/unstable
trap 'rm -rf "$RESULTS"' EXIT
rm -rf "$KEPT"
began=$SECONDS

# few_kernel_symbols: enough for most tests, which read them often; all of them take 0.15 s each time.  A user who may not see
# addresses has none.
few_kernel_symbols() {
    awk '$2 ~ /[Tt]/ && $3 ~ /^(_text|_stext|_etext|do_syscall_64|schedule)$/ && $1 !~ /^0*$/' /proc/kallsyms
}

if [ "$level" = check ]; then
    # perf events are not used, and no test shall come to need them unseen.
    mkdir "$RESULTS/programs" && tar -xJf tests/recordings/programs.tar.xz -C "$RESULTS/programs" || exit 1
    export RECORDED_PROGRAMS=$RESULTS/programs
    # A recording may be of this very kernel.
    kernel=$(perf buildid-list -k 2>/dev/null) && [ -n "$kernel" ] && mkdir -p "$RESULTS/.debug/[kernel.kallsyms]/$kernel" &&
        few_kernel_symbols >"$RESULTS/.debug/[kernel.kallsyms]/$kernel/kallsyms"
    chmod -R a+rX "$RESULTS"
else
    # For perf script and perf report: see cli/helper.bash.
    KERNEL_SYMBOLS=$RESULTS/kernel_symbols
    few_kernel_symbols >"$KERNEL_SYMBOLS"
    [ ! -s "$KERNEL_SYMBOLS" ] || export KERNEL_SYMBOLS
    chmod 711 "$RESULTS"
fi

# is_noted WORD NAME: whether the unit stands behind WORD.
is_noted() {
    grep -qx "$1 unit/$2" tests/levels
}

# make check runs the sanitized units, and those as they are shipped that tests/levels notes; make check-all what it leaves out.  What
# lasts longest comes first.
units() {
    local unit
    for unit in $({ echo single_step_test.c; find tests/unit -name '*_test.c' -printf '%f\n' | sort; } | awk '!seen[$0]++'); do
        unit=${unit%.c}
        if is_noted live "$unit"; then
            [ "$level" = check ] || echo "tests/$unit"
        elif [ "$level" = live ]; then
            continue
        elif is_noted all "$unit"; then
            [ "$level" = check ] || echo "sanitized/tests/$unit"
        elif is_noted more "$unit"; then
            echo "sanitized/tests/$unit"
        elif is_noted arithmetic "$unit"; then
            [ "$level" = all ] && echo "sanitized/tests/$unit" || echo "tests/$unit"
        elif [ "$level" = check ]; then
            [[ $unit = *_stack_test ]] || echo "sanitized/tests/$unit"
            ! is_noted shipped "$unit" || echo "tests/$unit"
        fi
    done
}

replays() {
    [ "$level" = check ] || return 0
    find "$BUILD/sanitized/replay" -type f -executable -printf 'sanitized/replay/%f\n' 2>/dev/null | sort
}

# A file without a test of this level does nothing, and run_one.sh says nothing of it.
bats_files() {
    { printf 'cli/%s.bats\n' record forms answers lines runtimes attach; (cd tests && ls cli/*.bats); } | awk '!seen[$0]++'
}

streams() {
    local processors
    processors=$(nproc)
    echo "${JOBS:-$((processors < 4 ? processors : 4))}"
}

if [ -z "$(replays)" ] || tests/fuzz/seeds.sh "$BUILD" "$RESULTS/seeds"; then
    { bats_files; replays; units; } >"$RESULTS/names"
    xargs -a "$RESULTS/names" -P "$(streams)" -n 1 tests/run_one.sh
fi

# Failed, skipped and unstable tests stand somewhere above, among many.  A program without a count has not ended, or not begun.
find "$RESULTS" -maxdepth 1 -name '*.failures' -exec cat {} +
missing=0
while read -r name; do
    [ -e "$RESULTS/${name//\//.}.count" ] || { echo "-- $name has not ended" && missing=$((missing + 1)); }
done <"$RESULTS/names"
read -r passed failed skipped unavailable unstable <<<"$(cat "$RESULTS"/*.count |
    awk '{ p += $1; f += $2; s += $3; u += $4; x += $5 } END { print p + 0, f + 0, s + 0, u + 0, x + 0 }')"
failed=$((failed + missing))
[ "$unavailable" -eq 0 ] || echo "$unavailable unavailable: tests of programs whose sources are not here, each with its reason above"
find "$RESULTS" -maxdepth 1 -name '*.unstable' -exec cat {} +
if [ "$unstable" -gt "$MOST_UNSTABLE" ]; then
    echo "$unstable tests are unstable: more than $MOST_UNSTABLE count as failed"
    failed=$((failed + unstable))
fi
if [ "${CI:-}" = true ] && [ "$skipped" -gt 0 ]; then
    echo "CI: $skipped skipped tests count as failed"
    failed=$((failed + skipped))
    skipped=0
fi
echo "$level: $((SECONDS - began)) s"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
