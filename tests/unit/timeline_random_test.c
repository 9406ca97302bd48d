/* The timeline of random sequences, against a model. */
#include "tests/unit/timeline_model.h"

static struct process_builder built;

/* ---- Random sequences ---- */

static struct process_builder child;

struct played {
    struct timeline parent, child;
};

static const struct process_builder *builder_of(const struct family *family, bool is_child)
{
    return is_child ? family->child : family->parent;
}

static void assert_seen_at(const struct family *family, const struct played *played, bool is_child,
                           uint64_t time_ns)
{
    const struct process_builder *builder = builder_of(family, is_child);
    struct model model = model_at(family, builder, time_ns);
    uint32_t seen[SPACE] = {0};
    reader_at(family->parent, &played->parent, is_child ? family->fork_ns : time_ns, FUNCTION,
              seen);
    if (is_child)
        reader_at(family->child, &played->child, time_ns, CHILD, seen);
    for (size_t i = 0; i < SPACE; i++) {
        assert_int_equal(seen[i] >= FUNCTION ? seen[i] : NOTHING, model.owners[i]);
        if (model.owners[i] < FUNCTION)
            assert_true(seen[i] == model.backing[i] || seen[i] == GONE);
    }
}

/* A record is left out only where it would have hidden live code. */
static void assert_dropped_hide_code(const struct family *family, const struct played *played,
                                     bool is_child)
{
    const struct process_builder *builder = builder_of(family, is_child);
    const struct timeline *timeline = is_child ? &played->child : &played->parent;
    for (size_t i = 0; i < timeline->dropped_count; i++) {
        size_t map = (size_t)timeline->dropped[i] - 1000;
        const struct perf_map *dropped = &builder->maps[map].map;
        struct model model = model_begin(family, builder);
        bool covers = false;
        model_play(family, builder, &model, builder->maps[map].time_ns,
                   builder->process.log.event_count, map + 1);
        for (uint64_t at = dropped->start; at < dropped->start + dropped->len; at += CELL_BYTES)
            covers = covers || model.owners[cell_of(at)] >= FUNCTION;
        assert_true(covers);
    }
}

/* Functions of one generation share an image, so they must not overlap. */
static void assert_generations_do_not_overlap(const struct timeline *timeline)
{
    const struct code_log *log = timeline->log;
    const struct function_state *states = timeline->states;
    for (uint32_t i = 0; i < log->function_count; i++)
        for (uint32_t j = 0; j < i; j++) {
            const struct jit_function *a = &log->functions[i], *b = &log->functions[j];
            if (states[i].visible && states[j].visible &&
                states[i].generation == states[j].generation)
                assert_true(a->addr + a->size <= b->addr || b->addr + b->size <= a->addr);
        }
}

static void assert_in_order(const struct timeline *timeline)
{
    for (size_t i = 1; i < timeline->change_count; i++)
        assert_true(timeline->changes[i - 1].time_ns <= timeline->changes[i].time_ns);
}

/* A child that is forked at a random time of BUILT, at which it has no record of its own, and
 * touches all. */
static void build_child(struct family *family, uint64_t *seed, uint64_t last_ns)
{
    family->fork_ns = 10000;
    for (size_t i = 0; i < built.process.fork_count && family->fork_ns == 10000; i++)
        if (random_below(seed, 3) == 0 || i + 1 == built.process.fork_count) {
            family->fork_ns = built.process.forks[i].at.time_ns;
            built.process.forks[i].child = &child.process;
            child.process.fork = i;
        }
    if (family->fork_ns == 10000) {
        family->fork_ns = last_ns + 2 - last_ns % 2;
        child.process.fork = built.process.fork_count;
        build_fork(&built, family->fork_ns, &child.process);
    }
    child.process.parent = &built.process;
    child.process.begin = (struct life_moment){family->fork_ns, 5000};
    child.process.touched = malloc(sizeof(struct address_span));
    assert_non_null(child.process.touched);
    child.process.touched[0] = (struct address_span){BASE, BASE + (uint64_t)CELL_BYTES * SPACE};
    child.process.touched_count = 1;
    build_random(&child, seed, family->fork_ns + 1, &built);
}

static void play_random(uint64_t seed)
{
    struct family family = {&built, &child, 0};
    struct played played;
    struct findings findings = {0};
    size_t inherited = 0;
    uint64_t samples[MODEL_SAMPLES], time_ns = 1;
    uint32_t pace = 1 + random_below(&seed, 10);
    built.process.load_slack_ns = child.process.load_slack_ns = random_below(&seed, 2) * 7;
    build_child(&family, &seed, build_random(&built, &seed, 2, NULL)); /* behind the first sample */
    for (size_t i = 0; i < MODEL_SAMPLES; i++, time_ns += 2 * random_below(&seed, pace))
        samples[i] = time_ns;
    assert_int_equal(timeline_play(&played.parent, &built.process, NULL, &inherited, samples,
                                   MODEL_SAMPLES, &findings),
                     0);
    assert_int_equal(timeline_play(&played.child, &child.process, &played.parent, &inherited,
                                   samples, MODEL_SAMPLES, &findings),
                     0);
    assert_in_order(&played.parent);
    assert_in_order(&played.child);
    for (size_t i = 0; i < MODEL_SAMPLES; i++) {
        assert_seen_at(&family, &played, false, samples[i]);
        if (samples[i] > family.fork_ns)
            assert_seen_at(&family, &played, true, samples[i]);
    }
    assert_dropped_hide_code(&family, &played, false);
    assert_dropped_hide_code(&family, &played, true);
    assert_generations_do_not_overlap(&played.parent);
    assert_generations_do_not_overlap(&played.child);
    timeline_free(&played.parent);
    timeline_free(&played.child);
    findings_free(&findings);
}

static void test_random_sequences_show_what_a_model_knows(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        process_begin(&built);
        process_begin(&child);
        play_random(seed * 7919);
        process_free(&child);
        process_free(&built);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_sequences_show_what_a_model_knows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
