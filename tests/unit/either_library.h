/* libjitdump and libperfmap behind one face, for tests of what both promise; a directory for each
 * test, and children. */
#ifndef PERFJIT_TEST_EITHER_LIBRARY_H
#define PERFJIT_TEST_EITHER_LIBRARY_H

#include "jitdump/jitdump.h"
#include "perfmap/perfmap.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { MANY = 100000 /* more than fits in the room at hand */ };

/* ---- Either library ---- */

struct library {
    const char *word; /* in PERFJIT */
    const char *file; /* a format, of a pid once or twice */
    const char *shared;
    const char *way_out; /* in the text of what is in the way */
    int status_flags;    /* of the file's descriptors, besides the mode of access */
    int (*open)(void **handle, const char *dir, bool always);
    int (*add)(void *handle, const char *name);
    uint64_t (*lost)(void *handle);
    const char *(*error)(void *handle);
    const char *(*path)(void *handle);
    int (*close)(void *handle);
};

static inline int open_dump(void **handle, const char *dir, bool always)
{
    struct jitdump_options options = JITDUMP_OPTIONS_INIT;
    options.dir = dir;
    options.flags = always ? JITDUMP_ALWAYS : 0;
    return jitdump_open((struct jitdump **)handle, &options);
}

static inline int add_to_dump(void *handle, const char *name)
{
    static const uint8_t bytes[] = {0x90, 0xc3};
    struct jitdump_code code = JITDUMP_CODE_INIT;
    code.name = name;
    code.code_addr = 0x40000000;
    code.code_size = sizeof bytes;
    code.bytes = bytes;
    return jitdump_add_code(handle, &code, NULL);
}

static uint64_t lost_of_dump(void *handle)
{
    return jitdump_lost(handle);
}

static inline const char *error_of_dump(void *handle)
{
    return jitdump_error(handle);
}

static inline const char *path_of_dump(void *handle)
{
    return jitdump_path(handle);
}

static inline int close_dump(void *handle)
{
    return jitdump_close(handle);
}

static inline int open_map(void **handle, const char *dir, bool always)
{
    struct perfmap_options options = PERFMAP_OPTIONS_INIT;
    options.dir = dir;
    options.flags = always ? PERFMAP_ALWAYS : 0;
    return perfmap_open((struct perfmap **)handle, &options);
}

static inline int add_to_map(void *handle, const char *name)
{
    return perfmap_add(handle, 0x40000000, 2, name);
}

static uint64_t lost_of_map(void *handle)
{
    return perfmap_lost(handle);
}

static inline const char *error_of_map(void *handle)
{
    return perfmap_error(handle);
}

static inline const char *path_of_map(void *handle)
{
    return perfmap_path(handle);
}

static inline int close_map(void *handle)
{
    return perfmap_close(handle);
}

static struct library libraries[] = {
    {"dump", "jitdump-%d/jit-%d.dump", "libjitdump.so.0", "set JITDUMPDIR", 0, open_dump,
     add_to_dump, lost_of_dump, error_of_dump, path_of_dump, close_dump},
    {"map", "perf-%d.map", "libperfmap.so.0", "remove it", O_APPEND, open_map, add_to_map,
     lost_of_map, error_of_map, path_of_map, close_map},
};

/* The library that a test is about; each is run with both. */
static const struct library *library;

#define LIBRARY_HANDLE    void
#define LIBRARY_FILE(pid) library->file, pid, pid
#include "tests/unit/library_dir.h"

__attribute__((unused)) static char program[512]; /* this one */

static inline int make_dir_for(void **state)
{
    library = *state;
    return make_dir(state);
}

static inline bool file_has_name(const char *file_path, const char *name)
{
    struct stat status;
    int fd = open(file_path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0)
        return false;
    char *bytes = malloc((size_t)status.st_size + 1);
    ssize_t size = bytes ? read(fd, bytes, (size_t)status.st_size) : 0;
    bool found = size > 0 && memmem(bytes, (size_t)size, name, strlen(name));
    free(bytes);
    close(fd);
    return found;
}

/* Whether FILE_PATH, or its stage if it is a dump that has one, has NAME in it, as a function's. */
static inline bool has_name(const char *file_path, const char *name)
{
    char stage_path[192];
    const char *base = strrchr(file_path, '/');
    snprintf(stage_path, sizeof stage_path, "%.*s/stage%s", (int)(base - file_path), file_path,
             base);
    return file_has_name(file_path, name) || file_has_name(stage_path, name);
}

static inline mode_t mode_of(const char *file_path)
{
    struct stat status;
    return lstat(file_path, &status) == 0 ? status.st_mode & 07777 : 0;
}

/* ---- Children ---- */

static inline void *opened(void)
{
    void *handle;
    CHECK(library->open(&handle, dir, true) == 0 && handle);
    return handle;
}

static inline void child_adds(void *handle)
{
    CHECK(library->add(handle, "of the child") == 0);
    CHECK(has_name(path, "of the child"));
    CHECK(library->close(handle) == 0);
}

/* A test of one library, and of either. */
#define WITH(number, function)                                                                     \
    {                                                                                              \
#function, function, make_dir_for, remove_dir, &libraries[number]                          \
    }
#define WITH_BOTH(function) WITH(0, function), WITH(1, function)

#endif
