/* truth_check: compare the names that perf shows with what a JIT says about itself.
 *
 *     perf script -F time,ip,sym --ns -i perf.jit.data | truth_check [-m MICROSECONDS] TRUTH
 *     perf script -F pid,tid,time,ip,sym --ns -i perf.jit.data | truth_check [-m MICROSECONDS] [-p]
 * TRUTH
 *
 * Events.  TRUTH comes from tinyjit --truth or many_functions -t: one event a line, times of
 * CLOCK_MONOTONIC in ns,
 *
 *     # pid PID, arena ADDRESS to ADDRESS...
 *     TIME load ADDRESS SIZE NAME
 *     TIME unload ADDRESS SIZE NAME
 *     TIME move OLD NEW SIZE NAME
 *
 * in the order in which they happened.  A JIT notes an event down before the code runs at its new
 * place, or after it last ran at the old one: so at the time of a sample, the events up to that
 * time say exactly whose code it hit, and there is nothing to be lenient about.  With -m the
 * samples' times are known to MICROSECONDS alone: those whose address changed hands so long before
 * or after are not judged.
 *
 * Prints "samples N right N wrong N missing N": the samples in the arena, and for how many perf
 * shows the right name, another name, or none.  Code where by TRUTH there is none counts as wrong.
 *
 * Runs.  TRUTH begins with "# runs" and has the form of run_log.h.  Judged is a sample of a thread
 * of TRUTH whose address is in an arena and whose time is at least MICROSECONDS (-m, 100 if not
 * given) inside one of its runs.  With -p the samples' times are those of perf's own clock, and
 * TRUTH's "# clock" lines convert them.
 *
 * Prints "samples N right N wrong N missing N outside N stray N".  Missing: [unknown] although the
 * code has a name; wrong: another name, or one for code that has none.  Outside: in an arena, but
 * nearer than that to the edge of a run.  Stray: in an arena where by TRUTH the thread was not at
 * that time, so that TRUTH or the times are wrong, and nothing can be said about names. Then the
 * same, but for outside and stray, for each kind of run.
 *
 * The first few disagreements go to stderr.  Exit status 0 if the input could be understood, 1 if
 * not, 2 for wrong usage.
 */
#include "tests/producers/run_log.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHOWN_DISAGREEMENTS = 5 };

struct function {
    uint64_t start, end;
    char *name;
};

/* The functions that are alive at one moment, in no order. */
struct code {
    struct function *functions;
    size_t count, capacity;
};

/* An event's addresses.  One that is younger than a sample's earliest time makes the owner unsure.
 */
struct change {
    uint64_t time_ns, start, end;
};

struct truth {
    FILE *file;
    char *line; /* the event that comes next, or NULL at the end */
    size_t line_bytes;
    size_t line_number;
    uint64_t next_ns;
    uint64_t arena_start, arena_end;
    struct code code;
    struct change *changes; /* all so far */
    size_t change_count, change_capacity;
};

struct score {
    size_t samples, right, wrong, missing;
};

static void fail(const char *where, size_t line_number, const char *what)
{
    fprintf(stderr, "truth_check: %s:%zu: %s\n", where, line_number, what);
    exit(EXIT_FAILURE);
}

/* ---- Code ---- */

static void forget(struct code *code, uint64_t start, uint64_t end)
{
    size_t kept = 0;
    for (size_t i = 0; i < code->count; i++) {
        struct function *function = &code->functions[i];
        if (function->start < end && start < function->end)
            free(function->name);
        else
            code->functions[kept++] = *function;
    }
    code->count = kept;
}

static void add(struct code *code, uint64_t start, uint64_t size, const char *name)
{
    forget(code, start, start + size);
    if (code->count == code->capacity) {
        code->capacity = 2 * code->capacity + 64;
        code->functions = realloc(code->functions, code->capacity * sizeof *code->functions);
    }
    char *copy = strdup(name);
    if (!code->functions || !copy)
        fail("memory", 0, "there is not enough");
    code->functions[code->count++] = (struct function){start, start + size, copy};
}

static const char *name_at(const struct code *code, uint64_t addr)
{
    for (size_t i = 0; i < code->count; i++)
        if (addr >= code->functions[i].start && addr < code->functions[i].end)
            return code->functions[i].name;
    return NULL;
}

/* ---- The truth ---- */

