/* See added_map.h; the format of the records stands in recording/perf_data/perf_format.h. */
#include "injector/inject/merge/added_map.h"

#include "injector/recording/perf_data/perf_format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* perf opens a map's file name as a path, and finds no file of this name: the samples stay
 * [unknown]. */
static const char unloaded_name[] = "[unloaded JIT code]";

/* ---- From changes to maps ---- */

/* The common inputs for all maps of one process. */
struct map_maker {
    struct added_records *added;
    const struct jit_process *process;
    const struct image_plan *plan;
    const struct process_plan *planned;
    struct function_place *places; /* planned->places */
    const struct function_state *states;
    uint32_t process_index;
    struct thread_sweep threads;
    enum reset_policy policy;
    struct unwinder_reset reset;
    bool *has_tables; /* by image, from the process's first one on: its tables are mapped */
};

/* The image offset of CHANGE's first byte, which may lie inside its function. */
static uint64_t pgoff_of(const struct map_maker *maker, const struct change *change)
{
    return maker->places[change->index].offset + change->start -
           maker->process->log.functions[change->index].addr;
}

/* Whether CHANGE continues the map LAST.  It has the same moment and image, and only padding lies
 * between, as much as in the image.  If the process inherited code, the gap between two functions
 * may hold such code. */
static bool continues(const struct map_maker *maker, const struct added_record *last,
                      const struct change *change, uint32_t last_function)
{
    if (last->kind != CHANGE_FUNCTION || change->kind != CHANGE_FUNCTION ||
        last->time_ns != change->time_ns || last->index != maker->places[change->index].image ||
        last->pgoff + (change->start - last->start) != pgoff_of(maker, change))
        return false;
    const struct jit_function *functions = maker->process->log.functions;
    const struct jit_function *before = &functions[last_function];
    return last->end == change->start ||
           (!maker->process->parent && last->end == before->addr + before->size &&
            change->start == functions[change->index].addr &&
            change->start - last->end == maker->places[last_function].gap_after);
}

static int place_in_moment(const struct change *change)
{
    return change->kind == CHANGE_UNLOADED ? 0 : change->kind == CHANGE_MAP ? 1 : 2;
}

/* The changes of one moment: first the unloads, then the functions by image, then by address. */
static int compare_in_moment(const void *left, const void *right, void *argument)
{
    const struct function_place *places = argument;
    const struct change *a = left, *b = right;
    if (a->kind != b->kind)
        return place_in_moment(a) - place_in_moment(b);
    if (a->kind == CHANGE_FUNCTION && places[a->index].image != places[b->index].image)
        return places[a->index].image < places[b->index].image ? -1 : 1;
    return a->start < b->start ? -1 : a->start > b->start;
}

static int append(struct map_maker *maker, uint64_t time_ns, uint64_t start, uint64_t end,
                  uint32_t kind, uint32_t index, uint64_t pgoff)
{
    return added_records_append(
        maker->added, (struct added_record){time_ns, start, end, pgoff, maker->process_index,
                                            thread_sweep_speaker(&maker->threads), kind, index, 0});
}

/* The unwind tables of IMAGE become readable with its first function. */
static int add_tables(struct map_maker *maker, uint32_t index, uint64_t time_ns)
{
    const struct jit_image *image = &maker->plan->images[index];
    if (!image->tables_start) /* images of no process have none either */
        return 0;
    bool *has_tables = &maker->has_tables[index - maker->planned->first_image];
    if (*has_tables)
        return 0;
    *has_tables = true;
    uint64_t start = image->base + image->tables_start;
    return append(maker, time_ns, start, start + image->hdr_bytes + image->eh_frame_bytes,
                  ADDED_TABLES, index, image->tables_start);
}

static int add_change(struct map_maker *maker, const struct change *change)
{
    uint32_t index = change->index;
    uint64_t pgoff = change->start;
    if (change->kind == CHANGE_FUNCTION) {
        pgoff = pgoff_of(maker, change);
        index = maker->places[index].image;
        if (add_tables(maker, index, change->time_ns))
            return -1;
    }
    return append(maker, change->time_ns, change->start, change->end, change->kind, index, pgoff);
}

