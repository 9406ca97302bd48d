/* Every form of recording becomes the same plain file, byte for byte: streams, directories, and
 * files whose attributes stand behind their records (perf_packed_test: compressed ones).  What lies
 * about its sizes ends the records, or is refused in words. */
#include "injector/recording/perf_data/perf_pipe.h"
#include "tests/unit/perf_input_forms.h"

#include <fcntl.h>
#include <sys/stat.h>

static struct profile_builder other;

static void test_a_plain_file_is_taken_as_it_is(void **state)
{
    (void)state;
    build_plain(&plain, true);
    write_scratch(plain.bytes, plain.sink.size);
    assert_opens_well(scratch_file, &plain);
}

/* ---- Streams ---- */

static size_t make_stream(const struct profile_builder *profile)
{
    size_t size;
    struct findings findings = {0};
    int fd = open(scratch_file, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    if (perf_pipe_write(fd, profile->bytes, profile->sink.size, "stream", &findings))
        fail_msg("%s", findings.failure);
    close(fd);
    uint8_t *bytes = read_whole(scratch_file, &size);
    assert_true(size <= sizeof form);
    memcpy(form, bytes, size);
    free(bytes);
    return size;
}

static void test_a_stream_becomes_the_file_it_was_made_of(void **state)
{
    (void)state;
    build_plain(&plain, true);
    make_stream(&plain);
    assert_opens_well(scratch_file, &plain);
}

/* In front of the records there is nothing to lose; behind, the whole ones are kept. */
static void test_a_stream_that_is_cut_anywhere(void **state)
{
    (void)state;
    build_plain(&plain, true);
    size_t size = make_stream(&plain);
    for (size_t cut = 0; cut < size; cut++) {
        struct perf_input input;
        struct perf_record record;
        struct findings findings = {0};
        write_scratch(form, cut);
        if (perf_input_open(&input, scratch_file, &findings)) {
            assert_true(findings.failure[0]);
        } else {
            struct perf_walk walk = perf_walk_begin(&input.file);
            while (perf_walk_next(&walk, &record, &findings))
                ;
            assert_true(findings.count[FINDING_PROFILE_TRUNCATED] <= 1);
            assert_int_equal(input.file.records.offset, plain.records_start);
            assert_memory_equal(input.file.data + plain.records_start,
                                plain.bytes + plain.records_start, input.file.records.size);
        }
        perf_input_close(&input);
        findings_free(&findings);
    }
}

static void put_u32(size_t at, uint32_t value)
{
    struct byte_sink sink = byte_sink_over(form + at, 4);
    sink_u32(&sink, value);
}

static void test_attributes_of_a_stream_that_lie(void **state)
{
    static const uint32_t lies[] = {0, 63, 1 << 16, UINT32_MAX};
    (void)state;
    build_plain(&plain, true);
    size_t size = make_stream(&plain);
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        put_u32(PERF_PIPE_HEADER_BYTES + 12, lies[i]);
        write_scratch(form, size);
        assert_refused(scratch_file, "an event attribute of");
    }
    write_scratch(form, PERF_PIPE_HEADER_BYTES);
    assert_refused(scratch_file, "perf record wrote nothing");
    write_scratch(form, 0);
    assert_refused(scratch_file, "only 0 bytes long");
}

/* It is one event. */
static void test_an_event_that_a_stream_tells_twice(void **state)
{
    (void)state;
    build_plain(&plain, true);
    const size_t size = make_stream(&plain);
    uint8_t *first = form + PERF_PIPE_HEADER_BYTES;
    const size_t bytes = (size_t)first[6] | (size_t)first[7] << 8;
    assert_true(size + bytes <= sizeof form);
    memmove(first + bytes, first, size - PERF_PIPE_HEADER_BYTES);
    write_scratch(form, size + bytes);
    assert_opens_well(scratch_file, &plain);
}

/* A mark without contents, a bit that there is not, a section that says more than it has: none is
 * taken. */
static void test_odd_records_for_features(void **state)
{
    const uint64_t bits[] = {35, PERF_FEATURE_BITS, UINT64_MAX};
    (void)state;
    build_plain(&plain, true);
    size_t size = make_stream(&plain);
    struct byte_sink sink = byte_sink_over(form + size, sizeof form - size);
    for (size_t i = 0; i < 3; i++) {
        sink_u32(&sink, PERF_RECORD_HEADER_FEATURE);
        sink_u16(&sink, 0);
        sink_u16(&sink, i ? 24 : 16);
        sink_u64(&sink, bits[i]);
        sink_zeros(&sink, i ? 8 : 0);
    }
    write_scratch(form, size + sink.size);
    assert_opens_well(scratch_file, &plain);
    sink_u32(&sink, PERF_RECORD_HEADER_TRACING_DATA);
    sink_u16(&sink, 0);
    sink_u16(&sink, 16);
    sink_u64(&sink, 1000); /* bytes of which not one follows */
    write_scratch(form, size + sink.size);
    struct findings findings = assert_opens_as(scratch_file, &plain);
    assert_int_equal(findings.count[FINDING_PROFILE_TRUNCATED], 1);
    findings_free(&findings);
}

