# Files that somebody changes and cuts while they are read (tests/producers/restless_file.c).  No run ends by a signal, reads
# bytes that are not its own, or writes half of something.  An owner who is somebody else can do more than cut: he waits for the
# moment between check and use.
# bats file_tags=live
load helper

setup_file() {
    require_perf || return 0
    cd "$BATS_FILE_TMPDIR" || return
    local shape
    mkdir every lines
    PERFJIT=dump JITDUMPDIR=$PWD/every record every.data "$BUILD/producers/every_record" 0.2
    record lines.data "$BUILD/producers/line_shapes" lines-first lines 0.2 >/dev/null
    # The file is as large as its records may become, most of it zeros: changes are to hit records.
    for shape in every lines; do
        find "$PWD/$shape" -name 'jit-*.dump' ! -path '*/stage/*' >"$shape.name"
        cp "$(cat "$shape.name")" "$shape.pristine"
    done
}

setup() {
    require_perf
    cd "$BATS_TEST_TMPDIR"
    seed=$((RANDOM + 1))
    tries=${TORTURE:-${BRIEF:+3}}
    tries=${tries:-25}
    local shape
    for shape in every lines; do
        cat "$BATS_FILE_TMPDIR/$shape.pristine" >"$(cat "$BATS_FILE_TMPDIR/$shape.name")"
        own "$(cat "$BATS_FILE_TMPDIR/$shape.name")" "$BATS_FILE_TMPDIR/$shape.data"
        cp "$BATS_FILE_TMPDIR/$shape.data" .
    done
}

teardown() {
    [ -z "${restless:-}" ] || kill "$restless" 2>/dev/null || true
}

own() {
    [ "$(id -u)" != 0 ] || chown 0:0 "$@"
    chmod 600 "$@"
}

# Root gives them away; who can't lets others write them.
give_away() {
    if [ "$(id -u)" = 0 ]; then
        chown 12345 "$@"
    else
        chmod 660 "$@"
    fi
}

# while_changing FILE SEED COMMAND...: run the command of both builds, many times.  Counts the runs by status in ${statuses[@]}.
while_changing() {
    local file=$1 build i status
    cp "$file" before.changes
    "$BUILD/producers/restless_file" "$file" "$2" &
    restless=$!
    statuses=(0 0 0 0)
    # At least once something must have been hit.
    for ((i = 0; i < tries || (statuses[1] + statuses[3] == 0 && i < 20 * tries); i++)); do
        for build in "$BUILD/sanitized" "$BUILD"; do
            rm -rf out.data out.data.dso out.dump
            status=0
            timeout 30 "$build/perfjit" "${@:3}" >stdout 2>stderr || status=$?
            [[ $status =~ ^[013]$ ]] || complain "$build: ${*:3}: status $status (seed $seed): $(tail -30 stderr)"
            ! grep -qE 'Sanitizer|runtime error|Assertion' stderr || complain "${*:3} (seed $seed): $(head -30 stderr)"
            [ "$status" != 1 ] || [ -s stderr ] || complain "${*:3}: no word of why"
            nothing_half "$status"
            statuses[status]=$((statuses[status] + 1))
        done
    done
    kill "$restless"
    wait "$restless"
    restless=
    cmp "$file" before.changes
    echo "# ${*:3:2}: ${statuses[0]} sound, ${statuses[3]} with something missing, ${statuses[1]} refused" >&3
    [ "$((statuses[1] + statuses[3]))" -gt 0 ]
}

nothing_half() {
    local left
    left=$(find . -maxdepth 1 -name 'out.*' | sort | xargs)
    case $1 in
    1) [ -z "$left" ] || complain "left over: $left" ;;
    *) [ -z "$left" ] || [ "$left" = "./out.data ./out.data.dso" ] || [ "$left" = ./out.dump ] || complain "left over: $left" ;;
    esac
}

@test "a dump that another user changes and cuts while it is injected" {
    local shape dump
    for shape in every lines; do
        dump=$(cat "$BATS_FILE_TMPDIR/$shape.name")
        give_away "$dump"
        while_changing "$dump" "$seed" inject -q -i "$shape.data" -o out.data --force
        while_changing "$dump" "$seed" inject -q -i "$shape.data" -o out.data --jitdump "$dump" --layout function
    done
}

