/* Lists of what is to be undone: by the program itself, by its keeper, by the next program. */
#include "injector/files/undo_list.h"

#include "tests/unit/scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char *in_scratch(const char *name)
{
    static char path[2][128];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", scratch, name);
    return path[turn];
}

static void make_file(const char *name)
{
    int fd = open(in_scratch(name), O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    close(fd);
}

static bool is_there(const char *name)
{
    return access(in_scratch(name), F_OK) == 0;
}

static size_t lists(void)
{
    size_t count = 0;
    DIR *directory = opendir(scratch);
    const struct dirent *entry;
    while ((entry = readdir(directory)))
        count += strncmp(entry->d_name, "perfjit-undo-", 13) == 0;
    closedir(directory);
    return count;
}

/* A program: a directory with a file, a file that is done, a file that was replaced, and a name
 * that a file will get.  Then it ends by SIGNAL, or (0) by itself. */
static _Noreturn void work(int number)
{
    signal(number, SIG_DFL); /* a shell has its background programs ignore SIGINT and SIGQUIT */
    undo_list_begin();
    mkdir(in_scratch("folder"), 0700);
    make_file("folder/file");
    undo_list_add_path(in_scratch("folder"), NULL);
    make_file("kept");
    undo_list_done(undo_list_add_path(in_scratch("kept"), NULL));
    make_file("replaced");
    undo_list_add_path(in_scratch("replaced"), NULL);
    make_file("other");
    rename(in_scratch("other"), in_scratch("replaced"));
    make_file("before");
    undo_list_add_path(in_scratch("before"), in_scratch("after"));
    rename(in_scratch("before"), in_scratch("after"));
    if (number)
        raise(number);
    exit(EXIT_SUCCESS);
}

static void await_end(void)
{
    for (int i = 0; i < 5000 && lists(); i++)
        nanosleep(&(struct timespec){0, 2000000}, NULL);
}

static void check_undone(void)
{
    assert_false(is_there("folder"));
    assert_true(is_there("kept"));
    assert_true(is_there("replaced"));
    assert_false(is_there("after"));
    assert_int_equal(lists(), 0);
    unlink(in_scratch("kept"));
    unlink(in_scratch("replaced"));
}

static void test_whatever_ends_the_program(void **state)
{
    static const int numbers[] = {0, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGKILL, SIGUSR1};
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        int status;
        pid_t child = fork();
        if (child == 0)
            work(numbers[i]);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(WIFSIGNALED(status) ? WTERMSIG(status) : 0, numbers[i]);
        if (numbers[i] == SIGKILL || numbers[i] == SIGUSR1)
            await_end(); /* nobody could wait for the keeper */
        check_undone();
    }
}

/* From the first file on, a signal that ends the program has it removed.  The moments are those
 * between a fork and the end of the beginning. */
static void test_a_signal_while_the_list_begins(void **state)
{
    enum { MOMENTS = 200, STEP_NS = 10000 };
    (void)state;
    for (long i = 0; i < MOMENTS; i++) {
        int ready[2];
        char byte;
        assert_int_equal(pipe(ready), 0);
        pid_t child = fork();
        if (child == 0) {
            signal(SIGHUP, SIG_DFL);
            close(ready[0]);
            close(ready[1]);
            undo_list_begin();
            exit(EXIT_SUCCESS);
        }
        close(ready[1]);
        assert_int_equal(read(ready[0], &byte, 1), 0);
        close(ready[0]);
        nanosleep(&(struct timespec){0, i * STEP_NS}, NULL);
        kill(child, SIGHUP);
        assert_int_equal(waitpid(child, NULL, 0), child);
        assert_int_equal(lists(), 0);
    }
}

/* ---- Lists that were left ---- */

static void leave_list(const char *name, const char *first, const char *path)
{
    struct stat status;
    FILE *file = fopen(in_scratch(name), "w");
    assert_non_null(file);
    fputs(first, file);
    putc('\0', file);
    if (path && stat(path, &status) == 0) {
        fprintf(file, "+1 path %" PRIu64 " %" PRIu64 " %s", (uint64_t)status.st_dev,
                (uint64_t)status.st_ino, path);
        putc('\0', file);
    }
    fclose(file);
}

static void test_the_next_program_does_what_was_left(void **state)
{
    (void)state;
    make_file("first");
    make_file("second");
    make_file("third");
    leave_list("perfjit-undo-aaaaaa", "perfjit-undo 1", in_scratch("first"));
    leave_list("perfjit-undo-bbbbbb", "something else", in_scratch("second"));
    leave_list("perfjit-undo-cccccc", "perfjit-undo 1", in_scratch("third"));
    assert_int_equal(symlink(in_scratch("perfjit-undo-cccccc"), in_scratch("perfjit-undo-dddddd")),
                     0);
    assert_int_equal(link(in_scratch("perfjit-undo-cccccc"), in_scratch("hard")), 0);
    pid_t child = fork();
    if (child == 0) {
        undo_list_begin();
        _exit(EXIT_SUCCESS);
    }
    waitpid(child, NULL, 0);
    assert_false(is_there("first"));
    assert_true(is_there("second"));
    assert_true(is_there("third")); /* its list has another name as well: anybody's work */
    assert_true(is_there("perfjit-undo-bbbbbb"));
    unlink(in_scratch("hard"));
    unlink(in_scratch("perfjit-undo-bbbbbb"));
    unlink(in_scratch("perfjit-undo-cccccc"));
    unlink(in_scratch("perfjit-undo-dddddd"));
    await_end();
}

/* ---- Processes ---- */

static void test_a_process_is_ended(void **state)
{
    int ends[2], status;
    char byte;
    (void)state;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        undo_list_begin();
        pid_t worker = fork();
        if (worker == 0)
            for (;;)
                pause();
        undo_list_add_process(worker);
        raise(SIGKILL);
    }
    close(ends[1]);
    waitpid(child, &status, 0);
    assert_int_equal(read(ends[0], &byte, 1), 0); /* the worker had it open */
    close(ends[0]);
    await_end();
    assert_int_equal(lists(), 0);
}

static int make_place(void **state)
{
    return make_scratch(state) || setenv("TMPDIR", scratch, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whatever_ends_the_program),
        cmocka_unit_test(test_a_signal_while_the_list_begins),
        cmocka_unit_test(test_the_next_program_does_what_was_left),
        cmocka_unit_test(test_a_process_is_ended),
    };
    return cmocka_run_group_tests(tests, make_place, remove_scratch);
}
