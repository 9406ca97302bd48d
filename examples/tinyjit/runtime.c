/* See runtime.h. */
#include "examples/tinyjit/runtime.h"

#include "examples/tinyjit/activation.h"
#include "examples/tinyjit/collector.h"
#include "examples/tinyjit/crash.h"
#include "examples/tinyjit/exception.h"
#include "examples/tinyjit/memory.h"
#include "examples/tinyjit/native_mix.h"
#include "examples/tinyjit/stubs.h"
#include "examples/tinyjit/tiers.h"

#include <inttypes.h>
#include <string.h>

/* So that perf's chains reach from compiled code into main(). */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-omit-frame-pointer")
#endif

enum { LOOPS_PER_CALL = 32 };

/* ---- Making code ---- */

static char *code_name(const struct runtime *runtime, enum code_kind kind, uint32_t function)
{
    static const char *const formats[CODE_KINDS] = {[CODE_ENTRY] = "tj::[stub] enter",
                                                    [CODE_COMPILE_STUB] = "tj::[stub] compile",
                                                    [CODE_FUNCTION_STUB] = "tj::[stub] %s",
                                                    [CODE_TIER1] = "tj::%s [tier1]",
                                                    [CODE_TIER2] = "tj::%s [tier2]"};
    const char *format = formats[kind], *hole = strstr(format, "%s");
    char *name = NULL;
    int length = hole ? asprintf(&name, "%.*s%s%s", (int)(hole - format), format,
                                 runtime->program->functions[function].name, hole + 2)
                      : asprintf(&name, "%s", format);
    return memory_or_exit(length < 0 ? NULL : name);
}

static void emit(struct emitter *e, enum code_kind kind, uint32_t function)
{
    switch (kind) {
    case CODE_ENTRY:
        stub_compile_entry(e);
        break;
    case CODE_COMPILE_STUB:
        stub_compile_compile(e);
        break;
    case CODE_FUNCTION_STUB:
        stub_compile_function(e, function);
        break;
    case CODE_TIER1:
        tier1_compile(e, function);
        break;
    default:
        tier2_compile(e, function);
    }
}

static uint8_t *arena_room(struct runtime *runtime, size_t size)
{
    uint8_t *addr = code_arena_alloc(&runtime->arena, size);
    if (addr)
        return addr;
    collector_compact(runtime);
    return code_arena_alloc(&runtime->arena, size);
}

/* Compile, put into the arena and log.  NULL: it's too large, or the arena is full. */
static struct code *make_code(struct runtime *runtime, enum code_kind kind, uint32_t function)
{
    struct emitter e;
    emitter_open(&e, runtime->program, !runtime->options.no_frame_pointer);
    e.counting = !runtime->options.no_tier2;
    e.inlining = !runtime->options.no_inline;
    e.polling = code_log_can_be_asked(&runtime->log);
    emit(&e, kind, function);
    struct code *code = emitter_finish(&e, kind, function);
    if (code) {
        code->reserved = code->size + code_log_describe(&runtime->log, code);
        code->addr = arena_room(runtime, code->reserved);
        if (code->addr) {
            code->name = code_name(runtime, kind, function);
            code_arena_write(&runtime->arena, code->addr, e.x86.bytes, code->size, code->reserved);
            code_table_add(&runtime->codes, code);
            code_log_load(&runtime->log, code);
        } else {
            code_free(code);
            code = NULL;
        }
    }
    emitter_close(&e);
    return code;
}

/* ---- A function's life ---- */

static void set_counters(struct runtime *runtime, uint32_t function, bool on)
{
    uint64_t calls = runtime->options.tier2_after, loops = calls * LOOPS_PER_CALL;
    struct function_slot *slot = &runtime->context->slots[function];
    slot->calls_left = on && calls < INT32_MAX ? (int32_t)calls : INT32_MAX;
    slot->loops_left = on && loops < INT32_MAX ? (int32_t)loops : INT32_MAX;
}

/* Calls of FUNCTION go to CODE from now on; NULL: to its stub. */
static void set_current(struct runtime *runtime, uint32_t function, struct code *code)
{
    if (runtime->current[function])
        runtime->current[function]->retired = true;
    runtime->current[function] = code;
    const uint8_t *entry = code ? code->addr : runtime->stubs[function]->addr;
    runtime->context->slots[function].entry = (uint64_t)(uintptr_t)entry;
    set_counters(runtime, function, !code || code->kind == CODE_TIER1);
}

