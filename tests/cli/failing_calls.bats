# The n-th call of malloc, open, mmap, write, rename, ... fails, for each n: an error in words, no leak, and files that are
# sound or not there.  tests/producers/fail_nth.c makes them fail; LeakSanitizer looks for leaks.
# bats file_tags=more
load helper

setup_file() {
    require_perf || return 0
    cd "$BATS_FILE_TMPDIR" || return
    mkdir dumps large
    PERFJIT=dump JITDUMPDIR=$PWD/dumps record perf.data "$BUILD/producers/every_record" 0.2
    perfjit inject -q -i perf.data -o wanted.data
    PERFJIT=dump JITDUMPDIR=$PWD/large record large.data "$BUILD/producers/many_functions" -n 15000 -b 160 -s 0.3
}

setup() {
    require_perf
    apart=${BRIEF:+5} # in make check every fifth call, where there are many
    mkdir "$BATS_TEST_TMPDIR/work"
    cd "$BATS_TEST_TMPDIR/work"
}

# Without the option ASan wants to come first, and the shim would never be asked.
failing() {
    timeout 30 env FAIL_CALLS="$1" FAIL_NTH="$2" FAIL_COUNT=../count ASAN_OPTIONS=verify_asan_link_order=0 \
        LD_PRELOAD="$BUILD/fail_nth.so" "${@:3}" >../stdout 2>../stderr
}

sound_end() {
    ! grep -qE 'Sanitizer|runtime error|Assertion' ../stderr || complain "$1: $(head -30 ../stderr)"
    [[ $2 =~ ^[013]$ ]] || complain "$1: status $2: $(cat ../stderr)"
}

# One run of perfjit inject to which something is refused.  0: nothing was needed of it.  3: something is missing, as told.
check_inject() {
    local call="$1 number $2" status=0
    shift 2
    rm -rf out.data out.data.dso
    failing "${call%% *}" "${call##* }" "$BUILD/sanitized/perfjit" inject -i "$BATS_FILE_TMPDIR/${input:-perf.data}" -o out.data "$@" || status=$?
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
    for ((n = 1; n <= count; n += count > 20 ? ${apart:-1} : 1)); do
        check_inject "$calls" "$n" "${@:2}"
    done
    echo "# $calls: $count calls; failing ones ended ${statuses[1]} runs with 1, ${statuses[3]} with 3, $((statuses[0] - 1)) with 0" >&3
    [ "${statuses[1]}" -gt 0 ]
}

# bats test_tags=all
@test "perfjit inject, each allocation fails" {
    sweep_inject malloc,calloc,realloc
    sweep_inject malloc,calloc,realloc --layout function
}

@test "perfjit inject, each opening fails" {
    sweep_inject open,openat,fopen,opendir,fdopendir,realpath,mkostemp,mkdtemp,memfd_create
}

@test "perfjit inject, each mapping fails" {
    sweep_inject mmap,mremap
}

@test "perfjit inject, each look at a file fails" {
    sweep_inject fstat,stat,lstat
}

@test "perfjit inject, each writing fails" {
    sweep_inject write,pwrite,pwrite64,pwritev
}

@test "perfjit inject, each change of a name or mode fails" {
    sweep_inject rename,renameat,fchmod
}

# Its code is copied by a thread before anybody knows what becomes of it (image/image_draft.h).
@test "perfjit inject of a large dump, each opening, writing and renaming fails" {
    input=large.data sweep_inject open,openat
    input=large.data sweep_inject write,pwrite,pwrite64
    input=large.data sweep_inject rename,renameat,fchmod
}

