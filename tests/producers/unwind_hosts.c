/* unwind_hosts HOST [ARG...]: a process that uses libjitunwind where something is in the way.
 *
 * Prints what it saw; status 0 if that is what jitunwind.h promises, 77 if this process may not be
 * such a host.  A signal, or no end, is a fault.
 *
 *     hole, hole-thread   memory between a handler's stack and the thread's block is freed,
 *                         protected, cut, between two backtraces through a register to there
 *     refused ERRNO       the same where process_vm_readv fails so
 *     sandboxes           calls that it makes are refused, one at a time
 *     alone               a sandbox that lets it write and end
 *     memory, names       there is no more, when functions are added; functions with names
 *     gone                the memory of registered code is unmapped
 *     cancels             threads are cancelled, at any moment, while they walk
 *     handlers            a signal's handler forks, whatever it interrupts, and the child goes on
 *     vforks              a child in the same memory walks
 *     pipe, limit, terminal, closed
 *                         nobody reads the crash report, or it is as long as files may get, or
 *                         a background process may not write there, or it is no descriptor
 *     locked, locked-later
 *                         mlockall before and after an arena of 256 MiB is opened
 *     chroot DIR          no /proc
 *     user ID             another user
 *     forks               children while other threads add, remove and walk
 *     stops               all threads but one are stopped, again and again; STOP_SECONDS=N in the
 *                         environment: for so long
 *     unload PLUGIN       a call into a library that was unloaded
 *     late PLUGIN...      calls through libraries that were loaded after the arena was opened
 *     early PLUGIN...     ... and before that
 */
#include "jitunwind/jitunwind.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__x86_64__)
#define IP(context) (context)->uc_mcontext.gregs[REG_RIP]
#define FP(context) (context)->uc_mcontext.gregs[REG_RBP]
#define SP(context) (context)->uc_mcontext.gregs[REG_RSP]
#else
#define IP(context) (context)->uc_mcontext.pc
#define FP(context) (context)->uc_mcontext.regs[29]
#define SP(context) (context)->uc_mcontext.sp
#endif

enum {
    NOT_PERMITTED = 77,
    FRAMES = 64,
    PIECE = 256 << 10,
    CODE_BYTES = 1 << 20,
    PLAIN_AT = 1 << 16
};

static struct jitunwind *arena;
static char *code;

static void fail(const char *what)
{
    printf("%s\n", what);
    fflush(stdout);
    _exit(1);
}

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail(#condition);                                                                      \
    } while (0)

static void open_arena(size_t bytes)
{
    struct jitunwind_options options = JITUNWIND_OPTIONS_INIT;
    code = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    options.start = (uint64_t)(uintptr_t)code;
    options.bytes = bytes;
    CHECK(jitunwind_open(&arena, &options) == 0);
}

static const char *name = "plain"; /* NULL: add takes nothing from malloc */

/* A function without tables. */
static int add(size_t offset, size_t bytes)
{
    struct jitunwind_code added = JITUNWIND_CODE_INIT;
    added.addr = (uint64_t)(uintptr_t)code + offset;
    added.bytes = bytes;
    added.name = name;
    return jitunwind_add(arena, &added);
}

static void handle(int number, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    CHECK(sigaction(number, &action, NULL) == 0);
}

/* ---- A hole ---- */

static char *volatile dangling; /* what the frame pointer is in the next walk */
static volatile size_t found;

static void at_walk(int number, siginfo_t *info, void *ucontext)
{
    static struct jitunwind_frame frames[FRAMES];
    ucontext_t context = *(ucontext_t *)ucontext;
    (void)number, (void)info;
    if (dangling) {
        IP(&context) = (__typeof__(IP(&context)))(uintptr_t)(code + PLAIN_AT + 8);
        FP(&context) = (__typeof__(FP(&context)))(uintptr_t)dangling;
        SP(&context) = (__typeof__(SP(&context)))(uintptr_t)__builtin_frame_address(0);
    }
    found = jitunwind_backtrace(&context, frames, FRAMES, dangling ? 0 : JITUNWIND_SCAN);
}

static void walk_from(char *frame_pointer)
{
    dangling = frame_pointer;
    raise(SIGPROF);
    CHECK(found >= 1);
}

