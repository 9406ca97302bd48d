# The libraries as one C file and one header each, which `make dist` makes of their sources, also built for other libcs and for 32
# bits.  There must be no warning, no name too many, and the same dumps.
load helper

top=$here/../..
dist=$BUILD/dist
warnings=(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wcast-align -Wcast-qual -Wundef -Wstrict-prototypes -Wmissing-prototypes
    -Werror)

setup() {
    cd "$BATS_TEST_TMPDIR"
}

bits32() {
    gcc -m32 -Wno-psabi -idirafter "/usr/include/$(gcc -print-multiarch)" "$@"
}

require_bits32() {
    [ "$(uname -m)" = x86_64 ] || skip "only on x86-64 gcc has -m32"
    echo 'int main(void) { return 0; }' >empty.c
    gcc -m32 -o empty empty.c 2>/dev/null || skip "there is no libc for 32 bits (make setup)"
}

# clean COMPILER STANDARD [OPTION...]: each library, with all warnings, and no name but its own.
clean() {
    local library
    for library in jitdump perfmap jitunwind; do
        "$1" -std="$2" "${warnings[@]}" "${@:3}" -c -o $library.o "$dist/$library.c"
        # A library for gdb has two names as its interface; gcc makes the other ones for 32 bits.
        nm -g --defined-only $library.o | awk 'NF == 3 { print $3 }' | grep -vE '^__jit_debug_|^__x86\.get_pc_thunk\.' >names
        grep -q "^${library}_" names
        run ! grep -v "^${library}_" names
    done
}

# timeless DUMP: all of it but process and times.
timeless() {
    perfjit dump --json "$1" | jq -c 'del(.elf_mach, .pid, .tid, .timestamp, .vma, .code_addr, .old_code_addr, .new_code_addr,
        .entries[]?.addr)'
}

# one_dump NAME PROGRAM ARGUMENT...: the dump that it writes is NAME.dump.
one_dump() {
    mkdir "$1"
    PERFJIT=dump JITDUMPDIR=$PWD/$1 timeout 300 "${@:2}"
    mv "$1"/jitdump-*/jit-*.dump "$1.dump"
    rm -r "$1"
}

# same_dumps COMPILER [OPTION...]: programs with what `clean` has compiled write the same as those with libjitdump.a.
same_dumps() {
    "$@" -std=gnu11 -O1 -I"$top" -I"$dist" -o every_record "$top/tests/producers/every_record.c" jitdump.o -pthread
    one_dump here "$BUILD/producers/every_record" 0
    one_dump there ./every_record 0
    for where in here there; do timeless $where.dump >$where.timeless; done
    same there.timeless here.timeless
    [ "$(wc -l <there.timeless)" -gt 12 ]
    perfjit check there.dump >checked || [ $? = 3 ]
    "$@" -std=gnu11 -D_GNU_SOURCE -O1 -I"$top" -I"$dist" -o both_libraries "$top/tests/producers/both_libraries.c" jitdump.o perfmap.o \
        -pthread
    mkdir here there
    timeout 300 "$BUILD/producers/both_libraries" here >here.says
    timeout 300 ./both_libraries there >there.says
    grep ^tables here.says | same <(grep ^tables there.says) /dev/stdin
    # Its addresses, made up, are no 32-bit machine's, which is a quirk there.
    for who in main child grandchild; do
        for where in here there; do
            pid=$(awk -v who=$who '$1 == who { print $2 }' $where.says)
            perfjit dump --json $where/jitdump-$pid/jit-$pid.dump |
                jq -c 'del(.elf_mach, .pid, .tid, .timestamp, .offset, .record, .code_index, .quirks)' | LC_ALL=C sort >$where.$who
            LC_ALL=C sort $where/perf-$pid.map >$where.$who.map
        done
        same there.$who here.$who
        same there.$who.map here.$who.map
    done
    rm -r here there
}

# Byte for byte: every record's place and size, and all that is no time and no address.
@test "jitdump.c: no warning, no name but jitdump_..., and the dumps of libjitdump.a" {
    clean gcc c11 -O0
    same_dumps gcc
}

@test "with JITDUMP_STATIC a plugin exports none of it, and without it what the header says" {
    printf '#include "jitdump.h"\nint plugin(void);\nint plugin(void) { return jitdump_open(0, 0); }\n' >plugin.c
    gcc -shared -fPIC -DJITDUMP_STATIC -I"$dist" -o static.so plugin.c "$dist/jitdump.c" -pthread
    gcc -shared -fPIC -fvisibility=hidden -I"$dist" -o open.so plugin.c "$dist/jitdump.c" -pthread
    nm -D --defined-only static.so | awk '{ print $3 }' >static.names
    [ "$(cat static.names)" = plugin ]
    nm -D --defined-only open.so | awk '{ print $3 }' | LC_ALL=C sort >open.names
    sed -nE 's/^JITDUMP_API .*[ *](jitdump_[a-z0-9_]+)\(.*/\1/p' "$dist/jitdump.h" | LC_ALL=C sort -u | same open.names /dev/stdin
}

