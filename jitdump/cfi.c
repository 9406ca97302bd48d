/* The builder of unwind tables: see cfi.h.
 *
 * Directives become call frame instructions at once, in one growing program that holds those of all CIEs
 * and blocks one behind the other.  Addresses come in at the end, in jitdump_cfi_finish: only then is the
 * size of the code known, and with it where perf will see the tables. */
#include "jitdump/cfi.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "jitdump/cfi_arch.h"

enum {
    TEXT_BYTES = 160,
    REMEMBERED_MAX = 32,
    ADVANCE_BYTES_MAX = 5,
    DIRECTIVE_BYTES_MAX = 1 + 5 + 10, /* opcode, register, number */
    NOWHERE = -1,
};

/* The size of a block that is the whole code, until that is known. */
#define WHOLE_CODE UINT64_MAX

struct cfi_cie {
    struct eh_cie cie;    /* but for its instructions: */
    size_t program_start; /* where they are in the program */
    size_t offset;        /* in the .eh_frame being written, or NOWHERE */
};

struct cfi_block {
    uint64_t start;
    uint64_t size; /* or WHOLE_CODE */
    size_t cie;    /* index */
    size_t program_start;
    size_t program_bytes;
    uint64_t at;           /* the code offset from which its last instructions hold */
    size_t at_program_end; /* how long its program was before it got there */
};

struct jitdump_cfi {
    const struct cfi_arch *arch;
    struct byte_sink program;
    struct cfi_cie *cies;
    size_t cie_count, cie_capacity;
    struct cfi_block *blocks;
    size_t block_count, block_capacity;
    bool open;     /* directives belong to the last block */
    bool finished; /* the blocks are sorted: there is no last one */
    int64_t cfa_offset;
    int64_t remembered[REMEMBERED_MAX]; /* CFA offsets */
    size_t remembered_count;
    struct byte_sink tables; /* what finish gave out */
    struct eh_frame_hdr_entry *entries;
    size_t entry_capacity;
    int error;
    char text[TEXT_BYTES];
};

__attribute__((format(printf, 3, 4))) static int fail(struct jitdump_cfi *cfi, int error,
                                                      const char *format, ...)
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

/* ITEMS, an array for *CAPACITY, grown to hold COUNT; NULL and a failure if there is no memory. */
static void *grow(struct jitdump_cfi *cfi, void *items, size_t *capacity, size_t count,
                  size_t item_bytes)
{
    if (items && count <= *capacity)
        return items;
    size_t wanted = count > SIZE_MAX / 2 ? count : count * 2;
    void *grown = wanted > SIZE_MAX / item_bytes ? NULL : realloc(items, wanted * item_bytes);
    if (grown)
        *capacity = wanted;
    else
        fail(cfi, -ENOMEM, "out of memory");
    return grown;
}

/* Room in the program for an advance and BYTES. */
static bool program_room(struct jitdump_cfi *cfi, size_t bytes)
{
    struct byte_sink *program = &cfi->program;
    size_t wanted = bytes > SIZE_MAX / 2 ? bytes : program->size + ADVANCE_BYTES_MAX + bytes;
    uint8_t *data = grow(cfi, program->data, &program->capacity, wanted, 1);
    if (data)
        program->data = data;
    return data;
}

/* ---- Life ---- */

struct jitdump_cfi *jitdump_cfi_new(enum jitdump_arch arch)
{
    struct jitdump_cfi *cfi = calloc(1, sizeof *cfi);
    if (!cfi)
        return NULL;
    cfi->arch = cfi_arch_of(arch);
    jitdump_cfi_reset(cfi);
    return cfi;
}

void jitdump_cfi_reset(struct jitdump_cfi *cfi)
{
    if (!cfi)
        return;
    cfi->program.size = 0;
    cfi->program.big_endian = false;
    cfi->cie_count = cfi->block_count = 0;
    cfi->open = cfi->finished = false;
    cfi->error = 0;
    cfi->text[0] = '\0';
    if (!cfi->arch)
        fail(cfi, -EINVAL, "no such architecture");
}

