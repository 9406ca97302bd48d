/* Call frame instructions, taken apart one by one, and the CFA that they define.
 *
 * Each user of the instructions keeps rows of a shape of its own.  The meaning of an instruction is
 * the same for all.  Nothing is allocated and nothing locked: an unwinder in a signal handler goes
 * by it, too.  Source: DWARF 5, section 6.4.2.
 */
#ifndef CFA_INSTRUCTION_H
#define CFA_INSTRUCTION_H

#include "jitdump/format/byte_cursor.h"
#include "jitdump/format/cfa_opcode.h"

/* A DWARF expression, where it stands. */
struct cfa_block {
    const uint8_t *bytes;
    size_t size;
};

/* Fields without an operand in the instruction are 0. */
struct cfa_instruction {
    uint8_t opcode;  /* without an operand in its low six bits */
    uint8_t subject; /* enum cfa_subject */
    uint64_t delta;  /* in bytes, as is the offset */
    uint64_t reg, other_reg;
    int64_t offset;
    struct cfa_block expression;
};

struct cfa_decoder {
    struct byte_cursor program;
    uint64_t code_align;
    int64_t data_align;
    const char *wrong; /* with the program, or NULL */
};

static inline struct cfa_decoder cfa_decoder_over(const uint8_t *program, size_t size,
                                                  bool big_endian, uint64_t code_align,
                                                  int64_t data_align)
{
    struct cfa_decoder decoder = {byte_cursor_over(program, size, big_endian), code_align,
                                  data_align, NULL};
    return decoder;
}

static inline uint64_t cfa_get_delta(struct cfa_decoder *decoder, uint64_t by)
{
    if (__builtin_mul_overflow(by, decoder->code_align, &by))
        decoder->wrong = "a call frame instruction advances beyond all addresses";
    return by;
}

static inline int64_t cfa_get_factored(struct cfa_decoder *decoder, int64_t factored)
{
    int64_t offset;
    if (__builtin_mul_overflow(factored, decoder->data_align, &offset))
        decoder->wrong = "a call frame instruction has an offset beyond all addresses";
    return offset;
}

static inline struct cfa_block cfa_get_block(struct byte_cursor *program)
{
    uint64_t size = cursor_uleb(program);
    const uint8_t *bytes =
        cursor_bytes(program, size <= cursor_left(program) ? (size_t)size : SIZE_MAX);
    struct cfa_block block = {bytes, bytes ? (size_t)size : 0};
    return block;
}

static inline void cfa_get_operand(struct cfa_decoder *decoder, enum cfa_operand operand,
                                   unsigned low_six_bits, struct cfa_instruction *instruction)
{
    struct byte_cursor *program = &decoder->program;
    switch (operand) {
    case OPERAND_NONE:
        break;
    case OPERAND_DELTA_LOW:
        instruction->delta = cfa_get_delta(decoder, low_six_bits);
        break;
    case OPERAND_DELTA_1:
        instruction->delta = cfa_get_delta(decoder, cursor_u8(program));
        break;
    case OPERAND_DELTA_2:
        instruction->delta = cfa_get_delta(decoder, cursor_u16(program));
        break;
    case OPERAND_DELTA_4:
        instruction->delta = cfa_get_delta(decoder, cursor_u32(program));
        break;
    case OPERAND_DELTA_8:
        instruction->delta = cfa_get_delta(decoder, cursor_u64(program));
        break;
    case OPERAND_ADDRESS: /* would have to be relocated; no compiler writes it */
        decoder->wrong = "call frame instruction set_loc can't be relocated";
        break;
    case OPERAND_REGISTER:
        instruction->other_reg = cursor_uleb(program);
        break;
    case OPERAND_OFFSET:
        instruction->offset = (int64_t)cursor_uleb(program);
        break;
    case OPERAND_FACTORED:
        instruction->offset = cfa_get_factored(decoder, (int64_t)cursor_uleb(program));
        break;
    case OPERAND_FACTORED_SIGNED:
        instruction->offset = cfa_get_factored(decoder, cursor_sleb(program));
        break;
    case OPERAND_FACTORED_MINUS:
        instruction->offset = cfa_get_factored(decoder, (int64_t)(0 - cursor_uleb(program)));
        break;
    case OPERAND_BLOCK:
        instruction->expression = cfa_get_block(program);
        break;
    }
}

/* The next instruction.  Returns false at the end, and from an instruction on that can't be read,
 * when decoder->wrong says why. */
static inline bool cfa_next(struct cfa_decoder *decoder, struct cfa_instruction *instruction)
{
    if (decoder->wrong || !cursor_left(&decoder->program))
        return false;
    uint8_t byte = cursor_u8(&decoder->program);
    uint8_t opcode = byte & CFA_restore ? byte & CFA_restore : byte;
    const struct cfa_form *form = &cfa_forms[opcode];
    *instruction = (struct cfa_instruction){.opcode = opcode, .subject = form->subject};
    if (form->reg == REGISTER_LOW)
        instruction->reg = byte & LOW_SIX_BITS;
    else if (form->reg == REGISTER_LEB)
        instruction->reg = cursor_uleb(&decoder->program);
    cfa_get_operand(decoder, (enum cfa_operand)form->operand, byte & LOW_SIX_BITS, instruction);
    if (form->subject == CFA_IS_UNKNOWN)
        decoder->wrong = "unknown call frame instruction";
    if (decoder->program.failed)
        decoder->wrong = "a call frame instruction reaches past its entry";
    return !decoder->wrong;
}

/* ---- The CFA ---- */

enum cfa_rule_kind { CFA_RULE_NONE, CFA_RULE_OFFSET, CFA_RULE_EXPRESSION };

struct cfa_rule {
    uint8_t kind; /* enum cfa_rule_kind */
    uint64_t reg; /* of CFA_RULE_OFFSET, as is the offset */
    int64_t offset;
    struct cfa_block expression; /* of CFA_RULE_EXPRESSION */
};

/* Change RULE as INSTRUCTION, which is about the CFA, says.  Returns false if it can't: a register
 * or an offset alone goes with a CFA that has the other one.  A register may come first, with
 * offset 0, as in libgcc. */
static inline bool cfa_rule_change(struct cfa_rule *rule, const struct cfa_instruction *instruction)
{
    switch (instruction->opcode) {
    case CFA_def_cfa_expression:
        *rule =
            (struct cfa_rule){.kind = CFA_RULE_EXPRESSION, .expression = instruction->expression};
        return true;
    case CFA_def_cfa_register:
        if (rule->kind == CFA_RULE_EXPRESSION)
            return false;
        rule->kind = CFA_RULE_OFFSET;
        rule->reg = instruction->reg;
        return true;
    case CFA_def_cfa_offset:
    case CFA_def_cfa_offset_sf:
        rule->offset = instruction->offset;
        return rule->kind == CFA_RULE_OFFSET;
    default:
        rule->kind = CFA_RULE_OFFSET;
        rule->reg = instruction->reg;
        rule->offset = instruction->offset;
        return true;
    }
}

#endif
