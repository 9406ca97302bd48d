/* What perf itself says that a recording lacks: records for which its buffers had no room.
 *
 * The kernel counts records that found no room (LOST); most of them are samples.  When perf ends,
 * it tells the samples among them once more (LOST_SAMPLES), if the kernel is new enough to count
 * them and perf was not killed.  So the larger of the two sums counts.
 */
#ifndef PERFJIT_LOSSES_H
#define PERFJIT_LOSSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct losses {
    uint64_t records; /* of LOST */
    uint64_t samples; /* of LOST_SAMPLES */
    uint64_t traces;  /* AUX records that say that their trace was cut */
    uint64_t taken;   /* the samples that are there */
};

/* Take one record, of which BYTES stand behind its header at AT. */
void losses_take(struct losses *losses, uint32_t type, uint16_t misc, const uint8_t *at,
                 size_t bytes);

bool losses_any(const struct losses *losses);

/* How many samples are lost, at most. */
uint64_t losses_samples(const struct losses *losses);

/* Which part of all samples these are: 0 to 1. */
double losses_share(const struct losses *losses);

/* Put a sentence about it into TEXT of SIZE bytes. */
enum { LOSSES_TEXT_BYTES = 320 };
void losses_text(const struct losses *losses, char *text, size_t size);

#endif
