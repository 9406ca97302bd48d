/* interpreted: an interpreter of 200 functions, each with a trampoline of its own.
 *
 *     interpreted run SECONDS LOG         for SECONDS of its own time; writes what ran when
 *     interpreted stop N LOG              in the N-th call it writes its stack, and waits for a
 *                                         signal in wait_here()
 *     interpreted check CALLS             compares jitunwind_backtrace and, on x86-64,
 *                                         backtrace(3) with the stack of each 16th call
 *
 * LOG, of run: lines "NS enter NAME" and "NS leave", CLOCK_MONOTONIC; enter stands behind the
 * trampoline's call of the interpreter, leave before its return.  Of stop: the names, the innermost
 * first.  `check` needs PERFJIT=dump, as all do; with `gdb` in it gdb can read what is on the stack
 * by its JIT interface, in `stop` too.
 *
 * The functions call each other in an order that all of them take part in, 12 deep at most.
 */
#include "jitdump/trampoline.h"
#include "jitunwind/jitunwind.h"

#include <execinfo.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { FUNCTIONS = 200, DEPTH_MAX = 12, NAME_BYTES = 16, EVENTS_MAX = 1 << 22, FRAMES_MAX = 256 };

struct vm;
struct function;
typedef uint64_t run_function(struct vm *, struct function *, uint64_t fuel);

struct function {
    char name[NAME_BYTES];
    uint32_t number;
    run_function *call;
};

struct event {
    uint64_t time_ns;
    const struct function *entered; /* NULL: the innermost one is left */
};

struct vm {
    struct function functions[FUNCTIONS];
    const struct function *stack[DEPTH_MAX + 1];
    size_t depth;
    struct event *events;
    size_t event_count;
    uint64_t calls;
    uint64_t stop_at; /* a number of calls; 0: never */
    bool check;
    uint64_t checked, wrong;
    const char *log_path;
    struct jitunwind *unwinder;
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static FILE *open_log(const struct vm *vm)
{
    FILE *file = fopen(vm->log_path, "w");
    if (!file) {
        perror(vm->log_path);
        exit(EXIT_FAILURE);
    }
    return file;
}

/* ---- What the process itself sees ---- */

/* The names of the trampolines in a chain of return addresses, compared with the stack. */
static bool is_stack(const struct vm *vm, const uint64_t *ips, size_t count)
{
    size_t depth = vm->depth;
    for (size_t i = 0; i < count; i++) {
        char name[NAME_BYTES];
        if (jitunwind_name(ips[i] - 1, name, sizeof name, NULL) != 0)
            continue;
        if (depth == 0 || strcmp(name, vm->stack[--depth]->name) != 0)
            return false;
    }
    return depth == 0;
}

static void check_own_stack(struct vm *vm)
{
    struct jitunwind_frame frames[FRAMES_MAX];
    uint64_t ips[FRAMES_MAX];
    size_t count = jitunwind_backtrace(NULL, frames, FRAMES_MAX, 0);
    bool right = count > 0 && frames[count - 1].end == JITUNWIND_OUTERMOST;
    for (size_t i = 0; i < count; i++) {
        ips[i] = frames[i].ip;
        right = right && frames[i].how != JITUNWIND_FRAME_POINTER;
    }
    vm->checked++;
    vm->wrong += !right || !is_stack(vm, ips, count);
#if defined(__x86_64__)
    void *addresses[FRAMES_MAX];
    int depth = backtrace(addresses, FRAMES_MAX);
    for (int i = 0; i < depth; i++)
        ips[i] = (uint64_t)(uintptr_t)addresses[i];
    vm->wrong += !is_stack(vm, ips, (size_t)depth);
#endif
}

/* ---- The interpreter ---- */

__attribute__((noinline)) void wait_here(void);
void wait_here(void)
{
    for (;;)
        pause();
}

static void note(struct vm *vm, const struct function *entered)
{
    if (vm->event_count < EVENTS_MAX)
        vm->events[vm->event_count++] = (struct event){now_ns(), entered};
}

static void stop(struct vm *vm)
{
    FILE *file = open_log(vm);
    for (size_t i = vm->depth; i-- > 0;)
        fprintf(file, "%s\n", vm->stack[i]->name);
    fclose(file);
    wait_here();
}

__attribute__((noinline)) uint64_t work(uint64_t x);
uint64_t work(uint64_t x)
{
    /* It has a frame, though it needs none: whatever a compiler's options say. */
    __asm__ volatile("" : : "r"(__builtin_frame_address(0)));
    for (int i = 0; i < 20000; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(x));
    }
    return x;
}

