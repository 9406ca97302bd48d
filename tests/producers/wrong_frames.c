/* Adds three functions with one code and three frames, of which the first is right, with
 * libjitdump; PERFJIT and JITDUMPDIR say how.
 *
 * Prints "N faults, RESULT: yes" or "no": what jitdump_faults counts, what jitdump_close returns,
 * and whether it should have been something; on standard error the text.
 */
#include "jitdump/cfi.h"

#include <inttypes.h>
#include <stdio.h>

static const uint8_t code[] = {
    0x55,                         /*  0 push rbp */
    0x48, 0x89, 0xe5,             /*  1 mov rbp, rsp */
    0xb8, 0x01, 0x00, 0x00, 0x00, /*  4 mov eax, 1 */
    0x5d,                         /*  9 pop rbp */
    0xc3,                         /* 10 ret */
};

static void add(struct jitdump *dump, struct jitdump_cfi *cfi, const char *name, int64_t pushed,
                uint64_t popped)
{
    struct jitdump_code record = JITDUMP_CODE_INIT;
    struct jitdump_unwind unwind;
    jitdump_cfi_reset(cfi);
    jitdump_cfi_def_cfa_offset(cfi, 1, pushed);
    jitdump_cfi_offset(cfi, 1, JITDUMP_RBP, -16);
    jitdump_cfi_def_cfa(cfi, 4, JITDUMP_RBP, 16);
    jitdump_cfi_def_cfa(cfi, popped, JITDUMP_RSP, 8);
    if (jitdump_cfi_finish(cfi, sizeof code, &unwind))
        fprintf(stderr, "%s\n", jitdump_cfi_error(cfi));
    record.name = name;
    record.code_addr = (uint64_t)(uintptr_t)code;
    record.code_size = sizeof code;
    record.bytes = code;
    record.unwind = &unwind;
    if (jitdump_add_code(dump, &record, NULL))
        fprintf(stderr, "%s\n", jitdump_error(dump));
}

int main(void)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    struct jitdump *dump;
    if (jitdump_open(&dump, NULL))
        return 1;
    add(dump, cfi, "first", 16, 10);
    add(dump, cfi, "second", 24, 10);
    add(dump, cfi, "third", 16, 11);
    uint64_t faults = jitdump_faults(dump);
    fputs(jitdump_error(dump), stderr);
    int error = jitdump_close(dump);
    printf("%" PRIu64 " faults, %d: %s\n", faults, error, faults ? "yes" : "no");
    jitdump_cfi_free(cfi);
    return 0;
}
