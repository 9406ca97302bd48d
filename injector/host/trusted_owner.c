/* See file_owner.h. */
#include "injector/host/file_owner.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int64_t file_owner_sudo_user(void)
{
    const char *text = getenv("SUDO_UID");
    char *end;
    if (!text || *text < '0' || *text > '9')
        return -1;
    unsigned long uid = strtoul(text, &end, 10);
    return *end || uid > UINT32_MAX ? -1 : (int64_t)uid;
}

bool file_owner_is_trusted(uint32_t uid, const char *recording)
{
    struct stat status;
    return uid == 0 || uid == geteuid() || (int64_t)uid == file_owner_sudo_user() ||
           (stat(recording, &status) == 0 && status.st_uid == uid);
}
