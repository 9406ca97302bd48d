/* Interpreted functions as frames (trampoline.h): what is passed on, memory, forks, threads, dumps
 * that come and go, and what goes wrong. */
#include "jitdump/handle/handle.h"
#include "jitdump/trampoline/stub_arena.h"
#include "jitunwind/jitunwind.h"
#include "tests/producers/trampoline_calls.h"
#include "tests/unit/attach_asker.h"
#include "tests/unit/refused_call.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ucontext.h>

static int answer(int number)
{
    return number + 42;
}

typedef int answer_function(int);

static answer_function *make(struct jitdump *dump, const char *name)
{
    return (answer_function *)jitdump_trampoline(dump, name, "program.src", 7,
                                                 (jitdump_entry *)answer);
}

static answer_function *made(struct jitdump *dump, const char *name)
{
    answer_function *call = make(dump, name);
    CHECK(call != answer && call(1) == 43);
    return call;
}

static uint64_t address(answer_function *call)
{
    return (uint64_t)(uintptr_t)call;
}

/* In the body, and in the stage of a dump that is not closed. */
static size_t records_in(const char *body_path, uint32_t id)
{
    char stage_path[160];
    stage_path_of(stage_path, body_path);
    return count_records(body_path, id) +
           (access(stage_path, F_OK) == 0 ? count_records(stage_path, id) : 0);
}

/* ---- Where there is none ---- */

static void test_off_it_is_the_entry_itself(void **state)
{
    struct jitdump *dump = open_attachable();
    struct jitdump_trampoline_code code;
    (void)state;
    assert_ptr_equal(make(NULL, "f"), answer);
    assert_ptr_equal(make(dump, "f"), answer);
    assert_int_equal(jitdump_lost(dump), 0);
    assert_int_equal(jitdump_trampoline_describe(dump, (jitdump_entry *)answer, &code), -ENOENT);
    assert_int_equal(jitdump_trampoline_free(dump, (jitdump_entry *)answer), 0);
    assert_int_equal(jitdump_trampolines_free(dump), 0);
    assert_int_equal(jitdump_trampolines_free(NULL), 0);
    assert_int_equal(jitdump_trampoline_free(NULL, NULL), 0);
    assert_int_equal(jitdump_close(dump), 0);
}

static void test_of_a_dump_that_could_not_be_opened(void **state)
{
    struct jitdump_options options = options_in_dir();
    struct jitdump *dump;
    (void)state;
    options.dir = "/nonexistent";
    assert_int_not_equal(jitdump_open(&dump, &options), 0);
    assert_ptr_equal(make(dump, "f"), answer);
    assert_int_equal(jitdump_lost(dump), 1);
    jitdump_close(dump);
}

static void test_code_of_another_machine(void **state)
{
    struct jitdump_options options = options_in_dir();
    struct jitdump *dump;
    (void)state;
    options.elf_mach = 243;
    assert_int_equal(jitdump_open(&dump, &options), 0);
    assert_ptr_equal(make(dump, "f"), answer);
    assert_int_equal(jitdump_lost(dump), 1);
    assert_non_null(strstr(jitdump_error(dump), "x86-64 and aarch64"));
    assert_int_equal(jitdump_close(dump), -ENOTSUP);
}

static void test_no_entry(void **state)
{
    struct jitdump *dump = open_dump();
    (void)state;
    assert_null(jitdump_trampoline(dump, "f", NULL, 0, NULL));
    assert_int_equal(jitdump_lost(dump), 1);
    assert_int_equal(jitdump_close(dump), -EINVAL);
}

/* ---- What is passed on, and recorded ---- */

static void test_arguments_and_results(void **state)
{
    struct jitdump *dump = open_dump();
    (void)state;
    errno = 4711;
    const char *wrong = trampoline_calls(dump);
    assert_int_equal(errno, 4711);
    if (wrong)
        fail_msg("%s", wrong);
    assert_int_equal(records_in(path, JIT_CODE_LOAD), CALL_KINDS);
    assert_int_equal(jitdump_trampolines_free(dump), 0);
    assert_int_equal(jitdump_close(dump), 0);
    assert_int_equal(records_in(path, JIT_CODE_UNLOAD), CALL_KINDS);
}

