# Code that only /tmp/perf-PID.map names.  The judge for the runtimes is perf's own reading of the map.  The judge for maps that
# perf reads wrongly (names of one or two letters, a line that replaces another, memfd) is perf_map_code's own log.
load helper

kinds="anon memfd flip grow file again dump"

setup_file() {
    require_perf || return 0
    cd "$BATS_FILE_TMPDIR" || return
    recording kinds record_kinds
    for x in both $kinds; do
        injected $x
    done
    take_maps
}

record_kinds() {
    pwd >place
    write_programs
    record_php both 0x30
    samples_and_chains both.data | jit_names >both.before
    for kind in $kinds; do
        PERFJIT=dump JITDUMPDIR=$PWD record "$kind.data" "$BUILD/producers/perf_map_code" "$kind" 0.3 "$kind.truth" >"$kind.pid"
    done
    samples memfd.data | grep -c function_ >memfd.by_perf || true
}

record_php() { # NAME JIT_DEBUG
    record "$1.data" php8.2 -d opcache.enable=1 -d opcache.enable_cli=1 -d opcache.jit_buffer_size=64M -d opcache.jit=function \
        -d opcache.jit_debug="$2" -d opcache.file_update_protection=0 program.php
}

# injected X: with a row for each body, as perf has with the map: offsets are those of the body.
injected() {
    perfjit inject -v -i "$1.data" -o "$1.image.data" --rows body 2>"$1.err" || complain "$1: status $?: $(tail -5 "$1.err")"
    perfjit inject -i "$1.data" -o "$1.function.data" --layout function
}

# The files of the recorded processes are below this directory.
root=
[ "$RECORDINGS" != stored ] || root=$recorded_root

