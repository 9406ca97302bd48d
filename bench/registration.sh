#!/usr/bin/env bash
# registration.sh BUILD_DIR: print "time COUNT WAY NS BYTES" and "gdb COUNT HOW RUN_S BT_S AGAIN_S NAMED", a line each.
set -euo pipefail
program=$1/bench/registration
script=$(dirname "$0")/registration_bt.py
for count in 1000 10000 100000 1000000; do
    "$program" time "$count" 9 | sed "s/^/time $count /"
done
command -v gdb >/dev/null || exit 0
for one in "1000 arena" "10000 arena" "100000 arena" "1000 each" "3000 each"; do
    # shellcheck disable=SC2086 # words
    gdb -q --batch -ex "source $script" --args "$program" stay $one 2>/dev/null | sed -nE "s/^([0-9.]+ [0-9.]+ [0-9.]+ [0-9]+)$/gdb $one \1/p"
done
