# A second JIT in the process: node with V8's own perf map, and an addon that links libperfmap.  Whichever comes first, perf finds
# the names of both in the one map, and each line is whole.

# bats file_tags=live
load helper

setup_file() {
    require_perf || return 0
    command -v node >/dev/null || return 0
    cd "$BATS_FILE_TMPDIR" || return
    cat >addon.c <<'END'
#include "perfmap/perfmap.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE_BYTES = 4096, FUNCTIONS = 50 };

/* mov eax, edi; 1: dec eax; jnz 1b; ret.  Or the same for aarch64. */
#ifdef __aarch64__
static const unsigned loop[] = {0x71000400, 0x54ffffe1, 0xd65f03c0};
#else
static const unsigned char loop[] = {0x89, 0xf8, 0xff, 0xc8, 0x75, 0xfc, 0xc3};
#endif

struct napi_env__;
struct napi_value__;
int napi_create_function(struct napi_env__ *, const char *, size_t, void *, void *, struct napi_value__ **);

static struct perfmap *map;
static char *pages;

static int add(int number, const char *name)
{
    char *page = pages + number * PAGE_BYTES;
    memcpy(page, loop, sizeof loop);
    return perfmap_add(map, (uint64_t)(uintptr_t)page, sizeof loop, name);
}

/* One function more each time, while V8 adds its own. */
static struct napi_value__ *run(struct napi_env__ *env, void *info)
{
    static int functions = 1;
    (void)env;
    (void)info;
    if (functions < FUNCTIONS && add(functions, "addons_later_loop") == 0)
        functions++;
    for (int i = 0; i < functions; i++)
        ((void (*)(int))(pages + i * PAGE_BYTES))(1000000);
    fprintf(stderr, "added %d, lost %d\n", functions, (int)perfmap_lost(map));
    return 0;
}

__attribute__((visibility("default"))) struct napi_value__ *napi_register_module_v1(struct napi_env__ *env,
                                                                                     struct napi_value__ *exports)
{
    struct napi_value__ *result = exports;
    pages = mmap(0, FUNCTIONS * PAGE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (perfmap_open(&map, NULL) || add(0, "addons_first_loop"))
        return exports;
    napi_create_function(env, "run", 3, (void *)run, 0, &result);
    return result;
}
END
    cat >node_first.js <<'END'
const addon = {exports: {}};
process.dlopen(addon, process.argv[2]);
function javaScript(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i) % 7; return s; }
for (let i = 0; i < 60; i++) { javaScript(2e6); new Function('a', `return a + ${i}`)(i); addon.exports(); }
END
    # V8 opens the map, and empties it, when the next isolate begins.
    cat >addon_first.js <<'END'
const addon = {exports: {}};
process.dlopen(addon, process.argv[2]);
require('v8').setFlagsFromString('--perf-basic-prof');
const {Worker} = require('worker_threads');
const worker = new Worker(`
    const {parentPort} = require('worker_threads');
    function javaScript(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i) % 7; return s; }
    for (let i = 0; i < 60; i++) { javaScript(2e6); new Function('a', 'return a + ' + i)(i); parentPort.postMessage(i); }`, {eval: true});
worker.on('message', () => addon.exports());
END
    cc -shared -fPIC -O1 -fvisibility=hidden -I"$here/../.." -o addon.node addon.c "$BUILD/libperfmap.a" -pthread
    record_node node_first --perf-basic-prof
    record_node addon_first
}

# record_node NAME [OPTION...]: NAME.js; its map becomes NAME.map.
record_node() {
    # shellcheck disable=SC2016 # for the inner shell
    PERFJIT=map perf record -q -e cpu-clock -o "$1.data" sh -c 'echo $$ >"$0.pid"; exec "$@"' "$1" \
        node "${@:2}" "$1.js" "$PWD/addon.node" 2>"$1.log"
    mv "/tmp/perf-$(cat "$1.pid").map" "$1.map"
}

setup() {
    require_perf
    command -v node >/dev/null || skip "node is not installed (make setup-live)"
    cd "$BATS_FILE_TMPDIR"
}

teardown() {
    [ ! -e "$BATS_FILE_TMPDIR/report" ] || rm -f "/tmp/perf-$(cat node_first.pid).map" "/tmp/perf-$(cat addon_first.pid).map"
}

# Every line is whole, and those of the addon that it does not count as lost are there.
lines_are_whole() {
    local added lost
    added=$(sed -nE '$s/^added ([0-9]+), .*/\1/p' "$1.log")
    lost=$(sed -nE '$s/.*, lost //p' "$1.log")
    run ! grep -vE '^[0-9a-f]+ [0-9a-f]+ .+$' "$1.map"
    [ "$added" -eq 50 ] || complain "the addon added $added: $(tail -3 "$1.log")"
    [ "$(grep -c 'addons_' "$1.map")" -eq $((added - lost)) ] || complain "$(tail -1 "$1.log"): $(grep addons_ "$1.map")"
    [ "$(grep -cE '^[0-9a-f]+ [0-9a-f]+ addons_(first|later)_loop$' "$1.map")" -eq $((added - lost)) ]
}

# names FILE NAME...: perf report has them.
names() {
    local name
    cp "$1.map" "/tmp/perf-$(cat "$1.pid").map"
    perf report -i "$1.data" --stdio --sort symbol 2>/dev/null >report
    for name in "${@:2}"; do
        grep -q "$name" report || complain "no $name in the report"
    done
}

@test "node opens the map, then the addon: no line is lost" {
    lines_are_whole node_first
    tail -1 node_first.log | grep -q 'lost 0$'
    names node_first javaScript addons_first_loop addons_later_loop
}

@test "the addon opens the map, then node, which empties it: what is lost is counted" {
    lines_are_whole addon_first
    run ! grep -q 'lost 0$' <(tail -1 addon_first.log)
    names addon_first javaScript addons_later_loop
}
