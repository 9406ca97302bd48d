#!/usr/bin/env bats
# Every form of input and output: file, stream, directory, compressed, several events, and the records from perf record's options.
# The names are the same in all, and what is not JIT code is as it was.

load helper

setup() {
    cd "$BATS_TEST_TMPDIR"
    require_perf
    mkdir -p dump
    seconds=0.3 stack_bytes=4096 turn=file
    [ "$RECORDINGS" = live ] || seconds=0.1 stack_bytes=1024
}

# producer: the command to record; its functions are inner and solo (tests/producers/unwind_shapes.c).
producer() {
    echo "$BUILD/producers/unwind_shapes" frame-first "$PWD/dump" "$seconds"
}

# expect_names DATA [OPTION...]: perf names the JIT's functions, of which at least 50 samples are, and says nothing odd.
expect_names() {
    perf script -i "$1" -F ip,sym --no-inline "${@:2}" >script.txt 2>script.err
    expect_names_in script.txt
    ! grep -qiE 'out of order|Processed .* lost|Warning' script.err || complain "$(cat script.err)"
}

expect_names_in() {
    [ "$(grep -cE ' (inner|solo)$' "$1")" -gt 50 ] || complain "too few named: $(sort "$1" | uniq -c | sort -rn | head -5)"
}

# ---- The matrix: each form, as a file and as a stream, to a file and to a stream ----

# with_perf COMMAND DATA [OPTION...]: run perf COMMAND on a file, or on a stream, whose name ends in .stream.  Its complaints go
# to err.txt.
with_perf() {
    case $2 in
    *.stream) cat "$2" | perf "$1" -i - "${@:3}" 2>>err.txt ;;
    *) perf "$1" -i "$2" "${@:3}" 2>>err.txt ;;
    esac
}

# lines DATA PID: a line for each sample of the producer.
lines() {
    with_perf script "$1" --no-itrace --pid "$2" -G -F comm,tid,time,event,ip,sym,dso --ns --no-inline
}

# only_jit_changed BEFORE AFTER: line by line the same, but where there was no name there is now one of the JIT's.
only_jit_changed() {
    awk 'function strip(line) { sub(/ \[unknown\] .*| (inner|solo|middle|outer) .*/, "", line); return line }
         NR == FNR { before[NR] = $0; all = NR; next }
         { seen++ }
         before[FNR] ~ / \[unknown\] \(.*perf-[0-9]+\.map\)$/ {
             jit++
             if ($0 !~ / (inner|solo|middle|outer) \(.*\/jit-[^\/]*\.so\)$/ || strip($0) != strip(before[FNR])) bad = bad "\n" $0
             next
         }
         $0 != before[FNR] { bad = bad "\n" $0 }
         END {
             if (bad != "" || seen != all || jit < 20) { printf "%d lines instead of %d, %d of the JIT; wrong:%s\n", seen, all, jit, substr(bad, 1, 600); exit 1 }
         }' "$1" "$2"
}

