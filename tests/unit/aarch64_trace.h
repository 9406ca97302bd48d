/* Run the aarch64 program aarch64_frames under qemu instruction by instruction, and note down at
 * each one in its code what an unwinder should find.
 *
 * The truth comes from calls and returns alone: a call opens a frame with CFA = sp, the return
 * address in x30, and the registers as they are; the ret that leaves it closes the frame.  A jump
 * from one function to another changes nothing about that.
 */
#ifndef PERFJIT_TEST_AARCH64_TRACE_H
#define PERFJIT_TEST_AARCH64_TRACE_H

#include "injector/arrays/array.h"
#include "jitdump/cfi.h"
#include "tests/unit/one_processor.h"
#include "tests/unit/qemu_stub.h"

#include <fcntl.h>
#include <gelf.h>
#include <time.h>

enum {
    TRACE_X = 31,
    TRACE_D = 8,                /* d8 to d15 */
    TRACE_STUB_D8 = 34 + 8,     /* the stub's number: v0 follows x0 to x30, sp, pc, cpsr */
    TRACE_SAVED = 11 + TRACE_D, /* what the ABI lets a caller rely on */
    TRACE_REGISTERS = JITDUMP_D15 + 1,
    TRACE_STACK_BYTES_MAX = 512, /* of a frame, up to its CFA: enough for what it saved */
    TRACE_STEPS_MAX = 100000,
    TRACE_DEPTH_MAX = 64,
};

#define NO_STEP SIZE_MAX

struct trace_frame {
    uint64_t cfa;
    uint64_t return_addr;
    uint64_t saved[TRACE_SAVED];
    size_t call_step; /* the call that opened it, or NO_STEP: it came from outside */
};

/* The program in front of an instruction. */
struct trace_step {
    uint64_t pc;
    uint64_t registers[TRACE_REGISTERS]; /* by DWARF's numbers; those between sp and d8 are 0 */
    size_t frame;
    size_t depth;        /* how many frames are open */
    uint64_t stack_addr; /* from sp, or as far as it was kept, up to the CFA */
    size_t stack, stack_bytes;
};

struct trace {
    struct stub stub;
    struct trace_step *steps;
    size_t step_count, step_capacity;
    uint64_t *times_ns; /* of the steps */
    size_t time_capacity;
    struct trace_frame *frames; /* all there ever were */
    size_t frame_count, frame_capacity;
    size_t open[TRACE_DEPTH_MAX]; /* frames */
    size_t depth, deepest;
    uint8_t *stack;
    size_t stack_bytes, stack_capacity;
    uint64_t pc, registers[TRACE_REGISTERS];
    uint64_t arena_start, arena_end;
    int status;
};

/* The DWARF number of saved register I: x19 to x29, then d8 to d15. */
static inline unsigned trace_saved(size_t i)
{
    return (unsigned)(i < 11 ? JITDUMP_X19 + i : JITDUMP_D8 + i - 11);
}

/* ---- The program ---- */

/* The address of the function NAME in the ELF file PATH, which is not relocated. */
static inline uint64_t trace_symbol(const char *path, const char *name)
{
    uint64_t addr = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    GElf_Shdr header;
    GElf_Sym symbol;
    for (Elf_Scn *section = elf_nextscn(elf, NULL); section; section = elf_nextscn(elf, section)) {
        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_SYMTAB)
            continue;
        Elf_Data *data = elf_getdata(section, NULL);
        for (int i = 0; gelf_getsym(data, i, &symbol); i++)
            if (strcmp(elf_strptr(elf, header.sh_link, symbol.st_name), name) == 0)
                addr = symbol.st_value;
    }
    elf_end(elf);
    close(fd);
    assert_int_not_equal(addr, 0);
    return addr;
}

static inline void trace_get_registers(struct trace *trace)
{
    char request[16];
    const char *text = stub_ask(&trace->stub, "g");
    stub_take(&text, trace->registers, (TRACE_X + 1) * sizeof(uint64_t)); /* and sp */
    stub_take(&text, &trace->pc, sizeof trace->pc);
    for (size_t i = 0; i < TRACE_D; i++) {
        snprintf(request, sizeof request, "p%zx", TRACE_STUB_D8 + i);
        text = stub_ask(&trace->stub, request);
        stub_take(&text, &trace->registers[JITDUMP_D8 + i], sizeof(uint64_t));
    }
}

static inline void trace_step_on(struct trace *trace)
{
    assert_true(stub_resume(&trace->stub, "s"));
    trace_get_registers(trace);
}

/* Start PROGRAM, which writes its dump to the scratch directory. */
static inline void trace_start(struct trace *trace, const char *program)
{
    char path[64];
    snprintf(path, sizeof path, "%s/stub", scratch);
    const char *arguments[] = {"qemu-aarch64", "-cpu",  "cortex-a57", "-g",
                               path,           program, scratch,      NULL};
    *trace = (struct trace){0};
    stay_on_one_processor();
    stub_start(&trace->stub, (char *const *)(uintptr_t)arguments, path);
    /* Only who has asked for the description may ask for single registers. */
    const char *target = stub_ask(&trace->stub, "qXfer:features:read:target.xml:0,ffb");
    assert_non_null(strstr(target, "aarch64-fpu.xml"));
    stub_break_at(&trace->stub, trace_symbol(program, "enter_code"));
}

