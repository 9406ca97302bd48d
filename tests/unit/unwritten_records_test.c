/* What a process has logged and not written: in a stream of glibc's, and in a buffer of any other
 * kind. */
#include "injector/log/jitdump/unwritten_records.h"
#include "jitdump/format/byte_sink.h"
#include "jitdump/format/jitdump_format.h"
#include "tests/unit/scratch.h"

enum {
    PID = 77,
    MOST_BYTES = 1 << 14,
    RECORD_BYTES = JR_CODE_LOAD_BYTES + 4 + 16,
    CODE = 0x500000,
    MEMORY = 0x100000,
    MEMORY_BYTES = 3 << 20,
    STREAM = 0xffff0, /* across the end of the first piece that is read */
    BUFFER = 0x280008,
    NUMBER = 19
};

/* A dump, of which the first FILE_BYTES are in the file; and the process's memory. */
static uint8_t log_bytes[MOST_BYTES];
static struct byte_sink log_sink;
static uint8_t memory_bytes[MEMORY_BYTES];
static struct memory_range range = {MEMORY, MEMORY + MEMORY_BYTES};
static struct process_memory memory;
static struct jit_dump dump;
static struct unwritten_records found;

static bool read_memory(void *context, uint64_t addr, void *bytes, size_t count)
{
    (void)context;
    if (addr >= CODE && addr + count <= CODE + MOST_BYTES) {
        for (size_t i = 0; i < count; i++) /* code is its address */
            ((uint8_t *)bytes)[i] = (uint8_t)((addr + i) / 16);
        return true;
    }
    if (addr < MEMORY || addr + count > MEMORY + MEMORY_BYTES)
        return false;
    memcpy(bytes, memory_bytes + (addr - MEMORY), count);
    return true;
}

static void put_load(uint64_t time, uint32_t pid, uint64_t addr)
{
    sink_u32(&log_sink, JIT_CODE_LOAD);
    sink_u32(&log_sink, RECORD_BYTES);
    sink_u64(&log_sink, time);
    sink_u32(&log_sink, pid);
    sink_u32(&log_sink, pid);
    sink_u64(&log_sink, addr);
    sink_u64(&log_sink, addr);
    sink_u64(&log_sink, 16);
    sink_u64(&log_sink, time);
    sink_bytes(&log_sink, "abc", 4);
    for (int i = 0; i < 16; i++)
        sink_u8(&log_sink, (uint8_t)((addr + (uint64_t)i) / 16));
}

/* A log of ten functions. */
static int begin(void **state)
{
    (void)state;
    memset(memory_bytes, 0, sizeof memory_bytes);
    log_sink = (struct byte_sink){.data = log_bytes, .capacity = sizeof log_bytes};
    sink_u32(&log_sink, JITDUMP_MAGIC);
    sink_u32(&log_sink, 1);
    sink_u32(&log_sink, JITHEADER_BYTES);
    sink_u32(&log_sink, 62);
    sink_u32(&log_sink, 0);
    sink_u32(&log_sink, PID);
    sink_u64(&log_sink, 1000);
    sink_u64(&log_sink, 0);
    for (uint64_t i = 1; i <= 10; i++)
        put_load(1000 + i, PID, CODE + 256 * i);
    memory = (struct process_memory){
        .ranges = &range, .range_count = 1, .file_number = -1, .read = read_memory};
    return 0;
}

static size_t end_of(size_t record)
{
    return JITHEADER_BYTES + record * RECORD_BYTES;
}

static void put_word(uint64_t addr, uint64_t word)
{
    memcpy(memory_bytes + (addr - MEMORY), &word, sizeof word);
}

/* COUNT bytes behind the file's FILE_BYTES are at ADDR. */
static void put_rest(uint64_t addr, size_t file_bytes, size_t count)
{
    memcpy(memory_bytes + (addr - MEMORY), log_bytes + file_bytes, count);
}

static void put_stream(uint64_t addr, int number, uint64_t base, uint64_t count)
{
    put_word(addr, 0xfbad2c84);
    put_word(addr + 32, base);
    put_word(addr + 40, base + count);
    put_word(addr + 48, base + 4096);
    put_word(addr + 56, base);
    put_word(addr + 64, base + 4096);
    put_word(addr + 112, (uint64_t)number);
}

typedef int find_records(struct unwritten_records *, const struct jit_dump *,
                         struct process_memory *);

