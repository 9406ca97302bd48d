# libjitunwind in tinyjit: a process unwinds and names its own JIT code.
load helper

setup() {
    cd "$BATS_TEST_TMPDIR"
    cat >steps.tj <<'END'
global total = 3;
array table[16];
fn leaf(x) { return x * 3 - 1; }
fn inner(n) { return native_mix(n) + leaf(n); }
fn deep(n) { if n > 0 { return deep(n - 1) + leaf(n); } return inner(n); }
fn busy(a, b, c, d, e, f) {
    var i = 0;
    while i < a { table[i & 15] = table[(i + b) & 15] + c * d - (e ^ f); i = i + 1; }
    return table[a & 15];
}
fn pick(n) {
    if n % 3 == 0 { return busy(n, 1, 2, 3, 4, 5); }
    if n % 3 == 1 { return call(@leaf, n); }
    return deep(n % 7);
}
fn main() {
    var i = 0;
    while i < 24 {
        total = total + pick(i);
        if i % 8 == 7 { forget(@deep); forget(@inner); }
        i = i + 1;
    }
    return print(total);
}
END
}

# steps_are_right SCRIPT LEAST OPTION...: no chain is wrong, and at LEAST instructions of compiled code backtrace(3) agrees.
steps_are_right() {
    "$BUILD/producers/self_unwind" steps "$1" exceptions "${@:3}" >said || complain "$(cat said)"
    grep -q '^[0-9]* chains, [0-9]* of them from compiled code, .* 0 wrong$' said
    [ "$(sed -nE 's/^([0-9]+) by backtrace.*/\1/p' said)" -gt "$2" ]
}

# The chain is noted down from calls and returns alone.  C, which adds and removes functions meanwhile, is among what is stepped
# through.
@test "at every instruction of compiled code the chain, its names and its end are right, and backtrace(3) agrees" {
    steps_are_right steps.tj 5000 compact
}

# bats test_tags=live
@test "... also without frame pointers, in either tier" {
    steps_are_right steps.tj 5000 no-frame-pointer compact
    steps_are_right steps.tj 5000 tier1
    steps_are_right steps.tj 5000 tier2 no-frame-pointer
}

# bats test_tags=all
@test "... of 200 functions" {
    script_of_functions 200 "return 0;" >two_hundred.tj
    steps_are_right two_hundred.tj 20000 tier1
    steps_are_right two_hundred.tj 20000 tier1 no-frame-pointer
    steps_are_right two_hundred.tj 20000 tier2
    steps_are_right two_hundred.tj 20000 compact no-frame-pointer
}

# signals_are_right SIGNALS OPTION...: the interrupted code compiles, forgets, moves, throws, runs, is in malloc or in the
# registry.
signals_are_right() {
    timeout $((60 + $1 / 100)) "$BUILD/producers/self_unwind" signals "$here/../../examples/tinyjit/churn.tj" "$@" >said || complain "$(cat said)"
    echo "# ${*:2}${PERFJIT:+ PERFJIT=$PERFJIT}: $(paste -sd' ' said)" >&3
    grep -q ' 0 wrong$' said
    [[ $(cat said) =~ ([0-9]+)\ judged\ by\ the\ log,\ ([0-9]+)\ in\ malloc,\ ([0-9]+)\ in\ the\ registry,\ ([0-9]+)\ exceptions,\ ([0-9]+)\ where ]]
    [ "${BASH_REMATCH[1]}" -ge $(($1 / 10)) ] && [ "${BASH_REMATCH[2]}" -ge $(($1 / 20)) ] && [ "${BASH_REMATCH[3]}" -ge $(($1 / 20)) ]
    [[ $* != *exceptions* ]] || [ "${BASH_REMATCH[4]}" -ge $(($1 / 100)) ]
    [ "${BASH_REMATCH[5]}" -le $((2 + BASH_REMATCH[4] / 1000)) ]
}

# bats test_tags=live
@test "signals, 1000 a second: no chain is wrong, nothing hangs" {
    signals_are_right 2000 compact
    PERFJIT=gdb signals_are_right 2000 compact no-frame-pointer exceptions
}

