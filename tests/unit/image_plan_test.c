/* Which functions share an image, and where they stand in it. */
#include "injector/inject/layout/image_plan.h"

#include "tests/unit/process_builder.h"

#define MIB (UINT64_C(1) << 20)

enum { ADDR = 0x40000000, PAGE = 4096 };

static struct process_builder built;
static struct image_plan plan;

static int begin(void **state)
{
    (void)state;
    process_begin(&built);
    plan = (struct image_plan){0};
    return 0;
}

static int end(void **state)
{
    (void)state;
    image_plan_free(&plan);
    process_free(&built);
    plan = (struct image_plan){0};
    process_begin(&built); /* a test with a loop ends there, too */
    return 0;
}

static struct jit_function *function(uint32_t index)
{
    return &built.process.log.functions[index];
}

static const struct function_place *place(uint32_t index)
{
    return &plan.processes[0].places[index];
}

/* A function that the timeline found visible. */
static uint32_t add_visible(uint64_t addr, uint64_t size, uint32_t generation)
{
    uint32_t index = build_load(&built, 1, addr, size);
    built.states[index] = (struct function_state){.generation = generation, .visible = true};
    return index;
}

static void make_plan(enum image_layout layout)
{
    struct findings findings = {0};
    const struct timeline timeline = built_timeline(&built);
    assert_int_equal(image_plan_add(&plan, &built.process, &timeline, layout, &findings), 0);
    assert_int_equal(findings_lost(&findings), 0);
}

/* Image INDEX holds just the function with the given number. */
static void assert_holds_alone(size_t index, uint32_t number)
{
    assert_true(index < plan.image_count);
    assert_int_equal(plan.images[index].body_count, 1);
    assert_int_equal(plan.images[index].bodies[0].number, number);
    assert_int_equal(place(number)->image, index);
}

static void test_neighbours_share_an_image(void **state)
{
    (void)state;
    add_visible(ADDR + 0x200, 0x80, 0);
    add_visible(ADDR + 0x100, 0x80, 0);
    add_visible(ADDR + 5 * MIB, 0x80, 0);
    make_plan(LAYOUT_IMAGE);
    assert_int_equal(plan.image_count, 1);
    const struct jit_image *image = plan.images;
    assert_int_equal(image->process, 0);
    assert_int_equal(image->body_count, 3);
    const uint32_t by_address[] = {1, 0, 2};
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(image->bodies[i].number, by_address[i]);
        assert_int_equal(place(i)->image, 0);
    }
}

static void test_base_is_a_page_in_front_of_the_text(void **state)
{
    static const uint64_t addrs[] = {0x10000, ADDR, ADDR + 1, ADDR + PAGE - 1, UINT64_MAX - 0x200};
    (void)state;
    for (size_t i = 0; i < sizeof addrs / sizeof addrs[0]; i++) {
        begin(NULL);
        add_visible(addrs[i], 0x80, 0);
        add_visible(addrs[i] + 0x100, 0x40, 0);
        make_plan(LAYOUT_IMAGE);
        const struct jit_image *image = plan.images;
        assert_int_equal(image->base % PAGE, 0);
        assert_in_range(image->text_start, PAGE, 2 * PAGE - 1);
        assert_int_equal(image->base + image->text_start, addrs[i]);
        assert_int_equal(image->base + image->text_end, addrs[i] + 0x140);
        assert_int_equal(image->tables_start, 0);
        end(NULL);
    }
}

/* Nothing but the ELF header may stand in front of a function that is alone. */
static void test_a_function_alone_has_just_the_elf_header_in_front(void **state)
{
    (void)state;
    add_visible(ADDR + 0x123, 0x80, 0);
    add_visible(ADDR + 0x123, 0x90, 1);
    make_plan(LAYOUT_IMAGE);
    for (size_t i = 0; i < 2; i++) {
        const struct jit_image *image = &plan.images[i];
        assert_int_equal(image->text_start, IMAGE_ELF_HEADER_BYTES);
        assert_int_equal(image->base, ADDR + 0x123 - IMAGE_ELF_HEADER_BYTES);
        assert_int_equal(image->text_end, image->text_start + 0x80 + i * 0x10);
    }
}

