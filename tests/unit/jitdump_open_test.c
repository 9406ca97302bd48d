/* libjitdump's jitdump_open: where the file goes, its header and marker, and what it refuses.
 * library_open_test has what libperfmap promises as well. */
#include "tests/unit/jitdump_test.h"
#include "tests/unit/own_namespaces.h"

#include <elf.h>
#include <sched.h>
#include <sys/mount.h>
#include <time.h>

/* ---- Helpers ---- */

static int add_fib(struct jitdump *dump)
{
    struct jitdump_code code = JITDUMP_CODE_INIT;
    code.name = "fib";
    return jitdump_add_code(dump, &code, NULL);
}

static uint64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ---- On and off ---- */

static void test_off_is_null(void **state)
{
    struct jitdump *dump = (struct jitdump *)dir;
    struct jitdump_code code = JITDUMP_CODE_INIT;
    (void)state;
    assert_int_equal(jitdump_open(&dump, NULL), 0);
    assert_null(dump);
    assert_int_equal(jitdump_add_code(NULL, &code, NULL), 0);
    assert_int_equal(jitdump_move_code(NULL, 0, 1, 2, 3), 0);
    assert_int_equal(jitdump_unload_code(NULL, 0, 1, 2), 0);
    assert_int_equal(jitdump_add_code_on(NULL, &code, NULL), 0);
    assert_int_equal(jitdump_move_code_on(NULL, 0, 1, 2, 3), 0);
    assert_int_equal(jitdump_unload_code_on(NULL, 0, 1, 2), 0);
    assert_int_equal(jitdump_lost(NULL), 0);
    assert_string_equal(jitdump_error(NULL), "");
    assert_string_equal(jitdump_path(NULL), "");
    assert_int_equal(jitdump_close(NULL), 0);
}

/* Where a dump with options->dir DIRECTORY goes, from the directory `dir`. */
static void assert_goes_to(const char *directory, const char *variable, const char *expected)
{
    struct jitdump_options options = options_in_dir();
    struct jitdump *dump;
    options.dir = directory;
    if (variable)
        setenv("JITDUMPDIR", variable, 1);
    else
        unsetenv("JITDUMPDIR");
    assert_int_equal(jitdump_open(&dump, &options), 0);
    assert_string_equal(jitdump_path(dump), expected);
    assert_int_equal(access(expected, F_OK), 0);
    assert_int_equal(jitdump_close(dump), 0);
    unlink(expected);
}

static void test_directory(void **state)
{
    char sub[128], in_sub[160], here[512];
    (void)state;
    assert_non_null(getcwd(here, sizeof here));
    snprintf(sub, sizeof sub, "%s/sub", dir);
    snprintf(in_sub, sizeof in_sub, "%s/jitdump-%d/jit-%d.dump", sub, (int)getpid(), (int)getpid());
    assert_int_equal(mkdir(sub, 0700), 0);
    assert_int_equal(chdir(dir), 0);
    assert_goes_to(NULL, NULL, path);
    assert_goes_to("", "", path);
    assert_goes_to(NULL, sub, in_sub);
    assert_goes_to(NULL, "sub", in_sub);
    assert_goes_to("sub", "/nonexistent", in_sub);
    assert_goes_to(sub, NULL, in_sub);
    assert_int_equal(chdir(here), 0);
}

/* ---- Options ---- */

