/* The fields of a SAMPLE: where each stands with any others in front of it, in records that end at
 * any byte, and with counts that no record has room for. */
#include "injector/recording/perf_data/perf_sample.h"

#include "tests/unit/profile_builder.h"

enum {
    FIELDS = 24,
    RECORD_BYTES = 1024,
    CHAIN_ENTRIES = 3,
    RAW_BYTES = 12,
    BRANCHES = 2,
    STACK_BYTES = 32,
    STACK_USED = 24,
    AUX_BYTES = 16,
    USER_MASK = 0x107,
    INTERRUPT_MASK = 0x18,
    ALL_BITS = (1 << FIELDS) - 1,
};

/* What the kernel documents: the order of the fields by their bits, and how long those are that
 * make_record makes. */
static const struct {
    unsigned bit;
    size_t bytes;
} documented[FIELDS] = {
    {16, 8},
    {0, 8},
    {1, 8},
    {2, 8},
    {3, 8},
    {6, 8},
    {9, 8},
    {7, 8},
    {8, 8},
    {4, 40}, /* value, enabled, running, id, lost */
    {5, 8 + 8 * CHAIN_ENTRIES},
    {10, 4 + RAW_BYTES},
    {11, 16 + 24 * BRANCHES + 8 * BRANCHES}, /* nr, hw_idx, entries, counters */
    {12, 8 + 8 * 4},
    {13, 8 + STACK_BYTES + 8},
    {14, 8},
    {15, 8},
    {17, 8},
    {18, 8 + 8 * 2},
    {19, 8},
    {21, 8},
    {22, 8},
    {23, 8},
    {20, 8 + AUX_BYTES},
};

static uint8_t bytes[RECORD_BYTES];
static struct perf_record record;
static struct sample_format format;

static uint64_t value_of(unsigned bit)
{
    return UINT64_C(0x0102030400000000) + 0x1111 * (bit + 1);
}

static void put_words(struct byte_sink *sink, unsigned bit, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sink_u64(sink, value_of(bit) + i);
}

static void put_bytes(struct byte_sink *sink, unsigned bit, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sink_u8(sink, (uint8_t)(bit + i));
}

static void put_documented(struct byte_sink *sink, unsigned bit)
{
    switch (1 << bit) {
    case PERF_SAMPLE_READ:
        put_words(sink, bit, 5);
        return;
    case PERF_SAMPLE_CALLCHAIN:
        sink_u64(sink, CHAIN_ENTRIES);
        put_words(sink, bit, CHAIN_ENTRIES);
        return;
    case PERF_SAMPLE_RAW:
        sink_u32(sink, RAW_BYTES);
        put_bytes(sink, bit, RAW_BYTES);
        return;
    case PERF_SAMPLE_BRANCH_STACK:
        sink_u64(sink, BRANCHES);
        put_words(sink, bit, 1 + 3 * BRANCHES + BRANCHES);
        return;
    case PERF_SAMPLE_REGS_USER:
    case PERF_SAMPLE_REGS_INTR:
        sink_u64(sink, SAMPLE_ABI_64);
        put_words(sink, bit, bit == 12 ? 4 : 2);
        return;
    case PERF_SAMPLE_STACK_USER:
        sink_u64(sink, STACK_BYTES);
        put_bytes(sink, bit, STACK_BYTES);
        sink_u64(sink, STACK_USED);
        return;
    case PERF_SAMPLE_AUX:
        sink_u64(sink, AUX_BYTES);
        put_bytes(sink, bit, AUX_BYTES);
        return;
    default:
        put_words(sink, bit, 1);
    }
}

static struct sample_format make_format(uint64_t sample_type)
{
    struct sample_format made = {.sample_type = sample_type,
                                 .read_format = PERF_READ_ENABLED | PERF_READ_RUNNING |
                                                PERF_READ_ID | PERF_READ_LOST,
                                 .branch_sample_type = 1 << 17 | 1 << 19,
                                 .user_registers = USER_MASK,
                                 .interrupt_registers = INTERRUPT_MASK,
                                 .sample_id_all = true};
    sample_format_lay_out(&made);
    return made;
}

static void begin_record(struct byte_sink *sink)
{
    *sink = byte_sink_over(bytes, sizeof bytes);
    sink_u32(sink, PERF_RECORD_SAMPLE);
    sink_u16(sink, PERF_MISC_USER);
    sink_u16(sink, 0);
}

