/* jitdump_cfi_check of cfi.h: the builder's tables against the code. */
#include "jitdump/cfi/cfi_builder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

static void say(struct jitdump_cfi *cfi, const struct frame_check *check)
{
    const char *trusted = check->on_trust ? "its entry was taken as described" : "";
    if (check->wrong)
        snprintf(cfi->checked, sizeof cfi->checked, "%s", check->fault);
    else if (check->beyond == UINT64_MAX)
        snprintf(cfi->checked, sizeof cfi->checked, "%s", trusted);
    else
        snprintf(cfi->checked, sizeof cfi->checked, "not checked from +0x%" PRIx64 " on%s%s",
                 check->beyond, *trusted ? "; " : "", trusted);
}

int jitdump_cfi_check(struct jitdump_cfi *cfi, const void *bytes, uint64_t code_size)
{
    struct jitdump_unwind unwind;
    struct frame_check check = {.beyond = 0};
    if (!cfi)
        return -ENOMEM;
    cfi->checked[0] = '\0';
    if (code_size && !bytes)
        return -EINVAL;
    const struct code_machine *machine = cfi->arch ? jd_code_machine(cfi->arch->arch) : NULL;
    const int callers_errno = errno;
    int error = jitdump_cfi_finish(cfi, code_size, &unwind);
    if (!error && machine)
        error = jd_tables_check(&check, machine, unwind.data, unwind.unwinding_size,
                                unwind.eh_frame_hdr_size, bytes, 0, code_size);
    errno = callers_errno;
    if (error)
        return error;
    say(cfi, &check);
    return check.wrong ? -EBADMSG : 0;
}

const char *jitdump_cfi_checked(const struct jitdump_cfi *cfi)
{
    return cfi ? cfi->checked : "";
}
