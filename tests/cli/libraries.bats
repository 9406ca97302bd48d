# libjitdump and libperfmap as their users have them: headers, static and shared libraries, pkg-config.  What make install does: install.bats.
load helper

top=$here/../..

# Installed below root/, as a package would be.
setup_file() {
    cd "$BATS_FILE_TMPDIR" || return
    env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s -C "$top" install BUILD="$BUILD" DESTDIR="$PWD/root" PREFIX=/usr
}

# C that uses most of a header, and nothing else of the project.
setup() {
    root=$BATS_FILE_TMPDIR/root
    cd "$BATS_TEST_TMPDIR"
    cat >hello_jitdump.c <<'END'
#include <jitdump.h>
#include <stdio.h>

int main(void)
{
    static const unsigned char ret[] = {0xc3};
    struct jitdump_options options = JITDUMP_OPTIONS_INIT;
    struct jitdump_code code = JITDUMP_CODE_INIT;
    struct jitdump_line line = {0x123000, "hello.src", 2, 1};
    struct jitdump_inline call = {"greet", "hello.src", "hello.src", 2, 1, 1, JITDUMP_NOT_INLINED};
    uint32_t line_inline = 0;
    struct jitdump *dump;
    uint64_t code_index = JITDUMP_NO_CODE;
    int result;
    options.dir = ".";
    result = jitdump_open(&dump, &options);
    code.name = "hello";
    code.code_addr = 0x123000;
    code.code_size = sizeof ret;
    code.bytes = ret;
    code.lines = &line;
    code.line_count = 1;
    code.line_inlines = &line_inline;
    code.inlines = &call;
    code.inline_count = 1;
    result |= jitdump_add_code(dump, &code, &code_index);
    result |= jitdump_move_code(dump, code_index, 0x123000, 0x456000, sizeof ret);
    result |= jitdump_unload_code(dump, code_index, 0x456000, sizeof ret);
    if (result)
        fprintf(stderr, "%s: %s\n", jitdump_path(dump), jitdump_error(dump));
    return jitdump_close(dump) || result || jitdump_lost(NULL);
}
END
    cat >hello_perfmap.c <<'END'
#include <perfmap.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    struct perfmap_options options = PERFMAP_OPTIONS_INIT;
    struct perfmap *map;
    struct perfmap_table *table;
    const struct perfmap_entry *entry;
    char error[200], path[200];
    int result;
    options.dir = ".";
    options.flags = PERFMAP_ALWAYS;
    result = perfmap_open(&map, &options) | perfmap_add(map, 0x123000, 16, "hello");
    snprintf(path, sizeof path, "%s", perfmap_path(map));
    result |= perfmap_close(map);
    if (result || perfmap_read(&table, path, error, sizeof error))
        return 1;
    entry = perfmap_find(table, 0x123008);
    result = !entry || strcmp(entry->name, "hello") != 0;
    perfmap_free(table);
    return result;
}
END
    cat >hello_jitunwind.c <<'END'
#include <jitunwind.h>
#include <string.h>

int main(void)
{
    struct jitunwind_options options = JITUNWIND_OPTIONS_INIT;
    struct jitunwind_code code = JITUNWIND_CODE_INIT;
    struct jitunwind_frame frames[8];
    struct jitunwind *arena;
    char name[32];
    int result;
    options.start = 0x123000;
    options.bytes = 0x1000;
    result = jitunwind_open(&arena, &options);
    code.addr = 0x123000;
    code.bytes = 16;
    code.name = "hello";
    result |= jitunwind_add(arena, &code) | jitunwind_name(0x123008, name, sizeof name, 0);
    result |= strcmp(name, "hello") != 0 || jitunwind_backtrace(0, frames, 8, 0) < 1;
    result |= jitunwind_remove(arena, 0x123000);
    jitunwind_close(arena);
    return result;
}
END
}

# The flags that pkg-config gives for LIBRARY; that the library stands in a system directory below root/ is no reason to
# leave them out.
flags() {
    PKG_CONFIG_LIBDIR=$root/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 \
        PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 pkg-config "$@"
}

# The promises of a library's headers.
declared() {
    find "$root/usr/include" -path "*$1*" -name '*.h' -exec \
        sed -nE "s/^${1^^}_API .*[ *](${1}_[a-z0-9_]+)\(.*/\1/p" {} + | sort
}

exported() {
    nm -D --defined-only "$root/usr/lib/lib$1.so.0" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort
}

