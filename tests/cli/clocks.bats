# Recordings that are not on the dump's clock: without -k mono, with another -k, in cycles, and dumps that lie about it.
load helper

tinyjit=$here/../../examples/tinyjit

# record_by CLOCK DATA [OPTION...] COMMAND...: CLOCK is perf's, or what -k takes.
record_by() {
    local clock=$1 data=$2
    shift 2
    [ "$clock" = perf ] && clock=
    perf record -q ${clock:+-k $clock} -e cpu-clock -F 2000 -o "$data" "$@"
}

# stored NAME COMMAND...: as `recording`.  Stored, its files look old: the clocks of the machine that reads are no evidence, not even
# those of the machine that recorded.
stored() {
    recording "$@" || return
    [ "$RECORDINGS" != stored ] || find . -name '*.data' -o -name '*.stream' | xargs -r touch -d '2001-01-01'
}

# pair CLOCK: by how much perf's times are ahead of CLOCK_MONOTONIC in a recording by CLOCK, in ns, measured by a program that
# perf watches, and without perfjit.
pair() {
    local data=$BATS_FILE_TMPDIR/pair.data mapped=$BATS_FILE_TMPDIR/mapped_by_clock_pair
    head -c 4096 /dev/zero >"$mapped"
    record_by "$1" "$data" "$BUILD/producers/clock_pair" "$mapped" >"$data.mono"
    perf script -i "$data" --show-mmap-events --ns -F time,event | grep -F "$mapped" |
        sed -E 's/^ *([0-9]+)\.([0-9]{9}): .*/\1\2/' | paste -d' ' - "$data.mono" |
        awk '$3 - $2 < width || !width { width = $3 - $2; ahead = $1 - $2 - width / 2 } END { printf "%.0f\n", ahead }'
    rm "$data" "$data.mono" "$mapped"
}

# record_surely CLOCK DATA COMMAND...: perfjit says how sure it is of the offset.  If the program had to wait for a processor just when it
# mapped its dump, that is milliseconds: then it is recorded anew.
record_surely() {
    local clock=$1 data=$2 try sure
    for try in {1..20}; do
        record_by "$clock" "$data" "${@:3}" >/dev/null || return
        sure=$(perfjit inject -i "$data" -o sure.data 2>&1) || true
        sure=$(sed -nE 's/.*\(± ([0-9 ]+)\).*/\1/p' <<<"$sure" | tr -d ' ')
        rm -rf sure.data sure.data.dso
        [ "${sure:-0}" -ge "$sure_ns" ] || return 0
        echo "# $data, try $try: unsure by $sure ns" >&3
    done
}
sure_ns=1000000

setup_file() {
    require_perf || return 0
    cd "$BATS_FILE_TMPDIR" || return
    local script clock
    for script in demo churn; do
        for clock in perf raw; do
            stored $script-$clock record_tinyjit $script $clock || return
        done
    done
}

record_tinyjit() { # SCRIPT CLOCK
    local seconds=0.4 rate=5000
    [ "$RECORDINGS" = live ] || seconds=0.06 rate=20000 # a dump of 0.4 s is large
    PERFJIT=dump JITDUMPDIR=$PWD sure_ns=20000 record_surely "$2" "$1.$2.data" -F $rate \
        "$BUILD/tinyjit" --seconds=$seconds --truth="$1.$2.truth" "$tinyjit/$1.tj" || return
    pair "$2" >"$1.$2.ahead"
}

setup() {
    require_perf
    cd "$BATS_TEST_TMPDIR"
    mkdir dump
}

# ---- tinyjit, which forgets code and uses its addresses again, by its own log ----

# sample_times AHEAD: the lines of `samples` as of CLOCK_MONOTONIC.
sample_times() {
    awk -v ahead="$1" '{
        split($1, parts, "[.:]"); time = parts[1] * 1000000000 + parts[2] - ahead; $1 = ""
        printf "%d.%09d:%s\n", int(time / 1000000000), time % 1000000000, $0 }'
}

