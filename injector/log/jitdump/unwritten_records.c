/* See unwritten_records.h.  glibc's FILE, struct _IO_FILE, as programs have been compiled with it
 * since version 2.1:
 *
 *     0    u32  flags: 0xfbad in the upper half; 0x800: it is being written
 *     32   u64  write_base, where the bytes that are not written begin
 *     40   u64  write_ptr, where they end
 *     56   u64  buf_base
 *     64   u64  buf_end
 *     112  i32  the file's number */
#include "injector/log/jitdump/unwritten_records.h"

#include "injector/log/jitdump/torn_record.h"
#include "jitdump/format/jitdump_format.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    CHUNK_BYTES = 1 << 20,
    WORD_BYTES = 8,
    STREAM_BYTES = 120,
    WRITE_BASE_AT = 32,
    WRITE_PTR_AT = 40,
    BUFFER_BASE_AT = 56,
    BUFFER_END_AT = 64,
    NUMBER_AT = 112,
};

#define STREAM_MAGIC   UINT32_C(0xfbad0000)
#define STREAM_WRITING UINT32_C(0x800)

/* The limits: of a buffer, and of the memory that is searched for one. */
#define LARGEST_BUFFER UINT64_C(16777216)
#define MOST_STREAM    (UINT64_C(1) << 31)
#define MOST_BUFFER    (UINT64_C(1) << 29)

/* The end of a dump's file. */
struct file_end {
    const struct jit_dump *dump;
    struct record_reader reader; /* as it is there */
    uint64_t from;               /* where the torn record begins, or the file's end */
    size_t missing;              /* bytes of the torn record; 0: there is none, or that is torn: */
    bool has_no_size;            /* not even its size is in the file */
};

struct search {
    struct file_end end;
    struct process_memory *memory;
    struct unwritten_records *best;
    bool is_ambiguous, no_memory;
};

/* ---- The file's end ---- */

/* Returns false if nothing can follow: it is closed, or has room at its end.  A FILLER is
 * libjitdump's, which keeps no record back: a search of a JVM's memory for one would take
 * seconds. */
static bool find_end(struct file_end *end, const struct jit_dump *dump)
{
    struct jit_dump_walk walk = jit_dump_begin(dump);
    struct jit_record record;
    enum jit_dump_end how;
    if (jit_dump_is_closed(dump))
        return false;
    while (jit_dump_goes_on(how = jit_dump_next(&walk, &record)))
        if (how == JIT_DUMP_MORE && record.id == JIT_FILLER)
            return false;
    *end = (struct file_end){.dump = dump, .reader = walk.reader, .from = walk.offset};
    size_t left = dump->size - (size_t)walk.offset;
    struct byte_cursor cursor = byte_cursor_over(dump->data + walk.offset, left, dump->big_endian);
    uint32_t id = cursor_u32(&cursor), bytes = cursor_u32(&cursor);
    if (left == 0)
        return true;
    end->has_no_size = cursor.failed;
    end->missing = cursor.failed ? 0 : bytes - left;
    if (how == JIT_DUMP_WHOLE) /* zeros: the id of a LOAD, or room that was never used */
        return left <= sizeof id;
    return cursor.failed || (jit_record_name(id) && bytes > left);
}

/* ---- What may follow it ---- */

/* Whether the code of LOAD is in the memory, to its last byte.  Runtimes change code that they have
 * logged. */
static bool has_code(const struct process_memory *memory, const struct jit_load *load)
{
    enum { LAST_BYTES = 64 };
    uint8_t bytes[LAST_BYTES];
    size_t count = load->code_size < LAST_BYTES ? (size_t)load->code_size : (size_t)LAST_BYTES;
    uint64_t behind = load->code_size - count;
    size_t equal = 0;
    if (!load->code || !count ||
        !memory->read(memory->context, load->code_addr + behind, bytes, count))
        return false;
    for (size_t i = 0; i < count; i++)
        equal += bytes[i] == load->code[behind + i];
    return 2 * equal >= count;
}

/* The records of the dump in some bytes that may follow its file. */
struct continuation {
    size_t byte_count;
    uint64_t record_count;
};