check_exports() {
    declared "$1" >declared
    exported "$1" >exported
    [ "$(wc -l <declared)" -ge 8 ]
    same exported declared
}

# Objects that were made by the one name of the build directory were not made anew by the other: structs of two sizes in one program.
@test "make: what includes a header is made anew after it, by either name of the build directory" {
    local own form
    mkdir tests
    cp "$top/tests/levels" tests
    cp -r "$top"/{Makefile,jitdump,perfmap,jitunwind} .
    for own in built "$PWD/built"; do
        rm -rf built
        env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s BUILD="$own" "$own/perfmap/perfmap_writer.o"
        for form in built "$PWD/built"; do
            env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -n -W perfmap/perfmap.h BUILD="$form" "$form/perfmap/perfmap_writer.o" >said
            grep -q perfmap/perfmap_writer.c said || complain "made as $own, $form: $(cat said)"
        done
    done
}

@test "libjitdump.so exports the functions of its headers, and nothing else" {
    check_exports jitdump
}

@test "libperfmap.so exports the functions of its headers, and nothing else" {
    check_exports perfmap
}

# gdb looks for the two of its interface, which are weak: whoever else in the process has them, all use the same.
@test "libjitunwind.so exports the functions of its header, gdb's interface, and nothing else" {
    nm -D --defined-only "$root/usr/lib/libjitunwind.so.0" | awk '$3 ~ /^__jit_debug_/ { sub(/@.*/, "", $3); print $2, $3 }' | sort >interface
    printf '%s\n' 'V __jit_debug_descriptor' 'W __jit_debug_register_code' | same interface /dev/stdin
    (declared jitunwind; awk '{ print $2 }' interface) | sort >declared
    exported jitunwind >exported
    [ "$(wc -l <declared)" -ge 7 ]
    same exported declared
}

# The dynamic linker is a part of libc, and thread-local variables need it.
@test "the shared libraries need libc and nothing else" {
    for library in jitdump perfmap jitunwind; do
        readelf -d "$root/usr/lib/lib$library.so.0" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p' | grep -v "^ld-linux" >needed
        echo libc.so.6 | same needed /dev/stdin
        readelf -d "$root/usr/lib/lib$library.so.0" | grep -q "SONAME.*\[lib$library.so.0\]"
        readelf -d "$root/usr/lib/lib$library.so.0" | grep -q 'FLAGS.*NOW' # see perfmap_stack_test.c
    done
}

@test "the static libraries define no names but their own" {
    for library in jitdump:jd perfmap:pm jitunwind:ju; do
        nm -g --defined-only "$root/usr/lib/lib${library%:*}.a" | awk 'NF == 3 { print $3 }' | sort -u >names
        run ! grep -vE "^(${library%:*}|${library#*:}|__jit_debug)_" names
    done
}

@test "a plugin that takes a static library in exports none of its names" {
    for library in jitdump perfmap; do
        cc -shared -fPIC -o plugin.so hello_$library.c -I"$root/usr/include" "$root/usr/lib/lib$library.a" -pthread
        nm -D --defined-only plugin.so | awk '{ print $3 }' >names
        grep -qx main names
        run ! grep $library names
    done
}

@test "one version everywhere" {
    local version
    version=$("$root/usr/bin/perfjit" --version | sed 's/^perfjit //')
    [[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]]
    for library in jitdump perfmap jitunwind; do
        [ "$(flags --modversion lib$library)" = "$version" ]
        grep -q "^#define ${library^^}_VERSION \"$version\"$" "$root/usr/include/$library/$library.h"
        [ "$(readlink "$root/usr/lib/lib$library.so.0")" = "lib$library.so.$version" ]
    done
}

# Each links with its own library alone, which is what CONTRIBUTING.md promises.
@test "shared: a program compiled with pkg-config's flags runs" {
    for library in jitdump perfmap jitunwind; do
        # shellcheck disable=SC2046 # several words
        cc -Wall -Wextra -Werror -o hello hello_$library.c $(flags --cflags --libs lib$library)
        readelf -d hello | grep -q "NEEDED.*lib$library.so.0"
        LD_LIBRARY_PATH=$root/usr/lib PERFJIT=dump ./hello
    done
    [ "$(perfjit dump --json jitdump-*/jit-*.dump | jq -r 'select(.name).name, (.inlines // [] | .[].name)')" = $'greet\nhello' ]
    grep -qx '123000 10 hello' perf-*.map
}

