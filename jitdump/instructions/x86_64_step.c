/* See code_step.h: x86-64.
 *
 * Tables say which registers an instruction changes.  Instructions that move the stack pointer, or
 * a tracked value, have code of their own.  Sources: Intel SDM, volume 2; System V ABI, AMD64
 * supplement, 3.2. */
#include "jitdump/instructions/code_step.h"
#include "jitdump/instructions/x86_64_decoder.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

/* By the instructions' numbers: DWARF's. */
static const uint8_t dwarf[16] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};

static const char names[17][4] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
                                  "r9",  "r10", "r11", "r12", "r13", "r14", "r15", "ra"};

enum { RAX = 0, RDX = 1, RCX = 2, RBX = 3, RSI = 4, RDI = 5, RBP = 6, RSP = 7, R11 = 11, RIP = 16 };
enum { WORD_BYTES = 8, REGISTER_MODE = 3, REPNE = 0xf2, REPEAT = 0xf3 };

static const uint8_t saved[] = {RBX, RBP, 12, 13, 14, 15, RIP};

/* ---- What an instruction changes ---- */

/* The registers and memory that an instruction changes:
 *
 *     .  no such register            r  ModRM's register      e  ModRM's operand, here or in memory
 *     E  ModRM's operand in memory   x  both                  a  rax
 *     d  rdx                         D  rax, rdx              o  the register in the opcode
 *     O  that and rax                k  rax, rdx, e           q  rax, rbx, rcx, rdx, e
 *     s  rsi, rdi, rcx, rax, and the memory at rdi            F  much memory, and rax
 *     v  the register in VEX.vvvv, and r                      *  it is done by hand
 */
static const char effects_0[] = "eerraa..eerraa.." /* 00 */
                                "eerraa..eerraa.."
                                "eerraa..eerraa.." /* 20 */
                                "eerraa.........."
                                "................" /* 40 */
                                "****************"
                                "...r....*r*rssss" /* 60 */
                                "****************"
                                "****..**e*r*e*.*" /* 80 */
                                "OOOOOOOOad..**.a"
                                "aa..ssss..ssssss" /* a0 */
                                "oooooooooooooooo"
                                "ee**..ee*****a.*" /* c0 */
                                "eeee...aFFFFFFFF"
                                "****aa..**.*aa.." /* e0 */
                                ".*..*.**......e*";
static const char effects_1[] = "eqrr.*.*...*...." /* 00 */
                                ".E.E...E......*."
                                "ee.......E.Err.." /* 20 */
                                ".DDD**.q........"
                                "rrrrrrrrrrrrrrrr" /* 40 */
                                "r..............."
                                "................" /* 60 */
                                "........e.....*E"
                                "****************" /* 80 */
                                "eeeeeeeeeeeeeeee"
                                "**q.ee..**.eeeFr" /* a0 */
                                "kkrerrrrr.eerrrr"
                                "xx.E.r.koooooooo" /* c0 */
                                "......Er........"
                                ".......E........" /* e0 */
                                ".......F........";

/* For SSE's instructions in their VEX and EVEX forms, and those with only these forms. */
static char vector_effect_1(const struct x86_instruction *in)
{
    bool scalar = in->prefix == REPEAT || in->prefix == REPNE;
    switch (in->opcode) {
    case 0x2c:
    case 0x2d:
    case 0x78:
    case 0x79:
        return scalar ? 'r' : '.';
    case 0x50:
    case 0x93: /* kmov */
    case 0xc5:
    case 0xd7:
        return 'r';
    case 0x7e:
        return in->prefix == REPEAT ? '.' : 'e';
    case 0x11:
    case 0x13:
    case 0x17:
    case 0x29:
    case 0x2b:
    case 0x7f:
    case 0x91:
    case 0xd6:
    case 0xe7:
        return 'E';
    default:
        return '.';
    }
}

