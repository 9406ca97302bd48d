/* The unwind tables of aarch64 code, at every instruction.
 *
 * aarch64_frames, a program for aarch64 whose functions have frames of every kind, runs step by
 * step under qemu (aarch64_trace.h over qemu_stub.h) and writes its dump with libjitdump.  perfjit
 * makes ELF files of the dump, in both layouts, and elfutils reads them (single_step_tables.h).  At
 * each step the whole chain of calls is unwound (aarch64_unwind.h): CFA, return address and all
 * registers that a function must preserve are compared with what they really were.
 *
 * That the comparison sees something is shown with tables that are wrong in one place
 * (aarch64_faults.h). */
#include "tests/unit/aarch64_faults.h"
#include "tests/unit/aarch64_rules.h"
#include "tests/unit/aarch64_unwind.h"
#include "tests/unit/single_step_coverage.h"

enum { SHOWN_MISTAKES = 5 };

static bool has_run; /* to its end */
static struct trace trace;
static char dump_name[64]; /* in the scratch directory */
static struct coverage coverage = {.machine = &coverage_aarch64};

static struct {
    size_t unwound, compared, places;
} totals;

/* ---- Running ---- */

static bool is_there(const char *command)
{
    char line[256];
    snprintf(line, sizeof line, "command -v '%s' >/dev/null", command);
    return system(line) == 0;
}

static void find_program(char path[256])
{
    const char *build = getenv("BUILD");
    snprintf(path, 256, "%s/aarch64/aarch64_frames", build ? build : "build");
}

static void require_aarch64(void)
{
    char program[256];
    find_program(program);
    if (access(program, X_OK)) {
        print_message("# %s was not built: there is no aarch64-linux-gnu-gcc (make setup-live)\n",
                      program);
        skip();
    }
    if (!is_there("qemu-aarch64")) {
        print_message("# there is no qemu-aarch64 (make setup-live)\n");
        skip();
    }
}

/* For all tests but the first. */
static void require_trace(void)
{
    require_aarch64();
    assert_true(has_run);
}

/* ---- Checking ---- */

struct check {
    struct tables tables;
    bool chains;  /* unwind them; else only the innermost frame */
    bool *caught; /* by function: whether something was wrong */
    size_t mistakes;
};

static uint32_t function_at(const struct code_log *log, uint64_t addr)
{
    for (uint32_t i = 0; i < log->function_count; i++)
        if (addr - log->functions[i].addr < log->functions[i].size)
            return i;
    fail_msg("0x%" PRIx64 ": no function is here", addr);
    return 0;
}

static void print_mistake(const struct check *check, const struct unwinding *unwinding)
{
    const struct code_log *log = check->tables.timeline.log;
    uint64_t pc = unwinding->step->pc;
    const struct jit_function *function = &log->functions[function_at(log, pc)];
    print_message("# %s+0x%" PRIx64 ", %zu calls from the innermost frame: %s is 0x%" PRIx64
                  " by the table, and really 0x%" PRIx64 "%s%s\n",
                  function->name, pc - function->addr, unwinding->level, unwinding->what,
                  unwinding->found, unwinding->truth, unwinding->wrong ? ": " : "",
                  unwinding->wrong ? unwinding->wrong : "");
}

static void check_step(struct check *check, const struct trace_step *step)
{
    struct unwinding unwinding = unwind_begin(&trace, step);
    const struct code_log *log = check->tables.timeline.log;
    bool right, first;
    do {
        uint32_t index = function_at(log, unwinding.step->pc);
        Dwarf_Frame *frame = tables_frame(&check->tables, index, unwinding.step->pc, &first);
        right = unwind_one(&unwinding, frame);
        check->caught[index] |= !right;
        totals.places += first;
        totals.unwound++;
    } while (right && check->chains && unwind_next(&unwinding));
    totals.compared += unwinding.compared;
    if (!right && check->mistakes++ < SHOWN_MISTAKES && check->chains)
        print_mistake(check, &unwinding);
    if (right && check->chains)
        assert_int_equal(unwinding.level + 1, step->depth);
}

/* Compare all steps with the tables of the dump NAME. */
static void check_begin(struct check *check, const char *name, enum image_layout layout)
{
    *check = (struct check){0};
    tables_open(&check->tables, name, trace.times_ns, trace.step_count, layout);
    check->caught = calloc(check->tables.timeline.log->function_count, sizeof *check->caught);
    assert_non_null(check->caught);
}

static void check_steps(struct check *check)
{
    for (size_t i = 0; i < trace.step_count; i++)
        check_step(check, &trace.steps[i]);
}

static void check_end(struct check *check)
{
    free(check->caught);
    tables_close(&check->tables);
}

/* ---- The tests ---- */

static void test_the_program_ran(void **state)
{
    char program[256];
    (void)state;
    require_aarch64();
    find_program(program);
    trace_run(&trace, program);
    snprintf(dump_name, sizeof dump_name, "jitdump-%d/jit-%d.dump", (int)trace.stub.pid,
             (int)trace.stub.pid);
    assert_int_equal(trace.status, 0);
    assert_true(trace.deepest >= 10);
    has_run = true;
}

