# Processes that fork, exec, reuse a pid, share a dump, or live in containers.  Every sample in JIT code has the name that the
# program's own log has for it.  If it can't have the name, perfjit says so.  The program is producers/process_lives.
load helper

setup() {
    require_perf
    mkdir "$BATS_TEST_TMPDIR/work"
    cd "$BATS_TEST_TMPDIR/work"
    mkdir truth
    export PERFJIT=dump JITDUMPDIR=$PWD
}

# recorded NAME STEP...: record process_lives, without randomized addresses, so that what runs in turn has the same ones.
recorded() {
    recording "$1" record perf.data setarch -R "$lives" truth "${@:2}"
}

recorded_by_hand() {
    recording "$1" record perf.data setarch -R "$lives" -r truth "${@:2}"
}

# The samples of the life NAME, by the name that its main thread had.
samples_of() {
    perf script -i perf.jit.data --comm "$1" -F time,ip,sym --ns --no-inline
}

# right NAME...: all samples of these lives in JIT code have the right name, and there are some.
right() {
    local name
    for name in "$@"; do
        samples_of "$name" | "$BUILD/producers/truth_check" "truth/$name" >score 2>disagree
        [[ $(cat score) =~ ^samples\ ([0-9]+)\ right\ ([0-9]+)\ wrong\ 0\ missing\ 0$ ]] ||
            complain "$name: $(cat score disagree)"
        [ "${BASH_REMATCH[1]}" -ge 10 ] || complain "$name: $(cat score)"
    done
}

# nameless NAME: no sample of this life in JIT code has a name, and there are some.
nameless() {
    samples_of "$1" | "$BUILD/producers/truth_check" "truth/$1" >score 2>disagree
    [[ $(cat score) =~ ^samples\ ([0-9]+)\ right\ 0\ wrong\ 0\ missing\ ([0-9]+)$ ]] || complain "$1: $(cat score disagree)"
    [ "${BASH_REMATCH[2]}" -ge 10 ] || complain "$1: $(cat score)"
}

# injected STATUS [OPTION...]
injected() {
    local wanted=$1
    shift
    run --separate-stderr perfjit inject "$@"
    exits "$wanted"
}

# ---- Fork ----

@test "a child has the code from before the fork, and its parent alone what came later" {
    recorded fork life parent load 5 run 30 fork { life child run 60 } load 5 run 60 wait
    injected 0
    right parent child
}

@test "a child that flips the protection of inherited code keeps its names" {
    recorded fork-flips life parent load 5 run 30 fork { life child flip run 30 flip run 30 } load 5 flip run 60 wait
    injected 0
    right parent child
}

@test "so does a grandchild, whose parent did nothing" {
    recorded fork-grandchild life parent load 5 run 30 fork { fork { life grandchild flip run 60 } wait } load 5 run 30 wait
    injected 0
    right parent grandchild
}

@test "a child with a dump of its own has both, and moves and unloads what it inherited" {
    recorded fork-own-dumps life parent load 6 run 30 \
        fork { life child load 4 run 30 move run 30 unload 2 run 30 flip run 30 fork { life grandchild load 2 flip run 40 } wait } \
        load 5 run 60 unload 3 run 30 wait
    injected 0
    right parent child grandchild
}

@test "a dump that parent and children share: LOAD.pid tells whose a function is" {
    recorded_by_hand fork-shared-dump life parent load 5 run 30 fork { life one load 5 run 150 } fork { life two load 5 flip run 150 } load 5 run 100 wait
    injected 0
    right parent one two
}

# ---- Exec ----

@test "exec: the new program has a dump of its own, and the code of both its names" {
    recorded exec life old load 5 run 60 exec life new load 8 run 60
    injected 0
    right old new
}

@test "exec where the dump is emptied: the new program's code has its names, what the old one's dump said is lost and counted" {
    recorded_by_hand exec-emptied-dump life old load 5 run 60 exec life new load 8 flip run 60
    injected 3
    says "1 x dump that was overwritten"
    right new
    nameless old
}

# ---- A pid that is used again ----

