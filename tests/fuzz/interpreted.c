/* The records about an interpreter, and a frame of it on a stack that may hold anything: what is
 * not broken lies in its record, and a frame that gets a name gets an address in that function,
 * with its lines.
 *
 *     u8 flags       1: big-endian; 2: the frame is exact; 4: its registers are the interpreter's
 *     16 bytes       the body of INTERPRETER_FRAME behind the place of its code
 *     64 bytes       the stack
 *     the rest       u8 length, and so many bytes: the bodies of INTERPRETED_FUNCTIONs */
#include "injector/history/process/interpreted_functions.h"
#include "injector/log/code/log_reader.h"
#include "injector/unwind/stacks/interpreted_frames.h"
#include "jitdump/format/byte_sink.h"
#include "tests/fuzz/fuzz_target.h"

#include <elf.h>
#include <string.h>

enum { FRAME_BYTES = 16, STACK_BYTES = 64, FIXED = 1 + FRAME_BYTES + STACK_BYTES };
enum { CODE = 0x10000, CODE_BYTES = 0x100, STACK = 0x7000, TIME = 1000 };

static void begin_record(struct byte_sink *sink, uint32_t id, size_t bytes)
{
    sink_u32(sink, id);
    sink_u32(sink, (uint32_t)(JR_PREFIX_BYTES + bytes));
    sink_u64(sink, TIME);
}

static void put_header(struct byte_sink *sink)
{
    sink_u32(sink, JITDUMP_MAGIC);
    sink_u32(sink, JITDUMP_FILE_VERSION);
    sink_u32(sink, JITHEADER_BYTES);
    sink_u32(sink, EM_X86_64);
    sink_u32(sink, 0);
    sink_u32(sink, 1);
    sink_u64(sink, 1);
    sink_u64(sink, 0);
}

/* The dump of the SIZE bytes of input. */
static void put_dump(struct byte_sink *sink, const uint8_t *bytes, size_t size)
{
    put_header(sink);
    begin_record(sink, JIT_INTERPRETER_FRAME, 16 + FRAME_BYTES);
    sink_u64(sink, CODE);
    sink_u64(sink, CODE_BYTES);
    sink_bytes(sink, bytes + 1, FRAME_BYTES);
    for (size_t at = FIXED; at < size;) {
        const size_t length = bytes[at] < size - at - 1 ? bytes[at] : size - at - 1;
        begin_record(sink, JIT_INTERPRETED_FUNCTION, length);
        sink_bytes(sink, bytes + at + 1, length);
        at += 1 + length;
    }
}

static void check_records(const struct jit_dump *dump)
{
    struct jit_dump_walk walk = jit_dump_begin(dump);
    struct jit_record record;
    enum jit_dump_end end;
    while ((end = jit_dump_next(&walk, &record)) == JIT_DUMP_MORE || end == JIT_DUMP_TORN) {
        if (record.broken || record.id != JIT_INTERPRETED_FUNCTION || end != JIT_DUMP_MORE)
            continue;
        const struct jit_interpreted *function = &record.interpreted;
        struct byte_cursor rows = jit_interpreted_rows(function);
        struct jit_position row = {0, 0};
        promise(strlen(function->name) == function->name_bytes &&
                    strlen(function->file) == function->file_bytes,
                "texts end in the record");
        for (uint32_t i = 0; i < function->nr_line; i++)
            promise(jit_position_next(&rows, function, &row) &&
                        row.offset < function->position_bytes,
                    "lines lie in the function");
    }
}

static void check_lines(const struct jit_function *function)
{
    struct line_table table = {0};
    if (!function->lines)
        return;
    promise(code_lines_decode(function->lines, function->size, &table) == 0, "there is memory");
    for (size_t i = 0; i < table.row_count; i++)
        promise(table.rows[i].offset < function->size, "rows lie in the function");
    line_table_free(&table);
}

static void check_frame(const struct code_log *log, const uint8_t *bytes)
{
    const struct user_stack stack = {bytes + 1 + FRAME_BYTES, STACK, STACK_BYTES};
    struct unwind_frame frame = {.pc = CODE + 1, .exact = bytes[0] & 2};
    for (unsigned i = 0; i < UNWIND_REGISTERS; i++)
        unwind_frame_set(&frame, i,
                         i % 2 ? STACK + i : user_stack_word(&stack, STACK + 8 * (i % 8)));
    const uint64_t addr = interpreted_frame_addr(log, &frame, &stack, TIME, bytes[0] & 4);
    bool inside = !addr;
    for (size_t i = 0; i < log->function_count; i++) {
        inside = inside || addr - log->functions[i].addr < log->functions[i].size;
        check_lines(&log->functions[i]);
    }
    promise(inside, "the address is the function's");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const struct jit_clock same;
    static const struct records no_records;
    struct findings findings = {.quiet = true};
    struct jit_process process = {0};
    struct jit_processes processes = {.items = &process, .count = 1};
    struct jit_dump dump;
    char cause[256];
    if (size < FIXED)
        return 0;
    const size_t most = JITHEADER_BYTES + 64 + (size - FIXED) * (JR_PREFIX_BYTES + 1) + FIXED;
    struct byte_sink sink = byte_sink_over(malloc(most), most);
    sink.big_endian = bytes[0] & 1;
    put_dump(&sink, bytes, size);
    promise(sink.data && !sink.overflow &&
                !jit_dump_view(&dump, "fuzz.dump", sink.data, sink.size, cause, sizeof cause),
            "the dump can be read");
    check_records(&dump);
    promise(code_log_read(&process.log, &dump, 0, &same, true, &findings) == 0, "there is memory");
    interpreted_code_sort(&process.log.interpreted);
    promise(interpreted_functions_note(&process.log, bytes + 1 + FRAME_BYTES, STACK, STACK_BYTES,
                                       TIME) == 0 &&
                interpreted_functions_place(&processes, &no_records, &findings) == 0,
            "there is memory");
    check_frame(&process.log, bytes);
    code_log_free(&process.log);
    findings_free(&findings);
    jit_dump_close(&dump);
    free(sink.data);
    return 0;
}