static void end_record(const struct byte_sink *sink)
{
    assert_false(sink->overflow);
    record = (struct perf_record){.bytes = bytes,
                                  .type = PERF_RECORD_SAMPLE,
                                  .misc = PERF_MISC_USER,
                                  .size = (uint16_t)sink->size};
}

static void make_record(uint64_t sample_type)
{
    struct byte_sink sink;
    format = make_format(sample_type);
    begin_record(&sink);
    for (size_t i = 0; i < FIELDS; i++)
        if (sample_type >> documented[i].bit & 1) {
            size_t start = sink.size;
            put_documented(&sink, documented[i].bit);
            assert_int_equal(sink.size - start, documented[i].bytes);
        }
    end_record(&sink);
}

static bool read_all(struct perf_sample *sample)
{
    return perf_sample_read(sample, &format, &record, SAMPLE_FIELDS);
}

/* ---- What must have been read ---- */

static void expect_bytes(const struct sample_bytes *found, unsigned bit, size_t size)
{
    assert_int_equal(found->size, size);
    for (size_t i = 0; i < size; i++)
        assert_int_equal(found->bytes[i], (uint8_t)(bit + i));
}

static void expect_registers(const struct sample_registers *found, unsigned bit, uint64_t mask,
                             size_t count)
{
    assert_int_equal(found->abi, SAMPLE_ABI_64);
    assert_int_equal(found->mask, mask);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(perf_get_u64(found->values + 8 * i), value_of(bit) + i);
}

static void expect_counts(const struct sample_counts *found, unsigned bit)
{
    assert_false(found->grouped);
    assert_int_equal(found->count, 1);
    assert_int_equal(perf_get_u64(found->values), value_of(bit));
    assert_int_equal(found->enabled_ns, value_of(bit) + 1);
    assert_int_equal(found->running_ns, value_of(bit) + 2);
    assert_int_equal(perf_get_u64(found->ids), value_of(bit) + 3);
    assert_int_equal(perf_get_u64(found->lost), value_of(bit) + 4);
}

static void expect_branches(const struct sample_branches *found, unsigned bit)
{
    assert_int_equal(found->count, BRANCHES);
    assert_int_equal(found->hw_idx, value_of(bit));
    assert_int_equal(perf_get_u64(found->entries), value_of(bit) + 1);
    assert_int_equal(perf_get_u64(found->counters), value_of(bit) + 1 + 3 * BRANCHES);
}

static void expect_stack(const struct sample_stack *found, unsigned bit)
{
    const struct sample_bytes used = {found->bytes, found->size};
    expect_bytes(&used, bit, STACK_USED);
    assert_false(found->cut);
}

static void expect_words(const struct perf_sample *sample, uint64_t type)
{
    const uint64_t found[FIELDS] = {
        [16] = sample->identifier,
        [0] = sample->ip,
        [1] = sample->pid | (uint64_t)sample->tid << 32,
        [2] = sample->time_ns,
        [3] = sample->addr,
        [6] = sample->id,
        [9] = sample->stream_id,
        [7] = sample->cpu | (uint64_t)sample->cpu_reserved << 32,
        [8] = sample->period,
        [14] = sample->weight,
        [15] = sample->data_src,
        [17] = sample->transaction,
        [19] = sample->phys_addr,
        [21] = sample->cgroup,
        [22] = sample->data_page_size,
        [23] = sample->code_page_size,
    };
    for (unsigned bit = 0; bit < FIELDS; bit++)
        if (found[bit] || !(((uint64_t)1 << bit) &
                            (PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW |
                             PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_USER |
                             PERF_SAMPLE_STACK_USER | PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_AUX)))
            assert_int_equal(found[bit], type >> bit & 1 ? value_of(bit) : 0);
}

