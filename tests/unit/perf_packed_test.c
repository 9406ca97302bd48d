/* Compressed recordings become the plain file that they were made of, byte for byte; what lies
 * about its size ends the records, or is refused in words. */
#include "tests/unit/perf_input_forms.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unpacks_both_kinds_in_pieces_of_any_size),
        cmocka_unit_test(test_compressed_records_that_lie),
        cmocka_unit_test(test_records_that_unpack_to_all_memory_are_refused),
        cmocka_unit_test(test_stacks_of_a_loop_pack_well),
        cmocka_unit_test(test_what_unpacks_to_no_record_ends_the_records),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
