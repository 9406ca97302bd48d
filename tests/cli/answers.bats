#!/usr/bin/env bats
# perfjit report, export and flamegraph.  The judge of names is perf script on the injected recording; of sums, the periods of its
# samples; and all formats must agree with each other.
load helper
load line_costs
load native_programs

forms="fp stacks injected unwound node two packed streamed counted"
[ "$RECORDINGS" != live ] || forms+=" php"

setup_file() {
    require_perf || return 0
    cd "$BATS_FILE_TMPDIR" || return
    write_work
    sed -i 's/n < 12000/n < 5000/' work.tj
    sed -i 's/i < 30/i < 15/' work.js
    recording tinyjit record_tinyjit
    recording node record_node
    [ "$RECORDINGS" != live ] || record_php
    perfjit inject -q -i fp -o injected
    perfjit inject -q -i stacks -o unwound
}

record_node() {
    record node --all-user -g node --perf-prof --interpreted-frames-native-stack work.js
    without_builtins jit-*.dump
}

# Only the user's code: an ordinary user's perfjit reads all of /proc/kallsyms for a sample of the kernel.
record_tinyjit() {
    local PERFJIT=dump JITDUMPDIR=$PWD
    export PERFJIT JITDUMPDIR
    record fp --all-user -g "$BUILD/tinyjit" --no-inline work.tj
    record stacks --all-user --call-graph dwarf,2048 "$BUILD/tinyjit" work.tj
    perf record -q -k mono --all-user -e cpu-clock,task-clock -F 1000 -g -o two "$BUILD/tinyjit" work.tj
    record packed --all-user -z -g "$BUILD/tinyjit" work.tj
    perf record -q -k mono --all-user -e cpu-clock -c 1000003 -g -o counted "$BUILD/tinyjit" work.tj
    perf record -q -k mono --all-user -e cpu-clock -F 2000 -g -o - "$BUILD/tinyjit" work.tj >streamed
    perf record -q -k mono --all-user -e page-faults,cpu-clock -F 1000 -o faults "$BUILD/tinyjit" work.tj
    perf record -q -e cpu-clock -c 1000000000000 -o none true
    PERFJIT='' record bare --all-user -g "$BUILD/tinyjit" work.tj
}

record_php() {
    echo '<?php function hot($n) { for ($i = 0, $s = 0; $i < $n; $i++) $s += $i & 3; return $s; } for ($i = 0; $i < 300; $i++) hot(100000);' >work.php
    record php -g php8.2 -d opcache.enable=1 -d opcache.enable_cli=1 -d opcache.jit_buffer_size=64M -d opcache.jit=function \
        -d opcache.jit_debug=0x30 -d opcache.file_update_protection=0 work.php
    remove_maps php
}

teardown_file() {
    [ ! -e "$BATS_FILE_TMPDIR/php" ] || remove_dumps "$BATS_FILE_TMPDIR/php"
}

setup() {
    require_perf
    cd "$BATS_FILE_TMPDIR" || return
    # For a perfjit that is not called as a function.
    rooted=
    [ "$RECORDINGS" != stored ] || rooted="--root $recorded_root"
}

# well_formed FILE: it is XML.
well_formed() {
    python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$1"
}

# periods FILE: the sum of those of its first event, by perf, which reads no streams from a file of another's.
periods() {
    perf script -i "$1" -F event,period 2>/dev/null | awk 'NR == 1 { first = $2 } $2 == first { all += $1; n++ } END { printf "%.0f %d\n", all, n }'
}

# ---- Sums ----

# bats test_tags=both
@test "every format of every recording has perf's sum" {
    local form all samples
    [ -z "${BRIEF:-}" ] || forms="fp unwound node two streamed"
    for form in $forms; do
        read -r all samples < <(periods $form)
        [ "$samples" -ge 100 ] || complain "$form: $samples samples"
        perfjit report -q --json $form >report
        [ "$(jq '[.total, .samples] | @tsv' -r report)" = "$(printf '%s\t%s' "$all" "$samples")" ] || complain "$form: $(jq -c '[.total, .samples]' report), perf $all $samples"
        [ "$(jq '[.functions[].self] | add' report)" = "$all" ] || complain "$form: self times"
        [ "$(jq '.named + .interpreter + .unknown' report)" = "$all" ]
        [ "$(perfjit export -q -f folded $form | awk '{ n += $NF } END { print n }')" = "$samples" ]
        [ "$(perfjit export -q -f folded --weight period $form | awk '{ n += $NF } END { printf "%.0f\n", n }')" = "$all" ]
        [ "$(perfjit export -q -f speedscope $form | jq '[.profiles[].weights[]] | add')" = "$all" ]
        [ "$(perfjit export -q -f speedscope $form | jq '[.profiles[] | (.weights | add) == .endValue and (.weights | length) == (.samples | length)] | all')" = true ]
        [ "$(perfjit export -q -f callgrind $form | sed -n 's/^totals: //p')" = "$all" ]
        [ "$(perfjit export -q -f callgrind $form | awk '/^calls=/ { getline; next } /^[0-9]+ [0-9]+$/ { n += $2 } END { printf "%.0f\n", n }')" = "$all" ]
        [ "$(perfjit export -q -f firefox $form | jq '[.threads[].samples.length] | add')" = "$samples" ]
        perfjit flamegraph -q -o page.html $form
        [ "$(data page.html | jq '[.samples.weight[]] | add')" = "$all" ]
    done
}

