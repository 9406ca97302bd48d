/* See code_shape.h.  Sources: Intel SDM, volume 2; Arm ARM, C6.2. */
#include "injector/unwind/code_shape.h"

#include "jitdump/format/byte_cursor.h"
#include "jitdump/instructions/x86_64_decoder.h"

#include <string.h>

/* ---- x86-64 ---- */

enum { PUSH_RBP = 0x55, POP_RBP = 0x5d, LEAVE = 0xc9, RET = 0xc3, RET_N = 0xc2 };

/* mov rbp,rsp, in both encodings. */
enum { SET_BYTES = 3 };
static const uint8_t frame_sets[2][SET_BYTES] = {{0x48, 0x89, 0xe5}, {0x48, 0x8b, 0xec}};

/* The places of push rbp and of mov rbp,rsp, which is behind it, not always at once. */
struct prologue {
    size_t push, end;
};

static bool is_frame_set_x86_64(const uint8_t *code)
{
    return memcmp(code, frame_sets[0], SET_BYTES) == 0 ||
           memcmp(code, frame_sets[1], SET_BYTES) == 0;
}

/* Whether push rbp stands in front of mov rbp,rsp, which is at SET.  Compilers put instructions
 * that do not touch the stack between them. */
static bool find_push(const uint8_t *code, size_t set, struct prologue *prologue)
{
    enum { MOST_BETWEEN = 64 };
    for (size_t i = 1; i <= MOST_BETWEEN && i <= set; i++)
        if (code[set - i] == PUSH_RBP) {
            *prologue = (struct prologue){set - i, set + SET_BYTES};
            return true;
        }
    return false;
}

static bool find_prologue(const uint8_t *code, size_t size, struct prologue *prologue)
{
    for (size_t i = 0; i + SET_BYTES <= size; i++) {
        const uint8_t *set = memchr(code + i, frame_sets[0][0], size - i - (SET_BYTES - 1));
        if (!set)
            return false;
        i = (size_t)(set - code);
        if (is_frame_set_x86_64(set) && find_push(code, i, prologue))
            return true;
    }
    return false;
}

static bool is_return_x86_64(const struct x86_instruction *instruction)
{
    return instruction->encoding == X86_LEGACY && instruction->map == 0 &&
           (instruction->opcode == RET || instruction->opcode == RET_N);
}

/* Whether it goes on behind it, with the stack pointer and rbp as they were: a move, arithmetic, an
 * access to memory. */
static bool is_plain_x86_64(const struct x86_instruction *instruction)
{
    enum {
        RSP = 4,
        RBP = 5,
        MOVES_FIRST = 0x88,
        LEA = 0x8d,
        GROUP_FIRST = 0x80,
        GROUP_LAST = 0x83
    };
    if (instruction->encoding != X86_LEGACY)
        return true;
    uint8_t opcode = instruction->opcode, low = opcode & 7;
    if (!instruction->has_modrm || (instruction->map == 1 && (opcode & 0xf0) == 0x80))
        return instruction->map == 0 && opcode >= 0xb8 && opcode <= 0xbf &&
               instruction->opcode_register != RSP && instruction->opcode_register != RBP;
    if (instruction->map)
        return true;
    bool known = (opcode < 0x40 && low < 4) || (opcode >= GROUP_FIRST && opcode <= GROUP_LAST) ||
                 (opcode >= MOVES_FIRST && opcode <= LEA) || opcode == 0xc6 || opcode == 0xc7 ||
                 opcode == 0x84 || opcode == 0x85 || opcode == 0x63;
    return known && instruction->reg != RSP && instruction->reg != RBP &&
           !(instruction->mode == 3 && (instruction->rm == RSP || instruction->rm == RBP));
}

/* At a return, or with nothing but moves in front of one: the frame has been taken down.  Compilers
 * put these between pop rbp and ret. */
static bool is_leaving_x86_64(const uint8_t *code, size_t size, size_t offset)
{
    enum { MOST_BETWEEN = 8 };
    struct x86_instruction instruction;
    if (offset && (code[offset - 1] == POP_RBP || code[offset - 1] == LEAVE))
        return true;
    for (int i = 0; i < MOST_BETWEEN; i++, offset += instruction.length)
        if (!jd_x86_decode(code + offset, size - offset, &instruction))
            return false;
        else if (is_return_x86_64(&instruction))
            return true;
        else if (!is_plain_x86_64(&instruction))
            return false;
    return false;
}