used_again() {
    local pid
    pid=$(free_pid)
    echo "$pid" >pid
    record perf.data setarch -R "$lives" truth life parent load 2 run 60 pid "$pid" fork { life first load 5 run 50 } wait \
        pid "$pid" fork { life second load 7 flip run 50 } wait
}

@test "a pid that is used again: the second's code has its names, the first's dump is lost and counted" {
    local pid
    require_root
    recording pid-again used_again
    pid=$(cat pid)
    injected 3
    says "1 x dump that was overwritten" "jit-$pid.dump"
    right parent second
}

# ---- The LOAD record comes late ----

@test "functions that run before they are logged have their names from the start" {
    recorded_by_hand logged-late life late late 60 run 20
    injected 0
    right late
    [ "$(samples_of late | grep -c ' late_')" -ge 30 ]
}

# ---- Memory ----

# remapped NAME [ARENA]: code in it keeps its names when the arena's protection is flipped.
remapped() {
    recording "flipped-$1" record perf.data "$lives" -a "${2:-$1}" truth life code load 5 run 30 flip load 5 run 30 flip run 30
    injected 0 -v
    right code
    [[ $stderr =~ " added, "([0-9]+)" left out" ]]
    [ "${BASH_REMATCH[1]}" -gt 3 ]
}

@test "an arena that is anonymous memory is logged again by each flip" {
    remapped anon
}

@test "an arena that is a memfd" {
    remapped memfd
}

@test "an arena that is a file in /dev/shm" {
    remapped shm "/dev/shm/process_lives.$$"
    rm -f "/dev/shm/process_lives.$$"
}

@test "an arena that is a deleted file" {
    remapped deleted "$PWD/arena.tmp"
}

# unveiled NAME [ARENA]: code that was logged before its memory, a file's, became executable keeps its names.
unveiled() {
    recording "unveiled-$1" record perf.data "$lives" -a "${2:-$1}" truth life code load 5 flip run 30 load 5 flip run 30
    injected 0 -v
    right code
    [[ $stderr =~ " added, "([0-9]+)" left out" ]]
    [ "${BASH_REMATCH[1]}" -gt 3 ]
}

@test "an arena that is the program's own .data, made executable when there is code in it" {
    unveiled data
}

@test "an arena that is a file that stays, made executable when there is code in it" {
    unveiled kept "kept:$PWD/arena.bin"
}

# ---- Containers ----

# pid_called COMM: the recorded process of that name.
pid_called() {
    perf script -i perf.data --comm "$1" -F pid | sort -un | tr -d ' '
}

# bats test_tags=both
@test "a container that has ended: --root names its file system; without it the dump is missing" {
    require_root
    export -f container
    export lives
    recording container record perf.data bash -c 'container box life boxed load 5 run 60 flip run 30'
    injected 1
    [ "$RECORDINGS" = stored ] || says "/mnt/jitdump-1/jit-1.dump" "if the process was in a container, --root DIR says where its root file system is" "--jitdump FILE"
    injected 0 --root box
    right boxed
    rm -r perf.jit.data*
    injected 0 --jitdump box/mnt/jitdump-1/jit-1.dump
    right boxed
}

# Not by its pid, but by what perf record --namespaces tells.
# bats test_tags=both
@test "a dump on mounts of the process's own: --root is named, and helps" {
    require_root
    mkdir -p box/mnt
    # shellcheck disable=SC2016 # for the inner shell
    recording own-mounts record perf.data --namespaces unshare --mount sh -c 'mount --bind box/mnt /mnt && JITDUMPDIR=/mnt exec "$@"' sh \
        setarch -R "$lives" truth life own load 5 run 60
    injected 1
    [ "$RECORDINGS" = stored ] || says "/mnt/jitdump-" ".dump: No such file or directory: if the process was in a container, --root DIR says where its root file system is"
    injected 0 --root box
    right own
}

@test "two containers at once whose dumps have the same path: each gets its own, and never the other's" {
    require_root
    export -f container
    export lives
    recording two-containers record perf.data --namespaces bash -c \
        'container red life red load 5 run 80 & container blue life blue load 9 run 80 & wait'
    injected 3 --root red
    says "1 x dump that was overwritten"
    right red
    nameless blue
    rm -r perf.jit.data*
    injected 3 --root blue
    right blue
    nameless red
    rm -r perf.jit.data*
    injected 0 --jitdump "$(pid_called red):red/mnt/jitdump-1/jit-1.dump" --jitdump "$(pid_called blue):blue/mnt/jitdump-1/jit-1.dump"
    right red blue
}