static uint64_t run(struct vm *vm, struct function *function, uint64_t fuel)
{
    vm->stack[vm->depth++] = function;
    vm->calls++;
    note(vm, function);
    uint64_t sum = vm->check ? function->number : work(fuel);
    if (vm->check && vm->calls % 16 == 0)
        check_own_stack(vm);
    if (vm->calls == vm->stop_at)
        stop(vm);
    for (uint32_t i = 0; i < 2 && vm->depth < DEPTH_MAX && fuel >> (2 * i) & 3; i++) {
        struct function *callee =
            &vm->functions[(function->number * (3 + 4 * i) + 7 + i) % FUNCTIONS];
        sum += callee->call(vm, callee, fuel / (5 - i));
    }
    if (!vm->check)
        sum += work(sum);
    note(vm, NULL);
    vm->depth--;
    return sum;
}

/* ---- Trampolines ---- */

static void tell_unwinder(struct vm *vm, struct jitdump *dump, const struct function *function)
{
    struct jitdump_trampoline_code is;
    struct jitunwind_code code = JITUNWIND_CODE_INIT;
    if (jitdump_trampoline_describe(dump, (jitdump_entry *)function->call, &is) != 0)
        exit(3);
    if (!vm->unwinder) {
        struct jitunwind_options options = JITUNWIND_OPTIONS_INIT;
        options.start = is.arena_addr;
        options.bytes = is.arena_bytes;
#if defined(__x86_64__)
        options.flags = JITUNWIND_EXCEPTIONS;
#endif
        if (jitunwind_open(&vm->unwinder, &options) != 0)
            exit(3);
    }
    code.addr = is.code_addr;
    code.bytes = is.code_size;
    code.eh_frame = is.eh_frame;
    code.eh_frame_bytes = is.eh_frame_bytes;
    code.name = is.name;
    if (jitunwind_add(vm->unwinder, &code) != 0)
        exit(3);
}

static void define(struct vm *vm, struct jitdump *dump, uint32_t number)
{
    struct function *function = &vm->functions[number];
    function->number = number;
    snprintf(function->name, NAME_BYTES, "fn_%03" PRIu32, number);
    function->call = (run_function *)jitdump_trampoline(dump, function->name, "program.src",
                                                        10 * number + 1, (jitdump_entry *)run);
    if (function->call == run) {
        fprintf(stderr, "interpreted: no trampoline: %s\n", jitdump_error(dump));
        exit(3);
    }
}

static void write_log(const struct vm *vm)
{
    FILE *file = open_log(vm);
    for (size_t i = 0; i < vm->event_count; i++) {
        const struct event *event = &vm->events[i];
        fprintf(file, "%" PRIu64 " %s%s\n", event->time_ns, event->entered ? "enter " : "leave",
                event->entered ? event->entered->name : "");
    }
    fclose(file);
}

static void run_program(struct vm *vm, double seconds, uint64_t calls)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; calls ? vm->calls < calls : (double)clock() / CLOCKS_PER_SEC < seconds;
         i++) {
        struct function *main = &vm->functions[i % FUNCTIONS];
        sum += main->call(vm, main, (i * 2654435761u) >> 6);
    }
    fprintf(stderr, "%" PRIu64 " calls, %" PRIx64 "\n", vm->calls, sum);
}

int main(int argc, char **argv)
{
    static struct vm vm;
    struct jitdump *dump;
    const char *mode = argc >= 3 ? argv[1] : "";
    bool runs = strcmp(mode, "run") == 0 && argc == 4;
    bool stops = strcmp(mode, "stop") == 0 && argc == 4;
    vm.check = strcmp(mode, "check") == 0 && argc == 3;
    if (!runs && !stops && !vm.check) {
        fprintf(stderr, "usage: interpreted run SECONDS LOG | stop N LOG | check CALLS\n");
        return 2;
    }
    vm.log_path = argv[argc - 1];
    vm.stop_at = stops ? strtoull(argv[2], NULL, 10) : 0;
    vm.events = mmap(NULL, EVENTS_MAX * sizeof *vm.events, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (vm.events == MAP_FAILED || jitdump_open(&dump, NULL) != 0 || !dump)
        return 3;
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        define(&vm, dump, i);
        if (!runs)
            tell_unwinder(&vm, dump, &vm.functions[i]);
    }
    run_program(&vm, runs ? atof(argv[2]) : 1e9, vm.check ? strtoull(argv[2], NULL, 10) : 0);
    if (vm.check)
        printf("%" PRIu64 " stacks, %" PRIu64 " wrong\n", vm.checked, vm.wrong);
    if (runs)
        write_log(&vm);
    jitunwind_close(vm.unwinder);
    int error = jitdump_trampolines_free(dump);
    error = error ? error : jitdump_close(dump);
    return error ? 3 : vm.wrong ? 1 : 0;
}
