/* Opening perf.data files and reading their records: layouts, times, maps, and what is refused. */
#include "injector/recording/perf_data/perf_file.h"

#include "injector/recording/records.h"
#include "tests/unit/profile_builder.h"

static struct profile_builder built;

static void begin_one(void)
{
    profile_begin_one(&built);
}

static void finish(void)
{
    profile_end_records(&built);
    profile_features(&built, NULL, 0);
}

/* The smallest profile with something in it. */
static void build_small(void)
{
    begin_one();
    profile_map(&built, PERF_RECORD_MMAP2, 0, 0x1000, 0x2000, "//anon", 10);
    profile_sample(&built, 0, 20);
    profile_round(&built);
    finish();
}

static void assert_refused_at(size_t size, const char *words)
{
    struct perf_file file;
    struct findings findings = {0};
    assert_int_equal(open_cut_profile(&built, size, &file, &findings), -1);
    assert_non_null(strstr(findings.failure, scratch_file));
    if (!strstr(findings.failure, words))
        fail_msg("'%s' does not say '%s'", findings.failure, words);
    perf_file_close(&file);
    findings_free(&findings);
}

static void assert_refused(const char *words)
{
    assert_refused_at(built.sink.size, words);
}

/* ---- The header ---- */

static void test_reads_header_and_events(void **state)
{
    struct perf_file file;
    (void)state;
    build_small();
    open_built_profile(&built, &file);
    assert_int_equal(file.size, built.sink.size);
    assert_int_equal(file.event_count, 1);
    assert_true(file.one_layout);
    assert_int_equal(file.records.offset, built.records_start);
    assert_int_equal(file.records.size, built.records_end - built.records_start);
    assert_true(perf_file_has_feature(&file, 3));
    assert_true(perf_file_has_feature(&file, 13));
    assert_false(perf_file_has_feature(&file, PERF_FEATURE_AUXTRACE));
    assert_int_equal(file.features.count, 2);
    perf_file_close(&file);
}

static void test_knows_the_clock_of_all_events(void **state)
{
    const uint64_t types[] = {SAMPLE_TYPE, SAMPLE_TYPE};
    struct perf_file file;
    (void)state;
    profile_begin(&built, types, 2);
    profile_sample(&built, 0, 1);
    finish();
    open_built_profile(&built, &file);
    assert_true(perf_file_uses_clock(&file, CLOCK_MONOTONIC));
    assert_false(perf_file_uses_clock(&file, CLOCK_REALTIME));
    perf_file_close(&file);
    size_t second = built.records_start - BUILT_ATTR_BYTES - PERF_SECTION_BYTES;
    profile_set_u64(&built, second + PERF_ATTR_FLAGS, PERF_ATTR_SAMPLE_ID_ALL);
    open_built_profile(&built, &file);
    assert_false(perf_file_uses_clock(&file, CLOCK_MONOTONIC));
    perf_file_close(&file);
}

static void test_refuses_what_is_no_perf_data(void **state)
{
    (void)state;
    build_small();
    assert_refused_at(0, "only 0 bytes long");
    assert_refused_at(15, "only 15 bytes long");
    assert_refused_at(103, "header of 104 bytes in a file of 103");
    built.bytes[0] = 'X';
    assert_refused("does not begin with PERFILE2");
    for (size_t i = 0; i < 4; i++)
        built.bytes[i] = (uint8_t) "DTiJ"[i];
    assert_refused("is a dump, not a recording");
}

static void test_refuses_the_other_byte_order(void **state)
{
    (void)state;
    build_small();
    profile_set_u64(&built, 0, __builtin_bswap64(PERF_MAGIC));
    assert_refused("other byte order");
}

static void test_refuses_a_pipe_and_odd_headers(void **state)
{
    (void)state;
    build_small();
    profile_set_u64(&built, 8, PERF_PIPE_HEADER_BYTES);
    assert_refused("recorded into a pipe");
    assert_refused_at(16, "recorded into a pipe");
    profile_set_u64(&built, 8, 96);
    assert_refused("header of 96 bytes");
}

