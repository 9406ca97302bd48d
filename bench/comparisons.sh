#!/usr/bin/env bash
# make bench-diff: how often perfjit diff says something that is not so, and how often it finds what is.
#
#     bench/comparisons.sh BUILD_DIR full|aa|ab|causes|others|quick
#     bench/comparisons.sh BUILD_DIR kept BENCH...
#
# A/A    one program in turns with itself, many pairs of runs; each ten pairs in a row, every five pairs, are a comparison.
#        Any verdict but "no change" and "can't tell" is false, and so is any row with one.
# A/B    the same program with more to do in one of three functions, so that it takes 1, 2, 5 and 20 percent longer in all;
#        and node programs of which a function is not optimised any more, that inline less, and that collect garbage more
#        often.  Found: the headline is "slower".  Named: the first three lines say by what.  Beside it what perf
#        diff and pprof -diff_base say of a pair of runs, where they are there.
#
# Of A/A, PAIRS: how many of tinyjit, of node, and of tinyjit beside a load (default: 1000:500:100; 0: not this one).
# Of A/B, KINDS and PLANTS (RUNS:PERCENT) choose rows, TIMES how often, and LENGTH makes the programs as many times longer.
# ORDER=together: both runs of a pair at the same time, on one processor.  FLOOR: what matters (default: perfjit diff's, 1%).
#
# full    all tables, of which bench/comparisons.md is made (an hour and a half)
# aa ...  one of them
# kept    the table of A/A of benches of one program with itself that were made before, as each is, and of all their pairs in
#         groups of ten by chance, six times: two such groups have less than one pair in common if there are 100 or more
# quick   a few of each, to standard output; ends with 1 if an A/A of 10 pairs has a verdict twice in a row, or if 20 percent
#         more is not found twice in a row
set -euo pipefail
start=$PWD
cd "$(dirname "$0")/.."
build=${1:?usage: bench/comparisons.sh BUILD_DIR MODE}
mode=${2:?full, aa, ab, causes, others, kept or quick}
perfjit=$build/perfjit
work=${BENCH_DIR:-$build/comparisons}
mkdir -p "$work"
work=$(cd "$work" && pwd)
out=$work/table.md

# ---- Programs ----
#
# Chains of divisions, each of which waits for the one before: how long these take depends little on what else the core does.
# Loops of additions take twice as long while somebody has the core's other thread.  KIND PERCENT: the second
# function does that much more of all three.

tinyjit() {
    local percent=$1
    awk -v more="$percent" -v length_of="${LENGTH:-1}" 'BEGIN {
        for (i = 1; i <= 3; i++)
            printf "fn part%d(n) { var i = 0; var s = 1; while i < n { s = (s * 7 + i) %% 1000003; i = i + 1; } return s; }\n", i
        printf "fn main() { var n = 0; while n < %d { part1(10000); part2(%d); part3(10000); n = n + 1; } return 0; }\n", 600 * length_of, 10000 * (1 + 3 * more / 100)
    }' >"$work/more$percent/work.tj"
    echo "$build/tinyjit --no-inline $work/more$percent/work.tj"
}

node() {
    local percent=$1
    awk -v more="$percent" -v length_of="${LENGTH:-1}" 'BEGIN {
        for (i = 1; i <= 3; i++)
            printf "function part%d(n) { let s = 0; for (let i = 0; i < n; i++) s += (Math.sqrt(i) * i) %% 7; return s; }\n", i
        printf "let all = 0; for (let i = 0; i < %d; i++) all += part1(8000) + part2(%d) + part3(8000);\n", 400 * length_of, 8000 * (1 + 3 * more / 100)
    }' >"$work/more$percent/work.js"
    echo "$(command -v node) $work/more$percent/work.js"
}

command_of() { # KIND PERCENT
    mkdir -p "$work/more$2"
    "$1" "$2"
}

