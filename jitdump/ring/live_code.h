/* The functions that are alive at a place of a dump.  The dump is read up to there to find them.
 *
 * Nothing is kept while functions are added, since that would cost each add more than its records
 * do.  The live functions are needed only when a dump is rewritten, and can be read from its
 * records.
 *
 * An event is a residence (a LOAD, or a MOVE to its new addresses), or an UNLOAD.  A residence is
 * over if its function was unloaded or moved on.  It is alive if it is not over and owns an address
 * that no later residence covers.  Functions that are alive are kept.  A dead function is kept with
 * all its events if it had overwritten a part of an older live function: without it that part would
 * appear again.
 *
 * An interpreted function is an event as well: it is alive until another one takes a part of its
 * memory.  The frame of an interpreter is always kept.
 *
 * A function in pieces is kept whole, with all its events, if any of its pieces is alive.
 *
 * A forked child moves and unloads functions that its parent's dump has.  For each such function
 * only the first event is kept.  It represents all, and says where the function is in the end, or
 * that it is gone.
 */
#ifndef JITDUMP_LIVE_CODE_H
#define JITDUMP_LIVE_CODE_H

#include "jitdump/ring/address_paint.h"
#include "jitdump/ring/record_window.h"

#include <stdbool.h>
#include <stdint.h>

#define LIVE_NONE UINT32_MAX

struct live_event {
    uint64_t start, end; /* of a residence; of an UNLOAD: as in the record */
    uint64_t code_index;
    uint64_t old_addr; /* of a MOVE */
    uint64_t time;
    uint32_t id;
    uint32_t offset, bytes; /* of its group in the file */
    uint32_t load;          /* its function's LOAD, if it is not a LOAD itself; LIVE_NONE: in
                             * another dump */
    uint32_t ends;          /* the residence that this event ended, or LIVE_NONE */
    uint32_t first;         /* of an inherited function: its first event; else LIVE_NONE */
    uint32_t last;          /* of the first event: the last one */
    uint32_t piece, pieces; /* of the LOAD of a piece: its number, and how many; else 0 */
    bool over, owns, keep;
    bool whole; /* keep it unchanged; of a LOAD: all events of its function */
};

struct live_code {
    uint64_t first_code_index; /* smaller ones are a parent's */
    uint64_t next;             /* where reading goes on */
    uint64_t group;            /* begin of the group that is being read; 0: none */
    uint64_t time;             /* of the last record */
    uint32_t piece, pieces;    /* of the group that is being read */
    uint32_t count;
    uint32_t slots; /* of indices */
    bool more_is_whole;
    struct mapped_array events;  /* struct live_event */
    struct mapped_array indices; /* a hash table of uint32_t: the last event of each function */
    struct address_paint paint;
    /* Results of jd_live_judge. */
    uint64_t kept_bytes, kept_loads, dropped_loads;
};

void jd_live_begin(struct live_code *live, uint64_t offset, uint64_t first_code_index);

/* Read on, up to the first group that begins at UNTIL or later.  Returns 0 or a negative errno. */
int jd_live_read(struct live_code *live, struct record_window *window, uint64_t until);

/* Find out which of the events read so far are kept.  Returns 0 or -ENOMEM. */
int jd_live_judge(struct live_code *live);

static inline struct live_event *jd_live_event(const struct live_code *live, uint32_t number)
{
    return (struct live_event *)live->events.data + number;
}

void jd_live_end(struct live_code *live);

#endif
