/* See source_map.h. */
#include "injector/log/source_map/source_map.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"
#include "injector/log/script/file_url.h"
#include "injector/text/base64.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECTIONS_DEEP = 4 }; /* the standard allows none in each other */

struct reader {
    struct source_map *map;
    const char *directory;
    const char *broken;    /* why, or NULL */
    uint32_t line, column; /* where the section begins */
};

static int fail(struct reader *reader, const char *why)
{
    if (!reader->broken)
        reader->broken = why;
    return -1;
}

/* ---- Paths ---- */

/* Whether PATH is absolute, as a path, a URL or a path of Windows. */
static bool is_absolute(const char *path)
{
    const size_t scheme =
        strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");
    if (path[0] == '/' || (scheme > 1 && path[scheme] == ':'))
        return true;
    return scheme == 1 && path[1] == ':' && (path[2] == '/' || path[2] == '\\');
}

/* Take "." and ".." out of PATH, in place.  Above a root or a URL's host there is nothing. */
static void shorten(char *path)
{
    char *scheme = strstr(path, "://");
    char *first = scheme ? scheme + 3 + strcspn(scheme + 3, "/") : path;
    const bool has_root = *first == '/';
    first += has_root;
    char *to = first;
    for (char *at = first; *at;) {
        const size_t bytes = strcspn(at, "/");
        const bool is_last = !at[bytes], is_up = bytes == 2 && memcmp(at, "..", 2) == 0;
        if (is_up && to > first) {
            for (to--; to > first && to[-1] != '/'; to--)
                ;
        } else if (!(is_up && has_root) && !(bytes == 1 && *at == '.') && bytes) {
            memmove(to, at, bytes + !is_last);
            to += bytes + !is_last;
        }
        at += bytes + !is_last;
    }
    *to = '\0';
}

/* Maps that were made on Windows have its separators. */
static void turn_separators(char *path)
{
    if (strstr(path, "://"))
        return;
    while ((path = strchr(path, '\\')))
        *path++ = '/';
}

/* ROOT and SOURCE, below the directory of the map; to be freed. */
static char *path_of(const struct reader *reader, const char *root, const char *source)
{
    char *path;
    const char *slash = *root && root[strlen(root) - 1] != '/' ? "/" : "";
    if (is_absolute(source))
        root = slash = "";
    const char *begin = *root ? root : source;
    const char *directory = is_absolute(begin) ? "" : reader->directory;
    if (asprintf(&path, "%s%s%s%s%s", directory, *directory ? "/" : "", root, slash, source) < 0)
        return NULL;
    turn_separators(path + strlen(directory));
    const size_t bytes = file_url_path(path, path, strlen(path));
    if (bytes)
        path[bytes] = '\0';
    shorten(path);
    return path;
}

/* ---- Mappings ---- */

/* The next number: five bits a letter, the lowest first; the lowest of all is the sign. */
static int take_number(const char **at, const char *end, int64_t *number)
{
    uint64_t value = 0;
    for (unsigned shift = 0; *at < end; shift += 5) {
        const int digit = base64_value(**at);
        if (digit < 0 || shift > 30)
            return -1;
        ++*at;
        value |= (uint64_t)(digit & 31) << shift;
        if (!(digit & 32)) {
            *number = value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
            return 0;
        }
    }
    return -1;
}

/* What the numbers of segments count from. */
struct position {
    int64_t column, source, source_line, source_column, name;
};

/* Add the COUNT numbers in FIELDS to AT.  Returns whether the results fit. */
static bool advance(struct position *at, const int64_t *fields, size_t count,
                    const struct reader *reader, size_t sources, size_t names)
{
    at->column += fields[0];
    if (at->column < 0 || at->column + reader->column >= UINT32_MAX)
        return false;
    if (count == 1)
        return true;
    at->source += fields[1];
    at->source_line += fields[2];
    at->source_column += fields[3];
    at->name += count > 4 ? fields[4] : 0;
    return at->source >= 0 && (size_t)at->source < sources && at->source_line >= 0 &&
           at->source_line < UINT32_MAX && at->source_column >= 0 &&
           at->source_column < UINT32_MAX &&
           (count < 5 || (at->name >= 0 && (size_t)at->name < names));
}