# bats test_tags=live
@test "a container that still runs: its dump is found through /proc" {
    require_root
    local process name=boxed$$
    container box life $name load 5 run 60000 3>&- &
    await pgrep -x $name >/dev/null
    process=$(pgrep -x $name)
    record perf.data -p "$process" bash -c "await_use $process 100"
    injected 0
    kill -9 "$process"
    wait
    right $name
}

# The file is known by its inode.
# bats test_tags=live
@test "two processes that write one dump: it is used for neither, but with --jitdump" {
    require_root
    export lives
    # shellcheck disable=SC2016 # for the inner shells
    record perf.data bash -c '
        for name in red blue; do unshare --pid --fork "$lives" -r truth life $name load 5 run 400 & done
        wait'
    injected 1
    says "could be its dump" "--jitdump PID:FILE"
    injected 1 --jitdump jit-1.dump
    says "jit-1.dump: could be the dump of process " "--jitdump PID:FILE"
    injected 3 --jitdump "$(pid_called red):jit-1.dump"
    says "went to another process"
}

# In a mount namespace of its own, whose files nobody else sees.
alone=(unshare --mount bash -c 'mount -t tmpfs none "$0" && cd "$0" && exec "$@"')

# rows_at HOME DATA: by perf with HOME, how many rows are tinyjit's functions, and how many are addresses in the ELF file.
rows_at() {
    HOME=$1 command perf report -i "$2" --stdio --no-children -g none --comm tinyjit -s dso,sym 2>/dev/null |
        awk '/jit-.* tj::/ { names++ } /jit-.* 0x0000/ { none++ } END { print names + 0, none + 0 }'
}

# perf looks for what a live process has mapped in its mount namespace, and reads a file that others map as well but once.  Recorded are
# the process PID and one beside it: of other tests' programs nothing is known.
inject_beside_a_container() { # PID FOLDER
    PERFJIT=dump JITDUMPDIR=. "$BUILD/tinyjit" --seconds=60 "$here/../../examples/tinyjit/demo.tj" >/dev/null 3>&- &
    local own=$!
    await_use $own 100
    perf record -q -k mono -e cpu-clock -F 2000 -p "$1,$own" -o in.data -- bash -c 'await_use "$0" 900' "$1"
    perf record -q -k mono -e cpu-clock -F 2000 -p "$1" -o alone.data -- bash -c 'await_use "$0" 300' "$1"
    mkdir mine other
    HOME=$PWD/mine perfjit inject -i in.data -o out.data 2>inject.txt
    rows_at "$PWD/mine" out.data >mine.rows
    HOME=/proc perfjit inject -i alone.data -o alone.jit.data 2>no_home.txt
    rows_at "$PWD/other" alone.jit.data >other.rows
    HOME=$PWD/mine perfjit inject -i in.data -o out3.data --layout function -q
    kill $own
    cp inject.txt no_home.txt mine.rows other.rows "$2"
    readlink -e mine/.debug/.build-id/*/* | wc -l >"$2/links"
    command perf --buildid-dir "$PWD/mine/.debug" buildid-cache --purge "$(echo "$PWD"/out.data.dso/*/jit-*.so)"
    find mine -name elf -path '*out.data.dso*' | wc -l >"$2/purged"
}

