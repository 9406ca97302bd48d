/* Spans of a program: the file, its lines, and what a guest in another program must not do. */
#include "jitdump/jitdump.h"

#include "tests/unit/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { THREADS = 4, SPANS = 500 };

static struct jitdump_spans *spans;
static char path[128];

static void name_file(void)
{
    snprintf(path, sizeof path, "%s/marker-%d.txt", scratch, getpid());
}

static int begin(void **state)
{
    (void)state;
    name_file();
    unlink(path);
    return jitdump_spans_open(&spans, scratch, JITDUMP_ALWAYS) || !spans;
}

static int end(void **state)
{
    (void)state;
    jitdump_spans_close(spans);
    spans = NULL;
    return 0;
}

/* All of the file, as text, to be freed. */
static char *read_text(void)
{
    size_t size;
    char *text = (char *)read_whole(path, &size);
    text[size] = '\0';
    return text;
}

static void assert_line(const char *line, uint64_t from_ns, uint64_t to_ns, const char *name)
{
    uint64_t begin_ns, end_ns;
    int at = 0;
    assert_int_equal(sscanf(line, "%" SCNu64 " %" SCNu64 " %n", &begin_ns, &end_ns, &at), 2);
    assert_true(begin_ns >= from_ns && end_ns <= to_ns && begin_ns <= end_ns);
    assert_int_equal(strncmp(line + at, name, strlen(name)), 0);
    assert_int_equal(line[(size_t)at + strlen(name)], '\n');
}

static void writes_a_line_for_each_span(void **state)
{
    const uint64_t first = jitdump_span_begin();
    (void)state;
    errno = 77;
    assert_int_equal(jitdump_span_end(spans, first, "GET /users"), 0);
    assert_int_equal(jitdump_span_end(spans, jitdump_span_begin(),
                                      "a\nb\x7f"
                                      "c"),
                     0);
    assert_int_equal(errno, 77);
    char *text = read_text();
    assert_line(text, first, jitdump_span_begin(), "GET /users");
    assert_line(strchr(text, '\n') + 1, first, jitdump_span_begin(), "a b c");
    free(text);
}

static void cuts_a_long_name_between_characters(void **state)
{
    char name[300], wanted[300];
    (void)state;
    memset(name, 'x', sizeof name);
    memcpy(name + 254, "\xc3\xa4", 2); /* the first byte would fit, the second would not */
    name[299] = '\0';
    memcpy(wanted, name, 254);
    wanted[254] = '\0';
    assert_int_equal(jitdump_span_end(spans, jitdump_span_begin(), name), 0);
    char *text = read_text();
    assert_line(text, 0, UINT64_MAX, wanted);
    free(text);
}

static void names_have_no_controls(void **state)
{
    (void)state;
    assert_int_equal(
        jitdump_span_end(spans, jitdump_span_begin(), "x\ny\x1b\x7f\xc2\x85z\xc2\x9bw\xc2\xa0\x9b"),
        0);
    char *text = read_text();
    assert_line(text, 0, UINT64_MAX, "x y   z w\xc2\xa0\x9b");
    free(text);
}

static void refuses_what_is_no_span(void **state)
{
    const uint64_t now = jitdump_span_begin();
    struct jitdump_spans *none = spans;
    (void)state;
    assert_int_equal(jitdump_span_end(spans, now, NULL), -EINVAL);
    assert_int_equal(jitdump_span_end(spans, now, ""), -EINVAL);
    assert_int_equal(jitdump_span_end(spans, now + UINT64_C(1000000000000), "later"), -EINVAL);
    assert_int_equal(jitdump_spans_open(&none, scratch, 0x80), -EINVAL);
    assert_null(none);
    char *text = read_text();
    assert_string_equal(text, "");
    free(text);
}

static void is_off_without_a_word(void **state)
{
    struct jitdump_spans *none = spans;
    (void)state;
    unsetenv("PERFJIT");
    assert_int_equal(jitdump_spans_open(&none, "/nowhere", 0), 0);
    assert_null(none);
    assert_int_equal(jitdump_span_end(none, 1, "nothing"), 0);
    jitdump_spans_close(none);
    setenv("PERFJIT", "map,dump", 1);
    assert_int_equal(jitdump_spans_open(&none, "/nowhere", 0), -ENOENT);
    setenv("JITDUMPDIR", scratch, 1);
    assert_int_equal(jitdump_spans_open(&none, NULL, 0), 0);
    assert_non_null(none);
    jitdump_spans_close(none);
    unsetenv("PERFJIT");
    unsetenv("JITDUMPDIR");
}

/* As perf record sees it. */
static bool is_mapped_executable(const char *name)
{
    char line[512];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps))
        found |= strstr(line, name) && strstr(line, " r-xp ");
    fclose(maps);
    return found;
}

