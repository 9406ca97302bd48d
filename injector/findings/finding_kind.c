/* See finding_kind.h. */
#include "injector/findings/finding_kind.h"

struct finding_text {
    const char *what;  /* follows the count */
    const char *means; /* how perfjit handled it, and what the user can do */
    bool lost;         /* something of the input is not in the output */
};

static const struct finding_text texts[FINDING_KINDS] = {
    [FINDING_PROFILE_TRUNCATED] =
        {"perf.data cut short",
         "everything before the cut was kept; perf record was killed while writing, or the file "
         "was damaged since",
         true},
    [FINDING_DUMP_MISSING] =
        {"dump missing",
         "its functions stay [unknown]; if the file was moved, name it with --jitdump FILE", true},
    [FINDING_DUMP_UNUSABLE] = {"dump that can't be used", "its functions stay [unknown]", true},
    [FINDING_DUMP_NOT_OURS] = {"dump of another process",
                               "a dump belongs to the process whose pid is in its name; to use it "
                               "all the same, name it with --jitdump FILE",
                               true},
    [FINDING_DUMP_OWNER] =
        {"dump of another user",
         "left out: it may not be the file that the process mapped, and it belongs neither to you, "
         "nor to root, nor to the owner of the recording: its owner could have put it there; if it "
         "is the right one, read it with --force, or name it with --jitdump FILE",
         true},
    [FINDING_DUMP_TRUNCATED] = {"dump cut short",
                                "everything before the cut was kept; the runtime died before it "
                                "had written the rest, or is still running",
                                true},
    [FINDING_RECORD_UNKNOWN] =
        {"record of unknown type",
         "skipped; a newer runtime may write records that this version does not know", true},
    [FINDING_RECORD_BROKEN] = {"broken record",
                               "skipped; `perfjit dump FILE` shows the records around it", true},
    [FINDING_CODE_LOST] = {"move or unload of code that was never loaded",
                           "skipped; its load may have been lost", true},
    [FINDING_UNWIND_BROKEN] = {"broken unwind table",
                               "its functions have names, but stacks are unwound through them by "
                               "their code or frame pointers only",
                               true},
    [FINDING_UNWIND_UNMATCHED] =
        {"unwind table for code that was never loaded",
         "skipped; its functions, if any, can be unwound by their code or frame pointers only",
         true},
    [FINDING_UNWIND_NO_ROOM] =
        {"image without room for its unwind tables",
         "the process has no free addresses within 1 GiB above the code; frame pointers still work",
         true},
    [FINDING_LINES_BROKEN] = {"broken record of source lines", "its function has no lines", true},
    [FINDING_LINES_OUTSIDE] = {"function with source lines outside of its code",
                               "those were left out", true},
    [FINDING_LINES_UNMATCHED] =
        {"record of source lines or inlined calls for code that was never loaded, or twice",
         "skipped; its load may have been lost", true},
    [FINDING_INLINES_BROKEN] = {"broken record of inlined calls",
                                "its function is shown as if nothing were inlined in it", true},
    [FINDING_INLINES_ABSENT] =
        {"process of V8 without V8's code log",
         "what was inlined is its caller's: the log must be switched on where the process starts, "
         "and node is not reached if a shell or another program starts it by its path, or with a "
         "PATH of its own",
         false},
    [FINDING_SOURCE_MAP] = {"source map that can't be used",
                            "its script is shown as it was generated; --source-maps DIR names "
                            "where maps are, --no-source-maps leaves them out",
                            false},
    [FINDING_SCRIPT_CHANGED] =
        {"script whose file is not the text that ran",
         "its lines are those of that text: a loader made it in memory (tsx, ts-node, jest, "
         "vitest), or the file has changed since; --log-source-code lets V8's log have the text, "
         "with a map if the loader puts one there",
         false},
    [FINDING_BYTES_ABSENT] = {"function logged without its code bytes",
                              "it has its name, but perf annotate can't show its instructions",
                              false},
    [FINDING_IMAGE_CACHED] =
        {"process that lives in another mount namespace",
         "perf looks in that namespace for mapped files, so the ELF files were added to perf's "
         "cache, ~/.debug, as well; perf buildid-cache --remove FILE removes one",
         false},
    [FINDING_IMAGE_HIDDEN] =
        {"process that lives in another mount namespace, where the ELF files are missing",
         "perf looks for them there, and may show no names for any process while this one lives; "
         "add them to perf's cache with perf buildid-cache --add FILE",
         false},
    [FINDING_RECORDS_UNWRITTEN] = {"dump whose newest records its process had not written",
                                   "they were read from the process's memory, and are used", false},
    [FINDING_HISTORY_CUT] =
        {"dump that keeps only its newest history",
         "its size is bounded (JITDUMP_RING): samples before that time may be in code that it has "
         "dropped, and stay [unknown]; give it more bytes, or record sooner",
         false},
    [FINDING_DUMP_TORN] =
        {"torn part of a dump",
         "functions logged in it have no names unless listed below, and the one before it may show "
         "wrong instructions; `perfjit dump FILE` shows the records around it",
         true},
    [FINDING_DUMP_FOREIGN] = {"part of a dump that another process wrote",
                              "skipped; let each process write its own file", true},
    [FINDING_CLOCK_CONVERTED] =
        {"dump on another clock than the profile",
         "its times were converted; perf record -k mono makes that unnecessary", false},
    [FINDING_CLOCK_UNSURE] = {"dump whose times are known only roughly",
                              "if an address was reused, samples near that time may get the "
                              "name of the code before or after; record with perf record -k mono",
                              true},
    [FINDING_CLOCK_FLAG] = {"dump whose flags name the wrong clock",
                            "its timestamps were read with the clock that fits them", false},
    [FINDING_CLOCK_USELESS] = {"dump whose times can't be used",
                               "its functions count as live from the start; if an address was "
                               "reused, all samples get the name of the last function",
                               true},
    [FINDING_DUMP_REPLACED] =
        {"dump that was overwritten",
         "a later process, a later program of the same process, or a process in another container "
         "overwrote it or left a file of the same name; the first one's functions stay [unknown]; "
         "if you have a copy of its dump, name it with "
         "--jitdump FILE",
         true},
    [FINDING_DUMP_ANEW] =
        {"dump that its process wrote anew",
         "what it had logged before is lost: these functions stay [unknown]; give each engine, or "
         "each load of the runtime, a dump of its own name; if you have a copy of the earlier "
         "dump, name it with --jitdump FILE",
         true},
    [FINDING_DUMP_AMBIGUOUS] = {"dump that fits several processes",
                                "not used, because its functions could be the wrong ones; to use "
                                "it all the same, name it with --jitdump PID:FILE",
                                true},
    [FINDING_FEATURE_BROKEN] = {"damaged feature section of perf.data",
                                "left out; perf report --header-only shows what is left; samples "
                                "and maps are not affected",
                                true},
    [FINDING_KCORE_LEFT] = {"copy of the kernel's code",
                            "left out; on another machine or after a reboot, perf report shows "
                            "kernel code without names unless it is given --kallsyms and --vmlinux",
                            false},
    [FINDING_MAP_NOT_OURS] = {"perf map that may not be the process's own",
                              "left out; if it is, name it with --perf-map FILE", true},
    [FINDING_MAP_STALE] = {"perf map of an earlier process with the same pid",
                           "left out: it has none of the recorded code", false},
    [FINDING_MAP_UNUSABLE] = {"perf map that can't be read", "its functions stay [unknown]", true},
    [FINDING_MAP_LINES] = {"perf map with broken lines",
                           "these were skipped; the runtime died while writing, or several "
                           "processes wrote to one file",
                           true},
    [FINDING_MAP_NAMES] = {"perf map with line breaks in names",
                           "each name is shown up to its line break, as perf shows it; the runtime "
                           "should write a space there",
                           false},
    [FINDING_MAP_ELSEWHERE] = {"perf map for other addresses",
                               "left out, though it was named; it is the map of another process "
                               "or of another run, or its process had no code left when it was "
                               "written",
                               true},
    [FINDING_FILE_CHANGED] =
        {"program or library that is not the one that ran",
         "its functions have no names, and stacks are not unwound by its tables; put the one that "
         "ran back, or give perf's cache a copy, perf buildid-cache --add FILE; below a chroot or "
         "in a container, name its root: --root DIR",
         false},
    [FINDING_TIMES_ABSENT] =
        {"recording without times",
         "read in the order of its records, as perf reads it; a function has its name unless "
         "another one was at its addresses, too; --time, --off-cpu, --span and the clock need "
         "times: record with perf record -k mono -T, without --no-timestamp and time=0",
         false},
    [FINDING_TIMES_GUESSED] =
        {"recording in which some samples have no time",
         "each counts with the time of the record before it in its processor's buffer, which is "
         "right but for what happened between the two; record with perf record -k mono -T, "
         "without time=0",
         false},
    [FINDING_MACHINE_UNKNOWN] = {"recording of a machine that is not known",
                                 "perf has to unwind its stacks, its native functions have no "
                                 "names, and ELF files made from its perf maps name no machine",
                                 false},
    [FINDING_CALLERS_MISSING] = {"sample whose callers in the program are missing",
                                 "counted without them: with --call-graph fp,defer they are "
                                 "recorded when the thread goes on in the program, and that "
                                 "record was lost or the recording ended before",
                                 false},
    [FINDING_SAMPLE_BROKEN] = {"sample that contradicts itself",
                               "perf reads no further than to it; here it counts with its own "
                               "address alone, and inject leaves it out where it unwinds stacks",
                               true},
    [FINDING_INHERITANCE_CUT] =
        {"process whose inherited or shared code is only partly known",
         "4 million functions have been copied to other processes already; names may be missing "
         "there: record fewer processes at once (perf record -p)",
         true},
};

