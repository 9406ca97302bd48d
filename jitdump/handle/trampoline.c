/* Interpreted functions as frames: the calls of jitdump.h. */
#include "jitdump/trampoline.h"
#include "jitdump/handle/handle.h"
#include "jitdump/trampoline/stub_arena.h"

#include <errno.h>
#include <string.h>

static uint64_t address(const void *code)
{
    return (uint64_t)(uintptr_t)code;
}

/* ---- The arena ---- */

static struct stub_arena *new_arena(struct jitdump *dump)
{
    struct stub_arena *made = jd_stub_arena_new(), *arena = NULL;
    if (!made || atomic_compare_exchange_strong(&dump->trampolines, &arena, made))
        return made;
    jd_stub_arena_free(made, false); /* another thread was first */
    return arena;
}

static struct stub_arena *arena_of(struct jitdump *dump)
{
    struct stub_arena *arena = atomic_load(&dump->trampolines);
    return arena ? arena : new_arena(dump);
}

/* ---- What is recorded ---- */

/* The lock is held, or STUB is not published yet. */
static int log_stub(struct jitdump *dump, const struct stub_arena *arena, const struct stub *stub,
                    uint64_t *code_index)
{
    const uint8_t *at = jd_stub_code(stub);
    const struct stub_name *name = stub->name;
    const struct jitdump_line line = {address(at), name->file ? name->file->path : "", name->line,
                                      0};
    struct jitdump_code code = JITDUMP_CODE_INIT;
    code.name = name->text;
    code.code_addr = address(at);
    code.code_size = STUB_CODE_BYTES;
    code.bytes = at;
    code.lines = &line;
    code.line_count = name->file != NULL;
    code.unwind = &arena->unwind;
    return jitdump_add_code_on(dump, &code, code_index);
}

/* jitdump_poll and the thread that made the trampoline may both record it.  The later record
 * counts. */
static void keep_index(struct stub *stub, uint64_t code_index)
{
    uint64_t kept = atomic_load_explicit(&stub->code_index, memory_order_relaxed);
    while (code_index != JITDUMP_NO_CODE && (kept == JITDUMP_NO_CODE || kept < code_index) &&
           !atomic_compare_exchange_weak(&stub->code_index, &kept, code_index))
        ;
}

static void unload(struct jitdump *dump, const struct stub *stub)
{
    jitdump_unload_code_on(dump, atomic_load(&stub->code_index), address(jd_stub_code(stub)),
                           STUB_CODE_BYTES);
}

static int fail(struct jitdump *dump, int error, const char *what)
{
    atomic_fetch_add_explicit(&dump->lost, 1, memory_order_relaxed);
    errno = -error;
    return jd_error_keep(&dump->error, error, "jitdump_trampoline: %s: %m",
                         error == -EAGAIN ? "a stopped thread is in the way" : what);
}

/* Returns whether there may be a stub with a higher number. */
static bool tell_stub(struct jitdump *dump, const struct stub_arena *arena, uint32_t number)
{
    struct stub *stub = jd_stub_numbered(arena, number);
    uint64_t code_index;
    if (stub && log_stub(dump, arena, stub, &code_index) == 0)
        keep_index(stub, code_index);
    return number < arena->used;
}

void jd_handle_tell_trampolines(struct jitdump *dump)
{
    struct stub_arena *arena = atomic_load(&dump->trampolines);
    bool more = arena != NULL;
    for (uint32_t number = 0; more; number++) {
        if (jd_stub_lock(arena)) { /* a stopped thread may have left any number of them */
            fail(dump, -EAGAIN, "");
            return;
        }
        more = tell_stub(dump, arena, number);
        jd_stub_unlock(arena);
    }
}

void jd_handle_leave_trampolines(struct jitdump *dump)
{
    struct stub_arena *arena = atomic_load(&dump->trampolines);
    if (arena)
        jd_stub_arena_free(arena, true);
}

/* ---- Making ---- */

/* Unload STUB, if it is recorded, and free it. */
static int free_stub(struct jitdump *dump, struct stub_arena *arena, const void *code)
{
    struct stub_name *garbage = NULL;
    if (jd_stub_lock(arena))
        return -EAGAIN;
    struct stub *stub = jd_stub_at(arena, code);
    if (stub) {
        unload(dump, stub);
        garbage = jd_stub_drop(arena, stub);
    }
    jd_stub_unlock(arena);
    if (garbage)
        jd_stub_name_free(garbage);
    return 0;
}

