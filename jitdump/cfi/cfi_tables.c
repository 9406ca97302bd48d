/* Whole unwind tables, in and out: jitdump_cfi_import and jitdump_cfi_finish of cfi.h.
 *
 * The size of the code, and with it the addresses at which perf sees the tables, is known only when
 * they are written. */
#include "jitdump/cfi/cfi_builder.h"
#include "jitdump/guest/sized_struct.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* ---- Import ---- */

/* The index of FDE's CIE.  Each CIE of the section is looked up once, however many FDEs share it.
 */
static bool import_cie(struct jitdump_cfi *cfi, const struct eh_fde *fde, size_t *index)
{
    size_t *imported = jd_cfi_grow(cfi, cfi->imported, &cfi->imported_capacity, fde->cie_number + 1,
                                   sizeof *imported);
    if (!imported)
        return false;
    cfi->imported = imported;
    while (cfi->imported_count <= fde->cie_number)
        imported[cfi->imported_count++] = NOT_IMPORTED;
    if (imported[fde->cie_number] == NOT_IMPORTED &&
        !jd_cfi_get_cie(cfi, &fde->cie, &imported[fde->cie_number]))
        return false;
    *index = imported[fde->cie_number];
    return true;
}

/* Import FDE, of code that begins at PC, if it is part of [CODE_ADDR, CODE_ADDR + CODE_SIZE). */
static bool import_fde(struct jitdump_cfi *cfi, const struct eh_fde *fde, uint64_t pc,
                       uint64_t code_addr, uint64_t code_size)
{
    uint64_t start = pc - code_addr;
    size_t cie;
    if (start >= code_size) {
        if (code_addr - pc < fde->pc_range && code_size)
            jd_cfi_fail(cfi, -EINVAL,
                        "the FDE of 0x%" PRIx64 " begins before the code and reaches into it", pc);
        return false;
    }
    uint64_t rest = code_size - start;
    if (start > INT32_MAX || fde->pc_range == 0 || !import_cie(cfi, fde, &cie) ||
        !jd_cfi_open_block(cfi, cie, start, fde->pc_range < rest ? fde->pc_range : rest) ||
        !jd_cfi_program_room(cfi, fde->instructions_bytes))
        return false;
    sink_bytes(&cfi->program, fde->instructions, fde->instructions_bytes);
    jd_cfi_close_block(cfi);
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
    if (size && !eh_frame)
        return jd_cfi_fail(cfi, -EINVAL, "size is set, and eh_frame is NULL");
    cfi->imported_count = 0;
    while (!cfi->error && jd_eh_frame_next(&walk, &fde))
        if (import_fde(cfi, &fde, eh_fde_pc(&fde, section_addr), code_addr, code_size))
            found = true;
    jd_eh_frame_end(&walk);
    if (walk.broken)
        jd_cfi_fail(cfi, walk.no_memory ? -ENOMEM : -EINVAL, ".eh_frame, offset 0x%zx: %s",
                    walk.broken_at, walk.broken);
    return cfi->error ? cfi->error : found ? 0 : -ENOENT;
}

/* ---- Finish ---- */

static uint64_t block_size(const struct cfi_block *block, uint64_t code_size)
{
    return block->size == WHOLE_CODE ? code_size : block->size;
}

/* Leave out the instructions at the block's end, which apply to no code. */
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
            jd_cfi_fail(cfi, -EINVAL, "block at code offset 0x%" PRIx64 " overlaps one before it",
                        block->start);
        if (block->at - block->start > size && block->at == block->epilogue_end)
            jd_cfi_fail(cfi, -EINVAL, "epilogue at code offset 0x%" PRIx64 " reaches past the code",
                        block->epilogue);
        if (block->at - block->start > size || block->start > code_size ||
            size > code_size - block->start)
            jd_cfi_fail(cfi, -EINVAL, "block at code offset 0x%" PRIx64 " reaches past the code",
                        block->start);
        if (size)
            end = block->start + size;
    }
    if (end == 0)
        jd_cfi_fail(cfi, -EINVAL, "no code to describe");
}

