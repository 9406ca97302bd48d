/* See frame_check.h. */
#include "jitdump/cfi_check/frame_check.h"

#include "jitdump/cfi_check/frame_match.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LARGEST_BYTES = 64 << 20,
    STEPS_PER_BYTE = 64, /* instructions that are followed at most, for each byte of code */
    PROBE_STEPS = 256,
};

/* Marks of a byte of the code at which an instruction begins */
enum {
    MARK_TARGET = 1,   /* is jumped to, or an entry */
    MARK_SEEN = 2,     /* is reached */
    MARK_COMPARED = 4, /* was compared with its row */
};

/* The known state at a jump's target. */
struct block {
    uint32_t at;
    bool known;
    bool pending; /* it changed since it was followed */
    struct code_state state;
};

struct checker {
    const struct code_machine *machine;
    struct frame_rows rows;
    const struct frame_row *row; /* that was asked for last; NULL: none */
    const uint8_t *code;
    size_t size;
    uint8_t *marks;
    uint32_t *targets; /* in the order in which they were found */
    size_t target_count, target_capacity;
    struct block *blocks;             /* the same, ascending */
    size_t pending_from;              /* no earlier one is pending */
    uint64_t steps;                   /* that may still be followed */
    uint64_t lost_at[CODE_REGISTERS]; /* where a register was first not where the row says */
    int32_t lost_slot[CODE_REGISTERS];
    struct frame_check *out;
    bool no_memory;
};

/* The first instruction from AT on that is not there to fill up. */
static uint64_t behind_filling(const struct checker *checker, uint64_t at)
{
    while (at < checker->size &&
           checker->machine->is_filling(checker->code, checker->size, (size_t)at))
        at += checker->machine->step(checker->code, checker->size, (size_t)at, NULL).size;
    return at;
}

/* ---- Which instructions are reached ---- */

static void add_target(struct checker *checker, uint64_t at)
{
    if (checker->marks[at] & MARK_TARGET || checker->no_memory)
        return;
    if (checker->target_count == checker->target_capacity) {
        size_t capacity = checker->target_capacity ? checker->target_capacity * 2 : 64;
        uint32_t *grown = realloc(checker->targets, capacity * sizeof *grown);
        checker->no_memory = !grown;
        if (!grown)
            return;
        checker->targets = grown;
        checker->target_capacity = capacity;
    }
    checker->marks[at] |= MARK_TARGET;
    checker->targets[checker->target_count++] = (uint32_t)at;
}

static bool is_inside(const struct checker *checker, int64_t target)
{
    return target >= 0 && (uint64_t)target < checker->size;
}

static bool goes_on(enum code_flow flow)
{
    return flow == FLOW_NEXT || flow == FLOW_BRANCH || flow == FLOW_CALL;
}

static void discover_from(struct checker *checker, uint64_t at)
{
    while (at < checker->size && !(checker->marks[at] & MARK_SEEN)) {
        struct code_step step =
            checker->machine->step(checker->code, checker->size, (size_t)at, NULL);
        checker->marks[at] |= MARK_SEEN;
        if ((step.flow == FLOW_JUMP || step.flow == FLOW_BRANCH) && is_inside(checker, step.target))
            add_target(checker, (uint64_t)step.target);
        if (!goes_on(step.flow))
            break;
        at += step.size;
    }
}

/* All that direct jumps lead to from the entry AT. */
static void discover(struct checker *checker, uint64_t at)
{
    size_t next = checker->target_count;
    uint64_t behind = behind_filling(checker, at);
    add_target(checker, at);
    if (behind < checker->size)
        add_target(checker, behind);
    for (; next < checker->target_count; next++)
        discover_from(checker, checker->targets[next]);
}

static int compare_offsets(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static struct block *block_at(struct checker *checker, uint64_t at)
{
    size_t low = 0, high = checker->target_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (checker->blocks[middle].at <= at)
            low = middle;
        else
            high = middle;
    }
    return &checker->blocks[low];
}

static void make_blocks(struct checker *checker)
{
    checker->blocks = calloc(checker->target_count + 1, sizeof *checker->blocks);
    checker->no_memory |= !checker->blocks;
    if (checker->no_memory)
        return;
    qsort(checker->targets, checker->target_count, sizeof *checker->targets, compare_offsets);
    for (size_t i = 0; i < checker->target_count; i++)
        checker->blocks[i].at = checker->targets[i];
}

/* ---- What is found ---- */

