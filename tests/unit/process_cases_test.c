/* What processes do while a dump or a map is open: vfork, exec, posix_spawn, daemons, other users, chroot, pids that are used
 * again, two copies of a library.  The same cases for libjitdump and libperfmap, through what jitdump.h and perfmap.h promise.
 *
 * (Forks among threads, kills and full disks: jitdump_survival_test, perfmap_threads_test, perfmap_room_test.) */
#include "jitdump/jitdump.h"
#include "perfmap/perfmap.h"
#include "tests/unit/child.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    NOT_PERMITTED = 77,
    STRANGER = 12345,
    MANY = 100000 /* more than fits in the room at hand */
};

/* ---- Either library ---- */

struct library {
    const char *word; /* in PERFJIT */
    const char *file; /* a format, of a pid */
    const char *shared;
    int (*open)(void **handle, const char *dir, bool always);
    int (*add)(void *handle, const char *name);
    uint64_t (*lost)(void *handle);
    const char *(*error)(void *handle);
    int (*close)(void *handle);
};

static int open_dump(void **handle, const char *dir, bool always)
{
    struct jitdump_options options = JITDUMP_OPTIONS_INIT;
    options.dir = dir;
    options.flags = always ? JITDUMP_ALWAYS : 0;
    return jitdump_open((struct jitdump **)handle, &options);
}

static int add_to_dump(void *handle, const char *name)
{
    static const uint8_t bytes[] = {0x90, 0xc3};
    struct jitdump_code code = JITDUMP_CODE_INIT;
    code.name = name;
    code.code_addr = 0x40000000;
    code.code_size = sizeof bytes;
    code.bytes = bytes;
    return jitdump_add_code(handle, &code, NULL);
}

static uint64_t lost_of_dump(void *handle)
{
    return jitdump_lost(handle);
}

static const char *error_of_dump(void *handle)
{
    return jitdump_error(handle);
}

static int close_dump(void *handle)
{
    return jitdump_close(handle);
}

static int open_map(void **handle, const char *dir, bool always)
{
    struct perfmap_options options = PERFMAP_OPTIONS_INIT;
    options.dir = dir;
    options.flags = always ? PERFMAP_ALWAYS : 0;
    return perfmap_open((struct perfmap **)handle, &options);
}

static int add_to_map(void *handle, const char *name)
{
    return perfmap_add(handle, 0x40000000, 2, name);
}

static uint64_t lost_of_map(void *handle)
{
    return perfmap_lost(handle);
}

static const char *error_of_map(void *handle)
{
    return perfmap_error(handle);
}

static int close_map(void *handle)
{
    return perfmap_close(handle);
}

static struct library libraries[] = {
    {"dump", "%s/jit-%d.dump", "libjitdump.so.0", open_dump, add_to_dump, lost_of_dump,
     error_of_dump, close_dump},
    {"map", "%s/perf-%d.map", "libperfmap.so.0", open_map, add_to_map, lost_of_map, error_of_map,
     close_map},
};

/* The library that a test is about; each is run with both. */
static const struct library *library;

/* ---- A directory for each test ---- */

static char dir[64], path[128];
static char program[512]; /* this one */

static void path_of(char to[128], const char *in, pid_t pid)
{
    snprintf(to, 128, library->file, in, (int)pid);
}

static int make_dir(void **state)
{
    library = *state;
    snprintf(dir, sizeof dir, "/tmp/process_cases.XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    path_of(path, dir, getpid());
    unsetenv("PERFJIT");
    unsetenv("JITDUMPDIR");
    return 0;
}

static int remove_dir(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

/* Whether FILE_PATH has NAME in it, as a function's. */
static bool has_name(const char *file_path, const char *name)
{
    struct stat status;
    int fd = open(file_path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0)
        return false;
    char *bytes = malloc((size_t)status.st_size + 1);
    ssize_t size = bytes ? read(fd, bytes, (size_t)status.st_size) : 0;
    bool found = size > 0 && memmem(bytes, (size_t)size, name, strlen(name));
    free(bytes);
    close(fd);
    return found;
}

static mode_t mode_of(const char *file_path)
{
    struct stat status;
    return lstat(file_path, &status) == 0 ? status.st_mode & 07777 : 0;
}

/* ---- Children ---- */

static pid_t start_child(void (*body)(void *), void *handle)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        path_of(path, dir, getpid());
        body(handle);
        _exit(0);
    }
    return child;
}

