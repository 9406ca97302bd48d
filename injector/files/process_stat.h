/* /proc/PID/stat, "PID (NAME) STATE PARENT ...", whose words are numbered from 1, as in proc(5). */
#ifndef PERFJIT_PROCESS_STAT_H
#define PERFJIT_PROCESS_STAT_H

#include <sys/types.h>

enum process_stat_word {
    PROCESS_STATE = 3,
    PROCESS_PARENT = 4,
    PROCESS_FLAGS = 9,  /* the kernel's */
    PROCESS_START = 22, /* in clock ticks since boot */
};

enum { PROCESS_STAT_BYTES = 1024 };

/* Read that of PID into LINE.  Returns its words from the state on; NULL: there is no such
 * process. */
const char *process_stat_read(char line[PROCESS_STAT_BYTES], pid_t pid);

/* Where WORD begins in what process_stat_read returned, or NULL. */
const char *process_stat_word(const char *words, enum process_stat_word word);

#endif
