#!/usr/bin/env bats
# perfjit diff: two sets of recordings of tinyjit, of which one calls its function ten times as often.  Any run may take twice as
# long on a busy machine (a processor whose other thread is taken): the difference has to be far above that.  The judge of sums
# is perfjit report, which perf judges (answers.bats).
load helper

R=(perf record -q -k mono -e cpu-clock:u -F 2000 -g)

setup_file() {
    require_perf || return 0
    cd "$BATS_FILE_TMPDIR" || return
    mkdir old changed
    printf 'fn inner(n) { var i = 0; while i < n { i = i + 1; } return i; }\nfn main() { var n = 0; while n < 300 { inner(100000); n = n + 1; } return 0; }\n' >old/work.tj
    sed 's/n < 300 /n < 3000 /' old/work.tj >changed/work.tj
    recording runs record_runs
}

record_runs() {
    export PERFJIT=dump JITDUMPDIR=$PWD
    for run in 1 2 3 4 5 6; do
        "${R[@]}" -o base$run "$BUILD/tinyjit" --no-inline old/work.tj
        "${R[@]}" -o new$run "$BUILD/tinyjit" --no-inline changed/work.tj
    done
    perf record -q -k mono -e task-clock -F 2000 -o other "$BUILD/tinyjit" old/work.tj
    cp "$(command -v bash)" another
    "${R[@]}" -o another-run ./another -c 'for ((i = 0; i < 50000; i++)); do :; done'
    rm another
    perf record -q -k mono -e cpu-clock:u -c 1000000000000 -g -o empty true
}

setup() {
    require_perf
    cd "$BATS_FILE_TMPDIR" || return
}

# bats test_tags=both
@test "ten times the work is slower, by the function that does it, and faster the other way" {
    perfjit diff -q --base base? --new new? >text
    grep -q '^slower: +[0-9.]* % in all, 6 against 6 runs, p 0.0[0-4][0-9]*$' text
    grep -Eq ' slower +tj::inner  work.tj$' text
    perfjit diff -q --paired --base base? --new new? | grep -q '^slower: .* in pairs, p 0.0[0-4][0-9]*$'
    perfjit diff -q --base new? --new base? | grep -q '^faster: -'
    perfjit diff -q --base base? --new new? | cmp - text
}

@test "the means are those of the runs" {
    local mean
    mean=$(for run in base?; do perfjit report -q --json "$run"; done | jq -s '[.[].total] | add / length / 1e6 * 10 | round / 10')
    perfjit diff -q --base base? --new new? >text
    awk -v mean="$mean" '/\(in all\)/ { exit !($1 - mean < 0.11 && mean - $1 < 0.11) }' text
    perfjit diff -q -n 0 --base base? --new new? >all
    awk '/\(in all\)/ { all = $1; next } all && / ms / { off += $1; rows++ }
        END { off -= all; exit !rows || off * off > (0.05 * (rows + 1) + 0.001) ^ 2 }' all # each is rounded
    perfjit diff -q -n 1 --json - --base base? --new new? >json
    jq -e '. as $all | [.activities, .functions, [.functions[].states[]]] | map(map(.base) | add - $all.total.base | fabs < 1) | all' json >/dev/null
}

@test "the first three lines name the function, and each form says the same" {
    perfjit diff -q -o text --markdown markdown --json json --html page.html --base base? --new new?
    head -3 text | grep -Eq '^by: tj::inner  work.tj \+[0-9.]+ ms'
    [ "$(head -1 markdown)" = "### $(head -1 text)" ]
    grep -Eq '^\| [0-9.]+ ms \| [0-9.]+ ms \| \+[0-9.]+ % \| slower \| <code>tj&#58;&#58;inner  work.tj</code> \|$' markdown
    [ "$(jq -r '.functions[0] | .name, .file, .verdict, .states[0].kind' json | tr '\n' ' ')" = "tj::inner work.tj slower jit " ]
    awk -v base="$(jq .total.base json)" '/\(in all\)/ { exit !($1 - base / 1e6 < 0.06 && base / 1e6 - $1 < 0.06) }' text
    perfjit diff -q --json - --base base? --new new? | cmp - json
    perfjit diff -q --markdown - --base base? --new new? | cmp - markdown
}

