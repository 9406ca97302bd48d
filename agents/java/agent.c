/* The agent for JVMs: it tells libjitdump of the code that HotSpot compiles.
 *
 *     java -agentpath:LIBDIR/perfjit/libperfjit-java.so App       from the start
 *     perfjit attach PID, or jcmd PID JVMTI.agent_load LIBRARY    while it runs
 *
 * Events come from any thread, several at once.  No lock is held while JVMTI is called: it may wait
 * for a safepoint.  Events are off while there is no dump. */
#include "agents/java/agent_options.h"
#include "agents/java/code_table.h"
#include "agents/java/frame_tables.h"
#include "agents/java/inline_rows.h"
#include "agents/java/interpreted_methods.h"
#include "agents/java/java_method.h"
#include "agents/java/method_text.h"
#include "agents/java/untold_code.h"
#include "agents/java/vm_structs.h"
#include "jitdump/format/jitdump_format.h"
#include "jitdump/interpreted.h"
#include "jitdump/jitdump.h"

#include <dlfcn.h>
#include <jvmti.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Asked for by another process, which waits for it. */
enum { POLL_MS = 50, END_MS = 1000, FINISH_MS = 500 };

/* A walk through the code heaps finds code that ran before: readers let it have run for a second.
 * With many methods there, walks are fewer, and take that part of a processor. */
enum { WALK_MS = 200, WALK_PART = 500 };

/* A class that is being redefined is so for some ms. */
enum { OLD_LOOKS = 10 };

#define NS_OF_MS UINT64_C(1000000)

static struct agent {
    JavaVM *vm;
    jvmtiEnv *jvmti; /* NULL: the agent is not loaded */
    struct jitdump *dump;
    struct agent_options options;
    struct vm_structs structs;
    pthread_mutex_t lock;
    struct code_table table; /* under LOCK, as this: */
    unsigned closed_dumps;
    struct untold_code untold;
    uint64_t next_walk_ns; /* the agent's thread's */
    atomic_bool logs;      /* events are on */
    atomic_bool ends;
    atomic_uint inside; /* calls that may use DUMP */
    /* Of the interpreter: its code, once an event has said so, and its frames.  What is not known
     * in the JVM's first moments is added by the agent's thread. */
    _Atomic uint64_t interpreter, interpreter_bytes;
    struct interpreter_layout layout;
    struct watched_methods watched;
    atomic_bool interprets;          /* the layout is known */
    bool is_measured, wants_methods; /* the agent's thread's, as this: */
    unsigned old_looks;              /* for old methods, that are left */
    bool expects_redefined;          /* the event is on */
} agent = {.lock = PTHREAD_MUTEX_INITIALIZER,
           .untold.lock = PTHREAD_MUTEX_INITIALIZER,
           .watched.lock = PTHREAD_MUTEX_INITIALIZER};

/* Every use of the dump stands between these: it is closed when nobody is inside. */
static bool begin_use(void)
{
    atomic_fetch_add(&agent.inside, 1);
    if (!atomic_load(&agent.ends))
        return true;
    atomic_fetch_sub(&agent.inside, 1);
    return false;
}

static void end_use(void)
{
    atomic_fetch_sub(&agent.inside, 1);
}

static void wait_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ---- Code ---- */

/* The name of a native method's wrapper.  All of MethodHandle.linkToStatic and its like have one
 * jmethodID, so JVMTI has one signature for all of them; to be freed. */
static char *name_of_wrapper(const struct java_method *method, const struct vm_code *code)
{
    char *name, *signature, *text;
    if (!vm_method_texts(&agent.structs, code->method, &name, &signature))
        return strdup(method->name);
    text = method_text(method->class_signature, name, signature, agent.options.short_names);
    free(name);
    free(signature);
    return text ? text : strdup(method->name);
}

