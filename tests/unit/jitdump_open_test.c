/* libjitdump's jitdump_open: when it is on, where the file goes, its header and marker, and what it
 * refuses. */
#include "tests/unit/jitdump_test.h"
#include "tests/unit/own_namespaces.h"

#include <elf.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

/* ---- Helpers ---- */

static struct jitdump *open_dump(void)
{
    struct jitdump *dump;
    assert_int_equal(try_open(&dump), 0);
    assert_non_null(dump);
    return dump;
}

static int make_dir_and_place(void **state)
{
    if (make_dir(state))
        return -1;
    make_place();
    return 0;
}

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

static void write_text(const char *file_path, const char *text)
{
    FILE *file = fopen(file_path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static bool file_says(const char *file_path, const char *expected)
{
    struct dump_bytes bytes = read_dump(file_path);
    bool same = bytes.data && bytes.size == strlen(expected) &&
                memcmp(bytes.data, expected, bytes.size) == 0;
    free(bytes.data);
    return same;
}

/* ---- On and off ---- */

static bool on_with(const char *value)
{
    struct jitdump_options options = options_in_dir();
    struct jitdump *dump = (struct jitdump *)dir;
    options.flags = 0;
    if (value)
        setenv("PERFJIT", value, 1);
    else
        unsetenv("PERFJIT");
    assert_int_equal(jitdump_open(&dump, &options), 0);
    assert_int_equal(dump != NULL, access(path, F_OK) == 0);
    bool on = dump != NULL;
    assert_int_equal(jitdump_close(dump), 0);
    unlink(path);
    return on;
}

static void test_environment(void **state)
{
    (void)state;
    assert_false(on_with(NULL));
    assert_false(on_with(""));
    assert_false(on_with("dumper"));
    assert_false(on_with("dum"));
    assert_false(on_with("DUMP"));
    assert_false(on_with("map"));
    assert_false(on_with(" dump"));
    assert_false(on_with("jitdump,"));
    assert_false(on_with("dumper,map,,xdump"));
    assert_true(on_with("dump"));
    assert_true(on_with("dump,map"));
    assert_true(on_with("map,dump"));
    assert_true(on_with("dumper,,dump"));
}

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

static void test_file_is_private_and_closed_on_exec(void **state)
{
    struct jitdump *dump = open_dump();
    struct stat status, other;
    bool found = false;
    (void)state;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode, S_IFREG | 0600);
    for (int fd = 3; fd < 256; fd++)
        if (fstat(fd, &other) == 0 && other.st_ino == status.st_ino) {
            found = true;
            assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
        }
    assert_true(found);
    assert_int_equal(jitdump_close(dump), 0);
    for (int fd = 3; fd < 256; fd++)
        assert_false(fstat(fd, &other) == 0 && other.st_ino == status.st_ino);
}

/* ---- What is in the way ---- */

static void test_stale_file_is_replaced(void **state)
{
    struct stat status;
    (void)state;
    write_text(path, "of an earlier process");
    chmod(path, 0444);
    int old = open(path, O_RDONLY | O_CLOEXEC);
    struct jitdump *dump = open_dump();
    assert_int_equal(jitdump_close(dump), 0);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, JITHEADER_BYTES + JR_CODE_CLOSE_BYTES);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_int_equal(fstat(old, &status), 0);
    assert_int_equal(status.st_size, 21); /* not cut under those who have it open */
    close(old);
}

