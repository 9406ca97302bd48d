/* A dump of bounded size when its process is killed at a write, when the disk fails at one, and
 * when the process forks. */
#include "tests/unit/clock_stand_in.h"
#include "tests/unit/ring_model.h"
#include "tests/unit/write_stand_in.h"

#include <errno.h>
#include <signal.h>

static int forget_mishaps(void **state)
{
    memset(&writes, 0, sizeof writes);
    restore_clock();
    return make_dir(state);
}

/* ---- What runs ---- */

enum {
    OPS = 8000, /* one generation and more */
    FIRST = 10, /* the first write behind those by which a dump is opened */
};

struct log {
    struct jitdump *dump;
    struct model *model;
    struct state state;
};

static struct log own;

/* What failed is tried again at once.  Returns how many operations failed. */
static unsigned log_ops(struct log *log, unsigned count)
{
    unsigned failed = 0;
    for (unsigned i = 0; i < count; i++) {
        if (log_one(log->dump, log->model, &log->state, &wild)) {
            CHECK(log->model->ops[log->model->count].slots == CODE_MAX / SLOT_BYTES);
            failed++;
        }
        if (writes.mishap == FAIL_ONCE && writes.calls >= writes.at)
            pass_retry_time();
    }
    return failed;
}

static void begin_log(struct model *model, uint32_t seed)
{
    memset(&own, 0, sizeof own);
    own.model = model;
    own.dump = open_ring(0);
    random_state = seed;
}

/* The writes that come while so many operations are logged. */
static unsigned count_writes(void)
{
    struct model *model = model_new();
    writes.mishap = NONE;
    writes.calls = 0;
    begin_log(model, 1);
    assert_int_equal(log_ops(&own, OPS), 0);
    unsigned calls = writes.calls;
    assert_int_equal(jitdump_close(own.dump), 0);
    remove_dump(path);
    munmap(model, sizeof *model);
    assert_in_range(calls, 40, 5000);
    return calls;
}

/* ---- Kills and failures ---- */

static uint64_t kill_at(enum mishap mishap, unsigned at)
{
    struct model *model = model_new();
    pid_t child = fork();
    if (child == 0) {
        writes.mishap = mishap;
        writes.at = at;
        writes.calls = 0;
        begin_log(model, 1);
        log_ops(&own, OPS);
        _exit(0);
    }
    assert_int_equal(wait_for(child), 128 + SIGKILL);
    set_path(child);
    uint64_t generation = check_dump(path, model, true);
    remove_dump(path);
    set_path(getpid());
    munmap(model, sizeof *model);
    return generation;
}

static void test_killed_at_each_write(void **state)
{
    unsigned count = count_writes(), last_generation = 0;
    (void)state;
    for (unsigned at = FIRST; at <= count; at++)
        for (enum mishap mishap = KILL_BEFORE; mishap <= KILL_HALF_WAY; mishap++)
            last_generation = (unsigned)kill_at(mishap, at);
    printf("# killed at %u writes, of %u generations\n", count - FIRST, last_generation);
    assert_in_range(last_generation, 2, 100);
}

/* What was to be written is written with the next operation: lost is a function that is written by
 * itself, for its size, and no other one. */
static void test_each_write_fails_once(void **state)
{
    unsigned count = count_writes(), lost = 0;
    (void)state;
    for (unsigned at = FIRST; at <= count; at++) {
        struct model *model = model_new();
        writes.mishap = FAIL_ONCE;
        writes.error = ENOSPC;
        writes.at = at;
        writes.calls = 0;
        begin_log(model, 1);
        unsigned failed = log_ops(&own, OPS);
        assert_int_equal(jitdump_lost(own.dump), failed);
        assert_in_range(failed, 0, 1);
        assert_true(check_dump(path, model, false) >= 1);
        assert_int_equal(jitdump_close(own.dump), failed ? -ENOSPC : 0);
        lost += failed;
        assert_true(check_dump(path, model, false) >= 1);
        check_bound();
        remove_dump(path);
        munmap(model, sizeof *model);
        restore_clock();
    }
    printf("# %u of %u failures lost a function\n", lost, count - FIRST);
}

/* ---- Forks ---- */

enum { INHERITED = 60 };
#define INHERITED_ADDR (ARENA + (UINT64_C(1) << 32))

static uint64_t inherited[INHERITED];

