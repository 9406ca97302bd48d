/* The unwind tables of tinyjit's code, at every instruction.
 *
 * tinyjit runs step by step (single_step_trace.h) through a script that reaches every instruction
 * (single_step_script.h).  perfjit makes ELF files of its dump, in both layouts, and elfutils reads
 * them (single_step_tables.h).  At each step, CFA, return address and all registers that a function
 * must preserve are unwound (single_step_unwind.h) and compared with what they really are.
 *
 * The script's functions are small, and would be inlined in each other, where no call needs all
 * their paths: so it runs without inlining.  Another one (single_step_inlines.h) is made for that.
 */
#include "injector/arrays/address_map.h"
#include "tests/unit/single_step_coverage.h"
#include "tests/unit/single_step_inlines.h"
#include "tests/unit/single_step_script.h"
#include "tests/unit/single_step_unwind.h"

enum { MAX_OPTIONS = 4, SHOWN_MISTAKES = 5, LATE = 6 };

/* A way to run the script. */
struct variant {
    const char *options[MAX_OPTIONS];
    int kind, when;
    const char *runs; /* of main() */
    int status;
    const char *script;       /* NULL: script_format */
    struct coverage *visited; /* NULL: coverage */
};

static struct coverage coverage = {.machine =
                                       &coverage_x86_64}; /* of runs that shall visit everything, */
static struct coverage partial_coverage = {.machine = &coverage_x86_64}; /* and of others */

static struct {
    uint64_t steps;      /* each was checked against both layouts */
    uint64_t boundaries; /* places of instructions, counted for each address that a function had */
    uint64_t moved_steps;
    size_t deepest;
    uint64_t inlined_steps; /* as steps, once for each layout */
    size_t deepest_inlined;
} totals;

/* ---- Running ---- */

static const char *tinyjit_path(char path[256])
{
    const char *build = getenv("BUILD");
    snprintf(path, 256, "%s/tinyjit", build ? build : "build");
    return path;
}

static void write_script(const char *path, const struct variant *variant)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, variant->script ? variant->script : script_format, variant->kind, variant->when);
    assert_int_equal(fclose(file), 0);
}

static void run_variant(struct trace *trace, const struct variant *variant)
{
    char tinyjit[256], script[64], truth[64];
    const char *arguments[MAX_OPTIONS + 8];
    size_t count = 0;
    snprintf(script, sizeof script, "%s/script.tj", scratch);
    snprintf(truth, sizeof truth, "%s/truth", scratch);
    write_script(script, variant);
    unlink(truth);
    arguments[count++] = tinyjit_path(tinyjit);
    for (size_t i = 0; i < MAX_OPTIONS && variant->options[i]; i++)
        arguments[count++] = variant->options[i];
    arguments[count++] = "--repeat";
    arguments[count++] = variant->runs;
    arguments[count++] = "--truth";
    arguments[count++] = truth;
    arguments[count++] = script;
    arguments[count] = NULL;
    trace_run(trace, (char *const *)(uintptr_t)arguments, truth);
    assert_int_equal(WEXITSTATUS(trace->status), variant->status);
}

/* ---- Checking ---- */

struct check {
    const struct variant *variant;
    const struct trace *trace;
    struct tables tables;
    struct address_map owners; /* which function has which addresses, at the time of a step */
    size_t change;             /* next in the timeline */
    size_t *pieces;            /* of each function */
    bool *moved;
    struct coverage *visited;
    struct jit_inline_info *inlines; /* of each function */
    size_t mistakes;
};

static void play_changes(struct check *check, uint64_t time_ns)
{
    const struct timeline *timeline = &check->tables.timeline;
    for (; check->change < timeline->change_count; check->change++) {
        const struct change *change = &timeline->changes[check->change];
        if (change->time_ns > time_ns)
            return;
        assert_int_not_equal(change->kind, CHANGE_MAP);
        if (change->kind == CHANGE_FUNCTION)
            assert_int_equal(
                address_map_set(&check->owners, change->start, change->end, change->index), 0);
        else
            assert_int_equal(address_map_clear(&check->owners, change->start, change->end), 0);
    }
}

static uint32_t function_at(const struct check *check, uint64_t addr)
{
    const struct address_range *range = address_map_at(&check->owners, addr);
    if (!range)
        fail_msg("0x%" PRIx64 ": the profile would show no function here", addr);
    return range->value;
}

static void print_mistake(const struct check *check, const struct jit_function *function,
                          const struct trace_step *step, const struct unwind_answer *answer)
{
    uint64_t offset = step->rip - function->addr;
    print_message("# %s+0x%" PRIx64 " [", function->name, offset);
    for (uint64_t i = offset; i < offset + 8 && i < function->size; i++)
        print_message(" %02x", function->code[i]);
    print_message(" ]: %s is 0x%" PRIx64 " by the table, and really 0x%" PRIx64 "%s%s;",
                  answer->what, answer->found, answer->truth, answer->wrong ? ": " : "",
                  answer->wrong ? answer->wrong : "");
    for (size_t i = 0; i < MAX_OPTIONS && check->variant->options[i]; i++)
        print_message(" %s", check->variant->options[i]);
    print_message("\n");
}

