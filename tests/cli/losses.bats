# What a recording lacks because perf, the kernel or somebody else left it out: it is told wherever the recording is judged.  And
# recordings of newer perfs, which older ones can't open.
load helper

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    sound_recording tinyjit
}

setup() {
    cd "$BATS_TEST_TMPDIR"
    sound=$BATS_FILE_TMPDIR/sound.data
}

lossy() { # FORM
    python3 "$here/lossy.py" "$1" "$sound" "$1.data"
}

# told STATUS TEXT COMMAND...: it is said on either output.
told() {
    local status=0
    perfjit "${@:3}" >said 2>&1 || status=$?
    [ "$status" = "$1" ] || complain "${*:3}: status $status: $(cat said)"
    grep -qF "$2" said || complain "${*:3}: nothing of '$2': $(cat said)"
}

silent() { # TEXT COMMAND...
    perfjit "${@:2}" >said 2>&1 || complain "${*:2}: status $?: $(cat said)"
    ! grep -F "$1" said || complain "${*:2}"
}

@test "lost records and samples are told by each command, with the share, and check does not say sound" {
    local what form count
    lossy lost
    count=$(perfjit report -q --json "$sound" | jq .samples)
    what="perf lost 7000 samples, $(awk "BEGIN { printf \"%.1f\", 700000 / (7000 + $count) }") % of all (LOST_SAMPLES 7000, LOST 5000)"
    told 3 "$what" check lost.data
    ! grep 'sound:' said || complain "it is sound"
    perfjit check --json lost.data >json || [ $? = 3 ]
    jq -e '.profile | .sound == false and .lacks.lost_samples == 7000 and .lacks.lost_records == 5000' json >/dev/null || complain "$(cat json)"
    told 0 "$what" inject -i lost.data -o out.data
    told 3 "$what" check out.data # LOST records are passed on
    told 0 "$what" report lost.data
    for form in --gprof '--callers tj::' '--by thread' --json; do told 0 "$what" report $form lost.data; done
    perfjit report --json lost.data 2>/dev/null | jq -e ".lost.samples == 7000 and .lost.records == 5000 and .lost.share > 0.5" >/dev/null
    told 0 "$what" flamegraph -o page.html lost.data
    grep -qF "$what" page.html
    told 0 "$what" flamegraph --svg -o page.svg lost.data
    grep -qF "$what" page.svg
    told 0 "$what" export -f folded -o out.folded lost.data
    told 0 "warning: lost.data: $what" diff --base "$sound" --new lost.data
    silent 'perf lost' report -q --json lost.data
}

@test "samples that are longer than their records are counted and told by each command, and check does not say sound" {
    local count what form
    lossy torn
    count=$(perfjit report -q --json "$sound" | jq .samples)
    what="$(((count + 4) / 5)) x sample that contradicts itself"
    told 3 "$what" check torn.data
    ! grep 'sound:' said || complain "it is sound"
    for form in --gprof '--by thread' --json; do told 3 "$what" report $form torn.data; done
    told 3 "$what" export -f folded -o out.folded torn.data
    told 3 "$what" flamegraph -o page.html torn.data
    told 3 "$what" inject -i torn.data -o out.data
    told 3 "$what" report out.data
    [ "$(perfjit report -q --json torn.data | jq .samples)" = "$count" ]
}

@test "what nobody lost is not told: a sound recording, and samples that the user's own filter left out" {
    local data
    lossy filtered
    for data in "$sound" filtered.data; do
        told 0 "sound: every sample in JIT code has a name" check "$data"
        silent 'perf lost' inject -i "$data" -o out.data
        silent 'perf lost' report "$data"
        perfjit report --json "$data" | jq -e '.lost.share == 0 and .cut_chains.chains == 0' >/dev/null
    done
}

@test "chains that the kernel cut are told by report, check and flamegraph" {
    local what half
    lossy deep
    half=$(($(perfjit report -q --json "$sound" | jq .samples) / 2))
    what="$half of "
    for form in report 'flamegraph -o page.html' 'export -f folded -o out.folded' 'check'; do
        told 0 "call chains are cut at 127 frames" $form deep.data
        grep -q "$what[0-9]* call chains are cut at 127 frames.*sysctl kernel.perf_event_max_stack.*-g dwarf" said || complain "$form: $(cat said)"
    done
    grep -q '^<p class="lacks">[^\\]*cut at 127 frames[^\\]*</p>$' page.html || complain "$(grep lacks page.html)"
    perfjit report -q --json deep.data | jq -e ".cut_chains == {\"chains\": $half, \"frames\": 127}" >/dev/null
}

