/* The names of a recording's events, as perf evlist lists them: its feature EVENT_DESC.
 *
 *      0 u32 count, 4 u32 attr_size, then for each event
 *     an attribute of attr_size bytes, u32 number of ids, u32 size, name of size bytes with its
 *     NULs, the ids (u64 each)
 */
#ifndef PERFJIT_EVENT_NAMES_H
#define PERFJIT_EVENT_NAMES_H

#include "injector/recording/perf_data/perf_features.h"

/* A walk over the events. */
struct event_names {
    struct byte_cursor cursor;
    uint32_t left, attr_bytes;
};

/* What it tells of one of them. */
struct event_entry {
    const uint8_t *attr; /* of attr_bytes */
    const char *name;    /* without its NULs */
    size_t name_bytes;
};

struct event_names event_names_begin(const struct perf_features *features);

/* The next event.  Returns false if there is none, or it is not all there. */
bool event_names_entry(struct event_names *names, struct event_entry *entry);

/* The next name, of *BYTES without its NULs; NULL: there is none, or it can't be printed. */
const char *event_names_next(struct event_names *names, size_t *bytes);

/* The name of an event by its attribute ATTR of BYTES, which a recording without EVENT_DESC has: of
 * perf record that was killed.  Empty: it is of no kind that has a name here. */
enum { EVENT_NAME_BYTES = 32 };
void event_name_of_attr(char name[EVENT_NAME_BYTES], const uint8_t *attr, size_t bytes);

/* Whether NAME is WORD, perhaps with a modifier or terms behind it: WORD:u, WORD/period=1/. */
bool event_name_is(const char *name, size_t bytes, const char *word);

#endif