static char effect_2(const struct x86_instruction *in)
{
    if (in->encoding == X86_LEGACY)
        return in->opcode >= 0xf0 ? (in->opcode == 0xf8 ? 'F' : 'x') : '.';
    if (in->encoding == X86_VEX && in->opcode >= 0xf2 && in->opcode <= 0xf7)
        return 'v'; /* BMI */
    return 'E';     /* some store, and which ones matters little */
}

static char effect_3(const struct x86_instruction *in)
{
    if (in->opcode >= 0x14 && in->opcode <= 0x17)
        return 'e'; /* pextr, extractps */
    if (in->encoding == X86_LEGACY)
        return '.';
    return in->encoding == X86_VEX && in->opcode == 0xf0 ? 'r' : 'E'; /* rorx; vextract */
}

static char effect_of(const struct x86_instruction *in)
{
    if (in->encoding == X86_XOP)
        return in->map == 8 ? '.' : 'v';
    switch (in->map) {
    case 0:
        return effects_0[in->opcode];
    case 1:
        return in->encoding == X86_LEGACY ? effects_1[in->opcode] : vector_effect_1(in);
    case 2:
        return effect_2(in);
    case 3:
        return effect_3(in);
    default: /* 5 and 6: 16-bit floating point */
        return in->map == 5 ? vector_effect_1(in) : '.';
    }
}

/* ---- Operands ---- */

static void set(struct code_state *state, unsigned number, struct code_value value)
{
    if (number < 16)
        jd_state_set(state, dwarf[number], RBP, value);
}

/* By DWARF's number. */
static void forget(struct code_state *state, unsigned reg)
{
    jd_state_set(state, reg, RBP, value_unknown());
}

static struct code_value get(const struct code_state *state, unsigned number)
{
    return number < 16 ? state->registers[dwarf[number]] : value_unknown();
}

/* The address of the memory operand.  One without a base is not on the stack. */
static struct code_value address_of(const struct x86_instruction *in,
                                    const struct code_state *state)
{
    struct code_value base =
        in->base == X86_NO_REGISTER ? value_entry(NO_REGISTER) : get(state, in->base);
    if (in->index != X86_NO_REGISTER)
        return base.kind == VALUE_ENTRY && in->base != X86_NO_REGISTER ? base : value_unknown();
    return base.kind == VALUE_ENTRY ? base : value_plus(base, in->displacement);
}

static void store(const struct x86_instruction *in, struct code_state *state, int64_t width,
                  struct code_value value)
{
    jd_state_store(state, address_of(in, state), width, value);
}

/* How much an instruction that is not followed stores at most. */
static int64_t stored_bytes(const struct x86_instruction *in)
{
    enum { X87_BYTES = 108, XSAVE_BYTES = 1 << 16 };
    if (effect_of(in) == 'F')
        return in->map ? XSAVE_BYTES : X87_BYTES;
    if (in->map == 0)
        return in->wide ? WORD_BYTES : WORD_BYTES / 2;
    bool scalar = in->prefix == REPEAT || in->prefix == REPNE;
    if ((in->opcode == 0x11 && scalar) || in->opcode == 0x13 || in->opcode == 0x17 ||
        in->opcode == 0xd6 || in->opcode == 0x7e)
        return WORD_BYTES;
    return in->vector_bytes ? in->vector_bytes : 16;
}

/* Whether it is about bytes: then, without REX, the registers 4 to 7 are ah, ch, dh and bh. */
static bool is_of_bytes(const struct x86_instruction *in)
{
    if (in->encoding != X86_LEGACY || in->map > 1)
        return false;
    if (in->map == 1)
        return in->opcode >> 4 == 9 || in->opcode == 0xb0 || in->opcode == 0xc0;
    return in->opcode >> 3 == 0xb0 >> 3 ||
           (!(in->opcode & 1) && in->opcode != 0x62 && in->opcode != 0x8c && in->opcode != 0x8e);
}

/* The register NUMBER gets an unknown value. */
static void spoil(const struct x86_instruction *in, struct code_state *state, unsigned number)
{
    bool high = !in->has_rex && number >= 4 && number < 8 && is_of_bytes(in);
    set(state, high ? number - 4 : number, value_unknown());
}

