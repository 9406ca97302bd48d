/* See source_path.h. */
#include "injector/inject/dwarf/source_path.h"

#include "injector/log/script/file_url.h"

#include <stdlib.h>

static uint32_t replace_colons(char *to, struct line_text file)
{
    for (uint32_t at = 0; at < file.bytes; at++)
        to[at] = file.text[at] == ':' ? '_' : file.text[at];
    return file.bytes;
}

static bool has_room(struct source_path *path, size_t bytes)
{
    if (bytes <= path->capacity)
        return true;
    char *text = realloc(path->text, bytes);
    if (!text)
        return false;
    path->text = text;
    path->capacity = bytes;
    return true;
}

struct line_text source_path_of(struct source_path *path, struct line_text file)
{
    if (file.bytes == 0 || file.text[0] == '/' || !memchr(file.text, ':', file.bytes) ||
        !has_room(path, file.bytes))
        return file;
    size_t bytes = file_url_path(path->text, file.text, file.bytes);
    return (struct line_text){path->text,
                              bytes ? (uint32_t)bytes : replace_colons(path->text, file)};
}

void source_path_free(struct source_path *path)
{
    free(path->text);
    *path = (struct source_path){0};
}
