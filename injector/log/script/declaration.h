/* Where a script declares what V8 named a function by.  V8 takes "t" of
 *
 *     function t(n) {     class t { constructor(n) {     t = { a: 1, [key]: n =>     t.a = n =>
 *
 * so the place is in front of the function, or in front of a group around it.  In other groups the
 * same letter is another variable. */
#ifndef PERFJIT_DECLARATION_H
#define PERFJIT_DECLARATION_H

#include "injector/log/script/script_groups.h"

struct declaration_search {
    const struct script_file *text;
    const struct script_groups *groups;
    const char *identifier; /* ASCII */
    size_t bytes;
    size_t function; /* its place, as V8 has it */
    size_t at;       /* up to where the text is to be looked at */
    uint32_t group;  /* around AT */
    size_t steps;
};

/* A place that declares the identifier. */
struct declaration {
    size_t at;   /* of the identifier, in units of the text; or of a string that has it */
    bool is_key; /* "t:" of something else: the object's variable may have the name, too */
};

/* Begin with the place nearest to the FUNCTION, whose place V8 gives. */
void declaration_begin(struct declaration_search *search, const struct script_file *text,
                       const struct script_groups *groups, size_t function, const char *identifier,
                       size_t bytes);

/* Take the next place, further to the front.  False: there is none, or it is far away. */
bool declaration_next(struct declaration_search *search, struct declaration *declaration);

#endif
