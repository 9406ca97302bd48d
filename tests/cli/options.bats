# The inputs, outputs and messages of perfjit inject.
load helper

setup_file() {
    require_perf || return 0
    cd "$BATS_FILE_TMPDIR" || return
    sound_recording every-record
}

setup() {
    require_perf
    mkdir "$BATS_TEST_TMPDIR/work"
    cd "$BATS_TEST_TMPDIR/work"
    cp "$BATS_FILE_TMPDIR/sound.data" perf.data
}

# The profile DATA has the names of every_record, wherever it is read from.
has_names() {
    (cd / && samples "$1") | grep -q ' plain$'
}

@test "without options it reads perf.data and writes perf.jit.data and perf.jit.data.dso" {
    perfjit inject
    [ "$(find . -maxdepth 1 -mindepth 1 | sort | xargs)" = "./perf.data ./perf.jit.data ./perf.jit.data.dso" ]
    has_names "$PWD/perf.jit.data"
}

@test "each command takes its recording as perf does, -i FILE, and as FILE alone" {
    local command
    mv perf.data own.data
    perfjit inject -q own.data
    has_names "$PWD/own.jit.data"
    for command in report "flamegraph -o -" "export -f folded" check; do
        # shellcheck disable=SC2086 # words
        perfjit $command own.data >alone
        # shellcheck disable=SC2086 # words
        perfjit $command -i own.data >named
        same alone named
    done
    rm -r own.jit.data own.jit.data.dso
    perfjit inject -q -i not-there.data -i own.data # the last one counts
    has_names "$PWD/own.jit.data"
    run perfjit inject -q own.data -i own.data
    [ "$status" = 2 ]
}

@test "by default the output goes beside the input" {
    mkdir sub
    mv perf.data sub/recorded.data
    perfjit inject -i sub/recorded.data
    [ "$(find . -maxdepth 2 -mindepth 2 | sort | xargs)" = \
        "./sub/recorded.data ./sub/recorded.jit.data ./sub/recorded.jit.data.dso" ]
    has_names "$PWD/sub/recorded.jit.data"
}

# writes OUT INPUT: what inject -i INPUT writes is OUT and OUT.dso, and nothing else.
writes() {
    files . >../before
    perfjit inject -q -i "$2"
    has_names "$PWD/$1"
    rm -r "$1" "$1.dso"
    files . >../after
    same ../after ../before
}

@test "the output is named after the input: two recordings in a directory have an output each" {
    local recording
    for recording in own sub/own.data x.dat .data .hidden.data own.data.old; do
        mkdir -p sub
        cp perf.data "$recording"
        case $recording in
        *?.data) writes "${recording%.data}.jit.data" "$recording" ;;
        *) writes "$recording.jit.data" "$recording" ;;
        esac
    done
    cp perf.data own.data
    cp perf.data other.data
    perfjit inject -q -i own.data
    perfjit inject -q -i other.data
    has_names "$PWD/own.jit.data"
    has_names "$PWD/other.jit.data"
}

@test "a recording that is a directory, and a stream: where the output goes" {
    PERFJIT=dump JITDUMPDIR=$PWD recording threads record threads.data --threads "$BUILD/producers/every_record" 0.3
    [ -d threads.data ]
    writes threads.jit.data threads.data
    writes threads.jit.data threads.data/
    writes threads.jit.data ./threads.data//
    mv threads.data bare
    writes bare.jit.data bare/
    mkdir empty
    mv perf.data empty
    cd empty
    perfjit inject -q -i - <perf.data
    has_names "$PWD/perf.jit.data"
}

@test "-o names the output, and its directory of ELF files with it" {
    mkdir sub
    perfjit inject -o sub/out
    [ "$(find sub -maxdepth 1 -mindepth 1 | sort | xargs)" = "sub/out sub/out.dso" ]
    has_names "$PWD/sub/out"
}

@test "--dso-dir: a new directory, and none beside the output" {
    perfjit inject --dso-dir elf
    [ "$(find . -maxdepth 1 -mindepth 1 | sort | xargs)" = "./elf ./perf.data ./perf.jit.data" ]
    has_names "$PWD/perf.jit.data"
}

@test "--dso-dir: files that are in the directory stay, whatever their names" {
    mkdir elf
    touch elf/notes.txt elf/jit-1-0-00000000.so
    perfjit inject --dso-dir elf
    [ -e elf/notes.txt ]
    [ -e elf/jit-1-0-00000000.so ]
    has_names "$PWD/perf.jit.data"
    [ -z "$(find . -name '*.??????' -type d)" ]
}

