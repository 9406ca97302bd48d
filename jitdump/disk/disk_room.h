/* Disk blocks, allocated before they are written through a mapping.
 *
 * A store to a mapped page for which the disk has no block raises SIGBUS.  So the blocks are
 * allocated first, and a full disk is an error that a function returns.
 */
#ifndef JITDUMP_DISK_ROOM_H
#define JITDUMP_DISK_ROOM_H

#include <stdbool.h>
#include <stdint.h>

/* Extend the file FD from FILE_END to TO, with allocated blocks of zeros in [FROM, TO) and none
 * between FILE_END and FROM.
 *
 * Returns 0 or a negative errno: -ENOSPC, -EDQUOT, -EIO, or -EFBIG beyond RLIMIT_FSIZE, for which
 * no SIGXFSZ is raised.  Then the file is as long as before, if the disk allows it. */
int jd_disk_room(int fd, uint64_t file_end, uint64_t from, uint64_t to);

/* Whether new blocks of the file FD cost less if one call reserves them right before a large write.
 * So it is on ext4: otherwise it looks for each block of 4 KiB separately. */
bool jd_disk_reserves_cheaply(int fd);

/* Reserve blocks for [FROM, TO), which are about to be written.  If that fails, the write
 * will report it. */
void jd_disk_reserve(int fd, uint64_t from, uint64_t to);

/* Whether the disk of the file FD may have room for BYTES more; false only if it says that it does
 * not. */
bool jd_disk_may_hold(int fd, uint64_t bytes);

/* Free the blocks in [FROM, TO) of the file FD, if its file system can; they read as zeros then. */
void jd_disk_give_back(int fd, uint64_t from, uint64_t to);

/* Make the file system write the new, empty file FD in place.  Otherwise btrfs allocates a new
 * block for each change, and has none when the disk is full.  Others lack that setting, and don't
 * need it. */
void jd_disk_write_in_place(int fd);

/* Whether a page of the file FD with an allocated block can always be stored to again: not on a
 * btrfs with quotas, whether this one is exhausted or not. */
bool jd_disk_keeps_room(int fd);

/* The process's file size limit (RLIMIT_FSIZE), which may change at any time. */
uint64_t jd_file_size_limit(void);

#endif
