/* The state of some addresses over time, as perf has it after perfjit inject.  One life of a
 * process is played forward, and each child from its parent's state at the fork.  A child's changes
 * are undone before the parent is played on.
 *
 * Three things decide, the newest first: the changes of the process's timeline, the kept mappings
 * of the profile, and the state inherited by fork.  The history has the state that is *shown* at an
 * address.  It also has the *last* change of code there, which a mapping does not reset:
 *
 *     time      1 load f      2 unload f     3 mapping of memory
 *     shown     FUNCTION      GONE           MEMORY
 *     last      FUNCTION      GONE           GONE          (a sample hits freed code)
 *
 * It is kept only for the addresses of samples: few functions of many are ever sampled.  A mapping
 * may cover many of these.  So the states are those of ranges of addresses, by number.
 */
#ifndef PERFJIT_ADDRESS_HISTORY_H
#define PERFJIT_ADDRESS_HISTORY_H

#include "injector/arrays/address_map.h"
#include "injector/history/timeline/timeline.h"

enum address_state {
    ADDRESS_NOTHING,  /* no record maps it */
    ADDRESS_FILE,     /* a mapped file, which has symbols of its own */
    ADDRESS_MEMORY,   /* memory such as a JIT has its code in */
    ADDRESS_FUNCTION, /* a function: named */
    ADDRESS_GONE,     /* of a function that was unloaded or moved */
};

/* Facts about an address at one time.  A sample of that time gets them as they are.  A fact for a
 * new reason for a sample without a name belongs here. */
struct address_facts {
    uint8_t shown; /* enum address_state */
    uint8_t last;  /* ADDRESS_FUNCTION, ADDRESS_GONE, or ADDRESS_NOTHING */
};

/* A piece of a history before a visit changed it: the addresses of those numbers. */
struct address_before {
    struct address_range range;
    bool is_last; /* of the last changes of code; else of what is shown */
    bool was_set;
};

/* The facts about an address, as they were when the history had had so many CHANGES. */
struct known_facts {
    uint32_t changes;
    struct address_facts facts;
};

/* Its maps are of the numbers of addresses. */
struct address_history {
    const uint64_t *asked; /* ascending, each once */
    size_t count;
    struct address_map shown, last;
    struct known_facts *known;     /* by number: most samples are at few addresses */
    uint32_t changes;              /* of SHOWN and LAST, and one */
    struct address_before *before; /* of the open visits but the outermost, the innermost last */
    size_t before_count, before_capacity;
    size_t visits;  /* that are open */
    size_t behind;  /* the first address behind the last change */
    bool no_memory; /* something could not be kept: the states are wrong from there on */
};

/* One life of a process, as far as it has been played. */
struct history_part {
    const struct jit_process *process; /* NULL: it has no JIT code that is known */
    const struct timeline *timeline;   /* of PROCESS */
    const struct recorded_map *maps;   /* of this life, by time */
    size_t map_count;
    size_t change, map;      /* the next ones to be played */
    uint64_t next_ns;        /* nothing happens before */
    struct address_map code; /* where PROCESS has a function at some time, if that matters */
};

/* Fill in the rest of PART.  Returns 0, or -1 without memory.  Release with history_part_end in
 * either case. */
int history_part_begin(struct history_part *part);

void history_part_end(struct history_part *part);

/* Begin a history of the COUNT addresses in ASKED, which must outlive HISTORY, all ADDRESS_NOTHING.
 * Returns 0, or -1 without memory.  Release with address_history_end in either case. */
int address_history_begin(struct address_history *history, const uint64_t *asked, size_t count);

/* Begin a visit: of a life, from the present state.  End it: undo the changes since then.  The
 * first returns what the second wants. */
size_t address_history_enter(struct address_history *history);
void address_history_leave(struct address_history *history, size_t mark);

/* Play the events in PART up to TIME_NS, inclusive. */
void address_history_play(struct address_history *history, struct history_part *part,
                          uint64_t time_ns);

/* The facts about address number NUMBER. */
struct address_facts address_history_facts(struct address_history *history, size_t number);

void address_history_end(struct address_history *history);

#endif
