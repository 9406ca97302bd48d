/* pprof's locations of inlined calls: all that one lists, and a file that grows with what is in it,
 * however deep calls are inlined in each other. */
#include "injector/export/export_format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

enum { GZIP_WINDOW = 15 + 16, MOST_BYTES = 64 << 20 };

/* How many bytes pprof's message has for a stack of DEPTH calls, inlined in each other. */
static size_t message_bytes(uint32_t depth)
{
    const struct profile_thread thread = {1, 1, 0, 0};
    const struct profile_event event = {0};
    const struct profile_choice all = {0, PROFILE_ALL, WEIGHT_PERIOD};
    struct call_profile profile;
    struct profile_functions functions = {0};
    struct profile_totals totals = {0};
    struct call_frame frame = {.kind = FRAME_JIT};
    uint32_t node = 0;
    assert_int_equal(call_profile_begin(&profile), 0);
    call_profile_add_thread(&profile, &thread);
    call_profile_add_event(&profile, &event);
    frame.name = call_profile_add_string(&profile, "f", 1);
    uint32_t outer = call_profile_add_frame(&profile, &frame);
    frame.inlined = 1;
    uint32_t inner = call_profile_add_frame(&profile, &frame);
    for (uint32_t i = 0; i < depth; i++)
        node = call_profile_add_node(&profile, node, i ? inner : outer);
    const struct call_sample sample = {.node = node, .period = 1};
    call_profile_add_sample(&profile, &sample);
    assert_int_equal(profile_functions_find(&functions, &profile), 0);
    assert_int_equal(profile_totals_count(&totals, &profile, &functions, &all), 0);
    const struct export_request request = {&profile, &functions, &totals, all, "test"};
    char *packed = NULL;
    size_t packed_bytes = 0;
    FILE *stream = open_memstream(&packed, &packed_bytes);
    assert_int_equal(export_pprof(&request, stream), 0);
    fclose(stream);
    z_stream unpacker = {.next_in = (uint8_t *)packed, .avail_in = (uInt)packed_bytes};
    uint8_t *bytes = malloc(MOST_BYTES);
    assert_non_null(bytes);
    unpacker.next_out = bytes;
    unpacker.avail_out = MOST_BYTES;
    assert_int_equal(inflateInit2(&unpacker, GZIP_WINDOW), Z_OK);
    assert_int_equal(inflate(&unpacker, Z_FINISH), Z_STREAM_END);
    size_t result = unpacker.total_out;
    inflateEnd(&unpacker);
    free(bytes);
    free(packed);
    profile_totals_free(&totals);
    profile_functions_free(&functions);
    call_profile_free(&profile);
    return result;
}

static void test_grows_with_the_stack(void **state)
{
    (void)state;
    size_t some = message_bytes(500), more = message_bytes(4000);
    assert_true(more < some * 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_grows_with_the_stack)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
