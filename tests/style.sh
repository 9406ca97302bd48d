#!/usr/bin/env bash
# Warns of long functions of the product.  Fails for an include that goes back (tests/rooms.sh), and for a test that can't fail.
cd "$(dirname "$0")/.." || exit 1
sources=$(git ls-files 'jitdump/*.c' 'jitunwind/*.c' 'perfmap/*.c' 'injector/*.c' 'examples/*.c')

# A function's body stands between braces in the first column.
lengths=$(awk '/^\{/ { start = FNR } /^\}/ && start { print FNR - start - 1, FILENAME ":" start; start = 0 }' $sources |
    sort -n)
count=$(wc -l <<<"$lengths")
at() { sed -n "$((count * $1 / 100 + 1))p" <<<"$lengths" | cut -d' ' -f1; }
echo "$count functions: median $(at 50) lines, 90 % up to $(at 90), longest $(tail -1 <<<"$lengths")"
awk '$1 > 40 { print "over 40 lines: " $2 " (" $1 ")" }' <<<"$lengths"
status=0
# bash takes a `!` that is not the last for a success, whatever it says.
if git grep -nE '^ *! ' -- 'tests/cli/*.bats' 'tests/cli/*.bash' | grep -v ' || '; then
    echo "a test goes on behind these, whatever they find: ! COMMAND || complain ..."
    status=1
fi
tests/rooms.sh >/dev/null && exit $status