# bats test_tags=all
@test "... for ten minutes" {
    signals_are_right 150000 compact no-frame-pointer
    signals_are_right 150000 compact exceptions
    PERFJIT=gdb signals_are_right 150000 compact
    PERFJIT=gdb signals_are_right 150000 compact no-frame-pointer exceptions
}

@test "tinyjit --crash: the report names the functions of the script, and ends where the program began" {
    cat >crash.tj <<'END'
fn inner(n) { return native_mix(n) + 1; }
fn middle(n) { if n > 2 { return middle(n - 1) + 1; } return inner(n) * 2; }
fn main() { return middle(4); }
END
    run -139 --separate-stderr "$BUILD/tinyjit" --crash --no-tier2 crash.tj
    sed -nE 's/^ *#[0-9]+ 0x[0-9a-f]{16} (tj::[^+]*)\+0x[0-9a-f]+$/\1/p' <<<"$stderr" >names
    same names /dev/stdin <<'END'
tj::inner [tier1]
tj::middle [tier1]
tj::middle [tier1]
tj::middle [tier1]
tj::main [tier1]
tj::[stub] enter
END
    [[ $stderr == *"rip 0000"* && $stderr != *"not known"* && $stderr != *"frame pointer"* ]]
}

@test "a stack overflow is walked from the alternate stack" {
    cat >full.c <<'END'
#include "jitunwind/jitunwind.h"
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
static char room[65536];
static void report(int number, siginfo_t *info, void *ucontext)
{
    static struct jitunwind_frame frames[256];
    (void)number, (void)info;
    size_t count = jitunwind_backtrace(ucontext, frames, 256, 0);
    _exit(count == 256 && frames[255].end == JITUNWIND_FULL && frames[200].how == JITUNWIND_EH_FRAME ? 0 : 1);
}
static int eat(volatile char *above)
{
    volatile char here[4096];
    here[0] = *above;
    return eat(here) + here[1];
}
int main(void)
{
    stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
    struct sigaction action = {.sa_sigaction = report, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    char first = 0;
    return sigaltstack(&stack, NULL) || sigaction(SIGSEGV, &action, NULL) || eat(&first);
}
END
    cc -O1 -w -I"$here/../.." -o full full.c "$BUILD/libjitunwind.a" -pthread
    ./full
}

# ---- Exceptions ----

setup_throw() {
    cat >throw.tj <<'END'
fn inner(n) { return native_mix(n) + 1; }
fn middle(n) { if n > 2 { return middle(n - 1) + 1; } return inner(n) * 2; }
fn main() { var i = 0; while i < 5 { i = i + 1; } return middle(i + 9); }
END
}

throw_in_each_form() { # TINYJIT
    setup_throw
    for options in "" --no-tier2 "--tier2-after 0 --no-inline" "--no-frame-pointer --no-tier2" \
        "--no-frame-pointer --no-inline --tier2-after 3 --compact-every 1" --wx; do
        # shellcheck disable=SC2086 # words
        timeout 300 "$1" --throw --repeat 200 $options throw.tj | uniq -c | sed 's/^ *//' >said
        echo "200 caught 2" | same said /dev/stdin
    done
}

@test "tinyjit --throw: an exception passes through compiled code of every form" {
    throw_in_each_form "$BUILD/tinyjit"
}

# bats test_tags=live
@test "... with LLVM's libunwind in libgcc's place" {
    export LD_PRELOAD=/usr/lib/x86_64-linux-gnu/libunwind.so.1
    [ -e "$LD_PRELOAD" ]
    setup_throw
    LD_DEBUG=bindings "$BUILD/tinyjit" --throw throw.tj 2>&1 | grep -q 'to .*libunwind.so.1 .*__register_frame'
    throw_in_each_form "$BUILD/tinyjit"
    timeout 300 "$BUILD/tests/jitunwind_exceptions_test"
}

# bats test_tags=live
@test "... with LLVM's C++ runtime: libc++, libc++abi and libunwind" {
    local include="-D_GNU_SOURCE -I$here/../.." objects llvm="-Wl,--no-as-needed -L/usr/lib/llvm-14/lib -lc++ -lc++abi -lunwind"
    objects=$(find "$BUILD/examples/tinyjit" -name '*.o' ! -name exception.o)
    # shellcheck disable=SC2086 # words
    clang++-14 -stdlib=libc++ -O2 $include -c "$here/../../examples/tinyjit/exception.cc" "$here/../unit/throwing.cc"
    # shellcheck disable=SC2086
    clang-14 -nodefaultlibs -o tinyjit $objects exception.o "$BUILD"/lib{jitdump,perfmap,jitunwind}.a $llvm -lm -lc -lgcc
    # shellcheck disable=SC2086
    clang-14 -w -O1 -nodefaultlibs $include -o exceptions "$here/../unit/jitunwind_exceptions_test.c" throwing.o \
        "$BUILD"/lib{jitdump,jitunwind}.a $llvm -lcmocka -lc -lgcc
    run ldd ./tinyjit
    [[ $output != *libstdc++* ]]
    setup_throw
    LD_DEBUG=bindings ./tinyjit --throw throw.tj 2>&1 | grep -q 'libc++abi.* to .*libunwind.so.1 .*_Unwind_RaiseException'
    LD_DEBUG=bindings ./tinyjit --throw throw.tj 2>&1 | grep -q 'to .*libunwind.so.1 .*__register_frame'
    throw_in_each_form "$PWD/tinyjit"
    timeout 300 ./exceptions
}

# bats test_tags=live
@test "... in a static program, which has the unwinder in it" {
    make -s -C "$here/../.." BUILD="$BUILD" "$BUILD/static/tinyjit"
    throw_in_each_form "$BUILD/static/tinyjit"
}

@test "JITUNWIND_EXCEPTIONS in a process without an unwinder: -ENOTSUP" {
    cat >plain.c <<'END'
#include "jitunwind/jitunwind.h"
#include <errno.h>
int main(void)
{
    struct jitunwind_options options = JITUNWIND_OPTIONS_INIT;
    struct jitunwind *arena;
    options.start = 0x10000;
    options.bytes = 4096;
    options.flags = JITUNWIND_EXCEPTIONS;
    return jitunwind_open(&arena, &options) != -ENOTSUP || arena;
}
END
    cc -w -I"$here/../.." -o plain plain.c "$BUILD/libjitunwind.a" -pthread
    ./plain
}

# bats test_tags=both
@test "a process ends with registered code, by every way out, while another thread adds and removes" {
    cat >leave.c <<'END'
#include "jitunwind/jitunwind.h"
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
extern void __register_frame(void *);
void (*volatile unwinder)(void *) = __register_frame;
enum { FUNCTIONS = 1000 };
static struct jitunwind *arenas[3];
static uint64_t start_of(int arena) { return 0x10000000ull * (arena + 1); }
static void add(int arena, int i)
{
    struct jitunwind_code code = JITUNWIND_CODE_INIT;
    code.addr = start_of(arena) + i * 64;
    code.bytes = 40;
    code.name = "f";
    int error = jitunwind_add(arenas[arena], &code);
    if (error && error != -ENOSPC) /* what is removed while look() reads is not used again */
        abort();
}
static void *change(void *nothing)
{
    for (int i = 0;; i++) {
        jitunwind_remove(arenas[i % 3], start_of(i % 3) + i % FUNCTIONS * 64);
        add(i % 3, i % FUNCTIONS);
    }
}
static void look(void)
{
    void *addresses[100];
    struct jitunwind_frame frames[100];
    if (backtrace(addresses, 100) < 3 || jitunwind_backtrace(NULL, frames, 100, 0) < 3)
        abort();
}
int main(int argc, char **argv)
{
    pthread_t thread;
    atexit(look);
    for (int i = 0; i < 3; i++) {
        struct jitunwind_options options = JITUNWIND_OPTIONS_INIT;
        options.start = start_of(i);
        options.bytes = FUNCTIONS * 64;
        options.flags = JITUNWIND_EXCEPTIONS;
        if (jitunwind_open(&arenas[i], &options))
            abort();
        for (int k = 0; k < FUNCTIONS; k++)
            add(i, k);
    }
    if (pthread_create(&thread, NULL, change, NULL))
        abort();
    usleep(2000);
    if (argv[1][0] == 'e')
        exit(7);
    if (argv[1][0] == 'q')
        quick_exit(7);
    if (argv[1][0] == '_')
        _exit(7);
    return 7;
}
END
    cc -O1 -g -w -I"$here/../.." -o leave leave.c "$BUILD/libjitunwind.a" -pthread
    local preload words way try preloads=("")
    [ "$RECORDINGS" = stored ] || preloads+=(/usr/lib/x86_64-linux-gnu/libunwind.so.1)
    for preload in "${preloads[@]}"; do
        for words in "" gdb; do
            for way in return exit quick_exit _exit; do
                for try in {1..10}; do # run has an i of its own
                    LD_PRELOAD=$preload PERFJIT=$words run -7 timeout 300 ./leave $way
                done
            done
        done
    done
}

# ---- gdb by what the process registers ----

# A plugin that comes and goes; every other time it forgets to close.
# bats test_tags=live
@test "PERFJIT=gdb in a library that is unloaded: gdb names what is there, and goes on" {
    cat >plugin.c <<'END'
#include "jitunwind/jitunwind.h"
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
static void stop(void)
{
    raise(SIGTRAP);
}
int main(int argc, char **argv)
{
    /* push rbp; mov rbp, rsp; mov rax, CALLEE; call rax; pop rbp; ret */
    static uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xd0, 0x5d, 0xc3};
    uint8_t *arena_base = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void (*callee)(void) = stop;
    memcpy(code + 6, &callee, sizeof callee);
    for (int i = 0; i < 4; i++) {
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        int (*open)(struct jitunwind **, const struct jitunwind_options *) = dlsym(library, "jitunwind_open");
        int (*add)(struct jitunwind *, const struct jitunwind_code *) = dlsym(library, "jitunwind_add");
        void (*close)(struct jitunwind *) = dlsym(library, "jitunwind_close");
        struct jitunwind_options options = JITUNWIND_OPTIONS_INIT;
        struct jitunwind_code function = JITUNWIND_CODE_INIT;
        struct jitunwind *arena;
        uint8_t *at = arena_base + i * 65536;
        memcpy(at, code, sizeof code);
        options.start = (uint64_t)(uintptr_t)at;
        options.bytes = 65536;
        function.addr = options.start;
        function.bytes = sizeof code;
        function.name = "Plugin.run";
        if (!library || open(&arena, &options) || add(arena, &function))
            return 1;
        ((void (*)(void))at)();
        if (i % 2)
            close(arena);
        dlclose(library);
        stop();
    }
    return 7;
}
END
    cc -O1 -g -w -I"$here/../.." -o plugin plugin.c
    for one in 1 2 3 4; do
        printf 'continue\nbt\ncontinue\nbt\n'
    done | sed '1s/continue/run/' >commands
    echo continue >>commands
    PERFJIT=gdb gdb -q --batch -x commands --args ./plugin "$BUILD/libjitunwind.so.0" >said 2>&1
    grep -q 'exited with code 07' said
    [ "$(grep -c 'in Plugin.run ()' said)" = 4 ]
    [ "$(grep -c ' main (' said)" -ge 8 ]
    grep -v '^warning: Temporarily disabling breakpoints for unloaded' said >rest # gdb's own, in the library
    run ! grep -i 'error\|warning\|corrupt' rest
}

