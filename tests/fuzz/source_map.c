/* A source map: of any text comes a map whose segments are in order and name what is there, or
 * none.  A name in the text of a source is a text, its groups lie in one another, and a declaration
 * in it has the letter that is looked for.
 */
#include "injector/log/source_map/source_map.h"
#include "injector/log/script/declaration.h"
#include "injector/log/script/declared_name.h"
#include "tests/fuzz/fuzz_target.h"

#include <string.h>

static void check_segment(const struct source_map *map, size_t at)
{
    const struct source_segment *segment = &map->segments[at];
    promise(segment->source == SOURCE_MAP_NOTHING || segment->source < map->source_count,
            "a segment's source is there");
    promise(segment->name == SOURCE_MAP_NOTHING || segment->name < map->name_count,
            "a segment's name is there");
    promise(!at || segment[-1].line < segment->line ||
                (segment[-1].line == segment->line && segment[-1].column <= segment->column),
            "segments ascend");
    const struct source_segment *found = source_map_find(map, segment->line, segment->column);
    promise(found && found->line == segment->line && found->column == segment->column,
            "a segment is found where it is");
}

/* The names at the segments of SOURCE, and the TEXT's last place, are of no more than its bytes. */
static void check_names(const struct source_map *map, uint32_t source, const char *text)
{
    char name[DECLARED_NAME_BYTES];
    struct script_file file;
    promise(script_file_take(&file, text, strlen(text)) == 0, "a text is taken");
    for (size_t i = 0; i < map->count; i++)
        for (int is_named = 0; is_named < 2; is_named++)
            promise(map->segments[i].source != source ||
                        !declared_name(&file, map->segments[i].source_line,
                                       map->segments[i].source_column, is_named, name) ||
                        (*name && strlen(name) <= strlen(text)),
                    "a name is in the text");
    script_file_free(&file);
}

static void check_groups(const struct script_groups *groups, const struct script_file *file)
{
    for (size_t i = 0; i < groups->count; i++) {
        const struct script_group *group = &groups->items[i];
        promise(group->open <= group->close && group->close < file->count,
                "a group is in the text");
        promise(!i || group[-1].open < group->open, "groups ascend");
        promise(group->outer == SCRIPT_GROUP_NONE ||
                    (group->outer < i && groups->items[group->outer].close >= group->close),
                "a group is in the one around");
    }
}

/* Of functions anywhere in TEXT. */
static void check_declarations(const char *text)
{
    enum { FUNCTIONS_MOST = 64 };
    struct script_file file;
    struct script_groups groups;
    promise(script_file_take(&file, text, strlen(text)) == 0 &&
                script_groups_find(&groups, &file) == 0,
            "a text has groups");
    check_groups(&groups, &file);
    for (size_t at = 0; at <= file.count; at += 1 + file.count / FUNCTIONS_MOST) {
        struct declaration_search search;
        struct declaration found;
        size_t before = SIZE_MAX;
        declaration_begin(&search, &file, &groups, at, "t", 1);
        while (declaration_next(&search, &found)) {
            promise(found.at < file.count && strchr("t\"'", file.units[found.at]),
                    "the letter is there, or a string");
            promise(before == SIZE_MAX || before > at || found.at < before, "further to the front");
            before = found.at;
        }
    }
    script_groups_free(&groups);
    script_file_free(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct source_map map;
    char cause[256] = "";
    const int result =
        source_map_parse(&map, (const char *)bytes, size, "/directory", cause, sizeof cause);
    promise((result != 0) == (cause[0] != '\0'), "what is no map has a reason");
    for (size_t i = 0; !result && i < map.count; i++)
        check_segment(&map, i);
    for (size_t i = 0; !result && i < map.content_count; i++)
        if (map.contents[i]) {
            check_names(&map, (uint32_t)i, map.contents[i]);
            check_declarations(map.contents[i]);
        }
    for (size_t i = 0; i < map.source_count; i++)
        promise(strlen(map.sources[i]) <= size + sizeof "/directory/" * 2, "paths are no longer");
    source_map_free(&map);
    return 0;
}
