/* The builder of unwind tables, for the files that work on it: cfi_builder.c takes directives,
 * cfi_frame.c describes frames by them, cfi_tables.c reads and writes whole tables. */
#ifndef JITDUMP_CFI_BUILDER_H
#define JITDUMP_CFI_BUILDER_H

#include "jitdump/cfi.h"
#include "jitdump/cfi/cfi_arch.h"
#include "jitdump/cfi_check/frame_check.h"

enum { TEXT_BYTES = 160, REMEMBERED_MAX = 32 };

/* The size of a block for the whole code, until its size is known. */
#define WHOLE_CODE UINT64_MAX

#define NOT_IMPORTED SIZE_MAX

struct cfi_cie {
    struct eh_cie cie;    /* but for its instructions: */
    size_t program_start; /* where they are in the program */
    size_t offset;        /* in the .eh_frame being written, or SIZE_MAX: not yet */
    uint64_t hash;        /* of all that makes it differ from others */
};

struct cfi_block {
    uint64_t start;
    uint64_t size; /* or WHOLE_CODE */
    size_t cie;    /* index */
    size_t program_start;
    size_t program_bytes;
    uint64_t at;           /* the code offset from which its last instructions hold */
    size_t at_program_end; /* how long its program was before it got there */
    uint64_t epilogue;     /* the last one's offset, if it is a frame's */
    uint64_t epilogue_end; /* `at` behind it; 0: there is none */
};

/* Memory for the tables of several functions, which stay where they are. */
struct cfi_kept {
    struct cfi_kept *next;
    size_t used, bytes;
    uint8_t data[];
};

struct jitdump_cfi {
    const struct cfi_arch *arch;
    struct byte_sink program;
    struct cfi_cie *cies;
    size_t cie_count, cie_capacity;
    size_t *cie_slots; /* a hash table: the number of a CIE, from 1, or 0; at least half are 0 */
    size_t slot_count; /* 0 or a power of two */
    size_t
        *imported; /* for the CIEs of the section being imported: the index here, or NOT_IMPORTED */
    size_t imported_count, imported_capacity;
    struct cfi_block *blocks;
    size_t block_count, block_capacity;
    bool open;     /* directives belong to the last block */
    bool finished; /* the blocks are sorted: there is no last one */
    int64_t cfa_offset;
    int64_t remembered[REMEMBERED_MAX]; /* CFA offsets */
    size_t remembered_count;
    uint64_t origin;          /* what code offsets count from is before the function by this */
    bool begun;               /* by jitdump_cfi_begin, and not ended */
    const uint64_t *epilogue; /* of a frame, which is being described; else NULL */
    struct cfi_kept *kept;    /* what end gave out */
    struct cfi_kept *filling; /* the piece of it that is being filled: what follows is empty */
    struct byte_sink tables;  /* what finish gave out */
    struct eh_frame_hdr_entry *entries;
    size_t entry_capacity;
    int error;
    char text[TEXT_BYTES];
    char checked[FAULT_TEXT_BYTES]; /* what jitdump_cfi_check found */
};

/* Drop what was described, and the error. */
void jd_cfi_forget(struct jitdump_cfi *cfi);

/* The memory of the tables of ended functions: give it back; use it for others. */
void jd_cfi_free_kept(struct jitdump_cfi *cfi);
void jd_cfi_empty_kept(struct jitdump_cfi *cfi);

/* Keep ERROR and its text, if it is the first, and return the first. */
__attribute__((format(printf, 3, 4))) int jd_cfi_fail(struct jitdump_cfi *cfi, int error,
                                                      const char *format, ...);

/* ITEMS, an array for *CAPACITY, grown to hold COUNT; NULL and a failure if there is no memory. */
void *jd_cfi_grow(struct jitdump_cfi *cfi, void *items, size_t *capacity, size_t count,
                  size_t item_bytes);

/* Make room in the program for an advance and BYTES. */
bool jd_cfi_program_room(struct jitdump_cfi *cfi, size_t bytes);

/* Find CIE, or add it.  Sets *INDEX. */
bool jd_cfi_get_cie(struct jitdump_cfi *cfi, const struct eh_cie *cie, size_t *index);

/* Add a block of the CIE with INDEX, whose program will be put next. */
bool jd_cfi_open_block(struct jitdump_cfi *cfi, size_t cie, uint64_t start, uint64_t size);

/* The same of the architecture's CIE. */
bool jd_cfi_open_own_block(struct jitdump_cfi *cfi, uint64_t start, uint64_t size);

void jd_cfi_close_block(struct jitdump_cfi *cfi);

#endif
