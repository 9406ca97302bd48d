/* See inject.h.  `inject` below is the whole pipeline, one call for each box of
 * injector/README.md.
 *
 * Exit status: 0 done, nothing lost; 3 done, but parts of the input were skipped; 1 nothing
 * written.
 */
#include "injector/inject/inject.h"

#include "injector/check/census/kept_census.h"
#include "injector/files/input_guard.h"
#include "injector/files/interruption.h"
#include "injector/files/output_file.h"
#include "injector/history/process/inlined_calls.h"
#include "injector/inject/image/build_id_cache.h"
#include "injector/inject/image/dso_dir.h"
#include "injector/inject/image/elf_image.h"
#include "injector/inject/image/image_name.h"
#include "injector/inject/image/unwind_table.h"
#include "injector/inject/layout/image_plan_by_name.h"
#include "injector/inject/merge/attributes.h"
#include "injector/inject/merge/recording_merge.h"
#include "injector/inject/merge/rooted_maps.h"
#include "injector/log/owner/dump_place.h"
#include "injector/log/perf_map/perf_map_source.h"
#include "injector/recording/host/live_process.h"
#include "injector/recording/injected_map.h"
#include "injector/recording/perf_data/perf_input.h"
#include "injector/recording/perf_data/perf_pipe.h"
#include "injector/recording/silent_runtime.h"
#include "injector/text/file_name.h"
#include "injector/text/plural.h"
#include "injector/text/printable_text.h"
#include "injector/text/shell_word.h"
#include "injector/unwind/frame_pointers.h"
#include "injector/unwind/stacks/chain_records.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_SKIPPED = 3 };
enum { CAUSES_SHOWN = 8 };

/* Everything that one run makes, in the order in which it is made. */
struct injection {
    struct recording in;
    struct image_plan plan;
    bool unwinds; /* there are user stacks, and they become call chains */
    bool frames;  /* inlined calls become frames of call chains */
    struct inlined_calls calls;
    struct user_stacks stacks;
    struct memory_file event_desc;
    struct record_change chains;
    struct rooted_maps rooted;
    struct recording_merge merge;
    struct dso_dir dsos;
    struct output_file output;
    struct sample_census census;
};

/* ---- Boxes of the pipeline ---- */

/* If perf will unwind, images must not reach over each other. */
static enum image_layout layout_for(const struct injection *run, enum image_layout wanted)
{
    bool stacks = perf_file_has_stacks(&run->in.input.file) && !run->unwinds;
    return stacks && wanted == LAYOUT_IMAGE ? LAYOUT_APART : wanted;
}

/* Each file needs one base for perf's unwinders, and rows of several bodies have none. */
static enum image_rows rows_for(const struct injection *run, const struct inject_options *options)
{
    return layout_for(run, options->layout) == LAYOUT_IMAGE ? options->rows : ROWS_BODY;
}

static int plan_images(struct injection *run, const struct inject_options *options,
                       struct findings *findings)
{
    const struct jit_processes *processes = &run->in.processes;
    enum image_layout layout = layout_for(run, options->layout);
    enum image_rows rows = rows_for(run, options);
    if (rows != ROWS_BODY)
        return image_plan_by_name(&run->plan, processes->items, run->in.timelines, processes->count,
                                  rows, findings);
    for (size_t i = 0; i < processes->count; i++)
        if (interruption_check(findings) ||
            image_plan_add(&run->plan, &processes->items[i], &run->in.timelines[i], layout,
                           findings) ||
            (!run->unwinds &&
             unwind_tables_place(&run->plan, processes->items, (uint32_t)i, findings)))
            return -1;
    return 0;
}

static int put_chain(void *stacks, const struct perf_record *record, struct byte_sink *sink)
{
    return chain_record_put(stacks, record, sink);
}

/* User stacks become call chains, and the events' attributes say so. */
static int unwind_stacks(struct injection *run, const struct inject_options *options,
                         struct findings *findings)
{
    const struct user_stacks_options wanted = {.root = options->request.root,
                                               .stitch = options->stitch,
                                               .calls = run->frames ? &run->calls : NULL};
    if (!run->unwinds && !run->frames)
        return 0;
    if (user_stacks_unwind(&run->stacks, &wanted, &run->in.records, &run->in.processes,
                           run->in.timelines, findings))
        return -1;
    if (!run->event_desc.size && chain_features_set(&run->in.input.file, &run->event_desc))
        return report_failure(findings, "out of memory");
    run->chains = (struct record_change){&run->stacks, put_chain};
    return 0;
}

