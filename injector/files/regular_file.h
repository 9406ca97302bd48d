/* Opening a regular file by an untrusted path. */
#ifndef PERFJIT_REGULAR_FILE_H
#define PERFJIT_REGULAR_FILE_H

#include <sys/stat.h>

/* Open PATH for reading, if it is a regular file, or leads to one, which with O_NOFOLLOW in FLAGS
 * it must not; *STATUS is set to what was opened.  Nothing else is opened: opening a device can
 * have effects, as with a watchdog or a tape, and the path may have been redirected to one. Returns
 * a descriptor, or -1 with errno; ENXIO: it is no regular file; ELOOP: it is a symbolic link that
 * is not followed. */
int regular_file_open(const char *path, int flags, struct stat *status);

/* What to say of that ERROR. */
const char *regular_file_error(int error);

#endif