# bats test_tags=live
@test "the JSON is what its schema says" {
    perfjit diff -q --json json --base base? --new new? >/dev/null
    perfjit diff -q --json few --lines tj::inner --base base1 --new new1 >/dev/null
    /usr/bin/python3 - "$here/../../docs/diff.schema.json" json few <<'END'
import json, sys, jsonschema
schema = json.load(open(sys.argv[1]))
jsonschema.Draft7Validator.check_schema(schema)
for path in sys.argv[2:]:
    answer = json.load(open(path))
    jsonschema.validate(answer, schema)
    assert set(answer) <= set(schema["properties"]), "a field that the schema does not have"
answer["version"] = 2
try:
    jsonschema.validate(answer, schema)
    sys.exit("the schema takes another version")
except jsonschema.ValidationError:
    pass
END
}

# bats test_tags=live
@test "the page has both sides of each stack: their sums are the report's, and what is gone is there, in node" {
    perfjit diff -q --json json --html page.html --base new? --new base1 base2 base3 base4 >/dev/null
    cat "$here"/../../injector/profile/flamegraph/page/{inflate,profile,tree,tiers,format,colours}.js >model.js
    cat >>model.js <<'END'
const fs = require("fs");
const text = fs.readFileSync("page.html", "utf8");
const profile = openProfile(unpackData(text.slice(text.indexOf('id="data">') + 10, text.indexOf("</script>", text.indexOf('id="data">')))));
const answer = JSON.parse(fs.readFileSync("json", "utf8"));
const { base, new: now, verdict } = profile.difference;
const near = (a, b) => Math.abs(a - b) <= 1e-5 * Math.max(a, b);
if (!near(base[0], answer.total.base) || !near(now[0], answer.total.new)) throw new Error("sums");
const tree = flameTree(profile, scopesOf(profile)[0]);
let grey = 0, blue = 0;
for (let node = 1; node < tree.count; node++) {
    if (Math.max(base[node], now[node]) > base[0] / 100 && !tree.total[node]) throw new Error("a stack without width");
    const word = differenceWord(profile.difference, node);
    if (verdict[node] === 1) blue++;
    else if (differenceColour(profile.difference, node, false) === "hsl(40 8% 85%)") grey++;
    if (!now[node] && base[node] && !word.endsWith("vanished")) throw new Error(word);
}
if (!grey || !blue) throw new Error(grey + " grey, " + blue + " blue");
END
    node model.js
}

@test "lines and instructions of a function add up to it, and name where it got slower" {
    perfjit diff -q --lines tj::inner --json json --markdown markdown --html page.html -o text --base base? --new new?
    grep -q '^[0-9. ms+%]* slower  *work.tj:1$' text || complain "$(tail -20 text)"
    grep -Eq ' slower +\+0x[0-9a-f]+ ' text || complain "$(tail -20 text)"
    grep -q '| slower | <code>work.tj&#58;1</code> |$' markdown || complain "$(cat markdown)"
    [ "$(grep -c ' of <code>tj&#58;&#58;inner</code> |$' markdown)" = 2 ]
    grep -q '<td>slower</td><td>work.tj:1</td>' page.html
    [ "$(grep -c '<caption>[a-z]* of tj::inner</caption>' page.html)" = 2 ]
    jq -e '(.functions[] | select(.name == "tj::inner")) as $inner | [.lines, .instructions] | map((map(.new) | add) - $inner.new | fabs < 1) | all' json >/dev/null
    run perfjit diff -q --lines no_such_function --base base? --new new?
    [ "$status" = 1 ]
    [[ "$output" == *"no run has samples in a function 'no_such_function'"* ]]
}

@test "the report is written, then --fail-on decides the status" {
    run perfjit diff -q --fail-on regression:2% -o gate --markdown gate.md --json gate.json --html gate.html --base base? --new new?
    [ "$status" = 4 ]
    [ -z "$output" ]
    grep -q ^slower gate
    grep -q '^### slower' gate.md
    jq -e '.total.verdict == "slower"' gate.json >/dev/null
    grep -q '</html>' gate.html
    run perfjit diff --fail-on regression:2% -o gate --base base? --new new?
    [ "$status" = 4 ]
    grep -qxF "perfjit: --fail-on: status 4: $(head -n 1 gate)" <<<"$output" || complain "$output"
    perfjit diff --fail-on regression:2% --base base? --new new? 2>said || [ $? = 4 ]
    ! grep fail-on said || complain "the text is there already"
    run perfjit diff -q --fail-on regression:2% --json /dev/full --base base? --new new?
    [ "$status" = 1 ]
    perfjit diff -q --fail-on regression:2% --fail-on unknown --base new? --new base?
    perfjit diff -q --fail-on regression:9999% --base base? --new new?
    perfjit diff -q --base base? --new new?
}

