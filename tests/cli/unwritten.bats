#!/usr/bin/env bats
# Records that a process has logged and not written: they are read from its memory, or from its core.
#
# Judges: logger, whose functions f1 to fN each command must name, also those that are not in its file; and node, of which nothing may
# stay unknown.
# bats file_tags=live
load helper

setup_file() {
    cd "$BATS_FILE_TMPDIR" || return
    cat >logger.c <<'END'
// logger STREAM COUNT [call|on]: logs COUNT functions into jit-PID.dump by a stream of stdio, or by a buffer of its own.  Then it calls the
// last, and stays in it, or it goes on logging, with so much memory that the file grows while that is searched.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static FILE *stream;
static char own[65536], room[65536];
static size_t used;
static int fd;
static void put(const void *bytes, size_t count)
{
    if (stream) { fwrite(bytes, 1, count, stream); return; }
    for (size_t i = 0; i < count; i++) {
        own[used++] = ((const char *)bytes)[i];
        if (used == 4000) { if (write(fd, own, used) < 0) exit(1); used = 0; }
    }
}
static uint64_t now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec; }
static void log_code(const uint8_t *code, uint32_t bytes, int number)
{
    char name[32];
    uint32_t name_bytes = (uint32_t)sprintf(name, "f%d", number) + 1;
    uint32_t words[2] = {0, 56 + name_bytes + bytes}, pids[2] = {(uint32_t)getpid(), (uint32_t)getpid()};
    uint64_t rest[4] = {(uintptr_t)code, (uintptr_t)code, bytes, (uint64_t)number}, time = now();
    put(words, 8); put(&time, 8); put(pids, 8); put(rest, 32); put(name, name_bytes); put(code, bytes);
}
int main(int argc, char **argv)
{
    // push rbp; mov rbp,rsp; 1: jmp 1b
    static const uint8_t spin[] = {0x55, 0x48, 0x89, 0xe5, 0xeb, 0xfe};
    int count = atoi(argv[2]);
    uint8_t *code = mmap(NULL, 1 << 20, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char path[64];
    sprintf(path, "%s/jit-%d.dump", getcwd(room, sizeof room), getpid());
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED || argc < 3) return 1;
    if (strcmp(argv[1], "own")) stream = fdopen(fd, "w+");
    if (!strcmp(argv[1], "large")) setvbuf(stream, room, _IOFBF, sizeof room);
    uint32_t header[6] = {0x4A695444, 1, 40, 62, 0, (uint32_t)getpid()};
    uint64_t times[2] = {now(), 0};
    put(header, 24); put(times, 16);
    for (int i = 1; i <= count; i++) {
        memcpy(code + 64 * i, spin, sizeof spin);
        log_code(code + 64 * i, sizeof spin, i);
    }
    puts("ready"); fflush(stdout);
    if (argc > 3 && !strcmp(argv[3], "call")) ((void (*)(void))(code + 64 * count))();
    if (argc > 3) mmap(NULL, (size_t)1 << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (; argc > 3; count++) {
        log_code(code + 64, sizeof spin, count + 1);
        for (clock_t began = clock(); clock() - began < CLOCKS_PER_SEC / 3000;) {}
    }
    pause();
}
END
    gcc -O1 -w -o logger logger.c
}

setup() {
    [ "$(uname -m)" = x86_64 ] || skip "the code is x86-64's"
    cd "$BATS_TEST_TMPDIR" || return
}

teardown() {
    [ -z "${pid:-}" ] || kill -9 "$pid" 2>/dev/null || true
}

# start ARGUMENT...: a logger that has logged; its pid in $pid.
start() {
    rm -f ready # the one before's
    "$BATS_FILE_TMPDIR/logger" "$@" >ready 2>/dev/null 3>&- &
    pid=$!
    await grep -qs ready ready
}

# 65 or 66 bytes a function: with 4096 or 4000 bytes the file ends in every part of a record.
@test "unwritten: of a process that goes on, wherever its file ends in a record" {
    local kind count
    for kind in stdio large own; do
        for count in 65 66 67 68 69 70 140 900 1500; do
            start $kind $count
            perfjit check --json "jit-$pid.dump" >json 2>err || true
            if [ "$kind" = large ] && [ "$count" -lt 1000 ]; then # not even the header is there
                [ ! -s "jit-$pid.dump" ]
            else
                jq -e ".dumps[0].names.functions == $count" json >/dev/null || complain "$kind $count: $(cat json err)"
                grep -q 'newest records its process had not written' err || complain "$kind $count: $(cat err)"
            fi
            kill -9 $pid
            wait $pid 2>/dev/null || true
        done
    done
}

