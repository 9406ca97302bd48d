/* See inline_rows.h. */
#include "agents/java/inline_rows.h"

#include <jvmticmlr.h>
#include <stdlib.h>

/* More than any code has: HotSpot inlines 15 deep, and its code ends at some MiB. */
enum { DEPTH_MOST = 1024, FIRST_SLOTS = 256 };

/* ---- Calls ---- */

static size_t hash(uint32_t parent, const struct inlined_call *call)
{
    uint64_t sum = (uint64_t)(uintptr_t)call->method * UINT64_C(0x9e3779b97f4a7c15);
    sum = (sum ^ parent ^ (uint64_t)(uint32_t)call->bci << 32) * UINT64_C(0xff51afd7ed558ccd);
    return (size_t)(sum >> 29);
}

/* The slot of the CALL in PARENT, or the empty one where it would be. */
static size_t slot_of(const struct inline_rows *rows, uint32_t parent,
                      const struct inlined_call *call)
{
    size_t at = hash(parent, call) & (rows->slot_count - 1);
    for (; rows->slots[at]; at = (at + 1) & (rows->slot_count - 1)) {
        const uint32_t i = rows->slots[at] - 1;
        if (rows->inlines[i].parent == parent && rows->calls[i].method == call->method &&
            rows->calls[i].bci == call->bci)
            break;
    }
    return at;
}

static bool grow_slots(struct inline_rows *rows)
{
    if (2 * (rows->inline_count + 1) < rows->slot_count)
        return true;
    free(rows->slots);
    rows->slot_count = rows->slot_count ? 2 * rows->slot_count : FIRST_SLOTS;
    rows->slots = calloc(rows->slot_count, sizeof *rows->slots);
    for (uint32_t i = 0; rows->slots && i < rows->inline_count; i++)
        rows->slots[slot_of(rows, rows->inlines[i].parent, &rows->calls[i])] = i + 1;
    return rows->slots != NULL;
}

static bool grow_inlines(struct inline_rows *rows)
{
    if (rows->inline_count < rows->inline_capacity)
        return true;
    const size_t capacity = rows->inline_capacity ? 2 * rows->inline_capacity : 64;
    struct jitdump_inline *inlines = realloc(rows->inlines, capacity * sizeof *inlines);
    rows->inlines = inlines ? inlines : rows->inlines;
    struct inlined_call *calls = realloc(rows->calls, capacity * sizeof *calls);
    rows->calls = calls ? calls : rows->calls;
    rows->inline_capacity = inlines && calls ? capacity : rows->inline_capacity;
    return inlines && calls;
}

static struct jitdump_inline described(struct java_methods *methods, uint32_t parent,
                                       const struct inlined_call *call)
{
    struct jitdump_inline inlined = {.name = "?", .parent = parent};
    const struct java_method *method = java_method_of(methods, call->method);
    if (method) {
        inlined.name = method->name;
        inlined.decl_file = method->file;
        inlined.decl_line = java_method_line(method, 0);
    }
    const struct java_method *caller = java_method_of(methods, call->caller);
    if (caller) {
        inlined.call_file = caller->file;
        inlined.call_line = java_method_line(caller, call->bci);
    }
    return inlined;
}

/* The number of CALL in PARENT; JITDUMP_NOT_INLINED: no memory. */
static uint32_t number_of(struct inline_rows *rows, struct java_methods *methods, uint32_t parent,
                          const struct inlined_call *call)
{
    if (!grow_slots(rows))
        return JITDUMP_NOT_INLINED;
    const size_t slot = slot_of(rows, parent, call);
    if (rows->slots[slot])
        return rows->slots[slot] - 1;
    if (!grow_inlines(rows))
        return JITDUMP_NOT_INLINED;
    const uint32_t number = (uint32_t)rows->inline_count++;
    rows->calls[number] = *call;
    rows->inlines[number] = described(methods, parent, call);
    rows->slots[slot] = number + 1;
    return number;
}

/* ---- Rows ---- */

/* The row at ADDR of the bytecode at BCI of a method. */
static struct jitdump_line line_of(struct java_methods *methods, jmethodID id, jint bci,
                                   uint64_t addr)
{
    const struct java_method *method = java_method_of(methods, id);
    return (struct jitdump_line){.addr = addr,
                                 .file = method ? method->file : NULL,
                                 .line = method ? java_method_line(method, bci) : 0};
}

/* The row that begins at ADDR, with the calls of INFO. */
static bool read_row(struct inline_rows *rows, struct java_methods *methods,
                     const PCStackInfo *info, uint64_t addr)
{
    uint32_t inlined = JITDUMP_NOT_INLINED;
    for (jint i = info->numstackframes - 2; i >= 0; i--) {
        const struct inlined_call call = {info->methods[i], info->methods[i + 1],
                                          info->bcis[i + 1]};
        inlined = number_of(rows, methods, inlined, &call);
        if (inlined == JITDUMP_NOT_INLINED)
            return false;
    }
    const struct jitdump_line line = line_of(methods, info->methods[0], info->bcis[0], addr);
    return code_rows_add(&rows->rows, &line, inlined);
}

/* The first byte is the method's own, at its first line: readers tell functions apart by where they
 * begin, and what the first row of the record is of differs from one code of a method to the next.
 */
static bool read_begin(struct inline_rows *rows, struct java_methods *methods,
                       const PCStackInfo *info, uint64_t begin)
{
    const struct jitdump_line line =
        line_of(methods, info->methods[info->numstackframes - 1], 0, begin);
    return code_rows_add(&rows->rows, &line, JITDUMP_NOT_INLINED);
}

static bool read_record(struct inline_rows *rows, struct java_methods *methods,
                        const jvmtiCompiledMethodLoadInlineRecord *record, uint64_t begin,
                        uint64_t end)
{
    uint64_t addr = begin;
    if (record->numpcs > 0 && record->pcinfo[0].numstackframes >= 1) {
        if (!read_begin(rows, methods, &record->pcinfo[0], begin))
            return false;
        addr = begin + 1;
    }
    for (jint i = 0; i < record->numpcs; i++) {
        const PCStackInfo *info = &record->pcinfo[i];
        const uint64_t pc = (uint64_t)(uintptr_t)info->pc;
        if (pc <= addr || pc > end || info->numstackframes < 1 || info->numstackframes > DEPTH_MOST)
            continue;
        if (!read_row(rows, methods, info, addr))
            return false;
        addr = pc;
    }
    /* Behind the last one are the stubs: code of the method, and of no line. */
    return !rows->rows.count || addr == end ||
           code_rows_add(&rows->rows, &(struct jitdump_line){.addr = addr}, JITDUMP_NOT_INLINED);
}

bool inline_rows_read(struct inline_rows *rows, struct java_methods *methods, const void *info,
                      uint64_t begin, uint64_t end)
{
    *rows = (struct inline_rows){0};
    for (const jvmtiCompiledMethodLoadRecordHeader *header = info; header; header = header->next)
        if (header->kind == JVMTI_CMLR_INLINE_INFO)
            return read_record(rows, methods, (const void *)header, begin, end);
    return true;
}

void inline_rows_free(struct inline_rows *rows)
{
    code_rows_free(&rows->rows);
    free(rows->calls);
    free(rows->inlines);
    free(rows->slots);
    *rows = (struct inline_rows){0};
}
