#!/usr/bin/env bats
# --help, the manual pages and the completions of shells: all are made from the tables of options, and must say the same.
load helper

setup_file() {
    perfjit manual names >"$BATS_FILE_TMPDIR/names"
    # "COMMAND OPTION" for each long option that --help has.
    while read -r name; do
        perfjit "$name" --help | sed -nE "s/^  (-., |    )(--[a-z0-9-]+).*/$name \2/p"
    done <"$BATS_FILE_TMPDIR/names" >"$BATS_FILE_TMPDIR/options"
}

setup() {
    names=$BATS_FILE_TMPDIR/names options=$BATS_FILE_TMPDIR/options
    cd "$BATS_TEST_TMPDIR"
}

# The part of a completion, a shell's case, that is about a command.
case_of() {
    sed -n "/^    $2)\$/,/^        ;;\$/p" "$1"
}

# complete WORD...: what bash offers for the last one.
complete() {
    bash -c 'source "$1" && shift && COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) && _perfjit && printf "%s\n" "${COMPREPLY[@]}"' \
        complete "$BUILD/completions/bash/perfjit" perfjit "$@"
}

offers() {
    local wanted=$1
    shift
    [ "$(complete "$@" | sort | paste -sd' ')" = "$wanted" ] ||
        complain "'perfjit $*' is completed by '$(complete "$@" | paste -sd' ')', not by '$wanted'"
}

@test "--help: every command's purpose, at most 80 columns" {
    perfjit --help >help
    awk 'length > 80 { print; bad = 1 } END { exit bad }' help
    while read -r name; do
        grep -qE "^  $name +[a-z].{10}" help || complain "perfjit --help does not say what $name is for"
    done <"$names"
    [ "$(wc -l <"$names")" -ge 15 ]
}

@test "--help of each command: texts stand in their column, statuses in a list" {
    local name
    while read -r name; do
        perfjit "$name" --help >help
        perfjit "$name" --usage >usage
        awk 'length > 80 { print FILENAME ": " $0; bad = 1 } END { exit bad }' help usage
        # An option, what goes on from it, a heading, or a blank line, up to what stands behind the options.
        awk -v name="$name" '/^Help:$/ { last = 1 }
            last && !NF { exit }
            /^[A-Z][a-z ]*:$/ { on = 1; next }
            on && NF {
                option = /^  -., --[^ ]/ || /^      --[^ ]/
                front = substr($0, 1, 29)
                if ((option ? front !~ / $/ || length <= 29 : front ~ /[^ ]/) || substr($0, 30) !~ /^(  )?[^ ]/) { print name ": " $0; bad = 1 }
                count += option
            }
            END { exit bad || count < 4 }' help
        grep -qx "Exit status:" help || complain "$name: there are no exit statuses"
        grep -qE "^  2  wrong usage$" help || complain "$name: status 2 is not explained"
    done <"$names"
}