static sigjmp_buf landing;

static void jump(int number)
{
    siglongjmp(landing, number);
}

/* It is the handler itself. */
static void test_a_longjmp_passes_out_of_a_handler(void **state)
{
    struct jitdump *dump = open_dump();
    jitdump_entry *call = jitdump_trampoline(dump, "jump", NULL, 0, (jitdump_entry *)jump);
    struct sigaction action = {.sa_handler = (void (*)(int))call};
    (void)state;
    assert_ptr_not_equal(call, (jitdump_entry *)jump);
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    int landed = sigsetjmp(landing, 1);
    if (landed == 0)
        raise(SIGUSR1);
    assert_int_equal(landed, SIGUSR1);
    assert_int_equal(jitdump_trampoline_free(dump, call), 0);
    assert_int_equal(jitdump_close(dump), 0);
}

/* The one LOAD that has NAME: where its code is. */
static uint64_t loaded_at(const char *file_path, const char *name)
{
    struct dump_bytes dump = read_dump(file_path);
    struct record record;
    uint64_t addr = 0;
    size_t offset = JITHEADER_BYTES;
    while (next_record(&dump, &offset, &record)) {
        if (record.id != JIT_CODE_LOAD)
            continue;
        cursor_skip(&record.body, 16);
        uint64_t at = cursor_u64(&record.body);
        cursor_skip(&record.body, 16);
        if (strcmp(cursor_cstr(&record.body), name) == 0)
            addr = at;
    }
    free(dump.data);
    return addr;
}

static void test_what_is_recorded(void **state)
{
    struct jitdump *dump = open_dump();
    char name[] = "a name", file[] = "a file";
    (void)state;
    jitdump_entry *call = jitdump_trampoline(dump, name, file, 7, (jitdump_entry *)answer);
    memset(name, 'x', 6), memset(file, 'x', 6);
    struct jitdump_trampoline_code code;
    assert_int_equal(jitdump_trampoline_describe(dump, call, &code), 0);
    assert_string_equal(code.name, "a name");
    assert_true(code.code_addr == (uint64_t)(uintptr_t)call);
    assert_true(code.arena_addr <= code.code_addr &&
                code.code_addr + code.code_size <= code.arena_addr + code.arena_bytes);
    assert_int_equal(
        jitdump_trampoline_describe(dump, (jitdump_entry *)((uintptr_t)call + 1), &code), -ENOENT);
    assert_null(code.name);
    jitdump_trampoline(dump, NULL, NULL, 7, (jitdump_entry *)answer);
    assert_int_equal(records_in(path, JIT_CODE_LOAD), 2);
    assert_int_equal(records_in(path, JIT_CODE_UNWINDING_INFO), 2);
    assert_int_equal(records_in(path, JIT_CODE_DEBUG_INFO), 1); /* the second has no file */
    assert_int_equal(jitdump_close(dump), 0);
    assert_true(loaded_at(path, "a name") == (uint64_t)(uintptr_t)call);
    assert_true(loaded_at(path, "") != 0);
}

/* A program with an earlier header, and one with a later. */
static void test_descriptions_of_other_sizes(void **state)
{
    struct jitdump *dump = open_dump();
    jitdump_entry *call = (jitdump_entry *)made(dump, "f");
    const size_t earlier_bytes = offsetof(struct jitdump_trampoline_code, eh_frame);
    struct jitdump_trampoline_code whole, earlier, untouched;
    struct {
        struct jitdump_trampoline_code code;
        uint64_t newer;
    } later;
    (void)state;
    memset(&earlier, 0xa5, sizeof earlier);
    memset(&untouched, 0xa5, sizeof untouched);
    memset(&later, 0xa5, sizeof later);
    assert_int_equal(jitdump_trampoline_describe(dump, call, &whole), 0);
    assert_int_equal(jitdump_trampoline_describe_sized(dump, call, &earlier, earlier_bytes), 0);
    assert_memory_equal(&earlier, &whole, earlier_bytes);
    assert_memory_equal((char *)&earlier + earlier_bytes, (char *)&untouched + earlier_bytes,
                        sizeof earlier - earlier_bytes);
    assert_int_equal(jitdump_trampoline_describe_sized(dump, call, &later.code, sizeof later), 0);
    assert_memory_equal(&later.code, &whole, sizeof whole);
    assert_int_equal(later.newer, 0);
    assert_int_equal(jitdump_close(dump), 0);
}

