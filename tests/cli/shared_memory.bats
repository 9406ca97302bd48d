# JIT code in memory that several processes share, as in PHP's workers: one compiles, all run it.  Every sample of each has the
# name that the program's own log has for that moment.  The program is producers/shared_arena.
load helper

setup() {
    require_perf
    mkdir "$BATS_TEST_TMPDIR/work"
    cd "$BATS_TEST_TMPDIR/work"
}

# shared NAME [-d] [OPTION...] KIND: shared_arena is recorded; with -d also mappings that are not executable.
shared() {
    local name=$1 options=()
    shift
    if [ "$1" = -d ]; then
        options=(-d)
        shift
    fi
    recording "$name" record perf.data "${options[@]}" "$BUILD/producers/shared_arena" "$@" "$PWD/truth"
}

# injected STATUS [OPTION...]
injected() {
    local wanted=$1
    shift
    run --separate-stderr perfjit inject "$@"
    exits "$wanted"
}

# right WORKER...: all samples of these workers in the arena have the right name, and there are some.  TRUTH.WORKER if it has one of
# its own.
right() {
    local worker truth
    for worker in "$@"; do
        truth=truth
        [ ! -e "truth.worker$worker" ] || truth=truth.worker$worker
        perf script -i perf.jit.data --comm "worker$worker" -F time,ip,sym --ns --no-inline |
            "$BUILD/producers/truth_check" "$truth" >score 2>disagree
        [[ $(cat score) =~ ^samples\ ([0-9]+)\ right\ ([0-9]+)\ wrong\ 0\ missing\ 0$ ]] ||
            complain "worker$worker: $(cat score disagree)"
        [ "${BASH_REMATCH[1]}" -ge 10 ] || complain "worker$worker: $(cat score)"
    done
}

# bats test_tags=both
@test "what one worker compiles is named in all, those that are forked later too, in both layouts; it counts once" {
    shared zero zero
    injected 0
    right 0 1 2 3
    [[ $stderr =~ " "([0-9]+)" functions in 1 image" ]]
    [ "${BASH_REMATCH[1]}" -eq "$(grep -c ' load ' truth)" ]
    rm -r perf.jit.data*
    injected 0 --layout function
    right 0 1 2 3
}

@test "each maps the memory by itself, flips its protection, and has a dump of its own" {
    shared own-dumps -m -f -o memfd
    injected 0 --rows body
    right 0 1 2 3
}

@test "workers that flip the protection of what they inherited, and log to their parent's dump" {
    shared flipped -f memfd
    injected 0
    right 0 1 2 3
    rm -r perf.jit.data*
    shared flipped-data -d -f zero # with those that are not executable
    injected 0
    right 0 1 2 3
}

# A pid comes back.  The workers have no dump of their own: one compiles for all.
@test "a perf map that an earlier process with a worker's pid left: left out, and nothing is lost" {
    local pid
    shared zero zero
    pid=$(perf script -i perf.data --comm worker3 -F pid | sort -n | head -1 | tr -d ' ')
    mkdir -p "$recorded_root/tmp"
    echo '110000000 10 elsewhere' >"$recorded_root/tmp/perf-$pid.map"
    run --separate-stderr "$BUILD/perfjit" inject --root "$recorded_root" -i perf.data
    rm "$recorded_root/tmp/perf-$pid.map"
    exits 0
    says "1 x perf map of an earlier process with the same pid" "/tmp/perf-$pid.map: none of its 1 function lies"
    right 0 1 2 3
}

@test "private memory stays each one's own, at the same addresses" {
    shared private -f private
    injected 0
    right 0 1 2 3
}

# No fork tells whose child is whose.
# bats test_tags=live
@test "workers that were there before the recording: perf record -p of all, and of one" {
    local master workers first
    "$BUILD/producers/shared_arena" -w 4 -t 100000 -n 100 zero "$PWD/truth" 3>&- &
    master=$!
    await all_began
    first=$(pgrep -P $master -x worker0)
    workers=$(pgrep -P $master | tr '\n' ' ')
    # shellcheck disable=SC2016,SC2086 # for the inner shell; several
    record perf.data -p "$master,$(tr ' ' ',' <<<"${workers% }")" bash -c 'for pid; do await_use $pid 50; done' bash $workers
    record one.data -p "$first" bash -c "await_use $first 100"
    # shellcheck disable=SC2086 # several
    kill $workers
    wait $master || true
    injected 0
    right 0 1 2 3
    rm -r perf.jit.data*
    injected 0 -i one.data -o perf.jit.data
    right 0
}

# The last worker has compiled.
all_began() {
    grep -q ' worker3_' truth
}

# As of each container: its inode is 0.
@test "the first System V memory there is" {
    [ "$RECORDINGS" = stored ] || unshare --ipc true 2>/dev/null || skip "no IPC namespace can be made"
    recording sysv record perf.data unshare --ipc "$BUILD/producers/shared_arena" sysv "$PWD/truth"
    perf script -i perf.data --show-mmap-events | grep -q ' 0 [0-9]*\]: rwxs /SYSV' || complain "it has another inode"
    injected 0
    right 0 1 2 3
}

