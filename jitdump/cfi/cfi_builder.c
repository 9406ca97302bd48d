/* The builder of unwind tables: see cfi.h.
 *
 * Directives are translated immediately to call frame instructions, in one growing program that
 * holds those of all CIEs and blocks in sequence.  Addresses are added at the end, in cfi_tables.c.
 */
#include "jitdump/cfi.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "jitdump/cfi/cfi_builder.h"

enum {
    ADVANCE_BYTES_MAX = 5,
    DIRECTIVE_BYTES_MAX = 1 + 5 + 10, /* opcode, register, number */
};

int jd_cfi_fail(struct jitdump_cfi *cfi, int error, const char *format, ...)
{
    va_list arguments;
    if (cfi->error)
        return cfi->error;
    cfi->error = error;
    va_start(arguments, format);
    vsnprintf(cfi->text, sizeof cfi->text, format, arguments);
    va_end(arguments);
    return error;
}

void *jd_cfi_grow(struct jitdump_cfi *cfi, void *items, size_t *capacity, size_t count,
                  size_t item_bytes)
{
    if (items && count <= *capacity)
        return items;
    size_t wanted = count > SIZE_MAX / 2 ? count : count * 2;
    const int callers_errno = errno;
    void *grown = wanted > SIZE_MAX / item_bytes ? NULL : realloc(items, wanted * item_bytes);
    errno = callers_errno;
    if (grown)
        *capacity = wanted;
    else
        jd_cfi_fail(cfi, -ENOMEM, "out of memory");
    return grown;
}

bool jd_cfi_program_room(struct jitdump_cfi *cfi, size_t bytes)
{
    struct byte_sink *program = &cfi->program;
    size_t wanted = bytes > SIZE_MAX / 2 ? bytes : program->size + ADVANCE_BYTES_MAX + bytes;
    uint8_t *data = jd_cfi_grow(cfi, program->data, &program->capacity, wanted, 1);
    if (data)
        program->data = data;
    return data;
}

/* ---- Creation ---- */

struct jitdump_cfi *jitdump_cfi_new(enum jitdump_arch arch)
{
    const int callers_errno = errno;
    struct jitdump_cfi *cfi = calloc(1, sizeof *cfi);
    errno = callers_errno;
    if (!cfi)
        return NULL;
    cfi->arch = cfi_arch_of(arch);
    jitdump_cfi_reset(cfi);
    return cfi;
}

void jd_cfi_forget(struct jitdump_cfi *cfi)
{
    cfi->program.size = 0;
    cfi->program.big_endian = false;
    cfi->cie_count = cfi->block_count = 0;
    if (cfi->slot_count)
        memset(cfi->cie_slots, 0, cfi->slot_count * sizeof *cfi->cie_slots);
    cfi->open = cfi->finished = false;
    cfi->error = 0;
    cfi->text[0] = '\0';
    if (!cfi->arch)
        jd_cfi_fail(cfi, -EINVAL, "no such architecture");
}

void jitdump_cfi_reset(struct jitdump_cfi *cfi)
{
    if (!cfi)
        return;
    cfi->origin = 0;
    cfi->begun = false;
    jd_cfi_empty_kept(cfi);
    jd_cfi_forget(cfi);
}

void jitdump_cfi_begin(struct jitdump_cfi *cfi, uint64_t at)
{
    if (!cfi)
        return;
    cfi->origin = at;
    cfi->begun = true;
    jd_cfi_forget(cfi);
}

void jitdump_cfi_free(struct jitdump_cfi *cfi)
{
    if (!cfi)
        return;
    free(cfi->program.data);
    free(cfi->cies);
    free(cfi->cie_slots);
    free(cfi->imported);
    free(cfi->blocks);
    free(cfi->tables.data);
    jd_cfi_free_kept(cfi);
    free(cfi->entries);
    free(cfi);
}

const char *jitdump_cfi_error(const struct jitdump_cfi *cfi)
{
    return cfi ? cfi->text : "out of memory";
}

