# The cases of hostile.bats, live_files.bats and the units that open files, run again as an ordinary user: for that user the
# kernel refuses other things than for root.  There are also traps that only root can set for that user.
# bats file_tags=live
load helper

user=12345

# The tree and the build may be where an ordinary user can't go.
setup_file() {
    [ "$(id -u)" = 0 ] || return 0
    cd "$BATS_FILE_TMPDIR" || return
    mkdir -p tests build/tests build/producers build/sanitized/producers
    cp -r "$here" tests/cli
    cp "$BUILD/perfjit" build/
    cp "$BUILD/sanitized/perfjit" build/sanitized/
    cp "$BUILD"/producers/{many_functions,every_record,line_shapes,restless_file,perf_map_code,both_libraries} build/producers/
    cp "$BUILD"/sanitized/tests/{jitdump_open,perfmap_writer,perfmap_room,process_cases,user_cases,file_bytes}_test build/tests/
    cp "$BUILD"/sanitized/lib*.so.0 build/
    mkdir -m 1777 tmp
    chmod -R a+rX . && chmod 755 . .. "$BATS_RUN_TMPDIR"
}

setup() {
    [ "$(id -u)" = 0 ] || skip "everything else is run as an ordinary user already"
    cd "$BATS_FILE_TMPDIR"
}

as_user() {
    setpriv --reuid $user --regid $user --clear-groups env -u CI HOME="$PWD/tmp" TMPDIR="$PWD/tmp" BATS_TMPDIR="$PWD/tmp" \
        BUILD="$PWD/build" "$@"
}

# A run of bats within one: without what the outer one exports.
bats_as_user() {
    local unset=()
    while read -r name; do unset+=(-u "$name"); done < <(compgen -e BATS)
    as_user env "${unset[@]}" TORTURE=8 bats --tap "$@" >"$BATS_TEST_TMPDIR/tap" 2>&1 3>&- || complain "$(cat "$BATS_TEST_TMPDIR/tap")"
    ! grep '# skip' "$BATS_TEST_TMPDIR/tap" | grep -v 'only root can give files away' || complain "skipped as an ordinary user"
    echo "# $(grep -c '^ok ' "$BATS_TEST_TMPDIR/tap") tests" >&3
    [ "$(grep -v '# skip' "$BATS_TEST_TMPDIR/tap" | grep -c '^ok ')" -ge 6 ]
}

@test "hostile.bats: traps at what is read and written" {
    bats_as_user -f 'FIFO|link|names that lead|directory|elsewhere|put in place' tests/cli/hostile.bats
}

# bats test_tags=all
@test "live_files.bats: files that others change and cut" {
    bats_as_user tests/cli/live_files.bats
}

@test "the units: what libjitdump and libperfmap open, and what they refuse" {
    local name
    for name in jitdump_open perfmap_writer perfmap_room process_cases user_cases file_bytes; do
        as_user env CMOCKA_MESSAGE_OUTPUT=STDOUT "build/tests/${name}_test" >"$BATS_TEST_TMPDIR/log" 2>&1 || complain "$name: $(grep -vE 'RUN|OK' "$BATS_TEST_TMPDIR/log")"
        grep -qE '\[  PASSED  \] [0-9]+ test' "$BATS_TEST_TMPDIR/log"
    done
}

# set_traps FILE: something in the place of the file.  Only root can set all of them.
set_trap() {
    rm -rf "$2"
    case $1 in
    symbolic) ln -s "$PWD/victim" "$2" ;;
    hard) ln victim "$2" ;;
    fifo) mkfifo -m 666 "$2" ;;
    foreign) install -m 666 /dev/null "$2" ;;
    owned) install -o $user -m 600 victim "$2.other" && ln "$2.other" "$2" ;;
    directory) mkdir -m 777 "$2" ;;
    esac
}

# The pid is known when the trap is set: the shell that sets it becomes the runtime.
@test "both libraries: what root has put at the file's place is refused, said and left alone" {
    local trap word pid status
    mkdir -m 1777 -p dumps
    for word in dump map; do
        for trap in symbolic hard fifo foreign owned directory; do
            echo precious >victim
            chmod 666 victim
            export -f set_trap
            export user trap word
            # shellcheck disable=SC2016 # for the inner shell
            status=0
            timeout 20 bash -c '
                # Its own directory, into which root could write all the same.
                install -d -o $user -m 700 dumps/jitdump-$$
                file=dumps/jitdump-$$/jit-$$.dump
                [ $word = dump ] || file=dumps/perf-$$.map
                set_trap $trap $file
                stat -c "%i %s %u %F" $file >dumps/before
                echo $file >dumps/name
                exec setpriv --reuid $user --regid $user --clear-groups env PERFJIT=$word JITDUMPDIR=$PWD/dumps "$@"' trap \
                build/producers/both_libraries dumps >stdout 2>stderr || status=$?
            pid=$(cat dumps/name)
            [ "$status" != 124 ] || complain "$word, $trap: it hangs"
            [ "$status" != 0 ] || complain "$word, $trap: nothing was refused"
            grep -qF "${pid##*/}" stderr || complain "$word, $trap: $(cat stderr)"
            stat -c '%i %s %u %F' "$pid" | cmp - dumps/before || complain "$word, $trap: it was touched"
            grep -qx precious victim
            rm -rf dumps/*
        done
    done
}

@test "a dump that the user may not read: it is said who can" {
    install -m 600 /dev/null secret.dump
    run --separate-stderr as_user build/perfjit dump secret.dump
    exits 1
    says "secret.dump: Permission denied; run perfjit as somebody who may read it"
}
