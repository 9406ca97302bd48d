/* Prints the results of a request (attachment.h), a line for each JIT of the process. */
#include "injector/run/attach/attachment.h"

#include "injector/text/plural.h"
#include "injector/text/printable_text.h"

#include <inttypes.h>
#include <string.h>

static double ms(uint64_t ns)
{
    return (double)ns / 1e6;
}

/* The place of the dump, as seen from outside the process's container. */
static void tell_place(const struct attachment *attachment)
{
    if (attachment->elsewhere)
        printable_line(stderr,
                       "perfjit: %d: is in a container: here its files are below /proc/%d/root",
                       (int)attachment->pid, (int)attachment->pid);
}

static void tell_attached(const struct attachment *attachment, const struct switch_answer *answer)
{
    printable_line(stderr,
                   "perfjit: %d: logs its JIT code to %s, from now on: %" PRIu64
                   " function%s that %s alive %s in it (%.1f ms, and %.1f ms to open it)",
                   (int)attachment->pid, answer->path, answer->functions, plural(answer->functions),
                   answer->functions == 1 ? "was" : "were", is_or_are(answer->functions),
                   ms(answer->telling_ns), ms(answer->opening_ns));
    if (answer->lost)
        printable_line(stderr,
                       "perfjit: %d: %" PRIu64 " of its functions, moves and unloads %s not in it",
                       (int)attachment->pid, answer->lost, is_or_are(answer->lost));
    tell_place(attachment);
}

static void tell_detached(const struct attachment *attachment, const struct switch_answer *answer)
{
    printable_line(stderr, "perfjit: %d: has closed %s", (int)attachment->pid, answer->path);
}

static void tell_failed(const struct attachment *attachment, const struct switch_answer *answer,
                        const struct attachment_request *request)
{
    const char *text = answer->text[0] ? answer->text : strerror(-answer->error);
    if (request->wanted == ATTACH_ON)
        printable_line(stderr,
                       "perfjit: %d: can't open a dump: %s (%s--dir names another directory)",
                       (int)attachment->pid, text, request->passing ? "perfjit attach " : "");
    else
        printable_line(stderr, "perfjit: %d: has closed %s, but not all is in it: %s",
                       (int)attachment->pid, answer->path, text);
}

static void tell_not_polled(const struct attachment *attachment,
                            const struct attachment_request *request, bool on)
{
    int pid = (int)attachment->pid;
    if (attachment->interrupted)
        printable_line(stderr, "perfjit: %d: interrupted before it had polled", pid);
    else
        printable_line(
            stderr,
            "perfjit: %d: its runtime has not polled for %g s: it is blocked, stopped, or "
            "in code without a safe point (--timeout waits longer)",
            pid, request->seconds);
    printable_line(stderr,
                   on ? "perfjit: %d: the request is withdrawn"
                      : "perfjit: %d: it closes its dump as soon as it does",
                   pid);
}

static void tell_one(const struct attachment *attachment, const struct attachment_request *request,
                     const struct attachment_result *result)
{
    bool on = request->wanted == ATTACH_ON;
    int pid = (int)attachment->pid;
    switch (result->outcome) {
    case ATTACHMENT_DONE:
        if (on)
            tell_attached(attachment, &result->answer);
        else
            tell_detached(attachment, &result->answer);
        break;
    case ATTACHMENT_ALREADY:
        if (on)
            printable_line(stderr, "perfjit: %d: is attached already: it logs to %s", pid,
                           result->answer.path);
        else
            printable_line(stderr, "perfjit: %d: is not attached", pid);
        break;
    case ATTACHMENT_FAILED:
        tell_failed(attachment, &result->answer, request);
        break;
    case ATTACHMENT_NOT_POLLED:
        tell_not_polled(attachment, request, on);
        break;
    case ATTACHMENT_BUSY:
        printable_line(stderr, "perfjit: %d: another perfjit has sent it a request", pid);
        break;
    case ATTACHMENT_SHARED:
        printable_line(stderr, "perfjit: %d: another perfjit records it, and ends its dump", pid);
        break;
    case ATTACHMENT_ENDED:
        printable_line(stderr, "perfjit: %d: has ended meanwhile", pid);
        break;
    case ATTACHMENT_UNUSABLE:
        printable_line(stderr, "perfjit: %d: can't reach the page for its requests: %s", pid,
                       strerror(result->error));
        break;
    }
}

void attachment_tell(const struct attachment *attachment, const struct attachment_request *request)
{
    for (size_t i = 0; i < attachment->count; i++)
        tell_one(attachment, request, &attachment->results[i]);
}
