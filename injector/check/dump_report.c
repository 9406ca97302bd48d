/* See dump_report.h. */
#include "injector/check/dump_report.h"
#include "injector/text/plural.h"

#include <inttypes.h>

static void report_quirks(struct report *report, const struct findings *findings)
{
    report_open_array(report, "quirks", NULL);
    for (int quirk = 0; quirk < QUIRKS; quirk++) {
        const struct quirk_text *text = quirk_text((enum quirk)quirk);
        if (!findings->repaired[quirk])
            continue;
        report_line(report, "repaired: %" PRIu64 " x %s: %s", findings->repaired[quirk], text->id,
                    text->symptom);
        report_open(report, NULL, NULL);
        report_text(report, "quirk", NULL, text->id);
        report_number(report, "count", NULL, findings->repaired[quirk]);
        if (findings->first_repaired[quirk])
            report_text(report, "first", NULL, findings->first_repaired[quirk]);
        report_close(report);
    }
    report_close_array(report);
}

static void report_kind(struct report *report, const struct findings *findings,
                        enum finding_kind kind)
{
    const char *first = findings->first[kind] ? findings->first[kind] : "";
    bool lost = finding_is_lost(kind);
    report_line(report, "%s: %" PRIu64 " x %s: %s", lost ? "LOST" : "note", findings->count[kind],
                finding_what(kind), finding_means(kind));
    report_open(report, NULL, NULL);
    report_line(report, "    %s%s", findings->count[kind] > 1 ? "first: " : "", first);
    report_text(report, "what", NULL, finding_what(kind));
    report_number(report, "count", NULL, findings->count[kind]);
    report_flag(report, "lost", lost);
    report_text(report, "first", NULL, first);
    report_text(report, "remedy", NULL, finding_means(kind));
    report_close(report);
}

void report_findings(struct report *report, const struct findings *findings)
{
    report_quirks(report, findings);
    report_open_array(report, "findings", NULL);
    for (int kind = 0; kind < FINDING_KINDS; kind++)
        if (findings->count[kind])
            report_kind(report, findings, (enum finding_kind)kind);
    report_close_array(report);
}

/* ---- A dump ---- */

static void report_header(struct report *report, const struct jit_dump *dump)
{
    report_open(report, "header", "header");
    report_number(report, "version", "version", dump->version);
    report_number(report, "elf_mach", "machine (ELF number)", dump->elf_mach);
    report_number(report, "pid", "pid", dump->pid);
    report_text(report, "byte_order", "byte order", dump->big_endian ? "big" : "little");
    report_close(report);
}

static void report_records(struct report *report, const struct dump_survey *survey)
{
    static const struct {
        const char *key, *label;
    } texts[RECORD_KINDS] = {
        [RECORD_LOAD] = {"load", "CODE_LOAD"},
        [RECORD_MOVE] = {"move", "CODE_MOVE"},
        [RECORD_UNLOAD] = {"unload", "CODE_UNLOAD"},
        [RECORD_DEBUG_INFO] = {"debug_info", "CODE_DEBUG_INFO"},
        [RECORD_INLINE_INFO] = {"inline_info", "CODE_INLINE_INFO"},
        [RECORD_PIECE] = {"piece", "CODE_PIECE"},
        [RECORD_INTERPRETED] = {"interpreted", "INTERPRETED_FUNCTION"},
        [RECORD_UNWINDING_INFO] = {"unwinding_info", "CODE_UNWINDING_INFO"},
        [RECORD_CLOSE] = {"close", "CODE_CLOSE"},
        [RECORD_OTHER] = {"other", "others that are known"},
        [RECORD_UNKNOWN] = {"unknown", "of unknown type"},
        [RECORD_BROKEN] = {"broken", "broken"},
    };
    report_open(report, "records", "records");
    report_number(report, "total", "in all", survey->record_count);
    for (int kind = 0; kind < RECORD_KINDS; kind++)
        report_count(report, texts[kind].key, texts[kind].label, survey->records[kind]);
    report_number(report, "largest_bytes", "bytes of the largest", survey->largest_bytes);
    report_count(report, "torn_parts", "torn parts", survey->torn_parts);
    report_count(report, "torn_bytes", "bytes in torn parts", survey->torn_bytes);
    report_count(report, "repeated_bytes", "bytes that stand there twice", survey->repeated_bytes);
    report_count(report, "cut_bytes", "bytes of a record that is cut", survey->cut_bytes);
    report_count(report, "unused_bytes", "zeros at the end", survey->unused_bytes);
    if (!survey->records[RECORD_CLOSE])
        report_line(
            report,
            "no CODE_CLOSE: V8 and JSC never write one, others when they end by themselves");
    report_close(report);
}

