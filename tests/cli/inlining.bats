# tinyjit's inliner: what a script does stays the same, and who is told about inlined calls is told the same.
load helper

tinyjit=$here/../../examples/tinyjit

# In make check fewer of the random scripts.
setup() {
    seeds=40
    [ -z "${BRIEF:-}" ] || seeds=12
    cd "$BATS_TEST_TMPDIR"
}

# tell OPTION...: what script.tj does, status included.
tell() {
    local status=0
    timeout 60 "$BUILD/tinyjit" "$@" script.tj >told 2>&1 || status=$?
    echo "status $status" >>told
    cat told
}

# told_the_same OPTION...: with and without inlining, by tier 2 at once and later, with and without frame pointers.
told_the_same() {
    tell "$@" --no-tier2 >expected
    for after in 0 3; do
        for option in --no-inline --no-frame-pointer ''; do
            # shellcheck disable=SC2086 # nothing, if empty
            tell "$@" --tier2-after=$after $option >got
            same got expected || complain "--tier2-after=$after $option"
        done
    done
}

@test "demo and churn print the same with and without inlining" {
    for script in demo churn; do
        cp "$tinyjit/$script.tj" script.tj
        told_the_same --repeat=30
        grep -qx 'status 0' expected
        [ "$(wc -l <expected)" -gt 5 ]
    done
}

@test "random scripts print the same with and without inlining" {
    for seed in $(seq $seeds); do
        "$BUILD/producers/random_script" $seed >script.tj
        told_the_same --repeat=4 || complain "random_script $seed"
        grep -qx 'status 0' expected
    done
}

@test "random scripts that fail do so at the same place, with the same words" {
    local failed=0 some="2 8 9 13 22 25" # those that fail
    for seed in $([ -n "${BRIEF:-}" ] && echo $some || seq $seeds); do
        "$BUILD/producers/random_script" $seed may_fail >script.tj
        told_the_same --repeat=4 || complain "random_script $seed may_fail"
        ! grep -qx 'status 1' expected || failed=$((failed + 1))
    done
    [ $failed -ge 5 ]
}

# --check also unwinds the stack at each safe point.
@test "compiled code with inlined calls does what the interpreter does" {
    for seed in {41..70}; do
        "$BUILD/producers/random_script" $seed >script.tj
        for option in --no-frame-pointer --compact-every=1; do
            tell --check --repeat=4 --tier2-after=1 $option >checked
            grep -qx 'status 0' checked || complain "random_script $seed, $option: $(cat checked)"
        done
    done
}

# The inlined calls in the log: "INNER OUTER" for each place.
nesting() {
    awk -F'\t' '$1 == "at" { for (i = 3; i + 4 <= NF; i += 4) print $i, $(i + 4) }' "$1" | sort -u
}

@test "small functions are inlined, in each other too; what calls itself is not, and no more than is allowed" {
    cat >script.tj <<'END'
fn one(x) { return x + 1; }
fn two(x) { return one(x) * 2; }
fn three(x) { return two(x) - one(x); }
fn four(x) { return three(x) + 4; }
fn five(x) { return four(x) + 5; }
fn self(x) { if x { return self(x - 1); } return 0; }
fn ping(x) { if x { return pong(x - 1); } return 0; }
fn pong(x) { if x { return ping(x - 1); } return 1; }
fn large(x) {
    var a = x + 1; var b = a * 2; var c = b - a; var d = c ^ b; var e = d + c; var f = e - d; var g = f * e;
    return a + b + c + d + e + f + g + a * b * c * d * e * f * g;
}
fn main() { print(five(1)); print(self(3)); print(ping(4)); print(large(5)); return 0; }
END
    "$BUILD/tinyjit" --tier2-after=0 --inline-log=log script.tj >/dev/null
    nesting log >nesting
    cat >expected <<'END'
tj::five tj::main [tier2]
tj::four tj::five
tj::one tj::three
tj::one tj::two
tj::ping tj::main [tier2]
tj::pong tj::ping
tj::three tj::four
tj::two tj::three
END
    # ping is in main, pong in ping; there pong calls a ping that has a pong in it.  One is five deep, and is called.
    { grep -v '^tj::one tj::two$' expected && echo 'tj::pong tj::ping [tier2]'; } | sort | same nesting /dev/stdin
    run ! grep -E 'tj::(self|large)	.*tj::main' log
    run "$BUILD/tinyjit" --tier2-after=0 --no-inline --inline-log=log script.tj
    [ -z "$(nesting log)" ]
}

@test "arguments are computed once, in order, and each copy has its own variables" {
    cat >script.tj <<'END'
global count = 0;
fn next() { count = count * 10 + 1 + count % 10; return count; }
fn keep(a, b) { var c = a * 1000; if b > a { return c + b; } a = 7; return a; }
fn unused(a, b) { return b; }
fn nothing() { }
fn main() {
    print(keep(next(), next()));
    print(keep(keep(1, 2), keep(3, 4)));
    print(unused(next(), next()) + keep(count, count + 1) + nothing());
    var a = 5; var c = 6;
    print(keep(a, c) + a * 10 + c);
    return 0;
}
END
    tell --tier2-after=0 >inlined
    printf '%s\n' 1012 1002003004 2468 5121 "status 0" >expected
    tell --no-tier2 >expected
    same inlined expected
    tell --tier2-after=0 --inline-log=log >/dev/null
    grep -q 'tj::keep' log
}

# ---- Who is told ----

