/* See unwritten_source.h.
 *
 * The process goes on while it is read.  Its stdio only appends to the buffer until it writes it to
 * the file.  So what was read is right if the file did not grow meanwhile.  A search of all memory
 * may take longer than that, but finds the stream, which is read in no time then. */
#include "injector/log/owner/unwritten_source.h"

#include "injector/arrays/array.h"
#include "injector/text/plural.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

enum { TRIES = 20, PATH_BYTES = 64 };

/* ---- The process ---- */

static bool read_process(void *context, uint64_t addr, void *bytes, size_t count)
{
    const uint32_t *pid = context;
    struct iovec here = {bytes, count}, there = {(void *)(uintptr_t)addr, count};
    return process_vm_readv((pid_t)*pid, &here, 1, &there, 1, 0) == (ssize_t)count;
}

/* The number under which process PID has opened DUMP's file; -1: it has not, or -2: more than one.
 */
static int number_of(const struct jit_dump *dump, uint32_t pid)
{
    enum { NONE = -1, SEVERAL = -2 };
    char path[PATH_BYTES];
    int number = NONE;
    struct stat status;
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/fd", pid);
    DIR *files = opendir(path);
    for (struct dirent *entry; files && (entry = readdir(files));)
        if (entry->d_name[0] != '.' && fstatat(dirfd(files), entry->d_name, &status, 0) == 0 &&
            status.st_ino == dump->ino && status.st_dev == dump->dev)
            number = number == NONE ? (int)strtol(entry->d_name, NULL, 10) : SEVERAL;
    if (files)
        closedir(files);
    return number;
}

/* If LINE of /proc/PID/maps is private memory that the process writes: *RANGE. */
static bool is_memory(const char *line, struct memory_range *range, bool *is_heap)
{
    char flags[8];
    int path_at = 0;
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %*s %*s %*s %n", &range->start, &range->end,
               flags, &path_at) < 3 ||
        strncmp(flags, "rw", 2) != 0 || flags[3] != 'p')
        return false;
    *is_heap = path_at && strncmp(line + path_at, "[heap]", strlen("[heap]")) == 0;
    return true;
}

/* The heap is where most buffers are. */
static int add_range(struct process_memory *memory, struct memory_range range, bool is_heap)
{
    if (array_reserve(memory->ranges, memory->range_count, memory->range_capacity))
        return -1;
    memory->ranges[memory->range_count++] = range;
    if (is_heap) {
        memory->ranges[memory->range_count - 1] = memory->ranges[0];
        memory->ranges[0] = range;
    }
    return 0;
}

static int find_ranges(struct process_memory *memory, uint32_t pid)
{
    char path[PATH_BYTES], *line = NULL;
    struct memory_range range;
    size_t room = 0;
    bool is_heap;
    int result = 0;
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/maps", pid);
    FILE *maps = fopen(path, "re");
    while (maps && !result && getline(&line, &room, maps) > 0)
        if (is_memory(line, &range, &is_heap))
            result = add_range(memory, range, is_heap);
    free(line);
    if (maps)
        fclose(maps);
    return result;
}

static bool has_size(const char *path, size_t size)
{
    struct stat status;
    return stat(path, &status) == 0 && (size_t)status.st_size == size;
}

/* Open DUMP once more, for its file has grown. */
static bool open_anew(struct jit_dump *dump)
{
    struct jit_dump newer;
    char cause[256];
    bool opened = jit_dump_open(&newer, dump->path, cause, sizeof cause) == 0;
    bool is_same = opened && newer.dev == dump->dev && newer.ino == dump->ino;
    if (is_same) {
        newer.elf_mach = dump->elf_mach;
        jit_dump_close(dump);
        *dump = newer;
    } else {
        jit_dump_close(&newer);
    }
    return is_same;
}

int unwritten_records_of_process(struct jit_dump *dump, uint32_t pid,
                                 struct unwritten_records *found)
{
    struct process_memory memory = {
        .file_number = number_of(dump, pid), .read = read_process, .context = &pid};
    *found = (struct unwritten_records){0};
    if (memory.file_number == -1 || jit_dump_is_closed(dump))
        return 0;
    int result = find_ranges(&memory, pid);
    bool by_streams = false;
    for (int i = 0; i < TRIES && !result; i++) {
        result = by_streams ? unwritten_records_find_again(found, dump, &memory)
                            : unwritten_records_find(found, dump, &memory);
        bool has_grown = !has_size(dump->path, dump->size);
        if (result || (!has_grown && (found->record_count || !by_streams)))
            break;
        by_streams = has_grown && memory.stream_count > 0;
        free(found->bytes);
        *found = (struct unwritten_records){0};
        if (has_grown && !open_anew(dump))
            break;
    }
    free(memory.ranges);
    return result;
}

/* ---- Either ---- */

int unwritten_source_append(const struct unwritten_source *source, struct jit_dump *dump,
                            uint32_t pid, struct findings *findings)
{
    struct unwritten_records found = {0};
    int result = source->is_core ? 0 : unwritten_records_of_process(dump, pid, &found);
    if (!result && !found.record_count && source->find)
        result = source->find(source->context, dump, pid, &found);
    if (!result && found.record_count) {
        result = unwritten_records_append(dump, &found);
        report_finding(findings, FINDING_RECORDS_UNWRITTEN, "%s: %" PRIu64 " record%s, %zu bytes",
                       dump->path, found.record_count, plural(found.record_count),
                       found.byte_count);
    }
    free(found.bytes);
    return result ? report_failure(findings, "out of memory") : 0;
}
