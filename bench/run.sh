#!/usr/bin/env bash
# make bench, make bench-quick: how fast it is, beside perf inject and beside copying the same bytes.
#
#     bench/run.sh BUILD_DIR full|quick [ROUNDS]
#
# All commands that are compared take turns in one run (A B A B), and medians are compared: on a busy machine a time says
# little and a ratio much.  CPU time (user and system) stands beside the time on the clock, because another program on the
# machine changes it less.
#
# full    writes bench/results.md and bench/results.svg, and then does what keep does
# quick   10 000 functions; ends with 1 if a ratio of CPU times is less than half of that in bench/ratios.txt, or one of times on
#         the clock less than a quarter, twice in a row.  Where perf
#         can't record it says so and does nothing, but for CI=true
# keep    measures as quick does, and writes bench/ratios.txt
# rows    prints the section on rows alone
# unwind  prints the section on libjitunwind alone
# table   writes bench/results.* again, from what the last full run left in BUILD_DIR/bench-raw
#
# BENCH_DIR        where to work; default: quick in memory (/dev/shm), if programs can be mapped there, full in BUILD_DIR
# BENCH_SIZES      numbers of functions
# BENCH_PERF_MAX   perf inject is measured up to so many functions, because it takes long beyond
# NEW_PERF_ROOT    a root file system with a newer perf (make check-new-perf makes one), measured too if it is there
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:?usage: bench/run.sh BUILD_DIR full|quick [ROUNDS]}
mode=${2:?full, quick, keep, rows, unwind or table}
here=$PWD/bench
case $mode in
full) sizes=${BENCH_SIZES:-1000 10000 100000 1000000} perf_max=${BENCH_PERF_MAX:-100000} rounds=${3:-5} ;;
table) sizes=${BENCH_SIZES:-1000 10000 100000 1000000} perf_max=0 rounds=0 ;;
rows | unwind) sizes= perf_max=0 rounds=${3:-9} ;;
quick | keep) sizes=${BENCH_SIZES:-10000} perf_max=${BENCH_PERF_MAX:-10000} rounds=${3:-5} ;;
*) exit 2 ;;
esac
function_max=100000 # of the layout with a file for each function
new_root=${NEW_PERF_ROOT:-$build/new-perf-root}
# It looks for addr2line beside itself, where one is that lacks its libraries here (tests/new_perf.sh).
new_perf="env PERF_EXEC_PATH=$build/new-perf-programs $new_root/usr/lib64/ld-linux-x86-64.so.2 --library-path $new_root/usr/lib/x86_64-linux-gnu $new_root/usr/bin/perf"
[ -x "$new_root/usr/bin/perf" ] && [ "$mode" = full ] || new_perf=

# Dumps are written to disks, so full measures with one.  If many files have just been removed from it, wait five minutes first
# (clean.sh says why).  A disk that others use as well is no judge of a change, so quick doesn't, unless memory is mounted noexec.
memory_dir() {
    local try
    try=$(mktemp /dev/shm/bench.XXXXXX) || return
    cp /bin/true "$try" && chmod +x "$try" && "$try" 2>/dev/null && echo /dev/shm
    rm -f "$try"
}
parent=$build
[ "$mode" = full ] || [ "$mode" = rows ] || parent=$(memory_dir || true)
parent=${BENCH_DIR:-${parent:-$build}}
work=$(mktemp -d "$parent/bench.XXXXXX")
raw=$build/bench-raw
trap 'rm -rf "$work"' EXIT
export HOME=$work/home LC_ALL=C.UTF-8
unset PERFJIT JITDUMPDIR DEBUGINFOD_URLS
mkdir "$HOME"
times=$work/times # WHAT TOOL FUNCTIONS WALL_S CPU_S, a line for each run
facts=$work/facts # NAME VALUE
: >"$times" >"$facts"

say() {
    echo "bench: $*" >&2
}

# measure WHAT FUNCTIONS ROUNDS TOOL COMMAND [TOOL COMMAND]...: they take turns.  Before each one that injects, what the one before made is
# put aside; those that read need it.
measure() {
    local what=$1 functions=$2 count=$3 round
    shift 3
    local -a arguments=()
    [ "$what" != inject ] || arguments=(--prepare "$here/clean.sh $work")
    while [ $# -gt 0 ]; do
        arguments+=(--command-name "$1" "$2")
        shift 2
    done
    for ((round = 0; round < count; round++)); do
        hyperfine -N -r 1 --style none --export-json "$work/round.json" \
            "${arguments[@]}" >/dev/null 2>"$work/hyperfine.err" || {
            cat "$work/hyperfine.err" >&2
            return 1
        }
        jq -r --arg what "$what" --arg n "$functions" \
            '.results[] | "\($what) \(.command) \($n) \(.median) \(.user + .system)"' "$work/round.json" >>"$times"
    done
}

# median WHAT TOOL FUNCTIONS 4|5: of the times on the clock or of CPU time; nothing if it was not measured.
median() {
    awk -v what="$1" -v tool="$2" -v n="$3" -v field="$4" '$1 == what && $2 == tool && $3 == n { print $field }' "$times" |
        sort -g | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)] }'
}