static inline bool trace_in_arena(const struct trace *trace)
{
    return trace->pc >= trace->arena_start && trace->pc < trace->arena_end;
}

/* ---- The truth ---- */

static inline void trace_saved_registers(const struct trace *trace, uint64_t to[TRACE_SAVED])
{
    for (size_t i = 0; i < TRACE_SAVED; i++)
        to[i] = trace->registers[trace_saved(i)];
}

/* A call has just landed, that CALL_STEP made. */
static inline void trace_enter(struct trace *trace, size_t call_step)
{
    trace->frames = array_room(trace->frames, trace->frame_count, &trace->frame_capacity,
                               sizeof *trace->frames);
    assert_non_null(trace->frames);
    assert_true(trace->depth < TRACE_DEPTH_MAX);
    trace->open[trace->depth++] = trace->frame_count;
    struct trace_frame *frame = &trace->frames[trace->frame_count++];
    frame->cfa = trace->registers[JITDUMP_SP];
    frame->return_addr = trace->registers[JITDUMP_X30];
    frame->call_step = call_step;
    trace_saved_registers(trace, frame->saved);
    if (call_step != NO_STEP)
        assert_int_equal(frame->return_addr, trace->steps[call_step].pc + 4);
    if (trace->depth > trace->deepest)
        trace->deepest = trace->depth;
}

/* A ret has just landed: the innermost call must be the one that it ends, and the ABI must be kept.
 */
static inline void trace_leave(struct trace *trace)
{
    const struct trace_frame *frame = &trace->frames[trace->open[--trace->depth]];
    uint64_t saved[TRACE_SAVED];
    trace_saved_registers(trace, saved);
    assert_int_equal(trace->pc, frame->return_addr);
    assert_int_equal(trace->registers[JITDUMP_SP], frame->cfa);
    assert_memory_equal(saved, frame->saved, sizeof saved);
}

static inline void trace_keep_stack(struct trace *trace, struct trace_step *step)
{
    uint64_t cfa = trace->frames[step->frame].cfa, sp = step->registers[JITDUMP_SP];
    assert_true(sp <= cfa);
    step->stack_bytes =
        cfa - sp < TRACE_STACK_BYTES_MAX ? (size_t)(cfa - sp) : TRACE_STACK_BYTES_MAX;
    step->stack_addr = cfa - step->stack_bytes;
    step->stack = trace->stack_bytes;
    if (trace->stack_capacity - trace->stack_bytes < TRACE_STACK_BYTES_MAX) {
        trace->stack = array_expect(trace->stack, 2 * (trace->stack_bytes + TRACE_STACK_BYTES_MAX),
                                    &trace->stack_capacity, 1);
        assert_true(trace->stack_capacity - trace->stack_bytes >= TRACE_STACK_BYTES_MAX);
    }
    if (step->stack_bytes)
        stub_memory(&trace->stub, step->stack_addr, trace->stack + step->stack, step->stack_bytes);
    trace->stack_bytes += step->stack_bytes;
}

/* Note down the instruction that comes next.  Returns its number. */
static inline size_t trace_record(struct trace *trace)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    trace->steps =
        array_room(trace->steps, trace->step_count, &trace->step_capacity, sizeof *trace->steps);
    trace->times_ns = array_room(trace->times_ns, trace->step_count, &trace->time_capacity,
                                 sizeof *trace->times_ns);
    assert_true(trace->steps && trace->times_ns && trace->step_count < TRACE_STEPS_MAX);
    struct trace_step *step = &trace->steps[trace->step_count];
    trace->times_ns[trace->step_count] = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    *step = (struct trace_step){
        .pc = trace->pc, .frame = trace->open[trace->depth - 1], .depth = trace->depth};
    memcpy(step->registers, trace->registers, sizeof step->registers);
    trace_keep_stack(trace, step);
    return trace->step_count++;
}

/* ---- Instructions ---- */

static inline bool trace_is_call(uint32_t word)
{
    return word >> 26 == 0x25 || (word & 0xfffffc1f) == 0xd63f0000; /* bl, blr */
}

static inline bool trace_is_ret(uint32_t word)
{
    return word == 0xd65f03c0;
}

/* From the call that has just landed on until its ret has. */
static inline void trace_through(struct trace *trace)
{
    trace_enter(trace, NO_STEP);
    while (trace->depth) {
        uint32_t word;
        assert_true(trace_in_arena(trace));
        size_t step = trace_record(trace);
        stub_memory(&trace->stub, trace->pc, &word, sizeof word);
        trace_step_on(trace);
        if (trace_is_call(word))
            trace_enter(trace, step);
        else if (trace_is_ret(word))
            trace_leave(trace);
    }
    assert_false(trace_in_arena(trace));
}

/* Run PROGRAM; then the trace has all steps. */
static inline void trace_run(struct trace *trace, const char *program)
{
    trace_start(trace, program);
    while (stub_resume(&trace->stub, "c")) {
        trace_get_registers(trace);
        trace->arena_start = trace->registers[1];
        trace->arena_end = trace->arena_start + trace->registers[2];
        while (!trace_in_arena(trace))
            trace_step_on(trace);
        trace_through(trace);
    }
    trace->status = stub_end(&trace->stub);
}

static inline void trace_free(struct trace *trace)
{
    free(trace->steps);
    free(trace->times_ns);
    free(trace->frames);
    free(trace->stack);
}

#endif
