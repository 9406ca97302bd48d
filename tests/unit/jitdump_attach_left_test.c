/* libjitdump's dumps that begin and end while the process runs: what their runtime leaves half-way,
 * and paths of dumps that end. */
#include "tests/unit/attach_asker.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <sys/wait.h>

/* ---- What is left in the middle ---- */

struct leaver {
    struct told told;
    bool leaves, ends; /* by a longjmp, or with its thread */
    int cancel_state;
    jmp_buf where;
};

/* A request that comes meanwhile is not for a poll in here. */
static void tell_and_leave(struct jitdump *dump, void *user)
{
    struct leaver *leaver = user;
    ask(ATTACH_ON, dir);
    tell_live(dump, &leaver->told);
    if (leaver->ends)
        pthread_exit(NULL);
    if (leaver->leaves)
        longjmp(leaver->where, 1);
}

static unsigned count_loads(void)
{
    struct dump_bytes dump = read_dump(path);
    struct record record;
    unsigned loads = 0;
    for (size_t offset = JITHEADER_BYTES; next_record(&dump, &offset, &record);)
        loads += record.id == JIT_CODE_LOAD;
    free(dump.data);
    return loads;
}

static void check_asked_again(struct jitdump *dump, struct leaver *leaver)
{
    assert_int_equal(leaver->told.calls, 1);
    assert_int_equal(answer_of(getpid()).state, ATTACH_IS_TELLING);
    leaver->leaves = leaver->ends = false;
    uint32_t request = ask(ATTACH_ON, dir);
    assert_int_equal(jitdump_poll(dump, tell_live, &leaver->told), 0);
    assert_int_equal(leaver->told.calls, 2);
    assert_int_equal(answer_of(getpid()).request, request);
    assert_int_equal(answer_of(getpid()).state, ATTACH_IS_ON);
    ask(ATTACH_OFF, NULL);
    assert_int_equal(jitdump_poll(dump, NULL, NULL), 0);
    assert_int_equal(answer_of(getpid()).state, ATTACH_IS_OFF);
    assert_int_equal(jitdump_close(dump), 0);
    assert_int_equal(count_loads(), 2 * LIVE);
}

/* Deeper in the stack than the next poll. */
static __attribute__((noinline)) void poll_and_leave(struct jitdump *dump, struct leaver *leaver)
{
    volatile char deep[1 << 16];
    deep[0] = 0;
    if (setjmp(leaver->where) == 0)
        jitdump_poll(dump, tell_and_leave, leaver);
    deep[1] = deep[0];
}

static void test_left_by_a_longjmp(void **state)
{
    struct jitdump *dump = open_attachable();
    static struct leaver leaver;
    (void)state;
    leaver = (struct leaver){.leaves = true};
    ask(ATTACH_ON, dir);
    poll_and_leave(dump, &leaver);
    check_asked_again(dump, &leaver);
}

/* Cancellation is as the thread had it, in EMIT_ALL and after it was left. */
static void tell_and_look(struct jitdump *dump, void *user)
{
    int state;
    CHECK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state) == 0);
    CHECK(state == ((struct leaver *)user)->cancel_state);
    CHECK(pthread_setcancelstate(state, &state) == 0);
    tell_and_leave(dump, user);
}

static __attribute__((noinline)) int cancel_state_after(struct jitdump *dump, struct leaver *leaver)
{
    int state;
    ask(ATTACH_ON, dir);
    if (setjmp(leaver->where) == 0)
        jitdump_poll(dump, tell_and_look, leaver);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
    return state;
}

static void *leave_and_look(void *argument)
{
    static struct leaver leaver;
    struct jitdump *dump = argument;
    int old;
    for (int leaves = 0; leaves < 2; leaves++)
        for (int wanted = 0; wanted < 2; wanted++) {
            int state = wanted ? PTHREAD_CANCEL_ENABLE : PTHREAD_CANCEL_DISABLE;
            leaver = (struct leaver){.leaves = leaves == 1, .cancel_state = state};
            pthread_setcancelstate(state, &old);
            CHECK(cancel_state_after(dump, &leaver) == state);
            ask(ATTACH_OFF, NULL);
            CHECK(jitdump_poll(dump, NULL, NULL) == 0);
        }
    return NULL;
}

static void test_cancellation_is_as_it_was_after_a_longjmp(void **state)
{
    struct jitdump *dump = open_attachable();
    pthread_t thread;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, leave_and_look, dump), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(jitdump_close(dump), 0);
}

