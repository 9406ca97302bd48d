/* perf's own clock, by the records of a ring that the test fills in the kernel's place.  That a
 * kernel does as this one is what recordings without -k show (cli/clocks.bats). */
#include "injector/log/clock/perf_clock.h"

#include "tests/unit/scratch.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { COMM_RECORD_BYTES = 8 + 8 + 16 + 8 };

static struct {
    bool permitted;
    int ring_fd;
    struct perf_event_mmap_page *ring; /* as the kernel sees it */
    size_t page_bytes;
    char name[16]; /* the thread's */
    uint64_t now_ns;
    bool is_mute; /* it writes no record */
} kernel;

long syscall(long number, ...)
{
    errno = ENOSYS;
    if (number != SYS_perf_event_open)
        return -1;
    va_list arguments;
    va_start(arguments, number);
    const struct perf_event_attr *attr = va_arg(arguments, const struct perf_event_attr *);
    va_end(arguments);
    assert_int_equal(attr->sample_type, PERF_SAMPLE_TIME);
    assert_true(attr->comm && attr->sample_id_all && !attr->use_clockid);
    errno = EACCES;
    return kernel.permitted ? dup(kernel.ring_fd) : -1;
}

static void put(const void *bytes, size_t count)
{
    uint8_t *data = (uint8_t *)kernel.ring + kernel.page_bytes;
    for (size_t i = 0; i < count; i++)
        data[kernel.ring->data_head++ % kernel.page_bytes] = ((const uint8_t *)bytes)[i];
}

/* What is not read by now is in the way of a record. */
static void put_comm(void)
{
    const struct perf_event_header header = {PERF_RECORD_COMM, 0, COMM_RECORD_BYTES};
    const uint32_t ids[] = {4711, 4711};
    bool fits =
        kernel.ring->data_head + COMM_RECORD_BYTES <= kernel.ring->data_tail + kernel.page_bytes;
    if (kernel.is_mute || !fits)
        return;
    put(&header, sizeof header);
    put(ids, sizeof ids);
    put(kernel.name, sizeof kernel.name);
    put(&kernel.now_ns, sizeof kernel.now_ns);
}

int prctl(int option, ...)
{
    va_list arguments;
    va_start(arguments, option);
    char *name = va_arg(arguments, char *);
    va_end(arguments);
    if (option == PR_GET_NAME) {
        memcpy(name, kernel.name, sizeof kernel.name);
        return 0;
    }
    assert_int_equal(option, PR_SET_NAME);
    memcpy(kernel.name, name, sizeof kernel.name);
    put_comm();
    return 0;
}

static int begin(void **state)
{
    (void)state;
    memset(&kernel, 0, sizeof kernel);
    kernel.permitted = true;
    snprintf(kernel.name, sizeof kernel.name, "a thread's name");
    kernel.page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    kernel.ring_fd = memfd_create("ring", MFD_CLOEXEC);
    if (kernel.ring_fd < 0 || ftruncate(kernel.ring_fd, (off_t)(2 * kernel.page_bytes)))
        return -1;
    void *ring =
        mmap(NULL, 2 * kernel.page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, kernel.ring_fd, 0);
    kernel.ring = ring;
    return ring == MAP_FAILED ? -1 : 0;
}

static int end(void **state)
{
    (void)state;
    munmap(kernel.ring, 2 * kernel.page_bytes);
    return close(kernel.ring_fd);
}

/* Some times around the ring, whose end is in the middle of a record. */
static void test_each_time_is_told_and_the_name_stays(void **state)
{
    struct perf_clock clock;
    uint64_t now_ns = 0;
    (void)state;
    assert_int_not_equal(kernel.page_bytes % COMM_RECORD_BYTES, 0);
    assert_true(perf_clock_open(&clock));
    for (kernel.now_ns = 1; kernel.now_ns < UINT64_C(1) << 60;
         kernel.now_ns += kernel.now_ns / 16 + 1) {
        assert_true(perf_clock_now(&clock, &now_ns));
        assert_int_equal(now_ns, kernel.now_ns);
    }
    assert_true(kernel.ring->data_head > 4 * kernel.page_bytes);
    assert_int_equal(kernel.ring->data_tail, kernel.ring->data_head);
    perf_clock_close(&clock);
    assert_string_equal(kernel.name, "a thread's name");
}

static void test_without_a_record_there_is_no_time(void **state)
{
    struct perf_clock clock;
    uint64_t now_ns = 7;
    (void)state;
    kernel.is_mute = true;
    assert_true(perf_clock_open(&clock));
    assert_false(perf_clock_now(&clock, &now_ns));
    assert_int_equal(now_ns, 7);
    perf_clock_close(&clock);
}

static void test_not_permitted(void **state)
{
    struct perf_clock clock;
    (void)state;
    kernel.permitted = false;
    assert_false(perf_clock_open(&clock));
    perf_clock_close(&clock);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_each_time_is_told_and_the_name_stays),
        TEST(test_without_a_record_there_is_no_time),
        TEST(test_not_permitted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
