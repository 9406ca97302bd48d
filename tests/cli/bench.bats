#!/usr/bin/env bats
# perfjit bench, and perfjit diff of its results: tinyjit in turns with itself and with a program that does ten times as much
# (why so much: diff.bats).
# bats file_tags=live
load helper

setup_file() {
    require_perf || return 0
    cd "$BATS_FILE_TMPDIR" || return
    printf 'fn inner(n) { var i = 0; while i < n { i = i + 1; } return i; }\nfn main() { var n = 0; while n < 600 { inner(100000); n = n + 1; } return 0; }\n' >base.tj
    mkdir more
    sed 's/n < 600 /n < 6000 /' base.tj >more/base.tj
    # By eight pairs a function has a verdict for sure; by six its q may come to just above 0.05.
    perfjit bench -q --runs 8 -o kept.bench --base "$BUILD/tinyjit --no-inline base.tj" --new "$BUILD/tinyjit --no-inline more/base.tj"
}

setup() {
    require_perf
    cd "$BATS_FILE_TMPDIR" || return
}

@test "both sides run in turns, and the one that does ten times the work is slower, wherever the bench lies" {
    [ "$(awk -F'\t' '$1 == "run" { printf "%s ", $2 }' kept.bench/bench.txt)" = "$(printf "base new new base %.0s" 1 2 3 4)" ]
    perfjit diff kept.bench >text
    grep -q '^slower: +[0-9.]* % in all, 8 against 8 runs in pairs, p 0.0[0-4][0-9]*$' text
    grep -Eq ' slower +tj::inner  base.tj$' text
    grep -Eq '^a run: [0-9.]*, then [0-9.]* ms on the clock; [0-9.]*, then [0-9.]* ms of CPU time;.* KiB of JIT code$' text
    mkdir "$BATS_TEST_TMPDIR/else"
    cp -r kept.bench "$BATS_TEST_TMPDIR/else/copy.bench"
    cd "$BATS_TEST_TMPDIR/else"
    perfjit diff copy.bench/ | cmp - "$BATS_FILE_TMPDIR/text"
    [ "$(perfjit diff --json - copy.bench// | jq -r .compared)" = copy.bench ]
    cp copy.bench/bench.txt list
    run perfjit diff --json copy.bench/bench.txt copy.bench
    [ "$status" = 1 ] && cmp list copy.bench/bench.txt
    run perfjit diff --fail-on regression:2% copy.bench
    [ "$status" = 4 ]
}

@test "what is kept of a run: its times, its samples, its JIT code; nothing else stays" {
    awk -F'\t' '$1 == "run" { for (i = 4; i <= NF; i++) { split($i, part, "="); run[part[1]] = part[2] }
                              if (run["wall_ns"] < run["cpu_ns"] * 0.8 || run["cpu_ns"] < 1e7 || run["functions"] < 2 || run["code_bytes"] < 20 ||
                                  run["samples"] < 10) { print; bad = 1 } }
                END { exit bad }' kept.bench/bench.txt
    grep -q $'^fact\tnew\tcommand\t.*tinyjit --no-inline more/base.tj$' kept.bench/bench.txt
    [ "$(ls kept.bench | wc -l)" = 17 ]
    [ -z "$(find . -name 'jit-*' -o -name '*.recording*' -o -name 'kept.bench.*')" ]
}

@test "a run that was kept is a recording to report, export and flamegraph, and the means are those of the runs" {
    local mean count
    mean=$(for run in kept.bench/base-*.run; do perfjit report -q --json "$run"; done | jq -s '[.[].total] | add / length / 1e6')
    perfjit diff kept.bench | awk -v mean="$mean" '/\(in all\)/ { exit !($1 - mean < 0.06 && mean - $1 < 0.06) }'
    perfjit export -q --format pprof -o run.pb.gz kept.bench/base-001.run
    count=$(sed -n 's/.*base-001.run.*samples=\([0-9]*\).*/\1/p' kept.bench/bench.txt)
    [ "$(perfjit export -q --format folded --weight samples kept.bench/base-001.run | awk '{ sum += $NF } END { print sum }')" = "$count" ]
    [ "$(zcat run.pb.gz | protoc --decode_raw | grep -c '^2 {')" -gt 1 ]
    perfjit flamegraph -q -o run.html kept.bench/base-001.run
    grep -q base.tj <(data run.html)
    run perfjit report kept.bench
    [ "$status" = 1 ]
    [ "$output" = "perfjit: kept.bench: is a bench, of many runs: perfjit diff kept.bench compares its sides, and each file *.run in it is a recording" ]
}

