/* What happens to a run from outside: signals, and files that are cut while they are mapped. */
#include "injector/files/interruption.h"
#include "injector/history/timeline/timeline.h"
#include "tests/unit/process_builder.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { PAGE_BYTES = 4096, FAILED = 9 };

/* The status of a child that runs BODY; a signal that ends it counts from 128. */
static int status_of(int (*body)(struct findings *))
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        struct findings findings = {0};
        _exit(body(&findings));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int nothing_happens(struct findings *findings)
{
    interruption_watch_files();
    interruption_hold_signals();
    int result = interruption_check(findings);
    interruption_pass_on();
    return result || findings->failure[0] ? FAILED : 0;
}

static int ended_before_it_wrote(struct findings *findings)
{
    interruption_watch_files();
    raise(SIGTERM);
    return findings->failure[0];
}

static int ended_while_it_wrote(struct findings *findings)
{
    interruption_hold_signals();
    raise(SIGTERM);
    if (interruption_check(findings) != -1 || !strstr(findings->failure, "interrupted"))
        return FAILED;
    interruption_pass_on();
    return FAILED;
}

/* A timeline of many events takes seconds. */
static int ended_while_it_played(struct findings *findings)
{
    static struct process_builder built;
    struct timeline timeline;
    process_begin(&built);
    build_load(&built, 1, 0x10000, 16);
    interruption_hold_signals();
    if (timeline_play(&timeline, &built.process, NULL, NULL, NULL, 0, findings))
        return FAILED;
    raise(SIGTERM);
    if (timeline_play(&timeline, &built.process, NULL, NULL, NULL, 0, findings) != -1 ||
        !strstr(findings->failure, "interrupted") || timeline.change_count)
        return FAILED;
    interruption_pass_on();
    return FAILED;
}

static int ignores_hangups(struct findings *findings)
{
    signal(SIGHUP, SIG_IGN);
    interruption_hold_signals();
    raise(SIGHUP);
    return interruption_check(findings) ? FAILED : 0;
}

