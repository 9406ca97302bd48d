/* Runtimes that can't log their code for perf, whatever they are told. */
#ifndef PERFJIT_SILENT_RUNTIME_H
#define PERFJIT_SILENT_RUNTIME_H

#include "injector/recording/records.h"

/* The runtime that a process runs which maps the file PATH; NULL: none that is known as such. */
const char *silent_runtime(const char *path);

/* The first one that some process in RECORDS runs, and its pid; or NULL. */
const char *silent_runtime_in(const struct records *records, uint32_t *pid);

#endif