# A plugin's library: thread-local data of the usual kind would be allocated by a new thread's first call, which can't fail but by
# ending the process.
@test "a runtime that loads libjitdump late and has no memory left: a new thread's functions are recorded" {
    cat >late.c <<'END'
#include <dlfcn.h>
#include <errno.h>
#include <jitdump.h>
#include <pthread.h>
#include <stdlib.h>

extern void *__libc_malloc(size_t bytes);
static volatile int no_memory;

void *malloc(size_t bytes)
{
    errno = ENOMEM;
    return no_memory ? NULL : __libc_malloc(bytes);
}

static struct jitdump *dump;
static int (*add)(struct jitdump *, const struct jitdump_code *, uint64_t *);

static void *add_one(void *unused)
{
    struct jitdump_code code = JITDUMP_CODE_INIT;
    code.name = "late";
    code.code_addr = 0x123000;
    code.code_size = 16;
    code.bytes = (const void *)&add_one;
    no_memory = 1;
    long result = add(dump, &code, NULL);
    no_memory = 0;
    (void)unused;
    return (void *)result;
}

int main(void)
{
    void *library = dlopen("libjitdump.so.0", RTLD_NOW), *result;
    pthread_t thread;
    int (*open_dump)(struct jitdump **, const struct jitdump_options *) =
        (int (*)(struct jitdump **, const struct jitdump_options *))dlsym(library, "jitdump_open");
    int (*close_dump)(struct jitdump *) = (int (*)(struct jitdump *))dlsym(library, "jitdump_close");
    add = (int (*)(struct jitdump *, const struct jitdump_code *, uint64_t *))dlsym(library, "jitdump_add_code_on");
    return open_dump(&dump, NULL) || pthread_create(&thread, NULL, add_one, NULL) || pthread_join(thread, &result) ||
           result || close_dump(dump);
}
END
    cc -Wall -Wextra -Werror -I"$root/usr/include" -o late late.c -pthread -ldl
    LD_LIBRARY_PATH=$root/usr/lib PERFJIT=dump JITDUMPDIR=$PWD ./late
    [ "$(perfjit dump --json jitdump-*/jit-*.dump | jq -r 'select(.name).name')" = late ]
}

@test "static: a program compiled with pkg-config's flags runs" {
    for library in jitdump perfmap jitunwind; do
        # shellcheck disable=SC2046
        cc -Wall -Wextra -Werror -static -o hello hello_$library.c $(flags --static --cflags --libs lib$library)
        PERFJIT=dump ./hello
    done
    [ "$(perfjit dump --json jitdump-*/jit-*.dump | jq -r 'select(.name).name, (.inlines // [] | .[].name)')" = $'greet\nhello' ]
    grep -qx '123000 10 hello' perf-*.map
}

# A dump that can't be opened must not have names built for it: a runtime tests for NULL.
@test "the first example of README and header compiles, records, and is off where no dump can be opened" {
    for example in readme header; do
        {
            printf '#include <err.h>\n#include <jitdump.h>\n#include <stdio.h>\n'
            echo 'static const unsigned char entry[16]; enum { entry_bytes = sizeof entry };'
            echo 'static void example(void) {'
            if [ $example = readme ]; then
                sed -n '/^```c$/,/^```$/p;' "$top/jitdump/README.md" | sed -n '/include <jitdump\/jitdump.h>/,/^```$/{//d;p}'
            else
                sed -n '/^#ifndef/q; s/^ \*     //p' "$top/jitdump/jitdump.h" | grep -v perf
            fi | sed '/^\.\.\.$/s/.*/fprintf(stderr, "%s\\n", dump ? "on" : "off");/'
            printf '}\nint main(void) { example(); return 0; }\n'
        } >$example.c
        cc -std=c11 -Wall -Wextra -Werror -o $example $example.c -I"$root/usr/include" "$root/usr/lib/libjitdump.a" -pthread
        PERFJIT=dump JITDUMPDIR=/nonexistent run --separate-stderr ./$example
        exits 0
        says "/nonexistent" $'\noff'
        PERFJIT=dump ./$example
        [ "$(perfjit dump --json jitdump-*/jit-*.dump | jq -r 'select(.name).name')" = fib ]
        rm -r jitdump-*
    done
}

@test "off: without PERFJIT the program runs and leaves nothing" {
    # shellcheck disable=SC2046
    cc -static -o hello hello_jitdump.c $(flags --static --cflags --libs libjitdump)
    ./hello
    run ! compgen -G 'jit*-*'
}

