/* See string_list.h. */
#include "injector/profile/export/string_list.h"

#include <stdlib.h>

int string_list_make(struct string_list *list, size_t count)
{
    list->count = 0;
    list->strings = calloc(count + 1, sizeof *list->strings);
    list->number = calloc(count + 1, sizeof *list->number);
    return list->strings && list->number ? 0 : -1;
}

void string_list_add(struct string_list *list, uint32_t string)
{
    if (list->number[string])
        return;
    list->strings[list->count++] = string;
    list->number[string] = (uint32_t)list->count;
}

void string_list_empty(struct string_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        list->number[list->strings[i]] = 0;
    list->count = 0;
}

void string_list_free(struct string_list *list)
{
    free(list->strings);
    free(list->number);
}
