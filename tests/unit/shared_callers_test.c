/* A stack is the same with and without the stacks in front of it, whose callers it may share.  Each
 * sample is read with all the others, and alone. */
#include "injector/profile/profile_reading.h"

#include "injector/history/recording.h"
#include "injector/profile/shared_callers.h"
#include "tests/unit/profile_builder.h"

enum { PID = 4000001, OTHER = 4000002, MOST = 10, ALL = -1 };
enum { A = 0x10000, B = 0x20000, C = 0x30000, BYTES = 0x10000 };

#define IN_KERNEL PERF_CONTEXT_KERNEL
#define IN_USER   PERF_CONTEXT_USER
#define IN_GUEST  PERF_CONTEXT_GUEST_USER
#define DEFERRED  PERF_CONTEXT_USER_DEFERRED

enum kind { SAMPLE, MAP, EXEC, FORK };

/* Something that happened to thread TID of PID, one after the other. */
struct event {
    enum kind kind;
    uint32_t pid, tid;
    uint64_t at;          /* of a map, or a sample's own address */
    const char *file;     /* of a map */
    uint64_t chain[MOST]; /* of a sample; it ends with 0 */
    uint16_t mode;        /* of a sample, 0: the user's */
};

static const uint64_t sample_type = SAMPLE_TYPE | PERF_SAMPLE_CALLCHAIN;

/* ---- A recording ---- */

static void put_times(struct profile_builder *profile, const struct event *event, uint64_t time)
{
    sink_u32(&profile->sink, event->pid);
    sink_u32(&profile->sink, event->tid);
    sink_u64(&profile->sink, time);
}

static void put_sample(struct profile_builder *profile, const struct event *event, uint64_t time)
{
    size_t count = 0, start = profile_begin_record(profile, PERF_RECORD_SAMPLE,
                                                   event->mode ? event->mode : PERF_MISC_USER);
    sink_u64(&profile->sink, event->at);
    put_times(profile, event, time);
    sink_u64(&profile->sink, 1);
    while (count < MOST && event->chain[count])
        count++;
    sink_u64(&profile->sink, count);
    for (size_t i = 0; i < count; i++)
        sink_u64(&profile->sink, event->chain[i]);
    profile_end_record(profile, start);
}

static void put_map(struct profile_builder *profile, const struct event *event, uint64_t time)
{
    struct byte_sink *sink = &profile->sink;
    size_t start = profile_begin_record(profile, PERF_RECORD_MMAP, PERF_MISC_USER);
    sink_u32(sink, event->pid);
    sink_u32(sink, event->tid);
    sink_u64(sink, event->at);
    sink_u64(sink, BYTES);
    sink_u64(sink, 0);
    sink_cstr(sink, event->file);
    sink_zeros(sink, (8 - (sink->size - start) % 8) % 8);
    put_times(profile, event, time);
    profile_end_record(profile, start);
}

static void put_exec(struct profile_builder *profile, const struct event *event, uint64_t time)
{
    size_t start = profile_begin_record(profile, PERF_RECORD_COMM, PERF_MISC_COMM_EXEC);
    sink_u32(&profile->sink, event->pid);
    sink_u32(&profile->sink, event->tid);
    sink_bytes(&profile->sink, "program", 8);
    put_times(profile, event, time);
    profile_end_record(profile, start);
}

/* PID is forked by the process that AT names. */
static void put_fork(struct profile_builder *profile, const struct event *event, uint64_t time)
{
    size_t start = profile_begin_record(profile, PERF_RECORD_FORK, 0);
    sink_u32(&profile->sink, event->pid);
    sink_u32(&profile->sink, (uint32_t)event->at);
    sink_u32(&profile->sink, event->tid);
    sink_u32(&profile->sink, (uint32_t)event->at);
    sink_u64(&profile->sink, time);
    put_times(profile, event, time);
    profile_end_record(profile, start);
}