static void strip_newline(char *line)
{
    line[strcspn(line, "\n")] = '\0';
}

/* Read on to the next event.  Its time must not lie before the last one's. */
static void read_event(struct truth *truth)
{
    char *line = truth->line;
    while (getline(&line, &truth->line_bytes, truth->file) > 0) {
        truth->line = line;
        truth->line_number++;
        strip_newline(line);
        sscanf(line, "# pid %*d, arena %" SCNx64 " to %" SCNx64, &truth->arena_start,
               &truth->arena_end);
        if (line[0] == '#')
            continue;
        uint64_t last_ns = truth->next_ns;
        if (sscanf(line, "%" SCNu64, &truth->next_ns) != 1 || truth->next_ns < last_ns)
            fail("truth", truth->line_number, "the event has no time, or it goes back");
        return;
    }
    free(line);
    truth->line = NULL;
}

static void note_change(struct truth *truth, uint64_t start, uint64_t size)
{
    if (truth->change_count == truth->change_capacity) {
        truth->change_capacity = 2 * truth->change_capacity + 1024;
        truth->changes = realloc(truth->changes, truth->change_capacity * sizeof *truth->changes);
        if (!truth->changes)
            fail("memory", 0, "there is not enough");
    }
    truth->changes[truth->change_count++] = (struct change){truth->next_ns, start, start + size};
}

static void play_event(struct truth *truth)
{
    uint64_t from, to, size;
    int at = 0;
    if (sscanf(truth->line, "%*u load %" SCNx64 " %" SCNu64 " %n", &to, &size, &at) == 2 && at) {
        note_change(truth, to, size);
        add(&truth->code, to, size, truth->line + at);
    } else if (sscanf(truth->line, "%*u unload %" SCNx64 " %" SCNu64 " %n", &from, &size, &at) ==
                   2 &&
               at) {
        note_change(truth, from, size);
        forget(&truth->code, from, from + size);
    } else if (sscanf(truth->line, "%*u move %" SCNx64 " %" SCNx64 " %" SCNu64 " %n", &from, &to,
                      &size, &at) == 3 &&
               at) {
        note_change(truth, from, size);
        note_change(truth, to, size);
        forget(&truth->code, from, from + size);
        add(&truth->code, to, size, truth->line + at);
    } else {
        fail("truth", truth->line_number, "not an event");
    }
}

static void play_until(struct truth *truth, uint64_t time_ns)
{
    while (truth->line && truth->next_ns <= time_ns) {
        play_event(truth);
        read_event(truth);
    }
}

static void open_truth(struct truth *truth, const char *path)
{
    *truth = (struct truth){.file = fopen(path, "r")};
    if (!truth->file)
        fail(path, 0, "can't read it");
    read_event(truth);
    if (truth->arena_end == 0)
        fail(path, truth->line_number, "no arena before the first event");
}

static void close_truth(struct truth *truth)
{
    forget(&truth->code, 0, UINT64_MAX);
    free(truth->code.functions);
    free(truth->changes);
    free(truth->line);
    fclose(truth->file);
}

/* ---- Samples ---- */

static void judge(struct score *score, const char *truth, const char *shown, const char *line)
{
    score->samples++;
    if (truth && strcmp(truth, shown) == 0) {
        score->right++;
        return;
    }
    if (truth && strcmp(shown, "[unknown]") == 0)
        score->missing++;
    else
        score->wrong++;
    if (score->wrong + score->missing <= SHOWN_DISAGREEMENTS)
        fprintf(stderr, "truth_check:%s: it is %s\n", line, truth ? truth : "no code at all");
}

/* Code can come and go within the margin: that the owner is the same at both ends is not enough. */
static bool changed_since(const struct truth *truth, uint64_t addr, uint64_t since_ns)
{
    for (size_t i = truth->change_count; i > 0 && truth->changes[i - 1].time_ns > since_ns; i--)
        if (addr >= truth->changes[i - 1].start && addr < truth->changes[i - 1].end)
            return true;
    return false;
}