/* The file has FILE_BYTES of the log: FIND finds so many bytes and records to follow it. */
static void expect_by(find_records *find, size_t file_bytes, size_t bytes, uint64_t records)
{
    char cause[256];
    assert_int_equal(jit_dump_view(&dump, "a.dump", log_bytes, file_bytes, cause, sizeof cause), 0);
    assert_int_equal(find(&found, &dump, &memory), 0);
    assert_int_equal(found.record_count, records);
    assert_int_equal(found.byte_count, bytes);
    if (records) {
        assert_memory_equal(found.bytes, log_bytes + file_bytes, bytes);
        assert_int_equal(unwritten_records_append(&dump, &found), 0);
        assert_int_equal(dump.size, file_bytes + bytes);
        assert_memory_equal(dump.data, log_bytes, dump.size);
        jit_dump_close(&dump);
    } else {
        assert_null(found.bytes);
    }
    free(found.bytes);
}

static void expect(size_t file_bytes, size_t bytes, uint64_t records)
{
    expect_by(unwritten_records_find, file_bytes, bytes, records);
}

/* ---- A stream ---- */

static void test_a_stream_completes_the_torn_record(void **state)
{
    (void)state;
    for (size_t cut = end_of(4); cut <= end_of(5); cut++) {
        put_rest(BUFFER, cut, end_of(8) - cut);
        put_stream(MEMORY + STREAM, NUMBER, BUFFER, end_of(8) - cut);
        expect(cut, end_of(8) - cut, cut == end_of(5) ? 3 : 4);
    }
}

/* What stands behind the stream's end is older, or half a record. */
static void test_a_stream_that_is_filled_up_to_the_midst_of_a_record(void **state)
{
    size_t cut = end_of(4) + 30;
    (void)state;
    put_rest(BUFFER, cut, end_of(8) - cut);
    for (size_t to = end_of(6); to < end_of(7); to++) {
        put_stream(MEMORY + STREAM, NUMBER, BUFFER, to - cut);
        expect(cut, end_of(6) - cut, 2);
    }
    for (size_t to = cut; to < end_of(5); to++) {
        put_stream(MEMORY + STREAM, NUMBER, BUFFER, to - cut);
        memory.range_count = 1;
        range.end = MEMORY + STREAM + 120; /* the buffer is not searched */
        expect(cut, 0, 0);
        range.end = MEMORY + MEMORY_BYTES;
    }
}

static void test_the_stream_of_another_file_is_none(void **state)
{
    size_t cut = end_of(4) + 30;
    (void)state;
    put_rest(BUFFER, cut, end_of(8) - cut);
    put_stream(MEMORY + STREAM, NUMBER, BUFFER, end_of(8) - cut);
    range.end = MEMORY + STREAM + 120;
    memory.file_number = NUMBER + 1;
    expect(cut, 0, 0);
    memory.file_number = NUMBER;
    expect(cut, end_of(8) - cut, 4);
    put_word(MEMORY + STREAM, 0xfbad2484); /* it is not being written */
    expect(cut, 0, 0);
    put_word(MEMORY + STREAM, 0xfbac2c84);
    expect(cut, 0, 0);
    range.end = MEMORY + MEMORY_BYTES;
}

static void test_records_that_are_not_the_next_ones_are_none(void **state)
{
    (void)state;
    put_stream(MEMORY + STREAM, NUMBER, BUFFER, 2 * RECORD_BYTES);
    put_rest(BUFFER, end_of(2), 2 * RECORD_BYTES); /* older ones */
    expect(end_of(8), 0, 0);
    log_sink.size = 0;
    put_load(2000, PID + 1, CODE + 4096); /* another process's */
    put_load(2001, PID + 1, CODE + 4096);
    memcpy(memory_bytes + (BUFFER - MEMORY), log_bytes, 2 * RECORD_BYTES);
    begin(state);
    memcpy(memory_bytes + (BUFFER - MEMORY), log_bytes, 2 * RECORD_BYTES);
    put_stream(MEMORY + STREAM, NUMBER, BUFFER, 2 * RECORD_BYTES);
    expect(end_of(8), 0, 0);
    put_word(BUFFER, 0x1234567800000000); /* no record */
    expect(end_of(8), 0, 0);
}

static void test_another_processs_records_are_none(void **state)
{
    (void)state;
    log_sink.size = end_of(8);
    put_load(1009, PID + 1, CODE + 4096);
    put_load(1010, PID, CODE + 4096);
    put_rest(BUFFER, end_of(8), 2 * RECORD_BYTES);
    put_stream(MEMORY + STREAM, NUMBER, BUFFER, 2 * RECORD_BYTES);
    expect(end_of(8), 0, 0);
}

static void test_a_dump_that_was_closed_has_no_more(void **state)
{
    (void)state;
    put_rest(BUFFER, end_of(8), 2 * RECORD_BYTES);
    put_stream(MEMORY + STREAM, NUMBER, BUFFER, 2 * RECORD_BYTES);
    expect(end_of(8), 2 * RECORD_BYTES, 2);
    log_sink.size = end_of(8);
    sink_u32(&log_sink, JIT_CODE_CLOSE);
    sink_u32(&log_sink, JR_CODE_CLOSE_BYTES);
    sink_u64(&log_sink, 1008);
    expect(log_sink.size, 0, 0);
}

