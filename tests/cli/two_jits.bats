# A second JIT in the process: node with V8's own dump, and an addon that links libjitdump, or a library that is there before V8.
# There is also a program that acts as V8, before libjitdump or after it, in the same directory.
load helper

setup_file() {
    require_perf || return 0
    cd "$BATS_FILE_TMPDIR" || return
    write_addon
    if [ "$RECORDINGS" = live ] && command -v node >/dev/null; then
        record_addon
        (record_first)
    fi
    mkdir orders
    cd orders
    recording orders record_orders
}

write_addon() {
    cat >addon.c <<'END'
#include "jitdump/jitdump.h"

#include <string.h>
#include <sys/mman.h>

/* mov eax, edi; 1: dec eax; jnz 1b; ret.  Or the same for aarch64. */
#ifdef __aarch64__
static const unsigned loop[] = {0x71000400, 0x54ffffe1, 0xd65f03c0};
#else
static const unsigned char loop[] = {0x89, 0xf8, 0xff, 0xc8, 0x75, 0xfc, 0xc3};
#endif

struct napi_env__;
struct napi_value__;
int napi_create_function(struct napi_env__ *, const char *, size_t, void *, void *, struct napi_value__ **);

static void (*code)(int);

static struct napi_value__ *run(struct napi_env__ *env, void *info)
{
    (void)env;
    (void)info;
    code(100000000);
    return 0;
}

__attribute__((visibility("default"))) struct napi_value__ *napi_register_module_v1(struct napi_env__ *env,
                                                                                     struct napi_value__ *exports)
{
    struct jitdump_code function = JITDUMP_CODE_INIT;
    struct jitdump *dump;
    struct napi_value__ *result = exports;
    void *pages = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(pages, loop, sizeof loop);
    code = (void (*)(int))pages;
    function.name = "addons_loop";
    function.code_addr = (uint64_t)(uintptr_t)pages;
    function.code_size = sizeof loop;
    function.bytes = pages;
    if (jitdump_open(&dump, 0) || jitdump_add_code(dump, &function, 0))
        return exports;
    napi_create_function(env, "run", 3, (void *)run, 0, &result);
    return result;
}
END
}

record_addon() {
    cat >main.js <<'END'
const addon = {exports: {}};
process.dlopen(addon, process.argv[2]);
function javaScript(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i) % 7; return s; }
for (let i = 0; i < 15; i++) javaScript(3e6);
addon.exports();
END
    cc -shared -fPIC -O1 -fvisibility=hidden -I"$here/../.." -o addon.node addon.c "$BUILD/libjitdump.a" -pthread
    PERFJIT=dump perf record -q -k mono -e cpu-clock -o perf.data node --perf-prof main.js "$PWD/addon.node"
}

# libjitdump's dump is open before V8 makes its own, and is written until the process ends.
record_first() {
    mkdir first
    cd first
    sed '/^struct napi_env__/,$d' ../addon.c >first.c
    cat >>first.c <<'END'
static struct jitdump *dump;
static unsigned char *pages;

static void add(int number)
{
    struct jitdump_code function = JITDUMP_CODE_INIT;
    memcpy(pages + number % 4096 * 16, loop, sizeof loop);
    function.name = "addons_loop";
    function.code_addr = (uint64_t)(uintptr_t)(pages + number % 4096 * 16);
    function.code_size = sizeof loop;
    function.bytes = pages + number % 4096 * 16;
    jitdump_add_code(dump, &function, 0);
}

__attribute__((constructor)) static void begin(void)
{
    pages = mmap(0, 1 << 16, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (jitdump_open(&dump, 0) == 0)
        add(0);
}

__attribute__((destructor)) static void end(void)
{
    for (int i = 0; dump && i < 2000; i++)
        add(i);
    ((void (*)(int))pages)(100000000);
    jitdump_close(dump);
}
END
    cc -shared -fPIC -O1 -fvisibility=hidden -I"$here/../.." -o first.so first.c "$BUILD/libjitdump.a" -pthread
    PERFJIT=dump perf record -q -k mono -e cpu-clock -o perf.data env LD_PRELOAD="$PWD/first.so" node --perf-prof -e "
        function javaScript(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i) % 7; return s; }
        for (let i = 0; i < 15; i++) javaScript(3e6);"
}

