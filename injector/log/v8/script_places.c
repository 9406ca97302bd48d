/* See script_places.h. */
#include "injector/log/v8/script_places.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"
#include "injector/arrays/hash.h"
#include "injector/log/script/script_file.h"
#include "injector/log/v8/v8_log.h"

#include <stdlib.h>

enum { NO_COLUMN = 0 };

struct known_place {
    uint32_t script, position;
    struct script_place at;
};

struct script {
    struct line_text file;
    struct line_text given;    /* as the log has it; or none */
    struct script_lines lines; /* none: its text is not there, or another one */
    int64_t shift;             /* of the columns in the first line: a wrapper stands in front */
    bool was_read, is_confirmed, has_shift;
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
                      struct script_place place)
{
    if (array_reserve(places->items, places->count, places->capacity))
        return -1;
    places->items[places->count++] = (struct known_place){script, position, place};
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
    if (into->at.line != other->at.line || into->at.column != other->at.column)
        into->at = (struct script_place){0, NO_COLUMN};
}

void script_places_close(struct script_places *places)
{
    size_t kept = 0;
    if (!array_in_order(places->items, places->count, sizeof *places->items, compare_places))
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
        script_lines_free(&places->scripts[i].lines);
    free(places->scripts);
    free(places->items);
    number_map_free(&places->by_name);
    *places = (struct script_places){0};
}

/* ---- Their texts ---- */

static struct script_place place_in(const struct script *script, uint32_t position)
{
    const uint32_t line = script_lines_at(&script->lines, position);
    const int64_t column =
        (int64_t)position - script->lines.starts[line] + 1 + (line == 0 ? script->shift : 0);
    return column > 0 ? (struct script_place){line + 1, (uint32_t)column}
                      : (struct script_place){0, NO_COLUMN};
}

int script_places_give(struct script_places *places, struct line_text file, struct line_text text)
{
    const uint32_t number = script_places_script(places, file);
    if (number == UINT32_MAX)
        return -1;
    if (!places->scripts[number].given.bytes)
        places->scripts[number].given = text;
    return 0;
}

static int read_text(const struct script_places *places, struct script *script)
{
    char path[PATH_MAX], *text = NULL;
    size_t bytes = 0;
    if (script->given.bytes)
        text = v8_text_plain(script->given, &bytes);
    else if (script_file_path(script->file.text, script->file.bytes, places->root, path))
        text = script_text_read(path, &bytes);
    const int result = text ? script_lines_take(&script->lines, text, bytes) : -1;
    free(text);
    return result;
}

void script_places_read(struct script_places *places, uint32_t number)
{
    struct script *script = &places->scripts[number];
    if (!script->was_read && read_text(places, script))
        script_lines_free(&script->lines);
    script->was_read = true;
}

static bool is_at(const struct script *script, uint32_t position, struct script_place place)
{
    const struct script_place found = place_in(script, position);
    return found.line == place.line && found.column == place.column;
}

/* The first function in the first line tells where that begins. */
static void find_shift(struct script *script, uint32_t position, struct script_place place)
{
    if (script->has_shift || !script->given.bytes || place.line != 1)
        return;
    script->shift = (int64_t)place.column - 1 - position;
    script->has_shift = true;
}

void script_places_check(struct script_places *places, uint32_t number, uint32_t position,
                         struct script_place place)
{
    struct script *script = &places->scripts[number];
    char path[PATH_MAX];
    if (!script->lines.count)
        return;
    find_shift(script, position, place);
    script->is_confirmed = true;
    if (is_at(script, position, place))
        return;
    script_lines_free(&script->lines);
    if (!script->given.bytes &&
        script_file_path(script->file.text, script->file.bytes, places->root, path))
        report_finding(places->findings, FINDING_SCRIPT_CHANGED, "%s", path);
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

bool script_places_have_text(const struct script_places *places, uint32_t number)
{
    const struct script *script = &places->scripts[number];
    return script->lines.count && script->is_confirmed;
}

struct script_place script_places_find(const struct script_places *places, uint32_t script,
                                       uint32_t position)
{
    return script_places_have_text(places, script) ? place_in(&places->scripts[script], position)
                                                   : between(places, script, position);
}