static void assert_options_fail(const struct jitdump_options *options, int error)
{
    struct jitdump *dump;
    assert_int_equal(jitdump_open(&dump, options), error);
    assert_non_null(dump);
    assert_true(strlen(jitdump_error(dump)) > 0);
    assert_int_equal(add_fib(dump), error);
    assert_int_equal(jitdump_move_code(dump, 0, 1, 2, 3), error);
    assert_int_equal(jitdump_unload_code(dump, 0, 1, 2), error);
    assert_int_equal(jitdump_lost(dump), 3);
    assert_string_equal(jitdump_path(dump), "");
    assert_int_equal(jitdump_close(dump), error);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void test_options_struct(void **state)
{
    struct {
        struct jitdump_options options;
        char unknown[16];
    } longer = {options_in_dir(), {0}};
    struct jitdump_options options = options_in_dir();
    struct jitdump *dump;
    (void)state;
    options.size = 0;
    assert_options_fail(&options, -EINVAL);
    options = options_in_dir();
    options.flags = 0x80;
    assert_options_fail(&options, -EINVAL); /* found although PERFJIT is not set */
    longer.options.size = sizeof longer;
    longer.unknown[15] = 1;
    assert_options_fail(&longer.options, -E2BIG);
    longer.unknown[15] = 0;
    assert_int_equal(jitdump_open(&dump, &longer.options), 0);
    assert_int_equal(jitdump_close(dump), 0);
    options = options_in_dir(); /* of a caller whose struct ended before flags */
    options.size = offsetof(struct jitdump_options, flags);
    options.flags = 0xffffffff;
    setenv("PERFJIT", "dump", 1);
    assert_int_equal(jitdump_open(&dump, &options), 0);
    assert_string_equal(jitdump_path(dump), path);
    assert_int_equal(jitdump_close(dump), 0);
}

/* ---- The header ---- */

static void assert_header(const struct jitdump_options *options, uint32_t elf_mach, uint64_t flags)
{
    struct jitdump *dump;
    uint64_t before = monotonic_ns();
    assert_int_equal(jitdump_open(&dump, options), 0);
    uint64_t after = monotonic_ns();
    assert_int_equal(jitdump_close(dump), 0);
    struct dump_bytes bytes = read_dump(path);
    struct byte_cursor cursor = file_header(&bytes);
    assert_memory_equal(bytes.data, "DTiJ", 4);
    assert_int_equal(cursor_u32(&cursor), JITDUMP_MAGIC);
    assert_int_equal(cursor_u32(&cursor), 1);
    assert_int_equal(cursor_u32(&cursor), 40);
    assert_int_equal(cursor_u32(&cursor), elf_mach);
    uint32_t pad1 = cursor_u32(&cursor);
    assert_int_equal(cursor_u32(&cursor), getpid());
    uint64_t timestamp = cursor_u64(&cursor);
    if (!flags)
        assert_in_range(timestamp, before, after);
    if (pad1) { /* 0: the mapping took too long to be told */
        assert_int_equal(pad1 >> 16, JITHEADER_PAD1_TAG);
        assert_true((pad1 & 0xffff) > 0);
        if (!flags)
            assert_in_range(pad1 & 0xffff, 1, after - before);
    }
    assert_int_equal(cursor_u64(&cursor), flags);
    assert_int_equal(bytes.size, JITHEADER_BYTES + JR_CODE_CLOSE_BYTES);
    free(bytes.data);
}

static void test_header(void **state)
{
    struct jitdump_options options = options_in_dir();
    (void)state;
#ifdef __x86_64__
    assert_header(&options, EM_X86_64, 0);
#endif
    options.elf_mach = EM_AARCH64;
    assert_header(&options, EM_AARCH64, 0);
}

static void test_counter(void **state)
{
    struct jitdump_options options = options_in_dir();
    struct jitdump *dump;
    (void)state;
    options.flags |= JITDUMP_TSC;
#ifdef __x86_64__
    uint64_t before = __builtin_ia32_rdtsc();
    assert_header(&options, EM_X86_64, 1);
    assert_int_equal(jitdump_open(&dump, &options), 0);
    assert_int_equal(add_fib(dump), 0);
    assert_int_equal(jitdump_close(dump), 0);
    struct dump_bytes bytes = read_dump(path);
    size_t offset = JITHEADER_BYTES;
    struct record record;
    assert_true(next_record(&bytes, &offset, &record));
    assert_in_range(record.timestamp, before, __builtin_ia32_rdtsc());
    free(bytes.data);
#elif !defined(__aarch64__)
    assert_int_equal(jitdump_open(&dump, &options), -EOPNOTSUPP);
    assert_int_equal(jitdump_close(dump), -EOPNOTSUPP);
#endif
}

/* ---- The file and its marker ---- */

/* The line of /proc/self/maps with which FILE_PATH is mapped with PERMISSIONS, or "". */
static const char *mapping_of(const char *file_path, const char *permissions)
{
    static char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps))
        if (strstr(line, file_path) && strstr(line, permissions)) {
            fclose(maps);
            return line;
        }
    fclose(maps);
    return "";
}

