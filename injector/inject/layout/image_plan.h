/* Plans which functions share one ELF file, and where each stands in the file.
 *
 * An image is a picture of a piece of the address space: the file offset and the virtual address of
 * a byte are both its run-time address minus the image's base.  The unwinders of perf need one base
 * for all in a file.  With one base, every record of the file has the same start - pgoff.
 *
 *     file     0        HEAD        text_end
 *              | headers | function  function   function |  tables, symbols ...
 *     process          lowest                 highest end
 *              ^base
 *
 * Functions are grouped by neighbourhood (V8 logs builtins that lie 2^46 bytes from its heap), and
 * by generation: a function at addresses that an earlier one had goes to another image.
 *
 * Images of two generations reach over each other.  Names don't mind, but libdw unwinds by the one
 * module that it takes to be at an address.  If perf will unwind (LAYOUT_APART), each function that
 * shares addresses with another is alone in its image.  The others make one image for each run
 * between these functions and between the mapped files (foreign_maps.h).
 */
#ifndef PERFJIT_IMAGE_PLAN_H
#define PERFJIT_IMAGE_PLAN_H

#include "injector/inject/layout/jit_image.h"

enum image_layout {
    LAYOUT_IMAGE, /* as above */
    LAYOUT_APART, /* the same, but images that are alive together, and mapped files, are disjoint */
    LAYOUT_FUNCTION, /* each function is an image of its own, as perf inject does it */
};

/* The base of an image whose lowest function is at ADDR: a page for the headers in front of the
 * function's page. */
uint64_t image_plan_base(uint64_t addr);

/* Add the plan for PROCESS, which is the next one of the processes, by its TIMELINE.  Returns 0, or
 * -1 with the failure text set. */
int image_plan_add(struct image_plan *plan, const struct jit_process *process,
                   const struct timeline *timeline, enum image_layout layout,
                   struct findings *findings);

#endif
