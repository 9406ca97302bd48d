#!/usr/bin/env bats
# Whatever ends perfjit at whatever moment: no process goes on logging, and no file stays that is only the run's.
# MOMENTS=40 BUILD=... bats tests/cli/undone.bats is the long form.
# bats file_tags=live
load helper

moments=${MOMENTS:-2}
tinyjit=$here/../../examples/tinyjit

setup() {
    require_perf
    cd "$BATS_TEST_TMPDIR" || return
    mkdir tmp dumps
    export TMPDIR=$BATS_TEST_TMPDIR/tmp JITDUMPDIR=$BATS_TEST_TMPDIR/dumps
    program="$BUILD/tinyjit --seconds 0.3 $tinyjit/demo.tj"
}

teardown() {
    [ -z "${served-}" ] || kill "$served"
}

# serve WORD: tinyjit, started with PERFJIT=WORD, as $served.
serve() {
    PERFJIT=$1 "$BUILD/tinyjit" --seconds 1000 "$tinyjit/demo.tj" >/dev/null 3>&- &
    served=$!
    await_use $served 50
}

# end_at SIGNAL MS COMMAND...: in a directory of its own, which is the current one from then on.
end_at() {
    local signal=$1 ms=$2
    shift 2
    rm -rf "$BATS_TEST_TMPDIR/run" && mkdir "$BATS_TEST_TMPDIR/run" && cd "$BATS_TEST_TMPDIR/run" || return
    env --default-signal "$@" >/dev/null 2>../said 3>&- &
    local ended=$!
    sleep "$(printf '%d.%03d' $((ms / 1000)) $((ms % 1000)))"
    kill -"$signal" $ended 2>/dev/null || :
    wait $ended || :
}

# Results have their names whole or not at all.  If the run had ended before its signal, then NEXT keeps its result as "old".
left() {
    find . ../tmp ../dumps -mindepth 1 -not -path './*.dso/*' -not -path './*.bench/*' \
        -not -name '*.perf.data' -not -name '*.perf.data.dso' -not -name '*.bench' \
        -not -name 'r.perf.data.old' -not -name 'r.perf.data.old.dso'
    [ ! -e r.perf.data.old.dso ] || [ -e r.perf.data.old ] || echo r.perf.data.old.dso
    [ ! -e r.perf.data.dso ] || [ -e r.perf.data ] || echo r.perf.data.dso
    [ -z "${attached-}" ] || grep 'jit-.*\.dump' "/proc/$served/maps" || :
    [ -z "${served-}" ] || ! grep -q '^State:.T (stopped)' "/proc/$served/status" || echo "$served is stopped"
}

# nothing_left SIGNAL MS NEXT...: after kill -9 the command NEXT runs first.  What SIGPIPE or that ends, the keeper undoes in a moment.
nothing_left() {
    local found signal=$1 ms=$2 until=$((SECONDS + 10))
    shift 2
    [ "$signal" != KILL ] || "$@" >/dev/null 2>&1 || :
    if [ "$signal" = KILL ] || [ "$signal" = PIPE ]; then
        while [ -n "$(left)" ] && [ $SECONDS -lt $until ]; do sleep 0.02; done
    fi
    found=$(left)
    [ -z "$found" ] || complain "$signal after $ms ms: $found; it said: $(cat ../said)"
}

# at_all_moments MS COMMAND...: each signal, at moments up to MS; NEXT is the command that runs after kill -9.
at_all_moments() {
    local i most=$1 signal ms
    shift
    for signal in INT TERM HUP PIPE KILL; do
        for ((i = 0; i < moments; i++)); do
            ms=$((most * (2 * i + 1) / (2 * moments)))
            end_at $signal $ms "$@"
            nothing_left $signal $ms "${next[@]}"
        done
    done
}

@test "record: a signal at any moment leaves nothing" {
    # shellcheck disable=SC2086 # words
    next=("$BUILD/perfjit" record -q -o r -- true)
    at_all_moments 1200 "$BUILD/perfjit" record -o r -- $program
}

@test "record -p: a signal at any moment leaves no process attached" {
    serve attach
    attached=yes
    next=("$BUILD/perfjit" record -q -o r --duration 0.1 -p $served)
    at_all_moments 1200 "$BUILD/perfjit" record -o r --duration 0.3 -p $served
}

@test "bench: a signal at any moment leaves nothing" {
    next=("$BUILD/perfjit" bench -q --runs 1 -o b.bench --new "$program")
    at_all_moments 2500 "$BUILD/perfjit" bench --runs 2 -o b.bench --base "$program" --new "$program"
}

@test "gdb: a signal at any moment leaves nothing" {
    command -v gdb >/dev/null || skip "there is no gdb"
    JITDUMPDIR=$BATS_TEST_TMPDIR serve dump
    next=("$BUILD/perfjit" gdb -p $served -- --batch -ex 'quit')
    at_all_moments 1200 "$BUILD/perfjit" gdb -p $served -- --batch -ex 'shell sleep 0.3'
}

