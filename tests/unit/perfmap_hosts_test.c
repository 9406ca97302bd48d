/* libperfmap in hosts that do unusual things to their threads, handlers and descriptors: no signal,
 * nothing lost but what is counted, and no other file touched. */
#include "tests/unit/perfmap_test.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>

enum { LINES = 1000 };

/* How many lines the map has; all of them are LINE. */
static size_t lines_of(const char *line)
{
    char *text = text_of(path);
    size_t length = strlen(line), count = 0;
    CHECK(text);
    while (strncmp(text + count * length, line, length) == 0)
        count++;
    CHECK(text[count * length] == '\0');
    free(text);
    return count;
}

/* ---- A thread with descriptors of its own ---- */

/* The number of the map's descriptor is another file's here. */
static void *work_apart(void *context)
{
    struct perfmap *map = context;
    char other_path[160];
    struct stat status;
    snprintf(other_path, sizeof other_path, "%s/other", dir);
    CHECK(unshare(CLONE_FILES) == 0);
    for (int fd = 3; fd < 64; fd++)
        close(fd);
    for (int i = 0; i < 8; i++)
        CHECK(open(other_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) >= 0);
    for (int i = 0; i < LINES; i++)
        CHECK(perfmap_add(map, 1, 2, "f") == -EBADF);
    CHECK(stat(other_path, &status) == 0 && status.st_size == 0);
    return NULL;
}

static void test_a_thread_with_descriptors_of_its_own(void **state)
{
    struct perfmap *map = open_map();
    pthread_t thread;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, work_apart, map), 0);
    for (int i = 0; i < LINES; i++)
        assert_int_equal(perfmap_add(map, 1, 2, "f"), 0);
    pthread_join(thread, NULL);
    assert_int_equal(perfmap_lost(map), LINES);
    assert_int_equal(lines_of("1 2 f\n"), LINES);
    assert_int_equal(perfmap_close(map), -EBADF);
}

/* ---- No descriptor is left ---- */

static void child_has_no_descriptor(struct perfmap *map)
{
    CHECK(perfmap_add(map, 1, 2, "f") == -EMFILE);
    CHECK(perfmap_lost(map) == 1 && !exists(path));
    CHECK(perfmap_close(map) == -EMFILE);
}

static void lives_without_descriptors(struct perfmap *map)
{
    const struct rlimit three = {3, 3};
    map = open_map();
    CHECK(setrlimit(RLIMIT_NOFILE, &three) == 0);
    CHECK(perfmap_add(map, 1, 2, "f") == 0);
    CHECK(run_in_child(child_has_no_descriptor, map) == 0);
    CHECK(perfmap_add(map, 1, 2, "f") == 0);
    CHECK(perfmap_lost(map) == 0 && perfmap_close(map) == 0);
}

static void test_no_descriptor_is_left(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(lives_without_descriptors, NULL), 0);
}

/* ---- A process that shares memory and descriptors ---- */

static int add_lines(void *context)
{
    int failed = 0;
    for (int i = 0; i < LINES; i++)
        failed += perfmap_add(context, 1, 2, "f") != 0;
    return failed != 0;
}

static void test_a_process_in_the_same_memory(void **state)
{
    enum { STACK_BYTES = 1 << 18 };
    struct perfmap *map = open_map();
    char *stack =
        mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)state;
    assert_true(stack != MAP_FAILED);
    pid_t other = clone(add_lines, stack + STACK_BYTES, CLONE_VM | CLONE_FILES | SIGCHLD, map);
    assert_true(other > 0);
    int status = wait_for(other); /* it shares this thread's errno: one at a time */
    assert_int_equal(status, 0);
    assert_int_equal(add_lines(map), 0);
    assert_int_equal(lines_of("1 2 f\n"), 2 * LINES);
    assert_int_equal(perfmap_close(map), 0);
    munmap(stack, STACK_BYTES);
}

/* ---- A handler that forks, wherever it interrupts ---- */

static volatile sig_atomic_t forks, failed_children;
static pid_t forker;

static void interrupt_soon(void)
{
    const struct itimerval soon = {{0, 0}, {0, 300}};
    CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
}

/* The child returns into what was interrupted. */
static void fork_here(int number)
{
    const int saved = errno;
    (void)number;
    pid_t child = fork();
    if (child > 0) {
        failed_children = failed_children + (wait_for(child) != 0);
        forks = forks + 1;
        interrupt_soon();
    }
    errno = saved;
}

static _Noreturn void end_of_child(struct perfmap *map, int added)
{
    signal(SIGALRM, SIG_IGN);
    set_path(getpid());
    CHECK(added == 0 && perfmap_add(map, 1, 2, "f") == 0);
    CHECK(lines_of("1 2 f\n") >= 1);
    CHECK(perfmap_close(map) == 0);
    _exit(0);
}

static void test_a_handler_that_forks(void **state)
{
    enum { FORKS = 100 };
    const struct itimerval never = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = fork_here, .sa_flags = SA_RESTART};
    struct perfmap *map = open_map();
    size_t added = 0;
    (void)state;
    forks = failed_children = 0;
    forker = getpid();
    assert_int_equal(perfmap_add(map, 1, 2, "f"), 0);
    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    interrupt_soon();
    for (; forks < FORKS; added++) {
        int error = perfmap_add(map, 1, 2, "f");
        if (getpid() != forker)
            end_of_child(map, error);
        assert_int_equal(error, 0);
    }
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_int_equal(failed_children, 0);
    size_t lines = lines_of("1 2 f\n");
    assert_true(lines >= added + 1 && lines <= added + 1 + (size_t)forks); /* one of each child */
    assert_int_equal(perfmap_lost(map), 0);
    assert_int_equal(perfmap_close(map), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_thread_with_descriptors_of_its_own),
        TEST(test_no_descriptor_is_left),
        TEST(test_a_process_in_the_same_memory),
        TEST(test_a_handler_that_forks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
