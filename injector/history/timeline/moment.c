/* The end of a moment: its visible events become changes.  See player.h. */
#include "injector/history/timeline/player.h"

#include <stdlib.h>
#include <string.h>

/* One more than the highest generation that any part of FUNCTION's addresses has seen. */
static uint32_t next_generation(const struct player *player, const struct jit_function *function)
{
    uint32_t generation = 0;
    uint64_t end = function->addr + function->size;
    struct address_place place;
    const struct address_range *range = address_map_find(&player->shown, function->addr, &place);
    for (; range && range->start < end; range = address_map_next(&player->shown, &place)) {
        uint32_t seen = player->timeline->states[range->value].generation;
        generation = seen + 1 > generation ? seen + 1 : generation;
    }
    return generation;
}

int player_set_generation(struct player *player, uint32_t index)
{
    const struct jit_function *function = &player->timeline->log->functions[index];
    player->timeline->states[index].generation = next_generation(player, function);
    return address_map_set(&player->shown, function->addr, function->addr + function->size, index);
}

static int compare_addresses(const void *left, const void *right, void *context)
{
    const struct jit_function *functions = context;
    uint64_t a = functions[*(const uint32_t *)left].addr;
    uint64_t b = functions[*(const uint32_t *)right].addr;
    return a < b ? -1 : a > b;
}

/* Add the changes that give the moment's functions, BY_ADDRESS, the part of their addresses that
 * they still own.  Each range is looked at once: of functions that were loaded into one another
 * each would look at all that are inside it. */
static int show_ranges(struct player *player, const uint32_t *by_address)
{
    const struct jit_function *functions = player->timeline->log->functions;
    struct address_place place = {0};
    uint64_t done = 0;
    for (size_t i = 0; i < player->moment.loaded_count; i++) {
        const struct jit_function *function = &functions[by_address[i]];
        uint64_t end = function->addr + function->size;
        uint64_t start = function->addr > done ? function->addr : done;
        const struct address_range *range = address_map_find_near(&player->owners, start, &place);
        for (; range && range->start < end; range = address_map_next(&player->owners, &place)) {
            struct function_state *owner = &player->timeline->states[range->value];
            done = range->end;
            if (!owner->in_moment)
                continue;
            owner->visible = true;
            if (player_add_change(player,
                                  (struct change){player->moment.time_ns, range->start, range->end,
                                                  CHANGE_FUNCTION, range->value}))
                return -1;
        }
    }
    return 0;
}

/* Allocators mostly go upwards. */
static bool loaded_upwards(const struct moment *moment, const struct jit_function *functions)
{
    for (size_t i = 1; i < moment->loaded_count; i++)
        if (functions[moment->loaded[i]].addr < functions[moment->loaded[i - 1]].addr)
            return false;
    return true;
}

static int show_by_address(struct player *player)
{
    const struct moment *moment = &player->moment;
    const struct jit_function *functions = player->timeline->log->functions;
    size_t bytes = moment->loaded_count * sizeof *moment->loaded;
    if (loaded_upwards(moment, functions))
        return show_ranges(player, moment->loaded);
    uint32_t *by_address = malloc(bytes);
    if (!by_address)
        return -1;
    memcpy(by_address, moment->loaded, bytes);
    qsort_r(by_address, moment->loaded_count, sizeof *by_address, compare_addresses,
            player->timeline->log->functions);
    int result = show_ranges(player, by_address);
    free(by_address);
    return result;
}

/* Generations go by the order of loads. */
static int show_loaded(struct player *player)
{
    const struct moment *moment = &player->moment;
    struct function_state *states = player->timeline->states;
    int result = show_by_address(player);
    for (size_t i = 0; i < moment->loaded_count && !result; i++) {
        states[moment->loaded[i]].in_moment = false;
        if (states[moment->loaded[i]].visible)
            result = player_set_generation(player, moment->loaded[i]);
    }
    return result;
}

static int show_unloaded(struct player *player)
{
    for (size_t i = 0; i < player->moment.unloaded_count; i++) {
        const struct address_range *range = &player->moment.unloaded[i];
        if (player_add_change(player, (struct change){player->moment.time_ns, range->start,
                                                      range->end, CHANGE_UNLOADED, 0}))
            return -1;
    }
    return 0;
}

int player_end_moment(struct player *player)
{
    struct moment *moment = &player->moment;
    if (show_unloaded(player) || show_loaded(player))
        return -1;
    moment->loaded_count = 0;
    moment->unloaded_count = 0;
    return 0;
}
