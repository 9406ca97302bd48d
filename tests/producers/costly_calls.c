/* costly_calls READER N: hand READER a large input of each shape that it knows, twice: of the size
 * N, and of 4 N.
 *
 * It prints a line for each shape.  What the reader does is done in `counted` and nothing else is:
 * whoever counts the instructions of each of its calls, as growth.bats does with callgrind, has two
 * numbers for each line.  READER:
 *
 *     perf-map     perfmap_parse, of N lines that overlap
 *     timeline     timeline_play, of N functions that overlap, looked at once and sixteen times
 *     cfi          jitdump_cfi_import, of N FDEs and as many instructions or CIEs
 */
#include "injector/history/timeline/timeline.h"
#include "jitdump/cfi.h"
#include "perfmap/perfmap.h"
#include "tests/unit/eh_frame_section.h"

#include <err.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMES = 4 };

struct input {
    char *text; /* a perf map, or a section */
    size_t text_bytes, count;
    struct jit_process process;
    uint64_t samples[16];
    size_t steps;
};

/* By name, so that callgrind finds it. */
__attribute__((noinline)) static void counted(void (*read)(struct input *input),
                                              struct input *input)
{
    read(input);
}

static void *enough(size_t bytes)
{
    void *memory = malloc(bytes);
    if (!memory)
        err(EXIT_FAILURE, "costly_calls");
    return memory;
}

/* ---- Ranges that overlap ---- */

struct range {
    uint64_t addr, size;
};

static struct range random_ranges(size_t i, size_t count)
{
    (void)i;
    uint64_t addr = (uint64_t)rand() % (count * 16);
    return (struct range){addr, (uint64_t)rand() % 1024};
}

static struct range inward(size_t i, size_t count)
{
    return (struct range){i, 2 * (count - i)};
}

static struct range outward(size_t i, size_t count)
{
    return (struct range){count - i, 2 * i + 1};
}

static struct range stairs(size_t i, size_t count)
{
    return (struct range){i, count};
}

static struct range stairs_down(size_t i, size_t count)
{
    return (struct range){count - i, count};
}

static struct range same(size_t i, size_t count)
{
    (void)i;
    (void)count;
    return (struct range){0, 64};
}

/* Half of them cover everything, and then the others tile it. */
static struct range tiles(size_t i, size_t count)
{
    if (i < count / 2)
        return (struct range){0, count * 8};
    return (struct range){(i - count / 2) * 16, 16};
}

/* Tiles, and each fourth covers them all again. */
static struct range tiles_again(size_t i, size_t count)
{
    return i % 4 ? (struct range){i * 16, 16} : (struct range){0, count * 16};
}

typedef struct range shape_fn(size_t i, size_t count);

static const struct {
    const char *name;
    shape_fn *range;
} shapes[] = {{"random", random_ranges}, {"inward", inward},           {"outward", outward},
              {"stairs", stairs},        {"stairs down", stairs_down}, {"same", same},
              {"tiles", tiles},          {"tiles again", tiles_again}};

enum { SHAPES = sizeof shapes / sizeof *shapes };

/* ---- perfmap_parse ---- */

static void parse_map(struct input *input)
{
    struct perfmap_table *table;
    if (perfmap_parse(&table, input->text, input->text_bytes) || perfmap_bad_lines(table))
        errx(EXIT_FAILURE, "perfmap_parse fails");
    perfmap_free(table);
}

static void cost_of_map(shape_fn *shape, size_t count)
{
    enum { LINE_BYTES = 40 };
    struct input input = {.text = enough(count * LINE_BYTES)};
    for (size_t i = 0; i < count; i++) {
        struct range range = shape(i, count);
        input.text_bytes += (size_t)snprintf(input.text + input.text_bytes, LINE_BYTES,
                                             "%" PRIx64 " %" PRIx64 " f\n", range.addr, range.size);
    }
    counted(parse_map, &input);
    free(input.text);
}

static void cost_of_maps(size_t count)
{
    srand(2);
    for (size_t i = 0; i < SHAPES; i++) {
        puts(shapes[i].name);
        cost_of_map(shapes[i].range, count);
        cost_of_map(shapes[i].range, TIMES * count);
    }
}

