/* torture: a runtime of several threads that is killed, or whose disk fills up, at random moments, and the judge of the
 * dump that it leaves.
 *
 *     torture [-p PERFJIT] [-n NAMES] [-k CALLS] kill|fill DIR RUNS SEED
 *     torture stress DIR ROUNDS SEED
 *
 * kill    Each run's process logs loads (with lines; half of them with unwind tables, a third with inlined calls), moves
 *         and unloads from 4 threads, and gets SIGKILL.
 * fill    The same on a disk that somebody else fills up, and sometimes frees again, while it runs: DIR should be a small
 *         file system of its own.  A fifth of the runs is killed besides.
 * stress  8 threads and forked children, in one process that opens and closes its dump once a round: for ThreadSanitizer.
 *
 * After each call that returned, the process says so in memory that it shares with the judge.  What
 * returned 0 must be in the dump, with every byte; what failed must not be; of what was under way,
 * one a thread, the whole or nothing.  With -p perfjit dump must find all records sound, and as many.
 * With -n the last run's dump stays, and NAMES receives the names of the functions of which the load
 * returned 0.  With -k each process is killed when CALLS calls have returned: its threads begin no
 * other then, and wait for it.  Status 0: nothing was lost, torn or too much; else 1.
 */
#include "jitdump/jitdump.h"
#include "tests/producers/torture_judge.h"
#include "tests/producers/torture_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

struct worker {
    struct jitdump *dump;
    unsigned thread, count;
    pthread_t id;
};

static void wait_for_kill(void)
{
    for (;;)
        pause();
}

static void *work(void *argument)
{
    const struct worker *worker = argument;
    for (unsigned i = 0; i < worker->count; i++) {
        if (atomic_load(&run_log->returned) >= run_log->last_call)
            wait_for_kill();
        do_op(worker->dump, worker->thread, i);
    }
    return NULL;
}

static void start_workers(struct worker *workers, unsigned threads, unsigned count,
                          struct jitdump *dump)
{
    for (unsigned i = 0; i < threads; i++) {
        workers[i] = (struct worker){dump, i, count, 0};
        if (pthread_create(&workers[i].id, NULL, work, &workers[i]))
            fail("pthread_create");
    }
}

static void join_workers(const struct worker *workers, unsigned threads)
{
    for (unsigned i = 0; i < threads; i++)
        pthread_join(workers[i].id, NULL);
}

static struct jitdump *open_dump(const char *dir)
{
    struct jitdump_options options = JITDUMP_OPTIONS_INIT;
    struct jitdump *dump;
    options.dir = dir;
    options.flags = JITDUMP_ALWAYS;
    jitdump_open(&dump, &options);
    return dump;
}

/* The process that is tortured.  Its status says that it went on after all of it. */
static void run_producer(const char *dir)
{
    struct worker workers[4];
    struct jitdump *dump = open_dump(dir);
    start_workers(workers, 4, OPS, dump);
    join_workers(workers, 4);
    atomic_store(&run_log->lost, jitdump_lost(dump));
    jitdump_close(dump);
    atomic_store(&run_log->ended, 1);
    _exit(0);
}

/* ---- Torture ---- */

static uint32_t random_below(uint64_t *seed, uint32_t limit)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return (uint32_t)((*seed >> 32) % limit);
}

struct torture {
    const char *dir, *perfjit, *names;
    uint64_t seed;
    uint32_t calls; /* 0: until a random moment */
    bool fill;
};

static bool is_over(pid_t child, int *status)
{
    return waitpid(child, status, WNOHANG) == child;
}

/* Wait until COUNT calls have returned.  Returns false if the process ends before. */
static bool wait_for_ops(pid_t child, uint32_t count, int *status)
{
    while (atomic_load(&run_log->returned) < count)
        if (is_over(child, status))
            return false;
    return true;
}