/* ---- CIEs and blocks ---- */

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3); /* FNV-1a */
    return hash;
}

static uint64_t hash_cie(const struct eh_cie *cie)
{
    const uint64_t numbers[] = {cie->code_align, (uint64_t)cie->data_align, cie->return_register,
                                cie->signal_frame, cie->b_key};
    uint64_t hash = hash_bytes(UINT64_C(0xcbf29ce484222325), numbers, sizeof numbers);
    hash = hash_bytes(hash, cie->instructions, cie->instructions_bytes);
    return hash ^ hash >> 32;
}

static bool same_cie(const struct jitdump_cfi *cfi, const struct cfi_cie *mine,
                     const struct eh_cie *cie)
{
    return mine->cie.code_align == cie->code_align && mine->cie.data_align == cie->data_align &&
           mine->cie.return_register == cie->return_register &&
           mine->cie.signal_frame == cie->signal_frame && mine->cie.b_key == cie->b_key &&
           mine->cie.instructions_bytes == cie->instructions_bytes &&
           memcmp(cfi->program.data + mine->program_start, cie->instructions,
                  cie->instructions_bytes) == 0;
}

/* The slot of CIE, or the empty slot where it belongs. */
static size_t *find_slot(struct jitdump_cfi *cfi, const struct eh_cie *cie, uint64_t hash)
{
    for (size_t at = (size_t)hash;; at++) {
        size_t *slot = &cfi->cie_slots[at & (cfi->slot_count - 1)];
        if (*slot == 0 ||
            (cfi->cies[*slot - 1].hash == hash && same_cie(cfi, &cfi->cies[*slot - 1], cie)))
            return slot;
    }
}

static void put_in_slots(struct jitdump_cfi *cfi, size_t index)
{
    size_t at = (size_t)cfi->cies[index].hash;
    while (cfi->cie_slots[at & (cfi->slot_count - 1)])
        at++;
    cfi->cie_slots[at & (cfi->slot_count - 1)] = index + 1;
}

/* Make room in the hash table for one more CIE. */
static bool slot_room(struct jitdump_cfi *cfi)
{
    if (cfi->cie_count < cfi->slot_count / 2)
        return true;
    size_t count = cfi->slot_count ? cfi->slot_count * 2 : 8;
    const int callers_errno = errno;
    size_t *slots = calloc(count, sizeof *slots);
    errno = callers_errno;
    if (!slots) {
        jd_cfi_fail(cfi, -ENOMEM, "out of memory");
        return false;
    }
    free(cfi->cie_slots);
    cfi->cie_slots = slots;
    cfi->slot_count = count;
    for (size_t i = 0; i < cfi->cie_count; i++)
        put_in_slots(cfi, i);
    return true;
}

bool jd_cfi_get_cie(struct jitdump_cfi *cfi, const struct eh_cie *cie, size_t *index)
{
    if (!slot_room(cfi))
        return false;
    uint64_t hash = hash_cie(cie);
    size_t *slot = find_slot(cfi, cie, hash);
    if (*slot) {
        *index = *slot - 1;
        return true;
    }
    struct cfi_cie *cies =
        jd_cfi_grow(cfi, cfi->cies, &cfi->cie_capacity, cfi->cie_count + 1, sizeof *cies);
    if (!cies)
        return false;
    cfi->cies = cies;
    if (!jd_cfi_program_room(cfi, cie->instructions_bytes))
        return false;
    *index = cfi->cie_count++;
    *slot = cfi->cie_count;
    cies[*index] = (struct cfi_cie){.cie = *cie, .program_start = cfi->program.size, .hash = hash};
    sink_bytes(&cfi->program, cie->instructions, cie->instructions_bytes);
    return true;
}

void jd_cfi_close_block(struct jitdump_cfi *cfi)
{
    if (!cfi->open)
        return;
    struct cfi_block *block = &cfi->blocks[cfi->block_count - 1];
    block->program_bytes = cfi->program.size - block->program_start;
    cfi->open = false;
}