static void count_inlined(const struct check *check, uint32_t function, uint64_t offset)
{
    size_t depth = inlines_at(&check->inlines[function], offset);
    totals.inlined_steps += depth > 0;
    if (depth > totals.deepest_inlined)
        totals.deepest_inlined = depth;
}

static void check_step(struct check *check, const struct trace_step *step)
{
    struct unwind_answer answer;
    bool first;
    play_changes(check, step->time_ns);
    uint32_t index = function_at(check, step->rip);
    const struct jit_function *function = &check->tables.timeline.log->functions[index];
    Dwarf_Frame *frame = tables_frame(&check->tables, index, step->rip, &first);
    if (!unwind_check(check->trace, step, frame, &answer) && check->mistakes++ < SHOWN_MISTAKES)
        print_mistake(check, function, step, &answer);
    coverage_visit(&check->visited->pieces[check->pieces[index]], step->rip - function->addr);
    count_inlined(check, index, step->rip - function->addr);
    totals.boundaries += first;
    totals.moved_steps += check->moved[index];
}

/* Which piece each function is, also of those that never ran. */
static void find_pieces(struct check *check)
{
    const struct code_log *log = check->tables.timeline.log;
    check->pieces = calloc(log->function_count, sizeof *check->pieces);
    check->moved = calloc(log->function_count, sizeof *check->moved);
    assert_true(check->pieces && check->moved);
    const struct code_log *read = &check->tables.process.log; /* with the events */
    for (size_t i = 0; i < read->move_count; i++)
        check->moved[read->moves[i].function] = true;
    for (size_t i = 0; i < log->function_count; i++)
        check->pieces[i] =
            (size_t)(coverage_piece(check->visited, &log->functions[i]) - check->visited->pieces);
}

/* perfjit makes the tables of the dump that TRACE left, as if each step were a sample. */
static void open_tables(struct tables *tables, const struct trace *trace, enum image_layout layout)
{
    char dump_name[64];
    uint64_t *times_ns = malloc(trace->step_count * sizeof *times_ns);
    assert_non_null(times_ns);
    for (size_t i = 0; i < trace->step_count; i++)
        times_ns[i] = trace->steps[i].time_ns;
    snprintf(dump_name, sizeof dump_name, "jitdump-%d/jit-%d.dump", (int)trace->pid,
             (int)trace->pid);
    tables_open(tables, dump_name, times_ns, trace->step_count, layout);
    free(times_ns);
}

static void check_layout(const struct variant *variant, const struct trace *trace,
                         enum image_layout layout)
{
    struct check check = {.variant = variant, .trace = trace};
    check.visited = variant->visited ? variant->visited : &coverage;
    open_tables(&check.tables, trace, layout);
    find_pieces(&check);
    check.inlines =
        inlines_of_functions(&check.tables.dump, check.tables.timeline.log->function_count);
    for (size_t i = 0; i < trace->step_count; i++)
        check_step(&check, &trace->steps[i]);
    address_map_free(&check.owners);
    free(check.pieces);
    free(check.moved);
    free(check.inlines);
    tables_close(&check.tables);
    if (check.mistakes)
        fail_msg("%zu of %zu steps are unwound wrongly", check.mistakes, trace->step_count);
}

static void check_variant(const struct variant *variant)
{
    struct trace trace;
    run_variant(&trace, variant);
    assert_true(trace.step_count > 0);
    check_layout(variant, &trace, LAYOUT_IMAGE);
    check_layout(variant, &trace, LAYOUT_FUNCTION);
    totals.steps += trace.step_count;
    if (trace.deepest > totals.deepest)
        totals.deepest = trace.deepest;
    trace_free(&trace);
}

/* ---- The tests ---- */

static void check_kind(struct variant variant, int kind, const char *runs)
{
    variant.kind = kind;
    variant.runs = runs;
    check_variant(&variant);
}

/* Each failure early and late: in the first run of main() by tier 1, in a late one by what it has
 * become.  The stack is filled only once, which is enough and takes long. */
static void check_failures(struct variant variant)
{
    variant.status = 1;
    for (variant.when = 1; variant.when <= LATE; variant.when += LATE - 1)
        for (int kind = 1; kind < SCRIPT_FULL_STACK; kind++)
            check_kind(variant, kind, "10");
    variant.when = LATE;
    check_kind(variant, SCRIPT_FULL_STACK, "10");
}

/* In make check a test takes one of its two variants, with or without frame pointers, and the next
 * test the other. */
static bool is_left_out(size_t variant, size_t test)
{
    return getenv("BRIEF") && (variant + test) % 2;
}

