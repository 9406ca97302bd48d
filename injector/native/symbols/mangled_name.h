/* A mangled name that is read, and the name for people that it becomes.  Any user may have made the
 * name: the result, the depth and the work are bounded, and whatever is wrong ends the reading.
 *
 * Where a name refers to a part of itself, that part is read again: 30 bytes can stand for 2^10
 * copies of a part.  The bound of the result ends this. */
#ifndef PERFJIT_MANGLED_NAME_H
#define PERFJIT_MANGLED_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MANGLED_MOST_DEPTH = 100,    /* parts in each other */
    MANGLED_STEPS_OF_BYTE = 64,  /* parts, read again or not */
    MANGLED_MOST_STEPS = 1 << 16 /* in all */
};

struct mangled_name {
    const char *start, *at, *end;
    char *text; /* the result; NUL-terminated by mangled_end */
    size_t bytes, capacity, most;
    unsigned depth, steps; /* the steps that are left */
    bool failed;
    bool silent; /* what is read is not shown */
};

/* Begin with the BYTES at SYMBOL, which have no NUL, for a result of MOST bytes. */
void mangled_begin(struct mangled_name *name, const char *symbol, size_t bytes, size_t most);

/* The result, to be freed; NULL if reading failed, or the result is empty. */
char *mangled_end(struct mangled_name *name);

void mangled_fail(struct mangled_name *name);

/* The next byte, 0 at the end; taken or not. */
char mangled_peek(const struct mangled_name *name);
char mangled_next(struct mangled_name *name);
bool mangled_take(struct mangled_name *name, char wanted);
bool mangled_take_text(struct mangled_name *name, const char *wanted);

/* A decimal number without leading zeros.  It fails where there is none. */
uint64_t mangled_decimal(struct mangled_name *name);

/* The next BYTES, which are taken; NULL, and a failure, if there are fewer. */
const char *mangled_part(struct mangled_name *name, uint64_t bytes);

/* Enter a part, or leave it.  Entering returns false, and fails, if there are too many. */
bool mangled_enter(struct mangled_name *name);
void mangled_leave(struct mangled_name *name);

void mangled_put(struct mangled_name *name, const char *text);
void mangled_put_bytes(struct mangled_name *name, const char *text, size_t bytes);
void mangled_put_number(struct mangled_name *name, uint64_t number);

/* Put a character by its code point.  It fails for what is none. */
void mangled_put_character(struct mangled_name *name, uint32_t code);

#endif
