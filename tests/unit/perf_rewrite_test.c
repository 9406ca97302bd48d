/* The output profile: byte for byte the input, without what is dropped, and with what is added
 * where it belongs.
 *
 * Both profiles are built from one line: what is added stands in the expected output only, what is
 * dropped in the input only.
 *
 *     s10 c10 m10  a SAMPLE, COMM, MMAP2 with time 10, of the first event; S10 C10 M10 of the
 * second r            a FINISHED_ROUND         a24  an AUXTRACE with 24 bytes of payload +10 an
 * added record          -s10 a dropped one
 */
#include "injector/inject/merge/perf_rewrite.h"

#include "tests/unit/profile_builder.h"

enum { ADDED_TYPE = 1000, LINE_RECORDS = 64 };

struct line {
    struct profile_builder records;
    uint64_t dropped[LINE_RECORDS]; /* offsets */
    size_t dropped_count;
    uint64_t traces[LINE_RECORDS][2];
    size_t trace_count;
    uint64_t starts[LINE_RECORDS]; /* of all records */
    size_t record_count;
    uint64_t added[LINE_RECORDS]; /* times */
    size_t added_count;
};

static struct line input, expected;
static const uint64_t two_layouts[] = {SAMPLE_TYPE | PERF_SAMPLE_IDENTIFIER,
                                       PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
                                           BUILT_PERIOD};

/* ---- From a line to profiles ---- */

static void put_added(struct byte_sink *sink, uint64_t time_ns)
{
    sink_u32(sink, ADDED_TYPE);
    sink_u16(sink, 0);
    sink_u16(sink, 16);
    sink_u64(sink, time_ns);
}

static uint64_t put_record(struct line *line, char kind, uint64_t number)
{
    struct profile_builder *records = &line->records;
    size_t event = kind >= 'A' && kind <= 'Z';
    switch (kind) {
    case 's':
    case 'S':
        return profile_sample(records, event, number);
    case 'c':
    case 'C':
        return profile_comm(records, event, number);
    case 'm':
    case 'M':
        return profile_map(records, PERF_RECORD_MMAP2, event, 0x1000, 0x1000, "//anon", number);
    case 'a':
        line->traces[line->trace_count][0] = records->sink.size;
        line->traces[line->trace_count++][1] = PERF_AUXTRACE_BYTES;
        return profile_auxtrace(records, (size_t)number);
    default:
        assert_int_equal(kind, 'r');
        return profile_round(records);
    }
}

static void put_word(struct line *line, const char *word, bool output)
{
    bool added = *word == '+', dropped = *word == '-';
    word += added || dropped;
    if (added) {
        line->added[line->added_count++] = strtoull(word, NULL, 10);
        if (output)
            put_added(&line->records.sink, line->added[line->added_count - 1]);
    } else if (!dropped || !output) {
        uint64_t offset = put_record(line, *word, strtoull(word + 1, NULL, 10));
        line->starts[line->record_count++] = offset;
        if (dropped)
            line->dropped[line->dropped_count++] = offset;
    }
}

static void build(struct line *line, const char *text, bool output, const uint64_t *types,
                  size_t type_count)
{
    char words[512];
    *line = (struct line){0};
    snprintf(words, sizeof words, "%s", text);
    profile_begin(&line->records, types, type_count);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
        put_word(line, word, output);
    profile_end_records(&line->records);
    profile_features(&line->records, (const uint64_t(*)[2])line->traces, line->trace_count);
}

/* ---- Rewriting ---- */

static bool added_time(void *context, size_t index, uint64_t *time_ns)
{
    const struct line *line = context;
    *time_ns = index < line->added_count ? line->added[index] : 0;
    return index < line->added_count;
}

static int added_put(void *context, size_t index, struct byte_sink *sink)
{
    const struct line *line = context;
    put_added(sink, line->added[index]);
    return sink->overflow ? -1 : 0;
}

