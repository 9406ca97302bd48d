#!/usr/bin/env bash
# make check-new-perf: the unwind tests, and every form of recording, with the perf of Debian testing, whose only unwinder is libdw.
#
# Debian testing's linux-perf goes into a folder of its own (debootstrap; $NEW_PERF_ROOT, kept for the next time).  The recordings
# are made and injected here, copied there, and printed by the new perf in a chroot.  The producers are linked statically, so that
# the copy needs no libraries.  libjitunwind is built and tested there, with the newest GCC and C library.  Needs root and the network.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:?usage: tests/new_perf.sh BUILD_DIR}
root=${NEW_PERF_ROOT:-$build/new-perf-root}
work=$build/new-perf
passed=0 failed=0

if [ ! -x "$root/usr/bin/perf" ]; then
    command -v debootstrap >/dev/null || apt-get -q -y install --no-install-recommends debootstrap
    debootstrap --variant=minbase --include=linux-perf,g++,make,libcmocka-dev testing "$root" http://deb.debian.org/debian >"$build/debootstrap.log" || {
        tail -5 "$build/debootstrap.log"
        exit 1
    }
fi
chroot "$root" sh -c 'command -v g++ make >/dev/null && [ -e /usr/include/cmocka.h ]' ||
    chroot "$root" apt-get -q -y install --no-install-recommends g++ make libcmocka-dev
chroot "$root" perf --version
chroot "$root" gcc --version | head -1

# new_script FILE ARGUMENTS...: perf script in the chroot, on a copy of what is in $work.
new_script() {
    rm -rf "$root$work" && mkdir -p "$root$work" && cp -r "$work/." "$root$work/"
    chroot "$root" perf script -i "$work/$1" "${@:2}" 2>/dev/null
}

check() { # NAME, then a command
    if "${@:2}"; then
        echo "ok $1"
        passed=$((passed + 1))
    else
        echo "not ok $1"
        failed=$((failed + 1))
    fi
}

# At least 99.5 % of the chains with a JIT frame, one a line in $1, match the pattern $2.
mostly() {
    awk -v pattern="$2" '{ all++ } $0 ~ pattern { good++ } END {
        printf "# %d of %d chains are whole\n", good, all
        exit !(all > 50 && good >= all * 0.995)
    }' "$1"
}

chains() { # names of JIT functions as a pattern; from the first one on
    awk -v names="$1" 'BEGIN { RS = ""; FS = "\n" } {
        chain = ""; on = 0
        for (i = 1; i <= NF; i++) {
            name = $i; sub(/^[ \t]*[0-9a-f]+ /, "", name)
            if (name ~ names) on = 1
            if (on) chain = chain name ";"
        }
        if (on) print chain
    }'
}

run_shape() { # SHAPE OPTION..., of perfjit inject
    rm -rf "$work" && mkdir -p "$work/dump"
    perf record -q -k mono -e cpu-clock -F 500 --call-graph dwarf,4096 -o "$work/perf.data" \
        "$build/static/unwind_shapes" "$1" "$work/dump" 1.5 >/dev/null 2>&1
    "$build/perfjit" inject -q "${@:2}" -i "$work/perf.data" -o "$work/perf.jit.data"
    cp "$build/static/unwind_shapes" "$work/"
    mkdir -p "$root$build/static" && cp "$build/static/unwind_shapes" "$root$build/static/"
    new_script perf.jit.data --no-inline -F ip,sym | chains '^(inner|solo)$' >"$build/chains.txt"
    mostly "$build/chains.txt" '^(inner;middle;outer|solo);main;.*_start;$'
}

