/* libjitdump's dumps that begin and end while the process runs: the page, hostile values on it,
 * forks, threads, sandboxes, and what remains of what was there before. */
#include "injector/attach/switch_list.h"
#include "tests/unit/jitdump_inventory.h"
#include "tests/unit/refused_call.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* ---- A runtime and who asks it ---- */

enum { LIVE = 3 };

struct told {
    unsigned calls;
    uint64_t indices[LIVE];
};

/* The runtime has LIVE functions. */
static void tell_live(struct jitdump *dump, void *user)
{
    struct told *told = user;
    told->calls++;
    CHECK(jitdump_is_on(dump));
    CHECK(jitdump_poll(dump, tell_live, user) == 0); /* does nothing, in here */
    for (unsigned i = 0; i < LIVE; i++)
        CHECK(add_function(dump, 0, i, &told->indices[i]) == 0);
}

static struct jitdump *open_attachable(void)
{
    struct jitdump_options options = JITDUMP_OPTIONS_INIT;
    struct jitdump *dump;
    options.flags = JITDUMP_ATTACHABLE;
    CHECK(jitdump_open(&dump, &options) == 0);
    CHECK(dump != NULL);
    return dump;
}

/* The page number INDEX of PROCESS, open. */
static struct switch_page page_of(pid_t process, size_t index)
{
    struct switch_list list;
    struct switch_page page;
    CHECK(switch_list_read(&list, process) == 0);
    CHECK(list.count > index);
    page = list.pages[index];
    CHECK(switch_page_open(&page) == 0);
    switch_list_free(&list);
    return page;
}

static uint32_t ask(enum attach_wanted wanted, const char *where)
{
    struct switch_page page = page_of(getpid(), 0);
    uint32_t request;
    CHECK(switch_page_ask(&page, wanted, where, &request) == 0);
    switch_page_close(&page);
    return request;
}

static struct switch_answer answer_of(pid_t process)
{
    static struct switch_answer answer;
    struct switch_page page = page_of(process, 0);
    CHECK(switch_page_read(&page, &answer) == 0);
    switch_page_close(&page);
    return answer;
}

/* Where the N-th dump of this process is, from 1. */
static void numbered_path(char to[128], unsigned number)
{
    int pid = (int)getpid();
    if (number == 1)
        snprintf(to, 128, "%s/jitdump-%d/jit-%d.dump", dir, pid, pid);
    else
        snprintf(to, 128, "%s/jitdump-%d-%u/jit-%d.dump", dir, pid, number, pid);
}

/* ---- Off ---- */

static void test_nothing_is_there_until_it_is_asked_for(void **state)
{
    struct jitdump *dump = open_attachable();
    struct told told = {0};
    uint64_t code_index = 5;
    (void)state;
    assert_int_equal(jitdump_is_on(dump), 0);
    assert_int_equal(*jitdump_poll_word(dump), 0);
    assert_int_equal(jitdump_poll(dump, tell_live, &told), 0);
    assert_int_equal(add_function(dump, 0, 0, &code_index), 0);
    assert_true(code_index == JITDUMP_NO_CODE);
    assert_int_equal(jitdump_move_code(dump, 0, 1, 2, 3), 0);
    assert_int_equal(jitdump_unload_code(dump, 0, 1, 2), 0);
    assert_int_equal(told.calls, 0);
    assert_int_equal(jitdump_lost(dump), 0);
    assert_string_equal(jitdump_path(dump), "");
    assert_string_equal(jitdump_error(dump), "");
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(jitdump_close(dump), 0);
    struct switch_list list;
    assert_int_equal(switch_list_read(&list, getpid()), 0);
    assert_int_equal(list.count, 0);
    switch_list_free(&list);
}

