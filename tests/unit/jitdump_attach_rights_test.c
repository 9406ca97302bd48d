/* Who may ask for libjitdump's dump: not a child that has dropped its rights, and nobody who does
 * not prove who he is when he asks. */
#include "tests/unit/attach_asker.h"

#include <sys/mman.h>

enum { NOBODY = 65534 };

static struct attach_page *mapped_page(const struct jitdump *dump)
{
    return (struct attach_page *)((uintptr_t)jitdump_poll_word(dump) -
                                  offsetof(struct attach_page, word));
}

/* Descriptors of the page's file that this process has. */
static int page_descriptor(void)
{
    struct stat status;
    char path_of[64], target[64];
    for (int fd = STDERR_FILENO + 1; fd < 1024; fd++) {
        snprintf(path_of, sizeof path_of, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(path_of, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        if (fstat(fd, &status) == 0 && strstr(target, ATTACH_PAGE_NAME))
            return fd;
    }
    return -1;
}

static void store_request(struct attach_page *page, const char *where)
{
    strcpy(page->dir, where);
    page->wanted = ATTACH_ON;
    page->request += 1;
    page->word = ATTACH_ASK;
}

static void write_request(const struct switch_page *page, const char *where, uint32_t number)
{
    const struct {
        uint32_t word, request, wanted;
    } head = {ATTACH_ASK, number, ATTACH_ON};
    CHECK(pwrite(page->fd, where, strlen(where) + 1, offsetof(struct attach_page, dir)) > 0);
    CHECK(pwrite(page->fd, &head, sizeof head, offsetof(struct attach_page, word)) > 0);
}

/* ---- Children ---- */

static void child_that_writes(struct jitdump *dump)
{
    int fd = page_descriptor();
    const uint32_t word = ATTACH_ASK;
    char again[64];
    store_request(mapped_page(dump), dir);
    CHECK(fd >= 0 && fcntl(fd, F_SETFD, 0) == 0);
    CHECK(pwrite(fd, &word, sizeof word, offsetof(struct attach_page, word)) == -1);
    CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
    void *read_only = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    CHECK(read_only != MAP_FAILED && mprotect(read_only, 4096, PROT_READ | PROT_WRITE) == -1);
    if (geteuid() != 0)
        return;
    CHECK(setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
    snprintf(again, sizeof again, "/proc/self/fd/%d", fd);
    CHECK(open(again, O_RDWR | O_CLOEXEC) == -1);
    CHECK(fchmod(fd, 0666) == -1);
}

static void test_a_child_cannot_write_to_its_parents_page(void **state)
{
    struct jitdump *dump = open_attachable();
    struct told told = {0};
    (void)state;
    assert_int_equal(run_in_child(child_that_writes, dump), 0);
    assert_int_equal(*jitdump_poll_word(dump), ATTACH_QUIET);
    assert_int_equal(jitdump_poll(dump, tell_live, &told), 0);
    assert_int_equal(told.calls, 0);
    assert_int_equal(jitdump_is_on(dump), 0);
    ask(ATTACH_ON, dir); /* its own user is served all the same */
    assert_int_equal(jitdump_poll(dump, tell_live, &told), 0);
    assert_int_equal(told.calls, 1);
    assert_int_equal(jitdump_close(dump), 0);
}

/* ---- Proof ---- */

/* Poll until the request is answered. */
static int32_t error_of_request(struct jitdump *dump, struct told *told, uint32_t number)
{
    struct switch_answer answer;
    do {
        CHECK(jitdump_poll(dump, tell_live, told) == 0);
        usleep(1000);
        answer = answer_of(getpid());
    } while (answer.request != number);
    CHECK(*jitdump_poll_word(dump) == ATTACH_QUIET);
    return answer.error;
}

static void test_what_nobody_proves_is_refused(void **state)
{
    struct jitdump *dump = open_attachable();
    struct told told = {0};
    struct switch_page page = page_of(getpid(), 0);
    (void)state;
    write_request(&page, dir, 7);
    assert_int_equal(error_of_request(dump, &told, 7), -EPERM);
    assert_int_equal(told.calls, 0);
    assert_int_not_equal(access(path, F_OK), 0);
    write_request(&page, dir, 8);
    assert_int_equal(switch_page_prove(&page, 7), 0); /* of another request */
    assert_int_equal(jitdump_poll(dump, tell_live, &told), 0);
    assert_int_equal(told.calls, 0);
    assert_int_equal(switch_page_prove(&page, 8), 0);
    assert_int_equal(jitdump_poll(dump, tell_live, &told), 0);
    assert_int_equal(told.calls, 1);
    switch_page_close(&page);
    assert_int_equal(jitdump_close(dump), 0);
    check_inventory(path, LIVE, 1);
}

/* It opened the page when it was root, and asks when it is nobody. */
static void asks_after_it_dropped_its_rights(struct jitdump *dump)
{
    struct switch_page page = page_of(getppid(), 0);
    (void)dump;
    CHECK(page.base == 0);
    if (geteuid() != 0)
        _exit(NOT_PERMITTED);
    CHECK(setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
    write_request(&page, dir, 5);
    CHECK(switch_page_prove(&page, 5) == -1 && errno == EPERM);
    uint32_t request;
    CHECK(switch_page_ask(&page, ATTACH_ON, dir, &request) == -1);
    write_request(&page, dir, 5);
}

static void test_rights_count_when_it_asks(void **state)
{
    struct jitdump *dump = open_attachable();
    struct told told = {0};
    (void)state;
    if (run_in_child(asks_after_it_dropped_its_rights, dump) == 0)
        assert_int_equal(error_of_request(dump, &told, 5), -EPERM);
    assert_int_equal(told.calls, 0);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(jitdump_close(dump), 0);
}

/* The page is its first user's, who must not have root make files for him. */
static void process_that_became_root(struct jitdump *ignored)
{
    struct told told = {0};
    (void)ignored;
    if (geteuid() != 0)
        return;
    CHECK(seteuid(NOBODY) == 0);
    struct jitdump *dump = open_attachable();
    CHECK(seteuid(0) == 0);
    struct switch_page page = page_of(getpid(), 0);
    write_request(&page, dir, 1);
    CHECK(switch_page_prove(&page, 1) == 0);
    CHECK(error_of_request(dump, &told, 1) == -EPERM);
    CHECK(told.calls == 0);
    CHECK(seteuid(NOBODY) == 0);
    write_request(&page, "/nonexistent", 2);
    CHECK(switch_page_prove(&page, 2) == 0);
    CHECK(jitdump_poll(dump, tell_live, &told) == -ENOENT);
    switch_page_close(&page);
    CHECK(seteuid(0) == 0 && jitdump_close(dump) == 0);
}

static void test_the_user_of_the_page_is_not_the_process_any_more(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(process_that_became_root, NULL), 0);
}

/* ---- Its own memory ---- */

static void test_the_process_may_ask_itself(void **state)
{
    struct jitdump *dump = open_attachable();
    struct attach_page *page = mapped_page(dump);
    struct told told = {0};
    (void)state;
    for (unsigned i = 1; i <= 2; i++) {
        store_request(page, dir);
        assert_int_equal(jitdump_poll(dump, tell_live, &told), 0);
        assert_int_equal(told.calls, i);
        assert_int_equal(page->state, ATTACH_IS_ON);
        assert_string_equal((const char *)page->path, jitdump_path(dump));
        ask(ATTACH_OFF, NULL); /* by the file: what it polls follows that again */
        assert_int_equal(jitdump_poll(dump, tell_live, &told), 0);
        assert_int_equal(page->state, ATTACH_IS_OFF);
    }
    assert_int_equal(jitdump_close(dump), 0);
}

/* ---- Locked memory ---- */

static void asks_itself(struct jitdump *dump)
{
    struct told told = {0};
    ask(ATTACH_ON, dir);
    CHECK(*jitdump_poll_word(dump) == ATTACH_ASK);
    CHECK(jitdump_poll(dump, tell_live, &told) == 0);
    CHECK(told.calls == 1);
    CHECK(jitdump_close(dump) == 0);
    check_inventory(path, LIVE, 1);
}

static void locked_before(struct jitdump *ignored)
{
    (void)ignored;
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
        _exit(NOT_PERMITTED);
    asks_itself(open_attachable());
}

/* What it polls is a copy then, until somebody who may trace it says so. */
static void locked_after(struct jitdump *ignored)
{
    (void)ignored;
    struct jitdump *dump = open_attachable();
    if (mlockall(MCL_CURRENT) != 0)
        _exit(NOT_PERMITTED);
    struct switch_page page = page_of(getpid(), 0);
    struct told told = {0};
    uint32_t request;
    CHECK(switch_page_ask(&page, ATTACH_ON, dir, &request) == 0);
    switch_page_wake(&page); /* with ASan mlockall does nothing, and nor does this */
    CHECK(jitdump_poll(dump, tell_live, &told) == 0);
    CHECK(told.calls == 1 && *jitdump_poll_word(dump) == ATTACH_QUIET);
    switch_page_close(&page);
    ask(ATTACH_OFF, NULL); /* now it sees the file */
    CHECK(*jitdump_poll_word(dump) == ATTACH_ASK);
    CHECK(jitdump_poll(dump, tell_live, &told) == 0);
    CHECK(!jitdump_is_on(dump));
    CHECK(jitdump_close(dump) == 0);
}

static void test_a_process_that_locks_its_memory_sees_requests(void **state)
{
    (void)state;
    assert_child_may(locked_before, "memory can't be locked");
    assert_child_may(locked_after, "memory can't be locked");
}

/* ---- An asker that was killed ---- */

static void test_a_page_that_an_asker_left_split_is_quiet_again(void **state)
{
    struct jitdump *dump = open_attachable();
    struct switch_page page = page_of(getpid(), 0);
    (void)state;
    assert_int_equal(switch_page_split(&page, true), 0);
    assert_int_equal(jitdump_poll(dump, tell_live, NULL), 0);
    assert_int_equal(*jitdump_poll_word(dump), ATTACH_SPLIT); /* children may need it */
    while (*jitdump_poll_word(dump) != ATTACH_QUIET) {
        assert_int_equal(jitdump_poll(dump, tell_live, NULL), 0);
        usleep(1000);
    }
    switch_page_close(&page);
    assert_int_equal(jitdump_close(dump), 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_child_cannot_write_to_its_parents_page),
        TEST(test_what_nobody_proves_is_refused),
        TEST(test_rights_count_when_it_asks),
        TEST(test_the_user_of_the_page_is_not_the_process_any_more),
        TEST(test_the_process_may_ask_itself),
        TEST(test_a_process_that_locks_its_memory_sees_requests),
        TEST(test_a_page_that_an_asker_left_split_is_quiet_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
