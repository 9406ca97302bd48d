/* The element of a timeline: from a moment on, some addresses are a function's, or free. */
#ifndef PERFJIT_CHANGE_H
#define PERFJIT_CHANGE_H

#include "injector/log/code/code_log.h"

#include "injector/recording/records.h"

/* A part of its parent's code that a forked child inherits and touches: a part of the parent's
 * timeline, and where the child's begins. */

struct inherited_function {
    uint32_t function;   /* in the parent's timeline's log */
    uint64_t code_index; /* that it had at the fork */
    uint32_t next_piece; /* one more than that piece's number in the inheritance; 0: none */
};

struct inherited_code {
    uint64_t start, end;
    uint32_t function; /* in the functions below */
};

struct inherited_map {
    uint64_t start, end;
    const struct recorded_map *map;
};

struct inheritance {
    struct inherited_function *functions;
    size_t function_count, function_capacity;
    struct inherited_code *code; /* who owned what */
    size_t code_count, code_capacity;
    struct inherited_map *maps; /* the mappings */
    size_t map_count, map_capacity;
};

void inheritance_free(struct inheritance *inheritance);

enum change_kind {
    CHANGE_FUNCTION, /* INDEX is the function */
    CHANGE_UNLOADED, /* no function's from now on */
    CHANGE_MAP,      /* a part of mapping INDEX of the process, whose record is dropped */
};

struct change {
    uint64_t time_ns;
    uint64_t start, end;
    uint32_t kind;
    uint32_t index;
};

/* The timeline's findings about one function. */
struct function_state {
    uint32_t generation; /* how many visible functions had its addresses before it, at most */
    bool visible;        /* a sample could have hit it */
    bool in_moment;      /* loaded in the moment that is being played */
    bool before_maps;    /* logged, by its stamp, before the recording has its process's mappings */
};

/* A function's place in a ring of the pieces of its function: one more than the number of the next
 * one and of the one before; 0: it is alone. */
struct piece_link {
    uint32_t next, last;
};

struct timeline {
    const struct code_log *log; /* the process's, or OWN */
    struct code_log own; /* a copy without events, where functions were inherited, take the content
                            of others that were moved, or go on under another number; else empty */
    struct function_state *states;    /* by function of LOG */
    struct piece_link *links;         /* the same; NULL: no function has several pieces */
    struct inheritance *inheritances; /* by the process's forks */
    size_t inheritance_count;
    struct change *changes; /* by time */
    size_t change_count, change_capacity;
    uint64_t *dropped; /* offsets of the map records to leave out of the output, ascending */
    size_t dropped_count, dropped_capacity;
};

#endif
