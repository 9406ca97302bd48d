/* See call_profile.h. */
#include "injector/profile/call_profile.h"

#include "injector/arrays/array.h"
#include "injector/arrays/hash.h"
#include "injector/text/code_name.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_INDEX_SIZE = 1024 };

/* ---- Indexes ---- */

/* An entry that is looked for, and how one of the profile's is compared with it. */
struct indexed {
    struct entry_index *index;
    const void *key;
    uint32_t hash;
    bool (*equals)(const struct call_profile *profile, uint32_t number, const void *key);
};

static int grow_index(struct entry_index *index)
{
    if (index->count * 2 < index->size)
        return 0;
    struct entry_index larger = {.size = index->size ? index->size * 2 : FIRST_INDEX_SIZE,
                                 .count = index->count};
    larger.places = calloc(larger.size, sizeof *larger.places);
    if (!larger.places)
        return -1;
    for (size_t i = 0; i < index->size; i++) {
        size_t at = index->places[i].hash & (larger.size - 1);
        while (index->places[i].number && larger.places[at].number)
            at = (at + 1) & (larger.size - 1);
        if (index->places[i].number)
            larger.places[at] = index->places[i];
    }
    free(index->places);
    *index = larger;
    return 0;
}

/* The place of OF, in which its number + 1 is, or 0.  NULL without memory. */
static struct entry_place *find_place(const struct call_profile *profile, const struct indexed *of)
{
    if (grow_index(of->index))
        return NULL;
    size_t mask = of->index->size - 1, at = of->hash & mask;
    struct entry_place *places = of->index->places;
    while (places[at].number &&
           (places[at].hash != of->hash || !of->equals(profile, places[at].number - 1, of->key)))
        at = (at + 1) & mask;
    return &places[at];
}

/* Fill PLACE, that of OF, with entry NUMBER, which is returned. */
static uint32_t fill_place(const struct indexed *of, struct entry_place *place, uint32_t number)
{
    *place = (struct entry_place){.number = number + 1, .hash = of->hash};
    of->index->count++;
    return number;
}

/* ---- Strings ---- */

struct text_key {
    const char *text;
    size_t bytes;
};

static bool string_equals(const struct call_profile *profile, uint32_t number, const void *key)
{
    const struct text_key *wanted = key;
    const char *text = call_profile_string(profile, number);
    return strncmp(text, wanted->text, wanted->bytes) == 0 && text[wanted->bytes] == '\0';
}

static int append_text(struct call_profile *profile, const char *text, size_t bytes)
{
    size_t wanted = profile->text_bytes + bytes + 1;
    if (wanted > profile->text_capacity) {
        char *grown = realloc(profile->text, wanted * 2);
        if (!grown)
            return -1;
        profile->text = grown;
        profile->text_capacity = wanted * 2;
    }
    memcpy(profile->text + profile->text_bytes, text, bytes);
    profile->text[wanted - 1] = '\0';
    profile->text_bytes = wanted;
    return 0;
}

uint32_t call_profile_add_string(struct call_profile *profile, const char *text, size_t bytes)
{
    bytes = strnlen(text, bytes);
    const struct text_key key = {text, bytes};
    const struct indexed of = {&profile->string_index, &key, (uint32_t)XXH3_64bits(text, bytes),
                               string_equals};
    struct entry_place *place = find_place(profile, &of);
    if (!place)
        return PROFILE_NOTHING;
    if (place->number)
        return place->number - 1;
    if (array_reserve(profile->strings, profile->string_count, profile->string_capacity))
        return PROFILE_NOTHING;
    profile->strings[profile->string_count] = profile->text_bytes;
    if (append_text(profile, text, bytes))
        return PROFILE_NOTHING;
    return fill_place(&of, place, (uint32_t)profile->string_count++);
}

static uint32_t add_copy(struct call_profile *profile, char *copy)
{
    uint32_t number = copy ? call_profile_add_string(profile, copy, strlen(copy)) : PROFILE_NOTHING;
    free(copy);
    return number;
}

uint32_t call_profile_add_text(struct call_profile *profile, const char *text, size_t bytes)
{
    return code_name_is_printable(text, bytes)
               ? call_profile_add_string(profile, text, bytes)
               : add_copy(profile, code_name_printable(text, bytes));
}

const char *call_profile_string(const struct call_profile *profile, uint32_t number)
{
    return profile->text + profile->strings[number];
}

/* ---- Frames, nodes, places, threads ---- */

static bool frame_equals(const struct call_profile *profile, uint32_t number, const void *key)
{
    return memcmp(&profile->frames[number], key, sizeof(struct call_frame)) == 0;
}

uint32_t call_profile_add_frame(struct call_profile *profile, const struct call_frame *frame)
{
    const struct indexed of = {&profile->frame_index, frame,
                               (uint32_t)XXH3_64bits(frame, sizeof *frame), frame_equals};
    struct entry_place *place = find_place(profile, &of);
    if (!place)
        return PROFILE_NOTHING;
    if (place->number)
        return place->number - 1;
    if (array_reserve(profile->frames, profile->frame_count, profile->frame_capacity))
        return PROFILE_NOTHING;
    profile->frames[profile->frame_count] = *frame;
    return fill_place(&of, place, (uint32_t)profile->frame_count++);
}

