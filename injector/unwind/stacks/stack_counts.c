/* See stack_counts.h. */
#include "injector/unwind/stacks/stack_counts.h"

#include "injector/arrays/array.h"
#include "injector/text/plural.h"
#include "injector/text/printable_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_STOPS = 3, LARGEST_COPY = 65528, COPY_STEP = 1024 };

/* Addresses that are further apart are in two stacks: before an exec a process has the same pid and
 * another stack, at a place chosen at random. */
#define MOST_STACK_BYTES (UINT64_C(1) << 28)

/* ---- Threads ---- */

/* The extent of THREAD, made if there is none.  NULL without memory. */
static struct thread_extent *extent_of(struct stack_counts *counts, uint64_t thread)
{
    uint32_t number = number_map_get(&counts->by_thread, thread);
    if (number != NUMBER_MAP_NOTHING)
        return &counts->threads[number];
    if (array_reserve(counts->threads, counts->thread_count, counts->thread_capacity) ||
        number_map_put(&counts->by_thread, thread, (uint32_t)counts->thread_count))
        return NULL;
    counts->threads[counts->thread_count] = (struct thread_extent){.lowest_cut = UINT64_MAX};
    return &counts->threads[counts->thread_count++];
}

static bool are_one_stack(uint64_t low, uint64_t top)
{
    return low < top && top - low <= MOST_STACK_BYTES;
}

static void add_whole(struct thread_extent *thread, uint64_t top)
{
    if (top > thread->top || !are_one_stack(top, thread->top + 1))
        thread->top = top;
    if (!are_one_stack(thread->lowest_cut, thread->top))
        thread->lowest_cut = UINT64_MAX;
}

static void add_cut(struct thread_extent *thread, uint64_t sp)
{
    if (thread->top && !are_one_stack(sp, thread->top))
        *thread = (struct thread_extent){0, sp, thread->needed_bytes};
    else if (sp < thread->lowest_cut)
        thread->lowest_cut = sp;
}

static int add_extent(struct stack_counts *counts, const struct stack_walker *walker, uint64_t key,
                      enum stack_end end)
{
    struct thread_extent *thread = extent_of(counts, key);
    if (!thread)
        return -1;
    if (end == STACK_WHOLE || end == STACK_UNPROVEN)
        add_whole(thread, walker->cfa);
    else if (end == STACK_CUT)
        add_cut(thread, walker->sp);
    if (are_one_stack(thread->lowest_cut, thread->top) &&
        thread->top - thread->lowest_cut > thread->needed_bytes)
        thread->needed_bytes = thread->top - thread->lowest_cut;
    return 0;
}

uint64_t stack_counts_size(const struct stack_counts *counts)
{
    uint64_t most = 0;
    for (size_t i = 0; i < counts->thread_count; i++)
        if (counts->threads[i].needed_bytes > most)
            most = counts->threads[i].needed_bytes;
    return most > counts->copied_bytes ? (most + COPY_STEP - 1) / COPY_STEP * COPY_STEP : 0;
}

/* ---- Places ---- */

static int add_stop(struct stack_counts *counts, uint32_t what, enum stack_end end)
{
    for (size_t i = 0; i < counts->stop_count; i++)
        if (counts->stops[i].what == what && counts->stops[i].end == end) {
            counts->stops[i].count++;
            return 0;
        }
    struct stack_stop *stops =
        array_room(counts->stops, counts->stop_count, &counts->stop_capacity, sizeof *stops);
    if (!stops)
        return -1;
    counts->stops = stops;
    stops[counts->stop_count++] = (struct stack_stop){what, end, 1};
    return 0;
}

int stack_counts_add(struct stack_counts *counts, const struct stack_walker *walker,
                     uint64_t thread, enum stack_end end)
{
    uint32_t what = walker->end_at;
    counts->ends[end]++;
    counts->found += walker->found_count != 0;
    if (end == STACK_NO_TABLE || end == STACK_WRONG || end == STACK_OUTSIDE) {
        if (what != SPACE_NOTHING)
            what = what & SPACE_FUNCTION ? SPACE_FUNCTION : walker->files.of_map[what];
        return add_stop(counts, what, end);
    }
    return add_extent(counts, walker, thread, end);
}

/* ---- What is said ---- */

static int compare_stops(const void *left, const void *right)
{
    const struct stack_stop *a = left, *b = right;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return a->what < b->what ? -1 : a->what > b->what;
}

/* The memory that STOP is in, if it is no file's; or NULL. */
static const struct perf_map *memory_of(const struct stack_stop *stop,
                                        const struct native_files *files)
{
    if (stop->what == 0 || stop->what >= SPACE_NOTHING)
        return NULL;
    const struct perf_map *map = &files->items[stop->what - 1]->map->map;
    return perf_map_is_memory(map) ? map : NULL;
}

