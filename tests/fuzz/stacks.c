/* Unwinding: tables, registers and stacks of any bytes, and samples of any form.
 *
 *      0 u8 how           bit 0: aarch64; bit 1: .debug_frame; bit 2: all code is without a table;
 *                         bit 3: the rest is a record, and what its event looks like; bit 4: its
 *                         sample_type is taken as it is, else samples hold stacks
 *      1 u8 table_bytes   in units of 16; then the table, 33 registers, and the stack
 * A record: u64 sample_type, read_format, branch_sample_type, regs_user; the record's bytes.
 */
#include "injector/native/frame_section.h"
#include "injector/recording/perf_data/perf_format.h"
#include "injector/unwind/code_rule.h"
#include "injector/unwind/return_slot.h"
#include "injector/unwind/stacks/user_stacks.h"
#include "tests/fuzz/fuzz_target.h"

#include <elf.h>

enum {
    FRAMES = 512,
    BUDGET = 1 << 16,
    STACK_ADDR = 0x10000,
    PLACES = 5,
    RECORD_MOST_BYTES = 65528
};

struct input {
    struct byte_cursor cursor;
    const struct machine *machine;
    struct frame_section section;
    bool no_table;
};

/* Every other address is behind a call. */
static bool returns_to(void *context, uint64_t addr)
{
    (void)context;
    return addr & 1;
}

/* Each third has a call in front, each other third one that leads elsewhere. */
static enum call_evidence calls(void *context, uint64_t addr)
{
    (void)context;
    return (enum call_evidence)(addr % 3);
}

static enum unwind_result step_by_table(struct input *input, struct unwind_step *step,
                                        struct unwind_frame *frame)
{
    struct cfi_entry entry;
    struct cfi_row row;
    struct unwind_rule rule;
    uint64_t pc = frame->exact ? frame->pc : frame->pc - 1;
    if (frame_section_find(&input->section, pc, step->budget, &entry) != 1 ||
        !cfi_row_find(&entry, pc, input->machine, step->budget, &row))
        return UNWIND_WRONG;
    promise(pc >= entry.start && pc < entry.end, "an entry is about the address");
    struct unwind_frame as_row = *frame;
    struct unwind_step again = *step;
    enum unwind_result by_row = unwind_by_row(&again, &row, &as_row), result = by_row;
    if (unwind_rule_shorten(&rule, &row, input->machine))
        result = unwind_by_rule(step, &rule, frame);
    else {
        *step = again;
        *frame = as_row;
    }
    promise(result == by_row && (result != UNWIND_CALLER || frame->pc == as_row.pc),
            "a rule does what its row does");
    return result;
}

/* The bytes of the stack stand for the code. */
static enum unwind_result step_by_code(struct input *input, struct unwind_step *step,
                                       struct unwind_frame *frame)
{
    struct unwind_rule rule = {.kind = RULE_PLACE, .place = (uint8_t)(frame->pc % PLACES)};
    const size_t size = step->stack->size < 4096 ? (size_t)step->stack->size : 4096;
    int found = size ? code_rule_find(&rule, input->machine, step->stack->bytes, size,
                                      (size_t)(frame->pc % size), step->budget)
                     : 0;
    promise(found == rule.followed, "a rule that was found holds");
    return unwind_by_place(step, &rule, frame);
}

static enum unwind_result step_on(struct input *input, struct unwind_step *step,
                                  struct unwind_frame *frame)
{
    enum unwind_result result = input->no_table ? UNWIND_WRONG : step_by_table(input, step, frame);
    if (result == UNWIND_WRONG)
        result = step_by_code(input, step, frame);
    return result == UNWIND_WRONG ? unwind_by_slot(step, frame) : result;
}

static void walk(struct input *input)
{
    struct unwind_frame frame = {.pc = 0x40, .exact = true, .innermost = true};
    struct unwind_budget budget = {BUDGET};
    for (unsigned i = 0; i < UNWIND_REGISTERS && cursor_left(&input->cursor) >= 8; i++)
        unwind_frame_set(&frame, i, cursor_u64(&input->cursor));
    frame.pc = frame.registers[1];
    const struct user_stack stack = {input->cursor.data + input->cursor.offset, STACK_ADDR,
                                     cursor_left(&input->cursor)};
    struct unwind_step step = {.machine = input->machine,
                               .stack = &stack,
                               .budget = &budget,
                               .returns_to = returns_to,
                               .calls = calls,
                               .cfa = STACK_ADDR};
    unwind_frame_set(&frame, input->machine->sp, STACK_ADDR);
    for (size_t i = 0; i < FRAMES; i++) {
        uint64_t sp = frame.registers[input->machine->sp];
        if (step_on(input, &step, &frame) != UNWIND_CALLER)
            break;
        promise(frame.exact || frame.registers[input->machine->sp] >= sp, "stacks ascend");
        promise((frame.pc & ~input->machine->address_mask) == 0, "an address is one");
    }
}

