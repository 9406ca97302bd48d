/* See injected_image.h. */
#include "injector/claim/injected_image.h"

#include "injector/text/file_name.h"

#include <stdbool.h>
#include <string.h>

/* Whether NAME is PATTERN, in which # stands for decimal digits and % for hexadecimal ones.
 * (sscanf keeps memory if the string changes under it, as that of a file may.) */
static bool matches(const char *name, const char *pattern)
{
    for (; *pattern; pattern++) {
        size_t length = *pattern == '#'   ? strspn(name, "0123456789")
                        : *pattern == '%' ? strspn(name, "0123456789abcdef")
                                          : *name == *pattern;
        if (length == 0)
            return false;
        name += length;
    }
    return *name == '\0';
}

static bool is_image_name(const char *path)
{
    const char *name = file_name_of(path);
    return matches(name, "jit-#-#-%.so") || matches(name, "jitted-#-#.so");
}

const char *injected_image(const struct profile *profile)
{
    for (size_t i = 0; i < profile->map_count; i++)
        if (is_image_name(profile->maps[i].map.filename))
            return profile->maps[i].map.filename;
    return NULL;
}