/* Leave no more than FREE_BYTES of the disk. */
static void fill_disk(const char *path, uint64_t free_bytes)
{
    struct statvfs disk;
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    char bytes[4096] = {0};
    if (fd < 0)
        return; /* no room for its inode: full enough */
    off_t end = lseek(fd, 0, SEEK_END);
    if (fstatvfs(fd, &disk) == 0 && disk.f_bavail * disk.f_frsize > free_bytes)
        (void)!posix_fallocate(fd, end, (off_t)(disk.f_bavail * disk.f_frsize - free_bytes));
    lseek(fd, 0, SEEK_END);
    while (free_bytes == 0 && write(fd, bytes, sizeof bytes) > 0)
        ;
    close(fd);
}

/* Somebody else takes all that is left of the disk, and often gives it back later. */
static bool disturb_disk(struct torture *torture, pid_t child, int *status)
{
    char path[300];
    uint32_t at = random_below(&torture->seed, OPS * 3);
    snprintf(path, sizeof path, "%s/filler", torture->dir);
    if (at > OPS / 8 && !wait_for_ops(child, at, status))
        return false;
    fill_disk(path, 0);
    if (random_below(&torture->seed, 3) && !wait_for_ops(child, at + OPS / 2, status))
        return false;
    if (random_below(&torture->seed, 3))
        unlink(path);
    return true;
}

static int kill_process(pid_t child, struct verdict *verdict)
{
    int status;
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    verdict->killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    return status;
}

/* Returns how the process ended. */
static int torture_process(struct torture *torture, pid_t child, struct verdict *verdict)
{
    int status;
    if (torture->fill && !disturb_disk(torture, child, &status))
        return status;
    if (torture->fill && random_below(&torture->seed, 5)) {
        waitpid(child, &status, 0);
        return status;
    }
    if (torture->calls && !wait_for_ops(child, torture->calls, &status))
        return status;
    if (torture->calls)
        return kill_process(child, verdict);
    if (random_below(&torture->seed, 4) == 0)
        usleep(random_below(&torture->seed, 2000)); /* may be in jitdump_open */
    else if (!wait_for_ops(child, random_below(&torture->seed, OPS * 5 / 2), &status))
        return status;
    for (volatile uint32_t spin = random_below(&torture->seed, 3000); spin > 0;)
        spin = spin - 1;
    return kill_process(child, verdict);
}

static void write_names(const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file)
        fail(path);
    for (unsigned thread = 0; thread < 4; thread++)
        for (unsigned i = 0; i < OPS; i++)
            if (kind_of(i) == LOAD && atomic_load(&run_log->ops[thread][i].state) == DONE)
                fprintf(file, "%" PRIu64 " t%u_%u\n", run_log->ops[thread][i].code_index, thread,
                        i);
    if (fclose(file))
        fail(path);
}

static void run_once(struct torture *torture, bool last, struct verdict *verdict)
{
    char path[300];
    memset(run_log, 0, sizeof *run_log);
    run_log->last_call = torture->calls ? torture->calls : UINT32_MAX;
    snprintf(path, sizeof path, "%s/filler", torture->dir);
    if (torture->fill)
        fill_disk(path, random_below(&torture->seed, 4 << 20));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(60); /* to hang is to die */
        run_producer(torture->dir);
    }
    int status = torture_process(torture, child, verdict);
    uint64_t failed = verdict->failed;
    verdict->runs++;
    verdict->died += !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) && status != 0;
    judge(torture->dir, (int)child, torture->perfjit, 4, verdict);
    verdict->miscounted +=
        atomic_load(&run_log->ended) && atomic_load(&run_log->lost) != verdict->failed - failed;
    if (!last || !torture->names)
        remove_dump(torture->dir, (int)child);
    snprintf(path, sizeof path, "%s/filler", torture->dir);
    if (torture->fill)
        unlink(path);
    if (last && torture->names)
        write_names(torture->names);
}

