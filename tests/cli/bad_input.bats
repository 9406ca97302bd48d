# Input that is missing, foreign, cut short or damaged, and output that can't be written.  The tests check perfjit inject's
# messages and its status, and that it leaves nothing half-made.  Each run is one of perfjit as it is shipped and one of perfjit
# with AddressSanitizer and UndefinedBehaviorSanitizer, which must agree.
load helper

# The dump that sound.data names, $named_dump, is made anew for each test.  A test that gives another one with --jitdump calls it
# $dump, which has the same name in the current directory.
setup_file() {
    require_perf || return 0
    cd "$BATS_FILE_TMPDIR" || return
    sound_recording functions
    dumps_of sound.data >named_dump
    mv "$(cat named_dump)" original.dump
    cp original.dump pristine.dump
}

setup() {
    require_perf
    sound=$BATS_FILE_TMPDIR/sound.data
    pristine=$BATS_FILE_TMPDIR/pristine.dump
    named_dump=$(cat "$BATS_FILE_TMPDIR/named_dump")
    dump=${named_dump##*/}
    # The file that was recorded, for another of this name would be refused.
    rm -f "$named_dump"
    cat "$pristine" >"$BATS_FILE_TMPDIR/original.dump"
    ln "$BATS_FILE_TMPDIR/original.dump" "$named_dump"
    mkdir "$BATS_TEST_TMPDIR/work"
    cd "$BATS_TEST_TMPDIR/work"
}

# ---- Running ----

both() {
    local sanitized arguments
    with_root "$@"
    run --separate-stderr timeout 300 "$BUILD/sanitized/perfjit" "${arguments[@]}"
    sanitized="$status $stderr"
    run --separate-stderr timeout 300 "$BUILD/perfjit" "${arguments[@]}"
    [ "$sanitized" = "$status $stderr" ] || complain "sanitized: $sanitized; as shipped: $status $stderr"
    [ -z "$output" ] || complain "on stdout: $output"
}

# refused STATUS TEXT... -- ARGUMENT...: perfjit ends with STATUS, says each TEXT, and leaves everything as it was.
refused() {
    local wanted=$1 texts=()
    shift
    while [ "$1" != -- ]; do
        texts+=("$1")
        shift
    done
    shift
    files . >../before
    both "$@"
    exits "$wanted"
    says "${texts[@]}"
    files . >../after
    same ../after ../before
}

# injected STATUS TEXT... -- ARGUMENT...: perfjit inject ends with STATUS, says each TEXT, and leaves out.data and its ELF
# files behind, and nothing else.
injected() {
    local wanted=$1 texts=()
    shift
    while [ "$1" != -- ]; do
        texts+=("$1")
        shift
    done
    shift
    files . | grep -v '^out\.data' >../before || true
    both inject -o out.data "$@"
    exits "$wanted"
    says "${texts[@]}"
    files . | grep -vE '^out\.data f |^out\.data\.dso d |^out\.data\.dso/[0-9a-f]{8}( d|/jit-[a-z0-9_]+\.so f) ' >../after || true
    same ../after ../before
    [ -s out.data ]
}

# The functions that out.data has samples of, as numbers.
named() {
    samples out.data | sed -nE 's/.* function_0*([0-9]+)$/\1/p' | sort -n | uniq | xargs
}

# The dump's records: number, offset, size.
offset() {
    perfjit dump --json "$pristine" | jq "select(.record == $1).offset"
}

all=$(seq 0 19 | xargs)

# ---- Dumps ----

@test "no process left a dump: 1" {
    recording none record none.data true
    refused 1 "none.data: no jitdump found" "PERFJIT=dump" -- inject -i none.data
}

@test "the dump that the profile names is missing: 1, with its path and --jitdump" {
    rm "$named_dump"
    refused 1 "${named_dump#"$paths_from"}" "--jitdump FILE" -- inject -i "$sound" -o out.data
}

@test "a dump that was moved is found with --jitdump: 0" {
    mkdir moved
    mv "$named_dump" moved/
    injected 0 " 0 parts of the input skipped" -- -i "$sound" --jitdump "moved/$dump"
    [ "$(named)" = "$all" ]
}

@test "a dump that was renamed is found with --jitdump too, by the pid in its header, and stands for the missing one: 0" {
    mv "$named_dump" other.name
    injected 0 " 0 parts of the input skipped" -- -i "$sound" --jitdump other.name
    [ "$(named)" = "$all" ]
}

@test "--jitdump PID:FILE is of that process: 0; of one that was not recorded, or without FILE: 1; a path may have a colon" {
    local process=${dump//[!0-9]/} at
    mv "$named_dump" a:b
    for at in "$process:a:b" a:b; do
        injected 0 " 0 parts of the input skipped" -- -i "$sound" --jitdump "$at"
        [ "$(named)" = "$all" ]
    done
    refused 1 "process 1 of a:b is not in this recording" -- inject -i "$sound" -o none.data --jitdump 1:a:b
    refused 1 "--jitdump 1: names no file: --jitdump PID:FILE" -- inject -i "$sound" -o none.data --jitdump 1:
}

# The advice must not be the command that was just run.
@test "a dump named with --jitdump is not there: 3, and it is not said to name it with --jitdump" {
    injected 3 "1 x dump that can't be used" "gone/jit-7.dump: No such file or directory" -- \
        -i "$sound" --jitdump gone/jit-7.dump
    [[ $stderr != *"--jitdump"* ]] || complain "it said: $stderr"
    [ "$(named)" = "$all" ]
}

record_elsewhere() {
    # shellcheck disable=SC2016 # for the inner shell
    HOME=$BATS_TEST_TMPDIR PERFJIT=dump JITDUMPDIR=$PWD unshare --uts sh -c 'hostname elsewhere && exec perf record -q --no-bpf-event -k mono -e cpu-clock -F 2000 -o far.data "$0" -n 20 -s 0.2' \
        "$BUILD/producers/many_functions"
}

# bats test_tags=both
@test "the dump of another machine's recording is missing: it is said that --root can help" {
    require_root
    local place
    recording elsewhere record_elsewhere
    place=$(dumps_of far.data)
    place=${place#"$paths_from"} place=${place%/jitdump-*}
    mkdir -p box"$place"
    mv jitdump-* box"$place"
    without_root=yes refused 1 ".dump: No such file or directory: it was recorded on elsewhere; --root DIR says where that machine's files are" -- \
        inject -i far.data -o out.data
    injected 0 -- -i far.data --root box
    refused 1 ".dump: No such file or directory, nor below --root $BATS_TEST_TMPDIR" -- inject -i far.data -o none.data --root "$BATS_TEST_TMPDIR"
}

# bats test_tags=live
@test "the dump of this machine's recording is missing: nothing is said of --root" {
    rm "$named_dump"
    refused 1 "$named_dump: No such file or directory;" -- inject -i "$sound" -o none.data
    [[ $stderr != *--root* ]] || complain "it said: $stderr"
}

@test "one of two dumps is missing: 3, and the other's functions have names" {
    JITDUMPDIR=$PWD PERFJIT=dump recording two record two.data sh -c '"$0" -n 20 -s 0.3 & "$0" -n 20 -s 0.3; wait' \
        "$BUILD/producers/many_functions"
    dumps_of two.data >../dumps
    [ "$(wc -l <../dumps)" -eq 2 ]
    local lost
    lost=$(head -1 ../dumps)
    rm "$lost"
    injected 3 "1 x dump missing" "${lost#"$paths_from"}" " 1 part of the input skipped" -- -i two.data
    [ "$(named)" = "$all" ]
}

cut_in_record() { # NUMBER...
    local number at more
    for number; do
        at=$(offset $number)
        for more in 5 15 16 55 70; do
            head -c $((at + more)) "$pristine" >"$dump"
            injected 3 "1 x dump cut short" "$dump: record $number at 0x$(printf %x "$at")" -- -i "$sound" --jitdump "$dump"
            [ "$(named)" = "$(seq 0 $((number - 1)) | xargs)" ]
        done
    done
}

@test "a dump cut short: 3, with file, record and offset; the functions before it have names" {
    cut_in_record 10
}

# bats test_tags=all
@test "... in its first record, and in its last" {
    cut_in_record 0 19
}

@test "a dump that ends between two records: 0" {
    head -c "$(offset 10)" "$pristine" >"$dump"
    injected 0 -- -i "$sound" --jitdump "$dump"
    [ "$(named)" = "$(seq 0 9 | xargs)" ]
}

# cut_anywhere PARTS: so many cuts, as far apart.
cut_anywhere() {
    local size at
    size=$(stat -c %s "$pristine")
    for at in $(seq 0 $((size / $1)) "$size"); do
        head -c "$at" "$pristine" >"$dump"
        both inject -o out.data -i "$sound" --jitdump "$dump"
        [[ $status =~ ^[013]$ ]] || complain "cut at $at: status $status: $stderr"
    done
}

@test "a dump cut short anywhere: 0, 1 or 3, and never another end" {
    cut_anywhere 7
}

# bats test_tags=all
@test "... in sixty places" {
    cut_anywhere 60
}

@test "a dump shorter than its header, an empty one, and one that is none: 1" {
    head -c 39 "$pristine" >"$named_dump"
    refused 1 "$named_dump: only 39 bytes long" -- inject -i "$sound" -o out.data
    : >"$named_dump"
    refused 1 "$named_dump: nothing of it was written: its process ended" -- inject -i "$sound" -o out.data
    printf 'This is a text of more than forty bytes, not a dump.\n' >"$named_dump"
    refused 1 "$named_dump: not a jitdump file" -- inject -i "$sound" -o out.data
    refused 1 "--jitdump $PWD/none: No such file or directory" -- inject -i "$sound" -o out.data --jitdump "$PWD/none"
    refused 1 "$sound: not a jitdump file but a recording of perf record's: perfjit report and perfjit check read it" -- dump "$sound"
}

@test "a FIFO in the place of the dump: 1, at once" {
    rm "$named_dump"
    mkfifo "$named_dump"
    refused 1 "$named_dump: not a regular file" -- inject -i "$sound" -o out.data
}

@test "--jitdump names what is none: 1; but if the profile's own dump is there, that one is used: 3" {
    : >"$dump"
    injected 3 "1 x dump that can't be used" "$dump: nothing of it was written" -- -i "$sound" --jitdump "$dump"
    [ "$(named)" = "$all" ]
    rm -r out.data out.data.dso "$named_dump"
    refused 1 "$dump: nothing of it was written" -- inject -i "$sound" -o out.data --jitdump "$dump"
    refused 1 "nowhere: No such file" -- inject -i "$sound" -o out.data --jitdump nowhere
    refused 1 ".: not a regular file" -- inject -i "$sound" -o out.data --jitdump .
}

@test "records of unknown type: 3, counted; all functions have names" {
    local at unknown='\x4d\0\0\0\x18\0\0\0\x01\0\0\0\0\0\0\0unknown!'
    at=$(offset 10)
    {
        head -c "$at" "$pristine"
        # shellcheck disable=SC2059 # it is a format
        printf "$unknown"
        tail -c +$((at + 1)) "$pristine"
        # shellcheck disable=SC2059
        printf "$unknown"
    } >"$dump"
    injected 3 "2 x record of unknown type" "first: $dump: record 10 at 0x$(printf %x "$at"): id 77, 24 bytes" \
        " 2 parts of the input skipped" -- -i "$sound" --jitdump "$dump"
    [ "$(named)" = "$all" ]
}

@test "a LOAD with fewer bytes than it says: 3, counted; all other functions have names" {
    local at
    at=$(offset 10)
    cp "$pristine" "$dump"
    printf '\xff\xff\xff\0' | dd of="$dump" bs=1 seek=$((at + 40)) conv=notrunc status=none
    injected 3 "1 x broken record" "$dump: record 10 at 0x$(printf %x "$at"): LOAD" "perfjit dump FILE" -- \
        -i "$sound" --jitdump "$dump"
    [ "$(named)" = "$(seq 0 19 | grep -vx 10 | xargs)" ]
}

# broken_in_turn FILE UNTIL STEP COPY ARGUMENT...: one byte of COPY, each STEP bytes, is 0xff; perfjit inject ends as it should.
broken_in_turn() {
    local at
    for ((at = 0; at < $2; at += $3)); do
        cp "$1" "$4"
        printf '\xff' | dd of="$4" bs=1 seek="$at" conv=notrunc status=none
        run --separate-stderr sanitized_perfjit inject -o out.data "${@:5}"
        [[ $status =~ ^[013]$ && $stderr != *Sanitizer* && $stderr != *"runtime error"* ]] ||
            complain "0xff at $at: status $status: $stderr"
    done
}

@test "a dump in which bytes are broken one after the other: 0, 1 or 3, and never another end" {
    broken_in_turn "$pristine" 200 18 "$dump" -i "$sound" --jitdump "$dump"
}

# bats test_tags=all
@test "... every second byte of a dump" {
    broken_in_turn "$pristine" 200 2 "$dump" -i "$sound" --jitdump "$dump"
}

@test "a dump of a process that is not in the profile: 1" {
    cp "$pristine" jit-1.dump
    refused 1 "process 1 of jit-1.dump is not in this recording" -- inject -i "$sound" --jitdump jit-1.dump
}

# ---- Profiles ----

@test "what is no profile: 1" {
    printf 'This is a text of more than sixteen bytes.\n' >text
    : >empty
    refused 1 "text: not a perf.data file" -- inject -i text
    refused 1 "empty: not a perf.data file" -- inject -i empty
    refused 1 "nowhere: " "name another recording" -- inject -i nowhere
    refused 1 ".: is a directory" -- inject -i .
    refused 1 "perf.data: " "name another recording" -- inject
}

# profile_cut_anywhere PARTS
profile_cut_anywhere() {
    local size whole_until at
    size=$(stat -c %s "$sound")
    # Behind the data section there is only what perf record knows of machine and events.
    whole_until=$(($(od -An -j40 -N8 -t u8 "$sound") + $(od -An -j48 -N8 -t u8 "$sound")))
    for at in 1 7 8 15 16 50 103 104 105 $(seq 200 $((size / $1)) $((size - 1))); do
        head -c "$at" "$sound" >cut.data
        rm -rf out.data out.data.dso
        both inject -i cut.data -o out.data
        case $status in
        1) [ "$(find . -mindepth 1)" = ./cut.data ] ;;
        3) perf script -i out.data >../script 2>&1 || complain "cut at $at: $(tail -3 ../script)" ;;
        0) [ "$at" -ge "$whole_until" ] || complain "cut at $at, and nothing said: $stderr" ;;
        *) complain "cut at $at: status $status: $stderr" ;;
        esac
    done
}

