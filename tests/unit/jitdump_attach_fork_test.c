/* libjitdump's dumps that begin and end while the process runs, among forks and threads. */
#include "jitdump/handle/handle.h"
#include "tests/unit/attach_asker.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

static atomic_bool stop_making;

/* ---- Forks ---- */

static int from_child[2], to_child[2];

static void say(int fd)
{
    CHECK(write(fd, "", 1) == 1);
}

static void hear(int fd)
{
    char byte;
    CHECK(read(fd, &byte, 1) == 1);
}

/* A child polls when it is told to. */
static void polling_child(struct jitdump *dump)
{
    struct told told = {0};
    const volatile uint32_t *word = jitdump_poll_word(dump);
    say(from_child[1]);
    hear(to_child[0]); /* the page was asked to split */
    CHECK(*word == ATTACH_SPLIT);
    CHECK(jitdump_poll(dump, tell_live, &told) == 0);
    CHECK(*word == ATTACH_QUIET && jitdump_poll_word(dump) == word);
    say(from_child[1]);
    hear(to_child[0]); /* it was asked for its dump */
    CHECK(*word == ATTACH_ASK);
    CHECK(jitdump_poll(dump, tell_live, &told) == 0);
    CHECK(told.calls == 1 && strcmp(jitdump_path(dump), path) == 0);
    say(from_child[1]);
    hear(to_child[0]); /* the parent was asked for its own */
    CHECK(*word == ATTACH_QUIET);
    CHECK(jitdump_close(dump) == 0);
    check_inventory(path, LIVE, 1);
}

static void test_parent_and_child_are_asked_each_by_itself(void **state)
{
    struct jitdump *dump = open_attachable();
    struct told told = {0};
    uint32_t request;
    (void)state;
    assert_int_equal(pipe(from_child), 0);
    assert_int_equal(pipe(to_child), 0);
    pid_t child = start_child(polling_child, dump);
    hear(from_child[0]);
    struct switch_page page = page_of(child, 0);
    assert_int_equal(page.owner, getpid()); /* it is the parent's */
    assert_int_equal(switch_page_split(&page, true), 0);
    assert_int_equal(jitdump_poll(dump, tell_live, &told), 0);
    say(to_child[1]);
    hear(from_child[0]);
    assert_int_equal(switch_page_split(&page, false), 0);
    switch_page_close(&page);
    page = page_of(child, 0);
    assert_int_equal(page.owner, child);
    assert_int_equal(switch_page_ask(&page, ATTACH_ON, dir, &request), 0);
    assert_int_equal(*jitdump_poll_word(dump), 0);
    assert_int_equal(jitdump_poll(dump, tell_live, &told), 0);
    assert_int_equal(jitdump_is_on(dump), 0);
    say(to_child[1]);
    hear(from_child[0]);
    ask(ATTACH_ON, dir);
    say(to_child[1]);
    assert_int_equal(wait_for(child), 0);
    assert_int_equal(jitdump_poll(dump, tell_live, &told), 0);
    assert_int_equal(told.calls, 1);
    switch_page_close(&page);
    assert_int_equal(jitdump_close(dump), 0);
    check_inventory(path, LIVE, 1);
    for (int i = 0; i < 2; i++) {
        close(from_child[i]);
        close(to_child[i]);
    }
}

/* It logs to a dump of its own, as ever, and has nothing to do with its parent's end. */
static void child_of_attached(struct jitdump *dump)
{
    struct told told = {0};
    uint64_t code_index;
    CHECK(add_function(dump, 1, 0, &code_index) == 0);
    CHECK(code_index == LIVE);
    CHECK(jitdump_unload_code(dump, 0, 1, 2) == 0); /* the parent's: it is the child's as well */
    struct switch_page page = page_of(getpid(), 0);
    CHECK(switch_page_split(&page, true) == 0);
    CHECK(jitdump_poll(dump, tell_live, &told) == 0);
    ask(ATTACH_OFF, NULL);
    CHECK(jitdump_poll(dump, tell_live, &told) == 0);
    CHECK(!jitdump_is_on(dump));
    check_inventory(path, 1, 2);
    switch_page_split(&page, false);
    switch_page_close(&page);
    CHECK(jitdump_close(dump) == 0);
}

