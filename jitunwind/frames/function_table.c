/* See function_table.h. */
#include "jitunwind/frames/function_table.h"

#include "jitunwind/frames/read_marks.h"
#include "jitunwind/frames/rule_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { RULES_MAX = 1 << 16, RULE_SLOTS = 2 * RULES_MAX, PIECE_ALIGN = 64 };

/* ---- Memory ---- */

static size_t granule_count(uint32_t bytes)
{
    return bytes / GRANULE_BYTES + 1;
}

static size_t aligned(size_t bytes)
{
    return (bytes + PIECE_ALIGN - 1) / PIECE_ALIGN * PIECE_ALIGN;
}

/* The begin of the next part, BYTES before the part after it. */
static void *take_part(uint8_t **at, size_t bytes)
{
    void *part = *at;
    *at += aligned(bytes);
    return part;
}

int ju_function_table_open(struct function_table *table, uint64_t start, uint32_t bytes)
{
    *table = (struct function_table){.start = start, .bytes = bytes};
    table->function_max = bytes / BYTES_PER_FUNCTION + 16;
    table->row_max = bytes / BYTES_PER_ROW + 1024;
    size_t granules = granule_count(bytes) * sizeof *table->granules;
    size_t functions = (size_t)table->function_max * sizeof *table->functions;
    size_t rows = (size_t)table->row_max * sizeof *table->rows;
    size_t rules = RULES_MAX * sizeof *table->rules;
    size_t slots = RULE_SLOTS * sizeof *table->more_rule_slots;
    table->memory_bytes = aligned(granules) + aligned(functions) + aligned(rows) + aligned(rules) +
                          aligned(slots) + PROGRAM_BYTES;
    table->memory = mmap(NULL, table->memory_bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (table->memory == MAP_FAILED)
        return -ENOMEM;
    uint8_t *at = table->memory;
    table->granules = take_part(&at, granules);
    table->functions = take_part(&at, functions);
    table->rows = take_part(&at, rows);
    table->rules = take_part(&at, rules);
    table->more_rule_slots = take_part(&at, slots);
    table->program = take_part(&at, PROGRAM_BYTES);
    table->function_count = 1; /* number 0 is none, and rule 0 is RULE_UNKNOWN */
    table->rule_count = 1;
    table->rule_slots = table->first_rule_slots;
    table->rule_slot_count = FIRST_RULE_SLOTS;
    return 0;
}

void ju_function_table_close(struct function_table *table)
{
    for (uint32_t i = 1; i < table->function_count; i++)
        free(table->functions[i].name);
    munmap(table->memory, table->memory_bytes);
}

/* ---- Rules ---- */

static uint64_t rule_hash(const struct frame_rule *rule)
{
    uint64_t hash =
        (uint64_t)(uint32_t)rule->cfa_offset << 16 | (uint64_t)rule->cfa_register << 8 | rule->kind;
    for (unsigned i = 0; i < MACHINE_SAVED; i++)
        hash = (hash ^ (uint16_t)rule->slots[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

static bool rule_same(const struct frame_rule *left, const struct frame_rule *right)
{
    return left->kind == right->kind && left->cfa_register == right->cfa_register &&
           left->cfa_offset == right->cfa_offset &&
           memcmp(left->slots, right->slots, sizeof left->slots) == 0;
}

/* The place that has RULE's number, or that it belongs to. */
static uint32_t *rule_slot(const struct function_table *table, const struct frame_rule *rule)
{
    for (uint64_t slot = rule_hash(rule);; slot++) {
        uint32_t *number = &table->rule_slots[slot % table->rule_slot_count];
        if (!*number || rule_same(&table->rules[*number], rule))
            return number;
    }
}

static void spread_rules(struct function_table *table)
{
    if (table->rule_slots == table->first_rule_slots)
        table->rule_slots = table->more_rule_slots;
    else
        memset(table->rule_slots, 0, table->rule_slot_count * sizeof *table->rule_slots);
    table->rule_slot_count *= 2;
    for (uint32_t i = 1; i < table->rule_count; i++)
        *rule_slot(table, &table->rules[i]) = i;
}

/* The number of RULE; 0 if there is no room for another rule. */
static uint32_t rule_number(struct function_table *table, const struct frame_rule *rule)
{
    if (rule->kind == RULE_UNKNOWN)
        return 0;
    uint32_t number = *rule_slot(table, rule);
    if (number || table->rule_count == RULES_MAX)
        return number;
    if (table->rule_count >= table->rule_slot_count / 2)
        spread_rules(table);
    number = table->rule_count++;
    table->rules[number] = *rule;
    *rule_slot(table, rule) = number;
    return number;
}

/* ---- Numbers ---- */

static uint8_t class_of(uint32_t row_count)
{
    uint8_t class = 0;
    while (UINT32_C(1) << class < row_count)
        class ++;
    return class;
}

/* A function's number, with room for ROW_COUNT rows; 0: there is no room. */
static uint32_t take_number(struct function_table *table, uint32_t row_count)
{
    uint8_t class = class_of(row_count);
    if (class >= ROW_CLASSES)
        return 0;
    uint32_t number = table->free[class];
    if (number) {
        table->free[class] = table->functions[number].next_removed;
        atomic_store_explicit(&table->reuses, table->reuses + 1, memory_order_relaxed);
        return number;
    }
    if (table->function_count == table->function_max ||
        table->row_max - table->row_count < UINT32_C(1) << class)
        return 0;
    number = table->function_count++;
    table->functions[number].first_row = table->row_count;
    table->functions[number].row_class = class;
    table->row_count += UINT32_C(1) << class;
    return number;
}

static void free_waiting(struct function_table *table)
{
    while (table->waiting) {
        uint32_t number = table->waiting;
        struct table_function *function = &table->functions[number];
        table->waiting = function->next_removed;
        char *name = function->name;
        function->name = NULL; /* first: if this is left in the middle, there is a leak at worst */
        atomic_signal_fence(memory_order_seq_cst);
        free(name);
        function->next_removed = table->free[function->row_class];
        table->free[function->row_class] = number;
    }
}

/* Reuse removed functions that have no readers. */
static void recycle(struct function_table *table)
{
    if (table->waiting && read_is_over(table->waiting_since))
        free_waiting(table);
    if (table->removed && !table->waiting) {
        table->waiting = table->removed;
        table->removed = 0;
        table->waiting_since = read_epoch();
    }
}

/* ---- Finding ---- */

static size_t granule_of(const struct function_table *table, uint64_t addr)
{
    return (size_t)((addr - table->start) / GRANULE_BYTES);
}

static bool covers(const struct table_function *function, uint64_t addr)
{
    return addr - function->start < function->bytes;
}

const struct table_function *ju_function_table_find(const struct function_table *table,
                                                    uint64_t addr)
{
    const struct table_granule *granule = &table->granules[granule_of(table, addr)];
    uint32_t number = atomic_load_explicit(&granule->first, memory_order_acquire);
    for (unsigned i = 0; number && i < GRANULE_BYTES; i++) {
        const struct table_function *function = &table->functions[number];
        if (covers(function, addr))
            return function;
        number = atomic_load_explicit(&function->next, memory_order_acquire);
    }
    number = atomic_load_explicit(&granule->covering, memory_order_acquire);
    const struct table_function *function = &table->functions[number];
    return number && covers(function, addr) ? function : NULL;
}

const struct frame_rule *ju_function_table_rule(const struct function_table *table,
                                                const struct table_function *function,
                                                uint64_t addr)
{
    const struct table_row *rows = &table->rows[function->first_row];
    uint32_t offset = (uint32_t)(addr - function->start), low = 0, high = function->row_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (rows[middle].offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    const struct frame_rule *rule = low ? &table->rules[rows[low - 1].rule] : NULL;
    return rule && rule->kind == RULE_OFFSET ? rule : NULL;
}

/* ---- Adding and removing ---- */

/* Whether a function has one of the addresses. */
static bool is_taken(const struct function_table *table, uint64_t start, uint32_t bytes)
{
    const uint64_t end = start + bytes;
    if (ju_function_table_find(table, start))
        return true;
    for (size_t i = granule_of(table, start); i <= granule_of(table, end - 1); i++) {
        uint32_t number = table->granules[i].first;
        for (; number; number = table->functions[number].next)
            if (table->functions[number].start >= start && table->functions[number].start < end)
                return true;
    }
    return false;
}

static void write_rows(struct function_table *table, struct table_function *function,
                       const struct table_row_draft *rows, uint32_t row_count)
{
    struct table_row *to = &table->rows[function->first_row];
    function->row_count = row_count;
    for (uint32_t i = 0; i < row_count; i++)
        to[i] = (struct table_row){rows[i].offset, rule_number(table, &rows[i].rule)};
}

/* A search of the process's unwinder may still be here (table_program.c), and finds nothing. */
static void begin_function(struct table_function *function)
{
    atomic_thread_fence(memory_order_release); /* the count of reuses comes first */
    function->bytes = 0;
    atomic_thread_fence(memory_order_release);
}

/* Publish NUMBER, or 0 in place of the function that begins and ends there, for the granules behind
 * the first. */
static void cover(struct function_table *table, const struct table_function *function,
                  uint32_t number)
{
    size_t last = granule_of(table, function->start + function->bytes - 1);
    for (size_t i = granule_of(table, function->start) + 1; i <= last; i++)
        atomic_store_explicit(&table->granules[i].covering, number, memory_order_release);
}

int ju_function_table_add(struct function_table *table, uint64_t start, uint32_t bytes,
                          const struct table_row_draft *rows, uint32_t row_count, char *name)
{
    if (is_taken(table, start, bytes))
        return -EEXIST;
    recycle(table);
    uint32_t number = take_number(table, row_count);
    if (!number)
        return -ENOSPC;
    struct table_function *function = &table->functions[number];
    struct table_granule *granule = &table->granules[granule_of(table, start)];
    begin_function(function);
    function->start = start;
    function->name = name;
    function->next = granule->first;
    write_rows(table, function, rows, row_count);
    atomic_thread_fence(memory_order_release);
    function->bytes = bytes;
    atomic_store_explicit(&granule->first, number, memory_order_release);
    cover(table, function, number);
    table->live_count++;
    return 0;
}

int ju_function_table_remove(struct function_table *table, uint64_t start)
{
    if (start - table->start >= table->bytes)
        return -ENOENT;
    _Atomic uint32_t *link = &table->granules[granule_of(table, start)].first;
    while (*link && table->functions[*link].start != start)
        link = &table->functions[*link].next;
    uint32_t number = *link;
    if (!number)
        return -ENOENT;
    struct table_function *function = &table->functions[number];
    atomic_fetch_add(&ju_removed, 1);
    cover(table, function, 0);
    *link = function->next;
    table->live_count--;
    function->next_removed = table->removed;
    table->removed = number;
    return 0;
}
