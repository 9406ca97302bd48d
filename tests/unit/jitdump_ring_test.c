/* A dump of bounded size: what it keeps of what programs of several habits do, and of one that is
 * killed. */
#include "tests/unit/ring_model.h"

#include <signal.h>

/* ---- Habits ---- */

static void run(const struct habits *habits, uint32_t flags, uint32_t count, uint32_t seed)
{
    static struct state state;
    struct model *model = model_new();
    struct jitdump *dump = open_ring(flags);
    memset(&state, 0, sizeof state);
    random_state = seed;
    for (uint32_t i = 0; i < count; i++) {
        CHECK(log_one(dump, model, &state, habits) == 0);
        if (i % 512 == 0)
            check_bound();
        if (i % (count / 8) == count / 16)
            check_dump(path, model, false);
    }
    CHECK(jitdump_lost(dump) == 0);
    CHECK(check_dump(path, model, false) >= 5);
    CHECK(jitdump_close(dump) == 0);
    check_bound();
    CHECK(count_records(path, JIT_FILLER) <= 4 && count_records(path, JIT_CODE_CLOSE) == 1);
    CHECK(check_dump(path, model, false) >= 5);
    remove_dump(path);
    munmap(model, sizeof *model);
}

static const struct habits replaced = {.functions = 1000, .large = 2};
static const struct habits tidy = {.functions = 1000, .unloads = 40, .moves = 20};

static void test_code_that_is_replaced(void **state)
{
    (void)state;
    run(&replaced, 0, 40000, 1);
}

static void test_code_that_is_moved_and_unloaded(void **state)
{
    (void)state;
    run(&tidy, 0, 60000, 2);
}

/* Parts of functions are overwritten, by code that is moved or unloaded later. */
static void test_code_over_parts_of_code(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 4; seed++)
        run(&wild, 0, 50000, seed);
}

static void test_unmapped(void **state)
{
    (void)state;
    run(&wild, JITDUMP_UNMAPPED, 40000, 5);
}

/* ---- Kills ---- */

/* Logs until it is killed. */
static _Noreturn void log_for_ever(struct model *model, uint32_t seed)
{
    static struct state state;
    struct jitdump *dump = open_ring(0);
    random_state = seed;
    while (model->count + 1 < OPS_MAX)
        CHECK(log_one(dump, model, &state, &wild) == 0);
    _exit(0);
}

/* Whatever a child is doing: what had returned is there, and nothing twice. */
static void test_killed_at_any_moment(void **state)
{
    uint32_t kills = getenv("BRIEF") ? 10 : 100;
    uint64_t rewritten = 0;
    (void)state;
    for (uint32_t i = 0; i < kills; i++) {
        struct model *model = model_new();
        pid_t child = fork();
        if (child == 0)
            log_for_ever(model, i + 1);
        while (atomic_load(&model->returned) < 4000 + 20000 / kills * i) {
            assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
            usleep(50);
        }
        kill(child, SIGKILL);
        assert_int_equal(wait_for(child), 128 + SIGKILL);
        set_path(child);
        rewritten += check_dump(path, model, true) > 0;
        remove_dump(path);
        munmap(model, sizeof *model);
    }
    set_path(getpid());
    assert_true(rewritten > kills / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_killed_at_any_moment, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_code_that_is_replaced, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_code_that_is_moved_and_unloaded, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_code_over_parts_of_code, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_unmapped, make_dir, remove_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