static void keep_fault(struct checker *checker, uint64_t at, const char *reason)
{
    struct frame_check *out = checker->out;
    char instruction[48];
    if (out->wrong && out->fault_at <= at)
        return;
    checker->machine->print(checker->code, checker->size, (size_t)at, instruction,
                            sizeof instruction);
    snprintf(out->fault, sizeof out->fault, "at +0x%" PRIx64 " (%s): %s", at, instruction, reason);
    out->wrong = true;
    out->fault_at = at;
}

static void keep_beyond(struct checker *checker, uint64_t at)
{
    if (at < checker->out->beyond)
        checker->out->beyond = at;
}

/* The place on the stack at which STATE has the caller's REG. */
static int32_t place_of(const struct code_state *state, unsigned reg)
{
    for (unsigned i = 0; i < state->slot_count; i++)
        if (value_is_entry(state->slots[i].value, reg))
            return state->slots[i].offset;
    return 0;
}

static void keep_lost(struct checker *checker, uint64_t at, const struct code_state *state,
                      uint64_t lost)
{
    for (unsigned reg = 0; lost >> reg && reg < CODE_REGISTERS; reg++)
        if (lost >> reg & 1 && at < checker->lost_at[reg]) {
            checker->lost_at[reg] = at;
            checker->lost_slot[reg] = place_of(state, reg);
        }
}

/* Whether the function, in STATE at AT, finds its way home to its caller: then it got there.  Calls
 * return, for once, and no branch is taken. */
static bool returns_from(const struct checker *checker, uint64_t at, struct code_state state)
{
    const struct code_machine *machine = checker->machine;
    for (unsigned i = 0; i < PROBE_STEPS && at < checker->size; i++) {
        struct code_value top = state.registers[machine->stack_pointer];
        struct code_step step = machine->step(checker->code, checker->size, (size_t)at, &state);
        bool home =
            top.kind == VALUE_FRAME && top.offset == machine->entry_offset && !state.doubtful;
        if (step.flow == FLOW_RETURN)
            return home;
        if (step.flow == FLOW_JUMP && is_inside(checker, step.target))
            at = (uint64_t)step.target;
        else if (goes_on(step.flow))
            at += step.size;
        else
            return false;
    }
    return false;
}

/* A stack pointer that is in doubt is what it is taken for if the function finds its way home by
 * it. */
static void settle_doubt(const struct checker *checker, const struct frame_row *row, uint64_t at,
                         struct code_state *state)
{
    if (state->doubtful && row->cfa_known && row->cfa_register == checker->machine->stack_pointer)
        state->doubtful = !returns_from(checker, at, *state);
}

/* The row at AT does not fit.  If a call was taken to have popped its arguments, because the rows
 * say so, then it did not: that is where the rows are wrong. */
static void keep_wrong(struct checker *checker, uint64_t at, const struct frame_row *row,
                       const struct code_state *state, char *reason)
{
    const struct frame_row *popped = jd_frame_row_at(&checker->rows, state->popped_at);
    const char *sp = checker->machine->names[checker->machine->stack_pointer];
    if (state->popped_at && popped->cfa_known && row->covered) {
        snprintf(reason, MATCH_TEXT_BYTES, "the CFA is %s%+d here, the frame says %s%+d", sp,
                 popped->cfa_offset + state->popped_bytes, sp, popped->cfa_offset);
        at = state->popped_at;
    }
    keep_fault(checker, at, reason);
}

/* The row at AT.  Code mostly leads on, and so does what is asked. */
static const struct frame_row *next_row(struct checker *checker, uint64_t at)
{
    const struct frame_row *row = checker->row, *end = checker->rows.rows + checker->rows.count;
    if (!row || row->start > at || (row + 1 < end && row[1].start <= at))
        checker->row = jd_frame_row_at(&checker->rows, at);
    return checker->row;
}

static void compare(struct checker *checker, uint64_t at, struct code_state *state)
{
    const struct frame_row *row = next_row(checker, at);
    char reason[MATCH_TEXT_BYTES];
    uint64_t lost = state->lost;
    if (!row->covered)
        return;
    settle_doubt(checker, row, at, state);
    switch (jd_frame_match(checker->machine, row, state, reason)) {
    case MATCH_WRONG:
        keep_wrong(checker, at, row, state, reason);
        break;
    case MATCH_UNKNOWN:
        keep_beyond(checker, at);
        return;
    case MATCH_FITS:
        break;
    }
    keep_lost(checker, at, state, state->lost & ~lost);
    checker->out->compared += !(checker->marks[at] & MARK_COMPARED);
    checker->marks[at] |= MARK_COMPARED;
}

