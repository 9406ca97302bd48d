/* See bench_run.h. */
#include "injector/run/bench/bench_run.h"

#include "injector/profile/activity.h"
#include "injector/files/interruption.h"
#include "injector/files/pipe_ends.h"
#include "injector/profile/call_profile.h"
#include "injector/profile/run_file.h"
#include "injector/profile/view_input.h"
#include "injector/run/bench/machine_facts.h"
#include "injector/run/record/record.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

/* ---- How much of a run its JIT compilers took ---- */

/* The periods of the samples of PROFILE in whose stack, or thread, a compiler is; UINT64_MAX
 * without memory. */
static uint64_t compile_time_of(const struct call_profile *profile)
{
    struct activity_map activities = {0};
    uint64_t sum = 0;
    int result = activity_map_make(&activities, profile);
    for (size_t i = 0; !result && i < profile->sample_count; i++)
        if (activity_of(&activities, &profile->samples[i]) == ACTIVITY_COMPILER)
            sum += profile->samples[i].period;
    activity_map_free(&activities);
    return result ? UINT64_MAX : sum;
}

/* The way the command ended, if its run can't be compared. */
static int check_end(const struct record_run *run, const struct bench_command *command,
                     struct findings *findings)
{
    const struct recorder_end *end = &run->end;
    const char *word = run->options->words[0];
    if (end->still_runs)
        return report_failure(findings,
                              "interrupted (%s); nothing was written; %s, process %d, did not end "
                              "by SIGTERM: it still runs",
                              command->place, word, (int)end->command);
    if (end->signal)
        return report_failure(findings, "interrupted (%s); nothing was written", command->place);
    if (end->perf_failed)
        return report_failure(findings, "%s: %s: %s", command->place, recorder_failure(end),
                              end->perf_said ? end->perf_said : "it says nothing");
    if (WIFSIGNALED(end->status))
        return report_failure(findings, "%s: %s was ended by signal %d (%s); nothing was written",
                              command->place, word, WTERMSIG(end->status),
                              strsignal(WTERMSIG(end->status)));
    if (WEXITSTATUS(end->status))
        return report_failure(findings, "%s: %s ended with status %d; nothing was written",
                              command->place, word, WEXITSTATUS(end->status));
    if (!run->recording.losses.taken)
        return report_failure(findings,
                              "%s: %s ran too briefly to be sampled: let it do more, or sample "
                              "more often (-F); nothing was written",
                              command->place, word);
    return 0;
}

/* The functions in the dumps, once for each compilation. */
static void count_code(uint64_t numbers[RUN_NUMBERS], const struct jit_processes *processes)
{
    for (size_t i = 0; i < processes->count; i++) {
        const struct code_log *log = &processes->items[i].log;
        for (size_t k = 0; k < log->event_count; k++) {
            const struct code_event *event = &log->events[k];
            if (event->kind != CODE_EVENT_LOAD || log->functions[event->index].dump == NO_DUMP)
                continue;
            numbers[RUN_FUNCTIONS]++;
            numbers[RUN_CODE_BYTES] += log->functions[event->index].size;
        }
    }
}

static int count_compilers(uint64_t numbers[RUN_NUMBERS], const struct view_input *input,
                           struct findings *findings)
{
    uint64_t compile_ns = compile_time_of(&input->profile);
    if (compile_ns == UINT64_MAX)
        return report_failure(findings, "out of memory");
    if (input->profile.events[input->choice.event].counts_ns)
        numbers[RUN_COMPILE_NS] = compile_ns;
    return 0;
}

static int keep(uint64_t numbers[RUN_NUMBERS], const char *raw, const struct bench_command *command,
                struct findings *findings)
{
    struct view_input input;
    struct view_request request;
    bool verbose = findings->verbose, quiet = findings->quiet;
    view_request_begin(&request, WEIGHT_PERIOD);
    request.input = raw;
    request.quiet = true;
    int result = view_input_open(&input, &request, findings);
    findings->verbose = verbose;
    findings->quiet = quiet;
    if (!result) {
        count_code(numbers, &input.recording.processes);
        numbers[RUN_SAMPLES] = input.profile.sample_count;
        result = count_compilers(numbers, &input, findings);
        result = result || run_file_write(command->kept, &input.profile, findings);
    }
    view_input_close(&input);
    view_request_free(&request);
    return result;
}

static void count_use(uint64_t numbers[RUN_NUMBERS], const struct recorder_end *end)
{
    uint64_t busy_ns = end->after.busy_ns - end->before.busy_ns;
    numbers[RUN_CPU_NS] = end->cpu_ns;
    numbers[RUN_WALL_NS] = end->after.time_ns - end->before.time_ns;
    numbers[RUN_BESIDE_NS] = busy_ns > end->cpu_ns ? busy_ns - end->cpu_ns : 0;
    numbers[RUN_STOLEN_NS] = end->after.stolen_ns - end->before.stolen_ns;
}

int bench_run_go(uint64_t numbers[RUN_NUMBERS], struct bench_leftover *leftover,
                 const struct bench_command *command, struct findings *findings)
{
    struct record_run run;
    *leftover = (struct bench_leftover){0};
    memset(numbers, 0, RUN_NUMBERS * sizeof *numbers);
    numbers[RUN_LOOP_NS] = machine_loop_ns();
    int result = record_run_go(&run, &command->record, findings);
    uint64_t loop_ns = machine_loop_ns();
    if (run.end.signal)
        interruption_note(run.end.signal);
    result = result || check_end(&run, command, findings);
    count_use(numbers, &run.end);
    if (loop_ns > numbers[RUN_LOOP_NS])
        numbers[RUN_LOOP_NS] = loop_ns;
    numbers[RUN_LOST] = losses_samples(&run.recording.losses);
    if (!result) /* reading takes a processor, and the other one of a pair may still run */
        pipe_ends_meet(command->record.ready, command->record.go);
    if (!result && command->kept)
        result = keep(numbers, run.raw, command, findings);
    if (!result) /* by now; processes about to end have had their time */
        leftover->count = growing_recording_living(&run.recording, &leftover->pid);
    record_run_release(&run, false);
    return result ? -1 : 0;
}
