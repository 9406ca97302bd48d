/* A directory for each test of a library, and children that write their own file there.
 *
 * Who includes this says what it is about:
 *     LIBRARY_HANDLE  what the library's handles point to
 *     LIBRARY_FILE(pid)    the path of a process's file in the directory, as printf's arguments
 */
#ifndef PERFJIT_TEST_LIBRARY_DIR_H
#define PERFJIT_TEST_LIBRARY_DIR_H

#include "tests/unit/child.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[64];
static char path[128]; /* of this process's file */

/* Where process PID puts its file in IN. */
static inline void path_of(char to[128], const char *in, pid_t pid)
{
    char name[48];
    snprintf(name, sizeof name, LIBRARY_FILE((int)pid));
    snprintf(to, 128, "%s/%s", in, name);
}

static inline void set_path(pid_t pid)
{
    path_of(path, dir, pid);
}

static inline int make_dir(void **state)
{
    static const char name[] = "library_test.XXXXXX";
    const char *in = getenv("TMPDIR");
    (void)state;
    if (!in || strlen(in) + sizeof name >= sizeof dir)
        in = "/tmp";
    snprintf(dir, sizeof dir, "%s/%s", in, name);
    if (!mkdtemp(dir))
        return -1;
    set_path(getpid());
    unsetenv("PERFJIT");
    unsetenv("JITDUMPDIR");
    return 0;
}

static inline int remove_dir(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

/* ---- Files ---- */

/* The text of FILE, to be freed, or NULL. */
static inline char *text_of(const char *file_path)
{
    struct stat status;
    int fd = open(file_path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    fstat(fd, &status);
    char *text = calloc(1, (size_t)status.st_size + 1);
    if (text && read(fd, text, (size_t)status.st_size) != status.st_size)
        text[0] = '\0';
    close(fd);
    return text;
}

static inline bool file_says(const char *file_path, const char *expected)
{
    char *text = text_of(file_path);
    bool same = text && strcmp(text, expected) == 0;
    if (!same)
        fprintf(stderr, "%s: \"%s\", not \"%s\"\n", file_path, text ? text : "(none)", expected);
    free(text);
    return same;
}

static inline void write_text(const char *file_path, const char *text)
{
    FILE *file = fopen(file_path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static inline bool exists(const char *file_path)
{
    struct stat status;
    return lstat(file_path, &status) == 0;
}

/* ---- Children ---- */

static inline pid_t start_child(void (*body)(LIBRARY_HANDLE *), LIBRARY_HANDLE *handle)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(120); /* a deadlock must not hang the tests */
        set_path(getpid());
        body(handle);
        _exit(0);
    }
    return child;
}

static inline int run_in_child(void (*body)(LIBRARY_HANDLE *), LIBRARY_HANDLE *handle)
{
    return wait_for(start_child(body, handle));
}

/* What this machine or user can't do is not tested here, and fails where nobody would notice. */
static inline void skip_or_fail(const char *reason)
{
    const char *ci = getenv("CI");
    fprintf(stderr, "skipped: %s\n", reason);
    if (ci && strcmp(ci, "true") == 0)
        fail_msg("CI=true: must not be skipped");
    skip();
}

/* Run BODY in a child, which may end with NOT_PERMITTED. */
static inline void assert_child_may(void (*body)(LIBRARY_HANDLE *), const char *reason)
{
    int result = run_in_child(body, NULL);
    if (result == NOT_PERMITTED)
        skip_or_fail(reason);
    assert_int_equal(result, 0);
}

#endif
