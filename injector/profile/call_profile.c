/* See call_profile.h. */
#include "injector/profile/call_profile.h"

#include "injector/arrays/array.h"
#include "injector/text/code_name.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { FIRST_INDEX_SIZE = 1024 };

/* ---- Indexes ---- */

/* The target of an index: the COUNT entries, and how one of them is compared. */
struct indexed {
    struct entry_index *index;
    size_t count;
    const void *key;
    bool (*equals)(const struct call_profile *profile, uint32_t number, const void *key);
    uint64_t (*hash)(const struct call_profile *profile, uint32_t number);
};

static int grow_index(const struct call_profile *profile, const struct indexed *of)
{
    struct entry_index *index = of->index;
    if (of->count * 2 < index->size)
        return 0;
    size_t size = index->size ? index->size * 2 : FIRST_INDEX_SIZE;
    uint32_t *numbers = calloc(size, sizeof *numbers);
    if (!numbers)
        return -1;
    for (uint32_t i = 0; i < of->count; i++) {
        size_t at = of->hash(profile, i) & (size - 1);
        while (numbers[at])
            at = (at + 1) & (size - 1);
        numbers[at] = i + 1;
    }
    free(index->numbers);
    *index = (struct entry_index){numbers, size};
    return 0;
}

/* The place of the key with HASH: its number + 1 is there, or 0.  NULL without memory. */
static uint32_t *find_place(const struct call_profile *profile, const struct indexed *of,
                            uint64_t hash)
{
    if (grow_index(profile, of))
        return NULL;
    size_t mask = of->index->size - 1, at = hash & mask;
    while (of->index->numbers[at] && !of->equals(profile, of->index->numbers[at] - 1, of->key))
        at = (at + 1) & mask;
    return &of->index->numbers[at];
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

static uint64_t string_hash(const struct call_profile *profile, uint32_t number)
{
    const char *text = call_profile_string(profile, number);
    return XXH3_64bits(text, strlen(text));
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
    const struct indexed of = {&profile->string_index, profile->string_count, &key, string_equals,
                               string_hash};
    uint32_t *place = find_place(profile, &of, XXH3_64bits(text, bytes));
    if (!place)
        return PROFILE_NOTHING;
    if (*place)
        return *place - 1;
    if (array_reserve(profile->strings, profile->string_count, profile->string_capacity))
        return PROFILE_NOTHING;
    profile->strings[profile->string_count] = profile->text_bytes;
    if (append_text(profile, text, bytes))
        return PROFILE_NOTHING;
    *place = (uint32_t)++profile->string_count;
    return *place - 1;
}

static uint32_t add_copy(struct call_profile *profile, char *copy)
{
    uint32_t number = copy ? call_profile_add_string(profile, copy, strlen(copy)) : PROFILE_NOTHING;
    free(copy);
    return number;
}

uint32_t call_profile_add_name(struct call_profile *profile, const char *name, size_t bytes)
{
    return code_name_is_clean(name, bytes) ? call_profile_add_string(profile, name, bytes)
                                           : add_copy(profile, code_name_clean(name, bytes));
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

static uint64_t frame_hash(const struct call_profile *profile, uint32_t number)
{
    return XXH3_64bits(&profile->frames[number], sizeof(struct call_frame));
}

uint32_t call_profile_add_frame(struct call_profile *profile, const struct call_frame *frame)
{
    const struct indexed of = {&profile->frame_index, profile->frame_count, frame, frame_equals,
                               frame_hash};
    uint32_t *place = find_place(profile, &of, XXH3_64bits(frame, sizeof *frame));
    if (!place)
        return PROFILE_NOTHING;
    if (*place)
        return *place - 1;
    if (array_reserve(profile->frames, profile->frame_count, profile->frame_capacity))
        return PROFILE_NOTHING;
    profile->frames[profile->frame_count++] = *frame;
    *place = (uint32_t)profile->frame_count;
    return *place - 1;
}

static bool node_equals(const struct call_profile *profile, uint32_t number, const void *key)
{
    return memcmp(&profile->nodes[number], key, sizeof(struct call_node)) == 0;
}

static uint64_t node_hash(const struct call_profile *profile, uint32_t number)
{
    return XXH3_64bits(&profile->nodes[number], sizeof(struct call_node));
}

uint32_t call_profile_add_node(struct call_profile *profile, uint32_t parent, uint32_t frame)
{
    return call_profile_add_line(profile, parent, frame, 0);
}

uint32_t call_profile_add_line(struct call_profile *profile, uint32_t parent, uint32_t frame,
                               uint32_t line)
{
    const struct call_node node = {parent, frame, line};
    const struct indexed of = {&profile->node_index, profile->node_count, &node, node_equals,
                               node_hash};
    uint32_t *place = find_place(profile, &of, XXH3_64bits(&node, sizeof node));
    if (!place)
        return PROFILE_NOTHING;
    if (*place)
        return *place - 1;
    if (array_reserve(profile->nodes, profile->node_count, profile->node_capacity))
        return PROFILE_NOTHING;
    profile->nodes[profile->node_count++] = node;
    *place = (uint32_t)profile->node_count;
    return *place - 1;
}

static bool place_equals(const struct call_profile *profile, uint32_t number, const void *key)
{
    return memcmp(&profile->places[number], key, sizeof(struct call_place)) == 0;
}

static uint64_t place_hash(const struct call_profile *profile, uint32_t number)
{
    return XXH3_64bits(&profile->places[number], sizeof(struct call_place));
}

uint32_t call_profile_add_place(struct call_profile *profile, const struct call_place *item)
{
    const struct indexed of = {&profile->place_index, profile->place_count, item, place_equals,
                               place_hash};
    uint32_t *place = find_place(profile, &of, XXH3_64bits(item, sizeof *item));
    if (!place)
        return PROFILE_NOTHING;
    if (*place)
        return *place - 1;
    if (array_reserve(profile->places, profile->place_count, profile->place_capacity))
        return PROFILE_NOTHING;
    profile->places[profile->place_count++] = *item;
    *place = (uint32_t)profile->place_count;
    return *place - 1;
}

static bool thread_equals(const struct call_profile *profile, uint32_t number, const void *key)
{
    return memcmp(&profile->threads[number], key, sizeof(struct profile_thread)) == 0;
}

static uint64_t thread_hash(const struct call_profile *profile, uint32_t number)
{
    return XXH3_64bits(&profile->threads[number], sizeof(struct profile_thread));
}

uint32_t call_profile_add_thread(struct call_profile *profile, const struct profile_thread *thread)
{
    const struct indexed of = {&profile->thread_index, profile->thread_count, thread, thread_equals,
                               thread_hash};
    uint32_t *place = find_place(profile, &of, XXH3_64bits(thread, sizeof *thread));
    if (!place)
        return PROFILE_NOTHING;
    if (*place)
        return *place - 1;
    if (array_reserve(profile->threads, profile->thread_count, profile->thread_capacity))
        return PROFILE_NOTHING;
    profile->threads[profile->thread_count++] = *thread;
    *place = (uint32_t)profile->thread_count;
    return *place - 1;
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
    free(profile->string_index.numbers);
    free(profile->frame_index.numbers);
    free(profile->node_index.numbers);
    free(profile->place_index.numbers);
    free(profile->thread_index.numbers);
    *profile = (struct call_profile){0};
}
