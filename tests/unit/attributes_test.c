/* Attributes that are longer than perf 6.1 knows: what is 0 behind that is left out. */
#include "injector/inject/merge/attributes.h"

#include "injector/recording/perf_data/perf_format.h"
#include "tests/unit/scratch.h"

enum { EVENTS = 3, OLD = 128, NEW = 144, IDS_BYTES = 8, FRONT = PERF_FILE_HEADER_BYTES };

static uint8_t bytes[4096];
static struct perf_file file;
static size_t file_bytes;

/* A file of EVENTS attributes of NEW bytes each, their ids in front of them. */
static void build(void)
{
    struct byte_sink sink = byte_sink_over(bytes, sizeof bytes);
    const size_t table = FRONT + EVENTS * IDS_BYTES, entry = NEW + PERF_SECTION_BYTES;
    memset(bytes, 0, sizeof bytes);
    sink_u64(&sink, PERF_MAGIC);
    sink_u64(&sink, FRONT);
    sink_u64(&sink, entry);
    sink_u64(&sink, table);
    sink_u64(&sink, EVENTS * entry);
    sink_u64(&sink, table + EVENTS * entry);
    sink_u64(&sink, PERF_RECORD_HEADER_BYTES);
    sink_zeros(&sink, FRONT - sink.size);
    for (size_t i = 0; i < EVENTS; i++)
        sink_u64(&sink, 1000 + i);
    for (size_t i = 0; i < EVENTS; i++) {
        size_t start = sink.size;
        sink_u32(&sink, 1);
        sink_u32(&sink, NEW);
        sink_u64(&sink, i);
        sink_zeros(&sink, 8);
        sink_u64(&sink, PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME);
        sink_zeros(&sink, 8);
        sink_u64(&sink, PERF_ATTR_SAMPLE_ID_ALL);
        sink_zeros(&sink, start + OLD - 8 - sink.size);
        sink_u64(&sink, 0xabc0 + i); /* the last field that perf 6.1 knows */
        sink_zeros(&sink, NEW - OLD);
        sink_u64(&sink, FRONT + i * IDS_BYTES);
        sink_u64(&sink, IDS_BYTES);
    }
    sink_u32(&sink, PERF_RECORD_FINISHED_ROUND);
    sink_u16(&sink, 0);
    sink_u16(&sink, PERF_RECORD_HEADER_BYTES);
    file_bytes = sink.size;
}

static uint8_t *attr_at(size_t event)
{
    return bytes + FRONT + EVENTS * IDS_BYTES + event * (NEW + PERF_SECTION_BYTES);
}

/* Copy it, patch the copy, and open that as FILE. */
static void patch(bool unwound)
{
    struct findings findings = {0};
    struct output_file output;
    static char path[sizeof scratch_file + 4];
    snprintf(path, sizeof path, "%s.out", scratch_file);
    assert_int_equal(perf_file_view(&file, "in", bytes, file_bytes, &findings), 0);
    assert_int_equal(output_file_open(&output, path, &findings), 0);
    assert_int_equal(output_file_write(&output, bytes, file_bytes, &findings), 0);
    assert_int_equal(attributes_patch(&file, unwound, &output, &findings), 0);
    assert_int_equal(output_file_flush(&output, &findings), 0);
    assert_int_equal(output_file_commit(&output, &findings), 0);
    output_file_close(&output);
    perf_file_close(&file);
    assert_int_equal(perf_file_open(&file, path, &findings), 0);
    unlink(path);
}

static uint32_t own_size(size_t event)
{
    struct byte_cursor cursor =
        byte_cursor_over(file.data + file.events[event].attr.offset + 4, 4, false);
    return cursor_u32(&cursor);
}

static void assert_sizes(size_t size)
{
    assert_int_equal(file.event_count, EVENTS);
    for (size_t i = 0; i < EVENTS; i++) {
        const uint8_t *attr = file.data + file.events[i].attr.offset;
        assert_int_equal(file.events[i].attr.size, size);
        assert_int_equal(own_size(i), size);
        assert_int_equal(perf_get_u64(attr + 8), i);
        assert_int_equal(perf_get_u64(attr + OLD - 8), 0xabc0 + i);
        assert_int_equal(file.events[i].ids.size, IDS_BYTES);
        assert_int_equal(perf_get_u64(file.data + file.events[i].ids.offset), 1000 + i);
    }
    assert_int_equal(file.records.size, PERF_RECORD_HEADER_BYTES);
    perf_file_close(&file);
}

static void test_zeros_are_left_out(void **state)
{
    (void)state;
    build();
    patch(false);
    assert_sizes(OLD);
}

/* One event needs more: all have the same room, and what perf 6.12 takes is enough. */
static void test_what_is_not_zero_stays(void **state)
{
    (void)state;
    for (size_t event = 0; event < EVENTS; event++) {
        build();
        attr_at(event)[OLD + 7] = 1;
        patch(false);
        assert_sizes(OLD + 8);
        build();
        attr_at(event)[OLD + 8] = 1;
        patch(false);
        assert_sizes(NEW);
    }
}

/* An attribute that says less of itself than its room keeps what it says. */
static void test_its_own_size(void **state)
{
    (void)state;
    build();
    attr_at(1)[4] = 112;
    patch(false);
    assert_int_equal(own_size(0), OLD);
    assert_int_equal(own_size(1), 112);
    perf_file_close(&file);
}

static void test_stacks_become_chains(void **state)
{
    (void)state;
    const uint64_t copied =
        PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
    build();
    perf_put_u64(attr_at(2) + PERF_ATTR_SAMPLE_TYPE, copied);
    patch(true);
    assert_int_equal(file.events[2].format.sample_type,
                     PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN);
    assert_int_equal(file.events[1].format.sample_type, PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME);
    assert_int_equal(file.events[2].format.max_stack, UINT16_MAX); /* no limit of the kernel's */
    assert_int_equal(file.events[1].format.max_stack, 0);
    assert_sizes(OLD);
    build();
    perf_put_u64(attr_at(2) + PERF_ATTR_SAMPLE_TYPE, copied);
    patch(false);
    assert_int_equal(file.events[2].format.sample_type, copied);
    perf_file_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zeros_are_left_out),
        cmocka_unit_test(test_what_is_not_zero_stays),
        cmocka_unit_test(test_its_own_size),
        cmocka_unit_test(test_stacks_become_chains),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