/* One that never logged is asked to: it tells all that is alive. */
static void idle_child_of_attached(struct jitdump *dump)
{
    struct told told = {0};
    struct switch_page page = page_of(getpid(), 0);
    CHECK(switch_page_split(&page, true) == 0);
    CHECK(jitdump_poll(dump, tell_live, &told) == 0);
    ask(ATTACH_ON, dir);
    CHECK(jitdump_poll(dump, tell_live, &told) == 0);
    CHECK(told.calls == 1);
    CHECK(jitdump_close(dump) == 0);
    check_inventory(path, LIVE, 1);
    switch_page_split(&page, false);
    switch_page_close(&page);
}

/* One that logs is asked: it says where, and tells all that is alive. */
static void asked_child_of_attached(struct jitdump *dump)
{
    struct told told = {0};
    struct switch_page page = page_of(getpid(), 0);
    CHECK(add_function(dump, 1, 0, NULL) == 0);
    CHECK(switch_page_split(&page, true) == 0);
    CHECK(jitdump_poll(dump, tell_live, &told) == 0);
    for (int i = 0; i < 2; i++) {
        ask(ATTACH_ON, dir);
        CHECK(jitdump_poll(dump, tell_live, &told) == 0);
        CHECK(told.calls == 1);
        CHECK(answer_of(getpid()).state == ATTACH_IS_ON);
        CHECK(answer_of(getpid()).functions == LIVE);
        CHECK(strcmp(answer_of(getpid()).path, path) == 0);
    }
    switch_page_split(&page, false);
    switch_page_close(&page);
    CHECK(jitdump_close(dump) == 0);
    check_inventory(path, LIVE + 1, 1);
}

/* The other order: it has a page of its own before it logs. */
static void child_that_polled_first(struct jitdump *dump)
{
    struct told told = {0};
    struct switch_page page = page_of(getpid(), 0);
    CHECK(switch_page_split(&page, true) == 0);
    CHECK(jitdump_poll(dump, tell_live, &told) == 0);
    CHECK(add_function(dump, 1, 0, NULL) == 0);
    ask(ATTACH_ON, dir);
    CHECK(jitdump_poll(dump, tell_live, &told) == 0);
    CHECK(told.calls == 1 && strcmp(answer_of(getpid()).path, path) == 0);
    ask(ATTACH_OFF, NULL);
    CHECK(jitdump_poll(dump, tell_live, &told) == 0);
    CHECK(strcmp(answer_of(getpid()).path, path) == 0); /* that it closed */
    ask(ATTACH_OFF, NULL);
    CHECK(jitdump_poll(dump, tell_live, &told) == 0);
    CHECK(strcmp(answer_of(getpid()).path, "") == 0);
    check_inventory(path, LIVE + 1, 1);
    switch_page_split(&page, false);
    switch_page_close(&page);
    CHECK(jitdump_close(dump) == 0);
}

static void test_children_of_a_process_that_logs(void **state)
{
    struct jitdump *dump = open_attachable();
    struct told told = {0};
    (void)state;
    ask(ATTACH_ON, dir);
    assert_int_equal(jitdump_poll(dump, tell_live, &told), 0);
    assert_int_equal(run_in_child(child_of_attached, dump), 0);
    assert_int_equal(run_in_child(idle_child_of_attached, dump), 0);
    assert_int_equal(run_in_child(asked_child_of_attached, dump), 0);
    assert_int_equal(run_in_child(child_that_polled_first, dump), 0);
    assert_int_equal(jitdump_is_on(dump), 1);
    assert_int_equal(add_function(dump, 2, 0, NULL), 0);
    assert_int_equal(jitdump_close(dump), 0);
    check_inventory(path, LIVE + 1, 1);
}

static void child_that_closes(struct jitdump *dump)
{
    CHECK(jitdump_close(dump) == 0);
}

static void test_a_child_that_closes_leaves_the_parent_alone(void **state)
{
    struct jitdump *dump = open_attachable();
    struct told told = {0};
    (void)state;
    assert_int_equal(run_in_child(child_that_closes, dump), 0);
    ask(ATTACH_ON, dir);
    assert_int_equal(jitdump_poll(dump, tell_live, &told), 0);
    assert_int_equal(run_in_child(child_that_closes, dump), 0);
    assert_int_equal(jitdump_close(dump), 0);
    check_inventory(path, LIVE, 1);
}