static enum code_place place_x86_64(const uint8_t *code, size_t size, size_t offset, bool calls)
{
    struct prologue prologue;
    if (!find_prologue(code, size, &prologue))
        return PLACE_FRAMELESS;
    if (offset <= prologue.push)
        return PLACE_BEFORE;
    if (offset < prologue.end)
        return PLACE_PUSHED;
    return !calls && is_leaving_x86_64(code, size, offset) ? PLACE_BEFORE : PLACE_IN_FRAME;
}

/* nop, in all its lengths. */
static size_t nop_x86_64(const uint8_t *code, size_t size)
{
    enum { NOP = 0x90, LONG_NOP = 0x1f };
    struct x86_instruction instruction;
    if (!jd_x86_decode(code, size, &instruction) || instruction.encoding != X86_LEGACY)
        return 0;
    bool is_nop =
        (instruction.map == 0 && instruction.opcode == NOP && instruction.opcode_register == 0) ||
        (instruction.map == 1 && instruction.opcode == LONG_NOP);
    return is_nop ? instruction.length : 0;
}

/* How long a call through ModRM is, opcode and displacement included; 0: it is none. */
static size_t indirect_call_bytes(const uint8_t *code, size_t size)
{
    enum { GROUP_5 = 0xff, CALL = 2, SIB = 4, RIP_RELATIVE = 5, REGISTER = 3 };
    static const uint8_t displacement[3] = {0, 1, 4};
    if (size < 2 || code[0] != GROUP_5 || (code[1] >> 3 & 7) != CALL)
        return 0;
    unsigned mode = code[1] >> 6, base = code[1] & 7;
    if (mode == REGISTER)
        return 2;
    if (mode == 0 && base == RIP_RELATIVE)
        return 6;
    bool has_sib = base == SIB;
    if (has_sib && (size < 3 || (mode == 0 && (code[2] & 7) == RIP_RELATIVE)))
        return size < 3 ? 0 : 7;
    return 2u + has_sib + displacement[mode];
}

static bool ends_in_call_x86_64(const uint8_t *code, size_t size)
{
    enum { CALL_REL32 = 0xe8, CALL_REL32_BYTES = 5, LONGEST_INDIRECT = 7 };
    if (size >= CALL_REL32_BYTES && code[size - CALL_REL32_BYTES] == CALL_REL32)
        return true;
    for (size_t bytes = 2; bytes <= LONGEST_INDIRECT && bytes <= size; bytes++)
        if (indirect_call_bytes(code + size - bytes, bytes) == bytes)
            return true;
    return false;
}

/* Whether the BYTES at CODE lead to TARGET by the offset that they end in, which has WIDTH. */
static bool leads_to_x86_64(const uint8_t *code, size_t bytes, size_t width, int64_t target)
{
    struct byte_cursor cursor = byte_cursor_over(code + bytes - width, width, false);
    int64_t by = width == 1 ? (int8_t)cursor_u8(&cursor) : (int32_t)cursor_u32(&cursor);
    return (int64_t)bytes + by == target;
}

/* jmp and jcc, with offsets of 8 and of 32 bits */
static bool jumps_to_x86_64(const uint8_t *code, size_t size, int64_t target)
{
    if (size >= 2 && (code[0] == 0xeb || (code[0] & 0xf0) == 0x70) &&
        leads_to_x86_64(code, 2, 1, target))
        return true;
    if (size >= 5 && code[0] == 0xe9 && leads_to_x86_64(code, 5, 4, target))
        return true;
    return size >= 6 && code[0] == 0x0f && (code[1] & 0xf0) == 0x80 &&
           leads_to_x86_64(code, 6, 4, target);
}

enum { X86_64_CALL_BYTES = 5 };

/* call rel32 */
static size_t call_x86_64(const uint8_t *code, size_t size, int64_t *by)
{
    *by = 0;
    if (size < X86_64_CALL_BYTES || code[0] != 0xe8)
        return 0;
    struct byte_cursor cursor = byte_cursor_over(code + 1, X86_64_CALL_BYTES - 1, false);
    *by = X86_64_CALL_BYTES + (int64_t)(int32_t)cursor_u32(&cursor);
    return X86_64_CALL_BYTES;
}

