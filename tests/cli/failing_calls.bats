# The n-th call of malloc, open, mmap, write, rename, ... fails, for some n, and in make check-all for each.  There must be an
# error in words and no leak, and files are sound or not there.  The failures come from tests/producers/fail_nth.c; LeakSanitizer
# looks for leaks.
load helper

setup_file() {
    require_perf || return 0
    cd "$BATS_FILE_TMPDIR" || return
    sound_recording every-record
}

setup() {
    require_perf
    most=1000000
    mkdir "$BATS_TEST_TMPDIR/work"
    cd "$BATS_TEST_TMPDIR/work"
}

# few: of the calls that could fail, three do.  All do in make check-all.
few() {
    most=3
}

# all_fail: then some must have ended the program.  For a few calls it depends on the length of the paths.
all_fail() {
    [ "$most" -gt 1000 ]
}

# step COUNT: how far apart the calls are that fail.
step() {
    echo $(($1 > most ? $1 / most : 1))
}

# Without the option ASan wants to come first, and the shim would never be asked.
failing() {
    timeout 300 env FAIL_CALLS="$1" FAIL_NTH="$2" FAIL_COUNT=../count ASAN_OPTIONS=verify_asan_link_order=0 \
        LD_PRELOAD="$BUILD/fail_nth.so" "${@:3}" >../stdout 2>../stderr
}

sound_end() {
    ! grep -qE 'Sanitizer|runtime error|Assertion' ../stderr || complain "$1: $(head -30 ../stderr)"
    [[ $2 =~ ^[013]$ ]] || complain "$1: status $2: $(cat ../stderr)"
}

# One run of perfjit inject to which something is refused.  0: nothing was needed of it.  3: something is missing, as told.
check_inject() {
    local call="$1 number $2" status=0 arguments
    shift 2
    rm -rf out.data out.data.dso
    with_root inject -i "${input:-$BATS_FILE_TMPDIR/sound.data}" -o out.data "$@"
    failing "${call%% *}" "${call##* }" "$BUILD/sanitized/perfjit" "${arguments[@]}" || status=$?
    sound_end "$call" "$status"
    case $status in
    1)
        [ -s ../stderr ] || complain "$call: no word of why"
        [ -z "$(find . -mindepth 1)" ] || complain "$call: left over: $(find . -mindepth 1)"
        ;;
    0 | 3)
        [ "$(find . -mindepth 1 -maxdepth 1 | sort | xargs)" = "./out.data ./out.data.dso" ] ||
            complain "$call: left over: $(find . -mindepth 1 -maxdepth 1)"
        [ "$status" = 0 ] || [ -s ../stderr ] || complain "$call: no word of what is missing"
        perf script -i out.data >../script 2>&1 || complain "$call: $(tail -3 ../script)"
        ;;
    esac
    statuses[status]=$((statuses[status] + 1))
}

sweep_inject() {
    local calls=$1 count n
    statuses=(0 0 0 0)
    check_inject "$calls" 0 "${@:2}"
    [ "${statuses[0]}" = 1 ] || complain "without a failure: $(cat ../stderr)"
    count=$(cat ../count)
    [ "$count" -gt 0 ]
    for ((n = 1; n <= count; n += $(step "$count"))); do
        check_inject "$calls" "$n" "${@:2}"
    done
    echo "# $calls: $count calls; failing ones ended ${statuses[1]} runs with 1, ${statuses[3]} with 3, $((statuses[0] - 1)) with 0" >&3
    ! all_fail || [ "${statuses[1]}" -gt 0 ]
}

# bats test_tags=all
@test "perfjit inject, each allocation fails" {
    sweep_inject malloc,calloc,realloc
    sweep_inject malloc,calloc,realloc --layout function
}

inject_with_failures() {
    sweep_inject open,openat,fopen,opendir,fdopendir,realpath,mkostemp,mkdtemp,memfd_create
    sweep_inject mmap,mremap
    sweep_inject fstat,stat,lstat
    sweep_inject write,pwrite,pwrite64,pwritev
    sweep_inject rename,renameat,fchmod
}

@test "perfjit inject: an opening, a mapping, a look at a file, a writing, a change of a name or mode fails" {
    few
    inject_with_failures
}

# bats test_tags=all
@test "... each of them" {
    inject_with_failures
}