/* A method's name, with the tier behind it that made this code of it; to be freed. */
static char *name_of_code(const struct java_method *method, const struct vm_code *code)
{
    char *name;
    if (!method)
        return strdup("?");
    if (!code->tier)
        return name_of_wrapper(method, code);
    return asprintf(&name, "%s [tier%d]", method->name, code->tier) < 0 ? NULL : name;
}

/* The unwind tables of CODE, whose BYTES were copied, into *UNWIND, and where its frame is made and
 * left.  False: its frame is not known. */
static bool make_tables(struct jitdump_cfi *cfi, const struct vm_code *code, const uint8_t *bytes,
                        bool keeps_rbp, struct frame_edges *edges, struct jitdump_unwind *unwind)
{
    struct compiled_frame frame = {.code = bytes,
                                   .size = code->end - code->begin,
                                   .frame_bytes = code->frame_bytes,
                                   .keeps_rbp = keeps_rbp};
    const uint64_t normal = code->verified_entry - code->begin, osr = code->osr_entry - code->begin;
    if (JITDUMP_HOST_ARCH != JITDUMP_X86_64)
        return false;
    if ((code->verified_entry && normal < frame.size) || !code->is_compiled)
        frame.entries[frame.entry_count++] = code->is_compiled ? normal : 0;
    if (code->osr_entry && osr < frame.size && (!frame.entry_count || osr > normal))
        frame.entries[frame.entry_count++] = osr;
    return frame_tables_make(cfi, &frame, edges, unwind);
}

static unsigned closed_dumps(void)
{
    pthread_mutex_lock(&agent.lock);
    const unsigned count = agent.closed_dumps;
    pthread_mutex_unlock(&agent.lock);
    return count;
}

/* KNOWN was logged when CLOSED dumps had been closed.  The next dump has none of it.  Without
 * memory it is never unloaded, only replaced. */
static void keep_known(const struct known_code *known, unsigned closed)
{
    pthread_mutex_lock(&agent.lock);
    if (agent.closed_dumps == closed)
        code_table_put(&agent.table, known);
    pthread_mutex_unlock(&agent.lock);
}

static void forget_known(void)
{
    pthread_mutex_lock(&agent.lock);
    agent.closed_dumps++;
    code_table_free(&agent.table);
    pthread_mutex_unlock(&agent.lock);
}

static void log_code(const struct vm_code *code, uint64_t key, const char *name,
                     struct inline_rows *rows)
{
    const unsigned closed = closed_dumps();
    struct jitdump_code added = JITDUMP_CODE_INIT;
    added.name = name;
    added.code_addr = code->begin;
    added.code_size = code->end - code->begin;
    added.bytes = (const void *)(uintptr_t)code->begin;
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_HOST_ARCH);
    struct jitdump_unwind unwind;
    struct frame_edges edges = {0};
    uint8_t *copy =
        malloc(added.code_size); /* other threads patch it, and the tables are of this */
    if (copy) {
        added.bytes = memcpy(copy, added.bytes, added.code_size);
        const bool has_calls = rows->inline_count > 0; /* its frame's edges are in none of them */
        if ((has_calls || !agent.options.no_frames) &&
            make_tables(cfi, code, copy, code->is_compiled && code->tier == 0,
                        has_calls ? &edges : NULL, &unwind)) {
            added.unwind = agent.options.no_frames ? NULL : &unwind;
            if (has_calls)
                code_rows_set_own(&rows->rows, rows->inlines, &edges, code->begin, code->end);
        }
    }
    added.lines = rows->rows.lines;
    added.line_count = rows->rows.count;
    added.inlines = rows->inlines;
    added.inline_count = rows->inline_count;
    added.line_inlines = rows->inline_count ? rows->rows.inlines : NULL;
    struct known_code known = {.key = key,
                               .addr = added.code_addr,
                               .bytes = added.code_size,
                               .compile_id = code->compile_id};
    jitdump_add_code(agent.dump, &added, &known.code_index);
    jitdump_cfi_free(cfi);
    free(edges.items);
    free(copy);
    if (known.code_index != JITDUMP_NO_CODE)
        keep_known(&known, closed);
}

