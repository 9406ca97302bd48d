/* shared_arena: a JIT of several processes, whose code is in memory that they share, as PHP's is.
 *
 *     shared_arena [-o] [-f] [-m] [-w WORKERS] [-t MS] [-n SLOTS] [-k COUNT] KIND TRUTH
 *
 * A master makes the memory and some functions, and forks workers, half of them later, when the
 * others have compiled.  Each runs all functions, for MS of its own time, and writes one when it is
 * its turn: to a free slot, or to one that it takes from another function, once no worker can be in
 * that any more.  The odd ones end in half that time.
 *
 * KIND: zero (shared memory without a name), memfd, sysv, the path of a file that is made, or
 * private: then each process's code is its own, at the same addresses. TRUTH receives which
 * function is where, in the form of tinyjit --truth; with KIND private TRUTH.NAME, of worker NAME.
 * Workers are named worker0, worker1, ...
 * The dump, jit-<pid>.dump in the current directory, is the master's; each writes to it with its
 * own pid in LOAD.pid. -k: who has its turn writes COUNT functions, not one. -o: each worker has a
 * dump of its own. -f: who writes makes its mapping writable, and then executable, which the kernel
 * logs as a new mapping. -m: the master does not map the memory, each worker does, when it begins
 * (memfd and files).
 */
#include "jitdump/format/byte_sink.h"
#include "jitdump/format/jitdump_format.h"
#include "tests/producers/loop_code.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    SLOT_BYTES = 64,
    MAX_SLOTS = 1 << 16,
    MAX_WORKERS = 64,
    SLICE_NS = 3000000,
    NOBODY = MAX_WORKERS,
};

/* What the processes tell each other; with KIND private each has its own. */
struct board {
    _Atomic uint32_t
        numbers[MAX_SLOTS]; /* of the functions in the slots; 0: none that may be called */
    _Atomic uint32_t used;  /* slots */
    _Atomic uint32_t next_number;
    _Atomic uint64_t next_index; /* for the dump */
    _Atomic uint64_t epoch;      /* a worker that has seen it calls nothing from before it */
    _Atomic uint64_t seen[MAX_WORKERS];
    _Atomic bool alive[MAX_WORKERS];
    _Atomic uint32_t turn; /* whose it is to write */
    _Atomic uint32_t turns;
};

static struct board *board;
static uint8_t *arena;
static const char *kind, *truth_path;
static bool is_private, own_dumps, flips, maps_late;
static uint32_t slots = 48, at_once = 1;
static size_t arena_bytes;
static int object_fd = -1, dump_fd = -1;
static FILE *truth;

static void fail(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

static uint64_t ns_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- Memory ---- */

/* AT, if it is not NULL, is reserved. */
static void *map(void *at, int fd)
{
    int sharing = is_private ? MAP_PRIVATE : MAP_SHARED;
    void *base = mmap(at, arena_bytes, PROT_READ | PROT_WRITE | PROT_EXEC,
                      sharing | (fd < 0 ? MAP_ANONYMOUS : 0) | (at ? MAP_FIXED : 0), fd, 0);
    if (base == MAP_FAILED)
        fail("mmap");
    return base;
}

static void make_object(void)
{
    if (strcmp(kind, "memfd") == 0)
        object_fd = memfd_create("arena", 0);
    else if (kind[0] == '/')
        object_fd = open(kind, O_RDWR | O_CREAT | O_TRUNC, 0700);
    else
        return;
    if (object_fd < 0 || ftruncate(object_fd, (off_t)arena_bytes))
        fail(kind);
}

static void open_arena(void)
{
    arena_bytes = ((size_t)slots * SLOT_BYTES + 0xfff) & ~(size_t)0xfff;
    is_private = strcmp(kind, "private") == 0;
    make_object();
    if (strcmp(kind, "sysv") == 0) {
        int id = shmget(IPC_PRIVATE, arena_bytes, IPC_CREAT | 0700);
        arena = id < 0 ? (void *)-1 : shmat(id, NULL, SHM_EXEC);
        if (arena == (void *)-1 || shmctl(id, IPC_RMID, NULL))
            fail("sysv");
        return;
    }
    if (!maps_late)
        arena = map(NULL, object_fd);
    else if ((arena = mmap(NULL, arena_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) ==
             MAP_FAILED)
        fail("mmap");
}

/* ---- The dump ---- */

static void open_dump(void)
{
    char path[64];
    uint8_t bytes[JITHEADER_BYTES];
    struct byte_sink sink = byte_sink_over(bytes, sizeof bytes);
    snprintf(path, sizeof path, "jit-%d.dump", (int)getpid());
    dump_fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600);
    sink_u32(&sink, JITDUMP_MAGIC);
    sink_u32(&sink, 1);
    sink_u32(&sink, JITHEADER_BYTES);
#if defined(__aarch64__)
    sink_u32(&sink, EM_AARCH64);
#else
    sink_u32(&sink, EM_X86_64);
#endif
    sink_u32(&sink, 0);
    sink_u32(&sink, (uint32_t)getpid());
    sink_u64(&sink, ns_of(CLOCK_MONOTONIC));
    sink_u64(&sink, 0);
    if (dump_fd < 0 || write(dump_fd, bytes, sink.size) != (ssize_t)sink.size ||
        mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, dump_fd, 0) == MAP_FAILED)
        fail(path);
}