/* What this machine or user can't do fails where nobody would notice. */
static void assert_child_may(void (*body)(void *), const char *reason)
{
    const char *ci = getenv("CI");
    int result = wait_for(start_child(body, NULL));
    if (result == NOT_PERMITTED) {
        fprintf(stderr, "skipped: %s\n", reason);
        assert_false(ci && strcmp(ci, "true") == 0);
        skip();
    }
    assert_int_equal(result, 0);
}

static void *opened(void)
{
    void *handle;
    CHECK(library->open(&handle, dir, true) == 0 && handle);
    return handle;
}

static void child_adds(void *handle)
{
    CHECK(library->add(handle, "of the child") == 0);
    CHECK(has_name(path, "of the child"));
    CHECK(library->close(handle) == 0);
}

/* ---- Other programs ---- */

/* This program as another one's child: a runtime that adds one function and ends. */
static int run_producer(const char *word, const char *in)
{
    void *handle;
    library = &libraries[strcmp(word, "map") == 0];
    CHECK(library->open(&handle, in, false) == 0 && handle);
    CHECK(library->add(handle, "of another program") == 0);
    CHECK(library->close(handle) == 0);
    return 0;
}

static void exec_producer(void)
{
    setenv("PERFJIT", library->word, 1);
    execl(program, program, "producer", library->word, dir, (char *)NULL);
    _exit(1);
}

