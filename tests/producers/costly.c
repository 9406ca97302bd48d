/* costly: recordings and dumps on which a reader can waste time and memory, of any size.
 *
 *     costly KIND N DIRECTORY
 *
 * writes DIRECTORY/perf.data and DIRECTORY/jit-4711.dump, a dump of the process 4711 that is in the
 * recording.  KIND:
 *
 *     lives        N processes that have executable memory, an own name and no JIT code, one after
 * the other children     N children of 4711, each with a sample in its code, which is N functions
 *     flips        the same; each child maps a piece of the arena anew, and has a name
 *     deep         as children; each is the child of the one before
 *     chain        as flips; the same
 *     tables       N functions that a child logged in its parent's dump, each with unwind tables
 *                  with a CIE like no other
 *     large-cie    N FDEs that share a CIE of N instructions
 *     pieces       a function that N others leave N pieces of, and that is unloaded
 *     unloads      N functions, and N unloads of all of them that are of none of them
 *     layers       N functions one after the other at the same addresses, each with a sample
 *     lined        the same, with a source line and unwind tables each
 *     hole         N pages of zeros, half of them a function's, as where a file was cut and is
 *                  written again
 *     dumps        N dumps that 4711 maps and that are not there, half of them without an inode
 *     maps         memory mapped N times over the same addresses, each time with a sample at
 * another threads      N threads of 4711, with names, which outlive the first one: each is sampled
 * in a new function, and ends noise        a record that can't be, and behind it N times 60 bytes
 * that could each be an id or a size, and N empty loads
 */
#include "injector/recording/perf_data/perf_format.h"
#include "injector/recording/perf_data/sample_format.h"
#include "jitdump/format/byte_sink.h"
#include "jitdump/format/jitdump_format.h"

#include <elf.h>
#include <err.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    PID = 4711,
    CHILD = 100000, /* and upwards */
    ATTR_BYTES = 136,
    SAMPLE_TYPE = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
    CODE_BYTES = 64,
    MAX_BYTES = 1 << 28,
};

#define ARENA    UINT64_C(0x40000000)
#define BEGAN_NS UINT64_C(1000000)

static struct byte_sink dump, profile;
static uint64_t now_ns = BEGAN_NS;

static struct byte_sink large_sink(void)
{
    void *bytes = malloc(MAX_BYTES);
    if (!bytes)
        err(EXIT_FAILURE, "costly");
    return byte_sink_over(bytes, MAX_BYTES);
}

static void patch(struct byte_sink *sink, size_t at, uint64_t value, size_t bytes)
{
    struct byte_sink place = byte_sink_over(sink->data + at, bytes);
    bytes == 2 ? sink_u16(&place, (uint16_t)value) : sink_u32(&place, (uint32_t)value);
}

/* ---- The dump ---- */

static void begin_dump(void)
{
    dump = large_sink();
    sink_u32(&dump, JITDUMP_MAGIC);
    sink_u32(&dump, JITDUMP_FILE_VERSION);
    sink_u32(&dump, JITHEADER_BYTES);
    sink_u32(&dump, EM_X86_64);
    sink_u32(&dump, 0);
    sink_u32(&dump, PID);
    sink_u64(&dump, now_ns);
    sink_u64(&dump, 0);
}

static size_t begin_record(uint32_t id)
{
    size_t start = dump.size;
    sink_u32(&dump, id);
    sink_u32(&dump, 0);
    sink_u64(&dump, now_ns);
    return start;
}

static void end_record(size_t start)
{
    patch(&dump, start + 4, dump.size - start, 4);
}

/* Function NUMBER of process PID, of BYTES bytes at ADDR. */
static void put_load_at(uint32_t pid, uint32_t number, uint64_t addr, uint64_t bytes)
{
    char name[32];
    size_t start = begin_record(JIT_CODE_LOAD);
    sink_u32(&dump, pid);
    sink_u32(&dump, pid);
    sink_u64(&dump, addr);
    sink_u64(&dump, addr);
    sink_u64(&dump, bytes);
    sink_u64(&dump, number);
    snprintf(name, sizeof name, "f%" PRIu32, number);
    sink_cstr(&dump, name);
    for (uint64_t i = 0; i < bytes; i++)
        sink_u8(&dump, (uint8_t)(number >> 8 * (i % 4) | 1));
    end_record(start);
}

