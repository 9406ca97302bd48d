#!/usr/bin/env bats
# The log of a compiler in one pass (producers/one_pass.c): code emitted into a buffer with rows and frames by offset, copied to
# an arena that is mapped twice.  Registers are saved in slots.  A function in a hot and a cold piece is one in all output.
load helper

setup_file() {
    require_perf || return 0
    [ "$(uname -m)" = x86_64 ] || return 0
    cd "$BATS_FILE_TMPDIR" || return
    local x
    for x in slots pointer life; do
        recording $x record_$x
        perfjit inject -i $x.data -o $x.jit.data 2>$x.err || [ $? -eq 3 ]
    done
}

record_slots() {
    record slots.data -F 1000 --call-graph dwarf,1024 "$BUILD/producers/one_pass" slots . 0.4 >slots.txt
}

record_pointer() {
    record pointer.data -g "$BUILD/producers/one_pass" pointer . 0.4 >pointer.txt
}

record_life() {
    record life.data "$BUILD/producers/one_pass" life . 0.3 >life.txt
}

setup() {
    require_perf
    [ "$(uname -m)" = x86_64 ] || skip "the producer writes x86-64 code"
    cd "$BATS_FILE_TMPDIR"
}

# chains DATA: each sample's chain from the first function of the producer's on, without functions that main calls:
# "middle;outer;".
chains() {
    perf script --no-inline -F ip,sym -i "$1" 2>/dev/null |
        awk 'BEGIN { RS = "" } {
            chain = ""; on = 0
            for (i = 2; i <= NF; i += 2) {
                if ($i == "inner" || $i == "middle" || $i == "outer") on = 1
                if (on) chain = chain $i ";"
            }
            if (on) print chain
        }'
}

# rows DATA: the rows of perf report that have one of the functions.
rows() {
    perf report -i "$1" --no-children --stdio -g none 2>/dev/null | awk '$NF ~ /^(inner|middle|outer)$/ { print $NF }' | sort
}

# The caller of run_chain has no frame pointers.  A stored recording has no program that names it.
run_chain='run_chain;' callers='phase;main;.*_start;$'
[ "$RECORDINGS" != stored ] || run_chain='\[unknown\];' callers=
called='^((inner;)?middle;)?outer;'$run_chain
whole=$called$callers

expect_whole_chains() { # DATA, of which so many of a thousand are so
    local whole=$3
    chains "$1" >"$BATS_TEST_TMPDIR/chains"
    local all whole_ones function
    all=$(wc -l <"$BATS_TEST_TMPDIR/chains")
    whole_ones=$(grep -cE "$whole" "$BATS_TEST_TMPDIR/chains")
    for function in inner middle outer; do
        [ "$(grep -c "^$function;" "$BATS_TEST_TMPDIR/chains")" -gt 20 ] || complain "few samples in $function"
    done
    [ $((whole_ones * 1000)) -ge $((all * $2)) ] || {
        grep -vE "$whole" "$BATS_TEST_TMPDIR/chains" | sort | uniq -c
        complain "$whole_ones chains of $all are whole"
    }
}

# sampled DATA ADDRESS SIZE: how many samples there are.
sampled() {
    perf script -F ip -G -i "$1" 2>/dev/null | python3 -c "
import sys
print(sum($2 <= int(line, 16) < $2 + $3 for line in sys.stdin if line.strip()))"
}

# bats test_tags=both
@test "stacks through slots, a frame pointer in the red zone and a cold piece: every one is whole" {
    expect_whole_chains slots.jit.data 1000 "$whole"
    run ! grep -E ' at JIT code' slots.err
}

# A sample in a prologue or epilogue lacks a frame there: not one in a thousand of these functions'.
@test "stacks by frame pointers through both pieces" {
    expect_whole_chains pointer.jit.data 990 "$called"
}

@test "a function in pieces is one row of perf report, and one function" {
    local x data
    for x in slots pointer; do
        rows $x.jit.data >"$BATS_TEST_TMPDIR/rows"
        printf '%s\n' inner middle outer | same "$BATS_TEST_TMPDIR/rows" /dev/stdin
        for data in $x.jit.data $x.data; do
            perfjit report $data | awk '$5 == "jit" { print $6 }' | sort >"$BATS_TEST_TMPDIR/rows"
            printf '%s\n' inner middle outer | same "$BATS_TEST_TMPDIR/rows" /dev/stdin
        done
        grep -q ': 3 functions in 1 image' $x.err
    done
}

