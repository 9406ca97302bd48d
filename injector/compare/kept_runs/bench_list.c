/* See bench_list.h; bench_list_read.c reads it. */
#include "injector/compare/kept_runs/bench_list.h"

#include "injector/arrays/array.h"
#include "injector/files/output_file.h"
#include "injector/profile/run_file.h"
#include "injector/text/printable_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const bench_side_words[BENCH_SIDES] = {"base", "new"};
const char *const bench_order_words[BENCH_ORDERS] = {"turns", "blocks", "apart", "together"};
const char *const bench_number_words[RUN_NUMBERS] = {
    "turn",    "wall_ns", "cpu_ns",     "beside_ns",  "stolen_ns", "loop_ns",
    "samples", "lost",    "compile_ns", "code_bytes", "functions"};

int bench_list_add_fact(struct bench_list *list, enum bench_side side, const char *key,
                        const char *value)
{
    struct bench_facts *facts = &list->facts[side];
    char *own_value = printable_copy(value), *own_key = strdup(key);
    if (!own_value || !own_key || array_reserve(facts->items, facts->count, facts->capacity)) {
        free(own_value);
        free(own_key);
        return -1;
    }
    for (size_t i = 0; i < facts->count; i++)
        if (strcmp(facts->items[i].key, key) == 0) {
            free(facts->items[i].value);
            free(own_key);
            facts->items[i].value = own_value;
            return 0;
        }
    facts->items[facts->count++] = (struct bench_fact){own_key, own_value};
    return 0;
}

int bench_list_add_run(struct bench_list *list, const struct bench_run *run)
{
    char *file = strdup(run->file);
    if (!file || array_reserve(list->runs, list->run_count, list->run_capacity)) {
        free(file);
        return -1;
    }
    list->runs[list->run_count] = *run;
    list->runs[list->run_count++].file = file;
    return 0;
}

const char *bench_list_fact(const struct bench_list *list, enum bench_side side, const char *key)
{
    for (size_t i = 0; i < list->facts[side].count; i++)
        if (strcmp(list->facts[side].items[i].key, key) == 0)
            return list->facts[side].items[i].value;
    return NULL;
}

size_t bench_list_count(const struct bench_list *list, enum bench_side side)
{
    size_t count = 0;
    for (size_t i = 0; i < list->run_count; i++)
        count += list->runs[i].side == side;
    return count;
}

void bench_list_free(struct bench_list *list)
{
    for (int side = 0; side < BENCH_SIDES; side++) {
        for (size_t i = 0; i < list->facts[side].count; i++) {
            free(list->facts[side].items[i].key);
            free(list->facts[side].items[i].value);
        }
        free(list->facts[side].items);
    }
    for (size_t i = 0; i < list->run_count; i++)
        free(list->runs[i].file);
    free(list->runs);
    *list = (struct bench_list){0};
}

/* ---- Writing ---- */

static void put(const struct bench_list *list, FILE *stream)
{
    fprintf(stream, "perfjit-bench\t%d\norder\t%s\n", BENCH_VERSION,
            bench_order_words[list->order]);
    for (int side = 0; side < BENCH_SIDES; side++)
        for (size_t i = 0; i < list->facts[side].count; i++)
            fprintf(stream, "fact\t%s\t%s\t%s\n", bench_side_words[side],
                    list->facts[side].items[i].key, list->facts[side].items[i].value);
    for (size_t i = 0; i < list->run_count; i++) {
        const struct bench_run *run = &list->runs[i];
        fprintf(stream, "run\t%s\t%s", bench_side_words[run->side], run->file);
        for (int number = 0; number < RUN_NUMBERS; number++)
            fprintf(stream, "\t%s=%" PRIu64, bench_number_words[number], run->numbers[number]);
        fputc('\n', stream);
    }
    fputs("end\n", stream);
}

static int write_text(const char *path, const char *text, size_t bytes, struct findings *findings)
{
    struct output_file file = {.fd = -1};
    int result = output_file_open_shared(&file, path, findings);
    if (!result)
        result = output_file_write(&file, text, bytes, findings) ||
                 output_file_flush(&file, findings) || output_file_commit(&file, findings);
    output_file_close(&file);
    return result ? -1 : 0;
}

int bench_list_write(const struct bench_list *list, const char *directory,
                     struct findings *findings)
{
    char *text = NULL, *path = NULL;
    size_t bytes;
    FILE *stream = open_memstream(&text, &bytes);
    if (stream)
        put(list, stream);
    bool failed = !stream || ferror(stream);
    if (stream && fclose(stream))
        failed = true;
    if (failed || asprintf(&path, "%s/" BENCH_LIST_NAME, directory) < 0) {
        free(text);
        return report_failure(findings, "out of memory");
    }
    int result = write_text(path, text, bytes, findings);
    free(path);
    free(text);
    return result;
}
