#!/bin/sh
# c2m, MIR's C compiler and runner, with the adapter: build.sh SOURCES FOLDER
#
# SOURCES is MIR's, and stays as it is.  CC, and BUILD for where libjitdump.a is, may be set.
set -eu
sources=$1 out=$2
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../../..
mkdir -p "$out"
for file in mir.h mir.c mir-gen.c mir-x86_64.c mir-gen-x86_64.c; do
    awk -f "$here/../insert.awk" "$here/hooks" "$sources/$file" >"$out/$file"
done
# What has hooks comes first.
for file in "$out/mir.c" "$out/mir-gen.c" "$sources/c2mir/c2mir.c" "$sources/c2mir/c2mir-driver.c"; do
    ${CC:-cc} -O1 -std=gnu11 -w -fsigned-char -fno-tree-sra -fno-ipa-cp-clone \
        -I"$out" -I"$sources" -I"$sources/c2mir" -I"$here" -I"$root" -c "$file" -o "$out/$(basename "$file" .c).o"
done
${CC:-cc} -o "$out/c2m" "$out"/*.o "${BUILD:-$root/build}/libjitdump.a" -lm -ldl -lpthread
