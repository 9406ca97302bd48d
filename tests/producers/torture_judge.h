/* The judge of a dump that a tortured process left: whether it holds what the process was told that it does, byte for byte. */
#ifndef PERFJIT_TORTURE_JUDGE_H
#define PERFJIT_TORTURE_JUDGE_H

#include "jitdump/format/byte_cursor.h"
#include "jitdump/format/jitdump_format.h"
#include "tests/producers/torture_ops.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

struct verdict {
    uint64_t runs, killed, loads, others, lost, torn, extra, fillers, repeated, failed, no_file,
        unsound;
    uint64_t died; /* ended otherwise than by the kill, or status 0 */
    uint64_t miscounted;
};

struct found {
    uint8_t ops[THREADS_MAX][OPS];
    uint64_t records[3]; /* by op_kind */
    uint64_t fillers, repeated;
};

struct dump_bytes {
    uint8_t *data;
    size_t size;
};

static bool read_dump(struct dump_bytes *dump, const char *path)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    *dump = (struct dump_bytes){0};
    if (fd < 0)
        return false;
    if (fstat(fd, &status) || !(dump->data = malloc((size_t)status.st_size + 1)))
        fail(path);
    if (read(fd, dump->data, (size_t)status.st_size) != status.st_size)
        fail(path);
    dump->size = (size_t)status.st_size;
    close(fd);
    return true;
}

struct record {
    uint32_t id;
    uint64_t timestamp;
    struct byte_cursor body;
};

enum next { RECORD, END, TORN };

static enum next next_record(const struct dump_bytes *dump, size_t *offset, struct record *record)
{
    struct byte_cursor cursor = byte_cursor_over(dump->data + *offset, dump->size - *offset, false);
    record->id = cursor_u32(&cursor);
    uint32_t total_size = cursor_u32(&cursor);
    record->timestamp = cursor_u64(&cursor);
    if (cursor.failed || total_size == 0) { /* room that was never used */
        for (size_t i = *offset; i < dump->size; i++)
            if (dump->data[i])
                return TORN;
        return END;
    }
    if (total_size < JR_PREFIX_BYTES || total_size > dump->size - *offset)
        return TORN;
    *offset += total_size;
    cursor.size = total_size;
    record->body = cursor;
    return RECORD;
}

static bool is_filled(struct byte_cursor *cursor, size_t count, uint8_t pattern)
{
    const uint8_t *bytes = cursor_bytes(cursor, count);
    for (size_t i = 0; bytes && i < count; i++)
        if (bytes[i] != pattern)
            return false;
    return bytes && cursor_left(cursor) == 0;
}

static bool check_load(struct byte_cursor body, unsigned *thread, unsigned *i, uint64_t *code_index)
{
    cursor_skip(&body, 8 + 8);
    uint64_t addr = cursor_u64(&body), code_size = cursor_u64(&body);
    *code_index = cursor_u64(&body);
    const char *name = cursor_cstr(&body);
    return name && sscanf(name, "t%u_%u", thread, i) == 2 && *thread < THREADS_MAX && *i < OPS &&
           addr == addr_of(*thread, *i) && code_size == code_bytes_of(*thread, *i) &&
           is_filled(&body, code_size, pattern_of(*thread, *i));
}

static bool check_debug(struct byte_cursor body, unsigned thread, unsigned i)
{
    char name[32];
    snprintf(name, sizeof name, "t%u_%u", thread, i);
    bool same = cursor_u64(&body) == addr_of(thread, i) && cursor_u64(&body) == 2 &&
                cursor_u64(&body) == addr_of(thread, i) && cursor_u32(&body) == i &&
                cursor_u32(&body) == thread;
    const char *file = cursor_cstr(&body);
    return same && file && strcmp(file, name) == 0;
}

