/* See name_groups.h. */
#include "injector/inject/layout/name_groups.h"

#include "injector/arrays/array.h"
#include "injector/arrays/hash.h"
#include "injector/inject/layout/placed_functions.h"

#include <stdlib.h>
#include <string.h>
#define XXH_STATIC_LINKING_ONLY /* a state without malloc */

struct grouping {
    struct name_groups *to;
    enum image_rows rows;
    uint32_t *slots; /* numbers of groups + 1, by hash; 0: free */
    size_t slot_count;
    uint32_t *group_of;               /* by body, in the order of process and address */
    const struct jit_dump **machines; /* a dump for each machine */
    size_t machine_capacity;
};

/* ---- Bodies ---- */

/* Set when each function of LOG was first there; others are left as they are. */
static void find_times(uint64_t *times_ns, const struct code_log *log)
{
    for (size_t i = log->event_count; i-- > 0;) {
        const struct code_event *event = &log->events[i];
        if (event->kind == CODE_EVENT_LOAD)
            times_ns[event->index] = event->time_ns;
        else if (event->kind == CODE_EVENT_MOVE)
            times_ns[log->moves[event->index].function] = event->time_ns;
    }
}

static int add_bodies(struct name_groups *groups, const struct placed_functions *placed,
                      const struct timeline *timeline, uint32_t process)
{
    uint64_t *times_ns = calloc(timeline->log->function_count + 1, sizeof *times_ns);
    int result = times_ns ? 0 : -1;
    if (!result)
        find_times(times_ns, &groups->processes[process].log);
    for (size_t i = 0; i < placed->count && !result; i++) {
        result = groups->body_count < UINT32_MAX - 1
                     ? array_reserve(groups->bodies, groups->body_count, groups->body_capacity)
                     : -1;
        if (result)
            break;
        uint32_t number = placed->items[i].function;
        groups->bodies[groups->body_count++] = (struct image_body){
            0, times_ns[number], &timeline->log->functions[number], process, number};
    }
    free(times_ns);
    return result;
}

static int collect(struct name_groups *groups, struct image_plan *plan,
                   const struct timeline *timelines, size_t process_count)
{
    int result = 0;
    for (size_t i = 0; i < process_count && !result; i++) {
        struct placed_functions placed;
        if (!placed_functions_open(&placed, plan, &timelines[i]) ||
            add_bodies(groups, &placed, &timelines[i], (uint32_t)i))
            result = -1;
        free(placed.items);
    }
    return result;
}

/* ---- Groups ---- */

/* The number of the machine that DUMP is of.  UINT32_MAX without memory. */
static uint32_t machine_of(struct grouping *grouping, const struct jit_dump *dump)
{
    struct name_groups *to = grouping->to;
    for (size_t i = 0; i < to->machine_count; i++) {
        const struct jit_dump *other = grouping->machines[i];
        if (other == dump ||
            (other->elf_mach == dump->elf_mach && other->big_endian == dump->big_endian &&
             other->address_bytes == dump->address_bytes))
            return (uint32_t)i;
    }
    if (array_reserve(grouping->machines, to->machine_count, grouping->machine_capacity))
        return UINT32_MAX;
    grouping->machines[to->machine_count] = dump;
    return (uint32_t)to->machine_count++;
}

/* A name without the parts that are cut out. */
struct row_name {
    const char *text;
    size_t front, back, bytes; /* it is [0, front) and [back, bytes) */
};

static struct row_name name_of(const struct jit_function *function, struct tier_mark cut)
{
    return (struct row_name){function->name, cut.at, cut.at + (size_t)cut.bytes,
                             function->name_bytes};
}

/* The hash of a name in two pieces. */
static uint64_t hash_pieces(const struct row_name *name)
{
    XXH3_state_t state;
    XXH3_INITSTATE(&state);
    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, name->text, name->front);
    XXH3_64bits_update(&state, name->text + name->back, name->bytes - name->back);
    return XXH3_64bits_digest(&state);
}

/* Two names of one length without their cuts are equal if they are in each of three pieces. */
static bool names_are_equal(const struct row_name *a, const struct row_name *b)
{
    if (a->bytes - (a->back - a->front) != b->bytes - (b->back - b->front))
        return false;
    if (a->front > b->front)
        return names_are_equal(b, a);
    size_t between = b->front - a->front;
    return memcmp(a->text, b->text, a->front) == 0 &&
           memcmp(a->text + a->back, b->text + a->front, between) == 0 &&
           memcmp(a->text + a->back + between, b->text + b->back, b->bytes - b->back) == 0;
}

