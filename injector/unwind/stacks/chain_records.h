/* The records, attributes and features of a recording whose stacks have become call chains. */
#ifndef PERFJIT_CHAIN_RECORDS_H
#define PERFJIT_CHAIN_RECORDS_H

#include "injector/files/memory_file.h"
#include "injector/unwind/stacks/user_stacks.h"
#include "jitdump/format/byte_sink.h"

/* Put the replacement for RECORD into SINK, of 64 KiB: records come in file order.  Returns 1, 0 if
 * it stays as it is, or -1 if it has to be left out: it contradicts itself. */
int chain_record_put(struct user_stacks *stacks, const struct perf_record *record,
                     struct byte_sink *sink);

/* Change the attribute at ATTR, of SIZE bytes, of an event that had stacks, as its samples are
 * now. */
void chain_attribute_change(uint8_t *attr, size_t size);

/* The same of the attributes in the feature EVENT_DESC of FILE, which are kept in MEMORY.  Returns
 * 0, or -1 without memory. */
int chain_features_set(struct perf_file *file, struct memory_file *memory);

#endif
