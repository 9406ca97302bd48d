#!/usr/bin/env bats
# Whole stacks through tinyjit's code, from C to C: by unwind tables, with --no-frame-pointer, and by frame pointers.
#
# Two judges.  chain_check (tests/producers/chain_check.c) knows from a script who can call whom.  exact_chains knows the
# one stack that known.tj has if nothing is inlined.  At least 99.5 % of the chains must be right.
#
# Frame pointers can't give more than they have: where the innermost function has not set rbp, or has it no more, its caller is
# missing.  Such chains are counted as "skipped".  They are good if they are right otherwise.
load helper
load native_programs

DEPTH=31
seconds=3
[ "$RECORDINGS" = live ] && [ -z "${BRIEF:-}" ] || seconds=0.5

setup_file() {
    require_perf || return 0
    cd "$BATS_FILE_TMPDIR" || return
    known_script $DEPTH >known.tj
    known_script 700 >deep.tj
    # perf keeps 127 frames of a chain of frame pointers.
    sed 's/repeat(@is_even, 1000, 1500)/repeat(@is_even, 60, 25000)/' "$here/../../examples/tinyjit/demo.tj" >demo.tj
    # Nothing is forgotten, so that with one tier nothing is freed.
    sed '/forget/s/{.*}/{ }/' demo.tj >keep.tj
    stacks known-dwarf known.tj dwarf,8192 --no-frame-pointer --no-inline
    stacks known-fp known.tj fp --no-inline
    # Few calls: hardly a sample falls where a frame pointer is not set yet, or no more.
    sed 's/i % 64 == 0/i % 8192 == 0/' known.tj >loop.tj
    stacks loop-fp loop.tj fp --no-inline
    stacks inlined-dwarf known.tj dwarf,8192 --no-frame-pointer --tier2-after 0
    stacks tier1-dwarf keep.tj dwarf,8192 --no-frame-pointer --no-tier2
    stacks tier2-dwarf keep.tj dwarf,8192 --no-frame-pointer --tier2-after 0
    stacks demo-dwarf demo.tj dwarf,8192 --no-frame-pointer
    stacks demo-fp demo.tj fp
}

setup() {
    require_perf
    cd "$BATS_FILE_TMPDIR"
}

# main -> a -> b -> c -> down, $1 + 1 times -> spin -> native_mix
known_script() {
    cat <<END
fn spin(n) {
    var i = 0;
    while i < n { i = i + 1; if i % 64 == 0 { native_mix(i); } }
    return i;
}
fn down(n) { if n == 0 { return spin(200000); } return 1 + down(n - 1); }
fn c(x) { return 2 * down(x) + 1; }
fn b(x) { var y = x; y = y + c(x); return y; }
fn a() { return 1 + (2 + b($1)); }
fn main() { return a(); }
END
}

# perfjit's output for recording NAME: with stacks kept for perf to unwind, in both layouts; and with stacks that it unwinds
# itself.  In make check only the demo's in both layouts.
forms_of() {
    [ -n "${BRIEF:-}" ] && [[ $1 != demo-* ]] && echo image || echo image function
    [[ $1 != *-dwarf ]] || echo unwound
}

# stacks NAME SCRIPT CALL-GRAPH OPTION...: NAME.data and, from perfjit, NAME.FORM.data of each form
stacks() {
    local name=$1
    recording "$name" record_stacks "$@"
    for form in $(forms_of "$name"); do
        case $form in
        unwound) perfjit inject -q --inlines dwarf -i "$name.data" -o "$name.$form.data" ;;
        *) perfjit inject -q -i "$name.data" -o "$name.$form.data" --layout $form --stacks keep ;;
        esac
    done
}

record_stacks() { # as stacks
    local name=$1 script=$2 graph=$3
    shift 3
    PERFJIT=dump JITDUMPDIR=$PWD perf record -q -k mono -e cpu-clock:u -F "${F:-1000}" --call-graph "$graph" -o "$name.data" \
        "$BUILD/tinyjit" "$@" --dump-code "$name.code" --seconds $seconds "$script" >"$name.out"
    # The inlined calls are the same each time.  Writing it takes time in the C library, which has no frame pointers: not in
    # the run that is recorded.
    "$BUILD/tinyjit" "$@" --inline-log "$name.inlines" --repeat 250 "$script" >/dev/null
}

# Counts as chain_check prints them, to stdout and as a line of the test's.
say() {
    echo "# $*" >&3
}

