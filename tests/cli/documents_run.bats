# The code blocks of README.md and docs/ run, and what they say is true.
#
# A block's language says what it is: `sh` and `console` are run, `c` is compiled, `text` is output.  A comment in front of a block
# says how it is run:
#
#     <!-- live: COMMAND... -->         it records: make check-live runs it, where these commands are
#     <!-- on FOLDER/NAME: FILE -->     perf.data is FILE of that stored recording, not sound/tinyjit's
#     <!-- not run: WHY -->             only its syntax is checked
load helper

setup() {
    require_perf
    root=$(cd "$here/../.." && pwd)
    blocks=$BATS_TEST_TMPDIR/blocks
    mkdir "$blocks" "$BATS_TEST_TMPDIR/place"
    cd "$root"
    awk -v into="$blocks" '
        FNR == 1 { name = FILENAME; gsub("/", "-", name); how = ""; inside = 0 }
        inside && /^```$/ { inside = 0; how = ""; close(file); next }
        inside { print >file; next }
        /^```/ { inside = 1; language = substr($0, 4); file = into "/" name ":" FNR "." (language == "" ? "none" : language)
                 print how >(file ".how"); close(file ".how"); printf "" >file; next }
        /^<!-- (live:|on|not run:) .* -->$/ { how = substr($0, 6, length($0) - 9); next }
        { how = "" }' README.md docs/*.md
    cd "$BATS_TEST_TMPDIR/place"
}

# how BLOCK: the comment in front of it.
how() {
    cat "$1.how"
}

# with_recording NAME DATA: perf.data is DATA of this stored recording.  If it has a dump of libjitdump's, perfjit.perf.data is the
# same, injected, jit-4711.dump is the dump, and cut.dump its first half.
with_recording() {
    local dump
    stored_alone
    recording "$1"
    [ "$2" = perf.data ] || cp "$2" perf.data
    for dump in jitdump-*/jit-*.dump; do
        [ -e "$dump" ] || continue
        perfjit inject -q -o perfjit.perf.data
        cp "$dump" jit-4711.dump
        head -c $(($(stat -c %s "$dump") / 2)) "$dump" >cut.dump
    done
}

# as_written GOT WANTED: the same but for numbers, and for where most of what is unknown is: only root sees the kernel's names.  A
# line `...` stands for any lines.
as_written() {
    python3 - "$1" "$2" <<'END' || { diff "$1" "$2" >&2; return 1; }
import re, sys
def plain(text):
    text = re.sub(r" +", " ", re.sub(r"(0x)?[0-9a-f]*[0-9][0-9a-f.]*", "N", text))
    return re.sub(r"(N % unknown): .*", r"\1", text)
got, wanted = (plain(open(path).read()) for path in sys.argv[1:])
sys.exit(not re.fullmatch("".join("(.*\n)*" if line == "..." else re.escape(line) + "\n" for line in wanted.splitlines()), got))
END
}

# run_block BLOCK COMMAND...: what COMMAND prepares and then the block, in a place of its own, until something fails.
run_block() {
    local place=$BATS_TEST_TMPDIR/place/${1##*/}.d
    mkdir "$place"
    cd "$place"
    "${@:2}"
    {
        declare -p BUILD RECORDINGS recorded_root own_pids BATS_TEST_TMPDIR
        declare -f perfjit perf with_root complain
        [[ $1 != *.console ]] || sed -n 's/^\$ //p' "$1"
        [[ $1 != *.sh ]] || cat "$1"
    } >commands
    # perf record writes into a pipe where standard output is one.
    status=0
    bash -e commands </dev/null >output 2>&1 || status=$?
    cd ..
}

# ---- Blocks ----

@test "each block of a document has a language, and no command stands outside of one" {
    [ "$(find "$blocks" -name '*.sh' | wc -l)" -ge 15 ]
    for block in "$blocks"/*; do
        [[ $block == *.how || $block == *.@(sh|console|c|text) ]] || complain "${block##*/}: which language?"
    done
    ! grep -nE '^    (\$ )?(perfjit|perf|make|cc|curl|cd|PERFJIT=[a-z]*) ' "$root/README.md" "$root"/docs/*.md || complain "commands without \`\`\`sh"
}

@test "each shell block is right by its syntax" {
    for block in "$blocks"/*.sh; do bash -n "$block" || complain "${block##*/}"; done
}

@test "the shell blocks that need no recording of their own run" {
    tried=0
    for block in "$blocks"/*.sh; do
        case $(how "$block") in
        "not run: "* | "live: "*) continue ;;
        esac
        run_block "$block" with_recording sound/tinyjit sound.data
        [ "$status" = 0 ] || complain "${block##*/}: status $status: $(tail -5 "${block##*/}.d/output")"
        tried=$((tried + 1))
    done
    [ $tried -ge 3 ] || complain "$tried"
}

# bats test_tags=live
@test "the shell blocks that record run" {
    tried=0
    for block in "$blocks"/*.sh; do
        needs=$(how "$block")
        [[ $needs == "live: "* ]] || continue
        for need in ${needs#live: }; do
            [ "$need" = tinyjit ] || command -v "$need" >/dev/null || continue 2
        done
        run_block "$block" programs
        [ "$status" = 0 ] || complain "${block##*/}: status $status: $(tail -5 "${block##*/}.d/output")"
        tried=$((tried + 1))
    done
    [ $tried -ge 3 ] || complain "$tried"
}

