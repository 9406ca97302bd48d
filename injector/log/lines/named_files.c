/* See named_files.h. */
#include "injector/log/lines/named_files.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"
#include "injector/log/lines/line_entry.h"

enum { MAX_SPACES = 8 }; /* in a function's name: each could be the one in front of the file */

/* The length of NAME without ":12:34" or ":12" at its end; 0 if it does not end so. */
static size_t without_position(const char *name)
{
    size_t bytes = strlen(name), end = 0;
    for (int numbers = 0; numbers < 2; numbers++) {
        size_t at = bytes;
        while (at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9')
            at--;
        if (at == bytes || at == 0 || name[at - 1] != ':')
            break;
        end = bytes = at - 1;
    }
    return end;
}

int named_files_add(struct named_files *files, const char *name)
{
    size_t end = without_position(name), spaces = 0;
    for (size_t at = end; at > 0 && spaces < MAX_SPACES; at--) {
        if (name[at - 1] != ' ')
            continue;
        spaces++;
        if (array_reserve(files->items, files->count, files->capacity))
            return -1;
        files->items[files->count++] = (struct line_text){name + at, (uint32_t)(end - at)};
    }
    return 0;
}

/* Compare the parts that were not overwritten with the same part of another name of the same
 * length. */
static int compare_ends(const struct line_text *a, const struct line_text *b)
{
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    if (a->bytes <= OVERWRITTEN_BYTES)
        return 0;
    return memcmp(a->text + OVERWRITTEN_BYTES, b->text + OVERWRITTEN_BYTES,
                  a->bytes - OVERWRITTEN_BYTES);
}

static int compare_files(const void *left, const void *right)
{
    const struct line_text *a = left, *b = right;
    int order = compare_ends(a, b);
    size_t front = a->bytes < OVERWRITTEN_BYTES ? a->bytes : OVERWRITTEN_BYTES;
    return order ? order : memcmp(a->text, b->text, front);
}

void named_files_close(struct named_files *files)
{
    size_t kept = 0;
    if (files->count)
        qsort(files->items, files->count, sizeof *files->items, compare_files);
    for (size_t i = 0; i < files->count; i++)
        if (i == 0 || compare_files(&files->items[i], &files->items[i - 1]) != 0)
            files->items[kept++] = files->items[i];
    files->count = kept;
    files->ready = true;
}

/* The file that OWN names, if it can have been NAME. */
static struct line_text own_file(struct line_text name, const char *own)
{
    size_t end = without_position(own);
    struct line_text file = {own + end - name.bytes, name.bytes};
    bool fits = end > name.bytes && own[end - name.bytes - 1] == ' ' && !compare_ends(&file, &name);
    return fits ? file : (struct line_text){NULL, 0};
}

static struct line_text only_file(const struct named_files *files, struct line_text name)
{
    size_t first;
    array_bisect(first, files->count, compare_ends(&files->items[first], &name) < 0);
    bool found = first < files->count && !compare_ends(&files->items[first], &name);
    bool several =
        found && first + 1 < files->count && !compare_ends(&files->items[first + 1], &name);
    return found && !several ? files->items[first] : (struct line_text){NULL, 0};
}

/* The same if zeros at the end of NAME, all of which was overwritten, were taken for padding. */
static struct line_text own_longer_file(struct line_text name, const char *own)
{
    struct line_text file = {NULL, 0};
    for (size_t i = 0; !file.text && i < PADDING_BYTES && ++name.bytes <= OVERWRITTEN_BYTES; i++)
        file = own_file(name, own);
    return file;
}

struct line_text named_files_restore(const struct named_files *files, struct line_text name,
                                     const char *own)
{
    struct line_text file = own_file(name, own);
    if (!file.text)
        file = only_file(files, name);
    if (!file.text)
        file = own_longer_file(name, own);
    if (file.text)
        return file;
    if (name.bytes > OVERWRITTEN_BYTES)
        return (struct line_text){name.text + OVERWRITTEN_BYTES, name.bytes - OVERWRITTEN_BYTES};
    return (struct line_text){"?", 1};
}

void named_files_free(struct named_files *files)
{
    free(files->items);
    *files = (struct named_files){0};
}