static void test_only_who_wants_it_can_be_asked(void **state)
{
    struct jitdump *dump;
    (void)state;
    assert_int_equal(jitdump_open(&dump, NULL), 0);
    assert_null(dump);
    assert_int_equal(*jitdump_poll_word(NULL), 0);
    assert_int_equal(jitdump_poll(NULL, tell_live, NULL), 0);
    assert_int_equal(jitdump_is_on(NULL), 0);
    setenv("PERFJIT", "map,attach", 1);
    assert_int_equal(jitdump_open(&dump, NULL), 0);
    assert_non_null(dump);
    assert_ptr_not_equal(jitdump_poll_word(dump), jitdump_poll_word(NULL));
    assert_int_equal(jitdump_close(dump), 0);
    assert_int_equal(try_open(&dump), 0); /* JITDUMP_ALWAYS */
    assert_int_equal(jitdump_is_on(dump), 1);
    assert_int_equal(answer_of(getpid()).state, ATTACH_IS_ON); /* and PERFJIT=attach */
    assert_string_equal(answer_of(getpid()).path, path);
    assert_int_equal(jitdump_close(dump), 0);
    unsetenv("PERFJIT");
    assert_int_equal(try_open(&dump), 0);
    assert_ptr_equal(jitdump_poll_word(dump), jitdump_poll_word(NULL));
    assert_int_equal(jitdump_close(dump), 0);
}

/* ---- On and off ---- */

static void test_on_off_and_on_again(void **state)
{
    struct jitdump *dump = open_attachable();
    struct told told = {0};
    char second[128];
    uint64_t code_index;
    (void)state;
    uint32_t request = ask(ATTACH_ON, dir);
    assert_int_not_equal(*jitdump_poll_word(dump), 0);
    errno = 4711;
    assert_int_equal(jitdump_poll(dump, tell_live, &told), 0);
    assert_int_equal(errno, 4711);
    assert_int_equal(told.calls, 1);
    assert_string_equal(jitdump_path(dump), path);
    struct switch_answer answer = answer_of(getpid());
    assert_int_equal(answer.request, request);
    assert_int_equal(answer.state, ATTACH_IS_ON);
    assert_int_equal(answer.error, 0);
    assert_int_equal(answer.functions, LIVE);
    assert_string_equal(answer.path, path);
    assert_int_equal(add_function(dump, 1, 0, &code_index), 0);
    assert_int_equal(code_index, LIVE);
    assert_int_equal(jitdump_unload_code(dump, told.indices[0], 1, 2), 0);
    assert_int_equal(jitdump_poll(dump, tell_live, &told), 0);
    assert_int_equal(told.calls, 1);

    ask(ATTACH_OFF, NULL);
    assert_int_equal(jitdump_poll(dump, tell_live, &told), 0);
    assert_int_equal(answer_of(getpid()).state, ATTACH_IS_OFF);
    assert_int_equal(jitdump_is_on(dump), 0);
    check_inventory(path, LIVE + 1, 2); /* the unload, and CLOSE */
    assert_int_equal(add_function(dump, 1, 1, &code_index), 0);
    assert_true(code_index == JITDUMP_NO_CODE);
    check_inventory(path, LIVE + 1, 2);

    ask(ATTACH_ON, dir);
    assert_int_equal(jitdump_poll(dump, tell_live, &told), 0);
    assert_int_equal(told.indices[0], LIVE + 1);             /* none is used again */
    assert_int_equal(jitdump_unload_code(dump, 1, 1, 2), 0); /* of the first dump: ignored */
    assert_int_equal(jitdump_move_code(dump, LIVE, 1, 2, 3), 0);
    assert_int_equal(jitdump_lost(dump), 0);
    assert_int_equal(jitdump_close(dump), 0);
    numbered_path(second, 2);
    check_inventory(second, LIVE, 1);
}

static void test_asked_twice(void **state)
{
    struct jitdump *dump = open_attachable();
    struct told told = {0};
    (void)state;
    for (int i = 0; i < 2; i++) {
        ask(ATTACH_ON, dir);
        assert_int_equal(jitdump_poll(dump, tell_live, &told), 0);
        assert_int_equal(answer_of(getpid()).state, ATTACH_IS_ON);
    }
    assert_int_equal(told.calls, 1);
    for (int i = 0; i < 2; i++) {
        ask(ATTACH_OFF, NULL);
        assert_int_equal(jitdump_poll(dump, NULL, NULL), 0);
        assert_int_equal(answer_of(getpid()).state, ATTACH_IS_OFF);
    }
    assert_int_equal(jitdump_close(dump), 0);
    check_inventory(path, LIVE, 1);
}

