# Source lines and inlined calls: what perf, addr2line, gdb and the others say about JIT code, against what is so.
#
# For each shape of tests/producers/line_shapes.c there is SHAPE.data, SHAPE.jit.data (perfjit) and SHAPE.truth, with the source
# of each instruction.  Those named lli.* and node.* are of real producers, and live alone, as are LLVM's tools and gdb.
load helper

shapes="lines-first all-before loads-first biased overwritten in-front urls broken"

apart=13
[ "$RECORDINGS" = live ] && [ -z "${BRIEF:-}" ] && apart=1

setup_file() {
    require_perf || return 0
    cd "$BATS_FILE_TMPDIR" || return
    recording shapes record_shapes
    for shape in $shapes; do
        perfjit inject -q -i "$shape.data" -o "$shape.jit.data" || [ $? -eq 3 ]
    done
    [ "$RECORDINGS" != live ] || record_real
}

# One of equal addresses, and only the part of the truth about `huge` that check_chains needs: together they take little room.
record_shapes() {
    for shape in $shapes; do
        perf record -q -k mono --all-user -e cpu-clock -F 500 -o "$shape.data" setarch -R "$BUILD/producers/line_shapes" "$shape" . 0.05 >"$shape.all"
        awk -v apart=$apart '$1 != "huge" || $2 % apart == 0' "$shape.all" >"$shape.truth"
        rm "$shape.all"
    done
    perf record -q -k mono --all-user -e cpu-clock -F 1000 --call-graph dwarf,2048 -o chain.data \
        setarch -R "$BUILD/producers/line_shapes" lines-first . 0.3 >/dev/null
}

record_real() {
    write_programs
    clang-14 -g -O1 -S -emit-llvm program.c -o program.ll
    JITDUMPDIR=$PWD record lli.data lli-14 -jit-kind=mcjit program.ll
    record node.data -F 1000 node --perf-prof program.js >node.out # perf asks addr2line of each sample
    for x in lli node; do
        perfjit inject -q -i $x.data -o $x.jit.data
        perfjit inject -q -i $x.data -o $x.function.data --layout function
    done
}

setup() {
    require_perf
    cd "$BATS_FILE_TMPDIR"
}

# In both the functions' lines are apart, and some of them are inlined.
write_programs() {
    cat >program.c <<'END'
static long mix(long state, long i)
{
    long shifted = state >> 7;
    long crossed = shifted ^ i;
    return crossed * 636413622;
}
static long step(long state, long i)
{
    if (i & 1)
        state = mix(state, i);
    return state + 3;
}
__attribute__((noinline)) long spin(long n)
{
    long state = 1;
    for (long i = 0; i < n; i++)
        state = step(state, i);
    return state;
}
__attribute__((noinline)) long fib(long n)
{
    if (n < 2)
        return n;
    return fib(n - 1)
         + fib(n - 2);
}
int main(void)
{
    volatile long sum = 0;
    for (int round = 0; round < 60; round++) {
        sum += fib(25);
        sum += spin(2000000);
    }
    return (int)(sum & 1);
}
END
    cat >program.js <<'END'
function fib(n) {
    return n < 2
        ? n
        : fib(n - 1) + fib(n - 2);
}
function sieve(n) {
    const composite = new Uint8Array(n + 1);
    let count = 0;
    for (let i = 2; i <= n; i++) {
        if (composite[i]) continue;
        count++;
        for (let j = i * 2; j <= n; j += i)
            composite[j] = 1;
    }
    return count;
}
function join(n) {
    let text = '';
    for (let i = 0; i < n; i++)
        text += i & 7;
    return text.length;
}
let sum = 0;
// A second of its own.  What asks for the time so seldom is not inlined, with lines of its own.
while (process.cpuUsage().user < 1e6)
    for (let i = 0; i < 200; i++)
        sum = (sum + fib(20) + sieve(20000) + join(1000)) | 0;
console.log(sum);
END
}

# ---- Chains ----

# The function of each byte of the ELF file $1: "address function offset".
addresses() {
    nm -S --defined-only "$1" | awk '
        function number(hex,  value, i) {
            for (i = 1; i <= length(hex); i++) value = value * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1
            return value
        }
        { for (i = 0; i < number($2); i++) printf "%x %s %d\n", number($1) + i, $4, i }'
}