static void test_refuses_attrs_outside_the_file_or_of_odd_size(void **state)
{
    static const struct {
        uint64_t entry, offset, size;
    } bad[] = {{152, 120, 1 << 20},    {152, UINT64_MAX, 152},
               {152, 120, UINT64_MAX}, {152, 120, 151},
               {152, 120, 160},        {79, 120, 79},
               {0, 120, 152},          {UINT64_MAX, 120, UINT64_MAX}};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        build_small();
        profile_set_u64(&built, PERF_HEADER_ATTR_SIZE, bad[i].entry);
        profile_set_u64(&built, PERF_HEADER_ATTR_SIZE + 8, bad[i].offset);
        profile_set_u64(&built, PERF_HEADER_ATTR_SIZE + 16, bad[i].size);
        assert_refused("event attributes");
    }
}

static void test_says_that_perf_found_no_processor(void **state)
{
    (void)state;
    build_small();
    profile_set_u64(&built, PERF_HEADER_ATTR_SIZE + 16, 0);
    assert_refused("has no events");
}

static void test_no_event_ids_may_lie_anywhere(void **state)
{
    struct perf_file file;
    (void)state;
    profile_begin_one(&built);
    profile_sample(&built, 0, 10);
    profile_end_records(&built);
    profile_set_u64(&built, built.records_start - PERF_SECTION_BYTES, 1 << 20);
    profile_set_u64(&built, built.records_start - PERF_SECTION_BYTES + 8, 0);
    open_built_profile(&built, &file);
    assert_int_equal(file.event_count, 1);
    assert_int_equal(file.events[0].ids.size, 0);
    perf_file_close(&file);
}

static void test_refuses_event_ids_outside_the_file(void **state)
{
    (void)state;
    build_small();
    size_t ids = built.records_start - PERF_SECTION_BYTES;
    profile_set_u64(&built, ids, 1 << 20);
    assert_refused("event ids");
    profile_set_u64(&built, ids, 104);
    profile_set_u64(&built, ids + 8, 15);
    assert_refused("event ids");
}

static void test_refuses_attributes_of_a_wrong_size(void **state)
{
    static const uint32_t sizes[] = {0, PERF_ATTR_MIN_BYTES - 8, BUILT_ATTR_BYTES + 8};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        build_small();
        struct byte_sink size =
            byte_sink_over(built.bytes + built.records_start - PERF_SECTION_BYTES -
                               BUILT_ATTR_BYTES + PERF_ATTR_SIZE,
                           4);
        sink_u32(&size, sizes[i]);
        assert_refused("tells a wrong size of itself");
    }
}

static void test_refuses_layouts_that_nobody_can_tell_apart(void **state)
{
    const uint64_t types[] = {SAMPLE_TYPE, SAMPLE_TYPE | PERF_SAMPLE_CPU};
    (void)state;
    profile_begin(&built, types, 2);
    profile_sample(&built, 0, 1);
    finish();
    assert_refused("IDENTIFIER");
}

/* perf record writes the size of its records when it ends. */
static void test_records_of_a_killed_perf_go_up_to_the_end(void **state)
{
    struct perf_file file;
    struct findings findings = {.quiet = true};
    struct perf_record record;
    (void)state;
    for (size_t cut = 0; cut < 2; cut++) {
        build_small();
        profile_set_u64(&built, PERF_HEADER_DATA + 8, 0);
        assert_int_equal(open_cut_profile(&built, built.records_end - cut, &file, &findings), 0);
        assert_int_equal(findings.count[FINDING_PROFILE_TRUNCATED], cut + 1);
        assert_int_equal(findings.count[FINDING_FEATURE_BROKEN], 0);
        assert_int_equal(file.features.count, 0);
        struct perf_walk walk = perf_walk_begin(&file);
        assert_true(perf_walk_next(&walk, &record, &findings) && record.type == PERF_RECORD_MMAP2);
        assert_true(perf_walk_next(&walk, &record, &findings) && record.type == PERF_RECORD_SAMPLE);
        assert_int_equal(perf_walk_next(&walk, &record, &findings), !cut);    /* the round */
        assert_int_equal(findings.count[FINDING_PROFILE_TRUNCATED], cut + 1); /* not told again */
        perf_file_close(&file);
    }
    findings_free(&findings);
}

