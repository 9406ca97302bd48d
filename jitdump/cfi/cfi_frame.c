/* Frames in short form: struct jitdump_frame of cfi.h, as directives. */
#include "jitdump/cfi/cfi_arch.h"
#include "jitdump/cfi/cfi_builder.h"
#include "jitdump/guest/sized_struct.h"

#include <inttypes.h>
#include <stdint.h>

/* As in version 0.1. */
#define FRAME_LEAST_BYTES (offsetof(struct jitdump_frame, epilogue_count) + sizeof(size_t))

/* Describe the code from AT on until it is inside FRAME. */
static void begin_frame(struct jitdump_cfi *cfi, const struct jitdump_frame *frame)
{
    uint64_t start = cfi->open ? cfi->blocks[cfi->block_count - 1].start : 0;
    if (!(frame->flags & JITDUMP_FRAME_ENTERED))
        cfi->arch->prologue(cfi, frame, frame->prologue ? frame->prologue : cfi->origin);
    else if (frame->kind != JITDUMP_FRAME_LEAF)
        cfi->arch->entered(cfi, frame, cfi->origin + start);
}

/* The error in the offset AT, or NULL.  Lengths are added to it, which must not overflow. */
static const char *check_place(const struct jitdump_cfi *cfi, uint64_t at)
{
    if (!at || at - cfi->origin <= INT32_MAX)
        return NULL;
    return at < cfi->origin ? "before the function" : "past 2 GiB";
}

/* The error in FRAME's offsets, or NULL. */
static const char *check_places(const struct jitdump_cfi *cfi, const struct jitdump_frame *frame)
{
    if (frame->kind == JITDUMP_FRAME_LEAF)
        return NULL;
    if (!(frame->flags & JITDUMP_FRAME_ENTERED)) {
        const char *wrong = check_place(cfi, frame->prologue);
        if (!wrong)
            wrong = check_place(cfi, frame->slots_at);
        if (wrong)
            return wrong;
    }
    return frame->epilogue_count && !frame->epilogues
               ? "epilogue_count is set, and epilogues is NULL"
               : NULL;
}

/* Read GIVEN, of a program with any version's header.  Returns what is wrong with it, or NULL. */
static const char *read_frame(struct jitdump_frame *frame, const struct jitdump_frame *given,
                              size_t frame_bytes)
{
    if (!given)
        return "frame is NULL";
    switch (sized_struct_read(frame, sizeof *frame, given, frame_bytes, FRAME_LEAST_BYTES)) {
    case 0:
        return NULL;
    case -E2BIG:
        return "members that this version of libjitdump does not know are set";
    default:
        return "frame_bytes is not sizeof(struct jitdump_frame)";
    }
}

/* After the leaving instruction the frame stands again.  The length of that instruction does not
 * matter: no profiler sees the middle of it.  At the end of the code jitdump_cfi_finish drops this.
 */
static void put_epilogue(struct jitdump_cfi *cfi, const struct jitdump_frame *frame,
                         const uint64_t *at)
{
    cfi->epilogue = at;
    jitdump_cfi_remember_state(cfi, *at);
    uint64_t leave = cfi->arch->epilogue(cfi, frame, *at);
    jitdump_cfi_restore_state(cfi, leave + cfi->arch->leave_bytes);
    cfi->epilogue = NULL;
    if (cfi->error)
        return;
    struct cfi_block *block = &cfi->blocks[cfi->block_count - 1];
    block->epilogue = *at;
    block->epilogue_end = block->at;
}

void jitdump_cfi_frame_sized(struct jitdump_cfi *cfi, const struct jitdump_frame *given,
                             size_t frame_bytes)
{
    struct jitdump_frame whole = {0}, *frame = &whole;
    if (!cfi || cfi->error)
        return;
    const char *wrong = read_frame(frame, given, frame_bytes);
    if (!wrong)
        wrong = check_places(cfi, frame);
    if (!wrong)
        wrong = cfi_check_frame(cfi->arch, frame);
    if (wrong)
        jd_cfi_fail(cfi, -EINVAL, "frame with its prologue at code offset 0x%" PRIx64 ": %s",
                    frame->prologue, wrong);
    else
        begin_frame(cfi, frame);
    if (wrong || frame->kind == JITDUMP_FRAME_LEAF)
        return;
    for (size_t i = 0; i < frame->epilogue_count && !cfi->error; i++)
        put_epilogue(cfi, frame, &frame->epilogues[i]);
}

int jitdump_cfi_prologue_bytes_sized(enum jitdump_arch arch, const struct jitdump_frame *given,
                                     size_t frame_bytes)
{
    struct jitdump_frame frame;
    const struct cfi_arch *table = cfi_arch_of(arch);
    if (!table || read_frame(&frame, given, frame_bytes) || cfi_check_frame(table, &frame))
        return -EINVAL;
    return frame.flags & JITDUMP_FRAME_ENTERED ? 0 : (int)table->prologue(NULL, &frame, 0);
}

int jitdump_cfi_epilogue_bytes_sized(enum jitdump_arch arch, const struct jitdump_frame *given,
                                     size_t frame_bytes)
{
    struct jitdump_frame frame;
    const struct cfi_arch *table = cfi_arch_of(arch);
    if (!table || read_frame(&frame, given, frame_bytes) || cfi_check_frame(table, &frame))
        return -EINVAL;
    return frame.kind == JITDUMP_FRAME_LEAF ? 0 : (int)table->epilogue(NULL, &frame, 0);
}