# mostly_right NAME "chains N right N skipped N wrong N others N"
mostly_right() {
    local name=$1 words
    read -ra words <<<"$2"
    say "$name: $2"
    [ "${words[1]}" -gt 200 ] || complain "$name: only ${words[1]} chains"
    [ $(((words[3] + words[5]) * 1000)) -ge $((words[1] * 995)) ] || complain "$name: under 99.5 %: $2"
}

check_chains() { # NAME SCRIPT [CODE]
    local name=$1
    shift
    for form in $(forms_of "$name"); do
        mostly_right "$name, $form" "$(tinyjit_chains "$name.$form.data" | "$BUILD/producers/chain_check" -i "$name.inlines" "$@")"
    done
}

# inlined NAME SCRIPT: in at least a tenth of the chains calls are missing that were inlined; without the log of these, the
# chains are impossible.
check_inlined() {
    local words with without
    with=$(tinyjit_chains "$1.image.data" | "$BUILD/producers/chain_check" -i "$1.inlines" "$2")
    without=$(tinyjit_chains "$1.image.data" | "$BUILD/producers/chain_check" "$2" 2>/dev/null)
    say "$1: $with; without the log: $without"
    read -ra words <<<"$with"
    [ $((words[11] * 10)) -ge "${words[1]}" ] || complain "$1: hardly a call is inlined"
    read -ra words <<<"$without"
    [ $((words[7] * 10)) -ge "${words[1]}" ] || complain "$1: chains are right without what is inlined"
}

# exact_chains DEPTH FP: of the samples in compiled code or below it, how many have known.tj's stack above them?
exact_chains() {
    awk -v depth="$1" -v fp="$2" '
        BEGIN {
            RS = ""; FS = "\n"
            full[++count] = "spin"
            for (i = 0; i <= depth; i++) full[++count] = "down"
            full[++count] = "c"; full[++count] = "b"; full[++count] = "a"; full[++count] = "main"; full[++count] = "enter"
        }
        # Whether the names from FROM on are the outer end of the full chain.
        function outer_end(from,  i) {
            for (i = from; i <= length_; i++) if (names[i] != full[count - length_ + i]) return 0
            return 1
        }
        {
            length_ = 0
            for (i = 1; i <= NF; i++) {
                if ($i !~ / tj::/ || $i ~ / tj::\[stub\] compile/) continue
                name = $i; sub(/.* tj::/, "", name); sub(/\+0x.*/, "", name); sub(/^\[stub\] /, "", name); sub(/ .*/, "", name)
                names[++length_] = name
            }
            if (!length_) next
            chains++
            whole += length_ == count
            if (length_ <= count && outer_end(1)) right++
            else if (fp && length_ < count && outer_end(2) && names[1] == full[count - length_]) skipped++
            else wrong++
        }
        END { printf "chains %d right %d skipped %d wrong %d whole %d\n", chains, right, skipped, wrong, whole }'
}

check_exact() { # NAME DEPTH FP
    for form in $(forms_of "$1"); do
        mostly_right "$1, $form" "$(tinyjit_chains "$1.$form.data" | exact_chains "$2" "$3")"
    done
}

# bats test_tags=both
@test "stacks: unwind tables give the one stack that can be" {
    check_exact known-dwarf $DEPTH 0
    check_chains known-dwarf known.tj
}

# bats test_tags=all
@test "stacks: and through 700 frames" {
    F=200 stacks deep-dwarf deep.tj dwarf,65528 --no-frame-pointer --no-inline
    check_exact deep-dwarf 700 0
    check_chains deep-dwarf deep.tj
}

# bats test_tags=both
@test "stacks: frame pointers give the one stack that can be" {
    check_exact known-fp $DEPTH 1
    check_chains known-fp known.tj known-fp.code
}

# Frames that frame pointers do not show are not counted as good here: 99.5 % are whole, to the last frame.
@test "stacks: frame pointers give whole stacks of code that loops" {
    check_exact loop-fp $DEPTH 0
}

@test "stacks: unwind tables give whole stacks of the demo" {
    check_chains tier1-dwarf keep.tj
    check_chains tier2-dwarf keep.tj
}

@test "stacks: from inlined functions on, too" {
    check_chains inlined-dwarf known.tj
    check_inlined inlined-dwarf known.tj
    check_inlined tier2-dwarf keep.tj
}

# libunwind keeps its results for an address, and perf 6.1 does not report to it that the code there is another by now.
# perfjit makes it forget (inject/merge/unwinder_reset.h).
@test "stacks: unwind tables give whole stacks where addresses are used again" {
    check_chains demo-dwarf demo.tj
}

@test "stacks: frame pointers give whole stacks of the demo" {
    check_chains demo-fp demo.tj demo-fp.code
}
