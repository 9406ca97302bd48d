/* See frame_rows.h.  Source: DWARF 5, section 6.4.2. */
#include "jitdump/cfi_check/frame_rows.h"

#include "jitdump/format/cfa_opcode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    CFA_def_cfa_expression = 0x0f,
    CFA_expression = 0x10,
    CFA_val_expression = 0x16,
    CFA_negate_ra_state_with_pc = 0x2c,
    CFA_negate_ra_state = 0x2d,
    CFA_gnu_args_size = 0x2e,
    CFA_gnu_negative_offset_extended = 0x2f,
};

enum { REMEMBERED_MAX = 32 };

struct row_run {
    const struct code_machine *machine;
    const struct eh_cie *cie;
    struct frame_row now, initial;
    struct frame_row remembered[REMEMBERED_MAX];
    size_t remembered_count;
    bool failed;
};

/* ---- Registers ---- */

/* By the numbers of code_state.h, or NO_REGISTER. */
static unsigned register_of(const struct row_run *run, uint64_t reg)
{
    uint8_t plain = run->machine->plain_registers, moved = run->machine->moved_from;
    if (moved && reg >= moved && reg - moved < (uint64_t)CODE_REGISTERS - plain)
        return (unsigned)reg - moved + plain;
    return reg < plain ? (unsigned)reg : NO_REGISTER;
}

/* The rule of REG in ROW, or NULL: nobody asks for it. */
static struct frame_rule *rule_of(const struct row_run *run, struct frame_row *row, uint64_t reg)
{
    const uint8_t *saved = run->machine->saved;
    unsigned number = register_of(run, reg);
    for (unsigned i = 0; i < run->machine->saved_count; i++)
        if (saved[i] == number)
            return &row->rules[i];
    return NULL;
}

static void set_rule(struct row_run *run, uint64_t reg, struct frame_rule rule)
{
    struct frame_rule *there = rule_of(run, &run->now, reg);
    if (there)
        *there = rule;
}

static void set_offset(struct row_run *run, uint64_t reg, int64_t factored)
{
    int64_t offset;
    if (__builtin_mul_overflow(factored, run->cie->data_align, &offset) ||
        offset != (int32_t)offset)
        run->failed = true;
    else
        set_rule(run, reg, (struct frame_rule){(int32_t)offset, RULE_AT, 0});
}

static void restore(struct row_run *run, uint64_t reg)
{
    const struct frame_rule *initial = rule_of(run, &run->initial, reg);
    if (initial)
        set_rule(run, reg, *initial);
}

static void set_cfa(struct row_run *run, uint64_t reg, int64_t offset)
{
    unsigned number = register_of(run, reg);
    run->now.cfa_known = number != NO_REGISTER && offset == (int32_t)offset;
    run->now.cfa_register = (uint8_t)number;
    run->now.cfa_offset = (int32_t)offset;
}

/* ---- Instructions ---- */

static void skip_block(struct byte_cursor *program)
{
    uint64_t size = cursor_uleb(program);
    cursor_skip(program, size <= cursor_left(program) ? (size_t)size : SIZE_MAX);
}

static void run_cfa(struct row_run *run, uint8_t opcode, struct byte_cursor *program)
{
    uint64_t reg = run->now.cfa_register;
    int64_t offset = run->now.cfa_offset;
    if (opcode == CFA_def_cfa_expression) {
        skip_block(program);
        run->now.cfa_known = false;
        return;
    }
    if (opcode == CFA_def_cfa || opcode == CFA_def_cfa_sf || opcode == CFA_def_cfa_register)
        reg = cursor_uleb(program);
    if (opcode == CFA_def_cfa || opcode == CFA_def_cfa_offset)
        offset = (int64_t)cursor_uleb(program);
    else if (opcode != CFA_def_cfa_register &&
             __builtin_mul_overflow(cursor_sleb(program), run->cie->data_align, &offset))
        run->failed = true;
    set_cfa(run, reg, offset);
}

static void run_register(struct row_run *run, uint8_t opcode, struct byte_cursor *program)
{
    const struct frame_rule other = {0, RULE_OTHER, 0};
    uint64_t reg = cursor_uleb(program);
    switch (opcode) {
    case CFA_offset_extended:
        set_offset(run, reg, (int64_t)cursor_uleb(program));
        break;
    case CFA_offset_extended_sf:
        set_offset(run, reg, cursor_sleb(program));
        break;
    case CFA_gnu_negative_offset_extended:
        set_offset(run, reg, (int64_t)(0 - cursor_uleb(program)));
        break;
    case CFA_restore_extended:
        restore(run, reg);
        break;
    case CFA_register:
        set_rule(
            run, reg,
            (struct frame_rule){0, RULE_REGISTER, (uint8_t)register_of(run, cursor_uleb(program))});
        break;
    case CFA_same_value:
        set_rule(run, reg, (struct frame_rule){0, RULE_SAME, 0});
        break;
    case CFA_undefined:
        set_rule(run, reg, other);
        break;
    case CFA_val_offset:
    case CFA_val_offset_sf:
        cursor_uleb(program);
        set_rule(run, reg, other);
        break;
    default:
        skip_block(program);
        set_rule(run, reg, other);
    }
}

static void remember(struct row_run *run)
{
    if (run->remembered_count == REMEMBERED_MAX)
        run->failed = true;
    else
        run->remembered[run->remembered_count++] = run->now;
}

static void recall(struct row_run *run)
{
    if (run->remembered_count == 0) {
        run->failed = true;
        return;
    }
    struct frame_row before = run->now;
    run->now = run->remembered[--run->remembered_count];
    run->now.start = before.start;
    run->now.begins = before.begins;
}

