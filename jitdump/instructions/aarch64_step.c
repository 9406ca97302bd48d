/* See code_step.h: aarch64.
 *
 *      31..26 25..0     b, bl                  x00101 imm26
 *      31..24           b.cond                 01010100 imm19 0 cond
 *                       cbz, cbnz              x011010x imm19 Rt
 *                       tbz, tbnz              x011011x b40 imm14 Rt
 *                       add, sub immediate     sf op S 100010 sh imm12 Rn Rd
 *                       orr (mov)              sf 0101010 shift 0 Rm imm6 Rn Rd
 *                       stp, ldp               opc 101 V mode L imm7 Rt2 Rn Rt
 *                       str, ldr               size 111 V 0x opc ... Rn Rt
 *
 * Source: Arm ARM, C4.1 and C6.2; AAPCS64, 6.1. */
#include "jitdump/format/byte_cursor.h"
#include "jitdump/instructions/code_step.h"

#include <elf.h>
#include <stdio.h>

enum { WORD_BYTES = 4, FP = 29, LR = 30, SP = 31, D8 = 32, DWARF_D8 = 72, XZR = 31 };

static const char names[CODE_REGISTERS][4] = {
    "x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",  "x7",  "x8",  "x9",
    "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19",
    "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29",
    "x30", "sp",  "d8",  "d9",  "d10", "d11", "d12", "d13", "d14", "d15"};

static const uint8_t saved[] = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28,
                                FP, LR, 32, 33, 34, 35, 36, 37, 38, 39};

static uint32_t word_at(const uint8_t *code, size_t at)
{
    struct byte_cursor cursor = byte_cursor_over(code + at, WORD_BYTES, false);
    return cursor_u32(&cursor);
}

/* COUNT bits of WORD from LOW on, and the same with a sign. */
static uint32_t bits(uint32_t word, unsigned low, unsigned count)
{
    return word >> low & ((1u << count) - 1);
}

static int64_t signed_bits(uint32_t word, unsigned low, unsigned count)
{
    return (int64_t)((uint64_t)word << (64 - low - count)) >> (64 - count);
}

/* ---- Registers ---- */

/* The vector register NUMBER: only the lower halves of 8 to 15 are followed; NO_REGISTER. */
static unsigned vector(unsigned number)
{
    return number >= 8 && number <= 15 ? D8 + number - 8 : NO_REGISTER;
}

static struct code_value get(const struct code_state *state, unsigned reg)
{
    return reg < CODE_REGISTERS ? state->registers[reg] : value_unknown();
}

static void set(struct code_state *state, unsigned reg, struct code_value value)
{
    if (reg < CODE_REGISTERS)
        jd_state_set(state, reg, FP, value);
}

/* A destination; 31 is the zero register. */
static void set_plain(struct code_state *state, unsigned number, struct code_value value)
{
    if (number != XZR)
        set(state, number, value);
}

/* ---- Loads and stores ---- */

struct transfer {
    unsigned registers[2]; /* followed ones, or NO_REGISTER */
    unsigned count;
    unsigned bytes;      /* of each */
    bool load, followed; /* of all eight bytes */
    unsigned base;
    int64_t offset;    /* from the base, of the access */
    int64_t writeback; /* added to the base */
};

/* A saved register gets its value back from its place: this proves that the stack pointer has its
 * known value. */
static struct code_value loaded(struct code_state *state, const struct transfer *what, unsigned reg,
                                struct code_value address)
{
    struct code_value value = what->followed ? jd_state_load(state, address) : value_unknown();
    if (what->base != SP || !state->doubtful)
        return value;
    if (!value_is_entry(value, reg))
        return value_unknown();
    state->doubtful = false;
    return value;
}

static void transfer_one(struct code_state *state, const struct transfer *what, unsigned i,
                         struct code_value address)
{
    unsigned reg = what->registers[i];
    if (what->load)
        set(state, reg, loaded(state, what, reg, address));
    else
        jd_state_store(state, address, what->bytes,
                       what->followed ? get(state, reg) : value_unknown());
}

static void do_transfer(struct code_state *state, const struct transfer *what)
{
    struct code_value base = get(state, what->base);
    struct code_value address = base.kind == VALUE_ENTRY ? base : value_plus(base, what->offset);
    for (unsigned i = 0; i < what->count; i++) {
        transfer_one(state, what, i, address);
        address = address.kind == VALUE_ENTRY ? address : value_plus(address, what->bytes);
    }
    if (what->writeback)
        set(state, what->base, value_plus(base, what->writeback));
}

