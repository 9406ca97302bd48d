# Names as every output shows them: mangled ones, hidden characters, and outputs that are inputs.

load helper

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    sound_recording functions
    dump=$(echo jit-*.dump jitdump-*/jit-*.dump | tr ' ' '\n' | grep -v '\*' | head -1)
    mv "$dump" names.dump
}

setup() {
    cd "$BATS_TEST_TMPDIR"
    cp "$BATS_FILE_TMPDIR"/{sound.data,names.dump} .
}

# rename_functions NAME...: names.dump calls its functions by these names, in turns.
rename_functions() {
    python3 - names.dump "$@" <<'END'
import struct, sys
path, names = sys.argv[1], [name.encode() for name in sys.argv[2:]]
old, new, at, turn = open(path, "rb").read(), b"", 0, 0
size = struct.unpack_from("<I", old, 8)[0]
new, at = old[:size], size
while at + 16 <= len(old):
    kind, size, stamp = struct.unpack_from("<IIQ", old, at)
    record = old[at:at + size]
    if kind == 0:
        code_bytes = struct.unpack_from("<Q", record, 40)[0]
        name, turn = names[turn % len(names)] + b"\0", turn + 1
        body = record[16:56] + name + record[size - code_bytes:]
        record = struct.pack("<IIQ", 0, 16 + len(body), stamp) + body
    new, at = new + record, at + size
open(path, "wb").write(new)
END
}

# shown FORMAT: the names in the recording as `perfjit export` writes them.
report_names() {
    perfjit report -q --json --jitdump names.dump "$@" sound.data | jq -r '.functions[] | select(.module == "jit") | .name' | sort -u
}

@test "mangled names of JIT code: report, exports and perf on inject's output show the same ones" {
    rename_functions _ZN3app5sieveEPhi '_ZN3app4sortEPhi [tier2]' _RNvNtCs4fqI2P2rA04_4acme5inner3run \
        '_RNvNtCs4fqI2P2rA04_4acme5inner4walk [tier1]' _D3std5stdio4File5writeMFZv camlStdlib__List__map_123 \
        '$s4main3fooyySiF' 'La/B;f(I[J)V' _ZN1w1m3arr17h7cdf79832a7a2bacE 'JS:_ZN3app3fibEi-0-liftoff'
    report_names >names
    printf '%s\n' 'Stdlib.List.map_123' 'a.B.f(int, long[])' acme::inner::run acme::inner::walk app::fib app::sieve app::sort main.foo \
        std.stdio.File.write w::m::arr | LC_ALL=C sort >wanted
    LC_ALL=C sort names | diff wanted - || complain "the names of the report"
    perfjit export -q -f folded --jitdump names.dump sound.data | grep -o '[^;]*_\[j\]' | sed 's/_\[j\]//' | LC_ALL=C sort -u | diff wanted - ||
        complain "the names of the folded stacks"
    perfjit inject -q --jitdump names.dump -i sound.data -o named.data
    perf script -i named.data -F ip,sym 2>/dev/null | sed 's/^ *[0-9a-f]* *//; s/ \[tier[0-9]\]//; s/^JS:\(.*\)-0-liftoff/\1/' | LC_ALL=C sort -u >perfs
    [ -z "$(comm -23 wanted perfs)" ] || complain "perf does not show $(comm -23 wanted perfs)"
    run ! grep -E '^_[ZRD]|^\$s|^caml|^La/' perfs
}

@test "tiers of WebAssembly are tiers of one function; py:: is CPython's in its own form alone" {
    rename_functions JS:fib-3-liftoff JS:fib-3-turbofan 'JSC-WasmBBQ: fob' 'JSC-WasmOMG: fob' py::object::get py::leaf:/srv/work.py
    perfjit report -q --json --jitdump names.dump sound.data >report.json
    jq -e '[.functions[] | select(.name == "fib")] | length == 1 and (.[0].file == "wasm-function[3]")' report.json
    jq -e '[.functions[] | select(.name == "fob")] | length == 1' report.json
    jq -e '[.functions[] | select(.name == "py::object::get")] | length == 1' report.json
    jq -e '[.functions[] | select(.name == "leaf" and .file == "/srv/work.py")] | length == 1' report.json
    perfjit report -q --jitdump names.dump sound.data | grep -E 'jit (Liftoff\+TurboFan|TurboFan\+Liftoff) +fib|(Liftoff|TurboFan)\+(Liftoff|TurboFan) +fib'
}

