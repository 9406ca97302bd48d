/* The addresses in a recording's samples: of the instruction, of callers, of branches and of data,
 * and of all other words that may be addresses.  No other address is ever looked up, so no more of
 * a process's code is needed. */
#ifndef PERFJIT_SAMPLED_ADDRESSES_H
#define PERFJIT_SAMPLED_ADDRESSES_H

#include "injector/arrays/address_span.h"
#include "injector/recording/process_life.h"

struct sampled_address {
    uint64_t addr;
    uint32_t life; /* each address stands here for its life, and for NO_LIFE */
};

struct sampled_addresses {
    struct sampled_address *items; /* by life, then by address, once they are sorted */
    size_t count, capacity;
    struct sampled_address recent[4096]; /* by hash: most were seen a moment ago */
};

/* Add those of FILE's samples that lie in the COUNT joined SPANS, or at the end of one.  SET is
 * zeros.  With LIVES each address belongs to a life, and may stand anywhere in the sample, as in a
 * copy of the stack.  If LIVES is NULL, addresses are aligned words and belong to no life.  Returns
 * 0, or -1 without memory.  Release with sampled_addresses_free in either case. */
int sampled_addresses_read(struct sampled_addresses *set, const struct perf_file *file,
                           const struct process_lives *lives, const struct address_span *spans,
                           size_t count);

/* Add ADDR, of no life, if it lies in the SPANS likewise.  Returns 0, or -1 without memory. */
int sampled_addresses_add(struct sampled_addresses *set, uint64_t addr,
                          const struct address_span *spans, size_t count);

/* Sort the added addresses. */
void sampled_addresses_sort(struct sampled_addresses *set);

/* Whether a sample of LIFE (of any life with NO_LIFE) has an address in [START, END), or END
 * itself.  END is the return address of a call that is the last instruction. */
bool sampled_addresses_meet(const struct sampled_addresses *set, uint32_t life, uint64_t start,
                            uint64_t end);

void sampled_addresses_free(struct sampled_addresses *set);

#endif