static void take_sample(struct truth *truth, uint64_t margin_ns, struct score *score, char *line,
                        size_t line_number, uint64_t *last_ns)
{
    uint64_t seconds, rest, addr;
    int at = 0;
    if (sscanf(line, " %" SCNu64 ".%9" SCNu64 ": %" SCNx64 " %n", &seconds, &rest, &addr, &at) !=
            3 ||
        !at)
        fail("stdin", line_number, "not a line of perf script -F time,ip,sym --ns");
    uint64_t time_ns = seconds * 1000000000u + rest;
    if (time_ns < *last_ns)
        fail("stdin", line_number, "time goes back");
    *last_ns = time_ns;
    play_until(truth, time_ns + margin_ns);
    if (addr >= truth->arena_start && addr < truth->arena_end &&
        !changed_since(truth, addr, time_ns - margin_ns))
        judge(score, name_at(&truth->code, addr), line + at, line);
}

static void judge_events(const char *path, uint64_t margin_ns)
{
    struct truth truth;
    struct score score = {0};
    char *line = NULL;
    size_t line_bytes = 0, line_number = 0;
    uint64_t last_ns = 0;
    open_truth(&truth, path);
    while (getline(&line, &line_bytes, stdin) > 0) {
        strip_newline(line);
        take_sample(&truth, margin_ns, &score, line, ++line_number, &last_ns);
    }
    printf("samples %zu right %zu wrong %zu missing %zu\n", score.samples, score.right, score.wrong,
           score.missing);
    free(line);
    close_truth(&truth);
}

/* ---- Runs ---- */

enum { MAX_ARENAS = 16, MAX_CLOCKS = 8, MAX_KINDS = 64 };

struct kind {
    char name[RUN_NAME_BYTES];
    struct score score;
};

struct run_truth {
    struct run *runs; /* by thread, then by time */
    size_t count, capacity;
    struct {
        uint64_t start, end;
    } arenas[MAX_ARENAS];
    size_t arena_count;
    struct {
        uint64_t monotonic_ns, perf_ns;
    } clocks[MAX_CLOCKS]; /* by time */
    size_t clock_count;
    struct kind kinds[MAX_KINDS];
    size_t kind_count;
    struct score score;
    size_t outside, stray;
    uint64_t margin_ns;
    bool perf_clock;
};

/* A line of perf script. */
struct shown {
    int pid, tid;
    uint64_t time_ns, addr;
    const char *name, *line;
};

static int compare_runs(const void *left, const void *right)
{
    const struct run *a = left, *b = right;
    if (a->tid != b->tid)
        return a->tid < b->tid ? -1 : 1;
    return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

static bool read_run(struct run_truth *truth, const char *line)
{
    struct run run;
    int at = 0;
    if (sscanf(line, "run %d %d %" SCNu64 " %" SCNu64 " %" SCNx64 " %" SCNu64 " %31s %n", &run.pid,
               &run.tid, &run.start_ns, &run.end_ns, &run.addr, &run.bytes, run.kind, &at) != 7 ||
        !at || run.end_ns < run.start_ns)
        return false;
    snprintf(run.name, sizeof run.name, "%s", line + at);
    if (truth->count == truth->capacity) {
        truth->capacity = 2 * truth->capacity + 1024;
        truth->runs = realloc(truth->runs, truth->capacity * sizeof *truth->runs);
        if (!truth->runs)
            fail("memory", 0, "there is not enough");
    }
    truth->runs[truth->count++] = run;
    return true;
}

static bool read_truth_line(struct run_truth *truth, const char *line)
{
    uint64_t a, b;
    if (line[0] != '#')
        return read_run(truth, line);
    if (sscanf(line, "# arena %" SCNx64 " %" SCNx64, &a, &b) == 2) {
        if (truth->arena_count == MAX_ARENAS)
            return false;
        truth->arenas[truth->arena_count].start = a;
        truth->arenas[truth->arena_count++].end = b;
    } else if (sscanf(line, "# clock %" SCNu64 " %" SCNu64, &a, &b) == 2) {
        if (truth->clock_count == MAX_CLOCKS)
            return false;
        truth->clocks[truth->clock_count].monotonic_ns = a;
        truth->clocks[truth->clock_count++].perf_ns = b;
    }
    return true;
}

/* The runs of one thread must not overlap. */
static void check_runs(const char *path, const struct run_truth *truth)
{
    for (size_t i = 1; i < truth->count; i++)
        if (truth->runs[i - 1].tid == truth->runs[i].tid &&
            truth->runs[i - 1].end_ns > truth->runs[i].start_ns)
            fail(path, 0, "two runs of one thread overlap");
    if (truth->perf_clock && truth->clock_count < 2)
        fail(path, 0, "has no two readings of perf's clock");
}

static void read_runs(struct run_truth *truth, const char *path)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t line_bytes = 0, line_number = 0;
    while (file && getline(&line, &line_bytes, file) > 0) {
        strip_newline(line);
        line_number++;
        if (!read_truth_line(truth, line))
            fail(path, line_number, "not a line of a log of runs");
    }
    if (!truth->count || !truth->arena_count)
        fail(path, line_number, "no runs, or no arena");
    qsort(truth->runs, truth->count, sizeof *truth->runs, compare_runs);
    check_runs(path, truth);
    free(line);
    fclose(file);
}

