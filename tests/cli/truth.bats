# Code that is refilled, overwritten, moved, unloaded, flipped, remapped and forked all the time.  It is sampled at 5 kHz, in
# every form of recording.  The program's own log has the truth, and every sample is judged by it.
load helper

# A file with -k mono and a stream without are stored and recorded live, make check-all has all six.  The stored recordings are
# shorter.
setup() {
    require_perf
    check_rate
    cd "$BATS_FILE_TMPDIR"
    recordings="file-mono pipe-own" seconds=1.5
    [ "$RECORDINGS" = live ] || seconds=0.8
    [ "$RECORDINGS" != live ] || [ -n "${BRIEF:-}" ] || recordings="file-mono pipe-mono z-mono file-own pipe-own z-own"
}

# recorded FORM-CLOCK: by the first test that asks for it.
recorded() {
    [ ! -e "$1" ] || return 0
    mkdir "$1"
    (cd "$1" && recording "$1" record_surely "${1%-*}" "${1#*-}")
    # As if of another day: the clocks of the machine that reads are no evidence.
    [ "$RECORDINGS" != stored ] || touch -d '2001-01-01' "$1/perf.data"
}

# The kernel lowers the rate by itself when it finds that sampling takes too long.
check_rate() {
    [ "$RECORDINGS" != stored ] || return 0
    local rate
    rate=$(cat /proc/sys/kernel/perf_event_max_sample_rate)
    [ "$rate" -ge 5000 ] || complain "5 kHz is needed, and perf_event_max_sample_rate is $rate: as root," \
        "sysctl -w kernel.perf_cpu_time_max_percent=0 kernel.perf_event_max_sample_rate=100000"
}

record_churn() {
    local options=(-q -e cpu-clock -F 5000)
    [ "$2" = own ] || options+=(-k mono)
    local churn=("$BUILD/producers/address_churn" -s $seconds truth)
    export PERFJIT=dump JITDUMPDIR=$PWD
    case $1 in
        file) perf record "${options[@]}" -o perf.data "${churn[@]}" ;;
        pipe) perf record "${options[@]}" -o - "${churn[@]}" >perf.data ;;
        z) perf record "${options[@]}" -z -o perf.data "${churn[@]}" ;;
    esac
}

# unsure: by how many ns perfjit is unsure of the clock of the dump that it is least sure of; 0 if all are perf's.
unsure() {
    perfjit inject -v -i "$1" -o sure.data 2>&1 >/dev/null | sed -nE 's/.*\(± ([0-9 ]+)\).*/\1/p' | tr -d ' ' | sort -g | tail -1
}

# A process that has to wait for a processor just when it maps its dump can't say to 100 us when that was, and perfjit says so.  That
# is not what the judge is to see.
record_surely() {
    local try ns
    for try in 1 2 3; do
        rm -rf jitdump-*
        record_churn "$@" || return
        ns=$(unsure perf.data)
        [ "${ns:-0}" -gt 50000 ] || break
        echo "# $1-$2, try $try: unsure by $ns ns" >&3
    done
    rm -rf sure.data sure.data.dso
}

# Inject what is in the current directory, once for each layout; a stream stays a stream.
inject() {
    [ ! -e "$1.data" ] || return 0
    if [[ $PWD == */pipe-* ]]; then
        perfjit inject -i - -o - --layout "$1" --dso-dir "$1.dso" <perf.data 2>"$1.err" >"$1.part" || status=$?
    else
        perfjit inject -i perf.data -o "$1.part" --layout "$1" --dso-dir "$1.dso" 2>"$1.err" || status=$?
    fi
    # The status is another test's.
    [ "${status:-0}" -eq 0 ] || [ "${status:-0}" -eq 3 ] || complain "$(cat "$1.err")"
    mv "$1.part" "$1.data"
}

# perf COMMAND on DATA, which may be a stream.
perf_on() {
    if [[ $PWD == */pipe-* ]]; then
        perf "$1" -i - "${@:3}" <"$2"
    else
        perf "$1" -i "$2" "${@:3}"
    fi
}

# judge DATA: by how many microseconds a sample must lie inside a run.  Recorded with -k mono a sample and the log have one
# clock; else perfjit must find out how far one is from the other, and has 100 us for it.
judge() {
    local options=(-m 1)
    [[ $PWD == *-mono ]] || options=(-p -m 100)
    perf_on script "$1" -F pid,tid,time,ip,sym --ns --no-inline | "$BUILD/producers/truth_check" "${options[@]}" truth
}

