/* libjitdump's way into the file: stage, body, and what a kill or a failure leaves at each step of
 * it. */
#include "tests/unit/clock_stand_in.h"
#include "tests/unit/jitdump_inventory.h"
#include "tests/unit/write_stand_in.h"

#include "jitdump/writer/dump_writer.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

/* ---- Another of the system's calls, which this file stands in for ---- */

static off_t free_bytes; /* on the disk, for one stage; 0: any number */

int fallocate(int fd, int mode, off_t offset, off_t length)
{
    if (free_bytes && length > free_bytes) {
        errno = ENOSPC;
        return -1;
    }
    return (int)syscall(SYS_fallocate, fd, mode, offset, length);
}

static int forget_mishaps(void **state)
{
    memset(&writes, 0, sizeof writes);
    free_bytes = 0;
    restore_clock();
    return make_dir(state);
}

/* ---- A reader ---- */

/* Whoever reads while the process goes on. */
static void test_readable_at_any_time(void **state)
{
    struct jitdump *dump = open_dump();
    (void)state;
    for (unsigned i = 0; i < 9000; i++) {
        add_first(dump, i, i + 1);
        if (i % 97 == 0)
            check_first(path, i + 1);
    }
    assert_int_equal(jitdump_close(dump), 0);
    check_inventory(path, 9000, 1);
}

/* ---- Functions of a given size ---- */

static uint8_t byte_of(size_t code_bytes)
{
    return (uint8_t)(code_bytes * 31 + 7);
}

static void add_sized(struct jitdump *dump, size_t code_bytes)
{
    struct jitdump_code code = JITDUMP_CODE_INIT;
    uint8_t *bytes = malloc(code_bytes + 1);
    CHECK(bytes != NULL);
    memset(bytes, byte_of(code_bytes), code_bytes);
    code.name = "f";
    code.code_addr = 0x10000;
    code.code_size = code_bytes;
    code.bytes = bytes;
    CHECK(jitdump_add_code(dump, &code, NULL) == 0);
    free(bytes);
}

enum { SIZED_FIXED_BYTES = JR_CODE_LOAD_BYTES + 2 };

/* ---- Kills ---- */

/* What a child does before it closes its dump. */
struct plan {
    unsigned functions;
    unsigned least_writes;
    size_t large_bytes; /* of a group at the beginning; 0: there is none */
    uint64_t max_bytes; /* of the files; 0: any */
    off_t free_bytes;
    bool unmapped;
};

static const struct plan plans[] = {
    /* Several stages full, and several of the larger one. */
    {14000, 15, 0, 0, 0, false},
    /* The same, but no room for a larger one, or it is not allowed. */
    {5000, 10, 0, 0, STAGE_FIRST_BYTES, false},
    {3500, 5, 0, 2 << 20, 0, false},
    /* The first stage can't grow. */
    {700, 20, 0, 0, STAGE_SMALL_BYTES, false},
    /* The file is longer at once than it is made ahead. */
    {100, 5, 3 << 20, 0, 0, false},
    {40, 80, 0, 0, 0, true},
};

static const struct plan *plan;

/* Shared with the child. */
static struct {
    atomic_bool opened;
    atomic_uint returned;
} * progress;

static void child_adds(struct jitdump *dump)
{
    struct jitdump_options options = options_in_dir();
    options.max_bytes = plan->max_bytes;
    options.flags |= plan->unmapped ? JITDUMP_UNMAPPED : 0;
    free_bytes = plan->free_bytes;
    writes.calls = 0;
    CHECK(jitdump_open(&dump, &options) == 0);
    atomic_store(&progress->opened, true);
    if (plan->large_bytes)
        add_sized(dump, plan->large_bytes);
    for (unsigned i = 0; i < plan->functions; i++) {
        CHECK(add_function(dump, 0, i, NULL) == 0);
        atomic_store(&progress->returned, i + 1);
    }
    CHECK(jitdump_close(dump) == 0);
}

/* What returned is there; of the one under way the whole or nothing. */
static void check_killed(const char *file_path, unsigned added)
{
    struct inventory *inventory = take_inventory(file_path);
    CHECK(inventory->functions == added || inventory->functions == added + 1);
    for (size_t i = 0; i < added; i++)
        CHECK(inventory->seen[0][i]);
    CHECK(inventory->fillers <= FILLERS_MAX && inventory->others <= 2); /* large, CLOSE */
    free(inventory);
}

/* Kill a child at each of its writes; returns how many it makes once its dump is open. */
static unsigned kill_at_each_write(enum mishap mishap)
{
    unsigned before_open = 0;
    for (unsigned at = 1;; at++) {
        char child_path[128];
        writes.mishap = mishap;
        writes.at = at;
        atomic_store(&progress->opened, false);
        atomic_store(&progress->returned, 0);
        pid_t child = start_child(child_adds, NULL);
        int result = wait_for(child);
        path_of(child_path, dir, child);
        if (result == 0) {
            check_inventory(child_path, plan->functions, plan->large_bytes ? 2 : 1);
            return at - 1 - before_open;
        }
        assert_int_equal(result, 128 + SIGKILL);
        if (atomic_load(&progress->opened))
            check_killed(child_path, atomic_load(&progress->returned));
        else
            before_open++;
        remove_dump(child_path);
    }
}