static void report_order(struct report *report, const struct dump_survey *survey)
{
    report_open(report, "order", "order");
    report_number(report, "times_backwards", "records older than the one before",
                  survey->backwards);
    report_number(report, "overlaps", "loads over live code", survey->overlaps);
    report_count(report, "repeated", "loads of code that is already there", survey->repeated);
    report_count(report, "strangers", "moves, unloads of other code", survey->strangers);
    if (survey->strangers)
        report_line(report, "that is inherited by fork, or its load was lost: check the recording");
    report_close(report);
}

static void report_clock(struct report *report, const struct jit_dump *dump,
                         const struct dump_survey *survey)
{
    bool cycles = dump->flags & JITDUMP_FLAG_ARCH_TIMESTAMP;
    report_open(report, "clock", "clock");
    report_text(report, "flag", "by the header's flag",
                cycles ? "cycles of the CPU's counter" : "CLOCK_MONOTONIC, ns");
    report_number(report, "header", NULL, dump->timestamp);
    report_number(report, "first", NULL, survey->first_time);
    report_number(report, "last", NULL, survey->last_time);
    report_flag(report, "header_agrees", survey->header_agrees);
    report_flag(report, "stands_still", survey->stands_still);
    if (!cycles && survey->timed)
        report_line(report, "%.3f s from the first record to the last",
                    (double)(survey->last_time - survey->first_time) / 1e9);
    if (survey->header_is_wall)
        report_line(report, "the header's time is the wall clock's, as V8 and CPython write it: "
                            "unusual, but nothing is lost");
    else if (!survey->header_agrees)
        report_line(report, "the header's time is not that of the records: unusual, but nothing is "
                            "lost if the records' times are right; they may be of another clock");
    if (survey->stands_still)
        report_line(report, "LOST: all records have one time");
    report_close(report);
}

/* In text the first ones; a runtime's mistake is in many functions. */
static void report_faults(struct report *report, const struct frame_survey *frames)
{
    enum { SHOWN = 10 };
    report_open_array(report, "faults", NULL);
    for (size_t i = 0; i < frames->fault_count; i++) {
        const struct frame_fault *fault = &frames->faults[i];
        if (i < SHOWN)
            report_line(report, "%s: %s", fault->name, fault->text);
        report_open(report, NULL, NULL);
        report_text(report, "function", NULL, fault->name);
        report_number(report, "addr", NULL, fault->addr);
        report_number(report, "offset", NULL, fault->at);
        report_text(report, "fault", NULL, fault->text);
        report_close(report);
    }
    report_close_array(report);
    if (frames->wrong > SHOWN)
        report_line(report, "... and %" PRIu64 " more; --json has them", frames->wrong - SHOWN);
    if (frames->wrong)
        report_line(report, "stacks through them end early, or go astray, from that instruction "
                            "on: correct what the runtime describes there");
}

/* How far the tables and the code they are of say the same. */
static void report_frames(struct report *report, const struct frame_survey *frames)
{
    report_open(report, "frames", "frames, compared with the code");
    report_number(report, "functions", "functions", frames->functions);
    report_number(report, "instructions", "instructions", frames->instructions);
    report_count(report, "partly", "functions that can't be followed to the end", frames->partly);
    report_count(report, "on_trust", "functions entered inside of a frame, as described",
                 frames->on_trust);
    report_count(report, "wrong", "LOST: functions whose unwind table does not fit their code",
                 frames->wrong);
    report_faults(report, frames);
    report_close(report);
}

