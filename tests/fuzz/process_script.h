/* A dump and a recording of its process and its children, made from a script: what happens in them
 * together.
 *
 * Bytes that are mutated hardly ever become a sound record; these make nothing else. A step is 4
 * bytes:
 *
 *     0 what happens, in its low 4 bits; in the high ones, how many ns after the step before
 *     1 in whose life (low 2 bits: one of 4 pids)
 *     2 where (in units of 64 bytes)
 *     3 how large, which name, which parent, where to
 *
 * An empty script is a dump and a recording without records. */
#ifndef PERFJIT_FUZZ_PROCESS_SCRIPT_H
#define PERFJIT_FUZZ_PROCESS_SCRIPT_H

#include "jitdump/cfi.h"
#include "tests/unit/dump_builder.h"
#include "tests/unit/profile_builder.h"

enum script_step_kind {
    SCRIPT_LOAD, /* in the dump, which is process 4711's; LOAD.pid tells whose it is */
    SCRIPT_MOVE,
    SCRIPT_UNLOAD,
    SCRIPT_HEADER,
    SCRIPT_TABLES,
    SCRIPT_FORK, /* in the recording */
    SCRIPT_EXIT,
    SCRIPT_EXEC,
    SCRIPT_MAP,
    SCRIPT_SAMPLE,
    SCRIPT_KINDS,
};

/* The builders have room for more than SCRIPT_STEPS. */
enum { SCRIPT_STEP_BYTES = 4, SCRIPT_STEPS = 500, SCRIPT_PID = 4711, SCRIPT_BASE = 0x40000000 };

struct process_script {
    struct dump_builder dump;
    struct profile_builder records;
    uint64_t time;
};

struct script_step {
    uint32_t pid;
    uint8_t kind, where, how;
};

static inline uint64_t script_addr(uint8_t where)
{
    return SCRIPT_BASE + UINT64_C(64) * where;
}

static inline void script_set_u32(uint8_t *bytes, uint32_t value)
{
    struct byte_sink patch = byte_sink_over(bytes, 4);
    sink_u32(&patch, value);
}

static inline void script_tables(struct process_script *script, uint64_t code_size)
{
    static const struct jitdump_frame frame = {.kind = JITDUMP_FRAME_POINTER};
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    struct jitdump_unwind unwind;
    if (!cfi)
        return;
    jitdump_cfi_frame(cfi, &frame);
    if (jitdump_cfi_finish(cfi, code_size, &unwind) == 0) {
        size_t start = dump_begin_record(&script->dump, JIT_CODE_UNWINDING_INFO, script->time);
        sink_u64(&script->dump.sink, unwind.unwinding_size);
        sink_u64(&script->dump.sink, unwind.eh_frame_hdr_size);
        sink_u64(&script->dump.sink, unwind.mapped_size);
        sink_bytes(&script->dump.sink, unwind.data, (size_t)unwind.unwinding_size);
        dump_end_record(&script->dump, start);
    }
    jitdump_cfi_free(cfi);
}

/* A record of the dump: LOAD, MOVE and UNLOAD have the pid behind the prefix. */
static inline void script_dump(struct process_script *script, const struct script_step *step)
{
    enum { CODE_BYTES = 32, HEADER_PID = 20 };
    struct dump_builder *dump = &script->dump;
    uint64_t addr = script_addr(step->where), size = step->how % CODE_BYTES + 1u;
    size_t start = dump->sink.size, pid_at = start + JR_PREFIX_BYTES;
    char code[CODE_BYTES + 1];
    memset(code, step->how | 1, (size_t)size);
    code[size] = '\0';
    if (step->kind == SCRIPT_LOAD) {
        dump_load(dump, script->time, addr, "name", code, step->where % 16);
    } else if (step->kind == SCRIPT_MOVE) {
        dump_move(dump, script->time, addr, script_addr(step->how), 8, step->where % 16);
    } else if (step->kind == SCRIPT_UNLOAD) {
        dump_unload(dump, script->time, addr, size, step->where % 16);
    } else {
        sink_bytes(&dump->sink, dump->bytes, JITHEADER_BYTES);
        pid_at = start + HEADER_PID;
    }
    script_set_u32(dump->bytes + pid_at, step->pid);
}

