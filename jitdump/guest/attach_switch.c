/* See attach_switch.h. */
#include "jitdump/guest/attach_switch.h"
#include "jitdump/format/dump_clock.h"
#include "jitdump/guest/holder_state.h"
#include "jitdump/guest/record_author.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u /* Linux 6.3; older kernels say EINVAL */
#endif

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

static size_t mapped_bytes(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (ATTACH_PAGE_BYTES + page - 1) / page * page;
}

/* ---- The memory ---- */

/* Making a file longer than RLIMIT_FSIZE allows raises SIGXFSZ, also where it is memory. */
static bool may_be_so_long(size_t bytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
           limit.rlim_cur >= bytes;
}

static int new_memfd(void)
{
#ifdef SYS_memfd_create
    unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    long fd = syscall(SYS_memfd_create, ATTACH_PAGE_NAME, flags | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL)
        fd = syscall(SYS_memfd_create, ATTACH_PAGE_NAME, flags);
    return (int)fd;
#else
    return -1;
#endif
}

/* A sealed file of BYTES; -1: there can be none. */
static int page_file(size_t bytes)
{
    int fd = may_be_so_long(bytes) ? new_memfd() : -1;
    if (fd < 0)
        return -1;
    fchmod(fd, S_IRUSR | S_IWUSR); /* whoever may look into /proc/PID/fd and is not its owner */
    if (ftruncate(fd, (off_t)bytes) == 0 && fcntl(fd, F_ADD_SEALS, SEALS) == 0)
        return fd;
    syscall(SYS_close, fd);
    return -1;
}

/* A child inherits the descriptor, and may drop its rights. */
static int reopen_read_only(int fd)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return jd_fd_above_standard_streams(
        (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC));
}

static struct attach_page *map_page(int fd, size_t bytes, int sharing)
{
    int flags = sharing | (fd < 0 ? MAP_ANONYMOUS : 0);
    void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
    return page == MAP_FAILED ? NULL : page;
}

static void unmap_page(struct attach_page *page)
{
    if (page)
        munmap(page, mapped_bytes());
}

/* The file's memory, in this process alone; NULL: there is none. */
static struct attach_page *map_shared(int fd, size_t bytes)
{
    struct attach_page *shared = map_page(fd, bytes, MAP_SHARED);
    if (!shared || madvise(shared, bytes, MADV_DONTFORK) == 0)
        return shared;
    unmap_page(shared);
    return NULL;
}

/* Map the page of FD, a new file, and hold it; without a way to hold it read-only the page is this
 * process's private memory. */
static void map_file(struct attach_switch *control, int fd)
{
    int read_only = reopen_read_only(fd);
    control->page = map_page(fd, mapped_bytes(), MAP_PRIVATE);
    if (read_only >= 0 && control->page)
        control->shared = map_shared(fd, mapped_bytes());
    if (read_only >= 0 && (!control->shared || !jd_fd_hold(&control->fd, read_only))) {
        syscall(SYS_close, read_only);
        unmap_page(control->shared);
        control->shared = NULL;
    }
}

/* Without a file a mapping of its own flags is one that no other is joined with. */
static void map_memory(struct attach_switch *control)
{
    control->page = map_page(-1, mapped_bytes(), MAP_PRIVATE);
    if (control->page)
        madvise(control->page, mapped_bytes(), MADV_DONTDUMP);
}

/* Have the page follow the file again.  A write to it makes a copy, and so does mlockall; locked
 * memory can't be given up.  What it shows stays locked by the shared mapping. */
static void drop_copy(struct attach_switch *control)
{
    munlock(control->page, mapped_bytes());
    madvise(control->page, mapped_bytes(), MADV_DONTNEED);
}

static void fill_page(struct attach_page *page, pid_t pid)
{
    page->version = ATTACH_PAGE_VERSION;
    page->pid = (uint32_t)pid;
    atomic_thread_fence(memory_order_release);
    memcpy(page->magic, ATTACH_PAGE_MAGIC, ATTACH_MAGIC_BYTES);
}

