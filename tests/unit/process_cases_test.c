/* What processes do while a dump or a map is open: vfork, exec, posix_spawn, daemons, pids that are
 * used again, two copies of a library.  The same cases for libjitdump and libperfmap, through what
 * jitdump.h and perfmap.h promise.
 *
 * (Forks among threads, kills and full disks: jitdump_survival_test, perfmap_threads_test,
 * perfmap_room_test.  Other users and roots: user_cases_test.) */
#include "tests/unit/either_library.h"
#include "tests/unit/own_namespaces.h"

#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mount.h>
#include <time.h>

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

static void child_becomes_another_program(void *handle)
{
    usleep(50000); /* the process's start is known to 10 ms */
    handle = opened();
    CHECK(library->add(handle, "before") == 0);
    exec_producer();
}

/* The same pid and the same start: samples of the program before are named by its dump, which
 * stays, and so does its map: it may be that of another JIT of this program. */
static void test_exec(void **state)
{
    char before[128], second[128], other[128];
    const bool is_map = strcmp(library->word, "map") == 0;
    (void)state;
    pid_t child = start_child(child_becomes_another_program, NULL);
    assert_int_equal(wait_for(child), 0);
    path_of(before, dir, child);
    snprintf(second, sizeof second, "%s/jitdump-%d-2/jit-%d.dump", dir, (int)child, (int)child);
    path_of(other, dir, child);
    if (!is_map)
        snprintf(other, sizeof other, "%s", second);
    assert_true(has_name(other, "of another program"));
    assert_true(has_name(other, "before") == is_map);
    assert_true(has_name(before, "before"));
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

/* ---- A pid that is used again ---- */

static int told[2]; /* a pipe: the first process with the pid is ready to be killed */

/* As a container has it. */
static void mount_own_proc(void)
{
    need(mount("proc", "/proc", "proc", 0, NULL) == 0);
}

static void first_with_the_pid(void *handle)
{
    mount_own_proc();
    handle = opened();
    CHECK(library->add(handle, "of the first") == 0);
    CHECK(write(told[1], "x", 1) == 1);
    pause();
}

static void second_with_the_pid(void *handle)
{
    mount_own_proc();
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
    enter_own(CLONE_NEWPID | CLONE_NEWNS);
    CHECK(pipe2(told, O_CLOEXEC) == 0);
    pid_t first = start_child(first_with_the_pid, NULL);
    close(told[1]);
    if (read(told[0], &ready, 1) != 1)
        _exit(wait_for(first));
    path_of(path, dir, 1);
    CHECK(has_name(path, "of the first"));
    CHECK(kill(first, SIGKILL) == 0 && wait_for(first) == 128 + SIGKILL);
    CHECK(has_name(path, "of the first"));
}

/* When a process was started is told in ticks of 10 ms: a dump of the same one is not known to be
 * stale. */
static void child_makes_another_namespace(void *handle)
{
    static const struct timespec two_ticks = {0, 20000000};
    (void)handle;
    nanosleep(&two_ticks, NULL);
    enter_own(CLONE_NEWPID | CLONE_NEWNS);
    _exit(wait_for(start_child(second_with_the_pid, NULL)));
}

static void test_pid_used_again(void **state)
{
    (void)state;
    assert_child_may(child_makes_namespaces, "pid namespaces are not permitted");
    assert_child_may(child_makes_another_namespace, "pid namespaces are not permitted");
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
    char other_path[128];
    struct jitdump *other;
    (void)state;
    *(void **)&other_dump.open = symbol("jitdump_open");
    *(void **)&other_dump.add = symbol("jitdump_add_code_on");
    *(void **)&other_dump.close = symbol("jitdump_close");
    assert_true((void *)(uintptr_t)other_dump.open != (void *)(uintptr_t)jitdump_open);
    void *handle = opened();
    assert_int_equal(library->add(handle, "of the first copy"), 0);
    assert_int_equal(open_other_dump(&other, dir), 0);
    add_to_other_dump(other, "of the second copy");
    assert_int_equal(wait_for(start_child(child_adds, handle)), 0);
    add_to_other_dump(other, "of the second copy, again");
    assert_int_equal(library->add(handle, "of the first copy, again"), 0);
    assert_int_equal(other_dump.close(other), 0);
    assert_int_equal(library->close(handle), 0);
    snprintf(other_path, sizeof other_path, "%s/jitdump-%d-2/jit-%d.dump", dir, (int)getpid(),
             (int)getpid());
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        WITH_BOTH(test_vfork),
        WITH_BOTH(test_posix_spawn),
        WITH_BOTH(test_exec),
        WITH_BOTH(test_program_that_closes_all_descriptors),
        WITH_BOTH(test_daemon),
        WITH_BOTH(test_pid_used_again),
        WITH(0, test_second_copy_of_libjitdump),
        WITH(1, test_second_copy_of_libperfmap),
    };
    if (argc == 4 && strcmp(argv[1], "producer") == 0)
        return run_producer(argv[2], argv[3]);
    if (readlink("/proc/self/exe", program, sizeof program - 1) < 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
