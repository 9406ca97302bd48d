/* See holder_state.h. */
#include "jitdump/guest/holder_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef SYS_pselect6
enum { SLEEP_CALL = SYS_pselect6 };
typedef long sleep_number; /* of the kernel, whatever libc's time_t is */
#else                      /* 32-bit machines that never had a time of 32 bits */
enum { SLEEP_CALL = SYS_pselect6_time64 };
typedef int64_t sleep_number;
#endif

/* System calls made with a lock held that may take long. */
static const long slow_calls[] = {
    SLEEP_CALL,     SYS_pwritev, SYS_fallocate, SYS_ftruncate, SYS_mmap,  SYS_munmap,
    SYS_madvise,    SYS_openat,  SYS_flock,     SYS_fsync,     SYS_close, SYS_mprotect,
#ifdef SYS_newfstatat
    SYS_newfstatat,
#endif
#ifdef SYS_fstat
    SYS_fstat,
#endif
};

void jd_holder_sleep(uint64_t ns)
{
    const struct {
        sleep_number seconds, ns;
    } time = {(sleep_number)(ns / 1000000000), (sleep_number)(ns % 1000000000)};
    /* Not through libc, where it is a cancellation point. */
    syscall(SLEEP_CALL, 0, NULL, NULL, NULL, &time, NULL);
}

/* Read THREAD's state from /proc, without a cancellation point. */
static bool read_call(uint32_t thread, char *text, size_t text_bytes)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%u/syscall", (unsigned)thread);
    long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    long bytes = syscall(SYS_read, fd, text, text_bytes - 1);
    syscall(SYS_close, fd);
    text[bytes > 0 ? bytes : 0] = '\0';
    return bytes > 0;
}

static bool is_slow_call(long number)
{
    for (size_t i = 0; i < sizeof slow_calls / sizeof slow_calls[0]; i++)
        if (slow_calls[i] == number)
            return true;
    return false;
}

enum holder_state jd_holder_state(uint32_t thread)
{
    enum { NO_SIGNAL = 0 };
    char text[256];
    if (syscall(SYS_tgkill, getpid(), thread, NO_SIGNAL) != 0 && errno == ESRCH)
        return HOLDER_GONE;
    if (!read_call(thread, text, sizeof text))
        return HOLDER_UNKNOWN;
    if (strncmp(text, "running", strlen("running")) == 0)
        return HOLDER_RUNS;
    long number = strtol(text, NULL, 10);
    if (number ==
        -1) /* in no call: "-1 STACK PC"; of a main thread that has ended there is no stack */
        return strncmp(text, "-1 0x0 0x0", strlen("-1 0x0 0x0")) == 0 ? HOLDER_GONE : HOLDER_RUNS;
    return is_slow_call(number) ? HOLDER_CALLS : HOLDER_STOPPED;
}