static void maps_the_file_of_a_process_or_a_thread(void **state)
{
    struct jitdump_spans *own;
    char name[64];
    (void)state;
    snprintf(name, sizeof name, "/marker-%d-%ld.txt", getpid(), syscall(SYS_gettid));
    assert_true(is_mapped_executable(path + strlen(scratch)));
    assert_false(is_mapped_executable(name));
    assert_int_equal(jitdump_spans_open(&own, scratch, JITDUMP_ALWAYS | JITDUMP_SPANS_OF_THREAD),
                     0);
    assert_true(is_mapped_executable(name));
    jitdump_spans_close(own);
    assert_false(is_mapped_executable(name));
}

static void goes_on_with_its_file_but_not_through_a_trap(void **state)
{
    struct jitdump_spans *second;
    char other[128];
    (void)state;
    assert_int_equal(jitdump_span_end(spans, jitdump_span_begin(), "one"), 0);
    assert_int_equal(jitdump_spans_open(&second, scratch, JITDUMP_ALWAYS), 0);
    assert_int_equal(jitdump_span_end(second, jitdump_span_begin(), "two"), 0);
    jitdump_spans_close(second);
    char *text = read_text();
    assert_line(strchr(text, '\n') + 1, 0, UINT64_MAX, "two");
    free(text);
    snprintf(other, sizeof other, "%s/other", scratch);
    assert_int_equal(link(path, other), 0); /* a second name: it may be anybody's */
    assert_int_equal(jitdump_spans_open(&second, scratch, JITDUMP_ALWAYS), -EEXIST);
    unlink(path);
    assert_int_equal(symlink(other, path), 0);
    assert_int_equal(jitdump_spans_open(&second, scratch, JITDUMP_ALWAYS), -EEXIST);
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(jitdump_spans_open(&second, scratch, JITDUMP_ALWAYS), -EEXIST);
    assert_null(second);
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(jitdump_spans_open(&second, scratch, JITDUMP_ALWAYS), -EEXIST);
    rmdir(path);
    assert_int_equal(mknod(path, S_IFSOCK | 0600, 0), 0);
    assert_int_equal(jitdump_spans_open(&second, scratch, JITDUMP_ALWAYS), -EEXIST);
    unlink(path);
    unlink(other);
}

static void *write_many(void *name)
{
    for (int i = 0; i < SPANS; i++)
        if (jitdump_span_end(spans, jitdump_span_begin(), name))
            return NULL;
    return name;
}

