#!/bin/sh
# load, with IR and the adapter: build.sh SOURCES FOLDER
#
# SOURCES is IR's, and stays as it is.  CC, and BUILD for where libjitdump.a is, may be set.
set -eu
sources=$1 out=$2
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../../..
mkdir -p "$out"
cp -R "$sources/." "$out"
awk -f "$here/../insert.awk" "$here/hooks" "$sources/ir_x86.dasc" >"$out/ir_x86.dasc"
cp "$here/ir_perf.c" "$here/ir_perf.h" "$out" # ir_perf.c instead of IR's own
make -s -C "$out" libir.a CC="${CC:-cc} -w -I$root" BUILD_CC="${CC:-cc} -w"
${CC:-cc} -O1 -w -DIR_TARGET_X64 -I"$out" "$here/load.c" -o "$out/load" \
    "$out/libir.a" "${BUILD:-$root/build}/libjitdump.a" -lm -ldl -lpthread
