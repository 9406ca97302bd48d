/* See code_log.h. */
#include "examples/tinyjit/code_log.h"

#include "examples/tinyjit/code_unwind.h"
#include "examples/tinyjit/inline_log.h"
#include "examples/tinyjit/memory.h"
#include "jitunwind/jitunwind.h"
#include "perfmap/perfmap.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Between two codes at least: an ELF file for one function alone has its header in front of it. */
enum { ELF_HEADER_BYTES = 64 };

/* One line an event, in the order of time.  Lines go out at once, so that the file is whole even
 * after a crash. */
static const char truth_header[] =
    "# What tinyjit did to its code.  Times are CLOCK_MONOTONIC in ns, addresses hexadecimal, "
    "sizes\n"
    "# decimal and in bytes.\n"
    "#     TIME load ADDRESS SIZE NAME             complete at ADDRESS, not yet run\n"
    "#     TIME unload ADDRESS SIZE NAME           runs no more, not yet overwritten\n"
    "#     TIME move OLD NEW SIZE NAME             copied from OLD to NEW, not yet run at NEW\n"
    "# All code is here; \"stub\" events, for code that no library is told about, don't occur.\n";

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t address(const uint8_t *addr)
{
    return (uint64_t)(uintptr_t)addr;
}

/* ---- Opening and closing ---- */

/* A library that can't start is said so once, and then left alone. */
static void open_libraries(struct code_log *log)
{
    if (jitdump_open(&log->dump, NULL) < 0) {
        fprintf(stderr, "tinyjit: %s\n", jitdump_error(log->dump));
        jitdump_close(log->dump);
        log->dump = NULL;
    }
    if (perfmap_open(&log->map, NULL) < 0) {
        fprintf(stderr, "tinyjit: %s\n", perfmap_error(log->map));
        perfmap_close(log->map);
        log->map = NULL;
    }
}

/* NULL after a message. */
static struct jitunwind *open_unwinder(uint64_t start, uint64_t bytes, bool exceptions)
{
    struct jitunwind_options options = JITUNWIND_OPTIONS_INIT;
    struct jitunwind *unwinder;
    options.start = start;
    options.bytes = bytes;
    options.flags = exceptions ? JITUNWIND_EXCEPTIONS : 0;
    int error = jitunwind_open(&unwinder, &options);
    if (error)
        fprintf(stderr, "tinyjit: stacks can't be unwound: %s\n", strerror(-error));
    return unwinder;
}

static int open_file(FILE **file, const char *path)
{
    if (!path)
        return 0;
    *file = fopen(path, "we");
    if (*file)
        return 0;
    fprintf(stderr, "tinyjit: %s: %s\n", path, strerror(errno));
    return -1;
}

int code_log_open(struct code_log *log, const char *script_path, const struct code_arena *arena,
                  const struct code_log_paths *paths, bool own_frames, bool exceptions)
{
    *log = (struct code_log){0};
    if (open_file(&log->truth, paths->truth) < 0 || open_file(&log->code_file, paths->code) < 0 ||
        open_file(&log->inline_log, paths->inline_log) < 0)
        return -1;
    if (log->inline_log)
        inline_log_begin(log->inline_log);
    log->script = realpath(script_path, NULL);
    if (!log->script)
        log->script = memory_or_exit(strdup(script_path));
    open_libraries(log);
    log->own_frames = own_frames;
    log->exceptions = exceptions;
    if (own_frames)
        log->unwinder = open_unwinder(address(arena->base), arena->reserved, exceptions);
    if (log->dump || log->unwinder)
        log->cfi = jitdump_cfi_new(JITDUMP_HOST_ARCH);
    if (!log->truth)
        return 0;
    setvbuf(log->truth, NULL, _IOLBF, 0);
    fputs(truth_header, log->truth);
    fprintf(log->truth, "# pid %d, arena %" PRIx64 " to %" PRIx64 ", script %s\n", (int)getpid(),
            address(arena->base), address(arena->base + arena->reserved), log->script);
    return 0;
}

static void close_libraries(struct code_log *log)
{
    uint64_t lost = jitdump_lost(log->dump);
    if (lost)
        fprintf(stderr, "tinyjit: %" PRIu64 " events are not in the jitdump: %s\n", lost,
                jitdump_error(log->dump));
    uint64_t faults = jitdump_faults(log->dump);
    if (faults)
        fprintf(stderr, "tinyjit: %" PRIu64 " frames do not fit their code: %s\n", faults,
                jitdump_error(log->dump));
    int error = jitdump_close(log->dump);
    if (error && !lost && !faults)
        fprintf(stderr, "tinyjit: closing the jitdump: %s\n", strerror(-error));
    error = perfmap_close(log->map);
    if (error)
        fprintf(stderr, "tinyjit: closing the perf map: %s\n", strerror(-error));
    jitunwind_close(log->unwinder);
    jitunwind_close(log->frames_unwinder);
    jitdump_cfi_free(log->cfi);
    log->dump = NULL;
    log->cfi = NULL;
    log->map = NULL;
    log->unwinder = log->frames_unwinder = NULL;
}

