/* The address map against an array with one entry for each address. */
#include "injector/arrays/address_map.h"

#include "tests/unit/scratch.h"

enum { SPACE = 2000, NOBODY = 0 };

struct model {
    uint32_t owner[SPACE];
};

static void model_set(struct model *model, uint64_t start, uint64_t end, uint32_t value)
{
    for (uint64_t addr = start; addr < end; addr++)
        model->owner[addr] = value;
}

/* The map's ranges, from first to last, are sorted, disjoint and not empty, and say what the model
 * says. */
static void assert_same(const struct address_map *map, const struct model *model)
{
    struct address_place place;
    uint64_t reach = 0;
    const struct address_range *range = address_map_find(map, 0, &place);
    for (; range; range = address_map_next(map, &place)) {
        assert_true(range->start < range->end);
        assert_true(range->start >= reach);
        for (; reach < range->start; reach++)
            assert_int_equal(model->owner[reach], NOBODY);
        for (; reach < range->end; reach++)
            assert_int_equal(model->owner[reach], range->value);
    }
    for (; reach < SPACE; reach++)
        assert_int_equal(model->owner[reach], NOBODY);
    assert_null(address_map_next(map, &place));
}

/* find at ADDR: the first range that ends behind it; at: only if it has ADDR; next: the one behind
 * that. */
static void assert_finds(const struct address_map *map, const struct model *model, uint64_t addr)
{
    struct address_place place;
    const struct address_range *range = address_map_find(map, addr, &place);
    uint64_t first = addr;
    while (first < SPACE && model->owner[first] == NOBODY)
        first++;
    assert_ptr_equal(address_map_at(map, addr), first == addr ? range : NULL);
    if (first == SPACE) {
        assert_null(range);
        return;
    }
    assert_non_null(range);
    assert_int_equal(range->value, model->owner[first]);
    assert_true(first == addr ? range->start <= addr && addr < range->end : range->start == first);
    uint64_t end = range->end;
    const struct address_range *next = address_map_next(map, &place);
    while (end < SPACE && model->owner[end] == NOBODY)
        end++;
    if (end == SPACE)
        assert_null(next);
    else
        assert_int_equal(next->start, end);
}

/* find_near finds what find does, wherever it is told to begin. */
static void assert_finds_near(const struct address_map *map, uint64_t addr,
                              struct address_place *near)
{
    struct address_place place;
    const struct address_range *range = address_map_find(map, addr, &place);
    assert_ptr_equal(address_map_find_near(map, addr, near), range);
    assert_int_equal(near->leaf, place.leaf);
    assert_int_equal(near->slot, place.slot);
}

static size_t range_count(const struct address_map *map)
{
    size_t count = 0;
    for (size_t i = 0; i < map->count; i++) {
        assert_in_range(map->leaves[i]->count, 1, ADDRESS_LEAF_RANGES);
        count += map->leaves[i]->count;
    }
    return count;
}

/* STEPS random changes of ranges up to LONGEST addresses long, compared all along. */
static void play(uint64_t seed, int steps, uint32_t longest)
{
    struct address_map map = {0};
    struct model model = {{0}};
    struct address_place near = {0};
    uint64_t upwards = 0;
    for (int i = 0; i < steps; i++) {
        uint64_t start = random_below(&seed, SPACE);
        uint64_t end = start + random_below(&seed, longest + 1);
        uint32_t value = random_below(&seed, 3) ? 1 + random_below(&seed, 1000) : NOBODY;
        end = end < SPACE ? end : SPACE;
        model_set(&model, start, end, value);
        int result = value == NOBODY ? address_map_clear(&map, start, end)
                                     : address_map_set(&map, start, end, value);
        assert_int_equal(result, 0);
        assert_finds(&map, &model, random_below(&seed, SPACE));
        upwards = (upwards + random_below(&seed, 9)) % SPACE;
        assert_finds_near(&map, upwards, &near);
        if (i % 16 == 0)
            assert_same(&map, &model);
    }
    assert_same(&map, &model);
    for (uint64_t addr = 0; addr < SPACE; addr++)
        assert_finds(&map, &model, addr);
    range_count(&map);
    address_map_free(&map);
}

