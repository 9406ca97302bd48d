/* See table_program.h.  Source: DWARF 5, sections 2.5, 6.4 and 7.24.
 *
 * Our own backtraces announce that they read (read_marks.h).  Another unwinder can't.  A number
 * that was reused meanwhile may lead its search into another granule's list.  So if the search
 * finds nothing and a number was reused, it begins again.  The function that it does find is on the
 * stack, so it does not change.  A function that is just being written has no bytes.
 *
 * Operators that compare are signed in libgcc and unsigned in LLVM's libunwind: both operands have
 * to be below 1 << 63.
 */
#include "jitunwind/frames/table_program.h"

#include "jitdump/format/cfa_opcode.h"

#if defined(__x86_64__)

enum {
    OP_deref = 0x06,
    OP_const1u = 0x08,
    OP_const2u = 0x0a,
    OP_const8u = 0x0e,
    OP_dup = 0x12,
    OP_drop = 0x13,
    OP_over = 0x14,
    OP_pick = 0x15,
    OP_swap = 0x16,
    OP_rot = 0x17,
    OP_and = 0x1a,
    OP_minus = 0x1c,
    OP_mul = 0x1e,
    OP_plus = 0x22,
    OP_plus_uconst = 0x23,
    OP_shl = 0x24,
    OP_shr = 0x25,
    OP_shra = 0x26,
    OP_bra = 0x28,
    OP_eq = 0x29,
    OP_le = 0x2c,
    OP_lt = 0x2d,
    OP_ne = 0x2e,
    OP_skip = 0x2f,
    OP_lit0 = 0x30,
    OP_breg0 = 0x70,
    OP_deref_size = 0x94,
    MINUS_WORD = 0x78, /* as a signed LEB128 */
    WORD = 8,
    NEVER = 0, /* where a branch that is not yet known goes */
};

_Static_assert(sizeof(struct table_granule) == 8 && sizeof(struct table_row) == 8 &&
                   GRANULE_BYTES == 64,
               "shifted by 3 and 6 below");
_Static_assert(sizeof(struct table_function) < 128 && sizeof(struct frame_rule) < 128 &&
                   PROGRAM_BYTES < 1 << 14,
               "one byte, and two of LEB128, hold them");

struct program {
    const struct function_table *table;
    uint8_t *at;
};

static void put(struct program *program, unsigned byte)
{
    *program->at++ = (uint8_t)byte;
}

static void put_all(struct program *program, const size_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        put(program, (unsigned)bytes[i]);
}

#define PUT(program, ...)                                                                          \
    put_all(program, (const size_t[]){__VA_ARGS__},                                                \
            sizeof((size_t[]){__VA_ARGS__}) / sizeof(size_t))

static void put_word(struct program *program, uint64_t word)
{
    memcpy(program->at, &word, sizeof word);
    program->at += sizeof word;
}

static void push_number(struct program *program, uint64_t number)
{
    put(program, OP_const8u);
    put_word(program, number);
}

static void push_address(struct program *program, const void *address)
{
    push_number(program, (uint64_t)(uintptr_t)address);
}

static void push_register(struct program *program, unsigned reg)
{
    PUT(program, OP_breg0 + reg, 0);
}

/* The field of BYTES that is OFFSET behind the address on top. */
static void load(struct program *program, size_t offset, unsigned bytes)
{
    PUT(program, OP_plus_uconst, offset, OP_deref_size, bytes);
}

#define LOAD(program, type, field)                                                                 \
    load(program, offsetof(type, field), sizeof(((const type *)NULL)->field))

/* The signed number of BITS that is on top. */
static void extend_sign(struct program *program, unsigned bits)
{
    PUT(program, OP_const1u, 64 - bits, OP_shl, OP_const1u, 64 - bits, OP_shra);
}

/* Returns the branch, whose aim is set later unless it is TO. */
static uint8_t *branch(struct program *program, unsigned opcode, const uint8_t *to)
{
    put(program, opcode);
    uint8_t *from = program->at;
    int16_t by = to ? (int16_t)(to - (from + 2)) : NEVER;
    memcpy(from, &by, sizeof by);
    program->at += sizeof by;
    return from;
}

