/* address_churn: a JIT that does with its memory everything that makes a profiler show a wrong name.
 *
 *     PERFJIT=dump address_churn [-s SECONDS] [-r SEED] [-x] [-a] [-n] [-w FIFO] TRUTH
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
 * of its copy, the churning child between functions of its own, which go to a dump of its own; the grandchild, a child of the latter,
 * does the same.
 *
 * What ran when goes to TRUTH, in the form of run_log.h, whatever libjitdump thinks of it.
 *
 * SECONDS is how long the threads run; the children run for a share of it, and a busy machine makes it longer.
 * -x: the main thread makes a thread that does all this, and exits first.
 * -a: all run on processor 0, but the threads are made on processor 1, so that a recording of processor 0 has no word of that.
 * -n: no children.
 * -w: when all threads run, the first one waits for a byte from FIFO, and time begins then.
 */
#include "tests/producers/churn_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
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
    PATH_BYTES = 4096,
    ARENAS = 5,
    PATCH_BLOCKS = 40,
    STRIPE_BLOCKS = 20,
    STEPS_PER_SECOND = 333, /* at least, of each thread */
};

enum workers { FLIPPED, DUAL, PLAIN, WORKERS };
enum child { NO_CHILD, QUIET_CHILD, FLIPPING_CHILD, CHURNING_CHILD, GRANDCHILD, CHILDREN };

static struct arena arenas[ARENAS];
static int code_file;
static double run_seconds = 2;
static bool made_apart, childless;
static const char *go_fifo;
static _Atomic uint64_t end_ns;

/* ---- What a thread does, one thing after the other ---- */

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

/* Move a function, maybe to another arena, run it, and give its old place a new owner if it left
 * all of that. */
static void run_moved(struct worker *worker, const struct patch *patch)
{
    struct arena *from = patch->arena;
    uint32_t block = owned_block(worker, patch);
    if (block == patch->first + patch->blocks || !is_whole(from, from->owners[block]))
        return;
    struct function *function = from->owners[block];
    uint32_t old = function->first, blocks = function->blocks;
    const struct patch *target = any_patch(worker);
    struct arena *to = target->arena;
    uint32_t at = target->first + random_below(worker, target->blocks - blocks + 1);
    if (to == from && at == old)
        return;
    move(worker, function, from, to, at);
    bool refill = to != from || at + blocks <= old || old + blocks <= at;
    const struct function *heir = refill ? fill(worker, from, old, blocks) : NULL;
    run_function(worker, "moved", to, function, at);
    if (heir)
        run_function(worker, "heir", from, heir, old);
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

static void name_memory(struct worker *worker, struct arena *arena)
{
    if (prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, arena->exec, arena->bytes, "code of address_churn"))
        return; /* a kernel without such names */
    flip_for_nothing(arena);
    worker->deeds[MEMORY_NAMES]++;
}

/* Tell that FUNCTION of the arena that stood at OLD_EXEC is at the arena's new place.  What was
 * only half there is dropped. */
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
    worker->deeds[MEMORY_MOVES]++;
}

/* Map a file over the first page of ARENA, whose functions are gone with that, run code in it, and
 * go back. */
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
    worker->deeds[FILES]++;
}

/* The last arena is the one for files. */
static struct arena *file_arena(void)
{
    return &arenas[ARENAS - 1];
}

static void change_memory(struct worker *worker)
{
    uint32_t what = random_below(worker, 8);
    if (worker->own->mode == WRITE_ANY_TIME)
        return;
    if (worker->own->mode == WRITE_ELSEWHERE) {
        remap(worker->own);
        worker->deeds[REMAPS]++;
    } else if (what == 0) {
        name_memory(worker, worker->own);
    } else if (what <= 2) {
        move_memory(worker, worker->own);
    } else if (what <= 4) {
        map_file(worker, file_arena());
    } else {
        flip_for_nothing(worker->own);
    }
}

