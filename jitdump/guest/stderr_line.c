/* See stderr_line.h. */
#include "jitdump/guest/stderr_line.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

void jd_stderr_hold(struct held_fd *held)
{
    held->number = -1;
    jd_fd_hold(held, STDERR_FILENO);
}

/* A closed pipe and a file size limit raise signals.  They are this thread's, and are taken back;
 * but not one that was pending before. */
static void write_without_signal(int fd, const char *text, size_t bytes)
{
    static const struct timespec no_time = {0, 0};
    sigset_t raised, pending, old;
    sigemptyset(&raised);
    sigaddset(&raised, SIGPIPE);
    sigaddset(&raised, SIGXFSZ);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &raised, &old);
    long put = syscall(SYS_write, fd, text, bytes); /* in libc it is a cancellation point */
    int signal = put >= 0 ? 0 : errno == EPIPE ? SIGPIPE : errno == EFBIG ? SIGXFSZ : 0;
    if (signal && sigismember(&pending, signal) == 0) {
        sigemptyset(&raised);
        sigaddset(&raised, signal);
        sigtimedwait(&raised, NULL, &no_time);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
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