static void change_operand(const struct x86_instruction *in, struct code_state *state,
                           bool memory_only)
{
    if (!in->has_modrm)
        return;
    if (in->mode != REGISTER_MODE)
        store(in, state, stored_bytes(in), value_unknown());
    else if (!memory_only)
        spoil(in, state, in->rm);
}

/* Apply EFFECT, a letter of the list above, except '*'. */
static void apply(const struct x86_instruction *in, struct code_state *state, char effect)
{
    if (strchr("exkqE", effect))
        change_operand(in, state, effect == 'E');
    if (strchr("rxv", effect))
        spoil(in, state, in->reg);
    if (strchr("aDkOqsF", effect))
        forget(state, RAX);
    if (strchr("dDkq", effect))
        forget(state, RDX);
    if (strchr("oO", effect))
        spoil(in, state, in->opcode_register);
    if (strchr("sq", effect))
        forget(state, RCX);
    if (effect == 'v')
        set(state, in->vvvv, value_unknown());
    if (effect == 'q')
        forget(state, RBX);
    if (effect == 's') {
        jd_state_store(state, state->registers[RDI], 1 << 16, value_unknown());
        forget(state, RSI);
        forget(state, RDI);
    }
    if (effect == 'F')
        change_operand(in, state, true);
}

/* ---- The stack ---- */

static void push(struct code_state *state, int64_t bytes, struct code_value value)
{
    struct code_value top = value_plus(state->registers[RSP], -bytes);
    jd_state_set(state, RSP, RBP, top);
    jd_state_store(state, top, bytes, value);
}

/* A saved register gets its value back from its place: this proves that the stack pointer has its
 * known value.  If there is doubt, another value shows that it may be wrong. */
static struct code_value pop(struct code_state *state, int64_t bytes, unsigned to)
{
    struct code_value top = state->registers[RSP];
    struct code_value value = bytes == WORD_BYTES ? jd_state_load(state, top) : value_unknown();
    if (state->doubtful && to < 16 && value_is_entry(value, dwarf[to]))
        state->doubtful = false;
    else if (state->doubtful)
        value = value_unknown();
    jd_state_set(state, RSP, RBP, value_plus(top, bytes));
    return value;
}

static int64_t pushed_bytes(const struct x86_instruction *in)
{
    return in->operand_16 ? 2 : WORD_BYTES;
}

static void leave(struct code_state *state)
{
    jd_state_set(state, RSP, RBP, state->registers[RBP]);
    state->doubtful = false;
    jd_state_set(state, RBP, RBP, pop(state, WORD_BYTES, 5));
}

static void enter(const struct x86_instruction *in, struct code_state *state, uint8_t level)
{
    push(state, WORD_BYTES, state->registers[RBP]);
    jd_state_set(state, RBP, RBP, state->registers[RSP]);
    jd_state_set(state, RSP, RBP,
                 level ? value_unknown()
                       : value_plus(state->registers[RSP], -(int64_t)(uint16_t)in->immediate));
}

static void call(struct code_state *state)
{
    static const uint8_t scratch[] = {RAX, RDX, RCX, RSI, RDI, 8, 9, 10, R11};
    jd_state_call(state);
    for (size_t i = 0; i < sizeof scratch; i++)
        forget(state, scratch[i]);
}

/* ---- By hand ---- */

static void move(const struct x86_instruction *in, struct code_state *state, bool to_operand)
{
    int64_t width = in->wide ? WORD_BYTES : in->operand_16 ? 2 : WORD_BYTES / 2;
    if (in->mode == REGISTER_MODE) {
        struct code_value value = get(state, to_operand ? in->reg : in->rm);
        unsigned to = to_operand ? in->rm : in->reg;
        set(state, to, in->wide ? value : value_unknown());
        if (dwarf[to & 15] == RSP && in->wide)
            state->doubtful = false;
    } else if (to_operand) {
        store(in, state, width, in->wide ? get(state, in->reg) : value_unknown());
    } else {
        struct code_value value = jd_state_load(state, address_of(in, state));
        set(state, in->reg, in->wide && !state->doubtful ? value : value_unknown());
    }
}