@test "the keeper was killed as well: the next run does its work" {
    local run keeper
    serve attach
    attached=yes
    mkdir run && cd run
    "$BUILD/perfjit" record -q -o r -p $served >/dev/null 2>../said 3>&- &
    run=$!
    await grep -q 'jit-.*\.dump' /proc/$served/maps
    await sh -c "pgrep -P $run -x keeper >keeper && pgrep -P $run -x perf >/dev/null"
    keeper=$(cat keeper)
    rm keeper
    kill -KILL $keeper $run
    wait $run || :
    await sh -c "! grep -qs '^State:.[^ZX]' /proc/$keeper/status" # it has the list as long as it lives
    [ -n "$(left)" ]
    "$BUILD/perfjit" record -q -o s -- true || :
    found=$(left)
    [ -z "$found" ] || complain "$found"
}

@test "killed while somebody else attaches the process: that stays attached" {
    local attacher run
    serve attach
    mkdir run && cd run
    kill -STOP $served
    "$BUILD/perfjit" attach --timeout 1000 $served >/dev/null 2>../said 3>&- &
    attacher=$!
    await sh -c "ls -l /proc/$attacher/fd 2>/dev/null | grep -q perfjit-attach"
    sleep 0.1
    "$BUILD/perfjit" record -q -o r -p $served >/dev/null 2>&1 3>&- &
    run=$!
    await sh -c "ls -l /proc/$run/fd 2>/dev/null | grep -q perfjit-attach" # it waits for the other one
    kill -KILL $run
    wait $run || :
    kill -CONT $served
    wait $attacher || complain "$(cat ../said)"
    await sh -c "! ls ../tmp/perfjit-undo-* >/dev/null 2>&1"
    grep -q 'jit-.*\.dump' /proc/$served/maps || complain "it is detached"
    [ -e ../dumps/jitdump-$served/jit-$served.dump ] || complain "$(find ../dumps)"
}

