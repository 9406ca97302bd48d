# The libraries on another machine: programs for aarch64 run under qemu, and perfjit here reads what they wrote.  That each of
# the unwind tables is right is shown by tests/unit/aarch64_step_test.c.
# bats file_tags=live
load helper

require_aarch64() {
    [ -x "$BUILD/aarch64/both_libraries" ] || skip "there is no aarch64-linux-gnu-gcc to build for aarch64 with (make setup-live)"
    command -v qemu-aarch64 >/dev/null || skip "there is no qemu-aarch64 (make setup-live)"
}

# A moment under qemu can be long when the machine is busy, but it ends.
aarch64() {
    local program=$1
    shift
    timeout 120 qemu-aarch64 -cpu cortex-a57 "$BUILD/aarch64/$program" "$@"
}

setup() {
    require_aarch64
    cd "$BATS_TEST_TMPDIR"
}

# tours [tsc]: both_libraries runs here and there; says who is who.
tours() {
    mkdir here there
    timeout 120 "$BUILD/producers/both_libraries" here "$@" >here.says
    aarch64 both_libraries there "$@" >there.says
}

# pid WHERE WHO
pid() {
    awk -v who="$2" '$1 == who { print $2 }' "$1.says"
}

# dump WHERE WHO
dump() {
    echo "$1/jitdump-$(pid "$1" "$2")/jit-$(pid "$1" "$2").dump"
}

# All of a dump but machine, process, times, and what depends on the order of the threads.
timeless() {
    perfjit dump --json "$1" | jq -c 'del(.elf_mach, .pid, .tid, .timestamp, .offset, .record, .code_index)' | LC_ALL=C sort
}

@test "the dumps of a process with threads, its child and its grandchild are as on this machine" {
    tours
    for who in main child grandchild; do
        for where in here there; do
            timeless "$(dump $where $who)" >$where.$who
        done
        same there.$who here.$who
    done
    [ "$(wc -l <there.main)" -gt 2400 ]
    [ "$(wc -l <there.child)" -eq 602 ]
    [ "$(wc -l <there.grandchild)" -eq 602 ]
    [ "$(ls there | wc -l)" -eq 6 ]
}

@test "header and records name the machine, the process and its threads" {
    tours
    local main
    main=$(pid there main)
    perfjit dump --json "$(dump there main)" >json
    jq -s -e --argjson pid "$main" '.[0] | .header and .elf_mach == 183 and .pid == $pid and .flags == 0' json
    jq -s -e --argjson pid "$main" '[.[] | select(.type == "CODE_LOAD") | .pid] | unique == [$pid]' json
    [ "$(jq -r 'select(.type == "CODE_LOAD") | select(.name | startswith("thread")) | .tid' json | sort -u | wc -l)" -eq 4 ]
    jq -s -e '[.[] | select(.type == "CODE_LOAD").code_index] | sort == [range(length)]' json
}

@test "times grow, by the clock and by the CPU's counter" {
    tours tsc
    local dump
    dump=$(dump there main)
    perfjit dump --json "$dump" >json
    jq -s -e '.[0].flags == 1' json
    jq -s -e '[.[] | select(.record != null).timestamp] | .[0] > 0 and . == sort' json
    rm -r here there
    tours
    perfjit dump --json "$(dump there main)" | jq -s -e '[.[] | select(.record != null).timestamp] | . == sort'
}

@test "unwind tables for both machines are the same bytes, made here or there" {
    tours
    grep '^tables' here.says >here.tables
    grep '^tables' there.says >there.tables
    [ "$(wc -l <here.tables)" -eq 2 ]
    same there.tables here.tables
}

@test "perf maps are as on this machine" {
    tours
    for who in main child grandchild; do
        for where in here there; do
            LC_ALL=C sort "$where/perf-$(pid $where $who).map" >$where.$who
        done
        [ -s there.$who ]
        same there.$who here.$who
    done
}

@test "a JIT that runs its code writes each kind of record" {
    PERFJIT=dump JITDUMPDIR=$PWD aarch64 every_record 0
    mv jitdump-*/jit-*.dump there.dump && rm -r jitdump-*
    PERFJIT=dump JITDUMPDIR=$PWD "$BUILD/producers/every_record" 0
    mv jitdump-*/jit-*.dump here.dump && rm -r jitdump-*
    for where in here there; do
        run --separate-stderr perfjit dump --json $where.dump
        exits 0
        jq -c '[.type, .name]' <<<"$output" >$where
    done
    same there here
}

# perf sees qemu and not the code that it translates; so the dump is named, and no sample is in it.
@test "perfjit inject makes an ELF file for aarch64 that readelf and elfutils read without a word" {
    require_perf
    record qemu.data qemu-aarch64 -cpu cortex-a57 "$BUILD/aarch64/aarch64_frames" "$PWD" >says
    run --separate-stderr perfjit inject --rows body -i qemu.data --jitdump jitdump-*/jit-*.dump
    exits 0
    says "108 functions in 1 image" " 0 parts of the input skipped"
    elf=$(elf_files qemu.jit.data.dso)
    readelf -hW "$elf" | grep -q 'Machine: *AArch64'
    eu-elflint -q --gnu-ld "$elf"
    readelf -W --debug-dump=frames-interp "$elf" 2>&1 >frames | same /dev/stdin /dev/null
    eu-readelf --debug-dump=frames "$elf" 2>&1 >eu.frames | same /dev/stdin /dev/null
    [ "$(grep -c ' FDE ' frames)" -eq "$(grep -cE '\] FDE length' eu.frames)" ]
    [ "$(grep -c ' FDE ' frames)" -gt 108 ] # some have two blocks
    aarch64-linux-gnu-objdump -d "$elf" >code
    ! grep -E 'undefined|\.inst' code || complain "it is there"
}

@test "jitunwind_backtrace at each instruction of code with frames of every kind" {
    mkdir dump
    aarch64 aarch64_frames dump walk >says || complain "$(cat says)"
    echo "# $(tail -1 says)" >&3
    # Not sure may it be of an expression, and of what keeps the return address in another register alone.
    awk '/ stops, / { exit !($1 > 5000 && $3 > $1 * 0.94 && $8 == 0) }' says
}

@test "trampolines pass on arguments and results, and their frames fit their code" {
    PERFJIT=dump,check JITDUMPDIR=$BATS_TEST_TMPDIR aarch64 trampolines >said || complain "$(cat said)"
    [ "$(cat said)" = "5012 trampolines, 0 faults, ok" ]
}
