/* Finds the machine that a dump's code is for.
 *
 * A header says so in elf_mach, and not always rightly: Erlang/OTP says x86-64 on arm64.  The
 * profile knows on which machine it was recorded.  Code that was sampled there is that machine's.
 * The same holds for a dump without a machine: CPython 3.13's, whose code calls and is never
 * sampled itself.
 */
#ifndef PERFJIT_DUMP_MACHINE_H
#define PERFJIT_DUMP_MACHINE_H

#include "injector/log/jitdump/jit_dump.h"
#include "injector/recording/perf_data/perf_file.h"

/* Correct DUMP's machine and width of addresses by PROFILE's machine; a repair goes to FINDINGS.
 * Without a word about the machine in PROFILE, or with a DUMP of a byte order that that one can't
 * have, DUMP is left as it is. */
void dump_machine_correct(struct jit_dump *dump, const struct perf_file *profile,
                          struct findings *findings);

enum { DUMP_MACHINE_TEXT_BYTES = 160 };

/* Why DUMP, which was corrected, can't be used: its machine is not known; NULL: it is, or DUMP
 * names none. */
const char *dump_machine_refusal(const struct jit_dump *dump, char text[DUMP_MACHINE_TEXT_BYTES]);

#endif
