/* An output that is an input, under whichever name. */
#include "injector/files/input_guard.h"
#include "injector/files/output_file.h"
#include "injector/files/regular_file.h"
#include "tests/unit/scratch.h"

#include <fcntl.h>
#include <sys/wait.h>

static struct findings findings;

static void put(const char *path)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("input", file);
    fclose(file);
}

static void path_of(char path[96], const char *name)
{
    snprintf(path, 96, "%s/%s", scratch, name);
}

static void read_it(const char *path)
{
    struct stat status;
    int fd = regular_file_open(path, 0, &status);
    assert_true(fd >= 0);
    close(fd);
}

/* The guard is the process's, and has no end: each case is a process of its own.  Returns how
 * OUTPUT is refused after INPUT was read: 0, it is not; 1, as a failure; 2, as misuse. */
static int refusal(const char *output, const char *input)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct output_file file = {.fd = -1};
        input_guard_output(output);
        read_it(input);
        int result = output_file_open(&file, output, &findings);
        output_file_close(&file);
        _exit(result ? 1 + findings.is_misuse : findings.is_misuse);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_names_of_one_file(void **state)
{
    (void)state;
    char input[96], other[96], hard[96], soft[96], chain[96], number[64];
    path_of(input, "input"), path_of(other, "other");
    path_of(hard, "hard"), path_of(soft, "soft"), path_of(chain, "chain");
    put(input), put(other);
    assert_int_equal(link(input, hard), 0);
    assert_int_equal(symlink("input", soft), 0);
    assert_int_equal(symlink("soft", chain), 0);
    int fd = open(input, O_RDONLY);
    snprintf(number, sizeof number, "/proc/self/fd/%d", fd);
    assert_int_equal(refusal(input, input), 2);
    assert_int_equal(refusal(hard, input), 2);
    assert_int_equal(refusal(input, soft), 2);
    assert_int_equal(refusal(soft, input), 2);
    assert_int_equal(refusal(chain, hard), 2);
    assert_int_equal(refusal(number, input), 2);
    assert_int_equal(refusal(other, input), 0);
    assert_int_equal(refusal("-", input), 0);
    path_of(other, "new");
    assert_int_equal(refusal(other, input), 0);
    close(fd);
    /* A link to what is no input stays refused as a link. */
    path_of(other, "other"), path_of(hard, "link");
    assert_int_equal(symlink("other", hard), 0);
    assert_int_equal(refusal(hard, input), 1);
}

/* An input may be opened after the output was. */
static void test_an_input_that_comes_later(void **state)
{
    (void)state;
    struct output_file file = {.fd = -1};
    char path[96], twin[96];
    path_of(path, "late"), path_of(twin, "twin");
    put(path);
    assert_int_equal(link(path, twin), 0);
    assert_false(input_guard_is_needed());
    input_guard_output(NULL);
    input_guard_output("-");
    assert_false(input_guard_is_needed());
    input_guard_output(path);
    input_guard_output(twin); /* the same file: told once */
    assert_true(input_guard_is_needed());
    assert_int_equal(output_file_open(&file, path, &findings), 0);
    assert_int_equal(output_file_write(&file, "output", 6, &findings), 0);
    input_guard_input_at("/nowhere/at/all");
    assert_int_equal(input_guard_check(&findings), 0);
    read_it(twin);
    assert_int_equal(output_file_commit(&file, &findings), -1);
    output_file_close(&file);
    assert_true(findings.is_misuse);
    assert_non_null(strstr(findings.failure, "late: is an input as well"));
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_of_one_file),
        cmocka_unit_test(test_an_input_that_comes_later),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
