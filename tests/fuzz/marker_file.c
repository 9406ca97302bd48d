/* A program's file of spans: whatever is in it, a span is one, and moments in spans are in order.
 *
 * The input is the file.  Its first byte says of whom the spans are: bit 0 of a process, bit 1 of a
 * thread. */
#include "injector/log/spans/marker_file.h"
#include "injector/profile/profile_spans.h"
#include "tests/fuzz/fuzz_target.h"

#include <string.h>

enum { PID = 10, TID = 11, THREADS = 3 };

static void check_span(const struct marker_span *span, const char *text, size_t bytes)
{
    promise(span->from_ns <= span->to_ns && span->to_ns <= INT64_MAX, "a span has a time");
    promise(span->name_bytes && span->name >= text && span->name + span->name_bytes <= text + bytes,
            "its name is in the file");
    promise(!memchr(span->name, '\n', span->name_bytes), "a name is on one line");
}

static void check_moments(const struct span_moments *moments)
{
    for (uint32_t thread = 0; thread < THREADS; thread++) {
        uint64_t sum = 0;
        for (size_t i = moments->first[thread]; i < moments->end[thread]; i++) {
            const struct time_range *range = &moments->ranges[i];
            promise(i == moments->first[thread] || range[-1].to_ns < range->from_ns,
                    "ranges don't touch each other");
            promise(range->from_ns == range->to_ns ||
                        span_moments_have(moments, thread, range->from_ns),
                    "a range has its begin");
            promise(!span_moments_have(moments, thread, range->to_ns), "and not its end");
            sum += range->to_ns - range->from_ns;
        }
        promise(span_moments_within(moments, thread, 0, INT64_MAX) == sum, "all is the sum");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const struct profile_thread threads[THREADS] = {
        {PID, PID, 0, 0}, {PID, TID, 0, 0}, {9, 9, 0, 0}};
    struct marker_spans spans = {.count = 0};
    struct call_profile profile;
    struct span_moments moments;
    bool found;
    if (!size)
        return 0;
    char *text = malloc(size);
    promise(text, "there is memory");
    memcpy(text, bytes + 1, size - 1);
    promise(marker_spans_add(&spans, text, size - 1, bytes[0] & 1 ? PID : 0,
                             (bytes[0] & 3) == 3 ? TID : 0) == 0,
            "there is memory");
    promise(spans.count + spans.wrong_lines <= size, "a line is one span");
    for (size_t i = 0; i < spans.count; i++)
        check_span(&spans.items[i], text, size - 1);
    promise(call_profile_begin(&profile) == 0, "there is memory");
    for (size_t i = 0; i < THREADS; i++)
        promise(call_profile_add_thread(&profile, &threads[i]) == i, "there is memory");
    promise(profile_spans_add(&profile, &spans) == 0 && profile.span_count == spans.count,
            "all spans are there");
    promise(span_moments_find(&moments, &profile, "*", &found) == 0, "there is memory");
    check_moments(&moments);
    span_moments_free(&moments);
    call_profile_free(&profile);
    marker_spans_free(&spans);
    return 0;
}
