/* See inlined_calls.h. */
#include "injector/process/inlined_calls.h"

#include "injector/arrays/array.h"
#include "injector/text/code_name.h"

#include <stdio.h>
#include <xxhash.h>

/* Names are looked up without their mark. */
static const char mark[] = " (inlined)";
enum { MARK_BYTES = sizeof mark - 1 };

/* Where there is room for them: far from where programs, their heaps and stacks are, and in the
 * half of the addresses that is the user's. */
#define FIRST_BASE (UINT64_C(1) << 44)
#define BASE_STEP  (UINT64_C(1) << 40)
#define LAST_BASE  (UINT64_C(1) << 46)

/* ---- Names ---- */

static size_t slot_of(const struct inlined_calls *calls, uint64_t hash, const char *text,
                      size_t bytes)
{
    size_t slot = (size_t)hash & (calls->size - 1);
    for (; calls->numbers[slot]; slot = (slot + 1) & (calls->size - 1)) {
        const struct inlined_name *name = &calls->names[calls->numbers[slot] - 1];
        if (name->hash == hash && name->bytes == bytes && memcmp(name->text, text, bytes) == 0)
            break;
    }
    return slot;
}

static int enlarge(struct inlined_calls *calls)
{
    size_t size = calls->size ? calls->size * 2 : 256;
    uint32_t *numbers = calloc(size, sizeof *numbers);
    if (!numbers)
        return -1;
    free(calls->numbers);
    calls->numbers = numbers;
    calls->size = size;
    for (size_t i = 0; i < calls->count; i++) {
        const struct inlined_name *name = &calls->names[i];
        numbers[slot_of(calls, name->hash, name->text, name->bytes)] = (uint32_t)i + 1;
    }
    return 0;
}

/* CLEAN is a name fit to be shown, a block of malloc that is the list's from now on: it gets its
 * mark.  Returns 0, or -1 without memory. */
static int append(struct inlined_calls *calls, char *clean, size_t bytes, uint64_t hash)
{
    char *text = realloc(clean, bytes + MARK_BYTES + 1);
    if (!text || array_reserve(calls->names, calls->count, calls->capacity)) {
        free(text ? text : clean);
        return -1;
    }
    memcpy(text + bytes, mark, sizeof mark);
    calls->names[calls->count++] = (struct inlined_name){text, bytes, hash};
    return 0;
}

/* The name as it is shown. */
static char *clean_name(struct line_text name)
{
    return code_name_clean(name.text ? name.text : "", name.bytes);
}

/* The number of NAME, given to it if it has none.  UINT32_MAX without memory. */
static uint32_t number_of(struct inlined_calls *calls, struct line_text name)
{
    if (2 * (calls->count + 1) > calls->size && enlarge(calls))
        return UINT32_MAX;
    char *text = clean_name(name);
    size_t bytes = text ? strlen(text) : 0;
    uint64_t hash = text ? XXH3_64bits(text, bytes) : 0;
    if (!text)
        return UINT32_MAX;
    size_t slot = slot_of(calls, hash, text, bytes);
    if (calls->numbers[slot]) {
        free(text);
        return calls->numbers[slot] - 1;
    }
    if (append(calls, text, bytes, hash))
        return UINT32_MAX;
    calls->numbers[slot] = (uint32_t)calls->count;
    return (uint32_t)calls->count - 1;
}

uint64_t inlined_call_addr(const struct inlined_calls *calls, struct line_text name)
{
    char *text = calls->count ? clean_name(name) : NULL;
    if (!text)
        return 0;
    size_t bytes = strlen(text);
    uint32_t number = calls->numbers[slot_of(calls, XXH3_64bits(text, bytes), text, bytes)];
    free(text);
    return number ? calls->base + (number - UINT64_C(1)) * INLINED_CALL_BYTES : 0;
}

/* ---- Functions ---- */

/* What one process needs. */
struct process_calls {
    struct jit_process *process;
    uint32_t *seen; /* by name: the last process that needs it, its number + 1 */
    size_t seen_count;
    uint32_t number;
};

/* A function for name NUMBER, whose address is set when all names are known: dump DUMP tells its
 * machine. */
static int add_function(struct process_calls *own, uint32_t number, uint32_t dump)
{
    struct code_log *log = &own->process->log;
    struct jit_function *function = code_log_add_function(log, dump);
    if (!function)
        return -1;
    function->code_index = number;
    return code_log_add_event(log, log->events[0].time_ns, CODE_EVENT_LOAD,
                              log->function_count - 1);
}

