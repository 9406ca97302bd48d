/* When a dump or a map is opened, what its file is like, and what it refuses to open.  The same
 * cases for libjitdump and libperfmap. */
#include "tests/unit/either_library.h"

#include <libgen.h>
#include <sys/socket.h>
#include <sys/un.h>

/* The directory that the file goes to, for what is to be there before the file. */
static void make_place(void)
{
    char copy[sizeof path];
    memcpy(copy, path, sizeof copy);
    assert_true(mkdir(dirname(copy), 0700) == 0 || errno == EEXIST);
}

static void *open_always(void)
{
    void *handle;
    assert_int_equal(library->open(&handle, dir, true), 0);
    assert_non_null(handle);
    return handle;
}

/* ---- On and off ---- */

/* Whether the library is on if PERFJIT is VALUE, a format of the words of this library and of the
 * other. */
static bool on_with(const char *value)
{
    const char *other = library == &libraries[0] ? libraries[1].word : libraries[0].word;
    char said[64];
    void *handle = dir;
    snprintf(said, sizeof said, value, library->word, other);
    assert_int_equal(setenv("PERFJIT", said, 1), 0);
    int error = library->open(&handle, dir, false);
    bool on = exists(path);
    if (error) { /* libjitdump says which word it does not know */
        assert_int_equal(error, -EINVAL);
        assert_true(library == &libraries[0] && !on);
        assert_non_null(strstr(library->error(handle), "no word that this version knows"));
    }
    assert_int_equal(handle != NULL, on || error);
    assert_int_equal(library->close(handle), error);
    unlink(path);
    return on;
}

static void test_environment(void **state)
{
    static const char *const off[] = {
        "", "%1$ser", "%1$.2s", "%1$.0s%2$s", " %1$s", "x%1$s,", "%1$ser,%2$s,,x%1$s",
    };
    static const char *const on[] = {"%1$s", "%1$s,%2$s", "%2$s,%1$s", "%2$s,,%1$s,"};
    (void)state;
    for (size_t i = 0; i < sizeof off / sizeof *off; i++)
        if (on_with(off[i]))
            fail_msg("on with %s", off[i]);
    for (size_t i = 0; i < sizeof on / sizeof *on; i++)
        if (!on_with(on[i]))
            fail_msg("off with %s", on[i]);
    assert_false(on_with(library == &libraries[0] ? "DUMP" : "MAP"));
}

static void test_without_the_variable(void **state)
{
    void *handle = dir;
    (void)state;
    assert_int_equal(library->open(&handle, dir, false), 0);
    assert_null(handle);
    assert_false(exists(path));
}

/* ---- The file ---- */

/* The flags of this process's descriptors of the file: an O_APPEND or the like that all have.
 * How many there are goes to *COUNT. */
static int common_flags(const struct stat *file, size_t *count)
{
    struct stat other;
    int flags = -1;
    *count = 0;
    for (int fd = 3; fd < 256; fd++)
        if (fstat(fd, &other) == 0 && other.st_ino == file->st_ino) {
            (*count)++;
            assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
            flags &= fcntl(fd, F_GETFL);
        }
    return flags;
}

static void test_file_is_private_and_closed_on_exec(void **state)
{
    void *handle = open_always();
    struct stat status;
    size_t count;
    (void)state;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode, S_IFREG | 0600);
    int flags = common_flags(&status, &count);
    assert_true(count > 0);
    assert_int_equal(flags & library->status_flags, library->status_flags);
    assert_int_equal(library->close(handle), 0);
    common_flags(&status, &count);
    assert_int_equal(count, 0);
}

/* The size of the file that an open leaves to which nothing is added. */
static off_t size_when_opened(void)
{
    struct stat status;
    void *handle = open_always();
    assert_int_equal(library->close(handle), 0);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    return status.st_size;
}

static void test_stale_file_is_replaced(void **state)
{
    static const char text[] = "1000 40 of an earlier process\n";
    static const mode_t modes[] = {0444, 0644};
    const struct timespec before_our_start[] = {{1000000000, 0}, {1000000000, 0}};
    struct stat status;
    (void)state;
    off_t fresh = size_when_opened();
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_int_equal(unlink(path), 0);
        write_text(path, text);
        assert_int_equal(utimensat(AT_FDCWD, path, before_our_start, 0), 0);
        assert_int_equal(chmod(path, modes[i]), 0);
        int old = open(path, O_RDONLY | O_CLOEXEC);
        assert_int_equal(size_when_opened(), fresh);
        assert_false(file_has_name(path, "of an earlier process"));
        assert_int_equal(fstat(old, &status), 0);
        assert_int_equal(status.st_size, sizeof text - 1); /* not cut under who has it open */
        close(old);
    }
}

