/* overlaps: let a reader work on code ranges that overlap each other in one of the ways that a bad
 * reader is slow on.
 *
 *     overlaps READER SHAPE N
 *
 * READER is perf-map (libperfmap's parser), timeline (all functions of one process), or
 * sampled-timeline (the same, looked at 16 times on the way).  N is the number of ranges.  It
 * prints nothing: growth.bats counts its instructions.
 */
#include "injector/timeline/timeline.h"
#include "perfmap/perfmap.h"

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 16, LINE_BYTES = 40, FIRST_TIME_NS = 10 };

#define FIRST_ADDR UINT64_C(0x10000000)

struct range {
    uint64_t addr, size;
};

/* ---- Shapes: the i-th of COUNT ranges ---- */

static struct range shape_random(size_t i, size_t count)
{
    (void)i;
    return (struct range){(uint64_t)rand() % (count * 16), (uint64_t)rand() % 1024 + 1};
}

static struct range shape_inward(size_t i, size_t count)
{
    return (struct range){i, 2 * (count - i)};
}

static struct range shape_outward(size_t i, size_t count)
{
    return (struct range){count - i, 2 * i + 1};
}

static struct range shape_stairs(size_t i, size_t count)
{
    return (struct range){i, count};
}

static struct range shape_stairs_down(size_t i, size_t count)
{
    return (struct range){count - i, count};
}

static struct range shape_same(size_t i, size_t count)
{
    (void)i;
    (void)count;
    return (struct range){0, 64};
}

/* Half of them cover everything, and then the others tile it. */
static struct range shape_tiles(size_t i, size_t count)
{
    bool tile = i >= count / 2;
    return (struct range){tile ? (i - count / 2) * 16 : 0, tile ? 16 : count * 8};
}

/* Tiles, and each fourth range covers them all again. */
static struct range shape_tiles_again(size_t i, size_t count)
{
    return i % 4 ? (struct range){i * 16, 16} : (struct range){0, count * 16};
}

typedef struct range shape_fn(size_t i, size_t count);

static const struct {
    const char *name;
    shape_fn *shape;
} shapes[] = {
    {"random", shape_random}, {"inward", shape_inward},           {"outward", shape_outward},
    {"stairs", shape_stairs}, {"stairs-down", shape_stairs_down}, {"same", shape_same},
    {"tiles", shape_tiles},   {"tiles-again", shape_tiles_again},
};

static shape_fn *shape_of(const char *name)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (strcmp(shapes[i].name, name) == 0)
            return shapes[i].shape;
    errx(2, "%s: no such shape", name);
}

/* ---- Readers ---- */

static void read_perf_map(shape_fn *shape, size_t count)
{
    char *text = malloc(count * LINE_BYTES);
    struct perfmap_table *table;
    size_t length = 0;
    if (!text)
        err(EXIT_FAILURE, "overlaps");
    for (size_t i = 0; i < count; i++) {
        struct range range = shape(i, count);
        length += (size_t)snprintf(text + length, LINE_BYTES, "%jx %jx f\n",
                                   (uintmax_t)(FIRST_ADDR + range.addr), (uintmax_t)range.size);
    }
    if (perfmap_parse(&table, text, length) || perfmap_find(table, 0))
        errx(EXIT_FAILURE, "the map can't be read");
    perfmap_free(table);
    free(text);
}

static void play(shape_fn *shape, size_t count, size_t samples)
{
    struct jit_process process = {.pid = 1, .next = {UINT64_MAX, UINT64_MAX}};
    struct findings findings = {.quiet = true};
    struct timeline timeline;
    uint64_t times_ns[SAMPLES];
    for (size_t i = 0; i < count; i++) {
        struct range range = shape(i, count);
        if (code_log_add_named(&process.log, 0, FIRST_TIME_NS + i, FIRST_ADDR + range.addr,
                               range.size, "f"))
            err(EXIT_FAILURE, "overlaps");
    }
    for (size_t i = 0; i < samples; i++)
        times_ns[i] = FIRST_TIME_NS + count / samples * (i + 1);
    if (timeline_play(&timeline, &process, times_ns, samples, &findings) ||
        timeline.change_count == 0 || timeline.change_count > 2 * count)
        errx(EXIT_FAILURE, "the timeline is not right");
    timeline_free(&timeline);
    code_log_free(&process.log);
    findings_free(&findings);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        errx(2, "usage: overlaps perf-map|timeline|sampled-timeline SHAPE N");
    shape_fn *shape = shape_of(argv[2]);
    size_t count = strtoul(argv[3], NULL, 10);
    if (strcmp(argv[1], "perf-map") == 0)
        read_perf_map(shape, count);
    else if (strcmp(argv[1], "timeline") == 0)
        play(shape, count, 1);
    else if (strcmp(argv[1], "sampled-timeline") == 0)
        play(shape, count, SAMPLES);
    else
        errx(2, "%s: no such reader", argv[1]);
    return EXIT_SUCCESS;
}