static void step(struct worker *worker)
{
    worker->steps++;
    const struct patch *patch = any_patch(worker);
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

static uint64_t child_ns(void)
{
    return (uint64_t)(run_seconds * 1e9 * 7 / 30);
}

static void wait_for_children(void)
{
    for (int status; wait(&status) > 0;)
        if (status) {
            fprintf(stderr, "address_churn: a child ended with status %x\n", status);
            exit(EXIT_FAILURE);
        }
}

static void fork_child(struct worker *worker, enum child child);

static void do_as(struct worker *worker, enum child child)
{
    if (child >= CHURNING_CHILD)
        step(worker);
    else
        run_survivor(worker, any_patch(worker));
    if (child == FLIPPING_CHILD)
        flip_for_nothing(worker->own);
}

static void be_child(struct worker *worker, enum child child)
{
    static const char *const labels[CHILDREN] = {[QUIET_CHILD] = "quiet",
                                                 [FLIPPING_CHILD] = "flipping",
                                                 [CHURNING_CHILD] = "churning",
                                                 [GRANDCHILD] = "grandchild"};
    worker->pid = worker->tid = getpid();
    worker->label = labels[child];
    /* Nobody here gives back the lock of the shared arena if another thread held it at the fork. */
    while (worker->patches[worker->patch_count - 1].arena->mode == WRITE_AND_EXECUTE)
        worker->patch_count--;
    uint64_t child_end_ns = monotonic_ns() + child_ns();
    bool forked = child != CHURNING_CHILD;
    double least = (double)child_ns() / 1e9 * STEPS_PER_SECOND;
    for (size_t done = 0; monotonic_ns() < child_end_ns || (double)done < least; done++) {
        do_as(worker, child);
        if (!forked && monotonic_ns() > child_end_ns - child_ns() / 2) {
            fork_child(worker, GRANDCHILD);
            forked = true;
        }
    }
    wait_for_children();
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

/* ---- Setting up ---- */

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

static void open_worker(struct worker *worker, enum workers which, uint64_t seed,
                        struct run_log *log, atomic_ulong *deeds)
{
    static const char *const labels[WORKERS] = {"flipped", "dual", "plain"};
    *worker =
        (struct worker){.label = labels[which], .own = &arenas[which], .log = log, .deeds = deeds};
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

/* Work to the end; where the machine is busy with other things, longer.  BEGUN is how many steps
 * were done when time began. */
static void work_to_end(struct worker *worker, size_t begun)
{
    while (monotonic_ns() < atomic_load(&end_ns) ||
           (double)(worker->steps - begun) < run_seconds * STEPS_PER_SECOND)
        step(worker);
}

static void be_thread(struct worker *worker)
{
    worker->pid = getpid();
    worker->tid = (int)syscall(SYS_gettid);
}

static void go_to_processor(size_t processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    if (sched_setaffinity(0, sizeof set, &set))
        fail("address_churn: sched_setaffinity");
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    if (made_apart)
        go_to_processor(0);
    be_thread(worker);
    while (atomic_load(&end_ns) == UINT64_MAX)
        step(worker);
    work_to_end(worker, worker->steps);
    return NULL;
}

static void make_threads(struct worker *workers, pthread_t *threads)
{
    if (made_apart)
        go_to_processor(1);
    for (int i = FLIPPED + 1; i < WORKERS; i++)
        if (pthread_create(&threads[i], NULL, work, &workers[i]))
            fail("address_churn: pthread_create");
    if (made_apart)
        go_to_processor(0);
}

static void wait_for_go(void)
{
    char byte;
    int fd = open(go_fifo, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, &byte, 1) != 1)
        fail(go_fifo);
    close(fd);
}

static void work_all(struct worker *workers)
{
    uint64_t run_ns = (uint64_t)(run_seconds * 1e9);
    pthread_t threads[WORKERS];
    struct worker *forking = &workers[FLIPPED];
    atomic_store(&end_ns, UINT64_MAX);
    be_thread(forking);
    work_until(forking, monotonic_ns() + run_ns / 20);
    grow(forking->own);
    forking->patches[0] = (struct patch){forking->own, 2 * PAGE_BLOCKS - 8, PATCH_BLOCKS};
    make_threads(workers, threads);
    if (go_fifo)
        wait_for_go();
    uint64_t start_ns = monotonic_ns();
    size_t begun = forking->steps;
    atomic_store(&end_ns, start_ns + run_ns);
    for (enum child child = QUIET_CHILD; child <= CHURNING_CHILD && !childless; child++) {
        work_until(forking, start_ns + run_ns * child / (CHURNING_CHILD + 1));
        fork_child(forking, child);
    }
    work_to_end(forking, begun);
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

static void write_truth(FILE *truth, const struct worker *worker)
{
    write_clock(truth);
    for (int i = 0; i < ARENAS; i++) {
        write_range(truth, arenas[i].exec);
        write_range(truth, arenas[i].other_home);
        fprintf(truth, "# flips %lu, most_fills %" PRIu32 "\n", arenas[i].flips,
                most_fills(&arenas[i]));
    }
    for (int i = 0; i < DEEDS; i++)
        fprintf(truth, "# %s %lu\n", deed_names[i], worker->deeds[i]);
    run_log_write(worker->log, truth);
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
    open_growing_arena(&arenas[FLIPPED]);
    open_arena(&arenas[DUAL], WRITE_ELSEWHERE, ARENA_PAGES);
    open_arena(&arenas[PLAIN], WRITE_ANY_TIME, ARENA_PAGES);
    open_arena(&arenas[WORKERS], WRITE_AND_EXECUTE, ARENA_PAGES);
    open_arena(file_arena(), WRITE_OR_EXECUTE, ARENA_PAGES);
    code_file = open_code_file(second);
    struct run_log *log = run_log_open();
    atomic_ulong *deeds =
        map(DEEDS * sizeof *deeds, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
    if (!log)
        fail("address_churn");
    for (int i = 0; i < WORKERS; i++)
        open_worker(&workers[i], (enum workers)i, seed, log, deeds);
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

static FILE *truth_file;

static void *do_all(void *seed)
{
    static struct worker workers[WORKERS];
    open_all(workers, *(uint64_t *)seed);
    work_all(workers);
    write_truth(truth_file, &workers[FLIPPED]);
    close_all(workers);
    if (fclose(truth_file))
        fail("address_churn: the truth");
    return NULL;
}

static void leave_all_to_a_thread(uint64_t *seed)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, do_all, seed))
        fail("address_churn: pthread_create");
    pthread_exit(NULL);
}

int main(int argc, char **argv)
{
    static uint64_t seed = 1;
    bool exit_first = false;
    for (int option; (option = getopt(argc, argv, "s:r:xanw:")) != -1;) {
        if (option == 's')
            run_seconds = strtod(optarg, NULL);
        else if (option == 'r')
            seed = strtoull(optarg, NULL, 10);
        else if (option == 'x')
            exit_first = true;
        else if (option == 'a')
            made_apart = true;
        else if (option == 'n')
            childless = true;
        else if (option == 'w')
            go_fifo = optarg;
        else
            return 2;
    }
    if (optind != argc - 1 || run_seconds <= 0) {
        fprintf(stderr, "usage: PERFJIT=dump address_churn [-s SECONDS] [-r SEED] [-x] [-a] [-n] "
                        "[-w FIFO] TRUTH\n");
        return 2;
    }
    if (made_apart)
        go_to_processor(0);
    truth_file = open_truth(argv[optind]);
    if (exit_first)
        leave_all_to_a_thread(&seed);
    do_all(&seed);
    return EXIT_SUCCESS;
}
