/* tinyjit's code, unwound by its own process: jitunwind_backtrace against the calls that were made.
 *
 *     self_unwind steps SCRIPT [OPTION...]       at every instruction of compiled code, and each so
 *                                                many of C's, with the chain noted down from calls
 *                                                and returns alone
 *     self_unwind signals SCRIPT SIGNALS [OPTION...]
 *                                                two threads that compile, forget and run, one in
 *                                                malloc and one in the registry are sent a signal
 *                                                1000 times a second, half of them with an
 *                                                alternate stack
 *     OPTION: tier1, tier2, no-frame-pointer, compact
 *             exceptions   tell the process's unwinder, too: steps compares backtrace(3), signals
 *                          throws through compiled code
 *
 * Prints counts; status 1, and the first chains that are wrong, if any are.
 */
#include "examples/tinyjit/exception.h"
#include "examples/tinyjit/parser.h"
#include "jitunwind/jitunwind.h"
#include "tests/producers/self_unwind_judge.h"

#include <errno.h>
#include <execinfo.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

enum {
    DEPTH_MAX = 512,
    FRAMES_MAX = 8192,
    C_STEPS = 7, /* of this many instructions of C one is looked at: a prime */
    C_STEPS_MAX = 60000,
    SHOWN_MISTAKES = 5,
    RUNNERS = 2,
    THREADS = RUNNERS + 2,
    HANDLER_STACK_BYTES = 256 << 10,
    THROW_EVERY = 300,
    TRAP_FLAG = 0x100,
    SCRIPT_BYTES = 1 << 20,
};

static struct {
    _Atomic uint64_t chains, in_code, frames, mistakes, deepest;
    _Atomic uint64_t by_libgcc, by_log, in_malloc, in_registry, thrown, in_unwinder;
} totals;

/* ---- Complaints ---- */

static void complain(const char *what, const ucontext_t *context,
                     const struct jitunwind_frame *frames, size_t count)
{
    if (atomic_fetch_add(&totals.mistakes, 1) >= SHOWN_MISTAKES)
        return;
    fprintf(stderr, "%s:\n", what);
    for (size_t i = 0; i < count && i < 16; i++)
        fprintf(stderr, "  %zu: %" PRIx64 " how %d end %d\n", i, frames[i].ip, frames[i].how,
                frames[i].end);
    jitunwind_print_crash(STDERR_FILENO, context);
}

static void count_chain(size_t count, bool in_code)
{
    atomic_fetch_add(&totals.chains, 1);
    atomic_fetch_add(&totals.in_code, in_code);
    atomic_fetch_add(&totals.frames, count);
    if (count > totals.deepest)
        totals.deepest = count;
}

/* ---- What calls and returns say ---- */

static struct {
    struct runtime *runtime;
    uint64_t returns[DEPTH_MAX], cfas[DEPTH_MAX];
    size_t depth;
    bool in_c;       /* the innermost of them was made into C */
    uint64_t ip, sp; /* of the last step */
    uint64_t steps_in_c;
} shadow;

static bool in_arena(uint64_t addr)
{
    const struct code_arena *arena = &shadow.runtime->arena;
    return addr - (uint64_t)(uintptr_t)arena->base < arena->reserved;
}

static void enter(uint64_t sp)
{
    if (shadow.depth == DEPTH_MAX)
        abort();
    shadow.returns[shadow.depth] = word_at(sp);
    shadow.cfas[shadow.depth++] = sp + 8;
}

static void leave(uint64_t ip, uint64_t sp)
{
    shadow.depth--;
    if (shadow.returns[shadow.depth] != ip || shadow.cfas[shadow.depth] != sp)
        abort();
}

enum instruction { OTHER, CALL, RET };

/* All calls of tinyjit go through a register or memory. */
static enum instruction instruction_at(uint64_t addr)
{
    const uint8_t *code = (const uint8_t *)(uintptr_t)addr;
    if ((code[0] & 0xf0) == 0x40) /* REX */
        code++;
    if (code[0] == 0xff && (code[1] >> 3 & 7) == 2)
        return CALL;
    return code[0] == 0xc3 ? RET : OTHER;
}

/* A step has been made, to IP and SP. */
static void follow(uint64_t ip, uint64_t sp)
{
    if (shadow.depth == 0) {
        if (ip == (uint64_t)(uintptr_t)shadow.runtime->entry->addr)
            enter(sp);
    } else if (shadow.in_c) {
        if (in_arena(ip)) {
            leave(ip, sp);
            shadow.in_c = false;
        }
    } else if (instruction_at(shadow.ip) == CALL) {
        enter(sp);
        shadow.in_c = !in_arena(ip);
    } else if (instruction_at(shadow.ip) == RET) {
        leave(ip, sp);
    }
    shadow.ip = ip;
    shadow.sp = sp;
}