/* Function NUMBER, in the arena at that place. */
static void put_load(uint32_t pid, uint32_t number)
{
    put_load_at(pid, number, ARENA + (uint64_t)CODE_BYTES * number, CODE_BYTES);
}

static void put_unload(uint32_t number, uint64_t addr, uint64_t bytes)
{
    size_t start = begin_record(JIT_CODE_UNLOAD);
    sink_u32(&dump, PID);
    sink_u32(&dump, PID);
    sink_u64(&dump, addr);
    sink_u64(&dump, bytes);
    sink_u64(&dump, number);
    end_record(start);
}

/* A row for the function at ADDR, in a file of that NUMBER. */
static void put_row(uint32_t number, uint64_t addr)
{
    char name[32];
    size_t start = begin_record(JIT_CODE_DEBUG_INFO);
    sink_u64(&dump, addr);
    sink_u64(&dump, 1);
    sink_u64(&dump, addr);
    sink_u32(&dump, number);
    sink_u32(&dump, 0);
    snprintf(name, sizeof name, "/%" PRIu32 ".js", number);
    sink_cstr(&dump, name);
    end_record(start);
}

/* A CIE with NOPS instructions that do something, and COUNT FDEs, one for each function from FIRST
 * on. */
static void put_tables(uint32_t first, uint32_t count, uint32_t instructions)
{
    enum { CFA_REMEMBER = 0x0a, CFA_DEF_CFA = 0x0c, RETURN_ADDRESS = 16, ABSOLUTE = 0 };
    size_t start = begin_record(JIT_CODE_UNWINDING_INFO), sizes = dump.size;
    sink_zeros(&dump, 24);
    size_t section = dump.size;
    sink_u32(&dump, 0); /* length, in place below */
    sink_u32(&dump, 0);
    sink_u8(&dump, 1);
    sink_cstr(&dump, "");
    sink_u8(&dump, 1);
    sink_u8(&dump, 0x78);
    sink_u8(&dump, RETURN_ADDRESS);
    for (uint32_t i = 0; i < instructions; i++) {
        sink_u8(&dump, CFA_DEF_CFA);
        sink_u8(&dump, 7);
        sink_u8(&dump, (uint8_t)((first + i) >> (7 * (i % 4)) & 0x7f));
    }
    patch(&dump, section, dump.size - section - 4, 4);
    for (uint32_t i = 0; i < count; i++) {
        size_t fde = dump.size;
        sink_u32(&dump, 0);
        sink_u32(&dump, (uint32_t)(fde + 4 - section)); /* back to the CIE */
        sink_u64(&dump, ARENA + (uint64_t)CODE_BYTES * (first + i));
        sink_u64(&dump, CODE_BYTES);
        patch(&dump, fde, dump.size - fde - 4, 4);
    }
    sink_u32(&dump, 0);
    patch(&dump, sizes, dump.size - section, 4);
    patch(&dump, sizes + 16, dump.size - section, 4);
    end_record(start);
}

/* ---- The recording ---- */

static void begin_profile(void)
{
    profile = large_sink();
    sink_u64(&profile, PERF_MAGIC);
    sink_u64(&profile, PERF_FILE_HEADER_BYTES);
    sink_u64(&profile, ATTR_BYTES + PERF_SECTION_BYTES);
    sink_u64(&profile, PERF_FILE_HEADER_BYTES);
    sink_u64(&profile, ATTR_BYTES + PERF_SECTION_BYTES);
    sink_zeros(&profile, PERF_FILE_HEADER_BYTES - profile.size);
    size_t attr = profile.size;
    sink_u32(&profile, 1);
    sink_u32(&profile, ATTR_BYTES);
    sink_zeros(&profile, PERF_ATTR_SAMPLE_TYPE - 8);
    sink_u64(&profile, SAMPLE_TYPE);
    sink_zeros(&profile, 8);
    sink_u64(&profile, PERF_ATTR_SAMPLE_ID_ALL | PERF_ATTR_USE_CLOCKID);
    sink_zeros(&profile, PERF_ATTR_CLOCKID - PERF_ATTR_FLAGS - 8);
    sink_u32(&profile, CLOCK_MONOTONIC);
    sink_zeros(&profile, attr + ATTR_BYTES + PERF_SECTION_BYTES - profile.size);
}

