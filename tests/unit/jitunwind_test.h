/* An arena for tests of libjitunwind, whose code never runs: what is asked is what the tables say.
 */
#ifndef PERFJIT_TEST_JITUNWIND_H
#define PERFJIT_TEST_JITUNWIND_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "jitdump/cfi.h"
#include "jitunwind/jitunwind.h"

#define ARENA_START UINT64_C(0x10000000)
enum { ARENA_BYTES = 1 << 20 };

static inline struct jitunwind *arena_at(uint64_t start, uint64_t bytes)
{
    struct jitunwind_options options = JITUNWIND_OPTIONS_INIT;
    struct jitunwind *arena;
    options.start = start;
    options.bytes = bytes;
    assert_int_equal(jitunwind_open(&arena, &options), 0);
    assert_non_null(arena);
    return arena;
}

static inline struct jitunwind *arena_open(void)
{
    return arena_at(ARENA_START, ARENA_BYTES);
}

/* A function without tables. */
static inline int add_plain(struct jitunwind *arena, uint64_t addr, uint64_t bytes,
                            const char *name)
{
    struct jitunwind_code code = JITUNWIND_CODE_INIT;
    code.addr = addr;
    code.bytes = bytes;
    code.name = name;
    return jitunwind_add(arena, &code);
}

/* One with what CFI says, which is freed. */
static inline int add_described(struct jitunwind *arena, struct jitdump_cfi *cfi, uint64_t addr,
                                uint64_t bytes, const char *name)
{
    struct jitdump_unwind unwind;
    struct jitunwind_code code = JITUNWIND_CODE_INIT;
    assert_int_equal(jitdump_cfi_finish(cfi, bytes, &unwind), 0);
    code.addr = addr;
    code.bytes = bytes;
    code.eh_frame = unwind.data;
    code.eh_frame_bytes = unwind.unwinding_size - unwind.eh_frame_hdr_size;
    code.name = name;
    int error = jitunwind_add(arena, &code);
    jitdump_cfi_free(cfi);
    return error;
}

/* One with a frame pointer. */
static inline int add_framed(struct jitunwind *arena, uint64_t addr, uint64_t bytes,
                             const char *name)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_HOST_ARCH);
    const uint64_t epilogue = bytes - 8;
    const struct jitdump_frame frame = {
        .kind = JITDUMP_FRAME_POINTER, .epilogues = &epilogue, .epilogue_count = 1};
    jitdump_cfi_frame(cfi, &frame);
    return add_described(arena, cfi, addr, bytes, name);
}

static inline void expect_name(uint64_t addr, const char *expected)
{
    char name[64];
    uint64_t offset;
    int error = jitunwind_name(addr, name, sizeof name, &offset);
    if (!expected) {
        assert_int_not_equal(error, 0);
        return;
    }
    assert_int_equal(error, 0);
    assert_string_equal(name, expected);
}

#endif