@test "each function's self and total time are the same in every format, and perf's of JIT code" {
    local form all format script
    [ -z "${BRIEF:-}" ] || forms="injected stacks node"
    perfjit inject -q -i node -o node.injected
    for form in $forms node.injected; do
        mkdir agree.$form
        read -r all _ < <(periods $form)
        perfjit report -q --json $form >agree.$form/report.json
        perfjit flamegraph -q -o agree.$form/page.html $form
        for format in folded speedscope firefox pprof callgrind; do
            perfjit export -q -f $format --weight period -o agree.$form/$format $form
        done
        gzip -dc agree.$form/pprof >agree.$form/unpacked
        mv agree.$form/unpacked agree.$form/pprof
        script=
        case $form in
        *injected) # of frame pointers
            script=agree.$form/perf.script
            perf script --no-inline -i $form -F period,ip,sym,dso >$script 2>/dev/null
            ;;
        esac
        # shellcheck disable=SC2086 # there may be none
        python3 "$here"/formats_agree.py agree.$form "$all" $script || complain "$form"
    done
}

# ---- Names ----

# innermost FILE: how many samples each innermost function has, by perf; node's as their names are shown.
innermost() {
    local chain=-G # perf 6.1 prints nothing of a chain that holds an address that can't be, as PHP's are
    [ "$1" != unwound ] || chain=
    perf script -i "$1" -F ip,sym --no-inline $chain 2>/dev/null | awk -v every="$chain" 'BEGIN { first = 1 } NF == 0 { first = 1; next } first || every { print; first = 0 }' | sed -nE 's/^[[:space:]]+[0-9a-f]+ (.*)$/\1/p' |
        sed -E 's/@@?[A-Z]+_[0-9.]+$//; s/^JS:[~^+*]?//; s/ [^ ]*:[0-9]+:[0-9]+$//; s/ \(inlined\)$//; s/ \[tier[12]\]$//; s/^$/(anonymous)/' | sort | uniq -c | awk '{ n = $1; $1 = ""; print n $0 }' | sort
}

# Inlined native code counts as its caller here, as in perf --no-inline.
ours() {
    perfjit export -q -f speedscope --weight samples "$1" | jq -r '.shared.frames as $f | .profiles[] | range(.samples | length) as $i |
        "\(.weights[$i]) \(([.samples[$i][] | $f[.] | select(.kind == "jit" or .inlined != true) | .name] | last) // "[unknown]")"' |
        awk '{ n = $1; $1 = ""; sum[$0] += n } END { for (name in sum) print sum[name] name }' | sort
}