static int add_moment(struct map_maker *maker, const struct change *changes, size_t count)
{
    size_t first = maker->added->count;
    for (size_t i = 0; i < count; i++) {
        struct added_records *added = maker->added;
        struct added_record *last = added->count > first ? &added->items[added->count - 1] : NULL;
        if (last && i && continues(maker, last, &changes[i], changes[i - 1].index))
            last->end = changes[i].end;
        else if (add_change(maker, &changes[i]))
            return -1;
    }
    return 0;
}

/* Whether an address has a new owner, so that perf would unwind by the dead one's table. */
static bool needs_reset(const struct map_maker *maker, const struct change *changes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (changes[i].kind == CHANGE_FUNCTION && maker->states[changes[i].index].generation > 0)
            return true;
    return false;
}

/* Functions that were compiled one after the other already are. */
static void sort_moment(struct change *changes, size_t count, struct function_place *places)
{
    for (size_t i = 1; i < count; i++)
        if (compare_in_moment(&changes[i - 1], &changes[i], places) > 0) {
            qsort_r(changes, count, sizeof *changes, compare_in_moment, places);
            return;
        }
}

static int add_moments(struct map_maker *maker, struct change *changes, size_t change_count)
{
    for (size_t at = 0, count; at < change_count; at += count) {
        for (count = 1; at + count < change_count; count++)
            if (changes[at + count].time_ns != changes[at].time_ns)
                break;
        sort_moment(changes + at, count, maker->places);
        if (thread_sweep_to(&maker->threads, changes[at].time_ns) ||
            add_moment(maker, changes + at, count))
            return -1;
        if (maker->policy != RESET_NEVER && needs_reset(maker, changes + at, count) &&
            unwinder_reset_add(&maker->reset, maker->added, changes[at].time_ns))
            return -1;
    }
    return 0;
}

/* Threads that become known when the main thread has ended get their maps from a new one. */
struct late_threads {
    bool exist;
    uint64_t main_end_ns;
};

static int find_late_threads(struct late_threads *late, const struct thread_list *threads,
                             const struct jit_process *process)
{
    struct thread_sweep sweep = thread_sweep_begin(threads, process->pid);
    uint64_t end_ns = process->next.time_ns ? process->next.time_ns - 1 : UINT64_MAX;
    int result = thread_sweep_to(&sweep, end_ns);
    *late = (struct late_threads){sweep.late, sweep.main_end_ns};
    thread_sweep_end(&sweep);
    return result;
}

/* Give the new main thread the process's maps of the moment at which the first one ends, and the
 * later maps. */
static int repeat_for_late_threads(struct map_maker *maker, size_t first, uint64_t main_end_ns)
{
    struct added_records *added = maker->added;
    for (size_t i = first, end = added->count; i < end; i++) {
        struct added_record map = added->items[i];
        if (map.kind >= ADDED_COMM || map.kind == CHANGE_MAP)
            continue;
        map.tid = maker->process->pid;
        if (map.time_ns <= main_end_ns)
            map.time_ns = main_end_ns + 1;
        if (added_records_append(added, map))
            return -1;
    }
    return 0;
}

static int add_all(struct map_maker *maker, const struct thread_list *threads,
                   struct timeline *timeline)
{
    struct late_threads late;
    size_t first = maker->added->count;
    if (!maker->has_tables || find_late_threads(&late, threads, maker->process))
        return -1;
    if (late.exist && maker->policy == RESET_BY_FORKS)
        maker->policy = RESET_BY_COMM; /* forks would make one set of maps of the two */
    unwinder_reset_open(&maker->reset, &maker->threads, maker->process, maker->process_index,
                        timeline, maker->policy);
    if (add_moments(maker, timeline->changes, timeline->change_count))
        return -1;
    return late.exist ? repeat_for_late_threads(maker, first, late.main_end_ns) : 0;
}

