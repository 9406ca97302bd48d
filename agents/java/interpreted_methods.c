/* See interpreted_methods.h. */
#include "agents/java/interpreted_methods.h"

#include "agents/java/method_text.h"
#include "agents/java/old_methods.h"
#include "jitdump/interpreted.h"

#include <stdio.h>
#include <stdlib.h>

enum { ACC_NATIVE = 0x0100, LOOK_MOST = 1000, FRAMES_MOST = 1024 };

static void give_back(jvmtiEnv *jvmti, void *memory)
{
    if (memory)
        (*jvmti)->Deallocate(jvmti, memory);
}

/* ---- A method ---- */

static int by_offset(const void *left, const void *right)
{
    const struct jitdump_position *a = left, *b = right;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* The lines of ID, by their places, to be freed; NULL: none are known.  The compiler may have had
 * several for one place: the last one counts. */
static struct jitdump_position *read_rows(jvmtiEnv *jvmti, jmethodID id, size_t *count)
{
    jvmtiLineNumberEntry *lines = NULL;
    jint line_count = 0;
    *count = 0;
    if ((*jvmti)->GetLineNumberTable(jvmti, id, &line_count, &lines) || line_count <= 0)
        return NULL;
    struct jitdump_position *rows = malloc((size_t)line_count * sizeof *rows);
    for (jint i = 0; rows && i < line_count; i++)
        rows[i] = (struct jitdump_position){(uint32_t)lines[i].start_location,
                                            (uint32_t)lines[i].line_number};
    give_back(jvmti, lines);
    if (!rows)
        return NULL;
    qsort(rows, (size_t)line_count, sizeof *rows, by_offset);
    for (size_t i = 0; i < (size_t)line_count; i++) {
        *count += *count == 0 || rows[*count - 1].offset != rows[i].offset;
        rows[*count - 1] = rows[i];
    }
    return rows;
}

static char *read_name(const struct interpreted_methods *methods, jmethodID id,
                       const char *class_signature)
{
    jvmtiEnv *jvmti = methods->jvmti;
    char *name = NULL, *signature = NULL, *text = NULL, *marked = NULL;
    if ((*jvmti)->GetMethodName(jvmti, id, &name, &signature, NULL) == JVMTI_ERROR_NONE)
        text = method_text(class_signature, name, signature, methods->short_names);
    if (text && asprintf(&marked, "%s [interpreted]", text) < 0)
        marked = NULL;
    give_back(jvmti, name);
    give_back(jvmti, signature);
    free(text);
    return marked;
}

/* METHOD has CODES, and is ID's, or was. */
static void add_method(const struct interpreted_methods *methods, uint64_t method,
                       struct vm_bytecodes codes, jmethodID id, const char *class_signature,
                       const char *file)
{
    char *name = read_name(methods, id, class_signature);
    size_t row_count = 0;
    struct jitdump_position *rows =
        file && codes.bytes ? read_rows(methods->jvmti, id, &row_count) : NULL;
    const struct jitdump_interpreted function = {.function = method,
                                                 .function_bytes =
                                                     (uint32_t)methods->structs->method_bytes,
                                                 .position = codes.bytes ? codes.addr : 0,
                                                 .position_bytes = (uint32_t)codes.bytes,
                                                 .name = name,
                                                 .file = file,
                                                 .rows = rows,
                                                 .row_count = row_count};
    if (name)
        jd_add_interpreted(methods->dump, &function);
    free(name);
    free(rows);
}

/* That of ID.  Its class is not unloaded meanwhile. */
static void add_newest(const struct interpreted_methods *methods, jmethodID id,
                       const char *class_signature, const char *file)
{
    const uint64_t method = method_of_id(id);
    jint modifiers = 0;
    if (!method)
        return; /* it is gone */
    struct vm_bytecodes codes;
    if (!newest_method_bytecodes(methods->structs, method, &codes))
        codes = vm_method_bytecodes(methods->structs, method);
    if (codes.bytes || ((*methods->jvmti)->GetMethodModifiers(methods->jvmti, id, &modifiers) ==
                            JVMTI_ERROR_NONE &&
                        modifiers & ACC_NATIVE))
        add_method(methods, method, codes, id, class_signature, file);
}

/* ---- Classes ---- */

static char *read_file(const struct interpreted_methods *methods, jclass class,
                       const char *class_signature)
{
    char *file = NULL, *path = NULL;
    if (!methods->no_lines &&
        (*methods->jvmti)->GetSourceFileName(methods->jvmti, class, &file) == JVMTI_ERROR_NONE)
        path = source_path(class_signature, file);
    give_back(methods->jvmti, file);
    return path;
}

static void add_class(const struct interpreted_methods *methods, jclass class, bool is_new)
{
    jvmtiEnv *jvmti = methods->jvmti;
    jmethodID *ids = NULL;
    char *signature = NULL;
    jint count = 0;
    if ((*jvmti)->GetClassMethods(jvmti, class, &count, &ids) ||
        (*jvmti)->GetClassSignature(jvmti, class, &signature, NULL))
        count = 0;
    if (count && is_new)
        watched_methods_add(methods->watched, place_of_id(ids[0]));
    char *file = count ? read_file(methods, class, signature) : NULL;
    for (jint i = 0; i < count; i++)
        add_newest(methods, ids[i], signature, file);
    free(file);
    give_back(jvmti, signature);
    give_back(jvmti, ids);
}

void interpreted_methods_add(const struct interpreted_methods *methods, jclass class)
{
    add_class(methods, class, true);
}

void interpreted_methods_add_again(const struct interpreted_methods *methods, jclass class)
{
    add_class(methods, class, false);
}

void interpreted_methods_add_all(const struct interpreted_methods *methods, JNIEnv *jni,
                                 bool (*goes_on)(void))
{
    jclass *classes = NULL;
    jint count = 0;
    if ((*methods->jvmti)->GetLoadedClasses(methods->jvmti, &count, &classes))
        return;
    for (jint i = 0; i < count; i++) {
        if (goes_on())
            interpreted_methods_add(methods, classes[i]);
        (*jni)->DeleteLocalRef(jni, classes[i]);
    }
    give_back(methods->jvmti, classes);
}

/* ---- Redefined classes ---- */

bool interpreted_methods_add_redefined(const struct interpreted_methods *methods, JNIEnv *jni)
{
    const uint64_t *changed[LOOK_MOST];
    const size_t count = watched_methods_look(methods->watched, LOOK_MOST, changed);
    for (size_t i = 0; i < count; i++) {
        jclass class;
        if ((*methods->jvmti)
                ->GetMethodDeclaringClass(methods->jvmti, id_of_place(changed[i]), &class))
            continue;
        add_class(methods, class, false);
        (*jni)->DeleteLocalRef(jni, class);
    }
    return count > 0;
}

/* Log METHOD, which has CODES, of the class of ID, whose it is, or was. */
static void add_old(const struct interpreted_methods *methods, JNIEnv *jni, uint64_t method,
                    struct vm_bytecodes codes, jmethodID id, bool has_lines)
{
    jvmtiEnv *jvmti = methods->jvmti;
    jclass class = NULL;
    char *signature = NULL;
    if ((*jvmti)->GetMethodDeclaringClass(jvmti, id, &class) == JVMTI_ERROR_NONE &&
        (*jvmti)->GetClassSignature(jvmti, class, &signature, NULL) == JVMTI_ERROR_NONE) {
        char *file = has_lines ? read_file(methods, class, signature) : NULL;
        add_method(methods, method, codes, id, signature, file);
        free(file);
    }
    give_back(jvmti, signature);
    if (class)
        (*jni)->DeleteLocalRef(jni, class);
}

static void add_if_obsolete(const struct interpreted_methods *methods, JNIEnv *jni, jmethodID id)
{
    jboolean is_obsolete = JNI_FALSE;
    if ((*methods->jvmti)->IsMethodObsolete(methods->jvmti, id, &is_obsolete) || !is_obsolete)
        return;
    const uint64_t method = method_of_id(id);
    const struct vm_bytecodes codes = old_method_bytecodes(methods->structs, method);
    if (codes.bytes)
        add_old(methods, jni, method, codes, id, true);
}

/* Those that have IDs of their own, and so their own lines. */
static void add_obsolete(const struct interpreted_methods *methods, JNIEnv *jni)
{
    jvmtiEnv *jvmti = methods->jvmti;
    jvmtiStackInfo *stacks = NULL;
    jint count = 0;
    if ((*jvmti)->GetAllStackTraces(jvmti, FRAMES_MOST, &stacks, &count))
        return;
    for (jint i = 0; i < count; i++) {
        for (jint frame = 0; frame < stacks[i].frame_count; frame++)
            add_if_obsolete(methods, jni, stacks[i].frame_buffer[frame].method);
        (*jni)->DeleteLocalRef(jni, stacks[i].thread);
    }
    give_back(jvmti, stacks);
}

bool interpreted_methods_add_old(const struct interpreted_methods *methods, JNIEnv *jni,
                                 bool (*goes_on)(void))
{
    struct old_methods old = {0};
    old_methods_find(methods->structs, &old, goes_on);
    for (size_t i = 0; i < old.count; i++)
        add_old(methods, jni, old.items[i].method, old.items[i].codes,
                id_of_place(old.items[i].place), old.items[i].same_code);
    const bool again = old.again;
    old_methods_free(&old);
    add_obsolete(methods, jni);
    return !again;
}
