/* What is at an address in a life of a process: files, memory and functions, its own and what its
 * ancestors had. */
#include "tests/unit/space_world.h"

enum { FAR = 0x7000000, LATE = 1000 };

static struct address_space space;

/* The space of PID's life at TIME, played to there. */
static void open_space(uint32_t pid, uint64_t time)
{
    assert_int_equal(address_space_begin(&space, &source, life_at(pid, time), NULL), 0);
    assert_int_equal(address_space_play(&space, time), 0);
}

static void assert_at(uint64_t addr, uint32_t what)
{
    assert_int_equal(address_space_at(&space, addr), what);
}

static struct change function_change(uint64_t time, uint32_t index)
{
    uint64_t addr = addr_of(index);
    return (struct change){time, addr, addr + SLOT, CHANGE_FUNCTION, index};
}

/* ---- The source ---- */

static void test_functions_are_numbered_over_all_processes(void **state)
{
    size_t process;
    (void)state;
    put_memory(PID, ARENA, 100);
    put_memory(OTHER, ARENA, 100);
    put_memory(CHILD, ARENA, 100);
    read_lives();
    assert_int_equal(make_process(PID, 100), 0);
    assert_int_equal(make_process(OTHER, 100), 1);
    assert_int_equal(make_process(CHILD, 100), 2);
    add_function(0, ARENA, "a");
    add_function(0, ARENA + SLOT, "b");
    add_function(2, ARENA, "c"); /* process 1 has none */
    begin_source();
    assert_int_equal(source.function_count, 3);
    assert_string_equal(space_function(&source, 0, &process)->name, "a");
    assert_int_equal(process, 0);
    assert_string_equal(space_function(&source, 1, &process)->name, "b");
    assert_int_equal(process, 0);
    assert_string_equal(space_function(&source, 2, &process)->name, "c");
    assert_int_equal(process, 2);
}

static void test_a_life_without_code_has_no_process(void **state)
{
    (void)state;
    put_memory(PID, ARENA, 100);
    put_memory(OTHER, ARENA, 100);
    read_lives();
    make_process(OTHER, 100);
    begin_source();
    assert_true(source.process_of[life_at(PID, 100)] == SIZE_MAX);
    assert_int_equal(source.process_of[life_at(OTHER, 100)], 0);
}

static void test_functions_up_to_the_first_number_that_is_none(void **state)
{
    struct code_log log = {.function_count = SPACE_FUNCTION - 1};
    (void)state;
    put_memory(PID, ARENA, 100);
    read_lives();
    make_process(PID, 100);
    timelines[0].log = &log;
    assert_int_equal(space_source_begin(&source, &records, &processes, timelines), 0);
    assert_int_equal(source.function_count, SPACE_FUNCTION - 1);
    space_source_free(&source);
    log.function_count++;
    assert_int_equal(space_source_begin(&source, &records, &processes, timelines), -1);
}

/* ---- Mappings ---- */

static void test_a_mapping_is_there_from_its_time_on(void **state)
{
    (void)state;
    put_map(PID, FAR, "/bin/one", 1, 1, 100);
    read_lives();
    begin_source();
    open_space(PID, 99);
    assert_at(FAR, SPACE_NOTHING);
    assert_int_equal(address_space_play(&space, 100), 0);
    assert_at(FAR - 1, SPACE_NOTHING);
    assert_at(FAR, map_number(PID, 0));
    assert_at(FAR + PAGE_BYTES - 1, map_number(PID, 0));
    assert_at(FAR + PAGE_BYTES, SPACE_NOTHING);
    address_space_end(&space);
}

static void test_a_later_mapping_takes_its_addresses_and_leaves_the_rest(void **state)
{
    (void)state;
    put_map(PID, FAR, "/bin/one", 1, 1, 100);
    put_map(PID, FAR + PAGE_BYTES / 2, "/bin/two", 1, 2, 200);
    read_lives();
    begin_source();
    open_space(PID, 200);
    assert_at(FAR + PAGE_BYTES / 2 - 1, map_number(PID, 0));
    assert_at(FAR + PAGE_BYTES / 2, map_number(PID, 1));
    address_space_end(&space);
}

static void test_a_mapped_dump_is_not_of_the_program(void **state)
{
    (void)state;
    put_map(PID, FAR, "/bin/one", 1, 1, 100);
    put_map(PID, FAR, "/tmp/jit-4711.dump", 1, 2, 200);
    read_lives();
    begin_source();
    open_space(PID, LATE);
    assert_at(FAR, map_number(PID, 0));
    address_space_end(&space);
}

