/* Strings of a profile, by their numbers there (call_profile_string), numbered anew in the order in
 * which they come. */
#ifndef PERFJIT_STRING_LIST_H
#define PERFJIT_STRING_LIST_H

#include <stddef.h>
#include <stdint.h>

struct string_list {
    uint32_t *strings;
    uint32_t *number; /* by string: its place in that + 1; 0: it is not there */
    size_t count;
};

/* Of strings below COUNT.  Returns 0, or -1 without memory; to be freed in either case. */
int string_list_make(struct string_list *list, size_t count);

/* Add STRING, if it is not there. */
void string_list_add(struct string_list *list, uint32_t string);

/* In time that goes by what is there. */
void string_list_empty(struct string_list *list);

void string_list_free(struct string_list *list);

#endif
