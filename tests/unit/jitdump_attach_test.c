/* libjitdump's dumps that begin and end while the process runs: on, off, hostile values on the
 * page, sandboxes, and what remains of what was there before. */
#include "tests/unit/attach_asker.h"
#include "tests/unit/refused_call.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

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

/* How often the dump FILE_PATH has dropped its oldest records. */
static uint64_t generation_of(const char *file_path, uint64_t *dropped)
{
    struct dump_bytes bytes = read_dump(file_path);
    struct record record;
    size_t offset = JITHEADER_BYTES;
    CHECK(next_record(&bytes, &offset, &record));
    while (record.id == JIT_FILLER)
        CHECK(next_record(&bytes, &offset, &record));
    CHECK(record.id == JIT_CODE_HISTORY);
    uint64_t generation = cursor_u64(&record.body);
    *dropped = cursor_u64(&record.body);
    free(bytes.data);
    return generation;
}

static void test_each_dump_has_a_ring_of_its_own(void **state)
{
    struct jitdump_options options = JITDUMP_OPTIONS_INIT;
    struct jitdump *dump;
    struct told told = {0};
    char second[128];
    uint64_t code_index = 0, dropped;
    (void)state;
    options.flags = JITDUMP_ATTACHABLE | JITDUMP_RING;
    options.max_bytes = 4 << 20;
    assert_int_equal(jitdump_open(&dump, &options), 0);
    ask(ATTACH_ON, dir);
    assert_int_equal(jitdump_poll(dump, tell_live, &told), 0);
    for (unsigned i = 0; i < 30000; i++) {
        assert_int_equal(add_function(dump, 1, i, &code_index), 0);
        assert_int_equal(jitdump_unload_code(dump, code_index, addr_of(1, i), code_bytes_of(1, i)),
                         0);
    }
    ask(ATTACH_OFF, NULL);
    assert_int_equal(jitdump_poll(dump, tell_live, &told), 0);
    assert_true(generation_of(path, &dropped) > 2);
    assert_true(dropped > 10000);
    ask(ATTACH_ON, dir);
    assert_int_equal(jitdump_poll(dump, tell_live, &told), 0);
    assert_true(told.indices[0] > code_index);
    assert_int_equal(jitdump_unload_code(dump, code_index, 1, 2), 0); /* of the first: ignored */
    assert_int_equal(jitdump_lost(dump), 0);
    assert_int_equal(jitdump_close(dump), 0);
    numbered_path(second, 2);
    assert_int_equal(generation_of(second, &dropped), 0);
    assert_int_equal(dropped, 0);
    check_inventory(second, LIVE, 1); /* CLOSE; a HISTORY of the first generation has no time */
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
    assert_int_equal(switch_page_prove(&page, 7), 0);
    assert_int_equal(jitdump_poll(dump, tell_live, &told), -EINVAL);
    text[0] = '/'; /* absolute, but longer than any path */
    put(&page, offsetof(struct attach_page, dir), text, sizeof text);
    put_u32(&page, offsetof(struct attach_page, request), 8);
    put_u32(&page, offsetof(struct attach_page, word), ATTACH_ASK);
    assert_int_equal(switch_page_prove(&page, 8), 0);
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

/* That the request which stands there is this user's. */
static void prove(const struct switch_page *page)
{
    uint32_t request;
    assert_int_equal(
        pread(page->fd, &request, sizeof request, offsetof(struct attach_page, request)),
        sizeof request);
    assert_int_equal(switch_page_prove(page, request), 0);
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
    unsigned served = 0;
    put(&page, offsetof(struct attach_page, dir), "/dev/null/x", 12);
    for (int i = 0; i < ROUNDS; i++) {
        random = random * 1664525 + 1013904223;
        size_t at = random >> 8 & 1 ? (random >> 10) % 29 : FREE_FROM + (random >> 10) % 8000;
        put_u32(&page, at, random >> 9 & 1 ? random >> 28 : random);
        if (i % 3 == 0)
            put_u32(&page, offsetof(struct attach_page, word), ATTACH_ASK);
        prove(&page);
        served += jitdump_poll(dump, tell_live, &told) != 0;
        put(&page, offsetof(struct attach_page, dir), "/dev/null/x", 12);
    }
    assert_true(served > 100); /* to where no dump can be */
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
        TEST(test_each_dump_has_a_ring_of_its_own),
        TEST(test_a_directory_that_does_not_do),
        TEST(test_hostile_values),
        TEST(test_random_values),
        TEST(test_the_page_cannot_be_taken_away),
        TEST(test_a_sandbox_without_memfd),
        TEST(test_a_file_size_limit_raises_no_signal),
        TEST(test_a_descriptor_that_the_program_closes),
        TEST(test_two_handles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