@test "the default directory: the files of earlier runs go, others stay" {
    perfjit inject --layout function
    find perf.jit.data.dso -name '*.so' | sort >../before
    touch perf.jit.data.dso/notes.txt
    perfjit inject
    find perf.jit.data.dso -name '*.so' | sort >../after
    [ -e perf.jit.data.dso/notes.txt ]
    [ -z "$(comm -12 ../before ../after)" ]
    has_names "$PWD/perf.jit.data"
    [ "$(find . -maxdepth 1 -mindepth 1 | sort | xargs)" = "./perf.data ./perf.jit.data ./perf.jit.data.dso" ]
}

@test "--layout function: an ELF file for each function that ran, --layout image: fewer" {
    local functions images
    perfjit inject --layout function
    functions=$(find perf.jit.data.dso -name '*.so' | wc -l)
    perfjit inject --layout image
    images=$(find perf.jit.data.dso -name '*.so' | wc -l)
    [ "$functions" -ge 9 ]
    [ "$images" -le 3 ]
}

# every_record's odd names are repaired, which is a line of its own.
@test "nothing on stdout, and on stderr one line that counts" {
    local loads moves before after
    run --separate-stderr perfjit inject
    exits 0
    [ -z "$output" ]
    [ "${#stderr_lines[@]}" -eq 2 ]
    [ "${stderr_lines[0]}" = "perfjit: repaired: 1 x name-empty, 4 x name-unprintable; -v for details" ]
    [[ ${stderr_lines[1]} =~ ^perfjit:\ perf\.jit\.data:\ ([0-9]+)\ functions\ in\ ([0-9]+)\ images?,\ 0\ parts\ of\ the\ input\ skipped$ ]]
    local told=("${BASH_REMATCH[@]}")
    run --separate-stderr perfjit inject -v
    [[ $stderr =~ "mappings: "([0-9]+)" of JIT code added, "([0-9]+)" left out" ]]
    told+=("${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}")
    loads=$(perfjit dump --json "$(dumps_of perf.data)" | jq -s '[.[] | select(.type == "CODE_LOAD")] | length')
    moves=$(perfjit dump --json "$(dumps_of perf.data)" | jq -s '[.[] | select(.type == "CODE_MOVE")] | length')
    [ "${told[1]}" -eq $((loads + moves)) ]
    [ "${told[2]}" -eq "$(find perf.jit.data.dso -name '*.so' | wc -l)" ]
    before=$(maps perf.data | wc -l)
    after=$(maps perf.jit.data | wc -l)
    [ $((before + told[3] - told[4])) -eq "$after" ]
}

@test "-q: silent" {
    run --separate-stderr perfjit inject -q
    exits 0
    [ -z "$output$stderr" ]
    has_names "$PWD/perf.jit.data"
}

@test "-q: a failure is told all the same" {
    run --separate-stderr perfjit inject -q -i nowhere.data
    exits 1
    says nowhere.data
}

@test "-v: tells the dumps and the ELF files" {
    run --separate-stderr perfjit inject -v
    exits 0
    says "$(dumps_of perf.data)"
    for file in $(elf_files perf.jit.data.dso); do
        says "$PWD/$file"
    done
}

@test "-v and -q say nothing of the output itself" {
    perfjit inject -v -o verbose.data --dso-dir elf
    perfjit inject -q -o quiet.data --dso-dir elf
    cmp verbose.data quiet.data
}

# is_printable FILE: lines of UTF-8, and nothing that a terminal obeys.
is_printable() {
    ! grep -aqP '[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80\xae' "$1" || complain "raw: $(cat -v "$1")"
    iconv -f UTF-8 -t UTF-8 "$1" >"$1.converted" || complain "no UTF-8: $(cat -v "$1")"
}

evil=$'esc\e[31m bell\a c1\xc2\x9b31m rtl\xe2\x80\xae bad\xff\xfe'

record_evil() {
    local program=$'e\e[2J\a\xff'
    mkdir "$evil"
    cp "$BUILD/producers/every_record" "$program"
    PERFJIT=dump JITDUMPDIR=$PWD/$evil record evil.data "./$program" 0.2
    rm "$program"
}

