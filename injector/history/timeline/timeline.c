/* See timeline.h. */
#include "injector/history/timeline/timeline.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"
#include "injector/arrays/number_sort.h"
#include "injector/arrays/run_sort.h"
#include "injector/files/interruption.h"
#include "injector/history/process/code_copy.h"
#include "injector/history/timeline/player.h"

#include <inttypes.h>
#include <string.h>

/* Dead ranges that are closer together become one. */
#define DEAD_GAP_BYTES (UINT64_C(16) << 20)

int player_add_change(struct player *player, struct change change)
{
    struct timeline *timeline = player->timeline;
    if (array_reserve(timeline->changes, timeline->change_count, timeline->change_capacity))
        return -1;
    timeline->changes[timeline->change_count++] = change;
    return 0;
}

/* Add a change whose time is past: others that are later may have been added before. */
int player_add_early_change(struct player *player, struct change change)
{
    if (array_reserve(player->early, player->early_count, player->early_capacity))
        return -1;
    player->early[player->early_count++] = change;
    return 0;
}

static void begin_event(struct player *player, uint64_t time_ns)
{
    if (player->moment.loaded_count == 0 && player->moment.unloaded_count == 0)
        player->moment.time_ns = time_ns;
}

/* ---- Code events ---- */

/* The live function that owns ADDR, or NO_FUNCTION. */
static uint32_t owner_at(const struct player *player, uint64_t addr)
{
    const struct address_range *range = address_map_at(&player->owners, addr);
    return range ? range->value : NO_FUNCTION;
}

/* A runtime that logs everything again (.NET does when a tracer attaches) changes nothing but the
 * code_index. */
static bool is_repeated(const struct player *player, const struct jit_function *function)
{
    struct address_place place;
    const struct address_range *range = address_map_find(&player->owners, function->addr, &place);
    if (!range || range->start != function->addr)
        return false;
    const struct jit_function *old = &player->timeline->log->functions[range->value];
    return range->end == function->addr + function->size && old->addr == function->addr &&
           old->size == function->size && old->code && function->code &&
           old->name_bytes == function->name_bytes &&
           memcmp(old->name, function->name, old->name_bytes) == 0 &&
           memcmp(old->code, function->code, (size_t)function->size) == 0;
}

/* Since when nobody has the addresses [START, END), which somebody had: TIME_NS, unless unloads are
 * in time.  Then no code that was unloaded runs there. */
static uint64_t vacant_since(const struct player *player, uint64_t start, uint64_t end,
                             uint64_t time_ns)
{
    uint64_t since = 0;
    struct address_place place;
    const struct address_range *range = address_map_find(&player->vacated, start, &place);
    for (; range && range->start < end; range = address_map_next(&player->vacated, &place)) {
        if (!player->process->unloads_in_time || range->value >= player->samples_passed)
            return time_ns;
        const uint64_t sample_ns = player->sample_times_ns[range->value];
        since = sample_ns > since ? sample_ns : since;
    }
    return since;
}

/* Since when FUNCTION, logged at TIME_NS, had its addresses to itself: at most the slack, and not
 * before they were mapped. TIME_NS, if somebody else has them or had them: code that was unloaded,
 * or not logged, may have run there. */
static uint64_t exclusive_since(const struct player *player, const struct jit_function *function,
                                uint64_t time_ns)
{
    uint64_t end = function->addr + function->size;
    uint64_t slack = player->process->load_slack_ns;
    uint64_t since = time_ns > slack ? time_ns - slack : 0;
    if (since < player->process->log.history.begin_ns)
        since = player->process->log.history.begin_ns;
    if (address_map_meets(&player->owners, function->addr, end))
        return time_ns;
    since = since > player->began_ns ? since : player->began_ns;
    const uint64_t vacant = vacant_since(player, function->addr, end, time_ns);
    since = since > vacant ? since : vacant;
    struct address_place place;
    const struct address_range *range =
        address_map_find(&player->mapped_since, function->addr, &place);
    for (; range && range->start < end; range = address_map_next(&player->mapped_since, &place))
        since = player->times[range->value] > since ? player->times[range->value] : since;
    return since < time_ns ? since : time_ns;
}

/* The first sample in [SINCE_NS, TIME_NS), if there is one, into *SAMPLE_NS. */
static bool was_sampled(const struct player *player, uint64_t since_ns, uint64_t time_ns,
                        uint64_t *sample_ns)
{
    const uint64_t *samples = player->sample_times_ns;
    size_t first, count = player->samples_passed;
    if (since_ns >= time_ns || count == 0 || samples[count - 1] < since_ns)
        return false;
    array_bisect(first, count, samples[first] < since_ns);
    *sample_ns = samples[first];
    return true;
}

