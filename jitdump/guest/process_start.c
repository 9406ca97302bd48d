/* See process_start.h. */
#include "jitdump/guest/process_start.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Field 22, in ticks since boot; the second one, in parentheses, may contain anything. */
static bool read_start(uint64_t *ticks)
{
    char line[1024];
    FILE *stat = fopen("/proc/self/stat", "re");
    if (!stat)
        return false;
    const char *read = fgets(line, sizeof line, stat);
    fclose(stat);
    const char *field = read ? strrchr(line, ')') : NULL;
    for (int number = 2; field && number < 22; number++)
        field = strchr(field + 1, ' ');
    return field && sscanf(field, "%" SCNu64, ticks) == 1;
}

bool jd_process_start(uint64_t *monotonic_ns)
{
    uint64_t ticks, tick_ns = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);
    if (!read_start(&ticks))
        return false;
    /* CLOCK_MONOTONIC stops while the machine is suspended, CLOCK_BOOTTIME does not. */
    uint64_t awake_ns = now_ns(CLOCK_MONOTONIC), asleep_ns = now_ns(CLOCK_BOOTTIME) - awake_ns;
    uint64_t start_ns = ticks * tick_ns;
    *monotonic_ns = start_ns > asleep_ns ? start_ns - asleep_ns : 0;
    return true;
}