# A program of node's with more than one cause to be slower: PROGRAM FLAGS... ; "never" keeps a function, a
# tenth of the time, from being optimised, as it is after many deoptimisations.
causes() {
    cat >"$work/causes.js" <<'END'
const what = process.argv[2];
function small(x) { return (x * 3 + 1) % 1000; }
function hot(n) { let s = 0; for (let i = 0; i < n; i++) s += (Math.sqrt(i) * i) % 7; return s; }
function loop(n) { let s = 0; for (let i = 0; i < n; i++) s += small(i); return s; }
function part(n) { let s = 0; for (let i = 0; i < n; i++) s += (Math.sqrt(i) * i) % 7; return s; }
function both(n) { return hot(n) + part(n / 10); }
function heap(n) { const all = []; for (let i = 0; i < n; i++) all.push({ i, next: all[i >> 1] }); return all.length; }
const work = { deopt: [both, 20000, 350], inline: [loop, 60000, 500], gc: [heap, 60000, 60] }[what];
if (process.argv[3] === "never") %NeverOptimizeFunction(part);
let all = 0;
for (let round = 0; round < work[2]; round++) {
    all += work[0](work[1]);
}
END
    local what=$1
    shift
    case ${1:-} in never) echo "$(command -v node) --allow-natives-syntax $work/causes.js $what never" ;;
    *) echo "$(command -v node) --allow-natives-syntax $* $work/causes.js $what" ;;
    esac
}

# ---- Benches ----

measure() { # NAME RUNS BASE NEW
    "$perfjit" bench -q -F 3000 --runs "$2" --order "${ORDER:-turns}" -o "$work/$1.bench" --base "$3" --new "$4" 2>"$work/$1.said" || {
        cat "$work/$1.said" >&2
        return 1
    }
}

# part BENCH FIRST COUNT TO: its pairs of runs from number FIRST on, as a bench of their own.
part() {
    rm -rf "$4"
    mkdir "$4"
    awk -F'\t' -v first="$2" -v count="$3" '$1 != "run" || (++seen[$2] >= first && seen[$2] < first + count)' "$1/bench.txt" >"$4/bench.txt"
    awk -F'\t' '$1 == "run" { print $3 }' "$4/bench.txt" | (cd "$1" && xargs -I{} ln {} "$4/{}")
}

# All runs of BENCHES as one bench, TO.
joined() { # TO BENCHES...
    local to=$1 bench number=0 file
    shift
    rm -rf "$to"
    mkdir "$to"
    grep -v -e $'^run\t' -e '^end$' "$1/bench.txt" >"$to/bench.txt"
    for bench; do
        number=$((number + 1))
        awk -F'\t' -v OFS='\t' -v number=$number '$1 == "run" { $3 = number "-" $3; print }' "$bench/bench.txt" >>"$to/bench.txt"
        for file in "$bench"/*.run; do ln "$file" "$to/$number-${file##*/}" 2>/dev/null || cp "$file" "$to/$number-${file##*/}"; done
    done
    echo end >>"$to/bench.txt"
}

# By chance, but always the same ones: lines of ten numbers of PAIRS.
groups() { # PAIRS SEED
    awk -v pairs="$1" -v seed="$2" 'BEGIN {
        srand(seed)
        for (i = 1; i <= pairs; i++) order[i] = i
        for (i = pairs; i > 1; i--) { k = 1 + int(rand() * i); kept = order[i]; order[i] = order[k]; order[k] = kept }
        for (i = 1; i + 9 <= pairs; i += 10) { for (k = 0; k < 10; k++) printf "%d ", order[i + k]; print "" }
    }'
}

# Those pairs of BENCH whose numbers are in GROUP, as a bench TO.
drawn() { # BENCH GROUP TO
    rm -rf "$3"
    mkdir "$3"
    awk -F'\t' -v group=" $2" '$1 != "run" || index(group, " " (++seen[$2]) " ")' "$1/bench.txt" >"$3/bench.txt"
    awk -F'\t' '$1 == "run" { print $3 }' "$3/bench.txt" | (cd "$1" && xargs -I{} ln {} "$3/{}")
}

verdict() { # of the text of perfjit diff
    sed -n '1s/:.*//p' "$1"
}

false_rows() { # of its JSON: functions and activities with a verdict
    jq '[.functions[], .activities[] | select(.verdict == "slower" or .verdict == "faster")] | length' "$1"
}

# ---- A/A ----

# Compare the sides of BENCH, which nothing differs in, and count what is said: in comparisons, headlines and with_rows.
count_false() { # BENCH
    "$perfjit" diff -q -n 0 -o "$work/part.text" --json "$work/part.json" "$1"
    comparisons=$((comparisons + 1))
    case $(verdict "$work/part.text") in slower | faster) headlines=$((headlines + 1)) ;; esac
    [ "$(false_rows "$work/part.json")" = 0 ] || with_rows=$((with_rows + 1))
}

