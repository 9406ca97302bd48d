/* What an .eh_frame says, row by row: an evaluator for the tests, which shares no code with the
 * library.
 *
 * A row is written as readelf writes it, "rsp+16 rbx=c-16 ra=c-8": the CFA, then every register
 * that has a rule.  rows_text() has one line for each code offset at which the row changes, "-"
 * where no FDE is:
 *
 *      0 rsp+8 ra=c-8
 *      1 rsp+16 rbp=c-16 ra=c-8
 *      23 -
 */
#ifndef CFI_ROWS_H
#define CFI_ROWS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jitdump/cfi.h"

/* The tables of CFI, which must have no error. */
static inline struct jitdump_unwind finish(struct jitdump_cfi *cfi, uint64_t code_size)
{
    struct jitdump_unwind unwind;
    int error = jitdump_cfi_finish(cfi, code_size, &unwind);
    if (error)
        fail_msg("%d: %s", error, jitdump_cfi_error(cfi));
    return unwind;
}

enum { ROWS_REGISTERS = 128, ROWS_DEPTH = 64, ROW_TEXT_BYTES = 1024 };

struct rows_table {
    const uint8_t *data;
    size_t size;
    uint64_t addr; /* of the .eh_frame */
    enum jitdump_arch arch;
};

struct rows_rule {
    char kind; /* 0 none, 'c' at CFA+n, 'v' is CFA+n, 'r' in register n, 's' same, 'e' and 'x'
                  expressions */
    int64_t number;
};

struct rows_state {
    struct rows_rule cfa; /* 'r' with its register, or 'e' */
    int64_t cfa_offset;
    struct rows_rule registers[ROWS_REGISTERS];
};

struct rows_machine {
    const uint8_t *at, *end;
    uint64_t pc, code_align;
    int64_t data_align;
    unsigned return_register;
    uint8_t encoding;
    bool sized, broken;
    struct rows_state state, initial, stack[ROWS_DEPTH];
    size_t depth;
};

static inline uint64_t rows_fixed(struct rows_machine *m, size_t bytes)
{
    uint64_t value = 0;
    if ((size_t)(m->end - m->at) < bytes) {
        m->broken = true;
        m->at = m->end;
        return 0;
    }
    for (size_t i = bytes; i-- > 0;)
        value = value << 8 | m->at[i];
    m->at += bytes;
    return value;
}

static inline uint64_t rows_leb(struct rows_machine *m, bool is_signed)
{
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
        byte = (uint8_t)rows_fixed(m, 1);
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    if (is_signed && byte & 0x40 && shift < 64)
        value |= UINT64_MAX << shift;
    return value;
}

static inline uint64_t rows_uleb(struct rows_machine *m)
{
    return rows_leb(m, false);
}

static inline int64_t rows_sleb(struct rows_machine *m)
{
    return (int64_t)rows_leb(m, true);
}

static inline void rows_set(struct rows_machine *m, uint64_t reg, char kind, int64_t number)
{
    if (reg < ROWS_REGISTERS)
        m->state.registers[reg] = (struct rows_rule){kind, number};
    else
        m->broken = true;
}

static inline void rows_restore(struct rows_machine *m, uint64_t reg)
{
    if (reg < ROWS_REGISTERS)
        m->state.registers[reg] = m->initial.registers[reg];
    else
        m->broken = true;
}

static inline void rows_cfa(struct rows_machine *m, uint64_t reg, int64_t offset)
{
    m->state.cfa = (struct rows_rule){'r', (int64_t)reg};
    m->state.cfa_offset = offset;
}

static inline void rows_expression(struct rows_machine *m, char kind, bool of_cfa)
{
    uint64_t reg = of_cfa ? 0 : rows_uleb(m);
    uint64_t size = rows_uleb(m);
    if (size > (size_t)(m->end - m->at))
        m->broken = true;
    else
        m->at += size;
    if (of_cfa)
        m->state.cfa.kind = 'e';
    else
        rows_set(m, reg, kind, 0);
}

static inline void rows_stack(struct rows_machine *m, bool push)
{
    if (push && m->depth < ROWS_DEPTH)
        m->stack[m->depth++] = m->state;
    else if (!push && m->depth)
        m->state = m->stack[--m->depth];
    else
        m->broken = true;
}