#if defined(__x86_64__)

/* ---- Its frame, at each of its instructions ---- */

static struct {
    uint64_t code_addr, code_bytes;
    uint64_t return_addr, cfa, callers_caller; /* as at the first instruction */
    unsigned offsets[32];                      /* how often each was seen */
    bool wrong;
} stepped;

static void take_step(int number, siginfo_t *info, void *ucontext)
{
    const ucontext_t *context = ucontext;
    const uint64_t ip = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
    const uint64_t sp = (uint64_t)context->uc_mcontext.gregs[REG_RSP];
    struct jitunwind_frame frames[8];
    (void)number, (void)info;
    if (ip - stepped.code_addr >= stepped.code_bytes)
        return;
    size_t count = jitunwind_backtrace(context, frames, 8, 0);
    if (ip == stepped.code_addr) {
        memcpy(&stepped.return_addr, (const void *)(uintptr_t)sp, 8);
        stepped.cfa = sp + 8;
        stepped.callers_caller = count > 2 ? frames[2].ip : 0;
    }
    stepped.offsets[ip - stepped.code_addr]++;
    stepped.wrong |= count < 3 || frames[1].ip != stepped.return_addr ||
                     frames[1].sp != stepped.cfa || frames[1].how != JITUNWIND_RULES ||
                     frames[2].ip != stepped.callers_caller;
}

__attribute__((noinline)) static int call_stepping(answer_function *call)
{
    enum { TRAP_FLAG = 0x100 };
    const uint64_t flags = __builtin_ia32_readeflags_u64();
    __builtin_ia32_writeeflags_u64(flags | TRAP_FLAG);
    int result = call(1);
    __builtin_ia32_writeeflags_u64(flags);
    return result;
}

static struct jitunwind *unwinder_of(const struct jitdump_trampoline_code *is)
{
    struct jitunwind_options options = JITUNWIND_OPTIONS_INIT;
    struct jitunwind_code code = JITUNWIND_CODE_INIT;
    struct jitunwind *unwinder;
    options.start = is->arena_addr;
    options.bytes = is->arena_bytes;
    assert_int_equal(jitunwind_open(&unwinder, &options), 0);
    code.addr = is->code_addr;
    code.bytes = is->code_size;
    code.eh_frame = is->eh_frame;
    code.eh_frame_bytes = is->eh_frame_bytes;
    code.name = is->name;
    assert_int_equal(jitunwind_add(unwinder, &code), 0);
    return unwinder;
}

static void test_its_frame_at_each_instruction(void **state)
{
    struct jitdump *dump = open_dump();
    struct sigaction action = {.sa_sigaction = take_step, .sa_flags = SA_SIGINFO}, before;
    struct jitdump_trampoline_code code;
    (void)state;
    answer_function *call = made(dump, "stepped");
    assert_int_equal(jitdump_trampoline_describe(dump, (jitdump_entry *)call, &code), 0);
    struct jitunwind *unwinder = unwinder_of(&code);
    stepped.code_addr = code.code_addr;
    stepped.code_bytes = code.code_size;
    sigaction(SIGTRAP, &action, &before);
    assert_int_equal(call_stepping(call), 43);
    sigaction(SIGTRAP, &before, NULL);
    assert_false(stepped.wrong);
    static const unsigned instructions[] = {0, 4, 5, 8, 14, 15};
    unsigned steps = 0;
    for (size_t i = 0; i < sizeof stepped.offsets / sizeof stepped.offsets[0]; i++)
        steps += stepped.offsets[i];
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(stepped.offsets[instructions[i]], 1);
    assert_int_equal(steps, 6);
    jitunwind_close(unwinder);
    jitdump_close(dump);
}

