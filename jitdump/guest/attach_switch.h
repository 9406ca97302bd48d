/* The page (format/attach_page.h) by which others request this process's dump: its memory, its copy
 * in a forked child, and requests and answers on it.
 *
 * Who may write to the file or to this process's memory may write anything at any time.  But no
 * access to the page faults: the file behind it is sealed against truncation.  (A hole in it reads
 * as zeros.)
 */
#ifndef JITDUMP_ATTACH_SWITCH_H
#define JITDUMP_ATTACH_SWITCH_H

#include "jitdump/format/attach_page.h"
#include "jitdump/guest/fork_mark.h"
#include "jitdump/guest/held_fd.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A request, copied from the page. */
struct attach_request {
    uint32_t number;
    uint32_t wanted;
    bool refused;                /* nothing proves that its asker may ask */
    char dir[ATTACH_PATH_BYTES]; /* with a NUL */
};

struct attach_switch {
    struct fork_mark fork_mark;
    struct attach_switch *parent; /* of the process that this one was forked from, or NULL */
    struct attach_page *page;     /* that is polled; private memory, which children inherit */
    struct attach_page
        *shared;       /* the file's, for answers; in no child.  PAGE if there is no file */
    struct held_fd fd; /* read-only; the number is -1: there is no file */
    pid_t pid;
    uint32_t answered;  /* the newest request that was taken */
    atomic_bool ready;  /* the page is this process's */
    bool told;          /* all live code was added to the dump that is open */
    uint64_t waits_for; /* the word and number that nothing is done about yet */
    uint64_t waits_since_ns;
    _Atomic uint32_t actor;        /* the thread that serves a request; 0: none */
    uintptr_t actor_frame;         /* where its call is on its stack */
    int actor_cancel_state;        /* of the thread when it called */
    struct attach_request request; /* that it acts on */
};

/* Returns NULL, with errno, if there is no memory for a page. */
struct attach_switch *jd_switch_new(void);

/* This process's: *PLACE, or in a forked child one of its own, which is put there, with a page at
 * the same address.  Returns NULL if there is no memory for it.  Threads: any number at once. */
struct attach_switch *jd_switch_own(_Atomic(struct attach_switch *) *place);

/* Take the right to serve requests, for a call whose frame is at FRAME.  Returns false if another
 * thread has it, or an outer call of this thread.  jd_switch_leave gives it back.  A thread that
 * has ended loses the right, and so does a call that was left by an exception or a longjmp. */
bool jd_switch_enter(struct attach_switch *control, const void *frame);
void jd_switch_leave(struct attach_switch *control);

/* Take the newest request; it is good until jd_switch_leave.  Returns NULL if there is none that
 * was not taken before, or it is being written: then the word calls again. */
const struct attach_request *jd_switch_take(struct attach_switch *control);

/* The request that was taken is served. */
void jd_switch_answer(struct attach_switch *control);

/* Free it and its parents, the page last of all. */
void jd_switch_free(struct attach_switch *control);

#endif
