/* See disk_room.h. */
#include "jitdump/disk/disk_room.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <unistd.h>

/* The type of the requests differs between libcs: glibc's is unsigned, musl's is POSIX's. */
#ifdef __GLIBC__
typedef unsigned long ioctl_request;
#else
typedef int ioctl_request;
#endif

uint64_t jd_file_size_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return INT64_MAX;
    return limit.rlim_cur;
}

enum { ZEROS_BYTES = 4096, ZEROS_AT_ONCE = 64 };

/* Large writes, because the page cache then takes its memory in large pieces. */
static ssize_t write_zeros_once(int fd, uint64_t from, uint64_t bytes)
{
    static const char zeros[ZEROS_BYTES];
    struct iovec pieces[ZEROS_AT_ONCE];
    int count = 0;
    for (; bytes > 0 && count < ZEROS_AT_ONCE; count++) {
        pieces[count].iov_base = (void *)(uintptr_t)zeros; /* only read from */
        pieces[count].iov_len = bytes < ZEROS_BYTES ? (size_t)bytes : ZEROS_BYTES;
        bytes -= pieces[count].iov_len;
    }
    return pwritev(fd, pieces, count, (off_t)from);
}

static int write_zeros(int fd, uint64_t from, uint64_t to)
{
    while (from < to) {
        ssize_t written = write_zeros_once(fd, from, to - from);
        if (written < 0 && errno != EINTR)
            return -errno;
        if (written > 0)
            from += (uint64_t)written;
    }
    return 0;
}

static bool says_that_there_is_no_room(int error)
{
    return error == ENOSPC || error == EDQUOT || error == EFBIG || error == EIO;
}

/* fallocate guarantees the blocks; and if zeros were written, the pages are present when mapped.
 *
 * Zeros are written instead if there is no fallocate (NFS 3, FUSE), if a sandbox refuses it, or if
 * a signal interrupted it. tmpfs starts again from nothing after a signal, and would never end
 * under a profiler that sends a signal every millisecond. */
static int take_blocks(int fd, uint64_t from, uint64_t to)
{
    bool promised = fallocate(fd, 0, (off_t)from, (off_t)(to - from)) == 0;
    if (!promised && says_that_there_is_no_room(errno))
        return -errno;
    return write_zeros(fd, from, to);
}

int jd_disk_room(int fd, uint64_t file_end, uint64_t from, uint64_t to)
{
    if (to > jd_file_size_limit())
        return -EFBIG;
    int error = take_blocks(fd, from, to);
    /* Give back the blocks that were allocated before the disk was full.  If that fails, the zeros
     * do no harm.
     */
    if (error && ftruncate(fd, (off_t)file_end) != 0)
        return error;
    return error;
}

/* Times for 363 bytes with 1 MiB at a time, on Linux 6.18. ext4, also below an overlay: 66 instead
 * of 92 ns, and 194 instead of 220 until the bytes are on the disk. xfs: 41 instead of 37. btrfs:
 * 344 instead of 356. tmpfs: 156 instead of 139. */
bool jd_disk_reserves_cheaply(int fd)
{
    struct statfs status;
    return fstatfs(fd, &status) == 0 &&
           (status.f_type == EXT4_SUPER_MAGIC || status.f_type == OVERLAYFS_SUPER_MAGIC);
}

void jd_disk_reserve(int fd, uint64_t from, uint64_t to)
{
    (void)!fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)from, (off_t)(to - from));
}

bool jd_disk_may_hold(int fd, uint64_t bytes)
{
    struct statfs status;
    /* A tmpfs without a limit reports no blocks at all. */
    return fstatfs(fd, &status) != 0 || status.f_blocks == 0 || status.f_bsize <= 0 ||
           bytes / (uint64_t)status.f_bsize <= status.f_bfree;
}

void jd_disk_give_back(int fd, uint64_t from, uint64_t to)
{
    (void)!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from,
                     (off_t)(to - from));
}

void jd_disk_write_in_place(int fd)
{
#ifdef FS_NOCOW_FL
    int flags;
    if (ioctl(fd, (ioctl_request)FS_IOC_GETFLAGS, &flags) != 0)
        return;
    flags |= FS_NOCOW_FL;
    (void)!ioctl(fd, (ioctl_request)FS_IOC_SETFLAGS, &flags);
#else
    (void)fd;
#endif
}

/* btrfs asks its quota again for the metadata of a page that was written back.  If quotas are
 * counted, Linux has a directory of them since 5.9. */
bool jd_disk_keeps_room(int fd)
{
    struct btrfs_ioctl_fs_info_args info = {0};
    char path[] = "/sys/fs/btrfs/00000000-0000-0000-0000-000000000000/qgroups";
    struct statfs status;
    if (fstatfs(fd, &status) != 0 || (uint32_t)status.f_type != BTRFS_SUPER_MAGIC ||
        ioctl(fd, (ioctl_request)BTRFS_IOC_FS_INFO, &info) != 0)
        return true;
    size_t at = sizeof "/sys/fs/btrfs/" - 1;
    for (size_t i = 0; i < sizeof info.fsid; i++, at += 2) {
        at += path[at] == '-';
        path[at] = "0123456789abcdef"[info.fsid[i] >> 4];
        path[at + 1] = "0123456789abcdef"[info.fsid[i] & 15];
    }
    return access(path, F_OK) != 0;
}
