/* perfjit bench: see bench.h.
 *
 *     base new new base base new ... ─▶ bench_run (record, read) ─▶ NAME.bench/SIDE-NNN.run
 *                                               │
 *                                               └─ its numbers ──▶ NAME.bench/bench.txt
 */
#include "injector/run/bench/bench.h"

#include "injector/compare/kept_runs/bench_list.h"
#include "injector/files/interruption.h"
#include "injector/files/output_file.h"
#include "injector/files/undo_list.h"
#include "injector/profile/run_file.h"
#include "injector/run/bench/bench_folder.h"
#include "injector/run/bench/bench_run.h"
#include "injector/run/bench/bench_together.h"
#include "injector/run/bench/machine_facts.h"
#include "injector/run/record/recorder.h"
#include "injector/text/plural.h"
#include "injector/text/printable_text.h"
#include "injector/text/shell_word.h"
#include "jitdump/jitdump.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- The words of a command ---- */

static void command_words_free(char **words)
{
    for (size_t i = 0; words && words[i]; i++)
        free(words[i]);
    free(words);
}

static const char white[] = " \t\n";

/* Whether a shell does more at AT, which is in QUOTE or (0) in none, than to split words: behind
 * the end of a line is another command. */
static bool is_shells(const char *at, char quote)
{
    if (quote)
        return quote == '"' && strchr("$`\\!", *at);
    return strchr("$`\\|&;<>()*?[]{}#~!", *at) || (*at == '\n' && at[strspn(at, white)]);
}

/* Whether TEXT is only words: it has no characters with a meaning in the shell, and no words of the
 * shell's own.
 */
static bool is_plain(const char *text)
{
    static const char *const own[] = {"cd", "exec", "ulimit", "if", "for", "while", "set", "."};
    size_t first = strcspn(text, white);
    char quote = 0;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (strlen(own[i]) == first && strncmp(text, own[i], first) == 0)
            return false;
    if (memchr(text, '=', first))
        return false;
    for (const char *at = text; *at; at++) {
        if (quote ? *at == quote : *at == '\'' || *at == '"')
            quote = quote ? 0 : *at;
        else if (is_shells(at, quote))
            return false;
    }
    return !quote && first > 0;
}

/* Copy the word at TEXT to WORD, without its quotes.  Returns where it ends. */
static const char *take_word(char *word, const char *text)
{
    char quote = 0;
    for (; *text && (quote || !strchr(white, *text)); text++)
        if (quote ? *text == quote : *text == '\'' || *text == '"')
            quote = quote ? 0 : *text;
        else
            *word++ = *text;
    *word = '\0';
    return text;
}

static char **shell_words(const char *text)
{
    const char *const all[] = {"/bin/sh", "-c", text};
    char **words = calloc(4, sizeof *words);
    bool failed = !words;
    for (size_t i = 0; words && i < 3; i++)
        failed |= !(words[i] = strdup(all[i]));
    if (!failed)
        return words;
    command_words_free(words);
    return NULL;
}

/* Split TEXT at white space, except within quotes.  If it has more in it than words (a variable, a
 * pipe, an assignment, a pattern, a second line), the shell gets it: the words are sh -c TEXT.
 * Returns the words, up to a NULL, to be freed with command_words_free; NULL without memory. */
static char **command_words(const char *text)
{
    size_t count = 0;
    text += strspn(text, white);
    if (!is_plain(text))
        return shell_words(text);
    char **words = calloc(strlen(text) / 2 + 2, sizeof *words);
    while (words && *text) {
        words[count] = malloc(strlen(text) + 1);
        if (!words[count]) {
            command_words_free(words);
            return NULL;
        }
        text = take_word(words[count++], text);
        text += strspn(text, white);
    }
    return words;
}

/* ---- The base that comes from an earlier bench ---- */

static int copy_bytes(struct output_file *to, int from, const char *path, struct findings *findings)
{
    char bytes[1 << 15];
    ssize_t count;
    while ((count = read(from, bytes, sizeof bytes)) > 0 || (count < 0 && errno == EINTR))
        if (count > 0 && output_file_write(to, bytes, (size_t)count, findings))
            return -1;
    if (count < 0)
        return report_failure(findings, "%s: can't read it: %s", path, strerror(errno));
    return output_file_flush(to, findings) || output_file_commit(to, findings) ? -1 : 0;
}

/* Copy a run that can be read. */
static int copy_file(const char *from, const char *to, struct findings *findings)
{
    struct call_profile profile;
    struct output_file output = {.fd = -1};
    int result = run_file_read(&profile, from, RUN_PERIODS, findings);
    call_profile_free(&profile);
    if (result)
        return -1;
    int fd = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return report_failure(findings, "%s: can't read it: %s", from, strerror(errno));
    result =
        output_file_open_shared(&output, to, findings) || copy_bytes(&output, fd, from, findings);
    output_file_close(&output);
    close(fd);
    return result ? -1 : 0;
}

static int take_run(struct bench_list *list, const char *folder, const char *directory,
                    const struct bench_run *run, struct findings *findings)
{
    struct bench_run own = *run;
    char *from = bench_folder_file(directory, run->file, findings), *to = NULL;
    own.side = BENCH_BASE;
    if (asprintf(&own.file, "base-%03zu.run", bench_list_count(list, BENCH_BASE) + 1) < 0)
        own.file = NULL;
    else
        to = bench_folder_file(folder, own.file, findings);
    int result = !from || !to || copy_file(from, to, findings) || bench_list_add_run(list, &own)
                     ? report_failure(findings, "out of memory")
                     : 0;
    free(own.file);
    free(from);
    free(to);
    return result;
}