# tinyjit without frame pointers, by who can call whom in its script (tests/producers/chain_check.c).  With two tiers, code is
# freed and its addresses are used again all the time: perf 7 has to be told (inject/merge/unwinder_reset.h).
run_tinyjit() { # OPTIONS, of perfjit inject, OPTION..., of tinyjit
    local options=$1
    shift
    rm -rf "$work" && mkdir -p "$work/dump"
    sed 's/repeat(@is_even, 1000, 1500)/repeat(@is_even, 60, 25000)/' examples/tinyjit/demo.tj >"$work/demo.tj"
    PERFJIT=dump JITDUMPDIR=$work/dump perf record -q -k mono -e cpu-clock:u -F 1000 --call-graph dwarf,16384 \
        -o "$work/perf.data" "$build/static/tinyjit" --no-frame-pointer "$@" --inline-log "$work/inlines" --seconds 3 "$work/demo.tj" >/dev/null 2>&1
    # shellcheck disable=SC2086
    "$build/perfjit" inject -q $options -i "$work/perf.data" -o "$work/perf.jit.data"
    mkdir -p "$root$build/static" && cp "$build/static/tinyjit" "$root$build/static/"
    new_script perf.jit.data --no-inline --max-stack 1000 -F ip,sym,symoff >"$build/script.txt"
    "$build/producers/chain_check" -i "$work/inlines" "$work/demo.tj" <"$build/script.txt" >"$build/chains.txt" 2>"$build/wrong.txt"
    echo "# $(cat "$build/chains.txt")"
    head -3 "$build/wrong.txt" | cut -c1-300
    awk '{ exit !($2 > 200 && ($4 + $6) * 1000 >= $2 * 995) }' "$build/chains.txt"
}

# ---- libjitunwind with the newest GCC's runtime and the newest C library ----

# The sources are built in the chroot.
build_there() {
    rm -rf "$root/perfjit" && mkdir "$root/perfjit" && tar c Makefile jitdump jitunwind perfmap injector examples tests | tar x -C "$root/perfjit"
    chroot "$root" sh -c 'cd /perfjit && make -s -j2 build/tinyjit build/producers/self_unwind build/libjitunwind.a build/libjitdump.a &&
        g++ -O2 -I. -c -o build/throwing.o tests/unit/throwing.cc &&
        for test in exceptions trouble stack registry; do
            gcc -w -O1 -D_GNU_SOURCE -I. -c -o build/test.o tests/unit/jitunwind_${test}_test.c &&
                g++ -o build/${test}_test build/test.o build/throwing.o build/libjitunwind.a build/libjitdump.a -lcmocka -pthread || exit 1
        done'
}

in_build() { # SHELL COMMAND
    chroot "$root" sh -ec "cd /perfjit/build && $1"
}

throws_there() { # OPTION..., of tinyjit
    [ "$(in_build "timeout 100 ./tinyjit --throw --repeat 200 $* throw.tj" | sort | uniq -c | sed 's/^ *//')" = "200 caught 2" ]
}

judged_there() { # ARGUMENT..., of self_unwind
    in_build "timeout 300 producers/self_unwind $*" >"$build/judged.txt" 2>&1
    sed 's/^/# /' "$build/judged.txt"
    grep -q ' 0 wrong$' "$build/judged.txt"
}

check "newest GCC: libjitunwind is built" build_there
for test in exceptions trouble stack registry; do
    check "newest GCC: $test" in_build "./${test}_test >test.log 2>&1 || { tail -5 test.log; false; }"
done
cat >"$root/perfjit/build/throw.tj" <<'END'
fn inner(n) { return native_mix(n) + 1; }
fn middle(n) { if n > 2 { return middle(n - 1) + 1; } return inner(n) * 2; }
fn main() { var i = 0; while i < 5 { i = i + 1; } return middle(i + 9); }
END
for options in '' --no-tier2 '--no-frame-pointer --no-tier2' '--no-frame-pointer --no-inline --tier2-after 3 --compact-every 1'; do
    check "newest GCC: exceptions through compiled code: $options" throws_there "$options"
done
check "newest GCC: signals" judged_there signals ../examples/tinyjit/churn.tj 3000 compact no-frame-pointer exceptions
for options in tier1 'tier1 no-frame-pointer' 'tier2 compact'; do
    check "newest GCC: each instruction, and backtrace(3): $options" judged_there steps throw.tj "$options" exceptions
done

