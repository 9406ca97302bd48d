/* See moved_group.h. */
#include "jitdump/ring/moved_group.h"
#include "jitdump/format/byte_sink.h"
#include "jitdump/format/jitdump_format.h"

#include <errno.h>
#include <string.h>

enum { /* offsets in records */
       AT_SIZE = 4,
       AT_TIME = 8,
       AT_PID_AND_TID = 16,
       AT_LOAD_VMA = 24,
       AT_LOAD_ADDR = 32,
       AT_MOVE_OLD_ADDR = 32,
       AT_MOVE_NEW_ADDR = 40,
       AT_MOVE_SIZE = 48,
       AT_MOVE_INDEX = 56,
       AT_INFO_ADDR = 16, /* of DEBUG_INFO and INLINE_INFO */
       AT_DEBUG_COUNT = 24,
};

static uint64_t word_at(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

static void add_at(uint8_t *at, uint64_t delta)
{
    uint64_t word = word_at(at) + delta;
    memcpy(at, &word, sizeof word);
}

static void move_lines(uint8_t *record, size_t bytes, uint64_t delta)
{
    uint64_t count = word_at(record + AT_DEBUG_COUNT);
    size_t at = JR_CODE_DEBUG_INFO_BYTES;
    for (uint64_t i = 0; i < count && bytes - at > JR_DEBUG_ENTRY_BYTES; i++) {
        add_at(record + at, delta);
        at += JR_DEBUG_ENTRY_BYTES;
        at += strnlen((const char *)record + at, bytes - at - 1) + 1;
    }
}

static void move_record(uint8_t *record, uint32_t id, size_t bytes, uint64_t delta)
{
    if (id == JIT_CODE_LOAD && bytes >= JR_CODE_LOAD_BYTES) {
        add_at(record + AT_LOAD_VMA, delta);
        add_at(record + AT_LOAD_ADDR, delta);
    } else if (id == JIT_CODE_DEBUG_INFO && bytes >= JR_CODE_DEBUG_INFO_BYTES) {
        add_at(record + AT_INFO_ADDR, delta);
        move_lines(record, bytes, delta);
    } else if (id == JIT_CODE_INLINE_INFO && bytes >= JR_CODE_INLINE_INFO_BYTES) {
        add_at(record + AT_INFO_ADDR, delta);
    }
}

int jd_moved_group(uint8_t *group, size_t bytes, uint64_t delta, uint64_t time)
{
    for (size_t at = 0; at < bytes;) {
        uint32_t id, total_size;
        if (bytes - at < JR_PREFIX_BYTES)
            return -ESTALE;
        memcpy(&id, group + at, sizeof id);
        memcpy(&total_size, group + at + AT_SIZE, sizeof total_size);
        if (total_size < JR_PREFIX_BYTES || total_size > bytes - at)
            return -ESTALE;
        memcpy(group + at + AT_TIME, &time, sizeof time);
        move_record(group + at, id, total_size, delta);
        at += total_size;
    }
    return 0;
}

void jd_moved_further(uint8_t *move, uint64_t new_addr)
{
    memcpy(move + AT_MOVE_NEW_ADDR, &new_addr, sizeof new_addr);
}

void jd_unload_of_move(uint8_t *unload, const uint8_t *move)
{
    struct byte_sink sink = byte_sink_over(unload, JR_CODE_UNLOAD_BYTES);
    sink_u32(&sink, JIT_CODE_UNLOAD);
    sink_u32(&sink, JR_CODE_UNLOAD_BYTES);
    sink_u64(&sink, word_at(move + AT_TIME));
    sink_u64(&sink, word_at(move + AT_PID_AND_TID));
    sink_u64(&sink, word_at(move + AT_MOVE_OLD_ADDR));
    sink_u64(&sink, word_at(move + AT_MOVE_SIZE));
    sink_u64(&sink, word_at(move + AT_MOVE_INDEX));
}