static void test_refuses_a_recording_without_records(void **state)
{
    (void)state;
    build_small();
    profile_set_u64(&built, PERF_HEADER_DATA + 8, 0);
    assert_refused_at(built.records_start, "no records"); /* killed before the first */
    profile_set_u64(&built, PERF_HEADER_DATA, built.records_end);
    assert_refused("no records"); /* features stand there */
    profile_set_u64(&built, PERF_HEADER_DATA, built.sink.size + 1);
    profile_set_u64(&built, PERF_HEADER_DATA + 8, 8);
    assert_refused("past its end");
}

static void test_refuses_missing_files_and_directories(void **state)
{
    struct perf_file file;
    struct findings findings = {0};
    (void)state;
    unlink(scratch_file);
    assert_int_equal(perf_file_open(&file, scratch_file, &findings), -1);
    assert_non_null(strstr(findings.failure, "name another recording"));
    perf_file_close(&file);
    findings.failure[0] = '\0';
    assert_int_equal(perf_file_open(&file, scratch, &findings), -1);
    assert_non_null(strstr(findings.failure, "is a directory"));
    perf_file_close(&file);
}

/* ---- Features ---- */

/* Section 3 at OFFSET, of SIZE bytes. */
static void build_feature(uint64_t offset, uint64_t size)
{
    build_small();
    profile_set_u64(&built, built.records_end, offset);
    profile_set_u64(&built, built.records_end + 8, size);
}

static void assert_feature(bool taken)
{
    struct perf_file file;
    struct findings findings = {0};
    assert_int_equal(open_cut_profile(&built, built.sink.size, &file, &findings), 0);
    assert_int_equal(findings.count[FINDING_FEATURE_BROKEN], !taken);
    assert_int_equal(perf_file_has_feature(&file, 3), taken);
    assert_true(perf_file_has_feature(&file, 13));
    perf_file_close(&file);
    findings_free(&findings);
}

static void test_features_over_other_parts_are_left_out(void **state)
{
    uint64_t end, table;
    (void)state;
    build_small();
    end = built.sink.size;
    table = built.records_end;
    const uint64_t bad[][2] = {{end - 8, 9},
                               {end + 1, 0},
                               {end, 1},
                               {UINT64_MAX, 8},
                               {8, UINT64_MAX},
                               {0, 8},
                               {PERF_FILE_HEADER_BYTES - 1, 1},
                               {PERF_FILE_HEADER_BYTES, 8},
                               {built.records_start - 8, 8},
                               {built.records_start, 8},
                               {table - 1, 1},
                               {table, 1},
                               {table + 31, 1},
                               {0, end}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        build_feature(bad[i][0], bad[i][1]);
        assert_feature(false);
    }
    const uint64_t good[][2] = {{table + 32, 8}, {end - 1, 1}, {end, 0}, {table, 0}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        build_feature(good[i][0], good[i][1]);
        assert_feature(true);
    }
}

static void test_a_table_of_features_past_the_end_is_told(void **state)
{
    struct perf_file file;
    struct findings findings = {0};
    (void)state;
    build_small();
    profile_set_u64(&built, PERF_HEADER_FEATURES + 24, UINT64_MAX);
    assert_int_equal(open_cut_profile(&built, built.sink.size, &file, &findings), 0);
    assert_int_equal(findings.count[FINDING_FEATURE_BROKEN], 1);
    assert_int_equal(file.features.count, 0);
    perf_file_close(&file);
    findings_free(&findings);
}

/* ---- Records ---- */