/* Go through the records in DATA, in which the file's last TORN bytes come first.  Where it is not
 * known how far the buffer is FILLED, they end behind the last one whose code is in memory: name
 * and code are written before it is, and what follows may be half written. */
static struct continuation records_in(const struct search *search, const uint8_t *data, size_t torn,
                                      size_t size, bool filled)
{
    struct continuation found = {0};
    struct record_reader reader = search->end.reader;
    struct jit_record record;
    uint64_t count = 0;
    reader.data = data;
    reader.size = reader.used_bytes = size;
    for (size_t at = 0; at < size && jit_record_is_sound(&reader, at) &&
                        jit_record_at(&reader, at, &record) && record.id != JIT_HEADER;) {
        bool is_load = record.id == JIT_CODE_LOAD && !record.broken;
        if ((is_load && reader.pid && record.load.pid != reader.pid) ||
            (reader.time && record.timestamp < reader.time))
            break;
        reader.time = record.timestamp;
        at += record.total_size;
        count++;
        if (at > torn && (filled || (is_load && has_code(search->memory, &record.load))))
            found = (struct continuation){at - torn, count};
    }
    return found;
}

/* Keep what FOUND says of BYTES if it has more records than the best so far. */
static void keep_best(struct search *search, const uint8_t *bytes, struct continuation found)
{
    struct unwritten_records *best = search->best;
    if (!found.byte_count || found.record_count < best->record_count)
        return;
    if (found.record_count == best->record_count) {
        search->is_ambiguous |= found.byte_count != best->byte_count ||
                                memcmp(bytes, best->bytes, found.byte_count) != 0;
        return;
    }
    uint8_t *copy = malloc(found.byte_count);
    search->no_memory |= !copy;
    if (!copy)
        return;
    memcpy(copy, bytes, found.byte_count);
    free(best->bytes);
    *best = (struct unwritten_records){copy, found.byte_count, found.record_count};
    search->is_ambiguous = false;
}

/* Whether the COUNT bytes at ADDR go on where the file ends. */
static void consider(struct search *search, uint64_t addr, size_t count, bool filled)
{
    const struct process_memory *memory = search->memory;
    const struct jit_dump *dump = search->end.dump;
    size_t torn = dump->size - (size_t)search->end.from;
    uint8_t *bytes = malloc(torn + count);
    search->no_memory |= !bytes;
    if (bytes && memory->read(memory->context, addr, bytes + torn, count)) {
        memcpy(bytes, dump->data + search->end.from, torn);
        keep_best(search, bytes + torn, records_in(search, bytes, torn, torn + count, filled));
    }
    free(bytes);
}

/* ---- Searching ---- */

