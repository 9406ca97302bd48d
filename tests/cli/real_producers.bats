# Profiles of real runtimes: perfjit against perf inject, which is the oracle, and against the profile as recorded.
#
# For each of node, lli and php there is X.data (recorded) and X.oracle.data (perf inject), X.image.data and
# X.function.data (perfjit); and the same with call chains as X-g.
load helper

setup_file() {
    require_perf || return 0
    cd "$BATS_FILE_TMPDIR" || return
    write_programs
    for g in "" -g; do
        record node$g.data ${g:+-F 1000 -g} node --perf-prof program.js
        JITDUMPDIR=$PWD record lli$g.data ${g:+-F 1000 -g} lli-14 -jit-kind=mcjit program.ll
        record php$g.data ${g:+-F 1000 -g} php8.2 -d opcache.enable=1 -d opcache.enable_cli=1 -d opcache.jit_buffer_size=64M \
            -d opcache.jit=function -d opcache.jit_debug=0x30 -d opcache.file_update_protection=0 program.php
    done >programs.out
    for x in {node,lli,php}{,-g}; do
        perf inject --jit -i $x.data -o $x.oracle.data
        # A row for each body, as perf inject has: offsets are those of the body.
        perfjit inject -i $x.data -o $x.image.data --rows body
        perfjit inject -i $x.data -o $x.function.data --layout function
    done
}

# php writes to /tmp, whatever it is told, and perf inject puts its files beside the dump.
teardown_file() {
    cd "$BATS_FILE_TMPDIR" || return
    [ -e php.data ] || return 0
    for dump in $(dumps_of php.data) $(dumps_of php-g.data); do
        [[ $dump =~ ^/tmp/jit-([0-9]+)\.dump$ ]] || continue
        rm -f "$dump" "/tmp/perf-${BASH_REMATCH[1]}.map" /tmp/jitted-"${BASH_REMATCH[1]}"-*.so
    done
}

setup() {
    require_perf
    cd "$BATS_FILE_TMPDIR"
}

# Each runs for about a second and has a few hot functions, of which one is fib.
write_programs() {
    cat >program.js <<'END'
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
function sieve(n) {
    const composite = new Uint8Array(n + 1);
    let count = 0;
    for (let i = 2; i <= n; i++) {
        if (composite[i]) continue;
        count++;
        for (let j = i * 2; j <= n; j += i) composite[j] = 1;
    }
    return count;
}
function sortNumbers(n) {
    const numbers = [];
    for (let i = 0, x = 12345; i < n; i++, x = (x * 1103515245 + 12345) & 0x7fffffff) numbers.push(x);
    return numbers.sort((a, b) => a - b)[n >> 1];
}
function join(n) {
    let text = '';
    for (let i = 0; i < n; i++) text += i & 7;
    return text.length;
}
let sum = 0;
const ran = () => process.cpuUsage().user / 1000; // ms, however busy the machine is
while (ran() < 1000) sum = (sum + fib(20) + sieve(20000) + sortNumbers(2000) + join(1000)) | 0;
console.log(sum);
END
    cat >program.ll <<'END'
define i64 @fib(i64 %n) noinline "frame-pointer"="all" {
entry:
  %small = icmp slt i64 %n, 2
  br i1 %small, label %done, label %more
more:
  %n1 = sub i64 %n, 1
  %n2 = sub i64 %n, 2
  %a = call i64 @fib(i64 %n1)
  %b = call i64 @fib(i64 %n2)
  %sum = add i64 %a, %b
  ret i64 %sum
done:
  ret i64 %n
}

define i64 @mix(i64 %n) noinline "frame-pointer"="all" {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %state = phi i64 [ 1, %entry ], [ %mixed, %loop ]
  %shifted = lshr i64 %state, 7
  %crossed = xor i64 %shifted, %i
  %mixed = mul i64 %crossed, 6364136223846793005
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret i64 %mixed
}

define i32 @main() "frame-pointer"="all" {
entry:
  br label %again
again:
  %round = phi i64 [ 0, %entry ], [ %next, %again ]
  %f = call i64 @fib(i64 27)
  %m = call i64 @mix(i64 2000000)
  %next = add i64 %round, 1
  %more = icmp slt i64 %next, 200
  br i1 %more, label %again, label %done
done:
  ret i32 0
}
END
    cat >program.php <<'END'
<?php
function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }
function sieve($n) {
    $composite = array_fill(0, $n + 1, 0);
    $count = 0;
    for ($i = 2; $i <= $n; $i++) {
        if ($composite[$i]) continue;
        $count++;
        for ($j = 2 * $i; $j <= $n; $j += $i) $composite[$j] = 1;
    }
    return $count;
}
function mix($n) {
    $x = 1;
    for ($i = 0; $i < $n; $i++) $x = ($x * 1103515245 + 12345) & 0x7fffffff;
    return $x;
}
$sum = 0;
function ran() { return getrusage()['ru_utime.tv_sec'] + getrusage()['ru_utime.tv_usec'] / 1e6; } // its own time
while (ran() < 1) $sum = ($sum + fib(18) + sieve(5000) + mix(20000)) & 0xffff;
echo $sum, "\n";
END
}