static void log_method(jvmtiEnv *jvmti, jmethodID id, const struct vm_code *code, uint64_t key,
                       uint64_t size, const void *info)
{
    struct java_methods methods = {.jvmti = jvmti,
                                   .short_names = agent.options.short_names,
                                   .no_lines = agent.options.no_lines};
    struct inline_rows rows = {0};
    (*agent.vm)->GetEnv(agent.vm, (void **)&methods.jni, JNI_VERSION_1_6);
    char *name = name_of_code(java_method_of(&methods, id), code);
    if (!agent.options.no_lines &&
        !inline_rows_read(&rows, &methods, info, code->begin, key + size))
        inline_rows_free(&rows);
    log_code(code, key, name, &rows);
    free(name);
    inline_rows_free(&rows);
    java_methods_free(&methods);
}

/* A method has two events where one of them was asked for. */
static bool is_logged(uint64_t key, uint64_t compile_id)
{
    pthread_mutex_lock(&agent.lock);
    const bool has = code_table_has(&agent.table, key, compile_id);
    pthread_mutex_unlock(&agent.lock);
    return has;
}

static void JNICALL on_load(jvmtiEnv *jvmti, jmethodID id, jint size, const void *addr,
                            jint map_length, const jvmtiAddrLocationMap *map, const void *info)
{
    (void)map_length;
    (void)map; /* INFO has the same, and inlined calls */
    if (!begin_use())
        return;
    const uint64_t key = (uint64_t)(uintptr_t)addr;
    struct vm_code code;
    if (jitdump_is_on(agent.dump)) {
        if (!vm_code_find(&agent.structs, key, &code) || !code.is_compiled)
            code = (struct vm_code){.begin = key, .end = key + (uint64_t)size};
        if (!is_logged(key, code.compile_id))
            log_method(jvmti, id, &code, key, (uint64_t)size, info);
    }
    end_use();
}

static void JNICALL on_unload(jvmtiEnv *jvmti, jmethodID id, const void *addr)
{
    struct known_code known;
    (void)jvmti;
    (void)id; /* it may not be asked for any more */
    if (!begin_use())
        return;
    pthread_mutex_lock(&agent.lock);
    bool found = code_table_take(&agent.table, (uint64_t)(uintptr_t)addr, &known);
    pthread_mutex_unlock(&agent.lock);
    if (found)
        jitdump_unload_code(agent.dump, known.code_index, known.addr, known.bytes);
    end_use();
}

/* The unwind tables of the stub called NAME at ADDR into *UNWIND.  False: its frame is not known.
 */
static bool make_stub_tables(struct jitdump_cfi *cfi, const char *name, uint64_t addr,
                             uint64_t bytes, struct jitdump_unwind *unwind)
{
    struct vm_code code;
    const bool interprets = strcmp(name, "Interpreter") == 0;
    if (agent.options.no_frames || JITDUMP_HOST_ARCH != JITDUMP_X86_64)
        return false;
    if (interprets || strcmp(name, "call_stub") == 0)
        return frame_tables_of_rbp(cfi, bytes, interprets ? agent.structs.sender_sp_words : 0,
                                   unwind);
    const uint8_t *stub = (const uint8_t *)(uintptr_t)addr;
    if (!vm_code_find(&agent.structs, addr, &code) || code.begin != addr ||
        code.end - addr != bytes)
        return false;
    if (make_tables(cfi, &code, stub, false, NULL, unwind))
        return true;
    jitdump_cfi_reset(cfi);
    return make_tables(cfi, &code, stub, true, NULL,
                       unwind); /* C1's stubs save registers below rbp */
}

/* "I2C/C2I adapters(0xbbeb)" has the shape of its arguments: as in the perf map, it stays out. */
static char *without_shape(const char *name)
{
    const char *shape = strstr(name, "(0x");
    return strndup(name, shape ? (size_t)(shape - name) : strlen(name));
}