#endif

/* ---- Memory ---- */

struct mappings {
    size_t writable_and_executable, here, pages;
    char of_call[8];
};

/* What the process has mapped: at CALL, and in the ARENA_BYTES from ARENA_ADDR. */
static struct mappings mappings_of(uint64_t call, uint64_t arena_addr, uint64_t arena_bytes)
{
    struct mappings found = {0};
    char line[512], may[8];
    unsigned long start, end;
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps != NULL);
    while (fgets(line, sizeof line, maps)) {
        CHECK(sscanf(line, "%lx-%lx %7s", &start, &end, may) == 3);
        found.writable_and_executable += may[1] == 'w' && may[2] == 'x';
        found.here += start < arena_addr + arena_bytes && end > arena_addr;
        if (call >= start && call < end)
            memcpy(found.of_call, may, sizeof may);
    }
    fclose(maps);
    return found;
}

static void test_no_page_is_writable_and_executable(void **state)
{
    struct jitdump *dump = open_dump();
    struct jitdump_trampoline_code code;
    (void)state;
    enum { MANY = 5000 };
    answer_function *call = NULL;
    size_t writable_and_executable = mappings_of(0, 0, 0).writable_and_executable;
    for (unsigned i = 0; i < MANY; i++) {
        call = made(dump, "one of many");
        if (i % 50 == 0) {
            struct mappings now = mappings_of(address(call), 0, 0);
            assert_int_equal(now.writable_and_executable, writable_and_executable);
            assert_string_equal(now.of_call, "r-xp");
        }
    }
    jitdump_trampoline_describe(dump, (jitdump_entry *)call, &code);
    /* Three chunks: code and words of each, of which the kernel may not put all pages together, and
     * what is not used yet. */
    struct mappings now = mappings_of(address(call), code.arena_addr, code.arena_bytes);
    assert_in_range(now.here, 5, 12);
    assert_int_equal(jitdump_trampolines_free(dump), 0);
    assert_string_equal(mappings_of(address(call), 0, 0).of_call, "");
    assert_int_equal(jitdump_close(dump), 0);
    assert_int_equal(records_in(path, JIT_CODE_LOAD), MANY);
    assert_int_equal(records_in(path, JIT_CODE_UNLOAD), MANY);
}

static void test_a_freed_one_is_used_again(void **state)
{
    struct jitdump *dump = open_dump();
    (void)state;
    answer_function *first = made(dump, "first"), *second = made(dump, "second");
    assert_int_equal(jitdump_trampoline_free(dump, (jitdump_entry *)first), 0);
    assert_int_equal(jitdump_trampoline_free(dump, (jitdump_entry *)first), 0); /* it is none */
    assert_int_equal(records_in(path, JIT_CODE_UNLOAD), 1);
    assert_ptr_equal(made(dump, "third"), first);
    assert_ptr_not_equal(made(dump, "fourth"), second);
    assert_int_equal(jitdump_trampolines_free(dump), 0);
    made(dump, "after all of them");
    assert_int_equal(jitdump_close(dump), 0);
    assert_int_equal(records_in(path, JIT_CODE_UNLOAD), 4);
}

static void test_they_outlive_the_dump(void **state)
{
    struct jitdump *dump = open_dump();
    (void)state;
    answer_function *call = made(dump, "f");
    assert_int_equal(jitdump_close(dump), 0);
    assert_int_equal(call(2), 44);
}

/* perf gives functions of the same bytes the same build-id. */
static void test_no_two_have_the_same_bytes(void **state)
{
    struct jitdump *dump = open_dump();
    struct jitdump_trampoline_code first, second;
    (void)state;
    answer_function *calls[2] = {made(dump, "f"), made(dump, "g")};
    jitdump_trampoline_describe(dump, (jitdump_entry *)calls[0], &first);
    jitdump_trampoline_describe(dump, (jitdump_entry *)calls[1], &second);
    assert_int_not_equal(memcmp((void *)(uintptr_t)first.code_addr,
                                (void *)(uintptr_t)second.code_addr, first.code_size),
                         0);
    jitdump_close(dump);
}