const char *finding_what(enum finding_kind kind)
{
    return texts[kind].what;
}

const char *finding_means(enum finding_kind kind)
{
    return texts[kind].means;
}

bool finding_is_lost(enum finding_kind kind)
{
    return texts[kind].lost;
}

const struct no_dump_reason no_dump_reasons[NO_DUMP_REASONS] = {
    {FINDING_DUMP_UNUSABLE, ""},
    {FINDING_DUMP_TRUNCATED, ""},
    {FINDING_DUMP_MISSING, "; the profile names this dump, but it is not there: if it was moved, "
                           "name it with --jitdump FILE"},
    {FINDING_DUMP_REPLACED, "; if you have the right one, name it with --jitdump FILE"},
    {FINDING_DUMP_AMBIGUOUS, "; to use it all the same, name it with --jitdump PID:FILE"},
    {FINDING_DUMP_OWNER,
     "; that user, who is neither you, nor root, nor the owner of the recording, could have put it "
     "there: if it is the right one, use --force, or name it with --jitdump FILE"},
    {FINDING_DUMP_NOT_OURS, "; to use it all the same, name it with --jitdump FILE"},
    {FINDING_MAP_UNUSABLE, ""},
    {FINDING_MAP_NOT_OURS, "; to use it all the same, name it with --perf-map FILE"},
    {FINDING_MAP_ELSEWHERE, "; it is the map of another process, or of another run"},
    {FINDING_MAP_LINES, "; there is no other map, and no dump"},
};