/* mov $15, %rax (or %eax); syscall */
static bool is_signal_return_x86_64(const uint8_t *code, size_t size)
{
    static const uint8_t full[] = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05};
    static const uint8_t brief[] = {0xb8, 15, 0, 0, 0, 0x0f, 0x05};
    return (size >= sizeof full && memcmp(code, full, sizeof full) == 0) ||
           (size >= sizeof brief && memcmp(code, brief, sizeof brief) == 0);
}

/* ---- aarch64 ---- */

enum { WORD_BYTES = 4 };

static uint32_t word_at(const uint8_t *code, size_t offset)
{
    struct byte_cursor cursor = byte_cursor_over(code + offset, WORD_BYTES, false);
    return cursor_u32(&cursor);
}

/* stp x29, x30, [sp, #n]!, or without the exclamation mark */
static bool is_frame_push(uint32_t word)
{
    return (word & 0xffc07fff) == 0xa9807bfd || (word & 0xffc07fff) == 0xa9007bfd;
}

/* mov x29, sp, or add x29, sp, #n */
static bool is_frame_set(uint32_t word)
{
    return (word & 0xff8003ff) == 0x910003fd;
}

/* ldp x29, x30, [sp], #n, or without */
static bool is_frame_pop(uint32_t word)
{
    return (word & 0xffc07fff) == 0xa8c07bfd || (word & 0xffc07fff) == 0xa9407bfd;
}

/* br to the caller: ret, retaa, retab */
static bool is_return(uint32_t word)
{
    return word == 0xd65f03c0 || word == 0xd65f0bff || word == 0xd65f0fff;
}

/* Between the frame's end and the return there is little: the stack pointer, a check of x30. */
static bool is_leaving_aarch64(const uint8_t *code, size_t size, size_t offset)
{
    enum { MOST_WORDS = 4 };
    for (size_t i = 0; i < MOST_WORDS && offset + WORD_BYTES <= size; i++, offset += WORD_BYTES)
        if (is_return(word_at(code, offset)))
            for (size_t back = offset;
                 back >= WORD_BYTES && back + MOST_WORDS * WORD_BYTES > offset;)
                if (is_frame_pop(word_at(code, back -= WORD_BYTES)))
                    return back < offset - i * WORD_BYTES;
    return false;
}

static enum code_place place_aarch64(const uint8_t *code, size_t size, size_t offset, bool calls)
{
    bool frame_later = false;
    for (size_t at = 0; at + 2 * WORD_BYTES <= size; at += WORD_BYTES) {
        if (!is_frame_push(word_at(code, at)))
            continue;
        frame_later = true;
        for (size_t set = at + WORD_BYTES; set + WORD_BYTES <= size; set += WORD_BYTES)
            if (is_frame_set(word_at(code, set)))
                return offset <= set || (!calls && is_leaving_aarch64(code, size, offset))
                           ? PLACE_BEFORE
                           : PLACE_IN_FRAME;
        break;
    }
    return frame_later ? PLACE_UNKNOWN : PLACE_FRAMELESS;
}

/* bl, blr, blraa and its like */
static bool ends_in_call_aarch64(const uint8_t *code, size_t size)
{
    if (size < WORD_BYTES)
        return false;
    uint32_t word = word_at(code, size - WORD_BYTES);
    return (word & 0xfc000000) == 0x94000000 || (word & 0xfffffc1f) == 0xd63f0000 ||
           (word & 0xfefff800) == 0xd63f0800;
}

static size_t nop_aarch64(const uint8_t *code, size_t size)
{
    return size >= WORD_BYTES && word_at(code, 0) == 0xd503201f ? WORD_BYTES : 0;
}

/* How far the imm26 of a branch leads. */
static int64_t imm26_bytes(uint32_t word)
{
    return (int64_t)((uint64_t)word << 38) >> 36;
}

/* b; b.cond and cbz do not leave a function */
static bool jumps_to_aarch64(const uint8_t *code, size_t size, int64_t target)
{
    uint32_t word = size >= WORD_BYTES ? word_at(code, 0) : 0;
    return (word & 0xfc000000) == 0x14000000 && imm26_bytes(word) == target;
}

