#!/usr/bin/env bats
# perfjit record: what runtimes are told that refuse what they do not know.  Where one is not installed, or not in that version,
# a program of its name that does the same with its switches stands for it, first in PATH.
# bats file_tags=live
load helper

setup() {
    require_perf
    mkdir "$BATS_TEST_TMPDIR/run" "$BATS_TEST_TMPDIR/tmp" "$BATS_TEST_TMPDIR/bin"
    cd "$BATS_TEST_TMPDIR/run" || return
    export TMPDIR=$BATS_TEST_TMPDIR/tmp HOME=$BATS_TEST_TMPDIR/tmp PATH=$BATS_TEST_TMPDIR/bin:$PATH
}

# stand_in NAME LINES: a program of that name that does LINES.
stand_in() {
    printf '#!/bin/sh\n%s\n' "$2" >"$BATS_TEST_TMPDIR/bin/$1"
    chmod +x "$BATS_TEST_TMPDIR/bin/$1"
}

record_it() { # STATUS WORD...
    local wanted=$1
    shift
    run --separate-stderr perfjit record "$@"
    exits "$wanted"
    [ -z "$(ls -A "$TMPDIR")" ] || complain "left in TMPDIR: $(find "$TMPDIR")"
}

# shellcheck disable=SC2016 # for the program that stands in
@test "mono: a dump where it knows that option, else a perf map; below a shell what each version takes" {
    local refuses='for word in $MONO_ENV_OPTIONS "$@"; do
            case $word in --jitdump) echo "Unknown command line option: $word" >&2; exit 1 ;; esac
        done
        echo "ran with $MONO_ENV_OPTIONS"'
    stand_in mono "$refuses"
    MONO_ENV_OPTIONS=--server record_it 0 --exit-status mono app.exe
    says "perfjit: mono: MONO_ENV_OPTIONS=--jitmap"
    [ "$output" = "ran with --server --jitmap" ] || complain "$output"
    record_it 0 --exit-status sh -c 'mono app.exe; :'
    [ "$output" = "ran with --jitmap" ] || complain "$output"
    stand_in mono 'echo "ran with $MONO_ENV_OPTIONS"'
    record_it 0 --exit-status mono app.exe
    says "perfjit: mono: MONO_ENV_OPTIONS=--jitdump"
    [ "$output" = "ran with --jitdump" ] || complain "$output"
}

@test "lli: an option that the command's own words have is not added, for it may be there once" {
    printf 'define i32 @main() {\n  ret i32 0\n}\n' >one.ll
    record_it 0 --exit-status lli-14 -jit-kind=mcjit one.ll
    says "perfjit: lli: the command's own words say what it logs"
    record_it 0 --exit-status lli-14 --jit-kind=orc one.ll
    record_it 0 --exit-status lli-14 one.ll
    says "perfjit: lli: -jit-kind=mcjit"
}

@test "where the switches change what runs, a sentence says so" {
    printf 'define i32 @main() {\n  ret i32 0\n}\n' >one.ll
    stand_in php 'echo "$PHP_INI_SCAN_DIR"'
    stand_in ruby 'echo "$RUBYOPT"'
    record_it 0 php x.php
    says "perfjit: php: PHP's JIT is off by default, and this run turns it on. --runtime none records the program as it runs without perfjit"
    [[ $output == *php-last ]] || complain "$output"
    record_it 0 ruby x.rb
    says "perfjit: ruby: YJIT is off by default, and this run turns it on."
    record_it 0 lli-14 one.ll
    says "perfjit: lli: lli uses ORC by default, and this run uses MCJIT."
    record_it 0 lli-14 -jit-kind=mcjit one.ll
    [[ $stderr != *"by default"* ]] || complain "$stderr"
    record_it 0 --runtime none php x.php
    [[ $stderr != *"by default"* && -z $output ]] || complain "$stderr"
    record_it 0 -q php x.php
    [ -z "$stderr" ] || complain "$stderr"
    record_it 0 -v sh -c :
    says "perfjit: php: PHP's JIT is off by default"
}

# make_python NAME: the one that is here under another name, with its library.
make_python() {
    cp "$(python3 -c 'import os, sys; print(os.path.realpath(sys.executable))')" "$BATS_TEST_TMPDIR/bin/$1"
    PYTHONHOME=$(python3 -c 'import sys; print(sys.prefix)')
    export PYTHONHOME
}