/* A poll that opens or closes a dump is no cancellation point. */
static void *poll_cancelled(void *argument)
{
    struct jitdump *dump = argument;
    int state;
    pthread_cancel(pthread_self());
    for (int on = 1; on >= 0; on--) {
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
        ask(on ? ATTACH_ON : ATTACH_OFF, dir);
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
        CHECK(jitdump_poll(dump, NULL, NULL) == 0);
    }
    return dump;
}

static void test_a_poll_is_not_cancelled(void **state)
{
    struct jitdump *dump = open_attachable();
    pthread_t thread;
    void *result;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, poll_cancelled, dump), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, dump);
    assert_int_equal(answer_of(getpid()).state, ATTACH_IS_OFF);
    assert_int_equal(jitdump_close(dump), 0);
    check_inventory(path, 0, 1);
}

static struct jitdump *polled;

static void *poll_once(void *leaver)
{
    jitdump_poll(polled, tell_and_leave, leaver);
    return NULL;
}

static void test_left_by_a_thread_that_ends(void **state)
{
    static struct leaver leaver;
    pthread_t thread;
    (void)state;
    polled = open_attachable();
    leaver = (struct leaver){.ends = true};
    ask(ATTACH_ON, dir);
    assert_int_equal(pthread_create(&thread, NULL, poll_once, &leaver), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    check_asked_again(polled, &leaver);
}

static void tell_and_fork(struct jitdump *dump, void *user)
{
    tell_live(dump, user);
    if (fork() == 0)
        return; /* against the contract */
    CHECK(wait(NULL) > 0);
}

static void test_a_child_forked_while_code_is_told_leaves_the_page_alone(void **state)
{
    struct jitdump *dump = open_attachable();
    struct told told = {0};
    pid_t parent = getpid();
    (void)state;
    struct switch_page page = page_of(parent, 0);
    ask(ATTACH_ON, dir);
    assert_int_equal(jitdump_poll(dump, tell_and_fork, &told), 0);
    if (getpid() != parent) {
        static struct switch_answer answer;
        _exit(switch_page_read(&page, &answer) || answer.state != ATTACH_IS_TELLING);
    }
    switch_page_close(&page);
    assert_int_equal(answer_of(parent).state, ATTACH_IS_ON);
    assert_int_equal(jitdump_close(dump), 0);
}

/* ---- The path ---- */

static atomic_bool paths_are_enough;

static void *read_paths(void *dump)
{
    while (!atomic_load(&paths_are_enough))
        CHECK(jitdump_path(dump) != NULL);
    return NULL;
}

/* The sanitizer tells if what was freed is read. */
static void test_the_path_is_asked_for_while_dumps_end(void **state)
{
    struct jitdump *dump = open_attachable();
    struct told told = {0};
    pthread_t reader;
    (void)state;
    atomic_store(&paths_are_enough, false);
    assert_int_equal(pthread_create(&reader, NULL, read_paths, dump), 0);
    for (int i = 0; i < 100; i++) {
        ask(i % 2 ? ATTACH_OFF : ATTACH_ON, dir);
        assert_int_equal(jitdump_poll(dump, tell_live, &told), 0);
    }
    atomic_store(&paths_are_enough, true);
    assert_int_equal(pthread_join(reader, NULL), 0);
    assert_int_equal(jitdump_close(dump), 0);
}

static void test_a_path_lives_until_another_dump_is_opened(void **state)
{
    struct jitdump *dump = open_attachable();
    struct told told = {0};
    (void)state;
    ask(ATTACH_ON, dir);
    assert_int_equal(jitdump_poll(dump, tell_live, &told), 0);
    const char *old = jitdump_path(dump);
    ask(ATTACH_OFF, NULL);
    assert_int_equal(jitdump_poll(dump, tell_live, &told), 0);
    assert_string_equal(old, path);
    assert_string_equal(jitdump_path(dump), "");
    assert_int_equal(jitdump_close(dump), 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_left_by_a_longjmp),
        TEST(test_cancellation_is_as_it_was_after_a_longjmp),
        TEST(test_a_poll_is_not_cancelled),
        TEST(test_left_by_a_thread_that_ends),
        TEST(test_a_child_forked_while_code_is_told_leaves_the_page_alone),
        TEST(test_the_path_is_asked_for_while_dumps_end),
        TEST(test_a_path_lives_until_another_dump_is_opened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
