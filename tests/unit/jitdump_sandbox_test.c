/* libjitdump in sandboxes that refuse one of its system calls, in a world without /proc, and
 * without memory: nothing is raised, nothing ends, and what is not recorded is counted. */
#include "jitdump/guest/record_author.h"
#include "tests/unit/call_numbers.h"
#include "tests/unit/jitdump_inventory.h"

#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum { FUNCTIONS = 3000, LARGE_BYTES = 100000 };

/* ---- The sandbox ---- */

enum { ANY_OPERATION = -1 };

/* From now on CALL fails with ERROR, if its second argument is OPERATION. */
static void refuse_operation(int call, int operation, int error)
{
    const bool any = operation == ANY_OPERATION;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                 any ? offsetof(struct seccomp_data, nr) : offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, any ? (unsigned)call : (unsigned)operation, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((unsigned)error & SECCOMP_RET_DATA)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(NOT_PERMITTED);
}

/* A futex only for the operations that ask about memory. */
static void refuse(int call, int error)
{
    if (call != SYS_futex) {
        refuse_operation(call, ANY_OPERATION, error);
        return;
    }
    refuse_operation(call, FUTEX_WAIT_PRIVATE, error);
    refuse_operation(call, FUTEX_CMP_REQUEUE_PRIVATE, error);
}

/* What the library may call; where there is no such call, the number of one that it makes. */
static const struct {
    int number;
    bool needed; /* nothing can be recorded without it */
} calls[] = {
    {SYS_openat, true},     {SYS_newfstatat, true},     {SYS_pwritev, true},
    {SYS_mmap, true},       {SYS_munmap, false},        {SYS_madvise, false},
    {SYS_fallocate, false}, {SYS_ftruncate, false},     {SYS_fchmod, false},
    {SYS_flock, false},     {SYS_ioctl, false},         {SYS_fstatfs, false},
    {SYS_prlimit64, false}, {SYS_futex, false},         {SYS_rt_sigprocmask, false},
    {SYS_fcntl, false},     {SYS_gettid, false},        {SYS_getpid, false},
    {SYS_nanosleep, false}, {READLINK_CALL, false},     {SYS_read, false},
    {SYS_close, false},     {MKDIR_CALL, true},         {SYS_kcmp, false},
    {SYS_tgkill, false},    {SYS_clock_gettime, false},
};

/* ---- A life ---- */

static int add_bytes(struct jitdump *dump, const void *bytes, size_t count)
{
    struct jitdump_code code = code_with_bytes(0x10000, bytes, count, "f");
    return jitdump_add_code(dump, &code, NULL);
}

/* Everything that a runtime does; the calls that failed are those that are counted. */
static uint64_t live(struct jitdump *dump, const void *unreadable, const void *large)
{
    uint64_t failed = 0, code_index = 0;
    for (unsigned i = 0; i < FUNCTIONS; i++)
        failed += add_function(dump, 0, i, &code_index) != 0;
    failed += jitdump_move_code(dump, 0, addr_of(0, 0), 1, 1) != 0;
    failed += jitdump_unload_code(dump, 0, 1, 1) != 0;
    failed += add_bytes(dump, unreadable, 100) != 0;
    failed += add_bytes(dump, large, LARGE_BYTES) != 0;
    CHECK(jitdump_lost(dump) == failed);
    return failed;
}

static struct {
    int call, error;
    bool before_open;
} sandbox;

static void child_lives_in_sandbox(struct jitdump *dump)
{
    void *unreadable = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *large = calloc(1, LARGE_BYTES);
    CHECK(unreadable != MAP_FAILED && large);
    if (sandbox.before_open)
        refuse(sandbox.call, sandbox.error);
    int opened = try_open(&dump);
    if (!sandbox.before_open)
        refuse(sandbox.call, sandbox.error);
    CHECK((opened == 0) == (strlen(jitdump_error(dump)) == 0));
    uint64_t failed = live(dump, unreadable, large);
    CHECK(opened ? failed == FUNCTIONS + 4 : failed <= FUNCTIONS + 4);
    if (opened == 0)
        CHECK(jitdump_unreadable(dump) >= 1);
    if (opened == 0 && sandbox.before_open)
        CHECK(failed == 0);
    jitdump_close(dump);
    _exit(opened ? 2 : 0);
}

