#!/usr/bin/env bats
# perfjit inject as it is by default, --stacks unwind: user stacks become call chains, which perf prints without unwinding.
#
# Judges: exact_chains and chain_check as in stacks.bats, and perf's own unwinding of the same recording (--stacks keep), sample by
# sample.
load helper
load native_programs

R=(perf record -q -k mono -F 1000)

setup_file() {
    require_perf || return 0
    cd "$BATS_FILE_TMPDIR" || return
    known_script 31 >known.tj
    known_script 700 >deep.tj
    sed 's/repeat(@is_even, 1000, 1500)/repeat(@is_even, 60, 25000)/' "$here/../../examples/tinyjit/demo.tj" >demo.tj
}

setup() {
    require_perf
    cd "$BATS_FILE_TMPDIR"
}

# main -> a -> b -> c -> down, $1 + 1 times -> spin -> native_mix
known_script() {
    cat <<END
fn spin(n) {
    var i = 0;
    while i < n { i = i + 1; if i % 64 == 0 { native_mix(i); } }
    return i;
}
fn down(n) { if n == 0 { return spin(200000); } return 1 + down(n - 1); }
fn c(x) { return 2 * down(x) + 1; }
fn b(x) { var y = x; y = y + c(x); return y; }
fn a() { return 1 + (2 + b($1)); }
fn main() { return a(); }
END
}

# tinyjit NAME SCRIPT SECONDS RECORD_OPTION... -- TINYJIT_OPTION...: NAME.data
tinyjit() {
    recording "$1" record_tinyjit "$@"
}

record_tinyjit() {
    local name=$1 script=$2 seconds=$3 options=()
    shift 3
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    shift
    PERFJIT=dump JITDUMPDIR=$PWD "${R[@]}" -o "$name.data" "${options[@]}" \
        "$BUILD/tinyjit" --no-frame-pointer "$@" --seconds "$seconds" "$script" >/dev/null 2>"$name.log" ||
        { cat "$name.log" >&2; return 1; }
}

# record_native NAME CALL_GRAPH GCC_OPTION...: NAME.data, of the program NAME.c.
record_native() {
    native "$1" "${@:3}"
    "${R[@]}" -e cpu-clock:u --call-graph "$2" -o "$1.data" "./$1"
}

# both NAME: NAME.keep.data and NAME.unwind.data
both() { # inlined calls, which perf --no-inline leaves out, are those of inlined_frames.bats
    perfjit inject -q --stacks keep -i "$1.data" -o "$1.keep.data"
    perfjit inject --inlines dwarf -i "$1.data" -o "$1.unwind.data" 2>"$1.summary" || { cat "$1.summary" >&2; return 1; }
    echo "# $(grep -F 'stacks unwound' "$1.summary")" >&3
}

# Each sample's chain on a line, behind its thread, time and event: names and offsets.
chains() {
    perf script --no-inline --max-stack 2000 -F tid,time,event,ip,sym,symoff --ns -i "$1" 2>/dev/null |
        awk 'BEGIN { RS = ""; FS = "\n" } { line = $1; for (i = 2; i <= NF; i++) { sub(/^[ \t]*[0-9a-f]+ /, "", $i); line = line ";" $i } print line }'
}

# paragraphs FILE: of chains' output, a frame on a line.
paragraphs() {
    sed 's/;/\n/g; s/$/\n/' "$1"
}

# begins_as_perf OURS PERFS: beside perf's own unwinding of the same recording (no_frame_lost.awk has the rule).  Few chains may have a
# caller that perf leaves out, at _fini say.
begins_as_perf() {
    [ "$(wc -l <"$1")" -ge 50 ]
    awk -v ours=<(paragraphs "$1") -v most_others=2 -f "$here/no_frame_lost.awk" <(paragraphs "$2") >&3
}

same_as_perf() {
    both "$1"
    chains "$1.keep.data" >"$1.keep.txt"
    chains "$1.unwind.data" >"$1.unwind.txt"
    begins_as_perf "$1.unwind.txt" "$1.keep.txt"
    # None of them was unwound by perf: there is nothing left to do it by.
    perf script --header-only -i "$1.unwind.data" 2>/dev/null >"$1.header"
    ! grep -E 'STACK_USER|REGS_USER' "$1.header" || complain "it is there"
    grep -q CALLCHAIN "$1.header"
}