static void test_killed_at_each_write(void **state)
{
    (void)state;
    progress = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(progress != MAP_FAILED);
    for (plan = plans; plan < plans + sizeof plans / sizeof plans[0]; plan++) {
        unsigned before = kill_at_each_write(KILL_BEFORE);
        assert_in_range(before, plan->least_writes, 200);
        assert_int_equal(kill_at_each_write(KILL_AFTER), before);
        assert_int_equal(kill_at_each_write(KILL_HALF_WAY), before);
    }
    munmap(progress, 4096);
}

/* ---- Groups of all sizes ---- */

static void check_sized(const struct dump_bytes *bytes, size_t *offset, size_t code_bytes)
{
    struct record record;
    do
        CHECK(next_record(bytes, offset, &record));
    while (record.id == JIT_FILLER);
    CHECK(record.id == JIT_CODE_LOAD && record.total_size == SIZED_FIXED_BYTES + code_bytes);
    cursor_skip(&record.body, SIZED_FIXED_BYTES - JR_PREFIX_BYTES);
    CHECK(is_filled(&record.body, code_bytes, byte_of(code_bytes)));
}

enum {
    FIRST_SPILL_BYTES = STAGE_FIRST_BYTES / STAGE_SPILL_DIVISOR,
    LATER_SPILL_BYTES = STAGE_LATER_BYTES / STAGE_SPILL_DIVISOR,
};

static const size_t stage_sizes[] = {
    STAGE_GROUP_MAX_BYTES, FIRST_SPILL_BYTES, STAGE_FIRST_BYTES - FIRST_SPILL_BYTES,
    STAGE_FIRST_BYTES,     LATER_SPILL_BYTES, STAGE_LATER_BYTES - LATER_SPILL_BYTES,
    STAGE_LATER_BYTES,     17 << 20};

static void check_stage_sizes(void)
{
    struct dump_bytes bytes = read_dump(path);
    size_t offset = JITHEADER_BYTES;
    for (size_t i = 0; i < sizeof stage_sizes / sizeof stage_sizes[0]; i++)
        for (size_t size = stage_sizes[i] - 20; size < stage_sizes[i] + 4; size++) {
            check_sized(&bytes, &offset, size % 77);
            check_sized(&bytes, &offset, size - SIZED_FIXED_BYTES);
        }
    free(bytes.data);
}

/* Groups that just fit, and just don't, into each part of the stage, and small ones between them.
 */
static void test_sizes_around_the_stage(void **state)
{
    struct jitdump *dump = open_dump();
    (void)state;
    for (size_t i = 0; i < sizeof stage_sizes / sizeof stage_sizes[0]; i++)
        for (size_t size = stage_sizes[i] - 20; size < stage_sizes[i] + 4; size++) {
            add_sized(dump, size % 77);
            add_sized(dump, size - SIZED_FIXED_BYTES);
        }
    check_stage_sizes();
    assert_int_equal(jitdump_close(dump), 0);
    check_stage_sizes();
    assert_int_equal(count_records(path, JIT_FILLER), 0);
}

/* The body's end comes to stand at each place of a page, so that id and size of the record there
 * lie in two pages. */
static void test_publishing_across_pages(void **state)
{
    enum { STEPS = 24, PAGE_BYTES = 4096 };
    struct jitdump *dump = open_dump();
    size_t end = JITHEADER_BYTES, sizes[STEPS], pads = 0;
    (void)state;
    for (size_t i = 0; i < STEPS; i++) {
        size_t wanted_end = (end + 3 * FIRST_SPILL_BYTES) / PAGE_BYTES * PAGE_BYTES - 12 + i;
        sizes[i] = wanted_end - end - SIZED_FIXED_BYTES;
        add_sized(dump, sizes[i]);
        end = wanted_end;
        if (end % PAGE_BYTES > PAGE_BYTES - sizeof(uint64_t)) {
            end += JR_PREFIX_BYTES; /* a FILLER, so that the next record's are not in two pages */
            pads++;
        }
    }
    assert_int_equal(pads, STEPS - 1 - 12 < 7 ? STEPS - 1 - 12 : 7);
    for (int closed = 0; closed < 2; closed++) {
        struct dump_bytes bytes = read_dump(path);
        size_t offset = JITHEADER_BYTES;
        for (size_t i = 0; i < STEPS; i++)
            check_sized(&bytes, &offset, sizes[i]);
        assert_int_equal(offset, end);
        free(bytes.data);
        if (!closed)
            assert_int_equal(jitdump_close(dump), 0);
    }
    assert_true(writes.calls > STEPS);
    assert_int_equal(writes.across_pages, 0);
}

/* ---- Failures ---- */

