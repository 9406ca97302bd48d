/* Plants faults in the unwind tables of a dump's functions, and says which of them libjitdump's
 * check of frames finds.
 *
 *     frame_faults DUMP COUNT SEED     x86-64; the dump is closed, its tables are plain and right
 *
 * One fault is planted in one function at a time: an operand of one of its call frame instructions
 * is changed, or the instruction left out, or it comes a few bytes too early or late.  It counts if
 * it is wrong for sure at an instruction: the CFA at another distance from the same register, or
 * from rbp where rbp is the caller's; a register in another place, or not saved though it is.
 *
 * Prints each fault that was not found, and one that was found where the tables are still right;
 * then "KIND: N planted, N found, N at the first wrong instruction", and "sound: N functions, N
 * faults".  Status 1 if a fault was missed or made up.
 */
#include "jitdump/cfi_check/frame_check.h"
#include "jitdump/instructions/x86_64_decoder.h"
#include "jitdump/format/cfa_instruction.h"
#include "jitdump/format/jitdump_format.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPERATIONS_MAX = 1024, PROGRAM_BYTES = 1 << 14, FUNCTIONS_MAX = 4096, FIRST_RECORD = 40 };

/* What a call frame instruction is, whatever its form. */
enum operation_kind {
    ADVANCE,
    CFA,
    CFA_REGISTER,
    CFA_OFFSET,
    SAVED,
    RESTORED,
    REMEMBER,
    RECALL,
};

struct operation {
    enum operation_kind kind;
    uint64_t reg;
    int64_t value; /* bytes of an advance, offset of the CFA, offset divided by data_align */
};

struct function {
    const char *name;
    const uint8_t *code;
    uint64_t size;
    struct eh_fde fde;
};

enum fault_kind { WRONG_CFA, WRONG_PLACE, WRONG_REGISTER, MISSING_PUSH, EPILOGUE, SHIFTED, KINDS };
static const char *const kind_names[KINDS] = {"CFA offsets",     "saved at other offsets",
                                              "other registers", "missing pushes",
                                              "epilogues",       "early and late"};

struct table {
    struct operation operations[OPERATIONS_MAX];
    size_t count;
    uint8_t program[PROGRAM_BYTES];
    size_t bytes;
};

static struct function functions[FUNCTIONS_MAX];
static size_t function_count;
static uint64_t seed;

static uint64_t draw(uint64_t below)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 33) % below;
}

/* ---- The dump ---- */

static void take_tables(struct function *function, const uint8_t *record)
{
    uint64_t sizes[2];
    memcpy(sizes, record + 16, sizeof sizes);
    struct eh_frame_walk walk =
        jd_eh_frame_begin(record + 40, (size_t)(sizes[0] - sizes[1]), false, 8);
    struct eh_fde further;
    if (!jd_eh_frame_next(&walk, &function->fde) || jd_eh_frame_next(&walk, &further))
        function->fde.pc_range = 0; /* not one of those */
    jd_eh_frame_end(&walk);
}

static void read_dump(const uint8_t *data, size_t size)
{
    for (size_t at = FIRST_RECORD; at + 16 <= size && function_count < FUNCTIONS_MAX;) {
        uint32_t id, bytes;
        memcpy(&id, data + at, 4);
        memcpy(&bytes, data + at + 4, 4);
        struct function *function = &functions[function_count];
        if (id == JIT_CODE_UNWINDING_INFO)
            take_tables(function, data + at);
        if (id == JIT_CODE_LOAD && function->fde.pc_range) {
            memcpy(&function->size, data + at + 40, 8);
            function->name = (const char *)data + at + 56;
            function->code = data + at + bytes - function->size;
            function_count++;
        }
        at += bytes;
    }
}

/* ---- Programs ---- */

static enum operation_kind cfa_kind_of(uint8_t opcode)
{
    return opcode == CFA_def_cfa          ? CFA
           : opcode == CFA_def_cfa_offset ? CFA_OFFSET
                                          : CFA_REGISTER;
}

static struct operation operation_of(const struct cfa_instruction *instruction)
{
    struct operation op = {.reg = instruction->reg, .value = instruction->offset};
    switch (instruction->subject) {
    case CFA_IS_ADVANCE:
        op.kind = ADVANCE;
        op.value = (int64_t)instruction->delta;
        break;
    case CFA_IS_CFA:
        op.kind = cfa_kind_of(instruction->opcode);
        break;
    case CFA_IS_SAVED_AT:
        op.kind = SAVED;
        break;
    case CFA_IS_RESTORED:
        op.kind = RESTORED;
        break;
    case CFA_IS_REMEMBER:
    case CFA_IS_RECALL:
        op.kind = instruction->subject == CFA_IS_REMEMBER ? REMEMBER : RECALL;
        break;
    default:
        fprintf(stderr, "frame_faults: instruction 0x%x\n", instruction->opcode);
        exit(2);
    }
    return op;
}

