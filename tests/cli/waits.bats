#!/usr/bin/env bats
# Threads that waited, how many ran at a time, and the program's spans: sums are those of perf script's lines (waits.py), and perf 7's.
load helper
load views

setup_file() {
    require_perf || return 0
    cd "$BATS_FILE_TMPDIR" || return
    recording stacks record_waits stacks -e cpu-clock/freq=1000/ -e context-switches/period=1/
    recording records record_waits records -e cpu-clock/freq=1000/
    recording plain record_plain
    for form in stacks records; do
        perfjit inject -q -i $form -o $form.jit
        perfjit flamegraph -q -o $form.html $form
    done
}

setup() {
    require_perf
    cd "$BATS_FILE_TMPDIR" || return
}

# record_waits DATA OPTION...: the producer, with its switches.
record_waits() {
    local data=$1
    shift
    PERFJIT=dump JITDUMPDIR=$PWD perf record -q -k mono -g --switch-events -o "$data" "$@" "$BUILD/producers/waits"
}

record_plain() {
    PERFJIT=dump JITDUMPDIR=$PWD perf record -q -k mono -g -e cpu-clock -F 1000 -o plain "$BUILD/producers/waits"
}

# judge WORD...
judge() {
    python3 "$here/waits.py" "$@"
}

@test "off-CPU time is from each OUT to the next IN, by thread and in each view, before and after inject" {
    for form in stacks records stacks.jit records.jit; do
        [ $form = records.jit ] && by=reported || by=views
        judge waits "${form%.jit}" >judged
        [ "$($by $form --off-cpu)" = "$(sed -n 's/^all //p' judged)" ] || complain "$form: $(tail -1 judged)"
        perfjit report -q --json --by thread --off-cpu $form | jq -r '.rows[] | "\(.name | sub(".*/"; "")) \(.samples) \(.weight)"' | sort >own
        same own <(grep -v all judged | sort)
        [ "$(perfjit report -q --json --event offcpu-time $form | jq .total)" = "$(awk '/^all/ { print $3 }' judged)" ]
        [ "$(perfjit report -q --json $form | jq .off_cpu_ns)" = "$(awk '/^all/ { print $3 }' judged)" ]
    done
}

@test "of a wait a range of time has its part, and ranges add up" {
    for form in stacks records; do
        [ "$(views $form --off-cpu --time 0.05-0.123)" = "$(judge waits $form 0.05 0.123 | sed -n 's/^all //p')" ]
        sum=0
        for tenth in {0..9}; do
            part=$(perfjit report -q --json --off-cpu --time "$((tenth * 10))%-$((tenth * 10 + 10))%" $form | jq .total)
            sum=$((sum + part))
        done
        [ "$sum" = "$(perfjit report -q --json --off-cpu --time 0- $form | jq .total)" ]
    done
}

@test "the JIT's function in which threads slept has that time, and its callers the rest of the stack" {
    for form in stacks stacks.jit; do
        perfjit report -q --json --off-cpu $form >json
        # Twelve naps of 4 ms, in which nothing else ran.
        jq -e '.functions[] | select(.name == "naps") | .total >= 48000000 and .self == 0' json >/dev/null || complain "$form: $(jq -c '.functions[0:5]' json)"
        [ "$(perfjit export -q -f folded --weight samples --off-cpu $form | grep 'naps_\[j\];' | grep -v preempted | awk '{ n += $NF } END { print n }')" = 12 ]
        ! perfjit report --off-cpu $form | grep 'last sample before' || complain "$form has the stacks"
    done
}

@test "a thread that waited for a processor has a frame that says so, behind the stack" {
    # The worker's switches, as if it had had more to do: SWITCH with misc bit 14.
    python3 - stacks pressed <<'END'
import struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
at, size = struct.unpack_from("<QQ", data, 40)
end = at + size
while at < end:
    kind, misc, size = struct.unpack_from("<IHH", data, at)
    if kind == 14 and misc & 1 << 13:
        struct.pack_into("<H", data, at + 4, misc | 1 << 14)
    at += size
open(sys.argv[2], "wb").write(data)
END
    perfjit report -q --json --off-cpu pressed >json
    jq -e '.total > 0 and .total == (.functions[] | select(.name == "[preempted]") | .self)' json >/dev/null || complain "$(jq -c '.functions[0:3]' json)"
    [ "$(jq .total json)" = "$(perfjit report -q --json --off-cpu stacks | jq .total)" ]
    jq -e '.functions[] | select(.name == "naps") | .total >= 48000000' json >/dev/null
}

