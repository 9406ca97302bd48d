#!/usr/bin/env bats
# examples/ci/steps.sh: the base is the commit that was asked for.  A stand-in for perfjit says which program it gets.
load helper

setup() {
    cd "$BATS_TEST_TMPDIR" || return
    git init -q repository
    cd repository || return
    git config user.email a@b
    git config user.name a
    mkdir -p examples/ci
    cp "$here/../../examples/ci/steps.sh" examples/ci/
    : >examples/ci/benchmark.tj
    printf 'build/tinyjit: program\n\tmkdir -p build; cp program build/tinyjit\n' >Makefile
    echo build >.gitignore
    local version
    for version in one two three; do
        echo $version >program
        git add -A
        git commit -qm $version
    done
    cat >../perfjit <<'END'
#!/bin/bash
while [ $# -gt 0 ]; do
    case $1 in --base) set -- $2; cat "$1" >>"$SEEN" ;; esac
    shift
done
exit 1
END
    chmod +x ../perfjit
    export SEEN=$BATS_TEST_TMPDIR/seen PERFJIT=$BATS_TEST_TMPDIR/perfjit
}

@test "the base is that of the commit that was asked for, not the one that lies there" {
    for commit in HEAD~2 HEAD~1 HEAD~1; do examples/ci/steps.sh all $commit || :; done
    [ "$(cat "$SEEN")" = $'one\ntwo\ntwo' ] || complain "$(cat "$SEEN")"
    # A cache has no repository behind it.
    mv build/ci/base base
    rm -rf .git/worktrees
    examples/ci/steps.sh build HEAD~1 base
    [ "$(cat base/build/tinyjit)" = two ]
    examples/ci/steps.sh build HEAD~2 base
    [ "$(cat base/build/tinyjit)" = one ]
}

@test "a folder that is no base stays" {
    mkdir other
    : >other/file
    run examples/ci/steps.sh build HEAD~1 other
    [ "$status" = 1 ]
    [[ $output == *"other: is there already, and is no base"* ]]
    [ -e other/file ]
}

@test "a directory whose name is no word of a shell's: both programs are the ones in it" {
    cat >../perfjit <<'END'
#!/bin/bash
while [ $# -gt 0 ]; do
    case $1 in --base | --new) sh -c "set -- $2"'; cat "$1"; [ $# = 3 ] || echo "$# words"' >>"$SEEN" ;; esac
    shift
done
exit 1
END
    mv "$PWD" "$PWD, it's \$mine"
    cd "$BATS_TEST_TMPDIR/repository, it's \$mine" || return
    examples/ci/steps.sh all HEAD~1 || :
    [ "$(cat "$SEEN")" = $'two\nthree' ] || complain "$(cat "$SEEN")"
}
