/* A source map: of any text comes a map whose segments are in order and name what is there, or
 * none.  A name in the text of a source is a text.
 */
#include "injector/log/source_map/source_map.h"
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
        if (map.contents[i])
            check_names(&map, (uint32_t)i, map.contents[i]);
    for (size_t i = 0; i < map.source_count; i++)
        promise(strlen(map.sources[i]) <= size + sizeof "/directory/" * 2, "paths are no longer");
    source_map_free(&map);
    return 0;
}
