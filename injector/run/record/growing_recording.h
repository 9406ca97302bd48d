/* The contents of a recording while perf still writes it: the number of samples, the processes, and
 * the dumps with the functions in them. */
#ifndef PERFJIT_GROWING_RECORDING_H
#define PERFJIT_GROWING_RECORDING_H

#include "injector/recording/losses.h"
#include "injector/recording/perf_data/perf_format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GROWING_PIDS = 1 << 22 }; /* the kernel's most */

/* A dump that a process mapped. */
struct growing_dump {
    char *path;
    uint32_t pid;
    uint64_t offset;       /* of the first record that was not counted yet; 0: nothing was read */
    uint32_t major, minor; /* of the device; garbage where perf has a build ID in their place */
    uint64_t inode;
};

struct growing_recording {
    int fd; /* -1: it is not open yet */
    const char *path;
    uint64_t offset; /* of the first record that was not read yet */
    struct losses losses;
    uint64_t functions;
    struct growing_dump *dumps;
    size_t dump_count, dump_capacity;
    bool ran_python; /* 3.12 or later, which can log */
    uint8_t *pids;   /* a bit for each that had a COMM or FORK; NULL: there was none */
};

/* Begin with PATH, which must outlive RECORDING, and need not be there yet. */
void growing_recording_begin(struct growing_recording *recording, const char *path);

/* Read the new records. */
void growing_recording_read(struct growing_recording *recording);

/* Count the functions that were logged since, in all dumps. */
void growing_recording_read_dumps(struct growing_recording *recording);

/* Add a process that perf may not have come to write down. */
void growing_recording_add_pid(struct growing_recording *recording, uint32_t pid);

/* Its files are not this run's. */
void growing_recording_forget_pid(struct growing_recording *recording, uint32_t pid);

bool growing_recording_has_pid(const struct growing_recording *recording, uint32_t pid);

/* How many of its processes still run; one of them is *PID then. */
size_t growing_recording_living(const struct growing_recording *recording, uint32_t *pid);

void growing_recording_free(struct growing_recording *recording);

#endif
