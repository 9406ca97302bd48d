# perf's names as the judge of perfjit's.  `load perfs_names` after helper.
#
# At the recording, perf inject --jit or perf's own reading of the perf map names the frames.  These are stored with it:
# frames.leaf and frames.chain.  A later reader of the recording compares them with perf's output for perfjit's profile.

# ---- Where it is recorded ----

# process_of DATA: the one that has the most samples.  No shell tells it, which would become the program: for what is executed so, perf
# may have unwound stacks with the shell's libraries.
process_of() {
    perf script -i "$1" -F pid -G 2>/dev/null | sort | uniq -c | sort -n | awk 'END { print $2 }'
}

# perf inject leaves its ELF files beside the dump: in this directory, in /tmp or below FOLDER.
by_perf_inject() { # [DATA [FOLDER]]
    local status=0
    perf inject --jit -i "${1:-perf.data}" -o inject.data 2>"$BATS_TEST_TMPDIR/inject.err" || status=$?
    [ $status -eq 0 ] || complain "$(tail -3 "$BATS_TEST_TMPDIR/inject.err")"
    by_perfs_own inject.data
    rm inject.data
    find . ${2:+"$2"} ! -path "*/home/*" -type f -name "jitted-$(process_of perf.data)-*.so" -delete
    find /tmp -maxdepth 1 -name "jitted-$(process_of perf.data)-*.so" -delete
}

by_perfs_own() { # [DATA]
    local of
    for of in leaf chain; do
        frames "${1:-perf.data}" $of >"$BATS_TEST_TMPDIR/perf.$of"
        jit_frames <"$BATS_TEST_TMPDIR/perf.$of" >frames.$of
    done
    # The map that perf inject adds for a function has room for its tables, and may reach over the begin of the next function.
    awk '/\[unknown\] .*\/jitted-[0-9]+-[0-9]+\.so$/ { print $2 }' "$BATS_TEST_TMPDIR"/perf.{leaf,chain} | sort -u >overlaid
}

# judged_within FILE: perf.data's user stacks are unwound by tables; those that perf has whole are judged.  In a stored recording
# only stacks through FILE alone are judged.  That file is here, and its tables are kept.
judged_within() {
    through_others "$BATS_TEST_TMPDIR/perf.chain" "$1" >through_others
    awk '$2 != time && time && last !~ / _start\+/ { print time } { time = $2; last = $0 }' "$BATS_TEST_TMPDIR/perf.chain" >cut_short
    [ "$RECORDINGS" = live ] || keep_tables "$1"
}