/* The register of a load or store: 31 is zero, which is none. */
static unsigned transferred(unsigned number, bool is_vector)
{
    return is_vector ? vector(number) : number == XZR ? NO_REGISTER : number;
}

static void do_pair(struct code_state *state, uint32_t word)
{
    bool is_vector = bits(word, 26, 1);
    unsigned opc = bits(word, 30, 2), mode = bits(word, 23, 2);
    unsigned bytes = is_vector ? 4u << opc : opc == 2 ? 8 : 4;
    int64_t by = signed_bits(word, 15, 7) * (int64_t)bytes;
    struct transfer what = {
        .registers = {transferred(bits(word, 0, 5), is_vector),
                      transferred(bits(word, 10, 5), is_vector)},
        .count = 2,
        .bytes = bytes,
        .load = bits(word, 22, 1),
        .followed = bytes == 8,
        .base = bits(word, 5, 5),
        .offset = mode == 1 ? 0 : by,
        .writeback = mode & 1 ? by : 0,
    };
    do_transfer(state, &what);
}

/* A store to where no register says, or an atomic. */
static void do_indexed(struct code_state *state, uint32_t word, bool load)
{
    struct code_value base = get(state, bits(word, 5, 5));
    bool atomic = bits(word, 10, 2) == 0;
    if (atomic || !load)
        jd_state_store(state, base.kind == VALUE_ENTRY ? base : value_unknown(), 16,
                       value_unknown());
    if (atomic || load)
        set(state, transferred(bits(word, 0, 5), bits(word, 26, 1)), value_unknown());
}

/* Loads and stores of one register, with an unsigned, unscaled, pre- or post-indexed immediate, or
 * a register. */
static void do_single(struct code_state *state, uint32_t word)
{
    bool is_vector = bits(word, 26, 1), scaled = bits(word, 24, 1);
    unsigned size = bits(word, 30, 2), opc = bits(word, 22, 2), form = bits(word, 10, 2);
    unsigned bytes = is_vector && opc >= 2 ? 16 : 1u << size;
    bool prefetch = !is_vector && size == 3 && opc == 2;
    bool load = is_vector ? opc & 1 : opc != 0;
    int64_t by = scaled ? (int64_t)bits(word, 10, 12) * (int64_t)bytes : signed_bits(word, 12, 9);
    struct transfer what = {
        .registers = {transferred(bits(word, 0, 5), is_vector)},
        .count = 1,
        .bytes = bytes,
        .load = load,
        .followed = bytes == 8,
        .base = bits(word, 5, 5),
        .offset = !scaled && form == 1 ? 0 : by,
        .writeback = !scaled && form & 1 ? by : 0,
    };
    if (prefetch)
        return;
    if (!scaled && bits(word, 21, 1))
        do_indexed(state, word, load);
    else
        do_transfer(state, &what);
}

/* ldr from the code, exclusives, structures of vectors, tags */
static void do_other_transfer(struct code_state *state, uint32_t word)
{
    bool is_vector = bits(word, 26, 1), literal = bits(word, 27, 3) == 3 && !bits(word, 24, 1);
    unsigned base = bits(word, 5, 5);
    if (literal) {
        set(state, transferred(bits(word, 0, 5), is_vector), value_unknown());
        return;
    }
    jd_state_store(state, get(state, base), 64, value_unknown());
    if (is_vector)
        for (unsigned i = 0; i < 4; i++)
            set(state, vector((bits(word, 0, 5) + i) & 31), value_unknown());
    else
        for (unsigned low = 0; low <= 16; low += low ? 6 : 10)
            set_plain(state, bits(word, low, 5), value_unknown());
    bool exclusive = bits(word, 24, 6) == 8;
    if (!exclusive) /* writeback, of many kinds */
        set(state, base, value_unknown());
}

static void do_memory(struct code_state *state, uint32_t word)
{
    unsigned kind = bits(word, 27, 3);
    bool tagged_pair = bits(word, 30, 2) == 1 && !bits(word, 26, 1) && !bits(word, 22, 1);
    bool signed_load = !bits(word, 24, 1) && bits(word, 21, 1) && bits(word, 10, 1);
    if (kind == 5 && !tagged_pair)
        do_pair(state, word);
    else if (kind == 7 && !signed_load)
        do_single(state, word);
    else
        do_other_transfer(state, word);
}

/* ---- Computing ---- */

static void do_add_immediate(struct code_state *state, uint32_t word)
{
    bool wide = bits(word, 31, 1), subtract = bits(word, 30, 1), flags = bits(word, 29, 1);
    unsigned to = bits(word, 0, 5);
    int64_t by = (int64_t)bits(word, 10, 12) << (bits(word, 22, 1) ? 12 : 0);
    struct code_value value = value_plus(get(state, bits(word, 5, 5)), subtract ? -by : by);
    if (flags)
        set_plain(state, to, value_unknown());
    else
        set(state, to, wide ? value : value_unknown());
    if (to == SP && !flags && bits(word, 5, 5) != SP)
        state->doubtful = false;
}