static void test_vfork(void **state)
{
    void *handle = opened();
    (void)state;
    assert_int_equal(library->add(handle, "before"), 0);
    pid_t child = vfork();
    if (child == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    assert_int_equal(wait_for(child), 0);
    assert_int_equal(library->add(handle, "behind"), 0);
    assert_int_equal(library->close(handle), 0);
    assert_true(has_name(path, "before") && has_name(path, "behind"));
}

static void test_posix_spawn(void **state)
{
    char *arguments[] = {program, (char[]){"producer"}, (char *)(uintptr_t)library->word, dir,
                         NULL};
    char asked[32], other[128];
    char *environment[] = {asked, NULL};
    void *handle = opened();
    pid_t child;
    (void)state;
    snprintf(asked, sizeof asked, "PERFJIT=%s", library->word);
    assert_int_equal(library->add(handle, "before"), 0);
    assert_int_equal(posix_spawn(&child, program, NULL, NULL, arguments, environment), 0);
    assert_int_equal(wait_for(child), 0);
    assert_int_equal(library->add(handle, "behind"), 0);
    assert_int_equal(library->close(handle), 0);
    path_of(other, dir, child);
    assert_true(has_name(other, "of another program") && !has_name(other, "before"));
    assert_true(has_name(path, "before") && has_name(path, "behind"));
    assert_false(has_name(path, "of another program"));
}

/* The same pid: what the program before it left is stale. */
static void child_becomes_another_program(void *handle)
{
    handle = opened();
    CHECK(library->add(handle, "before") == 0);
    exec_producer();
}

static void test_exec(void **state)
{
    char other[128];
    (void)state;
    pid_t child = start_child(child_becomes_another_program, NULL);
    assert_int_equal(wait_for(child), 0);
    path_of(other, dir, child);
    assert_true(has_name(other, "of another program"));
    assert_false(has_name(other, "before"));
}

/* ---- Descriptors ---- */

/* All numbers that the library may hold stand for this file then. */
static void take_numbers(const char *other)
{
    for (int fd = 0; fd < 64;) {
        fd = open(other, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        CHECK(fd >= 0);
    }
}

static void check_precious(const char *other)
{
    struct stat status;
    char text[16] = "";
    int fd = open(other, O_RDONLY | O_CLOEXEC);
    CHECK(fstat(fd, &status) == 0 && status.st_size == 8);
    CHECK(read(fd, text, 8) == 8 && strcmp(text, "precious") == 0);
    close(fd);
}

static void child_has_its_own(void *handle)
{
    CHECK(library->add(handle, "of the child") == 0);
    CHECK(has_name(path, "of the child"));
    library->close(handle); /* returns the first error, which was the parent's */
}

static void child_closes_everything(void *handle)
{
    char other[128];
    struct stat status;
    uint64_t failed = 0;
    handle = opened();
    snprintf(other, sizeof other, "%s/other", dir);
    CHECK(library->add(handle, "before") == 0);
    closefrom(3);
    take_numbers(other);
    CHECK(write(3, "precious", 8) == 8);
    for (int i = 0; i < MANY; i++) {
        int error = library->add(handle, "behind");
        CHECK(error == 0 || error == -EBADF);
        failed += error != 0;
    }
    CHECK(library->lost(handle) == failed && (failed == MANY || library == &libraries[0]));
    CHECK(failed == 0 || strstr(library->error(handle), "closed the file's descriptor"));
    CHECK(wait_for(start_child(child_has_its_own, handle)) == 0);
    CHECK(library->close(handle) == (failed ? -EBADF : 0));
    CHECK(fstat(3, &status) == 0 && fstat(63, &status) == 0);
    check_precious(other);
    CHECK(has_name(path, "before"));
}

static void test_program_that_closes_all_descriptors(void **state)
{
    (void)state;
    assert_int_equal(wait_for(start_child(child_closes_everything, NULL)), 0);
}

/* As daemon(3) and its elders do it. */
static void child_becomes_a_daemon(void *handle)
{
    CHECK(setsid() > 0);
    umask(0);
    CHECK(chdir("/") == 0);
    closefrom(0);
    CHECK(open("/dev/null", O_RDWR) == 0 && dup(0) == 1 && dup(0) == 2);
    CHECK(wait_for(start_child(child_adds, handle)) == 0);
    CHECK(library->add(handle, "of the daemon") == 0);
    CHECK(has_name(path, "of the daemon") && mode_of(path) == 0600);
    CHECK(library->close(handle) == 0);
    CHECK(fcntl(0, F_GETFD) >= 0 && fcntl(1, F_GETFD) >= 0 && fcntl(2, F_GETFD) >= 0);
}

static void test_daemon(void **state)
{
    void *handle = opened();
    (void)state;
    assert_int_equal(library->add(handle, "before"), 0);
    assert_int_equal(wait_for(start_child(child_becomes_a_daemon, handle)), 0);
    assert_int_equal(library->add(handle, "behind"), 0);
    assert_int_equal(library->close(handle), 0);
    assert_true(has_name(path, "before") && has_name(path, "behind"));
    assert_false(has_name(path, "of the daemon"));
}

/* ---- Other users, other roots ---- */

static void become_a_stranger(void)
{
    CHECK(setgroups(0, NULL) == 0);
    CHECK(setresgid(STRANGER, STRANGER, STRANGER) == 0);
    CHECK(setresuid(STRANGER, STRANGER, STRANGER) == 0);
}

static void add_many(void *handle)
{
    for (int i = 0; i < MANY; i++)
        CHECK(library->add(handle, "behind") == 0);
    CHECK(library->lost(handle) == 0);
}

/* In a child for which there is no place: an error, a text, and nothing else. */
static void child_has_no_place(void *handle)
{
    int error = library->add(handle, "of the child");
    CHECK(error == -EACCES || error == -ENOENT);
    CHECK(strstr(library->error(handle), dir) && library->lost(handle) == 1);
    CHECK(library->add(handle, "of the child") == error);
    library->close(handle);
}

static void child_drops_privileges(void *handle)
{
    if (geteuid() != 0)
        _exit(NOT_PERMITTED);
    handle = opened();
    CHECK(library->add(handle, "before") == 0);
    become_a_stranger();
    add_many(handle);
    CHECK(wait_for(start_child(child_has_no_place, handle)) == 0);
    CHECK(library->close(handle) == 0);
}

static void test_privileges_are_dropped(void **state)
{
    (void)state;
    assert_child_may(child_drops_privileges, "only root can become another user");
}

/* The parent's directory may be written by all, and the child's file is the new user's. */
static void child_of_another_user(void *handle)
{
    struct stat status;
    become_a_stranger();
    CHECK(library->add(handle, "of the child") == 0);
    CHECK(library->close(handle) == 0);
    CHECK(lstat(path, &status) == 0 && status.st_uid == STRANGER);
    CHECK((status.st_mode & 07777) == 0600 && has_name(path, "of the child"));
}

static void child_forks_for_another_user(void *handle)
{
    if (geteuid() != 0)
        _exit(NOT_PERMITTED);
    CHECK(chmod(dir, 01777) == 0);
    handle = opened();
    CHECK(wait_for(start_child(child_of_another_user, handle)) == 0);
    CHECK(library->close(handle) == 0);
}

static void test_child_of_another_user(void **state)
{
    (void)state;
    assert_child_may(child_forks_for_another_user, "only root can become another user");
}

static void child_changes_its_root(void *handle)
{
    char root[128];
    if (geteuid() != 0)
        _exit(NOT_PERMITTED);
    handle = opened();
    CHECK(library->add(handle, "before") == 0);
    snprintf(root, sizeof root, "%s/root", dir);
    CHECK(mkdir(root, 0700) == 0 && chroot(root) == 0 && chdir("/") == 0);
    add_many(handle);
    CHECK(wait_for(start_child(child_has_no_place, handle)) == 0);
    CHECK(library->close(handle) == 0);
}

static void test_chroot(void **state)
{
    char other[128];
    (void)state;
    if (geteuid() != 0) {
        assert_child_may(child_changes_its_root, "only root can change its root");
        return;
    }
    pid_t child = start_child(child_changes_its_root, NULL);
    assert_int_equal(wait_for(child), 0);
    path_of(other, dir, child);
    assert_true(has_name(other, "before") && has_name(other, "behind"));
}

/* ---- The environment ---- */

static void test_umask(void **state)
{
    static const mode_t masks[] = {0, 022, 077, 0177};
    (void)state;
    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) {
        mode_t before = umask(masks[i]);
        void *handle = opened();
        umask(before);
        assert_int_equal(mode_of(path), 0600);
        assert_int_equal(library->close(handle), 0);
    }
}

static void assert_not_opened_in(const char *in)
{
    void *handle;
    int error = library->open(&handle, in, true);
    assert_true(error < 0);
    assert_non_null(handle);
    assert_true(strlen(library->error(handle)) > 0);
    assert_int_equal(library->add(handle, "nowhere"), error);
    assert_int_equal(library->lost(handle), 1);
    assert_int_equal(library->close(handle), error);
}

static void test_directories_that_are_none(void **state)
{
    char in_file[128], *longest = malloc(70000);
    (void)state;
    assert_non_null(longest);
    memset(longest, 'x', 69999);
    longest[69999] = '\0';
    snprintf(in_file, sizeof in_file, "%s/file", dir);
    close(open(in_file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    assert_not_opened_in(longest);
    memset(longest, '/', 5000); /* the root, in a way */
    longest[5000] = '\0';
    assert_not_opened_in(longest);
    assert_not_opened_in(in_file);
    assert_not_opened_in("/nowhere/\n\033[31m%s%n");
    free(longest);
}

/* A word that is asked for in a megabyte of others is found; in one of nonsense it is not. */
static void test_huge_environment(void **state)
{
    enum { BYTES = 1 << 20 };
    char *value = malloc(BYTES);
    void *handle = dir;
    (void)state;
    assert_non_null(value);
    memset(value, ',', BYTES - 1);
    value[BYTES - 1] = '\0';
    setenv("PERFJIT", value, 1);
    assert_int_equal(library->open(&handle, dir, false), 0);
    assert_null(handle);
    memcpy(value + BYTES - 1 - strlen(library->word), library->word, strlen(library->word));
    setenv("PERFJIT", value, 1);
    assert_int_equal(library->open(&handle, dir, false), 0);
    assert_non_null(handle);
    assert_int_equal(library->close(handle), 0);
    unsetenv("PERFJIT");
    free(value);
}

/* This program with another user's rights: the environment is that of whoever started it. */
static int run_with_rights(const char *word)
{
    void *handle = dir;
    library = &libraries[strcmp(word, "map") == 0];
    if (!getauxval(AT_SECURE))
        return NOT_PERMITTED; /* a file system mounted nosuid */
    CHECK(library->open(&handle, NULL, false) == 0);
    CHECK(handle == NULL);
    if (library == &libraries[0]) { /* JITDUMPDIR is not seen either: it goes here */
        CHECK(library->open(&handle, NULL, true) == 0);
        CHECK(strstr(jitdump_path(handle), "/here/jit-"));
        CHECK(library->close(handle) == 0);
    }
    return 0;
}

static void child_runs_with_rights(void *handle)
{
    char copy[128], here[128], command[1024];
    (void)handle;
    if (geteuid() != 0)
        _exit(NOT_PERMITTED);
    snprintf(copy, sizeof copy, "%s/with-rights", dir);
    snprintf(here, sizeof here, "%s/here", dir);
    snprintf(command, sizeof command, "cp %s %s && chmod 4755 %s", program, copy, copy);
    CHECK(chmod(dir, 0755) == 0 && system(command) == 0);
    CHECK(mkdir(here, 0777) == 0 && chmod(here, 0777) == 0 && chdir(here) == 0);
    setenv("PERFJIT", "dump,map", 1);
    setenv("JITDUMPDIR", dir, 1);
    become_a_stranger();
    execl(copy, copy, "with-rights", library->word, (char *)NULL);
    _exit(1);
}

static void test_set_user_id_program(void **state)
{
    (void)state;
    assert_child_may(child_runs_with_rights, "only root can make one, and not where nosuid is set");
}

/* ---- A pid that is used again ---- */

static int told[2]; /* a pipe: the first process with the pid is ready to be killed */

static void first_with_the_pid(void *handle)
{
    handle = opened();
    CHECK(library->add(handle, "of the first") == 0);
    CHECK(write(told[1], "x", 1) == 1);
    pause();
}

static void second_with_the_pid(void *handle)
{
    handle = opened();
    CHECK(library->add(handle, "of the second") == 0);
    CHECK(library->close(handle) == 0);
    CHECK(has_name(path, "of the second") && !has_name(path, "of the first"));
}

/* The first process of a new pid namespace is number 1, again and again. */
static void child_makes_namespaces(void *handle)
{
    char ready;
    (void)handle;
    if (unshare(CLONE_NEWPID) != 0)
        _exit(NOT_PERMITTED);
    pid_t first = start_child(first_with_the_pid, NULL);
    CHECK(read(told[0], &ready, 1) == 1);
    path_of(path, dir, 1);
    CHECK(has_name(path, "of the first"));
    CHECK(kill(first, SIGKILL) == 0 && wait_for(first) == 128 + SIGKILL);
    CHECK(has_name(path, "of the first"));
}

static void child_makes_another_namespace(void *handle)
{
    (void)handle;
    if (unshare(CLONE_NEWPID) != 0)
        _exit(NOT_PERMITTED);
    CHECK(wait_for(start_child(second_with_the_pid, NULL)) == 0);
}

static void test_pid_used_again(void **state)
{
    (void)state;
    assert_int_equal(pipe2(told, O_CLOEXEC), 0);
    assert_child_may(child_makes_namespaces, "pid namespaces are not permitted");
    assert_child_may(child_makes_another_namespace, "pid namespaces are not permitted");
    close(told[0]);
    close(told[1]);
}

/* ---- Two copies of a library ---- */

static void *symbol(const char *name)
{
    char shared[600];
    char *slash;
    snprintf(shared, sizeof shared, "%s", program);
    for (int i = 0; i < 2; i++) /* BUILD/tests/this */
        if ((slash = strrchr(shared, '/')))
            *slash = '\0';
    strncat(shared, "/", sizeof shared - strlen(shared) - 1);
    strncat(shared, library->shared, sizeof shared - strlen(shared) - 1);
    void *copy = dlopen(shared, RTLD_NOW | RTLD_LOCAL);
    if (!copy)
        fail_msg("%s", dlerror());
    void *found = dlsym(copy, name);
    assert_non_null(found);
    return found;
}

static struct {
    int (*open)(struct jitdump **, const struct jitdump_options *);
    int (*add)(struct jitdump *, const struct jitdump_code *, uint64_t *);
    int (*close)(struct jitdump *);
} other_dump;

static int open_other_dump(struct jitdump **dump, const char *in)
{
    struct jitdump_options options = JITDUMP_OPTIONS_INIT;
    options.dir = in;
    options.flags = JITDUMP_ALWAYS;
    return other_dump.open(dump, &options);
}

static void add_to_other_dump(struct jitdump *dump, const char *name)
{
    static const uint8_t bytes[] = {0xc3};
    struct jitdump_code code = JITDUMP_CODE_INIT;
    code.name = name;
    code.code_addr = 0x50000000;
    code.code_size = sizeof bytes;
    code.bytes = bytes;
    assert_int_equal(other_dump.add(dump, &code, NULL), 0);
}

/* Two runtimes in one process, each with libjitdump linked in. */
static void test_second_copy_of_libjitdump(void **state)
{
    char sub[80], other_path[128];
    struct jitdump *other;
    (void)state;
    *(void **)&other_dump.open = symbol("jitdump_open");
    *(void **)&other_dump.add = symbol("jitdump_add_code_on");
    *(void **)&other_dump.close = symbol("jitdump_close");
    assert_true((void *)(uintptr_t)other_dump.open != (void *)(uintptr_t)jitdump_open);
    void *handle = opened();
    assert_int_equal(open_other_dump(&other, dir), -EEXIST);
    assert_int_equal(other_dump.close(other), -EEXIST);
    assert_int_equal(library->add(handle, "of the first copy"), 0);
    snprintf(sub, sizeof sub, "%s/sub", dir);
    assert_int_equal(mkdir(sub, 0700), 0);
    assert_int_equal(open_other_dump(&other, sub), 0);
    add_to_other_dump(other, "of the second copy");
    assert_int_equal(wait_for(start_child(child_adds, handle)), 0);
    add_to_other_dump(other, "of the second copy, again");
    assert_int_equal(library->add(handle, "of the first copy, again"), 0);
    assert_int_equal(other_dump.close(other), 0);
    assert_int_equal(library->close(handle), 0);
    path_of(other_path, sub, getpid());
    assert_true(has_name(other_path, "of the second copy, again"));
    assert_false(has_name(other_path, "of the first copy"));
    assert_true(has_name(path, "of the first copy, again"));
    assert_false(has_name(path, "of the second copy"));
}

static struct {
    int (*open)(struct perfmap **, const struct perfmap_options *);
    int (*add)(struct perfmap *, uint64_t, uint64_t, const char *);
    int (*close)(struct perfmap *);
} other_map;

static void test_second_copy_of_libperfmap(void **state)
{
    char sub[80], other_path[128];
    struct perfmap_options options = PERFMAP_OPTIONS_INIT;
    struct perfmap *other;
    (void)state;
    *(void **)&other_map.open = symbol("perfmap_open");
    *(void **)&other_map.add = symbol("perfmap_add_on");
    *(void **)&other_map.close = symbol("perfmap_close");
    void *handle = opened();
    snprintf(sub, sizeof sub, "%s/sub", dir);
    assert_int_equal(mkdir(sub, 0700), 0);
    options.dir = sub;
    options.flags = PERFMAP_ALWAYS;
    assert_int_equal(other_map.open(&other, &options), 0);
    assert_int_equal(other_map.add(other, 1, 2, "of the second copy"), 0);
    assert_int_equal(library->add(handle, "of the first copy"), 0);
    assert_int_equal(wait_for(start_child(child_adds, handle)), 0);
    assert_int_equal(other_map.close(other), 0);
    assert_int_equal(library->close(handle), 0);
    path_of(other_path, sub, getpid());
    assert_true(has_name(other_path, "of the second copy"));
    assert_true(has_name(path, "of the first copy"));
    assert_false(has_name(path, "of the second copy"));
}

#define WITH(number, function)                                                                     \
    {                                                                                              \
#function, function, make_dir, remove_dir, &libraries[number]                              \
    }
#define WITH_BOTH(function) WITH(0, function), WITH(1, function)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        WITH_BOTH(test_vfork),
        WITH_BOTH(test_posix_spawn),
        WITH_BOTH(test_exec),
        WITH_BOTH(test_program_that_closes_all_descriptors),
        WITH_BOTH(test_daemon),
        WITH_BOTH(test_privileges_are_dropped),
        WITH_BOTH(test_child_of_another_user),
        WITH_BOTH(test_chroot),
        WITH_BOTH(test_umask),
        WITH_BOTH(test_directories_that_are_none),
        WITH_BOTH(test_huge_environment),
        WITH_BOTH(test_set_user_id_program),
        WITH_BOTH(test_pid_used_again),
        WITH(0, test_second_copy_of_libjitdump),
        WITH(1, test_second_copy_of_libperfmap),
    };
    if (argc == 4 && strcmp(argv[1], "producer") == 0)
        return run_producer(argv[2], argv[3]);
    if (argc == 3 && strcmp(argv[1], "with-rights") == 0)
        _exit(run_with_rights(argv[2]));
    if (readlink("/proc/self/exe", program, sizeof program - 1) < 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
