# Profiles of real runtimes.  The frames in their code have the names that perf has for them, by perf inject --jit, or by its own
# reading of the perf map.  The program's own truth is that mix has the most samples, and fib many.  The programs are in
# producers/runtimes.
load helper
load perfs_names

sources=${here%/*}/producers/runtimes

# Runtimes without a Debian package in this release: tests/setup_runtimes.sh.
other_runtimes=${BUILD%/recorded}/runtimes

postgres=/usr/lib/postgresql/15/bin

ms=400 # that each program runs, by its own clock of processor time; longer where the recording is not stored
[ "$RECORDINGS" != live ] || ms=1200

setup() {
    require_perf
}

# Runtimes write to /tmp, whatever they are told.
teardown_file() {
    [ "$RECORDINGS" != stored ] || return 0
    local data pid
    for data in "$BATS_FILE_TMPDIR"/*/perf.data; do
        [ -e "$data" ] || continue
        pid=$(process_of "$data")
        rm -f "/tmp/jit-$pid.dump" "/tmp/perf-$pid.map"
    done
    [ ! -e "$BATS_FILE_TMPDIR/postgres/folder" ] || rm -r "$(cat "$BATS_FILE_TMPDIR/postgres/folder")"
}

# ---- Recordings: perf.data, and frames.leaf and frames.chain, which are perf's ----

# use RUNTIME [PROGRAM]: the test goes to its recording, which record_RUNTIME makes if there is none.
use() {
    if [ "$RECORDINGS" != stored ] && ! command -v "${2:-$1}" >/dev/null; then
        skip "${2:-$1} is not installed (make setup-live)"
    fi
    mkdir -p "$BATS_FILE_TMPDIR/$1"
    cd "$BATS_FILE_TMPDIR/$1"
    [ -e whole ] || recording "$1" "record_$1"
    touch whole
}

# record_program [OPTION...] -- COMMAND...
# Copies of stacks are 16 MB a second: the buffer has room for a second, where that is allowed, else a busy machine loses some.
record_program() {
    local options=()
    [[ $(id -u) != 0 || $* != *dwarf* ]] || options=(-m 4096)
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    record perf.data -F 1000 "${options[@]}" "${@:2}" >said
    grep -qE '^true\s?$' said
}

record_node() {
    record_program -g -- node --perf-prof "$sources/work.js" $ms
    rm -f isolate-*.log
    by_perf_inject
    without_builtins jit-*.dump
}

record_node24() {
    record_program -g -- "$other_runtimes/node_modules/.bin/node" --perf-prof "$sources/work.js" $ms
    rm -f isolate-*.log
    by_perf_inject
    without_builtins jit-*.dump
}

# A dump's name has the thread's id, too, and perf inject knows no such name: it has another one of the same length in a copy.
record_bun() {
    local dump tid pid
    BUN_JSC_useJITDump=1 BUN_JSC_jitDumpDirectory=$PWD record_program -g -- "$other_runtimes/node_modules/.bin/bun" "$sources/work.js" $ms
    pid=$(process_of perf.data)
    dump=$(echo jit-*-"$pid".dump)
    tid=${dump#jit-}
    tid=${tid%%-*}
    mkdir "$tid"
    cp "$dump" "$tid/jit-$pid.dump"
    sed "s,/$dump,/$tid/jit-$pid.dump,g" perf.data >renamed.data
    by_perf_inject renamed.data
    rm -r "$tid" renamed.data
}

record_lli() {
    JITDUMPDIR=$PWD record_program -g -- lli-14 -opaque-pointers -jit-kind=mcjit "$sources/work.ll" $ms
    by_perf_inject
}

# No -g: its code uses rbp for other things, and perf discards the chains.
record_php() {
    record_program -- php8.2 -d opcache.enable=1 -d opcache.enable_cli=1 -d opcache.jit_buffer_size=64M -d opcache.jit=function \
        -d opcache.jit_debug=0x20 -d opcache.file_update_protection=0 "$sources/work.php" $ms
    by_perf_inject
}

record_java() {
    javac -d classes "$sources/Work.java"
    record_program -g -- java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit -XX:+PreserveFramePointer -cp classes Work $ms
    by_perfs_own
    rm -r classes
}

# All code that is loaded is in the dump: the boot file has the preloaded modules and this one alone.
record_erlang() {
    mkdir boot
    erlc -o boot "$sources/work.erl"
    cp "$(erl -noshell -eval 'io:format("~s", [code:which(error_handler)]), halt().')" boot/
    erl -noshell -eval 'Words = [{preLoaded, erlang:pre_loaded()}, {progress, preloaded}, {path, ["boot"]}, {primLoad, [error_handler, work]},
        {kernel_load_completed}, {progress, started}, {apply, {work, start, [["'$ms'"]]}}],
        ok = file:write_file("boot/work.boot", term_to_binary({script, {"work", "1"}, Words})), halt().'
    record_program -- erl +JPperf dump -noshell -boot boot/work
    by_perf_inject
    rm -r boot
}

