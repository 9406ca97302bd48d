/* See bench_means.h. */
#include "injector/compare/kept_runs/bench_means.h"

#include <stdio.h>

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

char *bench_means_line(const struct balance_side *base, const struct balance_side *new)
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
