#!/usr/bin/env bash
# make demo: record tinyjit, inject, and show perf's report before and after, side by side, on one screen.
set -euo pipefail
build=${1:?usage: examples/demo.sh BUILD_DIR}
here=$(cd "$(dirname "$0")" && pwd)
out=$build/demo
rm -rf "$out" && mkdir -p "$out" && cd "$out"

export PERFJIT=dump JITDUMPDIR=$out
# cpu-clock: a timer, so that it works on a machine without performance counters too.
record=(perf record -q -k mono -e cpu-clock -F 2000 -g -o perf.data)
echo "Recording three seconds of tinyjit, a small JIT compiler, under perf ..."
if ! "${record[@]}" "$build/tinyjit" --seconds 3 "$here/tinyjit/demo.tj" >tinyjit.out; then
    echo "demo: perf can't record here. As an ordinary user, /proc/sys/kernel/perf_event_paranoid must be 2 or less" \
        "(it is $(cat /proc/sys/kernel/perf_event_paranoid)); in a container, perf_event_open must be allowed." >&2
    exit 1
fi
"$build/perfjit" inject -i perf.data -o perf.jit.data 2>inject.err || { cat inject.err >&2; exit 1; }

rows() { # DATA: "overhead  symbol" of perf report, the largest first
    perf report -i "$1" --stdio --sort sym --no-children -g none 2>/dev/null | grep -v '^#' | grep . |
        sed -E 's/^ *([0-9.]+%) +\[(.)\] +/\1 \2 /'
}
rows perf.data >before
rows perf.jit.data >after

# Without names each address is a row.
unnamed=$(grep -c ' 0x' before || true)
column() { # FILE: 13 rows, overhead and symbol, as wide as half a screen
    head -13 "$1" | awk '{ $2 == "k" ? kernel = " (kernel)" : kernel = ""; row = $3
        for (i = 4; i <= NF; i++) row = row " " $i
        printf "%7s  %s\n", $1, substr(row kernel, 1, 28) }'
}
echo
sed 's/^perfjit: //' inject.err
echo
printf '%-40s%s\n' "perf report, before" "after perfjit inject" \
    "  $(wc -l <before) rows, $unnamed without a name" "  $(wc -l <after) rows, $(grep -c ' 0x' after || true) without a name"
echo
paste -d '|' <(column before) <(column after) | awk -F '|' '{ printf "%-40s%s\n", $1, $2 }'
echo
if grep -q ' 0x' after && "$build/perfjit" check perf.data >/dev/null 2>&1; then
    printf '%s\n\n' "What has no name now is in libraries without symbols (libc6-dbg has libc's), not in JIT code."
fi
shown=${out#"$OLDPWD/"}
echo "Look around:         perf report -i $shown/perf.jit.data"
echo "Profile a program:   perf record -k mono -g node --perf-prof app.js && ${build#"$OLDPWD/"}/perfjit inject"
echo "                     (java, php, python, LLVM and others: docs/runtimes.md; your own JIT: jitdump/README.md)"