static void test_a_dump_from_the_start_can_be_closed(void **state)
{
    struct jitdump_options options = options_in_dir();
    struct jitdump *dump;
    struct told told = {0};
    char second[128];
    (void)state;
    options.flags |= JITDUMP_ATTACHABLE;
    assert_int_equal(jitdump_open(&dump, &options), 0);
    assert_int_equal(add_function(dump, 0, 7, NULL), 0);
    ask(ATTACH_OFF, NULL);
    assert_int_equal(jitdump_poll(dump, tell_live, &told), 0);
    check_inventory(path, 1, 1);
    ask(ATTACH_ON, NULL); /* to the handle's own directory */
    assert_int_equal(jitdump_poll(dump, tell_live, &told), 0);
    assert_int_equal(jitdump_close(dump), 0);
    numbered_path(second, 2);
    check_inventory(second, LIVE, 1);
}

static void test_a_directory_that_does_not_do(void **state)
{
    struct jitdump *dump = open_attachable();
    struct told told = {0};
    char missing[128];
    (void)state;
    snprintf(missing, sizeof missing, "%s/missing", dir);
    ask(ATTACH_ON, missing);
    assert_int_equal(jitdump_poll(dump, tell_live, &told), -ENOENT);
    struct switch_answer answer = answer_of(getpid());
    assert_int_equal(answer.error, -ENOENT);
    assert_int_equal(answer.state, ATTACH_IS_OFF);
    assert_non_null(strstr(answer.text, missing));
    assert_int_equal(jitdump_is_on(dump), 0);
    assert_int_equal(jitdump_lost(dump), 0);
    ask(ATTACH_ON, "relative");
    assert_int_equal(jitdump_poll(dump, tell_live, &told), -EINVAL);
    ask(ATTACH_ON, dir); /* it is no worse for that */
    assert_int_equal(jitdump_poll(dump, tell_live, &told), 0);
    assert_int_equal(told.calls, 1);
    assert_int_equal(jitdump_close(dump), 0);
    check_inventory(path, LIVE, 1);
}

/* ---- Who writes anything ---- */

static void put(const struct switch_page *page, size_t at, const void *bytes, size_t count)
{
    assert_int_equal(pwrite(page->fd, bytes, count, (off_t)at), count);
}

static void put_u32(const struct switch_page *page, size_t at, uint32_t value)
{
    put(page, at, &value, sizeof value);
}

static void test_hostile_values(void **state)
{
    struct jitdump *dump = open_attachable();
    struct told told = {0};
    struct switch_page page = page_of(getpid(), 0);
    char text[ATTACH_PATH_BYTES];
    uint32_t request;
    (void)state;
    memset(text, 'x', sizeof text); /* no NUL, not absolute */
    put(&page, offsetof(struct attach_page, dir), text, sizeof text);
    put_u32(&page, offsetof(struct attach_page, wanted), ATTACH_ON);
    put_u32(&page, offsetof(struct attach_page, request), 7);
    put_u32(&page, offsetof(struct attach_page, word), ATTACH_ASK);
    assert_int_equal(jitdump_poll(dump, tell_live, &told), -EINVAL);
    text[0] = '/'; /* absolute, but longer than any path */
    put(&page, offsetof(struct attach_page, dir), text, sizeof text);
    put_u32(&page, offsetof(struct attach_page, request), 8);
    put_u32(&page, offsetof(struct attach_page, word), ATTACH_ASK);
    assert_int_equal(jitdump_poll(dump, tell_live, &told), -ENAMETOOLONG);
    put_u32(&page, offsetof(struct attach_page, word), ATTACH_ASK); /* the same once more */
    assert_int_equal(jitdump_poll(dump, tell_live, &told), 0);
    put_u32(&page, offsetof(struct attach_page, word), 0xdeadbeef);
    assert_int_equal(jitdump_poll(dump, tell_live, &told), 0);
    assert_int_equal(*jitdump_poll_word(dump), 0);
    assert_int_equal(switch_page_ask(&page, (enum attach_wanted)99, dir, &request), 0);
    assert_int_equal(jitdump_poll(dump, tell_live, &told), -EINVAL);
    assert_int_equal(told.calls, 0);
    assert_int_equal(jitdump_lost(dump), 0);
    ask(ATTACH_ON, dir);
    assert_int_equal(jitdump_poll(dump, tell_live, &told), 0);
    switch_page_close(&page);
    assert_int_equal(jitdump_close(dump), 0);
    check_inventory(path, LIVE, 1);
}