static bool is_of_group(const struct grouping *grouping, const struct name_group *group,
                        const struct name_group *wanted, const struct row_name *name)
{
    const struct name_groups *to = grouping->to;
    if (group->hash != wanted->hash || group->machine != wanted->machine)
        return false;
    struct row_name other = name_of(to->bodies[group->first].function, group->cut);
    return names_are_equal(&other, name);
}

/* The number of the group of body NUMBER, made if there is none.  UINT32_MAX without memory. */
static uint32_t group_of(struct grouping *grouping, uint32_t number)
{
    struct name_groups *to = grouping->to;
    const struct image_body *body = &to->bodies[number];
    const struct jit_function *function = body->function;
    struct name_group wanted = {.first = number};
    if (grouping->rows == ROWS_FUNCTION)
        wanted.cut = tier_mark_of(function->name, function->name_bytes);
    struct row_name name = name_of(function, wanted.cut);
    wanted.hash = wanted.cut.bytes ? hash_pieces(&name) : function->name_hash;
    wanted.machine = machine_of(grouping, &to->processes[body->process].dumps[function->dump]);
    if (wanted.machine == UINT32_MAX)
        return UINT32_MAX;
    size_t slot = wanted.hash & (grouping->slot_count - 1);
    for (; grouping->slots[slot]; slot = (slot + 1) & (grouping->slot_count - 1))
        if (is_of_group(grouping, &to->groups[grouping->slots[slot] - 1], &wanted, &name))
            return grouping->slots[slot] - 1;
    if (array_reserve(to->groups, to->count, to->capacity))
        return UINT32_MAX;
    to->groups[to->count++] = wanted;
    grouping->slots[slot] = (uint32_t)to->count;
    return (uint32_t)to->count - 1;
}

/* Slots stand anywhere: without a hint each is waited for. */
static void fetch_slot(const struct grouping *grouping, size_t body)
{
    const struct name_groups *to = grouping->to;
    if (body < to->body_count)
        __builtin_prefetch(
            &grouping->slots[to->bodies[body].function->name_hash & (grouping->slot_count - 1)]);
}

static int find_groups(struct grouping *grouping)
{
    struct name_groups *to = grouping->to;
    for (grouping->slot_count = 16; grouping->slot_count < 2 * to->body_count;)
        grouping->slot_count *= 2;
    grouping->slots = calloc(grouping->slot_count, sizeof *grouping->slots);
    grouping->group_of = malloc((to->body_count + 1) * sizeof *grouping->group_of);
    if (!grouping->slots || !grouping->group_of)
        return -1;
    for (uint32_t i = 0; i < to->body_count; i++) {
        enum { AHEAD = 16 };
        fetch_slot(grouping, i + (size_t)AHEAD);
        uint32_t group = grouping->group_of[i] = group_of(grouping, i);
        if (group == UINT32_MAX)
            return -1;
        to->groups[group].count++;
    }
    return 0;
}

/* ---- Bodies by group ---- */

static int compare_loads(const void *left, const void *right)
{
    const struct image_body *a = left, *b = right;
    if (a->loaded_ns != b->loaded_ns)
        return a->loaded_ns < b->loaded_ns ? -1 : 1;
    if (a->process != b->process)
        return a->process < b->process ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* If all names are different, the bodies are dealt out already. */
static int deal_out(struct grouping *grouping)
{
    struct name_groups *to = grouping->to;
    if (to->count == to->body_count)
        return 0;
    struct image_body *dealt = malloc((to->body_count + 1) * sizeof *dealt);
    if (!dealt)
        return -1;
    uint32_t next = 0;
    for (size_t i = 0; i < to->count; i++) {
        to->groups[i].first = next;
        next += to->groups[i].count;
        to->groups[i].count = 0;
    }
    for (size_t i = 0; i < to->body_count; i++) {
        struct name_group *group = &to->groups[grouping->group_of[i]];
        dealt[group->first + group->count++] = to->bodies[i];
    }
    for (size_t i = 0; i < to->count; i++)
        if (to->groups[i].count > 1)
            qsort(dealt + to->groups[i].first, to->groups[i].count, sizeof *dealt, compare_loads);
    free(to->bodies);
    to->bodies = dealt;
    return 0;
}

int name_groups_open(struct name_groups *groups, struct image_plan *plan,
                     const struct jit_process *processes, const struct timeline *timelines,
                     size_t count, enum image_rows rows)
{
    *groups = (struct name_groups){.processes = processes};
    struct grouping grouping = {.to = groups, .rows = rows};
    int result =
        collect(groups, plan, timelines, count) || find_groups(&grouping) || deal_out(&grouping)
            ? -1
            : 0;
    free(grouping.slots);
    free(grouping.group_of);
    free(grouping.machines);
    return result;
}

void name_groups_free(struct name_groups *groups)
{
    if (!groups->are_given)
        free(groups->bodies);
    free(groups->groups);
}
