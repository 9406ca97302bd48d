#!/usr/bin/env bats
# Stacks that no call began: coroutines return to the first byte of a function.  In front of it stands another function.
# bats file_tags=live
load helper

setup_file() {
    require_perf || return 0
    cd "$BATS_FILE_TMPDIR" || return
    cat >coroutines.c <<'END'
// coroutines HOW: a coroutine spins in code made at run time, `leaf`, that `frameless` calls; both keep no frame pointer.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
typedef long made(long);
static ucontext_t outer, inner;
static made *frameless;
static int fd;
static uint64_t now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec; }
static void log_code(const void *code, uint32_t bytes, const char *name)
{
    uint32_t name_bytes = (uint32_t)strlen(name) + 1, words[2] = {0, 56 + name_bytes + bytes}, pids[2] = {(uint32_t)getpid(), (uint32_t)getpid()};
    uint64_t rest[4] = {(uintptr_t)code, (uintptr_t)code, bytes, 1}, time = now();
    if (write(fd, words, 8) + write(fd, &time, 8) + write(fd, pids, 8) + write(fd, rest, 32) + write(fd, name, name_bytes) + write(fd, code, bytes) < 0) exit(1);
}
static void __attribute__((noinline)) body(void) { for (;;) { frameless(3000000); swapcontext(&inner, &outer); } }
int main(int argc, char **argv)
{
    // leaf: 1: dec rdi; jnz 1b; ret.  frameless: sub rsp,24; mov rax,leaf; call rax; add rsp,24; ret
    static const uint8_t leaf[] = {0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3};
    uint8_t caller[] = {0x48, 0x83, 0xec, 24, 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xd0, 0x48, 0x83, 0xc4, 24, 0xc3};
    uint8_t *code = mmap(NULL, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *at = code;
    char path[64], *stack = mmap(NULL, 65536, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sprintf(path, "jit-%d.dump", getpid());
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED || argc < 2) return 1;
    uint32_t header[6] = {0x4A695444, 1, 40, 62, 0, (uint32_t)getpid()};
    uint64_t times[2] = {now(), 0};
    if (write(fd, header, 24) + write(fd, times, 16) < 0) return 1;
    memcpy(code, leaf, sizeof leaf);
    memcpy(caller + 6, &at, 8);
    memcpy(code + 64, caller, sizeof caller);
    log_code(code, sizeof leaf, "leaf");
    log_code(code + 64, sizeof caller, "frameless");
    frameless = (made *)(code + 64);
    while (clock() < CLOCKS_PER_SEC / 2) {
        getcontext(&inner);
        inner.uc_stack.ss_sp = stack;
        inner.uc_stack.ss_size = 65536;
        inner.uc_link = &outer;
        // "direct": the coroutine's function is the one made at run time
        if (strcmp(argv[1], "direct")) makecontext(&inner, body, 0);
        else makecontext(&inner, (void (*)(void))frameless, 1, 3000000L);
        swapcontext(&outer, &inner);
    }
}
END
    gcc -O2 -w -o coroutines coroutines.c
}

setup() {
    require_perf
    [ "$(uname -m)" = x86_64 ] || skip "the code is x86-64's"
    cd "$BATS_TEST_TMPDIR"
}

# chains_of HOW: the number of samples in leaf, and of those that go on to where the coroutine began, behind CALLERS
chains_of() {
    perf record -q -k mono -F 1000 -e cpu-clock:u --call-graph dwarf,4096 -o "$1.data" "$BATS_FILE_TMPDIR/coroutines" "$1"
    perfjit inject -i "$1.data" -o "$1.out.data" 2>"$1.err"
    perf script --no-inline -F ip,sym -i "$1.out.data" 2>/dev/null |
        awk 'BEGIN { RS = ""; FS = "\n" } { line = ""; for (i = 1; i <= NF; i++) { sub(/^[ \t]*[0-9a-f]+ /, "", $i); line = line $i ";" } print line }' >"$1.chains"
    grep -q ' 0 ended at code without usable tables' "$1.err" || complain "$(cat "$1.err")"
}

# glibc may be stripped: the function has no name then, or that of the exported one before it.
@test "coroutines: the stack of a function that makecontext began is whole" {
    chains_of called
    [ "$(grep -c '^leaf;' called.chains)" -gt 50 ]
    ! grep '^leaf;' called.chains | grep -vE '^leaf;frameless;body;[^;]+;$' || complain "these are not"
}

@test "coroutines: also that of code made at run time, without a table" {
    chains_of direct
    [ "$(grep -c '^leaf;' direct.chains)" -gt 50 ]
    ! grep '^leaf;' direct.chains | grep -vE '^leaf;frameless;[^;]+;$' || complain "these are not"
}

@test "coroutines: bt of one" {
    "$BATS_FILE_TMPDIR/coroutines" called 3>&- &
    local pid=$!
    await_use $pid 100
    run --separate-stderr perfjit bt -p $pid
    wait $pid || true
    [[ $output == *'leaf'*'frameless'*'body'*'the stack is whole'* || $output != *leaf* ]] || complain "$output"
}
