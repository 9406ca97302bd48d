#!/usr/bin/env bats
# perfjit record: the ways in which a run ends (keys on a terminal, signals, --duration), and its output on a terminal
# meanwhile.
# bats file_tags=live
load helper

setup() {
    require_perf
    mkdir "$BATS_TEST_TMPDIR/run" "$BATS_TEST_TMPDIR/tmp"
    cd "$BATS_TEST_TMPDIR/run" || return
    export TMPDIR=$BATS_TEST_TMPDIR/tmp HOME=$BATS_TEST_TMPDIR/tmp
    # on_terminal KEY FILE WORD...: run WORD... on a terminal of its own, type KEY once FILE is there, print what it shows.
    cat >"$BATS_TEST_TMPDIR/on_terminal" <<'END'
import os, pty, select, signal, sys, time
pid, fd = pty.fork()
if pid == 0:
    # A script that runs the tests behind its back, "make check &", has them ignore both.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    os.execvp(sys.argv[3], sys.argv[3:])
said, sent = b"", False
while True:
    if select.select([fd], [], [], 0.05)[0]:
        try:
            part = os.read(fd, 4096)
        except OSError:
            break
        if not part:
            break
        said += part
    if not sent and os.path.exists(sys.argv[2]):
        os.write(fd, sys.argv[1].encode().decode("unicode_escape").encode())
        sent = True
sys.stdout.buffer.write(said)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
END
}

on_terminal() {
    run --separate-stderr python3 "$BATS_TEST_TMPDIR/on_terminal" "$@"
}

left_nothing() {
    [ -z "$(ls -A "$TMPDIR")" ] || complain "left in TMPDIR: $(find "$TMPDIR")"
    [ -z "$(ls | grep -E 'recording|\.dump$')" ] || complain "left: $(ls)"
}

# After Ctrl-\ this command goes on to its end, as a Java VM does.  A command that does not handle the signal ends.
listens='import signal, sys, time
def heard(number, frame):
    print("heard", number, flush=True)
    time.sleep(0.3)
    print("and went on", flush=True)
    sys.exit(5)
signal.signal(signal.SIGQUIT, heard)
open("ready", "w").close()
while True: time.sleep(0.01)'

@test "Ctrl-\\ is the command's: the recording goes on, and nothing is left" {
    on_terminal '\x1c' ready "$BUILD/perfjit" record --exit-status --runtime none python3 -c "$listens"
    exits 5
    [[ $output == *"heard 3"*"and went on"*"python3 ended with status 5"*"now: perfjit report"* ]] || complain "$output"
    [ -e perfjit.perf.data ]
    left_nothing
    rm -r ready perfjit.perf.data*
    on_terminal '\x1c' ready "$BUILD/perfjit" record --runtime none sh -c 'ulimit -c 0; : >ready; sleep 100'
    exits 0
    [[ $output == *"sh was ended by signal 3"*"now: perfjit report"* ]] || complain "$output"
    left_nothing
}

@test "SIGQUIT to perfjit is passed on; without a command it ends the recording" {
    # In the background a shell without job control has what it starts ignore SIGQUIT.
    env --default-signal=QUIT "$BUILD/perfjit" record --exit-status --runtime none python3 -c "$listens" >said 2>&1 &
    local run=$!
    await test -e ready
    kill -QUIT $run
    status=0
    wait $run || status=$?
    exits 5
    grep -q "heard 3" said
    left_nothing
    sleep 100 &
    local slept=$!
    env --default-signal=QUIT "$BUILD/perfjit" record -p $slept 2>said &
    run=$!
    await sh -c "pgrep -P $run perf >/dev/null"
    await test -s perfjit.recording
    kill -QUIT $run
    status=0
    wait $run || status=$?
    kill $slept
    [ "$status" = 0 ] || grep -q "interrupted before perf record had begun" said || complain "status $status: $(cat said)"
    left_nothing
}

@test "Ctrl-\\ and perfjit bench" {
    on_terminal '\x1c' ready "$BUILD/perfjit" bench --runs 1 --warmup 0 -o my.bench --new "python3 -c '${listens/sys.exit(5)/end = time.process_time() + 0.3
    while time.process_time() < end: pass
    sys.exit(0)}'"
    exits 0 # it ends by that key alone
    [ -e my.bench/new-001.run ]
    left_nothing
}