int added_maps_add(struct added_records *added, struct timeline *timeline,
                   const struct jit_process *process, uint32_t process_index,
                   const struct image_plan *plan, const struct thread_list *threads,
                   enum reset_policy policy, struct findings *findings)
{
    const struct process_plan *planned = &plan->processes[process_index];
    const size_t image_count = planned->end_image - planned->first_image;
    struct map_maker maker = {.added = added,
                              .process = process,
                              .plan = plan,
                              .planned = planned,
                              .places = planned->places,
                              .states = timeline->states,
                              .process_index = process_index,
                              .threads = thread_sweep_begin(threads, process->pid),
                              .policy = policy,
                              .has_tables = calloc(image_count + 1, sizeof *maker.has_tables)};
    int result = add_all(&maker, threads, timeline);
    thread_sweep_end(&maker.threads);
    free(maker.has_tables);
    return result ? report_failure(findings, "out of memory") : 0;
}

/* ---- From a map to its record ---- */

/* The fields of the record between pgoff and the file name. */
static void put_identity(struct byte_sink *sink, const struct jit_image *image)
{
    if (!image) {
        sink_zeros(sink, PERF_MMAP2_BYTES - PERF_MMAP_BYTES);
        return;
    }
    sink_u32(sink, IMAGE_BUILD_ID_BYTES);
    sink_bytes(sink, image->build_id, IMAGE_BUILD_ID_BYTES);
    sink_zeros(sink, PERF_BUILD_ID_BYTES - IMAGE_BUILD_ID_BYTES);
    sink_u32(sink, PROT_READ | PROT_EXEC);
    sink_u32(sink, MAP_PRIVATE);
}

static int put_image_map(const struct added_record *map, struct added_record_source *source,
                         struct byte_sink *sink)
{
    const struct jit_process *process = &source->processes[map->process];
    struct jit_image *image =
        map->kind == CHANGE_UNLOADED ? NULL : &source->plan->images[map->index];
    size_t start = added_record_begin(sink, PERF_RECORD_MMAP2, image ? PERF_MISC_MMAP_BUILD_ID : 0);
    sink_u32(sink, process->pid);
    sink_u32(sink, map->tid);
    sink_u64(sink, map->start);
    sink_u64(sink, map->end - map->start);
    sink_u64(sink, map->pgoff);
    put_identity(sink, image);
    if (image) {
        sink_bytes(sink, source->dso_dir, strlen(source->dso_dir));
        sink_u8(sink, '/');
        sink_cstr(sink,
                  image_file_name_again(&source->named, image, source->processes, map->index));
    } else {
        sink_cstr(sink, unloaded_name);
    }
    sink_align(sink, 8);
    added_record_trailer(sink, map, source, &process->trailer_record);
    return added_record_end(sink, start);
}

/* A part of a mapping whose own record is left out: the same bytes with other bounds. */
static int put_part(const struct added_record *map, const struct added_record_source *source,
                    struct byte_sink *sink)
{
    const struct recorded_map *whole = &source->processes[map->process].maps[map->index];
    const uint8_t *bytes = whole->record.bytes;
    sink_bytes(sink, bytes, 16);
    sink_u64(sink, map->start);
    sink_u64(sink, map->end - map->start);
    sink_u64(sink, whole->map.pgoff + (map->start - whole->map.start));
    sink_bytes(sink, bytes + PERF_MMAP_BYTES, whole->record.size - (size_t)PERF_MMAP_BYTES);
    return sink->overflow ? -1 : 0;
}

int added_map_put(const struct added_record *map, struct added_record_source *source,
                  struct byte_sink *sink)
{
    if (map->kind >= ADDED_COMM)
        return unwinder_reset_put(map, source, sink);
    return map->kind == CHANGE_MAP ? put_part(map, source, sink) : put_image_map(map, source, sink);
}