static const char *name_of(const struct stack_stop *stop, const struct native_files *files)
{
    const struct perf_map *memory = memory_of(stop, files);
    if (memory && strcmp(memory->filename, "//anon") == 0)
        return "code in memory (//anon)";
    if (stop->what == SPACE_FUNCTION)
        return "JIT code";
    if (stop->what == SPACE_NOTHING || stop->what == 0)
        return "unloaded code, or where nothing was mapped";
    return files->items[stop->what - 1]->map->map.filename;
}

static const char *reason_of(const struct stack_stop *stop, const struct native_files *files)
{
    if (memory_of(stop, files))
        return "no function is known there";
    if (stop->what && stop->what < SPACE_NOTHING && !files->items[stop->what - 1]->view.elf)
        return "it can't be read, or is not the mapped file";
    if (stop->end == STACK_OUTSIDE)
        return "its caller's frame is not in this stack";
    return stop->end == STACK_WRONG ? "its table leads to no code" : "no table";
}

static void print_not_whole(const struct stack_counts *counts, FILE *stream)
{
    const uint64_t *ends = counts->ends;
    uint64_t size = stack_counts_size(counts);
    if (ends[STACK_EMPTY])
        printable_line(stream,
                       "perfjit:     %" PRIu64
                       " with no bytes of the stack: its page was not present; no size of the "
                       "copy changes that",
                       ends[STACK_EMPTY]);
    if (ends[STACK_UNPROVEN])
        printable_line(stream,
                       "perfjit:     %" PRIu64
                       " may leave out callers: they follow the frame pointer out of code that "
                       "is not known",
                       ends[STACK_UNPROVEN]);
    if (counts->ends[STACK_CUT] == 0)
        return;
    if (size && size <= LARGEST_COPY)
        printable_line(stream,
                       "perfjit:     --call-graph dwarf,%" PRIu64 " would have held the cut ones",
                       size);
    else if (size)
        printable_line(stream,
                       "perfjit:     the largest copies, --call-graph dwarf,%d, hold only part of "
                       "them: %" PRIu64 " bytes would be needed",
                       LARGEST_COPY, size);
}

uint64_t stack_counts_unlogged(const struct stack_counts *counts, const struct native_files *files)
{
    uint64_t count = 0;
    for (size_t i = 0; i < counts->stop_count; i++) {
        const struct stack_stop *stop = &counts->stops[i];
        if (memory_of(stop, files))
            count += stop->count;
    }
    return count;
}

void stack_counts_print(struct stack_counts *counts, const struct native_files *files, bool verbose,
                        FILE *stream)
{
    const uint64_t *ends = counts->ends;
    uint64_t ended =
        ends[STACK_OUTSIDE] + ends[STACK_NO_TABLE] + ends[STACK_WRONG] + ends[STACK_NOT_READ];
    const uint64_t all =
        ends[STACK_WHOLE] + ends[STACK_CUT] + ends[STACK_EMPTY] + ends[STACK_UNPROVEN] + ended;
    printable_line(stream,
                   "perfjit: %" PRIu64 " stack%s unwound: %" PRIu64 " whole, %" PRIu64
                   " cut by the size of the copy, %" PRIu64 " ended at code without usable tables",
                   all, plural(all), ends[STACK_WHOLE], ends[STACK_CUT], ended);
    if (counts->inferred)
        printable_line(stream,
                       "perfjit:     %" PRIu64
                       " of the whole ones %s cut, and ha%s the outer frames of their thread's "
                       "last stack",
                       counts->inferred, counts->inferred == 1 ? "was" : "were",
                       counts->inferred == 1 ? "s" : "ve");
    if (counts->found)
        printable_line(
            stream,
            "perfjit:     %" PRIu64
            " continue%s past code without tables and bytes, by the calls that led there",
            counts->found, verb_ending(counts->found));
    print_not_whole(counts, stream);
    if (counts->stop_count)
        qsort(counts->stops, counts->stop_count, sizeof *counts->stops, compare_stops);
    for (size_t i = 0; i < counts->stop_count && (verbose || i < FIRST_STOPS); i++)
        printable_line(stream, "perfjit:     %" PRIu64 " at %s: %s", counts->stops[i].count,
                       name_of(&counts->stops[i], files), reason_of(&counts->stops[i], files));
    if (ends[STACK_NOT_READ])
        printable_line(stream, "perfjit:     %" PRIu64 " of 32-bit programs, or without registers",
                       ends[STACK_NOT_READ]);
}

void stack_counts_free(struct stack_counts *counts)
{
    number_map_free(&counts->by_thread);
    free(counts->threads);
    free(counts->stops);
    *counts = (struct stack_counts){0};
}