bool jd_cfi_open_block(struct jitdump_cfi *cfi, size_t cie, uint64_t start, uint64_t size)
{
    jd_cfi_close_block(cfi);
    if (cfi->finished)
        jd_cfi_fail(cfi, -EINVAL, "more to describe after jitdump_cfi_finish");
    if (cfi->error)
        return false;
    struct cfi_block *blocks =
        jd_cfi_grow(cfi, cfi->blocks, &cfi->block_capacity, cfi->block_count + 1, sizeof *blocks);
    if (!blocks)
        return false;
    cfi->blocks = blocks;
    blocks[cfi->block_count++] = (struct cfi_block){
        .start = start, .size = size, .cie = cie, .program_start = cfi->program.size, .at = start};
    cfi->open = true;
    cfi->cfa_offset = cfi->arch->cfa_offset;
    cfi->remembered_count = 0;
    return true;
}

bool jd_cfi_open_own_block(struct jitdump_cfi *cfi, uint64_t start, uint64_t size)
{
    size_t cie;
    return jd_cfi_get_cie(cfi, &cfi->arch->cie, &cie) && jd_cfi_open_block(cfi, cie, start, size);
}

void jitdump_cfi_block(struct jitdump_cfi *cfi, uint64_t start, uint64_t size)
{
    if (!cfi || cfi->error)
        return;
    uint64_t own = start - cfi->origin; /* huge for one before the function */
    if (start < cfi->origin)
        jd_cfi_fail(cfi, -EINVAL, "block at code offset 0x%" PRIx64 " is before the function",
                    start);
    else if (own > INT32_MAX || size > INT32_MAX)
        jd_cfi_fail(cfi, -EINVAL, "block at code offset 0x%" PRIx64 " reaches past 2 GiB", start);
    else if (own % cfi->arch->cie.code_align)
        jd_cfi_fail(cfi, -EINVAL, "block at code offset 0x%" PRIx64 ": not at an instruction",
                    start);
    else
        jd_cfi_open_own_block(cfi, own, size);
}

/* ---- Directives ---- */

static void put_advance(struct byte_sink *program, uint64_t delta)
{
    if (delta <= LOW_SIX_BITS) {
        sink_u8(program, (uint8_t)(CFA_advance_loc | delta));
    } else if (delta <= UINT8_MAX) {
        sink_u8(program, CFA_advance_loc1);
        sink_u8(program, (uint8_t)delta);
    } else if (delta <= UINT16_MAX) {
        sink_u8(program, CFA_advance_loc2);
        sink_u16(program, (uint16_t)delta);
    } else {
        sink_u8(program, CFA_advance_loc4);
        sink_u32(program, (uint32_t)delta);
    }
}

/* The error in a directive at code offset AT of BLOCK's function, or NULL. */
static const char *check_at(const struct jitdump_cfi *cfi, const struct cfi_block *block,
                            uint64_t at)
{
    if (at > INT32_MAX)
        return "past 2 GiB";
    if (at < block->start || at - block->start > block->size)
        return "outside of its block";
    if (at < block->at)
        return "after one with a higher offset";
    return (at - block->start) % cfi->arch->cie.code_align ? "not at an instruction" : NULL;
}

/* Returns false, always. */
static bool fail_at(struct jitdump_cfi *cfi, uint64_t at, const char *wrong)
{
    jd_cfi_fail(cfi, -EINVAL, "%s at code offset 0x%" PRIx64 ": %s",
                cfi->epilogue ? "epilogue" : "directive", cfi->epilogue ? *cfi->epilogue : at,
                wrong);
    return false;
}