# bats test_tags=both
@test "innermost functions are perf's, of injected recordings and of others" {
    local KERNEL_SYMBOLS= form pairs="injected:fp unwound:stacks"
    [ "$RECORDINGS" != live ] || { perfjit inject -q -i php -o php.injected && pairs+=" php.injected:php"; }
    for form in $pairs; do
        innermost ${form%:*} >wanted
        ours ${form%:*} >got
        nearly_same got wanted
        ours ${form#*:} >got
        nearly_same got wanted
    done
}

# Symbols of one address, of which perf may show another: a sample that stands at another name counts at both.
nearly_same() {
    local all different
    all=$(awk '{ n += $1 } END { print n }' "$2")
    different=$(awk '{ n = $1; $1 = ""; by[$0] += NR == FNR ? n : -n } END { for (name in by) all += by[name] < 0 ? -by[name] : by[name]; print all + 0 }' "$1" "$2")
    [ $((different * 100)) -le $((all * 5)) ] || complain "$different of $all: $(comm -3 "$1" "$2" | head -20)"
    grep -E ' (tj::|hot|inner|outer|TRACE)' "$2" >jit.wanted || true
    grep -E ' (tj::|hot|inner|outer|TRACE)' "$1" | same /dev/stdin jit.wanted
}

@test "an injected recording and the one that it was made of say the same of JIT code" {
    for pair in injected:fp unwound:stacks; do
        for form in ${pair/:/ }; do
            perfjit report -q --json $form | jq -r '.functions[] | select(.module == "jit") | "\(.name) \(.self) \(.total)"' | sort >$form.jit
        done
        [ -s "${pair%:*}.jit" ]
        same "${pair%:*}.jit" "${pair#*:}.jit"
    done
    grep -q 'tj::inner' fp.jit
}

# bats test_tags=both
@test "node: tiers, places, interpreted functions" {
    perfjit report -q -n 0 node >table
    grep -E ' TurboFan[^ ]* +hot \(.*/work.js:1\)$' table
    grep -E ' (bytecode|Sparkplug)[^ ]* +Module._load \(node:internal/modules/cjs/loader:[0-9]+\)$' table
    grep -E '^[0-9.]+ % of the samples named; [0-9.]+ % interpreter; [0-9.]+ % unknown' table
    perfjit report -q --by tier node | grep -E ' samples  TurboFan$'
    perfjit report -q --by thread node | grep -E ' samples  node [0-9]+/[0-9]+$'
    perfjit report -q --by process node | grep -E ' samples  node [0-9]+$'
    perfjit report -q --by runtime node | grep -E ' samples  node: jit$'
    perfjit report -q --threads node >threads
    same threads <(perfjit report -q --by thread node)
    perfjit report -q --by kind --json node | jq -e '.rows | map(.weight) | add > 0'
}

@test "callers, callees and gprof's tables" {
    perfjit report -q --callers tj::inner fp >callers
    grep -E '^ +[0-9.]+% .* called by tj::outer' callers
    perfjit report -q --callees tj::outer fp >callees
    grep -E '^ +[0-9.]+% .* calls tj::inner' callees || grep -E 'tj::outer' callees
    perfjit report -q --gprof fp >gprof
    grep -q '^Flat profile:' gprof
    grep -q 'Call graph' gprof
    grep -E '^\[[0-9]+ *\] +[0-9.]+ .* tj::inner .*\[[0-9]+\]$' gprof
    run --separate-stderr perfjit report --callers no_such_function fp
    exits 1
    says "no function has 'no_such_function' in its name"
}

# heads WAY NAME FILE: the names of the functions whose table of callers or callees is printed.
heads() {
    perfjit report -q --full-names -n 0 "$1" "$2" "$3" | sed -nE 's/^ {0,3}[0-9.]+% +[0-9.]+  (.*) \(.*\)$/\1/p' | sort -u
}

@test "the name of a function is that function alone, though longer names have it in them; a part of names is all of these" {
    local way name names
    names=$(perfjit report -q --json node | jq -r '.functions[].name')
    name=$(awk 'NR == FNR { all[NR] = $0; n = NR; next }
        length($0) > 2 { for (i = 1; i <= n; i++) if (all[i] != $0 && index(all[i], $0)) { print; exit } }' <(echo "$names") <(echo "$names"))
    [ -n "$name" ] || complain "no name is a part of another"
    for way in --callers --callees; do
        [ "$(heads $way '(anonymous)' node)" = '(anonymous)' ] || complain "$(heads $way '(anonymous)' node)"
        [ "$(heads $way "$name" node)" = "$name" ] || complain "$name: $(heads $way "$name" node)"
        heads $way anonymous node | same /dev/stdin <(grep -F anonymous <<<"$names" | sort -u)
        heads $way tj:: fp | same /dev/stdin <(perfjit report -q --json fp | jq -r '.functions[].name' | grep -F tj:: | sort -u)
    done
}

# ---- Formats and their readers ----

# bats test_tags=live
@test "callgrind_annotate, and the sums of functions in all formats" {
    perfjit export -q -f callgrind -o own.callgrind injected
    callgrind_annotate own.callgrind >annotated
    grep -E 'PROGRAM TOTALS' annotated
    grep -E 'tj::inner' annotated
    perfjit report -q --json injected | jq -r '.functions[] | select(.self > 0) | "\(.self) \(.name)"' | sort >report
    perfjit export -q -f speedscope injected |
        jq -r '.shared.frames as $f | .profiles[] | range(.samples | length) as $i | "\(.weights[$i]) \($f[.samples[$i][-1]].name)"' |
        awk '{ n = $1; $1 = ""; sum[$0] += n } END { for (name in sum) printf "%.0f%s\n", sum[name], name }' | sort >speedscope
    same speedscope <(awk '{ n = $1; $1 = ""; sum[$0] += n } END { for (name in sum) printf "%.0f%s\n", sum[name], name }' report | sort)
    perfjit export -q -f folded --weight period injected | sed -E 's/^.*;([^;]*) ([0-9]+)$/\2 \1/; s/_\[[jki]\]$//' |
        awk '{ n = $1; $1 = ""; sum[$0] += n } END { for (name in sum) printf "%.0f%s\n", sum[name], name }' | sort >folded
    same folded speedscope
}

# costs FILE SOURCE: "line cost" of each line of SOURCE that has one, by callgrind_annotate.
costs() {
    (cd / && callgrind_annotate --auto=no --threshold=100 "$1" "$2") | sed -n '/^-- User-annotated/,$p' |
        awk 'NR > 4 && !/=>/ { n++ } NR > 4 && /^ *[0-9,]+ \( *[0-9.]+%\)/ && !/=>|events annotated/ { gsub(",", "", $1); print n, $1 }'
}

# mostly_at LINE CALLGRIND SOURCE: most of what SOURCE costs is in that line of it.
mostly_at() {
    costs "$2" "$3" >costs
    awk -v wanted="$1" '{ all += $2 } $1 == wanted { there += $2 } END { exit !(all > 0 && there > all / 2) }' costs || complain "$3: $(cat costs)"
}

# bats test_tags=live
@test "callgrind: each line has its own cost, of JavaScript, of a JIT without a name for its lines, of inlined calls" {
    printf 'function hot(n) {\n  let s = 0;\n  for (let i = 0; i < n; i++)\n    s += (Math.sqrt(i) * i) %% 7;\n  return s;\n}\nfor (let i = 0, t = 0; i < 30; i++)\n  t += hot(2000000);\n' >lines.js
    printf 'fn inner(n) {\n  var i = 0;\n  while i < n {\n    i = i + 1;\n  }\n  return i;\n}\nfn outer(n) {\n  return inner(n) + 1;\n}\nfn main() {\n  var n = 0;\n  while n < 8000 {\n    outer(100000);\n    n = n + 1;\n  }\n  return 0;\n}\n' >lines.tj
    record lines.node -g node --perf-prof --interpreted-frames-native-stack lines.js
    PERFJIT=dump JITDUMPDIR=$PWD record lines.inlined -F 1000 --call-graph dwarf,8192 "$BUILD/tinyjit" "$PWD/lines.tj"
    perfjit inject -q -i lines.inlined -o lines.unwound
    perfjit inject -q -i lines.node -o lines.injected
    for form in node injected; do
        perfjit export -q -f callgrind -o $form.callgrind lines.$form
        mostly_at 4 "$PWD/$form.callgrind" "$PWD/lines.js"
    done
    for form in inlined unwound; do # what was inlined has the lines that ran, not its caller's
        perfjit export -q -f callgrind -o $form.callgrind lines.$form
        costs "$PWD/$form.callgrind" "$PWD/lines.tj" >costs
        awk '$1 == 3 || $1 == 4 { loop += $2 } { all += $2 } END { exit !(all > 0 && loop > all * 0.9) }' costs || complain "$form: $(cat costs)"
    done
    same <(perfjit export -q -f callgrind lines.inlined | sed -n 's/^totals: //p') <(perfjit report -q --json lines.inlined | jq .total)
}

# inlined_calls_are_named COMPILER: of the recording `native`, whose source stands in the directory that `place` names.
inlined_calls_are_named() {
    perfjit export -q -f folded native | awk '/;run;twice_\[i\];twist_\[i\](;.*)? [0-9]+$/ { found += $NF } { all += $NF } END { exit !(found > all / 2) }' ||
        complain "$1: $(perfjit export -q -f folded native)"
    perfjit report -q --json native | jq -e --arg file "$(cat place)/inlined.c" '.functions[] | select(.name == "run") | .file == $file and .line == 11' ||
        complain "$1: $(perfjit report -q native)"
    perfjit export -q -f firefox native | jq -e '[.threads[].frameTable | range(.length) as $i | select(.inlineDepth[$i] == 2 and .line[$i] == 4)] | length > 0'
}

record_inlined_calls() {
    pwd >place
    native inlined -O2 -g -fno-omit-frame-pointer
    record native --all-user -g ./inlined
}

@test "native inlined calls: their names, and the places of what they are inlined in" {
    native_source
    recording native record_inlined_calls
    inlined_calls_are_named gcc
}

@test "callgrind: a line has the cost of what ran there, and a call is in the line that calls" {
    native_source
    recording native record_inlined_calls
    perfjit export -q -f callgrind -o native.callgrind native
    mostly_in 4 twist native.callgrind
    line_costs twice native.callgrind | grep '^call 9 '
    line_costs run native.callgrind | grep '^call 13 '
    sound_recording tinyjit
    perfjit export -q -f callgrind -o sound.callgrind sound.data
    mostly_in 20 tj::mark_multiples sound.callgrind
    mostly_in 43 tj::collatz_length sound.callgrind
    line_costs tj::count_primes sound.callgrind | grep '^call 31 '
}

# bats test_tags=live
@test "native inlined calls: gcc's, and clang's, who leaves out .debug_aranges; each line has its cost" {
    native_source
    pwd >place
    for compiler in gcc clang; do
        command -v $compiler || continue
        $compiler -O2 -g -fno-omit-frame-pointer -o native.$compiler inlined.c
        record native -g ./native.$compiler
        inlined_calls_are_named $compiler
        perfjit export -q -f callgrind -o native.callgrind native
        mostly_at 4 "$PWD/native.callgrind" "$PWD/inlined.c"
        perfjit export -q -f pprof -o native.pb.gz native
        gzip -dc native.pb.gz | protoc --decode_raw | awk '/^4 \{/ { n = 0 } /^  4 \{/ { n++ } n == 3 { found = 1 } END { exit !found }' || complain "no location has three lines"
    done
}

# bats test_tags=live
@test "pprof: protoc reads it, and its samples have perf's sum" {
    perfjit export -q -f pprof -o own.pb.gz injected
    gzip -dc own.pb.gz | protoc --decode_raw >decoded
    read -r all samples < <(periods injected)
    [ "$(grep -c '^2 {' decoded)" = "$samples" ]
    grep -qF '6: "tj::inner"' decoded
    grep -qF '6: "nanoseconds"' decoded
}

@test "firefox: tables are as long as they say, and refer to what is there" {
    perfjit export -q -f firefox unwound >own.json
    jq -e '.meta.preprocessedProfileVersion == 47 and (.threads | length) > 0' own.json
    jq -e '[.threads[] | (.samples.stack | length) == .samples.length and (.samples.time | length) == .samples.length and
        (.stackTable.frame | length) == .stackTable.length and (.frameTable.func | length) == .frameTable.length and
        (.funcTable.name | length) == .funcTable.length and (.funcTable.name | max) < (.stringArray | length) and
        ([.samples.stack[] | values] | max) < .stackTable.length] | all' own.json
    # Each library once; a resource of a thread for each that has functions in it.
    jq -e '(.libs | length) > 1 and (.libs | map(.name) | length == (unique | length)) and (.libs | map(keys ==
        ["arch", "breakpadId", "codeId", "debugName", "debugPath", "name", "path"]) | all)' own.json
    jq -e '.libs as $libs | [.threads[] | .stringArray as $strings | .resourceTable as $r | .funcTable as $f |
        ($f.resource | length) == $f.length and ([$r.lib, $r.name, $r.host, $r.type | length == $r.length] | all) and
        ([$f.resource[] | select(. >= 0)] | unique) == [range($r.length)] and
        ([range($r.length) as $i | $libs[$r.lib[$i]].name == $strings[$r.name[$i]] and $r.type[$i] == 1 and $r.host[$i] == null] | all)] | all' own.json
}