static void exchange(const struct x86_instruction *in, struct code_state *state)
{
    struct code_value a = get(state, in->reg), b = get(state, in->rm);
    bool followed = in->mode == REGISTER_MODE && in->wide && in->opcode == 0x87;
    if (followed) {
        set(state, in->reg, b);
        set(state, in->rm, a);
    } else {
        spoil(in, state, in->reg);
        change_operand(in, state, false);
    }
}

static void load_address(const struct x86_instruction *in, struct code_state *state)
{
    struct code_value base = get(state, in->base);
    bool followed = in->wide && in->index == X86_NO_REGISTER && in->base < 16;
    set(state, in->reg, followed ? value_plus(base, in->displacement) : value_unknown());
    state->exposed |= base.kind == VALUE_FRAME && !followed;
    if (in->reg == 4 && in->base != 4)
        state->doubtful = false;
}

/* add, sub and their like with an immediate */
static void group_1(const struct x86_instruction *in, struct code_state *state)
{
    enum { ADD = 0, SUB = 5, CMP = 7 };
    unsigned operation = in->reg & 7;
    if (operation == CMP)
        return;
    bool followed = in->mode == REGISTER_MODE && in->wide && in->opcode != 0x80 &&
                    (operation == ADD || operation == SUB);
    if (followed)
        set(state, in->rm,
            value_plus(get(state, in->rm), operation == ADD ? in->immediate : -in->immediate));
    else
        change_operand(in, state, false);
}

static void group_3(const struct x86_instruction *in, struct code_state *state)
{
    unsigned operation = in->reg & 7;
    if (operation == 2 || operation == 3)
        change_operand(in, state, false);
    if (operation >= 4)
        apply(in, state, 'D');
}

/* inc, dec, call, jmp, push */
static enum code_flow group_5(const struct x86_instruction *in, struct code_state *state)
{
    unsigned operation = in->reg & 7;
    if (operation == 4 || operation == 5)
        return FLOW_SOMEWHERE;
    if (operation == 2 || operation == 3) {
        if (state)
            call(state);
        return FLOW_CALL;
    }
    if (!state)
        return operation == 7 ? FLOW_UNKNOWN : FLOW_NEXT;
    if (operation == 6)
        push(state, pushed_bytes(in),
             in->mode == REGISTER_MODE ? get(state, in->rm)
                                       : jd_state_load(state, address_of(in, state)));
    else
        change_operand(in, state, false);
    return operation == 7 ? FLOW_UNKNOWN : FLOW_NEXT;
}

static void pop_operand(const struct x86_instruction *in, struct code_state *state)
{
    bool is_register = in->mode == REGISTER_MODE;
    struct code_value value = pop(state, pushed_bytes(in), is_register ? in->rm : 16);
    if (is_register)
        set(state, in->rm, value);
    else
        store(in, state, pushed_bytes(in), value);
}

/* The changes to STATE, which is not NULL, by map 0. */
static void do_map_0(const struct x86_instruction *in, const uint8_t *bytes,
                     struct code_state *state)
{
    switch (in->opcode) {
    case 0x68:
    case 0x6a:
    case 0x9c:
        push(state, pushed_bytes(in), value_unknown());
        break;
    case 0x80:
    case 0x81:
    case 0x83:
        group_1(in, state);
        break;
    case 0x86:
    case 0x87:
        exchange(in, state);
        break;
    case 0x89:
    case 0x8b:
        move(in, state, in->opcode == 0x89);
        break;
    case 0x8d:
        load_address(in, state);
        break;
    case 0x8f:
        pop_operand(in, state);
        break;
    case 0x9d:
        pop(state, pushed_bytes(in), 16);
        break;
    case 0xc8:
        enter(in, state, bytes[in->length - 1]);
        break;
    case 0xc9:
        leave(state);
        break;
    case 0xe0:
    case 0xe1:
    case 0xe2:
        forget(state, RCX);
        break;
    case 0xe8:
        if (in->immediate == 0) /* to the next instruction, for its address */
            push(state, WORD_BYTES, value_unknown());
        else
            call(state);
        break;
    case 0xf6:
    case 0xf7:
        group_3(in, state);
        break;
    default:
        if (in->opcode >> 3 == 0x50 >> 3)
            push(state, pushed_bytes(in), get(state, in->opcode_register));
        else if (in->opcode >> 3 == 0x58 >> 3)
            set(state, in->opcode_register, pop(state, pushed_bytes(in), in->opcode_register));
    }
}