@test "a thread that waited (perf record --off-cpu): where, how long, and who, before and after inject" {
    local name data
    perf script -i "$sound" -F ip 2>/dev/null | tr -d ' ' | sort | uniq -c | sort -rn | awk 'NR == 1 { print $2 }' >waited.data.at
    lossy waited
    perfjit inject -q -i waited.data -o injected.data
    name=$(perfjit report -q --json --event offcpu-time waited.data | jq -r '.functions[0].name')
    [ -n "$name" ] && [ "$name" != "[unknown]" ]
    for data in waited.data injected.data; do
        perfjit report -q --json --event offcpu-time "$data" >json
        jq -e '.samples == 1 and .total == 700000000 and .unit == "ns"' json >/dev/null || complain "$data: $(cat json)"
        [ "$(jq -r '.functions[0].name' json)" = "$name" ] || complain "$data: $(cat json)"
        perfjit export -q -f folded --event offcpu-time -o - "$data" | grep -qE '^tinyjit;.* 1$'
        perfjit flamegraph -q -o page.html --event offcpu-time "$data"
        grep -qF "\"$name\"" <(data page.html)
    done
    perfjit check waited.data | grep -q "in all *$(($(perfjit report -q --json "$sound" | jq .samples) + 1))$"
}

@test "attributes of perf 7.2 (144 bytes): this perf opens what was injected, a file and a stream, and the names are the same" {
    lossy long
    ! perf script -i long.data >/dev/null 2>&1 || skip "this perf knows attributes of 144 bytes"
    perfjit inject -q -i "$sound" -o sound.jit.data
    perfjit inject -q -i long.data -o out.data
    perfjit inject -q -i long.data -o - --dso-dir out.data.dso >out.stream
    perf script -i sound.jit.data -F ip,sym >wanted
    perf script -i out.data -F ip,sym >got
    same got wanted
    perf script -i - -F ip,sym <out.stream >got
    same got wanted
    [ "$(grep -c 'tj::' got)" -gt 50 ]
    lossy longer # what is not 0 has a meaning
    perfjit inject -q -i longer.data -o out.data
    ! perf script -i out.data >/dev/null 2>&1 || complain "this perf opens an attribute whose end is lost"
    perfjit report -q --json out.data | jq -e '.samples > 0' >/dev/null
}

teardown() {
    [ -z "${restless:-}" ] || kill "$restless" 2>/dev/null || true
}

# restless_file cuts it for some microseconds, again and again; SEED 0 changes nothing else.
@test "a dump of one of two processes is cut while it is read: it is left out, and the other's functions have names" {
    local dumps status tries all other hit=0
    mkdir two
    cd two
    JITDUMPDIR=$PWD PERFJIT=dump recording bad_input/two record two.data sh -c '"$0" -n 20 -s 0.3 & "$0" -n 20 -s 0.3; wait' \
        "$BUILD/producers/many_functions"
    mapfile -t dumps < <(dumps_of two.data)
    [ ${#dumps[@]} = 2 ]
    chmod 600 "${dumps[@]}"
    [ "$(id -u)" != 0 ] || chown 0:0 "${dumps[@]}" two.data # a file of somebody else is copied
    perfjit inject -i two.data -o out.data
    all=$(perf script -i out.data -F ip,sym | grep -c 'function_[0-9]')
    mv "${dumps[0]}" gone
    other=$(perfjit inject -q -i two.data -o out.data || perf script -i out.data -F ip,sym | grep -c 'function_[0-9]')
    mv gone "${dumps[0]}"
    [ "$other" -gt 0 ] && [ "$all" -gt "$other" ] || complain "$all, of the other one $other"
    "$BUILD/producers/restless_file" "${dumps[0]}" 0 &
    restless=$!
    for ((tries = 0; hit < 3 && tries < 2000; tries++)); do
        status=0
        perfjit inject -i two.data -o out.data 2>said || status=$?
        case $status in
        0) continue ;; # nothing was cut just then
        3) ;;
        *) complain "status $status: $(cat said)" ;;
        esac
        grep -q 'became shorter while it was read' said || continue # it was short when it was opened
        hit=$((hit + 1))
        [ "$(perf script -i out.data -F ip,sym | grep -c 'function_[0-9]')" = "$other" ] || complain "$(cat said)"
    done
    echo "# hit $hit times in $tries runs" >&3
    [ "$hit" -gt 0 ]
}
