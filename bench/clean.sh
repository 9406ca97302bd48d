#!/bin/sh
# clean.sh WORK: before each measured run.  What the one before left is removed and written off, so that nobody pays for another.
rm -rf "$1/run" "$1/home/.debug"
mkdir "$1/run"
find "$1" -maxdepth 2 -name 'jitted-*' -delete
