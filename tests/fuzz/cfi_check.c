/* Frames and code: jitdump_cfi_check of what was imported or said by directives, and the tables as
 * a dump has them, which anybody may have written.
 *
 *     1 byte    bits 0 and 1 the machine, bit 2 directives or tables, bit 3 where the code is,
 *               bits 4 to 7 the size of .eh_frame_hdr, in units of 4 bytes
 *     2 bytes   how many bytes the frame has, the low one first
 *               the frame: tables, or directives of 4 bytes each (say)
 *               the code
 */
#include "jitdump/cfi.h"
#include "jitdump/cfi_check/frame_check.h"
#include "jitdump/jitdump.h"
#include "tests/fuzz/fuzz_target.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { CODE_ADDR = 0x10000, HEAD_BYTES = 3, DIRECTIVE_BYTES = 4 };

/* Blocks of their own: ASan sees the first byte that is read behind each. */
struct input {
    enum jitdump_arch arch;
    uint64_t code_addr, hdr_bytes;
    uint8_t *frame, *code;
    size_t frame_bytes, code_bytes;
};

static uint8_t *copy_of(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        exit(0);
    if (size)
        memcpy(copy, bytes, size);
    return copy;
}

static struct input input_of(const uint8_t *bytes, size_t size)
{
    static const enum jitdump_arch arches[] = {JITDUMP_X86_64, JITDUMP_AARCH64, JITDUMP_RISCV64,
                                               JITDUMP_X86_64};
    struct input input = {.arch = arches[bytes[0] & 3],
                          .code_addr = bytes[0] & 8 ? CODE_ADDR : 0,
                          .hdr_bytes = (bytes[0] >> 4) * UINT64_C(4)};
    const size_t rest = size - HEAD_BYTES, wanted = bytes[1] | (size_t)bytes[2] << 8;
    input.frame_bytes = wanted < rest ? wanted : rest;
    input.code_bytes = rest - input.frame_bytes;
    input.frame = copy_of(bytes + HEAD_BYTES, input.frame_bytes);
    input.code = copy_of(bytes + HEAD_BYTES + input.frame_bytes, input.code_bytes);
    if (input.hdr_bytes > input.frame_bytes)
        input.hdr_bytes = input.frame_bytes;
    return input;
}

/* ---- What is found ---- */

static uint64_t number_after(const char *text, const char *words)
{
    const char *found = strstr(text, words);
    promise(found, "the text has an offset");
    return strtoull(found + strlen(words), NULL, 16);
}

static void look_at(int result, const char *text, uint64_t code_bytes)
{
    promise(result == 0 || result == -EBADMSG || result == -EINVAL || result == -EFBIG ||
                result == -ENOMEM,
            "check's errors are those that it lists");
    if (result == -EBADMSG) {
        promise(strncmp(text, "at +0x", 6) == 0, "a fault has its place");
        promise(number_after(text, "at +0x") < code_bytes, "a fault is in the code");
    } else if (strstr(text, "not checked")) {
        promise(result == 0 && number_after(text, "from +0x") < code_bytes,
                "an end is in the code");
    }
}

/* Tables that were finished for the same size stay valid, and so does what was found. */
static void check_builder(struct jitdump_cfi *cfi, const struct input *input)
{
    struct jitdump_unwind unwind;
    char before[512];
    if (jitdump_cfi_finish(cfi, input->code_bytes, &unwind) != 0) {
        promise(jitdump_cfi_check(cfi, input->code, input->code_bytes) < 0, "its error stays");
        return;
    }
    uint8_t *tables = copy_of(unwind.data, (size_t)unwind.unwinding_size);
    const int result = jitdump_cfi_check(cfi, input->code, input->code_bytes);
    look_at(result, jitdump_cfi_checked(cfi), input->code_bytes);
    promise(memcmp(tables, unwind.data, (size_t)unwind.unwinding_size) == 0, "tables stay");
    snprintf(before, sizeof before, "%s", jitdump_cfi_checked(cfi));
    promise(jitdump_cfi_check(cfi, input->code, input->code_bytes) == result &&
                strcmp(before, jitdump_cfi_checked(cfi)) == 0,
            "the same is found again");
    free(tables);
}

/* ---- What there is of frames ---- */

/* MORE: the kind in bits 0 and 1, saved registers in 2 and 3, an epilogue in 4, a slot in 5, inside
 * of a frame in 6, flags from VALUE in 7.  VALUE: where the epilogue is, how large the frame. */