/* A hole in front of its headers would be filled: elf_image_test looks at the blocks. */
static void test_a_large_function_alone_without_code_has_a_page_in_front(void **state)
{
    (void)state;
    for (uint64_t size = MIB; size <= MIB + 1; size++)
        for (int code = 0; code < 2; code++) {
            begin(NULL);
            add_visible(ADDR, size, 0);
            function(0)->code = code ? built.code : NULL;
            make_plan(LAYOUT_IMAGE);
            bool page = size > MIB && !code;
            assert_int_equal(plan.images[0].text_start, page ? PAGE : IMAGE_ELF_HEADER_BYTES);
            end(NULL);
        }
}

static void test_text_ends_with_the_highest_end(void **state)
{
    (void)state;
    add_visible(ADDR, 0x1000, 0);
    add_visible(ADDR + 0x100, 0x100, 1);
    make_plan(LAYOUT_IMAGE);
    assert_int_equal(plan.images[0].base + plan.images[0].text_end, ADDR + 0x1000);
    assert_int_equal(plan.images[1].base + plan.images[1].text_end, ADDR + 0x200);
}

static void test_invisible_functions_are_in_no_image(void **state)
{
    (void)state;
    add_visible(ADDR, 0x80, 0);
    build_load(&built, 1, ADDR + 0x80, 0x80);
    make_plan(LAYOUT_IMAGE);
    assert_int_equal(plan.image_count, 1);
    assert_holds_alone(0, 0);
    assert_int_equal(place(1)->image, NO_IMAGE);
}

static void test_no_functions_no_images(void **state)
{
    (void)state;
    make_plan(LAYOUT_IMAGE);
    assert_int_equal(plan.image_count, 0);
    build_load(&built, 1, ADDR, 0x80);
    make_plan(LAYOUT_FUNCTION);
    assert_int_equal(plan.image_count, 0);
}

/* ---- Neighbourhoods ---- */

static void assert_images_across(uint64_t gap, size_t images)
{
    begin(NULL);
    add_visible(ADDR, 0x80, 0);
    add_visible(ADDR + 0x80 + gap, 0x80, 0);
    make_plan(LAYOUT_IMAGE);
    assert_int_equal(plan.image_count, images);
    end(NULL);
}

static void test_a_gap_of_more_than_16_mib_splits(void **state)
{
    (void)state;
    assert_images_across(16 * MIB, 1);
    assert_images_across(16 * MIB + 1, 2);
    assert_images_across(UINT64_C(1) << 46, 2); /* V8's builtins */
}

/* The gap counts from the highest end so far, not from the end of the function before. */
static void test_a_long_function_bridges_a_gap(void **state)
{
    (void)state;
    add_visible(ADDR, 20 * MIB, 0);
    add_visible(ADDR + 0x100, 0x80, 1);
    add_visible(ADDR + 30 * MIB, 0x80, 0);
    make_plan(LAYOUT_IMAGE);
    assert_int_equal(place(0)->image, place(2)->image);
}

static void test_a_neighbourhood_spans_a_gib_at_most(void **state)
{
    (void)state;
    for (uint64_t at = 0; at < 100; at++)
        add_visible(ADDR + at * 15 * MIB, 0x80, 0);
    make_plan(LAYOUT_IMAGE);
    assert_int_equal(plan.image_count, 2);
    for (size_t i = 0; i < 2; i++)
        assert_true(plan.images[i].text_end - plan.images[i].text_start <= 1024 * MIB);
}

/* ---- Generations ---- */

