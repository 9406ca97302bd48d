/* See chain_end.h. */
#include "injector/findings/chain_end.h"

#include <stddef.h>

struct end_text {
    const char *id, *what, *remedy_jit, *remedy;
};

static const char correct[] = "its UNWINDING_INFO does not describe its code; the offset says at "
                              "which instruction (docs/cfi.md, "
                              "\"To check your own\")";
static const char report_it[] =
    "if the file has right tables, this is a defect of perfjit: report it";

static const struct end_text texts[CHAIN_ENDS] = {
    [CHAIN_WHOLE] = {"whole", "whole", NULL, NULL},
    [CHAIN_CUT] = {"cut", "the copy of the stack ends", NULL, NULL},
    [CHAIN_EMPTY] = {"empty", "nothing of the stack was copied", NULL, NULL},
    [CHAIN_UNPROVEN] =
        {"unproven",
         "callers may be left out, for the frame pointer was followed out of code that is not "
         "known",
         "log the code with its bytes (a jitdump), or UNWINDING_INFO (docs/cfi.md)",
         "the runtime should log that code with its bytes: a jitdump"},
    [CHAIN_TOO_LONG] = {"too-long", "no record can hold more frames", NULL, NULL},
    [CHAIN_NOT_READ] = {"not-read", "a 32-bit program, or no registers", NULL, NULL},
    [CHAIN_NO_CODE] = {"no-code", "its table leads to an address where no code is", correct,
                       report_it},
    [CHAIN_NO_CALL] =
        {"no-call",
         "its table leads to an address that is not behind a call, and nothing leads on from there",
         correct, report_it},
    [CHAIN_NO_FRAME] = {"no-frame", "its table describes an impossible frame of its caller",
                        correct, report_it},
    [CHAIN_TABLE_BROKEN] = {"table-broken", "its table can't be read", correct, report_it},
    [CHAIN_OUTSIDE] = {"outside", "its caller's frame is not in this stack",
                       "if it does not switch stacks, its UNWINDING_INFO is wrong", NULL},
    [CHAIN_NO_TABLE] =
        {"no-table", "no table, and no frame pointer that leads on",
         "log UNWINDING_INFO (docs/cfi.md; node --perf-prof-unwinding-info), or keep the frame "
         "pointer",
         "install its debug symbols, or compile it with -fasynchronous-unwind-tables"},
    [CHAIN_NOT_LOGGED] = {"not-logged", "no function is known there", NULL,
                          "the runtime should log this code too: stubs, trampolines, interpreters"},
    [CHAIN_NO_FILE] = {"no-file", "it can't be read, or is not the mapped file", NULL,
                       "say where the file is: --root DIR"},
};

const char *chain_end_id(enum chain_end end)
{
    return texts[end].id;
}

const char *chain_end_what(enum chain_end end)
{
    return texts[end].what;
}

const char *chain_end_remedy(enum chain_end end, bool jit)
{
    return jit ? texts[end].remedy_jit : texts[end].remedy;
}

bool chain_end_is_early(enum chain_end end)
{
    return end > CHAIN_NOT_READ;
}

bool chain_end_is_wrong(enum chain_end end)
{
    return end >= CHAIN_NO_CODE && end <= CHAIN_TABLE_BROKEN;
}

enum stack_end stack_end_of(enum chain_end end)
{
    switch (end) {
    case CHAIN_WHOLE:
        return STACK_WHOLE;
    case CHAIN_CUT:
        return STACK_CUT;
    case CHAIN_EMPTY:
        return STACK_EMPTY;
    case CHAIN_UNPROVEN:
        return STACK_UNPROVEN;
    case CHAIN_OUTSIDE:
        return STACK_OUTSIDE;
    case CHAIN_NO_TABLE:
    case CHAIN_NOT_LOGGED:
    case CHAIN_NO_FILE:
        return STACK_NO_TABLE;
    default:
        return STACK_WRONG;
    }
}
