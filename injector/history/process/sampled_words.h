/* Which addresses the samples of each life carry: of the instruction, of callers, and all else that
 * may be one in a copy of the stack.  No other address of a process is ever looked up, so that of
 * what many processes share each needs no more. */
#ifndef PERFJIT_SAMPLED_WORDS_H
#define PERFJIT_SAMPLED_WORDS_H

#include "injector/arrays/address_span.h"
#include "injector/recording/process_life.h"

struct sampled_word {
    uint64_t addr;
    uint32_t life;
};

struct sampled_words {
    struct sampled_word *items; /* by life, then by address */
    size_t count, capacity;
    uint64_t *addresses;              /* of all lives, ascending */
    bool all;                         /* what was sampled is not in the samples */
    struct sampled_word recent[4096]; /* by hash: most were seen a moment ago */
};

/* Read those of PROFILE's samples that lie in the COUNT joined SPANS, or at the end of one.  WORDS
 * is zeros.  Returns 0, or -1 without memory.  Release with sampled_words_free in either case. */
int sampled_words_read(struct sampled_words *words, const struct records *records,
                       const struct process_lives *lives, const struct address_span *spans,
                       size_t count);

/* Whether a sample of LIFE, of any with NO_LIFE, has an address in [START, END), or END itself:
 * that is where a call returns to that is the last instruction. */
bool sampled_words_meet(const struct sampled_words *words, uint32_t life, uint64_t start,
                        uint64_t end);

void sampled_words_free(struct sampled_words *words);

#endif
