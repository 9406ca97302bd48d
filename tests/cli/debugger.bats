#!/usr/bin/env bats
# perfjit bt, symbols, gdb and lldb: stacks of cores and of live processes.
#
# The judge is the one stack that chain.tj has, if nothing is inlined, when it is in spin: known from the script.
load helper
# bats file_tags=live

setup_file() {
    cd "$BATS_FILE_TMPDIR" || return
    cat >chain.tj <<END
fn spin(n) {
    var i = 0;
    while i < n { i = i + 1; }
    return i;
}
fn down(n) { if n == 0 { return spin(20000000000); } return 1 + down(n - 1); }
fn c(x) { return 2 * down(x) + 1; }
fn b(x) { var y = x; y = y + c(x); return y; }
fn main() { return 1 + (2 + b(5)); }
END
    { echo spin 3; yes down 6 | head -6; echo c 7; echo b 8; echo main 9; } >chain
    # V8's last records are lost in its buffer of 2 MiB: that much is logged after all that is on the stack.
    cat >script-of-a-long-name.js <<END
function leaf(n) {
    for (let i = 0; i < 2000; i++) new Function("return " + i)();
    require("fs").writeFileSync("ready", "");
    for (;;) n++;
}
function inner(n) { return leaf(n) + 1; }
function outer(n) { return [n].map(function cb(x) { return inner(x); })[0]; }
outer(1);
END
    core_of frame "$BUILD/tinyjit" --no-inline chain.tj
    core_of frameless "$BUILD/tinyjit" --no-inline --no-frame-pointer chain.tj
    core_of node node --perf-prof --interpreted-frames-native-stack --always-sparkplug --no-opt script-of-a-long-name.js
}

setup() {
    cd "$BATS_FILE_TMPDIR"
}

# spinning COMMAND...: sets pid, of the command, which has used so much of a processor by then.  V8 copies its builtins beside the
# code that it compiles, but where that is near the builtins themselves: once in a hundred, by chance, where addresses are random.
spinning() {
    local fixed=()
    [ "$1" != node ] || ! setarch -R true 2>/dev/null || fixed=(setarch -R)
    (ulimit -c unlimited && PERFJIT=dump JITDUMPDIR=$PWD exec "${fixed[@]}" "$@") >/dev/null 2>&1 3>&- &
    pid=$!
    [ "$1" != node ] || await [ -e ready ]
    await_use $pid 100
}

# core_of NAME COMMAND...: NAME.core and NAME.pid, of the command while it spins: by the kernel, or, where that hands cores to a
# program, by gdb.
core_of() {
    local name=$1
    mkdir -p "$name.d"
    cp ./chain.tj "$name.d"
    [ ! -e script-of-a-long-name.js ] || cp script-of-a-long-name.js "$name.d"
    cd "$name.d" || return
    spinning "${@:2}"
    echo $pid >"../$name.pid"
    case $(cat /proc/sys/kernel/core_pattern) in
    *[/\|]*) gcore -o core $pid >/dev/null 2>&1 && kill $pid ;;
    *) kill -ABRT $pid ;;
    esac
    wait $pid || true
    mv core* "../$name.core"
    cd ..
}

# jit_frames JSON: name and line of tinyjit's functions, the innermost first, of the first thread.
jit_frames() {
    head -1 "$1" | jq -r '.frames[] | select(.jit) | "\(.name) \(.line)"' |
        sed -n 's/^tj::\([a-z]*\) \[tier[12]\]/\1/p'
}

# gdb_functions TEXT: the functions of tinyjit's in gdb's backtrace, and their lines.
gdb_functions() {
    sed -nE 's/^#[0-9]+ .*tj::([a-z]*) \[tier[12]\] \(\) at .*:([0-9]+)$/\1 \2/p' "$1"
}

# whole JSON: every thread's stack ends where the thread began.
whole() {
    jq -r 'select(.whole | not) | "thread \(.tid) ends: \(.end)"' "$1" >"$1.not"
    [ ! -s "$1.not" ] || complain "$(cat "$1.not")"
    jq -r '.frames[-1].name' "$1" | sort -u >"$1.outermost"
    [ -z "$(grep -vxE '_start|(__)?clone3?' "$1.outermost")" ] || complain "it ends at $(cat "$1.outermost")"
}

