# The bodies that get a map in the output are those that an address in some sample lies in.
load helper

setup_file() {
    require_perf || return 0
    cd "$BATS_FILE_TMPDIR" || return
    recording bodies record_bodies
}

record_bodies() {
    cat >bodies.c <<'C'
#include "jitdump/jitdump.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { BODIES = 1000, NAMES = 10, SLOT = 64 };

static struct jitdump *dump;
static unsigned char *pages;

/* outer(n, inner, loop) calls inner(n, inner, loop), which calls loop(n), each with a frame pointer. */
#ifdef __aarch64__
static const unsigned outer[] = {0xa9bf7bfd, 0x910003fd, 0xd63f0020, 0xa8c17bfd, 0xd65f03c0};
static const unsigned inner[] = {0xa9bf7bfd, 0x910003fd, 0xd63f0040, 0xa8c17bfd, 0xd65f03c0};
static const unsigned loop[] = {0x71000400, 0x54ffffe1, 0xd65f03c0};
#else
static const unsigned char outer[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd6, 0x5d, 0xc3};
static const unsigned char inner[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd2, 0x5d, 0xc3};
static const unsigned char loop[] = {0x89, 0xf8, 0xff, 0xc8, 0x75, 0xfc, 0xc3};
#endif

static unsigned char *body(int number)
{
    return pages + number * SLOT;
}

static void add(int number, const void *code, size_t size)
{
    char name[32];
    struct jitdump_code function = JITDUMP_CODE_INIT;
    memcpy(body(number), code, size);
    memcpy(body(number) + SLOT - sizeof number, &number, sizeof number); /* no two are equal */
    snprintf(name, sizeof name, "name_%d", number % NAMES);
    function.name = name;
    function.code_addr = (uint64_t)(uintptr_t)body(number);
    function.code_size = SLOT;
    function.bytes = body(number);
    if (jitdump_add_code(dump, &function, NULL))
        exit(2);
}

/* 7 is met itself, 509 as the caller of 108; frame pointers skip 108, the direct caller of what has no frame. */
int main(void)
{
    pages = mmap(0, BODIES * SLOT, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (jitdump_open(&dump, 0))
        return 1;
    for (int i = 0; i < BODIES; i++) {
        const void *code = i == 509 ? (const void *)outer : i == 108 ? (const void *)inner : loop;
        add(i, code, i == 509 ? sizeof outer : i == 108 ? sizeof inner : sizeof loop);
    }
    for (clock_t end = clock() + CLOCKS_PER_SEC / 10; clock() < end;)
        ((void (*)(int, void *, void *))(uintptr_t)body(509))(1000000, body(108), body(7));
    return jitdump_close(dump) ? 3 : 0;
}
C
    cc -O1 -fno-omit-frame-pointer -I"$here/../.." -o bodies bodies.c "$BUILD/libjitdump.a" -pthread
    PERFJIT=dump JITDUMPDIR=$PWD record bodies.data -g ./bodies
    rm bodies bodies.c
}

setup() {
    require_perf
    cd "$BATS_FILE_TMPDIR"
}

# maps DATA: those of JIT code, by where they begin.
maps() {
    perf script -i "$1" --show-mmap-events 2>/dev/null | sed -nE 's/^.*MMAP2 .*\[(0x[0-9a-f]+)\(0x[0-9a-f]+\) @.*\/jit-[^ ]*\.so$/\1/p'
}

@test "of 1000 bodies of 10 names those two have a map that samples or their chains meet" {
    perfjit inject -q -i bodies.data -o out.data
    perf script -i out.data -F ip,sym --no-inline 2>/dev/null | sed -nE 's/^.* (name_[0-9])$/\1/p' | sort | uniq -c >names
    # (108 is met between its first instruction and its second.)
    [ "$(awk '$2 != "name_8" { print $2 }' names | tr '\n' ' ')" = "name_7 name_9 " ] || complain "$(cat names)"
    # And the first one of the file.
    [ "$(maps out.data | wc -l)" -eq $((1 + $(wc -l <names))) ] || complain "$(cat names; maps out.data)"
    run --separate-stderr perfjit inject -i out.data -o again.data
    exits 1
    says "has been injected already"
}

@test "with a file for each function all files are named" {
    perfjit inject -q -i bodies.data -o out.data --layout function
    [ "$(maps out.data | wc -l)" -eq 1000 ]
    [ "$(perf script -i out.data -F ip,sym --no-inline 2>/dev/null | grep -c ' name_[79]$')" -gt 20 ]
}
