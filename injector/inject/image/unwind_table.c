/* See unwind_table.h. */
#include "injector/inject/image/unwind_table.h"

#include "injector/inject/layout/table_space.h"
#include "injector/text/plural.h"
#include "jitdump/format/eh_frame.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    CIES_KEPT = 16,
    MIN_HDR_BYTES = 24, /* perf 6.1 reads 20 bytes, also of a smaller table */
};

/* sdata4 reaches 2 GiB; the text of an image spans 1 GiB at most (image_plan.c). */
#define TABLE_REACH_BYTES (UINT64_C(1) << 30)

/* The CIEs written last, for the FDEs that follow: functions of one compiler share one or two. */
struct table_writer {
    const struct code_log *log;
    struct eh_frame_writer frame;
    struct eh_frame_hdr_entry *entries; /* NULL while only sizes are wanted */
    size_t entry_count;
    uint32_t kept_cie[CIES_KEPT]; /* index in the log */
    size_t kept_offset[CIES_KEPT];
    size_t kept_count;
};

static size_t cie_offset(struct table_writer *writer, uint32_t cie)
{
    size_t kept = writer->kept_count < CIES_KEPT ? writer->kept_count : CIES_KEPT;
    for (size_t i = 0; i < kept; i++)
        if (writer->kept_cie[i] == cie)
            return writer->kept_offset[i];
    size_t slot = writer->kept_count++ % CIES_KEPT;
    writer->kept_cie[slot] = cie;
    writer->kept_offset[slot] = jd_eh_frame_put_cie(&writer->frame, &writer->log->cies[cie]);
    return writer->kept_offset[slot];
}

/* The FDEs of FUNCTION, which stands at virtual address ADDR; of two that overlap the first
 * counts. */
static void put_function(struct table_writer *writer, const struct jit_function *function,
                         uint64_t addr)
{
    const struct code_fde *fdes = writer->log->fdes + function->first_fde;
    uint64_t reach = 0;
    for (size_t i = 0; i < function->fde_count; i++) {
        const struct code_fde *fde = &fdes[i];
        if ((i > 0 && fde->start < reach) || fde->size == 0 || fde->start >= function->size)
            continue;
        reach = (uint64_t)fde->start + fde->size;
        size_t offset =
            jd_eh_frame_put_fde(&writer->frame, cie_offset(writer, fde->cie), addr + fde->start,
                                fde->size, fde->instructions, fde->instructions_bytes);
        if (writer->entries)
            writer->entries[writer->entry_count] =
                (struct eh_frame_hdr_entry){addr + fde->start, writer->frame.section_addr + offset};
        writer->entry_count++;
    }
}

static void put_eh_frame(struct table_writer *writer, const struct jit_image *image)
{
    for (size_t i = 0; i < image->body_count; i++) {
        const struct jit_function *function = image->bodies[i].function;
        put_function(writer, function, function->addr - image->base);
    }
    jd_eh_frame_put_end(&writer->frame);
}

static uint64_t align(uint64_t value)
{
    return (value + EH_FRAME_ALIGN_BYTES - 1) / EH_FRAME_ALIGN_BYTES * EH_FRAME_ALIGN_BYTES;
}

/* If there is no room, IMAGE is left without tables, and that is reported. */
static void place(struct jit_image *image, const struct jit_process *process,
                  struct table_space *space, struct findings *findings)
{
    struct byte_sink nowhere = byte_sink_over(NULL, 0);
    struct table_writer writer = {.log = image->log, .frame = {.sink = &nowhere}};
    put_eh_frame(&writer, image);
    uint64_t hdr_bytes = align(EH_FRAME_HDR_BYTES + writer.entry_count * EH_FRAME_HDR_ENTRY_BYTES);
    if (hdr_bytes < MIN_HDR_BYTES)
        hdr_bytes = MIN_HDR_BYTES;
    uint64_t from = image->base + image->text_end + IMAGE_TRAILER_BYTES, addr = 0;
    if (nowhere.size < TABLE_REACH_BYTES / 2)
        addr = table_space_take(space, from, from + TABLE_REACH_BYTES, hdr_bytes + nowhere.size);
    if (!addr) {
        report_finding(findings, FINDING_UNWIND_NO_ROOM,
                       "process %" PRIu32 ": %zu function%s at 0x%" PRIx64, process->pid,
                       image->body_count, plural(image->body_count),
                       image->base + image->text_start);
        return;
    }
    image->tables_start = addr - image->base;
    image->hdr_bytes = hdr_bytes;
    image->eh_frame_bytes = nowhere.size;
}

int unwind_tables_place(struct image_plan *plan, const struct jit_process *processes,
                        uint32_t process_index, struct findings *findings)
{
    const struct jit_process *process = &processes[process_index];
    const struct process_plan *planned = &plan->processes[process_index];
    struct table_space space;
    if (planned->first_image == planned->end_image ||
        !plan->images[planned->first_image].log->has_unwinding)
        return 0;
    int result = table_space_open(&space, process, processes, plan);
    for (size_t i = planned->first_image; !result && i < planned->end_image; i++)
        place(&plan->images[i], process, &space, findings);
    table_space_free(&space);
    return result ? report_failure(findings, "out of memory") : 0;
}

int unwind_table_fill(const struct jit_image *image, const struct jit_process *process,
                      uint8_t *bytes)
{
    size_t capacity = (size_t)(image->hdr_bytes / EH_FRAME_HDR_ENTRY_BYTES);
    struct eh_frame_hdr_entry *entries = malloc(capacity * sizeof *entries);
    if (!entries)
        return -1;
    uint64_t frame_start = image->tables_start + image->hdr_bytes;
    bool big_endian = process->dumps[image->bodies[0].function->dump].big_endian;
    struct byte_sink frame =
        byte_sink_over(bytes + image->hdr_bytes, (size_t)image->eh_frame_bytes);
    struct byte_sink hdr = byte_sink_over(bytes, (size_t)image->hdr_bytes);
    struct table_writer writer = {
        .log = image->log, .frame = {&frame, 0, frame_start}, .entries = entries};
    frame.big_endian = hdr.big_endian = big_endian;
    put_eh_frame(&writer, image);
    jd_eh_frame_hdr_put(&hdr, image->tables_start, frame_start, entries, writer.entry_count);
    sink_zeros(&hdr, (size_t)image->hdr_bytes - hdr.size);
    free(entries);
    return 0;
}
