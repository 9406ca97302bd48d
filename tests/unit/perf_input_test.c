/* Every form of recording becomes the same plain file, byte for byte: streams, compressed ones,
 * directories, and files whose attributes stand behind their records.  What lies about its sizes
 * ends the records, or is refused in words. */
#include "injector/perf_data/perf_input.h"

#include "injector/perf_data/perf_pipe.h"
#include "tests/unit/profile_builder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <zstd.h>

static struct profile_builder plain, other;
static uint8_t form[1 << 18]; /* the recording in another form */

/* ---- The plain file: rounds, two layouts, and two traces in the middle ---- */

struct marks {
    size_t first_trace, first_round, second_trace, second_round;
};

static struct marks put_records(struct profile_builder *profile, uint64_t (*traces)[2], bool rounds)
{
    struct marks marks;
    for (uint64_t time = 10; time < 50; time++)
        profile_sample(profile, time % 2, time);
    traces[0][0] = marks.first_trace = profile_auxtrace(profile, 24);
    marks.first_round = profile->sink.size;
    if (rounds)
        profile_round(profile);
    for (uint64_t time = 50; time < 90; time++)
        profile_comm(profile, time % 2, time);
    traces[1][0] = marks.second_trace = profile_auxtrace(profile, 16);
    traces[0][1] = traces[1][1] = PERF_AUXTRACE_BYTES;
    marks.second_round = profile->sink.size;
    if (rounds)
        profile_round(profile);
    return marks;
}

static struct marks build_plain(struct profile_builder *profile, bool rounds)
{
    static const uint64_t types[] = {SAMPLE_TYPE | PERF_SAMPLE_IDENTIFIER,
                                     SAMPLE_TYPE | PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_CPU};
    uint64_t traces[2][2];
    profile_begin(profile, types, 2);
    struct marks marks = put_records(profile, traces, rounds);
    profile_end_records(profile);
    profile_features(profile, (const uint64_t(*)[2])traces, 2);
    return marks;
}

/* ---- Opening ---- */

static struct findings assert_opens_as(const char *path, const struct profile_builder *expected)
{
    struct perf_input input;
    struct findings findings = {0};
    if (perf_input_open(&input, path, &findings))
        fail_msg("%s", findings.failure);
    for (size_t i = 0; i < input.file.size && i < expected->sink.size; i++)
        if (input.file.data[i] != expected->bytes[i])
            fail_msg("byte 0x%zx is 0x%x, not 0x%x", i, input.file.data[i], expected->bytes[i]);
    assert_int_equal(input.file.size, expected->sink.size);
    perf_input_close(&input);
    return findings;
}

static void assert_opens_well(const char *path, const struct profile_builder *expected)
{
    struct findings findings = assert_opens_as(path, expected);
    assert_int_equal(findings_lost(&findings), 0);
}

static void assert_refused(const char *path, const char *words)
{
    struct perf_input input;
    struct findings findings = {0};
    assert_int_equal(perf_input_open(&input, path, &findings), -1);
    if (!strstr(findings.failure, words))
        fail_msg("'%s' does not say '%s'", findings.failure, words);
    perf_input_close(&input);
    findings_free(&findings);
}

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

/* ---- Compressed ---- */

struct zipper {
    ZSTD_CCtx *stream;
    struct byte_sink out;
    uint32_t type;
    size_t piece_bytes;
};

static void zip_piece(struct zipper *zipper, const uint8_t *bytes, size_t count)
{
    static uint8_t packed[1 << 16];
    ZSTD_inBuffer in = {bytes, count, 0};
    ZSTD_outBuffer out = {packed, sizeof packed, 0};
    assert_int_equal(ZSTD_compressStream2(zipper->stream, &out, &in, ZSTD_e_flush), 0);
    bool second = zipper->type == PERF_RECORD_COMPRESSED2;
    size_t padding = second ? (8u - out.pos % 8) % 8 : 0, fields = second ? 8 : 0;
    sink_u32(&zipper->out, zipper->type);
    sink_u16(&zipper->out, 0);
    sink_u16(&zipper->out, (uint16_t)(8 + fields + out.pos + padding));
    if (second)
        sink_u64(&zipper->out, out.pos);
    sink_bytes(&zipper->out, packed, out.pos);
    sink_zeros(&zipper->out, padding);
}

/* The records from FROM to TO, in pieces that end where they may. */
static void zip(struct zipper *zipper, const struct profile_builder *profile, size_t from,
                size_t to)
{
    for (size_t at = from; at < to; at += zipper->piece_bytes)
        zip_piece(zipper, profile->bytes + at,
                  to - at < zipper->piece_bytes ? to - at : zipper->piece_bytes);
}