static void put_frame(struct jitdump_cfi *cfi, uint64_t at, unsigned more, unsigned value)
{
    const uint64_t epilogues[] = {at + (value & 31)};
    const struct jitdump_slot slots[] = {{3, (int8_t)value}};
    const struct jitdump_frame frame = {.kind = (enum jitdump_frame_kind)(more & 3),
                                        .flags = more & 0x80 ? value & 0x3f : more >> 6,
                                        .saved = {3, 12, 13},
                                        .saved_count = more >> 2 & 3,
                                        .stack_bytes = (value >> 5) * 8,
                                        .prologue = at,
                                        .epilogues = epilogues,
                                        .epilogue_count = more >> 4 & 1,
                                        .slots = slots,
                                        .slot_count = more >> 5 & 1};
    jitdump_cfi_frame(cfi, &frame);
}

/* A directive: what, how far behind the last one, a register or more, a value. */
static void say(struct jitdump_cfi *cfi, const uint8_t directive[DIRECTIVE_BYTES], uint64_t at)
{
    const unsigned reg = directive[2];
    const int value = (int8_t)directive[3];
    switch (directive[0] % 16) {
    case 0:
        jitdump_cfi_def_cfa(cfi, at, reg, value);
        break;
    case 1:
        jitdump_cfi_def_cfa_register(cfi, at, reg);
        break;
    case 2:
        jitdump_cfi_def_cfa_offset(cfi, at, value);
        break;
    case 3:
        jitdump_cfi_adjust_cfa_offset(cfi, at, value);
        break;
    case 4:
        jitdump_cfi_offset(cfi, at, reg, value * 8);
        break;
    case 5:
        jitdump_cfi_rel_offset(cfi, at, reg, value);
        break;
    case 6:
        jitdump_cfi_val_offset(cfi, at, reg, value);
        break;
    case 7:
        jitdump_cfi_register(cfi, at, reg, directive[3]);
        break;
    case 8:
        jitdump_cfi_same_value(cfi, at, reg);
        break;
    case 9:
        jitdump_cfi_undefined(cfi, at, reg);
        break;
    case 10:
        jitdump_cfi_restore(cfi, at, reg);
        break;
    case 11:
        jitdump_cfi_remember_state(cfi, at);
        break;
    case 12:
        jitdump_cfi_restore_state(cfi, at);
        break;
    case 13:
        jitdump_cfi_escape(cfi, at, directive + 2, 2);
        break;
    case 14:
        jitdump_cfi_block(cfi, at, reg);
        break;
    default:
        put_frame(cfi, at, reg, directive[3]);
    }
}

static void say_all(struct jitdump_cfi *cfi, const struct input *input)
{
    uint64_t at = 0;
    for (size_t i = 0; i + DIRECTIVE_BYTES <= input->frame_bytes; i += DIRECTIVE_BYTES)
        say(cfi, input->frame + i, at += input->frame[i + 1]);
}

/* As PERFJIT=check and `perfjit check DUMP` do. */
static void check_tables(const struct input *input)
{
    struct frame_check check = {.beyond = 0};
    const struct code_machine *machine = jd_code_machine((uint32_t)input->arch);
    if (!machine)
        return;
    int error = jd_tables_check(&check, machine, input->frame, input->frame_bytes, input->hdr_bytes,
                                input->code, input->code_addr, input->code_bytes);
    promise(error == 0 || error == -EFBIG || error == -ENOMEM, "errors are those that it lists");
    if (error)
        return;
    promise(check.compared <= input->code_bytes, "each instruction once");
    promise(check.beyond == UINT64_MAX || check.beyond < input->code_bytes, "an end in the code");
    look_at(check.wrong ? -EBADMSG : 0, check.wrong ? check.fault : "", input->code_bytes);
    promise(!check.wrong || check.fault_at == number_after(check.fault, "at +0x"), "one place");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size < HEAD_BYTES)
        return 0;
    struct input input = input_of(bytes, size);
    struct jitdump_cfi *cfi = jitdump_cfi_new(input.arch);
    if (bytes[0] & 4) {
        say_all(cfi, &input);
        check_builder(cfi, &input);
    } else {
        const uint64_t section = input.code_addr + ((input.code_bytes + 7) & ~UINT64_C(7));
        if (jitdump_cfi_import(cfi, input.frame, input.frame_bytes, section, input.code_addr,
                               input.code_bytes) == 0)
            check_builder(cfi, &input);
        check_tables(&input);
    }
    jitdump_cfi_free(cfi);
    free(input.frame);
    free(input.code);
    return 0;
}
