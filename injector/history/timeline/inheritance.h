/* What a forked child has of its parent's code, where it touches it: a part of the parent's
 * timeline, and where the child's begins. */
#ifndef PERFJIT_INHERITANCE_H
#define PERFJIT_INHERITANCE_H

#include "injector/recording/records.h"

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
    struct inherited_map *maps; /* what was mapped where */
    size_t map_count, map_capacity;
};

void inheritance_free(struct inheritance *inheritance);

#endif
