/* See register_homes.h. */
#include "examples/tinyjit/register_homes.h"

#include "examples/tinyjit/memory.h"

enum { LOOP_WEIGHT = 8, MAX_WEIGHT = 1 << 18 };

static void count_uses(const struct node *node, struct home *homes, uint64_t weight)
{
    if (!node)
        return;
    if (node->kind == NODE_LOCAL || node->kind == NODE_SET_LOCAL)
        homes[node->index].uses += weight;
    if (node->kind == NODE_WHILE && weight < MAX_WEIGHT)
        weight *= LOOP_WEIGHT;
    count_uses(node->left, homes, weight);
    count_uses(node->right, homes, weight);
    count_uses(node->other, homes, weight);
    for (const struct node *item = node->items; item; item = item->next)
        count_uses(item, homes, weight);
}

/* The busiest local without a register, or NULL. */
static struct home *busiest(struct register_homes *homes, uint32_t count)
{
    struct home *best = NULL;
    for (uint32_t i = 0; i < count; i++) {
        struct home *home = &homes->homes[i];
        if (!home->in_register && home->uses && (!best || home->uses > best->uses))
            best = home;
    }
    return best;
}

void register_homes_assign(struct register_homes *homes, const struct function *function,
                           bool frame_pointer)
{
    static const enum x86_register registers[MAX_SAVED] = {X86_RBX, X86_R12, X86_R13, X86_R14,
                                                           X86_RBP};
    *homes = (struct register_homes){0};
    homes->homes = memory_new(function->local_count, sizeof *homes->homes);
    count_uses(function->body, homes->homes, 1);
    for (size_t available = frame_pointer ? MAX_SAVED - 1 : MAX_SAVED;
         homes->used_count < available;) {
        struct home *home = busiest(homes, function->local_count);
        if (!home)
            break;
        home->in_register = true;
        home->reg = registers[homes->used_count];
        homes->used[homes->used_count++] = home->reg;
    }
    for (uint32_t i = 0; i < function->local_count; i++)
        if (!homes->homes[i].in_register && homes->homes[i].uses)
            homes->homes[i].frame_local = homes->frame_locals++;
}

void register_homes_free(struct register_homes *homes)
{
    free(homes->homes);
}