same_with_itself() { # KIND PAIRS [WORDS]
    local command comparisons=0 headlines=0 with_rows=0 first
    [ "$2" -gt 0 ] || return 0
    command=$(command_of "$1" 0)
    measure "aa-$1" "$2" "$command" "$command"
    for ((first = 1; first + 9 <= $2; first += 5)); do
        part "$work/aa-$1.bench" $first 10 "$work/part"
        count_false "$work/part"
    done
    echo "| $1${3:-} | $comparisons | $headlines | $with_rows |" | tee -a "$out"
}

kept() { # BENCHES...
    local comparisons=0 headlines=0 with_rows=0 bench group seed
    head_aa
    for bench; do count_false "$bench"; done
    echo "| as they are | $comparisons | $headlines | $with_rows |" | tee -a "$out"
    comparisons=0 headlines=0 with_rows=0
    joined "$work/joined" "$@"
    for seed in 1 2 3 4 5 6; do
        while read -r group; do
            drawn "$work/joined" "$group " "$work/part"
            count_false "$work/part"
        done < <(groups "$(grep -c $'^run\tbase' "$work/joined/bench.txt")" $seed)
    done
    echo "| in groups by chance | $comparisons | $headlines | $with_rows |" | tee -a "$out"
}

# The same with a load on one processor, which comes and goes every two seconds: it meets both sides.
loaded() { # KIND PAIRS
    local load
    (
        trap 'kill $(jobs -p) 2>/dev/null' EXIT
        while :; do
            timeout 2 sh -c 'while :; do :; done' &
            wait $! || true
            sleep 2
        done
    ) &
    load=$!
    trap "kill $load 2>/dev/null || true" EXIT # also if a bench fails, when LOAD is gone
    same_with_itself "$1" "$2" ", beside a load that comes and goes"
    kill $load
    wait $load || true
    trap - EXIT
}

# ---- A/B ----

least_seen() { # in percent, of the text
    sed -n 's/^4 of 5 such comparisons would show a change of \([0-9.]*\) %.*/\1/p' "$1"
}

planted() { # NAME RUNS TIMES BASE NEW FUNCTION
    local found=0 named=0 least= i
    for ((i = 0; i < $3; i++)); do
        measure ab "$2" "$4" "$5"
        "$perfjit" diff -q -n 3 --floor "${FLOOR:-1%}" "$work/ab.bench" >"$work/ab.text"
        [ "$(verdict "$work/ab.text")" != slower ] || found=$((found + 1))
        ! head -3 "$work/ab.text" | grep -q -- "$6" || named=$((named + 1))
        least="$least $(least_seen "$work/ab.text")"
    done
    echo "| $1 | $2 v $2 | $found of $3 | $named of $3 | $(tr ' ' '\n' <<<"$least" | sort -n | awk 'NF { all[++n] = $1 } END { print all[int((n + 1) / 2)] }') % |" | tee -a "$out"
}

# ---- What other tools say of one run of each side ----

# The largest change of a function: "SHARE FUNCTION", in percent of the base.
perf_says() { # BASE NEW
    HOME=$work perf diff -q "$1" "$2" 2>/dev/null |
        awk '{ for (i = 1; i <= NF; i++) if ($i ~ /^[+-][0-9.]+%$/) { change = substr($i, 2) + 0; if (change > most) { most = change; name = $0 } } }
             END { print most + 0, name }'
}
pprof_says() {
    "$perfjit" export -q --format pprof -o "$work/a.pb.gz" "$1"
    "$perfjit" export -q --format pprof -o "$work/b.pb.gz" "$2"
    go tool pprof -top -unit=ms -diff_base="$work/a.pb.gz" "$work/b.pb.gz" 2>/dev/null |
        awk '/flat%/ { rows = NR + 1 } NR == rows { print substr($2, 1, 1) == "-" ? -$2 : $2 + 0, $NF }'
}