# facts DATA PID PREFIX: the facts to compare, in files that begin with PREFIX.  kept: the header without the parts that differ by
# nature.
facts() {
    lines "$1" "$2" >"$3.lines"
    {
        with_perf report "$1" -D --header
        [[ $1 != *.stream ]] || with_perf report "$1" --header-only # what comes in the stream is read by then
    } | awk -v prefix="$3" '
        BEGIN {
            printf "" >(prefix ".header")
            printf "" >(prefix ".cmdline")
            printf "" >(prefix ".kept")
        }
        /^# / {
            print >(prefix ".header")
            if (/^# cmdline/) print >(prefix ".cmdline")
            if (!/^# (captured on|data size|feat offset|compressed|directory data version|missing features)/) print >(prefix ".kept")
        }
        /PERF_RECORD_FINISHED_(ROUND|INIT)/ { rounds++ }
        END { print rounds + 0 >(prefix ".rounds") }'
    # perf looks at the vdso in a file that it names anew each time.  There are no lines if every sample hit the JIT.
    [[ $1 == *.stream ]] || perf buildid-list -i "$1" 2>&1 | sed '/\/\(perf-[0-9]*\.map\|jit-[^/]*\.so\)$/d; s|/perf-vdso\.so-.*|/perf-vdso.so|' >"$3.ids"
}

# check_pair IN OUT PID: OUT is as good as IN, whose facts are in `before`, and has the names.
check_pair() {
    facts "$2" "$3" after
    check_pair_of_facts "$1" "$2"
}

check_pair_of_facts() { # IN OUT
    only_jit_changed before.lines after.lines
    # The rounds of one file of a directory say nothing about the others.
    [ -d "$1" ] || same after.rounds before.rounds
    same after.cmdline before.cmdline
    ! grep -E '^# (compressed|directory)' after.header || complain "the header is not that of a plain file"
    if [[ $1$2 != *.stream* ]]; then
        same after.kept before.kept
        same after.ids before.ids
    fi
    with_perf report "$2" --stdio >report.txt
    grep -qE ' (inner|solo) *$' report.txt
    # That it had no time for all, perf says in three lines, and in one that there is no /sys.
    grep -vE '^Warning:$|^Processed .* lost |IO/CPU overload|^Failed to read max cpus' err.txt | { ! grep -iE 'warn|error|fail|order|corrupt|invalid'; } || complain "perf says this"
}

# With unwound stacks all is as before, too, but for the layout of samples that the header shows.
check_unwound() { # IN PID
    local out
    inject_beside_others /dev/null -i "$1" -o unwound.data
    inject_beside_others unwound.stream -i "$1" -o - --dso-dir unwound.data.dso
    for out in unwound.data unwound.stream; do
        facts $out "$2" after
        ! grep -E 'STACK_USER|REGS_USER' after.header || complain "$out"
        for kept in before.kept after.kept; do sed -i '/^# event : /d' $kept; done
        check_pair_of_facts "$1" $out
    done
}

# inject_beside_others STDOUT OPTION...: if every process is recorded, somebody else's dump may be gone, or be cut.  A dump that
# is cut while it is read is reported, and the user is told to try again.
inject_beside_others() {
    local status try
    for try in 1 2 3 4 5; do
        status=0
        perfjit inject -q "${@:2}" >"$1" 2>inject.err || status=$?
        [[ $status$every_process == 1yes ]] && grep -q 'became shorter while it was read' inject.err || break
        echo "# try $try: $(cat inject.err)" >&3
    done
    cat inject.err >&2
    [ $status = 0 ] || [ $status$every_process = 3yes ]
}

# check_input IN [OUT...]: to a file and to a stream, or what OUT says.
check_input() {
    local pid out outs=("${@:2}")
    [ $# -gt 1 ] || outs=(out.data out.stream)
    pid=$(pid_of_dump)
    : >err.txt
    facts "$1" "$pid" before
    for out in "${outs[@]}"; do
        case $out in
        out.data) inject_beside_others /dev/null -i "$1" -o out.data --stacks keep ;;
        out.stream) inject_beside_others out.stream -i "$1" -o - --dso-dir out.data.dso --stacks keep ;;
        esac
        check_pair "$1" $out "$pid"
    done
    if grep -q STACK_USER before.header; then check_unwound "$1" "$pid"; fi
}

pid_of_dump() {
    basename "$(echo dump/jit-*.dump)" .dump | sed s/jit-//
}

# check_form INTO OPTION...: recorded with these options into a file or a stream.  INTO is file, or both, or any.  With any, the
# stored recordings are a file, of which a stream is made, and a stream, of which a file is made, in turn; live, any is both.  No
# check stands in a condition, where bash would let its failures pass.
check_form() {
    local medium media="file stream" outs=
    case $RECORDINGS/$1 in
    */file) media=file ;;
    */both | live/any) ;;
    */any)
        media=$turn
        case $turn in
        file) turn=stream outs=out.stream ;;
        stream) turn=file outs=out.data ;;
        esac
        ;;
    esac
    for medium in $media; do
        echo "recorded into a $medium with ${*:2}:"
        rm -rf dump in.* out.*
        mkdir dump
        recording "$(name_of_form $medium "${@:2}")" record_into $medium "${@:2}"
        check_input "$(ls -d in.*)" $outs
    done
}

