# perf inject --jit reads what libjitdump writes, this project's extension records included.
load helper

setup_file() {
    require_perf || return 0
    cd "$BATS_FILE_TMPDIR" || return
    sound_recording every-record
    mv sound.data ours.data
    perfjit inject -i ours.data -o image.data
    perfjit inject -i ours.data -o function.data --layout function
}

setup() {
    require_perf
    cd "$BATS_FILE_TMPDIR"
}

@test "the dump holds every record that libjitdump writes, but the pieces of pieces.bats" {
    perfjit dump --json "$(dumps_of ours.data)" | jq -r 'select(.type).type' | sort -u >"$BATS_TEST_TMPDIR/types"
    printf '%s\n' CODE_CLOSE CODE_DEBUG_INFO CODE_INLINE_INFO CODE_LOAD CODE_MOVE CODE_UNLOAD CODE_UNWINDING_INFO |
        same "$BATS_TEST_TMPDIR/types" /dev/stdin
}

# bats test_tags=both
@test "perf inject --jit takes the dump and names every sample as perfjit does" {
    samples theirs.data >"$BATS_TEST_TMPDIR/oracle.samples"
    for layout in image function; do
        samples $layout.data >"$BATS_TEST_TMPDIR/samples"
        same "$BATS_TEST_TMPDIR/samples" "$BATS_TEST_TMPDIR/oracle.samples"
    done
}

# perf 6.1 puts a function at 0x80 of its file.
# bats test_tags=live
@test "perf inject --jit gets the lines of a function with inlined calls" {
    local so
    for so in jitdump-*/jitted-*.so; do
        ! readelf -sW "$so" 2>/dev/null | grep -q ' with_inlines$' || break
    done
    readelf --debug-dump=decodedline "$so" 2>/dev/null | awk '$3 ~ /^0x/ && $2 != "-" { print $1, $2, $3 }' >"$BATS_TEST_TMPDIR/lines"
    printf '%s\n' 'every_record.src 20 0x80' 'every_record.src 41 0x85' 'inner.src 31 0x87' 'every_record.src 22 0x89' |
        same "$BATS_TEST_TMPDIR/lines" /dev/stdin
}

@test "every function that ran has its name" {
    samples image.data >"$BATS_TEST_TMPDIR/samples"
    for name in plain with_lines with_inlines with_unwinding moved unloaded replaced in_place_of_unloaded in_place_of_replaced; do
        grep -q " $name$" "$BATS_TEST_TMPDIR/samples" || complain "no sample of $name"
    done
}

# Addresses are compared as text: in one arena they have the same number of digits.
@test "no sample in the arena is without a name" {
    local base
    base=$(perfjit dump --json "$(dumps_of ours.data)" | jq 'select(.name == "plain").code_addr')
    samples image.data | awk -v from="$(printf %x "$base")" -v to="$(printf %x $((base + 4096)))" '
        ($2 "") >= (from "") && ($2 "") < (to "") { inside++; if (/\[unknown\]/) { print; missing++ } }
        END { exit inside < 100 || missing > 0 }'
}

@test "a moved function is found at both places, a replaced one only before its successor" {
    samples image.data >"$BATS_TEST_TMPDIR/samples"
    [ "$(awk '$3 == "moved" { print substr($2, 1, length($2) - 2) }' "$BATS_TEST_TMPDIR/samples" | sort -u | wc -l)" -eq 2 ]
    for name in unloaded replaced; do
        awk -v old=$name -v new=in_place_of_$name '
            $3 == new { begun = 1 }
            $3 == old && begun { print "again at " $1; late = 1 }
            END { exit late || !begun }' "$BATS_TEST_TMPDIR/samples"
    done
}
