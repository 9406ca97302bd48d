#!/usr/bin/env bats
# Stacks that go through JIT code, by the unwind tables of the dump: every shape that such a table comes in.
# The shapes and their code: tests/producers/unwind_shapes.c.
load helper
load native_programs

setup() {
    require_perf
    cd "$BATS_TEST_TMPDIR"
}

record_shape() {
    mkdir dump
    perf record -q -k mono -e cpu-clock -F 1000 --call-graph dwarf,2048 -o perf.data \
        "$BUILD/producers/unwind_shapes" "$1" dump 0.4 >record.log 2>&1 || complain "$(cat record.log)"
}

# Leaves the chains of perf inject in expected.txt.
record_shape_and_oracle() {
    record_shape "$1"
    perf inject --jit -i perf.data -o perf.jit.data
    chains >expected.txt
    rm -f perf.jit.data dump/*.so
}

inject() { # LAYOUT, expected status [OPTION...]
    run perfjit inject --layout "$1" -i perf.data -o perf.jit.data "${@:3}"
    echo "$output"
    [ "$status" -eq "$2" ]
}

# A line for each sample's chain, from the first JIT frame on: "inner;middle;outer;main;...".
chains() {
    perf script --no-inline -F ip,sym -i perf.jit.data 2>perf.err |
        awk 'BEGIN { RS = "" } {
            chain = ""; on = 0
            for (i = 2; i <= NF; i += 2) {
                if ($i == "inner" || $i == "solo") on = 1
                if (on) chain = chain $i ";"
            }
            if (on) print chain
        }'
}

# What perf shows of the new file is what it showed of perf inject's, which perf 6.1 made and unwound in a stored recording.  A later
# perf may go on where that one had no name for a frame and stopped.
as_expected() {
    cmp expected.txt chains.txt && return
    [[ $RECORDINGS = stored && $(command perf --version) != *" 6.1."* ]] || return
    paste -d' ' expected.txt chains.txt | awk '
        $1 == $2 { next }
        NF == 2 && sub(/\[unknown\];$/, "", $1) && index($2, $1) == 1 && $2 !~ /unknown/ && $2 ~ /;_start;$/ { next }
        { print; bad++ }
        END { exit bad > 0 }' >&2
}

# All chains are whole: both kinds occur, and none is anything else.
expect_whole_chains() {
    chains >chains.txt
    sort chains.txt | uniq -c
    [ "$(grep -c '^inner;middle;outer;main;.*_start;$' chains.txt)" -gt 20 ]
    [ "$(grep -c '^solo;main;.*_start;$' chains.txt)" -gt 20 ]
    ! grep -qvE '^(inner;middle;outer|solo);main;.*_start;$' chains.txt || complain "it is there"
}

# readelf and elfutils read the same FDEs, warn of nothing, and the search table is sorted and has each of them.
expect_clean_tables() {
    for so in $(elf_files perf.jit.data.dso); do
        readelf --debug-dump=frames "$so" >frames.txt 2>frames.err
        # eu-readelf -w also looks for .debug_info, and says that there is none.
        eu-readelf -w "$so" >eu.txt 2>eu.err || grep -q 'No DWARF information found' eu.err
        grep -v 'No DWARF information found' eu.err >>frames.err || true
        [ ! -s frames.err ] || { cat frames.err; false; }
        run eu-elflint --gnu-ld "$so"
        [ "$output" = "No errors" ]
        grep -oE 'pc=[0-9a-f.]+' frames.txt | sed -E 's/pc=0*([0-9a-f]+)\.\.0*([0-9a-f]+)/\1 \2/' >ranges.txt
        awk '/initial_location/ { sub(/.*offset: 0x/, ""); sub(/\)/, ""); start = $0 }
             /address_range/ { sub(/.*end offset: 0x/, ""); sub(/\)/, ""); print start, $0 }' eu.txt >eu-ranges.txt
        cmp ranges.txt eu-ranges.txt
        awk '/fde_count:/ { on = 1 } on && /^ *0x[0-9a-f]+ \(offset/ { sub(/.*offset: *0x/, ""); sub(/\).*/, ""); print }' \
            eu.txt >table.txt
        cut -d' ' -f1 ranges.txt | awk '{ print length($0), $0 }' | sort -k1n -k2 | cut -d' ' -f2 >sorted.txt
        cmp table.txt sorted.txt
        [ "$(wc -l <table.txt)" -gt 0 ]
        [ "$(wc -l <table.txt)" -eq "$(hdr_count "$so")" ]
    done
}

