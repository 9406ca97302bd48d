/* Self and total of functions, their callers and callees, against a model that looks at each sample
 * alone.  The profiles are made at random: functions call themselves, and each other. */
#include "injector/profile/profile_calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { FUNCTIONS = 6, TIERS = 2, SAMPLES = 200, MOST_DEEP = 12, PROFILES = 300 };

struct world {
    struct call_profile profile;
    struct profile_functions functions;
    struct profile_totals totals;
    struct profile_calls in, out;
    struct profile_counted counted;
};

/* A frame of function NUMBER, in one of its tiers. */
static uint32_t add_frame(struct call_profile *profile, unsigned number, unsigned tier)
{
    char name[2] = {(char)('a' + number), '\0'}, text[2] = {(char)('0' + tier), '\0'};
    const struct call_frame frame = {.name = call_profile_add_string(profile, name, 1),
                                     .tier = call_profile_add_string(profile, text, 1)};
    return call_profile_add_frame(profile, &frame);
}

static void make(struct world *world, unsigned seed)
{
    const struct profile_choice all = {.weight = WEIGHT_PERIOD};
    const struct profile_thread thread = {1, 1, 0, 0};
    struct call_profile *profile = &world->profile;
    srandom(seed);
    assert_int_equal(call_profile_begin(profile), 0);
    assert_int_equal(call_profile_add_thread(profile, &thread), 0);
    for (unsigned i = 0; i < SAMPLES; i++) {
        uint32_t node = 0;
        for (long deep = random() % (MOST_DEEP + 1); deep > 0; deep--)
            node = call_profile_add_node(
                profile, node,
                add_frame(profile, (unsigned)random() % FUNCTIONS, (unsigned)random() % TIERS));
        const struct call_sample sample = {.period = (uint64_t)random() % 100, .node = node};
        assert_int_equal(call_profile_add_sample(profile, &sample), 0);
    }
    assert_int_equal(profile_functions_find(&world->functions, profile), 0);
    assert_int_equal(profile_totals_count(&world->totals, profile, &world->functions, &all), 0);
    world->counted = (struct profile_counted){profile, &world->functions, &world->totals};
    assert_int_equal(profile_calls_in(&world->in, &world->counted), 0);
    assert_int_equal(profile_calls_out(&world->out, &world->counted), 0);
}

static void release(struct world *world)
{
    profile_calls_free(&world->in);
    profile_calls_free(&world->out);
    profile_totals_free(&world->totals);
    profile_functions_free(&world->functions);
    call_profile_free(&world->profile);
}

/* ---- The model ---- */

struct model {
    uint64_t all, self[FUNCTIONS], total[FUNCTIONS];
    uint64_t out[FUNCTIONS][FUNCTIONS], in[FUNCTIONS][FUNCTIONS + 1]; /* of the callee; by caller */
};

/* A sample whose stack is the DEPTH functions in STACK, the innermost first. */
static void count_sample(struct model *model, const uint32_t *stack, size_t depth, uint64_t period)
{
    bool seen[FUNCTIONS] = {false};
    model->all += period;
    if (depth)
        model->self[stack[0]] += period;
    for (size_t i = 0; i < depth; i++) {
        size_t caller = i + 1;
        if (seen[stack[i]])
            continue;
        seen[stack[i]] = true;
        model->total[stack[i]] += period;
        if (i)
            model->out[stack[i]][stack[i - 1]] += period;
        while (caller < depth && stack[caller] == stack[i])
            caller++;
        model->in[stack[i]][caller < depth ? stack[caller] : FUNCTIONS] += period;
    }
}

static void count_all(struct model *model, const struct world *world)
{
    const struct call_profile *profile = &world->profile;
    for (size_t i = 0; i < profile->sample_count; i++) {
        uint32_t stack[MOST_DEEP];
        size_t depth = 0;
        for (uint32_t node = profile->samples[i].node; node; node = profile->nodes[node].parent)
            stack[depth++] = world->functions.of_frame[profile->nodes[node].frame];
        count_sample(model, stack, depth, profile->samples[i].period);
    }
}

/* ---- Tests ---- */

