/* Moments: tier-ups, deopts that two samples show or the runtime told, collections of all threads.
 */
#include "injector/profile/profile_moments.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MS = 1000000, START_NS = 500 * MS, PID = 7, TEXT_BYTES = 1024 };
enum { BYTECODE, SPARKPLUG, TURBOFAN, CALLER, COLLECTOR, FRAMES };
enum { NODE_BYTECODE = 1, NODE_SPARKPLUG, NODE_TURBOFAN, NODE_COLLECTOR, NODE_TURBOFAN_BELOW };

static struct call_profile profile;
static struct profile_choice choice;
static char text[TEXT_BYTES];

static uint32_t string(const char *letters)
{
    return call_profile_add_string(&profile, letters, strlen(letters));
}

static void add_frames(void)
{
    static const char *const names[FRAMES][2] = {{"f", "bytecode"},
                                                 {"f", "Sparkplug"},
                                                 {"f", "TurboFan"},
                                                 {"g", ""},
                                                 {"v8::internal::Heap::CollectGarbage", ""}};
    for (uint32_t i = 0; i < FRAMES; i++) {
        const struct call_frame frame = {.name = string(names[i][0]),
                                         .tier = string(names[i][1]),
                                         .kind = i == COLLECTOR ? FRAME_NATIVE : FRAME_JIT};
        assert_int_equal(call_profile_add_frame(&profile, &frame), i);
    }
}

/* A TurboFan f called by one in bytecode is the last. */
static void add_nodes(void)
{
    assert_int_equal(call_profile_add_node(&profile, 0, BYTECODE), NODE_BYTECODE);
    assert_int_equal(call_profile_add_node(&profile, 0, SPARKPLUG), NODE_SPARKPLUG);
    assert_int_equal(call_profile_add_node(&profile, 0, TURBOFAN), NODE_TURBOFAN);
    assert_int_equal(call_profile_add_node(&profile, 0, COLLECTOR), NODE_COLLECTOR);
    assert_int_equal(call_profile_add_node(&profile, NODE_BYTECODE, TURBOFAN), NODE_TURBOFAN_BELOW);
}

static int begin(void **state)
{
    const struct profile_event event = {0};
    (void)state;
    choice = (struct profile_choice){.weight = WEIGHT_PERIOD};
    if (call_profile_begin(&profile) || call_profile_add_event(&profile, &event))
        return -1;
    add_frames();
    add_nodes();
    return 0;
}

static int end(void **state)
{
    (void)state;
    call_profile_free(&profile);
    return 0;
}

static uint32_t node_of(char letter)
{
    return letter == 'b'   ? NODE_BYTECODE
           : letter == 's' ? NODE_SPARKPLUG
           : letter == 't' ? NODE_TURBOFAN
           : letter == 'B' ? NODE_TURBOFAN_BELOW
                           : NODE_COLLECTOR;
}

/* The samples of thread TID, a letter a millisecond: b, s and t are f's tiers, B a TurboFan f that
 * one in bytecode called, c the collector, . nothing. */
static void add_thread(uint32_t tid, const char *letters)
{
    const struct profile_thread thread = {PID, tid, string("worker"), string("node")};
    const uint32_t number = call_profile_add_thread(&profile, &thread);
    for (uint32_t ms = 0; letters[ms]; ms++) {
        const struct call_sample sample = {.time_ns = START_NS + (uint64_t)ms * MS,
                                           .period = 1,
                                           .node = node_of(letters[ms]),
                                           .thread = number};
        if (letters[ms] != '.')
            assert_int_equal(call_profile_add_sample(&profile, &sample), 0);
    }
}

/* Code of f was given up MS10 tenths of a millisecond after the start. */
static void add_deopt(uint32_t pid, uint32_t ms10)
{
    static struct profile_deopt deopts[8];
    profile.deopts = deopts;
    deopts[profile.deopt_count++] = (struct profile_deopt){
        .time_ns = START_NS + (uint64_t)ms10 * MS / 10, .pid = pid, .frame = TURBOFAN};
}

static const char *moments(void)
{
    static const char *const words[] = {"tier", "deopt", "gc"};
    struct profile_functions functions;
    struct profile_moments found;
    size_t used = 0;
    assert_int_equal(profile_functions_find(&functions, &profile), 0);
    assert_int_equal(profile_moments_find(&found, &profile, &functions, &choice), 0);
    text[0] = '\0';
    for (size_t i = 0; i < found.count; i++) {
        const struct profile_moment *moment = &found.items[i];
        const double at = (double)(moment->at_ns - START_NS) / MS;
        const double to = (double)(moment->to_ns - START_NS) / MS;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s%g", used ? " " : "",
                                 words[moment->kind], at);
        used +=
            (size_t)(moment->kind == MOMENT_COLLECTION
                         ? snprintf(text + used, sizeof text - used, "-%g", to)
                         : snprintf(text + used, sizeof text - used, "/%" PRIu32 "%s",
                                    profile.threads[moment->thread].tid, moment->deopt ? "!" : ""));
    }
    profile_moments_free(&found);
    profile_functions_free(&functions);
    profile.deopts = NULL;
    profile.deopt_count = 0;
    return text;
}