/* A function that ran before it was logged, when a sample could hit it: it is there from that
 * sample on.  All that comes to light so between two samples has the same time, as a moment has. */
static int load_early(struct player *player, uint32_t index, uint64_t sample_ns)
{
    const struct jit_function *function = &player->timeline->log->functions[index];
    uint64_t end = function->addr + function->size;
    player->timeline->states[index].visible = true;
    if (player_add_early_change(
            player, (struct change){sample_ns, function->addr, end, CHANGE_FUNCTION, index}) ||
        player_set_generation(player, index))
        return -1;
    for (size_t i = player->grown_count; i && player->grown[i - 1]->time_ns >= sample_ns; i--) {
        const struct perf_map *map = &player->grown[i - 1]->map;
        struct change again = {player->grown[i - 1]->time_ns + 1, function->addr, end,
                               CHANGE_FUNCTION, index};
        if (map->start < end && map->start + map->len > function->addr &&
            player_add_early_change(player, again))
            return -1;
    }
    return address_map_set(&player->owners, function->addr, end, index);
}

static int add_loaded(struct player *player, uint32_t index)
{
    struct moment *moment = &player->moment;
    if (array_reserve(moment->loaded, moment->loaded_count, moment->loaded_capacity))
        return -1;
    moment->loaded[moment->loaded_count++] = index;
    player->timeline->states[index].in_moment = true;
    return 0;
}

int player_own_log(struct player *player)
{
    struct timeline *timeline = player->timeline;
    if (timeline->log == &timeline->own)
        return 0;
    if (code_copy_functions(&timeline->own, timeline->log))
        return -1;
    timeline->log = &timeline->own;
    return 0;
}

/* Function INDEX, which is there already, goes on under the number that the runtime has for
 * it now. */
static int renumber(struct player *player, uint32_t index, const struct jit_function *repeated)
{
    if (player_own_log(player))
        return -1;
    struct jit_function *function = &player->timeline->own.functions[index];
    function->code_index = repeated->code_index;
    function->dump = repeated->dump;
    return 0;
}

static int load(struct player *player, uint32_t index, uint64_t time_ns)
{
    const struct jit_function *function = &player->timeline->log->functions[index];
    uint64_t sample_ns;
    if (function->size == 0)
        return 0;
    if (is_repeated(player, function))
        return renumber(player, owner_at(player, function->addr), function);
    player_link_piece(player, index);
    if (was_sampled(player, exclusive_since(player, function, time_ns), time_ns, &sample_ns))
        return load_early(player, index, sample_ns);
    if (add_loaded(player, index))
        return -1;
    return address_map_set(&player->owners, function->addr, function->addr + function->size, index);
}

static int add_unloaded(struct moment *moment, const struct address_range *range)
{
    if (array_reserve(moment->unloaded, moment->unloaded_count, moment->unloaded_capacity))
        return -1;
    moment->unloaded[moment->unloaded_count++] = *range;
    return 0;
}

/* Free the addresses in [START, END) that OWNER (NO_FUNCTION: any function) still owns. */
static int vacate(struct player *player, uint64_t start, uint64_t end, uint32_t owner)
{
    struct address_place place;
    const struct address_range *range = address_map_find(&player->owners, start, &place);
    while (range && range->start < end) {
        struct address_range owned = *range;
        if (owner != NO_FUNCTION && owned.value != owner) {
            range = address_map_next(&player->owners, &place);
            continue;
        }
        owned.start = owned.start < start ? start : owned.start;
        owned.end = owned.end > end ? end : owned.end;
        if (add_unloaded(&player->moment, &owned) ||
            address_map_set(&player->vacated, owned.start, owned.end,
                            (uint32_t)player->samples_passed) ||
            address_map_clear(&player->owners, owned.start, owned.end))
            return -1;
        range = address_map_find(&player->owners, owned.end, &place);
    }
    return 0;
}

/* End the residence of function INDEX. */
static int end_function(struct player *player, uint32_t index)
{
    const struct jit_function *function = &player->timeline->log->functions[index];
    return vacate(player, function->addr, function->addr + function->size, index);
}