/* The timeline drops four records; they stand in no order. */
static void test_mappings_that_the_timeline_drops_are_not_there(void **state)
{
    static const size_t dropped[] = {4, 0, 3, 1};
    (void)state;
    for (uint64_t i = 0; i < 6; i++)
        put_memory(PID, FAR + i * PAGE_BYTES, 100 + i);
    read_lives();
    make_process(PID, 100);
    for (size_t i = 0; i < 4; i++)
        drop_record(0, records.maps[map_number(PID, dropped[i])].record.offset);
    begin_source();
    open_space(PID, LATE);
    for (size_t i = 0; i < 6; i++)
        assert_at(FAR + i * PAGE_BYTES, i == 2 || i == 5 ? map_number(PID, i) : SPACE_NOTHING);
    address_space_end(&space);
}

static void test_a_program_has_nothing_of_the_one_before_its_exec(void **state)
{
    (void)state;
    put_map(PID, FAR, "/bin/one", 1, 1, 100);
    put_exec(PID, 200);
    put_map(PID, FAR + PAGE_BYTES, "/bin/two", 1, 2, 300);
    read_lives();
    begin_source();
    open_space(PID, 100);
    assert_int_equal(address_space_play(&space, LATE), 0);
    assert_at(FAR, map_number(PID, 0));
    assert_at(FAR + PAGE_BYTES, SPACE_NOTHING);
    address_space_end(&space);
    open_space(PID, 300);
    assert_at(FAR, SPACE_NOTHING);
    assert_at(FAR + PAGE_BYTES, map_number(PID, 1));
    address_space_end(&space);
}

/* ---- Changes ---- */

/* Of the second process, whose functions have numbers behind the first one's. */
static void test_a_function_is_there_until_it_is_gone(void **state)
{
    const struct change gone = {300, ARENA, ARENA + SLOT, CHANGE_UNLOADED, 0};
    (void)state;
    put_memory(PID, ARENA, 100);
    put_memory(OTHER, ARENA, 100);
    read_lives();
    make_process(PID, 100);
    make_process(OTHER, 100);
    add_function(0, ARENA, "of the first");
    add_function(1, addr_of(0), "a");
    add_function(1, addr_of(1), "b");
    add_change(1, &(const struct change){200, ARENA, ARENA + SLOT, CHANGE_FUNCTION, 0});
    const struct change second = function_change(200, 1);
    add_change(1, &second);
    add_change(1, &gone);
    begin_source();
    open_space(OTHER, 199);
    assert_at(ARENA, map_number(OTHER, 0));
    assert_int_equal(address_space_play(&space, 200), 0);
    assert_at(ARENA, SPACE_FUNCTION | 1);
    assert_at(ARENA + SLOT - 1, SPACE_FUNCTION | 1);
    assert_at(ARENA + SLOT, SPACE_FUNCTION | 2);
    assert_at(ARENA + 2 * SLOT, map_number(OTHER, 0));
    assert_int_equal(address_space_play(&space, 300), 0);
    assert_at(ARENA, SPACE_NOTHING);
    assert_at(ARENA + SLOT, SPACE_FUNCTION | 2);
    address_space_end(&space);
}

/* The change tells which of the process's maps it is a part of. */
static void test_a_part_of_a_dropped_mapping_is_that_mapping(void **state)
{
    const struct change part = {200, ARENA, ARENA + SLOT, CHANGE_MAP, 1};
    (void)state;
    put_memory(PID, FAR, 50);
    put_memory(OTHER, FAR, 100);
    put_memory(OTHER, ARENA, 200);
    read_lives();
    make_process(OTHER, 100);
    drop_record(0, records.maps[map_number(OTHER, 1)].record.offset);
    add_change(0, &part);
    begin_source();
    open_space(OTHER, LATE);
    assert_at(FAR, map_number(OTHER, 0));
    assert_at(ARENA, map_number(OTHER, 1));
    assert_at(ARENA + SLOT, SPACE_NOTHING);
    address_space_end(&space);
}

