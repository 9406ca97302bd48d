/* PERFJIT=dump,check: a program that looks at no result sees what does not fit, on standard error;
 * and PERFJIT=dump,chekc is an error. */
#include "jitdump/cfi.h"
#include "tests/unit/jitdump_test.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <termios.h>

/* push rbp; ret: it returns to the caller's rbp */
static const uint8_t code[] = {0x55, 0xc3};

static char said_path[192];

static void log_functions(const char *words, unsigned count)
{
    struct jitdump_options options = JITDUMP_OPTIONS_INIT;
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    struct jitdump_unwind unwind;
    struct jitdump_code record = JITDUMP_CODE_INIT;
    struct jitdump *dump;
    CHECK(setenv("PERFJIT", words, 1) == 0);
    options.dir = dir;
    options.elf_mach = 62; /* EM_X86_64, wherever this runs */
    CHECK(jitdump_open(&dump, &options) == 0);
    CHECK(jitdump_cfi_finish(cfi, sizeof code, &unwind) == 0); /* a leaf */
    record.name = "wrong";
    record.code_addr = (uint64_t)(uintptr_t)code;
    record.code_size = sizeof code;
    record.bytes = code;
    record.unwind = &unwind;
    for (unsigned i = 0; i < count; i++)
        CHECK(jitdump_add_code(dump, &record, NULL) == 0);
    jitdump_close(dump);
    jitdump_cfi_free(cfi);
}

/* What the child's standard error got, to be freed. */
static char *said(void)
{
    char *text = text_of(said_path);
    assert_non_null(text);
    unlink(said_path);
    return text;
}

