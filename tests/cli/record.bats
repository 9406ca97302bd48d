#!/usr/bin/env bats
# perfjit record: from a command to a recording of it that names JIT code, and nothing else that is left.
# bats file_tags=live
load helper

setup_file() {
    cd "$BATS_FILE_TMPDIR" || return
    cat >work.js <<'END'
function hot(n) { let s = 0; for (let i = 0; i < n; i++) s += (Math.sqrt(i) * i) % 7; return s; }
for (let i = 0, t = 0; i < 20; i++) t += hot(2000000);
END
    cat >work.php <<'END'
<?php
function hot($n) { $s = 0; for ($i = 0; $i < $n; $i++) $s = ($s + $i * 3) & 65535; return $s; }
for ($i = 0; $i < 4000; $i++) hot(100000);
END
    cat >Work.java <<'END'
public class Work {
    static long hot(int n) { long s = 0; for (int i = 0; i < n; i++) s = (s + i * 3L) & 65535; return s; }
    public static void main(String[] a) { for (int i = 0; i < 6000; i++) hot(100000); }
}
END
    cat >work.ll <<'END'
define i64 @hot(i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%j, %loop]
  %s = phi i64 [0, %entry], [%t, %loop]
  %m = mul i64 %i, %i
  %t = xor i64 %s, %m
  %j = add i64 %i, 1
  %c = icmp ult i64 %j, %n
  br i1 %c, label %loop, label %end
end:
  ret i64 %t
}
define i32 @main() {
  %a = call i64 @hot(i64 600000000)
  %b = trunc i64 %a to i32
  %c = and i32 %b, 0
  ret i32 %c
}
END
    printf 'fn hot(n) { var i = 0; while i < n { i = i + 1; } return i; }\nfn main() { var n = 0; while n < 12000 { hot(100000); n = n + 1; } return 0; }\n' >work.tj
}

setup() {
    require_perf
    mkdir "$BATS_TEST_TMPDIR/run" "$BATS_TEST_TMPDIR/tmp"
    cp "$BATS_FILE_TMPDIR"/[wW]ork.* "$BATS_TEST_TMPDIR/run"
    cd "$BATS_TEST_TMPDIR/run" || return
    export TMPDIR=$BATS_TEST_TMPDIR/tmp HOME=$BATS_TEST_TMPDIR/tmp
    ls >"$BATS_TEST_TMPDIR/before"
}

# record_it STATUS WORD...: run perfjit record, and check its files: only NAME.*, nothing in its folder, no dump or map of its
# processes.
record_it() {
    local wanted=$1 pid
    shift
    run --separate-stderr perfjit record "$@"
    exits "$wanted"
    left_nothing
}

left_nothing() {
    [ -z "$(ls -A "$TMPDIR")" ] || complain "left in TMPDIR: $(find "$TMPDIR")"
    ls | grep -vE '^(perfjit|my)\.perf\.data(\.old)?(\.dso)?$' | diff "$BATS_TEST_TMPDIR/before" - ||
        complain "the directory has other files than before"
    [ ! -e perfjit.perf.data ] || for pid in $(perf script -i perfjit.perf.data --show-task-events 2>/dev/null |
        sed -nE 's/.*PERF_RECORD_COMM.*:([0-9]+)\/[0-9]+$/\1/p' | sort -u); do
        # A file that other tests keep there may have the number of a process of this one.
        [ ! "/tmp/perf-$pid.map" -nt "$BATS_TEST_TMPDIR/before" ] && [ ! "/tmp/jit-$pid.dump" -nt "$BATS_TEST_TMPDIR/before" ] || complain "left in /tmp: $(ls /tmp/perf-$pid.map /tmp/jit-$pid.dump)"
    done
}

# share DATA NAME [OPTION...]: how many of its samples have a function of that name innermost, and how many there are.
share() {
    perf script -i "$1" -F ip,sym -G "${@:3}" 2>/dev/null | awk -v name="$2" '{ all++ } index($0, name) { found++ } END { print found + 0, all + 0 }'
}

# mostly NAME PERCENT [DATA [OPTION...]]: so many of the samples at least are in it.
mostly() {
    local found all
    read -r found all < <(share "${3:-perfjit.perf.data}" "$1" "${@:4}")
    [ "$all" -ge 20 ] && [ $((found * 100)) -ge $(($2 * all)) ] || complain "$1: $found of $all samples"
}

