#!/usr/bin/env bats
# perfjit record: what runtimes are told that refuse what they do not know.  If a runtime is not installed, or not in that
# version, a program of its name that does the same with its switches stands for it, first in PATH.
# bats file_tags=live
load helper

setup() {
    require_perf
    mkdir "$BATS_TEST_TMPDIR/run" "$BATS_TEST_TMPDIR/tmp" "$BATS_TEST_TMPDIR/bin"
    cd "$BATS_TEST_TMPDIR/run" || return
    export TMPDIR=$BATS_TEST_TMPDIR/tmp HOME=$BATS_TEST_TMPDIR/tmp PATH=$BATS_TEST_TMPDIR/bin:$PATH
}

# stand_in NAME LINES: a program of that name that does LINES.
stand_in() {
    printf '#!/bin/sh\n%s\n' "$2" >"$BATS_TEST_TMPDIR/bin/$1"
    chmod +x "$BATS_TEST_TMPDIR/bin/$1"
}

record_it() { # STATUS WORD...
    local wanted=$1
    shift
    run --separate-stderr perfjit record "$@"
    exits "$wanted"
    [ -z "$(ls -A "$TMPDIR")" ] || complain "left in TMPDIR: $(find "$TMPDIR")"
}

# shellcheck disable=SC2016 # for the program that stands in
@test "mono: a dump where it knows that option, else a perf map; below a shell what each version takes" {
    local refuses='for word in $MONO_ENV_OPTIONS "$@"; do
            case $word in --jitdump) echo "Unknown command line option: $word" >&2; exit 1 ;; esac
        done
        echo "ran with $MONO_ENV_OPTIONS"'
    stand_in mono "$refuses"
    MONO_ENV_OPTIONS=--server record_it 0 --exit-status mono app.exe
    says "perfjit: mono: MONO_ENV_OPTIONS=--jitmap"
    [ "$output" = "ran with --server --jitmap" ] || complain "$output"
    record_it 0 --exit-status sh -c 'mono app.exe; :'
    [ "$output" = "ran with --jitmap" ] || complain "$output"
    stand_in mono 'echo "ran with $MONO_ENV_OPTIONS"'
    record_it 0 --exit-status mono app.exe
    says "perfjit: mono: MONO_ENV_OPTIONS='--jitdump --jitmap'"
    [ "$output" = "ran with --jitdump --jitmap" ] || complain "$output"
}

@test "a dump that is not mapped, as Mono 6.14's: it is the process's by its name and header" {
    cat >"$BATS_TEST_TMPDIR/bin/mono" <<'END'
#!/usr/bin/env python3
import ctypes, mmap, os, struct, sys, time
if "--version" in sys.argv: sys.exit(0)
code = b"\xb9" + struct.pack("<I", 200000000) + b"\xff\xc9\x75\xfc\xc3"  # mov ecx, n; 1: dec ecx; jnz 1b; ret
memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
memory.write(code)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
pid = os.getpid()
name = b"hot\0"
with open("/tmp/jit-%d.dump" % pid, "wb") as dump:
    dump.write(struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, pid, time.monotonic_ns(), 0))
    dump.write(struct.pack("<IIQIIQQQQ", 0, 56 + len(name) + len(code), time.monotonic_ns(), pid, pid, address, address, len(code), 1) + name + code)
for _ in range(8): ctypes.CFUNCTYPE(None)(address)()
END
    chmod +x "$BATS_TEST_TMPDIR/bin/mono"
    [ "$(uname -m)" = x86_64 ] || skip "its code is x86-64's"
    record_it 0 mono app.exe
    perf script -i perfjit.perf.data -F ip,sym -G | awk '$2 == "hot" { found++ } END { exit found * 10 < NR * 3 }'
    [ -z "$(find /tmp -maxdepth 1 -name 'jit-*.dump' -newer "$BATS_TEST_TMPDIR/bin/mono" 2>/dev/null)" ]
}

