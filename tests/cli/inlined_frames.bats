#!/usr/bin/env bats
# perfjit inject --inlines frames: inlined calls of JIT code as frames of the call chains.
#
# Judge: the compiler's own log of what it inlined where, on every frame of every sample (inlined_frames.awk).
load helper

R=(perf record -q -k mono -F 1000 -e cpu-clock:u)

setup_file() {
    require_perf || return 0
    cd "$BATS_FILE_TMPDIR" || return
    sed 's/repeat(@is_even, 1000, 1500)/repeat(@is_even, 60, 25000)/' "$here/../../examples/tinyjit/demo.tj" >demo.tj
    tinyjit dwarf dwarf,8192 --no-frame-pointer
    tinyjit fp fp
}

# tinyjit NAME CALL_GRAPH OPTION...: NAME.data, and NAME.log of what is inlined where.
tinyjit() {
    recording "$1" record_tinyjit "$@"
}

record_tinyjit() {
    PERFJIT=dump JITDUMPDIR=$PWD "${R[@]}" --call-graph "$2" -o "$1.data" "$BUILD/tinyjit" "${@:3}" --inline-log "$1.log" --seconds 0.6 demo.tj >out
}

setup() {
    require_perf
    cd "$BATS_FILE_TMPDIR"
}

# inject NAME FORM OPTION...: NAME.FORM.data
inject() {
    perfjit inject -q -i "$1.data" -o "$1.$2.data" "${@:3}" || complain "perfjit inject ${*:3}: status $?"
}

# An offset tells the place in a body if each has its row.
frames() {
    perf script --no-inline --max-stack 2000 -F ip,sym,symoff -i "$1" 2>/dev/null
}

# right NAME RETURNS: the output with frames is as the log and the output without say.
right() {
    local options=(--rows body --stacks unwind)
    inject "$1" dwarf "${options[@]}" --inlines dwarf
    inject "$1" frames "${options[@]}" --inlines frames
    for form in dwarf frames; do frames "$1.$form.data" >"$1.$form.txt"; done
    awk -v returns="$2" -f "$here/inlined_frames.awk" "$1.log" "$1.dwarf.txt" "$1.frames.txt" >"$1.counts" || complain "$(cat "$1.counts")"
    echo "# $1: $(cat "$1.counts")" >&3
}

# bats test_tags=both
@test "inlined frames: of stacks that are unwound, what the compiler's log says on every frame" {
    right dwarf 0
}

@test "inlined frames: of frame pointers, the calls in front of the return addresses" {
    right fp 1
}

@test "inlined frames: the address of a sample stays, so that perf annotate finds it" {
    for name in dwarf fp; do
        for form in dwarf frames; do
            [ -e $name.$form.data ] || inject $name $form --rows body --stacks unwind --inlines $form
            perf script -G -F tid,time,event,ip --ns -i $name.$form.data 2>/dev/null >$name.$form.samples
        done
        same $name.frames.samples $name.dwarf.samples
    done
}

@test "inlined frames: perf report has a row for them, one name each, in one file with the code" {
    inject fp rows --inlines frames
    perf report --stdio --children -g none --sort sym,dso -i fp.rows.data 2>/dev/null | grep '(inlined)' >rows.txt
    grep -q 'tj::collatz_length (inlined)' rows.txt
    awk '{ sub(/^[ 0-9.%]*/, ""); sub(/ jit-.*/, ""); if (seen[$0]++) exit 1 }' rows.txt || complain "$(cat rows.txt)"
}