/* Any bytes at any place, again and again; but for the directory, below which nothing is. */
static void test_random_values(void **state)
{
    enum { ROUNDS = 20000, FREE_FROM = ATTACH_PATH_BYTES + 32 };
    struct jitdump *dump = open_attachable();
    struct told told = {0};
    struct switch_page page = page_of(getpid(), 0);
    uint32_t random = 1;
    (void)state;
    put(&page, offsetof(struct attach_page, dir), "/dev/null/x", 12);
    for (int i = 0; i < ROUNDS; i++) {
        random = random * 1664525 + 1013904223;
        size_t at = random >> 8 & 1 ? (random >> 10) % 29 : FREE_FROM + (random >> 10) % 8000;
        put_u32(&page, at, random >> 9 & 1 ? random >> 28 : random);
        if (i % 3 == 0)
            put_u32(&page, offsetof(struct attach_page, word), ATTACH_ASK);
        jitdump_poll(dump, tell_live, &told);
        put(&page, offsetof(struct attach_page, dir), "/dev/null/x", 12);
    }
    assert_int_equal(told.calls, 0);
    put_u32(&page, offsetof(struct attach_page, request), 0);
    put(&page, 0, ATTACH_PAGE_MAGIC, 8);
    put_u32(&page, offsetof(struct attach_page, version), ATTACH_PAGE_VERSION);
    do { /* its number may be that of the last one */
        ask(ATTACH_ON, dir);
        jitdump_poll(dump, tell_live, &told);
    } while (!told.calls);
    switch_page_close(&page);
    assert_int_equal(jitdump_close(dump), 0);
    check_inventory(path, LIVE, 1);
}

