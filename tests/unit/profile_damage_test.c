/* A recording that is cut at each of its bytes, and one in which each of its bits is flipped: the
 * samples and mappings in front of the damage are there, and the damage is told.
 *
 * Some damage can't be noticed: a record says its own size and no more.  A flip in its type, its
 * misc or its body makes another record of it.  A flip in an attribute changes the layout of
 * records.  A flip in the bits of the features adds or hides one. */
#include "injector/recording/perf_data/perf_input.h"
#include "injector/recording/records.h"

#include "tests/unit/damage.h"
#include "tests/unit/profile_builder.h"

enum { SAMPLES = 4, MAPS = 4, FIRST_NS = 1000 };

static struct profile_builder built;
static size_t sample_ends[SAMPLES], map_ends[MAPS];

static void note(size_t start)
{
    starts[record_count++] = start;
}

static void build(void)
{
    record_count = 0;
    profile_begin_one(&built);
    for (size_t i = 0; i < SAMPLES; i++) {
        uint64_t time = FIRST_NS + i * 10;
        note(profile_map(&built, i % 2 ? PERF_RECORD_MMAP2 : PERF_RECORD_MMAP, 0,
                         0x40000000 + i * 0x10000, 0x1000, "//anon", time));
        map_ends[i] = built.sink.size;
        note(profile_comm(&built, 0, time + 1));
        note(profile_sample(&built, 0, time + 2));
        sample_ends[i] = built.sink.size;
        note(profile_round(&built));
    }
    profile_end_records(&built);
    profile_features(&built, NULL, 0);
    assert_false(built.sink.overflow);
}

struct outcome {
    struct perf_input input;
    struct records records;
    struct findings findings;
    bool refused;
};

static void read_left(struct outcome *outcome, const uint8_t *bytes, size_t size)
{
    *outcome = (struct outcome){.findings = {.quiet = true}};
    outcome->refused =
        perf_input_view(&outcome->input, "a.data", bytes, size, &outcome->findings) ||
        records_read(&outcome->records, &outcome->input.file, &outcome->findings);
}

static bool is_told(const struct outcome *outcome)
{
    return outcome->refused || findings_lost(&outcome->findings) > 0;
}

static void release(struct outcome *outcome)
{
    records_free(&outcome->records);
    perf_input_close(&outcome->input);
    findings_free(&outcome->findings);
}

static size_t whole_before(const size_t *ends, size_t count, size_t offset)
{
    size_t whole = 0;
    while (whole < count && ends[whole] <= offset)
        whole++;
    return whole;
}

/* Whether the samples and mappings that end before OFFSET are there. */
static bool is_kept(const struct outcome *outcome, size_t offset)
{
    const struct records *records = &outcome->records;
    size_t found = 0;
    for (size_t i = 0; i < whole_before(sample_ends, SAMPLES, offset); i++) {
        bool there = false;
        for (size_t s = 0; s < records->sample_count && !there; s++)
            there = records->sample_times_ns[s] == FIRST_NS + i * 10 + 2;
        if (!there)
            return false;
    }
    for (size_t i = 0; i < whole_before(map_ends, MAPS, offset); i++)
        for (size_t m = 0; m < records->map_count; m++)
            found += records->maps[m].map.start == 0x40000000 + i * 0x10000 &&
                     strcmp(records->maps[m].map.filename, "//anon") == 0;
    return found >= whole_before(map_ends, MAPS, offset);
}

static void assert_sound(void)
{
    struct outcome outcome;
    read_left(&outcome, built.bytes, built.sink.size);
    assert_false(is_told(&outcome));
    assert_true(is_kept(&outcome, SIZE_MAX));
    release(&outcome);
}

/* ---- Cuts ---- */

/* The header says how large everything is: no cut goes unnoticed. */
static void judge_cut(const uint8_t *left, size_t cut)
{
    struct outcome outcome;
    read_left(&outcome, left, cut);
    if (outcome.refused != (cut < built.records_start))
        fail_msg("cut at %zu: refused or not", cut);
    if (!is_told(&outcome))
        fail_msg("cut at %zu: not told", cut);
    if (!outcome.refused &&
        (!is_kept(&outcome, cut) ||
         outcome.records.sample_count != whole_before(sample_ends, SAMPLES, cut)))
        fail_msg("cut at %zu: %zu samples, or mappings are lost", cut,
                 outcome.records.sample_count);
    release(&outcome);
}

static void test_a_cut_costs_what_is_behind_it(void **state)
{
    (void)state;
    build();
    assert_sound();
    cut_everywhere(built.bytes, built.sink.size, judge_cut);
}

/* ---- Flips ---- */

/* Bytes of the header in which every flipped bit is noticed; of bit 0 to 7 of the features only
 * those that are not set. */
static bool is_checked_header(size_t offset, unsigned bit)
{
    if (offset >= PERF_HEADER_FEATURES)
        return offset < PERF_FILE_HEADER_BYTES && !(built.bytes[offset] >> bit & 1);
    return offset < PERF_HEADER_DATA + PERF_SECTION_BYTES; /* the section behind it is not used */
}

/* A size is noticed to be wrong unless another record begins where it then ends. */
static bool is_checked_size(size_t offset, unsigned bit)
{
    size_t start = starts[record_of(offset)], byte = offset - start - 6;
    if (offset < start + 6 || offset >= start + PERF_RECORD_HEADER_BYTES)
        return false;
    size_t size = built.bytes[start + 6] | (size_t)built.bytes[start + 7] << 8;
    size_t end = start + (size ^ (size_t)1 << (byte * 8 + bit));
    for (size_t i = 0; i < record_count; i++)
        if (starts[i] == end && end > start)
            return false;
    return end != built.records_end;
}

static void judge_outcome(const struct outcome *outcome, size_t offset, unsigned bit)
{
    bool in_record = offset >= built.records_start && offset < built.records_end;
    if (!is_told(outcome) &&
        (in_record ? is_checked_size(offset, bit) : is_checked_header(offset, bit)))
        fail_msg("bit %u of byte %zu: not told", bit, offset);
    if (in_record && (outcome->refused || !is_kept(outcome, starts[record_of(offset)])))
        fail_msg("bit %u of byte %zu: what is in front of it is gone", bit, offset);
    if (offset >= built.records_end && (outcome->refused || !is_kept(outcome, SIZE_MAX)))
        fail_msg("bit %u of byte %zu, a feature's: records are gone", bit, offset);
}

static void judge_flip(const uint8_t *bytes, size_t offset, unsigned bit)
{
    struct outcome outcome;
    read_left(&outcome, bytes, built.sink.size);
    judge_outcome(&outcome, offset, bit);
    release(&outcome);
}

static void test_a_flipped_bit_costs_nothing_in_front_of_it(void **state)
{
    (void)state;
    build();
    assert_sound();
    flip_everywhere(built.bytes, built.sink.size, judge_flip);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_cut_costs_what_is_behind_it),
        cmocka_unit_test(test_a_flipped_bit_costs_nothing_in_front_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
