/* A dump of twenty records that is cut at each of its bytes, and one in which each of its bits is
 * flipped: every function in front of the damage is there, and the damage is told.  So is every
 * function behind it, unless an id or a size is damaged.
 *
 * Some damage can't be noticed, as the format has no second copy: of a time, an address, an id of a
 * process, a name and code.  `checked` says for each byte which it is. */
#include "injector/log/code/log_reader.h"

#include "jitdump/cfi.h"
#include "jitdump/jitdump.h"
#include "tests/unit/damage.h"
#include "tests/unit/dump_builder.h"

enum { ADDR = 0x40000000, TIME = 1000000, MAX_FUNCTIONS = 20, STEP = 0x100 };

/* A function as it must come out. */
struct expected {
    uint64_t addr, size, code_index;
    const char *name; /* NULL: the target of a move */
    const char *code;
    size_t end; /* of its record */
};

static struct dump_builder built;
static struct expected functions[MAX_FUNCTIONS];
static size_t function_count;
static uint32_t ids[32];

/* ---- Twenty records ---- */

static void expect(uint64_t addr, uint64_t size, uint64_t code_index, const char *name,
                   const char *code)
{
    functions[function_count++] =
        (struct expected){addr, size, code_index, name, code, built.sink.size};
}

static uint64_t begin(uint32_t id)
{
    starts[record_count] = built.sink.size;
    ids[record_count] = id;
    return TIME + record_count++;
}

static void load(uint64_t number, const char *name, const char *code)
{
    uint64_t addr = ADDR + number * STEP;
    dump_load(&built, begin(JIT_CODE_LOAD), addr, name, code, number);
    expect(addr, strlen(code), number, name, code);
}

static void move(uint64_t number, uint64_t size)
{
    uint64_t to = ADDR + 0x8000 + number * STEP;
    dump_move(&built, begin(JIT_CODE_MOVE), ADDR + number * STEP, to, size, number);
    expect(to, size, number, NULL, NULL);
}

static void unload(uint64_t number, uint64_t size)
{
    dump_unload(&built, begin(JIT_CODE_UNLOAD), ADDR + number * STEP, size, number);
}

static void lines(uint64_t number)
{
    size_t start = dump_begin_record(&built, JIT_CODE_DEBUG_INFO, begin(JIT_CODE_DEBUG_INFO));
    sink_u64(&built.sink, ADDR + number * STEP);
    sink_u64(&built.sink, 2);
    for (uint32_t i = 0; i < 2; i++) {
        sink_u64(&built.sink, ADDR + number * STEP + i * 4);
        sink_u32(&built.sink, 10 + i);
        sink_u32(&built.sink, 0);
        sink_cstr(&built.sink, "file.js");
    }
    dump_end_record(&built, start);
}

static void inlines(uint64_t number)
{
    size_t start = dump_begin_record(&built, JIT_CODE_INLINE_INFO, begin(JIT_CODE_INLINE_INFO));
    sink_u64(&built.sink, ADDR + number * STEP);
    sink_u32(&built.sink, 1); /* inlines */
    sink_u32(&built.sink, 1); /* spans */
    sink_u32(&built.sink, 7);
    sink_u32(&built.sink, 0);
    const uint32_t call[] = {JIT_INLINE_NONE, 0, 3, 1, 2, JIT_INLINE_NONE, 0, 4, 0};
    for (size_t i = 0; i < sizeof call / sizeof call[0]; i++)
        sink_u32(&built.sink, call[i]);
    sink_bytes(&built.sink, "a\0call", 7);
    dump_end_record(&built, start);
}

/* The tables of the function that is loaded next.  They are made for this machine: in the other
 * byte order, a gap. */
static void tables(uint64_t code_size)
{
    if (built.sink.big_endian) {
        dump_plain(&built, JIT_FILLER, begin(JIT_FILLER), 0);
        return;
    }
    static const struct jitdump_frame frame = {.kind = JITDUMP_FRAME_POINTER};
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    struct jitdump_unwind unwind;
    jitdump_cfi_frame(cfi, &frame);
    assert_int_equal(jitdump_cfi_finish(cfi, code_size, &unwind), 0);
    size_t start =
        dump_begin_record(&built, JIT_CODE_UNWINDING_INFO, begin(JIT_CODE_UNWINDING_INFO));
    sink_u64(&built.sink, unwind.unwinding_size);
    sink_u64(&built.sink, unwind.eh_frame_hdr_size);
    sink_u64(&built.sink, unwind.mapped_size);
    sink_bytes(&built.sink, unwind.data, (size_t)unwind.unwinding_size);
    dump_end_record(&built, start);
    jitdump_cfi_free(cfi);
}