/* Add the runs and facts of the last side of the bench DIRECTORY to LIST as its base; their files,
 * which are read to the end, go to FOLDER.  Returns 0, or -1 with the failure text set. */
static int base_runs_take(struct bench_list *list, const char *folder, const char *directory,
                          struct findings *findings)
{
    struct bench_list earlier;
    int result = bench_list_read(&earlier, directory, findings);
    enum bench_side side = bench_list_count(&earlier, BENCH_NEW) ? BENCH_NEW : BENCH_BASE;
    if (!result && !bench_list_count(&earlier, side))
        result = report_failure(findings, "%s: has no runs", directory);
    for (size_t i = 0; !result && i < earlier.facts[side].count; i++)
        if (bench_list_add_fact(list, BENCH_BASE, earlier.facts[side].items[i].key,
                                earlier.facts[side].items[i].value))
            result = report_failure(findings, "out of memory");
    for (size_t i = 0; !result && i < earlier.run_count; i++)
        if (earlier.runs[i].side == side)
            result = take_run(list, folder, directory, &earlier.runs[i], findings);
    bench_list_free(&earlier);
    return result;
}

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_SKIPPED = 3, DISTURBED_NS = 20000000 };

struct bench_work {
    const struct bench_options *options;
    struct bench_folder folder;
    struct bench_list list;
    char **words[BENCH_SIDES];
    size_t turn, turns;        /* of all, for the progress */
    size_t measured, repeated; /* runs that were no warm-ups; groups that were run again */
    uint64_t least_loop_ns;    /* of all runs so far; 0: there was none */
    bool told[BENCH_SIDES];    /* its runtime's settings and its event were reported */
    bool told_leftover[BENCH_SIDES];
    struct sigaction pipe, size;
};

/* ---- What is written ---- */

/* Read PERF's version, as perf prints it. */
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
                       " sample%s, %" PRIu64 " function%s of %" PRIu64 " byte%s",
                       place, (double)numbers[RUN_WALL_NS] / 1e6, (double)numbers[RUN_CPU_NS] / 1e6,
                       (double)numbers[RUN_COMPILE_NS] / 1e6, numbers[RUN_SAMPLES],
                       plural(numbers[RUN_SAMPLES]), numbers[RUN_FUNCTIONS],
                       plural(numbers[RUN_FUNCTIONS]), numbers[RUN_CODE_BYTES],
                       plural(numbers[RUN_CODE_BYTES]));
}

/* A process that goes on is not in this run's numbers, but takes time from the runs that follow. */
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

/* SIDE's settings and event are reported.  The same program on the other side has the same. */
static void set_told(struct bench_work *work, enum bench_side side)
{
    for (int other = 0; other < BENCH_SIDES; other++)
        if (work->words[other] && !strcmp(work->words[other][0], work->words[side][0]))
            work->told[other] = true;
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
    set_told(work, side);
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

/* The names of a side's next run. */
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

/* Whether other work may have slowed the run down: processors share caches, and often a core.
 * Their time is counted in ticks, which may put 20 ms to the wrong place.  The loop that is always
 * the same varies by 6 % even if nothing else runs. */
static bool is_disturbed(const struct bench_work *work, const struct bench_run *run)
{
    const uint64_t *numbers = run->numbers;
    return numbers[RUN_BESIDE_NS] + numbers[RUN_STOLEN_NS] >
               numbers[RUN_WALL_NS] / 4 + DISTURBED_NS ||
           numbers[RUN_LOOP_NS] > work->least_loop_ns * 115 / 100;
}

/* Run the COUNT SIDES next to each other.  If a run was disturbed, the whole group is run again, at
 * most as often as the option allows.  The reason to repeat is never a run's own time, only the
 * other activity on the machine. */
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

/* Each pair has the other one's order: the first side is now the one, now the other. */
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

/* Before the first run: words, facts, the runs of an earlier bench. */
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

static void tell_end(const struct bench_work *work)
{
    if (work->repeated)
        printable_line(stderr,
                       "perfjit: other work on the machine disturbed %zu %s%s, which ran again",
                       work->repeated, work->list.order == ORDER_TURNS ? "pair" : "run",
                       plural(work->repeated));
    size_t base = bench_list_count(&work->list, BENCH_BASE);
    size_t new = bench_list_count(&work->list, BENCH_NEW);
    char text[SHELL_WORD_BYTES];
    const char *word = shell_word(text, work->options->output);
    if (base)
        printable_line(stderr, "perfjit: %s: %zu run%s of the base, %zu new; now: perfjit diff %s",
                       work->options->output, base, plural(base), new, word);
    else
        printable_line(stderr,
                       "perfjit: %s: %zu run%s; to compare: perfjit bench --base-dir %s --new ..., "
                       "or perfjit diff %s OTHER.bench",
                       work->options->output, new, plural(new), word, word);
}

/* Keep the commands' input and output out of the measurement. */
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
        findings_print(findings, stderr); /* repaired quirks are repaired in each run again */
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
    if (!options->quiet)
        interruption_end_unread();
    sigaction(SIGPIPE, NULL, &work.pipe);
    sigaction(SIGXFSZ, NULL, &work.size);
    interruption_hold_signals();
    recorder_leave_quit();
    undo_list_begin();
    int result = bench(&work, &findings);
    return end(&work, result, &findings);
}