# ---- The checks ----

# frames DATA leaf|chain: a line for each frame: "jit" or "other", time, depth, address, symbol with offset, and for
# other frames the DSO.  perf prints for a frame of a call chain its address in the DSO, which for JIT code depends on the
# layout: there it is left out of jit lines.
frames() {
    local fields=time,ip,sym,symoff,dso chains=1
    [ "$2" = chain ] || fields="$fields -G" chains=0
    # shellcheck disable=SC2086 # two words
    perf script -i "$1" -F $fields --ns --no-inline | awk -v chains=$chains '
        $1 ~ /^[0-9]+\.[0-9]+:$/ { time = $1; depth = 0; sub(/^ *[0-9.]+: */, "") }
        NF == 0 { next }
        {
            dso = $0; sub(/.* \(/, "", dso); sub(/\)$/, "", dso)
            frame = substr($0, 1, length($0) - length(dso) - 3)
            sub(/^[ \t]+/, "", frame)
            jit = dso ~ /\/jitted-[0-9]+-[0-9]+\.so$/ || dso ~ /\.dso\/.*jit-[^\/]*\.so$/
            if (jit && chains) sub(/^[^ ]+ /, "", frame)
            print jit ? "jit" : "other", time, depth++, frame, jit ? "" : dso
        }'
}

# jit_frames FILE: of what frames printed, without callers that are the begin of a function.  No call returns there: what the kernel took
# for a caller was rbp's in compiled code, which uses it for other things, as while lli finishes the function; perf inject names it
# from the load on, perfjit from where the memory was mapped.
jit_frames() {
    grep '^jit' "$1" | grep -vE '^jit [^ ]+ [1-9][0-9]* .*\+0x0$'
}

# check_frames X leaf|chain PATTERN: PATTERN matches what frames prints for fib.
check_frames() {
    local fib all
    frames "$1.data" "$2" >"$BATS_TEST_TMPDIR/before"
    frames "$1.oracle.data" "$2" >"$BATS_TEST_TMPDIR/oracle"
    jit_frames "$BATS_TEST_TMPDIR/oracle" >"$BATS_TEST_TMPDIR/oracle.jit"
    for layout in image function; do
        frames "$1.$layout.data" "$2" >"$BATS_TEST_TMPDIR/after"
        jit_frames "$BATS_TEST_TMPDIR/after" >"$BATS_TEST_TMPDIR/jit"
        same "$BATS_TEST_TMPDIR/jit" "$BATS_TEST_TMPDIR/oracle.jit"
        # All other frames: those of the profile before, but for the times and depths at which JIT frames stand now.
        awk 'NR == FNR { if ($1 == "jit") taken[$2 $3]; next } !($2 $3 in taken)' "$BATS_TEST_TMPDIR/after" \
            "$BATS_TEST_TMPDIR/before" >"$BATS_TEST_TMPDIR/before.other"
        grep '^other' "$BATS_TEST_TMPDIR/after" >"$BATS_TEST_TMPDIR/other"
        same "$BATS_TEST_TMPDIR/other" "$BATS_TEST_TMPDIR/before.other"
    done
    all=$(wc -l <"$BATS_TEST_TMPDIR/jit") fib=$(grep -cE "$3" "$BATS_TEST_TMPDIR/jit")
    echo "# $1: $all JIT frames, of which $fib are fib's; $(wc -l <"$BATS_TEST_TMPDIR/other") other frames" >&3
    [ "$fib" -ge 50 ] || complain "only $fib frames of fib"
}