@test "a profile cut short anywhere: 1 or 3, and what is written can be read" {
    profile_cut_anywhere 4
}

# bats test_tags=all
@test "... in 25 places" {
    profile_cut_anywhere 25
}

# A record has 8 bytes or more: all cuts are inside the last one.
@test "a profile cut short in its records: 3, counted once; the names before it are there" {
    local end data
    read -ra data <<<"$(od -An -tu8 -w16 -j40 -N16 "$sound")" # where the records are, and how many bytes
    end=$((data[0] + data[1]))
    # No further: perf writes one processor's buffer after the other's, so that the mapping of the dump may be near the end.
    for less in 1 4 7; do
        head -c $((end - less)) "$sound" >cut.data
        injected 3 "1 x perf.data cut short" "cut.data: " " 1 part of the input skipped" -- -i cut.data
        [ "$(named)" = "$all" ]
    done
}

@test "a profile whose writer was killed: 3, and every record that it wrote counts; with none: 1" {
    local data all
    read -ra data < <(od -A n -t u8 -j 40 -N 16 "$sound")
    perfjit inject -q -i "$sound" -o out.data
    all=$(named)
    head -c $((data[0] + data[1])) "$sound" >killed.data
    printf '\0\0\0\0\0\0\0\0' | dd of=killed.data bs=1 seek=48 conv=notrunc status=none
    injected 3 "1 x perf.data cut short" "killed.data: its header does not tell where its records end" -- -i killed.data
    [ "$(named)" = "$all" ]
    head -c "${data[0]}" killed.data >empty.data
    refused 1 "empty.data: has no records" -- inject -i empty.data
}

