/* address_churn: a JIT that does with its memory everything that makes a profiler show a wrong name.
 *
 *     PERFJIT=dump address_churn [-s SECONDS] [-r SEED] TRUTH
 *
 * Three threads fill the same few hundred bytes again and again with functions of other names and sizes, which overwrite
 * their predecessors wholly or partly; what is left of those goes on running.  Functions move, often onto others, and
 * their old places have new owners at once; functions are unloaded, and their dead code runs on, or code that nobody is told about
 * runs in their places.
 *
 *     thread    its own arena                                                     dump
 *     flipped   writable or executable, never both (mprotect around each write);  first
 *               named by prctl, moved and grown by mremap; a page that a file
 *               is mapped over; forks children
 *     dual      a memfd, mapped writable here and executable there; the latter    second, with equal
 *               is mapped anew over itself                                        code indices
 *     plain     writable and executable                                           first
 *
 * All three also have stripes in one shared arena, which is flipped between executable and both.  The children run what
 * they inherited, while the parent fills these addresses with other code: the quiet child just that, the flipping child with mprotect
 * of its copy, the churning child between functions of its own, which go to a dump of its own.
 *
 * What ran when goes to TRUTH, in the form of run_log.h, whatever libjitdump thinks of it.
 */
#include "jitdump/jitdump.h"
#include "tests/producers/loop_code.h"
#include "tests/producers/perf_clock.h"
#include "tests/producers/run_log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef PR_SET_VMA
#define PR_SET_VMA           0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

enum {
    PAGE_BYTES = 4096,
    PATH_BYTES = 4096,
    PAGE_BLOCKS = PAGE_BYTES / LOOP_BLOCK_BYTES,
    ARENA_PAGES = 4,
    ARENA_BLOCKS = ARENA_PAGES * PAGE_BLOCKS,
    ARENAS = 5,
    PATCH_BLOCKS = 40,
    STRIPE_BLOCKS = 20,
    PATCHES = 8,
    FUNCTION_BLOCKS = 10, /* at most */
    FUNCTIONS = 1 << 16,
    CALL_ROUNDS = 30000, /* 10 to 40 us */
    CHILD_MS = 350,
};

enum workers { FLIPPED, DUAL, PLAIN, WORKERS };
enum child { NO_CHILD, QUIET_CHILD, FLIPPING_CHILD, CHURNING_CHILD, CHILDREN };
enum write_mode { WRITE_ANY_TIME, WRITE_OR_EXECUTE, WRITE_AND_EXECUTE, WRITE_ELSEWHERE };

struct function {
    char name[RUN_NAME_BYTES];
    uint64_t code_index;
    uint32_t first, blocks; /* where it stands */
    size_t bytes;
    int pid;
};

struct arena {
    enum write_mode mode;
    uint8_t *exec, *write; /* the same memory */
    uint8_t *other_home;   /* where it can move to and from, or NULL */
    size_t bytes;
    int fd;
    pthread_mutex_t lock; /* of its protection */
    struct function *owners[ARENA_BLOCKS];
    uint32_t fills[ARENA_BLOCKS];
};

/* Blocks of an arena that one thread alone fills. */
struct patch {
    struct arena *arena;
    uint32_t first, blocks;
};

struct worker {
    const char *label;
    struct arena *own;
    struct patch patches[PATCHES];
    size_t patch_count;
    struct jitdump *dump;
    int pid, tid;
    uint64_t random;
    uint64_t until_ns;
    struct function *functions;
    size_t function_count;
};

/* How often the rarer things were done, all threads and children together. */
enum deed {
    FILLS,
    MOVES,
    UNLOADS,
    FLIPS,
    MEMORY_NAMES,
    MEMORY_MOVES,
    GROWTHS,
    FILES,
    REMAPS,
    DEEDS
};
static const char *const deed_names[DEEDS] = {"fills",   "moves",        "unloads",
                                              "flips",   "memory_names", "memory_moves",
                                              "growths", "files",        "remaps"};

static struct run_log *run_log;
static atomic_ulong *deeds; /* shared with the children */
static struct arena arenas[ARENAS];
static int code_file;

