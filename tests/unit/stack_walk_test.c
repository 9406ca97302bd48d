/* Stacks in the code of a process that has no files: where chains end, whose fault that is, and
 * that rules are made once. */
#include "injector/unwind/stacks/stack_walk.h"

#include "tests/unit/process_builder.h"

#include <elf.h>

enum { STACK = 0x70000, RECORDS = 2000, WORDS = 2 * RECORDS };
enum { PERF_BP = 6, PERF_SP = 7, PERF_IP = 8 };
enum { LARGE = 0x100000, LARGE_BYTES = 1 << 16, ODD = 1 };
enum { MEMORY = 0x600000 }; /* executable, and not logged */

/* A process, its address space, and a sample of it. */
static struct process_builder built;
static struct jit_processes processes;
static struct perf_file file;
static struct recorded_map memory = {.map = {.start = MEMORY, .len = 0x1000, .filename = "//anon"}};
static struct records records = {.file = &file, .maps = &memory, .map_count = 1};
static struct timeline timeline;
static struct space_source source;
static uint32_t first_function;
static struct address_space space;
static struct stack_walker walker;
static uint64_t words[WORDS], registers[3];

static int begin(void **state)
{
    (void)state;
    process_begin(&built);
    memset(words, 0, sizeof words);
    timeline = built_timeline(&built);
    processes = (struct jit_processes){.items = &built.process, .count = 1};
    source = (struct space_source){.records = &records,
                                   .processes = &processes,
                                   .timelines = &timeline,
                                   .first_function = &first_function};
    space = (struct address_space){.source = &source};
    return stack_walker_begin(&walker, &source, machine_numbered(EM_X86_64),
                              &(struct stack_walk_options){0});
}

static int end(void **state)
{
    (void)state;
    stack_walker_end(&walker);
    address_map_free(&space.map);
    process_free(&built);
    return 0;
}

/* A function at ADDR that is there all the time, of which no bytes are known. */
static struct jit_function *put_function(uint64_t addr, uint64_t size)
{
    uint32_t number = build_load(&built, 1, addr, size);
    struct jit_function *function = &built.process.log.functions[number];
    function->code = NULL;
    assert_int_equal(address_map_set(&space.map, addr, addr + size, SPACE_FUNCTION | number), 0);
    return function;
}

/* INSTRUCTIONS as the only table of FUNCTION, of its SIZE bytes from START on. */
static void put_table(struct jit_function *function, const char *instructions, size_t bytes,
                      uint32_t start, uint32_t size)
{
    struct code_log *log = &built.process.log;
    log->cies = array_room(log->cies, log->cie_count, &log->cie_capacity, sizeof *log->cies);
    log->fdes = array_room(log->fdes, log->fde_count, &log->fde_capacity, sizeof *log->fdes);
    assert_true(log->cies && log->fdes);
    log->cies[log->cie_count] =
        (struct eh_cie){.code_align = 1, .data_align = -8, .return_register = 16};
    log->fdes[log->fde_count] = (struct code_fde){.cie = (uint32_t)log->cie_count++,
                                                  .start = start,
                                                  .size = size,
                                                  .instructions = (const uint8_t *)instructions,
                                                  .instructions_bytes = bytes};
    function->first_fde = (uint32_t)log->fde_count++;
    function->fde_count = 1;
}

/* The CFA is rsp + 8, and there is no caller; or its address stands below the CFA. */
#define NO_CALLER     "\x0c\x07\x08\x07\x10", 5
#define CALLER_ON_TOP "\x0c\x07\x08\x90\x01", 5

static enum stack_end walk_most(uint64_t pc, uint64_t fp, size_t most)
{
    registers[0] = fp;
    registers[1] = STACK;
    registers[2] = pc;
    const struct perf_sample sample = {
        .user_registers = {SAMPLE_ABI_64, 1 << PERF_BP | 1 << PERF_SP | 1 << PERF_IP,
                           (const uint8_t *)registers},
        .user_stack = {.bytes = (const uint8_t *)words, .size = sizeof words}};
    enum stack_end ended = stack_walk(&walker, &sample, &space, most);
    assert_false(walker.no_memory);
    return ended;
}

static enum stack_end walk(uint64_t pc, uint64_t fp)
{
    return walk_most(pc, fp, SIZE_MAX);
}

/* ---- Many frames ---- */

static uint64_t return_of_record(size_t record)
{
    return LARGE + 0x100 + 8 * record;
}

/* COUNT frame records one behind the other, each of which returns elsewhere; the last one to
 * nobody. */
