/* See sample_cause.h. */
#include "injector/findings/sample_cause.h"

struct cause_text {
    const char *id, *what, *remedy;
};

static const struct cause_text texts[CAUSES] = {
    [CAUSE_NO_DUMP] =
        {"no-dump", "no dump and no perf map",
         "let the runtime write one: PERFJIT=dump, node --perf-prof, ... (docs/runtimes.md); "
         "executable memory of something else (a trampoline, say) looks the same; a perf map from "
         "a "
         "container has the pid that the process had there: --perf-map PID:FILE"},
    [CAUSE_NO_MEANS] = {"no-means",
                        "no dump and no perf map: its runtime has no means to write one",
                        "PyPy, Guile, Racket, gjs, SBCL, libgccjit and Python before 3.12 have no "
                        "perf support; only "
                        "their native functions have names"},
    [CAUSE_NO_MARKER] = {"no-marker", "a dump is there, but the recording does not name it",
                         "name it: perfjit inject --jitdump FILE; it was opened before the "
                         "recording began, or the runtime does not map it"},
    [CAUSE_DUMP_MISSING] = {"dump-missing", "its dump is not there",
                            "if the file was moved, name it with --jitdump FILE; if it is in a "
                            "container, say where with --root DIR"},
    [CAUSE_DUMP_REFUSED] =
        {"dump-refused", "its dump can't be read",
         "see the losses above; perfjit check --repair OUT FILE.dump may save its whole records"},
    [CAUSE_DUMP_REPLACED] =
        {"dump-replaced", "its dump was overwritten, or fits several processes",
         "let each run write to its own directory; a copy can be named with --jitdump FILE"},
    [CAUSE_DUMP_ANEW] =
        {"dump-anew", "logged in a dump that its process wrote anew later",
         "give each engine, or each load of the runtime, a dump of its own name; a copy of the "
         "earlier dump can be named with --jitdump FILE"},
    [CAUSE_DUMP_OWNER] =
        {"dump-owner", "its dump belongs to another user, and may not be the file that it mapped",
         "if it is the right one: perfjit inject --force, or name it with --jitdump FILE"},
    [CAUSE_WRONG_CLOCK] = {"wrong-clock", "the times in its dump are of another clock",
                           "record with perf record -k mono; if that was done, the runtime should "
                           "log CLOCK_MONOTONIC"},
    [CAUSE_PID_NAMESPACE] = {"pid-namespace",
                             "its dump's name has another pid (a pid namespace, a container)",
                             "if the dump is the process's own, name it with --jitdump FILE"},
    [CAUSE_MAP_REFUSED] = {"map-refused", "its perf map was not used",
                           "if the map is the process's own, name it with --perf-map FILE"},
    [CAUSE_DROPPED] = {"dropped", "logged, but dropped: older than what its dump has kept",
                       "the dump is bounded (JITDUMP_RING): give it more bytes (PERFJIT=dump,"
                       "ring=256M), or run perfjit inject sooner after the recording"},
    [CAUSE_NOT_WRITTEN] =
        {"not-written", "not in its dump, which is cut short",
         "if the process still runs, inject after its end: by then it has written the rest of its "
         "dump (V8 keeps up to 2 MiB in memory); if it was killed, the rest is lost"},
    [CAUSE_STUBS_UNREAD] =
        {"stubs-unread", "not in its dump, which .NET 10.0 ended at a block of stubs",
         "set DOTNET_PerfMapStubGranularity=2, as perfjit record does, or have a perf map written "
         "as well: DOTNET_PerfMapEnabled=1"},
    [CAUSE_NO_TIMES] = {"no-times",
                        "several functions had its address, and the recording has no times",
                        "record with perf record -k mono -T, without --no-timestamp and time=0"},
    [CAUSE_BEFORE_LOAD] = {"before-load", "sampled before the function was logged",
                           "the runtime should log a function before it first runs; if there are "
                           "many, the dump's clock may be wrong: record with perf record -k mono"},
    [CAUSE_FREED] = {"freed", "sampled after the function was unloaded or moved",
                     "the runtime should log an unload after the code last ran, and log the new "
                     "code at that address"},
    [CAUSE_REMAPPED] = {"remapped", "something else was mapped over the function",
                        "the runtime should log the code again after the mapping"},
    [CAUSE_NOT_LOGGED] =
        {"not-logged", "no function that was logged ever had this address",
         "the runtime should log this code too: stubs, trampolines, interpreters, inline caches"},
    [CAUSE_NOT_IN_MAP] = {"not-in-map", "its perf map does not have this address",
                          "the map may have been written before the function was compiled, or "
                          "after its code was freed; a jitdump has the times, too"},
    [CAUSE_INJECTED] = {"injected", "left without a name when the recording was injected",
                        "check the recording as perf record wrote it; this one does not keep the "
                        "reasons, as it was passed through a stream, or perf or an older perfjit "
                        "wrote it"},
};

const char *sample_cause_id(enum sample_cause cause)
{
    return texts[cause].id;
}

const char *sample_cause_what(enum sample_cause cause)
{
    return texts[cause].what;
}

const char *sample_cause_remedy(enum sample_cause cause)
{
    return texts[cause].remedy;
}

enum sample_cause sample_cause_of_refusal(enum finding_kind why)
{
    switch (why) {
    case FINDING_DUMP_MISSING:
        return CAUSE_DUMP_MISSING;
    case FINDING_DUMP_NOT_OURS:
        return CAUSE_PID_NAMESPACE;
    case FINDING_CLOCK_USELESS:
        return CAUSE_WRONG_CLOCK;
    case FINDING_DUMP_OWNER:
        return CAUSE_DUMP_OWNER;
    case FINDING_DUMP_ANEW:
        return CAUSE_DUMP_ANEW;
    case FINDING_DUMP_REPLACED:
    case FINDING_DUMP_AMBIGUOUS:
        return CAUSE_DUMP_REPLACED;
    default:
        return CAUSE_DUMP_REFUSED;
    }
}