# The maps that perfjit says it found, and the map of `both`, of which nothing was left to use, go to maps/.  From here on perf
# finds none.  A test that needs one puts it back.
take_maps() {
    mkdir -p maps
    for map in $(grep -ohE '/tmp/perf-[0-9]+\.map$' ./*.err | sort -u) $(dumps_of both.data | sed -E "s|^$root||; s|/jit-([0-9]+)\.dump$|/perf-\1.map|"); do
        [ ! -e "$root$map" ] || mv "$root$map" maps/
    done
}

# Runtimes write to /tmp, whatever they are told.
teardown_file() {
    cd "$BATS_FILE_TMPDIR" || return
    [ ! -e both.data ] || rm -f $(dumps_of both.data)
}

setup() {
    require_perf
    cd "$BATS_FILE_TMPDIR"
    pid=$(cat anon.pid)
    map=$root/tmp/perf-$pid.map
    out=$BATS_TEST_TMPDIR/out.data
    rooted=()
    [ "$RECORDINGS" != stored ] || rooted=(--root "$recorded_root")
}

teardown() {
    [ -z "${map:-}" ] || rm -rf "$map"
    # unshare --fork leaves SIGTERM to its child, to which, a namespace's first process, it is nothing; bats waits for both.
    [ -z "${running:-}" ] || kill -KILL "$running"
}

# ---- Runtimes, live: runtimes.bats has stored ones ----

# recorded node|java|stacks|php: X.before is what perf makes of it with its map.
recorded() {
    [ ! -e "$1.before" ] || return 0
    case $1 in
    # Without -k: a map has no times to compare.
    node) perf record -q -e cpu-clock -F 1000 -g -o node.data node --perf-basic-prof program.js ;;
    java) record java.data -F 1000 -g java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit -XX:+PreserveFramePointer Program.java ;;
    stacks) record stacks.data -F 250 --call-graph dwarf,8192 java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit \
        -XX:+PreserveFramePointer Program.java ;;
    php) record_php php 0x10 ;;
    esac
    samples_and_chains "$1.data" >"$1.before"
    injected "$1"
    [ "$1" != stacks ] || for layout in image function; do
        perfjit inject -i stacks.data -o stacks.$layout.kept.data --layout $layout --stacks keep
    done
    map_of=$(grep -ohE '/tmp/perf-[0-9]+\.map$' "$1.err" | head -1)
    mv "$map_of" "maps/$1.map"
}

write_programs() {
    cat >program.js <<'END'
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
function count(n) { let sum = 0; for (let i = 0; i < n; i++) sum = (sum + i * i) | 0; return sum; }
let sum = 0;
const ran = () => process.cpuUsage().user / 1000; // ms, however busy the machine is
while (ran() < 1000) sum = (sum + fib(20) + count(20000)) | 0;
console.log(sum);
END
    cat >Program.java <<'END'
public class Program {
    static long fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    static int count(int n) { int sum = 0; for (int i = 0; i < n; i++) sum += i * i; return sum; }
    public static void main(String[] arguments) {
        long sum = 0;
        var own = java.lang.management.ManagementFactory.getThreadMXBean(); // its own time, without javac's, which ran in this thread
        long end = own.getCurrentThreadCpuTime() + 1000000000L;
        while (own.getCurrentThreadCpuTime() < end) sum += fib(20) + count(20000);
        System.out.println(sum);
    }
}
END
    cat >program.php <<'END'
<?php
function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }
function count_up($n) { $sum = 0; for ($i = 0; $i < $n; $i++) $sum = ($sum + $i) & 0xffff; return $sum; }
$sum = 0;
function ran() { return getrusage()['ru_utime.tv_sec'] + getrusage()['ru_utime.tv_usec'] / 1e6; } // its own time
while (ran() < 0.4) $sum = ($sum + fib(18) + count_up(20000)) & 0xffff;
echo $sum, "\n";
END
}

# Time, address and symbol of each sample; then all frames, with offsets instead of addresses: in a call chain perf prints them
# relative to the ELF file.  One home for all: perf keeps the [vdso] of the recorded processes there.
samples_and_chains() {
    local BATS_TEST_TMPDIR=$BATS_FILE_TMPDIR
    perf script -i "$1" -F time,ip,sym --ns --no-inline -G
    perf script -i "$1" -F ip,sym,symoff --no-inline | sed -E 's/^[ \t]+[0-9a-f]+ //'
}

# jit_names: those of samples_and_chains that PHP's code has.
jit_names() {
    grep -E ' ?JIT\$' || true
}

# check_names X PATTERN: as perf named them with the map in place; PATTERN matches fib, which must have been seen.
check_names() {
    recorded $1
    for layout in image function; do
        samples_and_chains $1.$layout.data >"$BATS_TEST_TMPDIR/after"
        same "$BATS_TEST_TMPDIR/after" $1.before
    done
    samples_and_chains $1.data >"$BATS_TEST_TMPDIR/without"
    run -1 cmp -s "$BATS_TEST_TMPDIR/without" $1.before # the map does matter
    [ "$(grep -cE "$2" $1.before)" -ge 100 ]
}

# truth X DATA: every sample in X's functions has the name that X.truth tells; prints how many there are.  perf 6.12 takes "f" for a
# mangled type, and shows "float".
truth() {
    perf script -i "$2" -F ip,sym -G --no-inline --no-demangle | awk -v truth="$1.truth" '
        BEGIN {
            while ((getline line < truth) > 0) {
                split(line, words)
                start[++count] = words[1]; end[count] = words[2]
                sub(/^[^ ]+ [^ ]+ /, "", line); name[count] = line
            }
        }
        {
            ip = $1; sub(/^[ \t]*[^ ]+ /, "")
            for (i = 1; i <= count; i++)
                if (length(ip) == length(start[i]) && ip >= start[i] && ip < end[i]) {
                    seen++
                    if ($0 != name[i]) { wrong++; print ip, "is", name[i] ", not", $0 > "/dev/stderr" }
                }
        }
        END { print seen + 0; exit wrong > 0 }'
}

check_truth() {
    for layout in image function; do
        seen=$(truth $1 $1.$layout.data)
        echo "# $1, $layout: $seen samples, all right" >&3
        [ "$seen" -ge 100 ]
    done
}

# The map of `anon`, changed by sed, in its place.
put_map() {
    sed -E "$@" "maps/${map##*/}" >"$map"
}

