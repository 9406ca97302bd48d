# Threads that perf knows in unusual ways: by their samples alone, or whose main thread has ended.  And what perf keeps with a thread
# besides its maps.  The program is producers/thread_turns, whose log says what ran.
load helper

turns=$BUILD/producers/thread_turns
dwarf="--call-graph dwarf,1024" seconds=0.5
[ "$RECORDINGS" = live ] || dwarf="--call-graph dwarf,512" seconds=0.25

setup() {
    require_perf
    mkdir "$BATS_TEST_TMPDIR/work"
    cd "$BATS_TEST_TMPDIR/work"
    export PERFJIT=dump JITDUMPDIR=$PWD
}

# recorded NAME OPTION... -- ARGUMENT...: record thread_turns.
recorded() {
    recording "$1" record_turns "${@:2}"
}

record_turns() {
    local options=()
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    record perf.data "${options[@]}" "$turns" "${@:2}" -s "$seconds" truth
}

# Stored recordings have no processes of other people.
own_records() {
    "$@" || return
    [ "$RECORDINGS" != anew ] || "$here/../recordings/own_records.py" perf.data
}

# injected [STATUS] [OPTION...]: where the whole machine was recorded, other programs may have left things that are lost, also between
# the first run and the second.
injected() {
    run --separate-stderr perfjit inject -i perf.data -o perf.jit.data "${@:2}"
    [ "$status" -eq "${1:-0}" ] || exits 0
    perfjit inject -q -i - -o - --dso-dir stream.dso "${@:2}" <perf.data >perf.jit.stream || [ $? -eq "${1:-0}" ]
}

tid_of() {
    awk -v label="$1" '$1 == "run" && $8 == label { print $3; exit }' truth
}

# The program's samples in DATA without their chains, as FIELDS.
leaves() {
    local options=(--pid "$(tid_of main)" -G -F "$2" --ns --no-inline)
    if [[ $1 == *.stream ]]; then
        perf script -i - "${options[@]}" <"$1"
    else
        perf script -i "$1" "${options[@]}"
    fi
}

# right LABEL...: all samples of JIT code have their right name, and there are some in the threads of each label.
right() {
    local form label
    for form in data stream; do
        leaves perf.jit.$form pid,tid,time,ip,sym | "$BUILD/producers/truth_check" -m 1 truth >score 2>disagree
        [[ $(head -1 score) =~ ^samples\ ([0-9]+)\ right\ ([0-9]+)\ wrong\ 0\ missing\ 0\ outside\ [0-9]+\ stray\ 0$ ]] ||
            complain "$form: $(cat score disagree)"
        for label in "$@"; do
            [ "$(awk -v label="$label" '$1 == label { print $3 }' score)" -ge 10 ] || complain "$label: $(cat score)"
        done
    done
}

# Samples outside the arena, with everything that a map or a thread could change.
others() {
    leaves "$1" comm,pid,tid,time,event,ip,sym,symoff,dso | awk -v page="$(sed -n 's/^# arena \(.*\)... .*/\1/p' truth)" \
        '!match($0, " " page "[0-9a-f][0-9a-f][0-9a-f] ")'
}

others_are_the_same() {
    others perf.data >before.txt
    [ "$(wc -l <before.txt)" -ge 10 ] || complain "too few other samples: $(wc -l <before.txt)"
    for form in data stream; do
        others perf.jit.$form >after.txt
        same after.txt before.txt
    done
}

# Threads, and records of tasks and of maps, in the order in which perf takes them.
events() {
    perf script -i "$1" --show-task-events --show-mmap-events --ns | grep -F PERF_RECORD_
}

# How many maps of JIT code in DATA match PATTERN in "PID/TID BEFORE|AFTER" the main thread's end.
maps_of() {
    events "$1" | awk -v pid="$(awk '$1 == "run" { print $2; exit }' truth)" -v pattern="$2" '
        index($0, "PERF_RECORD_EXIT(" pid ":" pid ")") { over = 1 }
        /PERF_RECORD_MMAP2.*\.dso\/[^ ]*jit-/ && match($0, /MMAP2 [0-9]+\/[0-9]+/) {
            if (substr($0, RSTART + 6, RLENGTH - 6) (over ? " AFTER" : " BEFORE") ~ pattern) count++
        }
        END { print count + 0 }'
}

# ---- Threads that no record introduces ----

# bats test_tags=both
@test "threads that are known by their samples alone have the same maps as the others" {
    [ "$RECORDINGS" = stored ] || { [ "$(id -u)" = 0 ] && taskset -c 0 true && [ "$(nproc)" -ge 2 ]; } ||
        skip "only root can record a CPU, and there must be another one"
    recording known-by-samples own_records record_turns -C 0 $dwarf -- -m 0
    run ! grep -F "FORK($(tid_of main):$(tid_of worker))" <(events perf.data)
    for stacks in keep unwind; do
        injected 3 --stacks $stacks
        right main worker
        others_are_the_same
    done
    # perf's own name for it.
    leaves perf.jit.data comm,tid | grep -qE "^ *:$(tid_of worker) +$(tid_of worker)" || complain "$(leaves perf.jit.data comm,tid | sort | uniq -c)"
}

# ---- A main thread that has ended ----

# ended NAME OPTION...: what comes when the main thread has ended is said of the worker.
ended() {
    recorded "$@" -- -e
    ended_right
}