name_of_form() { # MEDIUM OPTION...
    sed -E 's/[^A-Za-z0-9]+/-/g; s/-$//' <<<"$*"
}

record_into() { # MEDIUM OPTION...
    if [ $1 = file ]; then
        perf record -q -k mono -e cpu-clock -F 2000 "${@:2}" -o in.data -- $(producer) >/dev/null
    else
        perf record -q -k mono -e cpu-clock -F 2000 "${@:2}" -o - -- $(producer) >in.stream
    fi || return
    [ "$RECORDINGS$every_process" != anewyes ] || "$here/../recordings/own_records.py" in.*
}

# In forms.bats the names are judged by the program's log, and all output of perf is compared.  Here the header, rounds,
# build-ids, and a stream made of a file are compared.  Live these are few.
# bats test_tags=both
@test "forms: plain, compressed, with call chains" {
    check_form both
    check_form both -z
    [ "$RECORDINGS${BRIEF:+ brief}" = "live brief" ] || check_form any -g
}

@test "forms: in small buffers, at a high rate, with stacks" {
    check_form both --call-graph dwarf,$stack_bytes
    check_form any -m 1
    check_form any -F 5000
}

@test "forms: what a sample may hold besides" {
    for options in -d --phys-data --data-page-size --code-page-size -W -T --sample-cpu --sample-identifier -R --intr-regs \
        '-d --phys-data -W -T --sample-cpu --sample-identifier -s -g'; do
        check_form any $options
    done
}

@test "forms: what the kernel tells besides" {
    for options in --switch-events -s --namespaces --all-cgroups; do
        check_form any $options
    done
}

@test "forms: whose samples" {
    local every_process=yes
    for options in -a '-a -G /' -i '--per-thread -T'; do
        check_form any $options
    done
}

@test "forms: build-ids" {
    for options in --no-buildid --buildid-all --buildid-mmap; do
        check_form any $options
    done
}

@test "forms: when perf writes" {
    check_form file --overwrite
    check_form file --tail-synthesize
    # As a stream it has its attributes behind the samples, and perf 6.1 itself can't read that.
    rm -rf dump in.*
    mkdir dump
    recording stream-tail-synthesize record_into stream --tail-synthesize
    perfjit inject -q -i in.stream -o out.data
    expect_names out.data
}

# bats test_tags=both
@test "forms: several events, one of them a tracepoint" {
    [ "$RECORDINGS${BRIEF:+ brief}" = "live brief" ] || check_form any -e task-clock
    # A call that the program makes for certain: on an idle machine it is not switched away from once.
    [ "$RECORDINGS" = stored ] || perf record -q -e syscalls:sys_enter_mmap -o try.data true 2>/dev/null || skip "no tracepoints here"
    check_form both -e syscalls:sys_enter_mmap
    # in.stream and out.stream are left: what a tracepoint's fields mean is known on the other side.
    with_perf script in.stream -F event,time,trace >before.txt
    grep -q 'prot: ' before.txt
    same <(with_perf script out.stream -F event,time,trace) before.txt
}

# bats test_tags=both
@test "forms: a directory with a file for each of perf's threads" {
    [ "$RECORDINGS${BRIEF:+ brief}" = "live brief" ] || check_form file --threads
    check_form file --threads -z
}

# ---- Forms that need hardware, made of a plain recording (tests/producers/rare_form.c) ----

make_form() {
    recording "made-into-$1" record in.data --sample-identifier "${@:3}" $(producer)
    "$BUILD/producers/rare_form" "$1" in.data "$2"
}

branches() {
    with_perf script "$1" --itrace=b --no-inline | sed 's/([^()]*)//g; s/+0x[0-9a-f]*//g'
}