# chains ADDRESSES: the answers of addr2line -a -i -f, or of a tool that answers like it, in the form of line_shapes: innermost
# first, "-" and 0 for code from no line.  If a tool shows columns, they are kept.
chains() {
    awk '
        function flush() { if (address != "") print place[address], chain }
        NR == FNR { place[$1] = $2 " " $3; next }
        /^0x[0-9a-f]+$/ { flush(); address = $0; sub(/^0x0*/, "", address); chain = ""; n = 0; next }
        NF == 0 { next }
        n++ % 2 == 0 { name = $0; sub(/ .*/, "", name); next }
        {
            where = $0; column = ""
            sub(/ \(discriminator.*/, "", where)
            if (where ~ /:[0-9]+:[0-9]+$/) { column = where; sub(/.*:/, " ", column); sub(/:[0-9]+$/, "", where) }
            file = line = where
            sub(/:[^:]*$/, "", file); sub(/.*:/, "", line)
            if (line == "?" || line == 0 || file == "??") { file = "-"; line = 0; if (column != "") column = " 0" }
            chain = chain (chain == "" ? "" : ";") name " " file " " line column
        }
        END { flush() }' "$1" - | sort
}

# check_chains SHAPE: at each byte; of `huge`, which has nearly all of them, as far apart as $apart says.
check_chains() {
    local so=$PWD/$(elf_files "$1".jit.data.dso) truth=$PWD/$1.truth
    cd "$BATS_TEST_TMPDIR"
    addresses "$so" | grep -vE '^[0-9a-f]+ (outside|too-many-entries|string-without-end|cyclic|span-behind) ' |
        awk -v apart=$apart '$2 != "huge" || $3 % apart == 0' >addresses
    cut -d' ' -f1 addresses | sed 's/^/0x/' >asked
    sort "$truth" >columns
    sed -E 's/ ([0-9]+) [0-9]+(;|$)/ \1\2/g' columns | sort >lines
    [ "$(wc -l <lines)" -gt $((100000 / apart)) ]
    addr2line -a -i -f -e "$so" <asked | chains addresses >binutils
    [ "$RECORDINGS" != live ] || llvm-symbolizer-14 -a --inlines --output-style=LLVM --obj="$so" <asked | chains addresses >llvm
    # eu-addr2line has no column for line 0, nor for unknown code, and writes (null) for a missing folder.
    eu-addr2line -a -i -f -e "$so" <asked | sed -E 's/^\(null\)//; s/:0$/:0:0/; s/^\?\?:0:0$/-:0:0/' | chains addresses >elfutils
    same binutils lines
    [ "$RECORDINGS" != live ] || same llvm columns
    same elfutils columns
    cd "$OLDPWD"
}

# bats test_tags=both
@test "lines-first: addr2line, llvm-symbolizer and eu-addr2line say of every instruction where it is from" {
    check_chains lines-first
}

# bats test_tags=all
@test "all lines in front of all loads: the same" {
    check_chains all-before
}

# bats test_tags=all
@test "loads in front of their lines: the same" {
    check_chains loads-first
}

@test "addresses 0x40 too high: the same" {
    check_chains biased
    run --separate-stderr perfjit inject -i biased.data -o "$BATS_TEST_TMPDIR/out.data"
    exits 0
    [[ $stderr != *repaired:* ]] || complain "what LLVM does in each dump is told: $stderr"
    run --separate-stderr perfjit inject -v -i biased.data -o "$BATS_TEST_TMPDIR/out.data"
    says 'repaired: 12 x lines-biased'
}

# bats test_tags=all
@test "names of files overwritten: the same" {
    check_chains overwritten
    run --separate-stderr perfjit inject -v -i overwritten.data -o "$BATS_TEST_TMPDIR/out.data"
    exits 0
    says '12 x lines-biased' '12 x files-overwritten'
}

# bats test_tags=all
@test "first lines in front of their functions: the same" {
    check_chains in-front
    run --separate-stderr perfjit inject -v -i in-front.data -o "$BATS_TEST_TMPDIR/out.data"
    exits 0
    says '11 x lines-outside'
}

@test "files named by URLs: the same, by their paths; others without colons" {
    check_chains urls
    # The lines of declarations, too, which addr2line does not show.
    strings $(elf_files urls.jit.data.dso) | grep -E '/lines/[abc]' | sed 's/^[^ ]* //' >"$BATS_TEST_TMPDIR/names"
    grep -q /the/source/more/lines/c.c "$BATS_TEST_TMPDIR/names"
    run ! grep -E '%|file:|wasm:' "$BATS_TEST_TMPDIR/names"
}

@test "broken records: the sound functions are the same, the others are counted" {
    check_chains broken
    run --separate-stderr perfjit inject -i broken.data -o "$BATS_TEST_TMPDIR/out.data"
    exits 3
    says '1 x broken record of source lines: its function has no lines'
    says '1 x function with source lines outside of its code: those were left out'
    says '1 x broken record of inlined calls: its function is shown as if nothing were inlined in it'
    says '2 x broken record: skipped'
    says 'DEBUG_INFO claims more entries than it can hold'
    says '5 parts of the input skipped'
    # Functions that lost their inlined calls, or a line elsewhere, have their lines.
    so=$(elf_files broken.jit.data.dso)
    for name in cyclic span-behind outside; do
        [ "$(addr2line -f -i -e "$so" "$(address_of $name "$so")" | tr '\n' ' ')" = "$name /the/source/lines/a.c:1 " ]
    done
    for name in too-many-entries string-without-end; do
        [ "$(addr2line -f -i -e "$so" "$(address_of $name "$so")" | tr '\n' ' ')" = "$name ??:? " ]
    done
}

# address_of SYMBOL FILE
address_of() {
    nm "$2" | awk -v name="$1" '$3 == name { print $1 }'
}

# quantity TEXT: how many, from what perfjit inject said: "N x TEXT".
quantity() {
    sed -nE "s/.* ([0-9]+) x $1.*/\1/p" <<<"$stderr" | grep . || echo 0
}

# bats test_tags=both
@test "perfjit check says of each dump what perfjit inject does" {
    local shape biased=0 broken=0
    for shape in $shapes $([ "$RECORDINGS" != live ] || echo lli node); do
        run --separate-stderr perfjit inject -v -i "$shape.data" -o "$BATS_TEST_TMPDIR/out.data"
        perfjit check --json "$(dumps_of "$shape.data")" >"$BATS_TEST_TMPDIR/json" || [ $? = 3 ]
        jq -r '.dumps[0] | .lines.biased, .lines.broken, .lines.outside, .lines.unmatched, .inlined.broken, .records.broken' \
            "$BATS_TEST_TMPDIR/json" | xargs >"$BATS_TEST_TMPDIR/checked"
        {
            quantity lines-biased
            quantity 'broken record of source lines'
            quantity 'function with source lines outside'
            quantity 'record of source lines or inlined calls for code'
            quantity 'broken record of inlined calls'
            quantity 'broken record:'
        } | xargs >"$BATS_TEST_TMPDIR/injected"
        diff "$BATS_TEST_TMPDIR/checked" "$BATS_TEST_TMPDIR/injected" >&2 || complain "$shape: $stderr"
        biased=$((biased + $(cut -d' ' -f1 "$BATS_TEST_TMPDIR/checked")))
        broken=$((broken + $(cut -d' ' -f2 "$BATS_TEST_TMPDIR/checked")))
    done
    [ "$broken" = 1 ]
    if [ "$RECORDINGS" = live ]; then [ "$biased" -gt 24 ]; else [ "$biased" = 24 ]; fi # two shapes, and node's
}

# bats test_tags=live
@test "gdb: the same chains of functions, and lines" {
    cat >"$BATS_TEST_TMPDIR/blocks.py" <<'END'
import gdb
for line in open("addresses"):
    address, name, offset = line.split()
    block, names = gdb.block_for_pc(int(address, 16)), []
    while block and not block.is_global and not block.is_static:
        if block.function:
            names.append(block.function.print_name.split(" ")[0])
        block = block.superblock
    sal = gdb.find_pc_line(int(address, 16))
    print(name, offset, ";".join(names), sal.symtab.fullname() if sal.symtab else "-", sal.line)
END
    so=$PWD/$(elf_files lines-first.jit.data.dso)
    # For instructions from no line gdb shows the line before; "unknown" is in no unit.
    grep -vE '^(huge|unknown) ' lines-first.truth | sed 's/;/ ; /g' |
        awk '$5 > 0 { chain = $3; for (i = 7; i <= NF; i++) if ($i == ";") chain = chain ";" $(i + 1); print $1, $2, chain, $4, $5 }' |
        sort >"$BATS_TEST_TMPDIR/wanted"
    addresses "$so" | grep -v ' huge ' >"$BATS_TEST_TMPDIR/addresses"
    cd "$BATS_TEST_TMPDIR"
    gdb -q -batch -nx -ex 'source blocks.py' "$so" | sort >all
    awk 'NR == FNR { wanted[$1 " " $2]; next } ($1 " " $2) in wanted' wanted all >answers
    [ "$(wc -l <wanted)" -gt 700 ]
    same answers wanted
    at=$(awk '$2 == "tree" && $3 == 35 { print $1 }' addresses)
    gdb -q -batch -nx -ex "info symbol 0x$at" "$so" | grep -q 'tree.* + 35 in section .text'
    gdb -q -batch -nx -ex "info line *0x$at" "$so" | grep -q 'Line 31 of "/the/source/more/lines/c.c"'
}

# ---- Clean files ----

check_files() {
    for so in "$@"; do
        readelf --debug-dump "$so" >/dev/null 2>"$BATS_TEST_TMPDIR/said"
        same "$BATS_TEST_TMPDIR/said" /dev/null
        eu-readelf -w "$so" >/dev/null 2>"$BATS_TEST_TMPDIR/said" || true
        grep -v 'No DWARF information found' "$BATS_TEST_TMPDIR/said" >"$BATS_TEST_TMPDIR/left" || true
        same "$BATS_TEST_TMPDIR/left" /dev/null
        if [ "$RECORDINGS" = live ]; then
            llvm-dwarfdump-14 --verify "$so" >"$BATS_TEST_TMPDIR/verified" || complain "$(cat "$BATS_TEST_TMPDIR/verified")"
            run ! grep -iE 'warning|error:' "$BATS_TEST_TMPDIR/verified"
        fi
        run eu-elflint --gnu-ld "$so"
        [ "$output" = "No errors" ]
    done
}

# bats test_tags=both
@test "llvm-dwarfdump --verify, readelf, eu-readelf and eu-elflint have nothing to say" {
    local apart=${BRIEF:+100}
    for shape in $([ -n "${BRIEF:-}" ] && echo lines-first broken || echo $shapes); do check_files $(elf_files "$shape".jit.data.dso); done
    [ "$RECORDINGS" = live ] || return 0
    check_files $(elf_files lli.{jit,function}.data.dso) $(elf_files node.jit.data.dso)
    # shellcheck disable=SC2046 # many
    check_files $(find node.function.data.dso -name '*.so' | sort | awk -v apart="${apart:-20}" 'NR % apart == 10')
}

@test "--compress-debug: smaller, clean, and the same chains" {
    perfjit inject -q -i lines-first.data -o compressed.jit.data --compress-debug
    cp lines-first.truth compressed.truth
    readelf -SW $(elf_files compressed.jit.data.dso) | grep -qE '\.debug_line .* C '
    [ "$(stat -c %s $(elf_files compressed.jit.data.dso))" -lt "$(stat -c %s $(elf_files lines-first.jit.data.dso))" ]
    check_files $(elf_files compressed.jit.data.dso)
    check_chains compressed
}

@test "--no-lines: no debug sections, and nothing said about lines" {
    run --separate-stderr perfjit inject -i broken.data -o "$BATS_TEST_TMPDIR/out.data" --no-lines
    run ! grep -E 'source lines|outside' <<<"$stderr"
    readelf -SW $(elf_files "$BATS_TEST_TMPDIR"/out.data.dso) >"$BATS_TEST_TMPDIR/sections"
    run ! grep debug_ "$BATS_TEST_TMPDIR/sections"
}

@test "two runs make the same bytes" {
    for shape in lines-first biased; do
        perfjit inject -q -i $shape.data -o "$BATS_TEST_TMPDIR/$shape.jit.data"
        cmp $(elf_files $shape.jit.data.dso) $(elf_files "$BATS_TEST_TMPDIR/$shape".jit.data.dso)
    done
}

# ---- perf ----

# sampled_lines DATA FILE: "symbol offset line" for each sample of JIT code that perf shows at a line of FILE.
sampled_lines() {
    perf script -i "$1" -F ip,sym,symoff,srcline -G 2>/dev/null | awk -v file="  $2:" '
        /^ *[0-9a-f]+ / { frame = $0; next }
        index($0, file) == 1 { print frame " " substr($0, length(file) + 1) }' |
        sed -nE 's/^ *[0-9a-f]+ (.*)\+0x([0-9a-f]+) ([0-9]+)$/\1 \2 \3/p'
}

# Line of the instruction at address $2 of the file $1; 0: none.
line_at() {
    addr2line -e "$1" "$2" | sed 's/ (.*//; s/.*://; s/?/0/'
}

# bats test_tags=live
@test "lli: every sample's line is the one in llc's code for the same module" {
    llc-14 -filetype=obj -O2 -code-model=large program.ll -o program.o
    for layout in jit function; do
        sampled_lines lli.$layout.data program.c | sort -u >"$BATS_TEST_TMPDIR/sampled"
        [ "$(wc -l <"$BATS_TEST_TMPDIR/sampled")" -gt 3 ]
        while read -r symbol offset line; do
            wanted=$(line_at program.o "$(printf '%x' $((16#$(address_of "$symbol" program.o) + 16#$offset)))")
            [ "$line" = "$wanted" ] || complain "$symbol+0x$offset is shown at line $line, is at $wanted"
        done <"$BATS_TEST_TMPDIR/sampled"
    done
}

# function_lines FILE FUNCTION: offset and line of each instruction.
function_lines() {
    local start size
    read -r start size < <(nm -S "$1" | awk -v name="$2" '$4 == name { print $1, $2 }')
    objdump -d --no-show-raw-insn --start-address=0x"$start" --stop-address=$((16#$start + 16#$size)) "$1" |
        sed -nE 's/^ +([0-9a-f]+):.*/\1/p' | while read -r at; do
        echo $((16#$at - 16#$start)) "$(line_at "$1" "$at")"
    done
}

# bats test_tags=live
@test "lli: every instruction has the line that llc gives it" {
    llc-14 -filetype=obj -O2 -code-model=large program.ll -o program.o
    for name in fib spin main; do
        function_lines program.o $name >"$BATS_TEST_TMPDIR/wanted"
        [ "$(wc -l <"$BATS_TEST_TMPDIR/wanted")" -gt 10 ]
        function_lines $(elf_files lli.jit.data.dso) $name >"$BATS_TEST_TMPDIR/lines"
        same "$BATS_TEST_TMPDIR/lines" "$BATS_TEST_TMPDIR/wanted"
    done
}

# bats test_tags=live
@test "node: every sample's line lies in its function" {
    asking_of_jit_code
    for layout in jit function; do
        sampled_lines node.$layout.data program.js | grep ':\*' >"$BATS_TEST_TMPDIR/sampled"
        awk '
            {
                all++
                name = $1; sub(/.*:[*]/, "", name)
                line = $NF
                if (name == "fib") right += line >= 1 && line <= 5
                else if (name == "sieve") right += line >= 6 && line <= 16
                else if (name == "join") right += line >= 17 && line <= 22
                else right += line >= 1 && line <= 28
                if (!(name " " line in lines)) { lines[name " " line]; different++ }
            }
            END { print all + 0, right + 0, different + 0 }' "$BATS_TEST_TMPDIR/sampled" >"$BATS_TEST_TMPDIR/counts"
        read -r all right different <"$BATS_TEST_TMPDIR/counts"
        echo "# $layout: $right of $all samples in their functions, at $different lines" >&3
        [ "$all" -gt 300 ]
        [ "$right" -eq "$all" ]
        [ "$different" -ge 6 ]
        # None of program.js's optimised functions is without lines.
        optimised=$(perf script -i node.$layout.data -F ip,sym -G --no-inline | grep -c ':\*.* .*/program\.js:')
        [ "$optimised" -eq "$all" ]
    done
}

# An ES module's name is a file:// URL, in which perf took "file" for the file, and no line.  Line 29 is the module's end.
# bats test_tags=live
@test "node: an ES module has its lines in perf report, and its source in perf annotate" {
    asking_of_jit_code
    cd "$BATS_TEST_TMPDIR"
    cp "$BATS_FILE_TMPDIR/program.js" 'mod é 100%.mjs'
    record module.data -F 500 node --perf-prof 'mod é 100%.mjs' >node.out
    perfjit inject -q -i module.data -o module.jit.data
    perf report -i module.jit.data --stdio -F sample,srcline 2>/dev/null | grep -v '^#' >report
    run ! grep -E ' (file|node):0 *$' report
    sed -nE 's/^ *([0-9]+) +mod é 100%\.mjs:([0-9]+) *$/\1 \2/p' report |
        awk '{ all += $1 } $2 >= 1 && $2 <= 29 { right += $1 } END { exit !(all >= 30 && right == all) }' || complain "$(cat report)"
    symbol=$(perf script -i module.jit.data -F ip,sym | sed -nE 's/^ *[0-9a-f]+ (JS:\*[^ ]*sieve .*)/\1/p' | sort | uniq -c | sort -rn | sed -nE '1s/^ *[0-9]+ //p')
    perf annotate -i module.jit.data --stdio -l -s "$symbol" >annotated 2>/dev/null
    grep -qE 'mod é 100%\.mjs:1[0-3] *$' annotated || complain "$symbol: $(cat annotated)"
    grep -qF 'composite[j] = 1;' annotated || complain "$symbol: $(cat annotated)"
}

@test "perf script and perf report show the inlined calls" {
    # For chains that it did not unwind itself perf 6.1 shows no inlined calls, in any code.
    perfjit inject -q --stacks keep -i chain.data -o chain.jit.data
    perf script -i chain.jit.data -F ip,sym | awk 'BEGIN { RS = ""; FS = "\n" } { chain = ""; for (i = 1; i <= NF; i++) { split($i, word, " "); chain = chain word[2] " " } print chain }' \
        >"$BATS_TEST_TMPDIR/stacks"
    grep -qE '^inner middle outer tree ' "$BATS_TEST_TMPDIR/stacks"
    perf report -i chain.jit.data --stdio --inline --no-children -g caller >"$BATS_TEST_TMPDIR/report" 2>/dev/null
    grep -q 'inner.*(inlined)' "$BATS_TEST_TMPDIR/report"
    grep -q 'outer.*(inlined)' "$BATS_TEST_TMPDIR/report"
}

# bats test_tags=live
@test "perf annotate shows instructions with their source" {
    for layout in jit function; do
        perf annotate -i lli.$layout.data --stdio -s spin >"$BATS_TEST_TMPDIR/annotated" 2>/dev/null
        grep -q 'imul' "$BATS_TEST_TMPDIR/annotated"
        grep -qE ': +11 +return state \+ 3;' "$BATS_TEST_TMPDIR/annotated"
    done
}

# ---- tinyjit ----

# tinyjit_questions LOG FILE: the blocks of LOG that each function in the ELF file FILE can be (same name, size and place in the
# page).  A line is "address block offset", with the block's number in LOG.
tinyjit_questions() {
    nm -S --defined-only "$2" | awk -v log_file="$1" '
        function number(hex,  value, i) {
            for (i = 1; i <= length(hex); i++) value = value * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1
            return value
        }
        BEGIN {
            while ((getline line <log_file) > 0) {
                split(line, field, "\t")
                if (field[1] == "code") { block++; key = field[4] " " field[3] " " substr(field[2], length(field[2]) - 2); blocks[key] = blocks[key] " " block }
                else if (field[1] == "at") offsets[block] = offsets[block] " " field[2]
            }
        }
        {
            name = $0; sub(/^[^ ]+ [^ ]+ [^ ]+ /, "", name)
            key = name " " number($2) " " substr($1, length($1) - 2)
            count = split(blocks[key], candidate, " ")
            for (i = 1; i <= count; i++) {
                n = split(offsets[candidate[i]], offset, " ")
                for (k = 1; k <= n; k++) printf "0x%x %s %d\n", number($1) + offset[k], candidate[i], offset[k]
            }
        }'
}

record_tinyjit() {
    PERFJIT=dump JITDUMPDIR=$PWD record tinyjit.data --all-user "$BUILD/tinyjit" --inline-log "$PWD/tinyjit.log" --seconds 0.5 "$here/../../examples/tinyjit/demo.tj" >/dev/null
}

# The output of llvm-symbolizer, or of eu-addr2line if that is missing.
symbolized() { # FILE
    if [ "$RECORDINGS" = live ]; then
        llvm-symbolizer-14 -a --inlines --output-style=LLVM --obj="$1"
    else
        eu-addr2line -a -i -f -e "$1"
    fi
}

# bats test_tags=both
@test "tinyjit: the chain of every instruction is the compiler's own" {
    local so checked=0
    recording tinyjit record_tinyjit
    perfjit inject -q -i tinyjit.data -o tinyjit.jit.data --rows body
    # "block offset chain", a chain being "function file line column;..."
    awk -F '\t' '
        $1 == "code" { block++ }
        $1 == "at" {
            chain = ""
            for (i = 3; i < NF; i += 4) { name = $i; sub(/ .*/, "", name); chain = chain (i > 3 ? ";" : "") name " " $(i + 1) " " $(i + 2) " " $(i + 3) }
            print block, $2, chain
        }' tinyjit.log | sort -u >"$BATS_TEST_TMPDIR/log"
    for so in $(elf_files tinyjit.jit.data.dso); do
        tinyjit_questions tinyjit.log "$so" >"$BATS_TEST_TMPDIR/questions"
        cut -d' ' -f1 "$BATS_TEST_TMPDIR/questions" | symbolized "$so" |
            awk -v questions="$BATS_TEST_TMPDIR/questions" '
                function flush() { if (asked) print question[2], question[3], chain }
                NF == 0 { next }
                /^0x[0-9a-f]+$/ { flush(); asked = 1; getline line <questions; split(line, question, " "); chain = ""; n = 0; next }
                n++ % 2 == 0 { name = $0; sub(/ .*/, "", name); next }
                { where = $0; gsub(/:/, " ", where); chain = chain (chain == "" ? "" : ";") name " " where }
                END { flush() }'
    done | sort -u >"$BATS_TEST_TMPDIR/answers"
    # A block is right if all functions that can be it have its lines, and no others.
    comm -12 "$BATS_TEST_TMPDIR/log" "$BATS_TEST_TMPDIR/answers" | cut -d' ' -f1 | sort | uniq -c | awk '{ print $2, $1 }' | sort >"$BATS_TEST_TMPDIR/right"
    cut -d' ' -f1 "$BATS_TEST_TMPDIR/answers" | sort | uniq -c | awk '{ print $2, $1 }' | sort >"$BATS_TEST_TMPDIR/asked"
    read -r functions wrong < <(awk 'NR == FNR { right[$1] = $2; next } { all++; if (right[$1] != $2) wrong++ } END { print all + 0, wrong + 0 }' \
        "$BATS_TEST_TMPDIR/right" "$BATS_TEST_TMPDIR/asked")
    inlined=$(grep -c ';' "$BATS_TEST_TMPDIR/answers")
    echo "# $functions functions, $wrong not as the compiler says; $(wc -l <"$BATS_TEST_TMPDIR/answers") instructions, of which $inlined are inlined" >&3
    [ "$functions" -ge 15 ]
    [ "$inlined" -ge 30 ]
    [ "$wrong" -eq 0 ]
}

# ---- Cost ----

# inject_instructions OPTION...
inject_instructions() {
    instructions "$BUILD/perfjit" inject -q -i node.data -o "$BATS_TEST_TMPDIR/out.data" "$@"
}

# bats test_tags=live
@test "node: lines make perfjit inject take at most 1.6 times the instructions" {
    local with without
    command -v valgrind >/dev/null || skip "no valgrind"
    with=$(inject_instructions) without=$(inject_instructions --no-lines)
    echo "# with lines $with, without $without" >&3
    [ "$without" -gt 1000000 ]
    [ $((with * 10)) -le $((without * 16)) ]
}