/* The marks of FILE, EVERY so many records. */
static struct record_marks marks_of(const struct perf_file *file, uint64_t every)
{
    struct record_marks marks = {0};
    struct perf_walk walk = perf_walk_begin(file);
    struct perf_record record;
    while (perf_walk_next(&walk, &record, NULL)) {
        uint64_t time_ns = 0;
        perf_record_time(file, &record, &time_ns);
        assert_int_equal(record_marks_take(&marks, every, &record, time_ns), 0);
    }
    return marks;
}

/* Rewrite the open FILE, with marks EVERY so many records, as LINE says; the output's bytes are the
 * caller's. */
static uint8_t *rewrite_file(struct line *line, const struct perf_file *file, size_t every,
                             size_t *size)
{
    struct record_marks marks = marks_of(file, every);
    char path[128];
    struct output_file output;
    struct findings findings = {0};
    struct record_source added = {line, added_time, added_put};
    snprintf(path, sizeof path, "%s.out", scratch_file);
    assert_int_equal(output_file_open(&output, path, &findings), 0);
    if (perf_rewrite(&output, file, &marks, line->dropped, line->dropped_count, &added, NULL,
                     &findings))
        fail_msg("%s", findings.failure);
    record_marks_free(&marks);
    assert_int_equal(output_file_commit(&output, &findings), 0);
    output_file_close(&output);
    assert_int_equal(findings_lost(&findings), 0);
    return read_whole(path, size);
}

static void assert_output(const uint8_t *bytes, size_t size, const struct profile_builder *records)
{
    assert_int_equal(size, records->sink.size);
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != records->bytes[i])
            fail_msg("byte 0x%zx is 0x%x, not 0x%x", i, bytes[i], records->bytes[i]);
}

static void assert_rewrites_types(const char *text, const uint64_t *types, size_t type_count)
{
    size_t size;
    struct perf_file file;
    build(&input, text, false, types, type_count);
    build(&expected, text, true, types, type_count);
    open_built_profile(&input.records, &file);
    for (size_t every = 1; every <= LINE_RECORDS; every += 1 + every / 4) {
        uint8_t *bytes = rewrite_file(&input, &file, every, &size);
        assert_output(bytes, size, &expected.records);
        free(bytes);
    }
    perf_file_close(&file);
}

static void assert_rewrites(const char *text)
{
    const uint64_t sample_type = SAMPLE_TYPE;
    assert_rewrites_types(text, &sample_type, 1);
}

/* ---- The tests ---- */

static void test_nothing_dropped_or_added_changes_no_byte(void **state)
{
    (void)state;
    assert_rewrites("s10");
    assert_rewrites("m0 c1 m10 s20 r s15 s25 r");
    assert_rewrites("m0 a24 s10 r a8 s30 r");
}

static void test_dropped_records_vanish_and_nothing_else(void **state)
{
    (void)state;
    assert_rewrites("m0 -m5 s10 r");
    assert_rewrites("-m0 s10 r");
    assert_rewrites("-m0 -m1 -m2 s10 -m3 r -c20");
    assert_rewrites("s10 -m20");
    assert_rewrites("s10 -m20 r");
}

static void test_added_records_stand_before_the_first_that_is_not_older(void **state)
{
    (void)state;
    assert_rewrites("s10 +15 s20 s30 r");
    assert_rewrites("s10 +20 s20 s30 r");
    assert_rewrites("+1 s10 s20 +21 c30 r");
    assert_rewrites("s10 +15 +16 +20 s20 +21 s21 r");
}

static void test_records_without_a_time_do_not_count(void **state)
{
    (void)state;
    assert_rewrites("s10 r a16 r +15 s20 r");
}

/* In file order: the round is the one in which the time is first reached. */
static void test_added_records_stand_in_their_round(void **state)
{
    (void)state;
    assert_rewrites("s10 +25 s30 s20 r s26 s40 r");
    assert_rewrites("s10 s12 r s11 s13 r +14 s20 r");
    assert_rewrites("s10 r +11 s20 r +21 s30 r +31 s40 r");
}