# Its code is written in more than one piece.
# bats test_tags=all
@test "perfjit inject of a large dump, each opening, writing and renaming fails" {
    local input=../large.data
    mkdir ../large
    PERFJIT=dump JITDUMPDIR=$PWD/../large record $input "$BUILD/producers/many_functions" -n 15000 -b 160 -s 0.3
    sweep_inject open,openat
    sweep_inject write,pwrite,pwrite64
    sweep_inject rename,renameat,fchmod
}

inject_over_an_earlier_output() {
    local n count status arguments
    statuses=(0 0 0 0)
    perfjit inject -q -i "$BATS_FILE_TMPDIR/sound.data" -o out.data --layout function
    cp -r out.data.dso ../first.dso
    cp out.data ../first.data
    with_root inject -q -i "$BATS_FILE_TMPDIR/sound.data" -o out.data
    for ((n = 1, count = 99; n <= count; n += $(step "$count"))); do
        status=0
        failing rename,renameat,fchmod,write,pwritev,pwrite,openat,fdopendir "$n" "$BUILD/sanitized/perfjit" "${arguments[@]}" || status=$?
        count=$(cat ../count)
        sound_end "number $n" "$status"
        [ -z "$(find . -mindepth 1 -maxdepth 1 -name '*.??????')" ]
        if [ "$status" = 1 ]; then
            cmp out.data ../first.data
            same_files out.data.dso ../first.dso || complain "number $n"
        else
            samples out.data | grep -q ' plain$'
            rm -r out.data out.data.dso
            cp ../first.data out.data
            cp -r ../first.dso out.data.dso
        fi
        statuses[status]=$((statuses[status] + 1))
    done
    ! all_fail || [ "${statuses[1]}" -gt 2 ]
}

@test "perfjit inject over an earlier output: a call fails, and it or the new one is whole" {
    few
    inject_over_an_earlier_output
}

# bats test_tags=all
@test "... each call: an earlier output" {
    inject_over_an_earlier_output
}

# ---- The writer ----

# A runtime goes on whatever jitdump refuses; every_record ends with the library's text and status 1 instead.
check_writer() {
    local call="$1 number $2" status=0
    rm -rf jitdump-*
    PERFJIT=dump JITDUMPDIR=$PWD failing "$1" "$2" "$BUILD/sanitized/producers/every_record" 0 || status=$?
    # every_record ends by exit(1) without freeing, which is no leak of the library's.
    sound_end "$call" "$status"
    [ "$status" = 0 ] || [ -s ../stderr ] || complain "$call: no word of why"
    for dump in jitdump-*/jit-*.dump jitdump-*/stage/jit-*.dump; do
        [ ! -e "$dump" ] || perfjit dump "$dump" >../dump.txt 2>&1 || complain "$call: $(tail -3 ../dump.txt)"
    done
    statuses[status]=$((statuses[status] + 1))
}

writer_with_failures() { # CALLS...
    local calls count n
    for calls; do
        statuses=(0 0 0 0)
        check_writer "$calls" 0
        [ "${statuses[0]}" = 1 ] || complain "without a failure: $(cat ../stderr)"
        count=$(cat ../count)
        for ((n = 1; n <= count; n += $(step "$count"))); do
            check_writer "$calls" "$n"
        done
        echo "# $calls: $count calls; failing ones ended ${statuses[1]} runs with 1, $((statuses[0] - 1)) with 0" >&3
    done
}

writer_calls=(malloc,calloc,realloc open,openat mmap,mremap,madvise ftruncate,fallocate fstat,lstat pwritev,write getcwd)

@test "the writer, a call of each kind fails" {
    few
    writer_with_failures "${writer_calls[@]}"
}

# bats test_tags=all
@test "... each call: the writer" {
    writer_with_failures "${writer_calls[@]}"
}

# ---- The other commands ----

