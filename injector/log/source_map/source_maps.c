/* See source_maps.h. */
#include "injector/log/source_map/source_maps.h"

#include "injector/arrays/array.h"
#include "injector/arrays/hash.h"
#include "injector/files/regular_file.h"
#include "injector/log/script/declaration.h"
#include "injector/log/script/declared_name.h"
#include "injector/log/script/file_url.h"
#include "injector/log/script/magic_comment.h"
#include "injector/log/script/script_file.h"
#include "injector/log/script/script_groups.h"
#include "injector/log/script/v8_place.h"
#include "injector/log/source_map/source_map.h"
#include "injector/text/base64.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    TAIL_BYTES = 64 << 10, /* of a script, in which its map is named */
    MAP_BYTES_MOST = 512 << 20,
    CAUSE_BYTES = 256
};

struct mapped_script {
    struct line_text file;
    char path[PATH_MAX];
    char *given; /* its text, if that is not the file's */
    size_t given_bytes;
    bool was_searched, has_map;
    struct source_map map;
    bool was_read;           /* TEXT */
    struct script_file text; /* as it was generated; without lines: it is not there */
    bool has_groups;         /* of TEXT */
    struct script_groups groups;
    struct original *originals; /* of the map's sources; or NULL */
};

/* A file that a script was made of. */
struct original {
    bool was_read;
    struct script_file text; /* without lines: it is not there, or is newer than the script */
};

/* ---- Which map ---- */

static void report_bad(const struct source_maps *maps, const struct mapped_script *script,
                       const char *map, const char *cause)
{
    if (maps->findings)
        report_finding(maps->findings, FINDING_SOURCE_MAP, "%.*s: %s%s%s",
                       *script->path ? PATH_MAX : (int)script->file.bytes,
                       *script->path ? script->path : script->file.text, map, *map ? ": " : "",
                       cause);
}

/* The bytes that the BASE64 text stands for, in its place. */
static size_t decode_base64(char *text)
{
    size_t filled = 0;
    uint32_t value = 0;
    unsigned bits = 0;
    for (const char *at = text; *at; at++) {
        const int digit = base64_value(*at);
        if (digit < 0)
            continue;
        value = value << 6 | (uint32_t)digit;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            text[filled++] = (char)(value >> bits);
        }
    }
    return filled;
}

/* The directory of PATH. */
static void directory_of(char directory[PATH_MAX], const char *path)
{
    snprintf(directory, PATH_MAX, "%s", path);
    char *slash = strrchr(directory, '/');
    if (slash)
        slash[slash == directory] = '\0';
}

/* Take the map that the file HOLDER has, as a whole or in a URL.  NAME: of the map, for a message.
 */
static void parse(struct source_maps *maps, struct mapped_script *script, const char *name,
                  const char *text, size_t bytes, const char *holder)
{
    char cause[CAUSE_BYTES], directory[PATH_MAX];
    const size_t root = maps->options.root ? strlen(maps->options.root) : 0;
    directory_of(directory, holder);
    const char *seen =
        strncmp(directory, root ? maps->options.root : "", root) ? directory : directory + root;
    script->has_map = source_map_parse(&script->map, text, bytes, seen, cause, sizeof cause) == 0;
    if (!script->has_map) {
        source_map_free(&script->map);
        report_bad(maps, script, name, cause);
    }
}

/* Read the map PATH.  Returns whether it is there. */
static bool read_map(struct source_maps *maps, struct mapped_script *script, const char *path)
{
    size_t bytes;
    char *text = regular_file_bytes(path, MAP_BYTES_MOST, &bytes);
    if (!text)
        return false;
    parse(maps, script, path, text, bytes, path);
    free(text);
    return true;
}

/* The map that the option's directory has for SCRIPT: DIR/app.js.map, or DIR/srv/app.js.map. */
static bool read_kept(struct source_maps *maps, struct mapped_script *script)
{
    char path[2 * PATH_MAX];
    const char *slash = strrchr(script->path, '/');
    if (!maps->options.directory)
        return false;
    for (int whole = 1; whole >= 0; whole--) {
        snprintf(path, sizeof path, "%s/%s.map", maps->options.directory,
                 whole ? script->path + 1 : slash + 1);
        if (read_map(maps, script, path))
            return true;
    }
    return false;
}

