/* The SVG flame graph: which boxes are drawn, and where. */
#include "injector/profile/flamegraph/flamegraph_svg.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A sample of PERIOD in a stack of DEEP functions: NAME, and so on, each called by the one before.
 */
static void add_stack(struct call_profile *profile, char name, unsigned deep, uint64_t period)
{
    uint32_t node = 0;
    for (unsigned i = 0; i < deep; i++) {
        const char text[] = {name, (char)('0' + i), '\0'};
        const struct call_frame frame = {.name = call_profile_add_string(profile, text, 2)};
        node = call_profile_add_node(profile, node, call_profile_add_frame(profile, &frame));
    }
    const struct call_sample sample = {.period = period, .node = node};
    assert_int_equal(call_profile_add_sample(profile, &sample), 0);
}

/* One function has WIDE of 100 000, and a stack of nine functions the rest.  To be freed. */
static char *draw(uint64_t wide)
{
    const struct profile_choice all = {.weight = WEIGHT_PERIOD};
    const struct profile_thread thread = {1, 1, 0, 0};
    struct call_profile profile;
    struct profile_functions functions;
    struct profile_totals totals;
    char *svg = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&svg, &bytes);
    assert_int_equal(call_profile_begin(&profile), 0);
    assert_int_equal(call_profile_add_thread(&profile, &thread), 0);
    add_stack(&profile, 'w', 1, wide);
    add_stack(&profile, 'd', 9, 100000 - wide);
    assert_int_equal(profile_functions_find(&functions, &profile), 0);
    assert_int_equal(profile_totals_count(&totals, &profile, &functions, &all), 0);
    const struct flamegraph_request request = {
        .profile = &profile, .totals = &totals, .choice = all, .title = "title", .width = 1200};
    assert_int_equal(flamegraph_svg_write(&request, stream), 0);
    fclose(stream);
    profile_totals_free(&totals);
    profile_functions_free(&functions);
    call_profile_free(&profile);
    return svg;
}

/* 0.3 of 1200 is a quarter of a thousandth: 25 of 100 000. */
static void stacks_that_are_too_narrow_take_no_height(void **state)
{
    (void)state;
    char *drawn = draw(100000 - 25), *left_out = draw(100000 - 24);
    assert_non_null(strstr(drawn, "viewBox=\"0 0 1200 210\""));
    assert_non_null(strstr(drawn, "<rect x=\"1199.7\" y=\"30\""));
    assert_non_null(strstr(drawn, "<title>d0"));
    assert_non_null(strstr(left_out, "viewBox=\"0 0 1200 66\""));
    assert_non_null(strstr(left_out, "<rect x=\"0.0\" y=\"30\""));
    assert_null(strstr(left_out, "<title>d0"));
    free(drawn);
    free(left_out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stacks_that_are_too_narrow_take_no_height),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