static int add_segment(struct source_map *map, const struct source_segment *segment)
{
    if (array_reserve(map->segments, map->count, map->capacity))
        return -1;
    map->segments[map->count++] = *segment;
    return 0;
}

/* The columns of a section's first line begin at the section's. */
static int take_mappings(struct reader *reader, const char *at, size_t bytes, size_t first_source,
                         size_t first_name)
{
    struct source_map *map = reader->map;
    const char *end = at + bytes;
    struct position place = {0};
    uint64_t line = reader->line;
    uint32_t first_column = reader->column;
    while (at < end) {
        int64_t fields[5];
        size_t count = 0;
        for (; at < end && *at != ',' && *at != ';'; count++)
            if (count == 5 || take_number(&at, end, &fields[count]))
                return fail(reader, "its mappings are no base64 VLQ");
        if (count == 2 || count == 3)
            return fail(reader, "its mappings have a segment of 2 or 3 numbers");
        if (count && !advance(&place, fields, count, reader, map->source_count - first_source,
                              map->name_count - first_name))
            return fail(reader, "its mappings name what is not there");
        const bool has_source = count > 1, has_name = count > 4;
        const struct source_segment segment = {
            (uint32_t)line,
            (uint32_t)place.column + first_column,
            has_source ? (uint32_t)(first_source + (size_t)place.source) : SOURCE_MAP_NOTHING,
            has_source ? (uint32_t)place.source_line : 0,
            has_source ? (uint32_t)place.source_column : 0,
            has_name ? (uint32_t)(first_name + (size_t)place.name) : SOURCE_MAP_NOTHING};
        if (count && add_segment(map, &segment))
            return fail(reader, "out of memory");
        if (at < end && *at == ';') {
            place.column = 0;
            first_column = 0;
            if (++line >= UINT32_MAX)
                return fail(reader, "its mappings have too many lines");
        }
        at += at < end;
    }
    return 0;
}

/* ---- JSON ---- */

static int add_text(char ***items, size_t *count, size_t *capacity, char *text)
{
    if (!text || array_reserve(*items, *count, *capacity)) {
        free(text);
        return -1;
    }
    (*items)[(*count)++] = text;
    return 0;
}

/* TEXT: NULL if it is not there. */
static int add_content(struct source_map *map, const char *text)
{
    char *copy = text ? strdup(text) : NULL;
    if ((text && !copy) ||
        array_reserve(map->contents, map->content_count, map->content_capacity)) {
        free(copy);
        return -1;
    }
    map->contents[map->content_count++] = copy;
    return 0;
}

static int take_sources(struct reader *reader, const json_t *map)
{
    const json_t *sources = json_object_get(map, "sources"), *item;
    const json_t *contents = json_object_get(map, "sourcesContent");
    const char *root = json_string_value(json_object_get(map, "sourceRoot"));
    size_t i;
    if (!json_is_array(sources))
        return fail(reader, "it has no sources");
    json_array_foreach(sources, i, item)
    {
        const char *source = json_string_value(item);
        for (size_t left = json_string_length(item); left && !*source; left--)
            source++; /* rollup marks what it made itself by a NUL */
        if (!source && !json_is_null(item))
            return fail(reader, "its sources are no texts");
        if (add_text(&reader->map->sources, &reader->map->source_count,
                     &reader->map->source_capacity,
                     source ? path_of(reader, root ? root : "", source) : strdup("")) ||
            add_content(reader->map, json_string_value(json_array_get(contents, i))))
            return fail(reader, "out of memory");
    }
    return 0;
}

static int take_names(struct reader *reader, const json_t *map)
{
    const json_t *names = json_object_get(map, "names"), *item;
    size_t i;
    if (names && !json_is_array(names))
        return fail(reader, "its names are no list");
    json_array_foreach(names, i, item)
    {
        const char *name = json_string_value(item);
        if (add_text(&reader->map->names, &reader->map->name_count, &reader->map->name_capacity,
                     strdup(name ? name : "")))
            return fail(reader, "out of memory");
    }
    return 0;
}

static int take_map(struct reader *reader, const json_t *map, unsigned depth);