static unsigned ended_dumps(const struct jitdump *dump)
{
    unsigned count = 0;
    for (const struct dump_file *file = dump->retired; file; file = file->next_retired)
        count++;
    return count;
}

static void child_of_a_process_in_a_call(struct jitdump *dump)
{
    struct told told = {0};
    struct switch_page page = page_of(getpid(), 0);
    CHECK(switch_page_split(&page, true) == 0);
    CHECK(jitdump_poll(dump, tell_live, &told) == 0);
    for (int i = 0; i < 20; i++) {
        ask(i % 2 ? ATTACH_OFF : ATTACH_ON, dir);
        CHECK(jitdump_poll(dump, tell_live, &told) == 0);
    }
    CHECK(told.calls == 10);
    CHECK(ended_dumps(dump) <= 2); /* the newest is kept, and what was inherited */
    switch_page_split(&page, false);
    switch_page_close(&page);
    CHECK(jitdump_close(dump) == 0);
}

static void test_ended_dumps_are_freed_in_a_child_of_a_process_in_a_call(void **state)
{
    struct jitdump *dump = open_attachable();
    (void)state;
    jd_handle_enter(dump); /* as another thread's call does */
    assert_int_equal(run_in_child(child_of_a_process_in_a_call, dump), 0);
    jd_handle_leave(dump);
    assert_int_equal(jitdump_close(dump), 0);
}

/* ---- Threads ---- */

static void *add_large_functions(void *argument)
{
    static char code[40 << 10];
    struct jitdump *dump = argument;
    while (!atomic_load(&stop_making))
        CHECK(jitdump_add(dump, "large", code, sizeof code, NULL) == 0);
    return NULL;
}

