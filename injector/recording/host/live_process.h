/* The data in /proc about a process of the recording that is still alive, and this program's own
 * place among those processes. */
#ifndef PERFJIT_LIVE_PROCESS_H
#define PERFJIT_LIVE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { LIVE_ROOT_BYTES = 64 };

struct live_process {
    uid_t uid;                /* effective */
    uint32_t namespace_pid;   /* its pid in its own pid namespace */
    uint64_t started_boot_ns; /* when it started, on CLOCK_BOOTTIME */
    uint64_t started_wall_ns; /* the same, on the wall clock */
    int64_t started_mono_ns;  /* the same, on CLOCK_MONOTONIC, which stands while the machine
                                 sleeps */
    bool other_root;          /* its root directory is not this program's */
    bool other_tmp;           /* its /tmp is not: in a container, or mounted for a service alone
                                 (systemd's PrivateTmp) */
};

/* Read the facts about PID in /proc.  Returns false if there is no such process, or one that began
 * after RECORDED_WALL_NS, the end of the recording: then the pid was reused. */
bool live_process_read(struct live_process *live, uint32_t pid, uint64_t recorded_wall_ns);

/* Whether process PID is there and has not ended.  A process that is about to end does not count,
 * though it can't be waited for yet: perf knows by then that it leaves. */
bool live_process_goes_on(uint32_t pid);

/* Whether PID lives in another mount namespace than this program, in which PATH is another file, or
 * none. */
bool live_process_hides(uint32_t pid, const char *path);

/* Write the path of PID's root directory into TEXT.  Returns TEXT. */
const char *live_process_root(char text[LIVE_ROOT_BYTES], uint32_t pid);

/* Whether PID lives, and has another root directory than this program. */
bool live_process_has_other_root(uint32_t pid);

/* The path, to be freed, by which this program finds PID's root directory; NULL: it is its own one,
 * or has no path here, as that of a container. */
char *live_process_root_here(uint32_t pid);

/* The inode of this program's own mount namespace; 0: it is not known. */
uint64_t live_process_own_mounts(void);

/* The process that PID is a child of now; 0: there is none, or no such process. */
uint32_t live_process_parent(uint32_t pid);

#endif
