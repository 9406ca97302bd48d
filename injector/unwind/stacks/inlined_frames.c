/* See inlined_frames.h. */
#include "injector/unwind/stacks/inlined_frames.h"

#include "injector/recording/perf_data/perf_format.h"

#include <stdlib.h>

/* The part of a function's line table that is kept. */
struct inlined_code {
    struct line_span *spans; /* by offset */
    size_t span_count;
    struct inlined_place {
        int32_t parent; /* as in line_inline */
        uint64_t addr;
    } * places;
};

int inlined_frames_begin(struct inlined_frames *frames, const struct space_source *source,
                         const struct inlined_calls *calls)
{
    *frames = (struct inlined_frames){.source = source, .calls = calls};
    if (!calls)
        return 0;
    for (size_t i = 0; i < source->processes->count; i++)
        frames->count += source->timelines[i].log->function_count;
    frames->codes = calloc(frames->count + 1, sizeof(struct inlined_code *));
    return frames->codes ? 0 : -1;
}

static void free_code(struct inlined_code *code)
{
    if (!code)
        return;
    free(code->spans);
    free(code->places);
    free(code);
}

/* Returns NULL without memory. */
static struct inlined_code *keep(const struct inlined_frames *frames,
                                 const struct line_table *table)
{
    struct inlined_code *code = calloc(1, sizeof *code);
    if (!code)
        return NULL;
    code->spans = malloc((table->span_count + 1) * sizeof *code->spans);
    code->places = malloc((table->inline_count + 1) * sizeof *code->places);
    if (!code->spans || !code->places) {
        free_code(code);
        return NULL;
    }
    if (table->span_count)
        memcpy(code->spans, table->spans, table->span_count * sizeof *code->spans);
    code->span_count = table->span_count;
    for (size_t i = 0; i < table->inline_count; i++)
        code->places[i] = (struct inlined_place){
            table->inlines[i].parent, inlined_call_addr(frames->calls, &table->inlines[i])};
    return code;
}

static const struct inlined_code *code_of(struct inlined_frames *frames, uint32_t number,
                                          const struct jit_function *function)
{
    if (!frames->codes[number] &&
        code_lines_decode(function->lines, function->size, &frames->table) == 0)
        frames->codes[number] = keep(frames, &frames->table);
    return frames->codes[number];
}

/* Put the calls that were inlined at PC into ADDRS, of MOST, the innermost first.  PC belongs to
 * WHAT, a number of address_space_at.  Returns how many there are, MOST + 1 if they have no room,
 * or SIZE_MAX without memory. */
static size_t inlined_at(struct inlined_frames *frames, uint32_t what, uint64_t pc, uint64_t *addrs,
                         size_t most)
{
    size_t process, count = 0;
    if (!frames->calls || what == SPACE_NOTHING || !(what & SPACE_FUNCTION))
        return 0;
    uint32_t number = what & ~SPACE_FUNCTION;
    const struct jit_function *function = space_function(frames->source, number, &process);
    if (!function->lines || !function->lines->inlines)
        return 0;
    const struct inlined_code *code = code_of(frames, number, function);
    if (!code)
        return SIZE_MAX;
    for (int32_t call = line_spans_call_at(code->spans, code->span_count, pc - function->addr);
         call != LINE_NOT_INLINED; call = code->places[call].parent) {
        if (!code->places[call].addr)
            continue;
        if (count == most)
            return most + 1;
        addrs[count++] = code->places[call].addr;
    }
    return count;
}

/* ---- Chains ---- */

/* A chain while it is made. */
struct longer_chain {
    struct inlined_frames *frames;
    uint64_t *ips;
    size_t count, most;
    size_t inlined; /* of these */
};

/* Add IP, and in front of it the calls inlined at PC, which belongs to WHAT.  Returns 0, 1 if there
 * is no room, or -1 without memory. */
static int add(struct longer_chain *chain, uint64_t ip, uint32_t what, uint64_t pc)
{
    size_t room = chain->most - chain->count;
    size_t inlined = inlined_at(chain->frames, what, pc, chain->ips + chain->count, room);
    if (inlined == SIZE_MAX)
        return -1;
    if (inlined >= room)
        return 1;
    chain->count += inlined;
    chain->inlined += inlined;
    chain->ips[chain->count++] = ip;
    return 0;
}

static size_t result_of(const struct longer_chain *chain, int result)
{
    if (result < 0)
        return SIZE_MAX;
    return result || !chain->inlined ? 0 : chain->count;
}

size_t inlined_frames_of_stack(struct inlined_frames *frames, const struct stack_walker *walker,
                               uint64_t *ips, size_t most)
{
    struct longer_chain chain = {.frames = frames, .ips = ips, .most = most};
    int result = 0;
    for (size_t i = 0; i < walker->ip_count && !result; i++)
        result = add(&chain, walker->ips[i], walker->frames[i].what, walker->ips[i]);
    return result_of(&chain, result);
}

/* Where ADDRESS, of SPACE, was seen or called; *WHAT is there. */
static uint64_t place_of(const struct stack_address *address, const struct address_space *space,
                         uint32_t *what)
{
    uint64_t pc = address->called ? address->ip - 1 : address->ip;
    *what = address->mode == PERF_MISC_USER ? address_space_at(space, pc) : SPACE_NOTHING;
    bool same =
        *what != SPACE_NOTHING && address->seen && address_space_at(space, address->seen) == *what;
    return same ? address->seen : pc;
}

size_t inlined_frames_of_sample(struct inlined_frames *frames, const struct perf_sample *sample,
                                const struct address_space *space, uint64_t *ips, size_t most)
{
    struct longer_chain chain = {.frames = frames, .ips = ips, .most = most};
    struct stack_reading reading = stack_reading_begin(sample);
    struct stack_address address;
    uint32_t what = SPACE_NOTHING;
    uint64_t pc = 0;
    bool more = true;
    int result = 0;
    for (size_t i = 0; i < sample->chain.count && !result; i++) {
        uint64_t entry = perf_get_u64(sample->chain.entries + 8 * i);
        if (more && reading.next == i && (more = stack_reading_next(&reading, &address)))
            pc = place_of(&address, space, &what);
        bool is_mark = !more || reading.next != i + 1; /* in front of the address */
        result = add(&chain, entry, is_mark ? SPACE_NOTHING : what, pc);
    }
    return result_of(&chain, result);
}

void inlined_frames_end(struct inlined_frames *frames)
{
    for (size_t i = 0; frames->codes && i < frames->count; i++)
        free_code(frames->codes[i]);
    free(frames->codes);
    line_table_free(&frames->table);
    *frames = (struct inlined_frames){0};
}
