/* The page by which a running process gets requests to begin and to end its dump.
 *
 * It is shared memory of ATTACH_PAGE_BYTES that the process maps; perfjit finds it in
 * /proc/PID/maps.  It is a memfd of that name, sealed so that its size can't change.  Without memfd
 * it is anonymous shared memory that begins with the magic.  All numbers are in the machine's byte
 * order.
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
 *    4176  char path[4096]    of the dump, as the process sees it; "": it has not opened any
 *    8272  char text[1024]    what ERROR means, as a sentence
 *    9296  up to ATTACH_PAGE_BYTES: 0
 *
 * A request: the asker writes dir, wanted and request, then word.  The process resets word, reads
 * the rest, acts, and writes state, ..., text, and then answer.  Neither trusts what the other
 * writes: texts may lack their NUL, numbers may be anything, and all may change while it is read.
 *
 * Fork: a child shares its parent's page until it has polled once with a word that is not 0.  Then
 * it has a page of its own at the same address.  ATTACH_SPLIT requests only that.  The owner of the
 * page does not reset it.
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
