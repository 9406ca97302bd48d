/* The perf map writer among threads and in forked children. */
#include "tests/unit/perfmap_test.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>

/* ---- Threads ---- */

enum { THREADS = 8, LINES_EACH = 1000 };

struct adder {
    struct perfmap *map;
    pthread_t thread;
    uint64_t number;
};

static void name_of(char name[128], uint64_t thread, uint64_t line)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzabcdef";
    snprintf(name, 128, "thread %" PRIu64 " line %" PRIu64 " %.*s", thread, line,
             (int)((thread * 7 + line) % 32), letters);
}

static void *add_lines(void *argument)
{
    const struct adder *adder = argument;
    char name[128];
    for (uint64_t line = 0; line < LINES_EACH; line++) {
        name_of(name, adder->number, line);
        if (perfmap_add(adder->map, adder->number << 20 | line << 4, 16, name) != 0)
            return argument;
    }
    return NULL;
}

/* THREADS threads add LINES_EACH lines; returns how many of them failed. */
static size_t add_from_threads(struct perfmap *map)
{
    struct adder adders[THREADS];
    size_t failed = 0;
    for (size_t i = 0; i < THREADS; i++) {
        adders[i] = (struct adder){map, 0, i};
        pthread_create(&adders[i].thread, NULL, add_lines, &adders[i]);
    }
    for (size_t i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(adders[i].thread, &result);
        failed += result != NULL;
    }
    return failed;
}

/* Every line is there once and whole.  Returns the first thread * LINES_EACH + line that is not. */
static size_t first_missing_line(const char *file_path)
{
    struct perfmap_table *table;
    char name[128];
    size_t count, i;
    if (perfmap_read(&table, file_path, NULL, 0) != 0)
        return 0;
    perfmap_entries(table, &count);
    if (count != THREADS * LINES_EACH || perfmap_bad_lines(table) != 0)
        count = 0;
    for (i = 0; i < count; i++) {
        const uint64_t thread = i / LINES_EACH, line = i % LINES_EACH;
        const struct perfmap_entry *entry = perfmap_find(table, thread << 20 | line << 4);
        name_of(name, thread, line);
        if (!entry || entry->size_bytes != 16 || strcmp(entry->name, name) != 0)
            break;
    }
    perfmap_free(table);
    return i;
}

static void test_threads(void **state)
{
    struct perfmap *map = open_map();
    (void)state;
    assert_int_equal(add_from_threads(map), 0);
    assert_int_equal(first_missing_line(path), THREADS * LINES_EACH);
    assert_int_equal(perfmap_close(map), 0);
}

static void child_loses_from_threads(struct perfmap *map)
{
    struct rlimit limit = {10, 10};
    CHECK(try_open(&map) == 0);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK(add_from_threads(map) == THREADS);
    CHECK(perfmap_lost(map) == THREADS); /* each gives up at its first */
    CHECK(strstr(perfmap_error(map), "file size limit") != NULL);
    CHECK(perfmap_close(map) == -EFBIG);
}

static void test_losses_are_counted_across_threads(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(child_loses_from_threads, NULL), 0);
}

static void *add_for_ever(void *argument)
{
    struct perfmap *map = argument;
    for (;;) {
        pthread_testcancel();
        perfmap_add(map, 1, 2, "cancelled");
    }
    return NULL;
}

/* A cancelled thread neither keeps the lock nor tears a line. */
static void child_cancels_adders(struct perfmap *map)
{
    CHECK(try_open(&map) == 0);
    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, add_for_ever, map) == 0);
        usleep(500);
        pthread_cancel(thread);
        pthread_join(thread, NULL);
        CHECK(perfmap_add(map, 1, 2, "still here") == 0);
    }
    CHECK(perfmap_close(map) == 0);
}

static void test_cancellation(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(child_cancels_adders, NULL), 0);
}

/* ---- Fork ---- */

