/* See child_processes.h. */
#include "injector/history/process/child_processes.h"

#include "injector/log/jitdump/dump_name.h"

#include "injector/arrays/array.h"
#include "injector/history/process/code_copy.h"
#include "injector/history/process/shared_code.h"
#include "injector/text/plural.h"

#include <inttypes.h>
#include <string.h>

/* Facts about each life and each process while they are being linked: the processes still move. */
struct tree {
    struct jit_processes *processes;
    const struct records *records;
    uint32_t *carrier;        /* by life: the process whose code it has, its own or an ancestor's */
    struct life_moment *left; /* by life: when it left the carrier's line */
    bool *has_child;          /* by life */
    uint32_t *parent;         /* by process */
    struct footprint *footprints; /* by process */
    size_t parent_capacity, footprint_capacity;
    struct shared_code shared;
};

/* All addresses at which a process ever had code, in order, those next to each other joined. */
struct footprint {
    struct address_span *spans;
    size_t count;
    bool known;
};

/* ---- The tree of processes ---- */

/* The process of LIFE, made if there is none.  NO_PROCESS without memory. */
static uint32_t process_of(struct tree *tree, uint32_t life)
{
    struct jit_processes *processes = tree->processes;
    if (processes->by_life[life] != NO_PROCESS)
        return processes->by_life[life];
    if (array_reserve(tree->parent, processes->count, tree->parent_capacity) ||
        array_reserve(tree->footprints, processes->count, tree->footprint_capacity) ||
        !jit_process_of_life(processes, life))
        return NO_PROCESS;
    uint32_t index = (uint32_t)(processes->count - 1);
    tree->parent[index] = NO_PROCESS;
    tree->footprints[index] = (struct footprint){0};
    return index;
}

static int open_tree(struct tree *tree, struct jit_processes *processes,
                     const struct records *records)
{
    size_t lives = processes->lives.count, count = processes->count;
    *tree = (struct tree){.processes = processes, .records = records};
    tree->carrier = malloc((lives + 1) * sizeof *tree->carrier);
    tree->left = calloc(lives + 1, sizeof *tree->left);
    tree->has_child = calloc(lives + 1, sizeof *tree->has_child);
    tree->parent = malloc((count + 1) * sizeof *tree->parent);
    tree->footprints = calloc(count + 1, sizeof *tree->footprints);
    tree->parent_capacity = tree->footprint_capacity = count + 1;
    if (!tree->carrier || !tree->left || !tree->has_child || !tree->parent || !tree->footprints)
        return -1;
    for (size_t i = 0; i < lives; i++) {
        tree->carrier[i] = NO_PROCESS;
        if (processes->lives.items[i].parent != NO_LIFE)
            tree->has_child[processes->lives.items[i].parent] = true;
    }
    for (size_t i = 0; i < count; i++)
        tree->parent[i] = NO_PROCESS;
    return 0;
}

static void close_tree(struct tree *tree)
{
    for (size_t i = 0; tree->footprints && i < tree->processes->count; i++)
        free(tree->footprints[i].spans);
    free(tree->footprints);
    free(tree->carrier);
    free(tree->left);
    free(tree->has_child);
    free(tree->parent);
    shared_code_free(&tree->shared);
}

/* ---- Records of children in a shared dump ---- */

/* The process of a record: its pid, and the dump that it stands in. */
struct origin {
    uint32_t pid, dump;
};

/* The origin of the record that EVENT came from; of an END, of the load that it ends. */
static struct origin origin_of(const struct code_log *log, const struct code_event *event)
{
    const struct jit_function *function = code_event_function(log, event);
    if (function)
        return (struct origin){function->pid, function->dump};
    return (struct origin){log->unloads[event->index].pid, log->unloads[event->index].dump};
}

/* The life that EVENT of process INDEX belongs to: its own, or that of a descendant whose pid the
 * record has.  A process that does not know itself by its host's pid does not know its children so
 * either. */