/* Code is not freed that the interpreter is in. */
static void note_interpreter(const char *name, uint64_t addr, uint64_t bytes)
{
    if (strcmp(name, "Interpreter") != 0)
        return;
    atomic_store(&agent.interpreter, addr);
    atomic_store(&agent.interpreter_bytes, bytes);
}

/* The interpreter, stubs, adapters. */
static void JNICALL on_dynamic_code(jvmtiEnv *jvmti, const char *name, const void *addr, jint size)
{
    (void)jvmti;
    struct jitdump_code added = JITDUMP_CODE_INIT;
    struct jitdump_unwind unwind;
    if (size <= 0 || !begin_use())
        return;
    note_interpreter(name, (uint64_t)(uintptr_t)addr, (uint64_t)size);
    untold_code_note(&agent.untold, (uint64_t)(uintptr_t)addr,
                     (uint64_t)(uintptr_t)addr + (uint64_t)size);
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_HOST_ARCH);
    char *text = without_shape(name);
    added.name = text ? text : name;
    added.code_addr = (uint64_t)(uintptr_t)addr;
    added.code_size = (uint64_t)size;
    added.bytes = addr;
    if (make_stub_tables(cfi, name, added.code_addr, added.code_size, &unwind))
        added.unwind = &unwind;
    jitdump_add_code(agent.dump, &added, NULL);
    jitdump_cfi_free(cfi);
    free(text);
    end_use();
}

/* ---- Interpreted methods ---- */

/* While the JVM ends the agent has some time left. */
static bool goes_on(void)
{
    static uint64_t end_ns; /* the agent's thread's */
    if (!atomic_load(&agent.ends))
        return true;
    const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    end_ns = end_ns ? end_ns : now_ns + FINISH_MS * NS_OF_MS;
    return now_ns < end_ns;
}

static struct interpreted_methods methods_to_log(void)
{
    return (struct interpreted_methods){.jvmti = agent.jvmti,
                                        .dump = agent.dump,
                                        .structs = &agent.structs,
                                        .watched = &agent.watched,
                                        .short_names = agent.options.short_names,
                                        .no_lines = agent.options.no_lines};
}

/* Log methods of CLASS, in an event, by ADD. */
static void log_class(jclass class, void (*add)(const struct interpreted_methods *, jclass))
{
    if (!atomic_load(&agent.interprets) || !begin_use())
        return;
    const struct interpreted_methods methods = methods_to_log();
    if (jitdump_is_on(agent.dump))
        add(&methods, class);
    end_use();
}

/* Before its code first runs. */
static void JNICALL on_class(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jclass class)
{
    (void)jvmti;
    (void)jni;
    (void)thread;
    log_class(class, interpreted_methods_add);
}

/* rbp and r13 are HotSpot's frame pointer and bytecode pointer on x86-64.  Readers look at the
 * latter only for what lies in the method's bytecodes. */
static void log_interpreter(void)
{
    enum { RBP = 6, R13 = 13 };
    const struct jitdump_interpreter interpreter = {.code_addr = atomic_load(&agent.interpreter),
                                                    .code_size =
                                                        atomic_load(&agent.interpreter_bytes),
                                                    .frame_register = RBP,
                                                    .function_offset = agent.layout.method_offset,
                                                    .position_offset = agent.layout.position_offset,
                                                    .position_register = R13};
    jd_add_interpreter(agent.dump, &interpreter);
}

/* A class may be redefined more often than the agent's thread gets a processor.  When that begins,
 * the methods that it had up to then are still there. */
static void JNICALL on_class_file(jvmtiEnv *jvmti, JNIEnv *jni, jclass redefined, jobject loader,
                                  const char *name, jobject domain, jint size,
                                  const unsigned char *bytes, jint *new_size,
                                  unsigned char **new_bytes)
{
    (void)jvmti;
    (void)jni;
    (void)loader;
    (void)name;
    (void)domain;
    (void)size;
    (void)bytes;
    (void)new_size;
    (void)new_bytes;
    if (redefined)
        log_class(redefined, interpreted_methods_add_again);
}