# Every chain with compiled code is the one that the script allows, to its last frame.
all_right() { # NAME SCRIPT [LEAST]: the copies of 64 KiB are more than perf's buffer has room for, if it has to wait
    local words
    read -ra words <<<"$(tinyjit_chains "$1.unwind.data" | "$BUILD/producers/chain_check" -i "$1.inlines" "$2")"
    echo "# $1: ${words[*]}" >&3
    [ "${words[1]}" -gt "${3:-200}" ] && [ "${words[3]}" -eq "${words[1]}" ]
}

known() {
    tinyjit known known.tj 0.5 -e cpu-clock:u --call-graph dwarf,8192 -- --no-inline --inline-log known.inlines
}

# bats test_tags=both
@test "unwound: tinyjit's known chain, whole in every sample, 31 and 700 deep" {
    known
    same_as_perf known
    all_right known known.tj
    tinyjit deep deep.tj 0.2 -e cpu-clock:u --call-graph dwarf,65528 -- --no-inline --inline-log deep.inlines
    same_as_perf deep
    all_right deep deep.tj 50
    [ "$(awk -F';' '{ if (NF > most) most = NF } END { print most }' deep.unwind.txt)" -gt 700 ]
}

@test "unwound: where addresses are used again, without a trick to make perf forget" {
    tinyjit demo demo.tj 0.5 -e cpu-clock:u --call-graph dwarf,16384 -- --inline-log demo.inlines
    same_as_perf demo
    all_right demo demo.tj
    perf script --show-task-events -i demo.unwind.data 2>/dev/null | grep PERF_RECORD_FORK >forks.txt || true
    [ ! -s forks.txt ]
}

# perf loses records where its buffers are full.  The library's text then belongs to the mapping of the whole file, which is data.
# bats test_tags=live
@test "unwound: through a library of which the record of its text was lost" {
    local line
    record_tinyjit lost known.tj 0.5 -e cpu-clock:u --call-graph dwarf,16384 -- --no-inline
    line=$(perf script -D -i lost.data 2>/dev/null | grep 'PERF_RECORD_MMAP2.* r-xp .*/libc\.so') # TIME OFFSET [SIZE]: ...
    read -r _ line _ <<<"$line"
    printf '\0\020\0\0\0\0\0\0' | dd of=lost.data bs=1 seek=$((line + 16)) conv=notrunc status=none # it begins at 4096
    same_as_perf lost
    [ "$(grep -c ';main+.*;__libc_start_main.*;_start+' lost.unwind.txt)" -gt $(($(wc -l <lost.unwind.txt) * 9 / 10)) ]
}

record_stream() {
    PERFJIT=dump JITDUMPDIR=$PWD "${R[@]}" -e cpu-clock:u --call-graph dwarf,8192 -o - \
        "$BUILD/tinyjit" --no-frame-pointer --no-inline --seconds 0.3 known.tj 2>stream.log >stream.data
}

# bats test_tags=both
@test "unwound: a compressed recording, a stream, a directory, one by thread" {
    local data
    tinyjit packed known.tj 0.3 -e cpu-clock:u --call-graph dwarf,8192 -z -- --no-inline
    tinyjit thread known.tj 0.3 -e cpu-clock --call-graph dwarf,8192 --per-thread -T -- --no-inline
    tinyjit folder known.tj 0.3 -e cpu-clock:u --call-graph dwarf,8192 --threads -- --no-inline
    recording stream record_stream
    for data in packed thread folder stream; do same_as_perf $data; done
    perfjit inject -q --stacks unwind -i stream.data -o - >stream.out
    perf script -i - --no-inline -F ip,sym,symoff <stream.out 2>/dev/null | sed 's/^[ \t]*[0-9a-f]* //' >stream.txt
    [ "$(grep -c '^tj::down' stream.txt)" -eq "$(tr ';' '\n' <stream.unwind.txt | grep -c '^tj::down')" ]
}