static bool compile_function(struct runtime *runtime, uint32_t function, enum code_kind kind)
{
    struct code *code = make_code(runtime, kind, function);
    if (!code)
        return false;
    runtime->compilations++;
    set_current(runtime, function, code);
    if (collector_should_compact(runtime))
        collector_compact(runtime);
    return true;
}

static void safe_point(struct runtime *runtime, uint64_t sp, uint64_t fp)
{
    activation_mark(runtime, sp, fp);
    collector_free_retired(runtime);
}

/* ---- Logged while it runs ---- */

static void emit_all(struct jitdump *dump, void *user)
{
    struct runtime *runtime = user;
    (void)dump; /* which the log has */
    for (size_t i = 0; i < runtime->codes.count; i++)
        code_log_tell(&runtime->log, runtime->codes.codes[i]);
}

/* No code is being made or moved now. */
static void poll_dump(struct runtime *runtime)
{
    code_log_poll(&runtime->log, emit_all, runtime);
}

/* ---- What compiled code calls ---- */

/* A safe point in compiled code that saw that somebody asks. */
static int64_t help_poll(int64_t ignored, struct jit_context *context, uint64_t sp, uint64_t fp)
{
    (void)ignored, (void)sp, (void)fp;
    poll_dump(context->runtime);
    return 0;
}

/* The compile stub: FUNCTION has no code.  Returns where to jump to. */
static int64_t help_compile(int64_t function, struct jit_context *context, uint64_t sp, uint64_t fp)
{
    struct runtime *runtime = context->runtime;
    bool tier2 = !runtime->options.no_tier2 && runtime->options.tier2_after == 0;
    safe_point(runtime, sp, fp);
    if (!compile_function(runtime, (uint32_t)function, tier2 ? CODE_TIER2 : CODE_TIER1)) {
        fprintf(stderr, "tinyjit: the code of '%s' has no room\n",
                runtime->program->functions[function].name);
        exit(1);
    }
    return (int64_t)context->slots[function].entry;
}

/* Tier-1 code of FUNCTION has run often. */
static int64_t help_hot(int64_t function, struct jit_context *context, uint64_t sp, uint64_t fp)
{
    struct runtime *runtime = context->runtime;
    const struct code *current = runtime->current[function];
    set_counters(runtime, (uint32_t)function, false);
    if (current && current->kind == CODE_TIER2)
        return 0; /* code that is retired already, but goes on running */
    safe_point(runtime, sp, fp);
    compile_function(runtime, (uint32_t)function, CODE_TIER2); /* if not, tier 1 stays */
    return 0;
}

/* forget(f): drop the function's code; its next call compiles it again. */
static int64_t help_forget(int64_t function, struct jit_context *context, uint64_t sp, uint64_t fp)
{
    struct runtime *runtime = context->runtime;
    if ((uint64_t)function < runtime->program->function_count)
        set_current(runtime, (uint32_t)function, NULL);
    safe_point(runtime, sp, fp);
    return 0;
}

static int64_t help_print(int64_t value, struct jit_context *context, uint64_t sp, uint64_t fp)
{
    (void)sp, (void)fp;
    output_add(context->runtime->output, value);
    return value;
}

static int64_t help_native_mix(int64_t value, struct jit_context *context, uint64_t sp, uint64_t fp)
{
    (void)context, (void)sp, (void)fp;
    return native_mix(value);
}

/* The same with --crash, --stop or --throw.  It is a function of its own because it saves
 * registers: at a jump behind their pops perf 6.1 loses its way. */
static int64_t help_native_trouble(int64_t value, struct jit_context *context, uint64_t sp,
                                   uint64_t fp)
{
    (void)sp, (void)fp;
    if (context->runtime->options.crash)
        crash_now(value);
    if (context->runtime->options.stops && value == context->runtime->options.stop_at)
        stop_now();
    const uint32_t every = context->runtime->options.throw_every;
    if (every && ++context->runtime->mixed % every == 0)
        exception_throw(value);
    return native_mix(value);
}

static int64_t help_fail(int64_t failure, struct jit_context *context, uint64_t line,
                         uint64_t column)
{
    struct position at = {(uint32_t)line, (uint32_t)column};
    code_log_close(&context->runtime->log);
    failure_exit(context->runtime->program, (enum failure)failure, at);
}

static uint64_t helper_address(helper_function *function)
{
    return (uint64_t)(uintptr_t)function;
}

/* ---- Opening, running, closing ---- */