static int plan_merge(struct injection *run, const struct inject_options *options,
                      struct findings *findings)
{
    const char *root = options->after_record ? options->request.root : NULL;
    if (root && rooted_maps_find(&run->rooted, &run->in.records, root, findings))
        return -1;
    const bool changes = run->unwinds || run->frames;
    const struct recording_merge_request request = {.records = &run->in.records,
                                                    .processes = &run->in.processes,
                                                    .timelines = run->in.timelines,
                                                    .plan = &run->plan,
                                                    .dso_dir = run->dsos.path,
                                                    .rooted = &run->rooted,
                                                    .change = changes ? &run->chains : NULL,
                                                    .chains = changes ? &run->stacks.tree : NULL};
    return recording_merge_plan(&run->merge, &request, findings);
}

static int write_profile(struct injection *run, struct findings *findings)
{
    return recording_merge_write(&run->merge, &run->output, findings) ||
                   attributes_patch(&run->in.input.file, run->merge.request.change != NULL,
                                    &run->output, findings)
               ? -1
               : 0;
}

/* Unknown samples are no loss of input, but many runs are made for this census. */
static int take_census(struct injection *run, const struct inject_options *options,
                       struct findings *findings)
{
    const struct census_question question = {.records = &run->in.records,
                                             .processes = &run->in.processes,
                                             .timelines = run->in.timelines,
                                             .no_perf_map = options->request.no_perf_map,
                                             .has_given =
                                                 recording_request_gives(&options->request),
                                             .root = options->request.root};
    return kept_census_or_take(&run->census, &question, findings);
}

/* A stream has no place behind its records for it. */
static int keep_census(struct injection *run, struct findings *findings)
{
    return run->output.in_memory ? 0 : kept_census_write(&run->census, &run->output, findings);
}

/* Write the output, whole in memory, to standard output. */
static int pass_on(struct injection *run, struct findings *findings)
{
    const uint8_t *file = output_file_view(&run->output, findings);
    if (!file)
        return -1;
    return perf_pipe_write(STDOUT_FILENO, file, (size_t)run->output.size, run->output.path,
                           findings);
}

/* The ELF files first: a profile that names files that are not there would be worse than none. */
static int commit(struct injection *run, struct findings *findings)
{
    interruption_look();
    if (interruption_check(findings) || output_file_flush(&run->output, findings) ||
        dso_dir_commit(&run->dsos, findings))
        return -1;
    int result =
        run->output.in_memory ? pass_on(run, findings) : output_file_commit(&run->output, findings);
    if (result) {
        dso_dir_undo(&run->dsos);
        return -1;
    }
    dso_dir_finish(&run->dsos);
    build_id_cache_fill(&run->plan, &run->in.processes, run->dsos.path, getenv("HOME"), findings);
    return 0;
}

/* Without JIT code, stacks are worth a run if the options request them; else the runtime does not
 * log. */
static bool needs_no_code(const struct injection *run, const struct inject_options *options)
{
    if (injected_image(&run->in.records))
        return false;
    return options->after_record ||
           (options->stacks == STACKS_UNWIND && perf_file_has_stacks(&run->in.input.file));
}

/* Stacks of a machine that perfjit does not know are perf's, unless the options request them. */
static bool unwinds(const struct injection *run, const struct inject_options *options)
{
    const struct perf_file *file = &run->in.input.file;
    return options->stacks != STACKS_KEEP && perf_file_has_stacks(file) &&
           (options->stacks == STACKS_UNWIND || user_stacks_possible(file));
}

/* The mapping of a JVM, or NULL.  A JVM writes its perf map only when it ends by itself, or on
 * request. */
static const struct recorded_map *find_jvm(const struct records *records)
{
    for (size_t i = 0; i < records->map_count; i++)
        if (strcmp(file_name_of(records->maps[i].map.filename), "libjvm.so") == 0)
            return &records->maps[i];
    return NULL;
}

/* Whether the process of MAP goes on: perf may have ended before it saw the process end. */
static bool goes_on(const struct injection *run, const struct recorded_map *map)
{
    struct live_process live;
    const struct process_lives *lives = &run->in.processes.lives;
    uint32_t life = process_life_at(lives, map->map.pid, life_moment_of(map));
    if (life == NO_LIFE || !live_process_goes_on(map->map.pid))
        return false;
    return !records_has_samples(&run->in.records) || /* nor any time to compare */
           dump_place_lives(&run->in.records, &lives->items[life], &live);
}