static void test_generations_go_to_images_of_their_own(void **state)
{
    (void)state;
    add_visible(ADDR, 0x80, 0);
    add_visible(ADDR, 0x80, 1);
    add_visible(ADDR + 0x100, 0x80, 0);
    add_visible(ADDR, 0x80, 2);
    add_visible(ADDR + 0x100, 0x80, 1);
    make_plan(LAYOUT_IMAGE);
    assert_int_equal(plan.image_count, 3);
    static const uint32_t expected[3][2] = {{0, 2}, {1, 4}, {3, 0}};
    for (size_t g = 0; g < 3; g++) {
        assert_int_equal(plan.images[g].body_count, g < 2 ? 2 : 1);
        for (size_t i = 0; i < plan.images[g].body_count; i++) {
            assert_int_equal(plan.images[g].bodies[i].number, expected[g][i]);
            assert_int_equal(place(expected[g][i])->image, g);
        }
    }
}

static void test_generations_that_do_not_occur_make_no_image(void **state)
{
    (void)state;
    add_visible(ADDR, 0x80, 1);
    add_visible(ADDR + 0x100, 0x80, 5);
    make_plan(LAYOUT_IMAGE);
    assert_int_equal(plan.image_count, 2);
    assert_holds_alone(0, 0);
    assert_holds_alone(1, 1);
}

static void test_a_function_alone_makes_one_image_whatever_its_generation(void **state)
{
    (void)state;
    add_visible(ADDR, 0x80, 4000000);
    make_plan(LAYOUT_IMAGE);
    assert_int_equal(plan.image_count, 1);
    assert_holds_alone(0, 0);
}

static void test_images_stand_by_address_then_by_generation(void **state)
{
    (void)state;
    add_visible(ADDR + 64 * MIB, 0x80, 1);
    add_visible(ADDR + 64 * MIB, 0x80, 0);
    add_visible(ADDR, 0x80, 1);
    add_visible(ADDR, 0x80, 0);
    make_plan(LAYOUT_IMAGE);
    assert_int_equal(plan.image_count, 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_holds_alone(i, 3 - i);
}

static void test_processes_follow_one_another(void **state)
{
    (void)state;
    add_visible(ADDR, 0x80, 0);
    build_load(&built, 1, ADDR + 0x100, 0x80); /* never visible */
    make_plan(LAYOUT_IMAGE);
    make_plan(LAYOUT_IMAGE);
    assert_int_equal(plan.image_count, 2);
    assert_int_equal(plan.process_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        const struct process_plan *planned = &plan.processes[i];
        assert_int_equal(plan.images[i].process, i);
        assert_int_equal(plan.images[i].bodies[0].number, 0);
        assert_int_equal(planned->first_image, i);
        assert_int_equal(planned->end_image, i + 1);
        assert_int_equal(planned->places[0].image, i);
        assert_int_equal(planned->places[1].image, NO_IMAGE);
    }
}

static void test_layout_function_gives_each_its_own_image(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 5; i++)
        add_visible(ADDR + (4 - i) * 0x40, 0x100, 0);
    make_plan(LAYOUT_FUNCTION);
    assert_int_equal(plan.image_count, 5);
    for (uint32_t i = 0; i < 5; i++) {
        assert_holds_alone(i, 4 - i);
        assert_int_equal(plan.images[i].text_end - plan.images[i].text_start, 0x100);
    }
}

/* ---- Gaps ---- */

static void test_gap_after_is_the_padding_to_the_next(void **state)
{
    static const uint8_t gaps[] = {0, 1, 15, 63};
    (void)state;
    for (size_t i = 0; i < sizeof gaps; i++) {
        begin(NULL);
        add_visible(ADDR, 0x80, 0);
        add_visible(ADDR + 0x80u + gaps[i], 0x80, 0);
        make_plan(LAYOUT_IMAGE);
        assert_int_equal(place(0)->gap_after, gaps[i]);
        assert_true(place(1)->gap_after > 63); /* nothing follows */
        end(NULL);
    }
}

