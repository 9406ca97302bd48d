/* The handle of jitdump.h, for the files that make up its functions.
 *
 * FILE is where records go: NULL as long as nobody has asked for a dump (attach.c), or if
 * jitdump_open failed.  It changes at any time, in jitdump_poll, so a call that uses it stands
 * between jd_handle_enter and jd_handle_leave: what was closed is freed when nobody is there.
 */
#ifndef JITDUMP_HANDLE_H
#define JITDUMP_HANDLE_H

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
    bool checks_frames; /* PERFJIT has the word "check" */
    _Atomic uint64_t frame_faults;
    struct first_error error;
    char *dir; /* absolute, so that a child finds it wherever its current directory is; NULL: it is
                  asked for one */
    /* Of one that can be asked for its dump (attach.c). */
    const _Atomic uint32_t *word;             /* that jitdump_poll looks at; never NULL */
    _Atomic(struct attach_switch *) control;  /* the newest process's; NULL: it can't be asked */
    _Atomic uint32_t users;                   /* calls that may use the file */
    uint64_t next_code_index;                 /* of the next dump */
    struct dump_file *retired;                /* those that have ended, and may be in use */
    _Atomic(struct stub_arena *) trampolines; /* NULL: none were made */
};

/* The word of those that can't be asked. */
extern const _Atomic uint32_t jd_never_asked;

/* Whether nothing is recorded. */
static inline bool jd_handle_is_off(const struct jitdump *dump)
{
    return !atomic_load_explicit(&dump->file, memory_order_relaxed);
}

static inline void jd_handle_enter(struct jitdump *dump)
{
    if (dump->control)
        atomic_fetch_add(&dump->users, 1);
}

static inline void jd_handle_leave(struct jitdump *dump)
{
    if (dump->control)
        atomic_fetch_sub_explicit(&dump->users, 1, memory_order_release);
}

/* Make DUMP, of a process whose user asks for that, one that can be switched on and off; a dump
 * may be open already.  If there is no memory for it, it stays one that can't. */
void jd_handle_make_attachable(struct jitdump *dump);

/* Close FILE and those of the processes before it, and free them.  No other call is in progress.
 * Returns the first error. */
int jd_handle_close_files(struct dump_file *file);

/* Free what jd_handle_make_attachable made. */
int jd_handle_close_attachable(struct jitdump *dump);

/* Add all trampolines, to a dump that has just been opened (trampoline.c). */
void jd_handle_tell_trampolines(struct jitdump *dump);

/* Free what is known of them.  They stay callable. */
void jd_handle_leave_trampolines(struct jitdump *dump);

#endif