@test "bt of a core: the chain that the script has, with lines, to _start" {
    for name in frame frameless; do
        perfjit bt --json $name.core >$name.json
        whole $name.json
        jit_frames $name.json >$name.got
        same $name.got chain
    done
    # A perf map that an earlier process left behind is no loss.
    map=/tmp/perf-$(cat frame.pid).map
    echo '1000 10 elsewhere' >"$map"
    touch -r frame.core "$map"
    run --separate-stderr perfjit bt frame.core
    rm "$map"
    exits 0
    says "1 x perf map of an earlier process with the same pid" "of its 1 function only 0 lie"
    perfjit bt frame.core >text
    grep -E '^#7 .* tj::c \[tier1\]\+0x[0-9a-f]+ at .*/chain.tj:7 \[JIT\]$' text
    grep -E '^#[0-9]+ .* main\+0x[0-9a-f]+ at examples/tinyjit/main.c:[0-9]+ \[tinyjit\]$' text
    grep 'the stack is whole' text
}

@test "bt: an inlined call's name is shown as it would be in a symbol table" {
    [[ $(cat /proc/sys/kernel/core_pattern) != *[/\|]* ]] || skip "the kernel hands cores to a program here"
    printf 'fn odd(n) { return n + native_mix(n); }\nfn main() { return 1 + odd(7); }\n' >crash.tj
    (ulimit -c unlimited && PERFJIT=dump JITDUMPDIR=$PWD exec "$BUILD/tinyjit" --tier2-after=0 crash.tj --crash) \
        >/dev/null 2>&1 || true
    core=$(echo core*)
    for dump in jitdump-*/jit-*.dump jitdump-*/stage/jit-*.dump; do
        perl -pi -e 's/tj::odd/tj\x1b:odd/g' "$dump"
    done
    perfjit bt "$core" >text
    grep -E '^#2 .* tj\?:odd \(inlined\) at .*/crash.tj:1 \[JIT\]$' text
    perfjit bt --json "$core" | jq -r '.frames[] | select(.inlined and .jit) | .name' >got
    grep -x 'tj?:odd' got
    rm -r "$core" jitdump-*
}

@test "bt of a core that gdb wrote" {
    spinning "$BUILD/tinyjit" --no-inline chain.tj
    gcore -o by_gdb $pid >/dev/null 2>&1
    kill -KILL $pid
    perfjit bt --json by_gdb.$pid >by_gdb.json
    whole by_gdb.json
    jit_frames by_gdb.json >by_gdb.got
    same by_gdb.got chain
}

@test "bt of a live process, which goes on" {
    spinning "$BUILD/tinyjit" --no-inline chain.tj
    perfjit bt --json -p $pid >live.json
    await_use $pid 100
    grep 'TracerPid:.0$' /proc/$pid/status
    kill -KILL $pid
    whole live.json
    jit_frames live.json >live.got
    same live.got chain
}

@test "bt of node: every stack to its end, JavaScript and builtins named" {
    run --separate-stderr perfjit bt --json node.core
    [ "$status" = 0 ] || exits 3 # the dump is cut in V8's buffer
    echo "$output" >node.json
    whole node.json
    head -1 node.json | jq -r '.frames[] | select(.jit) | .name' >names
    grep -oE '\^(leaf|inner|cb|outer) /|Builtin:ArrayMap' names | tr -d ' /^' >got
    printf '%s\n' leaf inner cb Builtin:ArrayMap outer >wanted
    same got wanted
    head -1 node.json | jq -r '.frames[] | select(.name // "" | contains("^inner /")) | "\(.file):\(.line)"' >place
    grep -E '/script-of-a-long-name.js:6$' place
}

@test "bt without a dump: native frames, and what to do, status 1" {
    cp -r frame.d without.d
    rm -rf frame.d/jitdump-*
    run --separate-stderr perfjit bt frame.core
    mv without.d/jitdump-* frame.d
    exits 1
    says 'jit-' 'not there'
    [[ $output == *'_start'* || $output == *'tinyjit'* || $output == *'??'* ]]
}

