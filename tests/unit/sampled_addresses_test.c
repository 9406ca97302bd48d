/* Which maps a recording's samples need: against a model that compares each word with each range.
 */
#include "injector/inject/merge/sampled_addresses.h"
#include "tests/unit/profile_builder.h"

#include <stdlib.h>

enum { SAMPLES = 40, WORDS = 6, RANGES = 60, ARENA = 0x10000 };

static struct profile_builder recording;
static struct perf_file file;

static uint64_t below(uint64_t *state, uint64_t end)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*state >> 33) % end;
}

/* A sample of COUNT words, in place of an event's fields. */
static void put_words(const uint64_t *words, size_t count)
{
    size_t start = profile_begin_record(&recording, PERF_RECORD_SAMPLE, PERF_MISC_USER);
    for (size_t i = 0; i < count; i++)
        sink_u64(&recording.sink, words[i]);
    profile_end_record(&recording, start);
}

static void begin(uint64_t sample_type)
{
    memset(&recording, 0, sizeof recording);
    profile_begin(&recording, &sample_type, 1);
}

static void open_recording(void)
{
    profile_sample(&recording, 0, 1);
    profile_end_records(&recording);
    open_built_profile(&recording, &file);
}

/* Samples of words in and around an arena, and ranges there, some of which touch. */
static void compare_with_model(uint64_t seed)
{
    uint64_t words[SAMPLES * WORDS], starts[RANGES], ends[RANGES];
    struct address_span spans[RANGES];
    begin(SAMPLE_TYPE);
    for (size_t i = 0; i < SAMPLES * WORDS; i++)
        words[i] = ARENA / 2 + below(&seed, 2 * ARENA);
    for (size_t i = 0; i < SAMPLES; i++)
        put_words(words + i * WORDS, WORDS);
    open_recording();
    for (size_t i = 0; i < RANGES; i++) {
        starts[i] = ARENA + below(&seed, 64) * (ARENA / 64);
        ends[i] = starts[i] + 1 + below(&seed, ARENA / 64);
        spans[i] = (struct address_span){starts[i], ends[i] + 1};
    }
    struct sampled_addresses set = {.spans = spans,
                                    .span_count = address_spans_join(spans, RANGES)};
    assert_int_equal(sampled_addresses_read(&set, &file, NULL), 0);
    for (size_t i = 0; i < RANGES; i++) {
        bool met = false;
        for (size_t w = 0; w < SAMPLES * WORDS; w++)
            met = met || (words[w] >= starts[i] && words[w] <= ends[i]);
        assert_int_equal(sampled_addresses_meet(&set, starts[i], ends[i]), met);
    }
    sampled_addresses_free(&set);
    perf_file_close(&file);
}

static void test_ranges_that_are_met(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++)
        compare_with_model(seed);
}

static void test_chains_that_samples_get(void **state)
{
    (void)state;
    struct address_span spans[] = {{0x1000, 0x2000}};
    struct sampled_addresses set = {.spans = spans, .span_count = 1};
    struct chain_tree chains = {0};
    const uint64_t ips[] = {0x1800, 0x5000};
    begin(SAMPLE_TYPE);
    open_recording();
    assert_int_not_equal(chain_tree_add(&chains, ips, 2), UINT32_MAX);
    assert_int_equal(sampled_addresses_read(&set, &file, &chains), 0);
    assert_true(sampled_addresses_meet(&set, 0x1800, 0x1801));
    assert_false(sampled_addresses_meet(&set, 0x1801, 0x1900));
    assert_true(sampled_addresses_meet(&set, 0x1700, 0x1800)); /* where a call at its end returns */
    sampled_addresses_free(&set);
    chain_tree_free(&chains);
    perf_file_close(&file);
}

static bool are_words(uint64_t more_of_sample_type, bool has_chains)
{
    begin(SAMPLE_TYPE | more_of_sample_type);
    open_recording();
    bool words = sampled_addresses_are_words(&file, has_chains);
    perf_file_close(&file);
    return words;
}

static void test_what_is_not_in_words(void **state)
{
    (void)state;
    assert_true(are_words(0, false));
    assert_true(are_words(PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_BRANCH_STACK, false));
    assert_false(are_words(PERF_SAMPLE_RAW, false));
    assert_false(are_words(PERF_SAMPLE_RAW, true));
    assert_false(are_words(PERF_SAMPLE_STACK_USER, false));
    assert_true(are_words(PERF_SAMPLE_STACK_USER, true)); /* it becomes a chain */
}

static void test_what_a_processor_traced(void **state)
{
    (void)state;
    const uint64_t traces[1][2] = {{0, 8}};
    begin(SAMPLE_TYPE);
    profile_auxtrace(&recording, 8);
    profile_end_records(&recording);
    profile_features(&recording, traces, 1);
    open_built_profile(&recording, &file);
    assert_false(sampled_addresses_are_words(&file, false));
    perf_file_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges_that_are_met),
        cmocka_unit_test(test_chains_that_samples_get),
        cmocka_unit_test(test_what_is_not_in_words),
        cmocka_unit_test(test_what_a_processor_traced),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
