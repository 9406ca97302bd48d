/* Namespaces for a child of a test program alone: a disk that is small, read-only or noexec, pids
 * that begin at 1.  Root makes them as it is; others may as the only user of a user namespace, if
 * the machine permits that.  A child for which neither is permitted ends with NOT_PERMITTED. */
#ifndef PERFJIT_TEST_OWN_NAMESPACES_H
#define PERFJIT_TEST_OWN_NAMESPACES_H

#include "tests/unit/child.h"

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mount.h>

static inline void need(bool done)
{
    if (!done)
        _exit(NOT_PERMITTED);
}

static inline void write_setting(const char *file, const char *text)
{
    int fd = open(file, O_WRONLY | O_CLOEXEC);
    need(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

/* With all rights there, and as the user that one was before. */
static inline void enter_own_users(int namespaces)
{
    char users[64], groups[64];
    snprintf(users, sizeof users, "%u %u 1", geteuid(), geteuid());
    snprintf(groups, sizeof groups, "%u %u 1", getegid(), getegid());
    need(unshare(CLONE_NEWUSER | namespaces) == 0);
    write_setting("/proc/self/uid_map", users);
    write_setting("/proc/self/setgroups", "deny");
    write_setting("/proc/self/gid_map", groups);
}

static inline bool mounts_are_own(void)
{
    return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

/* The / of a chroot is no mount.  The namespace's own / is one, and setns leads to it. */
static inline void own_mounts_outside_chroot(void)
{
    int root = open("/", O_PATH | O_CLOEXEC), here = open(".", O_PATH | O_CLOEXEC);
    int mounts = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    need(root >= 0 && here >= 0 && mounts >= 0);
    need(setns(mounts, CLONE_NEWNS) == 0 && mounts_are_own());
    need(fchdir(root) == 0 && chroot(".") == 0 && fchdir(here) == 0);
    close(root);
    close(here);
    close(mounts);
}

/* NAMESPACES: CLONE_NEWNS, CLONE_NEWPID. */
static inline void enter_own(int namespaces)
{
    if (unshare(namespaces) != 0)
        enter_own_users(namespaces);
    if ((namespaces & CLONE_NEWNS) && !mounts_are_own())
        own_mounts_outside_chroot();
}

/* A file system in memory at PLACE. */
static inline void mount_in_memory(const char *place, unsigned long flags, const char *options)
{
    need(mount("none", place, "tmpfs", flags, options) == 0);
}

static inline void enter_own_disk(const char *place, unsigned long flags, const char *options)
{
    enter_own(CLONE_NEWNS);
    mount_in_memory(place, flags, options);
}

#endif