@test "hidden characters of a name are in no output; in JSON it is exact" {
    local hidden name
    hidden=$(printf '\u202e|\u2066|\u200b|\u061c|\ufeff|\U000e0041')
    name=$(printf 'bidi\u202e \u2066a\u200b\u061c\ufeff\U000e0041')
    rename_functions "$name"
    perfjit report -q --jitdump names.dump sound.data >out.report
    perfjit export -q -f folded --jitdump names.dump sound.data >out.folded
    perfjit export -q -f callgrind --jitdump names.dump sound.data >out.callgrind
    perfjit export -q -f pprof --jitdump names.dump -o pprof.gz sound.data
    gzip -dc pprof.gz >out.pprof
    perfjit export -q -f speedscope --jitdump names.dump sound.data >out.speedscope
    perfjit export -q -f firefox --jitdump names.dump sound.data >out.firefox
    perfjit report -q --json --jitdump names.dump sound.data >out.json
    perfjit flamegraph -q --jitdump names.dump -o page.html sound.data
    data page.html >out.html
    perfjit flamegraph -q --svg --jitdump names.dump -o out.svg sound.data
    perfjit inject -q --jitdump names.dump -i sound.data -o named.data
    perf script -i named.data -F ip,sym >out.perf 2>/dev/null
    perfjit report -q named.data >out.injected
    for out in out.*; do
        run ! grep -aE "$hidden" "$out"
        grep -aq bidi "$out" || complain "$out has no such name"
    done
    for out in out.report out.folded out.callgrind out.pprof out.html out.svg out.perf out.injected; do
        grep -aqE 'bidi\\+xe2\\+x80\\+xae ' "$out" || complain "$out does not say what is hidden"
    done
    for out in out.json out.speedscope out.firefox; do
        jq -e --arg name "$name" '[.. | strings] | index($name) != null' "$out" >/dev/null || complain "$out has another name"
    done
}

@test "an output that is an input is refused, as wrong usage, and stays as it was" {
    ln names.dump hard
    ln -s hard soft
    cp -a "$BATS_FILE_TMPDIR/sound.data" other.data
    sums=$(md5sum names.dump sound.data)
    exec 7<names.dump
    for target in names.dump hard soft ./../"${PWD##*/}"/hard /proc/self/fd/7 sound.data; do
        for words in "inject -q -i sound.data" "export -q -f pprof sound.data" "flamegraph -q sound.data" "flamegraph -q --svg sound.data"; do
            run --separate-stderr perfjit $words --jitdump names.dump -o "$target"
            exits 2
            says "is an input as well"
        done
        [ "$(md5sum names.dump sound.data)" = "$sums" ] || complain "$target was written"
    done
    exec 7<&-
    run --separate-stderr perfjit check --repair hard names.dump
    exits 2
    run --separate-stderr perfjit symbols -o hard names.dump
    exits 2
    perfjit inject -q -i sound.data --jitdump names.dump -o named.data
    image=$(find named.data.dso -name '*.so' | head -1)
    cp "$image" image
    for words in "flamegraph -q named.data" "export -q -f folded named.data"; do
        run --separate-stderr perfjit $words -o "$image"
        exits 2
    done
    cmp "$image" image
    for words in --markdown --json --html -o; do
        run --separate-stderr perfjit diff -q --jitdump names.dump --base sound.data --new other.data $words hard
        exits 2
    done
    [ "$(md5sum names.dump sound.data)" = "$sums" ]
    [ -z "$(ls -A | grep XXXX)" ]
}

@test "code in memory that nobody logged is unknown, whatever the memory is called" {
    local without_root=1 name
    for name in //anon /SYSV0 /memfd; do
        LC_ALL=C sed "s,//anon,$name,g" sound.data >memory.data
        [ "$name" != /memfd ] || LC_ALL=C sed -i 's,/memfd\x00\x00,/memfd:\x00,g' memory.data
        perfjit report -q --json memory.data 2>/dev/null >report.json || [ $? = 3 ]
        jq -e --arg memory "${name##*/}" '[.functions[] | select(.module | startswith($memory))] | length > 0 and all(.kind == "unknown" and .name == "[unknown]")' report.json ||
            complain "$name: $(jq -c '.functions[0]' report.json)"
    done
}