static void test_a_detach_during_a_large_add_is_no_error(void **state)
{
    struct jitdump *dump = open_attachable();
    pthread_t thread;
    (void)state;
    atomic_store(&stop_making, false);
    assert_int_equal(pthread_create(&thread, NULL, add_large_functions, dump), 0);
    for (int i = 0; i < 100; i++) {
        ask(i % 2 ? ATTACH_OFF : ATTACH_ON, dir);
        assert_int_equal(jitdump_poll(dump, NULL, NULL), 0);
        usleep(500);
    }
    atomic_store(&stop_making, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_string_equal(jitdump_error(dump), "");
    assert_int_equal(jitdump_lost(dump), 0);
    assert_int_equal(jitdump_close(dump), 0);
}

static sem_t telling, told_all;

static void tell_slowly(struct jitdump *dump, void *user)
{
    sem_post(&telling);
    sem_wait(&told_all);
    tell_live(dump, user);
}

static void *poll_once(void *dump)
{
    struct told told = {0};
    CHECK(jitdump_poll(dump, tell_slowly, &told) == 0);
    return NULL;
}

static void test_others_go_on_while_one_tells(void **state)
{
    struct jitdump *dump = open_attachable();
    pthread_t thread;
    uint64_t code_index;
    (void)state;
    sem_init(&telling, 0, 0);
    sem_init(&told_all, 0, 0);
    ask(ATTACH_ON, dir);
    assert_int_equal(pthread_create(&thread, NULL, poll_once, dump), 0);
    sem_wait(&telling);
    assert_int_equal(answer_of(getpid()).state, ATTACH_IS_TELLING);
    assert_int_equal(add_function(dump, 1, 0, &code_index), 0);
    assert_int_equal(code_index, 0);
    ask(ATTACH_OFF, NULL); /* it waits until that is done */
    assert_int_equal(jitdump_poll(dump, tell_live, NULL), 0);
    assert_int_equal(jitdump_is_on(dump), 1);
    sem_post(&told_all);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(jitdump_poll(dump, tell_live, NULL), 0);
    assert_int_equal(jitdump_is_on(dump), 0);
    check_inventory(path, LIVE + 1, 1);
    assert_int_equal(jitdump_close(dump), 0);
}

/* Functions are made all the time; each is known to who tells all before it is added. */
enum { MAKERS = 4, SWITCHES = 30, EACH_LASTS = 400, EACH_MAKES = 200 };

struct maker {
    struct jitdump *dump;
    unsigned thread;
    pthread_t id;
    _Atomic unsigned known, added;
};

static struct maker makers[MAKERS];
static _Atomic unsigned may_know; /* so many functions each maker may make until the next switch */

static void tell_known(struct jitdump *dump, void *user)
{
    (void)user;
    for (unsigned i = 0; i < MAKERS; i++)
        for (unsigned j = 0; j < atomic_load(&makers[i].known); j++)
            CHECK(add_function(dump, i, j, NULL) == 0);
}

static void make_function(struct maker *maker, unsigned number)
{
    atomic_store(&maker->known, number + 1);
    CHECK(add_function(maker->dump, maker->thread, number, NULL) == 0);
    atomic_store(&maker->added, number + 1);
}

/* Some for each switch, however long that takes on a busy machine: all that are known are told at
 * each. */
static void *make_functions(void *argument)
{
    struct maker *maker = argument;
    unsigned count = 0;
    while (!atomic_load(&stop_making)) {
        if (count < atomic_load(&may_know))
            make_function(maker, count++);
        CHECK(jitdump_poll(maker->dump, tell_known, NULL) == 0);
        usleep(20);
    }
    return NULL;
}

/* Which functions are in the dump of FILE_PATH, maybe more than once. */
static void look_for(const char *file_path, const unsigned wanted[MAKERS])
{
    static bool seen[MAKERS][FUNCTIONS_MAX];
    struct dump_bytes bytes = read_dump(file_path);
    struct record record;
    size_t offset = JITHEADER_BYTES;
    unsigned thread, sequence;
    bool closed = false;
    memset(seen, 0, sizeof seen);
    while (next_record(&bytes, &offset, &record)) {
        if (record.id == JIT_CODE_UNWINDING_INFO) {
            check_group(&bytes, &offset, record, &thread, &sequence);
            seen[thread][sequence] = true;
        }
        closed |= record.id == JIT_CODE_CLOSE;
    }
    CHECK(closed);
    for (unsigned i = 0; i < MAKERS; i++)
        for (unsigned j = 0; j < wanted[i]; j++)
            CHECK(seen[i][j]);
    free(bytes.data);
}

static void await_state(enum attach_state state)
{
    while (answer_of(getpid()).state != state)
        usleep(200);
}

static void test_nothing_is_lost_between_threads(void **state)
{
    struct jitdump *dump = open_attachable();
    char file_path[128];
    unsigned wanted[MAKERS];
    (void)state;
    atomic_store(&stop_making, false);
    atomic_store(&may_know, 0);
    for (unsigned i = 0; i < MAKERS; i++) {
        makers[i].dump = dump;
        makers[i].thread = i;
        assert_int_equal(pthread_create(&makers[i].id, NULL, make_functions, &makers[i]), 0);
    }
    for (unsigned i = 0; i < SWITCHES; i++) {
        atomic_fetch_add(&may_know, EACH_MAKES);
        ask(ATTACH_ON, dir);
        await_state(ATTACH_IS_ON);
        usleep(EACH_LASTS);
        for (unsigned j = 0; j < MAKERS; j++)
            wanted[j] = atomic_load(&makers[j].added);
        ask(ATTACH_OFF, NULL);
        await_state(ATTACH_IS_OFF);
        numbered_path(file_path, i + 1);
        look_for(file_path, wanted);
    }
    atomic_store(&stop_making, true);
    for (unsigned i = 0; i < MAKERS; i++)
        assert_int_equal(pthread_join(makers[i].id, NULL), 0);
    assert_int_equal(jitdump_lost(dump), 0);
    assert_string_equal(jitdump_error(dump), "");
    assert_int_equal(jitdump_close(dump), 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_parent_and_child_are_asked_each_by_itself),
        TEST(test_children_of_a_process_that_logs),
        TEST(test_a_child_that_closes_leaves_the_parent_alone),
        TEST(test_ended_dumps_are_freed_in_a_child_of_a_process_in_a_call),
        TEST(test_a_detach_during_a_large_add_is_no_error),
        TEST(test_others_go_on_while_one_tells),
        TEST(test_nothing_is_lost_between_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
