/* What all records that are added to a profile begin and end with. */
#ifndef PERFJIT_ADDED_RECORD_H
#define PERFJIT_ADDED_RECORD_H

#include "injector/merge/added_map.h"

/* Put the header of a record of TYPE; MISC beside the bit for user space.  Returns where it
 * begins. */
size_t added_record_begin(struct byte_sink *sink, uint32_t type, uint16_t misc);

/* Put the sample_id that WITNESS, a record that perf wrote for the same process, has: with MAP's
 * process and time. */
void added_record_trailer(struct byte_sink *sink, const struct added_map *map,
                          const struct added_map_source *source, const struct perf_record *witness);

/* Set the size of the record that begins at START.  Returns 0, or -1 if it is too long. */
int added_record_end(struct byte_sink *sink, size_t start);

#endif