/* PROFILE's records, traces and marks as they are, all else compressed. */
static void zip_records(struct zipper *zipper, const struct profile_builder *profile,
                        const struct marks *marks)
{
    size_t second_comm = marks->first_round + PERF_RECORD_HEADER_BYTES;
    zipper->stream = ZSTD_createCCtx();
    zip(zipper, profile, profile->records_start, marks->first_trace);
    sink_bytes(&zipper->out, profile->bytes + marks->first_trace, second_comm - marks->first_trace);
    zip(zipper, profile, second_comm, marks->second_trace);
    sink_bytes(&zipper->out, profile->bytes + marks->second_trace,
               profile->records_end - marks->second_trace);
    ZSTD_freeCCtx(zipper->stream);
}

/* The compressed form of PLAIN; its features are those of PLAIN, and COMPRESSED.  Returns its size.
 */
static size_t build_compressed(uint32_t type, size_t piece_bytes)
{
    struct marks marks = build_plain(&plain, true);
    struct zipper zipper = {
        .out = byte_sink_over(form, sizeof form), .type = type, .piece_bytes = piece_bytes};
    sink_bytes(&zipper.out, plain.bytes, plain.records_start);
    zip_records(&zipper, &plain, &marks);
    size_t end = zipper.out.size, count = 4;
    static const unsigned bits[] = {3, 13, PERF_FEATURE_AUXTRACE, PERF_FEATURE_COMPRESSED};
    const size_t sizes[] = {8, 16, 40, 20};
    uint64_t contents = end + count * PERF_SECTION_BYTES, set = 0;
    for (size_t i = 0; i < count; i++) {
        sink_u64(&zipper.out, contents);
        sink_u64(&zipper.out, sizes[i]);
        contents += sizes[i];
        set |= UINT64_C(1) << bits[i];
    }
    sink_bytes(&zipper.out, "hostnamesixteen bytes ..", 24);
    sink_zeros(&zipper.out, 60); /* the index of traces is made anew in any case */
    assert_false(zipper.out.overflow);
    perf_put_u64(form + PERF_HEADER_DATA + 8, end - plain.records_start);
    perf_put_u64(form + PERF_HEADER_FEATURES, set);
    return zipper.out.size;
}

static void test_unpacks_both_kinds_in_pieces_of_any_size(void **state)
{
    static const uint32_t types[] = {PERF_RECORD_COMPRESSED, PERF_RECORD_COMPRESSED2};
    static const size_t pieces[] = {1 << 15, 1000, 48, 47, 1};
    (void)state;
    for (size_t i = 0; i < 2; i++)
        for (size_t p = 0; p < sizeof pieces / sizeof pieces[0]; p++) {
            write_scratch(form, build_compressed(types[i], pieces[p]));
            assert_opens_well(scratch_file, &plain);
        }
}

/* The first compressed record changed: nothing of the records is left, but it is told. */
static void assert_nothing_unpacked(size_t size)
{
    struct findings findings = {0};
    struct perf_input input;
    write_scratch(form, size);
    assert_int_equal(perf_input_open(&input, scratch_file, &findings), -1);
    assert_non_null(strstr(findings.failure, "no records"));
    assert_int_equal(findings.count[FINDING_PROFILE_TRUNCATED], 1);
    assert_non_null(strstr(findings.first[FINDING_PROFILE_TRUNCATED], "can't be unpacked"));
    perf_input_close(&input);
    findings_free(&findings);
}

static void test_compressed_records_that_lie(void **state)
{
    (void)state;
    size_t size = build_compressed(PERF_RECORD_COMPRESSED2, 1 << 15), first = plain.records_start;
    const uint64_t lies[] = {perf_get_u64(form + first + 8) + 8, UINT64_MAX, UINT64_MAX - 15};
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        perf_put_u64(form + first + 8, lies[i]);
        assert_nothing_unpacked(size);
    }
    size = build_compressed(PERF_RECORD_COMPRESSED, 1 << 15);
    perf_put_u64(form + first + 8, UINT64_MAX);
    assert_nothing_unpacked(size);
    size = build_compressed(PERF_RECORD_COMPRESSED2, 1 << 15);
    form[first + 6] = 8; /* a COMPRESSED2 without its data_size; what follows is no record */
    form[first + 7] = 0;
    assert_nothing_unpacked(size);
}

/* BYTES bytes of samples, the same one again and again, in COMPRESSED records, as one stream.
 * TICKS: each has a time of its own, and a stack that makes it as long as a record can be. */