/* ---- timeline_play ---- */

static void play(struct input *input)
{
    struct findings findings = {.quiet = true};
    struct timeline timeline;
    if (timeline_play(&timeline, &input->process, NULL, NULL, input->samples, input->steps,
                      &findings))
        errx(EXIT_FAILURE, "timeline_play fails");
    if (timeline.change_count == 0 || timeline.change_count > 2 * input->count)
        errx(EXIT_FAILURE, "%zu changes", timeline.change_count);
    timeline_free(&timeline);
    findings_free(&findings);
}

/* A process that loaded COUNT functions of SHAPE, and was looked at STEPS times between them. */
static void cost_of_timeline(shape_fn *shape, size_t count, size_t steps)
{
    enum { ARENA = 0x10000000, BEGAN = 10 };
    struct input input = {
        .count = count, .process = {.pid = 1, .next = {UINT64_MAX, UINT64_MAX}}, .steps = steps};
    for (size_t i = 0; i < count; i++) {
        struct range range = shape(i, count);
        if (code_log_add_named(&input.process.log, 0, BEGAN + i, ARENA + range.addr,
                               range.size ? range.size : 1, "f"))
            errx(EXIT_FAILURE, "code_log_add_named fails");
    }
    for (size_t i = 0; i < steps; i++)
        input.samples[i] = BEGAN + count / steps * (i + 1);
    counted(play, &input);
    code_log_free(&input.process.log);
}

static void cost_of_timelines(size_t count)
{
    srand(2);
    for (size_t i = 0; i < SHAPES; i++)
        for (size_t steps = 1; steps <= 16; steps += 15) {
            printf("%s, %zu samples\n", shapes[i].name, steps);
            cost_of_timeline(shapes[i].range, count, steps);
            cost_of_timeline(shapes[i].range, TIMES * count, steps);
        }
}

/* ---- jitdump_cfi_import ---- */

static void import(struct input *input)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    if (!cfi || jitdump_cfi_import(cfi, input->text, input->text_bytes, 0, 0, input->count * 16))
        errx(EXIT_FAILURE, "%s", jitdump_cfi_error(cfi));
    jitdump_cfi_free(cfi);
}

/* Many functions that share a CIE, which is as long as they are many; now and then another stands
 * between. */
static void put_long_cies(struct section *section, size_t count)
{
    size_t cies[2] = {put_cie(section, count * 3, 8), put_cie(section, count * 3, 16)};
    for (size_t i = 0; i < count; i++)
        put_fde(section, cies[i % 2]);
}

static void put_many_cies(struct section *section, size_t count)
{
    for (size_t i = 0; i < count; i++)
        put_fde(section, put_cie(section, 1, (uint32_t)i));
}

static void cost_of_section(void (*put)(struct section *section, size_t count), size_t count)
{
    size_t most_bytes = 1024 + count * 128;
    struct input input = {.text = enough(most_bytes), .count = count};
    struct section section = {byte_sink_over(input.text, most_bytes), 0};
    put(&section, count);
    if (section.sink.overflow)
        errx(EXIT_FAILURE, "section too large");
    input.text_bytes = section.sink.size;
    counted(import, &input);
    free(input.text);
}

static void cost_of_sections(size_t count)
{
    puts("long CIEs");
    cost_of_section(put_long_cies, count);
    cost_of_section(put_long_cies, TIMES * count);
    puts("many CIEs");
    cost_of_section(put_many_cies, count);
    cost_of_section(put_many_cies, TIMES * count);
}

int main(int argc, char **argv)
{
    size_t count = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    if (count == 0)
        errx(2, "usage: costly_calls READER N");
    if (strcmp(argv[1], "perf-map") == 0)
        cost_of_maps(count);
    else if (strcmp(argv[1], "timeline") == 0)
        cost_of_timelines(count);
    else if (strcmp(argv[1], "cfi") == 0)
        cost_of_sections(count);
    else
        errx(2, "%s: no such reader", argv[1]);
    return EXIT_SUCCESS;
}
