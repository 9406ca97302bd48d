#!/usr/bin/env bash
# The include graph between rooms (folders of sources), and whether it goes one way.
#
#     tests/rooms.sh          print "ROOM -> ROOM  includes", and what breaks the rules; status 1 if anything does
#
# The rules: docs/architecture.md lists the rooms in floors, the highest first, between two lines "floors"; a room
# includes from lower floors only.  No two files include each other, directly or through others.
cd "${TREE:-$(dirname "$0")/..}" || exit 1
status=0
complain() {
    echo "$*" >&2
    status=1
}

sources() {
    find injector jitdump jitunwind perfmap -name '*.[ch]' | sort
}

# "FROM TO" for each #include "..." of a file that is the project's own.
includes() {
    sources | xargs grep -H '^#include "' |
        sed -n 's/^\([^:]*\):#include "\([^"]*\)".*/\1 \2/p' |
        while read -r from to; do
            [ -f "$to" ] && echo "$from $to"
        done
}

rooms_of() { # "FROM TO" by files -> by rooms
    sed 's|/[^/ ]*\.[ch]\b||g' | awk '$1 != $2'
}

floors() { # "FLOOR ROOM", the lowest floor last
    awk '/^<!-- floors -->$/ { on = !on; next } on && /^    / { floor++; for (i = 1; i <= NF; i++) print floor, $i }' \
        docs/architecture.md
}

check_floors() { # of the edges on standard input
    awk 'NR == FNR { floor[$2] = $1; next }
         !($2 in floor) { print "no floor in docs/architecture.md for " $2; next }
         !($3 in floor) { print "no floor in docs/architecture.md for " $3; next }
         floor[$2] >= floor[$3] { print "arrow back: " $2 " -> " $3 }' <(floors) -
}

check_circles() { # of files, a header and its source being one
    sed 's/\.[ch]\b//g' | awk '$1 != $2' | tsort 2>&1 >/dev/null |
        awk '/loop:$/ { if (NR > 1) print ""; printf "circle of files:"; next } { printf " %s", $2 } END { if (NR) print "" }'
}

edges=$(includes)
rooms_of <<<"$edges" | sort | uniq -c | awk '{ printf "%-40s %3d\n", $2 " -> " $3, $1 }'
for complaint in floors circles; do
    while read -r line; do complain "$line"; done < <(
        case $complaint in
        floors) rooms_of <<<"$edges" | sort | uniq -c | check_floors ;;
        circles) check_circles <<<"$edges" ;;
        esac)
done
exit $status
