# Dumps with the quirks of real producers (docs/quirks.md).  Each is recorded with code that runs.  The tests check the functions'
# names, the messages, and the status.
load helper

setup() {
    require_perf
    mkdir "$BATS_TEST_TMPDIR/dump"
    cd "$BATS_TEST_TMPDIR"
}

# The functions that out.data has samples of, on a line each; ?  for code that nobody logged.  Code in a file, such as the C
# library's clock(), is no affair of the dump's.
named() {
    perf script -i out.data -F ip,sym,dso --no-inline |
        sed -nE 's/^ *[0-9a-f]+ (.*) \(.*(out\.data\.dso\/.*|\/jitted-[0-9-]+)\.so\)$/\1/p; s/^ *[0-9a-f]+ \[unknown\] \((\/\/anon|\/tmp\/perf-[0-9]+\.map|\[unloaded JIT code\])\)$/?/p' |
        sort | uniq -c | awk '$1 > 5 { sub(/^ *[0-9]+ /, ""); print }'
}

# check QUIRK STATUS NAMES TEXT...: a recording with the quirk gives STATUS, has samples of the functions NAMES (a comma between
# two), and perfjit prints each TEXT.  The build with sanitizers does the same.
check() {
    local quirk=$1 wanted=$2 names=$3 sanitized
    shift 3
    recording "$quirk" record perf.data "$BUILD/producers/quirks" "$quirk" dump 0.15
    run --separate-stderr sanitized_perfjit inject -i perf.data -o out.data
    sanitized="$status $stderr"
    run --separate-stderr perfjit inject -i perf.data -o out.data
    [ "$sanitized" = "$status $stderr" ] || complain "sanitized: $sanitized; as shipped: $status $stderr"
    exits "$wanted"
    says "$@"
    named | paste -sd, >names
    [ "$(cat names)" = "$names" ] || complain "$quirk: names $(cat names) instead of $names"
}

# How many lines were said, but for those that count what nobody logged, `?` above.
lines_said() {
    grep -vcE 'samples? in JIT code stays? \[unknown\]|^perfjit:     ([0-9]+ of process|what to do)' <<<"$stderr"
}

# A repaired quirk has status 0, and no other message.
repaired() { # QUIRK COUNT [NAMES]
    check "$1" 0 "${3:-?,alpha,beta,gamma}" "perfjit: repaired: $2 x $1; -v for details" " 0 parts of the input skipped"
    [ "$(lines_said)" -eq 2 ] || complain "more is said: $stderr"
    run --separate-stderr perfjit inject -v -i perf.data -o out.data
    says "perfjit: repaired: $2 x $1: " "Seen in: "
    [[ $stderr == *"    first: "*/dump/jit-*.dump:* ]] || complain "$stderr"
}

# One that every dump of a runtime has: only -v tells it.
usual() { # QUIRK COUNT
    check "$1" 0 "?,alpha,beta,gamma" " 0 parts of the input skipped"
    [ "$(lines_said)" -eq 1 ] || complain "more is said: $stderr"
    run --separate-stderr perfjit inject -v -i perf.data -o out.data
    says "perfjit: repaired: $2 x $1: " "Seen in: "
}

machine_of_elf() {
    readelf -h $(elf_files out.data.dso) | sed -nE 's/^ *(Class|Machine): *//p' | paste -sd,
}

# bats test_tags=both
@test "a sound dump: nothing is told" {
    check sound 0 '?,alpha,beta,gamma' " 0 parts of the input skipped"
    [ "$(lines_said)" -eq 1 ]
}

@test "header: version 2, another size than it says, undefined flags" {
    repaired header-version 1
    repaired header-longer 1
    repaired header-size 1
    repaired header-flags 1
}

@test "header: a second one in the file is a new start, and ends what was logged before" {
    repaired header-again 1
}

@test "header: what another process appended is not taken for this one's" {
    check header-foreign 3 '?,gamma' "1 x part of a dump that another process wrote: " " 1 part of the input skipped"
}

@test "header: the wrong machine, or one of 32 bits with code beyond 4 GiB" {
    local own
    own=$(uname -m)
    usual elf-machine 1
    [[ $own != x86_64 || $(machine_of_elf) == "ELF64,Advanced Micro Devices X86-64" ]]
    repaired elf-class 1
    [[ $own != x86_64 || $(machine_of_elf) == "ELF64,Advanced Micro Devices X86-64" ]]
}

@test "load: pid and tid of others, or wider ones" {
    repaired thread-id-64 3
    repaired pid-differs 1
    usual tid-impossible 1
}

@test "load: names that are absent, empty, not terminated, padded, unprintable" {
    repaired name-absent 1 '?,[unnamed JIT code],alpha,gamma'
    repaired name-empty 1 '?,[unnamed JIT code],alpha,gamma'
    repaired name-open 1
    repaired name-padded 1
    repaired name-unprintable 1 '?,alpha,be ta ?[31m ?,gamma'
    for dump in dump/jit-*.dump; do perfjit dump "$dump"; done | grep -aE 'name="be.* quirks=name-unprintable$'
}