static size_t put_cie(struct jitdump_cfi *cfi, const struct eh_frame_writer *writer, size_t index)
{
    struct cfi_cie *cie = &cfi->cies[index];
    if (cie->offset == SIZE_MAX) {
        cie->cie.instructions = cfi->program.data + cie->program_start;
        cie->offset = jd_eh_frame_put_cie(writer, &cie->cie);
    }
    return cie->offset;
}

/* Put .eh_frame and .eh_frame_hdr in perf's layout of the function: code at 0, the tables after
 * it. Returns the size of the second. */
static size_t put_tables(struct jitdump_cfi *cfi, struct byte_sink *sink, uint64_t code_size)
{
    uint64_t section_addr = (code_size + 7) & ~UINT64_C(7);
    const struct eh_frame_writer writer = {sink, 0, section_addr};
    size_t count = 0;
    for (size_t i = 0; i < cfi->cie_count; i++)
        cfi->cies[i].offset = SIZE_MAX;
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

/* Everything except the writing.  Returns false and keeps the error if that fails. */
static bool get_ready(struct jitdump_cfi *cfi, uint64_t code_size)
{
    if (!cfi->error && code_size > INT32_MAX)
        jd_cfi_fail(cfi, -EFBIG, "the code is larger than 2 GiB");
    if (!cfi->error && cfi->block_count == 0)
        jd_cfi_open_own_block(cfi, 0, WHOLE_CODE);
    jd_cfi_close_block(cfi);
    if (cfi->error)
        return false;
    qsort(cfi->blocks, cfi->block_count, sizeof *cfi->blocks, by_start);
    cfi->finished = true;
    check_blocks(cfi, code_size);
    struct eh_frame_hdr_entry *entries =
        jd_cfi_grow(cfi, cfi->entries, &cfi->entry_capacity, cfi->block_count, sizeof *entries);
    if (entries)
        cfi->entries = entries;
    return cfi->error == 0;
}

/* The size of the tables for code of CODE_SIZE, or 0 and the error. */
static size_t measure_tables(struct jitdump_cfi *cfi, uint64_t code_size)
{
    if (!get_ready(cfi, code_size))
        return 0;
    struct byte_sink measure = byte_sink_over(NULL, 0);
    put_tables(cfi, &measure, code_size);
    if (code_size + EH_FRAME_ALIGN_BYTES + measure.size <= INT32_MAX)
        return measure.size;
    jd_cfi_fail(cfi, -EFBIG, "code and tables together are larger than 2 GiB");
    return 0;
}

static void write_tables(struct jitdump_cfi *cfi, struct byte_sink *sink, uint64_t code_size,
                         struct jitdump_unwind *unwind)
{
    sink->big_endian = false;
    unwind->eh_frame_hdr_size = put_tables(cfi, sink, code_size);
    unwind->data = sink->data;
    unwind->unwinding_size = sink->size;
    unwind->mapped_size = sink->size;
}

/* *UNWIND is all zero before. */
static int finish(struct jitdump_cfi *cfi, uint64_t code_size, struct jitdump_unwind *unwind)
{
    if (!cfi)
        return -ENOMEM;
    size_t bytes = measure_tables(cfi, code_size);
    if (!bytes)
        return cfi->error;
    uint8_t *data = jd_cfi_grow(cfi, cfi->tables.data, &cfi->tables.capacity, bytes, 1);
    if (!data)
        return cfi->error;
    cfi->tables = byte_sink_over(data, cfi->tables.capacity);
    write_tables(cfi, &cfi->tables, code_size, unwind);
    return 0;
}

/* ---- Functions that are ended one at a time ---- */

enum { KEPT_LEAST_BYTES = 4096 };

void jd_cfi_free_kept(struct jitdump_cfi *cfi)
{
    while (cfi->kept) {
        struct cfi_kept *kept = cfi->kept;
        cfi->kept = kept->next;
        free(kept);
    }
}

void jd_cfi_empty_kept(struct jitdump_cfi *cfi)
{
    for (struct cfi_kept *kept = cfi->kept; kept; kept = kept->next)
        kept->used = 0;
    cfi->filling = cfi->kept;
}

/* Memory for BYTES after all there is; NULL and a failure if there is none. */
static struct cfi_kept *add_kept(struct jitdump_cfi *cfi, size_t bytes)
{
    struct cfi_kept *last = cfi->filling;
    size_t wanted = last ? 2 * last->bytes : KEPT_LEAST_BYTES;
    wanted = bytes > wanted ? bytes : wanted;
    const int callers_errno = errno;
    struct cfi_kept *kept = malloc(sizeof *kept + wanted);
    errno = callers_errno;
    if (!kept) {
        jd_cfi_fail(cfi, -ENOMEM, "out of memory");
        return NULL;
    }
    *kept = (struct cfi_kept){.bytes = wanted};
    if (last)
        last->next = kept;
    else
        cfi->kept = kept;
    return kept;
}

/* BYTES that stay where they are until the next reset; NULL and a failure if there is no memory. */
static uint8_t *keep_room(struct jitdump_cfi *cfi, size_t bytes)
{
    while (!cfi->filling || bytes > cfi->filling->bytes - cfi->filling->used) {
        struct cfi_kept *next = cfi->filling ? cfi->filling->next : NULL;
        if (!next)
            next = add_kept(cfi, bytes);
        if (!next)
            return NULL;
        cfi->filling = next;
    }
    cfi->filling->used += bytes;
    return cfi->filling->data + cfi->filling->used - bytes;
}

static int end_function(struct jitdump_cfi *cfi, uint64_t at, struct jitdump_unwind *unwind)
{
    if (!cfi->begun)
        return jd_cfi_fail(cfi, -EINVAL, "an end at code offset 0x%" PRIx64 " of nothing begun",
                           at);
    cfi->begun = false;
    if (at < cfi->origin)
        return jd_cfi_fail(cfi, -EINVAL,
                           "an end at code offset 0x%" PRIx64 ", before the function's beginning",
                           at);
    size_t bytes = measure_tables(cfi, at - cfi->origin);
    uint8_t *data = bytes ? keep_room(cfi, bytes) : NULL;
    if (!data)
        return cfi->error;
    struct byte_sink sink = byte_sink_over(data, bytes);
    write_tables(cfi, &sink, at - cfi->origin, unwind);
    return 0;
}

/* ---- The calls of cfi.h ---- */

#define UNWIND_LEAST_BYTES (offsetof(struct jitdump_unwind, mapped_size) + sizeof(uint64_t))

/* Clear the caller's struct; -EINVAL for what can't be one. */
static int clear(struct jitdump_unwind *unwind, size_t unwind_bytes)
{
    static const struct jitdump_unwind none;
    return sized_struct_write(unwind, unwind_bytes, &none, sizeof none, UNWIND_LEAST_BYTES);
}

int jitdump_cfi_finish_sized(struct jitdump_cfi *cfi, uint64_t code_size,
                             struct jitdump_unwind *unwind, size_t unwind_bytes)
{
    struct jitdump_unwind tables = {0};
    int error = clear(unwind, unwind_bytes);
    if (!error)
        error = finish(cfi, code_size, &tables);
    if (!error)
        sized_struct_write(unwind, unwind_bytes, &tables, sizeof tables, UNWIND_LEAST_BYTES);
    return error;
}

int jitdump_cfi_end_sized(struct jitdump_cfi *cfi, uint64_t at, struct jitdump_unwind *unwind,
                          size_t unwind_bytes)
{
    struct jitdump_unwind tables = {0};
    int error = clear(unwind, unwind_bytes);
    if (!error)
        error = cfi ? end_function(cfi, at, &tables) : -ENOMEM;
    if (!error)
        sized_struct_write(unwind, unwind_bytes, &tables, sizeof tables, UNWIND_LEAST_BYTES);
    return error;
}
