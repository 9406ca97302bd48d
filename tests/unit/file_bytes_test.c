/* The bytes of an input file: whoever else may write it can't change what was read; one's own is
 * not copied.  And line tables of a mapped dump whose pages turn to zeros between the check and the
 * use, as they do when its process cuts it. */
#include "injector/files/file_bytes.h"

#include "injector/log/code/log_reader.h"
#include "injector/log/lines/code_lines.h"
#include "tests/unit/dump_builder.h"
#include "tests/unit/file_stand_in.h"
#include "tests/unit/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

enum { SIZE = 5000 };

static uint8_t written[SIZE];

static int make_file(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZE; i++)
        written[i] = (uint8_t)(i * 7 + 1);
    unlink(scratch_file);
    these_files.inode = 0;
    write_scratch(written, SIZE);
    return chmod(scratch_file, 0600);
}

struct view {
    const uint8_t *bytes;
    size_t size;
    int fd;
};

static struct view view_file(void)
{
    struct stat status;
    struct view view = {.fd = open(scratch_file, O_RDWR | O_CLOEXEC)};
    assert_true(view.fd >= 0 && fstat(view.fd, &status) == 0);
    view.bytes = file_bytes(view.fd, &status);
    assert_non_null(view.bytes);
    view.size = (size_t)status.st_size;
    return view;
}

static void release(struct view *view)
{
    munmap((void *)(uintptr_t)view->bytes, view->size);
    close(view->fd);
}

/* Whether the file itself is mapped at BYTES. */
static bool is_mapping(const void *bytes)
{
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "re");
    bool found = false;
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) {
        uint64_t start = strtoull(line, NULL, 16);
        found |= start == (uint64_t)(uintptr_t)bytes && strstr(line, scratch_file);
    }
    fclose(maps);
    return found;
}

/* The owner writes, cuts and lengthens it, and nothing of that is seen. */
static void assert_stays(void)
{
    struct view view = view_file();
    assert_false(is_mapping(view.bytes));
    assert_int_equal(pwrite(view.fd, "changed", 7, 100), 7);
    assert_memory_equal(view.bytes, written, SIZE);
    assert_int_equal(ftruncate(view.fd, 0), 0);
    assert_memory_equal(view.bytes, written, SIZE);
    assert_int_equal(pwrite(view.fd, written, 10, 8000), 10);
    assert_memory_equal(view.bytes, written, SIZE);
    release(&view);
}

static void test_of_another_user_stays(void **state)
{
    (void)state;
    give_away(scratch_file, geteuid() + 1);
    assert_stays();
}

static void test_writable_by_others_stays(void **state)
{
    (void)state;
    assert_int_equal(chmod(scratch_file, 0620), 0);
    assert_stays();
    make_file(state);
    assert_int_equal(chmod(scratch_file, 0602), 0);
    assert_stays();
}

static void test_own_is_mapped(void **state)
{
    (void)state;
    assert_int_equal(chmod(scratch_file, 0644), 0);
    struct view view = view_file();
    assert_true(is_mapping(view.bytes));
    assert_memory_equal(view.bytes, written, SIZE);
    release(&view);
}

static void test_who_may_change_it(void **state)
{
    struct stat own = {.st_uid = geteuid(), .st_mode = S_IFREG | 0644};
    struct stat of_root = {.st_uid = 0, .st_mode = S_IFREG | 0755};
    struct stat of_stranger = {.st_uid = geteuid() + 1, .st_mode = S_IFREG | 0400};
    (void)state;
    assert_false(file_bytes_may_change(&own));
    assert_false(file_bytes_may_change(&of_root));
    assert_true(file_bytes_may_change(&of_stranger));
    of_root.st_mode |= S_IWGRP;
    assert_true(file_bytes_may_change(&of_root));
}

/* Shorter than when one looked. */
static void test_cut_before_it_is_copied(void **state)
{
    struct stat status;
    int fd = open(scratch_file, O_RDWR | O_CLOEXEC);
    (void)state;
    assert_int_equal(fchmod(fd, 0660), 0);
    assert_int_equal(fstat(fd, &status), 0);
    assert_int_equal(ftruncate(fd, 1000), 0);
    const uint8_t *bytes = file_bytes(fd, &status);
    assert_non_null(bytes);
    assert_memory_equal(bytes, written, 1000);
    for (size_t i = 1000; i < SIZE; i++)
        assert_int_equal(bytes[i], 0);
    munmap((void *)(uintptr_t)bytes, SIZE);
    close(fd);
}

/* ---- Sparse files ---- */

static size_t resident_bytes(void)
{
    size_t total, resident;
    FILE *file = fopen("/proc/self/statm", "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%zu %zu", &total, &resident), 2);
    fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* Some bytes at AT of a file of SIZE, nothing in between. */
static void make_sparse(off_t at, off_t size)
{
    int fd = open(scratch_file, O_RDWR | O_CLOEXEC);
    assert_int_equal(fchmod(fd, 0660), 0);
    assert_int_equal(pwrite(fd, "middle", 6, at), 6);
    assert_int_equal(ftruncate(fd, size), 0);
    close(fd);
}

