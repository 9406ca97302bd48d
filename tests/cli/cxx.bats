# libjitdump for programs in C++: its headers, and what jitdump.hpp makes of them.  perf says whether functions have their names.
load helper

top=$here/../..
warnings=(-Wall -Wextra -Wpedantic -Wzero-as-null-pointer-constant -Wold-style-cast -Wconversion -Wsign-conversion -Wshadow -Werror)

setup() {
    cd "$BATS_TEST_TMPDIR"
}

# compile COMPILER STANDARD ARGUMENT...: with all warnings, and with neither exceptions nor run-time types, which nothing here needs.
compile() {
    local compiler=$1 standard=$2 more=()
    [ "$compiler" = clang++ ] || more=(-Wuseless-cast)
    "$compiler" -std="$standard" "${warnings[@]}" "${more[@]}" -fno-exceptions -fno-rtti -I"$BUILD/dist" "${@:3}"
}

functions=$top/tests/producers/cxx_functions.cc

# In make check only what is surely there.
compilers() {
    [ "$RECORDINGS" = stored ] && echo g++ || echo clang++
}

# says_its_functions STANDARD: what the program logged is what it says.
says_its_functions() {
    local more=
    [ "$1" = c++17 ] || more=$'by_span\nbare_by_span\n'
    perfjit dump --json jitdump-*/jit-*.dump >json
    (printf '%s\n' framed pushed moved gone bare in_pieces in_pieces interpreted cut; printf 'n%.0s' {1..5000}; echo; printf '%s' "$more") >names
    jq -r 'select(.type == "CODE_LOAD").name' json | same /dev/stdin names
    jq -r '.inlines // [] | .[] | .name, .call_file, .call_line, .decl_file' json >inlines
    printf '%s\n' inner framed.src 12 inner.src | same inlines /dev/stdin
    jq -r '.entries // [] | .[] | "\(.name):\(.line)"' json >lines
    printf '%s\n' framed.src:10 inner.src:31 framed.src:13 pushed.src:20 hot.src:40 cold.src:41 interpreted.src:50 | same lines /dev/stdin
    [ "$(jq -s '[.[] | select(.type == "CODE_UNWINDING_INFO")] | length' json)" = "$([ "$1" = c++17 ] && echo 6 || echo 7)" ]
    [ "$(jq -s '[.[] | select(.type == "CODE_MOVE" or .type == "CODE_UNLOAD")] | length' json)" = 6 ]
}

# bats test_tags=both
@test "jitdump.hpp in C++17 and C++20: no warning, and what it logs is what the program says" {
    for standard in c++17 c++20; do
        for compiler in $(compilers); do
            compile $compiler $standard -o functions "$functions" "$BUILD/libjitdump.a" -pthread
            ./functions >said # off: nothing is left
            run ! compgen -G 'jit*-*'
            PERFJIT=dump ./functions >said
            says_its_functions $standard
            rm -r jitdump-*
        done
    done
}

# Each function's loop has nearly all of its samples.
# bats test_tags=live
@test "what is recorded has its names, lines and callers, from C++17 and C++20" {
    require_perf
    compile g++ c++17 -O1 -o g++.functions "$functions" "$BUILD/libjitdump.a" -pthread
    compile clang++ c++20 -O1 -o clang++.functions "$functions" "$BUILD/libjitdump.a" -pthread
    for compiler in g++ clang++; do
        PERFJIT=dump record $compiler.data --call-graph dwarf ./$compiler.functions 0.5 >said
        perfjit inject -q -i $compiler.data
        perf script -i $compiler.jit.data -F ip,sym --no-inline >chains
        for name in inner pushed moved bare; do
            # A chain's first line is what ran; main called it, by way of run().  Bare has a name and nothing else.
            awk -v RS= -v name=$name '$2 == name { all++; whole += name == "bare" || / main\n/ }
                $2 == "inner" && $5 != "framed" { whole = -1e9 }
                END { print name, all + 0, whole; exit !(all >= 20 && all == whole) }' chains || complain "$(head -40 chains)"
        done
        # A library's own functions may have no name there, and a process in its exec none at all.
        perf script -G -i $compiler.jit.data -F ip,sym,dso --no-inline >leaves
        run ! grep -E '\<gone\>|\[unknown\] \(//anon\)' leaves
        perf script -i $compiler.jit.data -F ip,sym,srcline --no-inline | grep -A1 -w inner >lines
        grep -q 'inner.src:31' lines
    done
}

