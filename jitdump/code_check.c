/* See code_check.h. */
#include "jitdump/code_check.h"

#include "jitdump/cfi_check/frame_check.h"
#include "jitdump/guest/stderr_line.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <unistd.h>

void jd_code_check_begin(struct code_check *check)
{
    check->on = true;
    check->opener = getpid();
    jd_stderr_hold(&check->complaints);
}

void jd_code_check(struct code_check *check, const struct jitdump_code *code, uint32_t elf_mach,
                   const char *path, struct first_error *error)
{
    const struct jitdump_unwind *unwind = code->unwind;
    const struct code_machine *machine = jd_code_machine(elf_mach);
    struct frame_check found;
    if (!machine || !code->bytes || !unwind || !unwind->unwinding_size)
        return;
    if (jd_tables_check(&found, machine, unwind->data, unwind->unwinding_size,
                        unwind->eh_frame_hdr_size, code->bytes, code->code_addr, code->code_size) ||
        !found.wrong)
        return;
    uint64_t earlier = atomic_fetch_add_explicit(&check->faults, 1, memory_order_relaxed);
    const char *name = code->name ? code->name : "a function";
    jd_error_keep(error, -EBADMSG,
                  "%s: the frame of %.200s does not fit its code: %s; `perfjit check` lists all "
                  "such functions",
                  path, name, found.fault);
    if (earlier == 0)
        jd_stderr_say(&check->complaints, "%s: the frame of %.200s does not fit its code: %s", path,
                      name, found.fault);
}

void jd_code_check_tell(const struct code_check *check, const char *path)
{
    uint64_t faults = atomic_load_explicit(&check->faults, memory_order_relaxed);
    if (faults > 1 && check->opener == getpid())
        jd_stderr_say(&check->complaints,
                      "%s: the frames of %" PRIu64 " functions do not fit their code; `perfjit "
                      "check` lists them",
                      path, faults);
}