# An ordinary user must not make root's program write where he says.
# bats test_tags=live
@test "a set-user-ID program sees neither PERFJIT nor JITDUMPDIR" {
    [ "$(id -u)" = 0 ] || skip "only root can make a program of root's"
    chmod 755 "$BATS_RUN_TMPDIR" "$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR/.."
    cat >where.c <<'END'
#include <jitdump.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    struct jitdump *dump;
    struct jitdump_options options = JITDUMP_OPTIONS_INIT;
    (void)argv;
    options.flags = argc > 1 ? JITDUMP_ALWAYS : 0;
    int error = jitdump_open(&dump, &options);
    printf("%s\n", jitdump_path(dump));
    return error || jitdump_close(dump);
}
END
    # shellcheck disable=SC2046
    cc -Wall -Wextra -Werror -static -o where where.c $(flags --static --cflags --libs libjitdump)
    mkdir -m 0777 here there
    as_user() { (cd here && PERFJIT=dump JITDUMPDIR=$PWD/../there setpriv --reuid 12345 --regid 12345 --clear-groups ../where "$@"); }
    [[ $(as_user) == */there/jitdump-* ]]
    chmod 4755 where
    [ "$(as_user)" = "" ]
    [[ $(as_user always) == */here/jitdump-* ]]
}

@test "the first calls of a program that is bound lazily take 4 KiB more of the stack, and no others do" {
    cat >lazy.c <<'END'
#include <jitdump/jitdump.h>
#include <jitunwind/jitunwind.h>
#include <perfmap/perfmap.h>
#include <stdlib.h>

#define CHECK(condition) ((condition) ? (void)0 : abort())
#include "tests/unit/stack_use.h"

static struct jitdump *dump;
static struct perfmap *map;

static void open_dump(void) { CHECK(jitdump_open(&dump, NULL) == 0 && dump); }
static void add_code(void) { CHECK(jitdump_add(dump, "f", "", 1, NULL) == 0); }
static void close_dump(void) { CHECK(jitdump_close(dump) == 0); }
static void add_line(void) { CHECK(perfmap_add(map, 1, 2, "f") == 0); }

static void open_map(void)
{
    struct perfmap_options options = PERFMAP_OPTIONS_INIT;
    options.dir = ".";
    CHECK(perfmap_open(&map, &options) == 0 && map);
}

static void walk(void)
{
    struct jitunwind_frame frames[8];
    CHECK(jitunwind_backtrace(NULL, frames, 8, 0) > 0);
}

int main(void)
{
    enum { BINDING = 4096 };
    check_stack(open_dump, 4096 + BINDING, "first jitdump_open");
    check_stack(add_code, 1536 + BINDING, "first jitdump_add");
    check_stack(add_code, 1536, "jitdump_add");
    check_stack(close_dump, 4096 + BINDING, "first jitdump_close");
    check_stack(open_map, 4096 + BINDING, "first perfmap_open");
    check_stack(add_line, 1536 + BINDING, "first perfmap_add");
    check_stack(add_line, 1536, "perfmap_add");
    check_stack(walk, 4096 + BINDING, "first jitunwind_backtrace");
    check_stack(walk, 4096, "jitunwind_backtrace");
    return 0;
}
END
    gcc -D_GNU_SOURCE -O1 -I"$top" -o lazy lazy.c -Wl,-z,lazy "$BUILD"/lib{jitdump,perfmap,jitunwind}.a -pthread
    PERFJIT=dump,map ./lazy
}

@test "both libraries whole in one program" {
    sed 's/main(void)/jitdump_main(void)/' hello_jitdump.c >first.c
    cc -I"$root/usr/include" -pthread -o hello first.c hello_perfmap.c -Wl,--whole-archive "$root/usr/lib/libjitdump.a" \
        "$root/usr/lib/libperfmap.a" -Wl,--no-whole-archive
    ./hello
}

# functions_of DUMP: name, place, size and number of each.
functions_of() {
    perfjit dump --json "$1" | jq -c 'select(.name) | [.name, .code_addr, .code_size, .index]'
}