/* All of EVENTS, but of the samples ONE alone. */
static void build(struct profile_builder *profile, const struct event *events, size_t count,
                  int one)
{
    static void (*const put[])(struct profile_builder *, const struct event *,
                               uint64_t) = {put_sample, put_map, put_exec, put_fork};
    int sample = 0;
    profile_begin(profile, &sample_type, 1);
    for (size_t i = 0; i < count; i++)
        if (events[i].kind != SAMPLE || one == ALL || sample++ == one)
            put[events[i].kind](profile, &events[i], 1000 * (i + 1));
    profile_end_records(profile);
    profile_features(profile, NULL, 0);
}

/* ---- Its stacks ---- */

/* The files of the frames of sample NUMBER, the innermost first. */
static void put_stack(const struct call_profile *profile, size_t number, char *text, size_t bytes)
{
    size_t at = 0;
    text[0] = '\0';
    for (uint32_t node = profile->samples[number].node; node && at < bytes;
         node = profile->nodes[node].parent) {
        const struct call_frame *frame = &profile->frames[profile->nodes[node].frame];
        const char *module = call_profile_string(profile, frame->module);
        at += (size_t)snprintf(text + at, bytes - at, "%s%s", at ? " " : "",
                               *module ? module : "nothing");
    }
    assert_true(at < bytes);
}

static void read_built(const struct profile_builder *built, struct call_profile *profile)
{
    const struct recording_request request = {.no_perf_map = true};
    struct recording recording;
    struct findings findings = {.quiet = true};
    assert_false(built->sink.overflow);
    if (recording_view(&recording, "built", built->bytes, built->sink.size, &request, &findings) ==
            RECORDING_FAILED ||
        recording_play(&recording, &findings))
        fail_msg("%s", findings.failure);
    const struct profile_source source = {&recording.records, &recording.processes,
                                          recording.timelines, NULL, false};
    assert_int_equal(profile_reading_go(profile, &source, &findings), 0);
    recording_free(&recording);
    findings_free(&findings);
}

/* The stacks of EVENTS' samples, one a line; each is the same alone. */
static void assert_stacks(const struct event *events, size_t count, const char *expected)
{
    static struct profile_builder built;
    struct call_profile together, alone;
    char all[2048] = "";
    build(&built, events, count, ALL);
    read_built(&built, &together);
    for (size_t i = 0; i < together.sample_count; i++) {
        char with[256], without[256];
        build(&built, events, count, (int)i);
        read_built(&built, &alone);
        assert_int_equal(alone.sample_count, 1);
        put_stack(&together, i, with, sizeof with);
        put_stack(&alone, 0, without, sizeof without);
        assert_string_equal(with, without);
        call_profile_free(&alone);
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s\n", with);
    }
    assert_string_equal(all, expected);
    call_profile_free(&together);
}

#define STACKS(events, expected) assert_stacks(events, sizeof events / sizeof *events, expected)

/* A, B and C, one behind the other. */
#define MAPS(pid)                                                                                  \
    {MAP, pid, pid, A, "/gone/a", {0}, 0}, {MAP, pid, pid, B, "/gone/b", {0}, 0},                  \
    {                                                                                              \
        MAP, pid, pid, C, "/gone/c", {0}, 0                                                        \
    }

/* ---- Tests ---- */

static void test_stacks_that_differ_in_front(void **state)
{
    const struct event events[] = {
        MAPS(PID),
        {SAMPLE, PID, PID, A + 8, NULL, {IN_USER, A + 8, B + 8, B + 16, C + 8}, 0},
        {SAMPLE, PID, PID, A + 8, NULL, {IN_USER, A + 8, B + 8, B + 16, C + 8}, 0},
        {SAMPLE, PID, PID, C + 8, NULL, {IN_USER, C + 8, A + 8, B + 16, C + 8}, 0},
        {SAMPLE, PID, PID, B + 16, NULL, {IN_USER, B + 16, C + 8}, 0},
        {SAMPLE, PID, PID, B + 8, NULL, {IN_USER, B + 8, A + 8, A + 8, B + 16, C + 8}, 0},
        {SAMPLE, PID, PID, C + 8, NULL, {IN_USER, C + 8}, 0},
        {SAMPLE, PID, PID, A + 8, NULL, {IN_USER, A + 8, B + 8, B + 16, C + 8}, 0},
    };
    (void)state;
    STACKS(events, "a b b c\na b b c\nc a b c\nb c\nb a a b c\nc\na b b c\n");
}