/* The function returns, and has given back what it had saved. */
static void take_return(struct checker *checker, const struct code_state *state)
{
    uint64_t given = jd_frame_given_back(checker->machine, state);
    char reason[MATCH_TEXT_BYTES];
    for (unsigned reg = 0; reg < CODE_REGISTERS; reg++)
        if (given >> reg & 1 && checker->lost_at[reg] != UINT64_MAX) {
            const char *name = checker->machine->names[reg];
            snprintf(reason, sizeof reason,
                     "the caller's %s is at c%+d here, the frame says that it is in %s", name,
                     checker->lost_slot[reg], name);
            keep_fault(checker, checker->lost_at[reg], reason);
        }
}

/* ---- Calls ---- */

static bool fits(const struct checker *checker, const struct frame_row *row,
                 struct code_state state)
{
    char reason[MATCH_TEXT_BYTES];
    return jd_frame_match(checker->machine, row, &state, reason) != MATCH_WRONG;
}

/* Whether the arguments were popped, by which the rows differ: then STATE is changed so. */
static bool popped_arguments(const struct checker *checker, const struct frame_row *before,
                             const struct frame_row *after, struct code_state *state)
{
    unsigned sp = checker->machine->stack_pointer;
    int32_t popped = before->cfa_offset - after->cfa_offset;
    if (!before->cfa_known || !after->cfa_known || before->cfa_register != sp ||
        after->cfa_register != sp || popped <= 0 || popped % 8)
        return false;
    state->registers[sp] = value_plus(state->registers[sp], popped);
    state->popped_at = state->popped_at ? state->popped_at : (uint32_t)after->start;
    state->popped_bytes = popped;
    return fits(checker, after, *state);
}

/* A call at AT, which leads to NEXT if it returns.  It may not: then other code follows, perhaps at
 * a multiple of 16, with another frame.  And it may have popped its arguments.  Returns whether
 * STATE holds at NEXT. */
static bool comes_back(const struct checker *checker, uint64_t at, uint64_t next,
                       struct code_state *state)
{
    uint64_t further = behind_filling(checker, next);
    const struct frame_row *before = jd_frame_row_at(&checker->rows, at);
    const struct frame_row *after = jd_frame_row_at(&checker->rows, further);
    if (further >= checker->size)
        return false;
    if (jd_frame_rows_equal(checker->machine, before, after)) {
        state->doubtful |=
            !before->cfa_known || before->cfa_register != checker->machine->stack_pointer;
        return true;
    }
    if (fits(checker, after, *state) || returns_from(checker, further, *state))
        return true;
    const struct frame_row *behind = jd_frame_row_at(&checker->rows, next);
    return !jd_frame_rows_equal(checker->machine, before, behind) &&
           popped_arguments(checker, before, behind, state);
}

/* ---- Following ---- */

/* STATE holds at the target AT, too. */
static void arrive(struct checker *checker, uint64_t at, struct code_state *state)
{
    struct block *block = block_at(checker, at);
    size_t index = (size_t)(block - checker->blocks);
    compare(checker, at, state);
    if (!block->known)
        block->state = *state;
    else if (!jd_state_merge(&block->state, state))
        return;
    block->known = block->pending = true;
    if (index < checker->pending_from)
        checker->pending_from = index;
}

/* Whether STEP ends the function: a return, or a jump elsewhere when the frame is gone. */
static bool leaves(const struct checker *checker, const struct code_step *step,
                   const struct code_state *state)
{
    struct code_value top = state->registers[checker->machine->stack_pointer];
    bool away = step->flow == FLOW_SOMEWHERE ||
                (step->flow == FLOW_JUMP && !is_inside(checker, step->target));
    return step->flow == FLOW_RETURN ||
           (away && top.kind == VALUE_FRAME && top.offset == checker->machine->entry_offset);
}

/* Nobody knows where the instruction at AT leads.  If it is the last one, nothing stands behind it.
 * Its target is then elsewhere: in the function, unless it has LEFT. */
static void keep_unknown_target(struct checker *checker, uint64_t at, uint64_t next, bool left)
{
    if (next < checker->size)
        keep_beyond(checker, next);
    else if (!left)
        keep_beyond(checker, at);
}

