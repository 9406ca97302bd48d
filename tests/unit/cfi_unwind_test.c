/* Real unwinding: canonical x86-64 frames in executable memory, their .eh_frame registered with
 * libgcc, and _Unwind_Backtrace called from below them.  Not only the chain of callers must be
 * right, but the registers that each frame has saved too. */
#include "jitdump/cfi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unwind.h>

#include <cmocka.h>

#include "jitdump/format/byte_sink.h"

#ifdef __x86_64__

void __register_frame(const void *eh_frame);
void __deregister_frame(const void *eh_frame);

/* ---- Code ---- */

enum { CODE_BYTES = 8192, FUNCTIONS_MAX = 12 };

/* Numbers in instructions, by DWARF's. */
static const uint8_t encoded[] = {0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15};

static void put_push(struct byte_sink *code, uint8_t opcode, uint8_t reg)
{
    if (encoded[reg] >= 8)
        sink_u8(code, 0x41);
    sink_u8(code, (uint8_t)(opcode + (encoded[reg] & 7)));
}

/* sub rsp (0xec) or add rsp (0xc4) */
static void put_stack(struct byte_sink *code, const struct jitdump_frame *frame, uint8_t operand)
{
    bool wide = frame->stack_bytes > 127 || frame->flags & JITDUMP_FRAME_IMM32;
    if (frame->stack_bytes == 0)
        return;
    sink_u8(code, 0x48);
    sink_u8(code, wide ? 0x81 : 0x83);
    sink_u8(code, operand);
    if (wide)
        sink_u32(code, frame->stack_bytes);
    else
        sink_u8(code, (uint8_t)frame->stack_bytes);
}

/* mov [rsp+k], r or mov [rbp+k], r (0x89) for each slot, or the loads (0x8b). */
static void put_slots(struct byte_sink *code, const struct jitdump_frame *frame, uint8_t opcode)
{
    bool pointer = frame->kind == JITDUMP_FRAME_POINTER;
    for (size_t i = 0; i < frame->slot_count; i++) {
        int32_t offset = frame->slots[i].offset;
        uint8_t reg = encoded[frame->slots[i].reg];
        bool wide = offset != (int8_t)offset || frame->flags & JITDUMP_FRAME_IMM32;
        unsigned mod = wide ? 0x80 : offset || pointer ? 0x40 : 0;
        sink_u8(code, reg >= 8 ? 0x4c : 0x48);
        sink_u8(code, opcode);
        sink_u8(code, (uint8_t)(mod | (unsigned)(reg & 7) << 3 | (pointer ? 5 : 4)));
        if (!pointer)
            sink_u8(code, 0x24);
        if (wide)
            sink_u32(code, (uint32_t)offset);
        else if (mod)
            sink_u8(code, (uint8_t)offset);
    }
}

static void put_prologue(struct byte_sink *code, const struct jitdump_frame *frame)
{
    size_t start = code->size;
    if (frame->flags & JITDUMP_FRAME_LANDING_PAD)
        sink_bytes(code, "\xf3\x0f\x1e\xfa", 4);
    if (frame->flags & JITDUMP_FRAME_RED_ZONE)
        sink_bytes(code, "\x48\x89\x6c\x24\xf8\x48\x8d\x6c\x24\xf8", 10);
    else if (frame->kind == JITDUMP_FRAME_POINTER)
        sink_bytes(code, "\x55\x48\x89\xe5", 4);
    for (uint32_t i = 0; i < frame->saved_count; i++)
        put_push(code, 0x50, frame->saved[i]);
    put_stack(code, frame, 0xec);
    put_slots(code, frame, 0x89);
    assert_int_equal(code->size - start, jitdump_cfi_prologue_bytes(JITDUMP_X86_64, frame));
}

