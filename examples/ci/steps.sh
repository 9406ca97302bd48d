#!/usr/bin/env bash
# The steps of the jobs beside it (github-actions.yml, gitlab-ci.yml), each of which runs here as well:
#
#     steps.sh build COMMIT DIR       check COMMIT out into DIR and build the benchmark's program there, if it is not there yet;
#                                     a DIR of another commit, that this made, is made anew
#     steps.sh compare BASE NEW OUT   run both in turns, write OUT/perfjit.bench, report.txt, summary.md and comment.md,
#                                     report.json, and report.html, a flame graph of both; then end with 4 if the new one is
#                                     slower
#     steps.sh all [COMMIT]           both, of COMMIT (default: where the branch left main) against what is in this directory
#
# What is your project's own stands in the first lines.
set -euo pipefail

build_program() { # in the directory of a checkout
    make -j "$(nproc)" build/tinyjit
}
command_in() { # DIR
    echo "$(word "$1/build/tinyjit") --no-inline $(word "$1/examples/ci/benchmark.tj")"
}
word() { # TEXT, as one word of a command
    case $1 in
    *[!A-Za-z0-9_./+,:@%=-]*) printf "'%s'" "${1//\'/\'\\\'\'}" ;;
    *) printf %s "$1" ;;
    esac
}
: "${PERFJIT:=perfjit}"  # the command
: "${RUNS:=10}"          # of each side: 10 find 5 percent, 20 find 2
: "${ORDER:=together}"     # both on one processor at once; a program that needs several: turns
: "${SLOWER_BY:=2%}"     # what ends the job
: "${COMMENT_BYTES:=60000}" # of a comment: both services take 64 KiB, or more

build() { # COMMIT DIR
    local commit
    commit=$(git rev-parse --verify "$1^{commit}")
    if [ -e "$2" ] && [ "$(cat "$2/.benchmark-commit" 2>/dev/null)" != "$commit" ]; then
        # A cache has no repository behind its .git: only the file in it says what it is.
        [ -f "$2/.benchmark-commit" ] || [ -f "$2/.git" ] || { echo "$2: is there already, and is no base" >&2; return 1; }
        git worktree remove --force "$2" 2>/dev/null || rm -rf "$2"
    fi
    if [ ! -e "$2" ]; then
        git worktree prune
        git worktree add --detach "$2" "$commit"
        echo "$commit" >"$2/.benchmark-commit"
    fi
    (cd "$2" && build_program) >&2
}

compare() { # BASE NEW OUT
    local status=0
    mkdir -p "$3"
    "$PERFJIT" bench --runs "$RUNS" --order "$ORDER" -o "$3/perfjit.bench" --base "$(command_in "$1")" --new "$(command_in "$2")" || status=$?
    [ $status = 0 ] || [ $status = 3 ] || return $status # 3: written, but something of a recording was lost
    status=0
    "$PERFJIT" diff --fail-on "regression:$SLOWER_BY" -o "$3/report.txt" --markdown "$3/summary.md" --json "$3/report.json" \
        --html "$3/report.html" "$3/perfjit.bench" || status=$?
    [ $status = 0 ] || [ $status = 3 ] || [ $status = 4 ] || return $status
    comment "$3/summary.md" >"$3/comment.md"
    [ $status != 4 ] || return 4
}

comment() { # SUMMARY: as many of its lines as have room
    [ "$(wc -c <"$1")" -gt "$COMMENT_BYTES" ] || { cat "$1"; return; }
    head -c "$COMMENT_BYTES" "$1" | sed '$d'
}

all() { # [COMMIT]
    local out=${OUT:-$PWD/build/ci}
    build "${1:-$(git merge-base HEAD origin/main)}" "$out/base"
    build_program >&2
    compare "$out/base" "$PWD" "$out"
}

case ${1:-} in
build | compare | all) "$@" ;;
*) sed -n '2,/^$/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
