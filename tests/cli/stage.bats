# The last records of libjitdump are in a second file, the stage.  It is tested for killed processes, in both files, missing,
# and given by hand.
load helper

setup_file() {
    require_perf || return 0
    mkdir "$BATS_FILE_TMPDIR/made"
    cd "$BATS_FILE_TMPDIR/made" || return
    for end in closed killed unmapped; do
        recording $end record_end $end
    done
    # The library's present output, for any recording.
    write_ends
    for end in closed killed; do
        mkdir fresh-$end
        PERFJIT=dump JITDUMPDIR=$PWD/fresh-$end ./ends $end || [ $end = killed ]
    done
}

# The recording and the dump stay.
record_end() {
    local words=dump
    [ "$1" != unmapped ] || words=dump,unmapped
    write_ends
    mkdir "$1"
    PERFJIT=$words JITDUMPDIR=$PWD/$1 record "$1.data" ./ends "$1" || [ "$1" != closed ]
    rm ends ends.c
}

write_ends() {
    cat >ends.c <<'C'
#include "jitdump/jitdump.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* mov eax, edi; 1: dec eax; jnz 1b; ret.  Or the same for aarch64. */
#ifdef __aarch64__
static const unsigned loop[] = {0x71000400, 0x54ffffe1, 0xd65f03c0};
#else
static const unsigned char loop[] = {0x89, 0xf8, 0xff, 0xc8, 0x75, 0xfc, 0xc3};
#endif

enum { FUNCTIONS = 1500, SLOT = 512 };

static struct jitdump *dump;
static unsigned char *pages;

static uint64_t add(int number)
{
    char name[32];
    uint64_t index;
    struct jitdump_code function = JITDUMP_CODE_INIT;
    unsigned char *at = memcpy(pages + number * SLOT, loop, sizeof loop);
    snprintf(name, sizeof name, "function_%d", number);
    function.name = name;
    function.code_addr = (uint64_t)(uintptr_t)at;
    function.code_size = SLOT;
    function.bytes = at;
    if (jitdump_add_code(dump, &function, &index))
        exit(2);
    return index;
}

static void run(const unsigned char *at)
{
    ((void (*)(int))(uintptr_t)at)(60000000);
}

/* The first function is in the body by the time that it is moved, and the last one and the move are in the stage. */
int main(int argc, char **argv)
{
    pages = mmap(0, (FUNCTIONS + 1) * SLOT, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (jitdump_open(&dump, 0))
        return 1;
    uint64_t first = add(0);
    run(pages);
    for (int i = 1; i < FUNCTIONS; i++)
        add(i);
    run(pages + (FUNCTIONS - 1) * SLOT);
    memcpy(pages + FUNCTIONS * SLOT, loop, sizeof loop);
    jitdump_move_code(dump, first, (uintptr_t)pages, (uintptr_t)(pages + FUNCTIONS * SLOT), SLOT);
    memset(pages, 0, SLOT);
    run(pages + FUNCTIONS * SLOT);
    if (argc > 1 && strcmp(argv[1], "closed") != 0)
        raise(SIGKILL);
    return jitdump_close(dump) ? 3 : 0;
}
C
    cc -O1 -I"$here/../.." -o ends ends.c "$BUILD/libjitdump.a" -pthread
}

setup() {
    require_perf
    cp -a "$BATS_FILE_TMPDIR/made" "$BATS_TEST_TMPDIR/saved"
    cd "$BATS_FILE_TMPDIR/made"
}

# Changes of a test to the files are undone, and the inodes are kept.
teardown() {
    cd "$BATS_FILE_TMPDIR/made" || return 0
    [ -e "$BATS_TEST_TMPDIR/saved" ] || return 0
    for file in */jitdump-*/jit-*.dump */jitdump-*/stage/jit-*.dump; do
        chmod u+w "$file"
        cat "$BATS_TEST_TMPDIR/saved/$file" >"$file"
    done
}

# named DATA: the functions of body and stage, and the one that was moved.
named() {
    perf script -i "$1" -F ip,sym,dso --no-inline 2>/dev/null | sort | uniq -c | sort -rn >symbols
    grep -q 'function_0 ' symbols || complain "$(cat symbols)"
    grep -q 'function_1499 ' symbols || complain "$(cat symbols)"
    # Addresses in files without a symbol are no affair of the dump's.
    run ! grep -E '\[unknown\] \((//anon|\[unknown\])\)$' symbols
}

# bats test_tags=both
@test "a process that was killed: perfjit reads both files as one dump" {
    run --separate-stderr perfjit inject -i killed.data -o out.data
    exits 0
    says "out.data: 1501 functions"
    named out.data
    perfjit check killed.data | grep -q 'sound: every sample in JIT code has a name'
}

# bats test_tags=live
@test "a process that was killed: perf inject finds what is in either" {
    perf inject --jit -i killed.data -o out.data 2>/dev/null
    perf script -i out.data -F ip,sym --no-inline 2>/dev/null | sort -u >symbols
    grep -q 'function_0' symbols
    grep -q 'function_1499' symbols
}

@test "a process that was killed: perfjit dump and check of the body say where the newest are" {
    for command in dump check; do
        perfjit $command fresh-killed/jitdump-*/jit-*.dump 2>said >/dev/null
        grep -qE '^perfjit: fresh-killed/jitdump-([0-9]+)/jit-\1\.dump: was not closed; its newest records are in fresh-killed/jitdump-\1/stage/jit-\1\.dump$' said ||
            complain "$command: $(cat said)"
    done
    perfjit dump fresh-closed/jitdump-*/jit-*.dump 2>said >/dev/null
    [ ! -s said ]
}

@test "a process that was killed: perfjit check of the body counts what is in either" {
    perfjit check --json fresh-killed/jitdump-*/jit-*.dump >report 2>said
    [ "$(jq '[.dumps[].names.functions] | add' report)" = 1500 ] || complain "$(jq -c '.dumps[] | [.file, .names]' report)"
    [ "$(jq '.dumps | length' report)" = 2 ]
    perfjit check --json fresh-killed/jitdump-*/jit-*.dump fresh-killed/jitdump-*/stage/jit-*.dump >named 2>said
    same named report
}

# The state after a kill between two instructions: the body's records are in the stage as well.
@test "records that are in both files count once, and nothing is said of it" {
    local stage
    stage=$(echo closed/jitdump-*/stage/jit-*.dump)
    chmod u+w "$stage"
    cat closed/jitdump-*/jit-*.dump >"$stage"
    run --separate-stderr perfjit inject -i closed.data -o out.data
    exits 0
    [[ $stderr == "perfjit: out.data: 1501 functions in "*", 0 parts of the input skipped" && $stderr != *$'\n'* ]] ||
        complain "$stderr"
    named out.data
}

@test "the stage is missing: no loss if the dump was closed, else it is said" {
    local body
    for end in closed killed; do
        body=$(echo $end/jitdump-*/jit-*.dump)
        mv "${body%/*}/stage" away
        run --separate-stderr perfjit inject -i $end.data -o out.data
        mv away "${body%/*}/stage"
        if [ $end = closed ]; then
            exits 0
            [[ $stderr != *missing* ]] || complain "$stderr"
            named out.data
        else
            exits 3
            says "1 x dump missing" "/stage/jit-" "the newest that its process recorded was in it, since that did not close its dump"
        fi
    done
}

@test "--jitdump names the body, and its stage is taken along, wherever they are" {
    mv killed moved
    run --separate-stderr perfjit inject -i killed.data -o out.data --jitdump moved/jitdump-*/jit-*.dump
    mv moved killed
    exits 0
    says "out.data: 1501 functions"
    named out.data
}

@test "a dump that is written without a mapping" {
    run ! compgen -G 'unmapped/jitdump-*/stage'
    run --separate-stderr perfjit inject -i unmapped.data -o out.data
    exits 0
    named out.data
}
