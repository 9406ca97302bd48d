/* A file of a process that somebody names by hand: FILE, or PID:FILE with the pid that the process
 * has in the recording. */
#ifndef PERFJIT_GIVEN_FILE_H
#define PERFJIT_GIVEN_FILE_H

#include <stdbool.h>
#include <stdint.h>

struct given_file {
    const char *text; /* as it was said */
    const char *path; /* in TEXT; "" if that ends with the colon */
    uint32_t pid;     /* 0: it is not said */
};

/* TEXT taken apart.  With anything but digits before the colon it is a path, and so is 0:FILE. */
struct given_file given_file_of(const char *text);

#endif
