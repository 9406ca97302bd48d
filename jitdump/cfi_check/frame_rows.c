/* See frame_rows.h.  Source: DWARF 5, section 6.4.2. */
#include "jitdump/cfi_check/frame_rows.h"

#include "jitdump/format/cfa_instruction.h"

#include <errno.h>
#include <stdlib.h>

enum { REMEMBERED_MAX = 32 };

struct row_run {
    const struct code_machine *machine;
    const struct eh_cie *cie;
    struct frame_row now, initial; /* but for the CFA */
    struct cfa_rule cfa;
    struct frame_row remembered[REMEMBERED_MAX];
    struct cfa_rule remembered_cfas[REMEMBERED_MAX];
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

static void set_offset(struct row_run *run, uint64_t reg, int64_t offset)
{
    if (offset != (int32_t)offset)
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

/* ---- Instructions ---- */

static void remember(struct row_run *run)
{
    if (run->remembered_count == REMEMBERED_MAX) {
        run->failed = true;
        return;
    }
    run->remembered_cfas[run->remembered_count] = run->cfa;
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
    run->cfa = run->remembered_cfas[run->remembered_count];
    run->now.start = before.start;
    run->now.begins = before.begins;
}

static void run_instruction(struct row_run *run, const struct cfa_instruction *instruction)
{
    uint64_t reg = instruction->reg;
    switch (instruction->subject) {
    case CFA_IS_NOTHING:
        break;
    case CFA_IS_CFA:
        run->failed |= !cfa_rule_change(&run->cfa, instruction);
        break;
    case CFA_IS_SAVED_AT:
        set_offset(run, reg, instruction->offset);
        break;
    case CFA_IS_IN_REGISTER:
        set_rule(run, reg,
                 (struct frame_rule){0, RULE_REGISTER,
                                     (uint8_t)register_of(run, instruction->other_reg)});
        break;
    case CFA_IS_SAME:
        set_rule(run, reg, (struct frame_rule){0, RULE_SAME, 0});
        break;
    case CFA_IS_RESTORED:
        restore(run, reg);
        break;
    case CFA_IS_REMEMBER:
        remember(run);
        break;
    case CFA_IS_RECALL:
        recall(run);
        break;
    case CFA_IS_SIGNED:
        run->failed |= !run->machine->signs_returns;
        run->now.address_signed = !run->now.address_signed;
        break;
    default:
        set_rule(run, reg, (struct frame_rule){0, RULE_OTHER, 0});
    }
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

/* Add the row that RUN has made. */
static int add_now(struct frame_rows *rows, const struct row_run *run)
{
    const struct cfa_rule *cfa = &run->cfa;
    struct frame_row row = run->now;
    unsigned reg = cfa->kind == CFA_RULE_OFFSET ? register_of(run, cfa->reg) : NO_REGISTER;
    row.cfa_known = reg != NO_REGISTER && cfa->offset == (int32_t)cfa->offset;
    row.cfa_register = (uint8_t)reg;
    row.cfa_offset = (int32_t)cfa->offset;
    return add_row(rows, &row);
}

static struct cfa_decoder decoder_of(const struct row_run *run, const uint8_t *program, size_t size)
{
    return cfa_decoder_over(program, size, false, run->cie->code_align, run->cie->data_align);
}

/* The CIE's rules, at an FDE's first instruction. */
static void begin_fde(struct row_run *run, const struct frame_fde *fde)
{
    struct cfa_instruction instruction;
    run->cie = fde->cie;
    run->now = (struct frame_row){.start = fde->start, .covered = true, .begins = true};
    run->initial = run->now;
    run->cfa = (struct cfa_rule){.kind = CFA_RULE_NONE};
    run->remembered_count = 0;
    run->failed = fde->cie->signal_frame;
    struct cfa_decoder decoder =
        decoder_of(run, fde->cie->instructions, fde->cie->instructions_bytes);
    while (!run->failed && cfa_next(&decoder, &instruction))
        if (instruction.subject != CFA_IS_ADVANCE)
            run_instruction(run, &instruction);
        else
            run->failed = instruction.delta != 0;
    run->failed |= decoder.wrong != NULL;
    run->initial = run->now;
}

/* Add the rows of FDE, in the function's first SIZE bytes. */
static int add_fde(struct frame_rows *rows, struct row_run *run, const struct frame_fde *fde,
                   uint64_t end)
{
    uint64_t at = fde->start;
    struct cfa_instruction instruction;
    begin_fde(run, fde);
    struct cfa_decoder decoder = decoder_of(run, fde->instructions, fde->instructions_bytes);
    while (!run->failed && cfa_next(&decoder, &instruction)) {
        if (instruction.subject != CFA_IS_ADVANCE) {
            run_instruction(run, &instruction);
            continue;
        }
        if (instruction.delta >= end - at)
            break;
        if (instruction.delta && add_now(rows, run))
            return -ENOMEM;
        at += instruction.delta;
        run->now.begins &= instruction.delta == 0;
        run->now.start = at;
    }
    run->failed |= decoder.wrong != NULL;
    return run->failed ? 0 : add_now(rows, run);
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
