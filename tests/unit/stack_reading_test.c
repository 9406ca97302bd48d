/* The addresses of a sample's stack: whose each is, which are return addresses, and where the
 * processor was seen, in chains of every mode and with calls in the branch stack. */
#include "injector/recording/perf_data/perf_sample.h"

#include "injector/recording/perf_data/perf_format.h"
#include "tests/unit/scratch.h"

enum { MOST = 12, IP = 0x11, HW_INDEX = 1 << 17 };

enum {
    KERNEL = PERF_MISC_KERNEL,
    USER = PERF_MISC_USER,
    HYPERVISOR = PERF_MISC_HYPERVISOR,
    GUEST_KERNEL = PERF_MISC_GUEST_KERNEL,
    GUEST_USER = PERF_MISC_GUEST_USER,
};

#define IN_KERNEL     PERF_CONTEXT_KERNEL
#define IN_USER       PERF_CONTEXT_USER
#define IN_HYPERVISOR PERF_CONTEXT_HYPERVISOR
#define IN_GUEST      PERF_CONTEXT_GUEST_KERNEL
#define IN_GUEST_USER PERF_CONTEXT_GUEST_USER
#define DEFERRED      PERF_CONTEXT_USER_DEFERRED
#define NEWER_MARK    ((uint64_t)-4000)

/* A sample of MODE at IP, and what its stack is; chain, calls (from, to) and stack end with 0. */
struct stack_case {
    unsigned mode;
    uint64_t chain[MOST], calls[MOST];
    struct stack_address stack[MOST];
};

static const struct stack_case cases[] = {
    {USER, {0}, {0}, {{0}}},
    /* of one mode; the sample's own address is seen at the first */
    {USER,
     {IN_USER, 0x12, 0x20, 0x30},
     {0},
     {{0x12, USER, false, IP}, {0x20, USER, true, 0}, {0x30, USER, true, 0}}},
    {USER, {0x12, 0x20}, {0}, {{0x12, USER, false, IP}, {0x20, USER, true, 0}}},
    {KERNEL,
     {IN_KERNEL, 0x12, 0x20, IN_USER, 0x30, 0x40},
     {0},
     {{0x12, KERNEL, false, IP},
      {0x20, KERNEL, true, 0},
      {0x30, USER, false, 0},
      {0x40, USER, true, 0}}},
    /* of another mode: the sample's own address stands in front */
    {KERNEL, {IN_USER, 0x30, 0x40}, {0}, {{0x30, USER, false, 0}, {0x40, USER, true, 0}}},
    {USER, {IN_KERNEL, 0x30}, {0}, {{0x30, KERNEL, false, 0}}},
    {GUEST_USER, {IN_KERNEL, IN_USER, 0x30}, {0}, {{0x30, USER, false, 0}}},
    /* of guests, of a hypervisor */
    {GUEST_KERNEL,
     {IN_GUEST, 0x12, 0x20, IN_GUEST_USER, 0x30},
     {0},
     {{0x12, GUEST_KERNEL, false, IP},
      {0x20, GUEST_KERNEL, true, 0},
      {0x30, GUEST_USER, false, 0}}},
    {GUEST_KERNEL, {PERF_CONTEXT_GUEST, 0x12}, {0}, {{0x12, GUEST_KERNEL, false, IP}}},
    {HYPERVISOR,
     {IN_HYPERVISOR, 0x12, IN_USER, 0x30},
     {0},
     {{0x12, HYPERVISOR, false, IP}, {0x30, USER, false, 0}}},
    /* a mark that is not known, wherever it stands: no chain, as for perf */
    {USER, {IN_USER, 0x12, NEWER_MARK, 0x30, 0x40}, {0}, {{0}}},
    {KERNEL, {IN_KERNEL, 0x12, IN_USER, 0x30, UINT64_MAX}, {0}, {{0}}},
    /* a cookie is no address */
    {KERNEL, {IN_KERNEL, 0x12, DEFERRED, 0x1000000000001}, {0}, {{0x12, KERNEL, false, IP}}},
    {USER, {DEFERRED, 0x1000000000001}, {0}, {{0}}},
    {USER, {DEFERRED}, {0}, {{0}}},
    /* calls of the branch stack stand in the place of the user's part */
    {USER,
     {IN_USER, 0x12, 0x20},
     {0x21, 0x10, 0x31, 0x20},
     {{0x10, USER, false, IP}, {0x21, USER, false, 0}, {0x31, USER, false, 0}}},
    {KERNEL,
     {IN_KERNEL, 0x12, IN_USER, 0x22, 0x30},
     {0x31, 0x20},
     {{0x12, KERNEL, false, IP}, {0x20, USER, false, 0x22}, {0x31, USER, false, 0}}},
    {USER, {IN_USER}, {0x21, 0x10}, {{0x10, USER, false, IP}, {0x21, USER, false, 0}}},
    {KERNEL, {IN_KERNEL, 0x12}, {0x31, 0x20}, {{0x12, KERNEL, false, IP}}},
};

