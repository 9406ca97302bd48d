/* The bytes of an input file, as they are when it is opened.
 *
 * Input is checked first and used afterwards, often much later: in between it must not change.  A
 * file that belongs to the user or to root, and that no other user may write, is mapped, which
 * costs no memory.  Any other is copied: its owner could change a length after it was checked.
 * Pages of zeros are not copied, and a file with more than 1 GiB of holes is refused.  Otherwise a
 * hole could make perfjit read terabytes.
 *
 * A mapped file may still become shorter, by the process that writes it: see interruption.h.
 */
#ifndef PERFJIT_FILE_BYTES_H
#define PERFJIT_FILE_BYTES_H

#include <stdbool.h>
#include <sys/stat.h>

/* Whether any user but root and the current one may write the file with STATUS. */
bool file_bytes_may_change(const struct stat *status);

/* The st_size bytes of the regular file FD, which is not empty, read-only; munmap releases them.
 * Bytes that were cut off the file since STATUS was taken read as zeros.  Returns NULL, with errno
 * set, on failure. */
const void *file_bytes(int fd, const struct stat *status);

/* The text for an ERROR of file_bytes. */
const char *file_bytes_error(int error);

#endif
