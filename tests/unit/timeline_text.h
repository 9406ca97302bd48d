/* A process that a test builds, and its timeline as text. */
#ifndef PERFJIT_TEST_TIMELINE_TEXT_H
#define PERFJIT_TEST_TIMELINE_TEXT_H

#include "injector/history/timeline/timeline.h"
#include "tests/unit/process_builder.h"

#include <inttypes.h>

static struct process_builder built;
static struct timeline played; /* the last one */

static inline int begin(void **state)
{
    (void)state;
    process_begin(&built);
    return 0;
}

static inline int end(void **state)
{
    (void)state;
    timeline_free(&played);
    played = (struct timeline){0};
    process_free(&built);
    return 0;
}

/* ---- A timeline as text ---- */

static inline size_t parse_times(const char *text, uint64_t times[64])
{
    size_t count = 0;
    for (char *rest; *text; text = rest) {
        times[count++] = strtoull(text, &rest, 10);
        assert_ptr_not_equal(rest, text);
    }
    return count;
}

static inline void print_change(const struct change *change, char *text, size_t bytes)
{
    size_t at = (size_t)snprintf(text, bytes, "%" PRIu64 ":%" PRIx64 "-%" PRIx64 "=",
                                 change->time_ns, change->start, change->end);
    if (change->kind == CHANGE_UNLOADED)
        snprintf(text + at, bytes - at, "gone");
    else
        snprintf(text + at, bytes - at, "%s%" PRIu32, change->kind == CHANGE_MAP ? "map" : "f",
                 change->index);
}

/* BUILT with samples at TIMES plays to CHANGES, and the map records numbered in DROPPED are left
 * out. */
static inline void assert_plays(const char *times, const char *changes, const char *dropped)
{
    struct findings findings = {0};
    uint64_t sample_times[64], numbers[64] = {0};
    char text[2048] = "";
    size_t sample_count = parse_times(times, sample_times);
    timeline_free(&played);
    assert_int_equal(
        timeline_play(&played, &built.process, NULL, NULL, sample_times, sample_count, &findings),
        0);
    for (size_t i = 0, at = 0; i < played.change_count; i++, at = strlen(text)) {
        if (i > 0)
            text[at++] = ' ';
        print_change(&played.changes[i], text + at, sizeof text - at);
    }
    assert_string_equal(text, changes);
    assert_int_equal(parse_times(dropped, numbers), played.dropped_count);
    for (size_t i = 0; i < played.dropped_count; i++)
        assert_int_equal(played.dropped[i], 1000 + numbers[i]);
    assert_int_equal(findings_lost(&findings), 0);
    findings_free(&findings);
}

/* The same, where COUNT events speak of code that was never loaded. */
static inline void assert_loses(const char *times, const char *changes, uint64_t count)
{
    struct timeline timeline;
    struct findings findings = {0};
    uint64_t sample_times[64];
    char text[256] = "";
    size_t sample_count = parse_times(times, sample_times);
    assert_int_equal(
        timeline_play(&timeline, &built.process, NULL, NULL, sample_times, sample_count, &findings),
        0);
    if (timeline.change_count == 1)
        print_change(timeline.changes, text, sizeof text);
    assert_true(timeline.change_count <= 1);
    assert_string_equal(text, changes);
    assert_int_equal(findings.count[FINDING_CODE_LOST], count);
    timeline_free(&timeline);
    findings_free(&findings);
}

/* What the last timeline found out about function INDEX. */
static inline const struct function_state *state_of(uint32_t index)
{
    return &played.states[index];
}

static inline const struct jit_function *function(uint32_t index)
{
    return &played.log->functions[index];
}

#define TIMELINE_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

#endif