static int note_name(struct inlined_calls *calls, struct process_calls *own, struct line_text name,
                     uint32_t dump)
{
    uint32_t number = number_of(calls, name);
    if (number == UINT32_MAX)
        return -1;
    while (own->seen_count <= number) {
        size_t room = own->seen_count ? own->seen_count * 2 : 256;
        uint32_t *seen = realloc(own->seen, room * sizeof *seen);
        if (!seen)
            return -1;
        memset(seen + own->seen_count, 0, (room - own->seen_count) * sizeof *seen);
        own->seen = seen;
        own->seen_count = room;
    }
    if (own->seen[number] == own->number + 1)
        return 0;
    own->seen[number] = own->number + 1;
    calls->added++;
    return add_function(own, number, dump);
}

static int add_process(struct inlined_calls *calls, struct process_calls *own)
{
    struct line_table table = {0};
    struct code_log *log = &own->process->log;
    int result = 0;
    for (size_t i = 0, count = log->function_count; log->event_count && i < count && !result; i++) {
        const struct jit_function function = log->functions[i];
        if (!function.lines || !function.lines->inlines || function.dump == NO_DUMP)
            continue;
        result = code_lines_decode(function.lines, function.size, &table);
        for (size_t n = 0; n < table.inline_count && !result; n++)
            result = note_name(calls, own, table.inlines[n].name, function.dump);
    }
    line_table_free(&table);
    return result;
}

static bool reaches_into(uint64_t start, uint64_t size, uint64_t base, uint64_t end)
{
    return start < end && (start >= base || size > base - start);
}

/* Whether no process has, or ever had, anything in [BASE, END). */
static bool is_free(const struct jit_processes *processes, const size_t *firsts,
                    const struct profile *profile, uint64_t base, uint64_t end)
{
    for (size_t i = 0; i < profile->map_count; i++)
        if (reaches_into(profile->maps[i].map.start, profile->maps[i].map.len, base, end))
            return false;
    for (size_t i = 0; i < processes->count; i++)
        for (size_t f = 0; f < firsts[i]; f++) {
            const struct jit_function *function = &processes->items[i].log.functions[f];
            if (reaches_into(function->addr, function->size, base, end))
                return false;
        }
    return true;
}

/* Let process number INDEX's functions from FIRST on be where their names are. */
static void place(const struct inlined_calls *calls, struct code_log *log, size_t first)
{
    for (size_t f = first; f < log->function_count; f++) {
        struct jit_function *function = &log->functions[f];
        const struct inlined_name *name = &calls->names[function->code_index];
        function->addr = calls->base + function->code_index * INLINED_CALL_BYTES;
        function->size = INLINED_CALL_BYTES;
        function->code_index = 0;
        jit_function_set_name(function, name->text, name->bytes + MARK_BYTES);
    }
}

static int place_all(struct inlined_calls *calls, struct jit_processes *processes,
                     const size_t *firsts, const struct profile *profile, struct findings *findings)
{
    uint64_t bytes = calls->count * INLINED_CALL_BYTES;
    calls->base = FIRST_BASE;
    while (!is_free(processes, firsts, profile, calls->base, calls->base + bytes))
        if ((calls->base += BASE_STEP) >= LAST_BASE)
            return report_failure(findings, "no addresses are free for inlined calls: say "
                                            "--inlines dwarf");
    for (size_t i = 0; i < processes->count; i++) {
        place(calls, &processes->items[i].log, firsts[i]);
        if (code_log_sort(&processes->items[i].log, findings))
            return -1;
    }
    return 0;
}

int inlined_calls_add(struct inlined_calls *calls, struct jit_processes *processes,
                      const struct profile *profile, struct findings *findings)
{
    struct process_calls own = {0};
    size_t *firsts = calloc(processes->count + 1, sizeof *firsts);
    int result = firsts ? 0 : -1;
    *calls = (struct inlined_calls){0};
    for (size_t i = 0; i < processes->count && !result; i++) {
        own.process = &processes->items[i];
        own.number = (uint32_t)i;
        firsts[i] = own.process->log.function_count;
        result = add_process(calls, &own);
    }
    result = result ? report_failure(findings, "out of memory")
                    : place_all(calls, processes, firsts, profile, findings);
    free(own.seen);
    free(firsts);
    return result;
}

void inlined_calls_free(struct inlined_calls *calls)
{
    for (size_t i = 0; i < calls->count; i++)
        free(calls->names[i].text);
    free(calls->names);
    free(calls->numbers);
    *calls = (struct inlined_calls){0};
}
