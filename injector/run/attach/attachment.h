/* Requests to a process to begin or end its dumps.  They go to all JITs in it that take requests,
 * within a bounded time.
 *
 *     process ─▶ switch_list (its pages) ─▶ switch_page (request, answer) ─▶ attachment (results)
 *
 * SIGINT, SIGTERM and SIGHUP wait meanwhile.  Such a signal withdraws the requests that were not
 * begun.
 */
#ifndef PERFJIT_ATTACHMENT_H
#define PERFJIT_ATTACHMENT_H

#include "injector/findings/findings.h"
#include "injector/recording/host/live_process.h"
#include "injector/run/attach/switch_list.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define ATTACHMENT_SECONDS 10.0 /* the time that a process has to poll, by default */

struct attachment_request {
    pid_t pid;
    enum attach_wanted wanted;
    const char *dir; /* as the process sees it; NULL: its own choice, or where it can be mapped */
    double seconds;  /* until it has polled */
    /* For a recorder.  ON: only as long as recorders hold it; what was on before stays on.  OFF:
     * unless others hold it. */
    bool passing;
    const struct attachment *held; /* OFF: what this one held; NULL: it has ended */
    /* ON: a dump is about to be on for this recorder, to be added to the undo_list; or NULL. */
    void (*holds)(void *user);
    void *user;
};

enum attachment_outcome {
    ATTACHMENT_DONE,
    ATTACHMENT_ALREADY, /* it was as wanted */
    ATTACHMENT_FAILED,  /* the process tried, and says why it can't */
    ATTACHMENT_NOT_POLLED,
    ATTACHMENT_BUSY,    /* others ask at the same time */
    ATTACHMENT_SHARED,  /* OFF: others record it */
    ATTACHMENT_ENDED,   /* the process has */
    ATTACHMENT_UNUSABLE /* the page can't be read or written */
};

/* The result for one JIT. */
struct attachment_result {
    enum attachment_outcome outcome;
    int error; /* of an UNUSABLE one */
    struct switch_answer answer;
    bool is_held;            /* a recorder's: its dump is to be ended and removed by the last one */
    struct switch_page held; /* open then */
};

/* The results for all JITs of a process. */
struct attachment {
    pid_t pid;
    struct live_process live;
    bool elsewhere;                    /* its files are not where they are here */
    int root;                          /* the process's root directory; -1: not known */
    struct attachment_result *results; /* owned */
    size_t count;
    bool interrupted;
};

/* Ask as REQUEST says.  Returns 0 if there was a JIT to take the request, whatever the result, or
 * -1 with the failure text set.  A failure is: there is no such process, this user may not send it
 * requests, or it takes none.  Release with attachment_free in either case. */
int attachment_ask(struct attachment *attachment, const struct attachment_request *request,
                   struct findings *findings);

/* How many results are that it is as wanted now. */
size_t attachment_good(const struct attachment *attachment);

/* Whether it holds a dump that is on for recorders only. */
bool attachment_holds(const struct attachment *attachment);

/* A line for each result, on stderr. */
void attachment_tell(const struct attachment *attachment, const struct attachment_request *request);

/* Remove the dumps that it holds and no other recorder reads, in the process's own file system, if
 * they are its user's; but those below the directory BUT, unless that is NULL, stay. */
void attachment_remove_dumps(const struct attachment *attachment, const char *but);

/* A recorder that was to add its requests to the undo_list has ended.  TEXT is that of
 * attachment_undo_text. */
void attachment_undo(const char *text);

/* The process of TEXT, if it still lives, and *PATH; else 0. */
pid_t attachment_undo_pid(const char *text, const char **path);

/* PATH: of the dump that it opened; "": not yet.  To be freed; NULL: there is no process PID. */
char *attachment_undo_text(pid_t pid, const char *path);

void attachment_free(struct attachment *attachment);

#endif