# The times of the samples are known as well as perfjit says that it is sure, and those of the pair to a microsecond or two.
check_truth() {
    local from=$BATS_FILE_TMPDIR/$1 layout score samples right
    for layout in image function; do
        run --separate-stderr perfjit inject -i "$from.data" -o out.data --layout $layout
        exits 0
        told
        score=$(samples out.data | sample_times "$(cat "$from.ahead")" |
            "$BUILD/producers/truth_check" -m $((uncertainty / 1000 + 3)) "$from.truth")
        echo "# $1, $layout layout: $score" >&3
        read -r _ samples _ right _ <<<"$score"
        [ "$samples" -ge 500 ]
        [ "$right" -eq "$samples" ]
    done
}

# bats test_tags=both
@test "tinyjit's demo without -k: every sample in the arena has the right name" {
    check_truth demo.perf
}

@test "tinyjit's churn without -k: every sample in the arena has the right name" {
    check_truth churn.perf
}

# bats test_tags=both
@test "tinyjit's demo with -k raw: every sample in the arena has the right name" {
    check_truth demo.raw
}

@test "tinyjit's churn with -k raw: every sample in the arena has the right name" {
    check_truth churn.raw
}

@test "the truth is one that can be missed: off by 3 ms, names of churn are wrong" {
    local score samples right
    perfjit inject -q -i "$BATS_FILE_TMPDIR/churn.perf.data" -o out.data
    score=$(samples out.data | sample_times $(($(cat "$BATS_FILE_TMPDIR/churn.perf.ahead") + 3000000)) |
        "$BUILD/producers/truth_check" "$BATS_FILE_TMPDIR/churn.perf.truth" 2>/dev/null)
    read -r _ samples _ right _ <<<"$score"
    [ "$right" -lt "$samples" ] || complain "$score"
}