static void put_epilogue(struct byte_sink *code, const struct jitdump_frame *frame)
{
    bool dynamic = frame->flags & JITDUMP_FRAME_DYNAMIC, leave = dynamic && !frame->saved_count;
    bool red_zone = frame->flags & JITDUMP_FRAME_RED_ZONE;
    size_t start = code->size;
    put_slots(code, frame, 0x8b);
    if (red_zone)
        sink_bytes(code, "\x48\x8d\x65\x08\x48\x8b\x6c\x24\xf8", 9);
    else if (leave)
        sink_u8(code, 0xc9);
    else if (dynamic)
        sink_bytes(code, (uint8_t[]){0x48, 0x8d, 0x65, (uint8_t)(-8 * (int)frame->saved_count)}, 4);
    else
        put_stack(code, frame, 0xc4);
    for (uint32_t i = frame->saved_count; i-- > 0;)
        put_push(code, 0x58, frame->saved[i]);
    if (frame->kind == JITDUMP_FRAME_POINTER && !leave && !red_zone)
        sink_u8(code, 0x5d);
    assert_int_equal(code->size - start, jitdump_cfi_epilogue_bytes(JITDUMP_X86_64, frame));
    sink_u8(code, 0xc3);
}

/* mov DWARF_REG, VALUE */
static void put_mark(struct byte_sink *code, uint32_t dwarf_reg, uint32_t mark)
{
    uint8_t reg = encoded[dwarf_reg];
    sink_u8(code, reg >= 8 ? 0x49 : 0x48);
    sink_u8(code, 0xc7);
    sink_u8(code, (uint8_t)(0xc0 + (reg & 7)));
    sink_u32(code, mark + dwarf_reg);
}

/* All saved ones, so that each frame leaves a mark for the next one to save. */
static void put_marks(struct byte_sink *code, const struct jitdump_frame *frame, uint32_t mark)
{
    for (uint32_t i = 0; i < frame->saved_count; i++)
        put_mark(code, frame->saved[i], mark);
    for (size_t i = 0; i < frame->slot_count; i++)
        put_mark(code, frame->slots[i].reg, mark);
}

/* mov rax, TARGET; call rax */
static void put_call(struct byte_sink *code, uint64_t target)
{
    sink_bytes(code, "\x48\xb8", 2);
    sink_u64(code, target);
    sink_bytes(code, "\xff\xd0", 2);
}

/* jmp to where OFFSET of the code is. */
static void put_jump(struct byte_sink *code, size_t offset)
{
    sink_u8(code, 0xe9);
    sink_u32(code, (uint32_t)(offset - (code->size + 4)));
}

/* ---- The chain ---- */

struct seen {
    uintptr_t ip;
    uint64_t saved[16];
};

static struct {
    uint8_t *code;
    struct seen seen[FUNCTIONS_MAX];
    size_t count;
    void *caller; /* the function behind the last JIT frame */
    int calls;
} chain;

static _Unwind_Reason_Code see(struct _Unwind_Context *context, void *unused)
{
    static const uint8_t kept[] = {JITDUMP_RBX, JITDUMP_R12, JITDUMP_R13, JITDUMP_R14, JITDUMP_R15};
    uintptr_t ip = _Unwind_GetIP(context), offset = ip - (uintptr_t)chain.code;
    (void)unused;
    if (offset < CODE_BYTES && chain.count < FUNCTIONS_MAX) {
        struct seen *seen = &chain.seen[chain.count++];
        seen->ip = offset;
        for (size_t i = 0; i < sizeof kept; i++)
            seen->saved[kept[i]] = _Unwind_GetGR(context, kept[i]);
    } else if (chain.count) {
        chain.caller = _Unwind_FindEnclosingFunction((void *)ip);
        return _URC_END_OF_STACK;
    }
    return _URC_NO_REASON;
}

static void look_up(void)
{
    chain.calls++;
    chain.count = 0;
    chain.caller = NULL;
    _Unwind_Backtrace(see, NULL);
}

