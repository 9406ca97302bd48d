# The limit for a reader of a hostile, or merely large, recording or dump.  It is counted in valgrind's instructions, which a
# busy machine does not change.  Four times the input may cost six times as much.

load helper

setup() {
    cd "$BATS_TEST_TMPDIR"
}

# cost COMMAND KIND N: how many perfjit COMMAND takes for an input of costly.
cost() {
    mkdir -p "$2.$3"
    "$BUILD/producers/costly" "$2" "$3" "$2.$3"
    case $1 in
        inject) instructions "$BUILD/perfjit" inject -q -i "$2.$3/perf.data" --jitdump "$2.$3/jit-4711.dump" -o out.data ;;
        check) instructions "$BUILD/perfjit" check "$2.$3/perf.data" "$2.$3/jit-4711.dump" ;;
    esac
}

# grows COMMAND KIND N: the cost grows with the input, and not with its square.
grows() {
    local small large
    small=$(cost "$1" "$2" "$3")
    large=$(cost "$1" "$2" $((4 * $3)))
    echo "$1 $2: $small instructions for $3, $large for $((4 * $3))"
    [ "$small" -gt 1000000 ]
    [ "$large" -lt $((6 * small)) ]
}

# calls_grow READER N: of no input that costly_calls hands it does READER's cost grow with the square.
calls_grow() {
    valgrind -q --tool=callgrind --toggle-collect=counted --dump-after=counted --callgrind-out-file=calls \
        "$BUILD/producers/costly_calls" "$1" "$2" >shapes
    ls calls.* | sort -V | xargs sed -n 's/^totals: //p' | paste - - | paste - shapes >costs
    awk -v reader="$1" -v n="$2" '{ shape = $0; sub(/^[0-9]+\t[0-9]+\t/, "", shape) }
        { print reader ", " shape ": " $1 " for " n ", " $2 " for " 4 * n }
        NF < 3 || $1 < 1000000 || $2 >= 6 * $1 { bad = 1; print "this is too much, or not all of it" }
        END { exit bad || NR == 0 }' costs
}

# bats test_tags=live
@test "short processes with executable memory and no JIT" {
    grows inject lives 800
    grows check lives 800
}

# Other costs of a process are so much larger that thousands of them would hide it: only this function is counted.
# bats test_tags=all
@test "short processes with a perf map each: the process of each is found without a look at the others" {
    local n cost=()
    for n in 250 1000; do
        mkdir -p $n/root/tmp
        "$BUILD/producers/costly" lives $n $n
        for ((i = 0; i < n; i++)); do
            echo "40000000 40 f" >$n/root/tmp/perf-$((100000 + i)).map
        done
        valgrind --tool=callgrind --toggle-collect=jit_process_of_life --callgrind-out-file=/dev/null "$BUILD/perfjit" inject -q \
            -i $n/perf.data --root $n/root --jitdump $n/jit-4711.dump -o out.data 2>said
        cost+=("$(sed -n 's/.*Collected : //p' said)")
    done
    echo "${cost[0]} for 250, ${cost[1]} for 1000"
    [ "${cost[0]}" -gt 10000 ]
    [ "${cost[1]}" -lt $((6 * cost[0])) ]
}

# bats test_tags=live
@test "functions of a child in its parent's dump, each with unwind tables like no other" {
    grows inject tables 300
}

# bats test_tags=all
@test "FDEs that share a large CIE" {
    grows inject large-cie 300
}

# 4 MiB of them would take hours if the search for the next record looked at any byte often.
# bats test_tags=all
@test "a record that can't be, and behind it bytes that all look like records" {
    grows check noise 1000
}

# bats test_tags=all
@test "a hole of zeros before and behind the end of a record" {
    grows check hole 2
}

# bats test_tags=live
@test "lines of a perf map that overlap in any way" {
    calls_grow perf-map 2500
}

# bats test_tags=all
@test "functions that overlap in any way" {
    calls_grow timeline 1800
}

# bats test_tags=live
@test "unwind tables that are handed in: a long CIE for all functions, and a CIE for each" {
    calls_grow cfi 4000
}

# bats test_tags=all
@test "children, each with a sample in what it inherited" {
    grows inject children 300
    grows check children 300
}

# bats test_tags=all
@test "children that each map a piece of the arena anew" {
    grows inject flips 300
    grows check flips 300
}

# Code that each of n children in a chain must know of is copied n * n / 2 times: that ends somewhere.
@test "a chain of thousands of forks that all touch what they inherited: bounded memory, and what is lost is told" {
    mkdir chain
    "$BUILD/producers/costly" chain 8000 chain
    bounded() {
        ulimit -v 1500000
        timeout 300 "$BUILD/perfjit" inject -i chain/perf.data --jitdump chain/jit-4711.dump -o out.data
    }
    run --separate-stderr bounded
    exits 3
    says "process whose inherited or shared code is only partly known"
}

# bats test_tags=live
@test "a chain of forks" {
    grows check deep 100
}

# bats test_tags=all
@test "a function that others leave pieces of, and unloads of everything" {
    grows inject pieces 300
    grows check pieces 300
    grows inject unloads 2000
}

# bats test_tags=live
@test "functions one after the other at the same addresses, with lines and unwind tables" {
    grows inject lined 300
    grows check lined 300
}

# bats test_tags=live
@test "dumps that one process maps, each another file" {
    grows check dumps 2000
}

# bats test_tags=all
@test "memory that is mapped again and again over the addresses of all samples" {
    grows inject maps 2000
    grows check maps 2000
    mkdir -p maps.{2000,8000}
    local cost=() n
    for n in 2000 8000; do
        cost+=("$(instructions "$BUILD/perfjit" report -q maps.$n/perf.data)")
    done
    echo "report maps: ${cost[0]} instructions for 2000, ${cost[1]} for 8000"
    [ "${cost[1]}" -lt $((6 * cost[0])) ]
}

# bats test_tags=all
@test "threads of a process with JIT code, which outlive its main thread and end one after the other" {
    grows inject threads 4000
    grows check threads 4000
}

# The kernel's core of so many threads would take gigabytes of addresses: this one is written.
# bats test_tags=all
@test "threads in a core" {
    local cost=() n
    for n in 500 2000; do
        /usr/bin/python3 "$here"/many_threads_core.py $n >core.$n
        cost+=("$(instructions "$BUILD/perfjit" bt core.$n)")
        "$BUILD/perfjit" bt core.$n 2>/dev/null >stacks || true
        [ "$(grep -c ^Thread stacks)" = $n ]
    done
    echo "bt: ${cost[0]} instructions for 500 threads, ${cost[1]} for 2000"
    [ "${cost[0]}" -gt 1000000 ]
    [ "${cost[1]}" -lt $((6 * cost[0])) ]
}