static bool count_reads(void *context, uint64_t addr, void *bytes, size_t count)
{
    ++*(int *)context;
    return read_memory(context, addr, bytes, count);
}

/* The memory of a JVM has many GiB. */
static void test_the_memory_of_a_process_with_libjitdump_is_not_searched(void **state)
{
    int reads = 0;
    (void)state;
    memory.read = count_reads;
    memory.context = &reads;
    expect(end_of(8), 0, 0);
    assert_int_not_equal(reads, 0);
    reads = 0;
    log_sink.size = end_of(8);
    sink_u32(&log_sink, JIT_FILLER);
    sink_u32(&log_sink, 64);
    sink_u64(&log_sink, 0);
    for (int i = 0; i < 48; i++)
        sink_u8(&log_sink, 0);
    put_rest(BUFFER, log_sink.size, 2 * RECORD_BYTES);
    put_stream(MEMORY + STREAM, NUMBER, BUFFER, 2 * RECORD_BYTES);
    expect(log_sink.size, 0, 0);
    assert_int_equal(reads, 0);
}

/* The file has grown while the memory was searched. */
static void test_a_stream_that_was_found_is_read_again(void **state)
{
    size_t cut = end_of(4) + 30;
    int reads = 0;
    (void)state;
    put_stream(MEMORY + STREAM, NUMBER, BUFFER, 0);
    put_stream(MEMORY + STREAM + 256, NUMBER + 1, BUFFER, end_of(8) - cut);
    memory.file_number = NUMBER;
    expect_by(unwritten_records_find_again, cut, 0, 0);
    expect(cut, 0, 0);
    put_rest(BUFFER, cut, end_of(8) - cut);
    put_stream(MEMORY + STREAM, NUMBER, BUFFER, end_of(8) - cut);
    memory.read = count_reads;
    memory.context = &reads;
    expect_by(unwritten_records_find_again, cut, end_of(8) - cut, 4);
    assert_int_equal(reads, 2);
    put_word(MEMORY + STREAM, 0); /* it is freed */
    expect_by(unwritten_records_find_again, cut, 0, 0);
}

/* ---- Any buffer ---- */

static void test_a_buffer_that_no_stream_tells_of(void **state)
{
    (void)state;
    for (size_t cut = end_of(4) + 8; cut <= end_of(5); cut++) {
        put_rest(BUFFER, cut, end_of(8) - cut);
        put_rest(BUFFER + (end_of(8) - cut), end_of(1), 3 * RECORD_BYTES); /* its last filling */
        expect(cut, end_of(8) - cut, cut == end_of(5) ? 3 : 4);
    }
    expect(end_of(4) + 7, 0, 0); /* not even the torn one's size is known */
}

/* The last record counts if its code is in memory. */
static void test_a_buffer_of_which_the_end_is_half_written(void **state)
{
    size_t cut = end_of(4) + 30;
    (void)state;
    put_rest(BUFFER, cut, end_of(8) - cut);
    memset(memory_bytes + (BUFFER - MEMORY) + (end_of(8) - cut) - 16, 0xa5, 16);
    expect(cut, end_of(7) - cut, 3);
    memset(memory_bytes + (BUFFER - MEMORY) + (end_of(7) - cut) - 9, 0xa5, 9);
    expect(cut, end_of(6) - cut, 2);
}

/* Of two buffers that differ none is taken. */
static void test_two_buffers_that_fit(void **state)
{
    (void)state;
    put_rest(BUFFER, end_of(8), 2 * RECORD_BYTES);
    put_rest(BUFFER + 65536, end_of(8), 2 * RECORD_BYTES);
    expect(end_of(8), 2 * RECORD_BYTES, 2); /* they are equal */
    memory_bytes[BUFFER + 65536 - MEMORY + JR_CODE_LOAD_BYTES] = 'x';
    expect(end_of(8), 0, 0);
}

#define MEMORY_TEST(test) cmocka_unit_test_setup(test, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MEMORY_TEST(test_a_stream_completes_the_torn_record),
        MEMORY_TEST(test_a_stream_that_is_filled_up_to_the_midst_of_a_record),
        MEMORY_TEST(test_the_stream_of_another_file_is_none),
        MEMORY_TEST(test_records_that_are_not_the_next_ones_are_none),
        MEMORY_TEST(test_another_processs_records_are_none),
        MEMORY_TEST(test_a_dump_that_was_closed_has_no_more),
        MEMORY_TEST(test_the_memory_of_a_process_with_libjitdump_is_not_searched),
        MEMORY_TEST(test_a_stream_that_was_found_is_read_again),
        MEMORY_TEST(test_a_buffer_that_no_stream_tells_of),
        MEMORY_TEST(test_a_buffer_of_which_the_end_is_half_written),
        MEMORY_TEST(test_two_buffers_that_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