@test "one header is enough, and by the name that it has where the library is installed" {
    printf '#include "jitdump.h"\nstatic const struct jitdump_frame frame = {JITDUMP_SAVED(JITDUMP_RBX)};\n' >one.c
    printf 'int main(void) { return jitdump_cfi_prologue_bytes(JITDUMP_X86_64, &frame) != -22; }\n' >>one.c
    cp "$dist/jitdump.h" "$dist/jitdump.c" .
    gcc -std=c11 "${warnings[@]}" -o one one.c jitdump.c -pthread
    ./one
    sed 's,"jitdump.h",<jitdump/cfi.h>,' one.c >two.c
    gcc -std=c11 "${warnings[@]}" -I"$dist" -o two two.c jitdump.c -pthread
    ./two
}

# What a program may have called the same, from a look at the sources.
@test "included into another C file: after system headers, after their own, all three, twice, beside the same names" {
    local library standard header
    for library in jitdump perfmap; do
        for standard in gnu11 c11; do
            printf '#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n' >unity.c
            [ $standard = c11 ] || printf '#include <%s.h>\n' fcntl sys/mman sys/stat pthread signal time unistd >>unity.c
            printf '#include "%s.c"\nint main(void) { return 0; }\n' $library >>unity.c
            gcc -std=$standard "${warnings[@]}" -I"$dist" -fsyntax-only unity.c
            sed -i "s,#include \"$library.c\",#include <$library/$library.h>\n&," unity.c # its inline calls are there already
            gcc -std=$standard "${warnings[@]}" -I"$dist" -fsyntax-only unity.c
        done
        # The last one, and what the optimizer notices.
        gcc -std=$standard "${warnings[@]}" -O1 -D_FORTIFY_SOURCE=2 -I"$dist" -o unity unity.c -pthread
    done
    printf '#include <time.h>\n#include "jitdump.c"\n' >late.c
    run gcc -std=c11 -I"$dist" -fsyntax-only late.c
    [[ $output == *"has to come before the system headers"* ]]
    cat >unity.c <<'C'
#include <stdio.h>
#define STEP "a"
#define LOOKS "b"
#define SEALS "c"
struct wait { int turn; };
struct stub { int lock; };
enum { ARENA = 7, TIME, DONE };
static int lock(int n) { return n + 1; }
static int start, fail = 3, begin, end, remedy, take, count, byte_sink_over, sized_struct_read, environment_has;
#include "jitdump.c"
#include "perfmap.c"
#include "jitunwind.c"
#include "jitdump.c"
static const char *const macros[] = {STEP, LOOKS, SEALS};
int main(void)
{
    const unsigned char ret = 0xc3;
    struct wait wait = {ARENA + TIME};
    struct stub stub = {DONE};
    struct jitdump *dump;
    if (jitdump_open(&dump, NULL) || jitdump_add(dump, "unity", &ret, 1, NULL) || jitdump_close(dump))
        return 1;
    puts(macros[0]);
    return lock(wait.turn + stub.lock) + fail + start + begin + end + remedy + take + count + byte_sink_over + sized_struct_read +
        environment_has - 28;
}
C
    gcc -std=gnu11 -Wall -Wextra -Werror -D_GNU_SOURCE -I"$dist" -o unity unity.c -pthread
    PERFJIT=dump ./unity
    [ "$(perfjit dump --json jitdump-*/jit-*.dump | jq -r 'select(.name).name')" = unity ]
    rm -r jitdump-*
    printf 'int main(void) { struct jitdump *dump; return jitdump_open(&dump, NULL) || jitdump_close(dump); }\n' >first.c
    gcc -std=c11 "${warnings[@]}" -I"$dist" -include "$dist/jitdump.c" -o first first.c -pthread
    PERFJIT=dump ./first
    [ -e jitdump-*/jit-*.dump ]
}

# Every file of the table is there, and no other.
@test "README names the files to copy" {
    sed -n '/^### Vendoring/,/^###/p' "$top/jitdump/README.md" | grep '^| `' | cut -d'|' -f2 | grep -o '[a-z/]*\.[chp]*' | LC_ALL=C sort >named
    (cd "$dist" && find . -type f | sed 's,^\./,,' | LC_ALL=C sort) | same named /dev/stdin
    printf '#include <jitdump/jitdump.hpp>\n#include <perfmap/perfmap.h>\n#include <jitunwind/jitunwind.h>\nint main() { return 0; }\n' >all.cc
    mkdir copy
    while read -r file; do
        mkdir -p "copy/$(dirname "$file")"
        cp "$dist/$file" "copy/$file"
    done <named
    g++ -std=c++17 -Wall -Wextra -Werror -Icopy -fsyntax-only all.cc
}