@test "kept is what --keep names, and a run in a run keeps its own" {
    mkdir run && cd run
    # shellcheck disable=SC2086 # words
    "$BUILD/perfjit" record -q -o outer -- "$BUILD/perfjit" record -q --keep -o inner -- $program >/dev/null || complain "status $?"
    [ -e inner.recording ]
    [ "$(find ../tmp -name 'jit-*.dump' -not -path '*/stage/*' | wc -l)" -eq 1 ] || complain "$(find ../tmp)"
    perfjit inject -q -i inner.recording -o again.perf.data
    rm -r ../tmp/* inner.recording
    # shellcheck disable=SC2086 # words
    "$BUILD/perfjit" record -q -o outer -- "$BUILD/perfjit" record -q -o inner -- $program >/dev/null || complain "status $?"
    perfjit report outer.perf.data | grep -q 'tj::' || complain "the outer one names nothing"
    perfjit report inner.perf.data | grep -q 'tj::' || complain "the inner one names nothing"
    rm -rf again.perf.data* ./*.perf.data.old*
    [ -z "$(left)" ] || complain "$(left)"
}

@test "a run in a run in a run: what the innermost keeps where it was written stays" {
    mkdir run && cd run
    local writes='echo dump >jit-$$.dump; i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); done'
    local record="$BUILD/perfjit record -q"
    $record -o a -- $record -o b -- $record -o c -- sh -c "$writes" || :
    [ -z "$(left)" ] || complain "nobody keeps it: $(left)"
    $record -o a -- $record -o b -- $record --keep -o c -- sh -c "$writes" || :
    [ "$(ls jit-*.dump | wc -l)" = 1 ] || complain "$(ls)"
}

@test "a run in a run attaches to a process: the outer one has its functions too" {
    mkdir run && cd run
    "$BUILD/perfjit" record -o outer -- sh -c 'PERFJIT=attach "$0" --seconds 1000 "$1" >/dev/null & sleep 0.3
        "$2" record -q -o inner --duration 0.3 -p $!; status=$?; kill $!; exit $status' \
        "$BUILD/tinyjit" "$tinyjit/demo.tj" "$BUILD/perfjit" 2>said || complain "status $?: $(cat said)"
    perfjit report outer.perf.data | grep -q 'tj::' || complain "the outer one names nothing"
    perfjit report inner.perf.data | grep -q 'tj::' || complain "the inner one names nothing"
    rm said
    [ -z "$(left)" ] || complain "$(left)"
}

@test "two recorders of one process: the last one ends its dump, and both name its code" {
    local first second
    serve attach
    attached=yes
    mkdir run && cd run
    "$BUILD/perfjit" record -q -o r1 --duration 0.5 -p $served 3>&- &
    first=$!
    await grep -q 'jit-.*\.dump' /proc/$served/maps
    "$BUILD/perfjit" record -q -o r2 --duration 2 -p $served 3>&- &
    second=$!
    wait $first
    grep -q 'jit-.*\.dump' /proc/$served/maps || complain "the first one has closed it"
    wait $second
    perfjit report r1.perf.data | grep -q 'tj::'
    perfjit report r2.perf.data | grep -q 'tj::'
    [ -z "$(left)" ] || complain "$(left)"
    # What a person has switched on stays on.
    perfjit attach -q $served
    perfjit record -q -o r3 --duration 0.2 -p $served
    grep -q 'jit-.*\.dump' /proc/$served/maps || complain "it is off"
    perfjit detach -q $served
}

@test "a process that is named twice is one: it is sampled once, and its dump goes" {
    serve attach
    attached=yes
    mkdir run && cd run
    "$BUILD/perfjit" record -o r --duration 0.3 -p "$served,$served,0$served" 2>../said
    ! grep -q 'another perfjit' ../said || complain "$(cat ../said)"
    [ -z "$(left)" ] || complain "$(left)"
    # perf would open its events once more.
    [ "$(perf script -i r.perf.data -F tid,time 2>/dev/null | sort | uniq -d | wc -l)" -eq 0 ] || complain "samples are there twice"
}

@test "nobody reads standard error: it ends before anything runs, but for -q" {
    local unread='import os, signal, subprocess, sys
read, write = os.pipe()
os.close(read)
sys.exit(-subprocess.run(sys.argv[1:], stderr=write, stdout=subprocess.DEVNULL, preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL)).returncode)'
    mkdir run && cd run
    run python3 -c "$unread" "$BUILD/perfjit" record -e cpu-clock -o r -- touch it-ran
    exits 13
    run python3 -c "$unread" "$BUILD/perfjit" bench -e cpu-clock --runs 1 -o b.bench --new 'touch it-ran'
    exits 13
    [ -z "$(left)" ] && [ -z "$(ls)" ] || complain "$(left) $(ls)"
    # shellcheck disable=SC2086 # words
    run python3 -c "$unread" "$BUILD/perfjit" record -q -e cpu-clock -o r -- $program
    exits 0
    [ -e r.perf.data ]
}

# ---- Failures have names ----

@test "perf ends before it has begun: how it ended is said" {
    mkdir run && cd run
    printf '#!/bin/sh\nexit 3\n' >../status.sh
    # shellcheck disable=SC2016 # for that shell
    printf '#!/bin/sh\nkill -SEGV $$\n' >../signal.sh
    chmod +x ../status.sh ../signal.sh
    run --separate-stderr "$BUILD/perfjit" record --perf ../status.sh -o r -- true
    exits 1
    says "it ended with status 3, and says nothing"
    run --separate-stderr "$BUILD/perfjit" record --perf ../signal.sh -o r -- true
    exits 1
    says "signal 11 (Segmentation fault) ended it"
    [ -z "$(left)" ] || complain "$(left)"
}

@test "a program that removes its dumps' directory: 3, and a recording" {
    mkdir run && cd run
    # shellcheck disable=SC2016 # for the inner shell
    run --separate-stderr "$BUILD/perfjit" record -o r -- sh -c "$program >/dev/null; rm -r \"\$JITDUMPDIR\""
    exits 3
    says "dump missing"
    [ -e r.perf.data ] && [ -z "$(left)" ] || complain "$(left)"
}

@test "a zombie, a directory that was removed, a disk that was full when perf was to end" {
    mkdir run && cd run
    run --separate-stderr python3 -c 'import os, subprocess, sys, time
child = os.fork()
if child == 0: os._exit(0)
while open(f"/proc/{child}/stat").read().split()[2] != "Z": time.sleep(0.01)
sys.exit(subprocess.run(sys.argv[1:] + [str(child)]).returncode)' "$BUILD/perfjit" record -o r -p
    exits 1
    says "is a zombie"
    run --separate-stderr python3 -c 'import os, subprocess, sys, time
child = os.fork()
if child == 0: os._exit(0)
while open(f"/proc/{child}/stat").read().split()[2] != "Z": time.sleep(0.01)
sys.exit(subprocess.run(sys.argv[1:] + [str(child)]).returncode)' "$BUILD/perfjit" bt -p
    exits 1
    says "it has ended"
    mkdir gone
    # shellcheck disable=SC2016 # for the inner shell
    run --separate-stderr "$BUILD/perfjit" record -o gone/r -- sh -c "rm -r gone; exec $program"
    exits 1
    says "gone: the directory was removed meanwhile, with what was recorded"
    [[ $stderr != *"is left"* ]] || complain "$stderr"
    # perf's own file comes to the limit, which perf sees when it writes all.
    # shellcheck disable=SC2016 # for the inner shell
    printf '#!/bin/bash\nulimit -f 10\nexec env --default-signal=XFSZ perf "$@"\n' >limited.sh
    chmod +x limited.sh
    # shellcheck disable=SC2086 # words
    run --separate-stderr "$BUILD/perfjit" record --perf ./limited.sh -F 5000 -o r -- $program
    exits 3
    says "its file came to the file size limit (ulimit -f)"
    rm limited.sh
    [ -z "$(left)" ] || complain "$(left)"
}

@test "no sample in JIT code has a name: 3, also with --duration" {
    mkdir run && cd run
    run --separate-stderr "$BUILD/perfjit" record -o r --duration 0.3 -- sh -c "unset PERFJIT; exec $program"
    exits 3
    says "stay [unknown]"
}
