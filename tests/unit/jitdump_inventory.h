/* Functions whose names, code, lines and tables follow from two numbers, and the dump that has
 * them: each once, whole, and in the order of their times. */
#ifndef JITDUMP_INVENTORY_H
#define JITDUMP_INVENTORY_H

#include "tests/unit/jitdump_test.h"

/* ---- A function that can be recognised ---- */

enum { THREADS_MAX = 8, FUNCTIONS_MAX = 200000, CODE_MAX_BYTES = 3000, UNWIND_BYTES = 21 };

/* Function SEQUENCE of thread THREAD: its name, code, lines and tables all follow from the two. */
static inline size_t code_bytes_of(unsigned thread, unsigned sequence)
{
    return (sequence * 2654435761u + thread * 40503u) >> 8 & 0xff ? sequence % 300 : CODE_MAX_BYTES;
}

static inline uint8_t pattern_of(unsigned thread, unsigned sequence)
{
    return (uint8_t)(1 + (thread * 37 + sequence) % 255);
}

static inline uint64_t addr_of(unsigned thread, unsigned sequence)
{
    return 0x7f0000000000 + ((uint64_t)thread << 32) + (uint64_t)sequence * 4096;
}

static inline int add_function(struct jitdump *dump, unsigned thread, unsigned sequence,
                               uint64_t *code_index)
{
    uint8_t bytes[CODE_MAX_BYTES];
    char name[32];
    uint64_t addr = addr_of(thread, sequence);
    memset(bytes, pattern_of(thread, sequence), sizeof bytes);
    snprintf(name, sizeof name, "t%u_%u", thread, sequence);
    const struct jitdump_line lines[] = {{addr, name, sequence, thread}, {addr, name, 7, 8}};
    const struct jitdump_unwind unwind = {bytes, UNWIND_BYTES, 20, UNWIND_BYTES};
    struct jitdump_code code = JITDUMP_CODE_INIT;
    code.name = name;
    code.code_addr = addr;
    code.code_size = code_bytes_of(thread, sequence);
    code.bytes = bytes;
    code.lines = lines;
    code.line_count = 2;
    code.unwind = &unwind;
    return jitdump_add_code(dump, &code, code_index);
}

static inline bool is_filled(struct byte_cursor *cursor, size_t count, uint8_t pattern)
{
    const uint8_t *bytes = cursor_bytes(cursor, count);
    for (size_t i = 0; bytes && i < count; i++)
        if (bytes[i] != pattern)
            return false;
    return bytes && cursor_left(cursor) == 0;
}

/* The rest of the group whose UNWINDING_INFO is UNWIND. */
static inline void check_group(const struct dump_bytes *dump, size_t *offset, struct record unwind,
                               unsigned *thread, unsigned *sequence)
{
    struct record debug, load;
    CHECK(unwind.id == JIT_CODE_UNWINDING_INFO && next_record(dump, offset, &debug));
    CHECK(debug.id == JIT_CODE_DEBUG_INFO && next_record(dump, offset, &load));
    CHECK(load.id == JIT_CODE_LOAD);
    CHECK(debug.timestamp == unwind.timestamp && load.timestamp == unwind.timestamp);
    cursor_skip(&load.body, 8 + 8);
    uint64_t addr = cursor_u64(&load.body), code_size = cursor_u64(&load.body);
    cursor_skip(&load.body, 8);
    CHECK(sscanf(cursor_cstr(&load.body), "t%u_%u", thread, sequence) == 2);
    CHECK(addr == addr_of(*thread, *sequence));
    CHECK(code_size == code_bytes_of(*thread, *sequence));
    CHECK(is_filled(&load.body, code_size, pattern_of(*thread, *sequence)));
    cursor_skip(&unwind.body, 24);
    CHECK(is_filled(&unwind.body, UNWIND_BYTES, pattern_of(*thread, *sequence)));
    CHECK(cursor_u64(&debug.body) == addr && cursor_u64(&debug.body) == 2);
    CHECK(cursor_u64(&debug.body) == addr && cursor_u32(&debug.body) == *sequence);
}

/* What a dump has of add_function's functions. */
struct inventory {
    size_t functions, fillers, others;
    size_t repeated; /* in the stage, of the body */
    bool closed;     /* the body is */
    bool seen[THREADS_MAX][FUNCTIONS_MAX];
};

/* What stands in front of eight bytes that else would lie in two pages (dump_body.h). */
static inline bool is_pad(const struct record *record)
{
    return record->total_size == JR_PREFIX_BYTES && record->offset % 4096 > 4096 - 8;
}