@test "forms: traces of the hardware, which perf decodes, as a file and as a stream" {
    make_form bts bts.data
    : >err.txt
    facts bts.data "$(pid_of_dump)" before
    perfjit inject -q -i bts.data -o out.data
    facts out.data "$(pid_of_dump)" after
    only_jit_changed before.lines after.lines
    same after.rounds before.rounds
    same after.kept before.kept
    # With traces in a stream perf 6.1 reads on only if it is to decode them.
    perfjit inject -q -i bts.data -o - --dso-dir out.data.dso >out.stream
    perfjit inject -q -i out.stream -o again.data --dso-dir out.data.dso --jitdump dump/jit-*.dump
    branches out.data >branches.txt
    [ "$(grep -c ' branches:' branches.txt)" -gt 20 ]
    [ "$(wc -l <branches.txt)" -eq "$(branches bts.data | wc -l)" ]
    grep -qE ' (inner|solo) .*=> .* (inner|solo)' branches.txt
    # In a stream perf decodes no traces that come behind a round at which it had decoded all until then.
    branches out.stream >streamed.txt
    same <(grep -v ' branches:' streamed.txt) <(grep -v ' branches:' branches.txt)
    grep ' branches:' streamed.txt >streamed.branches
    [ "$(wc -l <streamed.branches)" -gt 20 ]
    same <(grep ' branches:' branches.txt | head -n "$(wc -l <streamed.branches)") streamed.branches
    same <(branches again.data) branches.txt
}

@test "forms: branch stacks" {
    make_form branches in2.data
    check_input in2.data
    same <(perf script -i out.data -F time,ip,brstack) <(perf script -i in2.data -F time,ip,brstack)
    perf script -i out.data -F brstack | grep -q '/P/'
}

@test "forms: COMPRESSED2, of perf 6.16 and newer, is as COMPRESSED" {
    make_form compressed2 second.data -z
    cmp -s in.data second.data && complain "nothing was compressed"
    perfjit inject -q -i in.data -o a.data --dso-dir dsos
    perfjit inject -q -i second.data -o b.data --dso-dir dsos
    cmp a.data b.data
    perfjit inject -q -i - -o c.data --dso-dir dsos <second.data
    cmp a.data c.data
    "$BUILD/producers/rare_form" damaged2 in.data damaged.data
    run --separate-stderr perfjit inject -i damaged.data -o out.data
    exits 1
    says "can't be unpacked: it holds fewer bytes than it says"
}

# record_attached SHAPE RECORD...: a program that runs already, when all its code is logged.
record_attached() {
    local producer
    "$BUILD/producers/unwind_shapes" "$1" "$PWD/dump" 60 &
    producer=$!
    await compgen -G 'dump/jit-*.dump' >/dev/null
    await_use $producer 50
    "${@:2}" -p $producer -- bash -c "await_use $producer 200"
    kill $producer
    wait $producer || true
}

# perf record --off-cpu (perf 6.2 and newer) writes what is left at the end with the time ~0 << 32.  Attached, so that nothing
# else says when the process ended, and by perf's own clock, so that it matters.
# bats test_tags=both
@test "forms: left-over samples of --off-cpu, behind all time" {
    # If the recording is of another machine, the dump's clock can't be found out.
    local clock=
    [ "$RECORDINGS" = live ] || clock="-k mono"
    recording off-cpu record_attached none perf record -q $clock -e cpu-clock -F 2000 -o in.data --sample-identifier
    "$BUILD/producers/rare_form" off_cpu in.data off.data
    run --separate-stderr perfjit inject -i off.data -o out.data
    exits 0
    perf script -i out.data -F time,ip,sym --no-inline >script.txt
    [ "$(grep -cE '^ *18446744069\.414584: .* (inner|solo)$' script.txt)" -gt 8 ]
    perfjit check --json off.data >check.json
    jq -e '.profile.samples | .jit_named > 100 and .jit_unknown == 0 and (.incomplete // 0) == 0' check.json
}

# ---- Pieces ----

# Three as a rule: a new one each time that the program has used half a second of the CPU, in stored recordings a fifth.
record_pieces() {
    local ms=500 all=1.6
    [ "$RECORDINGS" = live ] || ms=400 all=1.4
    # shellcheck disable=SC2016 # for the inner shell
    PERFJIT=dump JITDUMPDIR=$PWD perf record -q -k mono -e cpu-clock -F 4000 --sample-identifier --switch-output --no-buildid -o piece.data \
        bash -c '(for i in 1 2; do
                await_use $$ $0
                kill -USR2 $PPID
                until [ "$(ls piece.data.* 2>/dev/null | wc -l)" -ge $i ] || [ ! -e /proc/$$ ]; do sleep 0.01; done
            done) 3>&- & exec "$@"' $ms "$BUILD/tinyjit" --seconds=$all --truth=truth "$here/../../examples/tinyjit/demo.tj" >/dev/null 2>&1
}

