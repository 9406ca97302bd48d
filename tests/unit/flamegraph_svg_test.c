/* The SVG flame graph: which boxes are drawn, and where. */
#include "injector/profile/flamegraph/flamegraph_svg.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A sample of PERIOD in a stack of DEEP functions, each called by the one before: NAME, and
 * with a digit. */
static void add_stack(struct call_profile *profile, const char *name, unsigned deep,
                      uint64_t period)
{
    uint32_t node = 0;
    for (unsigned i = 0; i < deep; i++) {
        char text[128];
        snprintf(text, sizeof text, i ? "%s%u" : "%s", name, i);
        const struct call_frame frame = {.name =
                                             call_profile_add_string(profile, text, strlen(text))};
        node = call_profile_add_node(profile, node, call_profile_add_frame(profile, &frame));
    }
    const struct call_sample sample = {.period = period, .node = node};
    assert_int_equal(call_profile_add_sample(profile, &sample), 0);
}

/* The function NAME has WIDE of 100 000, and a stack of nine functions the rest.  To be freed. */
static char *draw_named(const char *name, uint64_t wide)
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
    add_stack(&profile, name, 1, wide);
    add_stack(&profile, "d", 9, 100000 - wide);
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

static char *draw(uint64_t wide)
{
    return draw_named("w", wide);
}

/* 0.3 of 1200 is a quarter of a thousandth: 25 of 100 000. */
static void stacks_that_are_too_narrow_take_no_height(void **state)
{
    (void)state;
    char *drawn = draw(100000 - 25), *left_out = draw(100000 - 24);
    assert_non_null(strstr(drawn, "viewBox=\"0 0 1200 210\""));
    assert_non_null(strstr(drawn, "<rect x=\"1199.7\" y=\"30\""));
    assert_non_null(strstr(drawn, "<title>d "));
    assert_non_null(strstr(left_out, "viewBox=\"0 0 1200 66\""));
    assert_non_null(strstr(left_out, "<rect x=\"0.0\" y=\"30\""));
    assert_null(strstr(left_out, "<title>d "));
    free(drawn);
    free(left_out);
}

static void long_names_are_shortened_from_the_left(void **state)
{
    static const char name[] = "void com.example.deeply.nested.Thing.method(java.lang.String)";
    (void)state;
    char *narrow = draw_named(name, 15000), *wide = draw_named(name, 90000);
    assert_non_null(strstr(narrow, ">Thing.method(String)<"));
    assert_non_null(strstr(narrow, "<title>void com.example.deeply.nested.Thing.method("));
    assert_non_null(
        strstr(wide, ">void com.example.deeply.nested.Thing.method(java.lang.String)<"));
    free(narrow);
    free(wide);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stacks_that_are_too_narrow_take_no_height),
        cmocka_unit_test(long_names_are_shortened_from_the_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
