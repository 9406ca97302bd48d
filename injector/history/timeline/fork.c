/* The code that a forked child inherits, in the timelines of both: see change.h. */
#include "injector/history/timeline/player.h"

#include "injector/arrays/array.h"
#include "injector/history/process/code_copy.h"
#include "injector/text/plural.h"

#include <inttypes.h>

/* As a hundred children have that each change the protection of forty thousand functions.  A
 * recording of a few MB can ask for the square of its size. */
enum { MAX_INHERITED = 1 << 22 };

/* ---- Of the parent: at a fork ---- */

struct hand_over {
    struct player *player;
    struct inheritance *inheritance;
    uint32_t *inherited; /* by the parent's functions: in the inheritance's, or NO_FUNCTION */
    size_t left_out;     /* functions, because there were too many */
};

/* Number *INHERITED for FUNCTION in the inheritance; it stays NO_FUNCTION if there are too many. */
static int number_function(struct hand_over *over, uint32_t function, uint32_t *inherited)
{
    struct inheritance *inheritance = over->inheritance;
    size_t *total = over->player->inherited_count;
    if (*inherited != NO_FUNCTION)
        return 0;
    if (*total >= MAX_INHERITED) {
        over->left_out++;
        return 0;
    }
    if (array_reserve(inheritance->functions, inheritance->function_count,
                      inheritance->function_capacity))
        return -1;
    *inherited = (uint32_t)inheritance->function_count;
    inheritance->functions[inheritance->function_count++] = (struct inherited_function){
        function, over->player->timeline->log->functions[function].code_index, 0};
    ++*total;
    return 0;
}

static int give_code(struct hand_over *over, uint64_t start, uint64_t end, uint32_t function)
{
    struct inheritance *inheritance = over->inheritance;
    uint32_t *inherited = &over->inherited[function];
    if (number_function(over, function, inherited))
        return -1;
    if (*inherited == NO_FUNCTION)
        return 0;
    if (array_reserve(inheritance->code, inheritance->code_count, inheritance->code_capacity))
        return -1;
    inheritance->code[inheritance->code_count++] = (struct inherited_code){start, end, *inherited};
    return 0;
}

/* Give the other pieces of FUNCTION as well: an unload of the first is of all. */
static int give_pieces(struct hand_over *over, uint32_t function)
{
    struct player *player = over->player;
    uint32_t piece = function;
    while ((piece = player_next_piece(player, piece)) != function) {
        const struct jit_function *other = &player->timeline->log->functions[piece];
        struct address_place place;
        const struct address_range *range = address_map_find(&player->owners, other->addr, &place);
        if (over->inherited[piece] != NO_FUNCTION || *player->inherited_count >= MAX_INHERITED)
            return 0; /* all are given, or none can be */
        for (; range && range->start < other->addr + other->size;
             range = address_map_next(&player->owners, &place))
            if (range->value == piece && give_code(over, range->start, range->end, piece))
                return -1;
        if (number_function(over, piece, &over->inherited[piece]))
            return -1;
    }
    return 0;
}

static int give_map(struct hand_over *over, uint64_t start, uint64_t end,
                    const struct recorded_map *map)
{
    struct inheritance *inheritance = over->inheritance;
    if (array_reserve(inheritance->maps, inheritance->map_count, inheritance->map_capacity))
        return -1;
    inheritance->maps[inheritance->map_count++] = (struct inherited_map){start, end, map};
    return 0;
}

/* Give the code within TOUCHED. */
static int give_span(struct hand_over *over, const struct address_span *touched)
{
    struct player *player = over->player;
    struct address_place place;
    const struct address_range *range = address_map_find(&player->owners, touched->start, &place);
    for (; range && range->start < touched->end;
         range = address_map_next(&player->owners, &place)) {
        uint64_t start = range->start > touched->start ? range->start : touched->start;
        uint64_t end = range->end < touched->end ? range->end : touched->end;
        if (give_code(over, start, end, range->value) || give_pieces(over, range->value))
            return -1;
    }
    range = address_map_find(&player->backed, touched->start, &place);
    for (; range && range->start < touched->end;
         range = address_map_next(&player->backed, &place)) {
        uint64_t start = range->start > touched->start ? range->start : touched->start;
        uint64_t end = range->end < touched->end ? range->end : touched->end;
        if (give_map(over, start, end, player->mappings[range->value]))
            return -1;
    }
    return 0;
}

