/* What a forked child has of its parent's code, from the parent's timeline into the child's: see
 * process/heritage.h. */
#include "injector/timeline/player.h"

#include "injector/arrays/array.h"
#include "injector/process/code_copy.h"

#include <inttypes.h>

/* As a hundred children have that each change the protection of forty thousand functions.  A
 * recording of a few MB can ask for the square of its size. */
enum { MAX_COPIES = 1 << 22 };

/* One hand-over: which functions have been copied. */
struct hand_over {
    struct player *player;
    struct jit_process *heir;
    struct code_copy copy;
    uint32_t *copies; /* by the parent's functions: number in the heir's log, or NO_FUNCTION */
    size_t left_out;  /* functions, because there were too many copies */
};

/* Whether there may be one more copy, which is counted. */
static bool may_copy(struct hand_over *over)
{
    size_t *handed_over = over->heir->handed_over;
    if (handed_over && *handed_over >= MAX_COPIES) {
        over->left_out++;
        return false;
    }
    if (handed_over)
        ++*handed_over;
    return true;
}

static int give_code(struct hand_over *over, uint64_t start, uint64_t end, uint32_t function)
{
    struct jit_heritage *heritage = &over->heir->heritage;
    if (over->copies[function] == NO_FUNCTION && !may_copy(over))
        return 0;
    struct heir_code *code =
        array_room(heritage->code, heritage->code_count, &heritage->code_capacity, sizeof *code);
    if (!code)
        return -1;
    heritage->code = code;
    if (over->copies[function] == NO_FUNCTION) {
        if (code_copy_function(&over->copy, function, &over->copies[function]))
            return -1;
        over->heir->log.functions[over->copies[function]].dump = NO_DUMP;
    }
    code[heritage->code_count++] = (struct heir_code){start, end, over->copies[function]};
    return 0;
}

static int give_backing(struct hand_over *over, uint64_t start, uint64_t end,
                        const struct profile_map *map)
{
    struct jit_heritage *heritage = &over->heir->heritage;
    struct heir_backing *backing = array_room(heritage->backing, heritage->backing_count,
                                              &heritage->backing_capacity, sizeof *backing);
    if (!backing)
        return -1;
    heritage->backing = backing;
    backing[heritage->backing_count++] = (struct heir_backing){start, end, map};
    return 0;
}

/* Give what lies within WANTED. */
static int give_span(struct hand_over *over, const struct address_span *wanted)
{
    struct player *player = over->player;
    struct address_place place;
    const struct address_range *range = address_map_find(&player->owners, wanted->start, &place);
    for (; range && range->start < wanted->end; range = address_map_next(&player->owners, &place)) {
        uint64_t start = range->start > wanted->start ? range->start : wanted->start;
        uint64_t end = range->end < wanted->end ? range->end : wanted->end;
        if (give_code(over, start, end, range->value))
            return -1;
    }
    range = address_map_find(&player->backed, wanted->start, &place);
    for (; range && range->start < wanted->end; range = address_map_next(&player->backed, &place)) {
        uint64_t start = range->start > wanted->start ? range->start : wanted->start;
        uint64_t end = range->end < wanted->end ? range->end : wanted->end;
        if (give_backing(over, start, end, player->mappings[range->value]))
            return -1;
    }
    return 0;
}

/* The table of copies, all of them NO_FUNCTION; it is made once for all hand-overs of a process. */
static uint32_t *copies_of(struct player *player)
{
    size_t count = player->process->log.function_count;
    if (player->copies)
        return player->copies;
    player->copies = malloc((count + 1) * sizeof *player->copies);
    for (size_t i = 0; player->copies && i < count; i++)
        player->copies[i] = NO_FUNCTION;
    return player->copies;
}

static void forget_copies(struct hand_over *over)
{
    const struct address_span *wanted = over->heir->heritage.wanted;
    for (size_t i = 0; i < over->heir->heritage.wanted_count; i++) {
        struct address_place place;
        const struct address_range *range =
            address_map_find(&over->player->owners, wanted[i].start, &place);
        for (; range && range->start < wanted[i].end;
             range = address_map_next(&over->player->owners, &place))
            over->copies[range->value] = NO_FUNCTION;
    }
}

int player_hand_over(struct player *player, struct jit_process *heir)
{
    struct hand_over over = {.player = player, .heir = heir, .copies = copies_of(player)};
    over.copy = (struct code_copy){.from = &player->process->log, .to = &heir->log};
    if (!over.copies)
        return -1;
    for (size_t i = 0; i < heir->heritage.wanted_count; i++)
        if (give_span(&over, &heir->heritage.wanted[i]))
            return -1;
    forget_copies(&over);
    if (over.left_out)
        report_finding(player->findings, FINDING_HERITAGE_LEFT,
                       "process %" PRIu32
                       ": %zu functions that it was forked with, and that it has at "
                       "addresses which it touches",
                       heir->pid, over.left_out);
    return 0;
}

int player_take_over(struct player *player)
{
    const struct jit_heritage *heritage = &player->process->heritage;
    for (size_t i = 0; i < heritage->backing_count; i++) {
        const struct heir_backing *backing = &heritage->backing[i];
        if (player_set_backed(player, backing->start, backing->end, backing->map))
            return -1;
    }
    for (size_t i = 0; i < heritage->code_count; i++) {
        const struct heir_code *code = &heritage->code[i];
        if (address_map_set(&player->owners, code->start, code->end, code->function) ||
            address_map_set(&player->shown, code->start, code->end, code->function))
            return -1;
    }
    return 0;
}
