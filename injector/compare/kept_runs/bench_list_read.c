/* The reading half of bench_list.h. */
#include "injector/compare/kept_runs/bench_list.h"

#include "injector/files/file_bytes.h"
#include "injector/files/regular_file.h"
#include "injector/profile/run_file.h"
#include "injector/text/code_name.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FIELDS_MOST = 64, FACTS_MOST = 200 };

struct list_reading {
    const char *path;
    size_t line; /* from 1 */
    struct bench_list *list;
    struct findings *findings;
    char *fields[FIELDS_MOST];
    size_t field_count;
};

static int fail(struct list_reading *reading, const char *what)
{
    return report_failure(reading->findings, "%s:%zu: %s", reading->path, reading->line, what);
}

static int find_word(const char *const *words, int count, const char *word)
{
    for (int i = 0; i < count; i++)
        if (strcmp(words[i], word) == 0)
            return i;
    return -1;
}

/* ---- Lines ---- */

static int read_version(struct list_reading *reading)
{
    char *end;
    if (reading->field_count != 2 || strcmp(reading->fields[0], "perfjit-bench"))
        return fail(reading, "is no list of a bench: its first line is \"perfjit-bench\", and a "
                             "version");
    unsigned long version = strtoul(reading->fields[1], &end, 10);
    if (*end || version != BENCH_VERSION)
        return report_failure(reading->findings,
                              "%s:%zu: version %s; this perfjit reads version %d", reading->path,
                              reading->line, reading->fields[1], BENCH_VERSION);
    return 0;
}

static int read_order(struct list_reading *reading)
{
    int order = reading->field_count == 2
                    ? find_word(bench_order_words, BENCH_ORDERS, reading->fields[1])
                    : -1;
    if (order < 0)
        return fail(reading, "an order is turns, blocks or apart");
    reading->list->order = (enum bench_order)order;
    return 0;
}

static int read_fact(struct list_reading *reading)
{
    int side = reading->field_count == 4
                   ? find_word(bench_side_words, BENCH_SIDES, reading->fields[1])
                   : -1;
    if (side < 0)
        return fail(reading, "a fact is of base or new, and has a name and a value");
    if (reading->list->facts[side].count == FACTS_MOST)
        return fail(reading, "more than 200 facts of a side");
    return bench_list_add_fact(reading->list, (enum bench_side)side, reading->fields[2],
                               reading->fields[3])
               ? report_failure(reading->findings, "out of memory")
               : 0;
}

static int read_number(struct list_reading *reading, struct bench_run *run, char *field)
{
    char *equals = strchr(field, '='), *end;
    if (!equals)
        return fail(reading, "what follows a run's file is NAME=NUMBER");
    *equals = '\0';
    int number = find_word(bench_number_words, RUN_NUMBERS, field);
    if (number < 0)
        return 0;
    errno = 0;
    run->numbers[number] = strtoull(equals + 1, &end, 10);
    return equals[1] < '0' || equals[1] > '9' || *end || errno
               ? fail(reading, "what follows a run's file is NAME=NUMBER")
               : 0;
}

/* A file of the bench's own directory. */
static bool is_file_name(const char *name)
{
    size_t bytes = strlen(name);
    return bytes > 4 && bytes < 200 && name[0] != '.' && !strchr(name, '/') &&
           strcmp(name + bytes - 4, ".run") == 0;
}

static int read_run(struct list_reading *reading)
{
    struct bench_run run = {0};
    int side = reading->field_count >= 3
                   ? find_word(bench_side_words, BENCH_SIDES, reading->fields[1])
                   : -1;
    if (side < 0 || !is_file_name(reading->fields[2]))
        return fail(reading, "a run is of base or new, and has a file NAME.run");
    run.side = (enum bench_side)side;
    run.file = reading->fields[2];
    for (size_t i = 3; i < reading->field_count; i++)
        if (read_number(reading, &run, reading->fields[i]))
            return -1;
    return bench_list_add_run(reading->list, &run)
               ? report_failure(reading->findings, "out of memory")
               : 0;
}

