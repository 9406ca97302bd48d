/* The records that are added to a profile, and the begin and end that all of them have. */
#ifndef PERFJIT_ADDED_RECORD_H
#define PERFJIT_ADDED_RECORD_H

#include "injector/history/timeline/timeline.h"
#include "injector/inject/image/image_name.h"
#include "injector/inject/layout/image_plan.h"
#include "injector/recording/thread_list.h"
#include "jitdump/format/byte_sink.h"

/* Beyond the kinds of change. */
enum {
    ADDED_TABLES = CHANGE_MAP + 1, /* the map through which an image's unwind tables are read */
    ADDED_BASE,                    /* the map of an image's beginning (recording_merge.c) */
    ADDED_COMM,       /* no maps from here on, but records that make perf forget how it unwound: see
                       * unwinder_reset.h */
    ADDED_CLONE,      /* the thread forks an invented process */
    ADDED_RETURN,     /* which forks the process again */
    ADDED_THREAD,     /* which makes the thread again */
    ADDED_NAME,       /* and names it (thread_names.h) */
    ADDED_NAMESPACES, /* and puts it where event START of the thread list says */
    ADDED_EXIT,       /* the thread, which had ended before, ends again */
};

struct added_record {
    uint64_t time_ns;
    uint64_t start, end; /* of a map; start also is the event that ADDED_NAME and others repeat */
    uint64_t pgoff;      /* of a map */
    uint32_t process;    /* index */
    uint32_t tid;        /* of a thread of the process that lives then */
    uint32_t kind;       /* enum change_kind, or one of those above */
    uint32_t index;      /* of the image, or of the process's map */
    uint32_t sequence;   /* in which order they were added */
};

struct added_records {
    struct added_record *items; /* by time, once they are sorted */
    size_t count, capacity;
};

/* Add one.  Returns 0, or -1 without memory. */
int added_records_append(struct added_records *added, struct added_record record);

/* Bring the records of several processes into time order. */
void added_records_sort(struct added_records *added);

void added_records_free(struct added_records *added);

/* Everything that a record's bytes are made from. */
struct added_record_source {
    const struct records *records;
    const struct jit_process *processes;
    const struct image_plan *plan;
    const char *dso_dir; /* absolute */
    const struct thread_list *threads;
    struct named_image named;
};

/* Put the header of a record of TYPE; MISC beside the bit for user space.  Returns where it
 * begins. */
size_t added_record_begin(struct byte_sink *sink, uint32_t type, uint16_t misc);

/* Put the sample_id that TRAILER_RECORD, a record that perf wrote for the same process, has: with
 * RECORD's process and time. */
void added_record_trailer(struct byte_sink *sink, const struct added_record *record,
                          const struct added_record_source *source,
                          const struct perf_record *trailer_record);

/* Set the size of the record that begins at START.  Returns 0, or -1 if it is too long. */
int added_record_end(struct byte_sink *sink, size_t start);

#endif