/* perfjit's ELF files, as binutils and elfutils see them. */
static void check_files(const struct tables *tables)
{
    char command[512], line[256];
    unsigned machines = 0;
    snprintf(command, sizeof command,
             "cd '%s' && eu-readelf -h *.so | grep -c '^ *Machine: *AARCH64$';"
             "readelf -W --debug-dump=frames-interp *.so 2>&1 >/dev/null;"
             "eu-readelf --debug-dump=frames *.so 2>&1 >/dev/null;"
             "eu-elflint -q --gnu-ld *.so 2>&1 | grep -v -e '\\.so:$' -e '^$'",
             tables->directory);
    FILE *output = popen(command, "r");
    assert_non_null(output);
    assert_int_equal(fscanf(output, "%u ", &machines), 1);
    while (fgets(line, sizeof line, output))
        fail_msg("a tool complains: %s", line);
    pclose(output);
    assert_int_equal(machines, tables->plan.image_count);
}

static void visit_all(const struct check *check)
{
    const struct code_log *log = check->tables.timeline.log;
    for (size_t i = 0; i < log->function_count; i++)
        coverage_piece(&coverage, &log->functions[i]);
    assert_int_equal(coverage.count, log->function_count);
    for (size_t i = 0; i < trace.step_count; i++) {
        uint32_t index = function_at(log, trace.steps[i].pc);
        coverage_visit(&coverage.pieces[index], trace.steps[i].pc - log->functions[index].addr);
    }
}

static void check_layout(enum image_layout layout)
{
    struct check check;
    check_begin(&check, dump_name, layout);
    check.chains = true;
    check_files(&check.tables);
    check_steps(&check);
    if (layout == LAYOUT_IMAGE)
        visit_all(&check);
    check_end(&check);
    if (check.mistakes)
        fail_msg("%zu of %zu steps are unwound wrongly", check.mistakes, trace.step_count);
}

static void test_every_chain_at_every_instruction(void **state)
{
    (void)state;
    require_trace();
    check_layout(LAYOUT_IMAGE);
    check_layout(LAYOUT_FUNCTION);
    print_message(
        "# %zu steps, up to %zu frames deep; %zu frames unwound in both layouts, %zu values "
        "compared\n",
        trace.step_count, trace.deepest, totals.unwound, totals.compared);
    print_message("# %zu instructions in both layouts\n", totals.places);
}

/* The same by perfjit's own rules: all chains, and x19 to x29 in each frame. */
static void test_every_chain_by_own_rules(void **state)
{
    struct check check;
    size_t frames = 0;
    (void)state;
    require_trace();
    check_begin(&check, dump_name, LAYOUT_IMAGE);
    const struct code_log *log = check.tables.timeline.log;
    for (size_t i = 0; i < trace.step_count; i++) {
        struct rules_walk walk = rules_begin(&trace, &trace.steps[i]);
        do {
            if (!rules_step(&walk, log, function_at(log, rules_pc(&walk))))
                fail_msg("step %zu, 0x%" PRIx64 ": wrong %zu calls from the innermost frame", i,
                         trace.steps[i].pc, walk.level);
            frames++;
        } while (rules_next(&walk));
        assert_int_equal(walk.level + 1, trace.steps[i].depth);
    }
    check_end(&check);
    print_message("# %zu frames\n", frames);
}

static void test_everything_was_visited(void **state)
{
    (void)state;
    require_trace();
    struct coverage_totals covered = coverage_report(&coverage);
    print_message(
        "# %zu functions with %zu instructions, of which %zu can be reached, and %zu were "
        "visited\n",
        covered.pieces, covered.boundaries, covered.reachable, covered.visited);
    assert_true(covered.visited > 1000);
    assert_int_equal(covered.visited, covered.reachable);
    assert_int_equal(covered.reachable, covered.boundaries);
}

/* Tables in which operand NUMBER of each function is wrong: each function must be found.  Returns
 * in how many it is. */
static size_t check_faults(const struct jit_dump *dump, size_t number)
{
    struct faults faults;
    struct check check;
    size_t missed = 0;
    char path[128];
    snprintf(path, sizeof path, "%s/faulty.dump", scratch);
    faults_plant(&faults, dump, number, path);
    if (faults.planted == 0)
        return 0;
    check_begin(&check, "faulty.dump", LAYOUT_IMAGE);
    check_steps(&check);
    const struct code_log *log = check.tables.timeline.log;
    for (size_t i = 0; i < log->function_count; i++)
        if (check.caught[i] != faults.has_one[i]) {
            print_message("# operand %zu of %s is %s, which was %s\n", number,
                          log->functions[i].name, faults.has_one[i] ? "wrong" : "right",
                          check.caught[i] ? "called wrong" : "not noticed");
            missed++;
        }
    check_end(&check);
    assert_int_equal(missed, 0);
    return faults.planted;
}

static void test_a_wrong_table_is_noticed(void **state)
{
    (void)state;
    require_trace();
    struct jit_dump dump;
    char path[128], cause[256];
    size_t planted = 0, round, number = 0;
    snprintf(path, sizeof path, "%s/%s", scratch, dump_name);
    assert_int_equal(jit_dump_open(&dump, path, cause, sizeof cause), 0);
    while ((round = check_faults(&dump, number)) > 0) {
        planted += round;
        number++;
    }
    jit_dump_close(&dump);
    print_message("# %zu faults planted, up to %zu in a function, and all noticed\n", planted,
                  number);
    assert_true(planted > 100);
}

static int forget_all(void **state)
{
    coverage_free(&coverage);
    trace_free(&trace);
    return remove_scratch(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_program_ran),
        cmocka_unit_test(test_every_chain_at_every_instruction),
        cmocka_unit_test(test_every_chain_by_own_rules),
        cmocka_unit_test(test_everything_was_visited),
        cmocka_unit_test(test_a_wrong_table_is_noticed),
    };
    return cmocka_run_group_tests(tests, make_scratch, forget_all);
}
