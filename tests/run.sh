#!/usr/bin/env bash
# Run the tests of a level with the build in BUILD_DIR and close with "N passed, N failed, N skipped".
#
#     tests/run.sh BUILD_DIR test|check|all
#
# README.md says what belongs to which level; tests/levels and the tags in cli/ decide.  As many programs and bats files run side
# by side as JOBS says.
#
# A test that can't run on this machine (no perf events, say) is skipped and says why; with CI=true a skip counts
# as a failure, because there nobody reads it.  What is unavailable, other programs' sources that neither this repository nor
# `make setup` has, is no skip: it is told apart, in a line before the last.
set -uo pipefail
cd "$(dirname "$0")/.."
usage="usage: tests/run.sh BUILD_DIR test|check|all"
export BUILD=${1:?$usage}
level=${2:?$usage}
case $level in
test) TAGS=test BRIEF=10 ;;
check) TAGS='!all' BRIEF=10 ;;
all) TAGS='all more' ;;
*) echo "$usage" >&2; exit 2 ;;
esac
# BRIEF: how often what is tagged `more` is done in make test and make check.  cmocka's units write TAP, too.
export TAGS BRIEF=${BRIEF:-} CMOCKA_MESSAGE_OUTPUT=TAP
RESULTS=$(mktemp -d) || exit 1
export RESULTS
trap 'rm -rf "$RESULTS"' EXIT

# Few of the kernel's symbols, for perf's reading: see cli/helper.bash.  Who may not see their addresses does without.
KERNEL_SYMBOLS=$RESULTS/kernel_symbols
awk '$2 ~ /[Tt]/ && $3 ~ /^(_text|_stext|_etext|do_syscall_64|schedule)$/ && $1 !~ /^0*$/' /proc/kallsyms >"$KERNEL_SYMBOLS"
[ ! -s "$KERNEL_SYMBOLS" ] || export KERNEL_SYMBOLS

# perf record and perf inject have no option for that.  Who may mount puts the file in place of the kernel's: see run_one.sh.
! unshare --mount mount --bind "$KERNEL_SYMBOLS" /proc/kallsyms 2>/dev/null || export MOUNT_KERNEL_SYMBOLS=yes

# In make test and make check what the tests write stays in memory, if there is enough: on a disk a fifth of their time is the file
# system's.  In make check-all they use the disk.
unset FILES_IN_MEMORY FEW_SYMBOLS
mkdir "$RESULTS/t"
chmod 711 "$RESULTS"
memory_kib=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo)
[ "$level" = all ] || [ "${memory_kib:-0}" -lt $((8 << 20)) ] || ! unshare --mount mount -t tmpfs tests "$RESULTS/t" 2>/dev/null ||
    export FILES_IN_MEMORY=$RESULTS/t

# They also see node and the C library as Debian ships them: of node's 107 000 symbols those of V8's built-in functions, and no debug
# information of the C library, which comes with valgrind, but the dynamic linker's, which valgrind needs.  Each perf and perfjit that
# gives names would read them all, a fifth of these tests' time.  In make check-all the programs are what is installed.
few_symbols() {
    local linker id
    mkdir -p "$RESULTS/few/build-id"
    NODE=$(readlink -f "$(command -v node)") &&
        objcopy --strip-all --wildcard --keep-symbol='Builtins_*' --keep-symbol=_start "$NODE" "$RESULTS/few/node" 2>/dev/null || return
    linker=$(readelf -p .interp /bin/sh | awk '$1 == "[" { print $3 }')
    id=$(readelf -n "$linker" | sed -n 's/.*Build ID: \(..\)/\1\//p')
    mkdir -p "$RESULTS/few/build-id/${id%/*}"
    cp "/usr/lib/debug/.build-id/$id.debug" "$RESULTS/few/build-id/${id%/*}/" 2>/dev/null
    export NODE FEW_SYMBOLS=$RESULTS/few
}
[ "$level" = all ] || few_symbols

# of_level NAME: whether the unit or fuzz target belongs to this level.
of_level() {
    local own
    own=$(awk -v name="$1" '$2 == name && $1 != "shipped" && $1 != "arithmetic" && $1 != "disk" { print $1 }' tests/levels)
    case $level/${own:-test} in
    test/test | check/test | check/check | check/more | all/more | all/all) ;;
    *) return 1 ;;
    esac
}

# is_noted WORD NAME: whether the unit stands behind WORD.
is_noted() {
    grep -qx "$1 unit/$2" tests/levels
}

# As of the files, what lasts longest comes first.
units() {
    local unit
    for unit in $({ echo single_step_test.c; find tests/unit -name '*_test.c' -printf '%f\n' | sort; } | awk '!seen[$0]++'); do
        unit=${unit%.c}
        if is_noted arithmetic "$unit"; then
            [ "$level" = all ] && echo "sanitized/tests/$unit" || echo "tests/$unit"
            continue
        fi
        of_level "unit/$unit" || continue
        [ "$level" = test ] || [[ $unit = *_stack_test ]] || echo "sanitized/tests/$unit"
        [ "$level" != test ] && ! is_noted shipped "$unit" || echo "tests/$unit"
    done
}

replays() {
    local target
    for target in $(find "$BUILD/sanitized/replay" -type f -executable -printf '%f\n' 2>/dev/null | sort); do
        ! of_level "fuzz/$target" || [ "$level" = test ] || echo "sanitized/replay/$target"
    done
}

# What lasts longest comes first, so that the others fill what is left of the time.  A file without a test of this level does
# nothing, and run_one.sh says nothing of it.
bats_files() {
    { printf 'cli/%s.bats\n' answers record lines forms real_producers; (cd tests && ls cli/*.bats); } | awk '!seen[$0]++'
}

# No fewer processors than files at a time: one file more takes no less time, and a seventh more of the processors'.
streams() {
    local processors
    processors=$(nproc)
    echo "${JOBS:-$((processors < 4 ? processors : 4))}"
}

if [ -z "$(replays)" ] || tests/fuzz/seeds.sh "$BUILD" "$RESULTS/seeds"; then
    { bats_files; replays; units; } >"$RESULTS/names"
    xargs -a "$RESULTS/names" -P "$(streams)" -n 1 tests/run_one.sh
fi

# Failed and skipped tests stand somewhere above, among thousands.  What left no count has not ended, or not begun.
find "$RESULTS" -maxdepth 1 -name '*.failures' -exec cat {} +
missing=0
while read -r name; do
    [ -e "$RESULTS/${name//\//.}.count" ] || { echo "-- $name has not ended" && missing=$((missing + 1)); }
done <"$RESULTS/names"
read -r passed failed skipped unavailable <<<"$(cat "$RESULTS"/*.count |
    awk '{ p += $1; f += $2; s += $3; u += $4 } END { print p + 0, f + 0, s + 0, u + 0 }')"
failed=$((failed + missing))
[ "$unavailable" -eq 0 ] || echo "$unavailable unavailable: tests of programs whose sources are not here, each with its reason above"
if [ "${CI:-}" = true ] && [ "$skipped" -gt 0 ]; then
    echo "CI: $skipped skipped tests count as failed"
    failed=$((failed + skipped))
    skipped=0
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
