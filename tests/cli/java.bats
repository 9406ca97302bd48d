#!/usr/bin/env bats
# Java by perfjit's own agent: names and times, inlined calls, lines, stacks of JVMs without frame pointers, on and off.
# bats file_tags=live
load helper

agent=$BUILD/libperfjit-java.so

setup_file() {
    require_perf || return 0
    [ -e "$agent" ] || return 0
    cd "$BATS_FILE_TMPDIR" || return
    cat >Work.java <<'END'
import java.util.function.LongUnaryOperator;
public class Work {
    static long inner(long s, int i) { return (s + i * 3L) & 65535; }
    static long outer(int n) {
        long s = 0;
        for (int i = 0; i < n; i++)
            s = inner(s, i);
        return s;
    }
    static long interpreted(LongUnaryOperator f, long x) { return f.applyAsLong(x); }
    public static void main(String[] a) throws Exception {
        long end = System.nanoTime() + Long.parseLong(a[0]) * 1000000, s = 0;
        Thread other = new Thread(() -> { long t = 0; while (System.nanoTime() < end) t += outer(5000); if (t == 1) System.out.println(t); });
        other.start();
        while (System.nanoTime() < end) s += interpreted(x -> x + outer(10000), s);
        other.join();
        System.out.println(s != 1);
    }
}
END
    javac -d classes Work.java
    javac -g -d classes "$here/../producers/runtimes/"{Chains,Reuse,Redefined}.java
    printf 'Premain-Class: Redefined\nCan-Redefine-Classes: true\n' >manifest
    jar cfm redefined.jar manifest -C classes Redefined.class
}

setup() {
    require_perf
    [ -e "$agent" ] || skip "no JDK was there when it was built"
    cd "$BATS_TEST_TMPDIR" || return
    mkdir tmp
    export TMPDIR=$PWD/tmp HOME=$PWD/tmp classes=$BATS_FILE_TMPDIR/classes
}

teardown() {
    local pids
    pids=$(jobs -p)
    kill -9 $pids 2>/dev/null
    wait
    for pid in $pids; do rm -f "/tmp/.java_pid$pid"; done # its own, which it had no time to remove
}

# run_work MS [OPTION...]: as $pid, once it is compiled.
run_work() {
    java "${@:2}" -cp "$classes" Work "$1" >work.out 2>work.err 3>&- &
    pid=$!
    await_use $pid 1500
}

sound() { # NAME: every sample in JIT code has a name; on a busy machine perf loses some of all
    perfjit check "$1.perf.data" >check 2>&1 || [ "$(tail -1 check)" = "  perf lost part of the recording" ] || complain "$(cat check)"
    grep -q 'in JIT code, \[unknown\] *0$' check || complain "$(cat check)"
}

@test "record: every sample named, with tiers, lines and inlined calls" {
    run --separate-stderr perfjit record -o named java -cp "$classes" Work 2500
    exits 0
    says "-agentpath:$agent"
    sound named
    perfjit report --rows 40 named.perf.data >report
    grep -E 'jit inlined.* Work.inner\(long, int\).*Work.java:3|inlined.*long Work.inner\(long, int\) \(Work.java:3' report || complain "$(cat report)"
    grep -E 'tier[34].*Work\.' report || complain "$(cat report)"
    ! grep -E 'Lambda.*0x' report || complain "$(cat report)"
    grep -qE "^in the runtime: .*[0-9] % perfjit's agent$" report || complain "$(tail -3 report)"
}

# code_of DUMP [MAP]: what it has and, as "theirs", the methods that the JVM's map has: a hidden class without its address.
code_of() {
    perfjit dump --json "$1" |
        jq -r 'select(.type == "CODE_LOAD") | "\(.code_addr) \(.code_size) \(.name)"' | sed -E 's/ \[tier[1-4]\]$//' | sort >ours
    while read -r address size name; do
        case $name in *.*\)) echo "$((16#${address#0x})) $((16#${size#0x})) $name" ;; esac
    done <"$2" | sed -E 's|[./]0x[0-9a-f]+(\.[^.]*\()|\1|' | sort >theirs
    [ "$(comm -12 ours theirs | wc -l)" -gt 30 ] || complain "$(wc -l ours theirs)"
}