# refused TEXT...: nothing can be injected, and the reason is said.
refused() {
    run --separate-stderr timeout 20 "$BUILD/perfjit" inject "${rooted[@]}" -i anon.data -o "$out" ${options:-}
    exits 1
    says "$@"
    [ ! -e "$out" ]
}

# ---- Names ----

# bats test_tags=live
@test "node: names and call chains are those that perf reads from the map" {
    check_names node 'JS:\*fib '
}

# bats test_tags=live
@test "java: names and call chains are those that perf reads from the map" {
    check_names java 'Program.fib\(int\)'
}

# bats test_tags=live
@test "php: names are those that perf reads from the map" {
    check_names php 'JIT\$fib'
}

# bats test_tags=live
@test "java: every name is one of the runtime's own" {
    recorded java
    cut -d' ' -f3- maps/java.map | sort -u >"$BATS_TEST_TMPDIR/known"
    perf report -i java.image.data --stdio -g none --no-inline -F dso,sym 2>/dev/null |
        sed -nE 's/^ *jit-[^ ]+ +\[\.\] (.*[^ ]) *$/\1/p' | sort -u >"$BATS_TEST_TMPDIR/named"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/named")" -ge 3 ]
    [ -z "$(comm -23 "$BATS_TEST_TMPDIR/named" "$BATS_TEST_TMPDIR/known")" ]
}

# bats test_tags=live
@test "java: user stacks are unwound through the code by its frame pointers, by perf and by perfjit" {
    recorded stacks
    whole() { awk 'BEGIN { RS = "" } /Program.fib/ && /clone3/ { n++ } END { print n + 0 }'; }
    for form in image.kept function.kept image; do
        before=$(whole <stacks.before) after=$(perf script -i stacks.$form.data --no-inline | whole)
        echo "# $form: $after chains with fib reach the thread's start; $before with the map alone" >&3
        [ "$after" -ge 20 ]
        [ "$after" -gt "$before" ]
    done
}

# bats test_tags=both
@test "anonymous memory: every sample as the program says" {
    check_truth anon
}

@test "memory mapped twice, which perf reads no map for: every sample as the program says" {
    check_truth memfd
    [ "$(cat memfd.by_perf)" -eq 0 ]
}

@test "memory that is protected anew all the time: every sample as the program says" {
    check_truth flip
}

@test "memory that becomes executable bit by bit: every sample as the program says" {
    check_truth grow
}

@test "a mapped file: perf names what it has symbols for, the map the rest, as Deno's, which is stripped" {
    check_truth file
    local names=$BATS_TEST_TMPDIR/names
    perf script -i file.image.data -F ip,sym,dso -G --no-inline >"$names"
    [ "$(grep -cE ' symbol_[0-9]+ \(.*/perf-map-file\.elf\)' "$names")" -ge 10 ]
    [ "$(grep -cE ' function_[0-9]+ \(.*\.dso/' "$names")" -ge 20 ]
    grep -q 'entries in files: 14, outside executable memory: 1' file.err || complain "$(cat file.err)"
}

@test "a file mapped again over memory for code, as V8 maps its builtins: the same" {
    check_truth again
}

