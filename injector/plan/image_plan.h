/* Which functions share one ELF file, and where each stands in it.
 *
 * An image is a picture of a piece of the address space: the file offset and the virtual address of
 * a byte are both its run-time address minus the image's base.  One base for all that is in a file
 * is what perf's unwinders need, and it makes every record of the file say the same start - pgoff.
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
 * module that it takes to be at an address.  So where perf will unwind (LAYOUT_APART), each
 * function that shares addresses with another is alone in its image, and the others make one image
 * for each run between those and between the files that are mapped (foreign_maps.h).
 */
#ifndef PERFJIT_IMAGE_PLAN_H
#define PERFJIT_IMAGE_PLAN_H

#include "injector/code/jit_process.h"
#include "injector/timeline/change.h"

enum image_layout {
    LAYOUT_IMAGE, /* as above */
    LAYOUT_APART, /* the same, but images that are alive together, and mapped files, are disjoint */
    LAYOUT_FUNCTION, /* each function is an image of its own, as perf inject does it */
};

enum {
    IMAGE_BUILD_ID_BYTES = 16,
    IMAGE_ELF_HEADER_BYTES = 64, /* of ELF64; more than ELF32 needs */
    IMAGE_PAGE_BYTES = 4096,
    IMAGE_TRAILER_BYTES =
        512, /* room for the rest of the headers behind the text of a function that is alone */
};

struct jit_image {
    uint32_t process;      /* index into the processes */
    const struct code_log *log; /* the timeline's */
    uint64_t base;         /* run-time address of the file's first byte */
    uint64_t text_start;   /* offset = virtual address of the first function */
    uint64_t text_end;     /* and behind the last */
    uint64_t tables_start; /* of the unwind tables, far above the text perhaps; 0: there are none */
    uint64_t hdr_bytes;    /* of .eh_frame_hdr, with padding */
    uint64_t eh_frame_bytes;   /* of .eh_frame behind it */
    const uint32_t *functions; /* indices into LOG's, by address */
    size_t function_count;
    uint64_t names_bytes; /* of their names, NULs included */
    bool compress_debug;  /* write its debug info compressed; false unless it is set */
    uint8_t build_id[IMAGE_BUILD_ID_BYTES]; /* set when the file is written */
};

#define NO_IMAGE UINT32_MAX

struct function_place {
    uint32_t image;     /* which one it is in; NO_IMAGE: in none */
    uint32_t gap_after; /* bytes to the next function, if nothing lies between that could be sampled
                           and named */
};

/* What is planned of one process. */
struct process_plan {
    struct function_place *places; /* of all functions of its timeline's log */
    uint32_t *order;               /* the visible ones by image, then by address */
    size_t first_image, end_image;
};

struct image_plan {
    struct jit_image *images; /* by process, then by address, then by generation */
    size_t image_count, image_capacity;
    struct process_plan *processes;
    size_t process_count, process_capacity;
};

/* Whether all of IMAGE's headers stand in front of its text; else there is only the ELF header, and
 * the others stand behind it. */
static inline bool image_has_header_page(const struct jit_image *image)
{
    return image->text_start >= IMAGE_PAGE_BYTES;
}

/* Of these many bytes of code on, a thread that copies it pays: to make one takes as long as to
 * copy some 100 KiB. */
enum { IMAGE_LARGE_BYTES = 2 << 20 };

/* The base of an image whose lowest function is at ADDR: a page for the headers in front of the
 * function's page. */
uint64_t image_plan_base(uint64_t addr);

/* Add what is planned of PROCESS, which is the next one of the processes, by its TIMELINE.  Returns
 * 0, or -1 with the failure text set. */
int image_plan_add(struct image_plan *plan, const struct jit_process *process,
                   const struct timeline *timeline, enum image_layout layout,
                   struct findings *findings);

void image_plan_free(struct image_plan *plan);

#endif
