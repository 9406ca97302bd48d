# Recordings in which nothing has a time, or not everything (perf record --no-timestamp, -e page-faults/time=0/, old kernels): perf
# reads them, and so does each command.
load helper

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    sound_recording functions
    for form in timeless half-timed no-ids; do
        python3 "$here/lossy.py" $form sound.data $form.data
    done
    perfjit inject -q -i sound.data -o sound.jit.data
}

setup() {
    cd "$BATS_TEST_TMPDIR"
    made=$BATS_FILE_TMPDIR
}

# The samples of each name, by perf and by perfjit; what is in the kernel apart.
by_perf() { # DATA
    perf script -i "$1" -F ip,sym --no-inline 2>/dev/null | awk '{ print $1 ~ /^ffff/ ? "[kernel]" : $2 }' | sort | uniq -c | sort
}

by_perfjit() { # DATA
    perfjit export -q -f folded --weight samples -o - "$1" | sed 's/.*;//' |
        awk '{ count = $NF; sub(/ [0-9]+$/, ""); all[$0] += count } END { for (name in all) print all[name], name }' | sort
}

# told STATUS TEXT COMMAND...: it is said once.
told() {
    local status=0
    perfjit "${@:3}" >said 2>&1 || status=$?
    [ "$status" = "$1" ] || complain "${*:3}: status $status: $(cat said)"
    [ "$(grep -cFe "$2" said)" = 1 ] || complain "${*:3}: not once '$2': $(cat said)"
}

@test "without any time, all code that was alone at its addresses has its name, in perf too after inject" {
    perfjit inject -q -i "$made/timeless.data" -o out.data
    by_perf "$made/sound.jit.data" >wanted
    by_perf out.data >got
    same got wanted
    [ "$(grep -c function_ got)" = 20 ] || complain "$(cat got)"
    for data in "$made/timeless.data" out.data; do
        by_perfjit "$data" >got
        by_perfjit "$made/sound.data" >wanted
        same got wanted
        perfjit check "$data" | grep -q 'JIT code, \[unknown\] *0$'
    done
}

@test "each command says once that there are no times, and what needs them says so" {
    local what='recording without times: read in the order of its records' data=$made/timeless.data form
    told 0 "$what" inject -i "$data" -o out.data
    told 0 "$what" check "$data"
    told 0 "$what" report "$data"
    told 0 "$what" flamegraph -o page.html "$data"
    told 0 "$what" flamegraph --svg -o page.svg "$data"
    for form in folded firefox speedscope pprof callgrind; do told 0 "$what" export -f $form -o out.$form "$data"; done
    perfjit diff --base "$data" --new "$data" >said 2>&1 || complain "$(cat said)"
    told 1 '--time: the samples have no times' report --time 0-1 "$data"
    told 1 'does not tell when threads waited: it has no times' report --off-cpu "$data"
    told 1 '--span: the samples have no times' report --span x "$data"
    ! perfjit report out.data 2>&1 | grep 'without times' || complain "said again of what was injected"
    told 1 '--time: the samples have no times' report --time 0-1 out.data
}

@test "samples without a time among others have that of their neighbours: the same names" {
    local what='recording in which some samples have no time: each counts with the time of the record before it'
    told 0 "$what" inject -i "$made/half-timed.data" -o out.data
    by_perf "$made/sound.jit.data" >wanted
    by_perf out.data >got
    same got wanted
    told 0 "$what" report --event task-clock "$made/half-timed.data"
    told 0 "$what" report --time 0%-10% "$made/half-timed.data"
    told 0 "$what" check "$made/half-timed.data"
    perfjit report -q --json --event task-clock --time 0%-50% "$made/half-timed.data" | jq -e '.samples > 100' >/dev/null
    ! perfjit report out.data 2>&1 | grep 'have no time' || complain "said again of what was injected"
}

@test "records of a kernel that tells times of samples only: the same names, and nothing is missing" {
    perfjit inject -i "$made/no-ids.data" -o out.data >said 2>&1
    ! grep 'no time\|without times' said || complain "$(cat said)"
    by_perf "$made/sound.jit.data" >wanted
    by_perf out.data >got
    same got wanted
}

@test "without times, no name is given where several functions were, and check says why" {
    sound_recording every-record
    python3 "$here/lossy.py" timeless sound.data timeless.data
    local form
    perfjit inject -q -i sound.data -o timed.jit.data
    perfjit inject -q -i timeless.data -o timeless.jit.data
    for form in timed timeless; do
        perf script -i $form.jit.data -F ip,sym --no-inline 2>/dev/null | grep -v unknown | sort -u >$form.names
    done
    # The names of each address with times, and the one without.
    awk 'NR == FNR { names[$1] = names[$1] " " $2; next } names[$1] != " " $2 { print names[$1] ":", $0; bad = 1 } END { exit bad }' \
        timed.names timeless.names || complain "a name where there are several"
    [ "$(grep -c '^ *7' timeless.names)" -gt 3 ]
    perfjit check timeless.data >said 2>&1 || true
    grep -q 'several functions had its address, and the recording has no times' said || complain "$(cat said)"
}
