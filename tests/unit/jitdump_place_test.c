/* Where libjitdump puts a dump when there is one already: nothing that somebody may still need is
 * removed. */
#include "jitdump/guest/process_start.h"
#include "tests/unit/jitdump_inventory.h"
#include "tests/unit/own_namespaces.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

/* How often this thread loses the processor for a while before a look at CLOCK_BOOTTIME, which this
 * file stands in for. */
static unsigned stalls;

int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (stalls && clock == CLOCK_BOOTTIME) {
        stalls--;
        usleep(200000);
    }
    return (int)syscall(SYS_clock_gettime, clock, now);
}

static char second_path[160], third_path[160];

/* Of this process. */
static void set_paths(void)
{
    set_path(getpid());
    snprintf(second_path, sizeof second_path, "%s/jitdump-%d-2/jit-%d.dump", dir, (int)getpid(),
             (int)getpid());
    snprintf(third_path, sizeof third_path, "%s/jitdump-%d-3/jit-%d.dump", dir, (int)getpid(),
             (int)getpid());
}

static int set_up(void **state)
{
    if (make_dir(state))
        return -1;
    set_paths();
    return 0;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Open a dump, which must be AT, and record COUNT functions. */
static struct jitdump *open_at(const char *at, unsigned count)
{
    struct jitdump *dump = open_dump();
    CHECK(strcmp(jitdump_path(dump), at) == 0);
    add_first(dump, 0, count);
    return dump;
}

static void check_goes_to(const char *at)
{
    struct jitdump *dump = open_at(at, 5);
    CHECK(jitdump_close(dump) == 0);
    check_inventory(at, 5, 1);
}

/* ---- Other JITs ---- */

static void write_foreign_header(int fd, uint64_t time)
{
    uint64_t header[8] = {(uint64_t)1 << 32 | JITDUMP_MAGIC, (uint64_t)62 << 32 | 40,
                          (uint64_t)getpid() << 32, time, 0};
    CHECK(write(fd, header, sizeof header) == sizeof header);
}

/* A file at FILE_PATH as another JIT makes it, with a header of TIME, or, if TIME is 0, nothing
 * yet. */
static int make_foreign_dump(const char *file_path, uint64_t time)
{
    make_place();
    int fd = open(file_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    CHECK(fd >= 0);
    if (time)
        write_foreign_header(fd, time);
    return fd;
}

static ino_t inode_of(const char *file_path)
{
    struct stat status;
    return stat(file_path, &status) == 0 ? status.st_ino : 0;
}

/* node --perf-prof: mapped, and its header is in a buffer for long. */
static void test_another_jits_dump(void **state)
{
    int fd = make_foreign_dump(path, 0);
    void *marker = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    ino_t inode = inode_of(path);
    (void)state;
    assert_true(marker != MAP_FAILED);
    /* Not even its times say that it is of this life. */
    const struct timespec long_ago[] = {{1, 0}, {1, 0}};
    assert_int_equal(futimens(fd, long_ago), 0);
    check_goes_to(second_path);
    assert_int_equal(inode_of(path), inode);
    munmap(marker, 4096);
    close(fd);
}

/* It has unmapped it by now; but it was begun since this process was. */
static void test_another_jits_finished_dump(void **state)
{
    (void)state;
    close(make_foreign_dump(path, now_ns()));
    ino_t inode = inode_of(path);
    check_goes_to(second_path);
    assert_int_equal(inode_of(path), inode);
}

static void test_stale_dumps(void **state)
{
    static const uint64_t an_hour_ns = UINT64_C(3600) * 1000000000;
    (void)state;
    close(make_foreign_dump(path, 1)); /* long before this process */
    check_goes_to(path);
    remove_dump(path);
    close(make_foreign_dump(path, now_ns() + an_hour_ns)); /* before the machine was last started */
    check_goes_to(path);
}

/* Of the process that had this pid just before. */
static void test_a_dump_just_before_this_process_on_a_busy_machine(void **state)
{
    static const uint64_t before_ns = 100000000;
    struct timespec boot;
    uint64_t start_ns;
    (void)state;
    assert_true(process_start(&start_ns));
    clock_gettime(CLOCK_BOOTTIME, &boot);
    const uint64_t age_ns = (uint64_t)boot.tv_sec * 1000000000 + (uint64_t)boot.tv_nsec - start_ns;
    close(make_foreign_dump(path, now_ns() - age_ns - before_ns));
    stalls = 1;
    check_goes_to(path);
    assert_int_equal(stalls, 0);
}

/* ---- Handles ---- */

static void test_two_handles(void **state)
{
    (void)state;
    struct jitdump *first = open_at(path, 10), *second = open_at(second_path, 20);
    add_first(first, 10, 3000);
    add_first(second, 20, 3000);
    assert_int_equal(jitdump_close(first), 0);
    assert_int_equal(jitdump_close(second), 0);
    check_inventory(path, 3000, 1);
    check_inventory(second_path, 3000, 1);
}

/* Open, add, close, open, add. */
static void test_two_sessions(void **state)
{
    (void)state;
    assert_int_equal(jitdump_close(open_at(path, 10)), 0);
    assert_int_equal(jitdump_close(open_at(second_path, 20)), 0);
    assert_int_equal(jitdump_close(open_at(third_path, 30)), 0);
    check_inventory(path, 10, 1);
    check_inventory(second_path, 20, 1);
    check_inventory(third_path, 30, 1);
}

/* What has nothing in it need not be kept. */
static void test_empty_sessions(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++)
        assert_int_equal(jitdump_close(open_at(path, 0)), 0);
    assert_int_equal(jitdump_close(open_at(path, 7)), 0);
    check_inventory(path, 7, 1);
}

/* All but the last place are taken by dumps of this process's life. */
static void test_no_more_than_999_dumps(void **state)
{
    struct jitdump *last, *one_more;
    char folder[128], file_path[192];
    (void)state;
    make_place();
    close(make_foreign_dump(path, now_ns()));
    for (int number = 2; number <= 999; number++) {
        snprintf(folder, sizeof folder, "%s/jitdump-%d-%d", dir, (int)getpid(), number);
        snprintf(file_path, sizeof file_path, "%s/jit-%d.dump", folder, (int)getpid());
        if (number < 999) {
            assert_int_equal(mkdir(folder, 0700), 0);
            close(make_foreign_dump(file_path, now_ns()));
        }
    }
    last = open_at(file_path, 3);
    assert_int_equal(try_open(&one_more), -EEXIST);
    assert_non_null(strstr(jitdump_error(one_more), "999"));
    jitdump_close(one_more);
    assert_int_equal(jitdump_close(last), 0);
    check_inventory(file_path, 3, 1);
}

/* Another thread, with a handle of its own, is opening it: it is longer already, and its header
 * comes late, or has no time yet.  It isn't locked, because somebody asked in that moment whether
 * it is, or it wasn't when this thread asked. */
static void check_is_being_opened(bool has_header)
{
    const struct timespec long_ago[] = {{1, 0}, {1, 0}};
    int fd = make_foreign_dump(path, 0);
    ino_t inode = inode_of(path);
    if (has_header)
        write_foreign_header(fd, 0);
    assert_int_equal(ftruncate(fd, 1 << 20), 0);
    check_goes_to(second_path);
    assert_int_equal(inode_of(path), inode);
    assert_int_equal(futimens(fd, long_ago), 0); /* of an earlier life, killed while it opened it */
    check_goes_to(path);
    close(fd);
    remove_dump(path);
    remove_dump(second_path);
}

static void test_a_dump_that_is_being_opened(void **state)
{
    (void)state;
    check_is_being_opened(false);
}

static void test_a_dump_whose_header_has_no_time_yet(void **state)
{
    (void)state;
    check_is_being_opened(true);
}

static int locked_by_others; /* so many more times */

int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);