@test "a profile in which bytes are broken one after the other: 0, 1 or 3, and never another end" {
    broken_in_turn "$sound" 400 36 broken.data -i broken.data
}

# bats test_tags=all
@test "... every fourth byte of a profile" {
    broken_in_turn "$sound" 400 4 broken.data -i broken.data
}

# Compressed files and streams are unpacked first: sweeps of their own.
check_damaged_form() { # DATA STEP
    local size at
    size=$(stat -c %s "$1")
    for at in 7 16 17 24 104 $(seq 150 $((size * $2 / 12)) $((size - 1))); do
        head -c "$at" "$1" >cut.data
        rm -rf out.data out.data.dso
        both inject -i cut.data -o out.data
        case $status in
        1) [ ! -e out.data ] && [ ! -e out.data.dso ] ;;
        [03]) perf script -i out.data >../script 2>&1 || complain "cut at $at: $(tail -3 ../script)" ;;
        *) complain "cut at $at: status $status: $stderr" ;;
        esac
    done
    broken_in_turn "$1" 300 $((5 * $2)) broken.data -i broken.data
    broken_in_turn "$1" "$size" $((size * $2 / 30)) broken.data -i broken.data
}

compressed() {
    PERFJIT=dump JITDUMPDIR=$PWD recording compressed record packed.data -z "$BUILD/producers/many_functions" -n 20 -s 0.2
}