@test "names are those of the JVM's own perf map, which has no code that the dump has not" {
    JITDUMPDIR=$PWD java -agentpath:"$agent" -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit -cp "$classes" Work 1500 >work.out 2>&1 3>&- &
    pid=$!
    wait $pid
    mv /tmp/perf-$pid.map map
    code_of jitdump-$pid/jit-$pid.dump map
    run "$here/java_heap.py" ours map
    [ "$status" -eq 0 ] || complain "$output"
    # a method that was replaced is still in the dump; nothing that the map has is missing
    [ -z "$(comm -13 ours theirs)" ] || complain "$(comm -13 ours theirs)"
}

# Another agent, "slow.so", that is told of compiled methods and takes its time: the JVM's queue of events grows.
slow_agent() {
    cat >slow.c <<'END'
#include <jvmti.h>
#include <time.h>
static void JNICALL on_load(jvmtiEnv *jvmti, jmethodID id, jint size, const void *addr, jint count, const jvmtiAddrLocationMap *map, const void *info)
{
    nanosleep(&(struct timespec){0, 200000000}, NULL);
}
JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
    jvmtiEnv *jvmti;
    const jvmtiCapabilities wanted = {.can_generate_compiled_method_load_events = 1};
    const jvmtiEventCallbacks callbacks = {.CompiledMethodLoad = on_load};
    return (*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_1_2) || (*jvmti)->AddCapabilities(jvmti, &wanted) ||
           (*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof callbacks) ||
           (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_COMPILED_METHOD_LOAD, NULL);
}
END
    local java
    java=$(readlink -f "$(command -v javac)")
    cc -shared -fPIC -I"${java%/bin/*}/include" -I"${java%/bin/*}/include/linux" -o slow.so slow.c
}

@test "methods whose events wait in the JVM's queue when it ends are in the dump, once" {
    slow_agent
    JITDUMPDIR=$PWD java -agentpath:"$PWD/slow.so" -agentpath:"$agent" -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit \
        -cp "$classes" Work 1500 >work.out 2>&1 3>&- &
    pid=$!
    wait $pid
    mv /tmp/perf-$pid.map map
    code_of jitdump-$pid/jit-$pid.dump map
    [ -z "$(comm -13 ours theirs)" ] || complain "$(comm -13 ours theirs)"
    # those that are in the dump are passed over; now and then a method is put where it was before
    [ "$(uniq -d ours | grep -c ')$')" -lt 5 ] || complain "$(uniq -d ours)"
}

@test "detach: so are methods whose events wait then" {
    slow_agent
    java -agentpath:"$PWD/slow.so" -cp "$classes" Work 600000 >work.out 2>work.err 3>&- &
    pid=$!
    await_use $pid 300
    perfjit attach --dir "$PWD" $pid 2>attached
    await_use $pid 3000
    perfjit detach $pid
    jcmd $pid Compiler.perfmap >jcmd.out
    mv /tmp/perf-$pid.map map
    code_of jitdump-$pid/jit-$pid.dump map
    # the JVM goes on
    grep -q ' Work\.outer(int)$' theirs || complain "$(cat theirs)"
    [ -z "$(comm -13 ours theirs | grep ' Work\.')" ] || complain "$(comm -13 ours theirs | grep ' Work\.')"
}

@test "record -p of a JVM without frame pointers: copied stacks are whole" {
    [ "$(uname -m)" = x86_64 ] || skip "the tables are x86-64's"
    run_work 600000
    run --separate-stderr perfjit record -g dwarf -o whole -p $pid --duration 2
    exits 0
    says "$pid: logs its JIT code to "
    [[ $(grep -v 'earlier' <<<"$stderr") != *"perf map"* ]] || complain "$stderr" # that of an earlier process may be in /tmp
    sound whole
    perf script -i whole.perf.data -F ip,sym | awk -v RS= '/Work\./ { all++; if ($0 !~ /(start_thread|clone3?|_start)[^\n]*$/) cut++ }
        END { print all + 0, cut + 0; exit all < 50 || cut * 50 > all }' || complain "stacks, and those that end early"
}

