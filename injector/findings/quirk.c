/* See quirk.h. */
#include "injector/findings/quirk.h"

#include "injector/findings/finding_kind.h"

#include <stdbool.h>

static const struct quirk_text texts[QUIRKS] = {
    [QUIRK_HEADER_VERSION] =
        {"header-version", "The header's version is not 1, but the records are those of version 1",
         "Mono before dotnet/runtime#85107 (2)", "reads on if a sound record follows the header",
         NOT_A_FINDING},
    [QUIRK_HEADER_LONGER] =
        {"header-longer", "The header is longer than 40 bytes; perf up to 7.0 reads nothing of it",
         "nobody known; the format allows it",
         "begins behind the header's total_size, where a sound record is", NOT_A_FINDING},
    [QUIRK_HEADER_SIZE] = {"header-size", "The header's total_size is not where the records begin",
                           "nobody known",
                           "begins at 40 if a sound record is there and none at total_size",
                           NOT_A_FINDING},
    [QUIRK_HEADER_FLAGS] = {"header-flags",
                            "The header has flags that nobody has defined; perf reads nothing",
                            "nobody known; private writers that leave the field unset",
                            "looks at the clock flag alone", NOT_A_FINDING},
    [QUIRK_HEADER_AGAIN] =
        {"header-again", "A second header stands among the records",
         "writers that open their file with O_APPEND, when a pid comes again or a process execs",
         "takes it for a new start: all code logged before it ends there", NOT_A_FINDING},
    [QUIRK_HEADER_FOREIGN] =
        {"header-foreign",
         "A second header stands among the records, of another process, byte order or clock",
         "two processes that append to one file", "skips what follows, up to the next header",
         FINDING_DUMP_FOREIGN},
    [QUIRK_ELF_MACHINE] =
        {"elf-machine", "The header's elf_mach is not the machine that was recorded",
         "Erlang/OTP on arm64 (says x86-64), libxsmm",
         "writes the ELF files for the recording's machine, if the byte order fits", NOT_A_FINDING},
    [QUIRK_ELF_CLASS] = {"elf-class",
                         "elf_mach is a machine of 32 bits, but code lies beyond 4 GiB",
                         "writers of EM_MIPS on mips64; a wrong elf_mach",
                         "writes ELF files of 64 bits, for the machine's larger brother",
                         NOT_A_FINDING},

    [QUIRK_THREAD_ID_64] = {"thread-id-64",
                            "A LOAD's tid has 8 bytes, and all that follows stands further back",
                            "CPython 3.13 and later on macOS",
                            "reads it so if only then the record's parts add up to its size",
                            NOT_A_FINDING},
    [QUIRK_PID_DIFFERS] =
        {"pid-differs", "A LOAD's pid is not the header's",
         "PHP after a fork, LLVM and Wasmtime with a cached pid, runtimes in a container",
         "does not use it: a dump belongs to the process that mapped it", NOT_A_FINDING},
    [QUIRK_TID_IMPOSSIBLE] = {"tid-impossible", "A LOAD's tid can't be one of Linux's",
                              "Erlang/OTP (a pthread_t), GraalVM (Java's thread id)",
                              "does not use it", NOT_A_FINDING},
    [QUIRK_NAME_ABSENT] = {"name-absent",
                           "A LOAD ends with its code and has no name, not even a NUL",
                           "perf's own Intel PT test", "calls the function [unnamed JIT code]",
                           NOT_A_FINDING},
    [QUIRK_NAME_EMPTY] = {"name-empty", "A LOAD's name is empty", "nobody known",
                          "calls the function [unnamed JIT code]", NOT_A_FINDING},
    [QUIRK_NAME_OPEN] = {"name-open", "No NUL stands between a LOAD's name and its code",
                         "nobody known; private writers that log strlen bytes of the name",
                         "ends the name where the last code_size bytes of the record begin",
                         NOT_A_FINDING},
    [QUIRK_NAME_PADDED] =
        {"name-padded", "Padding stands between a LOAD's name and its code",
         "nobody known; private writers that align the code",
         "takes the last code_size bytes of the record for the code, as perf does", NOT_A_FINDING},
    [QUIRK_NAME_UNPRINTABLE] =
        {"name-unprintable", "A name holds control characters, or is not UTF-8",
         "any that names code after its source: regular expressions, templates, evaluated text",
         "writes a space for white space and ? for the rest, so that a line stays a line",
         NOT_A_FINDING},
    [QUIRK_CODE_EMPTY] = {"code-empty", "A LOAD's code_size is 0", "nobody known",
                          "leaves it out: no sample can be in it", NOT_A_FINDING},
    [QUIRK_CODE_ABSENT] =
        {"code-absent",
         "A LOAD ends behind its name although code_size is not 0; perf takes the 64 bytes "
         "before the record for the code, or whatever is there",
         "perf's jvmti agent, .NET block stubs (dotnet/runtime#122274)",
         "names the function, and leaves its bytes zero", FINDING_BYTES_ABSENT},
    [QUIRK_CODE_BEHIND] = {"code-behind",
                           "A LOAD's total_size leaves out the code, which follows it",
                           "nobody known",
                           "takes the code from behind the record if the next record begins there",
                           NOT_A_FINDING},
    [QUIRK_INDEX_REUSED] =
        {"index-reused",
         "Several LOADs have one code_index; perf inject overwrites the earlier one's file",
         "PHP after a fork, two writers in one process",
         "tells functions apart by address and time, and names files otherwise", NOT_A_FINDING},

    [QUIRK_HDR_FIRST] = {"hdr-first",
                         "The .eh_frame_hdr stands before the .eh_frame; perf stops unwinding",
                         "LLVM ORC (as the specification's text has it)",
                         "takes the half that is a valid .eh_frame for it", NOT_A_FINDING},
    [QUIRK_HDR_ABSENT] = {"hdr-absent", "An .eh_frame comes without a header", "nobody known",
                          "makes a header of its own", NOT_A_FINDING},
    [QUIRK_HDR_NO_TABLE] = {"hdr-no-table", "An .eh_frame_hdr has no search table, or an empty one",
                            "LLVM ORC", "makes a table of its own", NOT_A_FINDING},
    [QUIRK_FRAME_NO_END] = {"frame-no-end", "An .eh_frame does not end with a zero length",
                            "V8, LLVM ORC", "ends it at the header", NOT_A_FINDING},
    [QUIRK_FRAME_ELSEWHERE] =
        {"frame-elsewhere",
         "FDEs count from where they were in the process, which the record does not tell, and not "
         "from behind the code, where perf imagines them",
         "LLVM ORC",
         "takes the place that the header names, or at which most FDEs cover a function logged "
         "next",
         NOT_A_FINDING},
    [QUIRK_MAPPED_SIZE_0] = {"mapped-size-0",
                             "mapped_size is 0 although there are FDEs; perf can't read them",
                             "LLVM ORC with a header of its own making",
                             "maps the tables where the process has room", NOT_A_FINDING},
    [QUIRK_UNWIND_EMPTY] = {"unwind-empty", "An UNWINDING_INFO has a header of 20 bytes and no FDE",
                            "V8 for code that keeps frame pointers",
                            "lets perf go on by frame pointers", NOT_A_FINDING},
    [QUIRK_UNWIND_SHARED] =
        {"unwind-shared",
         "One UNWINDING_INFO speaks of many functions; perf gives all to the first",
         "LLVM ORC (one for each LinkGraph)", "deals the FDEs out by address", NOT_A_FINDING},
    [QUIRK_UNWIND_FAR] = {"unwind-far",
                          "Another function's LOAD is the next behind an UNWINDING_INFO",
                          "LLVM ORC, CPython's threads (python/cpython#143965)",
                          "finds the function by the size and place of its FDEs", NOT_A_FINDING},

    [QUIRK_LINES_BIASED] =
        {"lines-biased",
         "All addresses of source lines are 0x40 too high: what perf left out until 2020",
         "V8 and LLVM, to this day",
         "takes 0x40 off, where the lines of all functions of a dump together show it",
         NOT_A_FINDING},
    [QUIRK_FILES_OVERWRITTEN] =
        {"files-overwritten",
         "The first 16 bytes of the names of source files are other data, with zeros in it; perf "
         "takes what follows the first zero for the next line, and shows line 1",
         "V8 (node 20), which writes the names from memory that it has freed",
         "finds the entries by their addresses and the names by what is left of them in the names "
         "of functions",
         NOT_A_FINDING},

    [QUIRK_LINES_OUTSIDE] =
        {"lines-outside",
         "A function's first source line stands in front of it, or, in most functions of a dump, "
         "lines stand behind the end",
         "Erlang/OTP (25 to 27: up to 0x32 bytes in front, at the function's func_info)",
         "cuts the lines to the function: the last one in front is its start's", NOT_A_FINDING},

    [QUIRK_TIME_BACKWARDS] = {"time-backwards", "A record is older than the one before it",
                              "perf's jvmti agent, JavaScriptCore, CPython's threads",
                              "sorts the events by time", NOT_A_FINDING},
    [QUIRK_AFTER_CLOSE] = {"after-close", "Records follow a CLOSE",
                           "nobody known for certain; PHP shares its file with its children",
                           "reads on", NOT_A_FINDING},
    [QUIRK_RECORD_UNKNOWN] = {"record-unknown", "A record's id is not known; perf warns of each",
                              "private extensions, as samply's 827346260",
                              "skips it by its total_size", FINDING_RECORD_UNKNOWN},
    [QUIRK_RECORD_TORN] =
        {"record-torn",
         "A record ends early, or others stand inside it; perf loses all that follows, in silence",
         "CPython 3.13's threads (python/cpython#143965), PHP's threads and children, writes that "
         "failed with EFAULT or on a full disk",
         "goes on where two sound records follow one another, keeps the name of a LOAD that lost "
         "only code, and says what it skipped",
         FINDING_DUMP_TORN},
    [QUIRK_DUMP_CUT] = {"dump-cut", "The file ends inside a record; perf says nothing",
                        "V8, Mono and CPython when killed: they buffer and never flush",
                        "uses all that stands before it", FINDING_DUMP_TRUNCATED},
};

const struct quirk_text *quirk_text(enum quirk quirk)
{
    return &texts[quirk];
}

void quirk_print_all(FILE *stream)
{
    for (int quirk = 0; quirk < QUIRKS; quirk++) {
        const struct quirk_text *text = &texts[quirk];
        bool repaired = text->finding == NOT_A_FINDING;
        fprintf(stream, "%s### %s\n\n%s.\n\n", quirk ? "\n" : "", text->id, text->symptom);
        fprintf(stream, "- Seen in: %s\n- perfjit %s\n", text->producers, text->remedy);
        if (repaired)
            fprintf(stream, "- Told as \"repaired\", status 0\n");
        else
            fprintf(stream, "- Told as \"%s\", status %d\n",
                    finding_what((enum finding_kind)text->finding),
                    finding_is_lost((enum finding_kind)text->finding) ? 3 : 0);
    }
}
