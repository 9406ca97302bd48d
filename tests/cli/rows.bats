# One function, one row: what perf report, perf diff and perf annotate show of code that is compiled again and again, in
# several processes.
#
# For each X there is X.data (recorded) and X.name.data, X.body.data, X.function.data, made with --rows.  The files demo2 and
# node2 are other runs of demo and node, for perf diff.  Stored are those of tinyjit: the demo alone, and three processes of it.
load helper

recorded="demo several" again=demo2 pair="demo several"
[ "$RECORDINGS" != live ] || recorded+=" node workers cluster php" again+=" node2" pair="demo node"

setup_file() {
    require_perf || return 0
    cd "$BATS_FILE_TMPDIR" || return
    local x rows
    cp "$here/../../examples/tinyjit/demo.tj" .
    for x in 1 2 3; do # fib() has another body in each
        mkdir $x
        sed "s/return fib(n - 1) + fib(n - 2);/return fib(n - 1) + fib(n - 2) + $x;/" demo.tj >$x/demo.tj
    done
    recording demo record_demos
    [ "$RECORDINGS" != live ] || record_others
    for x in $recorded $again; do
        for rows in name body function; do
            perfjit inject -i $x.data -o $x.$rows.data --rows $rows 2>$x.$rows.err || [ $? -eq 3 ]
        done
    done
}

record_demos() {
    local PERFJIT=dump JITDUMPDIR=$PWD
    export PERFJIT JITDUMPDIR BUILD
    for x in demo demo2; do record $x.data --all-user -g "$BUILD/tinyjit" --seconds=0.5 demo.tj >/dev/null; done
    # shellcheck disable=SC2016 # for the inner shell
    record several.data --all-user bash -c 'for i in 1 2 3; do "$BUILD/tinyjit" --seconds=0.2 $i/demo.tj & done; wait' >/dev/null
}

record_others() {
    make_programs
    for x in node node2; do record $x.data node --perf-prof load.js >/dev/null; done
    record workers.data node --perf-prof workers.js >/dev/null
    record cluster.data node --perf-prof cluster.js >/dev/null
    record php.data php8.2 -d opcache.enable=1 -d opcache.enable_cli=1 -d opcache.jit_buffer_size=64M \
        -d opcache.jit=function -d opcache.jit_debug=0x30 -d opcache.file_update_protection=0 prefork.php >/dev/null
    remove_maps php.data
}

teardown_file() {
    [ ! -e "$BATS_FILE_TMPDIR/php.data" ] || remove_dumps "$BATS_FILE_TMPDIR/php.data"
}

# load.js: functions that V8 compiles in several tiers, and some of one name and place that are not one.
make_programs() {
    cat >load.js <<'END'
const shapes = [];
for (let i = 0; i < 30; i++)
    shapes.push(new Function(`return class {
  constructor(x) { this.x = x; }
  area(y) { return this.x * y + ${i}; }
  scale(n) { let sum = 0; for (let k = 0; k < n; k++) sum += this.area(k % ${i + 2}); return sum; }
};`)());
function collatz(n) { let s = 0; while (n > 1) { n = n % 2 ? 3 * n + 1 : n / 2; s++; } return s; }
function longest(n) { let m = 0; for (let i = 1; i < n; i++) m = Math.max(m, collatz(i)); return m; }
const begin = process.cpuUsage().user;
let total = 0;
while (process.cpuUsage().user - begin < 8e5) {
    for (const shape of shapes) total += new shape(3).scale(2000);
    total += longest(3000);
}
if (!Number.isFinite(total)) process.exit(1);
END
    cat >workers.js <<'END'
const {Worker, isMainThread} = require('worker_threads');
if (isMainThread) for (let i = 0; i < 4; i++) new Worker(__filename);
else require('./load.js');
END
    cat >cluster.js <<'END'
const cluster = require('cluster');
if (cluster.isPrimary) for (let i = 0; i < 3; i++) cluster.fork();
else { require('./load.js'); process.exit(0); }
END
    cat >prefork.php <<'END'
<?php
function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }
function mix($n) { $x = 1; for ($i = 0; $i < $n; $i++) $x = ($x * 1103515245 + 12345) & 0x7fffffff; return $x; }
function ran() { return getrusage()['ru_utime.tv_sec'] + getrusage()['ru_utime.tv_usec'] / 1e6; }
$sum = fib(20);
for ($i = 0; $i < 3; $i++)
    if (pcntl_fork() == 0) { while (ran() < 0.4) $sum = ($sum + fib(18) + mix(20000)) & 0xffff; exit(0); }
while (pcntl_wait($status) > 0);
echo $sum, "\n";
END
}

setup() {
    require_perf
    cd "$BATS_FILE_TMPDIR"
}