# sum WHAT KINDS <SCORE: over the kinds that match.
sum() {
    awk -v what="$1" -v kinds="$2" 'NR > 1 && $1 ~ kinds { for (i = 2; i < NF; i++) if ($i == what) n += $(i + 1) } END { print n + 0 }'
}

threads='^(flipped|dual|plain)[.]'
children='^(quiet|flipping|churning|grandchild)[.]'

# expect_right KINDS MINIMUM: no sample of a run of these kinds is wrong or missing.
expect_right() {
    local samples wrong missing
    samples=$(sum samples "$1" <score) wrong=$(sum wrong "$1" <score) missing=$(sum missing "$1" <score)
    echo "# ${PWD##*/}, $layout layout: $samples samples, $wrong wrong, $missing missing" >&3
    [ "$samples" -ge "$2" ] || complain "too few to say anything"
    [ "$wrong" -eq 0 ] && [ "$missing" -eq 0 ] ||
        complain "$(awk -v kinds="$1" '$1 ~ kinds && ($7 || $9)' score; cat disagreements)"
}

# check_names RECORDING KINDS MINIMUM: in both layouts.
check_names() {
    local layout
    recorded "$1"
    cd "$1"
    for layout in image function; do
        inject $layout
        judge $layout.data >score 2>disagreements
        [[ $(head -1 score) == *" stray 0" ]] || complain "the truth is in doubt: $(cat score disagreements)"
        expect_right "$2" "$3"
    done
}

# ---- That the recordings are what they shall be ----

# The program's samples stand for 200 us of a processor each.
# bats test_tags=live
@test "truth: sampled at 5 kHz" {
    recorded file-mono
    perf script -i file-mono/perf.data -F period | sort | uniq -c >"$BATS_TEST_TMPDIR/periods"
    awk '$2 == 200000 { right = $1 } END { exit NR != 1 || right < 2000 }' "$BATS_TEST_TMPDIR/periods" || complain "$(cat "$BATS_TEST_TMPDIR/periods")"
}

# bats test_tags=live
@test "truth: everything was done, and often" {
    recorded file-mono
    cd file-mono
    number() { awk -v what="$1" '$2 == what { print $3 }' truth; }
    [ "$(number fills)" -ge 3000 ]
    # In every arena the address that was filled most often.
    [ "$(grep -c 'most_fills' truth)" -eq 5 ]
    awk '/most_fills/ && $5 < 30 { exit 1 }' truth || complain "too few fills: $(grep most_fills truth)"
    awk '/most_fills/ && $5 >= 200 { some = 1 } END { exit !some }' truth || complain "too few fills: $(grep most_fills truth)"
    for what in moves unloads; do
        [ "$(number $what)" -ge 40 ] || complain "only $(number $what) $what"
    done
    for what in memory_moves files remaps; do
        [ "$(number $what)" -ge 1 ] || complain "no $what"
    done
}

# bats test_tags=both
@test "truth: each kind of code was sampled" {
    recorded file-mono
    cd file-mono
    judge perf.data >score 2>/dev/null
    for kind in new survivor remnant moved heir dead untold file inherited; do
        [ "$(sum samples "[.]$kind$" <score)" -ge 20 ] || complain "too few samples of kind $kind: $(cat score)"
    done
    for label in flipped dual plain quiet flipping churning grandchild; do
        [ "$(sum samples "^$label[.]" <score)" -ge 50 ] || complain "too few samples in $label: $(cat score)"
    done
}

# ---- Names: in both layouts none is wrong, and none missing ----

# bats test_tags=both
@test "names: a file, -k mono" {
    check_names file-mono "$threads" 1000
}

# bats test_tags=both
@test "names: a file, -k mono: in forked children" {
    check_names file-mono "$children" 200
}

# bats test_tags=all
@test "names: a stream, -k mono" {
    check_names pipe-mono "$threads" 1000
}

# bats test_tags=all
@test "names: a stream, -k mono: in forked children" {
    check_names pipe-mono "$children" 200
}

# bats test_tags=all
@test "names: a compressed file, -k mono" {
    check_names z-mono "$threads" 1000
}

# bats test_tags=all
@test "names: a compressed file, -k mono: in forked children" {
    check_names z-mono "$children" 200
}

# bats test_tags=all
@test "names: a file, without -k" {
    check_names file-own "$threads" 1000
}

