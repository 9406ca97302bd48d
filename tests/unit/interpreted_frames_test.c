/* Interpreted functions: what stands for which function when, and frames on stacks that may hold
 * anything. */
#include "injector/history/process/interpreted_functions.h"
#include "injector/unwind/stacks/stack_walk.h"

#include "tests/unit/process_builder.h"

enum { FP = 6, PERF_BP = 6, PERF_SP = 7, PERF_IP = 8, PERF_R13 = 21 };
enum { CODE = 0x20000, CODE_BYTES = 0x1000, STACK = 0x70000, WORDS = 64 };
enum { F = 0x500000, G = 0x500100, NATIVE = 0x500200, NOBODY = 0x500300 };
enum { F_AT = 0x600000, G_AT = 0x600100, F_BYTES = 20, G_BYTES = 10 };

static struct process_builder built;
static struct jit_processes processes;
static struct findings findings;
static uint64_t words[WORDS];

/* ---- Which function a word stands for ---- */

static void add(uint64_t function, uint64_t time_ns, const char *name, uint64_t position,
                uint32_t bytes)
{
    const struct jit_interpreted record = {.function = function,
                                           .function_bytes = 88,
                                           .position = position,
                                           .position_bytes = bytes,
                                           .name = name,
                                           .name_bytes = (uint32_t)strlen(name),
                                           .file = ""};
    assert_int_equal(interpreted_code_add(&built.process.log.interpreted, &record, time_ns, 0), 0);
}

static void assert_found(uint64_t function, uint64_t time_ns, const char *expected)
{
    const struct interpreted_function *found =
        interpreted_code_find(&built.process.log.interpreted, function, time_ns);
    if (!expected) {
        assert_null(found);
        return;
    }
    assert_non_null(found);
    assert_string_equal(found->record.name, expected);
}

static void test_a_word_stands_for_the_newest_function_of_the_time(void **state)
{
    (void)state;
    add(G, 300, "third", 0, 0);
    add(G, 100, "first", 0, 0);
    add(F, 50, "other", 0, 0);
    add(G, 200, "second", 0, 0);
    add(G, 200, "second again", 0, 0);
    interpreted_code_sort(&built.process.log.interpreted);
    assert_found(G, 100, "first");
    assert_found(G, 199, "first");
    assert_found(G, 200, "second again");
    assert_found(G, 299, "second again");
    assert_found(G, 5000, "third");
    assert_found(G, 1, "first"); /* it was there before it was logged */
    assert_found(F, 1, "other");
    assert_found(F + 1, 100, NULL);
    assert_found(G + 8, 100, NULL);
    assert_found(0, 100, NULL);
}

static void test_places_of_a_function(void **state)
{
    (void)state;
    const struct interpreted_function function = {
        .record = {.position = F_AT, .position_bytes = F_BYTES}};
    assert_int_equal(interpreted_room_bytes(&function), F_BYTES + 2);
    assert_int_equal(interpreted_offset(&function, F_AT), 0);
    assert_int_equal(interpreted_offset(&function, F_AT + F_BYTES - 1), F_BYTES - 1);
    assert_int_equal(interpreted_offset(&function, F_AT + F_BYTES), F_BYTES + 1);
    assert_int_equal(interpreted_offset(&function, F_AT - 1), F_BYTES + 1);
}

/* ---- Frames ---- */

static struct perf_file file;
static struct records records = {.file = &file};
static struct timeline timeline;
static struct space_source source;
static uint32_t first_function;
static struct address_space space;
static struct stack_walker walker;

static void map_function(uint32_t number)
{
    const struct jit_function *function = &built.process.log.functions[number];
    assert_int_equal(address_map_set(&space.map, function->addr, function->addr + function->size,
                                     SPACE_FUNCTION | number),
                     0);
}

/* Word NUMBER of the stack, and where it is. */
static uint64_t at(size_t number)
{
    return STACK + 8 * number;
}

/* A frame whose fp is at word NUMBER, of FUNCTION at POSITION; its caller's is at CALLER. */
static void put_frame(size_t number, uint64_t function, uint64_t position, size_t caller)
{
    words[number] = at(caller);
    words[number + 1] = CODE + 0x100 + number;
    words[number - 3] = function;
    words[number - 8] = position;
}

static int begin_frames(void **state)
{
    (void)state;
    memset(words, 0, sizeof words);
    findings = (struct findings){.quiet = true};
    process_begin(&built);
    processes = (struct jit_processes){.items = &built.process, .count = 1};
    struct jit_function *code = build_function(&built, CODE, CODE_BYTES);
    jit_function_set_name(code, "Interpreter", 11);
    build_event(&built, 1, CODE_EVENT_LOAD, 0);
    const struct jit_interpreter interpreter = {CODE, CODE_BYTES, FP, -24, -64, 13};
    assert_int_equal(interpreted_code_add_interpreter(&built.process.log.interpreted, &interpreter),
                     0);
    return 0;
}

