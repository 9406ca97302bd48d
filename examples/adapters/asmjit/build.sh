#!/bin/sh
# load, with asmjit and the adapter: build.sh SOURCES FOLDER
#
# SOURCES is where asmjit/asmjit.h is: /usr/include.  CXX, and BUILD for where libjitdump.a is, may be set.
set -eu
sources=$1 out=$2
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../../..
mkdir -p "$out"
${CXX:-c++} -std=c++17 -O1 -g -Wall -Wextra -I"$here" -I"$root" $([ "$sources" = /usr/include ] || echo "-isystem$sources") \
    "$here/load.cc" -o "$out/load" "${BUILD:-$root/build}/libjitdump.a" -lasmjit
