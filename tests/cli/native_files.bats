#!/usr/bin/env bats
# Which file a name is taken from, and that a hostile file costs little: perfjit report, flamegraph, export, check and diff.
#
# The recordings are made_recording.py's.  The judges are nm, by which it places the samples, and perf script.
load helper

setup() {
    cd "$BATS_TEST_TMPDIR"
    printf 'int one(int a) { return a + 1; }\nint two(int a) { return one(a) * 2; }\nvoid _start(void) { for (;;) two(1); }\n' >work.c
}

# program OUT OPTION...: a program that no library is needed for.
program() {
    gcc -O1 -nostdlib -static -fno-pic -no-pie -fno-inline -o "$1" "${@:2}" work.c
}

made() {
    /usr/bin/python3 "$here"/made_recording.py "$@"
}

id_of() {
    readelf -nW "$1" | sed -n 's/.*Build ID: //p'
}

# named RECORDING NAME [OPTION...]: each view has samples in NAME, and perf has, if it is asked.
named() {
    perfjit report -q -n 0 "${@:3}" "$1" >rows
    grep -qE " $2( |$)" rows || complain "report: $(cat rows)"
    rm -f page.html folded
    perfjit flamegraph -q "${@:3}" -o page.html "$1"
    grep -q "\"$2\"" <(data page.html) || complain "flamegraph: no $2"
    perfjit export -q "${@:3}" -f folded "$1" >folded
    grep -qE ";$2 [0-9]" folded || complain "export: $(cat folded)"
}

# unnamed RECORDING NAME [OPTION...]: none has.
unnamed() {
    perfjit report -q -n 0 "${@:3}" "$1" >rows
    ! grep -q "$2" rows || complain "report: $(cat rows)"
    perfjit export -q "${@:3}" -f folded "$1" >folded
    ! grep -q "$2" folded || complain "export: $(cat folded)"
}

# --- 32-bit programs ---

@test "a 32-bit program on a machine of 64 bits: names, lines, a debug file, .gnu_debugdata, a build-id; perf's names" {
    program narrow -m32 -g -Wl,--build-id
    made narrow.data map=narrow at=narrow:one at=narrow:two id=narrow
    named narrow.data one
    grep -q 'two (.*/work.c:2)' rows || complain "$(cat rows)"
    perf script -F ip,sym -i narrow.data >theirs
    grep -q ' one$' theirs
    objcopy --only-keep-debug narrow narrow.debug
    strip -o apart narrow
    objcopy --add-gnu-debuglink=narrow.debug apart
    made apart.data map=apart at=narrow:one
    named apart.data one
    rm narrow.debug
    unnamed apart.data ' one '
    nm narrow | wc -l >count
    strip --strip-debug -o mini narrow
    xz -k mini
    objcopy --add-section .gnu_debugdata=mini.xz --remove-section .gnu_debuglink apart packed
    made packed.data map=packed at=narrow:one
    named packed.data one
    program narrow -m32 -g -Wl,--build-id -Done=other
    unnamed narrow.data other
    run --separate-stderr perfjit report narrow.data
    says "narrow: rebuilt since the recording"
}

@test "a program for Arm, whose Thumb functions have odd addresses" {
    program arm -m32
    /usr/bin/python3 - arm <<'END'
import struct, subprocess, sys
data = bytearray(open(sys.argv[1], "rb").read())
struct.pack_into("<H", data, 18, 40)  # EM_ARM
names = subprocess.run(["readelf", "-SW", sys.argv[1]], check=True, stdout=subprocess.PIPE, text=True).stdout
table = next(line.replace("[ ", "[").split() for line in names.splitlines() if " .symtab " in line)
start, size = int(table[4], 16), int(table[5], 16)
for place in range(start, start + size, 16):
    name, value, length, info = struct.unpack_from("<IIIB", data, place)
    if info & 15 == 2:  # STT_FUNC
        struct.pack_into("<I", data, place + 4, value | 1)
open(sys.argv[1], "wb").write(data)
END
    nm arm | grep -qi '[13579bdf] t one$'
    made arm.data arch=aarch64 map=arm "address=$(nm arm | awk '$3 == "one" { print substr($1, 1, 7) }')0" at=arm:two
    perf script -F ip,sym -i arm.data | grep -q one || complain "perf does not name it"
    named arm.data one
}

# --- Where a name in a file may lead ---