static void test_random_changes_of_short_ranges_match_a_model(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++)
        play(seed, 8000, 4);
}

static void test_random_changes_of_long_ranges_match_a_model(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++)
        play(seed * 77, 4000, 300);
}

static void test_random_changes_of_all_lengths_match_a_model(void **state)
{
    uint64_t seed = 12345;
    (void)state;
    for (int i = 0; i < 8; i++)
        play(seed + (uint64_t)i, 3000, 1 + random_below(&seed, SPACE));
}

/* As often as two neighbours have different owners, a range begins. */
static size_t stretch_count(const struct model *model)
{
    size_t count = 0;
    for (uint64_t addr = 0; addr < SPACE; addr++)
        count += model->owner[addr] != NOBODY &&
                 (addr == 0 || model->owner[addr] != model->owner[addr - 1]);
    return count;
}

static void test_joined_neighbours_of_one_value_are_one_range(void **state)
{
    struct address_map map = {0};
    struct model model = {{0}};
    uint64_t seed = 41;
    (void)state;
    for (int i = 0; i < 40000; i++) {
        uint64_t start = random_below(&seed, SPACE), end = start + random_below(&seed, 9);
        uint32_t value = 1 + random_below(&seed, 3);
        end = end < SPACE ? end : SPACE;
        model_set(&model, start, end, value);
        assert_int_equal(address_map_join(&map, start, end, value), 0);
        assert_int_equal(range_count(&map), stretch_count(&model));
        if (i % 16 == 0)
            assert_same(&map, &model);
    }
    assert_same(&map, &model);
    address_map_free(&map);
}

/* Code that goes upwards, as nearly all does. */
static void test_many_joined_ranges_are_one(void **state)
{
    struct address_map map = {0};
    (void)state;
    for (uint64_t i = 0; i < 100000; i++)
        assert_int_equal(address_map_join(&map, 10 * i, 10 * i + 10, 7), 0);
    assert_int_equal(range_count(&map), 1);
    assert_int_equal(address_map_at(&map, 999999)->start, 0);
    address_map_free(&map);
}

static void test_empty_map_has_no_ranges(void **state)
{
    struct address_map map = {0};
    struct address_place place;
    (void)state;
    assert_null(address_map_find(&map, 0, &place));
    assert_null(address_map_next(&map, &place));
    assert_int_equal(address_map_clear(&map, 0, UINT64_MAX), 0);
    address_map_free(&map);
}

static void test_setting_an_empty_range_changes_nothing(void **state)
{
    struct address_map map = {0};
    struct address_place place;
    (void)state;
    assert_int_equal(address_map_set(&map, 10, 20, 7), 0);
    assert_int_equal(address_map_set(&map, 15, 15, 8), 0);
    assert_int_equal(address_map_set(&map, 15, 5, 8), 0);
    assert_int_equal(range_count(&map), 1);
    assert_int_equal(address_map_find(&map, 15, &place)->value, 7);
    address_map_free(&map);
}

/* The picture in the header. */
static void test_setting_a_range_leaves_the_rest_of_its_neighbours(void **state)
{
    static const struct address_range expected[] = {{0, 5, 7}, {5, 25, 8}, {25, 30, 9}};
    struct address_map map = {0};
    struct address_place place;
    (void)state;
    address_map_set(&map, 0, 10, 7);
    address_map_set(&map, 20, 30, 9);
    address_map_set(&map, 5, 25, 8);
    const struct address_range *range = address_map_find(&map, 0, &place);
    for (size_t i = 0; i < 3; i++, range = address_map_next(&map, &place)) {
        assert_int_equal(range->start, expected[i].start);
        assert_int_equal(range->end, expected[i].end);
        assert_int_equal(range->value, expected[i].value);
    }
    assert_null(range);
    address_map_free(&map);
}

