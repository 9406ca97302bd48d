/* perfjit bench: see bench.h.
 *
 *     base new new base base new ... ─▶ bench_run (record, read) ─▶ NAME.bench/SIDE-NNN.run
 *                                               │
 *                                               └─ its numbers ──▶ NAME.bench/bench.txt
 */
#include "injector/run/bench/bench.h"

#include "injector/files/interruption.h"
#include "injector/run/bench/base_runs.h"
#include "injector/run/bench/bench_folder.h"
#include "injector/run/bench/bench_run.h"
#include "injector/run/bench/bench_together.h"
#include "injector/run/bench/command_words.h"
#include "injector/run/bench/machine_facts.h"
#include "injector/run/record/recorder.h"
#include "injector/text/printable_text.h"
#include "jitdump/jitdump.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_SKIPPED = 3, DISTURBED_NS = 20000000 };

struct bench_work {
    const struct bench_options *options;
    struct bench_folder folder;
    struct bench_list list;
    char **words[BENCH_SIDES];
    size_t turn, turns;        /* of all, for the progress */
    size_t measured, repeated; /* runs that were no warm-ups; groups that were run again */
    uint64_t least_loop_ns;    /* of all runs so far; 0: there was none */
    bool told[BENCH_SIDES];    /* what its runtime is told, and which event it is */
    bool told_leftover[BENCH_SIDES];
    struct sigaction pipe, size;
};

/* ---- What is written ---- */

/* What PERF calls itself. */
static void read_perf_version(char *version, int bytes, const char *perf)
{
    char command[300];
    snprintf(command, sizeof command, "'%s' --version 2>/dev/null", perf);
    FILE *stream = strchr(perf, '\'') ? NULL : popen(command, "re");
    version[0] = '\0';
    if (stream && !fgets(version, bytes, stream))
        version[0] = '\0';
    if (stream)
        pclose(stream);
    version[strcspn(version, "\n")] = '\0';
}

static int add_facts(struct bench_work *work, enum bench_side side)
{
    char perf[128], date[32];
    time_t now = time(NULL);
    struct tm parts;
    read_perf_version(perf, sizeof perf, work->options->record.perf);
    gmtime_r(&now, &parts);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &parts);
    struct bench_list *list = &work->list;
    return bench_list_add_fact(list, side, "command", work->options->commands[side]) ||
                   bench_list_add_fact(list, side, "perfjit", JITDUMP_VERSION) ||
                   bench_list_add_fact(list, side, "perf", perf) ||
                   bench_list_add_fact(list, side, "hz", work->options->record.hz) ||
                   bench_list_add_fact(list, side, "date", date) || machine_add_facts(list, side)
               ? -1
               : 0;
}

/* ---- Runs ---- */