@test "chroot: PHP, Java, Erlang and node log below that root, and nothing is left there" {
    [ "$(id -u)" = 0 ] || skip "only root can mount"
    mkdir root code
    cat >code/Work.java <<'END'
public class Work {
    static long hot(int n) { long s = 0; for (int i = 0; i < n; i++) s = (s + i * 3L) & 65535; return s; }
    public static void main(String[] a) { for (int i = 0; i < 6000; i++) hot(100000); }
}
END
    javac -d code code/Work.java
    echo '<?php function hot($n) { $s = 0; for ($i = 0; $i < $n; $i++) $s = ($s + $i * 3) & 65535; return $s; } for ($i = 0; $i < 4000; $i++) hot(100000);' >code/work.php
    # shellcheck disable=SC2016 # for the inner shell
    unshare -m bash -c '
        mount --bind / root && mount -t tmpfs none root/tmp && mount -t proc none root/proc && mount --bind /dev root/dev && cp -r code root/tmp/ || exit 9
        for command in "php8.2 /tmp/code/work.php" "java -cp /tmp/code Work" "erl -noshell -eval lists:foldl(fun(X,A)->(A+X*3)band(65535)end,0,lists:seq(1,500000)),halt()."; do
            "$BUILD/perfjit" record -o "${command%% *}" chroot root $command || exit 8
            ls root/tmp root | grep -E "^(perfjit-|jit-|perf-|isolate-)" && exit 7
        done
        exit 0' 3>&- || complain "status $?"
    for name in hot:php8.2 hot:java erl_eval:erl; do
        perf script -i "${name#*:}.perf.data" -F ip,sym -G | awk -v name="${name%:*}" 'index($0, name) { found++ } END { exit found * 10 < NR }' || complain "$name"
    done
}

# native_names RECORDING: report's and perf's names are those of the program below the root.
native_names() {
    perfjit report -q "$1" >rows
    awk '/ inside / { found = $1 + 0 } / here_only / { exit 1 } END { exit found < 50 }' rows || complain "$(cat rows)"
    perf script -i "$1" -F ip,sym -G 2>/dev/null | awk '$2 == "inside" { found++ } $2 == "here_only" { wrong++ } END { exit wrong || found * 2 < NR }' ||
        complain "perf: $(perf script -i "$1" -F ip,sym -G)"
}

@test "chroot: native functions have the names of the files below that root, in perf too, not of those of the same paths here" {
    [ "$(id -u)" = 0 ] || skip "only root can mount"
    mkdir disk same
    printf '#include <time.h>\nstatic void __attribute__((noinline)) inside(void) { for (volatile int i = 0; i < 100000; i++) continue; }\nint main(void) { while (clock() < CLOCKS_PER_SEC / 2) inside(); }\n' >inside.c
    printf 'void here_only(void) { for (volatile int i = 0; i < 100000; i++) for (volatile int k = 0; k < 9; k++) continue; }\nint main(void) { here_only(); }\n' >here.c
    gcc -O1 -fno-omit-frame-pointer -static -o inside inside.c
    gcc -O1 -fno-omit-frame-pointer -static -o prog here.c
    mount -t tmpfs none disk
    for root in same disk; do
        mkdir -p "$root$PWD" "$root/tmp"
        cp inside "$root$PWD/prog"
        perfjit record -q -o "$root" chroot "$root" "$PWD/prog" && native_names "$root.perf.data" || fault=1
        perfjit record -q -g dwarf -o "$root" chroot "$root" "$PWD/prog" && native_names "$root.perf.data" || fault=1
        chroot "$root" "$PWD/prog" 3>&- &
        await_use $! 20
        perfjit record -q -o "$root.p" -p $! && native_names "$root.p.perf.data" || fault=1
    done
    umount disk
    [ -z "${fault-}" ]
}

@test "lli: an option that the command's own words have is not added, for it may be there once" {
    printf 'define i32 @main() {\n  ret i32 0\n}\n' >one.ll
    record_it 0 --exit-status lli-14 -jit-kind=mcjit one.ll
    says "perfjit: lli: the command's own words say what it logs"
    record_it 0 --exit-status lli-14 --jit-kind=orc one.ll
    record_it 0 --exit-status lli-14 one.ll
    says "perfjit: lli: -jit-kind=mcjit"
}

@test "where the switches change what runs, a sentence says so" {
    printf 'define i32 @main() {\n  ret i32 0\n}\n' >one.ll
    stand_in php 'echo "$PHP_INI_SCAN_DIR"'
    stand_in ruby 'echo "$RUBYOPT"'
    record_it 0 php x.php
    says "perfjit: php: PHP's JIT is off by default, and this run turns it on. --runtime none records the program as it runs without perfjit"
    [[ $output == *php-last ]] || complain "$output"
    record_it 0 ruby x.rb
    says "perfjit: ruby: YJIT is off by default, and this run turns it on."
    record_it 0 lli-14 one.ll
    says "perfjit: lli: lli uses ORC by default, and this run uses MCJIT."
    record_it 0 lli-14 -jit-kind=mcjit one.ll
    [[ $stderr != *"by default"* ]] || complain "$stderr"
    record_it 0 --runtime none php x.php
    [[ $stderr != *"by default"* && -z $output ]] || complain "$stderr"
    record_it 0 -q php x.php
    [ -z "$stderr" ] || complain "$stderr"
    record_it 0 -v sh -c :
    says "perfjit: php: PHP's JIT is off by default"
}

