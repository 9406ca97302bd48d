/* tinyjit: a little just-in-time compiler, to see and to test what perf makes of compiled code. */
#include "examples/tinyjit/crash.h"
#include "examples/tinyjit/exception.h"
#include "examples/tinyjit/interpreter.h"
#include "examples/tinyjit/memory.h"
#include "examples/tinyjit/parser.h"
#include "examples/tinyjit/runtime.h"

#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

/* As in runtime.c. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-omit-frame-pointer")
#endif

enum { DEFAULT_TIER2_AFTER = 100, MAX_SCRIPT_BYTES = 1 << 24 };

struct options {
    struct runtime_options runtime;
    const char *script;
    uint64_t repeat; /* 0: not given */
    double seconds;  /* 0: not given */
    bool check, statistics, interpret;
};

enum option_key {
    OPTION_TRUTH = 256,
    OPTION_DUMP_CODE,
    OPTION_INLINE_LOG,
    OPTION_TIER2_AFTER,
    OPTION_NO_TIER2,
    OPTION_NO_INLINE,
    OPTION_COMPACT_EVERY,
    OPTION_NO_FRAME_POINTER,
    OPTION_WX,
    OPTION_GROW,
    OPTION_REPEAT,
    OPTION_SECONDS,
    OPTION_STATS,
    OPTION_CHECK,
    OPTION_INTERPRET,
    OPTION_CRASH,
    OPTION_STOP,
    OPTION_THROW
};

static const struct argp_option option_table[] = {
    {0, 0, 0, 0, "How long:", 1},
    {"repeat", OPTION_REPEAT, "N", 0, "Run main() N times", 0},
    {"seconds", OPTION_SECONDS, "S", 0, "Run main() again until S seconds of its own time have passed", 0},
    {0, 0, 0, 0, "What is compiled how:", 2},
    {"tier2-after", OPTION_TIER2_AFTER, "N", 0,
     "Recompile a function after N calls or 32 N loop rounds (100); 0: use tier 2 at once", 0},
    {"no-tier2", OPTION_NO_TIER2, 0, 0, "Never recompile", 0},
    {"no-inline", OPTION_NO_INLINE, 0, 0, "Call functions, however small they are", 0},
    {"interpret", OPTION_INTERPRET, 0, 0,
     "Compile nothing: interpret, each function with a frame of its own if it is recorded", 0},
    {"no-frame-pointer", OPTION_NO_FRAME_POINTER, 0, 0, "Address frames by rsp", 0},
    {0, 0, 0, 0, "Where it is put:", 3},
    {"compact-every", OPTION_COMPACT_EVERY, "N", 0,
     "Move code together after every N compilations, not only when there are many holes", 0},
    {"wx", OPTION_WX, 0, 0, "Keep code writable or executable, never both at once", 0},
    {"grow", OPTION_GROW, 0, 0, "Make the arena accessible page by page, as it is needed", 0},
    {0, 0, 0, 0, "What is told about it:", 4},
    {"truth", OPTION_TRUTH, "FILE", 0, "Log when which code was where", 0},
    {"dump-code", OPTION_DUMP_CODE, "FILE", 0, "Write the code's bytes, source lines and frames",
     0},
    {"inline-log", OPTION_INLINE_LOG, "FILE", 0,
     "Write which function and line each instruction comes from, through inlined calls", 0},
    {"stats", OPTION_STATS, 0, 0, "Count events, on stderr", 0},
    {"check", OPTION_CHECK, 0, 0,
     "Keep what is printed, interpret the script too, and compare; status 1 if they differ", 0},
    {0, 0, 0, 0, "What goes wrong:", 5},
    {"crash", OPTION_CRASH, 0, 0, "Crash in the first native_mix(), and report whatever crash there is", 0},
    {"stop", OPTION_STOP, "N", 0, "Stop for a debugger in each native_mix(N)", 0},
    {"throw", OPTION_THROW, 0, 0, "Throw a C++ exception in native_mix(), and catch it outside main()", 0},
    {0, 0, 0, 0, 0, 0}};

static uint64_t parse_count(const struct argp_state *state, const char *text, uint64_t max)
{
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (errno || *end || end == text || *text == '-' || value > max)
        argp_error(state, "'%s' is not a number from 0 to %" PRIu64, text, max);
    return value;
}