static void land(const struct program *program, uint8_t *from)
{
    int16_t by = (int16_t)(program->at - (from + 2));
    memcpy(from, &by, sizeof by);
}

/* ---- The program counter ---- */

/* The forms of call: e8, and ff /2, of which the byte behind ff says how long it is.  With a prefix
 * they are longer, which does not matter.  The shorter ones come first. */
static const struct {
    uint8_t bytes, first, mask, value;
} call_forms[] = {
    {2, 0xff, 0xf8, 0xd0}, /* register */
    {2, 0xff, 0xf8, 0x10}, /* [register] */
    {3, 0xff, 0xf8, 0x50}, /* [register + 8 bits] */
    {3, 0xff, 0xff, 0x14}, /* [register + index] */
    {4, 0xff, 0xff, 0x54}, /* [register + index + 8 bits] */
    {5, 0xe8, 0x00, 0x00}, /* rip + 32 bits */
    {6, 0xff, 0xf8, 0x90}, /* [register + 32 bits] */
    {6, 0xff, 0xff, 0x15}, /* [rip + 32 bits] */
    {7, 0xff, 0xff, 0x94}, /* [register + index + 32 bits] */
    {7, 0xff, 0xff, 0x14}, /* [index + 32 bits] */
};

/* Replace the address on top by the address of the byte in front of it.  This is done if a call
 * ends at the address and begins in the same page.  The page below may not be mapped.  Taken for no
 * call, one that begins there does no harm: the frame behind a call is that of the call, unless the
 * function ends with it. */
static void step_back_behind_call(struct program *program)
{
    enum { FORMS = sizeof call_forms / sizeof call_forms[0] };
    uint8_t *calls[FORMS], *not_there[FORMS] = {NULL};
    for (size_t i = 0; i < FORMS; i++) {
        unsigned bytes = call_forms[i].bytes;
        if (i == 0 || bytes != call_forms[i - 1].bytes) {
            PUT(program, OP_dup, OP_const2u, 0xff, 0x0f, OP_and, OP_lit0 + bytes, OP_lt);
            not_there[i] = branch(program, OP_bra, NULL);
        }
        PUT(program, OP_dup, OP_lit0 + bytes, OP_minus, OP_deref_size, 2);
        PUT(program, OP_const2u, 0xff, call_forms[i].mask, OP_and);
        PUT(program, OP_const2u, call_forms[i].first, call_forms[i].value, OP_eq);
        calls[i] = branch(program, OP_bra, NULL);
    }
    uint8_t *no_call = branch(program, OP_skip, NULL);
    for (size_t i = 0; i < FORMS; i++)
        land(program, calls[i]);
    PUT(program, OP_lit0 + 1, OP_minus);
    land(program, no_call);
    for (size_t i = 0; i < FORMS; i++)
        if (not_there[i])
            land(program, not_there[i]);
}

/* The instruction whose rule is wanted.  For a call, the address is in front of the return address,
 * which the call has left right below the current stack.  For an interrupted instruction, it is the
 * instruction itself.  If the stack pointer is at the begin of a page, the page below may not be
 * mapped: a push without room is interrupted like that. */
static void push_pc(struct program *program)
{
    push_register(program, MACHINE_RETURN);
    push_register(program, MACHINE_SP);
    PUT(program, OP_const2u, 0xff, 0x0f, OP_and);
    uint8_t *within = branch(program, OP_bra, NULL);
    step_back_behind_call(program);
    uint8_t *end = branch(program, OP_skip, NULL);
    land(program, within);
    PUT(program, OP_dup, OP_breg0 + MACHINE_SP, MINUS_WORD, OP_deref, OP_eq, OP_minus);
    land(program, end);
}

/* That once more, from below the COUNT values on top. */
static void pick_pc(struct program *program, unsigned count)
{
    PUT(program, OP_pick, count);
}

/* ---- Finding the function ---- */