static uint64_t inherited_addr(unsigned i)
{
    return INHERITED_ADDR + i * UINT64_C(4096);
}

static void add_inherited(struct jitdump *dump)
{
    static const uint8_t bytes[64];
    for (unsigned i = 0; i < INHERITED; i++) {
        struct jitdump_code code = JITDUMP_CODE_INIT;
        code.name = "inherited";
        code.code_addr = inherited_addr(i);
        code.code_size = sizeof bytes;
        code.bytes = bytes;
        CHECK(jitdump_add_code(dump, &code, &inherited[i]) == 0);
    }
}

/* A third stays, a third is moved twice, a third unloaded. */
static void change_inherited(struct jitdump *dump, unsigned round)
{
    for (unsigned i = round; i < INHERITED; i += 3) {
        uint64_t addr = inherited_addr(i);
        if (round == 1)
            CHECK(jitdump_move_code(dump, inherited[i], addr, addr + 1024, 64) == 0 &&
                  jitdump_move_code(dump, inherited[i], addr + 1024, addr + 2048, 64) == 0);
        else
            CHECK(jitdump_unload_code(dump, inherited[i], addr, 64) == 0);
    }
}

/* Where the child's dump has them in the end; 0: unloaded, 1: not mentioned. */
static void find_inherited(uint64_t places[INHERITED])
{
    struct dump_bytes dump = read_dump(path);
    struct record record;
    size_t offset = JITHEADER_BYTES;
    for (unsigned i = 0; i < INHERITED; i++)
        places[i] = 1;
    while (next_record(&dump, &offset, &record)) {
        bool moves = record.id == JIT_CODE_MOVE;
        if (!moves && record.id != JIT_CODE_UNLOAD)
            continue;
        cursor_skip(&record.body, moves ? 8 + 8 + 8 : 8);
        uint64_t addr = cursor_u64(&record.body);
        cursor_skip(&record.body, 8);
        uint64_t index = cursor_u64(&record.body);
        if (index < inherited_below && addr >= INHERITED_ADDR)
            places[(addr - INHERITED_ADDR) / 4096] = moves ? addr : 0;
    }
    free(dump.data);
}

static _Noreturn void be_child(struct jitdump *dump, struct model *model)
{
    uint64_t places[INHERITED];
    set_path(getpid());
    memset(&own, 0, sizeof own);
    own.dump = dump;
    own.model = model;
    random_state = 3;
    change_inherited(dump, 1);
    CHECK(log_ops(&own, OPS / 2) == 0);
    change_inherited(dump, 2);
    CHECK(log_ops(&own, OPS) == 0);
    CHECK(check_dump(path, model, false) >= 1);
    CHECK(jitdump_close(dump) == 0);
    CHECK(check_dump(path, model, false) >= 1);
    find_inherited(places);
    for (unsigned i = 0; i < INHERITED; i++)
        CHECK(places[i] == (i % 3 == 0 ? 1 : i % 3 == 1 ? inherited_addr(i) + 2048 : 0));
    remove_dump(path);
    _exit(0);
}

/* Each has its own ring, and goes on in it. */
static void test_parent_and_child(void **state)
{
    struct model *model = model_new(), *childs = model_new();
    (void)state;
    begin_log(model, 2);
    add_inherited(own.dump);
    inherited_below = inherited[INHERITED - 1] + 1;
    pid_t child = fork();
    if (child == 0)
        be_child(own.dump, childs);
    jitdump_close(own.dump);
    remove_dump(path);
    inherited_below = 0;
    begin_log(model, 2);
    assert_int_equal(log_ops(&own, OPS / 2), 0);
    pid_t idle = fork();
    if (idle == 0)
        _exit(jitdump_close(own.dump) != 0);
    assert_int_equal(log_ops(&own, OPS), 0);
    assert_true(check_dump(path, model, false) >= 1);
    assert_int_equal(wait_for(idle), 0);
    assert_int_equal(wait_for(child), 0);
    assert_int_equal(jitdump_close(own.dump), 0);
    assert_true(check_dump(path, model, false) >= 1);
    remove_dump(path);
    munmap(model, sizeof *model);
    munmap(childs, sizeof *childs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_parent_and_child, forget_mishaps, remove_dir),
        cmocka_unit_test_setup_teardown(test_each_write_fails_once, forget_mishaps, remove_dir),
        cmocka_unit_test_setup_teardown(test_killed_at_each_write, forget_mishaps, remove_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