static void log_load(const uint8_t *at, size_t size, const char *name)
{
    uint8_t bytes[256];
    struct byte_sink sink = byte_sink_over(bytes, sizeof bytes);
    size_t name_bytes = strlen(name) + 1;
    sink_u32(&sink, JIT_CODE_LOAD);
    sink_u32(&sink, (uint32_t)(56 + name_bytes + size));
    sink_u64(&sink, ns_of(CLOCK_MONOTONIC));
    sink_u32(&sink, (uint32_t)getpid());
    sink_u32(&sink, (uint32_t)getpid());
    sink_u64(&sink, (uintptr_t)at);
    sink_u64(&sink, (uintptr_t)at);
    sink_u64(&sink, size);
    sink_u64(&sink, board->next_index++);
    sink_bytes(&sink, name, name_bytes);
    sink_bytes(&sink, at, size);
    if (write(dump_fd, bytes, sink.size) != (ssize_t)sink.size)
        fail("dump");
}

/* ---- Functions ---- */

static void open_truth(const char *path, const char *mode)
{
    truth = fopen(path, mode);
    if (!truth)
        fail(path);
    setvbuf(truth, NULL, _IOLBF, 0);
}

static void name_of(uint32_t number, const char *writer, char name[48])
{
    snprintf(name, 48, "%s_%u", writer, number);
}

/* Whoever may be in what is not to be called any more, has left it. */
static void await_others(uint32_t self)
{
    uint64_t epoch = ++board->epoch;
    for (uint32_t i = 0; i < MAX_WORKERS && !is_private; i++)
        while (i != self && board->alive[i] && board->seen[i] < epoch)
            sched_yield();
}

static void set_protection(int protection)
{
    if (flips && mprotect(arena, arena_bytes, protection))
        fail("mprotect");
}

/* The name of what is in a slot stands in the truth alone. */
static void write_function(uint32_t self, const char *writer)
{
    char name[48];
    uint32_t number = board->next_number++, slot = number % slots;
    uint8_t *at = arena + (size_t)slot * SLOT_BYTES;
    bool reused = board->numbers[slot] != 0;
    board->numbers[slot] = 0;
    if (reused) {
        await_others(self);
        fprintf(truth, "%" PRIu64 " unload %" PRIxPTR " %u -\n", ns_of(CLOCK_MONOTONIC),
                (uintptr_t)at, SLOT_BYTES);
    }
    set_protection(PROT_READ | PROT_WRITE);
    size_t size = loop_code_put_counted(at, 2000 + number);
    __builtin___clear_cache((char *)at, (char *)at + size);
    set_protection(PROT_READ | PROT_EXEC);
    name_of(number, writer, name);
    fprintf(truth, "%" PRIu64 " load %" PRIxPTR " %zu %s\n", ns_of(CLOCK_MONOTONIC), (uintptr_t)at,
            size, name);
    log_load(at, size, name);
    board->numbers[slot] = number + 1;
    if (slot >= board->used)
        board->used = slot + 1;
}

static void call_all(void)
{
    for (uint32_t i = 0, used = board->used; i < used; i++)
        if (board->numbers[i])
            ((void (*)(void))(uintptr_t)(arena + (size_t)i * SLOT_BYTES))();
}

/* ---- Processes ---- */

