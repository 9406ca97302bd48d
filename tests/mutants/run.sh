#!/usr/bin/env bash
# Do the tests notice?  Plant each change of the product that the lists beside this file tell, one at a
# time, in a copy of the tree, and run the test that is to fail then.  README.md tells how a list is written.
#
#     tests/mutants/run.sh [--all] [--list] [PATTERN...]
#
# --all: where the test that is named passes, run the other units as well.  --list: show what is planted.
# PATTERN: only mutants whose first line matches one of these (an extended regular expression).
# The status is 0 if every mutant was killed, 1 if some survived, 2 if a list or a test is wrong by itself.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2
all='' list=''
while [ "${1:-}" = --all ] || [ "${1:-}" = --list ]; do
    declare "${1#--}=yes"
    shift
done
patterns=("$@")

die() {
    echo "mutants: $*" >&2
    exit 2
}

# ---- The lists ----

places=() changes=() killers=() before=() after=()

# A block begins with "FILE | what changes | KILLER"; then come lines as in a diff: ' ' stays, '-' goes, '+' comes.
read_list() {
    local line number=0 last=-1 text
    while IFS= read -r line || [ -n "$line" ]; do
        number=$((number + 1))
        text=${line:1}
        case $line in
        '#'*) ;;
        '') last=-1 ;;
        [' +-']*)
            [ "$last" -ge 0 ] || die "$1:$number: a line of no mutant"
            [ "${line:0:1}" = + ] || before[last]+=$text$'\n'
            [ "${line:0:1}" = - ] || after[last]+=$text$'\n'
            ;;
        *' | '*' | '*)
            last=${#places[@]}
            places+=("${line%% | *}") killers+=("${line##* | }")
            text=${line#* | }
            changes+=("${text% | *}") before+=('') after+=('')
            [ -f "${places[last]}" ] || die "$1:$number: no file ${places[last]}"
            killer_exists "${killers[last]}" || die "$1:$number: no test ${killers[last]}"
            ;;
        *) die "$1:$number: neither a first line, FILE | CHANGE | KILLER, nor a line of a change" ;;
        esac
    done <"$1"
}

killer_exists() {
    [ -f "tests/unit/$1.c" ] || [ -f "tests/cli/$1" ]
}

