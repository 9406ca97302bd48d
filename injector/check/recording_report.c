/* See recording_report.h. */
#include "injector/check/recording_report.h"

#include "injector/check/chain_report.h"
#include "injector/check/dump_report.h"
#include "injector/recording/host/injected_image.h"
#include "injector/recording/injected_map.h"
#include "injector/recording/silent_runtime.h"
#include "injector/text/plural.h"
#include "injector/text/shell_word.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void report_samples(struct report *report, const struct sample_census *census)
{
    report_open(report, "samples", "samples (the address of each, not its call chain)");
    report_number(report, "total", "in all", census->samples);
    report_count(report, "outside_user", "in the kernel or a guest", census->outside_user);
    report_count(report, "in_files", "in programs and libraries", census->in_files);
    report_number(report, "jit_named", "in JIT code, named", census->named);
    report_number(report, "jit_unknown", "in JIT code, [unknown]", census->unknown);
    report_count(report, "unmapped", "where no mapping was recorded", census->unmapped);
    report_count(report, "incomplete", "without pid, address or time", census->incomplete);
    report_close(report);
}

static void report_sources(struct report *report, const struct jit_process *process)
{
    report_open_array(report, "sources", NULL);
    for (size_t i = 0; i < process->dump_count - process->borrowed_count; i++) {
        report_line(report, "    %s", process->dump_paths[i]);
        report_text(report, NULL, NULL, process->dump_paths[i]);
    }
    report_close_array(report);
}

/* An injected recording has no markers of dumps, but a perf map may still be there: beside counts
 * of that time, the list would have only a part of what gave the names. */
static void report_processes(struct report *report, const struct census_question *question,
                             const struct sample_census *census)
{
    const struct jit_processes *processes = question->processes;
    bool any = processes->count > 0 && !census->is_kept;
    report_open_array(report, "processes", any ? "processes with JIT code" : NULL);
    for (size_t i = 0; any && i < processes->count; i++) {
        const struct jit_process *process = &processes->items[i];
        char comm[PROCESS_COMM_BYTES];
        process_life_comm(&processes->lives, question->records, process->life, comm);
        report_open(report, NULL, NULL);
        report_line(report, "%" PRIu32 " (%s): %zu function%s%s", process->pid, comm,
                    jit_process_own_functions(process), plural(jit_process_own_functions(process)),
                    process->parent ? ", and what it inherited" : "");
        report_number(report, "pid", NULL, process->pid);
        report_text(report, "comm", NULL, comm);
        report_number(report, "functions", NULL, jit_process_own_functions(process));
        report_sources(report, process);
        report_close(report);
    }
    report_close_array(report);
}

static void report_group(struct report *report, const struct unknown_samples *group)
{
    report_open(report, NULL, NULL);
    report_line(report, "%8" PRIu64 "  process %" PRIu32 " (%s): %s", group->count, group->pid,
                group->comm, sample_cause_what(group->cause));
    report_line(report, "          first at 0x%" PRIx64 ", %" PRIu64 ".%09" PRIu64 " s",
                group->first_ip, group->first_ns / 1000000000, group->first_ns % 1000000000);
    report_text(report, "cause", NULL, sample_cause_id(group->cause));
    report_number(report, "pid", NULL, group->pid);
    report_text(report, "comm", NULL, group->comm);
    report_number(report, "samples", NULL, group->count);
    report_number(report, "first_ip", NULL, group->first_ip);
    report_number(report, "first_ns", NULL, group->first_ns);
    report_close(report);
}

static void report_unknown(struct report *report, const struct sample_census *census)
{
    const char *title = census->group_count ? "[unknown], and why" : NULL;
    report_open_array(report, "unknown", title);
    for (size_t i = 0; i < census->group_count; i++)
        report_group(report, &census->groups[i]);
    report_close_array(report);
}

/* Whether the recording lacks most records about mappings.  Nothing is known then of samples there,
 * in JIT code or not. */
static bool lacks_maps(const struct sample_census *census)
{
    return census->unmapped > census->in_files + census->named + census->unknown;
}

/* Whether a process that has JIT code may have moved it.  perf has no record of that. */
static bool may_be_moved(const struct sample_census *census)
{
    enum { SHARE = 100 }; /* fewer are where a mapping's record was lost */
    uint64_t in_jit = census->named + census->unknown;
    return in_jit && census->unmapped > in_jit / SHARE;
}

static void report_remedies(struct report *report, const struct sample_census *census)
{
    bool said[CAUSES] = {false};
    report_open_array(report, "remedies",
                      census->unknown || census->incomplete || lacks_maps(census) ||
                              may_be_moved(census)
                          ? "what to do"
                          : NULL);
    for (size_t i = 0; i < census->group_count; i++) {
        enum sample_cause cause = census->groups[i].cause;
        if (said[cause])
            continue;
        said[cause] = true;
        report_open(report, NULL, NULL);
        report_line(report, "%s: %s", sample_cause_id(cause), sample_cause_remedy(cause));
        report_text(report, "cause", NULL, sample_cause_id(cause));
        report_text(report, "remedy", NULL, sample_cause_remedy(cause));
        report_close(report);
    }
    if (census->incomplete)
        report_line(report, "record with times (perf record -T) and without --per-thread alone");
    if (lacks_maps(census))
        report_line(report,
                    "the recording does not say what was mapped, as where its beginning was "
                    "overwritten (perf record --overwrite, --tail-synthesize) or its end cut off: "
                    "record all of it; JIT code has names if its dump is named, --jitdump FILE");
    if (may_be_moved(census))
        report_line(report,
                    "code that was moved with mremap(2) is where no mapping was recorded: perf has "
                    "no record of that; its runtime has to log the move (CODE_MOVE) or the code "
                    "again");
    report_close_array(report);
}

