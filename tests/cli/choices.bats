#!/usr/bin/env bats
# --time, --thread, --process and --event: every view has the sums that perf script's lines have.
load helper
load views

setup_file() {
    stored_alone || return 0
    cd "$BATS_FILE_TMPDIR" || return
    recording answers/tinyjit
    recording answers/node
    for form in fp two node; do
        perf script -i $form --ns -F comm,pid,tid,time,event,period 2>/dev/null |
            sed -E 's|^ *(.*[^ ]) +([0-9]+)/([0-9]+) +([0-9]+)\.([0-9]{9}): +([0-9]+) +([^ ]+): *$|\2 \3 \4\5 \6 \7 \1|' >$form.lines
    done
}

setup() {
    stored_alone
    cd "$BATS_FILE_TMPDIR" || return
}

# sums FORM EVENT CONDITION [FROM TO]: the number of the samples of FORM and the sum of their periods, from FROM seconds behind the
# first sample up to TO.  CONDITION sees pid, tid and comm.
sums() {
    python3 - "$@" <<'END'
import sys
form, event, condition, start, end = sys.argv[1:] + ["0", "1e9"][len(sys.argv) - 4:]
lines = [line.rstrip("\n").split(" ", 5) for line in open(form + ".lines")]
assert len(lines) > 100, form
first = min(int(line[2]) for line in lines)
chosen = [int(period) for pid, tid, time, period, name, comm in lines
          if name == event and eval(condition, {"pid": pid, "tid": tid, "comm": comm})
          and round(float(start) * 1e9) <= int(time) - first < round(float(end) * 1e9)]
print(len(chosen), sum(chosen))
END
}

# In one sample a function is in one tier: the innermost, if it calls itself.
@test "in a range of time a function has the tiers that it was in then" {
    local at
    for at in $(awk '{ print $3 }' node.lines | sort -n | awk 'NR == 1 { first = $1 } NR % 40 == 0 { printf "%.9f\n", ($1 - first) / 1e9 }'); do
        perfjit report -q --json --time "$at-$(awk -v at="$at" 'BEGIN { printf "%.9f", at + 1e-9 }')" node >one
        jq -e '.samples == 1 and all(.functions[]; .kind | contains("+") | not)' one >/dev/null || complain "at $at: $(jq -c .functions one)"
    done
    perfjit report -q --json node | jq -e '[.functions[] | select(.kind | contains("+"))] | length > 0' >/dev/null
}

@test "a range of time has the samples in it, in seconds and in percent, and neighbours add up" {
    for form in fp node; do
        event=$(awk 'NR == 1 { print $5 }' $form.lines)
        length=$(awk '{ t = $3 + 0; if (!a || t < a) a = t; if (t > b) b = t } END { printf "%.9f", (b - a) / 1e9 }' $form.lines)
        at() { awk -v length_s="$length" -v share="$1" 'BEGIN { printf "%.9f", length_s * share }'; }
        [ $form = fp ] && by=views || by=reported
        [ "$(views $form --time 0-)" = "$(sums $form "$event" True)" ]
        [ "$($by $form --time "$(at 0.2)-$(at 0.5)")" = "$(sums $form "$event" True "$(at 0.2)" "$(at 0.5)")" ]
        [ "$($by $form --time 20%-50%)" = "$(sums $form "$event" True "$(at 0.2)" "$(at 0.5)")" ]
        [ "$($by $form --time "-$(at 0.3)")" = "$(sums $form "$event" True 0 "$(at 0.3)")" ]
        [ "$($by $form --time 90%-100%)" = "$(sums $form "$event" True "$(at 0.9)" 1e9)" ]
        # A sample at the end of a range is in the next one.
        exact=$(awk '{ print $3 }' $form.lines | sort -n | awk 'NR == 1 { first = $1 } NR == 60 { printf "%.9f", ($1 - first) / 1e9 }')
        [ "$($by $form --time "-$exact")" = "$(sums $form "$event" True 0 "$exact")" ]
        [ "$($by $form --time "$exact-")" = "$(sums $form "$event" True "$exact")" ]
        total=0
        for tenth in {0..9}; do
            part=$(perfjit report -q --json --time "$((tenth * 10))%-$((tenth * 10 + 10))%" $form | jq .total)
            total=$((total + part))
        done
        [ "$total" = "$(sums $form "$event" True | cut -d' ' -f2)" ] || complain "$form: the tenths have $total"
    done
}

