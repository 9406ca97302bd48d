#!/usr/bin/env bats
# Markers of perfjit export -f firefox: the program's spans, and when functions changed their tier.
#
# Judge: the files that the program wrote. That the reader takes such profiles was tried with its own upgraders, to version 70.
# bats file_tags=live
load helper

setup() {
    require_perf
    cd "$BATS_TEST_TMPDIR" || return
}

# markers_of NAME: those of own.json: thread, from, to, text
markers_of() {
    jq -r --arg name "$1" '.threads[] | .tid as $tid | .stringArray as $s | .markers as $m | range($m.length) as $i | select($s[$m.name[$i]] == $name) |
        [$tid, $m.startTime[$i], ($m.endTime[$i] // "-"), $m.data[$i].name] | @tsv' own.json
}

# Each column is as long as the table says, each type is described, and no thread has a name of a marker that it does not have.
well_made() {
    jq -e '(.meta.markerSchema | map(.name)) as $types | [.threads[] | .stringArray as $s | .markers as $m |
        ([$m.data, $m.name, $m.startTime, $m.endTime, $m.phase, $m.category | length == $m.length] | all) and
        ([$m.data[].type | IN($types[])] | all) and ($m.startTime == ($m.startTime | sort)) and
        ([range($m.length) as $i | ($m.endTime[$i] == null) == ($m.phase[$i] == 0)] | all) and
        ($s | length == (unique | length))] | all' own.json >/dev/null || complain "$(jq -c '[.threads[].markers]' own.json)"
}

@test "spans are markers of their thread, as long as the program said" {
    PERFJIT=dump JITDUMPDIR=$PWD perf record -q -k mono -g --switch-events -e cpu-clock/freq=1000/ -e context-switches/period=1/ -o perf.data "$BUILD/producers/waits"
    perfjit export -q -f firefox -o own.json perf.data
    well_made
    markers_of UserTiming | awk -F '\t' '{ printf "%.3f %s\n", $3 - $2, $4 }' | sort >shown
    find . -name 'marker-*.txt' -exec cat {} + | awk '{ name = $0; sub(/^[0-9]+ [0-9]+ /, "", name); printf "%.3f %s\n", ($2 - $1) / 1e6, name }' | sort >written
    [ -s written ] || complain "no spans were written: $(ls -R)"
    same written shown
    for file in $(find . -name 'marker-*-*.txt'); do # of one thread
        tid=${file##*-}
        [ "$(markers_of UserTiming | grep -c "^${tid%.txt}"$'\t')" = "$(grep -c . "$file")" ] || complain "$file: $(markers_of UserTiming)"
    done
    # Up to where the workers begin, of which one may wait for a processor.
    begun=$(markers_of UserTiming | awk -F '\t' '$4 != "start" && (!least || $2 < least) { least = $2 } END { printf "%.9f", least / 1000 - 1e-6 }')
    perfjit export -q -f firefox --time "0-$begun" -o own.json perf.data
    well_made
    [ "$(markers_of UserTiming | cut -f 4)" = start ] || complain "$(markers_of UserTiming)"
}

@test "tier-ups are markers at the time of the sample that shows them" {
    cat >tiers.js <<'END'
function mix(n, o) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + (i ^ o.k)) % 1000003; return s; }
for (let o = { k: 3 }, t = 0; process.cpuUsage().user < 1.5e6;) for (let i = 0; i < 1000; i++) t += mix(200, o);
END
    perf record -q -k mono -e cpu-clock -F 4000 -g -o any node --perf-prof --interpreted-frames-native-stack --no-use-osr --no-sparkplug --interrupt-budget=30000000 \
        --interrupt-budget-factor-for-feedback-allocation=4000 --interrupt-budget-for-feedback-allocation=40000000 tiers.js
    perfjit export -q -f firefox -o own.json any
    well_made
    [ "$(jq '[.threads[].samples.time[]] as $times | [.threads[] | .stringArray as $s | .markers as $m | range($m.length) as $i | select($s[$m.name[$i]] == "tier-up") | $m.startTime[$i] | IN($times[])] | all' own.json)" = true ] || complain "$(markers_of tier-up)"
    [[ $(markers_of tier-up) == *"mix: bytecode to TurboFan"* ]] || complain "$(markers_of tier-up)"
}
