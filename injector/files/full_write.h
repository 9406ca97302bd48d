/* write(2) for all of the bytes. */
#ifndef PERFJIT_FULL_WRITE_H
#define PERFJIT_FULL_WRITE_H

#include <stddef.h>
#include <sys/types.h>

#define WRITE_WHERE_IT_STANDS ((off_t)-1)

/* Write the COUNT BYTES into FD at OFFSET, or at its own one, which moves on.  Returns 0, or -1
 * with errno; with EINTR only if interruption_check says more. */
int full_write(int fd, off_t offset, const void *bytes, size_t count);

#endif
