/* A jitdump file, opened for reading, and its records one after another.
 *
 * The file is mapped; names, code and tables are views into the mapping and live until jit_dump_close.
 * The format, byte by byte, stands in jitdump/jitdump_format.h; what producers make of it, in quirk.c.  The quirks that a
 * header or a record was read in spite of are noted in it.
 */
#ifndef PERFJIT_JIT_DUMP_H
#define PERFJIT_JIT_DUMP_H

#include "injector/findings.h"
#include "jitdump/jitdump_format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jit_dump {
    const char *path;
    const uint8_t *data;
    size_t size;
    size_t used_bytes; /* without the zeros at the file's end */
    bool big_endian;
    uint32_t version;
    uint32_t header_bytes; /* where the records begin */
    uint32_t elf_mach;
    uint32_t pid;
    uint64_t timestamp;
    uint64_t flags;
    uint8_t address_bytes; /* of the machine that elf_mach names: 4 or 8 */
    uint64_t quirks;       /* of the header */
    uint32_t owner_uid;    /* of the file */
    bool mapped;           /* by jit_dump_open */
};

struct jit_load {
    uint32_t pid, tid;
    uint64_t vma, code_addr, code_size, code_index;
    const char *name; /* NUL-terminated, but with QUIRK_NAME_OPEN; "" for a record without a name */
    size_t name_bytes;   /* without the NUL */
    const uint8_t *code; /* NULL: the record does not hold the bytes */
};

/* A header that stands where a record might: the file was begun anew. */
struct jit_header {
    bool big_endian;
    uint32_t version, total_size, elf_mach, pid;
    uint64_t timestamp, flags;
};

struct jit_move {
    uint32_t pid, tid;
    uint64_t vma, old_code_addr, new_code_addr, code_size, code_index;
};

struct jit_unload {
    uint32_t pid, tid;
    uint64_t code_addr, code_size, code_index;
};

struct jit_debug_info {
    uint64_t code_addr, nr_entry;
    const uint8_t *entries; /* up to the record's end */
    size_t entries_bytes;
    bool big_endian;
};

struct jit_debug_entry {
    uint64_t addr;
    uint32_t line, discrim;
    const char *name;
};

/* Which calls the compiler inlined in the function at code_addr, whose LOAD follows.  Valid in itself; whether a
 * span begins behind the function's end shows only with the LOAD. */
struct jit_inline_info {
    uint64_t code_addr;
    uint32_t nr_inline, nr_span, strings_bytes;
    const uint8_t *inlines; /* nr_inline times 28 bytes */
    const uint8_t *spans;   /* nr_span times 8 bytes */
    const char *strings;    /* strings_bytes, the last of them NUL */
    bool big_endian;
};

/* An inlined call.  Texts live in the dump. */
struct jit_inline {
    uint32_t parent; /* index of an earlier inline, or JIT_INLINE_NONE */
    uint32_t call_line, call_column, decl_line;
    const char *call_file; /* NULL: not known */
    const char *name;
    const char *decl_file; /* NULL: not known */
};

/* From code_offset on the instructions belong to inline inline_index, or with JIT_INLINE_NONE to the function. */
struct jit_inline_span {
    uint32_t code_offset, inline_index;
};

/* samply's experimental record, in a layout of its own: see jit/line_positions.h. */
struct jit_debug_info2 {
    uint64_t code_addr;
    uint32_t code_offset_count, source_position_count, string_count;
    const uint8_t *code_offsets;     /* code_offset_count times 8 bytes */
    const uint8_t *source_positions; /* source_position_count times 28 bytes */
    const char *strings;             /* string_count of them, one behind the other */
    size_t strings_bytes;
    bool big_endian;
};

struct jit_unwinding_info {
    uint64_t unwinding_size, eh_frame_hdr_size, mapped_size;
    const uint8_t *data; /* unwinding_size bytes */
};

struct jit_record {
    uint32_t id;
    uint32_t total_size;
    uint64_t timestamp;
    uint64_t offset; /* in the file */
    uint64_t number; /* from 0 */
    uint64_t extent; /* bytes from here to the next record: total_size, but for QUIRK_CODE_BEHIND */
    uint64_t quirks; /* that it was read in spite of */
    const char *broken; /* what contradicts itself, or NULL; the union is only valid if NULL */
    union {
        struct jit_header header; /* id JIT_HEADER */
        struct jit_load load;
        struct jit_move move;
        struct jit_unload unload;
        struct jit_debug_info debug_info;
        struct jit_inline_info inline_info;
        struct jit_unwinding_info unwinding_info;
        struct jit_debug_info2 debug_info2;
    };
};

/* The id that a header among the records has in a jit_record. */
enum { JIT_HEADER = JITDUMP_MAGIC };

struct jit_dump_walk {
    const struct jit_dump *dump;
    bool big_endian;
    uint64_t offset; /* of the next record */
    uint64_t number;
    uint64_t time; /* of the last sound record; 0: there was none yet */
    uint32_t pid;  /* of the last LOAD, or of the header */
    /* What was read at AHEAD_OFFSET, in its byte order, to see whether a record follows: not to be read twice. */
    struct jit_record ahead;
    uint64_t ahead_offset;
    bool has_ahead, ahead_big_endian;
};

/* How a walk ended. */
enum jit_dump_end {
    JIT_DUMP_MORE,  /* it has not: *RECORD is the next record */
    JIT_DUMP_TORN,  /* it has not, but there are no records in the *RECORD's extent */
    JIT_DUMP_WHOLE, /* after the last record, with nothing behind it but room never used */
    JIT_DUMP_CUT,   /* at a record that does not fit in the file, or can't be one */
};

/* Open, map and check the header of the regular file PATH, which must outlive DUMP.  Returns 0, or -1 with the
 * cause in CAUSE.  Release with jit_dump_close in either case. */
int jit_dump_open(struct jit_dump *dump, const char *path, char *cause, size_t cause_bytes);

/* The same for SIZE bytes that are in memory already, which must outlive DUMP and are not released by jit_dump_close. */
int jit_dump_view(struct jit_dump *dump, const char *path, const uint8_t *data, size_t size,
                  char *cause, size_t cause_bytes);

void jit_dump_close(struct jit_dump *dump);

struct jit_dump_walk jit_dump_begin(const struct jit_dump *dump);

/* Read what stands at OFFSET, whatever its id, without a look at what follows.  Returns false if its prefix can't be one
 * or it does not fit in the file. */
bool jit_record_at(const struct jit_dump_walk *walk, uint64_t offset, struct jit_record *record);

/* The next record, whatever its id.  A record that is broken inside is still returned.  Behind a tear, the walk goes on
 * at the next place where records follow one another (torn_record.h). */
enum jit_dump_end jit_dump_next(struct jit_dump_walk *walk, struct jit_record *record);

/* Entry after entry of a DEBUG_INFO: *AT starts at 0.  Returns false when an entry does not fit. */
bool jit_debug_entry_next(const struct jit_debug_info *info, size_t *at,
                          struct jit_debug_entry *entry);

/* Inline INDEX, smaller than nr_inline, and span INDEX, smaller than nr_span. */
void jit_inline_at(const struct jit_inline_info *info, uint32_t index, struct jit_inline *call);
void jit_inline_span_at(const struct jit_inline_info *info, uint32_t index,
                        struct jit_inline_span *span);

/* The specification's name of a record id, or NULL. */
const char *jit_record_name(uint32_t id);

#endif
