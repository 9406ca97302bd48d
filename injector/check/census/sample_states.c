/* See sample_states.h. */
#include "injector/check/census/sample_states.h"

#include "injector/arrays/array.h"
#include "injector/arrays/digit_sort.h"
#include "injector/arrays/number_map.h"

/* A life in which samples were taken, or in one of its children. */
struct asked_life {
    struct census_sample *samples;
    size_t sample_count;
    uint32_t first_child, next; /* by their forks' time; NO_LIFE: no more */
    bool matters, is_child;
};

/* An address of samples, and the number that it had when it was met first. */
struct asked_address {
    uint64_t ip;
    uint32_t met;
};

struct player {
    const struct census_question *question;
    const struct process_lives *lives;
    struct asked_life *items; /* by life */
    uint32_t *order;          /* those that matter: a parent stands before its children */
    size_t order_count;
    uint64_t *asked;    /* the addresses of all samples, each once, ascending */
    uint32_t *asked_of; /* by the number that an address had first: its place there */
    struct address_history history;
    struct visit
        *visits; /* those that go on: a life, and the child that is played on top of it, ... */
    size_t visit_count, visit_capacity;
};

/* A life that is played as far as PART and the samples and children in front of the next ones. */
struct visit {
    struct asked_life *item;
    struct history_part part;
    size_t mark;
    size_t next_sample;
    uint32_t next_child;
};

/* ---- Which lives, in which order ---- */

static void take_samples(struct player *player, struct census_sample *samples, size_t count)
{
    struct asked_life *item = NULL;
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || samples[i].life != samples[i - 1].life) {
            item = &player->items[samples[i].life];
            item->samples = &samples[i];
            for (uint32_t life = samples[i].life; life != NO_LIFE && !player->items[life].matters;
                 life = player->lives->items[life].parent)
                player->items[life].matters = true;
        }
        item->sample_count++;
    }
}

static int put_in_order(struct player *player)
{
    player->order = process_lives_order(player->lives);
    for (size_t i = 0; player->order && i < player->lives->count; i++)
        if (player->items[player->order[i]].matters)
            player->order[player->order_count++] = player->order[i];
    return player->order ? 0 : -1;
}

static void find_children(struct player *player)
{
    for (size_t i = 0; i < player->lives->count; i++)
        player->items[i].first_child = player->items[i].next = NO_LIFE;
    for (size_t i = player->order_count; i-- > 0;) {
        uint32_t life = player->order[i], parent = player->lives->items[life].parent;
        if (parent == NO_LIFE || !life_moment_before(player->lives->items[parent].begin,
                                                     player->lives->items[life].begin))
            continue;
        player->items[life].is_child = true;
        player->items[life].next = player->items[parent].first_child;
        player->items[parent].first_child = life;
    }
}

/* ---- Which addresses ---- */

/* Each address of SAMPLES once, as it is met, into *MET, to be freed.  Returns 0, or -1 without
 * memory. */
static int meet_addresses(struct asked_address **met, size_t *met_count,
                          struct census_sample *samples, size_t count)
{
    struct number_map numbers = {0};
    size_t capacity = 0;
    int result = 0;
    *met = NULL;
    *met_count = 0;
    for (size_t i = 0; i < count && !result; i++) {
        samples[i].at = number_map_add(&numbers, samples[i].ip, (uint32_t)*met_count);
        if (samples[i].at < *met_count)
            continue;
        result = samples[i].at > *met_count || array_reserve(*met, *met_count, capacity) ? -1 : 0;
        if (!result) {
            (*met)[*met_count] = (struct asked_address){samples[i].ip, samples[i].at};
            ++*met_count;
        }
    }
    number_map_free(&numbers);
    return result;
}