# ended_right [OPTION...]: of perfjit inject.
ended_right() {
    injected 0 "$@"
    right main worker
    others_are_the_same
    local pid
    pid=$(tid_of main)
    [ "$(maps_of perf.jit.data "^$pid/$pid BEFORE")" -ge 5 ]
    [ "$(maps_of perf.jit.data "^$pid/$(tid_of worker) AFTER")" -ge 50 ]
    [ "$(maps_of perf.jit.data "^$pid/$pid AFTER")" -eq 0 ] || complain "maps for a thread that has ended: $(events perf.jit.data)"
}

# bats test_tags=both
@test "a main thread that has ended: maps are added for one that lives" {
    ended main-ended -g
}

@test "a main thread that has ended: the same with stacks, and it ends again after each reset" {
    local pid clone resets
    ended main-ended-dwarf $dwarf
    run ! grep -E '[:(]10[0-9]{8}[:)]' <(events perf.jit.data)
    ended_right --stacks keep
    pid=$(tid_of main)
    clone=$((pid | 1 << 30))
    events perf.jit.data | sed -n "/EXIT($pid:$pid)/,\$p" >after.txt
    resets=$(grep -c "FORK($clone:$clone):($pid:$(tid_of worker))" after.txt)
    [ "$resets" -ge 50 ]
    [ "$(grep -c "FORK($pid:$pid):($clone:$clone)" after.txt)" -eq "$resets" ]
    [ "$(grep -c "EXIT($pid:$pid)" after.txt)" -eq $((resets + 1)) ]
}

# late NAME OPTION...: a thread that is begun after that has its maps, in perf 7, from a new main thread.
late() {
    recorded "$@" -- -e -l
    late_right
}

late_right() {
    injected 0 "$@"
    right main worker late
    others_are_the_same
    local pid before after
    pid=$(tid_of main)
    before=$(maps_of perf.jit.data "^$pid/$pid BEFORE")
    after=$(maps_of perf.jit.data "^$pid/$(tid_of worker) AFTER")
    [ "$before" -ge 5 ] && [ "$after" -ge 50 ]
    [ "$(maps_of perf.jit.data "^$pid/$pid AFTER")" -eq $((before + after)) ] || complain "$(events perf.jit.data)"
}

# bats test_tags=both
@test "a thread that begins when the main thread has ended: all maps are added for a new main thread too" {
    late begun-late -g
}

@test "a thread that begins when the main thread has ended: the same with stacks" {
    late begun-late-dwarf $dwarf
    late_right --stacks keep
    run ! grep -E 'FORK\(([0-9]+):\1\):\(10[0-9]{8}' <(events perf.jit.data)
}

# ---- What perf keeps with a thread ----

# same_output PATTERN LINES COMMAND...: perf COMMAND says the same before and after, in LINES lines or more that match PATTERN.
same_output() {
    perf "$3" -i perf.data "${@:4}" 2>&1 | grep -v '^#' >before.txt
    perf "$3" -i perf.jit.data "${@:4}" 2>&1 | grep -v '^#' >after.txt
    [ "$(grep -c "$1" before.txt)" -ge "$2" ] || complain "perf ${*:3} says too little: $(cat before.txt)"
    same after.txt before.txt || complain "perf ${*:3}"
}

@test "namespaces stay with their threads" {
    recorded namespaces $dwarf --namespaces --
    for stacks in keep unwind; do
        injected 0 --stacks $stacks
        right main worker
        same_output thread_turns 2 report --stdio -g none --no-children -s cgroup_id,pid,comm
    done
}

# stacks_and OPTIONS TRACEPOINT...: records stacks of the timer alone, so that no record is lost.
stacks_and() {
    local tracepoint options=()
    local all=$1
    shift
    for tracepoint in "$@"; do
        options+=(-e "$tracepoint")
    done
    perf record -q -k mono -m 1024 -F 2000 $all -e cpu-clock/call-graph=dwarf,stack-size=${dwarf##*,}/ "${options[@]}" -o perf.data \
        "$turns" -s "$seconds" truth
}

# each_setting COMMAND...: with perf's unwinding, and perfjit's.
each_setting() {
    local stacks
    for stacks in keep unwind; do
        injected 3 --stacks $stacks
        run ! grep -E 'FORK.*[:(]10[0-9]{8}[:)]' <(events perf.jit.data)
        "$@"
    done
}

require_tracepoints() {
    [ "$RECORDINGS" != stored ] || return 0
    perf record -q -e sched:sched_switch -o try.data true 2>/dev/null || skip "no tracepoints here"
    rm try.data
}

# perf trace has the numbers of system calls from the kernel that runs.
# bats test_tags=live
@test "perf trace counts the same system calls" {
    require_tracepoints
    stacks_and "" raw_syscalls:sys_enter raw_syscalls:sys_exit
    each_setting same_trace
}

same_trace() {
    same_output thread_turns 10 trace
    same_output events, 2 trace -s
}

# A stored recording is made in a pid namespace, and what the scheduler's events hold are the pids outside.
# bats test_tags=live
@test "perf sched sees the same threads" {
    require_tracepoints
    stacks_and -a sched:sched_switch sched:sched_stat_runtime sched:sched_wakeup sched:sched_migrate_task
    each_setting same_sched
}

# Each takes a second or two: in make check-live all with one setting.
same_sched() {
    local what all=(latency "latency -p" timehist "timehist -s")
    [ -z "${BRIEF:-}" ] || [ "$stacks" = keep ] || all=(timehist)
    for what in "${all[@]}"; do
        same_output thread_turns 1 sched $what
    done
}