void jitdump_cfi_free(struct jitdump_cfi *cfi)
{
    if (!cfi)
        return;
    free(cfi->program.data);
    free(cfi->cies);
    free(cfi->blocks);
    free(cfi->tables.data);
    free(cfi->entries);
    free(cfi);
}

const char *jitdump_cfi_error(const struct jitdump_cfi *cfi)
{
    return cfi ? cfi->text : "out of memory";
}

/* ---- CIEs and blocks ---- */

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

/* Find CIE, or add it.  Sets *INDEX. */
static bool get_cie(struct jitdump_cfi *cfi, const struct eh_cie *cie, size_t *index)
{
    for (*index = 0; *index < cfi->cie_count; ++*index)
        if (same_cie(cfi, &cfi->cies[*index], cie))
            return true;
    struct cfi_cie *cies =
        grow(cfi, cfi->cies, &cfi->cie_capacity, cfi->cie_count + 1, sizeof *cies);
    if (!cies)
        return false;
    cfi->cies = cies;
    if (!program_room(cfi, cie->instructions_bytes))
        return false;
    cies[cfi->cie_count++] = (struct cfi_cie){.cie = *cie, .program_start = cfi->program.size};
    sink_bytes(&cfi->program, cie->instructions, cie->instructions_bytes);
    return true;
}

static void close_block(struct jitdump_cfi *cfi)
{
    if (!cfi->open)
        return;
    struct cfi_block *block = &cfi->blocks[cfi->block_count - 1];
    block->program_bytes = cfi->program.size - block->program_start;
    cfi->open = false;
}

/* Add a block whose program will be put next. */
static bool open_block(struct jitdump_cfi *cfi, const struct eh_cie *cie, uint64_t start,
                       uint64_t size)
{
    size_t index;
    close_block(cfi);
    if (cfi->finished)
        fail(cfi, -EINVAL, "more to describe after jitdump_cfi_finish");
    if (cfi->error || !get_cie(cfi, cie, &index))
        return false;
    struct cfi_block *blocks =
        grow(cfi, cfi->blocks, &cfi->block_capacity, cfi->block_count + 1, sizeof *blocks);
    if (!blocks)
        return false;
    cfi->blocks = blocks;
    blocks[cfi->block_count++] =
        (struct cfi_block){start, size, index, cfi->program.size, 0, start, 0};
    cfi->open = true;
    cfi->cfa_offset = cfi->arch->cfa_offset;
    cfi->remembered_count = 0;
    return true;
}