static void test_both_tiers(void **state)
{
    static const struct variant variants[] = {
        {.options = {"--no-inline", "--tier2-after=4", "--compact-every=1"}},
        {.options = {"--no-inline", "--tier2-after=4", "--compact-every=1", "--no-frame-pointer"}},
    };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        if (is_left_out(i, 1))
            continue;
        check_kind(variants[i], SCRIPT_EXERCISE, "7");
        check_kind(variants[i], SCRIPT_WARM, "6");
        check_failures(variants[i]);
    }
}

static void test_tier1_alone(void **state)
{
    static const struct variant variants[] = {
        {.options = {"--no-tier2"}},
        {.options = {"--no-tier2", "--no-frame-pointer"}},
    };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        if (is_left_out(i, 2))
            continue;
        for (int kind = 1; kind <= SCRIPT_FULL_STACK; kind++)
            check_kind(variants[i], kind, "1");
        check_kind(variants[i], SCRIPT_EXERCISE, "1");
        check_kind(variants[i], SCRIPT_WARM, "2");
    }
}

static void test_tier2_at_once(void **state)
{
    static const struct variant variants[] = {
        {.options = {"--no-inline", "--tier2-after=0"}},
        {.options = {"--no-inline", "--tier2-after=0", "--no-frame-pointer"}},
    };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        if (is_left_out(i, 3))
            continue;
        for (int kind = 1; kind <= SCRIPT_FULL_STACK; kind++)
            check_kind(variants[i], kind, "1");
        check_kind(variants[i], SCRIPT_EXERCISE, "1");
        check_kind(variants[i], SCRIPT_WARM, "2");
        check_kind(variants[i], SCRIPT_CONSTANTS, "1");
    }
}

/* Every instruction of inlined code, with and without frame pointers. */
static void test_inlined_calls(void **state)
{
    static const struct variant variants[] = {
        {.options = {"--tier2-after=0"}, .script = inlining_script_format},
        {.options = {"--tier2-after=0", "--no-frame-pointer"}, .script = inlining_script_format},
    };
    (void)state;
    assert_int_equal(totals.inlined_steps, 0);
    for (size_t i = 0; i < 2; i++) {
        if (is_left_out(i, 4))
            continue;
        check_kind(variants[i], SCRIPT_EXERCISE, "2");
        struct variant failing = variants[i];
        failing.status = 1;
        failing.when = 2;
        for (int kind = 1; kind <= 2; kind++)
            check_kind(failing, kind, "2");
    }
    assert_true(totals.inlined_steps > 0);
    assert_true(totals.deepest_inlined >= 3);
}

/* Both scripts, with code that is compiled again, forgotten, and moved. */
static void test_inlined_calls_in_code_that_moves(void **state)
{
    static const char *const scripts[] = {script_format, inlining_script_format};
    static const char *const frames[] = {"--repeat=7",
                                         "--no-frame-pointer"}; /* the first says nothing new */
    (void)state;
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < 2; k++) {
            if (is_left_out(k, 5 + i))
                continue;
            check_kind(
                (struct variant){.options = {"--tier2-after=4", "--compact-every=1", frames[k]},
                                 .script = scripts[i],
                                 .visited = &partial_coverage},
                SCRIPT_EXERCISE, "7");
        }
}

static void test_everything_was_visited(void **state)
{
    (void)state;
    if (totals.steps == 0)
        skip();
    struct coverage_totals covered = coverage_report(&coverage);
    print_message("# %" PRIu64 " steps, checked against the tables of both layouts, %" PRIu64
                  " of those in moved code, up to %zu frames deep\n",
                  totals.steps, totals.moved_steps / 2, totals.deepest);
    print_message("# %" PRIu64 " steps in inlined calls, up to %zu in each other\n",
                  totals.inlined_steps / 2, totals.deepest_inlined);
    print_message("# %" PRIu64 " instructions at all addresses and in both layouts\n",
                  totals.boundaries);
    print_message(
        "# %zu pieces of code with %zu instructions, of which %zu can be reached, and %zu "
        "were visited\n",
        covered.pieces, covered.boundaries, covered.reachable, covered.visited);
    assert_true(totals.moved_steps > 0);
    assert_true(totals.deepest > 1000);
    assert_int_equal(covered.visited, covered.reachable);
}

static int forget_coverage(void **state)
{
    coverage_free(&coverage);
    coverage_free(&partial_coverage);
    return remove_scratch(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_tiers),
        cmocka_unit_test(test_tier1_alone),
        cmocka_unit_test(test_tier2_at_once),
        cmocka_unit_test(test_inlined_calls),
        cmocka_unit_test(test_inlined_calls_in_code_that_moves),
        cmocka_unit_test(test_everything_was_visited),
    };
    return cmocka_run_group_tests(tests, make_scratch, forget_coverage);
}
