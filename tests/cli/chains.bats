#!/usr/bin/env bats
# perfjit check --chains: where call chains end, and why.
#
# unwind_shapes runs main -> outer -> middle -> inner, and main -> solo, with tables that are wrong for middle in a known way.
# The report must say that all chains through middle end there, for that reason, and nothing about the others.
load helper
load native_programs

R=(perf record -q -k mono -F 1000)

setup() {
    require_perf
    cd "$BATS_TEST_TMPDIR"
}

# shape NAME [CALL_GRAPH]: NAME.data, of unwind_shapes NAME.  A recording with another call graph is another one.
shape() {
    recording "$1${2:+-${2/,/-}}" record_shape "$1" "${2:-dwarf,2048}"
}

record_shape() { # NAME CALL_GRAPH
    mkdir -p dump
    "${R[@]}" -e cpu-clock --call-graph "$2" -o "$1.data" "$BUILD/producers/unwind_shapes" "$1" dump 0.3 >/dev/null 2>&1
}

# record_native NAME RECORD_OPTION... -- GCC_OPTION...: NAME.data, of the program NAME.c.
record_native() {
    local name=$1 options=()
    shift
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    native "$name" "${@:2}"
    "${R[@]}" -e cpu-clock:u "${options[@]}" -o "$name.data" "./$name"
}

# checked STATUS ARGUMENT...: text and JSON have this status, and JSON says so, too.  Leaves them in text and json.
checked() {
    local wanted=$1
    shift
    run --separate-stderr perfjit check --chains "$@"
    exits "$wanted"
    printf '%s\n' "$output" >text
    run --separate-stderr perfjit check --chains --json "$@"
    exits "$wanted"
    printf '%s\n' "$output" >json
    jq -s -e "length == 1 and .[0].status == $wanted" json >/dev/null || complain "no JSON: $output"
    echo "# $* $(jq -c '.profile.chains | [.total, .whole, .cut, .early]' json) (all, whole, cut, early)" >&3
    is '.profile.chains | .total == .whole + .cut + .early + .too_long + .not_read and .total > 50'
    is '.profile.chains | ([.places[].early] | add) == .early and ([.places[].ends.cut // 0] | add) == .cut'
}

is() {
    jq -e "$1" json >/dev/null || complain "not so: $1, in: $(jq -c .profile.chains json)"
}

# middle_ends END: all chains with middle in them end there with END, and no others early.  Samples in middle's own first or last
# instruction are left out: their return address is at the stack pointer, whatever a table says.  The first chain ends behind the
# only call in middle, unless it begins there itself.
middle_ends() {
    is ".profile.chains.places[0] | .function == \"middle\" and .early > 20 and .early + .through == .chains and .ends == {\"$1\": .early}"
    is '.profile.chains.places | .[0].through <= .[0].chains - (.[] | select(.function == "inner").chains)'
    is '.profile.chains.early == .profile.chains.places[0].early'
    is '.profile.chains.places[] | select(.function == "solo") | .early == 0 and .chains > 20 and .through == .chains'
    is '.profile.chains.places | .[0].first_offset == 30 or .[0].chains > (.[] | select(.function == "inner").chains)'
}

@test "chains: a CFA that is 16 off in the dump is the first line, and status 3" {
    for name in high-cfa low-cfa zero; do
        shape $name
        checked 3 $name.data
        middle_ends no-code
        is '.profile.sound == false and .profile.chains.places[0].wrong_table'
        is '.profile.chains.remedies | length == 1 and .[0].end == "no-code"'
        [[ "$(sed -n 3p text)" == *" end in JIT function middle: its table leads to an address where no code is, first at +0x1e" ]] || complain "$(cat text)"
        [[ "$(tail -1 text)" == *" call chains are ended by wrong unwind tables of JIT code" ]] || complain "$(cat text)"
    done
    # Without the option the output is as before.
    run --separate-stderr perfjit check high-cfa.data
    exits 0
    run --separate-stderr perfjit check --json high-cfa.data
    jq -e '.profile | has("chains") | not' <<<"$output"
}

@test "chains: one that goes on behind no call, and then nowhere, is that table's fault, not the last one's" {
    shape astray
    checked 3 astray.data
    middle_ends no-call
    grep -q 'middle: its table leads to an address that is not behind a call, and nothing leads on from there, first at' text
}

# hide_frame NAME: in NAME's dump middle's code begins with `jmp *%rax`, behind which nobody can follow it.
hide_frame() {
    perl -0777 -pi -e 's/(middle\0)\x53\x48/$1\xff\xe0/ or die "no such code"' dump/jit-*.dump
}

@test "chains: a function without a table is followed by its code; without that it is told, and no error; nor is a copy that is too short" {
    shape bare
    checked 0 bare.data
    is '.profile.chains | .early == 0 and .unproven == 0 and .whole == .total'
    is '.profile.chains.places[] | select(.function == "outer") | .chains > 20 and .chains == .through'
    hide_frame
    checked 0 bare.data
    middle_ends no-table
    is '.profile.sound and .profile.chains.places[0].wrong_table == false'
    [[ "$(sed -n 3p text)" == *" end in JIT function middle: no table, and no frame pointer that leads on, first at +0x1e" ]] || complain "$(cat text)"
    # 32 bytes of inner's frame, and not all of middle's 48, unless the sample is in inner's first or last instructions.
    shape frame-first dwarf,64
    checked 0 frame-first.data
    is '.profile.chains.places[] | select(.function == "middle") | .early == 0 and .ends.cut > .chains / 2 and .ends.cut + .through == .chains'
    is '.profile.chains.early == 0'
    grep -qE 'end in JIT function middle: the copy of the stack ends$' text
}

