#!/bin/sh
# luajit from its sources: build.sh SOURCES FOLDER.  They get no hooks: perfjit.lua is loaded at run time.  CC may be set.
set -eu
sources=$1 out=$2
mkdir -p "$out"
cp -R "$sources/." "$out"
make -s -C "$out" amalg CC="${CC:-cc}"