__attribute__((noinline)) static int enter(int (*entry)(void))
{
    int result = entry();
    __asm__ volatile("" : "+r"(result)); /* no tail call */
    return result;
}

/* A function of FRAME that calls TARGET.  Returns where it returns to. */
static size_t put_function(struct byte_sink *code, struct jitdump_cfi *cfi,
                           const struct jitdump_frame *frame, uint32_t mark, uint64_t target)
{
    struct jitdump_frame complete = *frame;
    uint64_t epilogue;
    size_t start = code->size;
    put_prologue(code, frame);
    put_marks(code, frame, mark);
    put_call(code, target);
    size_t back = code->size;
    epilogue = code->size;
    put_epilogue(code, frame);
    complete.prologue = start;
    complete.epilogues = &epilogue;
    complete.epilogue_count = 1;
    jitdump_cfi_block(cfi, start, code->size - start);
    jitdump_cfi_frame(cfi, &complete);
    return back;
}

/* The same, but with the call in a cold part behind it. */
static size_t put_split_function(struct byte_sink *code, struct jitdump_cfi *cfi,
                                 const struct jitdump_frame *frame, uint32_t mark, uint64_t target)
{
    struct jitdump_frame hot = *frame, cold = *frame;
    uint64_t epilogue;
    size_t start = code->size;
    put_prologue(code, frame);
    put_marks(code, frame, mark);
    size_t jump = code->size;
    put_jump(code, 0);
    epilogue = code->size;
    put_epilogue(code, frame);
    size_t end = code->size, cold_start = end + 13;
    sink_zeros(code, 13);
    struct byte_sink patch = byte_sink_over(code->data + jump, 5);
    put_jump(&patch, cold_start - jump);
    put_call(code, target);
    size_t back = code->size;
    put_jump(code, (size_t)epilogue);
    hot.prologue = start;
    hot.epilogues = &epilogue;
    hot.epilogue_count = 1;
    cold.flags |= JITDUMP_FRAME_ENTERED;
    jitdump_cfi_block(cfi, cold_start, code->size - cold_start);
    jitdump_cfi_frame(cfi, &cold);
    jitdump_cfi_block(cfi, start, end - start);
    jitdump_cfi_frame(cfi, &hot);
    return back;
}

/* Functions of FRAMES, each called by the next one; the first calls look_up. */
static void assert_chain(const struct jitdump_frame *frames, size_t count, bool split)
{
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    struct jitdump_unwind unwind;
    size_t back[FUNCTIONS_MAX];
    chain.code = mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct byte_sink code = byte_sink_over(chain.code, CODE_BYTES);
    uint64_t target = (uint64_t)(uintptr_t)look_up;
    for (size_t i = 0; i < count; i++) {
        uint64_t start = (uint64_t)(uintptr_t)chain.code + code.size;
        back[i] = (split ? put_split_function : put_function)(&code, cfi, &frames[i],
                                                              (uint32_t)(i + 1) * 0x100, target);
        target = start;
    }
    assert_int_equal(jitdump_cfi_finish(cfi, code.size, &unwind), 0);
    /* The place that the tables are made for: behind the code. */
    void *eh_frame = chain.code + (code.size + 7) / 8 * 8;
    memcpy(eh_frame, unwind.data, unwind.unwinding_size);
    __register_frame(eh_frame);
    chain.calls = 0;
    enter((int (*)(void))(uintptr_t)target);
    __deregister_frame(eh_frame);

    assert_int_equal(chain.calls, 1);
    assert_int_equal(chain.count, count);
    assert_ptr_equal(chain.caller, enter);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(chain.seen[i].ip, back[i]);
        for (uint32_t s = 0; s < frames[i].saved_count; s++)
            if (frames[i].saved[s] != JITDUMP_RBP)
                assert_int_equal(chain.seen[i].saved[frames[i].saved[s]],
                                 (i + 1) * 0x100 + frames[i].saved[s]);
        for (size_t s = 0; s < frames[i].slot_count; s++)
            if (frames[i].slots[s].reg != JITDUMP_RBP)
                assert_int_equal(chain.seen[i].saved[frames[i].slots[s].reg],
                                 (i + 1) * 0x100 + frames[i].slots[s].reg);
    }
    munmap(chain.code, CODE_BYTES);
    jitdump_cfi_free(cfi);
}

