#!/usr/bin/env bash
# What builds of perfjit make of the same recordings, and between which two of them that changed.
#
#     tests/compare_outputs.sh CORPUS BUILD...
#
# CORPUS is a folder with recordings and their dumps where they were made, as bats leaves it:
#
#     TMPDIR=CORPUS BUILD=$PWD/build bats --no-tempdir-cleanup tests/cli/quirks.bats tests/cli/lines.bats ...
#
# BUILD... are folders with a perfjit, oldest first.  Each runs inject with either layout, check and dump on all that is there.
# Of a build that knows more options, what the oldest did is asked for: --rows body, --stacks keep.  For each step from one build
# to the next a line says how many outputs changed, of inject the files apart from what it says; -v names them.  Status 1: some did.
set -uo pipefail
verbose=
[ "${1:-}" != -v ] || { verbose=1; shift; }
corpus=$(realpath "${1:?usage: compare_outputs.sh [-v] CORPUS BUILD...}")
shift
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
out=$scratch/out.data

# What is no output of perfjit's: beside one stands the folder of its ELF files.
recordings() {
    find "$corpus" -type f \( -name '*.data' -o -name '*.stream' \) -size -64M | sort | while read -r file; do
        [ -e "$file.dso" ] || [ "$(head -c 7 "$file")" != PERFILE ] || echo "$file"
    done
}

dumps() {
    find "$corpus" -type f -name '*.dump' -size -16M | sort
}

hash_of() {
    sha1sum | cut -c1-40
}

# note KIND INPUT HASH
note() {
    echo "$2 $3" >>"$scratch/$number.$1"
}

inject() {
    local file=$1 layout=$2 status=0
    rm -rf "$out" "$out.dso"
    timeout 60 "$build/perfjit" inject -i "$file" -o "$out" --layout "$layout" "${options[@]}" >/dev/null 2>"$scratch/said" || status=$?
    note "inject --layout $layout: files" "$file" \
        "$({ [ ! -e "$out" ] || cat "$out"; [ ! -d "$out.dso" ] || (cd "$out.dso" && find . -type f | sort | head -n 500 | xargs -r sha1sum); } | hash_of)"
    note "inject --layout $layout: what it says" "$file" "$({ echo $status; cat "$scratch/said"; } | hash_of)"
}

number=0
recordings >"$scratch/recordings"
dumps >"$scratch/dumps"
echo "$(wc -l <"$scratch/recordings") recordings, $(wc -l <"$scratch/dumps") dumps"
for build in "$@"; do
    number=$((number + 1)) options=()
    help=$("$build/perfjit" inject --help)
    [[ $help != *--rows* ]] || options+=(--rows body)
    [[ $help != *--stacks* ]] || options+=(--stacks keep)
    while read -r file; do
        inject "$file" image
        inject "$file" function
        note check "$file" "$({ timeout 60 "$build/perfjit" check "$file" 2>&1; echo $?; } | hash_of)"
    done <"$scratch/recordings"
    while read -r file; do
        note dump "$file" "$({ timeout 60 "$build/perfjit" dump "$file" 2>&1; echo $?; } | hash_of)"
    done <"$scratch/dumps"
done

changed=0
for ((step = 2; step <= number; step++)); do
    echo "== ${*:step - 1:1} -> ${*:step:1}"
    for list in "$scratch/$step."*; do
        kind=${list#"$scratch/$step."}
        count=$(diff "$scratch/$((step - 1)).$kind" "$list" | grep -c '^>')
        [ "$count" = 0 ] || changed=1
        echo "$kind: $count of $(wc -l <"$list") changed"
        [ -z "$verbose" ] || diff "$scratch/$((step - 1)).$kind" "$list" | sed -nE 's/^> (.*) [0-9a-f]{40}$/    \1/p'
    done
done
exit $changed