static void do_map_1(const struct x86_instruction *in, struct code_state *state)
{
    switch (in->opcode) {
    case 0x05: /* syscall */
        forget(state, RAX);
        forget(state, RCX);
        forget(state, R11);
        break;
    case 0x1e: /* rdssp, among things that do nothing */
        if (in->prefix == REPEAT && in->mode == REGISTER_MODE && (in->reg & 7) == 1)
            set(state, in->rm, value_unknown());
        break;
    case 0x7e: /* movd, and with f3 a load of a vector register */
        if (in->prefix != REPEAT)
            change_operand(in, state, false);
        break;
    case 0xa0: /* push and pop of fs and gs */
    case 0xa8:
        push(state, pushed_bytes(in), value_unknown());
        break;
    case 0xa1:
    case 0xa9:
        pop(state, pushed_bytes(in), 16);
        break;
    default:
        break;
    }
}

/* ---- Where it leads ---- */

static enum code_flow flow_map_0(const struct x86_instruction *in)
{
    if (in->opcode >> 4 == 7 || (in->opcode >= 0xe0 && in->opcode <= 0xe3))
        return FLOW_BRANCH;
    switch (in->opcode) {
    case 0xe8:
        return in->immediate == 0 ? FLOW_NEXT : FLOW_CALL;
    case 0xe9:
    case 0xeb:
        return FLOW_JUMP;
    case 0xc2:
    case 0xc3:
        return FLOW_RETURN;
    case 0xca:
    case 0xcb:
    case 0xcf:
        return FLOW_SOMEWHERE;
    case 0xcc:
    case 0xf1:
    case 0xf4:
        return FLOW_STOP;
    default:
        return FLOW_NEXT;
    }
}

static enum code_flow flow_of(const struct x86_instruction *in)
{
    if (in->encoding != X86_LEGACY || in->map > 1)
        return FLOW_NEXT;
    if (in->map == 0)
        return flow_map_0(in);
    if (in->opcode >> 4 == 8)
        return FLOW_BRANCH;
    if (in->opcode == 0x0b || in->opcode == 0xb9 || in->opcode == 0xff)
        return FLOW_STOP; /* ud2, ud1, ud0 */
    return in->opcode == 0x07 || in->opcode == 0x34 || in->opcode == 0x35 ? FLOW_SOMEWHERE
                                                                          : FLOW_NEXT;
}

static void do_it(const struct x86_instruction *in, const uint8_t *bytes, struct code_state *state)
{
    char effect = effect_of(in);
    if (effect != '*' && !(effect == 'O' && in->opcode_register == 0))
        apply(in, state, effect);
    else if (in->map == 0)
        do_map_0(in, bytes, state);
    else
        do_map_1(in, state);
}

static struct code_step step(const uint8_t *code, size_t size, size_t at, struct code_state *state)
{
    struct x86_instruction in;
    if (!jd_x86_decode(code + at, size - at, &in))
        return (struct code_step){.flow = FLOW_UNKNOWN};
    struct code_step step = {.size = in.length, .flow = flow_of(&in)};
    step.target = (int64_t)at + in.length + in.immediate;
    if (in.encoding == X86_LEGACY && in.map == 0 && in.opcode == 0xff)
        step.flow = group_5(&in, state);
    else if (state)
        do_it(&in, code + at, state);
    return step;
}