static void read_data(struct source_maps *maps, struct mapped_script *script, char *url)
{
    static const char base64[] = ";base64";
    char *comma = strchr(url, ',');
    if (!comma) {
        report_bad(maps, script, "", "its data: URL has no data");
        return;
    }
    const bool is_base64 = (size_t)(comma - url) >= sizeof base64 - 1 &&
                           !memcmp(comma - (sizeof base64 - 1), base64, sizeof base64 - 1);
    const size_t bytes = is_base64 ? decode_base64(comma + 1)
                                   : percent_decode(comma + 1, comma + 1, strlen(comma + 1));
    parse(maps, script, "", comma + 1, bytes, script->path);
}

static void read_url(struct source_maps *maps, struct mapped_script *script, char *url)
{
    char path[2 * PATH_MAX], directory[PATH_MAX];
    if (strncmp(url, "data:", 5) == 0) {
        read_data(maps, script, url);
        return;
    }
    size_t bytes = file_url_path(url, url, strlen(url));
    if (!bytes && strstr(url, "://")) {
        report_bad(maps, script, url, "no map is fetched: --source-maps DIR has maps beside it");
        return;
    }
    if (!bytes && *url != '/' && !*script->path) {
        report_bad(maps, script, url, "the script was compiled in memory, and has no directory");
        return;
    }
    url[bytes ? bytes : percent_decode(url, url, strlen(url))] = '\0';
    directory_of(directory, script->path);
    if (*url == '/')
        snprintf(path, sizeof path, "%s%s", maps->options.root ? maps->options.root : "", url);
    else
        snprintf(path, sizeof path, "%s/%s", directory, url);
    if (!read_map(maps, script, path))
        report_bad(maps, script, path, regular_file_error(errno));
}

/* The end of the file FD of SIZE bytes: whole lines, if they are not long; to be freed. */
static char *read_tail(int fd, size_t size, size_t wanted, size_t *bytes)
{
    const size_t from = size > wanted ? size - wanted : 0;
    char *text = malloc(size - from + 1);
    const ssize_t got = text ? pread(fd, text, size - from, (off_t)from) : -1;
    if (got < 0) {
        free(text);
        return NULL;
    }
    *bytes = (size_t)got;
    size_t last = *bytes; /* without the newlines at the end */
    while (last && (text[last - 1] == '\n' || text[last - 1] == '\r'))
        last--;
    if (!from || memchr(text, '\n', last) || size > MAP_BYTES_MOST)
        return text;
    free(text);
    return read_tail(fd, size, size, bytes);
}

/* The end of SCRIPT's text, to be freed; or NULL. */
static char *tail_of(const struct mapped_script *script, size_t *bytes)
{
    struct stat status;
    if (script->given) {
        char *text = malloc(script->given_bytes + 1);
        *bytes = script->given_bytes;
        return text ? memcpy(text, script->given, *bytes) : NULL;
    }
    const int fd = *script->path ? regular_file_open(script->path, 0, &status) : -1;
    char *text = fd >= 0 ? read_tail(fd, (size_t)status.st_size, TAIL_BYTES, bytes) : NULL;
    if (fd >= 0)
        close(fd);
    return text;
}

/* Read what names SCRIPT's map, and the map, unless it is kept elsewhere. */
static void find_map(struct source_maps *maps, struct mapped_script *script)
{
    size_t bytes = 0;
    script->was_searched = true;
    if (*script->path && read_kept(maps, script))
        return;
    char *text = tail_of(script, &bytes);
    char *url = text ? magic_comment(text, bytes, "sourceMappingURL=") : NULL;
    if (url)
        read_url(maps, script, url);
    free(text);
}