/* jitdump_open finds something in its way, says what, and leaves it there. */
static void assert_in_the_way(const char *what)
{
    struct stat before, after;
    struct jitdump *dump;
    assert_int_equal(lstat(path, &before), 0);
    assert_int_equal(try_open(&dump), -EEXIST);
    assert_non_null(dump);
    assert_non_null(strstr(jitdump_error(dump), path));
    assert_non_null(strstr(jitdump_error(dump), what));
    assert_non_null(strstr(jitdump_error(dump), "set JITDUMPDIR"));
    assert_string_equal(jitdump_path(dump), "");
    assert_int_equal(add_fib(dump), -EEXIST);
    assert_int_equal(jitdump_lost(dump), 1);
    assert_int_equal(jitdump_close(dump), -EEXIST);
    assert_int_equal(lstat(path, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_int_equal(before.st_size, after.st_size);
}

static void test_symbolic_link_in_the_way(void **state)
{
    char target[128];
    (void)state;
    snprintf(target, sizeof target, "%s/target", dir);
    assert_int_equal(symlink(target, path), 0);
    assert_in_the_way("symbolic link");
    assert_int_not_equal(access(target, F_OK), 0);
    write_text(target, "precious");
    assert_in_the_way("symbolic link");
    assert_true(file_says(target, "precious"));
}

static void test_fifo_in_the_way(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(20);
    assert_in_the_way("FIFO");
    alarm(0);
}

static void test_directory_in_the_way(void **state)
{
    (void)state;
    assert_int_equal(mkdir(path, 0700), 0);
    assert_in_the_way("directory");
}

static void test_socket_in_the_way(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)state;
    snprintf(address.sun_path, sizeof address.sun_path, "%.100s", path);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_in_the_way("socket");
    close(listener);
}

static void test_hard_link_in_the_way(void **state)
{
    char other[128];
    (void)state;
    snprintf(other, sizeof other, "%s/other", dir);
    write_text(other, "precious");
    assert_int_equal(link(other, path), 0);
    assert_in_the_way("hard links");
    assert_true(file_says(other, "precious"));
}

/* lstat stands in for libc's, so that a test can act between jitdump_open's look and its open, and
 * that a file can be another user's without root. */
static const char *planted_link_target, *strangers_path;

static void test_other_users_file_in_the_way(void **state)
{
    (void)state;
    write_text(path, "of nobody");
    strangers_path = path;
    assert_in_the_way("another user's");
    strangers_path = NULL;
}

int lstat(const char *link_path, struct stat *status)
{
    int result = fstatat(AT_FDCWD, link_path, status, AT_SYMLINK_NOFOLLOW);
    int error = errno;
    if (strangers_path && strcmp(link_path, strangers_path) == 0)
        status->st_uid = geteuid() + 1;
    if (planted_link_target && strstr(link_path, ".dump") &&
        symlink(planted_link_target, link_path) != 0)
        result = -1;
    errno = error;
    return result;
}

static void test_link_planted_in_the_last_moment(void **state)
{
    char target[128];
    struct jitdump *dump;
    (void)state;
    snprintf(target, sizeof target, "%s/target", dir);
    planted_link_target = target;
    int error = try_open(&dump);
    planted_link_target = NULL;
    assert_int_equal(error, -EEXIST);
    assert_non_null(strstr(jitdump_error(dump), "this moment"));
    assert_int_equal(jitdump_close(dump), -EEXIST);
    assert_int_not_equal(access(target, F_OK), 0);
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
        char place[128];
        snprintf(place, sizeof place, "%s/jitdump-%d", dir, (int)getpid());
        assert_int_equal(rmdir(place), 0);
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

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_dir_and_place, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_environment),
        TEST(test_off_is_null),
        TEST(test_directory),
        TEST(test_options_struct),
        TEST(test_header),
        TEST(test_counter),
        TEST(test_marker),
        TEST(test_file_is_private_and_closed_on_exec),
        TEST(test_stale_file_is_replaced),
        TEST(test_symbolic_link_in_the_way),
        TEST(test_fifo_in_the_way),
        TEST(test_directory_in_the_way),
        TEST(test_socket_in_the_way),
        TEST(test_hard_link_in_the_way),
        TEST(test_other_users_file_in_the_way),
        TEST(test_link_planted_in_the_last_moment),
        TEST(test_directory_fails),
        TEST(test_noexec_file_system),
        TEST(test_read_only_file_system),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