/* ---- Dumps that come and go ---- */

struct interpreter {
    answer_function *calls[3];
};

static void emit_functions(struct jitdump *dump, void *user)
{
    struct interpreter *interpreter = user;
    for (int i = 0; i < 3; i++)
        if (interpreter->calls[i] == answer)
            interpreter->calls[i] = make(dump, "f");
}

static void test_each_dump_that_is_asked_for_has_all(void **state)
{
    struct jitdump *dump = open_attachable();
    struct interpreter interpreter = {{answer, answer, answer}};
    char second[128];
    (void)state;
    ask(ATTACH_ON, dir);
    assert_int_equal(jitdump_poll(dump, emit_functions, &interpreter), 0);
    answer_function *first = interpreter.calls[0];
    assert_ptr_not_equal(first, answer);
    assert_int_equal(first(1), 43);
    assert_int_equal(records_in(path, JIT_CODE_LOAD), 3);

    ask(ATTACH_OFF, NULL);
    assert_int_equal(jitdump_poll(dump, emit_functions, &interpreter), 0);
    assert_int_equal(first(1), 43);
    assert_ptr_equal(make(dump, "off"), answer);
    assert_int_equal(jitdump_trampoline_free(dump, (jitdump_entry *)interpreter.calls[1]), 0);
    interpreter.calls[1] = answer;

    ask(ATTACH_ON, dir);
    assert_int_equal(jitdump_poll(dump, emit_functions, &interpreter), 0);
    assert_ptr_equal(interpreter.calls[0], first);
    numbered_path(second, 2);
    assert_int_equal(records_in(second, JIT_CODE_LOAD), 3);
    assert_int_equal(answer_of(getpid()).functions, 3);
    assert_int_equal(jitdump_trampolines_free(dump), 0);
    assert_int_equal(records_in(second, JIT_CODE_UNLOAD), 3);
    assert_int_equal(jitdump_lost(dump), 0);
    assert_int_equal(jitdump_close(dump), 0);
}

/* ---- Forks and threads ---- */

static answer_function *of_the_parent;

static void use_in_child(struct jitdump *dump)
{
    CHECK(of_the_parent(1) == 43);
    answer_function *call = made(dump, "of the child");
    CHECK(call != of_the_parent);
    CHECK(records_in(path, JIT_CODE_LOAD) == 1);
    CHECK(jitdump_trampolines_free(dump) == 0);
    CHECK(jitdump_close(dump) == 0);
    CHECK(records_in(path, JIT_CODE_UNLOAD) == 2);
}

static void test_a_child_has_them_and_frees_its_own(void **state)
{
    struct jitdump *dump = open_dump();
    (void)state;
    of_the_parent = made(dump, "of the parent");
    assert_int_equal(run_in_child(use_in_child, dump), 0);
    assert_int_equal(of_the_parent(1), 43);
    assert_int_equal(jitdump_trampolines_free(dump), 0);
    assert_int_equal(jitdump_close(dump), 0);
    assert_int_equal(records_in(path, JIT_CODE_LOAD), 1);
    assert_int_equal(records_in(path, JIT_CODE_UNLOAD), 1);
}

enum { MAKERS = 4, ROUNDS = 400, KEPT = 8 };

static void *make_and_free(void *argument)
{
    struct jitdump *dump = argument;
    answer_function *kept[KEPT] = {0};
    for (int i = 0; i < ROUNDS; i++) {
        answer_function **place = &kept[i % KEPT];
        if (*place)
            CHECK((*place)(i) == i + 42 &&
                  jitdump_trampoline_free(dump, (jitdump_entry *)*place) == 0);
        *place = made(dump, i % 3 ? "f" : "g");
    }
    return NULL;
}

/* glibc's malloc may be used in a child that is forked while other threads use it; ASan's waits for
 * them for ever. */
#if defined(__SANITIZE_ADDRESS__)
enum { FORKS = 0 };
#else
enum { FORKS = 5 };
#endif