@test "load: code that is empty or behind the record" {
    repaired code-empty 1
    repaired code-behind 2 'alpha,beta,gamma,last'
}

# perf takes what stands before the record for the code.
@test "load: code that is absent is zeros and nobody else's bytes" {
    check code-absent 0 '?,alpha,beta,gamma' "1 x function logged without its code bytes: "
    perfjit inject --layout function -i perf.data -o out.data
    for so in $(elf_files out.data.dso); do
        objcopy -O binary -j .text "$so" text
        readelf -sW "$so" | grep -q ' beta$' || continue
        tr -d '\0' <text >rest
        [ ! -s rest ] || complain "beta is not empty"
    done
}

@test "load: one code_index for two" {
    repaired index-reused 1
}

@test "order: times that go backwards, records behind a CLOSE" {
    repaired time-backwards 1
    repaired after-close 1
}

@test "a record of unknown id is skipped and reported" {
    check record-unknown 3 '?,alpha,beta,gamma' "1 x record of unknown type: " "id 77, 21 bytes" " 1 part of the input skipped"
}

@test "a record that ends in its middle keeps its name, and the next one is found" {
    check record-torn 3 '?,again,alpha,beta' "1 x torn part of a dump: " "record 1 at 0x70: ends after 6" "its name, beta, is kept"
}

@test "a part that a forked child wrote once more is read once" {
    repaired part-twice 1 '?,again,alpha,beta'
    [ "$(perfjit dump dump/jit-*.dump | grep -c 'the same as in front of it: ')" -eq 1 ]
}

# bats test_tags=live
@test "... of both, perf inject loses what stands behind" {
    local quirk
    for quirk in record-torn part-twice; do
        record perf.data "$BUILD/producers/quirks" $quirk dump 0.15
        perf inject --jit -i perf.data -o out.data >perf.txt 2>&1 || true
        named >names
        grep -q alpha names
        run ! grep again names
    done
}

@test "a dump that ends in the code of its last record keeps that one's name" {
    check dump-cut 3 '?,alpha,beta,gamma' "1 x dump cut short: " "record 2 at 0x" "its name, gamma, is kept"
}

# .NET 10.0 ends its dump at a block of stubs that it can't read.  The perf map of the same process has all names.
@test "a dump that ends in a block of stubs leaves the rest to the perf map; without one, it is said what to set" {
    local dump
    sound_recording functions
    dump=$(dumps_of sound.data)
    perfjit dump --json "$dump" | jq -r 'select(.type == "CODE_LOAD") | "\(.code_addr) \(.code_size) method_\(.name)"' |
        while read -r addr size name; do printf '%x %x %s\n' "$addr" "$size" "$name"; done >"perf-$(basename "$dump" .dump | tr -dc 0-9).map"
    python3 - "$dump" <<'END'
import struct, sys
data = open(sys.argv[1], "rb").read()
loads, at = [], struct.unpack_from("<I", data, 8)[0]
while at < len(data) and len(loads) < 2:
    kind, size = struct.unpack_from("<II", data, at)
    if kind == 0:
        loads.append(data[at:at + size])
    at += size
def named(load, name):
    head, code = load[:56], load[load.index(b"\0", 56) + 1:]
    body = head + name + b"\0" + code
    return body[:4] + struct.pack("<I", len(body)) + body[8:]
block = named(loads[1], b"stub ReportStubBlock<FixupPrecode>")
open(sys.argv[1], "r+b").truncate(0)
open(sys.argv[1], "wb").write(data[:40] + named(loads[0], b"stub GenerateStub<Prolog>") + block[:-struct.unpack_from("<Q", block, 40)[0]])
END
    run --separate-stderr perfjit inject -v -i sound.data -o out.data --perf-map ./perf-*.map
    exits 0
    says "repaired: 1 x stubs-unread: " " 0 parts of the input skipped"
    [[ $stderr != *"[unknown]"* ]] || complain "$stderr"
    named >names
    grep -qx 'stub ReportStubBlock<FixupPrecode>' names
    [ "$(grep -c '^method_' names)" -ge 15 ]
    run --separate-stderr perfjit check sound.data
    exits 3
    [[ $output == *"not in its dump, which .NET 10.0 ended at a block of stubs"*"DOTNET_PerfMapStubGranularity=2"* ]] || complain "$output"
    [[ $output != *"V8 keeps"* ]] || complain "$output"
}

