/* See build_id_cache.h.
 *
 *   HOME/.debug/PATH/BUILDID/elf                       the file: a link to it, or a copy
 *   HOME/.debug/.build-id/BU/ILDID -> ../../PATH/BUILDID
 *
 * as `perf buildid-cache --add PATH` makes it, so that --remove and --purge know it.
 */
#include "injector/inject/image/build_id_cache.h"

#include "injector/files/full_write.h"
#include "injector/files/memory_file.h"
#include "injector/inject/image/image_name.h"
#include "injector/native/elf_view.h"
#include "injector/recording/host/live_process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- One file ---- */

/* Make the folders of PATH up to its last slash.  Returns 0, or -1 with errno. */
static int make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int failed = mkdir(path, 0777) && errno != EEXIST;
        *slash = '/';
        if (failed)
            return -1;
    }
    return 0;
}

/* Returns 0, or -1 with errno. */
static int copy_file(const char *from, const char *to)
{
    struct memory_file bytes = {0};
    int source = open(from, O_RDONLY | O_CLOEXEC), target = -1;
    int result = source < 0 ? -1 : memory_file_read(&bytes, source);
    if (!result)
        target = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (!result)
        result =
            target < 0 ? -1 : full_write(target, WRITE_WHERE_IT_STANDS, bytes.data, bytes.size);
    int error = errno;
    if (source >= 0)
        close(source);
    if (target >= 0 && (close(target) || result)) {
        unlink(to);
        result = -1;
    }
    memory_file_free(&bytes);
    errno = error;
    return result;
}

/* A file that is there already has the same build-id: it is the same file. */
static int put_file(char *elf, const char *path)
{
    if (make_folders(elf))
        return -1;
    if (link(path, elf) == 0 || errno == EEXIST)
        return 0;
    return copy_file(path, elf) && errno != EEXIST ? -1 : 0;
}

/* Another file of this build-id may be named there, and be gone. */
static int put_name(char *name, const char *target)
{
    if (make_folders(name))
        return -1;
    unlink(name);
    return symlink(target, name);
}

/* Returns 0, or -1 with errno. */
static int add_file(const char *home, const char *path, const char hex[BUILD_ID_HEX_BYTES])
{
    char *elf = NULL, *name = NULL, *target = NULL;
    int result = asprintf(&elf, "%s/.debug%s/%s/elf", home, path, hex) < 0 ||
                         asprintf(&name, "%s/.debug/.build-id/%.2s/%s", home, hex, hex + 2) < 0 ||
                         asprintf(&target, "../..%s/%s", path, hex) < 0 || put_file(elf, path) ||
                         put_name(name, target)
                     ? -1
                     : 0;
    int error = errno;
    free(elf);
    free(name);
    free(target);
    errno = error;
    return result;
}

/* ---- All of them ---- */

/* The absolute path of the file of image INDEX; NULL without memory. */
static char *path_of(const struct image_plan *plan, const struct jit_processes *processes,
                     const char *dso_dir, size_t index)
{
    char name[IMAGE_FILE_NAME_BYTES], *path;
    image_file_name(&plan->images[index], processes->items, index, name);
    return asprintf(&path, "%s/%s", dso_dir, name) < 0 ? NULL : path;
}

static int add_image(const struct image_plan *plan, const struct jit_processes *processes,
                     const char *dso_dir, const char *home, size_t index)
{
    char hex[BUILD_ID_HEX_BYTES], *path = path_of(plan, processes, dso_dir, index);
    struct build_id id = {.size = IMAGE_BUILD_ID_BYTES};
    memcpy(id.bytes, plan->images[index].build_id, id.size);
    build_id_hex(hex, &id);
    int result = path ? add_file(home, path, hex) : -1;
    int error = errno;
    free(path);
    errno = error;
    return result;
}

/* Add the files that PROCESS maps: its own images, and, unless they ARE_THERE, those of all. */
static int add_images_of(const struct image_plan *plan, const struct jit_processes *processes,
                         uint32_t process, bool are_there, const char *dso_dir, const char *home)
{
    for (size_t i = 0; i < plan->image_count; i++) {
        uint32_t whose = plan->images[i].process;
        if ((whose == process || (whose == NO_PROCESS && !are_there)) &&
            add_image(plan, processes, dso_dir, home, i))
            return -1;
    }
    return 0;
}

/* Root fills no other user's cache: a folder there is its owner's decision. */
static bool is_own_home(const char *home)
{
    struct stat status;
    errno = EPERM;
    return home && *home == '/' && stat(home, &status) == 0 && status.st_uid == geteuid();
}

void build_id_cache_fill(const struct image_plan *plan, const struct jit_processes *processes,
                         const char *dso_dir, const char *home, struct findings *findings)
{
    bool are_there = false;
    for (size_t i = 0; plan->image_count && i < processes->count; i++) {
        uint32_t pid = processes->items[i].pid;
        if (!live_process_hides(pid, dso_dir))
            continue;
        bool added = is_own_home(home) &&
                     !add_images_of(plan, processes, (uint32_t)i, are_there, dso_dir, home);
        are_there |= added;
        if (added)
            report_finding(findings, FINDING_IMAGE_CACHED, "process %" PRIu32 ", %s", pid, dso_dir);
        else
            report_finding(findings, FINDING_IMAGE_HIDDEN, "process %" PRIu32 ", %s: %s/.debug: %s",
                           pid, dso_dir, home ? home : "no HOME", strerror(errno));
    }
}
