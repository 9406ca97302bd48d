#!/usr/bin/env bats
# Every form in which a recording comes and goes: file, stream, compressed, several events.  The names are the same in all.

load helper

setup() {
    cd "$BATS_TEST_TMPDIR"
    require_perf
    mkdir -p dump
}

# producer: the command to record; its functions are inner and solo (tests/producers/unwind_shapes.c).
producer() {
    echo "$BUILD/producers/unwind_shapes" frame-first "$PWD/dump" 0.3
}

# expect_names DATA [OPTION...]: perf names the JIT's functions, of which at least 50 samples are, and says nothing odd.
expect_names() {
    perf script -i "$1" -F ip,sym --no-inline "${@:2}" >script.txt 2>script.err
    expect_names_in script.txt
    ! grep -qiE 'out of order|Processed .* lost|Warning' script.err || complain "$(cat script.err)"
}

expect_names_in() {
    [ "$(grep -cE ' (inner|solo)$' "$1")" -gt 50 ] || complain "too few named: $(sort "$1" | uniq -c | sort -rn | head -5)"
}

@test "recording: -z is unpacked, and the header no longer says that it is compressed" {
    record z.data -z $(producer)
    perf report -i z.data --header-only | grep -q '^# compressed' || complain "not compressed to begin with"
    for layout in image function; do
        perfjit inject -q --layout $layout -i z.data -o out.data
        expect_names out.data
        ! perf report -i out.data --header-only | grep -q '^# compressed' || complain "still says compressed"
        same <(perf report -i out.data --header-only | grep '^# cmdline') <(perf report -i z.data --header-only | grep '^# cmdline')
    done
}

@test "recording: -z and the same records without it give the same profile" {
    record z.data -z $(producer)
    perfjit inject -q -i z.data -o out.data
    # perf's own inject unpacks too if it is asked for nothing else.
    same <(samples out.data | awk '{ print $1 }') <(samples z.data | awk '{ print $1 }')
    [ "$(perf report -D -i out.data | grep -c 'FINISHED_ROUND')" -eq "$(perf report -D -i z.data | grep -c 'FINISHED_ROUND')" ]
}

@test "recording: a stream in, a file out" {
    perf record -q -k mono -e cpu-clock -F 2000 -o - $(producer) >stream.data
    perfjit inject -q -i - -o out.data <stream.data
    expect_names out.data
    perfjit inject -q -i stream.data -o out2.data
    expect_names out2.data
}

@test "recording: a stream in, a stream out, from record to report" {
    perf record -q -k mono -e cpu-clock -F 2000 -o - $(producer) | perfjit inject -q -i - -o - |
        perf script -i - -F ip,sym --no-inline >script.txt
    expect_names_in script.txt
    [ -d perf.jit.data.dso ]
}

@test "recording: a file in, a stream out" {
    record file.data $(producer)
    perfjit inject -q -i file.data -o - >stream.data
    perf script -i - -F ip,sym --no-inline <stream.data >script.txt
    expect_names_in script.txt
    perf report -i - --header-only <stream.data | grep -q '^# cmdline' || complain "the stream lost the command line"
}

@test "recording: a compressed stream in, a stream out" {
    perf record -q -z -k mono -e cpu-clock -F 2000 -o - $(producer) | perfjit inject -q -i - -o - |
        perf script -i - -F ip,sym --no-inline >script.txt
    expect_names_in script.txt
}

@test "recording: a file through a pipe" {
    record file.data $(producer)
    cat file.data | perfjit inject -q -i - -o a.data --dso-dir dsos
    perfjit inject -q -i file.data -o b.data --dso-dir dsos
    cmp a.data b.data
}

@test "recording: two events, whose records carry their ids" {
    perf record -q -k mono -e cpu-clock,task-clock -F 1000 -o two.data $(producer)
    for out in out.data -; do
        perfjit inject -q -i two.data -o $out >stream.data
        if [ $out = - ]; then
            perf script -i - -F event,ip,sym --no-inline <stream.data >script.txt
        else
            perf script -i out.data -F event,ip,sym --no-inline >script.txt
        fi
        for event in cpu-clock task-clock; do
            grep "$event" script.txt >event.txt
            expect_names_in event.txt
        done
    done
}

@test "recording: two events with different sample types" {
    perf record -q -k mono -e cpu-clock,context-switches/call-graph=fp/ -F 2000 -o two.data $(producer)
    perfjit inject -q -i two.data -o out.data
    expect_names out.data
}

@test "recording: -d, --switch-events and call graphs" {
    for options in "-d" "--switch-events" "-g" "--call-graph dwarf,4096" "-d --switch-events -g"; do
        perf record -q -k mono -e cpu-clock -F 2000 $options -o some.data $(producer)
        perfjit inject -q -i some.data -o out.data
        expect_names out.data -G || expect_names out.data
    done
}

@test "recording: of the whole system" {
    record all.data -a -- $(producer)
    perfjit inject -q -i all.data -o out.data
    expect_names out.data
}

@test "recording: attached to a process that runs already" {
    "$BUILD/producers/unwind_shapes" frame-first "$PWD/dump" 2 &
    local producer=$!
    sleep 0.3
    record attached.data -p $producer -- sleep 0.8
    wait $producer
    perfjit inject -q -i attached.data -o out.data
    expect_names out.data
}

@test "recording: a directory is refused, in words" {
    mkdir some.data
    run --separate-stderr perfjit inject -i some.data -o out.data
    exits 1
    says "some.data: is a directory (perf record --threads); record into a single file"
    [ ! -e out.data ] && [ ! -e out.data.dso ]
}

@test "recording: a stream that is cut short keeps what was whole" {
    perf record -q -k mono -e cpu-clock -F 2000 -o - $(producer) >stream.data
    local size
    size=$(stat -c %s stream.data)
    head -c $((size - 20)) stream.data >cut.data
    run --separate-stderr perfjit inject -i cut.data -o out.data
    exits 3
    says "cut.data: the stream ends inside the record at 0x"
    expect_names out.data
}

@test "recording: a compressed record that is damaged ends the records there, and that is told" {
    record z.data -z $(producer)
    # The last bytes in front of the round's mark are compressed ones.
    local mark
    mark=$(perf report -D -i z.data | awk '/PERF_RECORD_FINISHED_ROUND/ { print $2; exit }')
    head -c 64 /dev/zero | tr '\0' '\377' | dd of=z.data bs=1 seek=$((mark - 200)) conv=notrunc status=none
    run --separate-stderr perfjit inject -i z.data -o out.data
    # Whether a whole record comes before the damage, the marker's among them, is zstd's affair.
    [ "$status" -eq 3 ] || [ "$status" -eq 1 ]
    [ "$status" -eq 1 ] || says "can't be unpacked"
}