/* Number the addresses. */
static int find_addresses(struct player *player, struct census_sample *samples, size_t count)
{
    struct asked_address *met;
    size_t met_count;
    int result = meet_addresses(&met, &met_count, samples, count);
    if (!result && met_count)
        result = digit_sort(met, met_count, sizeof *met);
    player->asked = malloc((met_count + 1) * sizeof *player->asked);
    player->asked_of = malloc((met_count + 1) * sizeof *player->asked_of);
    if (!player->asked || !player->asked_of)
        result = -1;
    for (size_t i = 0; i < met_count && !result; i++) {
        player->asked[i] = met[i].ip;
        player->asked_of[met[i].met] = (uint32_t)i;
    }
    free(met);
    return result ? result : address_history_begin(&player->history, player->asked, met_count);
}

/* ---- Playing ---- */

static struct history_part part_of(const struct player *player, uint32_t index)
{
    const struct process_life *life = &player->lives->items[index];
    const struct census_question *question = player->question;
    struct history_part part = {0};
    part.maps =
        process_life_maps(question->records, life->pid, life->begin, life->next, &part.map_count);
    part.process = jit_processes_find(question->processes, index);
    if (part.process)
        part.timeline = &question->timelines[part.process - question->processes->items];
    return part;
}

static int enter(struct player *player, uint32_t life)
{
    if (array_reserve(player->visits, player->visit_count, player->visit_capacity))
        return -1;
    struct asked_life *item = &player->items[life];
    struct visit *visit = &player->visits[player->visit_count++];
    *visit = (struct visit){.item = item,
                            .part = part_of(player, life),
                            .mark = address_history_enter(&player->history),
                            .next_child = item->first_child};
    return history_part_begin(&visit->part);
}

static void leave(struct player *player)
{
    struct visit *visit = &player->visits[--player->visit_count];
    address_history_leave(&player->history, visit->mark);
    history_part_end(&visit->part);
}

static void look(struct player *player, struct visit *visit)
{
    struct census_sample *sample = &visit->item->samples[visit->next_sample++];
    address_history_play(&player->history, &visit->part, sample->time_ns);
    sample->facts = address_history_facts(&player->history, player->asked_of[sample->at]);
}

/* A child that was forked at the time of a sample was there before it. */
static bool child_is_next(const struct player *player, const struct visit *visit)
{
    const struct asked_life *item = visit->item;
    return visit->next_child != NO_LIFE && (visit->next_sample == item->sample_count ||
                                            player->lives->items[visit->next_child].begin.time_ns <=
                                                item->samples[visit->next_sample].time_ns);
}

/* Play the innermost life on to its next child or sample, or end it. */
static int play_on(struct player *player)
{
    struct visit *visit = &player->visits[player->visit_count - 1];
    uint32_t child = visit->next_child;
    if (child_is_next(player, visit)) {
        address_history_play(&player->history, &visit->part,
                             player->lives->items[child].begin.time_ns);
        visit->next_child = player->items[child].next;
        return enter(player, child);
    }
    if (visit->next_sample < visit->item->sample_count)
        look(player, visit);
    else
        leave(player);
    return 0;
}

/* LIFE, which has no parent, and all its descendants. */
static int play_family(struct player *player, uint32_t life)
{
    int result = enter(player, life);
    while (!result && player->visit_count)
        result = play_on(player);
    while (player->visit_count)
        leave(player);
    return result || player->history.no_memory ? -1 : 0;
}

static void free_player(struct player *player)
{
    address_history_end(&player->history);
    free(player->asked);
    free(player->asked_of);
    free(player->visits);
    free(player->order);
    free(player->items);
}

int sample_states_find(struct census_sample *samples, size_t count,
                       const struct census_question *question)
{
    struct player player = {.question = question, .lives = &question->processes->lives};
    player.items = calloc(player.lives->count + 1, sizeof *player.items);
    int result = player.items ? find_addresses(&player, samples, count) : -1;
    if (!result) {
        take_samples(&player, samples, count);
        result = put_in_order(&player);
    }
    if (!result)
        find_children(&player);
    for (size_t i = 0; !result && i < player.order_count; i++)
        if (!player.items[player.order[i]].is_child)
            result = play_family(&player, player.order[i]);
    free_player(&player);
    return result;
}
