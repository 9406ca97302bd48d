/* See attachment.h. */
#include "injector/run/attach/attachment.h"

#include "injector/files/temporary_place.h"
#include "injector/text/printable_text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    LOOK_MS = 2,       /* between two looks at the page */
    WAKE_LOOKS = 50,   /* without an answer: maybe the process does not see the page's word */
    BEGUN_MS = 120000, /* to open the dump and tell all live code, once that has begun */
    BEGIN_MS = 50,     /* for the one that took the request while it was withdrawn */
};

/* A request that goes on. */
struct asking {
    const struct attachment_request *request;
    struct attachment *attachment;
    int process; /* as a descriptor; -1: there are none */
    int64_t deadline_ms;
};

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t deadline_of(const struct attachment_request *request)
{
    return now_ms() + (int64_t)(request->seconds * 1000);
}

/* ---- Waiting ---- */

static bool was_interrupted(void)
{
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
           sigismember(&pending, SIGHUP) == 1;
}

/* Wait a little.  Returns false if the process has ended. */
static bool wait_a_little(const struct asking *asking)
{
    struct pollfd end = {.fd = asking->process, .events = POLLIN};
    int ended = poll(&end, 1, LOOK_MS); /* a negative one is ignored */
    return ended != 1 && (asking->process >= 0 || kill(asking->request->pid, 0) == 0);
}

static bool is_over(const struct asking *asking)
{
    return now_ms() > asking->deadline_ms || was_interrupted();
}

/* ---- One JIT ---- */

/* In a forked child that still has its parent's page: have it make its own, and take that. */
static bool split(const struct asking *asking, struct switch_page *page)
{
    struct switch_page shared = *page;
    bool split = false;
    for (int looks = 1; !split && switch_page_split(&shared, true) == 0 && !is_over(asking) &&
                        wait_a_little(asking);
         looks++) {
        struct switch_list list;
        if (looks % WAKE_LOOKS == 0)
            switch_page_wake(&shared);
        switch_list_read(&list, shared.process);
        for (size_t i = 0; i < list.count && !split; i++) {
            struct switch_page *own = &list.pages[i];
            if (own->start != shared.start || switch_page_open(own))
                continue;
            split = own->owner == asking->attachment->live.namespace_pid;
            if (split)
                *page = *own;
            else
                switch_page_close(own);
            own->fd = -1;
        }
        switch_list_free(&list);
    }
    switch_page_split(&shared, false);
    if (split)
        switch_page_close(&shared);
    return split;
}

/* Whether the process acts on the request: it has reset the word, or says so.  Opening a dump may
 * take long on a busy machine. */
static bool has_begun(const struct switch_page *page, const struct switch_answer *answer,
                      bool withdrawn)
{
    return answer->state == ATTACH_IS_TELLING || (!withdrawn && switch_page_is_taken(page));
}

/* Look until the process has answered the request NUMBER; false: it has not. */
static bool await_answer(const struct asking *asking, const struct switch_page *page,
                         uint32_t number, bool withdrawn, struct attachment_result *result)
{
    int64_t begun_ms = 0;
    for (int looks = 1;; looks++) {
        if (switch_page_read(page, &result->answer)) {
            result->outcome = ATTACHMENT_ENDED;
            return true;
        }
        if (result->answer.request == number) {
            result->outcome = result->answer.error ? ATTACHMENT_FAILED : ATTACHMENT_DONE;
            return true;
        }
        if (!begun_ms && has_begun(page, &result->answer, withdrawn))
            begun_ms = now_ms();
        if (begun_ms ? now_ms() - begun_ms > BEGUN_MS
                     : now_ms() > asking->deadline_ms || (!withdrawn && was_interrupted()))
            return false;
        if (!wait_a_little(asking)) {
            result->outcome = ATTACHMENT_ENDED;
            return true;
        }
        if (looks % WAKE_LOOKS == 0)
            switch_page_wake(page);
        switch_page_prove(page, number);
    }
}

/* It has not polled in time.  A request that it has not begun must not begin later.  The end of a
 * dump, though, comes when it does. */
static void give_up(struct asking *asking, const struct switch_page *page, uint32_t number,
                    struct attachment_result *result)
{
    if (asking->request->wanted == ATTACH_ON) {
        switch_page_withdraw(page);
        asking->deadline_ms = now_ms() + BEGIN_MS;
        if (await_answer(asking, page, number, true, result))
            return;
    }
    result->outcome = ATTACHMENT_NOT_POLLED;
}

static void unusable(struct attachment_result *result)
{
    result->outcome = ATTACHMENT_UNUSABLE;
    result->error = errno;
}

/* Whether nothing is to be asked for.  A forked child that LOGS may have opened its dump for its
 * first function, which its page does not say. */
static bool is_done(const struct switch_answer *answer, enum attach_wanted wanted, bool logs)
{
    if (wanted == ATTACH_ON)
        return answer->state == ATTACH_IS_ON;
    return answer->state == ATTACH_IS_OFF && !logs;
}

/* ---- Recorders ---- */