@test "unwound: several events, with stacks and without, in groups, with everything that a sample can hold" {
    tinyjit events known.tj 0.3 -e cpu-clock/call-graph=dwarf,stack-size=8192/ -e task-clock/call-graph=no/ \
        -e page-faults/call-graph=fp/ -- --no-inline
    tinyjit group known.tj 0.3 -e '{cpu-clock,task-clock}:S' --call-graph dwarf,8192 -- --no-inline
    tinyjit fields known.tj 0.3 -e cpu-clock:u -d --phys-data -W --transaction --call-graph dwarf,8192 -- --no-inline
    tinyjit raw known.tj 0.3 -m 2048 -e raw_syscalls:sys_enter -e cpu-clock --call-graph dwarf,8192 -- --no-inline
    # All else that a sample holds is as it was.
    for data in events:period group:period fields:period,addr,weight,phys_addr raw:period,trace; do
        same_as_perf ${data%:*}
        for form in keep unwind; do
            perf script -G -F "tid,time,event,${data#*:}" --ns -i ${data%:*}.$form.data 2>/dev/null >${data%:*}.$form.fields
        done
        same ${data%:*}.unwind.fields ${data%:*}.keep.fields
    done
}

# The lines of callers are those of the calls: perf looks them up one byte in front of a return address.
@test "unwound: the lines of callers are the calls', as after perf's unwinding" {
    [ -e known.unwind.data ] || { known; both known; }
    for form in keep unwind; do # not of clock() and the vdso: perf has the vdso's tables only if it happens to have saved one
        perf script --no-inline -F ip,sym,symoff,dso,srcline -i known.$form.data 2>/dev/null | awk 'BEGIN { RS = ""; ORS = "\n\n" } !/\[vdso\]/' |
            sed -E 's/^[ \t]*[0-9a-f]* //; s/ \([^ ()]*\)$//' | head -2000 >known.$form.lines
    done
    grep -q 'known.tj:[0-9]' known.unwind.lines
    same known.unwind.lines known.keep.lines
}

# bats test_tags=both
@test "unwound: a program without JIT code, its signal handlers, and the vdso" {
    cat >plain.c <<'END'
#include <signal.h>
#include <time.h>
static volatile long sum;
static void handler(int number) { for (int i = 0; i < 20000; i++) sum += i ^ number; }
static long __attribute__((noinline)) clock_sum(void)
{
    struct timespec now;
    for (int i = 0; i < 500; i++) { clock_gettime(CLOCK_MONOTONIC, &now); sum += now.tv_nsec; }
    return sum;
}
static long __attribute__((noinline)) raiser(int n) { if (n == 0) { raise(SIGUSR1); return clock_sum(); } long below = raiser(n - 1); sum += below; return below ^ sum; }
int main(int argc, char **argv)
{
    static char room[65536];
    stack_t own = {.ss_sp = room, .ss_size = sizeof room};
    struct sigaction action = {.sa_handler = handler, .sa_flags = argc > 1 ? SA_ONSTACK : 0};
    sigaltstack(&own, 0);
    sigaction(SIGUSR1, &action, 0);
    while (clock() < CLOCKS_PER_SEC / 2) raiser(5);
    return argv[0] == 0;
}
END
    recording signals record_native plain dwarf,8192 -O2 -fomit-frame-pointer
    perfjit inject --stacks unwind -i plain.data -o plain.unwind.data 2>plain.summary
    chains plain.data >plain.keep.txt
    chains plain.unwind.data >plain.unwind.txt
    begins_as_perf plain.unwind.txt plain.keep.txt
    [ "$(grep -c 'handler.*raiser.*main' plain.unwind.txt)" -gt 20 ]
    [ "$(grep -c '_start+0x[0-9a-f]*$' plain.unwind.txt)" -ge $(($(wc -l <plain.unwind.txt) - 5)) ]
}