static void check_calls(const struct world *world, const struct model *model, uint32_t function)
{
    uint64_t in = 0, in_self = 0, out = model->self[function];
    for (size_t i = profile_calls_of(&world->in, function, false);
         i < world->in.count && world->in.items[i].callee == function; i++) {
        const struct profile_call *call = &world->in.items[i];
        size_t caller = call->caller == PROFILE_NOTHING ? FUNCTIONS : call->caller;
        assert_int_equal(call->weight, model->in[function][caller]);
        assert_true(call->self <= call->weight);
        in += call->weight;
        in_self += call->self;
    }
    for (size_t i = profile_calls_of(&world->out, function, true);
         i < world->out.count && world->out.items[i].caller == function; i++) {
        const struct profile_call *call = &world->out.items[i];
        assert_int_not_equal(call->callee, function);
        assert_int_equal(call->weight, model->out[function][call->callee]);
        assert_true(call->self <= call->weight);
        out += call->weight;
    }
    assert_int_equal(in, model->total[function]);
    assert_int_equal(in_self, model->self[function]);
    assert_int_equal(out, model->total[function]);
}

static void test_callers_and_callees_add_up_to_the_total(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= PROFILES; seed++) {
        struct world world = {0};
        struct model model = {0};
        make(&world, seed);
        count_all(&model, &world);
        assert_int_equal(world.functions.count, FUNCTIONS);
        assert_int_equal(world.totals.all, model.all);
        for (uint32_t i = 0; i < FUNCTIONS; i++) {
            assert_int_equal(world.totals.function_self[i], model.self[i]);
            assert_int_equal(world.totals.function_total[i], model.total[i]);
            check_calls(&world, &model, i);
        }
        release(&world);
    }
}

static void test_each_frame_is_listed_with_its_function(void **state)
{
    (void)state;
    struct world world = {0};
    make(&world, 1);
    const struct profile_functions *functions = &world.functions;
    bool seen[FUNCTIONS * TIERS] = {false};
    assert_int_equal(functions->first[functions->count], world.profile.frame_count);
    for (uint32_t function = 0; function < functions->count; function++)
        for (uint32_t i = functions->first[function]; i < functions->first[function + 1]; i++) {
            assert_int_equal(functions->of_frame[functions->frames[i]], function);
            assert_false(seen[functions->frames[i]]);
            seen[functions->frames[i]] = true;
        }
    release(&world);
}

/* 2 000 recursions of 1 000 frames, each on another branch: what grew with nodes times depth took
 * minutes. */
static void test_deep_recursion_takes_no_longer_than_its_nodes(void **state)
{
    (void)state;
    const struct profile_choice all = {.weight = WEIGHT_SAMPLES};
    const struct profile_thread thread = {1, 1, 0, 0};
    struct world world = {0};
    struct call_profile *profile = &world.profile;
    assert_int_equal(call_profile_begin(profile), 0);
    assert_int_equal(call_profile_add_thread(profile, &thread), 0);
    for (unsigned i = 0; i < 2000; i++) {
        char name[16];
        struct call_frame frame = {
            .name = call_profile_add_string(profile, name,
                                            (size_t)snprintf(name, sizeof name, "f%u", i))};
        uint32_t node = call_profile_add_node(profile, 0, call_profile_add_frame(profile, &frame));
        for (unsigned deep = 0; deep < 1000; deep++)
            node = call_profile_add_node(profile, node, add_frame(profile, deep % 2, 0));
        const struct call_sample sample = {.period = 1, .node = node};
        assert_int_equal(call_profile_add_sample(profile, &sample), 0);
    }
    assert_int_equal(profile_functions_find(&world.functions, profile), 0);
    assert_int_equal(profile_totals_count(&world.totals, profile, &world.functions, &all), 0);
    world.counted = (struct profile_counted){profile, &world.functions, &world.totals};
    assert_int_equal(profile_calls_out(&world.out, &world.counted), 0);
    assert_int_equal(world.out.count,
                     2000 + 1); /* each f calls a; a calls b, where b is innermost */
    release(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_callers_and_callees_add_up_to_the_total),
        cmocka_unit_test(test_each_frame_is_listed_with_its_function),
        cmocka_unit_test(test_deep_recursion_takes_no_longer_than_its_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
