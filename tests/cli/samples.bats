#!/usr/bin/env bats
# Self and total of each function, and each stack, are perf's: of the stored recordings, and of samples that perf cannot take on every
# machine, made of stored ones by producers/rewrite_samples: precise addresses, chains of the user or the kernel alone, guests, the
# calls of LBR, deferred chains.  perf is the judge, on what perfjit inject writes.
#
# make check-live and make check-all read stored recordings here, too.
[ "${RECORDINGS:-}" = anew ] || RECORDINGS=stored
load helper

forms="precise user-callchains kernel-callchains guest guest-chains hypervisor lbr unknown-marks"
deferred="deferred deferred-early deferred-late deferred-twice deferred-strange"

each_kind="
    forms/a-stream-fp forms/a-group-read-with-its-leader-file-fp forms/a-program-and-its-children-file-fp
    forms/addresses-pages-and-weights-stream-fp forms/exec-stream-fp forms/overwrite-file-dwarf forms/threads-file-dwarf
    forms/z-stream-fp inlined_frames/fp luajit/load options/threads recordings/two-sample-types runtimes/node
"
each_form="
    forms/C-0-threads-made-elsewhere-stream-fp forms/a-pid-that-is-used-again-stream-fp forms/a-tracepoint-that-none-counts-file-fp
    forms/lost-events-file-fp forms/namespaces-stream-fp forms/p-stream-fp forms/per-thread-stream-fp
    forms/perf-s-own-clock-stream-fp forms/perf-sched-record-file-fp forms/s-stream-fp forms/snapshots-file-dwarf
    forms/switch-output-file-dwarf forms/switched-on-and-off-file-fp forms/tail-synthesize-p-file-fp
    forms/the-main-thread-is-gone-stream-dwarf forms/two-containers-namespaces-stream-fp forms/a-file-dwarf rows/demo
"

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
    [ "$RECORDINGS" = stored ] || skip "it reads stored recordings"
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

# perf_reports AT UNIT FILE: AT.calls, AT.children; UNIT is `sample` or `period`.  Sets `what` (samples_agree.py).
perf_reports() {
    local value=$2 folded=folded,0,caller,function,$2
    [ "$2" = period ] || folded=folded,0,caller,function,count
    set -- "$1" --stdio --no-group --no-inline --max-stack 1000 -s sym -i "$3"
    what=stacks
    perf report "${@:2}" --no-children -g "$folded" -F "overhead,$value,sym" >"$1.calls" 2>"$1.said"
    if grep -q 'Selected -g' "$1.said"; then
        what=rows
        perf report "${@:2}" --no-children -F "overhead,$value,sym" >"$1.calls" 2>"$1.said"
        : >"$1.children"
    else
        perf report "${@:2}" --children -g none -F overhead_children,sym >"$1.children" 2>/dev/null
    fi
}

# is_perfs AT SECTION HIDDEN WHAT OPTION... FILE: perfjit's stacks and sums of the file are those of perf_reports, whose SECTIONth
# event this is.
is_perfs() {
    local at=$1 section=$2 hidden=$3 what=$4
    # 3: of broken dumps.
    perfjit export -q -f firefox -o "$at.firefox" "${@:5}" || [ $? = 3 ] || return
    perfjit report -q --json "${@:5}" >"$at.json" || [ $? = 3 ] || return
    # Of the recorded programs.
    local -x DATA_NAMES=$BATS_FILE_TMPDIR/data_names
    [ -e "$DATA_NAMES" ] || find -L "$recorded_root/opt" -type f -perm /111 -exec nm {} + 2>/dev/null |
        awk '$2 ~ /^[bBdDrR]$/ { print $3 }' | LC_ALL=C sort -u >"$DATA_NAMES"
    "$here"/samples_agree.py "$at.calls" "$at.children" "$section" "$at.firefox" "$at.json" "$hidden" "$what" "$recorded_root/opt" . >"$at.wrong" ||
        complain "${*:5}: $(cat "$at.wrong")"
}