check_elf_files() {
    for layout in image function; do
        local dir=$1.$layout.data.dso
        readelf -a -W "$dir"/*.so >/dev/null 2>"$BATS_TEST_TMPDIR/readelf"
        same "$BATS_TEST_TMPDIR/readelf" /dev/null
        eu-elflint --gnu-ld "$dir"/*.so >"$BATS_TEST_TMPDIR/elflint"
        [ "$(grep -cx "No errors" "$BATS_TEST_TMPDIR/elflint")" -eq "$(find "$dir" -name "*.so" | wc -l)" ]
    done
}

# A checksum for a directory's files.  The ELF files are sparse: only tar passes over their holes.
checksum() {
    tar --create --sparse --sort=name --mtime=@0 -C "$1" . | sha256sum
}

check_repeated_run() {
    for layout in image function; do
        mkdir "$BATS_TEST_TMPDIR/$layout"
        for run in first second; do
            perfjit inject -q -i "$1.data" -o "$BATS_TEST_TMPDIR/$layout/out.data" --layout $layout --rows body
            checksum "$BATS_TEST_TMPDIR/$layout" >"$BATS_TEST_TMPDIR/$run"
        done
        same "$BATS_TEST_TMPDIR/second" "$BATS_TEST_TMPDIR/first"
    done
}

# What perf report has to say about a profile, other than the report.
complaints() {
    perf report --stdio --no-inline -g none -i "$1" 2>&1 | grep -vE '^ +[0-9.]+% ' |
        grep -iE 'warning|out of order|out-of-order|error|failed|mismatch' || true
}

check_report() {
    complaints "$1.data" >"$BATS_TEST_TMPDIR/before"
    for layout in image function; do
        complaints "$1.$layout.data" >"$BATS_TEST_TMPDIR/after"
        same "$BATS_TEST_TMPDIR/after" "$BATS_TEST_TMPDIR/before"
        run ! grep -iE 'out.of.order' "$BATS_TEST_TMPDIR/after"
    done
}

# Rounds are perf's leave to sort and show; the command line is how the profile came about.
unchanged_parts() {
    perf report -D -i "$1" 2>/dev/null | grep -c 'PERF_RECORD_FINISHED_ROUND'
    perf report --header-only -i "$1" | grep '^# cmdline'
}

check_unchanged_parts() {
    unchanged_parts "$1.data" >"$BATS_TEST_TMPDIR/before"
    grep -q '^# cmdline : .*perf record' "$BATS_TEST_TMPDIR/before"
    for layout in image function; do
        unchanged_parts "$1.$layout.data" >"$BATS_TEST_TMPDIR/after"
        same "$BATS_TEST_TMPDIR/after" "$BATS_TEST_TMPDIR/before"
    done
}

# perf's libdw unwinder takes another base for files of which the path begins with /tmp/jitted-.
check_paths() {
    for layout in image function; do
        maps "$1.$layout.data" | grep -oE '/[^ ]*\.so$' | grep -F "$layout.data.dso/" | sort -u >"$BATS_TEST_TMPDIR/paths"
        [ -s "$BATS_TEST_TMPDIR/paths" ]
        run ! grep '^/tmp/jitted-' "$BATS_TEST_TMPDIR/paths"
        find "$PWD/$1.$layout.data.dso" -name '*.so' | sort >"$BATS_TEST_TMPDIR/files"
        same "$BATS_TEST_TMPDIR/paths" "$BATS_TEST_TMPDIR/files"
    done
}

# ---- The tests ----

@test "node: the JIT frames are perf inject's, the others are as recorded" {
    check_frames node leaf ' (JS|LazyCompile):\*fib '
    check_frames node-g leaf ' (JS|LazyCompile):\*fib '
}

@test "lli: the JIT frames are perf inject's, the others are as recorded" {
    check_frames lli leaf ' fib\+'
    check_frames lli-g leaf ' fib\+'
}

@test "php: the JIT frames are perf inject's, the others are as recorded" {
    check_frames php leaf ' JIT\$fib\+'
    check_frames php-g leaf ' JIT\$fib\+'
}

@test "node: the callers in call chains are perf inject's" {
    check_frames node-g chain '^jit [^ ]+ [1-9][0-9]* (JS|LazyCompile):\*fib '
}

@test "lli: the callers in call chains are perf inject's" {
    check_frames lli-g chain '^jit [^ ]+ [1-9][0-9]* fib\+'
}

# There are no callers in php's: its JIT code uses rbp for other things, so perf discards the chains.

@test "node: readelf and eu-elflint find nothing to say about the ELF files" {
    check_elf_files node
}

@test "lli: readelf and eu-elflint find nothing to say about the ELF files" {
    check_elf_files lli
}

@test "php: readelf and eu-elflint find nothing to say about the ELF files" {
    check_elf_files php
}

@test "node: two runs make the same files" {
    check_repeated_run node
}

@test "lli: two runs make the same files" {
    check_repeated_run lli
}

@test "php: two runs make the same files" {
    check_repeated_run php
}

@test "node: perf report has no new complaints" {
    check_report node
    check_report node-g
}

@test "lli: perf report has no new complaints" {
    check_report lli
    check_report lli-g
}

@test "php: perf report has no new complaints" {
    check_report php
    check_report php-g
}

@test "node: rounds and command line are as recorded" {
    check_unchanged_parts node
    check_unchanged_parts node-g
}

@test "lli: rounds and command line are as recorded" {
    check_unchanged_parts lli
    check_unchanged_parts lli-g
}

@test "php: rounds and command line are as recorded" {
    check_unchanged_parts php
    check_unchanged_parts php-g
}

@test "node: the profile names exactly the ELF files, none of them /tmp/jitted-*" {
    check_paths node
}

@test "lli: the profile names exactly the ELF files, none of them /tmp/jitted-*" {
    check_paths lli
}

@test "php: the profile names exactly the ELF files, none of them /tmp/jitted-*" {
    check_paths php
}
