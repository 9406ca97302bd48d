/* Whether functions that were logged keep the frame pointer, by their unwind tables. */
#ifndef PERFJIT_FRAME_POINTERS_H
#define PERFJIT_FRAME_POINTERS_H

#include "injector/log/code/code_log.h"
#include "injector/recording/machine.h"

struct frame_pointers {
    size_t with_tables;     /* functions that have one */
    size_t without_pointer; /* of these, in the middle of which the frame is found by another
                               register: a chain of frame pointers leaves the caller out */
};

/* Add those of LOG. */
void frame_pointers_count(struct frame_pointers *counts, const struct code_log *log,
                          const struct machine *machine);

#endif