static void threads_write_whole_lines(void **state)
{
    static char names[THREADS][32];
    pthread_t threads[THREADS];
    int counts[THREADS] = {0};
    (void)state;
    for (int i = 0; i < THREADS; i++) {
        memset(names[i], 'a' + i, sizeof names[i] - 1);
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, names[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *done;
        assert_int_equal(pthread_join(threads[i], &done), 0);
        assert_non_null(done);
    }
    char *text = read_text(), *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char name[64];
        assert_int_equal(sscanf(line, "%*u %*u %63s", name), 1);
        assert_string_equal(name, names[name[0] - 'a']);
        counts[name[0] - 'a']++;
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(counts[i], SPANS);
    free(text);
}

static void a_child_opens_its_own(void **state)
{
    int status;
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        struct jitdump_spans *own;
        int wrong = jitdump_span_end(spans, jitdump_span_begin(), "child") != -ECHILD;
        jitdump_spans_close(spans);
        wrong |= jitdump_spans_open(&own, scratch, JITDUMP_ALWAYS) != 0;
        wrong |= !own || jitdump_span_end(own, jitdump_span_begin(), "child") != 0;
        name_file();
        char *text = wrong ? NULL : read_text();
        _exit(wrong || !strstr(text, " child\n"));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(jitdump_span_end(spans, jitdump_span_begin(), "parent"), 0);
    char *text = read_text();
    assert_line(text, 0, UINT64_MAX, "parent");
    assert_int_equal(strlen(strchr(text, '\n')), 1);
    free(text);
}

static void a_full_file_raises_nothing(void **state)
{
    int status;
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit limit = {100, 100};
        struct jitdump_spans *own;
        int last = 0;
        signal(SIGXFSZ, SIG_DFL);
        if (jitdump_spans_open(&own, scratch, JITDUMP_ALWAYS) || setrlimit(RLIMIT_FSIZE, &limit))
            _exit(1);
        for (int i = 0; i < 10 && last == 0; i++)
            last = jitdump_span_end(own, jitdump_span_begin(), "a name that fills the file");
        _exit(last == -EFBIG ? 0 : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void a_full_file_keeps_no_half_of_a_line(void **state)
{
    const uint64_t first = jitdump_span_begin();
    struct rlimit limit, before;
    (void)state;
    assert_int_equal(jitdump_span_end(spans, first, "one"), 0);
    char *text = read_text();
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){strlen(text) + 10, before.rlim_max};
    free(text);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    const int result = jitdump_span_end(spans, first, "two");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(result, -EFBIG);
    assert_int_equal(jitdump_span_end(spans, first, "three"), 0);
    text = read_text();
    assert_line(text, first, jitdump_span_begin(), "one");
    assert_line(strchr(text, '\n') + 1, first, jitdump_span_begin(), "three");
    free(text);
}

/* Root may open any file: another user makes it, and opens it again. */
static void no_umask_keeps_its_owner_out(void **state)
{
    int status;
    (void)state;
    if (geteuid() == 0)
        assert_int_equal(chmod(scratch, 0777), 0);
    pid_t child = fork();
    if (child == 0) {
        struct jitdump_spans *own;
        umask(0777);
        if (geteuid() == 0 && setresuid(12345, 12345, 12345))
            _exit(1);
        for (int i = 0; i < 2; i++) {
            if (jitdump_spans_open(&own, scratch, JITDUMP_ALWAYS))
                _exit(2);
            jitdump_spans_close(own);
        }
        name_file();
        unlink(path);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static int in_handler;

static void on_signal(int number)
{
    (void)number;
    in_handler = jitdump_span_end(spans, jitdump_span_begin(), "handler") == 0;
}

static void may_be_called_in_a_handler_and_is_no_cancellation_point(void **state)
{
    (void)state;
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
    assert_true(in_handler);
    signal(SIGUSR1, SIG_DFL);
    char *text = read_text();
    assert_line(text, 0, UINT64_MAX, "handler");
    free(text);
}

static void *cancel_itself(void *name)
{
    pthread_cancel(pthread_self());
    jitdump_span_end(spans, jitdump_span_begin(), name);
    pthread_testcancel();
    return name;
}

static void a_cancelled_thread_writes_its_span(void **state)
{
    pthread_t thread;
    void *result;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, cancel_itself, "cancelled"), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    char *text = read_text();
    assert_line(text, 0, UINT64_MAX, "cancelled");
    free(text);
}

static void *open_cancelled(void *opened)
{
    pthread_cancel(pthread_self());
    if (jitdump_spans_open(opened, scratch, JITDUMP_ALWAYS) == 0 && *(void **)opened)
        pthread_testcancel();
    return NULL;
}

static void *close_cancelled(void *opened)
{
    pthread_cancel(pthread_self());
    jitdump_spans_close(*(struct jitdump_spans **)opened);
    *(void **)opened = NULL;
    pthread_testcancel();
    return opened;
}

static void no_open_and_no_close_is_cancelled(void **state)
{
    struct jitdump_spans *opened = NULL;
    pthread_t thread;
    void *result;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, open_cancelled, &opened), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    assert_non_null(opened);
    assert_int_equal(jitdump_span_end(opened, jitdump_span_begin(), "of another thread"), 0);
    assert_int_equal(pthread_create(&thread, NULL, close_cancelled, &opened), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    assert_null(opened);
}

static void a_path_that_is_too_long_is_an_error(void **state)
{
    static char directory[5000];
    struct jitdump_spans *none = spans;
    (void)state;
    memset(directory, '/', sizeof directory - 1);
    assert_int_equal(jitdump_spans_open(&none, directory, JITDUMP_ALWAYS), -ENAMETOOLONG);
    assert_null(none);
}

static void leaves_a_descriptor_that_is_not_its_own_alone(void **state)
{
    char link_name[64], target[256];
    int fd = -1;
    (void)state;
    for (int i = 3; i < 256 && fd < 0; i++) {
        snprintf(link_name, sizeof link_name, "/proc/self/fd/%d", i);
        ssize_t bytes = readlink(link_name, target, sizeof target - 1);
        target[bytes > 0 ? bytes : 0] = '\0';
        if (strcmp(target, path) == 0)
            fd = i;
    }
    assert_true(fd > 2);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    int other = open(scratch_file, O_CREAT | O_RDWR | O_TRUNC, 0600);
    assert_int_equal(dup2(other, fd), fd);
    assert_int_equal(jitdump_span_end(spans, jitdump_span_begin(), "elsewhere"), -EBADF);
    jitdump_spans_close(spans);
    spans = NULL;
    assert_int_equal(lseek(fd, 0, SEEK_END), 0);
    close(fd);
    close(other);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(writes_a_line_for_each_span),
        TEST(cuts_a_long_name_between_characters),
        TEST(names_have_no_controls),
        TEST(refuses_what_is_no_span),
        TEST(is_off_without_a_word),
        TEST(maps_the_file_of_a_process_or_a_thread),
        TEST(goes_on_with_its_file_but_not_through_a_trap),
        TEST(threads_write_whole_lines),
        TEST(a_child_opens_its_own),
        TEST(a_full_file_raises_nothing),
        TEST(a_full_file_keeps_no_half_of_a_line),
        TEST(no_umask_keeps_its_owner_out),
        TEST(may_be_called_in_a_handler_and_is_no_cancellation_point),
        TEST(a_cancelled_thread_writes_its_span),
        TEST(no_open_and_no_close_is_cancelled),
        TEST(a_path_that_is_too_long_is_an_error),
        TEST(leaves_a_descriptor_that_is_not_its_own_alone),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