static double parse_seconds(const struct argp_state *state, const char *text)
{
    char *end;
    double value = strtod(text, &end);
    if (*end || end == text || !(value > 0 && value < 1e6))
        argp_error(state, "'%s' is not a number of seconds", text);
    return value;
}

static error_t parse_argument(struct options *options, const char *text,
                              const struct argp_state *state)
{
    if (options->script)
        argp_error(state, "one script at a time, please");
    options->script = text;
    return 0;
}

/* Returns false for a key that is not about files. */
static bool parse_path(int key, const char *text, struct code_log_paths *paths)
{
    switch (key) {
    case OPTION_TRUTH:
        paths->truth = text;
        return true;
    case OPTION_DUMP_CODE:
        paths->code = text;
        return true;
    case OPTION_INLINE_LOG:
        paths->inline_log = text;
        return true;
    default:
        return false;
    }
}

/* Returns false for a key that is not about compiling. */
static bool parse_compiling(int key, const char *text, struct runtime_options *runtime,
                            const struct argp_state *state)
{
    switch (key) {
    case OPTION_TIER2_AFTER:
        runtime->tier2_after = (uint32_t)parse_count(state, text, INT32_MAX);
        return true;
    case OPTION_NO_TIER2:
        runtime->no_tier2 = true;
        return true;
    case OPTION_NO_INLINE:
        runtime->no_inline = true;
        return true;
    case OPTION_COMPACT_EVERY:
        runtime->compact_every = (uint32_t)parse_count(state, text, INT32_MAX);
        return true;
    case OPTION_NO_FRAME_POINTER:
        runtime->no_frame_pointer = true;
        return true;
    case OPTION_WX:
        runtime->flip_protection = true;
        return true;
    case OPTION_GROW:
        runtime->grow_arena = true;
        return true;
    default:
        return false;
    }
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct options *options = state->input;
    if (parse_path(key, text, &options->runtime.paths) ||
        parse_compiling(key, text, &options->runtime, state))
        return 0;
    switch (key) {
    case OPTION_REPEAT:
        options->repeat = parse_count(state, text, UINT64_MAX);
        return 0;
    case OPTION_SECONDS:
        options->seconds = parse_seconds(state, text);
        return 0;
    case OPTION_STATS:
        options->statistics = true;
        return 0;
    case OPTION_CHECK:
        options->check = options->runtime.verify = true;
        return 0;
    case OPTION_INTERPRET:
        options->interpret = true;
        return 0;
    case OPTION_CRASH:
        options->runtime.own_frames = options->runtime.crash = true;
        return 0;
    case OPTION_STOP:
        options->runtime.own_frames = options->runtime.stops = true;
        options->runtime.stop_at = (int64_t)parse_count(state, text, INT64_MAX);
        return 0;
    case OPTION_THROW:
        options->runtime.own_frames = options->runtime.exceptions = true;
        options->runtime.throw_every = 1;
        return 0;
    case ARGP_KEY_ARG:
        return parse_argument(options, text, state);
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "which script?");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argument_parser = {
    option_table,
    parse_option,
    "FILE.tj",
    "Compile the functions of FILE.tj when they are first called, and run main().\v"
    "PERFJIT=dump makes perf see the compiled code by a jitdump, PERFJIT=map by a perf map.",
    0,
    0,
    0};

/* ---- The script ---- */

static char *read_file(const char *path, size_t *bytes)
{
    char *text = NULL;
    FILE *file = fopen(path, "re");
    if (file) {
        text = memory_new(MAX_SCRIPT_BYTES, 1);
        *bytes = fread(text, 1, MAX_SCRIPT_BYTES, file);
        if (*bytes == MAX_SCRIPT_BYTES)
            errno = EFBIG;
        if (ferror(file) || *bytes == MAX_SCRIPT_BYTES) {
            free(text);
            text = NULL;
        }
        int error = errno;
        fclose(file);
        errno = error;
    }
    if (!text)
        fprintf(stderr, "tinyjit: %s: %s\n", path, strerror(errno));
    return text;
}

static struct program *load_program(const char *path)
{
    char error[512];
    size_t bytes;
    char *text = read_file(path, &bytes);
    if (!text)
        return NULL;
    struct program *program = program_parse(path, text, bytes, error, sizeof error);
    if (!program)
        fprintf(stderr, "%s\n", error);
    free(text);
    return program;
}

/* ---- Running it ---- */

/* Of this process's own time, so that a profile has as many samples on a busy machine. */
static double now_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

/* Whether main() has run often enough after RUNS times and since START. */
static bool is_enough(const struct options *options, uint64_t runs, double start)
{
    if (options->repeat && runs >= options->repeat)
        return true;
    if (options->seconds > 0)
        return now_seconds() - start >= options->seconds;
    return !options->repeat;
}

/* Compiled code may use half of what is left of the stack; C needs some too. */
static uintptr_t stack_limit(void)
{
    struct rlimit limit;
    uint64_t bytes = 8 << 20;
    if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < bytes)
        bytes = limit.rlim_cur;
    return (uintptr_t)__builtin_frame_address(0) - bytes / 2;
}

