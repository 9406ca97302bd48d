/* See java_method.h. */
#include "agents/java/java_method.h"

#include "agents/java/array_room.h"
#include "agents/java/method_text.h"

#include <stdlib.h>

static void give_back(jvmtiEnv *jvmti, void *memory)
{
    if (memory)
        (*jvmti)->Deallocate(jvmti, memory);
}

static void read_file(const struct java_methods *methods, struct java_method *method, jclass class)
{
    jvmtiEnv *jvmti = methods->jvmti;
    char *file = NULL;
    if ((*jvmti)->GetLineNumberTable(jvmti, method->id, &method->line_count, &method->lines)) {
        method->lines = NULL; /* a native method's, or none were compiled in */
        method->line_count = 0;
    }
    if ((*jvmti)->GetSourceFileName(jvmti, class, &file) == JVMTI_ERROR_NONE)
        method->file = source_path(method->class_signature, file);
    give_back(jvmti, file);
}

static bool read_method(const struct java_methods *methods, struct java_method *method)
{
    jvmtiEnv *jvmti = methods->jvmti;
    char *name = NULL, *signature = NULL;
    jclass class = NULL;
    if ((*jvmti)->GetMethodName(jvmti, method->id, &name, &signature, NULL) == JVMTI_ERROR_NONE &&
        (*jvmti)->GetMethodDeclaringClass(jvmti, method->id, &class) == JVMTI_ERROR_NONE &&
        (*jvmti)->GetClassSignature(jvmti, class, &method->class_signature, NULL) ==
            JVMTI_ERROR_NONE) {
        method->name = method_text(method->class_signature, name, signature, methods->short_names);
        if (!methods->no_lines)
            read_file(methods, method, class);
    }
    if (class && methods->jni)
        (*methods->jni)->DeleteLocalRef(methods->jni, class);
    give_back(jvmti, name);
    give_back(jvmti, signature);
    return method->name != NULL;
}

const struct java_method *java_method_of(struct java_methods *methods, jmethodID id)
{
    for (size_t i = 0; i < methods->count; i++)
        if (methods->items[i].id == id)
            return methods->items[i].name ? &methods->items[i] : NULL;
    struct java_method *items =
        array_with_room(methods->items, methods->count, 1, &methods->capacity, sizeof *items);
    if (!items)
        return NULL;
    methods->items = items;
    struct java_method *method = &items[methods->count++];
    *method = (struct java_method){.id = id};
    return read_method(methods, method) ? method : NULL;
}

uint32_t java_method_line(const struct java_method *method, jint bci)
{
    jlocation best = -1;
    jint line = 0;
    for (jint i = 0; i < method->line_count; i++) /* the compiler's order is not by place */
        if (method->lines[i].start_location <= bci && method->lines[i].start_location > best) {
            best = method->lines[i].start_location;
            line = method->lines[i].line_number;
        }
    return line > 0 ? (uint32_t)line : 0;
}

void java_methods_free(struct java_methods *methods)
{
    for (size_t i = 0; i < methods->count; i++) {
        free(methods->items[i].name);
        free(methods->items[i].file);
        give_back(methods->jvmti, methods->items[i].class_signature);
        give_back(methods->jvmti, methods->items[i].lines);
    }
    free(methods->items);
    *methods = (struct java_methods){0};
}
