/* See activity.h. */
#include "injector/profile/activity.h"

#include <stdlib.h>
#include <string.h>

/* The beginnings of compilers' function names.  In compilers' own threads each sample counts. */
static const char *const compilers[] = {"v8::internal::compiler::",
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
                                        "jit_compile",
                                        NULL};
static const char *const compiler_threads[] = {"C1 Compiler", "C2 Compiler", "JVMCI",
                                               "JITWorker",   "V8 Turbo",    NULL};

/* The same of garbage collectors.  V8's Heap:: allocates as well, so it is named more closely. */
static const char *const collectors[] = {"v8::internal::Heap::CollectGarbage",
                                         "v8::internal::Heap::PerformGarbageCollection",
                                         "v8::internal::Heap::PerformHeapGarbageCollection",
                                         "v8::internal::Heap::Scavenge",
                                         "v8::internal::Heap::MarkCompact",
                                         "v8::internal::Heap::MinorMark",
                                         "v8::internal::Scaveng",
                                         "v8::internal::IterateAndScavenge",
                                         "v8::internal::MarkCompact",
                                         "v8::internal::MarkingVisitor",
                                         "v8::internal::MainMarkingVisitor",
                                         "v8::internal::MinorMark",
                                         "v8::internal::YoungGenerationMark",
                                         "v8::internal::IncrementalMarking",
                                         "v8::internal::ConcurrentMarking",
                                         "v8::internal::Evacuat",
                                         "v8::internal::FullEvacuator",
                                         "v8::internal::Sweeper",
                                         "v8::internal::PageEvacuationJob",
                                         "v8::internal::PointersUpdatingJob",
                                         "JSC::Heap::collect",
                                         "JSC::Heap::runCurrentPhase",
                                         "JSC::SlotVisitor::",
                                         "JSC::MarkedBlock::sweep",
                                         "WKS::gc_heap::",
                                         "SVR::gc_heap::",
                                         "G1",
                                         "PSScavenge",
                                         "PSParallelCompact",
                                         "DefNewGeneration::collect",
                                         "GenMarkSweep",
                                         "GenCollectedHeap::do_collection",
                                         "sgen_",
                                         "zend_gc_",
                                         "gc_collect_",
                                         "lj_gc_",
                                         NULL};
static const char *const collector_threads[] = {"GC Thread",      "G1 ",        "ZDriver",
                                                "ZWorker",        "Shenandoah", "HeapHelper",
                                                ".NET Server GC", ".NET BGC",   NULL};

const char *activity_name(enum activity activity)
{
    static const char *const names[ACTIVITIES] = {[ACTIVITY_JIT] = "JIT code",
                                                  [ACTIVITY_INTERPRETER] = "interpreter",
                                                  [ACTIVITY_COLLECTOR] = "garbage collector",
                                                  [ACTIVITY_COMPILER] = "JIT compilers",
                                                  [ACTIVITY_NATIVE] = "native code",
                                                  [ACTIVITY_KERNEL] = "kernel",
                                                  [ACTIVITY_OTHER] = "without a name"};
    return names[activity];
}

static bool begins(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strncmp(text, *words, strlen(*words)) == 0)
            return true;
    return false;
}

static enum activity of_frame(const struct call_profile *profile, const struct call_frame *frame)
{
    static const enum activity of_kind[FRAME_KINDS] = {[FRAME_JIT] = ACTIVITY_JIT,
                                                       [FRAME_INTERPRETER] = ACTIVITY_INTERPRETER,
                                                       [FRAME_NATIVE] = ACTIVITY_NATIVE,
                                                       [FRAME_KERNEL] = ACTIVITY_KERNEL,
                                                       [FRAME_UNKNOWN] = ACTIVITY_OTHER};
    const char *name = call_profile_string(profile, frame->name);
    if (frame->kind != FRAME_NATIVE)
        return of_kind[frame->kind];
    if (begins(name, compilers) ||
        strcmp(call_profile_string(profile, frame->module), "libclrjit.so") == 0)
        return ACTIVITY_COMPILER;
    return begins(name, collectors) ? ACTIVITY_COLLECTOR : ACTIVITY_NATIVE;
}

static bool is_service(uint8_t activity)
{
    return activity == ACTIVITY_COLLECTOR || activity == ACTIVITY_COMPILER;
}

/* Functions that a compiler or collector calls count as its own.  JIT code does not: a finalizer, a
 * getter. */
static void find_nodes(struct activity_map *map, const struct call_profile *profile,
                       const uint8_t *frames)
{
    map->of_node[0] = ACTIVITY_OTHER;
    for (size_t i = 1; i < profile->node_count; i++) {
        uint8_t own = frames[profile->nodes[i].frame],
                outer = map->of_node[profile->nodes[i].parent];
        bool is_own = is_service(own) || own == ACTIVITY_JIT || own == ACTIVITY_INTERPRETER;
        map->of_node[i] = is_service(outer) && !is_own ? outer : own;
    }
}

int activity_map_make(struct activity_map *map, const struct call_profile *profile)
{
    uint8_t *frames = malloc(profile->frame_count + 1);
    map->of_node = malloc(profile->node_count + 1);
    map->of_thread = malloc(profile->thread_count + 1);
    int result = frames && map->of_node && map->of_thread ? 0 : -1;
    for (size_t i = 0; !result && i < profile->frame_count; i++)
        frames[i] = (uint8_t)of_frame(profile, &profile->frames[i]);
    if (!result)
        find_nodes(map, profile, frames);
    for (size_t i = 0; !result && i < profile->thread_count; i++) {
        const char *name = call_profile_string(profile, profile->threads[i].name);
        map->of_thread[i] = begins(name, compiler_threads)    ? ACTIVITY_COMPILER
                            : begins(name, collector_threads) ? ACTIVITY_COLLECTOR
                                                              : ACTIVITIES;
    }
    free(frames);
    return result;
}

enum activity activity_of(const struct activity_map *map, const struct call_sample *sample)
{
    uint8_t own = map->of_node[sample->node], thread = map->of_thread[sample->thread];
    return (enum activity)(thread < ACTIVITIES && !is_service(own) ? thread : own);
}

void activity_map_free(struct activity_map *map)
{
    free(map->of_node);
    free(map->of_thread);
    *map = (struct activity_map){0};
}