static void free_it(char *memory)
{
    CHECK(munmap(memory, PIECE) == 0);
}

static void protect(char *memory)
{
    CHECK(mprotect(memory, PIECE, PROT_NONE) == 0);
}

/* A mapping whose file becomes shorter: reading it raises SIGBUS. */
static void cut(char *memory)
{
    char path[] = "hole.XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0 && unlink(path) == 0 && ftruncate(fd, PIECE) == 0);
    CHECK(mmap(memory, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == memory);
    walk_from(memory + PIECE / 2);
    CHECK(ftruncate(fd, 0) == 0);
    close(fd);
}

/* Walk on a handler's stack at the begin of MEMORY, of which the second piece is taken away. */
static void walk_beside_holes(char *memory)
{
    static void (*const ways[])(char *) = {free_it, protect, cut};
    char *buffer = memory + PIECE;
    const stack_t stack = {.ss_sp = memory, .ss_size = PIECE};
    CHECK(sigaltstack(&stack, NULL) == 0);
    handle(SIGPROF, at_walk, SA_ONSTACK);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        CHECK(mmap(buffer, PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                   -1, 0) == buffer);
        walk_from(NULL);
        walk_from(buffer + PIECE / 2);
        ways[i](buffer);
        for (int at = 0; at < PIECE; at += 1000)
            walk_from(buffer + at / 8 * 8);
    }
}

static char *two_pieces(size_t more)
{
    char *memory =
        mmap(NULL, 2 * PIECE + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

static void *in_thread(void *memory)
{
    walk_beside_holes(memory);
    return NULL;
}

/* The thread's stack stands above the two pieces, without a guard. */
static void hole_thread(void)
{
    enum { STACK = 1 << 20 };
    pthread_attr_t attributes;
    pthread_t thread;
    char *memory = two_pieces(STACK);
    pthread_attr_init(&attributes);
    CHECK(pthread_attr_setstack(&attributes, memory + 2 * PIECE, STACK) == 0);
    CHECK(pthread_create(&thread, &attributes, in_thread, memory) == 0);
    pthread_join(thread, NULL);
}

static void refuse(int call, int error)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(NOT_PERMITTED);
}

/* ---- Crash reports ---- */

static int report_fd;
static volatile int reported;

static void at_crash(int number, siginfo_t *info, void *ucontext)
{
    (void)number, (void)info;
    reported = jitunwind_print_crash(report_fd, ucontext);
}

static int report_to(int fd)
{
    report_fd = fd;
    handle(SIGUSR1, at_crash, 0);
    raise(SIGUSR1);
    return reported;
}

/* A signal that was there before stays. */
static bool is_pending(int number)
{
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, number);
}

static void block(int number)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, number);
    CHECK(sigprocmask(SIG_BLOCK, &signals, NULL) == 0);
}