static size_t begin_event(uint32_t type, uint16_t misc)
{
    size_t start = profile.size;
    sink_u32(&profile, type);
    sink_u16(&profile, misc);
    sink_u16(&profile, 0);
    return start;
}

static void end_event(size_t start)
{
    patch(&profile, start + 6, profile.size - start, 2);
}

static void put_trailer(uint32_t pid)
{
    sink_u32(&profile, pid);
    sink_u32(&profile, pid);
    sink_u64(&profile, now_ns);
}

static void put_task(uint32_t type, uint32_t pid, uint32_t parent)
{
    size_t start = begin_event(type, 0);
    sink_u32(&profile, pid);
    sink_u32(&profile, parent);
    sink_u32(&profile, pid);
    sink_u32(&profile, parent);
    sink_u64(&profile, now_ns);
    put_trailer(pid);
    end_event(start);
}

static void put_name(uint32_t pid, uint16_t misc)
{
    size_t start = begin_event(PERF_RECORD_COMM, misc);
    sink_u32(&profile, pid);
    sink_u32(&profile, pid);
    sink_bytes(&profile, "program", 8);
    put_trailer(pid);
    end_event(start);
}

static void put_thread_ids(uint32_t tid)
{
    sink_u32(&profile, PID);
    sink_u32(&profile, tid);
}

static void put_task_of_thread(uint32_t type, uint32_t tid)
{
    size_t start = begin_event(type, 0);
    put_thread_ids(PID); /* its process, and the parent's */
    sink_u32(&profile, tid);
    sink_u32(&profile, PID);
    sink_u64(&profile, now_ns);
    put_thread_ids(PID);
    sink_u64(&profile, now_ns);
    end_event(start);
}

/* A thread of PID begins, and gets a name. */
static void put_thread(uint32_t tid)
{
    char name[8];
    put_task_of_thread(PERF_RECORD_FORK, tid);
    size_t start = begin_event(PERF_RECORD_COMM, 0);
    put_thread_ids(tid);
    snprintf(name, sizeof name, "t%" PRIu32, tid % 100000);
    sink_bytes(&profile, name, sizeof name);
    put_thread_ids(tid);
    sink_u64(&profile, now_ns);
    end_event(start);
}

static void put_thread_sample(uint32_t tid, uint64_t addr)
{
    size_t start = begin_event(PERF_RECORD_SAMPLE, PERF_MISC_USER);
    sink_u64(&profile, addr);
    put_thread_ids(tid);
    sink_u64(&profile, now_ns);
    end_event(start);
}

static void put_map(uint32_t pid, uint64_t addr, uint64_t bytes)
{
    size_t start = begin_event(PERF_RECORD_MMAP, PERF_MISC_USER);
    sink_u32(&profile, pid);
    sink_u32(&profile, pid);
    sink_u64(&profile, addr);
    sink_u64(&profile, bytes);
    sink_u64(&profile, 0);
    sink_bytes(&profile, "//anon\0", 8);
    put_trailer(pid);
    end_event(start);
}

/* A dump with a path of its own; its INODE, unless that is 0. */
static void put_dump_map(uint32_t number, uint64_t inode)
{
    char path[64];
    const int bytes = snprintf(path, sizeof path, "/nowhere/%u/jit-%d.dump", number, PID) + 1;
    size_t start = begin_event(inode ? PERF_RECORD_MMAP2 : PERF_RECORD_MMAP, PERF_MISC_USER);
    sink_u32(&profile, PID);
    sink_u32(&profile, PID);
    sink_u64(&profile, ARENA - ((uint64_t)number + 1) * 4096);
    sink_u64(&profile, 4096);
    sink_u64(&profile, 0);
    if (inode) {
        sink_u64(&profile, 8); /* device */
        sink_u64(&profile, inode);
        sink_u64(&profile, 0); /* generation */
        sink_u32(&profile, 5); /* read, execute */
        sink_u32(&profile, 2); /* private */
    }
    sink_bytes(&profile, path, (size_t)bytes);
    sink_zeros(&profile, (size_t)(-bytes & 7));
    put_trailer(PID);
    end_event(start);
}