static void report_functions(struct report *report, const struct dump_survey *survey)
{
    const struct findings *findings = &survey->findings;
    report_open(report, "names", "names");
    report_number(report, "functions", "functions", survey->functions);
    report_count(report, "unprintable", "unprintable", findings->repaired[QUIRK_NAME_UNPRINTABLE]);
    report_count(report, "empty", "empty or absent",
                 findings->repaired[QUIRK_NAME_EMPTY] + findings->repaired[QUIRK_NAME_ABSENT]);
    report_count(report, "alike", "shared with other addresses", survey->named_alike);
    report_close(report);
    report_open(report, "unwind", "unwind tables");
    report_number(report, "functions", "functions with one", survey->with_cfi);
    report_count(report, "broken", "broken", findings->count[FINDING_UNWIND_BROKEN]);
    report_count(report, "unmatched", "for code that was never loaded",
                 findings->count[FINDING_UNWIND_UNMATCHED]);
    report_close(report);
}

static void report_lines(struct report *report, const struct dump_survey *survey)
{
    const struct findings *findings = &survey->findings;
    report_open(report, "lines", "lines");
    report_number(report, "functions", "functions with some", survey->with_lines);
    report_count(report, "entries", "entries", survey->lines);
    report_count(report, "outside", "LOST: functions with some outside of it",
                 findings->count[FINDING_LINES_OUTSIDE]);
    report_count(report, "broken", "LOST: broken tables", findings->count[FINDING_LINES_BROKEN]);
    report_count(report, "unmatched", "LOST: tables without a load",
                 findings->count[FINDING_LINES_UNMATCHED]);
    report_count(report, "biased", "functions with 0x40 too much",
                 findings->repaired[QUIRK_LINES_BIASED]);
    report_count(report, "cut", "functions with some before the start, or always past the end",
                 findings->repaired[QUIRK_LINES_OUTSIDE]);
    report_close(report);
    report_open(report, "inlined", "inlined calls");
    report_number(report, "functions", "functions with some", survey->with_inlines);
    report_count(report, "calls", "calls", survey->inlines);
    report_count(report, "spans", "spans", survey->spans);
    report_count(report, "broken", "LOST: broken tables", findings->count[FINDING_INLINES_BROKEN]);
    report_close(report);
}

void dump_report(struct report *report, const struct jit_dump *dump,
                 const struct dump_survey *survey)
{
    uint64_t lost = dump_survey_lost(survey);
    report_open(report, NULL, dump->path);
    report_text(report, "file", NULL, dump->path);
    report_flag(report, "readable", true);
    report_flag(report, "sound", lost == 0);
    report_number(report, "lost", NULL, lost);
    report_header(report, dump);
    report_records(report, survey);
    report_order(report, survey);
    report_clock(report, dump, survey);
    report_functions(report, survey);
    report_frames(report, &survey->frames);
    report_lines(report, survey);
    report_findings(report, &survey->findings);
    if (lost)
        report_line(report, "%" PRIu64 " part%s would be lost", lost, plural(lost));
    else
        report_line(report, "sound: nothing would be lost");
    report_close(report);
}

void dump_report_unreadable(struct report *report, const char *path, const char *cause)
{
    report_open(report, NULL, path);
    report_text(report, "file", NULL, path);
    report_flag(report, "readable", false);
    report_flag(report, "sound", false);
    report_text(report, "cause", "can't be read", cause);
    report_close(report);
}

/* ---- A repaired copy ---- */

void repair_report(struct report *report, const struct dump_repair *repair, const char *path)
{
    report_open(report, "repaired", path);
    report_text(report, "file", NULL, path);
    report_number(report, "kept", "records kept", repair->kept);
    report_number(report, "functions", "functions among them", repair->functions);
    report_count(report, "torn_parts", "torn or cut parts left out", repair->torn_parts);
    report_count(report, "torn_bytes", "bytes in them", repair->torn_bytes);
    report_count(report, "repeated_bytes", "bytes that stood there twice", repair->repeated_bytes);
    report_count(report, "broken", "broken records left out", repair->broken);
    report_count(report, "unknown", "unknown records left out", repair->unknown);
    report_count(report, "orphans", "tables of lost loads left out", repair->orphans);
    report_count(report, "headers", "further headers left out", repair->headers);
    report_count(report, "foreign", "other processes' records left out", repair->foreign);
    report_count(report, "fillers", "fillers left out", repair->fillers);
    report_count(report, "unloads", "unloads written for a header", repair->unloads);
    report_count(report, "sizes_corrected", "record sizes corrected", repair->sizes_corrected);
    report_flag(report, "header_corrected", repair->header_corrected);
    if (repair->header_corrected)
        report_line(report, "the header was rewritten");
    report_close(report);
}