static void test_younger_than_all_stand_before_the_last_mark(void **state)
{
    (void)state;
    assert_rewrites("s10 s20 +30 r");
    assert_rewrites("s10 r s20 +30 +40 r");
    assert_rewrites("s10 r s20 +30");
    assert_rewrites("s10 r -m20 +30");
    assert_rewrites("s10 -m20 +30 r");
    assert_rewrites("s10 a8 +30");
}

static void test_added_in_place_of_dropped(void **state)
{
    (void)state;
    assert_rewrites("s10 +20 -m20 s30 r");
    assert_rewrites("+5 -m5 +6 -m6 -m7 +10 s10 r");
}

static void test_index_of_traces_follows_them(void **state)
{
    (void)state;
    assert_rewrites("s10 +20 s20 a24 +25 s30 a40 r");
    assert_rewrites("-m10 a24 s20 a24 -m30 a0 s40 a8 r");
    assert_rewrites("a1 -m10 a3 +11 +12 +13 s20 a5");
}

static void test_events_with_different_layouts(void **state)
{
    (void)state;
    assert_rewrites_types("s10 +15 S20 +25 C30 -M35 +40 M41 c42 r", two_layouts, 2);
    assert_rewrites_types("S10 C11 +12 s12 r +13 S13 +14 r", two_layouts, 2);
}

/* An index that is too short, or that speaks of other places, is made whole. */
static void test_odd_indices_of_traces_are_made_whole(void **state)
{
    const uint64_t sample_type = SAMPLE_TYPE, odd_sizes[] = {0, 7, 8, 23, 39};
    (void)state;
    for (size_t i = 0; i < sizeof odd_sizes / sizeof odd_sizes[0]; i++) {
        size_t size;
        struct perf_file file;
        build(&input, "s10 a24 s20 a8 r", false, &sample_type, 1);
        build(&expected, "s10 a24 s20 a8 r", true, &sample_type, 1);
        /* The index is the third section. */
        profile_set_u64(&input.records, input.records.records_end + 2 * PERF_SECTION_BYTES + 8,
                        odd_sizes[i]);
        profile_set_u64(&input.records, input.records.sink.size - 16, UINT64_MAX);
        open_built_profile(&input.records, &file);
        uint8_t *bytes = rewrite_file(&input, &file, RECORDS_A_MARK, &size);
        assert_output(bytes, size, &expected.records);
        free(bytes);
        perf_file_close(&file);
    }
}

/* What stands behind the features or between them belongs to none. */
static void test_features_are_packed(void **state)
{
    const uint64_t sample_type = SAMPLE_TYPE;
    size_t size;
    struct perf_file file;
    (void)state;
    build(&input, "s10 +20 r", false, &sample_type, 1);
    build(&expected, "s10 +20 r", true, &sample_type, 1);
    sink_zeros(&input.records.sink, 24);
    profile_set_u64(&input.records, input.records.records_end, input.records.sink.size);
    sink_bytes(&input.records.sink, "hostname", 8);
    sink_zeros(&input.records.sink, 8);
    open_built_profile(&input.records, &file);
    uint8_t *bytes = rewrite_file(&input, &file, RECORDS_A_MARK, &size);
    assert_output(bytes, size, &expected.records);
    free(bytes);
    perf_file_close(&file);
}

/* Every type of record that perf or a kernel may write, and some that none does yet, with anything
 * in it. */