static void put_records(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        words[2 * i] = STACK + 16 * (i + 1);
        words[2 * i + 1] = i + 1 < count ? return_of_record(i) : 0;
    }
}

static void expect_records(size_t count)
{
    put_records(count);
    assert_int_equal(walk(LARGE, STACK), STACK_WHOLE);
    assert_int_equal(walker.ip_count, count);
    for (size_t i = 1; i < count; i++)
        assert_int_equal(walker.ips[i], return_of_record(i - 1) - 1);
}

/* More addresses than the table of rules has room for at first. */
static void test_2000_addresses_have_a_rule_each_which_is_made_once(void **state)
{
    (void)state;
    put_function(LARGE, LARGE_BYTES);
    for (size_t count = 100; count <= RECORDS; count += 100) {
        expect_records(count);
        assert_int_equal(walker.rules.count, count);
    }
    expect_records(100);
    assert_int_equal(walker.rules.count, RECORDS);
}

static void test_a_chain_of_just_as_many_frames_as_there_may_be_is_whole(void **state)
{
    (void)state;
    put_function(LARGE, LARGE_BYTES);
    put_records(100);
    assert_int_equal(walk_most(LARGE, STACK, 100), STACK_WHOLE);
    assert_int_equal(walker.ip_count, 100);
    assert_int_equal(walk_most(LARGE, STACK, 99), STACK_CUT);
    assert_int_equal(walker.ip_count, 99);
    assert_int_equal(walker.chain_end, CHAIN_TOO_LONG);
    assert_int_equal(walk_most(LARGE, STACK, 0), STACK_NOT_READ);
}

/* ---- Tables ---- */

static void test_a_table_holds_from_its_first_byte_to_its_last(void **state)
{
    (void)state;
    put_table(put_function(LARGE, LARGE_BYTES), NO_CALLER, 16, 32);
    assert_int_equal(walk(LARGE + 15, ODD), STACK_NO_TABLE);
    assert_int_equal(walk(LARGE + 16, ODD), STACK_WHOLE);
    assert_int_equal(walk(LARGE + 47, ODD), STACK_WHOLE);
    assert_int_equal(walk(LARGE + 48, ODD), STACK_NO_TABLE);
    assert_int_equal(walker.chain_end, CHAIN_NO_TABLE);
    assert_int_equal(walker.blamed, 0);
    assert_int_equal(walker.blamed_addr, 48);
}

/* No thread begins in a JIT's code: a table of it that leads to address 0 is wrong. */
static void test_a_table_that_leads_to_0_is_wrong(void **state)
{
    (void)state;
    put_table(put_function(LARGE, LARGE_BYTES), CALLER_ON_TOP, 0, LARGE_BYTES);
    assert_int_equal(walk(LARGE + 8, ODD), STACK_WRONG);
    assert_int_equal(walker.chain_end, CHAIN_NO_CODE);
}

static void test_a_frame_pointer_that_leads_to_0_is_the_end(void **state)
{
    (void)state;
    put_function(LARGE, LARGE_BYTES);
    assert_int_equal(walk(LARGE + 8, STACK), STACK_WHOLE);
}

static void test_a_table_that_leads_to_no_code_is_wrong(void **state)
{
    (void)state;
    put_table(put_function(LARGE, LARGE_BYTES), CALLER_ON_TOP, 0, LARGE_BYTES);
    words[0] = LARGE + LARGE_BYTES + 1;
    assert_int_equal(walk(LARGE + 8, ODD), STACK_WRONG);
    assert_int_equal(walker.chain_end, CHAIN_NO_CODE);
    assert_int_equal(walker.ip_count, 1);
    words[0] = LARGE + LARGE_BYTES; /* behind a call that is its last instruction */
    assert_int_equal(walk(LARGE + 8, ODD), STACK_WRONG);
    assert_int_equal(walker.ip_count, 2);
    assert_int_equal(walker.blamed_addr, LARGE_BYTES - 1);
}

/* ---- Trampolines ---- */

static const uint8_t *trampoline_code; /* if its bytes are known */
static bool caller_has_table = true;

/* The innermost function has called one of SIZE bytes, which has no table, no bytes and no frame
 * pointer; that has been called by a function behind whose call the second word returns. */