static void to_pipe(void)
{
    int ends[2];
    CHECK(pipe(ends) == 0 && close(ends[0]) == 0);
    CHECK(report_to(ends[1]) == -EPIPE);
    CHECK(!is_pending(SIGPIPE));
    block(SIGPIPE);
    CHECK(report_to(ends[1]) == -EPIPE);
    CHECK(!is_pending(SIGPIPE));
    raise(SIGPIPE);
    CHECK(report_to(ends[1]) == -EPIPE);
    CHECK(is_pending(SIGPIPE));
    char filling[4096] = {0};
    CHECK(pipe(ends) == 0 && fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
    while (write(ends[1], filling, sizeof filling) > 0)
        continue;
    CHECK(report_to(ends[1]) == -EAGAIN);
}

static void to_limit(void)
{
    const struct rlimit limit = {100, 100};
    int fd = open("report", O_CREAT | O_TRUNC | O_WRONLY, 0600);
    CHECK(fd >= 0 && setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK(report_to(fd) == -EFBIG);
    CHECK(!is_pending(SIGXFSZ));
}

/* A background process of a session of its own, whose terminal stops those that write. */
static void to_terminal(void)
{
    struct termios settings;
    int status, terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0)
        _exit(NOT_PERMITTED);
    CHECK(grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    pid_t leader = fork();
    if (leader == 0) {
        CHECK(setsid() > 0);
        int fd = open(ptsname(terminal), O_RDWR);
        CHECK(fd >= 0 && tcgetattr(fd, &settings) == 0);
        settings.c_lflag |= TOSTOP;
        CHECK(tcsetattr(fd, TCSANOW, &settings) == 0);
        pid_t writer = fork();
        if (writer == 0) {
            CHECK(setpgid(0, 0) == 0);
            _exit(report_to(fd) == 0 ? 0 : 2);
        }
        CHECK(waitpid(writer, &status, WUNTRACED) == writer);
        if (WIFSTOPPED(status))
            kill(writer, SIGKILL);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 3);
    }
    CHECK(waitpid(leader, &status, 0) == leader && status == 0);
}

/* ---- Sandboxes ---- */

static void in_sandbox(long call)
{
    int ends[2];
    CHECK(pipe(ends) == 0 && close(ends[0]) == 0);
    refuse((int)call, EPERM);
    walk_from(NULL);
    CHECK(report_to(ends[1]) < 0);
    CHECK(!is_pending(SIGPIPE));
    int error = add(4096, 64);
    CHECK(error == 0 || error == -ENOMEM);
    _exit(0);
}

static void sandboxes(void)
{
    static const long calls[] = {
        SYS_rt_sigprocmask, SYS_rt_sigpending, SYS_rt_sigtimedwait, SYS_process_vm_readv, SYS_write,
        SYS_mprotect,       SYS_mmap};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        int status;
        pid_t child = fork();
        if (child == 0)
            in_sandbox(calls[i]);
        CHECK(waitpid(child, &status, 0) == child);
        if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_PERMITTED)
            _exit(NOT_PERMITTED);
        if (status != 0)
            printf("call %ld: status %d\n", calls[i], status);
        CHECK(status == 0);
    }
}

static void alone(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    struct jitunwind_frame frames[FRAMES];
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(NOT_PERMITTED);
    /* Nobody can say what is on the stack beyond this page. */
    CHECK(jitunwind_backtrace(NULL, frames, FRAMES, JITUNWIND_SCAN) <= FRAMES);
    CHECK(add(PLAIN_AT + 64, 64) == 0);
    CHECK(jitunwind_remove(arena, (uint64_t)(uintptr_t)code + PLAIN_AT + 64) == 0);
    _exit(0);
}

/* ---- Memory that is locked ---- */

static long resident_kib(void)
{
    long all, resident;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%ld %ld", &all, &resident) == 2);
    fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void lock_all(void)
{
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
        _exit(NOT_PERMITTED);
}

/* Whether the kernel refuses to reserve BYTES: all memory of this process is locked, and the limit
 * of it holds for this user. */
static bool passes_limit(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return true;
    munmap(memory, bytes);
    return false;
}

static void locked(bool later)
{
    enum { BYTES = 256 << 20, MOST_KIB = 4 << 10, TABLE_BYTES = 16 << 20 };
    if (!later)
        lock_all();
    if (!later && passes_limit(TABLE_BYTES)) {
        struct jitunwind_options options = JITUNWIND_OPTIONS_INIT;
        options.start = 1 << 20;
        options.bytes = BYTES;
        CHECK(jitunwind_open(&arena, &options) == -ENOMEM);
        return;
    }
    long before = resident_kib();
    open_arena(BYTES);
    CHECK(add(200 << 20, 64) == 0);
    if (later) {
        before = resident_kib();
        open_arena(BYTES);
        lock_all();
        munlockall(); /* of the rest of the process: what is resident stays so */
        before += 8 << 10;
    }
    for (size_t i = 0; i < 1000; i++)
        CHECK(add(i << 10, 64) == 0);
    long grown = resident_kib() - before;
    printf("grown by %ld KiB\n", grown);
    CHECK(grown < MOST_KIB);
}

/* What there is stays as it was, and there is room again when functions are removed. */
static void no_memory(void)
{
    enum { APART = 4096, ARENA = 64 << 20 };
    const struct rlimit none = {0, 0};
    int error = 0;
    size_t count = 0;
    name = NULL;
    jitunwind_close(arena);
    open_arena(ARENA);
    CHECK(add(0, 64) == 0);
    CHECK(setrlimit(RLIMIT_DATA, &none) == 0);
    while (!error && ++count < ARENA / APART)
        error = add(count * APART, 64);
    CHECK(error == -ENOMEM);
    walk_from(NULL);
    CHECK(jitunwind_remove(arena, (uint64_t)(uintptr_t)code) == 0);
    CHECK(add(64, 64) == 0);
    _exit(0);
}

/* A function that is removed gives its name's room to the next one. */
static void no_memory_for_names(void)
{
    enum { FIRST = 50, NAME_BYTES = 200 };
    static char long_name[NAME_BYTES];
    const struct rlimit none = {0, 0};
    size_t count = FIRST;
    memset(long_name, 'n', sizeof long_name - 1);
    name = long_name;
    for (size_t i = 0; i < FIRST; i++)
        CHECK(add(i * 64, 64) == 0);
    CHECK(setrlimit(RLIMIT_DATA, &none) == 0 && setrlimit(RLIMIT_AS, &none) == 0);
    while (count < PLAIN_AT / 64 && add(count * 64, 64) == 0)
        count++;
    CHECK(count < PLAIN_AT / 64);
    for (size_t i = 0; i < FIRST; i++) {
        CHECK(jitunwind_remove(arena, (uint64_t)(uintptr_t)code + i * 64) == 0);
        CHECK(add(i * 64, 64) == 0);
    }
    _exit(0);
}

/* The frame and name of code that is there no more. */
static void gone(void)
{
    uint64_t pair[2] = {0, (uint64_t)(uintptr_t)code + PLAIN_AT + 8}, offset;
    char found_name[16];
    CHECK(munmap(code, CODE_BYTES) == 0);
    walk_from((char *)pair);
    CHECK(jitunwind_name(pair[1], found_name, sizeof found_name, &offset) == 0 && offset == 8);
    _exit(0);
}

/* ---- Threads ---- */

static void *walk_for_ever(void *unused)
{
    struct jitunwind_frame frames[FRAMES];
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &(int){0});
    for (;;)
        jitunwind_backtrace(NULL, frames, FRAMES, 0);
    return unused;
}

