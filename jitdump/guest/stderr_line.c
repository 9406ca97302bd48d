/* See stderr_line.h. */
#include "jitdump/guest/stderr_line.h"
#include "jitdump/guest/write_signals.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void jd_stderr_hold(struct held_fd *held)
{
    held->number = -1;
    jd_fd_hold(held, STDERR_FILENO);
}

static void write_without_signal(int fd, const char *text, size_t bytes)
{
    struct write_signals before;
    if (jd_write_signals_block(&before))
        return;
    int error = syscall(SYS_write, fd, text, bytes) < 0 ? -errno : 0;
    jd_write_signals_restore(&before, error);
}

void jd_stderr_say(const struct held_fd *held, const char *format, ...)
{
    char line[PATH_MAX + 1024] = "libjitdump: ";
    size_t start = strlen(line), room = sizeof line - start - 1;
    int callers_errno = errno;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line + start, room, format, arguments);
    va_end(arguments);
    if (length > 0 && jd_fd_is_ours(held)) {
        size_t bytes = start + ((size_t)length < room ? (size_t)length : room - 1);
        line[bytes] = '\n';
        write_without_signal(held->number, line, bytes + 1);
    }
    errno = callers_errno;
}
