/* Run tinyjit instruction by instruction, and note down at each one in compiled code what an
 * unwinder should find.
 *
 * The truth comes from calls and returns alone: a call that lands in compiled code opens a frame
 * with CFA = rsp + 8, the return address at rsp, and the registers as they are; the ret that leaves
 * it closes the frame.  A jump from one function to another changes nothing about that.
 *
 * C code runs at full speed, up to a breakpoint at the return address.  Blocks that end the program
 * (division by zero and so on) are visited as well: at the jump to such a block the child is sent
 * there, and when the block calls C, is put back to the jump.
 */
#ifndef PERFJIT_TEST_SINGLE_STEP_TRACE_H
#define PERFJIT_TEST_SINGLE_STEP_TRACE_H

#include "injector/arrays/array.h"
#include "jitdump/cfi.h"
#include "tests/unit/one_processor.h"
#include "tests/unit/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

enum {
    TRACE_SAVED = 6,
    TRACE_REGISTERS = 16,
    TRACE_CODE_BYTES = 32,
    TRACE_FRAME_BYTES_MAX = 4096,
    TRACE_STEPS_MAX = 2000000,
    TRACE_DETOURS_MAX = 4096,
    TRACE_STACK_BYTES = 160 << 10, /* compiled code gets half of it, and fails beyond */
    TRACE_FORBIDDEN = 126,         /* exit status of a child that must not be traced */
};

/* What the ABI lets a caller rely on, by DWARF's numbers. */
static const unsigned trace_saved[TRACE_SAVED] = {JITDUMP_RBX, JITDUMP_RBP, JITDUMP_R12,
                                                  JITDUMP_R13, JITDUMP_R14, JITDUMP_R15};

struct trace_frame {
    uint64_t cfa;
    uint64_t return_addr;
    uint64_t saved[TRACE_SAVED];
};

/* The child in front of an instruction. */
struct trace_step {
    uint64_t time_ns;
    uint64_t rip;
    uint64_t registers[TRACE_REGISTERS]; /* by DWARF's numbers */
    struct trace_frame truth;
    size_t stack; /* offset in the trace's stack of the bytes from rsp up to the CFA */
};

struct trace {
    struct trace_step *steps;
    size_t step_count, step_capacity;
    uint8_t *stack;
    size_t stack_bytes, stack_capacity;
    struct trace_frame *frames; /* that are open now */
    size_t depth, frame_capacity, deepest;
    uint64_t detours[TRACE_DETOURS_MAX]; /* hashes of the blocks that were visited so */
    size_t detour_count;
    pid_t pid;
    int memory_fd;
    struct user_regs_struct registers;
    uint64_t arena_start, arena_end, entry;
    int status; /* of the child, when it has ended */
};

/* ---- The child ---- */

static inline void trace_read(const struct trace *trace, uint64_t addr, void *to, size_t bytes)
{
    assert_int_equal(pread(trace->memory_fd, to, bytes, (off_t)addr), bytes);
}

static inline uint64_t trace_word(const struct trace *trace, uint64_t addr)
{
    uint64_t word;
    trace_read(trace, addr, &word, sizeof word);
    return word;
}

static inline void trace_get_registers(struct trace *trace)
{
    assert_return_code(ptrace(PTRACE_GETREGS, trace->pid, NULL, &trace->registers), errno);
}

static inline void trace_set_registers(struct trace *trace)
{
    assert_return_code(ptrace(PTRACE_SETREGS, trace->pid, NULL, &trace->registers), errno);
}

/* Let the child go on by REQUEST until it stops.  Returns false if it has ended. */
static inline bool trace_resume(struct trace *trace, enum __ptrace_request request)
{
    int status;
    assert_return_code(ptrace(request, trace->pid, NULL, NULL), errno);
    assert_int_equal(waitpid(trace->pid, &status, __WALL), trace->pid);
    trace->status = status;
    if (WIFEXITED(status))
        return false;
    if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
        fail_msg("tinyjit got a signal: wait status 0x%x", (unsigned)status);
    trace_get_registers(trace);
    return true;
}