/* What perf did not come to record: no runtime and no dump can make up for it. */
static void report_lacks(struct report *report, const struct losses *losses,
                         const struct cut_chains *cuts)
{
    char text[LOSSES_TEXT_BYTES];
    const bool any = losses_any(losses) || cuts->cut;
    report_open(report, "lacks", any ? "what the recording itself lacks" : NULL);
    report_number(report, "lost_samples", NULL, losses->samples);
    report_number(report, "lost_records", NULL, losses->records);
    report_number(report, "cut_traces", NULL, losses->traces);
    report_number(report, "chains", NULL, cuts->chains);
    report_number(report, "cut_chains", NULL, cuts->cut);
    report_number(report, "cut_at_frames", NULL, cuts->frames);
    if (losses_any(losses)) {
        losses_text(losses, text, sizeof text);
        report_line(report, "%s", text);
    }
    if (cuts->cut) {
        cut_chains_text(cuts, text, sizeof text);
        report_line(report, "%s", text);
    }
    report_close(report);
}

/* The last line: what all of it comes to.  IMAGE: of an injected recording, or NULL; MOVED:
 * where it is if it was moved, or NULL; GONE: it is not there. */
static void report_verdict(struct report *report, const struct records *records,
                           const struct sample_census *census, const struct findings *findings,
                           uint64_t misled, const char *image, const char *moved, bool gone)
{
    uint64_t lost = findings_lost(findings), in_jit = census->unknown + census->named;
    uint32_t pid;
    if (image && census->is_kept)
        report_line(report, "injected already, with %s: the counts are of when that was done",
                    image);
    if (misled)
        report_line(report, "%" PRIu64 " call chain%s %s ended by wrong unwind tables of JIT code",
                    misled, plural(misled), is_or_are(misled));
    if (census->unknown)
        report_line(report, "%" PRIu64 " of %" PRIu64 " sample%s in JIT code stay%s [unknown]",
                    census->unknown, in_jit, plural(in_jit), verb_ending(census->unknown));
    if (lost)
        report_line(report, "%" PRIu64 " part%s of the input would be lost", lost, plural(lost));
    char word[SHELL_WORD_BYTES];
    if (moved)
        report_line(report,
                    "%s was moved with its recording; perf finds the names after perfjit move %s",
                    moved, shell_word(word, records->file->path));
    if (gone)
        report_line(report,
                    "injected already, with %s, which is not there: its JIT code has no "
                    "names; put it back, or check the recording as perf record wrote it",
                    image);
    if (losses_any(&records->losses))
        report_line(report, "perf lost part of the recording");
    if (census->unknown || census->incomplete || lost || misled || gone ||
        losses_any(&records->losses))
        return;
    if (census->named)
        report_line(report, "sound: every sample in JIT code has a name");
    else if (lacks_maps(census))
        report_line(report, "most samples are where no mapping was recorded, in JIT code or not");
    else if (!image && silent_runtime_in(records, &pid))
        report_line(report,
                    "no sample is in JIT code: process %" PRIu32 " runs %s, which has no perf "
                    "support",
                    pid, silent_runtime_in(records, &pid));
    else if (!image || census->is_kept)
        report_line(report, "no sample is in JIT code");
    else
        report_line(report, "injected already, with %s: its JIT code counts among the libraries",
                    image);
}

static int report_chains(struct report *report, const struct chain_question *chains)
{
    if (chains->stacks)
        return chain_report(report, chains->stacks, chains->census, chains->verbose);
    if (chains->asked)
        chain_report_none(report);
    return 0;
}

int recording_report(struct report *report, const struct census_question *question,
                     const struct sample_census *census, const struct chain_question *chains,
                     const struct findings *findings)
{
    const char *path = question->records->file->path;
    const char *image = injected_image(question->records);
    const struct losses *losses = &question->records->losses;
    bool gone = injected_image_gone(question->records, question->root) != NULL;
    bool sound = !census->unknown && !census->incomplete && !findings_lost(findings) &&
                 !chains->misled && !gone && !losses_any(losses);
    report_open(report, "profile", path);
    report_text(report, "file", NULL, path);
    report_flag(report, "sound", sound);
    if (image)
        report_text(report, "injected", NULL, image);
    char *moved = injected_image_moved(question->records, question->root);
    int result = report_chains(report, chains);
    report_samples(report, census);
    report_processes(report, question, census);
    report_unknown(report, census);
    report_findings(report, findings);
    report_lacks(report, losses, &chains->cuts);
    report_remedies(report, census);
    report_verdict(report, question->records, census, findings, chains->misled, image, moved, gone);
    report_close(report);
    free(moved);
    return result;
}