@test "a file with symbols that is not there any more: its map names all, and perf none" {
    local names=$BATS_TEST_TMPDIR/names
    cp "maps/perf-$(cat file.pid).map" "$BATS_TEST_TMPDIR"
    mv perf-map-file.elf "$BATS_TEST_TMPDIR"
    perfjit inject -q -i file.data -o "$out" --perf-map "$BATS_TEST_TMPDIR/perf-$(cat file.pid).map"
    perf script -i "$out" -F ip,sym,dso -G --no-inline >"$names"
    mkdir -p "$BATS_TEST_TMPDIR/root$(cat place)"
    mv "$BATS_TEST_TMPDIR/perf-map-file.elf" "$BATS_TEST_TMPDIR/root$(cat place)"
    perfjit inject -v -i file.data -o "$out" --root "$BATS_TEST_TMPDIR/root" --perf-map "$BATS_TEST_TMPDIR/perf-$(cat file.pid).map" 2>"$BATS_TEST_TMPDIR/err"
    mv "$BATS_TEST_TMPDIR/root$(cat place)/perf-map-file.elf" .
    run ! grep symbol_ "$names"
    [ "$(grep -cE ' function_(06|09|12|15|18|21|24|27|30|33|36|39) ' "$names")" -ge 5 ]
    grep -q 'entries in files: 14,' "$BATS_TEST_TMPDIR/err" # by its symbols below the root
}

# bats test_tags=both
@test "a dump and a map: the dump first, and the map for what only it knows" {
    check_truth dump
    [ "$(samples dump.image.data | grep -c 'function_[0-9]* in the dump')" -ge 20 ]
    [ "$(samples dump.image.data | grep -cE 'function_[0-9]*$')" -ge 20 ]
}

@test "php with both: nothing is left for the map, and nothing is lost" {
    grep -q 'functions in' both.err
    run ! grep 'from perf maps' both.err
    samples_and_chains both.image.data | jit_names >"$BATS_TEST_TMPDIR/after"
    same "$BATS_TEST_TMPDIR/after" both.before
    [ "$(grep -c 'JIT\$fib' both.before)" -ge 20 ]
}

# ---- The files ----

@test "readelf, eu-elflint and addr2line find nothing to say about the ELF files" {
    for x in $kinds; do
        for layout in image function; do
            readelf -a -W $(elf_files $x.$layout.data.dso) >/dev/null 2>"$BATS_TEST_TMPDIR/readelf"
            same "$BATS_TEST_TMPDIR/readelf" /dev/null
            eu-elflint --gnu-ld $(elf_files $x.$layout.data.dso) >"$BATS_TEST_TMPDIR/elflint"
            [ "$(grep -cx "No errors" "$BATS_TEST_TMPDIR/elflint")" -eq "$(find $x.$layout.data.dso -name "*.so" | wc -l)" ]
        done
    done
    local file=$(elf_files anon.image.data.dso) address
    address=$(readelf -sW $file | awk '$8 == "function_11" { print $2 }')
    [ "$(addr2line -f -e $file "0x$address" | head -1)" = function_11 ]
}

# bats test_tags=live
@test "a record for all functions of a mapping, not for each" {
    recorded java
    perfjit inject -v -i java.data -o "$out" --rows body --perf-map "$(perf script -F pid -G -i java.data | sort | uniq -c | sort -n | awk 'END { print $2 }'):maps/java.map" 2>err
    [[ $(cat err) =~ ([0-9]+)\ functions\ from\ perf\ maps\ in && ${BASH_REMATCH[1]} -ge 100 ]] || complain "$(cat err)"
    [[ $(cat err) =~ mappings:\ ([0-9]+)\ of\ JIT\ code\ added && ${BASH_REMATCH[1]} -le 20 ]] || complain "$(cat err)"
}

@test "two runs make the same bytes" {
    cp "maps/${map##*/}" "$map"
    for run in first second; do
        perfjit inject -q -i anon.data -o "$out"
        cat "$out" $(elf_files "$out.dso") >"$BATS_TEST_TMPDIR/$run"
    done
    cmp "$BATS_TEST_TMPDIR/first" "$BATS_TEST_TMPDIR/second"
}

@test "what was injected can be injected again: the names stay" {
    cp "maps/${map##*/}" "$map"
    perfjit inject -i anon.image.data -o "$out"
    [ "$(truth anon "$out")" -ge 100 ]
}

