/* one_way SECONDS: run functions each of which is called by one other one only, so that where a
 * sample was taken tells the whole chain.
 *
 *     main ─▶ trunk ─▶ broad ─▶ deep ─▶ leaf                           alloca, a large frame, all
 * registers, prologues ├▶ sorter ─▶ [qsort] ─▶ order ─▶ order_leaf        through a library └▶
 * raiser ─▶ [raise] ─▶ handler ─▶ handler_leaf    a signal, on the same stack └▶ apart_raiser ─▶
 * [raise] ─▶ apart ─▶ apart_leaf  a signal, on a stack of its own [clone] ─▶ worker ─▶ worker_leaf
 * a thread
 *
 * Each function is in a section of its own, so that the program itself can tell where it begins and
 * ends, however it was linked and stripped.  It writes to standard output, a line for each:
 *
 *     START END NAME CALLER       in hexadecimal, from where the program begins in memory; CALLER
 * is - if there is none, or none that a copy of the stack could lead to
 *
 * It is no producer: tests compile it in many ways, as C and as C++.
 */
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#ifdef __clang__
#define ALONE(name) __attribute__((noinline, section("one_way_" #name)))
#else
#define ALONE(name) __attribute__((noipa, section("one_way_" #name)))
#endif

#define LOG(name, caller)                                                                          \
    do {                                                                                           \
        extern char start_##name[] __asm__("__start_one_way_" #name);                              \
        extern char stop_##name[] __asm__("__stop_one_way_" #name);                                \
        printf("%lx %lx %s %s\n", (unsigned long)(start_##name - __executable_start),              \
               (unsigned long)(stop_##name - __executable_start), #name, caller);                  \
    } while (0)

extern char __executable_start[];

static volatile long sink;
static volatile long rounds = 20;

/* A call that is not the last thing that a function does, so that it stays a call. */
#define CALL(call) sink = (call) + 1

/* Mostly prologue and epilogue. */
ALONE(leaf) static long leaf(long a, long b)
{
    return a ^ b;
}

ALONE(deep) static long deep(long a, long b, long c, long d, long e, long f)
{
    for (long i = 0; i < rounds; i++) {
        CALL(leaf(a + i, b));
        long rest = a * b + c * d + e * f + i;
        CALL(leaf(rest, a ^ c ^ e));
        a += b;
        b ^= c;
        c += d;
        d ^= e;
        e += f;
    }
    return a + b + c + d + e;
}

ALONE(broad) static long broad(long n)
{
    volatile char room[3000];
    char *more = (char *)alloca((size_t)(n % 7) * 64 + 16);
    memset(more, (int)n, 16);
    room[n % 3000] = more[3];
    CALL(deep(n, n + 1, n + 2, n + 3, n + 4, n + 5));
    return room[n % 3000];
}

ALONE(order_leaf) static long order_leaf(long a, long b)
{
    for (long i = 0; i < rounds / 4; i++)
        sink += i;
    return a < b ? -1 : a > b;
}

ALONE(order) static int order(const void *left, const void *right)
{
    long result = order_leaf(*(const long *)left, *(const long *)right);
    sink = result;
    return (int)result;
}

ALONE(sorter) static long sorter(long n)
{
    long items[16];
    for (long i = 0; i < 16; i++)
        items[i] = (i * 7 + n) % 16;
    qsort(items, 16, sizeof items[0], order);
    return items[3];
}

ALONE(handler_leaf) static long handler_leaf(long n)
{
    for (long i = 0; i < 8 * rounds; i++)
        sink += i ^ n;
    return n;
}

ALONE(handler) static void handler(int number)
{
    CALL(handler_leaf(number));
}

ALONE(raiser) static long raiser(long n)
{
    raise(SIGUSR1);
    return sink + n;
}

ALONE(apart_leaf) static long apart_leaf(long n)
{
    for (long i = 0; i < 8 * rounds; i++)
        sink += i ^ n;
    return n;
}

ALONE(apart) static void apart(int number)
{
    CALL(apart_leaf(number));
}

ALONE(apart_raiser) static long apart_raiser(long n)
{
    raise(SIGUSR2);
    return sink + n;
}

ALONE(worker_leaf) static long worker_leaf(long n)
{
    for (long i = 0; i < 100 * rounds; i++)
        sink += i;
    return n;
}

ALONE(worker) static void *worker(void *end)
{
    while (clock() < *(clock_t *)end)
        CALL(worker_leaf(7));
    return NULL;
}

ALONE(trunk) static long trunk(long n)
{
    for (int i = 0; i < 20; i++)
        CALL(broad(n + i));
    CALL(sorter(n));
    CALL(raiser(n));
    CALL(apart_raiser(n));
    return sink;
}

static void set_handlers(void)
{
    enum { BYTES = 1 << 16 };
    static char room[BYTES];
    stack_t own;
    struct sigaction action;
    memset(&own, 0, sizeof own);
    memset(&action, 0, sizeof action);
    own.ss_sp = room;
    own.ss_size = sizeof room;
    sigaltstack(&own, NULL);
    action.sa_handler = handler;
    sigaction(SIGUSR1, &action, NULL);
    action.sa_handler = apart;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR2, &action, NULL);
}

static void tell(void)
{
    LOG(trunk, "-");
    LOG(broad, "trunk");
    LOG(deep, "broad");
    LOG(leaf, "deep");
    LOG(sorter, "trunk");
    LOG(order, "sorter");
    LOG(order_leaf, "order");
    LOG(raiser, "trunk");
    LOG(handler, "raiser");
    LOG(handler_leaf, "handler");
    LOG(apart_raiser, "trunk");
    LOG(apart, "-");
    LOG(apart_leaf, "apart");
    LOG(worker, "-");
    LOG(worker_leaf, "worker");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    pthread_t thread;
    clock_t end = (clock_t)((argc > 1 ? atof(argv[1]) : 0.5) * CLOCKS_PER_SEC);
    set_handlers();
    tell();
    pthread_create(&thread, NULL, worker, &end);
    for (long n = 0; clock() < end; n++)
        CALL(trunk(n));
    pthread_join(thread, NULL);
    return 0;
}