static void fail(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

static void *map(size_t bytes, int protection, int flags, int fd)
{
    void *memory = mmap(NULL, bytes, protection, flags, fd, 0);
    if (memory == MAP_FAILED)
        fail("address_churn: mmap");
    return memory;
}

static void protect(uint8_t *start, size_t bytes, int protection)
{
    if (mprotect(start, bytes, protection))
        fail("address_churn: mprotect");
}

static uint32_t random_below(struct worker *worker, uint32_t bound)
{
    worker->random ^= worker->random << 13;
    worker->random ^= worker->random >> 7;
    worker->random ^= worker->random << 17;
    return (uint32_t)(worker->random >> 32) % bound;
}

/* ---- Writing ---- */

static void begin_write(struct arena *arena, uint32_t first, uint32_t blocks)
{
    size_t start = first * (size_t)LOOP_BLOCK_BYTES / PAGE_BYTES * PAGE_BYTES;
    size_t end = (first + blocks) * (size_t)LOOP_BLOCK_BYTES;
    pthread_mutex_lock(&arena->lock);
    if (arena->mode == WRITE_OR_EXECUTE)
        protect(arena->exec + start, end - start, PROT_READ | PROT_WRITE);
    else if (arena->mode == WRITE_AND_EXECUTE)
        protect(arena->exec, arena->bytes, PROT_READ | PROT_WRITE | PROT_EXEC);
}

static void end_write(struct arena *arena, uint32_t first, uint32_t blocks)
{
    if (arena->mode == WRITE_OR_EXECUTE || arena->mode == WRITE_AND_EXECUTE) {
        protect(arena->exec, arena->bytes, PROT_READ | PROT_EXEC);
        deeds[FLIPS]++;
    }
    pthread_mutex_unlock(&arena->lock);
    loop_code_ready(arena->exec + (size_t)first * LOOP_BLOCK_BYTES,
                    (size_t)blocks * LOOP_BLOCK_BYTES);
}

static uint8_t *block_at(uint8_t *memory, uint32_t block)
{
    return memory + (size_t)block * LOOP_BLOCK_BYTES;
}

static void write_loops(struct worker *worker, struct arena *arena, uint32_t first, uint32_t blocks)
{
    begin_write(arena, first, blocks);
    for (uint32_t i = first; i < first + blocks; i++)
        loop_code_put(block_at(arena->write, i), random_below(worker, LOOP_FILLINGS));
    end_write(arena, first, blocks);
}

static void copy_loops(struct arena *arena, uint32_t from, uint32_t to, uint32_t blocks)
{
    begin_write(arena, from < to ? from : to, blocks + (from < to ? to - from : from - to));
    memmove(block_at(arena->write, to), block_at(arena->write, from),
            (size_t)blocks * LOOP_BLOCK_BYTES);
    end_write(arena, to, blocks);
}

/* ---- Running ---- */

static uint64_t run_time_ns(struct worker *worker)
{
    bool is_long = random_below(worker, 20) == 0;
    return 200000u + random_below(worker, is_long ? 4800000 : 1200000);
}

/* Run some of BLOCKS blocks at FIRST for a while. */
static void run_blocks(struct worker *worker, const char *kind, const char *name,
                       const uint8_t *memory, uint32_t first, uint32_t blocks)
{
    const uint8_t *start = memory + (size_t)first * LOOP_BLOCK_BYTES;
    struct run run = {.pid = worker->pid,
                      .tid = worker->tid,
                      .addr = (uintptr_t)start,
                      .bytes = (uint64_t)blocks * LOOP_BLOCK_BYTES};
    uint64_t wanted_ns = run_time_ns(worker);
    snprintf(run.kind, sizeof run.kind, "%s.%s", worker->label, kind);
    snprintf(run.name, sizeof run.name, "%s", name);
    run.start_ns = run.end_ns = monotonic_ns();
    while (run.end_ns - run.start_ns < wanted_ns) {
        const uint8_t *block = start + (size_t)random_below(worker, blocks) * LOOP_BLOCK_BYTES;
        ((loop_code *)(uintptr_t)block)(CALL_ROUNDS);
        run.end_ns = monotonic_ns();
    }
    if (run_log_add(run_log, &run)) {
        fprintf(stderr, "address_churn: the log of runs is full\n");
        exit(EXIT_FAILURE);
    }
}

/* Run what is left of FUNCTION around BLOCK, which it owns. */
static void run_function(struct worker *worker, const char *kind, const struct arena *arena,
                         const struct function *function, uint32_t block)
{
    uint32_t first = block, end = block + 1;
    while (first > function->first && arena->owners[first - 1] == function)
        first--;
    while (end < function->first + function->blocks && arena->owners[end] == function)
        end++;
    if (function->pid != worker->pid)
        kind = "inherited";
    else if (end - first < function->blocks)
        kind = "remnant";
    run_blocks(worker, kind, function->name, arena->exec, first, end - first);
}

/* ---- Functions ---- */

static void check_dump(const struct worker *worker, int error)
{
    if (error == 0)
        return;
    fprintf(stderr, "address_churn: %s\n", jitdump_error(worker->dump));
    exit(EXIT_FAILURE);
}

static void own(struct arena *arena, struct function *function)
{
    for (uint32_t i = 0; i < function->blocks; i++)
        arena->owners[function->first + i] = function;
}

static void count_fill(struct arena *arena, const struct function *function)
{
    for (uint32_t i = 0; i < function->blocks; i++)
        arena->fills[function->first + i]++;
    deeds[FILLS]++;
}

static void disown(struct arena *arena, const struct function *function)
{
    for (uint32_t i = 0; i < function->blocks; i++)
        if (arena->owners[function->first + i] == function)
            arena->owners[function->first + i] = NULL;
}

static bool is_whole(const struct arena *arena, const struct function *function)
{
    for (uint32_t i = 0; i < function->blocks; i++)
        if (arena->owners[function->first + i] != function)
            return false;
    return true;
}

static struct function *fill(struct worker *worker, struct arena *arena, uint32_t first,
                             uint32_t blocks)
{
    struct function *function = &worker->functions[worker->function_count];
    if (worker->function_count == FUNCTIONS) {
        fprintf(stderr, "address_churn: too many functions\n");
        exit(EXIT_FAILURE);
    }
    *function = (struct function){.first = first, .blocks = blocks, .pid = worker->pid};
    function->bytes =
        blocks * (size_t)LOOP_BLOCK_BYTES - random_below(worker, LOOP_BLOCK_BYTES - LOOP_MAX_BYTES);
    snprintf(function->name, sizeof function->name, "%s %zu", worker->label,
             worker->function_count++);
    write_loops(worker, arena, first, blocks);
    struct jitdump_code code = JITDUMP_CODE_INIT;
    code.name = function->name;
    code.code_addr = (uintptr_t)block_at(arena->exec, first);
    code.code_size = function->bytes;
    code.bytes = block_at(arena->exec, first);
    check_dump(worker, jitdump_add_code(worker->dump, &code, &function->code_index));
    own(arena, function);
    count_fill(arena, function);
    return function;
}

static struct function *fill_somewhere(struct worker *worker, const struct patch *patch)
{
    uint32_t blocks = 1 + random_below(worker, FUNCTION_BLOCKS);
    uint32_t at = patch->first + random_below(worker, patch->blocks - blocks + 1);
    return fill(worker, patch->arena, at, blocks);
}

static void move(struct worker *worker, struct arena *arena, struct function *function,
                 uint32_t first)
{
    uint64_t old_addr = (uintptr_t)block_at(arena->exec, function->first);
    copy_loops(arena, function->first, first, function->blocks);
    check_dump(worker, jitdump_move_code(worker->dump, function->code_index, old_addr,
                                         (uintptr_t)block_at(arena->exec, first), function->bytes));
    disown(arena, function);
    function->first = first;
    own(arena, function);
    deeds[MOVES]++;
}

static void unload(struct worker *worker, struct arena *arena, const struct function *function)
{
    check_dump(worker, jitdump_unload_code(worker->dump, function->code_index,
                                           (uintptr_t)block_at(arena->exec, function->first),
                                           function->bytes));
    disown(arena, function);
    deeds[UNLOADS]++;
}

/* ---- What a thread does, one thing after the other ---- */

/* A block of PATCH that has an owner, or PATCH's end. */
static uint32_t owned_block(struct worker *worker, const struct patch *patch)
{
    for (int tries = 0; tries < 20; tries++) {
        uint32_t block = patch->first + random_below(worker, patch->blocks);
        if (patch->arena->owners[block])
            return block;
    }
    return patch->first + patch->blocks;
}

static void run_new(struct worker *worker, const struct patch *patch)
{
    const struct function *function = fill_somewhere(worker, patch);
    run_function(worker, "new", patch->arena, function, function->first);
}

static void run_survivor(struct worker *worker, const struct patch *patch)
{
    uint32_t block = owned_block(worker, patch);
    if (block < patch->first + patch->blocks)
        run_function(worker, "survivor", patch->arena, patch->arena->owners[block], block);
}

/* Many fillings, of which a sample may see none. */
static void fill_often(struct worker *worker, const struct patch *patch)
{
    for (uint32_t i = random_below(worker, 80); i > 0; i--)
        fill_somewhere(worker, patch);
    run_survivor(worker, patch);
}

/* Move a function, run it, and give its old place a new owner if none of it moved onto that. */
static void run_moved(struct worker *worker, const struct patch *patch)
{
    struct arena *arena = patch->arena;
    uint32_t block = owned_block(worker, patch);
    if (block == patch->first + patch->blocks || !is_whole(arena, arena->owners[block]))
        return;
    struct function *function = arena->owners[block];
    uint32_t old = function->first, blocks = function->blocks;
    uint32_t to = patch->first + random_below(worker, patch->blocks - blocks + 1);
    if (to == old)
        return;
    move(worker, arena, function, to);
    bool refill = to + blocks <= old || old + blocks <= to;
    const struct function *heir = refill ? fill(worker, arena, old, blocks) : NULL;
    run_function(worker, "moved", arena, function, to);
    if (heir)
        run_function(worker, "heir", arena, heir, old);
}

/* Unload a function, and run its dead code, or other code of which nobody is told, in its place. */
static void run_dead(struct worker *worker, const struct patch *patch)
{
    struct arena *arena = patch->arena;
    uint32_t block = owned_block(worker, patch);
    if (block == patch->first + patch->blocks)
        return;
    unload(worker, arena, arena->owners[block]);
    run_blocks(worker, "dead", "-", arena->exec, block, 1);
    if (random_below(worker, 2)) {
        write_loops(worker, arena, block, 1);
        run_blocks(worker, "untold", "-", arena->exec, block, 1);
    }
}

/* ---- What only some threads do, with memory rather than code ---- */

static void flip_for_nothing(struct arena *arena)
{
    begin_write(arena, 0, (uint32_t)(arena->bytes / LOOP_BLOCK_BYTES));
    end_write(arena, 0, (uint32_t)(arena->bytes / LOOP_BLOCK_BYTES));
}

static void name_memory(struct arena *arena)
{
    if (prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, arena->exec, arena->bytes, "code of address_churn"))
        return; /* a kernel without such names */
    flip_for_nothing(arena);
    deeds[MEMORY_NAMES]++;
}

