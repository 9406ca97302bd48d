/* With the word "check" in PERFJIT: whether the unwind tables of each function fit its code.
 *
 * What does not is counted, and the first function is the handle's error, so that a runtime that
 * reports errors reports this too; it is recorded all the same.
 */
#ifndef JITDUMP_CODE_CHECK_H
#define JITDUMP_CODE_CHECK_H

#include "jitdump/guest/first_error.h"
#include "jitdump/jitdump.h"

struct code_check {
    bool on;
    uint32_t elf_mach; /* of the code */
    _Atomic uint64_t faults;
};

/* Check CODE, whose bytes can be read, if that was asked for and it has tables.  PATH is the
 * dump's. */
void jd_code_check(struct code_check *check, const struct jitdump_code *code, const char *path,
                   struct first_error *error);

#endif