@test "what is no core, a cut core, and wrong usage say what to do" {
    run --separate-stderr perfjit bt chain.tj
    exits 1
    says 'chain.tj: is no core'
    run --separate-stderr perfjit bt "$BUILD/tinyjit"
    exits 1
    says 'an ELF file, but no core' '-p PID'
    head -c $(($(stat -c %s frame.core) - 4096)) frame.core >cut.core
    run --separate-stderr perfjit bt cut.core
    exits 1
    says 'cut.core: is cut short' 'ulimit -c unlimited'
    run --separate-stderr perfjit bt missing.core
    exits 1
    says "missing.core: can't read it"
    run --separate-stderr perfjit bt -p "$(($(cat /proc/sys/kernel/pid_max) - 1))"
    exits 1
    run --separate-stderr perfjit bt
    exits 2
    run --separate-stderr perfjit bt -p x
    exits 2
}

@test "symbols: names, lines and tables at the addresses of the process" {
    perfjit symbols --core frame.core -o symbols >table
    perfjit bt --json frame.core >frame.json
    read -r _ _ base functions _ file <table
    [ "$functions" -ge 6 ]
    pc=$(jq -r 'select(.frames) | .frames[7].pc' frame.json)
    [ "$(eu-addr2line -f -e "$file" "$(printf '0x%x' $((pc - 1 - base)))" | head -1)" = 'tj::c [tier1]' ]
    [[ $(eu-addr2line -e "$file" "$(printf '0x%x' $((pc - 1 - base)))") == */chain.tj:7* ]]
    readelf -wF "$file" 2>/dev/null | grep -q FDE
    perfjit symbols --json --core frame.core -o symbols | jq -e '.functions | length > 6'
}

@test "symbols --at: the code of that moment" {
    # It was not closed: its newest records, all of them here, are in its stage.
    first=$(perfjit dump --json frame.d/jitdump-*/stage/jit-*.dump | jq -r 'select(.type == "CODE_LOAD") | .timestamp' | sed -n 2p)
    perfjit symbols --json --core frame.core --at "$first" -o early >early.json
    perfjit symbols --json --core frame.core -o late >late.json
    [ "$(jq '.functions | length' early.json)" -lt "$(jq '.functions | length' late.json)" ]
}

@test "gdb on a core: the same chain, to _start or main's caller, and on to the shell's status" {
    for name in frame frameless; do
        perfjit gdb $name.core -- --batch -ex bt >$name.bt
        gdb_functions $name.bt >$name.got
        same $name.got chain
        tail -1 $name.bt | grep -E '^#[0-9]+ .*main \('
    done
    TMPDIR=$BATS_TEST_TMPDIR run --separate-stderr perfjit gdb frame.core -- --batch -ex 'shell ls -d $TMPDIR/perfjit-gdb-*' -ex 'quit 7'
    exits 7
    [[ $output == *"$BATS_TEST_TMPDIR/perfjit-gdb-"* ]]
    [ -z "$(find "$BATS_TEST_TMPDIR" -name 'perfjit-gdb-*')" ]
}

@test "gdb on node's core: through code without tables to _start" {
    perfjit gdb node.core -- --batch -ex bt >node.bt
    grep -oE 'JS:\^(leaf|inner|cb|outer) /|Builtins_ArrayMap' node.bt | sed -E 's/JS:\^(.*) \//\1/; s/Builtins_/Builtin:/' >got
    printf '%s\n' leaf inner cb Builtin:ArrayMap outer >wanted
    same got wanted
    tail -1 node.bt | grep ' in _start ()'
}

@test "gdb on node: the chain at each instruction of a loop, in baseline code and V8's copies of builtins" {
    # V8 may be stopped in its own code, which it calls from loops now and then: steps there are not counted.
    cat >step.py <<END
import gdb
inside = right = copies = 0
for _ in range(2000):
    gdb.execute("stepi", False, True)
    innermost = gdb.execute("bt 1", False, True)
    if "JS:^leaf /" in innermost or "Builtin:Increment_Baseline" in innermost:
        frames = gdb.execute("bt 6", False, True)
        inside += 1
        copies += "Builtin:Increment_Baseline" in innermost
        right += all("JS:^%s /" % name in frames for name in ("leaf", "inner", "cb")) and "ArrayMap" in frames
    if inside >= 100 and copies >= 10:
        break
print("inside: %d right: %d copies: %d" % (inside, right, copies))
END
    rm -f ready
    local try
    spinning node --perf-prof --interpreted-frames-native-stack --always-sparkplug --no-opt script-of-a-long-name.js
    for try in {1..20}; do # a long way through V8's own code ends a try
        run --separate-stderr perfjit gdb -p $pid -- --batch -ex 'source step.py'
        [[ $output =~ inside:\ ([0-9]+)\ right:\ ([0-9]+)\ copies:\ ([0-9]+) ]]
        [ "${BASH_REMATCH[1]}" = "${BASH_REMATCH[2]}" ] || complain "$output"
        [ "${BASH_REMATCH[1]}" -lt 100 ] || [ "${BASH_REMATCH[3]}" -lt 10 ] || break
    done
    kill $pid
    echo "# $try tries, the last: ${BASH_REMATCH[0]}" >&3
    [ "${BASH_REMATCH[1]}" -ge 100 ] && [ "${BASH_REMATCH[3]}" -ge 10 ] || complain "$output"
}

