/* The rules of return addresses that were looked up before.
 *
 * There are a few caches in the process, each of which serves one walk at a time: a walk takes one
 * that nobody has, or goes without.  So nothing in it is written by two, and a handler that
 * interrupts a walk has another one.  One that was taken by a walk that never came to its end (a
 * longjmp out of a handler) is lost.
 *
 * A rule of the registry holds until something is removed from any arena.  A native rule holds as
 * long as the file is there, which glibc's _dl_find_object says, and its FDE has the same bytes.
 */
#ifndef JITUNWIND_RULE_CACHE_H
#define JITUNWIND_RULE_CACHE_H

#include "jitunwind/frames/frame_rule.h"

#include <stdatomic.h>

enum { CACHED_RULES = 512, RULE_CACHES = 8, CACHED_FDE_WORDS = 2 };

struct cached_rule {
    uint64_t addr;    /* of the last byte of the call, or of what was interrupted; 0: none */
    uint64_t removed; /* of the registry: ju_removed when it was looked up */
    const void *file; /* of a file: its .eh_frame_hdr */
    const uint8_t *fde;
    uint64_t fde_words[CACHED_FDE_WORDS];
    struct frame_rule rule;
    uint32_t changed; /* its slots but for those that are SLOT_SAME, a bit for each */
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