/* ---- What is in the way ---- */

/* The library finds something in its way, says what, and leaves it there. */
static void assert_in_the_way(const char *what)
{
    struct stat before, after;
    void *handle;
    assert_int_equal(lstat(path, &before), 0);
    assert_int_equal(library->open(&handle, dir, true), -EEXIST);
    assert_non_null(handle);
    assert_non_null(strstr(library->error(handle), path));
    assert_non_null(strstr(library->error(handle), what));
    assert_non_null(strstr(library->error(handle), library->way_out));
    assert_string_equal(library->path(handle), "");
    assert_int_equal(library->add(handle, "fib"), -EEXIST);
    assert_int_equal(library->lost(handle), 1);
    assert_int_equal(library->close(handle), -EEXIST);
    assert_int_equal(lstat(path, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_int_equal(before.st_size, after.st_size);
}

static void test_symbolic_link_in_the_way(void **state)
{
    char target[128];
    (void)state;
    make_place();
    snprintf(target, sizeof target, "%s/target", dir);
    assert_int_equal(symlink(target, path), 0);
    assert_in_the_way("symbolic link");
    assert_false(exists(target));
    write_text(target, "precious");
    assert_in_the_way("symbolic link");
    assert_true(file_says(target, "precious"));
}

static void test_fifo_in_the_way(void **state)
{
    (void)state;
    make_place();
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(20);
    assert_in_the_way("FIFO");
    alarm(0);
}

static void test_directory_in_the_way(void **state)
{
    (void)state;
    make_place();
    assert_int_equal(mkdir(path, 0700), 0);
    assert_in_the_way("directory");
}

static void test_socket_in_the_way(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)state;
    make_place();
    snprintf(address.sun_path, sizeof address.sun_path, "%.100s", path);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_in_the_way("socket");
    close(listener);
}

static void test_hard_link_in_the_way(void **state)
{
    char other[128];
    (void)state;
    make_place();
    snprintf(other, sizeof other, "%s/other", dir);
    write_text(other, "precious");
    assert_int_equal(link(other, path), 0);
    assert_in_the_way("hard links");
    assert_true(file_says(other, "precious"));
}

/* lstat stands in for libc's, so that a test can act between the library's look and its open, and
 * that a file can be another user's without root. */
static const char *planted_link_target, *strangers_path;

int lstat(const char *link_path, struct stat *status)
{
    int result = fstatat(AT_FDCWD, link_path, status, AT_SYMLINK_NOFOLLOW);
    int error = errno;
    if (strangers_path && strcmp(link_path, strangers_path) == 0)
        status->st_uid = geteuid() + 1;
    if (planted_link_target && strcmp(link_path, path) == 0 &&
        symlink(planted_link_target, link_path) != 0)
        result = -1;
    errno = error;
    return result;
}

static void test_other_users_file_in_the_way(void **state)
{
    (void)state;
    make_place();
    write_text(path, "of nobody");
    strangers_path = path;
    assert_in_the_way("another user's");
    strangers_path = NULL;
}

static void test_link_planted_in_the_last_moment(void **state)
{
    char target[128];
    void *handle;
    (void)state;
    snprintf(target, sizeof target, "%s/target", dir);
    planted_link_target = target;
    int error = library->open(&handle, dir, true);
    planted_link_target = NULL;
    assert_int_equal(error, -EEXIST);
    assert_non_null(strstr(library->error(handle), "this moment"));
    assert_int_equal(library->close(handle), -EEXIST);
    assert_false(exists(target));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_BOTH(test_environment),
        WITH_BOTH(test_without_the_variable),
        WITH_BOTH(test_file_is_private_and_closed_on_exec),
        WITH_BOTH(test_stale_file_is_replaced),
        WITH_BOTH(test_symbolic_link_in_the_way),
        WITH_BOTH(test_fifo_in_the_way),
        WITH_BOTH(test_directory_in_the_way),
        WITH_BOTH(test_socket_in_the_way),
        WITH_BOTH(test_hard_link_in_the_way),
        WITH_BOTH(test_other_users_file_in_the_way),
        WITH_BOTH(test_link_planted_in_the_last_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