# The dump is s390x's, the profile this machine's; perf takes symbols from an ELF file of any byte order.
@test "a big-endian dump with every kind of record makes a big-endian ELF file" {
    check big-endian 0 '?,alpha,beta,omega' " 0 parts of the input skipped"
    [ "$(lines_said)" -eq 1 ] || complain "more is said: $stderr"
    [ "$(machine_of_elf)" = "ELF64,IBM S/390" ]
    local so
    so=$(elf_files out.data.dso)
    readelf -h "$so" | grep -q "2's complement, big endian"
    readelf -sW "$so" | awk '$4 == "FUNC" { print $8 }' | sort | paste -sd, >symbols
    # gamma, which moved and became omega's code, may have been sampled in the 2 ms before its stamp, or not.
    [[ $(cat symbols) =~ ^alpha,beta,(gamma,)?omega(,omega)?$ ]] || complain "$(cat symbols)"
    run eu-elflint --gnu-ld "$so"
    [ "$output" = "No errors" ]
    # perfjit names its code, and knows its lines, as that of the recording itself.
    for file in perf.data out.data; do
        perfjit report -q --json "$file" | jq -c '[.functions[] | select(.kind == "jit") | [.name, .file, .line, .self]] | sort' >"$file.jit"
    done
    [ "$(jq length out.data.jit)" = 3 ]
    same out.data.jit perf.data.jit
    # Unwind tables are in the files of bodies that stand apart.
    perfjit inject -q -i perf.data -o apart.data --rows body
    so=$(elf_files apart.data.dso)
    readelf --debug-dump=frames "$so" 2>frames.err | grep -q 'DW_CFA_def_cfa: r15.* ofs 160'
    [ ! -s frames.err ]
    perfjit dump --json dump/jit-*.dump | jq -s -e '.[0].byte_order == "big" and (map(.wrong, .quirks) | all(. == null)) and
        (map(.type) == [null, "FILLER", "CODE_DEBUG_INFO", "CODE_UNWINDING_INFO", "CODE_LOAD", "CODE_LOAD", "CODE_LOAD", "CODE_LOAD",
            "CODE_MOVE", "CODE_UNLOAD", "CODE_CLOSE"]) and .[2].entries[0].line == 258'
}

@test "a name of 100000 bytes is kept, and perf can read it" {
    check long-name 0 "?,alpha,$(printf 'b%.0s' {1..100000}),gamma"
}

# shape SHAPE QUIRK...: unwind_shapes' tables; that their chains are whole, unwind.bats shows.
shape() {
    local quirk
    recording "shape-$1" record perf.data -F 200 --call-graph dwarf,1024 "$BUILD/producers/unwind_shapes" "$1" dump 0.2
    run --separate-stderr perfjit inject -v -i perf.data -o out.data
    exits 0
    shift
    for quirk in "$@"; do
        says "$quirk"
    done
    [ "$(grep -c '^perfjit: repaired: [0-9]* x ' <<<"$stderr")" -eq $# ] || complain "more or less than $*: $stderr"
}

@test "unwind tables: every shape is told by its quirks" {
    shape frame-first
    shape header-first "4 x hdr-first"
    shape mapped-size-0 "4 x mapped-size-0"
    shape no-end "4 x frame-no-end"
    shape absolute-header "1 x hdr-first" "1 x hdr-no-table" "1 x frame-elsewhere" "1 x unwind-shared"
    shape one-blob "1 x hdr-absent" "1 x frame-elsewhere" "1 x unwind-shared"
    shape blobs-swapped "x unwind-far"
    shape empty-header "4 x unwind-empty"
    run --separate-stderr perfjit inject -i perf.data -o out.data
    [[ $stderr != *repaired:* ]] || complain "what V8 does in each dump is told: $stderr"
}

@test "own dumps have no quirks: tinyjit's, and those of many functions" {
    local name
    for name in tinyjit functions; do
        sound_recording $name
        run --separate-stderr perfjit inject -i sound.data -o out.data
        exits 0
        [[ $stderr != *repaired* ]] || complain "$stderr"
    done
}

# The quirks of unwind tables have their recipes in unwind_shapes; here they are named by the test above.  The quirks of source
# lines have their recipes in line_shapes and their tests in lines.bats.
@test "docs/quirks.md is what the command says, and each quirk has a recipe and a test" {
    perfjit inject --list-quirks >list
    sed '1,/^## The list$/d' "$here/../../docs/quirks.md" | tail -n +2 >documented
    same documented list
    sed -n 's/^### //p' list | sort >ids
    [ "$(uniq -d ids)" = "" ]
    "$BUILD/producers/quirks" --names >recipes
    local id
    while IFS= read -r id; do
        ! grep -qE "says .*x $id\b" "$here/lines.bats" || continue
        grep -qx "$id" recipes || grep -qE "^ *shape .*x $id" "$here/quirks.bats" || complain "no recipe for $id"
        grep -qE "(check|repaired|usual|x) $id\b" "$here/quirks.bats" || complain "no test of $id"
    done <ids
}

@test "perfjit dump shows the quirks of header and records, as text and as JSON" {
    "$BUILD/producers/quirks" header-version dump 0
    run perfjit dump dump/jit-*.dump
    [ "$status" -eq 0 ]
    [[ ${lines[0]} == *" quirks=header-version" ]]
    rm dump/*
    "$BUILD/producers/quirks" name-padded dump 0
    perfjit dump --json dump/jit-*.dump >json
    jq -s -e '[.[].quirks] == [null, null, ["name-padded"], null]' json
    rm dump/*
    "$BUILD/producers/quirks" record-torn dump 0
    run --separate-stderr perfjit dump dump/jit-*.dump
    exits 3
    [[ ${lines[2]} == *'name="beta" code="absent" quirks=record-torn' ]]
    [[ ${lines[3]} == *'name="gamma"'* ]]
}