/* mov xd, xm */
static bool is_move(uint32_t word)
{
    return (word & 0xffe0ffe0) == 0xaa0003e0;
}

static void do_vector(struct code_state *state, uint32_t word)
{
    bool converts = bits(word, 24, 5) == 0x1e && bits(word, 21, 1) && bits(word, 10, 6) == 0;
    bool element = (word & 0xbfe0fc00) == 0x0e003c00 || (word & 0xbfe0fc00) == 0x0e002c00;
    set(state, vector(bits(word, 0, 5)), value_unknown());
    if (converts || element)
        set_plain(state, bits(word, 0, 5), value_unknown());
}

/* Data processing with immediates: the destinations of and, orr and eor may be sp. */
static void do_immediate(struct code_state *state, uint32_t word)
{
    unsigned kind = bits(word, 23, 3);
    if (kind == 2)
        do_add_immediate(state, word);
    else if (kind == 4 && bits(word, 29, 2) != 3)
        set(state, bits(word, 0, 5), value_unknown());
    else
        set_plain(state, bits(word, 0, 5), value_unknown());
}

static void do_register(struct code_state *state, uint32_t word)
{
    bool extended = (word & 0x1fe00000) == 0x0b200000 && !bits(word, 29, 1);
    bool compares = (word & 0x1fe00000) == 0x1a400000; /* ccmp, ccmn */
    if (is_move(word))
        set_plain(state, bits(word, 0, 5), get(state, transferred(bits(word, 16, 5), false)));
    else if (extended)
        set(state, bits(word, 0, 5), value_unknown());
    else if (!compares)
        set_plain(state, bits(word, 0, 5), value_unknown());
}

/* ---- Branches, exceptions, hints ---- */

static void call(struct code_state *state)
{
    jd_state_call(state);
    for (unsigned reg = 0; reg <= 18; reg++)
        set(state, reg, value_unknown());
    set(state, LR, value_unknown());
}

/* Signing the return address in x30 does not change its value here. */
static void do_hint(struct code_state *state, uint32_t word)
{
    switch (word) {
    case 0xd503233f: /* paciasp, pacibsp, paciaz, pacibz */
    case 0xd503237f:
    case 0xd503231f:
    case 0xd503235f:
        state->signing = ADDRESS_SIGNED;
        break;
    case 0xd50323bf: /* autiasp, ... */
    case 0xd50323ff:
    case 0xd503239f:
    case 0xd50323df:
        state->signing = ADDRESS_PLAIN;
        break;
    default:
        break;
    }
}

static void do_system(struct code_state *state, uint32_t word)
{
    bool is_hint = (word & 0xfffff01f) == 0xd503201f;
    if (is_hint)
        do_hint(state, word);
    else if ((word & 0xffe00000) == 0xd5200000) /* mrs, sysl */
        set_plain(state, bits(word, 0, 5), value_unknown());
    else if ((word & 0xff000000) == 0xd4000000) /* svc */
        for (unsigned reg = 0; reg <= 17; reg++)
            set(state, reg, value_unknown());
}

static enum code_flow flow_of_register_branch(uint32_t word)
{
    switch (bits(word, 21, 4)) {
    case 1: /* blr, blraa */
    case 9:
        return FLOW_CALL;
    case 2: /* ret, retaa */
        return FLOW_RETURN;
    default:
        return FLOW_SOMEWHERE;
    }
}

/* Instructions that lead elsewhere; *BY: the distance. */
static enum code_flow flow_of(uint32_t word, int64_t *by)
{
    *by = 0;
    if (bits(word, 26, 5) == 5) {
        *by = signed_bits(word, 0, 26) * WORD_BYTES;
        return bits(word, 31, 1) ? (*by == WORD_BYTES ? FLOW_NEXT : FLOW_CALL) : FLOW_JUMP;
    }
    if (bits(word, 25, 6) == 0x1a || bits(word, 24, 8) == 0x54) {
        *by = signed_bits(word, 5, 19) * WORD_BYTES;
        return FLOW_BRANCH;
    }
    if (bits(word, 25, 6) == 0x1b) {
        *by = signed_bits(word, 5, 14) * WORD_BYTES;
        return FLOW_BRANCH;
    }
    if (bits(word, 25, 7) == 0x6b)
        return flow_of_register_branch(word);
    if ((word & 0xffe0001f) == 0xd4200000 || word >> 16 == 0)
        return FLOW_STOP; /* brk, udf */
    return FLOW_NEXT;
}

