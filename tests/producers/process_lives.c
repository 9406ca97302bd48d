/* process_lives: a JIT that forks, execs and flips the protection of its code as its command line says.
 *
 *     PERFJIT=dump process_lives [-r] [-n NAME] [-u UID] [-a ARENA] DIRECTORY STEP...
 *
 *     life NAME     from here on the process's name is NAME, and DIRECTORY/NAME receives which function is where, in the
 *                   form of tinyjit --truth; what it has already, inherited or not, is in it too
 *     load N        make N functions, and log each before it first runs
 *     late N        the same, but each runs for half a millisecond before it is logged; by hand (-r) the dump says so exactly
 *     unload N      forget the N oldest
 *     move          move the oldest elsewhere
 *     run MS        call all functions in turn
 *     flip          take the arena's protection to be written, and then executed, which the kernel logs as a new mapping
 *     fork { ... }  a child does these steps and ends
 *     wait          for all children
 *     pid N         the next child gets pid N, which must be free (root only)
 *     dumps FOLDER  what is executed from here on writes its dump there
 *     exec STEP...  run this program anew with these steps
 *     dump NAME     with -r: from here on write another dump, as Bun does for each thread
 *
 * -r: write the dump by hand, as many runtimes do: jit-<pid>.dump is opened once, an older one emptied, and children go on writing to
 * their parent's, with their own pid in LOAD.pid (PHP).  Else libjitdump writes.
 * NAME: what that dump is called instead; @ stands for the pid.
 * UID: the user that this becomes before the dump is made (root only), as a service does.
 * ARENA: anon (default), memfd, or the path of a file, which is deleted at once if it is not in /dev/shm.  Or one that is executable
 * only from the first flip on: data, which is the program's own .data, or kept:PATH, a file that stays.
 */
#include "jitdump/format/byte_sink.h"
#include "jitdump/jitdump.h"
#include "jitdump/format/jitdump_format.h"
#include "tests/producers/loop_code.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    SLOT_BYTES = 64,
    SLOTS = 4096,
    NAME_BYTES = 48,
    LATE_NS = 500000,
};

typedef void function_code(void);

struct function {
    uint8_t *at;
    size_t bytes;
    uint64_t code_index;
    char name[NAME_BYTES];
};

static const char *program, *directory, *arena_kind = "anon", *dump_name = "jit-@.dump";
static bool by_hand;
static struct jitdump *dump;
static int raw_fd = -1;
static uint64_t raw_index;
static uint8_t *arena;
static _Alignas(1 << 16) uint8_t data_arena[SLOTS * SLOT_BYTES] = {1}; /* not in .bss */
static size_t next_slot;
static struct function live[SLOTS];
static size_t live_count;
static pid_t wanted_pid;
static char life[16] = "start";
static FILE *truth;

