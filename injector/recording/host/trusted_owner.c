/* See trusted_owner.h. */
#include "injector/recording/host/trusted_owner.h"

#include <stdlib.h>
#include <unistd.h>

/* The user who runs this program, if through sudo; -1: no user but the effective one. */
static int64_t sudo_user(void)
{
    const char *text = getenv("SUDO_UID");
    char *end;
    if (!text || *text < '0' || *text > '9')
        return -1;
    unsigned long uid = strtoul(text, &end, 10);
    return *end || uid > UINT32_MAX ? -1 : (int64_t)uid;
}

bool owner_is_trusted(uint32_t uid, int64_t recording_owner)
{
    return uid == 0 || uid == geteuid() || (int64_t)uid == sudo_user() ||
           (int64_t)uid == recording_owner;
}