# ---- Runtimes ----

@test "node: its functions are named, its switches told, and nothing is left behind" {
    record_it 0 node work.js
    says "perfjit: node: NODE_OPTIONS='--perf-prof --interpreted-frames-native-stack --perf-basic-prof'" \
        "now: perfjit report perfjit.perf.data, perfjit flamegraph perfjit.perf.data, or perf report -i perfjit.perf.data"
    mostly hot 60
    [ -z "$(perf script -i perfjit.perf.data -F ip,sym,dso -G 2>/dev/null | grep -E '\[unknown\] \((//anon|\[heap\]|.*/jit-)')" ]
}

@test "node's children and workers, started by a shell" {
    cat >parent.js <<'END'
const { Worker, isMainThread } = require("worker_threads");
const { execFileSync } = require("child_process");
function inWorker(n) { let s = 0; for (let i = 0; i < n; i++) s += (Math.sqrt(i) * i) % 7; return s; }
if (!isMainThread) for (let i = 0, t = 0; i < 20; i++) t += inWorker(2000000);
else new Worker(__filename).on("exit", () => execFileSync(process.execPath, ["work.js"]));
END
    echo parent.js >>"$BATS_TEST_TMPDIR/before" && sort -o "$BATS_TEST_TMPDIR/before" "$BATS_TEST_TMPDIR/before"
    record_it 0 -v -- sh -c 'node parent.js; :'
    says "perfjit: sh: is no runtime that is known; it may start some: the switches of node, " "java"
    mostly inWorker 20
    mostly hot 20
}

@test "wrappers are seen through: of env, nice, timeout and others, whatever they take away" {
    sed -i 's/i < 20/i < 12/' work.js
    for words in "env -u NODE_OPTIONS -i PATH=$PATH HOME=$HOME" "nice -n 1 timeout -k 3 300" "nohup setsid -w stdbuf -oL /usr/bin/env A=1"; do
        record_it 0 -- $words node work.js
        says "node: NODE_OPTIONS='--perf-prof"
        mostly hot 40
    done
    NODE_OPTIONS=--stack-trace-limit=1 record_it 0 -- env NODE_OPTIONS=--stack-trace-limit=7 node -p Error.stackTraceLimit
    [ "$output" = 7 ] || complain "$output"
    record_it 0 -- env A=1 lli-14 work.ll
    says "perfjit: lli: -jit-kind=mcjit"
    mostly hot 80
}

# empty_dump NAME: a program that maps a dump of its own, and leaves nothing in it.
empty_dump() {
    cat >"$1" <<'END'
import mmap, os
with open("%s/jit-%d.dump" % (os.environ["TMPDIR"], os.getpid()), "w+b") as dump:
    dump.truncate(mmap.PAGESIZE)
    mmap.mmap(dump.fileno(), mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_EXEC)
    dump.truncate(0)
sum(i * i for i in range(2000000))
END
    echo "$1" >>"$BATS_TEST_TMPDIR/before" && sort -o "$BATS_TEST_TMPDIR/before" "$BATS_TEST_TMPDIR/before"
}

# silent_answers: whoever reads perfjit.perf.data hears nothing of dumps.
silent_answers() {
    for command in report "export --format folded -o out.folded" "flamegraph -o out.html" check; do
        # shellcheck disable=SC2086 # an option and its value
        run --separate-stderr perfjit $command perfjit.perf.data
        exits 0
        [[ $stderr != *dump* ]] && [[ $output != *"dump missing"* ]] || complain "$command: $stderr"
    done
    rm out.folded out.html
}

@test "a dump that nothing was written to is a loss only where samples are unknown, and is told once" {
    empty_dump empty.py
    record_it 0 -- sh -c 'python3 empty.py; "$BUILD/tinyjit" work.tj'
    says "1 x dump cut short" "nothing of it was written: its process ended" "with all of it in its buffer"
    silent_answers
    mostly hot 20
    record_it 0 -g fp -- python3 empty.py
    says "nothing of it was written: its process ended"
    silent_answers
}

@test "a child that outlives the command is told" {
    record_it 0 -- sh -c 'sleep 1000 >/dev/null 2>&1 & echo $! >"$BATS_TEST_TMPDIR/child"; node work.js'
    kill "$(cat "$BATS_TEST_TMPDIR/child")"
    says "1 process that it started still runs ("
}