# told: the offset and the uncertainty that perfjit printed, positive if the dump is behind.
told() {
    [[ $stderr =~ its\ clock\ is\ ([0-9\ ]+)\ ns\ \(±\ ([0-9\ ]+)\)\ (behind|ahead) ]] || complain "no offset in: $stderr"
    offset=${BASH_REMATCH[1]// /} uncertainty=${BASH_REMATCH[2]// /}
    [ "${BASH_REMATCH[3]}" = behind ] || offset=-$offset
}

# bats test_tags=both
@test "the offset that is told is the one that another program measures" {
    local name ahead
    for name in demo.perf demo.raw churn.perf churn.raw; do
        run --separate-stderr perfjit inject -i "$BATS_FILE_TMPDIR/$name.data" -o out.data
        exits 0
        says "1 x dump on another clock than the profile" "perf record -k mono makes that unnecessary"
        told
        ahead=$(cat "$BATS_FILE_TMPDIR/$name.ahead")
        local apart=$((offset - ahead))
        echo "# $name: told $offset ± $uncertainty, measured $ahead" >&3
        [ "${apart#-}" -le "$uncertainty" ]
        [ "$uncertainty" -lt 1000000 ]
    done
}

@test "-k mono: not a word about clocks" {
    PERFJIT=dump JITDUMPDIR=$PWD/dump stored mono record_by mono mono.data "$BUILD/producers/every_record" 0.2
    run --separate-stderr perfjit inject -i mono.data -o out.data
    exits 0
    [[ ${stderr,,} != *clock* && $stderr != *"-k mono"* ]] || complain "$stderr"
}

# bats test_tags=both
@test "every other -k: converted, and names stay" {
    local clock
    for clock in boottime tai realtime; do
        PERFJIT=dump JITDUMPDIR=$PWD/dump stored $clock record_surely $clock $clock.data "$BUILD/producers/every_record" 0.2
        run --separate-stderr perfjit inject -i $clock.data -o out.data
        exits 0
        says "recorded with -k $clock"
        told
        [ "$uncertainty" -lt 1000000 ]
        samples out.data | grep -q ' plain$'
    done
}

# ---- Real runtimes ----

# dump_functions DUMP: a line for each function: first and last address, as 16 digits, and the name.
dump_functions() {
    perfjit dump --json "$1" |
        jq -r 'select(.type == "CODE_LOAD" and .code_size > 0) | .code_addr, .code_addr + .code_size - 1, .name' |
        while read -r first && read -r last && IFS= read -r name; do
            printf '%016x %016x %s\n' "$first" "$last" "$name"
        done
}

# judge FUNCTIONS SAMPLES: of the samples at addresses that functions of the dump have, how many are named after one of
# these.
judge() {
    awk '
        NR == FNR { first[NR] = $1; last[NR] = $2; $1 = $2 = ""; name[NR] = substr($0, 3); count = NR; next }
        {
            address = sprintf("%16s", $2); gsub(" ", "0", address); $1 = $2 = ""; shown = substr($0, 3); owners = right = 0
            for (i = 1; i <= count; i++)
                if (address >= first[i] && address <= last[i]) { owners++; if (name[i] == shown) right = 1 }
            if (owners) { hits++; if (right) named++; else print "not named: " $0 address " " shown >"/dev/stderr" }
        }
        END { print hits + 0, named + 0 }' "$1" "$2"
}

# check_runtime NAME: what X.data holds is named as the dump has it, in both layouts alike.
check_runtime() {
    local dump hits named
    dump=$(dumps_of "$1.data")
    for layout in image function; do
        run --separate-stderr perfjit inject -i "$1.data" -o "$layout.data" --layout $layout
        exits 0
        told
        echo "# $1: $offset ± $uncertainty" >&3
        [ "$uncertainty" -lt 1000000 ]
        samples $layout.data | tr -s ' ' >$layout.samples
    done
    same function.samples image.samples
    dump_functions "$dump" | tr -s ' ' >functions
    read -r hits named <<<"$(judge functions image.samples)"
    echo "# $1: $named of $hits samples at the dump's addresses are named" >&3
    [ "$hits" -ge 300 ]
    [ $((1000 * named)) -ge $((998 * hits)) ]
}

# Asks the machine's clocks.
# bats test_tags=live
@test "node without -k, whose header has the wall clock" {
    cat >program.js <<'END'
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
function mix(n) { let x = 1; for (let i = 0; i < n; i++) x = (x * 1103515245 + 12345) & 0x7fffffff; return x; }
let sum = 0;
const ran = () => process.cpuUsage().user / 1000; // ms, however busy the machine is
while (ran() < 500) sum = (sum + fib(18) + mix(20000)) | 0;
END
    record_surely perf node.data node --perf-prof program.js
    check_runtime node
    grep -q fib image.samples
}

# bats test_tags=both
@test "LLVM's lli without -k" {
    cat >program.ll <<'END'
define i64 @fib(i64 %n) noinline {
entry:
  %small = icmp slt i64 %n, 2
  br i1 %small, label %done, label %more
more:
  %n1 = sub i64 %n, 1
  %n2 = sub i64 %n, 2
  %a = call i64 @fib(i64 %n1)
  %b = call i64 @fib(i64 %n2)
  %sum = add i64 %a, %b
  ret i64 %sum
done:
  ret i64 %n
}

define i32 @main() {
entry:
  %f = call i64 @fib(i64 39)
  ret i32 0
}
END
    JITDUMPDIR=$PWD/dump stored lli record_surely perf lli.data lli-14 -jit-kind=mcjit program.ll
    check_runtime lli
}

# bats test_tags=both
@test "PHP without -k" {
    cat >program.php <<'END'
<?php
function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }
function ran() { return getrusage()['ru_utime.tv_sec'] + getrusage()['ru_utime.tv_usec'] / 1e6; } // its own time
while (ran() < 0.7) fib(18);
END
    stored php record_by perf php.data php8.2 -d opcache.enable=1 -d opcache.enable_cli=1 -d opcache.jit_buffer_size=64M \
        -d opcache.jit=function -d opcache.jit_debug=0x30 -d opcache.file_update_protection=0 program.php
    local dump
    dump=$(dumps_of php.data)
    [[ $dump =~ /tmp/jit-([0-9]+)\.dump$ ]]
    mv "$dump" dump/
    rm -f "/tmp/perf-${BASH_REMATCH[1]}.map"
    perfjit inject -q -i php.data -o out.data --jitdump "dump/${dump##*/}"
    samples out.data | tr -s ' ' >moved.samples
    mv "dump/${dump##*/}" "$dump" # the very file: a copy need not be that of the process
    check_runtime php
    rm "$dump"
    same moved.samples image.samples
}

