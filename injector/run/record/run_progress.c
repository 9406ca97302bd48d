/* See run_progress.h. */
#include "injector/run/record/run_progress.h"

#include "injector/text/plural.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether descriptor FD of process PID is the terminal TERMINAL.  If that can't be seen, the answer
 * is yes. */
static bool prints_on(pid_t pid, int fd, const struct stat *terminal)
{
    char path[64];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, fd);
    if (stat(path, &status))
        return access(path, F_OK) == 0;
    return S_ISCHR(status.st_mode) && status.st_rdev == terminal->st_rdev;
}

bool run_progress_has_room(const pid_t *pids, size_t count)
{
    struct stat terminal;
    bool has_room = count && isatty(STDERR_FILENO) && fstat(STDERR_FILENO, &terminal) == 0;
    for (size_t i = 0; has_room && i < count; i++)
        has_room = !prints_on(pids[i], STDOUT_FILENO, &terminal) &&
                   !prints_on(pids[i], STDERR_FILENO, &terminal);
    return has_room;
}

/* perf writes its samples by the buffer: no samples yet does not mean that there are none. */
void run_progress_show(struct growing_recording *recording, int64_t seconds)
{
    growing_recording_read(recording);
    growing_recording_read_dumps(recording);
    fprintf(stderr, "\r\033[Kperfjit: %" PRId64 " s", seconds);
    if (recording->losses.taken)
        fprintf(stderr, ", %" PRIu64 " sample%s", recording->losses.taken,
                plural(recording->losses.taken));
    if (recording->functions)
        fprintf(stderr, ", %" PRIu64 " function%s", recording->functions,
                plural(recording->functions));
    fputc('\r', stderr);
}

void run_progress_end(void)
{
    fputs("\r\033[K", stderr);
}