/* ---- Its owner ---- */

static void close_file(struct attach_switch *control)
{
    jd_fd_close(&control->fd);
}

/* A switch with a page anywhere. */
static struct attach_switch *new_switch(struct attach_switch *parent)
{
    struct attach_switch *control = calloc(1, sizeof *control);
    if (!control)
        return NULL;
    control->parent = parent;
    control->pid = getpid();
    control->fd.number = -1;
    int fd = page_file(mapped_bytes());
    if (fd >= 0) {
        map_file(control, fd);
        syscall(SYS_close, fd);
    }
    if (!control->page)
        map_memory(control);
    if (!control->page) {
        free(control);
        return NULL;
    }
    if (!control->shared)
        control->shared = control->page;
    fill_page(control->shared, control->pid);
    if (memcmp(control->page->magic, ATTACH_PAGE_MAGIC, ATTACH_MAGIC_BYTES) != 0)
        drop_copy(control); /* mlockall(MCL_FUTURE) */
    jd_fork_mark_set(&control->fork_mark);
    return control;
}

struct attach_switch *jd_switch_new(void)
{
    struct attach_switch *control = new_switch(NULL);
    if (control)
        atomic_store(&control->ready, true);
    return control;
}

static void unmap_shared(struct attach_switch *control)
{
    if (control->shared != control->page)
        unmap_page(control->shared);
}

static void discard(struct attach_switch *control)
{
    unmap_shared(control);
    unmap_page(control->page);
    close_file(control);
    jd_fork_mark_free(&control->fork_mark);
    free(control);
}

/* The child's page takes the place of the parent's at once: others may be reading the word. */
static void take_place(struct attach_switch *control)
{
    struct attach_switch *parent = control->parent;
    void *page = mremap(control->page, mapped_bytes(), mapped_bytes(),
                        MREMAP_MAYMOVE | MREMAP_FIXED, parent->page);
    if (page == MAP_FAILED)
        return;
    if (control->shared == control->page)
        control->shared = parent->page;
    control->page = parent->page;
    jd_fd_close_inherited(&parent->fd, parent->pid);
    atomic_store(&control->ready, true);
}

struct attach_switch *jd_switch_own(_Atomic(struct attach_switch *) *place)
{
    struct attach_switch *inherited = atomic_load(place);
    if (!jd_fork_mark_is_inherited(&inherited->fork_mark))
        return atomic_load(&inherited->ready) ? inherited : NULL;
    struct attach_switch *fresh = new_switch(inherited), *expected = inherited;
    if (!fresh)
        return NULL;
    if (!atomic_compare_exchange_strong(place, &expected, fresh)) {
        discard(fresh);
        return atomic_load(&expected->ready) ? expected : NULL;
    }
    take_place(fresh);
    return atomic_load(&fresh->ready) ? fresh : NULL;
}

void jd_switch_free(struct attach_switch *control)
{
    struct attach_page *page = NULL;
    while (control) {
        struct attach_switch *parent = control->parent;
        if (page && control->page != page) /* it never took its parent's place */
            unmap_page(page);
        if (jd_fork_mark_is_inherited(&control->fork_mark)) {
            jd_fd_close_inherited(&control->fd, control->pid);
        } else {
            unmap_shared(control);
            close_file(control);
        }
        page = control->page;
        jd_fork_mark_free(&control->fork_mark);
        free(control);
        control = parent;
    }
    if (page)
        unmap_page(page);
}

/* ---- Requests ---- */

static bool take_from(struct attach_switch *control, uint32_t *actor, uint32_t thread)
{
    return atomic_compare_exchange_strong_explicit(&control->actor, actor, thread,
                                                   memory_order_acquire, memory_order_relaxed);
}

/* A thread that called from FRAME is still in that call as long as its stack is deeper. */
bool jd_switch_enter(struct attach_switch *control, const void *frame)
{
    uint32_t actor = 0, thread = jd_author((uint32_t)control->pid).tid;
    if (!take_from(control, &actor, thread)) {
        bool left = actor == thread ? (uintptr_t)frame >= control->actor_frame
                                    : jd_holder_state(actor) == HOLDER_GONE;
        if (!left || !take_from(control, &actor, thread))
            return false;
    }
    control->actor_frame = (uintptr_t)frame;
    return true;
}

