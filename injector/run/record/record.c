/* See record.h.  record_run_go is the run, one call per step.  The command adds:
 *
 *     NAME.recording ─▶ inject ─▶ NAME.perf.data, NAME.perf.data.dso/
 */
#include "injector/run/record/record.h"

#include "injector/arrays/array.h"
#include "injector/files/interruption.h"
#include "injector/files/output_file.h"
#include "injector/files/undo_list.h"
#include "injector/inject/image/earlier_result.h"
#include "injector/inject/inject.h"
#include "injector/log/jitdump/dump_name.h"
#include "injector/log/perf_map/perf_map_file.h"
#include "injector/log/spans/kept_spans.h"
#include "injector/recording/host/live_process.h"
#include "injector/run/program/start_place.h"
#include "injector/run/record/left_over.h"
#include "injector/run/record/run_progress.h"
#include "injector/run/record/stand_in.h"
#include "injector/text/file_name.h"
#include "injector/text/printable_text.h"
#include "injector/text/shell_word.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_SKIPPED = 3, EXIT_SIGNAL = 128, EXIT_NOT_FOUND = 127 };
enum { RAW_MOST = 100, TRY_SECONDS = 10, NAME_BYTES = 80 };

/* ---- What is set ---- */

static bool are_copied(const char *stacks)
{
    return stacks && strncmp(stacks, "dwarf", 5) == 0;
}

static const char *stacks_of(const struct record_run *run)
{
    const struct record_options *options = run->options;
    const struct runtime *runtime = options->runtime ? options->runtime : run->program.runtime;
    static char copied[32];
    if (!options->stacks || *options->stacks)
        return options->stacks;
    bool copies = runtime ? runtime->copies_stacks : run->program.copies_stacks;
    if (options->no_runtime || !copies)
        return "fp";
    snprintf(copied, sizeof copied, "dwarf,%d", RECORD_STACKS_BYTES);
    return copied;
}

/* Whether PROGRAM knows the argument that RUNTIME's switches are refused without.  One that is not
 * called as RUNTIME is may be the user's own, and is not run for that where there is another way.
 */
