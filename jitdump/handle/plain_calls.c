/* The calls that the headers have inline, as functions: for callers that have no C compiler at hand
 * (FFI, dlopen), and what knows no handle. */
#define JITDUMP_NO_INLINE
#include "jitdump/cfi.h"
#include "jitdump/jitdump.h"
#include "jitdump/trampoline.h"

int jitdump_add(struct jitdump *dump, const char *name, const void *code, uint64_t code_size,
                uint64_t *code_index)
{
    struct jitdump_code whole = JITDUMP_CODE_INIT;
    whole.name = name;
    whole.code_addr = (uint64_t)(uintptr_t)code;
    whole.code_size = code_size;
    whole.bytes = code;
    return jitdump_add_code_on(dump, &whole, code_index);
}

const char *jitdump_version(void)
{
    return JITDUMP_VERSION;
}

/* Where all sources are one file, their includer may have the inline calls already. */
#ifdef JITDUMP_NO_INLINE

int jitdump_add_code(struct jitdump *dump, const struct jitdump_code *code, uint64_t *code_index)
{
    return jitdump_add_code_on(dump, code, code_index);
}

int jitdump_move_code(struct jitdump *dump, uint64_t code_index, uint64_t old_code_addr,
                      uint64_t new_code_addr, uint64_t code_size)
{
    return jitdump_move_code_on(dump, code_index, old_code_addr, new_code_addr, code_size);
}

int jitdump_move_pieces(struct jitdump *dump, uint64_t code_index,
                        const struct jitdump_piece_move *moves, size_t count)
{
    return jitdump_move_pieces_on(dump, code_index, moves, count);
}

int jitdump_unload_code(struct jitdump *dump, uint64_t code_index, uint64_t code_addr,
                        uint64_t code_size)
{
    return jitdump_unload_code_on(dump, code_index, code_addr, code_size);
}

int jitdump_poll(struct jitdump *dump, jitdump_emit *emit_all, void *user)
{
    return jitdump_poll_on(dump, emit_all, user);
}

int jitdump_span_end(struct jitdump_spans *spans, uint64_t begin_ns, const char *name)
{
    return jitdump_span_end_on(spans, begin_ns, name);
}

/* As version 0.2 has it. */
int jitdump_trampoline_describe(struct jitdump *dump, jitdump_entry *call,
                                struct jitdump_trampoline_code *code)
{
    return jitdump_trampoline_describe_sized(
        dump, call, code, offsetof(struct jitdump_trampoline_code, arena_bytes) + sizeof(uint64_t));
}

/* ---- Of a struct as version 0.1 has it ---- */

/* Up to epilogue_count, and up to mapped_size. */
#define FRAME_0_1_BYTES (offsetof(struct jitdump_frame, epilogue_count) + sizeof(size_t))

void jitdump_cfi_frame(struct jitdump_cfi *cfi, const struct jitdump_frame *frame)
{
    jitdump_cfi_frame_sized(cfi, frame, FRAME_0_1_BYTES);
}

#define UNWIND_0_1_BYTES (offsetof(struct jitdump_unwind, mapped_size) + sizeof(uint64_t))

int jitdump_cfi_finish(struct jitdump_cfi *cfi, uint64_t code_size, struct jitdump_unwind *unwind)
{
    return jitdump_cfi_finish_sized(cfi, code_size, unwind, UNWIND_0_1_BYTES);
}

int jitdump_cfi_end(struct jitdump_cfi *cfi, uint64_t at, struct jitdump_unwind *unwind)
{
    return jitdump_cfi_end_sized(cfi, at, unwind, UNWIND_0_1_BYTES);
}

int jitdump_cfi_prologue_bytes(enum jitdump_arch arch, const struct jitdump_frame *frame)
{
    return jitdump_cfi_prologue_bytes_sized(arch, frame, FRAME_0_1_BYTES);
}

int jitdump_cfi_epilogue_bytes(enum jitdump_arch arch, const struct jitdump_frame *frame)
{
    return jitdump_cfi_epilogue_bytes_sized(arch, frame, FRAME_0_1_BYTES);
}

#endif