/* perf 7 refuses build-ids in a stream that are not padded, and writes such into files. */
static void test_build_ids_are_padded_in_a_stream(void **state)
{
    (void)state;
    profile_begin_one(&plain);
    profile_sample(&plain, 0, 1);
    profile_end_records(&plain);
    uint64_t at = plain.sink.size;
    sink_u64(&plain.sink, at + PERF_SECTION_BYTES);
    sink_u64(&plain.sink, 44);
    sink_u32(&plain.sink, 0);
    sink_u16(&plain.sink, PERF_MISC_USER);
    sink_u16(&plain.sink, 44);
    sink_zeros(&plain.sink, 28);
    sink_bytes(&plain.sink, "[vdso]\0", 8);
    profile_set_u64(&plain, PERF_HEADER_FEATURES, 1 << PERF_FEATURE_BUILD_ID);
    make_stream(&plain);
    struct byte_cursor record = byte_cursor_over(
        form + PERF_PIPE_HEADER_BYTES + 8 + BUILT_ATTR_BYTES + 8 * BUILT_IDS, 1 << 10, false);
    assert_int_equal(cursor_u32(&record), PERF_RECORD_HEADER_BUILD_ID);
    assert_int_equal(cursor_u16(&record), PERF_MISC_USER);
    assert_int_equal(cursor_u16(&record), 48);
    cursor_skip(&record, 28);
    assert_string_equal(cursor_cstr(&record), "[vdso]");
    cursor_skip(&record, 5);
    assert_int_equal(cursor_u32(&record), PERF_RECORD_SAMPLE);
}

/* What does not fit into a record of 64 KiB can't be in a stream. */
static void test_a_feature_too_large_for_a_stream_is_told(void **state)
{
    static uint8_t file[1 << 18];
    struct findings findings = {0};
    const size_t large = UINT16_MAX - 15;
    (void)state;
    for (size_t more = 0; more < 2; more++) {
        profile_begin_one(&plain);
        profile_sample(&plain, 0, 1);
        profile_end_records(&plain);
        uint64_t at = plain.sink.size;
        sink_u64(&plain.sink, at + PERF_SECTION_BYTES);
        sink_u64(&plain.sink, large - 1 + more);
        profile_set_u64(&plain, PERF_HEADER_FEATURES, 1 << 3);
        memcpy(file, plain.bytes, plain.sink.size);
        int fd = open(scratch_file, O_RDWR | O_CREAT | O_TRUNC, 0600);
        assert_int_equal(
            perf_pipe_write(fd, file, plain.sink.size + large - 1 + more, "stream", &findings), 0);
        close(fd);
        assert_int_equal(findings.count[FINDING_FEATURE_BROKEN], more);
    }
    findings_free(&findings);
}

/* ---- Directories ---- */

static const char *in_directory(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/recording%s%s", scratch, *name ? "/" : "", name);
    return path;
}