piped() {
    PERFJIT=dump JITDUMPDIR=$PWD recording piped record_piped
}

record_piped() {
    record - "$BUILD/producers/many_functions" -n 20 -s 0.2 >piped.data
}

@test "a compressed profile cut short or broken anywhere: 0, 1 or 3, and what is written can be read" {
    compressed
    check_damaged_form packed.data 10
}

@test "a stream cut short or broken anywhere: 0, 1 or 3, and what is written can be read" {
    piped
    check_damaged_form piped.data 10
}

# bats test_tags=all
@test "... both, in ten times as many places" {
    compressed
    check_damaged_form packed.data 1
    piped
    check_damaged_form piped.data 1
}

# ---- Output ----

@test "an output in a directory that does not exist, or below a file: 1" {
    touch file
    refused 1 "no/such/out.data: " "No such file or directory" -- inject -i "$sound" -o no/such/out.data
    refused 1 "file/out.data: " "Not a directory" -- inject -i "$sound" -o file/out.data
    refused 1 "no/such/elf: " "No such file or directory" -- inject -i "$sound" --dso-dir no/such/elf
    refused 1 "file/elf: " "Not a directory" -- inject -i "$sound" --dso-dir file/elf
}

@test "something is in the way of the ELF files, or of the output: 1" {
    touch out.data.dso
    refused 1 "out.data.dso: is in the way" -- inject -i "$sound" -o out.data
    rm out.data.dso
    ln -s /tmp out.data.dso
    refused 1 "out.data.dso: is in the way" -- inject -i "$sound" -o out.data
    rm out.data.dso
    mkdir -p directory
    refused 1 "directory: " -- inject -i "$sound" -o directory
}