@test "programs that were compiled with earlier headers run with these libraries, and say the same" {
    cat >frames.c <<'END'
#include <jitdump/cfi.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    static const uint64_t ends[] = {20};
    struct { struct jitdump_frame frame; unsigned char behind[64]; } given;
    struct { struct jitdump_unwind unwind; unsigned char behind[64]; } got;
    struct jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    memset(&given, 0, sizeof given);
    memset(&got, 0xff, sizeof got);
    memset(given.behind, 0xff, sizeof given.behind); /* no member of 0.1's struct */
    given.frame.kind = JITDUMP_FRAME_POINTER;
    given.frame.saved[0] = JITDUMP_RBX;
    given.frame.saved_count = 1;
    given.frame.stack_bytes = 32;
    given.frame.epilogues = ends;
    given.frame.epilogue_count = 1;
    jitdump_cfi_frame(cfi, &given.frame);
    int result = jitdump_cfi_finish(cfi, 32, &got.unwind);
    const struct jitdump_unwind unwind = got.unwind;
    for (unsigned i = 0; i < sizeof got.behind; i++)
        result |= got.behind[i] != 0xff;
    printf("%d %s %d %d ", result, jitdump_cfi_error(cfi), jitdump_cfi_prologue_bytes(JITDUMP_X86_64, &given.frame),
           jitdump_cfi_epilogue_bytes(JITDUMP_X86_64, &given.frame));
    for (uint64_t i = 0; i < unwind.unwinding_size; i++)
        printf("%02x", ((const unsigned char *)unwind.data)[i]);
    jitdump_cfi_free(cfi);
    return result;
}
END
    mkdir 0.1 0.2 new
    for version in 0.1:$top/tests/abi/0.1 0.2:$top/tests/abi/0.2 new:$root/usr/include; do
        cc -Wall -Wextra -Werror -I"${version#*:}" -o ${version%:*}/frames frames.c -L"$root/usr/lib" -ljitdump
        cc -Wall -Wextra -Werror -I"${version#*:}" -o ${version%:*}/hello hello_jitdump.c -L"$root/usr/lib" -ljitdump
        cc -Wall -Wextra -Werror -I"${version#*:}" -o ${version%:*}/map hello_perfmap.c -L"$root/usr/lib" -lperfmap
        export LD_LIBRARY_PATH=$root/usr/lib
        ./${version%:*}/frames >${version%:*}/said
        (cd ${version%:*} && PERFJIT=dump ./hello && ./map)
        functions_of ${version%:*}/jitdump-*/jit-*.dump >${version%:*}/functions
    done
    grep -Eq '^0  9 6 [0-9a-f]{100}' 0.1/said
    [ -s 0.1/functions ]
    for version in 0.2 new; do
        same $version/said 0.1/said
        same $version/functions 0.1/functions
    done
    cc -Wall -Wextra -Werror -I"$top/tests/abi/0.2" -o unwinder hello_jitunwind.c -L"$root/usr/lib" -ljitunwind
    ./unwinder
}

@test "FFI: every call is a function that can be looked up by name" {
    cat >ffi.py <<'END'
import ctypes, sys
dump, u64 = ctypes.c_void_p(), ctypes.c_uint64
library = ctypes.CDLL("libjitdump.so.0")
library.jitdump_version.restype = ctypes.c_char_p
library.jitdump_move_code.argtypes = [ctypes.c_void_p, u64, u64, u64, u64]
library.jitdump_unload_code.argtypes = [ctypes.c_void_p, u64, u64, u64]
code = ctypes.create_string_buffer(b"\xc3" * 16, 16)
at, index = ctypes.addressof(code), u64()
assert library.jitdump_open(ctypes.byref(dump), None) == 0 and dump
for name in b"one", b"two":
    assert library.jitdump_add(dump, name, code, u64(16), ctypes.byref(index)) == 0
assert index.value == 1
assert library.jitdump_move_code(dump, index, at, at + 4096, 16) == 0
assert library.jitdump_unload_code(dump, index, at + 4096, 16) == 0
assert library.jitdump_add(None, b"off", code, u64(16), ctypes.byref(index)) == 0 and index.value == 2**64 - 1
assert library.jitdump_add_code(None, None, None) == 0
assert library.jitdump_add_code(dump, None, None) == -22
print(library.jitdump_version().decode(), at)
library.jitdump_close(dump)
unwinder = ctypes.CDLL("libjitunwind.so.0")
unwinder.jitunwind_version.restype = ctypes.c_char_p
assert unwinder.jitunwind_version() == library.jitdump_version()
maps, one = ctypes.CDLL("libperfmap.so.0"), ctypes.c_void_p()
maps.perfmap_version.restype = ctypes.c_char_p
assert maps.perfmap_open(ctypes.byref(one), None) == 0 and not one
assert maps.perfmap_add(one, u64(1), u64(2), b"off") == 0
assert maps.perfmap_version() == library.jitdump_version()
END
    LD_LIBRARY_PATH=$root/usr/lib PERFJIT=dump python3 ffi.py >said
    read -r version at <said
    [ "$(perfjit --version)" = "perfjit $version" ]
    [ "$(functions_of jitdump-*/jit-*.dump | jq -r '.[0]')" = $'one\ntwo' ]
}