void jd_switch_leave(struct attach_switch *control)
{
    atomic_store_explicit(&control->actor, 0, memory_order_release);
}

/* Whether nothing was done about WORD and NUMBER for so long that nothing will come of them. */
static bool has_waited(struct attach_switch *control, uint32_t word, uint32_t number)
{
    uint64_t key = (uint64_t)number << 32 | word, now_ns = jd_clock_now(false);
    if (control->waits_for == key)
        return now_ns - control->waits_since_ns > ATTACH_PATIENCE_NS;
    control->waits_for = key;
    control->waits_since_ns = now_ns;
    return false;
}

/* Copy the request that stands in PAGE.  Returns false if it is being written. */
static bool copy_request(struct attach_request *request, struct attach_page *page)
{
    request->number = atomic_load(&page->request);
    request->wanted = *(volatile uint32_t *)&page->wanted;
    memcpy(request->dir, page->dir, sizeof request->dir);
    request->dir[sizeof request->dir - 1] = '\0';
    atomic_thread_fence(memory_order_acquire);
    return atomic_load(&page->request) == request->number;
}

/* Whether root, or the user that this process has now, is behind the file's request NUMBER. */
static bool is_proven(const struct attach_switch *control, uint32_t number)
{
    struct stat status;
    return jd_fd_is_ours_now(&control->fd, &status) &&
           (status.st_uid == 0 || status.st_uid == geteuid()) &&
           status.st_mtim.tv_sec == (time_t)number && status.st_mtim.tv_nsec == ATTACH_PROOF_NS;
}

static bool is_new(const struct attach_switch *control)
{
    const struct attach_request *request = &control->request;
    return request->number != control->answered && request->wanted != ATTACH_NOTHING;
}

/* The proof follows the request. */
static bool is_due(struct attach_switch *control, bool in_file)
{
    struct attach_request *request = &control->request;
    bool doubtful = in_file && is_new(control) && !is_proven(control, request->number);
    if (doubtful && !has_waited(control, ATTACH_ASK, request->number))
        return false;
    request->refused = doubtful;
    return true;
}

/* Take what stands in PAGE. */
static const struct attach_request *take(struct attach_switch *control, struct attach_page *page,
                                         bool in_file)
{
    struct attach_request *request = &control->request;
    uint32_t word = atomic_load(&page->word);
    if (word == ATTACH_SPLIT && !has_waited(control, word, 0))
        return NULL;
    if (word == ATTACH_ASK && (!copy_request(request, page) || !is_due(control, in_file)))
        return NULL; /* it calls again */
    control->waits_for = 0;
    if (!atomic_compare_exchange_strong(&page->word, &word, ATTACH_QUIET) || word != ATTACH_ASK ||
        !is_new(control))
        return NULL;
    control->answered = request->number;
    return request;
}

/* Somebody wrote to this process's memory.  From then on that has a copy of the file's, which does
 * not follow it. */
static const struct attach_request *take_from_copy(struct attach_switch *control)
{
    const struct attach_request *request = take(control, control->page, false);
    if (atomic_load(&control->page->word) == ATTACH_QUIET) {
        atomic_store(&control->shared->request, atomic_load(&control->page->request));
        drop_copy(control);
    }
    return request;
}

const struct attach_request *jd_switch_take(struct attach_switch *control)
{
    if (control->shared == control->page)
        return take(control, control->page, false);
    if (atomic_load(&control->shared->word) == ATTACH_QUIET)
        return take_from_copy(control);
    const struct attach_request *request = take(control, control->shared, true);
    if (atomic_load(&control->page->word) != atomic_load(&control->shared->word))
        drop_copy(control);
    return request;
}

void jd_switch_answer(struct attach_switch *control)
{
    atomic_store_explicit(&control->shared->answer, control->answered, memory_order_release);
}
