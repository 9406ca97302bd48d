/* Whether an object was made by this process or inherited through fork, without a system call.
 *
 * The mark is a word in a page that the kernel wipes in a child (MADV_WIPEONFORK, Linux 4.14).  If
 * that is not supported, getpid is called each time.
 */
#ifndef JITDUMP_FORK_MARK_H
#define JITDUMP_FORK_MARK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

struct fork_mark {
    const volatile uint32_t *word; /* 0: inherited.  NULL: compare the pids */
    pid_t pid;                     /* of the process that set the mark */
};

/* Whether the environment takes any advice about PAGE, and ignores it, as qemu-user up to 7 does.
 */
static inline bool jd_advice_is_ignored(void *page, size_t page_bytes)
{
    return madvise(page, page_bytes, -1) == 0;
}

void jd_fork_mark_set(struct fork_mark *mark);

/* Only when no thread can use it any more. */
void jd_fork_mark_free(struct fork_mark *mark);

/* A counter that is 0 in a child: the child has none of the threads that counted.  NULL where the
 * kernel does not wipe the page. */
static inline _Atomic uint32_t *jd_fork_mark_counter(const struct fork_mark *mark)
{
    return mark->word ? (_Atomic uint32_t *)(uintptr_t)(mark->word + 1) : NULL;
}

static inline bool jd_fork_mark_is_inherited(const struct fork_mark *mark)
{
    return mark->word ? *mark->word == 0 : getpid() != mark->pid;
}

#endif