static void pass_turn(uint32_t self)
{
    uint32_t next = self;
    do
        next = (next + 1) % MAX_WORKERS;
    while (next != self && !board->alive[next]);
    board->turn = next == self && !board->alive[self] ? NOBODY : next;
    board->turns++;
}

static void begin_worker(uint32_t self, const char *name)
{
    char path[4096];
    prctl(PR_SET_NAME, name);
    if (own_dumps)
        open_dump();
    if (maps_late)
        map(arena, object_fd);
    if (!is_private)
        return;
    struct board *inherited = board;
    board = malloc(sizeof *board);
    if (!board)
        fail("malloc");
    memcpy(board, inherited, sizeof *board);
    board->turn = self;
    snprintf(path, sizeof path, "cp %s %s.%s", truth_path, truth_path, name);
    if (system(path))
        fail(path);
    snprintf(path, sizeof path, "%s.%s", truth_path, name);
    open_truth(path, "a");
}

static void work(uint32_t self, uint64_t ns)
{
    char name[16];
    snprintf(name, sizeof name, "worker%u", self);
    begin_worker(self, name);
    const uint64_t end_ns = ns_of(CLOCK_PROCESS_CPUTIME_ID) + (self % 2 ? ns / 2 : ns);
    uint64_t write_ns = 0, now_ns;
    board->alive[self] = true;
    while ((now_ns = ns_of(CLOCK_PROCESS_CPUTIME_ID)) < end_ns) {
        board->seen[self] = board->epoch;
        call_all();
        uint32_t holder = board->turn;
        if (holder == NOBODY || !board->alive[holder])
            atomic_compare_exchange_strong(&board->turn, &holder, self);
        if (board->turn != self || now_ns < write_ns)
            continue;
        for (uint32_t i = 0; i < at_once; i++)
            write_function(self, name);
        write_ns = now_ns + SLICE_NS;
        if (!is_private)
            pass_turn(self);
    }
    board->alive[self] = false;
    if (board->turn == self)
        pass_turn(self);
    exit(EXIT_SUCCESS);
}

static void fork_worker(uint32_t self, uint64_t ns)
{
    pid_t child = fork();
    if (child < 0)
        fail("fork");
    if (child == 0)
        work(self, ns);
}

static void open_board(void)
{
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        fail("mmap");
    board->turn = NOBODY;
}

static bool one_has_ended(void)
{
    siginfo_t ended = {0};
    return waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) || ended.si_pid;
}

static void run(uint32_t workers, uint64_t ns)
{
    open_board();
    open_arena();
    open_dump();
    open_truth(truth_path, "w");
    fprintf(truth, "# pid %d, arena %" PRIxPTR " to %" PRIxPTR "\n", (int)getpid(),
            (uintptr_t)arena, (uintptr_t)arena + arena_bytes);
    for (uint32_t i = 0; i < slots / 4 && !maps_late; i++)
        write_function(NOBODY, "master");
    for (uint32_t i = 0; i < workers; i++) {
        while (i == workers / 2 && board->turns * at_once < slots / 2 && !is_private &&
               !one_has_ended())
            usleep(1000);
        fork_worker(i, ns);
    }
    int status, failed = 0;
    while (wait(&status) > 0)
        failed |= status;
    exit(failed ? EXIT_FAILURE : EXIT_SUCCESS);
}

int main(int argc, char **argv)
{
    uint32_t workers = 4;
    uint64_t ms = 200;
    for (int option; (option = getopt(argc, argv, "ofmw:t:n:k:")) != -1;) {
        if (option == 'o')
            own_dumps = true;
        else if (option == 'f')
            flips = true;
        else if (option == 'm')
            maps_late = true;
        else if (option == 'w')
            workers = (uint32_t)atol(optarg);
        else if (option == 't')
            ms = (uint64_t)atol(optarg);
        else if (option == 'n')
            slots = (uint32_t)atol(optarg);
        else if (option == 'k')
            at_once = (uint32_t)atol(optarg);
        else
            return 2;
    }
    if (argc - optind != 2 || workers < 2 || workers > MAX_WORKERS || slots > MAX_SLOTS ||
        slots < 4) {
        fprintf(stderr, "usage: shared_arena [-o] [-f] [-m] [-w WORKERS] [-t MS] [-n SLOTS] [-k "
                        "COUNT] KIND TRUTH\n");
        return 2;
    }
    kind = argv[optind];
    truth_path = argv[optind + 1];
    run(workers, ms * 1000000u);
}
