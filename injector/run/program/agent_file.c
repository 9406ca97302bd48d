/* See agent_file.h. */
#include "injector/run/program/agent_file.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* From the folder of this program, which may have been moved with its tree. */
static const char *const beside[] = {".", "../lib/perfjit", "../lib64/perfjit", "../lib/*/perfjit"};

/* Whether everybody may read PATH, and go through the folders in front of it. */
static bool is_for_everybody(const char *path)
{
    struct stat status;
    char folder[PATH_MAX];
    if (stat(path, &status) || !(status.st_mode & S_IROTH) || strlen(path) >= sizeof folder)
        return false;
    strcpy(folder, path);
    for (char *slash; (slash = strrchr(folder, '/')) && slash > folder;) {
        *slash = '\0';
        if (stat(folder, &status) || !(status.st_mode & S_IXOTH))
            return false;
    }
    return true;
}

static bool is_usable(const char *path, const char *root, bool for_others)
{
    char *below;
    if (access(path, R_OK) || (for_others && !is_for_everybody(path)))
        return false;
    if (!root)
        return true;
    if (asprintf(&below, "%s%s", root, path) < 0)
        return false;
    bool there = access(below, R_OK) == 0;
    free(below);
    return there;
}

/* The first file that PATTERN names and that can be used; to be freed, or NULL. */
static char *first_of(const char *pattern, const char *root, bool for_others)
{
    glob_t names;
    char *found = NULL;
    if (glob(pattern, 0, NULL, &names))
        return NULL;
    for (size_t i = 0; !found && i < names.gl_pathc; i++) {
        found = realpath(names.gl_pathv[i], NULL);
        if (found && !is_usable(found, root, for_others)) {
            free(found);
            found = NULL;
        }
    }
    globfree(&names);
    return found;
}

char *agent_file_find(const char *name, const char *root, bool for_others)
{
    char own[PATH_MAX], pattern[PATH_MAX + NAME_MAX], *found = NULL;
    const char *given = secure_getenv("PERFJIT_AGENTS");
    if (given) {
        snprintf(pattern, sizeof pattern, "%s/%s", given, name);
        return first_of(pattern, root, for_others);
    }
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    own[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(own, '/');
    for (size_t i = 0; slash && !found && i < sizeof beside / sizeof *beside; i++) {
        snprintf(pattern, sizeof pattern, "%.*s/%s/%s", (int)(slash - own), own, beside[i], name);
        found = first_of(pattern, root, for_others);
    }
    return found;
}