# in_mount OPTIONS COMMAND...: run it beside a new tmpfs called mnt, of which the contents are listed in ../left.
in_mount() {
    local as_root=()
    [ "$(id -u)" = 0 ] || as_root=(--map-root-user)
    mkdir -p mnt
    # shellcheck disable=SC2016 # for the inner shell
    unshare --mount "${as_root[@]}" bash -c '
        mount -t tmpfs -o "$1" none mnt || exit 99
        shift
        "$@"
        status=$?
        find mnt -mindepth 1 >../left
        exit $status' in_mount "$@"
}

check_mount() {
    local options=$1 text=$2
    shift 2
    mkdir -p mnt
    files . >../before
    for build in "$BUILD/sanitized" "$BUILD"; do
        run --separate-stderr in_mount "$options" "$build/perfjit" inject -i "$sound" "$@"
        exits 1
        says "$text"
        same ../left /dev/null
    done
    files . >../after
    same ../after ../before
}

# bats test_tags=live
@test "a read-only file system: 1" {
    check_mount ro "mnt/out.data: can't write it: Read-only file system" -o mnt/out.data
    check_mount ro "mnt/elf: can't make it: Read-only file system" -o out.data --dso-dir mnt/elf
}

# bats test_tags=live
@test "a full file system: 1" {
    check_mount size=16k "No space left on device" -o mnt/out.data --dso-dir elf
    check_mount size=4k "No space left on device" -o out.data --dso-dir mnt/elf --layout function
}

