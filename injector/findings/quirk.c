/* See quirk.h. */
#include "injector/findings/quirk.h"

#include "injector/findings/finding_kind.h"

static const struct quirk_text texts[QUIRKS] = {
    [QUIRK_HEADER_VERSION] =
        {"header-version", "The header's version is not 1, but the records are those of version 1",
         "Mono before dotnet/runtime#85107 (2)", "continues if a sound record follows the header",
         NOT_A_FINDING},
    [QUIRK_HEADER_LONGER] =
        {"header-longer",
         "The header is longer than 40 bytes; perf up to 7.0 reads nothing of the dump",
         "no known producer; the format allows it",
         "begins after the header's total_size, where a sound record is", NOT_A_FINDING},
    [QUIRK_HEADER_SIZE] = {"header-size", "The header's total_size is not where the records begin",
                           "no known producer",
                           "begins at 40 if a sound record is there and none at total_size",
                           NOT_A_FINDING},
    [QUIRK_HEADER_FLAGS] = {"header-flags", "The header has undefined flags; perf reads nothing",
                            "no known producer; private writers that leave the field unset",
                            "uses the clock flag only", NOT_A_FINDING},
    [QUIRK_HEADER_AGAIN] =
        {"header-again", "There is a second header among the records",
         "writers that open their file with O_APPEND, when a pid is reused or a process execs",
         "treats it as a new start: all code logged before it ends there", NOT_A_FINDING},
    [QUIRK_HEADER_FOREIGN] =
        {"header-foreign",
         "There is a second header among the records, of another process, byte order or clock",
         "two processes that append to one file", "skips all records up to the next header",
         FINDING_DUMP_FOREIGN},
    [QUIRK_ELF_MACHINE] =
        {"elf-machine", "The header's elf_mach is not the recorded machine",
         "Erlang/OTP on arm64 (says x86-64), CPython 3.13 (says none), libxsmm",
         "writes the ELF files for the recording's machine, if the byte order fits", NOT_A_FINDING},
    [QUIRK_ELF_CLASS] = {"elf-class", "elf_mach is a 32-bit machine, but code lies beyond 4 GiB",
                         "writers of EM_MIPS on mips64; a wrong elf_mach",
                         "writes 64-bit ELF files, for the machine's 64-bit counterpart",
                         NOT_A_FINDING},

    [QUIRK_THREAD_ID_64] = {"thread-id-64",
                            "A LOAD's tid has 8 bytes, and everything after it is shifted",
                            "CPython 3.13 and later on macOS",
                            "reads it that way if only then the parts add up to the record's size",
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
    [QUIRK_NAME_EMPTY] = {"name-empty", "A LOAD's name is empty", "no known producer",
                          "calls the function [unnamed JIT code]", NOT_A_FINDING},
    [QUIRK_NAME_OPEN] = {"name-open", "There is no NUL between a LOAD's name and its code",
                         "no known producer; private writers that log strlen bytes of the name",
                         "ends the name where the last code_size bytes of the record begin",
                         NOT_A_FINDING},
    [QUIRK_NAME_PADDED] = {"name-padded", "There is padding between a LOAD's name and its code",
                           "no known producer; private writers that align the code",
                           "uses the last code_size bytes of the record as the code, as perf does",
                           NOT_A_FINDING},
    [QUIRK_NAME_UNPRINTABLE] =
        {"name-unprintable", "A name holds control characters, or is not UTF-8",
         "any runtime that names code after its source: regular expressions, templates, evaluated "
         "text",
         "writes a space for white space and ? for the rest, so that no line is broken",
         NOT_A_FINDING},
    [QUIRK_CODE_EMPTY] = {"code-empty", "A LOAD's code_size is 0", "no known producer",
                          "leaves it out: no sample can be in it", NOT_A_FINDING},
    [QUIRK_CODE_ABSENT] = {"code-absent",
                           "A LOAD ends after its name although code_size is not 0; perf reads the "
                           "64 bytes before the record, whatever they are, as the code",
                           "perf's jvmti agent, .NET block stubs (dotnet/runtime#122274)",
                           "names the function, and leaves its bytes zero", FINDING_BYTES_ABSENT},
    [QUIRK_CODE_BEHIND] = {"code-behind",
                           "A LOAD's total_size leaves out the code, which follows it",
                           "no known producer",
                           "takes the code from after the record if the next record begins there",
                           NOT_A_FINDING},
    [QUIRK_INDEX_REUSED] =
        {"index-reused",
         "Several LOADs have one code_index; perf inject overwrites the earlier one's file",
         "PHP after a fork, two writers in one process",
         "tells functions apart by address and time, and does not use the index for file names",
         NOT_A_FINDING},

    [QUIRK_HDR_FIRST] = {"hdr-first",
                         "The .eh_frame_hdr comes before the .eh_frame; perf stops unwinding",
                         "LLVM ORC (as the specification's text has it)",
                         "uses the half that is a valid .eh_frame as the .eh_frame", NOT_A_FINDING},
    [QUIRK_HDR_ABSENT] = {"hdr-absent", "An .eh_frame comes without a header", "no known producer",
                          "makes a header of its own", NOT_A_FINDING},
    [QUIRK_HDR_NO_TABLE] = {"hdr-no-table", "An .eh_frame_hdr has no search table, or an empty one",
                            "LLVM ORC", "makes a table of its own", NOT_A_FINDING},
    [QUIRK_FRAME_NO_END] = {"frame-no-end", "An .eh_frame does not end with a zero length",
                            "V8, LLVM ORC, CPython 3.13", "ends it at the header", NOT_A_FINDING},
    [QUIRK_FRAME_ELSEWHERE] =
        {"frame-elsewhere",
         "FDEs are relative to their place in the process, which is not in the record; perf "
         "assumes the end of the code",
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
        {"unwind-shared", "One UNWINDING_INFO covers many functions; perf assigns all to the first",
         "LLVM ORC (one for each LinkGraph)", "assigns the FDEs by address", NOT_A_FINDING},
    [QUIRK_UNWIND_FAR] = {"unwind-far", "The LOAD after an UNWINDING_INFO is another function's",
                          "LLVM ORC, CPython's threads (python/cpython#143965)",
                          "finds the function by the size and place of its FDEs", NOT_A_FINDING},

    [QUIRK_LINES_BIASED] =
        {"lines-biased",
         "All addresses of source lines are 0x40 too high; perf left these 0x40 out until 2020",
         "V8 and LLVM, to this day",
         "subtracts 0x40 if the lines of all functions of the dump together show it",
         NOT_A_FINDING},
    [QUIRK_FILES_OVERWRITTEN] =
        {"files-overwritten",
         "The first 16 bytes of the names of source files are other data with zeros in it; perf "
         "takes the bytes after the first zero as the next line, and shows line 1",
         "V8 (node 20), which writes the names from memory that it has freed",
         "finds the entries by their addresses, and completes the names from the names of "
         "functions",
         NOT_A_FINDING},

    [QUIRK_LINES_OUTSIDE] =
        {"lines-outside",
         "A function's first source line is before its start, or, in most functions of a dump, "
         "lines are past the end",
         "Erlang/OTP (25 to 27: up to 0x32 bytes before, at the function's func_info)",
         "clips the lines to the function: the last one before the start becomes the start's",
         NOT_A_FINDING},

    [QUIRK_TIME_BACKWARDS] = {"time-backwards", "A record is older than the one before it",
                              "perf's jvmti agent, JavaScriptCore, CPython's threads",
                              "sorts the events by time", NOT_A_FINDING},
    [QUIRK_AFTER_CLOSE] = {"after-close", "Records follow a CLOSE",
                           "no producer known for certain; PHP shares its file with its children",
                           "continues", NOT_A_FINDING},
    [QUIRK_RECORD_UNKNOWN] = {"record-unknown", "A record's id is unknown; perf warns about each",
                              "private extensions, such as samply's 827346260",
                              "skips it by its total_size", FINDING_RECORD_UNKNOWN},
    [QUIRK_PART_TWICE] =
        {"part-twice",
         "A part of the file is in it twice, from the middle of a record on; perf loses all "
         "records after it",
         "CPython 3.13 and others that write through stdio and fork: the child flushes its copy of "
         "the parent's buffer (multiprocessing, gunicorn, celery)",
         "skips all copies but the first", NOT_A_FINDING},
    [QUIRK_RECORD_TORN] =
        {"record-torn",
         "A record ends early, or contains others; perf silently loses all records after it",
         "CPython 3.13's threads (python/cpython#143965), PHP's threads and children, writes that "
         "failed with EFAULT or on a full disk",
         "continues where two sound records follow each other, keeps the name of a LOAD that lost "
         "only code, and reports the skipped part",
         FINDING_DUMP_TORN},
    [QUIRK_DUMP_CUT] = {"dump-cut", "The file ends inside a record; perf says nothing",
                        "V8, Mono and CPython when killed: they buffer and never flush",
                        "uses everything before it", FINDING_DUMP_TRUNCATED},
    [QUIRK_STUBS_UNREAD] =
        {"stubs-unread",
         "The file ends inside the code of a block of stubs, often its second record; no method is "
         "in it, and perf prefers it to the perf map, which has all",
         ".NET 10.0 up to 10.0.11 with DOTNET_PerfMapStubGranularity 0 or 1 "
         "(dotnet/runtime#120419): "
         "it logs the memory before that is there, and after EFAULT nothing more",
         "keeps the block's name, and takes the rest from the perf map", NOT_A_FINDING},
};

const struct quirk_text *quirk_text(enum quirk quirk)
{
    return &texts[quirk];
}

bool quirk_is_usual(enum quirk quirk)
{
    return quirk == QUIRK_UNWIND_EMPTY || quirk == QUIRK_LINES_BIASED ||
           quirk == QUIRK_FILES_OVERWRITTEN ||                              /* V8 */
           quirk == QUIRK_TID_IMPOSSIBLE || quirk == QUIRK_LINES_OUTSIDE || /* Erlang */
           quirk == QUIRK_FRAME_NO_END || quirk == QUIRK_ELF_MACHINE;       /* CPython 3.13 */
}

void quirk_print_all(FILE *stream)
{
    for (int quirk = 0; quirk < QUIRKS; quirk++) {
        const struct quirk_text *text = &texts[quirk];
        bool repaired = text->finding == NOT_A_FINDING;
        fprintf(stream, "%s### %s\n\n%s.\n\n", quirk ? "\n" : "", text->id, text->symptom);
        fprintf(stream, "- Seen in: %s\n- perfjit %s\n", text->producers, text->remedy);
        if (repaired)
            fprintf(stream, "- Reported as \"repaired\", status 0\n");
        else
            fprintf(stream, "- Reported as \"%s\", status %d\n",
                    finding_what((enum finding_kind)text->finding),
                    finding_is_lost((enum finding_kind)text->finding) ? 3 : 0);
    }
}
