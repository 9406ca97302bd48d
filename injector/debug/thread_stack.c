/* See thread_stack.h. */
#include "injector/debug/thread_stack.h"

#include "injector/arrays/array.h"
#include "injector/arrays/bisect.h"
#include "injector/log/lines/code_lines.h"
#include "injector/log/lines/line_entry.h"
#include "injector/recording/injected_map.h"
#include "injector/recording/perf_data/perf_format.h"

#include <inttypes.h>
#include <stdlib.h>

enum { MOST_STACK_FRAMES = 8192 };

/* ---- Beginning ---- */

/* In a core there are all stacks; of a process that goes on only those that were copied. */
static bool find_stack(void *context, uint64_t addr, struct user_stack *stack)
{
    const struct snapshot *snapshot = ((const struct thread_stacks *)context)->snapshot;
    for (size_t i = 0; i < snapshot->thread_count; i++) {
        const struct snapshot_thread *thread = &snapshot->threads[i];
        if (!thread->interrupted || addr - thread->interrupted_start >= thread->interrupted_bytes)
            continue;
        *stack = (struct user_stack){thread->interrupted, thread->interrupted_start,
                                     thread->interrupted_bytes};
        return true;
    }
    const struct snapshot_map *map = snapshot_map_at(snapshot, addr);
    if (!map || map->executable || addr - map->start >= map->byte_count)
        return false;
    *stack = (struct user_stack){map->bytes, map->start, map->byte_count};
    return true;
}

static const uint8_t *find_code(void *context, uint64_t addr, uint64_t size)
{
    enum { MOST_CODE_BYTES = 1 << 16 };
    struct thread_stacks *stacks = context;
    if (size > MOST_CODE_BYTES)
        return NULL;
    if (!stacks->code)
        stacks->code = malloc(MOST_CODE_BYTES);
    return stacks->code && snapshot_read(stacks->snapshot, addr, stacks->code, (size_t)size)
               ? stacks->code
               : NULL;
}

int thread_stacks_begin(struct thread_stacks *stacks, const struct snapshot *snapshot,
                        const struct records *records, const struct jit_processes *processes,
                        const struct timeline *timelines, const char *root, uint64_t time_ns,
                        struct findings *findings)
{
    *stacks = (struct thread_stacks){.snapshot = snapshot, .records = records, .time_ns = time_ns};
    if (!machine_unwinds(snapshot->machine))
        return report_failure(findings, "%s: stacks of %s can't be unwound", snapshot->path,
                              snapshot->machine->names[0]);
    uint32_t life = process_life_at(&processes->lives, snapshot->pid,
                                    (struct life_moment){time_ns, UINT64_MAX});
    if (life == NO_LIFE)
        return report_failure(findings, "%s: nothing is mapped in process %" PRIu32, snapshot->path,
                              snapshot->pid);
    const struct stack_walk_options options = {
        .root = root, .find_stack = find_stack, .find_code = find_code, .context = stacks};
    if (space_source_begin(&stacks->source, records, processes, timelines) ||
        stack_walker_begin(&stacks->walker, &stacks->source, snapshot->machine, &options) ||
        address_space_begin(&stacks->space, &stacks->source, life, NULL) ||
        address_space_play(&stacks->space, time_ns))
        return report_failure(findings, "out of memory");
    stacks->symbols.files = &stacks->walker.files;
    return 0;
}

/* ---- Frames ---- */

static struct stack_frame *add_frame(struct thread_stacks *stacks, uint64_t pc)
{
    if (array_reserve(stacks->frames, stacks->count, stacks->capacity))
        return NULL;
    struct stack_frame *frame = &stacks->frames[stacks->count++];
    *frame = (struct stack_frame){.pc = pc};
    return frame;
}

/* Names of files that V8 has overwritten, and nothing could restore, are none. */
static void set_source(struct stack_frame *frame, struct line_text file, uint32_t line)
{
    if (!file.text || !file.bytes || line_name_is_overwritten(file))
        return;
    frame->file = file;
    frame->line = line;
}

/* A place in the source. */
struct source_line {
    struct line_text file;
    uint32_t line;
};

/* Decode FUNCTION's source: the line of OFFSET, and the call that was inlined there. */
static int find_source(struct thread_stacks *stacks, const struct jit_function *function,
                       uint64_t offset, struct source_line *source, int32_t *call)
{
    struct line_table *table = &stacks->lines;
    size_t behind;
    line_table_empty(table);
    if (code_lines_decode(function->lines, function->size, table))
        return -1;
    array_bisect(behind, table->row_count, table->rows[behind].offset <= offset);
    if (behind)
        *source = (struct source_line){table->rows[behind - 1].file, table->rows[behind - 1].line};
    *call = line_spans_call_at(table->spans, table->span_count, offset);
    return 0;
}

