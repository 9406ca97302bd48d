/* A jitdump file in memory, built record by record. */
#ifndef PERFJIT_TEST_DUMP_BUILDER_H
#define PERFJIT_TEST_DUMP_BUILDER_H

#include "injector/log/jitdump/jit_dump.h"
#include "jitdump/format/byte_sink.h"
#include "tests/unit/scratch.h"

#include <elf.h>

struct dump_builder {
    uint8_t bytes[1 << 18];
    struct byte_sink sink;
};

static inline void dump_begin(struct dump_builder *dump, bool big_endian, uint32_t header_bytes)
{
    dump->sink = byte_sink_over(dump->bytes, sizeof dump->bytes);
    dump->sink.big_endian = big_endian;
    sink_u32(&dump->sink, JITDUMP_MAGIC);
    sink_u32(&dump->sink, JITDUMP_FILE_VERSION);
    sink_u32(&dump->sink, header_bytes);
    sink_u32(&dump->sink, EM_X86_64);
    sink_u32(&dump->sink, 0);
    sink_u32(&dump->sink, 4711); /* pid */
    sink_u64(&dump->sink, 99);   /* timestamp */
    sink_u64(&dump->sink, 0);    /* flags */
    sink_zeros(&dump->sink, header_bytes > JITHEADER_BYTES ? header_bytes - JITHEADER_BYTES : 0u);
}

/* Begin a record; dump_end_record sets its total_size.  Returns where it starts. */
static inline size_t dump_begin_record(struct dump_builder *dump, uint32_t id, uint64_t time)
{
    size_t start = dump->sink.size;
    sink_u32(&dump->sink, id);
    sink_u32(&dump->sink, 0);
    sink_u64(&dump->sink, time);
    return start;
}

static inline void dump_set_size(struct dump_builder *dump, size_t start, uint32_t total_size)
{
    struct byte_sink patch = byte_sink_over(dump->bytes + start + 4, 4);
    patch.big_endian = dump->sink.big_endian;
    sink_u32(&patch, total_size);
}

static inline void dump_end_record(struct dump_builder *dump, size_t start)
{
    dump_set_size(dump, start, (uint32_t)(dump->sink.size - start));
}

static inline void dump_ids(struct dump_builder *dump)
{
    sink_u32(&dump->sink, 4711);
    sink_u32(&dump->sink, 4712);
}

/* The fixed part of a LOAD; name, code and dump_end_record are the caller's. */
static inline size_t dump_begin_load(struct dump_builder *dump, uint64_t time, uint64_t addr,
                                     uint64_t code_size, uint64_t code_index)
{
    size_t start = dump_begin_record(dump, JIT_CODE_LOAD, time);
    dump_ids(dump);
    sink_u64(&dump->sink, addr + 0x1000); /* vma: nobody's business */
    sink_u64(&dump->sink, addr);
    sink_u64(&dump->sink, code_size);
    sink_u64(&dump->sink, code_index);
    return start;
}

static inline void dump_load(struct dump_builder *dump, uint64_t time, uint64_t addr,
                             const char *name, const char *code, uint64_t code_index)
{
    size_t start = dump_begin_load(dump, time, addr, strlen(code), code_index);
    sink_cstr(&dump->sink, name);
    sink_bytes(&dump->sink, code, strlen(code));
    dump_end_record(dump, start);
}

static inline void dump_move(struct dump_builder *dump, uint64_t time, uint64_t old_addr,
                             uint64_t new_addr, uint64_t code_size, uint64_t code_index)
{
    size_t start = dump_begin_record(dump, JIT_CODE_MOVE, time);
    dump_ids(dump);
    sink_u64(&dump->sink, new_addr);
    sink_u64(&dump->sink, old_addr);
    sink_u64(&dump->sink, new_addr);
    sink_u64(&dump->sink, code_size);
    sink_u64(&dump->sink, code_index);
    dump_end_record(dump, start);
}

static inline void dump_unload(struct dump_builder *dump, uint64_t time, uint64_t addr,
                               uint64_t code_size, uint64_t code_index)
{
    size_t start = dump_begin_record(dump, JIT_CODE_UNLOAD, time);
    dump_ids(dump);
    sink_u64(&dump->sink, addr);
    sink_u64(&dump->sink, code_size);
    sink_u64(&dump->sink, code_index);
    dump_end_record(dump, start);
}

/* What says that the LOAD behind it, at ADDR, is piece NUMBER of PIECES of function CODE_INDEX. */
static inline void dump_piece(struct dump_builder *dump, uint64_t time, uint64_t addr,
                              uint64_t code_index, uint32_t number, uint32_t pieces)
{
    size_t start = dump_begin_record(dump, JIT_CODE_PIECE, time);
    sink_u64(&dump->sink, addr);
    sink_u64(&dump->sink, code_index);
    sink_u32(&dump->sink, number);
    sink_u32(&dump->sink, pieces);
    dump_end_record(dump, start);
}

/* A record of any ID with BYTES bytes of zeros behind the prefix. */
static inline void dump_plain(struct dump_builder *dump, uint32_t id, uint64_t time, size_t bytes)
{
    size_t start = dump_begin_record(dump, id, time);
    sink_zeros(&dump->sink, bytes);
    dump_end_record(dump, start);
}

static inline void dump_unwinding(struct dump_builder *dump, uint64_t time, uint64_t unwinding_size,
                                  uint64_t hdr_size, size_t data_bytes)
{
    size_t start = dump_begin_record(dump, JIT_CODE_UNWINDING_INFO, time);
    sink_u64(&dump->sink, unwinding_size);
    sink_u64(&dump->sink, hdr_size);
    sink_u64(&dump->sink, unwinding_size);
    sink_zeros(&dump->sink, data_bytes);
    dump_end_record(dump, start);
}

/* Write what has been built, cut after SIZE bytes, and open it. */
static inline void open_cut_dump(const struct dump_builder *dump, size_t size,
                                 struct jit_dump *opened)
{
    char cause[256] = "";
    assert_false(dump->sink.overflow);
    write_scratch(dump->bytes, size);
    if (jit_dump_open(opened, scratch_file, cause, sizeof cause))
        fail_msg("%s", cause);
}

static inline void open_built_dump(const struct dump_builder *dump, struct jit_dump *opened)
{
    open_cut_dump(dump, dump->sink.size, opened);
}

/* Open what was built, which holds one record, and read that. */
static inline void read_only_record(const struct dump_builder *built, struct jit_dump *dump,
                                    struct jit_record *record)
{
    open_built_dump(built, dump);
    struct jit_dump_walk walk = jit_dump_begin(dump);
    assert_int_equal(jit_dump_next(&walk, record), JIT_DUMP_MORE);
    assert_int_equal(jit_dump_next(&walk, &(struct jit_record){0}), JIT_DUMP_WHOLE);
}

#endif