int __wrap_flock(int fd, int operation)
{
    if (operation != (LOCK_EX | LOCK_NB) || locked_by_others == 0)
        return __real_flock(fd, operation);
    locked_by_others--;
    errno = EWOULDBLOCK;
    return -1;
}

/* Or perfjit would take the process for one that has ended. */
static void test_a_dump_is_locked_though_somebody_asked(void **state)
{
    (void)state;
    locked_by_others = 2;
    struct jitdump *dump = open_at(path, 1);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(locked_by_others, 0);
    assert_int_equal(__real_flock(fd, LOCK_SH | LOCK_NB), -1);
    assert_int_equal(errno, EWOULDBLOCK);
    close(fd);
    assert_int_equal(jitdump_close(dump), 0);
    remove_dump(path);
    locked_by_others = 1000000; /* somebody who was stopped: nobody waits for that */
    assert_int_equal(jitdump_close(open_at(path, 1)), 0);
    locked_by_others = 0;
}

static void *open_one(void *to)
{
    struct jitdump **dump = to;
    *dump = open_dump();
    return NULL;
}

static void test_handles_at_the_same_time(void **state)
{
    enum { THREADS = 8, ROUNDS = 10 };
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct jitdump *dumps[THREADS];
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, open_one, &dumps[i]), 0);
        for (int i = 0; i < THREADS; i++) {
            pthread_join(threads[i], NULL);
            add_first(dumps[i], 0, (unsigned)i + 1);
        }
        for (int i = 0; i < THREADS; i++) {
            char used_path[160];
            snprintf(used_path, sizeof used_path, "%s", jitdump_path(dumps[i]));
            assert_int_equal(jitdump_close(dumps[i]), 0);
            check_inventory(used_path, (size_t)i + 1, 1);
            remove_dump(used_path);
        }
    }
}

