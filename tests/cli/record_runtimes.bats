#!/usr/bin/env bats
# perfjit record: what runtimes are told that refuse what they do not know.  If a runtime is not installed, or not in that
# version, a program of its name that does the same with its switches stands for it, first in PATH.
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

@test "node where it may not write: it is said before it runs, and what to do" {
    [ "$(id -u)" = 0 ] || skip "only root can be another user"
    mkdir -m 1777 "$BATS_TEST_TMPDIR/free"
    chmod a+rwx "$TMPDIR" && chmod a+rx . .. "$BATS_RUN_TMPDIR"
    as_user() { run --separate-stderr setpriv --reuid 12345 --clear-groups "$BUILD/perfjit" record -e cpu-clock:u -o "$BATS_TEST_TMPDIR/free/my" "$@"; }
    stand_in node 'echo ran'
    as_user node work.js
    exits 0
    says "perfjit: node: can't write its dump in this directory (Permission denied)" "cd to one where it can"
    as_user --runtime none node work.js
    [[ $stderr != *"can't write"* ]]
    cd "$BATS_TEST_TMPDIR/free"
    as_user node work.js
    exits 0
    [[ $stderr != *"can't write"* ]]
}