@test "a range by the clock is the same as in seconds" {
    # The clock's time of the first sample, here.
    begun=$(perf script -i fp --header-only 2>/dev/null | sed -n 's/^# reference time: .* = \([0-9.]*\) .* = \([0-9.]*\) .*/\1 \2/p')
    read -r wall mono <<<"$begun"
    [ -n "$mono" ] || complain "perf does not tell the clock: $(perf script -i fp --header-only | grep reference)"
    clock() { # SECONDS behind the first sample
        python3 -c 'import sys, time
wall, mono, first, since = sys.argv[1:]
ns = int(wall.replace(".", "").ljust(19, "0")[:19]) - int(float(mono) * 1e9) + int(first) + int(float(since) * 1e9)
print(time.strftime("%H:%M:%S", time.localtime(ns // 10**9)) + ".%09d" % (ns % 10**9))' "$wall" "$mono" "$(cut -d' ' -f3 fp.lines | sort -n | head -1)" "$1"
    }
    for TZ in UTC Asia/Kathmandu; do
        export TZ
        got=$(views fp --time "$(clock 0.1)-$(clock 0.3)")
        # perf prints the clocks in microseconds or coarser: a sample at an end may be on either side.
        low=$(sums fp cpu-clock True 0.102 0.298) high=$(sums fp cpu-clock True 0.098 0.302)
        [ "${got% *}" -ge "${low% *}" ] && [ "${got% *}" -le "${high% *}" ] || complain "$TZ $(clock 0.1): $got, not $low to $high"
    done
}

@test "threads and processes, by name, by pattern and by number" {
    pid=$(awk 'NR == 1 { print $1 }' node.lines)
    event=$(awk 'NR == 1 { print $5 }' node.lines)
    other=$(awk '$1 != $2 { print $2 }' node.lines | sort | uniq -c | sort -rn | awk 'NR == 1 { print $2 }')
    [ -n "$other" ]
    [ "$(views node --thread "$pid")" = "$(sums node "$event" "tid == '$pid'")" ]
    [ "$(reported node --thread "$other")" = "$(sums node "$event" "tid == '$other'")" ]
    name=$(awk -v tid="$other" '$2 == tid { $1 = $2 = $3 = $4 = $5 = ""; sub(/^ */, ""); print }' node.lines | tail -1)
    [ "$(views node --thread "$name")" = "$(sums node "$event" "comm == '$name'")" ]
    [ "$(reported node --thread "${name:0:3}*")" = "$(sums node "$event" "comm.startswith('${name:0:3}')")" ]
    [ "$(views node --process "$pid" --time 20%-)" = "$(reported node --time 20%- --pid "$pid")" ]
    [ "$(reported node --process node)" = "$(sums node "$event" True)" ]
    run --separate-stderr perfjit report --thread nobody node
    exits 1
    says "node: has no samples of that thread: 'nobody'; it has: "
    run --separate-stderr perfjit report --thread "$other" --process 1 node
    exits 1
    says "has no samples of that process: '1'; it has: node $pid"
}

@test "an event, and all choices together" {
    pid=$(awk 'NR == 1 { print $1 }' two.lines)
    [ "$(views two --event task-clock --time 30%- --thread "$pid")" = \
        "$(sums two task-clock "tid == '$pid'" "$(awk '{ t = $3 + 0; if (!a || t < a) a = t; if (t > b) b = t } END { printf "%.9f", (b - a) * 0.3 / 1e9 }' two.lines)")" ]
}

@test "diff takes the same choices for both sides" {
    perfjit diff -q --time -50% --base fp --new fp --json diff >/dev/null
    [ "$(jq '.total.base' diff)" = "$(perfjit report -q --json --time -50% fp | jq .total)" ] || complain "$(jq -c .total diff)"
}

@test "what is no time, and a recording without times" {
    for words in x - "" 1 2-1 1-1 10-20% 10%-5 50%-101% -- 1e3-2 25:00-26:00 1-2-3 1:99- inf- nan- "$(printf '9%.0s' {1..40})-"; do
        run --separate-stderr perfjit report --time "$words" fp
        exits 2
        says "--time is FROM-TO"
    done
    run --separate-stderr perfjit report --time 1000000- fp
    exits 1
    says "has no samples in that time"
    run --separate-stderr perfjit report --time 0-99999999999999999999 fp
    exits 0
}

@test "off-CPU samples stand in the page beside the others" {
    recording sound/tinyjit
    sound=$(ls ./*.data | grep -v -e waited -e choice | head -1)
    perf script -i "$sound" -F ip 2>/dev/null | tr -d ' ' | sort | uniq -c | sort -rn | awk 'NR == 1 { print $2 }' >waited.data.at
    python3 "$here/lossy.py" waited "$sound" waited.data
    perfjit flamegraph -q -o waited.html waited.data
    data waited.html | jq -e '.waiting.weight == [700000000] and (.samples.weight | length) > 100 and .waiting.node[0] > 0' >/dev/null ||
        complain "$(data waited.html | jq -c .waiting)"
    perfjit flamegraph -q --event offcpu-time -o waited.html waited.data
    data waited.html | jq -e '.waiting == null and .samples.weight == [700000000]' >/dev/null
}

@test "samples that perf wrote behind all time (--off-cpu of old perfs) are in no range, and do not stretch it" {
    recording recordings/off-cpu
    "$BUILD/producers/rare_form" off_cpu in.data off.data
    all=$(perfjit report -q --json off.data | jq .samples)
    inside=$(perfjit report -q --json --time 0-100000 off.data | jq .samples)
    [ "$inside" -gt 100 ] && [ "$inside" -lt "$all" ] || complain "$inside of $all"
    [ "$(perfjit report -q --json --time 0%-50% off.data | jq .samples)" -lt "$inside" ]
    perfjit flamegraph -q -o off.html off.data
    data off.html | jq -e '[foreach .samples.time[] as $t (0; . + $t)] | max < 1e9' >/dev/null
}

@test "the page tells the clock's time at the recording's first sample, and counts from it in every range" {
    perfjit flamegraph -q -o all.html fp
    perfjit flamegraph -q --time 50%- -o half.html fp
    begun=$(perf script -i fp --header-only 2>/dev/null | sed -n 's/^# captured on *: //p')
    start=$(data all.html | jq .start)
    [ "$start" = "$(data half.html | jq .start)" ]
    # perf says when the file was written, to the second.
    python3 -c 'import sys, time
start, captured = float(sys.argv[1]) / 1000, time.mktime(time.strptime(sys.argv[2].strip()))
sys.exit(not captured - 60 < start < captured + 3)' "$start" "$begun" || complain "$start, written $begun"
    first=$(data half.html | jq '[foreach .samples.time[] as $time (0; . + $time)] | min')
    last=$(data all.html | jq '[foreach .samples.time[] as $time (0; . + $time)] | max')
    [ "$first" -ge $((last / 2 - 1)) ] && [ "$first" -lt "$last" ]
}

@test "a picture is as wide as --width says" {
    perfjit flamegraph -q --svg --width 800 -o narrow.svg fp
    grep -q 'viewBox="0 0 800 ' narrow.svg
    awk -F'"' '/<rect x=/ { if ($2 + $6 > 801) exit 1; if ($2 + $6 > most) most = $2 + $6 } END { exit !(most > 790) }' narrow.svg || complain "boxes are elsewhere"
    for width in x 99 100001 -5; do
        run --separate-stderr perfjit flamegraph --svg --width "$width" fp
        exits 2
        says "--width is a number from 100 to 100000"
    done
    run --separate-stderr perfjit flamegraph --width 800 fp
    exits 2
    says "--width is for --svg: a page is as wide as its window"
}