/* ---- Processes ---- */

/* In the program's second life: its first one's dump is at PATH, and a child of that still holds
 * it. */
static int live_again(const char *in_dir)
{
    snprintf(dir, sizeof dir, "%s", in_dir);
    set_paths();
    check_goes_to(second_path);
    check_first(path, 3);
    return 0;
}

static void child_executes_itself(struct jitdump *dump)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    if (fork() == 0) {
        char byte;
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
    }
    close(ends[0]);
    dump = open_at(path, 3);
    CHECK(dump != NULL);
    setenv("JITDUMP_TEST_DIR", dir, 1);
    execl("/proc/self/exe", "jitdump_place_test", NULL);
    _exit(1);
}

static void test_exec_of_itself(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(child_executes_itself, NULL), 0);
}

/* A process with our pid in another container that shares the directory. */
static void test_namesake(void **state)
{
    int ends[2], fd = make_foreign_dump(path, 1);
    char byte;
    (void)state;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        int own = open(path, O_RDWR | O_CLOEXEC);
        CHECK(flock(own, LOCK_EX | LOCK_NB) == 0 && write(ends[1], "x", 1) == 1);
        for (;;)
            pause();
    }
    close(fd);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    check_goes_to(second_path);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(wait_for(child), 128 + SIGKILL);
    close(ends[0]);
    close(ends[1]);
}

/* Nobody says what is mapped, nor since when there is this process. */
static void child_has_no_proc(struct jitdump *dump)
{
    (void)dump;
    enter_own_disk("/proc", 0, NULL);
    set_paths();
    check_goes_to(path);
    check_goes_to(second_path);
    check_inventory(path, 5, 1);
}

static void test_no_proc(void **state)
{
    (void)state;
    assert_child_may(child_has_no_proc, "mounting is not permitted");
}

/* Pid 1 of a container, started for the thousandth time. */
static void child_is_started_again(struct jitdump *dump)
{
    char folder[128], file_path[192];
    enter_own_disk("/proc", 0, NULL);
    set_paths();
    for (int number = 1; number <= 999; number++) {
        const struct timespec times[] = {{0, UTIME_OMIT}, {number == 77 ? 5 : 1000 + number, 0}};
        snprintf(folder, sizeof folder, number == 1 ? "%s/jitdump-%d" : "%s/jitdump-%d-%d", dir,
                 (int)getpid(), number);
        CHECK(mkdir(folder, 0700) == 0);
        snprintf(file_path, sizeof file_path, "%s/jit-%d.dump", folder, (int)getpid());
        int fd = make_foreign_dump(file_path, now_ns());
        CHECK(futimens(fd, times) == 0);
        close(fd);
    }
    snprintf(file_path, sizeof file_path, "%s/jitdump-%d-77/jit-%d.dump", dir, (int)getpid(),
             (int)getpid());
    CHECK(jitdump_close(open_at(file_path, 5)) == 0);
    check_inventory(file_path, 5, 1);
    dump = open_at(path, 2); /* the oldest now: the other one is of this life */
    CHECK(jitdump_close(dump) == 0);
    check_inventory(file_path, 5, 1);
}

static void test_no_proc_and_999_dumps_of_earlier_lives(void **state)
{
    (void)state;
    assert_child_may(child_is_started_again, "mounting is not permitted");
}

/* ---- Folders ---- */

/* In a directory that was there, and is empty. */
static void child_may_not_write(struct jitdump *dump)
{
    struct rlimit limit = {100, 100};
    char folder[192];
    snprintf(folder, sizeof folder, "%s/jitdump-%d", dir, (int)getpid());
    set_paths();
    CHECK(mkdir(folder, 0700) == 0);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK(try_open(&dump) == -EFBIG);
    CHECK(jitdump_close(dump) == -EFBIG);
    CHECK(access(folder, F_OK) == 0);
    strcat(folder, "/stage");
    CHECK(access(folder, F_OK) != 0); /* that was its own */
}