# told NAME PRINTED [WORD...]: the program NAME is started with the words, and prints that; PRINTED is a pattern.
told() {
    record_it 0 --exit-status "$1" "${@:3}"
    # shellcheck disable=SC2053 # a pattern
    [[ $output == $2 ]] || complain "$1: $output"
}

# shellcheck disable=SC2016 # for the program that stands in
@test "what each runtime is told, by its program's name" {
    for name in jsc raku moar qml6 qmlscene benchdnn dotnet qemu-system-x86_64 ruby; do
        stand_in $name 'echo "$JSC_useJITDump $JSC_jitDumpDirectory|$MVM_JIT_PERF_MAP|$QV4_PROFILE_WRITE_PERF_MAP|$ONEDNN_JIT_PROFILE|$DOTNET_PerfMapStubGranularity|$RUBYOPT|$*"'
    done
    told jsc "1 $TMPDIR/perfjit-*/dumps|||||?x.js" x.js
    told raku ' |1|||||x.raku' x.raku
    told moar ' |1|||||x.moarvm' x.moarvm
    told qml6 ' ||1||||x.qml' x.qml
    told qmlscene ' ||1||||x.qml' x.qml
    told benchdnn ' |||6|||--conv' --conv
    told dotnet ' ||||2||x.dll' x.dll
    told qemu-system-x86_64 ' ||||||-perfmap -jitdump -nographic' -nographic
    told ruby ' |||||--yjit --yjit-perf|x.rb' x.rb
    told ruby ' |||||--zjit-perf|--zjit x.rb' --zjit x.rb
    RUBYOPT='-W --zjit' told ruby ' |||||-W --zjit --zjit-perf|x.rb' x.rb
    RUBYOPT='-W--zjit' told ruby ' |||||-W--zjit --yjit --yjit-perf|x.rb' x.rb
    stand_in qemu-system-x86_64 'case $* in *-jitdump*) exit 1 ;; esac; echo "ran $*"'
    told qemu-system-x86_64 'ran -nographic' -nographic
    says "perfjit: qemu-system: this one can't log its JIT code: that takes QEMU 8.0 or later, without KVM"
    stand_in java 'echo "$JAVA_TOOL_OPTIONS"'
    told java '*-XX:+DumpPerfMapAtExit -XX:+PerfTool*' X
    stand_in luajit 'echo "ran $*"'
    told luajit 'ran x.lua' x.lua
    says "perfjit: luajit: this one can't log its JIT code: that takes the adapter in perfjit's examples/adapters/luajit"
    told luajit 'ran -l perfjit x.lua' -l perfjit x.lua
    [[ $stderr != *adapter* ]] || complain "$stderr"
    # Below a shell: what older versions print, or end at, is left out.
    stand_in jsc 'echo "$JSC_useJITDump|$MVM_JIT_PERF_MAP|$QV4_PROFILE_WRITE_PERF_MAP|$ONEDNN_JIT_PROFILE|$RUBYOPT"'
    record_it 0 sh -c 'jsc; :'
    [ "$output" = "|1|1|6|" ] || complain "$output"
}

# shellcheck disable=SC2016 # for the inner shell
@test "a program that embeds Python, as perf and gdb do, may start others: these have their switches" {
    echo 'int Py_Main(void) { return 0; }' >python.c
    gcc -shared -fPIC -Wl,-soname,libpython3.0.so -o libpython3.0.so python.c
    printf '#include <unistd.h>\nint main(int n, char **words) { return execvp(words[n > 0], words + 1); }\n' >embeds.c
    gcc -o embeds embeds.c -Wl,--no-as-needed -Wl,-rpath,"$PWD" ./libpython3.0.so
    record_it 0 ./embeds sh -c 'echo "$NODE_OPTIONS|$PYTHONPERFSUPPORT|$JAVA_TOOL_OPTIONS"'
    [[ $output == *"--perf-prof"*"|1|"*"-XX:+DumpPerfMapAtExit"* ]] || complain "$output"
    says "perfjit: python: PYTHONPERFSUPPORT=1"
    [[ $stderr != *NODE_OPTIONS* ]] || complain "$stderr"
    record_it 0 -v -- env A=1 ./embeds sh -c 'echo "$NODE_OPTIONS"'
    [[ $output == *"--perf-prof"* ]] || complain "$output"
    says "perfjit: ./embeds: embeds python, and may start other runtimes: the switches of node, "
    record_it 0 --runtime python ./embeds sh -c 'echo "$NODE_OPTIONS|$PYTHONPERFSUPPORT"'
    [ "$output" = "|1" ] || complain "$output"
}