static enum stack_end walk_through(uint64_t size)
{
    static const uint8_t call[] = {0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0, 0x90, 0x90};
    enum { TRAMPOLINE = 0x300000, CALLER = 0x400000, BEHIND_CALL = 8 };
    put_function(LARGE, LARGE_BYTES);
    put_function(TRAMPOLINE, size)->code = trampoline_code;
    struct jit_function *caller = put_function(CALLER, sizeof call);
    caller->code = call;
    if (caller_has_table)
        put_table(caller, NO_CALLER, 0, sizeof call);
    words[0] = ODD;
    words[1] = TRAMPOLINE + 10;
    words[3] = CALLER + BEHIND_CALL;
    words[4] = ODD; /* so its code, if it is followed, leads nowhere */
    return walk(LARGE + 8, STACK);
}

static void test_the_caller_of_64_bytes_without_a_table_is_found(void **state)
{
    (void)state;
    assert_int_equal(walk_through(64), STACK_WHOLE);
    assert_int_equal(walker.ip_count, 3);
    assert_int_equal(walker.found_count, 1);
}

static void test_the_caller_of_65_bytes_without_a_table_is_not_looked_for(void **state)
{
    (void)state;
    assert_int_equal(walk_through(65), STACK_NO_TABLE);
    assert_int_equal(walker.ip_count, 2);
    assert_int_equal(walker.found_count, 0);
    assert_int_equal(walker.chain_end, CHAIN_NO_TABLE);
}

#define WALK_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

/* Its bytes would have told where it is in its frame, if a direct jump led to the call. */
static void test_the_caller_of_64_bytes_that_are_known_is_not_looked_for(void **state)
{
    static const uint8_t with_call[64] = {[0] = 0xff, [1] = 0xe0, [8] = 0xff, [9] = 0xd0};
    (void)state;
    trampoline_code = with_call;
    assert_int_equal(walk_through(64), STACK_NO_TABLE);
    trampoline_code = NULL;
    assert_int_equal(walker.ip_count, 2);
    assert_int_equal(walker.found_count, 0);
}

/* sub rsp,24; jmp; call rax: the caller of that call is three words above. */
static void test_code_without_a_table_that_is_known_is_followed(void **state)
{
    static const uint8_t followed[64] = {0x48, 0x83, 0xec,       0x18,
                                         0xeb, 0x02, [8] = 0xff, [9] = 0xd0};
    enum { MIDDLE = 0x300000, OUTER = 0x400000 };
    (void)state;
    put_table(put_function(LARGE, 16), CALLER_ON_TOP, 0, 16);
    put_function(MIDDLE, sizeof followed)->code = followed;
    put_table(put_function(OUTER, 16), NO_CALLER, 0, 16);
    words[0] = MIDDLE + 10;
    words[4] = OUTER + 8;
    words[20] = STACK + 8 * 30; /* the frame pointer is the outer one's */
    words[21] = OUTER + 4;
    assert_int_equal(walk(LARGE, STACK + 8 * 20), STACK_WHOLE);
    assert_int_equal(walker.ip_count, 3);
    assert_int_equal(walker.ips[1], MIDDLE + 9);
    assert_int_equal(walker.ips[2], OUTER + 7);
}

/* Of code whose bytes are not known the frame pointer is followed.  The chain is not whole where a
 * return address stands in front of the frame record. */
static void test_a_chain_that_may_leave_out_callers_is_not_whole(void **state)
{
    enum { MIDDLE = 0x300000, OUTER = 0x400000 };
    (void)state;
    put_table(put_function(LARGE, 16), CALLER_ON_TOP, 0, 16);
    put_function(MIDDLE, 65);
    put_table(put_function(OUTER, 16), NO_CALLER, 0, 16);
    words[0] = MIDDLE + 10;
    words[20] = STACK + 8 * 30;
    words[21] = OUTER + 4;
    assert_int_equal(walk(LARGE, STACK + 8 * 20), STACK_WHOLE);
    assert_int_equal(walker.ip_count, 3);
    words[19] = OUTER + 4;
    assert_int_equal(walk(LARGE, STACK + 8 * 20), STACK_UNPROVEN);
    assert_int_equal(walker.ip_count, 3);
    assert_int_equal(walker.chain_end, CHAIN_UNPROVEN);
    assert_int_equal(walker.blamed, 1);
    assert_int_equal(walker.blamed_addr, 9);
    words[19] = 0;
    assert_int_equal(walk(LARGE, STACK + 8 * 20), STACK_WHOLE);
}

/* A caller that was found is not believed where no table leads on from it. */
static void test_a_caller_that_was_found_and_has_no_table_is_left_out(void **state)
{
    (void)state;
    caller_has_table = false;
    assert_int_equal(walk_through(64), STACK_NO_TABLE);
    caller_has_table = true;
    assert_int_equal(walker.ip_count, 2);
    assert_int_equal(walker.found_count, 0);
    assert_int_equal(walker.blamed, 1);
    assert_int_equal(walker.blamed_addr, 9);
}