static size_t open_descriptors(void)
{
    size_t count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void child_adds(struct perfmap *map)
{
    size_t descriptors = open_descriptors();
    CHECK(perfmap_add(map, 3, 4, "child") == 0);
    CHECK(open_descriptors() == descriptors); /* its own instead of the parent's */
    CHECK(strcmp(perfmap_path(map), path) == 0);
    CHECK(perfmap_add(map, 5, 6, "again") == 0);
    CHECK(file_says(path, "3 4 child\n5 6 again\n"));
    CHECK(perfmap_close(map) == 0);
    CHECK(open_descriptors() == descriptors - 1);
}

static void test_child_gets_its_own_map(void **state)
{
    struct perfmap *map = open_map();
    (void)state;
    perfmap_add(map, 1, 2, "parent");
    assert_int_equal(run_in_child(child_adds, map), 0);
    perfmap_add(map, 7, 8, "parent");
    assert_string_equal(perfmap_path(map), path);
    assert_file("1 2 parent\n7 8 parent\n");
    assert_int_equal(perfmap_close(map), 0);
}

/* PATH is the child's map in the directory that was opened. */
static void child_works_elsewhere(struct perfmap *map)
{
    CHECK(perfmap_add(map, 3, 4, "child") == 0);
    CHECK(file_says(path, "3 4 child\n"));
    CHECK(file_says(perfmap_path(map), "3 4 child\n"));
    CHECK(perfmap_close(map) == 0);
}

static void test_child_in_another_directory(void **state)
{
    struct perfmap_options options = options_in_dir();
    struct perfmap *map;
    char here[4096];
    (void)state;
    options.dir = ".";
    assert_true(getcwd(here, sizeof here) && chdir(dir) == 0);
    assert_int_equal(perfmap_open(&map, &options), 0);
    assert_int_equal(chdir(here), 0);
    assert_int_equal(run_in_child(child_works_elsewhere, map), 0);
    assert_int_equal(perfmap_close(map), 0);
}

static void child_only_closes(struct perfmap *map)
{
    CHECK(perfmap_close(map) == 0);
    CHECK(!exists(path));
}

static void test_child_that_only_closes(void **state)
{
    struct perfmap *map = open_map();
    (void)state;
    assert_int_equal(run_in_child(child_only_closes, map), 0);
    perfmap_add(map, 1, 2, "parent");
    assert_file("1 2 parent\n");
    assert_int_equal(perfmap_close(map), 0);
}

static void child_forks_again(struct perfmap *map)
{
    pid_t grandchild;
    CHECK(perfmap_add(map, 3, 4, "child") == 0);
    const char *path_before = perfmap_path(map);
    if ((grandchild = fork()) == 0) {
        set_path(getpid());
        child_adds(map);
        _exit(0);
    }
    CHECK(wait_for(grandchild) == 0);
    CHECK(perfmap_path(map) == path_before);
    CHECK(file_says(path, "3 4 child\n"));
    CHECK(perfmap_close(map) == 0);
}

static void test_grandchild(void **state)
{
    struct perfmap *map = open_map();
    (void)state;
    assert_int_equal(run_in_child(child_forks_again, map), 0);
    assert_int_equal(perfmap_close(map), 0);
    assert_file("");
}

/* All threads of the child find at once that the map is the parent's. */
static void child_adds_from_threads(struct perfmap *map)
{
    CHECK(add_from_threads(map) == 0);
    CHECK(first_missing_line(path) == THREADS * LINES_EACH);
    CHECK(perfmap_close(map) == 0);
}

static void test_threads_of_a_child(void **state)
{
    struct perfmap *map = open_map();
    (void)state;
    assert_int_equal(run_in_child(child_adds_from_threads, map), 0);
    assert_file("");
    assert_int_equal(perfmap_close(map), 0);
}

/* Its memory and its map are the parent's. */
static void test_a_line_between_vfork_and_exec(void **state)
{
    struct perfmap *map = open_map();
    (void)state;
    perfmap_add(map, 1, 2, "parent");
    pid_t child = vfork();
    if (child == 0) {
        if (perfmap_add(map, 3, 4, "vfork") == 0)
            execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    assert_int_equal(wait_for(child), 0);
    perfmap_add(map, 5, 6, "parent");
    assert_int_equal(perfmap_lost(map), 0);
    assert_int_equal(perfmap_close(map), 0);
    assert_file("1 2 parent\n3 4 vfork\n5 6 parent\n");
}

static void test_descriptor_is_closed_by_exec(void **state)
{
    struct perfmap *map = open_map();
    char command[256];
    (void)state;
    snprintf(command, sizeof command, "! ls -l /proc/self/fd | grep -q '%s'", path);
    assert_int_equal(system(command), 0);
    assert_int_equal(perfmap_close(map), 0);
}

/* A daemon closes what it inherited; our old descriptor's number is somebody else's by then. */
static void child_reuses_descriptor(struct perfmap *map)
{
    struct stat status, other;
    char parent_path[128];
    int mine = -1;
    snprintf(parent_path, sizeof parent_path, "%s/perf-%d.map", dir, (int)getppid());
    CHECK(stat(parent_path, &status) == 0);
    for (int fd = 3; fd < 256; fd++)
        if (fstat(fd, &other) == 0 && other.st_ino == status.st_ino &&
            other.st_dev == status.st_dev)
            mine = fd;
    CHECK(mine > 0);
    CHECK(dup2(0, mine) == mine);
    CHECK(perfmap_add(map, 1, 2, "child") == 0);
    CHECK(fcntl(mine, F_GETFD) >= 0);
    CHECK(perfmap_close(map) == 0);
    CHECK(fcntl(mine, F_GETFD) >= 0);
}

static void test_closes_no_descriptor_but_its_own(void **state)
{
    struct perfmap *map = open_map();
    (void)state;
    assert_int_equal(run_in_child(child_reuses_descriptor, map), 0);
    assert_int_equal(perfmap_close(map), 0);
}

struct busy_adder {
    struct perfmap *map;
    pthread_t thread;
    _Atomic bool stop;
};

static void *add_until_stopped(void *argument)
{
    struct busy_adder *adder = argument;
    while (!atomic_load(&adder->stop))
        perfmap_add(adder->map, 1, 2, "parent");
    return NULL;
}

static void child_adds_one(struct perfmap *map)
{
    CHECK(perfmap_add(map, 3, 4, "child") == 0);
    CHECK(file_says(path, "3 4 child\n"));
}

/* Threads that add hold the lock most of the time: nearly every child is born with it taken. */
static void test_fork_while_others_add(void **state)
{
    enum { ADDERS = 4, CHILDREN = 60 };
    struct busy_adder adders[ADDERS];
    struct perfmap *map = open_map();
    int failed = 0;
    (void)state;
    for (int i = 0; i < ADDERS; i++) {
        adders[i].map = map;
        atomic_init(&adders[i].stop, false);
        pthread_create(&adders[i].thread, NULL, add_until_stopped, &adders[i]);
    }
    for (int i = 0; i < CHILDREN && !failed; i++)
        failed = run_in_child(child_adds_one, map);
    for (int i = 0; i < ADDERS; i++) {
        atomic_store(&adders[i].stop, true);
        pthread_join(adders[i].thread, NULL);
    }
    assert_int_equal(failed, 0);
    assert_int_equal(perfmap_close(map), 0);
    char *text = text_of(path);
    size_t length = strlen(text), lines = 0;
    for (const char *at = text; strncmp(at, "1 2 parent\n", 11) == 0; at += 11)
        lines++;
    assert_int_equal(lines * 11, length);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_threads),
        TEST(test_losses_are_counted_across_threads),
        TEST(test_cancellation),
        TEST(test_child_gets_its_own_map),
        TEST(test_child_in_another_directory),
        TEST(test_child_that_only_closes),
        TEST(test_grandchild),
        TEST(test_threads_of_a_child),
        TEST(test_a_line_between_vfork_and_exec),
        TEST(test_descriptor_is_closed_by_exec),
        TEST(test_closes_no_descriptor_but_its_own),
        TEST(test_fork_while_others_add),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
