/* The functions of a profile.  Frames of one name and place are one function, of any tier, inlined
 * or not.  The place has the column: minified code has all of a file in one line. */
#ifndef PERFJIT_PROFILE_FUNCTIONS_H
#define PERFJIT_PROFILE_FUNCTIONS_H

#include "injector/profile/call_profile.h"

#include <stdio.h>

struct profile_function {
    uint32_t name, module, file, line, column; /* as in struct call_frame */
};

struct profile_functions {
    struct profile_function *items;
    size_t count;
    uint32_t *of_frame; /* by frame */
    uint32_t *frames;   /* of the first function, then of the second, ... */
    uint32_t *first;    /* by function: where its own begin; and where all end */
    bool *by_column;    /* by function: it is not the only one of its line */
};

/* Returns 0, or -1 without memory.  Release with profile_functions_free in either case. */
int profile_functions_find(struct profile_functions *functions, const struct call_profile *profile);

/* Put ":LINE" of function NUMBER, and ":COLUMN" behind it if its line has several functions, as in
 * minified code; nothing if its line is not known. */
void profile_functions_put_line(const struct profile_functions *functions, uint32_t number,
                                FILE *stream);

/* Put what distinguishes function NUMBER from others of its name, behind the name: " FILE:1:129".
 * Nothing if its line has no other function.  It is for formats that have no column. */
void profile_functions_put_place(const struct profile_functions *functions,
                                 const struct call_profile *profile, uint32_t number, FILE *stream);

void profile_functions_free(struct profile_functions *functions);

#endif
