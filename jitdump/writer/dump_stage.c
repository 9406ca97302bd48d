/* See dump_stage.h. */
#include "jitdump/writer/dump_stage.h"

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

int jd_stage_map(struct dump_stage *stage, int fd, uint32_t bytes, uint32_t mapped_bytes,
                 const uint8_t header[JITHEADER_BYTES])
{
    int flags = fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    void *data = mmap(NULL, mapped_bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (data == MAP_FAILED)
        return -errno;
    /* A child must not write to its parent's file.  A file that is never mapped in the child need
     * not be found and unmapped there, after a fork while another thread opens it. */
    madvise(data, mapped_bytes, MADV_DONTFORK);
    if (fd >= 0)
        madvise(data, bytes, MADV_POPULATE_WRITE); /* cheaper than a fault for each page */
    *stage = (struct dump_stage){.data = data, .mapped_bytes = mapped_bytes, .end = STAGE_START};
    divide(stage, bytes);
    jd_stage_put_filler(stage, STAGE_START, bytes);
    memcpy(stage->data, header, JITHEADER_BYTES);
    return 0;
}

void jd_stage_grow(struct dump_stage *stage, uint32_t bytes)
{
    madvise(stage->data, bytes, MADV_POPULATE_WRITE);
    divide(stage, bytes);
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
    stage->full_end = stage->end;
    stage->end = stage->main_bytes;
    stage->stop = stage->bytes;
    stage->spilling = true;
}

void jd_stage_empty_main(struct dump_stage *stage)
{
    jd_store_id_and_size(stage->data + STAGE_START, JIT_FILLER, stage->main_bytes - STAGE_START);
    stage->full_end = STAGE_START;
}

void jd_stage_empty_spill(struct dump_stage *stage)
{
    jd_stage_put_filler(stage, stage->main_bytes, stage->bytes);
    stage->end = stage->main_bytes;
}

void jd_stage_gather(struct dump_stage *stage)
{
    enum { ID_AND_SIZE_BYTES = 8 };
    uint8_t *main = stage->data + STAGE_START;
    const uint8_t *spill = stage->data + stage->main_bytes;
    uint32_t bytes = stage->end - stage->main_bytes, id_and_size[2];
    if (bytes == 0) {
        jd_store_id_and_size(main, JIT_FILLER, stage->bytes - STAGE_START);
    } else {
        memcpy(main + ID_AND_SIZE_BYTES, spill + ID_AND_SIZE_BYTES, bytes - ID_AND_SIZE_BYTES);
        jd_stage_put_filler(stage, STAGE_START + bytes, stage->bytes);
        memcpy(id_and_size, spill, sizeof id_and_size);
        jd_store_id_and_size(main, id_and_size[0], id_and_size[1]);
    }
    stage->end = STAGE_START + bytes;
    stage->stop = stage->main_bytes;
    stage->spilling = false;
}
