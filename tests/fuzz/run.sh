#!/usr/bin/env bash
# Run fuzzers, each for some minutes, several at a time: run.sh BUILD MINUTES JOBS NAME...
# Inputs that they found worth keeping stay in BUILD/corpus/NAME; one that breaks something is BUILD/findings/NAME-...
set -euo pipefail
here=$(dirname "$0")
build=$1 minutes=$2 jobs=$3
shift 3
[ "$minutes" -gt 0 ] || { echo "how many minutes?" >&2; exit 2; } # libFuzzer takes 0 for ever
mkdir -p "$build/findings" "$build/fuzzing/log"
"$here/seeds.sh" "$build" "$build/corpus"
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1 build minutes
run_one() {
    "$build/fuzzing/fuzzers/$1" -max_len=4096 -timeout=10 -rss_limit_mb=2048 -max_total_time=$((minutes * 60)) \
        -print_final_stats=1 -artifact_prefix="$build/findings/$1-" "$build/corpus/$1" >"$build/fuzzing/log/$1" 2>&1 ||
        { tail -40 "$build/fuzzing/log/$1"; echo "$1: a finding, see above and $build/findings"; return 1; }
    echo "$1: $(sed -n 's/.*number_of_executed_units: *//p' "$build/fuzzing/log/$1") inputs, no finding"
}
export -f run_one
printf '%s\n' "$@" | xargs -P "$jobs" -I{} bash -c 'run_one {}'
