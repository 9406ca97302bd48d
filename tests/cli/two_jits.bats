# A second JIT in the process: node with V8's own dump, and an addon that links libjitdump.
load helper

setup_file() {
    require_perf || return 0
    cd "$BATS_FILE_TMPDIR" || return
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
    cat >main.js <<'END'
const addon = {exports: {}};
process.dlopen(addon, process.argv[2]);
function javaScript(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i) % 7; return s; }
for (let i = 0; i < 40; i++) javaScript(3e6);
addon.exports();
END
    cc -shared -fPIC -O1 -fvisibility=hidden -I"$here/../.." -o addon.node addon.c "$BUILD/libjitdump.a" -pthread
    PERFJIT=dump perf record -q -k mono -e cpu-clock -o perf.data node --perf-prof main.js "$PWD/addon.node"
}

setup() {
    require_perf
    cd "$BATS_FILE_TMPDIR"
}

@test "V8's dump and the addon's are both there" {
    [ "$(find . -name 'jit-*.dump' | wc -l)" -eq 2 ]
    compgen -G 'jitdump-2/jit-*.dump'
}

# named FILE: both kinds of functions have samples in it.
named() {
    perf report -i "$1" --stdio --sort symbol 2>/dev/null >report
    grep -q 'javaScript' report || complain "no JavaScript name in $1"
    grep -q 'addons_loop' report || complain "no name of the addon's in $1"
}

@test "perfjit inject names the functions of both" {
    run --separate-stderr perfjit inject -i perf.data -o out.data
    exits 0
    named out.data
}

@test "perf inject names the functions of both" {
    perf inject --jit -i perf.data -o inject.data
    named inject.data
}
