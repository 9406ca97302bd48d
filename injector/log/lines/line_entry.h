/* The entries of a DEBUG_INFO record, one after another:
 *
 *     0 u64 addr
 *     8 u32 line
 *    12 u32 discrim     of those producers that use it: the column
 *    16     name        of the file, NUL-terminated; "\xff": the one before
 *
 * Overwritten names.  V8 (node 20) writes the names of files from memory that it has freed.  The
 * length is right, but the first 16 bytes are glibc's list of free memory, with zeros among them.
 * So a name seems to end too early.  perf takes the bytes after that zero for the next entry, and
 * shows line 1 for everything.  In such a record a name ends before the next address that lies in
 * the function, and the last one with the record, but for up to 7 zeros that pad it.
 */
#ifndef PERFJIT_LINE_ENTRY_H
#define PERFJIT_LINE_ENTRY_H

#include "injector/log/jitdump/jit_dump.h"
#include "injector/log/lines/line_text.h"
#include "jitdump/format/byte_cursor.h"

enum { OVERWRITTEN_BYTES = 16, PADDING_BYTES = 7 };

struct line_entry {
    uint64_t addr;
    uint32_t line, discrim;
    struct line_text name; /* of the file; none: empty, or "same" of nothing */
};

struct line_entries {
    struct byte_cursor cursor;
    uint64_t left;
    struct line_text before; /* the last name */
    bool overwritten;
    uint64_t low,
        high; /* where the addresses of a record with overwritten names lie: low <= addr < high */
};

static inline struct line_entries line_entries_of(const struct jit_debug_info *info,
                                                  bool big_endian)
{
    return (struct line_entries){
        .cursor = byte_cursor_over(info->entries, info->entries_bytes, big_endian),
        .left = info->nr_entry};
}

/* The next entry.  Returns false after the last one; or where one does not fit, with cursor.failed
 * set. */
bool line_entry_next(struct line_entries *entries, struct line_entry *entry);

/* Whether NAME can't be a file's: it holds control characters. */
bool line_name_is_overwritten(struct line_text name);

#endif