static void test_holes_cost_no_memory(void **state)
{
    enum { AT = 1 << 28, END = 1 << 29 };
    (void)state;
    make_sparse(AT, END);
    size_t before = resident_bytes();
    struct view view = view_file();
    assert_in_range(resident_bytes(), 0, before + (16 << 20));
    assert_memory_equal(view.bytes, written, SIZE);
    assert_memory_equal(view.bytes + AT, "middle", 6);
    assert_int_equal(view.bytes[AT - 1] | view.bytes[END - 1], 0);
    release(&view);
}

/* Terabytes cost whoever makes them nothing, and whoever reads them hours. */
static void test_large_holes_are_refused(void **state)
{
    struct stat status;
    (void)state;
    make_sparse((off_t)1 << 40, (off_t)1 << 42);
    int fd = open(scratch_file, O_RDWR | O_CLOEXEC);
    assert_int_equal(fstat(fd, &status), 0);
    errno = 0;
    assert_null(file_bytes(fd, &status));
    assert_int_equal(errno, EFBIG);
    assert_non_null(strstr(file_bytes_error(EFBIG), "holes"));
    close(fd);
}

static void test_unreadable(void **state)
{
    struct stat status;
    (void)state;
    int fd = open(scratch_file, O_WRONLY | O_CLOEXEC);
    assert_int_equal(fstat(fd, &status), 0);
    assert_null(file_bytes(fd, &status));
    assert_int_equal(errno, EACCES);
    assert_int_equal(fchmod(fd, 0660), 0);
    assert_int_equal(fstat(fd, &status), 0);
    assert_null(file_bytes(fd, &status));
    assert_int_equal(errno, EBADF);
    close(fd);
}

/* ---- Zeros after the check ---- */

static void put_inlines(struct dump_builder *built, uint64_t addr)
{
    enum { CALLS = 300 };
    size_t start = dump_begin_record(built, JIT_CODE_INLINE_INFO, 1);
    sink_u64(&built->sink, addr);
    sink_u32(&built->sink, CALLS);
    sink_u32(&built->sink, 2);
    sink_u32(&built->sink, 6);
    sink_u32(&built->sink, 0);
    for (uint32_t i = 0; i < CALLS; i++) { /* each in the one before, 200 deep */
        const uint32_t call[] = {i % 200 ? i - 1 : JIT_INLINE_NONE, 2, 1, 1, 0, 4, 1};
        for (size_t field = 0; field < 7; field++)
            sink_u32(&built->sink, call[field]);
    }
    const uint32_t spans[] = {0, 199, 4, 299};
    for (size_t i = 0; i < 4; i++)
        sink_u32(&built->sink, spans[i]);
    sink_bytes(&built->sink, "a\0b\0c", 6);
    dump_end_record(built, start);
}

/* Every call's callers come before it, so that whoever follows them comes to an end. */
static void assert_sound(const struct line_table *table)
{
    for (size_t i = 0; i < table->inline_count; i++)
        assert_in_range(table->inlines[i].parent + 1, 0, i);
    for (size_t i = 0; i < table->span_count; i++)
        assert_in_range(table->spans[i].inline_index + 1, 0, table->inline_count);
}

/* A dump that is sound when it is logged, and then zero from byte FROM on. */
static void zeros_after_the_check(const struct dump_builder *built, size_t from)
{
    static const struct jit_clock same;
    static struct line_table table;
    struct findings findings = {.quiet = true};
    struct code_log log = {0};
    struct jit_dump dump;
    char cause[256];
    size_t size = built->sink.size;
    uint8_t *bytes = malloc(size);
    assert_non_null(bytes);
    memcpy(bytes, built->bytes, size);
    assert_int_equal(jit_dump_view(&dump, "a.dump", bytes, size, cause, sizeof cause), 0);
    assert_int_equal(code_log_read(&log, &dump, 0, &same, true, &findings), 0);
    assert_int_equal(findings_lost(&findings), 0);
    assert_int_equal(log.function_count, 1);
    assert_non_null(log.functions[0].lines);
    memset(bytes + from, 0, size - from);
    assert_int_equal(code_lines_decode(log.functions[0].lines, log.functions[0].size, &table), 0);
    assert_sound(&table);
    line_table_free(&table);
    code_log_free(&log);
    findings_free(&findings);
    jit_dump_close(&dump);
    free(bytes);
}

/* From each byte on. */
static void assert_survives_zeros(void (*put)(struct dump_builder *, uint64_t))
{
    static struct dump_builder built;
    dump_begin(&built, false, JITHEADER_BYTES);
    put(&built, 0x40000000);
    dump_load(&built, 2, 0x40000000, "f", "code of f", 1);
    for (size_t from = JITHEADER_BYTES; from < built.sink.size; from += 4)
        zeros_after_the_check(&built, from);
}

static void test_inlines_that_turn_to_zeros(void **state)
{
    (void)state;
    assert_survives_zeros(put_inlines);
}

#define FILE_TEST(function) cmocka_unit_test_setup(function, make_file)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILE_TEST(test_of_another_user_stays),
        FILE_TEST(test_writable_by_others_stays),
        FILE_TEST(test_own_is_mapped),
        FILE_TEST(test_who_may_change_it),
        FILE_TEST(test_cut_before_it_is_copied),
        FILE_TEST(test_holes_cost_no_memory),
        FILE_TEST(test_large_holes_are_refused),
        FILE_TEST(test_unreadable),
        cmocka_unit_test(test_inlines_that_turn_to_zeros),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