@test "unwritten: of a process that goes on logging while its memory is searched" {
    start stdio 200 on
    for _ in 1 2 3; do
        perfjit check --json "jit-$pid.dump" >json 2>err || true
        jq -e '.dumps[0] | .names.functions > 200 and .records.cut_bytes == 0' json >/dev/null || complain "$(cat json err)"
        ! grep -q 'cut short' err || complain "$(cat err)"
    done
}

@test "unwritten: bt and symbols of a process and of its core" {
    [[ $(cat /proc/sys/kernel/core_pattern) != *[/\|]* ]] || skip "the kernel hands cores to a program here"
    local kind
    ulimit -c unlimited
    for kind in stdio own; do
        start $kind 200 call
        run --separate-stderr perfjit bt -p $pid
        [[ $output == *' f200+0x4 [JIT]'* ]] || complain "$output $stderr"
        says 'newest records its process had not written'
        kill -ABRT $pid
        wait $pid 2>/dev/null || true
        run --separate-stderr perfjit bt core*
        [[ $output == *' f200+0x4 [JIT]'* ]] || complain "$output $stderr"
        says 'newest records its process had not written'
        run --separate-stderr perfjit symbols --core core* -o symbols
        rm -r core* symbols* jit-*
    done
}

# Each name moves the end of the file to another part of a record.
@test "unwritten: the core of a node that aborts in the third of three functions just compiled names each frame" {
    [[ $(cat /proc/sys/kernel/core_pattern) != *[/\|]* ]] || skip "the kernel hands cores to a program here"
    command -v node >/dev/null || skip "no node"
    local tier name
    ulimit -c unlimited
    for tier in '~' '^'; do
        for name in a $(printf 'f%.0s' {1..100}) $(printf 'g%.0s' {1..999}); do
            cat >three.js <<END
function third_$name() { throw new Error("x"); }
function second_$name() { third_$name(); }
function first_$name() { second_$name(); }
first_$name();
END
            node --perf-prof --interpreted-frames-native-stack $([ "$tier" = '~' ] || echo --always-sparkplug) \
                --abort-on-uncaught-exception three.js >/dev/null 2>&1 || true
            run --separate-stderr perfjit bt --json core*
            exits 0
            says 'newest records its process had not written'
            head -1 <<<"$output" >json
            jq -e '.whole and all(.frames[]; .name)' json >/dev/null || complain "$(cat json)"
            jq -r '.frames[] | select(.jit) | .name' json | grep -oE "[~^][a-z]+_$name /" | tr -d ' /' >got
            printf "$tier%s_$name\n" third second first >wanted
            same got wanted
            rm core* jit-*
        done
    done
}

# Recording ends, and the process is killed: what it had not written is only in perfjit's memory, and in the dump that is kept.
@test "unwritten: record -p, three times; and --keep, for a process that has been killed since" {
    require_perf
    command -v node >/dev/null || skip "no node"
    cat >work.js <<'END'
let i = 0;
(function step() {
    const begun = Date.now(), f = new Function('n', `let s = ${i}; for (let j = 0; j < n; j++) s += j % ${i++ % 7 + 3}; return s`);
    while (Date.now() - begun < 40) f(20000);
    setTimeout(step, 1);
})();
END
    node --perf-prof work.js >/dev/null 2>&1 3>&- &
    pid=$!
    await_use $pid 1000
    for _ in 1 2 3; do
        for seconds in 1 4 16; do # a busy machine lets the process run for a part of it
            run --separate-stderr perfjit record -p $pid --duration $seconds -o live
            exits 0
            perfjit report --json live.perf.data 2>/dev/null >json
            says 'functions in 1 image, 0 parts of the input skipped'
            perf script -i live.perf.data -F sym -G 2>/dev/null >names
            [ "$(wc -l <names)" -le 100 ] || break
        done
        [ "$(wc -l <names)" -gt 100 ] && ! grep -q unknown names || complain "$(grep -c unknown names) of $(wc -l <names) are unknown"
        echo "# $(wc -l <names) samples, $(grep -c unknown names || true) unknown" >&3
    done
    run --separate-stderr perfjit record -p $pid --duration 1 --keep -o kept
    exits 0
    kill -9 $pid
    local dump
    dump=$(sed -n "s/^perfjit: kept: \(.*\) is the dump of process $pid .*/\1/p" <<<"$stderr")
    [ -s "$dump" ] || complain "$stderr"
    run --separate-stderr perfjit inject --jitdump "$pid:$dump" -i kept.recording -o again.data
    exits 0
    rm -r "${dump%/dumps/*}"
}