is_wanted() {
    local pattern
    [ ${#patterns[@]} -gt 0 ] || return 0
    for pattern in "${patterns[@]}"; do
        if [[ "${places[$1]} | ${changes[$1]} | ${killers[$1]}" =~ $pattern ]]; then
            return 0
        fi
    done
    return 1
}

# Put the changed text of mutant $1 in TEXT, and fail if it does not fit the file: once, and as whole lines.
change_text() {
    local place=${places[$1]} old=$'\n'${before[$1]} new=$'\n'${after[$1]} rest
    IFS= read -r -d '' TEXT <"$place"
    TEXT=$'\n'$TEXT
    [ "$old" != "$new" ] && [ "$old" != $'\n' ] || die "$place: ${changes[$1]}: nothing changes"
    rest=${TEXT#*"$old"}
    [ "$rest" != "$TEXT" ] || die "$place: ${changes[$1]}: the lines are not in the file"
    [ "${rest/"$old"/}" = "$rest" ] || die "$place: ${changes[$1]}: the lines are in the file more than once"
    TEXT=${TEXT%"$old$rest"}$new$rest
    TEXT=${TEXT#$'\n'}
}

for file in tests/mutants/*.list; do
    read_list "$file"
done
wanted=()
for i in "${!places[@]}"; do
    change_text "$i"
    is_wanted "$i" && wanted+=("$i")
done
[ ${#wanted[@]} -gt 0 ] || die "no mutant matches"
if [ -n "$list" ]; then
    for i in "${wanted[@]}"; do
        echo "${places[i]}: ${changes[i]} (${killers[i]})"
    done
    exit 0
fi

# ---- The copy ----

scratch=$(mktemp -d "${TMPDIR:-/tmp}/mutants.XXXXXX") || exit 2
trap 'rm -rf "$scratch"' EXIT
git ls-files -z --cached --others --exclude-standard | xargs -0 cp -p --parents -t "$scratch" || exit 2
[ ! -d build ] || cp -a build "$scratch/" || exit 2
cd "$scratch" || exit 2
unset BUILD SANITIZE
sanitized=build/sanitized

make_targets() {
    make -j"$(nproc)" "$@" >"$scratch/make.log" 2>&1
}

make_sanitized() {
    make_targets BUILD=$sanitized SANITIZE=address,undefined "$@"
}

# Make the test $1 with what is planted in file $2.
build_killer() {
    case $1 in
    *.bats)
        # A library is in every program that is recorded.
        case $2 in
        injector/*) make_targets all ;;
        *) make_targets check-tests ;;
        esac && { ! grep -q sanitized_perfjit "tests/cli/$1" || make_sanitized "$sanitized/perfjit"; }
        ;;
    *) make_sanitized "$sanitized/tests/$1" ;;
    esac
}

# A mutant may write without end, or wait for what never comes.  What make check runs of a bats file is to fail, on stored recordings.
run_killer() {
    case $1 in
    *.bats)
        BUILD=$scratch/build HOME=$scratch RECORDINGS=stored BRIEF=10 \
            timeout 600 bats --tap --filter-tags '!live,!all' "tests/cli/$1"
        ;;
    *) timeout 120 "$sanitized/tests/$1" ;;
    esac >"$scratch/run.log" 2>&1 </dev/null
}

kills() {
    build_killer "$1" "$2" || {
        tail -20 "$scratch/make.log" >&2
        die "$2: it does not compile: $3"
    }
    ! run_killer "$1"
}

make_units() {
    make_sanitized $(ls tests/unit/*_test.c | sed -E "s,.*/(.*)\.c,$sanitized/tests/\1,")
}

# The first of all units that fails, into FOUND.
kills_at_all() {
    make_units || die "a unit does not compile"
    for found in "${asked[@]}"; do
        run_killer "$found" || return 0
    done
    return 1
}

# Of a bats file the test that failed, if it came so far.
failed_test() {
    case $1 in
    *.bats) sed -nE '/^not ok/{s/^not ok [0-9]+ /: /p;q}' "$scratch/run.log" ;;
    esac
}

# A test that fails by itself would kill every mutant.
for killer in $(for i in "${wanted[@]}"; do echo "${killers[i]}"; done | sort -u); do
    case $killer in
    *.bats) make_targets check-tests ;;
    esac
    if kills "$killer" "nothing planted" "$killer"; then
        cat "$scratch/run.log" >&2
        die "$killer fails without a mutant"
    fi
done

asked=() # with --all: the units that pass without a mutant
if [ -n "$all" ]; then
    make_units || die "a unit does not compile"
    for unit in tests/unit/*_test.c; do
        unit=${unit##*/}
        if run_killer "${unit%.c}"; then
            asked+=("${unit%.c}")
        else
            echo "not asked, since it fails without a mutant: ${unit%.c}" >&2
        fi
    done
fi

# ---- The mutants ----

killed=0
for i in "${wanted[@]}"; do
    change_text "$i"
    cp -p "${places[i]}" "$scratch/original"
    printf %s "$TEXT" >"${places[i]}"
    verdict=SURVIVED
    if kills "${killers[i]}" "${places[i]}" "${changes[i]}"; then
        verdict="killed by ${killers[i]}$(failed_test "${killers[i]}")"
    elif [ -n "$all" ] && kills_at_all; then
        verdict="killed by $found, not by ${killers[i]}"
    fi
    [ "$verdict" = SURVIVED ] || killed=$((killed + 1))
    echo "$verdict: ${places[i]}: ${changes[i]}"
    cat "$scratch/original" >"${places[i]}"
done
echo "$killed of ${#wanted[@]} killed"
[ $killed = ${#wanted[@]} ]