static int reads_cut_file(struct findings *findings)
{
    int fd = open(scratch_file, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (ftruncate(fd, 4 * PAGE_BYTES))
        return FAILED;
    const volatile uint8_t *bytes = mmap(NULL, 4 * PAGE_BYTES, PROT_READ, MAP_PRIVATE, fd, 0);
    if (pwrite(fd, "x", 1, PAGE_BYTES - 1) != 1 || ftruncate(fd, PAGE_BYTES))
        return FAILED;
    interruption_watch_files();
    if (bytes[PAGE_BYTES - 1] != 'x' || interruption_check(findings))
        return FAILED;
    if (bytes[PAGE_BYTES] || bytes[4 * PAGE_BYTES - 1] || interruption_check(findings) != -1)
        return FAILED;
    return strstr(findings->failure, "became shorter") ? 0 : FAILED;
}

/* Four pages of the scratch file, as a spare one. */
static const volatile uint8_t *map_spare(int *fd, struct stat *status)
{
    *fd = open(scratch_file, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (ftruncate(*fd, 4 * PAGE_BYTES) || fstat(*fd, status))
        return NULL;
    const volatile uint8_t *bytes = mmap(NULL, 4 * PAGE_BYTES, PROT_READ, MAP_PRIVATE, *fd, 0);
    interruption_watch_files();
    interruption_spare((const void *)(uintptr_t)bytes, 4 * PAGE_BYTES, status);
    return bytes;
}

static int leaves_out_cut_file(struct findings *findings)
{
    int fd;
    struct stat status;
    const volatile uint8_t *bytes = map_spare(&fd, &status);
    if (!bytes || bytes[0] || interruption_check(findings) || interruption_has_cut(&status) ||
        interruption_begin_anew())
        return FAILED;
    if (ftruncate(fd, PAGE_BYTES) || bytes[4 * PAGE_BYTES - 1])
        return FAILED;
    if (interruption_check(findings) != -1 || !strstr(findings->failure, "became shorter"))
        return FAILED;
    interruption_spare_end((const void *)(uintptr_t)bytes);
    if (!interruption_has_cut(&status) || !interruption_begin_anew() || interruption_begin_anew())
        return FAILED;
    findings->failure[0] = '\0';
    return interruption_check(findings);
}

/* A cut within a page gives no signal. */
static int compares_sizes(struct findings *findings)
{
    int fd;
    struct stat status;
    const volatile uint8_t *bytes = map_spare(&fd, &status);
    if (!bytes)
        return FAILED;
    interruption_spare_lasts((const void *)(uintptr_t)bytes, scratch_file, 3 * PAGE_BYTES);
    if (ftruncate(fd, 3 * PAGE_BYTES))
        return FAILED;
    interruption_look();
    if (interruption_check(findings) || ftruncate(fd, 3 * PAGE_BYTES - 1))
        return FAILED;
    interruption_look();
    if (interruption_check(findings) != -1)
        return FAILED;
    interruption_spare_end((const void *)(uintptr_t)bytes);
    return interruption_has_cut(&status) && interruption_begin_anew() ? 0 : FAILED;
}

/* Another file that became shorter, or a signal, ends the run. */
static int ends_for_another_reason(struct findings *findings)
{
    int fd;
    struct stat status;
    const volatile uint8_t *bytes = map_spare(&fd, &status);
    const volatile uint8_t *other = mmap(NULL, 4 * PAGE_BYTES, PROT_READ, MAP_PRIVATE, fd, 0);
    if (!bytes || ftruncate(fd, PAGE_BYTES) || bytes[2 * PAGE_BYTES] || other[2 * PAGE_BYTES])
        return FAILED;
    interruption_spare_end((const void *)(uintptr_t)bytes);
    return interruption_begin_anew() || interruption_check(findings) != -1 ? FAILED : 0;
}

static int ends_by_a_signal(struct findings *findings)
{
    int fd;
    struct stat status;
    const volatile uint8_t *bytes = map_spare(&fd, &status);
    interruption_hold_signals();
    if (!bytes || ftruncate(fd, PAGE_BYTES) || bytes[2 * PAGE_BYTES])
        return FAILED;
    raise(SIGTERM);
    interruption_spare_end((const void *)(uintptr_t)bytes);
    return interruption_begin_anew() || interruption_check(findings) != -1 ? FAILED : 0;
}

/* What was found before stays. */
static int forgets_what_it_found_since(struct findings *findings)
{
    findings->quiet = true;
    report_finding(findings, FINDING_DUMP_MISSING, "before");
    const struct findings_mark mark = findings_mark(findings);
    report_finding(findings, FINDING_DUMP_MISSING, "since");
    report_finding(findings, FINDING_DUMP_TORN, "since");
    report_quirk(findings, QUIRK_DUMP_CUT, "since");
    report_failure(findings, "it failed");
    findings_return(findings, &mark);
    bool sound = findings->count[FINDING_DUMP_MISSING] == 1 &&
                 strcmp(findings->first[FINDING_DUMP_MISSING], "before") == 0 &&
                 !findings->count[FINDING_DUMP_TORN] && !findings->first[FINDING_DUMP_TORN] &&
                 !findings->repaired[QUIRK_DUMP_CUT] && !findings->failure[0];
    findings_free(findings);
    return sound ? 0 : FAILED;
}

static int writes_to_nobody(struct findings *findings)
{
    int pipe_fds[2];
    interruption_watch_files();
    if (pipe(pipe_fds))
        return FAILED;
    close(pipe_fds[0]);
    return write(pipe_fds[1], "x", 1) == -1 && !findings->failure[0] ? 0 : FAILED;
}

static void test_signals(void **state)
{
    (void)state;
    assert_int_equal(status_of(nothing_happens), 0);
    assert_int_equal(status_of(ended_before_it_wrote), 128 + SIGTERM);
    assert_int_equal(status_of(ended_while_it_wrote), 128 + SIGTERM);
    assert_int_equal(status_of(ended_while_it_played), 128 + SIGTERM);
    assert_int_equal(status_of(ignores_hangups), 0);
}

static void test_files(void **state)
{
    (void)state;
    assert_int_equal(status_of(reads_cut_file), 0);
    assert_int_equal(status_of(writes_to_nobody), 0);
}

static void test_spare_files(void **state)
{
    (void)state;
    assert_int_equal(status_of(leaves_out_cut_file), 0);
    assert_int_equal(status_of(compares_sizes), 0);
    assert_int_equal(status_of(ends_for_another_reason), 0);
    assert_int_equal(status_of(ends_by_a_signal), 0);
    assert_int_equal(status_of(forgets_what_it_found_since), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_spare_files),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