# perf writes into every piece anew which files the process has mapped, the dump among them if it still is.
# bats test_tags=both
@test "pieces of --switch-output: all names are right; without the dump's name 1, and --jitdump helps" {
    local score right samples count=0
    recording pieces record_pieces
    for piece in piece.data.*; do
        [ -n "$(dumps_of "$piece")" ] || complain "$piece does not name the dump"
        perfjit inject -q -i "$piece" -o out.data
        score=$(samples out.data | "$BUILD/producers/truth_check" truth)
        read -r _ samples _ right _ <<<"$score"
        [ "$right" -eq "$samples" ] || complain "$piece: $score"
        [ "$samples" -lt 500 ] || count=$((count + 1))
    done
    [ "$count" -ge 2 ] # the third is short if nobody looked in time
    "$BUILD/producers/rare_form" nameless "$(ls piece.data.* | tail -n +2 | xargs ls -S | head -1)" second.data
    rm out.data
    run --separate-stderr perfjit inject -i second.data -o out.data
    exits 1
    says "no jitdump found" "the recording does not name it" "--jitdump FILE"
    perfjit inject -q -i second.data -o out.data --jitdump jitdump-*/jit-*.dump
    score=$(samples out.data | "$BUILD/producers/truth_check" truth)
    read -r _ samples _ right _ <<<"$score"
    [ "$samples" -ge 500 ] && [ "$right" -eq "$samples" ] || complain "$score"
}

@test "recording: -z is unpacked, and the header no longer says that it is compressed" {
    recording z record z.data -z $(producer)
    perf report -i z.data --header-only | grep -q '^# compressed' || complain "not compressed to begin with"
    for layout in image function; do
        perfjit inject -q --layout $layout -i z.data -o out.data
        expect_names out.data
        ! perf report -i out.data --header-only | grep -q '^# compressed' || complain "still says compressed"
        same <(perf report -i out.data --header-only | grep '^# cmdline') <(perf report -i z.data --header-only | grep '^# cmdline')
    done
}

@test "recording: -z and the same records without it give the same profile" {
    recording z record z.data -z $(producer)
    perfjit inject -q -i z.data -o out.data
    # perf's own inject unpacks too if it is asked for nothing else.
    same <(samples out.data | awk '{ print $1 }') <(samples z.data | awk '{ print $1 }')
    [ "$(perf report -D -i out.data | grep -c 'FINISHED_ROUND')" -eq "$(perf report -D -i z.data | grep -c 'FINISHED_ROUND')" ]
}

# streamed NAME OPTION... COMMAND...: writes a stream to stdout; live it comes from perf record at once.
streamed() {
    if [ "$RECORDINGS" = live ]; then
        record - "${@:2}"
    else
        recording "$1" record_stream "${@:2}"
        cat in.stream
    fi
}

record_stream() {
    record - "$@" >in.stream
}

# bats test_tags=both
@test "recording: a stream in, a stream out, from record to report" {
    streamed piped $(producer) | perfjit inject -q -i - -o - |
        perf script -i - -F ip,sym --no-inline >script.txt
    expect_names_in script.txt
    [ -d perf.jit.data.dso ]
}

@test "recording: a compressed stream in, a stream out" {
    streamed piped-z -z $(producer) | perfjit inject -q -i - -o - |
        perf script -i - -F ip,sym --no-inline >script.txt
    expect_names_in script.txt
}

@test "recording: a file through a pipe" {
    recording through-a-pipe record file.data $(producer)
    cat file.data | perfjit inject -q -i - -o a.data --dso-dir dsos
    perfjit inject -q -i file.data -o b.data --dso-dir dsos
    cmp a.data b.data
}