@test "inlined frames: the debug info has the lines, and no inlined calls, which perf would show again" {
    for form in frames none; do
        inject dwarf debug --stacks unwind --inlines $form
        for image in dwarf.debug.data.dso/*/*.so; do
            eu-elflint --quiet --gnu-ld "$image"
            readelf --debug-dump=info "$image" 2>/dev/null >info.txt
            grep -q DW_TAG_subprogram info.txt
            ! grep DW_TAG_inlined_subroutine info.txt || complain "it is there"
            readelf --debug-dump=decodedline "$image" 2>/dev/null | grep -q 'demo.tj'
        done
        rm -r dwarf.debug.data dwarf.debug.data.dso
    done
}

@test "inlined frames: none in the chains with --inlines none, nor where perf unwinds" {
    inject fp none --inlines none
    ! perf script -F ip,sym --time 0%-5% -i fp.none.data 2>/dev/null | grep 'tj::.*(inlined)' || complain "it is there"
    inject dwarf kept --stacks keep --inlines frames
    inject dwarf keep --stacks keep --inlines dwarf
    same_files dwarf.kept.data.dso dwarf.keep.data.dso
}

@test "inlined frames: the default where stacks are unwound here; else the debug info has them" {
    inject dwarf default
    inject dwarf frames --inlines frames
    inject fp default
    inject fp dwarf --inlines dwarf
    inject dwarf kept --stacks keep
    cmp <(perf script --no-inline -F ip,sym -i dwarf.default.data 2>/dev/null) <(perf script --no-inline -F ip,sym -i dwarf.frames.data 2>/dev/null)
    perf script --no-inline -F ip,sym -i dwarf.default.data 2>/dev/null | grep -q 'tj::.*(inlined)'
    cmp <(perf script --no-inline -F ip,sym -i fp.default.data 2>/dev/null) <(perf script --no-inline -F ip,sym -i fp.dwarf.data 2>/dev/null)
    for form in fp.default dwarf.kept; do
        ! perf script --no-inline -F ip,sym -i $form.data 2>/dev/null | grep '(inlined)' || complain "it is there"
        readelf --debug-dump=info $form.data.dso/*/*.so $form.data.dso/*.so 2>/dev/null | grep -q DW_TAG_inlined_subroutine
    done
}

# bats test_tags=live
@test "inlined frames: where something is mapped at their addresses, they go elsewhere" {
    printf '%s\n' '#include <fcntl.h>' '#include <sys/mman.h>' '__attribute__((constructor)) static void take(void)' \
        '{ mmap((void *)0x100000000000, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, open("/proc/self/exe", O_RDONLY), 0); }' >taken.c
    gcc -shared -fPIC -o taken.so taken.c
    PERFJIT=dump JITDUMPDIR=$PWD ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0" \
        "${R[@]}" --call-graph fp -o taken.data env LD_PRELOAD="$PWD/taken.so" \
        "$BUILD/tinyjit" --inline-log taken.log --seconds 0.5 demo.tj >out
    perf script --show-mmap-events -i taken.data 2>/dev/null | grep -q '\[0x100000000000(0x1000)'
    right taken 1
    perf script --show-mmap-events -i taken.frames.data 2>/dev/null >maps.txt
    grep -q '\[0x100000000000(0x1000).*tinyjit' maps.txt
    grep -q '\[0x110000000000(0x.*\.so' maps.txt
}

record_packed() {
    PERFJIT=dump JITDUMPDIR=$PWD "${R[@]}" -z --call-graph fp -o packed.data "$BUILD/tinyjit" --inline-log packed.log --seconds 0.5 demo.tj >out
}

record_events() {
    PERFJIT=dump JITDUMPDIR=$PWD perf record -q -k mono -F 1000 -e cpu-clock/call-graph=dwarf,stack-size=8192/u -e task-clock/call-graph=fp/u \
        -e page-faults/call-graph=no/ -o events.data "$BUILD/tinyjit" --seconds 0.5 demo.tj >out
}

@test "inlined frames: a stream, a compressed recording, and events with stacks, with chains and without" {
    recording packed record_packed
    right packed 1
    recording events record_events
    inject events frames --stacks unwind --inlines frames
    for event in cpu-clock task-clock; do
        perf script --no-inline -F event,ip,sym -i events.frames.data 2>/dev/null |
            awk -v event=$event 'BEGIN { RS = "" } index($1, event) && /\(inlined\)/ { count++ } END { exit count < 20 }' || complain $event
    done
    perfjit inject -q -i - -o - --inlines frames <fp.data >fp.stream
    [ "$(perf script -i - --no-inline -F ip,sym <fp.stream 2>/dev/null | grep -c 'inlined')" -gt 100 ]
}

# The functions of each process: see inlined_children.c.
record_children() {
    PERFJIT=dump JITDUMPDIR=$PWD "${R[@]}" --call-graph fp -o children.data "$BUILD/producers/inlined_children"
}

@test "inlined frames: children have their parents', and their own" {
    recording children record_children
    inject children frames --inlines frames
    # Compiled functions use rbp for other things: where the sample is in one, what the kernel takes for its caller may be anything.
    perf script --no-inline -F pid,ip,sym,dso -i children.frames.data 2>/dev/null | awk 'BEGIN { RS = ""; FS = "\n" } {
        if ($2 ~ / \(\/[^()]*\)$/ && $2 !~ /\.dso\/[^()]*\)$/) next
        pid = $1; sub(/ *$/, "", pid); for (i = 2; i <= 3; i++) { sub(/^[ \t]*[0-9a-f]+ /, "", $i); sub(/ \([^()]*\)$/, "", $i) }
        if (($2 $3) ~ /parents|shared|childs/) print pid, $2 "<" $3 }' | sort | uniq -c >children.txt
    # Each process has what it ran, with its own inlined call, and nothing else.
    awk '{ name = $3; sub(/_inner$/, "", name); if ($4 != "(inlined)<" name || NF != 4) exit 1 }' children.txt || complain "$(cat children.txt)"
    [ "$(awk '$1 > 20 { print $3 }' children.txt | sort | xargs)" = "childs_inner parents_inner parents_inner parents_inner shared_inner shared_inner" ] ||
        complain "$(cat children.txt)"
}