# through_others FRAMES FILE: the times of the samples in whose stacks a frame of another file than FILE is nearer than one in JIT code.
through_others() {
    awk -v file="$2" '
        $3 == 0 { through = 0 }
        $1 == "jit" && through { print $2; through = 0 }
        $1 == "other" && index($0, "/" file) == 0 && !/ \[kernel/ { through = 1 }' "$1"
}

# keep_tables ELF_FILE: the rest becomes zeros, where it stands.
keep_tables() {
    local name type offset size
    readelf -SW "$1" | sed -nE 's/^ *\[ *[0-9]+\] (\.[^ ]+) +([A-Z_]+) +[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+) .*/\1 \2 \3 \4/p' >sections
    while read -r name type offset size; do
        case $name/$type in .eh_frame* | .note* | .dynsym/* | .dynstr/* | .shstrtab/* | */NOBITS) continue ;; esac
        dd if=/dev/zero of="$1" conv=notrunc bs=65536 oflag=seek_bytes iflag=count_bytes,fullblock seek=$((16#$offset)) count=$((16#$size)) status=none
    done <sections
    rm sections
}

# ---- Where it is read ----

# frames DATA leaf|chain: a line for each frame: "jit" or "other", time, depth, address, symbol with offset, and for other frames
# the DSO.  The address of a frame of a call chain is the one in the DSO, as perf prints it.  For JIT code it depends on the
# layout, and is left out.
frames() {
    local fields=time,ip,sym,symoff,dso chains=1
    [ "$2" = chain ] || fields="$fields -G" chains=0
    # shellcheck disable=SC2086 # two words
    perf script -i "$1" -F $fields --ns --no-inline 2>/dev/null | awk -v chains=$chains '
        $1 ~ /^[0-9]+\.[0-9]+:$/ { time = $1; depth = 0; sub(/^ *[0-9.]+: */, "") }
        NF == 0 { next }
        {
            dso = $0; sub(/.* \(/, "", dso); sub(/\)$/, "", dso)
            frame = substr($0, 1, length($0) - length(dso) - 3)
            sub(/^[ \t]+/, "", frame)
            jit = dso ~ /\/jitted-[0-9]+-[0-9]+\.so$|\.dso\/.*jit-[^\/]*\.so$|^\/tmp\/perf-[0-9]+\.map$/ && frame !~ / \[unknown\]$/
            if (jit && chains) sub(/^[^ ]+ /, "", frame)
            print jit ? "jit" : "other", time, depth++, frame, jit ? "" : dso
        }'
}

# jit_frames: of what frames printed, without callers that are the begin of a function.  No call returns there.  The kernel took
# rbp's value for a caller, in compiled code that uses rbp for other things, as while lli finishes the function.  perf inject
# names it from the load on, perfjit from the mapping of the memory on.
jit_frames() {
    awk '/^jit/ && !/^jit [^ ]+ [1-9][0-9]* .*\+0x0 *$/'
}

layouts="image function" # that are compared; kept is the layout image, with stacks that perf unwinds

# injected LAYOUT: LAYOUT.data, with a row for each body, as perf inject has: offsets are those of the body.
injected() {
    local options=(--layout "$1")
    [ "$1" != kept ] || options=(--stacks keep)
    [ -e "$1.data" ] || perfjit inject -q -i perf.data -o "$1.data" "${options[@]}" --rows body
}

# left FRAMES: without those of which perf's are no judge.
left() {
    if [ -e cut_short ]; then
        awk 'FILENAME == "cut_short" { left_out[$1]; next } !($2 in left_out)' cut_short "$1" | unstored
    else
        cat "$1"
    fi
}

# unstored: without the samples whose stacks go through files that are not stored.
unstored() {
    if [ "$RECORDINGS" = stored ]; then
        grep -vFf through_others || true
    else
        cat
    fi
}

# without_early FRAMES WANTED: FRAMES loses frames that only it has, of functions whose LOAD, in `loads`, is up to 10 ms younger.
# The reason is that perf inject names a function from its LOAD on, and it may run before it is logged.  It loses, too, those of
# functions that were logged before, at the times in `overlaid`.
without_early() {
    sort "$2" >wanted.sorted
    sort "$1" | comm -23 - wanted.sorted >only.here
    [ -e overlaid ] || : >overlaid # a recording from before
    awk 'FILENAME == "overlaid" { overlaid[$1]; next }
        FILENAME == "loads" { at = $1; sub(/^[^ ]+ /, ""); times[$0] = times[$0] " " at; next }
        {
            name = $0
            sub(/^jit [^ ]+ [0-9]+ ([0-9a-f]+ )?/, "", name)
            sub(/\+0x[0-9a-f]+ *$/, "", name)
            count = split(times[name], load)
            for (i = 1; i <= count; i++)
                if ((load[i] > $2 + 0 && load[i] < $2 + 0.01) || ($2 in overlaid && load[i] < $2 + 0)) { print; next }
        }' overlaid loads only.here >early
    awk 'FILENAME == "early" { early[$0]; next } !($0 in early)' early "$1" >later
    mv later "$1"
}

# named leaf|chain PATTERN N: in all $layouts the frames in JIT code are perf's, and N of them match PATTERN.
named() {
    local layout
    for layout in $layouts; do
        injected $layout
        frames $layout.data "$1" >"$layout.$1"
        jit_frames <"$layout.$1" >jit
        [ ! -e loads ] || without_early jit "frames.$1"
        same <(left jit) <(left "frames.$1")
    done
    # The frames that perf has of a stack without its end are there.
    [ ! -e cut_short ] || [ -z "$(grep -Ff cut_short "frames.$1" | unstored | sort | comm -23 - <(sort jit))" ]
    [ "$(grep -cE "$2" jit)" -ge "$3" ] || complain "$(grep -cE "$2" jit) frames of $2"
}

# others_as_recorded leaf|chain: all other frames, but for the times and depths at which JIT frames stand now.  After `named`.
others_as_recorded() {
    local layout
    frames perf.data "$1" >before
    for layout in $layouts; do
        awk 'NR == FNR { if ($1 == "jit") taken[$2 $3]; next } $1 != "jit" && !($2 $3 in taken)' "$layout.$1" before >before.other
        grep '^other' "$layout.$1" >other
        same other before.other
    done
}

