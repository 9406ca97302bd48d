/* What a file system says of one file besides its contents: whose it is, and which of those that
 * had its inode.  A unit needs neither root to give files away nor a disk on which inodes have
 * generations. */
#ifndef PERFJIT_TEST_FILE_STAND_IN_H
#define PERFJIT_TEST_FILE_STAND_IN_H

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
    ino_t inode; /* of the file whose owner is another; 0: none */
    uid_t owner;
    bool have_generations; /* of all files, as the next two */
    uint32_t generation;
    uint64_t born_ns; /* 0: it is not known */
} these_files;

/* From here on PATH is OWNER's, as its reader sees it. */
__attribute__((unused)) static void give_away(const char *path, uid_t owner)
{
    struct stat status;
    these_files.inode = stat(path, &status) == 0 ? status.st_ino : 0;
    these_files.owner = owner;
}

int fstat(int fd, struct stat *status)
{
    int result = fstatat(fd, "", status, AT_EMPTY_PATH);
    if (result == 0 && these_files.inode && status->st_ino == these_files.inode)
        status->st_uid = these_files.owner;
    return result;
}

int ioctl(int fd, unsigned long request, ...)
{
    va_list arguments;
    va_start(arguments, request);
    int *argument = va_arg(arguments, int *);
    va_end(arguments);
    if (request != FS_IOC_GETVERSION)
        return (int)syscall(SYS_ioctl, fd, request, argument);
    if (!these_files.have_generations) {
        errno = ENOTTY;
        return -1;
    }
    *argument = (int)these_files.generation;
    return 0;
}

int statx(int directory, const char *path, int flags, unsigned mask, struct statx *more)
{
    int result = (int)syscall(SYS_statx, directory, path, flags, mask, more);
    more->stx_mask &= ~(unsigned)STATX_BTIME;
    if (result || !these_files.born_ns)
        return result;
    more->stx_mask |= STATX_BTIME;
    more->stx_btime.tv_sec = (int64_t)(these_files.born_ns / 1000000000);
    more->stx_btime.tv_nsec = (uint32_t)(these_files.born_ns % 1000000000);
    return 0;
}

#endif