@test "code in a gap of the image is unknown JIT code: report and check count it alike" {
    local unknown samples
    awk '$3 !~ /^function_(11|12|13)$/' "maps/${map##*/}" >"$map"
    perfjit inject -q -i anon.data -o "$out"
    run -3 --separate-stderr perfjit check --json "$out"
    read -r unknown samples < <(jq -r '.profile.samples | "\(.jit_unknown) \(.total)"' <<<"$output")
    [ "$unknown" -ge 10 ]
    rm "$map"
    perfjit report -q -n 1 "$out" | grep ' unknown: its perf map does not have this address (perfjit check)$'
    perfjit report -q --json "$out" | jq -e --argjson unknown "$unknown" --argjson samples "$samples" '
        ([.functions[] | select(.module == "anon" and .kind == "unknown").self] | add) * $samples == $unknown * .total
        and ([.functions[] | select(.module | startswith("jit-"))] | length) == 0' || complain "$(perfjit report "$out")"
}

# ---- What is said ----

@test "the summary counts the functions, and -v tells the map and what became of its lines" {
    grep -q ': 42 functions from perf maps in 1 image' anon.err
    grep -q ": read $map" anon.err
    grep -q 'perf map: entries: 43, functions used: 42; entries in files: 0, outside executable memory: 1, reaching out of it: 1' anon.err
}

# bats test_tags=live
@test "without -k, and with code in the program's file and none in the heap: silent, status 0" {
    recorded node
    grep -qE 'entries in files: [1-9][0-9]{2,},' node.err
    run ! grep ' x ' node.err
}

@test "neither dump nor map: 1, and both are named" {
    refused "no jitdump found" "/tmp/perf-<pid>.map"
}

@test "--no-perf-map: none is looked for" {
    cp "maps/${map##*/}" "$map"
    options=--no-perf-map refused "no jitdump found"
    run --separate-stderr perfjit inject --no-perf-map -i dump.data -o "$out"
    exits 0
    [[ $stderr != *"from perf maps"* ]]
}

# ---- Maps by hand ----

@test "--perf-map: a map that was moved, by its name or by pid" {
    cp "maps/${map##*/}" "$BATS_TEST_TMPDIR/other name"
    perfjit inject --no-perf-map -i anon.data -o "$out" --perf-map "maps/${map##*/}"
    truth anon "$out"
    perfjit inject -i anon.data -o "$out" --perf-map "$pid:$BATS_TEST_TMPDIR/other name"
    truth anon "$out"
}

@test "--perf-map: not there, no pid, a pid that was not recorded, two for one process: 1" {
    options="--perf-map /nowhere/perf-$pid.map" refused "/nowhere/perf-$pid.map: No such file or directory"
    options="--perf-map 12:" refused "--perf-map 12: names no file"
    options="--perf-map anon.truth" refused "anon.truth: not named perf-<pid>.map" "--perf-map PID:FILE"
    options="--perf-map 1:maps/perf-$pid.map" refused "process 1 of maps/perf-$pid.map is not in this recording"
    options="--perf-map maps/perf-$pid.map --perf-map $pid:maps/perf-$pid.map" refused "has another map given"
}

# ---- Maps that are not used ----

# bats test_tags=live
@test "another user's: refused, and used if it is named by hand" {
    [ "$(id -u)" = 0 ] || skip "only root can give files away"
    cp "maps/${map##*/}" "$map"
    chown 12345 "$map"
    refused "$map: belongs to user 12345" "--perf-map FILE"
    perfjit inject -i anon.data -o "$out" --perf-map "$map"
    truth anon "$out"
    SUDO_UID=12345 perfjit inject -i anon.data -o "$out"
}

@test "older than the process: refused" {
    cp "maps/${map##*/}" "$map"
    touch -d '2001-01-01' "$map"
    refused "$map: is older, by" "--perf-map FILE"
}

