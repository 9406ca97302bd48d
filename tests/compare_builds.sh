#!/usr/bin/env bash
# Whether two builds of perfjit say and write the same, for every recipe in the tests.
#
#     tests/compare_builds.sh [-w] [-n] [-b 'BUILD...'] [-i OPTION...] BEFORE AFTER [tests/cli/X.bats...]
#
# runs the tests with AFTER's build directory, but each perfjit that they start is run by both, BEFORE first, on the same
# input and into the same output.  What differs is printed: exit status, standard output, standard error (-w: not that), the
# profile and each ELF file.  -i: AFTER's inject gets these options as well (`-i '--rows body'`: what a build from before the
# option did), and the test goes on with what it gets without them.  Options that BEFORE does not know are not compared.  -n: of
# inject, what perf script says of each sample is compared, and nothing else (`-n -i '--rows body' BUILD BUILD`: names by name).
# -b: builds of commits in between, oldest first: what differs is run by each, to say between which two it changed.
# Tests that kill, trace or time the command are left out, and those that record.
set -uo pipefail
words=1 options= names=0 between=
while getopts wnb:i: option; do
    case $option in
    w) words=0 ;;
    n) names=1 words=0 ;;
    b) between=$OPTARG ;;
    i) options=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
before=$(realpath "${1:?the build directory before}") after=$(realpath "${2:?the one after}")
cd "$(dirname "$0")/.." || exit 1
shift 2
if [ $# -eq 0 ]; then
    set -- $(ls tests/cli/*.bats |
        grep -vE '/(torture|failing_calls|growth|memcheck|hostile|forms|live_files|ordinary_user)\.bats')
fi
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/build"
ln -s "$after"/* "$scratch/build/"
rm "$scratch/build/perfjit"
cat >"$scratch/build/perfjit" <<'WRAPPER'
#!/usr/bin/env bash
# One run of perfjit by both builds.
for argument in "$@"; do
    [[ $argument != --* ]] || "$COMPARE_BEFORE/perfjit" "$1" --help 2>&1 | grep -q -e "${argument%%=*}\>" ||
        exec "$COMPARE_AFTER/perfjit" "$@"
done
name=$COMPARE/run.$$ out= in=
arguments=("$@")
for ((i = 0; i < $#; i++)); do
    case ${arguments[i]} in
    -o | --output) out=${arguments[i + 1]} ;;
    --output=*) out=${arguments[i]#*=} ;;
    -o?*) out=${arguments[i]#-o} ;;
    -i | --input) in=${arguments[i + 1]} ;;
    --input=*) in=${arguments[i]#*=} ;;
    -i?*) in=${arguments[i]#-i} ;;
    esac
done
if [ "${1:-}" = inject ] && [ -z "$out" ]; then
    in=${in:-perf.data}
    case $in in *.data) out=${in%.data}.jit.data ;; *) out=$in.jit.data ;; esac
fi
if [ ! -t 0 ] && { [ -p /dev/stdin ] || [ -f /dev/stdin ]; }; then
    timeout 60 cat >"$name.stdin"
fi
put_aside() { # TO
    mkdir -p "$1"
    [ -z "$out" ] || [ "$out" = - ] || [ ! -f "$out" ] || cp -a "$out" "$1/out"
    [ -z "$out" ] || [ ! -d "$out.dso" ] || cp -a "$out.dso" "$1/dso"
}
put_back() {
    [ -n "$out" ] && [ "$out" != - ] || return 0
    [ ! -f "$out" ] || rm -f "$out"
    rm -rf "$out.dso"
    [ ! -e "$name.there/out" ] || cp -a "$name.there/out" "$out"
    [ ! -e "$name.there/dso" ] || cp -a "$name.there/dso" "$out.dso"
}
run_build() { # BUILD NUMBER ARGUMENT...
    local build=$1 number=$2
    shift 2
    if [ -e "$name.stdin" ]; then
        "$build/perfjit" "$@" <"$name.stdin" >"$name.$number.stdout" 2>"$name.$number.stderr"
    else
        "$build/perfjit" "$@" >"$name.$number.stdout" 2>"$name.$number.stderr"
    fi
}
more=()
[ "${1:-}" != inject ] || read -ra more <<<"$COMPARE_OPTIONS"
# What the test was given without these options would be found there by neither build.
[ ${#more[@]} -eq 0 ] || [ -z "$out" ] || rm -rf "$out".dso/????????
put_aside "$name.there"
run_build "$COMPARE_BEFORE" 1 "$@"
status1=$?
put_aside "$name.1"
put_back
run_build "$COMPARE_AFTER" 2 "$@" "${more[@]}"
status2=$?
put_aside "$name.2"
samples_of() { # WHERE: what the output of a run, which is put aside there, names
    [ -e "$1/out" ] || return 0
    cp -a "$1/out" "$out"
    rm -rf "$out.dso"
    [ ! -d "$1/dso" ] || cp -a "$1/dso" "$out.dso"
    perf script -i "$out" -F comm,pid,tid,time,ip,sym --ns --no-inline 2>/dev/null |
        sed 's/^[[:space:]]*[0-9a-f]* /    /' # in a chain perf prints where it is in the file
}
compare_names() {
    [ "$1" = inject ] && [ -n "$out" ] && [ "$out" != - ] || return 0
    samples_of "$name.1" >"$name.1.stdout"
    samples_of "$name.2" >"$name.2.stdout"
    wc -l <"$name.2.stdout" >>"$COMPARE/lines"
    rm -rf "$name".[12]
    mkdir "$name".{1,2}
}
[ "$COMPARE_NAMES" = 0 ] || [[ " $* " = *" --rows "* ]] || compare_names "${1:-}"
{
    [ $status1 = $status2 ] || echo "status $status1, then $status2"
    cmp "$name.1.stdout" "$name.2.stdout" || diff "$name.1.stdout" "$name.2.stdout" | head -20
    [ $COMPARE_WORDS = 0 ] || cmp -s "$name.1.stderr" "$name.2.stderr" ||
        diff "$name.1.stderr" "$name.2.stderr" | head -20
    diff -rq "$name.1" "$name.2"
} >"$name.difference" 2>&1
knows() { # BUILD OPTION
    "$1/perfjit" inject --help 2>&1 | grep -q -e "$2\>"
}
differs_from_last() { # NUMBER STATUS STATUS
    [ "$2" = "$3" ] || echo -n " status"
    cmp -s "$name.last/stdout" "$name.$1.stdout" || echo -n " output"
    cmp -s "$name.last/stderr" "$name.$1.stderr" || echo -n " words"
    diff -rq "$name.last/files" "$name.$1" >/dev/null || echo -n " files"
}
# Run by each build in turn; say where it changed.
attribute() {
    local build last= last_status=0 status what
    for build in $COMPARE_BEFORE $COMPARE_BETWEEN $COMPARE_AFTER; do
        put_back
        knows "$build" "${more[0]:-}" && set -- "${arguments[@]}" "${more[@]}" || set -- "${arguments[@]}"
        run_build "$build" 3 "$@"
        status=$?
        put_aside "$name.3"
        if [ -n "$last" ]; then
            what=$(differs_from_last 3 $last_status $status)
            [ -z "$what" ] || echo "changed from $(basename "$last") to $(basename "$build"):$what"
        fi
        rm -rf "$name.last"
        mkdir -p "$name.last"
        mv "$name.3" "$name.last/files"
        mv "$name.3.stdout" "$name.last/stdout"
        mv "$name.3.stderr" "$name.last/stderr"
        last=$build last_status=$status
    done
}
# A clock that is inferred is compared with what it shows now: no two runs of one build need say the same of it.
is_steady() {
    put_back
    run_build "$COMPARE_AFTER" 3 "$@" "${more[@]}"
    local status3=$?
    put_aside "$name.3"
    [ $status2 = $status3 ] && cmp -s "$name.2.stdout" "$name.3.stdout" && diff -rq "$name.2" "$name.3" >/dev/null &&
        { [ $COMPARE_WORDS = 0 ] || cmp -s "$name.2.stderr" "$name.3.stderr"; }
}
if [ -s "$name.difference" ] && [ "$COMPARE_NAMES" = 0 ]; then
    mkdir -p "$name.last"
    if ! is_steady "$@"; then
        echo >>"$COMPARE/unsteady"
        : >"$name.difference"
    elif [ -n "$COMPARE_BETWEEN" ]; then
        rm -rf "$name.3"
        attribute >>"$name.difference" 2>&1
    fi
fi
if [ -s "$name.difference" ]; then
    { echo "== perfjit $*"; cat "$name.difference"; } >>"$COMPARE/differences"
fi
echo >>"$COMPARE/count"
if [ ${#more[@]} -gt 0 ] || [ -e "$name.last" ]; then
    put_back
    run_build "$COMPARE_AFTER" 2 "$@"
    status2=$?
fi
cat "$name.2.stderr" >&2
cat "$name.2.stdout"
rm -rf "$name".*
exit $status2
WRAPPER
chmod +x "$scratch/build/perfjit"
export COMPARE=$scratch COMPARE_BEFORE=$before COMPARE_AFTER=$after COMPARE_WORDS=$words COMPARE_OPTIONS=$options COMPARE_NAMES=$names COMPARE_BETWEEN=$between BUILD=$scratch/build
for test in "$@"; do
    bats --tap --filter-tags '!live,!all' "$test" | grep '^not ok'
done
[ ! -s "$scratch/lines" ] || awk '{ n += $1 } END { print n " lines of perf script compared" }' "$scratch/lines"
[ ! -s "$scratch/unsteady" ] || echo "$(wc -l <"$scratch/unsteady") runs differ, and differ between two runs of one build"
echo "$(wc -l <"$scratch/count") runs compared, $(grep -c '^== ' "$scratch/differences" 2>/dev/null || echo 0) differ"
[ ! -s "$scratch/differences" ] || { cat "$scratch/differences"; exit 1; }