/* On the straight line through the readings of the clock that stand around. */
static uint64_t to_monotonic(const struct run_truth *truth, uint64_t perf_ns)
{
    size_t i = 1;
    while (i + 1 < truth->clock_count && truth->clocks[i].perf_ns < perf_ns)
        i++;
    double perf = (double)(int64_t)(truth->clocks[i].perf_ns - truth->clocks[i - 1].perf_ns);
    double monotonic =
        (double)(int64_t)(truth->clocks[i].monotonic_ns - truth->clocks[i - 1].monotonic_ns);
    double since = (double)(int64_t)(perf_ns - truth->clocks[i - 1].perf_ns);
    return truth->clocks[i - 1].monotonic_ns + (uint64_t)(int64_t)(since * (monotonic / perf));
}

/* The last run that SHOWN's thread began before SHOWN's time, or NULL. */
static const struct run *run_of(const struct run_truth *truth, const struct shown *shown)
{
    size_t first = 0, end = truth->count;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        const struct run *run = &truth->runs[middle];
        if (run->tid < shown->tid || (run->tid == shown->tid && run->start_ns <= shown->time_ns))
            first = middle + 1;
        else
            end = middle;
    }
    return first && truth->runs[first - 1].tid == shown->tid ? &truth->runs[first - 1] : NULL;
}

static bool in_arena(const struct run_truth *truth, uint64_t addr)
{
    for (size_t i = 0; i < truth->arena_count; i++)
        if (addr >= truth->arenas[i].start && addr < truth->arenas[i].end)
            return true;
    return false;
}

static bool is_thread(const struct run_truth *truth, const struct shown *shown)
{
    struct shown at_end = *shown;
    at_end.time_ns = UINT64_MAX;
    const struct run *run = run_of(truth, &at_end);
    return run && run->pid == shown->pid;
}

static struct score *score_of(struct run_truth *truth, const char *kind)
{
    for (size_t i = 0; i < truth->kind_count; i++)
        if (strcmp(truth->kinds[i].name, kind) == 0)
            return &truth->kinds[i].score;
    if (truth->kind_count == MAX_KINDS)
        fail(kind, 0, "too many kinds");
    snprintf(truth->kinds[truth->kind_count].name, RUN_NAME_BYTES, "%s", kind);
    return &truth->kinds[truth->kind_count++].score;
}

static void tell(const struct run_truth *truth, const struct shown *shown, const struct run *run)
{
    if (truth->score.wrong + truth->score.missing + truth->stray > SHOWN_DISAGREEMENTS)
        return;
    fprintf(stderr, "truth_check:%s: ", shown->line);
    if (run)
        fprintf(stderr,
                "it is %s, of kind %s, %" PRIu64 " us after its start and %" PRId64
                " us before its end\n",
                run->name, run->kind, (shown->time_ns - run->start_ns) / 1000,
                (int64_t)(run->end_ns - shown->time_ns) / 1000);
    else
        fprintf(stderr, "the thread is not there\n");
}

static void judge_run(struct run_truth *truth, const struct shown *shown, const struct run *run)
{
    struct score *kind = score_of(truth, run->kind);
    const char *name = strcmp(run->name, "-") ? run->name : "[unknown]";
    kind->samples++;
    truth->score.samples++;
    if (strcmp(shown->name, name) == 0) {
        kind->right++;
        truth->score.right++;
        return;
    }
    if (strcmp(shown->name, "[unknown]") == 0) {
        kind->missing++;
        truth->score.missing++;
    } else {
        kind->wrong++;
        truth->score.wrong++;
    }
    tell(truth, shown, run);
}

