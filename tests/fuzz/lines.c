/* Records of source lines and inlined calls with their loads, whatever their order: the tables that
 * come of them, their debug info, and what perfjit check says of them.
 *
 * The input: pieces, the first byte of the input saying the byte order.  A piece is
 *
 *     0 u8  kind       0: a DEBUG_INFO, 1: an INLINE_INFO; 2 and 3: a LOAD without a body
 *                      + 4: a LOAD of the same address follows;  + 8: the address is one step
 * further on 1 u16 bytes      of the record's body behind its address; of a LOAD: its code's size.
 * Little-endian 3     the body
 */
#include "injector/check/dump_survey.h"
#include "injector/inject/dwarf/debug_image.h"
#include "injector/log/code/log_reader.h"
#include "jitdump/format/byte_sink.h"
#include "tests/fuzz/fuzz_target.h"

#include <elf.h>
#include <string.h>

enum {
    FIRST_ADDR = 0x40000000,
    STEP_BYTES = 0x100,
    LOAD_BYTES = JR_CODE_LOAD_BYTES + 10, /* without code */
    MAX_PIECES = 64,
    MAX_CODE_BYTES = 0x200,
    KIND_LOAD = 2,
    WITH_LOAD = 4,
    NEXT_ADDR = 8
};

/* ---- The dump ---- */

static uint8_t dump_bytes[1 << 16];

struct composer {
    struct byte_sink sink;
    uint64_t addr, time;
};

static void put_header(struct composer *composer)
{
    struct byte_sink *sink = &composer->sink;
    sink_u32(sink, JITDUMP_MAGIC);
    sink_u32(sink, JITDUMP_FILE_VERSION);
    sink_u32(sink, JITHEADER_BYTES);
    sink_u32(sink, EM_X86_64);
    sink_u32(sink, 0);
    sink_u32(sink, 1); /* pid */
    sink_u64(sink, 1);
    sink_u64(sink, 0);
}

static void put_prefix(struct composer *composer, uint32_t id, size_t total_size)
{
    sink_u32(&composer->sink, id);
    sink_u32(&composer->sink, (uint32_t)total_size);
    sink_u64(&composer->sink, ++composer->time);
}

/* V8's way of a name, so that scripts are found in it. */
static void put_load(struct composer *composer, size_t code_bytes)
{
    struct byte_sink *sink = &composer->sink;
    put_prefix(composer, JIT_CODE_LOAD, LOAD_BYTES + code_bytes);
    sink_u32(sink, 1);
    sink_u32(sink, 1);
    sink_u64(sink, composer->addr);
    sink_u64(sink, composer->addr);
    sink_u64(sink, code_bytes);
    sink_u64(sink, composer->time);
    sink_bytes(sink, "f /a.js:1", 10);
    for (size_t i = 0; i < code_bytes; i++)
        sink_u8(sink, 0x90);
}

static void put_body(struct composer *composer, uint32_t id, const uint8_t *body, size_t bytes)
{
    put_prefix(composer, id, JR_PREFIX_BYTES + 8 + bytes);
    sink_u64(&composer->sink, composer->addr);
    sink_bytes(&composer->sink, body, bytes);
}

/* Returns how many bytes the piece at BYTES takes; 0: there is no more. */
static size_t put_piece(struct composer *composer, const uint8_t *bytes, size_t left)
{
    static const uint32_t ids[] = {JIT_CODE_DEBUG_INFO, JIT_CODE_INLINE_INFO};
    size_t count = left < 3 ? 0 : bytes[1] | (size_t)bytes[2] << 8;
    if (left < 3)
        return 0;
    uint8_t kind = bytes[0] & 3;
    composer->addr += bytes[0] & NEXT_ADDR ? STEP_BYTES : 0;
    if (kind >= KIND_LOAD) {
        put_load(composer, 1 + count % MAX_CODE_BYTES);
        return 3;
    }
    if (count > left - 3)
        count = left - 3;
    put_body(composer, ids[kind], bytes + 3, count);
    if (bytes[0] & WITH_LOAD)
        put_load(composer, STEP_BYTES);
    return 3 + count;
}

