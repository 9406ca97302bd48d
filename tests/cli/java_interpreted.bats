#!/usr/bin/env bats
# The frames of HotSpot's interpreter by name: each chain is what the program's own Thread.getStackTrace says, down to main or
# Thread.run, with its lines, in every command.
load helper

setup() {
    cd "$BATS_TEST_TMPDIR" || return
    recording chains record_chains
}

# Two threads walk through calls of every kind, and log who called spin.
record_chains() {
    local agent=${BUILD%/recorded}/libperfjit-java.so often=499
    [ -e "$agent" ] || skip "no JDK was there when it was built"
    [ "$(uname -m)" = x86_64 ] || skip "the frames are x86-64's"
    [ "$RECORDINGS" != anew ] || often=99
    javac -g -d classes "$here/../producers/runtimes/Chains.java" || return
    JITDUMPDIR=$PWD perf record -q -k mono -F $often -D 600 -e cpu-clock:u --call-graph dwarf,8192 -o in.data java -Xint -XX:+UseSerialGC \
        -XX:+UnlockDiagnosticVMOptions -XX:+ShowHiddenFrames -agentpath:"$agent" -cp classes Chains 1900 || return
    [ "$RECORDINGS" = anew ] || return 0
    "$here/../recordings/known_methods.py" jitdump-*/jit-*.dump '.* (Chains|java.lang.Thread\.run)'
    rm -r classes
}

# chains_of INJECTED: they are the program's.
chains_are_the_programs() {
    perf script -i "$1" -F ip,sym >script 2>/dev/null
    perf script -i "$1" --show-mmap-events 2>/dev/null | grep 'PERF_RECORD_MMAP.*/jit-x86_64\.so' >maps
    run "$here/java_chains.py" script truth "$1".dso/*/jit-x86_64.so maps
    [ "$status" -eq 0 ] || complain "$output"
    echo "$output"
}

# bats test_tags=both
@test "each chain has the methods and lines of Thread.getStackTrace, from spin to main or Thread.run" {
    perfjit inject -i in.data -o out.data
    chains_are_the_programs out.data
    # What was sampled is the method, and not the interpreter.
    [ "$(perf script -G -i out.data -F ip,sym 2>/dev/null | grep -c 'long Chains.spin(int) \[interpreted\]')" -gt 10 ] || complain "$(perf script -G -i out.data -F ip,sym | head -50)"
    perf report -i out.data --stdio --no-children -g none 2>/dev/null >report
    grep -q '\[\.\] long Chains.spin(int) \[interpreted\]' report || complain "$(cat report)"
}

# bats test_tags=both
@test "report, flamegraph, every export and check: the same methods, of the recording and of what inject made" {
    perfjit inject -i in.data -o out.data
    local from format all=() names
    for from in in.data out.data; do
        perfjit report --json $from >report.json
        jq -e '[.functions[] | select(.name | test("Chains.spin"))] | length == 1 and .[0].kind == "interpreted"' report.json ||
            complain "$(jq -c '.functions[] | select(.name | test("spin"))' report.json)"
        perfjit export --format folded $from | sort >"$from.folded"
        all+=("$from.folded")
        for format in pprof firefox speedscope callgrind; do
            perfjit export --format $format -o "$from.$format" $from
        done
        grep -q 'Chains\$Derived.go' "$from.speedscope"
        grep -q 'Chains\$Derived.go' "$from.firefox"
        grep -q 'Chains\$Derived.go' "$from.callgrind"
        perfjit flamegraph -o "$from.html" $from
        grep -q 'Chains\$Derived.go' <(data "$from.html")
    done
    cmp "${all[@]}" || complain "$(diff "${all[@]}" | head -20)"
    names=$(grep -c 'Chains.main.*Chains.work.*Chains.next.*Chains.spin' in.data.folded)
    [ "$names" -gt 5 ] || complain "$(head -c 2000 in.data.folded)"
    perfjit check in.data >check || complain "$(cat check)"
    perfjit diff --base in.data --new out.data >diff || complain "$? $(cat diff)"
    perfjit diff -q --json diff.json --base in.data --new out.data
    jq -e '[.functions[] | select(.name | test("Chains.spin"))] | length == 1' diff.json || complain "$(cat diff)"
}

# bats test_tags=both
@test "the dump says where frames have what; without that, or without the functions, frames are the interpreter's" {
    local dump
    dump=$(ls jitdump-*/jit-*.dump)
    perfjit dump --json "$dump" | jq -s -e 'map(select(.type == "INTERPRETER_FRAME")) | length == 1 and (.[0] | .function_offset == -24 and .position_offset == -64 and .frame_register == 6)'
    perfjit dump --verbose --json "$dump" | jq -s -e 'map(select(.name == "long Chains.next(int, long) [interpreted]")) | .[0].file == "Chains.java" and (.[0].lines | length == 4)'
    cp "$dump" whole
    for id in 06 07; do # INTERPRETER_FRAME, INTERPRETED_FUNCTION: unknown ids
        LC_ALL=C sed "s/\\x$id\\x00\\x4a\\x50/\\x7f\\x00\\x4a\\x50/g" whole >"$dump"
        perfjit export --format folded in.data >folded || [ $? -eq 3 ]
        ! grep -q Chains folded || complain "$(head -c 2000 folded)"
        grep -q Interpreter folded || complain "$(head -c 2000 folded)"
    done
}

# bats test_tags=live
@test "perf inject --jit skips the records" {
    mkdir other-home
    HOME=$PWD/other-home run perf inject --jit -i in.data -o theirs.data
    [ "$status" -eq 0 ] || complain "$output"
    [ -n "$(ls jitdump-*/jitted-*.so 2>/dev/null || ls ./jitted-*.so)" ]
}