# bats test_tags=all
@test "names: a file, without -k: in forked children" {
    check_names file-own "$children" 200
}

# bats test_tags=both
@test "names: a stream, without -k" {
    check_names pipe-own "$threads" 1000
}

# bats test_tags=both
@test "names: a stream, without -k: in forked children" {
    check_names pipe-own "$children" 200
}

# bats test_tags=all
@test "names: a compressed file, without -k" {
    check_names z-own "$threads" 1000
}

# bats test_tags=all
@test "names: a compressed file, without -k: in forked children" {
    check_names z-own "$children" 200
}

# Printed for comparison: perf has no unload record.
# bats test_tags=all
@test "names: perf inject --jit, a file, -k mono: so many" {
    recorded file-mono
    mkdir peer-mono
    cp file-mono/truth peer-mono
    cd peer-mono
    perf inject --jit -i ../file-mono/perf.data -o peer.data >/dev/null 2>&1
    judge peer.data >score 2>/dev/null
    echo "# perf inject --jit: $(head -1 score)" >&3
    find .. -name 'jitted-*.so' -delete
}

# ---- All that is not JIT code ----

# The samples of RECORDING's DATA outside all arenas, with everything that a map could change.
other_samples() {
    perf_on script "$1" -F comm,pid,tid,time,event,ip,sym,symoff,dso --ns --no-inline >all.txt
    awk '
        function padded(hex) { return substr("0000000000000000", length(hex) + 1) hex }
        FNR == NR && $2 == "arena" { start[++n] = padded($3); end[n] = padded($4) }
        FNR == NR { next }
        { match($0, /cpu-clock[^ ]* +[0-9a-f]+/); split(substr($0, RSTART, RLENGTH), part, / +/); addr = padded(part[2])
          for (i = 1; i <= n; i++) if (addr >= start[i] && addr < end[i]) next
          print }' truth all.txt
}

# check_same RECORDING
check_same() {
    local layout
    recorded "$1"
    cd "$1"
    other_samples perf.data >before.txt
    [ "$(wc -l <before.txt)" -ge 100 ]
    for layout in image function; do
        inject $layout
        other_samples $layout.data >after.txt
        same after.txt before.txt
    done
}

# bats test_tags=both
@test "others: each sample outside JIT code is as it was" {
    local recording
    for recording in $recordings; do
        (check_same $recording)
    done
}

# perf report's output for DATA without JIT code: before the code is known it belongs to memory, or to the file that is mapped
# over it.
other_rows() {
    perf report -i "$1" --stdio -F sample,comm,dso,sym --no-inline 2>report.err | tr -s ' ' |
        grep -vE '^#|^$|\[JIT\] tid|//anon|memfd:|\[anon:| loops |\[unknown\]|\[unloaded JIT code\]| jit-.*\.so'
}

# bats test_tags=both
@test "others: perf report says the same before and after, and warns of nothing" {
    recorded file-mono
    cd file-mono
    inject image
    other_rows perf.data | sort >before.txt
    [ "$(wc -l <before.txt)" -ge 20 ]
    other_rows image.data | sort >after.txt
    same after.txt before.txt
    ! grep -iE 'order|warning|lost|processed' report.err || complain "$(cat report.err)"
}

rounds() {
    perf_on report "$1" -D 2>/dev/null | grep -c PERF_RECORD_FINISHED_ROUND
}

# check_rounds RECORDING
check_rounds() {
    local layout before after
    recorded "$1"
    cd "$1"
    before=$(rounds perf.data)
    for layout in image function; do
        inject $layout
        after=$(rounds $layout.data)
        echo "# $1, $layout layout: $before rounds before, $after after" >&3
        [ "$before" -ge 3 ] && [ "$after" -eq "$before" ]
        perf_on report $layout.data --stdio >/dev/null 2>report.err
        ! grep -iE 'order|warning|lost|processed' report.err || complain "$(cat report.err)"
    done
}

# bats test_tags=both
@test "order: as many rounds as before, and no warning" {
    local recording
    for recording in $recordings; do
        (check_rounds $recording)
    done
}

# bats test_tags=both
@test "status: nothing was skipped" {
    recorded file-mono
    cd file-mono
    run --separate-stderr perfjit inject -i perf.data -o again.data
    exits 0
}

# ---- That the judge can say no ----

