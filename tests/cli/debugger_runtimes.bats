#!/usr/bin/env bats
# perfjit bt and gdb on programs with other runtimes: in the running process, and on its core.  debugger.bats has node and tinyjit.
#
# For each of php, lli and counter, a program with libjitdump, there are X.{bt,gdb}.{live,core}.  Each spins at the end of a chain of
# calls that is known from its source.  mapped has a perf map only.
load helper
# bats file_tags=live

setup_file() {
    cd "$BATS_FILE_TMPDIR" || return
    write_programs
    write_mapped
    cc -O1 -fno-omit-frame-pointer -I"$here/../.." -o counter counter.c "$BUILD/libjitdump.a" -pthread
    cc -O1 -g -fno-omit-frame-pointer -o mapped mapped.c
    look_at php php8.2 -d opcache.enable=1 -d opcache.enable_cli=1 -d opcache.jit_buffer_size=16M -d opcache.jit=function \
        -d opcache.jit_debug=0x20 -d opcache.file_update_protection=0 chain.php
    look_at lli lli-14 -jit-kind=mcjit chain.ll
    look_at counter ./counter
}

# php writes to /tmp, whatever it is told.
teardown_file() {
    cd "$BATS_FILE_TMPDIR" || return
    [ ! -e php.pid ] || rm -f "/tmp/jit-$(cat php.pid).dump" "/tmp/perf-$(cat php.pid).map"
}

setup() {
    cd "$BATS_FILE_TMPDIR"
}

teardown() {
    [ -z "${map:-}" ] || rm -f "$map"
}

# look_at NAME COMMAND...: the process is in its loop when it has used this much.
look_at() {
    local name=$1 pid
    (ulimit -c unlimited && PERFJIT=dump JITDUMPDIR=$PWD exec "${@:2}") >/dev/null 2>&1 3>&- &
    pid=$!
    echo $pid >"$name.pid"
    await_use $pid 400
    perfjit bt -p $pid >"$name.bt.live" 2>&1 || true
    perfjit gdb -p $pid -- --batch -ex bt >"$name.gdb.live" 2>&1
    leave_core $pid "$name.core"
    perfjit bt "$name.core" >"$name.bt.core" 2>&1 || true
    perfjit gdb "$name.core" -- --batch -ex bt >"$name.gdb.core" 2>&1
    rm "$name.core"
}

# By the kernel, or, where that hands cores to a program, by gdb.  lli handles the first signal and goes on.
leave_core() {
    case $(cat /proc/sys/kernel/core_pattern) in
    *[/\|]*) gcore -o core "$1" >/dev/null 2>&1 && kill -KILL "$1" ;;
    *) for _ in 1 2; do if kill -ABRT "$1"; then await_use "$1" 20; fi; done ;;
    esac
    wait "$1" || true
    mv core* "$2"
}

