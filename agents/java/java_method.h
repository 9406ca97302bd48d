/* What JVMTI says of methods: name, source file, lines.  One piece of compiled code has many rows
 * of few methods, which are asked for once for all of them. */
#ifndef PERFJIT_JAVA_METHOD_H
#define PERFJIT_JAVA_METHOD_H

#include <jvmti.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct java_method {
    jmethodID id;
    char *class_signature;       /* JVMTI's */
    char *name;                  /* owned */
    char *file;                  /* owned; NULL: not known */
    jvmtiLineNumberEntry *lines; /* JVMTI's; NULL: none */
    jint line_count;
};

struct java_methods {
    jvmtiEnv *jvmti;
    JNIEnv *jni; /* or NULL */
    bool short_names, no_lines;
    struct java_method *items; /* owned */
    size_t count, capacity;
};

/* The method of that ID.  It lives until the next call.  NULL: no memory, or JVMTI knows it no
 * more. */
const struct java_method *java_method_of(struct java_methods *methods, jmethodID id);

/* The line of the bytecode at BCI; 0: not known. */
uint32_t java_method_line(const struct java_method *method, jint bci);

void java_methods_free(struct java_methods *methods);

#endif