static void test_the_page_cannot_be_taken_away(void **state)
{
    struct jitdump *dump = open_attachable();
    struct told told = {0};
    struct switch_page page = page_of(getpid(), 0);
    (void)state;
    assert_int_equal(page.base, 0); /* by its file, not by /proc/PID/mem */
    assert_int_equal(ftruncate(page.fd, 0), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(ftruncate(page.fd, 1 << 20), -1);
    assert_int_equal(fcntl(page.fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
    assert_int_equal(fallocate(page.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 16384), 0);
    assert_int_equal(jitdump_poll(dump, tell_live, &told), 0);
    put_u32(&page, offsetof(struct attach_page, word), ATTACH_ASK);
    assert_int_equal(jitdump_poll(dump, tell_live, &told), 0);
    assert_int_equal(switch_page_open(&page), -1); /* no such page any more: who asks is told */
    assert_int_equal(errno, EPROTO);
    assert_int_equal(jitdump_close(dump), 0);
}

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

static void test_children_of_a_process_that_logs(void **state)
{
    struct jitdump *dump = open_attachable();
    struct told told = {0};
    (void)state;
    ask(ATTACH_ON, dir);
    assert_int_equal(jitdump_poll(dump, tell_live, &told), 0);
    assert_int_equal(run_in_child(child_of_attached, dump), 0);
    assert_int_equal(run_in_child(idle_child_of_attached, dump), 0);
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

/* ---- Threads ---- */

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
enum { MAKERS = 4, SWITCHES = 30, EACH_LASTS = 400 };

struct maker {
    struct jitdump *dump;
    unsigned thread;
    pthread_t id;
    _Atomic unsigned known, added;
};

static struct maker makers[MAKERS];
static atomic_bool stop_making;

static void tell_known(struct jitdump *dump, void *user)
{
    (void)user;
    for (unsigned i = 0; i < MAKERS; i++)
        for (unsigned j = 0; j < atomic_load(&makers[i].known); j++)
            CHECK(add_function(dump, i, j, NULL) == 0);
}

static void *make_functions(void *argument)
{
    struct maker *maker = argument;
    for (unsigned i = 0; i < FUNCTIONS_MAX && !atomic_load(&stop_making); i++) {
        atomic_store(&maker->known, i + 1);
        CHECK(add_function(maker->dump, maker->thread, i, NULL) == 0);
        atomic_store(&maker->added, i + 1);
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
    for (unsigned i = 0; i < MAKERS; i++) {
        makers[i].dump = dump;
        makers[i].thread = i;
        assert_int_equal(pthread_create(&makers[i].id, NULL, make_functions, &makers[i]), 0);
    }
    for (unsigned i = 0; i < SWITCHES; i++) {
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

/* ---- Where the page comes from ---- */

static void without_memfd(struct jitdump *ignored)
{
    struct told told = {0};
    (void)ignored;
    refuse(SYS_memfd_create, EPERM);
    struct jitdump *dump = open_attachable();
    struct switch_page page = page_of(getpid(), 0);
    CHECK(!page.has_file && page.base != 0);
    switch_page_close(&page);
    ask(ATTACH_ON, dir);
    CHECK(jitdump_poll(dump, tell_live, &told) == 0);
    CHECK(jitdump_close(dump) == 0);
    check_inventory(path, LIVE, 1);
}

static void test_a_sandbox_without_memfd(void **state)
{
    (void)state;
    assert_child_may(without_memfd, "there is no seccomp here");
}

/* Making a file longer raises SIGXFSZ. */
static void with_short_files(struct jitdump *ignored)
{
    struct rlimit limit = {100, 100};
    (void)ignored;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    struct jitdump *dump = open_attachable();
    struct switch_page page = page_of(getpid(), 0);
    CHECK(!page.has_file);
    switch_page_close(&page);
    CHECK(jitdump_close(dump) == 0);
}

static void test_a_file_size_limit_raises_no_signal(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(with_short_files, NULL), 0);
}

static int descriptor_of(const struct switch_page *page)
{
    struct stat status;
    for (int fd = 0; fd < 1024; fd++)
        if (fd != page->fd && fstat(fd, &status) == 0 && status.st_ino == page->inode)
            return fd;
    return -1;
}

/* Its number may be another file's by the time that the handle is closed. */
static void test_a_descriptor_that_the_program_closes(void **state)
{
    struct jitdump *dump = open_attachable();
    struct told told = {0};
    struct switch_page page = page_of(getpid(), 0);
    struct stat status;
    (void)state;
    int fd = descriptor_of(&page);
    switch_page_close(&page);
    assert_true(fd > STDERR_FILENO);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    close(fd);
    int other = open("/dev/null", O_RDONLY);
    assert_int_equal(dup2(other, fd), fd);
    ask(ATTACH_ON, dir); /* by its mapping, or the process's memory */
    assert_int_equal(jitdump_poll(dump, tell_live, &told), 0);
    assert_int_equal(jitdump_close(dump), 0);
    assert_int_equal(fstat(fd, &status), 0);
    close(fd);
    if (other != fd)
        close(other);
    check_inventory(path, LIVE, 1);
}

static void test_two_handles(void **state)
{
    struct jitdump *dumps[] = {open_attachable(), open_attachable()};
    struct told told[2] = {{0}, {0}};
    uint32_t request;
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct switch_page page = page_of(getpid(), i);
        assert_int_equal(switch_page_ask(&page, ATTACH_ON, dir, &request), 0);
        switch_page_close(&page);
    }
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(jitdump_poll(dumps[i], tell_live, &told[i]), 0);
        assert_int_equal(told[i].calls, 1);
    }
    assert_string_not_equal(jitdump_path(dumps[0]), jitdump_path(dumps[1]));
    assert_int_equal(jitdump_close(dumps[0]), 0);
    assert_int_equal(jitdump_is_on(dumps[1]), 1);
    assert_int_equal(jitdump_close(dumps[1]), 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_nothing_is_there_until_it_is_asked_for),
        TEST(test_only_who_wants_it_can_be_asked),
        TEST(test_on_off_and_on_again),
        TEST(test_asked_twice),
        TEST(test_a_dump_from_the_start_can_be_closed),
        TEST(test_a_directory_that_does_not_do),
        TEST(test_hostile_values),
        TEST(test_random_values),
        TEST(test_the_page_cannot_be_taken_away),
        TEST(test_parent_and_child_are_asked_each_by_itself),
        TEST(test_children_of_a_process_that_logs),
        TEST(test_a_child_that_closes_leaves_the_parent_alone),
        TEST(test_others_go_on_while_one_tells),
        TEST(test_nothing_is_lost_between_threads),
        TEST(test_a_sandbox_without_memfd),
        TEST(test_a_file_size_limit_raises_no_signal),
        TEST(test_a_descriptor_that_the_program_closes),
        TEST(test_two_handles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
