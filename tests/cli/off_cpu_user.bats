#!/usr/bin/env bats
# perfjit record --off-cpu as an ordinary user, who gets no samples of switches: what is recorded nevertheless, and what is said.
#
# Judge: the program's own sleeps.
# bats file_tags=live
load helper

user=65534

setup() {
    require_perf
    [ "$(id -u)" = 0 ] || skip "the user is root's choice"
    cd "$BATS_TEST_TMPDIR" || return
    mkdir bin theirs
    cp "$BUILD/perfjit" "$BUILD/producers/waits" bin/
    chown $user theirs
    chmod 755 . bin "$BATS_FILE_TMPDIR" "$BATS_RUN_TMPDIR" "$(dirname "$BATS_TEST_TMPDIR")"
    cd theirs || return
}

as_user() {
    run --separate-stderr setpriv --reuid $user --regid $user --clear-groups env HOME="$PWD" TMPDIR="$PWD" "$@"
}

@test "an ordinary user gets when threads waited, and is told in one sentence what is missing and who gets it" {
    as_user true
    exits 0
    as_user ../bin/perfjit record --off-cpu -o own -- ../bin/waits
    [[ $stderr != *"you may not sample"* ]] || skip "an ordinary user may not sample here: $(cat /proc/sys/kernel/perf_event_paranoid)"
    exits 0
    if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -ge 2 ]; then
        [ "$(grep -c 'off-CPU time' <<<"$stderr")" = 1 ] || complain "$stderr"
        [[ $stderr == *"off-CPU time: each switch of a thread is recorded (--switch-events), but not its stack, which this user may not have: "*"root, or kernel.perf_event_paranoid=1, gets the stacks"* ]] ||
            complain "$stderr"
        run --separate-stderr perfjit report --off-cpu own.perf.data
        [[ $output$stderr == *"the stack of the thread's last sample before it waited"*"as root or with kernel.perf_event_paranoid=1"* ]] || complain "$output$stderr"
    fi
    # Each of two threads sleeps 6 times for 4 ms.
    perfjit report -q --json --off-cpu own.perf.data | jq -e '.total >= 48000000' >/dev/null || complain "$(perfjit report -q --off-cpu own.perf.data)"
    perfjit report -q --json --off-cpu --by thread own.perf.data | jq -e '.rows | length >= 2' >/dev/null
    perfjit report -q --json --latency own.perf.data | jq -e '.total > 0' >/dev/null
    perfjit flamegraph -q own.perf.data
    [ "$(stat -c %u own.perf.data)" = $user ] || complain "$(stat -c %u own.perf.data)"
}