static struct sample_format format_with(uint64_t branch_sample_type)
{
    struct sample_format format = {.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN |
                                                  PERF_SAMPLE_BRANCH_STACK,
                                   .branch_sample_type = branch_sample_type | HW_INDEX};
    sample_format_lay_out(&format);
    return format;
}

static size_t length(const uint64_t *words)
{
    size_t count = 0;
    while (count < MOST && words[count])
        count++;
    return count;
}

/* The record of CASE; returns its size. */
static uint16_t put_record(const struct stack_case *given, uint8_t *bytes, size_t room)
{
    struct byte_sink sink = byte_sink_over(bytes, room);
    size_t entries = length(given->chain), words = length(given->calls);
    sink_zeros(&sink, PERF_RECORD_HEADER_BYTES);
    sink_u64(&sink, IP);
    sink_u64(&sink, entries);
    for (size_t i = 0; i < entries; i++)
        sink_u64(&sink, given->chain[i]);
    sink_u64(&sink, words / 2);
    sink_u64(&sink, 0); /* hw_idx */
    for (size_t i = 0; i < words; i++) {
        sink_u64(&sink, given->calls[i]);
        if (i % 2)
            sink_u64(&sink, 0);
    }
    assert_false(sink.overflow);
    return (uint16_t)sink.size;
}

static void check(const struct stack_case *given, const struct sample_format *format,
                  const struct stack_address *expected)
{
    uint8_t bytes[1024];
    const struct perf_record record = {.bytes = bytes,
                                       .misc = (uint16_t)given->mode,
                                       .size = put_record(given, bytes, sizeof bytes)};
    struct perf_sample sample;
    struct stack_address address;
    assert_true(perf_sample_read(&sample, format, &record, SAMPLE_BRANCH_STACK));
    struct stack_reading reading = stack_reading_begin(&sample);
    for (; expected->ip; expected++) {
        assert_true(stack_reading_next(&reading, &address));
        assert_int_equal(address.ip, expected->ip);
        assert_int_equal(address.mode, expected->mode);
        assert_int_equal(address.called, expected->called);
        assert_int_equal(address.seen, expected->seen);
    }
    assert_false(stack_reading_next(&reading, &address));
    assert_false(stack_reading_next(&reading, &address));
}

static void test_whose_each_address_is(void **state)
{
    const struct sample_format format = format_with(1 << 11);
    (void)state;
    assert_true(sample_format_has_calls(&format) && !sample_format_has_chain_alone(&format));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(&cases[i], &format, cases[i].stack);
}

/* Branches as of perf record -b. */
static void test_branches_that_are_no_calls_are_no_callers(void **state)
{
    const struct stack_case given = {USER, {IN_USER, 0x12, 0x20}, {0x21, 0x10, 0x31, 0x20}, {{0}}};
    const struct stack_address expected[] = {{0x12, USER, false, IP}, {0x20, USER, true, 0}, {0}};
    const struct sample_format format = format_with(0);
    (void)state;
    assert_true(sample_format_has_chain_alone(&format) && !sample_format_has_calls(&format));
    check(&given, &format, expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whose_each_address_is),
        cmocka_unit_test(test_branches_that_are_no_calls_are_no_callers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
