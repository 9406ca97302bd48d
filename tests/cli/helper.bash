# The common part of the tests of the command.  `load helper` makes it theirs.
#
# A test writes below $BATS_TEST_TMPDIR, and setup_file below $BATS_FILE_TMPDIR; bats removes both.

bats_require_minimum_version 1.5.0
: "${BUILD:?is the build directory, absolute; tests/run.sh sets it}"
unset PERFJIT JITDUMPDIR
export LC_ALL=C.UTF-8
here=$BATS_TEST_DIRNAME

# ---- bats ----

# At each command bats notes down where it is, for the line that it shows of a test that fails: 0.2 ms, 90 times as long as the
# command.  The place of a failing command is enough.
if declare -F bats_debug_trap bats_check_status_from_trap bats_capture_stack_trace >/dev/null; then
    bats_debug_trap() {
        trap - DEBUG
    }

    bats_error_trap() {
        bats_check_status_from_trap
        [ -n "$BATS_DEBUG_LAST_STACK_TRACE_IS_VALID" ] || bats_capture_stack_trace
        BATS_DEBUG_LAST_STACK_TRACE_IS_VALID=1
    }
fi

# ---- Recordings (tests/recordings/README.md) ----

# RECORDINGS: what `recording` does.  `stored`, as in make check: takes what is in tests/recordings.  `live`, as in make check-live:
# records.  `anew`, as in make recordings: records, and puts the result into $RECORDINGS_DIR.
: "${RECORDINGS:=stored}"

# Below it stand the files that stored recordings name, at the paths that they had.
recorded_root=$BATS_FILE_TMPDIR/root

# The part in front of a path that a recording names: empty if the recording was just made.
paths_from=
[ "$RECORDINGS" != stored ] || paths_from=$recorded_root