static void put_sample(uint32_t pid, uint64_t addr)
{
    size_t start = begin_event(PERF_RECORD_SAMPLE, PERF_MISC_USER);
    sink_u64(&profile, addr);
    put_trailer(pid);
    end_event(start);
}

static void end_profile(void)
{
    struct byte_sink section = byte_sink_over(profile.data + PERF_HEADER_DATA, 16);
    const size_t records = PERF_FILE_HEADER_BYTES + ATTR_BYTES + PERF_SECTION_BYTES;
    sink_u64(&section, records);
    sink_u64(&section, profile.size - records);
}

/* ---- The kinds ---- */

static void make_lives(uint32_t count)
{
    put_load(PID, 0);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t pid = CHILD + i;
        now_ns += 1000;
        put_task(PERF_RECORD_FORK, pid, PID);
        put_name(pid, PERF_MISC_COMM_EXEC);
        put_map(pid, ARENA, 0x1000);
        put_sample(pid, ARENA);
        put_task(PERF_RECORD_EXIT, pid, PID);
    }
}

static void make_children(uint32_t count, bool flip, bool chain)
{
    for (uint32_t i = 0; i < count; i++)
        put_load(PID, i);
    now_ns += 1000;
    put_sample(PID, ARENA);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t pid = CHILD + i;
        now_ns += 1000;
        put_task(PERF_RECORD_FORK, pid, chain && i ? pid - 1 : PID);
        if (flip) {
            put_name(pid, 0);
            put_map(pid, ARENA + (uint64_t)CODE_BYTES * i, CODE_BYTES / 2);
        }
        put_sample(pid, ARENA + (uint64_t)CODE_BYTES * i);
    }
}

/* A function with COUNT others inside it, which leave COUNT pieces of it, is forgotten. */
static void make_pieces(uint32_t count)
{
    put_load_at(PID, count, ARENA, (uint64_t)CODE_BYTES * count);
    for (uint32_t i = 0; i < count; i++)
        put_load_at(PID, i, ARENA + (uint64_t)CODE_BYTES * i, CODE_BYTES / 2);
    now_ns += 1000;
    put_unload(count, ARENA, (uint64_t)CODE_BYTES * count);
}

/* The same addresses again and again, with a sample each time. */
static void make_layers(uint32_t count, bool lines)
{
    for (uint32_t i = 0; i < count; i++) {
        now_ns += 1000;
        if (lines) {
            put_row(i, ARENA);
            put_tables(0, 1, 4);
        }
        put_load_at(PID, i, ARENA, CODE_BYTES);
        put_sample(PID, ARENA);
    }
}

/* The arena is mapped again and again. */
static void make_maps(uint32_t count)
{
    put_load(PID, 0);
    for (uint32_t i = 0; i < count; i++) {
        now_ns += 1000;
        put_map(PID, ARENA, UINT64_C(1) << 28);
        put_sample(PID, ARENA + (uint64_t)CODE_BYTES * (i + 1));
    }
}

static void make_dumps(uint32_t count)
{
    put_load(PID, 0);
    for (uint32_t i = 0; i < count; i++) {
        now_ns += 1000;
        put_dump_map(i, i % 2 ? i + 1 : 0);
        put_sample(PID, ARENA);
    }
}

static void make_threads(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        now_ns += 1000;
        put_thread(CHILD + i);
    }
    put_task_of_thread(PERF_RECORD_EXIT, PID);
    for (uint32_t i = 0; i < count; i++) {
        now_ns += 1000;
        put_load(PID, i);
        put_thread_sample(CHILD + i, ARENA + (uint64_t)CODE_BYTES * i);
        put_task_of_thread(PERF_RECORD_EXIT, CHILD + i);
    }
}

/* Unloads of the whole arena that are those of no function in it. */
static void make_unloads(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        put_load(PID, i);
    for (uint32_t i = 0; i < count; i++)
        put_unload(count + i, ARENA, (uint64_t)CODE_BYTES * count);
}