@test "without stacks of the waits they are those of the thread's last samples, and that is said" {
    waits=$(judge waits records | awk '/^all/ { print $2 }')
    for command in "report --off-cpu" "export -f folded --off-cpu -o out" "flamegraph -o out"; do
        run --separate-stderr perfjit $command records
        exits 0
        [[ $output$stderr == *"of $waits waits, "*" the stack of the thread's last sample before"*"perfjit record --off-cpu takes the stacks"* ]] || complain "$command: $output$stderr"
    done
    perfjit export -q -f folded --weight samples --off-cpu records | grep -q 'computes_\[j\]'
    # A page of CPU time alone has a view of it; a table has not.
    ! perfjit report records 2>&1 | grep 'last sample before' || complain "a table of CPU time has no waits"
}

@test "the page has waiting as a view and beside the chosen event" {
    for form in stacks records; do
        data $form.html | jq -r '"\(.waiting.weight | length) \(.waiting.weight | add)"' >own
        same own <(judge waits $form | sed -n 's/^all //p')
    done
    perfjit flamegraph -q --off-cpu -o waited.html stacks
    data waited.html | jq -e '.waits and .waiting == null and .unit == "ns"' >/dev/null
}

@test "--latency divides each sample by how many threads ran: the judge's sums, and perf 7's shares" {
    for form in stacks records stacks.jit; do
        perfjit report -q --json --by thread --latency $form | jq -r '.rows[] | "\(.name | sub(".*/"; "")) \(.weight)"' | sort >own
        same own <(judge latency "${form%.jit}" | sort)
        same <(perfjit report -q --json --weight latency $form | jq .total) <(judge latency "${form%.jit}" | awk '{ n += $2 } END { print n }')
        [ "$(views $form --latency | cut -d' ' -f2)" = "$(judge latency "${form%.jit}" | awk '{ n += $2 } END { print n }')" ]
    done
    [ "$RECORDINGS" = stored ] || return 0
    # Some samples were taken while both workers ran, which a busy machine never lets them.
    [ "$(perfjit report -q --json --latency stacks | jq .total)" -lt "$(perfjit report -q --json stacks | jq .total)" ]
    for form in stacks records; do # LATENCY OVERHEAD TID, in percent
        # make recordings makes others, of which perf 7 has not been asked yet.
        if ! grep -qx "of $(sha256sum <$form | cut -c1-16)" "$here/../recordings/waits/$form.perf7"; then
            echo "# waits/$form.perf7 is of another recording: tests/recordings/README.md" >&3
            continue
        fi
        perfjit report -q --by thread --latency -n 0 $form | sed -nE 's,^ *([0-9.]+)% .*/([0-9]+)$,\2 \1,p' | sort >own
        same own <(awk 'NF == 3 { print $3, $1 }' "$here/../recordings/waits/$form.perf7" | sort)
        perfjit report -q --by thread -n 0 $form | sed -nE 's,^ *([0-9.]+)% .*/([0-9]+)$,\2 \1,p' | sort >own
        same own <(awk 'NF == 3 { print $3, $2 }' "$here/../recordings/waits/$form.perf7" | sort)
    done
}

@test "diff compares off-CPU time and latency" {
    for words in --off-cpu --latency; do
        perfjit diff -q $words --base stacks --new stacks --json diff >/dev/null
        [ "$(jq '.total.base' diff)" = "$(perfjit report -q --json $words stacks | jq .total)" ] || complain "$words: $(jq -c .total diff)"
    done
}

@test "a recording without switches has neither, and says what records them" {
    for words in --off-cpu "--event offcpu-time"; do
        run --separate-stderr perfjit report $words plain
        exits 1
        says "plain: does not tell when threads waited; perfjit record --off-cpu records it"
    done
    run --separate-stderr perfjit report --latency plain
    exits 1
    says "plain: --latency: the recording does not tell how many threads ran"
    [ "$(perfjit report -q --json plain | jq .off_cpu_ns)" = 0 ]
}

