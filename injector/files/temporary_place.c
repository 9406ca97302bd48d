/* See temporary_place.h. */
#include "injector/files/temporary_place.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

static bool is_usable(const char *place)
{
    static const char separators[] = ":;, \t\n\"'\\";
    return place[0] == '/' && !place[strcspn(place, separators)];
}

const char *temporary_place(void)
{
    const char *place = getenv("TMPDIR");
    return place && is_usable(place) ? place : "/tmp";
}

static bool is_noexec(const char *place)
{
    struct statvfs status;
    return statvfs(place, &status) == 0 && status.f_flag & ST_NOEXEC;
}

const char *temporary_place_to_map(void)
{
    static char here[PATH_MAX];
    const char *const others[] = {"/tmp", "/var/tmp", getcwd(here, sizeof here)};
    const char *place = temporary_place();
    for (size_t i = 0; is_noexec(place) && i < sizeof others / sizeof others[0]; i++)
        if (others[i] && is_usable(others[i]) && !is_noexec(others[i]) &&
            access(others[i], W_OK | X_OK) == 0)
            return others[i];
    return place;
}