@test "two benches: the last side of one against that of the other, and one that is taken into another" {
    perfjit bench -q --runs 4 --warmup 0 -o "$BATS_TEST_TMPDIR/alone.bench" --new "$BUILD/tinyjit --no-inline base.tj"
    run perfjit diff "$BATS_TEST_TMPDIR/alone.bench"
    [ "$status" = 1 ]
    [[ "$output" == *"runs of one side alone"* ]]
    perfjit diff kept.bench "$BATS_TEST_TMPDIR/alone.bench" >text
    grep -q '^faster: -[0-9.]* % in all, 8 against 4 runs, p ' text
    ! grep -q 'two machines' text || complain "it was one"
    sed -i $'s/^\\(fact\tnew\tboot\t\\).*/\\1another/; s/^\\(fact\tnew\tcpu\t\\).*/\\1another/' "$BATS_TEST_TMPDIR/alone.bench/bench.txt"
    perfjit diff kept.bench "$BATS_TEST_TMPDIR/alone.bench" | grep -q '^warning: the sides ran on two machines (cpu .*, then another): .* tens of percent'
    perfjit bench -q --runs 4 --warmup 0 -o "$BATS_TEST_TMPDIR/both.bench" --base-dir "$BATS_TEST_TMPDIR/alone.bench" --new "$BUILD/tinyjit --no-inline more/base.tj"
    perfjit diff "$BATS_TEST_TMPDIR/both.bench" >text
    grep -q '^slower: .* 4 against 4 runs, p ' text
    grep -q '^warning: the sides ran on two machines' text
}

@test "a command that fails, that is killed, that is not there, or that is too brief: told, and nothing is written" {
    local command
    for command in 'false|ended with status 1' "sh -c 'kill -9 \$\$'|ended by signal 9" 'no-such-program-at-all|no-such-program-at-all'; do
        run perfjit bench --runs 2 -o none.bench --new "${command%|*}"
        [ "$status" = 1 ] || complain "$command: $status"
        [[ "$output" == *"${command#*|}"* ]] || complain "$command: $output"
        [ -z "$(ls -d none.bench* 2>/dev/null)" ] || complain "$command: left $(ls -d none.bench*)"
    done
    run perfjit bench -F 1 -e cpu-clock --runs 1 --warmup 0 -o none.bench --new true
    [ "$status" = 1 ]
    [[ "$output" == *"ran too briefly to be sampled"* ]]
    for command in "" "--new" "--base true" "--new true --base true --base-dir kept.bench" "--new ''" "--runs 0 --new true" "--order x --new true"; do
        run eval "perfjit bench -o none.bench $command"
        [ "$status" = 2 ] || complain "$command: $status"
    done
    run perfjit bench -o '' --new true
    [ "$status" = 2 ]
    run perfjit bench -o none.bench -F 99999999 --new true
    [ "$status" = 2 ] && [[ "$output" == *"-F is a number above 0, up to 1000000, not '99999999'"* ]] || complain "$output"
    mkdir -p mine.bench && : >mine.bench/notes
    run perfjit bench -o mine.bench --new true
    [ "$status" = 1 ] && [[ "$output" == *"is there already"* ]] && [ -e mine.bench/notes ]
}