static int end_frames(void **state)
{
    (void)state;
    process_free(&built);
    findings_free(&findings);
    return 0;
}

static void begin_walk(void)
{
    add(F, 100, "f [interpreted]", F_AT, F_BYTES);
    add(G, 100, "g [interpreted]", G_AT, G_BYTES);
    add(NATIVE, 100, "native [interpreted]", 0, 0);
    struct code_log *log = &built.process.log;
    interpreted_code_sort(&log->interpreted);
    assert_int_equal(
        interpreted_functions_note(log, (const uint8_t *)words, STACK, sizeof words, 500), 0);
    assert_int_equal(interpreted_functions_place(&processes, &records, &findings), 0);
    timeline = built_timeline(&built);
    source = (struct space_source){.records = &records,
                                   .processes = &processes,
                                   .timelines = &timeline,
                                   .first_function = &first_function};
    space = (struct address_space){.source = &source};
    for (uint32_t i = 0; i < log->function_count; i++)
        map_function(i);
    assert_int_equal(stack_walker_begin(&walker, &source, machine_numbered(EM_X86_64),
                                        &(struct stack_walk_options){0}),
                     0);
}

static void end_walk(void)
{
    stack_walker_end(&walker);
    address_map_free(&space.map);
}

/* A walk from word FP_NUMBER as the frame pointer, with R13, of the first BYTES of the stack. */
static enum stack_end walk(size_t fp_number, uint64_t r13, size_t bytes)
{
    static uint64_t registers[4];
    registers[0] = at(fp_number);
    registers[1] = STACK;
    registers[2] = CODE + 0x10;
    registers[3] = r13;
    const struct perf_sample sample = {
        .time_ns = 500,
        .user_registers = {SAMPLE_ABI_64,
                           1 << PERF_BP | 1 << PERF_SP | 1 << PERF_IP | 1 << PERF_R13,
                           (const uint8_t *)registers},
        .user_stack = {.bytes = (const uint8_t *)words, .size = bytes}};
    enum stack_end end = stack_walk(&walker, &sample, &space, SIZE_MAX);
    assert_false(walker.no_memory);
    return end;
}

/* Frame NUMBER is of the function called NAME, at OFFSET in it. */
static void assert_frame(size_t number, const char *name, uint64_t offset)
{
    size_t process;
    const uint64_t ip = walker.ips[number];
    const uint32_t what = walker.frames[number].what;
    assert_true(number < walker.ip_count && what & SPACE_FUNCTION);
    const struct jit_function *function = space_function(&source, what & ~SPACE_FUNCTION, &process);
    assert_string_equal(function->name, name);
    assert_int_equal(ip - function->addr, offset);
    assert_int_equal(address_space_at(&space, ip), what);
}

static void test_a_chain_by_name_with_its_places(void **state)
{
    (void)state;
    put_frame(10, F, F_AT + 2, 20);
    put_frame(20, G, G_AT + 9, 30);
    put_frame(30, NATIVE, 0, 40);
    put_frame(40, F, F_AT, 0);
    words[40] = words[41] = 0;
    begin_walk();
    walk(10, F_AT + 7, sizeof words);
    assert_int_equal(walker.ip_count, 4);
    assert_frame(0, "f [interpreted]", 7);       /* the register is newer than the frame */
    assert_frame(1, "g [interpreted]", G_BYTES); /* a caller's address is one behind */
    assert_frame(2, "native [interpreted]", 1);  /* nothing is known of its place */
    assert_frame(3, "f [interpreted]", 1);
    end_walk();
}

static void test_a_register_counts_for_its_function_alone(void **state)
{
    (void)state;
    put_frame(10, F, F_AT + 2, 20);
    put_frame(20, F, F_AT + 5, 30);
    words[20] = words[21] = 0;
    begin_walk();
    walk(10, G_AT, sizeof words);
    assert_frame(0, "f [interpreted]", 2);
    walk(10, F_AT + F_BYTES, sizeof words); /* behind it */
    assert_frame(0, "f [interpreted]", 2);
    walk(10, F_AT + 1, sizeof words);
    assert_frame(0, "f [interpreted]", 1);
    assert_frame(1, "f [interpreted]", 6); /* not the innermost frame's register */
    end_walk();
}

static void test_what_is_not_known_stays_the_interpreter(void **state)
{
    (void)state;
    put_frame(10, NOBODY, F_AT, 20);
    put_frame(20, F, 0, 30); /* a place that is none */
    put_frame(30, 0, 0, 40);
    words[30] = words[31] = 0;
    begin_walk();
    walk(10, 0, sizeof words);
    assert_int_equal(walker.ip_count, 3);
    assert_frame(0, "Interpreter", 0x10);
    assert_frame(1, "f [interpreted]", F_BYTES + 1);
    assert_frame(2, "Interpreter", 0x100 + 20 - 1);
    end_walk();
}