static void expect_parts(const struct perf_sample *sample, uint64_t type)
{
    if (type & PERF_SAMPLE_READ)
        expect_counts(&sample->counts, 4);
    if (type & PERF_SAMPLE_RAW)
        expect_bytes(&sample->raw, 10, RAW_BYTES);
    if (type & PERF_SAMPLE_BRANCH_STACK)
        expect_branches(&sample->branches, 11);
    if (type & PERF_SAMPLE_REGS_USER)
        expect_registers(&sample->user_registers, 12, USER_MASK, 4);
    if (type & PERF_SAMPLE_STACK_USER)
        expect_stack(&sample->user_stack, 13);
    if (type & PERF_SAMPLE_REGS_INTR)
        expect_registers(&sample->interrupt_registers, 18, INTERRUPT_MASK, 2);
    if (type & PERF_SAMPLE_AUX)
        expect_bytes(&sample->aux, 20, AUX_BYTES);
    assert_int_equal(sample->chain.count, type & PERF_SAMPLE_CALLCHAIN ? CHAIN_ENTRIES : 0);
    for (size_t i = 0; i < sample->chain.count; i++)
        assert_int_equal(perf_get_u64(sample->chain.entries + 8 * i), value_of(5) + i);
}

/* All of TYPE, and where it stands; field number I of the documented ones is number I here. */
static void expect_sample(uint64_t type)
{
    struct perf_sample sample;
    size_t place = PERF_RECORD_HEADER_BYTES;
    make_record(type);
    assert_true(read_all(&sample));
    assert_int_equal(sample.has, type);
    assert_int_equal(perf_sample_mode(&sample), PERF_MISC_USER);
    for (size_t i = 0; i < FIELDS; i++) {
        assert_int_equal(perf_sample_place(&sample, (enum sample_field)i), place);
        place += type >> documented[i].bit & 1 ? documented[i].bytes : 0;
    }
    assert_int_equal(place, record.size);
    assert_int_equal(perf_sample_place(&sample, SAMPLE_FIELDS), place);
    expect_words(&sample, type);
    expect_parts(&sample, type);
}

/* ---- Tests ---- */

static void test_each_bit_alone_all_and_all_but_one(void **state)
{
    (void)state;
    assert_int_equal(SAMPLE_FIELDS, FIELDS);
    expect_sample(0);
    expect_sample(ALL_BITS);
    for (unsigned bit = 0; bit < FIELDS; bit++) {
        expect_sample((uint64_t)1 << bit);
        expect_sample(ALL_BITS & ~((uint64_t)1 << bit));
    }
}

static void test_each_two_bits(void **state)
{
    (void)state;
    for (unsigned first = 0; first < FIELDS; first++)
        for (unsigned second = 0; second < first; second++)
            expect_sample((uint64_t)1 << first | (uint64_t)1 << second);
}

static void test_fields_of_newer_kernels_stand_behind_those_that_are_known(void **state)
{
    struct perf_sample sample;
    (void)state;
    make_record(ALL_BITS);
    format.sample_type |= UINT64_C(1) << 25 | UINT64_C(1) << 63;
    sample_format_lay_out(&format);
    assert_true(read_all(&sample));
    assert_int_equal(sample.has, ALL_BITS);
    expect_words(&sample, ALL_BITS);
}

static void test_nothing_is_read_behind_the_last_field_that_is_wanted(void **state)
{
    struct perf_sample sample;
    (void)state;
    make_record(ALL_BITS);
    record.size = PERF_RECORD_HEADER_BYTES + 4 * 8;
    assert_true(perf_sample_read(&sample, &format, &record, SAMPLE_TIME));
    assert_int_equal(sample.has,
                     PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME);
    assert_int_equal(sample.time_ns, value_of(2));
    assert_false(perf_sample_read(&sample, &format, &record, SAMPLE_ADDR));
    format = make_format(PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD);
    assert_true(perf_sample_read(&sample, &format, &record, SAMPLE_IP));
    assert_int_equal(sample.has, 0);
}

/* What is read of a record of SIZE bytes, which stands at the end of its memory. */
static void read_cut(size_t size)
{
    struct perf_sample sample;
    uint8_t *memory = malloc(size);
    size_t end = PERF_RECORD_HEADER_BYTES;
    uint64_t whole = 0;
    assert_non_null(memory);
    memcpy(memory, bytes, size);
    for (size_t i = 0; i < FIELDS && (end += documented[i].bytes) <= size; i++)
        whole |= (uint64_t)1 << documented[i].bit;
    record.bytes = memory;
    record.size = (uint16_t)size;
    assert_int_equal(read_all(&sample), whole == ALL_BITS);
    assert_int_equal(sample.has, whole);
    assert_int_equal(sample.ip, whole & PERF_SAMPLE_IP ? value_of(0) : 0);
    assert_int_equal(sample.chain.count, whole & PERF_SAMPLE_CALLCHAIN ? CHAIN_ENTRIES : 0);
    assert_int_equal(sample.branches.count, whole & PERF_SAMPLE_BRANCH_STACK ? BRANCHES : 0);
    free(memory);
}