/* The program counter and the count of reuses are on the stack. */
static void push_granule(struct program *program, size_t field)
{
    push_address(program, program->table->granules);
    pick_pc(program, 2);
    push_number(program, program->table->start);
    PUT(program, OP_minus, OP_lit0 + 6, OP_shr, OP_lit0 + 3, OP_shl, OP_plus);
    load(program, field, sizeof(uint32_t));
}

/* From a number, on the count of reuses, to its function, and whether that has the program counter.
 */
static void look_at_function(struct program *program)
{
    PUT(program, OP_const1u, sizeof(struct table_function), OP_mul);
    push_address(program, program->table->functions);
    PUT(program, OP_plus, OP_dup);
    LOAD(program, struct table_function, bytes);
    put(program, OP_over);
    LOAD(program, struct table_function, start);
    pick_pc(program, 4);
    PUT(program, OP_swap, OP_minus); /* function, bytes, pc - start */
    PUT(program, OP_dup, OP_const1u, 32, OP_shr, OP_lit0, OP_eq);
    PUT(program, OP_swap, OP_pick, 2, OP_lt, OP_and);
    PUT(program, OP_swap, OP_pick, 2); /* function, so far, bytes, function */
    LOAD(program, struct table_function, bytes);
    PUT(program, OP_eq, OP_and); /* unless it was written meanwhile */
}

static void push_reuses(struct program *program)
{
    push_number(program, (uint64_t)(uintptr_t)&program->table->reuses);
    PUT(program, OP_deref_size, sizeof program->table->reuses);
}

/* The function, or 0, on the program counter. */
static void push_function(struct program *program)
{
    uint8_t *again = program->at;
    push_reuses(program);
    push_granule(program, offsetof(struct table_granule, covering));
    put(program, OP_dup);
    uint8_t *some = branch(program, OP_bra, NULL);
    uint8_t *to_list = branch(program, OP_skip, NULL);
    land(program, some);
    look_at_function(program);
    uint8_t *covered = branch(program, OP_bra, NULL);
    land(program, to_list);
    put(program, OP_drop);
    push_granule(program, offsetof(struct table_granule, first));
    uint8_t *list = program->at; /* reuses, number */
    PUT(program, OP_dup, OP_lit0, OP_eq);
    uint8_t *missing = branch(program, OP_bra, NULL);
    look_at_function(program);
    uint8_t *listed = branch(program, OP_bra, NULL);
    LOAD(program, struct table_function, next);
    branch(program, OP_skip, list);
    land(program, missing);
    put(program, OP_drop);
    push_reuses(program);
    put(program, OP_ne);
    branch(program, OP_bra, again);
    PUT(program, OP_lit0, OP_lit0);
    land(program, covered);
    land(program, listed);
    PUT(program, OP_swap, OP_drop);
}

/* ---- Finding the rule ---- */

/* Push the number of the function's rows that begin at or before the program counter.  The function
 * stays below it. */
static void count_rows(struct program *program)
{
    PUT(program, OP_lit0, OP_over);
    LOAD(program, struct table_function, row_count);
    uint8_t *halve = program->at; /* function, low, high */
    PUT(program, OP_over, OP_over, OP_eq);
    uint8_t *end = branch(program, OP_bra, NULL);
    PUT(program, OP_over, OP_over, OP_plus, OP_lit0 + 1, OP_shr, OP_dup, OP_pick, 4);
    LOAD(program, struct table_function, first_row);
    PUT(program, OP_plus, OP_lit0 + 3, OP_shl);
    push_address(program, program->table->rows);
    put(program, OP_plus);
    LOAD(program, struct table_row, offset);
    PUT(program, OP_pick, 4);
    LOAD(program, struct table_function, start);
    pick_pc(program, 6);
    PUT(program, OP_swap, OP_minus, OP_le); /* function, low, high, middle, whether it counts */
    uint8_t *counts = branch(program, OP_bra, NULL);
    PUT(program, OP_swap, OP_drop);
    branch(program, OP_skip, halve);
    land(program, counts);
    PUT(program, OP_plus_uconst, 1, OP_rot, OP_swap, OP_drop);
    branch(program, OP_skip, halve);
    land(program, end);
    put(program, OP_drop);
}