# The chains of NAME.perf.data are those of the program's own traces, by methods.
chains_are_the_programs() { # NAME
    perf script -i "$1.perf.data" -F ip,sym >script 2>/dev/null
    run "$here/java_chains.py" script truth
    [ "$status" -eq 0 ] || complain "$(head -c 4000 <<<"$output")"
    [[ $output =~ \;\ ([0-9]+)\ with\ interpreted ]] && [ "${BASH_REMATCH[1]}" -gt "$2" ] || complain "$output"
}

@test "interpreted, compiled and inlined methods in one stack: each chain is the program's own, down to main or Thread.run" {
    [ "$(uname -m)" = x86_64 ] || skip "the frames are x86-64's"
    run --separate-stderr perfjit record -g dwarf,32768 -o mixed java -XX:+ShowHiddenFrames -cp "$classes" Chains 3000
    exits 0
    chains_are_the_programs mixed 20
    # Not asked for.
    JITDUMPDIR=$PWD java -agentpath:"$agent=nointerpreted" -Xint -cp "$classes" Chains 100
    perfjit dump "$(echo jitdump-*/jit-*.dump)" >dump
    ! grep -q INTERPRETE dump || complain "$(grep -m3 INTERPRETE dump)"
}

@test "methods that have the memory of others, which were unloaded: each sample has the name of what ran then" {
    [ "$(uname -m)" = x86_64 ] || skip "the frames are x86-64's"
    JITDUMPDIR=$PWD perf record -q -k mono -F 499 -e cpu-clock:u --call-graph dwarf,8192 -o in.data java -Xint -Xmx64m -XX:+UseSerialGC \
        -agentpath:"$agent" -cp "$classes" Reuse 4000 "$classes"
    # A few addresses, many classes.
    perfjit dump --json jitdump-*/jit-*.dump | jq -r 'select((.name // "") | test("Guest..\\.run")) | .function' | sort | uniq -c >addresses
    [ "$(awk '{ n += $1 } END { print n }' addresses)" -gt $((3 * $(wc -l <addresses))) ] || complain "$(cat addresses)"
    perfjit inject -q -i in.data -o out.data
    perf script --ns -i out.data -F time,ip,sym >script 2>/dev/null
    run "$here/java_reuse.py" script truth
    [ "$status" -eq 0 ] || complain "$(head -c 2000 <<<"$output")"
}

# redefined_have_names SCRIPT PART: each frame that main, forever, unchanged and the threads called is of the method that they call, whichever
# of its versions runs.  Up to one in PART may have no name: a version that was replaced while the agent was loaded.  0: none.
redefined_have_names() {
    awk -v RS= -v part="$2" '/Target/ { frames = split($0, frame, "\n")
        for (i = 2; i <= frames; i++)
            if (frame[i] ~ / void (Redefined.(main|lambda.main.[01])|Target.(forever|unchanged))\(.*\) \[interpreted\]/) {
                wanted = frame[i] ~ /lambda.main.0/ ? "Target.forever" : frame[i] ~ /lambda/ ? "Target.unchanged" : frame[i] ~ /main/ ? "Target.spin" : "Target.more"
                right += frame[i - 1] ~ wanted "\\((int|long)\\) \\[interpreted\\]"
                kept += frame[i] ~ /lambda/
                unnamed += frame[i - 1] ~ / Interpreter$/
                if (frame[i - 1] ~ / (long|int|void) Target/ && !index(frame[i - 1], wanted)) { wrong++; print }
            } }
        END { print right + 0, "right", unnamed + 0, "unnamed", wrong + 0, "wrong"; exit right < 40 || kept < 20 || unnamed * part > right || (!part && unnamed) || wrong }' "$1" >found ||
        complain "$(tail -30 found)"
}

@test "a class is redefined as often as it can be: all its methods have names, and the old ones that run on" {
    [ "$(uname -m)" = x86_64 ] || skip "the frames are x86-64's"
    JITDUMPDIR=$PWD perf record -q -k mono -F 499 -e cpu-clock:u --call-graph dwarf,4096 -o in.data java -Xint -XX:+UseSerialGC -agentpath:"$agent" \
        -javaagent:"$BATS_FILE_TMPDIR/redefined.jar" -cp "$classes" Redefined 3000 "$classes" 1
    perfjit inject -q -i in.data -o out.data
    perf script -i out.data -F ip,sym >script 2>/dev/null
    redefined_have_names script 0
}