# common LINK: the program `shared`, with debug information of which a part is in another file, which it calls LINK.
common() {
    program shared -g -Wl,--build-id
    cp shared other
    rm -f rest
    dwz -m rest -M "$1" shared other
    mkdir -p root/usr/lib/debug/.dwz
}

# A sample in a call of twist that was inlined in one.
made_in_twist() {
    made shared.data map=shared "address=$(printf %x $((0x$(nm shared | sed -n 's/ T one//p') + 8)))" id=shared
}

@test "what dwz moved to another file is read below /usr/lib/debug alone, by its name and by its build-id" {
    printf 'struct pair { int first, second; };\nstatic inline __attribute__((always_inline)) int twist(struct pair p) { return p.first * 31 + p.second; }\nvolatile int v;\n__attribute__((noinline)) int one(int a) { struct pair p = {a, v}; return twist(p); }\n__attribute__((noinline)) int two(int a) { struct pair p = {v, a}; return twist(p) + one(a); }\nvoid _start(void) { for (;;) v = two(1); }\n' >work.c
    common /usr/lib/debug/.dwz/rest
    readelf -SW shared | grep -q gnu_debugaltlink
    made_in_twist
    id=$(id_of rest)
    mkdir -p "root/usr/lib/debug/.build-id/${id:0:2}"
    for at in .dwz/rest ".build-id/${id:0:2}/${id:2}.debug"; do
        cp rest "root/usr/lib/debug/$at"
        perfjit report -q -n 0 --root root shared.data >rows
        grep -q ' twist ' rows || complain "$at: $(cat rows)"
        rm "root/usr/lib/debug/$at"
    done
    local watched=()
    ! command -v strace >/dev/null || watched=(strace -f -e trace=open,openat -o opened)
    for link in /dev/full "$PWD/fifo" "$PWD/rest" rest "/usr/lib/debug/../../../../../../..$PWD/rest" /usr/lib/debug/.dwz/out /usr/lib/debug/.dwz/fifo; do
        rm -rf root fifo
        common "$link"
        mkfifo fifo root/usr/lib/debug/.dwz/fifo
        ln -s "$PWD/rest" root/usr/lib/debug/.dwz/out
        made_in_twist
        : >opened # without strace: who opens a fifo waits
        "${watched[@]}" timeout 20 "$BUILD/perfjit" report -q -n 0 --root root shared.data >rows
        grep -q '^100.00%.* one ' rows || complain "$link: $(cat rows)"
        ! grep -E '"[^"]*(fifo|/rest|/dev/full|/out)"' opened || complain "$link is opened"
    done
}

@test "a debug file is a regular one below the directory in which it is looked for" {
    program work -g -Wl,--build-id=none
    objcopy --only-keep-debug work work.debug
    mkdir place elsewhere
    strip -o place/work work
    objcopy --add-gnu-debuglink=work.debug place/work
    made work.data map=place/work at=work:one
    cp work.debug place/
    named work.data one
    mv place/work.debug elsewhere
    ln -s ../elsewhere/work.debug place/work.debug
    unnamed work.data ' one '
    rm place/work.debug
    mkfifo place/work.debug
    timeout 20 "$BUILD/perfjit" report -q work.data
    mkdir -p "root/usr/lib/debug$PWD/place"
    mv elsewhere/work.debug "root/usr/lib/debug$PWD/place"
    named work.data one --root root
}

@test "libdebuginfod is never loaded" {
    program work -g
    strip work
    program twin
    made work.data map=work at=twin:one
    for words in "report -q" "check" "export -q -f folded"; do
        DEBUGINFOD_URLS=http://localhost:9 LD_DEBUG=files perfjit $words work.data >said 2>&1
        grep -q 'libdw' said
        ! grep -q 'debuginfod' said || complain "$words loads it"
    done
}

# --- Sections that are packed ---

@test "packed sections, by zlib, zstd and in the old way: lines and inlined calls as without" {
    program work -g
    made work.data map=work at=work:one at=work:two
    perfjit report -q -n 0 work.data >plain
    grep -q 'one (.*/work.c:1)' plain
    for kind in zlib-gnu zlib-gabi zstd; do
        for width in "" -m32; do
            program work -g $width
            objcopy --compress-debug-sections=$kind work work.packed
            readelf -SW work.packed | grep -qE '\.zdebug|[ 0-9]MS?C| C ' || complain "$kind packs nothing"
            mv work.packed work
            made work.data map=work at=work:one at=work:two
            perfjit report -q -n 0 work.data | diff plain - || complain "$kind $width"
        done
    done
}

