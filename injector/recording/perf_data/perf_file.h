/* A perf.data file, opened for reading: header, event attributes, where the sections are.
 *
 * The file is mapped; everything here and in perf_record.h is a view into that mapping.
 */
#ifndef PERFJIT_PERF_FILE_H
#define PERFJIT_PERF_FILE_H

#include "injector/findings/findings.h"
#include "injector/recording/perf_data/perf_features.h"
#include "injector/recording/perf_data/sample_format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perf_section {
    uint64_t offset;
    uint64_t size;
};

/* One event of the recording (an evsel). */
struct perf_event {
    struct sample_format format;
    uint32_t type; /* of the perf_event_attr */
    bool off_cpu;  /* perf record --off-cpu: its periods are the ns that threads waited */
    bool use_clockid;
    int32_t clockid;
    struct perf_section attr; /* its perf_event_attr */
    struct perf_section ids;  /* its event ids, u64 each */
};

struct perf_id {
    uint64_t id;
    uint32_t event;
};

struct perf_file {
    const char *path;
    const uint8_t *data; /* the mapped file */
    size_t size;
    bool mapped;         /* by perf_file_open */
    uint64_t written_ns; /* when it was last written to, by the wall clock; 0: not known */
    struct perf_event *events;
    size_t event_count;
    struct perf_id *ids; /* sorted by id; none where there is but one event */
    size_t id_count;
    bool one_layout;     /* all events have pid and time in the same places */
    size_t sample_id_at; /* where a SAMPLE tells its event's id; 0: nowhere, or there is but one */
    bool has_off_cpu;    /* some format has off_cpu */
    struct perf_section records;
    bool cut;       /* the file ends before its records do, which has been reported */
    bool untimed;   /* some samples or other records have no time (record_times.h) */
    bool scattered; /* attributes or ids stand after the records; perf inject -i - -o FILE does
                       that since 6.12 */
    struct perf_features features;
};

/* Open and map PATH, which must outlive FILE, and check everything but the records.  Returns 0, or
 * -1 with the failure text set.  Release with perf_file_close in either case. */
int perf_file_open(struct perf_file *file, const char *path, struct findings *findings);

/* The same for a file that is in memory already, which must outlive FILE and is not released by
 * perf_file_close.  Its records may be compressed. */
int perf_file_view(struct perf_file *file, const char *path, const uint8_t *data, size_t size,
                   struct findings *findings);

void perf_file_close(struct perf_file *file);

/* Find the event that has ID.  Returns false if none has. */
bool perf_file_event_of(const struct perf_file *file, uint64_t id, uint32_t *event);

bool perf_file_has_feature(const struct perf_file *file, unsigned bit);

/* The text of feature BIT without its NULs; NULL if FILE does not have it.  The feature must be a
 * text: u32 size, then the text with its NULs. */
const char *perf_file_string(const struct perf_file *file, unsigned bit, size_t *bytes);

/* Whether samples of some event contain call chains. */
bool perf_file_has_chains(const struct perf_file *file);

/* Whether samples of some event contain user stack memory, which perf unwinds when it reports. */
bool perf_file_has_stacks(const struct perf_file *file);

/* Whether times are times, and not the order of the records (record_times.h). */
bool perf_file_has_times(const struct perf_file *file);

/* Whether every event was recorded with -k CLOCKID. */
bool perf_file_uses_clock(const struct perf_file *file, int32_t clockid);

#endif