/* Tell that FUNCTION of the arena that stood at OLD_EXEC is at the arena's new place.  What was only half there is dropped. */
static void follow_memory(struct worker *worker, struct arena *arena, uint8_t *old_exec,
                          struct function *function)
{
    uint8_t *from = block_at(old_exec, function->first);
    if (is_whole(arena, function)) {
        check_dump(worker, jitdump_move_code(worker->dump, function->code_index, (uintptr_t)from,
                                             (uintptr_t)block_at(arena->exec, function->first),
                                             function->bytes));
        return;
    }
    check_dump(worker, jitdump_unload_code(worker->dump, function->code_index, (uintptr_t)from,
                                           function->bytes));
    disown(arena, function);
}

/* Move the arena, code and all, to its other home. */
static void move_memory(struct worker *worker, struct arena *arena)
{
    uint8_t *old = arena->exec;
    if (arena->bytes < ARENA_PAGES * PAGE_BYTES)
        return; /* the room behind it is for growing */
    if (mremap(old, arena->bytes, arena->bytes, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP,
               arena->other_home) == MAP_FAILED)
        return; /* a kernel that can't leave the old place mapped */
    arena->exec = arena->write = arena->other_home;
    arena->other_home = old;
    for (uint32_t i = 0; i < ARENA_BLOCKS; i++) {
        struct function *function = arena->owners[i];
        if (function && (i == 0 || arena->owners[i - 1] != function))
            follow_memory(worker, arena, old, function);
    }
    deeds[MEMORY_MOVES]++;
}