/* Prepare to put instructions of up to BYTES that apply from code offset AT on. */
static bool at_offset(struct jitdump_cfi *cfi, uint64_t at, size_t bytes)
{
    if (!cfi || cfi->error)
        return false;
    if (!cfi->open && !jd_cfi_open_own_block(cfi, 0, WHOLE_CODE))
        return false;
    struct cfi_block *block = &cfi->blocks[cfi->block_count - 1];
    const char *wrong =
        at < cfi->origin ? "before the function" : check_at(cfi, block, at - cfi->origin);
    if (wrong)
        return fail_at(cfi, at, wrong);
    at -= cfi->origin;
    if (!jd_cfi_program_room(cfi, bytes))
        return false;
    if (at > block->at) {
        block->at_program_end = cfi->program.size - block->program_start;
        put_advance(&cfi->program, (at - block->at) / cfi->arch->cie.code_align);
        block->at = at;
    }
    return true;
}

/* Put a directive that consists of OPCODE and a register. */
static bool put_register(struct jitdump_cfi *cfi, uint64_t at, uint8_t opcode, unsigned reg)
{
    if (!at_offset(cfi, at, DIRECTIVE_BYTES_MAX))
        return false;
    sink_u8(&cfi->program, opcode);
    sink_uleb(&cfi->program, reg);
    return true;
}

/* Put one that consists of OPCODE alone; three have a small register in it. */
static bool put_opcode(struct jitdump_cfi *cfi, uint64_t at, unsigned opcode)
{
    if (!at_offset(cfi, at, DIRECTIVE_BYTES_MAX))
        return false;
    sink_u8(&cfi->program, (uint8_t)opcode);
    return true;
}

static bool in_31_bits(struct jitdump_cfi *cfi, uint64_t at, int64_t offset)
{
    return (offset >= -INT32_MAX && offset <= INT32_MAX) || fail_at(cfi, at, "offset too large");
}

/* OFFSET in the table's unit for register offsets. */
static bool factor(struct jitdump_cfi *cfi, uint64_t at, int64_t offset, int64_t *factored)
{
    int64_t unit = cfi->arch->cie.data_align;
    *factored = offset / unit;
    return in_31_bits(cfi, at, offset) &&
           (offset % unit == 0 || fail_at(cfi, at, "offset is not a multiple of 8"));
}

/* Put the offset of a CFA; the opcode put before it is the unsigned one if it is not negative. */
static void put_cfa_offset(struct jitdump_cfi *cfi, uint64_t at, int64_t offset)
{
    int64_t factored;
    if (offset >= 0)
        sink_uleb(&cfi->program, (uint64_t)offset);
    else if (factor(cfi, at, offset, &factored))
        sink_sleb(&cfi->program, factored);
    cfi->cfa_offset = offset;
}

/* Put the opcode for the sign of a register's offset, then the offset. */
static void put_offset(struct jitdump_cfi *cfi, uint64_t at, uint8_t opcode, uint8_t signed_opcode,
                       unsigned reg, int64_t factored)
{
    if (factored < 0 && put_register(cfi, at, signed_opcode, reg))
        sink_sleb(&cfi->program, factored);
    else if (factored >= 0 && put_register(cfi, at, opcode, reg))
        sink_uleb(&cfi->program, (uint64_t)factored);
}

void jitdump_cfi_def_cfa(struct jitdump_cfi *cfi, uint64_t at, unsigned reg, int64_t offset)
{
    if (put_register(cfi, at, offset < 0 ? CFA_def_cfa_sf : CFA_def_cfa, reg) &&
        in_31_bits(cfi, at, offset))
        put_cfa_offset(cfi, at, offset);
}

void jitdump_cfi_def_cfa_register(struct jitdump_cfi *cfi, uint64_t at, unsigned reg)
{
    put_register(cfi, at, CFA_def_cfa_register, reg);
}

void jitdump_cfi_def_cfa_offset(struct jitdump_cfi *cfi, uint64_t at, int64_t offset)
{
    if (put_opcode(cfi, at, offset < 0 ? CFA_def_cfa_offset_sf : CFA_def_cfa_offset) &&
        in_31_bits(cfi, at, offset))
        put_cfa_offset(cfi, at, offset);
}

void jitdump_cfi_adjust_cfa_offset(struct jitdump_cfi *cfi, uint64_t at, int64_t delta)
{
    if (at_offset(cfi, at, 0) && in_31_bits(cfi, at, delta))
        jitdump_cfi_def_cfa_offset(cfi, at, cfi->cfa_offset + delta);
}

