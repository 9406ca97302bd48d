/* See bench_sides.h. */
#include "injector/compare/bench_sides.h"

#include "injector/arrays/array.h"
#include "injector/compare/kept_runs/bench_balance.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- What the runs have on average ---- */

static double mean(const struct balance_side *side, enum bench_number number)
{
    double sum = 0, count = 0;
    for (size_t i = 0; i < side->list->run_count; i++)
        if (side->list->runs[i].side == side->side) {
            sum += (double)side->list->runs[i].numbers[number];
            count++;
        }
    return count > 0 ? sum / count : 0;
}

static void put(FILE *stream, const struct balance_side *base, const struct balance_side *new,
                enum bench_number number, double unit, const char *what)
{
    double before = mean(base, number) / unit, after = mean(new, number) / unit;
    if (before > 0 && after > 0) /* 0: it is not known */
        fprintf(stream, "%s%.1f, then %.1f %s", ftell(stream) ? "; " : "a run: ", before, after,
                what);
}

/* The line, to be freed; NULL without memory. */
static char *bench_means_line(const struct balance_side *base, const struct balance_side *new)
{
    char *text = NULL;
    size_t bytes;
    FILE *stream = open_memstream(&text, &bytes);
    if (!stream)
        return NULL;
    put(stream, base, new, RUN_WALL_NS, 1e6, "ms on the clock");
    put(stream, base, new, RUN_CPU_NS, 1e6, "ms of CPU time");
    put(stream, base, new, RUN_COMPILE_NS, 1e6, "ms in JIT compilers");
    put(stream, base, new, RUN_CODE_BYTES, 1024, "KiB of JIT code");
    return fclose(stream) ? NULL : text;
}

static int add_files(struct bench_sides *sides, const char *directory,
                     const struct balance_side *of, bool is_new, struct findings *findings)
{
    for (size_t i = 0; i < of->list->run_count; i++) {
        struct side_file file = {NULL, is_new};
        if (of->list->runs[i].side != of->side)
            continue;
        if (asprintf(&file.path, "%s/%s", directory, of->list->runs[i].file) < 0)
            return report_failure(findings, "out of memory");
        if (array_reserve(sides->files, sides->count, sides->capacity)) {
            free(file.path);
            return report_failure(findings, "out of memory");
        }
        sides->files[sides->count++] = file;
    }
    return 0;
}

static enum bench_side last_side(const struct bench_list *list)
{
    return bench_list_count(list, BENCH_NEW) ? BENCH_NEW : BENCH_BASE;
}

static int tell(void *context, const char *text)
{
    char *warning;
    if (asprintf(&warning, "warning: %s", text) < 0)
        return -1;
    int result = run_set_add_note(context, warning);
    free(warning);
    return result;
}

static int add_notes(struct run_set *set, const struct balance_side *base,
                     const struct balance_side *new, enum bench_order order,
                     struct findings *findings)
{
    char *means = bench_means_line(base, new);
    int result = !means || (*means && run_set_add_note(set, means)) ||
                         bench_balance_tell(base, new, order, tell, set)
                     ? report_failure(findings, "out of memory")
                     : 0;
    free(means);
    return result;
}

static int check(const char *const *directories, size_t count, size_t base, size_t new,
                 struct findings *findings)
{
    if (base && new)
        return 0;
    if (count == 1 && base + new)
        return report_failure(findings,
                              "%s: has runs of one side alone: compare it with another, perfjit "
                              "diff %s OTHER.bench",
                              directories[0], directories[0]);
    return report_failure(findings, "%s: has no runs", directories[base ? count - 1 : 0]);
}

int bench_sides_read(struct bench_sides *sides, struct run_set *set, const char *const *directories,
                     size_t count, struct findings *findings)
{
    struct bench_list lists[2] = {0};
    *sides = (struct bench_sides){0};
    int result = bench_list_read(&lists[0], directories[0], findings);
    if (!result && count == 2)
        result = bench_list_read(&lists[1], directories[1], findings);
    const struct balance_side base = {&lists[0], count == 2 ? last_side(&lists[0]) : BENCH_BASE};
    const struct balance_side new = {&lists[count - 1],
                                     count == 2 ? last_side(&lists[1]) : BENCH_NEW};
    size_t base_count = bench_list_count(base.list, base.side);
    size_t new_count = bench_list_count(new.list, new.side);
    enum bench_order order = count == 2 ? ORDER_APART : lists[0].order;
    result = result || check(directories, count, base_count, new_count, findings) ||
             add_files(sides, directories[0], &base, false, findings) ||
             add_files(sides, directories[count - 1], &new, true, findings) ||
             add_notes(set, &base, &new, order, findings);
    sides->paired = (order == ORDER_TURNS || order == ORDER_TOGETHER) && base_count == new_count;
    bench_list_free(&lists[0]);
    bench_list_free(&lists[1]);
    return result ? -1 : 0;
}

void bench_sides_free(struct bench_sides *sides)
{
    for (size_t i = 0; i < sides->count; i++)
        free(sides->files[i].path);
    free(sides->files);
    *sides = (struct bench_sides){0};
}
