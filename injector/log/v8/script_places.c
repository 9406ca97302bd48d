/* See script_places.h. */
#include "injector/log/v8/script_places.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"
#include "injector/files/regular_file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>

enum { SOURCE_BYTES_MOST = 64 << 20, NO_COLUMN = 0 };

struct known_place {
    uint32_t script, position;
    struct script_place at;
    bool begins_function;
};

struct script {
    struct line_text file;
    uint32_t *starts; /* of its lines, in UTF-16 units */
    size_t start_count, start_capacity;
    bool was_read;
};

/* ---- Scripts ---- */

/* Two names of one hash are as good as none. */
uint32_t script_places_script(struct script_places *places, struct line_text file)
{
    const uint64_t hash = XXH3_64bits(file.text, file.bytes);
    const uint32_t known = number_map_get(&places->by_name, hash);
    if (known != NUMBER_MAP_NOTHING && line_text_same(places->scripts[known].file, file))
        return known;
    if (places->script_count >= NUMBER_MAP_NOTHING ||
        array_reserve(places->scripts, places->script_count, places->script_capacity) ||
        number_map_put(&places->by_name, hash, (uint32_t)places->script_count))
        return UINT32_MAX;
    places->scripts[places->script_count] = (struct script){.file = file};
    return (uint32_t)places->script_count++;
}

int script_places_add(struct script_places *places, uint32_t script, uint32_t position,
                      struct script_place place, bool begins_function)
{
    if (array_reserve(places->items, places->count, places->capacity))
        return -1;
    places->items[places->count++] = (struct known_place){script, position, place, begins_function};
    return 0;
}

static int compare_places(const void *left, const void *right)
{
    const struct known_place *a = left, *b = right;
    if (a->script != b->script)
        return a->script < b->script ? -1 : 1;
    return a->position < b->position ? -1 : a->position > b->position;
}

/* Places that contradict each other are of two files of one name. */
static void merge(struct known_place *into, const struct known_place *other)
{
    into->begins_function |= other->begins_function;
    if (into->at.line != other->at.line || into->at.column != other->at.column)
        into->at = (struct script_place){0, NO_COLUMN};
}

void script_places_close(struct script_places *places)
{
    size_t kept = 0;
    if (places->count)
        qsort(places->items, places->count, sizeof *places->items, compare_places);
    for (size_t i = 0; i < places->count; i++)
        if (kept && compare_places(&places->items[kept - 1], &places->items[i]) == 0)
            merge(&places->items[kept - 1], &places->items[i]);
        else
            places->items[kept++] = places->items[i];
    places->count = kept;
}

void script_places_free(struct script_places *places)
{
    for (size_t i = 0; i < places->script_count; i++)
        free(places->scripts[i].starts);
    free(places->scripts);
    free(places->items);
    number_map_free(&places->by_name);
    *places = (struct script_places){0};
}

/* ---- Their files ---- */

static unsigned hexadecimal(char digit)
{
    return digit >= '0' && digit <= '9'   ? (unsigned)(digit - '0')
           : digit >= 'a' && digit <= 'f' ? (unsigned)(digit - 'a' + 10)
           : digit >= 'A' && digit <= 'F' ? (unsigned)(digit - 'A' + 10)
                                          : 16;
}

/* The path of FILE below the root; modules are named by URLs.  False if it names no file. */
static bool path_of(const struct script_places *places, struct line_text file, char path[PATH_MAX])
{
    static const char scheme[] = "file://";
    const bool is_url = file.bytes > sizeof scheme && !memcmp(file.text, scheme, sizeof scheme - 1);
    const char *at = file.text + (is_url ? sizeof scheme - 1 : 0), *end = file.text + file.bytes;
    size_t bytes = (size_t)snprintf(path, PATH_MAX, "%s", places->root ? places->root : "");
    if (!file.bytes || *at != '/')
        return false;
    for (; at < end && bytes + 1 < PATH_MAX; bytes++) {
        path[bytes] = *at++;
        if (is_url && path[bytes] == '%' && end - at >= 2 && hexadecimal(at[0]) < 16 &&
            hexadecimal(at[1]) < 16) {
            path[bytes] = (char)(hexadecimal(at[0]) << 4 | hexadecimal(at[1]));
            at += 2;
        }
    }
    path[bytes < PATH_MAX ? bytes : PATH_MAX - 1] = '\0';
    return at == end && strlen(path) == bytes;
}