static void test_works_at_both_ends_of_the_address_space(void **state)
{
    struct address_map map = {0};
    struct address_place place;
    (void)state;
    address_map_set(&map, 0, 1, 1);
    address_map_set(&map, UINT64_MAX - 1, UINT64_MAX, 2);
    assert_int_equal(address_map_find(&map, 0, &place)->value, 1);
    assert_int_equal(address_map_find(&map, 1, &place)->value, 2);
    assert_null(address_map_find(&map, UINT64_MAX, &place));
    assert_int_equal(address_map_clear(&map, 0, UINT64_MAX), 0);
    assert_int_equal(map.count, 0);
    address_map_free(&map);
}

/* As an allocator that goes upwards does: found again, and the leaves are full. */
static void test_ascending_fill_keeps_leaves_full(void **state)
{
    enum { RANGES = 100000 };
    struct address_map map = {0};
    struct address_place place;
    (void)state;
    for (uint32_t i = 0; i < RANGES; i++)
        assert_int_equal(address_map_set(&map, i * 16ull, i * 16ull + 10, i), 0);
    assert_int_equal(range_count(&map), RANGES);
    assert_true(map.count <= RANGES / (ADDRESS_LEAF_RANGES - 1) + 1);
    for (uint32_t i = 0; i < RANGES; i++) {
        assert_int_equal(address_map_find(&map, i * 16ull + 9, &place)->value, i);
        const struct address_range *next = address_map_find(&map, i * 16ull + 10, &place);
        assert_true(i == RANGES - 1 ? !next : next->value == i + 1);
    }
    address_map_free(&map);
}

static void test_descending_and_shuffled_fills_are_found_again(void **state)
{
    enum { RANGES = 3 * ADDRESS_LEAF_RANGES * ADDRESS_LEAF_RANGES };
    struct address_place place;
    (void)state;
    for (uint32_t factor = 1; factor <= 7919; factor += 7918) {
        struct address_map map = {0};
        for (uint32_t i = 0; i < RANGES; i++) {
            uint32_t at = (uint32_t)((RANGES - 1 - i) * (uint64_t)factor % RANGES);
            assert_int_equal(address_map_set(&map, at * 2ull, at * 2ull + 1, at), 0);
        }
        assert_int_equal(range_count(&map), RANGES);
        for (uint32_t i = 0; i < RANGES; i++)
            assert_int_equal(address_map_find(&map, i * 2ull, &place)->value, i);
        assert_int_equal(address_map_set(&map, 1, RANGES * 2ull - 2, RANGES), 0);
        assert_int_equal(range_count(&map), 3); /* the first, all, the last */
        address_map_free(&map);
    }
}

static void test_a_freed_map_is_empty_and_usable(void **state)
{
    struct address_map map = {0};
    struct address_place place;
    (void)state;
    address_map_set(&map, 1, 2, 3);
    address_map_free(&map);
    assert_null(address_map_find(&map, 0, &place));
    assert_int_equal(address_map_set(&map, 1, 2, 4), 0);
    assert_int_equal(address_map_find(&map, 0, &place)->value, 4);
    address_map_free(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_changes_of_short_ranges_match_a_model),
        cmocka_unit_test(test_random_changes_of_long_ranges_match_a_model),
        cmocka_unit_test(test_random_changes_of_all_lengths_match_a_model),
        cmocka_unit_test(test_joined_neighbours_of_one_value_are_one_range),
        cmocka_unit_test(test_many_joined_ranges_are_one),
        cmocka_unit_test(test_empty_map_has_no_ranges),
        cmocka_unit_test(test_setting_an_empty_range_changes_nothing),
        cmocka_unit_test(test_setting_a_range_leaves_the_rest_of_its_neighbours),
        cmocka_unit_test(test_works_at_both_ends_of_the_address_space),
        cmocka_unit_test(test_ascending_fill_keeps_leaves_full),
        cmocka_unit_test(test_descending_and_shuffled_fills_are_found_again),
        cmocka_unit_test(test_a_freed_map_is_empty_and_usable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
