/* How long a timeline takes: ten times the functions must not take a hundred times as long, however
 * they overlap.  Functions of which a dump says no more than a name and a size cost their author 60
 * bytes each, whatever they cover. */
#include "injector/timeline/timeline.h"

#include "tests/unit/scratch.h"

#include <time.h>

enum { FEW = 5000, MANY = 50000, FIRST_ADDR = 0x10000000 };

typedef void shape_fn(size_t i, size_t count, uint64_t *addr, uint64_t *size);

static void shape_inward(size_t i, size_t count, uint64_t *addr, uint64_t *size)
{
    *addr = FIRST_ADDR + i;
    *size = 2 * (count - i);
}

static void shape_outward(size_t i, size_t count, uint64_t *addr, uint64_t *size)
{
    *addr = FIRST_ADDR + count - i;
    *size = 2 * i + 1;
}

static void shape_stairs(size_t i, size_t count, uint64_t *addr, uint64_t *size)
{
    *addr = FIRST_ADDR + i;
    *size = count;
}

static void shape_stairs_down(size_t i, size_t count, uint64_t *addr, uint64_t *size)
{
    *addr = FIRST_ADDR + count - i;
    *size = count;
}

static void shape_same(size_t i, size_t count, uint64_t *addr, uint64_t *size)
{
    (void)i;
    (void)count;
    *addr = FIRST_ADDR;
    *size = 64;
}

/* Half of them cover everything, and then the others tile it. */
static void shape_tiles(size_t i, size_t count, uint64_t *addr, uint64_t *size)
{
    bool tile = i >= count / 2;
    *addr = FIRST_ADDR + (tile ? (i - count / 2) * 16 : 0);
    *size = tile ? 16 : count * 8;
}

/* Tiles, and each fourth function covers them all again. */
static void shape_tiles_again(size_t i, size_t count, uint64_t *addr, uint64_t *size)
{
    *addr = FIRST_ADDR + (i % 4 ? i * 16 : 0);
    *size = i % 4 ? 16 : count * 16;
}

/* A process that loaded COUNT functions of SHAPE, and was looked at STEPS times between them. */
static double seconds_to_play(shape_fn *shape, size_t count, size_t steps)
{
    static uint64_t samples[16];
    struct jit_process process = {.pid = 1, .next = {UINT64_MAX, UINT64_MAX}};
    struct findings findings = {.quiet = true};
    struct timeline timeline;
    struct timespec begin, end;
    for (size_t i = 0; i < count; i++) {
        uint64_t addr, size;
        shape(i, count, &addr, &size);
        assert_int_equal(code_log_add_named(&process.log, 0, 10 + i, addr, size, "f"), 0);
    }
    for (size_t i = 0; i < steps; i++)
        samples[i] = 10 + count / steps * (i + 1);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    assert_int_equal(timeline_play(&timeline, &process, samples, steps, &findings), 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    assert_true(timeline.change_count > 0 && timeline.change_count <= 2 * count);
    timeline_free(&timeline);
    code_log_free(&process.log);
    findings_free(&findings);
    return (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
}

static double best_of_three(shape_fn *shape, size_t count, size_t steps)
{
    double best = 1e9;
    for (int run = 0; run < 3; run++) {
        double seconds = seconds_to_play(shape, count, steps);
        best = seconds < best ? seconds : best;
    }
    return best;
}

static void test_time_grows_like_n_log_n(void **state)
{
    shape_fn *const shapes[] = {shape_inward, shape_outward, shape_stairs,     shape_stairs_down,
                                shape_same,   shape_tiles,   shape_tiles_again};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t steps = 1; steps <= 16; steps += 15) {
            double few = best_of_three(shapes[i], FEW, steps);
            double many = best_of_three(shapes[i], MANY, steps);
            print_message("shape %zu, %zu samples: %d functions %.4f s, %d functions %.4f s\n", i,
                          steps, FEW, few, MANY, many);
            /* 20, and room for a clock or a machine that stumbles over a few milliseconds. */
            assert_true(many < 20 * few + 0.2);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_time_grows_like_n_log_n)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
