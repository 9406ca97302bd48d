/* See cfi_program.h.  Source: DWARF 5, section 6.4.2. */
#include "injector/native/cfi_program.h"

#include "jitdump/format/byte_cursor.h"

enum {
    CFA_advance_loc = 1, /* the three with an operand in their low six bits */
    CFA_offset = 2,
    CFA_restore = 3,
};

enum {
    CFA_nop = 0x00,
    CFA_advance_loc1 = 0x02,
    CFA_advance_loc2 = 0x03,
    CFA_advance_loc4 = 0x04,
    CFA_offset_extended = 0x05,
    CFA_restore_extended = 0x06,
    CFA_undefined = 0x07,
    CFA_same_value = 0x08,
    CFA_register = 0x09,
    CFA_remember_state = 0x0a,
    CFA_restore_state = 0x0b,
    CFA_def_cfa = 0x0c,
    CFA_def_cfa_register = 0x0d,
    CFA_def_cfa_offset = 0x0e,
    CFA_def_cfa_expression = 0x0f,
    CFA_expression = 0x10,
    CFA_offset_extended_sf = 0x11,
    CFA_def_cfa_sf = 0x12,
    CFA_def_cfa_offset_sf = 0x13,
    CFA_val_offset = 0x14,
    CFA_val_offset_sf = 0x15,
    CFA_val_expression = 0x16,
    CFA_negate_ra_state_with_pc = 0x2c,
    CFA_negate_ra_state = 0x2d,
    CFA_gnu_args_size = 0x2e,
    CFA_gnu_negative_offset_extended = 0x2f,
};

enum { MAX_REMEMBERED = 8, SIGN_STATE = 32, DWARF_SIGN_STATE = 34 };

struct interpreter {
    const struct cfi_entry *entry;
    const struct machine *machine;
    struct unwind_budget *budget;
    uint64_t pc, target;
    struct cfi_row row;
    struct cfi_row initial; /* what the CIE says, for restore */
    struct cfi_row remembered[MAX_REMEMBERED];
    size_t remembered_count;
    bool failed;
};

/* Rules of registers that nobody unwinds with (vectors) go nowhere. */
static void set_rule(struct interpreter *run, uint64_t reg, struct register_rule rule)
{
    if (reg == DWARF_SIGN_STATE)
        reg = SIGN_STATE;
    if (reg < UNWIND_REGISTERS)
        run->row.registers[reg] = rule;
}

static void set_offset(struct interpreter *run, uint64_t reg, uint8_t kind, int64_t factored)
{
    int64_t offset;
    if (__builtin_mul_overflow(factored, run->entry->data_align, &offset))
        run->failed = true;
    else
        set_rule(run, reg, (struct register_rule){.kind = kind, .offset = offset});
}

static void restore_register(struct interpreter *run, uint64_t reg)
{
    if (reg < UNWIND_REGISTERS)
        set_rule(run, reg, run->initial.registers[reg]);
}

static struct cfi_expression take_block(struct byte_cursor *cursor)
{
    uint64_t size = cursor_uleb(cursor);
    const uint8_t *bytes =
        cursor_bytes(cursor, size <= cursor_left(cursor) ? (size_t)size : SIZE_MAX);
    return (struct cfi_expression){bytes, bytes ? (size_t)size : 0};
}

static void set_cfa(struct interpreter *run, uint64_t reg, int64_t offset)
{
    run->failed |= reg >= UNWIND_REGISTERS;
    run->row.cfa_register = (uint8_t)reg;
    run->row.cfa = (struct register_rule){.kind = REGISTER_IS_OFFSET, .offset = offset};
}

static void set_cfa_factored(struct interpreter *run, uint64_t reg, int64_t factored)
{
    int64_t offset;
    run->failed |= __builtin_mul_overflow(factored, run->entry->data_align, &offset);
    set_cfa(run, reg, run->failed ? 0 : offset);
}

static void remember(struct interpreter *run)
{
    if (run->remembered_count == MAX_REMEMBERED)
        run->failed = true;
    else
        run->remembered[run->remembered_count++] = run->row;
}

static void recall(struct interpreter *run)
{
    if (run->remembered_count == 0)
        run->failed = true;
    else
        run->row = run->remembered[--run->remembered_count];
}

/* The CFA, which is not to be confused with where registers are. */
static void run_cfa(struct interpreter *run, uint8_t opcode, struct byte_cursor *cursor)
{
    uint64_t reg;
    switch (opcode) {
    case CFA_def_cfa:
        reg = cursor_uleb(cursor);
        set_cfa(run, reg, (int64_t)cursor_uleb(cursor));
        break;
    case CFA_def_cfa_sf:
        reg = cursor_uleb(cursor);
        set_cfa_factored(run, reg, cursor_sleb(cursor));
        break;
    case CFA_def_cfa_register:
        set_cfa(run, cursor_uleb(cursor), run->row.cfa.offset);
        break;
    case CFA_def_cfa_offset:
        set_cfa(run, run->row.cfa_register, (int64_t)cursor_uleb(cursor));
        break;
    case CFA_def_cfa_offset_sf:
        set_cfa_factored(run, run->row.cfa_register, cursor_sleb(cursor));
        break;
    default:
        run->row.cfa = (struct register_rule){.kind = REGISTER_IS_EXPRESSION,
                                              .expression = take_block(cursor)};
    }
}

