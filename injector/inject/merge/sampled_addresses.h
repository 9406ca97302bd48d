/* The addresses that a recording's samples carry: of the instruction, of callers, of branches and
 * of data.  No other address is ever looked up among the maps. */
#ifndef PERFJIT_SAMPLED_ADDRESSES_H
#define PERFJIT_SAMPLED_ADDRESSES_H

#include "injector/arrays/address_span.h"
#include "injector/recording/perf_data/perf_file.h"
#include "injector/unwind/stacks/chain_tree.h"

/* Whether they stand in the samples as aligned words: raw data is not aligned, perf finds more in a
 * copy of the stack than it says, and what a processor traced is in no sample.  HAS_CHAINS: stacks
 * become chains. */
bool sampled_addresses_are_words(const struct perf_file *file, bool has_chains);

struct sampled_addresses {
    const struct address_span *spans; /* joined: no others are wanted */
    size_t span_count;
    uint64_t *items; /* ascending, once they have been read */
    size_t count, capacity;
    uint64_t recent[256]; /* by their last bits: most were seen a moment ago */
};

/* Read those of FILE's samples, and of CHAINS, which some of them get, or NULL; of SET only SPANS
 * is set before.  Returns 0, or -1 without memory.  Release with sampled_addresses_free in either
 * case. */
int sampled_addresses_read(struct sampled_addresses *set, const struct perf_file *file,
                           const struct chain_tree *chains);

/* Whether one lies in [START, END), or is END: that is where a call returns to that is the last
 * instruction. */
bool sampled_addresses_meet(const struct sampled_addresses *set, uint64_t start, uint64_t end);

void sampled_addresses_free(struct sampled_addresses *set);

#endif