static void test_refused_calls(void **state)
{
    static const int errors[] = {EPERM, ENOSYS};
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        for (size_t j = 0; j < 4; j++) {
#ifdef __SANITIZE_ADDRESS__
            if (calls[i].number == SYS_mmap)
                continue; /* its run time can't do without */
#endif
            sandbox.call = calls[i].number;
            sandbox.error = errors[j % 2];
            sandbox.before_open = j < 2;
            int status = run_in_child(child_lives_in_sandbox, NULL);
            if (status == NOT_PERMITTED)
                skip_or_fail("seccomp is not permitted");
            if (status != 0 && (status != 2 || !calls[i].needed || !sandbox.before_open))
                fail_msg("call %d, error %d, %s: status %d", sandbox.call, sandbox.error,
                         sandbox.before_open ? "before" : "after", status);
            char command[128];
            snprintf(command, sizeof command, "rm -rf %s/*", dir);
            assert_int_equal(system(command), 0);
        }
}

/* Nobody says whether it can be read: then it isn't. */
static void child_has_no_question(struct jitdump *dump)
{
    static const uint8_t bytes[100] = {1};
    refuse(SYS_futex, EPERM);
    refuse(SYS_rt_sigprocmask, EPERM);
    CHECK(try_open(&dump) == 0);
    CHECK(add_bytes(dump, bytes, sizeof bytes) == 0);
    CHECK(jitdump_unreadable(dump) == 1);
    CHECK(jitdump_close(dump) == 0);
    CHECK(count_records(path, JIT_CODE_LOAD) == 1);
}

static void test_no_question_is_allowed(void **state)
{
    (void)state;
    assert_child_may(child_has_no_question, "seccomp is not permitted");
}

/* An emulator that does not look at a timeout says of any that the word is another.  It takes any
 * advice, too. */
static void child_has_timeouts_that_nobody_reads(struct jitdump *dump)
{
    static const uint8_t bytes[100] = {1};
    const void *unreadable = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    refuse_operation(SYS_futex, FUTEX_WAIT_PRIVATE, EAGAIN);
    refuse(SYS_madvise, 0);
    CHECK(unreadable != MAP_FAILED && try_open(&dump) == 0);
    CHECK(add_bytes(dump, unreadable, sizeof bytes) == 0);
    CHECK(jitdump_unreadable(dump) == 1);
    CHECK(add_bytes(dump, bytes, sizeof bytes) == 0);
    CHECK(jitdump_unreadable(dump) == 1);
    CHECK(jitdump_close(dump) == 0);
    CHECK(count_records(path, JIT_CODE_LOAD) == 2);
}

static void test_timeouts_that_nobody_reads(void **state)
{
    (void)state;
    assert_child_may(child_has_timeouts_that_nobody_reads, "seccomp is not permitted");
}

/* A lock is its holder's id.  (With producers/guest.c two threads of one id were in one record in
 * every third run.) */
static void child_has_no_thread_ids(struct jitdump *dump)
{
    (void)dump;
    refuse(SYS_gettid, EPERM);
    uint32_t one = jd_thread_id(), other = jd_thread_id();
    CHECK(one != other && (int32_t)one < 0 && (int32_t)other < 0);
}

static void test_no_thread_ids(void **state)
{
    (void)state;
    assert_child_may(child_has_no_thread_ids, "seccomp is not permitted");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_refused_calls),
        TEST(test_no_question_is_allowed),
        TEST(test_timeouts_that_nobody_reads),
        TEST(test_no_thread_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
