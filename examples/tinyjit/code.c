/* See code.h. */
#include "examples/tinyjit/code.h"

#include "examples/tinyjit/memory.h"

#include <string.h>

struct code_frame_rule code_frame_rule_at(const struct code *code, size_t offset)
{
    struct code_frame_rule rule = {X86_RSP, 8, {0}};
    for (size_t i = 0; i < code->frame_event_count; i++) {
        const struct code_frame_event *event = &code->frame_events[i];
        if (event->code_offset > offset)
            break;
        if (event->kind == FRAME_SAVED || event->kind == FRAME_RESTORED) {
            rule.saved[event->reg] = event->kind == FRAME_SAVED ? event->value : 0;
        } else {
            rule.cfa_register = event->kind == FRAME_CFA_RSP ? X86_RSP : X86_RBP;
            rule.cfa_offset = event->value;
        }
    }
    return rule;
}

const struct code_call *code_find_call(const struct code *code, size_t return_offset)
{
    for (size_t low = 0, high = code->call_count; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (code->calls[middle].return_offset == return_offset)
            return &code->calls[middle];
        if (code->calls[middle].return_offset < return_offset)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

void code_free(struct code *code)
{
    free(code->name);
    free(code->lines);
    free(code->inlines);
    free(code->frame_events);
    free(code->calls);
    free(code);
}

/* How many codes start at or below ADDR. */
static size_t table_position(const struct code_table *table, uint64_t addr)
{
    size_t low = 0, high = table->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((uint64_t)(uintptr_t)table->codes[middle]->addr <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void code_table_add(struct code_table *table, struct code *code)
{
    table->changing = true;
    table->codes = array_room(table->codes, table->count, &table->capacity, sizeof *table->codes);
    size_t at = table_position(table, (uint64_t)(uintptr_t)code->addr);
    memmove(&table->codes[at + 1], &table->codes[at], (table->count - at) * sizeof *table->codes);
    table->codes[at] = code;
    table->count++;
    table->changing = false;
}

void code_table_remove(struct code_table *table, const struct code *code)
{
    size_t behind = table_position(table, (uint64_t)(uintptr_t)code->addr);
    table->changing = true;
    memmove(&table->codes[behind - 1], &table->codes[behind],
            (table->count - behind) * sizeof *table->codes);
    table->count--;
    table->changing = false;
}

struct code *code_table_find(const struct code_table *table, uint64_t addr)
{
    size_t behind = table_position(table, addr);
    if (behind == 0)
        return NULL;
    struct code *code = table->codes[behind - 1];
    return addr - (uint64_t)(uintptr_t)code->addr < code->size ? code : NULL;
}