/* The script FILE among all; NULL without memory. */
static struct mapped_script *find_script(struct source_maps *maps, struct line_text file)
{
    const uint64_t hash = XXH3_64bits(file.text, file.bytes);
    const uint32_t known = number_map_get(&maps->by_file, hash);
    if (known != NUMBER_MAP_NOTHING && line_text_same(maps->scripts[known]->file, file))
        return maps->scripts[known];
    struct mapped_script *script = calloc(1, sizeof *script + file.bytes);
    if (!script || array_reserve(maps->scripts, maps->script_count, maps->script_capacity) ||
        number_map_put(&maps->by_file, hash, (uint32_t)maps->script_count)) {
        free(script);
        return NULL;
    }
    char *name = (char *)(script + 1);
    memcpy(name, file.text, file.bytes);
    script->file = (struct line_text){name, file.bytes};
    maps->scripts[maps->script_count++] = script;
    if (!script_file_path(file.text, file.bytes, maps->options.root, script->path))
        *script->path = '\0';
    return script;
}

/* The script FILE, whose map may not be looked for yet; NULL without memory.  Rows of one script
 * mostly follow one another. */
static struct mapped_script *script_of(struct source_maps *maps, struct line_text file)
{
    if (!maps->newest || !line_text_same(maps->newest->file, file))
        maps->newest = find_script(maps, file);
    return maps->newest;
}

/* The same, with its map. */
static struct mapped_script *searched_script(struct source_maps *maps, struct line_text file)
{
    struct mapped_script *script = script_of(maps, file);
    if (script && !script->was_searched)
        find_map(maps, script);
    return script;
}

static bool is_in_file(const struct mapped_script *script, const char *text, size_t bytes)
{
    size_t file_bytes;
    char *file =
        *script->path ? regular_file_bytes(script->path, MAP_BYTES_MOST, &file_bytes) : NULL;
    const bool same = file && file_bytes == bytes && memcmp(file, text, bytes) == 0;
    free(file);
    return same;
}

int source_maps_give(struct source_maps *maps, struct line_text file, const char *text,
                     size_t bytes)
{
    struct mapped_script *script = script_of(maps, file);
    if (!script)
        return -1;
    if (script->given || script->was_searched || is_in_file(script, text, bytes))
        return 0;
    script->given = malloc(bytes + 1);
    if (!script->given)
        return -1;
    memcpy(script->given, text, bytes);
    script->given_bytes = bytes;
    return 0;
}

/* ---- Places ---- */

static const struct source_segment *segment_at(const struct mapped_script *script, uint32_t line,
                                               uint32_t column)
{
    const struct source_segment *segment =
        script->has_map && line ? source_map_find(&script->map, line - 1, column ? column - 1 : 0)
                                : NULL;
    return segment && segment->source != SOURCE_MAP_NOTHING && *script->map.sources[segment->source]
               ? segment
               : NULL;
}

bool source_maps_place(struct source_maps *maps, struct mapped_place *place)
{
    const struct mapped_script *script =
        place->file.bytes ? searched_script(maps, place->file) : NULL;
    const struct source_segment *segment =
        script ? segment_at(script, place->line, place->column) : NULL;
    if (!segment)
        return false;
    *place = (struct mapped_place){line_text_of(script->map.sources[segment->source]),
                                   segment->source_line + 1, segment->source_column + 1};
    return true;
}

/* ---- Names ---- */

/* How many bytes of identifiers with dots between stand at the end of the BYTES at NAME. */
static size_t chain_bytes(const char *name, size_t bytes)
{
    size_t count = 0;
    while (count < bytes && (name[bytes - 1 - count] == '.' ||
                             script_unit_is_of_identifier((unsigned char)name[bytes - 1 - count])))
        count++;
    while (count && name[bytes - count] == '.')
        count--;
    return count;
}

/* How many bytes at the end of NAME V8 made up for an expression: of "a[f()] = function", which it
 * calls "a.<computed>". */
static size_t computed_bytes(const char *name, size_t bytes)
{
    static const char computed[] = ".<computed>";
    const size_t count = sizeof computed - 1;
    return bytes > count && memcmp(name + bytes - count, computed, count) == 0 ? count : 0;
}

static const struct script_file *text_of(struct mapped_script *script)
{
    if (!script->was_read &&
        (script->given ? script_file_take(&script->text, script->given, script->given_bytes)
                       : script_file_read(&script->text, script->path)))
        script_file_free(&script->text);
    script->was_read = true;
    return &script->text;
}

