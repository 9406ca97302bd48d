#!/bin/sh
# load, with ubpf and the adapter: build.sh SOURCES FOLDER
#
# SOURCES is ubpf's, and stays as it is.  CC, and BUILD for where libjitdump.a is, may be set.
set -eu
sources=$1/vm out=$2
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../../..
mkdir -p "$out"
for file in ubpf_int.h ubpf_jit_support.h ubpf_jit_x86_64.c ubpf_jit.c ubpf_vm.c; do
    awk -f "$here/../insert.awk" "$here/hooks" "$sources/$file" >"$out/$file"
done
cp "$sources"/ubpf_jit_support.c "$sources"/ubpf_jit_arm64.c "$sources"/ubpf_loader.c "$sources"/ubpf_instruction_valid.c "$out"
[ ! -e "$sources/ubpf_safe.c" ] || cp "$sources/ubpf_safe.c" "$out"
cp "$here"/*.c "$here"/*.h "$out" # next to ubpf_int.h, as in ubpf
echo '#define UBPF_HAS_ELF_H' >"$out/ubpf_config.h"
${CC:-cc} -std=gnu11 -O1 -g -w -I"$out" -I"$sources/inc" -I"$sources" -I"$root" "$out"/*.c \
    -o "$out/load" "${BUILD:-$root/build}/libjitdump.a" -lm -lpthread
