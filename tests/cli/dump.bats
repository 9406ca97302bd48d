# perfjit dump: every record on one line, in text and as JSON.
load helper

setup_file() {
    mkdir "$BATS_FILE_TMPDIR/dumps"
    cd "$BATS_FILE_TMPDIR/dumps" || return
    PERFJIT=dump JITDUMPDIR=$PWD "$BUILD/producers/every_record" 0
    mv jitdump-*/jit-*.dump ../sound.dump
}

setup() {
    mkdir "$BATS_TEST_TMPDIR/work"
    cd "$BATS_TEST_TMPDIR/work"
    cp "$BATS_FILE_TMPDIR/sound.dump" .
    perfjit dump --json sound.dump >sound.json
}

# number FILTER: how many records of sound.dump it selects.
number() {
    jq -s "[.[] | select($1)] | length" sound.json
}

# The offset of record NUMBER of sound.dump.
offset() {
    jq "select(.record == $1).offset" sound.json
}

record_count=25 load_count=18

@test "text: one line for the header and one for each record" {
    run --separate-stderr perfjit dump sound.dump
    exits 0
    [ -z "$stderr" ]
    [ "${#lines[@]}" -eq $((record_count + 1)) ]
    [[ ${lines[0]} == header\ version=1\ total_size=40\ * ]]
    [ "$(grep -cE '^ +[0-9]+  0x[0-9a-f]{8}  [0-9]+\.[0-9]{9}  CODE_LOAD total_size=' <<<"$output")" -eq $load_count ]
}

@test "JSON: one object a line, the header first" {
    [ "$(wc -l <sound.json)" -eq $((record_count + 1)) ]
    while IFS= read -r line; do
        jq -e type <<<"$line" >type || complain "no JSON: $line"
        [ "$(cat type)" = '"object"' ]
    done <sound.json
    head -1 sound.json | jq -e '.header and .version == 1 and .total_size == 40 and .byte_order == "little"'
    [ "$(number '.type == "CODE_LOAD"')" -eq $load_count ]
    [ "$(jq -s -c '[.[] | select(.record).record]' sound.json)" = "$(seq 0 $((record_count - 1)) | jq -s -c .)" ]
}

@test "JSON: the records follow one another without a gap up to the end of the file" {
    jq -s -e 'map(select(.record)) | [range(1; length) as $i | .[$i - 1].offset + .[$i - 1].total_size == .[$i].offset] | all' \
        sound.json
    [ "$(jq -s 'last | .offset + .total_size' sound.json)" -eq "$(stat -c %s sound.dump)" ]
}

@test "text and JSON show the same records" {
    perfjit dump sound.dump | sed -nE 's/^ +([0-9]+)  0x[0-9a-f]+  [0-9.]+  ([A-Z_]+) total_size=([0-9]+).*/\1 \2 \3/p' >text
    jq -r 'select(.record != null) | "\(.record) \(.type) \(.total_size)"' sound.json >json
    same text json
}

@test "JSON: the fields of each kind of record" {
    jq -s -e '
        def one(type): map(select(.type == type)) | if length == 1 then .[0] else error("not one " + type) end;
        def named(name): map(select(.name == name))[0];
        (map(select(.type == "CODE_DEBUG_INFO")) | map(.nr_entry) == [3, 4] and (.[0] | .code_addr > 0) and
            (.[0].entries | length == 3 and .[1].line == 11 and .[1].discrim == 5 and .[2].name == "other.src")) and
        (one("CODE_UNWINDING_INFO") | .unwinding_size == 68 and .eh_frame_hdr_size == 20 and .mapped_size == 68) and
        (named("moved") as $code | one("CODE_MOVE") |
            .code_index == $code.code_index and .old_code_addr == $code.code_addr and
            .new_code_addr == $code.code_addr + 3 * 64 and .code_size == $code.code_size) and
        (named("unloaded") as $code | one("CODE_UNLOAD") |
            .code_index == $code.code_index and .code_addr == $code.code_addr and .code_size == $code.code_size) and
        (named("with_inlines") as $code | one("CODE_INLINE_INFO") |
            .code_addr == $code.code_addr and .nr_inline == 2 and .nr_span == 3 and .strings_bytes == 40) and
        (one("CODE_CLOSE") | .total_size == 16)' sound.json
}

# From code_offset on, which functions are inlined, the innermost last.
@test "JSON: the inlined calls and where they are" {
    jq -c 'select(.type == "CODE_INLINE_INFO").inlines[]' sound.json >calls
    cat <<'END' | same calls /dev/stdin
{"inline":0,"parent":null,"name":"middle","call_file":"every_record.src","call_line":21,"call_column":9,"decl_file":"every_record.src","decl_line":40}
{"inline":1,"parent":0,"name":"inner","call_file":"every_record.src","call_line":42,"call_column":0,"decl_file":"inner.src","decl_line":30}
END
    jq -c 'select(.type == "CODE_INLINE_INFO").spans | map([.span, .code_offset, .inline_index])' sound.json >spans
    echo '[[0,5,0],[1,7,1],[2,9,null]]' | same spans /dev/stdin
}