/* Instructions that set rules; the others are rows_step's. */
static inline void rows_rule_step(struct rows_machine *m, uint8_t opcode)
{
    uint64_t reg = opcode == 0x0f || opcode == 0x10 || opcode == 0x16 ? 0 : rows_uleb(m);
    switch (opcode) {
    case 0x05:
        rows_set(m, reg, 'c', (int64_t)rows_uleb(m) * m->data_align);
        return;
    case 0x06:
        rows_restore(m, reg);
        return;
    case 0x07: /* undefined */
        rows_set(m, reg, 0, 0);
        return;
    case 0x08:
        rows_set(m, reg, 's', 0);
        return;
    case 0x09:
        rows_set(m, reg, 'r', (int64_t)rows_uleb(m));
        return;
    case 0x0c:
        rows_cfa(m, reg, (int64_t)rows_uleb(m));
        return;
    case 0x0d:
        rows_cfa(m, reg, m->state.cfa_offset);
        return;
    case 0x0f:
    case 0x10:
    case 0x16:
        rows_expression(m, opcode == 0x10 ? 'e' : 'x', opcode == 0x0f);
        return;
    case 0x11:
        rows_set(m, reg, 'c', rows_sleb(m) * m->data_align);
        return;
    case 0x12:
        rows_cfa(m, reg, rows_sleb(m) * m->data_align);
        return;
    case 0x14:
        rows_set(m, reg, 'v', (int64_t)rows_uleb(m) * m->data_align);
        return;
    case 0x15:
        rows_set(m, reg, 'v', rows_sleb(m) * m->data_align);
        return;
    default:
        m->broken = true;
    }
}

static inline void rows_step(struct rows_machine *m)
{
    uint8_t opcode = (uint8_t)rows_fixed(m, 1);
    uint8_t low = opcode & 0x3f;
    if (opcode >> 6 == 1)
        m->pc += low * m->code_align;
    else if (opcode >> 6 == 2)
        rows_set(m, low, 'c', (int64_t)rows_uleb(m) * m->data_align);
    else if (opcode >> 6 == 3)
        rows_restore(m, low);
    else if (opcode >= 0x02 && opcode <= 0x04)
        m->pc += rows_fixed(m, (size_t)1 << (opcode - 2)) * m->code_align;
    else if (opcode == 0x0a || opcode == 0x0b)
        rows_stack(m, opcode == 0x0a);
    else if (opcode == 0x0e)
        m->state.cfa_offset = (int64_t)rows_uleb(m);
    else if (opcode == 0x13)
        m->state.cfa_offset = rows_sleb(m) * m->data_align;
    else if (opcode == 0x2e)
        rows_uleb(m); /* GNU_args_size */
    else if (opcode != 0x00 && opcode != 0x2d)
        rows_rule_step(m, opcode);
}

/* Run the instructions up to the end, or until they get past PC. */
static inline void rows_run(struct rows_machine *m, uint64_t pc)
{
    while (m->at < m->end && !m->broken) {
        struct rows_state before = m->state;
        rows_step(m);
        if (m->pc > pc) {
            m->state = before;
            return;
        }
    }
}

static inline uint64_t rows_pointer(struct rows_machine *m, uint8_t encoding, uint64_t here)
{
    static const uint8_t bytes[16] = {8, 0, 2, 4, 8, 0, 0, 0, 8, 0, 2, 4, 8, 0, 0, 0};
    uint8_t size = bytes[encoding & 0xf];
    uint64_t value = rows_fixed(m, size);
    if (size == 0)
        m->broken = true;
    if (encoding & 8 && size < 8 && size > 0 && value >> (size * 8 - 1))
        value |= UINT64_MAX << (size * 8);
    return (encoding & 0x70) == 0x10 ? value + here : value;
}

/* Read the CIE at OFFSET and run its instructions. */
static inline void rows_cie(struct rows_machine *m, const struct rows_table *table, size_t offset)
{
    uint32_t length;
    memcpy(&length, table->data + offset, 4);
    *m = (struct rows_machine){.at = table->data + offset + 8,
                               .end = table->data + offset + 4 + length};
    uint8_t version = (uint8_t)rows_fixed(m, 1);
    const char *letters = (const char *)m->at;
    m->at += strlen(letters) + 1;
    m->code_align = rows_uleb(m);
    m->data_align = rows_sleb(m);
    m->return_register = (unsigned)(version == 1 ? rows_fixed(m, 1) : rows_uleb(m));
    m->sized = *letters == 'z';
    uint64_t size = m->sized ? rows_uleb(m) : 0;
    const uint8_t *instructions = m->at + size;
    for (; *letters; letters++) {
        if (*letters == 'R')
            m->encoding = (uint8_t)rows_fixed(m, 1);
        else if (*letters == 'L')
            rows_fixed(m, 1);
        else if (*letters == 'P')
            rows_pointer(m, (uint8_t)rows_fixed(m, 1), 0);
    }
    m->at = instructions;
    rows_run(m, UINT64_MAX);
    m->initial = m->state;
    m->depth = 0;
}