@test "--span is the time in the program's spans of that name, of the thread whose they are" {
    for form in stacks records stacks.jit; do
        [ $form = stacks ] && by=views || by=reported
        perf script -i "${form%.jit}" -F tid 2>/dev/null | sort -un >tids
        for name in "GET /a" "GET /b"; do
            read -r ns count period <<<"0 0 0"
            for marker in marker-*-*.txt; do
                grep -q . "$marker"
                tid=${marker##*-}
                grep -qx " *${tid%.txt} *" tids || continue
                read -r of_ns of_count of_period < <(judge span "${form%.jit}" "$marker" "$name")
                ((ns += of_ns, count += of_count, period += of_period)) || true
            done
            [ "$count" -gt 5 ]
            [ "$($by $form --span "$name")" = "$count $period" ] || complain "$form $name: $count $period"
            [ "$($by $form --span "$name" --off-cpu | cut -d' ' -f2)" = "$ns" ] || complain "$form $name: $ns"
        done
        both=$(perfjit report -q --json --span "GET *" $form | jq .total)
        [ "$both" = $(($(perfjit report -q --json --span "GET /a" $form | jq .total) + $(perfjit report -q --json --span "GET /b" $form | jq .total))) ]
        tid=$(perfjit report -q --json --by thread --span "GET *" $form | jq -r '.rows[0].name | sub(".*/"; "")')
        [ "$(perfjit report -q --json --span "GET *" --thread "$tid" $form | jq .total)" = "$(perfjit report -q --json --by thread --span "GET *" $form | jq '.rows[0].weight')" ]
        [ "$(perfjit report -q --json --span "GET *" --time -60% $form | jq .total)" -lt "$both" ]
    done
}

@test "a file of spans may be given, and what is not there is said" {
    marker=$(grep -l start marker-*.txt | head -1)
    pid=${marker#*-}
    pid=${pid%.txt}
    perf script -i stacks -F pid 2>/dev/null | grep -qx " *$pid *" && form=stacks || form=records
    sed 's/start/begun/' "$marker" >spans.txt
    [ "$(perfjit report -q --json --span begun --spans spans.txt $form | jq .total)" = "$(perfjit report -q --json --span start $form | jq .total)" ]
    run --separate-stderr perfjit report --span nothing $form
    exits 1
    says "$form: has no span 'nothing'; it has: start, GET /a, GET /b"
    run --separate-stderr perfjit report --span start --spans nowhere.txt $form
    exits 1
    says "nowhere.txt: can't read it: No such file or directory"
    mkdir away
    mv marker-*.txt away
    run --separate-stderr perfjit report --span start $form
    mv away/* .
    exits 1
    says "$form: has no spans"
}

@test "a recording on another clock than spans says that they may be off" {
    ! perfjit report --span start stacks 2>&1 | grep CLOCK_MONOTONIC || complain "it is on that clock"
    python3 - stacks elsewhere <<'END' # without use_clockid in its attributes
import struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
entry, at = struct.unpack_from("<QQ", data, 16)
size = struct.unpack_from("<Q", data, 32)[0]
for event in range(at, at + size, entry):
    flags = struct.unpack_from("<Q", data, event + 40)[0]
    struct.pack_into("<Q", data, event + 40, flags & ~(1 << 25))
open(sys.argv[2], "wb").write(data)
END
    run --separate-stderr perfjit report --span start elsewhere
    exits 0
    [[ $output$stderr == *"the recording is not on CLOCK_MONOTONIC, as the program's spans are"* ]] || complain "$output$stderr"
    ! perfjit report elsewhere 2>&1 | grep 'spans are' || complain "no span was asked for"
}

@test "the page has the spans" {
    data stacks.html | jq -r '.strings as $s | [.spans.name[] | $s[.]] | group_by(.) | map("\(.[0]) \(length)") | .[]' >own
    same own <(printf '%s\n' "GET /a 6" "GET /b 6" "start 1")
    data stacks.html | jq -e '[.spans.from, .spans.to] | transpose | all(.[0] < .[1])' >/dev/null
}

# bats test_tags=live
@test "sched_switch of the whole machine tells the same as its lines" {
    [ "$(id -u)" = 0 ] || skip "needs root"
    perf record -q -k mono -a -e sched:sched_switch -c 1 -g -o traced "$BUILD/producers/waits" || skip "no tracepoints"
    [ "$(perfjit report -q --json --off-cpu traced | jq -r '"\(.samples) \(.total)"')" = "$(judge traced traced | sed -n 's/^all //p')" ]
}

# bats test_tags=live
@test "record --off-cpu says what it records, and the JIT's stacks are there" {
    run --separate-stderr perfjit record --off-cpu -o own -- "$BUILD/producers/waits"
    exits 0
    [[ $stderr == *"off-CPU time: each switch of a thread is recorded, with its stack: context-switches/period=1"* ]] || complain "$stderr"
    perfjit report -q --json --off-cpu own.perf.data | jq -e '.functions[] | select(.name == "naps") | .total >= 48000000' >/dev/null
    perfjit report -q --json --latency own.perf.data | jq -e '.total > 0' >/dev/null
    # The run's folder is gone, and its spans stand beside the recording.
    perfjit report -q --json --span "GET *" own.perf.data | jq -e '.samples > 50' >/dev/null
    run --separate-stderr perfjit record -q -o own -- "$BUILD/producers/waits"
    perfjit report -q --json --span "GET *" own.perf.data.old | jq -e '.samples > 50' >/dev/null
}
