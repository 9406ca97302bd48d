/* See compile_time.h. */
#include "injector/artifact/compile_time.h"

#include <stdlib.h>
#include <string.h>

/* What compilers' functions begin with; of their own threads each sample counts. */
static const char *const functions[] = {"v8::internal::compiler::",
                                        "v8::internal::maglev::",
                                        "v8::internal::baseline::",
                                        "v8::internal::Compiler::",
                                        "v8::internal::OptimizingCompileDispatcher::",
                                        "v8::internal::OptimizedCompilationJob::",
                                        "v8::internal::interpreter::BytecodeGenerator::",
                                        "JSC::DFG::",
                                        "JSC::FTL::",
                                        "JSC::BBQ",
                                        "JSC::B3::",
                                        "zend_jit",
                                        "llvm::",
                                        "lj_asm_",
                                        "lj_record_",
                                        "yjit::",
                                        "_ZN4yjit",
                                        "mono_codegen",
                                        "mini_method_compile",
                                        "compile_function",
                                        "jit_compile"};
static const char *const threads[] = {"C1 Compiler", "C2 Compiler", "JVMCI", "JITWorker",
                                      "V8 Turbo"};
static const char *const modules[] = {"libclrjit.so"};

static bool begins(const char *text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strncmp(text, words[i], strlen(words[i])) == 0)
            return true;
    return false;
}

#define BEGINS(text, words) begins(text, words, sizeof(words) / sizeof(words)[0])

static bool is_compiler(const struct call_profile *profile, const struct call_frame *frame)
{
    return frame->kind == FRAME_NATIVE &&
           (BEGINS(call_profile_string(profile, frame->name), functions) ||
            BEGINS(call_profile_string(profile, frame->module), modules));
}

uint64_t compile_time_of(const struct call_profile *profile)
{
    uint64_t sum = 0;
    bool *of_frame = calloc(profile->frame_count + 1, sizeof *of_frame);
    bool *of_node = calloc(profile->node_count + 1, sizeof *of_node);
    for (size_t i = 0; of_frame && i < profile->frame_count; i++)
        of_frame[i] = is_compiler(profile, &profile->frames[i]);
    for (size_t i = 1; of_frame && of_node && i < profile->node_count; i++)
        of_node[i] = of_node[profile->nodes[i].parent] || of_frame[profile->nodes[i].frame];
    for (size_t i = 0; of_frame && of_node && i < profile->sample_count; i++) {
        const struct call_sample *sample = &profile->samples[i];
        uint32_t name = profile->threads[sample->thread].name;
        if (of_node[sample->node] || BEGINS(call_profile_string(profile, name), threads))
            sum += sample->period;
    }
    bool failed = !of_frame || !of_node;
    free(of_frame);
    free(of_node);
    return failed ? UINT64_MAX : sum;
}