# bomb SECTION KIND MIB: `work` with a SECTION that becomes so large.
bomb() {
    program work -g
    /usr/bin/python3 - "$2" "$3" >section <<'END'
import struct, sys, zlib
kind, size, block = sys.argv[1], int(sys.argv[2]) << 20, bytes(1 << 20)
# A MiB of zeros is packed once: after a full flush the same bytes follow each other.  So Adler-32 of n zeros is n and 1.
packer = zlib.compressobj(9, zlib.DEFLATED, -15)
packed = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
stream = b"\x78\xda" + packed * (size >> 20) + packer.flush() + struct.pack(">HH", size % 65521, 1)
head = b"ZLIB" + struct.pack(">Q", size) if kind == "old" else struct.pack("<IIQQ", 1, 0, size, 1)
sys.stdout.buffer.write(head + stream)
END
    objcopy --remove-section "$1" work work.less
    objcopy --add-section "$1=section" --set-section-flags "$1=readonly" work.less work
    [ "$2" = old ] || /usr/bin/python3 - work "$1" <<'END'
import struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
start, = struct.unpack_from("<Q", data, 40)
count, names = struct.unpack_from("<HH", data, 60)
texts, = struct.unpack_from("<Q", data, start + 64 * names + 24)
for at in range(start, start + 64 * count, 64):
    name, = struct.unpack_from("<I", data, at)
    if data[texts + name:data.index(0, texts + name)].decode() == sys.argv[2]:
        struct.pack_into("<Q", data, at + 8, struct.unpack_from("<Q", data, at + 8)[0] | 0x800)
open(sys.argv[1], "wb").write(data)
END
}

# small SECTION MB: the report of work.data names `one`, in less memory than that.
small() {
    made work.data map=work at=work:one
    /usr/bin/python3 - "$BUILD/perfjit" report -q -n 0 work.data >rows 2>kilobytes <<'END'
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
END
    grep -q ' one ' rows || complain "$1: $(cat rows)"
    [ "$(cat kilobytes)" -lt "${2}000" ] || complain "$1: $(cat kilobytes) kB"
}

@test "a section that would become a gigabyte is left out, whichever it is" {
    for section in .debug_macro .debug_info .debug_str .debug_line .debug_frame; do
        bomb $section new 1024
        small $section 200
    done
    bomb .zdebug_str old 1024
    small .zdebug_str 200
    bomb .debug_macro new 48 # what no name needs is left out anyway
    small .debug_macro 40
}

# --- Files that are not the ones that ran ---

# changed TEXT: no view of work.data has a name from the file that is there now, and each says TEXT.
changed() {
    unnamed work.data ' other '
    for words in "report" "flamegraph -o page.html" "export -f folded" "check"; do
        rm -f page.html
        perfjit $words work.data >said 2>&1 || true
        grep -qE "$1" said || complain "$words: $(cat said)"
    done
}

@test "a program that was rebuilt since: no names, and both build-ids; perf's copy of the one that ran has them" {
    program work -Wl,--build-id
    made work.data map=work at=work:one id=work
    named work.data one
    cp work kept
    program work -Wl,--build-id -Done=other
    HOME=$PWD changed "work: rebuilt since the recording: its build-id is $(id_of work), the recorded one $(id_of kept)"
    HOME=$PWD perfjit report -q work.data >rows
    HOME=$PWD perfjit report work.data 2>/dev/null | grep -q 'unknown: most in work, which is not the file that ran'
    id=$(id_of kept)
    mkdir -p ".debug/.build-id/${id:0:2}/${id:2}"
    cp kept ".debug/.build-id/${id:0:2}/${id:2}/elf"
    HOME=$PWD named work.data one
    strip work
    objcopy --remove-section .note.gnu.build-id work
    rm -r .debug
    HOME=$PWD changed "work: rebuilt since the recording: its build-id is missing, the recorded one $id"
}

@test "a program without a build-id that was replaced, or written again, since: no names; one that was not has its names" {
    program work -Wl,--build-id=none
    made work.data map=work at=work:one wall
    named work.data one
    program new -Wl,--build-id=none -Done=other
    cp work kept
    cat new >work
    changed "work: changed since its last sample"
    touch -d "2000-01-01" work
    changed "work: changed since its last sample"
    mv kept work
    changed "work: replaced since it was mapped: its inode is [0-9]+, the recorded one [0-9]+"
}