static void read_program(struct table *table, const struct eh_fde *fde)
{
    struct cfa_decoder decoder =
        cfa_decoder_over(fde->instructions, fde->instructions_bytes, false, 1, 1);
    struct cfa_instruction instruction;
    table->count = 0;
    while (table->count < OPERATIONS_MAX && cfa_next(&decoder, &instruction))
        table->operations[table->count++] = operation_of(&instruction);
}

static void write_operation(struct byte_sink *sink, const struct operation *op)
{
    switch (op->kind) {
    case ADVANCE:
        sink_u8(sink, CFA_advance_loc4);
        sink_u32(sink, (uint32_t)op->value);
        break;
    case CFA:
        sink_u8(sink, CFA_def_cfa);
        sink_uleb(sink, op->reg);
        sink_uleb(sink, (uint64_t)op->value);
        break;
    case CFA_REGISTER:
        sink_u8(sink, CFA_def_cfa_register);
        sink_uleb(sink, op->reg);
        break;
    case CFA_OFFSET:
        sink_u8(sink, CFA_def_cfa_offset);
        sink_uleb(sink, (uint64_t)op->value);
        break;
    case SAVED:
        sink_u8(sink, CFA_offset_extended_sf);
        sink_uleb(sink, op->reg);
        sink_sleb(sink, op->value);
        break;
    case RESTORED:
        sink_u8(sink, CFA_restore_extended);
        sink_uleb(sink, op->reg);
        break;
    case REMEMBER:
    case RECALL:
        sink_u8(sink, op->kind == REMEMBER ? CFA_remember_state : CFA_restore_state);
        break;
    }
}

static void write_program(struct table *table)
{
    struct byte_sink sink = byte_sink_over(table->program, sizeof table->program);
    sink.big_endian = false;
    for (size_t i = 0; i < table->count; i++)
        write_operation(&sink, &table->operations[i]);
    table->bytes = sink.size;
}

/* Whether FUNCTION itself puts something else into REG. */
static bool is_written(const struct function *function, uint64_t reg)
{
    struct code_state state;
    struct code_step step;
    jd_state_begin(&state, jd_machine_x86_64.stack_pointer, jd_machine_x86_64.entry_offset);
    for (uint64_t at = 0; at < function->size; at += step.size) {
        step = jd_machine_x86_64.step(function->code, function->size, at, &state);
        if (step.size == 0)
            return false;
        bool popped = function->code[at + step.size - 1] >> 3 == 0x58 >> 3 && step.size <= 2;
        if (!value_is_entry(state.registers[reg], (unsigned)reg) && !popped)
            return true;
        state.registers[reg] = value_entry((unsigned)reg);
    }
    return false;
}

static void leave_out(struct table *table, size_t index)
{
    table->count--;
    memmove(&table->operations[index], &table->operations[index + 1],
            (table->count - index) * sizeof table->operations[0]);
}

/* ---- Faults ---- */

static bool is_cfa(enum operation_kind kind)
{
    return kind == CFA || kind == CFA_OFFSET;
}

/* One of the operations that KIND can be planted in, or the count. */
static size_t choose(const struct table *table, enum fault_kind kind)
{
    size_t found = table->count, candidates = 0;
    for (size_t i = 0; i < table->count; i++) {
        enum operation_kind is = table->operations[i].kind;
        bool fits = kind == WRONG_CFA  ? is_cfa(is)
                    : kind == EPILOGUE ? i > table->count / 2 && (is_cfa(is) || is == RECALL)
                    : kind == SHIFTED  ? is == ADVANCE
                                       : is == SAVED;
        if (fits && draw(++candidates) == 0)
            found = i;
    }
    return found;
}

static void plant(struct table *table, enum fault_kind kind, size_t index)
{
    static const uint8_t others[] = {3, 6, 12, 13, 14, 15};
    struct operation *op = &table->operations[index];
    uint64_t reg = op->reg;
    switch (kind) {
    case WRONG_CFA:
        op->value += draw(2) ? 8 * (int64_t)(1 + draw(3)) : op->value > 8 ? -8 : 16;
        break;
    case WRONG_PLACE:
        op->value += draw(2) ? 1 + (int64_t)draw(3) : op->value > 2 ? -1 : 1;
        break;
    case WRONG_REGISTER:
        while (op->reg == reg)
            op->reg = others[draw(sizeof others)];
        break;
    case MISSING_PUSH:
        for (size_t i = table->count; i-- > 0;)
            if ((table->operations[i].kind == SAVED || table->operations[i].kind == RESTORED) &&
                table->operations[i].reg == reg)
                leave_out(table, i);
        break;
    case SHIFTED:
        op->value += draw(2) ? 1 + (int64_t)draw(4) : -1 - (int64_t)draw(4);
        op->value = op->value < 0 ? 0 : op->value;
        break;
    default:
        leave_out(table, index);
    }
}

/* ---- What is wrong for sure ---- */

static bool differs(const struct frame_row *right, const struct frame_row *row,
                    enum fault_kind kind)
{
    enum { RBP = 6 };
    if (row->cfa_register == right->cfa_register ? row->cfa_offset != right->cfa_offset
                                                 : row->cfa_register == RBP)
        return true;
    for (unsigned i = 0; i < jd_machine_x86_64.saved_count; i++) {
        const struct frame_rule *a = &right->rules[i], *b = &row->rules[i];
        if (b->kind == RULE_AT && (a->kind != RULE_AT || a->offset != b->offset) &&
            kind != SHIFTED && kind != EPILOGUE)
            return true;
    }
    return false;
}