@test "functions without frame pointers: their callers take copied stacks, which is said" {
    local demo=$BATS_TEST_DIRNAME/../../examples/tinyjit/demo.tj
    record_it 0 -g fp "$BUILD/tinyjit" --no-frame-pointer "$demo"
    says " functions with unwind tables keep no frame pointer: their callers are seen only in copied stacks: -g dwarf"
    for words in "-g dwarf --runtime none tinyjit --no-frame-pointer" "-g none tinyjit --no-frame-pointer" "-g fp tinyjit" "-g fp node"; do
        # shellcheck disable=SC2086 # words
        PATH=$BUILD:$PATH record_it 0 $words "$demo"
        [[ $stderr != *"no frame pointer"* ]] || complain "$words: $stderr"
    done
}

# make_python NAME: the one that is here under another name, with its library.
make_python() {
    cp "$(python3 -c 'import os, sys; print(os.path.realpath(sys.executable))')" "$BATS_TEST_TMPDIR/bin/$1"
    PYTHONHOME=$(python3 -c 'import sys; print(sys.prefix)')
    export PYTHONHOME
}

@test "Python below a shell, or running already: stacks are copied, and where they are not it is said" {
    make_python python3.13
    busy='import time
while time.process_time() < 0.3: pass'
    record_it 0 -- sh -c "python3.13 -c '$busy'; :"
    says "its words name Python: stacks are copied (not with -g fp)" "stacks unwound"
    record_it 0 -- setarch -R nice python3.13 -c "$busy"
    says "perfjit: python: PYTHONPERFSUPPORT=1" "stacks unwound"
    [[ $stderr != *"python ran"* ]]
    printf 'python3.13 -c "%s"\n' "$busy" >run.sh
    record_it 0 sh run.sh
    says "perfjit: python ran: its functions are seen only in copied stacks: -g dwarf"
    record_it 0 -g dwarf sh run.sh
    [[ $stderr != *"python ran"* ]]
    record_it 0 sh -c :
    [[ $stderr != *"python ran"* ]]
    python3.13 -c 'while True: pass' &
    pid=$!
    await_use $pid 100
    record_it 0 -p $pid --duration 0.5
    kill $pid
    says "perfjit: -p $pid: is python: stacks are copied" "stacks unwound"
}

# as_user USER WORD...: perfjit record as root of a command by that user, where it may not write.
as_user() {
    run --separate-stderr perfjit record -o "$BATS_TEST_TMPDIR/free/my" setpriv --reuid "$1" --regid "$1" --clear-groups "${@:2}"
}

# shellcheck disable=SC2016 # for the program that stands in
@test "node where its user may not write: its log is never in the program's output" {
    [ "$(id -u)" = 0 ] || skip "only root can be another user"
    mkdir -m 1777 "$BATS_TEST_TMPDIR/free"
    chmod a+rx . .. "$BATS_RUN_TMPDIR" "$TMPDIR"
    stand_in node 'echo "ran with $NODE_OPTIONS, $*"'
    as_user 12345 node work.js
    exits 0
    says "perfjit: node: --perf-prof --interpreted-frames-native-stack --perf-prof-path=$TMPDIR/perfjit-"
    [[ $output == "ran with , --log-code --log-source-code --logfile=$TMPDIR/perfjit-"*"/dumps/v8-%p.log --require=$TMPDIR/perfjit-"*"/settings/node/reach.js --perf-prof-path="*" work.js" ]] || complain "$output"
    stand_in node 'case $* in *--perf-prof-path=*) exit 9 ;; esac; echo "ran with $NODE_OPTIONS"'
    as_user 12345 node work.js
    exits 1
    says "node: user 12345 can't write in the directory where it starts (Permission denied)" "Nothing was run" "cd to a directory where it can write"
    [ -z "$output" ] || complain "$output"
    run --separate-stderr perfjit record -q setpriv --reuid 12345 --clear-groups sh -c 'node work.js; echo "$PHP_INI_SCAN_DIR"'
    exits 0
    says "perfjit: node: no switches, so its functions get no names: user 12345 can't write"
    [[ $output == "ran with "$'\n'*php-first* ]] || complain "$output"
    rm perfjit.perf.data
    as_user 12345 env -C "$BATS_TEST_TMPDIR/free" node work.js
    exits 0
    [[ $output == "ran with --perf-prof "* ]] || complain "$output"
    run --separate-stderr perfjit record --runtime none -o "$BATS_TEST_TMPDIR/free/my" setpriv --reuid 12345 --clear-groups node work.js
    exits 0
    [ "$output" = "ran with " ] || complain "$output"
}

