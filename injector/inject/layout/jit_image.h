/* Images, which become ELF files, and the places of functions in them.
 *
 * How they are planned: image_plan.h, image_plan_by_name.h.
 */
#ifndef PERFJIT_JIT_IMAGE_H
#define PERFJIT_JIT_IMAGE_H

#include "injector/history/timeline/change.h"
#include "injector/log/code/jit_process.h"

enum {
    IMAGE_BUILD_ID_BYTES = 16,
    IMAGE_ELF_HEADER_BYTES = 64, /* of ELF64; more than ELF32 needs */
    IMAGE_PAGE_BYTES = 4096,
    IMAGE_TRAILER_BYTES =
        512, /* room for the rest of the headers after the text of a function that is alone */
};

/* One function's bytes in a file. */
struct image_body {
    uint64_t offset;    /* in the file, and its virtual address */
    uint64_t loaded_ns; /* when it was first there; only set where rows are by name */
    const struct jit_function *function; /* of its timeline's log */
    uint32_t process;                    /* index into the processes */
    uint32_t number;                     /* of the function in the log */
};

/* Bodies side by side with one symbol.  It has their name without the part at CUT_AT. */
struct image_row {
    uint32_t first, count; /* of the image's bodies */
    uint32_t cut_at, cut_bytes;
};

struct jit_image {
    uint32_t process; /* index into the processes; NO_PROCESS: of all (image_plan_by_name.h) */
    const struct code_log *log; /* the timeline's; NULL: of several */
    uint64_t base;              /* run-time address of the file's first byte; 0: it is no picture of
                                   memory */
    uint64_t text_start;        /* offset = virtual address of the first function */
    uint64_t text_end;          /* and after the last */
    uint64_t tables_start; /* of the unwind tables, far above the text perhaps; 0: there are none */
    uint64_t hdr_bytes;    /* of .eh_frame_hdr, with padding */
    uint64_t eh_frame_bytes;   /* of .eh_frame after it */
    struct image_body *bodies; /* by offset */
    size_t body_count;
    const struct image_row *rows; /* by offset; NULL: each body is one */
    size_t row_count;
    size_t label_count;    /* symbols that tell bodies of a row apart */
    uint32_t part;         /* which of the files for one machine it is, from 0 on */
    uint64_t names_bytes;  /* of all symbols' names, NULs included */
    bool compress_debug;   /* write its debug info compressed; false unless it is set */
    bool no_inlined_calls; /* they are no part of that; the same */
    uint8_t build_id[IMAGE_BUILD_ID_BYTES]; /* set when the file is written */
};

#define NO_IMAGE   UINT32_MAX
#define NO_PROCESS UINT32_MAX

struct function_place {
    uint64_t offset;    /* of its first byte in the image */
    uint32_t image;     /* which one it is in; NO_IMAGE: in none */
    uint32_t gap_after; /* bytes to the next function, if nothing lies between that could be sampled
                           and named */
};

/* The plan for one process. */
struct process_plan {
    struct function_place *places; /* of all functions of its timeline's log */
    struct image_body *bodies;     /* the visible ones by image, then by address */
    size_t first_image, end_image;
};

struct image_plan {
    struct jit_image *images; /* by process, then by address, then by generation */
    size_t image_count, image_capacity;
    struct process_plan *processes;
    size_t process_count, process_capacity;
    struct image_body *bodies; /* of the images that have rows */
    struct image_row *rows;
};

/* Whether all of IMAGE's headers stand in front of its text; else there is only the ELF header, and
 * the others stand after it. */
static inline bool image_has_header_page(const struct jit_image *image)
{
    return image->text_start >= IMAGE_PAGE_BYTES;
}

/* A dump that says for which machine IMAGE is. */
static inline const struct jit_dump *image_dump(const struct jit_image *image,
                                                const struct jit_process *processes)
{
    return &processes[image->bodies[0].process].dumps[image->bodies[0].function->dump];
}

static inline size_t image_row_count(const struct jit_image *image)
{
    return image->rows ? image->row_count : image->body_count;
}

static inline struct image_row image_row_at(const struct jit_image *image, size_t i)
{
    return image->rows ? image->rows[i] : (struct image_row){(uint32_t)i, 1, 0, 0};
}

/* Whether ROW's bodies have symbols that tell them apart. */
static inline bool image_row_is_labelled(const struct image_row *row)
{
    return row->count > 1 || row->cut_bytes;
}

enum {
    BODY_LABEL_BYTES = 128, /* of such a symbol's name, at most */
    /* The zeros in front of the first body.  If two symbols stand at one address, objdump shows the
     * function's; it shows this many zeros as "...". */
    ROW_LEAD_BYTES = 16,
};

void image_plan_free(struct image_plan *plan);

#endif
