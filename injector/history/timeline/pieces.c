/* The pieces of one function, wherever each is now: a ring through the states of functions.  See
 * player.h.
 *
 * They are logged as one group, one after another, so that each can be linked to the one before it.
 */
#include "injector/history/timeline/player.h"

static bool follows(const struct jit_function *before, const struct jit_function *function)
{
    return before->dump == function->dump && before->piece && before->piece < function->piece &&
           jit_function_first_index(before) == jit_function_first_index(function);
}

/* Put piece TO right after piece FROM, which may be alone. */
static void join(struct piece_link *links, uint32_t from, uint32_t to)
{
    uint32_t next = links[from].next ? links[from].next : from + 1;
    links[to] = (struct piece_link){next, from + 1};
    links[next - 1].last = to + 1;
    links[from].next = to + 1;
}

void player_link_piece(struct player *player, uint32_t index)
{
    const struct jit_function *function = &player->timeline->log->functions[index];
    if (function->piece > 1 && index && follows(function - 1, function))
        join(player->timeline->links, index - 1, index);
}

uint32_t player_next_piece(const struct player *player, uint32_t index)
{
    const struct piece_link *links = player->timeline->links;
    return links && links[index].next ? links[index].next - 1 : index;
}

void player_move_piece(struct player *player, uint32_t from, uint32_t to)
{
    struct piece_link *links = player->timeline->links;
    if (!links || !links[from].next)
        return;
    struct piece_link old = links[from];
    links[old.last - 1].next = old.next;
    links[old.next - 1].last = old.last;
    links[from] = (struct piece_link){0};
    join(links, old.last - 1, to);
}
