/* Images in which all bodies of a function stand side by side behind one symbol, so that perf
 * report has one row for it.
 *
 *     file    | headers | fib: body 1 | body 2 | is_even: body 1 | body 2 | body 3 | ...
 *     symbol            |<------ fib ------>|  |<------------ is_even ---------->|
 *
 * perf tells two symbols apart by file, start and end, never by name.  A JIT compiles one function
 * again and again, in all workers of a server, and in the layout of image_plan.h each time makes a
 * row.  Here a body's offset has nothing to do with its address, so one file serves all processes.
 * A body that is equal to another body of its function, byte for byte and line for line, needs no
 * place of its own.  The unwinders of perf need one base for a file, so this layout is for
 * recordings without user stacks.  Its images have no unwind tables.
 *
 * If each name has one body, and all are near each other in one process, the image is a picture of
 * memory as those of image_plan.h.  perf's rows are the same.  Readers that take one place in
 * memory for each file, as hotspot does, find all names in it.
 */
#ifndef PERFJIT_IMAGE_PLAN_BY_NAME_H
#define PERFJIT_IMAGE_PLAN_BY_NAME_H

#include "injector/inject/layout/name_groups.h"

/* Plan the images of all COUNT PROCESSES by their TIMELINES; PLAN is empty.  Returns 0, or -1 with
 * the failure text set. */
int image_plan_by_name(struct image_plan *plan, const struct jit_process *processes,
                       const struct timeline *timelines, size_t count, enum image_rows rows,
                       struct findings *findings);

#endif