@test "the headers are C99, C11 and C17" {
    for standard in c99 c11 c17; do
        for library in jitdump perfmap jitunwind; do
            cc -std=$standard -pedantic -Wall -Wextra -Wconversion -Wshadow -Werror -fsyntax-only \
                -isystem /nonexistent -I"$root/usr/include" hello_$library.c
        done
    done
}

@test "the headers are C++11 and C++20" {
    for standard in c++11 c++20; do
        for library in jitdump perfmap jitunwind; do
            # Not a system directory for the compiler, or it would say nothing about the headers.
            g++ -x c++ -std=$standard -pedantic -Wall -Wextra -Werror -I"$root/usr/include" -o hello hello_$library.c \
                -x none "$root/usr/lib/lib$library.a" -pthread
            PERFJIT=dump ./hello
        done
    done
}

compilers=(g++)
[ "$RECORDINGS" = stored ] || compilers=(clang++)

# bats test_tags=both
@test "C++ programs have no warning of the headers and their macros, and frames in one line" {
    cat >frame.cc <<'END'
#include <jitdump/cfi.h>
#include <jitunwind.h>
#include <perfmap.h>

int main()
{
    static const jitdump_frame frame = {
        .kind = JITDUMP_FRAME_POINTER, JITDUMP_SAVED(JITDUMP_RBX, JITDUMP_R12), .stack_bytes = 32};
    const jitdump_options options = JITDUMP_OPTIONS_INIT;
    const jitdump_code code = JITDUMP_CODE_INIT;
    const perfmap_options map_options = PERFMAP_OPTIONS_INIT;
    const jitunwind_options arena_options = JITUNWIND_OPTIONS_INIT;
    const jitunwind_code arena_code = JITUNWIND_CODE_INIT;
    jitdump_unwind unwind;
    jitdump_cfi *cfi = jitdump_cfi_new(JITDUMP_X86_64);
    jitdump_cfi_frame(cfi, &frame);
    const int result = jitdump_cfi_finish(cfi, 64, &unwind);
    jitdump_cfi_free(cfi);
    return result != 0 || frame.saved_count != 2 || frame.saved[1] != JITDUMP_R12 ||
           jitdump_cfi_prologue_bytes(JITDUMP_X86_64, &frame) != 11 ||
           options.size + code.size + map_options.size + arena_options.size + arena_code.size == 0;
}
END
    for compiler in "${compilers[@]}"; do
        $compiler -std=c++20 -Wall -Wextra -pedantic -Wzero-as-null-pointer-constant -Wold-style-cast -Wshadow -Wconversion \
            -Wno-missing-field-initializers -Werror -I"$root/usr/include" -o frame frame.cc "$root/usr/lib/libjitdump.a" -pthread
        ./frame
        # Without designators, by member: a list of values would lack those that a later version has.
        sed 's/static const jitdump_frame frame = {/jitdump_frame frame = {};/
            s/\.kind.*/frame.kind = JITDUMP_FRAME_POINTER, frame.saved[0] = JITDUMP_RBX, frame.saved[1] = JITDUMP_R12;\n    frame.saved_count = 2, frame.stack_bytes = 32;/' frame.cc >frame17.cc
        $compiler -std=c++17 -Wall -Wextra -pedantic -Wzero-as-null-pointer-constant -Wold-style-cast -Wshadow -Wconversion \
            -Werror -I"$root/usr/include" -o frame frame17.cc "$root/usr/lib/libjitdump.a" -pthread
        ./frame
    done
}

@test "each header needs no other before it" {
    for header in jitdump jitdump/cfi perfmap jitunwind; do
        printf '#include <%s.h>\nint unused;\n' $header >alone.c
        cc -std=c99 -pedantic -Wall -Wextra -Werror -fsyntax-only -I"$root/usr/include" alone.c
        g++ -x c++ -std=c++11 -pedantic -Wall -Wextra -Werror -fsyntax-only -I"$root/usr/include" alone.c
    done
}