# recording NAME COMMAND...: the command makes a recording in the current directory, and whatever belongs to it: dumps, perf maps, the
# program's log.  With stored recordings it does not run: NAME brings the same files.  A recording has all files that the command
# made here and in /tmp.  FOLDER/NAME is one that several test files use.  Without COMMAND it is one that another file makes: see
# stored_alone.
recording() {
    local name=${BATS_TEST_FILENAME##*/}
    name=${name%.bats}/$1
    [[ $1 != */* ]] || name=$1
    shift
    case $RECORDINGS in
    stored) unpack_recording "$name" ;;
    live) "$@" ;;
    anew) record_anew "$name" "$@" ;;
    *) complain "RECORDINGS is '$RECORDINGS'" ;;
    esac
}

# here/ goes to the current directory, root/ below $recorded_root; `place` is the directory that it was recorded in.
unpack_recording() {
    local from=$here/../recordings/$1 place
    [ -e "$from/files.tar.xz" ] || complain "there is no recording $1: make recordings" || return
    use_programs
    tar -xJPf "$from/files.tar.xz" --transform "s,^here/,$PWD/,;s,^root/,$recorded_root/," || return
    read -r place <"$from/place"
    mkdir -p "$recorded_root${place%/*}"
    # Another test may have unpacked the same recording.
    [ -d "$recorded_root$place" ] && [ ! -L "$recorded_root$place" ] || ln -sfn "$PWD" "$recorded_root$place"
}

# The programs that were recorded are static, and below $recorded_root.  perf report looks there for the images of perfjit inject, too.
use_programs() {
    [ ! -e "$recorded_root/opt" ] || return 0
    mkdir -p "$recorded_root${BATS_RUN_TMPDIR%/*}"
    ln -sfn "$BATS_RUN_TMPDIR" "$recorded_root$BATS_RUN_TMPDIR"
    # run.sh unpacks them once for all.
    if [ -n "${RECORDED_PROGRAMS:-}" ]; then
        ln -sfn "$RECORDED_PROGRAMS/opt" "$recorded_root/opt"
    else
        tar -xJf "$here/../recordings/programs.tar.xz" -C "$recorded_root"
    fi
}

# To be called in the place that tests/recordings/make.sh prepares.
record_anew() {
    local name=$1 into=$RECORDINGS_DIR/$1 pack=$BATS_RUN_TMPDIR/pack.$BASHPID stamp=$BATS_RUN_TMPDIR/stamp.$BASHPID file status=0
    shift
    # A recording that another test file stores is made for this file alone.
    mkdir -p "${into%/*}"
    if ! mkdir "$into" 2>/dev/null && [[ $name != "$(basename "$BATS_TEST_FILENAME" .bats)"/* ]]; then
        "$@"
        return
    fi
    rm -rf "$pack"
    mkdir -p "$pack/here" "$pack/root"
    printf '%s\n' "$*" >"$into/how"
    touch "$stamp" && sleep 0.02
    how=$into/how "$@" || status=$?
    if [ $status -ne 0 ]; then
        rm -rf "$into" # another test may make it
        return $status
    fi
    echo "$PWD" >"$into/place"
    find . -cnewer "$stamp" \( -type f -o -type l \) ! -path './home/*' ! -name '*.data.old' -printf '%P\0' | tar --null -T - -cSf - | tar -xf - -C "$pack/here"
    (cd / && find tmp -name 'bats-run-*' -prune -o -cnewer "$stamp" -type f -print0 | tar --null -T - -cSf - | tar -xf - -C "$pack/root")
    rmdir --ignore-fail-on-non-empty "$pack/root"
    (cd "$pack" && tar --sort=name --owner=0 --group=0 --numeric-owner -cSf - * | xz -9e >"$into/files.tar.xz")
    rm -rf "$pack" "$stamp"
}

# without_builtins DUMP...: V8's dumps, for make recordings, without the code of what V8 has built in.
without_builtins() {
    local dump
    [ "$RECORDINGS" = anew ] || return 0
    for dump; do "$here/../recordings/without_code.py" "$dump" 'Builtin|BytecodeHandler'; done
}

# sound_recording NAME: sound.data here, and the dumps that it names, from which nothing is missing.
#
#     functions       20 functions, which take turns
#     every-record    code with every record that libjitdump writes; theirs.data is what perf inject --jit makes of it
#     tinyjit         examples/tinyjit/demo.tj; truth is its own log
sound_recording() {
    recording "sound/$1" record_sound "$1"
}

record_sound() {
    local -x PERFJIT=dump JITDUMPDIR=$PWD
    case $1 in
    functions) record sound.data "$BUILD/producers/many_functions" -n 20 -s 0.4 ;;
    every-record)
        record sound.data "$BUILD/producers/every_record" 0.4 || return
        perf inject --jit -i sound.data -o theirs.data
        ;;
    tinyjit) record sound.data "$BUILD/tinyjit" --seconds=0.5 --wx --truth=truth "$here/../../examples/tinyjit/demo.tj" >tinyjit.out ;;
    esac
}

# ---- Commands ----

# jq 1.6 calls an input without values true; it comes from a command that failed.
jq() {
    local said status=0
    if [[ " $* " != *' -e '* ]]; then
        command jq "$@"
        return
    fi
    said=$(command jq "$@") || status=$?
    [ -z "$said" ] || printf '%s\n' "$said"
    [ "$status" -ne 0 ] || [ -n "$said" ] || status=4
    return $status
}

perfjit() {
    local arguments
    with_root "$@"
    "$BUILD/perfjit" "${arguments[@]}"
}

sanitized_perfjit() {
    local arguments
    with_root "$@"
    "$BUILD/sanitized/perfjit" "${arguments[@]}"
}

# with_root COMMAND ARGUMENT...: sets `arguments`, those for perfjit.  The files that a stored recording names are below
# $recorded_root.  A test of the output without that directory sets $without_root.
with_root() {
    arguments=("$@")
    if [ "$RECORDINGS" = stored ] && [ -d "$recorded_root" ] && [ -z "${without_root:-}" ] && [[ ${1:-} = @(inject|check|report|export|flamegraph|diff) && " $* " != *" --root"* ]]; then
        arguments=("$1" --root "$recorded_root" "${@:2}")
    fi
}

# perf with a home of its own: perf inject copies what it makes to ~/.debug.  Without --no-bpf-event, perf record run by root ends up
# to a second late: it waits for a thread that listens for BPF programs.  The kernel's 120 000 symbols are half of the time of a perf
# script: run.sh has a list of few, KERNEL_SYMBOLS; where their names matter, set it to nothing.
perf() {
    local home=${BATS_TEST_TMPDIR:-$BATS_FILE_TMPDIR}/home
    [ -d "$home" ] || mkdir -p "$home"
    case $RECORDINGS/${1:-} in
    stored/record) complain "make check records nothing: perf $*" || return ;;
    anew/record) printf 'perf %s\n' "$*" >>"${how:-/dev/null}" ;;
    esac
    case ${1:-} in
    record) set -- record --no-bpf-event "${@:2}" ;;
    script | report | annotate)
        if [ "$RECORDINGS" = stored ] && [ -d "$recorded_root" ] && [[ " $* " != *" --symfs "* ]]; then
            set -- "$1" --symfs "$recorded_root" "${@:2}"
        elif [ "$1" != annotate ] && [ -r "${KERNEL_SYMBOLS:-}" ]; then
            set -- "$1" --kallsyms "$KERNEL_SYMBOLS" "${@:2}"
        fi
        ;;
    esac
    "${own_pids[@]}" env HOME="$home" perf "$@"
}

# Set to a command that makes a namespace of pids, in which a recorded program may choose them.
own_pids=()

# In setup: skip the test where perf can't record, as an ordinary user with perf_event_paranoid over 2, or in a container
# without perf_event_open.  A setup_file can't skip: one that records begins with `require_perf || return 0`.  Stored recordings need
# no perf events.
require_perf() {
    [ "$RECORDINGS" != stored ] || return 0
    local works=$BATS_FILE_TMPDIR/perf_works
    if [ ! -e "$works" ]; then
        echo no >"$works"
        perf record -q -k mono -e cpu-clock -o "$works.data" true >"$works.log" 2>&1 && echo yes >"$works"
        rm -f "$works.data"
    fi
    [ "$(cat "$works")" = no ] || return 0
    [ -z "${BATS_TEST_NAME:-}" ] || skip "perf can't record here: $(tail -1 "$works.log")"
    return 1
}

# stored_alone: end a test that reads recordings of other files, unless these are stored ones.  In setup_file: status 1.
stored_alone() {
    [ "$RECORDINGS" != stored ] || return 0
    [ -z "${BATS_TEST_NAME:-}" ] || skip "another file makes this recording"
    return 1
}

# unavailable WHY...: end a test of other people's program, whose sources are not here.  CI has none of these, and they are
# counted apart from what is skipped: tests/run_one.sh.
unavailable() {
    skip "unavailable: $*"
}

# record DATA [OPTION...] COMMAND...
record() {
    local data=$1
    shift
    perf record -q -k mono -e cpu-clock -F 2000 -o "$data" "$@"
}

# tinyjit_chains DATA [OPTION...]: call chains for chain_check.  Functions of the system's libraries that only their own symbol
# tables know, which Debian strips, get a name that says so.  A stack of one address in no mapping at all is of a process in the
# middle of its exec.  A stack of one address in a library, of which a recording may have one, is of its _init or _fini.  These
# have no tables, and the page fault there makes a sample likely.
tinyjit_chains() {
    local data=$1
    shift
    perf script --no-inline --max-stack 2000 -F ip,sym,symoff,dso -i "$data" "$@" 2>"$BATS_TEST_TMPDIR/perf.err" |
        awk 'BEGIN { RS = ""; ORS = "\n\n" }
            /^[ \t]*[0-9a-f]+ \[unknown\] \((\/usr)?\/lib\/[^()]*\)$/ && !in_library++ { next }
            !/^[ \t]*[0-9a-f]+ \[unknown\] \(\[unknown\]\)$/' |
        sed -E 's, \[unknown\] \((/usr)?/lib/[^()]*\)$, [library],; s, \([^()]*\)$,,'
}

# remove_maps DATA, remove_dumps DATA: what PHP left in /tmp.  Pids are used again within half a minute here, and a map that is
# left is then one of an earlier process with the same pid, of which perfjit tells.
remove_maps() {
    dumps_of "$1" | sed -n 's|^/tmp/jit-\([0-9]*\)\.dump$|/tmp/perf-\1.map|p' | xargs -r rm -f
}

remove_dumps() {
    dumps_of "$1" | grep '^/tmp/jit-[0-9]*\.dump$' | xargs -r rm -f
}

# ---- Processes that run ----

# used_ms PID: of processors, by all its threads, in steps of 10; nothing if it has ended.
used_ms() {
    local stat
    { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 0
    read -ra stat <<<"${stat##*) }"
    echo $(((stat[11] + stat[12]) * 10))
}

# await_use PID MS: until the process has used that much more of processors, however busy they are, or has ended.
await_use() {
    local now until
    until=$(($(used_ms "$1") + $2))
    while now=$(used_ms "$1") && [ -n "$now" ] && [ "$now" -lt "$until" ]; do sleep 0.01; done
}
export -f used_ms await_use

# What a test that fails has begun does not outlive it.  A file with a teardown of its own does that itself.
teardown() {
    jobs -p >"$BATS_TEST_TMPDIR/job.pids" # in a pipeline it would know of none
    xargs -r kill -9 <"$BATS_TEST_TMPDIR/job.pids" 2>/dev/null || :
    wait
}

# await COMMAND...: until it succeeds.  If it never does, that is a hang, which shows in the test's place.
await() {
    until "$@"; do sleep 0.01; done
}

# ---- musl ----

# with_musl ARGUMENT...: musl-gcc, whose headers are without the kernel's.
with_musl() {
    local kernel=$BATS_FILE_TMPDIR/kernel
    mkdir -p "$kernel"
    ln -sfn /usr/include/linux /usr/include/asm-generic "/usr/include/$(gcc -print-multiarch)/asm" "$kernel"
    musl-gcc -idirafter "$kernel" "$@"
}

require_musl() {
    command -v musl-gcc >/dev/null || skip "there is no musl-gcc (make setup-live)"
}

# ---- Processes (producers/process_lives.c) ----

lives=$BUILD/producers/process_lives

require_root() {
    [ "$RECORDINGS" != stored ] || return 0
    [ "$(id -u)" = 0 ] || skip "only root can choose pids and make containers"
}

free_pid() {
    local pid=$(($(cat /proc/sys/kernel/pid_max) - 5000 - RANDOM % 1000))
    while [ -e /proc/$pid ]; do pid=$((pid - 1)); done
    echo $pid
}

# container NAME STEP...: process_lives as pid 1 of a pid namespace, with the directory NAME/mnt for its /mnt.
container() {
    local name=$1
    shift
    mkdir -p "$name/mnt"
    # shellcheck disable=SC2016 # for the inner shell
    unshare --pid --fork --mount sh -c 'mount --bind "$0/mnt" /mnt && JITDUMPDIR=/mnt exec "$@"' \
        "$PWD/$name" "$lives" "$PWD/truth" "$@"
}

# ---- What a recording says ----

# A line for each sample: time, address, symbol.
samples() {
    perf script -i "$1" -F time,ip,sym --ns --no-inline
}

# All mappings.
maps() {
    perf script -i "$1" --show-mmap-events | grep -F 'PERF_RECORD_MMAP'
}

# The dumps that it names, in the order of the processes' start.
dumps_of() {
    maps "$1" | grep -oE '/[^ ]*/jit-[0-9]+\.dump$' | grep -v '/stage/jit-' | awk -v root="$paths_from" '!seen[$0]++ { print root $0 }'
}

# perf asks addr2line of each address, and of node's own it takes seconds: only of JIT code is that asked here.
asking_of_jit_code() {
    mkdir -p "$BATS_TEST_TMPDIR/bin"
    cat >"$BATS_TEST_TMPDIR/bin/addr2line" <<END
#!/bin/sh
case "\$*" in
*.dso/*) exec $(command -v addr2line) "\$@" ;;
*) exec $(command -v addr2line) -e /bin/true -i -f ;;
esac
END
    chmod +x "$BATS_TEST_TMPDIR/bin/addr2line"
    PATH=$BATS_TEST_TMPDIR/bin:$PATH
}

# write_work: work.tj and work.js, each of which has a function that takes nearly all of the time.
write_work() {
    printf 'fn inner(n) { var i = 0; while i < n { i = i + 1; } return i; }\nfn outer(n) { return inner(n) + 1; }\nfn main() { var n = 0; while n < 12000 { outer(100000); n = n + 1; } return 0; }\n' >work.tj
    cat >work.js <<'END'
function hot(n) { let s = 0; for (let i = 0; i < n; i++) s += (Math.sqrt(i) * i) % 7; return s; }
for (let i = 0, t = 0; i < 30; i++) t += hot(2000000);
END
}

# ---- Checks: each says on stderr what is wrong ----

complain() {
    echo "$*" >&2
    return 1
}

# same GOT WANTED: the files are equal.
same() {
    diff "$1" "$2" >"$BATS_TEST_TMPDIR/diff" && return
    head -20 "$BATS_TEST_TMPDIR/diff"
    complain "$1 is not as $2: the first differences are above (< got, > wanted)"
}

# packed FOLDER: one number for what is in it.  ELF files for memory far apart are sparse, and tar leaves holes unread.
packed() {
    tar -C "$1" --sort=name --mtime=@0 --mode=0 --numeric-owner -cSf - . | sha256sum
}

# same_files FOLDER FOLDER
same_files() {
    [ "$(packed "$1")" = "$(packed "$2")" ] || complain "$1 has other files than $2: $(diff -rq "$1" "$2" | head)"
}

# After `run --separate-stderr`.
exits() {
    [ "$status" -eq "$1" ] || complain "status $status instead of $1; it said: $stderr"
}

# says TEXT...: each stands in stderr.
says() {
    local text
    for text in "$@"; do
        [[ $stderr == *"$text"* ]] || complain "'$text' is missing in: $stderr"
    done
}

# files DIR: all that is in it, with sizes.  Two of these around a failed run show what it left behind.
files() {
    find "$1" -mindepth 1 -printf '%P %y %s\n' | sort
}

# elf_files DIR...: the ELF files that perfjit inject put there.
elf_files() {
    find "$@" -name '*.so' | sort
}

# script_of_functions N [WAIT]: N small functions in tinyjit's language, which call each other; they are compiled when wait begins, and run
# once more.
script_of_functions() {
    local wait=${2:-"while native_mix(1) != 0 { } return 0;"}
    awk -v n="$1" -v wait="$wait" 'BEGIN {
        print "fn wait() { " wait " }"
        for (i = 0; i < n; i++) {
            k = i % 5
            if (k == 0) printf "fn f%d(a) { return a + %d; }\n", i, i
            if (k == 1) printf "fn f%d(a) { var r = 0; while r < 2 { r = r + 1; } return r * a; }\n", i
            if (k == 2) printf "fn f%d(a) { if a < 0 { return 0 - a; } return native_mix(a) & 7; }\n", i
            if (k == 3) printf "fn f%d(a) { var x = f%d(a); return (a * 3) + (x * 5 + (f%d(x) ^ 2)); }\n", i, i - 3, i - 2
            if (k == 4) printf "fn f%d(a) { if a == 0 { return 1; } return 1 + f%d(a - 1); }\n", i, i
        }
        print "fn all() {"
        for (i = 0; i < n; i++) printf "    f%d(2);\n", i
        print "    return 0;\n}\nfn main() { all(); wait(); all(); return 0; }"
    }'
}

# ---- The page of perfjit flamegraph ----

# data PAGE: what is in it, as JSON.
data() {
    python3 -c 'import base64, re, sys, zlib
packed = re.search(rb"<script type=\"text/plain\" id=\"data\">\n([^<]*)", open(sys.argv[1], "rb").read()).group(1)
sys.stdout.buffer.write(zlib.decompress(base64.b64decode(packed)))' "$1"
}

# ---- Cost ----

# instructions COMMAND...: how many it takes, as valgrind counts them, which a busy machine does not change.
instructions() {
    valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null --log-file="$BATS_TEST_TMPDIR/cachegrind" "$@" >/dev/null
    sed -n 's/,//g; s/.*I *refs: *//p' "$BATS_TEST_TMPDIR/cachegrind"
}
