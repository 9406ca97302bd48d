#!/usr/bin/env bash
# Make the first inputs of the fuzzers in DIR, with the producers of the build in BUILD: seeds.sh BUILD DIR
set -euo pipefail
build=${1:?usage: seeds.sh BUILD DIR} dir=${2:?usage: seeds.sh BUILD DIR}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

n=0
# keep: what a producer left in $work/one becomes a dump in $work.
keep() {
    local dump
    for dump in $(find "$work/one" -name "jit-*.dump" ! -path "*/stage/*"); do
        mv "$dump" "$work/$((n += 1)).dump"
    done
}

mkdir "$work/one"
PERFJIT=dump JITDUMPDIR=$work/one "$build/producers/every_record" 0 >/dev/null && keep
PERFJIT=dump JITDUMPDIR=$work/one "$build/producers/many_functions" -n 20 -s 0 >/dev/null && keep
for name in $("$build/producers/quirks" --names); do
    "$build/producers/quirks" "$name" "$work/one" 0 >/dev/null && keep
done
for name in frame-first header-first mapped-size-0 no-end absolute-header one-blob blobs-before blobs-swapped empty-header none \
    garbage garbage-length bare pointer; do
    "$build/producers/unwind_shapes" "$name" "$work/one" 0 >/dev/null && keep
done
mkdir -p "$dir"
"$build/seeds" "$dir" "$work"/*.dump
mkdir -p "$dir/call_profile" # which takes the same inputs
cp "$dir"/injection/* "$dir/call_profile"
