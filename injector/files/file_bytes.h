/* The bytes of an input file, as they are when it is opened.
 *
 * What is read is checked first and used afterwards, often much later: in between it must stay as
 * it is.  A file of one's own, or of root, that nobody else may write is mapped, which costs no
 * memory.  Any other is copied: its owner could change a length behind the check's back.  Pages of
 * zeros are not copied, and a file of which more than 1 GiB is not on the disk is refused, so that
 * nobody can have terabytes read by making a hole.
 *
 * A mapped file may still become shorter, by the process that writes it: see interruption.h.
 */
#ifndef PERFJIT_FILE_BYTES_H
#define PERFJIT_FILE_BYTES_H

#include <stdbool.h>
#include <sys/stat.h>

/* Whether somebody other than root and who runs this may write the file with STATUS. */
bool file_bytes_may_change(const struct stat *status);

/* The st_size bytes of the regular file FD, which is not empty, read-only; munmap releases them.
 * What was cut from it since STATUS was taken reads as zeros.  Returns NULL, with errno set, on
 * failure. */
const void *file_bytes(int fd, const struct stat *status);

/* What the ERROR of file_bytes means. */
const char *file_bytes_error(int error);

#endif
