/* Runs to compare that are made in a test: stacks, and what each takes of a run of either side. */
#ifndef PERFJIT_MADE_RUNS_H
#define PERFJIT_MADE_RUNS_H

#include "injector/compare/diff_json.h"
#include "injector/compare/diff_markdown.h"
#include "tests/unit/scratch.h"

enum { SIDE = 8, MOST = 4, LINE = 7 };

struct made_frame {
    const char *name, *module, *file, *tier;
    enum frame_kind kind;
    bool inlined;
    const char *at; /* the innermost one's: the file of its line, which is LINE; NULL: not known */
};

/* A stack, the outermost first, and what it takes of a run of each side, in us. */
struct made_stack {
    struct made_frame frames[MOST];
    const char *thread;
    uint32_t us[2];
};

static inline uint32_t text(struct call_profile *profile, const char *word)
{
    return call_profile_add_string(profile, word ? word : "", word ? strlen(word) : 0);
}

static inline void add_stack(struct call_profile *profile, const struct made_stack *stack,
                             const char *process, uint64_t period, uint32_t line)
{
    uint32_t node = 0;
    const char *at = NULL;
    const char *thread = stack->thread ? stack->thread : process;
    for (size_t i = 0; i < MOST && stack->frames[i].name; i++) {
        const struct made_frame *made = &stack->frames[i];
        const struct call_frame frame = {.name = text(profile, made->name),
                                         .module = text(profile, made->module),
                                         .file = text(profile, made->file),
                                         .line = line,
                                         .tier = text(profile, made->tier),
                                         .kind = made->kind,
                                         .inlined = made->inlined};
        node = call_profile_add_node(profile, node, call_profile_add_frame(profile, &frame));
        at = made->at;
    }
    const struct profile_thread named = {1, 1, text(profile, thread), text(profile, process)};
    const struct call_place place = {.line = LINE, .file = text(profile, at), .known = true};
    const struct call_sample sample = {.period = period,
                                       .node = node,
                                       .thread = call_profile_add_thread(profile, &named),
                                       .place = at ? call_profile_add_place(profile, &place) : 0};
    assert_int_equal(call_profile_add_sample(profile, &sample), 0);
}

static inline void begin_runs(struct run_set *set, const char *lines_of)
{
    assert_int_equal(run_set_begin(set), 0);
    set->lines_of = lines_of;
}

/* RUNS of each side of the COUNT STACKS; each run has up to NOISE per mille more. */
static inline void add_runs(struct run_set *set, const struct made_stack *stacks, size_t count,
                            size_t runs, uint64_t noise, const char *const processes[2])
{
    uint64_t seed = 5;
    for (size_t run = 0; run < 2 * runs; run++) {
        bool is_new = run % 2;
        struct call_profile profile;
        const struct profile_choice choice = {.weight = WEIGHT_PERIOD};
        const struct profile_event event = {.counts_ns = true};
        assert_int_equal(call_profile_begin(&profile), 0);
        assert_int_equal(call_profile_add_event(&profile, &event), 0);
        for (size_t i = 0; i < count; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            uint64_t more = noise ? (seed >> 33) % (noise + 1) : 0;
            if (stacks[i].us[is_new])
                add_stack(&profile, &stacks[i], processes[is_new],
                          (uint64_t)stacks[i].us[is_new] * (1000 + more), (uint32_t)run + 1);
        }
        assert_int_equal(run_set_add(set, is_new, &profile, &choice), 0);
        call_profile_free(&profile);
    }
}

static inline void make_runs(struct run_set *set, const struct made_stack *stacks, size_t count,
                             size_t runs, uint64_t noise, const char *const processes[2])
{
    begin_runs(set, NULL);
    add_runs(set, stacks, count, runs, noise, processes);
}

static const char *const one_program[2] = {"node", "node"};

static inline char *text_of(const struct diff_report *report,
                            void (*put)(FILE *stream, const struct diff_report *report))
{
    char *made = NULL;
    size_t bytes;
    FILE *stream = open_memstream(&made, &bytes);
    put(stream, report);
    assert_int_equal(fclose(stream), 0);
    return made;
}

static inline char *markdown_of(const struct diff_report *report, size_t most_bytes)
{
    char *made = NULL;
    size_t bytes;
    FILE *stream = open_memstream(&made, &bytes);
    assert_int_equal(diff_markdown_put(stream, report, most_bytes), 0);
    assert_int_equal(fclose(stream), 0);
    return made;
}

#define JIT(name, tier)                                                                            \
    {                                                                                              \
        name, "jit", "/srv/" name ".js", tier, FRAME_JIT, false, NULL                              \
    }
#define AT(name, file)                                                                             \
    {                                                                                              \
        name, "jit", "/srv/" name ".js", "TurboFan", FRAME_JIT, false, file                        \
    }
#define INLINED(name, tier)                                                                        \
    {                                                                                              \
        name, "jit", "/srv/" name ".js", tier, FRAME_JIT, true, NULL                               \
    }
#define BYTECODE(name)                                                                             \
    {                                                                                              \
        name, "jit", "/srv/" name ".js", "bytecode", FRAME_INTERPRETER, false, NULL                \
    }
#define NATIVE(name)                                                                               \
    {                                                                                              \
        name, "node", "", "", FRAME_NATIVE, false, NULL                                            \
    }
#define KERNEL(name)                                                                               \
    {                                                                                              \
        name, "[kernel]", "", "", FRAME_KERNEL, false, NULL                                        \
    }
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

#endif