@test "a command of two lines is two commands, as a shell has it; a line that ends is one" {
    perfjit bench -q --runs 1 --warmup 0 -o lines.bench --new "$BUILD/tinyjit --no-inline base.tj
        touch second"
    [ -e second ]
    perfjit bench -q --runs 1 --warmup 0 -o line.bench --new "$BUILD/tinyjit --no-inline base.tj
"
    perfjit export -q --format folded line.bench/new-001.run >folded
    grep -q '^tinyjit;' folded
    ! grep '^sh;' folded || complain "a shell ran it"
    printf '#!/bin/sh\nprintf "%%s|" "$@" >words\nexec "$BUILD/tinyjit" base.tj\n' >in-words
    chmod +x in-words
    perfjit bench -q --runs 1 --warmup 0 -o line.bench --new "./in-words 'a b
c' \"d'\" ''"
    [ "$(cat words)" = "$(printf "a b\nc|d'||")" ]
}

@test "what a bench leaves can be read by whom the umask lets, and takes the place of an empty directory" {
    mkdir "$BATS_TEST_TMPDIR/empty.bench"
    (umask 022 && perfjit bench -q --runs 1 --warmup 0 -o "$BATS_TEST_TMPDIR/empty.bench" --new "$BUILD/tinyjit base.tj")
    [ -z "$(find "$BATS_TEST_TMPDIR/empty.bench" ! -perm -044)" ] || complain "$(ls -l "$BATS_TEST_TMPDIR/empty.bench")"
    (umask 027 && perfjit diff -o "$BATS_TEST_TMPDIR/report" --json "$BATS_TEST_TMPDIR/json" kept.bench)
    [ "$(stat -c %a "$BATS_TEST_TMPDIR/report" "$BATS_TEST_TMPDIR/json")" = "$(printf '640\n640')" ]
    mkdir "$BATS_TEST_TMPDIR/here"
    cd "$BATS_TEST_TMPDIR/here"
    run perfjit bench --runs 1 -o . --new "touch ran"
    [ "$status" = 1 ] && [ ! -e ran ]
    [[ "$output" == *"name one in it, -o ./perfjit.bench"* ]] || complain "$output"
}

@test "a bench that another user made is not replaced, since its files would stay" {
    [ "$(id -u)" = 0 ] || skip "only root makes files for others"
    mkdir -m 777 "$BATS_TEST_TMPDIR/shared"
    chmod a+rx . .. "$BATS_RUN_TMPDIR" "$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR/.."
    cd "$BATS_TEST_TMPDIR/shared"
    cp -r "$BATS_FILE_TMPDIR/kept.bench" .
    run setpriv --reuid 12345 --regid 12345 --clear-groups "$BUILD/perfjit" bench -o kept.bench --runs 1 --new "touch ran"
    [ "$status" = 1 ] && [ ! -e ran ]
    [[ "$output" == *"kept.bench: is there already, and can't be replaced: Permission denied; name another"* ]] || complain "$output"
    [ "$(ls -A)" = kept.bench ]
}

@test "a directory with somebody's own bench.txt or .run, or a link to a bench, is not replaced" {
    local there
    mkdir own.bench installer.bench
    echo 'my notes' >own.bench/bench.txt
    cp kept.bench/bench.txt installer.bench
    printf '#!/bin/sh\n' >installer.bench/install.run
    cp -r kept.bench real.bench
    ln -s real.bench link.bench
    ln -s nowhere dangling.bench
    for there in own installer link dangling; do
        run perfjit bench --runs 1 --warmup 0 -o $there.bench --new "$BUILD/tinyjit --no-inline base.tj"
        [ "$status" = 1 ] || complain "$there: $status"
        [[ "$output" == *"$there.bench: is there already"* ]] || complain "$output"
    done
    [ "$(cat own.bench/bench.txt)" = 'my notes' ] && [ -e installer.bench/install.run ]
    [ -L link.bench ] && [ -L dangling.bench ] && cmp real.bench/bench.txt kept.bench/bench.txt
    [ -z "$(ls -d ./*.bench.* 2>/dev/null)" ]
    perfjit bench -q --runs 1 --warmup 0 -o real.bench/ --new "$BUILD/tinyjit --no-inline base.tj"
    [ "$(ls real.bench)" = "$(printf 'bench.txt\nnew-001.run')" ]
}

@test "interrupted: nothing is written, and the command has ended" {
    local bench
    sh -c 'echo $$ >bench.pid; exec "$@"' - "$BUILD/perfjit" bench -o none.bench --new 'echo $$ >command.pid; exec sleep 100' 2>said &
    bench=$!
    await test -s command.pid
    kill -TERM "$(cat bench.pid)"
    ! wait $bench || complain "it ended with 0"
    grep -q 'interrupted' said || complain "$(cat said)"
    [ -z "$(ls -d none.bench* 2>/dev/null)" ]
    ! kill -0 "$(cat command.pid)" 2>/dev/null || complain "the command still runs"
}

@test "a process that goes on behind the command is told, once for each side" {
    local told
    printf '#!/bin/sh\nsleep 1000 >/dev/null 2>&1 &\necho $! >>leftover\nexec "$@"\n' >leaves
    chmod +x leaves
    perfjit bench --runs 2 --warmup 0 -o leaves.bench --base "$BUILD/tinyjit base.tj" --new "./leaves $BUILD/tinyjit base.tj" 2>said
    # shellcheck disable=SC2046
    kill $(cat leftover)
    told=$(grep -c 'still run' said) || complain "$(cat said)"
    [ "$told" = 1 ] && grep -q "new, run 1: 1 process that it started still runs ($(head -1 leftover)): what it does from now on" said || complain "$(cat said)"
}

# Each of these is held where it is until the signal has come: perf that has been told to end, behind the command.
@test "interrupted behind the end of a command: no other run begins, and the signal is the end of the bench" {
    local bench status=0
    printf '#!/bin/sh\nperf "$@"\nstatus=$?\n[ "$1" = record ] || exit $status\n: >perf-ends\nwhile [ ! -e told ]; do sleep 0.01; done\nexit $status\n' >slow-perf
    chmod +x slow-perf
    sh -c 'echo $$ >late.pid; exec "$@"' - "$BUILD/perfjit" bench --perf ./slow-perf --runs 1 --warmup 0 -o none.bench --new "$BUILD/tinyjit base.tj" 2>said &
    bench=$!
    await test -e perf-ends
    kill -TERM "$(cat late.pid)"
    : >told
    wait $bench || status=$?
    [ "$status" = 143 ] || complain "$status: $(cat said)"
    grep -q 'interrupted (new, run 1); nothing was written' said || complain "$(cat said)"
    [ -z "$(ls -d none.bench* 2>/dev/null)" ]
}

# bats test_tags=all
@test "interrupted while a command ignores signals: it is said which process still runs" {
    local bench
    sh -c 'echo $$ >deaf.pid; exec "$@"' - "$BUILD/perfjit" bench -o none.bench --new 'trap "" TERM INT; echo $$ >deaf-command.pid; while :; do sleep 1; done' 2>said &
    bench=$!
    await test -s deaf-command.pid
    kill -TERM "$(cat deaf.pid)"
    ! wait $bench || complain "it ended with 0"
    kill -9 "$(cat deaf-command.pid)"
    grep -q "process $(cat deaf-command.pid), did not end by SIGTERM: it still runs" said || complain "$(cat said)"
    [ -z "$(ls -d none.bench* 2>/dev/null)" ]
}

@test "a bench that is cut short, of another version, without a file, or with another in its place: refused, with the place" {
    local copy=$BATS_TEST_TMPDIR/bad.bench
    refuses() { # TEXT COMMAND...: after COMMAND in a copy, TEXT is said
        rm -rf "$copy" && cp -r kept.bench "$copy"
        (cd "$copy" && "${@:2}")
        run perfjit diff "$copy"
        [ "$status" = 1 ] || complain "$*: status $status"
        [[ "$output" == *"$1"* ]] || complain "$*: $output"
    }
    refuses 'bench.txt: can'"'"'t read it' rm bench.txt
    refuses 'bench.txt:43: it is cut short' sed -i '$d' bench.txt
    refuses 'bench.txt:1: version 2; this perfjit reads version 1' sed -i '1s/1$/2/' bench.txt
    refuses 'bench.txt:30: a run is of base or new' sed -i '30s|base-...\.run|../base|;30s|new-...\.run|../base|' bench.txt
    refuses 'base-001.run is the file of two runs' sed -i 's/base-002/base-001/' bench.txt
    refuses 'is there twice on one side' ln -f base-001.run base-002.run
    refuses 'new-003.run: can'"'"'t read it: No such file' rm new-003.run
    refuses 'new-003.run: its body is cut short' truncate -s -9 new-003.run
    refuses 'new-003.run: has 3 bytes' truncate -s 3 new-003.run
    refuses 'byte 8: version 4' sh -c "printf '\\004' | dd of=new-003.run bs=1 seek=8 conv=notrunc status=none"
    refuses 'is no run that perfjit bench has kept' cp bench.txt new-003.run
    refuses 'new-003.run: can'"'"'t read it' sh -c 'ln -sf /etc/passwd new-003.run'
}

# This holds whatever else the machine does: the load is there in the one, and the other's runs had nothing beside them.
@test "a load beside the runs of one side alone is warned of; beside those of both it is not" {
    local loads=() load
    # On each processor, or the run and the load might have one, and the other would be idle.
    for load in $(seq "$(nproc)"); do
        sh -c 'while :; do :; done' &
        loads+=($!)
    done
    perfjit bench -q --runs 5 -o "$BATS_TEST_TMPDIR/loaded.bench" --new "$BUILD/tinyjit --no-inline base.tj"
    perfjit bench --runs 1 --repeats 2 -o "$BATS_TEST_TMPDIR/again.bench" --new "$BUILD/tinyjit --no-inline more/base.tj" 2>said
    kill "${loads[@]}"
    wait "${loads[@]}" || true
    grep -q 'other work on the machine disturbed [12] runs\?, which ran again' said || complain "$(cat said)"
    [ "$(grep -c ^run "$BATS_TEST_TMPDIR/again.bench/bench.txt")" = 1 ]
    grep -q 'turn=[23]' "$BATS_TEST_TMPDIR/again.bench/bench.txt"
    cp -r "$BATS_TEST_TMPDIR/loaded.bench" "$BATS_TEST_TMPDIR/quiet.bench"
    sed -i 's/beside_ns=[0-9]*/beside_ns=0/' "$BATS_TEST_TMPDIR/quiet.bench/bench.txt"
    perfjit diff "$BATS_TEST_TMPDIR/loaded.bench" "$BATS_TEST_TMPDIR/quiet.bench" >text
    grep -q '^warning: other work on the machine took [0-9.]* processors during the base' text || complain "$(cat text)"
    cp -r "$BATS_TEST_TMPDIR/loaded.bench" "$BATS_TEST_TMPDIR/copy.bench"
    perfjit diff "$BATS_TEST_TMPDIR/loaded.bench" "$BATS_TEST_TMPDIR/copy.bench" >text
    grep -q ' 5 against 5 runs' text
    ! grep '^warning' text || complain "it is the same"
}

# bats test_tags=all
@test "ten and ten runs of node take less than 2 MiB, and are compared within a second where there is no node" {
    require_root
    local root=$BATS_TEST_TMPDIR/root library
    cat >work.js <<'END'
function hot(n) { let s = 0; for (let i = 0; i < n; i++) s += (Math.sqrt(i) * i) % 7; return s; }
let all = 0; for (let i = 0; i < 300; i++) all += hot(20000);
END
    perfjit bench --warmup 0 -o node.bench --base 'node work.js' --new 'node work.js' 2>said
    [ "$(grep -c '^perfjit: node: ' said)" -eq 1 ] || complain "$(cat said)"
    [ "$(ls node.bench/*.run | wc -l)" = 20 ]
    [ "$(du -sk node.bench | cut -f1)" -le 2048 ]
    mkdir -p "$root/dev"
    cp -r node.bench "$BUILD/perfjit" "$root"
    for library in $(ldd "$BUILD/perfjit" | grep -o '/[^ ]*'); do
        mkdir -p "$root${library%/*}"
        cp "$library" "$root$library"
    done
    perfjit diff -n 0 node.bench >text
    timeout 1 chroot "$root" /perfjit diff -n 0 /node.bench >elsewhere
    cmp text elsewhere
    grep -q ' hot  work.js$' text
}
