/* See watched_methods.h. */
#include "agents/java/watched_methods.h"

#include "agents/java/array_room.h"

/* HotSpot writes there meanwhile. */
static uint64_t method_at(const uint64_t *place)
{
    return *(const volatile uint64_t *)place;
}

void watched_methods_add(struct watched_methods *watched, const uint64_t *place)
{
    pthread_mutex_lock(&watched->lock);
    struct watched_method *items =
        array_with_room(watched->items, watched->count, 1, &watched->capacity, sizeof *items);
    if (items) {
        watched->items = items;
        items[watched->count++] = (struct watched_method){place, method_at(place)};
    }
    pthread_mutex_unlock(&watched->lock);
}

size_t watched_methods_look(struct watched_methods *watched, size_t most, const uint64_t **changed)
{
    size_t changed_count = 0;
    pthread_mutex_lock(&watched->lock);
    most = most < watched->count ? most : watched->count;
    for (size_t i = 0; i < most && watched->count; i++) {
        if (watched->next >= watched->count)
            watched->next = 0;
        struct watched_method *item = &watched->items[watched->next];
        const uint64_t method = method_at(item->place);
        if (!method) { /* its class is unloaded */
            *item = watched->items[--watched->count];
            continue;
        }
        if (method != item->method)
            changed[changed_count++] = item->place;
        item->method = method;
        watched->next++;
    }
    pthread_mutex_unlock(&watched->lock);
    return changed_count;
}

void watched_methods_free(struct watched_methods *watched)
{
    pthread_mutex_lock(&watched->lock);
    free(watched->items);
    watched->items = NULL;
    watched->count = watched->capacity = watched->next = 0;
    pthread_mutex_unlock(&watched->lock);
}