static size_t build_packed(size_t bytes, bool ticks)
{
    enum { PIECE_BYTES = 60000, LONGEST_SAMPLE = 65528 };
    profile_begin_one(&plain);
    size_t start = profile_sample(&plain, 0, 1), own_bytes = plain.sink.size - start;
    size_t sample_bytes = ticks ? LONGEST_SAMPLE : own_bytes;
    size_t count = bytes / sample_bytes, bound = ZSTD_compressBound(bytes);
    uint8_t *samples = calloc(bytes, 1), *packed = malloc(bound);
    uint64_t seed = 1;
    assert_true(samples && packed);
    for (size_t i = 0; i < count; i++) {
        uint8_t *sample = samples + i * sample_bytes;
        memcpy(sample, plain.bytes + start, own_bytes);
        if (!ticks)
            continue;
        sample[6] = (uint8_t)sample_bytes;
        sample[7] = (uint8_t)(sample_bytes >> 8);
        perf_put_u64(sample + own_bytes, i * 1000000 + random_below(&seed, 100000));
    }
    size_t packed_bytes = ZSTD_compress(packed, bound, samples, count * sample_bytes, 1);
    assert_false(ZSTD_isError(packed_bytes));
    struct byte_sink out = byte_sink_over(form, sizeof form);
    sink_bytes(&out, plain.bytes, plain.records_start);
    for (size_t at = 0, piece; at < packed_bytes; at += piece) {
        piece = packed_bytes - at < PIECE_BYTES ? packed_bytes - at : PIECE_BYTES;
        sink_u32(&out, PERF_RECORD_COMPRESSED);
        sink_u16(&out, 0);
        sink_u16(&out, (uint16_t)(PERF_RECORD_HEADER_BYTES + piece));
        sink_bytes(&out, packed + at, piece);
    }
    free(samples);
    free(packed);
    assert_false(out.overflow);
    perf_put_u64(form + PERF_HEADER_DATA, plain.records_start);
    perf_put_u64(form + PERF_HEADER_DATA + 8, out.size - plain.records_start);
    return out.size;
}

/* What PACKED bytes of form unpack to is opened; if REFUSED, with the failure that says why not. */
static void assert_unpacks(size_t packed, bool refused)
{
    struct findings findings = {0};
    struct perf_input input;
    write_scratch(form, packed);
    assert_int_equal(perf_input_open(&input, scratch_file, &findings), refused ? -1 : 0);
    if (refused)
        assert_non_null(strstr(findings.failure, "unpacks to more than 256 MiB"));
    assert_int_equal(findings_lost(&findings), 0);
    perf_input_close(&input);
    findings_free(&findings);
}

/* More than 256 MiB, and more than any recording's: no memory would do. */
static void test_records_that_unpack_to_all_memory_are_refused(void **state)
{
    const size_t mib = 1 << 20;
    (void)state;
    assert_unpacks(build_packed(250 * mib, false), false);
    assert_unpacks(build_packed(270 * mib, false), true);
}

/* perf record -z --call-graph dwarf,65528 of a loop: the stacks are all the same, and nearly
 * nothing is left of them. */
static void test_stacks_of_a_loop_pack_well(void **state)
{
    const size_t bytes = (size_t)300 << 20;
    (void)state;
    size_t packed = build_packed(bytes, true);
    assert_true(bytes / packed > 1000);
    assert_unpacks(packed, false);
}

/* A stream that unpacks to what is no record, or stops inside one. */
static void test_what_unpacks_to_no_record_ends_the_records(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct findings findings = {0};
        struct perf_input input;
        struct zipper zipper = {.out = byte_sink_over(form, sizeof form),
                                .type = PERF_RECORD_COMPRESSED,
                                .piece_bytes = 1 << 15,
                                .stream = ZSTD_createCCtx()};
        profile_begin_one(&plain);
        size_t sample = profile_sample(&plain, 0, 1), second = profile_sample(&plain, 0, 2);
        if (i)
            plain.bytes[second + 6] = 7;
        else
            plain.sink.size -= 8;
        sink_bytes(&zipper.out, plain.bytes, plain.records_start);
        zip(&zipper, &plain, sample, plain.sink.size);
        ZSTD_freeCCtx(zipper.stream);
        perf_put_u64(form + PERF_HEADER_DATA, plain.records_start);
        perf_put_u64(form + PERF_HEADER_DATA + 8, zipper.out.size - plain.records_start);
        write_scratch(form, zipper.out.size);
        assert_int_equal(perf_input_open(&input, scratch_file, &findings), 0);
        assert_int_equal(findings.count[FINDING_PROFILE_TRUNCATED], 1);
        assert_int_equal(input.file.records.size, second - sample);
        perf_input_close(&input);
        findings_free(&findings);
    }
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
        cmocka_unit_test(test_odd_records_for_features),
        cmocka_unit_test(test_build_ids_are_padded_in_a_stream),
        cmocka_unit_test(test_a_feature_too_large_for_a_stream_is_told),
        cmocka_unit_test(test_unpacks_both_kinds_in_pieces_of_any_size),
        cmocka_unit_test(test_compressed_records_that_lie),
        cmocka_unit_test(test_records_that_unpack_to_all_memory_are_refused),
        cmocka_unit_test(test_stacks_of_a_loop_pack_well),
        cmocka_unit_test(test_what_unpacks_to_no_record_ends_the_records),
        cmocka_unit_test(test_a_directory_becomes_one_file),
        cmocka_unit_test(test_the_copy_of_the_kernel_is_told),
        cmocka_unit_test(test_a_cut_piece_is_told_and_the_others_are_taken),
        cmocka_unit_test(test_directories_that_are_no_recordings),
        cmocka_unit_test(test_attributes_behind_the_records_come_to_the_front),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
