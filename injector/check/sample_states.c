/* See sample_states.h. */
#include "injector/check/sample_states.h"

#include "injector/array.h"

#include <string.h>

/* A life in which samples were taken, or in one of its children. */
struct asked_life {
    struct census_sample *samples;
    size_t sample_count;
    uint64_t *own; /* the addresses of its samples, each once; a sample's `at` counts these */
    size_t own_count, own_capacity;
    uint64_t *asked; /* those of its children, too; ascending */
    size_t asked_count;
    struct address_history history;
    uint32_t first_child, next; /* by their forks' time; NO_LIFE: no more */
    bool matters;
};

struct player {
    const struct census_question *question;
    const struct process_lives *lives;
    const size_t *process_of;
    struct asked_life *items; /* by life */
    uint32_t *order;          /* those that matter: a parent stands before its children */
    size_t order_count;
};

/* ---- Which lives, in which order ---- */

static void take_samples(struct player *player, struct census_sample *samples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct asked_life *item = &player->items[samples[i].life];
        if (item->sample_count++ == 0)
            item->samples = &samples[i];
        for (uint32_t life = samples[i].life; life != NO_LIFE && !player->items[life].matters;
             life = player->lives->items[life].parent)
            player->items[life].matters = true;
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
        player->items[life].next = player->items[parent].first_child;
        player->items[parent].first_child = life;
    }
}

/* ---- Which addresses ---- */

/* The addresses of one life's samples, by hash: their numbers in `own`, from 1 on. */
struct number_table {
    uint32_t *numbers;
    size_t size; /* a power of 2 */
};

static size_t place_of(const struct number_table *table, const uint64_t *own, uint64_t ip)
{
    size_t at = (size_t)(ip * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (table->size - 1);
    while (table->numbers[at] && own[table->numbers[at] - 1] != ip)
        at = (at + 1) & (table->size - 1);
    return at;
}

static int enlarge(struct number_table *table, const uint64_t *own, size_t count)
{
    struct number_table larger = {.size = table->size ? table->size * 4 : 16};
    larger.numbers = calloc(larger.size, sizeof *larger.numbers);
    if (!larger.numbers)
        return -1;
    for (size_t i = 0; i < count; i++)
        larger.numbers[place_of(&larger, own, own[i])] = (uint32_t)i + 1;
    free(table->numbers);
    *table = larger;
    return 0;
}

static int number_sample(struct asked_life *item, struct number_table *table,
                         struct census_sample *sample)
{
    if (2 * (item->own_count + 1) > table->size && enlarge(table, item->own, item->own_count))
        return -1;
    uint32_t *number = &table->numbers[place_of(table, item->own, sample->ip)];
    if (*number == 0) {
        uint64_t *own =
            array_room(item->own, item->own_count, &item->own_capacity, sizeof *item->own);
        if (!own)
            return -1;
        item->own = own;
        own[item->own_count++] = sample->ip;
        *number = (uint32_t)item->own_count;
    }
    sample->at = *number - 1;
    return 0;
}

static int number_samples(struct asked_life *item)
{
    struct number_table table = {0};
    int result = 0;
    for (size_t i = 0; !result && i < item->sample_count; i++)
        result = number_sample(item, &table, &item->samples[i]);
    free(table.numbers);
    return result;
}

static int compare_addresses(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;
    return *a < *b ? -1 : *a > *b;
}

/* Its own addresses, and those that its children ask for. */
static int gather(const struct player *player, struct asked_life *item)
{
    size_t count = item->own_count, kept = 0;
    for (uint32_t child = item->first_child; child != NO_LIFE; child = player->items[child].next)
        count += player->items[child].asked_count;
    uint64_t *asked = malloc((count + 1) * sizeof *asked);
    if (!asked)
        return -1;
    item->asked = asked;
    count = item->own_count;
    if (count)
        memcpy(asked, item->own, count * sizeof *asked);
    for (uint32_t at = item->first_child; at != NO_LIFE; at = player->items[at].next) {
        const struct asked_life *child = &player->items[at];
        if (child->asked_count)
            memcpy(asked + count, child->asked, child->asked_count * sizeof *asked);
        count += child->asked_count;
    }
    if (count)
        qsort(asked, count, sizeof *asked, compare_addresses);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || asked[kept - 1] != asked[i])
            asked[kept++] = asked[i];
    item->asked_count = kept;
    return 0;
}