/* The offset of the first instruction at which ROWS are wrong for sure; or the size. */
static uint64_t first_wrong(const struct function *function, const struct frame_rows *right,
                            const struct frame_rows *rows, enum fault_kind kind)
{
    struct x86_instruction in;
    uint64_t at = 0;
    while (at < function->size &&
           jd_x86_decode(function->code + at, (size_t)(function->size - at), &in)) {
        bool never_run = in.map == 1 && in.opcode == 0x0b; /* ud2, behind a call */
        if (!never_run && differs(jd_frame_row_at(right, at), jd_frame_row_at(rows, at), kind))
            return at;
        at += in.length;
    }
    return function->size;
}

/* The first offset at which they differ at all. */
static uint64_t first_other(const struct function *function, const struct frame_rows *right,
                            const struct frame_rows *rows)
{
    for (uint64_t at = 0; at < function->size; at++) {
        struct frame_row a = *jd_frame_row_at(right, at), b = *jd_frame_row_at(rows, at);
        a.start = b.start = 0;
        a.begins = b.begins = false;
        if (memcmp(&a, &b, sizeof a))
            return at;
    }
    return function->size;
}

struct counts {
    uint64_t planted, found, exact, made_up;
};

static bool can_be_planted(const struct function *function, const struct operation *op,
                           enum fault_kind kind)
{
    return kind != MISSING_PUSH || is_written(function, op->reg);
}

static void try_fault(const struct function *function, enum fault_kind kind, struct counts *counts)
{
    static struct table table;
    struct frame_rows right = {0}, rows = {0};
    struct frame_fde fde = {0, function->size, &function->fde.cie, function->fde.instructions,
                            function->fde.instructions_bytes};
    struct frame_check check;
    jd_frame_rows_make(&right, &jd_machine_x86_64, &fde, 1, function->size);
    read_program(&table, &function->fde);
    size_t index = choose(&table, kind);
    if (index < table.count && can_be_planted(function, &table.operations[index], kind)) {
        plant(&table, kind, index);
        write_program(&table);
        fde.instructions = table.program;
        fde.instructions_bytes = table.bytes;
        jd_frame_rows_make(&rows, &jd_machine_x86_64, &fde, 1, function->size);
        uint64_t wrong = first_wrong(function, &right, &rows, kind);
        uint64_t other = first_other(function, &right, &rows);
        if (wrong < function->size || (kind == MISSING_PUSH && other < function->size)) {
            jd_frame_check(&check, &jd_machine_x86_64, &fde, 1, function->code, function->size);
            counts->planted++;
            counts->found += check.wrong;
            counts->exact += check.wrong && check.fault_at == wrong;
            counts->made_up += check.wrong && check.fault_at < other;
            if (!check.wrong || check.fault_at < other)
                printf("%s: %s: planted at +0x%" PRIx64 ", %s\n", function->name, kind_names[kind],
                       wrong, check.wrong ? check.fault : "not found");
        }
        jd_frame_rows_free(&rows);
    }
    jd_frame_rows_free(&right);
}

static uint64_t check_sound(void)
{
    uint64_t faults = 0;
    for (size_t i = 0; i < function_count; i++) {
        const struct function *function = &functions[i];
        struct frame_fde fde = {0, function->size, &function->fde.cie, function->fde.instructions,
                                function->fde.instructions_bytes};
        struct frame_check check;
        jd_frame_check(&check, &jd_machine_x86_64, &fde, 1, function->code, function->size);
        faults += check.wrong;
        if (check.wrong)
            printf("%s: %s\n", function->name, check.fault);
    }
    printf("sound: %zu functions, %" PRIu64 " faults\n", function_count, faults);
    return faults;
}

int main(int argc, char **argv)
{
    struct counts counts[KINDS] = {0};
    struct stat status;
    int fd = argc == 4 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0 || fstat(fd, &status))
        return 2;
    const uint8_t *data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return 2;
    seed = strtoull(argv[3], NULL, 10);
    read_dump(data, (size_t)status.st_size);
    uint64_t wanted = strtoull(argv[2], NULL, 10), planted = 0, bad = check_sound();
    for (uint64_t tries = 0; planted < wanted && tries < wanted * 100 && function_count; tries++) {
        enum fault_kind kind = (enum fault_kind)(tries % KINDS);
        uint64_t before = counts[kind].planted;
        try_fault(&functions[draw(function_count)], kind, &counts[kind]);
        planted += counts[kind].planted - before;
    }
    for (int kind = 0; kind < KINDS; kind++) {
        printf("%s: %" PRIu64 " planted, %" PRIu64 " found, %" PRIu64
               " at the first wrong instruction\n",
               kind_names[kind], counts[kind].planted, counts[kind].found, counts[kind].exact);
        bad += counts[kind].planted - counts[kind].found + counts[kind].made_up;
    }
    return bad != 0 || planted < wanted;
}