@test "recording: two events, whose records carry their ids" {
    recording two-events perf record -q -k mono -e cpu-clock,task-clock -F 1000 -o two.data $(producer)
    for out in out.data -; do
        perfjit inject -q -i two.data -o $out >stream.data
        if [ $out = - ]; then
            perf script -i - -F event,ip,sym --no-inline <stream.data >script.txt
        else
            perf script -i out.data -F event,ip,sym --no-inline >script.txt
        fi
        for event in cpu-clock task-clock; do
            grep "$event" script.txt >event.txt
            expect_names_in event.txt
        done
    done
}

@test "recording: two events with different sample types" {
    recording two-sample-types perf record -q -k mono -e cpu-clock,context-switches/call-graph=fp/ -F 2000 -o two.data $(producer)
    perfjit inject -q -i two.data -o out.data
    expect_names out.data
}

@test "recording: a group that only counts with its first event: all have samples, as perf has them" {
    recording group perf record -q -k mono -e '{cpu-clock,page-faults}:S' -F 1000 -g -o group $(producer)
    perf script -i group -F event,period >periods 2>/dev/null
    local event all samples
    for event in cpu-clock page-faults; do
        read -r all samples < <(awk -v "event=$event:" '$2 == event { all += $1; n++ } END { printf "%.0f %d\n", all, n }' periods)
        [ "$samples" -ge 1 ] || complain "no $event"
        perfjit report -q --event $event --json group >report
        [ "$(jq '[.total, .samples] | @tsv' -r report)" = "$(printf '%s\t%s' "$all" "$samples")" ] ||
            complain "$event: $(jq -c '[.total, .samples]' report), perf $all $samples"
        [ "$(perfjit export -q -f folded --event $event --weight period group | awk '{ n += $NF } END { printf "%.0f\n", n }')" = "$all" ]
    done
}

# bats test_tags=both
@test "recording: attached to a process that runs already" {
    recording attached record_attached frame-first record attached.data
    perfjit inject -q -i attached.data -o out.data
    expect_names out.data
}

@test "recording: a directory that is none is refused in words" {
    mkdir some.data
    run --separate-stderr perfjit inject -i some.data -o out.data
    exits 1
    says "some.data: is a directory, but not a recording" "no file 'data'"
    [ ! -e out.data ] && [ ! -e out.data.dso ]
}

# bats test_tags=both
@test "recording: --per-thread without -T, in which nothing has a time" {
    recording no-time record thread.data --per-thread $(producer)
    run --separate-stderr perfjit inject -i thread.data -o out.data
    exits 0
    says "1 x recording without times" "thread.data" "-k mono -T"
    expect_names out.data
}

@test "recording: a pipe that brings nothing, and one whose writer dies" {
    run --separate-stderr perfjit inject -i - -o out.data </dev/null
    exits 1
    says "standard input: not a perf.data file: only 0 bytes long"
    streamed piped $(producer) >some.stream
    head -c $(($(stat -c %s some.stream) - 20)) some.stream >cut.stream
    [ "$RECORDINGS" = stored ] && rooted=(--root "$recorded_root") || rooted=()
    run --separate-stderr bash -c 'cat cut.stream | "$BUILD/perfjit" inject "$@" -i - -o - >out.stream' bash "${rooted[@]}"
    exits 3
    says "standard input: the stream ends inside the record at 0x"
    cat out.stream | perf script -i - -F ip,sym --no-inline >script.txt
    expect_names_in script.txt
}

@test "recording: a stream that is cut short keeps what was whole" {
    streamed piped $(producer) >stream.data
    local size
    size=$(stat -c %s stream.data)
    head -c $((size - 20)) stream.data >cut.data
    run --separate-stderr perfjit inject -i cut.data -o out.data
    exits 3
    says "cut.data: the stream ends inside the record at 0x"
    expect_names out.data
}

@test "recording: a compressed record that is damaged ends the records there, and that is told" {
    # Small buffers, so that there are several of them.
    recording compressed-in-small-buffers record in.data -z -m 2 --sample-identifier $(producer)
    "$BUILD/producers/rare_form" reserved in.data z.data
    run --separate-stderr perfjit inject -i z.data -o out.data
    exits 3
    says "z.data: record " ": can't be unpacked: "
    perf script -i out.data -F ip,sym --no-inline >script.txt 2>/dev/null # what so small buffers lose is told
    expect_names_in script.txt
}