/* Whether this request is a recorder's, and the dump is, or will be, on for recorders only. */
static bool is_recorders(const struct asking *asking, const struct switch_page *page,
                         const struct attachment_result *result)
{
    const struct attachment_request *request = asking->request;
    return request->passing && request->wanted == ATTACH_ON &&
           (result->answer.state == ATTACH_IS_OFF || switch_page_is_used(page, SWITCH_LOGGING));
}

/* Hold PAGE: the result has it from now on. */
static void hold(const struct attachment_request *request, struct switch_page *page,
                 struct attachment_result *result)
{
    if (!switch_page_use(page, SWITCH_LOGGING))
        return;
    if (request->holds)
        request->holds(request->user);
    switch_page_use(page, SWITCH_READING);
    result->is_held = true;
    result->held = *page;
}

/* The page stays open if the request has come to a dump. */
static void end_holding(struct switch_page *page, struct attachment_result *result)
{
    const bool holds = result->is_held && (result->outcome == ATTACHMENT_DONE ||
                                           result->outcome == ATTACHMENT_ALREADY);
    if (!result->is_held)
        return;
    result->is_held = holds;
    if (!holds)
        return;
    switch_page_unlock(page);
    page->fd = -1;
}

/* Whether others hold the dump on PAGE that a recorder is about to end. */
static bool is_others(const struct asking *asking, const struct switch_page *page)
{
    const struct attachment_request *request = asking->request;
    if (!request->passing || request->wanted != ATTACH_OFF)
        return false;
    for (size_t i = 0; request->held && i < request->held->count; i++) {
        const struct attachment_result *own = &request->held->results[i];
        if (own->is_held && own->held.inode == page->inode && own->held.base == page->base)
            switch_page_leave(&own->held, SWITCH_LOGGING);
    }
    return !switch_page_is_last(page, SWITCH_LOGGING);
}

/* One that was killed may have asked, and nobody waits for the answer. */
static bool is_orphan(const struct asking *asking)
{
    return asking->request->passing && asking->request->wanted == ATTACH_OFF &&
           !asking->request->held;
}

static void ask_for(struct asking *asking, struct switch_page *page, const char *dir,
                    struct attachment_result *result)
{
    uint32_t number;
    if (switch_page_ask(page, asking->request->wanted, dir, &number))
        unusable(result);
    else if (!await_answer(asking, page, number, false, result))
        give_up(asking, page, number, result);
}

/* Nobody has named a directory, and perf could not see a dump in the process's own choice, which is
 * mounted noexec.  The process tries the other places: only it knows what it may do there. */
static void ask_for_other_places(struct asking *asking, struct switch_page *page,
                                 struct attachment_result *result)
{
    const struct switch_answer first = result->answer;
    const int64_t deadline_ms = asking->deadline_ms;
    const enum other_place end = asking->attachment->elsewhere ? OTHER_PLACE_HERE : OTHER_PLACES;
    for (enum other_place i = 0; i < end && result->outcome == ATTACHMENT_FAILED; i++) {
        const char *dir = other_place_to_map(i);
        asking->deadline_ms = deadline_of(asking->request);
        if (dir)
            ask_for(asking, page, dir, result);
    }
    asking->deadline_ms = deadline_ms;
    if (result->outcome != ATTACHMENT_DONE && result->outcome != ATTACHMENT_ENDED) {
        result->outcome = ATTACHMENT_FAILED;
        result->answer = first;
    }
}

static void ask_locked(struct asking *asking, struct switch_page *page, bool logs,
                       struct attachment_result *result)
{
    const struct attachment_request *request = asking->request;
    if (switch_page_read(page, &result->answer)) {
        unusable(result);
        return;
    }
    if (is_others(asking, page)) {
        result->outcome = ATTACHMENT_SHARED;
        return;
    }
    if (is_recorders(asking, page, result))
        hold(request, page, result);
    if (is_done(&result->answer, request->wanted, logs) && !is_orphan(asking))
        result->outcome = ATTACHMENT_ALREADY;
    else
        ask_for(asking, page, request->dir, result);
    if (result->outcome == ATTACHMENT_FAILED && request->wanted == ATTACH_ON && !request->dir &&
        result->answer.error == -EPERM && strstr(result->answer.text, "noexec"))
        ask_for_other_places(asking, page, result);
    if (result->outcome == ATTACHMENT_DONE && !result->answer.path[0])
        result->outcome = ATTACHMENT_ALREADY; /* there was nothing to close */
    end_holding(page, result);
}

static void ask_page(struct asking *asking, struct switch_page *page, bool logs,
                     struct attachment_result *result)
{
    if (page->fd < 0 && switch_page_open(page)) {
        unusable(result);
        return;
    }
    if (page->owner != asking->attachment->live.namespace_pid && !split(asking, page)) {
        result->outcome = ATTACHMENT_NOT_POLLED;
        return;
    }
    while (!switch_page_lock(page))
        if (is_over(asking) || !wait_a_little(asking)) {
            result->outcome = ATTACHMENT_BUSY;
            return;
        }
    ask_locked(asking, page, logs, result);
}

