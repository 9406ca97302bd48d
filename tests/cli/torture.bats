# Runtimes that are killed, or whose disk fills up, at random moments: what had returned is in the dump, whole.  `make
# torture RUNS=1000` runs as many as that; `make check-all` 60.
# bats file_tags=live
load helper

runs=${TORTURE:-${BRIEF:-60}}

# judged: the judge's figures, shown; `run` before.
judged() {
    local line
    for line in "${lines[@]}"; do
        echo "# $line" >&3
    done
    [ "$status" -eq 0 ] || complain "status $status: $output"
}

@test "killed at random moments: no function, move or unload that had returned is lost, and none is torn" {
    mkdir "$BATS_TEST_TMPDIR/dumps"
    cd "$BATS_TEST_TMPDIR"
    run "$BUILD/producers/torture" -p "$BUILD/perfjit" kill dumps "$runs" "${SEED:-$RANDOM}"
    judged
}

# on_disk MOUNT_COMMAND RUNS: beside a small disk called mnt, seen by this test only.
on_disk() {
    local as_root=()
    [ "$(id -u)" = 0 ] || as_root=(--map-root-user)
    cd "$BATS_TEST_TMPDIR"
    mkdir mnt
    # shellcheck disable=SC2016 # for the inner shell
    run unshare --mount "${as_root[@]}" bash -c '
        eval "$1" >mount.log 2>&1 || exit 99
        "$2/producers/torture" -p "$2/perfjit" fill mnt "$3" "$4"
        status=$?
        umount mnt
        exit $status' on_disk "$1" "$BUILD" "$2" "${SEED:-$RANDOM}"
    [ "$status" -ne 99 ] || skip "mounting is not permitted: $(tail -1 mount.log)"
    judged
}

@test "a tmpfs that fills up: what returned 0 is there, what failed is counted, and the runtime goes on" {
    on_disk 'mount -t tmpfs -o size=6m none mnt' $(((runs + 9) / 10 + 4))
}

@test "an ext4 disk that fills up: what returned 0 is there, what failed is counted, and the runtime goes on" {
    on_disk 'truncate -s 16m disk && mkfs.ext4 -q -F disk && mount -o loop disk mnt' $(((runs + 79) / 80))
}

# The loads that had returned, as files of perf inject (by code index) and as symbols of perfjit inject.
# bats test_tags=all
@test "perf inject and perfjit inject find every load of runtimes that were killed" {
    require_perf
    cd "$BATS_TEST_TMPDIR"
    local i killed=0 functions=0 times=$(((runs + 14) / 20))
    [ "$runs" -ge 100 ] || times=2
    local calls=(2000 400 6000 12000) # of 16000, so that none comes to its end
    [ "$runs" -lt 100 ] || [ "$times" -ge 20 ] || times=20
    for i in $(seq "$times"); do
        rm -rf run && mkdir run && cd run
        PERFJIT=dump perf record -q -k mono -e cpu-clock -o perf.data \
            "$BUILD/producers/torture" -p "$BUILD/perfjit" -n names -k "${calls[(i - 1) % 4]}" kill . 1 1 >../figures
        killed=$((killed + $(sed -nE 's/.* ([0-9]+) killed.*/\1/p' ../figures)))
        functions=$((functions + $(wc -l <names)))
        if [ -s names ]; then
            perf inject --jit -i perf.data -o perf.inject.data >../inject.log 2>&1
            find . -name 'jitted-*.so' | sed -E 's/.*-([0-9]+)\.so/\1/' | sort >found
            cut -d' ' -f1 names | sort | comm -23 - found >missing
            [ ! -s missing ] || complain "perf inject: $(wc -l <missing) of $(wc -l <names) loads are missing"
            run --separate-stderr perfjit inject -i perf.data -o out.data
            [[ $status = 0 || $status = 3 ]] || complain "$stderr"
            [[ $stderr != *torn* && $stderr != *"cut short"* && $stderr != *"broken record"* ]] || complain "$stderr"
            local dumped
            dumped=$(find . -name 'jit-*.dump' -exec "$BUILD/perfjit" dump --json {} \; 2>/dev/null | sort -u -t, -k2 | grep -cE '"type":"CODE_(LOAD|MOVE)"')
            says "out.data: $dumped functions"
        fi
        cd ..
    done
    echo "# perf inject and perfjit inject: $killed killed runs, $functions loads, all found" >&3
    [ "$killed" -eq "$times" ] && [ "$functions" -gt 0 ]
}

@test "8 threads, forks, opening and closing" {
    mkdir "$BATS_TEST_TMPDIR/dumps"
    cd "$BATS_TEST_TMPDIR"
    run "$BUILD/producers/torture" stress dumps 5 1
    judged
}
