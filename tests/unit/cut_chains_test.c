/* Which call chains the kernel cut. */
#include "injector/recording/cut_chains.h"

#include "tests/unit/profile_builder.h"

enum { USUAL = 127, TYPE = SAMPLE_TYPE | PERF_SAMPLE_CALLCHAIN };

#define START  UINT64_C(0x7000)
#define MIDDLE UINT64_C(0x5000)

static struct profile_builder built;

static void begin(uint64_t type)
{
    profile_begin(&built, &type, 1);
}

static void set_max_stack(uint16_t frames)
{
    size_t attr = PERF_FILE_HEADER_BYTES + BUILT_IDS * 8;
    profile_set_u64(&built, attr + PERF_ATTR_MAX_STACK - 4, (uint64_t)frames << 32);
}

/* A sample of TID: KERNEL and USER frames behind their marks, the outermost at END. */
static void chain(uint32_t tid, size_t kernel, size_t user, uint64_t end)
{
    size_t start = profile_begin_record(&built, PERF_RECORD_SAMPLE, PERF_MISC_USER);
    sink_u64(&built.sink, 0x401000);
    sink_u64(&built.sink, 4711 | (uint64_t)tid << 32);
    sink_u64(&built.sink, 10);
    sink_u64(&built.sink, 1);
    sink_u64(&built.sink, kernel + user + (kernel > 0) + (user > 0));
    if (kernel)
        sink_u64(&built.sink, PERF_CONTEXT_KERNEL);
    for (size_t i = 0; i < kernel; i++)
        sink_u64(&built.sink, UINT64_C(0xffffffff81000000) + i);
    if (user)
        sink_u64(&built.sink, PERF_CONTEXT_USER);
    for (size_t i = 0; i < user; i++)
        sink_u64(&built.sink, i + 1 == user ? end : MIDDLE);
    profile_end_record(&built, start);
}

static struct cut_chains count(void)
{
    struct perf_file file;
    struct cut_chains cuts;
    profile_end_records(&built);
    profile_features(&built, NULL, 0);
    open_built_profile(&built, &file);
    assert_int_equal(cut_chains_count(&cuts, &file), 0);
    perf_file_close(&file);
    return cuts;
}

static void test_chains_of_all_frames_are_cut(void **state)
{
    (void)state;
    char text[CUT_CHAINS_TEXT_BYTES];
    begin(TYPE);
    chain(1, 0, 5, START);
    chain(1, 0, USUAL - 1, START);
    chain(1, 0, USUAL, MIDDLE);
    chain(1, 20, USUAL - 20, MIDDLE);
    struct cut_chains cuts = count();
    assert_int_equal(cuts.chains, 4);
    assert_int_equal(cuts.cut, 2);
    assert_int_equal(cuts.frames, USUAL);
    cut_chains_text(&cuts, text, sizeof text);
    assert_non_null(strstr(text, "2 of 4 call chains are cut at 127 frames"));
    assert_non_null(strstr(text, "sysctl kernel.perf_event_max_stack"));
}

static void test_no_chain_is_long_enough(void **state)
{
    (void)state;
    begin(TYPE);
    chain(1, 0, USUAL - 1, MIDDLE);
    chain(1, 0, 0, 0);
    struct cut_chains cuts = count();
    assert_int_equal(cuts.chains, 1);
    assert_int_equal(cuts.cut, 0);
}

/* It ends where those of its thread do that are whole. */
static void test_a_chain_may_have_just_as_many_frames(void **state)
{
    (void)state;
    begin(TYPE);
    chain(1, 0, 5, START);
    chain(1, 0, 6, START);
    chain(1, 0, 7, MIDDLE); /* its stack was not all there */
    chain(1, 0, USUAL, START);
    chain(2, 0, USUAL, START); /* of a thread that has no other */
    assert_int_equal(count().cut, 1);
}

static void test_the_event_says_how_many(void **state)
{
    (void)state;
    char text[CUT_CHAINS_TEXT_BYTES];
    begin(TYPE);
    set_max_stack(10);
    chain(1, 0, 9, START);
    chain(1, 0, 10, MIDDLE);
    struct cut_chains cuts = count();
    assert_int_equal(cuts.cut, 1);
    assert_int_equal(cuts.frames, 10);
    cut_chains_text(&cuts, text, sizeof text);
    assert_non_null(strstr(text, "a larger max-stack"));
}

/* Somebody raised the machine's limit: no chain of 127 frames is cut, and the longest tell. */
static void test_the_machine_allows_more(void **state)
{
    (void)state;
    begin(TYPE);
    chain(1, 0, 50, START);
    chain(1, 0, 60, START);
    chain(1, 0, USUAL, MIDDLE);
    chain(1, 0, 200, MIDDLE);
    chain(1, 0, 200, MIDDLE);
    struct cut_chains cuts = count();
    assert_int_equal(cuts.cut, 2);
    assert_int_equal(cuts.frames, 200);
}

/* Those of copied stacks have no such limit: the chain has the kernel's part alone. */
static void test_copied_stacks_are_not_cut(void **state)
{
    (void)state;
    begin(TYPE | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER);
    chain(1, USUAL, 0, 0);
    assert_int_equal(count().cut, 0);
}

static void test_what_may_be_cut(void **state)
{
    (void)state;
    struct sample_format format = {.sample_type = TYPE};
    struct perf_sample sample = {.format = &format, .chain = {.count = USUAL + 1}};
    assert_true(cut_chains_may_be(&sample));
    sample.chain.count = USUAL; /* one of them is a mark */
    assert_false(cut_chains_may_be(&sample));
    format.max_stack = 10;
    assert_true(cut_chains_may_be(&sample));
    format.off_cpu = true;
    assert_false(cut_chains_may_be(&sample));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chains_of_all_frames_are_cut),
        cmocka_unit_test(test_no_chain_is_long_enough),
        cmocka_unit_test(test_a_chain_may_have_just_as_many_frames),
        cmocka_unit_test(test_the_event_says_how_many),
        cmocka_unit_test(test_the_machine_allows_more),
        cmocka_unit_test(test_copied_stacks_are_not_cut),
        cmocka_unit_test(test_what_may_be_cut),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