/* The text of PATH in *BYTES bytes, to be freed, or NULL. */
static char *text_of(const char *path, size_t *bytes)
{
    struct stat status;
    const int fd = regular_file_open(path, 0, &status);
    if (fd < 0)
        return NULL;
    char *text = status.st_size <= SOURCE_BYTES_MOST ? malloc((size_t)status.st_size + 1) : NULL;
    ssize_t got = 1;
    *bytes = 0;
    while (text && *bytes < (size_t)status.st_size && got > 0) {
        got = read(fd, text + *bytes, (size_t)status.st_size - *bytes);
        *bytes += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    if (got >= 0)
        return text;
    free(text);
    return NULL;
}

static int add_line(struct script *script, uint32_t start)
{
    if (array_reserve(script->starts, script->start_count, script->start_capacity))
        return -1;
    script->starts[script->start_count++] = start;
    return 0;
}

/* How many bytes the line's end at AT has, or 0.  U+2028 and U+2029 end lines in JavaScript, too.
 */
static size_t line_end(const char *at, const char *end)
{
    if (*at == '\r' && at + 1 < end && at[1] == '\n')
        return 2;
    if (*at == '\n' || *at == '\r')
        return 1;
    return end - at >= 3 && !memcmp(at, "\xe2\x80", 2) && (at[2] == '\xa8' || at[2] == '\xa9') ? 3
                                                                                               : 0;
}

static int find_lines(struct script *script, const char *text, size_t bytes)
{
    const char *at = text, *end = text + bytes;
    uint32_t units = 0;
    if (bytes >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0)
        at += 3;
    if (add_line(script, 0))
        return -1;
    while (at < end) {
        const size_t ending = line_end(at, end);
        const unsigned char first = (unsigned char)*at;
        if (ending) {
            units += ending == 2 ? 2 : 1;
            at += ending;
            if (add_line(script, units))
                return -1;
            continue;
        }
        units += first >= 0xf0 ? 2 : (first & 0xc0) != 0x80;
        at++;
    }
    return 0;
}

static struct script_place place_in(const struct script *script, uint32_t position)
{
    size_t behind;
    array_bisect(behind, script->start_count, script->starts[behind] <= position);
    return (struct script_place){(uint32_t)behind, position - script->starts[behind - 1] + 1};
}

/* Whether the file has all functions of SCRIPT where the log has them. */
static bool is_the_one(const struct script_places *places, uint32_t script)
{
    const struct known_place from = {.script = script};
    size_t at;
    bool any = false;
    array_bisect(at, places->count, compare_places(&places->items[at], &from) < 0);
    for (; at < places->count && places->items[at].script == script; at++) {
        const struct known_place *known = &places->items[at];
        const struct script_place here = place_in(&places->scripts[script], known->position);
        if (known->begins_function &&
            (here.line != known->at.line || here.column != known->at.column))
            return false;
        any |= known->begins_function;
    }
    return any;
}

static void read_script(struct script_places *places, uint32_t number)
{
    struct script *script = &places->scripts[number];
    char path[PATH_MAX];
    size_t bytes;
    script->was_read = true;
    char *text = path_of(places, script->file, path) ? text_of(path, &bytes) : NULL;
    if (!text)
        return;
    if (find_lines(script, text, bytes) || !is_the_one(places, number))
        script->start_count = 0;
    free(text);
}

/* ---- Places ---- */

/* By the known places on both sides. */
static struct script_place between(const struct script_places *places, uint32_t script,
                                   uint32_t position)
{
    const struct known_place wanted = {.script = script, .position = position};
    const struct script_place nowhere = {0, NO_COLUMN};
    size_t behind;
    array_bisect(behind, places->count, compare_places(&places->items[behind], &wanted) <= 0);
    const struct known_place *before = behind ? &places->items[behind - 1] : NULL;
    const struct known_place *after = behind < places->count ? &places->items[behind] : NULL;
    if (!before || before->script != script)
        return nowhere;
    if (before->position == position)
        return before->at;
    if (!after || after->script != script || after->at.line != before->at.line)
        return nowhere;
    return before->at.line ? (struct script_place){before->at.line,
                                                   before->at.column + position - before->position}
                           : nowhere;
}

struct script_place script_places_find(struct script_places *places, uint32_t script,
                                       uint32_t position)
{
    if (!places->scripts[script].was_read)
        read_script(places, script);
    return places->scripts[script].start_count ? place_in(&places->scripts[script], position)
                                               : between(places, script, position);
}