# How often the largest row is 1 % or more, and how often it is FUNCTION's.
others() { # NAME BASE NEW FUNCTION
    local tool i says told=
    declare -A rows=([perf]=0 [pprof]=0) named=([perf]=0 [pprof]=0)
    for ((i = 0; i < ${TIMES:-10}; i++)); do
        "$perfjit" record -q -F 3000 -o "$work/other-a" -- $2 >/dev/null
        "$perfjit" record -q -F 3000 -o "$work/other-b" -- $3 >/dev/null
        for tool in perf pprof; do
            command -v ${tool/pprof/go} >/dev/null || continue
            says=$(${tool}_says "$work/other-a.perf.data" "$work/other-b.perf.data")
            awk -v says="$says" 'BEGIN { exit !(says + 0 >= 1) }' && rows[$tool]=$((rows[$tool] + 1))
            case $says in *"$4"*) named[$tool]=$((named[$tool] + 1)) ;; esac
        done
    done
    for tool in perf pprof; do
        if command -v ${tool/pprof/go} >/dev/null; then
            told="$told ${rows[$tool]}, ${named[$tool]} of ${TIMES:-10} |"
        else
            told="$told not here |"
        fi
    done
    echo "| $1 |$told" | tee -a "$out"
}

head_others() {
    printf '\n%s\n' '| one run of each side: a row of 1 % or more, and it is the planted one | perf diff | pprof -diff_base |' '|---|---|---|' | tee -a "$out"
}

head_aa() {
    printf '%s\n' '| program | comparisons | false headline | with a false row |' '|---|---|---|---|' | tee -a "$out"
}

head_ab() {
    printf '\n%s\n' '| planted | runs | "slower" | named in the first three lines | would have been seen in 4 of 5 |' '|---|---|---|---|---|' | tee -a "$out"
}

# ---- All ----

run_aa() {
    local pairs
    IFS=: read -ra pairs <<<"${PAIRS:-1000:500:100}"
    head_aa
    same_with_itself tinyjit "${pairs[0]}"
    same_with_itself node "${pairs[1]}"
    loaded tinyjit "${pairs[2]}"
}

run_ab() {
    local kind plant percent
    head_ab
    for kind in ${KINDS:-tinyjit node}; do
        for plant in ${PLANTS:-10:1 10:2 10:5 10:20 20:2}; do
            percent=${plant#*:}
            planted "$kind, $percent %" "${plant%:*}" "${TIMES:-10}" "$(command_of $kind 0)" "$(command_of $kind "$percent")" part2
        done
    done
}

# each_cause COMMAND: COMMAND NAME BASE NEW WHAT, for each.
each_cause() {
    "$1" "node, a function of a tenth that is not optimised any more" "$(causes deopt)" "$(causes deopt never)" deopt
    "$1" "node, no inlining" "$(causes inline)" "$(causes inline --no-turbo-inlining --no-maglev-inlining)" inline
    "$1" "node, a young generation of 1 MiB" "$(causes gc)" "$(causes gc --max-semi-space-size=1 --min-semi-space-size=1)" gc
}

planted_cause() { # NAME BASE NEW WHAT
    declare -A named=([deopt]=' part  causes[^;]*deoptimised' [inline]='small  causes[^;]*no longer inlined into loop'
        [gc]='^by: garbage collector')
    planted "$1" 10 "${TIMES:-10}" "$2" "$3" "${named[$4]}"
}

others_of_cause() { # NAME BASE NEW WHAT
    declare -A named=([deopt]=part [inline]=small [gc]=Scaveng)
    others "$1" "$2" "$3" "${named[$4]}"
}

run_causes() {
    head_ab
    each_cause planted_cause
}

run_others() {
    local kind percent
    head_others
    for kind in ${KINDS:-tinyjit node}; do
        for percent in 0 1 2 5 20; do
            others "$kind, $percent %" "$(command_of $kind 0)" "$(command_of $kind $percent)" part2
        done
    done
    each_cause others_of_cause
}

run_quick() {
    local turn
    head_aa
    for turn in 1 2; do
        same_with_itself tinyjit 10
        ! grep -q '| tinyjit | 1 | 0 | 0 |' "$out" || break
        [ $turn = 1 ] || exit 1
    done
    head_ab
    for turn in 1 2; do
        planted 'tinyjit, 20 %' 10 1 "$(command_of tinyjit 0)" "$(command_of tinyjit 20)" part2
        ! grep -q '| 1 of 1 | 1 of 1 |' "$out" || break
        [ $turn = 1 ] || exit 1
    done
}

: >"$out"
case $mode in
full)
    run_aa
    run_ab
    run_causes
    run_others
    ;;
aa | ab | causes | others | quick) "run_$mode" ;;
kept)
    benches=()
    for bench in "${@:3}"; do benches+=("$(cd "$start" && cd "$bench" && pwd)"); done
    kept "${benches[@]}"
    ;;
*) exit 2 ;;
esac