/* RECORD begins the group of a load: read the rest of it. */
static bool check_group(const struct dump_bytes *dump, size_t *offset, struct record record,
                        unsigned *thread, unsigned *i, uint64_t *code_index)
{
    struct record unwind = {0}, inlines = {0}, debug = {0};
    uint64_t time = record.timestamp;
    for (; record.id != JIT_CODE_LOAD;) {
        *(record.id == JIT_CODE_UNWINDING_INFO ? &unwind
          : record.id == JIT_CODE_INLINE_INFO  ? &inlines
                                               : &debug) = record;
        if (next_record(dump, offset, &record) != RECORD || record.timestamp != time)
            return false;
        if (record.id != JIT_CODE_LOAD && record.id != JIT_CODE_INLINE_INFO &&
            record.id != JIT_CODE_DEBUG_INFO)
            return false;
    }
    if (!check_load(record.body, thread, i, code_index) || kind_of(*i) != LOAD)
        return false;
    cursor_skip(&unwind.body, 24);
    return (unwind.id != 0) == has_unwind(*i) && (inlines.id != 0) == has_inlines(*i) && debug.id &&
           check_debug(debug.body, *thread, *i) &&
           (!unwind.id || is_filled(&unwind.body, UNWIND_BYTES, pattern_of(*thread, *i))) &&
           (!inlines.id || cursor_u64(&inlines.body) == addr_of(*thread, *i));
}

/* Which operation a move to ADDR is, or the load of what stands at ADDR. */
static bool op_at(uint64_t addr, unsigned *thread, unsigned *i)
{
    uint64_t offset = addr - addr_of(0, 0);
    *thread = (unsigned)(offset >> 32);
    *i = (unsigned)((offset & UINT32_MAX) / 4096);
    return *thread < THREADS_MAX && *i < OPS && addr == addr_of(*thread, *i);
}

static bool check_move(struct byte_cursor body, unsigned *thread, unsigned *i)
{
    cursor_skip(&body, 8 + 8);
    uint64_t old_addr = cursor_u64(&body), new_addr = cursor_u64(&body);
    uint64_t code_size = cursor_u64(&body), code_index = cursor_u64(&body);
    return op_at(new_addr, thread, i) && kind_of(*i) == MOVE && *i > 0 &&
           old_addr == addr_of(*thread, *i - 1) && code_size == code_bytes_of(*thread, *i - 1) &&
           code_index == run_log->ops[*thread][*i - 1].code_index && !body.failed;
}

static bool check_unload(struct byte_cursor body, unsigned *thread, unsigned *i)
{
    cursor_skip(&body, 8);
    uint64_t addr = cursor_u64(&body), code_size = cursor_u64(&body);
    uint64_t code_index = cursor_u64(&body);
    if (!op_at(addr, thread, i) || *i + CYCLE - 1 >= OPS)
        return false;
    bool same = code_size == code_bytes_of(*thread, *i) &&
                code_index == run_log->ops[*thread][*i].code_index && !body.failed;
    *i += CYCLE - 1;
    return same && kind_of(*i) == UNLOAD;
}

/* Say where and why, and keep what was found. */
static bool torn_at(const struct dump_bytes *dump, size_t offset, const char *why)
{
    FILE *file = fopen("torn.dump", "wb");
    fprintf(stderr, "torture: 0x%zx: %s; see torn.dump\n", offset, why);
    if (!file || fwrite(dump->data, 1, dump->size, file) != dump->size || fclose(file))
        fail("torn.dump");
    return false;
}

/* All operations that DUMP has.  What is not later than *LATEST, in the body, may be in its stage as well.  Returns false where it is torn. */
static bool find_ops(const struct dump_bytes *dump, struct found *found, uint64_t *latest)
{
    const uint64_t before = *latest;
    size_t offset = JITHEADER_BYTES;
    struct record record;
    enum next next;
    uint64_t time = 0;
    while ((next = next_record(dump, &offset, &record)) == RECORD) {
        unsigned thread, i;
        uint64_t code_index;
        enum op_kind kind = LOAD;
        if (record.id == JIT_FILLER) {
            found->fillers++;
            continue;
        }
        if (record.timestamp < time)
            return torn_at(dump, offset, "an earlier time before this");
        time = record.timestamp;
        *latest = time > before ? time : before;
        if (record.id == JIT_CODE_CLOSE)
            continue;
        bool sound;
        if (record.id == JIT_CODE_MOVE) {
            kind = MOVE;
            sound = check_move(record.body, &thread, &i);
        } else if (record.id == JIT_CODE_UNLOAD) {
            kind = UNLOAD;
            sound = check_unload(record.body, &thread, &i);
        } else {
            sound = check_group(dump, &offset, record, &thread, &i, &code_index) &&
                    (run_log->ops[thread][i].state != DONE ||
                     run_log->ops[thread][i].code_index == code_index);
        }
        if (!sound || (found->ops[thread][i]++ != 0) != (time <= before))
            return torn_at(dump, offset,
                           sound ? "twice, or out of order" : "not what was logged, before this");
        found->repeated += time <= before;
        found->records[kind]++;
    }
    return next == END || torn_at(dump, offset, "no record");
}