/* The event comes for each class that is loaded, too, so it is on only where classes have been
 * redefined, or may well be. */
static void expect_redefined(void)
{
    const jvmtiCapabilities wanted = {.can_generate_all_class_hook_events = 1,
                                      .can_retransform_classes = 1}; /* else it is not told */
    agent.expects_redefined = true;
    if ((*agent.jvmti)->AddCapabilities(agent.jvmti, &wanted) == JVMTI_ERROR_NONE)
        (*agent.jvmti)
            ->SetEventNotificationMode(agent.jvmti, JVMTI_ENABLE, JVMTI_EVENT_CLASS_FILE_LOAD_HOOK,
                                       NULL);
}

static bool has_redefiner(void)
{
    static const char *const libraries[] = {"libinstrument.so", "libjdwp.so"};
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
        if (library) {
            dlclose(library);
            return true;
        }
    }
    return false;
}

/* By the agent's thread, when events are on: a class that is prepared from then on is told of by
 * its event, and perhaps here as well. */
static void log_methods(JNIEnv *jni)
{
    const uint64_t code = atomic_load(&agent.interpreter);
    agent.wants_methods = false;
    if (agent.options.no_interpreted || JITDUMP_HOST_ARCH != JITDUMP_X86_64 || !code)
        return;
    if (!agent.is_measured) {
        agent.is_measured = true;
        atomic_store(&agent.interprets,
                     interpreter_frames_measure(&agent.layout, agent.jvmti, jni, &agent.structs,
                                                code, atomic_load(&agent.interpreter_bytes)));
    }
    if (!atomic_load(&agent.interprets))
        return;
    if (has_redefiner())
        expect_redefined();
    const struct interpreted_methods methods = methods_to_log();
    log_interpreter();
    interpreted_methods_add_all(&methods, jni, goes_on);
    agent.old_looks = OLD_LOOKS;
}

static void look_for_old(JNIEnv *jni)
{
    const struct interpreted_methods methods = methods_to_log();
    agent.old_looks--;
    if (interpreted_methods_add_old(&methods, jni, goes_on))
        agent.old_looks = 0;
}

static void look_for_redefined(JNIEnv *jni)
{
    if (!atomic_load(&agent.interprets) || !jitdump_is_on(agent.dump))
        return;
    const struct interpreted_methods methods = methods_to_log();
    if (interpreted_methods_add_redefined(&methods, jni) && !agent.expects_redefined)
        expect_redefined();
}

/* ---- Code without events ---- */

static void walk(void)
{
    const uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
    if (begin_ns < agent.next_walk_ns || !jitdump_is_on(agent.dump))
        return;
    const uint64_t used_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    untold_code_log(&agent.untold, &agent.structs, agent.dump, false);
    const uint64_t pause_ns = WALK_PART * (clock_ns(CLOCK_THREAD_CPUTIME_ID) - used_ns);
    agent.next_walk_ns = begin_ns + (pause_ns > WALK_MS * NS_OF_MS ? pause_ns : WALK_MS * NS_OF_MS);
}

/* ---- On and off ---- */

static void set_events(jvmtiEventMode mode)
{
    static const jvmtiEvent events[] = {
        JVMTI_EVENT_COMPILED_METHOD_UNLOAD, JVMTI_EVENT_COMPILED_METHOD_LOAD,
        JVMTI_EVENT_DYNAMIC_CODE_GENERATED, JVMTI_EVENT_CLASS_PREPARE};
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        (*agent.jvmti)->SetEventNotificationMode(agent.jvmti, mode, events[i], NULL);
    atomic_store(&agent.logs, mode == JVMTI_ENABLE);
}