static void test_marker(void **state)
{
    struct jitdump *dump = open_dump();
    unsigned long start, end, offset;
    (void)state;
    char stage_path[160];
    stage_path_of(stage_path, path);
    assert_string_not_equal(mapping_of(stage_path, " r-xp "), "");
    assert_string_equal(mapping_of(path, " rw"),
                        ""); /* it is written, but never through a mapping */
    assert_int_equal(sscanf(mapping_of(path, " r-xp "), "%lx-%lx %*s %lx", &start, &end, &offset),
                     3);
    assert_int_equal(end - start, sysconf(_SC_PAGESIZE));
    assert_int_equal(offset, 0);
    for (int i = 0; i < 5000; i++)
        assert_int_equal(add_fib(dump), 0);
    assert_string_not_equal(mapping_of(path, " r-xp "), "");
    assert_int_equal(jitdump_close(dump), 0);
    assert_string_equal(mapping_of(path, ""), ""); /* nothing of it is left */
    assert_string_equal(mapping_of(stage_path, ""), "");
}

/* ---- Directories that don't do ---- */

static void assert_dir_fails(const char *directory, int error, const char *remedy)
{
    struct jitdump_options options = options_in_dir();
    struct jitdump *dump;
    options.dir = directory;
    assert_int_equal(jitdump_open(&dump, &options), error);
    assert_non_null(dump);
    assert_non_null(strstr(jitdump_error(dump), directory));
    assert_non_null(strstr(jitdump_error(dump), remedy));
    assert_int_equal(jitdump_close(dump), error);
}

/* Root may write to a directory of mode 0500, so a file and a read-only file system stand for all
 * that one may not write to. */
static void test_directory_fails(void **state)
{
    char file[128];
    (void)state;
    assert_dir_fails("/nonexistent", -ENOENT, "the directory does not exist");
    snprintf(file, sizeof file, "%s/file", dir);
    write_text(file, "");
    assert_dir_fails(file, -ENOTDIR, "set JITDUMPDIR");
    if (geteuid() != 0) {
        assert_int_equal(chmod(dir, 0500), 0);
        assert_dir_fails(dir, -EACCES, "that you may write to");
        assert_int_equal(chmod(dir, 0700), 0);
    }
}

static void child_opens_on_noexec(struct jitdump *dump)
{
    enter_own_disk(dir, MS_NOEXEC, "size=4m");
    CHECK(try_open(&dump) == -EPERM);
    CHECK(strstr(jitdump_error(dump), path));
    CHECK(strstr(jitdump_error(dump), "noexec"));
    CHECK(strstr(jitdump_error(dump), "set JITDUMPDIR"));
    CHECK(add_fib(dump) == -EPERM);
    CHECK(jitdump_close(dump) == -EPERM);
    CHECK(access(path, F_OK) != 0); /* no file without a marker is left */
}

static void child_opens_on_read_only(struct jitdump *dump)
{
    enter_own_disk(dir, MS_RDONLY, "size=4m");
    CHECK(try_open(&dump) == -EROFS);
    CHECK(strstr(jitdump_error(dump), "that you may write to"));
    CHECK(jitdump_close(dump) == -EROFS);
}

static void test_noexec_file_system(void **state)
{
    (void)state;
    assert_child_may(child_opens_on_noexec, "mounting is not permitted");
}

static void test_read_only_file_system(void **state)
{
    (void)state;
    assert_child_may(child_opens_on_read_only, "mounting is not permitted");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_off_is_null),
        TEST(test_directory),
        TEST(test_options_struct),
        TEST(test_header),
        TEST(test_counter),
        TEST(test_marker),
        TEST(test_directory_fails),
        TEST(test_noexec_file_system),
        TEST(test_read_only_file_system),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
