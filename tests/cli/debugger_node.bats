#!/usr/bin/env bats
# perfjit gdb on cores that node leaves at an uncaught exception, beside gdb alone: ten ways to come there.
# bats file_tags=all
load helper

setup() {
    cd "$BATS_TEST_TMPDIR"
    ulimit -c unlimited
    [[ $(cat /proc/sys/kernel/core_pattern) != *[/\|]* ]] || skip "the kernel hands cores to a program here"
}

# V8's last records, up to 2 MiB, are lost in its buffer: that much is logged after all that is on the stack.
script() {
    cat >"$1.js"
    # The loop is in a function of its own: V8 may optimise it while it runs, and then throw that frame away.
    echo 'function log() { for (let i = 0; i < 2500; i++) new Function("return " + i)(); }' >>"$1.js"
    echo 'function fail() { log(); throw new Error("x"); }' >>"$1.js"
}

# stacks FILE: for each thread, where it ends and how many frames are named by the dump, and by nothing.
stacks() {
    awk '/^Thread / { if (threads++) print last, js + 0, unknown + 0; last = ""; js = unknown = 0 }
        /^#/ { last = $0; sub(/ \(.*/, "", last); sub(/.* /, "", last) }
        /^#.* in (JS|Eval|Script):/ { js++ }
        /^#.* in \?\? \(/ { unknown++ }
        END { print last, js + 0, unknown + 0 }' "$1"
}

# looks_right NAME UNKNOWN FUNCTION...: every stack is whole, each function is on one, and no more frames have no name.
looks_right() {
    local name=$1 unknown=$2 function
    node --perf-prof --interpreted-frames-native-stack --abort-on-uncaught-exception "$name.js" >/dev/null 2>&1 || true
    mv core* "$name.snapshot"
    perfjit gdb "$name.snapshot" -- --batch -ex 'thread apply all bt' >"$name.gdb" 2>/dev/null
    gdb -q --batch -ex 'thread apply all bt' -c "$name.snapshot" "$(command -v node)" >"$name.alone" 2>/dev/null
    rm "$name.snapshot"
    stacks "$name.gdb" >"$name.stacks"
    [ "$(wc -l <"$name.stacks")" -ge 5 ]
    [ -z "$(grep -vE '^(_start|__clone3?|clone3?) ' "$name.stacks")" ] || complain "$name: $(cat "$name.stacks")"
    [ "$(awk '{ n += $3 } END { print n + 0 }' "$name.stacks")" -le "$unknown" ] || complain "$(grep -F '??' "$name.gdb")"
    for function in "${@:3}"; do
        grep -qE "in JS:.$function /.*/$name.js:" "$name.gdb" || complain "$function: $(grep -E '^#' "$name.gdb")"
    done
    echo "# $name: named $(awk '{ n += $2 } END { print n }' "$name.stacks") of JavaScript, gdb alone" \
        "$(stacks "$name.alone" | awk '{ named += $2; unknown += $3 } END { print named ", with", unknown, "unknown" }')" >&3
}

@test "calls, optimised calls, builtins that call back, constructors: every stack to its end, every function named" {
    # Eight callees at one place: none is inlined, so that the first call of fail throws no optimised frame away.  A frame that is
    # thrown away (deoptimised) goes on in a builtin of V8's, and nothing in it says which function it was.
    script call <<<'const steps = [0, 1, 2, 3, 4, 5, 6].map((n) => new Function("return " + n)); steps.push(function last(n) { if (n > 60000) fail(); }); function leaf(n) { return steps[n & 7](n); } function outer() { for (let i = 0; ; i++) leaf(i); } outer();'
    script deep <<<'function down(n) { if (n == 0) fail(); return 1 + down(n - 1); } down(60);'
    script map <<<'[1, 2, 3].map(function cb(x) { return [x].forEach(function each(y) { fail(); }); });'
    script sort <<<'[3, 1, 2].sort(function compare(a, b) { fail(); });'
    script json <<<'JSON.stringify({ toJSON() { fail(); } });'
    script replace <<<'"abc".replace(/b/, function replacer() { fail(); });'
    script class <<<'class Base { constructor() { this.start(); } } class Own extends Base { start() { fail(); } } Reflect.construct(Own, []);'
    looks_right call 1 outer fail # and the builtin that last goes on in: gdb looks in front of it
    [[ $(grep -E 'in JS:.outer .* at /' call.gdb) == *'call.js:1' ]]
    looks_right deep 0 down fail
    [ "$(grep -cE '^#.* in JS:.down /' deep.gdb)" = 61 ]
    looks_right map 0 cb each fail
    looks_right sort 0 compare fail
    looks_right json 0 toJSON fail
    looks_right replace 0 replacer fail
    looks_right class 0 start Base Own fail
}

@test "timers, async functions, workers: every stack to its end, every function named" {
    script timer <<<'setTimeout(function late() { fail(); }, 1);'
    script async <<<'async function one() { await null; process.nextTick(function tick() { fail(); }); } one();'
    script worker <<'END'
const threads = require("worker_threads");
function work() { threads.parentPort.postMessage(0); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); }
if (threads.isMainThread) new threads.Worker(__filename).on("message", () => setTimeout(function late() { fail(); }, 1));
else work();
END
    looks_right timer 0 late fail
    looks_right async 0 tick fail
    looks_right worker 0 work late fail
}