# sweep CALLS LEFT ARGUMENT...: perfjit with these arguments, once for each call that fails.  LEFT: the one file that may be left behind,
# whole, if the status is not 1.
sweep() {
    local calls=$1 left=$2 count=1 n status arguments
    shift 2
    with_root "$@"
    statuses=(0 0 0 0)
    for ((n = 0; n <= count; n += n ? $(step "$count") : 1)); do
        rm -f "$left"
        status=0
        failing "$calls" "$n" "$BUILD/sanitized/perfjit" "${arguments[@]}" || status=$?
        [ "$n" != 0 ] || count=$(cat ../count)
        sound_end "$1, $calls number $n" "$status"
        [ "$status" != 1 ] || [ -s ../stderr ] || complain "$1, $calls number $n: no word of why"
        [ "$status" != 1 ] || [ -z "$(find . -mindepth 1)" ] || complain "$1, $calls number $n: left over: $(ls)"
        [ -z "$left" ] || [ "$status" = 1 ] || cmp "$left" ../wanted || complain "$1, $calls number $n: not whole"
        statuses[status]=$((statuses[status] + 1))
    done
    echo "# $1: $calls: $count calls; ${statuses[1]} runs ended with 1, ${statuses[3]} with 3, ${statuses[0]} with 0" >&3
    ! all_fail || { [ "${statuses[1]}" -gt 0 ] && [ "$((statuses[0] + statuses[3]))" -gt 0 ]; }
}

# bats test_tags=all
@test "perfjit check of a recording, each allocation fails" {
    sweep malloc,calloc,realloc "" check "$BATS_FILE_TMPDIR/sound.data"
}

check_and_dump_with_failures() {
    local dump
    dump=$(dumps_of "$BATS_FILE_TMPDIR/sound.data")
    sweep malloc,calloc,realloc "" check "$dump"
    sweep open,fstat,mmap "" check "$dump"
    sweep open,fstat,mmap "" check "$BATS_FILE_TMPDIR/sound.data"
    sweep open,fstat,mmap "" dump "$dump"
}

@test "perfjit check and dump, a call of each kind fails" {
    few
    check_and_dump_with_failures
}

# bats test_tags=all
@test "... each call: check and dump" {
    check_and_dump_with_failures
}

repair_with_failures() {
    local dump
    dump=$(dumps_of "$BATS_FILE_TMPDIR/sound.data")
    perfjit check --repair ../wanted "$dump" >/dev/null
    sweep malloc,calloc,realloc out.dump check --repair out.dump "$dump"
    sweep open,openat,fstat,mmap,mkostemp out.dump check --repair out.dump "$dump"
    sweep write,pwritev,rename,renameat,fchmod out.dump check --repair out.dump "$dump"
}

@test "perfjit check --repair, a call of each kind fails: the whole copy or none" {
    few
    repair_with_failures
}

# bats test_tags=all
@test "... each call: --repair" {
    repair_with_failures
}

# The copy of what others may write, and of a stream.
inject_where_reading_fails() {
    local input=../others.data
    cp "$BATS_FILE_TMPDIR/sound.data" $input
    chmod 660 $input "$(dumps_of "$input")"
    sweep_inject read,pread
}

@test "perfjit inject, a reading fails" {
    few
    inject_where_reading_fails
}

# bats test_tags=all
@test "... each reading" {
    inject_where_reading_fails
}

# A runtime goes on whatever libperfmap refuses; map_lines ends with its text and status 1 instead.
libperfmap_with_failures() {
    local calls count n status map
    mkdir maps
    for calls in malloc,calloc open fstat,lstat write fchmod pread mmap,madvise; do
        statuses=(0 0)
        for ((n = 0, count = 1; n <= count; n += n ? $(step "$count") : 1)); do
            rm -f maps/*
            status=0
            failing "$calls" "$n" "$BUILD/sanitized/producers/map_lines" maps || status=$?
            [ "$n" != 0 ] || count=$(cat ../count) # of the parent, which ends last
            sound_end "$calls number $n" "$status"
            [ "$n" != 0 ] || [ "$status" = 0 ] || complain "without a failure: $(cat ../stderr)"
            [ "$status" = 0 ] || [ -s ../stderr ] || complain "$calls number $n: no word of why"
            for map in maps/perf-*.map; do
                [ ! -s "$map" ] || ! grep -vqE '^[0-9a-f]+ 100 of the (parent|child)$' "$map" || complain "$calls number $n: half a line in $map"
            done
            statuses[status]=$((statuses[status] + 1))
        done
        echo "# libperfmap: $calls: $count calls; failing ones ended ${statuses[1]} runs with 1, $((statuses[0] - 1)) with 0" >&3
        case $calls in
        fchmod | pread | mmap*) [ "${statuses[1]}" = 0 ] ;; # it does without
        *) ! all_fail || [ "${statuses[1]}" -gt 0 ] ;;
        esac
    done
}

@test "libperfmap, a call of each kind fails" {
    few
    libperfmap_with_failures
}

# bats test_tags=all
@test "... each call: libperfmap" {
    libperfmap_with_failures
}