static void test_each_higher_tier_is_a_moment(void **state)
{
    (void)state;
    add_thread(1, "bbbssstt");
    assert_string_equal(moments(), "tier3/1 tier6/1");
}

static void test_two_samples_in_a_lower_tier_are_a_deopt(void **state)
{
    (void)state;
    add_thread(1, "bbttbbtt");
    assert_string_equal(moments(), "tier2/1 deopt4/1 tier6/1");
}

static void test_calls_that_began_before_go_on_in_the_lower_tier(void **state)
{
    (void)state;
    add_thread(1, "bbtbtbtt");
    assert_string_equal(moments(), "tier2/1");
}

static void test_the_innermost_call_counts(void **state)
{
    (void)state;
    add_thread(1, "bbBBbBBt");
    assert_string_equal(moments(), "tier2/1");
}

static void test_each_thread_has_its_own(void **state)
{
    (void)state;
    add_thread(1, "bbb");
    add_thread(2, "ttt");
    assert_string_equal(moments(), "");
    add_thread(3, "ttbb");
    add_thread(4, "bbtt");
    assert_string_equal(moments(), "tier2/4 deopt2/3");
}

static void test_a_thread_of_two_names_is_one(void **state)
{
    const struct profile_thread renamed = {PID, 1, string("later"), string("node")};
    struct call_sample sample = {.period = 1, .node = NODE_TURBOFAN};
    (void)state;
    add_thread(1, "bbb");
    sample.thread = call_profile_add_thread(&profile, &renamed);
    sample.time_ns = START_NS + 3 * MS;
    assert_int_equal(call_profile_add_sample(&profile, &sample), 0);
    assert_string_equal(moments(), "tier3/1");
}

static void test_collections_are_of_all_threads(void **state)
{
    (void)state;
    add_thread(1, "bbccbb..cb");
    add_thread(2, "..bccb....");
    assert_string_equal(moments(), "gc2-5 gc8-9");
}

static void test_what_the_runtime_told_stands_for_what_samples_show(void **state)
{
    (void)state;
    add_thread(PID, "bbttbbtt");
    add_deopt(PID, 35);
    assert_string_equal(moments(), "tier2/7 deopt3.5/7! tier6/7");
    add_deopt(PID, 3); /* before it was compiled anew */
    add_deopt(PID + 1, 35);
    add_deopt(PID, 75); /* which no sample shows */
    assert_string_equal(moments(), "deopt0.3/7! tier2/7 deopt4/7 tier6/7 deopt7.5/7!");
}

static void test_deopts_are_of_the_chosen_time_and_threads(void **state)
{
    bool left_out[2] = {false, true};
    (void)state;
    add_thread(1, "tttt");
    add_thread(PID, "tttt");
    add_deopt(PID, 5);
    add_deopt(PID, 15);
    assert_string_equal(moments(), "deopt0.5/7! deopt1.5/7!"); /* the main thread */
    choice.from_ns = START_NS + MS;
    choice.to_ns = START_NS + 2 * MS;
    add_deopt(PID, 5);
    add_deopt(PID, 15);
    assert_string_equal(moments(), "deopt1.5/7!");
    choice.left_out = left_out;
    add_deopt(PID, 15);
    assert_string_equal(moments(), "deopt1.5/1!");
    left_out[0] = true;
    add_deopt(PID, 15);
    assert_string_equal(moments(), "");
}

static void test_deopts_of_functions_that_no_sample_shows_are_left_out(void **state)
{
    (void)state;
    add_thread(1, "cc");
    add_deopt(PID, 5);
    assert_string_equal(moments(), "gc0-2");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(test_each_higher_tier_is_a_moment),
        TEST(test_two_samples_in_a_lower_tier_are_a_deopt),
        TEST(test_calls_that_began_before_go_on_in_the_lower_tier),
        TEST(test_the_innermost_call_counts),
        TEST(test_each_thread_has_its_own),
        TEST(test_a_thread_of_two_names_is_one),
        TEST(test_collections_are_of_all_threads),
        TEST(test_what_the_runtime_told_stands_for_what_samples_show),
        TEST(test_deopts_are_of_the_chosen_time_and_threads),
        TEST(test_deopts_of_functions_that_no_sample_shows_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