# No -g, as PHP.
record_mono() {
    mcs -out:work.exe "$sources/work.cs"
    record_program -- mono --jitmap work.exe $ms
    by_perfs_own
    rm work.exe
}

# Its functions are callers alone: trampolines to the interpreter, whose stack is unwound by its file's tables.
record_python() {
    local root=$other_runtimes/trixie libraries
    libraries=$(echo "$root"/usr/lib/*-linux-gnu)
    cp "$root/usr/bin/python3.13" .
    PYTHONHOME=$root/usr record_program --call-graph dwarf,16384 -- "$libraries"/ld-linux-*.so.* --library-path "$libraries" ./python3.13 \
        -X perf_jit "$sources/work.py" $ms
    by_perf_inject
    judged_within python3.13
}

# Without a server: one process, which reads work.sql.  It refuses to be root; where root's tests are, another user may not go.
record_postgres() {
    local as=() folder
    folder=$(mktemp -d /tmp/postgres.XXXXXX)
    echo "$folder" >folder
    if [ "$(id -u)" = 0 ]; then
        as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
        chmod a+rwx "$folder"
    fi
    "${as[@]}" "$postgres/initdb" -D "$folder/cluster" -A trust -N --locale C >initdb.log
    echo 'create table numbers as select n from generate_series(1, 400000) n;' |
        "${as[@]}" "$postgres/postgres" --single -D "$folder/cluster" -c fsync=off postgres >initdb.log 2>&1
    for _ in 1 2 3; do cat "$sources/work.sql"; done >work.sql
    JITDUMPDIR=$folder record perf.data -g "${as[@]}" "$postgres/postgres" --single -D "$folder/cluster" -c fsync=off \
        -c jit_profiling_support=on -c jit_above_cost=0 -c jit_inline_above_cost=0 postgres <work.sql >said 2>postgres.log
    [ "$(grep -c 'sum = ' said)" -eq 6 ]
    rm -r "$folder/cluster" work.sql initdb.log postgres.log
    by_perf_inject perf.data "$folder"
}

# ---- Checks ----

# sound [VERDICT]: perfjit check finds nothing but repairs.  VERDICT: or it may say that.
sound() {
    run --separate-stderr perfjit check perf.data
    exits 0
    [[ ${lines[-1]} = "  sound: every sample in JIT code has a name" || ${lines[-1]} = "  ${1:-}" ]] || complain "$output"
}

# logged_is_named: what is [unknown] is code that the runtime logged nowhere, as Mono its trampolines.
logged_is_named() {
    run --separate-stderr perfjit check perf.data
    [ "$status" -eq 3 ] || exits 0
    [ -z "$(grep -E '^ +[0-9]+  process ' <<<"$output" | grep -vE ': no function that was logged ever had this address$')" ] || complain "$output"
}

# reported PATTERN: the first function of perfjit report.
reported() {
    perfjit report -q perf.data | sed -n 2p >first
    grep -qE " $1( |\$)" first || complain "$(cat first)"
}

judged=sound # how perfjit check is

# program_is_named MIX FIB [REPORTED]: both functions of the program have frames, each sample in JIT code is named, mix has the most.
# perfjit report calls it MIX, or REPORTED.
program_is_named() {
    named leaf " $1" 100
    [ "$(grep -cE " $2" jit)" -ge 10 ]
    others_as_recorded leaf
    $judged
    reported "${3:-$1}"
}

# ---- Names ----

# bats test_tags=both
@test "node: names and callers are perf inject's" {
    layouts=image # a file for each of its thousands of functions takes seconds
    use node
    program_is_named '(JS:[*+^~]|LazyCompile:\*)mix ' '(JS:[*+^~]|LazyCompile:\*)fib ' mix
    named chain '^jit [^ ]+ [1-9][0-9]* (JS:[*+^~]|LazyCompile:\*)fib ' 100
    others_as_recorded chain
}

# bats test_tags=both
@test "node 24: names and callers are perf inject's" {
    layouts=image
    use node24 "$other_runtimes/node_modules/.bin/node"
    program_is_named "JS:[*+^~]'?mix " "JS:[*+^~]'?fib " mix
    named chain "^jit [^ ]+ [1-9][0-9]* JS:[*+^~]'?fib " 100
    others_as_recorded chain
}

# bats test_tags=both
@test "Bun: names and callers are perf inject's" {
    use bun "$other_runtimes/node_modules/.bin/bun"
    program_is_named 'JSC-[A-Za-z]+: mix#' 'JSC-[A-Za-z]+: fib#' 'mix#[A-Za-z0-9]+'
    named chain '^jit [^ ]+ [1-9][0-9]* JSC-[A-Za-z]+: fib#' 100
    others_as_recorded chain
}

# bats test_tags=both
@test "lli: names and callers are perf inject's" {
    use lli lli-14
    program_is_named mix fib
    named chain '^jit [^ ]+ [1-9][0-9]* fib\+' 100
    others_as_recorded chain
}

# bats test_tags=both
@test "PHP: names are perf inject's" {
    use php php8.2
    program_is_named 'JIT\$mix' 'JIT\$fib'
}

# bats test_tags=both
@test "Java: names and callers are those that perf reads from the map" {
    use java javac
    program_is_named 'int Work.mix\(int\)' 'long Work.fib\(int\)'
    named chain '^jit [^ ]+ [1-9][0-9]* long Work.fib\(int\)' 100
    others_as_recorded chain
}

# bats test_tags=both
@test "Erlang: names are perf inject's" {
    layouts=image
    use erlang erlc
    program_is_named 'work:mix/2' 'work:fib/1'
}

# bats test_tags=both
@test "Mono: names are those that perf reads from the map" {
    judged=logged_is_named
    use mono mcs
    program_is_named 'Work:mix \(int\)' 'Work:fib \(int\)'
}

# bats test_tags=both
@test "CPython: the functions on each stack are those that perf finds with perf inject's tables" {
    use python "$other_runtimes/trixie/usr/bin/python3.13"
    named chain '^jit [^ ]+ [1-9][0-9]* py::mix:' 100
    sound "no sample is in JIT code" # one in some thousand is in a trampoline
    # Whose totals report shows first, and the interpreter's only if it is told to.
    perfjit report -q perf.data >report
    # The module does nothing but call work: in which of the two the few other samples lie is chance.
    [[ $(sed -n 2,3p report | sort -k 5) == *" jit "*"<module>"*" jit "*" work "* && $(sed -n 4p report) == *" jit "*mix* ]] || complain "$(head -5 report)"
    ! grep _PyEval report || complain "$(head -3 report)"
    grep -qx "Python's functions by total; with the interpreter's own: --sort self" report
    perfjit report -q --sort self perf.data | grep -q _PyEval
    # The program's own functions are nearest, and mix most often.
    awk '$2 != time { split($4, name, ":"); nearest[name[3]]++ } { time = $2 } END { exit !(nearest["fib"] > 10 && nearest["mix"] > nearest["fib"]) }' jit
}

# bats test_tags=both
@test "PostgreSQL: names are perf inject's" {
    use postgres "$postgres/postgres"
    named leaf ' evalexpr_[0-9]+_[0-9]+\+' 50
    others_as_recorded leaf
    named chain ' evalexpr_[0-9]+_[0-9]+\+' 50
    others_as_recorded chain
    sound
    perfjit report -q perf.data | grep -E '% .* jit ' | sed -n 1p >first
    grep -qE ' jit +evalexpr_' first || complain "$(cat first)"
}

# ---- The files: of a dump with source lines, of one that LLVM wrote, and of PHP's, which writes to /tmp ----

# readelf and eu-elflint have nothing to say about the ELF files, and the profile names exactly these.  None is called
# /tmp/jitted-*: perf's libdw unwinder takes another base for such files.
elf_files_are_right() {
    local layout
    for layout in $layouts; do
        injected $layout
        readelf -a -W $layout.data.dso/*.so >/dev/null 2>readelf
        same readelf /dev/null
        eu-elflint --gnu-ld $layout.data.dso/*.so >elflint
        [ "$(grep -cx "No errors" elflint)" -eq "$(find $layout.data.dso -name "*.so" | wc -l)" ]
        maps $layout.data | grep -oE '/[^ ]*\.so$' | grep -F "$layout.data.dso/" | sort -u >paths
        find "$PWD/$layout.data.dso" -name '*.so' | sort >files
        [ -s paths ]
        same paths files
        run ! grep '^/tmp/jitted-' paths
    done
}

second_run_makes_the_same() {
    local layout
    for layout in $layouts; do
        mkdir "$BATS_TEST_TMPDIR/$layout"
        for run in first second; do
            perfjit inject -q -i perf.data -o "$BATS_TEST_TMPDIR/$layout/out.data" --layout $layout
            packed "$BATS_TEST_TMPDIR/$layout" >$run
        done
        same second first
    done
}

# The messages of perf report about a profile, without the report.
complaints() {
    perf report --stdio --no-inline -g none -i "$1" 2>&1 | grep -vE '^ +[0-9.]+% ' |
        grep -iE 'warning|out of order|out-of-order|error|failed|mismatch' || true
}

# Rounds are perf's leave to sort and show; the command line is how the profile came about.
unchanged_parts() {
    perf report -D -i "$1" 2>/dev/null | grep -c 'PERF_RECORD_FINISHED_ROUND'
    perf report --header-only -i "$1" | grep '^# cmdline'
}

perf_reads_it_as_before() {
    local layout
    complaints perf.data >before.said
    unchanged_parts perf.data >before.parts
    grep -q '^# cmdline : .*perf record' before.parts
    for layout in $layouts; do
        injected $layout
        complaints $layout.data >said.after
        same said.after before.said
        run ! grep -iE 'out.of.order' said.after
        unchanged_parts $layout.data >parts
        same parts before.parts
    done
}

@test "node: the ELF files are right, a second run makes the same, perf reads all else as before" {
    layouts=image
    use node
    elf_files_are_right
    second_run_makes_the_same
    perf_reads_it_as_before
}

@test "lli: the ELF files are right, a second run makes the same, perf reads all else as before" {
    use lli lli-14
    elf_files_are_right
    second_run_makes_the_same
    perf_reads_it_as_before
}

@test "PHP: the ELF files are right, a second run makes the same, perf reads all else as before" {
    use php php8.2
    elf_files_are_right
    second_run_makes_the_same
    perf_reads_it_as_before
}