static void test_walks_over_records_and_traces(void **state)
{
    struct perf_file file;
    struct perf_record record;
    struct findings findings = {0};
    size_t offsets[5], count = 0;
    (void)state;
    begin_one();
    offsets[0] = profile_map(&built, PERF_RECORD_MMAP2, 0, 0x1000, 0x2000, "//anon", 10);
    offsets[1] = profile_auxtrace(&built, 24);
    offsets[2] = profile_sample(&built, 0, 20);
    offsets[3] = profile_auxtrace(&built, 0);
    offsets[4] = profile_round(&built);
    finish();
    open_built_profile(&built, &file);
    struct perf_walk walk = perf_walk_begin(&file);
    for (; perf_walk_next(&walk, &record, &findings); count++) {
        assert_int_equal(record.offset, offsets[count]);
        assert_int_equal(record.number, count);
        assert_ptr_equal(record.bytes, file.data + record.offset);
        uint64_t next = count < 4 ? offsets[count + 1] : built.records_end;
        assert_int_equal(record.offset + record.span, next);
    }
    assert_int_equal(count, 5);
    assert_int_equal(findings_lost(&findings), 0);
    perf_file_close(&file);
}

static void read_nth(const struct perf_file *file, size_t number, struct perf_record *record)
{
    struct findings findings = {0};
    struct perf_walk walk = perf_walk_begin(file);
    for (size_t i = 0; i <= number; i++)
        assert_true(perf_walk_next(&walk, record, &findings));
}

/* The time of every record, whatever else its event puts into it. */
static void assert_times(uint64_t sample_type)
{
    struct perf_file file;
    struct perf_record record;
    uint64_t time_ns;
    profile_begin(&built, &sample_type, 1);
    profile_sample(&built, 0, 1001);
    profile_comm(&built, 0, 1002);
    profile_map(&built, PERF_RECORD_MMAP, 0, 0x1000, 0x2000, "//anon", 1003);
    profile_round(&built);
    finish();
    open_built_profile(&built, &file);
    for (size_t i = 0; i < 3; i++) {
        read_nth(&file, i, &record);
        assert_true(perf_record_time(&file, &record, &time_ns));
        assert_int_equal(time_ns, 1001 + i);
    }
    read_nth(&file, 3, &record);
    assert_false(perf_record_time(&file, &record, &time_ns));
    perf_file_close(&file);
}

static void test_finds_the_time_in_every_layout(void **state)
{
    static const uint64_t bits[] = {PERF_SAMPLE_IP,        PERF_SAMPLE_TID, PERF_SAMPLE_ID,
                                    PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_CPU, PERF_SAMPLE_IDENTIFIER};
    (void)state;
    for (unsigned set = 0; set < 64; set++) {
        uint64_t sample_type = PERF_SAMPLE_TIME;
        for (unsigned i = 0; i < 6; i++)
            if (set >> i & 1)
                sample_type |= bits[i];
        assert_times(sample_type);
    }
}

/* Two events with nothing in common but what tells them apart. */
static void test_resolves_layouts_by_identifier(void **state)
{
    const uint64_t types[] = {PERF_SAMPLE_IDENTIFIER | SAMPLE_TYPE,
                              PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU};
    struct perf_file file;
    struct perf_record record;
    uint64_t time_ns;
    (void)state;
    profile_begin(&built, types, 2);
    for (uint64_t i = 0; i < 2; i++) {
        profile_sample(&built, i, 10 * i);
        profile_comm(&built, i, 10 * i + 1);
        profile_map(&built, PERF_RECORD_MMAP2, i, 0x1000, 0x2000, "//anon", 10 * i + 2);
    }
    finish();
    open_built_profile(&built, &file);
    assert_false(file.one_layout);
    for (size_t i = 0; i < 6; i++) {
        struct perf_map map;
        read_nth(&file, i, &record);
        assert_true(perf_record_time(&file, &record, &time_ns));
        assert_int_equal(time_ns, i / 3 * 10 + i % 3);
        assert_int_equal(perf_record_map(&file, &record, &map), i % 3 == 2);
    }
    perf_file_close(&file);
}

