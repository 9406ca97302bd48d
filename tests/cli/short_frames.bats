# Trampolines that only a perf map names: neither tables nor bytes, and no frame pointer.  The judge: the program, whose
# every trampoline is called by `caller`, and that by main.
load helper

setup_file() {
    require_perf || return 0
    [ "$(uname -m)" = x86_64 ] || return 0
    cd "$BATS_FILE_TMPDIR" || return
    for others in direct pointers; do
        recording $others record_short_frames $others
        perfjit inject -i $others.data -o $others.out.data 2>$others.err
        perf script -i $others.out.data -F ip,sym | chains >$others.chains
        [ "$RECORDINGS" != live ] || rm -f "/tmp/perf-$(cat $others.pid).map"
    done
}

record_short_frames() {
    perf record -q -k 1 -e cpu-clock -F 2000 --call-graph dwarf,2048 -o "$1.data" "$BUILD/producers/short_frames" 1 "$1" >"$1.pid"
}

setup() {
    require_perf
    [ "$(uname -m)" = x86_64 ] || skip "the trampolines are x86-64's"
    cd "$BATS_FILE_TMPDIR"
}

# For each sample in a trampoline's callee: its name, and those of the two frames behind it.
chains() {
    awk 'NF == 0 { called = 0; if (line != "") print line; line = ""; n = 0; next }
         { name = $2; sub(/\+0x.*/, "", name) }
         name ~ /^tramp_/ && called { line = name; n = 0; next }
         name == "leaf" { called = 1 }
         line != "" && n < 2 { line = line " " name; n++ }
         END { if (line != "") print line }'
}

# Every one of FILE's trampolines that pushes what it has on the stack goes on at its caller, but for a few.
assert_pushed_are_found() {
    for kind in 0 8 push1 push2 push2_8 push3 push4_8 push5 push6_8; do
        [ "$(grep -c "^tramp_$kind caller main$" "$1")" -gt 10 ] || complain "tramp_$kind: $(grep "^tramp_$kind\b" "$1" | sort | uniq -c)"
        ! grep "^tramp_$kind$" "$1" || complain "tramp_$kind ends there"
    done
}

# A chain goes on at the caller, or ends.
assert_none_is_wrong() {
    [ -s "$1" ] || complain "$1 is empty"
    ! grep -vE '^tramp_[a-z0-9_]+( caller main)?$' "$1" || complain "these callers have not called"
}

# bats test_tags=both
@test "short frames: what was pushed, or no more than aligns the stack, is stepped over" {
    assert_pushed_are_found direct.chains
    grep -qE 'perfjit:     [1-9][0-9]* continue past code without tables and bytes' direct.err || complain "$(cat direct.err)"
}

@test "short frames: no chain goes on at what is left of another call" {
    assert_none_is_wrong direct.chains
}

@test "short frames: the same where what is left is of calls through pointers" {
    assert_pushed_are_found pointers.chains
    assert_none_is_wrong pointers.chains
}
