/* guest [-a] [-c CALL:ERRNO] [-l LIMIT=NUMBER]... DIR: a runtime that logs with both libraries into DIR, in a world that refuses it something.
 *
 * A child logs with two threads: loads, moves, unloads, and a line of the perf map for each load.  The parent says on one line how that
 * ended, in words "NAME=NUMBER": the child's status and signal, how many bytes it printed, and of each library what open and
 * close returned, how many calls returned 0, how many failed, and how many of these the library counts.
 *
 *     -c CALL:ERRNO    the system call of that number fails so
 *     -l LIMIT=NUMBER  as, data, fsize, nofile or stack; for as: so many bytes more than there are
 *     -a               both hold only after the files were opened
 *
 * The sandbox is the child's own, of all its threads, so that programs start and report as ever. */
#include "jitdump/jitdump.h"
#include "perfmap/perfmap.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { OPS = 1500, CODE_MAX_BYTES = 600, LARGE_BYTES = 100000, LIMITS_MAX = 8 };

/* What the child tells the parent: in shared memory, so that no system call is needed. */
struct report {
    int dump_open, dump_close, map_open, map_close;
    _Atomic uint64_t loads, moves, unloads, failed, lines, map_failed;
    uint64_t lost, map_lost;
    _Atomic int logged;
};

static struct report *report;
static struct jitdump *dump;
static struct perfmap *map;
static atomic_bool has_begun, may_log;

static struct world {
    bool after_open;
    int call, error;
    struct limit {
        int resource;
        rlim_t value;
    } limits[LIMITS_MAX];
    size_t limit_count;
} world = {.call = -1};

/* ---- What is logged ---- */

static uint64_t addr_of(unsigned thread, unsigned i)
{
    return 0x7f0000000000 + ((uint64_t)thread << 32) + (uint64_t)i * LARGE_BYTES;
}

/* Every 100th function has inlined calls, every 500th is large: both take memory. */
static int load(unsigned thread, unsigned i, uint64_t *code_index)
{
    static const uint8_t bytes[LARGE_BYTES];
    char name[32];
    uint64_t addr = addr_of(thread, i);
    snprintf(name, sizeof name, "t%u_%u", thread, i);
    const struct jitdump_line line = {addr, "guest.c", i + 1, 0};
    const struct jitdump_inline inlined = {name, "guest.c", "guest.c",          1,
                                           2,    3,         JITDUMP_NOT_INLINED};
    const uint32_t of_line = 0;
    struct jitdump_code code = JITDUMP_CODE_INIT;
    code.name = name;
    code.code_addr = addr;
    code.code_size = i % 500 == 6 ? LARGE_BYTES : 1 + i % CODE_MAX_BYTES;
    code.bytes = bytes;
    code.lines = &line;
    code.line_count = 1;
    code.inlines = &inlined;
    code.inline_count = i % 100 == 1;
    code.line_inlines = code.inline_count ? &of_line : NULL;
    if (perfmap_add(map, addr, code.code_size, name) == 0)
        atomic_fetch_add(&report->lines, (uint64_t)(map != NULL));
    else
        atomic_fetch_add(&report->map_failed, 1);
    return jitdump_add_code(dump, &code, code_index);
}

/* RESULT 0 counts as one of KIND.  Without a dump nothing was recorded, and what is not in it can't move (KIND is NULL). */
static void count(_Atomic uint64_t *kind, int result)
{
    if (dump && kind)
        atomic_fetch_add(result ? &report->failed : kind, 1);
}

/* The fourth of five operations moves the third's function, the fifth unloads it. */
static void log_one(unsigned thread, unsigned i, uint64_t *last)
{
    if (i % 5 < 3)
        count(&report->loads, load(thread, i, last));
    else if (i % 5 == 3)
        count(*last == JITDUMP_NO_CODE ? NULL : &report->moves,
              jitdump_move_code(dump, *last, addr_of(thread, i - 1), addr_of(thread, i), 1));
    else
        count(*last == JITDUMP_NO_CODE ? NULL : &report->unloads,
              jitdump_unload_code(dump, *last, addr_of(thread, i - 1), 1));
}

/* The end of a second thread would need calls that may be refused. */
static void *log_functions(void *argument)
{
    unsigned thread = *(const unsigned *)argument;
    uint64_t last = JITDUMP_NO_CODE;
    atomic_store(&has_begun, true);
    while (!atomic_load(&may_log))
        ;
    for (unsigned i = 0; i < OPS; i++)
        log_one(thread, i, &last);
    atomic_fetch_add(&report->logged, 1);
    while (thread != 0)
        pause();
    return NULL;
}

/* ---- What is refused ---- */

static void refuse(int call, int error)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((unsigned)error & SECCOMP_RET_DATA)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
        _exit(99);
}

