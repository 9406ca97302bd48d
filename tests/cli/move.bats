# perfjit move: perf names everything at the new place.
load helper

setup_file() {
    cd "$BATS_FILE_TMPDIR" || return
    sound_recording tinyjit
    perfjit inject -q -i sound.data -o made.data
    sound_recording functions
    perfjit inject -q -i sound.data -o other.data
}

# Here are made.data and what perf and perfjit say of it; other.data is another one.
setup() {
    cd "$BATS_TEST_TMPDIR"
    mkdir first
    perfjit move -q --copy "$BATS_FILE_TMPDIR/made.data" first/
    mv first/* .
    perfjit move -q made.data
    perfjit move -q --copy "$BATS_FILE_TMPDIR/other.data" .
    named made.data >wanted
    named other.data >wanted_other
    perfjit check made.data | tail -n +2 | paths_aside >checked
    grep -q 'tj::' wanted
    grep -q 'function_' wanted_other
}

# How perf names each sample and every file of JIT code.
named() {
    perf script -i "$1" -F ip,sym,symoff --show-mmap-events 2>/dev/null | paths_aside
}

# The images' paths, which a move changes.
paths_aside() {
    sed -E 's,/[^ ]*\.dso/,DSO/,g'
}

# The files that perf opens for JIT code.
images_of() {
    maps "$1" | grep -oE '/[^ ]*\.dso/.*' | sort -u
}

# moved_to DATA: it is the recording of `setup`, with all that belongs to it.
moved_to() {
    named "$1" | same /dev/stdin wanted
    perfjit check "$1" | tail -n +2 | paths_aside | same /dev/stdin checked
    local image
    image=$(images_of "$1")
    [ -f "$image" ] && [[ $image == "$(realpath "$1.dso")"/* ]] || complain "$1 names $image"
}

@test "to another name, and into a directory: perf gives all names there; nothing is left" {
    perfjit move made.data moved.data
    moved_to moved.data
    [ ! -e made.data ] && [ ! -e made.data.dso ]
    mkdir place
    run --separate-stderr perfjit move moved.data place
    exits 0
    says "place/moved.data: names 1 image in $PWD/place/moved.data.dso now: perf report -i place/moved.data finds it"
    moved_to place/moved.data
    [ ! -e moved.data ] && [ ! -e moved.data.dso ]
    cd place
    perfjit move -q moved.data ../back.data
    cd ..
    moved_to back.data
    rmdir place
}

@test "--copy: both are whole, and do not need each other" {
    chmod 640 made.data
    perfjit move -q --copy made.data copy.data
    [ "$(stat -c %a copy.data)" = 640 ]
    moved_to made.data
    mkdir away
    mv made.data.dso away
    moved_to copy.data
}

@test "moved by mv: perf gives no names, and after perfjit move all of them" {
    mkdir place
    mv made.data made.data.dso place
    named place/made.data >unnamed
    ! cmp -s unnamed wanted || complain "perf needs no help"
    files place | sed 's/ [0-9]*$//' >before
    perfjit move -q place/made.data
    moved_to place/made.data
    files place | sed 's/ [0-9]*$//' | same /dev/stdin before
    ln -s place/made.data link.data # which stands for the file
    mv place/made.data.dso place/made.data place/..
    ln -sf made.data link.data
    perfjit move -q link.data
    moved_to made.data
    [ -L link.data ]
}

@test "what was there before is kept as NAME.old, and perf names it as before" {
    perfjit move -q made.data other.data
    moved_to other.data
    named other.data.old | same /dev/stdin wanted_other
    perfjit move -q other.data.old third.data
    named third.data | same /dev/stdin wanted_other
    [ ! -e other.data.old ]
    moved_to other.data
}

@test "what perf added to its table of build-ids is moved as well" {
    perf inject -b -i made.data -o ids.data
    perf buildid-list -i ids.data | sort >ids
    grep -qF "$PWD/made.data.dso/" ids
    perfjit move -q --copy ids.data far.data
    perf buildid-list -i far.data | grep -qF "$PWD/far.data.dso/"
    perf buildid-list -i far.data | sed "s,/far.data.dso/,/made.data.dso/," | sort | same /dev/stdin ids
    named far.data | same /dev/stdin wanted
}

@test "an image that several recordings share stays where it is" {
    mv made.data.dso shared.dso
    mkdir made.data.dso
    mv shared.dso/* made.data.dso
    rmdir shared.dso
    perfjit move -q --copy made.data one.data
    cp one.data two.data # both name one.data.dso
    perfjit move -q two.data place.data
    moved_to place.data
    moved_to one.data
}

# refused STATUS TEXT -- ARGUMENT...: nothing changes.
refused() {
    local wanted=$1 text=$2
    shift 3
    files . | grep -vE '^(diff|separate-stderr.*) f' >"$BATS_FILE_TMPDIR/before"
    run --separate-stderr perfjit move "$@"
    exits "$wanted"
    says "$text"
    files . | grep -vE '^(diff|separate-stderr.*) f' | same /dev/stdin "$BATS_FILE_TMPDIR/before"
}

@test "what can't be moved: the reason, and nothing changes" {
    cp "$BATS_FILE_TMPDIR/sound.data" raw.data
    refused 1 "raw.data: names no image of perfjit inject: mv moves it as well" -- raw.data x.data
    head -c 20000 made.data >cut.data
    refused 1 "cut.data: part of it can't be read: perfjit check says which" -- cut.data x.data
    refused 1 "none.data: can't open it: No such file" -- none.data x.data
    refused 1 "none/x.data: can't write it: No such file" -- made.data none/x.data
    ln -s made.data link.data
    refused 1 "link.data: can't write it: it is a symbolic link" -- made.data link.data
    ln made.data hard.data
    refused 2 "hard.data: is the same file as made.data" -- made.data hard.data
    refused 2 "a stream has no place" -- - x.data
    refused 2 "--copy needs a place" -- --copy made.data
    refused 2 "unexpected argument 'y.data'" -- made.data x.data y.data
    touch x.data.dso
    refused 1 "x.data.dso: is in the way" -- made.data x.data
    cp made.data made.data.old
    cp made.data plain
    mv plain made.data
    refused 2 "made.data: what is there is to be kept as made.data.old, which is what is moved" -- made.data.old made.data
    mv made.data.dso away.dso
    refused 1 "can't be moved: its image $PWD/made.data.dso/" -- made.data x2.data
    # Another file in its place is not it.
    mkdir -p "$(dirname "$(images_of made.data)")"
    cp "$(images_of other.data)" "$(images_of made.data)"
    refused 1 "can't be moved: its image $PWD/made.data.dso/" -- made.data x2.data
}

# Of each kind of call every one fails once: FROM, or what is there instead, is whole.
@test "whatever fails: the recording is whole at one of the two places" {
    local calls n count status ended=0
    mkdir sweep
    cd sweep
    for calls in open,openat,mkostemp,mkdtemp,realpath write,pwrite,ftruncate,rename,renameat,fchmod mmap,fstat,stat malloc,calloc,realloc; do
        count=1
        for ((n = 0; n <= count; n += n && count > 60 ? count / 30 : 1)); do
            rm -rf -- *
            "$BUILD/perfjit" move -q --copy ../made.data from.data
            status=0
            FAIL_CALLS=$calls FAIL_NTH=$n FAIL_COUNT=../count LD_PRELOAD="$BUILD/fail_nth.so" \
                "$BUILD/perfjit" move from.data to.data 2>../stderr || status=$?
            [ "$n" != 0 ] || count=$(cat ../count)
            if [ "$status" = 0 ]; then
                [ "$(find . -maxdepth 1 -name '*.data*' | sort | xargs)" = "./to.data ./to.data.dso" ] || complain "$calls $n: $(ls)"
                cmp -s to.data ../to.wanted || { moved_to_sweep to.data && cp to.data ../to.wanted; }
            else
                [ "$(find . -mindepth 1 -maxdepth 1 | sort | xargs)" = "./from.data ./from.data.dso" ] || complain "$calls $n: $(ls): $(cat ../stderr)"
                [ -s ../stderr ] || complain "$calls $n: no word of why"
                cmp -s from.data ../from.wanted || { moved_to_sweep from.data && cp from.data ../from.wanted; }
                [ -n "$(find from.data.dso -name '*.so')" ]
                ended=$((ended + 1))
            fi
        done
    done
    echo "# $ended runs were ended by a call that failed" >&3
    [ "$ended" -gt 30 ]
}

moved_to_sweep() {
    named "$1" | same /dev/stdin ../wanted
}