static uint32_t life_of_event(const struct tree *tree, const struct jit_process *process,
                              const struct code_event *event)
{
    const struct process_lives *lives = &tree->processes->lives;
    const struct origin origin = origin_of(&process->log, event);
    if (origin.pid == process->pid || origin.dump >= process->dump_count ||
        process->dumps[origin.dump].pid != process->pid)
        return process->life;
    uint32_t life =
        process_life_at(lives, origin.pid, (struct life_moment){event->time_ns, UINT64_MAX});
    if (life == NO_LIFE || lives->items[life].begin.time_ns > event->time_ns ||
        !process_life_descends(lives, life, process->life))
        return process->life;
    return life;
}

/* The dump DUMP of FROM as one of TO's.  NO_DUMP without memory. */
static uint32_t borrow_dump(struct jit_process *to, const struct jit_process *from, uint32_t dump)
{
    for (size_t i = to->dump_count - to->borrowed_count; i < to->dump_count; i++)
        if (to->dumps[i].data == from->dumps[dump].data)
            return (uint32_t)i;
    if (jit_process_add_dump(to, &from->dumps[dump], from->dump_paths[dump]))
        return NO_DUMP;
    to->borrowed_count++;
    return (uint32_t)(to->dump_count - 1);
}

/* Copy EVENT of process FROM_INDEX to that of LIFE; MARK it as not its own. */
static int copy_event(struct tree *tree, uint32_t from_index, const struct code_event *event,
                      uint32_t life, bool mark)
{
    uint32_t to_index = process_of(tree, life);
    if (to_index == NO_PROCESS)
        return -1;
    struct jit_process *from = &tree->processes->items[from_index];
    struct jit_process *to = &tree->processes->items[to_index];
    struct code_copy copy = {.from = &from->log, .to = &to->log};
    uint32_t dump = borrow_dump(to, from, origin_of(&from->log, event).dump);
    if (dump == NO_DUMP || code_copy_event(&copy, event, dump))
        return -1;
    if (mark)
        shared_code_mark(&to->log, &to->log.events[to->log.event_count - 1]);
    return 0;
}

/* As many as children may inherit (history/timeline/fork.c), for the same reason. */
enum { MAX_COPIES = 1 << 22 };

/* Give EVENT of process INDEX, of a LIFE that wrote it to the memory of HOLD, to all others that
 * have that memory.  *KEPT: the process has that memory itself.  *EVENT is then its own version of
 * the event. */
static int give_to_all(struct tree *tree, uint32_t index, struct code_event *event,
                       const struct shared_hold *hold, bool *kept)
{
    struct shared_code *shared = &tree->shared;
    const struct shared_memory *memory = &shared->memory;
    const uint32_t own_life = tree->processes->items[index].life;
    const struct code_event written = *event;
    for (uint32_t i = memory->first[hold->object]; i < memory->first[hold->object + 1]; i++) {
        const struct shared_hold *member = &memory->holds[memory->by_object[i]];
        struct code_log *log = &tree->processes->items[index].log;
        struct code_event given = written;
        if (member->life == hold->life || !shared_code_is_of(member, log, &given))
            continue;
        if (member->life == own_life) {
            *event = given;
            *kept = true;
        } else if (!shared_code_is_sampled(shared, member->life, log, &given)) {
            continue;
        } else if (shared->copies == MAX_COPIES) {
            shared->left_out++;
        } else {
            shared->copies++;
            if (copy_event(tree, index, &given, member->life, true))
                return -1;
        }
    }
    return 0;
}

/* Give EVENT of process INDEX to whom it belongs.  *KEPT: the process is one of them.  *EVENT is
 * then its own version of the event. */
