/* The rules of return addresses that were looked up before.
 *
 * There are a few caches in the process.  Each serves one walk at a time: a walk takes a free one,
 * or works without.  So a cache has one writer, and a handler that interrupts a walk takes another
 * cache.  A cache is lost if its walk never ends (a longjmp out of a handler).
 *
 * A rule of the registry is valid until something is removed from any arena.  A native rule is
 * valid as long as the same file has the address and the FDE has the same bytes.
 */
#ifndef JITUNWIND_RULE_CACHE_H
#define JITUNWIND_RULE_CACHE_H

#include "jitunwind/frames/frame_rule.h"

#include <stdatomic.h>

enum { CACHED_RULES = 512, RULE_CACHES = 8, CACHED_FDE_WORDS = 2 };

struct cached_rule {
    uint64_t addr;    /* of the last byte of the call, or of the interrupted instruction; 0: none */
    uint64_t removed; /* for a rule of the registry: ju_removed at the lookup */
    uint64_t file;    /* for a native rule: the file's .eh_frame_hdr; or 0 */
    const uint8_t *fde;
    uint64_t fde_words[CACHED_FDE_WORDS];
    struct frame_rule rule;
    uint32_t changed; /* one bit per slot: whether it is not SLOT_SAME */
};

struct rule_cache {
    atomic_bool taken;
    struct cached_rule rules[CACHED_RULES];
};

/* How many functions and arenas were removed. */
extern _Atomic uint64_t ju_removed;

/* Take a cache for a walk.  Returns NULL if there is none. */
struct rule_cache *ju_rule_cache_take(void);

void ju_rule_cache_release(struct rule_cache *cache);

/* The place for ADDR. */
static inline struct cached_rule *rule_cache_place(struct rule_cache *cache, uint64_t addr)
{
    const uint64_t mixed = addr * UINT64_C(0x9e3779b97f4a7c15);
    return &cache->rules[mixed >> 32 & (CACHED_RULES - 1)];
}

#endif