# ratio A B: A / B, or nothing if there is none.
ratio() {
    [ -n "$1" ] && [ -n "$2" ] || return 0
    awk -v a="$1" -v b="$2" 'BEGIN { printf "%.3g", a / b }'
}

# The dump that was recorded in DIR: V8's is there, libjitdump's in a directory of its own, and its stage below that.
dump_in() { # DIR
    find "$1" -maxdepth 2 -name 'jit-*.dump'
}

record() { # DIR OPTION... COMMAND
    local dir=$1
    shift
    mkdir -p "$dir"
    (cd "$dir" && PERFJIT=dump perf record -q --no-bpf-event -k mono -e cpu-clock -o perf.data "$@" >/dev/null 2>"$work/record.err") || {
        cat "$work/record.err" >&2
        return 1
    }
}

# ---- inject ----

inject_size() { # FUNCTIONS
    local n=$1 dir=$work/$1 bytes
    say "$n functions"
    record "$dir" "$build/bench/functions" -n "$n"
    local image="$build/perfjit inject -q -i $dir/perf.data -o $work/run/image"
    measure inject "$n" "$rounds" perfjit-image "$image" \
        floor "$here/floor.sh $work/run/floor $dir/perf.data $(dump_in "$dir")"
    # Beside those that make a file for each function it has turns of its own: they take long, and the disk is busy for seconds
    # after 100 000 files have been removed.
    local -a slow=()
    [ "$n" -gt "$function_max" ] ||
        slow+=(perfjit-function "$build/perfjit inject -q --layout function -i $dir/perf.data -o $work/run/function")
    if [ "$n" -le "$perf_max" ]; then
        slow+=(perf-inject "perf inject --jit -i $dir/perf.data -o $work/run/perf")
        [ -z "$new_perf" ] || slow+=(new-perf-inject "$new_perf inject --jit -i $dir/perf.data -o $work/run/new")
    fi
    [ ${#slow[@]} = 0 ] || measure inject "$n" "$(((rounds + 1) / 2))" "${slow[@]}" perfjit-beside "$image"
    bytes=$("$build/bench/peak_memory" "$build/perfjit" inject -q -i "$dir/perf.data" -o "$dir/kept")
    echo "peak_anonymous_$n $bytes" >>"$facts"
    echo "files_$n $(find "$dir/kept.dso" -type f | wc -l)" >>"$facts"
    echo "size_ratio_$n $(size_ratio "$dir" "$n")" >>"$facts"
}

# What is written, on the disk, as a share of what it is made of: perf.data, and the dump's names, code and tables (all of a
# dump but the 56 bytes in front of each function).
size_ratio() { # DIR FUNCTIONS
    local written given
    written=$(du -cB1 "$1/kept" "$1/kept.dso" | tail -1 | cut -f1)
    given=$(($(cat "$1"/perf.data "$(dump_in "$1")" | wc -c) - 56 * $2))
    ratio "$written" "$given"
}

# ---- perf report and perf script on what was made ----

report_size() { # FUNCTIONS
    local n=$1 dir=$work/$1
    say "perf report, $n functions"
    perf inject --jit -i "$dir/perf.data" -o "$dir/perf-inject.data"
    measure report "$n" "$rounds" perf-inject "perf report --stdio -i $dir/perf-inject.data" \
        perfjit-image "perf report --stdio -i $dir/kept" recording "perf report --stdio -i $dir/perf.data"
    "$here/clean.sh" "$work"
}

# rows_of NAME: images by name beside images of bodies, which were the layout before there were rows; made, and read by perf report.
rows_of() {
    local dir=$work/$1 by=$build/perfjit
    "$by" inject -q -i "$dir/perf.data" -o "$dir/kept"
    "$by" inject -q --rows body -i "$dir/perf.data" -o "$dir/bodies"
    measure rows-inject "$1" "$rounds" by-name "$by inject -q -i $dir/perf.data -o $dir/kept" \
        by-body "$by inject -q --rows body -i $dir/perf.data -o $dir/bodies"
    measure rows-report "$1" "$rounds" by-name "perf report --stdio -i $dir/kept" \
        by-body "perf report --stdio -i $dir/bodies" recording "perf report --stdio -i $dir/perf.data"
    echo "rows_bytes_$1 $(stat -c %s "$dir/perf.data" "$dir/kept" "$dir/bodies" | tr '\n' ' ')" >>"$facts"
}

# Code that is compiled again and again: each body's neighbours have other names.
repeated_bodies() {
    local dir=$work/bodies
    say "100000 bodies of 1000 names"
    record "$dir" "$build/bench/functions" -n 100000 -m 1000
    "$build/perfjit" inject -q -i "$dir/perf.data" -o "$dir/kept"
    echo "size_ratio_bodies $(size_ratio "$dir" 100000)" >>"$facts"
    rows_of bodies
}

# read_script NAME ROUNDS PERF: that perf's script of a recording, and of what both made of it, with inlined calls and without.
read_script() {
    local name=$1 count=$2 perf=$3 dir=$work/$1 option
    perf inject --jit -i "$dir/perf.data" -o "$dir/perf-inject.data"
    for option in "" -no-inline; do
        local script="$perf script ${option:+-$option} -i $dir"
        measure "script$option" "$name" "$count" perf-inject "$script/perf-inject.data" \
            perfjit-image "$script/kept" recording "$script/perf.data"
    done
    "$here/clean.sh" "$work"
}

# profile NAME COMMAND...: a real runtime's; inject and perf script, in which perf looks up inlined calls.
profile() {
    local name=$1 dir=$work/$1
    shift
    say "$name"
    record "$dir" -F 1000 -g "$@"
    "$build/perfjit" inject -q -i "$dir/perf.data" -o "$dir/kept"
    measure inject "$name" "$rounds" perf-inject "perf inject --jit -i $dir/perf.data -o $work/run/perf" \
        perfjit-image "$build/perfjit inject -q -i $dir/perf.data -o $work/run/image" \
        perfjit-function "$build/perfjit inject -q --layout function -i $dir/perf.data -o $work/run/function" \
        floor "$here/floor.sh $work/run/floor $dir/perf.data $(dump_in "$dir")"
    rows_of "$name"
    read_script "$name" "$rounds" perf
}

# The newest perf looks up inlined calls in chains of frame pointers, too, which perf 6.1 does not.  In a node with debug information
# both look for hours, whatever JIT code there is.
newest_script() {
    local dir=$work/node-stripped
    say node-stripped
    mkdir -p "$dir"
    strip -g -o "$dir/node" "$(readlink -f "$(command -v node)")"
    record "$dir" -F 500 -g "$dir/node" --perf-prof --interpreted-frames-native-stack "$here/node_load.js"
    "$build/perfjit" inject -q -i "$dir/perf.data" -o "$dir/kept"
    read_script node-stripped 3 "$new_perf"
}

# ---- The ratios: more is better ----

put_ratio() { # NAME VALUE
    [ -z "$2" ] || echo "$1 $2"
}

# against WHAT FUNCTIONS TOOL OTHER: how many times faster TOOL is, on the clock and in CPU time; if it had turns of its own beside the
# slow ones, in these.
against() {
    local tool=$3
    if [ "$4" != floor ] && [ -n "$(median "$1" perfjit-beside "$2" 4)" ]; then tool=${3/image/beside}; fi
    put_ratio "$1_$2_$3_vs_$4" "$(ratio "$(median "$1" "$4" "$2" 4)" "$(median "$1" "$tool" "$2" 4)")"
    put_ratio "$1_$2_$3_vs_$4_cpu" "$(ratio "$(median "$1" "$4" "$2" 5)" "$(median "$1" "$tool" "$2" 5)")"
}

writer_ratio() { # BYTES THREADS OTHER
    awk -v b="$1" -v t="$2" -v other="$3" '$2 == b && $3 == t { wall[$1] = $4; cpu[$1] = $5 } END {
        if (!wall["jitdump"]) exit
        printf "writer_%s_%s_vs_%s %.3g\n", b, t, other, wall[other] / wall["jitdump"]
        printf "writer_%s_%s_vs_%s_cpu %.3g\n", b, t, other, cpu[other] / cpu["jitdump"] }' "$work/writer"
}

all_ratios() {
    local n bytes threads other
    for n in $sizes tinyjit node node-stripped; do
        against inject "$n" perfjit-image perf-inject
        against inject "$n" perfjit-image new-perf-inject
        against inject "$n" perfjit-function perf-inject
        against inject "$n" perfjit-image floor
        against report "$n" perfjit-image perf-inject
        against script "$n" perfjit-image perf-inject
        against script-no-inline "$n" perfjit-image perf-inject
    done
    for bytes in 64 256 4096; do
        for threads in 1 2 4; do
            for other in stdio flush writes floor; do
                writer_ratio "$bytes" "$threads" "$other"
            done
        done
    done
}

# Where a ratio is less than half of what it was when bench/ratios.txt was written; on the clock, less than a quarter: another
# program on the machine easily doubles one of two times, but CPU time hardly.
fell() {
    awk 'NR == FNR { was[$1] = $2; next }
        $1 in was { seen++; share = $1 ~ /_cpu$/ ? 2 : 4
            if ($2 < was[$1] / share) { bad++; printf "%s is %s, and was %s\n", $1, $2, was[$1] } }
        END { printf "%d ratios compared, %d fell\n", seen, bad; exit !seen || bad > 0 }' "$here/ratios.txt" "$work/ratios"
}

if [ "$mode" = table ]; then
    cp "$raw"/* "$work"
    . "$here/table.sh" >"$here/results.md"
    . "$here/chart.sh"
    exit
fi
if [ "$mode" = unwind ]; then
    "$build/bench/self_unwind" >"$work/self_unwind"
    "$here/registration.sh" "$build" >"$work/registration"
    . "$here/unwind_table.sh"
    exit
fi
if ! perf record -q --no-bpf-event -k mono -e cpu-clock -o "$work/try.data" true 2>"$work/record.err"; then
    say "perf can't record here: $(tail -1 "$work/record.err")"
    [ "$mode" = quick ] && [ "${CI:-}" != true ]
    exit
fi
if [ "$mode" = rows ]; then
    record "$work/100000" "$build/bench/functions" -n 100000
    rows_of 100000
    repeated_bodies
    record "$work/tinyjit" -F 2000 -g "$build/tinyjit" --seconds 3 "$PWD/examples/tinyjit/demo.tj"
    rows_of tinyjit
    record "$work/node" -F 1000 -g node --perf-prof --interpreted-frames-native-stack "$here/node_load.js"
    rows_of node
    . "$here/cells.sh"
    . "$here/rows_table.sh"
    exit
fi
for n in $sizes; do inject_size "$n"; done
for n in $sizes; do
    if [ "$n" -le "$perf_max" ] && [ "$n" -ge 10000 ]; then report_size "$n"; fi
    if [ "$mode" = full ] && [ "$n" -eq 100000 ]; then rows_of "$n"; fi
    rm -rf "${work:?}/$n"
done
if [ "$mode" = full ]; then
    repeated_bodies
    profile tinyjit -F 2000 "$build/tinyjit" --seconds 3 "$PWD/examples/tinyjit/demo.tj"
    if command -v node >/dev/null; then
        profile node node --perf-prof --interpreted-frames-native-stack "$here/node_load.js"
        [ -z "$new_perf" ] || newest_script
    fi
fi
say "writer"
mkdir "$work/dump"
if [ "$mode" = full ]; then
    "$build/bench/writer" "$work/dump" >"$work/writer"
else
    "$build/bench/writer" "$work/dump" -q >"$work/writer"
fi
[ "$mode" != full ] || "$build/bench/self_unwind" >"$work/self_unwind"
[ "$mode" != full ] || "$build/bench/frame_check" >"$work/frame_check"
[ "$mode" != full ] || "$build/bench/trampoline" >"$work/trampoline"
[ "$mode" != full ] || "$build/bench/attach" "$build/perfjit" >"$work/attach"
[ "$mode" != full ] || "$here/registration.sh" "$build" >"$work/registration"
all_ratios >"$work/ratios"
case $mode in
quick)
    cat "$work/ratios"
    fell && exit
    [ -z "${BENCH_SECOND:-}" ] || exit 1
    say "once more: it may have been another program on this machine"
    BENCH_SECOND=1 bench/run.sh "$build" quick
    ;;
keep)
    cp "$work/ratios" "$here/ratios.txt"
    say "wrote bench/ratios.txt"
    ;;
full)
    echo "file_system $(findmnt -no FSTYPE -T "$work")" >>"$facts"
    mkdir -p "$raw"
    cp "$times" "$facts" "$work/writer" "$work/self_unwind" "$work/frame_check" "$work/trampoline" "$work/attach" "$work/registration" "$work/ratios" "$raw"
    . "$here/table.sh" >"$here/results.md"
    . "$here/chart.sh"
    say "wrote bench/results.md and bench/results.svg"
    env -u BENCH_DIR -u BENCH_SIZES -u BENCH_PERF_MAX bench/run.sh "$build" keep
    ;;
esac
