#!/usr/bin/env bats
# perfjit attach, detach and record -p: a running process is asked to log its JIT code, and to stop.
# bats file_tags=live
load helper

asked=$BUILD/producers/asked
tinyjit=$here/../../examples/tinyjit

setup() {
    cd "$BATS_TEST_TMPDIR" || return
    mkdir -p dumps tmp
    export JITDUMPDIR=$PWD/dumps HOME=$PWD/tmp TMPDIR=$PWD/tmp
}

teardown() {
    cd "$BATS_TEST_TMPDIR" || return
    jobs -p >job.pids # in a pipeline it would know of none
    cat job.pids ./*.out 2>/dev/null | grep -x '[0-9]*' | xargs -r -n 1 kill -9 2>/dev/null
    wait
}

# start NAME COMMAND...: in the background, until it has printed its pid; $pid is the last one's.
start() {
    local name=$1
    shift
    "$@" >"$name.out" 2>"$name.err" 3>&- &
    await test -s "$name.out"
    pid=$(tail -1 "$name.out")
}

# serve SCRIPT [OPTION...]: tinyjit that can be asked, as $pid, once it runs.
serve() {
    PERFJIT=attach "$BUILD/tinyjit" --seconds 1000 "${@:2}" "$1" >/dev/null 2>tinyjit.err 3>&- &
    pid=$!
    await_use $pid 100
}

# start_recorder MS [OPTION...]: perfjit record -p $pid as $recorder, until the process, while perf looks at it, has used that much
# of the processors.
start_recorder() {
    local ms=$1
    shift
    env --default-signal=INT "$BUILD/perfjit" record -g none -F 5000 -p "$pid" "$@" >/dev/null 2>record.err 3>&- &
    recorder=$!
    await samples_or_ended $recorder
    await_use "$pid" "$ms"
}

# samples_or_ended RECORDER: whether its perf has opened an event, or it has ended.
samples_or_ended() {
    local perf
    kill -0 "$1" 2>/dev/null || return 0
    perf=$(pgrep -P "$1" perf) && ls -l "/proc/$perf/fd" 2>/dev/null | grep -q perf_event
}

# record_use MS [OPTION...]: the same; then Ctrl-C.
record_use() {
    start_recorder "$@"
    kill -INT $recorder
    wait $recorder
}

dumps() {
    find "$JITDUMPDIR" -name 'jit-*.dump' ! -path '*/stage/*' | sort
}

functions_in() {
    perfjit dump "$1" | grep -c CODE_LOAD
}

# judge DATA TRUTH LEAST: every sample in tinyjit's code has the name that it had.
judge() {
    local score samples right
    score=$(samples "$1" | "$BUILD/producers/truth_check" "$2")
    echo "# $score" >&3
    read -r _ samples _ right _ <<<"$score"
    [ "$samples" -ge "$3" ] || complain "only $samples samples"
    [ "$right" -eq "$samples" ] || complain "$score"
}

# ---- The whole way ----

@test "record -p: attached, recorded, detached, injected; every sample in JIT code has its name; nothing is left" {
    require_perf
    local script
    for script in demo churn; do
        serve "$tinyjit/$script.tj" --truth $script.truth
        run --separate-stderr record_use 1000 -o $script
        exits 0
        stderr=$(cat record.err)
        says "$pid: logs its JIT code to $JITDUMPDIR/jitdump-$pid/jit-$pid.dump" "functions that were alive" "$pid: has closed"
        [ -z "$(dumps)" ] || complain "left: $(dumps)"
        [ -z "$(ls "$JITDUMPDIR")" ]
        ! grep -q 'jit-.*\.dump' /proc/$pid/maps || complain "still mapped"
        kill $pid
        judge $script.perf.data $script.truth 300
    done
}

@test "attach, then perf record -p; or perf first, then attach: its samples from then on are named" {
    require_perf
    serve "$tinyjit/churn.tj" --truth truth
    perfjit attach -q $pid
    perf record -q -k mono -e cpu-clock -F 5000 -o after.data -p $pid -- sh -c '>begun; until [ -e enough ]; do sleep 0.1; done' &
    perf=$!
    await test -e begun # the command that perf runs begins when perf records
    await_use $pid 700
    : >enough
    wait $perf
    rm begun enough
    perfjit detach -q $pid
    perf record -q -k mono -e cpu-clock -F 5000 -o before.data -p $pid -- sh -c '>begun; until [ -e enough ]; do sleep 0.1; done' &
    perf=$!
    await test -e begun
    await_use $pid 400
    perfjit attach -q $pid
    attached=$(python3 -c 'import time; print("%.9f" % time.clock_gettime(time.CLOCK_MONOTONIC))')
    await_use $pid 400
    : >enough
    wait $perf
    perfjit detach -q $pid
    kill $pid
    perfjit inject -q -i after.data -o after.jit.data
    judge after.jit.data truth 300
    perfjit inject -q -i before.data -o before.jit.data
    samples before.jit.data >all.samples
    awk -v from="$attached" '{ time = $1; sub(":", "", time) } time + 0 >= from + 0' all.samples >late.samples
    read -r _ count _ right _ < <("$BUILD/producers/truth_check" truth <late.samples)
    [ "$count" -ge 100 ] && [ "$count" = "$right" ] || complain "$right of $count"
    read -r _ count _ right _ < <("$BUILD/producers/truth_check" truth <all.samples 2>/dev/null)
    [ "$right" -lt "$count" ] || complain "samples from before were named as well: the test shows nothing"
}

# bats test_tags=all
@test "on and off ten times under load, 20 000 functions alive: every sample named" {
    require_perf
    awk -v n=20000 'BEGIN {
        for (i = 0; i < n; i++) printf "fn f%d(x) { var i = 0; while i < 40 { x = x * 3 + %d; i = i + 1; } return x; }\n", i, i
        for (g = 0; g < n / 100; g++) { printf "fn g%d(s) {", g
            for (i = g * 100; i < g * 100 + 100; i++) printf " s = s + f%d(s);", i
            print " return s; }" }
        printf "fn main() { var s = 0;"
        for (g = 0; g < n / 100; g++) printf " s = s + g%d(s);", g
        print " return s; }" }' >server.tj
    local round
    serve server.tj --no-inline --truth truth
    await_use $pid 20000 # until its collector has done with the first tier
    for round in 1 2 3 4 5 6 7 8 9 10; do
        # Until it is asked, which a slow machine takes longer for than the process for its time.
        start_recorder 0 -o run
        await grep -q 'functions that were alive' record.err
        await_use "$pid" 1000
        kill -INT $recorder
        wait $recorder
        echo "# $(grep -o '[0-9]* functions that were alive.*' record.err)" >&3
        judge run.perf.data truth 200
        rm -r run.perf.data*
    done
}

# ---- What is said ----

@test "attach and detach: what they say, once and twice" {
    start one "$asked"
    run --separate-stderr perfjit attach $pid
    exits 0
    says "$pid: logs its JIT code to $JITDUMPDIR/jitdump-$pid/jit-$pid.dump, from now on: 100 functions that were alive"
    run --separate-stderr perfjit attach $pid
    exits 0
    says "$pid: is attached already: it logs to $JITDUMPDIR/jitdump-$pid/jit-$pid.dump"
    run --separate-stderr perfjit detach $pid
    exits 0
    says "$pid: has closed $JITDUMPDIR/jitdump-$pid/jit-$pid.dump"
    [ "$(functions_in "$(dumps)")" = 100 ]
    perfjit check "$(dumps)" | grep 'sound: nothing would be lost'
    run --separate-stderr perfjit detach $pid
    exits 0
    says "$pid: is not attached"
    run --separate-stderr perfjit attach -q $pid # again: a file of its own
    exits 0
    [ -z "$stderr" ]
    [ "$(dumps | wc -l)" = 2 ]
    run --separate-stderr perfjit detach -q $pid
    [ -z "$stderr" ]
    mkdir elsewhere
    run --separate-stderr perfjit attach --dir "$PWD/elsewhere" $pid
    exits 0
    [ -e elsewhere/jitdump-$pid/jit-$pid.dump ]
}

@test "two JITs in one process: both are asked" {
    start two "$asked" two
    run --separate-stderr perfjit attach $pid
    exits 0
    [ "$(dumps | wc -l)" = 2 ]
    run --separate-stderr perfjit detach $pid
    exits 0
    [ "$(grep -c 'has closed' <<<"$stderr")" = 2 ]
    [ "$(dumps | while read -r dump; do perfjit dump "$dump"; done | grep -cE 'CODE_LOAD.*(asked|other)_[0-9]+')" = 200 ]
}

@test "a parent and its child, which share a page at first: each is asked by itself" {
    start both "$asked" fork
    await sh -c '[ "$(wc -l <both.out)" = 2 ]'
    local pids round
    mapfile -t pids <both.out
    for round in 1 2; do # the one that came second first, and then the other
        run --separate-stderr perfjit attach "${pids[2 - round]}"
        exits 0
        [ "$(dumps | wc -l)" = $round ]
        [ "$(dumps | grep -c "jit-${pids[2 - round]}.dump")" = 1 ]
    done
    for round in 0 1; do
        run --separate-stderr perfjit detach "${pids[round]}"
        exits 0
        says "has closed"
    done
}

# ---- Who can't be asked ----

@test "no process, no libjitdump, no switch, PERFJIT=dump only" {
    run --separate-stderr perfjit attach 4194000
    exits 1
    says "4194000: there is no such process"
    sleep 1000 3>&- &
    run --separate-stderr perfjit attach $!
    exits 1
    says "$!: can't be asked: it has no libjitdump, or was not started with PERFJIT=attach"
    "$BUILD/tinyjit" --seconds 1000 "$tinyjit/demo.tj" >/dev/null 3>&- &
    run --separate-stderr perfjit detach $!
    exits 1
    says "$!: can't be asked"
    PERFJIT=dump "$BUILD/tinyjit" --seconds 1000 "$tinyjit/demo.tj" >/dev/null 3>&- &
    await grep -q "jit-$!.dump" /proc/$!/maps
    run --separate-stderr perfjit attach $!
    exits 1
    says "$!: logs its JIT code already, to $JITDUMPDIR/jitdump-$!/jit-$!.dump, and takes no requests"
}

@test "wrong usage" {
    local words
    for words in '' '1 2' 'x' '-1' '--dir relative 1' '--timeout x 1'; do
        # shellcheck disable=SC2086
        run --separate-stderr perfjit attach $words
        exits 2
    done
    run --separate-stderr perfjit detach --dir /tmp 1
    exits 2
}

@test "not polled in time: withdrawn; a dump that is to be closed is closed later" {
    start mute "$asked" mute
    run --separate-stderr perfjit attach --timeout 0.3 $pid
    exits 1
    says "$pid: its runtime has not polled for 0.3 s" "is withdrawn"
    start one "$asked"
    kill -STOP $pid
    run --separate-stderr perfjit attach --timeout 0.3 $pid
    exits 1
    kill -CONT $pid
    await_use $pid 100
    [ -z "$(dumps)" ]
    perfjit attach -q $pid
    kill -STOP $pid
    run --separate-stderr perfjit detach --timeout 0.3 $pid
    exits 1
    says "has not polled for 0.3 s" "it closes its dump as soon as it does"
    kill -CONT $pid
    await sh -c "! grep -q jit-$pid.dump /proc/$pid/maps"
    perfjit check "$(dumps)" | grep 'sound: nothing would be lost'
}

@test "withdrawn while the dump is being opened: it is opened, and record -p ends it and removes it" {
    local end asker status
    require_perf
    cat >slow.c <<'EOF'
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
int mkdir(const char *path, mode_t mode)
{
    syscall(SYS_mkdir, "opening", 0700);
    usleep(700000);
    return (int)syscall(SYS_mkdir, path, mode);
}
EOF
    gcc -shared -fPIC -o slow.so slow.c
    start slow env LD_PRELOAD="$PWD/slow.so" "$asked"
    for end in INT TERM HUP; do
        rm -rf opening # it opens two directories
        env --default-signal=INT "$BUILD/perfjit" record -g none -o run -p $pid >/dev/null 2>record.err 3>&- &
        asker=$!
        await test -d opening
        kill -$end $asker
        status=0
        wait $asker || status=$?
        [ "$status" != 0 ] || complain "status 0"
        grep -q "$pid: has closed" record.err || complain "$end: $(cat record.err)"
        ! grep -q jit-$pid.dump /proc/$pid/maps || complain "$end: it still logs"
        [ -z "$(find dumps -mindepth 1)" ] || complain "$end: $(find dumps)"
    done
    run --separate-stderr perfjit attach --timeout 0.2 $pid # longer than that, once it has begun
    exits 0
    says "$pid: logs its JIT code to"
}

@test "a process that ends while it is asked" {
    start mute "$asked" mute
    "$BUILD/perfjit" attach --timeout 1000 $pid 2>attach.err 3>&- &
    asker=$!
    await sh -c "ls -l /proc/$asker/fd 2>/dev/null | grep -q perfjit-attach" # it has the page, and waits
    kill -9 $pid
    wait $asker && complain "status 0"
    grep -q "$pid: has ended meanwhile" attach.err || complain "$(cat attach.err)"
}

@test "a directory that is not there" {
    start one "$asked"
    run --separate-stderr perfjit attach --dir "$PWD/missing" $pid
    exits 1
    says "$pid: can't open a dump: $PWD/missing/jitdump-$pid" "No such file or directory" "--dir names another directory"
    perfjit attach -q $pid
}

# On hardened servers /tmp is noexec, and /var/tmp, too.  A recorder removes its dump there as well.
@test "a place that is noexec, which nobody has named: the dump goes where it can be mapped" {
    require_root
    cat >try.sh <<'END'
set -e
mount -t tmpfs none /mnt
mkdir /mnt/here
cp "$BUILD/perfjit" "$BUILD/producers/asked" /mnt
mount -t tmpfs none /var/tmp
mount -o bind /tmp /tmp
mount -o remount,bind,noexec /tmp
unset JITDUMPDIR TMPDIR
cd /mnt/here
exec 9<>/mnt/pid
../asked one >&9 9>&- 3>&- &
until [ -s ../pid ]; do sleep 0.01; done
pid=$!
trap 'kill $pid' EXIT
attached() {
    ../perfjit attach "$@" $pid
    ../perfjit detach -q $pid
    rm -rf {/var/tmp,/mnt/here}/jitdump-*
}
attached
mount -o remount,bind,noexec /var/tmp
attached
if ../perfjit attach --dir /var/tmp $pid; then exit 9; fi
../perfjit record -q -p $pid -F 1000 -g none --duration 0.3 -o x
ls
../perfjit report -q x.perf.data | grep -o asked_ | uniq
cd /tmp
if ../mnt/perfjit attach $pid; then exit 9; fi
END
    run --separate-stderr unshare --mount bash try.sh
    exits 0
    says "logs its JIT code to /var/tmp/jitdump-" "logs its JIT code to /mnt/here/jitdump-" \
        "can't open a dump: /var/tmp/jitdump-" "can't open a dump: /tmp/jitdump-"
    [ "$(grep -c 'mounted noexec' <<<"$stderr")" = 2 ]
    [ "$output" = $'x.perf.data\nx.perf.data.dso\nasked_' ] || complain "$output"
}

# ---- Whose it is ----

# The place where an ordinary user finds the programs.
public() {
    [ "$(id -u)" = 0 ] || skip "only root can be somebody else"
    mkdir -p bin && cp "$BUILD/perfjit" "$asked" bin/
    chmod 755 . .. "$BATS_RUN_TMPDIR" bin bin/*
    chmod 1777 dumps
}

as_user() {
    setpriv --reuid 12345 --regid 12345 --clear-groups "$@"
}

@test "the same user and root can ask, another user can't" {
    public
    start one as_user "$PWD/bin/asked"
    run --separate-stderr setpriv --reuid 12346 --regid 12346 --clear-groups bin/perfjit attach $pid
    exits 1
    says "$pid: is of user 12345" "only that user and root can send it requests"
    run --separate-stderr as_user bin/perfjit attach $pid
    exits 0
    run --separate-stderr bin/perfjit detach $pid # root
    exits 0
    start two "$asked"
    run --separate-stderr as_user bin/perfjit attach $pid
    exits 1
    says "$pid: is of user 0 (root)"
    [ "$(dumps | wc -l)" = 1 ]
}

@test "a set-user-ID program can't be asked, whatever it says itself" {
    public
    chmod 4755 bin/asked
    start one as_user "$PWD/bin/asked"
    run --separate-stderr perfjit attach $pid
    exits 1
    says "$pid: can't be asked"
    ! grep perfjit-attach /proc/$pid/maps || complain "it has a page"
}

@test "a file of somebody else's with the page's name is not written to" {
    public
    # The mapping has the page's name, but is a file: only a memfd with seals is taken for a page.
    echo precious >"$PWD/precious"
    unshare --mount sh -c ': >"/memfd:perfjit-attach (deleted)" && mount --bind precious "/memfd:perfjit-attach (deleted)" &&
        rm -f "/memfd:x"; exec python3 -c "
import mmap, os, sys, time
fd = os.open(\"/memfd:perfjit-attach (deleted)\", os.O_RDONLY)
page = mmap.mmap(fd, 9, mmap.MAP_SHARED, mmap.PROT_READ)
print(os.getpid(), flush=True)
time.sleep(1000)"' >liar.out 3>&- &
    await test -s liar.out
    run --separate-stderr perfjit attach --timeout 1 "$(cat liar.out)"
    exits 1
    rm -f "/memfd:perfjit-attach (deleted)"
    [ "$(cat precious)" = precious ]
}

# ---- Containers ----

@test "another pid and mount namespace: attached from outside, and recorded; nothing is left there" {
    require_perf
    require_root
    unset JITDUMPDIR # /tmp, which is the container's own
    # The program goes elsewhere: the build may be below /tmp.
    unshare --pid --fork --kill-child --mount sh -c 'mount -t tmpfs none /mnt && cp "$@" /mnt && mount -t tmpfs none /tmp &&
        mount -t proc proc /proc && PERFJIT=attach exec /mnt/tinyjit --seconds 1000 --truth /dev/fd/9 /mnt/churn.tj' sh \
        "$BUILD/tinyjit" "$tinyjit/churn.tj" >/dev/null 2>container.err 9>truth 3>&- &
    await sh -c "pgrep -P $! >/dev/null"
    local inner
    inner=$(pgrep -P $!)
    await grep -q tinyjit "/proc/$inner/comm"
    await_use "$inner" 100
    run --separate-stderr perfjit attach "$inner"
    exits 0
    says "logs its JIT code to /tmp/jitdump-1/jit-1.dump" "is in a container: here its files are below /proc/$inner/root"
    [ -e "/proc/$inner/root/tmp/jitdump-1/jit-1.dump" ]
    perfjit detach -q "$inner"
    pid=$inner
    run --separate-stderr record_use 1000 -o run
    exits 0
    [ "$(ls "/proc/$inner/root/tmp")" = jitdump-1 ] # from before
    kill -STOP "$inner" # so that no line of its log is cut
    await grep -q '^State:.T' "/proc/$inner/status"
    kill -9 "$inner" # pid 1 of its namespace, which no other signal ends
    await test ! -e "/proc/$inner" # else perf looks for files in its mount namespace
    judge run.perf.data truth 300
}

# ---- record -p ----

@test "Ctrl-C, and a process that ends: record -p detaches, and injects what there is" {
    require_perf
    serve "$tinyjit/demo.tj" --truth truth
    record_use 700 -o run
    grep "$pid: has closed" record.err
    ! grep -q jit-$pid.dump /proc/$pid/maps || complain "still mapped"
    judge run.perf.data truth 100
    [ -z "$(dumps)" ]
    start_recorder 1000 -o last
    kill $pid
    wait $recorder || status=$?
    [ "${status:-0}" = 0 ] || [ "$status" = 3 ] || complain "status $status: $(cat record.err)"
    judge last.perf.data truth 100
}

@test "record -p of one that was attached before leaves it attached; --keep leaves its dump" {
    require_perf
    serve "$tinyjit/demo.tj"
    perfjit attach -q $pid
    run --separate-stderr perfjit record -p $pid --duration 0.3 -o run
    exits 0
    says "is attached already"
    grep -q jit-$pid.dump /proc/$pid/maps
    [ "$(dumps | wc -l)" = 1 ]
    perfjit detach -q $pid
    run --separate-stderr perfjit record --keep -p $pid --duration 0.3 -o run
    exits 0
    [ "$(dumps | wc -l)" = 2 ]
}
