# perfjit check: its report about recordings is compared with perf's output after inject.  Its report about dumps is compared with
# the damage that was done to them.
load helper
load checked

setup_file() {
    require_perf || return 0
    mkdir "$BATS_FILE_TMPDIR/made"
    cd "$BATS_FILE_TMPDIR/made" || return
    mkdir sound quirk lie
    sound_recording tinyjit
    mv sound.data demo.data
    export JITDUMPDIR=$PWD
    PERFJIT=dump recording many record many.data "$BUILD/producers/many_functions" -n 300 -s 0.3
    PERFJIT=dump recording churn record churn.data "$BUILD/producers/address_churn" -s 0.25 churn.truth
    recording quirk record quirk.data "$BUILD/producers/quirks" sound quirk 0.2
    recording silent record silent.data "$BUILD/producers/many_functions" -n 300 -s 0.2
    recording map record_map
    recording lie record lie.data "$BUILD/producers/lying_clock" lie mono cycles ns 200
    recording piped record_piped
    cd sound && sound_recording every-record
}

record_map() {
    record map.data "$BUILD/producers/perf_map_code" anon 0.2 map.truth >map.pid || return
    mv "/tmp/perf-$(cat map.pid).map" map.map
}

record_piped() {
    perf record -q -k mono -e cpu-clock:u -F 1000 -o - sh -c "exec '$BUILD/producers/many_functions' -n 300 -s 0.2 >/dev/null" >piped.data
}