@test "gdb on a process: finish and next through compiled code, and what is compiled later" {
    cat >wait.tj <<END
fn late(n) { return native_mix(n) + 1; }
fn wait() { while native_mix(1) != 0 { } return 0; }
fn main() { wait(); return late(1); }
END
    spinning "$BUILD/tinyjit" --no-inline wait.tj
    run --separate-stderr perfjit gdb -p $pid -- --batch -ex 'set confirm off' -ex 'break native_mix' -ex continue \
        -ex 'echo [finish]\n' -ex finish -ex 'bt 2' -ex 'echo [next]\n' -ex next -ex 'bt 2' \
        -ex 'return (long)0' -ex continue -ex 'echo [late]\n' -ex 'bt 3' -ex kill
    exits 0
    sed -n '/^.finish/,/^.next/p' <<<"$output" | grep -E '^#1 .*tj::main \[tier1\] \(\) at .*wait.tj:3$'
    sed -n '/^.next/,/^.late/p' <<<"$output" | grep -E '^#1 .*tj::wait \[tier1\] \(\) at .*wait.tj:2$'
    sed -n '/^.late/,$p' <<<"$output" | grep -E '^#1 .*tj::late \[tier1\] \(\) at .*wait.tj:1$'
    sed -n '/^.late/,$p' <<<"$output" | grep -E '^#2 .*tj::main \[tier1\] \(\) at .*wait.tj:3$'
}

# lldb_functions TEXT: as gdb_functions; lldb tells columns, too.
lldb_functions() {
    sed -nE 's/^ .*frame #[0-9]+: .*`tj::([a-z]*) \[tier[12]\] at .*:([0-9]+):[0-9]+$/\1 \2/p' "$1"
}

@test "lldb on a core: the same chain, to _start, and on to the shell's status" {
    for name in frame frameless; do
        TMPDIR=$BATS_TEST_TMPDIR perfjit lldb $name.core -- --batch -o bt >$name.lldb 2>&1
        lldb_functions $name.lldb >$name.got
        same $name.got chain
        tail -1 $name.lldb | grep -F '`_start'
    done
    [ -z "$(find "$BATS_TEST_TMPDIR" -name 'perfjit-gdb-*')" ]
    run --separate-stderr env PATH=/nowhere "$BUILD/perfjit" lldb frame.core
    exits 1
    says 'lldb is not installed' 'perfjit bt'
}

@test "lldb on a process" {
    spinning "$BUILD/tinyjit" --no-inline chain.tj
    perfjit lldb -p $pid -- --batch -o bt -o detach >live.lldb 2>&1
    kill $pid
    lldb_functions live.lldb >live.got
    same live.got chain
}

# bats test_tags=all
@test "lldb on node's core: JavaScript and builtins named" {
    # The innermost builtin and its caller lldb may get wrong: docs/debugging.md.
    perfjit lldb node.core -- --batch -o bt >node.lldb 2>&1
    grep -oE 'JS:\^(inner|cb|outer) /|Builtins_ArrayMap' node.lldb | sed -E 's/JS:\^(.*) \//\1/; s/Builtins_/Builtin:/' | uniq >got
    printf '%s\n' inner cb Builtin:ArrayMap outer >wanted
    same got wanted
}