static size_t compose(const uint8_t *bytes, size_t size)
{
    struct composer composer = {.sink = byte_sink_over(dump_bytes, sizeof dump_bytes),
                                .addr = FIRST_ADDR};
    composer.sink.big_endian = size && bytes[0] & 1;
    put_header(&composer);
    size_t at = size ? 1 : 0, taken = 1;
    for (int i = 0; i < MAX_PIECES && taken; i++, at += taken)
        taken = put_piece(&composer, bytes + at, size - at);
    return composer.sink.overflow ? 0 : composer.sink.size;
}

/* ---- What came of it ---- */

static void check_inlines(const struct line_table *table)
{
    for (size_t i = 0; i < table->inline_count; i++) {
        int32_t parent = table->inlines[i].parent;
        promise(parent >= LINE_NOT_INLINED && parent < (int32_t)table->inline_count,
                "a parent is there");
        promise(table->inlines[i].depth < LINE_MAX_DEPTH, "calls are not too deep");
        promise(table->inlines[i].depth ==
                    (parent == LINE_NOT_INLINED ? 0 : table->inlines[parent].depth + 1),
                "a call is one deeper than its parent");
    }
}

static void check_table(const struct line_table *table, uint64_t size)
{
    for (size_t i = 0; i < table->row_count; i++) {
        promise(table->rows[i].offset < size, "a row lies in its function");
        promise(i == 0 || table->rows[i - 1].offset < table->rows[i].offset, "rows ascend");
        promise(!table->rows[i].line || table->rows[i].file.text, "a line is in a file");
    }
    for (size_t i = 0; i < table->span_count; i++) {
        promise(table->spans[i].offset < size, "a span lies in its function");
        promise(i == 0 || table->spans[i - 1].offset < table->spans[i].offset, "spans ascend");
        promise(table->spans[i].inline_index >= LINE_NOT_INLINED &&
                    table->spans[i].inline_index < (int32_t)table->inline_count,
                "a span's call is there");
    }
    check_inlines(table);
}

static void check_functions(const struct code_log *log)
{
    struct line_table table = {0};
    for (size_t i = 0; i < log->function_count; i++) {
        const struct jit_function *function = &log->functions[i];
        if (!function->lines)
            continue;
        promise(code_lines_decode(function->lines, function->size, &table) == 0, "there is memory");
        check_table(&table, function->size);
    }
    line_table_free(&table);
}

/* All functions in one ELF file. */
static void make_debug_info(const struct jit_dump *dump, const struct jit_process *process)
{
    struct image_body bodies[2 * MAX_PIECES];
    struct jit_image image = {.bodies = bodies, .base = FIRST_ADDR - STEP_BYTES};
    struct debug_image debug;
    for (size_t i = 0; i < process->log.function_count && i < 2 * MAX_PIECES; i++)
        bodies[image.body_count++] =
            (struct image_body){.offset = process->log.functions[i].addr - image.base,
                                .function = &process->log.functions[i]};
    promise(debug_image_make(&debug, &image, process, dump->address_bytes, dump->big_endian) == 0,
            "there is memory");
    debug_image_free(&debug);
}

/* perfjit check reads by the same rules. */
static void survey(const struct jit_dump *dump, const struct findings *findings)
{
    struct dump_survey survey;
    promise(dump_survey_take(&survey, dump) == 0, "there is memory");
    promise(findings_lost(&survey.findings) == findings_lost(findings),
            "check says what inject does");
    dump_survey_free(&survey);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const struct jit_clock same;
    struct jit_process process = {.pid = 1};
    struct findings findings = {.quiet = true};
    struct jit_dump dump;
    char cause[256];
    size_t dump_size = compose(bytes, size);
    if (dump_size == 0)
        return 0;
    promise(jit_dump_view(&dump, "fuzz.dump", dump_bytes, dump_size, cause, sizeof cause) == 0,
            "the dump can be read");
    promise(code_log_read(&process.log, &dump, 0, &same, true, &findings) == 0, "there is memory");
    check_functions(&process.log);
    make_debug_info(&dump, &process);
    survey(&dump, &findings);
    code_log_free(&process.log);
    findings_free(&findings);
    jit_dump_close(&dump);
    return 0;
}