@test "php: the JIT is on, and the user's own settings stand" {
    record_it 0 php8.2 work.php
    says "perfjit: php: opcache.enable=1 " "opcache.jit=tracing opcache.jit_debug=0x30 PHP_INI_SCAN_DIR=$TMPDIR/perfjit-"
    mostly hot 60
    mkdir conf && echo 'opcache.jit_buffer_size=8M' >conf/own.ini && echo 'opcache.jit_debug=0' >>conf/own.ini
    php8.2 -r 'echo php_ini_scanned_files();' | tr -d '\n' | tr , '\n' | grep opcache.ini | xargs cat >>conf/own.ini
    PHP_INI_SCAN_DIR=$PWD/conf perfjit record -q php8.2 -r 'echo ini_get("opcache.jit_buffer_size"), ini_get("opcache.jit_debug");' >said
    grep -qx 8M0x30 said
}

@test "java: its functions are named by the map that it writes at its end" {
    javac -d . Work.java
    echo Work.class >>"$BATS_TEST_TMPDIR/before" && sort -o "$BATS_TEST_TMPDIR/before" "$BATS_TEST_TMPDIR/before"
    record_it 0 java -cp . Work
    says "perfjit: java: JAVA_TOOL_OPTIONS='-XX:+IgnoreUnrecognizedVMOptions " "(JDK 17 or later)"
    mostly hot 40
}

@test "lli: a word behind its name; its dump is in the run's folder" {
    record_it 0 lli-14 work.ll
    says "perfjit: lli: -jit-kind=mcjit"
    mostly hot 60
}

@test "what links libjitdump logs without a word about it" {
    record_it 0 --runtime none "$BUILD/tinyjit" work.tj
    mostly hot 60
    [[ $stderr != *"is no runtime"* ]]
}

@test "the user's own variables stay, and what they say already is not said twice" {
    NODE_OPTIONS="--stack-trace-limit=7 --perf-prof" PERFJIT=map,unmapped record_it 0 -v sh -c 'echo "$NODE_OPTIONS $PERFJIT" >&2'
    says "--interpreted-frames-native-stack --perf-basic-prof --stack-trace-limit=7 --perf-prof map,unmapped,dump"
    record_it 0 --runtime none sh -c 'echo "have ${NODE_OPTIONS-none}" >&2'
    says "have none"
    record_it 0 --runtime php sh -c 'echo "have ${NODE_OPTIONS-none} ${PHP_INI_SCAN_DIR+ini}" >&2'
    says "have none ini"
}

# ---- Stacks, events, and where it goes ----

@test "-g none, fp, dwarf; -o NAME; -e EVENT; -F" {
    record_it 0 -g none -F 499 -e task-clock -o my "$BUILD/tinyjit" work.tj
    mostly hot 60 my.perf.data
    [ "$(perf script -i my.perf.data -F comm,ip | grep -c '^$')" = 0 ]
    perf evlist -v -i my.perf.data | grep -E 'task-clock.*sample_freq(=|:) ?499|sample_freq \}: 499'
    record_it 0 -g dwarf node work.js
    says "stacks unwound" "--perf-prof-unwinding-info"
    mostly hot 60
    record_it 0 -g dwarf,32768 --runtime none "$BUILD/tinyjit" work.tj
    says "stacks unwound"
}

@test "a process that runs already, and --duration" {
    sed -i 's/n < 12000/n < 120000/' work.tj
    PERFJIT=dump JITDUMPDIR=$BATS_TEST_TMPDIR "$BUILD/tinyjit" work.tj >/dev/null &
    pid=$!
    await sh -c "grep -q jit-$pid.dump /proc/$pid/maps"
    run --separate-stderr perfjit record -p $pid --duration 0.5
    exits 0
    mostly hot 60
    kill $pid
    wait $pid || true
    ls "$BATS_TEST_TMPDIR"/jitdump-*/jit-$pid.dump # it is not the run's
}

@test "-p PID sleep SECONDS, as for perf record, is --duration; other commands are not started" {
    python3 -c 'while True: pass' &
    pid=$!
    record_it 0 -p $pid sleep 0.3
    record_it 0 -p $pid -- sleep 0.3
    record_it 2 -p $pid touch started
    says "with -p no command is started: --duration SECONDS ends the recording"
    [ ! -e started ]
    kill $pid
}