/* By function, all of them NO_FUNCTION; it is made once for all forks of a process. */
static uint32_t *inherited_of(struct player *player)
{
    size_t count = player->timeline->log->function_count;
    if (player->inherited)
        return player->inherited;
    player->inherited = malloc((count + 1) * sizeof *player->inherited);
    for (size_t i = 0; player->inherited && i < count; i++)
        player->inherited[i] = NO_FUNCTION;
    return player->inherited;
}

/* The rings of the given functions. */
static void number_pieces(struct hand_over *over)
{
    struct inheritance *inheritance = over->inheritance;
    for (size_t i = 0; i < inheritance->function_count; i++) {
        uint32_t function = inheritance->functions[i].function;
        uint32_t next = player_next_piece(over->player, function);
        while (over->inherited[next] == NO_FUNCTION)
            next = player_next_piece(over->player, next);
        if (next != function)
            inheritance->functions[i].next_piece = over->inherited[next] + 1;
    }
}

int player_hand_over(struct player *player, size_t fork)
{
    const struct jit_process *child = player->process->forks[fork].child;
    struct inheritance *inheritance = &player->timeline->inheritances[fork];
    struct hand_over over = {player, inheritance, inherited_of(player), 0};
    if (!over.inherited)
        return -1;
    for (size_t i = 0; i < child->touched_count; i++)
        if (give_span(&over, &child->touched[i]))
            return -1;
    number_pieces(&over);
    for (size_t i = 0; i < inheritance->function_count; i++)
        over.inherited[inheritance->functions[i].function] = NO_FUNCTION;
    if (over.left_out)
        report_finding(player->findings, FINDING_INHERITANCE_CUT,
                       "process %" PRIu32
                       ": %zu inherited function%s at addresses that it maps or loads code at",
                       child->pid, over.left_out, plural(over.left_out));
    return 0;
}

/* ---- Of the child: at its beginning ---- */

/* Add the functions after the process's own ones. */
static int take_functions(struct player *player, const struct inheritance *inheritance,
                          const struct timeline *parent)
{
    struct code_copy copy = {.from = parent->log, .to = &player->timeline->own};
    const uint32_t first = (uint32_t)player->process->log.function_count;
    if (inheritance->function_count == 0)
        return 0;
    if (player_own_log(player))
        return -1;
    for (size_t i = 0; i < inheritance->function_count; i++) {
        uint32_t index;
        if (code_copy_function(&copy, inheritance->functions[i].function, &index))
            return -1;
        struct jit_function *function = &player->timeline->own.functions[index];
        function->code_index = inheritance->functions[i].code_index;
        function->dump = NO_DUMP;
        uint32_t next = inheritance->functions[i].next_piece;
        if (next) {
            player->timeline->links[index].next = first + next;
            player->timeline->links[first + next - 1].last = index + 1;
        }
        player->timeline->states[index].before_maps =
            parent->states[inheritance->functions[i].function].before_maps;
    }
    return 0;
}

int player_take_over(struct player *player, const struct inheritance *inheritance,
                     const struct timeline *parent)
{
    const uint32_t first = (uint32_t)player->process->log.function_count;
    for (size_t i = 0; i < inheritance->map_count; i++) {
        const struct inherited_map *map = &inheritance->maps[i];
        if (player_set_backed(player, map->start, map->end, map->map))
            return -1;
    }
    if (take_functions(player, inheritance, parent))
        return -1;
    for (size_t i = 0; i < inheritance->code_count; i++) {
        const struct inherited_code *code = &inheritance->code[i];
        uint32_t function = first + code->function;
        if (address_map_set(&player->owners, code->start, code->end, function) ||
            address_map_set(&player->shown, code->start, code->end, function))
            return -1;
    }
    return 0;
}

void inheritance_free(struct inheritance *inheritance)
{
    free(inheritance->functions);
    free(inheritance->code);
    free(inheritance->maps);
}
