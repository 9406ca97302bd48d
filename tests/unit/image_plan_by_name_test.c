/* All bodies of a function side by side in one image: which share a row, and where they stand. */
#include "injector/inject/layout/image_plan_by_name.h"

#include "tests/unit/process_builder.h"

#include <inttypes.h>

enum { ADDR = 0x40000000, PAGE = 4096 };

static struct process_builder built[2];
static struct image_plan plan;

static int begin(void **state)
{
    (void)state;
    process_begin(&built[0]);
    process_begin(&built[1]);
    plan = (struct image_plan){0};
    return 0;
}

static int end(void **state)
{
    (void)state;
    image_plan_free(&plan);
    process_free(&built[0]);
    process_free(&built[1]);
    return 0;
}

/* A body NAME of process WHICH, of SIZE bytes that begin at number CODE of those that it has. */
static uint32_t add(int which, uint64_t time_ns, const char *name, uint64_t addr, uint64_t size,
                    size_t code)
{
    uint32_t index = build_load(&built[which], time_ns, addr, size);
    struct jit_function *function = &built[which].process.log.functions[index];
    jit_function_set_name(function, name, strlen(name));
    function->code = built[which].code + code;
    built[which].states[index].visible = true;
    return index;
}

static void make_plan(enum image_rows rows)
{
    struct jit_process processes[2] = {built[0].process, built[1].process};
    const struct timeline timelines[2] = {built_timeline(&built[0]), built_timeline(&built[1])};
    struct findings findings = {0};
    assert_int_equal(image_plan_by_name(&plan, processes, timelines, 2, rows, &findings), 0);
}

static const struct function_place *place(int which, uint32_t function)
{
    return &plan.processes[which].places[function];
}

static void assert_row(size_t image, size_t row, uint32_t first, uint32_t count)
{
    assert_true(image < plan.image_count && row < plan.images[image].row_count);
    assert_int_equal(plan.images[image].rows[row].first, first);
    assert_int_equal(plan.images[image].rows[row].count, count);
}

/* Bodies do not overlap, ascend, and each function's place is one of them. */
static void assert_sound(void)
{
    for (size_t i = 0; i < plan.image_count; i++) {
        const struct jit_image *image = &plan.images[i];
        uint64_t end = image->text_start;
        for (size_t b = 0; b < image->body_count; b++) {
            const struct image_body *body = &image->bodies[b];
            assert_true(body->offset >= end);
            end = body->offset + body->function->size;
            assert_int_equal(place((int)body->process, body->number)->offset, body->offset);
            assert_int_equal(place((int)body->process, body->number)->image, i);
        }
        assert_int_equal(end, image->text_end);
    }
}

static void test_bodies_of_a_name_stand_side_by_side(void **state)
{
    (void)state;
    uint32_t f = add(0, 30, "f", ADDR, 0x40, 0);
    add(0, 10, "g", ADDR + 0x100, 0x40, 1);
    uint32_t again = add(0, 20, "f", ADDR + 0x200, 0x40, 2);
    make_plan(ROWS_NAME);
    assert_int_equal(plan.image_count, 1);
    assert_int_equal(plan.images[0].row_count, 2);
    assert_row(0, 0, 0, 2); /* the row of the lowest address first, in it by time */
    assert_row(0, 1, 2, 1);
    assert_true(place(0, again)->offset < place(0, f)->offset);
    assert_int_equal(plan.images[0].bodies[0].loaded_ns, 20);
    assert_int_equal(plan.images[0].label_count, 2);
    assert_sound();
}

static void test_equal_bodies_have_one_place(void **state)
{
    (void)state;
    uint32_t f = add(0, 10, "f", ADDR, 0x40, 0);
    uint32_t other = add(0, 20, "f", ADDR + 0x100, 0x40, 1);
    uint32_t moved = add(0, 30, "f", ADDR + 0x200, 0x40, 0);
    uint32_t worker = add(1, 5, "f", ADDR + 0x300, 0x40, 0);
    uint32_t longer = add(0, 40, "f", ADDR + 0x400, 0x48, 0);
    uint32_t stranger = add(0, 50, "g", ADDR + 0x500, 0x40, 0);
    make_plan(ROWS_NAME);
    assert_row(0, 0, 0, 3);
    assert_int_equal(place(0, f)->offset, place(0, moved)->offset);
    assert_int_equal(place(0, f)->offset, place(1, worker)->offset);
    assert_int_not_equal(place(0, f)->offset, place(0, other)->offset);
    assert_int_not_equal(place(0, f)->offset, place(0, longer)->offset);
    assert_int_not_equal(place(0, f)->offset, place(0, stranger)->offset);
    assert_int_equal(plan.images[0].bodies[0].process, 1); /* it was the first */
    assert_sound();
}

static void test_bodies_without_bytes_are_equal_by_size(void **state)
{
    (void)state;
    uint32_t f[3];
    for (uint32_t i = 0; i < 3; i++) {
        f[i] = add(0, 10 + i, "f", ADDR + 0x100 * i, i < 2 ? 0x40 : 0x80, 0);
        built[0].process.log.functions[f[i]].code = NULL;
    }
    make_plan(ROWS_NAME);
    assert_int_equal(place(0, f[0])->offset, place(0, f[1])->offset);
    assert_row(0, 0, 0, 2);
    assert_sound();
}