static int give_event(struct tree *tree, uint32_t index, struct code_event *event, bool *kept)
{
    struct jit_process *process = &tree->processes->items[index];
    const uint32_t own_life = process->life;
    const struct code_event written = *event;
    *kept = true;
    if (shared_code_is_marked(&process->log, event))
        return 0;
    uint32_t life = life_of_event(tree, process, event);
    const struct shared_hold *hold = shared_code_hold(&tree->shared, process, event, life);
    *kept = life == own_life;
    if ((hold && give_to_all(tree, index, event, hold, kept)) ||
        (life != own_life && copy_event(tree, index, &written, life, false)))
        return -1;
    struct code_log *log = &tree->processes->items[index].log;
    struct jit_function *function = code_event_function(log, event);
    if (*kept && life != own_life)
        shared_code_mark(log, event);
    else if (!*kept && function)
        function->dump = NO_DUMP; /* it has no event there any more */
    return 0;
}

/* Give the records of process INDEX that are others' to them. */
static int share_out(struct tree *tree, uint32_t index)
{
    size_t kept = 0;
    if (!tree->has_child[tree->processes->items[index].life] && tree->shared.memory.count == 0)
        return 0;
    for (size_t i = 0; i < tree->processes->items[index].log.event_count; i++) {
        struct code_event event = tree->processes->items[index].log.events[i];
        bool keeps;
        if (give_event(tree, index, &event, &keeps))
            return -1;
        if (keeps)
            tree->processes->items[index].log.events[kept++] = event;
    }
    tree->processes->items[index].log.event_count = kept;
    return 0;
}

/* ---- Children that do something to what they have inherited ---- */

static int measure_footprint(struct footprint *footprint, const struct code_log *log)
{
    footprint->known = true;
    footprint->spans = malloc((log->function_count + 1) * sizeof *footprint->spans);
    if (!footprint->spans)
        return -1;
    for (size_t i = 0; i < log->function_count; i++)
        footprint->spans[i] = (struct address_span){
            log->functions[i].addr, log->functions[i].addr + log->functions[i].size};
    footprint->count = address_spans_join(footprint->spans, log->function_count);
    return 0;
}

static bool overlaps(const struct footprint *footprint, uint64_t start, uint64_t end)
{
    const struct address_span *span = address_spans_find(footprint->spans, footprint->count, start);
    return span && span->start < end;
}

/* Whether MAP covers code that process INDEX or one it inherited from ever had.  -1 without
 * memory. */
static int covers_code(struct tree *tree, uint32_t index, const struct recorded_map *map)
{
    for (; index != NO_PROCESS; index = tree->parent[index]) {
        struct footprint *footprint = &tree->footprints[index];
        if (!footprint->known && measure_footprint(footprint, &tree->processes->items[index].log))
            return -1;
        if (overlaps(footprint, map->map.start, map->map.start + map->map.len))
            return 1;
    }
    return 0;
}

/* Whether LIFE, which has the code of process INDEX, has map records over it.  -1 without
 * memory. */
static int is_touched(struct tree *tree, uint32_t life, uint32_t index)
{
    const struct process_life *born = &tree->processes->lives.items[life];
    size_t count;
    const struct recorded_map *maps =
        process_life_maps(tree->records, born->pid, born->begin, born->next, &count);
    int result = 0;
    for (size_t i = 0; i < count && !result; i++)
        if (!jit_dump_has_name(maps[i].map.filename))
            result = covers_code(tree, index, &maps[i]);
    return result;
}

/* Find LIFE's inheritance; its parent has been placed before. */
static int place_life(struct tree *tree, uint32_t life)
{
    const struct process_life *born = &tree->processes->lives.items[life];
    uint32_t from = born->parent == NO_LIFE ? NO_PROCESS : tree->carrier[born->parent];
    tree->carrier[life] = tree->processes->by_life[life];
    if (from == NO_PROCESS)
        return 0;
    tree->left[life] =
        tree->processes->by_life[born->parent] == from ? born->begin : tree->left[born->parent];
    int touched = tree->processes->by_life[life] != NO_PROCESS ? 1 : is_touched(tree, life, from);
    if (touched <= 0) {
        tree->carrier[life] = from;
        return touched;
    }
    uint32_t index = process_of(tree, life);
    if (index == NO_PROCESS)
        return -1;
    tree->carrier[life] = index;
    tree->parent[index] = from;
    tree->processes->items[index].forked = tree->left[life];
    return 0;
}

