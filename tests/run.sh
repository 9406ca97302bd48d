#!/usr/bin/env bash
# Run every test of the build in $1 and close with "N passed, N failed, N skipped".
#
# A test that can't run on this machine (no perf events, say) is skipped and says why; with CI=true a skip counts
# as a failure, because there nobody reads it.
set -uo pipefail
cd "$(dirname "$0")/.."
build=${1:?usage: tests/run.sh BUILD_DIR}
export BUILD=$build
passed=0 failed=0 skipped=0
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT

# The units: cmocka's TAP output, one line a test.  For a skipped one cmocka 1.1 writes "not ok 1 # SKIP", bats "ok 1 ... # skip".
export CMOCKA_MESSAGE_OUTPUT=TAP
count() {
    local p f s
    s=$(grep -ciE '^(not )?ok .*# *skip' "$log")
    p=$(grep -iE '^ok ' "$log" | grep -civE '# *skip')
    f=$(grep -iE '^not ok ' "$log" | grep -civE '# *skip')
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

# The sanitizers' run time takes some of the stack, of cancellation and of system calls for itself: what it can't bear is left out of
# the sanitized tests, and these are run as they are shipped as well.
unit_tests() {
    find "$build/sanitized/tests" -name '*_test' ! -name perfmap_stack_test | sort
    printf "$build/tests/%s_test\n" jitdump_sandbox jitdump_stop perfmap_sandbox perfmap_stack
}

for test in $(unit_tests); do
    echo "== ${test#"$build/"}"
    "$test" >"$log" 2>&1
    status=$?
    grep -vE '^(ok|1\.\.)' "$log"
    before=$failed
    count
    if [ $status -ne 0 ] && [ "$failed" = "$before" ]; then
        echo "${test##*/}: ended with status $status"
        failed=$((failed + 1))
    fi
done

# The fuzz targets, sanitized: their first inputs, and those that once were too much.
seeds=$(mktemp -d) || exit 1
trap 'rm -rf "$log" "$seeds"' EXIT
tests/fuzz/seeds.sh "$build" "$seeds" || failed=$((failed + 1))
for target in "$build"/sanitized/replay/*; do
    name=${target##*/}
    echo "== fuzz/$name"
    if timeout 60 "$target" "$seeds/$name" $(find tests/fuzz/regressions -name "$name-*.hex" 2>/dev/null) >"$log" 2>&1; then
        passed=$((passed + 1))
        tail -1 "$log"
    else
        failed=$((failed + 1))
        tail -30 "$log"
    fi
done

# The command and the libraries as their users have them.
for test in tests/cli/*.bats; do
    echo "== ${test#tests/}"
    began=$SECONDS
    bats --tap "$test" >"$log" 2>&1
    status=$?
    grep -v '^1\.\.' "$log"
    echo "# ${test#tests/}: $((SECONDS - began)) s"
    before=$failed
    count
    if [ $status -ne 0 ] && [ "$failed" = "$before" ]; then
        echo "$test: ended with status $status"
        failed=$((failed + 1))
    fi
done

if [ "${CI:-}" = true ] && [ $skipped -gt 0 ]; then
    echo "CI: $skipped skipped tests count as failed"
    failed=$((failed + skipped))
    skipped=0
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