static void run_register(struct interpreter *run, uint8_t opcode, struct byte_cursor *cursor)
{
    uint64_t reg = cursor_uleb(cursor);
    switch (opcode) {
    case CFA_offset_extended:
        set_offset(run, reg, REGISTER_AT_OFFSET, (int64_t)cursor_uleb(cursor));
        break;
    case CFA_offset_extended_sf:
        set_offset(run, reg, REGISTER_AT_OFFSET, cursor_sleb(cursor));
        break;
    case CFA_gnu_negative_offset_extended:
        set_offset(run, reg, REGISTER_AT_OFFSET, (int64_t)(0 - cursor_uleb(cursor)));
        break;
    case CFA_val_offset:
        set_offset(run, reg, REGISTER_IS_OFFSET, (int64_t)cursor_uleb(cursor));
        break;
    case CFA_val_offset_sf:
        set_offset(run, reg, REGISTER_IS_OFFSET, cursor_sleb(cursor));
        break;
    case CFA_restore_extended:
        restore_register(run, reg);
        break;
    case CFA_register:
        set_rule(run, reg,
                 (struct register_rule){.kind = REGISTER_IN_REGISTER,
                                        .offset = (int64_t)cursor_uleb(cursor)});
        break;
    case CFA_undefined:
        set_rule(run, reg, (struct register_rule){.kind = REGISTER_UNDEFINED});
        break;
    case CFA_same_value:
        set_rule(run, reg, (struct register_rule){.kind = REGISTER_SAME});
        break;
    default:
        set_rule(run, reg,
                 (struct register_rule){.kind = opcode == CFA_expression ? REGISTER_AT_EXPRESSION
                                                                         : REGISTER_IS_EXPRESSION,
                                        .expression = take_block(cursor)});
    }
}

/* From here on the return address is signed, or no more.  It is stripped in any case. */
static void negate_sign_state(struct interpreter *run)
{
    run->failed |= !run->machine->signs_returns;
}

static void run_extended(struct interpreter *run, uint8_t opcode, struct byte_cursor *cursor)
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
        negate_sign_state(run);
        break;
    case CFA_gnu_args_size:
        cursor_uleb(cursor);
        break;
    default:
        if (opcode >= CFA_def_cfa && opcode <= CFA_def_cfa_offset_sf && opcode != CFA_expression &&
            opcode != CFA_offset_extended_sf)
            run_cfa(run, opcode, cursor);
        else if ((opcode >= CFA_offset_extended && opcode <= CFA_val_expression) ||
                 opcode == CFA_gnu_negative_offset_extended)
            run_register(run, opcode, cursor);
        else
            run->failed = true;
    }
}

/* How far OPCODE, if it is an advance, goes on; what it is not gives false. */
static bool take_advance(uint8_t opcode, struct byte_cursor *cursor, uint64_t *by)
{
    if (opcode >> 6 == CFA_advance_loc)
        *by = opcode & 0x3f;
    else if (opcode == CFA_advance_loc1)
        *by = cursor_u8(cursor);
    else if (opcode == CFA_advance_loc2)
        *by = cursor_u16(cursor);
    else if (opcode == CFA_advance_loc4)
        *by = cursor_u32(cursor);
    else
        return false;
    return true;
}

/* Run the SIZE bytes of PROGRAM up to the target. */
static void run_program(struct interpreter *run, const uint8_t *program, size_t size)
{
    struct byte_cursor cursor = byte_cursor_over(program, size, false);
    while (cursor_left(&cursor) && !run->failed) {
        uint8_t opcode = cursor_u8(&cursor);
        uint64_t by;
        run->failed |= !unwind_budget_take(run->budget);
        if (take_advance(opcode, &cursor, &by)) {
            if (__builtin_mul_overflow(by, run->entry->code_align, &by) ||
                by > run->target - run->pc)
                break;
            run->pc += by;
        } else if (opcode >> 6 == CFA_offset) {
            set_offset(run, opcode & 0x3f, REGISTER_AT_OFFSET, (int64_t)cursor_uleb(&cursor));
        } else if (opcode >> 6 == CFA_restore) {
            restore_register(run, opcode & 0x3f);
        } else {
            run_extended(run, opcode, &cursor);
        }
    }
    run->failed |= cursor.failed;
}

bool cfi_row_find(const struct cfi_entry *entry, uint64_t pc, const struct machine *machine,
                  struct unwind_budget *budget, struct cfi_row *row)
{
    struct interpreter run;
    if (pc < entry->start || entry->return_register >= UNWIND_REGISTERS)
        return false;
    run.entry = entry;
    run.machine = machine;
    run.budget = budget;
    run.pc = 0;
    run.target = 0;
    run.remembered_count = 0;
    run.failed = false;
    run.row = (struct cfi_row){.cfa_register = UNWIND_NO_REGISTER,
                               .return_register = (uint8_t)entry->return_register,
                               .signal_frame = entry->signal_frame};
    run.initial = run.row;
    run_program(&run, entry->initial, entry->initial_bytes);
    run.initial = run.row;
    run.target = pc - entry->start;
    run_program(&run, entry->instructions, entry->instructions_bytes);
    *row = run.row;
    return !run.failed &&
           (run.row.cfa.kind == REGISTER_IS_EXPRESSION || run.row.cfa_register < UNWIND_REGISTERS);
}