/* The third stack has the callers of the two in front of it. */
static void test_callers_of_stacks_that_are_past(void **state)
{
    const struct event nothing_shared[] = {
        MAPS(PID),
        {SAMPLE, PID, PID, A + 8, NULL, {IN_USER, A + 8, B + 8, C + 8}, 0},
        {SAMPLE, PID, PID, A + 8, NULL, {IN_USER, A + 8, A + 16, B + 16}, 0},
        {SAMPLE, PID, PID, C + 8, NULL, {IN_USER, C + 8, A + 16, B + 16, B + 8, C + 8}, 0},
    };
    const struct event one_shared[] = {
        MAPS(PID),
        {SAMPLE, PID, PID, A + 8, NULL, {IN_USER, A + 8, B + 8, C + 8}, 0},
        {SAMPLE, PID, PID, A + 8, NULL, {IN_USER, A + 8, A + 16, C + 8}, 0},
        {SAMPLE, PID, PID, C + 8, NULL, {IN_USER, C + 8, A + 16, B + 8, C + 8}, 0},
    };
    (void)state;
    STACKS(nothing_shared, "a b c\na a b\nc a b b c\n");
    STACKS(one_shared, "a b c\na a c\nc a b c\n");
}

/* The address behind a mark is not one to which a call returns: at the first byte of a file it is
 * another one's if it is. */
static void test_the_address_behind_a_mark_is_no_caller(void **state)
{
    const struct event events[] = {
        MAPS(PID),
        {SAMPLE, PID, PID, A + 8, NULL, {IN_USER, A + 8, B, C, C + 8}, 0},
        {SAMPLE, PID, PID, B, NULL, {IN_USER, B, C, C + 8}, 0},
        {SAMPLE, PID, PID, C, NULL, {IN_USER, C, C + 8}, 0},
        {SAMPLE, PID, PID, A + 8, NULL, {IN_USER, A + 8, B, C, C + 8}, 0},
        {SAMPLE, PID, PID, 5, NULL, {IN_KERNEL, 5, IN_USER, C, C + 8}, PERF_MISC_KERNEL},
        {SAMPLE, PID, PID, 5, NULL, {IN_KERNEL, 5, IN_USER, B, C, C + 8}, PERF_MISC_KERNEL},
        {SAMPLE, PID, PID, B, NULL, {B, C, C + 8}, 0},
    };
    (void)state;
    STACKS(events, "a a b c\nb b c\nc c\na a b c\n[kernel] c c\n[kernel] b b c\nb b c\n");
}

static void test_addresses_of_another_mode(void **state)
{
    const struct event events[] = {
        MAPS(PID),
        {SAMPLE, PID, PID, A + 8, NULL, {IN_USER, A + 8, B + 8, C + 8}, 0},
        {SAMPLE, PID, PID, 5, NULL, {IN_KERNEL, 5, B + 8, C + 8}, PERF_MISC_KERNEL},
        {SAMPLE, PID, PID, 5, NULL, {IN_GUEST, A + 8, B + 8, C + 8}, PERF_MISC_GUEST_USER},
        {SAMPLE, PID, PID, A + 8, NULL, {IN_USER, A + 8, B + 8, C + 8}, 0},
        {SAMPLE, PID, PID, A + 8, NULL, {IN_USER, A + 8, B + 8, IN_KERNEL, 5, C + 8}, 0},
        {SAMPLE, PID, PID, A + 8, NULL, {IN_USER, A + 8, B + 8, C + 8}, 0},
    };
    (void)state;
    STACKS(events, "a b c\n[kernel] [kernel] [kernel]\nnothing nothing nothing\na b c\n"
                   "a b [kernel] [kernel]\na b c\n");
}