@test "a dump that another user changes and cuts while it is listed, checked or repaired" {
    local dump
    dump=$(cat "$BATS_FILE_TMPDIR/every.name")
    give_away "$dump"
    while_changing "$dump" "$seed" dump --json "$dump"
    while_changing "$dump" "$seed" check "$dump"
    while_changing "$dump" "$seed" check --repair out.dump "$dump"
}

@test "a recording that another user changes and cuts while it is injected or checked" {
    give_away every.data
    while_changing every.data "$seed" inject -q -i every.data -o out.data
    while_changing every.data "$seed" check every.data
}

# bats test_tags=all
@test "one's own dump becomes shorter, and longer again, while it is read" {
    local shape dump
    for shape in every lines; do
        dump=$(cat "$BATS_FILE_TMPDIR/$shape.name")
        while_changing "$dump" 0 inject -q -i "$shape.data" -o out.data
        while_changing "$dump" 0 check "$shape.data" "$dump"
        while_changing "$dump" 0 check --repair out.dump "$dump"
        while_changing "$dump" 0 dump "$dump"
    done
}

@test "one's own recording becomes shorter, and longer again, while it is read" {
    while_changing every.data 0 inject -q -i every.data -o out.data
    while_changing every.data 0 check every.data
}

@test "a perf map that another user changes and cuts while it is read" {
    record mapped.data "$BUILD/producers/perf_map_code" anon 0.3 truth >pid
    mv "/tmp/perf-$(cat pid).map" given.map
    give_away given.map
    while_changing given.map "$seed" inject -q -i mapped.data -o out.data --perf-map "$(cat pid):given.map"
    while_changing given.map "$seed" check mapped.data --perf-map "$(cat pid):given.map"
}

# ---- Signals ----

@test "SIGINT, SIGTERM and SIGHUP while a repaired copy is written: all of it or none" {
    local i signal status pid start lasts_us all=0 none=0
    PERFJIT=dump JITDUMPDIR=$PWD "$BUILD/producers/many_functions" -n 60000 -s 0.001
    mv jitdump-*/jit-*.dump many.dump
    start=${EPOCHREALTIME/./}
    perfjit check --repair wanted.dump many.dump >stdout
    lasts_us=$((${EPOCHREALTIME/./} - start))
    # Until one was early enough, however fast or late things are.
    for ((i = 1; i <= tries * 2 || none == 0; i++)); do
        signal=$(printf 'INT\nTERM\nHUP\n' | sed -n "$((i % 3 + 1))p")
        # Background processes of a script ignore SIGINT: env starts it as a terminal would.
        env --default-signal=INT,TERM,HUP "$BUILD/perfjit" check --repair out.dump many.dump >stdout 2>stderr &
        pid=$!
        # At random in the I-th part of a run and a bit more, so that some are early and some late.
        start=${EPOCHREALTIME/./}
        sleep "$(awk -v us="$lasts_us" -v i=$(((i - 1) % (tries * 2) + 1)) -v n=$((tries * 2)) -v seed="$RANDOM" \
            'BEGIN { srand(seed); printf "%.6f", (i - rand()) / n * us * 1.3e-6 }')"
        kill -s "$signal" "$pid" 2>/dev/null || true
        status=0
        wait "$pid" || status=$?
        [ -z "$(find . -maxdepth 1 -name 'out.dump?*')" ] || complain "left over: $(ls)"
        if [ -e out.dump ]; then
            lasts_us=$((${EPOCHREALTIME/./} - start < lasts_us ? ${EPOCHREALTIME/./} - start : lasts_us))
            cmp out.dump wanted.dump
            all=$((all + 1))
        else
            [ "$status" = $((128 + $(kill -l "$signal"))) ] || complain "status $status: $(cat stderr)"
            none=$((none + 1))
        fi
        rm -f out.dump
    done
    echo "# $all runs came to their end, $none were ended by the signal and left nothing" >&3
}