/* A section begins in its map's own place. */
static int take_section(struct reader *reader, const json_t *section, unsigned depth)
{
    const json_t *offset = json_object_get(section, "offset");
    const json_int_t line = json_integer_value(json_object_get(offset, "line"));
    const json_int_t column = json_integer_value(json_object_get(offset, "column"));
    struct reader inner = *reader;
    if (line < 0 || column < 0 || line >= UINT32_MAX - (json_int_t)reader->line ||
        column >= UINT32_MAX - (json_int_t)reader->column)
        return fail(reader, "a section begins nowhere");
    inner.line = reader->line + (uint32_t)line;
    inner.column = line ? (uint32_t)column : reader->column + (uint32_t)column;
    const int result = take_map(&inner, json_object_get(section, "map"), depth + 1);
    reader->broken = inner.broken;
    return result;
}

static int take_map(struct reader *reader, const json_t *map, unsigned depth)
{
    const json_t *sections = json_object_get(map, "sections"), *section;
    const json_t *mappings = json_object_get(map, "mappings");
    const size_t first_source = reader->map->source_count, first_name = reader->map->name_count;
    size_t i;
    if (!json_is_object(map))
        return fail(reader, "it is no JSON object");
    if (sections && depth < SECTIONS_DEEP) {
        json_array_foreach(sections, i,
                           section) if (take_section(reader, section, depth)) return -1;
        return 0;
    }
    if (json_integer_value(json_object_get(map, "version")) != 3)
        return fail(reader, "its version is not 3");
    if (!json_is_string(mappings))
        return fail(reader, "it has no mappings");
    return take_sources(reader, map) || take_names(reader, map)
               ? -1
               : take_mappings(reader, json_string_value(mappings), json_string_length(mappings),
                               first_source, first_name);
}

static int compare_segments(const void *left, const void *right)
{
    const struct source_segment *a = left, *b = right;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    return a->column < b->column ? -1 : a->column > b->column;
}

/* A prefix against XSSI may stand before a map: ")]}'" and the rest of its line. */
static void skip_prefix(const char **text, size_t *bytes)
{
    static const char prefix[] = ")]}'";
    const char *newline = *bytes > sizeof prefix && memcmp(*text, prefix, sizeof prefix - 1) == 0
                              ? memchr(*text, '\n', *bytes)
                              : NULL;
    if (!newline)
        return;
    *bytes -= (size_t)(newline - *text);
    *text = newline;
}

int source_map_parse(struct source_map *map, const char *text, size_t bytes, const char *directory,
                     char *cause, size_t cause_bytes)
{
    json_error_t error;
    struct reader reader = {.map = map, .directory = directory};
    *map = (struct source_map){0};
    skip_prefix(&text, &bytes);
    json_t *json = json_loadb(text, bytes, JSON_ALLOW_NUL, &error);
    if (!json) {
        snprintf(cause, cause_bytes, "line %d: %s", error.line, error.text);
        return -1;
    }
    const int result = take_map(&reader, json, 0);
    json_decref(json);
    if (result) {
        snprintf(cause, cause_bytes, "%s", reader.broken);
        return -1;
    }
    if (!array_in_order(map->segments, map->count, sizeof *map->segments, compare_segments))
        qsort(map->segments, map->count, sizeof *map->segments, compare_segments);
    return 0;
}

const struct source_segment *source_map_find(const struct source_map *map, uint32_t line,
                                             uint32_t column)
{
    const struct source_segment wanted = {.line = line, .column = column};
    size_t behind;
    array_bisect(behind, map->count, compare_segments(&map->segments[behind], &wanted) <= 0);
    const struct source_segment *segment = behind ? &map->segments[behind - 1] : NULL;
    return segment && segment->line == line ? segment : NULL;
}

void source_map_free(struct source_map *map)
{
    for (size_t i = 0; i < map->source_count; i++)
        free(map->sources[i]);
    for (size_t i = 0; i < map->content_count; i++)
        free(map->contents[i]);
    for (size_t i = 0; i < map->name_count; i++)
        free(map->names[i]);
    free(map->contents);
    free(map->sources);
    free(map->names);
    free(map->segments);
    *map = (struct source_map){0};
}
