/* A file that appears whole or not at all: written under a temporary name beside its own, then
 * renamed.  The promise holds if the process dies, but not if the machine does: nothing is synced
 * (docs/decisions/output-files.md).  The name "-" stands for standard output: the file is kept in
 * memory, and the caller passes it on when it is whole. */
#ifndef PERFJIT_OUTPUT_FILE_H
#define PERFJIT_OUTPUT_FILE_H

#include "injector/findings/findings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct output_file {
    const char *path;
    char *temporary; /* NULL once renamed or removed */
    bool in_memory;  /* for standard output */
    const uint8_t *view;
    int fd;
    uint64_t size; /* bytes written so far */
    uint8_t *buffer;
    size_t buffered;
    uint64_t undo; /* undo_list.h */
};

/* The name of the thing at PATH that a file can't replace, in words; NULL: there is none. */
const char *output_file_obstacle(const char *path);

/* Begin to write PATH, which must outlive FILE.  Returns 0, or -1 with the failure text set. */
int output_file_open(struct output_file *file, const char *path, struct findings *findings);

/* Begin to write PATH, too, but as a file with the permissions that the umask allows, like a file
 * that a shell makes.  A file from output_file_open is readable by the user alone, as perf.data
 * is. */
int output_file_open_shared(struct output_file *file, const char *path, struct findings *findings);

/* Append.  Returns 0, or -1 with the failure text set. */
int output_file_write(struct output_file *file, const void *bytes, size_t count,
                      struct findings *findings);

/* Flush the written bytes to the file: later steps can't fail because the disk is full. */
int output_file_flush(struct output_file *file, struct findings *findings);

/* Overwrite COUNT bytes at OFFSET, which have been written before. */
int output_file_patch(struct output_file *file, uint64_t offset, const void *bytes, size_t count,
                      struct findings *findings);

/* The whole file, if it is in memory; NULL, with the failure text set, if it can't be read. */
const uint8_t *output_file_view(struct output_file *file, struct findings *findings);

/* Give the file its name, if it has one.  Returns 0, or -1 with the failure text set. */
int output_file_commit(struct output_file *file, struct findings *findings);

/* Release; files that were not committed are removed. */
void output_file_close(struct output_file *file);

#endif
