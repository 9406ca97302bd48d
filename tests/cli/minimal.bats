# examples/minimal.c: what a newcomer reads first does what it says.
load helper

setup_file() {
    require_perf || return 0
    cd "$BATS_FILE_TMPDIR" || return
    recording minimal record_minimal
    # perf's warning that it had no time for all.
    grep -vE '^(Warning:|Processed .* lost .*|Check IO/CPU overload!|)$' said >err || true
    perfjit inject -q -i minimal.data -o minimal.jit.data
}

# With its source, as it was.
record_minimal() {
    cp "$here/../../examples/minimal.c" .
    mkdir dumps
    PERFJIT=dump,check JITDUMPDIR=$PWD/dumps record minimal.data --call-graph dwarf,2048 -e cpu-clock:u \
        "$BUILD/minimal" 0.3 >out 2>said
}

setup() {
    require_perf
    cd "$BATS_FILE_TMPDIR"
}

@test "minimal: it is read in ten minutes" {
    [ "$(wc -l <"$here/../../examples/minimal.c")" -le 200 ]
}

@test "minimal: it computes the same without a dump, and says nothing" {
    [ "$RECORDINGS" != anew ] || skip "it records nothing"
    [ ! -s err ] || { cat err; false; }
    [ "$("$BUILD/minimal" 0.1)" = "$(cat out)" ]
}

# bats test_tags=both
@test "minimal: its functions have names, lines, and stacks that are whole" {
    perf script -i minimal.jit.data --no-inline -F ip,sym 2>/dev/null | awk '
        BEGIN { RS = ""; FS = "\n" }
        $1 ~ /square|polynomial|twice_and_one/ { all++; whole += $NF ~ / _start$/ }
        END { print "# " whole " of " all " chains are whole"; exit !(all > 50 && whole == all) }'
    perf script -i minimal.jit.data -F ip,sym,srcline 2>/dev/null | grep -A1 ' polynomial$' >lines
    grep -q 'minimal.c:[0-9]' lines
    local first
    first=$(grep -n '"x x \* x \*"' minimal.c | cut -d: -f1)
    grep -q "minimal.c:$first\$" lines
    grep -q "minimal.c:$((first + 1))\$" lines
}

@test "minimal: its dump is sound: frames fit the code, and what was freed is unloaded" {
    perfjit check --json dumps/jitdump-*/jit-*.dump >checked
    jq -e '.dumps[0] | .sound and .frames.functions == .names.functions and .frames.functions > 2' checked
    jq -e '.dumps[0].records | .load == .unload and .load > 2' checked
}
