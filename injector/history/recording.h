/* A recording with the JIT code in it: the first stages of the pipeline, up to the timeline, which
 * inject and check share. */
#ifndef PERFJIT_RECORDING_H
#define PERFJIT_RECORDING_H

#include "injector/history/process/process_reading.h"
#include "injector/history/timeline/timeline.h"
#include "injector/recording/perf_data/perf_input.h"
#include "injector/text/help_text.h"

#include <argp.h>

/* The dumps and maps to read besides those that the recording names. */
struct recording_request {
    struct given_file *dumps;
    size_t dump_count, dump_capacity;
    struct given_file *perf_maps;
    size_t perf_map_count, perf_map_capacity;
    struct given_file *v8_logs;
    size_t v8_log_count, v8_log_capacity;
    const char *source_maps; /* where maps are as well, or NULL */
    bool no_source_maps;
    const char *root;
    bool no_perf_map;
    bool any_owner;
    bool no_lines; /* leave records of source lines alone */
    struct unwritten_source unwritten;
};

/* The keys of the options that fill it in. */
enum recording_option_key {
    KEY_ROOT = 512,
    KEY_PERF_MAP,
    KEY_NO_PERF_MAP,
    KEY_JITDUMP,
    KEY_V8_LOG,
    KEY_SOURCE_MAPS,
    KEY_NO_SOURCE_MAPS
};

/* For tables of argp's: which dumps and maps are read as well, and which are trusted. */
#define RECORDING_FILE_OPTIONS                                                                     \
    {"jitdump",                                                                                    \
     KEY_JITDUMP,                                                                                  \
     "[PID:]FILE",                                                                                 \
     0,                                                                                            \
     "Read this dump too: one that was moved, or that the input does not name.  PID: it is of "    \
     "this process",                                                                               \
     0},                                                                                           \
        {"perf-map",                                                                               \
         KEY_PERF_MAP,                                                                             \
         "[PID:]FILE",                                                                             \
         0,                                                                                        \
         "Read this perf map too, for the process whose pid is in its name (perf-<pid>.map), or "  \
         "PID",                                                                                    \
         0},                                                                                       \
        {"v8-log",                                                                                 \
         KEY_V8_LOG,                                                                               \
         "FILE|DIR",                                                                               \
         0,                                                                                        \
         "Take the calls that V8 inlined from its code log: node --log-code --logfile=DIR/v8.log", \
         0},                                                                                       \
        {"source-maps",                                                                            \
         KEY_SOURCE_MAPS,                                                                          \
         "DIR",                                                                                    \
         0,                                                                                        \
         "Look for source maps of scripts in DIR as well: DIR/app.js.map",                         \
         0},                                                                                       \
        {"no-source-maps",                                                                         \
         KEY_NO_SOURCE_MAPS,                                                                       \
         0,                                                                                        \
         0,                                                                                        \
         "Show scripts as they were generated, not what they were made of",                        \
         0},                                                                                       \
    {                                                                                              \
        "root", KEY_ROOT, "DIR", 0,                                                                \
            "Where the root file system of the processes is: a container's, or a copy of another " \
            "machine's",                                                                           \
            0                                                                                      \
    }
#define RECORDING_TRUST_OPTIONS                                                                    \
    {"no-perf-map",                                                                                \
     KEY_NO_PERF_MAP,                                                                              \
     0,                                                                                            \
     0,                                                                                            \
     "Read no perf map (/tmp/perf-<pid>.map) but those given with --perf-map",                     \
     0},                                                                                           \
    {                                                                                              \
        "force", 'f', 0, 0,                                                                        \
            "Read dumps that belong to another user: neither to you, nor to root, nor to the "     \
            "owner of the input",                                                                  \
            0                                                                                      \
    }

/* Take an option.  Returns as an argp parser: 0, ENOMEM, or ARGP_ERR_UNKNOWN for a key that is not
 * its own. */
error_t recording_request_take(struct recording_request *request, int key, char *argument);

/* Add the dump PATH.  Returns 0 or ENOMEM. */
error_t recording_request_add_dump(struct recording_request *request, const char *path);

/* Whether it names dumps or maps. */
bool recording_request_gives(const struct recording_request *request);

void recording_request_free(struct recording_request *request);

/* All data made from a recording, in the order in which it is made. */
struct recording {
    struct perf_input input;
    struct records records;
    struct jit_processes processes;
    struct timeline *timelines; /* one a process */
    struct findings_mark mark;  /* when the input was open */
};

/* Read PATH, and the dumps and maps of its processes.  Release with recording_free in any case. */
enum recording_result recording_open(struct recording *recording, const char *path,
                                     const struct recording_request *request,
                                     struct findings *findings);

/* The same of the SIZE bytes of a recording that is in memory, which must outlive RECORDING. */
enum recording_result recording_view(struct recording *recording, const char *path,
                                     const uint8_t *bytes, size_t size,
                                     const struct recording_request *request,
                                     struct findings *findings);

/* Make the names of all JIT functions fit for ELF files (code_log_print_names), before the code is
 * played.  Returns 0, or -1 with the failure text set. */
int recording_print_names(struct recording *recording, struct findings *findings);
/* Whether a run over RECORDING that failed may begin anew, without the dumps that became shorter
 * meanwhile (interruption.h).  All that was made of its input is released, with the dumps, and what
 * was found in them is forgotten.  The input stays open, as a stream can't be read twice:
 * recording_open goes on with it. */
bool recording_begin_anew(struct recording *recording, struct findings *findings);

/* Play the timelines; of no process if there is no code.  Returns 0, or -1 with the failure text
 * set. */
int recording_play(struct recording *recording, struct findings *findings);

void recording_free(struct recording *recording);

#endif
