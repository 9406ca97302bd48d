/* An ELF object in memory with the names and the frames of functions, which grows at its end.
 *
 *     two heads   each the ELF header, its sections' headers and their names
 *     symbols     .symtab
 *     names       .strtab
 *     frames      .eh_frame
 *     records     ours: what is in it of which function
 *
 * A debugger reads only up to the end that the shown head gives.  So functions are added behind
 * that end and written into the other head.  Then that head replaces the first.
 */
#ifndef JITUNWIND_DEBUGGER_OBJECT_H
#define JITUNWIND_DEBUGGER_OBJECT_H

#include "jitunwind/debugger_list.h"
#include "jitunwind/frames/function_table.h"

#include <stddef.h>

/* In bytes, except records.  There are at most as many symbols as records. */
struct object_sizes {
    uint32_t names, frames, records;
};

struct object_memory {
    uint8_t *base;
    size_t bytes;
    struct object_sizes room;
};

struct object_record {
    uint32_t number; /* of the function; 0: it was buried */
    uint32_t symbol; /* 0: none */
    uint32_t frames; /* its FDEs */
    uint32_t frames_bytes;
};

struct debugger_object {
    uint64_t start, end;  /* the addresses that it serves */
    uint64_t bottom, top; /* the range of the functions that were added to it */
    struct object_memory memory;
    struct object_memory left; /* from where it has moved: shown until the next show */
    struct object_sizes used;
    uint32_t symbols, live;
    uint8_t level;               /* how many times merged */
    bool sealed;                 /* nothing is added behind its functions */
    bool changed, shown, hidden; /* hidden: taken out of the list, to be changed */
    bool written[2];             /* the heads are written, except growing sizes */
    unsigned head;               /* the one that is shown */
    struct debugger_entry entries[2];
    struct debugger_object *next_hidden;
};

/* A function that is being added. */
struct object_addition {
    uint64_t start;
    uint32_t bytes, number;
    const char *name; /* or NULL */
    const struct table_row_draft *rows;
    uint32_t row_count;
};

/* A new object for the addresses [START, END), with room for SIZES and more.  Returns NULL if there
 * is no memory. */
struct debugger_object *ju_debugger_object_new(uint64_t start, uint64_t end,
                                               struct object_sizes sizes);

/* Free OBJECT, which is not shown. */
void ju_debugger_object_free(struct debugger_object *object);

/* How much more ADDITION needs. */
struct object_sizes ju_debugger_object_needs(const struct object_addition *addition);

/* Make room for MORE.  It may be elsewhere then, and without those that were buried: RECORDS, by
 * functions' numbers, are set anew.  Returns 0 or -ENOMEM. */
int ju_debugger_object_reserve(struct debugger_object *object, struct object_sizes more,
                               const struct function_table *table, uint32_t *records);

/* Add a function, for which there is room.  Returns its record. */
uint32_t ju_debugger_object_add(struct debugger_object *object,
                                const struct object_addition *addition);

/* Add all functions of FROM, for which there is room. */
void ju_debugger_object_add_all(struct debugger_object *object, const struct debugger_object *from,
                                const struct function_table *table, uint32_t *records);

/* Add those of FROM that begin in OBJECT's range, for which there is room. */
void ju_debugger_object_add_own(struct debugger_object *object, const struct debugger_object *from,
                                const struct function_table *table, uint32_t *records);

/* The start of a function about in the middle of OBJECT's addresses; or OBJECT's begin. */
uint64_t ju_debugger_object_middle(const struct debugger_object *object,
                                   const struct function_table *table);

/* Clear RECORD, of an object that is not shown. */
void ju_debugger_object_bury(struct debugger_object *object, uint32_t record);

/* From now on OBJECT serves the addresses [START, END). */
void ju_debugger_object_range(struct debugger_object *object, uint64_t start, uint64_t end);

/* Between ju_debugger_list_begin and its end: show debuggers OBJECT as it is now, or hide it. */
void ju_debugger_object_show(struct debugger_object *object);
void ju_debugger_object_hide(struct debugger_object *object);

#endif