@test "chains: a pointer to a function, on top of the stack of one without a table, is no return address" {
    shape pointer
    hide_frame
    checked 0 pointer.data
    is '.profile.chains.places[0] | .function == "middle" and .chains > 20 and .early + .through == .chains and .early > 20 * .through'
    is '.profile.chains.places[0].ends == {"no-table": .profile.chains.early}'
    is '.profile.chains.places | all(.file != "//anon")'
}

@test "chains: with right tables, and where frame pointers do without, nothing is said of any place" {
    for name in frame-first one-blob none; do
        shape $name
        checked 0 $name.data
        is '.profile.chains | .early == 0 and .whole > 50 and .remedies == []'
        is '.profile.chains.places[] | select(.function) | .through == .chains'
        ! grep 'end in JIT function' text || complain "it is there"
        run --separate-stderr perfjit check --chains -v $name.data
        grep -qE '^ +0 of [0-9]+ end in JIT function middle$' <<<"$output"
    done
}

@test "chains: as many are whole and cut as perfjit inject --stacks unwind says" {
    for name in high-cfa bare frame-first; do
        shape $name dwarf,1024
        perfjit inject --stacks unwind -i $name.data -o out.data 2>summary || [ $? = 3 ]
        perfjit check --chains --json $name.data >json || [ $? = 3 ]
        grep -F 'stacks unwound' summary >line
        jq -r '.profile.chains | "perfjit: \(.total) stacks unwound: \(.whole) whole, \(.cut) cut by the size of the copy, \(.early) ended at code without usable tables"' json |
            same /dev/stdin line
    done
}

@test "chains: what ends in memory where nothing was logged is said to, and not of a file" {
    shape bare
    rm -r dump
    run --separate-stderr perfjit inject --stacks unwind -i bare.data -o out.data
    exits 3
    grep -qE '^perfjit: +[0-9]+ at code in memory \(//anon\): no function is known there$' <<<"$stderr" || complain "$stderr"
}

record_many() {
    PERFJIT=dump JITDUMPDIR=$PWD "${R[@]}" -e cpu-clock:u --call-graph dwarf,8 -o many.data \
        "$BUILD/tinyjit" --no-frame-pointer --no-inline --seconds 0.5 many.tj >/dev/null 2>&1
}

@test "chains: ten places in the text, all with -v" {
    {
        for i in $(seq 14); do
            echo "fn f$i(n) { var i = 0; while i < n { i = i + 1; } if n > 1 { return i + f$((i + 1))(n); } return i; }"
        done
        echo 'fn f15(n) { return n; }'
        echo 'fn main() { return f1(3000); }'
    } >many.tj
    recording many record_many
    checked 0 many.data
    [ "$(grep -c ' end in ' text)" -eq 10 ] || complain "$(cat text)"
    local all
    all=$(jq '[.profile.chains.places[] | select(.early > 0 or .ends.cut > 0)] | length' json)
    [ "$all" -ge 14 ]
    grep -q " $((all - 10)) more functions and files: -v" text
    run --separate-stderr perfjit check --chains -v many.data
    [ "$(grep -c ' end in ' <<<"$output")" -eq "$(jq '.profile.chains.places | length' json)" ]
    # Worst first.
    is '[.profile.chains.places[] | .ends.cut // 0] | . == (sort | reverse)'
}

@test "chains: a program without tables is followed by its code" {
    cat >plain.c <<'END'
#include <time.h>
static volatile long sum;
__attribute__((noipa)) void spin(long n) { for (long i = 0; i < n; i++) sum += i; }
__attribute__((noipa)) void caller(long n) { volatile char room[200]; room[0] = 1; spin(n); sum += room[0]; }
int main(void) { while (clock() < CLOCKS_PER_SEC / 4) caller(100000); return 0; }
END
    recording without-tables record_native plain --call-graph dwarf,4096 -- -O2 -fomit-frame-pointer -fno-asynchronous-unwind-tables -fcf-protection=none
    checked 0 plain.data
    is '.profile.chains.places[0] | (.file | endswith("/plain")) and .chains > 50 and .early == 0 and .wrong_table == false'
    is '.profile.chains | .whole == .total'
}

# The handler's stack ends where no copy could go on, however large.
@test "chains: one that goes on in another stack is told so, and not that the copy is too short" {
    cat >apart.c <<'END'
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
static volatile long sum;
static void handler(int number) { for (int i = 0; i < 100000; i++) sum += i ^ number; }
int main(void)
{
    enum { BYTES = 32768, GUARD = 4096 };
    char *room = mmap(0, BYTES + GUARD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t own = {.ss_sp = room, .ss_size = BYTES};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    mprotect(room + BYTES, GUARD, PROT_NONE);
    sigaltstack(&own, 0);
    sigaction(SIGUSR1, &action, 0);
    while (clock() < CLOCKS_PER_SEC / 4) raise(SIGUSR1);
    return 0;
}
END
    recording signal-stack record_native apart --call-graph dwarf,16384 -- -O2
    checked 0 apart.data
    is '[.profile.chains.places[].ends.outside // 0] | add > 50'
    is '.profile.chains.cut < 20'
    grep -qE "end in /.*: its caller's frame is not in this stack" text
    is '.profile.chains.needed_bytes < 65536'
    perfjit inject --stacks unwind -i apart.data -o out.data 2>summary
    grep -E "^perfjit:     [0-9]{2,} at /.*: its caller's frame is not in this stack" summary
    ! grep 'would be needed' summary || complain "it is there"
}

@test "chains: without copies of stacks there is nothing to judge" {
    shape none fp
    run --separate-stderr perfjit check --chains none.data
    exits 0
    grep -q 'record with --call-graph dwarf' <<<"$output"
    run --separate-stderr perfjit check --chains --json none.data
    jq -e '.profile.chains.total == 0' <<<"$output"
}