# bats test_tags=all
@test "System V memory, and a file in /dev/shm" {
    shared sysv-later sysv
    injected 0
    right 0 1 2 3
    rm -r perf.jit.data*
    shared shm -o "/dev/shm/shared_arena.$$"
    rm -f "/dev/shm/shared_arena.$$"
    injected 0
    right 0 1 2 3
}

# Each gets what its samples can hit: 20 000 functions of 50 workers would be a million.
# bats test_tags=live
@test "fifty workers take little more memory than two" {
    local workers arguments kib=()
    for workers in 2 50; do
        shared "workers-$workers" -w $workers -t 40 -n 4000 -k 200 zero
        with_root inject
        run --separate-stderr perfjit_memory_kib "${arguments[@]}"
        exits 0
        kib+=("$output")
        [[ $stderr != *"stay [unknown]"* ]]
        rm -r perf.jit.data* jit-*.dump
    done
    echo "# ${kib[*]} KiB" >&3
    [ "${kib[1]}" -lt $((2 * kib[0])) ] || complain "${kib[*]}"
}

# perfjit_memory_kib ARGUMENT...: how much it had at most.
perfjit_memory_kib() {
    python3 - "$BUILD/perfjit" "$@" <<'END'
import resource, subprocess, sys
status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(status)
END
}

# ---- PHP ----

# named_php DATA COUNT: at least COUNT processes have samples in opcache's buffer, and nearly all of these samples have a name.
# That name is not from the map that PHP writes as well.
named_php() {
    local buffer start bytes
    remove_maps "$1"
    buffer=$(maps "$1" | grep -oE '\[0x[0-9a-f]+\(0x[0-9a-f]+\).* rwxs /dev/zero' | tr '[()' '   ' | head -1)
    read -r start bytes _ <<<"$buffer"
    perf script -i perf.jit.data -F pid,ip,sym --no-inline |
        awk -v start="$start" -v bytes="$bytes" -v wanted="$2" '
            function number(hex, n, i) {
                n = 0
                for (i = 1; i <= length(hex); i++) n = n * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1
                return n
            }
            BEGIN { first = number(substr(start, 3)); end = first + number(substr(bytes, 3)) }
            NF >= 3 && number($2) >= first && number($2) < end { all[$1]++; unknown[$1] += $3 == "[unknown]" }
            END {
                for (pid in all) if (all[pid] >= 10) { processes++; if (unknown[pid] * 50 > all[pid]) bad++ }
                for (pid in all) print pid, all[pid], unknown[pid] + 0
                exit bad || processes < wanted
            }' >php.score || complain "$(cat php.score)"
}

php_options=(-d opcache.enable=1 -d opcache.enable_cli=1 -d opcache.jit_buffer_size=16M -d opcache.jit=tracing
    -d opcache.jit_debug=0x20 -d opcache.file_update_protection=0)

# bats test_tags=live
@test "php: children that it forks run what the first of them compiles" {
    command -v php8.2 >php.path || unavailable "php8.2"
    php8.2 -m | grep -qx pcntl || unavailable "php8.2 with pcntl"
    cat >fork.php <<'END'
<?php
function before($n) { for ($s = 0, $i = 0; $i < $n; $i++) $s = ($s + $i * $i) % 1000003; return $s; }
function within($n) { for ($s = 0, $i = 0; $i < $n; $i++) $s = ($s * 7 + $i) % 1000033; return $s; }
for ($i = 0; $i < 20; $i++) before(100000);
for ($k = 0; $k < 3; $k++)
    if (pcntl_fork() == 0) {
        for ($i = 0; $i < 100; $i++) { before(20000); within(200000); }
        exit(0);
    }
for ($k = 0; $k < 3; $k++) pcntl_wait($status);
END
    record perf.data php8.2 "${php_options[@]}" fork.php
    injected 0
    named_php perf.data 3
    remove_dumps perf.data
}

# bats test_tags=live
@test "php: workers of its web server run what the first of them compiles" {
    command -v php8.2 >php.path || unavailable "php8.2"
    command -v curl >curl.path || unavailable "curl"
    cat >page.php <<'END'
<?php
function hot($n) { for ($s = 0, $i = 0; $i < $n; $i++) $s = ($s * 7 + $i) % 1000033; return $s; }
for ($i = 0; $i < 100; $i++) hot(100000);
echo getmypid();
END
    cat >serve.sh <<'END'
port=$1
shift
PHP_CLI_SERVER_WORKERS=3 php8.2 "$@" -S "127.0.0.1:$port" page.php >server.log 2>&1 &
server=$!
until curl -sf "http://127.0.0.1:$port/" >>pids 2>>curl.log; do sleep 0.05; kill -0 $server || exit; done
asked=()
for i in 1 2 3 4 5 6 7 8 9; do curl -s "http://127.0.0.1:$port/" >>pids & asked+=($!); done
wait "${asked[@]}"
workers=$(pgrep -P $server)
kill $server $workers
wait
END
    record perf.data bash serve.sh $((20000 + RANDOM % 10000)) "${php_options[@]}"
    [ -s pids ] || complain "$(cat server.log curl.log)"
    injected 0
    named_php perf.data 2
    remove_dumps perf.data
}