# programs: what the documents record.  A server is one that ends by itself.
programs() {
    cp "$here/../../examples/tinyjit/demo.tj" .
    ln -s "$BUILD/tinyjit" tinyjit
    printf '#!/bin/sh\nexec ./tinyjit --seconds 6 demo.tj\n' >server
    chmod +x server
    echo 'function hot(n) { let s = 0; for (let i = 0; i < n; i++) s += (Math.sqrt(i) * i) % 7; return s; }
for (let i = 0; i < 20; i++) hot(2000000);' >app.js
    echo '<?php function hot($n) { $s = 0; for ($i = 0; $i < $n; $i++) $s = ($s + $i * 3) & 65535; return $s; }
for ($i = 0; $i < 300; $i++) hot(100000);' >app.php
    echo 'public class App { public static void main(String[] a) { long s = 0; for (long i = 0; i < 300000000L; i++) s += i ^ s; System.out.println(s); } }' >App.java
    cat >app.ll <<'END'
define i32 @main() {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%j, %loop]
  %s = phi i64 [0, %entry], [%t, %loop]
  %m = mul i64 %i, %i
  %t = xor i64 %s, %m
  %j = add i64 %i, 1
  %c = icmp ult i64 %j, 300000000
  br i1 %c, label %loop, label %end
end:
  ret i32 0
}
END
}

@test "console blocks show what perfjit prints" {
    tried=0
    for block in "$blocks"/*.console; do
        needs=$(how "$block")
        [[ $needs == "on "*": "* ]] || complain "${block##*/}: on which recording?"
        needs=${needs#on }
        run_block "$block" with_recording "${needs%%: *}" "${needs#*: }"
        grep -v '^\$ ' "$block" >wanted
        as_written "${block##*/}.d/output" wanted || complain "${block##*/}"
        tried=$((tried + 1))
    done
    [ $tried -ge 3 ] || complain "$tried"
}

# A block that is no whole file is in a function of one, with these names around it.  gcc 14 complains that they outlive the block.
@test "C blocks compile" {
    tried=0
    for block in "$blocks"/*.c; do
        {
            if ! grep -q '#include' "$block"; then
                echo '#include <jitdump.h>
#include <jitdump/cfi.h>
extern void log(const char *, ...);
extern struct jitdump_cfi *cfi;
extern struct jitdump_code code;
extern struct jitdump_frame frame;
extern uint64_t code_size, start, here, end, cold_start, cold_end;
extern struct jitdump_unwind hot, cold;
void block(void);
void block(void) {'
                sed '/^\.\.\.$/d' "$block"
                echo '}'
            else
                cat "$block"
            fi
        } >block.c
        cc -std=c11 -Wall -Wno-unused -Wno-dangling-pointer -fno-builtin -I"$root" -I"$root/jitdump" -c -Werror -o block.o block.c || complain "${block##*/}"
        tried=$((tried + 1))
    done
    [ $tried -ge 5 ] || complain "$tried"
}

@test "README's JIT logs a function" {
    cp "$blocks"/README.md:*.c jit.c
    cat >>jit.c <<'END'
int main(void)
{
    static const unsigned char code[16] = {0xc3};
    if (begin() != 0)
        return 1;
    compiled("hello", code, sizeof code);
    return jitdump_close(dump);
}
END
    cc -std=c11 -Wall -Wextra -Werror -I"$root/jitdump" -I"$root" -o jit jit.c "$BUILD/libjitdump.a" -pthread
    ./jit
    run ! compgen -G 'jitdump-*'
    PERFJIT=dump ./jit
    [ "$(perfjit dump --json jitdump-*/jit-*.dump | jq -r 'select(.name).name')" = hello ]
}

# ---- Facts ----

@test "README's table of speed has the rows of bench/results.md" {
    rows() { # FILE FIRST-LINE: functions and the first number of each column, a row a line
        sed -n "/$2/,/^\$/p" "$1" | sed -nE '/^\| [0-9]/p' | tr -d ' ' | sed -E 's/\([^)]*\)//g; s/–//g' | awk -F'|' '$2 ~ /^[0-9]+$/ { print $2, $3, $4, $5, $6 }'
    }
    rows "$root/README.md" '^| functions | `perfjit inject`' >readme
    rows "$root/bench/results.md" '^| functions | image layout | function layout | floor' >results
    [ "$(wc -l <readme)" = 4 ]
    same readme results
}

@test "README's picture is an SVG that a page shows at once" {
    picture=$root/docs/pictures/flamegraph.svg
    grep -q 'docs/pictures/flamegraph.svg' "$root/README.md"
    [ "$(stat -c %s "$picture")" -lt 102400 ]
    python3 -c 'import sys, xml.etree.ElementTree; xml.etree.ElementTree.parse(sys.argv[1])' "$picture"
    grep -q '>multiply' "$picture"
}

@test "README's commands of CI are those that .ci/run calls" {
    for block in "$blocks"/README.md:*.sh; do
        ! grep -q '^make check ' "$block" || sed -n 's/^\(make check[a-z-]*\).*/\1/p' "$block" >commands
    done
    grep '^make ' "$root/.ci/run" | same commands /dev/stdin
}