static void test_reads_maps_of_both_kinds(void **state)
{
    static const uint32_t types[] = {PERF_RECORD_MMAP, PERF_RECORD_MMAP2};
    struct perf_file file;
    struct perf_record record;
    struct perf_map map;
    (void)state;
    begin_one();
    for (size_t i = 0; i < 2; i++)
        profile_map(&built, types[i], 0, 0x1000, 0x2000, "/a/name", 10);
    size_t data = profile_map(&built, PERF_RECORD_MMAP2, 0, 0x1000, 0x2000, "", 10);
    built.bytes[data + 5] |= PERF_MISC_MMAP_DATA >> 8;
    finish();
    open_built_profile(&built, &file);
    for (size_t i = 0; i < 3; i++) {
        read_nth(&file, i, &record);
        assert_true(perf_record_map(&file, &record, &map));
        assert_int_equal(map.pid, 4711);
        assert_int_equal(map.tid, 4712);
        assert_int_equal(map.start, 0x1000);
        assert_int_equal(map.len, 0x2000);
        assert_int_equal(map.pgoff, 0x3000);
        assert_string_equal(map.filename, i < 2 ? "/a/name" : "");
        assert_int_equal(map.data, i == 2);
    }
    perf_file_close(&file);
}

/* A name that reaches into the trailer, or bounds past the end of all addresses. */
static void test_broken_maps_are_none(void **state)
{
    struct perf_file file;
    struct perf_record record;
    struct perf_map map;
    (void)state;
    begin_one();
    size_t endless = profile_map(&built, PERF_RECORD_MMAP2, 0, 0x1000, 0x2000, "1234567", 10);
    built.bytes[endless + PERF_MMAP2_BYTES + 7] = '8';
    profile_map(&built, PERF_RECORD_MMAP2, 0, UINT64_MAX - 10, 0x2000, "//anon", 10);
    profile_plain(&built, PERF_RECORD_MMAP2, 32);
    finish();
    open_built_profile(&built, &file);
    for (size_t i = 0; i < 3; i++) {
        read_nth(&file, i, &record);
        assert_false(perf_record_map(&file, &record, &map));
    }
    perf_file_close(&file);
}

/* ---- Damage ---- */

static void test_a_cut_data_section_counts_as_far_as_it_goes(void **state)
{
    struct perf_file file;
    struct perf_record record;
    struct findings findings = {0};
    (void)state;
    build_small();
    size_t cut = built.records_end - 8 - 1; /* in the sample */
    assert_int_equal(open_cut_profile(&built, cut, &file, &findings), 0);
    assert_int_equal(findings.count[FINDING_PROFILE_TRUNCATED], 1);
    assert_int_equal(file.records.size, cut - built.records_start);
    struct perf_walk walk = perf_walk_begin(&file);
    assert_true(perf_walk_next(&walk, &record, &findings));
    assert_false(perf_walk_next(&walk, &record, &findings));
    assert_int_equal(findings.count[FINDING_PROFILE_TRUNCATED], 1); /* told once */
    perf_file_close(&file);
    findings_free(&findings);
}

/* A record of SIZE bytes, by its header, ends the walk and is told. */
static void assert_ends_walk(uint16_t size, uint64_t payload)
{
    struct perf_file file;
    struct perf_record record;
    struct findings findings = {0};
    begin_one();
    profile_sample(&built, 0, 20);
    size_t last = profile_auxtrace(&built, 0);
    built.bytes[last + 6] = (uint8_t)size;
    built.bytes[last + 7] = (uint8_t)(size >> 8);
    profile_set_u64(&built, last + 8, payload);
    finish();
    open_built_profile(&built, &file);
    struct perf_walk walk = perf_walk_begin(&file);
    assert_true(perf_walk_next(&walk, &record, &findings));
    assert_false(perf_walk_next(&walk, &record, &findings));
    assert_int_equal(findings.count[FINDING_PROFILE_TRUNCATED], 1);
    perf_file_close(&file);
    findings_free(&findings);
}