@test "each file of the sources is in it" {
    for library in jitdump perfmap jitunwind; do
        find "$top/$library" -name '*.c' | sed "s,^$top/,," | LC_ALL=C sort >files
        sed -n 's,^/\* ---- \(.*\.c\) ---- \*/$,\1,p' "$dist/$library.c" | grep "^$library/" | LC_ALL=C sort | same /dev/stdin files
    done
}

# Names that two files have, macros, tags, members of the same name: the script must keep them apart by itself.
@test "files whose names clash are kept apart" {
    mkdir -p perfmap/part out
    cp "$top/LICENSE" .
    printf '#ifndef P_H\n#define P_H\n#define P_VERSION "9.9"\nint perfmap_both(int);\n#endif\n' >perfmap/perfmap.h
    sed -i 's/P_VERSION/PERFMAP_VERSION/' perfmap/perfmap.h
    printf '#ifndef B_H\n#define B_H\n/* second */\nint pm_second(int n);\nextern const int pm_last;\n#endif\n' >perfmap/part/second.h
    cat >perfmap/first.c <<'C'
#include "perfmap/part/second.h"
#include "perfmap/perfmap.h"
#define STEP 1
enum { LIMIT = 3 };
struct pair { int count, sum; };
static int count = LIMIT;
static int sum(struct pair pair) { return pair.sum + pair.count + count + STEP; }
int perfmap_both(int n)
{
    struct pair pair = {.count = n, .sum = 1};
    const char *text = "sum of count"; // sum
    return sum(pair) + pm_second(n) + pm_last + text[0] * 0;
}
C
    cat >perfmap/part/second.c <<'C'
#include "perfmap/part/second.h"
#define STEP 100
enum { LIMIT = 7 };
struct pair { int (*sum)(int); char count[LIMIT]; };
static const char *const count = "sum";
static int sum(int n) { return n + STEP + LIMIT; }
const int pm_last = LIMIT;
int pm_second(int n)
{
    struct pair pair = {.sum = sum};
    return pair.sum(n) + (int)sizeof pair.count + (count[0] == 's');
}
C
    python3 "$top/dist/amalgamate.py" perfmap out
    printf '#include "out/perfmap.h"\nint main(void) { return perfmap_both(5) != 5 + 1 + 3 + 1 + 5 + 100 + 7 + 7 + 1 + 7; }\n' >main.c
    gcc -std=c11 "${warnings[@]}" -o main main.c out/perfmap.c
    ./main
    gcc -c -o one.o out/perfmap.c
    [ "$(nm -g --defined-only one.o | awk '{ print $3 }')" = perfmap_both ]
}

# bats test_tags=all
@test "musl: no warning, no name too many, the same dumps, static" {
    require_musl
    clean with_musl c11 -O2
    same_dumps with_musl -static
}

# bats test_tags=all
@test "32 bits: no warning, no name too many, the same dumps, and files over 2 GiB" {
    require_bits32
    clean bits32 c11 -O2
    same_dumps bits32
    [ "$(perfjit dump --json there.dump | jq -s '.[0].elf_mach')" = 3 ]
    # A sparse file as long as a dump may get; the offsets of a writer with 32 bits for them would end at 2 GiB.
    nm -u jitdump.o | grep -q ' pwritev64'
}

# bats test_tags=all
@test "every compiler, standard and degree of optimisation, for each libc" {
    for standard in c11 gnu17; do # a minute each
        for level in -O0 -O2 -O3 -Os; do
            for compiler in gcc clang; do
                clean $compiler $standard $level
                clean $compiler $standard $level -DJITDUMP_STATIC -DJITUNWIND_STATIC
            done
            command -v musl-gcc >/dev/null && clean with_musl $standard $level
        done
    done
}

# bats test_tags=all
@test "musl: the libraries as they are built, static and shared, with threads, forks and kills" {
    require_musl
    local kernel=$PWD/kernel
    mkdir kernel
    ln -sfn /usr/include/linux /usr/include/asm-generic "/usr/include/$(gcc -print-multiarch)/asm" kernel
    env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s -C "$top" libraries BUILD="$PWD/built" CC="musl-gcc -idirafter $kernel" \
        CFLAGS='-O2 -Werror' >made 2>&1 || complain "$(cat made)"
    for library in jitdump perfmap jitunwind; do
        readelf -d "built/lib$library.so.0" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p' | same /dev/stdin <(echo libc.so)
    done
    with_musl -std=gnu11 -D_GNU_SOURCE -O2 -I"$top" -static -o torture "$top/tests/producers/torture.c" built/libjitdump.a -pthread
    with_musl -std=gnu11 -D_GNU_SOURCE -O2 -I"$top" -o shared "$top/tests/producers/both_libraries.c" -Lbuilt -ljitdump -lperfmap -pthread
    mkdir dumps shared.dumps
    timeout 300 ./torture stress dumps 20 1
    timeout 300 ./torture kill dumps 20 1
    LD_LIBRARY_PATH=$PWD/built ./shared shared.dumps >said
    [ "$(ls shared.dumps | wc -l)" -eq 6 ]
}
