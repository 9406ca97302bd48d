# perfjit check --repair: the copy is sound, has what was whole, and perf can read it.
load helper
load checked

setup() {
    require_perf
    mkdir "$BATS_TEST_TMPDIR/work"
    cd "$BATS_TEST_TMPDIR/work"
}

# repair STATUS OUT DUMP
repair() {
    run --separate-stderr sanitized_perfjit check --json --repair "$2" "$3"
    exits "$1"
    printf '%s\n' "$output" >json
}

loads() {
    perfjit dump --json "$1" | jq -c 'select(.type == "CODE_LOAD") | del(.record, .offset, .quirks)'
}

@test "a sound dump is copied byte for byte" {
    every_record
    repair 0 copy.dump every.dump
    cmp copy.dump every.dump
    is '.repaired | .header_corrected == false and .torn_parts == 0'
}

# repaired_where_it_is_cut STEP: a cut every so many bytes.
repaired_where_it_is_cut() {
    every_record
    loads every.dump >all
    perfjit dump --json every.dump | jq -r 'select(.type == "CODE_LOAD") | .offset + .total_size' >ends
    local size cut=40
    size=$(stat -c %s every.dump)
    for ((; cut < size; cut += $1)); do
        head -c $cut every.dump >cut.dump
        rm -f copy.dump
        run --separate-stderr perfjit check --repair copy.dump cut.dump
        [[ $status = 0 || $status = 3 ]] || complain "cut after $cut bytes: status $status: $stderr"
        perfjit check copy.dump >text || complain "cut after $cut bytes: $(cat text)"
        head -"$(awk -v cut=$cut '$1 <= cut { n++ } END { print n + 0 }' ends)" all >wanted
        loads copy.dump | same /dev/stdin wanted || complain "cut after $cut bytes"
        [ "$(perfjit dump --json copy.dump | tail -1 | jq -r .type)" = CODE_CLOSE ]
    done
}

@test "wherever a dump is cut, the copy is sound and has every function that was whole" {
    repaired_where_it_is_cut 549
}

# bats test_tags=all
@test "... at nine times as many places" {
    repaired_where_it_is_cut 61
}

@test "what is torn, unknown or another's is left out, and headers are corrected" {
    for name in $("$BUILD/producers/quirks" --names); do
        mkdir "repair-$name"
        "$BUILD/producers/quirks" "$name" "repair-$name" 0
        wanted=0
        case $name in header-again | header-foreign | record-unknown | record-torn | dump-cut | stubs-unread) wanted=3 ;; esac
        repair $wanted "copy-$name.dump" "repair-$name"/jit-*.dump
        run --separate-stderr sanitized_perfjit check --json "copy-$name.dump"
        exits 0
        printf '%s\n' "$output" >json
        is '.dumps[0] | .header.version == 1 and .records.close == 1 and .records.unknown + .records.broken + .records.torn_parts == 0'
        [ "$(od -An -tu1 -j8 -N4 "copy-$name.dump" | tr -d ' ')" = 40000 ] || [ "$name" = big-endian ] || complain "$name: header"
    done
}

@test "a second header's meaning is kept, so that perfjit gives the same names" {
    mkdir again
    recording again record again.data "$BUILD/producers/quirks" header-again again 0.2
    names() {
        perfjit inject -q -i again.data -o out.data
        perf script -i out.data -F time,ip,sym -G --ns
    }
    names >before
    repair 3 copy.dump again/jit-*.dump
    is '.repaired.unloads > 0'
    cat copy.dump >"$(echo again/jit-*.dump)"
    names | same /dev/stdin before
    grep -q alpha before
}

# bats test_tags=live
@test "perf inject reads the copy, and finds every function that was whole" {
    local dump number size functions
    PERFJIT=dump JITDUMPDIR=$PWD record many.data "$BUILD/producers/many_functions" -n 300 -s 0.3
    dump=$(dumps_of many.data)
    number=${dump##*jit-} number=${number%.dump}
    cp "$dump" many.saved
    size=$(stat -c %s "$dump")
    head -c $((size * 6 / 10)) many.saved >broken.dump
    printf 'rubbish rubbish rubbish rubbish' | dd of=broken.dump bs=1 seek=$((size * 3 / 10)) conv=notrunc status=none
    repair 3 copy.dump broken.dump
    functions=$(jq .repaired.functions json)
    [ "$functions" -ge 170 ] && [ "$functions" -lt 185 ]
    cat copy.dump >"$dump"
    perf inject --jit -i many.data -o theirs.data
    [ "$(find "${dump%/*}" -name "jitted-$number-*.so" | wc -l)" -eq "$functions" ]
    rm -f "${dump%/*}/jitted-$number"-*.so
    cat broken.dump >"$dump"
    run perf inject --jit -i many.data -o theirs.data
    [ "$(find "${dump%/*}" -name "jitted-$number-*.so" | wc -l)" -lt "$functions" ] # it does matter
    rm -f "${dump%/*}/jitted-$number"-*.so
}

@test "no file is overwritten, and nothing is left behind by a failure" {
    every_record
    echo kept >there
    ln -s nowhere dangling
    files . >before
    for out in there every.dump dangling no/such/directory .; do
        run --separate-stderr perfjit check --repair $out every.dump
        exits $([ $out = every.dump ] && echo 2 || echo 1)
        says "$out: "
    done
    files . >after
    grep -v ^before before >wanted
    grep -v -e ^before -e ^after after | same /dev/stdin wanted
    [ "$(cat there)" = kept ]
}
