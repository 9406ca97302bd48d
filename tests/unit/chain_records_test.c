/* A sample whose stack has become a call chain: how long one its record can hold.
 *
 *     header, IP TID TIME, CALLCHAIN: 3 entries of the kernel's, PERF_CONTEXT_USER, 1 of the
 * user's; REGS_USER: 3; STACK_USER: STACK_BYTES; WEIGHT
 */
#include "injector/unwind/stacks/chain_records.h"

#include "injector/recording/perf_data/perf_format.h"

#include "tests/unit/scratch.h"

enum {
    STACK_BYTES = 60000,
    KERNEL_ENTRIES = 3,
    RECORD_BYTES = 1 << 16, /* what perf's u16 size has room for is less */
    LONGEST_RECORD = 65528
};

static uint8_t bytes[RECORD_BYTES];
static struct perf_record record;
static struct perf_event event = {
    .format = {.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                              PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER |
                              PERF_SAMPLE_STACK_USER | PERF_SAMPLE_WEIGHT,
               .user_registers = 7}};
static struct perf_file file = {.event_count = 1, .events = &event};
static const struct records records = {.file = &file};
static struct user_stacks stacks;

static int make_sample(void **state)
{
    struct byte_sink sink = byte_sink_over(bytes, sizeof bytes);
    (void)state;
    sink_u32(&sink, PERF_RECORD_SAMPLE);
    sink_u16(&sink, 2);
    sink_u16(&sink, 0);
    for (uint64_t field = 1; field <= 3; field++)
        sink_u64(&sink, field);
    sink_u64(&sink, KERNEL_ENTRIES + 2);
    for (uint64_t entry = 0; entry < KERNEL_ENTRIES; entry++)
        sink_u64(&sink, 0xffff0000 + entry);
    sink_u64(&sink, PERF_CONTEXT_USER);
    sink_u64(&sink, 0x401000);
    sink_u64(&sink, SAMPLE_ABI_64);
    sink_zeros(&sink, 24);
    sink_u64(&sink, STACK_BYTES);
    sink_zeros(&sink, STACK_BYTES);
    sink_u64(&sink, STACK_BYTES);
    sink_u64(&sink, 0x77); /* the weight */
    struct byte_sink size = byte_sink_over(bytes + 6, 2);
    sink_u16(&size, (uint16_t)sink.size);
    record = (struct perf_record){
        .type = PERF_RECORD_SAMPLE, .bytes = bytes, .size = (uint16_t)sink.size};
    sample_format_lay_out(&event.format);
    stacks = (struct user_stacks){.source = {.records = &records}};
    return 0;
}

static int free_chains(void **state)
{
    (void)state;
    chain_tree_free(&stacks.tree);
    free(stacks.chains);
    free(stacks.firsts);
    return 0;
}

/* The sample with a chain of COUNT callers at 0x500000, ..., put into SINK. */
static int put_chain_of(size_t count, struct byte_sink *sink)
{
    uint64_t *ips = malloc((count + 1) * sizeof *ips);
    assert_non_null(ips);
    for (size_t i = 0; i < count; i++)
        ips[i] = 0x500000 + i;
    stacks.chains = calloc(1, sizeof *stacks.chains);
    stacks.firsts = calloc(1, sizeof *stacks.firsts);
    assert_non_null(stacks.chains);
    assert_non_null(stacks.firsts);
    stacks.chains[0] = chain_tree_add(&stacks.tree, ips, count);
    stacks.count = 1;
    free(ips);
    return chain_record_put(&stacks, &record, sink);
}

static size_t most_frames(void)
{
    struct perf_sample sample;
    assert_true(perf_sample_read_stack(&sample, &event.format, &record));
    return user_stacks_most_frames(&sample);
}

static void test_the_longest_chain_fills_its_record(void **state)
{
    static uint8_t made[RECORD_BYTES];
    struct byte_sink sink = byte_sink_over(made, sizeof made);
    size_t most = most_frames(), chain_at = 8 + 3 * 8;
    (void)state;
    assert_int_equal(put_chain_of(most, &sink), 1);
    assert_int_equal(sink.size, LONGEST_RECORD);
    assert_int_equal(made[6] | made[7] << 8, LONGEST_RECORD);
    assert_int_equal(perf_get_u64(made + chain_at), KERNEL_ENTRIES + 1 + most);
    assert_int_equal(perf_get_u64(made + chain_at + 8 * KERNEL_ENTRIES),
                     0xffff0000 + KERNEL_ENTRIES - 1);
    assert_true(perf_get_u64(made + chain_at + 8 * (KERNEL_ENTRIES + 1)) == PERF_CONTEXT_USER);
    assert_int_equal(perf_get_u64(made + sink.size - 16), 0x500000 + most - 1);
    assert_int_equal(perf_get_u64(made + sink.size - 8), 0x77);
}

/* A size of 65536 would be 0 in the record, and end the file there. */
static void test_a_longer_one_is_not_written(void **state)
{
    static uint8_t made[RECORD_BYTES];
    struct byte_sink sink = byte_sink_over(made, sizeof made);
    (void)state;
    assert_int_equal(put_chain_of(most_frames() + 1, &sink), -1);
}

static void test_no_frames_leave_the_kernels(void **state)
{
    static uint8_t made[RECORD_BYTES];
    struct byte_sink sink = byte_sink_over(made, sizeof made);
    (void)state;
    assert_int_equal(put_chain_of(0, &sink), 1);
    assert_int_equal(perf_get_u64(made + 32), KERNEL_ENTRIES);
    assert_int_equal(sink.size, 32 + 8 + 8 * KERNEL_ENTRIES + 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_longest_chain_fills_its_record, make_sample,
                                        free_chains),
        cmocka_unit_test_setup_teardown(test_a_longer_one_is_not_written, make_sample, free_chains),
        cmocka_unit_test_setup_teardown(test_no_frames_leave_the_kernels, make_sample, free_chains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