static void test_of_a_change_and_a_mapping_of_one_time_the_mapping_is_later(void **state)
{
    (void)state;
    put_map(PID, ARENA, "/bin/one", 1, 1, 200);
    read_lives();
    make_process(PID, 200);
    add_function(0, ARENA, "a");
    const struct change change = function_change(200, 0);
    add_change(0, &change);
    begin_source();
    open_space(PID, 200);
    assert_at(ARENA, map_number(PID, 0));
    address_space_end(&space);
}

static void test_mappings_and_changes_are_played_by_time(void **state)
{
    (void)state;
    put_map(PID, ARENA, "/bin/one", 1, 1, 100);
    put_map(PID, ARENA, "/bin/two", 1, 2, 300);
    read_lives();
    make_process(PID, 100);
    add_function(0, ARENA, "a");
    const struct change early = function_change(200, 0), late = function_change(400, 0);
    add_change(0, &early);
    add_change(0, &late);
    begin_source();
    open_space(PID, 100);
    const uint32_t expected[] = {map_number(PID, 0), SPACE_FUNCTION, map_number(PID, 1),
                                 SPACE_FUNCTION};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(address_space_play(&space, 100 * (i + 1)), 0);
        assert_at(ARENA, expected[i]);
        assert_int_equal(space.version, i + 1);
    }
    assert_int_equal(address_space_play(&space, LATE), 0);
    assert_int_equal(space.version, 4);
    address_space_end(&space);
}

/* ---- Children ---- */

static void test_a_child_has_what_its_parent_had_when_it_was_forked(void **state)
{
    struct address_space parent;
    (void)state;
    put_map(PID, FAR, "/bin/one", 1, 1, 100);
    put_map(PID, FAR + PAGE_BYTES, "/bin/one", 1, 1, 100);
    put_fork(CHILD, PID, 200);
    put_map(PID, FAR + 2 * PAGE_BYTES, "/bin/two", 1, 2, 300);
    put_map(CHILD, FAR, "/bin/three", 1, 3, 400);
    read_lives();
    begin_source();
    assert_int_equal(address_space_begin(&parent, &source, life_at(PID, 100), NULL), 0);
    assert_int_equal(address_space_play(&parent, 200), 0);
    assert_int_equal(address_space_begin(&space, &source, life_at(CHILD, 200), &parent), 0);
    assert_at(FAR, map_number(PID, 0));
    assert_int_equal(address_space_play(&space, LATE), 0);
    assert_at(FAR, map_number(CHILD, 0));
    assert_at(FAR + PAGE_BYTES, map_number(PID, 1));
    assert_at(FAR + 2 * PAGE_BYTES, SPACE_NOTHING);
    address_space_end(&space);
    address_space_end(&parent);
}

static void test_what_a_child_unloads_is_its_parents_no_more(void **state)
{
    const struct change gone = {300, ARENA, ARENA + SLOT, CHANGE_UNLOADED, 0};
    struct address_space parent;
    (void)state;
    put_memory(PID, ARENA, 100);
    put_fork(CHILD, PID, 200);
    put_memory(CHILD, FAR, 300);
    read_lives();
    make_process(CHILD, 300);
    add_change(0, &gone);
    begin_source();
    assert_int_equal(address_space_begin(&parent, &source, life_at(PID, 100), NULL), 0);
    assert_int_equal(address_space_play(&parent, 200), 0);
    assert_int_equal(address_space_begin(&space, &source, life_at(CHILD, 300), &parent), 0);
    assert_int_equal(address_space_play(&space, 300), 0);
    assert_at(ARENA, SPACE_NOTHING);
    assert_at(ARENA + SLOT, map_number(PID, 0));
    assert_int_equal(address_space_at(&parent, ARENA), map_number(PID, 0));
    address_space_end(&space);
    address_space_end(&parent);
}

