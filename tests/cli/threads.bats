# Threads that perf knows by their samples alone.  The program is producers/thread_turns, whose log says what ran.
load helper

turns=$BUILD/producers/thread_turns
dwarf="--call-graph dwarf,1024"

setup() {
    require_perf
    mkdir "$BATS_TEST_TMPDIR/work"
    cd "$BATS_TEST_TMPDIR/work"
    export PERFJIT=dump JITDUMPDIR=$PWD
}

# recorded OPTION... -- ARGUMENT...: record thread_turns.
recorded() {
    local options=()
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    record perf.data "${options[@]}" "$turns" "${@:2}" truth
}

injected() {
    run --separate-stderr perfjit inject -i perf.data -o perf.jit.data
    exits 0
    perfjit inject -q -i - -o - --dso-dir stream.dso <perf.data >perf.jit.stream
}

# The samples of DATA without their chains, as FIELDS.
leaves() {
    if [[ $1 == *.stream ]]; then
        perf script -i - -G -F "$2" --ns --no-inline <"$1"
    else
        perf script -i "$1" -G -F "$2" --ns --no-inline
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

tid_of() {
    awk -v label="$1" '$1 == "run" && $8 == label { print $3; exit }' truth
}

# ---- Threads that no record introduces ----

@test "threads that are known by their samples alone have the same maps as the others" {
    [ "$(id -u)" = 0 ] && [ "$(nproc)" -ge 2 ] || skip "only root can record a CPU, and there must be another one"
    recorded -C 0 $dwarf -- -m 0 -s 0.5
    run ! grep -F "FORK($(tid_of main):$(tid_of worker))" <(events perf.data)
    injected
    right main worker
    others_are_the_same
    # perf's own name for it.
    leaves perf.jit.data comm,tid | grep -qE "^ *:$(tid_of worker) +$(tid_of worker)" || complain "$(leaves perf.jit.data comm,tid | sort | uniq -c)"
}