/* All code that is there: events first, then nothing is missed in between. */
static void emit_all(struct jitdump *dump, void *user)
{
    (void)dump;
    (void)user;
    set_events(JVMTI_ENABLE);
    (*agent.jvmti)->GenerateEvents(agent.jvmti, JVMTI_EVENT_DYNAMIC_CODE_GENERATED);
    (*agent.jvmti)->GenerateEvents(agent.jvmti, JVMTI_EVENT_COMPILED_METHOD_LOAD);
    agent.wants_methods = true;
}

static bool is_known(void *user, uint64_t key, uint64_t compile_id)
{
    (void)user;
    return code_table_has(&agent.table, key, compile_id);
}

/* HotSpot puts a method's event in a queue, and one thread goes through it.  So some may still be
 * in there when a dump ends, whose methods have run.  All are asked for again then, and those that
 * are in the dump passed over; in most cases there is nothing to ask for. */
static void log_queued(void)
{
    if (!jitdump_is_on(agent.dump) || !vm_methods_are_known(&agent.structs))
        return;
    pthread_mutex_lock(&agent.lock);
    const bool has_all = vm_methods_all(&agent.structs, is_known, NULL);
    pthread_mutex_unlock(&agent.lock);
    if (!has_all)
        (*agent.jvmti)->GenerateEvents(agent.jvmti, JVMTI_EVENT_COMPILED_METHOD_LOAD);
}

static void poll_dump(void)
{
    if (atomic_load(&agent.logs) && *jitdump_poll_word(agent.dump))
        log_queued(); /* it may be about to end */
    jitdump_poll(agent.dump, emit_all, NULL);
    if (!atomic_load(&agent.logs) || jitdump_is_on(agent.dump))
        return;
    set_events(JVMTI_DISABLE);
    (*agent.jvmti)
        ->SetEventNotificationMode(agent.jvmti, JVMTI_DISABLE, JVMTI_EVENT_CLASS_FILE_LOAD_HOOK,
                                   NULL);
    agent.expects_redefined = false;
    agent.old_looks = 0;
    forget_known();
    untold_code_free(&agent.untold);
    watched_methods_free(&agent.watched);
}

/* The agent's thread: nothing else in a JVM runs now and then. */
static void JNICALL serve(jvmtiEnv *jvmti, JNIEnv *jni, void *user)
{
    (void)jvmti;
    (void)user;
    while (begin_use()) {
        poll_dump();
        walk();
        if (agent.wants_methods)
            log_methods(jni);
        if (agent.old_looks)
            look_for_old(jni);
        look_for_redefined(jni);
        end_use();
        wait_ms(POLL_MS);
    }
}

static void start_thread(JNIEnv *jni)
{
    jclass class = (*jni)->FindClass(jni, "java/lang/Thread");
    jmethodID init =
        class ? (*jni)->GetMethodID(jni, class, "<init>", "(Ljava/lang/String;)V") : NULL;
    jstring name = init ? (*jni)->NewStringUTF(jni, "perfjit") : NULL;
    jobject thread = name ? (*jni)->NewObject(jni, class, init, name) : NULL;
    if (!thread ||
        (*agent.jvmti)->RunAgentThread(agent.jvmti, thread, serve, NULL, JVMTI_THREAD_MIN_PRIORITY))
        fprintf(stderr, "perfjit: the agent has no thread: it can't be asked for a dump\n");
    if ((*jni)->ExceptionCheck(jni))
        (*jni)->ExceptionClear(jni);
}

static void JNICALL on_start(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread)
{
    (void)jvmti;
    (void)thread;
    start_thread(jni);
}

/* Other threads may be in the middle of an event.  One that does not come out leaves the dump as it
 * would be after a kill: whole, up to the last record. */
static void JNICALL on_end(jvmtiEnv *jvmti, JNIEnv *jni)
{
    (void)jvmti;
    if (begin_use()) {
        log_queued();
        end_use();
    }
    if (atomic_exchange(&agent.ends, true))
        return;
    for (long ms = 0; atomic_load(&agent.inside) && ms < END_MS; ms++)
        wait_ms(1);
    if (atomic_load(&agent.inside))
        return;
    if (jitdump_is_on(agent.dump)) {
        look_for_redefined(jni); /* nothing else tells of classes redefined since the last look */
        untold_code_log(&agent.untold, &agent.structs, agent.dump, true);
    }
    jitdump_close(agent.dump);
}