@test "perfjit inject over an earlier output: whatever fails, it or the new one is whole" {
    local n count status names
    statuses=(0 0 0 0)
    perfjit inject -q -i "$BATS_FILE_TMPDIR/perf.data" -o out.data --layout function
    cp -r out.data.dso ../first.dso
    cp out.data ../first.data
    for ((n = 1, count = 99; n <= count; n += count > 20 ? ${apart:-1} : 1)); do
        status=0
        failing rename,renameat,fchmod,write,pwritev,pwrite,openat,fdopendir "$n" \
            "$BUILD/sanitized/perfjit" inject -q -i "$BATS_FILE_TMPDIR/perf.data" -o out.data || status=$?
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
    [ "${statuses[1]}" -gt 2 ]
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

@test "the writer, each call fails" {
    local calls count n
    for calls in malloc,calloc,realloc open,openat mmap,mremap,madvise ftruncate,fallocate fstat,lstat pwritev,write getcwd; do
        statuses=(0 0 0 0)
        check_writer "$calls" 0
        [ "${statuses[0]}" = 1 ] || complain "without a failure: $(cat ../stderr)"
        count=$(cat ../count)
        for ((n = 1; n <= count; n += count > 20 ? ${apart:-1} : 1)); do
            check_writer "$calls" "$n"
        done
        echo "# $calls: $count calls; failing ones ended ${statuses[1]} runs with 1, $((statuses[0] - 1)) with 0" >&3
    done
}

# ---- The other commands ----

# sweep CALLS LEFT ARGUMENT...: perfjit with these arguments, once for each call that fails.  LEFT: the one file that may be left behind,
# whole, if the status is not 1.
sweep() {
    local calls=$1 left=$2 count=1 n status
    shift 2
    statuses=(0 0 0 0)
    for ((n = 0; n <= count; n += count > 20 ? ${apart:-1} : 1)); do
        rm -f "$left"
        status=0
        failing "$calls" "$n" "$BUILD/sanitized/perfjit" "$@" || status=$?
        [ "$n" != 0 ] || count=$(cat ../count)
        sound_end "$1, $calls number $n" "$status"
        [ "$status" != 1 ] || [ -s ../stderr ] || complain "$1, $calls number $n: no word of why"
        [ "$status" != 1 ] || [ -z "$(find . -mindepth 1)" ] || complain "$1, $calls number $n: left over: $(ls)"
        [ -z "$left" ] || [ "$status" = 1 ] || cmp "$left" ../wanted || complain "$1, $calls number $n: not whole"
        statuses[status]=$((statuses[status] + 1))
    done
    echo "# $1: $calls: $count calls; ${statuses[1]} runs ended with 1, ${statuses[3]} with 3, ${statuses[0]} with 0" >&3
    [ "${statuses[1]}" -gt 0 ] && [ "$((statuses[0] + statuses[3]))" -gt 0 ]
}

# bats test_tags=all
@test "perfjit check of a recording, each allocation fails" {
    sweep malloc,calloc,realloc "" check "$BATS_FILE_TMPDIR/perf.data"
}

@test "perfjit check and dump, each call fails" {
    local dump
    dump=$(echo "$BATS_FILE_TMPDIR"/dumps/jitdump-*/jit-*.dump)
    sweep malloc,calloc,realloc "" check "$dump"
    sweep open,fstat,mmap "" check "$dump"
    sweep open,fstat,mmap "" check "$BATS_FILE_TMPDIR/perf.data"
    sweep open,fstat,mmap "" dump "$dump"
}

@test "perfjit check --repair, each call fails: the whole copy or none" {
    local dump
    dump=$(echo "$BATS_FILE_TMPDIR"/dumps/jitdump-*/jit-*.dump)
    perfjit check --repair ../wanted "$dump" >/dev/null
    sweep malloc,calloc,realloc out.dump check --repair out.dump "$dump"
    sweep open,openat,fstat,mmap,mkostemp out.dump check --repair out.dump "$dump"
    sweep write,pwritev,rename,renameat,fchmod out.dump check --repair out.dump "$dump"
}

# The copy of what others may write, and of a stream.
@test "perfjit inject, each reading fails" {
    cp "$BATS_FILE_TMPDIR/perf.data" ../others.data
    chmod 660 ../others.data "$BATS_FILE_TMPDIR"/dumps/jitdump-*/jit-*.dump
    sweep_inject read,pread -i ../others.data
    chmod 600 "$BATS_FILE_TMPDIR"/dumps/jitdump-*/jit-*.dump
}

# A runtime goes on whatever libperfmap refuses; map_lines ends with its text and status 1 instead.
@test "libperfmap, each call fails" {
    local calls count n status map
    mkdir maps
    for calls in malloc,calloc open fstat,lstat write fchmod pread mmap,madvise; do
        statuses=(0 0)
        for ((n = 0, count = 1; n <= count; n += count > 20 ? ${apart:-1} : 1)); do
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
        *) [ "${statuses[1]}" -gt 0 ] ;;
        esac
    done
}
