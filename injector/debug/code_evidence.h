/* Whether the code that a dump tells of is in the memory of the process: a dump of another run, or
 * of a later process with the same pid, has other code, and mostly at other addresses.
 *
 * Runtimes change code that they have logged (V8 the objects' addresses in it), and free some
 * without a word, so that one function proves nothing.
 */
#ifndef PERFJIT_CODE_EVIDENCE_H
#define PERFJIT_CODE_EVIDENCE_H

#include "injector/debug/snapshot/snapshot.h"
#include "injector/history/timeline/timeline.h"
#include "injector/log/code/jit_process.h"

struct code_evidence {
    size_t compared; /* functions alive that have bytes in the dump, and memory in the snapshot */
    size_t present;  /* of them, those whose bytes are mostly the same */
};

/* Compare functions of the COUNT PROCESSES, by their TIMELINES, with SNAPSHOT. */
struct code_evidence code_evidence_take(const struct snapshot *snapshot,
                                        const struct jit_processes *processes,
                                        const struct timeline *timelines);

#endif