setup() {
    require_perf
    cp -a "$BATS_FILE_TMPDIR/made" "$BATS_TEST_TMPDIR/work"
    cd "$BATS_TEST_TMPDIR/work"
    dump=$(dumps_of many.data)
    number=${dump##*jit-} number=${number%.dump}
}

teardown() {
    if [ -e map.pid ]; then rm -f "$paths_from/tmp/perf-$(cat map.pid).map"; fi
    [ ! -e many.saved ] || cat many.saved >"$dump"
}

# only_cause DATA CAUSE: all samples in JIT code are unknown, for this reason, which text and JSON give.
only_cause() {
    checked 3 "$1"
    is ".profile.samples | .jit_named == 0 and .jit_unknown > 50"
    is ".profile | .unknown | length == 1 and .[0].cause == \"$2\" and .[0].samples > 50"
    is ".profile.samples.jit_unknown == .profile.unknown[0].samples"
    is ".profile.remedies | length == 1 and .[0].cause == \"$2\""
    grep -qE "^ +$2: " text
    is ".profile.sound == false"
}

# perf's samples after perfjit inject: "named unknown", those in JIT code.
perf_counts() {
    perfjit inject -q -i "$1" -o out.data || [ $? = 3 ]
    perf script -i out.data -F ip,sym,dso -G --no-inline | awk '
        /\(.*out\.data\.dso\/.*\)$/ { named++ }
        /\[unknown\] \((\/\/anon|\[unloaded JIT code\]|\/tmp\/perf-[0-9]+\.map|.*memfd:.*|\[anon:.*)\)$/ { unknown++ }
        END { print named + 0, unknown + 0 }'
}

# set_times DUMP FILTER TIME: the loads of DUMP that FILTER selects get another time, a number or what jq makes of the record.
set_times() {
    perfjit dump --json "$1" | jq -r "select(.type == \"CODE_LOAD\" and ($2)) | \"\(.offset + 8) \($3)\"" |
        while read -r at time; do
            set_u64 "$1" "$at" "$time"
        done
}

# set_u64 FILE OFFSET VALUE
set_u64() {
    for ((i = 0; i < 8; i++)); do printf "\\x$(printf %x $(($3 >> 8 * i & 255)))"; done |
        dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# ---- Recordings ----

@test "a recording in which all is named: status 0, and it says so" {
    checked 0 many.data
    is '.profile.sound and .profile.samples.jit_unknown == 0 and .profile.samples.jit_named > 100'
    is '.profile.unknown == [] and .profile.remedies == []'
    is ".profile.processes | length == 1 and .[0].pid == $number and .[0].functions == 300 and .[0].comm == \"many_functions\""
    grep -qx '  sound: every sample in JIT code has a name' text
}

# keeps_reasons [OPTION...]: check says of ours.data, which is injected, what raw.json and raw.text say of the recording.
keeps_reasons() {
    checked_ours "$@"
    jq -S '.profile | .samples, .unknown, .remedies' json >ours
    jq -S '.profile | .samples, .unknown, .remedies' raw.json | same ours /dev/stdin
    grep -E '^ +[0-9]+  process|first at' raw.text >wanted || [ $? = 1 ]
    { grep -E '^ +[0-9]+  process|first at' text || [ $? = 1 ]; } | same /dev/stdin wanted
    grep -q '^  injected already, with /.*[.]so: the counts are of when that was done$' text
}

checked_ours() {
    perfjit check --json ours.data "$@" >json || [ $? = 3 ]
    perfjit check ours.data "$@" >text || [ $? = 3 ]
}

# bats test_tags=both
@test "a recording that perfjit has injected keeps the counts and reasons, with its dump or without, below a root" {
    local of d
    for data in many demo quirk churn; do
        perfjit check --json $data.data >raw.json || [ $? = 3 ]
        perfjit check $data.data >raw.text || [ $? = 3 ]
        perfjit inject -q -i $data.data -o ours.data || [ $? = 3 ]
        keeps_reasons
        keeps_reasons --root "$PWD"
        of=$(dumps_of $data.data)
        for d in $of; do mv "$d" "$d.away"; done
        checked_ours
        for d in $of; do mv "$d.away" "$d"; done
        jq -S '.profile | .samples, .unknown, .remedies' json | same /dev/stdin ours
    done
    is '.profile.samples.jit_unknown > 20' # churn's
}

@test "an injected recording without kept reasons gives no false ones" {
    local kept
    perfjit inject -q -i quirk.data -o ours.data || [ $? = 3 ]
    kept=$(tail -c 16 ours.data | od -An -tu8 -N8)
    head -c -"$((kept))" ours.data >cut.data
    perf script -i ours.data -F ip,sym,time 2>/dev/null >with
    perf script -i cut.data -F ip,sym,time 2>/dev/null | same /dev/stdin with
    checked 3 cut.data
    is '[.profile.unknown[].cause] | unique == ["injected"]'
    # damaged: as if there were none
    for at in 1 9 $kept $((kept - 8)) $((kept - 80)); do
        cp ours.data bad.data
        printf '\377' | dd of=bad.data bs=1 seek=$(($(stat -c %s ours.data) - at)) conv=notrunc status=none
        perfjit check --json bad.data >json || [ $? = 3 ]
        is '[.profile.unknown[].cause] | unique == ["injected"]' || complain "$at: $(cat json)"
    done
    perfjit inject -q -i quirk.data -o - | perfjit check --json - >json || [ $? = 3 ]
    is '[.profile.unknown[].cause] | unique == ["injected"]'
}

@test "a recording that perfjit has injected: report does not miss its images" {
    cd sound
    perfjit inject -q -i sound.data -o ours.data
    checked 0 ours.data
    grep -qx '  sound: every sample in JIT code has a name' text
    run --separate-stderr perfjit report ours.data
    exits 0
    ! grep -F 'is not there' <<<"$stderr" || complain "it is"
    rm -r ours.data.dso
    checked 3 ours.data
    grep -q '^  injected already, with /.*, which is not there: its JIT code has no names' text
}

@test "a recording that was moved together with its ELF files keeps its names; perf is told where they are" {
    cd sound
    perfjit inject -q -i sound.data -o ours.data
    perfjit report -q -n 0 ours.data >wanted
    env HOME="$PWD" perf script -i ours.data -F ip,sym 2>/dev/null >named
    mkdir moved
    mv ours.data ours.data.dso moved/
    run --separate-stderr perfjit report -n 0 moved/ours.data
    exits 0
    same /dev/stdin wanted <<<"$output"
    says "moved/ours.data.dso/" ": was moved with its recording; perf finds the names after perfjit move moved/ours.data"
    checked 0 moved/ours.data
    grep -q "perfjit move moved/ours.data$" text
    env HOME="$PWD" perf script -i moved/ours.data -F ip,sym 2>/dev/null >unnamed
    ! cmp -s unnamed named || complain "perf needs no help"
    cd moved # and without a folder in the name
    perfjit report -q -n 0 ours.data | same /dev/stdin ../wanted
    perfjit move -q ours.data
    env HOME="$PWD" perf script -i ours.data -F ip,sym 2>/dev/null | same /dev/stdin ../named
}

# perf's files are where the dump is.
@test "a recording that perf has injected: its JIT code counts among the libraries; when perf's files are gone, they are named" {
    local so all
    cd sound
    checked 0 sound.data
    is '.profile | has("injected") | not'
    all=$(jq '.profile.samples | .jit_named + .in_files' json)
    checked 0 theirs.data
    is '.profile.injected | test("/jit(ted)?-([0-9]+-)?[^/]*[.]so$")'
    is ".profile.samples | .jit_named == 0 and .jit_unknown == 0 and .in_files == $all"
    grep -q '^  injected already, with /.*[.]so: its JIT code counts among the libraries$' text
    dump=$(dumps_of sound.data)
    number=${dump##*jit-} number=${number%.dump}
    for so in "${dump%/*}/jitted-$number"-*.so; do mv "$so" "$so.away"; done
    checked 3 theirs.data
    is '.profile.sound == false'
    grep -q '^  injected already, with /.*, which is not there: its JIT code has no names' text
    run --separate-stderr perfjit report theirs.data
    for so in "${dump%/*}/jitted-$number"-*.so.away; do mv "$so" "${so%.away}"; done
    exits 0
    says "/jitted-$number" ".so: is missing: theirs.data was injected with it, and has no names of JIT code without"
}

@test "the default is the first of perfjit.perf.data, perf.jit.data and perf.data, of report as of check; none: 1, and they are named" {
    local each
    mkdir default && cd default
    for each in "check" "report" "flamegraph -o -" "export --format folded"; do
        run --separate-stderr perfjit $each
        exits 1
        says "no recording is named, and none is here: neither perfjit.perf.data, nor perf.jit.data, nor perf.data"
    done
    for each in perf.data perf.jit.data perfjit.perf.data; do
        cp ../many.data $each
        checked 0
        is ".profile.file == \"$each\""
    done
    run --separate-stderr perfjit report -v
    exits 0
}

# bats test_tags=both
@test "as many samples are named and unknown as perf shows after inject" {
    for data in many demo quirk churn; do
        perfjit check --json $data.data >json || [ $? = 3 ]
        counts=$(jq -r '.profile.samples | "\(.jit_named) \(.jit_unknown)"' json)
        echo "# $data: $counts (named, unknown)" >&3
        [ "$counts" = "$(perf_counts $data.data)" ] || complain "$data: $counts; perf: $(perf_counts $data.data)"
        is '.profile.samples | .total == .outside_user + .in_files + .jit_named + .jit_unknown + .unmapped + .incomplete'
        is '(.profile.unknown | map(.samples) | add // 0) == .profile.samples.jit_unknown'
    done
    is '.profile.samples.jit_unknown > 20' # churn's
}

@test "perfjit inject says how many stay unknown, and why, as check does, and that is no loss" {
    for data in many demo quirk churn; do
        perfjit check --json $data.data >json || [ $? = 3 ]
        jq -r '.profile.samples | select(.jit_unknown > 0) |
            "perfjit: \(.jit_unknown) of \(.jit_unknown + .jit_named) samples in JIT code stay\(if .jit_unknown == 1 then "s" else "" end) [unknown]:"' json >wanted
        perfjit check $data.data | sed -nE '/and why/,$ s/^ +([0-9]+)  (process .*)/perfjit:     \1 of \2/p' | head -8 >>wanted
        run --separate-stderr perfjit inject -i $data.data -o out.data
        exits "$(jq 'if any(.profile.findings[]; .lost) then 3 else 0 end' json)"
        grep -E 'stays? \[unknown\]|^perfjit:     [0-9]+ of process' <<<"$stderr" | same /dev/stdin wanted
        run --separate-stderr perfjit inject -q -i $data.data -o out.data
        [ -z "$stderr" ]
    done
    [ -s wanted ]
}

@test "code that is never logged: not-logged" {
    checked 3 quirk.data
    is '.profile.unknown | length == 1 and .[0].cause == "not-logged" and .[0].samples > 20'
    is '.profile.samples.jit_named > 20'
    grep -q 'no function that was logged ever had this address' text
    first=$(jq '.profile.unknown[0].first_ip' json)
    perfjit inject -q -i quirk.data -o out.data
    perf script -i out.data -F ip,sym -G | awk '/unknown/ { print $1 }' | grep -qx "$(printf %x "$first")"
}

# All is logged before the first of it runs.
@test "a dump that is cut short: what is not in it may have been in the rest" {
    checked 0 many.data
    cp "$dump" many.saved
    truncate -s $(($(stat -c %s "$dump") / 2)) "$dump"
    checked 3 many.data
    is '.profile.samples | .jit_named > 20 and .jit_unknown > 20'
    is '.profile.unknown | length == 1 and .[0].cause == "not-written"'
    grep -q ': not in its dump, which is cut short$' text
    grep -q '^ *not-written: if the process still runs, inject after its end' text
}

@test "a recording that does not say what was mapped: whether there is JIT code is not known, and what to do" {
    python3 - >bare.data <<'END'
import struct, sys
data = open("piped.data", "rb").read()
out, at = sys.stdout.buffer, 16
out.write(data[:at])
while at + 8 <= len(data):
    kind, _, size = struct.unpack_from("<IHH", data, at)
    if kind not in (1, 10): # MMAP, MMAP2
        out.write(data[at:at + size])
    at += size
END
    checked 0 bare.data
    is '.profile.samples | .unmapped > 20 and .jit_named == 0 and .jit_unknown == 0'
    grep -q '^    the recording does not say what was mapped, .* --jitdump FILE$' text
    grep -qx '  most samples are where no mapping was recorded, in JIT code or not' text
    ! grep 'no sample is in JIT code' text || complain "$(cat text)"
    perfjit report -q bare.data | grep 'most at addresses for which the recording has no mapping$'
}

# mremap leaves no record: here every other sample in user space is where no mapping is.
@test "samples where nothing is mapped, of a process that has JIT code: mremap is said to leave no record" {
    python3 - >moved.data <<'END'
import struct, sys
data = bytearray(open("piped.data", "rb").read())
at, count = 16, 0
while at + 8 <= len(data):
    kind, _, size = struct.unpack_from("<IHH", data, at)
    if kind == 9: # SAMPLE
        ip, = struct.unpack_from("<Q", data, at + 8)
        count += 1
        if ip < 1 << 47 and count % 2:
            struct.pack_into("<Q", data, at + 8, 0x1000)
    at += size
sys.stdout.buffer.write(data)
END
    checked 3 moved.data
    is '.profile.samples | .unmapped > 20 and .jit_unknown > 20'
    grep -q '^    code that was moved with mremap(2) is where no mapping was recorded: ' text || complain "$(cat text)"
    checked 3 piped.data
    ! grep mremap text || complain "$(cat text)"
}

@test "code that runs on after it was freed: freed" {
    checked 3 churn.data
    is '.profile.unknown | length >= 1 and all(.cause == "freed")'
}

@test "a function that runs before its LOAD record: before-load" {
    checked 0 many.data
    cp "$dump" many.saved
    # When half of the samples in them are over.
    local times
    times=($(samples many.data | sed -nE 's/^ *([0-9]+)\.([0-9]{9}): .*\[unknown\]$/\1\2/p'))
    set_times "$dump" '.record < 60' "${times[${#times[@]} / 2]}"
    checked 3 many.data
    is '.profile.unknown | length == 1 and .[0].cause == "before-load" and .[0].samples > 10'
    is '.profile.samples.jit_named > 50'
    [ "$(perf_counts many.data)" = "$(jq -r '.profile.samples | "\(.jit_named) \(.jit_unknown)"' json)" ]
}

@test "no dump and no perf map: no-dump" {
    only_cause silent.data no-dump
}

@test "the dump is not there: dump-missing; named with the recording, all is well" {
    mv "$dump" away.dump
    only_cause many.data dump-missing
    is '.profile.findings | length == 1 and .[0].lost'
    mkdir given
    mv away.dump "given/${dump##*/}"
    checked 0 many.data "given/${dump##*/}"
    is '.profile.samples.jit_unknown == 0 and (.dumps | length == 1 and .[0].sound)'
    cp many.data perf.data
    checked 0 --jitdump "$number:given/${dump##*/}"
    is '.profile.samples.jit_unknown == 0 and (.dumps | length == 1 and .[0].sound)'
    rm perf.data
    mv "given/${dump##*/}" "$dump"
}

@test "the dump was moved together with the recording: it is said where it is" {
    local name=${dump##*/} text='No such file or directory; a file of that name lies beside the recording: --jitdump'
    cp "$dump" many.saved
    mkdir -p "moved/jitdump-$number"
    mv many.data moved
    mv "$dump" "moved/$name"
    run --separate-stderr perfjit inject -i moved/many.data
    exits 1
    says "${dump#"$paths_from"}: $text moved/$name"
    perfjit inject -q -i moved/many.data --jitdump "moved/$name" -o out.data
    mv "moved/$name" "moved/jitdump-$number"
    run --separate-stderr perfjit check moved/many.data
    mv "moved/jitdump-$number/$name" "$dump" # the same file, by its inode
    rm many.saved
    exits 3
    grep -F "${dump#"$paths_from"}: $text moved/jitdump-$number/$name" <<<"$output"
}

@test "the dump can't be read: dump-refused" {
    cp "$dump" many.saved
    printf 'something else, as long as the header of a dump is' >"$dump"
    only_cause many.data dump-refused
}

# The file is known by its inode.
# bats test_tags=live
@test "the dump was overwritten by another: dump-replaced" {
    mv "$dump" kept
    cp kept "$dump"
    printf '\377' | dd of="$dump" bs=1 seek=22 conv=notrunc status=none # the header's pid: it is no copy
    only_cause many.data dump-replaced
    mv kept "$dump"
}

@test "a dump with another pid in its name: pid-namespace" {
    other=$((number == 99999 ? 99998 : number + 1))
    [ ${#other} = ${#number} ] || other=$((number - 1))
    sed -i "s|/jit-$number\.dump|/jit-$other.dump|g" many.data
    mv "$dump" "${dump%/*}/jit-$other.dump"
    run --separate-stderr perfjit check many.data
    mv "${dump%/*}/jit-$other.dump" "$dump"
    exits 3
    [[ $output == *pid-namespace:* ]]
}

@test "a dump with the times of no clock: wrong-clock" {
    only_cause lie.data wrong-clock
}

@test "a dump that the recording does not name: no-marker" {
    sed -i "s|/jit-$number\.dump|/xit-$number.dump|g" many.data
    cp "$dump" .
    only_cause many.data no-marker
}

@test "a perf map without the function: not-in-map; none: no-dump, and one that is named stands for it" {
    local map named
    map=$paths_from/tmp/perf-$(cat map.pid).map
    mkdir -p "${map%/*}"
    cp map.map "$map"
    perfjit check --json map.data >json || [ $? = 3 ]
    is '.profile.samples.jit_named > 50'
    named=$(jq .profile.samples.jit_named json)
    sed -n 1,10p map.map >"$map"
    perfjit check --json map.data >json || [ $? = 3 ]
    is ".profile.samples.jit_named < $named and (.profile.unknown | all(.cause == \"not-in-map\"))"
    rm "$map"
    only_cause map.data no-dump
    checked 0 --perf-map "$(cat map.pid):map.map" map.data || checked 3 --perf-map "$(cat map.pid):map.map" map.data
    is ".profile.samples.jit_named == $named"
}

@test "a perf map that somebody else may have put there: map-refused" {
    local tmp=/tmp
    [ "$RECORDINGS" != stored ] || tmp=$recorded_root/tmp
    ln -sf "$PWD/map.map" "$tmp/perf-$(cat map.pid).map"
    only_cause map.data map-refused
}

@test "status 1: what is no recording, or is not there" {
    echo 'no recording' >none
    for file in none missing.data; do
        run --separate-stderr perfjit check $file
        exits 1
        says $file
    done
}

@test "status 2: two recordings, options that do not exist, --repair without one dump" {
    for arguments in 'many.data demo.data' '--nonsense' '--repair out.dump' '--repair out.dump many.data'; do
        run --separate-stderr perfjit check $arguments
        exits 2
    done
    [ ! -e out.dump ]
}

@test "status 1: standard output can't be written" {
    to_full() { perfjit check many.data >/dev/full; }
    run --separate-stderr to_full
    exits 1
    says "standard output"
}

@test "nothing is changed" {
    files . >before
    md5sum ./*.data quirk/* jitdump-*/jit-* >sums
    for data in many demo quirk churn silent; do perfjit check $data.data >/dev/null || [ $? = 3 ]; done
    perfjit check ./jitdump-*/jit-*.dump quirk/*.dump >/dev/null || [ $? = 3 ]
    md5sum --quiet -c sums
    files . | grep -v -e '^before ' -e '^sums ' -e '^after ' >after
    grep -v -e '^before ' before | same after /dev/stdin
}

# ---- Dumps ----

@test "a dump: everything in it is counted as perfjit dump shows it" {
    every_record
    checked 0 every.dump
    perfjit dump --json every.dump >records
    for kind in LOAD MOVE UNLOAD DEBUG_INFO INLINE_INFO UNWINDING_INFO CLOSE; do
        count=$(jq -s "map(select(.type == \"CODE_$kind\")) | length" records)
        is ".dumps[0].records.${kind,,} == $count"
        [ "$count" -ge 1 ]
    done
    is ".dumps[0] | .lines.functions == 2 and .lines.entries == 7 and .lines.outside == 0 and .inlined.calls == 2 and .inlined.spans == 3"
    is '.dumps[0] | .sound and .names.functions == .records.load and .names.empty == 1 and .clock.header_agrees'
    grep -qE '^ +CODE_LOAD +18$' text
}

# The error in each of them: a filter on .dumps[0].
faults=(
    'sound 0 .quirks == [] and .findings == []'
    'big-endian 0 .header.byte_order == "big"'
    'header-version 0 .header.version == 2'
    'header-foreign 3 .findings[0].what == "part of a dump that another process wrote"'
    'name-empty 0 .names.empty == 1'
    'name-absent 0 .names.empty == 1'
    'name-unprintable 0 .names.unprintable == 1'
    'time-backwards 0 .order.times_backwards == 1'
    'record-unknown 3 .records.unknown == 1'
    'part-twice 0 (.records.repeated_bytes > 100 and (.quirks | map(.quirk) == ["part-twice"]))'
    'record-torn 3 (.findings | map(.what) | index("torn part of a dump") != null)'
    'dump-cut 3 .records.cut_bytes > 0'
    'stubs-unread 0 (.records.cut_bytes > 0 and (.quirks | map(.quirk) == ["stubs-unread"]))'
    'code-behind 0 (.quirks | map(.quirk) == ["code-behind"])'
)

@test "a dump: what is wrong with it is found" {
    for fault in "${faults[@]}"; do
        read -r name wanted filter <<<"$fault"
        mkdir "fault-$name"
        "$BUILD/producers/quirks" "$name" "fault-$name" 0
        checked "$wanted" "fault-$name"/jit-*.dump
        is ".dumps[0] | $filter"
        is ".dumps[0].sound == ($wanted == 0)"
    done
}

@test "a dump: unwind tables in every function of tinyjit, lines within them, no overlap without an unload" {
    checked 0 "$(dumps_of demo.data)"
    is '.dumps[0] | .unwind.functions == .names.functions and .unwind.broken == 0 and .order.overlaps == 0'
    is '.dumps[0] | .lines.functions > 5 and .lines.outside == 0 and .lines.unmatched == 0 and .lines.biased == 0'
}

@test "a dump: lines outside of their function, and without one" {
    every_record
    perfjit dump --json every.dump >records
    at=$(jq -s 'map(select(.type == "CODE_DEBUG_INFO"))[0].offset' records)
    printf '\xff' | dd of=every.dump bs=1 seek=$((at + 32 + 5)) conv=notrunc status=none # in the first entry's address
    checked 3 every.dump
    is '.dumps[0].lines | .outside == 1 and .unmatched == 0'
    printf '\xff' | dd of=every.dump bs=1 seek=$((at + 16 + 5)) conv=notrunc status=none # in the table's
    checked 3 every.dump
    is '.dumps[0].lines | .outside == 0 and .unmatched == 1'
    grep -q 'LOST: tables without a load' text
}

# bats test_tags=live
@test "a dump: node's lines are 0x40 too far" {
    command -v node || skip "no node"
    mkdir node
    echo 'let s = 0; for (let i = 0; i < 1e5; i++) s += Math.sqrt(i); console.log(s)' >node/program.js
    (cd node && node --perf-prof program.js)
    perfjit check --json node/jit-*.dump >json || [ $? = 3 ]
    is '.dumps[0].lines | .functions > 3 and .biased == .functions'
}

@test "a dump: times that stand still, and a header of another clock" {
    PERFJIT=dump JITDUMPDIR=$PWD/quirk "$BUILD/producers/many_functions" -n 20 -s 0.01
    still=$(grep -l function_00019 quirk/jitdump-*/jit-*.dump)
    checked 0 "$still"
    is '.dumps[0].clock | .header_agrees and .stands_still == false'
    head -c -16 "$still" >still.dump # without its CLOSE
    set_times still.dump true 77
    checked 3 still.dump
    is '.dumps[0].clock | .stands_still and .first == 77 and .last == 77 and .header_agrees == false'
    mkdir wall
    "$BUILD/producers/lying_clock" wall wallus mono ns 20
    checked 0 wall/jit-*.dump
    is '.dumps[0].clock.header_agrees == false'
    grep -q "the header's time is the wall clock's, as V8 and CPython write it: unusual, but nothing is lost" text
    mkdir real
    "$BUILD/producers/lying_clock" real realtime mono ns 20
    checked 0 real/jit-*.dump
    grep -q "the header's time is not that of the records: unusual, but nothing is lost" text
}

# JSC takes the header's time 0.5 to 1 ms after its first record's, and as V8 writes no CODE_CLOSE.
@test "a dump: what JSC and V8 write every time is not said as if it were wrong" {
    every_record
    perfjit dump --json every.dump | jq -s 'map(select(.type == "CODE_CLOSE"))[0].offset' >close
    truncate -s "$(cat close)" every.dump
    perfjit dump --json every.dump | jq 'select(.record == 0).timestamp | tonumber' >first
    set_u64 every.dump 24 $(($(cat first) + 700000))
    checked 0 every.dump
    is '.dumps[0].clock.header_agrees and (.dumps[0].records | has("close") and .close == 0)'
    run ! grep -q "the header's time" text
    run ! grep -q "did not end" text
    grep -q "no CODE_CLOSE: V8 and JSC never write one" text
    set_u64 every.dump 24 $(($(cat first) + 100000000))
    checked 0 every.dump
    grep -q "the header's time is not that of the records: unusual, but nothing is lost" text
}

@test "a dump: names cannot reach the terminal" {
    every_record
    mv every.dump $'esc\033[31m.dump'
    perfjit check ./esc*.dump >text
    run ! grep -P '[\x00-\x09\x0b-\x1f\x7f]' text
    perfjit check --json ./esc*.dump | jq -e '.dumps[0].file == "./esc\u001b[31m.dump"'
}

@test "status 1: a dump that can't be read; the others are checked" {
    every_record
    head -c 20 every.dump >short.dump
    run --separate-stderr perfjit check --json short.dump every.dump
    exits 1
    says "short.dump: only 20 bytes"
    jq -e '.dumps | map(.readable) == [false, true]' <<<"$output"
}
