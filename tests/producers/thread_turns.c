/* thread_turns: threads that take turns at one address, where one function replaces the other again and again.
 *
 *     PERFJIT=dump thread_turns [-s SECONDS] [-e] [-l] [-m CPU] TRUTH
 *
 *     -e       the main thread ends by pthread_exit when it has had a few turns; its process goes on without it
 *     -l       one more thread is begun after that
 *     -m CPU   the second thread is begun on another CPU, and goes to CPU as the main thread does then: perf record -C CPU hears
 *              nothing of its birth
 *
 * Each turn is a run of the function that is there, in its own name, and some work in the program itself; each fourth makes a new
 * function.  What ran when goes to TRUTH, in the form of run_log.h.
 */
#include "jitdump/jitdump.h"
#include "tests/producers/loop_code.h"
#include "tests/producers/perf_clock.h"
#include "tests/producers/run_log.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

enum {
    ARENA_BYTES = 4096,
    BLOCKS = 8,
    MAX_THREADS = 3,
    MAIN_TURNS = 20,   /* before it ends */
    LEAST_TURNS = 500, /* of all threads together, where the machine is busy with other things */
    RUN_CLOCKS = CLOCKS_PER_SEC / 2000,
    CALL_ROUNDS = 30000, /* 10 to 40 us */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static pthread_t threads[MAX_THREADS];
static bool takes_part[MAX_THREADS];
static size_t whose_turn, turns, function_count;
static uint8_t *arena;
static char function[RUN_NAME_BYTES];
static struct jitdump *dump;
static struct run_log *runs;
static uint64_t until_ns;
static const char *truth_path;
static bool main_ends, late_thread;
static cpu_set_t last_cpus;
static bool moves;
static FILE *truth;

static void fail(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

/* ---- A turn ---- */

static void replace(void)
{
    snprintf(function, sizeof function, "turn %zu", function_count++);
    for (unsigned i = 0; i < BLOCKS; i++)
        loop_code_put(arena + (size_t)i * LOOP_BLOCK_BYTES,
                      (unsigned)function_count % LOOP_FILLINGS);
    loop_code_ready(arena, (size_t)BLOCKS * LOOP_BLOCK_BYTES);
    struct jitdump_code code = JITDUMP_CODE_INIT;
    code.name = function;
    code.code_addr = (uintptr_t)arena;
    code.code_size = (uint64_t)BLOCKS * LOOP_BLOCK_BYTES;
    code.bytes = arena;
    if (jitdump_add_code(dump, &code, NULL)) {
        fprintf(stderr, "thread_turns: %s\n", jitdump_error(dump));
        exit(EXIT_FAILURE);
    }
}

static void run_function(const char *label)
{
    clock_t end = clock() + RUN_CLOCKS; /* nobody else has a turn */
    struct run run = {.pid = getpid(),
                      .tid = (int)syscall(SYS_gettid),
                      .addr = (uintptr_t)arena,
                      .bytes = (uint64_t)BLOCKS * LOOP_BLOCK_BYTES};
    snprintf(run.kind, sizeof run.kind, "%s", label);
    snprintf(run.name, sizeof run.name, "%s", function);
    loop_code_ready(arena, (size_t)BLOCKS * LOOP_BLOCK_BYTES);
    run.start_ns = monotonic_ns();
    for (uint32_t i = 0; clock() < end; i++) {
        const uint8_t *block = arena + (size_t)(i % BLOCKS) * LOOP_BLOCK_BYTES;
        ((loop_code *)(uintptr_t)block)(CALL_ROUNDS);
    }
    run.end_ns = monotonic_ns();
    if (run_log_add(runs, &run))
        exit(EXIT_FAILURE);
}

/* What is no JIT code, with a symbol of its own. */
static __attribute__((noinline)) void program_code(void)
{
    for (volatile uint32_t i = 0; i < 60000; i++) {
    }
}

static void pass_on(void)
{
    do
        whose_turn = (whose_turn + 1) % MAX_THREADS;
    while (!takes_part[whose_turn]);
    pthread_cond_broadcast(&turned);
}

static bool has_time(void)
{
    return monotonic_ns() < until_ns || turns < LEAST_TURNS;
}

/* Take turns until the time is over, or MOST were taken. */
static void take_turns(size_t who, const char *label, size_t most)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < most && has_time(); i++) {
        while (whose_turn != who)
            pthread_cond_wait(&turned, &lock);
        if (turns++ % 4 == 0)
            replace();
        run_function(label);
        program_code();
        pass_on();
    }
    takes_part[who] = false;
    for (size_t i = 0; i < MAX_THREADS; i++)
        if (takes_part[i] && whose_turn == who)
            pass_on();
    pthread_mutex_unlock(&lock);
}

