#!/usr/bin/env bats
# perfjit bt: stacks of cores and of live processes.
#
# The judge is the one stack that chain.tj has, if nothing is inlined, when it is in spin: known from the script.
load helper

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
    # What is logged last is lost in V8's buffer of 2 MiB: so much is logged after all that is on the stack.
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

# spinning COMMAND...: sets pid, of the command, which has used so much of a processor by then.
spinning() {
    (ulimit -c unlimited && PERFJIT=dump JITDUMPDIR=$PWD exec "$@") >/dev/null 2>&1 3>&- &
    pid=$!
    [ "$1" != node ] || await [ -e ready ]
    await_use $pid 50
}

# core_of NAME COMMAND...: NAME.core and NAME.pid, of the command while it spins: by the kernel, or, where that hands cores to a
# program, by gdb.
core_of() {
    local name=$1
    mkdir -p "$name.d"
    cp ./*.tj ./*.js "$name.d"
    cd "$name.d" || return
    spinning "${@:2}"
    echo $pid >"../$name.pid"
    case $(cat /proc/sys/kernel/core_pattern) in
    core) kill -ABRT $pid ;;
    *) gcore -o core $pid >/dev/null 2>&1 && kill $pid ;;
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

# whole JSON: every thread's stack ends where the thread began.
whole() {
    jq -r 'select(.whole | not) | "thread \(.tid) ends: \(.end)"' "$1" >"$1.not"
    [ ! -s "$1.not" ] || complain "$(cat "$1.not")"
    jq -r '.frames[-1].name' "$1" | sort -u >"$1.outermost"
    [ -z "$(grep -vxE '_start|__clone3?' "$1.outermost")" ] || complain "it ends at $(cat "$1.outermost")"
}

# bats test_tags=test
@test "bt of a core: the chain that the script has, with lines, to _start" {
    for name in frame frameless; do
        perfjit bt --json $name.core >$name.json
        whole $name.json
        jit_frames $name.json >$name.got
        same $name.got chain
    done
    perfjit bt frame.core >text
    grep -E '^#7 .* tj::c \[tier1\]\+0x[0-9a-f]+ at .*/chain.tj:7 \[JIT\]$' text
    grep -E '^#[0-9]+ .* main\+0x[0-9a-f]+ at examples/tinyjit/main.c:[0-9]+ \[tinyjit\]$' text
    grep 'the stack is whole' text
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
    await_use $pid 20
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
    head -1 node.json | jq -r '.frames[] | select(.name | contains("^inner /")) | "\(.file):\(.line)"' >place
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