@test "every option that --help has stands in the manual page" {
    local name option
    [ "$(wc -l <"$options")" -gt 100 ]
    while read -r name option; do
        option=${option#-} # Fl prints one
        grep -qE "^\.It (Fl . , )?Fl ${option//-/\\\\-}( |\$)" "$BUILD/man/perfjit-$name.1" ||
            complain "perfjit-$name(1) does not have $option"
    done <"$options"
}

@test "every option that --help has is completed by bash, zsh and fish" {
    local name option
    while read -r name option; do
        case_of "$BUILD/completions/bash/perfjit" "$name" | grep -qE -- "words='.* $option[ ']" ||
            complain "bash does not complete perfjit $name $option"
        case_of "$BUILD/completions/zsh/_perfjit" "$name" | grep -qE -- "'$option=?\[" ||
            complain "zsh does not complete perfjit $name $option"
        grep -qE -- "__fish_seen_subcommand_from $name' -l ${option#--}( |\$)" "$BUILD/completions/fish/perfjit.fish" ||
            complain "fish does not complete perfjit $name $option"
    done <"$options"
}

@test "every public function has a page that describes it" {
    local library header function page count=0
    for header in jitdump/jitdump.h jitdump/cfi.h jitdump/trampoline.h perfmap/perfmap.h jitunwind/jitunwind.h; do
        page=lib${header%/*}.3
        while read -r function; do
            grep -qx ".so man3/$page" "$BUILD/man/$function.3" || complain "there is no page $function(3)"
            grep -qx ".Fo $function" "$BUILD/man/$page" || complain "$page: no synopsis of $function"
            awk -v name="$function" '/^\.S[sh] / { on = 0; for (i = 2; i <= NF; i++) on = on || $i == name; next }
                on && !/^\.[BEP]/ { text = text $0 } END { exit length(text) < 30 }' "$BUILD/man/$page" ||
                complain "$page: $function is not described"
            count=$((count + 1))
        done < <(tr '\n' ' ' <"$here/../../$header" | grep -oE '_API [a-z][^;(#]*\(' | grep -oE '[a-z_0-9]+\($' | tr -d '(' | sort -u)
    done
    [ $count -ge 70 ]
    # The headers are all that are installed, and the libraries export nothing else.
    for library in jitdump perfmap jitunwind; do
        for function in $(nm -D --defined-only "$BUILD/lib$library.so.0" | awk '$2 == "T" { sub("@.*", "", $3); print $3 }'); do
            [ -e "$BUILD/man/$function.3" ] || complain "lib$library exports $function, which has no page"
        done
    done
}

@test "jitdump(5) has every record" {
    local record
    for record in $(grep -oE '^    JIT_[A-Z_]+ =' "$here/../../jitdump/format/jitdump_format.h" | sed 's/^ *JIT_//; s/ =//'); do
        grep -qE "^[0-9a-fx]+ $record, [0-9]+ bytes" "$BUILD/man/jitdump.5" || complain "jitdump(5) does not have $record"
    done
}

@test "manual pages: references lead to pages, mandoc has nothing to complain of" {
    local pages=("$BUILD"/man/perfjit*.1 "$BUILD"/man/lib*.3 "$BUILD/man/jitdump.5") name section
    while read -r _ name section _; do
        [ -e "$BUILD/man/$name.$section" ] || complain "there is no $name($section)"
    done < <(grep -hE '^\.(It )?Xr (perfjit|lib(jitdump|perfmap|jitunwind)|jitdump)\b' "${pages[@]}" | sed 's/^\.It /./')
    if command -v mandoc >/dev/null; then
        run mandoc -Tlint -W warning "${pages[@]}"
        [ -z "$output" ] && [ "$status" -eq 0 ] || complain "$output"
    fi
}

@test "bash completes commands, options, their values and arguments" {
    touch a.dump b.txt
    mkdir folder
    offers inject in
    offers "--layout" inject --la
    offers "image" inject --layout i
    offers "function image" inject --layout =
    offers "function" inject --layout = f
    offers "dwarf dwarf, fp none" record -g ""
    offers "regression:" diff --fail-on r
    offers "a.dump folder" dump ""
    offers "folder" dump f
    offers "a.dump b.txt folder" report ""
    offers "folder" symbols -o ""
    offers "b.txt" inject --jitdump = b
    offers "" inject nothing
    complete attach "${$:0:1}" | grep -qx $$ || complain "this process is not among the pids"
}

@test "bash completes what perfjit record runs" {
    local words
    touch a.dump
    mkdir tools
    printf '#!/bin/sh\n' >tools/some-tool
    chmod +x tools/some-tool
    for words in "record" "record --" "record -F 99" "record -F 99 --keep --" "record --freq = 99 -g dwarf"; do
        # shellcheck disable=SC2086 # words
        PATH=$PWD/tools:$PATH offers some-tool $words some-t
        # shellcheck disable=SC2086
        offers a.dump $words cat a
    done
}

@test "zsh and fish take their completions" {
    grep -qx "#compdef perfjit" "$BUILD/completions/zsh/_perfjit"
    grep -q "^complete -c perfjit" "$BUILD/completions/fish/perfjit.fish"
    ! command -v zsh >/dev/null || zsh -n "$BUILD/completions/zsh/_perfjit" || complain "zsh does not"
    if command -v fish >/dev/null; then
        export HOME=$PWD
        fish -c "source $BUILD/completions/fish/perfjit.fish; complete -C 'perfjit inject --lay'" | grep -q "^--layout" ||
            complain "fish does not complete --layout"
        fish -c "source $BUILD/completions/fish/perfjit.fish; complete -C 'perfjit inject --layout '" | grep -qx "image.*" ||
            complain "fish does not complete --layout's values"
    fi
}

@test "perfjit manual: wrong usage is status 2, a missing part 1" {
    local words
    for words in "" man "man nothing" "bash more" tcsh; do
        # shellcheck disable=SC2086 # words
        run --separate-stderr perfjit manual $words
        exits 2
        [[ $stderr == *"Usage: perfjit manual"* ]] || complain "'$words': $stderr"
    done
    run --separate-stderr perfjit manual man inject nothing.part
    exits 1
    [ -z "$output" ]
}