void jitdump_cfi_offset(struct jitdump_cfi *cfi, uint64_t at, unsigned reg, int64_t offset)
{
    int64_t factored;
    if (!at_offset(cfi, at, 0) || !factor(cfi, at, offset, &factored))
        return;
    if (factored < 0 || reg > LOW_SIX_BITS)
        put_offset(cfi, at, CFA_offset_extended, CFA_offset_extended_sf, reg, factored);
    else if (put_opcode(cfi, at, CFA_offset | reg))
        sink_uleb(&cfi->program, (uint64_t)factored);
}

void jitdump_cfi_rel_offset(struct jitdump_cfi *cfi, uint64_t at, unsigned reg, int64_t offset)
{
    if (at_offset(cfi, at, 0) && in_31_bits(cfi, at, offset))
        jitdump_cfi_offset(cfi, at, reg, offset - cfi->cfa_offset);
}

void jitdump_cfi_val_offset(struct jitdump_cfi *cfi, uint64_t at, unsigned reg, int64_t offset)
{
    int64_t factored;
    if (at_offset(cfi, at, 0) && factor(cfi, at, offset, &factored))
        put_offset(cfi, at, CFA_val_offset, CFA_val_offset_sf, reg, factored);
}

void jitdump_cfi_register(struct jitdump_cfi *cfi, uint64_t at, unsigned reg, unsigned where)
{
    if (put_register(cfi, at, CFA_register, reg))
        sink_uleb(&cfi->program, where);
}

void jitdump_cfi_same_value(struct jitdump_cfi *cfi, uint64_t at, unsigned reg)
{
    put_register(cfi, at, CFA_same_value, reg);
}

void jitdump_cfi_undefined(struct jitdump_cfi *cfi, uint64_t at, unsigned reg)
{
    put_register(cfi, at, CFA_undefined, reg);
}

void jitdump_cfi_restore(struct jitdump_cfi *cfi, uint64_t at, unsigned reg)
{
    if (reg <= LOW_SIX_BITS)
        put_opcode(cfi, at, CFA_restore | reg);
    else
        put_register(cfi, at, CFA_restore_extended, reg);
}

void jitdump_cfi_remember_state(struct jitdump_cfi *cfi, uint64_t at)
{
    if (!put_opcode(cfi, at, CFA_remember_state))
        return;
    if (cfi->remembered_count < REMEMBERED_MAX)
        cfi->remembered[cfi->remembered_count++] = cfi->cfa_offset;
    else
        fail_at(cfi, at, "remember_state 33 deep");
}

void jitdump_cfi_restore_state(struct jitdump_cfi *cfi, uint64_t at)
{
    if (!put_opcode(cfi, at, CFA_restore_state))
        return;
    if (cfi->remembered_count)
        cfi->cfa_offset = cfi->remembered[--cfi->remembered_count];
    else
        fail_at(cfi, at, "restore_state without a remember_state");
}

/* The error in SIZE bytes of raw instructions, or NULL. */
static const char *check_escape(const struct jitdump_cfi *cfi, const void *bytes, size_t size)
{
    struct cfa_program program;
    if (size && !bytes)
        return "size is set, and bytes is NULL";
    const char *wrong = jd_cfa_program_check(&cfi->arch->cie, bytes, size, false, &program);
    if (!wrong && program.advances)
        wrong = "an escape that advances the location";
    if (!wrong && program.remembered_count)
        wrong = "an escape that leaves a state remembered";
    return wrong;
}

void jitdump_cfi_escape(struct jitdump_cfi *cfi, uint64_t at, const void *bytes, size_t size)
{
    if (!at_offset(cfi, at, size))
        return;
    const char *wrong = check_escape(cfi, bytes, size);
    if (wrong)
        fail_at(cfi, at, wrong);
    else
        sink_bytes(&cfi->program, bytes, size);
}
