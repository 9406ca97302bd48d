/* The perf map of one process: opened, appended to and closed.
 *
 * A line is appended with one write(2), without a lock: a thread may be stopped anywhere, for any
 * time, and no other waits for it.  The kernel serialises writes to a file, and does not stop in
 * the middle of one.
 */
#ifndef PERFMAP_MAP_FILE_H
#define PERFMAP_MAP_FILE_H

#include "perfmap/map_error.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct map_file {
    struct map_file *parent; /* of the process that this one was forked from, or NULL */
    pid_t pid;               /* of its process */
    volatile uint32_t *mark; /* 1 in that process, 0 in those forked from it; NULL: go by the pid */
    struct map_error *first_error;
    _Atomic uint64_t *lost;
    _Atomic bool is_open;       /* opening has finished, with or without an error */
    _Atomic bool is_slow;       /* a thread has waited in vain for is_open; no other waits */
    _Atomic int error;          /* why nothing can be written any more, or 0 */
    _Atomic int fd;             /* -1 if there is none */
    _Atomic uint64_t lines;     /* our lines that should be in the file */
    _Atomic uint64_t end;       /* of the file, if no one has written since our last line */
    _Atomic uint64_t anchor;    /* the place of one of our lines (see map_file.c), or 0 */
    _Atomic bool has_others;    /* another JIT writes, or has written, to it */
    _Atomic bool others_append; /* other writers of this process have been made to append */
    dev_t device;
    ino_t inode;
    bool has_links; /* the file system counts links: 0 means removed */
    char path[];
};

/* A file not yet open, whose errors go to FIRST_ERROR and whose lost lines are counted in LOST.
 * NULL if there is no memory. */
struct map_file *pm_file_new(const char *dir, struct map_file *parent,
                             struct map_error *first_error, _Atomic uint64_t *lost);

/* Whether this process inherited FILE by fork. */
bool pm_file_is_inherited(const struct map_file *file);

/* By one thread, once.  Returns 0 or a negative errno, as the others do. */
int pm_file_open(struct map_file *file);

/* Append the BYTES at LINE.  The last byte, and the byte before LINE, are newlines. */
int pm_file_append(struct map_file *file, const char *line, size_t bytes);

/* Close it.  Does not return errors of earlier calls. */
int pm_file_close(struct map_file *file);

void pm_file_free(struct map_file *file);

#endif