static void cancels(void)
{
    enum { THREADS = 200 };
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, walk_for_ever, NULL) == 0);
        usleep(100);
        CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, NULL) == 0);
    }
}

static atomic_bool is_over;
static atomic_ulong added, refused;

static void *work(void *number)
{
    struct jitunwind_frame frames[FRAMES];
    const size_t at = (size_t)(uintptr_t)number * 1024;
    while (!is_over) {
        int error = add(at, 64);
        CHECK(error == 0 || error == -EAGAIN || error == -ENOSPC);
        CHECK(jitunwind_backtrace(NULL, frames, FRAMES, 0) > 1);
        added += error == 0;
        refused += error != 0;
        while (error == 0 && (error = jitunwind_remove(arena, (uint64_t)(uintptr_t)code + at)) != 0)
            error = error == -EAGAIN ? 0 : error;
    }
    return NULL;
}

enum { WORKERS = 3 };
static pthread_t workers[WORKERS];

static void start_workers(void)
{
    for (uintptr_t i = 0; i < WORKERS; i++)
        CHECK(pthread_create(&workers[i], NULL, work, (void *)i) == 0);
    while (added < 10)
        usleep(100);
}

static void end_workers(void)
{
    is_over = true;
    for (size_t i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    printf("%lu added, %lu refused\n", added, refused);
}

static void forks(void)
{
    enum { CHILDREN = 60 };
    start_workers();
    for (int i = 0; i < CHILDREN; i++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            walk_from(NULL);
            int error = add(WORKERS * 1024, 64);
            CHECK(error == 0 || error == -EOWNERDEAD || error == -ENOSPC);
            jitunwind_close(arena);
            _exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    end_workers();
}

/* ---- A signal's handler that forks ---- */

enum { HANDLER_FORKS = 200 };
static pid_t forker;
static volatile int forked;

/* So that the program gets on between two signals. */
static void interrupt_soon(void)
{
    const struct itimerval soon = {{0, 0}, {0, 300}};
    CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
}

static void at_fork_signal(int number, siginfo_t *info, void *ucontext)
{
    static struct jitunwind_frame frames[FRAMES];
    const int saved = errno;
    int status;
    (void)number, (void)info;
    if (getpid() != forker || forked == HANDLER_FORKS)
        return;
    forked++;
    pid_t child = (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
    CHECK(child >= 0 && jitunwind_backtrace(ucontext, frames, FRAMES, 0) >= 1);
    if (child > 0) {
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        interrupt_soon();
    }
    errno = saved;
}

static void end_of_child(void)
{
    struct jitunwind_frame frames[FRAMES];
    int error = add(PLAIN_AT + 64, 64);
    CHECK(error == 0 || error == -EOWNERDEAD);
    CHECK(jitunwind_backtrace(NULL, frames, FRAMES, 0) >= 1);
    _exit(0);
}

/* Without malloc, whose lock the clone below leaves as it is. */
static void handlers(void)
{
    const struct itimerval never = {{0, 0}, {0, 0}};
    struct jitunwind_frame frames[FRAMES];
    name = NULL;
    forker = getpid();
    handle(SIGALRM, at_fork_signal, SA_RESTART);
    interrupt_soon();
    for (size_t i = 0; forked < HANDLER_FORKS; i++) {
        size_t at = i % 1000 * 64;
        int error = add(at, 64);
        CHECK(jitunwind_backtrace(NULL, frames, FRAMES, 0) >= 1);
        if (error == 0)
            error = jitunwind_remove(arena, (uint64_t)(uintptr_t)code + at);
        if (getpid() != forker)
            end_of_child();
        CHECK(error == 0);
    }
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
}

static void vforks(void)
{
    enum { CHILDREN = 100 };
    struct jitunwind_frame frames[FRAMES];
    for (int i = 0; i < CHILDREN; i++) {
        int status;
        pid_t child = vfork();
        if (child == 0)
            _exit(jitunwind_backtrace(NULL, frames, FRAMES, 0) >= 1 ? 0 : 1);
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
}

static atomic_uint stopped, epoch;

static void at_stop(int number, siginfo_t *info, void *ucontext)
{
    const unsigned now = epoch;
    int saved = errno;
    (void)number, (void)info, (void)ucontext;
    stopped++;
    while (epoch == now)
        usleep(50);
    stopped--;
    errno = saved;
}

static void stops(void)
{
    enum { STOPS = 100 };
    const char *seconds = getenv("STOP_SECONDS");
    const time_t end = time(NULL) + (seconds ? atoi(seconds) : 0);
    unsigned done = 0, count = 0;
    name = NULL; /* a thread may be stopped in malloc, which has a lock in musl */
    handle(SIGUSR2, at_stop, SA_RESTART);
    start_workers();
    for (; count < STOPS || time(NULL) < end; count++) {
        for (size_t k = 0; k < WORKERS; k++)
            CHECK(pthread_kill(workers[k], SIGUSR2) == 0);
        while (stopped < WORKERS)
            usleep(50);
        walk_from(NULL);
        int error = add(WORKERS * 1024, 64);
        CHECK(error == 0 || error == -EAGAIN || error == -ENOSPC);
        done += error == 0;
        if (error == 0)
            CHECK(jitunwind_remove(arena, (uint64_t)(uintptr_t)code + WORKERS * 1024) == 0);
        epoch++;
        while (stopped)
            usleep(50);
    }
    end_workers();
    printf("%u of %u while all were stopped\n", done, count);
    CHECK(done > 0);
}

/* ---- Libraries ---- */

typedef int plugin_call(int (*callback)(void));

static plugin_call *plugin_in(const char *path, void **library)
{
    plugin_call *call;
    *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!*library)
        fail(dlerror());
    *(void **)&call = dlsym(*library, "plugin");
    CHECK(call);
    return call;
}

static void at_fault(int number, siginfo_t *info, void *ucontext)
{
    struct jitunwind_frame frames[FRAMES];
    (void)number, (void)info;
    handle(SIGSEGV, NULL, 0); /* a second one ends it */
    signal(SIGSEGV, SIG_DFL);
    size_t count = jitunwind_backtrace(ucontext, frames, FRAMES, 0);
    int fd = open("/dev/null", O_WRONLY);
    int error = jitunwind_print_crash(fd, ucontext);
    printf("%zu frames, the second %d, report %d\n", count, count > 1 ? frames[1].how : 0, error);
    fflush(stdout);
    _exit(count > 1 && frames[1].how == JITUNWIND_LEAF && error == 0 ? 0 : 1);
}

/* The plugin's caller is found by the plugin's table. */
static int walk_here(void)
{
    struct jitunwind_frame frames[FRAMES];
    size_t count = jitunwind_backtrace(NULL, frames, FRAMES, 0);
    return count > 2 && frames[1].how == JITUNWIND_EH_FRAME && frames[2].how == JITUNWIND_EH_FRAME;
}

static void unload(const char *path)
{
    void *library, *again;
    plugin_call *call = plugin_in(path, &library);
    open_arena(CODE_BYTES);
    CHECK(call(walk_here) == 1 && call(walk_here) == 1);
    CHECK(dlclose(library) == 0);
    call = plugin_in(path, &again); /* at its place, mostly */
    CHECK(call(walk_here) == 1);
    CHECK(dlclose(again) == 0);
    handle(SIGSEGV, at_fault, SA_NODEFER);
    call(walk_here);
    printf("it was not unloaded\n");
}

static void through(char *const *paths, bool late)
{
    void *library;
    unsigned count = 0, whole = 0;
    if (late)
        open_arena(CODE_BYTES);
    for (; *paths; paths++, count++) {
        plugin_call *call = plugin_in(*paths, &library);
        if (!late && !paths[1])
            open_arena(CODE_BYTES);
        whole += !late && paths[1] ? 1 : (unsigned)call(walk_here) & (unsigned)call(walk_here);
    }
    printf("%u of %u whole\n", whole, count);
    CHECK(whole == count);
}

/* ---- The hosts ---- */

static void basics(void)
{
    int fd = open("/dev/null", O_WRONLY);
    walk_from(NULL);
    CHECK(add(4096, 64) == 0 && jitunwind_remove(arena, (uint64_t)(uintptr_t)code + 4096) == 0);
    if (fd >= 0)
        CHECK(report_to(fd) == 0);
}

static void run(const char *host, char **arguments)
{
    const char *argument = arguments[0];
    if (strcmp(host, "locked") == 0 || strcmp(host, "locked-later") == 0)
        return locked(host[6] != '\0');
    if (strcmp(host, "unload") == 0)
        return unload(argument);
    if (strcmp(host, "late") == 0 || strcmp(host, "early") == 0)
        return through(arguments, host[0] == 'l');
    open_arena(CODE_BYTES);
    handle(SIGPROF, at_walk, 0);
    CHECK(add(PLAIN_AT, 64) == 0);
    if (strcmp(host, "refused") == 0)
        refuse(SYS_process_vm_readv, atoi(argument));
    if (strcmp(host, "hole") == 0 || strcmp(host, "refused") == 0)
        walk_beside_holes(two_pieces(0));
    if (strcmp(host, "hole-thread") == 0 || strcmp(host, "refused") == 0)
        hole_thread();
    if (strcmp(host, "sandboxes") == 0)
        sandboxes();
    if (strcmp(host, "memory") == 0)
        no_memory();
    if (strcmp(host, "names") == 0)
        no_memory_for_names();
    if (strcmp(host, "alone") == 0)
        alone();
    if (strcmp(host, "gone") == 0)
        gone();
    if (strcmp(host, "cancels") == 0)
        cancels();
    if (strcmp(host, "handlers") == 0)
        handlers();
    if (strcmp(host, "vforks") == 0)
        vforks();
    if (strcmp(host, "pipe") == 0)
        to_pipe();
    if (strcmp(host, "limit") == 0)
        to_limit();
    if (strcmp(host, "terminal") == 0)
        to_terminal();
    if (strcmp(host, "closed") == 0)
        CHECK(close(STDERR_FILENO) == 0 && report_to(STDERR_FILENO) == -EBADF);
    if (strcmp(host, "chroot") == 0 && (chroot(argument) != 0 || chdir("/") != 0))
        _exit(NOT_PERMITTED);
    if (strcmp(host, "user") == 0 && setuid((uid_t)atoi(argument)) != 0)
        _exit(NOT_PERMITTED);
    if (strcmp(host, "chroot") == 0 || strcmp(host, "user") == 0)
        forks();
    if (strcmp(host, "forks") == 0)
        forks();
    if (strcmp(host, "stops") == 0)
        stops();
    basics();
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    run(argv[1], argv + 2);
    return 0;
}