# rows DATA SORT: of perf report's rows those in perfjit's files: samples, symbol.
rows() {
    perf report -i "$1" --stdio --no-children -g none --sort "dso,$2" -F "sample,dso,$2" 2>/dev/null |
        sed -nE 's/^ *([0-9]+) +jit-[^ ]*\.so +\[\.\] +(.*[^ ]) *$/\1 \2/p'
}

# sums: of each name's samples.
sums() {
    awk '{ n = $1; sub(/^[0-9]+ /, ""); sum[$0] += n } END { for (name in sum) print sum[name], name }' | sort
}

# bats test_tags=both
@test "as many rows as names, and each name has the samples that its rows had" {
    local x many=0
    for x in $recorded; do
        rows $x.body.data sym | sort >"$BATS_TEST_TMPDIR/before"
        rows $x.name.data sym | sort >"$BATS_TEST_TMPDIR/after"
        sums <"$BATS_TEST_TMPDIR/before" >"$BATS_TEST_TMPDIR/wanted"
        echo "# $x: $(wc -l <"$BATS_TEST_TMPDIR/before") rows, now $(wc -l <"$BATS_TEST_TMPDIR/after")" >&3
        [ -s "$BATS_TEST_TMPDIR/after" ]
        same "$BATS_TEST_TMPDIR/after" "$BATS_TEST_TMPDIR/wanted"
        many=$((many + $(wc -l <"$BATS_TEST_TMPDIR/before") - $(wc -l <"$BATS_TEST_TMPDIR/after")))
    done
    [ $many -ge 20 ]
}

@test "with --sort sym there is no name twice" {
    local x
    for x in $recorded; do
        perf report -i $x.name.data --stdio --no-children -g none --sort sym 2>/dev/null |
            sed -nE 's/^ *[0-9.]+% +\[\.\] +(.*[^ ]) *$/\1/p' >"$BATS_TEST_TMPDIR/all"
        rows $x.name.data sym | sed 's/^[0-9]* //' >"$BATS_TEST_TMPDIR/names"
        [ -z "$(grep -Fxf "$BATS_TEST_TMPDIR/names" "$BATS_TEST_TMPDIR/all" | sort | uniq -d)" ] || complain "$x"
    done
}

# bats test_tags=both
@test "every sample and frame has the name that it has with --rows body" {
    local x rows
    for x in $recorded; do
        for rows in name body; do
            perf script -i $x.$rows.data -F time,ip,sym --ns --no-inline | sed -E 's/^\t +[0-9a-f]+ /\t/' >"$BATS_TEST_TMPDIR/$rows"
        done
        same "$BATS_TEST_TMPDIR/name" "$BATS_TEST_TMPDIR/body"
    done
}

@test "every sample has the source line and the inlined calls that it has with --rows body" {
    local x rows
    asking_of_jit_code
    for x in $pair; do
        for rows in name body; do
            perf script -i $x.$rows.data -G -F time,ip,sym,srcline --ns >"$BATS_TEST_TMPDIR/$rows"
        done
        grep -q '\(demo.tj\|load.js\):[0-9]' "$BATS_TEST_TMPDIR/name"
        same "$BATS_TEST_TMPDIR/name" "$BATS_TEST_TMPDIR/body"
    done
}

# bats test_tags=both
@test "one file for all processes; it is sound, and called the same in every run" {
    local x names=
    for x in $recorded; do
        [ "$(elf_files $x.name.data.dso | wc -l)" -eq 1 ] || complain "$x: $(elf_files $x.name.data.dso)"
        names+=" $(basename "$(elf_files $x.name.data.dso)")"
        run eu-elflint --gnu-ld "$(elf_files $x.name.data.dso)"
        [ "$output" = "No errors" ] || complain "$x: $output"
    done
    [ "$(tr ' ' '\n' <<<"$names" | grep . | sort -u | wc -l)" -eq 1 ] || complain "$names"
    for x in several $([ "$RECORDINGS" != live ] || echo cluster); do [ "$(elf_files $x.body.data.dso | wc -l)" -ge 3 ]; done
}

@test "two runs make the same bytes" {
    local x
    for x in $recorded; do
        perfjit inject -q -i $x.data -o "$BATS_TEST_TMPDIR/again.data" --dso-dir "$BATS_TEST_TMPDIR/$x.dso" || [ $? -eq 3 ]
        cmp "$(elf_files $x.name.data.dso)" "$(elf_files "$BATS_TEST_TMPDIR/$x.dso")"
    done
}