static void fail(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- Code ---- */

static bool is_kept(void)
{
    return strncmp(arena_kind, "kept:", 5) == 0;
}

static int arena_fd(void)
{
    int fd;
    if (strcmp(arena_kind, "anon") == 0)
        return -1;
    if (strcmp(arena_kind, "memfd") == 0)
        fd = memfd_create("arena", 0);
    else
        fd = open(is_kept() ? strchr(arena_kind, ':') + 1 : arena_kind, O_RDWR | O_CREAT | O_TRUNC,
                  0700);
    if (fd < 0 || ftruncate(fd, SLOTS * SLOT_BYTES))
        fail(arena_kind);
    if (arena_kind[0] == '/' && strncmp(arena_kind, "/dev/shm/", 9) != 0)
        unlink(arena_kind);
    return fd;
}

static void open_arena(void)
{
    if (strcmp(arena_kind, "data") == 0) {
        arena = data_arena;
        return;
    }
    int fd = arena_fd();
    void *base =
        mmap(NULL, SLOTS * SLOT_BYTES, PROT_READ | PROT_WRITE | (is_kept() ? 0 : PROT_EXEC),
             fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        fail("mmap");
    arena = base;
}

static void flip(void)
{
    if (mprotect(arena, SLOTS * SLOT_BYTES, PROT_READ | PROT_WRITE) ||
        mprotect(arena, SLOTS * SLOT_BYTES, PROT_READ | PROT_EXEC) ||
        mprotect(arena, SLOTS * SLOT_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC))
        fail("mprotect");
}

static void call(const struct function *function)
{
    ((function_code *)(uintptr_t)function->at)();
}

/* Of this process's own time, so that a busy machine takes no samples away. */
static uint64_t own_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void run_for(uint64_t ns)
{
    for (uint64_t end_ns = own_ns() + ns; own_ns() < end_ns;)
        for (size_t i = 0; i < live_count; i++)
            call(&live[i]);
}

/* ---- The dump ---- */

/* NAME with the pid for each @. */
static void fill_in(char *path, size_t bytes, const char *name)
{
    size_t length = 0;
    for (; *name && length + 1 < bytes; name++)
        if (*name == '@')
            length += (size_t)snprintf(path + length, bytes - length, "%d", (int)getpid());
        else
            path[length++] = *name;
    path[length] = '\0';
}

static void open_dump(const char *name)
{
    char path[64];
    uint8_t bytes[JITHEADER_BYTES];
    struct byte_sink sink = byte_sink_over(bytes, sizeof bytes);
    if (!by_hand) {
        if (jitdump_open(&dump, NULL))
            fprintf(stderr, "process_lives: %s\n", jitdump_error(dump)), exit(EXIT_FAILURE);
        return;
    }
    fill_in(path, sizeof path, name);
    raw_index = 0;
    raw_fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600);
    sink_u32(&sink, JITDUMP_MAGIC);
    sink_u32(&sink, 1);
    sink_u32(&sink, JITHEADER_BYTES);
    sink_u32(&sink, EM_X86_64);
    sink_u32(&sink, 0);
    sink_u32(&sink, (uint32_t)getpid());
    sink_u64(&sink, now_ns());
    sink_u64(&sink, 0);
    if (raw_fd < 0 || write(raw_fd, bytes, sink.size) != (ssize_t)sink.size ||
        mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, raw_fd, 0) == MAP_FAILED)
        fail(path);
}

static void log_by_hand(struct function *function, uint64_t time_ns)
{
    uint8_t bytes[256];
    struct byte_sink sink = byte_sink_over(bytes, sizeof bytes);
    size_t name_bytes = strlen(function->name) + 1;
    function->code_index = raw_index++;
    sink_u32(&sink, JIT_CODE_LOAD);
    sink_u32(&sink, (uint32_t)(56 + name_bytes + function->bytes));
    sink_u64(&sink, time_ns);
    sink_u32(&sink, (uint32_t)getpid());
    sink_u32(&sink, (uint32_t)getpid());
    sink_u64(&sink, (uintptr_t)function->at);
    sink_u64(&sink, (uintptr_t)function->at);
    sink_u64(&sink, function->bytes);
    sink_u64(&sink, function->code_index);
    sink_bytes(&sink, function->name, name_bytes);
    sink_bytes(&sink, function->at, function->bytes);
    if (write(raw_fd, bytes, sink.size) != (ssize_t)sink.size)
        fail("dump");
}

/* The library has its own time for it. */
static void log_function(struct function *function, uint64_t time_ns)
{
    struct jitdump_code code = JITDUMP_CODE_INIT;
    if (by_hand) {
        log_by_hand(function, time_ns);
        return;
    }
    code.name = function->name;
    code.code_addr = (uintptr_t)function->at;
    code.code_size = function->bytes;
    code.bytes = function->at;
    if (jitdump_add_code(dump, &code, &function->code_index))
        fprintf(stderr, "process_lives: %s\n", jitdump_error(dump)), exit(EXIT_FAILURE);
}

