/* A recording in any form: a file, a stream or a directory, compressed or not.  The result is
 * always a plain perf.data file, in place or rebuilt in memory. */
#ifndef PERFJIT_PERF_INPUT_H
#define PERFJIT_PERF_INPUT_H

#include "injector/files/memory_file.h"
#include "injector/recording/perf_data/perf_file.h"

struct perf_input {
    struct perf_file file;
    struct memory_file memory; /* the bytes of FILE, if it is not mapped from disk */
    char *directory_data;      /* the path of the file `data`, in a directory */
};

/* Open PATH, which must outlive INPUT; "-" is standard input.  Returns 0, or -1 with the failure
 * text set.  Release with perf_input_close in either case. */
int perf_input_open(struct perf_input *input, const char *path, struct findings *findings);

/* The same for SIZE bytes that are in memory already, a file or a stream, which must outlive
 * INPUT. */
int perf_input_view(struct perf_input *input, const char *path, const uint8_t *data, size_t size,
                    struct findings *findings);

void perf_input_close(struct perf_input *input);

#endif
