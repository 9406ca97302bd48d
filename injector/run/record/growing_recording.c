/* See growing_recording.h.
 *
 * Records and dumps are read as far as they are whole.  Damaged parts are not reported here: inject
 * reads all of it again. */
#include "injector/run/record/growing_recording.h"

#include "injector/arrays/array.h"
#include "injector/log/jitdump/dump_name.h"
#include "injector/recording/host/live_process.h"
#include "injector/run/program/runtime.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CHUNK_BYTES = 1 << 16, /* more than a record can have */
    MAP_DEVICE_AT = 32, /* behind the header: 32 u32 major, 36 u32 minor, 40 u64 inode */
    DUMP_HEADER_BYTES = 40,
    DUMP_HEADER_SIZE_AT = 8,
    DUMP_PREFIX_BYTES = 16, /* 0 u32 id, 4 u32 total_size, 8 u64 time */
    DUMPS_MOST = 4096,
    PIDS = GROWING_PIDS,
};

void growing_recording_begin(struct growing_recording *recording, const char *path)
{
    *recording = (struct growing_recording){.fd = -1, .path = path};
}

/* ---- Processes and dumps ---- */

bool growing_recording_has_pid(const struct growing_recording *recording, uint32_t pid)
{
    return recording->pids && pid < PIDS && (recording->pids[pid / 8] >> pid % 8 & 1);
}

void growing_recording_add_pid(struct growing_recording *recording, uint32_t pid)
{
    if (!recording->pids)
        recording->pids = calloc(PIDS / 8, 1);
    if (recording->pids && pid < PIDS)
        recording->pids[pid / 8] |= (uint8_t)(1 << pid % 8);
}

void growing_recording_forget_pid(struct growing_recording *recording, uint32_t pid)
{
    if (recording->pids && pid < PIDS)
        recording->pids[pid / 8] &= (uint8_t) ~(1 << pid % 8);
}

/* The last file of that path is the one that is there in the end. */
static void add_dump(struct growing_recording *recording, const struct growing_dump *dump)
{
    for (size_t i = 0; i < recording->dump_count; i++)
        if (strcmp(recording->dumps[i].path, dump->path) == 0) {
            recording->dumps[i].pid = dump->pid;
            recording->dumps[i].major = dump->major;
            recording->dumps[i].minor = dump->minor;
            recording->dumps[i].inode = dump->inode;
            return;
        }
    if (recording->dump_count == DUMPS_MOST)
        return;
    char *copy = strdup(dump->path);
    if (!copy || array_reserve(recording->dumps, recording->dump_count, recording->dump_capacity)) {
        free(copy); /* then its functions are not counted */
        return;
    }
    recording->dumps[recording->dump_count] = *dump;
    recording->dumps[recording->dump_count++].path = copy;
}

/* ---- Records ---- */

/* Whether the file NAME is a Python that can log its functions, or the library that is one. */
static bool is_python(const char *name)
{
    const char *slash = strrchr(name, '/');
    unsigned major, minor;
    name = slash ? slash + 1 : name;
    if (sscanf(name, "libpython%u.%u", &major, &minor) == 2)
        return major == 3 && minor >= 12;
    if (sscanf(name, "python%u.%u", &major, &minor) == 2)
        return major == 3 && minor >= 12 && runtime_of_program(name);
    return strcmp(name, "python") == 0 || strcmp(name, "python3") == 0;
}

static void read_map(struct growing_recording *recording, const uint8_t *at, size_t bytes)
{
    struct byte_cursor cursor = byte_cursor_over(at, bytes, false);
    struct growing_dump dump = {.pid = cursor_u32(&cursor)};
    const size_t name_at = PERF_MMAP2_BYTES - PERF_RECORD_HEADER_BYTES;
    const char *name = (const char *)at + name_at;
    if (bytes <= name_at || !memchr(name, '\0', bytes - name_at))
        return;
    recording->ran_python = recording->ran_python || is_python(name);
    if (!jit_dump_has_name(name))
        return;
    cursor = byte_cursor_over(at + MAP_DEVICE_AT, bytes - MAP_DEVICE_AT, false);
    dump.major = cursor_u32(&cursor);
    dump.minor = cursor_u32(&cursor);
    dump.inode = cursor_u64(&cursor);
    dump.path = (char *)(uintptr_t)name;
    add_dump(recording, &dump);
}

/* One record of BYTES, behind its header. */
static void read_record(struct growing_recording *recording, uint32_t type, uint16_t misc,
                        const uint8_t *at, size_t bytes)
{
    struct byte_cursor cursor = byte_cursor_over(at, bytes, false);
    losses_take(&recording->losses, type, misc, at, bytes);
    switch (type) {
    case PERF_RECORD_COMM:
    case PERF_RECORD_FORK:
        growing_recording_add_pid(recording, cursor_u32(&cursor));
        return;
    case PERF_RECORD_MMAP2:
        read_map(recording, at, bytes);
        return;
    default:
        return;
    }
}