static void check_part(const struct perf_record *record, const uint8_t *bytes, size_t size)
{
    promise(!bytes || (bytes >= record->bytes && size <= record->size &&
                       bytes + size <= record->bytes + record->size),
            "a part of a sample lies in the record");
}

static size_t count_registers(const struct sample_registers *registers)
{
    return (size_t)__builtin_popcountll(registers->mask);
}

static void check_parts(const struct perf_record *record, const struct sample_format *format)
{
    struct perf_sample sample;
    bool whole = perf_sample_read(&sample, format, record, SAMPLE_FIELDS);
    size_t place = PERF_RECORD_HEADER_BYTES;
    for (size_t field = 0; whole && field <= SAMPLE_FIELDS; field++) {
        size_t next = perf_sample_place(&sample, (enum sample_field)field);
        promise(next >= place && next <= record->size, "the parts of a sample stand in order");
        place = next;
    }
    const struct sample_counts *counts = &sample.counts;
    check_part(record, counts->values, counts->grouped ? counts->count * counts->value_bytes : 8);
    check_part(record, sample.chain.entries, 8 * sample.chain.count);
    check_part(record, sample.raw.bytes, sample.raw.size);
    check_part(record, sample.aux.bytes, sample.aux.size);
    check_part(record, sample.branches.entries, 24 * sample.branches.count);
    check_part(record, sample.branches.counters, 8 * sample.branches.count);
    check_part(record, sample.user_registers.values, 8 * count_registers(&sample.user_registers));
    check_part(record, sample.interrupt_registers.values,
               8 * count_registers(&sample.interrupt_registers));
    check_part(record, sample.user_stack.bytes, sample.user_stack.size);
}

/* Every address that a report of the sample names. */
static void check_stack(const struct perf_record *record, const struct sample_format *format)
{
    struct perf_sample sample;
    struct stack_address address;
    size_t count = 0;
    if (!perf_sample_read(&sample, format, record, SAMPLE_FIELDS))
        return;
    struct stack_reading reading = stack_reading_begin(&sample);
    for (; stack_reading_next(&reading, &address); count++)
        promise(address.mode <= PERF_MISC_GUEST_USER &&
                    (!address.seen || !address.called || count == 0),
                "an address has a mode, and a place that was seen is no call");
    promise(count <= sample.chain.count + sample.branches.count + 1,
            "a stack has no more addresses than chain and branches");
}

static void read_record(struct byte_cursor *cursor, bool has_stack)
{
    struct sample_format format = {.sample_type = cursor_u64(cursor)};
    format.read_format = cursor_u64(cursor);
    format.branch_sample_type = cursor_u64(cursor);
    format.user_registers = format.interrupt_registers = cursor_u64(cursor);
    size_t size =
        cursor_left(cursor) < RECORD_MOST_BYTES ? cursor_left(cursor) : (size_t)RECORD_MOST_BYTES;
    const uint8_t *bytes = cursor_bytes(cursor, size);
    struct perf_record record = {.bytes = bytes,
                                 .size = (uint16_t)size,
                                 .type = PERF_RECORD_SAMPLE,
                                 .misc = size ? bytes[0] : 0};
    struct perf_sample sample;
    if (has_stack)
        format.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
    sample_format_lay_out(&format);
    if (!bytes || size < PERF_RECORD_HEADER_BYTES)
        return;
    check_parts(&record, &format);
    check_stack(&record, &format);
    if (!perf_sample_read_stack(&sample, &format, &record))
        return;
    promise(perf_sample_user_entry(&sample) <= sample.chain.count,
            "the kernel's part is a part of the chain");
    promise(user_stacks_most_frames(&sample) <= RECORD_MOST_BYTES / 8, "frames have room");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct input input = {.cursor = byte_cursor_over(bytes, size, false)};
    uint8_t how = cursor_u8(&input.cursor);
    if (how & 8) {
        read_record(&input.cursor, !(how & 16));
        return 0;
    }
    size_t table_bytes = 16 * (size_t)cursor_u8(&input.cursor);
    const uint8_t *table = cursor_bytes(&input.cursor, table_bytes);
    if (!table)
        return 0;
    input.machine = machine_numbered(how & 1 ? EM_AARCH64 : EM_X86_64);
    input.section = (struct frame_section){.entries = {table, table_bytes, 0}, .debug = how & 2};
    input.no_table = how & 4;
    walk(&input);
    frame_section_free(&input.section);
    return 0;
}
