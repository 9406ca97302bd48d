/* Markers of the Firefox Profiler: what happened at a moment, or from one to another.
 *
 * Spans of the program are of the type UserTiming.  Tier-ups, deopts and collections are of the
 * type Text.  meta.markerSchema describes both types; without that the reader shows none.
 *
 * A marker's name is a number in its thread's stringArray: the names stand behind the others. */
#ifndef PERFJIT_FIREFOX_MARKERS_H
#define PERFJIT_FIREFOX_MARKERS_H

#include "injector/profile/export/export_format.h"
#include "injector/profile/profile_moments.h"
#include "injector/text/json_writer.h"

#include <stddef.h>
#include <stdint.h>

/* The category of all markers, the first one in meta.categories. */
enum { CATEGORY_OTHER };

struct firefox_marker;

struct firefox_markers {
    struct firefox_marker *items; /* by thread, then by time */
    size_t count, capacity;
    struct profile_moments moments;
};

struct thread_markers {
    const struct firefox_marker *items; /* by time */
    size_t count;
};

/* Find the markers of the COUNT SAMPLES that are written.  Returns 0, or -1 without memory; to be
 * freed in either case. */
int firefox_markers_find(struct firefox_markers *markers, const struct export_request *request,
                         const uint32_t *samples, size_t count);
void firefox_markers_free(struct firefox_markers *markers);

/* Those that are shown with THREAD. */
struct thread_markers firefox_markers_of(const struct firefox_markers *markers, uint32_t thread);

void firefox_markers_put_schemas(struct json_writer *json);

/* A thread's markers.  STRINGS: how many are in front of their names in stringArray. */
void firefox_markers_put(const struct thread_markers *markers, const struct call_profile *profile,
                         size_t strings, uint64_t first_ns, struct json_writer *json);

/* Their names, which the array at hand has last. */
void firefox_markers_put_names(const struct thread_markers *markers, struct json_writer *json);

#endif