static void test_a_record_that_ends_at_any_byte(void **state)
{
    (void)state;
    make_record(ALL_BITS);
    for (size_t size = record.size; size >= PERF_RECORD_HEADER_BYTES; size--)
        read_cut(size);
}

/* Whether a sample of TYPE whose first word is COUNT, and in which LEFT bytes follow, is read. */
static bool reads_count(uint64_t type, uint64_t count, size_t left)
{
    struct perf_sample sample;
    struct byte_sink sink;
    format = make_format(type);
    format.branch_sample_type = 0;
    format.read_format = PERF_READ_GROUP;
    begin_record(&sink);
    sink_u64(&sink, count);
    sink_zeros(&sink, left);
    end_record(&sink);
    return read_all(&sample);
}

static void test_counts_that_no_record_has_room_for(void **state)
{
    static const struct {
        uint64_t type;
        size_t bytes;
    } parts[] = {{PERF_SAMPLE_READ, 8},
                 {PERF_SAMPLE_CALLCHAIN, 8},
                 {PERF_SAMPLE_BRANCH_STACK, 24},
                 {PERF_SAMPLE_AUX, 1},
                 {PERF_SAMPLE_STACK_USER, 1}};
    enum { LEFT = 240 };
    (void)state;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const size_t bytes_behind = parts[i].type == PERF_SAMPLE_STACK_USER ? 8 : 0;
        const uint64_t most = (LEFT - bytes_behind) / parts[i].bytes;
        assert_true(reads_count(parts[i].type, most, LEFT));
        assert_false(reads_count(parts[i].type, most + 1, LEFT));
        for (unsigned shift = 16; shift < 64; shift++)
            assert_false(reads_count(parts[i].type, UINT64_C(1) << shift, LEFT));
        assert_false(
            reads_count(parts[i].type, UINT64_MAX / parts[i].bytes + (parts[i].bytes > 1), LEFT));
        assert_false(reads_count(parts[i].type, UINT64_MAX, LEFT));
    }
    assert_false(reads_count(PERF_SAMPLE_RAW, UINT32_MAX, LEFT));
}

static void test_a_group_has_its_times_in_front(void **state)
{
    struct perf_sample sample;
    struct byte_sink sink;
    (void)state;
    format = make_format(PERF_SAMPLE_READ);
    format.read_format |= PERF_READ_GROUP;
    begin_record(&sink);
    sink_u64(&sink, 2);
    put_words(&sink, 4, 2 + 2 * 3);
    end_record(&sink);
    assert_true(read_all(&sample));
    const struct sample_counts *counts = &sample.counts;
    assert_true(counts->grouped);
    assert_int_equal(counts->count, 2);
    assert_int_equal(counts->enabled_ns, value_of(4));
    assert_int_equal(counts->running_ns, value_of(4) + 1);
    for (size_t i = 0; i < 2; i++) {
        size_t at = i * counts->value_bytes;
        assert_int_equal(perf_get_u64(counts->values + at), value_of(4) + 2 + 3 * i);
        assert_int_equal(perf_get_u64(counts->ids + at), value_of(4) + 3 + 3 * i);
        assert_int_equal(perf_get_u64(counts->lost + at), value_of(4) + 4 + 3 * i);
    }
}

/* The bytes of a READ with read_format. */
static size_t read_bytes(uint64_t read_format, struct perf_sample *sample)
{
    struct byte_sink sink;
    format = make_format(PERF_SAMPLE_READ | PERF_SAMPLE_DATA_SRC);
    format.read_format = read_format;
    begin_record(&sink);
    put_words(&sink, 4, 6);
    end_record(&sink);
    assert_true(read_all(sample));
    return perf_sample_place(sample, SAMPLE_DATA_SRC) - PERF_RECORD_HEADER_BYTES;
}

static void test_each_bit_of_read_format_is_a_word(void **state)
{
    struct perf_sample sample;
    (void)state;
    for (uint64_t bits = 0; bits < 32; bits++) {
        if (bits & PERF_READ_GROUP)
            continue;
        assert_int_equal(read_bytes(bits, &sample), 8 + 8 * __builtin_popcountll(bits));
        assert_true(!sample.counts.ids == !(bits & PERF_READ_ID));
        assert_true(!sample.counts.lost == !(bits & PERF_READ_LOST));
    }
}