# An inline record: NAME_OFFSET of its one call's name, in strings of 2 bytes.
inline_info() {
    head -c 40 sound.dump
    printf '\x03\0\x4a\x50\x46\0\0\0\x01\0\0\0\0\0\0\0' # 70 bytes
    printf '\0\0\x01\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0'
    printf '\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0\0\0\0\0'
    printf "\\x0$1"'\0\0\0\xff\xff\xff\xff\0\0\0\0f\0'
}

@test "what is not known about an inlined call is null in JSON, and not there in text" {
    inline_info 0 >one.dump
    perfjit dump --json one.dump | tail -1 | jq -e '.inlines[0] | .name == "f" and .parent == null and
        .call_file == null and .decl_file == null and .call_line == 0'
    perfjit dump -v one.dump | grep -qx ' *inline=0 name="f" call_line=0 call_column=0 decl_line=0'
}

@test "status 3: a broken record of inlined calls" {
    inline_info 2 >one.dump
    for option in --json --verbose; do
        run --separate-stderr perfjit dump $option one.dump
        exits 3
        says one.dump "1 record"
        [[ $output == *"INLINE_INFO names a string past the end of its strings"* ]]
    done
}

@test "JSON: names come back as they were; what is not UTF-8 becomes U+FFFD" {
    [ "$(number '.name == ""')" -eq 1 ]
    [ "$(number '.name == "say \"hello\""')" -eq 1 ]
    [ "$(number '.name == "back\\slash"')" -eq 1 ]
    [ "$(number '.name == "two\nlines"')" -eq 1 ]
    [ "$(number '.name == "a\ttab and an escape \u001b[31m"')" -eq 1 ]
    [ "$(number '.name == "größe 😀"')" -eq 1 ]
    [ "$(number '.name == "cut off \ufffd\ufffd"')" -eq 1 ]
    [ "$(number '.name | strings | startswith("not UTF-8: \ufffd \ufffd( ")')" -eq 1 ]
    iconv -f UTF-8 -t UTF-8 sound.json >converted
    cmp sound.json converted
}

# Most readers of JSON lose the last digits of a number over 2^53.
@test "JSON: a number over 2^53 is a string, all others are numbers" {
    {
        head -c 40 sound.dump
        printf '\1\0\0\0\x40\0\0\0\1\0\0\0\0\0\x20\0' # a CODE_MOVE at 2^53 + 1
        printf '\7\0\0\0\7\0\0\0'
        printf '\0\x10\x40\0\0\0\0\0'          # vma
        printf '\0\x20\x40\0\0\0\0\0'          # old_code_addr
        printf '\0\x10\x40\0\0\0\0\0'          # new_code_addr
        printf '\x20\0\0\0\0\0\0\0'             # code_size
        printf '\xff\xff\xff\xff\xff\xff\xff\xff' # code_index
    } >large.dump
    perfjit dump --json large.dump | tail -1 >large.json
    # jq itself would round.
    for field in '"timestamp":"9007199254740993"' '"vma":4198400' '"old_code_addr":4202496' \
        '"new_code_addr":4198400' '"code_size":32' '"code_index":"18446744073709551615"'; do
        grep -qF "$field" large.json || complain "$field is missing in: $(cat large.json)"
    done
    perfjit dump large.dump | grep -qF 'old_code_addr=0x402000 new_code_addr=0x401000 code_size=32 code_index=18446744073709551615'
    perfjit check --json large.dump >check.json
    grep -qF '"first": "9007199254740993"' check.json
}

@test "text: names cannot break a line or reach the terminal" {
    perfjit dump -v sound.dump >text
    run ! grep -aP '[\x00-\x09\x0b-\x1f\x7f]' text
    grep -qF 'name="two\u000alines"' text
    grep -qF 'name="say \"hello\""' text
    iconv -f UTF-8 -t UTF-8 text >converted
    cmp text converted
}

@test "text: -v shows lines and inlined calls" {
    perfjit dump sound.dump >short
    perfjit dump -v sound.dump >long
    [ $(($(wc -l <long) - $(wc -l <short))) -eq $((3 + 4 + 2 + 3)) ] # lines, lines, inlines, spans
    grep -qE '^ +inline=1 parent=0 name="inner" call_file="every_record.src" call_line=42 .* decl_file="inner.src" decl_line=30$' long
    grep -qE '^ +span=1 code_offset=7 inline_index=1$' long
    grep -qE '^ +span=2 code_offset=9$' long
    grep -qE '^ +addr=0x[0-9a-f]+ line=11 discrim=5 name="every_record.src"$' long
}

@test "status 3: a dump cut short, with the record and its offset; the records before it are there" {
    local at
    at=$(offset 9)
    # (Not after 1 byte: a LOAD begins with zeros, and zeros at the end are no record.)
    for more in 5 15 16 40 70; do
        head -c $((at + more)) sound.dump >cut.dump
        run --separate-stderr perfjit dump --json cut.dump
        exits 3
        says cut.dump "record 9 at 0x$(printf %x "$at")"
        printf '%s\n' "$output" >cut.json
        head -10 sound.json | same cut.json /dev/stdin
    done
}

@test "status 0: a dump that ends after a record, or in the zeros of a killed writer" {
    head -c "$(offset 9)" sound.dump >cut.dump
    perfjit dump --json cut.dump >cut.json
    head -10 sound.json | same cut.json /dev/stdin
    truncate -s +4000 cut.dump
    perfjit dump --json cut.dump >cut.json
    head -10 sound.json | same cut.json /dev/stdin
}

@test "status 3: a record of unknown type is shown, and what follows it too" {
    local at
    at=$(offset 9)
    {
        head -c "$at" sound.dump
        printf '\x4d\0\0\0\x18\0\0\0\x01\0\0\0\0\0\0\0unknown!'
        tail -c +$((at + 1)) sound.dump
    } >odd.dump
    run --separate-stderr perfjit dump --json odd.dump
    exits 3
    says odd.dump "1 record"
    jq -s -e 'map(select(.id == 77)) | length == 1 and .[0].record == 9 and .[0].total_size == 24 and (.[0].wrong | length > 0)' \
        <<<"$output"
    [ "$(wc -l <<<"$output")" -eq $((record_count + 2)) ]
    run perfjit dump odd.dump
    [ "$(grep -c 'unknown.*id=77' <<<"$output")" -eq 1 ]
}

@test "status 3: a LOAD that has fewer bytes than it says" {
    local at
    at=$(offset 9)
    printf '\xff\xff\xff\0' | dd of=sound.dump bs=1 seek=$((at + 40)) conv=notrunc status=none
    run --separate-stderr perfjit dump --json sound.dump
    exits 3
    says "1 record"
    [ "$(jq -r 'select(.wrong).record' <<<"$output")" = 9 ]
    [ "$(wc -l <<<"$output")" -eq $((record_count + 1)) ]
}

# From another machine: every integer the other way round.
@test "a big-endian dump" {
    {
        printf 'JiTD\0\0\0\x01\0\0\0\x28\0\0\0\x16\0\0\0\0\0\0\x10\x01'             # s390x, pid 4097
        printf '\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\0'                                 # timestamp 7, flags
        printf '\0\0\0\0\0\0\0\x3e\0\0\0\0\0\0\0\x09'                               # LOAD, 62 bytes, timestamp 9
        printf '\0\0\x10\x01\0\0\x10\x02\0\0\0\0\0\x12\x34\x50'                     # pid, tid, vma
        printf '\0\0\0\0\0\x12\x34\x50\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x05big\0\x07\xfe' # addr, size, index
    } >big.dump
    perfjit dump --json big.dump >json
    jq -s -e '.[0].byte_order == "big" and .[0].elf_mach == 22 and .[0].pid == 4097 and .[0].timestamp == 7 and
        (.[1] | .type == "CODE_LOAD" and .timestamp == 9 and .tid == 4098 and .code_addr == 1193040 and .code_size == 2 and
            .code_index == 5 and .name == "big")' json
}

@test "status 1: what is no dump" {
    printf 'This is a text of more than forty bytes, not a dump.\n' >text.dump
    head -c 39 sound.dump >short.dump
    : >empty.dump
    for file in text.dump short.dump empty.dump nowhere.dump .; do
        run --separate-stderr perfjit dump $file
        exits 1
        says "perfjit: $file: "
        [ -z "$output" ]
    done
}

@test "status 1: the output can't be written" {
    run --separate-stderr bash -c '"$0" dump sound.dump >/dev/full' "$BUILD/perfjit"
    exits 1
    says "No space left on device"
}

@test "status 2: no file, two files, an unknown option" {
    for arguments in "" "sound.dump sound.dump" "--no-such-option sound.dump"; do
        # shellcheck disable=SC2086 # several words
        run --separate-stderr perfjit dump $arguments
        exits 2
        says "perfjit dump"
        [ -z "$output" ]
    done
}

@test "status 0: --help, on stdout" {
    run --separate-stderr perfjit dump --help
    exits 0
    [[ $output == *--json* ]]
}