static inline bool trace_in_arena(const struct trace *trace, uint64_t addr)
{
    return addr >= trace->arena_start && addr < trace->arena_end;
}

/* Let the child run until it comes to ADDR.  Returns false if it has ended. */
static inline bool trace_run_to(struct trace *trace, uint64_t addr)
{
    const uint8_t int3 = 0xcc;
    uint8_t before;
    trace_read(trace, addr, &before, 1);
    assert_int_equal(pwrite(trace->memory_fd, &int3, 1, (off_t)addr), 1);
    if (!trace_resume(trace, PTRACE_CONT))
        return false;
    assert_int_equal(pwrite(trace->memory_fd, &before, 1, (off_t)addr), 1);
    assert_int_equal(trace->registers.rip, addr + 1);
    trace->registers.rip = addr;
    trace_set_registers(trace);
    return true;
}

_Noreturn static inline void trace_child(char *const *arguments)
{
    struct rlimit stack = {TRACE_STACK_BYTES, TRACE_STACK_BYTES};
    int null = open("/dev/null", O_WRONLY);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    setenv("PERFJIT", "dump", 1);
    setenv("JITDUMPDIR", scratch, 1);
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* it wants to ptrace, too */
    setrlimit(RLIMIT_STACK, &stack);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
        _exit(TRACE_FORBIDDEN);
    execv(arguments[0], arguments);
    _exit(127);
}

/* Read from the truth file where the arena and the way into it are.  Returns false as long as the
 * code after that is not loaded: till then a breakpoint might get into the dump. */
static inline bool trace_find_entry(struct trace *trace, const char *truth_path)
{
    char line[4096];
    bool complete = false;
    FILE *file = fopen(truth_path, "r");
    while (file && fgets(line, sizeof line, file)) {
        sscanf(line, "# pid %*d, arena %" SCNx64 " to %" SCNx64, &trace->arena_start,
               &trace->arena_end);
        if (strstr(line, " tj::[stub] enter\n"))
            sscanf(line, "%*u load %" SCNx64, &trace->entry);
        complete = strstr(line, " tj::[stub] compile\n");
    }
    if (file)
        fclose(file);
    return complete;
}

static inline void trace_start(struct trace *trace, char *const *arguments, const char *truth_path)
{
    char memory[64];
    int status;
    stay_on_one_processor();
    *trace = (struct trace){.pid = fork()};
    assert_return_code(trace->pid, errno);
    if (trace->pid == 0)
        trace_child(arguments);
    assert_int_equal(waitpid(trace->pid, &status, __WALL), trace->pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == TRACE_FORBIDDEN)
        skip();
    if (!WIFSTOPPED(status))
        fail_msg("can't run %s", arguments[0]);
    ptrace(PTRACE_SETOPTIONS, trace->pid, NULL, (void *)(uintptr_t)PTRACE_O_EXITKILL);
    snprintf(memory, sizeof memory, "/proc/%d/mem", (int)trace->pid);
    trace->memory_fd = open(memory, O_RDWR | O_CLOEXEC);
    assert_return_code(trace->memory_fd, errno);
    while (!trace_find_entry(trace, truth_path))
        if (!trace_resume(trace, PTRACE_SYSCALL))
            fail_msg("%s ended before it had code", arguments[0]);
}

/* ---- The truth ---- */

static inline void trace_dwarf_registers(const struct trace *trace, uint64_t to[TRACE_REGISTERS])
{
    const struct user_regs_struct *from = &trace->registers;
    const uint64_t registers[TRACE_REGISTERS] = {
        from->rax, from->rdx, from->rcx, from->rbx, from->rsi, from->rdi, from->rbp, from->rsp,
        from->r8,  from->r9,  from->r10, from->r11, from->r12, from->r13, from->r14, from->r15};
    memcpy(to, registers, sizeof registers);
}