/* Find PC's FDE and run it up to there.  Returns false if there is none. */
static inline bool rows_find(struct rows_machine *m, const struct rows_table *table, uint64_t pc)
{
    for (size_t offset = 0; offset + 8 <= table->size;) {
        uint32_t head[2];
        memcpy(head, table->data + offset, sizeof head);
        if (head[0] == 0)
            return false;
        if (head[1] != 0) {
            rows_cie(m, table, offset + 4 - head[1]);
            m->at = table->data + offset + 8;
            m->end = table->data + offset + 4 + head[0];
            uint64_t begin = rows_pointer(m, m->encoding, table->addr + offset + 8);
            uint64_t range = rows_pointer(m, m->encoding & 0xf, 0);
            uint64_t skip = m->sized ? rows_uleb(m) : 0;
            m->at += skip;
            m->pc = begin;
            if (pc - begin < range) {
                rows_run(m, pc);
                return true;
            }
        }
        offset += 4 + (size_t)head[0];
    }
    return false;
}

static inline const char *rows_register(enum jitdump_arch arch, uint64_t reg, char name[16])
{
    static const char *const x86_64[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp"};
    if (arch == JITDUMP_X86_64 && reg < 8)
        return x86_64[reg];
    if (arch == JITDUMP_AARCH64 && reg == 31)
        return "sp";
    snprintf(name, 16,
             arch == JITDUMP_X86_64 ? reg < 16 ? "r%d" : "xmm%d"
             : reg < 64             ? "x%d"
                                    : "v%d",
             (int)(arch == JITDUMP_X86_64 ? reg < 16 ? reg : reg - 17
                   : reg < 64             ? reg
                                          : reg - 64));
    return name;
}

__attribute__((format(printf, 2, 3))) static inline void rows_append(char text[ROW_TEXT_BYTES],
                                                                     const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, ROW_TEXT_BYTES - used, format, arguments);
    va_end(arguments);
}

static inline void row_print(const struct rows_machine *m, enum jitdump_arch arch,
                             char text[ROW_TEXT_BYTES])
{
    char name[16];
    const struct rows_state *state = &m->state;
    text[0] = '\0';
    if (state->cfa.kind == 'e')
        rows_append(text, "exp");
    else
        rows_append(text, "%s%+d", rows_register(arch, (uint64_t)state->cfa.number, name),
                    (int)state->cfa_offset);
    for (unsigned reg = 0; reg < ROWS_REGISTERS; reg++) {
        const struct rows_rule *rule = &state->registers[reg];
        if (!rule->kind)
            continue;
        rows_append(text,
                    " %s=", reg == m->return_register ? "ra" : rows_register(arch, reg, name));
        if (rule->kind == 'c' || rule->kind == 'v')
            rows_append(text, "%c%+d", rule->kind, (int)rule->number);
        else if (rule->kind == 'r')
            rows_append(text, "%s", rows_register(arch, (uint64_t)rule->number, name));
        else
            rows_append(text, "%s", rule->kind == 's' ? "s" : rule->kind == 'e' ? "exp" : "vexp");
    }
}

/* The row of PC, "-" if it has none, or "broken". */
static inline void row_at(const struct rows_table *table, uint64_t pc, char text[ROW_TEXT_BYTES])
{
    static struct rows_machine machine;
    strcpy(text, "-");
    if (!rows_find(&machine, table, pc))
        return;
    row_print(&machine, table->arch, text);
    if (machine.broken)
        strcpy(text, "broken");
}

/* All rows of [START, START + SIZE), as above with offsets from START.  To be freed. */
static inline char *rows_text(const struct rows_table *table, uint64_t start, uint64_t size)
{
    char *all = NULL, row[ROW_TEXT_BYTES], last[ROW_TEXT_BYTES] = "";
    size_t bytes;
    FILE *stream = open_memstream(&all, &bytes);
    for (uint64_t offset = 0; offset < size; offset++) {
        row_at(table, start + offset, row);
        if (strcmp(row, last) != 0)
            fprintf(stream, "%d %s\n", (int)offset, row);
        strcpy(last, row);
    }
    fclose(stream);
    return all;
}

/* The .eh_frame of UNWIND in the place where it is right: behind CODE_SIZE bytes of code at 0. */
static inline struct rows_table rows_of(const struct jitdump_unwind *unwind, uint64_t code_size,
                                        enum jitdump_arch arch)
{
    return (struct rows_table){unwind->data,
                               (size_t)(unwind->unwinding_size - unwind->eh_frame_hdr_size),
                               (code_size + 7) / 8 * 8, arch};
}

#endif
