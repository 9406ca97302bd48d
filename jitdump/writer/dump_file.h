/* The dump of one process: its place, its creation, the mapping by which perf finds it (its
 * marker), and its end. */
#ifndef JITDUMP_DUMP_FILE_H
#define JITDUMP_DUMP_FILE_H

#include "jitdump/disk/dump_place.h"
#include "jitdump/guest/first_error.h"
#include "jitdump/guest/fork_mark.h"
#include "jitdump/writer/dump_writer.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct dump_marker {
    void *at; /* NULL: none */
    size_t bytes;
};

struct dump_file {
    struct dump_file *parent; /* of the process that this one was forked from, or NULL */
    struct fork_mark fork_mark;
    pid_t pid;
    atomic_bool open;
    uint64_t first_code_index;      /* those below are of dumps that have ended */
    bool ended;                     /* by jd_file_end */
    struct dump_file *next_retired; /* in the list of files that have ended */
    void *keeper; /* memory that place.dir and writer.error are in, freed with the file; or NULL */
    struct failure open_failure; /* of the last attempt to open it; under the body's lock */
    struct dump_marker marker, stage_marker;
    struct dump_writer writer;
    struct dump_place place;
    struct dump_paths paths; /* unchanged once the file is open */
    char path[];             /* the body's, followed by the stage's */
};

/* Properties that the dumps of a process and its children share. */
struct dump_kind {
    uint32_t elf_mach;
    bool counter;       /* records are stamped with the CPU's counter */
    bool unmapped;      /* no stage, but a write for each record */
    uint64_t max_bytes; /* of both files; 0: any */
    bool ring;          /* old records make room for new ones */
};

/* This process's file in DIR, which must outlive it, or beside other dumps there (dump_place.h),
 * not open yet.  A child's code indices continue from PARENT's.  Returns NULL if there is no
 * memory. ERROR must outlive it, and receives the texts. */
struct dump_file *jd_file_new(const char *dir, struct dump_file *parent, struct first_error *error);

/* Create the file with its header and marker, unless that is done already.  Threads: any number at
 * once.  Returns 0 or a negative errno, and then leaves nothing in the directory; after a failure
 * it is not retried immediately. */
int jd_file_create(struct dump_file *file, const struct dump_kind *kind);

/* The same, for each record: usually it is open already. */
static inline int jd_file_open(struct dump_file *file, const struct dump_kind *kind)
{
    bool open = atomic_load_explicit(&file->open, memory_order_acquire);
    return open ? 0 : jd_file_create(file, kind);
}

/* In a forked child: release inherited resources.  The parent's file is left alone.  Does nothing
 * the second time. */
void jd_file_disown(struct dump_file *file);

/* Write the closing record and close an open file; disown an inherited one.  Returns 0 or a
 * negative errno. */
int jd_file_close(struct dump_file *file);

/* The same while other threads may be in calls on it, or come later: their records fail with
 * -ESHUTDOWN.  FILE must not be freed before they have left.  Returns -EAGAIN, with nothing
 * closed, if a thread is stopped in such a call: then jd_file_close does it later. */
int jd_file_end(struct dump_file *file);

void jd_file_free(struct dump_file *file);

#endif
