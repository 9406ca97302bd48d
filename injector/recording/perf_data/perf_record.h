/* The records of a perf.data file, one after another, and those of their fields that are needed
 * here. */
#ifndef PERFJIT_PERF_RECORD_H
#define PERFJIT_PERF_RECORD_H

#include "injector/recording/perf_data/perf_file.h"

/* A view of one record. */
struct perf_record {
    const uint8_t *bytes;
    uint64_t offset; /* in the file */
    uint64_t number; /* from 0 */
    uint64_t span;   /* bytes to the next record: size, and an AUXTRACE's payload */
    uint32_t type;
    uint16_t misc;
    uint16_t size;
};

struct perf_walk {
    const struct perf_file *file;
    uint64_t offset; /* of the next record */
    uint64_t number;
};

/* The fields of an MMAP or MMAP2 record. */
struct perf_map {
    uint32_t pid;
    uint32_t tid;
    uint64_t start;
    uint64_t len;
    uint64_t pgoff;
    const char *filename; /* in the record */
    bool data;            /* a mapping without PROT_EXEC */
    bool has_inode; /* the next three are known; else it is an MMAP, or memory, or has a build-id in
                       their place */
    uint32_t maj, min;
    const uint8_t *build_id; /* in the record; NULL: it has none */
    size_t build_id_bytes;
    uint64_t ino;
    uint64_t
        generation; /* of the inode; 0: unknown, as where perf synthesized the record from /proc */
    uint32_t prot, flags; /* of mmap(2); 0 in an MMAP */
};

/* The fields of a COMM, FORK or EXIT record; those that a COMM does not have are 0. */
struct perf_task {
    uint32_t pid, tid;
    uint32_t parent_pid, parent_tid;
    uint64_t time_ns; /* the sample_id's; without one, FORK's and EXIT's own; else 0 */
};

struct perf_walk perf_walk_begin(const struct perf_file *file);

/* The next record into *RECORD.  Returns false at the end, and at damage, which is reported to
 * FINDINGS; NULL: it was when the recording was read first. */
bool perf_walk_next(struct perf_walk *walk, struct perf_record *record, struct findings *findings);

/* The record at OFFSET of the file, which has been walked over before. */
struct perf_record perf_record_at(const struct perf_file *file, uint64_t offset);

/* The time of a record, on perf's clock.  Returns false if it has none. */
bool perf_record_time(const struct perf_file *file, const struct perf_record *record,
                      uint64_t *time_ns);

/* The format of RECORD, or NULL: by its IDENTIFIER, first in a SAMPLE and last elsewhere, if places
 * differ. */
const struct sample_format *perf_record_format_of_id(const struct perf_file *file,
                                                     const struct perf_record *record);
static inline const struct sample_format *perf_record_format(const struct perf_file *file,
                                                             const struct perf_record *record)
{
    return file->one_layout ? &file->events[0].format : perf_record_format_of_id(file, record);
}

/* One of the first fields of the SAMPLE RECORD, as it was recorded.  Returns false if it has none.
 * FORMAT may be NULL. */
static inline bool perf_record_front_of(const struct sample_format *format,
                                        const struct perf_record *record, enum sample_field field,
                                        uint64_t *value)
{
    if (!format || !format->front[field] || record->size < format->front[field] + 8u)
        return false;
    *value = perf_get_u64(record->bytes + format->front[field]);
    return true;
}

static inline bool perf_record_front(const struct perf_file *file, const struct perf_record *record,
                                     enum sample_field field, uint64_t *value)
{
    return perf_record_front_of(perf_record_format(file, record), record, field, value);
}

/* The sample_id at the end of a record that is not a SAMPLE; *FORMAT describes it.  NULL: none. */
const uint8_t *perf_record_trailer(const struct perf_file *file, const struct perf_record *record,
                                   const struct sample_format **format);

/* Whether RECORD is an MMAP or MMAP2. */
bool perf_record_is_map(const struct perf_record *record);

/* The build-id of the mapped file, of *SIZE bytes (1 to PERF_BUILD_ID_BYTES), in RECORD.  NULL:
 * RECORD is not a map, or has none. */
const uint8_t *perf_record_build_id(const struct perf_record *record, size_t *size);

/* Read an MMAP or MMAP2 record.  Returns false if RECORD is neither, or broken. */
bool perf_record_map(const struct perf_file *file, const struct perf_record *record,
                     struct perf_map *map);

/* Read a COMM, FORK or EXIT record.  Returns false if RECORD is none of them, or too short. */
bool perf_record_task(const struct perf_file *file, const struct perf_record *record,
                      struct perf_task *task);

/* An order of the files that are mapped, as of strcmp: by inode or build-id where both maps tell
 * it, and by name. */
int perf_map_compare_files(const struct perf_map *a, const struct perf_map *b);

/* How long a map's FILENAME is without the " (deleted)" that /proc/PID/maps appends to the names of
 * removed files. */
size_t perf_map_name_length(const char *filename);

/* Whether the last parts of the two paths are equal, but for that. */
bool perf_map_same_name(const char *filename, const char *other);

/* Whether MAP is memory without a file, such as a JIT's arena: by the name that the kernel gives
 * it, FILENAME, or because it is of huge pages. */
bool perf_map_is_memory(const struct perf_map *map);
bool perf_map_name_is_memory(const char *filename);

/* Whether it also has no name but one that a program gave it (prctl). */
bool perf_map_is_anonymous(const struct perf_map *map);

/* Whether MAP, of a file, may be such an arena by its name: in /dev/shm, or removed.
 */
bool perf_map_is_shared_memory(const struct perf_map *map);

/* Whether a runtime may write code into MAP: memory, or a file that is such by its name, shared, or
 * writable.  Of a program or library nothing of that is so. */
bool perf_map_may_hold_code(const struct perf_map *map);

#endif