@test "node 20 and later, by another user and where that may not write" {
    [ "$(id -u)" = 0 ] || skip "only root can be another user"
    mkdir -m 1777 "$BATS_TEST_TMPDIR/free"
    chmod a+rx . .. "$BATS_RUN_TMPDIR" "$TMPDIR"
    for node in node "$BUILD/runtimes/node_modules/.bin/node"; do
        command -v "$node" || continue
        as_user 65534 "$node" -e 'console.log("one"); for (let i = 0, s = 0; i < 1e8; i++) s += i % 7; console.log("two")'
        [ "$status" = 1 ] || exits 0
        [ -z "$output" ] || [ "$output" = one$'\n'two ] || complain "$output"
    done
}

@test "earlier results become NAME.perf.data.old, and what they name is found there" {
    local first
    record_it 0 "$BUILD/tinyjit" "$BATS_TEST_DIRNAME/../../examples/tinyjit/demo.tj"
    first=$(perf script -i perfjit.perf.data -F ip,sym -G | sort | md5sum)
    for again in 1 2 3; do
        record_it 0 node -e "(function hot() { for (let i = 0, s = 0; i < 1e7 * $again; i++) s += i % 7; })()"
        [ "$(perf script -i perfjit.perf.data.old -F ip,sym -G | sort | md5sum)" = "$first" ]
        first=$(perf script -i perfjit.perf.data -F ip,sym -G | sort | md5sum)
        # Equal code has equal files, which need no link.
        [ "$(find . -type l | wc -l)" -le 1 ] && [ "$(find . -name 'jit-*.so' | wc -l)" = 2 ] || complain "$(find .)"
    done
    rm -r perfjit.perf.data.old && mkdir perfjit.perf.data.old
    run --separate-stderr perfjit record true
    exits 1
    says "perfjit.perf.data.old: can't keep the earlier result there: Is a directory"
}

# jvm_stand_in ANSWER: a program that maps a libjvm.so and answers requests as a JVM does; its perf map is empty.
jvm_stand_in() {
    cat >"$BATS_TEST_TMPDIR/jvm.py" <<'END'
import mmap, os, signal, socket, sys
pid = os.getpid()
library = open(os.environ["BATS_TEST_TMPDIR"] + "/libjvm.so", "w+b")
library.truncate(mmap.PAGESIZE)
code = mmap.mmap(library.fileno(), mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_EXEC)
server = socket.socket(socket.AF_UNIX)
def listen(number, frame):
    if not os.path.exists("/tmp/.attach_pid%d" % pid): return print("threads", flush=True)
    server.bind("/tmp/.java_pid%d.tmp" % pid) # as HotSpot: nobody sees it before it listens
    server.listen()
    os.rename("/tmp/.java_pid%d.tmp" % pid, "/tmp/.java_pid%d" % pid)
if sys.argv[1] != "deaf": signal.signal(signal.SIGQUIT, listen)
os.set_blocking(server.fileno(), False)
print("ready", flush=True)
while True:
    try: client = server.accept()[0]
    except OSError: continue
    client.setblocking(True)
    request = client.recv(300)
    print(request, flush=True)
    if b"perfmap" in request: open("/tmp/perf-%d.map" % pid, "w").close()
    client.send(sys.argv[1].encode())
    client.close()
END
    cp "$(readlink -f /usr/bin/python3)" "$BATS_TEST_TMPDIR/bin/launcher" # Debian's needs no libpython
    rm -f "$BATS_TEST_TMPDIR/said"
    launcher "$BATS_TEST_TMPDIR/jvm.py" "$1" "${@:2}" >"$BATS_TEST_TMPDIR/said" 3>&- &
    pid=$!
    await grep -q ready "$BATS_TEST_TMPDIR/said"
}