/* Its groups; none if it is not there. */
static const struct script_groups *groups_of(struct mapped_script *script)
{
    const struct script_file *text = text_of(script);
    if (!script->has_groups && script_groups_find(&script->groups, text))
        script_groups_free(&script->groups);
    script->has_groups = true;
    return &script->groups;
}

/* The name in the map of the identifier at the unit AT of the script; or NULL. */
static const char *name_at(const struct mapped_script *script, size_t at)
{
    const uint32_t line = script_lines_at(&script->text.lines, at);
    const uint32_t column = (uint32_t)(at - script->text.lines.starts[line]);
    const struct source_segment *segment = source_map_find(&script->map, line, column);
    return segment && segment->column == column && segment->name != SOURCE_MAP_NOTHING &&
                   *script->map.names[segment->name]
               ? script->map.names[segment->name]
               : NULL;
}

/* The name in the map of what IDENTIFIER is in the function at PLACE; or NULL. */
static const char *name_of(struct mapped_script *script, const struct v8_place *place,
                           const char *identifier, size_t bytes)
{
    const struct script_file *text = text_of(script);
    const size_t line = place->line - (size_t)1;
    struct declaration_search search;
    struct declaration found = {.is_key = true};
    const char *name = NULL;
    if (line >= text->lines.count)
        return NULL;
    declaration_begin(&search, text, groups_of(script),
                      text->lines.starts[line] + place->column - 1, identifier, bytes);
    while (!name && found.is_key && declaration_next(&search, &found))
        name = name_at(script, found.at);
    return name;
}

/* The text of the file NUMBER that SCRIPT was made of: the map's, or the file's, if that was there
 * when the script was made. */
static const struct script_file *original_of(const struct source_maps *maps,
                                             struct mapped_script *script, uint32_t number)
{
    const char *content = script->map.contents[number], *root = maps->options.root;
    const char *source = script->map.sources[number];
    struct stat made, written;
    char path[PATH_MAX];
    if (!script->originals)
        script->originals = calloc(script->map.source_count, sizeof *script->originals);
    struct original *original = script->originals ? &script->originals[number] : NULL;
    if (!original || original->was_read)
        return original ? &original->text : NULL;
    original->was_read = true;
    if (content && script_file_take(&original->text, content, strlen(content)))
        script_file_free(&original->text);
    if (content || snprintf(path, sizeof path, "%s%s", root ? root : "", source) >= PATH_MAX)
        return &original->text;
    if (*source == '/' && stat(script->path, &made) == 0 && stat(path, &written) == 0 &&
        written.st_mtime <= made.st_mtime && script_file_read(&original->text, path))
        script_file_free(&original->text);
    return &original->text;
}

/* Put the CHAIN of BYTES bytes, "t" or "a.t", into NAME, each of its identifiers as the map has it.
 */
static bool put_identifiers(struct mapped_script *script, const struct v8_place *place,
                            const char *chain, size_t bytes, char name[DECLARED_NAME_BYTES])
{
    size_t filled = 0;
    for (size_t at = 0, count; at < bytes; at += count + 1) {
        const char *dot = memchr(chain + at, '.', bytes - at);
        count = dot ? (size_t)(dot - chain) - at : bytes - at;
        const char *original = name_of(script, place, chain + at, count);
        const bool is_private = original && chain[at] == '#' && *original != '#'; /* of terser */
        const int put =
            snprintf(name + filled, DECLARED_NAME_BYTES - filled, "%s%s%.*s", at ? "." : "",
                     is_private ? "#" : "", original ? (int)strlen(original) : (int)count,
                     original ? original : chain + at);
        if (put < 0 || (filled += (size_t)put) >= DECLARED_NAME_BYTES)
            return false;
    }
    return true;
}

/* Whether nothing but a tier's mark and "get " or "set " is in the BYTES at FRONT, of a name.  Else
 * what stands behind them is a part of a key ("a-b") or of what V8 made up ("a[0].b"). */