@test "firefox: a function stands once in a thread, and weights are what was chosen" {
    local time='[.threads[].samples | select(.weightType == "tracing-ms") | .weight | add * 1000000 | round] | add'
    read -r all samples < <(periods node)
    perfjit export -q -f firefox -o own.json node
    # Two libraries may have a function of one name, and of one file.
    jq -e '[.threads[] | .stringArray as $strings | .funcTable | [range(.length) as $i |
        select(.fileName[$i] == null or ($strings[.fileName[$i]] | test("^[.]") | not)) |
        [.name[$i], .resource[$i], .fileName[$i], .lineNumber[$i]]] |
        length == (unique | length)] | all' own.json
    jq -e '[.threads[] | .funcTable.length < .frameTable.length] | any' own.json
    [ "$(jq "$time" own.json)" = "$all" ]
    perfjit export -q -f firefox --weight samples -o own.json node
    [ "$(jq '[.threads[].samples | select(.weightType == "samples") | .weight | add] | add' own.json)" = "$samples" ]
    perfjit export -q -f firefox --event cpu-clock -o own.json faults
    [ "$(jq "$time" own.json)" = "$(perfjit report -q --event cpu-clock --json faults | jq .total)" ]
}

record_recursion() {
    PERFJIT=dump JITDUMPDIR=$PWD record rec --all-user -g "$BUILD/tinyjit" --no-inline rec.tj
}

