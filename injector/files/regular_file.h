/* Opening what is to be a regular file, by a path that somebody else chose. */
#ifndef PERFJIT_REGULAR_FILE_H
#define PERFJIT_REGULAR_FILE_H

#include <sys/stat.h>

/* Open PATH for reading, if it is a regular file, or leads to one; *STATUS is set to what was
 * opened.  Nothing else is opened: that can do something, as with a watchdog or a tape, and the
 * path may lead there by now.  Returns a descriptor, or -1 with errno; ENXIO: it is no regular
 * file. */
int regular_file_open(const char *path, struct stat *status);

#endif
