/* See debug_line.h. */
#include "injector/inject/dwarf/debug_line.h"

#include "injector/arrays/array.h"
#include "injector/inject/dwarf/debug_room.h"

#include <dwarf.h>

/* In JIT code most rows are a few lines from the one before, and a few instructions. */
enum {
    LINE_BASE = -4,
    LINE_RANGE = 12,
    OPCODE_BASE = DW_LNS_set_isa + 1,
    MAX_ADDRESS_ADVANCE = (255 - OPCODE_BASE) / LINE_RANGE, /* of DW_LNS_const_add_pc */
    LINE_VERSION = 4,
    ROW_BYTES = 6 * LEB_BYTES, /* the longest */
};

/* How many operands each standard opcode has. */
static const uint8_t operand_counts[OPCODE_BASE - 1] = {
    [DW_LNS_advance_pc - 1] = 1, [DW_LNS_advance_line - 1] = 1,     [DW_LNS_set_file - 1] = 1,
    [DW_LNS_set_column - 1] = 1, [DW_LNS_fixed_advance_pc - 1] = 1, [DW_LNS_set_isa - 1] = 1,
};

size_t debug_line_begin_unit(struct debug_lines *lines)
{
    lines->unit++;
    lines->unit_file_count = 0;
    lines->program.size = 0;
    lines->program.big_endian = lines->section.big_endian;
    return lines->section.size;
}

/* ---- Files ---- */

static int grow_files(struct debug_lines *lines, uint32_t string)
{
    size_t wanted = lines->file_capacity ? lines->file_capacity : 64;
    if (string < lines->file_capacity)
        return 0;
    while (wanted <= string)
        wanted *= 2;
    struct debug_file *files = realloc(lines->files, wanted * sizeof *files);
    if (!files)
        return -1;
    memset(files + lines->file_capacity, 0, (wanted - lines->file_capacity) * sizeof *files);
    lines->files = files;
    lines->file_capacity = wanted;
    return 0;
}

uint32_t debug_line_file(struct debug_lines *lines, uint32_t string)
{
    if (array_reserve(lines->unit_files, lines->unit_file_count, lines->unit_file_capacity) ||
        grow_files(lines, string)) {
        lines->section.overflow = true;
        return 0;
    }
    struct debug_file *file = &lines->files[string];
    if (file->unit != lines->unit) {
        lines->unit_files[lines->unit_file_count++] = string;
        *file = (struct debug_file){lines->unit, (uint32_t)lines->unit_file_count};
    }
    return file->number;
}

/* ---- Rows ---- */

/* Advance by LINES and BYTES and put a row there. */
static void put_advance(struct byte_sink *program, int64_t lines, uint64_t bytes)
{
    if (lines < LINE_BASE || lines >= LINE_BASE + LINE_RANGE) {
        sink_u8(program, DW_LNS_advance_line);
        sink_sleb(program, lines);
        lines = 0;
    }
    uint64_t opcode = OPCODE_BASE + (uint64_t)(lines - LINE_BASE);
    uint64_t most = (255 - opcode) / LINE_RANGE;
    if (bytes > most && bytes <= most + MAX_ADDRESS_ADVANCE && bytes >= MAX_ADDRESS_ADVANCE) {
        sink_u8(program, DW_LNS_const_add_pc);
        bytes -= MAX_ADDRESS_ADVANCE;
    } else if (bytes > most) {
        sink_u8(program, DW_LNS_advance_pc);
        sink_uleb(program, bytes);
        bytes = 0;
    }
    sink_u8(program, (uint8_t)(opcode + bytes * LINE_RANGE));
}

static void put_row(struct byte_sink *program, const struct debug_row *row,
                    const struct debug_row *before)
{
    debug_room(program, ROW_BYTES);
    if (row->file != before->file) {
        sink_u8(program, DW_LNS_set_file);
        sink_uleb(program, row->file);
    }
    if (row->column != before->column) {
        sink_u8(program, DW_LNS_set_column);
        sink_uleb(program, row->column);
    }
    put_advance(program, (int64_t)row->line - before->line, row->addr - before->addr);
}

static void put_address(struct debug_lines *lines, uint64_t addr)
{
    struct byte_sink *program = &lines->program;
    sink_u8(program, 0);
    sink_uleb(program, 1u + lines->address_bytes);
    sink_u8(program, DW_LNE_set_address);
    if (lines->address_bytes == 4)
        sink_u32(program, (uint32_t)addr);
    else
        sink_u64(program, addr);
}

static void put_end(struct byte_sink *program, uint64_t bytes)
{
    sink_u8(program, DW_LNS_advance_pc);
    sink_uleb(program, bytes);
    sink_u8(program, 0);
    sink_uleb(program, 1);
    sink_u8(program, DW_LNE_end_sequence);
}

void debug_line_put_sequence(struct debug_lines *lines, const struct debug_row *rows, size_t count,
                             uint64_t end)
{
    struct debug_row state = {.addr = rows[0].addr, .line = 1, .file = 1};
    debug_room(&lines->program, 2 * ROW_BYTES);
    put_address(lines, rows[0].addr);
    for (size_t i = 0; i < count; i++) {
        struct debug_row row = rows[i];
        if (row.line == 0) {
            row.file = state.file;
            row.column = 0;
        }
        put_row(&lines->program, &row, &state);
        state = row;
    }
    debug_room(&lines->program, ROW_BYTES);
    put_end(&lines->program, end - state.addr);
}

/* ---- The unit ---- */

static void put_files(struct debug_lines *lines, const struct debug_strings *strings)
{
    struct byte_sink *section = &lines->section;
    for (size_t i = 0; i < lines->unit_file_count; i++) {
        const char *name = debug_strings_text(strings, lines->unit_files[i]);
        debug_room(section, strlen(name) + 4);
        sink_cstr(section, name);
        sink_zeros(section, 3); /* directory, time, length: not known */
    }
    debug_room(section, 1);
    sink_u8(section, 0);
}

void debug_line_end_unit(struct debug_lines *lines, const struct debug_strings *strings)
{
    struct byte_sink *section = &lines->section;
    debug_room(section, 64);
    size_t length_at = section->size;
    sink_u32(section, 0);
    sink_u16(section, LINE_VERSION);
    size_t header_length_at = section->size;
    sink_u32(section, 0);
    sink_u8(section, 1); /* minimum_instruction_length: any byte can begin an instruction */
    sink_u8(section, 1); /* maximum_operations_per_instruction */
    sink_u8(section, 1); /* default_is_stmt */
    sink_u8(section, (uint8_t)LINE_BASE);
    sink_u8(section, LINE_RANGE);
    sink_u8(section, OPCODE_BASE);
    sink_bytes(section, operand_counts, sizeof operand_counts);
    sink_u8(section, 0); /* no directories */
    put_files(lines, strings);
    debug_patch_u32(section, header_length_at, (uint32_t)(section->size - header_length_at - 4));
    section->overflow |= lines->program.overflow;
    if (section->overflow) /* the program's size then counts bytes that it does not have */
        return;
    debug_room(section, lines->program.size);
    sink_bytes(section, lines->program.data, lines->program.size);
    debug_patch_u32(section, length_at, (uint32_t)(section->size - length_at - 4));
}

void debug_lines_free(struct debug_lines *lines)
{
    free(lines->section.data);
    free(lines->program.data);
    free(lines->files);
    free(lines->unit_files);
}
