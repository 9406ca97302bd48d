/* libjitdump in hosts that do unusual things to their threads, descriptors and code: no
 * signal, nothing lost but what is counted, and no other file touched. */
#include "tests/unit/jitdump_inventory.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { FUNCTIONS = 2000 };

/* ---- A child that works elsewhere ---- */

static void child_works_elsewhere(struct jitdump *dump)
{
    CHECK(chdir("/") == 0);
    add_first(dump, 0, FUNCTIONS);
    CHECK(jitdump_close(dump) == 0);
    check_inventory(path, FUNCTIONS, 1);
}

static void test_child_in_another_directory(void **state)
{
    struct jitdump_options options = options_in_dir();
    struct jitdump *dump;
    char here[4096];
    (void)state;
    options.dir = ".";
    assert_true(getcwd(here, sizeof here) && chdir(dir) == 0);
    assert_int_equal(jitdump_open(&dump, &options), 0);
    assert_int_equal(chdir(here), 0);
    assert_int_equal(run_in_child(child_works_elsewhere, dump), 0);
    assert_int_equal(jitdump_close(dump), 0);
}

/* ---- A thread with descriptors of its own ---- */

static char other_path[160];

/* The numbers of the dump's descriptors are other files' here. */
static void *work_apart(void *context)
{
    struct jitdump *dump = context;
    struct stat status;
    CHECK(unshare(CLONE_FILES) == 0);
    for (int fd = 3; fd < 64; fd++)
        close(fd);
    for (int i = 0; i < 8; i++)
        CHECK(open(other_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) >= 0);
    add_until(dump, 0, -EBADF);
    CHECK(stat(other_path, &status) == 0 && status.st_size == 0);
    return NULL;
}

static void test_a_thread_with_descriptors_of_its_own(void **state)
{
    struct jitdump *dump = open_dump();
    pthread_t thread;
    unsigned sequence = 0;
    uint64_t code_index;
    (void)state;
    snprintf(other_path, sizeof other_path, "%s/other", dir);
    assert_int_equal(pthread_create(&thread, NULL, work_apart, dump), 0);
    pthread_join(thread, NULL);
    /* Until a failed write is tried again. */
    for (int tries = 0; add_function(dump, 1, sequence, &code_index) != 0; tries++)
        assert_true(usleep(1000) == 0 && tries < 10000);
    uint64_t lost = jitdump_lost(dump);
    assert_true(lost > 0);
    while (++sequence < FUNCTIONS)
        assert_int_equal(add_function(dump, 1, sequence, &code_index), 0);
    assert_int_equal(jitdump_lost(dump), lost);
    assert_int_equal(jitdump_close(dump), -EBADF);
    assert_int_equal(count_records(path, JIT_CODE_CLOSE), 1);
    assert_int_equal(count_records(path, JIT_CODE_LOAD), code_index + 1);
}

/* ---- No descriptor is left ---- */

static void child_has_no_descriptor(struct jitdump *dump)
{
    uint64_t code_index;
    for (unsigned i = 0; i < 10; i++)
        CHECK(add_function(dump, 0, i, &code_index) == -EMFILE);
    CHECK(jitdump_lost(dump) == 10 && strstr(jitdump_error(dump), "ulimit -n"));
    CHECK(jitdump_close(dump) == -EMFILE);
}

static void lives_without_descriptors(struct jitdump *dump)
{
    const struct rlimit three = {3, 3};
    dump = open_dump();
    CHECK(setrlimit(RLIMIT_NOFILE, &three) == 0);
    add_first(dump, 0, FUNCTIONS);
    CHECK(run_in_child(child_has_no_descriptor, dump) == 0);
    add_first(dump, FUNCTIONS, 2 * FUNCTIONS);
    CHECK(jitdump_lost(dump) == 0 && jitdump_close(dump) == 0);
}

static void test_no_descriptor_is_left(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(lives_without_descriptors, NULL), 0);
}

/* ---- Code in a file that is cut ---- */

static void test_code_in_a_file_that_is_cut(void **state)
{
    enum { PAGE_BYTES = 4096, PAGES = 3, TAIL_BYTES = 10 };
    char code_path[160];
    struct jitdump *dump = open_dump();
    (void)state;
    snprintf(code_path, sizeof code_path, "%s/code", dir);
    int fd = open(code_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(ftruncate(fd, PAGES * PAGE_BYTES), 0);
    uint8_t *bytes = mmap(NULL, PAGES * PAGE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(bytes != MAP_FAILED);
    struct jitdump_code code = code_with_bytes(0x10000, bytes, PAGES * PAGE_BYTES, "f");
    assert_int_equal(jitdump_add_code(dump, &code, NULL), 0);
    assert_int_equal(jitdump_unreadable(dump), 0);
    assert_int_equal(ftruncate(fd, PAGE_BYTES), 0);
    assert_int_equal(jitdump_add_code(dump, &code, NULL), 0);
    code.bytes = bytes + PAGE_BYTES - TAIL_BYTES;
    for (code.code_size = TAIL_BYTES + 1; code.code_size < 4 * TAIL_BYTES; code.code_size++)
        assert_int_equal(jitdump_add_code(dump, &code, NULL), 0);
    assert_int_equal(jitdump_unreadable(dump), 3 * TAIL_BYTES);
    code.code_size = TAIL_BYTES;
    assert_int_equal(jitdump_add_code(dump, &code, NULL), 0);
    assert_int_equal(jitdump_unreadable(dump), 3 * TAIL_BYTES);
    assert_int_equal(jitdump_close(dump), 0);
    munmap(bytes, PAGES * PAGE_BYTES);
    close(fd);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_child_in_another_directory),
        TEST(test_a_thread_with_descriptors_of_its_own),
        TEST(test_no_descriptor_is_left),
        TEST(test_code_in_a_file_that_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
