/* With the word "check" in PERFJIT: whether the unwind tables of each function fit its code.
 *
 * What does not is counted.  The first function is the handle's error, so that a runtime that
 * reports errors reports this too, and is told on standard error for those that report none.  It is
 * recorded all the same. */
#ifndef JITDUMP_CODE_CHECK_H
#define JITDUMP_CODE_CHECK_H

#include "jitdump/guest/first_error.h"
#include "jitdump/guest/held_fd.h"
#include "jitdump/jitdump.h"

#include <stdbool.h>
#include <sys/types.h>

struct code_check {
    bool on; /* else all is 0 */
    pid_t opener;
    struct held_fd complaints; /* where what it finds is told */
    _Atomic uint64_t faults;
};

/* That was asked for, in the process that opens the dump.  CHECK is all 0 before. */
void jd_code_check_begin(struct code_check *check);

/* That was asked for: check CODE, of ELF_MACH, if it has tables and bytes.  PATH: the dump's. */
void jd_code_check(struct code_check *check, const struct jitdump_code *code, uint32_t elf_mach,
                   const char *path, struct first_error *error);

/* Tell how many there were, if more than the one that was told: many programs look at no result of
 * jitdump_close. */
void jd_code_check_tell(const struct code_check *check, const char *path);

#endif
