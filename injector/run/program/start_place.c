/* See start_place.h.  A child becomes the user and asks the kernel, which knows access lists, file
 * systems that are read-only, and the way to the directory. */
#include "injector/run/program/start_place.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NAME_BYTES = 64 };

struct start_user {
    uid_t uid;
    gid_t gid;
    char name[NAME_BYTES];
};

/* The number in TEXT, as sudo (#33), setpriv and chroot take it. */
static bool read_number(const char *text, unsigned *number)
{
    char *end;
    text += *text == '#' || *text == '+';
    unsigned long value = *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 0;
    if (*text < '0' || *text > '9' || *end || value >= UINT32_MAX)
        return false;
    *number = (unsigned)value;
    return true;
}

static void find_group(struct start_user *user, const char *name)
{
    const struct group *group;
    if (!read_number(name, &user->gid) && (group = getgrnam(name)))
        user->gid = group->gr_gid;
}

/* The user that COMMAND names.  False: there is none of that name, and the wrapper will say so. */
static bool find_user(struct start_user *user, const struct wrapped_command *command)
{
    const size_t bytes = strcspn(command->user, ":"); /* chroot's USER:GROUP */
    *user = (struct start_user){.uid = geteuid(), .gid = getegid()};
    if (bytes >= sizeof user->name)
        return false;
    memcpy(user->name, command->user, bytes);
    const bool is_number = read_number(user->name, &user->uid);
    const struct passwd *entry = is_number ? getpwuid(user->uid) : getpwnam(user->name);
    if (!entry && !is_number && bytes)
        return false;
    if (entry) {
        *user = (struct start_user){.uid = entry->pw_uid, .gid = entry->pw_gid};
        strncpy(user->name, entry->pw_name, sizeof user->name - 1);
    }
    if (command->user[bytes])
        find_group(user, command->user + bytes + 1);
    if (command->group)
        find_group(user, command->group);
    return true;
}

/* In a child.  Returns 0, or the error number. */
static int try(const struct wrapped_command *command, const struct start_user *user,
               const char *directory)
{
    if (!directory && command->root && chdir(command->root))
        return errno;
    if (command->user && user->uid != geteuid() &&
        ((command->with_groups ? initgroups(user->name, user->gid) : setgroups(0, NULL)) ||
         setresgid(user->gid, user->gid, user->gid) || setresuid(user->uid, user->uid, user->uid)))
        return EPERM;
    const char *place = directory ? directory : command->directory ? command->directory : ".";
    if (!directory && command->root)
        place += strspn(place, "/"); /* from the root that is the current directory */
    return faccessat(AT_FDCWD, *place ? place : ".", W_OK | X_OK, AT_EACCESS) ? errno : 0;
}

int start_place_error(const struct wrapped_command *command, const char *directory)
{
    struct start_user user;
    int status = -1;
    if (command->user && !find_user(&user, command))
        return 0;
    pid_t child = fork();
    if (child == 0)
        _exit(try(command, &user, directory));
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return EPERM;
    return WEXITSTATUS(status);
}