@test "older than the process, which has a dump: left out, and nothing is lost" {
    map=$root$(dumps_of both.data | sed -E 's|.*/jit-([0-9]+)\.dump$|/tmp/perf-\1.map|')
    cp "maps/${map##*/}" "$map"
    touch -d '2001-01-01' "$map"
    run --separate-stderr perfjit inject -i both.data -o "$out"
    exits 0
    says "1 x perf map of an earlier process with the same pid" "$map: is older, by"
    samples_and_chains "$out" | jit_names >"$BATS_TEST_TMPDIR/after"
    same "$BATS_TEST_TMPDIR/after" both.before
}

# bats test_tags=live
@test "older, but nothing tells when the process began (no -k): used" {
    recorded node
    map=$(grep -oE '/tmp/perf-.*' node.err)
    cp maps/node.map "$map"
    touch -d '2001-01-01' "$map"
    perfjit inject -i node.data -o "$out"
}

@test "for other addresses: refused" {
    put_map 's/^(0x)?([0-9a-f]*)[0-9a-f]{8} /\110000000 /'
    refused "$map: none of its" "lies in executable memory of process $pid"
}

@test "for other addresses, of a process that has a dump: left out, and nothing is lost, unless it was given" {
    map=$root$(dumps_of both.data | sed -E 's|.*/jit-([0-9]+)\.dump$|/tmp/perf-\1.map|')
    echo '110000000 10 elsewhere' >"$map"
    run --separate-stderr perfjit inject -i both.data -o "$out"
    exits 0
    says "1 x perf map of an earlier process with the same pid" "$map: none of its 1 function lies in executable memory"
    run --separate-stderr perfjit inject -i both.data -o "$out" --perf-map "$map"
    exits 3
    says "1 x perf map for other addresses"
}

@test "a FIFO, a directory, a symbolic link, a file of 1 TiB: refused at once" {
    mkfifo "$map"
    refused "$map: not a regular file"
    rm "$map" && mkdir "$map"
    refused "$map: not a regular file"
    rmdir "$map" && ln -s "$PWD/maps/${map##*/}" "$map"
    refused "$map: is a symbolic link"
    rm "$map" && truncate -s 1T "$map"
    refused "$map: larger than 256 MiB"
}

@test "empty, and binary rubbish: refused" {
    : >"$map"
    refused "no jitdump found"
    head -c 100000 /bin/true >"$map"
    refused "$map: " "lines can't be read"
}

# bats test_tags=live
@test "a map that can't be used beside one that can: 3" {
    [ "$(id -u)" = 0 ] || skip "only root can give files away"
    local one two
    "$BUILD/producers/perf_map_code" anon 60 one.truth >one.pid &
    one=$!
    "$BUILD/producers/perf_map_code" anon 60 two.truth >two.pid &
    two=$!
    await [ -s one.pid ]
    await [ -s two.pid ]
    map="/tmp/perf-$one.map /tmp/perf-$two.map"
    record two.data -p $one,$two bash -c "await_use $one 200"
    kill $one $two
    wait $one $two || true
    chown 12345 "/tmp/perf-$two.map"
    run --separate-stderr perfjit inject -i two.data -o "$out"
    rm -f $map
    map=
    exits 3
    says "perf-$two.map: belongs to user 12345" " 42 functions from perf maps in "
    [ "$(truth one "$out")" -ge 20 ]
}

# ---- Broken lines ----

@test "broken lines: 3, and the others are used" {
    put_map '$a 7f0012345678 no size here\n12345'
    run --separate-stderr perfjit inject -i anon.data -o "$out"
    exits 3
    says "1 x perf map with broken lines" "$map: 2 lines can't be read; 43 functions are left"
    [ "$(truth anon "$out")" -ge 100 ]
}

# ---- Processes that live, and containers ----