made_truth() {
    printf '%s\n' '# runs' '# clock 1000000000 5000000000 1' '# clock 2000000000 6000000000 1' '# arena 1000 2000' \
        'run 7 7 1000000 2000000 1000 32 one.new alpha 1' 'run 7 7 2100000 3000000 1020 32 one.dead -' \
        'run 7 8 1000000 3000000 1040 32 two.new beta'
}

# check_judge OPTIONS <SAMPLES: what truth_check says of them.
check_judge() {
    made_truth >"$BATS_TEST_TMPDIR/truth"
    "$BUILD/producers/truth_check" $1 "$BATS_TEST_TMPDIR/truth" 2>"$BATS_TEST_TMPDIR/err"
}

# refuses OPTIONS LINE: a truth with this line added.
refuses() {
    { made_truth; echo "$2"; } >"$BATS_TEST_TMPDIR/truth"
    run "$BUILD/producers/truth_check" $1 "$BATS_TEST_TMPDIR/truth" </dev/null
    [ "$status" -eq 1 ] && [[ $output == truth_check:* ]] || complain "status $status: $output"
}

@test "judge: right, wrong, missing, outside and stray are told apart" {
    local lines=('7/7 0.001500000: 1004 alpha 1' '7/7 0.001500000: 1004 beta' '7/7 0.001500000: 1004 [unknown]'
        '7/7 0.002500000: 1024 [unknown]' '7/7 0.002500000: 1024 alpha 1' '7/7 0.001950000: 1004 beta'
        '7/7 0.002500000: 1004 alpha 1' '7/8 0.002000000: 1044 beta' '7/8 0.004000000: 1044 beta'
        '9/9 0.001500000: 1004 beta' '7/7 0.001500000: 3004 main')
    run check_judge "" < <(printf ' %s\n' "${lines[@]}")
    same <(echo "$output") - <<'END'
samples 6 right 3 wrong 2 missing 1 outside 1 stray 2
one.dead samples 2 right 1 wrong 1 missing 0
one.new samples 3 right 1 wrong 1 missing 1
two.new samples 1 right 1 wrong 0 missing 0
END
    [[ $(<"$BATS_TEST_TMPDIR/err") == *"0.001500000: 1004 beta: it is alpha 1, of kind one.new, 500 us after its start"* ]]
}

@test "judge: the margin is as wide as told" {
    local line=' 7/7 0.001950000: 1004 beta'
    [[ $(check_judge "-m 50" <<<"$line") == "samples 1 right 0 wrong 1 missing 0 outside 0 stray 0"* ]]
    [[ $(check_judge "-m 51" <<<"$line") == "samples 0 right 0 wrong 0 missing 0 outside 1 stray 0"* ]]
}

@test "judge: perf's clock is converted" {
    local line=' 7/7 4.001500000: 1004 alpha 1'
    [[ $(check_judge -p <<<"$line") == "samples 1 right 1 "* ]]
    [[ $(check_judge "" <<<"$line") == *"stray 1" ]]
}

@test "judge: what it can't understand is refused" {
    run ! check_judge "" <<<' 7 0.001950000: 1004 beta'
    run ! check_judge -x </dev/null
    refuses "" 'run 7 7 5 4 1000 32 kind name'
    refuses "" 'run 7 7 1500000 1600000 1000 32 kind overlaps'
    refuses "" walk
    echo '# runs' >"$BATS_TEST_TMPDIR/empty"
    run ! "$BUILD/producers/truth_check" "$BATS_TEST_TMPDIR/empty" </dev/null
    made_truth | grep -v clock >"$BATS_TEST_TMPDIR/no-clock"
    run ! "$BUILD/producers/truth_check" -p "$BATS_TEST_TMPDIR/no-clock" </dev/null
    run ! "$BUILD/producers/truth_check" "$BATS_TEST_TMPDIR/absent" </dev/null
}

@test "judge: of real samples, names without their times are wrong" {
    recorded file-mono
    cd file-mono
    inject image
    perf_on script image.data -F pid,tid,time,ip,sym --ns --no-inline |
        awk '{ line[NR] = $0; name[NR] = $4 " " $5 } END { for (i = 1; i <= NR; i++) { $0 = line[i]; print $1, $2, $3, name[i % NR + 1] } }' |
        "$BUILD/producers/truth_check" truth >score 2>/dev/null
    read -r _ samples _ _ _ wrong _ <score
    [ "$samples" -ge 2000 ]
    [ $((10 * wrong)) -gt "$samples" ] || complain "$(head -1 score)"
}
