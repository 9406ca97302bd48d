/* One record of a jitdump file: its fields, checked, as views into the file.
 *
 * The format, byte by byte, is in jitdump/format/jitdump_format.h; producers' deviations are in
 * quirk.c.
 */
#ifndef PERFJIT_JIT_RECORD_H
#define PERFJIT_JIT_RECORD_H

#include "injector/log/jitdump/jit_inline.h"
#include "injector/log/jitdump/jit_interpreted.h"
#include "jitdump/format/byte_cursor.h"
#include "jitdump/format/byte_sink.h"
#include "jitdump/format/jitdump_format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jit_load {
    uint32_t pid, tid;
    uint64_t vma, code_addr, code_size, code_index;
    const char *name; /* NUL-terminated, but with QUIRK_NAME_OPEN; "" for a record without a name */
    size_t name_bytes;   /* without the NUL */
    const uint8_t *code; /* NULL: the record does not hold the bytes */
};

/* A header in the place of a record: the file was restarted. */
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

/* The dump was rewritten: of the functions from before the record's time only the kept ones are in
 * it. */
struct jit_history {
    uint64_t generation, dropped, kept;
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

/* The LOAD that follows is a piece of a function that has several. */
struct jit_piece {
    uint64_t code_addr;  /* of the piece */
    uint64_t code_index; /* of piece 0 */
    uint32_t number, nr_piece;
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
    uint64_t quirks; /* quirks tolerated while parsing */
    const char *broken; /* the inconsistency, or NULL; the union is only valid if NULL */
    union {
        struct jit_header header; /* id JIT_HEADER */
        struct jit_load load;
        struct jit_move move;
        struct jit_unload unload;
        struct jit_history history;
        struct jit_debug_info debug_info;
        struct jit_inline_info inline_info;
        struct jit_unwinding_info unwinding_info;
        struct jit_piece piece;
        struct jit_interpreter interpreter;
        struct jit_interpreted interpreted;
    };
};

/* The id that a header among the records has in a jit_record. */
enum { JIT_HEADER = JITDUMP_MAGIC };

/* Read the fields after the prefix, up to CURSOR's end, of a RECORD whose id is set; quirks are
 * added to its own.  Returns the inconsistency, or NULL.  Records of other kinds are not read. */
const char *jit_record_read_fields(struct byte_cursor *cursor, struct jit_record *record);

/* Check the contents of the fields that were read, in time linear in the record's size.  Returns
 * the inconsistency, or NULL. */
const char *jit_record_check(const struct jit_record *record);

/* Entry after entry of a DEBUG_INFO: *AT starts at 0.  Returns false when an entry does not fit. */
bool jit_debug_entry_next(const struct jit_debug_info *info, size_t *at,
                          struct jit_debug_entry *entry);

/* Write one, without a discriminator, whose name is the BYTES at NAME: JR_DEBUG_ENTRY_BYTES and
 * these and a NUL. */
void jit_debug_entry_put(struct byte_sink *sink, uint64_t addr, uint32_t line, const char *name,
                         size_t bytes);

/* Whether the time of a record with that id is the time of something that the process did.  FILLERs
 * and headers have no such time.  The time of HISTORY is the time of the records that follow. */
bool jit_record_has_time(uint32_t id);

/* The specification's name of a record id, or NULL. */
const char *jit_record_name(uint32_t id);

#endif
