/* Functions of one name in one file, told apart by their columns, and found again on the other
 * side. */
#include "injector/compare/same_functions.h"

#include "tests/unit/scratch.h"

#include <string.h>

struct made_function {
    const char *name;
    uint32_t line, column, us;
};

static uint32_t text(struct call_profile *profile, const char *word)
{
    return call_profile_add_string(profile, word, strlen(word));
}

static void add_run(struct run_set *set, bool is_new, const struct made_function *functions)
{
    struct call_profile profile;
    const struct profile_choice choice = {.weight = WEIGHT_PERIOD};
    const struct profile_event event = {.counts_ns = true};
    const struct profile_thread thread = {0};
    assert_int_equal(call_profile_begin(&profile), 0);
    assert_int_equal(call_profile_add_event(&profile, &event), 0);
    call_profile_add_thread(&profile, &thread);
    for (; functions->name; functions++)
        for (int tier = 0; tier < 2; tier++) {
            const struct call_frame frame = {.name = text(&profile, functions->name),
                                             .file = text(&profile, "/srv/app.js"),
                                             .line = functions->line,
                                             .column = functions->column,
                                             .tier = text(&profile, tier ? "TurboFan" : "Maglev")};
            uint32_t node =
                call_profile_add_node(&profile, 0, call_profile_add_frame(&profile, &frame));
            const struct call_sample sample = {.period = functions->us * 500, .node = node};
            assert_int_equal(call_profile_add_sample(&profile, &sample), 0);
        }
    assert_int_equal(run_set_add(set, is_new, &profile, &choice), 0);
    call_profile_free(&profile);
}

/* The values of function NAME in both runs, as "12 30"; "" if there is none. */
static const char *values_of(const struct run_set *set, const char *name)
{
    static char values[64];
    values[0] = '\0';
    for (uint32_t i = 1; i < set->names.string_count; i++) {
        if (strcmp(call_profile_string(&set->names, i), name) != 0)
            continue;
        double sides[2] = {0};
        for (size_t run = 0; run < set->run_count; run++) {
            const struct run_values *by = &set->runs[run].tables[BY_FUNCTION];
            sides[set->runs[run].is_new] += i < by->count ? by->items[i] / 1000 : 0;
        }
        if (sides[0] + sides[1] > 0)
            snprintf(values, sizeof values, "%.0f %.0f", sides[0], sides[1]);
    }
    return values;
}

static void compare(struct run_set *set, const struct made_function *base,
                    const struct made_function *new)
{
    assert_int_equal(run_set_begin(set), 0);
    add_run(set, false, base);
    add_run(set, true, new);
    assert_int_equal(same_functions_find(set), 0);
    for (size_t run = 0; run < set->run_count; run++) { /* as all tables, by what they add up to */
        double sums[BY_STACK + 1] = {0};
        for (int table = 0; table <= BY_STACK; table++)
            for (size_t i = 0; i < set->runs[run].tables[table].count; i++)
                sums[table] += set->runs[run].tables[table].items[i];
        assert_true(sums[BY_FUNCTION] > 0 && sums[BY_FUNCTION] == sums[BY_STATE] &&
                    sums[BY_STATE] == sums[BY_STACK]);
    }
}

static void test_a_place_is_a_function(void **state)
{
    (void)state;
    static const struct made_function base[] = {
        {"e", 1, 14, 10}, {"e", 1, 129, 20}, {"e", 1, 300, 5}, {"f", 1, 50, 7}, {0}};
    static const struct made_function new[] = {
        {"e", 1, 129, 30}, {"e", 1, 14, 11}, {"f", 1, 60, 8}, {0}};
    struct run_set set;
    compare(&set, base, new);
    assert_string_equal(values_of(&set, "e  app.js:1:14"), "10 11");
    assert_string_equal(values_of(&set, "e  app.js:1:129"), "20 30");
    assert_string_equal(values_of(&set, "e  app.js:1:300"), "5 0");
    /* alone of its name: wherever it is */
    assert_string_equal(values_of(&set, "f  app.js"), "7 8");
    run_set_free(&set);
}

static void test_places_that_moved_are_paired_by_their_order(void **state)
{
    (void)state;
    static const struct made_function base[] = {
        {"", 1, 1, 1}, {"", 1, 14, 10}, {"", 1, 129, 20}, {0}};
    static const struct made_function moved[] = {
        {"", 1, 1, 2}, {"", 1, 139, 21}, {"", 1, 24, 11}, {0}};
    static const struct made_function more[] = {
        {"", 1, 1, 2}, {"", 1, 139, 21}, {"", 1, 24, 11}, {"", 1, 30, 4}, {0}};
    struct run_set set;
    compare(&set, base, moved);
    assert_string_equal(values_of(&set, "  app.js:1:1"), "1 2");
    assert_string_equal(values_of(&set, "  app.js:1:14"), "10 11");
    assert_string_equal(values_of(&set, "  app.js:1:129"), "20 21");
    run_set_free(&set);
    /* one more: nothing says which */
    compare(&set, base, more);
    assert_string_equal(values_of(&set, "  app.js"), "31 38");
    run_set_free(&set);
}

static double asked_for_us(const char *lines_of)
{
    static const struct made_function run[] = {
        {"e", 1, 14, 10}, {"e", 1, 129, 20}, {"f", 2, 14, 7}, {"ee", 1, 14, 4}, {0}};
    struct run_set set;
    double sum = 0;
    assert_int_equal(run_set_begin(&set), 0);
    set.lines_of = lines_of;
    add_run(&set, false, run);
    const struct run_values *lines = &set.runs[0].tables[BY_LINE];
    for (size_t i = 0; i < lines->count; i++)
        sum += lines->items[i] / 1000;
    assert_int_equal(set.lines_found, sum > 0);
    run_set_free(&set);
    return sum;
}

static void test_a_function_is_asked_for_by_its_name_file_or_place(void **state)
{
    (void)state;
    static const struct {
        const char *lines_of;
        double us;
    } cases[] = {{"e", 30},
                 {"e  app.js", 30},
                 {"e  app.js:1:14", 10},
                 {"ee", 4},
                 {"e  app.js:1:129", 20},
                 {"e  app.js:1:1", 0},
                 {"e  app.js:1:1290", 0},
                 {"e  app.j", 0},
                 {"e  ", 0},
                 {"f  app.js:2:14", 7},
                 {"f  app.js:1:14", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (asked_for_us(cases[i].lines_of) != cases[i].us)
            fail_msg("%s: %g", cases[i].lines_of, asked_for_us(cases[i].lines_of));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_place_is_a_function),
        cmocka_unit_test(test_places_that_moved_are_paired_by_their_order),
        cmocka_unit_test(test_a_function_is_asked_for_by_its_name_file_or_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