void code_log_close(struct code_log *log)
{
    close_libraries(log);
    if (log->truth)
        fclose(log->truth);
    if (log->code_file)
        fclose(log->code_file);
    if (log->inline_log)
        fclose(log->inline_log);
    free(log->script);
    log->truth = log->code_file = log->inline_log = NULL;
    log->script = NULL;
}

/* ---- The code file ---- */

static const char *const frame_kind_names[] = {[FRAME_CFA_RSP] = "cfa-rsp",
                                               [FRAME_CFA_RBP] = "cfa-rbp",
                                               [FRAME_SAVED] = "saved",
                                               [FRAME_RESTORED] = "restored"};

static const char *const register_names[X86_REGISTERS] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp",
                                                          "rsi", "rdi", "r8",  "r9",  "r10", "r11",
                                                          "r12", "r13", "r14", "r15"};

/* code ADDRESS SIZE NAME
 * line OFFSET LINE COLUMN
 * frame OFFSET cfa-rsp|cfa-rbp|saved|restored REGISTER VALUE
 * bytes HEX                                                    at most 32 of them, in order */
static void write_code(FILE *file, const struct code *code)
{
    fprintf(file, "code %" PRIx64 " %zu %s\n", address(code->addr), code->size, code->name);
    for (size_t i = 0; i < code->line_count; i++)
        fprintf(file, "line %u %u %u\n", code->lines[i].offset, code->lines[i].at.line,
                code->lines[i].at.column);
    for (size_t i = 0; i < code->frame_event_count; i++) {
        const struct code_frame_event *event = &code->frame_events[i];
        fprintf(file, "frame %u %s %s %d\n", event->code_offset, frame_kind_names[event->kind],
                register_names[event->reg], event->value);
    }
    for (size_t i = 0; i < code->size; i++)
        fprintf(file, "%s%02x%s", i % 32 == 0 ? "bytes " : "", code->addr[i],
                i % 32 == 31 || i + 1 == code->size ? "\n" : "");
}

/* ---- Events ---- */

static struct jitdump_line *jitdump_lines(const struct code_log *log, const struct code *code)
{
    struct jitdump_line *lines = memory_new(code->line_count, sizeof *lines);
    for (size_t i = 0; i < code->line_count; i++)
        lines[i] = (struct jitdump_line){address(code->addr) + code->lines[i].offset, log->script,
                                         code->lines[i].at.line, code->lines[i].at.column};
    return lines;
}

/* For each of the lines which inlined call it belongs to. */
static uint32_t *jitdump_line_inlines(const struct code *code)
{
    uint32_t *inlines = memory_new(code->line_count, sizeof *inlines);
    for (size_t i = 0; i < code->line_count; i++)
        inlines[i] = code->lines[i].inlined; /* NOT_INLINED is the library's JITDUMP_NOT_INLINED */
    return inlines;
}

static struct jitdump_inline *jitdump_inlines(const struct code_log *log, const struct code *code)
{
    struct jitdump_inline *inlines = memory_new(code->inline_count, sizeof *inlines);
    for (size_t i = 0; i < code->inline_count; i++) {
        const struct code_inline *from = &code->inlines[i];
        inlines[i] = (struct jitdump_inline){.name = inline_log_name(from),
                                             .call_file = log->script,
                                             .decl_file = log->script,
                                             .call_line = from->call.line,
                                             .call_column = from->call.column,
                                             .decl_line = from->function->at.line,
                                             .parent = from->parent};
    }
    return inlines;
}

static void free_inlines(struct jitdump_inline *inlines, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free((char *)(uintptr_t)inlines[i].name);
    free(inlines);
}

static void dump_load(struct code_log *log, struct code *code)
{
    code->code_index = JITDUMP_NO_CODE;
    if (!jitdump_is_on(log->dump))
        return;
    struct jitdump_line *lines = jitdump_lines(log, code);
    uint32_t *line_inlines = jitdump_line_inlines(code);
    struct jitdump_inline *inlines = jitdump_inlines(log, code);
    struct jitdump_code record = JITDUMP_CODE_INIT;
    record.name = code->name;
    record.code_addr = address(code->addr);
    record.code_size = code->size;
    record.bytes = code->addr;
    record.lines = lines;
    record.line_count = code->line_count;
    record.line_inlines = line_inlines;
    record.inlines = inlines;
    record.inline_count = code->inline_count;
    record.unwind = &log->unwind;
    jitdump_add_code(log->dump, &record, &code->code_index);
    free_inlines(inlines, code->inline_count);
    free(line_inlines);
    free(lines);
}

/* libjitunwind compiles the tables anew for where the code is. */
static void unwinder_add(struct code_log *log, const struct code *code,
                         const struct jitdump_unwind *unwind)
{
    struct jitunwind_code added = JITUNWIND_CODE_INIT;
    added.addr = address(code->addr);
    added.bytes = code->size;
    added.eh_frame = unwind->data;
    added.eh_frame_bytes = unwind->unwinding_size - unwind->eh_frame_hdr_size;
    added.name = code->name;
    int error = jitunwind_add(log->unwinder, &added);
    if (error)
        fprintf(stderr, "tinyjit: %s can't be unwound: %s\n", code->name, strerror(-error));
}

