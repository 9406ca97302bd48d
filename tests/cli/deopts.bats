#!/usr/bin/env bats
# When and why V8 gave code up, by its code log: in report, in the page, and in the Firefox Profiler's profile.
#
# Judge: the log itself.
# bats file_tags=live
load helper

setup() {
    require_perf
    mkdir "$BATS_TEST_TMPDIR/run" "$BATS_TEST_TMPDIR/tmp"
    cd "$BATS_TEST_TMPDIR/run" || return
    export TMPDIR=$BATS_TEST_TMPDIR/tmp HOME=$BATS_TEST_TMPDIR/tmp
    cat >work.js <<'END'
function add(a, b) { return a.x + b.x; }
function sum(n, o) {
    let s = 0;
    for (let i = 0; i < n; i++) s += add(o, { x: i });
    return s;
}
function spend(ms, o) {
    const begin = process.cpuUsage().user;
    while (process.cpuUsage().user - begin < ms * 1000) sum(20000, o);
}
spend(200, { x: 1 });
spend(200, { y: 2, x: 1 }); // another shape
spend(200, { y: 2, x: "a" }); // another type
console.log("done");
END
}

# deopts_of ARGUMENT...: those of work.js that report tells: function, reason, place
deopts_of() {
    perfjit report --json "$@" | jq -r '.functions[] | select(.file | endswith("/work.js")) | .name as $name | .deopts[]? | [$name, .reason, .place] | @tsv' | sort
}

# Of node's own code no sample need be there.
deopts_in_log() { # LOG...
    cat "$@" | awk -F, -v OFS='\t' '$1 == "code-deopt" && $8 ~ /work\.js/ {
        place = substr($8, 2, length($8) - 2)
        gsub(/> inlined at </, " inlined at ", place)
        print $9, place
    }' | sort
}

@test "record --deopts: each deopt with reason and place, for node itself and for one that a program starts" {
    local page
    for way in "node work.js" "sh -c 'node work.js; true'"; do
        eval "run --separate-stderr perfjit record --deopts $way"
        exits 0
        [ "$output" = done ] || complain "$way: printed $output"
        [ -z "$(ls -A "$TMPDIR")" ] || complain "left in TMPDIR: $(find "$TMPDIR")"
        deopts_of perfjit.perf.data >deopts
        grep -qE $'^(sum|add)\twrong map\t.*/work.js:1:' deopts || complain "$way: $(cat deopts)"
    done
    perfjit report --callers sum perfjit.perf.data >callers
    grep -qE '^    deoptimised [0-9]+ times?: .*, at .*/work.js:' callers || complain "$(cat callers)"
    perfjit flamegraph -q perfjit.perf.data
    page=$(python3 -c '
import base64, json, sys, zlib
text = open(sys.argv[1]).read().split("id=\"data\">")[1].split("<")[0]
data = json.loads(zlib.decompress(base64.b64decode(text)))
moments, strings = data["moments"], data["strings"]
for kind, before, frame, reason, place in zip(*(moments[name] for name in ("kind", "before", "frame", "reason", "place"))):
    if kind == 1 and reason:
        print(strings[data["frames"]["name"][before]], frame, strings[reason], strings[place])' perfjit.perf.data.html)
    [[ $page == *" -1 wrong map "*/work.js:1:* ]] || complain "$page"
}

@test "record without --deopts tells of none" {
    run --separate-stderr perfjit record node work.js
    exits 0
    [ -z "$(deopts_of perfjit.perf.data)" ] || complain "$(deopts_of perfjit.perf.data)"
}

@test "--v8-log of a log by hand: as many as the log has, before and after inject, and in a range of time" {
    local first told
    local words=(--perf-prof --log-code --no-log-source-code --log-deopt --redirect-code-traces --redirect-code-traces-to="$PWD/traces" --logfile="$PWD/v8.log")
    perf record -q -k mono -F 999 -g -e cpu-clock:u -o in.data node "${words[@]}" work.js >/dev/null
    deopts_in_log isolate*v8.log >logged
    [ -s logged ] || complain "the log has none: $(grep -c . isolate*v8.log)"
    deopts_of in.data --v8-log . | cut -f 2- | sort >told
    same logged told
    perfjit inject -f -q -i in.data -o out.data --v8-log .
    deopts_of out.data | cut -f 2- | sort >kept
    same logged kept
    perfjit export -q -f firefox out.data | jq -r '.threads[] | .stringArray as $s | .markers as $m | range($m.length) as $i | select($s[$m.name[$i]] == "deopt") | $m.data[$i].name' >markers
    grep -E ', at .*work\.js' markers | sed 's/^[a-z]*: //; s/, at /\t/' | sort >exported
    same logged exported
    perfjit move --copy out.data moved.data
    deopts_of moved.data | cut -f 2- | sort >moved.told
    same logged moved.told
    first=$(perfjit report --json out.data | jq '[.functions[].deopts[]?.seconds] | min')
    told=$(deopts_of out.data --time "0-$(jq -n "$first - 0.00001")")
    [ -z "$told" ] || complain "before the first: $told"
    told=$(deopts_of out.data --time "$(jq -n "$first - 0.00001")-")
    [ -n "$told" ] || complain "none from the first, $first, on"
}