# agrees NAME FORM [self]: perfjit's stacks and sums of the recording and of the injected one are perf's of the latter.
agrees() {
    local name=$1 form=$2 at=$1/$2 what file
    rewrite "$form" "$name" && perfjit inject -q -i "$at" -o "$at.jit.data" || return
    perf_reports "$at" sample "$at.jit.data"
    for file in "$at" "$at.jit.data"; do
        is_perfs "$at" 0 "$(guests "$at.jit.data")" "${3:-$what}" --weight samples "$file" || return
    done
}

# What differs as a whole, and why.
declare -gA only=(
    # perf finds no symbols: it looks for the debug file elsewhere, and does not read .gnu_debugdata.
    # perf cuts a name of 100 000 bytes.
    [quirks/long-name/perf.data]=none
    # Its samples have no times, and perfjit says so.
    [recordings/no-time/thread.data]=none
    [one_way/forms/debug_apart.data]=none [one_way/forms/mini_symbols.data]=none [one_way/forms/mini_tables.data]=none
)

# stored_agree RECORDING...: the same of all events of all their files.  perf is asked of the recording itself if it has no JIT code;
# stacks that perf unwinds are not compared.
stored_agree() {
    local name
    use_programs
    : >"$BATS_TEST_TMPDIR/judged"
    for name; do
        (RECORDED_PROGRAMS=${RECORDED_PROGRAMS:-$recorded_root} && one_agrees "$name") || return
        grep -q "^$name/" "$BATS_TEST_TMPDIR/judged" || complain "nothing was compared of $name" || return
    done
}

one_agrees() {
    local name=$1 recorded_root=$BATS_TEST_TMPDIR/$1/root file
    mkdir -p "$BATS_TEST_TMPDIR/$1/here" && cd "$BATS_TEST_TMPDIR/$1/here" && unpack_recording "$1" || return
    while IFS= read -r -d '' file; do
        [[ $(head -c 8 "$file" | tr -d '\0') = PERFILE2 ]] || continue
        # The folder of perf record --threads
        [ "${file##*/}" != data ] || file=${file%/*}
        events_agree "$name" "$file" || return
    done < <(find . -type f -printf '%P\0' | sort -z)
}

events_agree() {
    local name=$1 file=$2 at=../$(tr / . <<<"$2") injected what section=-1 event status one
    injected=$at.jit.data
    perfjit inject -q --inlines frames -i "$file" -o "$injected" 2>"$at.said" || true
    [ -e "$injected" ] || injected=
    perf_reports "$at" period "${injected:-$file}"
    # Without chains no frame is an inlined call.
    [ $what = stacks ] || [ -z "$injected" ] || { perfjit inject -q -i "$file" -o "$injected" 2>"$at.said" || true; perf_reports "$at" period "$injected"; }
    [ -n "$injected" ] || ! perf evlist -v -i "$file" 2>/dev/null | grep -q STACK_USER || what=self
    while IFS= read -r event; do
        section=$((section + 1))
        for one in "$file" ${injected:+"$injected"}; do
            echo "$name/$file" >>"$BATS_TEST_TMPDIR/judged"
            [ -z "${only[$name/$file]:-}" ] || continue
            is_perfs "$at" $section 0 $what --event "$event" "$one" || complain "$name/$file, event $event" || return
        done
    done < <(sed -nE "s/^# Samples: .* of events? '(.*)'$/\1/p" "$at.calls")
}

@test "stacks, and self and total of each function, are perf's: a recording of each kind" {
    stored_agree $each_kind
}

# bats test_tags=live
@test "stacks, and self and total of each function, are perf's: a recording of each form" {
    stored_agree $each_form
}

# bats test_tags=all
@test "stacks, and self and total of each function, are perf's: all stored recordings" {
    cd "$here/../recordings"
    local names=(*/*/files.tar.xz)
    [ ${#names[@]} -gt 300 ]
    stored_agree "${names[@]%/files.tar.xz}"
}

# With deferred chains the bytes are those of `copy`: see below.
@test "stacks, and self and total of each function, are perf's: of the program" {
    local form
    for form in copy $forms; do agrees tinyjit $form; done
}

# The period of each sample is another one.
@test "self of each function is perf's: by the count of an event that is read alone" {
    local at=tinyjit/read-alone
    rewrite read-alone tinyjit && perfjit inject -q -i $at -o $at.jit.data
    perf_reports $at period $at.jit.data
    for file in $at $at.jit.data; do is_perfs $at 0 0 $what $file; done
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
