/* The page through which a process's dump is requested (jitdump/format/attach_page.h), seen from
 * outside: its place in the process, and how it is read and written.
 *
 * There are two ways to reach the page; the first that works is used:
 *
 *     /proc/PID/fd/N                its file, if the process has it open: root and the same user
 *     /proc/PID/mem                 its memory: root, and who may trace the process
 *
 * It is read and written by pread and pwrite, never mapped: a lying process could cut its page.  A
 * file is taken only if it is memory that its seals keep from being cut: any user can give a file
 * of another user's that name, in a mount namespace of his own.
 */
#ifndef PERFJIT_SWITCH_PAGE_H
#define PERFJIT_SWITCH_PAGE_H

#include "jitdump/format/attach_page.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct switch_page {
    pid_t process;
    uint64_t start, end; /* in the process */
    uint64_t inode;
    bool has_file;
    int fd;         /* -1: it is not open */
    uint64_t base;  /* the page's offset in fd */
    uint32_t owner; /* the pid that the page says, in that process's namespace */
};

/* The process's answer, copied, with a NUL at the end of each text. */
struct switch_answer {
    uint32_t request; /* that it answers */
    uint32_t state;
    int32_t error;
    uint64_t functions, opening_ns, telling_ns, lost;
    char path[ATTACH_PATH_BYTES];
    char text[ATTACH_TEXT_BYTES];
};

/* Open PAGE, of which process, range, inode and has_file are set.  Returns 0, or -1 with errno;
 * EPROTO: it is no such page, or of another version. */
int switch_page_open(struct switch_page *page);

void switch_page_close(struct switch_page *page);

/* Keep others that ask by the same file away until it is closed, or unlocked.  False: another one
 * is at it. */
bool switch_page_lock(const struct switch_page *page);
void switch_page_unlock(const struct switch_page *page);

/* Recorders count themselves by locks on the page, which end with them.  The process knows nothing
 * of it. */
enum switch_use {
    SWITCH_LOGGING, /* the dump is on for recorders only: the last one ends it */
    SWITCH_READING, /* and removes it, once nobody reads it */
};

/* Use it from now on, or no more.  Whether others do, is the question of switch_page_is_used; the
 * last one asks with IS_LAST, and keeps others away until the page is closed if nobody does. */
bool switch_page_use(const struct switch_page *page, enum switch_use use);
void switch_page_leave(const struct switch_page *page, enum switch_use use);
bool switch_page_is_used(const struct switch_page *page, enum switch_use use);
bool switch_page_is_last(const struct switch_page *page, enum switch_use use);

/* Ask for WANTED, with DIR or NULL.  Returns 0, or -1 with errno; *REQUEST is its number. */
int switch_page_ask(const struct switch_page *page, enum attach_wanted wanted, const char *dir,
                    uint32_t *request);

/* Show the process that REQUEST is this user's; anything that is written to the file takes that
 * back. Returns 0, or -1 with errno. */
int switch_page_prove(const struct switch_page *page, uint32_t request);

/* mlockall gives a process a copy of the page, in which it does not see the file's word: if that is
 * so, write the word there, too.  That takes the right to trace the process. */
void switch_page_wake(const struct switch_page *page);

/* Whether the process has taken the request that stands there, and will answer it. */
bool switch_page_is_taken(const struct switch_page *page);

/* Ask for nothing any more. */
void switch_page_withdraw(const struct switch_page *page);

/* Call on processes that share the page with their parent to have one of their own; and no more. */
int switch_page_split(const struct switch_page *page, bool on);

/* Returns 0, or -1 with errno: the process has ended. */
int switch_page_read(const struct switch_page *page, struct switch_answer *answer);

#endif
