# Interpreted functions as frames: of 200 functions, each with a trampoline, every chain is the one that the interpreter noted down.
load helper
load native_programs

program=$BUILD/producers/interpreted

setup_file() {
    require_perf || return 0
    cd "$BATS_FILE_TMPDIR" || return
    recording fp recorded fp fp
    recording dwarf recorded dwarf dwarf,8192
}

# recorded NAME CALL_GRAPH: NAME.data, the interpreter's own NAME.log, and in NAME.oracle what perf script says after perf inject.
recorded() {
    PERFJIT=dump JITDUMPDIR=$PWD perf record -q -k mono -e cpu-clock:u -F 2000 --call-graph "$2" -o "$1.data" "$BUILD/producers/interpreted" run 0.3 "$1.log"
    perf inject --jit -i "$1.data" -o "$1.perf.data" 2>/dev/null
    chains_of "$1.perf.data" >"$1.oracle"
    rm -f "$1.perf.data" jitdump-*/*.so
}

chains_of() {
    perf script --no-inline -F time,ip,sym --ns -i "$1" 2>/dev/null
}

# libc has no frame pointers: a chain has its first function at most, and the frames behind it are chance.
up_to_libc() {
    awk 'NF == 0 { behind = 0 } !behind; $2 == "__libc_start_call_main" { behind = 1 }'
}

setup() {
    require_perf
    cd "$BATS_FILE_TMPDIR"
}

# judged DATA LOG ENDS [perfs]: sets words, of what interpreted.awk says.  DATA may be what perf script said.
judged() {
    case $1 in
    *.oracle) cp "$1" "$1.chains" ;;
    *) chains_of "$1" >"$1.chains" ;;
    esac
    if [[ $1 = fp.* ]]; then
        up_to_libc <"$1.chains" >chains
    else
        cp "$1.chains" chains
    fi
    read -ra words <<<"$(awk -v log_path="$2" -v ends="$3" -v perfs="${4:+1}" -f "$here/interpreted.awk" chains)"
    echo "# $1: ${words[*]}" >&3
    [ "${words[1]}" -ge 400 ]
}

# all_as_logged DATA LOG ENDS [perfs]: few samples are not in work(), so nearly all are exact.  perf 6.1 loses its way in C
# once in some thousand samples, where perfjit does not.
all_as_logged() {
    judged "$@"
    [ "${words[7]}" = 0 ] && [ $((20 * words[3])) -ge $((19 * words[1])) ] && [ "${words[9]}" -ge 150 ] &&
        [ "${words[11]}" -le $((3 + words[1] / 200)) ]
}

# bats test_tags=both
@test "perf record -g: every chain is that of the interpreter's log" {
    perfjit inject -q -i fp.data -o fp.jit.data
    all_as_logged fp.jit.data fp.log '^(main|__libc_start_call_main)$'
}

# bats test_tags=both
@test "perf record --call-graph dwarf: every chain is that of the interpreter's log, to its end" {
    perfjit inject -q -i dwarf.data -o dwarf.jit.data
    all_as_logged dwarf.jit.data dwarf.log '^_start$'
}

@test "... where perf unwinds, and by perf inject: tables have room behind each" {
    perfjit inject -q --stacks keep -i dwarf.data -o dwarf.kept.data
    all_as_logged dwarf.kept.data dwarf.log '^_start$' perfs
    for form in fp dwarf; do
        all_as_logged $form.oracle $form.log '^(main|__libc_start_call_main|_start)$' perfs
    done
}

@test "the judge sees one function for another, and a chain cut short" {
    perfjit inject -q -i dwarf.data -o judged.data
    sed 's/fn_007/fn_008/' dwarf.log >other.log
    judged judged.data other.log '^_start$'
    [ "${words[7]}" -gt 0 ]
    judged judged.data dwarf.log '^run$'
    [ "${words[7]}" = "${words[1]}" ]
}

@test "functions have their lines, frames fit the code, and what was freed is unloaded" {
    perfjit inject -q -i dwarf.data -o lines.data
    local slice # a hundred samples: perf asks addr2line for each
    slice=$(perf script -i lines.data -F time -G | sed -n '101s/: *$/,/p; 200s/: *$//p' | tr -d ' \n')
    perf script -i lines.data --time "$slice" -F ip,sym,srcline --no-inline >out 2>/dev/null
    awk '/ fn_[0-9]+$/ { all++; getline line; right += line ~ ("program.src:" substr($2, 4) * 10 + 1 "$") }
        END { print "# " right " of " all " lines"; exit !(all > 20 && right == all) }' out || complain "$(head -20 out)"
    perfjit check --json jitdump-*/jit-*.dump >checked
    jq -e '.dumps | length == 2 and all(.sound and .frames.functions == 200 and .frames.wrong == 0 and
        .records.load == 200 and .records.unload == 200)' checked
}

# stopped: sets pid, of the program that waits deep in its functions.
stopped() {
    rm -f stop.log
    (PERFJIT=dump,gdb JITDUMPDIR=$PWD exec "$program" stop 5000 stop.log) >/dev/null 2>&1 3>&- &
    pid=$!
    await grep -qs . stop.log # is written at once
    [ "$(wc -l <stop.log)" -gt 5 ]
}