static void tell_no_map(const struct injection *run, const struct recorded_map *jvm)
{
    uint32_t pid = jvm->map.pid;
    if (goes_on(run, jvm))
        printable_line(stderr,
                       "perfjit: no JIT code was logged: the JVM of process %" PRIu32
                       " has written no perf map yet; jcmd %" PRIu32
                       " Compiler.perfmap makes it write one, and perfjit report reads that",
                       pid, pid);
    else
        printable_line(stderr,
                       "perfjit: no JIT code was logged: the JVM of process %" PRIu32
                       " was ended without a perf map: it writes one when it ends by itself "
                       "(-XX:+DumpPerfMapAtExit), or before for jcmd %" PRIu32 " Compiler.perfmap",
                       pid, pid);
}

/* Whether the reason that there is no code is a finding, which is told with the others. */
static bool is_found(const struct findings *findings)
{
    for (size_t i = 0; i < NO_DUMP_REASONS; i++)
        if (findings->count[no_dump_reasons[i].kind])
            return true;
    return false;
}

/* What most samples in memory without a file say about it, where it is more than that no dump is
 * there; or NULL. */
static const struct unknown_samples *known_reason(const struct injection *run,
                                                  const struct findings *findings)
{
    const struct unknown_samples *most = run->census.group_count ? run->census.groups : NULL;
    bool is_known = most && most->cause != CAUSE_NO_DUMP && most->cause != CAUSE_INJECTED;
    return is_known && !is_found(findings) ? most : NULL;
}

/* That a recording has no JIT code, for who has told the runtimes to log it, or could not; nothing
 * if another reason is told, or if nothing was recorded. */
static void tell_no_code(const struct injection *run, const struct findings *findings)
{
    const struct recorded_map *jvm = find_jvm(&run->in.records);
    if (is_found(findings) || known_reason(run, findings))
        return;
    uint32_t pid;
    const char *silent = silent_runtime_in(&run->in.records, &pid);
    if (jvm)
        tell_no_map(run, jvm);
    else if (silent)
        printable_line(stderr,
                       "perfjit: no JIT code was logged: process %" PRIu32
                       " runs %s, which has no perf support",
                       pid, silent);
    else if (records_has_samples(&run->in.records))
        printable_line(stderr,
                       "perfjit: no JIT code was logged: no process wrote a jitdump or a perf map");
}

/* Nothing is written: say why, as perfjit check does. */
static int fail_without_code(struct injection *run, const struct inject_options *options,
                             struct findings *findings)
{
    if (recording_play(&run->in, findings) || take_census(run, options, findings))
        return -1;
    uint32_t pid;
    const struct unknown_samples *reason = known_reason(run, findings);
    const char *silent = silent_runtime_in(&run->in.records, &pid);
    if (!reason && silent && !is_found(findings) && !injected_image(&run->in.records))
        return report_failure(findings,
                              "%s: no jitdump found: process %" PRIu32
                              " runs %s, which has no perf support",
                              run->in.input.file.path, pid, silent);
    if (!reason || injected_image(&run->in.records))
        return report_failure(findings, "%s", run->in.processes.no_code);
    return report_failure(
        findings, "%s: no jitdump found: process %" PRIu32 " (%s), %" PRIu64 " sample%s: %s; %s",
        run->in.input.file.path, reason->pid, reason->comm, reason->count, plural(reason->count),
        sample_cause_what(reason->cause), sample_cause_remedy(reason->cause));
}

static int open_recording(struct injection *run, const struct inject_options *options,
                          struct findings *findings)
{
    switch (recording_open(&run->in, options->input, &options->request, findings)) {
    case RECORDING_OPEN:
        break;
    case RECORDING_WITHOUT_CODE:
        if (!needs_no_code(run, options))
            return fail_without_code(run, options, findings);
        if (!options->after_record)
            report_note(findings, "%s", run->in.processes.no_code);
        break;
    case RECORDING_FAILED:
        return -1;
    }
    run->unwinds = unwinds(run, options);
    return recording_print_names(&run->in, findings);
}

/* Frames can only stand in chains: in those that were recorded, and of stacks that are unwound. */
static bool shows_as_frames(const struct injection *run, enum inlines inlines)
{
    const struct perf_file *file = &run->in.input.file;
    if (!run->in.processes.count || (inlines != INLINES_FRAMES && inlines != INLINES_BY_DEFAULT))
        return false;
    return run->unwinds ||
           (inlines == INLINES_FRAMES && perf_file_has_chains(file) && !perf_file_has_stacks(file));
}

static int name_inlined_calls(struct injection *run, const struct inject_options *options,
                              struct findings *findings)
{
    run->frames = shows_as_frames(run, options->inlines);
    if (!run->frames)
        return 0;
    return inlined_calls_add(&run->calls, &run->in.processes, &run->in.records, findings);
}

