# The documents for people who work on perfjit name files that exist.
load helper

setup() {
    root=$(cd "$here/../.." && pwd)
}

@test "README, CONTRIBUTING and docs/ name only files that exist" {
    cd "$root"
    run "$here/../documents.sh" "$root" README.md CONTRIBUTING.md docs/*.md docs/decisions/*.md
    [ "$status" = 0 ] && [ -z "$output" ] || complain "$output"
}

# missing_sections DOCUMENT...: links to a section, of the same or another document, that it does not have.  GitHub's anchor of a
# heading has its letters, digits and - in lower case, and - for a space.
missing_sections() {
    grep -noE '\]\([^) ]*#[^) ]+\)' "$@" /dev/null | grep -v '://' | while IFS=: read -r document line link; do
        link=${link#](} link=${link%)}
        target=${link%%#*}
        sed -nE 's/^#+ //p' "$(dirname "$document")/${target:-${document##*/}}" | tr '[:upper:] ' '[:lower:]-' | sed 's/[^a-z0-9_-]//g' |
            grep -qxF -- "${link#*#}" || echo "$document:$line: no section $link"
    done
}

@test "links to sections of documents lead to one" {
    cd "$root"
    run missing_sections README.md CONTRIBUTING.md docs/*.md docs/decisions/*.md jitdump/README.md jitunwind/README.md examples/*/README.md
    [ -z "$output" ] || complain "$output"
    cd "$BATS_TEST_TMPDIR"
    printf '# A thing: its `name`\n[this](#a-thing-its-name) [that](#a-thing) [other](b.md#a-thing-its-name)\n' | tee b.md >a.md
    run missing_sections a.md
    [ "$output" = "a.md:2: no section #a-thing" ] || complain "$output"
}

@test "sources and tests name only documents that exist" {
    cd "$root"
    grep -rnoE --include='*.[ch]' --include='*.hpp' --include='*.bats' --include='*.sh' 'docs/[a-z0-9_/-]+\.md' \
        injector jitdump jitunwind perfmap examples tests |
        while IFS=: read -r file line document; do
            [ -e "$document" ] || echo "$file:$line: no file $document"
        done >"$BATS_TEST_TMPDIR/missing"
    [ ! -s "$BATS_TEST_TMPDIR/missing" ] || complain "$(cat "$BATS_TEST_TMPDIR/missing")"
}

@test "a name without a file is found: a path, a name alone and a link" {
    cd "$BATS_TEST_TMPDIR"
    mkdir -p injector/log jitdump jitunwind perfmap tests docs examples bench dist
    touch injector/log/reader.c
    echo 'Begin: `log/reader.c`, `reader.c`, `injector/log/`, [it](../injector/log/reader.c), `perf.data`, `.c`.' >bench/right.md
    run "$here/../documents.sh" "$PWD" bench/right.md
    [ "$status" = 0 ] && [ -z "$output" ] || complain "$output"
    echo 'Begin: `log/writer.c`, `writer.h`, `injector/gone/`, [it](../injector/gone.md).' >bench/wrong.md
    run "$here/../documents.sh" "$PWD" bench/right.md bench/wrong.md
    [ "$status" = 1 ]
    [ "${#lines[@]}" = 4 ] || complain "$output"
    for name in log/writer.c writer.h injector/gone/ ../injector/gone.md; do
        [[ $output == *"bench/wrong.md: no file $name"* ]] || complain "$name: $output"
    done
}

@test "tests/README.md has a line for each file of cli/, and for no other" {
    cd "$root/tests"
    sed -n '/^## What the files in cli/,/^## What the libraries/p' README.md | grep -oE '^\|[^|]*\|' | grep -oE '`[a-z_0-9]+`' |
        tr -d '`' | sort >"$BATS_TEST_TMPDIR/named"
    find cli -name '*.bats' -printf '%f\n' | sed 's/\.bats$//' | sort >"$BATS_TEST_TMPDIR/there"
    same "$BATS_TEST_TMPDIR/named" "$BATS_TEST_TMPDIR/there"
}

# no_such_word DOCUMENT...: names in it, as `code_name_clean`, that are in no source.  A program elsewhere may have the name, too.
no_such_word() {
    cat "$@" | tr '\n' ' ' | grep -oE '`[a-z]+[a-z0-9]*(_[a-z0-9]+)+`' | tr -d '`' | sort -u >"$BATS_TEST_TMPDIR/words"
    find "$root"/{injector,jitdump,jitunwind,perfmap,agents,tests,examples,bench} -name '*.[chS]' -o -name '*.py' -o -name '*.js' |
        xargs grep -ohE '\b[a-z]+[a-z0-9]*(_[a-z0-9]+)+\b' | sort -u | comm -13 - "$BATS_TEST_TMPDIR/words"
}

@test "CONTRIBUTING and the architecture name only functions and fields that exist" {
    run no_such_word "$root/CONTRIBUTING.md" "$root/docs/architecture.md"
    [ -z "$output" ] || complain "$output"
    echo 'See `code_name_printable` and `code_name_was_here`.' >"$BATS_TEST_TMPDIR/a.md"
    run no_such_word "$BATS_TEST_TMPDIR/a.md"
    [ "$output" = code_name_was_here ] || complain "$output"
}