/* The same of a whole function, if INDEX is the first of its pieces. */
static int end_whole(struct player *player, uint32_t index)
{
    bool first = jit_function_is_first(&player->timeline->log->functions[index]);
    uint32_t piece = index;
    do {
        if (end_function(player, piece))
            return -1;
        piece = player_next_piece(player, piece);
    } while (first && piece != index);
    return 0;
}

/* Whether OWNER is the function with CODE_INDEX in dump number DUMP.  A child's dump goes on with
 * its parent's numbers. */
static bool owns_index(const struct player *player, uint32_t owner, uint32_t dump,
                       uint64_t code_index)
{
    if (owner == NO_FUNCTION)
        return false;
    const struct jit_function *function = &player->timeline->log->functions[owner];
    return function->code_index == code_index &&
           (function->dump == dump || function->dump == NO_DUMP ||
            jit_process_dumps_are_one(player->process, function->dump, dump));
}

static const char *dump_path(const struct player *player, uint32_t dump)
{
    return dump < player->process->dump_count ? player->process->dump_paths[dump] : "a dump";
}

/* Function TO gets FROM's content, elsewhere. */
static int move_content(struct player *player, uint32_t from, uint32_t to)
{
    if (player_own_log(player))
        return -1;
    struct jit_function *moved = &player->timeline->own.functions[to];
    const struct jit_function *old = &player->timeline->own.functions[from];
    jit_function_set_name(moved, old->name, old->name_bytes);
    moved->code = moved->size <= old->size ? old->code : NULL;
    moved->lines = old->lines;
    moved->first_fde = old->first_fde;
    moved->fde_count = old->fde_count;
    moved->piece = old->piece;
    player_move_piece(player, from, to);
    return 0;
}

static int move(struct player *player, const struct code_move *code_move)
{
    const struct jit_function *function = &player->timeline->log->functions[code_move->function];
    uint32_t owner = owner_at(player, code_move->old_addr);
    if (!owns_index(player, owner, function->dump, function->code_index)) {
        if (player->process->log.history.dropped)
            return 0; /* it may have been overwritten, and dropped */
        if (function
                ->shared) /* from memory that this process does not share: it has no name here */
            return vacate(player, function->addr, function->addr + function->size, NO_FUNCTION);
        report_finding(
            player->findings, FINDING_CODE_LOST,
            "%s: move of code_index %" PRIu64 " from 0x%" PRIx64 ", where no such function is",
            dump_path(player, function->dump), function->code_index, code_move->old_addr);
        return 0;
    }
    if (move_content(player, owner, code_move->function) || end_function(player, owner) ||
        add_loaded(player, code_move->function))
        return -1;
    return address_map_set(&player->owners, function->addr, function->addr + function->size,
                           code_move->function);
}

/* How many owners one unload looks at: repeated unloads of all addresses would look at all
 * functions each time. */
enum { MAX_ASKED = 1024 };

/* An unload may come late, when the addresses, or some of them, have a new owner: that one stays.
 * IS_RECORDED: by a record of the dump, not by a second header. */
static int unload(struct player *player, const struct code_unload *code_unload, bool is_recorded)
{
    uint64_t end = code_unload->addr + (code_unload->size ? code_unload->size : 1);
    struct address_place place;
    const struct address_range *range =
        address_map_find(&player->owners, code_unload->addr, &place);
    for (size_t asked = 0; range && range->start < end && asked < MAX_ASKED; asked++) {
        if (owns_index(player, range->value, code_unload->dump, code_unload->code_index))
            return end_whole(player, range->value);
        range = address_map_next(&player->owners, &place);
    }
    uint32_t owner = owner_at(player, code_unload->addr);
    if (is_recorded && owner == NO_FUNCTION && code_unload->size &&
        !player->process->log.history.dropped && !code_unload->shared &&
        !address_map_meets(&player->shown, code_unload->addr, code_unload->addr + 1))
        report_finding(
            player->findings, FINDING_CODE_LOST,
            "%s: unload of code_index %" PRIu64 " at 0x%" PRIx64 ", where no function ever was",
            dump_path(player, code_unload->dump), code_unload->code_index, code_unload->addr);
    return 0;
}

static int play_code_event(struct player *player, const struct code_event *event, uint64_t time_ns)
{
    const struct code_log *log = &player->process->log;
    begin_event(player, time_ns);
    switch (event->kind) {
    case CODE_EVENT_LOAD:
        player_note_before_maps(player, event->time_ns, event->index);
        return load(player, event->index, time_ns);
    case CODE_EVENT_MOVE:
        player_note_before_maps(player, event->time_ns, log->moves[event->index].function);
        return move(player, &log->moves[event->index]);
    case CODE_EVENT_UNLOAD:
        return unload(player, &log->unloads[event->index], true);
    case CODE_EVENT_END:
        return unload(player, &log->unloads[event->index], false);
    }
    return -1;
}