@test "--duration ends the command" {
    record_it 0 --duration 0.5 -- python3 -c 'import time; time.sleep(60); print("never")'
    [ -z "$output" ]
}

@test "--keep: dumps, maps and perf's own recording stay" {
    run --separate-stderr perfjit record --keep node work.js
    exits 0
    ls perfjit.recording jit-*.dump
    perfjit check >text # the map is there, but most names are the dump's
    ! grep -A 2 "processes with JIT code" text || complain "$(cat text)"
    grep "injected already" text || complain "$(cat text)"
    rm -f /tmp/perf-"$(ls jit-*.dump | tr -dc 0-9)".map
    "$BUILD/perfjit" inject -q -i perfjit.recording -o again.data
    says "kept: perfjit.recording"
    rm -r "$TMPDIR"/perfjit-*
}

# ---- Ends ----

@test "the command's status: told, and passed on with --exit-status" {
    record_it 0 --runtime none sh -c 'exit 7'
    says "sh ended with status 7"
    record_it 7 --exit-status --runtime none sh -c 'exit 7'
    record_it 139 --exit-status --runtime none sh -c 'ulimit -c 0; kill -SEGV $$'
    says "sh was ended by signal 11"
}

# V8's perf map has what its dump has lost: nothing stays unknown, but by chance.
@test "a command that is killed: what it logged is there, and status 0 if that is all that ran" {
    run --separate-stderr perfjit record bash -c 'node work.js & pid=$!; until [ -s jit-$pid.dump ]; do sleep 0.02; kill -0 $pid || exit 9; done; await_use $pid 300; kill -9 $pid; wait'
    left_nothing
    says "dump cut short"
    [[ $stderr == *"stay [unknown]"* ]] && exits 3 || exits 0
    mostly hot 20 perfjit.perf.data --comm node # the shell waits with a process for each look
    # delta is in no dump.
    run --separate-stderr perfjit record --runtime none "$BUILD/producers/quirks" dump-cut . 0.2
    exits 3
    says "dump cut short" "stay [unknown]"
}

@test "SIGINT and SIGTERM end the recording, not the result" {
    local word
    for word in INT TERM; do
        # A shell without job control has its children in the background ignore SIGINT, and so would the command.
        env --default-signal=INT "$BUILD/perfjit" record node -e "$(cat work.js); setTimeout(() => {}, 60000)" >/dev/null 2>err &
        pid=$!
        await sh -c "pgrep -P $pid perf >/dev/null && pgrep -P $pid node >/dev/null"
        node=$(pgrep -P $pid node)
        await_use "$node" 400
        kill -$word $pid
        wait $pid
        mostly hot 10 # of the 400 ms node's start is a part
        run kill -0 "$node"
        [ "$status" != 0 ]
        rm err
        left_nothing
    done
}

# ---- What stays, and what is wrong ----

@test "files of others stay: dumps, maps and logs with other pids, or from before" {
    : >jit-1.dump
    : >isolate-0x1-1-v8.log
    : >"/tmp/perf-$$.map"
    ls >"$BATS_TEST_TMPDIR/before"
    record_it 0 node work.js
    [ -e "/tmp/perf-$$.map" ]
    rm "/tmp/perf-$$.map"
}

@test "no command, a directory, no perf, an event that there is not: a line each, and nothing is made" {
    record_it 1 not-a-command
    says "not-a-command: there is no such command"
    record_it 1 ./
    says "./: is no program that can be run"
    record_it 1 ./work.js
    says "./work.js: is no program that can be run: Permission denied"
    record_it 1 --perf "$PWD/no-perf" true
    says "no-perf: can't run it: install perf (Debian: linux-perf)"
    record_it 1 -e no-such-event true
    says "perf record could not begin: " "no-such-event"
    [[ $stderr != *Usage* ]] || complain "$stderr"
    record_it 1 -p 4194303
    says "-p 4194303: there is no such process"
    record_it 1 -o no/such true
    says "no/such.recording: can't write it: No such file or directory; nothing was run; -o NAME says where"
    for words in "" "-p 1 true" "-g wrong true" "-g dwarf,7 true" "-F x true" "--runtime x true" "-o x/ true" "--duration -1 true"; do
        # shellcheck disable=SC2086 # words
        record_it 2 $words
    done
}

