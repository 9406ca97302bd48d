# Unwind tables that do not fit their code are reported by libjitdump and perfjit check, and tables that fit are not.
load helper

# One frame's text with its function.
faults() {
    perfjit check --json "$1" | jq -r '.dumps[].frames.faults[] | "\(.function) \(.offset) \(.fault)"'
}

# bats test_tags=live
@test "each instruction of libc is as long as objdump says" {
    objdump -d -w --insn-width=15 "$(ldd /bin/true | awk '/libc.so/ { print $3 }')" | "$BUILD/producers/code_lengths"
}

# bats test_tags=all
@test "each instruction of large programs is as long as objdump says" {
    for file in "$(type -P perf)" "$(type -P gdb)"; do
        objdump -d -w --insn-width=15 "$(readlink -f "$file")" | "$BUILD/producers/code_lengths"
    done
}

# Compilers' tables are right: gcc's, with exceptions, cold parts, calls that do not return.
# bats test_tags=live
@test "the functions of compiled programs and libraries fit their tables" {
    cd "$BATS_TEST_TMPDIR"
    for file in "$(type -P perf)" "$(ldconfig -p | awk '/libstdc\+\+.so.6 .*x86-64/ { print $NF; exit }')"; do
        "$BUILD/producers/frame_sweep" "$(readlink -f "$file")" >swept || { cat swept; false; }
        awk '/ functions, 0 faults/ { exit !($1 > 1000 && $(NF - 2) > $1 * 0.8) }' swept
    done
}

# bats test_tags=live
@test "the functions of aarch64's libc and libstdc++ fit their tables" {
    local libraries=/usr/aarch64-linux-gnu/lib
    [ -e $libraries/libc.so.6 ] || skip "there is no $libraries/libc.so.6 (make setup)"
    "$BUILD/producers/frame_sweep" $libraries/libc.so.6
    [ ! -e $libraries/libstdc++.so.6 ] || "$BUILD/producers/frame_sweep" $libraries/libstdc++.so.6
}

# 100 in each of five forms of tinyjit's code.
@test "each of 500 faults that are planted in tinyjit's frames is found, and none in those as they are" {
    cd "$BATS_TEST_TMPDIR"
    local form number=0
    for form in "" --no-frame-pointer --no-tier2 "--tier2-after 0" "--tier2-after 0 --no-frame-pointer"; do
        rm -rf jitdump-*
        # shellcheck disable=SC2086
        PERFJIT=dump,check JITDUMPDIR=$PWD "$BUILD/tinyjit" $form --repeat 25 "$here/../../examples/tinyjit/demo.tj" >out 2>err
        [ ! -s err ] || { cat err; false; }
        "$BUILD/producers/frame_faults" jitdump-*/jit-*.dump 100 $((number += 1)) >>planted || { cat planted; false; }
        perfjit check --json jitdump-*/jit-*.dump |
            jq -e '.dumps[0].frames | .wrong == 0 and .functions > 30 and .instructions > 1000'
    done
    [ "$(awk '/planted/ { sum += $(NF - 9) } END { print sum }' planted)" -ge 500 ] || { cat planted; false; }
}

# bats test_tags=live
@test "V8's frames fit its code" {
    cd "$BATS_TEST_TMPDIR"
    node --perf-prof --perf-prof-unwinding-info -e '
        function sum(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i) * (i % 7); return s }
        function walk(n) { return n < 2 ? n : walk(n - 1) + walk(n - 2) }
        let r = 0; while (process.cpuUsage().user < 1.5e6) r += sum(3000) + walk(15)
        if (!r) throw r' >out
    perfjit check --json jit-*.dump | jq -e '.dumps[0].frames | .wrong == 0 and .functions > 1 and .instructions > 100'
}

@test "a program whose frames do not fit is told by PERFJIT=dump,check, and by perfjit check" {
    cd "$BATS_TEST_TMPDIR"
    mkdir dumps
    PERFJIT=dump,check JITDUMPDIR=$PWD/dumps run --separate-stderr "$BUILD/producers/wrong_frames"
    [ "$output" = "3 faults, -74: yes" ]
    [[ "$stderr" == *"jit-"*".dump: the frame of second does not fit its code: at +0x1 (mov %rsp,%rbp): the CFA is rsp+16 here, the frame says rsp+24; "* ]]
    faults dumps/jitdump-*/jit-*.dump >found || [ $? -eq 3 ]
    diff - found <<'END'
second 1 at +0x1 (mov %rsp,%rbp): the CFA is rsp+16 here, the frame says rsp+24
third 10 at +0xa (ret): the CFA is rsp+8 here, the frame says rbp+16
fourth 2 at +0x2 (ret): the CFA is rsp+8 here, the frame says rsp+16
END
    run perfjit check dumps/jitdump-*/jit-*.dump
    [ "$status" -eq 3 ]
    PERFJIT=dump JITDUMPDIR=$PWD/dumps run --separate-stderr "$BUILD/producers/wrong_frames"
    [ "$output:$stderr" = "0 faults, 0: no:" ]
}
