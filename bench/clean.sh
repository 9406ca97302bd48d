#!/bin/sh
# clean.sh WORK: before each measured run.  What the one before left is put aside and written to the disk, so that nobody pays for another.
#
# On a disk it is not removed before the end: ext4 goes past the inodes of files that were removed in the last minutes (five, if
# they were written), one after the other, whenever it makes one.  10 000 functions took perf inject 28 s right after as many files
# had been removed, and 2.5 s else; perfjit's function layout 5.8 and 0.4 s.
set -e
mkdir -p "$1/aside"
aside=$(mktemp -d "$1/aside/XXXXXX")
for left in "$1/run" "$1/home/.debug"; do
    [ ! -e "$left" ] || mv "$left" "$aside"
done
find "$1" -maxdepth 2 -name 'jitted-*' -exec mv -t "$aside" {} +
if [ "$(stat -f -c %T "$1")" = tmpfs ]; then
    rm -rf "$aside"
else
    sync -f "$1"
fi
mkdir "$1/run"