# The inline log as the dump tells it.
cat_log_of_dump() {
    perfjit dump --json "$1" | jq -r -n '
        def tsv: map(tostring) | join("\t");
        def places($load; $inlines; $index; $place):
            if $index == null then [$load.name] + $place
            else $inlines[$index] as $call | [$call.name] + $place +
                places($load; $inlines; $call.parent; [$call.call_file, $call.call_line, $call.call_column]) end;
        def inline_at($spans; $offset): [$spans[] | select(.code_offset <= $offset)] | last | .inline_index?;
        foreach (inputs | select(.type)) as $record ({};
            if $record.type == "CODE_INLINE_INFO" then .inlining = $record
            elif $record.type == "CODE_DEBUG_INFO" then .lines = $record
            elif $record.type == "CODE_LOAD" then {load: $record, had: {inlining, lines}}
            else . end;
            select($record.type == "CODE_LOAD") | .load as $load | .had as $had |
            (["code", $load.code_size, $load.name] | tsv),
            ($had.lines.entries[]? | (.addr - $load.code_addr) as $offset |
                ["at", $offset] + places($load; $had.inlining.inlines; inline_at($had.inlining.spans // []; $offset);
                    [.name, .line, .discrim]) | tsv))'
}

# run_logged OPTION...: script.tj, with a log, and a dump that is the only one in this directory.
run_logged() {
    rm -rf jitdump-*
    PERFJIT=dump JITDUMPDIR=$PWD "$BUILD/tinyjit" --inline-log=log "$@" script.tj >/dev/null
}

dump_tells_the_log() {
    cat_log_of_dump jitdump-*/jit-*.dump >dumped
    awk -F'\t' -v OFS='\t' '/^#/ { next } $1 == "code" { print $1, $3, $4; next } 1' log | same dumped /dev/stdin
}

@test "the dump tells the same about every instruction as the compiler's own log" {
    cp "$tinyjit/demo.tj" script.tj
    run_logged --tier2-after=3 --repeat=40
    dump_tells_the_log
    grep -q 'tj::collatz_length	[^	]*	[0-9]*	[0-9]*	tj::longest_walk' dumped
    cp "$tinyjit/churn.tj" script.tj
    run_logged --tier2-after=3 --repeat=1
    dump_tells_the_log
    for seed in {1..10}; do
        "$BUILD/producers/random_script" $seed >script.tj
        run_logged --tier2-after=0 --no-frame-pointer
        dump_tells_the_log
    done
}

@test "--no-inline: the dump has no inlined calls, and lines of both tiers" {
    cp "$tinyjit/demo.tj" script.tj
    run_logged --no-inline --tier2-after=3 --repeat=40
    dump_tells_the_log
    [ "$(perfjit dump --json jitdump-*/jit-*.dump | jq -s 'map(select(.type == "CODE_INLINE_INFO")) | length')" -eq 0 ]
    for tier in tier1 tier2; do
        awk -F'\t' -v tier="$tier" '$1 == "code" { own = index($3, "[" tier "]") } own && $1 == "at" { lines++ } END { exit lines < 50 }' \
            dumped
    done
}

# check_positions FILE: each place of the log FILE is a line of script.tj that is in the function, and each call is where it
# is said to be.
check_positions() {
    awk -F'\t' '
        function name_of(field) { sub(/^tj::/, "", field); sub(/ \[tier[12]\]$/, "", field); return field }
        FILENAME == "script.tj" {
            text[FNR] = $0
            if (match($0, /^fn [a-z0-9_]+/)) inside = substr($0, 4, RLENGTH - 3)
            owner[FNR] = inside
            next
        }
        $1 != "at" { next }
        {
            for (i = 3; i < NF; i += 4) {
                checked++
                if (owner[$(i + 2)] != name_of($i)) { print "not in the function: " $0; bad++ }
                if (i > 3 && substr(text[$(i + 2)], $(i + 3), length(name_of($(i - 4))) + 1) != name_of($(i - 4)) "(") {
                    print "no call there: " $0; bad++
                }
            }
        }
        END { exit bad > 0 || checked < 100 }' script.tj "$1"
}

@test "lines and columns are real: in the function that they belong to, and of calls where these stand" {
    for script in "$tinyjit/demo.tj" "$tinyjit/churn.tj"; do
        cp "$script" script.tj
        "$BUILD/tinyjit" --inline-log=log --tier2-after=3 --repeat=40 script.tj >/dev/null
        check_positions log
    done
    for seed in {1..10}; do
        "$BUILD/producers/random_script" $seed >script.tj
        "$BUILD/tinyjit" --inline-log=log --tier2-after=2 --repeat=3 script.tj >/dev/null
        check_positions log
    done
}

@test "where inlined functions are defined stands in the dump" {
    cp "$tinyjit/demo.tj" script.tj
    run_logged --tier2-after=0 --repeat=40
    perfjit dump --json jitdump-*/jit-*.dump | jq -r '.inlines[]? | "\(.decl_line) \(.name) \(.decl_file)"' | sort -u >declared
    [ "$(wc -l <declared)" -ge 5 ]
    while read -r number name file; do
        [ "$file" = "$PWD/script.tj" ]
        [[ $(sed -n "${number}p" script.tj) == "fn ${name#tj::}("* ]] || complain "$name is not defined in line $number"
    done <declared
}

@test "the log can't be written" {
    cp "$tinyjit/demo.tj" script.tj
    run --separate-stderr "$BUILD/tinyjit" --inline-log=/nonexistent/log script.tj
    exits 1
    says "/nonexistent/log: No such file"
}