# ---- Dumps that lie ----

# lie PERF_CLOCK HEADER RECORDS FLAG: record lying_clock, and inject.
lie() {
    stored "lie-$1-$2-$3-$4${5:+-$5}" record_surely "$1" lie.data -F 5000 "$BUILD/producers/lying_clock" dump "$2" "$3" "$4" 200 "${5:-0}"
    run --separate-stderr perfjit inject -i lie.data -o out.data
}

# Each of the four functions has samples, but for a few at its very beginning, and in the order in which they ran.
has_all_names() {
    perf script -i out.data -F time,ip,sym,dso --ns --no-inline | awk '!/\[vdso\]/ && $3 ~ /^spin_|unknown/ { print $3 }' | uniq -c >names
    awk '$1 >= 10 { print $2 }' names | uniq | xargs >order # one that is unknown, in the kernel, parts them
    [ "$(cat order)" = "spin_0 spin_1 spin_2 spin_3" ] || complain "$(cat names)"
}

# Asks the machine's clocks.
# bats test_tags=live
@test "cycles, flagged so: without -k, and with it" {
    local clock
    for clock in perf mono raw; do
        lie $clock cycles cycles cycles 15 # maps its dump 15 ms after the header's time
        exits 0
        has_all_names
        [[ $stderr != *"flags"* ]]
    done
}

# Asks the machine's clocks.
# bats test_tags=live
@test "cycles that are not flagged" {
    local clock
    for clock in perf mono; do
        lie $clock cycles cycles ns 15
        exits 0
        says "1 x dump whose flags name the wrong clock" "say that its times are CLOCK_MONOTONIC; they are CPU cycles"
        has_all_names
    done
}

# Asks the machine's clocks.
# bats test_tags=live
@test "flagged as cycles, but nanoseconds" {
    local clock
    for clock in perf mono raw; do
        lie $clock mono mono cycles
        exits 0
        says "say that its times are CPU cycles; they are CLOCK_MONOTONIC"
        has_all_names
    done
}

# Asks the machine's clocks.
# bats test_tags=live
@test "wall-clock times" {
    local clock
    for clock in perf mono; do
        lie $clock realtime realtime ns
        exits 0
        says "they are CLOCK_REALTIME"
        has_all_names
    done
}

@test "a wall-clock header: with -k mono it does not matter, without it the records tell" {
    lie mono wallus mono ns
    exits 0
    [ "${#stderr_lines[@]}" -eq 1 ]
    has_all_names
    lie perf wallus mono ns
    exits 0
    told
    [ "$uncertainty" -lt 1000000 ]
    has_all_names
}

pair_raw_and_mono() {
    local raw mono
    raw=$(pair raw) && mono=$(pair mono) && echo $((raw - mono)) >apart
}

# Asks the machine's clocks.
# bats test_tags=live
@test "CLOCK_MONOTONIC_RAW with -k mono: told apart where the two are apart" {
    lie mono raw raw ns
    exits 0
    has_all_names
    pair_raw_and_mono
    local apart
    apart=$(cat apart)
    [ "${apart#-}" -gt 20000000 ] || return 0
    says "they are CLOCK_MONOTONIC_RAW"
    # The process waits for a processor between the header's time and the mapping.
    lie mono raw raw ns 15
    exits 0
    has_all_names
    says "they are CLOCK_MONOTONIC_RAW"
}

