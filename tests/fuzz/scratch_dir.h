/* A directory in memory for the files that a fuzz target writes; it goes with the process. */
#ifndef PERFJIT_FUZZ_SCRATCH_DIR_H
#define PERFJIT_FUZZ_SCRATCH_DIR_H

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char scratch_path[64];

static void remove_scratch_dir(void)
{
    rmdir(scratch_path);
}

/* Its descriptor. */
static int scratch_dir(void)
{
    static int fd = -1;
    if (fd >= 0)
        return fd;
    snprintf(scratch_path, sizeof scratch_path, "%s/perfjit-fuzz.XXXXXX",
             access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    if (!mkdtemp(scratch_path) || (fd = open(scratch_path, O_RDONLY | O_DIRECTORY)) < 0) {
        perror(scratch_path);
        exit(EXIT_FAILURE);
    }
    atexit(remove_scratch_dir);
    return fd;
}

static void empty_scratch_dir(void)
{
    DIR *dir = opendir(scratch_path);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
}

#endif
