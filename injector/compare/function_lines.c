/* See function_lines.h. */
#include "injector/compare/function_lines.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"

#include <math.h>
#include <stdlib.h>

int function_lines_add(struct function_lines *lines, const struct function_line *place, bool is_new,
                       double value)
{
    if (array_reserve(lines->items, lines->count, lines->capacity))
        return -1;
    struct function_line *line = &lines->items[lines->count++];
    *line = *place;
    line->sides[is_new] += value;
    return 0;
}

static int compare(const void *left, const void *right)
{
    const struct function_line *a = left, *b = right;
    if (a->function != b->function)
        return a->function < b->function ? -1 : 1;
    if (a->file != b->file)
        return a->file < b->file ? -1 : 1;
    return a->line < b->line ? -1 : a->line > b->line;
}

void function_lines_join(struct function_lines *lines)
{
    size_t count = 0;
    if (lines->count)
        qsort(lines->items, lines->count, sizeof *lines->items, compare);
    for (size_t i = 0; i < lines->count; i++) {
        const struct function_line *line = &lines->items[i];
        if (!count || compare(&lines->items[count - 1], line)) {
            lines->items[count++] = *line;
            continue;
        }
        lines->items[count - 1].sides[0] += line->sides[0];
        lines->items[count - 1].sides[1] += line->sides[1];
    }
    lines->count = count;
}

static const struct function_line *first_of(const struct function_lines *lines, uint32_t function)
{
    size_t at;
    array_bisect(at, lines->count, lines->items[at].function < function);
    return lines->items + at;
}

double function_lines_inlined(const struct function_lines *lines, uint32_t caller, uint32_t callee,
                              bool in_new, double *of)
{
    const struct function_line *end = lines->items + lines->count;
    double inlined = 0;
    *of = 0;
    for (const struct function_line *own = first_of(lines, callee);
         own < end && own->function == callee; own++) {
        const struct function_line wanted = {caller, own->file, own->line, {0, 0}};
        const struct function_line *other =
            bsearch(&wanted, lines->items, lines->count, sizeof wanted, compare);
        *of += own->sides[in_new];
        if (own->sides[in_new] > 0 && other)
            inlined += fmax(other->sides[!in_new] - other->sides[in_new], 0);
    }
    return inlined;
}

void function_lines_free(struct function_lines *lines)
{
    free(lines->items);
    *lines = (struct function_lines){0};
}
