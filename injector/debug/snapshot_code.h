/* A process at one moment, with the JIT code that is alive in it then: the input of bt, symbols and
 * gdb.  The process is that of a core, or one that runs. */
#ifndef PERFJIT_SNAPSHOT_CODE_H
#define PERFJIT_SNAPSHOT_CODE_H

#include "injector/debug/snapshot/snapshot.h"
#include "injector/history/recording.h"

struct snapshot_request {
    const char *core;
    uint32_t pid;   /* if there is no core; 0: of the first dump that is given */
    uint64_t at_ns; /* on the dump's clock; 0: at the end of all, or now */
    struct recording_request recording;
    bool verbose;
};

/* The keys of the options that fill it in. */
enum snapshot_option_key { KEY_SNAPSHOT_AT = 768 };

/* For the tables of the commands that have them: whose code, and where its dumps are. */
#define SNAPSHOT_PROCESS_OPTIONS                                                                   \
    OPTION_GROUP("Process:"),                                                                      \
        {"pid", 'p', "PID", 0, "The process with this pid, which goes on", 0},                     \
    {                                                                                              \
        "at", KEY_SNAPSHOT_AT, "TIME", 0,                                                          \
            "The code at this time of its dump, in ns, as perfjit dump prints it (default: after " \
            "all that was logged)",                                                                \
            0                                                                                      \
    }
#define SNAPSHOT_FILE_OPTIONS                                                                      \
    OPTION_GROUP("Dumps and perf maps:"), RECORDING_FILE_OPTIONS, RECORDING_TRUST_OPTIONS,         \
        OPTION_GROUP("Messages:"), OPTION_VERBOSE
#define SNAPSHOT_DOC "The dumps are found through the process's mappings.\n\n"

/* Take an option of these.  Returns as an argp parser. */
error_t snapshot_request_take(struct snapshot_request *request, int key, char *argument,
                              struct argp_state *state);

void snapshot_request_free(struct snapshot_request *request);

struct snapshot_code {
    struct snapshot snapshot;
    struct memory_file bytes; /* of the recording */
    struct recording recording;
    uint64_t time_ns;
    char live_path[32];
    char *none; /* why there is no JIT code that is known; NULL: there is */
};

/* Take the snapshot, with the threads' STACKS if they are wanted, read its dumps and maps, and play
 * the timeline.  Returns 0, or -1 with the failure text set.  That there is neither dump nor map is
 * no failure: code->none says why then.  Release with snapshot_code_close in either case. */
int snapshot_code_open(struct snapshot_code *code, const struct snapshot_request *request,
                       bool stacks, struct findings *findings);

void snapshot_code_close(struct snapshot_code *code);

#endif
