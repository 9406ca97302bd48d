#!/usr/bin/env bats
# Samples that perf cannot take on every machine, made of stored ones by producers/rewrite_samples: precise addresses, chains of the
# user or the kernel alone, guests, the calls of LBR, deferred chains.  perf is the judge, on what perfjit inject writes.
load helper

forms="precise user-callchains kernel-callchains guest guest-chains hypervisor lbr"
deferred="deferred deferred-early deferred-late deferred-twice deferred-strange"

setup_file() {
    [ "$RECORDINGS" = stored ] || return 0
    cd "$BATS_FILE_TMPDIR" || return
    unpack answers/tinyjit fp && unpack forms/a-group-read-with-its-leader-file-fp in.data && unpack forms/addresses-pages-and-weights-stream-fp in.stream || return
    rewrite kernel tinyjit
    mkdir kernel && mv tinyjit/kernel kernel/from
}

# unpack RECORDING FILE: in a folder of its own, and FILE as `from` in it.
unpack() {
    mkdir -p "${1##*/}" && cd "${1##*/}" && unpack_recording "$1" && mv "$2" from && cd ..
}

setup() {
    [ "$RECORDINGS" = stored ] || skip "it rewrites stored recordings"
    cd "$BATS_FILE_TMPDIR" || return
}

# rewrite FORM NAME: NAME/FORM, from NAME/from.
rewrite() {
    [ -e "$2/$1" ] || "$BUILD/producers/rewrite_samples" "$1" "$2/from" "$2/$1"
}

# guests FILE: how many samples are a guest's.
guests() {
    perf report -D -i "$1" 2>/dev/null | grep -cE 'PERF_RECORD_SAMPLE\(IP, 0x400?[45]\)|PERF_RECORD_SAMPLE\(IP, 0x[45]\)' || true
}

# agrees NAME FORM [self]: perfjit's stacks and sums of the recording and of the injected one are perf's of the latter.
agrees() {
    local name=$1 form=$2 at=$1/$2 what=${3:-all} file
    rewrite "$form" "$name" && perfjit inject -q -i "$at" -o "$at.jit.data" || return
    perf report --stdio --no-group --no-inline --max-stack 1000 --no-children -g folded,0,caller,function,count -s sym -F overhead,sample,sym -i "$at.jit.data" >"$at.calls" 2>/dev/null
    perf report --stdio --no-group --no-inline --max-stack 1000 --children -g none -s sym -F overhead_children,sym -i "$at.jit.data" >"$at.children" 2>/dev/null
    for file in "$at" "$at.jit.data"; do
        perfjit export -q -f folded --weight samples -o "$at.folded" "$file" && perfjit report -q --json --weight samples "$file" >"$at.json" || return
        "$here"/samples_agree.py "$at.calls" "$at.children" "$at.folded" "$at.json" "$(guests "$at.jit.data")" "$what" >"$at.wrong" ||
            complain "$file: $(cat "$at.wrong")" || return
    done
}

@test "stacks, and self and total of each function, are perf's: of the program" {
    local form
    for form in copy $forms $deferred; do agrees tinyjit $form; done
}

@test "stacks, and self and total of each function, are perf's: of the program and the kernel" {
    local form
    for form in copy $forms $deferred; do agrees kernel $form; done
}

# Their program has no frame pointers: a word that is no return address may be a function's first.  perf adds the samples of an
# address without a name in a guest to those of the same address here, and hides both.
@test "self of each function is perf's: groups that are read with their leader, a stream with weights and pages" {
    local form
    for form in user-callchains lbr deferred-early; do
        agrees a-group-read-with-its-leader-file-fp $form self
        agrees addresses-pages-and-weights-stream-fp $form self
    done
}

@test "a recording with deferred chains becomes the same bytes as one without" {
    local form name
    for name in kernel a-group-read-with-its-leader-file-fp addresses-pages-and-weights-stream-fp; do
        for form in copy $deferred; do
            rewrite "$form" "$name" && perfjit inject -q -i "$name/$form" -o "$name/out" && mv "$name/out" "$name/$form.out"
            cmp "$name/copy.out" "$name/$form.out" || complain "$name/$form"
        done
    done
}

@test "a sample whose deferred chain is missing keeps its address, and is told" {
    local at=kernel/deferred-missing all missing
    rewrite copy kernel && rewrite deferred-missing kernel
    perfjit report --json kernel/copy >copy.json 2>/dev/null
    perfjit report --json "$at" >missing.json 2>said
    missing=$(sed -nE 's/^perfjit: ([0-9]+) x sample whose callers in the program are missing.*/\1/p' said)
    all=$(jq .samples missing.json)
    [ "$missing" -ge $((all / 4)) ] && [ "$missing" -le $((all / 2)) ] || complain "$missing of $all: $(cat said)"
    # Its own address is in the sample, and no cookie is an address.
    cmp <(jq -S '[.functions[] | select(.self > 0) | [.name, .self]] | sort' copy.json) <(jq -S '[.functions[] | select(.self > 0) | [.name, .self]] | sort' missing.json)
    [ "$(jq '[.functions[] | select(.name == "[unknown]") | .total] | add' missing.json)" -le "$(jq '[.functions[] | select(.name == "[unknown]") | .total] | add' copy.json)" ]
    run perfjit inject -i "$at" -o missing.data
    [ "$status" -eq 0 ] && [[ $output == *"$missing x sample whose callers in the program are missing"* ]]
}

@test "callers with inlined calls as frames are those of the raw recording" {
    local name
    for name in fp dwarf; do
        unpack inlined_frames/$name $name.data
        perfjit inject -q --inlines frames -i $name/from -o $name/frames
        perfjit export -q -f folded $name/from | sort >$name/folded
        perfjit export -q -f folded $name/frames | sort | cmp - $name/folded
        grep -q '_\[i\];' $name/folded
    done
}

@test "code of guests has no name of the host's, in each format" {
    local format
    rewrite guest-chains kernel
    for format in folded speedscope firefox callgrind pprof; do
        perfjit export -q -f $format -o out.$format kernel/guest-chains
        [ $format != pprof ] || { gzip -dc out.pprof >unpacked && mv unpacked out.pprof; }
        grep -q 'guest user' out.$format && grep -q 'guest kernel' out.$format || complain "$format"
    done
    [ "$(perfjit report -q --json --by kind kernel/guest-chains | jq '[.rows[] | select(.name == "kernel")] | length')" = 0 ]
    perfjit report kernel/guest-chains >reported
    grep -q 'unknown: most is \[guest user\], which has no names here$' reported
    perfjit check kernel/guest-chains >checked || true # without all names its status is 3
    [ "$(awk '/in the kernel or a guest/ { print $NF }' checked)" = "$(guests kernel/guest-chains)" ]
}
