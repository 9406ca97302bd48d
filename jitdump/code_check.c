/* See code_check.h. */
#include "jitdump/code_check.h"

#include "jitdump/cfi_check/frame_check.h"

#include <errno.h>

void jd_code_check(struct code_check *check, const struct jitdump_code *code, const char *path,
                   struct first_error *error)
{
    const struct jitdump_unwind *unwind = code->unwind;
    const struct code_machine *machine = check->on ? jd_code_machine(check->elf_mach) : NULL;
    struct frame_check found;
    if (!machine || !code->bytes || !unwind || !unwind->unwinding_size)
        return;
    if (jd_tables_check(&found, machine, unwind->data, unwind->unwinding_size,
                        unwind->eh_frame_hdr_size, code->bytes, code->code_addr, code->code_size) ||
        !found.wrong)
        return;
    atomic_fetch_add_explicit(&check->faults, 1, memory_order_relaxed);
    jd_error_keep(error, -EBADMSG,
                  "%s: the frame of %.200s does not fit its code: %s; `perfjit check` lists all "
                  "such functions",
                  path, code->name ? code->name : "a function", found.fault);
}