/* ---- Steps ---- */

static void note_load(const struct function *function)
{
    if (truth)
        fprintf(truth, "%" PRIu64 " load %" PRIxPTR " %zu %s\n", now_ns(), (uintptr_t)function->at,
                function->bytes, function->name);
}

static void begin_life(const char *name)
{
    char path[4096];
    snprintf(life, sizeof life, "%s", name);
    snprintf(path, sizeof path, "%s/%s", directory, name);
    if (truth)
        fclose(truth);
    truth = fopen(path, "w");
    if (!truth)
        fail(path);
    setvbuf(truth, NULL, _IOLBF, 0);
    fprintf(truth, "# pid %d, arena %" PRIxPTR " to %" PRIxPTR "\n", (int)getpid(),
            (uintptr_t)arena, (uintptr_t)(arena + SLOTS * SLOT_BYTES));
    for (size_t i = 0; i < live_count; i++)
        note_load(&live[i]);
    prctl(PR_SET_NAME, name);
}

static void load(bool late)
{
    struct function *function = &live[live_count];
    if (next_slot == SLOTS)
        exit(EXIT_FAILURE);
    function->at = arena + next_slot * SLOT_BYTES;
    function->bytes = loop_code_put_counted(function->at, 3000 + (uint32_t)next_slot);
    snprintf(function->name, sizeof function->name, "%s_%zu", life, next_slot++);
    live_count++;
    note_load(function);
    if (!late) {
        log_function(function, now_ns());
        return;
    }
    uint64_t end_ns = now_ns() + LATE_NS;
    while (now_ns() < end_ns)
        call(function);
    log_function(function, end_ns);
}

/* What is unloaded has run for the last time before the dump says so, and its place is not used again here. */
static void unload(void)
{
    struct function oldest = live[0];
    live_count--;
    memmove(live, live + 1, live_count * sizeof *live);
    jitdump_unload_code(dump, oldest.code_index, (uintptr_t)oldest.at, oldest.bytes);
    fprintf(truth, "%" PRIu64 " unload %" PRIxPTR " %zu %s\n", now_ns(), (uintptr_t)oldest.at,
            oldest.bytes, oldest.name);
}

static void move(void)
{
    struct function *oldest = &live[0];
    uint8_t *to = arena + next_slot++ * SLOT_BYTES, *from = oldest->at;
    memcpy(to, from, oldest->bytes);
    jitdump_move_code(dump, oldest->code_index, (uintptr_t)from, (uintptr_t)to, oldest->bytes);
    oldest->at = to;
    fprintf(truth, "%" PRIu64 " move %" PRIxPTR " %" PRIxPTR " %zu %s\n", now_ns(), (uintptr_t)from,
            (uintptr_t)to, oldest->bytes, oldest->name);
}

/* The pid that was given out last: all processes of the machine go on behind it. */
static int last_pid(void)
{
    int pid;
    FILE *file = fopen("/proc/sys/kernel/ns_last_pid", "r");
    if (!file || fscanf(file, "%d", &pid) != 1 || fclose(file))
        fail("ns_last_pid");
    return pid;
}

static void set_last_pid(int pid)
{
    FILE *file = fopen("/proc/sys/kernel/ns_last_pid", "w");
    if (!file || fprintf(file, "%d", pid) < 0 || fclose(file))
        fail("ns_last_pid");
}

/* A child with the wanted pid.  Others fork at the same time, so that it may take several attempts.  They must not go on behind that
 * pid: where it is used again, theirs would be as well, in what another test records. */
static pid_t fork_wanted(void)
{
    for (;;) {
        pid_t wanted = wanted_pid, before = last_pid();
        set_last_pid(wanted - 1);
        pid_t child = fork();
        if (child == 0 && getpid() != wanted)
            _exit(EXIT_SUCCESS);
        if (child)
            set_last_pid(before);
        if (child <= 0 || child == wanted) {
            wanted_pid = 0;
            return child;
        }
        waitpid(child, NULL, 0);
    }
}

