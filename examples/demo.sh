#!/usr/bin/env bash
# make demo: record tinyjit, inject, and show perf's report with tinyjit's functions by name.
set -euo pipefail
build=${1:?usage: examples/demo.sh BUILD_DIR}
here=$(cd "$(dirname "$0")" && pwd)
out=$build/demo
rm -rf "$out" && mkdir -p "$out" && cd "$out"

run() {
    echo "\$ $*" >&2
    "$@"
}

export PERFJIT=dump JITDUMPDIR=$out
# cpu-clock: a timer, so that it works on a machine without performance counters too.
if ! run perf record -q -k mono -e cpu-clock -F 2000 -g -o perf.data \
    "$build/tinyjit" --seconds 3 "$here/tinyjit/demo.tj" >tinyjit.out; then
    echo "demo: perf can't record here. As an ordinary user, /proc/sys/kernel/perf_event_paranoid must be 2 or less" \
        "(it is $(cat /proc/sys/kernel/perf_event_paranoid)); in a container, perf_event_open must be allowed." >&2
    exit 1
fi
run "$build/perfjit" inject -i perf.data -o perf.jit.data
echo
echo "Before: perf report -i perf.data --sort sym"
perf report -i perf.data --stdio --sort sym --no-children -g none --percent-limit 2 2>/dev/null | grep -v '^#' | grep . | head -8
echo
echo "After: perf report -i perf.jit.data --sort sym"
perf report -i perf.jit.data --stdio --sort sym --no-children -g none --percent-limit 1 2>/dev/null | grep -v '^#' | grep . | head -24
