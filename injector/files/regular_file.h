/* Opening a regular file by an untrusted path. */
#ifndef PERFJIT_REGULAR_FILE_H
#define PERFJIT_REGULAR_FILE_H

#include <stddef.h>
#include <sys/stat.h>

/* Open PATH for reading, if it is a regular file or leads to one.  With O_NOFOLLOW in FLAGS it must
 * not be a link.  *STATUS is set to the status of the opened file.  Nothing else is opened: opening
 * a device can have effects, as with a watchdog or a tape, and the path may have been redirected to
 * one.  Returns a descriptor, or -1 with errno; ENXIO: it is no regular file; ELOOP: it is a
 * symbolic link that is not followed. */
int regular_file_open(const char *path, int flags, struct stat *status);

/* Read *BYTES of FD: less if the file has become shorter, and no more, because somebody may be
 * adding to it.  Returns 0 with their number, or -1 with errno. */
int regular_file_read(int fd, char *to, size_t *bytes);

/* The bytes of the regular file PATH, at most MOST, to be freed; or NULL with errno, EFBIG for
 * more. There is room for one more behind them. */
char *regular_file_bytes(const char *path, size_t most, size_t *bytes);

/* The text for that ERROR. */
const char *regular_file_error(int error);

#endif
