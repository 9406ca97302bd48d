/* The pieces of one function, wherever each is now: a ring through the states of functions.  See
 * player.h.
 *
 * They are logged as one group, one after another, so that each can be linked to the one before it.
 */
#include "injector/timeline/player.h"

static bool follows(const struct jit_function *before, const struct jit_function *function)
{
    return before->dump == function->dump && before->piece_count == function->piece_count &&
           before->piece < function->piece &&
           before->code_index - before->piece == function->code_index - function->piece;
}

/* Put piece TO right after piece FROM, which may be alone. */
static void join(struct function_state *states, uint32_t from, uint32_t to)
{
    uint32_t next = states[from].next_piece ? states[from].next_piece : from + 1;
    states[to].next_piece = next;
    states[to].last_piece = from + 1;
    states[next - 1].last_piece = to + 1;
    states[from].next_piece = to + 1;
}

void player_link_piece(struct player *player, uint32_t index)
{
    const struct jit_function *function = &player->timeline->log->functions[index];
    if (function->piece && index && follows(function - 1, function))
        join(player->timeline->states, index - 1, index);
}

uint32_t player_next_piece(const struct player *player, uint32_t index)
{
    uint32_t next = player->timeline->states[index].next_piece;
    return next ? next - 1 : index;
}

void player_move_piece(struct player *player, uint32_t from, uint32_t to)
{
    struct function_state *states = player->timeline->states;
    uint32_t last = states[from].last_piece, next = states[from].next_piece;
    if (!next)
        return;
    states[last - 1].next_piece = next;
    states[next - 1].last_piece = last;
    states[from].next_piece = states[from].last_piece = 0;
    join(states, last - 1, to);
}