static inline void count_function(struct inventory *inventory, const struct dump_bytes *dump,
                                  size_t *offset, struct record record, bool repeated)
{
    unsigned thread, sequence;
    check_group(dump, offset, record, &thread, &sequence);
    CHECK(thread < THREADS_MAX && sequence < FUNCTIONS_MAX);
    CHECK(inventory->seen[thread][sequence] == repeated);
    inventory->seen[thread][sequence] = true;
    inventory->functions += !repeated;
    inventory->repeated += repeated;
}

/* Walk the whole of FILE_PATH, in which every group is whole and no later one has an earlier time.
 * What is not later than *LATEST, in the body, is repeated from there. */
static inline void walk_file(struct inventory *inventory, const char *file_path, uint64_t *latest)
{
    struct dump_bytes dump = read_dump(file_path);
    struct record record;
    size_t offset = JITHEADER_BYTES;
    uint64_t time = 0, before = *latest;
    file_header(&dump);
    while (next_record(&dump, &offset, &record)) {
        if (record.id == JIT_FILLER) {
            inventory->fillers += !is_pad(&record);
            continue;
        }
        CHECK(record.timestamp >= time);
        time = record.timestamp;
        if (record.id == JIT_CODE_UNWINDING_INFO)
            count_function(inventory, &dump, &offset, record, time <= before);
        else if (record.id != JIT_CODE_CLOSE || !inventory->closed)
            inventory->others += time > before;
        inventory->closed |= record.id == JIT_CODE_CLOSE;
    }
    if (time > before)
        *latest = time;
    free(dump.data);
}

/* What is in the body FILE_PATH, and in its stage. */
static inline struct inventory *take_inventory(const char *file_path)
{
    struct inventory *inventory = calloc(1, sizeof *inventory);
    char stage_path[160];
    uint64_t latest = 0;
    CHECK(inventory != NULL);
    walk_file(inventory, file_path, &latest);
    stage_path_of(stage_path, file_path);
    if (access(stage_path, F_OK) == 0)
        walk_file(inventory, stage_path, &latest);
    return inventory;
}

/* What a dump that was not closed may have of them: behind the body, and in the stage for main,
 * behind it and behind the spill. */
enum { FILLERS_MAX = 4 };

static inline void check_unclosed(const char *file_path, size_t functions, size_t others,
                                  size_t fillers_max)
{
    struct inventory *inventory = take_inventory(file_path);
    CHECK(inventory->functions == functions);
    CHECK(inventory->others == others);
    CHECK(inventory->fillers <= fillers_max);
    CHECK(inventory->repeated == 0);
    free(inventory);
}

static inline void check_inventory(const char *file_path, size_t functions, size_t others)
{
    check_unclosed(file_path, functions, others, 0);
}

/* ---- Functions of thread 0, one after the other ---- */

static inline void check_has_no_zeros(const char *file_path)
{
    struct dump_bytes dump = read_dump(file_path);
    size_t offset = JITHEADER_BYTES;
    struct record record;
    while (next_record(&dump, &offset, &record))
        ;
    CHECK(offset == dump.size);
    free(dump.data);
}

/* The first ADDED functions of thread 0, and no other, each once; behind them FILLERs up to the
 * end. */
static inline void check_first(const char *file_path, size_t added)
{
    struct inventory *inventory = take_inventory(file_path);
    char stage_path[160];
    CHECK(inventory->functions == added);
    CHECK(inventory->repeated == 0);
    for (size_t i = 0; i < added; i++)
        CHECK(inventory->seen[0][i]);
    CHECK(inventory->fillers <= FILLERS_MAX);
    free(inventory);
    check_has_no_zeros(file_path);
    stage_path_of(stage_path, file_path);
    check_has_no_zeros(stage_path);
}

static inline void add_first(struct jitdump *dump, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++)
        CHECK(add_function(dump, 0, i, NULL) == 0);
}

/* Add functions, beginning with the one numbered FROM, until one fails with ERROR; returns its
 * number. */
static inline unsigned add_until(struct jitdump *dump, unsigned from, int error)
{
    for (unsigned i = from; i < FUNCTIONS_MAX; i++) {
        int result = add_function(dump, 0, i, NULL);
        CHECK(result == 0 || result == error);
        if (result)
            return i;
    }
    CHECK(false); /* it never fails */
    return 0;
}

#endif