# bats test_tags=live
@test "a live process in a mount namespace of its own does not take the names from all others" {
    require_root
    mkdir box
    export here
    export RECORDINGS
    export -f inject_beside_a_container rows_at perfjit with_root perf await_use
    PERFJIT=dump JITDUMPDIR=. "${alone[@]}" "$PWD/box" "$BUILD/tinyjit" --seconds=60 "$here/../../examples/tinyjit/demo.tj" >/dev/null 3>&- &
    local box=$! names none
    await_use $box 100
    "${alone[@]}" "$PWD/box" bash -ec 'inject_beside_a_container "$@"' bash $box "$PWD"
    kill $box
    wait $box || true
    grep -q "1 x process that lives in another mount namespace: perf looks in that namespace" inject.txt || complain "$(cat inject.txt)"
    grep -q "process $box, " inject.txt || complain "$(cat inject.txt)"
    grep -q "1 x process that lives in another mount namespace, where the ELF files are missing: " no_home.txt || complain "$(cat no_home.txt)"
    read -r names none <mine.rows
    [ "$names" -ge 5 ] && [ "$none" -eq 0 ] || complain "$(cat mine.rows)"
    read -r names none <other.rows
    [ "$none" -ge 5 ] || complain "the cache was not needed: $(cat other.rows)"
    [ "$(cat links)" -gt 2 ]
    [ "$(cat purged)" -eq 0 ]
}

@test "two containers whose dumps were copied: --jitdump PID:FILE gives each its own, and says which; without PID nothing is guessed" {
    require_root
    export -f container
    export lives
    recording two-containers-saved record perf.data bash -c \
        'container red life red run 400 load 5 run 80 & sleep 0.2; container blue life blue run 100 load 9 run 80 & wait'
    mkdir saved saved/a saved/b
    cp red/mnt/jitdump-1/jit-1.dump saved/a
    cp blue/mnt/jitdump-1/jit-1.dump saved/b
    rm -r red blue
    cp saved/a/jit-1.dump saved/a/one
    cp saved/b/jit-1.dump saved/b/two
    local given name
    for given in "saved/a/jit-1.dump saved/b/jit-1.dump" "saved/a/one saved/b/two"; do
        read -r red blue <<<"$given"
        injected 0 -v --jitdump "$(pid_called blue):$blue" --jitdump "$(pid_called red):$red"
        right red blue
        for name in red blue; do
            grep -qE "^perfjit: ${!name}: given by hand, read as what process $(pid_called $name) mapped as /mnt/jitdump-1/jit-1.dump$" \
                <<<"$stderr" || complain "$name: $stderr"
        done
        rm -r perf.jit.data*
        injected 1 --jitdump "$red" --jitdump "$blue"
        says "could be the dump of process " "(red, " "(blue, " "--jitdump PID:FILE"
        [ ! -e perf.jit.data ]
    done
}

@test "two containers, one's dump copied to where --root names: its header's time tells whose it is" {
    require_root
    export -f container
    export lives
    # The owner of a copy shows only in the header's time: it must be nearer to one process than to the other.
    recording two-containers-apart record perf.data bash -c \
        'container red life red load 5 run 400 & sleep 0.2; container blue life blue load 9 run 80 & wait'
    for name in red blue; do
        mkdir -p copy.$name
        cp -r $name/mnt copy.$name
    done
    rm -r red blue
    injected 3 --root copy.red
    right red
    nameless blue
    injected 3 --root copy.blue
    right blue
    nameless red
}

# ---- Several dumps, and other names ----

@test "dumps as Bun names them, one a thread, and one that only its header tells: all of one process" {
    recording dumps-of-bun record perf.data setarch -R "$lives" -r -n jit-77-@.dump truth life code load 5 run 30 \
        dump jit-78-@-aB3dE9 load 5 run 30 dump jit-79-@-123456 load 3 run 30 dump profile.bin load 4 run 30
    injected 0
    right code
    says "17 functions"
    # The sampled functions are luck.  That each dump has some sampled ones is not.
    [ "$(samples_of code | awk 'match($0, / code_[0-9]+/) {
            n = substr($0, RSTART + 6, RLENGTH - 6) + 0
            print (n < 5 ? "first" : n < 10 ? "second" : n < 13 ? "third" : "fourth")
        }' | sort -u | wc -l)" -eq 4 ]
}

# bats test_tags=live
@test "an executable mapping of another file, or of another process's dump under another name, is no dump of its own" {
    recorded_by_hand other-file life code load 5 run 30
    local dump
    dump=$(dumps_of perf.data)
    mkdir given
    record other.data setarch -R "$lives" -r -n profile.bin truth life other load 5 run 60
    cp "$dump" given/sound.dump
    printf 'no dump, but longer than the header of one, which has 40 bytes' >profile.bin
    cp other.data perf.data
    injected 1
    says "no jitdump found"
    cat given/sound.dump >profile.bin
    injected 1
    says "profile.bin: was mapped by process"
}