static void build(bool big_endian)
{
    function_count = record_count = 0;
    dump_begin(&built, big_endian, JITHEADER_BYTES);
    load(0, "first", "code of the first one");
    load(1, "a", "c");
    load(2, "third function", "more code for this one");
    lines(3);
    load(3, "with lines", "some code with lines");
    tables(strlen("code with a frame of its own"));
    load(4, "with tables", "code with a frame of its own");
    inlines(5);
    load(5, "with inlines", "code that holds a call");
    dump_plain(&built, JIT_FILLER, begin(JIT_FILLER), 24);
    move(0, strlen("code of the first one"));
    unload(1, 1);
    load(6, "seventh", "the code of number seven");
    load(7, "eighth", "the code of number eight");
    move(2, strlen("more code for this one"));
    unload(3, strlen("some code with lines"));
    load(8, "ninth", "the code of number nine");
    load(9, "tenth", "the code of number ten");
    load(10, "last", "the code of the last one");
    dump_plain(&built, JIT_CODE_CLOSE, begin(JIT_CODE_CLOSE), 0);
    assert_int_equal(record_count, 20);
}

/* ---- Reading what is left ---- */

struct outcome {
    struct jit_dump dump;
    struct code_log log;
    struct findings findings;
    bool refused;
};

/* Whether something was said. */
static bool is_told(const struct outcome *outcome)
{
    bool told = outcome->refused || findings_lost(&outcome->findings) > 0;
    for (size_t i = 0; i < QUIRKS; i++)
        told |= outcome->findings.repaired[i] > 0;
    return told;
}

static void read_left(struct outcome *outcome, const uint8_t *bytes, size_t size)
{
    static const struct jit_clock same;
    char cause[256];
    *outcome = (struct outcome){.findings = {.quiet = true}};
    outcome->refused =
        jit_dump_view(&outcome->dump, "a.dump", bytes, size, cause, sizeof cause) != 0;
    if (!outcome->refused)
        assert_int_equal(
            code_log_read(&outcome->log, &outcome->dump, 0, &same, true, &outcome->findings), 0);
}

static void release(struct outcome *outcome)
{
    code_log_free(&outcome->log);
    findings_free(&outcome->findings);
    jit_dump_close(&outcome->dump);
}

static bool is_as_expected(const struct jit_function *function, const struct expected *expected)
{
    if (function->addr != expected->addr || function->size != expected->size ||
        function->code_index != expected->code_index || !function->name != !expected->name)
        return false;
    return !expected->name || (strcmp(function->name, expected->name) == 0 && function->code &&
                               memcmp(function->code, expected->code, expected->size) == 0);
}

/* How many of the first functions are there, one behind the other. */
static size_t kept_of(const struct code_log *log)
{
    size_t kept = 0;
    while (kept < function_count && kept < log->function_count &&
           is_as_expected(&log->functions[kept], &functions[kept]))
        kept++;
    return kept;
}

/* How many functions stand wholly in front of OFFSET. */
static size_t functions_before(size_t offset)
{
    size_t count = 0;
    while (count < function_count && functions[count].end <= offset)
        count++;
    return count;
}

/* ---- Cuts ---- */

/* Nothing tells of records that were never begun; and zeros, as which a LOAD begins, are room that
 * was never used. */
static bool can_be_told(size_t cut)
{
    bool begun = false;
    for (size_t at = starts[record_of(cut)]; at < cut; at++)
        begun |= built.bytes[at] != 0;
    return begun;
}

static void assert_sound(void)
{
    struct outcome outcome;
    read_left(&outcome, built.bytes, built.sink.size);
    assert_int_equal(kept_of(&outcome.log), function_count);
    assert_int_equal(outcome.log.function_count, function_count);
    assert_false(is_told(&outcome));
    release(&outcome);
}

/* Whether the LOAD that CUT stands in has lost nothing but code. */
static bool keeps_its_name(const struct outcome *outcome, size_t whole, size_t cut)
{
    const struct expected *next = &functions[whole];
    const struct jit_function *function = &outcome->log.functions[whole];
    if (outcome->refused || whole == function_count || !next->name ||
        cut < next->end - next->size || cut >= next->end)
        return false;
    return outcome->log.function_count == whole + 1 && function->addr == next->addr &&
           function->size == next->size && !function->code &&
           strcmp(function->name, next->name) == 0;
}

static void judge_cut(const uint8_t *left, size_t cut)
{
    struct outcome outcome;
    read_left(&outcome, left, cut);
    if (outcome.refused != (cut < JITHEADER_BYTES))
        fail_msg("cut at %zu: refused or not", cut);
    size_t whole = outcome.refused ? 0 : functions_before(cut);
    size_t named = whole + keeps_its_name(&outcome, whole, cut);
    if (kept_of(&outcome.log) != whole || outcome.log.function_count != named)
        fail_msg("cut at %zu: %zu functions are there, %zu were", cut, outcome.log.function_count,
                 whole);
    if (!is_told(&outcome) && (outcome.refused || can_be_told(cut)))
        fail_msg("cut at %zu: not told", cut);
    release(&outcome);
}

static void test_a_cut_costs_what_is_behind_it(void **state)
{
    (void)state;
    for (int big_endian = 0; big_endian < 2; big_endian++) {
        build(big_endian);
        assert_sound();
        cut_everywhere(built.bytes, built.sink.size, judge_cut);
    }
}

/* ---- Flips ---- */

/* Bytes of a record in which no bit can be wrong without being noticed.  mask: but for these bits
 * of the first one. upper: the upper bytes of a number, which stand there in a little-endian file.
 */