# The user who runs a recorded program chooses its name and the place of its dump.
@test "names from a recording can't reach the terminal, whatever is said" {
    local dump
    recording evil record_evil
    perfjit inject -v -i evil.data -o "out$evil" 2>said
    grep -F 'read /' said | grep -qF '/esc\x1b[31m bell\x07 c1\xc2\x9b31m rtl\xe2\x80\xae bad\xff\xfe/jitdump-'
    is_printable said
    for dump in "$evil"/jitdump-*/jit-*.dump; do
        perfjit inject -v -i evil.data --jitdump "$dump" -o given.data 2>said
        is_printable said
        grep -qF 'bad\xff\xfe'"${dump#"$evil"}"': given by hand' said
    done
    perfjit check evil.data >said
    is_printable said
    grep -qF '(e\x1b[2J\x07\xff)' said
    perfjit check --json evil.data >said
    is_printable said
    for dump in "$evil"/jitdump-*/jit-*.dump; do
        truncate -s -5 "$dump"
        run -3 perfjit dump -v "$dump" >said 2>&1
        is_printable said
        run -3 perfjit check "$dump" >said 2>&1
        is_printable said
    done
    rm -r "$evil"
    for command in "inject -i" "inject -v -i" check; do
        run perfjit $command evil.data
        printf '%s\n' "$output" >said
        grep -qF 'esc\x1b[31m' said
        is_printable said
    done
    for command in inject check dump "dump a" "inject --layout" ''; do
        run perfjit $command "$evil"
        [ "$status" -ne 0 ]
        printf '%s\n' "$output" >said
        is_printable said
    done
}

@test "--jitdump for a dump that the profile names too: read once" {
    local dump
    dump=$(dumps_of perf.data)
    run --separate-stderr perfjit inject -v --jitdump "$dump" --jitdump "$dump"
    exits 0
    [ "$(grep -c ": read " <<<"$stderr")" -eq 1 ]
    mv perf.jit.data given.data
    perfjit inject
    cmp given.data perf.jit.data
}

@test "a recording that was injected already, by perfjit or by perf: 1, and it is said" {
    perfjit inject -o once.data
    run --separate-stderr perfjit inject -i once.data -o twice.data
    exits 1
    says "once.data: has been injected already" "once.data.dso/" "/jit-" "as perf record wrote it"
    cp "$BATS_FILE_TMPDIR/theirs.data" .
    run --separate-stderr perfjit inject -i theirs.data -o twice.data
    exits 1
    says "theirs.data: has been injected already" "/jitted-"
    [ ! -e twice.data ]
}

@test "--root: what is no directory is not taken for this machine's root: 1" {
    touch file
    for root in missing file; do
        for command in "inject -o out.data" check; do
            run --separate-stderr perfjit $command --root "$root"
            exits 1
            says "--root $root: not a directory"
        done
    done
    [ ! -e out.data ]
}

@test "a recording that is not there: what to do, in words that fit each command" {
    local command
    for command in check inject report flamegraph; do
        run --separate-stderr perfjit $command missing.data
        exits 1
        says "missing.data: can't open it: No such file or directory; name another recording"
    done
}

# ---- Progress ----

# on_terminal COMMAND...: with standard error on a terminal; what it writes there, a line for each time it is drawn.
on_terminal() {
    script -qec "$(printf '%q ' "$@")" /dev/null </dev/null | tr '\r' '\n'
}

# An ELF file for each of 700 functions, and each is opened twice, 2 ms later than it could be: three seconds, on whatever disk.
long_run() {
    mkdir -p long
    [ -e long/perf.data ] || (cd long && PERFJIT=dump record perf.data "$BUILD/producers/many_functions" -n 700 -s 0.2)
    slowly=(strace -f --seccomp-bpf -qq -o /dev/null -e trace=openat -e inject=openat:delay_enter=2000 "$BUILD/perfjit")
}

# bats test_tags=live
@test "a long run shows its progress on a terminal, and wipes it" {
    long_run
    on_terminal "${slowly[@]}" inject --layout function -i long/perf.data >shown
    grep -qE 'perfjit: writing: [0-9]+ functions, [0-9]+ MB/s, [0-9]+ s left' shown
    [ "$(grep -c 's left' shown)" -gt 3 ]
    # The last line that is drawn is wiped before the findings and the summary are written.
    grep . shown | sed '1,/s left/d' | grep -v 's left' >after
    head -1 after | grep -qE $'^\e\\[Kperfjit: '
    tail -1 after | grep -q '700 functions in 700 images'
}

# bats test_tags=all
@test "no progress with -q, and none where standard error is no terminal" {
    long_run
    on_terminal "${slowly[@]}" inject -q --layout function -i long/perf.data >shown &
    "${slowly[@]}" inject --layout function -i long/perf.data -o other.data 2>said
    wait $!
    [ ! -s shown ]
    [ "$(wc -l <said)" -eq 1 ]
    ! grep -q $'\e' said || complain "it is there"
}

@test "a short run shows none" {
    local arguments
    with_root inject
    on_terminal "$BUILD/perfjit" "${arguments[@]}" >shown
    ! grep -q 's left' shown || complain "it is there"
}