# ---- Threads ----

# A main thread that ends, as ARGUMENTS of thread_turns say: perf 7 forgets it then (inject/merge/added_map.h).  Every sample is judged by
# the program's own log; what is no JIT code stays as it was.
run_turns() { # RECORD_OPTIONS INJECT_OPTIONS ARGUMENT...
    local options=$1 inject_options=$2 page
    shift 2
    rm -rf "$work" && mkdir -p "$work/dump"
    PERFJIT=dump JITDUMPDIR=$work/dump perf record -q -k mono -e cpu-clock -F 2000 $options -o "$work/perf.data" \
        "$build/static/thread_turns" -s 0.5 "$@" "$work/truth" >/dev/null 2>&1
    # shellcheck disable=SC2086
    "$build/perfjit" inject -q $inject_options -i "$work/perf.data" -o "$work/perf.jit.data"
    mkdir -p "$root$build/static" && cp "$build/static/thread_turns" "$root$build/static/"
    new_script perf.jit.data -G --no-inline --ns -F pid,tid,time,ip,sym |
        "$build/producers/truth_check" -m 1 "$work/truth" >"$build/score.txt" 2>"$build/wrong.txt"
    echo "# $(paste -sd';' "$build/score.txt")"
    head -3 "$build/wrong.txt"
    page=$(sed -n 's/^# arena \(.*\)... .*/\1/p' "$work/truth")
    for form in perf.data perf.jit.data; do
        new_script $form -G --no-inline --ns -F comm,pid,tid,time,ip,sym,symoff,dso | grep -v " $page[0-9a-f]\{3\} " >"$build/$form.txt"
    done
    diff "$build/perf.data.txt" "$build/perf.jit.data.txt" | head -3
    cmp -s "$build/perf.data.txt" "$build/perf.jit.data.txt" &&
        grep -qE '^samples [0-9]{3,} .* wrong 0 missing 0 ' "$build/score.txt"
}

threads_are_known() { # RECORD_OPTIONS INJECT_OPTIONS
    check "new perf knows the threads of a process: $*" run_turns "$@"
    check "new perf knows them when the main thread has ended: $*" run_turns "$@" -e
    check "new perf knows those that begin after that: $*" run_turns "$@" -e -l
}

threads_are_known -g ''
threads_are_known '--call-graph dwarf,1024' '--stacks keep'
threads_are_known '--call-graph dwarf,1024' '--stacks unwind'

# ---- What the new perf records: build-ids in the maps, COMPRESSED2, more in every attribute ----

# new_perf COMMAND...: perf in the chroot with the kernel's events, which it finds in sysfs.
new_perf() {
    unshare -m sh -c 'mount -t sysfs sysfs "$0/sys" && mount -t proc proc "$0/proc" && exec chroot "$0" perf "$@"' "$root" "$@"
}

named() { # FILE, printed by perf script
    [ "$(grep -cE ' (inner|solo)$' "$1")" -gt 50 ]
}

# Recorded by the new perf with OPTIONS, as a file and as a stream; injected here into both; read by the new perf.  Streams are
# read by the perf of this machine too, whose attributes are shorter, and so are files.
run_new_form() { # OPTION...
    rm -rf "$work" "$root$work" && mkdir -p "$work" "$root$work/dump"
    cp "$build/static/unwind_shapes" "$root$work/"
    local from to
    new_perf record --no-bpf-event -q -k mono -e cpu-clock -F 2000 "$@" -o "$work/in.data" \
        "$work/unwind_shapes" frame-first "$work/dump" 0.5 >/dev/null 2>&1 || return 1
    [[ " $* " == *" --threads "* ]] || new_perf record --no-bpf-event -q -k mono -e cpu-clock -F 2000 "$@" -o - \
        "$work/unwind_shapes" frame-first "$work/dump" 0.5 2>/dev/null >"$root$work/in.stream" || return 1
    cp -r "$root$work/." "$work/"
    rm -r "$work/dump" && mv "$root$work/dump" "$work/" || return 1 # the very files: a copy need not be the process's
    for from in "$work"/in.*; do
        "$build/perfjit" inject -q -i "$from" -o "$work/out.data" || return 1
        "$build/perfjit" inject -q -i "$from" -o - --dso-dir "$work/out.data.dso" >"$work/out.stream" || return 1
        cp -r "$work/." "$root$work/"
        new_perf script -i "$work/out.data" --no-inline -F ip,sym >"$build/script.txt" 2>"$build/script.err" || return 1
        named "$build/script.txt" || return 1
        perf script -i "$work/out.data" --no-inline -F ip,sym >"$build/script.txt" 2>"$build/script.err" || return 1
        named "$build/script.txt" || return 1
        for to in new_perf perf; do
            cat "$work/out.stream" | $to script -i - --no-inline -F ip,sym >"$build/script.txt" 2>"$build/script.err" || return 1
            named "$build/script.txt" || return 1
        done
        ! new_perf report -D -i "$work/out.data" 2>&1 >/dev/null | grep -iE 'error|corrupt|out of order' || return 1
    done
}