static void test_records_that_do_not_fit_end_the_walk(void **state)
{
    (void)state;
    assert_ends_walk(0, 0);
    assert_ends_walk(7, 0);
    assert_ends_walk(PERF_AUXTRACE_BYTES + 1, 0);
    assert_ends_walk(UINT16_MAX, 0);
    assert_ends_walk(PERF_AUXTRACE_BYTES, 1);
    assert_ends_walk(PERF_AUXTRACE_BYTES, UINT64_MAX);
}

/* Everything that the pipeline reads of a profile, cut at every byte. */
static void test_cut_at_every_byte_never_crashes(void **state)
{
    size_t readable = 0;
    (void)state;
    build_small();
    for (size_t size = 0; size <= built.sink.size; size++) {
        struct perf_file file;
        struct records records = {0};
        struct findings findings = {0};
        int opened = open_cut_profile(&built, size, &file, &findings);
        assert_int_equal(opened, size < built.records_start ? -1 : 0);
        if (!opened) {
            assert_int_equal(records_read(&records, &file, &findings), 0);
            assert_int_equal(findings_lost(&findings) > 0, size < built.sink.size);
            readable += records.map_count + records.sample_count;
        }
        assert_int_equal(findings.failure[0] != '\0', opened != 0);
        records_free(&records);
        perf_file_close(&file);
        findings_free(&findings);
    }
    assert_true(readable > 0);
}

static void test_a_guests_mapping_is_none_of_the_process(void **state)
{
    struct perf_file file;
    struct records records = {0};
    struct findings findings = {0};
    (void)state;
    profile_begin_one(&built);
    for (uint16_t mode = PERF_MISC_KERNEL; mode <= PERF_MISC_GUEST_USER; mode++) {
        size_t start = profile_map(&built, PERF_RECORD_MMAP2, 0, mode * 0x1000, 0x1000, "/a", 10);
        built.bytes[start + 4] = (uint8_t)mode;
    }
    profile_end_records(&built);
    assert_int_equal(open_cut_profile(&built, built.sink.size, &file, &findings), 0);
    assert_int_equal(records_read(&records, &file, &findings), 0);
    assert_int_equal(records.map_count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(records.maps[i].map.start, 0x1000 * (i + 1));
    records_free(&records);
    perf_file_close(&file);
    findings_free(&findings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_header_and_events),
        cmocka_unit_test(test_knows_the_clock_of_all_events),
        cmocka_unit_test(test_refuses_what_is_no_perf_data),
        cmocka_unit_test(test_refuses_the_other_byte_order),
        cmocka_unit_test(test_refuses_a_pipe_and_odd_headers),
        cmocka_unit_test(test_refuses_attrs_outside_the_file_or_of_odd_size),
        cmocka_unit_test(test_says_that_perf_found_no_processor),
        cmocka_unit_test(test_no_event_ids_may_lie_anywhere),
        cmocka_unit_test(test_refuses_event_ids_outside_the_file),
        cmocka_unit_test(test_refuses_attributes_of_a_wrong_size),
        cmocka_unit_test(test_refuses_layouts_that_nobody_can_tell_apart),
        cmocka_unit_test(test_records_of_a_killed_perf_go_up_to_the_end),
        cmocka_unit_test(test_refuses_a_recording_without_records),
        cmocka_unit_test(test_refuses_missing_files_and_directories),
        cmocka_unit_test(test_features_over_other_parts_are_left_out),
        cmocka_unit_test(test_a_table_of_features_past_the_end_is_told),
        cmocka_unit_test(test_walks_over_records_and_traces),
        cmocka_unit_test(test_finds_the_time_in_every_layout),
        cmocka_unit_test(test_resolves_layouts_by_identifier),
        cmocka_unit_test(test_reads_maps_of_both_kinds),
        cmocka_unit_test(test_broken_maps_are_none),
        cmocka_unit_test(test_a_cut_data_section_counts_as_far_as_it_goes),
        cmocka_unit_test(test_records_that_do_not_fit_end_the_walk),
        cmocka_unit_test(test_cut_at_every_byte_never_crashes),
        cmocka_unit_test(test_a_guests_mapping_is_none_of_the_process),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