static void test_a_function_that_was_logged_late_is_told_by_its_place(void **state)
{
    (void)state;
    const uint64_t second_ns = 1000000000;
    put_frame(10, F, G_AT + 3, 20);
    put_frame(20, NATIVE, F_AT + 60, 30);
    put_frame(30, G, F_AT + 40, 40);
    put_frame(40, F, F_AT + 1, 0);
    words[40] = words[41] = 0;
    add(F, 600, "next, which never ran [interpreted]", F_AT + 40, 10);
    add(F, 500 + second_ns, "late [interpreted]", G_AT, G_BYTES);
    add(NATIVE, 500 + second_ns, "behind native [interpreted]", F_AT + 60, 10);
    add(G, 501 + second_ns, "too late [interpreted]", F_AT + 40, 10);
    begin_walk();
    walk(10, 0, sizeof words);
    assert_int_equal(walker.ip_count, 4);
    assert_frame(0, "late [interpreted]", 3);
    assert_frame(1, "behind native [interpreted]", 1);
    assert_frame(2, "Interpreter", 0x100 + 20 - 1); /* g had the memory before, or will have it */
    assert_frame(3, "f [interpreted]", 2);
    end_walk();
}

static void test_a_stack_that_is_too_short_for_the_words(void **state)
{
    (void)state;
    put_frame(10, F, F_AT, 20);
    begin_walk();
    assert_int_not_equal(walk(10, F_AT, 7 * 8), STACK_WHOLE);
    assert_int_equal(walker.ip_count, 1);
    assert_frame(0, "Interpreter", 0x10);
    walk(10, F_AT, 7 * 8 + 7);
    assert_frame(0, "Interpreter", 0x10);
    walk(10, F_AT, 8 * 8);
    assert_frame(0, "f [interpreted]", 0);
    walk(2, F_AT, sizeof words); /* the frame's words are below the stack */
    assert_frame(0, "Interpreter", 0x10);
    walk(1000, F_AT, sizeof words); /* and above it */
    assert_frame(0, "Interpreter", 0x10);
    end_walk();
}

static void test_frames_in_a_circle_end(void **state)
{
    (void)state;
    put_frame(10, F, F_AT, 20);
    put_frame(20, G, G_AT, 10);
    begin_walk();
    walk(10, F_AT, sizeof words);
    assert_true(walker.ip_count >= 2 && walker.ip_count < 8192);
    assert_frame(0, "f [interpreted]", 0);
    assert_frame(1, "g [interpreted]", 1);
    put_frame(20, G, G_AT, 20);
    walk(20, 0, sizeof words);
    assert_true(walker.ip_count < 8192);
    end_walk();
}

static void test_only_what_stacks_have_gets_addresses(void **state)
{
    (void)state;
    put_frame(10, F, F_AT, 20);
    begin_walk();
    assert_int_equal(built.process.log.interpreted.shown_count, 1);
    assert_int_equal(built.process.log.function_count, 2);
    assert_int_equal(jit_process_own_functions(&built.process), 1);
    assert_int_equal(built.process.log.functions[1].size, F_BYTES + 2);
    end_walk();
}

static void test_words_begin_where_the_stack_says(void **state)
{
    (void)state;
    words[10] = F;
    add(F, 100, "f", F_AT, F_BYTES);
    interpreted_code_sort(&built.process.log.interpreted);
    const uint8_t *odd = (const uint8_t *)words + 4;
    assert_int_equal(interpreted_functions_note(&built.process.log, odd, STACK, 400, 500), 0);
    assert_int_equal(built.process.log.interpreted.shown_count, 0);
    assert_int_equal(interpreted_functions_note(&built.process.log, odd, STACK + 4, 400, 500), 0);
    assert_int_equal(built.process.log.interpreted.shown_count, 1);
}

static void test_a_name_that_no_output_may_have(void **state)
{
    (void)state;
    words[10] = F;
    add(F, 100, "f\033[31m\ng\xff", F_AT, F_BYTES);
    interpreted_code_sort(&built.process.log.interpreted);
    assert_int_equal(interpreted_functions_note(&built.process.log, (const uint8_t *)words, STACK,
                                                sizeof words, 500),
                     0);
    assert_string_equal(built.process.log.functions[1].name, "f?[31m g?");
}

#define FRAME_TEST(test) cmocka_unit_test_setup_teardown(test, begin_frames, end_frames)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FRAME_TEST(test_a_word_stands_for_the_newest_function_of_the_time),
        FRAME_TEST(test_places_of_a_function),
        FRAME_TEST(test_a_chain_by_name_with_its_places),
        FRAME_TEST(test_a_register_counts_for_its_function_alone),
        FRAME_TEST(test_what_is_not_known_stays_the_interpreter),
        FRAME_TEST(test_a_function_that_was_logged_late_is_told_by_its_place),
        FRAME_TEST(test_a_stack_that_is_too_short_for_the_words),
        FRAME_TEST(test_frames_in_a_circle_end),
        FRAME_TEST(test_only_what_stacks_have_gets_addresses),
        FRAME_TEST(test_words_begin_where_the_stack_says),
        FRAME_TEST(test_a_name_that_no_output_may_have),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
