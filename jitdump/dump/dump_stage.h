/* The stage: a small file beside the dump's body, mapped, into which groups of records go first.
 *
 *               main                                spill
 *      header | group | group | FILLER ................................... |    as a rule
 *
 *      header | group | group | group | FILLER .. | group | FILLER ....... | while main is copied
 *      to the body
 *
 *      header | FILLER .......................... | group | FILLER ....... |    when it is there
 *               STAGE_START             full_end    |       end            |
 *                                                   main_bytes    bytes: the file's end
 *
 * It is a dump of its own, with a marker of its own, in a directory where no other JIT looks
 * (dump_place.h): a store into a mapped page that somebody has cut off is a signal, so nothing else
 * is ever mapped to be written to.
 *
 * The mapping is shared, so what is stored there is in the file, also when the process is killed
 * the next moment; and it is small and used again and again, so that its pages are there and in the
 * cache: a page that a store meets for the first time costs more than all the rest of a record.
 *
 * What follows the last group is one FILLER, at any moment.  Each step ends with a single store, of
 * id and size of one record, that makes visible what was written into the FILLER before it, or
 * hides what was visible: to append, to begin the spill, to hide main, to show in main what is in
 * the spill, and with that to hide the spill.
 */
#ifndef JITDUMP_DUMP_STAGE_H
#define JITDUMP_DUMP_STAGE_H

#include "jitdump/format/jitdump_format.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    STAGE_START = JITHEADER_BYTES, /* a multiple of 8 */
    STAGE_SMALL_BYTES =
        12 << 10, /* what it begins with, since many a process logs next to nothing */
    STAGE_FIRST_BYTES =
        320 << 10, /* and grows to: a short program's dump takes little of the disk */
    STAGE_LATER_BYTES = 1280 << 10,
    STAGE_SPILL_DIVISOR = 5, /* the spill is a fifth of a stage; main takes over what is in it */
    /* Half of the smallest spill: a larger group has no business here. */
    STAGE_GROUP_MAX_BYTES = STAGE_FIRST_BYTES / STAGE_SPILL_DIVISOR / 2,
};

struct dump_stage {
    uint8_t *data; /* NULL: none */
    uint32_t bytes;
    uint32_t mapped_bytes; /* what it can grow to, which it does not while it spills */
    uint32_t main_bytes;   /* where the spill begins */
    uint32_t end;          /* where the next group goes; in the spill if spilling */
    uint32_t stop;         /* the end of the part that end is in */
    bool spilling;         /* main takes no more groups: it is to be emptied */
    uint32_t full_end;     /* if spilling: where main's groups end */
};

/* Id and size of a record in one store: there is no moment at which a killed process has written
 * the one and not the other.  Records are not aligned; volatile keeps the compiler from splitting
 * the store, and the machines that this runs on do it in one instruction at any address. */
static inline void jd_store_id_and_size(uint8_t *at, uint32_t id, uint32_t total_size)
{
    typedef uint64_t __attribute__((may_alias, aligned(1))) u64_anywhere;
    const uint32_t halves[2] = {id, total_size};
    uint64_t word;
    memcpy(&word, halves, sizeof word);
    /* A kill finds the stores of a thread in their order; a reader on another CPU needs a fence. */
    atomic_thread_fence(memory_order_release);
    *(volatile u64_anywhere *)at = word;
}

/* The first BYTES of the file FD, whose blocks must be there, as an empty stage that can grow to
 * MAPPED_BYTES; or as much memory that is in no file if FD is -1.  HEADER is what the file is to
 * begin with.  Returns 0 or a negative errno. */
int jd_stage_map(struct dump_stage *stage, int fd, uint32_t bytes, uint32_t mapped_bytes,
                 const uint8_t header[JITHEADER_BYTES]);

/* From now on it has BYTES, whose blocks must be there. */
void jd_stage_grow(struct dump_stage *stage, uint32_t bytes);

void jd_stage_unmap(struct dump_stage *stage);

static inline bool jd_stage_is_empty(const struct dump_stage *stage)
{
    return !stage->spilling && stage->end == STAGE_START;
}

/* Whether a group of BYTES can be appended: behind it there must be room for the prefix of a
 * FILLER. */
static inline bool jd_stage_holds(const struct dump_stage *stage, uint64_t bytes)
{
    return bytes + JR_PREFIX_BYTES <= stage->stop - stage->end;
}

/* A FILLER from FROM up to TO. */
static inline void jd_stage_put_filler(struct dump_stage *stage, uint32_t from, uint32_t to)
{
    memset(stage->data + from + 8, 0, JR_PREFIX_BYTES - 8);
    jd_store_id_and_size(stage->data + from, JIT_FILLER, to - from);
}

/* Append the group of BYTES that was written at end, but for the first record's ID and
 * TOTAL_SIZE. */
static inline void jd_stage_append(struct dump_stage *stage, uint32_t bytes, uint32_t id,
                                   uint32_t total_size)
{
    jd_stage_put_filler(stage, stage->end + bytes, stage->bytes);
    jd_store_id_and_size(stage->data + stage->end, id, total_size);
    stage->end += bytes;
}

/* From now on groups go into the spill, and nothing in main changes. */
void jd_stage_spill(struct dump_stage *stage);

/* While it spills: main's groups are in the body, and are hidden here. */
void jd_stage_empty_main(struct dump_stage *stage);

static inline bool jd_stage_main_is_empty(const struct dump_stage *stage)
{
    return stage->full_end == STAGE_START;
}

/* Main is empty, and takes the place of the spill, with what is in that. */
void jd_stage_gather(struct dump_stage *stage);

#endif
