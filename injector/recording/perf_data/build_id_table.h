/* The feature BUILD_ID: which files the recording has samples of.  An entry for each, laid out as a
 * record:
 *      0 u32 type, of no meaning; 4 u16 misc; 6 u16 size of the entry
 *      8 s32 pid; 12 build_id[20]; 32 u8 its size, with misc bit 15, else 20; 36 the name, with
 * NULs An entry is valid if it has a record's header at least, and lies in the feature.  What
 * follows one that is not valid can't be read. */
#ifndef PERFJIT_BUILD_ID_TABLE_H
#define PERFJIT_BUILD_ID_TABLE_H

#include "injector/recording/perf_data/perf_features.h"
#include "jitdump/format/byte_cursor.h"

enum { PERF_BUILD_ID_ENTRY_BYTES = 36 /* before the name */ };

struct build_id_entry {
    const uint8_t *bytes; /* all of it */
    size_t size;
    uint16_t misc;
    const uint8_t *build_id;
    size_t build_id_bytes;
    const char *name; /* NULL: it has none, or one without end, and no build-id */
};

/* The entries of TABLE. */
static inline struct byte_cursor build_id_table_over(const struct perf_feature *table)
{
    return byte_cursor_over(table->bytes, table->size, false);
}

/* The next of ENTRIES.  Returns false at their end, or at one that is not valid: then something is
 * left. */
bool build_id_table_next(struct byte_cursor *entries, struct build_id_entry *entry);

#endif