/* What the caller made is not removed, empty or not, and nothing that a cut path names. */
static void test_failure_leaves_the_callers_folders(void **state)
{
    struct jitdump_options options = options_in_dir();
    struct jitdump *dump;
    char folder[192], long_path[6000];
    (void)state;
    memset(long_path, '/', sizeof long_path - 1);
    memcpy(long_path, dir, strlen(dir));
    long_path[sizeof long_path - 1] = '\0';
    options.dir = long_path;
    assert_int_equal(jitdump_open(&dump, &options), -ENAMETOOLONG);
    assert_int_equal(jitdump_close(dump), -ENAMETOOLONG);
    assert_int_equal(access(dir, F_OK), 0);
    assert_int_equal(run_in_child(child_may_not_write, NULL), 0);
    snprintf(folder, sizeof folder, "%s/jitdump-%d", dir, (int)getpid());
    assert_int_equal(mkdir(folder, 0700), 0);
    strcat(folder, "/stage");
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(symlink("/nowhere", path), 0); /* is in the way */
    assert_int_equal(try_open(&dump), -EEXIST);
    assert_int_equal(jitdump_close(dump), -EEXIST);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(access(folder, F_OK), 0);
    options = options_in_dir();
    options.flags |= JITDUMP_UNMAPPED; /* there is no stage */
    assert_int_equal(jitdump_open(&dump, &options), 0);
    assert_int_equal(jitdump_close(dump), 0);
    assert_int_equal(access(folder, F_OK), 0);
}

/* What others may have put there is passed by. */
static void test_folder_of_somebody_else(void **state)
{
    char folder[128], trap[128];
    (void)state;
    snprintf(folder, sizeof folder, "%s/jitdump-%d-2", dir, (int)getpid());
    snprintf(trap, sizeof trap, "%s/trap", dir);
    assert_int_equal(mkdir(trap, 0700), 0);
    assert_int_equal(symlink(trap, folder), 0);
    struct jitdump *first = open_at(path, 1);
    assert_int_equal(jitdump_close(open_at(third_path, 2)), 0);
    assert_int_equal(rmdir(trap), 0); /* nothing is in it */
    unlink(folder);
    remove_dump(third_path);
    assert_int_equal(mkdir(folder, 0777), 0);
    assert_int_equal(chmod(folder, 0777), 0);
    assert_int_equal(jitdump_close(open_at(third_path, 3)), 0);
    assert_int_equal(jitdump_close(first), 0);
}

/* No file, no folder. */
static void child_fails(struct jitdump *dump)
{
    char folder[128];
    enter_own_disk(dir, MS_NOEXEC, "size=4m");
    close(make_foreign_dump(path, now_ns()));
    snprintf(folder, sizeof folder, "%s/jitdump-%d-2", dir, (int)getpid());
    CHECK(try_open(&dump) == -EPERM);
    CHECK(jitdump_close(dump) == -EPERM);
    CHECK(access(folder, F_OK) != 0);
}

static void test_failure_leaves_no_folder(void **state)
{
    (void)state;
    assert_child_may(child_fails, "mounting is not permitted");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, remove_dir)

int main(void)
{
    const char *in_dir = getenv("JITDUMP_TEST_DIR");
    if (in_dir)
        return live_again(in_dir);
    const struct CMUnitTest tests[] = {
        TEST(test_another_jits_dump),
        TEST(test_another_jits_finished_dump),
        TEST(test_stale_dumps),
        TEST(test_a_dump_just_before_this_process_on_a_busy_machine),
        TEST(test_two_handles),
        TEST(test_two_sessions),
        TEST(test_empty_sessions),
        TEST(test_no_more_than_999_dumps),
        TEST(test_a_dump_that_is_being_opened),
        TEST(test_a_dump_whose_header_has_no_time_yet),
        TEST(test_a_dump_is_locked_though_somebody_asked),
        TEST(test_handles_at_the_same_time),
        TEST(test_exec_of_itself),
        TEST(test_namesake),
        TEST(test_no_proc),
        TEST(test_no_proc_and_999_dumps_of_earlier_lives),
        TEST(test_failure_leaves_the_callers_folders),
        TEST(test_folder_of_somebody_else),
        TEST(test_failure_leaves_no_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