/* ---- Order and links ---- */

/* Bring the processes into the order of their lives, and link them with their parents. */
static int arrange(struct tree *tree, const uint32_t *order)
{
    struct jit_processes *processes = tree->processes;
    struct jit_process *items = malloc((processes->count + 1) * sizeof *items);
    uint32_t *parents = malloc((processes->count + 1) * sizeof *parents);
    size_t placed = 0;
    if (!items || !parents) {
        free(items);
        free(parents);
        return -1;
    }
    for (size_t i = 0; i < processes->lives.count; i++) {
        uint32_t old = processes->by_life[order[i]];
        if (old == NO_PROCESS)
            continue;
        items[placed] = processes->items[old];
        /* The parent stands before it, and has its new number. */
        parents[placed] = NO_PROCESS;
        if (tree->parent[old] != NO_PROCESS)
            parents[placed] = processes->by_life[processes->items[tree->parent[old]].life];
        processes->by_life[order[i]] = (uint32_t)placed++;
    }
    for (size_t i = 0; i < placed; i++)
        items[i].parent = parents[i] == NO_PROCESS ? NULL : &items[parents[i]];
    free(parents);
    free(processes->items);
    processes->items = items;
    processes->capacity = processes->count + 1;
    return 0;
}

static int add_fork(struct jit_process *parent, struct life_moment at,
                    const struct jit_process *child)
{
    if (array_reserve(parent->forks, parent->fork_count, parent->fork_capacity))
        return -1;
    parent->forks[parent->fork_count++] = (struct jit_fork){at, child};
    return 0;
}

static int compare_forks(const void *left, const void *right)
{
    const struct jit_fork *a = left, *b = right;
    return life_moment_compare(a->at, b->at);
}

static void number_fork(struct jit_processes *processes, const struct jit_process *parent,
                        size_t fork)
{
    const struct jit_process *child = parent->forks[fork].child;
    if (child)
        processes->items[child - processes->items].fork = fork;
}

/* Tell each process when it forked: its own children, and those through whom a later one
 * inherits. */
static int collect_forks(struct tree *tree)
{
    struct jit_processes *processes = tree->processes;
    const struct process_lives *lives = &processes->lives;
    for (size_t i = 0; i < lives->count; i++) {
        uint32_t parent = lives->items[i].parent;
        if (parent != NO_LIFE && processes->by_life[parent] != NO_PROCESS &&
            add_fork(&processes->items[processes->by_life[parent]], lives->items[i].begin, NULL))
            return -1;
    }
    for (size_t i = 0; i < processes->count; i++) {
        struct jit_process *process = &processes->items[i];
        if (process->parent && add_fork(process->parent, process->forked, process))
            return -1;
    }
    for (size_t i = 0; i < processes->count; i++)
        if (processes->items[i].fork_count)
            qsort(processes->items[i].forks, processes->items[i].fork_count,
                  sizeof(struct jit_fork), compare_forks);
    for (size_t i = 0; i < processes->count; i++)
        for (size_t f = 0; f < processes->items[i].fork_count; f++)
            number_fork(processes, &processes->items[i], f);
    return 0;
}

static int find(struct tree *tree)
{
    uint32_t *order = process_lives_order(&tree->processes->lives);
    int result = order ? shared_code_begin(&tree->shared, tree->processes, order, tree->has_child,
                                           tree->records)
                       : -1;
    size_t with_dumps = tree->processes->count;
    for (size_t i = 0; !result && i < with_dumps; i++)
        result = share_out(tree, (uint32_t)i);
    for (size_t i = 0; !result && i < tree->processes->lives.count; i++)
        result = place_life(tree, order[i]);
    if (!result)
        result = arrange(tree, order) || collect_forks(tree) ? -1 : 0;
    free(order);
    return result;
}