/* ---- Frames that were made ---- */

/* A frame goes on at byte OFFSET of a function in which nothing is called. */
static enum stack_end go_on_in_function(uint64_t offset)
{
    static const uint8_t nothing[64];
    enum { FUNCTION = 0x300000 };
    struct jit_function *function = put_function(FUNCTION, sizeof nothing);
    function->code = nothing;
    words[1] = FUNCTION + offset;
    return walk(LARGE + 8, STACK);
}

static void test_a_frame_that_goes_on_at_the_first_byte_of_a_function_was_made(void **state)
{
    (void)state;
    put_function(LARGE, LARGE_BYTES);
    words[0] = ODD;
    go_on_in_function(0);
    assert_int_equal(walker.ip_count, 2);
    assert_true(walker.frames[1].exact);
    assert_int_equal(go_on_in_function(1), STACK_NO_TABLE);
    assert_int_equal(walker.ip_count, 1);
}

/* Nor is it a return address where the code in front of it was not logged. */
static void test_a_function_behind_code_that_was_not_logged_is_not_returned_to(void **state)
{
    static const uint8_t nothing[64];
    enum { FUNCTION = MEMORY + 0x100 };
    (void)state;
    assert_int_equal(address_map_set(&space.map, MEMORY, FUNCTION, 0), 0);
    put_function(LARGE, LARGE_BYTES);
    put_function(FUNCTION, sizeof nothing)->code = nothing;
    words[0] = ODD;
    words[1] = FUNCTION;
    walk(LARGE + 8, STACK);
    assert_int_equal(walker.ip_count, 2);
    assert_true(walker.frames[1].exact);
    words[1] = FUNCTION - 8;
    walk(LARGE + 8, STACK);
    assert_int_equal(walker.ip_count, 2);
    assert_false(walker.frames[1].exact);
}

/* A table leads there as well.  A call in front of it is no proof: then that has called. */
static void test_a_table_that_leads_to_the_first_byte_of_a_function(void **state)
{
    enum { CALLEE = 0x300000, FRONT = 0x400000, ENTERED = FRONT + 16 };
    static const uint8_t without_call[16] = {0x90}, with_call[16] = {[14] = 0xff, [15] = 0xd0};
    (void)state;
    put_table(put_function(CALLEE, 16), CALLER_ON_TOP, 0, 16);
    struct jit_function *front = put_function(FRONT, 16);
    front->code = without_call;
    put_table(put_function(ENTERED, 16), NO_CALLER, 0, 16);
    words[0] = ENTERED;
    assert_int_equal(walk(CALLEE, STACK), STACK_WHOLE);
    assert_int_equal(walker.ip_count, 2);
    assert_int_equal(walker.ips[1], ENTERED);
    assert_true(walker.frames[1].exact);
    rule_table_free(&walker.rules);
    built.process.log.functions[front - built.process.log.functions].code = with_call;
    walk(CALLEE, STACK);
    assert_int_equal(walker.ips[1], ENTERED - 1);
    assert_false(walker.frames[1].exact);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WALK_TEST(test_2000_addresses_have_a_rule_each_which_is_made_once),
        WALK_TEST(test_a_chain_of_just_as_many_frames_as_there_may_be_is_whole),
        WALK_TEST(test_a_table_holds_from_its_first_byte_to_its_last),
        WALK_TEST(test_a_table_that_leads_to_0_is_wrong),
        WALK_TEST(test_a_frame_pointer_that_leads_to_0_is_the_end),
        WALK_TEST(test_a_table_that_leads_to_no_code_is_wrong),
        WALK_TEST(test_the_caller_of_64_bytes_without_a_table_is_found),
        WALK_TEST(test_the_caller_of_65_bytes_without_a_table_is_not_looked_for),
        WALK_TEST(test_the_caller_of_64_bytes_that_are_known_is_not_looked_for),
        WALK_TEST(test_code_without_a_table_that_is_known_is_followed),
        WALK_TEST(test_a_chain_that_may_leave_out_callers_is_not_whole),
        WALK_TEST(test_a_caller_that_was_found_and_has_no_table_is_left_out),
        WALK_TEST(test_a_frame_that_goes_on_at_the_first_byte_of_a_function_was_made),
        WALK_TEST(test_a_function_behind_code_that_was_not_logged_is_not_returned_to),
        WALK_TEST(test_a_table_that_leads_to_the_first_byte_of_a_function),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
