/* Where the fields of a tracepoint stand in the RAW of its samples: by the format that the kernel
 * tells, which perf record keeps as feature TRACING_DATA.  Among other things it has this text:
 *
 *     name: sched_switch
 *     ID: 316
 *     format:
 *             field:unsigned short common_type;       offset:0;       size:2; signed:0;
 *             ...
 *     print fmt: ...
 */
#ifndef PERFJIT_TRACE_FIELDS_H
#define PERFJIT_TRACE_FIELDS_H

#include "injector/recording/perf_data/perf_features.h"

struct trace_field {
    size_t offset, bytes; /* bytes 0: there is no such field */
};

/* The field NAME of the tracepoint EVENT, which has no system in front. */
struct trace_field trace_field_find(const struct perf_features *features, const char *event,
                                    const char *name);

/* Its value in RAW of SIZE bytes; 0 if RAW ends before, or the field is no number. */
uint64_t trace_field_value(const struct trace_field *field, const uint8_t *raw, size_t size);

#endif