# fde_count of .eh_frame_hdr: the u32 at its offset 8.
hdr_count() {
    local offset
    offset=$(readelf -SW "$1" | awk '$2 == ".eh_frame_hdr" || $3 == ".eh_frame_hdr" { for (i = 1; i <= NF; i++) if ($i == "PROGBITS") print $(i + 2) }')
    od -An -t u4 -j $((16#$offset + 8)) -N 4 "$1" | tr -d ' '
}

# perf unwinds by the tables in the ELF files, or perfjit has done it.  In make check in both layouts where the shape is perf's own.
check_sound_shape() {
    local layout layouts="image function"
    [ -z "${BRIEF:-}" ] || [ "$1" = frame-first ] || layouts=image
    recording "$1" record_shape "$1"
    for layout in $layouts; do
        inject $layout 0 --stacks keep
        expect_whole_chains
        expect_clean_tables
        inject $layout 0
        expect_whole_chains
    done
}

# bats test_tags=both
@test "unwind: frame first, header last, as perf reads it" {
    check_sound_shape frame-first
}

@test "unwind: header first, as the specification's text has it" {
    check_sound_shape header-first
}

@test "unwind: mapped_size 0" {
    check_sound_shape mapped-size-0
}

@test "unwind: no zero length at the end" {
    check_sound_shape no-end
}

@test "unwind: one blob for all functions behind a header with an absolute pointer" {
    check_sound_shape absolute-header
}

@test "unwind: one blob for all functions without a header" {
    check_sound_shape one-blob
}

@test "unwind: all blobs in front of all loads" {
    check_sound_shape blobs-before
}

@test "unwind: all blobs in front of all loads, in another order" {
    check_sound_shape blobs-swapped
}

@test "unwind: an empty header leaves the frame pointers to work, as with perf inject" {
    recording empty-header record_shape_and_oracle empty-header
    [ "$(grep -c '^inner;middle;outer;main;' expected.txt)" -gt 20 ]
    for layout in image function; do
        inject $layout 0 --stacks keep
        chains >chains.txt
        as_expected
        inject $layout 0
        expect_whole_chains
    done
}

@test "unwind: without tables the chains are those of perf inject" {
    recording none record_shape_and_oracle none
    [ "$(wc -l <expected.txt)" -gt 40 ]
    for layout in image function; do
        inject $layout 0 --stacks keep
        chains >chains.txt
        as_expected
        inject $layout 0
        expect_whole_chains
    done
}

check_garbage() {
    local layout stacks behind
    recording "$1" record_shape "$1"
    for layout in image function; do for stacks in keep unwind; do
        inject $layout 3 --stacks $stacks
        [[ "$output" == *"1 x broken unwind table"* ]]
        [[ "$output" == *"jit-"*".dump: record 2 at 0x"* ]]
        chains >chains.txt
        sort chains.txt | uniq -c
        # perf ends the chain at the function whose table it was; perfjit follows its code.  The neighbours' tables work.
        behind='$'
        [ $stacks = keep ] || behind='outer;main;.*_start;$'
        [ "$(grep -c "^inner;middle;$behind" chains.txt)" -gt 20 ]
        [ "$(grep -c '^solo;main;.*_start;$' chains.txt)" -gt 20 ]
        ! grep -qvE "^(inner;middle;$behind|solo;main;.*_start;$)" chains.txt || complain "it is there"
    done; done
}

@test "unwind: a table of noise costs its function the table and no neighbour anything" {
    check_garbage garbage
}

@test "unwind: a CIE longer than its record costs its function the table and no neighbour anything" {
    check_garbage garbage-length
}

# node's own tables, and its builtins, whose tables are empty: what perf inject unwinds, perfjit does, frame by frame.  Stacks
# that perfjit unwinds have all frames that perf has.  They also have direct callers that perf leaves out in such builtins.
# bats test_tags=all
@test "unwind: node's chains are those of perf inject" {
    cat >work.js <<'END'
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
function sum(n) { let s = 0; for (let i = 0; i < n; i++) s += [i, fib(10)].map(x => x + 1)[0]; return s; }
const ran = () => process.cpuUsage().user / 1000; // ms, however busy the machine is
let total = 0;
while (ran() < 1000) total += fib(18) + sum(200);
console.log(total);
END
    perf record -q -k mono -e cpu-clock -F 500 --call-graph dwarf,8192 -o perf.data \
        node --perf-prof --perf-prof-unwinding-info work.js >record.log 2>&1
    perf inject --jit -i perf.data -o expected.data
    # Addresses in call chains are relative to the ELF file, which is another; names, offsets and order are not.
    frames() {
        perf script --ns -F time,ip,sym,symoff --no-inline -i "$1" 2>/dev/null | sed -E 's/^[ \t]+[0-9a-f]+ //'
    }
    frames expected.data >expected.txt
    [ "$(grep -cE '(JS|LazyCompile):\*fib' expected.txt)" -gt 100 ]
    for layout in image function; do
        inject $layout 0 --stacks keep
        frames perf.jit.data >frames.txt
        echo "# node, $layout: $(wc -l <frames.txt) lines, perf inject $(wc -l <expected.txt)" >&3
        cmp expected.txt frames.txt
    done
    inject image 0 --rows body
    frames perf.jit.data >frames.txt
    awk -v ours=frames.txt -v most_others=20 -f "$here/no_frame_lost.awk" expected.txt >&3
}