/* Of every kind, and so large that the stack is aligned to 16 bytes at the calls. */
static const struct jitdump_frame frames[] = {
    {.kind = JITDUMP_FRAME_POINTER, JITDUMP_SAVED(JITDUMP_RBX, JITDUMP_R12), .stack_bytes = 32},
    {.kind = JITDUMP_FRAME_STACK,
     JITDUMP_SAVED(JITDUMP_RBP, JITDUMP_RBX, JITDUMP_R13, JITDUMP_R14),
     .stack_bytes = 40},
    {.kind = JITDUMP_FRAME_POINTER,
     .flags = JITDUMP_FRAME_DYNAMIC | JITDUMP_FRAME_LANDING_PAD,
     .stack_bytes = 4096},
    {.kind = JITDUMP_FRAME_STACK, .flags = JITDUMP_FRAME_IMM32, .stack_bytes = 24},
    {.kind = JITDUMP_FRAME_POINTER,
     .flags = JITDUMP_FRAME_DYNAMIC,
     JITDUMP_SAVED(JITDUMP_R15, JITDUMP_R14, JITDUMP_R13, JITDUMP_RBX),
     .stack_bytes = 256},
    {.kind = JITDUMP_FRAME_STACK, JITDUMP_SAVED(JITDUMP_R12)},
    {.kind = JITDUMP_FRAME_POINTER},
    {.kind = JITDUMP_FRAME_STACK,
     JITDUMP_SAVED(JITDUMP_R15),
     .stack_bytes = 0x110,
     JITDUMP_SLOTS({JITDUMP_RBX, 0}, {JITDUMP_R12, 24}, {JITDUMP_RBP, 0x100})},
    {.kind = JITDUMP_FRAME_POINTER,
     JITDUMP_SAVED(JITDUMP_RBX, JITDUMP_R12),
     .stack_bytes = 0x100,
     JITDUMP_SLOTS({JITDUMP_R13, -24}, {JITDUMP_R14, -0x110})},
    {.kind = JITDUMP_FRAME_POINTER,
     .flags = JITDUMP_FRAME_RED_ZONE,
     .stack_bytes = 40,
     JITDUMP_SLOTS({JITDUMP_RBX, -32}, {JITDUMP_R15, -8})},
    {.kind = JITDUMP_FRAME_POINTER,
     .flags = JITDUMP_FRAME_DYNAMIC | JITDUMP_FRAME_IMM32,
     .stack_bytes = 16,
     JITDUMP_SLOTS({JITDUMP_R12, -16})},
};

enum { FRAMES = sizeof frames / sizeof *frames };

static void test_each_frame_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRAMES; i++) {
        assert_chain(&frames[i], 1, false);
        assert_chain(&frames[i], 1, true);
    }
}

static void test_all_frames_in_a_chain(void **state)
{
    (void)state;
    assert_chain(frames, FRAMES, false);
}

static void test_all_frames_in_a_chain_of_cold_parts(void **state)
{
    (void)state;
    assert_chain(frames, FRAMES, true);
}

#else

static void test_each_frame_alone(void **state)
{
    (void)state;
}

static void test_all_frames_in_a_chain(void **state)
{
    (void)state;
}

static void test_all_frames_in_a_chain_of_cold_parts(void **state)
{
    (void)state;
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_frame_alone),
        cmocka_unit_test(test_all_frames_in_a_chain),
        cmocka_unit_test(test_all_frames_in_a_chain_of_cold_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