static inline void trace_saved_registers(const struct trace *trace, uint64_t to[TRACE_SAVED])
{
    uint64_t registers[TRACE_REGISTERS];
    trace_dwarf_registers(trace, registers);
    for (size_t i = 0; i < TRACE_SAVED; i++)
        to[i] = registers[trace_saved[i]];
}

/* A call has just landed. */
static inline void trace_enter(struct trace *trace)
{
    trace->frames =
        array_room(trace->frames, trace->depth, &trace->frame_capacity, sizeof *trace->frames);
    assert_non_null(trace->frames);
    struct trace_frame *frame = &trace->frames[trace->depth++];
    frame->cfa = trace->registers.rsp + 8;
    frame->return_addr = trace_word(trace, trace->registers.rsp);
    trace_saved_registers(trace, frame->saved);
    if (trace->depth > trace->deepest)
        trace->deepest = trace->depth;
}

/* A ret has just landed: the innermost call must be the one that it ends, and the ABI must be kept.
 */
static inline void trace_leave(struct trace *trace)
{
    const struct trace_frame *frame = &trace->frames[--trace->depth];
    uint64_t saved[TRACE_SAVED];
    trace_saved_registers(trace, saved);
    assert_int_equal(trace->registers.rip, frame->return_addr);
    assert_int_equal(trace->registers.rsp, frame->cfa);
    assert_memory_equal(saved, frame->saved, sizeof saved);
}

static inline size_t trace_keep_stack(struct trace *trace, uint64_t from, uint64_t to)
{
    size_t bytes = (size_t)(to - from), at = trace->stack_bytes;
    assert_true(to > from && bytes <= TRACE_FRAME_BYTES_MAX);
    if (trace->stack_capacity - at < bytes) {
        trace->stack = array_expect(trace->stack, 2 * (at + bytes), &trace->stack_capacity, 1);
        assert_true(trace->stack_capacity - at >= bytes);
    }
    trace_read(trace, from, trace->stack + at, bytes);
    trace->stack_bytes += bytes;
    return at;
}

/* Note down the instruction that comes next. */
static inline void trace_record(struct trace *trace)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    trace->steps =
        array_room(trace->steps, trace->step_count, &trace->step_capacity, sizeof *trace->steps);
    assert_non_null(trace->steps);
    assert_true(trace->step_count < TRACE_STEPS_MAX);
    struct trace_step *step = &trace->steps[trace->step_count++];
    step->time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    step->rip = trace->registers.rip;
    trace_dwarf_registers(trace, step->registers);
    step->truth = trace->frames[trace->depth - 1];
    step->stack = trace_keep_stack(trace, trace->registers.rsp, step->truth.cfa);
}

/* ---- Instructions ---- */

enum trace_kind { TRACE_OTHER, TRACE_CALL, TRACE_RET, TRACE_JCC };

static inline enum trace_kind trace_kind_of(const uint8_t *code)
{
    if ((code[0] & 0xf0) == 0x40) /* REX */
        code++;
    if (code[0] == 0xff && (code[1] >> 3 & 7) == 2)
        return TRACE_CALL;
    if (code[0] == 0x0f && (code[1] & 0xf0) == 0x80)
        return TRACE_JCC;
    return code[0] == 0xc3 ? TRACE_RET : TRACE_OTHER;
}

/* Where a jcc with a 32-bit distance goes. */
static inline uint64_t trace_target(uint64_t rip, const uint8_t *code)
{
    int32_t distance;
    memcpy(&distance, code + 2, sizeof distance);
    return rip + 6 + (uint64_t)(int64_t)distance;
}

/* The blocks that emitter_failures writes: [sub rsp, 8]; mov edi, failure; mov rsi, r15; mov edx,
 * line. */
static inline bool trace_is_failure(const uint8_t *code)
{
    static const uint8_t align[] = {0x48, 0x83, 0xec, 8}, zero[] = {0x31, 0xff},
                         rest[] = {0x4c, 0x89, 0xfe, 0xba};
    code += memcmp(code, align, sizeof align) == 0 ? sizeof align : 0;
    code += memcmp(code, zero, sizeof zero) == 0 ? sizeof zero : code[0] == 0xbf ? 5 : 0;
    return memcmp(code, rest, sizeof rest) == 0;
}

