/* The layout of the interpreter's frames, measured in this JVM. */
#ifndef PERFJIT_INTERPRETER_FRAMES_H
#define PERFJIT_INTERPRETER_FRAMES_H

#include "agents/java/interpreter_layout.h"
#include "agents/java/vm_structs.h"

#include <jvmti.h>

/* For the agent's thread alone.  The interpreter's code is [CODE, CODE + CODE_BYTES).  A class of
 * the agent's own is defined for it, at the first call.  False: the layout is not known, nor is
 * what a jmethodID points to. */
bool interpreter_frames_measure(struct interpreter_layout *layout, jvmtiEnv *jvmti, JNIEnv *jni,
                                const struct vm_structs *structs, uint64_t code,
                                uint64_t code_bytes);

/* Where HotSpot has the address of ID's Method, where that has been measured. */
static inline const uint64_t *place_of_id(jmethodID id)
{
    return (const uint64_t *)(const void *)id;
}

static inline jmethodID id_of_place(const uint64_t *place)
{
    return (jmethodID)(uintptr_t)place;
}

static inline uint64_t method_of_id(jmethodID id)
{
    return *place_of_id(id);
}

#endif