@test "record -p: so have the old methods of a class that was redefined before the agent came" {
    [ "$(uname -m)" = x86_64 ] || skip "the frames are x86-64's"
    java -Xint -XX:+UseSerialGC -javaagent:"$BATS_FILE_TMPDIR/redefined.jar" -cp "$classes" Redefined 600000 "$classes" 250 >work.out 2>work.err 3>&- &
    pid=$!
    await_use $pid 1500
    run --separate-stderr perfjit record -g dwarf,8192 -o later -p $pid --duration 2
    exits 0
    perf script -i later.perf.data -F ip,sym >script 2>/dev/null
    redefined_have_names script 8
}

@test "record -p: methods of classes that were loaded before the agent have names" {
    [ "$(uname -m)" = x86_64 ] || skip "the frames are x86-64's"
    java -Xint -XX:+UnlockDiagnosticVMOptions -XX:+ShowHiddenFrames -cp "$classes" Chains 600000 >work.out 2>work.err 3>&- &
    pid=$!
    await_use $pid 1500
    run --separate-stderr perfjit record -g dwarf,16384 -o later -p $pid --duration 2
    exits 0
    chains_are_the_programs later 20
}

@test "attach and detach, ten times: all code that is alive, at once; nothing stays on" {
    run_work 600000
    for i in 1 2 3 4 5 6 7 8 9 10; do
        run --separate-stderr perfjit attach $pid
        exits 0
        says "$pid: logs its JIT code to "
        [[ $stderr =~ \ ([0-9]+)\ functions ]] && [ "${BASH_REMATCH[1]}" -gt 300 ] || complain "$stderr"
        dump=$(sed -n "s/.*logs its JIT code to \([^,]*\),.*/\1/p" <<<"$stderr")
        run --separate-stderr perfjit detach $pid
        exits 0
        perfjit check "$dump" >check || complain "$(cat check)"
        rm -r "${dump%/*}"
    done
    kill -0 $pid
    [ "$(grep -c libperfjit-java.so /proc/$pid/maps)" -gt 0 ]
    [ "$(ls -l /proc/$pid/fd | grep -c '\.dump')" = 0 ]
}

@test "a JVM that takes no requests keeps its perf map as the way to names" {
    run_work 600000 -XX:+DisableAttachMechanism
    run --separate-stderr perfjit record -p $pid --duration 0.3
    says "-p $pid: no agent in it, so no inlined calls: it takes no requests"
    kill -0 $pid
}

@test "attach to a JVM that is stopped: it says so at once, and the program prints nothing later" {
    run_work 600000
    kill -STOP $pid
    run --separate-stderr perfjit attach $pid
    exits 1
    says "perfjit: $pid: it can't load the agent for Java: it is stopped (kill -CONT $pid lets it go on)"
    [ ! -e /tmp/.attach_pid$pid ]
    kill -CONT $pid
    await_use $pid 200
    [ ! -s work.out ] || complain "$(cat work.out)"
}

@test "several attach at once to a JVM that nobody has asked before" {
    run_work 600000
    for i in 1 2 3 4; do perfjit attach --dir "$PWD" $pid 2>attached.$i 3>&- & done
    wait -n && wait -n && wait -n && wait -n || complain "$(cat attached.*)"
    [ "$(grep -c 'logs its JIT code to' attached.1 attached.2 attached.3 attached.4 | grep -c ':1$')" = 1 ] || complain "$(cat attached.*)"
    [ ! -s work.out ] || complain "$(cat work.out)"
    perfjit detach $pid
}