static void test_more_than_63_bytes_are_no_padding(void **state)
{
    static const uint64_t gaps[] = {64, 255, 256, 256 + 16, MIB};
    (void)state;
    for (size_t i = 0; i < sizeof gaps / sizeof gaps[0]; i++) {
        begin(NULL);
        add_visible(ADDR, 0x80, 0);
        add_visible(ADDR + 0x80 + gaps[i], 0x80, 0);
        make_plan(LAYOUT_IMAGE);
        assert_true(place(0)->gap_after > 63);
        end(NULL);
    }
}

/* Of one mapping's perf map there is nothing else in it. */
static void test_any_gap_in_the_same_memory_is_padding(void **state)
{
    (void)state;
    uint32_t first = add_visible(ADDR, 0x80, 0);
    add_visible(ADDR + 0x80 + MIB, 0x80, 0);
    add_visible(ADDR + 0x180 + MIB, 0x80, 0);
    built.process.log.functions[first].same_memory = true;
    make_plan(LAYOUT_IMAGE);
    assert_int_equal(place(0)->gap_after, MIB);
    assert_true(place(1)->gap_after > MIB);
}

/* A record over the gap would give another function's addresses away. */
static void test_a_gap_that_another_function_reaches_into_does_not_count(void **state)
{
    (void)state;
    add_visible(ADDR, 0x200, 0);
    add_visible(ADDR + 0x40, 0x80, 1);
    add_visible(ADDR + 0xd0, 0x80, 1);
    make_plan(LAYOUT_IMAGE);
    for (uint32_t i = 0; i < 3; i++)
        assert_true(place(i)->gap_after > 63);
}

static void test_invisible_functions_do_not_fill_a_gap(void **state)
{
    (void)state;
    add_visible(ADDR, 0x80, 0);
    build_load(&built, 1, ADDR + 0x80, 0x10);
    add_visible(ADDR + 0x90, 0x80, 0);
    make_plan(LAYOUT_IMAGE);
    assert_int_equal(place(0)->gap_after, 0x10);
}

/* ---- Random functions ---- */

static bool overlap(const struct jit_function *a, const struct jit_function *b)
{
    return a->addr < b->addr + b->size && b->addr < a->addr + a->size;
}

/* Generations as the timeline gives them: one more than those of all that it lies upon. */
static void add_random(uint64_t *seed, uint32_t spread)
{
    uint64_t addr = ADDR + (uint64_t)random_below(seed, spread) * 64;
    uint32_t index = add_visible(addr, 1 + random_below(seed, 300), 0), generation = 0;
    for (uint32_t i = 0; i < index; i++)
        if (overlap(function(i), function(index)) && built.states[i].generation >= generation)
            generation = built.states[i].generation + 1;
    built.states[index].generation = generation;
}

static void assert_sound(const struct jit_image *image, uint32_t number)
{
    assert_true(image->body_count > 0);
    for (size_t i = 0; i < image->body_count; i++) {
        const struct jit_function *here = function(image->bodies[i].number);
        assert_int_equal(place(image->bodies[i].number)->image, number);
        assert_true(here->addr >= image->base + image->text_start);
        assert_true(here->addr + here->size <= image->base + image->text_end);
        if (i > 0) {
            const struct jit_function *before = function(image->bodies[i - 1].number);
            assert_true(before->addr + before->size <= here->addr);
        }
    }
}

static void test_random_functions_lie_in_one_image_each_without_overlap(void **state)
{
    uint64_t seed = 4711;
    (void)state;
    for (uint32_t spread = 4; spread < 10000000; spread *= 3) {
        size_t functions = 0;
        begin(NULL);
        for (int i = 0; i < 300; i++)
            add_random(&seed, spread);
        make_plan(LAYOUT_IMAGE);
        for (uint32_t i = 0; i < plan.image_count; i++) {
            assert_sound(&plan.images[i], i);
            functions += plan.images[i].body_count;
        }
        assert_int_equal(functions, 300);
        end(NULL);
    }
}

/* Two functions that share addresses are alone in their images; the others make one for each run
 * between them. */
