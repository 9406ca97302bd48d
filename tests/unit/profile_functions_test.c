/* Functions of a line are told apart by their columns, and in all tiers they are one. */
#include "injector/profile/profile_functions.h"

#include "tests/unit/scratch.h"

#include <string.h>

static uint32_t text(struct call_profile *profile, const char *word)
{
    return call_profile_add_string(profile, word, strlen(word));
}

static uint32_t add(struct call_profile *profile, const char *name, const char *file, uint32_t line,
                    uint32_t column, const char *tier)
{
    const struct call_frame frame = {.name = text(profile, name),
                                     .file = text(profile, file),
                                     .line = line,
                                     .column = column,
                                     .tier = text(profile, tier)};
    return call_profile_add_frame(profile, &frame);
}

static void test_the_column_is_put_where_a_line_has_several(void **state)
{
    (void)state;
    struct call_profile profile;
    struct profile_functions functions;
    assert_int_equal(call_profile_begin(&profile), 0);
    const struct {
        uint32_t frame;
        const char *wanted;
    } cases[] = {
        {add(&profile, "e", "/a/app.min.js", 1, 14, "TurboFan"), ":1:14 app.min.js:1:14"},
        {add(&profile, "e", "/a/app.min.js", 1, 129, "TurboFan"), ":1:129 app.min.js:1:129"},
        {add(&profile, "hot", "/a/work.js", 1, 13, "TurboFan"), ":1"},
        {add(&profile, "(anonymous)", "/a/work.js", 1, 1, "TurboFan"), ":1"},
        {add(&profile, "(anonymous)", "/a/one.js", 1, 1, "TurboFan"), ":1:1 one.js:1:1"},
        {add(&profile, "(anonymous)", "/a/one.js", 1, 9, "TurboFan"), ":1:9 one.js:1:9"},
        {add(&profile, "cold", "/a/work.js", 7, 3, "TurboFan"), ":7"},
        {add(&profile, "main", "/a/main.c", 7, 0, ""), ":7"},
        {add(&profile, "other", "/a/main.c", 7, 0, ""), ":7"},
        {add(&profile, "none", "", 0, 0, ""), ""}};
    uint32_t other = add(&profile, "e", "/a/app.min.js", 1, 14, "bytecode");
    assert_int_equal(profile_functions_find(&functions, &profile), 0);
    assert_int_equal(functions.count, sizeof cases / sizeof cases[0]);
    assert_int_equal(functions.of_frame[other], functions.of_frame[cases[0].frame]);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *put = NULL;
        size_t bytes;
        FILE *stream = open_memstream(&put, &bytes);
        uint32_t function = functions.of_frame[cases[i].frame];
        profile_functions_put_line(&functions, function, stream);
        profile_functions_put_place(&functions, &profile, function, stream);
        assert_int_equal(fclose(stream), 0);
        assert_string_equal(put, cases[i].wanted);
        free(put);
    }
    profile_functions_free(&functions);
    call_profile_free(&profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_column_is_put_where_a_line_has_several),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