@test "nobody may sample: it is said why, by what the machine says of itself, and the command is not run" {
    [ "$(id -u)" = 0 ] || skip "only root can mount"
    denied() { # ERRNO, and what perf_event_paranoid is
        echo "$2" >setting
        # shellcheck disable=SC2016 # for the inner shell
        run --separate-stderr unshare --mount bash -c 'mount --bind setting /proc/sys/kernel/perf_event_paranoid &&
            exec "$BUILD/producers/denied" "$1" "$BUILD/perfjit" record touch was-run' bash "$1"
        exits 1
        [ ! -e was-run ]
        [ -z "$(ls -d perfjit* 2>/dev/null)" ]
    }
    denied 13 3
    says "perfjit: you may not sample: kernel.perf_event_paranoid is 3; as root, sysctl kernel.perf_event_paranoid=2 permits it"
    denied 1 2
    says "perfjit: you may not sample here: a container or sandbox forbids perf_event_open"
    denied 38 2
    says "perfjit: this kernel, or a sandbox, has no perf events"
    run --separate-stderr "$BUILD/producers/denied" 13 "$BUILD/perfjit" record -e cpu-clock touch was-run
    exits 1
    says "perfjit: perf record could not begin: "
    [ ! -e was-run ]
}

@test "a recording that is there already is another run's: it stays" {
    echo another >perfjit.recording
    ls >"$BATS_TEST_TMPDIR/before"
    record_it 1 --perf "$PWD/no-perf" true
    [ "$(cat perfjit.recording)" = another ]
    run --separate-stderr perfjit record --runtime none --keep true
    exits 0
    says "kept: perfjit.recording.2"
    [ "$(cat perfjit.recording)" = another ]
    [ -s perfjit.recording.2 ]
    [ ! -e perfjit.recording.3 ] && [ ! -e perfjit.recording.old ]
    mkdir dir.perf.data
    run --separate-stderr perfjit record -o dir true
    exits 1
    says "dir.perf.data: can't write it: it is a directory"
    [ ! -e dir.recording ]
}

@test "what stands in the way of the output is told before the command runs" {
    cd "$BATS_TEST_TMPDIR"
    echo mine >precious
    ln -s precious link.perf.data
    mkfifo fifo.perf.data
    cp precious file.perf.data.dso
    for name in link fifo file; do
        run --separate-stderr perfjit record -o $name -- touch ran
        exits 1
        [ ! -e ran ] || complain "$name: it ran"
    done
    says "file.perf.data.dso: is in the way of the directory for the ELF files"
    run --separate-stderr perfjit record -o "$(printf '%*s' 243 '' | tr ' ' n)" -- touch ran # NAME.recording has room
    exits 1
    says "n.perf.data: can't write it and the files beside it: File name too long"
    [ ! -e ran ] || complain "a long name: it ran"
    [ "$(cat precious file.perf.data.dso)" = $'mine\nmine' ]
    ! compgen -G '*.recording' || complain "a recording of nothing"
}

# fake_perf NAME LINES: a perf that does LINES.
fake_perf() {
    printf '#!/bin/bash\n%s\n' "$2" >"$1"
    chmod +x "$1"
}

@test "a perf that fails at once, hears no signal, or takes none: it is said soon, and nobody waits for it" {
    local begin=$SECONDS
    fake_perf gone 'echo no such luck >&2; exit 3'
    fake_perf deaf "trap '' INT TERM; echo \$\$ >$BATS_TEST_TMPDIR/deaf.pid; while :; do sleep 0.1; done"
    ls >"$BATS_TEST_TMPDIR/before"
    record_it 1 --perf "$PWD/gone" touch was-run
    says "perf record could not begin: no such luck"
    [ $((SECONDS - begin)) -lt 15 ]
    "$BUILD/perfjit" record --perf "$PWD/deaf" touch was-run 2>"$BATS_TEST_TMPDIR/said" &
    local run=$!
    until [ -s "$BATS_TEST_TMPDIR/deaf.pid" ]; do sleep 0.1; done
    kill -TERM $run
    status=0
    wait $run || status=$?
    exits 1
    grep "interrupted before perf record had begun" "$BATS_TEST_TMPDIR/said"
    run kill -0 "$(cat "$BATS_TEST_TMPDIR/deaf.pid")"
    [ "$status" != 0 ]
    left_nothing
}