static void test_images_apart_do_not_reach_over_each_other(void **state)
{
    (void)state;
    add_visible(ADDR, 0x80, 0);
    add_visible(ADDR + 0x100, 0x80, 0);
    add_visible(ADDR + 0x200, 0x80, 0);
    add_visible(ADDR + 0x240, 0x20, 1);
    add_visible(ADDR + 0x300, 0x80, 0);
    add_visible(ADDR + 0x400, 0x80, 0);
    make_plan(LAYOUT_APART);
    assert_int_equal(plan.image_count, 4);
    assert_int_equal(plan.images[0].body_count, 2);
    assert_int_equal(plan.images[0].text_start % PAGE, 0);
    assert_holds_alone(1, 2);
    assert_holds_alone(2, 3);
    assert_int_equal(plan.images[3].body_count, 2);
    for (size_t i = 1; i < 4; i++)
        assert_int_equal(plan.images[i].text_start, IMAGE_ELF_HEADER_BYTES);
}

static void test_images_apart_are_one_where_no_address_is_shared(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 50; i++)
        add_visible(ADDR + i * 0x40, 0x40, 0);
    make_plan(LAYOUT_APART);
    assert_int_equal(plan.image_count, 1);
    assert_int_equal(plan.images[0].body_count, 50);
}