int child_processes_find(struct jit_processes *processes, const struct records *records,
                         struct findings *findings)
{
    struct tree tree;
    if (!processes->by_life)
        return 0; /* no process has code that a child could inherit */
    int result = open_tree(&tree, processes, records);
    if (!result)
        result = find(&tree);
    if (!result && tree.shared.left_out)
        report_finding(findings, FINDING_INHERITANCE_CUT,
                       "%zu function%s in memory that processes share", tree.shared.left_out,
                       plural(tree.shared.left_out));
    close_tree(&tree);
    return result ? report_failure(findings, "out of memory") : 0;
}

/* ---- Where each child touches what it inherited ---- */

/* A chain of forks in which each child touches other code than the rest would need the square of
 * its length. */
enum { MAX_SPANS = 1 << 22, MIN_SPANS = 64 };

/* The addresses at which something happens in PROCESS: its maps, and its code before and after a
 * move or unload. */
static size_t collect_touched(const struct jit_process *process, struct address_span *spans)
{
    const struct code_log *log = &process->log;
    size_t count = 0;
    for (size_t i = 0; i < process->map_count; i++)
        if (!jit_dump_has_name(process->maps[i].map.filename))
            spans[count++] = (struct address_span){
                process->maps[i].map.start, process->maps[i].map.start + process->maps[i].map.len};
    for (size_t i = 0; i < log->function_count; i++)
        spans[count++] = (struct address_span){log->functions[i].addr,
                                               log->functions[i].addr + log->functions[i].size};
    for (size_t i = 0; i < log->unload_count; i++)
        spans[count++] = (struct address_span){log->unloads[i].addr,
                                               log->unloads[i].addr + log->unloads[i].size + 1};
    for (size_t i = 0; i < log->move_count; i++)
        spans[count++] = (struct address_span){log->moves[i].old_addr,
                                               log->moves[i].old_addr +
                                                   log->functions[log->moves[i].function].size + 1};
    return count;
}

/* Join spans to their neighbours until at most LIMIT of the COUNT are left.  It does no harm if
 * they are larger than the touched code. */
static size_t widen_spans(struct address_span *spans, size_t count, size_t limit)
{
    for (; count > limit; count = (count + 1) / 2)
        for (size_t i = 0; i < count; i += 2)
            spans[i / 2] =
                (struct address_span){spans[i].start, spans[i + 1 < count ? i + 1 : i].end};
    return count;
}

/* Add the COUNT spans at ADDED to those that PROCESS touches, of which there may be LIMIT. */
static int add_touched(struct jit_process *process, const struct address_span *added, size_t count,
                       size_t limit)
{
    size_t most = process->touched_count + count;
    struct address_span *spans = realloc(process->touched, (most + 1) * sizeof *spans);
    if (!spans)
        return -1;
    if (count)
        memcpy(spans + process->touched_count, added, count * sizeof *spans);
    process->touched = spans;
    process->touched_count = widen_spans(spans, address_spans_join(spans, most), limit);
    return 0;
}

static int touch_own(struct jit_process *process, size_t limit)
{
    const struct code_log *log = &process->log;
    size_t most = process->map_count + log->function_count + log->unload_count + log->move_count;
    struct address_span *own = malloc((most + 1) * sizeof *own);
    size_t count = own ? address_spans_join(own, collect_touched(process, own)) : 0;
    int result = own ? add_touched(process, own, count, limit) : -1;
    free(own);
    return result;
}

/* Children first: a grandchild's inheritance must have been given to its parent. */
int child_processes_find_touched(struct jit_processes *processes, struct findings *findings)
{
    const size_t limit = MAX_SPANS / (processes->count + 1) + MIN_SPANS;
    for (size_t i = processes->count; i-- > 0;) {
        struct jit_process *process = &processes->items[i];
        struct jit_process *parent = process->parent;
        if (!parent)
            continue;
        if (touch_own(process, limit) ||
            (parent->parent &&
             add_touched(parent, process->touched, process->touched_count, limit)))
            return report_failure(findings, "out of memory");
    }
    return 0;
}