static int tell(const struct verdict *verdict)
{
    printf("%" PRIu64 " runs, %" PRIu64 " killed, %" PRIu64 " without a dump\n"
           "%" PRIu64 " loads and %" PRIu64 " moves and unloads returned 0: %" PRIu64 " lost\n"
           "%" PRIu64 " failed: %" PRIu64 " in the dump all the same, %" PRIu64
           " runs counted them wrong\n"
           "%" PRIu64 " fillers, %" PRIu64 " records in the stage and the body\n"
           "%" PRIu64 " dumps torn, %" PRIu64 " not as perfjit dump reads them, %" PRIu64
           " processes died\n",
           verdict->runs, verdict->killed, verdict->no_file, verdict->loads, verdict->others,
           verdict->lost, verdict->failed, verdict->extra, verdict->miscounted, verdict->fillers,
           verdict->repeated, verdict->torn, verdict->unsound, verdict->died);
    return verdict->lost || verdict->extra || verdict->miscounted || verdict->torn ||
           verdict->unsound || verdict->died;
}

/* ---- Stress ---- */

static void run_child(struct jitdump *dump)
{
    struct jitdump_code code = JITDUMP_CODE_INIT;
    uint64_t code_index;
    code.name = "child";
    code.code_addr = 0x10000;
    for (int i = 0; i < 100; i++)
        if (jitdump_add_code(dump, &code, &code_index) ||
            jitdump_unload_code(dump, code_index, 0x10000, 1))
            _exit(1);
    _exit(jitdump_close(dump) ? 1 : 0);
}

static void stress_round(const char *dir, struct verdict *verdict)
{
    enum { THREADS = 8, CHILDREN = 3 };
    struct worker workers[THREADS];
    memset(run_log, 0, sizeof *run_log);
    run_log->last_call = UINT32_MAX;
    struct jitdump *dump = open_dump(dir);
    start_workers(workers, THREADS, OPS / 4, dump);
#ifdef __SANITIZE_THREAD__ /* it takes the parent's threads for the child's: fork when they are gone */
    join_workers(workers, THREADS);
#endif
    for (int i = 0; i < CHILDREN; i++) {
        int status;
        pid_t child = fork();
        if (child == 0)
            run_child(dump);
        waitpid(child, &status, 0);
        verdict->died += status != 0;
        remove_dump(dir, (int)child);
    }
#ifndef __SANITIZE_THREAD__
    join_workers(workers, THREADS);
#endif
    verdict->miscounted += jitdump_lost(dump) != 0;
    jitdump_close(dump);
    judge(dir, (int)getpid(), NULL, THREADS, verdict);
    verdict->runs++;
    remove_dump(dir, (int)getpid());
}

int main(int argc, char **argv)
{
    struct torture torture = {0};
    struct verdict verdict = {0};
    int option;
    while ((option = getopt(argc, argv, "p:n:k:")) > 0)
        if (option == 'k')
            torture.calls = (uint32_t)strtoul(optarg, NULL, 10);
        else
            *(option == 'p' ? &torture.perfjit : &torture.names) = optarg;
    if (argc - optind != 4) {
        fprintf(stderr, "usage: torture [-p PERFJIT] [-n NAMES] [-k CALLS] kill|fill|stress DIR "
                        "RUNS SEED\n");
        return 2;
    }
    const char *mode = argv[optind];
    unsigned long runs = strtoul(argv[optind + 2], NULL, 10);
    torture.dir = argv[optind + 1];
    torture.seed = strtoull(argv[optind + 3], NULL, 10) * 0x9e3779b97f4a7c15 + 1;
    torture.fill = strcmp(mode, "fill") == 0;
    run_log =
        mmap(NULL, sizeof *run_log, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (run_log == MAP_FAILED)
        fail("mmap");
    for (unsigned long i = 0; i < runs; i++)
        if (strcmp(mode, "stress") == 0)
            stress_round(torture.dir, &verdict);
        else
            run_once(&torture, i + 1 == runs, &verdict);
    return tell(&verdict);
}