static void take_shown(struct run_truth *truth, const struct shown *shown)
{
    if (!in_arena(truth, shown->addr) || !is_thread(truth, shown))
        return;
    const struct run *run = run_of(truth, shown);
    uint64_t margin_ns = truth->margin_ns;
    bool begun = run && shown->time_ns - run->start_ns >= margin_ns;
    if (begun && shown->time_ns + margin_ns <= run->end_ns && shown->addr >= run->addr &&
        shown->addr < run->addr + run->bytes) {
        judge_run(truth, shown, run);
        return;
    }
    /* The next run may be this thread's too, and as near. */
    const struct run *next = run ? run + 1 : NULL;
    bool near_next = next && next < truth->runs + truth->count && next->tid == shown->tid &&
                     shown->time_ns + margin_ns >= next->start_ns;
    bool near_end = run && shown->time_ns + margin_ns > run->end_ns &&
                    shown->time_ns <= run->end_ns + margin_ns;
    if (near_next || near_end || (run && !begun)) {
        truth->outside++;
        return;
    }
    truth->stray++;
    tell(truth, shown, NULL);
}

static void read_shown(struct run_truth *truth, const char *line, size_t line_number)
{
    uint64_t seconds, rest;
    struct shown shown = {.line = line};
    int at = 0;
    if (sscanf(line, " %d/%d %" SCNu64 ".%9" SCNu64 ": %" SCNx64 " %n", &shown.pid, &shown.tid,
               &seconds, &rest, &shown.addr, &at) != 5 ||
        !at)
        fail("stdin", line_number, "not a line of perf script -F pid,tid,time,ip,sym --ns");
    shown.time_ns = seconds * 1000000000u + rest;
    if (truth->perf_clock)
        shown.time_ns = to_monotonic(truth, shown.time_ns);
    shown.name = line + at;
    take_shown(truth, &shown);
}

static int compare_kinds(const void *left, const void *right)
{
    return strcmp(((const struct kind *)left)->name, ((const struct kind *)right)->name);
}

static void print_runs(struct run_truth *truth)
{
    const struct score *score = &truth->score;
    printf("samples %zu right %zu wrong %zu missing %zu outside %zu stray %zu\n", score->samples,
           score->right, score->wrong, score->missing, truth->outside, truth->stray);
    qsort(truth->kinds, truth->kind_count, sizeof *truth->kinds, compare_kinds);
    for (size_t i = 0; i < truth->kind_count; i++) {
        score = &truth->kinds[i].score;
        printf("%s samples %zu right %zu wrong %zu missing %zu\n", truth->kinds[i].name,
               score->samples, score->right, score->wrong, score->missing);
    }
}

static void judge_runs(struct run_truth *truth, const char *path)
{
    char *line = NULL;
    size_t line_bytes = 0, line_number = 0;
    read_runs(truth, path);
    while (getline(&line, &line_bytes, stdin) > 0) {
        strip_newline(line);
        read_shown(truth, line, ++line_number);
    }
    print_runs(truth);
    free(line);
    free(truth->runs);
}

/* ---- Both ---- */

static bool has_runs(const char *path)
{
    char line[16] = "";
    FILE *file = fopen(path, "r");
    if (!file)
        fail(path, 0, "can't read it");
    bool has = fgets(line, sizeof line, file) && strcmp(line, "# runs\n") == 0;
    fclose(file);
    return has;
}

int main(int argc, char **argv)
{
    static struct run_truth runs = {.margin_ns = 100000};
    uint64_t events_margin_ns = 0;
    bool usage = false;
    for (int option; (option = getopt(argc, argv, "m:p")) != -1;) {
        if (option == 'm')
            runs.margin_ns = events_margin_ns = strtoull(optarg, NULL, 10) * 1000;
        else if (option == 'p')
            runs.perf_clock = true;
        else
            usage = true;
    }
    if (usage || optind != argc - 1) {
        fprintf(stderr, "usage: perf script -F time,ip,sym --ns | truth_check "
                        "[-m MICROSECONDS] TRUTH\n"
                        "       perf script -F pid,tid,time,ip,sym --ns | truth_check "
                        "[-m MICROSECONDS] [-p] TRUTH\n");
        return 2;
    }
    if (has_runs(argv[optind]))
        judge_runs(&runs, argv[optind]);
    else if (!runs.perf_clock)
        judge_events(argv[optind], events_margin_ns);
    else
        fail(argv[optind], 1, "is no log of runs, for which -p is");
    return EXIT_SUCCESS;
}