/* ---- Loading ---- */

static bool take_jvmti(JavaVM *vm)
{
    jvmtiCapabilities wanted = {.can_generate_compiled_method_load_events = 1,
                                .can_get_source_file_name = 1,
                                .can_get_line_numbers = 1};
    const jvmtiEventCallbacks callbacks = {.VMInit = on_start,
                                           .VMDeath = on_end,
                                           .CompiledMethodLoad = on_load,
                                           .CompiledMethodUnload = on_unload,
                                           .DynamicCodeGenerated = on_dynamic_code,
                                           .ClassPrepare = on_class,
                                           .ClassFileLoadHook = on_class_file};
    jvmtiEnv *jvmti;
    if ((*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_1_2) != JNI_OK)
        return false;
    if ((*jvmti)->AddCapabilities(jvmti, &wanted) ||
        (*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof callbacks)) {
        (*jvmti)->DisposeEnvironment(jvmti);
        return false;
    }
    agent.vm = vm;
    agent.jvmti = jvmti;
    vm_structs_read(&agent.structs, (const void *)(uintptr_t)(*vm)->GetEnv);
    (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_VM_INIT, NULL);
    (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_VM_DEATH, NULL);
    return true;
}

static void open_dump(void)
{
    struct jitdump_options options = JITDUMP_OPTIONS_INIT;
    options.dir = agent.options.dir;
    options.flags = JITDUMP_ATTACHABLE | (agent.options.attach ? 0 : JITDUMP_ALWAYS);
    if (jitdump_open(&agent.dump, &options) == 0)
        return;
    fprintf(stderr, "perfjit: %s\n", jitdump_error(agent.dump));
    jitdump_close(agent.dump);
    agent.dump = NULL;
}

/* The program runs in any case: a profile is not worth its failure. */
static bool load(JavaVM *vm, const char *text)
{
    const char *wrong = agent_options_read(&agent.options, text);
    if (wrong)
        fprintf(stderr, "perfjit: %s is no option of libperfjit-java.so\n", wrong);
    if (!take_jvmti(vm)) {
        fprintf(stderr, "perfjit: this JVM does not tell agents of compiled methods\n");
        agent_options_free(&agent.options); /* it may be loaded again */
        return false;
    }
    open_dump();
    return agent.dump != NULL;
}

static bool is_live(JavaVM *vm)
{
    jvmtiEnv *jvmti;
    jvmtiPhase phase;
    if ((*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_1_2) != JNI_OK)
        return false;
    const bool live =
        (*jvmti)->GetPhase(jvmti, &phase) == JVMTI_ERROR_NONE && phase == JVMTI_PHASE_LIVE;
    (*jvmti)->DisposeEnvironment(jvmti);
    return live;
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
    (void)reserved;
    if (!agent.jvmti && load(vm, options) && jitdump_is_on(agent.dump)) {
        set_events(JVMTI_ENABLE);
        agent.wants_methods = true;
    }
    return JNI_OK;
}

/* An error where it can be tried again: the JVM is about to start, or had no room for a dump. */
JNIEXPORT jint JNICALL Agent_OnAttach(JavaVM *vm, char *options, void *reserved)
{
    JNIEnv *jni;
    (void)reserved;
    if (agent.jvmti)
        return agent.dump ? JNI_OK : JNI_ERR;
    if (!is_live(vm) || (*vm)->GetEnv(vm, (void **)&jni, JNI_VERSION_1_6) != JNI_OK ||
        !load(vm, options))
        return JNI_ERR;
    if (jitdump_is_on(agent.dump) && begin_use()) {
        emit_all(agent.dump, NULL);
        end_use();
    }
    start_thread(jni);
    return JNI_OK;
}
