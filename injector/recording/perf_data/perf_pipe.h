/* perf.data as a stream, which perf record -o - writes and perf report -i - reads, and as a file:
 * one made of the other.
 *
 * A stream is the first 16 bytes of the file header, with size 16, and then records only.  The
 * sections of a file are records in a stream.  They come before all other records:
 *
 *     HEADER_ATTR         8 the perf_event_attr (its size at offset 12), then its event ids, u64
 *                         each
 *     HEADER_FEATURE      8 u64 feature bit, 16 the feature section's contents
 *     HEADER_TRACING_DATA 8 u32 size; after the record, so many bytes: the feature's section
 *     HEADER_BUILD_ID     as an entry of the section of feature BUILD_ID
 */
#ifndef PERFJIT_PERF_PIPE_H
#define PERFJIT_PERF_PIPE_H

#include "injector/files/memory_file.h"
#include "injector/recording/perf_data/perf_file.h"

/* Whether the SIZE bytes at DATA begin like a stream. */
bool perf_pipe_is(const uint8_t *data, size_t size);

/* Make of the stream in STREAM, called NAME in messages, a perf.data file in memory.  Returns 0, or
 * -1 with the failure text set. */
int perf_pipe_to_file(struct memory_file *file, const struct memory_file *stream, const char *name,
                      struct findings *findings);

/* Write the SIZE bytes of the perf.data file at DATA, made by this program, to FD as a stream. */
int perf_pipe_write(int fd, const uint8_t *data, size_t size, const char *name,
                    struct findings *findings);

#endif