# bats test_tags=both
@test "times that are none: names from the start on, the last of an address, and status 3" {
    local clock stamps
    for clock in perf mono; do
        for stamps in zero one count; do
            lie $clock mono $stamps ns
            exits 3
            says "1 x dump whose times can't be used" "its functions count as live from the start"
            samples out.data | awk '$3 ~ /^spin_/ { print $3 }' | uniq -c | awk '$1 >= 10 { print $2 }' | uniq | xargs >order
            [ "$(cat order)" = "spin_0 spin_1 spin_3" ]
        done
    done
}

@test "times of no clock: refused, with what to do" {
    lie mono mono cycles ns
    exits 1
    says "its times do not fit a profile that was recorded with -k mono" "perf record -k mono"
    [ ! -e out.data ]
}

# ---- A process that lost its processor between its dump's header and the mapping ----

# set_header DUMP NS: its header is of that time, and does not say how close that is to the mapping.
set_header() {
    local i bytes=
    for ((i = 0; i < 64; i += 8)); do bytes+=$(printf '\\x%02x' $(($2 >> i & 255))); done
    printf '\0\0\0\0' | dd of="$1" bs=1 seek=16 conv=notrunc status=none
    # shellcheck disable=SC2059 # the bytes are the format
    printf "$bytes" | dd of="$1" bs=1 seek=24 conv=notrunc status=none
}

record_two_dumps() {
    PERFJIT=dump JITDUMPDIR=$PWD perf record -q -N -e cpu-clock -F 4000 -o - -- "$BUILD/producers/address_churn" -s 0.1 -n truth >in.stream
}

# By the clocks now, or, as of a stored recording, by the program's other dump.
# bats test_tags=both
@test "a header that is milliseconds before or after the mapping: of a file, a stream and a saved stream" {
    local dump header wait score
    stored late-header record_two_dumps
    dump=$(echo jitdump-*/jit-*.dump)
    header=$(od -A n -t u8 -j 24 -N 8 "$dump")
    for wait in -20000000 1000000; do
        set_header "$dump" $((header - wait))
        perfjit inject -q -i - -o - --dso-dir stream.dso <in.stream >stream.data
        perf script -i - -F pid,tid,time,ip,sym --ns --no-inline <stream.data >stream.samples
        for from in in.stream <(cat in.stream); do
            run --separate-stderr perfjit inject -i $from -o out.data
            exits 0
            perf script -i out.data -F pid,tid,time,ip,sym --ns --no-inline >out.samples
            score=$("$BUILD/producers/truth_check" -p -m 300 truth <out.samples)
            [[ $score =~ ^samples\ ([0-9]+)\ right\ ([0-9]+)\ wrong\ 0\ missing\ 0\  && ${BASH_REMATCH[1]} -ge 30 ]] ||
                complain "$wait, $from: $score $stderr"
        done
        score=$("$BUILD/producers/truth_check" -p -m 300 truth <stream.samples)
        [[ $score = *"wrong 0 missing 0 "* ]] || complain "$wait: $score"
    done
}

# ---- Attached ----

# bats test_tags=live
@test "perf record -p without -k: the clocks now, if the recording is of this boot" {
    "$BUILD/producers/lying_clock" dump mono mono ns 60000 &
    local pid=$!
    await [ -s "dump/jit-$pid.dump" ]
    perf record -q -e cpu-clock -F 2000 -o attached.data -p $pid bash -c "await_use $pid 100"
    kill $pid
    wait $pid || true
    run --separate-stderr perfjit inject -i attached.data -o out.data
    exits 0
    grep -qE "(behind|ahead of) the profile's, by this machine's clocks now" <<<"$stderr" || complain "$stderr" # as the machine began
    samples out.data | grep -q ' spin_[01]$'
    touch -d '2 days ago' attached.data
    run --separate-stderr perfjit inject -i attached.data -o out2.data
    exits 1
    says "-k mono"
}