static void run_extended(struct row_run *run, uint8_t opcode, struct byte_cursor *program)
{
    switch (opcode) {
    case CFA_nop:
        break;
    case CFA_remember_state:
        remember(run);
        break;
    case CFA_restore_state:
        recall(run);
        break;
    case CFA_negate_ra_state:
    case CFA_negate_ra_state_with_pc:
        run->now.address_signed = !run->now.address_signed;
        break;
    case CFA_gnu_args_size:
        cursor_uleb(program);
        break;
    case CFA_def_cfa:
    case CFA_def_cfa_register:
    case CFA_def_cfa_offset:
    case CFA_def_cfa_expression:
    case CFA_def_cfa_sf:
    case CFA_def_cfa_offset_sf:
        run_cfa(run, opcode, program);
        break;
    default:
        if ((opcode >= CFA_offset_extended && opcode <= CFA_register) ||
            (opcode >= CFA_expression && opcode <= CFA_val_expression) ||
            opcode == CFA_gnu_negative_offset_extended)
            run_register(run, opcode, program);
        else
            run->failed = true;
    }
}

/* How far OPCODE leads on, if it is of that kind. */
static bool take_advance(uint8_t opcode, struct byte_cursor *program, uint64_t *by)
{
    if ((opcode & ~LOW_SIX_BITS) == CFA_advance_loc)
        *by = opcode & LOW_SIX_BITS;
    else if (opcode == CFA_advance_loc1)
        *by = cursor_u8(program);
    else if (opcode == CFA_advance_loc2)
        *by = cursor_u16(program);
    else if (opcode == CFA_advance_loc4)
        *by = cursor_u32(program);
    else
        return false;
    return true;
}

static void run_one(struct row_run *run, uint8_t opcode, struct byte_cursor *program)
{
    if ((opcode & ~LOW_SIX_BITS) == CFA_offset)
        set_offset(run, opcode & LOW_SIX_BITS, (int64_t)cursor_uleb(program));
    else if ((opcode & ~LOW_SIX_BITS) == CFA_restore)
        restore(run, opcode & LOW_SIX_BITS);
    else
        run_extended(run, opcode, program);
    run->failed |= program->failed;
}

/* ---- Rows ---- */

static int add_row(struct frame_rows *rows, const struct frame_row *row)
{
    if (rows->count == rows->capacity) {
        size_t capacity = rows->capacity ? rows->capacity * 2 : 32;
        struct frame_row *grown = realloc(rows->rows, capacity * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        rows->rows = grown;
        rows->capacity = capacity;
    }
    rows->rows[rows->count++] = *row;
    return 0;
}

/* The CIE's rules, at an FDE's first instruction. */
static void begin_fde(struct row_run *run, const struct frame_fde *fde)
{
    struct byte_cursor program =
        byte_cursor_over(fde->cie->instructions, fde->cie->instructions_bytes, false);
    run->cie = fde->cie;
    run->now = (struct frame_row){.start = fde->start, .covered = true, .begins = true};
    run->initial = run->now;
    run->remembered_count = 0;
    run->failed = fde->cie->signal_frame;
    while (cursor_left(&program) && !run->failed)
        run_one(run, cursor_u8(&program), &program);
    run->initial = run->now;
}

/* Add the rows of FDE, in the function's first SIZE bytes. */
static int add_fde(struct frame_rows *rows, struct row_run *run, const struct frame_fde *fde,
                   uint64_t end)
{
    struct byte_cursor program =
        byte_cursor_over(fde->instructions, fde->instructions_bytes, false);
    uint64_t at = fde->start, by;
    begin_fde(run, fde);
    while (cursor_left(&program) && !run->failed) {
        uint8_t opcode = cursor_u8(&program);
        if (!take_advance(opcode, &program, &by)) {
            run_one(run, opcode, &program);
            continue;
        }
        if (__builtin_mul_overflow(by, run->cie->code_align, &by) || by >= end - at)
            break;
        if (by && add_row(rows, &run->now))
            return -ENOMEM;
        at += by;
        run->now.begins &= by == 0;
        run->now.start = at;
    }
    return run->failed ? 0 : add_row(rows, &run->now);
}

static int close_fde(struct frame_rows *rows, uint64_t end)
{
    const struct frame_row nothing = {.start = end};
    return add_row(rows, &nothing);
}

static int make_rows(struct frame_rows *rows, struct row_run *run, const struct frame_fde *fdes,
                     size_t count, uint64_t size)
{
    uint64_t last = 0;
    int error = close_fde(rows, 0);
    for (size_t i = 0; i < count && !error; i++) {
        uint64_t start = fdes[i].start, left = size - start;
        if (start < last || start >= size || fdes[i].size == 0)
            continue;
        size_t first = rows->count;
        last = start + (fdes[i].size < left ? fdes[i].size : left);
        error = add_fde(rows, run, &fdes[i], last);
        if (run->failed)
            rows->count = first;
        error = error ? error : close_fde(rows, last);
    }
    return error;
}

int jd_frame_rows_make(struct frame_rows *rows, const struct code_machine *machine,
                       const struct frame_fde *fdes, size_t count, uint64_t size)
{
    struct row_run *run = malloc(sizeof *run);
    if (!run)
        return -ENOMEM;
    run->machine = machine;
    int error = make_rows(rows, run, fdes, count, size);
    free(run);
    return error;
}

void jd_frame_rows_free(struct frame_rows *rows)
{
    free(rows->rows);
}

const struct frame_row *jd_frame_row_at(const struct frame_rows *rows, uint64_t at)
{
    size_t low = 0, high = rows->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (rows->rows[middle].start <= at)
            low = middle;
        else
            high = middle;
    }
    return &rows->rows[low];
}
