/* The stage: the part of a dump's end that is mapped, and into which groups of records go first.
 *
 *      main                                spill
 *      | group | group | FILLER ................................... |    as a rule
 *
 *      | group | group | group | FILLER .. | group | FILLER ....... |    while main is emptied into the body
 *      0       drained         full_end    |       end              |
 *                                          main_bytes               bytes: the end of the file
 *
 * The mapping is shared, so what is stored there is in the file, also when the process is killed the next moment; and it
 * is small and used again and again, so that its pages are there and in the cache: a page that a store meets for
 * the first time costs more than all the rest of a record.
 *
 * What follows the last group is one FILLER, at any moment.  Each step ends with a single store, of id and size of one
 * record, that makes visible what was written into the FILLER before it: to append, to begin the spill.  What is
 * in front of the stage's first visible record is hidden in a FILLER of the body (dump_body.h).
 */
#ifndef JITDUMP_DUMP_STAGE_H
#define JITDUMP_DUMP_STAGE_H

#include "jitdump/jitdump_format.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    STAGE_SMALL_BYTES =
        12 << 10, /* what the first one begins with, since many a process logs next to nothing */
    STAGE_FIRST_BYTES =
        320 << 10, /* and grows to: a short program's dump takes little of the disk */
    STAGE_LATER_BYTES = 1280 << 10,
    STAGE_SPILL_DIVISOR = 5, /* the spill is a fifth of a stage; main takes over what is in it */
    /* Half of the smallest spill: a larger group has no business here. */
    STAGE_GROUP_MAX_BYTES = STAGE_FIRST_BYTES / STAGE_SPILL_DIVISOR / 2,
};

struct dump_stage {
    uint8_t *data;   /* NULL: none */
    uint64_t offset; /* in the file; a multiple of the page */
    uint32_t bytes;
    uint32_t mapped_bytes; /* more than bytes if it can grow, which it does not while it spills */
    uint32_t main_bytes;
    uint32_t end;      /* where the next group goes; in the spill if spilling */
    uint32_t stop;     /* the end of the part that end is in */
    bool spilling;     /* main takes no more groups: it is to be emptied */
    uint32_t drained;  /* if spilling: before this, main is in the body */
    uint32_t full_end; /* if spilling: where main's groups end */
};

/* Id and size of a record in one store: there is no moment at which a killed process has written the one
 * and not the other.  Records are not aligned; volatile keeps the compiler from splitting the store, and
 * the machines that this runs on do it in one instruction at any address. */
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

/* BYTES of FD from OFFSET on, as an empty stage that can grow to MAPPED_BYTES.  The blocks of BYTES must be there.  Returns 0 or a
 * negative errno. */
int jd_stage_map(struct dump_stage *stage, int fd, uint64_t offset, uint32_t bytes,
                 uint32_t mapped_bytes);

/* From now on it has all of its mapped bytes, whose blocks must be there. */
void jd_stage_grow(struct dump_stage *stage);

void jd_stage_unmap(struct dump_stage *stage);

/* Whether a group of BYTES can be appended: behind it there must be room for the prefix of a FILLER. */
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

/* Append the group of BYTES that was written at end, but for the first record's ID and TOTAL_SIZE. */
static inline void jd_stage_append(struct dump_stage *stage, uint32_t bytes, uint32_t id,
                                   uint32_t total_size)
{
    jd_stage_put_filler(stage, stage->end + bytes, stage->bytes);
    jd_store_id_and_size(stage->data + stage->end, id, total_size);
    stage->end += bytes;
}

/* From now on groups go into the spill, and nothing in main changes. */
void jd_stage_spill(struct dump_stage *stage);

/* Main is in the body, and hidden: copy there what is in the spill, and hide the spill behind it.  The copy takes the spill's place
 * at the moment when the body's FILLER points to the stage's offset: then jd_stage_gathered. */
void jd_stage_gather(struct dump_stage *stage);
void jd_stage_gathered(struct dump_stage *stage);

/* Put into the empty TO, which is no smaller, what is visible in FROM. */
void jd_stage_copy(struct dump_stage *to, const struct dump_stage *from);

#endif
