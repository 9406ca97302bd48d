# perfjit bench --order together: both runs of a pair at the same time, on one processor.
# bats file_tags=live
load helper

setup_file() {
    cd "$BATS_FILE_TMPDIR" || return
    mkdir more
    local times
    for times in 300 315; do
        printf 'fn work(n) { var i = 0; var s = 1; while i < n { s = (s * 7 + i) %% 1000003; i = i + 1; } return s; }\nfn main() { var n = 0; while n < %d { work(100000); n = n + 1; } return 0; }\n' $times >work$times.tj
    done
    mv work300.tj work.tj
    mv work315.tj more/work.tj
    # The processor that it ran on, with its start and end.
    printf '#!/bin/sh\nside=$1\nshift\necho "$(grep Cpus_allowed_list /proc/self/status | cut -f2) $(date +%%s%%N)" >>$side.began\n"$@"\ndate +%%s%%N >>$side.ended\n' >noted
    chmod +x noted
    ln -s "$(command -v sleep)" waits
}

setup() {
    require_perf
    cd "$BATS_FILE_TMPDIR" || return
    # A sleep by a name that no other test has, nor another run of this one.
    waits=$BATS_FILE_TMPDIR/waits
}

none_waits() {
    ! pgrep -f "^$waits 1000" >/dev/null || complain "$(pgrep -af "^$waits")"
}

@test "the two of a pair have one processor at the same time, and 5 percent more is found by eight pairs on any machine" {
    perfjit bench -q --runs 8 --warmup 0 --order together -F 3000 -o kept.bench \
        --base "./noted base $BUILD/tinyjit --no-inline work.tj" --new "./noted new $BUILD/tinyjit --no-inline more/work.tj"
    # In each pair one began before the other had ended, on the same single processor.
    paste base.began base.ended new.began new.ended | awk '
        NF != 6 || $1 !~ /^[0-9]+$/ || $1 != $4 || $2 > $6 || $5 > $3 { bad = 1; print }
        END { exit bad || NR != 8 }'
    [ "$(awk -F'\t' '$1 == "run" { printf "%s ", $2 }' kept.bench/bench.txt)" = "base new new base base new new base base new new base base new new base " ]
    grep -q $'^order\ttogether$' kept.bench/bench.txt
    [ "$(ls kept.bench | wc -l)" = 17 ]
    perfjit diff kept.bench >text
    grep -q '^slower: +[2-7].[0-9] % in all, 8 against 8 runs in pairs, p 0.0[0-4][0-9]*$' text || complain "$(cat text)"
    grep -Eq ' slower +tj::work  work.tj$' text
    # The partner's work is not counted as other work.
    awk -F'\t' '$1 == "run" { for (i = 4; i <= NF; i++) { split($i, part, "="); run[part[1]] = part[2] }
                              if (run["wall_ns"] < run["cpu_ns"] || run["samples"] < 100) { print; bad = 1 } }
                END { exit bad }' kept.bench/bench.txt
}

@test "where one fails, or can't be run, or is a moment, the other is ended, and nothing is left" {
    local base new what
    while IFS='|' read -r base new what; do
        SECONDS=0
        run perfjit bench -q --runs 4 --warmup 0 --order together -o none.bench --base "$base" --new "$new"
        [ "$status" = 1 ] && [[ $output = *$what* ]] || complain "$base, $new: $status $output"
        [ "$SECONDS" -lt 20 ] || complain "$base, $new: $SECONDS s"
        [ -z "$(ls -d none.bench* 2>/dev/null)" ] || complain "$base, $new: left $(ls -d none.bench*)"
    done <<END
$waits 1000|sh -c 'sleep 1; exit 3'|new, run 1: sh ended with status 3
sh -c 'sleep 1; kill -9 \$\$'|$waits 1000|base, run 1: sh was ended by signal 9
$waits 1000|./no-such-program|no-such-program
sh -c 'exit 5'|sh -c 'exit 6'|ended with status
END
    none_waits
}

@test "interrupted: both commands end, nothing is written, and the status is the signal's" {
    local signal status
    for signal in INT TERM; do
        rm -f *.began
        # In a process group of its own, as a shell starts it: bash ignores SIGINT for what runs behind.
        env --default-signal=INT "$BUILD/perfjit" bench --runs 4 --warmup 0 --order together -o none.bench \
            --base "./noted base $waits 1000" --new "./noted new $waits 1000" 2>said &
        local bench=$!
        until [ -s base.began ] && [ -s new.began ]; do sleep 0.05; done
        kill -$signal $bench
        status=0
        wait $bench || status=$?
        [ "$status" = $((128 + $(kill -l $signal))) ] || complain "$signal: $status: $(cat said)"
        grep -q 'interrupted (.*, run 1); nothing was written' said || complain "$(cat said)"
        [ -z "$(ls -d none.bench* 2>/dev/null)" ]
        none_waits
    done
}

@test "what is no pair can't run together, and nothing is run again" {
    run perfjit bench --order together --new true
    [ "$status" = 2 ] && [[ $output = *"--order together needs two commands"* ]]
    run perfjit bench --order together --base true --new true --repeats 3
    [ "$status" = 2 ] && [[ $output = *"--repeats is for runs one after the other"* ]]
    run perfjit bench --order twice --base true --new true
    [ "$status" = 2 ] && [[ $output = *"--order is turns, together or blocks, not 'twice'"* ]]
}