/* Then one map record covers them. */
static void test_neighbours_stay_neighbours(void **state)
{
    (void)state;
    uint32_t f = add(0, 10, "f", ADDR, 0x31, 0);
    uint32_t g = add(0, 10, "g", ADDR + 0x38, 0x40, 1);
    uint32_t far = add(0, 10, "far", ADDR + 0x20000, 0x40, 2);
    add(1, 10, "of another process", ADDR, 0x40, 0);
    make_plan(ROWS_NAME);
    assert_int_equal(place(0, f)->offset, PAGE);
    assert_int_equal(place(0, g)->offset, PAGE + 0x38);
    assert_int_equal(place(0, far)->offset, PAGE + 0x80);
    assert_int_equal(plan.images[0].base, 0);
    assert_int_equal(plan.images[0].label_count, 0);
    assert_sound();
}

/* Readers that take one place in memory for a file find all names then. */
static void test_bodies_with_a_name_each_are_a_picture_of_memory(void **state)
{
    (void)state;
    uint32_t far = add(0, 10, "far", ADDR + 0x20008, 0x40, 2);
    uint32_t f = add(0, 20, "f", ADDR + 0x10, 0x31, 0);
    make_plan(ROWS_NAME);
    assert_int_equal(plan.image_count, 1);
    assert_int_equal(plan.images[0].base, ADDR - PAGE);
    assert_int_equal(plan.images[0].text_start, PAGE + 0x10);
    assert_int_equal(place(0, f)->offset, PAGE + 0x10);
    assert_int_equal(place(0, far)->offset, PAGE + 0x20008);
    assert_sound();
}

/* COUNT functions, each of them STEP behind the one before. */
static void assert_no_picture(uint64_t addr, uint64_t step, int count)
{
    char name[16];
    assert_int_equal(end(NULL), 0);
    assert_int_equal(begin(NULL), 0);
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "f%d", i);
        add(0, 10, name, addr + (uint64_t)i * step, 0x40, (size_t)i);
    }
    make_plan(ROWS_NAME);
    assert_int_equal(plan.images[0].base, 0);
    assert_int_equal(plan.images[0].text_start, PAGE);
    assert_sound();
}

static void test_what_is_no_picture(void **state)
{
    (void)state;
    assert_no_picture(ADDR, 0x20, 2);                         /* in the other's place */
    assert_no_picture(ADDR, (UINT64_C(16) << 20) + 0x100, 2); /* no neighbours */
    assert_no_picture(ADDR, UINT64_C(15) << 20, 10);          /* more than 128 MiB in all */
    assert_no_picture(PAGE + 0x10, 0x80, 2);                  /* no page in front of it */
}

static void test_tiers(void **state)
{
    (void)state;
    const enum image_rows choices[] = {ROWS_NAME, ROWS_FUNCTION};
    for (size_t i = 0; i < 2; i++) {
        add(0, 10, "f", ADDR, 0x40, 0);
        uint32_t tier2 = add(0, 20, "f [tier2]", ADDR + 0x100, 0x40, 0);
        add(0, 30, "g [tier2]", ADDR + 0x200, 0x40, 0);
        make_plan(choices[i]);
        assert_int_equal(plan.images[0].row_count, choices[i] == ROWS_NAME ? 3 : 2);
        assert_int_equal(plan.images[0].label_count, choices[i] == ROWS_NAME ? 0 : 3);
        /* Equal bytes of two tiers are two bodies. */
        assert_int_not_equal(place(0, 0)->offset, place(0, tier2)->offset);
        assert_sound();
        end(NULL);
        begin(NULL);
    }
}

static void test_each_machine_has_an_image(void **state)
{
    (void)state;
    built[1].dump.elf_mach = EM_AARCH64;
    uint32_t f = add(0, 10, "f", ADDR, 0x40, 0);
    uint32_t other = add(1, 10, "f", ADDR, 0x40, 0);
    make_plan(ROWS_NAME);
    assert_int_equal(plan.image_count, 2);
    assert_int_equal(place(0, f)->image, 0);
    assert_int_equal(place(1, other)->image, 1);
    assert_sound();
}

static void test_the_invisible_has_no_place(void **state)
{
    (void)state;
    uint32_t f = add(0, 10, "f", ADDR, 0x40, 0);
    built[0].states[f].visible = false;
    make_plan(ROWS_NAME);
    assert_int_equal(plan.image_count, 0);
    assert_int_equal(place(0, f)->image, NO_IMAGE);
}

/* Names that agree for a long way, and many bodies of each. */
static void test_many(void **state)
{
    (void)state;
    char names[64][32];
    for (uint32_t i = 0; i < 2048; i++) {
        snprintf(names[i % 64], sizeof names[0], "function number %" PRIu32, i % 64);
        add((int)(i % 2), 1000 - i / 64, names[i % 64], ADDR + (uint64_t)i * 0x80, 0x40, i % 512);
    }
    make_plan(ROWS_NAME);
    assert_int_equal(plan.image_count, 1);
    assert_int_equal(plan.images[0].row_count, 64);
    for (size_t row = 0; row < 64; row++)
        assert_row(0, row, (uint32_t)row * 8, 8); /* of 32 bodies each eighth is equal */
    assert_sound();
}

int main(void)
{
#define PLAN_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        PLAN_TEST(test_bodies_of_a_name_stand_side_by_side),
        PLAN_TEST(test_equal_bodies_have_one_place),
        PLAN_TEST(test_bodies_without_bytes_are_equal_by_size),
        PLAN_TEST(test_neighbours_stay_neighbours),
        PLAN_TEST(test_bodies_with_a_name_each_are_a_picture_of_memory),
        PLAN_TEST(test_what_is_no_picture),
        PLAN_TEST(test_tiers),
        PLAN_TEST(test_each_machine_has_an_image),
        PLAN_TEST(test_the_invisible_has_no_place),
        PLAN_TEST(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