/* A frame for CALL and each that it was inlined in; SOURCE becomes where the last was called. */
static int add_inlined(struct thread_stacks *stacks, int32_t call, uint64_t pc,
                       struct source_line *source)
{
    while (call != LINE_NOT_INLINED) {
        const struct line_inline *inlined = &stacks->lines.inlines[call];
        struct stack_frame *frame = add_frame(stacks, pc);
        if (!frame)
            return -1;
        frame->inlined = frame->jit = true;
        frame->name = inlined->name;
        set_source(frame, source->file, source->line);
        *source = (struct source_line){inlined->call_file, inlined->call_line};
        call = inlined->parent;
    }
    return 0;
}

/* The frames of FUNCTION at OFFSET: its inlined calls, then its own. */
static int add_function(struct thread_stacks *stacks, const struct jit_function *function,
                        uint64_t offset, uint64_t pc)
{
    struct source_line source = {.line = 0};
    int32_t call = LINE_NOT_INLINED;
    if (function->lines && find_source(stacks, function, offset, &source, &call))
        return -1;
    struct stack_frame *frame =
        add_inlined(stacks, call, pc, &source) ? NULL : add_frame(stacks, pc);
    if (!frame)
        return -1;
    frame->jit = true;
    frame->name = (struct line_text){function->name, function->name_bytes};
    frame->offset = pc - function->addr;
    set_source(frame, source.file, source.line);
    stacks->jit_count++;
    return 0;
}

/* The frames of a native function at ADDR, as FILE has it. */
static int add_native(struct thread_stacks *stacks, struct native_file *file, uint64_t addr,
                      uint64_t pc, uint64_t back)
{
    struct native_place places[NATIVE_PLACES];
    size_t count = native_symbols_at(&stacks->symbols, file, addr, places);
    for (size_t i = 0; i < count; i++) {
        struct stack_frame *frame = add_frame(stacks, pc);
        if (!frame)
            return -1;
        frame->inlined = places[i].inlined;
        frame->name = line_text_of(places[i].name);
        frame->offset = places[i].name && !places[i].inlined ? places[i].offset + back : 0;
        frame->module = file->map->map.filename;
        frame->in_memory = !places[i].name && injected_image_or_memory(&file->map->map);
        set_source(frame, line_text_of(places[i].file), (uint32_t)places[i].line);
    }
    return count ? 0 : -1;
}

/* Add a frame in map number WHAT of the profile, or in none. */
static int add_mapped(struct thread_stacks *stacks, uint32_t what, uint64_t ip, uint64_t pc)
{
    uint64_t addr;
    if (what != SPACE_NOTHING) {
        struct native_file *file = native_file_of(&stacks->walker.files, what);
        if (!file)
            return -1;
        if (native_file_addr(&stacks->walker.files, file, what, ip, &addr))
            return add_native(stacks, file, addr, pc, pc - ip);
    }
    struct stack_frame *frame = add_frame(stacks, pc);
    if (frame && what != SPACE_NOTHING) {
        frame->module = stacks->records->maps[what].map.filename;
        frame->in_memory = injected_image_or_memory(&stacks->records->maps[what].map);
    }
    return frame ? 0 : -1;
}

static int add_walked(struct thread_stacks *stacks, size_t i)
{
    const struct stack_walker *walker = &stacks->walker;
    uint64_t ip = walker->ips[i], pc = walker->frames[i].exact ? ip : ip + 1;
    uint32_t what = walker->frames[i].what;
    size_t process;
    if (what == SPACE_NOTHING || !(what & SPACE_FUNCTION))
        return add_mapped(stacks, what, ip, pc);
    const struct jit_function *function =
        space_function(&stacks->source, what & ~SPACE_FUNCTION, &process);
    return add_function(stacks, function, ip - function->addr, pc);
}

/* ---- A thread ---- */

int thread_stack_walk(struct thread_stacks *stacks, const struct snapshot_thread *thread)
{
    uint8_t registers[8 * PERF_REGISTERS];
    const uint64_t mask = machine_perf_mask(stacks->snapshot->machine);
    const struct perf_sample sample = {
        .time_ns = stacks->time_ns,
        .user_registers = {SAMPLE_ABI_64, mask, thread->has_registers ? registers : NULL},
        .user_stack = {.bytes = thread->stack, .size = thread->stack ? thread->stack_bytes : 0}};
    uint8_t *at = registers;
    for (unsigned i = 0; i < PERF_REGISTERS; i++)
        if (mask >> i & 1) {
            perf_put_u64(at, thread->registers[i]);
            at += 8;
        }
    stacks->count = stacks->jit_count = 0;
    stack_walk(&stacks->walker, &sample, &stacks->space, MOST_STACK_FRAMES);
    stacks->end = stacks->walker.chain_end;
    for (size_t i = 0; !stacks->walker.no_memory && i < stacks->walker.ip_count; i++)
        if (add_walked(stacks, i))
            return -1;
    return stacks->walker.no_memory ? -1 : 0;
}

void thread_stacks_end(struct thread_stacks *stacks)
{
    native_symbols_free(&stacks->symbols);
    address_space_end(&stacks->space);
    stack_walker_end(&stacks->walker);
    space_source_free(&stacks->source);
    line_table_free(&stacks->lines);
    free(stacks->frames);
    free(stacks->code);
    *stacks = (struct thread_stacks){0};
}