static void show_progress(const struct bench_work *work, const char *place)
{
    if (!work->options->quiet && isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[Kperfjit: %zu of %zu: %s\r", work->turn, work->turns, place);
}

static void tell_run(const struct bench_work *work, const char *place,
                     const uint64_t numbers[RUN_NUMBERS])
{
    if (work->options->verbose)
        printable_line(stderr,
                       "perfjit: %s: %.1f ms, CPU %.1f ms, compilers %.1f ms, %" PRIu64
                       " samples, %" PRIu64 " functions of %" PRIu64 " bytes",
                       place, (double)numbers[RUN_WALL_NS] / 1e6, (double)numbers[RUN_CPU_NS] / 1e6,
                       (double)numbers[RUN_COMPILE_NS] / 1e6, numbers[RUN_SAMPLES],
                       numbers[RUN_FUNCTIONS], numbers[RUN_CODE_BYTES]);
}

/* What goes on is not in this run's numbers, but takes time from the runs that follow. */
static void tell_leftover(struct bench_work *work, enum bench_side side, const char *place,
                          const struct bench_leftover *leftover)
{
    bool is_one = leftover->count == 1;
    if (!leftover->count || work->options->quiet || work->told_leftover[side])
        return;
    work->told_leftover[side] = true;
    printable_line(stderr,
                   "perfjit: %s: %zu process%s that it started still run%s (%" PRIu32
                   "%s): what %s from now on is not measured, and disturbs the other runs; let the "
                   "command wait for %s",
                   place, leftover->count, is_one ? "" : "es", is_one ? "s" : "", leftover->pid,
                   is_one ? "" : ", ...", is_one ? "it does" : "they do", is_one ? "it" : "them");
}

/* COMMAND: SIDE's, as PLACE says; KEPT: the file of its profile, or NULL.  Returns 0, or -1 with
 * the failure text set.  Free with forget_command in either case. */
static int make_command(struct bench_command *command, struct bench_work *work,
                        enum bench_side side, const char *place, const char *kept,
                        struct findings *findings)
{
    const char *raw = side == BENCH_BASE ? "raw-base" : "raw-new";
    *command = (struct bench_command){work->options->record, place, NULL};
    command->record.words = work->words[side];
    command->record.name = bench_folder_file(work->folder.path, raw, findings);
    command->record.quiet = work->options->quiet || work->told[side];
    command->kept = kept ? bench_folder_file(work->folder.path, kept, findings) : NULL;
    work->told[side] = true;
    work->turn++;
    show_progress(work, place);
    return command->record.name && (!kept || command->kept) ? 0 : -1;
}

static void forget_command(struct bench_command *command)
{
    free((char *)(uintptr_t)command->record.name);
    free((char *)(uintptr_t)command->kept);
}

/* The commands have these signals as they were. */
static void give_signals_back(const struct bench_work *work)
{
    sigaction(SIGPIPE, &work->pipe, NULL);
    sigaction(SIGXFSZ, &work->size, NULL);
}

/* Run SIDE as PLACE says; KEPT: the file of its profile, or NULL. */
static int run_one(struct bench_work *work, enum bench_side side, const char *place,
                   const char *kept, uint64_t numbers[RUN_NUMBERS], struct findings *findings)
{
    struct bench_command command;
    struct bench_leftover leftover = {0};
    int result = make_command(&command, work, side, place, kept, findings);
    give_signals_back(work);
    result = result || bench_run_go(numbers, &leftover, &command, findings);
    interruption_watch_files();
    tell_leftover(work, side, place, &leftover);
    if (!result && (!work->least_loop_ns || numbers[RUN_LOOP_NS] < work->least_loop_ns))
        work->least_loop_ns = numbers[RUN_LOOP_NS];
    forget_command(&command);
    return result || interruption_check(findings) ? -1 : 0;
}

static int warm_up(struct bench_work *work, enum bench_side side, struct findings *findings)
{
    uint64_t numbers[RUN_NUMBERS];
    char place[64];
    for (size_t i = 0; i < work->options->warm_ups; i++) {
        snprintf(place, sizeof place, "%s, warm-up %zu", bench_side_words[side], i + 1);
        if (run_one(work, side, place, NULL, numbers, findings))
            return -1;
    }
    return 0;
}

/* What the next run of a side is called. */
struct run_names {
    char place[64], file[64];
};

static struct run_names names_of(const struct bench_work *work, enum bench_side side)
{
    struct run_names names;
    size_t number = bench_list_count(&work->list, side) + 1;
    snprintf(names.place, sizeof names.place, "%s, run %zu", bench_side_words[side], number);
    snprintf(names.file, sizeof names.file, "%s-%03zu.run", bench_side_words[side], number);
    return names;
}

static int add_run(struct bench_work *work, enum bench_side side, struct run_names *names,
                   const uint64_t numbers[RUN_NUMBERS], struct findings *findings)
{
    struct bench_run run = {.side = side, .file = names->file};
    memcpy(run.numbers, numbers, sizeof run.numbers);
    run.numbers[RUN_TURN] = ++work->measured;
    tell_run(work, names->place, run.numbers);
    return bench_list_add_run(&work->list, &run) ? report_failure(findings, "out of memory") : 0;
}

static int run_side(struct bench_work *work, enum bench_side side, struct findings *findings)
{
    uint64_t numbers[RUN_NUMBERS];
    struct run_names names = names_of(work, side);
    return run_one(work, side, names.place, names.file, numbers, findings) ||
                   add_run(work, side, &names, numbers, findings)
               ? -1
               : 0;
}

/* Whether the run may have taken longer by what others did: processors share caches, and often a
 * core.  Ticks, by which their time is counted, may put 20 ms to where they were not; and the loop
 * that is always the same varies by 6 % where nobody else is. */
static bool is_disturbed(const struct bench_work *work, const struct bench_run *run)
{
    const uint64_t *numbers = run->numbers;
    return numbers[RUN_BESIDE_NS] + numbers[RUN_STOLEN_NS] >
               numbers[RUN_WALL_NS] / 4 + DISTURBED_NS ||
           numbers[RUN_LOOP_NS] > work->least_loop_ns * 115 / 100;
}

/* Run the COUNT SIDES next to each other.  What was disturbed is run again, all of it, at most so
 * often as was said: what decides is not how long a run took, but what else there was. */
static int run_group(struct bench_work *work, const enum bench_side *sides, size_t count,
                     struct findings *findings)
{
    struct bench_list *list = &work->list;
    for (;;) {
        bool disturbed = false;
        for (size_t i = 0; i < count; i++) {
            if (run_side(work, sides[i], findings))
                return -1;
            disturbed |= is_disturbed(work, &list->runs[list->run_count - 1]);
        }
        if (!disturbed || work->repeated == work->options->repeats)
            return 0;
        work->repeated++;
        work->turns += count;
        for (size_t i = 0; i < count; i++)
            free(list->runs[--list->run_count].file);
    }
}

/* Each pair has the other one's order: what comes first is now the one, now the other. */
static const enum bench_side pair_orders[2][BENCH_SIDES] = {{BENCH_BASE, BENCH_NEW},
                                                            {BENCH_NEW, BENCH_BASE}};

static int run_in_turns(struct bench_work *work, struct findings *findings)
{
    for (size_t i = 0; i < work->options->runs; i++)
        if (run_group(work, pair_orders[i % 2], BENCH_SIDES, findings))
            return -1;
    work->list.order = ORDER_TURNS;
    return 0;
}

/* SIDES: which of the two is started first. */
static int run_pair(struct bench_work *work, const enum bench_side sides[BENCH_SIDES],
                    struct findings *findings)
{
    struct bench_partner partners[BENCH_SIDES] = {0};
    struct run_names names[BENCH_SIDES];
    int result = 0;
    for (int i = 0; i < BENCH_SIDES; i++) {
        names[i] = names_of(work, sides[i]);
        result |= make_command(&partners[i].command, work, sides[i], names[i].place, names[i].file,
                               findings);
    }
    give_signals_back(work);
    result = result || bench_together_go(partners, findings);
    interruption_watch_files();
    for (int i = 0; i < BENCH_SIDES; i++) {
        if (!result) {
            tell_leftover(work, sides[i], names[i].place, &partners[i].leftover);
            result = add_run(work, sides[i], &names[i], partners[i].numbers, findings);
        }
        forget_command(&partners[i].command);
    }
    return result || interruption_check(findings) ? -1 : 0;
}

static int run_together(struct bench_work *work, struct findings *findings)
{
    for (size_t i = 0; i < work->options->runs; i++)
        if (run_pair(work, pair_orders[i % 2], findings))
            return -1;
    work->list.order = ORDER_TOGETHER;
    return 0;
}

static int run_in_blocks(struct bench_work *work, struct findings *findings)
{
    for (int number = 0; number < BENCH_SIDES; number++) {
        enum bench_side side = (enum bench_side)number;
        for (size_t i = 0; work->words[side] && i < work->options->runs; i++)
            if (run_group(work, &side, 1, findings))
                return -1;
    }
    work->list.order = work->options->base_dir ? ORDER_APART : ORDER_BLOCKS;
    return 0;
}

/* Before the first run: words, facts, what an earlier bench has. */
static int prepare(struct bench_work *work, struct findings *findings)
{
    const struct bench_options *options = work->options;
    for (int side = 0; side < BENCH_SIDES; side++) {
        if (!options->commands[side])
            continue;
        work->words[side] = command_words(options->commands[side]);
        work->turns += options->runs + options->warm_ups;
        if (!work->words[side] || add_facts(work, (enum bench_side)side))
            return report_failure(findings, "out of memory");
    }
    if (bench_folder_make(&work->folder, options->output, findings))
        return -1;
    return options->base_dir
               ? base_runs_take(&work->list, work->folder.path, options->base_dir, findings)
               : 0;
}

static int bench(struct bench_work *work, struct findings *findings)
{
    const struct bench_options *options = work->options;
    enum bench_order order = options->commands[BENCH_BASE] ? options->order : ORDER_BLOCKS;
    int (*run)(struct bench_work *, struct findings *) = order == ORDER_TOGETHER ? run_together
                                                         : order == ORDER_TURNS  ? run_in_turns
                                                                                 : run_in_blocks;
    if (prepare(work, findings))
        return -1;
    for (int side = 0; side < BENCH_SIDES; side++)
        if (work->words[side] && warm_up(work, (enum bench_side)side, findings))
            return -1;
    return run(work, findings) || bench_list_write(&work->list, work->folder.path, findings) ||
                   interruption_check(findings) || bench_folder_commit(&work->folder, findings)
               ? -1
               : 0;
}

/* ---- The command ---- */

static const char *plural(size_t count)
{
    return count == 1 ? "" : "s";
}

static void tell_end(const struct bench_work *work)
{
    if (work->repeated)
        printable_line(stderr,
                       "perfjit: other work on the machine disturbed %zu %s%s, which ran again",
                       work->repeated, work->list.order == ORDER_TURNS ? "pair" : "run",
                       plural(work->repeated));
    size_t base = bench_list_count(&work->list, BENCH_BASE);
    size_t new = bench_list_count(&work->list, BENCH_NEW);
    if (base)
        printable_line(stderr, "perfjit: %s: %zu run%s of the base, %zu new; now: perfjit diff %s",
                       work->options->output, base, plural(base), new, work->options->output);
    else
        printable_line(stderr,
                       "perfjit: %s: %zu run%s; to compare: perfjit bench --base-dir %s --new ..., "
                       "or perfjit diff %s OTHER.bench",
                       work->options->output, new, plural(new), work->options->output,
                       work->options->output);
}

/* What the commands read and print is not what is measured. */
static void set_streams(const struct bench_options *options)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing < 0)
        return;
    dup2(nothing, STDIN_FILENO);
    if (!options->shows_output)
        dup2(nothing, STDOUT_FILENO);
    close(nothing);
}

static int end(struct bench_work *work, int result, struct findings *findings)
{
    const struct bench_options *options = work->options;
    bench_folder_release(&work->folder);
    if (!options->quiet && isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
    if (options->verbose || (findings_lost(findings) && !options->quiet))
        findings_print(findings, stderr); /* what was repaired is repaired in each run again */
    if (result)
        printable_line(stderr, "perfjit: %s", findings->failure);
    else if (!options->quiet)
        tell_end(work);
    int status = result ? EXIT_FAILED : findings_lost(findings) ? EXIT_SKIPPED : EXIT_DONE;
    for (int side = 0; side < BENCH_SIDES; side++)
        command_words_free(work->words[side]);
    bench_list_free(&work->list);
    findings_free(findings);
    interruption_pass_on();
    return status;
}

int bench_all(const struct bench_options *options)
{
    struct findings findings = {.verbose = options->verbose, .quiet = options->quiet};
    struct bench_work work = {.options = options};
    set_streams(options);
    sigaction(SIGPIPE, NULL, &work.pipe);
    sigaction(SIGXFSZ, NULL, &work.size);
    interruption_hold_signals();
    recorder_leave_quit();
    int result = bench(&work, &findings);
    return end(&work, result, &findings);
}
