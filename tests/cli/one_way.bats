#!/usr/bin/env bats
# perfjit inject --stacks unwind of native programs, in the forms in which compilers, linkers and packagers make them.
#
# Judge: the program (producers/one_way.c). Each of its functions has one caller, so that where a sample was taken tells the chain.
load helper

O=(-O2 -fomit-frame-pointer -pthread)
NO_TABLES=-fno-asynchronous-unwind-tables

setup() {
    require_perf
    cd "$BATS_TEST_TMPDIR"
}

# built NAME COMPILER OPTION...
built() {
    local name=$1
    shift
    "$@" -o "$name" -x "$([ "$1" = g++ ] && echo c++ || echo c)" "$here/../producers/one_way.c"
}

# judged NAME: "whole N short N wrong N other N" of perf's own unwinding into NAME.perf, and of ours into NAME.ours.
judged() {
    perf record -q -k mono -e cpu-clock:u -F 2000 --call-graph dwarf,16384 -o "$1.data" "./$1" 0.3 >"$1.log" 2>"$1.err"
    perfjit inject --stacks unwind -i "$1.data" -o "$1.unwind.data" 2>"$1.summary" || { cat "$1.summary" >&2; return 1; }
    for form in perf:$1.data ours:$1.unwind.data; do
        perf script --no-inline -F ip,dso -i "${form#*:}" 2>/dev/null >chains.txt
        awk -v program="$PWD/$1" -f "$here/one_way.awk" "$1.log" chains.txt >"$1.${form%%:*}" 2>>"$1.err"
    done
    echo "# $1: $(cat "$1.ours"), perf: $(cat "$1.perf")" >&3
}

# all_whole NAME...: no frame of a chain is wrong, and none is missing.
all_whole() {
    for name; do
        judged "$name"
        read -r _ whole _ short _ wrong _ other <"$name.ours"
        [ "$whole" -gt 50 ] && [ "$wrong" -eq 0 ] && [ "$short" -eq 0 ] && [ "$other" -lt $((whole / 10)) ] ||
            complain "$name: $(cat "$name.ours"), $(cat "$name.err")"
    done
}

# Where the code has to tell, a compiler can find a way to hide a frame for an instruction.
nearly_whole() {
    for name; do
        judged "$name"
        read -r _ whole _ short _ wrong _ <"$name.ours"
        [ "$whole" -gt 50 ] && [ "$wrong" -eq 0 ] && [ "$short" -lt $((whole / 50)) ] || complain "$name: $(cat "$name.ours"), $(cat "$name.err")"
    done
}

# bats test_tags=test
@test "one way: gcc's programs, stripped, static, with every level of optimization" {
    built plain gcc "${O[@]}"
    built stripped gcc "${O[@]}" -s
    built static gcc "${O[@]}" -static
    built static_stripped gcc "${O[@]}" -static -s
    built static_pie gcc "${O[@]}" -static-pie
    built small gcc "${O[@]}" -Os
    built slow gcc -O0 -pthread
    built fast gcc "${O[@]}" -O3 -fcf-protection=full -fstack-clash-protection -fstack-protector-all
    built fixed gcc "${O[@]}" -no-pie
    all_whole plain stripped static static_stripped static_pie small slow fast fixed
    # What perf 6.1 can do is done.
    read -r _ perfs _ <plain.perf
    read -r _ ours _ <plain.ours
    [ "$ours" -ge "$perfs" ]
}

@test "one way: g++'s and clang's" {
    command -v clang >/dev/null || skip "no clang"
    built cplusplus g++ "${O[@]}"
    built llvm clang "${O[@]}"
    built llvm_stripped clang "${O[@]}" -s
    all_whole cplusplus llvm llvm_stripped
}

@test "one way: without .eh_frame_hdr, and with .debug_frame alone: as it is, compressed, and in a file of its own" {
    built no_hdr gcc "${O[@]}" -Wl,--no-eh-frame-hdr
    built no_hdr_static gcc "${O[@]}" -static -Wl,--no-eh-frame-hdr
    built debug gcc "${O[@]}" $NO_TABLES -g
    cp debug debug_packed
    objcopy --compress-debug-sections debug_packed
    readelf -SW debug_packed | grep -qE '\.debug_frame .* C '
    objcopy --only-keep-debug debug debug_apart.debug
    objcopy -S --add-gnu-debuglink=debug_apart.debug debug debug_apart
    all_whole no_hdr no_hdr_static debug debug_packed debug_apart
}

# mini FULL NAME OPTION...: NAME is FULL, stripped, with the rest of it in .gnu_debugdata, but for what objcopy's OPTIONs remove.
mini() {
    local full=$1 name=$2
    shift 2
    objcopy --only-keep-debug "$@" "$full" "$name.mini"
    xz "$name.mini"
    objcopy -S "$full" "$name"
    objcopy --add-section .gnu_debugdata="$name.mini.xz" "$name"
    ! readelf -SW "$name" | grep -E '\.(symtab|debug_frame)' || complain "it is there"
}

@test "one way: without any tables, by frame pointers and symbols, also those in .gnu_debugdata; tables there, too" {
    built symbols gcc -O2 -pthread -fno-omit-frame-pointer $NO_TABLES
    built tables gcc "${O[@]}" $NO_TABLES -g
    mini symbols mini_symbols
    mini tables mini_tables -R .debug_info -R .debug_line
    nearly_whole symbols mini_symbols
    all_whole mini_tables
    # Damaged, it is not there: no harm.
    head -c 600 mini_tables.mini.xz >cut.xz
    cp mini_tables damaged
    objcopy --update-section .gnu_debugdata=cut.xz damaged
    judged damaged
    read -r _ whole _ short _ <damaged.ours
    [ "$short" -gt "$whole" ]
}
