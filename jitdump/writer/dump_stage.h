/* The stage: a small mapped file beside the dump's body, into which groups of records go first.
 *
 *               main                                spill
 *      header | group | group | FILLER ................................... |    usually
 *
 *      header | group | group | group | FILLER .. | group | FILLER ....... | while main is copied
 *      to the body
 *
 *      header | FILLER .......................... | group | FILLER ....... |    after that
 *               STAGE_START             full_end    |       end            |
 *                                                   main_bytes    bytes: the file's end
 *
 * It is a dump of its own, with a marker of its own, in a directory where no other JIT looks
 * (dump_place.h).  Only this file is ever mapped writable: a store to a mapped page that has been
 * truncated away raises a signal.
 *
 * The mapping is shared, so stored bytes are in the file even if the process is killed the next
 * moment.  It is small and reused, so its pages are present and in the cache.  The first store to a
 * page costs more than the rest of a record.
 *
 * The last group is always followed by one FILLER.  Each step ends with a single store of the id
 * and size of one record.  The store makes visible the bytes written into the FILLER before it, or
 * hides visible records.  The steps are: append; begin the spill; hide main; show the spill's
 * groups in main and with that hide the spill.
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
    STAGE_SMALL_BYTES = 12 << 10,  /* its first size, since many processes log next to nothing */
    STAGE_FIRST_BYTES =
        320 << 10, /* which it grows to: a short program's dump takes little disk space */
    STAGE_LATER_BYTES = 1280 << 10,
    STAGE_SPILL_DIVISOR = 5, /* the spill is a fifth of a stage; main takes over its groups */
    /* Half of the smallest spill: larger groups go to the body directly. */
    STAGE_GROUP_MAX_BYTES = STAGE_FIRST_BYTES / STAGE_SPILL_DIVISOR / 2,
};

struct dump_stage {
    uint8_t *data; /* NULL: none */
    uint32_t bytes;
    uint32_t mapped_bytes; /* its largest size; it does not grow while it spills */
    uint32_t main_bytes;   /* where the spill begins */
    uint32_t end;          /* where the next group goes; in the spill if spilling */
    uint32_t stop;         /* the end of the part that end is in */
    bool spilling;         /* main takes no more groups: it is to be emptied */
    uint32_t full_end;     /* if spilling: where main's groups end */
};

/* Store id and size of a record at once, so a killed process has written both or neither.  Records
 * are not aligned. volatile keeps the compiler from splitting the store.  The supported machines
 * store eight bytes in one instruction at any address. */
static inline void jd_store_id_and_size(uint8_t *at, uint32_t id, uint32_t total_size)
{
    typedef uint64_t __attribute__((may_alias, aligned(1))) u64_anywhere;
    const uint32_t halves[2] = {id, total_size};
    uint64_t word;
    memcpy(&word, halves, sizeof word);
    /* After a kill a thread's stores are there in program order; a reader on another CPU needs a
     * fence. */
    atomic_thread_fence(memory_order_release);
    *(volatile u64_anywhere *)at = word;
}

/* Map the first BYTES of the file FD as an empty stage that can grow to MAPPED_BYTES.  The blocks
 * of these bytes must be allocated.  If FD is -1, map anonymous memory of that size.  The file will
 * begin with HEADER.  Returns 0 or a negative errno. */
int jd_stage_map(struct dump_stage *stage, int fd, uint32_t bytes, uint32_t mapped_bytes,
                 const uint8_t header[JITHEADER_BYTES]);

/* Extend it to BYTES, whose blocks must be allocated. */
void jd_stage_grow(struct dump_stage *stage, uint32_t bytes);

void jd_stage_unmap(struct dump_stage *stage);

static inline bool jd_stage_is_empty(const struct dump_stage *stage)
{
    return !stage->spilling && stage->end == STAGE_START;
}

/* Whether a group of BYTES can be appended: the prefix of a FILLER must fit after it. */
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

/* Append the group of BYTES that was written at end, except for the first record's ID and
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

/* While it spills: main's groups are in the body now; hide them here. */
void jd_stage_empty_main(struct dump_stage *stage);

/* While it spills: the spill's groups are in the body now, too. */
void jd_stage_empty_spill(struct dump_stage *stage);

static inline bool jd_stage_main_is_empty(const struct dump_stage *stage)
{
    return stage->full_end == STAGE_START;
}

/* Main is empty: move the spill's groups there. */
void jd_stage_gather(struct dump_stage *stage);

#endif