/* b, bl, b.cond, cbz, tbz, br, svc, mrs */
static bool is_branch_or_system(uint32_t word)
{
    return bits(word, 26, 3) == 5;
}

/* op0, bits 28 to 25 of each instruction, says of what kind it is.  Returns false for one that is
 * not known. */
static bool do_it(struct code_state *state, uint32_t word, enum code_flow flow)
{
    unsigned kind = bits(word, 25, 4);
    if (flow == FLOW_CALL)
        call(state);
    else if (is_branch_or_system(word) && bits(word, 26, 5) == 5)
        set(state, LR, bits(word, 31, 1) ? value_unknown() : get(state, LR));
    else if (is_branch_or_system(word))
        do_system(state, word);
    else if ((kind & 5) == 4)
        do_memory(state, word);
    else if ((kind & 14) == 8)
        do_immediate(state, word);
    else if ((kind & 7) == 5)
        do_register(state, word);
    else if ((kind & 7) == 7)
        do_vector(state, word);
    else
        return kind == 2; /* SVE: of vectors; else nothing that is known */
    return true;
}

static struct code_step step(const uint8_t *code, size_t size, size_t at, struct code_state *state)
{
    if (size - at < WORD_BYTES || at % WORD_BYTES)
        return (struct code_step){.flow = FLOW_UNKNOWN};
    uint32_t word = word_at(code, at);
    int64_t by;
    struct code_step step = {.size = WORD_BYTES, .flow = flow_of(word, &by)};
    step.target = (int64_t)at + by;
    if (state && step.flow != FLOW_STOP && !do_it(state, word, step.flow))
        return (struct code_step){.flow = FLOW_UNKNOWN};
    return step;
}

static bool is_filling(const uint8_t *code, size_t size, size_t at)
{
    return size - at >= WORD_BYTES && word_at(code, at) == 0xd503201f;
}

/* ---- In words ---- */

static void print_pair(uint32_t word, char *text, size_t text_bytes)
{
    int64_t by = signed_bits(word, 15, 7) * 8;
    unsigned mode = bits(word, 23, 2), base = bits(word, 5, 5);
    snprintf(text, text_bytes,
             mode == 1 ? "%s %c%u, %c%u, [%s], #%lld" : "%s %c%u, %c%u, [%s, #%lld]%s",
             bits(word, 22, 1) ? "ldp" : "stp", bits(word, 26, 1) ? 'd' : 'x', bits(word, 0, 5),
             bits(word, 26, 1) ? 'd' : 'x', bits(word, 10, 5), names[base], (long long)by,
             mode == 3 ? "!" : "");
}

static void print_add(uint32_t word, char *text, size_t text_bytes)
{
    unsigned by = bits(word, 10, 12) << (bits(word, 22, 1) ? 12 : 0);
    const char *to = names[bits(word, 0, 5)], *from = names[bits(word, 5, 5)];
    if (by == 0)
        snprintf(text, text_bytes, "mov %s, %s", to, from);
    else
        snprintf(text, text_bytes, "%s %s, %s, #%u", bits(word, 30, 1) ? "sub" : "add", to, from,
                 by);
}

static void print(const uint8_t *code, size_t size, size_t at, char *text, size_t text_bytes)
{
    uint32_t word = size - at < WORD_BYTES ? 0 : word_at(code, at);
    bool pair = bits(word, 27, 3) == 5 && bits(word, 23, 2) &&
                bits(word, 30, 2) == (bits(word, 26, 1) ? 1 : 2);
    int64_t by;
    if (pair)
        print_pair(word, text, text_bytes);
    else if (bits(word, 31, 1) && bits(word, 29, 1) == 0 && bits(word, 23, 6) == 0x22)
        print_add(word, text, text_bytes);
    else if (flow_of(word, &by) == FLOW_RETURN)
        snprintf(text, text_bytes, "ret");
    else if (flow_of(word, &by) == FLOW_CALL)
        snprintf(text, text_bytes, "bl");
    else
        snprintf(text, text_bytes, "%08x", word);
}

const struct code_machine jd_machine_aarch64 = {
    .elf_mach = EM_AARCH64,
    .stack_pointer = SP,
    .return_address = LR,
    .entry_offset = 0,
    .saved_count = sizeof saved,
    .saved = saved,
    .names = names,
    .plain_registers = D8,
    .moved_from = DWARF_D8,
    .signs_returns = true,
    .step = step,
    .is_filling = is_filling,
    .print = print,
};