# As glibc's __memmove_chk runs into memmove: the nops between the two are in no table.  libdw takes them for code that keeps a
# frame pointer, which this program has none of.
@test "unwound: padding that is run through, in front of a function" {
    [ "$(uname -m)" = x86_64 ] || skip "the code is x86-64's"
    cat >padded.c <<'END'
#include <stdlib.h>
#include <time.h>
long first(long rounds);
__asm__(".text\n.globl first\n.type first, @function\nfirst: .cfi_startproc\n mov %rdi, %rax\n.cfi_endproc\n.size first, .-first\n"
        "again: .rept 44\n nop\n .endr\n .byte 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0\n xchg %ax, %ax\n"
        ".type second, @function\nsecond: .cfi_startproc\n dec %rax\n jnz again\n ret\n.cfi_endproc\n.size second, .-second\n");
static long __attribute__((noipa)) caller(long n) { return first(n) + 1; }
int main(void)
{
    long sum = 0;
    while (clock() < CLOCKS_PER_SEC / 2) sum += caller(100000);
    exit(sum == 1);
}
END
    recording padding record_native padded dwarf,4096 -O2 -fomit-frame-pointer
    perfjit inject --stacks unwind -i padded.data -o padded.unwind.data 2>padded.summary
    perf script --no-inline -F ip,sym -i padded.unwind.data 2>/dev/null |
        awk 'BEGIN { RS = "" } { print $2, $4, $6 }' | sort | uniq -c >padded.chains
    cat padded.chains
    [ "$(awk '$2 == "again" || $2 == "first" { count += $1 } END { print count + 0 }' padded.chains)" -gt 50 ]
    ! grep -E ' (first|again|second) ' padded.chains | grep -v ' caller main$' || complain "a caller is missing"
}

record_one_way() {
    "${R[@]}" -e cpu-clock:u --call-graph dwarf,4096 -o none.data "$BUILD/producers/one_way" 0.1 >/dev/null
}

# A runtime that was not told to log is an error by default, as in all recordings.
@test "unwound: without JIT code only by --stacks unwind, and stacks of other machines are left to perf" {
    tinyjit other known.tj 0.1 -e cpu-clock:u --call-graph dwarf,8192 -- --no-inline
    recording no-jit record_one_way
    run --separate-stderr perfjit inject -i none.data -o none.unwind.data
    exits 1
    says 'no jitdump found'
    [ ! -e none.unwind.data ]
    perfjit inject --stacks unwind -i none.data -o none.unwind.data
    LC_ALL=C sed -i 's/x86_64\x00/mips64\x00/g' other.data
    run --separate-stderr perfjit inject --stacks unwind -i other.data -o other.unwind.data
    exits 1
    says "stacks of this machine can't be unwound here"
    mkdir a b
    perfjit inject -q -i other.data -o a/out.data
    perfjit inject -q --stacks keep -i other.data -o b/out.data
    cmp <(LC_ALL=C sed 's|/a/out|/b/out|g' a/out.data) b/out.data
}

@test "unwound: what the copy cuts is told, with the size that would do, and the rest of the chain is right" {
    tinyjit small known.tj 0.3 -e cpu-clock:u --call-graph dwarf,1024 -- --no-inline
    both small
    grep -E '[1-9][0-9]* cut by the size of the copy' small.summary
    chains small.keep.data >small.keep.txt
    chains small.unwind.data >small.unwind.txt
    begins_as_perf small.unwind.txt small.keep.txt
}

# f1 calls f2 and so on, and each spins: the innermost function says what the whole chain must be.
@test "unwound: --stitch takes outer frames from the thread's last whole stack, and no wrong ones" {
    {
        echo 'static volatile long sum; static void spin(void) { for (int i = 0; i < 3000; i++) sum += i; }'
        echo '#include <time.h>'
        echo '__attribute__((noipa)) long f61(void) { return 1; }'
        for i in $(seq 60 -1 1); do
            echo "__attribute__((noipa)) long f$i(void) { volatile char room[120]; room[0] = 1; spin(); long below = f$((i + 1))(); return below + room[0]; }"
        done
        echo 'int main(void) { long all = 0; while (clock() < CLOCKS_PER_SEC) all += f1(); return all == 0; }'
    } >ladder.c
    recording ladder record_native ladder dwarf,4096 -O1 -fomit-frame-pointer
    perfjit inject --stacks unwind -i ladder.data -o ladder.cut.data 2>ladder.cut.summary
    perfjit inject --stacks unwind --stitch -i ladder.data -o ladder.whole.data 2>ladder.whole.summary
    for form in cut whole; do
        chains ladder.$form.data | sed 's/+0x[0-9a-f]*//g; s/^[^;]*;//; s/^spin;//' | grep '^f[0-9]' >ladder.$form.txt
        awk -F';' '{ want = ""; for (i = substr($1, 2); i > 0; i--) want = want "f" i ";"; want = want "main;"
                     if (index($0, want) == 1 && /;_start$/) whole++; else if (index(want, $0 ";") == 1 || index($0, want) == 1) cut++; else { wrong++; print } }
            END { print "whole", whole + 0, "cut", cut + 0, "wrong", wrong + 0 }' ladder.$form.txt >ladder.$form.counts
        tail -1 ladder.$form.counts | sed "s/^/# $form: /" >&3
        [[ "$(tail -1 ladder.$form.counts)" == *"wrong 0" ]]
    done
    read -r _ before _ cut _ <ladder.cut.counts
    read -r _ after _ <ladder.whole.counts
    [ "$cut" -gt 50 ]
    [ "$after" -gt $((before + cut / 5)) ]
    grep 'of the whole ones were cut' ladder.whole.summary
    grep -E -- '--call-graph dwarf,1[0-9]{4}|--call-graph dwarf,[89][0-9]{3}' ladder.cut.summary
}