# bats test_tags=both
@test "recursion: what a function calls, with its own time, is its total; callgrind_annotate's, too" {
    printf 'fn leaf(n) { var i = 0; while i < n { i = i + 1; } return i; }\nfn rec(n) { leaf(20000); if n < 1 { return leaf(300000); } return rec(n - 1) + 1; }\nfn ping(n) { leaf(20000); if n < 1 { return leaf(100000); } return pong(n - 1) + 1; }\nfn pong(n) { leaf(30000); return ping(n - 1) + 1; }\nfn main() { var n = 0; while n < 300 { rec(9); ping(6); n = n + 1; } return 0; }\n' >rec.tj
    recording recursion record_recursion
    perfjit export -q -f callgrind -o rec.callgrind rec
    perfjit report -q --json rec | jq -r '.functions[] | "\(.total) \(.name)"' | sort >wanted
    awk '/^fn=/ { match($0, /\([0-9]+\)/); f = substr($0, RSTART, RLENGTH); if (!(f in seen)) order[++n] = f; seen[f] = 1 }
        /^c?fn=\([0-9]+\) / { match($0, /\([0-9]+\)/); id = substr($0, RSTART, RLENGTH); name[id] = substr($0, RSTART + RLENGTH + 1) }
        /^[0-9]+ [0-9]+$/ { sum[f] += $2 }
        END { for (i = 1; i <= n; i++) printf "%.0f %s\n", sum[order[i]], name[order[i]] }' rec.callgrind | sort >got
    same got wanted
    ! awk '/^fn=/ { f = $1; sub(/^fn=/, "", f) } /^cfn=/ { c = $1; sub(/^cfn=/, "", c); if (c == f) exit 1 }' rec.callgrind | grep . || complain "a function calls itself"
    if [ "$RECORDINGS" = live ]; then
        total=$(awk '$2 == "tj::rec" { print $1 }' wanted)
        (cd / && callgrind_annotate --inclusive=yes --auto=no --threshold=100 "$OLDPWD/rec.callgrind") | tr -d , | awk '$NF ~ /jit/ && /:tj::rec / { print $1 }' | same /dev/stdin <(echo "$total")
    fi
    for way in callers callees; do # the first line is the function's, the others are parts of that
        perfjit report -q --$way tj::ping rec | awk 'NR == 1 { all = $2 } NR > 1 { n += $2 } END { exit !(all > 0 && n - all < 0.004 && all - n < 0.004) }' || complain "$(perfjit report -q --$way tj::ping rec)"
    done
}

