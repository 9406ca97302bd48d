/* See code_copy.h. */
#include "injector/jit/code_copy.h"

#include "injector/array.h"

static int copy_cies(struct code_copy *copy)
{
    struct code_log *to = copy->to;
    copy->first_cie = (uint32_t)to->cie_count;
    copy->has_cies = true;
    for (size_t i = 0; i < copy->from->cie_count; i++) {
        struct eh_cie *cies = array_room(to->cies, to->cie_count, &to->cie_capacity, sizeof *cies);
        if (!cies)
            return -1;
        to->cies = cies;
        cies[to->cie_count++] = copy->from->cies[i];
    }
    return 0;
}

static int copy_fdes(struct code_copy *copy, struct jit_function *function, uint32_t index)
{
    struct code_log *to = copy->to;
    uint32_t first = function->first_fde;
    function->first_fde = (uint32_t)to->fde_count;
    if (function->fde_count && !copy->has_cies && copy_cies(copy))
        return -1;
    for (uint32_t i = 0; i < function->fde_count; i++) {
        struct code_fde *fdes =
            array_room(to->fdes, to->fde_count, &to->fde_capacity, sizeof *fdes);
        if (!fdes)
            return -1;
        to->fdes = fdes;
        struct code_fde *fde = &fdes[to->fde_count++];
        *fde = copy->from->fdes[first + i];
        fde->function = index;
        fde->cie += copy->first_cie;
    }
    return 0;
}

int code_copy_function(struct code_copy *copy, uint32_t index, uint32_t *copy_index)
{
    struct code_log *to = copy->to;
    struct jit_function *functions =
        array_room(to->functions, to->function_count, &to->function_capacity, sizeof *functions);
    if (!functions || to->function_count >= NO_IMAGE)
        return -1;
    to->functions = functions;
    *copy_index = (uint32_t)to->function_count;
    struct jit_function *function = &functions[to->function_count++];
    *function = copy->from->functions[index];
    function->image = NO_IMAGE;
    function->visible = false;
    function->generation = 0;
    to->has_unwinding = to->has_unwinding || copy->from->has_unwinding;
    return copy_fdes(copy, function, *copy_index);
}

static int copy_move(struct code_copy *copy, const struct code_move *moved, uint32_t function)
{
    struct code_log *to = copy->to;
    struct code_move *moves =
        array_room(to->moves, to->move_count, &to->move_capacity, sizeof *moves);
    if (!moves)
        return -1;
    to->moves = moves;
    moves[to->move_count++] = (struct code_move){moved->old_addr, function};
    return 0;
}

static int copy_unload(struct code_copy *copy, const struct code_unload *gone, uint32_t dump)
{
    struct code_log *to = copy->to;
    struct code_unload *unloads =
        array_room(to->unloads, to->unload_count, &to->unload_capacity, sizeof *unloads);
    if (!unloads)
        return -1;
    to->unloads = unloads;
    unloads[to->unload_count] = *gone;
    unloads[to->unload_count++].dump = dump;
    return 0;
}

int code_copy_event(struct code_copy *copy, const struct code_event *event, uint32_t dump)
{
    struct code_log *to = copy->to;
    struct code_event copied = *event;
    if (event->kind == CODE_EVENT_UNLOAD) {
        copied.index = (uint32_t)to->unload_count;
        if (copy_unload(copy, &copy->from->unloads[event->index], dump))
            return -1;
    } else {
        bool is_move = event->kind == CODE_EVENT_MOVE;
        const struct code_move *moved = is_move ? &copy->from->moves[event->index] : NULL;
        uint32_t function;
        if (code_copy_function(copy, moved ? moved->function : event->index, &function))
            return -1;
        to->functions[function].dump = dump;
        copied.index = moved ? (uint32_t)to->move_count : function;
        if (moved && copy_move(copy, moved, function))
            return -1;
    }
    struct code_event *events =
        array_room(to->events, to->event_count, &to->event_capacity, sizeof *events);
    if (!events)
        return -1;
    to->events = events;
    events[to->event_count++] = copied;
    return 0;
}
