/* See injected_image.h. */
#include "injector/jit/injected_image.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool is_image_name(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    unsigned pid, number, build_id;
    int end = 0;
    if (sscanf(name, "jit-%u-%u-%8x.so%n", &pid, &number, &build_id, &end) < 3)
        sscanf(name, "jitted-%u-%u.so%n", &pid, &number, &end);
    return end > 0 && name[end] == '\0';
}

const char *injected_image(const struct profile *profile)
{
    for (size_t i = 0; i < profile->map_count; i++)
        if (is_image_name(profile->maps[i].map.filename))
            return profile->maps[i].map.filename;
    return NULL;
}