write_programs() {
    cat >chain.php <<'END'
<?php
function spin($n) { for ($i = 0, $x = 1; $i < $n; $i++) $x = ($x * 1103515245 + 12345) & 0x7fffffff; return $x; }
function outer($n) { return 1 + spin($n); }
outer(1000000000000);
END
    cat >chain.ll <<'END'
define i64 @spin(i64 %n) noinline "frame-pointer"="all" {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %state = phi i64 [ 1, %entry ], [ %mixed, %loop ]
  %crossed = xor i64 %state, %i
  %mixed = mul i64 %crossed, 6364136223846793005
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret i64 %mixed
}
define i64 @outer(i64 %n) noinline "frame-pointer"="all" {
  %deep = icmp eq i64 %n, 0
  br i1 %deep, label %last, label %again
again:
  %less = sub i64 %n, 1
  %below = call i64 @outer(i64 %less)
  %next = add i64 %below, 1
  ret i64 %next
last:
  %spun = call i64 @spin(i64 1000000000000000)
  %sum = add i64 %spun, 1
  ret i64 %sum
}
define i32 @main() "frame-pointer"="all" {
  %sum = call i64 @outer(i64 2)
  %status = trunc i64 %sum to i32
  ret i32 %status
}
END
    cat >counter.c <<'END'
#include "jitdump/jitdump.h"
#include <string.h>
#include <sys/mman.h>
static const unsigned char spin[] = {0x55, 0x48, 0x89, 0xe5, 0xeb, 0xfe};               /* push; mov rbp,rsp; jmp self */
static const unsigned char outer[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};  /* ...; call rdi; pop; ret */
static struct jitdump *dump;
static void add(unsigned char *to, const void *code, size_t size, const char *name)
{
    struct jitdump_code function = JITDUMP_CODE_INIT;
    memcpy(to, code, size);
    function.name = name;
    function.code_addr = (uint64_t)(uintptr_t)to;
    function.code_size = size;
    function.bytes = to;
    jitdump_add_code(dump, &function, NULL);
}
int main(void)
{
    unsigned char *pages = mmap(0, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (jitdump_open(&dump, 0))
        return 1;
    add(pages, spin, sizeof spin, "spin");
    add(pages + 64, outer, sizeof outer, "outer");
    ((void (*)(void *))(uintptr_t)(pages + 64))(pages);
    return 0;
}
END
}

# mapped outer -> spin -> stop: spin is compiled and named when go is set.
write_mapped() {
    cat >mapped.c <<'END'
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static const unsigned char spin[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd6, 0x5d, 0xc3};  /* ...; call rsi; pop; ret */
static const unsigned char outer[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3}; /* ...; call rdi; pop; ret */
volatile int go, stops;
static FILE *map;
static void add(unsigned char *to, const void *code, size_t size, const char *name)
{
    memcpy(to, code, size);
    fprintf(map, "%lx %zx %s\n", (unsigned long)to, size, name);
    fflush(map);
}
__attribute__((noinline)) void stop(void)
{
    while (stops) continue;
}
int main(int argc, char **argv)
{
    char path[64];
    unsigned char *pages = mmap(0, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sprintf(path, "/tmp/perf-%d.map", getpid());
    map = fopen(path, "w");
    add(pages, outer, sizeof outer, "mapped_outer");
    go = stops = argc > 1;
    while (!go) continue;
    add(pages + 64, spin, sizeof spin, "mapped_spin");
    ((void (*)(void *, void (*)(void)))pages)(pages + 64, stop);
    return 0;
}
END
}

# names FILE: of the frames, which perfjit bt and gdb print in much the same way.  gdb has printed the innermost before, too.
names() {
    sed -nE 's/^#([0-9]+) +(0x[0-9a-f]+ )?(in )?([^ +(]+).*/\1 \4/p' "$1" |
        awk '$1 == 0 { n = 0 } { names[n++] = $2 } END { for (i = 0; i < n; i++) print names[i] }'
}

# all_say NAME FRAME...: the chain begins so, live and in the core, with bt and with gdb.
all_say() {
    local way
    printf '%s\n' "${@:2}" >"$1.wanted"
    for way in bt.live gdb.live bt.core gdb.core; do
        names "$1.$way" | head -$(($# - 1)) >"$1.got"
        same "$1.got" "$1.wanted" || complain "$way: $(cat "$1.$way")"
    done
}

@test "php: compiled functions in its shared mapping of /dev/zero are named, and the stack ends there, without guessed frames" {
    all_say php 'JIT$spin'
    for way in gdb.live gdb.core; do
        [ "$(names php.$way)" = 'JIT$spin' ] || complain "$(cat php.$way)"
        [ "$(grep -cF 'Python Exception' php.$way)" = 0 ]
    done
}

@test "lli: the chain with LLVM's dump, to _start, in gdb to main" {
    all_say lli spin outer outer outer main
    for way in live core; do
        names lli.bt.$way | tail -1 | grep -x _start
        grep -F 'the stack is whole' lli.bt.$way
        [ "$(names lli.gdb.$way | grep -cx main)" = 2 ] # lli's own, too
    done
}

@test "a program with libjitdump: the chain, to _start, in gdb to main" {
    all_say counter spin outer main
    for way in live core; do
        names counter.bt.$way | tail -1 | grep -x _start
        grep -F 'the stack is whole' counter.bt.$way
        names counter.gdb.$way | tail -1 | grep -x main
    done
}

@test "a perf map alone: what is named later is read at the next stop" {
    ./mapped >/dev/null 2>&1 3>&- &
    map=/tmp/perf-$!.map
    await_use $! 100
    perfjit gdb -p $! -- --batch -ex 'break stop' -ex 'set var go = 1' -ex continue -ex bt -ex kill >mapped.live 2>&1
    names mapped.live >got
    printf '%s\n' stop mapped_spin mapped_outer main >wanted
    same got wanted
}

# As gcc -O2 has them: what is left to do stands between the frame's end and the return.
@test "a perf map alone: the chain at each instruction between pop rbp or leave and ret, in both flavours of gdb" {
    cat >leaving.c <<'END'
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
/* push rbp; mov rbp,rsp; mov eax,1; pop rbp; add rax,1; movslq rdi,edi; lea rdx,[rax+rdi]; movzx eax,al; movaps xmm0,xmm1;
 * mov [rip+0x40],r12; rep ret */
static const unsigned char popping[] = {0x55, 0x48, 0x89, 0xe5, 0xb8, 1, 0, 0, 0, 0x5d, 0x48, 0x83, 0xc0, 1, 0x48, 0x63, 0xff,
    0x48, 0x8d, 0x14, 0x38, 0x0f, 0xb6, 0xc0, 0x0f, 0x28, 0xc1, 0x4c, 0x89, 0x25, 0x40, 0, 0, 0, 0xf3, 0xc3};
/* push rbp; mov rbp,rsp; sub rsp,16; mov edi,1; leave; mov eax,edi; mov r13d,2; mov r13d,eax; ret 0 */
static const unsigned char leaving[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 16, 0xbf, 1, 0, 0, 0, 0xc9, 0x89, 0xf8,
    0x41, 0xbd, 2, 0, 0, 0, 0x41, 0x89, 0xc5, 0xc2, 0, 0};
/* push rbp; mov rbp,rsp; push r13; call rdi; call rsi; pop r13; pop rbp; ret */
static const unsigned char outer[] = {0x55, 0x48, 0x89, 0xe5, 0x41, 0x55, 0xff, 0xd7, 0xff, 0xd6, 0x41, 0x5d, 0x5d, 0xc3};
static FILE *map;
static unsigned char *add(unsigned char *to, const void *code, size_t size, const char *name)
{
    memcpy(to, code, size);
    fprintf(map, "%lx %zx %s\n", (unsigned long)to, size, name);
    fflush(map);
    return to;
}
int main(void)
{
    char path[64];
    unsigned char *pages = mmap(0, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    volatile int go = 0;
    sprintf(path, "/tmp/perf-%d.map", getpid());
    map = fopen(path, "w");
    add(pages, outer, sizeof outer, "outer");
    add(pages + 256, popping, sizeof popping, "popping");
    add(pages + 512, leaving, sizeof leaving, "leaving");
    while (!go) continue;
    ((void (*)(void *, void *))pages)(pages + 256, pages + 512);
    return 0;
}
END
    cat >leaving.py <<'END'
import gdb
gdb.execute("set var go = 1")
seen = {"popping": 0, "leaving": 0}
wrong, names = [], []
while seen["leaving"] == 0 or names[0] != "main":
    gdb.execute("stepi", False, True)
    names, frame = [], gdb.newest_frame()
    while frame and len(names) < 4:
        names.append(frame.name())
        frame = frame.older()
    if names[0] in seen:
        seen[names[0]] += 1
        if names[1:3] != ["outer", "main"]:
            wrong.append("%s: %s" % (gdb.execute("x/i $pc", False, True).strip(), names))
print("popping %d leaving %d wrong %d" % (seen["popping"], seen["leaving"], len(wrong)))
print("\n".join(wrong))
END
    cc -O1 -g -fno-omit-frame-pointer -o leaving leaving.c
    local flavour
    for flavour in att intel; do
        ./leaving >/dev/null 2>&1 3>&- &
        map=/tmp/perf-$!.map
        await_use $! 100
        perfjit gdb -p $! -- --batch -ex "set disassembly-flavor $flavour" -ex 'source leaving.py' -ex kill >leaving.says 2>&1
        grep -qx 'popping 11 leaving 9 wrong 0' leaving.says || complain "$(cat leaving.says)"
        rm -f "$map"
    done
}

@test "a perf map alone, of a core: by itself, unless it is younger than the core or of other addresses" {
    ulimit -c unlimited
    ./mapped stop >/dev/null 2>&1 3>&- &
    map=/tmp/perf-$!.map
    await_use $! 100
    leave_core $! mapped.core
    printf '%s\n' stop mapped_spin mapped_outer main >wanted
    perfjit bt mapped.core >mapped.bt
    names mapped.bt | head -4 >got
    same got wanted
    perfjit gdb mapped.core -- --batch -ex bt >mapped.gdb 2>&1
    names mapped.gdb >got
    same got wanted

    touch -d '+10 seconds' "$map"
    run --separate-stderr perfjit bt mapped.core
    exits 1
    says 'younger' 'the core' '--perf-map'
    perfjit bt --perf-map "$map" mapped.core >mapped.bt
    names mapped.bt | head -4 >got
    same got wanted

    echo '1000 10 elsewhere' >"$map"
    touch -r mapped.core "$map"
    run --separate-stderr perfjit bt mapped.core
    exits 1
    says 'of its 1 function only 0 lie in executable memory'
    perfjit symbols --core mapped.core --no-perf-map 2>&1 | grep -F 'left no perf map'
}