# asked_twice STANDARD COMPILER [OPTION...]: cxx_asked, asked for a dump and its end, twice.  Each has what is alive, whole, and what a
# thread adds has both of its pieces with their lines.
asked_twice() {
    local pid dump
    compile "$2" "$1" "${@:3}" -o asked "$top/tests/producers/cxx_asked.cc" "$BUILD/libjitdump.a" -pthread
    rm -f asked.out
    mkdir dumps
    JITDUMPDIR=$PWD/dumps ./asked >asked.out 3>&- &
    await test -s asked.out
    pid=$(head -1 asked.out)
    for _ in 1 2; do
        perfjit attach -q "$pid"
        perfjit detach -q "$pid"
    done
    await grep -qx 'asked twice' asked.out
    kill "$pid"
    wait "$pid"
    for dump in dumps/jitdump-*/jit-*.dump; do
        perfjit dump --json "$dump" | jq -c 'select(.type == "CODE_LOAD").name' | sort | uniq -c >loads
        grep -qx ' *10 "alive"' loads || complain "$(cat loads)"
        run ! grep -v '"alive"$\|"beside"$' loads
        perfjit dump --json "$dump" | jq -r 'select(.type == "CODE_DEBUG_INFO").entries[] | .name' | sort | uniq -c >lines
        [ "$(awk '$2 == "whole.src" { print $1 }' lines)" = 10 ]
        awk '/src/ { of[$2] = $1 } /"beside"/ { loads = $1 }
            END { exit !(of["hot.src"] == of["cold.src"] && of["hot.src"] * 2 == loads + 0) }' lines loads ||
            complain "$(cat lines loads)"
    done
    [ "$(ls -d dumps/jitdump-* | wc -l)" = 2 ]
    rm -r dumps
}

# bats test_tags=live
@test "poll: asked for its dump and for its end, twice, from C++17 and C++20 by g++ and clang++" {
    [ -n "${BRIEF:-}" ] || asked_twice c++17 g++
    [ -n "${BRIEF:-}" ] || asked_twice c++20 clang++
    asked_twice c++20 g++ -fsanitize=address,undefined
    asked_twice c++17 clang++ -O2
}

# polls NAME LAMBDA: a program that is asked and tells by LAMBDA.
polls() {
    cat >"$1.cc" <<END
#include <jitdump/jitdump.hpp>
#include <exception>
#include <unistd.h>
void throw_one(); // its end is in a file of its own, for compilers to know nothing of
int main()
{
    std::set_terminate([] { _exit(42); });
    perfjit::dump dump;
    if (dump.open(JITDUMP_ATTACHABLE) != 0 || write(1, "!", 1) != 1)
        return 1;
    alarm(600);
    while (!dump) {
        usleep(500);
        dump.poll($2);
    }
    return 0;
}
END
}

# bats test_tags=live
@test "poll: what may throw, opens, closes or takes something else does not compile; what throws all the same ends the process" {
    local exceptions=(-Wall -Wextra -Werror -I"$BUILD/dist" -std=c++17)
    polls throwing '[](const perfjit::dump &) {}'
    polls closing '[](perfjit::dump &asked) noexcept { asked.close(); }'
    polls const_closing '[](const perfjit::dump &asked) noexcept { asked.close(); }'
    polls thrown '[](const perfjit::dump &) noexcept { throw_one(); }'
    echo 'void throw_one(); void throw_one() { throw 1; }' >throw_one.cc
    for compiler in $(compilers); do
        run ! $compiler "${exceptions[@]}" -fsyntax-only throwing.cc
        [[ $output == *"what emits all code must be noexcept"* ]]
        compile $compiler c++17 -fsyntax-only throwing.cc # without exceptions nobody says so
        run ! $compiler "${exceptions[@]}" -fsyntax-only closing.cc
        [[ $output == *"what emits all code takes a const perfjit::dump &"* ]]
        run ! $compiler "${exceptions[@]}" -fsyntax-only const_closing.cc
        $compiler "${exceptions[@]}" -o thrown thrown.cc throw_one.cc "$BUILD/libjitdump.a" -pthread
        rm -f thrown.out
        ./thrown >thrown.out 3>&- &
        await test -s thrown.out
        perfjit attach -q -d "$PWD" $! || true # it is told, or not, that the process has gone
        wait $! && complain "it goes on" || [ $? = 42 ]
    done
}