static void test_records_of_every_type_pass_untouched(void **state)
{
    static const uint8_t of_streams[] = {PERF_RECORD_AUXTRACE, PERF_RECORD_SAMPLE};
    struct perf_file file;
    uint64_t seed = 1;
    size_t size;
    (void)state;
    build(&input, "s10", false, &(uint64_t){SAMPLE_TYPE}, 1);
    input.records.sink.size = input.records.records_end;
    for (uint32_t type = 0; type < 300; type++) {
        if (memchr(of_streams, (int)type, type < 256 ? sizeof of_streams : 0))
            continue;
        size_t start =
            profile_begin_record(&input.records, type, (uint16_t)random_below(&seed, 65536));
        for (uint32_t words = random_below(&seed, 12); words; words--)
            sink_u64(&input.records.sink, (uint64_t)random_below(&seed, UINT32_MAX) << 20);
        profile_end_record(&input.records, start);
    }
    profile_end_records(&input.records);
    profile_features(&input.records, NULL, 0);
    open_built_profile(&input.records, &file);
    uint8_t *bytes = rewrite_file(&input, &file, RECORDS_A_MARK, &size);
    assert_output(bytes, size, &input.records);
    free(bytes);
    perf_file_close(&file);
}

static void test_more_than_the_output_buffers(void **state)
{
    (void)state;
    assert_rewrites("s10 a60000 +15 s20 -m25 s30 r");
}

struct seen_records {
    uint64_t next;
    bool any_missing;
};

/* Changes nothing. */
static int see(void *context, const struct perf_record *record, struct byte_sink *sink)
{
    struct seen_records *seen = context;
    (void)sink;
    seen->any_missing |= record->number != seen->next++;
    return 0;
}

/* What changes records is asked about each, whatever the marks say. */
static void test_changes_are_asked_for_every_record(void **state)
{
    struct seen_records seen = {0};
    const struct record_change change = {&seen, see};
    const uint64_t sample_type = SAMPLE_TYPE;
    struct record_source added = {&input, added_time, added_put};
    struct output_file output;
    struct perf_file file;
    struct findings findings = {0};
    char path[128];
    (void)state;
    build(&input, "s10 s11 s12 s13 s14 +20 s20 s21 s22 r", false, &sample_type, 1);
    open_built_profile(&input.records, &file);
    struct record_marks marks = marks_of(&file, 2);
    snprintf(path, sizeof path, "%s.out", scratch_file);
    assert_int_equal(output_file_open(&output, path, &findings), 0);
    assert_int_equal(perf_rewrite(&output, &file, &marks, NULL, 0, &added, &change, &findings), 0);
    assert_int_equal(seen.next, 9);
    assert_false(seen.any_missing);
    output_file_close(&output);
    record_marks_free(&marks);
    perf_file_close(&file);
    findings_free(&findings);
}

/* ---- Damage ---- */

/* How many features are whole if LINE's profile is cut after SIZE bytes. */
static size_t whole_features(const struct line *line, size_t size)
{
    const struct profile_builder *records = &line->records;
    size_t count = 2u + (line->trace_count > 0), whole = 0;
    size_t end = records->records_end + count * PERF_SECTION_BYTES;
    const size_t sizes[] = {8, 16, 8 + 16 * line->trace_count};
    while (whole < count && end + sizes[whole] <= size)
        end += sizes[whole++];
    return whole;
}

/* Cut LINE's profile after SIZE bytes.  Whole records stay, and whole features if all of their
 * table is there. */
static void cut_line(struct line *line, size_t size)
{
    struct profile_builder *records = &line->records;
    size_t end = records->records_start, features = whole_features(line, size);
    for (size_t i = 0; i < line->record_count; i++) {
        size_t next = i + 1 < line->record_count ? line->starts[i + 1] : records->records_end;
        end = next <= size ? next : end;
    }
    records->sink.size = end;
    profile_end_records(records);
    profile_features_first(records, (const uint64_t(*)[2])line->traces, line->trace_count,
                           features);
}

static void assert_survives_cut(const char *text, size_t size)
{
    const uint64_t sample_type = SAMPLE_TYPE;
    struct perf_file file;
    struct findings findings = {0};
    size_t output_size;
    build(&input, text, false, &sample_type, 1);
    build(&expected, text, false, &sample_type, 1);
    cut_line(&expected, size);
    assert_int_equal(open_cut_profile(&input.records, size, &file, &findings), 0);
    uint8_t *bytes = rewrite_file(&input, &file, 2, &output_size);
    assert_output(bytes, output_size, &expected.records);
    free(bytes);
    perf_file_close(&file);
    findings_free(&findings);
}