static int read_line(struct list_reading *reading)
{
    const char *word = reading->fields[0];
    if (reading->line == 1)
        return read_version(reading);
    if (strcmp(word, "order") == 0)
        return read_order(reading);
    if (strcmp(word, "fact") == 0)
        return read_fact(reading);
    return strcmp(word, "run") == 0 ? read_run(reading) : 0;
}

/* ---- The text ---- */

static int split(struct list_reading *reading, char *line)
{
    reading->field_count = 0;
    for (char *field = line; field;) {
        char *tab = strchr(field, '\t');
        if (reading->field_count == FIELDS_MOST)
            return fail(reading, "a line of more than 64 fields");
        if (tab)
            *tab++ = '\0';
        if (!code_name_is_printable(field, strlen(field)))
            return fail(reading, "a line that can't be shown");
        reading->fields[reading->field_count++] = field;
        field = tab;
    }
    return 0;
}

/* The lines of TEXT, which are cut apart. */
static int read_lines(struct list_reading *reading, char *text)
{
    char *newline;
    for (char *line = text; (newline = strchr(line, '\n')); line = newline + 1) {
        *newline = '\0';
        reading->line++;
        if (strcmp(line, "end") == 0 && reading->line > 1)
            return newline[1] ? fail(reading, "there is something behind the end") : 0;
        if (split(reading, line) || read_line(reading))
            return -1;
    }
    reading->line++;
    return fail(reading, "it is cut short: its last line is \"end\"");
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* A run that is listed twice would count as two. */
static int check_names(const struct list_reading *reading)
{
    const struct bench_list *list = reading->list;
    const char **names = calloc(list->run_count + 1, sizeof *names), *twice = NULL;
    if (!names)
        return report_failure(reading->findings, "out of memory");
    for (size_t i = 0; i < list->run_count; i++)
        names[i] = list->runs[i].file;
    qsort(names, list->run_count, sizeof *names, compare_names);
    for (size_t i = 1; i < list->run_count; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            twice = names[i];
    free(names);
    return twice ? report_failure(reading->findings, "%s: %s is the file of two runs",
                                  reading->path, twice)
                 : 0;
}

int bench_list_parse(struct bench_list *list, const char *path, const char *text, size_t size,
                     struct findings *findings)
{
    struct list_reading reading = {.path = path, .list = list, .findings = findings};
    *list = (struct bench_list){0};
    char *copy = memchr(text, 0, size) ? NULL : strndup(text, size);
    if (!copy)
        return memchr(text, 0, size)
                   ? report_failure(findings, "%s: has a byte of 0: it is no list of a bench", path)
                   : report_failure(findings, "out of memory");
    int result = read_lines(&reading, copy) || check_names(&reading) ? -1 : 0;
    free(copy);
    return result;
}

static int read_file(struct bench_list *list, const char *path, struct findings *findings)
{
    struct stat status;
    int fd = regular_file_open(path, O_NOFOLLOW, &status);
    if (fd < 0)
        return report_failure(findings, "%s: can't read it: %s%s", path, regular_file_error(errno),
                              errno == ENOENT || errno == ENOTDIR
                                  ? "; a bench is the directory that perfjit bench has written"
                                  : "");
    if (status.st_size == 0 || status.st_size > BENCH_LIST_MOST_BYTES) {
        close(fd);
        return report_failure(findings, "%s: has %lld bytes: it is no list of a bench", path,
                              (long long)status.st_size);
    }
    void *bytes = (void *)(uintptr_t)file_bytes(fd, &status);
    int error = errno;
    close(fd);
    if (!bytes)
        return report_failure(findings, "%s: can't read it: %s", path, file_bytes_error(error));
    int result = bench_list_parse(list, path, bytes, (size_t)status.st_size, findings);
    munmap(bytes, (size_t)status.st_size);
    return result;
}

int bench_list_read(struct bench_list *list, const char *directory, struct findings *findings)
{
    char *path;
    *list = (struct bench_list){0};
    if (asprintf(&path, "%s/" BENCH_LIST_NAME, directory) < 0)
        return report_failure(findings, "out of memory");
    int result = read_file(list, path, findings);
    free(path);
    return result;
}
