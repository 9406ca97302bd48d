/* Whether the unwind tables of a log's functions fit their code: jitdump/cfi_check/frame_check.h
 * for each. */
#ifndef PERFJIT_FRAME_SURVEY_H
#define PERFJIT_FRAME_SURVEY_H

#include "injector/log/code/code_log.h"
#include "jitdump/cfi_check/frame_check.h"

struct frame_fault {
    char *name; /* of the function */
    uint64_t addr;
    uint64_t at; /* the offset of the instruction */
    char text[FAULT_TEXT_BYTES];
};

struct frame_survey {
    uint64_t functions;    /* that were compared, */
    uint64_t instructions; /* and how many of theirs */
    uint64_t partly;       /* functions with instructions that could not be */
    uint64_t on_trust;     /* functions that are entered inside of a frame */
    uint64_t wrong;
    struct frame_fault *faults; /* the first of those, in order of the log */
    size_t fault_count, fault_capacity;
};

enum { FRAME_FAULTS_KEPT = 1000 };

/* Compare the functions of LOG, code for ELF_MACH.  Returns 0, or -1 without memory. */
int frame_survey_take(struct frame_survey *survey, const struct code_log *log, uint32_t elf_mach);

void frame_survey_free(struct frame_survey *survey);

#endif
