/* The handle of jitdump.h, for the files that make up its functions.
 *
 * Records go to FILE.  It is NULL as long as no dump was requested (attach.c), or if jitdump_open
 * failed.  jitdump_poll may change it at any time.  So a call that uses it stands between
 * jd_handle_enter and jd_handle_leave: closed files are freed when no call is between them.
 */
#ifndef JITDUMP_HANDLE_H
#define JITDUMP_HANDLE_H

#include "jitdump/code_check.h"
#include "jitdump/guest/attach_switch.h"
#include "jitdump/guest/first_error.h"
#include "jitdump/jitdump.h"
#include "jitdump/writer/dump_file.h"

struct jitdump {
    _Atomic(struct dump_file *) file; /* the newest process's; NULL: there is none */
    int open_error;                   /* why, if jitdump_open failed */
    struct dump_kind kind;
    _Atomic uint64_t lost;
    _Atomic uint64_t unreadable;
    struct code_check check;
    struct first_error error;
    char *dir; /* absolute, so that a child finds it from any current directory; NULL: from the
                  request */
    /* For dumps on request (attach.c). */
    const _Atomic uint32_t *word;            /* that jitdump_poll reads; never NULL */
    _Atomic(struct attach_switch *) control; /* the newest process's; NULL: no requests */
    _Atomic uint32_t *users; /* this process's calls that may use the file; NULL: no requests */
    _Atomic uint32_t users_without_mark;      /* where a child can't have a count of its own */
    uint64_t next_code_index;                 /* of the next dump */
    struct dump_file *retired;                /* files that have ended, and may be in use */
    _Atomic(struct stub_arena *) trampolines; /* NULL: none were made */
};

/* The word of handles that take no requests. */
extern const _Atomic uint32_t jd_never_asked;

/* Whether nothing is recorded. */
static inline bool jd_handle_is_off(const struct jitdump *dump)
{
    return !atomic_load_explicit(&dump->file, memory_order_relaxed);
}

static inline void jd_handle_enter(struct jitdump *dump)
{
    if (dump->users)
        atomic_fetch_add(dump->users, 1);
}

static inline void jd_handle_leave(struct jitdump *dump)
{
    if (dump->users)
        atomic_fetch_sub_explicit(dump->users, 1, memory_order_release);
}

/* Put a record of BYTES, WHAT. */
typedef void jd_put_record(struct dump_room *room, uint64_t bytes, const void *what);

/* Add a record of BYTES that PUT makes of WHAT, and that is of no function that can be moved or
 * unloaded.  Returns as jitdump_add_code; errno is preserved. */
int jd_handle_add_record(struct jitdump *dump, uint64_t bytes, jd_put_record *put,
                         const void *what);

/* Let DUMP be switched on and off by requests.  A dump may be open already.  If there is no memory
 * for that, DUMP takes no requests. */
void jd_handle_make_attachable(struct jitdump *dump);

/* Close FILE and those of the processes before it, and free them.  No other call is in progress.
 * Returns the first error. */
int jd_handle_close_files(struct dump_file *file);

/* Free what jd_handle_make_attachable made. */
int jd_handle_close_attachable(struct jitdump *dump);

/* Add all trampolines, to a dump that has just been opened (trampoline.c). */
void jd_handle_tell_trampolines(struct jitdump *dump);

/* Free the trampolines' names.  The trampolines stay callable. */
void jd_handle_leave_trampolines(struct jitdump *dump);

#endif