/* Replace the rule by 0 unless it is of the usual form and its CFA is found from a register that
 * functions preserve: of others unwinders know nothing. */
static void check_rule(struct program *program)
{
    enum { PRESERVED = 0xf0c8 };
    put(program, OP_dup);
    LOAD(program, struct frame_rule, kind);
    PUT(program, OP_lit0 + RULE_OFFSET, OP_eq, OP_over);
    PUT(program, OP_const2u, PRESERVED & 0xff, PRESERVED >> 8, OP_swap);
    LOAD(program, struct frame_rule, cfa_register);
    PUT(program, OP_shr, OP_lit0 + 1, OP_and, OP_and, OP_mul);
}

/* The rule that holds at the program counter; 1: its function has none; 0: it is in no function. */
static void push_rule(struct program *program)
{
    push_pc(program);
    push_function(program);
    PUT(program, OP_dup, OP_lit0, OP_eq);
    uint8_t *no_function = branch(program, OP_bra, NULL);
    count_rows(program);
    PUT(program, OP_swap, OP_over);
    PUT(program, OP_lit0, OP_eq); /* count, function, whether there is none */
    uint8_t *no_row = branch(program, OP_bra, NULL);
    LOAD(program, struct table_function, first_row);
    PUT(program, OP_plus, OP_lit0 + 1, OP_minus, OP_lit0 + 3, OP_shl);
    push_address(program, program->table->rows);
    put(program, OP_plus);
    LOAD(program, struct table_row, rule);
    PUT(program, OP_const1u, sizeof(struct frame_rule), OP_mul);
    push_address(program, program->table->rules);
    put(program, OP_plus); /* number 0 is not of the usual form */
    check_rule(program);
    uint8_t *checked = branch(program, OP_skip, NULL);
    land(program, no_row);
    put(program, OP_drop); /* the count is 0 */
    land(program, checked);
    PUT(program, OP_dup, OP_lit0, OP_eq, OP_plus);
    land(program, no_function);
    PUT(program, OP_swap, OP_drop); /* the program counter */
}

/* ---- What the rule says ---- */

/* Returns the branch for a rule. */
static uint8_t *branch_if_rule(struct program *program)
{
    PUT(program, OP_dup, OP_lit0 + 1, OP_shr);
    return branch(program, OP_bra, NULL);
}

static void write_cfa(struct program *program)
{
    enum { FIRST = 3, LAST = 15, FRAME_BYTES = 2 * WORD };
    uint8_t *ends[LAST + 1] = {NULL};
    push_rule(program);
    uint8_t *known = branch_if_rule(program);
    PUT(program, OP_drop, OP_breg0 + MACHINE_FP, FRAME_BYTES);
    ends[0] = branch(program, OP_skip, NULL);
    land(program, known);
    put(program, OP_dup);
    LOAD(program, struct frame_rule, cfa_offset);
    extend_sign(program, 32);
    put(program, OP_swap);
    LOAD(program, struct frame_rule, cfa_register);
    for (unsigned reg = FIRST; reg <= LAST; reg++) {
        PUT(program, OP_dup, OP_lit0 + reg, OP_ne);
        uint8_t *other = branch(program, OP_bra, NULL);
        put(program, OP_drop);
        push_register(program, reg);
        put(program, OP_plus);
        ends[reg] = branch(program, OP_skip, NULL);
        land(program, other);
    }
    for (unsigned i = 0; i <= LAST; i++)
        if (ends[i])
            land(program, ends[i]);
}

/* The value of a caller's register without a known place: its current value.  A return address has
 * none then: the frame is the outermost one. */
static void push_same(struct program *program, unsigned reg)
{
    PUT(program, OP_drop, OP_drop);
    if (reg == MACHINE_RETURN)
        put(program, OP_lit0);
    else
        push_register(program, reg);
}

