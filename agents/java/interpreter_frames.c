/* See interpreter_frames.h. */
#include "agents/java/interpreter_frames.h"

#include "jitdump/guest/code_probe.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* final class perfjit.InterpreterFrames: outer calls inner, and that calls look, which is native
 * and finds both on its stack.  Their calls stand at bytecodes 1 and 3. */
static const char class_file[] =
    /* magic, version 52, 13 constants */
    "\312\376\272\276\000\000\0004\000\016"
    /* its name */ "\001\000\031perfjit/InterpreterFrames"
    /* class 1 */ "\007\000\001"
    /* Object's */ "\001\000\020java/lang/Object"
    /* class 3 */ "\007\000\003"
    "\001\000\003()V"
    "\001\000\004Code"
    "\001\000\004look"
    "\001\000\005inner"
    "\001\000\005outer"
    /* look ()V */ "\014\000\007\000\005"
    /* this.look */ "\012\000\002\000\012"
    /* inner ()V */ "\014\000\010\000\005"
    /* this.inner */ "\012\000\002\000\014"
    /* final, super; this, Object; no interfaces, no fields; 3 methods */ "\0000\000\002\000\004"
    "\000\000\000\000\000\003"
    /* static native look */ "\001\010\000\007\000\005\000\000"
    /* static inner: nop; nop; nop; invokestatic look; return */
    "\000\010\000\010\000\005\000\001\000\006\000\000\000\023\000\000\000\000\000\000\000\007\000"
    "\000\000\270\000\013\261\000\000\000\000"
    /* static outer: nop; invokestatic inner; return */
    "\000\010\000\011\000\005\000\001\000\006\000\000\000\021\000\000\000\000\000\000\000\005\000"
    "\270\000\015\261\000\000\000\000"
    /* no attributes */ "\000\000";

enum { STACK_BYTES_MOST = 1 << 16 };

/* The one measuring at a time, by the agent's thread. */
static struct measuring {
    jvmtiEnv *jvmti;
    const struct vm_structs *structs;
    uint64_t code, code_bytes;
    jclass class; /* a global reference, from the first time on */
    struct interpreter_layout layout;
    bool is_known;
} measuring;

/* ---- On the stack ---- */

static bool is_readable(uint64_t addr, uint64_t bytes)
{
    return addr && addr % 8 == 0 &&
           jd_code_is_readable((const void *)(uintptr_t)addr, (size_t)bytes, 0);
}

/* Whether ID points to the Method that is called NAME: nothing but the names says so. */
static bool is_method_of(const struct vm_structs *structs, jmethodID id, const char *name,
                         uint64_t *method)
{
    char *text, *signature;
    if (!is_readable((uint64_t)(uintptr_t)id, sizeof *method))
        return false;
    *method = method_of_id(id);
    if (!is_readable(*method, structs->method_bytes) ||
        !is_readable(vm_method_const(structs, *method), structs->const_method_bytes) ||
        !vm_method_texts(structs, *method, &text, &signature))
        return false;
    const bool same = strcmp(text, name) == 0;
    free(text);
    free(signature);
    return same;
}

static bool read_frame(const jvmtiFrameInfo *info, const char *name, struct measured_frame *frame)
{
    struct vm_bytecodes codes;
    if (!is_method_of(measuring.structs, info->method, name, &frame->method))
        return false;
    codes = vm_method_bytecodes(measuring.structs, frame->method);
    frame->position = codes.bytes ? codes.addr + (uint64_t)info->location : 0;
    return true;
}

/* This thread's stack, from the frame of who calls on. */
static bool find_stack(struct stack_words *stack, const void *from)
{
    pthread_attr_t attributes;
    void *low;
    size_t bytes;
    if (pthread_getattr_np(pthread_self(), &attributes))
        return false;
    const bool found = pthread_attr_getstack(&attributes, &low, &bytes) == 0;
    pthread_attr_destroy(&attributes);
    const uint64_t start = (uint64_t)(uintptr_t)from & ~UINT64_C(7),
                   end = found ? (uint64_t)(uintptr_t)low + bytes : 0;
    if (start < (uint64_t)(uintptr_t)low || start >= end)
        return false;
    *stack = (struct stack_words){
        (const uint64_t *)(uintptr_t)start,
        (end - start < STACK_BYTES_MOST ? end - start : (uint64_t)STACK_BYTES_MOST) / 8, start};
    return true;
}

/* Words of others' frames: a sanitizer has no say about them. */
__attribute__((no_sanitize("address"))) static void JNICALL look(JNIEnv *jni, jclass class)
{
    enum { LOOK, INNER, OUTER, FRAMES };
    jvmtiFrameInfo infos[FRAMES];
    jint count = 0;
    struct measured_frame inner, outer;
    struct stack_words stack;
    (void)jni;
    (void)class;
    if ((*measuring.jvmti)->GetStackTrace(measuring.jvmti, NULL, 0, FRAMES, infos, &count) ||
        count < FRAMES || !read_frame(&infos[INNER], "inner", &inner) ||
        !read_frame(&infos[OUTER], "outer", &outer) ||
        !find_stack(&stack, __builtin_frame_address(0)))
        return;
    measuring.is_known = interpreter_layout_find(&measuring.layout, &stack, &inner, &outer,
                                                 measuring.code, measuring.code_bytes);
}

/* ---- The call ---- */

static jclass define_class(JNIEnv *jni)
{
    static char name[] = "look", signature[] = "()V";
    const JNINativeMethod native = {name, signature, (void *)(uintptr_t)look};
    jclass class =
        (*jni)->DefineClass(jni, "perfjit/InterpreterFrames", NULL, (const jbyte *)class_file,
                            sizeof class_file - 1); /* without the NUL */
    if (!class || (*jni)->RegisterNatives(jni, class, &native, 1))
        return NULL;
    return (*jni)->NewGlobalRef(jni, class);
}

static void call_outer(JNIEnv *jni)
{
    if (!measuring.class)
        measuring.class = define_class(jni);
    jmethodID outer =
        measuring.class ? (*jni)->GetStaticMethodID(jni, measuring.class, "outer", "()V") : NULL;
    if (outer)
        (*jni)->CallStaticVoidMethod(jni, measuring.class, outer);
    if ((*jni)->ExceptionCheck(jni))
        (*jni)->ExceptionClear(jni);
}

bool interpreter_frames_measure(struct interpreter_layout *layout, jvmtiEnv *jvmti, JNIEnv *jni,
                                const struct vm_structs *structs, uint64_t code,
                                uint64_t code_bytes)
{
    if (!structs->method_bytes || !code_bytes)
        return false;
    measuring.jvmti = jvmti;
    measuring.structs = structs;
    measuring.code = code;
    measuring.code_bytes = code_bytes;
    measuring.is_known = false;
    call_outer(jni);
    *layout = measuring.layout;
    return measuring.is_known;
}
