/* A time for each record that was recorded without one.
 *
 * perf record leaves times out for an event with the term time=0, with --no-timestamp or -T absent
 * from --per-thread.  Linux before 2.6.38 had no sample_id, and so no times but in samples.
 *
 * perf record writes the processors' buffers one after another, and in a buffer the records are in
 * order.  So the neighbours of a record without a time tell it, but for what lies between them.
 * They are of its buffer unless times step back there: then the one of its own processor, or else
 * of its own thread, is.
 *
 * Where no record has a time, or the times are too far apart to tell anything, numbers stand for
 * them: the attributes name the clock PERF_CLOCK_NONE then.  perf reads such records in the order of
 * the file, and so do these numbers, but for two things in each round of the buffers.  Forks, and
 * what a program maps in its first round, come first, and exits last: the buffer of the processor
 * on which a process ended may well be written before the one on which it ran.  A fork comes in
 * front of what the new process did, and behind that of its parent.  What perf record wrote of
 * processes that ran already keeps 0.
 */
#ifndef PERFJIT_RECORD_TIMES_H
#define PERFJIT_RECORD_TIMES_H

#include "injector/recording/perf_data/perf_plain.h"

/* Make PLAIN of FILE, in which each sample, and each other record of the kernel's, has a time; the
 * samples that had none are reported.  Damage ends the records.  Returns 0, or -1 with the failure
 * text set. */
int record_times_give(struct perf_plain *plain, const struct perf_file *file,
                      struct findings *findings);

#endif