static void test_branches_without_an_index_and_counters(void **state)
{
    struct perf_sample sample;
    (void)state;
    make_record(PERF_SAMPLE_BRANCH_STACK);
    format.branch_sample_type = 1 << 3;
    assert_true(read_all(&sample));
    assert_int_equal(perf_get_u64(sample.branches.entries), value_of(11));
    assert_int_equal(sample.branches.hw_idx, 0);
    assert_null(sample.branches.counters);
    assert_int_equal(perf_sample_place(&sample, SAMPLE_FIELDS),
                     PERF_RECORD_HEADER_BYTES + 8 + 24 * BRANCHES);
}

static void test_either_bit_of_the_weight_is_one_field(void **state)
{
    struct perf_sample sample;
    (void)state;
    make_record(PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC);
    format.sample_type = PERF_SAMPLE_WEIGHT_STRUCT | PERF_SAMPLE_DATA_SRC;
    sample_format_lay_out(&format);
    assert_true(read_all(&sample));
    assert_int_equal(sample.weight, value_of(14));
    assert_int_equal(sample.data_src, value_of(15));
}

/* A kernel thread has no registers of the user's, and no stack. */
static void test_no_registers_and_no_stack(void **state)
{
    struct perf_sample sample;
    struct byte_sink sink;
    (void)state;
    format = make_format(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER | PERF_SAMPLE_WEIGHT);
    begin_record(&sink);
    sink_u64(&sink, SAMPLE_ABI_NONE);
    sink_u64(&sink, 0);
    put_words(&sink, 14, 1);
    end_record(&sink);
    assert_true(read_all(&sample));
    assert_null(sample.user_registers.values);
    assert_null(sample.user_stack.bytes);
    assert_int_equal(sample.weight, value_of(14));
}

static struct sample_stack stack_of(uint64_t used)
{
    struct perf_sample sample;
    struct byte_sink sink;
    format = make_format(PERF_SAMPLE_STACK_USER);
    begin_record(&sink);
    sink_u64(&sink, STACK_BYTES);
    sink_zeros(&sink, STACK_BYTES);
    sink_u64(&sink, used);
    end_record(&sink);
    assert_true(read_all(&sample));
    return sample.user_stack;
}

static void test_a_stack_as_large_as_its_copy_and_larger(void **state)
{
    (void)state;
    assert_int_equal(stack_of(STACK_BYTES).size, STACK_BYTES);
    assert_true(stack_of(STACK_BYTES).cut);
    assert_int_equal(stack_of(STACK_BYTES + 1).size, 0);
    assert_false(stack_of(STACK_BYTES + 1).cut);
    assert_int_equal(stack_of(UINT64_MAX).size, 0);
    assert_int_equal(stack_of(0).size, 0);
}

/* ---- sample_id ---- */

/* The documented sample_id of TYPE. */
static void put_id(struct byte_sink *sink, uint64_t type)
{
    static const unsigned order[] = {1, 2, 6, 9, 7, 16};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        if (type >> order[i] & 1)
            put_words(sink, order[i], 1);
}

static void expect_id(uint64_t type)
{
    struct perf_event event = {.format = make_format(type)};
    const struct perf_file file = {.events = &event, .event_count = 1, .one_layout = true};
    struct perf_sample id;
    struct byte_sink sink, again;
    uint8_t written[64];
    uint64_t time_ns = 0;
    begin_record(&sink);
    sink_zeros(&sink, 16);
    size_t start = sink.size;
    put_id(&sink, type);
    end_record(&sink);
    record.type = BUILT_COMM;
    assert_int_equal(event.format.id_bytes, sink.size - start);
    assert_int_equal(perf_sample_id_read(&id, &file, &record), sink.size > start);
    if (sink.size == start)
        return;
    assert_int_equal(id.has, type & SAMPLE_ID_FIELDS);
    expect_words(&id, type & SAMPLE_ID_FIELDS);
    assert_int_equal(perf_record_time(&file, &record, &time_ns), (type & PERF_SAMPLE_TIME) != 0);
    assert_int_equal(time_ns, type & PERF_SAMPLE_TIME ? value_of(2) : 0);
    again = byte_sink_over(written, sizeof written);
    perf_sample_put_id(&id, &event.format, &again);
    assert_int_equal(again.size, sink.size - start);
    assert_memory_equal(written, bytes + start, again.size);
    record.size = (uint16_t)(PERF_RECORD_HEADER_BYTES + again.size - 1);
    assert_false(perf_sample_id_read(&id, &file, &record));
}