/* Forked while others are in the middle of making some. */
static void make_in_child(struct jitdump *dump)
{
    for (int i = 0; i < 100; i++)
        made(dump, "of a child");
    CHECK(records_in(path, JIT_CODE_LOAD) == 100);
}

static void test_threads(void **state)
{
    struct jitdump *dump = open_dump();
    pthread_t threads[MAKERS];
    (void)state;
    for (int i = 0; i < MAKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, make_and_free, dump), 0);
    for (int i = 0; i < FORKS; i++)
        assert_int_equal(run_in_child(make_in_child, dump), 0);
    for (int i = 0; i < MAKERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(jitdump_lost(dump), 0);
    assert_int_equal(records_in(path, JIT_CODE_LOAD), MAKERS * ROUNDS);
    assert_int_equal(records_in(path, JIT_CODE_UNLOAD), MAKERS * (ROUNDS - KEPT));
    assert_int_equal(jitdump_trampolines_free(dump), 0);
    assert_int_equal(records_in(path, JIT_CODE_UNLOAD), MAKERS * ROUNDS);
    assert_int_equal(jitdump_close(dump), 0);
}

/* ---- A stopped thread ---- */

static sem_t is_stopped, may_go_on;

static void *stop_in_a_call(void *argument)
{
    struct stub_arena *arena = argument;
    CHECK(jd_stub_lock(arena) == 0);
    sem_post(&is_stopped);
    while (sem_wait(&may_go_on) != 0)
        ;
    jd_stub_unlock(arena);
    return NULL;
}

static pthread_t stop_a_thread(struct jitdump *dump)
{
    pthread_t thread;
    sem_init(&is_stopped, 0, 0);
    sem_init(&may_go_on, 0, 0);
    CHECK(pthread_create(&thread, NULL, stop_in_a_call, atomic_load(&dump->trampolines)) == 0);
    while (sem_wait(&is_stopped) != 0)
        ;
    return thread;
}

static void test_a_stopped_thread_is_in_the_way(void **state)
{
    static const struct jitdump_trampoline_code none;
    struct jitdump_trampoline_code code;
    struct jitdump *dump = open_dump();
    answer_function *call = made(dump, "f");
    jitdump_entry *entry = (jitdump_entry *)call;
    (void)state;
    const pthread_t thread = stop_a_thread(dump);
    errno = 4711;
    assert_ptr_equal(make(dump, "g"), answer);
    assert_int_equal(jitdump_lost(dump), 1);
    assert_non_null(strstr(jitdump_error(dump), "a stopped thread is in the way"));
    memset(&code, 0xa5, sizeof code);
    assert_int_equal(jitdump_trampoline_describe(dump, entry, &code), -EAGAIN);
    assert_memory_equal(&code, &none, sizeof code);
    assert_int_equal(jitdump_trampoline_free(dump, entry), -EAGAIN);
    assert_int_equal(jitdump_trampolines_free(dump), -EAGAIN);
    assert_int_equal(errno, 4711);
    assert_int_equal(records_in(path, JIT_CODE_UNLOAD), 0);
    assert_int_equal(call(1), 43);
    sem_post(&may_go_on);
    pthread_join(thread, NULL);
    assert_int_equal(jitdump_trampoline_describe(dump, entry, &code), 0);
    made(dump, "h");
    assert_int_equal(jitdump_lost(dump), 1);
    assert_int_equal(jitdump_trampolines_free(dump), 0);
    assert_int_equal(records_in(path, JIT_CODE_UNLOAD), 2);
    assert_int_equal(jitdump_close(dump), -EAGAIN);
}

/* ---- No more of them ---- */