@test "Python below a shell, or running already: stacks are copied, and where they are not it is said" {
    make_python python3.13
    busy='import time
while time.process_time() < 0.3: pass'
    record_it 0 -- sh -c "python3.13 -c '$busy'; :"
    says "its words name Python: stacks are copied (not with -g fp)" "stacks unwound"
    record_it 0 -- setarch -R nice python3.13 -c "$busy"
    says "perfjit: python: PYTHONPERFSUPPORT=1" "stacks unwound"
    [[ $stderr != *"python ran"* ]]
    printf 'python3.13 -c "%s"\n' "$busy" >run.sh
    record_it 0 sh run.sh
    says "perfjit: python ran: its functions are seen only in copied stacks: -g dwarf"
    record_it 0 -g dwarf sh run.sh
    [[ $stderr != *"python ran"* ]]
    record_it 0 sh -c :
    [[ $stderr != *"python ran"* ]]
    python3.13 -c 'while True: pass' &
    pid=$!
    await_use $pid 100
    record_it 0 -p $pid --duration 0.5
    kill $pid
    says "perfjit: -p $pid: is python: stacks are copied" "stacks unwound"
}

# as_user USER WORD...: perfjit record as root of a command by that user, where it may not write.
as_user() {
    run --separate-stderr perfjit record -o "$BATS_TEST_TMPDIR/free/my" setpriv --reuid "$1" --regid "$1" --clear-groups "${@:2}"
}

# shellcheck disable=SC2016 # for the program that stands in
@test "node where its user may not write: its log is never in the program's output" {
    [ "$(id -u)" = 0 ] || skip "only root can be another user"
    mkdir -m 1777 "$BATS_TEST_TMPDIR/free"
    chmod a+rx . .. "$BATS_RUN_TMPDIR" "$TMPDIR"
    stand_in node 'echo "ran with $NODE_OPTIONS, $*"'
    as_user 12345 node work.js
    exits 0
    says "perfjit: node: --perf-prof --interpreted-frames-native-stack --perf-prof-path=$TMPDIR/perfjit-"
    [[ $output == "ran with , --logfile=$TMPDIR/perfjit-"*"/dumps/v8.log --perf-prof-path="*" work.js" ]] || complain "$output"
    stand_in node 'case $* in *--perf-prof-path=*) exit 9 ;; esac; echo "ran with $NODE_OPTIONS"'
    as_user 12345 node work.js
    exits 1
    says "node: user 12345 can't write in the directory where it starts (Permission denied)" "Nothing was run" "cd to a directory where it can write"
    [ -z "$output" ] || complain "$output"
    run --separate-stderr perfjit record -q setpriv --reuid 12345 --clear-groups sh -c 'node work.js; echo "$PHP_INI_SCAN_DIR"'
    exits 0
    says "perfjit: node: no switches, so its functions get no names: user 12345 can't write"
    [[ $output == "ran with "$'\n'*php-first* ]] || complain "$output"
    rm perfjit.perf.data
    as_user 12345 env -C "$BATS_TEST_TMPDIR/free" node work.js
    exits 0
    [[ $output == "ran with --perf-prof "* ]] || complain "$output"
    run --separate-stderr perfjit record --runtime none -o "$BATS_TEST_TMPDIR/free/my" setpriv --reuid 12345 --clear-groups node work.js
    exits 0
    [ "$output" = "ran with " ] || complain "$output"
}

@test "node 20 and later, by another user and where that may not write" {
    [ "$(id -u)" = 0 ] || skip "only root can be another user"
    mkdir -m 1777 "$BATS_TEST_TMPDIR/free"
    chmod a+rx . .. "$BATS_RUN_TMPDIR" "$TMPDIR"
    for node in node "$BUILD/runtimes/node_modules/.bin/node"; do
        command -v "$node" || continue
        as_user 65534 "$node" -e 'console.log("one"); for (let i = 0, s = 0; i < 1e8; i++) s += i % 7; console.log("two")'
        [ "$status" = 1 ] || exits 0
        [ -z "$output" ] || [ "$output" = one$'\n'two ] || complain "$output"
    done
}

@test "earlier results become NAME.perf.data.old, and what they name is found there" {
    local first
    record_it 0 "$BUILD/tinyjit" "$BATS_TEST_DIRNAME/../../examples/tinyjit/demo.tj"
    first=$(perf script -i perfjit.perf.data -F ip,sym -G | sort | md5sum)
    for again in 1 2 3; do
        record_it 0 node -e "(function hot() { for (let i = 0, s = 0; i < 1e7 * $again; i++) s += i % 7; })()"
        [ "$(perf script -i perfjit.perf.data.old -F ip,sym -G | sort | md5sum)" = "$first" ]
        first=$(perf script -i perfjit.perf.data -F ip,sym -G | sort | md5sum)
        # Equal code has equal files, which need no link.
        [ "$(find . -type l | wc -l)" -le 1 ] && [ "$(find . -name 'jit-*.so' | wc -l)" = 2 ] || complain "$(find .)"
    done
    rm -r perfjit.perf.data.old && mkdir perfjit.perf.data.old
    run --separate-stderr perfjit record true
    exits 1
    says "perfjit.perf.data.old: can't keep the earlier result there: Is a directory"
}