/* Map a file over the first page of ARENA, whose functions are gone with that, run code in it, and go back. */
static void map_file(struct worker *worker, struct arena *arena)
{
    if (mmap(arena->exec, PAGE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, code_file,
             0) == MAP_FAILED)
        fail("address_churn: mmap of a file");
    memset(arena->owners, 0, sizeof arena->owners);
    run_blocks(worker, "file", "-", arena->exec, random_below(worker, 2), PAGE_BLOCKS - 2);
    if (mmap(arena->exec, arena->bytes, PROT_READ | PROT_EXEC,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        fail("address_churn: mmap over a file");
    deeds[FILES]++;
}

/* Map the executable side of a memfd over itself. */
static void remap(struct arena *arena)
{
    if (mmap(arena->exec, arena->bytes, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED, arena->fd,
             0) == MAP_FAILED)
        fail("address_churn: mmap of a memfd");
    deeds[REMAPS]++;
}

/* The last arena is the one for files. */
static struct arena *file_arena(void)
{
    return &arenas[ARENAS - 1];
}

static void change_memory(struct worker *worker)
{
    uint32_t what = random_below(worker, 8);
    if (worker->own->mode == WRITE_ELSEWHERE)
        remap(worker->own);
    else if (worker->own->mode == WRITE_ANY_TIME)
        return;
    else if (what == 0)
        name_memory(worker->own);
    else if (what <= 2)
        move_memory(worker, worker->own);
    else if (what <= 4)
        map_file(worker, file_arena());
    else
        flip_for_nothing(worker->own);
}

static void step(struct worker *worker)
{
    const struct patch *patch =
        &worker->patches[random_below(worker, (uint32_t)worker->patch_count)];
    switch (random_below(worker, 12)) {
    case 0:
    case 1:
    case 2:
        run_new(worker, patch);
        break;
    case 3:
    case 4:
        run_survivor(worker, patch);
        break;
    case 5:
    case 6:
        fill_often(worker, patch);
        break;
    case 7:
    case 8:
    case 9:
        run_moved(worker, patch);
        break;
    case 10:
        run_dead(worker, patch);
        break;
    default:
        change_memory(worker);
        run_survivor(worker, patch);
    }
}

/* ---- Children ---- */

static void be_child(struct worker *worker, enum child child)
{
    static const char *const labels[CHILDREN] = {
        [QUIET_CHILD] = "quiet", [FLIPPING_CHILD] = "flipping", [CHURNING_CHILD] = "churning"};
    worker->pid = worker->tid = getpid();
    worker->label = labels[child];
    worker->until_ns = monotonic_ns() + CHILD_MS * UINT64_C(1000000);
    /* Nobody here gives back the lock of the shared arena if another thread held it at the fork. */
    while (worker->patches[worker->patch_count - 1].arena->mode == WRITE_AND_EXECUTE)
        worker->patch_count--;
    while (monotonic_ns() < worker->until_ns) {
        if (child == CHURNING_CHILD)
            step(worker);
        else
            run_survivor(worker,
                         &worker->patches[random_below(worker, (uint32_t)worker->patch_count)]);
        if (child == FLIPPING_CHILD)
            flip_for_nothing(worker->own);
    }
    check_dump(worker, jitdump_close(worker->dump));
    _exit(EXIT_SUCCESS);
}

static void fork_child(struct worker *worker, enum child child)
{
    pid_t pid = fork();
    if (pid < 0)
        fail("address_churn: fork");
    if (pid == 0)
        be_child(worker, child);
}

static void wait_for_children(void)
{
    for (int status; wait(&status) > 0;)
        if (status) {
            fprintf(stderr, "address_churn: a child ended with status %x\n", status);
            exit(EXIT_FAILURE);
        }
}

/* ---- Setting up ---- */

static void open_arena(struct arena *arena, enum write_mode mode, size_t pages)
{
    *arena = (struct arena){.mode = mode, .bytes = pages * PAGE_BYTES, .fd = -1};
    pthread_mutex_init(&arena->lock, NULL);
    if (mode == WRITE_ELSEWHERE) {
        arena->fd = memfd_create("code of address_churn", MFD_CLOEXEC);
        if (arena->fd < 0 || ftruncate(arena->fd, (off_t)arena->bytes))
            fail("address_churn: memfd");
        arena->write = map(arena->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, arena->fd);
        arena->exec = map(arena->bytes, PROT_READ | PROT_EXEC, MAP_SHARED, arena->fd);
        return;
    }
    int write = mode == WRITE_ANY_TIME ? PROT_WRITE : 0;
    arena->exec = arena->write =
        map(arena->bytes, PROT_READ | PROT_EXEC | write, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

/* An arena with room behind it into which it can grow, and a second home. */
static void open_growing_arena(struct arena *arena)
{
    open_arena(arena, WRITE_OR_EXECUTE, ARENA_PAGES);
    arena->other_home = map(arena->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    arena->bytes /= 2;
    protect(arena->exec + arena->bytes, arena->bytes, PROT_NONE);
}

/* Only while there is one thread: another could take the room. */
static void grow(struct arena *arena)
{
    munmap(arena->exec + arena->bytes, arena->bytes);
    if (mremap(arena->exec, arena->bytes, 2 * arena->bytes, 0) == MAP_FAILED)
        fail("address_churn: mremap of an arena that shall grow");
    arena->bytes *= 2;
    deeds[GROWTHS]++;
}

static void add_patch(struct worker *worker, struct arena *arena, uint32_t first, uint32_t blocks)
{
    worker->patches[worker->patch_count++] = (struct patch){arena, first, blocks};
}

/* A file with nothing but loops in it. */
static int open_code_file(const char *dir)
{
    uint8_t page[PAGE_BYTES];
    char path[PATH_BYTES + 8];
    snprintf(path, sizeof path, "%s/loops", dir);
    for (uint32_t i = 0; i < PAGE_BLOCKS; i++)
        loop_code_put(block_at(page, i), i % LOOP_FILLINGS);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (fd < 0 || write(fd, page, sizeof page) != (ssize_t)sizeof page)
        fail(path);
    return fd;
}

static struct jitdump *open_dump(const char *dir)
{
    struct jitdump *dump;
    struct jitdump_options options = JITDUMP_OPTIONS_INIT;
    options.dir = dir;
    int error = jitdump_open(&dump, &options);
    if (error == 0 && dump)
        return dump;
    fprintf(stderr, "address_churn: %s\n", error ? jitdump_error(dump) : "PERFJIT=dump is not set");
    exit(EXIT_FAILURE);
}

static void open_worker(struct worker *worker, enum workers which, uint64_t seed)
{
    static const char *const labels[WORKERS] = {"flipped", "dual", "plain"};
    *worker = (struct worker){.label = labels[which], .own = &arenas[which]};
    worker->random = (seed + which + 1) * UINT64_C(0x9e3779b97f4a7c15);
    worker->functions = calloc(FUNCTIONS, sizeof *worker->functions);
    if (!worker->functions)
        fail("address_churn");
    add_patch(worker, worker->own, 16, PATCH_BLOCKS);
    add_patch(worker, worker->own, PAGE_BLOCKS - PATCH_BLOCKS / 2, PATCH_BLOCKS);
    if (which == FLIPPED)
        add_patch(worker, file_arena(), 8, PATCH_BLOCKS);
    for (uint32_t stripe = 0; stripe < 2; stripe++)
        add_patch(worker, &arenas[WORKERS], (stripe * WORKERS + which) * STRIPE_BLOCKS,
                  STRIPE_BLOCKS);
}

static void work_until(struct worker *worker, uint64_t time_ns)
{
    while (monotonic_ns() < time_ns)
        step(worker);
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    worker->pid = getpid();
    worker->tid = (int)syscall(SYS_gettid);
    work_until(worker, worker->until_ns);
    return NULL;
}

static void work_all(struct worker *workers, uint64_t run_ns)
{
    pthread_t threads[WORKERS];
    struct worker *forking = &workers[FLIPPED];
    uint64_t start_ns = monotonic_ns();
    forking->pid = forking->tid = getpid();
    work_until(forking, start_ns + run_ns / 20);
    grow(forking->own);
    forking->patches[0] = (struct patch){forking->own, 2 * PAGE_BLOCKS - 8, PATCH_BLOCKS};
    for (int i = FLIPPED + 1; i < WORKERS; i++) {
        workers[i].until_ns = start_ns + run_ns;
        if (pthread_create(&threads[i], NULL, work, &workers[i]))
            fail("address_churn: pthread_create");
    }
    for (enum child child = QUIET_CHILD; child < CHILDREN; child++) {
        work_until(forking, start_ns + run_ns * child / CHILDREN);
        fork_child(forking, child);
    }
    work_until(forking, start_ns + run_ns);
    for (int i = FLIPPED + 1; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    wait_for_children();
}

/* ---- The truth ---- */

static void write_clock(FILE *truth)
{
    struct clock_pair pair;
    if (perf_clock_read(&pair) == 0)
        fprintf(truth, "# clock %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", pair.monotonic_ns,
                pair.perf_ns, pair.error_ns);
}

static void write_range(FILE *truth, const uint8_t *start)
{
    if (start)
        fprintf(truth, "# arena %" PRIxPTR " %" PRIxPTR "\n", (uintptr_t)start,
                (uintptr_t)(start + ARENA_PAGES * PAGE_BYTES));
}

/* How often the block was filled that was filled most often. */
static uint32_t most_fills(const struct arena *arena)
{
    uint32_t most = 0;
    for (int i = 0; i < ARENA_BLOCKS; i++)
        most = arena->fills[i] > most ? arena->fills[i] : most;
    return most;
}

static void write_truth(FILE *truth)
{
    write_clock(truth);
    for (int i = 0; i < ARENAS; i++) {
        write_range(truth, arenas[i].exec);
        write_range(truth, arenas[i].other_home);
        fprintf(truth, "# one address was filled %" PRIu32 " times\n", most_fills(&arenas[i]));
    }
    for (int i = 0; i < DEEDS; i++)
        fprintf(truth, "# %s %lu\n", deed_names[i], deeds[i]);
    run_log_write(run_log, truth);
}

static FILE *open_truth(const char *path)
{
    FILE *truth = fopen(path, "w");
    if (!truth)
        fail(path);
    fprintf(truth, "# runs\n");
    write_clock(truth);
    fflush(truth);
    return truth;
}

/* ---- All together ---- */

static void open_all(struct worker *workers, uint64_t seed)
{
    char second[PATH_BYTES];
    const char *dir = getenv("JITDUMPDIR");
    snprintf(second, sizeof second, "%s/second", dir ? dir : ".");
    if (mkdir(second, 0755) && errno != EEXIST)
        fail(second);
    run_log = run_log_open();
    deeds = map(DEEDS * sizeof *deeds, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
    if (!run_log)
        fail("address_churn");
    open_growing_arena(&arenas[FLIPPED]);
    open_arena(&arenas[DUAL], WRITE_ELSEWHERE, ARENA_PAGES);
    open_arena(&arenas[PLAIN], WRITE_ANY_TIME, ARENA_PAGES);
    open_arena(&arenas[WORKERS], WRITE_AND_EXECUTE, ARENA_PAGES);
    open_arena(file_arena(), WRITE_OR_EXECUTE, ARENA_PAGES);
    code_file = open_code_file(second);
    for (int i = 0; i < WORKERS; i++)
        open_worker(&workers[i], (enum workers)i, seed);
    workers[FLIPPED].dump = workers[PLAIN].dump = open_dump(NULL);
    workers[DUAL].dump = open_dump(second);
}

static void close_all(struct worker *workers)
{
    check_dump(&workers[FLIPPED], jitdump_close(workers[FLIPPED].dump));
    check_dump(&workers[DUAL], jitdump_close(workers[DUAL].dump));
    for (int i = 0; i < WORKERS; i++)
        free(workers[i].functions);
}

int main(int argc, char **argv)
{
    struct worker workers[WORKERS];
    double seconds = 2;
    uint64_t seed = 1;
    for (int option; (option = getopt(argc, argv, "s:r:")) != -1;) {
        if (option == 's')
            seconds = strtod(optarg, NULL);
        else if (option == 'r')
            seed = strtoull(optarg, NULL, 10);
        else
            return 2;
    }
    if (optind != argc - 1 || seconds <= 0) {
        fprintf(stderr, "usage: PERFJIT=dump address_churn [-s SECONDS] [-r SEED] TRUTH\n");
        return 2;
    }
    FILE *truth = open_truth(argv[optind]);
    open_all(workers, seed);
    work_all(workers, (uint64_t)(seconds * 1e9));
    write_truth(truth);
    close_all(workers);
    if (fclose(truth))
        fail(argv[optind]);
    return EXIT_SUCCESS;
}