# bats test_tags=live
@test "PERFJIT=gdb: gdb that is attached later, and a static program" {
    make -s -C "$here/../.." BUILD="$BUILD" "$BUILD/static/tinyjit"
    cat >wait.tj <<'END'
fn wait() { while native_mix(1) != 0 { } return 0; }
fn middle(n) { if n > 0 { return middle(n - 1) + 1; } return wait(); }
fn main() { return middle(3); }
END
    for program in "$BUILD/tinyjit" "$BUILD/static/tinyjit"; do
        PERFJIT=gdb "$program" --stop 5 --no-inline wait.tj >/dev/null 2>&1 3>&- &
        await_use $! 100
        gdb -q --batch -p $! -ex 'break native_mix' -ex continue -ex bt -ex kill >said 2>&1
        wait $! || true
        sed -nE 's/^#[0-9]+ +0x[0-9a-f]+ in (tj::.*) \(\)$/\1/p' said | sed 's/ \[tier[12]\]//' >names
        printf 'tj::%s\n' wait middle middle middle middle main '[stub] enter' | same names /dev/stdin
        grep -q ' main (' said
    done
}

# Each call for memory fails once, then all of them from one on.  Code that was added is shown, and code that was refused is
# not.
@test "PERFJIT=gdb without memory: -ENOMEM, and the list says what was added" {
    cat >little.c <<'END'
#include "jitunwind/jitunwind.h"
#include <elf.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
enum { COUNT = 12000, APART = 64, FIRST = 3000, HOLE = 100 };
struct entry {
    struct entry *next, *previous;
    const char *object;
    uint64_t bytes;
};
extern struct { uint32_t version, action; struct entry *relevant, *first; } __jit_debug_descriptor;
static char is_added[COUNT];
static struct jitunwind *arena;
static struct jitunwind_options options = JITUNWIND_OPTIONS_INIT;
static void add(int i)
{
    struct jitunwind_code code = JITUNWIND_CODE_INIT;
    code.addr = options.start + i * APART;
    code.bytes = APART;
    code.name = "f";
    int error = jitunwind_add(arena, &code);
    is_added[i] = error == 0;
    if (error && error != -ENOMEM)
        printf("error %d\n", error);
    if (error && jitunwind_name(code.addr, NULL, 0, NULL) != -ENOENT)
        printf("refused, and there\n");
}
int main(void)
{
    options.start = 0x10000000;
    options.bytes = COUNT * APART;
    int error = jitunwind_open(&arena, &options);
    if (error)
        return error != -ENOMEM || arena || __jit_debug_descriptor.first;
    for (int i = 0; i < COUNT; i++)
        add(i);
    for (int i = FIRST; i < FIRST + HOLE; i++)
        if (is_added[i] && jitunwind_remove(arena, options.start + i * APART))
            printf("not removed\n");
    for (int i = FIRST; i < FIRST + HOLE; i++)
        add(i);
    struct jitunwind_code taken = JITUNWIND_CODE_INIT;
    taken.addr = options.start + (COUNT / 2) * APART;
    taken.bytes = 1;
    jitunwind_add(arena, &taken); /* to no avail: what was removed is buried in any case */
    for (struct entry *entry = __jit_debug_descriptor.first; entry; entry = entry->next) {
        const Elf64_Shdr *sections = (void *)(entry->object + ((const Elf64_Ehdr *)entry->object)->e_shoff);
        const Elf64_Sym *symbols = (void *)(entry->object + sections[3].sh_offset);
        for (size_t i = 0; i < sections[3].sh_size / sizeof *symbols; i++)
            if (symbols[i].st_shndx && symbols[i].st_size > 1)
                is_added[(symbols[i].st_value - options.start) / APART] ^= 1;
    }
    for (int i = 0; i < COUNT; i++)
        if (is_added[i])
            printf("%d: shown or not\n", i);
    jitunwind_close(arena);
    return __jit_debug_descriptor.first != NULL;
}
END
    cc -O1 -g -w -I"$here/../.." -o little little.c "$BUILD/libjitunwind.a" -pthread
    export PERFJIT=gdb FAIL_CALLS=calloc,realloc,mmap # malloc is that of names
    FAIL_COUNT=count LD_PRELOAD="$BUILD/fail_nth.so" ./little >said
    [ ! -s said ]
    [ "$(cat count)" -ge 40 ]
    for rest in 0 1; do
        for ((n = 1; n <= $(cat count); n++)); do
            FAIL_REST=$rest FAIL_NTH=$n LD_PRELOAD="$BUILD/fail_nth.so" ./little >said || complain "call $n, $rest"
            [ ! -s said ] || complain "call $n, $rest: $(head -3 said)"
        done
    done
}
