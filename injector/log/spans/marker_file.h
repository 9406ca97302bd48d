/* Spans of a program's own time: requests, jobs, phases.  The program writes them to a text file,
 * as samply reads it, a line for each:
 *
 *     START_NS END_NS NAME
 *
 * in the recording's clock, and maps the file, so that the recording names it:
 *     marker-PID.txt        spans of a process
 *     marker-PID-TID.txt    spans of one of its threads
 */
#ifndef PERFJIT_MARKER_FILE_H
#define PERFJIT_MARKER_FILE_H

#include "injector/recording/records.h"

/* Behind a recording's path: the folder where perfjit record keeps the marker files of a run. */
#define MARKER_FOLDER_ENDING ".spans"

struct marker_span {
    uint64_t from_ns, to_ns;
    uint32_t pid, tid; /* pid 0: of any process; tid 0: of all threads of the process */
    const char *name;
    size_t name_bytes;
};

struct marker_spans {
    struct marker_span *items;
    size_t count, capacity;
    char **texts; /* that the names stand in */
    size_t text_count, text_capacity;
    size_t wrong_lines; /* that are no spans */
};

/* Add the spans in the BYTES of TEXT, which SPANS owns from then on, of PID and TID.  Lines that
 * are no spans are counted.  Returns 0, or -1 without memory. */
int marker_spans_add(struct marker_spans *spans, char *text, size_t bytes, uint32_t pid,
                     uint32_t tid);

/* Whether the file's NAME, a path, is that of a marker file, of the process and thread that it
 * says; *TID 0: it says none. */
bool marker_file_named(const char *name, uint32_t *pid, uint32_t *tid);

/* Read the marker files that RECORDS names, as they were kept beside the recording, or are below
 * ROOT (NULL: this machine's), and GIVEN (NULL: none), which must be there.  Returns 0, or -1 with
 * the failure text set. Release with marker_spans_free in either case. */
int marker_spans_read(struct marker_spans *spans, const struct records *records, const char *root,
                      const char *given, struct findings *findings);

void marker_spans_free(struct marker_spans *spans);

#endif
