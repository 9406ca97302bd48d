/* Functions without a frame: inlined ones.  Each is a function of its own at addresses that are
 * otherwise unused.
 *
 * A call chain can then name them: perf shows the function at such an address, as it does with any
 * other.  A name, declared in one place, has one address in all processes of a recording.  A child
 * can then use its parent's address.  The log of each process has the names that its code needs,
 * "NAME (inlined)", from its first event on.  Their line is that of the declaration.
 */
#ifndef PERFJIT_INLINED_CALLS_H
#define PERFJIT_INLINED_CALLS_H

#include "injector/log/code/jit_process.h"
#include "injector/log/lines/line_table.h"
#include "injector/recording/records.h"

struct inlined_name {
    char *text; /* with the mark that distinguishes it from a function's */
    size_t bytes;
    uint64_t hash;
    char *file;     /* where the function is declared, or NULL */
    uint32_t line;  /* in it */
    uint8_t *entry; /* that, as a record's; or NULL */
    struct jit_debug_info entries;
    struct code_lines lines;
};

struct inlined_calls {
    uint64_t base;              /* where the first one's function is */
    struct inlined_name *names; /* the number is the place from the base on */
    size_t count, capacity;
    uint32_t *numbers; /* + 1, by hash */
    size_t size;       /* a power of 2 */
    uint64_t added;    /* functions, to the logs of all processes */
};

/* Bytes that the function of each name has. */
enum { INLINED_CALL_BYTES = 16 };

/* Add functions for all inlined calls in the code of PROCESSES, of PROFILE, to their logs; CALLS
 * must outlive these.  Returns 0, or -1 with the failure text set.  Release with inlined_calls_free
 * in either case. */
int inlined_calls_add(struct inlined_calls *calls, struct jit_processes *processes,
                      const struct records *records, struct findings *findings);

/* The address for CALL; 0: there is none. */
uint64_t inlined_call_addr(const struct inlined_calls *calls, const struct line_inline *call);

void inlined_calls_free(struct inlined_calls *calls);

#endif
