/* See function_table.h. */
#include "jitunwind/frames/function_table.h"

#include "jitunwind/frames/read_marks.h"
#include "jitunwind/frames/rule_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { RULES_MAX = 1 << 16, RULE_SLOTS = 2 * RULES_MAX };

/* ---- Memory ---- */

_Static_assert(sizeof(struct table_granule) == 8, "GRANULES_AT_ONCE");

static size_t granule_count(uint32_t bytes)
{
    return bytes / GRANULE_BYTES + 1;
}

/* The part for COUNT elements of BYTES, at *AT of the memory at BASE, or of what is reserved later.
 */
static struct grown_memory take_part(uint8_t *base, size_t *at, size_t count, size_t bytes)
{
    const struct grown_memory part = {base ? base + *at : NULL, ju_grown_bytes(count * bytes), 0};
    *at += part.bytes;
    return part;
}

/* Returns how many bytes all parts take. */
static size_t place_parts(struct function_table *table, uint8_t *base)
{
    size_t at = 0;
    table->granules =
        (void *)take_part(base, &at, granule_count(table->bytes), sizeof *table->granules).base;
    table->function_memory = take_part(base, &at, table->function_max, sizeof *table->functions);
    table->row_memory = take_part(base, &at, table->row_max, sizeof *table->rows);
    table->program = take_part(base, &at, PROGRAM_BYTES, 1).base;
    table->rule_memory = take_part(base, &at, RULES_MAX, sizeof *table->rules);
    table->slot_memory = take_part(base, &at, RULE_SLOTS, sizeof *table->more_rule_slots);
    table->functions = (void *)table->function_memory.base;
    table->rows = (void *)table->row_memory.base;
    table->rules = (void *)table->rule_memory.base;
    table->more_rule_slots = (void *)table->slot_memory.base;
    return at;
}

/* What a reader may look at in any case: each address's granule, and number 0 and rule 0.  The
 * system's one page of zeros serves for granules that are not written. */
static bool begin_parts(struct function_table *table)
{
    const size_t granules = granule_count(table->bytes) * sizeof *table->granules;
    return mprotect(table->granules, ju_grown_bytes(granules), PROT_READ) == 0 &&
           mprotect(table->program, ju_grown_bytes(PROGRAM_BYTES), PROT_READ | PROT_WRITE) == 0 &&
           ju_grown_reach(&table->function_memory, 1) && ju_grown_reach(&table->rule_memory, 1);
}

int ju_function_table_open(struct function_table *table, uint64_t start, uint32_t bytes)
{
    *table = (struct function_table){.start = start, .bytes = bytes};
    table->function_max = bytes / BYTES_PER_FUNCTION + 16;
    table->row_max = bytes / BYTES_PER_ROW + 1024;
    table->memory_bytes = place_parts(table, NULL);
    table->memory = ju_grown_reserve(table->memory_bytes);
    if (!table->memory)
        return -ENOMEM;
    place_parts(table, table->memory);
    if (!begin_parts(table)) {
        munmap(table->memory, table->memory_bytes);
        return -ENOMEM;
    }
    table->function_count = 1; /* number 0 is none, and rule 0 is RULE_UNKNOWN */
    table->rule_count = 1;
    table->rule_slots = table->first_rule_slots;
    table->rule_slot_count = FIRST_RULE_SLOTS;
    return 0;
}