end_jvm() {
    kill $pid
    wait $pid || : # the launcher is copied again
    rm -f /tmp/.java_pid$pid
    [ ! -e /tmp/.attach_pid$pid ]
}

@test "-p of a JVM: it writes its perf map on request, and nothing stays" {
    jvm_stand_in $'0\n'
    record_it 0 -p $pid --duration 0.3
    end_jvm
    says "perfjit: -p $pid: java writes its perf map on request, now and at the end"
    [ "$(grep -c "b'1.x00jcmd.x00Compiler.perfmap.x00.x00.x00'" "$BATS_TEST_TMPDIR/said")" = 2 ] || complain "$(cat "$BATS_TEST_TMPDIR/said")"
    [ ! -e /tmp/perf-$pid.map ]
    jvm_stand_in $'1\nUnknown diagnostic command\nmore'
    : >/tmp/perf-$pid.map
    run --separate-stderr perfjit record -p $pid --duration 0.3
    end_jvm
    says "-p $pid: java can't write its perf map: it says: Unknown diagnostic command (JDK 17 or later"
    rm /tmp/perf-$pid.map # it was there before
    for words in deaf "0 -XX:+DisableAttachMechanism"; do
        # shellcheck disable=SC2086 # words
        jvm_stand_in $words
        run --separate-stderr perfjit record -p $pid --duration 0.3
        kill -0 $pid
        end_jvm
        says "-p $pid: java can't write its perf map: it takes no requests"
        ! grep threads "$BATS_TEST_TMPDIR/said" || complain "$(cat "$BATS_TEST_TMPDIR/said")"
    done
}

@test "-p of a JVM of another user, in a container: its functions have names" {
    [ "$(id -u)" = 0 ] || skip "only root can make namespaces"
    chmod a+rx . "$BATS_TEST_TMPDIR" "$BATS_RUN_TMPDIR"
    cat >Work.java <<'END'
public class Work {
    static long hot(int n) { long s = 0; for (int i = 0; i < n; i++) s = (s + i * 3L) & 65535; return s; }
    public static void main(String[] a) { for (;;) hot(100000); }
}
END
    mkdir -p "/var/tmp/$$" && javac -d "/var/tmp/$$" Work.java && chmod a+rx "/var/tmp/$$"
    # shellcheck disable=SC2016 # for the inner shell
    unshare -pfm --mount-proc --kill-child sh -c 'mount -t tmpfs none /tmp; exec setpriv --reuid 65534 --regid 65534 --clear-groups java -cp "$1" Work' sh "/var/tmp/$$" 3>&- &
    local outer=$!
    await pgrep -P $outer java
    pid=$(pgrep -P $outer java)
    await_use "$pid" 600
    HOME=$BATS_TEST_TMPDIR record_it 0 -p "$pid" --duration 0.5 # perf's cache is below it
    [ ! -e /proc/$pid/root/tmp/perf-1.map ]
    kill -9 "$pid"
    rm -r "/var/tmp/$$"
    HOME=$BATS_TEST_TMPDIR perf script -i perfjit.perf.data -F ip,sym -G | awk '/Work.hot/ { found++ } END { exit found * 2 < NR }'
}

@test "-p of a runtime without its switches: they are named" {
    node -e 'while(1);' 3>&- &
    pid=$!
    await_use $pid 200
    record_it 3 -p $pid --duration 0.3 # no sample in JIT code has a name
    says "perfjit: -p $pid: is node and logs no JIT code, so its functions get no names. It would have to be started with NODE_OPTIONS='--perf-prof --interpreted-frames-native-stack --perf-basic-prof'"
    # A perf map that an earlier process with the pid left behind is none of its own.
    echo '110000000 10 elsewhere' >/tmp/perf-$pid.map
    touch -d 2001-01-01 /tmp/perf-$pid.map
    record_it 3 -p $pid --duration 0.3
    says "perfjit: -p $pid: is node and logs no JIT code" "of process $pid (node): no dump and no perf map"
    rm /tmp/perf-$pid.map
    record_it 3 --runtime none -p $pid --duration 0.3
    [[ $stderr != *"have to be started"* ]] || complain "$stderr"
    kill $pid
    node --perf-basic-prof -e 'while(1);' 3>&- &
    pid=$!
    await_use $pid 200
    run --separate-stderr perfjit record -p $pid --duration 0.3
    kill $pid
    rm -f /tmp/perf-$pid.map isolate-*-$pid-v8.log
    [[ $stderr != *"have to be started"* ]] || complain "$stderr"
}
