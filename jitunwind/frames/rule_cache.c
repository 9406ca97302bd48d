/* See rule_cache.h. */
#include "jitunwind/frames/rule_cache.h"

static struct rule_cache caches[RULE_CACHES];

_Atomic uint64_t ju_removed;

struct rule_cache *ju_rule_cache_take(void)
{
    for (size_t i = 0; i < RULE_CACHES; i++)
        if (!atomic_load_explicit(&caches[i].taken, memory_order_relaxed) &&
            !atomic_exchange_explicit(&caches[i].taken, true, memory_order_acquire))
            return &caches[i];
    return NULL;
}

void ju_rule_cache_release(struct rule_cache *cache)
{
    if (cache)
        atomic_store_explicit(&cache->taken, false, memory_order_release);
}
