/* Functions of one process's log in another's: the code that a forked child has of its parent. */
#ifndef PERFJIT_CODE_COPY_H
#define PERFJIT_CODE_COPY_H

#include "injector/log/code/code_log.h"

/* Copies from one log into another, both of which live on.  Starts as {from, to}. */
struct code_copy {
    const struct code_log *from;
    struct code_log *to;
};

/* Make of the empty log TO a copy of FROM's functions and how to unwind from them, without their
 * events.  FROM must live on.  Returns 0, or -1 without memory. */
int code_copy_functions(struct code_log *to, const struct code_log *from);

/* Copy function INDEX and how to unwind from it; it gets no event and no image.  *COPY_INDEX is its
 * number there.  Returns 0, or -1 without memory. */
int code_copy_function(struct code_copy *copy, uint32_t index, uint32_t *copy_index);

/* Copy EVENT and its function, all of which is of dump DUMP in the other process. */
int code_copy_event(struct code_copy *copy, const struct code_event *event, uint32_t dump);

#endif
