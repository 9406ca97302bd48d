/* truth_check: compare the names that perf shows with what a JIT says about itself.
 *
 *     perf script -F time,ip,sym --ns -i perf.jit.data | truth_check TRUTH
 *
 * TRUTH comes from tinyjit --truth or many_functions -t: one event a line, times of CLOCK_MONOTONIC in ns,
 *
 *     # pid PID, arena ADDRESS to ADDRESS...
 *     TIME load ADDRESS SIZE NAME
 *     TIME unload ADDRESS SIZE NAME
 *     TIME move OLD NEW SIZE NAME
 *
 * in the order in which they happened.  A JIT notes an event down before the code runs at its new place, or after it
 * last ran at the old one: so at the time of a sample, the events up to that time say exactly whose code it hit, and there
 * is nothing to be lenient about.
 *
 * Prints "samples N right N wrong N missing N": the samples in the arena, and for how many perf shows the right name,
 * another name, or none.  Code where by TRUTH there is none counts as wrong.  The first few disagreements go to stderr.
 * Exit status 0 if the input could be understood, 1 if not.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

struct truth {
    FILE *file;
    char *line; /* the event that comes next, or NULL at the end */
    size_t line_bytes;
    size_t line_number;
    uint64_t next_ns;
    uint64_t arena_start, arena_end;
    struct code code;
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

static void play_event(struct truth *truth)
{
    uint64_t from, to, size;
    int at = 0;
    if (sscanf(truth->line, "%*u load %" SCNx64 " %" SCNu64 " %n", &to, &size, &at) == 2 && at) {
        add(&truth->code, to, size, truth->line + at);
    } else if (sscanf(truth->line, "%*u unload %" SCNx64 " %" SCNu64 " %n", &from, &size, &at) ==
                   2 &&
               at) {
        forget(&truth->code, from, from + size);
    } else if (sscanf(truth->line, "%*u move %" SCNx64 " %" SCNx64 " %" SCNu64 " %n", &from, &to,
                      &size, &at) == 3 &&
               at) {
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

static void take_sample(struct truth *truth, struct score *score, char *line, size_t line_number,
                        uint64_t *last_ns)
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
    play_until(truth, time_ns);
    if (addr >= truth->arena_start && addr < truth->arena_end)
        judge(score, name_at(&truth->code, addr), line + at, line);
}

int main(int argc, char **argv)
{
    struct truth truth;
    struct score score = {0};
    char *line = NULL;
    size_t line_bytes = 0, line_number = 0;
    uint64_t last_ns = 0;
    if (argc != 2) {
        fprintf(stderr, "usage: perf script -F time,ip,sym --ns | truth_check TRUTH\n");
        return 2;
    }
    open_truth(&truth, argv[1]);
    while (getline(&line, &line_bytes, stdin) > 0) {
        strip_newline(line);
        take_sample(&truth, &score, line, ++line_number, &last_ns);
    }
    printf("samples %zu right %zu wrong %zu missing %zu\n", score.samples, score.right, score.wrong,
           score.missing);
    free(line);
    close_truth(&truth);
    return EXIT_SUCCESS;
}
