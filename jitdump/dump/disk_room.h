/* Room on the disk, taken before it is written through a mapping.
 *
 * A store into a mapped page for which the disk has no block is a SIGBUS.  So the blocks come
 * first, and a full disk is an error that a function returns.
 */
#ifndef JITDUMP_DISK_ROOM_H
#define JITDUMP_DISK_ROOM_H

#include <stdbool.h>
#include <stdint.h>

/* Make the file FD, whose end is at FILE_END, reach TO, with zeros on blocks of its own in [FROM,
 * TO).  Between FILE_END and FROM it takes none.
 *
 * Returns 0 or a negative errno: -ENOSPC, -EDQUOT, -EIO, or -EFBIG beyond RLIMIT_FSIZE, for which
 * no SIGXFSZ is raised.  The file is as long as before then, if the disk lets it be. */
int jd_disk_room(int fd, uint64_t file_end, uint64_t from, uint64_t to);

/* Whether new blocks of the file FD cost less if they are reserved in one go right before a large
 * write takes them: on ext4, which else looks for each block of 4 KiB by itself. */
bool jd_disk_reserves_cheaply(int fd);

/* Reserve blocks for [FROM, TO), which are about to be written.  If that fails, it is for the write
 * to say so. */
void jd_disk_reserve(int fd, uint64_t from, uint64_t to);

/* Whether the disk of the file FD may have room for BYTES more; false only if it says that it has
 * not. */
bool jd_disk_may_hold(int fd, uint64_t bytes);

/* Take the blocks in [FROM, TO) from the file FD, if its file system can: what stood there is zeros
 * then. */
void jd_disk_give_back(int fd, uint64_t from, uint64_t to);

/* Have the new, empty file FD written in place, also by a file system (btrfs) that takes a new
 * block for each change and has none when the disk is full.  Others do not know of that, and need
 * not. */
void jd_disk_write_in_place(int fd);

/* Whether a page of the file FD that has its block can always be stored to again: not on a btrfs
 * with quotas, whether this one is used up or not. */
bool jd_disk_keeps_room(int fd);

/* The most that a file may have by its process's limit (RLIMIT_FSIZE), which may change at any
 * time. */
uint64_t jd_file_size_limit(void);

#endif
