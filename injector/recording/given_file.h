/* A file of a process that somebody names by hand: FILE, or PID:FILE with the pid that the process
 * has in the recording. */
#ifndef PERFJIT_GIVEN_FILE_H
#define PERFJIT_GIVEN_FILE_H

#include <stdbool.h>
#include <stdint.h>

struct given_file {
    const char *text; /* as given */
    const char *path; /* in TEXT; "" if that ends with the colon */
    uint32_t pid;     /* 0: it is not said */
};

/* TEXT taken apart.  Text with any other character than digits before the colon is a path, and
 * 0:FILE as well. */
struct given_file given_file_of(const char *text);

#endif
