/* A source map, version 3: which line and column of which file a place of a generated script comes
 * from, and what the name there was.  JSON (ECMA-426):
 *
 *     version      3
 *     sources      files, or null; below sourceRoot
 *     sourcesContent  their text, or null
 *     names        as they were before a minifier
 *     mappings     base64 VLQ, below
 *     sections     instead of the above: maps, each with the line and column where it begins
 *
 * Mappings: lines of the script end with ";", segments with ",".  A segment is 1, 4 or 5 numbers,
 * each as its difference from the one before: the column, which begins anew in each line; the
 * source, its line, its column; the name.  Places are counted from 0.
 *
 * Valid: JSON with these types, and mappings whose numbers fit and name sources and names that are
 * there.  A map that is not is not used at all. */
#ifndef PERFJIT_SOURCE_MAP_H
#define PERFJIT_SOURCE_MAP_H

#include <stddef.h>
#include <stdint.h>

#define SOURCE_MAP_NOTHING UINT32_MAX

/* From column on, up to the next segment of the line. */
struct source_segment {
    uint32_t line, column; /* of the script, from 0 */
    uint32_t source;       /* or SOURCE_MAP_NOTHING: of no source */
    uint32_t source_line, source_column;
    uint32_t name; /* or SOURCE_MAP_NOTHING */
};

struct source_map {
    struct source_segment *segments; /* ascending by place */
    size_t count, capacity;
    char **sources; /* as paths: below the root, and below the map's own directory */
    size_t source_count, source_capacity;
    char **contents; /* of the sources; NULL: not in the map */
    size_t content_count, content_capacity;
    char **names;
    size_t name_count, name_capacity;
};

/* Read the map of BYTES bytes at TEXT.  DIRECTORY: where it lies, which relative sources begin at.
 * Returns 0, or -1 with the reason in CAUSE.  Release with source_map_free in either case. */
int source_map_parse(struct source_map *map, const char *text, size_t bytes, const char *directory,
                     char *cause, size_t cause_bytes);

/* The segment of that place, from 0: the last one in its line up to the column; or NULL. */
const struct source_segment *source_map_find(const struct source_map *map, uint32_t line,
                                             uint32_t column);

void source_map_free(struct source_map *map);

#endif