@test "one table at a time, and what can't be written fails in each" {
    for words in "--callers a --callees b" "--gprof --by tier" "--json --gprof" "--json --callers a" "-n -3"; do
        run --separate-stderr perfjit report $words fp
        exits 2
    done
    for words in "" --json --gprof "--by kind" "--callers tj::inner" "--callees tj::outer"; do
        run --separate-stderr sh -c "\"\$BUILD/perfjit\" report -q $rooted $words fp >/dev/full"
        exits 1
        says "standard output: can't write it: No space left on device"
    done
}

@test "the table by total, and of JIT code alone" {
    perfjit report -q --json node >by_self
    perfjit report -q --json --sort total node >by_total
    jq -e --slurpfile other by_self '.functions as $rows | ($rows | map(.total)) == ($rows | map(.total) | sort | reverse) and
        ($rows | sort) == ($other[0].functions | sort)' by_total
    ! cmp -s by_self by_total || complain "they are in the same order"
    perfjit report -q --json --jit --sort total node >jit
    jq -e --slurpfile all by_total '(.functions | length) > 5 and .total == $all[0].total and
        .functions == [$all[0].functions[] | select(.module == "jit")]' jit
    perfjit report -q --jit -n 0 node >table
    [ "$(grep -v '^in the runtime' table | grep -c '%')" -eq $(($(jq '.functions | length' jit) + 1)) ]
    for words in "--sort wrong" "--jit --gprof" "--sort total --by kind" "--jit --callers x"; do
        run --separate-stderr perfjit report $words node
        exits 2
    done
}

# Their names are in node's own file, which no recording holds.
# bats test_tags=live
@test "the table says how much garbage collectors and compilers took, as diff counts it" {
    perfjit report -q node >table
    grep -qE '^in the runtime: ([0-9.]+ % garbage collector, )?[0-9.]+ % JIT compilers$' table || complain "$(tail -3 table)"
    perfjit report -q native >table
    ! grep '^in the runtime' table || complain "$(cat table)"
}

