/* The reader of perf maps, and files that are written meanwhile; how much memory it takes; one
 * table for many threads. */
#include "tests/unit/perfmap_test.h"

#include <pthread.h>
#include <sys/syscall.h>

/* ---- A file that is written while it is read ---- */

static int writer = -1; /* what writes a line to it before each read */

ssize_t read(int fd, void *bytes, size_t count)
{
    if (writer >= 0)
        CHECK(write(writer, "9000 10 late\n", 13) == 13);
    return syscall(SYS_read, fd, bytes, count);
}

static void test_a_file_that_is_written_is_read_as_long_as_it_was(void **state)
{
    struct perfmap_table *table;
    size_t count;
    (void)state;
    write_text(path, "1000 10 first\n2000 10 second\n");
    writer = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_int_equal(perfmap_read(&table, path, NULL, 0), 0);
    close(writer);
    writer = -1;
    perfmap_entries(table, &count);
    assert_int_equal(count, 2);
    assert_null(perfmap_find(table, 0x9000));
    perfmap_free(table);
    assert_int_equal(perfmap_read(&table, path, NULL, 0), 0);
    assert_non_null(perfmap_find(table, 0x9000));
    perfmap_free(table);
}

/* ---- Threads ---- */

enum { LINES = 10000, THREADS = 4 };

static char *many_lines(size_t count)
{
    char *text = calloc(count, 40), *to = text;
    assert_non_null(text);
    for (size_t i = 0; i < count; i++)
        to += sprintf(to, "%zx %x f%zu\n", 0x1000 + i * 0x20, i % 3 ? 0x20 : 0x90, i);
    return text;
}

static void *find_all(void *argument)
{
    const struct perfmap_table *table = argument;
    size_t count, found = 0;
    const struct perfmap_entry *entries = perfmap_entries(table, &count);
    for (size_t i = 0; i < count; i++)
        found += perfmap_find(table, entries[i].addr) == &entries[i];
    return (void *)(uintptr_t)(found == count && perfmap_bad_lines(table) == 0);
}

static void test_threads_share_a_table(void **state)
{
    struct perfmap_table *table;
    pthread_t threads[THREADS];
    char *text = many_lines(LINES);
    (void)state;
    assert_int_equal(perfmap_parse(&table, text, strlen(text)), 0);
    free(text);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, find_all, table), 0);
    for (int i = 0; i < THREADS; i++) {
        void *found_all;
        assert_int_equal(pthread_join(threads[i], &found_all), 0);
        assert_non_null(found_all);
    }
    perfmap_free(table);
}

/* ---- Memory ---- */

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define CAN_COUNT_MALLOC 1

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

static size_t allocated_bytes;

void *malloc(size_t size)
{
    allocated_bytes += size;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    allocated_bytes += count * size;
    return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    allocated_bytes += size;
    return __libc_realloc(old, size);
}

static size_t bytes_for(size_t lines)
{
    struct perfmap_table *table;
    char *text = many_lines(lines);
    allocated_bytes = 0;
    assert_int_equal(perfmap_parse(&table, text, strlen(text)), 0);
    perfmap_free(table);
    free(text);
    return allocated_bytes;
}

/* Arrays that double in size may be half empty. */
static void test_memory_grows_with_the_file(void **state)
{
    (void)state;
    assert_in_range(bytes_for(16 * LINES), 1, 2 * 16 * bytes_for(LINES));
}
#else
#define CAN_COUNT_MALLOC 0
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_file_that_is_written_is_read_as_long_as_it_was),
        TEST(test_threads_share_a_table),
#if CAN_COUNT_MALLOC
        TEST(test_memory_grows_with_the_file),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