/* The last function is reached by the first, across the one between. */
static void test_images_apart_see_a_long_function(void **state)
{
    (void)state;
    add_visible(ADDR, 0x1000, 0);
    add_visible(ADDR + 0x100, 0x80, 1);
    add_visible(ADDR + 0xf00, 0x80, 2);
    add_visible(ADDR + 0x1000, 0x80, 0);
    make_plan(LAYOUT_APART);
    assert_int_equal(plan.image_count, 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_holds_alone(i, i);
}

/* Random functions with 64 bytes between them, most of them used once more: no image contains an
 * address of another one's function, but for the owners of the same addresses. */
static void test_random_images_apart(void **state)
{
    unsigned random = 7;
    (void)state;
    for (uint64_t addr = ADDR, i = 0; i < 200; i++) {
        uint64_t size = 1 + (uint64_t)rand_r(&random) % 0x200;
        for (int owners = 1 + rand_r(&random) % 3, g = 0; g < owners; g++)
            add_visible(addr, size, (uint32_t)g);
        addr += size + IMAGE_ELF_HEADER_BYTES + (uint64_t)rand_r(&random) % 32;
    }
    make_plan(LAYOUT_APART);
    for (size_t i = 0; i < plan.image_count; i++) {
        const struct jit_image *image = &plan.images[i];
        for (uint32_t f = 0; f < built.process.log.function_count; f++) {
            bool inside = function(f)->addr >= image->base &&
                          function(f)->addr < image->base + image->text_end;
            assert_true(place(f)->image == i || !inside ||
                        function(f)->addr == image->base + image->text_start);
        }
    }
}

/* A library between two functions would be within their image; libdw finds it no more then. */
static void test_images_apart_do_not_reach_over_a_library(void **state)
{
    static const char *const names[] = {"/usr/lib/libc.so.6", "//anon", "/memfd:code (deleted)"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        for (int layout = LAYOUT_IMAGE; layout <= LAYOUT_APART; layout++) {
            begin(NULL);
            add_visible(ADDR, 0x80, 0);
            add_visible(ADDR + MIB, 0x80, 0);
            build_map(&built, 0, ADDR + 0x80, PAGE, names[i]);
            make_plan((enum image_layout)layout);
            assert_int_equal(plan.image_count, layout == LAYOUT_APART && i == 0 ? 2 : 1);
            end(NULL);
        }
}

/* The child's functions lie around what its parent has mapped. */
static void test_images_apart_do_not_reach_over_a_library_of_the_parent(void **state)
{
    struct process_builder *parent = malloc(sizeof *parent);
    (void)state;
    assert_non_null(parent);
    process_begin(parent);
    build_map(parent, 0, ADDR + 2 * PAGE, PAGE, "/usr/lib/libc.so.6");
    built.process.parent = &parent->process;
    add_visible(ADDR, 0x80, 0);
    add_visible(ADDR + MIB, 0x80, 0);
    make_plan(LAYOUT_APART);
    assert_int_equal(plan.image_count, 2);
    process_free(parent);
    free(parent);
}

/* The memory that the functions are in may be a file. */
static void test_images_apart_may_lie_in_a_file(void **state)
{
    (void)state;
    add_visible(ADDR, 0x80, 0);
    add_visible(ADDR + PAGE, 0x80, 0);
    build_map(&built, 0, ADDR - PAGE, MIB, "/dev/shm/code");
    build_map(&built, 0, ADDR + 0x80, PAGE, "/tmp/reaches into the second one");
    make_plan(LAYOUT_APART);
    assert_int_equal(plan.image_count, 1);
}

/* No page in front of the first function where a library's end is. */
static void test_images_apart_keep_off_a_library_in_front(void **state)
{
    (void)state;
    for (uint64_t gap = 0; gap <= PAGE; gap += PAGE) {
        begin(NULL);
        add_visible(ADDR + PAGE, 0x80, 0);
        add_visible(ADDR + PAGE + 0x100, 0x80, 0);
        build_map(&built, 0, ADDR - MIB, 2 * PAGE, "/usr/lib/libm.so.6");
        build_map(&built, 0, ADDR + PAGE - gap - MIB, MIB, "/usr/lib/libc.so.6");
        make_plan(LAYOUT_APART);
        assert_int_equal(plan.image_count, 1);
        assert_int_equal(plan.images[0].text_start, gap ? PAGE : IMAGE_ELF_HEADER_BYTES);
        end(NULL);
    }
}

#define PLAN_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAN_TEST(test_neighbours_share_an_image),
        PLAN_TEST(test_a_function_alone_has_just_the_elf_header_in_front),
        PLAN_TEST(test_text_ends_with_the_highest_end),
        PLAN_TEST(test_invisible_functions_are_in_no_image),
        PLAN_TEST(test_no_functions_no_images),
        PLAN_TEST(test_a_long_function_bridges_a_gap),
        PLAN_TEST(test_a_neighbourhood_spans_a_gib_at_most),
        PLAN_TEST(test_generations_go_to_images_of_their_own),
        PLAN_TEST(test_generations_that_do_not_occur_make_no_image),
        PLAN_TEST(test_a_function_alone_makes_one_image_whatever_its_generation),
        PLAN_TEST(test_images_stand_by_address_then_by_generation),
        PLAN_TEST(test_processes_follow_one_another),
        PLAN_TEST(test_layout_function_gives_each_its_own_image),
        PLAN_TEST(test_any_gap_in_the_same_memory_is_padding),
        PLAN_TEST(test_a_gap_that_another_function_reaches_into_does_not_count),
        PLAN_TEST(test_invisible_functions_do_not_fill_a_gap),
        PLAN_TEST(test_images_apart_do_not_reach_over_each_other),
        PLAN_TEST(test_images_apart_are_one_where_no_address_is_shared),
        PLAN_TEST(test_images_apart_see_a_long_function),
        PLAN_TEST(test_random_images_apart),
        PLAN_TEST(test_images_apart_do_not_reach_over_a_library),
        PLAN_TEST(test_images_apart_do_not_reach_over_a_library_of_the_parent),
        PLAN_TEST(test_images_apart_may_lie_in_a_file),
        PLAN_TEST(test_images_apart_keep_off_a_library_in_front),
        /* These begin and end by themselves, once a case. */
        cmocka_unit_test(test_base_is_a_page_in_front_of_the_text),
        cmocka_unit_test(test_a_large_function_alone_without_code_has_a_page_in_front),
        cmocka_unit_test(test_a_gap_of_more_than_16_mib_splits),
        cmocka_unit_test(test_gap_after_is_the_padding_to_the_next),
        cmocka_unit_test(test_more_than_63_bytes_are_no_padding),
        cmocka_unit_test(test_random_functions_lie_in_one_image_each_without_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