/* The whole records among the COUNT BYTES.  Returns how many bytes these have. */
static size_t read_records(struct growing_recording *recording, const uint8_t *bytes, size_t count)
{
    size_t used = 0;
    while (used + PERF_RECORD_HEADER_BYTES <= count) {
        struct byte_cursor cursor = byte_cursor_over(bytes + used, PERF_RECORD_HEADER_BYTES, false);
        uint32_t type = cursor_u32(&cursor);
        uint16_t misc = cursor_u16(&cursor);
        size_t size = cursor_u16(&cursor);
        if (size < PERF_RECORD_HEADER_BYTES || used + size > count)
            break;
        read_record(recording, type, misc, bytes + used + PERF_RECORD_HEADER_BYTES,
                    size - PERF_RECORD_HEADER_BYTES);
        used += size;
    }
    return used;
}

/* Find the first record, whose place perf writes first of all.  Returns false while that is
 * missing. */
static bool open_recording(struct growing_recording *recording)
{
    uint8_t header[PERF_FILE_HEADER_BYTES];
    if (recording->fd < 0)
        recording->fd = open(recording->path, O_RDONLY | O_CLOEXEC);
    if (recording->fd < 0 || pread(recording->fd, header, sizeof header, 0) != sizeof header ||
        perf_get_u64(header) != PERF_MAGIC)
        return false;
    recording->offset = perf_get_u64(header + PERF_HEADER_DATA);
    return recording->offset >= PERF_FILE_HEADER_BYTES;
}

/* The end of the records, once perf has written it; else the end of the file. */
static uint64_t end_of(const struct growing_recording *recording)
{
    uint8_t section[PERF_SECTION_BYTES];
    if (pread(recording->fd, section, sizeof section, PERF_HEADER_DATA) != sizeof section)
        return 0;
    uint64_t offset = perf_get_u64(section), size = perf_get_u64(section + 8);
    return size ? offset + size : UINT64_MAX;
}

void growing_recording_read(struct growing_recording *recording)
{
    uint8_t *chunk;
    if ((!recording->offset && !open_recording(recording)) || !(chunk = malloc(CHUNK_BYTES)))
        return;
    uint64_t end = end_of(recording);
    for (size_t used = 1; used && recording->offset < end; recording->offset += used) {
        uint64_t left = end - recording->offset;
        ssize_t bytes = pread(recording->fd, chunk, left < CHUNK_BYTES ? left : CHUNK_BYTES,
                              (off_t)recording->offset);
        used = bytes > 0 ? read_records(recording, chunk, (size_t)bytes) : 0;
    }
    free(chunk);
}

/* ---- Functions ---- */

/* Count the LOAD records (id 0) from dump->offset on.  A foreign byte order is not counted. */
static uint64_t count_loads(struct growing_dump *dump, int fd, uint64_t size)
{
    uint8_t bytes[DUMP_HEADER_BYTES];
    uint64_t loads = 0;
    if (!dump->offset && pread(fd, bytes, DUMP_HEADER_BYTES, 0) == DUMP_HEADER_BYTES) {
        struct byte_cursor cursor =
            byte_cursor_over(bytes + DUMP_HEADER_SIZE_AT, sizeof(uint32_t), false);
        dump->offset = cursor_u32(&cursor);
    }
    while (dump->offset && dump->offset + DUMP_PREFIX_BYTES <= size &&
           pread(fd, bytes, DUMP_PREFIX_BYTES, (off_t)dump->offset) == DUMP_PREFIX_BYTES) {
        struct byte_cursor cursor = byte_cursor_over(bytes, DUMP_PREFIX_BYTES, false);
        uint32_t id = cursor_u32(&cursor), record_bytes = cursor_u32(&cursor);
        if (record_bytes < DUMP_PREFIX_BYTES || record_bytes > size - dump->offset)
            break;
        loads += id == 0;
        dump->offset += record_bytes;
    }
    return loads;
}

void growing_recording_read_dumps(struct growing_recording *recording)
{
    for (size_t i = 0; i < recording->dump_count; i++) {
        struct growing_dump *dump = &recording->dumps[i];
        struct stat status;
        if (jit_dump_name_is_stage(dump->path)) /* its records are in the dump in the end */
            continue;
        int fd = open(dump->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd < 0)
            continue;
        if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
            recording->functions += count_loads(dump, fd, (uint64_t)status.st_size);
        close(fd);
    }
}

size_t growing_recording_living(const struct growing_recording *recording, uint32_t *pid)
{
    size_t count = 0;
    for (uint32_t i = 1; recording->pids && i < GROWING_PIDS; i++)
        if (growing_recording_has_pid(recording, i) && live_process_goes_on(i)) {
            *pid = i;
            count++;
        }
    return count;
}

void growing_recording_free(struct growing_recording *recording)
{
    for (size_t i = 0; i < recording->dump_count; i++)
        free(recording->dumps[i].path);
    free(recording->dumps);
    free(recording->pids);
    if (recording->fd >= 0)
        close(recording->fd);
    *recording = (struct growing_recording){.fd = -1};
}