static void finish(void)
{
    if (!by_hand && jitdump_close(dump))
        fail("dump");
    if (truth)
        fclose(truth);
}

/* Where the steps behind the block that begins at STEPS go on. */
static char **skip_block(char **steps)
{
    for (int depth = 0; *steps; steps++) {
        depth += strcmp(*steps, "{") == 0;
        depth -= strcmp(*steps, "}") == 0;
        if (depth == 0)
            return steps + 1;
    }
    fprintf(stderr, "process_lives: no } at the end\n");
    exit(2);
}

static void exec_again(char **steps)
{
    char *arguments[256] = {(char *)(uintptr_t)program};
    size_t count = 1;
    if (by_hand)
        arguments[count++] = (char *)(uintptr_t) "-r";
    arguments[count++] = (char *)(uintptr_t)directory;
    while (*steps && strcmp(*steps, "}") != 0 && count < 255)
        arguments[count++] = *steps++;
    finish();
    execv(program, arguments);
    fail(program);
}

static char **fork_block(char **steps);

static char **take_step(char **steps)
{
    const char *step = *steps++;
    long number = *steps ? atol(*steps) : 0;
    if (strcmp(step, "fork") == 0)
        return fork_block(steps);
    if (strcmp(step, "exec") == 0)
        exec_again(steps);
    if (strcmp(step, "flip") == 0) {
        flip();
    } else if (strcmp(step, "move") == 0) {
        move();
    } else if (strcmp(step, "wait") == 0) {
        while (wait(NULL) > 0)
            continue;
    } else if (!*steps) {
        fprintf(stderr, "process_lives: what is '%s'?\n", step);
        exit(2);
    } else if (strcmp(step, "dump") == 0) {
        open_dump(*steps++);
    } else if (strcmp(step, "life") == 0) {
        begin_life(*steps++);
    } else if (strcmp(step, "pid") == 0) {
        wanted_pid = (pid_t)number;
        steps++;
    } else if (strcmp(step, "dumps") == 0) {
        setenv("JITDUMPDIR", *steps++, 1);
    } else if (strcmp(step, "run") == 0) {
        run_for((uint64_t)number * 1000000u);
        steps++;
    } else {
        for (; number > 0; number--)
            strcmp(step, "unload") == 0 ? unload() : load(strcmp(step, "late") == 0);
        steps++;
    }
    return steps;
}

static void take_steps(char **steps)
{
    while (*steps && strcmp(*steps, "}") != 0)
        steps = take_step(steps);
    finish();
}

static char **fork_block(char **steps)
{
    pid_t child = wanted_pid ? fork_wanted() : fork();
    if (child < 0)
        fail("fork");
    if (child == 0) {
        take_steps(steps + 1);
        _exit(EXIT_SUCCESS);
    }
    return skip_block(steps);
}

int main(int argc, char **argv)
{
    program = argv[0];
    uid_t user = getuid();
    for (int option; (option = getopt(argc, argv, "+ra:n:u:")) != -1;) {
        if (option == 'r')
            by_hand = true;
        else if (option == 'n')
            dump_name = optarg;
        else if (option == 'u')
            user = (uid_t)atol(optarg);
        else if (option == 'a')
            arena_kind = optarg;
        else
            return 2;
    }
    if (argc - optind < 2) {
        fprintf(stderr, "usage: process_lives [-r] [-n NAME] [-u UID] [-a ARENA] DIRECTORY STEP...\n");
        return 2;
    }
    directory = argv[optind];
    open_arena();
    if (user != getuid() && setresuid(user, user, user))
        fail("setresuid");
    open_dump(dump_name);
    take_steps(argv + optind + 1);
    return EXIT_SUCCESS;
}