# leave_code MOST: torn, as fp, where MOST chains have an address that is no code instead of the JIT code that main calls most.
leave_code() {
    local called
    called=$(perf script -i fp -F ip,sym 2>/dev/null | awk '$2 == "main" { n[called]++ } { called = $1 }
        END { for (ip in n) if (n[ip] > most) { most = n[ip]; called = ip } print called }')
    perl -0777 -pe 'BEGIN { ($called, $most) = splice @ARGV, 0, 2; $called = pack "Q<", hex $called }
        s/\Q$called\E/$count++ < $most ? pack("Q<", 0x1000) : $called/ge' "$called" "$1" fp >torn
}

@test "a program without frame pointers is told by a fifth of the samples whose caller is no code" {
    local all form
    for form in fp bare stacks; do # beyond main that is no news, code that nobody logged is another cause, copied stacks have all
        perfjit report -q $form >table
        ! grep 'frame pointers' table || complain "$form: $(tail -1 table)"
    done
    all=$(perfjit report -q --json fp | jq .samples)
    leave_code $((all * 18 / 100))
    perfjit report -q torn >table
    ! grep 'frame pointers' table || complain "$(tail -1 table)"
    leave_code $((all * 30 / 100))
    perfjit report -q torn >table
    grep -qE '^(29|30) % of the samples have an \[unknown\] caller: .* perf record --call-graph dwarf \(' table || complain "$(tail -1 table)"
}

@test "a table says how many rows it leaves out" {
    perfjit report -q --by kind -n 1 node >table
    [ "$(sed -n 's/^\.\.\. and \([0-9]*\) more (--rows N)$/\1/p' table)" = $(($(perfjit report -q --by kind --json node | jq '.rows | length') - 1)) ]
    ! perfjit report -q --by kind -n 0 node | grep 'more (--rows' || complain "it is there"
    rows=$(perfjit report -q --json node | jq '.functions | length')
    perfjit report -q -n $((rows - 2)) node | grep -Fx '... and 2 more functions (--rows N)'
    perfjit report -q -n $((rows - 1)) node | grep -Fx '... and 1 more function (--rows N)'
    perfjit report -q --callers '' -n $((rows - 1)) node | grep -Fx '... and 1 more function (--rows N)'
}

@test "the recording itself is no output" {
    cp fp kept
    ln -f kept other
    for target in kept ./kept other; do
        run --separate-stderr perfjit export -q -f folded -o $target kept
        exits 2
        says "$target: is an input as well"
        run --separate-stderr perfjit flamegraph -q -o $target kept
        exits 2
    done
    cmp fp kept
    perfjit flamegraph -q - <kept | head -1 | grep -q '^<!doctype html>'
    [ ! -e ./-.html ]
}

@test "a path of any bytes is text in every format" {
    odd=$(printf 'a\nb"c\\<\377\033')
    cp fp "$odd"
    for format in firefox speedscope; do
        perfjit export -q -f $format "$odd" >own.json
        iconv -f UTF-8 -t UTF-8 own.json | jq -e . >/dev/null
    done
    perfjit export -q -f callgrind "$odd" | grep -c '^cmd: a' | same /dev/stdin <(echo 1)
    ! perfjit export -q -f callgrind "$odd" | grep -q '^b"c' || complain "it is there"
    perfjit flamegraph -q --svg -o own.svg --title "$(printf '\357\277\277 x')" fp
    well_formed own.svg
    rm "$odd"
}

@test "firefox: a thread has its own strings, and its samples in order of time" {
    perfjit export -q -f firefox -o own.json node
    jq -e '[.threads[] | (.stringArray | length) == ([.funcTable.name[], .funcTable.fileName[], .resourceTable.name[], .frameTable.implementation[], .markers.name[] | values] | unique | length)] | all' own.json
    jq -e '[.threads[].samples.time | . == sort] | all' own.json
    jq -e '[.threads[] | .stackTable as $s | [range($s.length) as $i | $s.prefix[$i] | values | . < $i] | all] | all' own.json
}

@test "a page without a script has the names of all its functions" {
    perfjit flamegraph -q -o page.html node
    data page.html | jq -r '.strings as $s | [.frames.name[] | $s[.]] | unique[]' | LC_ALL=C sort -u >names
    sed -n '/<noscript>/,/<.pre><.noscript>/p' page.html | sed '1,2d;$d' | sed 's/&lt;/</g;s/&gt;/>/g;s/&quot;/"/g;s/&amp;/\&/g' | LC_ALL=C sort | same names /dev/stdin
    [ "$(wc -l <names)" -gt 20 ] # 35 are of the dump and the log; those of the kernel and of node's own code are of this machine
}

@test "what is unknown has a reason" {
    perfjit report -n 1 bare | grep -E '; [1-9][0-9.]+ % unknown: most in code in memory \(.*\) that nobody logged \(perfjit check\)$'
    # A library may have a place without a symbol.
    ! perfjit report -q -n 1 injected | grep 'unknown:.* in memory' || complain "it is known"
    # A recording that was just made has its dump where it says.
    [ "$RECORDINGS" = stored ] || return 0
    # Callers without a dump are found, and only have no name: frame pointers are not what is missing.
    "$BUILD/perfjit" report --root "$BATS_TEST_TMPDIR" -n 1 node >table 2>&1 || [ $? -eq 3 ]
    grep ' unknown: ' table || complain "$(cat table)"
    ! grep 'frame pointers' table || complain "callers in JIT code are taken for lost"
}

# ---- Choices ----

@test "events: the first, said where there are several, or another by name" {
    run --separate-stderr perfjit report two
    exits 0
    says "has several events: cpu-clock, task-clock; this is the first one"
    perfjit report -q --event task-clock --json two | jq -e '.event == "task-clock" and .total > 0'
    run --separate-stderr perfjit report --event cycles two
    exits 1
    says "there is no event 'cycles'; it has: cpu-clock, task-clock"
}

@test "a process alone" {
    pid=$(perf script -i fp -F pid | head -1 | tr -d ' ')
    perfjit report -q --pid "$pid" fp >own
    same own <(perfjit report -q fp)
    run --separate-stderr perfjit report --pid 1 fp
    exits 1
    says "fp: has no samples of that process"
}

# ---- What is wrong ----

@test "no file, no recording, no samples, no format, no room: a line, a status, and nothing half-made" {
    mkdir -p "$BATS_TEST_TMPDIR/empty" && cd "$BATS_TEST_TMPDIR/empty"
    for command in report "export -f folded" flamegraph; do
        run --separate-stderr perfjit $command no-such-file
        exits 1
        says "no-such-file: "
        run --separate-stderr perfjit $command
        exits 1
        says "neither perfjit.perf.data, nor perf.jit.data, nor perf.data"
        run --separate-stderr perfjit $command /bin/true
        exits 1
        cp "$BATS_FILE_TMPDIR/none" none
        run --separate-stderr perfjit $command none
        exits 1
        says "none: has no samples"
        rm none
        [ -z "$(ls)" ]
        [ "$command" != report ] || continue
        run --separate-stderr perfjit $command -o /no/such/place "$BATS_FILE_TMPDIR/fp"
        exits 1
        says "/no/such/place: "
    done
    run --separate-stderr sh -c '"$BUILD/perfjit" report -q "$BATS_FILE_TMPDIR/fp" >/dev/full'
    exits 1
    says "standard output: can't write it: No space left on device"
    for words in "export" "export -f wrong" "report --by wrong" "report -n x" "report a b" "report --weight x" "flamegraph --pid x"; do
        run --separate-stderr perfjit $words
        exits 2
    done
}

# bats test_tags=live
@test "hostile names: of functions and threads, in every format" {
    cat >odd.js <<'END'
const names = ["</script><script>alert(1)</script>", "a;b c\"d\\e'", "\u2028\u2029<!--", "]]>&amp;", "\u001b[31m"];
const functions = names.map((name) => eval("({" + JSON.stringify(name) + "(n) { let s = 0; for (let i = 0; i < n; i++) s += (i * i) % 7; return s; } })")[name]);
while (process.cpuUsage().user < 7e5) functions.forEach((f) => f(20000));
END
    record odd -g node --perf-prof --interpreted-frames-native-stack odd.js
    perfjit export -q -f folded odd | awk '!/ [0-9]+$/ { exit 1 }'
    for format in speedscope firefox; do
        perfjit export -q -f $format odd | jq -e . >/dev/null
    done
    perfjit report -q --json odd | jq -e '.functions | map(.name) | any(contains("</script>"))'
    perfjit flamegraph -q -o odd.html odd
    [ "$(grep -c '</script>' odd.html)" = 2 ]
    data odd.html | jq -e '.strings | any(contains("</script>"))'
    perfjit flamegraph -q --svg --title '<&"' -o odd.svg odd
    well_formed odd.svg
    ! grep -q "$(printf '\033')" odd.svg <(data odd.html) || complain "it is there"
}

@test "a picture: a box for each stack that can be seen, well-formed" {
    perfjit flamegraph -q --svg -o own.svg injected
    well_formed own.svg
    grep -qF '<title>tj::inner (' own.svg
    run --separate-stderr perfjit flamegraph injected
    exits 0
    says "injected.html: open it in a browser"
    rm injected.html
}

@test "a signal while it is written leaves nothing, and is the status" {
    cat >at_write.c <<'END_OF_C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>
ssize_t write(int fd, const void *bytes, size_t count)
{
    ssize_t (*real)(int, const void *, size_t) = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    if (count >= 4096)
        raise(SIGTERM);
    return real(fd, bytes, count);
}
END_OF_C
    gcc -shared -fPIC -o at_write.so at_write.c -ldl
    mkdir written
    for words in "flamegraph" "flamegraph --svg" "export -f firefox"; do
        run --separate-stderr env LD_PRELOAD="$PWD/at_write.so" "$BUILD/perfjit" $words $rooted -q -o written/out node
        exits 143
        [ -z "$(ls -A written)" ] || complain "$words left $(ls -A written)"
    done
}

record_linked() {
    (
        cd linked || return
        native work -O2 -g -fno-omit-frame-pointer -Wl,--build-id=none
        objcopy --only-keep-debug work work.debug
        strip work
        objcopy --add-gnu-debuglink=work.debug work
        mv work.debug .debug
    )
    record linked.data --all-user -g linked/work
}

# bats test_tags=live
@test "native code whose debug file is named by a link, without a build-id" {
    mkdir -p linked/.debug
    printf 'static inline __attribute__((always_inline)) long twist(long v)\n{\n    for (int i = 0; i < 20; i++)\n        v = v * 31 + (v >> 3);\n    return v;\n}\n__attribute__((noinline)) static long run(long v)\n{\n    return twist(v) ^ 1;\n}\nint main(void)\n{\n    long all = 0;\n    for (long n = 0; n < 4000000; n++)\n        all += run(n);\n    return all == 42;\n}\n' >linked/work.c
    record_linked
    perfjit export -q -f folded linked.data >folded
    grep -E ';run;twist_\[i\] [0-9]+$' folded || complain "$(cat folded)"
    echo >>linked/.debug/work.debug # what has another sum is not its debug file
    perfjit export -q -f folded linked.data >folded
    ! grep ';run;' folded || complain "the debug file of another sum was used"
}
