/* See pipe_ends.h. */
#include "injector/files/pipe_ends.h"

#include "injector/files/full_write.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int pipe_ends_open(struct pipe_ends *ends, struct findings *findings)
{
    if (pipe2(ends->fd, O_CLOEXEC))
        return report_failure(findings, "can't make a pipe: %s", strerror(errno));
    return 0;
}

void pipe_ends_close_one(struct pipe_ends *ends, enum pipe_end which)
{
    if (ends->fd[which] >= 0)
        close(ends->fd[which]);
    ends->fd[which] = -1;
}

void pipe_ends_close(struct pipe_ends *ends)
{
    pipe_ends_close_one(ends, READ_END);
    pipe_ends_close_one(ends, WRITE_END);
}

void pipe_ends_meet(int ready, int go)
{
    char byte;
    if (ready < 0)
        return;
    full_write(ready, WRITE_WHERE_IT_STANDS, "", 1);
    while (read(go, &byte, 1) < 0 && errno == EINTR)
        continue;
}