# ends_late FILE: a program that takes half a second to end by SIGTERM, and says in FILE when it has; SIGINT does nothing to it.
ends_late() {
    cat >"$1.py" <<END
import signal, sys, time
def heard(number, frame):
    time.sleep(0.5)
    open("$1", "w").write(str(number))
    sys.exit(0)
signal.signal(signal.SIGTERM, heard)
signal.signal(signal.SIGINT, signal.SIG_IGN)
open("$1.ready", "w").close()
while True: time.sleep(0.01)
END
}

# A shell that gets SIGTERM ends, and its children go on.
@test "--duration, and what the command started: all are told to end, and waited for" {
    ends_late child
    ends_late orphan
    for seconds in 1.5 6 30; do # until they have begun by then
        rm -f ./*.ready child orphan
        run --separate-stderr perfjit record --runtime none --duration $seconds sh -c '(python3 orphan.py >/dev/null 2>&1 &); python3 child.py; :'
        [ ! -e child.ready ] || [ ! -e orphan.ready ] || break
    done
    exits 0
    [ "$(cat child orphan)" = 1515 ] || complain "$stderr"
    [[ $stderr != *"still run"* ]] || complain "$stderr"
    left_nothing
}

# bats test_tags=all
@test "Ctrl-C, and a child that does nothing about it: after five seconds it is told to end, and waited for" {
    ends_late child
    on_terminal '\x03' child.ready "$BUILD/perfjit" record --runtime none sh -c 'python3 child.py; :'
    exits 0
    [ "$(cat child)" = 15 ] || complain "$output"
    [[ $output != *"still run"* ]] || complain "$output"
    left_nothing
}

@test "what has a session of its own goes on, and that is told" {
    ends_late child
    ends_late daemon
    for seconds in 1.5 6 30; do
        [ ! -s pid ] || kill -9 "$(cat pid)"
        rm -f ./*.ready child pid
        run --separate-stderr perfjit record --runtime none --duration $seconds \
            sh -c 'setsid sh -c "echo \$\$ >pid; exec python3 daemon.py" >/dev/null 2>&1 & python3 child.py; :'
        [ ! -e child.ready ] || [ ! -e daemon.ready ] || break
    done
    exits 0
    says "still run"
    [ "$(cat child)" = 15 ] && [ ! -e daemon ]
    kill -9 "$(cat pid)"
}

# Processes that the terminal's shell started beside perfjit have the same process group as the command.
@test "what is no process of the run is told nothing" {
    ends_late child
    ends_late other
    for seconds in 1.5 6 30; do
        rm -f ./*.ready child
        on_terminal '' never sh -c 'JITDUMPDIR=/tmp python3 other.py & "$0" record --runtime none --duration $1 sh -c "python3 child.py; :"
            kill -0 $! && kill -9 $! && echo "it lives"' "$BUILD/perfjit" $seconds
        [ ! -e child.ready ] || [ ! -e other.ready ] || break
    done
    [ "$(cat child)" = 15 ] || complain "$output"
    [ ! -e other ]
    [[ $output == *"it lives"* ]] || complain "$output"
}

@test "Ctrl-C on a terminal: the command's text is all that is shown there meanwhile" {
    cat >work.js <<'END'
function hot(n) { let s = 0; for (let i = 0; i < n; i++) s += (Math.sqrt(i) * i) % 7; return s; }
process.stdout.write("a prompt> ");
for (let i = 0, t = 0; i < 40; i++) t += hot(2000000);
require("fs").writeFileSync("ready", "");
setTimeout(() => {}, 60000);
END
    on_terminal '\x03' ready "$BUILD/perfjit" record node work.js
    exits 0
    [[ $output == *"a prompt> "*"node was ended by signal 2"* ]] || complain "$output"
    [[ $output != *$'\e[K'* && $output != *"samples, "* ]] || complain "$output"
    perf script -i perfjit.perf.data -F ip,sym -G 2>/dev/null | grep -c hot
    left_nothing
}

# bats test_tags=all
@test "progress: beside a process that prints elsewhere, and never that there are no samples" {
    sh -c 'while :; do :; done' >/dev/null 2>&1 &
    local busy=$!
    on_terminal '' never "$BUILD/perfjit" record -p $busy --duration 3.5
    exits 0
    [[ $output == *"perfjit: 2 s"* ]] || complain "$output"
    [[ $output != *" 0 samples"* ]] || complain "$output"
    kill $busy
    on_terminal '' never sh -c 'while :; do :; done & "$0" record -p $! --duration 2.5; kill $!' "$BUILD/perfjit"
    [[ $output != *"perfjit: 1 s"* && $output != *"perfjit: 2 s"* ]] || complain "$output"
}

@test "-p, and a process that ends before perf has begun: that is said, not what perf says then" {
    sleep 100 &
    local slept=$!
    printf '#!/bin/sh\nkill %s\nsleep 0.1\necho WARNING: Ignored open failure >&2\nexit 255\n' $slept >late
    chmod +x late
    run --separate-stderr perfjit record --perf "$PWD/late" -p $slept
    exits 1
    says "perf record could not begin: -p $slept: it has ended meanwhile"
}

@test "-p, and a process that may not be traced: it is said, where perf ends without a word" {
    printf '#!/bin/sh\nexit 255\n' >silent
    chmod +x silent
    sleep 100 &
    local slept=$!
    run --separate-stderr perfjit record --perf "$PWD/silent" -p $slept
    exits 1
    says "perf record could not begin: it ended with status 255, and says nothing"
    if [ "$(id -u)" = 0 ]; then
        chmod a+rx . .. "$BATS_RUN_TMPDIR" "$BATS_TEST_TMPDIR"
        chmod a+w . "$TMPDIR"
        run --separate-stderr setpriv --reuid 12345 --clear-groups "$BUILD/perfjit" record -e cpu-clock:u --perf "$PWD/silent" -p $slept
        exits 1
        says "-p $slept: /proc/$slept/maps: Permission denied: it is another user's"
    fi
    kill $slept
    left_nothing
}

@test "-p of several; and what a process has started already, which perf does not record with it" {
    sh -c 'while :; do :; done & echo $! >one; while :; do :; done & echo $! >two; while :; do sleep 0.01; done' >/dev/null 2>&1 3>&- &
    local parent=$! one two
    await test -s two
    one=$(cat one) two=$(cat two)
    run --separate-stderr perfjit record -p $parent,$one --duration 0.5
    kill $parent
    says " of $parent,$one run already and " " not recorded: -p $parent,$one,"
    [[ $stderr == *",$two"* ]] || complain "$stderr"
    run --separate-stderr perfjit record -g none -p $one,$two --duration 1
    kill "$one" "$two"
    exits 0
    [[ $stderr != *"not recorded"* ]] || complain "$stderr"
    perf script -i perfjit.perf.data -F pid | tr -d ' ' | sort -u | grep -qx "$one"
    perf script -i perfjit.perf.data -F pid | tr -d ' ' | sort -u | grep -qx "$two"
    for words in 1, ,1 1,x 0 1.5 -1 "1 2" 5000000; do
        run perfjit record -p "$words"
        [ "$status" = 2 ] || complain "$words: $status"
    done
}

@test "a process in another pid namespace: its dump is removed, by what was mapped; what can't be proven is told" {
    [ "$(id -u)" = 0 ] || skip "only root can make namespaces"
    echo 'function hot(n) { let s = 0; for (let i = 0; i < n; i++) s += (Math.sqrt(i) * i) % 7; return s; }
for (let i = 0, t = 0; i < 10; i++) t += hot(2000000);' >work.js
    : >jit-77.dump
    run --separate-stderr perfjit record unshare -pf --kill-child node work.js
    exits 0
    says "perfjit: left: /tmp/perf-1.map: process 1 of another pid namespace has written it, but process 1 here is another one"
    [ "$(ls -- jit-*)" = jit-77.dump ] || complain "$(ls)"
    rm -f isolate-*-1-v8.log jit-77.dump /tmp/perf-1.map
    # What lies in the run's folder goes with it.
    run --separate-stderr perfjit record unshare -pf --kill-child "$BUILD/tinyjit" --seconds 0.2 "$here/../../examples/tinyjit/demo.tj"
    exits 0
    [[ $stderr != *"left: "* ]] || complain "$stderr"
    left_nothing
    # One whose number is nobody's here.
    local free=$(($(cat /proc/sys/kernel/pid_max) - 2))
    stderr="here is another one" # at the end it may be another test's
    while [[ $stderr == *"here is another one"* ]]; do
        rm -f /tmp/perf-$free.map jit-* isolate-*
        while [ -e /proc/$free ]; do free=$((free - 1)); done
        # shellcheck disable=SC2016 # for the inner shell
        run --separate-stderr perfjit record --runtime node unshare -pf --kill-child sh -c 'echo $(($1 - 1)) >/proc/sys/kernel/ns_last_pid && node work.js; :' sh $free
        exits 0
    done
    [ ! -e /tmp/perf-$free.map ]
    [ -z "$(ls | grep -E '^(jit-|isolate-)')" ] || complain "$(ls)"
}