@test "what is less than the floor fails no gate: the usual floor goes down to the gate, one that is named stays" {
    [ "$(perfjit diff -q --json - --base base? --new new? | jq .floor)" = 0.01 ]
    run perfjit diff -q --fail-on regression:0.5% --json gate.json --base base? --new new?
    [ "$status" = 4 ] && [ "$(jq .floor gate.json)" = 0.005 ]
    run perfjit diff -q --fail-on regression:5% --json gate.json --base base? --new new?
    [ "$status" = 4 ] && [ "$(jq .floor gate.json)" = 0.01 ]
    run perfjit diff -q --floor 9999% --fail-on regression:0.5% --json gate.json --base base? --new new?
    [ "$status" = 0 ] && [ "$(jq .floor gate.json)" = 99.99 ]
}

@test "too few runs have no verdict, in words, and fail only on request" {
    perfjit diff -q --base base1 base2 base3 --new new? >text
    grep -q '^no verdict: 3 against 6 runs are too few' text
    ! grep -Eq ' (slower|faster) ' text || complain "it is there"
    perfjit diff -q --paired --base base[1-5] --new new[1-5] | grep -q '^no verdict: 5 against 5'
    perfjit diff -q --fail-on regression:1% --base base1 --new new1
    run perfjit diff -q --fail-on unknown --base base1 --new new1
    [ "$status" = 4 ]
}

@test "bad input: a side that is missing, other events, no recording, wrong words" {
    local words
    for words in "--base base1" "--new new1" "base1 --new new1" "--paired --base base1 --new new1 new2" \
        "--floor x --base base1 --new new1" "--fail-on slow --base base1 --new new1"; do
        # shellcheck disable=SC2086
        run perfjit diff $words
        [ "$status" = 2 ] || complain "$words: $status"
    done
    run perfjit diff -q --base base1 --new other
    [ "$status" = 1 ]
    [[ "$output" == *"another event, task-clock"* ]]
    run perfjit diff -q --base base1 --new old/work.tj
    [ "$status" = 1 ]
    run perfjit diff -q base1 new1
    [ "$status" = 1 ]
    [[ "$output" == *"base1: is a file, and a bench is a directory; to compare recordings: perfjit diff --base FILE"* ]] || complain "$output"
    mkdir -p a.bench && : >a.bench/bench.txt
    run perfjit diff -q --base a.bench --new new1
    [ "$status" = 1 ]
    [[ "$output" == *"a.bench: is a bench, and no recording; to compare benches: perfjit diff BASE.bench"* ]] || complain "$output"
}

@test "one recording is not two runs, and no form takes the place of an input or of another form" {
    local sum out
    run perfjit diff -q --base base1 base1 base1 base1 --new new?
    [ "$status" = 1 ]
    [[ "$output" == *"base1: is there twice on one side"* ]] || complain "$output"
    ln base1 "$BATS_TEST_TMPDIR/again"
    run perfjit diff -q --base base1 "$BATS_TEST_TMPDIR/again" --new new?
    [ "$status" = 1 ]
    perfjit diff -q --base base[1-4] --new base1 new[2-4] | grep -q '^warning: both sides have the same run'
    sum=$(cat base? new? | cksum)
    for out in "-o base2" "--json new3" "--markdown ./base1" "--html $PWD/new6"; do
        # shellcheck disable=SC2086
        run perfjit diff -q $out --base base? --new new?
        [ "$status" = 2 ] || complain "$out: $status"
        [[ "$output" == *"is an input as well"* ]] || complain "$out: $output"
    done
    [ "$(cat base? new? | cksum)" = "$sum" ]
    for out in "--json - --markdown -" "-o - --html -" "--json both --markdown both" "-o both --json both"; do
        # shellcheck disable=SC2086
        run perfjit diff -q $out --base base? --new new?
        [ "$status" = 2 ] || complain "$out: $status"
        [ ! -e both ]
    done
}

@test "other programs are warned of; a recording without samples is refused, as it is among others" {
    for copy in 2 3 4; do cp another-run another-run$copy; done
    perfjit diff -q --base base1 base2 base3 base4 --new another-run another-run[234] >text
    grep -q '^warning: the sides ran different programs, tinyjit and another' text || complain "$(head -8 text)"
    ! perfjit diff -q --base base? --new new? | grep '^warning' || complain "it is one program"
    run perfjit diff -q --base base1 base2 --new new1 empty
    [ "$status" = 1 ]
    [[ "$output" == *"empty: has no samples"* ]] || complain "$output"
}