static void judge_thread(const struct op *ops, const uint8_t *found, struct verdict *verdict)
{
    bool under_way = true; /* the first that did not return may be there */
    for (unsigned i = 0; i < OPS; i++) {
        uint32_t state = atomic_load(&ops[i].state);
        *(kind_of(i) == LOAD ? &verdict->loads : &verdict->others) += state == DONE;
        verdict->lost += state == DONE && !found[i];
        verdict->failed += state == FAILED;
        verdict->extra += found[i] && state != DONE && !(state == NOT_RETURNED && under_way);
        under_way = under_way && state != NOT_RETURNED;
    }
}

/* Count what perfjit dump makes of PATH. */
static bool count_records(const char *perfjit, const char *path, uint64_t records[3])
{
    char command[512], *line = NULL;
    size_t capacity = 0;
    snprintf(command, sizeof command, "%s dump --json %s", perfjit, path);
    FILE *stream = popen(command, "r");
    if (!stream)
        fail(command);
    while (getline(&line, &capacity, stream) > 0) {
        records[LOAD] += strstr(line, "\"type\":\"CODE_LOAD\"") != NULL;
        records[MOVE] += strstr(line, "\"type\":\"CODE_MOVE\"") != NULL;
        records[UNLOAD] += strstr(line, "\"type\":\"CODE_UNLOAD\"") != NULL;
    }
    free(line);
    return pclose(stream) == 0;
}

/* Does perfjit dump agree, about the body and the stage? */
static bool perfjit_agrees(const char *perfjit, const char *path, const char *stage_path,
                           const struct found *found)
{
    uint64_t records[3] = {0};
    return count_records(perfjit, path, records) &&
           (access(stage_path, F_OK) != 0 || count_records(perfjit, stage_path, records)) &&
           memcmp(records, found->records, sizeof records) == 0;
}

/* Where process PID has its dump in DIR. */
static void dump_path_of(char path[300], char stage_path[320], const char *dir, int pid)
{
    snprintf(path, 300, "%s/jitdump-%d/jit-%d.dump", dir, pid, pid);
    snprintf(stage_path, 320, "%s/jitdump-%d/stage/jit-%d.dump", dir, pid, pid);
}

static void remove_dump(const char *dir, int pid)
{
    char path[300], stage_path[320];
    dump_path_of(path, stage_path, dir, pid);
    unlink(stage_path);
    unlink(path);
    *strrchr(stage_path, '/') = '\0';
    rmdir(stage_path);
    *strrchr(path, '/') = '\0';
    rmdir(path);
}

/* Read PATH, which a process that is killed inside jitdump_open does not leave, or leaves without its header. */
static bool has_dump(struct dump_bytes *dump, const char *path)
{
    return read_dump(dump, path) && dump->size >= JITHEADER_BYTES &&
           memcmp(dump->data, "DTiJ", 4) == 0;
}

static void judge(const char *dir, int pid, const char *perfjit, unsigned threads,
                  struct verdict *verdict)
{
    struct found *found = calloc(1, sizeof *found);
    struct dump_bytes dump, stage;
    char path[300], stage_path[320];
    uint64_t latest = 0;
    dump_path_of(path, stage_path, dir, pid);
    if (!found)
        fail("calloc");
    bool there = has_dump(&dump, path), staged = has_dump(&stage, stage_path);
    verdict->no_file += !there;
    if (there &&
        (!find_ops(&dump, found, &latest) || (staged && !find_ops(&stage, found, &latest))))
        verdict->torn++;
    else if (there && staged && perfjit && !perfjit_agrees(perfjit, path, stage_path, found))
        verdict->unsound++;
    verdict->fillers += found->fillers;
    for (unsigned thread = 0; thread < threads; thread++)
        judge_thread(run_log->ops[thread], found->ops[thread], verdict);
    verdict->repeated += found->repeated;
    free(stage.data);
    free(dump.data);
    free(found);
}

#endif