/* ---- C at full speed ---- */

static struct {
    uint64_t addr; /* of a breakpoint, or 0 */
    uint8_t byte;  /* that was there */
} breakpoint;

/* C is stepped through from the beginning, and then as long as it has not cost too much. */
static void skip_c(ucontext_t *context)
{
    uint8_t *code = (uint8_t *)(uintptr_t)shadow.returns[shadow.depth - 1];
    breakpoint.addr = shadow.returns[shadow.depth - 1];
    breakpoint.byte = *code;
    *code = 0xcc;
    context->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

static void come_back(ucontext_t *context)
{
    *(uint8_t *)(uintptr_t)breakpoint.addr = breakpoint.byte;
    context->uc_mcontext.gregs[REG_RIP] = (greg_t)breakpoint.addr;
    context->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
    breakpoint.addr = 0;
}

/* ---- Steps ---- */

static bool is_sound(uint8_t how)
{
    return how == JITUNWIND_INTERRUPTED || how == JITUNWIND_RULES || how == JITUNWIND_EH_FRAME;
}

/* How many frames C has in front of compiled code. */
static size_t frames_of_c(const struct jitunwind_frame *frames, size_t count)
{
    size_t i = 0;
    while (i < count && !in_arena(frames[i].ip))
        i++;
    return i;
}

static const char *check_names(const struct jitunwind_frame *frames, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++) {
        char name[200];
        uint64_t offset = 0, addr = frames[i].ip - !frames[i].exact;
        const struct code *code = code_table_find(&shadow.runtime->codes, addr);
        int error = jitunwind_name(addr, name, sizeof name, &offset);
        if (!code || error || strcmp(name, code->name) != 0 ||
            offset != addr - (uint64_t)(uintptr_t)code->addr)
            return "a frame's name is wrong";
    }
    return NULL;
}

static const char *check_step(const struct jitunwind_frame *frames, size_t count)
{
    size_t native = shadow.in_c ? frames_of_c(frames, count) : 0;
    size_t first = shadow.in_c ? native : 1;
    if (count < first + shadow.depth)
        return "frames are missing";
    for (size_t i = 0; i < shadow.depth; i++)
        if (frames[first + i].ip != shadow.returns[shadow.depth - 1 - i] ||
            frames[first + i].sp != shadow.cfas[shadow.depth - 1 - i])
            return "a frame is wrong";
    for (size_t i = 0; i < count; i++)
        if (!is_sound(frames[i].how))
            return "a frame is a guess";
    if (frames[count - 1].end != JITUNWIND_OUTERMOST)
        return "the chain does not end where the thread began";
    return check_names(frames, native, first + shadow.depth - 1);
}

/* What backtrace(3) says behind the frames of this handler.  It looks libgcc up, and libgcc the
 * code, under locks that C may hold which is stepped through. */
static const char *check_libgcc(const struct jitunwind_frame *frames, size_t count)
{
    static void *addresses[FRAMES_MAX];
    size_t found = (size_t)backtrace(addresses, FRAMES_MAX), first = 0;
    while (first < found && (uint64_t)(uintptr_t)addresses[first] != frames[0].ip)
        first++;
    totals.by_libgcc++;
    if (found - first < count)
        return "backtrace(3) has lost frames";
    for (size_t i = 0; i < count; i++)
        if ((uint64_t)(uintptr_t)addresses[first + i] != frames[i].ip)
            return "backtrace(3) has another frame";
    return NULL;
}

static void at_step(int number, siginfo_t *info, void *ucontext)
{
    static struct jitunwind_frame frames[FRAMES_MAX];
    ucontext_t *context = ucontext;
    (void)number, (void)info;
    if (breakpoint.addr)
        come_back(context);
    uint64_t ip = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
    follow(ip, (uint64_t)context->uc_mcontext.gregs[REG_RSP]);
    if (shadow.depth == 0 ||
        (shadow.in_c && shadow.steps_in_c++ % C_STEPS && shadow.steps_in_c < C_STEPS_MAX))
        return;
    size_t count = jitunwind_backtrace(ucontext, frames, FRAMES_MAX, 0);
    const char *wrong = check_step(frames, count);
    if (!wrong && !shadow.in_c && shadow.runtime->options.exceptions)
        wrong = check_libgcc(frames, count);
    count_chain(count, !shadow.in_c);
    if (wrong)
        complain(wrong, context, frames, count);
    if (shadow.in_c && shadow.steps_in_c >= C_STEPS_MAX)
        skip_c(context);
}

static void flip_trap_flag(int number, siginfo_t *info, void *ucontext)
{
    ucontext_t *context = ucontext;
    (void)number, (void)info;
    context->uc_mcontext.gregs[REG_EFL] ^= TRAP_FLAG;
}