static void sweep(const char *text)
{
    const uint64_t sample_type = SAMPLE_TYPE;
    build(&input, text, false, &sample_type, 1);
    size_t start = input.records.records_start, end = input.records.sink.size;
    for (size_t size = start; size <= end; size++)
        assert_survives_cut(text, size);
}

static void test_cut_at_every_byte_keeps_the_whole_records(void **state)
{
    (void)state;
    sweep("m0 s10 r s20 a24 s25 r r s30");
    sweep("s10 r");
}

/* The same with records to add and to drop: nothing is lost, nothing crashes. */
static void test_cut_profiles_take_all_that_is_added(void **state)
{
    static const char text[] = "+1 m10 -m15 s20 +25 r s30 a24 +40 r";
    const uint64_t sample_type = SAMPLE_TYPE;
    (void)state;
    build(&input, text, false, &sample_type, 1);
    size_t start = input.records.records_start, end = input.records.sink.size;
    for (size_t size = start; size <= end; size++) {
        struct perf_file file, rewritten;
        struct perf_record record;
        struct findings findings = {0};
        size_t output_size, added = 0;
        build(&input, text, false, &sample_type, 1);
        assert_int_equal(open_cut_profile(&input.records, size, &file, &findings), 0);
        free(rewrite_file(&input, &file, 2, &output_size));
        perf_file_close(&file);
        findings_free(&findings);
        findings = (struct findings){0};
        char path[128];
        snprintf(path, sizeof path, "%s.out", scratch_file);
        assert_int_equal(perf_file_open(&rewritten, path, &findings), 0);
        struct perf_walk walk = perf_walk_begin(&rewritten);
        while (perf_walk_next(&walk, &record, &findings))
            added += record.type == ADDED_TYPE;
        assert_int_equal(added, 3);
        assert_int_equal(findings_lost(&findings), 0);
        perf_file_close(&rewritten);
    }
}

/* Damage in the middle: what follows can't be trusted, the features still can. */
static void test_records_behind_damage_are_left_out(void **state)
{
    const uint64_t sample_type = SAMPLE_TYPE;
    static const uint8_t sizes[] = {0, 7, 255};
    (void)state;
    for (size_t i = 0; i < sizeof sizes; i++) {
        size_t size;
        struct perf_file file;
        build(&input, "s10 r s20 r", false, &sample_type, 1);
        build(&expected, "s10 r", false, &sample_type, 1);
        input.records.bytes[input.starts[2] + 6] = sizes[i];
        open_built_profile(&input.records, &file);
        uint8_t *bytes = rewrite_file(&input, &file, RECORDS_A_MARK, &size);
        assert_output(bytes, size, &expected.records);
        free(bytes);
        perf_file_close(&file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_dropped_or_added_changes_no_byte),
        cmocka_unit_test(test_dropped_records_vanish_and_nothing_else),
        cmocka_unit_test(test_added_records_stand_before_the_first_that_is_not_older),
        cmocka_unit_test(test_records_without_a_time_do_not_count),
        cmocka_unit_test(test_added_records_stand_in_their_round),
        cmocka_unit_test(test_younger_than_all_stand_before_the_last_mark),
        cmocka_unit_test(test_added_in_place_of_dropped),
        cmocka_unit_test(test_index_of_traces_follows_them),
        cmocka_unit_test(test_events_with_different_layouts),
        cmocka_unit_test(test_odd_indices_of_traces_are_made_whole),
        cmocka_unit_test(test_features_are_packed),
        cmocka_unit_test(test_records_of_every_type_pass_untouched),
        cmocka_unit_test(test_more_than_the_output_buffers),
        cmocka_unit_test(test_changes_are_asked_for_every_record),
        cmocka_unit_test(test_cut_at_every_byte_keeps_the_whole_records),
        cmocka_unit_test(test_cut_profiles_take_all_that_is_added),
        cmocka_unit_test(test_records_behind_damage_are_left_out),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
