/* Which ranges a recording's samples meet: against a model that compares each word with each range.
 */
#include "injector/recording/sampled_addresses.h"
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
        spans[i] = (struct address_span){starts[i], ends[i]};
    }
    static struct sampled_addresses set;
    set = (struct sampled_addresses){0};
    assert_int_equal(
        sampled_addresses_read(&set, &file, NULL, spans, address_spans_join(spans, RANGES)), 0);
    sampled_addresses_sort(&set);
    for (size_t i = 0; i < RANGES; i++) {
        bool met = false;
        for (size_t w = 0; w < SAMPLES * WORDS; w++)
            met = met || (words[w] >= starts[i] && words[w] <= ends[i]);
        assert_int_equal(sampled_addresses_meet(&set, NO_LIFE, starts[i], ends[i]), met);
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

static void test_addresses_that_are_added(void **state)
{
    static struct sampled_addresses set;
    const struct address_span spans[] = {{0x1000, 0x2000}};
    const uint64_t added[] = {0x5000, 0x2001, 0x2000, 0x1800, 0xfff};
    (void)state;
    for (size_t i = 0; i < sizeof added / sizeof added[0]; i++)
        assert_int_equal(sampled_addresses_add(&set, added[i], spans, 1), 0);
    sampled_addresses_sort(&set);
    assert_int_equal(set.count, 2);
    assert_true(sampled_addresses_meet(&set, NO_LIFE, 0x1800, 0x1801));
    assert_false(sampled_addresses_meet(&set, NO_LIFE, 0x1801, 0x1900));
    assert_true(sampled_addresses_meet(&set, NO_LIFE, 0x1700, 0x1800)); /* where a call returns */
    sampled_addresses_free(&set);
}

#define FAR UINT64_C(0x7f0000001000)

/* The samples of processes 7 and 8 have two addresses: that of the instruction, and one in an
 * aligned word.  Those of 8 have two unaligned ones: a short one, and one of 64 bits across two
 * words. */
static void read_lives(struct sampled_addresses *set, bool by_life)
{
    struct process_life items[] = {{.pid = 7, .next = {UINT64_MAX, UINT64_MAX}},
                                   {.pid = 8, .next = {UINT64_MAX, UINT64_MAX}}};
    const struct process_lives lives = {items, 2, 2};
    const struct address_span spans[] = {{0x1000, 0x9000}, {FAR - 0x1000, FAR + 0x1000}};
    const uint64_t first[] = {0x2000, 7, 100, 1, 0x3000};
    const uint64_t second[] = {0x4000, 8, 100, 1, UINT64_C(0x5000) << 32, FAR << 32, FAR >> 32};
    begin(SAMPLE_TYPE);
    put_words(first, 5);
    put_words(second, 7);
    open_recording();
    *set = (struct sampled_addresses){0};
    assert_int_equal(sampled_addresses_read(set, &file, by_life ? &lives : NULL, spans, 2), 0);
    sampled_addresses_sort(set);
    perf_file_close(&file);
}

static bool has(const struct sampled_addresses *set, uint32_t life, uint64_t addr)
{
    return sampled_addresses_meet(set, life, addr, addr);
}

static void test_addresses_of_a_life(void **state)
{
    static struct sampled_addresses set;
    (void)state;
    read_lives(&set, true);
    assert_true(has(&set, 0, 0x2000) && has(&set, 0, 0x3000));
    assert_true(has(&set, 1, 0x4000) && has(&set, 1, 0x5000) && has(&set, 1, FAR));
    assert_false(has(&set, 1, 0x2000) || has(&set, 0, 0x4000));
    assert_true(has(&set, NO_LIFE, 0x3000) && has(&set, NO_LIFE, FAR));
    sampled_addresses_free(&set);
}

static void test_without_lives_addresses_are_aligned_words(void **state)
{
    static struct sampled_addresses set;
    (void)state;
    read_lives(&set, false);
    assert_true(has(&set, NO_LIFE, 0x2000) && has(&set, NO_LIFE, 0x3000));
    assert_true(has(&set, NO_LIFE, 0x4000));
    assert_false(has(&set, NO_LIFE, 0x5000) || has(&set, NO_LIFE, FAR));
    assert_false(has(&set, 0, 0x2000));
    sampled_addresses_free(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges_that_are_met),
        cmocka_unit_test(test_addresses_that_are_added),
        cmocka_unit_test(test_addresses_of_a_life),
        cmocka_unit_test(test_without_lives_addresses_are_aligned_words),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
