/* Which functions are alive at a place of a dump: found by reading the dump up to there.
 *
 * Nothing is kept while functions are added, since that would cost each of them more than the
 * records do: what is alive is asked only when a dump is rewritten, and is in its records.
 *
 * An event is a residence (a LOAD, or a MOVE to its new addresses), or an UNLOAD.  A residence is
 * over if its function was unloaded or moved on; it is alive if it is not over and owns an address,
 * because no later residence covers that.  Kept are the functions that are alive; and whole, with
 * all their events, those without which a part of an older function would be there again, which
 * they had overwritten before they went.
 *
 * A function in pieces is kept whole, with all its events, if any of its pieces is alive.
 *
 * A forked child moves and unloads functions that its parent's dump has.  Of each such function one
 * event is kept, the first: it stands for all, and says where the function is in the end, or that
 * it is gone.
 */
#ifndef JITDUMP_LIVE_CODE_H
#define JITDUMP_LIVE_CODE_H

#include "jitdump/ring/address_paint.h"
#include "jitdump/ring/record_window.h"

#include <stdbool.h>
#include <stdint.h>

#define LIVE_NONE UINT32_MAX

struct live_event {
    uint64_t start, end; /* of a residence; of an UNLOAD: what it says */
    uint64_t code_index;
    uint64_t old_addr; /* of a MOVE */
    uint64_t time;
    uint32_t id;
    uint32_t offset, bytes; /* of its group in the file */
    uint32_t load;          /* of its function, if it is none itself; LIVE_NONE: in another dump */
    uint32_t ends;          /* the residence that it ended, or LIVE_NONE */
    uint32_t first;         /* of an inherited function: its first event; else LIVE_NONE */
    uint32_t last;          /* of that one: the last event */
    uint32_t piece, pieces; /* of the LOAD of a piece: its number, and how many; else 0 */
    bool over, owns, keep;
    bool whole; /* keep it as it is; of a LOAD: all events of its function */
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
    /* What jd_live_judge found. */
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