/* ---- Threads ---- */

static void end_program(void)
{
    run_log_write(runs, truth);
    if (jitdump_close(dump) || fclose(truth))
        fail(truth_path);
    exit(EXIT_SUCCESS);
}

static void *late_work(void *nothing)
{
    take_turns(2, "late", SIZE_MAX);
    return nothing;
}

/* The kernel has logged its end when it is a zombie. */
static void wait_for_main_to_end(void)
{
    char state = 0;
    pthread_join(threads[0], NULL);
    while (state != 'Z') {
        FILE *stat = fopen("/proc/self/stat", "r");
        if (!stat || fscanf(stat, "%*d (%*[^)]) %c", &state) != 1)
            fail("thread_turns: /proc/self/stat");
        fclose(stat);
    }
}

static void *work(void *nothing)
{
    if (moves && sched_setaffinity(0, sizeof last_cpus, &last_cpus))
        fail("thread_turns: sched_setaffinity");
    if (main_ends) {
        take_turns(1, "worker", MAIN_TURNS);
        wait_for_main_to_end();
        takes_part[1] = true;
        whose_turn = 1;
    }
    if (late_thread) {
        takes_part[2] = true;
        if (pthread_create(&threads[2], NULL, late_work, NULL))
            fail("thread_turns: pthread_create");
    }
    take_turns(1, "worker", SIZE_MAX);
    if (late_thread)
        pthread_join(threads[2], NULL);
    if (main_ends)
        end_program();
    return nothing;
}

/* Begin on a CPU that is not the one to go to. */
static void go_elsewhere(size_t cpu)
{
    cpu_set_t others;
    CPU_ZERO(&last_cpus);
    CPU_SET(cpu, &last_cpus);
    if (sched_getaffinity(0, sizeof others, &others))
        fail("thread_turns: sched_getaffinity");
    CPU_CLR(cpu, &others);
    if (sched_setaffinity(0, sizeof others, &others))
        fail("thread_turns: another CPU");
    moves = true;
}

static void open_all(void)
{
    arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
                 -1, 0);
    runs = run_log_open();
    truth = fopen(truth_path, "w");
    if (arena == MAP_FAILED || !runs || !truth)
        fail("thread_turns");
    fprintf(truth, "# runs\n# arena %" PRIxPTR " %" PRIxPTR "\n", (uintptr_t)arena,
            (uintptr_t)arena + ARENA_BYTES);
    if (jitdump_open(&dump, NULL) || !dump) {
        fprintf(stderr, "thread_turns: %s\n",
                dump ? jitdump_error(dump) : "PERFJIT=dump is not set");
        exit(EXIT_FAILURE);
    }
}

int main(int argc, char **argv)
{
    double seconds = 1;
    for (int option; (option = getopt(argc, argv, "s:elm:")) != -1;) {
        if (option == 's')
            seconds = strtod(optarg, NULL);
        else if (option == 'e')
            main_ends = true;
        else if (option == 'l')
            late_thread = true;
        else if (option == 'm')
            go_elsewhere(strtoul(optarg, NULL, 10));
        else
            return 2;
    }
    if (optind != argc - 1)
        return 2;
    truth_path = argv[optind];
    threads[0] = pthread_self();
    takes_part[0] = takes_part[1] = true;
    until_ns = monotonic_ns() + (uint64_t)(seconds * 1e9);
    pthread_mutex_lock(&lock);
    if (pthread_create(&threads[1], NULL, work, NULL))
        fail("thread_turns: pthread_create");
    if (moves && sched_setaffinity(0, sizeof last_cpus, &last_cpus))
        fail("thread_turns: sched_setaffinity");
    open_all();
    pthread_mutex_unlock(&lock);
    take_turns(0, "main", main_ends ? MAIN_TURNS : SIZE_MAX);
    if (main_ends)
        pthread_exit(NULL);
    pthread_join(threads[1], NULL);
    end_program();
}