static void put_file(const char *name, const void *bytes, size_t size)
{
    FILE *file = fopen(in_directory(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void remove_directory(void)
{
    char command[160];
    snprintf(command, sizeof command, "rm -rf '%s'", in_directory(""));
    assert_int_equal(system(command), 0);
}

/* PLAIN without rounds, made of OTHER: what is before the first trace in `data`, up to the second
 * in data.0, then nothing, then the rest in data.2, or, compressed, all behind the first trace in
 * data.0.  Rounds are where they may be. */
static void make_directory(bool compressed)
{
    remove_directory();
    assert_int_equal(mkdir(in_directory(""), 0700), 0);
    build_plain(&plain, false);
    struct marks marks = build_plain(&other, true);
    size_t comms = marks.first_round + PERF_RECORD_HEADER_BYTES;
    struct zipper zipper = {.out = byte_sink_over(form, sizeof form),
                            .type = PERF_RECORD_COMPRESSED,
                            .piece_bytes = 100};
    zipper.stream = ZSTD_createCCtx();
    if (compressed)
        zip(&zipper, &other, comms, marks.second_trace);
    ZSTD_freeCCtx(zipper.stream);
    if (compressed)
        put_file("data.0", form, zipper.out.size);
    else
        put_file("data.0", other.bytes + comms, marks.second_trace - comms);
    put_file("data.1", "", 0);
    put_file("data.10", other.bytes + marks.second_round, other.records_end - marks.second_round);
    put_file("data.2", other.bytes + marks.second_trace, marks.second_round - marks.second_trace);
    put_file("data.x", "not a piece", 11);
    put_file("data.", "not a piece", 11);
    other.sink.size = comms;
    profile_end_records(&other);
    profile_features_first(&other, NULL, 0, 2);
    put_file("data", other.bytes, other.sink.size);
}

static void test_a_directory_becomes_one_file(void **state)
{
    (void)state;
    for (int compressed = 0; compressed < 2; compressed++) {
        make_directory(compressed);
        assert_opens_well(in_directory(""), &plain);
    }
}

static void test_the_copy_of_the_kernel_is_told(void **state)
{
    (void)state;
    make_directory(false);
    assert_int_equal(mkdir(in_directory("kcore_dir"), 0700), 0);
    struct findings findings = assert_opens_as(in_directory(""), &plain);
    assert_int_equal(findings.count[FINDING_KCORE_LEFT], 1);
    assert_int_equal(findings_lost(&findings), 0);
    findings_free(&findings);
}

static void test_a_cut_piece_is_told_and_the_others_are_taken(void **state)
{
    (void)state;
    make_directory(false);
    assert_int_equal(truncate(in_directory("data.0"), 20), 0);
    struct perf_input input;
    struct findings findings = {0};
    assert_int_equal(perf_input_open(&input, in_directory(""), &findings), 0);
    assert_int_equal(findings.count[FINDING_PROFILE_TRUNCATED], 1);
    assert_non_null(strstr(findings.first[FINDING_PROFILE_TRUNCATED], "/data.0: record 0 at 0x0"));
    assert_true(perf_file_has_feature(&input.file, PERF_FEATURE_AUXTRACE));
    const struct perf_feature *index =
        perf_features_find(&input.file.features, PERF_FEATURE_AUXTRACE);
    assert_int_equal(perf_get_u64(index->bytes), 2);
    perf_input_close(&input);
    findings_free(&findings);
}

static void test_directories_that_are_no_recordings(void **state)
{
    (void)state;
    make_directory(false);
    assert_int_equal(unlink(in_directory("data.1")), 0);
    assert_int_equal(mkfifo(in_directory("data.1"), 0600), 0);
    assert_refused(in_directory(""), "data.1: not a regular file");
    assert_int_equal(unlink(in_directory("data")), 0);
    assert_refused(in_directory(""), "no file 'data'");
    assert_int_equal(mkdir(in_directory("data"), 0700), 0);
    assert_refused(in_directory(""), "is a directory");
    remove_directory();
}

/* ---- Attributes behind the records, as perf inject -i - -o FILE writes them since 6.12 ---- */

static size_t build_scattered(void)
{
    struct byte_sink sink = byte_sink_over(form, sizeof form);
    size_t ids = PERF_FILE_HEADER_BYTES, attrs = ids + plain.events * BUILT_IDS * 8;
    size_t entry = BUILT_ATTR_BYTES + PERF_SECTION_BYTES;
    build_plain(&plain, true);
    size_t records = plain.records_end - plain.records_start;
    sink_bytes(&sink, plain.bytes, PERF_FILE_HEADER_BYTES);
    sink_bytes(&sink, plain.bytes + plain.records_start, plain.sink.size - plain.records_start);
    size_t moved_ids = sink.size, moved_attrs = moved_ids + (attrs - ids);
    sink_bytes(&sink, plain.bytes + ids, plain.records_start - ids);
    perf_put_u64(form + PERF_HEADER_ATTR_SIZE + 8, moved_attrs);
    perf_put_u64(form + PERF_HEADER_DATA, PERF_FILE_HEADER_BYTES);
    for (size_t i = 0; i < plain.events; i++)
        perf_put_u64(form + moved_attrs + i * entry + BUILT_ATTR_BYTES,
                     moved_ids + i * BUILT_IDS * 8);
    size_t table = PERF_FILE_HEADER_BYTES + records;
    for (size_t i = 0; i < 3; i++) {
        uint8_t *section = form + table + i * PERF_SECTION_BYTES;
        perf_put_u64(section,
                     perf_get_u64(section) - (plain.records_start - PERF_FILE_HEADER_BYTES));
    }
    return sink.size;
}

static void test_attributes_behind_the_records_come_to_the_front(void **state)
{
    (void)state;
    build_plain(&plain, true);
    write_scratch(form, build_scattered());
    assert_opens_well(scratch_file, &plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_plain_file_is_taken_as_it_is),
        cmocka_unit_test(test_a_stream_becomes_the_file_it_was_made_of),
        cmocka_unit_test(test_a_stream_that_is_cut_anywhere),
        cmocka_unit_test(test_attributes_of_a_stream_that_lie),
        cmocka_unit_test(test_an_event_that_a_stream_tells_twice),
        cmocka_unit_test(test_odd_records_for_features),
        cmocka_unit_test(test_build_ids_are_padded_in_a_stream),
        cmocka_unit_test(test_a_feature_too_large_for_a_stream_is_told),
        cmocka_unit_test(test_a_directory_becomes_one_file),
        cmocka_unit_test(test_the_copy_of_the_kernel_is_told),
        cmocka_unit_test(test_a_cut_piece_is_told_and_the_others_are_taken),
        cmocka_unit_test(test_directories_that_are_no_recordings),
        cmocka_unit_test(test_attributes_behind_the_records_come_to_the_front),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