static void open_context(struct runtime *runtime, uintptr_t stack_limit)
{
    const struct program *program = runtime->program;
    size_t cells = (size_t)context_cell_offset(program, 0);
    struct jit_context *context = memory_new(cells + program->global_count * 8, 1);
    context->runtime = runtime;
    context->stack_limit = stack_limit;
    context->helpers[BUILTIN_PRINT] = helper_address(help_print);
    context->helpers[BUILTIN_NATIVE_MIX] =
        helper_address(runtime->options.crash || runtime->options.stops ||
                               runtime->options.throw_every
                           ? help_native_trouble
                           : help_native_mix);
    context->helpers[BUILTIN_FORGET] = helper_address(help_forget);
    context->helpers[HELPER_COMPILE] = helper_address(help_compile);
    context->helpers[HELPER_HOT] = helper_address(help_hot);
    context->helpers[HELPER_FAIL] = helper_address(help_fail);
    context->helpers[HELPER_POLL] = helper_address(help_poll);
    for (size_t i = 0; i < program->function_count; i++)
        context->slots[i].parameters = program->functions[i].parameter_count;
    if (program->global_count)
        memcpy((uint8_t *)context + cells, program->globals, program->global_count * 8);
    runtime->context = context;
}

static void open_polling(struct runtime *runtime)
{
    runtime->context->poll_word = (uint64_t)(uintptr_t)jitdump_poll_word(runtime->log.dump);
}

static int open_stubs(struct runtime *runtime)
{
    runtime->entry = make_code(runtime, CODE_ENTRY, 0);
    struct code *compile = make_code(runtime, CODE_COMPILE_STUB, 0);
    if (!runtime->entry || !compile)
        return -1;
    runtime->context->helpers[HELPER_COMPILE_STUB] = (uint64_t)(uintptr_t)compile->addr;
    for (uint32_t i = 0; i < runtime->program->function_count; i++) {
        runtime->stubs[i] = make_code(runtime, CODE_FUNCTION_STUB, i);
        if (!runtime->stubs[i])
            return -1;
        set_current(runtime, i, NULL);
    }
    return 0;
}

int runtime_open(struct runtime *runtime, const struct program *program,
                 const struct runtime_options *options, struct output *output,
                 uintptr_t stack_limit)
{
    *runtime = (struct runtime){.program = program, .options = *options, .output = output};
    runtime->current = memory_new(program->function_count, sizeof *runtime->current);
    runtime->stubs = memory_new(program->function_count, sizeof *runtime->stubs);
    open_context(runtime, stack_limit);
    int error = code_arena_open(&runtime->arena, options->flip_protection, options->grow_arena);
    if (error)
        fprintf(stderr, "tinyjit: no memory for code: %s\n", strerror(-error));
    else
        error = code_log_open(&runtime->log, program->path, &runtime->arena, &options->paths,
                              options->own_frames, options->exceptions);
    if (!error)
        open_polling(runtime);
    if (error || open_stubs(runtime) < 0) {
        runtime_close(runtime);
        return -1;
    }
    return 0;
}

int64_t runtime_run(struct runtime *runtime)
{
    poll_dump(runtime);
    stub_entry_function *entry = (stub_entry_function *)(uintptr_t)runtime->entry->addr;
    return entry(runtime->context);
}

void runtime_print_statistics(const struct runtime *runtime, FILE *stream)
{
    const struct code_log *log = &runtime->log;
    uint64_t loads = 0;
    for (int kind = 0; kind < CODE_KINDS; kind++)
        loads += log->loads[kind];
    fprintf(stream,
            "loads %" PRIu64 " (stubs %" PRIu64 ", tier1 %" PRIu64 ", tier2 %" PRIu64
            "), unloads %" PRIu64 ", moves %" PRIu64 ", addresses reused %" PRIu64 "\n",
            loads, loads - log->loads[CODE_TIER1] - log->loads[CODE_TIER2], log->loads[CODE_TIER1],
            log->loads[CODE_TIER2], log->unloads, log->moves, runtime->arena.reuses);
    fprintf(stream,
            "compactions %" PRIu64 ", stack walks %" PRIu64 " of %" PRIu64
            " frames, mprotect %" PRIu64 ", arena used %zu of at most %zu bytes\n",
            runtime->compactions, runtime->walks, runtime->frames_walked, runtime->arena.protects,
            code_arena_span(&runtime->arena) - code_arena_holes(&runtime->arena),
            runtime->arena.high_water);
}

void runtime_close(struct runtime *runtime)
{
    code_log_close(&runtime->log);
    for (size_t i = 0; i < runtime->codes.count; i++)
        code_free(runtime->codes.codes[i]);
    free(runtime->codes.codes);
    free(runtime->current);
    free(runtime->stubs);
    free(runtime->context);
    code_arena_close(&runtime->arena);
}