/* Whether the block at ADDR, with CODE in it, is new here. */
static inline bool trace_is_new(struct trace *trace, uint64_t addr, const uint8_t *code)
{
    uint64_t hash = addr;
    for (size_t i = 0; i < TRACE_CODE_BYTES; i++)
        hash = (hash ^ code[i]) * UINT64_C(0x100000001b3);
    for (size_t i = 0; i < trace->detour_count; i++)
        if (trace->detours[i] == hash)
            return false;
    assert_true(trace->detour_count < TRACE_DETOURS_MAX);
    trace->detours[trace->detour_count++] = hash;
    return true;
}

/* Visit the block at TARGET up to its call, and the place behind that as if it had returned, and
 * come back. */
static inline void trace_detour(struct trace *trace, uint64_t target)
{
    const struct user_regs_struct before = trace->registers;
    uint64_t rsp;
    trace->registers.rip = target;
    trace_set_registers(trace);
    do {
        rsp = trace->registers.rsp;
        trace_record(trace);
        assert_true(trace_resume(trace, PTRACE_SINGLESTEP));
    } while (trace_in_arena(trace, trace->registers.rip));
    assert_int_equal(trace->registers.rsp, rsp - 8);
    trace->registers.rip = trace_word(trace, rsp - 8);
    trace->registers.rsp = rsp;
    trace_record(trace);
    trace->registers = before;
    trace_set_registers(trace);
}

static inline void trace_maybe_detour(struct trace *trace, const uint8_t *code)
{
    uint8_t block[TRACE_CODE_BYTES];
    uint64_t target = trace_target(trace->registers.rip, code);
    trace_read(trace, target, block, sizeof block);
    if (trace_is_failure(block) && trace_is_new(trace, target, block))
        trace_detour(trace, target);
}

/* A call has just landed that was made with rsp = RSP.  Returns false if the child ended in C. */
static inline bool trace_called(struct trace *trace, uint64_t rsp)
{
    assert_int_equal(trace->registers.rsp, rsp - 8);
    if (trace_in_arena(trace, trace->registers.rip)) {
        trace_enter(trace);
        return true;
    }
    if (!trace_run_to(trace, trace_word(trace, rsp - 8)))
        return false;
    assert_int_equal(trace->registers.rsp, rsp);
    return true;
}

/* From the entry on until compiled code has returned to C.  Returns false if the child ended. */
static inline bool trace_through(struct trace *trace)
{
    while (trace->depth) {
        uint8_t code[TRACE_CODE_BYTES];
        uint64_t rsp = trace->registers.rsp;
        assert_true(trace_in_arena(trace, trace->registers.rip));
        trace_record(trace);
        trace_read(trace, trace->registers.rip, code, sizeof code);
        enum trace_kind kind = trace_kind_of(code);
        if (kind == TRACE_JCC)
            trace_maybe_detour(trace, code);
        assert_true(trace_resume(trace, PTRACE_SINGLESTEP));
        if (kind == TRACE_RET)
            trace_leave(trace);
        if (kind == TRACE_CALL && !trace_called(trace, rsp))
            return false;
    }
    return true;
}

/* Run ARGUMENTS, which is tinyjit and has --truth TRUTH_PATH among it; then the trace has all
 * steps. */
static inline void trace_run(struct trace *trace, char *const *arguments, const char *truth_path)
{
    trace_start(trace, arguments, truth_path);
    while (trace_run_to(trace, trace->entry)) {
        trace_enter(trace);
        if (!trace_through(trace))
            break;
    }
    close(trace->memory_fd);
}

static inline void trace_free(struct trace *trace)
{
    free(trace->steps);
    free(trace->stack);
    free(trace->frames);
}

#endif