# What it makes of a stream: a file with its attributes behind the records, written over its build-ids.
run_new_inject() {
    run_new_form || return 1
    new_perf inject -b -i - -o "$work/inject.data" <"$work/in.stream" >/dev/null 2>&1
    cp "$root$work/inject.data" "$work/"
    "$build/perfjit" inject -q -i "$work/inject.data" -o "$work/out.data"
    [ $? -eq 3 ] || return 1 # the build-ids are lost, and that is told
    cp -r "$work/." "$root$work/"
    new_perf script -i "$work/out.data" --no-inline -F ip,sym >"$build/script.txt" 2>/dev/null || return 1
    named "$build/script.txt"
}

for options in '' -z --no-buildid-mmap -g '-e task-clock' --threads '--threads -z' -a; do
    check "new perf records and reads: ${options:-no options}" run_new_form $options
done
check "new perf injects a stream into a file with its attributes at the end" run_new_inject

# By perf, in both layouts, and by perfjit.
settings=('--stacks keep --layout image' '--stacks keep --layout function' '--stacks unwind --inlines dwarf')
for setting in "${settings[@]}"; do
    check "new perf, whole stacks of tinyjit without frame pointers: $setting" run_tinyjit "$setting" --no-tier2
    check "new perf, whole stacks of tinyjit where addresses are used again: $setting" run_tinyjit "$setting"
done

for shape in frame-first header-first mapped-size-0 absolute-header one-blob blobs-before blobs-swapped; do
    for setting in "${settings[@]}"; do
        # shellcheck disable=SC2086
        check "new perf, whole stacks of $shape: $setting" run_shape $shape $setting
    done
done
# ---- Every form of recording: the tables of cli/forms.bats and other_forms.bats, recorded here and read by the new perf ----

# Outside of the chroot, with its own libraries, so that it finds the programs that were recorded.  It looks for addr2line beside
# itself, where one is that lacks its libraries here: this machine's comes first.
new_reader() {
    local top
    top=$(realpath "$root")
    mkdir -p "$build/new-perf-programs"
    ln -sf "$(command -v addr2line)" "$build/new-perf-programs/addr2line"
    printf '#!/bin/sh\nPERF_EXEC_PATH=%s exec %s --library-path %s %s "$@"\n' "$build/new-perf-programs" "$(echo "$top"/lib*/ld-linux-*.so.*)" \
        "$(echo "$top"/usr/lib/*-linux-gnu)" "$top/usr/bin/perf"
}

new_reader >"$build/new-perf-reader"
chmod +x "$build/new-perf-reader"
BUILD=$build READER=$build/new-perf-reader bats --tap tests/cli/forms.bats tests/cli/other_forms.bats >"$build/forms.txt" || true
grep -v '^1\.\.' "$build/forms.txt"
passed=$((passed + $(grep -c '^ok ' "$build/forms.txt")))
failed=$((failed + $(grep -c '^not ok ' "$build/forms.txt")))

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