static void unwinder_move(struct code_log *log, const struct code *code, const uint8_t *old_addr)
{
    struct jitdump_unwind unwind;
    if (!log->unwinder)
        return;
    jitunwind_remove(log->unwinder, address(old_addr));
    code_unwind_tables(log->cfi, code, &unwind);
    unwinder_add(log, code, &unwind);
}

static void make_tables(struct code_log *log, const struct code *code)
{
    int error = log->cfi ? code_unwind_tables(log->cfi, code, &log->unwind) : 0;
    if (error)
        fprintf(stderr, "tinyjit: no unwind tables: %s: %s\n", jitdump_cfi_error(log->cfi),
                strerror(-error));
}

size_t code_log_describe(struct code_log *log, const struct code *code)
{
    if (!jitdump_is_on(log->dump) && !log->unwinder)
        return 0;
    make_tables(log, code);
    if (!jitdump_is_on(log->dump))
        return 0;
    size_t padding = code_arena_block_bytes(code->size) - code->size;
    size_t tables = code_arena_block_bytes(log->unwind.unwinding_size);
    return padding + (tables < ELF_HEADER_BYTES ? ELF_HEADER_BYTES : tables);
}

void code_log_load(struct code_log *log, struct code *code)
{
    log->loads[code->kind]++;
    if (log->truth)
        fprintf(log->truth, "%" PRIu64 " load %" PRIx64 " %zu %s\n", now_ns(), address(code->addr),
                code->size, code->name);
    dump_load(log, code);
    unwinder_add(log, code, &log->unwind);
    perfmap_add(log->map, address(code->addr), code->size, code->name);
    if (log->code_file)
        write_code(log->code_file, code);
    if (log->inline_log)
        inline_log_write(log->inline_log, code, log->script);
}

bool code_log_can_be_asked(const struct code_log *log)
{
    return jitdump_poll_word(log->dump) != jitdump_poll_word(NULL);
}

void code_log_tell(struct code_log *log, struct code *code)
{
    make_tables(log, code);
    dump_load(log, code);
}

void code_log_move(struct code_log *log, const struct code *code, const uint8_t *old_addr)
{
    log->moves++;
    if (log->truth)
        fprintf(log->truth, "%" PRIu64 " move %" PRIx64 " %" PRIx64 " %zu %s\n", now_ns(),
                address(old_addr), address(code->addr), code->size, code->name);
    jitdump_move_code(log->dump, code->code_index, address(old_addr), address(code->addr),
                      code->size);
    unwinder_move(log, code, old_addr);
    perfmap_add(log->map, address(code->addr), code->size, code->name);
}

void code_log_unload(struct code_log *log, const struct code *code)
{
    log->unloads++;
    if (log->truth)
        fprintf(log->truth, "%" PRIu64 " unload %" PRIx64 " %zu %s\n", now_ns(),
                address(code->addr), code->size, code->name);
    jitdump_unload_code(log->dump, code->code_index, address(code->addr), code->size);
    jitunwind_remove(log->unwinder, address(code->addr));
}

/* ---- Interpreted functions ---- */

void code_log_poll(struct code_log *log, jitdump_emit *emit_all, void *user)
{
    int error = jitdump_poll(log->dump, emit_all, user);
    if (error)
        fprintf(stderr, "tinyjit: the dump that was asked for: %s\n", strerror(-error));
}

/* All trampolines of a script are in one arena. */
static void unwinder_add_frame(struct code_log *log, jitdump_entry *call)
{
    struct jitdump_trampoline_code is;
    struct jitunwind_code added = JITUNWIND_CODE_INIT;
    if (!log->own_frames || jitdump_trampoline_describe(log->dump, call, &is) != 0)
        return;
    if (!log->frames_unwinder)
        log->frames_unwinder = open_unwinder(is.arena_addr, is.arena_bytes, log->exceptions);
    added.addr = is.code_addr;
    added.bytes = is.code_size;
    added.eh_frame = is.eh_frame;
    added.eh_frame_bytes = is.eh_frame_bytes;
    added.name = is.name;
    int error = jitunwind_add(log->frames_unwinder, &added);
    if (error)
        fprintf(stderr, "tinyjit: %s can't be unwound: %s\n", is.name, strerror(-error));
}

jitdump_entry *code_log_frame(struct code_log *log, const struct function *function,
                              jitdump_entry *entry)
{
    char *name = NULL;
    if (!jitdump_is_on(log->dump))
        return entry;
    if (asprintf(&name, "tj::%s [interpreted]", function->name) < 0)
        memory_or_exit(NULL);
    jitdump_entry *call =
        jitdump_trampoline(log->dump, name, log->script, function->at.line, entry);
    free(name);
    if (call != entry)
        unwinder_add_frame(log, call);
    return call;
}

void code_log_drop_frames(struct code_log *log)
{
    jitunwind_close(log->frames_unwinder);
    log->frames_unwinder = NULL;
    jitdump_trampolines_free(log->dump);
}