/* The CFA and 1 or 0 are on the stack. */
static void push_by_frame_pointer(struct program *program, unsigned reg)
{
    if (reg != MACHINE_RETURN && reg != MACHINE_FP) {
        push_same(program, reg);
        return;
    }
    put(program, OP_dup);
    uint8_t *has_function = branch(program, OP_bra, NULL);
    push_same(program, reg);
    uint8_t *end = branch(program, OP_skip, NULL);
    land(program, has_function);
    PUT(program, OP_drop, OP_lit0 + (reg == MACHINE_FP ? 2 * WORD : WORD), OP_minus, OP_deref);
    land(program, end);
}

/* The CFA is on the stack. */
static void write_register(struct program *program, unsigned slot)
{
    const unsigned reg = machine_saved[slot];
    push_rule(program);
    uint8_t *known = branch_if_rule(program);
    push_by_frame_pointer(program, reg);
    uint8_t *by_frame_pointer = branch(program, OP_skip, NULL);
    land(program, known);
    load(program, offsetof(struct frame_rule, slots) + slot * sizeof(int16_t), sizeof(int16_t));
    /* SLOT_SAME, SLOT_UNDEFINED and SLOT_UNKNOWN follow each other. */
    PUT(program, OP_dup, OP_const2u, SLOT_SAME & 0xff, SLOT_SAME >> 8, OP_minus);
    PUT(program, OP_const2u, 0xff, 0xff, OP_and, OP_lit0 + 3, OP_lt);
    uint8_t *same = branch(program, OP_bra, NULL);
    extend_sign(program, 16);
    PUT(program, OP_lit0 + 3, OP_shl, OP_plus, OP_deref);
    uint8_t *saved = branch(program, OP_skip, NULL);
    land(program, same);
    push_same(program, reg);
    land(program, saved);
    land(program, by_frame_pointer);
}

/* ---- The entries ---- */

/* Leave room for a size of BYTES.  Returns where it is set. */
static uint8_t *begin(struct program *program, unsigned bytes)
{
    uint8_t *size = program->at;
    program->at += bytes;
    return size;
}

static void end_entry(struct program *program, uint8_t *size)
{
    enum { ALIGN = 8 };
    while ((program->at - size) % ALIGN)
        put(program, CFA_nop);
    uint32_t bytes = (uint32_t)(program->at - size) - (uint32_t)sizeof bytes;
    memcpy(size, &bytes, sizeof bytes);
}

static void end_block(const struct program *program, uint8_t *size)
{
    unsigned bytes = (unsigned)(program->at - (size + 2));
    size[0] = (uint8_t)(bytes & 0x7f) | 0x80; /* LEB128 */
    size[1] = (uint8_t)(bytes >> 7);
}

static void write_rules(struct program *program)
{
    put(program, CFA_def_cfa_expression);
    uint8_t *block = begin(program, 2);
    write_cfa(program);
    end_block(program, block);
    for (unsigned slot = 0; slot < MACHINE_SAVED; slot++) {
        put(program, CFA_val_expression);
        put(program, machine_saved[slot]);
        block = begin(program, 2);
        write_register(program, slot);
        end_block(program, block);
    }
}

uint8_t *ju_table_program_write(struct function_table *table)
{
    struct program program = {table, table->program};
    uint8_t *entry = begin(&program, 4);
    /* the CIE: no number, version 1, no augmentation, factors 1 and -8 */
    PUT(&program, 0, 0, 0, 0, 1, 0, 1, 0x78, MACHINE_RETURN);
    end_entry(&program, entry);
    uint8_t *fde = entry = begin(&program, 4);
    uint32_t back = (uint32_t)(program.at - table->program);
    memcpy(begin(&program, sizeof back), &back, sizeof back);
    put_word(&program, table->start);
    put_word(&program, table->bytes);
    write_rules(&program);
    end_entry(&program, entry);
    put_word(&program, 0);
    return fde;
}

#else

uint8_t *ju_table_program_write(struct function_table *table)
{
    (void)table;
    return NULL;
}

#endif
