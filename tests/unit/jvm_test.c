/* The JVM's attach interface, as seen by what is no JVM: processes that listen, do not, are stopped
 * or end.  No file may be left in /tmp, and no request that a stopped one would get later. */
#include "injector/run/attach/jvm.h"

#include "tests/unit/scratch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *const words[JVM_WORDS] = {"load", "library", "true", "attach"};
static pid_t child;
static char file[64], socket_path[64];

static void wait_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static volatile sig_atomic_t quits;

static void on_quit(int number)
{
    (void)number;
    quits++;
}

/* Answers one request, with the first word behind its number, and how often it was woken. */
static void listen_and_answer(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char asked[100] = "", answer[200];
    snprintf(address.sun_path, sizeof address.sun_path, "/tmp/.java_pid%d", (int)getpid());
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(fd, (const struct sockaddr *)&address, sizeof address) || listen(fd, 1))
        _exit(1);
    int other = accept(fd, NULL, NULL);
    if (read(other, asked, sizeof asked - 1) > 2) {
        snprintf(answer, sizeof answer, "0\n%s %d\n", asked + 2, (int)quits);
        if (write(other, answer, strlen(answer)) < 0)
            _exit(1);
    }
    close(other);
    unlink(address.sun_path);
    close(fd);
}

/* A child that is woken by SIGQUIT, and then does THEN; forever, if it is NULL. */
static void make_child(void (*then)(void))
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    child = fork();
    if (child == 0) {
        signal(SIGQUIT, on_quit);
        if (write(ready[1], "x", 1) != 1)
            _exit(1);
        while (!then || !quits)
            wait_ms(5);
        then();
        wait_ms(20000);
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    snprintf(file, sizeof file, "/tmp/.attach_pid%d", (int)child);
    snprintf(socket_path, sizeof socket_path, "/tmp/.java_pid%d", (int)child);
    unlink(file); /* of a process that had this pid, and was killed */
    unlink(socket_path);
}

static int end_child(void **state)
{
    (void)state;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    unlink(socket_path);
    return unlink(file) == 0 ? -1 : 0; /* it was left */
}

static int request(char answer[JVM_ANSWER_BYTES], char text[JVM_TEXT_BYTES])
{
    struct jvm jvm;
    assert_int_equal(jvm_open(&jvm, child, text), 0);
    int result = jvm_request(&jvm, words, answer, text);
    jvm_close(&jvm);
    return result;
}

static void assert_refused(const char *reason)
{
    char answer[JVM_ANSWER_BYTES], text[JVM_TEXT_BYTES];
    assert_int_equal(request(answer, text), -1);
    assert_non_null(strstr(text, reason));
}

static void assert_woken_once(void)
{
    char answer[JVM_ANSWER_BYTES], text[JVM_TEXT_BYTES];
    assert_int_equal(request(answer, text), 0);
    assert_string_equal(jvm_answer_text(answer), "load 1");
}

static void test_it_is_woken_and_answers(void **state)
{
    (void)state;
    make_child(listen_and_answer);
    assert_woken_once();
}

static void test_a_stopped_one_is_left_alone(void **state)
{
    int status;
    (void)state;
    make_child(listen_and_answer);
    kill(child, SIGSTOP);
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    const int64_t begun_ms = now_ms();
    assert_refused("it is stopped");
    assert_true(now_ms() - begun_ms < 3000); /* no waiting */
    kill(child, SIGCONT);
    wait_ms(100);
    assert_int_equal(access(socket_path, F_OK), -1); /* it was not woken */
}

static void end(void)
{
    _exit(0);
}

static void test_one_that_ends_is_not_waited_for(void **state)
{
    (void)state;
    make_child(end);
    const int64_t begun_ms = now_ms();
    assert_refused("it has ended");
    assert_true(now_ms() - begun_ms < 5000);
}

static void make_file(int age_s)
{
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
                                      {.tv_sec = time(NULL) - age_s, .tv_nsec = 0}};
    assert_int_equal(futimens(fd, times), 0);
    close(fd);
}

static void test_the_file_that_a_killed_program_left(void **state)
{
    (void)state;
    make_child(listen_and_answer);
    make_file(3600);
    assert_woken_once();
}

static void test_a_file_that_is_no_request_is_left_alone(void **state)
{
    (void)state;
    make_child(listen_and_answer);
    assert_int_equal(symlink("/dev/null", file), 0); /* the JVM would print its threads */
    assert_refused("it takes no requests: no file can be made in its /tmp");
    assert_int_equal(unlink(file), 0);
    wait_ms(50);
    assert_int_equal(access(socket_path, F_OK), -1); /* it was not woken */
    if (geteuid() == 0) {
        make_file(3600);
        assert_int_equal(chown(file, 4242, (gid_t)-1), 0);
        assert_refused("it takes no requests: no file can be made in its /tmp");
        assert_int_equal(unlink(file), 0);
    }
}

static void test_another_program_that_asks_is_waited_for(void **state)
{
    (void)state;
    make_child(listen_and_answer);
    make_file(0);
    pid_t other = fork();
    if (other == 0) {
        wait_ms(200);
        kill(child, SIGQUIT);
        for (int i = 0; i < 400 && access(socket_path, F_OK); i++)
            wait_ms(5);
        unlink(file);
        _exit(0);
    }
    assert_woken_once(); /* a second SIGQUIT would have a JVM print its threads */
    waitpid(other, NULL, 0);
}

static void test_ended_by_a_signal_it_leaves_no_file(void **state)
{
    int status;
    (void)state;
    make_child(NULL);
    pid_t asking = fork();
    if (asking == 0) {
        char answer[JVM_ANSWER_BYTES], text[JVM_TEXT_BYTES];
        signal(SIGINT, SIG_DFL); /* a script's background ignores it */
        request(answer, text);
        _exit(0);
    }
    for (int i = 0; i < 2000 && access(file, F_OK); i++)
        wait_ms(5);
    assert_int_equal(access(file, F_OK), 0);
    kill(asking, SIGINT);
    assert_int_equal(waitpid(asking, &status, 0), asking);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
    assert_int_equal(access(file, F_OK), -1);
}

#define TEST(function) cmocka_unit_test_teardown(function, end_child)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_it_is_woken_and_answers),
        TEST(test_a_stopped_one_is_left_alone),
        TEST(test_one_that_ends_is_not_waited_for),
        TEST(test_the_file_that_a_killed_program_left),
        TEST(test_a_file_that_is_no_request_is_left_alone),
        TEST(test_another_program_that_asks_is_waited_for),
        TEST(test_ended_by_a_signal_it_leaves_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