@test "without memory a function is recorded by its name, and add says so; once there is some, all of it is" {
    cat >no_memory.cc <<'END'
#include <jitdump/jitdump.hpp>

extern "C" void *__libc_malloc(std::size_t);
extern "C" void *__libc_calloc(std::size_t, std::size_t);
extern "C" void *__libc_realloc(void *, std::size_t);
static bool no_memory = false;
extern "C" void *malloc(std::size_t bytes) { return no_memory ? nullptr : __libc_malloc(bytes); }
extern "C" void *calloc(std::size_t count, std::size_t bytes) { return no_memory ? nullptr : __libc_calloc(count, bytes); }
extern "C" void *realloc(void *old, std::size_t bytes) { return no_memory ? nullptr : __libc_realloc(old, bytes); }

static const unsigned char code[16] = {0xc3};

static int add(const perfjit::dump &dump, const char *name, int without)
{
    perfjit::function function;
    no_memory = without == 1;
    function.reset(name, code, sizeof code);
    no_memory = without == 1 || without == 2;
    function.line(code, "a.src", 1).line(code + 4, "b.src", 2);
    no_memory = without == 1 || without == 3;
    function.frame(perfjit::frame::leaf());
    no_memory = false;
    return function.add(dump);
}

int main()
{
    perfjit::dump dump;
    if (dump.open() != 0 || !dump)
        return 1;
    const int results[] = {add(dump, "all", 0), add(dump, "nothing", 1), add(dump, "no_lines", 2), add(dump, "no_frame", 3)};
    if (results[0] != 0)
        return 2;
    for (int i = 1; i < 4; i++)
        if (results[i] != -ENOMEM)
            return 2 + i;
    return dump.lost() != 0;
}
END
    compile g++ c++17 -Wno-old-style-cast -o no_memory no_memory.cc "$BUILD/libjitdump.a" -pthread
    PERFJIT=dump ./no_memory
    perfjit dump --json jitdump-*/jit-*.dump >json
    [ "$(jq -r 'select(.name).name' json | tr '\n' ' ')" = "all nothing no_lines no_frame " ]
    [ "$(jq -s '[.[] | select(.type == "CODE_DEBUG_INFO")] | length' json)" = 2 ]
    [ "$(jq -s '[.[] | select(.type == "CODE_UNWINDING_INFO")] | length' json)" = 2 ]
}

# bats test_tags=both
@test "the README's C++ example and its initialisers compile as C++20 and run" {
    {
        printf '#include <err.h>\n#include <cstdint>\n'
        sed -n '/^### C++$/,/^### /p' "$top/jitdump/README.md" | sed -n '/^```cpp$/,/^```$/{//d;p}' >example
        grep '^#include' example
        printf 'static const unsigned char entry[64] = {};\nint main()\n{\n    const unsigned entry_bytes = sizeof entry;\n'
        grep -v '^#include' example
        printf '}\n'
    } >example.cc
    {
        printf '#include <jitdump/cfi.h>\nint main()\n{\n    const uint64_t entry = 0x1000;\n    jitdump_code code = JITDUMP_CODE_INIT;\n'
        sed -n '/^### Inlined calls$/,/^### /p' "$top/jitdump/README.md" | sed -n '/^```c$/,/^```$/{//d;p}'
        printf '    return code.line_count != 3 || inlines[0].call_column != 27;\n}\n'
    } >inlined.cc
    for compiler in $(compilers); do
        compile $compiler c++17 -o example example.cc "$BUILD/libjitdump.a" -pthread
        compile $compiler c++20 -o example example.cc "$BUILD/libjitdump.a" -pthread
        PERFJIT=dump ./example
        [ "$(perfjit dump --json jitdump-*/jit-*.dump | jq -r 'select(.name).name')" = fib ]
        rm -r jitdump-*
        compile $compiler c++20 -Wno-missing-field-initializers -o inlined inlined.cc "$BUILD/libjitdump.a" -pthread
        ./inlined
    done
}

# A program that includes one in a header of its own passes its warnings on.  The headers in libraries.bats, and the code compiled
# above, show most.
# bats test_tags=all
@test "each header alone, by all warnings, in C++11 to C++20" {
    for compiler in g++ clang++; do
        for header in jitdump.h jitdump/cfi.h jitdump/trampoline.h perfmap.h jitunwind.h jitdump/cfi.hpp jitdump/memory.hpp jitdump/jitdump.hpp; do
            printf '#include <%s>\nint unused();\nint unused() { return 0; }\n' $header >alone.cc
            for standard in c++11 c++17 c++20; do
                [[ $header == *.hpp && $standard == c++11 ]] || compile $compiler $standard -fsyntax-only alone.cc
            done
        done
    done
}

# Not even weak symbols with names that a program of its own might have.
@test "jitdump.hpp adds no symbol but those in its namespace" {
    compile g++ c++17 -O0 -c -o functions.o "$functions"
    nm -C --defined-only functions.o | grep -v ' [trbdn] ' | sed 's/^[0-9a-f]* //' >symbols
    [ "$(wc -l <symbols)" -gt 20 ]
    run ! grep -vE '^[A-Za-z] (.* )?(perfjit|std|void|bool|int|unsigned long|__gnu_cxx|decltype|main|operator new|typeinfo|DW\.)' symbols
}