/* The cookie looks like an address. */
static void test_a_cookie_is_no_caller(void **state)
{
    const struct event events[] = {
        MAPS(PID),
        {SAMPLE, PID, PID, A + 8, NULL, {IN_USER, A + 8, B + 8, C + 8}, 0},
        {SAMPLE, PID, PID, A + 8, NULL, {IN_USER, A + 8, B + 8, DEFERRED, C + 8}, 0},
        {SAMPLE, PID, PID, A + 8, NULL, {IN_USER, A + 8, A + 8, B + 8}, 0},
        {SAMPLE, PID, PID, A + 8, NULL, {IN_USER, A + 8, B + 8, C + 8}, 0},
    };
    (void)state;
    STACKS(events, "a b c\na b\na a b\na b c\n");
}

static void test_a_file_that_is_mapped_in_between(void **state)
{
    const struct event events[] = {
        MAPS(PID),
        {SAMPLE, PID, PID, A + 8, NULL, {IN_USER, A + 8, B + 8, C + 8}, 0},
        {MAP, PID, PID, C, "/gone/d", {0}, 0},
        {SAMPLE, PID, PID, A + 8, NULL, {IN_USER, A + 8, B + 8, C + 8}, 0},
        {SAMPLE, PID, PID, C + 8, NULL, {IN_USER, C + 8, B + 8, C + 8}, 0},
        {MAP, PID, PID, A + (UINT64_C(1) << 32), "/gone/far", {0}, 0},
        {SAMPLE, PID, PID, A + 8, NULL, {IN_USER, A + 8, B + 8, C + 8}, 0},
        {MAP, PID, PID, B, "/gone/e", {0}, 0},
        {SAMPLE, PID, PID, A + 8, NULL, {IN_USER, A + 8, B + 8, C + 8}, 0},
    };
    (void)state;
    STACKS(events, "a b c\na b d\nd b d\na b d\na e d\n");
}

/* The second program is mapped after as many events as the first. */
static void test_a_thread_of_two_lives(void **state)
{
    const struct event events[] = {
        MAPS(PID),
        {SAMPLE, PID, PID, A + 8, NULL, {IN_USER, A + 8, B + 8, C + 8}, 0},
        {EXEC, PID, PID, 0, NULL, {0}, 0},
        {MAP, PID, PID, A, "/gone/d", {0}, 0},
        {MAP, PID, PID, B, "/gone/e", {0}, 0},
        {MAP, PID, PID, C, "/gone/f", {0}, 0},
        {SAMPLE, PID, PID, A + 8, NULL, {IN_USER, A + 8, B + 8, C + 8}, 0},
    };
    (void)state;
    STACKS(events, "a b c\nd e f\n");
}

/* The threads' numbers have the same place. */
static void test_threads_of_one_place(void **state)
{
    const uint32_t second = PID + SHARED_CALLERS_THREADS;
    const struct event events[] = {
        MAPS(PID),
        {SAMPLE, PID, PID, A + 8, NULL, {IN_USER, A + 8, B + 8, C + 8}, 0},
        {SAMPLE, PID, second, B + 8, NULL, {IN_USER, B + 8, B + 8, C + 8}, 0},
        {SAMPLE, PID, PID, C + 8, NULL, {IN_USER, C + 8, B + 8, C + 8}, 0},
    };
    (void)state;
    STACKS(events, "a b c\nb b c\nc b c\n");
}

