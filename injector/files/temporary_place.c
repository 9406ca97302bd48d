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

const char *other_place_to_map(enum other_place number)
{
    static char here[PATH_MAX];
    static const char *const fixed[] = {"/tmp", "/var/tmp"};
    if (number < OTHER_PLACE_HERE)
        return fixed[number];
    return getcwd(here, sizeof here) && is_usable(here) ? here : NULL;
}

const char *temporary_place_to_map(void)
{
    const char *place = temporary_place();
    if (!is_noexec(place))
        return place;
    for (enum other_place i = 0; i < OTHER_PLACES; i++) {
        const char *other = other_place_to_map(i);
        if (other && !is_noexec(other) && access(other, W_OK | X_OK) == 0)
            return other;
    }
    return place;
}