@test "gdb that is not installed, or has no dump, says what to do, status 1" {
    run --separate-stderr env PATH=/nowhere "$BUILD/perfjit" gdb frame.core
    exits 1
    says 'gdb is not installed' 'perfjit bt'
    cp -r frame.d kept.d
    rm -rf frame.d/jitdump-*
    run --separate-stderr perfjit gdb frame.core -- --batch
    mv kept.d/jitdump-* frame.d
    exits 1
    says 'not there'
}

@test "a dump of a later process with the same pid is told, and one of another run" {
    require_root
    [[ $(cat /proc/sys/kernel/core_pattern) != *[/\|]* ]] || skip "the kernel hands cores to a program here"
    mkdir -p again
    echo 'fn main() { var i = 0; while i < 20000000000 { i = i + 1; } return i; }' >again/other.tj
    cp chain.tj again
    cd again
    for script in chain other; do
        # Pid 2 of a namespace of its own; /proc tells the shell what it is here.
        rm -f here
        (ulimit -c unlimited && PERFJIT=dump JITDUMPDIR=$PWD exec unshare --pid --fork sh -c '"$@" & wait' sh \
            sh -c 'read -r pid rest </proc/self/stat && echo $pid >here; exec "$@"' sh \
            "$BUILD/tinyjit" --no-inline $script.tj) >/dev/null 2>&1 3>&- &
        await [ -s here ]
        await_use "$(cat here)" 50
        kill -ABRT "$(cat here)"
        wait $! || true
        [ -e chain.core ] || mv core* chain.core
        [ $script = other ] || perfjit bt --json chain.core >ns.json
    done
    whole ns.json
    jit_frames ns.json >got
    same got ../chain
    run --separate-stderr perfjit bt chain.core
    exits 1
    says 'is in the memory of process' 'a later process with the same pid' '--jitdump'
    run --separate-stderr perfjit bt --jitdump jitdump-2/stage/jit-2.dump ../frame.core
    exits 1
    says 'is not in this recording'
}

@test "a stripped program: JIT code is named all the same" {
    mkdir -p stripped
    cp chain.tj stripped
    strip -o stripped/tinyjit "$BUILD/tinyjit"
    cd stripped
    core_of stripped "$PWD/tinyjit" --no-inline chain.tj
    perfjit bt --json stripped.core >stripped.json
    jit_frames stripped.json >got
    same got ../chain
    whole stripped.json || [ "$(jq -r '.frames[-1].module' stripped.json)" = "$PWD/tinyjit" ]
    perfjit gdb stripped.core -- --batch -ex bt >bt
    gdb_functions bt >got
    same got ../chain
}

@test "symbols of a dump alone" {
    perfjit symbols --json -o alone frame.d/jitdump-*/stage/jit-*.dump >alone.json
    perfjit symbols --json --core frame.core -o whole >whole.json
    jq -c .functions alone.json >got
    jq -c .functions whole.json >wanted
    same got wanted
    perfjit symbols --json -o given --jitdump 7:"$(echo frame.d/jitdump-*/stage/jit-*.dump)" >given.json
    jq -e '.pid == 7' given.json
    jq -c .functions given.json >got
    same got wanted
}

@test "bt of a core and of a process: from a handler's own stack on to the one that it interrupted" {
    command -v cc >/dev/null || skip "no compiler"
    cat >handler.c <<END
#define _GNU_SOURCE
#include <signal.h>
#include <unistd.h>
static char stack[65536];
static void handler(int s) { for (;;) s++; }
__attribute__((noinline)) static void crash(volatile int *p) { *p = 1; }
int main(void) {
    stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigaltstack(&own, 0);
    sigaction(SIGSEGV, &action, 0);
    crash(0);
    return 0;
}
END
    cc -O0 -g -fasynchronous-unwind-tables -o handler handler.c
    printf '%s\n' handler crash main _start >wanted
    spinning "$PWD/handler"
    run --separate-stderr perfjit bt --json -p $pid
    kill -KILL $pid
    exits 1
    jq -r '.frames[].name' <<<"$output" | grep -xE 'handler|crash|main|_start' >got
    same got wanted
    core_of handler "$PWD/handler"
    run --separate-stderr perfjit bt --json handler.core
    exits 1
    says 'had mapped no jitdump'
    jq -r '.frames[].name' <<<"$output" | grep -xE 'handler|crash|main|_start' >got
    same got wanted
}
