# Directories, dumps and profiles that somebody made to do harm, and runs that end in the middle.
load helper

# many.data is for runs that last a while.  $named_dump, of sound.data, is made anew for each test.
setup_file() {
    require_perf || return 0
    cd "$BATS_FILE_TMPDIR" || return
    sound_recording functions
    dumps_of sound.data >named_dump
    cp "$(cat named_dump)" pristine.dump
    mv "$(cat named_dump)" original.dump
    PERFJIT=dump JITDUMPDIR=$PWD recording many record many.data "$BUILD/producers/many_functions" -n 600 -b 200 -s 0.5
    chmod 755 . jitdump-* # for an ordinary user
}

setup() {
    require_perf
    sound=$BATS_FILE_TMPDIR/sound.data
    named_dump=$(cat "$BATS_FILE_TMPDIR/named_dump")
    dump=${named_dump##*/}
    rm -rf "$named_dump"
    # The inode that was mapped, or it would be refused for that.
    cat "$BATS_FILE_TMPDIR/pristine.dump" >"$BATS_FILE_TMPDIR/original.dump"
    chmod 644 "$BATS_FILE_TMPDIR/original.dump" "$sound"
    [ "$(id -u)" != 0 ] || chown 0:0 "$BATS_FILE_TMPDIR/original.dump" "$sound"
    ln "$BATS_FILE_TMPDIR/original.dump" "$named_dump"
    mkdir "$BATS_TEST_TMPDIR/work"
    cd "$BATS_TEST_TMPDIR/work"
    tries=${TORTURE:-${BRIEF:-40}}
}

require_root() {
    [ "$(id -u)" = 0 ] || skip "only root can give files away"
}

# refused TEXT... -- ARGUMENT...: status 1, soon, each TEXT is said, nothing has changed.
refused() {
    local texts=()
    while [ "$1" != -- ]; do
        texts+=("$1")
        shift
    done
    shift
    files . >../before
    local arguments
    with_root inject "$@"
    run --separate-stderr timeout 300 "$BUILD/perfjit" "${arguments[@]}"
    exits 1
    says "${texts[@]}"
    files . >../after
    same ../after ../before
}

injects() {
    local arguments
    with_root inject -o out.data "$@"
    run --separate-stderr timeout 300 "$BUILD/perfjit" "${arguments[@]}"
    exits 0
    samples out.data | grep -q function_
}

# as USER COMMAND...: with that user id, and no groups.
as() {
    setpriv --reuid "$1" --regid "$1" --clear-groups "${@:2}"
}

# ---- Whose dump ----

# put_there UID: the same bytes in another file, which that user could have put in the place of the process's own.
put_there() {
    rm -f "$named_dump"
    cat "$BATS_FILE_TMPDIR/pristine.dump" >"$named_dump"
    chown "$1:$1" "$named_dump"
}

# bats test_tags=live
@test "the dump that the process mapped is read, whoever owns it" {
    require_root
    chown 12345 "$named_dump"
    injects -i "$sound"
}

# bats test_tags=live
@test "a dump that another user put there is refused, but for --force and --jitdump" {
    require_root
    put_there 12345
    refused "$named_dump" "belongs to the user with id 12345" "--force" "--jitdump FILE" -- -i "$sound"
    injects -i "$sound" --force
    injects -i "$sound" --jitdump "$named_dump"
    chown 12345 "$sound"
    injects -i "$sound"
}

# bats test_tags=live
@test "one of two dumps is another user's: 3" {
    require_root
    PERFJIT=dump JITDUMPDIR=$PWD record two.data sh -c '"$0" -n 5 -s 0.2; "$0" -n 5 -s 0.2' \
        "$BUILD/producers/many_functions"
    local first
    first=$(dumps_of two.data | head -1)
    cp "$first" copy
    mv copy "$first"
    chown 12345 "$first"
    run --separate-stderr perfjit inject -i two.data -o out.data
    exits 3
    says "1 x dump of another user" "--force"
}

# bats test_tags=live
@test "an ordinary user: own dumps and root's are read, what others put there is not" {
    require_root
    chmod 777 . && chmod 755 .. "$BATS_FILE_TMPDIR" "$BATS_RUN_TMPDIR"
    as 12345 test -x "$BUILD/perfjit" -a -r "$sound" || skip "the build can't be reached by an ordinary user"
    for owner in 0 12345; do
        chown $owner "$named_dump"
        run --separate-stderr as 12345 "$BUILD/perfjit" inject -i "$sound" -o "out.$owner"
        exits 0
    done
    put_there 23456
    run --separate-stderr as 12345 "$BUILD/perfjit" inject -i "$sound" -o out.other
    exits 1
    says "belongs to the user with id 23456"
    chmod 600 "$named_dump"
    run --separate-stderr as 12345 "$BUILD/perfjit" inject -i "$sound" -o out.other
    exits 1
    says "Permission denied"
    [ ! -e out.other ] && [ ! -e out.other.dso ]
}

# ---- What is at the dump's path ----

@test "a FIFO, a directory or a link to itself in the place of the dump: 1, at once" {
    rm "$named_dump"
    mkfifo "$named_dump"
    refused "$named_dump: not a regular file" -- -i "$sound"
    rm "$named_dump"
    mkdir "$named_dump"
    refused "$named_dump: not a regular file" -- -i "$sound"
    rmdir "$named_dump"
    ln -s "$named_dump" "$named_dump"
    refused "${named_dump#"$paths_from"}" -- -i "$sound"
}

# Below --root a link leads to nothing.
# bats test_tags=live
@test "a device in the place of the dump: 1, at once" {
    local device
    for device in /dev/zero /dev/null /dev/full /dev/tty; do
        ln -sfn "$device" "$named_dump"
        refused "$named_dump" -- -i "$sound"
    done
    rm "$named_dump"
    if mknod "$named_dump" c 1 5 2>/dev/null; then
        refused "$named_dump" -- -i "$sound"
    fi
}

@test "the profile itself is a FIFO that says nothing of use, or has no end: 1, at once" {
    refused "/dev/zero: not a perf.data file" -- -i /dev/zero
    refused "standard input: not a perf.data file" -- -i - </dev/zero
    refused "/dev/null: not a perf.data file" -- -i /dev/null
    mkfifo fifo
    yes >fifo &
    refused "fifo: not a perf.data file" -- -i fifo
}

@test "names that lead out of the directory make no file there" {
    mkdir -p a/b/c
    sed 's|function_0|../../../x|g' "$BATS_FILE_TMPDIR/pristine.dump" >../other.dump # of the same length
    [ "$(stat -c %s ../other.dump)" = "$(stat -c %s "$named_dump")" ]
    cat ../other.dump >"$named_dump"
    find . "$BATS_TEST_TMPDIR" "$BATS_FILE_TMPDIR" | grep -v perfjit-log | sort >"$BATS_TEST_TMPDIR/before" || true
    perfjit inject -i "$sound" -o a/b/c/out.data --layout function
    find . "$BATS_TEST_TMPDIR" "$BATS_FILE_TMPDIR" | sort >"$BATS_TEST_TMPDIR/after"
    comm -13 "$BATS_TEST_TMPDIR/before" "$BATS_TEST_TMPDIR/after" >"$BATS_TEST_TMPDIR/new"
    grep -vE '/a/b/c/out\.data(\.dso(/[0-9a-f]{8})?(/jit-[a-z0-9_-]+\.so)?)?$|/(before|after|new)$' \
        "$BATS_TEST_TMPDIR/new" && complain "files elsewhere"
    samples a/b/c/out.data | grep -qF '../..'
}

# ---- What is in the way ----

@test "a symbolic link, a FIFO or a device at the output: 1, and it stays" {
    echo precious >victim
    ln -s victim out.data
    refused "out.data: is a symbolic link" -- -i "$sound" -o out.data
    grep -qx precious victim
    ln -sfn nowhere out.data
    refused "out.data: is a symbolic link" -- -i "$sound" -o out.data
    rm out.data
    mkfifo out.data
    refused "out.data: is a FIFO" -- -i "$sound" -o out.data
    rm out.data
    if mknod out.data c 1 3 2>/dev/null; then
        refused "out.data: is a device" -- -i "$sound" -o out.data
    fi
    refused "/dev/null: is a device" -- -i "$sound" -o /dev/null
}

@test "a hard link at the output: the other name keeps its contents" {
    echo precious >victim
    ln victim out.data
    injects -i "$sound"
    grep -qx precious victim
}

@test "a symbolic link at the directory of ELF files: 1, and what it names stays as it is" {
    mkdir victim
    touch victim/jit-1-0-00000000.so
    ln -s victim out.data.dso
    refused "out.data.dso: is in the way" -- -i "$sound" -o out.data
    refused "out.data.dso: is in the way" -- -i "$sound" -o other.data --dso-dir out.data.dso
    refused "out.data.dso/: is in the way" -- -i "$sound" -o other.data --dso-dir out.data.dso/
}

@test "symbolic and hard links inside the directory of ELF files: replaced, not followed" {
    local name
    echo precious >victim
    injects -i "$sound"
    for name in $(elf_files out.data.dso); do
        rm "$name"
        ln -s ../victim "$name"
    done
    ln victim out.data.dso/jit-7-0-12345678.so
    ln -s ../victim out.data.dso/jit-7-1-12345678.so
    injects -i "$sound"
    grep -qx precious victim
    [ -z "$(find out.data.dso -type l)" ]
    [ ! -e out.data.dso/jit-7-0-12345678.so ]
}

@test "a directory inside the directory of ELF files that is named like one: told or left, never emptied" {
    injects -i "$sound"
    mkdir out.data.dso/jit-7-0-12345678.so
    touch out.data.dso/jit-7-0-12345678.so/precious
    injects -i "$sound"
    [ -e out.data.dso/jit-7-0-12345678.so/precious ]
    local name
    name=$(find out.data.dso -type f -name 'jit-*' ! -path '*precious*' | head -1)
    rm "$name"
    mkdir "$name"
    touch "$name/precious"
    cp out.data before.data
    refused "can't put the ELF files there" -- -i "$sound" -o out.data
    cmp out.data before.data
}

@test "when the output can't be put in place, what was added to a directory of ELF files goes again" {
    mkdir elf
    touch elf/notes.txt elf/jit-1-0-00000000.so
    find . | sort >../before
    to_full() { perfjit inject -i "$BATS_FILE_TMPDIR/many.data" --dso-dir elf -o - --layout function >/dev/full; }
    run --separate-stderr to_full
    exits 1
    says "No space left on device"
    find . | sort >../after
    same ../after ../before
}

# ---- Runs that end in the middle ----

# whole DATA: it and its ELF files are those of an uninterrupted run.
whole() {
    cmp "$1" ../wanted.data && diff -r "$1.dso" ../wanted.dso >&2
}

make_wanted() {
    local start=${EPOCHREALTIME/./}
    "$BUILD/perfjit" inject -q -i "$BATS_FILE_TMPDIR/many.data" -o out.data --layout function
    lasts_us=$((${EPOCHREALTIME/./} - start))
    cp out.data ../wanted.data
    cp -r out.data.dso ../wanted.dso
}

# moment I N: a random moment in the I-th of N parts of a run and half of one more, so that some are early and some late.  The
# N+1-th is the first again.
moment() {
    started_us=${EPOCHREALTIME/./}
    sleep "$(awk -v us="$lasts_us" -v part=$((($1 - 1) % $2 + 1)) -v parts="$2" -v seed="$RANDOM" \
        'BEGIN { srand(seed); printf "%.6f", (part - rand()) / parts * us * 1.5e-6 }')"
}

# The run came to its end: it lasts no longer, and what was measured did if the machine was busy.
learn() {
    local us=$((${EPOCHREALTIME/./} - started_us))
    [ $us -ge "$lasts_us" ] || lasts_us=$us
}

# The only thing that may be there besides.
nothing_else() {
    local left
    left=$(find . -mindepth 1 -maxdepth 1 ! -name out.data ! -name out.data.dso)
    [ -z "$left" ] || complain "left over: $left"
}

# bats test_tags=live
@test "SIGINT, SIGTERM and SIGHUP at any moment: all or nothing, and the signal's status" {
    local i signal status pid all=0 none=0
    make_wanted
    rm -r out.data out.data.dso
    # Until one was early enough, however fast or late things are.
    for ((i = 1; i <= tries || none == 0; i++)); do
        signal=$(printf 'INT\nTERM\nHUP\n' | sed -n "$((i % 3 + 1))p")
        # Background processes of a script ignore SIGINT: env starts it as a terminal would.
        env --default-signal=INT,TERM,HUP "$BUILD/perfjit" inject -q -i "$BATS_FILE_TMPDIR/many.data" -o out.data --layout function 2>../stderr &
        pid=$!
        moment "$i" "$tries"
        kill -s "$signal" "$pid" 2>/dev/null || true
        status=0
        wait "$pid" || status=$?
        nothing_else
        if [ -e out.data ]; then
            whole out.data
            [ "$status" = 0 ] || [ "$status" -gt 128 ]
            learn
            all=$((all + 1))
        else
            [ ! -e out.data.dso ] || complain "ELF files without a profile"
            [ "$status" = $((128 + $(kill -l "$signal"))) ] || complain "status $status: $(cat ../stderr)"
            none=$((none + 1))
        fi
        rm -rf out.data out.data.dso
    done
    echo "# $all runs came to their end, $none were ended by the signal and left nothing" >&3
}

# bats test_tags=live
@test "a signal at any moment leaves the output of an earlier run whole" {
    local i pid
    make_wanted
    for i in $(seq "$(((tries + 3) / 4))"); do
        env --default-signal=INT "$BUILD/perfjit" inject -q -i "$BATS_FILE_TMPDIR/many.data" -o out.data --layout function 2>../stderr &
        pid=$!
        moment "$i" "$(((tries + 3) / 4))"
        kill -s INT "$pid" 2>/dev/null || true
        wait "$pid" || true
        nothing_else
        whole out.data
    done
}

# Every ELF file that out.data names is there.
has_its_files() {
    local file
    maps out.data | grep -oE '/[^ ]*/jit-[a-z0-9_-]+\.so' | sort -u >../named
    [ -s ../named ]
    while read -r file; do
        [ -e "$file" ] || complain "$file is named, and not there"
    done <../named
}

# Nobody is left to clean up, or to put anything right.  The layouts take turns, so that the files do too.
# bats test_tags=live
@test "SIGKILL at any moment: the output is that of the run before, or the whole new one, and its ELF files are there" {
    local i pid layout
    make_wanted
    "$BUILD/perfjit" inject -q -i "$BATS_FILE_TMPDIR/many.data" -o image.data --dso-dir out.data.dso
    for i in $(seq "$tries"); do
        layout=$([ $((i % 2)) = 0 ] && echo function || echo image)
        "$BUILD/perfjit" inject -q -i "$BATS_FILE_TMPDIR/many.data" -o out.data --layout "$layout" 2>../stderr &
        pid=$!
        moment "$i" "$tries"
        kill -s KILL "$pid" 2>/dev/null || true
        wait "$pid" || true
        cmp -s out.data ../wanted.data || cmp -s out.data image.data || complain "neither the old output nor the new one"
        has_its_files
        [ -z "$(find . -mindepth 1 -maxdepth 1 ! -name 'out.data*' ! -name 'image.data*')" ]
        rm -rf out.data.?????? out.data.dso.??????
    done
}

# bats test_tags=live
@test "the disk is full at any moment: all or nothing, and nothing before that is lost" {
    local kib as_root=()
    [ "$(id -u)" = 0 ] || as_root=(--map-root-user)
    make_wanted
    rm -r out.data out.data.dso
    mkdir mnt
    # shellcheck disable=SC2016 # for the inner shell
    run unshare --mount "${as_root[@]}" bash -c '
        all=0 none=0
        for kib in $(seq 8 "$3" 900) $(seq 4000 2000 20000); do
            mount -t tmpfs -o "size=${kib}k,nr_inodes=100k" none mnt || exit 99
            for layout in image function; do
                "$0" inject -q -i "$1" -o mnt/out.data --layout $layout 2>../stderr
                status=$?
                if [ $status = 0 ]; then
                    all=$((all + 1))
                    [ -s mnt/out.data ] && [ -d mnt/out.data.dso ] || exit 3
                    "$0" inject -q -i "$1" -o mnt/out.data --layout function 2>../stderr
                    [ -s mnt/out.data ] || exit 4
                    [ "$(find mnt -mindepth 1 -maxdepth 1 | wc -l)" = 2 ] || exit 5
                else
                    none=$((none + 1))
                    [ $status = 1 ] && grep -q "No space left" ../stderr || { cat ../stderr; exit 6; }
                    [ -z "$(find mnt -mindepth 1)" ] || { find mnt; exit 7; }
                fi
                rm -rf mnt/out.data mnt/out.data.dso
            done
            umount mnt
        done
        echo "$all whole, $none nothing"
        [ $all -gt 0 ] && [ $none -gt 0 ]' "$BUILD/perfjit" "$BATS_FILE_TMPDIR/many.data" x "${TORTURE_STEP:-60}"
    [ "$status" -ne 99 ] || skip "mounting is not permitted"
    [ "$status" -eq 0 ] || complain "$status: $output"
    echo "# $output" >&3
}

@test "the file size limit: 1, no signal, nothing left" {
    local limit
    limited() { # in a process of its own
        (ulimit -f "$limit" && perfjit inject -q -i "$BATS_FILE_TMPDIR/many.data" -o out.data)
    }
    for limit in 1 4 16 64; do
        run --separate-stderr limited
        exits 1
        says "File too large"
        [ -z "$(find . -mindepth 1)" ]
    done
}

# ---- Memory ----

# bats test_tags=all
@test "valgrind finds nothing wrong with the command" {
    command -v valgrind >/dev/null || skip "there is no valgrind"
    local grind=(valgrind -q --error-exitcode=99 --leak-check=full --show-leak-kinds=all --errors-for-leak-kinds=all)
    PERFJIT=dump JITDUMPDIR=$PWD record all.data "$BUILD/producers/every_record" 0.2
    run --separate-stderr "${grind[@]}" "$BUILD/perfjit" inject -v -i all.data -o out.data
    exits 0
    run --separate-stderr "${grind[@]}" "$BUILD/perfjit" inject -i all.data -o - --layout function
    exits 0
    run --separate-stderr "${grind[@]}" "$BUILD/perfjit" dump -v "$(dumps_of all.data)"
    exits 0
    head -c 300 "$(dumps_of all.data)" >cut.dump
    run --separate-stderr "${grind[@]}" "$BUILD/perfjit" dump cut.dump
    exits 3
    run --separate-stderr "${grind[@]}" "$BUILD/perfjit" inject -i cut.dump
    exits 1
}
