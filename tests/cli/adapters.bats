# Other people's compilers with the adapters of examples/adapters: every sample in their code has a name, every stack through it
# is whole.  ADAPTER_SOURCES is a folder with their sources, each in a folder of its name; what is not there is unavailable.

load helper

adapters=$here/../../examples/adapters

setup() {
    require_perf
    [ "$(uname -m)" = x86_64 ] || skip "the adapters describe x86-64 code"
    cd "$BATS_TEST_TMPDIR"
}

# built NAME FILE: out/ has the program NAME with its adapter, or its sources, of which FILE is one, are not here.  If a package
# has the sources, as setup installs them, FILE is absolute.
built() {
    if [[ $2 = /* ]]; then
        [ -e "$2" ] || skip "there is no $2 (make setup-live)"
        made "$1" "${2%/$1/*}"
        return
    fi
    [ -n "${ADAPTER_SOURCES:-}" ] || unavailable "ADAPTER_SOURCES names no folder with $1's sources in $1/"
    [ -e "$ADAPTER_SOURCES/$1/$2" ] || unavailable "there is no $ADAPTER_SOURCES/$1/$2"
    made "$1" "$ADAPTER_SOURCES/$1"
}

# made NAME SOURCES
made() {
    sh "$adapters/$1/build.sh" "$2" "$PWD/out" >build.log 2>&1 || complain "$(tail -20 build.log)"
}

# recorded COMMAND...: its recording, with perf's own stacks (kept) and perfjit's (jit).
recorded() {
    mkdir dumps
    PERFJIT=dump JITDUMPDIR=$PWD/dumps LD_LIBRARY_PATH=$BUILD \
        record load.data --call-graph dwarf,16384 -e cpu-clock:u "$@" >load.out
    perfjit inject -q -i load.data -o jit.data
    perfjit inject -q -i load.data -o kept.data --stacks keep
}

# all_named NAMES: each address in the program's code, sampled or called from, has one of NAMES, a regular expression; and each
# of these chains goes back to _start.  Frames beyond native code without a name of its own (an interpreter in assembly) prove
# nothing.
all_named() {
    local form
    for form in jit kept; do
        perf script -i $form.data --no-inline -F ip,sym,dso 2>/dev/null >$form.chains
        awk -v names="^($1)\$" '
            # Whether line I is in code that was compiled.  An address in no file, where a chain ends behind native code, is what
            # perf makes of code without tables (_fini).
            function is_code(i) {
                if ($i ~ /^[ \t]*ffff/)
                    return 0
                if ($i ~ /\.dso\/|\/jit-[0-9]+\.dump/)
                    return 1
                return $i ~ /\/\/anon|memfd:|\[unknown\] \(\[unknown\]\)/ && (i == 1 || i < NF || is_code(i - 1))
            }
            BEGIN { RS = ""; FS = "\n" }
            {
                code = 0
                for (i = 1; i <= NF && (is_code(i) || $i !~ /\[unknown\] \(\//); i++)
                    if (is_code(i)) {
                        line = $i
                        sub(/^[ \t]*[0-9a-f]+ /, "", line)
                        sub(/ \([^()]*\)$/, "", line)
                        code++
                        if (line !~ names) { unnamed++; print $i }
                    }
                if (code) { all++; leaves += is_code(1); if ($NF ~ / _start \(/) whole++; else print }
            }
            END {
                printf "# %d samples in its code; %d of %d chains through it are whole; %d addresses have no name\n",
                    leaves, whole, all, unnamed
                exit !(leaves > 100 && whole == all && !unnamed)
            }' $form.chains >$form.found || complain "$form: $(tail -30 $form.found)"
        sed "s/^# /# $form: /" $form.found >&3
    done
}

# all_described: no function without unwind tables, and none whose code contradicts them.
all_described() {
    perfjit check --json dumps/jitdump-*/jit-*.dump >checked || [ $? -eq 3 ]
    jq -c '.dumps[0].frames' checked
    jq -e '.dumps[0].frames | .wrong == 0 and .functions > 5' checked
}

@test "a hook whose place is gone is an error that names it" {
    printf 'one\ntwo\ntwo\n' >source.c
    printf '%s\n' '@ source.c after two @ ^two' 'behind the first' '@ other.c after one' 'elsewhere' >hooks
    awk -f "$adapters/insert.awk" hooks source.c >out.c
    [ "$(cat out.c)" = $'one\ntwo\nbehind the first\ntwo' ]
    printf '%s\n' '@ source.c before one @ three' 'nowhere' >>hooks
    run --separate-stderr awk -f "$adapters/insert.awk" hooks source.c
    exits 1
    says 'source.c: no line matches "one"'
}

# bats test_tags=all
@test "MIR: functions, thunks and calls between them" {
    built mir mir-gen.c
    recorded out/c2m "$adapters/mir/load.c" -eg 1200
    [ "$(cat load.out)" = done ]
    all_named 'MIR thunk|main|round_of|multiply|many_values|in_alloca|collatz|leaf|fib|sum_of|by_bits|chosen'
    all_described
}

# bats test_tags=all
@test "asmjit: functions with a frame pointer and without, of one CodeHolder" {
    built asmjit /usr/include/asmjit/asmjit.h
    recorded out/load 1.2
    [ "$(cat load.out)" = done ]
    all_named '(leaf|fib|spills|floats)(_fp)?'
    all_described
}

# bats test_tags=all
@test "ubpf: functions of one buffer that is copied, the way in and out, VMs that come and go" {
    built ubpf vm/ubpf_jit_x86_64.c
    recorded out/load 1.2
    [ "$(cat load.out)" = done ]
    all_named 'ubpf (entry|retpoline)|ubpf:(0|23|34|47)'
    all_described
    perfjit dump dumps/jitdump-*/jit-*.dump >records
    [ "$(grep -c CODE_UNLOAD records)" -gt 10 ]
}

# bats test_tags=all
@test "IR: functions with a frame pointer and without, several returns, a jump for the last call" {
    built ir ir_x86.dasc
    recorded out/load 1.2
    [ "$(cat load.out)" = done ]
    all_named '(leaf|fib|spills|tail)(_fp)?'
    all_described
}

# Debian's, as make setup-live installs it, is in luajit.bats.
# bats test_tags=all
@test "LuaJIT: traces, of the version whose sources are here" {
    built luajit src/lj_trace.c
    LUA_PATH="$adapters/luajit/?.lua;$PWD/out/src/?.lua" recorded out/src/luajit -l perfjit "$adapters/luajit/load.lua" 1.2
    [ "$(cat load.out)" = true ]
    all_named 'TRACE [0-9]+ load\.lua:[0-9]+'
    all_described
}
