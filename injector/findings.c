/* See findings.h. */
#include "injector/findings.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

struct finding_text {
    const char *what;  /* follows the count */
    const char *means; /* what was done about it, and what the user can do */
    bool lost;         /* something of the input is not in the output */
};

static const struct finding_text texts[FINDING_KINDS] = {
    [FINDING_PROFILE_TRUNCATED] =
        {"perf.data cut short",
         "everything before the cut was kept; perf record was probably killed while writing", true},
    [FINDING_DUMP_MISSING] =
        {"dump missing",
         "its functions stay [unknown]; if the file was moved, name it with --jitdump FILE", true},
    [FINDING_DUMP_UNUSABLE] = {"dump that can't be used", "its functions stay [unknown]", true},
    [FINDING_DUMP_NOT_OURS] =
        {"dump of another process",
         "a dump belongs to the process whose pid is in its name; to use it all the same, name it "
         "with --jitdump FILE",
         true},
    [FINDING_DUMP_TRUNCATED] =
        {"dump cut short",
         "everything before the cut was kept; the runtime died before it had written the rest, or "
         "is still running",
         true},
    [FINDING_RECORD_UNKNOWN] =
        {"record of unknown type",
         "skipped; a newer runtime may write what this version does not know", true},
    [FINDING_RECORD_BROKEN] = {"broken record",
                               "skipped; `perfjit dump FILE` shows the records around it", true},
    [FINDING_CODE_LOST] = {"move or unload of code that was never loaded",
                           "skipped; its load may have been lost", true},
    [FINDING_UNWIND_BROKEN] =
        {"broken unwind table",
         "its functions have their names, but perf can unwind through them by frame pointers only",
         true},
    [FINDING_UNWIND_HOMELESS] =
        {"unwind table for code that was never loaded",
         "skipped; its functions, if any, can be unwound by frame pointers only", true},
    [FINDING_UNWIND_NO_ROOM] =
        {"image without room for its unwind tables",
         "the process has no free addresses within 1 GiB above the code; frame pointers still work",
         true},
    [FINDING_BYTES_ABSENT] = {"function logged without its code bytes",
                              "it has its name, but perf annotate can't show its instructions",
                              false},
    [FINDING_MAP_NOT_OURS] = {"perf map that need not be the process's own",
                              "left out; if it is, name it with --perf-map FILE", true},
    [FINDING_MAP_UNUSABLE] = {"perf map that can't be read", "its functions stay [unknown]", true},
    [FINDING_MAP_LINES] = {"perf map with broken lines",
                           "these were skipped; the runtime died while it wrote, or several "
                           "processes wrote to one file",
                           true},
    [FINDING_MAP_ELSEWHERE] = {"perf map for other addresses",
                               "left out: it is the map of another process or run, or its process "
                               "had no code left when it "
                               "was written",
                               true},
};

void finding(struct findings *findings, enum finding_kind kind, const char *format, ...)
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
    if (findings->verbose && !findings->quiet)
        fprintf(stderr, "perfjit: %s\n", text);
    if (findings->first[kind])
        free(text);
    else
        findings->first[kind] = text;
}

int failure(struct findings *findings, const char *format, ...)
{
    if (findings->failure[0])
        return -1;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(findings->failure, sizeof findings->failure, format, arguments);
    va_end(arguments);
    return -1;
}

uint64_t findings_lost(const struct findings *findings)
{
    uint64_t lost = 0;
    for (int kind = 0; kind < FINDING_KINDS; kind++)
        if (texts[kind].lost)
            lost += findings->count[kind];
    return lost;
}

void findings_print(const struct findings *findings, FILE *stream)
{
    for (int kind = 0; kind < FINDING_KINDS; kind++) {
        if (!findings->count[kind])
            continue;
        fprintf(stream, "perfjit: %" PRIu64 " x %s: %s\n", findings->count[kind], texts[kind].what,
                texts[kind].means);
        if (findings->first[kind])
            fprintf(stream, "perfjit:     %s%s\n",
                    findings->count[kind] > 1 && !findings->verbose ? "first: " : "",
                    findings->first[kind]);
    }
}

void findings_free(struct findings *findings)
{
    for (int kind = 0; kind < FINDING_KINDS; kind++)
        free(findings->first[kind]);
}