/* More than are asked one by one.  Each generation maps a page of its own, and one that all map. */
static void test_after_22_forks_the_eldest_ancestors_maps_are_there(void **state)
{
    enum { FORKS = 22 };
    struct address_space spaces[FORKS + 1];
    (void)state;
    for (uint32_t i = 0; i <= FORKS; i++) {
        if (i > 0)
            put_fork(PID + i, PID + i - 1, 100 * i);
        put_map(PID + i, FAR + i * PAGE_BYTES, "/bin/own", 1, 1, 100 * i + 10);
        put_map(PID + i, ARENA, "/bin/all", 1, 2, 100 * i + 20);
    }
    read_lives();
    begin_source();
    for (uint32_t i = 0; i <= FORKS; i++) {
        const struct address_space *parent = i > 0 ? &spaces[i - 1] : NULL;
        uint64_t time = 100 * i + 50;
        assert_int_equal(address_space_begin(&spaces[i], &source, life_at(PID + i, time), parent),
                         0);
        if (i > 0) /* it has mapped nothing yet */
            assert_int_equal(address_space_at(&spaces[i], ARENA), map_number(PID + i - 1, 1));
        assert_int_equal(address_space_play(&spaces[i], time), 0);
        assert_int_equal(address_space_at(&spaces[i], ARENA), map_number(PID + i, 1));
        for (uint32_t k = 0; k <= i; k++)
            assert_int_equal(address_space_at(&spaces[i], FAR + k * PAGE_BYTES),
                             map_number(PID + k, 0));
        assert_int_equal(address_space_at(&spaces[i], FAR + (i + 1) * PAGE_BYTES), SPACE_NOTHING);
    }
    for (uint32_t i = FORKS + 1; i-- > 0;)
        address_space_end(&spaces[i]);
}

/* ---- Since when ---- */

/* Blocks whose numbers differ by SPACE_BLOCKS are told as one. */
static void test_an_owner_is_as_old_as_the_last_change_of_its_block(void **state)
{
    const uint64_t block = UINT64_C(1) << SPACE_BLOCK_BITS, all = block * SPACE_BLOCKS;
    const uint64_t at = 8 * block;
    const struct change changes[] = {
        {200, at, at + block, CHANGE_FUNCTION, 0},                     /* one block */
        {300, at + 2 * block - 1, at + 3 * block, CHANGE_UNLOADED, 0}, /* two blocks */
        {400, at, at, CHANGE_UNLOADED, 0},                             /* nothing */
        {500, at + all - 1, at + all, CHANGE_UNLOADED, 0},
        {600, 2 * all, 3 * all, CHANGE_UNLOADED, 0},
    };
    (void)state;
    put_memory(PID, FAR, 100);
    read_lives();
    make_process(PID, 100);
    add_function(0, at, "a");
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        add_change(0, &changes[i]);
    begin_source();
    open_space(PID, 400);
    assert_int_equal(address_space_since(&space, at), 2);
    assert_int_equal(address_space_since(&space, at + block - 1), 2);
    assert_int_equal(address_space_since(&space, at - 1), 0);
    assert_int_equal(address_space_since(&space, at + block), 3);
    assert_int_equal(address_space_since(&space, at + 3 * block - 1), 3);
    assert_int_equal(address_space_since(&space, at + 3 * block), 0);
    assert_int_equal(space.version, 4);
    assert_int_equal(address_space_play(&space, 500), 0);
    assert_int_equal(address_space_since(&space, at - 1), 5);
    assert_int_equal(address_space_since(&space, at), 2);
    assert_int_equal(address_space_play(&space, 600), 0);
    assert_int_equal(address_space_since(&space, at), 6);
    assert_int_equal(address_space_since(&space, at + 5 * block), 6);
    address_space_end(&space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SPACE_TEST(test_functions_are_numbered_over_all_processes),
        SPACE_TEST(test_a_life_without_code_has_no_process),
        SPACE_TEST(test_functions_up_to_the_first_number_that_is_none),
        SPACE_TEST(test_a_mapping_is_there_from_its_time_on),
        SPACE_TEST(test_a_later_mapping_takes_its_addresses_and_leaves_the_rest),
        SPACE_TEST(test_a_mapped_dump_is_not_of_the_program),
        SPACE_TEST(test_mappings_that_the_timeline_drops_are_not_there),
        SPACE_TEST(test_a_program_has_nothing_of_the_one_before_its_exec),
        SPACE_TEST(test_a_function_is_there_until_it_is_gone),
        SPACE_TEST(test_a_part_of_a_dropped_mapping_is_that_mapping),
        SPACE_TEST(test_of_a_change_and_a_mapping_of_one_time_the_mapping_is_later),
        SPACE_TEST(test_mappings_and_changes_are_played_by_time),
        SPACE_TEST(test_a_child_has_what_its_parent_had_when_it_was_forked),
        SPACE_TEST(test_what_a_child_unloads_is_its_parents_no_more),
        SPACE_TEST(test_after_22_forks_the_eldest_ancestors_maps_are_there),
        SPACE_TEST(test_an_owner_is_as_old_as_the_last_change_of_its_block),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