@test "both pieces were sampled, and each has its lines and bytes in the ELF file" {
    local pid addr size
    read -r _ pid _ <slots.txt
    perfjit dump --json jitdump-$pid/jit-$pid.dump >"$BATS_TEST_TMPDIR/dump"
    while read -r addr size; do
        [ "$(sampled slots.data "$addr" "$size")" -gt 20 ]
    done < <(jq -r 'select(.name == "middle") | "\(.code_addr) \(.code_size)"' "$BATS_TEST_TMPDIR/dump")
    jq -c 'select(.type == "CODE_PIECE") | [.code_index, .number, .nr_piece]' "$BATS_TEST_TMPDIR/dump" >"$BATS_TEST_TMPDIR/pieces"
    printf '%s\n' '[1,0,2]' '[1,1,2]' | same "$BATS_TEST_TMPDIR/pieces" /dev/stdin
    readelf --debug-dump=decodedline "$(elf_files slots.jit.data.dso)" >"$BATS_TEST_TMPDIR/lines"
    for line in 10 11 20 21 22 29 30 31; do
        grep -qE "^one_pass.src +$line " "$BATS_TEST_TMPDIR/lines" || complain "no line $line"
    done
}

# perf's own unwinder is the judge of the tables: what the command does not touch, and what perf inject makes of the dump.
# bats test_tags=live
@test "perf unwinds by the same tables, whether perfjit or perf has injected them" {
    perfjit inject --stacks keep -i slots.data -o kept.data
    expect_whole_chains kept.data 1000 "$whole"
    perf inject --jit -i slots.data -o by_perf.data 2>"$BATS_TEST_TMPDIR/perf.err"
    expect_whole_chains by_perf.data 1000 "$whole"
    sed 's/.*record type 1347026948.*//' "$BATS_TEST_TMPDIR/perf.err" | sort -u >"$BATS_TEST_TMPDIR/said"
    run ! grep . "$BATS_TEST_TMPDIR/said"
    rows by_perf.data | uniq >"$BATS_TEST_TMPDIR/rows"
    printf '%s\n' inner middle outer | same "$BATS_TEST_TMPDIR/rows" /dev/stdin
}

# names PHASE: whose the samples at the addresses of middle's pieces are, in that phase.
names() {
    local pid start end first
    read -r _ pid start end < <(grep "^$1 " life.txt)
    read -r _ first _ <life.txt
    perfjit dump --json jitdump-$first/jit-$first.dump |
        jq -r 'select(.name == "middle" or .type == "CODE_MOVE") | "\(.new_code_addr // .code_addr) \(.code_size)"' >"$BATS_TEST_TMPDIR/pieces"
    perf script -G -F pid,time,ip,sym --ns -i life.jit.data 2>/dev/null | python3 -c "
import sys
pieces = [(int(addr, 0), int(size)) for addr, size in map(str.split, open('$BATS_TEST_TMPDIR/pieces'))]
names = {}
for line in sys.stdin:
    pid, time, ip, name = line.split()[:4]
    seconds, ns = time.rstrip(':').split('.')
    if pid == '$pid' and $start < int(seconds) * 10**9 + int(ns) < $end:
        for number, (addr, size) in enumerate(pieces):
            if addr <= int(ip, 16) < addr + size:
                names.setdefault(number, []).append(name)
for number, seen in sorted(names.items()):
    print(*sorted(set(seen)), 'few' if len(seen) < 5 else '', end=';')"
}

@test "a move and an unload are of all pieces, also in a child that inherited them" {
    local phase
    for phase in loaded moved after_child; do
        [ "$(names $phase)" = "middle ;middle ;" ] || complain "$phase: $(names $phase)"
    done
    for phase in child unloaded; do
        [ "$(names $phase)" = "[unknown] ;[unknown] ;" ] || complain "$phase: $(names $phase)"
    done
}

@test "perfjit check counts a function in pieces once, and finds the dump sound" {
    local pid
    read -r _ pid _ <life.txt
    run --separate-stderr perfjit check --json jitdump-$pid/jit-$pid.dump
    exits 0
    [ "$(jq -c '.dumps[0] | [.names.functions, .names.alike, .unwind.functions, .records.piece, .order.overlaps, .sound]' \
        <<<"$output")" = '[3,0,3,2,0,true]' ] || complain "$output"
}

# bats test_tags=live
@test "perfjit bt names both pieces of a running process" {
    cd "$BATS_TEST_TMPDIR"
    "$BUILD/producers/one_pass" hold . 3>&- &
    local pid=$!
    await_use $pid 50
    run perfjit bt -p $pid
    { kill $pid && wait $pid; } || true
    echo "$output"
    [ "$(grep -oE '\b(inner|middle|outer|run_chain|main)\b' <<<"$output" | awk '!seen[$0]++' | tr '\n' ' ')" = \
        'inner middle outer run_chain main ' ]
}