/* Leave out debug information that would be there twice, or is not wanted. */
static void choose_debug_info(struct injection *run, const struct inject_options *options)
{
    for (size_t i = 0; i < run->plan.image_count; i++)
        run->plan.images[i].no_inlined_calls = run->frames || options->inlines == INLINES_NONE;
}

/* ---- The pipeline ---- */

static int inject(struct injection *run, const struct inject_options *options,
                  struct findings *findings)
{
    interruption_watch_files();
    input_guard_output(options->output);
    if (open_recording(run, options, findings) || name_inlined_calls(run, options, findings))
        return -1;
    interruption_hold_signals();
    if (output_file_open(&run->output, options->output, findings) ||
        dso_dir_open(&run->dsos, options->dso_dir, !options->dso_dir_given, findings))
        return -1;
    if (recording_play(&run->in, findings) || unwind_stacks(run, options, findings) ||
        plan_images(run, options, findings))
        return -1;
    choose_debug_info(run, options);
    if (plan_merge(run, options, findings) ||
        elf_images_write(&run->plan, run->in.processes.items, run->dsos.fd, options->compress_debug,
                         findings) ||
        write_profile(run, findings) || take_census(run, options, findings) ||
        keep_census(run, findings))
        return -1;
    return commit(run, findings);
}

/* All but the recording, and what it points to. */
static void release_output(struct injection *run)
{
    sample_census_free(&run->census);
    output_file_close(&run->output);
    dso_dir_close(&run->dsos);
    recording_merge_free(&run->merge);
    rooted_maps_free(&run->rooted);
    user_stacks_free(&run->stacks);
    inlined_calls_free(&run->calls);
    image_plan_free(&run->plan);
}

static void release(struct injection *run)
{
    release_output(run);
    memory_file_free(&run->event_desc);
    recording_free(&run->in);
}

/* A dump that became shorter is left out. */
static bool begins_anew(struct injection *run, struct findings *findings)
{
    release_output(run);
    bool anew = recording_begin_anew(&run->in, findings);
    *run = (struct injection){.in = run->in,
                              .event_desc = run->event_desc,
                              .output = {.fd = -1},
                              .dsos = {.fd = -1, .place_fd = -1}};
    return anew;
}

/* ---- What is said about it ---- */

static void print_perf_map(const struct perf_map_counts *counts)
{
    printable_line(
        stderr,
        "perfjit:     perf map: entries: %zu, functions used: %zu; entries in files: %zu, "
        "outside executable memory: %zu, reaching out of it: %zu",
        counts->entries, counts->functions, counts->in_files, counts->outside, counts->clipped);
}

static void print_records(const struct injection *run)
{
    size_t maps = 0;
    for (size_t i = 0; i < run->merge.added.count; i++)
        maps += run->merge.added.items[i].kind < ADDED_COMM;
    printable_line(stderr,
                   "perfjit: mappings: %zu of JIT code added, %zu left out, of dumps and over JIT "
                   "code",
                   maps, run->merge.dropped_count);
}

static void print_details(const struct injection *run)
{
    print_records(run);
    for (size_t i = 0; i < run->in.processes.count; i++) {
        const struct jit_process *process = &run->in.processes.items[i];
        for (size_t d = 0; d < process->dump_count; d++)
            printable_line(stderr, "perfjit: process %" PRIu32 ": read %s", process->pid,
                           process->dump_paths[d]);
        if (process->perf_map)
            print_perf_map(&process->perf_map_counts);
    }
    for (size_t i = 0; i < run->plan.image_count; i++) {
        const struct jit_image *image = &run->plan.images[i];
        char name[IMAGE_FILE_NAME_BYTES];
        image_file_name(image, run->in.processes.items, i, name);
        printable_line(stderr, "perfjit: wrote %s/%s: %zu function%s at 0x%" PRIx64, run->dsos.path,
                       name, image->body_count, plural(image->body_count),
                       image->base + image->text_start);
    }
}

static void print_unknown(const struct sample_census *census, const char *path)
{
    uint64_t in_jit = census->unknown + census->named;
    char word[SHELL_WORD_BYTES];
    if (!census->unknown)
        return;
    printable_line(stderr,
                   "perfjit: %" PRIu64 " of %" PRIu64 " sample%s in JIT code stay%s [unknown]:",
                   census->unknown, in_jit, plural(in_jit), verb_ending(census->unknown));
    for (size_t i = 0; i < census->group_count && i < CAUSES_SHOWN; i++) {
        const struct unknown_samples *group = &census->groups[i];
        printable_line(stderr, "perfjit:     %" PRIu64 " of process %" PRIu32 " (%s): %s",
                       group->count, group->pid, group->comm, sample_cause_what(group->cause));
    }
    if (census->group_count > CAUSES_SHOWN)
        printable_line(stderr, "perfjit:     %zu more reason%s: perfjit check",
                       census->group_count - CAUSES_SHOWN,
                       plural(census->group_count - CAUSES_SHOWN));
    printable_line(stderr, "perfjit:     what to do: perfjit check %s", shell_word(word, path));
}