@test "-o -: status 1 when nobody can take it" {
    files . >../before
    to_full() { perfjit inject -i "$sound" -o - >/dev/full; }
    run --separate-stderr to_full
    exits 1
    says "No space left on device"
    files . >../after
    same ../after ../before
}

@test "a failed run leaves the output of an earlier one as it was" {
    perfjit inject -i "$sound" -o out.data
    : >"$named_dump"
    refused 1 "$named_dump" -- inject -i "$sound" -o out.data
    [ "$(named)" = "$all" ]
}

# ---- Usage ----

@test "the output is the input, by whatever name: 2" {
    cp "$sound" same.data
    ln -s same.data symbolic.data
    ln same.data hard.data
    for output in same.data ./same.data symbolic.data hard.data; do
        refused 2 "$output: is an input as well" "-o FILE" -- inject -i same.data -o "$output"
    done
    cmp same.data "$sound"
}

@test "wrong usage: 2" {
    refused 2 "--no-such-option" -- inject --no-such-option
    refused 2 "--layout is image or function, not 'heap'" -- inject -i "$sound" --layout heap
    refused 2 "unexpected argument 'perf.data'" -- inject "$sound" perf.data
    refused 2 "unexpected argument 'perf.data'" -- inject -i "$sound" perf.data
    refused 2 "'perf.data' is a second one" -- check -i "$sound" perf.data
    refused 2 "unexpected argument 'perf.data'" -- report -i "$sound" perf.data
    refused 2 "requires an argument" -- inject -i
    refused 2 "Usage: perfjit COMMAND" --
    refused 2 "there is no command 'insert'" "Usage: perfjit COMMAND" -- insert
}

@test "--help and --version: 0, on stdout" {
    local arguments
    for arguments in --help -h help --version "inject --help"; do
        # shellcheck disable=SC2086 # two words
        run --separate-stderr sanitized_perfjit $arguments
        exits 0
        # shellcheck disable=SC2086
        run --separate-stderr perfjit $arguments
        exits 0
        [ -z "$stderr" ]
        [ -n "$output" ]
    done
    run perfjit inject --help
    for option in input output layout dso-dir jitdump root verbose quiet; do
        [[ $output == *--$option* ]] || complain "--$option is not explained"
    done
}