static void test_all_are_used(void **state)
{
    const uint32_t most = (uint32_t)STUB_BLOCKS * STUBS_IN_BLOCK;
    struct jitdump *dump = open_dump();
    answer_function *call = made(dump, "f");
    struct stub_arena *arena = atomic_load(&dump->trampolines);
    const uint32_t used = arena->used, ready = arena->ready;
    (void)state;
    assert_in_range(most, 8000000, 8999999); /* as the header says */
    arena->used = arena->ready = most;
    assert_ptr_equal(make(dump, "g"), answer);
    assert_int_equal(jitdump_lost(dump), 1);
    assert_non_null(strstr(jitdump_error(dump), "all trampolines are used"));
    assert_int_equal(jitdump_trampoline_free(dump, (jitdump_entry *)call), 0);
    assert_ptr_equal(made(dump, "h"), call);
    arena->used = used, arena->ready = ready;
    assert_int_equal(jitdump_close(dump), -ENOSPC);
}

/* ---- What the system refuses ---- */

static void make_where_nothing_becomes_executable(struct jitdump *dump)
{
    CHECK(try_open(&dump) == 0);
    refuse(SYS_mprotect, EACCES);
    errno = 4711;
    CHECK(make(dump, "f") == answer && make(dump, "g") == answer);
    CHECK(errno == 4711);
    CHECK(jitdump_lost(dump) == 2);
    CHECK(strstr(jitdump_error(dump), "jitdump_trampoline: no memory for trampolines: Permission"));
    CHECK(jitdump_close(dump) == -EACCES);
}

#if !defined(__SANITIZE_ADDRESS__)

static void make_without_addresses(struct jitdump *dump)
{
    struct rlimit limit;
    CHECK(try_open(&dump) == 0);
    CHECK(getrlimit(RLIMIT_AS, &limit) == 0);
    limit.rlim_cur = 1 << 20; /* less than there is */
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    CHECK(make(dump, "f") == answer);
    CHECK(jitdump_lost(dump) == 1);
    CHECK(strstr(jitdump_error(dump), "trampolines"));
    limit.rlim_cur = limit.rlim_max;
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    usleep(110000); /* until it is tried again */
    made(dump, "g");
    CHECK(jitdump_close(dump) == -ENOMEM);
}

static void test_no_addresses_are_left(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(make_without_addresses, NULL), 0);
}

#endif

static void test_nothing_may_become_executable(void **state)
{
    (void)state;
    assert_child_may(make_where_nothing_becomes_executable, "there is no seccomp");
}

/* One that can't be recorded would be a frame without a name. */
static void make_where_the_dump_is_full(struct jitdump *dump)
{
    struct jitdump_options options = options_in_dir();
    unsigned made_ones = 0;
    options.max_bytes = 512 << 10;
    CHECK(jitdump_open(&dump, &options) == 0);
    while (make(dump, "f") != answer)
        CHECK(++made_ones < 100000);
    CHECK(made_ones > 100);
    CHECK(jitdump_lost(dump) == 1);
    CHECK(records_in(path, JIT_CODE_LOAD) == made_ones);
    CHECK(jitdump_trampolines_free(dump) == 0);
    jitdump_close(dump);
}

static void test_a_dump_that_is_full(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(make_where_the_dump_is_full, NULL), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_off_it_is_the_entry_itself),
        TEST(test_of_a_dump_that_could_not_be_opened),
        TEST(test_code_of_another_machine),
        TEST(test_no_entry),
        TEST(test_arguments_and_results),
        TEST(test_a_longjmp_passes_out_of_a_handler),
        TEST(test_what_is_recorded),
        TEST(test_descriptions_of_other_sizes),
#if defined(__x86_64__)
        TEST(test_its_frame_at_each_instruction),
#endif
        TEST(test_no_page_is_writable_and_executable),
        TEST(test_a_freed_one_is_used_again),
        TEST(test_they_outlive_the_dump),
        TEST(test_no_two_have_the_same_bytes),
        TEST(test_each_dump_that_is_asked_for_has_all),
        TEST(test_a_child_has_them_and_frees_its_own),
        TEST(test_threads),
        TEST(test_a_stopped_thread_is_in_the_way),
        TEST(test_all_are_used),
        TEST(test_nothing_may_become_executable),
#if !defined(__SANITIZE_ADDRESS__)
        TEST(test_no_addresses_are_left),
#endif
        TEST(test_a_dump_that_is_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
