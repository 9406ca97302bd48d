/* See injected_map.h. */
#include "injector/recording/injected_map.h"

#include "injector/text/file_name.h"

#include <string.h>
#include <sys/mman.h>

/* Whether NAME is PATTERN, in which # stands for decimal digits, % for hexadecimal ones, and & for
 * the name of a machine.  (sscanf keeps memory if the string changes under it, as that of a file
 * may.) */
static bool matches(const char *name, const char *pattern)
{
    static const char machine[] = "0123456789abcdefghijklmnopqrstuvwxyz_-";
    for (; *pattern; pattern++) {
        size_t length = *pattern == '#'   ? strspn(name, "0123456789")
                        : *pattern == '%' ? strspn(name, "0123456789abcdef")
                        : *pattern == '&' ? strspn(name, machine)
                                          : *name == *pattern;
        if (length == 0)
            return false;
        name += length;
    }
    return *name == '\0';
}

bool injected_image_is(const char *path)
{
    enum { FOLDER_BYTES = 9 }; /* of a folder that is named after a build-id, and its slash */
    const char *name = file_name_of(path);
    if (matches(name, "jit-#-#-%.so") || matches(name, "jitted-#-#.so"))
        return true;
    return name - path > FOLDER_BYTES && name[-FOLDER_BYTES - 1] == '/' &&
           (matches(name - FOLDER_BYTES, "%/jit-&.so") ||
            matches(name - FOLDER_BYTES, "%/jit-&.#.so"));
}

/* Programs and libraries are mapped privately, those that were deleted meanwhile as well. */
bool injected_image_or_memory(const struct perf_map *map)
{
    return map->filename[0] != '/' || injected_image_is(map->filename) || perf_map_is_memory(map) ||
           (perf_map_is_shared_memory(map) && map->flags & MAP_SHARED);
}

const char *injected_image(const struct records *records)
{
    for (size_t i = 0; i < records->map_count; i++) {
        const struct perf_map *map = &records->maps[i].map;
        if (!map->data && injected_image_is(map->filename))
            return map->filename;
    }
    return NULL;
}