/* Follow the instruction at *AT.  Returns whether the next one is to be. */
static bool follow_one(struct checker *checker, uint64_t *at, struct code_state *state)
{
    struct code_step step =
        checker->machine->step(checker->code, checker->size, (size_t)*at, state);
    uint64_t next = *at + step.size;
    struct code_state there;
    bool left = leaves(checker, &step, state);
    if (step.flow == FLOW_UNKNOWN || step.flow == FLOW_SOMEWHERE)
        keep_unknown_target(checker, *at, next, left);
    if (left)
        take_return(checker, state);
    if ((step.flow == FLOW_JUMP || step.flow == FLOW_BRANCH) && is_inside(checker, step.target)) {
        there = *state;
        arrive(checker, (uint64_t)step.target, &there);
    }
    if (!goes_on(step.flow) || next >= checker->size ||
        (step.flow == FLOW_CALL && !comes_back(checker, *at, next, state)))
        return false;
    *at = next;
    return true;
}

static void follow_block(struct checker *checker, const struct block *block)
{
    struct code_state state = block->state;
    uint64_t at = block->at;
    while (checker->steps && follow_one(checker, &at, &state)) {
        checker->steps--;
        if (checker->marks[at] & MARK_TARGET) {
            arrive(checker, at, &state);
            return;
        }
        compare(checker, at, &state);
    }
    if (checker->steps == 0)
        keep_beyond(checker, at);
}

/* The lowest first: code mostly leads on. */
static void follow_all(struct checker *checker)
{
    while (checker->pending_from < checker->target_count) {
        struct block *block = &checker->blocks[checker->pending_from];
        if (!block->pending)
            checker->pending_from++;
        else {
            block->pending = false;
            follow_block(checker, block);
        }
    }
}

/* The row in which the function, or a part of it, is entered at AT.  A part that only exceptions
 * lead to begins with a nop of gcc's: the row behind the nop counts. */
static const struct frame_row *entry_row(const struct checker *checker, uint64_t *at)
{
    const struct frame_row *first = jd_frame_row_at(&checker->rows, *at);
    uint64_t behind = behind_filling(checker, *at);
    if (behind >= checker->size || !jd_frame_is_entry(checker->machine, first))
        return first;
    const struct frame_row *second = jd_frame_row_at(&checker->rows, behind);
    if (!second->covered || jd_frame_rows_equal(checker->machine, first, second))
        return first;
    *at = behind;
    return second;
}

/* The function may be entered at AT. */
static void enter(struct checker *checker, uint64_t at)
{
    bool whole = at == 0;
    const struct frame_row *row = entry_row(checker, &at);
    struct code_state state;
    jd_frame_entry_state(checker->machine, row, &state);
    if (whole)
        checker->out->on_trust = row->covered && !jd_frame_is_entry(checker->machine, row);
    arrive(checker, at, &state);
    follow_all(checker);
}

/* ---- All of it ---- */

/* The function's begin, then where an FDE begins in what was not reached.  The entries are the
 * FIRST targets, ascending. */
static void check_code(struct checker *checker)
{
    discover(checker, 0);
    for (size_t i = 0; i < checker->rows.count; i++) {
        const struct frame_row *row = &checker->rows.rows[i];
        if (row->begins && !(checker->marks[row->start] & MARK_SEEN))
            discover(checker, row->start);
    }
    make_blocks(checker);
    if (checker->no_memory)
        return;
    checker->pending_from = checker->target_count;
    enter(checker, 0);
    for (size_t i = 0; i < checker->rows.count; i++) {
        const struct frame_row *row = &checker->rows.rows[i];
        if (row->begins && checker->marks[row->start] & MARK_TARGET &&
            !block_at(checker, row->start)->known)
            enter(checker, row->start);
    }
}

static void release(struct checker *checker)
{
    free(checker->marks);
    free(checker->targets);
    free(checker->blocks);
    jd_frame_rows_free(&checker->rows);
}

int jd_frame_check(struct frame_check *check, const struct code_machine *machine,
                   const struct frame_fde *fdes, size_t count, const void *code, uint64_t size)
{
    struct checker checker = {.machine = machine,
                              .code = code,
                              .size = (size_t)size,
                              .steps = size * STEPS_PER_BYTE,
                              .out = check};
    *check = (struct frame_check){.beyond = UINT64_MAX};
    if (size > LARGEST_BYTES)
        return -EFBIG;
    if (count == 0 || size == 0)
        return 0;
    for (unsigned reg = 0; reg < CODE_REGISTERS; reg++)
        checker.lost_at[reg] = UINT64_MAX;
    checker.marks = calloc(1, (size_t)size);
    checker.no_memory =
        !checker.marks || jd_frame_rows_make(&checker.rows, machine, fdes, count, size);
    if (!checker.no_memory)
        check_code(&checker);
    release(&checker);
    return checker.no_memory ? -ENOMEM : 0;
}
