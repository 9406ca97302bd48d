#!/usr/bin/env bats
# perfjit inject --stacks unwind of native programs, in the forms in which compilers, linkers and packagers make them.
#
# Judge: the program (producers/one_way.c). Each of its functions has one caller, so that where a sample was taken tells the chain.
load helper

O=(-O2 -fomit-frame-pointer -pthread)
NO_TABLES=-fno-asynchronous-unwind-tables
# In a stored recording stand the programs themselves, and nothing in their stacks is the machine's.
STATIC=()
[ "$RECORDINGS" = live ] || STATIC=(-static -Wl,--eh-frame-hdr)

# The C library is in each of the static programs, and takes little room if they are in one recording.
setup_file() {
    require_perf || return 0
    cd "$BATS_FILE_TMPDIR" || return
    recording forms all_forms
}

all_forms() {
    pwd >place
    gcc_forms
    forms_of_tables
    forms_without_tables
}

setup() {
    require_perf
    cd "$BATS_FILE_TMPDIR"
}

# built NAME COMPILER OPTION...
built() {
    local name=$1
    shift
    "$1" "${STATIC[@]}" "${@:2}" -o "$name" -x "$([ "$1" = g++ ] && echo c++ || echo c)" "$here/../producers/one_way.c"
}

# ran NAME...: NAME.data, and NAME.log of what NAME says of itself.
ran() {
    for name; do
        perf record -q -k mono -e cpu-clock:u -F 1000 --call-graph dwarf,8192 -o "$name.data" "./$name" 0.3 >"$name.log" 2>"$name.err"
    done
}

# mapped_at DATA PROGRAM: where the code of PROGRAM is: start and size in memory, and place in the file.
mapped_at() {
    maps "$1" | sed -nE "s|.*\[0x([0-9a-f]+)\(0x([0-9a-f]+)\) @ (0x)?([0-9a-f]+) .*: r-xp $2\$|\1 \2 \4|p" | head -1
}

# judged NAME: "whole N short N wrong N other N" of perf's own unwinding into NAME.perf, and of ours into NAME.ours.
judged() {
    perfjit inject --stacks unwind -i "$1.data" -o "$1.unwind.data" 2>"$1.summary" || { cat "$1.summary" >&2; return 1; }
    local program
    program=$(cat place)/$1
    for form in perf:$1.data ours:$1.unwind.data; do
        perf script --no-inline -F ip,dso -i "${form#*:}" 2>/dev/null >chains.txt
        awk -v program="$program" -v mapped="$(mapped_at "${form#*:}" "$program")" -f "$here/one_way.awk" "$1.log" chains.txt >"$1.${form%%:*}" 2>>"$1.err"
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

# If the code itself has to show the frame, a compiler can find a way to hide a frame for an instruction.
nearly_whole() {
    for name; do
        judged "$name"
        read -r _ whole _ short _ wrong _ <"$name.ours"
        [ "$whole" -gt 50 ] && [ "$wrong" -eq 0 ] && [ "$short" -lt $((whole / 50)) ] || complain "$name: $(cat "$name.ours"), $(cat "$name.err")"
    done
}

gcc_forms() {
    built plain gcc "${O[@]}"
    built stripped gcc "${O[@]}" -s
    built small gcc "${O[@]}" -Os
    built slow gcc -O0 -pthread
    built fast gcc "${O[@]}" -O3 -fcf-protection=full -fstack-clash-protection -fstack-protector-all
    ran plain stripped small slow fast
}

# bats test_tags=both
@test "one way: gcc's programs, stripped, with every level of optimization" {
    all_whole plain stripped small slow fast
    # All that perf 6.1 can do is done.
    read -r _ perfs _ <plain.perf
    read -r _ ours _ <plain.ours
    [ "$ours" -ge "$perfs" ]
}

# bats test_tags=live
@test "one way: gcc's programs, static, static and position-independent, and at a fixed address" {
    built static gcc "${O[@]}" -static
    built static_stripped gcc "${O[@]}" -static -s
    built static_pie gcc "${O[@]}" -static-pie
    built fixed gcc "${O[@]}" -no-pie
    ran static static_stripped static_pie fixed
    all_whole static static_stripped static_pie fixed
}

# bats test_tags=live
@test "one way: g++'s and clang's" {
    command -v clang >/dev/null || skip "no clang"
    built cplusplus g++ "${O[@]}"
    built llvm clang "${O[@]}"
    built llvm_stripped clang "${O[@]}" -s
    ran cplusplus llvm llvm_stripped
    all_whole cplusplus llvm llvm_stripped
}

forms_of_tables() {
    built no_hdr gcc "${O[@]}" -Wl,--no-eh-frame-hdr
    built debug gcc "${O[@]}" $NO_TABLES -g
    cp debug debug_packed
    objcopy --compress-debug-sections debug_packed
    readelf -SW debug_packed | grep -qE '\.debug_frame .* C '
    objcopy --only-keep-debug debug debug_apart.debug
    objcopy -S --add-gnu-debuglink=debug_apart.debug debug debug_apart
    ran no_hdr debug debug_packed debug_apart
}

# bats test_tags=both
@test "one way: without .eh_frame_hdr, and with .debug_frame alone: as it is, compressed, and in a file of its own" {
    all_whole no_hdr debug debug_packed debug_apart
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

forms_without_tables() {
    built symbols gcc -O2 -pthread -fno-omit-frame-pointer $NO_TABLES
    built tables gcc "${O[@]}" $NO_TABLES -g
    mini symbols mini_symbols
    mini tables mini_tables -R .debug_info -R .debug_line
    # Damaged, it is not there: no harm.
    head -c 600 mini_tables.mini.xz >cut.xz
    cp mini_tables damaged
    objcopy --update-section .gnu_debugdata=cut.xz damaged
    ran symbols mini_symbols mini_tables damaged
    rm -f tables *.xz
}

# bats test_tags=both
@test "one way: without any tables, by frame pointers and symbols, also those in .gnu_debugdata; tables there, too" {
    nearly_whole symbols mini_symbols
    all_whole mini_tables
    judged damaged
    read -r _ whole _ short _ <damaged.ours
    [ "$short" -gt "$whole" ]
}
