/* See injected_image.h. */
#include "injector/recording/host/injected_image.h"
#include "injector/recording/injected_map.h"

#include "injector/recording/host/mapped_path.h"
#include "injector/text/file_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_below(const char *root, const char *path)
{
    char *below = root ? mapped_path(root, path) : NULL;
    bool is_there = below && access(below, F_OK) == 0;
    free(below);
    return is_there;
}

char *injected_image_beside(const char *profile, const char *name)
{
    const char *slash = strrchr(profile, '/'), *at = file_name_of(name);
    char *path;
    for (int up = 0; up < 2; up++) {
        if (at - name < 2)
            return NULL;
        for (at--; at > name && at[-1] != '/'; at--)
            continue;
    }
    if (!injected_image_is(name) || !strstr(at, ".dso/"))
        return NULL;
    return asprintf(&path, "%.*s%s", slash ? (int)(slash + 1 - profile) : 0, profile, at) < 0
               ? NULL
               : path;
}

static bool is_beside(const char *profile, const char *image)
{
    char *beside = injected_image_beside(profile, image);
    bool is_there = beside && access(beside, F_OK) == 0;
    free(beside);
    return is_there;
}

char *injected_image_moved(const struct records *records, const char *root)
{
    const char *image = injected_image(records);
    if (!image || access(image, F_OK) == 0 || is_below(root, image) ||
        !is_beside(records->file->path, image))
        return NULL;
    return injected_image_beside(records->file->path, image);
}

const char *injected_image_gone(const struct records *records, const char *root)
{
    const char *image = injected_image(records);
    return image && access(image, F_OK) != 0 && !is_below(root, image) &&
                   !is_beside(records->file->path, image)
               ? image
               : NULL;
}