/* bl */
static size_t call_aarch64(const uint8_t *code, size_t size, int64_t *by)
{
    uint32_t word = size >= WORD_BYTES ? word_at(code, 0) : 0;
    *by = imm26_bytes(word);
    return (word & 0xfc000000) == 0x94000000 ? WORD_BYTES : 0;
}

/* mov x8, #139; svc #0 */
static bool is_signal_return_aarch64(const uint8_t *code, size_t size)
{
    static const uint8_t bytes[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4};
    return size >= sizeof bytes && memcmp(code, bytes, sizeof bytes) == 0;
}

/* ---- All ---- */

struct code_shape {
    size_t call_bytes;        /* of a direct call */
    size_t instruction_align; /* an instruction is at a multiple of it */
    enum code_place (*place)(const uint8_t *code, size_t size, size_t offset, bool calls);
    bool (*ends_in_call)(const uint8_t *code, size_t size);
    size_t (*call)(const uint8_t *code, size_t size, int64_t *by);
    bool (*jumps_to)(const uint8_t *code, size_t size, int64_t target);
    size_t (*nop)(const uint8_t *code, size_t size);
    bool (*is_signal_return)(const uint8_t *code, size_t size);
};

static const struct code_shape shapes[MACHINE_CODES] = {
    [CODE_X86_64] = {X86_64_CALL_BYTES, 1, place_x86_64, ends_in_call_x86_64, call_x86_64,
                     jumps_to_x86_64, nop_x86_64, is_signal_return_x86_64},
    [CODE_AARCH64] = {WORD_BYTES, WORD_BYTES, place_aarch64, ends_in_call_aarch64, call_aarch64,
                      jumps_to_aarch64, nop_aarch64, is_signal_return_aarch64},
};

/* NULL: how its code looks is not known. */
static const struct code_shape *shape_of(const struct machine *machine)
{
    return machine->code == CODE_UNKNOWN ? NULL : &shapes[machine->code];
}

size_t code_next_call(const struct machine *machine, const uint8_t *code, size_t size, size_t from,
                      int64_t *target)
{
    const struct code_shape *shape = shape_of(machine);
    if (from && shape) /* the last result may not have been a call, and may have one in it */
        from -= shape->call_bytes - shape->instruction_align;
    for (size_t at = from; shape && at < size; at += shape->instruction_align) {
        int64_t by = 0;
        size_t bytes = shape->call(code + at, size - at, &by);
        *target = (int64_t)at + by;
        if (bytes)
            return at + bytes;
    }
    return 0;
}

bool code_jumps_to(const struct machine *machine, const uint8_t *code, size_t size, int64_t target)
{
    const struct code_shape *shape = shape_of(machine);
    for (size_t at = 0; shape && at < size; at += shape->instruction_align)
        if (shape->jumps_to(code + at, size - at, target - (int64_t)at))
            return true;
    return false;
}

enum code_place code_place_of(const struct machine *machine, const uint8_t *code, size_t size,
                              size_t offset, bool calls)
{
    const struct code_shape *shape = shape_of(machine);
    if (!shape || !code || offset > size)
        return PLACE_UNKNOWN;
    return shape->place(code, size, offset, calls);
}

bool code_ends_in_call(const struct machine *machine, const uint8_t *code, size_t size)
{
    const struct code_shape *shape = shape_of(machine);
    return shape && shape->ends_in_call(code, size);
}

bool code_ends_in_direct_call(const struct machine *machine, const uint8_t *code, size_t size,
                              int64_t *by)
{
    const struct code_shape *shape = shape_of(machine);
    if (!shape || size < shape->call_bytes)
        return false;
    bool is_call = shape->call(code + size - shape->call_bytes, shape->call_bytes, by);
    *by -= (int64_t)shape->call_bytes;
    return is_call;
}

size_t code_padding_bytes(const struct machine *machine, const uint8_t *code, size_t size)
{
    const struct code_shape *shape = shape_of(machine);
    size_t at = 0, bytes = shape != NULL;
    for (; at < size && bytes; at += bytes)
        bytes = shape->nop(code + at, size - at);
    return at < size ? at : 0;
}

bool code_is_signal_return(const struct machine *machine, const uint8_t *code, size_t size)
{
    const struct code_shape *shape = shape_of(machine);
    return shape && shape->is_signal_return(code, size);
}