static bool knows_switches(const struct program *program, const struct runtime *runtime)
{
    int status = -1;
    const char *path = program_called(program, runtime);
    if (!runtime->try_first || (!path && runtime->otherwise))
        return !runtime->try_first;
    if (!path)
        path = program->wrapped ? program->wrapped : program->path;
    pid_t child = fork();
    if (child == 0) {
        int nothing = open("/dev/null", O_RDWR);
        for (int fd = 0; fd < 3; fd++)
            dup2(nothing, fd);
        alarm(TRY_SECONDS); /* it may be another program than its name says */
        execlp(path, path, runtime->try_first, "--version", NULL);
        _exit(EXIT_NOT_FOUND);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

/* Whether a word of the command, or of the user's variable for RUNTIME, begins with TEXT. */
static bool has_word(const struct record_run *run, const struct runtime *runtime, const char *text)
{
    const char *variable = runtime->switches[0].variable;
    const char *value = variable ? runtime_environment_value(&run->environment, variable) : NULL;
    const size_t bytes = strlen(text);
    for (char *const *word = run->options->words + run->program.command.at; *word; word++)
        if (strncmp(*word, text, bytes) == 0)
            return true;
    for (const char *at = value; at && (at = strstr(at, text)); at += bytes)
        if (at == value || at[-1] == ' ')
            return true;
    return false;
}

static int add_runtime(struct record_run *run, const struct runtime *runtime,
                       struct findings *findings)
{
    if (runtime->instead && has_word(run, runtime, runtime->instead_if))
        return add_runtime(run, runtime->instead, findings);
    if (!runtime->switches[0].kind && has_word(run, runtime, runtime->instead_if))
        return 0;
    bool knows = runtime->switches[0].kind && knows_switches(&run->program, runtime);
    if (!knows && runtime->otherwise)
        return add_runtime(run, runtime->otherwise, findings);
    if (!knows) {
        if (!run->options->quiet)
            printable_line(stderr, "perfjit: %s: this one can't log its JIT code: that takes %s",
                           runtime->name, runtime->needs);
        return 0;
    }
    if (run_folder_settle(&run->folder, runtime, findings))
        return -1;
    if (runtime_environment_add(&run->environment, runtime))
        return report_failure(findings, "out of memory");
    if (runtime->alone_words[0] && !start_place_error(&run->program.command, run->folder.dumps) &&
        stand_in_add(&run->environment, runtime, findings))
        return -1;
    if (!run->environment.told && !run->options->quiet)
        printable_line(stderr, "perfjit: %s: the command's own words say what it logs",
                       runtime->name);
    return 0;
}

/* Report the settings in the files of RUNTIME, on the line in STREAM.  What is read by words alone
 * is no setting. */
static void tell_files(const struct runtime *runtime, FILE *stream)
{
    const bool are_settings = !runtime->alone_words[0];
    for (size_t i = 0; are_settings && i < RUNTIME_FILES_MOST && runtime->files[i].name; i++)
        for (const char *at = runtime->files[i].text; *at; at++)
            putc(*at == '\n' ? ' ' : *at, stream);
}

static int tell_runtime(const struct record_run *run, const struct runtime *runtime,
                        struct findings *findings)
{
    char *text = NULL;
    size_t bytes;
    FILE *stream = run->options->quiet ? NULL : open_memstream(&text, &bytes);
    if (!stream)
        return run->options->quiet ? 0 : report_failure(findings, "out of memory");
    tell_files(runtime, stream);
    fputs(run->environment.told, stream);
    if (runtime->needs)
        fprintf(stream, " (%s)", runtime->needs);
    int result = ferror(stream) | fclose(stream);
    if (!result)
        printable_line(stderr, "perfjit: %s: %s", runtime->name, text);
    if (!result && runtime->agent && !run->environment.agent)
        printable_line(stderr,
                       "perfjit: %s: %s is not installed where it can load it: names are those of "
                       "the perf map that it writes at its end, without inlined calls and lines",
                       runtime->name, runtime->agent);
    if (!result && runtime->differs)
        printable_line(stderr,
                       "perfjit: %s: %s. --runtime none records the program as it runs without "
                       "perfjit",
                       runtime->name, runtime->differs);
    free(text);
    return result ? report_failure(findings, "out of memory") : 0;
}

/* Where V8 can't make its log it prints it, in the middle of what the program prints. */
static int place_error(const struct record_run *run, const struct runtime *runtime)
{
    return runtime->writes_here ? start_place_error(&run->program.command, NULL) : 0;
}

/* Whether the program itself is RUNTIME, takes its arguments, and can write to the run's folder. */
static bool can_write_elsewhere(const struct record_run *run, const struct runtime *runtime)
{
    const struct program *program = &run->program;
    const char *called = program_called(program, runtime);
    return runtime->elsewhere && called && called != program->interpreter &&
           !program->command.root && !start_place_error(&program->command, run->folder.dumps) &&
           knows_switches(program, runtime->elsewhere);
}

/* Who starts, for a message: "user www" or "this user". */
static const char *user_of(const struct record_run *run, char text[NAME_BYTES])
{
    if (!run->program.command.user)
        return "this user";
    snprintf(text, NAME_BYTES, "user %s", run->program.command.user);
    return text;
}

static int refuse_place(const struct record_run *run, const struct runtime *runtime, int error,
                        struct findings *findings)
{
    char user[NAME_BYTES];
    return report_failure(
        findings,
        "%s: %s can't write in the directory where it starts (%s). V8 would print its log into the "
        "program's output there. Nothing was run. cd to a directory where it can write, with -o "
        "NAME for what perfjit writes; or start node 22 or later itself; or use --runtime none",
        runtime->name, user_of(run, user), strerror(error));
}

/* Whether RUNTIME would print into the program's output, which is said even if it is to be quiet.
 */
static bool left_out(const struct record_run *run, const struct runtime *runtime)
{
    char user[NAME_BYTES];
    const int error = place_error(run, runtime);
    if (error)
        printable_line(stderr,
                       "perfjit: %s: no switches, so its functions get no names: %s can't write in "
                       "the directory where %s starts (%s), and V8 would print its log instead",
                       runtime->name, user_of(run, user),
                       run->options->words[run->program.command.at], strerror(error));
    return error;
}

/* A shell, make, or a program of one's own may start any runtime. */
static int add_all_runtimes(struct record_run *run, struct findings *findings)
{
    char names[256] = "";
    for (const struct runtime *runtime = runtimes; runtime->name; runtime++) {
        const struct runtime *inherited = runtime_inherited(runtime);
        if (!inherited || left_out(run, inherited))
            continue;
        if (add_runtime(run, inherited, findings))
            return -1;
        size_t bytes = strlen(names);
        snprintf(names + bytes, sizeof names - bytes, "%s%s", bytes ? ", " : "", runtime->name);
    }
    if (run->options->quiet)
        return 0;
    if (run->options->verbose)
        printable_line(stderr,
                       "perfjit: %s: is no runtime that is known; it may start some: the switches "
                       "of %s are in its environment (--runtime NAME|none)",
                       run->options->words[run->program.command.at], names);
    if (run->program.copies_stacks && are_copied(stacks_of(run)))
        printable_line(stderr,
                       "perfjit: its words name Python: stacks are copied (not with -g fp)");
    if (!run->options->verbose)
        return 0;
    printable_line(stderr, "perfjit: %s", run->environment.told);
    for (const struct runtime *runtime = runtimes; runtime->name; runtime++)
        if (runtime->differs && runtime_inherited(runtime))
            printable_line(stderr, "perfjit: %s: %s", runtime->name, runtime->differs);
    return 0;
}

static int set_switches(struct record_run *run, struct findings *findings)
{
    const struct record_options *options = run->options;
    const struct runtime *runtime = options->runtime ? options->runtime : run->program.runtime;
    if (runtime_environment_begin(&run->environment, options->words, &run->folder,
                                  are_copied(stacks_of(run))))
        return report_failure(findings, "out of memory");
    run->environment.tells_deopts = options->deopts;
    if (options->no_runtime)
        return 0;
    if (!runtime)
        return add_all_runtimes(run, findings);
    const int error = place_error(run, runtime);
    if (error && !can_write_elsewhere(run, runtime))
        return refuse_place(run, runtime, error, findings);
    if (add_runtime(run, error ? runtime->elsewhere : runtime, findings))
        return -1;
    return run->environment.told ? tell_runtime(run, runtime, findings) : 0;
}

static int set_command(struct record_run *run, struct findings *findings)
{
    if (!run->options->words)
        return 0;
    if (set_switches(run, findings))
        return -1;
    return runtime_environment_wrap(&run->environment) ? report_failure(findings, "out of memory")
                                                       : 0;
}

/* ---- Steps ---- */

static int choose_event(struct record_run *run, struct findings *findings)
{
    run->event.event = run->options->event;
    if (run->event.event)
        return 0;
    if (event_choose(&run->event, findings))
        return -1;
    if (run->event.note && !run->options->quiet)
        printable_line(stderr, "perfjit: samples are of %s", run->event.note);
    return 0;
}

/* C libraries keep no frame pointers in the functions that wait, so by these the callers would be
 * missing. */
static const char *switches_event(const struct record_run *run)
{
    const char *stacks = stacks_of(run);
    const bool is_chosen = run->options->stacks && !*run->options->stacks;
    return is_chosen && strcmp(stacks, "fp") == 0
               ? "context-switches/period=1,call-graph=dwarf,stack-size=16384/"
               : "context-switches/period=1/";
}

/* A switch happens in the kernel: so would a sample of it. */
static void choose_switches(struct record_run *run)
{
    if (!run->options->off_cpu)
        return;
    run->switches = event_can_sample_switches() ? switches_event(run) : NULL;
    if (run->options->quiet)
        return;
    if (run->switches)
        printable_line(stderr,
                       "perfjit: off-CPU time: each switch of a thread is recorded, with its "
                       "stack: %s",
                       run->switches);
    else
        printable_line(stderr,
                       "perfjit: off-CPU time: each switch of a thread is recorded "
                       "(--switch-events), but not its stack, which this user may not have: where "
                       "it waited is told by its last sample before; root, or "
                       "kernel.perf_event_paranoid=1, gets the stacks");
}

/* ---- What a run that was ended leaves ---- */

/* SECONDS NANOSECONDS ROOT_BYTES ROOT RECORDING_BYTES RECORDING DIRECTORY */
static void undo_left(const char *text)
{
    long long seconds, nanoseconds;
    int root_bytes, recording_bytes, at = 0, behind = 0;
    if (sscanf(text, "%lld %lld %d %n", &seconds, &nanoseconds, &root_bytes, &at) != 3)
        return;
    char *root = strndup(text + at, (size_t)root_bytes);
    if (sscanf(text + at + root_bytes, "%d %n", &recording_bytes, &behind) == 1 && root) {
        const char *rest = text + at + root_bytes + behind;
        char *path = strndup(rest, (size_t)recording_bytes);
        struct growing_recording recording;
        growing_recording_begin(&recording, path);
        growing_recording_read(&recording);
        if (path && chdir(rest + recording_bytes + 1) == 0)
            left_over_remove(&recording, &(struct left_over_request){
                                             .since = {(time_t)seconds, (long)nanoseconds},
                                             .quiet = true,
                                             .root = *root ? root : NULL});
        growing_recording_free(&recording);
        free(path);
    }
    free(root);
}

/* Have the files removed that the command's processes write elsewhere, as left_over_remove does. */
static int add_undo_left(struct record_run *run, struct findings *findings)
{
    char *text = NULL, *here = run->options->words ? getcwd(NULL, 0) : NULL;
    char *raw = here ? realpath(run->raw, NULL) : NULL;
    const char *root = run->program.command.root ? run->program.command.root : "";
    if (raw &&
        asprintf(&text, "%lld %lld %zu %s%zu %s %s", (long long)run->start.tv_sec,
                 (long long)run->start.tv_nsec, strlen(root), root, strlen(raw), raw, here) < 0)
        text = NULL;
    if (text)
        run->undo_left = undo_list_add("left", text);
    const bool failed = raw && !text;
    free(text);
    free(raw);
    free(here);
    return failed ? report_failure(findings, "out of memory") : 0;
}

void record_run_learn_undo(void)
{
    undo_list_learn("left", undo_left);
    attached_processes_learn_undo();
}

/* The file that perf writes, with a name of its own: another run may be at work here, or have left
 * its own on request. */
static int open_raw(struct record_run *run, struct findings *findings)
{
    char number[8] = "", *path = NULL;
    int fd = -1;
    for (unsigned i = 2; fd < 0 && i <= RAW_MOST; i++) {
        free(path);
        if (asprintf(&path, "%s.recording%s", run->options->name, number) < 0)
            return report_failure(findings, "out of memory");
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST)
            break;
        snprintf(number, sizeof number, ".%u", i);
    }
    if (fd < 0) {
        report_failure(findings, "%s: can't write it: %s; nothing was run; -o NAME says where",
                       path, strerror(errno));
        free(path);
        return -1;
    }
    close(fd);
    run->raw = path;
    run->undo_raw = undo_list_add_path(path, NULL);
    return 0;
}

static int make_raw(struct record_run *run, struct findings *findings)
{
    undo_list_hold();
    int result = open_raw(run, findings);
    undo_list_release();
    return result || add_undo_left(run, findings) ? -1 : 0;
}

static bool is_dump(const char *path, void *context)
{
    (void)context;
    return jit_dump_has_name(path);
}

/* Whether PID has mapped a dump, or has a perf map that no earlier process with its pid left. */
static bool logs(pid_t pid)
{
    char path[LIVE_ROOT_BYTES + 32], root[LIVE_ROOT_BYTES];
    struct live_process live;
    struct stat status;
    if (program_has_mapped(pid, is_dump, NULL))
        return true;
    if (!live_process_read(&live, (uint32_t)pid, UINT64_MAX))
        return false;
    snprintf(path, sizeof path, "%s/tmp/perf-%" PRIu32 ".map",
             live_process_root(root, (uint32_t)pid), live.namespace_pid);
    return stat(path, &status) == 0 && !perf_map_file_is_older(&status, live.started_wall_ns);
}

/* What a process of RUNTIME would have to be started with. */
static void tell_missing_switches(const struct runtime *runtime, pid_t pid)
{
    static char *words[] = {"", NULL}, directory[] = "DIR";
    static const struct run_folder folder = {.dumps = directory, .settings = directory};
    struct runtime_environment environment;
    if (runtime->writes_map_on_request || logs(pid))
        return;
    if (runtime_environment_begin(&environment, words, &folder, false) == 0 &&
        runtime_environment_add(&environment, runtime) == 0 && environment.told)
        printable_line(stderr,
                       "perfjit: -p %d: is %s and logs no JIT code, so its functions get no names. "
                       "It would have to be started with %s",
                       (int)pid, runtime->name, environment.told);
    runtime_environment_free(&environment);
}

/* Whether PID has ended with all of its threads: the first one may end before the others. */
static bool is_zombie(pid_t pid)
{
    char path[64];
    bool any = live_process_goes_on((uint32_t)pid);
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *threads = any ? NULL : opendir(path);
    const struct dirent *thread;
    if (!threads)
        return false;
    while (!any && (thread = readdir(threads)))
        any = thread->d_name[0] != '.' && live_process_goes_on((uint32_t)atoi(thread->d_name));
    closedir(threads);
    return !any;
}

/* Their stacks are copied if one of them wants that. */
static int find_processes(struct record_run *run, struct findings *findings)
{
    const struct record_options *options = run->options;
    const bool chosen = options->stacks && !*options->stacks && !options->no_runtime;
    for (size_t i = 0; i < options->pid_count; i++) {
        const pid_t pid = options->pids[i];
        if (kill(pid, 0) && errno == ESRCH)
            return report_failure(findings, "-p %d: there is no such process", (int)pid);
        if (is_zombie(pid))
            return report_failure(findings,
                                  "-p %d: has ended: it is a zombie, which its parent has not "
                                  "waited for, and runs nothing any more",
                                  (int)pid);
        const struct runtime *runtime = program_of_process(pid);
        if (runtime && !options->quiet && !options->no_runtime)
            tell_missing_switches(runtime, pid);
        if (!runtime || (run->program.runtime && !runtime->copies_stacks))
            continue;
        run->program.runtime = runtime;
        if (!options->quiet && chosen && are_copied(stacks_of(run)))
            printable_line(stderr, "perfjit: -p %d: is %s: stacks are copied (not with -g fp)",
                           (int)pid, runtime->name);
    }
    if (!options->quiet)
        attached_processes_tell_children(options);
    return 0;
}

static int find_command(struct record_run *run, struct findings *findings)
{
    const struct record_options *options = run->options;
    if (options->words)
        return program_find_command(&run->program, options->words, findings);
    return find_processes(run, findings);
}

/* ---- What runs already ---- */

/* Forget the signals that ended the run: they have no other purpose. */
static void forget_signals(const sigset_t *signals)
{
    const struct timespec at_once = {0, 0};
    while (sigtimedwait(signals, NULL, &at_once) > 0)
        continue;
}

static int run_recorder(struct record_run *run, struct findings *findings)
{
    const struct record_options *options = run->options;
    const struct recorder_request request = {
        .perf = options->perf,
        .event = run->event.event,
        .hz = options->hz,
        .stacks = stacks_of(run),
        .switches = run->switches,
        .has_switches = options->off_cpu,
        .output = run->raw,
        .messages = run->folder.messages,
        .words = (const char *const *)run->environment.words,
        .program = run->program.path,
        .variables = run->environment.variables,
        .pids = options->pid_text,
        .seconds = options->seconds,
        .processor = options->processor,
        .ready = options->ready,
        .go = options->go,
        .shows_progress =
            !options->quiet && run_progress_has_room(options->pids, options->pid_count)};
    growing_recording_begin(&run->recording, run->raw);
    if (recorder_run(&request, &run->recording, &run->end, findings))
        return -1;
    run->recorded = true;
    return 0;
}

/* Read what they have not written, while they are there. */
static int keep_unwritten(struct record_run *run, struct findings *findings)
{
    const struct record_options *options = run->options;
    for (size_t i = 0; i < options->pid_count; i++)
        if (kept_records_take(&run->kept, (uint32_t)options->pids[i],
                              options->keeps ? run->folder.dumps : NULL, findings))
            return -1;
    return 0;
}

/* A signal that comes between attaching and recording ends the recording, not this program. */
static int attach_and_record(struct record_run *run, struct findings *findings)
{
    sigset_t ending, old;
    if (!run->options->pid_count)
        return run_recorder(run, findings);
    recorder_ending_signals(&ending);
    sigprocmask(SIG_BLOCK, &ending, &old);
    int result = attached_processes_begin(&run->attached, run->options, findings) ||
                         run_recorder(run, findings) || keep_unwritten(run, findings)
                     ? -1
                     : 0;
    forget_signals(&ending);
    attached_processes_end(&run->attached);
    sigprocmask(SIG_SETMASK, &old, NULL);
    return result;
}

int record_run_go(struct record_run *run, const struct record_options *options,
                  struct findings *findings)
{
    *run =
        (struct record_run){.options = options, .recording = {.fd = -1}, .start = left_over_now()};
    if (find_command(run, findings) || choose_event(run, findings))
        return -1;
    choose_switches(run);
    if (run_folder_make(&run->folder, run->program.command.root, options->keeps, findings) ||
        set_command(run, findings) || make_raw(run, findings))
        return -1;
    const int result = attach_and_record(run, findings);
    run_folder_tell_end(&run->folder);
    return result;
}

void record_run_release(struct record_run *run, bool keeps)
{
    char *outer = run_folder_outer();
    if (!keeps) {
        if (run->recorded && run->options->words && !outer)
            left_over_remove(&run->recording, &(struct left_over_request){
                                                  run->start, run->options->quiet,
                                                  run->program.command.root, run->folder.dumps});
        attached_processes_remove_dumps(&run->attached, outer);
        if (run->raw)
            unlink(run->raw);
    } else if (outer) {
        left_over_keep(&run->recording, outer);
    }
    free(outer);
    undo_list_done(run->undo_left);
    undo_list_done(run->undo_raw);
    run_folder_remove(&run->folder, keeps);
    runtime_environment_free(&run->environment);
    program_free(&run->program);
    attached_processes_free(&run->attached);
    growing_recording_free(&run->recording);
    kept_records_free(&run->kept);
    free(run->end.perf_said);
    free(run->raw);
}

/* ---- The command ---- */

/* The output of a run. */
struct record_output {
    char *path;   /* NAME.perf.data */
    char *root;   /* of a process that was attached to */
    char **given; /* owned: dumps that it is given, as PID:FILE */
    size_t given_count, given_capacity;
    int inject_status;
    bool names_none; /* of samples in JIT code */
};

/* Look beside PATH for a thing that is in the way of the ELF files, and whether there is room for
 * the longest name beside it, which inject gives the files while it writes them. */
static int look_beside(const char *path, struct findings *findings)
{
    struct stat status;
    char *beside;
    if (asprintf(&beside, "%s.dso", path) < 0)
        return report_failure(findings, "out of memory");
    int result = lstat(beside, &status) == 0 && !S_ISDIR(status.st_mode)
                     ? report_failure(
                           findings, "%s: is in the way of the directory for the ELF files", beside)
                     : 0;
    free(beside);
    if (result)
        return -1;
    if (asprintf(&beside, "%s.dso.XXXXXX", path) < 0)
        return report_failure(findings, "out of memory");
    if (lstat(beside, &status) && errno == ENAMETOOLONG)
        result = report_failure(findings, "%s: can't write it and the files beside it: %s", path,
                                strerror(ENAMETOOLONG));
    free(beside);
    return result;
}

/* Before the command runs: a run may be long. */
static int name_output(struct record_output *output, const struct record_options *options,
                       struct findings *findings)
{
    if (asprintf(&output->path, "%s.perf.data", options->name) < 0) {
        output->path = NULL;
        return report_failure(findings, "out of memory");
    }
    const char *wrong = output_file_obstacle(output->path);
    if (wrong)
        return report_failure(findings, "%s: can't write it: it is %s", output->path, wrong);
    return look_beside(output->path, findings);
}

/* Give inject the dumps that the run's processes wrote and did not map: the texts are OUTPUT's. */
static int add_unmapped_dumps(const struct record_run *run, struct record_output *output,
                              struct inject_options *options)
{
    const struct left_over_request request = {run->start, true, run->program.command.root,
                                              run->folder.dumps};
    for (uint32_t pid = 1; run->recording.pids && pid < GROWING_PIDS; pid++) {
        char *text, *path = growing_recording_has_pid(&run->recording, pid)
                                ? left_over_unmapped_dump(&run->recording, pid, &request)
                                : NULL;
        if (!path)
            continue;
        int bytes = asprintf(&text, "%" PRIu32 ":%s", pid, path);
        free(path);
        if (bytes < 0)
            return -1;
        if (array_reserve(output->given, output->given_count, output->given_capacity)) {
            free(text);
            return -1;
        }
        output->given[output->given_count++] = text;
        if (recording_request_take(&options->request, KEY_JITDUMP, text))
            return -1;
    }
    return 0;
}

/* The root directory of the command, or of the processes, where that is another one and known. */
static const char *root_of(const struct record_run *run, struct record_output *output)
{
    for (size_t i = 0; i < run->options->pid_count && !output->root; i++)
        output->root = live_process_root_here((uint32_t)run->options->pids[i]);
    return output->root ? output->root : run->program.command.root;
}

static int inject_it(struct record_run *run, struct record_output *output,
                     struct findings *findings)
{
    struct inject_options options;
    if (earlier_result_keep(output->path, findings))
        return -1;
    if (inject_options_default(&options, run->raw, output->path, findings) == 0) {
        options.after_record = true;
        options.names_none = &output->names_none;
        options.follows_pointers = stacks_of(run) && strcmp(stacks_of(run), "fp") == 0;
        options.request.root = root_of(run, output);
        options.request.unwritten = kept_records_source(&run->kept);
        options.quiet = run->options->quiet;
        options.verbose = run->options->verbose;
        /* A program may remove the folder, and its dumps with it: they are missed one by one. */
        if (run->options->words && access(run->folder.dumps, F_OK) == 0 &&
            recording_request_take(&options.request, KEY_V8_LOG, run->folder.dumps))
            report_failure(findings, "out of memory");
        else if (run->options->words && add_unmapped_dumps(run, output, &options))
            report_failure(findings, "out of memory");
        else
            output->inject_status = inject_recording(&options, findings);
    }
    inject_options_free(&options);
    earlier_result_refer(output->path);
    return findings->failure[0] ? -1 : kept_spans_take(run->folder.dumps, output->path, findings);
}

/* ---- What is said ---- */

/* perf ends with the command, as it always does. */
static void tell_children(const struct record_run *run)
{
    uint32_t pid = 0;
    size_t count = growing_recording_living(&run->recording, &pid);
    if (count)
        printable_line(stderr,
                       "perfjit: %zu process%s that it started still run%s (%" PRIu32
                       "%s): what %s and log%s from now on is not seen",
                       count, count == 1 ? "" : "es", count == 1 ? "s" : "", pid,
                       count == 1 ? "" : ", ...", count == 1 ? "it does" : "they do",
                       count == 1 ? "s" : "");
}

static void tell_perf(const struct record_run *run)
{
    const struct recorder_end *end = &run->end;
    char *directory = file_directory_of(run->options->name);
    if (run->recorded && end->perf_failed)
        printable_line(stderr, "perfjit: %s: %s", recorder_failure(end),
                       end->perf_said ? end->perf_said : "it says nothing");
    if (run->recorded && directory && access(directory, F_OK))
        printable_line(stderr,
                       "perfjit: %s: the directory was removed meanwhile, with what was "
                       "recorded",
                       directory);
    free(directory);
}

static void tell_end(const struct record_run *run)
{
    const struct recorder_end *end = &run->end;
    const char *command = run->options->words ? run->options->words[0] : NULL;
    if (command && end->still_runs)
        printable_line(stderr, "perfjit: %s still runs; what it logs from now on is not seen",
                       command);
    else if (command && WIFSIGNALED(end->status))
        printable_line(stderr, "perfjit: %s was ended by signal %d (%s)", command,
                       WTERMSIG(end->status), strsignal(WTERMSIG(end->status)));
    else if (command && WEXITSTATUS(end->status))
        printable_line(stderr, "perfjit: %s ended with status %d", command,
                       WEXITSTATUS(end->status));
    if (command && !end->still_runs)
        tell_children(run);
    if (run->recording.ran_python && !are_copied(stacks_of(run)) && !run->options->no_runtime)
        printable_line(stderr, "perfjit: python ran: its functions are seen only in copied "
                               "stacks: -g dwarf");
    if (!run->recording.losses.taken)
        printable_line(stderr, "perfjit: there are no samples: it ran too briefly, or slept%s",
                       access("/sys/devices/system/cpu", F_OK)
                           ? ", or perf found no processor: /sys is not mounted"
                           : "");
}

static void tell_next(const struct record_run *run, const char *output)
{
    char text[SHELL_WORD_BYTES];
    const char *word = shell_word(text, output);
    if (run->options->keeps)
        printable_line(stderr, "perfjit: kept: %s, dumps in %s and where they were written",
                       run->raw, run->folder.dumps);
    printable_line(stderr,
                   "perfjit: now: perfjit report %s, perfjit flamegraph %s, or perf report -i %s",
                   word, word, word);
}

/* The recording and its dumps stay if inject failed on them.  A recording that perf had to leave in
 * the middle, as on a full disk, is unreadable. */
static bool is_left(const struct record_run *run)
{
    return run->recorded && !run->end.perf_failed && !interruption_by_signal() &&
           access(run->raw, F_OK) == 0;
}

static void tell_failure(const struct record_run *run, const struct findings *findings)
{
    char word[SHELL_WORD_BYTES];
    printable_line(stderr, "perfjit: %s", findings->failure);
    if (is_left(run))
        printable_line(stderr,
                       "perfjit: what was recorded is left: %s, and dumps in %s: perfjit inject "
                       "-i %s",
                       run->raw, run->folder.dumps, shell_word(word, run->raw));
}

/* A process that ends by a signal leaves a dump cut short, as V8 does after Ctrl-C.  That is
 * reported, and is no fault of the run. */
static bool was_ended(const struct record_run *run)
{
    return run->end.interrupted || run->options->seconds > 0 || WIFSIGNALED(run->end.status);
}

static int status_of(const struct record_run *run, const struct record_output *output)
{
    int status = run->end.status;
    if (!run->options->passes_status || !run->options->words || run->end.still_runs) {
        if (output->names_none)
            return EXIT_SKIPPED;
        return output->inject_status == EXIT_SKIPPED && was_ended(run) ? EXIT_DONE
                                                                       : output->inject_status;
    }
    return WIFSIGNALED(status) ? EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

int record_and_inject(const struct record_options *options)
{
    struct record_run run = {.options = options, .recording = {.fd = -1}};
    struct record_output output = {0};
    struct findings findings = {0};
    findings.verbose = options->verbose;
    findings.quiet = options->quiet;
    if (!options->quiet)
        interruption_end_unread();
    recorder_leave_quit();
    undo_list_begin();
    int result = name_output(&output, options, &findings) ||
                 record_run_go(&run, options, &findings) || inject_it(&run, &output, &findings);
    int status = result ? EXIT_FAILED : status_of(&run, &output);
    if (result || !options->quiet)
        tell_perf(&run);
    if (run.recorded && !options->quiet)
        tell_end(&run);
    if (result)
        tell_failure(&run, &findings);
    else if (!options->quiet)
        tell_next(&run, output.path);
    record_run_release(&run, options->keeps || (result && is_left(&run)));
    for (size_t i = 0; i < output.given_count; i++)
        free(output.given[i]);
    free(output.given);
    free(output.path);
    free(output.root);
    findings_free(&findings);
    interruption_pass_on();
    return status;
}
