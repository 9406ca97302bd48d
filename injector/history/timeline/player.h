/* The state of one process while its timeline is played, shared by timeline.c, moment.c, remap.c
 * and fork.c. */
#ifndef PERFJIT_PLAYER_H
#define PERFJIT_PLAYER_H

#include "injector/arrays/address_map.h"
#include "injector/history/timeline/change.h"
#include "injector/log/code/jit_process.h"

/* The events since the last sample that are not yet a change. */
struct moment {
    uint64_t time_ns; /* of its first event */
    uint32_t *loaded; /* functions, in the order of their loads */
    size_t loaded_count, loaded_capacity;
    struct address_range *unloaded;
    size_t unloaded_count, unloaded_capacity;
};

struct player {
    struct timeline *timeline;
    const struct jit_process *process;
    size_t *inherited_count; /* functions that children were given, in all timelines */
    struct findings *findings;
    struct address_map owners; /* live functions */
    struct address_map shown;  /* the last function that became a change there, dead or alive */
    struct address_map backed; /* index into mappings: the mapping there by the profile's records */
    const struct recorded_map **mappings;
    size_t mapping_count, mapping_capacity;
    struct address_map mapped_since; /* index into times: when the addresses were mapped last */
    struct address_map logged;       /* any function of the log, at any time; if LOGGED_READ */
    bool logged_read;
    struct address_map vacated; /* some function that was there has been unloaded or moved: the
                                 * number of samples before that */
    const struct recorded_map *
        *grown; /* of a process whose unloads are in time: all its mappings */
    size_t grown_count, grown_capacity;
    uint64_t *times;
    size_t time_count, time_capacity;
    uint64_t
        began_ns; /* when the life began, or last forked: nothing can have been loaded before */
    const uint64_t *sample_times_ns;
    size_t sample_count, samples_passed; /* those before the event that is being played */
    struct change *early;                /* changes with times in the past */
    size_t early_count, early_capacity;
    uint32_t *inherited; /* fork.c's, by function */
    struct moment moment;
    uint32_t *late; /* maps that were synthesized late, and are passed on so far */
    size_t late_count, late_capacity;
};

/* Turn the visible events of the moment into changes; the next event begins another. */
int player_end_moment(struct player *player);

int player_add_change(struct player *player, struct change change);

/* FUNCTION is seen: its place in line among those that had its addresses. */
int player_set_generation(struct player *player, uint32_t function);

/* Note that MAP is the mapping at [START, END). */
int player_set_backed(struct player *player, uint64_t start, uint64_t end,
                      const struct recorded_map *map);

/* Add a change whose time has passed. */
int player_add_early_change(struct player *player, struct change change);

/* remap.c: play mapping INDEX of the process; note whether FUNCTION, logged at TIME_NS, is
 * from before the maps are known. */
int player_play_map(struct player *player, uint32_t index);
void player_note_before_maps(struct player *player, uint64_t time_ns, uint32_t function);

/* All has been played: put the maps that were synthesized late, and in which there was code, where
 * they belong. */
int player_place_late(struct player *player);

/* Make the timeline's own log, whose functions can be changed, if there is none yet. */
int player_own_log(struct player *player);

/* Three calls of pieces.c.  Function INDEX is loaded: it belongs to the one before it if both are
 * pieces of one function.  Piece FROM is TO now.  The last returns the piece after INDEX in the
 * ring, INDEX itself if it is alone.
 */
void player_link_piece(struct player *player, uint32_t index);
void player_move_piece(struct player *player, uint32_t from, uint32_t to);
uint32_t player_next_piece(const struct player *player, uint32_t index);

/* fork.c.  The first sets down the code that the child of fork number FORK inherits.  The second
 * begins with INHERITANCE, whose functions stand in PARENT. */
int player_hand_over(struct player *player, size_t fork);
int player_take_over(struct player *player, const struct inheritance *inheritance,
                     const struct timeline *parent);

#endif