# bats test_tags=live
@test "gdb: bt has the stack of the interpreter's log, by perfjit gdb and by the JIT interface" {
    stopped
    perfjit gdb -p $pid -- --batch -ex bt >perfjit.bt 2>perfjit.err || true
    gdb -nx -p $pid --batch -ex bt >interface.bt 2>interface.err || true
    kill $pid
    for bt in perfjit.bt interface.bt; do
        sed -nE 's,^#[0-9]+ +(0x[0-9a-f]+ in )?(fn_[0-9]+|main) .*,\2,p' $bt >names
        { cat stop.log; echo main; } | same names /dev/stdin || complain "$(cat $bt ${bt%.bt}.err)"
    done
    grep -qE 'fn_[0-9]+ \(\) at program.src:[0-9]+1$' perfjit.bt
}

@test "backtrace(3) and jitunwind_backtrace in the process: every stack is the interpreter's own" {
    [ "$RECORDINGS" != anew ] || skip "it records nothing"
    for words in dump dump,check dump,gdb; do
        PERFJIT=$words JITDUMPDIR=$BATS_TEST_TMPDIR "$program" check 20000 >said 2>err || complain "$(cat said err)"
        grep -qE '^1[0-9]{3} stacks, 0 wrong$' said
    done
}

# ---- tinyjit's interpreter ----

interpreted_script() {
    cat <<'END'
fn spin(n) {
    var i = 0;
    while i < n { i = i + 1; if i % 64 == 0 { native_mix(i); } }
    return i;
}
fn down(n) { if n == 0 { return spin(20000); } return 1 + down(n - 1); }
fn b(x) { var y = x; y = y + down(x); return y; }
fn main() { return 1 + b(3); }
END
}

# its_chains DATA: of the samples of tinyjit that have one, the functions on the stack, each such chain once, with its number.
its_chains() {
    perf script -i "$1" --no-inline -F ip,sym 2>/dev/null |
        awk 'BEGIN { RS = ""; FS = "\n" }
             { chain = ""
               for (i = 1; i <= NF; i++)
                   if (match($i, /tj::[a-z]+ \[interpreted\]/))
                       chain = chain substr($i, RSTART + 4, RLENGTH - 18) ";"
               chains[chain]++ }
             END { for (chain in chains) print chains[chain], chain }'
}

# main_is_last DATA: every chain is a part of the only one that the script has, from main on; nearly all samples are in spin().
main_is_last() {
    its_chains "$1" >own.chains
    awk '{ all += $1
           if ($2 == "spin;down;down;down;down;b;main;") whole += $1
           else if (index("spin;down;down;down;down;b;main;", $2) && $2 ~ /(^|;)main;$/) part += $1
           else if ($2) wrong += $1 }
         END { print "# of " all " chains " whole + 0 " whole, " part + 0 " in other functions, " wrong + 0 " wrong"
               exit !(all >= 200 && whole >= 0.9 * all && !wrong) }' own.chains >&3 || complain "$(cat own.chains)"
}

record_tinyjit() { # FORM CALL_GRAPH
    PERFJIT=dump,check JITDUMPDIR=$PWD perf record -q -k mono -e cpu-clock:u -F 2000 --call-graph "$2" -o "$1.data" \
        "$BUILD/tinyjit" --interpret --seconds 0.3 spin.tj 2>err
}

# bats test_tags=both
@test "tinyjit --interpret: its functions are on every stack, by -g and by dwarf" {
    cd "$BATS_TEST_TMPDIR"
    interpreted_script >spin.tj
    for form in fp dwarf; do
        recording tinyjit-$form record_tinyjit $form ${form/dwarf/dwarf,8192}
        [ ! -s err ] || complain "$(cat err)"
        perfjit inject -q -i $form.data -o own.jit.data
        main_is_last own.jit.data
    done
}

# bats test_tags=live
@test "tinyjit --interpret: attached while it runs, its functions have frames from then on, and again" {
    cd "$BATS_TEST_TMPDIR"
    interpreted_script >spin.tj
    PERFJIT=attach JITDUMPDIR=$PWD "$BUILD/tinyjit" --interpret --seconds 1000 spin.tj >/dev/null 2>&1 3>&- &
    local pid=$! once
    await_use $pid 100
    for once in 1 2; do
        perfjit attach $pid >attached
        await_use $pid 100 # main is called again
        record own.data -e cpu-clock:u --call-graph dwarf,16384 -p $pid bash -c "await_use $pid 300"
        perfjit inject -q -i own.data -o own.jit.data
        main_is_last own.jit.data
        perfjit detach $pid >detached
    done
    kill $pid
}

@test "tinyjit --interpret --crash: the report names them, to the end" {
    [ "$RECORDINGS" != anew ] || skip "it records nothing"
    cd "$BATS_TEST_TMPDIR"
    interpreted_script >spin.tj
    PERFJIT=dump JITDUMPDIR=$PWD run -139 --separate-stderr "$BUILD/tinyjit" --interpret --crash spin.tj
    sed -nE 's/.* tj::([a-z]+) \[interpreted\]\+0x[0-9a-f]+$/\1/p' <<<"$stderr" >names
    printf '%s\n' spin down down down down b main | same names /dev/stdin
    [[ $stderr != *"not known"* && $stderr != *"frame pointer"* ]]
}