static int find_addresses(struct player *player)
{
    for (size_t i = player->order_count; i-- > 0;) {
        struct asked_life *item = &player->items[player->order[i]];
        if (number_samples(item) || gather(player, item) ||
            address_history_begin(&item->history, item->asked, item->asked_count))
            return -1;
    }
    return 0;
}

/* ---- Playing ---- */

static struct history_part part_of(const struct player *player, uint32_t index)
{
    const struct process_life *life = &player->lives->items[index];
    const struct census_question *question = player->question;
    struct history_part part = {0};
    size_t process = player->process_of[index];
    part.maps = process_life_maps(question->profile, life->pid, life->begin, life->next,
                                  &part.map_count);
    if (process == SIZE_MAX)
        return part;
    part.process = &question->processes->items[process];
    part.timeline = &question->timelines[process];
    return part;
}

/* Give the children that are forked before TIME_NS what they inherit, from CHILD on.  Returns the first that is not. */
static uint32_t fork_children(const struct player *player, struct asked_life *item,
                              struct history_part *part, uint32_t child, uint64_t time_ns)
{
    for (; child != NO_LIFE; child = player->items[child].next) {
        uint64_t fork_ns = player->lives->items[child].begin.time_ns;
        if (fork_ns > time_ns)
            break;
        address_history_play(&item->history, part, fork_ns);
        address_history_inherit(&player->items[child].history, &item->history);
    }
    return child;
}

static void play_samples(const struct player *player, struct asked_life *item,
                         struct history_part *part, const size_t *places)
{
    uint32_t child = item->first_child;
    for (size_t i = 0; i < item->sample_count; i++) {
        struct census_sample *sample = &item->samples[i];
        child = fork_children(player, item, part, child, sample->time_ns);
        address_history_play(&item->history, part, sample->time_ns);
        size_t place = places[sample->at];
        sample->shown = item->history.shown[place];
        sample->last = item->history.last[place];
    }
    fork_children(player, item, part, child, UINT64_MAX);
}

static int play_life(const struct player *player, uint32_t life)
{
    struct asked_life *item = &player->items[life];
    struct history_part part = part_of(player, life);
    size_t *places = malloc((item->own_count + 1) * sizeof *places);
    int result = history_part_begin(&part) || !places ? -1 : 0;
    for (size_t i = 0; !result && i < item->own_count; i++)
        places[i] = address_history_find(&item->history, item->own[i]);
    if (!result)
        play_samples(player, item, &part, places);
    history_part_end(&part);
    free(places);
    return result;
}

static void free_player(struct player *player)
{
    for (size_t i = 0; i < player->order_count; i++) {
        struct asked_life *item = &player->items[player->order[i]];
        address_history_end(&item->history);
        free(item->own);
        free(item->asked);
    }
    free(player->order);
    free(player->items);
}

int sample_states_find(struct census_sample *samples, size_t count,
                       const struct census_question *question, const size_t *process_of)
{
    struct player player = {
        .question = question, .lives = &question->processes->lives, .process_of = process_of};
    player.items = calloc(player.lives->count + 1, sizeof *player.items);
    int result = player.items ? 0 : -1;
    if (!result) {
        take_samples(&player, samples, count);
        result = put_in_order(&player);
    }
    if (!result) {
        find_children(&player);
        result = find_addresses(&player);
    }
    for (size_t i = 0; !result && i < player.order_count; i++)
        result = play_life(&player, player.order[i]);
    free_player(&player);
    return result;
}
