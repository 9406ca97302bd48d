/* See code_copy.h. */
#include "injector/history/process/code_copy.h"

#include "injector/arrays/array.h"

#include <string.h>

/* Its own FDEs, and of the CIEs those that they need. */
static int copy_fdes(struct code_copy *copy, struct jit_function *function, uint32_t index)
{
    struct code_log *to = copy->to;
    uint32_t first = function->first_fde;
    function->first_fde = (uint32_t)to->fde_count;
    for (uint32_t i = 0; i < function->fde_count; i++) {
        const struct code_fde *fde = &copy->from->fdes[first + i];
        uint32_t cie = code_log_intern_cie(to, &copy->from->cies[fde->cie]);
        if (cie == UINT32_MAX || array_reserve(to->fdes, to->fde_count, to->fde_capacity))
            return -1;
        struct code_fde *copied = &to->fdes[to->fde_count++];
        *copied = *fde;
        copied->function = index;
        copied->cie = cie;
    }
    return 0;
}

int code_copy_function(struct code_copy *copy, uint32_t index, uint32_t *copy_index)
{
    struct code_log *to = copy->to;
    struct jit_function *function = code_log_add_function(to, 0);
    if (!function)
        return -1;
    *copy_index = (uint32_t)to->function_count - 1;
    *function = copy->from->functions[index];
    to->has_unwinding = to->has_unwinding || copy->from->has_unwinding;
    return copy_fdes(copy, function, *copy_index);
}

/* The COUNT items of ITEM_BYTES at ITEMS once more.  NULL if there are none, and without memory. */
static void *copy_array(const void *items, size_t count, size_t item_bytes)
{
    void *copy = count ? malloc(count * item_bytes) : NULL;
    return copy ? memcpy(copy, items, count * item_bytes) : NULL;
}

int code_copy_functions(struct code_log *to, const struct code_log *from)
{
    size_t functions = from->function_count, cies = from->cie_count, fdes = from->fde_count;
    *to = (struct code_log){
        .functions = copy_array(from->functions, functions, sizeof *to->functions),
        .function_count = functions,
        .function_capacity = functions,
        .cies = copy_array(from->cies, cies, sizeof *to->cies),
        .cie_count = cies,
        .cie_capacity = cies,
        .fdes = copy_array(from->fdes, fdes, sizeof *to->fdes),
        .fde_count = fdes,
        .fde_capacity = fdes,
        .has_unwinding = from->has_unwinding,
    };
    return !to->functions == !functions && !to->cies == !cies && !to->fdes == !fdes ? 0 : -1;
}

/* Copy function INDEX as one of dump DUMP; *COPY_INDEX is its number there. */
static int copy_owned(struct code_copy *copy, uint32_t index, uint32_t dump, uint32_t *copy_index)
{
    if (code_copy_function(copy, index, copy_index))
        return -1;
    copy->to->functions[*copy_index].dump = dump;
    return 0;
}

static int copy_move(struct code_copy *copy, uint32_t index, uint32_t dump, uint32_t *copy_index)
{
    struct code_log *to = copy->to;
    const struct code_move *moved = &copy->from->moves[index];
    uint32_t function;
    if (array_reserve(to->moves, to->move_count, to->move_capacity))
        return -1;
    if (copy_owned(copy, moved->function, dump, &function))
        return -1;
    *copy_index = (uint32_t)to->move_count;
    to->moves[to->move_count++] = (struct code_move){moved->old_addr, function};
    return 0;
}

static int copy_unload(struct code_copy *copy, uint32_t index, uint32_t dump, uint32_t *copy_index)
{
    struct code_log *to = copy->to;
    if (array_reserve(to->unloads, to->unload_count, to->unload_capacity))
        return -1;
    *copy_index = (uint32_t)to->unload_count;
    to->unloads[to->unload_count] = copy->from->unloads[index];
    to->unloads[to->unload_count++].dump = dump;
    return 0;
}

/* Copy the subject of EVENT; *COPY_INDEX is its number there, in the array for EVENT's kind. */
static int copy_subject(struct code_copy *copy, const struct code_event *event, uint32_t dump,
                        uint32_t *copy_index)
{
    switch (event->kind) {
    case CODE_EVENT_LOAD:
        return copy_owned(copy, event->index, dump, copy_index);
    case CODE_EVENT_MOVE:
        return copy_move(copy, event->index, dump, copy_index);
    case CODE_EVENT_UNLOAD:
    case CODE_EVENT_END:
        return copy_unload(copy, event->index, dump, copy_index);
    }
    return -1;
}

int code_copy_event(struct code_copy *copy, const struct code_event *event, uint32_t dump)
{
    struct code_log *to = copy->to;
    struct code_event copied = *event;
    if (copy_subject(copy, event, dump, &copied.index))
        return -1;
    if (array_reserve(to->events, to->event_count, to->event_capacity))
        return -1;
    to->events[to->event_count++] = copied;
    return 0;
}