/* Have the granules from FIRST to LAST be writable. */
static bool reach_granules(struct function_table *table, size_t first, size_t last)
{
    const size_t end = last / GRANULES_AT_ONCE + 1;
    for (size_t chunk = first / GRANULES_AT_ONCE; chunk < end; chunk++) {
        if (table->writable[chunk / 8] >> chunk % 8 & 1)
            continue;
        if (mprotect(table->granules + chunk * GRANULES_AT_ONCE, GROWN_STEP_BYTES,
                     PROT_READ | PROT_WRITE) != 0)
            return false;
        table->writable[chunk / 8] |= (uint8_t)(1u << chunk % 8);
    }
    return true;
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

/* Returns false if there is no memory for that. */
static bool spread_rules(struct function_table *table)
{
    if (!ju_grown_reach(&table->slot_memory,
                        2 * table->rule_slot_count * sizeof *table->rule_slots))
        return false;
    if (table->rule_slots == table->first_rule_slots)
        table->rule_slots = table->more_rule_slots;
    else
        memset(table->rule_slots, 0, table->rule_slot_count * sizeof *table->rule_slots);
    table->rule_slot_count *= 2;
    for (uint32_t i = 1; i < table->rule_count; i++)
        *rule_slot(table, &table->rules[i]) = i;
    return true;
}

/* The number of RULE; 0 if there is no room for another rule. */
static uint32_t rule_number(struct function_table *table, const struct frame_rule *rule)
{
    if (rule->kind == RULE_UNKNOWN)
        return 0;
    uint32_t number = *rule_slot(table, rule);
    if (number || table->rule_count == RULES_MAX)
        return number;
    if (!ju_grown_reach(&table->rule_memory, (table->rule_count + (size_t)1) * sizeof *rule) ||
        (table->rule_count >= table->rule_slot_count / 2 && !spread_rules(table)))
        return 0;
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

/* Have room for element number LAST, of BYTES. */
static bool reach(struct function_table *table, struct grown_memory *memory, size_t last,
                  size_t bytes)
{
    const bool is_there = ju_grown_reach(memory, (last + 1) * bytes);
    table->lacks_memory |= !is_there;
    return is_there;
}

static uint32_t pop(struct function_table *table, unsigned class)
{
    const uint32_t number = table->free[class];
    if (number) {
        table->free[class] = table->functions[number].next_removed;
        atomic_store_explicit(&table->reuses, table->reuses + 1, memory_order_relaxed);
    }
    return number;
}

static void push(struct function_table *table, uint32_t number, uint32_t first_row, unsigned class)
{
    struct table_function *function = &table->functions[number];
    function->first_row = first_row;
    function->row_class = (uint8_t) class;
    function->next_removed = table->free[class];
    table->free[class] = number;
}

/* A number without rows; 0: there is none. */
static uint32_t take_bare(struct function_table *table)
{
    const uint32_t number = pop(table, NO_ROWS);
    if (number)
        return number;
    return table->function_count < table->function_max &&
                   reach(table, &table->function_memory, table->function_count,
                         sizeof *table->functions)
               ? table->function_count++
               : 0;
}

/* With rows that nobody had. */
static uint32_t take_new(struct function_table *table, unsigned class)
{
    const uint32_t rows = UINT32_C(1) << class;
    if (table->row_max - table->row_count < rows ||
        !reach(table, &table->row_memory, table->row_count + (size_t)rows - 1, sizeof *table->rows))
        return 0;
    const uint32_t number = take_bare(table);
    if (number) {
        table->functions[number].first_row = table->row_count;
        table->functions[number].row_class = (uint8_t) class;
        table->row_count += rows;
    }
    return number;
}

/* From a larger block.  The rest of it stays free if there is a number for it.  Otherwise blocks
 * are joined first, which leaves numbers, and only then the rest is wasted. */
static uint32_t take_part_of_larger(struct function_table *table, unsigned class)
{
    uint32_t number = 0, other = 1;
    unsigned larger = class;
    while (!number && ++larger < ROW_CLASSES)
        number = pop(table, larger);
    if (!number)
        return 0;
    struct table_function *function = &table->functions[number];
    while (function->row_class > class && (other = take_bare(table)) != 0) {
        function->row_class--;
        push(table, other, function->first_row + (UINT32_C(1) << function->row_class),
             function->row_class);
    }
    if (other || !table->may_join)
        return number;
    push(table, number, function->first_row, function->row_class);
    return 0;
}

/* ---- Joining free blocks ---- */

/* LEFT and RIGHT ascend by their rows; so does what is returned. */
static uint32_t merge(struct function_table *table, uint32_t left, uint32_t right)
{
    struct table_function *functions = table->functions;
    uint32_t first = 0, *link = &first;
    while (left && right) {
        uint32_t *least = functions[left].first_row < functions[right].first_row ? &left : &right;
        *link = *least;
        link = &functions[*least].next_removed;
        *least = *link;
    }
    *link = left ? left : right;
    return first;
}

/* The first COUNT of *REST, which is set to what is behind them. */
static uint32_t sort(struct function_table *table, uint32_t *rest, uint32_t count)
{
    const uint32_t first = *rest;
    if (count == 1) {
        *rest = table->functions[first].next_removed;
        table->functions[first].next_removed = 0;
        return first;
    }
    const uint32_t left = sort(table, rest, count / 2);
    return merge(table, left, sort(table, rest, count - count / 2));
}

/* All free blocks, ascending.  They are in no list of a class then. */
static uint32_t take_all_blocks(struct function_table *table)
{
    uint32_t list = 0, count = 0, number;
    for (unsigned class = 0; class < ROW_CLASSES; class ++)
        while ((number = table->free[class]) != 0) {
            table->free[class] = table->functions[number].next_removed;
            table->functions[number].next_removed = list;
            list = number;
            count++;
        }
    return count ? sort(table, &list, count) : 0;
}

static unsigned largest_class(uint32_t rows)
{
    unsigned class = 0;
    while (class + 1 < ROW_CLASSES && UINT32_C(2) << class <= rows)
        class ++;
    return class;
}

/* Free the rows [FIRST, END), which were the blocks of NUMBERS up to BEHIND: in few blocks. */
static void free_rows(struct function_table *table, uint32_t numbers, uint32_t behind,
                      uint32_t first, uint32_t end)
{
    if (end == table->row_count)
        end = table->row_count = first;
    while (numbers != behind) {
        const uint32_t next = table->functions[numbers].next_removed;
        const unsigned class = first < end ? largest_class(end - first) : NO_ROWS;
        push(table, numbers, first, class);
        first += class == NO_ROWS ? 0 : UINT32_C(1) << class;
        numbers = next;
    }
}

static void join_blocks(struct function_table *table)
{
    const struct table_function *functions = table->functions;
    uint32_t number = take_all_blocks(table);
    table->may_join = false;
    while (number) {
        const uint32_t run = number, first = functions[number].first_row;
        uint32_t end = first;
        for (; number && functions[number].first_row == end;
             number = functions[number].next_removed)
            end += UINT32_C(1) << functions[number].row_class;
        free_rows(table, run, number, first, end);
    }
}

/* ---- Numbers for functions ---- */

static uint32_t take_now(struct function_table *table, unsigned class)
{
    uint32_t number = pop(table, class);
    if (!number)
        number = take_new(table, class);
    return number ? number : take_part_of_larger(table, class);
}

/* A function's number, with room for ROW_COUNT rows; 0: there is no room. */
static uint32_t take_number(struct function_table *table, uint32_t row_count)
{
    const unsigned class = class_of(row_count);
    if (class >= ROW_CLASSES)
        return 0;
    uint32_t number = take_now(table, class);
    if (number || !table->may_join)
        return number;
    join_blocks(table);
    return take_now(table, class);
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
        push(table, number, function->first_row, function->row_class);
        table->may_join = true;
    }
}

/* An arena without functions is as if it were new. */
void ju_function_table_recycle(struct function_table *table)
{
    if (table->waiting && read_is_over(table->waiting_since))
        free_waiting(table);
    if (table->removed && !table->waiting) {
        table->waiting = table->removed;
        table->removed = 0;
        table->waiting_since = read_epoch();
        if (read_is_over(table->waiting_since))
            free_waiting(table);
    }
    if (table->may_join && table->live_count == 0 && !table->waiting)
        join_blocks(table);
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
    ju_function_table_recycle(table);
    if (!reach_granules(table, granule_of(table, start), granule_of(table, start + bytes - 1)))
        return -ENOMEM;
    table->lacks_memory = false;
    uint32_t number = take_number(table, row_count);
    if (!number)
        return table->lacks_memory ? -ENOMEM : -ENOSPC;
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