struct field {
    uint32_t id;
    size_t from, to;
    uint8_t mask;
    bool upper;
};

static const struct field checked[] = {
    {JITDUMP_MAGIC, 0, 12, 0, false},  /* magic, version, total_size */
    {JITDUMP_MAGIC, 20, 24, 0, false}, /* pid, which LOADs repeat */
    {JITDUMP_MAGIC, 32, 40, 1, true},  /* flags, but for the clock's */
    {JIT_CODE_LOAD, 0, 8, 0, false},   /* id, total_size */
    {JIT_CODE_LOAD, 16, 20, 0, false}, /* pid */
    {JIT_CODE_LOAD, 23, 24, 0, true},  /* no tid is so large */
    {JIT_CODE_LOAD, 40, 48, 0, false}, /* code_size, which fills the record */
    {JIT_CODE_MOVE, 0, 8, 0, false},
    {JIT_CODE_MOVE, 52, 56, 0, true}, /* no code is so large */
    {JIT_CODE_DEBUG_INFO, 0, 8, 0, false},
    {JIT_CODE_DEBUG_INFO, 25, 32, 0, true}, /* nr_entry */
    {JIT_CODE_CLOSE, 0, 8, 0, false},
    {JIT_CODE_UNWINDING_INFO, 0, 8, 0, false},
    {JIT_CODE_UNWINDING_INFO, 17, 24, 0, true}, /* unwinding_size */
    {JIT_CODE_UNWINDING_INFO, 25, 32, 0, true}, /* eh_frame_hdr_size */
    {JIT_CODE_UNLOAD, 0, 8, 0, false},
    {JIT_CODE_UNLOAD, 36, 40, 0, true},       /* no code is so large */
    {JIT_CODE_INLINE_INFO, 0, 8, 3, true},    /* one bit from a FILLER and from an UNLOAD */
    {JIT_CODE_INLINE_INFO, 24, 36, 0, false}, /* the counts, which fill the record */
    {JIT_CODE_INLINE_INFO, 40, 44, 0, false}, /* parent */
};

/* The bits of the byte at OFFSET of the file that are checked. */
static uint8_t checked_bits(size_t offset)
{
    bool header = offset < JITHEADER_BYTES;
    uint32_t id = header ? JITDUMP_MAGIC : ids[record_of(offset)];
    size_t at = header ? offset : offset - starts[record_of(offset)];
    uint8_t bits = 0;
    for (size_t i = 0; i < sizeof checked / sizeof checked[0]; i++)
        if (checked[i].id == id && !(checked[i].upper && built.sink.big_endian) &&
            at >= checked[i].from && at < checked[i].to)
            bits = (uint8_t)(at == checked[i].from ? ~checked[i].mask : 0xff);
    return bits;
}

/* Functions of records behind record RECORD that are not in LOG. */
static size_t missing_behind(const struct code_log *log, size_t record)
{
    size_t missing = 0;
    for (size_t i = 0; i < function_count; i++) {
        bool found = functions[i].end <= starts[record + 1];
        for (size_t f = 0; f < log->function_count && !found; f++)
            found = is_as_expected(&log->functions[f], &functions[i]);
        missing += !found;
    }
    return missing;
}

static void judge_outcome(const struct outcome *outcome, size_t offset, unsigned bit)
{
    size_t record = record_of(offset);
    bool in_header = offset < JITHEADER_BYTES;
    if (!is_told(outcome) && checked_bits(offset) >> bit & 1)
        fail_msg("bit %u of byte %zu, %zu of record %zu: not told", bit, offset,
                 offset - starts[record], record);
    if (in_header)
        return;
    if (kept_of(&outcome->log) < functions_before(starts[record]))
        fail_msg("bit %u of byte %zu, %zu of record %zu: a function in front of it is gone", bit,
                 offset, offset - starts[record], record);
    if (offset - starts[record] >= 8 && record + 1 < record_count &&
        missing_behind(&outcome->log, record))
        fail_msg("bit %u of byte %zu, %zu of record %zu: a function behind it is gone", bit, offset,
                 offset - starts[record], record);
}

static void judge_flip(const uint8_t *bytes, size_t offset, unsigned bit)
{
    struct outcome outcome;
    read_left(&outcome, bytes, built.sink.size);
    judge_outcome(&outcome, offset, bit);
    release(&outcome);
}

static void assert_flips_cost_no_other_record(bool big_endian)
{
    build(big_endian);
    assert_sound();
    flip_everywhere(built.bytes, built.sink.size, judge_flip);
}

static void test_a_flipped_bit_costs_no_other_record(void **state)
{
    (void)state;
    assert_flips_cost_no_other_record(false);
}

static void test_a_flipped_bit_costs_no_other_record_in_the_other_byte_order(void **state)
{
    (void)state;
    assert_flips_cost_no_other_record(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_cut_costs_what_is_behind_it),
        cmocka_unit_test(test_a_flipped_bit_costs_no_other_record),
        cmocka_unit_test(test_a_flipped_bit_costs_no_other_record_in_the_other_byte_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
