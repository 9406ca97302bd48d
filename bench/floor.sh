#!/bin/sh
# floor.sh OUT FILE...: read and write the same bytes, and nothing else.
out=$1
shift
exec cat -- "$@" >"$out"