static void test_a_sample_id_of_any_fields(void **state)
{
    (void)state;
    for (uint64_t type = 0; type < 1 << 10; type++) {
        expect_id(type);
        expect_id(type | PERF_SAMPLE_IDENTIFIER);
    }
}

static void test_what_is_put_in_front_of_a_sample_is_read(void **state)
{
    struct perf_sample sample;
    uint8_t written[RECORD_BYTES];
    struct byte_sink sink = byte_sink_over(written, sizeof written);
    (void)state;
    make_record(ALL_BITS);
    assert_true(read_all(&sample));
    perf_sample_put_front(&sample, &format, &sink);
    assert_int_equal(sink.size, 8 * SAMPLE_FRONT_FIELDS);
    assert_memory_equal(written, bytes + PERF_RECORD_HEADER_BYTES, sink.size);
}

/* ---- Events ---- */

static struct profile_builder built;

/* The event of a sample of events of TYPES, in which each word is WORD. */
static uint32_t event_of(const uint64_t *types, size_t count, uint64_t word)
{
    struct perf_file file;
    struct perf_record sample;
    profile_begin(&built, types, count);
    size_t start = profile_plain(&built, PERF_RECORD_SAMPLE, 10 * 8);
    for (size_t at = 0; at < 10 * 8; at += 8)
        profile_set_u64(&built, start + PERF_RECORD_HEADER_BYTES + at, word);
    profile_end_records(&built);
    profile_features(&built, NULL, 0);
    open_built_profile(&built, &file);
    struct perf_walk walk = perf_walk_begin(&file);
    assert_true(perf_walk_next(&walk, &sample, NULL));
    uint32_t event = perf_sample_event(&file, &sample);
    sample.size = PERF_RECORD_HEADER_BYTES + 7;
    assert_int_equal(perf_sample_event(&file, &sample), 0);
    perf_file_close(&file);
    return event;
}

static void test_the_event_of_a_sample(void **state)
{
    const uint64_t with_identifier[] = {SAMPLE_TYPE | PERF_SAMPLE_IDENTIFIER,
                                        SAMPLE_TYPE | PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ADDR,
                                        PERF_SAMPLE_TIME | PERF_SAMPLE_IDENTIFIER};
    const uint64_t with_id[] = {SAMPLE_TYPE | PERF_SAMPLE_ID, SAMPLE_TYPE | PERF_SAMPLE_ID};
    const uint64_t without[] = {SAMPLE_TYPE, SAMPLE_TYPE};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(event_of(with_identifier, 3, 100 * (i + 1)), i);
        assert_int_equal(event_of(with_identifier, 3, 100 * (i + 1) + 1), i);
    }
    assert_int_equal(event_of(with_identifier, 3, 0), 0);
    assert_int_equal(event_of(with_identifier, 1, 200), 0);
    assert_int_equal(event_of(with_id, 2, 201), 1);
    assert_int_equal(event_of(with_id, 2, 99), 0);
    assert_int_equal(event_of(without, 2, 201), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_bit_alone_all_and_all_but_one),
        cmocka_unit_test(test_each_two_bits),
        cmocka_unit_test(test_fields_of_newer_kernels_stand_behind_those_that_are_known),
        cmocka_unit_test(test_nothing_is_read_behind_the_last_field_that_is_wanted),
        cmocka_unit_test(test_a_record_that_ends_at_any_byte),
        cmocka_unit_test(test_counts_that_no_record_has_room_for),
        cmocka_unit_test(test_a_group_has_its_times_in_front),
        cmocka_unit_test(test_each_bit_of_read_format_is_a_word),
        cmocka_unit_test(test_branches_without_an_index_and_counters),
        cmocka_unit_test(test_either_bit_of_the_weight_is_one_field),
        cmocka_unit_test(test_no_registers_and_no_stack),
        cmocka_unit_test(test_a_stack_as_large_as_its_copy_and_larger),
        cmocka_unit_test(test_a_sample_id_of_any_fields),
        cmocka_unit_test(test_what_is_put_in_front_of_a_sample_is_read),
        cmocka_unit_test(test_the_event_of_a_sample),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
