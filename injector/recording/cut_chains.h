/* Call chains that the kernel cut: it records so many frames and no more, those of the kernel and
 * the user's together.
 *
 * The limit is the event's sample_max_stack, or else kernel.perf_event_max_stack of the machine
 * (127 unless somebody raised it: then the longest chain tells).  A chain of that length is whole
 * if it ends where most shorter chains of its thread do.
 */
#ifndef PERFJIT_CUT_CHAINS_H
#define PERFJIT_CUT_CHAINS_H

#include "injector/recording/perf_data/perf_sample.h"

struct cut_chains {
    uint64_t chains; /* all that the kernel recorded */
    uint64_t cut;
    size_t frames; /* where they are cut: the longest */
    bool by_event; /* the event said so, not the machine */
};

/* Whether SAMPLE, of which the chain has been read, may be one. */
bool cut_chains_may_be(const struct perf_sample *sample);

/* Count those of FILE.  Returns 0, or -1 without memory. */
int cut_chains_count(struct cut_chains *cuts, const struct perf_file *file);

/* Put a sentence about them into TEXT of SIZE bytes. */
enum { CUT_CHAINS_TEXT_BYTES = 256 };
void cut_chains_text(const struct cut_chains *cuts, char *text, size_t size);

#endif