/* Each write in turn, and what was to be done is done with the next group. */
static void test_each_write_fails_once(void **state)
{
    unsigned failed = 0;
    (void)state;
    for (unsigned at = 1;; at++) {
        struct jitdump *dump;
        writes.mishap = FAIL_ONCE;
        writes.at = at;
        writes.error = EIO;
        writes.calls = 0;
        if (try_open(&dump) == 0) {
            for (unsigned i = 0; i < plans[0].functions; i++) {
                add_first(dump, i, i + 1);
                if (writes.calls >= at) /* it is tried again at once */
                    pass_retry_time();
            }
            bool met = writes.calls >= at;
            writes.mishap = NONE;
            assert_int_equal(jitdump_lost(dump), 0);
            assert_int_equal(jitdump_close(dump), 0);
            check_inventory(path, plans[0].functions, 1);
            if (!met)
                break;
            failed++;
        } else {
            assert_int_equal(jitdump_close(dump), -EIO);
        }
        remove_dump(path);
    }
    assert_true(failed > 20);
}

/* The disk fails in the middle: what is in the stage stays readable, and failing calls cost
 * nothing. */
static void test_failing_writes(void **state)
{
    struct jitdump *dump = open_dump();
    (void)state;
    add_first(dump, 0, 2000);
    writes.mishap = FAIL;
    writes.error = EIO;
    unsigned added = add_until(dump, 2000, -EIO);
    assert_true(added > 2000);
    check_first(path, added);
    writes.calls = 0;
    stop_clock();
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(add_function(dump, 0, added, NULL), -EIO);
    assert_in_range(writes.calls, 0, 1);
    assert_int_equal(jitdump_lost(dump), 1001);
    assert_non_null(strstr(jitdump_error(dump), "cannot grow"));
    check_first(path, added);
    writes.mishap = NONE;
    pass_retry_time();
    add_first(dump, added, added + 3000);
    assert_int_equal(jitdump_lost(dump), 1001);
    assert_int_equal(jitdump_close(dump), -EIO);
    check_inventory(path, added + 3000, 1);
}

/* What no call met is no error. */
static void test_failure_that_nobody_notices(void **state)
{
    struct jitdump *dump = open_dump();
    unsigned calls, i = 0;
    (void)state;
    writes.mishap = FAIL;
    writes.error = ENOSPC;
    for (calls = writes.calls; writes.calls == calls; i++)
        add_first(dump, i, i + 1);
    add_first(dump, i, i + 1);
    writes.mishap = NONE;
    pass_retry_time();
    add_first(dump, i + 1, 5000);
    assert_int_equal(jitdump_lost(dump), 0);
    assert_string_equal(jitdump_error(dump), "");
    assert_int_equal(jitdump_close(dump), 0);
    check_inventory(path, 5000, 1);
}

/* The end can't be written either: everything is there, with CLOSE behind it. */
static void test_failing_close(void **state)
{
    struct jitdump *dump = open_dump();
    (void)state;
    add_first(dump, 0, 3000);
    writes.mishap = FAIL;
    writes.error = ENOSPC;
    assert_int_equal(jitdump_close(dump), -ENOSPC);
    check_unclosed(path, 3000, 1, FILLERS_MAX);
}

static void assert_unharmed_by(enum mishap mishap)
{
    struct jitdump *dump = open_dump();
    writes.mishap = mishap;
    add_first(dump, 0, 6000);
    add_sized(dump, 0);
    assert_int_equal(jitdump_close(dump), 0);
    struct inventory *inventory = take_inventory(path);
    assert_int_equal(inventory->functions, 6000);
    assert_int_equal(inventory->fillers, 0);
    free(inventory);
    writes.mishap = NONE;
    remove_dump(path);
}

static void test_interrupted_and_short_writes(void **state)
{
    (void)state;
    assert_unharmed_by(INTERRUPT);
    assert_unharmed_by(SHORTEN);
}

/* A limit below what the file has already. */
static void child_meets_lower_limit(struct jitdump *dump)
{
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    rlim_t before = limit.rlim_cur;
    signal(SIGXFSZ, SIG_DFL); /* would end this process with another status */
    dump = open_dump();
    add_first(dump, 0, 2000);
    limit.rlim_cur = 5000;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    unsigned added = add_until(dump, 2000, -EFBIG);
    check_first(path, added);
    limit.rlim_cur = before;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    pass_retry_time();
    add_first(dump, added, added + 1000);
    CHECK(jitdump_close(dump) == -EFBIG);
    check_inventory(path, added + 1000, 1);
}

static void test_limit_that_falls(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(child_meets_lower_limit, NULL), 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, forget_mishaps, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_readable_at_any_time),         TEST(test_killed_at_each_write),
        TEST(test_sizes_around_the_stage),       TEST(test_publishing_across_pages),
        TEST(test_each_write_fails_once),        TEST(test_failing_writes),
        TEST(test_failure_that_nobody_notices),  TEST(test_failing_close),
        TEST(test_interrupted_and_short_writes), TEST(test_limit_that_falls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