static bool node_equals(const struct call_profile *profile, uint32_t number, const void *key)
{
    return memcmp(&profile->nodes[number], key, sizeof(struct call_node)) == 0;
}

uint32_t call_profile_add_node(struct call_profile *profile, uint32_t parent, uint32_t frame)
{
    return call_profile_add_line(profile, parent, frame, 0);
}

/* Returns NODE's number, or PROFILE_NOTHING without memory. */
static uint32_t append_node(struct call_profile *profile, const struct call_node *node)
{
    if (array_reserve(profile->nodes, profile->node_count, profile->node_capacity))
        return PROFILE_NOTHING;
    profile->nodes[profile->node_count] = *node;
    return (uint32_t)profile->node_count++;
}

/* Most nodes stand right behind their parents: these are not in the index. */
uint32_t call_profile_add_line(struct call_profile *profile, uint32_t parent, uint32_t frame,
                               uint32_t line)
{
    const struct call_node node = {parent, frame, line};
    const uint32_t behind = parent + 1;
    if (behind == profile->node_count)
        return append_node(profile, &node);
    if (node_equals(profile, behind, &node))
        return behind;
    const struct indexed of = {&profile->node_index, &node,
                               (uint32_t)XXH3_64bits(&node, sizeof node), node_equals};
    struct entry_place *place = find_place(profile, &of);
    if (!place)
        return PROFILE_NOTHING;
    if (place->number)
        return place->number - 1;
    uint32_t number = append_node(profile, &node);
    return number == PROFILE_NOTHING ? number : fill_place(&of, place, number);
}

static bool place_equals(const struct call_profile *profile, uint32_t number, const void *key)
{
    return memcmp(&profile->places[number], key, sizeof(struct call_place)) == 0;
}

uint32_t call_profile_add_place(struct call_profile *profile, const struct call_place *item)
{
    const struct indexed of = {&profile->place_index, item,
                               (uint32_t)XXH3_64bits(item, sizeof *item), place_equals};
    struct entry_place *place = find_place(profile, &of);
    if (!place)
        return PROFILE_NOTHING;
    if (place->number)
        return place->number - 1;
    if (array_reserve(profile->places, profile->place_count, profile->place_capacity))
        return PROFILE_NOTHING;
    profile->places[profile->place_count] = *item;
    return fill_place(&of, place, (uint32_t)profile->place_count++);
}

static bool thread_equals(const struct call_profile *profile, uint32_t number, const void *key)
{
    return memcmp(&profile->threads[number], key, sizeof(struct profile_thread)) == 0;
}

uint32_t call_profile_add_thread(struct call_profile *profile, const struct profile_thread *thread)
{
    const struct indexed of = {&profile->thread_index, thread,
                               (uint32_t)XXH3_64bits(thread, sizeof *thread), thread_equals};
    struct entry_place *place = find_place(profile, &of);
    if (!place)
        return PROFILE_NOTHING;
    if (place->number)
        return place->number - 1;
    if (array_reserve(profile->threads, profile->thread_count, profile->thread_capacity))
        return PROFILE_NOTHING;
    profile->threads[profile->thread_count] = *thread;
    return fill_place(&of, place, (uint32_t)profile->thread_count++);
}

/* ---- The rest ---- */

int call_profile_begin(struct call_profile *profile)
{
    const struct call_place none = {0};
    *profile = (struct call_profile){0};
    return call_profile_add_string(profile, "", 0) == 0 &&
                   call_profile_add_place(profile, &none) == 0 &&
                   call_profile_add_node(profile, PROFILE_NOTHING, PROFILE_NOTHING) == 0
               ? 0
               : -1;
}

int call_profile_add_sample(struct call_profile *profile, const struct call_sample *sample)
{
    if (array_reserve(profile->samples, profile->sample_count, profile->sample_capacity))
        return -1;
    profile->samples[profile->sample_count++] = *sample;
    return 0;
}

int call_profile_add_event(struct call_profile *profile, const struct profile_event *event)
{
    if (array_reserve(profile->events, profile->event_count, profile->event_capacity))
        return -1;
    profile->events[profile->event_count++] = *event;
    return 0;
}

const char *frame_kind_name(uint32_t kind)
{
    static const char *const names[FRAME_KINDS] = {[FRAME_JIT] = "jit",
                                                   [FRAME_INTERPRETER] = "interpreter",
                                                   [FRAME_NATIVE] = "native",
                                                   [FRAME_KERNEL] = "kernel",
                                                   [FRAME_UNKNOWN] = "unknown"};
    return names[kind];
}

void call_profile_free(struct call_profile *profile)
{
    free(profile->text);
    free(profile->strings);
    free(profile->frames);
    free(profile->changed);
    free(profile->nodes);
    free(profile->places);
    free(profile->samples);
    free(profile->threads);
    free(profile->events);
    free(profile->spans);
    free(profile->deopts);
    free(profile->string_index.places);
    free(profile->frame_index.places);
    free(profile->node_index.places);
    free(profile->place_index.places);
    free(profile->thread_index.places);
    *profile = (struct call_profile){0};
}
