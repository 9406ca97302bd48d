/* See fork_mark.h. */
#include "jitdump/guest/fork_mark.h"

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

void jd_fork_mark_set(struct fork_mark *mark)
{
    mark->pid = getpid();
    mark->word = NULL;
    uint32_t *page =
        mmap(NULL, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return;
    if (jd_advice_is_ignored(page, page_bytes()) ||
        madvise(page, page_bytes(), MADV_WIPEONFORK) != 0) {
        munmap(page, page_bytes());
        return;
    }
    *page = 1;
    mark->word = page;
}

void jd_fork_mark_free(struct fork_mark *mark)
{
    if (mark->word)
        munmap((void *)(uintptr_t)mark->word, page_bytes());
    mark->word = NULL;
}