static void make_tables(uint32_t count)
{
    put_task(PERF_RECORD_FORK, CHILD, PID);
    now_ns += 1000;
    for (uint32_t i = 0; i < count; i++) {
        put_tables(i, 1, 4);
        put_load(CHILD, i);
    }
}

static void make_large_cie(uint32_t count)
{
    put_tables(0, count, count);
    for (uint32_t i = 0; i < count; i++)
        put_load(PID, i);
}

/* A record that is none, so that the next one is searched for. */
static void make_noise(uint32_t count)
{
    enum { RECORD_BYTES = 60 };
    put_load(PID, 0);
    for (int i = 0; i < 16; i++)
        sink_u8(&dump, 0xee);
    for (uint32_t i = 0; i < count * (RECORD_BYTES / 4); i++)
        sink_u32(&dump, RECORD_BYTES);
    for (uint32_t i = 0; i < count; i++) {
        sink_u32(&dump, JIT_CODE_LOAD);
        for (int word = 1; word < RECORD_BYTES / 4; word++)
            sink_u32(&dump, RECORD_BYTES);
    }
}

/* A function of zeros, and zeros behind it: are those behind a copy of those in front? */
static void make_hole(uint32_t pages)
{
    enum { PAGE_BYTES = 4096 };
    uint32_t bytes = pages / 2 * PAGE_BYTES;
    put_load_at(PID, 0, ARENA, bytes);
    memset(dump.data + dump.size - bytes, 0, bytes);
    for (uint32_t i = 0; i < bytes + CODE_BYTES; i++)
        sink_u8(&dump, 0);
    for (uint32_t i = 1; i < 16; i++)
        put_load_at(PID, i, ARENA + bytes + (uint64_t)CODE_BYTES * i, CODE_BYTES);
}

static bool make(const char *kind, uint32_t count)
{
    if (strcmp(kind, "lives") == 0)
        make_lives(count);
    else if (strcmp(kind, "children") == 0)
        make_children(count, false, false);
    else if (strcmp(kind, "flips") == 0)
        make_children(count, true, false);
    else if (strcmp(kind, "deep") == 0)
        make_children(count, false, true);
    else if (strcmp(kind, "chain") == 0)
        make_children(count, true, true);
    else if (strcmp(kind, "pieces") == 0)
        make_pieces(count);
    else if (strcmp(kind, "layers") == 0)
        make_layers(count, false);
    else if (strcmp(kind, "lined") == 0)
        make_layers(count, true);
    else if (strcmp(kind, "unloads") == 0)
        make_unloads(count);
    else if (strcmp(kind, "tables") == 0)
        make_tables(count);
    else if (strcmp(kind, "large-cie") == 0)
        make_large_cie(count);
    else if (strcmp(kind, "hole") == 0)
        make_hole(count);
    else if (strcmp(kind, "dumps") == 0)
        make_dumps(count);
    else if (strcmp(kind, "maps") == 0)
        make_maps(count);
    else if (strcmp(kind, "threads") == 0)
        make_threads(count);
    else if (strcmp(kind, "noise") == 0)
        make_noise(count);
    else
        return false;
    return true;
}

static void put_file(const char *directory, const char *name, const struct byte_sink *sink)
{
    char path[PATH_MAX];
    if (sink->overflow)
        errx(EXIT_FAILURE, "%s: too large", name);
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(sink->data, 1, sink->size, file) != sink->size || fclose(file))
        err(EXIT_FAILURE, "%s", path);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        errx(2, "usage: costly KIND N DIRECTORY");
    begin_dump();
    begin_profile();
    put_map(PID, ARENA, UINT64_C(1) << 28);
    if (!make(argv[1], (uint32_t)strtoul(argv[2], NULL, 10)))
        errx(2, "%s: no such kind", argv[1]);
    now_ns += 1000;
    put_sample(PID, ARENA);
    end_profile();
    put_file(argv[3], "perf.data", &profile);
    put_file(argv[3], "jit-4711.dump", &dump);
    return EXIT_SUCCESS;
}