@test "root attaches to a JVM in a container with users of its own" {
    [ "$(id -u)" = 0 ] || skip "only root can make such a container"
    mkdir agents && cp "$agent" agents/
    chmod a+rx . agents "$classes" "$BATS_TEST_TMPDIR" "$BATS_FILE_TMPDIR" "$BATS_RUN_TMPDIR"
    setpriv --reuid 100000 --regid 100000 --clear-groups unshare -U sh -c 'while [ "$(id -u)" != 0 ]; do sleep 0.05; done; exec "$@"' sh \
        java -cp "$classes" Work 600000 >work.out 2>work.err 3>&- &
    pid=$!
    until [ "$(readlink /proc/$pid/ns/user)" != "$(readlink /proc/self/ns/user)" ]; do sleep 0.05; done
    echo 0 100000 65536 >/proc/$pid/gid_map || skip "no such container can be made"
    echo 0 100000 65536 >/proc/$pid/uid_map
    await_use $pid 1500
    PERFJIT_AGENTS=$PWD/agents run --separate-stderr perfjit attach $pid
    exits 0
    says "$pid: logs its JIT code to "
    dump=$(sed -n "s/.*logs its JIT code to \([^,]*\),.*/\1/p" <<<"$stderr")
    perfjit detach $pid
    perfjit check "$dump" >check || complain "$(cat check)"
    rm -r "${dump%/*}"
    [ ! -s work.out ] || complain "$(cat work.out)"
}

@test "record without an agent: the perf map, and a line says so; another folder for agents" {
    PERFJIT_AGENTS=$PWD record_it_with_map
    mkdir agents && cp "$agent" agents/
    chmod a+rx . "$BATS_TEST_TMPDIR" "$BATS_RUN_TMPDIR" # as root, who may start others
    PERFJIT_AGENTS=$PWD/agents run --separate-stderr perfjit record -o other java -cp "$classes" Work 300
    exits 0
    says "-agentpath:$PWD/agents/libperfjit-java.so"
}

record_it_with_map() {
    run --separate-stderr perfjit record -o mapped java -cp "$classes" Work 1500
    exits 0
    says "perfjit: java: libperfjit-java.so is not installed where it can load it: names are those of the perf map"
    [[ $stderr != *-agentpath* ]] || complain "$stderr"
    perf script -i mapped.perf.data -F ip,sym -G | grep -q 'Work\.'
}

@test "options, and an agent that is there twice" {
    JITDUMPDIR=$PWD java -agentpath:"$agent=short,nolines,wrong" -agentpath:"$agent" -cp "$classes" Work 800 >work.out 2>work.err
    grep -q "perfjit: wrong is no option of libperfjit-java.so" work.err || complain "$(cat work.err)"
    [ "$(cat work.out)" = true ]
    perfjit dump --json jitdump-*/jit-*.dump | jq -r '.name // empty' | grep -qE '^Work.outer( \[tier[1-4]\])?$'
}

@test "many threads, everything compiled, classes that come and go: the JVM ends well, and the dump is sound" {
    cat >Classes.java <<'END'
import java.net.*;
public class Classes {
    public static void main(String[] a) throws Exception {
        URL here = Classes.class.getProtectionDomain().getCodeSource().getLocation();
        long end = System.nanoTime() + 4000000000L;
        Thread[] threads = new Thread[6];
        for (int t = 0; t < threads.length; t++)
            (threads[t] = new Thread(() -> { try { while (System.nanoTime() < end) {
                URLClassLoader loader = new URLClassLoader(new URL[] {here}, null);
                loader.loadClass("Work").getDeclaredMethod("outer", int.class).getModifiers();
                java.lang.reflect.Method method = loader.loadClass("Work").getDeclaredMethod("outer", int.class);
                method.setAccessible(true);
                for (int i = 0; i < 50; i++) method.invoke(null, 100);
                loader.close(); System.gc(); } } catch (Exception e) { e.printStackTrace(); System.exit(3); } })).start();
        for (Thread thread : threads) thread.join();
        System.out.println("done");
    }
}
END
    javac -cp "$classes" -d "$classes" Classes.java
    for gc in Serial Parallel G1; do
        mkdir $gc
        JITDUMPDIR=$PWD/$gc java -XX:+Use${gc}GC -Xcomp -XX:TieredStopAtLevel=1 -agentpath:"$agent" -cp "$classes" Classes >out 2>&1 || complain "$gc: $? $(cat out)"
        grep -qx "done" out || complain "$(cat out)"
        perfjit check $gc/jitdump-*/jit-*.dump >check || complain "$(cat check)"
    done
}