/* A trampoline that can't be recorded is not used: it would be a frame without a name. */
static const void *record(struct jitdump *dump, struct stub_arena *arena, struct stub *stub)
{
    const uint8_t *code = jd_stub_code(stub);
    uint64_t code_index;
    log_stub(dump, arena, stub, &code_index);
    keep_index(stub, code_index);
    if (code_index != JITDUMP_NO_CODE)
        return code;
    free_stub(dump, arena, code);
    return NULL;
}

/* Returns NULL if there is none. */
static const void *make(struct jitdump *dump, const char *name, const char *file, uint32_t line,
                        uint64_t entry)
{
    struct stub *stub = NULL;
    const char *what;
    int error = !entry ? -EINVAL : !jd_stub_code_is_known(dump->kind.elf_mach) ? -ENOTSUP : 0;
    if (error)
        fail(dump, error, error == -EINVAL ? "entry is NULL" : "it is for x86-64 and aarch64");
    struct stub_arena *arena = error ? NULL : arena_of(dump);
    if (!error && !arena)
        fail(dump, -ENOMEM, "no memory");
    if (!arena)
        return NULL;
    error = jd_stub_make(arena, entry, name ? name : "", file, line, &stub, &what);
    if (error)
        fail(dump, error, what);
    return error ? NULL : record(dump, arena, stub);
}

jitdump_entry *jitdump_trampoline(struct jitdump *dump, const char *name, const char *file,
                                  uint32_t line, jitdump_entry *entry)
{
    if (!dump)
        return entry;
    if (jd_handle_is_off(dump)) {
        atomic_fetch_add_explicit(&dump->lost, dump->open_error != 0, memory_order_relaxed);
        return entry;
    }
    int callers_errno = errno;
    const void *code = make(dump, name, file, line, (uint64_t)(uintptr_t)entry);
    errno = callers_errno;
    return code ? (jitdump_entry *)(uintptr_t)code : entry;
}

/* ---- Freeing ---- */

int jitdump_trampoline_free(struct jitdump *dump, jitdump_entry *call)
{
    struct stub_arena *arena = dump ? atomic_load(&dump->trampolines) : NULL;
    if (!arena)
        return 0;
    int callers_errno = errno;
    int error = free_stub(dump, arena, (const void *)(uintptr_t)call);
    errno = callers_errno;
    return error;
}

static int free_all(struct jitdump *dump, struct stub_arena *arena)
{
    const uint32_t used = arena->used;
    for (uint32_t number = 0; number < used; number++) {
        int error = free_stub(dump, arena, jd_stub_code_numbered(arena, number));
        if (error)
            return error;
    }
    return jd_stub_clear(arena);
}

int jitdump_trampolines_free(struct jitdump *dump)
{
    struct stub_arena *arena = dump ? atomic_load(&dump->trampolines) : NULL;
    if (!arena)
        return 0;
    int callers_errno = errno, error = free_all(dump, arena);
    errno = callers_errno;
    return error;
}

/* ---- For other unwinders ---- */

static void describe(const struct stub_arena *arena, const struct stub *stub,
                     struct jitdump_trampoline_code *code)
{
    code->name = stub->name->text;
    code->code_addr = address(jd_stub_code(stub));
    code->code_size = STUB_CODE_BYTES;
    code->eh_frame = arena->unwind.data;
    code->eh_frame_bytes = (size_t)(arena->unwind.unwinding_size - arena->unwind.eh_frame_hdr_size);
    code->arena_addr = address(arena->blocks[stub->number / STUBS_IN_BLOCK]);
    code->arena_bytes = STUB_BLOCK_BYTES;
}

int jitdump_trampoline_describe_sized(struct jitdump *dump, jitdump_entry *call,
                                      struct jitdump_trampoline_code *code, size_t code_bytes)
{
    struct jitdump_trampoline_code found = {0};
    struct stub_arena *arena = dump ? atomic_load(&dump->trampolines) : NULL;
    memset(code, 0, code_bytes);
    if (!arena)
        return -ENOENT;
    int callers_errno = errno, error = jd_stub_lock(arena);
    if (!error) {
        const struct stub *stub = jd_stub_at(arena, (const void *)(uintptr_t)call);
        error = stub ? 0 : -ENOENT;
        if (stub)
            describe(arena, stub, &found);
        jd_stub_unlock(arena);
    }
    memcpy(code, &found, code_bytes < sizeof found ? code_bytes : sizeof found);
    errno = callers_errno;
    return error;
}