/* FORK, EXIT: u32 pid, ppid, tid, ptid, u64 time. */
static inline void script_task(struct process_script *script, uint32_t type, uint32_t pid,
                               uint32_t parent)
{
    struct profile_builder *records = &script->records;
    size_t start = profile_begin_record(records, type, 0);
    sink_u32(&records->sink, pid);
    sink_u32(&records->sink, parent);
    sink_u32(&records->sink, pid);
    sink_u32(&records->sink, parent);
    sink_u64(&records->sink, script->time);
    profile_put_trailer(records, 0, pid, script->time);
    profile_end_record(records, start);
}

static inline void script_exec(struct process_script *script, uint32_t pid)
{
    struct profile_builder *records = &script->records;
    size_t start = profile_begin_record(records, PERF_RECORD_COMM, PERF_MISC_COMM_EXEC);
    sink_u32(&records->sink, pid);
    sink_u32(&records->sink, pid);
    sink_bytes(&records->sink, "program", 8);
    profile_put_trailer(records, 0, pid, script->time);
    profile_end_record(records, start);
}

static inline void script_map(struct process_script *script, const struct script_step *step)
{
    static const char *const names[] = {"//anon", "/dev/shm/arena", "/usr/lib/libx.so",
                                        "/tmp/jit-4711.dump"};
    struct profile_builder *records = &script->records;
    size_t start =
        profile_map(records, PERF_RECORD_MMAP2, 0, script_addr(step->where),
                    UINT64_C(64) << step->how / 4 % 8, names[step->how % 4], script->time);
    script_set_u32(records->bytes + start + PERF_RECORD_HEADER_BYTES, step->pid);
    script_set_u32(records->bytes + start + PERF_RECORD_HEADER_BYTES + 4, step->pid);
}

/* Behind the header stand u64 ip, u32 pid. */
static inline void script_sample(struct process_script *script, const struct script_step *step)
{
    struct profile_builder *records = &script->records;
    size_t start = profile_sample(records, 0, script->time);
    profile_set_u64(records, start + PERF_RECORD_HEADER_BYTES, script_addr(step->where));
    script_set_u32(records->bytes + start + PERF_RECORD_HEADER_BYTES + 8, step->pid);
}

static inline void script_take(struct process_script *script, const struct script_step *step)
{
    switch (step->kind) {
    case SCRIPT_TABLES:
        script_tables(script, step->how % 32 + 1u);
        return;
    case SCRIPT_FORK:
        script_task(script, PERF_RECORD_FORK, step->pid, SCRIPT_PID + step->how % 4);
        return;
    case SCRIPT_EXIT:
        script_task(script, PERF_RECORD_EXIT, step->pid, SCRIPT_PID + step->how % 4);
        return;
    case SCRIPT_EXEC:
        script_exec(script, step->pid);
        return;
    case SCRIPT_MAP:
        script_map(script, step);
        return;
    case SCRIPT_SAMPLE:
        script_sample(script, step);
        return;
    default:
        script_dump(script, step);
    }
}

/* Make SCRIPT's dump and recording of the SIZE bytes at BYTES. */
static inline void process_script_play(struct process_script *script, const uint8_t *bytes,
                                       size_t size)
{
    size_t steps = size / SCRIPT_STEP_BYTES;
    script->time = 1000;
    dump_begin(&script->dump, false, JITHEADER_BYTES);
    profile_begin_one(&script->records);
    for (size_t i = 0; i < steps && i < SCRIPT_STEPS; i++, bytes += SCRIPT_STEP_BYTES) {
        script->time += bytes[0] >> 4;
        script_take(script, &(struct script_step){.pid = SCRIPT_PID + bytes[1] % 4,
                                                  .kind = (bytes[0] & 15) % SCRIPT_KINDS,
                                                  .where = bytes[2],
                                                  .how = bytes[3]});
    }
    profile_end_records(&script->records);
}

#endif