/* ---- Forks and the end ---- */

/* perf copies the parent's maps when it reads the FORK: later loads must come later. */
static int play_fork(struct player *player, size_t index)
{
    const struct jit_fork *fork = &player->process->forks[index];
    player->began_ns = fork->at.time_ns + 1;
    if (player_end_moment(player))
        return -1;
    return fork->child ? player_hand_over(player, index) : 0;
}

/* perf keeps a process's maps when it execs; the code is dead.  All of the address space is, so
 * that a few ranges around it do. */
static int play_exec(struct player *player)
{
    struct address_place place;
    const struct address_range *range = address_map_find(&player->owners, 0, &place);
    while (range) {
        struct change dead = {player->process->next.time_ns, range->start, range->end,
                              CHANGE_UNLOADED, 0};
        while ((range = address_map_next(&player->owners, &place)) &&
               range->start - dead.end <= DEAD_GAP_BYTES)
            dead.end = range->end;
        if (player_add_change(player, dead))
            return -1;
    }
    return 0;
}

/* ---- All together, in time order ---- */

enum step { STEP_EVENT, STEP_MAP, STEP_FORK, STEP_END };

/* How far the three lists have been played. */
struct play_progress {
    size_t event, map, fork;
};

/* The next step, and its time.  If an event and a record have the same time, the event comes first,
 * as it does in the output.  A time in a dump that is before the life must be a stamp that is too
 * early. */
static enum step next_step(const struct player *player, const struct play_progress *progress,
                           uint64_t *time_ns)
{
    const struct jit_process *process = player->process;
    struct life_moment at = {UINT64_MAX, UINT64_MAX};
    enum step step = STEP_END;
    if (progress->map < process->map_count) {
        at = life_moment_of(&process->maps[progress->map]);
        step = STEP_MAP;
    }
    if (progress->fork < process->fork_count &&
        life_moment_before(process->forks[progress->fork].at, at)) {
        at = process->forks[progress->fork].at;
        step = STEP_FORK;
    }
    *time_ns = at.time_ns;
    if (progress->event == process->log.event_count)
        return step;
    uint64_t event_ns = process->log.events[progress->event].time_ns;
    uint64_t begin_ns = process->begin.time_ns ? process->begin.time_ns + 1 : 0;
    event_ns = event_ns > begin_ns ? event_ns : begin_ns;
    if (step != STEP_END && event_ns > at.time_ns)
        return step;
    *time_ns = event_ns;
    return STEP_EVENT;
}

static int take_step(struct player *player, enum step step, struct play_progress *progress,
                     uint64_t time_ns)
{
    const struct jit_process *process = player->process;
    switch (step) {
    case STEP_EVENT:
        return play_code_event(player, &process->log.events[progress->event++], time_ns);
    case STEP_MAP:
        return player_play_map(player, (uint32_t)progress->map++);
    default:
        return play_fork(player, progress->fork++);
    }
}

static int play(struct player *player)
{
    enum { EVENTS_BETWEEN_LOOKS = 256 };
    struct play_progress progress = {0};
    enum step step;
    uint64_t time_ns;
    while ((step = next_step(player, &progress, &time_ns)) != STEP_END) {
        size_t passed = player->samples_passed;
        if (progress.event % EVENTS_BETWEEN_LOOKS == 0 && interruption_check(player->findings))
            return -1;
        if (step == STEP_EVENT && player->process->next.time_ns &&
            time_ns > player->process->next.time_ns)
            break; /* written by the pid's next life, or stamped by another clock */
        while (player->samples_passed < player->sample_count &&
               player->sample_times_ns[player->samples_passed] < time_ns)
            player->samples_passed++;
        if (player->samples_passed > passed && player_end_moment(player))
            return -1;
        if (take_step(player, step, &progress, time_ns))
            return -1;
    }
    if (player_end_moment(player))
        return -1;
    return player->process->execed ? play_exec(player) : 0;
}

static int compare_changes(const void *left, const void *right)
{
    const struct change *a = left, *b = right;
    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns ? -1 : 1;
    return a->start < b->start ? -1 : a->start > b->start;
}

