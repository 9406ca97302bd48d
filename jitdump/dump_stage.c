/* See dump_stage.h. */
#include "jitdump/dump_stage.h"

#include <errno.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; older kernels say EINVAL */
#endif

static void divide(struct dump_stage *stage, uint32_t bytes)
{
    stage->bytes = bytes;
    stage->main_bytes = bytes - bytes / STAGE_SPILL_DIVISOR;
    stage->stop = stage->main_bytes;
}

int jd_stage_map(struct dump_stage *stage, int fd, uint64_t offset, uint32_t bytes,
                 uint32_t mapped_bytes)
{
    void *data = mmap(NULL, mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
    if (data == MAP_FAILED)
        return -errno;
    /* A child has no business in its parent's file; and what was never there need not be found and
     * unmapped when a fork comes upon another thread that is just changing stages. */
    madvise(data, mapped_bytes, MADV_DONTFORK);
    madvise(data, bytes, MADV_POPULATE_WRITE); /* cheaper than a fault for each page */
    *stage = (struct dump_stage){.data = data, .offset = offset, .mapped_bytes = mapped_bytes};
    divide(stage, bytes);
    jd_stage_put_filler(stage, 0, bytes);
    return 0;
}

void jd_stage_grow(struct dump_stage *stage)
{
    madvise(stage->data, stage->mapped_bytes, MADV_POPULATE_WRITE);
    divide(stage, stage->mapped_bytes);
    jd_stage_put_filler(stage, stage->end, stage->bytes);
}

void jd_stage_unmap(struct dump_stage *stage)
{
    if (stage->data)
        munmap(stage->data, stage->mapped_bytes);
    stage->data = NULL;
}

void jd_stage_spill(struct dump_stage *stage)
{
    jd_stage_put_filler(stage, stage->main_bytes, stage->bytes);
    jd_stage_put_filler(stage, stage->end, stage->main_bytes);
    stage->drained = 0;
    stage->full_end = stage->end;
    stage->end = stage->main_bytes;
    stage->stop = stage->bytes;
    stage->spilling = true;
}

void jd_stage_gather(struct dump_stage *stage)
{
    uint32_t bytes = stage->end - stage->main_bytes;
    memcpy(stage->data, stage->data + stage->main_bytes, bytes);
    jd_stage_put_filler(stage, bytes, stage->bytes);
}

void jd_stage_gathered(struct dump_stage *stage)
{
    stage->end -= stage->main_bytes;
    stage->stop = stage->main_bytes;
    stage->spilling = false;
}

void jd_stage_copy(struct dump_stage *to, const struct dump_stage *from)
{
    uint32_t bytes = from->full_end - from->drained;
    if (from->spilling && from->drained < from->full_end) {
        memcpy(to->data, from->data + from->drained, bytes);
        to->end = bytes;
        jd_stage_spill(to);
    }
    uint32_t start = from->spilling ? from->main_bytes : 0;
    memcpy(to->data + to->end, from->data + start, from->end - start);
    to->end += from->end - start;
    jd_stage_put_filler(to, to->end, to->bytes);
}