/* nop, in all its lengths */
static bool is_filling(const uint8_t *code, size_t size, size_t at)
{
    struct x86_instruction in;
    if (!jd_x86_decode(code + at, size - at, &in) || in.encoding != X86_LEGACY)
        return false;
    return (in.map == 0 && in.opcode == 0x90 && in.opcode_register == 0) ||
           (in.map == 1 && in.opcode == 0x1f);
}

/* ---- In words ---- */

static void print_bytes(const uint8_t *code, size_t at, size_t count, char *text, size_t text_bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < count && used + 4 < text_bytes; i++)
        used +=
            (size_t)snprintf(text + used, text_bytes - used, i ? " %02x" : "%02x", code[at + i]);
}

static void print_displacement(char *text, size_t bytes, const struct x86_instruction *in)
{
    int32_t by = in->displacement;
    if (in->base < 16 && in->index == X86_NO_REGISTER)
        snprintf(text, bytes, "%s0x%x(%%%s)", by < 0 ? "-" : "",
                 by < 0 ? 0u - (unsigned)by : (unsigned)by, names[dwarf[in->base]]);
    else
        snprintf(text, bytes, "memory");
}

/* Instructions with a register and an operand in ModRM. */
static bool print_move(const struct x86_instruction *in, char *text, size_t bytes)
{
    char operand[32];
    const char *reg = names[dwarf[in->reg & 15]];
    if (!in->wide)
        return false;
    if (in->mode == REGISTER_MODE)
        snprintf(operand, sizeof operand, "%%%s", names[dwarf[in->rm & 15]]);
    else
        print_displacement(operand, sizeof operand, in);
    if (in->opcode == 0x89)
        snprintf(text, bytes, "mov %%%s,%s", reg, operand);
    else
        snprintf(text, bytes, "%s %s,%%%s", in->opcode == 0x8d ? "lea" : "mov", operand, reg);
    return true;
}

static bool print_legacy(const struct x86_instruction *in, char *text, size_t bytes)
{
    static const char *const group[8] = {"add", "or", "adc", "sbb", "and", "sub", "xor", "cmp"};
    switch (in->opcode) {
    case 0x81:
    case 0x83:
        if (in->mode != REGISTER_MODE || !in->wide)
            return false;
        snprintf(text, bytes, "%s $%lld,%%%s", group[in->reg & 7], (long long)in->immediate,
                 names[dwarf[in->rm]]);
        return true;
    case 0x89:
    case 0x8b:
    case 0x8d:
        return print_move(in, text, bytes);
    case 0xc3:
    case 0xc9:
    case 0xe8:
    case 0xe9:
    case 0xeb:
        snprintf(text, bytes, "%s",
                 in->opcode == 0xc3   ? "ret"
                 : in->opcode == 0xc9 ? "leave"
                 : in->opcode == 0xe8 ? "call"
                                      : "jmp");
        return true;
    default:
        if (in->opcode >> 4 != 5)
            return false;
        snprintf(text, bytes, "%s %%%s", in->opcode < 0x58 ? "push" : "pop",
                 names[dwarf[in->opcode_register]]);
        return true;
    }
}

static void print(const uint8_t *code, size_t size, size_t at, char *text, size_t text_bytes)
{
    struct x86_instruction in;
    if (!jd_x86_decode(code + at, size - at, &in))
        snprintf(text, text_bytes, "no instruction that is known");
    else if (in.encoding != X86_LEGACY || in.map || !print_legacy(&in, text, text_bytes))
        print_bytes(code, at, in.length, text, text_bytes);
}

const struct code_machine jd_machine_x86_64 = {
    .elf_mach = EM_X86_64,
    .stack_pointer = RSP,
    .return_address = RIP,
    .entry_offset = -WORD_BYTES,
    .saved_count = sizeof saved,
    .saved = saved,
    .names = names,
    .plain_registers = RIP + 1,
    .step = step,
    .is_filling = is_filling,
    .print = print,
};