static uint64_t word_at(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

static uint32_t half_word_at(const uint8_t *bytes)
{
    uint32_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

static void keep_stream(struct process_memory *memory, uint64_t addr)
{
    for (size_t i = 0; i < memory->stream_count; i++)
        if (memory->streams[i] == addr)
            return;
    if (memory->stream_count < MOST_STREAMS)
        memory->streams[memory->stream_count++] = addr;
}

/* If a stream that is being written is at BYTES, at ADDR: what it has not written. */
static void look_for_stream(struct search *search, const uint8_t *bytes, uint64_t addr)
{
    uint32_t flags = half_word_at(bytes);
    if ((flags & UINT32_C(0xffff0000)) != STREAM_MAGIC || !(flags & STREAM_WRITING))
        return;
    uint64_t base = word_at(bytes + WRITE_BASE_AT), end = word_at(bytes + WRITE_PTR_AT);
    int32_t number = (int32_t)half_word_at(bytes + NUMBER_AT);
    bool is_file =
        search->memory->file_number < 0 ? number >= 0 : number == search->memory->file_number;
    if (!is_file || base != word_at(bytes + BUFFER_BASE_AT))
        return;
    if (search->memory->file_number >= 0)
        keep_stream(search->memory, addr);
    if (end > base && end <= word_at(bytes + BUFFER_END_AT) && end - base <= LARGEST_BUFFER)
        consider(search, base, (size_t)(end - base), true);
}

/* If the record that follows the torn one may be at BYTES, at ADDR of RANGE: what is there. */
static void look_for_record(struct search *search, const uint8_t *bytes, uint64_t addr,
                            const struct memory_range *range)
{
    enum { READ_BYTES = 1 << 16 };
    const struct file_end *end = &search->end;
    struct byte_cursor cursor = byte_cursor_over(bytes, JR_PREFIX_BYTES, end->reader.big_endian);
    uint32_t id = cursor_u32(&cursor), size = cursor_u32(&cursor);
    uint64_t time = cursor_u64(&cursor);
    if (size < JR_PREFIX_BYTES || size > LARGEST_BUFFER || !jit_record_name(id) ||
        time < end->reader.time || addr - range->start < end->missing)
        return;
    uint64_t base = addr - end->missing, room = range->end - base;
    uint64_t wanted = end->missing + size + READ_BYTES;
    consider(search, base, (size_t)(wanted < room ? wanted : room), false);
}

/* Look at each word of the memory's first MOST bytes, for a stream or for a RECORD.  Pieces overlap
 * by what has to be seen at once. */
static void look_at_all(struct search *search, bool record, uint64_t most)
{
    const size_t needed = record ? JR_PREFIX_BYTES : STREAM_BYTES;
    uint8_t *bytes = malloc(CHUNK_BYTES + STREAM_BYTES);
    search->no_memory |= !bytes;
    for (size_t i = 0; bytes && i < search->memory->range_count; i++) {
        const struct memory_range *range = &search->memory->ranges[i];
        uint64_t at = range->start + (record ? search->end.missing % WORD_BYTES : 0);
        for (; at + needed <= range->end && most; at += CHUNK_BYTES) {
            uint64_t left = range->end - at;
            size_t count = left < CHUNK_BYTES + STREAM_BYTES ? (size_t)left
                                                             : (size_t)CHUNK_BYTES + STREAM_BYTES;
            most -= most < count ? most : count;
            if (!search->memory->read(search->memory->context, at, bytes, count))
                continue;
            for (size_t j = 0; j < CHUNK_BYTES && j + needed <= count; j += WORD_BYTES)
                if (record)
                    look_for_record(search, bytes + j, at + j, range);
                else
                    look_for_stream(search, bytes + j, at + j);
        }
    }
    free(bytes);
}

static int give_best(struct search *search)
{
    if (!search->is_ambiguous && !search->no_memory)
        return 0;
    free(search->best->bytes);
    *search->best = (struct unwritten_records){0};
    return search->no_memory ? -1 : 0;
}

int unwritten_records_find(struct unwritten_records *found, const struct jit_dump *dump,
                           struct process_memory *memory)
{
    struct search search = {.memory = memory, .best = found};
    *found = (struct unwritten_records){0};
    if (!find_end(&search.end, dump))
        return 0;
    look_at_all(&search, false, MOST_STREAM);
    if (!found->record_count && !search.end.has_no_size)
        look_at_all(&search, true, MOST_BUFFER);
    return give_best(&search);
}

int unwritten_records_find_again(struct unwritten_records *found, const struct jit_dump *dump,
                                 struct process_memory *memory)
{
    struct search search = {.memory = memory, .best = found};
    uint8_t bytes[STREAM_BYTES];
    *found = (struct unwritten_records){0};
    if (!find_end(&search.end, dump))
        return 0;
    for (size_t i = 0; i < memory->stream_count; i++)
        if (memory->read(memory->context, memory->streams[i], bytes, sizeof bytes))
            look_for_stream(&search, bytes, memory->streams[i]);
    return give_best(&search);
}

int unwritten_records_append(struct jit_dump *dump, const struct unwritten_records *records)
{
    size_t size = dump->size + records->byte_count;
    uint8_t *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return -1;
    memcpy(data, dump->data, dump->size);
    memcpy(data + dump->size, records->bytes, records->byte_count);
    jit_dump_close(dump);
    dump->data = data;
    dump->size = dump->used_bytes = size;
    dump->mapped = true;
    return 0;
}