void jitdump_cfi_block(struct jitdump_cfi *cfi, uint64_t start, uint64_t size)
{
    if (!cfi || cfi->error)
        return;
    if (start > INT32_MAX || size > INT32_MAX)
        fail(cfi, -EINVAL, "block at code offset 0x%" PRIx64 " reaches past 2 GiB", start);
    else
        open_block(cfi, &cfi->arch->cie, start, size);
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

/* What is wrong with a directive at code offset AT of BLOCK, or NULL. */
static const char *check_at(const struct jitdump_cfi *cfi, const struct cfi_block *block,
                            uint64_t at)
{
    if (at > INT32_MAX)
        return "past 2 GiB";
    if (at < block->start || at - block->start > block->size)
        return "outside of its block";
    if (at < block->at)
        return "behind one with a higher offset";
    return (at - block->start) % cfi->arch->cie.code_align ? "not at an instruction" : NULL;
}

/* Returns false, always. */
static bool fail_at(struct jitdump_cfi *cfi, uint64_t at, const char *wrong)
{
    fail(cfi, -EINVAL, "directive at code offset 0x%" PRIx64 ": %s", at, wrong);
    return false;
}

/* Get ready to put instructions of up to BYTES that hold from code offset AT on. */
static bool at_offset(struct jitdump_cfi *cfi, uint64_t at, size_t bytes)
{
    if (!cfi || cfi->error)
        return false;
    if (!cfi->open && !open_block(cfi, &cfi->arch->cie, 0, WHOLE_CODE))
        return false;
    struct cfi_block *block = &cfi->blocks[cfi->block_count - 1];
    const char *wrong = check_at(cfi, block, at);
    if (wrong)
        return fail_at(cfi, at, wrong);
    if (!program_room(cfi, bytes))
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

/* OFFSET in the unit that the table has for offsets of registers. */
static bool factor(struct jitdump_cfi *cfi, uint64_t at, int64_t offset, int64_t *factored)
{
    int64_t unit = cfi->arch->cie.data_align;
    *factored = offset / unit;
    return in_31_bits(cfi, at, offset) &&
           (offset % unit == 0 || fail_at(cfi, at, "offset is not a multiple of 8"));
}

/* Put the offset of a CFA, whose opcode was for unsigned ones if it is not negative. */
static void put_cfa_offset(struct jitdump_cfi *cfi, uint64_t at, int64_t offset)
{
    int64_t factored;
    if (offset >= 0)
        sink_uleb(&cfi->program, (uint64_t)offset);
    else if (factor(cfi, at, offset, &factored))
        sink_sleb(&cfi->program, factored);
    cfi->cfa_offset = offset;
}

/* Put the offset of a register, and before it the opcode for its sign. */
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

void jitdump_cfi_escape(struct jitdump_cfi *cfi, uint64_t at, const void *bytes, size_t size)
{
    size_t used;
    if (!at_offset(cfi, at, size))
        return;
    const char *wrong = jd_cfa_program_check(bytes, size, false, &used);
    if (wrong)
        fail_at(cfi, at, wrong);
    else
        sink_bytes(&cfi->program, bytes, size);
}

/* ---- Frames ---- */

/* Describe what code from AT on does until it is inside FRAME. */
static void begin_frame(struct jitdump_cfi *cfi, const struct jitdump_frame *frame)
{
    if (!(frame->flags & JITDUMP_FRAME_ENTERED))
        cfi->arch->prologue(cfi, frame, frame->prologue);
    else if (frame->kind != JITDUMP_FRAME_LEAF)
        cfi->arch->entered(cfi, frame, cfi->open ? cfi->blocks[cfi->block_count - 1].start : 0);
}

void jitdump_cfi_frame(struct jitdump_cfi *cfi, const struct jitdump_frame *frame)
{
    if (!cfi || cfi->error)
        return;
    const char *wrong = cfi_check_frame(cfi->arch, frame);
    if (wrong)
        fail(cfi, -EINVAL, "frame with its prologue at code offset 0x%" PRIx64 ": %s",
             frame->prologue, wrong);
    else
        begin_frame(cfi, frame);
    if (frame->kind == JITDUMP_FRAME_LEAF)
        return;
    for (size_t i = 0; i < frame->epilogue_count && !cfi->error; i++) {
        /* Behind the leaving instruction the frame stands again.  Whatever that instruction's length:
         * no profiler sees the middle of it.  At the end of the code jitdump_cfi_finish drops this. */
        jitdump_cfi_remember_state(cfi, frame->epilogues[i]);
        uint64_t leave = cfi->arch->epilogue(cfi, frame, frame->epilogues[i]);
        jitdump_cfi_restore_state(cfi, leave + cfi->arch->leave_bytes);
    }
}

int jitdump_cfi_prologue_bytes(enum jitdump_arch arch, const struct jitdump_frame *frame)
{
    const struct cfi_arch *table = cfi_arch_of(arch);
    if (!table || cfi_check_frame(table, frame))
        return -EINVAL;
    return frame->flags & JITDUMP_FRAME_ENTERED ? 0 : (int)table->prologue(NULL, frame, 0);
}

int jitdump_cfi_epilogue_bytes(enum jitdump_arch arch, const struct jitdump_frame *frame)
{
    const struct cfi_arch *table = cfi_arch_of(arch);
    if (!table || cfi_check_frame(table, frame))
        return -EINVAL;
    return frame->kind == JITDUMP_FRAME_LEAF ? 0 : (int)table->epilogue(NULL, frame, 0);
}

/* ---- Import ---- */

/* Take over FDE, of code that begins at PC, if it is part of [CODE_ADDR, CODE_ADDR + CODE_SIZE). */
static bool import_fde(struct jitdump_cfi *cfi, const struct eh_fde *fde, uint64_t pc,
                       uint64_t code_addr, uint64_t code_size)
{
    uint64_t start = pc - code_addr;
    if (start >= code_size) {
        if (code_addr - pc < fde->pc_range && code_size)
            fail(cfi, -EINVAL,
                 "the FDE of 0x%" PRIx64 " begins before the code and reaches into it", pc);
        return false;
    }
    uint64_t rest = code_size - start;
    if (start > INT32_MAX || fde->pc_range == 0 ||
        !open_block(cfi, &fde->cie, start, fde->pc_range < rest ? fde->pc_range : rest) ||
        !program_room(cfi, fde->instructions_bytes))
        return false;
    sink_bytes(&cfi->program, fde->instructions, fde->instructions_bytes);
    close_block(cfi);
    return true;
}

int jitdump_cfi_import(struct jitdump_cfi *cfi, const void *eh_frame, size_t size,
                       uint64_t section_addr, uint64_t code_addr, uint64_t code_size)
{
    struct eh_frame_walk walk = jd_eh_frame_begin(eh_frame, size, false, 8);
    struct eh_fde fde;
    bool found = false;
    if (!cfi)
        return -ENOMEM;
    while (!cfi->error && jd_eh_frame_next(&walk, &fde))
        if (import_fde(cfi, &fde, eh_fde_pc(&fde, section_addr), code_addr, code_size))
            found = true;
    if (walk.broken)
        fail(cfi, -EINVAL, ".eh_frame, offset 0x%zx: %s", walk.broken_at, walk.broken);
    return cfi->error ? cfi->error : found ? 0 : -ENOENT;
}

/* ---- Finish ---- */

static uint64_t block_size(const struct cfi_block *block, uint64_t code_size)
{
    return block->size == WHOLE_CODE ? code_size : block->size;
}

/* Without the instructions that hold from the block's end on, that is for nothing. */
static size_t used_program_bytes(const struct cfi_block *block, uint64_t code_size)
{
    bool at_end =
        block->at > block->start && block->at - block->start == block_size(block, code_size);
    return at_end ? block->at_program_end : block->program_bytes;
}

static int by_start(const void *a, const void *b)
{
    uint64_t x = ((const struct cfi_block *)a)->start, y = ((const struct cfi_block *)b)->start;
    return (x > y) - (x < y);
}

static void check_blocks(struct jitdump_cfi *cfi, uint64_t code_size)
{
    uint64_t end = 0;
    for (size_t i = 0; i < cfi->block_count; i++) {
        const struct cfi_block *block = &cfi->blocks[i];
        uint64_t size = block_size(block, code_size);
        if (size && block->start < end)
            fail(cfi, -EINVAL, "block at code offset 0x%" PRIx64 " overlaps one before it",
                 block->start);
        if (block->at - block->start > size || block->start > code_size ||
            size > code_size - block->start)
            fail(cfi, -EINVAL, "block at code offset 0x%" PRIx64 " reaches past the code",
                 block->start);
        if (size)
            end = block->start + size;
    }
    if (end == 0)
        fail(cfi, -EINVAL, "no code to describe");
}

static size_t put_cie(struct jitdump_cfi *cfi, const struct eh_frame_writer *writer, size_t index)
{
    struct cfi_cie *cie = &cfi->cies[index];
    if (cie->offset == (size_t)NOWHERE) {
        cie->cie.instructions = cfi->program.data + cie->program_start;
        cie->offset = jd_eh_frame_put_cie(writer, &cie->cie);
    }
    return cie->offset;
}

/* Put .eh_frame and .eh_frame_hdr for perf's picture of the function: code at 0, the tables behind it.
 * Returns the size of the second. */
static size_t put_tables(struct jitdump_cfi *cfi, struct byte_sink *sink, uint64_t code_size)
{
    uint64_t section_addr = (code_size + 7) & ~UINT64_C(7);
    const struct eh_frame_writer writer = {sink, 0, section_addr};
    size_t count = 0;
    for (size_t i = 0; i < cfi->cie_count; i++)
        cfi->cies[i].offset = (size_t)NOWHERE;
    for (size_t i = 0; i < cfi->block_count; i++) {
        const struct cfi_block *block = &cfi->blocks[i];
        uint64_t size = block_size(block, code_size);
        if (size == 0)
            continue;
        size_t cie = put_cie(cfi, &writer, block->cie);
        size_t fde = jd_eh_frame_put_fde(&writer, cie, block->start, size,
                                         cfi->program.data + block->program_start,
                                         used_program_bytes(block, code_size));
        cfi->entries[count++] = (struct eh_frame_hdr_entry){block->start, section_addr + fde};
    }
    jd_eh_frame_put_end(&writer);
    sink_align(sink, EH_FRAME_ALIGN_BYTES); /* perf says of both sections that they are aligned */
    size_t frame_bytes = sink->size;
    jd_eh_frame_hdr_put(sink, section_addr + frame_bytes, section_addr, cfi->entries, count);
    return sink->size - frame_bytes;
}

/* Everything but the writing.  Returns false and fails if that can't be done. */
static bool get_ready(struct jitdump_cfi *cfi, uint64_t code_size)
{
    if (!cfi->error && code_size > INT32_MAX)
        fail(cfi, -EFBIG, "the code is larger than 2 GiB");
    if (!cfi->error && cfi->block_count == 0)
        open_block(cfi, &cfi->arch->cie, 0, WHOLE_CODE);
    close_block(cfi);
    if (cfi->error)
        return false;
    qsort(cfi->blocks, cfi->block_count, sizeof *cfi->blocks, by_start);
    cfi->finished = true;
    check_blocks(cfi, code_size);
    struct eh_frame_hdr_entry *entries =
        grow(cfi, cfi->entries, &cfi->entry_capacity, cfi->block_count, sizeof *entries);
    if (entries)
        cfi->entries = entries;
    return cfi->error == 0;
}

int jitdump_cfi_finish(struct jitdump_cfi *cfi, uint64_t code_size, struct jitdump_unwind *unwind)
{
    *unwind = (struct jitdump_unwind){0};
    if (!cfi)
        return -ENOMEM;
    if (!get_ready(cfi, code_size))
        return cfi->error;
    struct byte_sink measure = byte_sink_over(NULL, 0);
    put_tables(cfi, &measure, code_size);
    if (measure.size > INT32_MAX - code_size - EH_FRAME_ALIGN_BYTES)
        return fail(cfi, -EFBIG, "code and tables together are larger than 2 GiB");
    uint8_t *data = grow(cfi, cfi->tables.data, &cfi->tables.capacity, measure.size, 1);
    if (!data)
        return cfi->error;
    cfi->tables = byte_sink_over(data, cfi->tables.capacity);
    cfi->tables.big_endian = false;
    unwind->eh_frame_hdr_size = put_tables(cfi, &cfi->tables, code_size);
    unwind->data = data;
    unwind->unwinding_size = cfi->tables.size;
    unwind->mapped_size = cfi->tables.size;
    return 0;
}