static int open_said(void)
{
    int fd = open(said_path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    return fd;
}

static void logs_three(struct jitdump *ignored)
{
    (void)ignored;
    CHECK(dup2(open_said(), STDERR_FILENO) == STDERR_FILENO);
    log_functions("dump,check", 3);
}

static void logs_one(struct jitdump *ignored)
{
    (void)ignored;
    CHECK(dup2(open_said(), STDERR_FILENO) == STDERR_FILENO);
    log_functions("check,dump", 1);
}

static void logs_three_unchecked(struct jitdump *ignored)
{
    (void)ignored;
    CHECK(dup2(open_said(), STDERR_FILENO) == STDERR_FILENO);
    log_functions("dump", 3);
}

static size_t lines_of(const char *text)
{
    size_t lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

static void test_a_bare_close_tells_what_does_not_fit(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(logs_three, NULL), 0);
    char *text = said();
    assert_int_equal(lines_of(text), 2);
    assert_int_equal(strncmp(text, "libjitdump: ", 12), 0);
    assert_non_null(strstr(text, "the frame of wrong does not fit its code: at +0x1 "));
    assert_non_null(strstr(text, "the frames of 3 functions do not fit"));
    free(text);
    assert_int_equal(run_in_child(logs_one, NULL), 0);
    text = said();
    assert_int_equal(lines_of(text), 1);
    free(text);
    assert_int_equal(run_in_child(logs_three_unchecked, NULL), 0);
    text = said();
    assert_string_equal(text, "");
    free(text);
}

/* ---- Where nothing can be written ---- */

static void has_a_closed_pipe(struct jitdump *ignored)
{
    int ends[2];
    sigset_t pending;
    (void)ignored;
    CHECK(pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
    CHECK(close(ends[0]) == 0);
    log_functions("dump,check", 3);
    sigpending(&pending);
    CHECK(sigismember(&pending, SIGPIPE) == 0);
}

static void has_a_full_file(struct jitdump *ignored)
{
    struct rlimit limit = {8 << 20, 8 << 20};
    (void)ignored;
    int fd = open_said();
    CHECK(ftruncate(fd, 8 << 20) == 0 && dup2(fd, STDERR_FILENO) == STDERR_FILENO);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    log_functions("dump,check", 3);
}

static void has_none(struct jitdump *ignored)
{
    (void)ignored;
    CHECK(close(STDERR_FILENO) == 0);
    log_functions("dump,check", 3);
}

/* In a session of its own, in the background of a terminal that stops those that write. */
static int terminal; /* its other end */

static void has_a_terminal(struct jitdump *ignored)
{
    struct termios settings;
    int status;
    (void)ignored;
    CHECK(grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    CHECK(setsid() > 0);
    int fd = open(ptsname(terminal), O_RDWR);
    CHECK(fd >= 0 && tcgetattr(fd, &settings) == 0);
    settings.c_lflag |= TOSTOP;
    CHECK(tcsetattr(fd, TCSANOW, &settings) == 0);
    pid_t writer = fork();
    if (writer == 0) {
        CHECK(setpgid(0, 0) == 0 && dup2(fd, STDERR_FILENO) == STDERR_FILENO);
        log_functions("dump,check", 3);
        _exit(0);
    }
    CHECK(waitpid(writer, &status, WUNTRACED) == writer);
    if (WIFSTOPPED(status))
        kill(writer, SIGKILL);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void test_a_terminal_does_not_stop_the_program(void **state)
{
    (void)state;
    terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0) {
        print_message("skipped: there are no terminals: %s\n", strerror(errno));
        skip();
    }
    assert_int_equal(run_in_child(has_a_terminal, NULL), 0);
    close(terminal);
}

static void test_no_signal_where_nothing_can_be_written(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(has_a_closed_pipe, NULL), 0);
    assert_int_equal(run_in_child(has_a_full_file, NULL), 0);
    unlink(said_path);
    assert_int_equal(run_in_child(has_none, NULL), 0);
}

/* The program closed standard error; its number is another file's by then. */
static void reuses_the_number(struct jitdump *ignored)
{
    struct jitdump_options options = options_in_dir();
    struct jitdump *dump;
    (void)ignored;
    options.elf_mach = 62; /* EM_X86_64 */
    CHECK(setenv("PERFJIT", "check", 1) == 0);
    CHECK(jitdump_open(&dump, &options) == 0);
    CHECK(dup2(open_said(), STDERR_FILENO) == STDERR_FILENO);
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    struct jitdump_unwind unwind;
    struct jitdump_code record = JITDUMP_CODE_INIT;
    CHECK(jitdump_cfi_finish(cfi, sizeof code, &unwind) == 0);
    record.code_size = sizeof code;
    record.bytes = code;
    record.unwind = &unwind;
    CHECK(jitdump_add_code(dump, &record, NULL) == 0);
    CHECK(jitdump_faults(dump) == 1);
    CHECK(jitdump_close(dump) == -EBADMSG);
    jitdump_cfi_free(cfi);
}

static void test_no_other_file_is_written_to(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(reuses_the_number, NULL), 0);
    char *text = said();
    assert_string_equal(text, "");
    free(text);
}

/* ---- Words ---- */

static void test_a_misspelt_word_is_an_error(void **state)
{
    static const char *const wrong[] = {"dump,chekc", "dmup",       "dump,ring",   "dump check",
                                        "DUMP",       "dump;check", "attach,dumpp"};
    static const char *const right[] = {"dump,check,", "map,dump", "gdb,dump,unmapped",
                                        "dump,ring=4M"};
    struct jitdump *dump;
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        setenv("PERFJIT", wrong[i], 1);
        assert_int_equal(jitdump_open(&dump, NULL), -EINVAL);
        assert_non_null(strstr(jitdump_error(dump), "no word that this version knows"));
        assert_int_equal(jitdump_close(dump), -EINVAL);
        assert_int_equal(try_open(&dump), -EINVAL); /* JITDUMP_ALWAYS */
        jitdump_close(dump);
    }
    setenv("PERFJIT", "dump,chekc", 1);
    jitdump_open(&dump, NULL);
    assert_non_null(strstr(jitdump_error(dump), "\"chekc\""));
    jitdump_close(dump);
    setenv("JITDUMPDIR", dir, 1);
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        setenv("PERFJIT", right[i], 1);
        assert_int_equal(jitdump_open(&dump, NULL), 0);
        assert_int_equal(jitdump_is_on(dump), 1);
        jitdump_close(dump);
    }
    setenv("PERFJIT", "/usr/bin/perfjit", 1); /* another variable of that name */
    assert_int_equal(jitdump_open(&dump, NULL), 0);
    assert_null(dump);
    unsetenv("PERFJIT");
    unsetenv("JITDUMPDIR");
}

static int set_up(void **state)
{
    if (make_dir(state))
        return -1;
    snprintf(said_path, sizeof said_path, "%s/said", dir);
    return 0;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_bare_close_tells_what_does_not_fit),
        TEST(test_no_signal_where_nothing_can_be_written),
        TEST(test_a_terminal_does_not_stop_the_program),
        TEST(test_no_other_file_is_written_to),
        TEST(test_a_misspelt_word_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