@test "what nohup has ignored does not end the run" {
    (
        trap '' HUP
        exec "$BUILD/perfjit" record --runtime none sleep 1.5 2>said.txt
    ) &
    local run=$!
    until grep -q . perfjit.recording 2>/dev/null; do sleep 0.1; done
    kill -HUP $run
    wait $run
    [ -e perfjit.perf.data ]
    run grep -E "ended by signal|still runs" said.txt
    [ "$status" = 1 ]
}

@test "standard streams that are closed take nothing from the files" {
    "$BUILD/perfjit" record --runtime none true <&- >&- 2>&-
    perf script -i perfjit.perf.data >/dev/null
    run grep -a "perfjit: " perfjit.perf.data
    [ "$status" = 1 ]
}

@test "a command that does nothing: it is said, and the recording is there" {
    record_it 0 --runtime none true
    [ -e perfjit.perf.data ]
    record_it 0 --runtime none -g fp -- sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done'
    says "perfjit: no JIT code was logged: no process wrote a jitdump or a perf map"
    [[ $stderr != *recording* ]] && [[ $stderr != *--jitdump* ]] || complain "$stderr"
}

@test "the commands that it advises can be copied into a shell, whatever the output's name" {
    run --separate-stderr perfjit record --runtime none -o "it's mine" -- sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done'
    advised=${stderr##*now: }
    for command in "${advised%%,*}" "$(sed 's/.*, or //' <<<"$advised")"; do
        (eval "${command/#perfjit/\"$BUILD/perfjit\"}") >told 2>&1 || complain "$command: $(cat told)"
    done
}

# jvm WORDS: what looks like a JVM from outside, and then does WORDS.
jvm() {
    printf '%s\n' 'import mmap, os, time' 'with open(os.environ["BATS_TEST_TMPDIR"] + "/libjvm.so", "w+b") as library:' \
        '    library.truncate(mmap.PAGESIZE)' \
        '    code = mmap.mmap(library.fileno(), mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_EXEC)' "$1"
}

@test "a JVM that is killed, or goes on, has not written its perf map: how it does is said" {
    record_it 0 --runtime none -- python3 -c "$(jvm 'os.kill(os.getpid(), 9)')"
    says "no JIT code was logged: the JVM of process " " was ended without a perf map: " " Compiler.perfmap"
    # Nor is the map of an earlier process with its pid one of its own: the run leaves it, as it was there before.
    # shellcheck disable=SC2016 # for the inner shell
    record_it 0 --runtime none -- sh -c 'echo "110000000 10 elsewhere" >/tmp/perf-$$.map; touch -d 2001-01-01 /tmp/perf-$$.map; exec python3 -c "$1"' \
        sh "$(jvm 'os.kill(os.getpid(), 9)')"
    says "1 x perf map of an earlier process" "is older" " was ended without a perf map: "
    rm -f "$(sed -nE 's|^perfjit: +(/tmp/perf-[0-9]+\.map): is older.*|\1|p' <<<"$stderr")"
    # The command is ended with it.
    record_it 0 --runtime none -- sh -c 'python3 -c "$1" & until grep -q libjvm.so /proc/$!/maps; do sleep 0.01; done; kill -9 $!; wait $!; kill -9 $$' \
        sh "$(jvm 'while True: time.sleep(0.01)')"
    says " was ended without a perf map: "
    python3 -c "$(jvm 'while True: time.sleep(0.01)')" &
    pid=$!
    await grep -q libjvm.so /proc/$pid/maps
    run --separate-stderr perfjit record -p $pid --duration 0.3
    kill $pid
    exits 0
    says "the JVM of process $pid has written no perf map yet; jcmd $pid Compiler.perfmap makes it write one"
}

@test "a full disk: it is said, and what was recorded is left or gone, never half" {
    [ "$(id -u)" = 0 ] || skip "only root can mount"
    mkdir small
    # shellcheck disable=SC2016 # for the inner shell
    run --separate-stderr unshare --mount bash -c 'mount -t tmpfs -o size=64k none small && cd small && "$BUILD/perfjit" record -F max node ../work.js; echo "status $?"; ls'
    [[ $output == "status 1" ]] || complain "$output" # and no file
    says "perf record ended before the command did: " "No space left on device"
}
