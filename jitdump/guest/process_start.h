/* When this process started, by /proc.  exec does not restart it. */
#ifndef JITDUMP_PROCESS_START_H
#define JITDUMP_PROCESS_START_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline uint64_t process_tick_ns(void)
{
    return 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

/* Set *SINCE_BOOT_NS to the time by CLOCK_BOOTTIME, rounded down to a tick.  Returns false
 * if there is no /proc.  Allocates nothing. */
static inline bool process_start(uint64_t *since_boot_ns)
{
    enum { START_FIELD = 22 };
    char line[1024];
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t size = read(fd, line, sizeof line - 1);
    close(fd);
    line[size > 0 ? size : 0] = '\0';
    const char *field = strrchr(line, ')'); /* the second field may contain anything else */
    for (int number = 2; field && number < START_FIELD; number++)
        field = strchr(field + 1, ' ');
    *since_boot_ns = field ? strtoull(field, NULL, 10) * process_tick_ns() : 0;
    return *since_boot_ns > 0;
}

#endif
