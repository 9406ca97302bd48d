/* See findings.h. */
#include "injector/findings/findings.h"

#include "injector/text/printable_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void report_finding(struct findings *findings, enum finding_kind kind, const char *format, ...)
{
    if (findings->count[kind]++ && !findings->verbose)
        return;
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0)
        return;
    if (findings->verbose && !findings->quiet) {
        progress_wipe(&findings->progress);
        printable_line(stderr, "perfjit: %s", text);
    }
    if (findings->first[kind])
        free(text);
    else
        findings->first[kind] = text;
}

void report_quirk(struct findings *findings, enum quirk quirk, const char *format, ...)
{
    if (findings->repaired[quirk]++)
        return;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&findings->first_repaired[quirk], format, arguments) < 0)
        findings->first_repaired[quirk] = NULL;
    va_end(arguments);
}

void report_note(struct findings *findings, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    if (!findings->verbose || findings->quiet)
        return;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0)
        return;
    progress_wipe(&findings->progress);
    printable_line(stderr, "perfjit: %s", text);
    free(text);
}

static int fail(struct findings *findings, bool is_misuse, const char *format, va_list arguments)
{
    if (findings->failure[0])
        return -1;
    vsnprintf(findings->failure, sizeof findings->failure, format, arguments);
    findings->is_misuse = is_misuse;
    return -1;
}

int report_failure(struct findings *findings, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(findings, false, format, arguments);
    va_end(arguments);
    return -1;
}

int report_misuse(struct findings *findings, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(findings, true, format, arguments);
    va_end(arguments);
    return -1;
}

uint64_t findings_lost(const struct findings *findings)
{
    uint64_t lost = 0;
    for (int kind = 0; kind < FINDING_KINDS; kind++)
        if (finding_is_lost((enum finding_kind)kind))
            lost += findings->count[kind];
    return lost;
}

/* "perfjit: repaired: 12 x hdr-first, 1 x header-version; -v for details" */
static void print_repaired(const struct findings *findings, FILE *stream)
{
    const char *before = "perfjit: repaired: ";
    for (int quirk = 0; quirk < QUIRKS; quirk++) {
        if (!findings->repaired[quirk] || quirk_is_usual((enum quirk)quirk))
            continue;
        fprintf(stream, "%s%" PRIu64 " x %s", before, findings->repaired[quirk],
                quirk_text((enum quirk)quirk)->id);
        before = ", ";
    }
    if (*before == ',')
        fprintf(stream, "; -v for details\n");
}

static void explain_repaired(const struct findings *findings, FILE *stream)
{
    for (int quirk = 0; quirk < QUIRKS; quirk++) {
        const struct quirk_text *text = quirk_text((enum quirk)quirk);
        const char *first = findings->first_repaired[quirk];
        if (!findings->repaired[quirk])
            continue;
        printable_line(stream, "perfjit: repaired: %" PRIu64 " x %s: %s. perfjit %s. Seen in: %s",
                       findings->repaired[quirk], text->id, text->symptom, text->remedy,
                       text->producers);
        if (first)
            printable_line(stream, "perfjit:     first: %s", first);
    }
}

void findings_print(const struct findings *findings, FILE *stream)
{
    for (int kind = 0; kind < FINDING_KINDS; kind++) {
        if (!findings->count[kind])
            continue;
        printable_line(stream, "perfjit: %" PRIu64 " x %s: %s", findings->count[kind],
                       finding_what((enum finding_kind)kind),
                       finding_means((enum finding_kind)kind));
        if (findings->first[kind])
            printable_line(stream, "perfjit:     %s%s",
                           findings->count[kind] > 1 && !findings->verbose ? "first: " : "",
                           findings->first[kind]);
    }
    if (findings->verbose)
        explain_repaired(findings, stream);
    else
        print_repaired(findings, stream);
}

static void move_cases(uint64_t *to_count, char **to_first, uint64_t *from_count, char **from_first)
{
    if (*to_first)
        free(*from_first);
    else
        *to_first = *from_first;
    *to_count += *from_count;
    *from_count = 0;
    *from_first = NULL;
}

void findings_move(struct findings *to, struct findings *from)
{
    for (int kind = 0; kind < FINDING_KINDS; kind++)
        move_cases(&to->count[kind], &to->first[kind], &from->count[kind], &from->first[kind]);
    for (int quirk = 0; quirk < QUIRKS; quirk++)
        move_cases(&to->repaired[quirk], &to->first_repaired[quirk], &from->repaired[quirk],
                   &from->first_repaired[quirk]);
}

struct findings_mark findings_mark(const struct findings *findings)
{
    struct findings_mark mark;
    memcpy(mark.count, findings->count, sizeof mark.count);
    memcpy(mark.repaired, findings->repaired, sizeof mark.repaired);
    return mark;
}

static void return_cases(uint64_t *count, char **first, uint64_t before)
{
    *count = before;
    if (before)
        return;
    free(*first);
    *first = NULL;
}

void findings_return(struct findings *findings, const struct findings_mark *mark)
{
    for (int kind = 0; kind < FINDING_KINDS; kind++)
        return_cases(&findings->count[kind], &findings->first[kind], mark->count[kind]);
    for (int quirk = 0; quirk < QUIRKS; quirk++)
        return_cases(&findings->repaired[quirk], &findings->first_repaired[quirk],
                     mark->repaired[quirk]);
    findings->failure[0] = '\0';
}

void findings_free(struct findings *findings)
{
    for (int kind = 0; kind < FINDING_KINDS; kind++)
        free(findings->first[kind]);
    for (int quirk = 0; quirk < QUIRKS; quirk++)
        free(findings->first_repaired[quirk]);
}
