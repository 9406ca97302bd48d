# The libraries on riscv64, under qemu, as in aarch64.bats.  The tables of frames in one line must be right at each
# instruction: readelf's output for them is compared with the state of the program when it was stopped there.
# bats file_tags=live
load helper

require_riscv64() {
    [ -x "$BUILD/riscv64/riscv64_frames" ] || skip "there is no riscv64-linux-gnu-gcc to build for riscv64 with (make setup-live)"
    command -v qemu-riscv64 >/dev/null || skip "there is no qemu-riscv64 (make setup-live)"
}

setup() {
    require_riscv64
    cd "$BATS_TEST_TMPDIR"
}

riscv64() {
    timeout 120 qemu-riscv64 "$BUILD/riscv64/$1" "${@:2}"
}

@test "dumps, tables and perf maps of a process with threads, its child and its grandchild are as on this machine" {
    mkdir here there
    timeout 120 "$BUILD/producers/both_libraries" here >here.says
    riscv64 both_libraries there >there.says
    for where in here there; do
        grep '^tables' $where.says >$where.tables
        for who in main child grandchild; do
            pid=$(awk -v who=$who '$1 == who { print $2 }' $where.says)
            perfjit dump --json $where/jitdump-$pid/jit-$pid.dump |
                jq -c 'del(.elf_mach, .pid, .tid, .timestamp, .offset, .record, .code_index)' | LC_ALL=C sort >$where.$who
            LC_ALL=C sort $where/perf-$pid.map >$where.$who.map
        done
    done
    same there.tables here.tables
    for who in main child grandchild; do
        same there.$who here.$who
        same there.$who.map here.$who.map
    done
    [ "$(wc -l <there.main)" -gt 2400 ]
    pid=$(awk '$1 == "main" { print $2 }' there.says)
    perfjit dump --json there/jitdump-$pid/jit-$pid.dump | jq -s -e '[.[] | select(.header).elf_mach] | unique == [243]'
}

@test "a JIT that runs its code writes each kind of record" {
    PERFJIT=dump JITDUMPDIR=$PWD riscv64 every_record 0
    perfjit dump --json jitdump-*/jit-*.dump | jq -c '[.type, .name]' >there
    rm -r jitdump-*
    PERFJIT=dump JITDUMPDIR=$PWD "$BUILD/producers/every_record" 0
    perfjit dump --json jitdump-*/jit-*.dump | jq -c '[.type, .name]' >here
    same there here
}

# elf_of ARGUMENT...: riscv64_frames runs with them, and perfjit inject makes the ELF file $elf of its dump.
elf_of() {
    mkdir dump
    record qemu.data qemu-riscv64 "$BUILD/riscv64/riscv64_frames" dump "$@" >stops
    run --separate-stderr perfjit inject --rows body -i qemu.data --jitdump dump/jitdump-*/jit-*.dump
    exits 0
    says "48 functions in 1 image" " 0 parts of the input skipped"
    elf=$(elf_files qemu.jit.data.dso)
    readelf -W --debug-dump=frames-interp "$elf" 2>&1 >rows | same /dev/stdin /dev/null
    nm -S "$elf" >symbols
    python3 "$here/riscv64_rows.py" rows symbols stops >compared
    echo "# $(cat compared)" >&3
}

@test "perfjit inject makes an ELF file for riscv64 whose tables are right at each instruction" {
    require_perf
    elf_of
    readelf -hW "$elf" | grep -q 'Machine: *RISC-V'
    eu-elflint -q --gnu-ld "$elf"
    eu-readelf --debug-dump=frames "$elf" 2>&1 >eu.frames | same /dev/stdin /dev/null
    grep -qx '# 48 functions' <(sed 's/^48/# 48/' stops)
    # STOPS stops at PLACES of INSTRUCTIONS instructions, VALUES values, FAULTS faults
    awk '{ exit !($1 > 4000 && $4 == $6 && $4 > 2000 && $8 > 100000 && $10 == 0) }' compared
}

@test "a table that is an instruction late is noticed in each function that has a frame" {
    require_perf
    elf_of wrong
    awk '{ exit !($10 > 47 && $13 == 47) }' compared
}
