/* Faults planted in the unwind tables of a dump: for each function, one operand of one call frame
 * instruction.
 *
 *     DW_CFA_offset              the slot next to it, 8 bytes away
 *     DW_CFA_def_cfa(_offset)    16 bytes more or less
 *     DW_CFA_def_cfa_register,
 *     DW_CFA_register            another register
 */
#ifndef PERFJIT_TEST_AARCH64_FAULTS_H
#define PERFJIT_TEST_AARCH64_FAULTS_H

#include "injector/log/jitdump/jit_dump.h"
#include "jitdump/cfi/cfi_arch.h"
#include "tests/unit/scratch.h"

enum { FAULT_FUNCTIONS_MAX = 1024, FAULT_SLOT = 1, FAULT_REGISTER = 4, FAULT_BYTES = 16 };

struct faults {
    const struct jit_dump *dump;
    uint8_t *copy;                     /* of the dump, with the faults */
    size_t number;                     /* of the operand to change, in each function */
    size_t seen;                       /* operands so far, in this function */
    size_t planted;                    /* functions that had one */
    bool has_one[FAULT_FUNCTIONS_MAX]; /* by the order of the loads */
};

static inline void fault_skip_leb(struct byte_cursor *program)
{
    while (cursor_u8(program) & 0x80)
        continue;
}

/* Skip the LEB128 number that comes next, and flip BITS in its first byte if it is the one. */
static inline void fault_operand(struct faults *faults, struct byte_cursor *program, uint8_t bits)
{
    const uint8_t *first = program->data + program->offset;
    if (faults->seen++ == faults->number)
        faults->copy[first - faults->dump->data] ^= bits;
    fault_skip_leb(program);
}

/* The instruction that comes next.  Of those that the tables of aarch64_frames have, the ones
 * without an operand to change that is sure to be seen are skipped. */
static inline void fault_instruction(struct faults *faults, struct byte_cursor *program)
{
    uint8_t op = cursor_u8(program);
    if ((op & ~LOW_SIX_BITS) == CFA_offset) {
        fault_operand(faults, program, FAULT_SLOT);
        return;
    }
    if (op & ~LOW_SIX_BITS)
        return;
    switch (op) {
    case 0: /* nop */
    case CFA_remember_state:
    case CFA_restore_state:
        return;
    case CFA_advance_loc1:
        cursor_skip(program, 1);
        return;
    case CFA_offset_extended:
        fault_skip_leb(program);
        fault_operand(faults, program, FAULT_SLOT);
        return;
    case CFA_register:
        fault_skip_leb(program);
        fault_operand(faults, program, FAULT_REGISTER);
        return;
    case CFA_def_cfa:
        fault_operand(faults, program, FAULT_REGISTER);
        fault_operand(faults, program, FAULT_BYTES);
        return;
    case CFA_def_cfa_register:
        fault_operand(faults, program, FAULT_REGISTER);
        return;
    case CFA_def_cfa_offset:
        fault_operand(faults, program, FAULT_BYTES);
        return;
    case CFA_restore_extended:
    case CFA_same_value:
        fault_skip_leb(program);
        return;
    case CFA_val_offset:
        fault_skip_leb(program);
        fault_skip_leb(program);
        return;
    case CFA_def_cfa_expression: /* of less than 128 bytes */
        cursor_skip(program, cursor_u8(program));
        return;
    default:
        fail_msg("there was no such call frame instruction before: 0x%x", op);
    }
}

static inline void fault_tables(struct faults *faults, const struct jit_unwinding_info *info)
{
    size_t frame_bytes = (size_t)(info->unwinding_size - info->eh_frame_hdr_size);
    struct eh_frame_walk walk = jd_eh_frame_begin(info->data, frame_bytes, false, 8);
    struct eh_fde fde;
    while (jd_eh_frame_next(&walk, &fde)) {
        struct byte_cursor program =
            byte_cursor_over(fde.instructions, fde.instructions_bytes, false);
        while (cursor_left(&program))
            fault_instruction(faults, &program);
    }
    jd_eh_frame_end(&walk);
    assert_null(walk.broken);
}

/* Write DUMP to PATH with operand NUMBER of each function changed, where there are so many. */
static inline void faults_plant(struct faults *faults, const struct jit_dump *dump, size_t number,
                                const char *path)
{
    struct jit_dump_walk walk = jit_dump_begin(dump);
    struct jit_record record;
    size_t loads = 0;
    *faults = (struct faults){.dump = dump, .copy = malloc(dump->size), .number = number};
    assert_non_null(faults->copy);
    memcpy(faults->copy, dump->data, dump->size);
    while (jit_dump_next(&walk, &record) == JIT_DUMP_MORE) {
        if (record.id == JIT_CODE_UNWINDING_INFO) {
            assert_true(loads < FAULT_FUNCTIONS_MAX);
            faults->seen = 0;
            fault_tables(faults, &record.unwinding_info);
            faults->has_one[loads] = faults->seen > number;
            faults->planted += faults->has_one[loads];
        }
        loads += record.id == JIT_CODE_LOAD;
    }
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(faults->copy, 1, dump->size, file), dump->size);
    assert_int_equal(fclose(file), 0);
    free(faults->copy);
}

#endif