# image_maps DATA: of each map of perfjit's files: pid, file, where the file would begin, and whether it does begin there.
image_maps() {
    perf script -i "$1" --show-mmap-events 2>/dev/null |
        sed -nE 's,.*PERF_RECORD_MMAP2 ([0-9]+)/[0-9]+: \[0x([0-9a-f]+)\(0x[0-9a-f]+\) @ (0x)?([0-9a-f]+) .* (/.*/jit-[^ /]*\.so)$,\1 \5 \2 \4,p' |
        while read -r pid file start pgoff; do printf '%s %s %x %s\n' "$pid" "$file" $((16#$start - 16#$pgoff)) "$((16#$pgoff == 0))"; done
}

# Readers that take one place in memory for each file (hotspot does) need its beginning in front of its functions, and again
# after that of another file.
# bats test_tags=both
@test "one place for a file in each process: where no name has two bodies, and with --rows body; its beginning is mapped" {
    local x
    sound_recording functions
    perfjit inject -q -i sound.data -o sound.name.data
    image_maps sound.name.data >"$BATS_TEST_TMPDIR/sound"
    for x in demo several; do image_maps $x.body.data >"$BATS_TEST_TMPDIR/$x"; done
    for x in sound demo several; do
        awk '($1, $2) in place && place[$1, $2] != $3 { bad = 1 }
             { place[$1, $2] = $3 }
             $4 { begun[$1] = $2; begins++ }
             !$4 { functions++; count[$2]++; if (begun[$1] == $2) behind[$2]++ }
             END { for (file in count) if (count[file] > 1 && behind[file] != count[file]) bad = 1; exit bad || !begins || !functions }' \
            "$BATS_TEST_TMPDIR/$x" || complain "$x: $(cat "$BATS_TEST_TMPDIR/$x")"
    done
    # Where names have several bodies there is no such place.
    ! image_maps demo.name.data | grep ' 1$' || complain "$(image_maps demo.name.data)"
}

@test "outputs share a directory" {
    local x
    for x in $pair; do perfjit inject -q -i $x.data -o "$BATS_TEST_TMPDIR/$x.data" --dso-dir "$BATS_TEST_TMPDIR/dso" || [ $? -eq 3 ]; done
    [ "$(elf_files "$BATS_TEST_TMPDIR/dso" | wc -l)" -eq 2 ]
    for x in $pair; do
        rows "$BATS_TEST_TMPDIR/$x.data" sym >"$BATS_TEST_TMPDIR/got"
        rows $x.name.data sym >"$BATS_TEST_TMPDIR/wanted"
        same "$BATS_TEST_TMPDIR/got" "$BATS_TEST_TMPDIR/wanted"
    done
}

# large DATA: the JIT functions with at least 0.5 % of the samples.
large() {
    perf report -i "$1" --stdio --no-children -g none --sort dso,sym 2>/dev/null |
        sed -nE 's/^ *([0-9.]+)% +jit-[^ ]*\.so +\[\.\] +(.*[^ ]) *$/\1 \2/p' | awk '$1 >= 0.5' | sed 's/^[0-9.]* //' | sort -u
}

# matched ONE OTHER: those that perf diff has in both.
matched() {
    perf diff "$1" "$2" 2>/dev/null | sed -nE 's/^ *[0-9.]+% +[-+][0-9.]+% +jit-[^ ]*\.so +\[\.\] +(.*[^ ]) *$/\1/p' | sort -u
}

# bats test_tags=both
@test "perf diff of two runs matches every function with 0.5 % in both" {
    local x
    for x in ${again//2/}; do
        comm -12 <(large $x.name.data) <(large ${x}2.name.data) >"$BATS_TEST_TMPDIR/both"
        matched $x.name.data ${x}2.name.data >"$BATS_TEST_TMPDIR/matched"
        matched $x.body.data ${x}2.body.data >"$BATS_TEST_TMPDIR/formerly"
        echo "# $x: $(wc -l <"$BATS_TEST_TMPDIR/both") in both, all matched; with --rows body $(wc -l <"$BATS_TEST_TMPDIR/formerly")" >&3
        [ "$(wc -l <"$BATS_TEST_TMPDIR/both")" -ge 2 ]
        grep -qE 'tj::(fib|collatz_length) |JS:\*longest ' "$BATS_TEST_TMPDIR/both" || complain "$(cat "$BATS_TEST_TMPDIR/both")" # hot in each run
        [ -z "$(comm -23 "$BATS_TEST_TMPDIR/both" "$BATS_TEST_TMPDIR/matched")" ]
    done
}

# three_bodies DATA: a function with samples and several bodies, three at least.
three_bodies() {
    local name
    rows "$1" sym | sort -rn | while read -r _ name; do
        [ "$(bodies_of "$1" "$name" | wc -l)" -lt 3 ] || { echo "$name"; break; }
    done
}

# bodies_of DATA NAME: the labels within its symbol.
bodies_of() {
    readelf -sW "$(elf_files "$1.dso")" | awk -v name="$2" '
        function hex(text, n, i) { for (i = 1; i <= length(text); i++) n = n * 16 + index("0123456789abcdef", substr(text, i, 1)) - 1; return n }
        { symbol = $0; for (i = 1; i <= 7; i++) sub(/^ *[^ ]+ +/, "", symbol) }
        $4 == "FUNC" && symbol == name { start = hex($2); size = $3 ~ /^0x/ ? hex(substr($3, 3)) : $3 }
        $4 == "NOTYPE" && $6 == "HIDDEN" { at[++n] = hex($2); text[n] = symbol }
        END { for (i = 1; i <= n; i++) if (at[i] >= start && at[i] < start + size) print text[i] }'
}

# bats test_tags=both
@test "perf annotate shows each body, with a label, and their percentages make 100" {
    local name x status
    for x in several $([ "$RECORDINGS" != live ] || echo node); do
        name=$(three_bodies $x.name.data)
        [ -n "$name" ]
        status=0
        perf annotate -i $x.name.data --stdio -s "$name" 2>/dev/null >"$BATS_TEST_TMPDIR/annotated" || status=$?
        [ $status -ne 139 ] || unavailable "a perf that annotates several bodies of one name: perf 6.12 ends with SIGSEGV"
        [ $status -eq 0 ]
        bodies_of $x.name.data "$name" | sort >"$BATS_TEST_TMPDIR/bodies"
        sed -nE 's/^.*<(body [0-9]+ of [0-9]+, .*loaded at [0-9.]+)>:$/\1/p' "$BATS_TEST_TMPDIR/annotated" | sort >"$BATS_TEST_TMPDIR/shown"
        echo "# $name: $(wc -l <"$BATS_TEST_TMPDIR/bodies") bodies" >&3
        same "$BATS_TEST_TMPDIR/shown" "$BATS_TEST_TMPDIR/bodies"
        awk '$2 == ":" && $1 ~ /^[0-9.]+$/ { sum += $1 } END { exit !(sum > 99 && sum < 101) }' "$BATS_TEST_TMPDIR/annotated"
        # As many samples as the report has.
        grep -q "($(rows $x.name.data sym | awk -v name="$name" '{ n = $1; sub(/^[0-9]+ /, "") } $0 == name { print n }') samples" \
            "$BATS_TEST_TMPDIR/annotated"
    done
}

@test "perf annotate shows source lines" {
    cd "$BATS_TEST_TMPDIR"
    local below=()
    [ "$RECORDINGS" != stored ] || below=(--prefix "$recorded_root")
    perf annotate "${below[@]}" -i "$BATS_FILE_TMPDIR/demo.name.data" --stdio -s 'tj::fib [tier2]' 2>/dev/null >annotated
    grep -q 'return fib(n - 1) + fib(n - 2)' annotated
}

# bats test_tags=both
@test "--rows function: tiers are one row, and their labels say which is which" {
    rows demo.function.data sym | sort >"$BATS_TEST_TMPDIR/got"
    rows demo.name.data sym | sed -E 's/ \[tier[12]\]$//' | sums >"$BATS_TEST_TMPDIR/wanted"
    same "$BATS_TEST_TMPDIR/got" "$BATS_TEST_TMPDIR/wanted"
    bodies_of demo.function.data tj::fib >"$BATS_TEST_TMPDIR/bodies"
    grep -q ', tier1, ' "$BATS_TEST_TMPDIR/bodies"
    grep -q ', tier2, ' "$BATS_TEST_TMPDIR/bodies"
    [ "$RECORDINGS" = live ] || return 0
    rows node.function.data sym | sort >"$BATS_TEST_TMPDIR/got"
    rows node.name.data sym | sed -E 's/ JS:[~^+*]/ JS:/' | sums >"$BATS_TEST_TMPDIR/wanted"
    same "$BATS_TEST_TMPDIR/got" "$BATS_TEST_TMPDIR/wanted"
    readelf -sW "$(elf_files node.function.data.dso)" | grep -q 'body [0-9]* of [0-9]*, TurboFan, loaded at'
}

record_stacks() {
    PERFJIT=dump JITDUMPDIR=$PWD record perf.data --all-user --call-graph dwarf,2048 "$BUILD/tinyjit" --seconds=0.1 "$BATS_FILE_TMPDIR/demo.tj" >/dev/null
}

@test "recordings whose user stacks are kept, and --layout function, have a row for each body" {
    cd "$BATS_TEST_TMPDIR"
    recording kept record_stacks
    perfjit inject -q -o given.data --stacks keep --rows function
    perfjit inject -q -o body.data --stacks keep --rows body
    cmp <(cd given.data.dso && ls) <(cd body.data.dso && ls)
    perfjit inject -q -i "$BATS_FILE_TMPDIR/demo.data" -o function.data --layout function
    [ "$(elf_files function.data.dso | wc -l)" -gt 10 ]
}

@test "--rows with another word is refused" {
    run --separate-stderr perfjit inject -i demo.data --rows names
    exits 2
    says "--rows is name, body or function, not 'names'"
}