/* There are no others. */
static void take_early(struct player *player)
{
    struct timeline *timeline = player->timeline;
    free(timeline->changes);
    timeline->changes = player->early;
    timeline->change_count = player->early_count;
    timeline->change_capacity = player->early_capacity;
    player->early = NULL;
}

/* Put the early changes among the others; of the same time they are the later ones. */
static int merge_early(struct player *player)
{
    struct timeline *timeline = player->timeline;
    size_t count = timeline->change_count + player->early_count;
    if (player->early_count == 0)
        return 0;
    if (!array_in_order(player->early, player->early_count, sizeof *player->early, compare_changes))
        qsort(player->early, player->early_count, sizeof *player->early, compare_changes);
    if (timeline->change_count == 0) {
        take_early(player);
        return 0;
    }
    struct change *room = malloc(count * sizeof *room);
    struct change *changes = realloc(timeline->changes, count * sizeof *changes);
    if (changes)
        timeline->changes = changes;
    if (changes && room) {
        memcpy(changes + timeline->change_count, player->early,
               player->early_count * sizeof *changes);
        run_sort(changes, room, count, sizeof *changes); /* by time_ns */
        timeline->change_count = timeline->change_capacity = count;
    }
    free(room);
    return changes && room ? 0 : -1;
}

static void free_player(struct player *player)
{
    address_map_free(&player->owners);
    address_map_free(&player->shown);
    address_map_free(&player->backed);
    address_map_free(&player->mapped_since);
    address_map_free(&player->vacated);
    address_map_free(&player->logged);
    free(player->mappings);
    free(player->grown);
    free(player->times);
    free(player->early);
    free(player->inherited);
    free(player->late);
    free(player->moment.loaded);
    free(player->moment.unloaded);
}

/* Begin TIMELINE, with the inheritance in PARENT's, or NULL. */
static int begin(struct player *player, const struct timeline *parent)
{
    struct timeline *timeline = player->timeline;
    const struct jit_process *process = player->process;
    const struct inheritance *inheritance = parent && process->fork < parent->inheritance_count
                                                ? &parent->inheritances[process->fork]
                                                : NULL;
    bool has_pieces = process->log.has_pieces || (parent && parent->links);
    size_t count = process->log.function_count + (inheritance ? inheritance->function_count : 0);
    *timeline = (struct timeline){
        .log = &process->log,
        .states = calloc(count + 1, sizeof *timeline->states),
        .links = has_pieces ? calloc(count + 1, sizeof *timeline->links) : NULL,
        .inheritance_count = process->fork_count,
    };
    if (process->fork_count)
        timeline->inheritances = calloc(process->fork_count, sizeof *timeline->inheritances);
    if (!timeline->states || (has_pieces && !timeline->links) ||
        (process->fork_count && !timeline->inheritances))
        return -1;
    return inheritance ? player_take_over(player, inheritance, parent) : 0;
}

int timeline_play(struct timeline *timeline, const struct jit_process *process,
                  const struct timeline *parent, size_t *inherited_count,
                  const uint64_t *sample_times_ns, size_t sample_count, struct findings *findings)
{
    struct player player = {
        .timeline = timeline,
        .process = process,
        .inherited_count = inherited_count,
        .findings = findings,
        .began_ns = process->begin.time_ns ? process->begin.time_ns + 1 : 0,
        .sample_times_ns = sample_times_ns,
        .sample_count = sample_count,
    };
    int result = begin(&player, parent) || play(&player) || player_place_late(&player) ||
                         merge_early(&player)
                     ? -1
                     : 0;
    number_sort(timeline->dropped, timeline->dropped_count, sizeof *timeline->dropped);
    free_player(&player);
    if (interruption_check(findings))
        return -1;
    return result ? report_failure(findings, "out of memory") : 0;
}

bool timeline_drops(const struct timeline *timeline, uint64_t offset)
{
    size_t at, count = timeline ? timeline->dropped_count : 0;
    array_bisect(at, count, timeline->dropped[at] < offset);
    return at < count && timeline->dropped[at] == offset;
}

void timeline_free(struct timeline *timeline)
{
    for (size_t i = 0; timeline->inheritances && i < timeline->inheritance_count; i++)
        inheritance_free(&timeline->inheritances[i]);
    free(timeline->inheritances);
    code_log_free(&timeline->own);
    free(timeline->states);
    free(timeline->links);
    free(timeline->changes);
    free(timeline->dropped);
}