# V8's behaviour without V8: jit-PID.dump in the current directory, emptied if it was there.
record_orders() {
    sed '/^struct napi_env__/,$d' ../addon.c >orders.c
    cat >>orders.c <<'END'
#include "jitdump/format/jitdump_format.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { OURS = 5000 };

static struct jitdump *dump;
static FILE *others;
static unsigned char *pages;

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void open_ours(void)
{
    if (jitdump_open(&dump, 0))
        exit(2);
}

static void open_others(void)
{
    char path[64];
    snprintf(path, sizeof path, "jit-%d.dump", (int)getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0666);
    if (fd < 0 || mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
        exit(3);
    others = fdopen(fd, "w+");
    const struct { uint32_t magic, version, size, mach, pad, pid; uint64_t time, flags; } header = {
        JITDUMP_MAGIC, 1, sizeof header, 62, 0, (uint32_t)getpid(), now(), 0};
    fwrite(&header, sizeof header, 1, others);
}

static void add_ours(int number, const void *at)
{
    char name[32];
    struct jitdump_code function = JITDUMP_CODE_INIT;
    snprintf(name, sizeof name, "addons_loop_%d", number);
    function.name = name;
    function.code_addr = (uint64_t)(uintptr_t)at;
    function.code_size = sizeof loop;
    function.bytes = at;
    if (jitdump_add_code(dump, &function, 0))
        exit(4);
}

static void add_others(const void *at)
{
    static const char name[] = "javaScript";
    const struct { uint32_t id, size; uint64_t time; uint32_t pid, tid; uint64_t vma, addr, bytes, index; } load = {
        JIT_CODE_LOAD, sizeof load + sizeof name + sizeof loop, now(), (uint32_t)getpid(), (uint32_t)getpid(),
        (uint64_t)(uintptr_t)at, (uint64_t)(uintptr_t)at, sizeof loop, 0};
    fwrite(&load, sizeof load, 1, others);
    fwrite(name, sizeof name, 1, others);
    fwrite(loop, sizeof loop, 1, others);
    fflush(others);
}

int main(int argc, char **argv)
{
    pages = mmap(0, 16 * (OURS + 1), PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i <= OURS; i++)
        memcpy(pages + 16 * i, loop, sizeof loop);
    if (argc > 1 && strcmp(argv[1], "ours") == 0) {
        open_ours();
        add_ours(0, pages);
        open_others();
    } else {
        open_others();
        open_ours();
    }
    add_others(pages + 16 * OURS);
    for (int i = 1; i < OURS; i++)
        add_ours(i, pages + 16 * i);
    ((void (*)(int))(pages + 16 * OURS))(100000000);
    ((void (*)(int))(pages + 16 * (OURS - 1)))(100000000);
    fclose(others);
    return jitdump_close(dump) ? 5 : 0;
}
END
    cc -O1 -I"$here/../.." -o orders orders.c "$BUILD/libjitdump.a" -pthread
    for first in ours theirs; do
        PERFJIT=dump perf record -q -k mono -e cpu-clock -o $first.data ./orders $first
    done
    rm orders orders.c
}

setup() {
    require_perf
    cd "$BATS_FILE_TMPDIR"
}

require_node() {
    command -v node >/dev/null || skip "node is not installed (make setup-live)"
}

# bats test_tags=live
@test "V8's dump and the addon's are both there" {
    require_node
    compgen -G 'jit-*.dump'
    compgen -G 'jitdump-*/jit-*.dump'
    compgen -G 'jitdump-*/stage/jit-*.dump'
}

# named FILE: both kinds of functions have samples in it.
named() {
    perf report -i "$1" --stdio --sort symbol 2>/dev/null >report
    grep -q 'javaScript' report || complain "no JavaScript name in $1"
    grep -q 'addons_loop' report || complain "no name of the addon's in $1"
}

# bats test_tags=live
@test "perfjit inject names the functions of both" {
    require_node
    run --separate-stderr perfjit inject -i perf.data -o out.data
    exits 0
    named out.data
}

# bats test_tags=all
@test "perf inject names the functions of both" {
    require_node
    perf inject --jit -i perf.data -o inject.data
    named inject.data
}

# bats test_tags=live
@test "libjitdump first, then V8, in one directory: no signal, and both named" {
    require_node
    cd first
    run --separate-stderr perfjit inject -i perf.data -o out.data
    exits 0
    named out.data
    perf inject --jit -i perf.data -o inject.data
    named inject.data
}

# bats test_tags=both
@test "another JIT first or last, which empties jit-PID.dump: no signal, and both named" {
    cd orders
    for first in ours theirs; do
        run --separate-stderr perfjit inject -i $first.data -o out.data
        exits 0
        named out.data
    done
}