static void run_caught(struct runtime *runtime)
{
    int64_t thrown;
    if (!runtime->options.throw_every)
        runtime_run(runtime);
    else if (exception_catch(runtime_run, runtime, &thrown))
        printf("caught %" PRId64 "\n", thrown);
}

static void run(struct runtime *runtime, const struct options *options)
{
    double start = now_seconds();
    uint64_t runs = 0;
    do
        run_caught(runtime);
    while (!is_enough(options, ++runs, start));
}

static void interpret(struct runtime *runtime, const struct options *options)
{
    struct interpreter interpreter;
    double start = now_seconds();
    uint64_t runs = 0;
    interpreter_open(&interpreter, runtime->program, runtime->output,
                     runtime->context->stack_limit, &runtime->log);
    interpreter.trouble = &options->runtime;
    do
        interpreter_run(&interpreter);
    while (!is_enough(options, ++runs, start));
    interpreter_close(&interpreter);
}

static bool same_output(const struct output *left, const struct output *right)
{
    return left->count == right->count &&
           (!left->count ||
            memcmp(left->values, right->values, left->count * sizeof *left->values) == 0);
}

/* One run of each; false after a message if they differ. */
static bool check_once(struct runtime *runtime, struct interpreter *interpreter,
                       uint64_t run_number)
{
    runtime->output->count = interpreter->output->count = 0;
    int64_t compiled = runtime_run(runtime), interpreted = interpreter_run(interpreter);
    if (compiled == interpreted && same_output(runtime->output, interpreter->output))
        return true;
    fprintf(stderr,
            "check: run %" PRIu64 ": compiled code returned %" PRId64 " and printed %zu values, "
            "the interpreter %" PRId64 " and %zu\n",
            run_number, compiled, runtime->output->count, interpreted, interpreter->output->count);
    return false;
}

static bool check(struct runtime *runtime, const struct options *options)
{
    struct output output = {.keep = true};
    struct interpreter interpreter;
    double start = now_seconds();
    uint64_t runs = 0, values = 0;
    bool same;
    interpreter_open(&interpreter, runtime->program, &output, runtime->context->stack_limit,
                     NULL);
    do {
        same = check_once(runtime, &interpreter, ++runs);
        values += output.count;
    } while (same && !is_enough(options, runs, start));
    if (same)
        printf("check: %" PRIu64 " runs, %" PRIu64 " printed values: the same\n", runs, values);
    interpreter_close(&interpreter);
    output_free(&output);
    return same;
}

int main(int argc, char **argv)
{
    struct options options = {.runtime.tier2_after = DEFAULT_TIER2_AFTER};
    argp_err_exit_status = 2;
    argp_parse(&argument_parser, argc, argv, 0, NULL, &options);
    if (options.runtime.crash && crash_report_on() < 0)
        return EXIT_FAILURE;
    struct program *program = load_program(options.script);
    if (!program)
        return EXIT_FAILURE;
    struct output output = {.keep = options.check};
    struct runtime runtime;
    bool good = runtime_open(&runtime, program, &options.runtime, &output, stack_limit()) == 0;
    if (good) {
        if (options.interpret)
            interpret(&runtime, &options);
        else if (options.check)
            good = check(&runtime, &options);
        else
            run(&runtime, &options);
        if (options.statistics)
            runtime_print_statistics(&runtime, stderr);
        runtime_close(&runtime);
    }
    output_free(&output);
    program_free(program);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