# perf record has no build-id of a library of which it hit no function itself.
@test "a program with a build-id that the recording does not have: a link to it, and chmod, take no names; writing does" {
    program work -Wl,--build-id=sha1
    made work.data map=work at=work:one wall
    ln work linked
    chmod 700 work
    named work.data one
    program new -Wl,--build-id=sha1 -Done=other
    cat new >work
    changed "work: changed since its last sample"
}

@test "a program that was replaced while perf record ran: the build-id that it read at its end is another program's" {
    program work -Wl,--build-id
    made work.data map=work:12345 at=work:one id=work wall
    changed "work: replaced since it was mapped"
    made work.data wall map=work:12345 at=work:one id=work
    touch work # the same one was put there later
    named work.data one
}

# in_root: another program of the same name, below root.
in_root() {
    program work -Wl,--build-id -Done=other
    mkdir -p "root$PWD"
    mv work "root$PWD"
    program work -Wl,--build-id
}

# below_root: the recording of that one gets no name from the one here, which is the one that perf record read.
below_root() {
    unnamed work.data ' one '
    perfjit report work.data >rows 2>said || true
    grep -qE "$1" said || complain "$(cat said)"
    grep -q 'a chroot or in a container, name its root: --root DIR' said || complain "$(cat said)"
    named work.data other --root root
}

@test "a process with another root: the file of the same name here gives no names, though perf read its build-id; --root does" {
    in_root
    for wall in '' wall; do
        # shellcheck disable=SC2086 # a word or none
        made work.data $wall below=root map=work at=work:other id=work
        below_root 'work: replaced since it was mapped: its inode is [0-9]+, the recorded one [0-9]+'
    done
}

@test "the same on another device, and a copy that came later" {
    case $(stat -f -c %T .) in ext2/ext3 | xfs | tmpfs) ;; *) skip "on this file system devices are not told as the kernel records them" ;; esac
    in_root
    for wall in '' wall; do
        # shellcheck disable=SC2086 # a word or none
        made work.data $wall map=work:"$(stat -c %i work)":0:9999 at=work:one id=work
        changed 'work: the process saw another file there: on device 0:9999, here on [0-9]+:[0-9]+'
        unnamed work.data ' one '
    done
    touch work
    named work.data one
}

@test "two files of one name, with their build-ids in the maps: each names its own samples" {
    in_root
    made work.data map-id=work at=work:two at=work:one below=root map-id=work at=work:other at=work:other
    named work.data one --root root
    perfjit report -q -n 0 --root root work.data >rows
    grep -qE '^ *50.00% .* other ' rows && grep -qE '^ *25.00% .* one ' rows || complain "$(cat rows)"
    unnamed work.data ' other '
}

# --- Text in anonymous memory ---

# text_of FILE: FROM and TO of its text's pages.
text_of() {
    readelf -lW "$1" | awk '$1 == "LOAD" && / R E / { print $3, $6 }' | while read -r start size; do
        printf '%x %x\n' $((start & -4096)) $(((start + size + 4095) & -4096))
    done
}

@test "text that was moved to anonymous memory at the same addresses keeps its names" {
    program work
    read -r from to < <(text_of work)
    for name in //anon '[anon:text]' '/anon_hugepage (deleted)'; do
        made work.data map=work at=work:two memory=$from-$to:"$name" at=work:one memory=$from-$to:"$name" at=work:one
        named work.data one
        perfjit check work.data | grep -qE 'in programs and libraries +3$' || complain "$name: $(perfjit check work.data)"
    done
    made work.data map=work memory=$from-$to:/memfd:jit memory=$from-$to at=work:one
    unnamed work.data ' one '
    made work.data memory=$from-$to at=work:one map=work at=work:two
    perfjit report -q -n 0 work.data >rows
    grep -q ' two ' rows && ! grep -q ' one ' rows || complain "$(cat rows)"
}

@test "memory where a library's text was is the library's only if it looks like its text" {
    program work
    program library -Wl,-Ttext=0x800000
    read -r from to < <(text_of library)
    made work.data map=work map=library at=library:one memory=800000-$to at=library:two
    named work.data two
    made work.data map=work map=library at=library:one memory=800000-801000 at=library:two
    named work.data two
    printf '.section .text\n.fill 0x3000\n' >padding.s
    gcc -c -o padding.o padding.s
    program library -Wl,-Ttext=0x800000 padding.o
    read -r from to < <(text_of library)
    made work.data map=work map=library at=library:one memory=801000-803000 memory=800000-804000 at=library:two
    perfjit report -q -n 0 work.data >rows
    [ "$(grep -c ' one \| two ' rows)" = 1 ] || complain "$(cat rows)"
}
