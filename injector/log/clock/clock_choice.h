/* Choosing the conversion from a dump's timestamps to the profile's clock.
 *
 * perf record -k mono and a dump without the ARCH_TIMESTAMP flag both count CLOCK_MONOTONIC
 * nanoseconds: nothing to do.  In all other cases evidence decides (clock_evidence.h), in this
 * order:
 *
 *   the profile's very clock        nothing to do
 *   CPU cycles, TIME_CONV, no -k    perf's own formula (perf_event_open(2), time_zero):
 *                                   ns = time_zero + (c >> shift) * mult +
 *                                        (((c & ((1 << shift) - 1)) * mult) >> shift)
 *   another clock of ns             an offset: when perf saw the mapping, less the header's time
 *   CPU cycles, TIME_CONV, -k       the formula, and then such an offset
 *   only CPU cycles                 a rate, from the mapping to now, if the boot is the same
 *
 * A process may have waited between header and mapping, but not all do: where another dump of the
 * recording shows the offset of the same clock better, that one is taken (clock_learn).
 *
 * The flag decides which clock is tried first.  The records must then fall into the life of the
 * process.  If they do not, the flag is wrong, and a proven candidate that puts them there is used.
 */
#ifndef PERFJIT_CLOCK_CHOICE_H
#define PERFJIT_CLOCK_CHOICE_H

#include "injector/log/clock/clock_candidate.h"
#include "injector/log/clock/clock_evidence.h"
#include "injector/log/clock/clock_live.h"
#include "injector/log/clock/jit_clock.h"

/* Reads the machine's clocks: clock_live_read, replaced in tests. */
typedef void clock_live_reader(struct clock_live *live, bool with_cycles);

/* The data for the choice. */
struct clock_question {
    const struct records *records;
    const struct jit_dump *dump;
    const struct stamp_range *stamps; /* the dump's; NULL: not known */
    uint32_t pid;                     /* of the dump's process, in the profile */
    clock_live_reader *read_live;
    struct clock_life life;
    bool in_another_life; /* the header's time, on the profile's clock, is in another life of the
                             pid */
    bool may_be_anothers; /* the caller decides later whether the dump was written in that life at
                             all */
    const struct shared_clocks *shared; /* the offsets that the recording's dumps showed; NULL:
                                         * none */
};

/* Add to SHARED the offset between the dump's clock and the profile's, as the dump shows it, if the
 * offset holds for other dumps, too.  To be done for all dumps of a recording before a clock is
 * chosen for one. */
void clock_learn(struct shared_clocks *shared, const struct clock_question *question);

/* Choose the conversion, and report it to FINDINGS unless it is trivial.  Returns NULL, or the
 * reason why there is none, with the remedy; the text is in WHY. */
const char *clock_choose(struct jit_clock *clock, const struct clock_question *question,
                         char why[512], struct findings *findings);

#endif