/* ---- No JIT to ask ---- */

/* The owner of PID, and with it the users who may send requests, too. */
static int refuse_permission(const struct attachment *attachment, struct findings *findings)
{
    uid_t uid = attachment->live.uid;
    const struct passwd *user = getpwuid(uid);
    if (uid == geteuid())
        return report_failure(findings,
                              "%d: can't be examined: it has other rights than you, or has given "
                              "some up; only root can send it requests",
                              (int)attachment->pid);
    return report_failure(findings,
                          "%d: is of user %u (%s): only that user and root can send it requests",
                          (int)attachment->pid, (unsigned)uid, user ? user->pw_name : "?");
}

static int no_process(pid_t pid, struct findings *findings)
{
    return report_failure(findings, "%d: there is no such process", (int)pid);
}

static int no_switch(const struct attachment *attachment, const struct switch_list *list,
                     struct findings *findings)
{
    int pid = (int)attachment->pid;
    if (list->is_empty)
        return report_failure(findings, "%d: has ended, or is the kernel's own: it has no memory",
                              pid);
    if (list->dump)
        return report_failure(
            findings,
            "%d: logs its JIT code already, to %s, and takes no requests to begin or end: for "
            "these start it with PERFJIT=attach in its environment",
            pid, list->dump);
    if (list->has_library)
        return report_failure(
            findings,
            "%d: has libjitdump, but can't be asked: start it with PERFJIT=attach "
            "in its environment, or open its handle with JITDUMP_ATTACHABLE",
            pid);
    return report_failure(findings,
                          "%d: can't be asked: it has no libjitdump, or was not started with "
                          "PERFJIT=attach in its environment (JITDUMP_ATTACHABLE in its source)",
                          pid);
}

/* ---- All of a process ---- */

static void open_root(struct attachment *attachment)
{
    char path[64], its[64] = "", own[64] = "";
    snprintf(path, sizeof path, "/proc/%d/ns/mnt", (int)attachment->pid);
    attachment->elsewhere =
        attachment->live.other_root ||
        (readlink(path, its, sizeof its - 1) > 0 &&
         readlink("/proc/self/ns/mnt", own, sizeof own - 1) > 0 && strcmp(its, own) != 0);
    snprintf(path, sizeof path, "/proc/%d/root", (int)attachment->pid);
    attachment->root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int ask_all(struct attachment *attachment, const struct attachment_request *request,
                   struct switch_list *list, struct findings *findings)
{
    struct asking asking = {request, attachment, -1, deadline_of(request)};
    attachment->results = calloc(list->count, sizeof *attachment->results);
    if (!attachment->results)
        return report_failure(findings, "out of memory");
    attachment->count = list->count;
#ifdef SYS_pidfd_open
    asking.process = (int)syscall(SYS_pidfd_open, request->pid, 0);
#endif
    for (size_t i = 0; i < list->count; i++)
        ask_page(&asking, &list->pages[i], list->dump != NULL, &attachment->results[i]);
    if (asking.process >= 0)
        close(asking.process);
    attachment->interrupted = was_interrupted();
    return 0;
}

static int ask(struct attachment *attachment, const struct attachment_request *request,
               struct findings *findings)
{
    struct switch_list list = {0};
    int result = 0;
    if (!live_process_read(&attachment->live, (uint32_t)request->pid, UINT64_MAX))
        return no_process(request->pid, findings);
    open_root(attachment);
    if (switch_list_read(&list, request->pid))
        result = errno == EACCES || errno == EPERM ? refuse_permission(attachment, findings)
                                                   : no_process(request->pid, findings);
    else if (list.count == 0)
        result = no_switch(attachment, &list, findings);
    else
        result = ask_all(attachment, request, &list, findings);
    switch_list_free(&list);
    return result;
}

int attachment_ask(struct attachment *attachment, const struct attachment_request *request,
                   struct findings *findings)
{
    sigset_t ending, old;
    *attachment = (struct attachment){.pid = request->pid, .root = -1};
    sigemptyset(&ending);
    sigaddset(&ending, SIGINT);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGHUP);
    sigprocmask(SIG_BLOCK, &ending, &old);
    int result = ask(attachment, request, findings);
    sigprocmask(SIG_SETMASK, &old, NULL);
    return result;
}

void attachment_free(struct attachment *attachment)
{
    for (size_t i = 0; i < attachment->count; i++)
        if (attachment->results[i].is_held)
            switch_page_close(&attachment->results[i].held);
    free(attachment->results);
    if (attachment->root >= 0)
        close(attachment->root);
    *attachment = (struct attachment){.root = -1};
}

size_t attachment_good(const struct attachment *attachment)
{
    size_t good = 0;
    for (size_t i = 0; i < attachment->count; i++)
        good += attachment->results[i].outcome == ATTACHMENT_DONE ||
                attachment->results[i].outcome == ATTACHMENT_ALREADY;
    return good;
}

bool attachment_holds(const struct attachment *attachment)
{
    for (size_t i = 0; i < attachment->count; i++)
        if (attachment->results[i].is_held)
            return true;
    return false;
}
