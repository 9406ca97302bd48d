/* The page by which a running process gets requests to begin and to end its dump.
 *
 * It is a memfd of that name with ATTACH_PAGE_BYTES, sealed so that its size can't change; perfjit
 * finds it in /proc/PID/maps.  The process maps it twice: privately for what it polls, which a
 * forked child inherits, and shared for its answers, which no child has.  So a child that drops its
 * rights can't write to its parent's page.  The descriptor of the file is read-only, and so is no
 * way either; whoever opens it anew is checked by the kernel.  Without memfd or /proc the page is
 * private memory that begins with the magic, and only /proc/PID/mem reaches it.  All numbers are in
 * the machine's byte order.
 *
 *       0  char magic[8]      "pjattach"
 *       8  u32  version       1
 *      12  u32  pid           of the process that reads the page, in its own pid namespace; in a
 *                             forked child that still shares its parent's page, the parent's
 *      16  u32  word          0: nothing to do; else enum attach_word.  What is polled
 *      20  u32  request       number of the newest request; goes up.        Asker's from here
 *      24  u32  wanted        enum attach_wanted
 *      28  u32  reserved
 *      32  char dir[4096]     directory for the dump, as the process sees it, absolute; "": its own
 *    4128  u32  answer        the request that all below answers.           Process's from here
 *    4132  u32  state         enum attach_state
 *    4136  i32  error         negative errno of the newest attempt to attach; 0: none
 *    4140  u32  openings      how many dumps it has opened
 *    4144  u64  functions     that were logged while all live code was told
 *    4152  u64  opening_ns    how long opening the dump took
 *    4160  u64  telling_ns    and telling all live code: how long the polling thread was held up
 *    4168  u64  lost          functions, moves and unloads that are not in the dump, so far
 *    4176  char path[4096]    of the dump that is open, or that this request closed, as the process
 *                             sees it; "": there was none
 *    8272  char text[1024]    what ERROR means, as a sentence
 *    9296  up to ATTACH_PAGE_BYTES: 0
 *
 * A request: the asker writes dir, wanted and request, then word.  Then it sets the file's time of
 * change to (request, ATTACH_PROOF_NS).  The kernel lets only the file's owner and root do that,
 * and looks at who it is at that time: a descriptor from better days does not help.  The process
 * acts only if that is so, and if the owner is root or its own user.  It resets word, acts, and
 * writes state, ..., text, and then answer.  Neither trusts what the other writes: texts may lack
 * their NUL, numbers may be anything, and all may change while it is read.
 *
 * mlockall(MCL_CURRENT) gives the process a copy of what it polls.  An asker who may trace it writes
 * the word there as well; the process drops the copy.
 *
 * A request in the process's memory (/proc/PID/mem, or the process itself) needs no proof: who can
 * write there can do anything.  The process takes it from its private copy and drops the copy.
 *
 * Fork: a child sees its parent's page until it has polled once with a word that is not 0.  Then it
 * has a page of its own at the same address.  ATTACH_SPLIT requests only that.  The owner of the
 * page resets it after ATTACH_PATIENCE_NS: the asker, if it still lives, sets it again.
 */
#ifndef JITDUMP_ATTACH_PAGE_H
#define JITDUMP_ATTACH_PAGE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define ATTACH_PAGE_NAME  "perfjit-attach"
#define ATTACH_PAGE_MAGIC "pjattach"

enum {
    ATTACH_PAGE_VERSION = 1,
    ATTACH_PAGE_BYTES = 16384, /* in the file; the mapping is rounded up to whole pages */
    ATTACH_PATH_BYTES = 4096,
    ATTACH_TEXT_BYTES = 1024,
    ATTACH_MAGIC_BYTES = 8,
    ATTACH_PROOF_NS = 716253941,     /* no time that a write leaves */
    ATTACH_PATIENCE_NS = 1000000000, /* for a request to be proven, for children to split */
};

enum attach_word { ATTACH_QUIET, ATTACH_ASK, ATTACH_SPLIT };
enum attach_wanted { ATTACH_NOTHING, ATTACH_ON, ATTACH_OFF };
enum attach_state {
    ATTACH_IS_OFF,
    ATTACH_IS_TELLING, /* the dump is open, live code is being added */
    ATTACH_IS_ON,
};

struct attach_page {
    char magic[ATTACH_MAGIC_BYTES];
    uint32_t version;
    uint32_t pid;
    _Atomic uint32_t word;
    _Atomic uint32_t request;
    uint32_t wanted;
    uint32_t reserved;
    char dir[ATTACH_PATH_BYTES];
    _Atomic uint32_t answer;
    uint32_t state;
    int32_t error;
    uint32_t openings;
    uint64_t functions;
    uint64_t opening_ns;
    uint64_t telling_ns;
    uint64_t lost;
    char path[ATTACH_PATH_BYTES];
    char text[ATTACH_TEXT_BYTES];
};

_Static_assert(offsetof(struct attach_page, pid) == 12, "");
_Static_assert(offsetof(struct attach_page, word) == 16, "");
_Static_assert(offsetof(struct attach_page, dir) == 32, "");
_Static_assert(offsetof(struct attach_page, answer) == 4128, "");
_Static_assert(offsetof(struct attach_page, functions) == 4144, "");
_Static_assert(offsetof(struct attach_page, path) == 4176, "");
_Static_assert(offsetof(struct attach_page, text) == 8272, "");
_Static_assert(sizeof(struct attach_page) <= ATTACH_PAGE_BYTES, "");

#endif
