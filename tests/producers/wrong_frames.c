/* Adds three functions with one code and three frames, of which the first is right, and one in two
 * pieces, of which the second is wrong, with libjitdump; PERFJIT and JITDUMPDIR say how.
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

/* A compiler in one pass: hot and cold part of one buffer, rows by offset.  The cold part's frame
 * does not fit. */
static void add_pieces(struct jitdump *dump, struct jitdump_cfi *cfi)
{
    static const uint8_t cold_code[] = {0x90, 0x5d, 0xc3}; /* nop; pop rbp; ret */
    const struct jitdump_line rows[] = {{0, "a.src", 1, 0}, {4, "a.src", 2, 0}};
    struct jitdump_code hot = JITDUMP_CODE_INIT, cold = JITDUMP_CODE_INIT;
    struct jitdump_unwind tables[2];
    jitdump_cfi_reset(cfi);
    jitdump_cfi_begin(cfi, 64);
    jitdump_cfi_def_cfa_offset(cfi, 65, 16);
    jitdump_cfi_offset(cfi, 65, JITDUMP_RBP, -16);
    jitdump_cfi_def_cfa(cfi, 68, JITDUMP_RBP, 16);
    jitdump_cfi_def_cfa(cfi, 74, JITDUMP_RSP, 8);
    int error = jitdump_cfi_end(cfi, 64 + sizeof code, &tables[0]);
    jitdump_cfi_begin(cfi, 128);
    jitdump_cfi_def_cfa(cfi, 128, JITDUMP_RSP, 16);
    jitdump_cfi_offset(cfi, 128, JITDUMP_RBP, -16);
    jitdump_cfi_def_cfa(cfi, 130, JITDUMP_RSP, 16); /* it is at 8 there */
    error = error ? error : jitdump_cfi_end(cfi, 128 + sizeof cold_code, &tables[1]);
    cold.code_addr = (uint64_t)(uintptr_t)cold_code;
    cold.code_size = sizeof cold_code;
    cold.bytes = cold_code;
    cold.unwind = &tables[1];
    hot.name = "fourth";
    hot.code_addr = (uint64_t)(uintptr_t)code;
    hot.code_size = sizeof code;
    hot.bytes = code;
    hot.lines = rows;
    hot.line_count = 2;
    hot.flags = JITDUMP_RELATIVE;
    hot.unwind = &tables[0];
    hot.pieces = &cold;
    hot.piece_count = 1;
    if (error || jitdump_add_code(dump, &hot, NULL))
        fprintf(stderr, "%s%s\n", jitdump_cfi_error(cfi), jitdump_error(dump));
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
    add_pieces(dump, cfi);
    uint64_t faults = jitdump_faults(dump);
    fputs(jitdump_error(dump), stderr);
    int error = jitdump_close(dump);
    printf("%" PRIu64 " faults, %d: %s\n", faults, error, faults ? "yes" : "no");
    jitdump_cfi_free(cfi);
    return 0;
}