/* The child has the parent's mappings, and one that the parent has not. */
static void test_a_child_and_its_parent(void **state)
{
    const struct event events[] = {
        MAPS(PID),
        {SAMPLE, PID, PID, A + 8, NULL, {IN_USER, A + 8, B + 8, C + 8}, 0},
        {FORK, OTHER, OTHER, PID, NULL, {0}, 0},
        {SAMPLE, OTHER, OTHER, A + 8, NULL, {IN_USER, A + 8, B + 8, C + 8}, 0},
        {MAP, OTHER, OTHER, C, "/gone/d", {0}, 0},
        {SAMPLE, OTHER, OTHER, A + 8, NULL, {IN_USER, A + 8, B + 8, C + 8}, 0},
        {SAMPLE, PID, PID, A + 8, NULL, {IN_USER, A + 8, B + 8, C + 8}, 0},
        {MAP, PID, PID, B, "/gone/e", {0}, 0},
        {SAMPLE, PID, PID, A + 8, NULL, {IN_USER, A + 8, B + 8, C + 8}, 0},
        {SAMPLE, OTHER, OTHER, A + 8, NULL, {IN_USER, A + 8, B + 8, C + 8}, 0},
    };
    (void)state;
    STACKS(events, "a b c\na b c\na b d\na b c\na e c\na b d\n");
}

/* ---- Steps ---- */

static void test_the_steps_that_a_chain_ends_with(void **state)
{
    struct caller_steps steps = {0};
    const uint64_t entries[] = {IN_USER, 7, 3, 2, 1};
    const struct sample_chain chain = {(const uint8_t *)entries, 5}, none = {NULL, 0};
    (void)state;
    assert_int_equal(caller_steps_equal(&steps, &chain), 0);
    for (uint64_t ip = 1; ip <= 4; ip++)
        assert_int_equal(caller_steps_add(&steps, (struct caller_step){ip, 1, 1}), 0);
    assert_int_equal(caller_steps_equal(&steps, &chain), 3);
    assert_int_equal(caller_steps_equal(&steps, &none), 0);
    free(steps.items);
}

static void test_steps_hold_for_one_version_of_one_life(void **state)
{
    static struct shared_callers shared;
    const struct caller_step step = {1, 1, 1};
    struct caller_steps *steps = shared_callers_of(&shared, 7, 3, 1);
    (void)state;
    assert_int_equal(steps->count, 0);
    assert_int_equal(caller_steps_add(steps, step), 0);
    assert_int_equal(shared_callers_of(&shared, 7, 3, 1)->count, 1);
    assert_int_equal(shared_callers_of(&shared, 8, 3, 1)->count, 0); /* it has another place */
    assert_int_equal(shared_callers_of(&shared, 7, 3, 1)->count, 1);
    assert_int_equal(shared_callers_of(&shared, 7, 3, 2)->count, 0);
    assert_int_equal(caller_steps_add(shared_callers_of(&shared, 7, 3, 2), step), 0);
    assert_int_equal(shared_callers_of(&shared, 7 + SHARED_CALLERS_THREADS, 3, 2)->count, 0);
    assert_int_equal(shared_callers_of(&shared, 7, 3, 2)->count, 0);
    shared_callers_free(&shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stacks_that_differ_in_front),
        cmocka_unit_test(test_callers_of_stacks_that_are_past),
        cmocka_unit_test(test_the_address_behind_a_mark_is_no_caller),
        cmocka_unit_test(test_addresses_of_another_mode),
        cmocka_unit_test(test_a_cookie_is_no_caller),
        cmocka_unit_test(test_a_file_that_is_mapped_in_between),
        cmocka_unit_test(test_a_thread_of_two_lives),
        cmocka_unit_test(test_threads_of_one_place),
        cmocka_unit_test(test_a_child_and_its_parent),
        cmocka_unit_test(test_the_steps_that_a_chain_ends_with),
        cmocka_unit_test(test_steps_hold_for_one_version_of_one_life),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