# ---- The file is another one ----

# In a tree of its own, as if it came from another machine.
copied_tree() {
    mkdir -p "tree$PWD"
    cp ./*.data "tree$PWD"
    find . -maxdepth 1 -name 'jitdump-*' -exec mv {} "tree$PWD" \;
}

# bats test_tags=live
@test "a copy of the dump is taken, at its path and below --root, and -v says so" {
    local dump
    recorded copied life code load 5 run 30
    dump=$(dumps_of perf.data)
    cp "$dump" copy
    mv copy "$dump"
    injected 0 -v
    says "$dump: taken for a copy of what process"
    right code
    samples perf.jit.data >wanted
    copied_tree
    injected 0 --root tree
    samples perf.jit.data >got
    same got wanted
    injected 0 --jitdump "tree$dump"
    right code
}

# bats test_tags=live
@test "what a later process with the same pid left is no copy" {
    local pid dump
    require_root
    pid=$(free_pid)
    own_pids=(unshare --pid --fork --mount-proc)
    recorded later-process life parent pid "$pid" fork { life first load 5 run 50 } wait load 2 run 60
    dump=$PWD/jitdump-$pid/jit-$pid.dump
    mv "$dump" first.dump
    sleep 1.1
    "${own_pids[@]}" setarch -R "$lives" "$PWD/truth" life later_parent pid "$pid" fork { life later load 7 run 10 } wait
    own_pids=()
    injected 3
    says "1 x dump that was overwritten" "$dump: process $pid: the file there is not the one that it mapped"
    right parent
    nameless first
    cp first.dump "$dump"
    injected 0
    right parent first
}

# ---- A service of another user ----

# A recording by root of a process that becomes another user before it writes its dump.
service() {
    require_root
    chmod 777 . truth
    record perf.data setarch -R "$lives" -r -u 12345 "$@" truth life code load 5 run 60
    dump=$(find "$PWD" -path '*/stage' -prune -o \( -name 'jit-*.dump' -o -name 'profile.bin' \) -print)
    [ "$(stat -c %u "$dump")" = 12345 ]
}

# bats test_tags=live
@test "a service's dump is taken by root: it is the very file that was mapped, whoever owns it" {
    service
    injected 0
    right code
    run --separate-stderr perfjit check perf.data
    exits 0
}

# bats test_tags=live
@test "so is one that only its header tells" {
    service -n profile.bin
    injected 0
    right code
}

# bats test_tags=live
@test "a service that was there before the recording: the same" {
    require_root
    local process
    chmod 777 . truth
    "$lives" -r -u 12345 truth life code load 5 run 60000 3>&- &
    process=$!
    await grep -q ' code_4$' truth/code 2>/dev/null
    record perf.data -p "$process" bash -c "await_use $process 100"
    record build_id.data --buildid-mmap -p "$process" bash -c "await_use $process 100"
    injected 0 -i build_id.data -o perf.jit.data
    kill -9 "$process"
    wait "$process" || true
    right code
    injected 0
    right code
}

# bats test_tags=live
@test "another user's file in the place of a service's dump is not, but with --force, and check says so" {
    service
    cp "$dump" copy
    mv copy "$dump"
    chown 12345 "$dump"
    injected 1
    says "$dump: belongs to the user with id 12345, and is not the file that the process mapped" "--force" "--jitdump FILE"
    injected 0 --force
    right code
    run --separate-stderr perfjit check perf.data
    exits 3
    [[ $output == *"dump-owner"* && $output == *"--force"* ]] || complain "$output"
    run --separate-stderr perfjit check --force perf.data
    exits 0
}


@test "a dump that was renamed stands for the missing one" {
    recorded renamed life code load 5 run 30
    mv "$(dumps_of perf.data)" renamed
    injected 0 --jitdump renamed
    right code
}

# bats test_tags=live
@test "a process that maps another's dump is not its owner" {
    local dump
    recorded copied life code load 5 run 30
    dump=$(dumps_of perf.data)
    mv "$dump" jit-1.dump
    injected 1
    says "$dump" "--jitdump FILE"
}