static void on_signal(int number, void (*handler)(int, siginfo_t *, void *))
{
    struct sigaction action = {.sa_sigaction = handler,
                               .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    if (sigaction(number, &action, NULL))
        abort();
}

/* ---- Scripts ---- */

static struct program *load_script(const char *path)
{
    static char text[SCRIPT_BYTES];
    char error[512];
    FILE *file = fopen(path, "re");
    size_t bytes = file ? fread(text, 1, sizeof text, file) : 0;
    struct program *program = file ? program_parse(path, text, bytes, error, sizeof error) : NULL;
    if (!program) {
        fprintf(stderr, "%s: %s\n", path, file ? error : strerror(errno));
        exit(2);
    }
    fclose(file);
    return program;
}

static struct runtime_options take_options(char **words)
{
    struct runtime_options options = {.tier2_after = 4, .own_frames = true};
    for (; *words; words++) {
        if (strcmp(*words, "tier1") == 0)
            options.no_tier2 = true;
        else if (strcmp(*words, "tier2") == 0)
            options.tier2_after = 0;
        else if (strcmp(*words, "no-frame-pointer") == 0)
            options.no_frame_pointer = true;
        else if (strcmp(*words, "compact") == 0)
            options.compact_every = 1;
        else if (strcmp(*words, "exceptions") == 0)
            options.exceptions = true;
    }
    return options;
}

static void open_runtime(struct runtime *runtime, const struct program *program,
                         const struct runtime_options *options, struct output *output)
{
    uintptr_t limit = (uintptr_t)__builtin_frame_address(0) - (1 << 20);
    *output = (struct output){.keep = true};
    if (runtime_open(runtime, program, options, output, limit))
        exit(2);
}

static void run_steps(const struct program *program, const struct runtime_options *options)
{
    struct runtime runtime;
    struct output output;
    open_runtime(&runtime, program, options, &output);
    shadow.runtime = &runtime;
    on_signal(SIGTRAP, at_step);
    on_signal(SIGUSR1, flip_trap_flag);
    raise(SIGUSR1);
    runtime_run(&runtime);
    runtime_run(&runtime);
    raise(SIGUSR1);
    runtime_close(&runtime);
    output_free(&output);
}

/* ---- Signals ---- */

static struct {
    const struct program *program;
    struct runtime_options options;
    uint64_t wanted;
} signalled;

/* What a thread is doing, as it says itself. */
static _Thread_local struct {
    const struct runtime *runtime;
    struct jitunwind_frame *frames; /* FRAMES_MAX */
    volatile bool in_malloc, in_registry;
    bool is_ready;
} self;

/* Compiled code is in one piece, and the entry is the outermost of it. */
static const char *check_shape(const struct jitunwind_frame *frames, size_t count)
{
    char name[200], last[200] = "";
    bool was_code = false, is_over = false;
    for (size_t i = 0; i < count; i++) {
        bool is_code =
            jitunwind_name(frames[i].ip - !frames[i].exact, name, sizeof name, NULL) == 0;
        if (is_code && is_over)
            return "compiled code goes on behind its end";
        if (is_code)
            memcpy(last, name, sizeof last);
        is_over |= was_code && !is_code;
        was_code |= is_code;
        if (!is_sound(frames[i].how))
            return "a frame is a guess";
    }
    if (was_code && strcmp(last, "tj::[stub] enter") != 0)
        return "compiled code does not begin at its entry";
    return count && frames[count - 1].end == JITUNWIND_OUTERMOST
               ? NULL
               : "the chain does not end where the thread began";
}

static void at_signal(int number, siginfo_t *info, void *ucontext)
{
    char name[8];
    (void)number, (void)info;
    if (!self.is_ready)
        return;
    const struct jitunwind_frame *frames = self.frames;
    size_t count = jitunwind_backtrace(ucontext, self.frames, FRAMES_MAX, 0);
    const char *wrong = check_shape(frames, count);
    totals.in_malloc += self.in_malloc;
    totals.in_registry += self.in_registry;
    if (!wrong && self.runtime && !self.runtime->codes.changing) {
        wrong = judge_by_log(self.runtime, frames, count, ucontext);
        totals.by_log++;
    }
    if (wrong && is_leaving_unwinder(frames, count)) {
        totals.in_unwinder++;
        wrong = NULL;
    }
    count_chain(count, count && jitunwind_name(frames[0].ip, name, sizeof name, NULL) == 0);
    if (wrong)
        complain(wrong, ucontext, frames, count);
}

static bool is_enough(void)
{
    return totals.chains >= signalled.wanted;
}

static void run_once(struct runtime *runtime)
{
    int64_t value;
    if (exception_catch(runtime_run, runtime, &value))
        totals.thrown++;
}

static void run_scripts(void)
{
    struct runtime runtime;
    struct output output;
    while (!is_enough()) {
        open_runtime(&runtime, signalled.program, &signalled.options, &output);
        self.runtime = &runtime;
        for (int i = 0; i < 20 && !is_enough(); i++) {
            output.count = 0;
            run_once(&runtime);
        }
        self.runtime = NULL;
        runtime_close(&runtime);
        output_free(&output);
    }
}

/* Of sizes that malloc has in all its ways: its bins, its heap, mappings. */
static void use_malloc(void)
{
    enum { KEPT = 64 };
    void *kept[KEPT] = {NULL};
    for (unsigned i = 0; !is_enough(); i++) {
        unsigned at = i * 2654435761u >> 26;
        self.in_malloc = true;
        free(kept[at]);
        kept[at] = malloc(i % 5000 ? (i * 2654435761u >> 16) % 3000 + 1 : 300000);
        self.in_malloc = false;
    }
    for (unsigned i = 0; i < KEPT; i++)
        free(kept[i]);
}

static void change_arena(uint64_t start)
{
    enum { FUNCTIONS = 200, APART = 32 };
    struct jitunwind_options options = JITUNWIND_OPTIONS_INIT;
    struct jitunwind_code code = JITUNWIND_CODE_INIT;
    struct jitunwind *arena;
    options.start = start;
    options.bytes = 1 << 20;
    options.flags = signalled.options.exceptions ? JITUNWIND_EXCEPTIONS : 0;
    if (jitunwind_open(&arena, &options))
        abort();
    code.bytes = APART;
    code.name = "changing";
    for (uint64_t i = 0; i < FUNCTIONS; i++) {
        code.addr = start + (i * 37 % FUNCTIONS) * APART;
        if (jitunwind_add(arena, &code))
            abort();
        if (i % 3 == 0 && jitunwind_remove(arena, code.addr))
            abort();
    }
    jitunwind_close(arena);
}

static void use_registry(void)
{
    for (uint64_t i = 0; !is_enough(); i++) {
        self.in_registry = true;
        change_arena(UINT64_C(0x100000000) + i % 7 * 0x1000000);
        self.in_registry = false;
    }
}

static void *run_signalled(void *number)
{
    static void (*const works[])(void) = {use_malloc, use_registry};
    const size_t self_number = (size_t)(uintptr_t)number;
    stack_t stack = {.ss_size = HANDLER_STACK_BYTES};
    self.frames = malloc(FRAMES_MAX * sizeof *self.frames);
    stack.ss_sp = malloc(stack.ss_size);
    if (!self.frames || !stack.ss_sp || (self_number % 2 && sigaltstack(&stack, NULL)))
        abort();
    atomic_signal_fence(memory_order_seq_cst);
    self.is_ready = true;
    if (self_number < RUNNERS)
        run_scripts();
    else
        works[self_number - RUNNERS]();
    self.is_ready = false;
    stack.ss_flags = SS_DISABLE;
    sigaltstack(&stack, NULL);
    return NULL;
}

static void send_signals(void)
{
    pthread_t threads[THREADS];
    find_unwinder();
    if (signalled.options.exceptions)
        signalled.options.throw_every = THROW_EVERY;
    on_signal(SIGPROF, at_signal);
    for (size_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, run_signalled, (void *)(uintptr_t)i))
            abort();
    for (size_t i = 0; !is_enough(); i++) {
        pthread_kill(threads[i % THREADS], SIGPROF);
        usleep(1000 / THREADS);
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
    bool steps = argc > 2 && strcmp(argv[1], "steps") == 0;
    if (argc < (steps ? 3 : 4))
        return 2;
    struct program *program = load_script(argv[2]);
    struct runtime_options options = take_options(argv + (steps ? 3 : 4));
    signalled.program = program;
    signalled.options = options;
    signalled.wanted = steps ? 0 : strtoull(argv[3], NULL, 10);
    if (steps)
        run_steps(program, &options);
    else
        send_signals();
    program_free(program);
    printf("%" PRIu64 " judged by the log, %" PRIu64 " in malloc, %" PRIu64
           " in the registry, %" PRIu64 " exceptions, %" PRIu64
           " where the unwinder leaves its frames\n",
           totals.by_log, totals.in_malloc, totals.in_registry, totals.thrown, totals.in_unwinder);
    printf("%" PRIu64 " by backtrace(3) as well\n", totals.by_libgcc);
    printf("%" PRIu64 " chains, %" PRIu64 " of them from compiled code, %" PRIu64
           " frames, up to %" PRIu64 ", %" PRIu64 " wrong\n",
           totals.chains, totals.in_code, totals.frames, totals.deepest, totals.mistakes);
    return totals.mistakes || totals.in_code == 0;
}
