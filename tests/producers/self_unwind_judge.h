/* What a chain of tinyjit's own process is held against: what tinyjit knows of its code. */
#ifndef PERFJIT_TEST_SELF_UNWIND_JUDGE_H
#define PERFJIT_TEST_SELF_UNWIND_JUDGE_H

#include "examples/tinyjit/runtime.h"
#include "jitunwind/jitunwind.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <ucontext.h>

static inline uint64_t word_at(uint64_t addr)
{
    uint64_t word;
    memcpy(&word, (const void *)(uintptr_t)addr, sizeof word);
    return word;
}

/* Where the caller's frame begins: by the frame events of what was interrupted, and by its list of
 * calls of what called. */
static inline bool next_by_log(const struct runtime *runtime, const struct jitunwind_frame *frame,
                               const ucontext_t *context, uint64_t *cfa, bool *is_entry)
{
    const struct code *code = code_table_find(&runtime->codes, frame->ip - !frame->exact);
    if (!code)
        return false;
    size_t offset = (size_t)(frame->ip - (uint64_t)(uintptr_t)code->addr);
    *is_entry = code->kind == CODE_ENTRY;
    if (frame->exact) {
        struct code_frame_rule rule = code_frame_rule_at(code, offset);
        const greg_t *registers = context->uc_mcontext.gregs;
        *cfa = (uint64_t)registers[rule.cfa_register == X86_RBP ? REG_RBP : REG_RSP] +
               (uint64_t)(int64_t)rule.cfa_offset;
        return true;
    }
    const struct code_call *call = code_find_call(code, offset);
    *cfa = call ? frame->sp + call->cfa_distance : 0;
    return call != NULL;
}

/* tinyjit's own account of what is on the stack, from the innermost compiled frame to its entry. */
static inline const char *judge_by_log(const struct runtime *runtime,
                                       const struct jitunwind_frame *frames, size_t count,
                                       const ucontext_t *context)
{
    const struct code_arena *arena = &runtime->arena;
    const uint64_t base = (uint64_t)(uintptr_t)arena->base;
    bool is_entry = false;
    size_t i = 0;
    while (i < count && frames[i].ip - base >= arena->reserved)
        i++;
    if (i == count)
        return NULL;
    for (; i + 1 < count && !is_entry; i++) {
        uint64_t cfa;
        if (!next_by_log(runtime, &frames[i], context, &cfa, &is_entry))
            return "a frame is where no call is";
        if (frames[i + 1].sp != cfa || frames[i + 1].ip != word_at(cfa - 8))
            return "a frame is not the log's";
    }
    return is_entry ? NULL : "the log has more frames";
}

/* ---- C++'s unwinder ---- */

/* It leaves its own frames by other ways than its tables know. */
static struct {
    uint64_t start[2], bytes[2];
} unwinder;

static inline void find_unwinder(void)
{
    static const char *const names[] = {"_Unwind_RaiseException", "_Unwind_Resume"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        Dl_info info;
        void *symbol = NULL;
        void *addr = dlsym(RTLD_DEFAULT, names[i]);
        if (addr && dladdr1(addr, &info, &symbol, RTLD_DL_SYMENT) && symbol) {
            unwinder.start[i] = (uint64_t)(uintptr_t)addr;
            unwinder.bytes[i] = ((const Elf64_Sym *)symbol)->st_size;
        }
    }
}

static inline bool is_unwinders(uint64_t ip)
{
    return ip - unwinder.start[0] < unwinder.bytes[0] || ip - unwinder.start[1] < unwinder.bytes[1];
}

/* In the unwinder itself; or in what it calls last, which writes the registers of the frame that
 * catches over those that the unwinder's own frame has saved, its return address first: then the
 * program is its caller, which calls it through libstdc++ alone. */
static inline bool is_leaving_unwinder(const struct jitunwind_frame *frames, size_t count)
{
    extern const char __executable_start[], etext[];
    if (is_unwinders(frames[0].ip))
        return true;
    return count > 2 && is_unwinders(frames[1].ip) &&
           frames[2].ip - (uint64_t)(uintptr_t)__executable_start <
               (uint64_t)(etext - __executable_start);
}

#endif