static bool is_mark(const char *front, size_t bytes)
{
    if (bytes >= 4 &&
        (!memcmp(front + bytes - 4, "get ", 4) || !memcmp(front + bytes - 4, "set ", 4)))
        bytes -= 4;
    return !bytes || strchr(":*~^+'", front[bytes - 1]);
}

/* The name of the function at PLACE where it is written, instead of CHAIN.  IS_WHOLE: that is all
 * of the name.  False: CHAIN stays. */
static bool original_name(struct source_maps *maps, struct mapped_script *script,
                          const struct v8_place *place, const struct source_segment *segment,
                          const char *chain, size_t bytes, bool is_whole,
                          char name[DECLARED_NAME_BYTES])
{
    const bool is_script = place->line == 1 && place->column == 1;
    const struct script_file *text =
        is_whole && !is_script ? original_of(maps, script, segment->source) : NULL;
    if (text && declared_name(text, segment->source_line, segment->source_column, bytes, name))
        return true;
    return bytes && put_identifiers(script, place, chain, bytes, name);
}

/* NAME, which has PLACE, as its map has it, to be freed; or NULL: there is no map, or no memory. */
static char *written_name(struct source_maps *maps, struct line_text name,
                          const struct v8_place *place, bool *no_memory)
{
    char *result, original[DECLARED_NAME_BYTES];
    struct mapped_script *script =
        searched_script(maps, (struct line_text){place->file, (uint32_t)place->file_bytes});
    *no_memory = !script;
    const struct source_segment *segment =
        script ? segment_at(script, place->line, place->column) : NULL;
    if (!segment)
        return NULL;
    const size_t made_up = computed_bytes(name.text, place->name_bytes);
    const size_t bytes = chain_bytes(name.text, place->name_bytes - made_up);
    const size_t front = place->name_bytes - made_up - bytes;
    const char *chain = name.text + front;
    const bool is_whole = !made_up && is_mark(name.text, front);
    const bool has_original =
        original_name(maps, script, place, segment, chain, bytes, is_whole, original);
    *no_memory =
        asprintf(&result, "%.*s%.*s%.*s %s:%" PRIu32 ":%" PRIu32, (int)front, name.text,
                 has_original ? (int)strlen(original) : (int)bytes, has_original ? original : chain,
                 (int)made_up, chain + bytes, script->map.sources[segment->source],
                 segment->source_line + 1, segment->source_column + 1) < 0;
    return *no_memory ? NULL : result;
}

struct line_text source_maps_name(struct source_maps *maps, struct line_text name)
{
    static const struct line_text nothing = {NULL, 0};
    struct v8_place place;
    if (!v8_place_of(name.text, name.bytes, &place) || !place.column)
        return name;
    const uint64_t hash = XXH3_64bits(name.text, name.bytes);
    const uint32_t known = number_map_get(&maps->by_name, hash);
    bool no_memory = false;
    if (known != NUMBER_MAP_NOTHING)
        return line_text_of(maps->names[known]);
    char *made = written_name(maps, name, &place, &no_memory);
    if (!made)
        return no_memory ? nothing : name;
    if (array_reserve(maps->names, maps->name_count, maps->name_capacity) ||
        number_map_put(&maps->by_name, hash, (uint32_t)maps->name_count)) {
        free(made);
        return nothing;
    }
    maps->names[maps->name_count++] = made;
    return line_text_of(made);
}

void source_maps_free(struct source_maps *maps)
{
    for (size_t i = 0; i < maps->script_count; i++) {
        for (size_t j = 0; maps->scripts[i]->originals && j < maps->scripts[i]->map.source_count;
             j++)
            script_file_free(&maps->scripts[i]->originals[j].text);
        free(maps->scripts[i]->originals);
        free(maps->scripts[i]->given);
        source_map_free(&maps->scripts[i]->map);
        script_file_free(&maps->scripts[i]->text);
        script_groups_free(&maps->scripts[i]->groups);
        free(maps->scripts[i]);
    }
    for (size_t i = 0; i < maps->name_count; i++)
        free(maps->names[i]);
    free(maps->scripts);
    free(maps->names);
    number_map_free(&maps->by_file);
    number_map_free(&maps->by_name);
    *maps = (struct source_maps){0};
}
