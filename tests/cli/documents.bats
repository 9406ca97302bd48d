# The documents for people who work on perfjit name files that exist.
load helper

setup() {
    root=$(cd "$here/../.." && pwd)
}

@test "CONTRIBUTING, the architecture and the decisions name only files that exist" {
    cd "$root"
    run "$here/../documents.sh" "$root" CONTRIBUTING.md docs/architecture.md docs/decisions/*.md
    [ "$status" = 0 ] && [ -z "$output" ] || complain "$output"
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