/* Nearly all functions are to be of that kind: those that call nothing need no frame anyway. */
static void print_frameless(const struct injection *run)
{
    const struct machine *machine = recording_machine(run->in.records.file, machine_here());
    struct frame_pointers counts = {0};
    for (size_t i = 0; machine_unwinds(machine) && i < run->in.processes.count; i++)
        frame_pointers_count(&counts, &run->in.processes.items[i].log, machine);
    if (counts.without_pointer * 10 > counts.with_tables * 9)
        printable_line(stderr,
                       "perfjit: %zu of %zu function%s with unwind tables keep%s no frame pointer: "
                       "their callers are seen only in copied stacks: -g dwarf",
                       counts.without_pointer, counts.with_tables, plural(counts.with_tables),
                       verb_ending(counts.without_pointer));
}

static void print_losses(const struct injection *run)
{
    char text[LOSSES_TEXT_BYTES];
    if (!losses_any(&run->in.records.losses))
        return;
    losses_text(&run->in.records.losses, text, sizeof text);
    printable_line(stderr, "perfjit: %s", text);
}

static void print_summary(struct injection *run, const struct inject_options *options,
                          const struct findings *findings)
{
    const char *output = options->output;
    char note[64] = "";
    size_t functions = 0, from_perf_maps = 0;
    for (size_t i = 0; i < run->in.processes.count; i++) {
        functions += jit_process_own_functions(&run->in.processes.items[i]);
        from_perf_maps += run->in.processes.items[i].perf_map_counts.functions;
    }
    functions -= run->calls.added;
    if (from_perf_maps && from_perf_maps == functions)
        snprintf(note, sizeof note, " from perf maps");
    else if (from_perf_maps)
        snprintf(note, sizeof note, " (%zu from perf maps)", from_perf_maps);
    findings_print(findings, stderr);
    print_losses(run);
    if (options->after_record && run->in.processes.no_code)
        tell_no_code(run, findings);
    print_unknown(&run->census, run->output.in_memory ? run->in.input.file.path : output);
    if (run->unwinds)
        stack_counts_print(&run->stacks.counts, &run->stacks.walker.files, findings->verbose,
                           stderr);
    uint64_t lost = findings_lost(findings);
    printable_line(stderr,
                   "perfjit: %s: %zu function%s%s in %zu image%s, %" PRIu64
                   " part%s of the input skipped",
                   output, functions, plural(functions), note, run->plan.image_count,
                   plural(run->plan.image_count), lost, plural(lost));
}

/* A process that leaves by _exit, as children of Python's multiprocessing do, leaves its last
 * buffer unwritten.  If every sample and stack is known all the same, no code that ran is
 * missing. */
static uint64_t lost(const struct injection *run, const struct inject_options *options,
                     const struct findings *findings)
{
    uint64_t all = findings_lost(findings);
    bool known = run->census.unknown +
                     stack_counts_unlogged(&run->stacks.counts, &run->stacks.walker.files) ==
                 0;
    return options->after_record && known ? all - findings->count[FINDING_DUMP_TRUNCATED] : all;
}

int inject_recording(const struct inject_options *options, struct findings *findings)
{
    struct injection run = {.output = {.fd = -1}, .dsos = {.fd = -1, .place_fd = -1}};
    if (!options->quiet)
        progress_open(&findings->progress, stderr);
    int result = inject(&run, options, findings);
    while (result && begins_anew(&run, findings))
        result = inject(&run, options, findings);
    progress_end(&findings->progress);
    if (!result && options->verbose && !options->quiet)
        print_details(&run);
    if (!result && !options->quiet && options->follows_pointers)
        print_frameless(&run);
    if (!result && !options->quiet)
        print_summary(&run, options, findings);
    if (result && !options->quiet)
        findings_print(findings, stderr); /* often the reason behind the failure */
    if (!result && options->names_none)
        *options->names_none = run.census.unknown && !run.census.named;
    int status = result                              ? EXIT_FAILED
                 : lost(&run, options, findings) > 0 ? EXIT_SKIPPED
                                                     : EXIT_DONE;
    release(&run);
    return status;
}