# No whole stack has a frame that is larger than the copy.  Its caller is known by what else it calls from there, but not where
# from if it could be one of two places.
@test "unwound: --stitch knows who called a frame that is larger than the copy, if there is one call of it" {
    cat >large.c <<'END'
#include <time.h>
static volatile long sum;
#define FUNCTION __attribute__((noipa)) static long
FUNCTION spin(void) { for (int i = 0; i < 3000; i++) sum += i; return sum; }
FUNCTION small(void) { return spin() + 1; }
FUNCTION large(void) { volatile char room[9000]; room[0] = 1; return spin() + room[0]; }
FUNCTION twin(void) { volatile char room[9000]; room[0] = 1; return spin() + room[0]; }
FUNCTION target(void) { volatile char room[9000]; room[0] = 1; return spin() + room[0]; }
FUNCTION hop(void) { return target(); }
FUNCTION once(void) { return small() + large(); }
FUNCTION twice(void) { volatile char pad[200]; pad[0] = 1; return small() + twin() + small() + twin() + pad[0]; }
FUNCTION jumps(void) { volatile char pad[400]; pad[0] = 1; return small() + target() + hop() + pad[0]; }
int main(void) { long all = 0; while (clock() < CLOCKS_PER_SEC) all += once() + twice() + jumps(); return all == 0; }
END
    recording large record_native large dwarf,4096 -O2 -fomit-frame-pointer
    perfjit inject -q --stacks unwind -i large.data -o large.cut.data
    perfjit inject -q --stacks unwind --stitch -i large.data -o large.whole.data
    chains large.cut.data | sed 's/+0x[0-9a-f]*//g; s/^[^;]*;//; s/^spin;//' >large.cut.txt
    chains large.whole.data | sed 's/+0x[0-9a-f]*//g; s/^[^;]*;//; s/^spin;//' >large.whole.txt
    sort large.whole.txt | uniq -c | sed 's/^/# /' >&3
    [ "$(grep -c '^large$' large.cut.txt)" -gt 50 ]
    # Chains are in order of time; until once is seen with small, nothing tells whose callee large is.
    sed '1,/^small;once;/d' large.whole.txt >large.known.txt
    [ "$(grep -c '^large;once;main;.*_start$' large.known.txt)" -gt 30 ]
    [ "$(grep -c '^large$' large.known.txt)" = 0 ]
    [ "$(grep -c '^small;.*_start$' large.whole.txt)" -gt 50 ]
    [ "$(grep -cE '^(twin|target)$' large.whole.txt)" -gt 50 ]
    [ "$(grep -c '^target;' large.whole.txt)" -le "$(grep -c '^target;' large.cut.txt)" ] # not in front of its frame
    [ "$(grep -c '^twin;' large.whole.txt)" -le "$(grep -c '^twin;' large.cut.txt)" ]
    [ "$(grep '^large;' large.whole.txt | grep -vc '^large;once;main;')" = 0 ]
    diff <(grep '^large;once' large.whole.txt | sort -u | sed 's/^[^;]*;//') <(grep '^small;once' large.whole.txt | sort -u | sed 's/^[^;]*;//')
}