static rlim_t address_space_now(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%lu", &pages) != 1)
        _exit(99);
    fclose(file);
    return pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static void enter_world(void)
{
    for (size_t i = 0; i < world.limit_count; i++) {
        struct limit limit = world.limits[i];
        if (limit.resource == RLIMIT_AS)
            limit.value += address_space_now();
        if (setrlimit(limit.resource, &(struct rlimit){limit.value, limit.value}) != 0)
            _exit(99);
    }
    if (world.call >= 0)
        refuse(world.call, world.error);
}

/* ---- The child ---- */

static void open_both(const char *dir)
{
    struct jitdump_options dump_options = JITDUMP_OPTIONS_INIT;
    struct perfmap_options map_options = PERFMAP_OPTIONS_INIT;
    dump_options.dir = map_options.dir = dir;
    dump_options.flags = JITDUMP_ALWAYS;
    map_options.flags = PERFMAP_ALWAYS;
    report->dump_open = jitdump_open(&dump, &dump_options);
    report->map_open = perfmap_open(&map, &map_options);
}

/* Signals of the libraries' own making shall end it. */
static void default_signals(void)
{
    signal(SIGXFSZ, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGSYS, SIG_DFL);
}

static void live(const char *dir)
{
    static const unsigned numbers[] = {0, 1};
    pthread_t thread;
    default_signals();
    bool alone = pthread_create(&thread, NULL, log_functions, (void *)(uintptr_t)&numbers[1]) != 0;
    while (!alone && !atomic_load(&has_begun))
        ;
    if (!world.after_open)
        enter_world();
    open_both(dir);
    if (world.after_open)
        enter_world();
    atomic_store(&may_log, true);
    log_functions((void *)(uintptr_t)&numbers[0]);
    while (!alone && atomic_load(&report->logged) < 2)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    report->lost = jitdump_lost(dump);
    report->map_lost = perfmap_lost(map);
    report->dump_close = jitdump_close(dump);
    report->map_close = perfmap_close(map);
    exit(0);
}

/* ---- The parent ---- */

static void tell(pid_t child, int status, long long printed)
{
    printf(
        "pid=%d status=%d signal=%d printed=%lld dump_open=%d dump_close=%d loads=%llu moves=%llu "
        "unloads=%llu "
        "failed=%llu lost=%llu map_open=%d map_close=%d lines=%llu map_failed=%llu map_lost=%llu\n",
        (int)child, WIFEXITED(status) ? WEXITSTATUS(status) : -1,
        WIFSIGNALED(status) ? WTERMSIG(status) : 0, printed, report->dump_open, report->dump_close,
        (unsigned long long)report->loads, (unsigned long long)report->moves,
        (unsigned long long)report->unloads, (unsigned long long)report->failed,
        (unsigned long long)report->lost, report->map_open, report->map_close,
        (unsigned long long)report->lines, (unsigned long long)report->map_failed,
        (unsigned long long)report->map_lost);
}

static int run(const char *dir)
{
    struct stat text;
    int status, said = memfd_create("said", 0);
    report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (said < 0 || report == MAP_FAILED)
        return 2;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        dup2(said, 1);
        dup2(said, 2);
        close(said);
        live(dir);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || fstat(said, &text) != 0)
        return 2;
    tell(child, status, (long long)text.st_size);
    return WIFEXITED(status) && WEXITSTATUS(status) == 99 ? 99 : 0;
}

static bool add_limit(const char *text)
{
    static const struct {
        const char *name;
        int resource;
    } names[] = {{"as", RLIMIT_AS},
                 {"data", RLIMIT_DATA},
                 {"fsize", RLIMIT_FSIZE},
                 {"nofile", RLIMIT_NOFILE},
                 {"stack", RLIMIT_STACK}};
    const char *equals = strchr(text, '=');
    for (size_t i = 0; equals && i < sizeof names / sizeof names[0]; i++)
        if (strncmp(names[i].name, text, strlen(names[i].name)) == 0 &&
            world.limit_count < LIMITS_MAX) {
            world.limits[world.limit_count++] =
                (struct limit){names[i].resource, strtoull(equals + 1, NULL, 10)};
            return true;
        }
    return false;
}

int main(int argc, char **argv)
{
    int option;
    while ((option = getopt(argc, argv, "ac:l:")) != -1)
        if (option == 'a')
            world.after_open = true;
        else if (option != 'c' ? option != 'l' || !add_limit(optarg)
                               : sscanf(optarg, "%d:%d", &world.call, &world.error) != 2)
            return 2;
    int status = optind + 1 == argc ? run(argv[optind]) : 2;
    fflush(NULL);
    _exit(status); /* what is done at exit (fail_nth.c counts) is the child's */
}