# bats test_tags=live
@test "a process that was attached to, and still lives" {
    "$BUILD/producers/perf_map_code" anon 60 attached.truth >attached.pid &
    running=$!
    await [ -s attached.pid ]
    map=/tmp/perf-$running.map
    record attached.data -p $running bash -c "await_use $running 200"
    perfjit inject -i attached.data -o "$out"
    [ "$(truth attached "$out")" -ge 100 ]
}

# found_through_proc NAME PID TRUTH MAP: of the process, whose TRUTH is below its own root, the map in its own /tmp is read.
found_through_proc() {
    cp "/proc/$2/root/$3" "$1.truth"
    record "$1.data" -p "$2" bash -c "await_use $2 200"
    run --separate-stderr perfjit inject -v -i "$1.data" -o "$out"
    exits 0
    says "read /proc/$2/root/tmp/$4"
    [ "$(truth "$1" "$out")" -ge 100 ]
}

# Its pid is 1 there, and its /tmp its own.
# bats test_tags=live
@test "a process in a container that lives: the map is found through /proc" {
    local host
    unshare --pid --mount --fork true 2>/dev/null || skip "unshare does not work here"
    local root=$BATS_TEST_TMPDIR/root
    mkdir "$root"
    unshare --pid --mount --fork --kill-child bash -c "
        mount -t tmpfs tmpfs '$root' && cd '$root' && mkdir tmp usr lib lib64 work
        for place in usr lib lib64; do mount --rbind /\$place \$place; done
        cp '$BUILD/producers/perf_map_code' work/
        exec chroot . /work/perf_map_code anon 60 /work/truth" >boxed.pid &
    running=$!
    await [ -s boxed.pid ]
    host=$(pgrep -P $running)
    found_through_proc boxed "$host" work/truth perf-1.map
}

# As systemd starts a service with PrivateTmp: nothing but /tmp is another.
# bats test_tags=live
@test "a service that lives and has a /tmp of its own: the map is found through /proc" {
    unshare --mount true 2>/dev/null || skip "unshare does not work here"
    local own=$BATS_TEST_TMPDIR/own
    mkdir "$own"
    unshare --mount bash -c "
        mount -t tmpfs tmpfs '$own' && cp '$BUILD/producers/perf_map_code' '$own' && mount --move '$own' /tmp
        exec /tmp/perf_map_code anon 60 /tmp/truth" >service.pid &
    running=$!
    await [ -s service.pid ]
    found_through_proc service "$running" tmp/truth "perf-$running.map"
}

# ---- Size ----

# put_many_lines N: N times 12288 of them, the last third of which counts.
put_many_lines() {
    local start prefix page
    start=$(sed -nE '1s/^(0x)?0*([0-9a-f]+) .*/\2/p' "maps/${map##*/}")
    for page in $(seq "$1") $(seq "$1") $(seq "$1"); do
        printf -v prefix %x $((16#${start%000} + page - 1))
        awk -v prefix="$prefix" 'BEGIN { for (i = 0; i < 4096; i++) printf "%s%03x 1 a_function_of_page_%s_%d\n", prefix, i, prefix, i }'
    done >"$map"
}

# bats test_tags=live
@test "many lines: four times as many cost at most six times as much" {
    local pages cost=()
    command -v valgrind >/dev/null || skip "no valgrind"
    for pages in 2 8; do
        put_many_lines $pages
        cost+=("$(instructions "$BUILD/perfjit" inject -i anon.data -o "$out" 2>"$BATS_TEST_TMPDIR/said")")
        grep -q "$((4096 * pages)) functions from perf maps" "$BATS_TEST_TMPDIR/said" || complain "$(cat "$BATS_TEST_TMPDIR/said")"
    done
    echo "# ${cost[1]} instructions for $(wc -l <"$map") lines, ${cost[0]} for a quarter" >&3
    [ "${cost[0]}" -gt 1000000 ] && [ "${cost[1]}" -lt $((6 * cost[0])) ]
}
