#!/usr/bin/env bats
# examples/ci: what the jobs run, in a repository of two commits, of which the second does twice as much; and what the
# script says of both.
# bats file_tags=live
load helper

examples=$BATS_TEST_DIRNAME/../../examples/ci

setup_file() {
    require_perf || return 0
    mkdir "$BATS_FILE_TMPDIR/project"
    cd "$BATS_FILE_TMPDIR/project" || return
    export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
    git init -q -b main . && git config user.name test && git config user.email test@example.org
    mkdir -p examples/ci
    cp "$examples"/* examples/ci
    printf 'build/tinyjit:\n\tmkdir -p build && cp %s build/\n' "$BUILD/tinyjit" >Makefile
    sed -i 's/round < 600/round < 300/' examples/ci/benchmark.tj
    git add . && git commit -qm base
    sed -i 's/count(100000)/count(400000)/' examples/ci/benchmark.tj
    git commit -qam slower
}

setup() {
    require_perf
    cd "$BATS_FILE_TMPDIR/project" || return
    export PERFJIT=$BUILD/perfjit RUNS=8 GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
}

# job_steps FILE: the lines of a job that run the script, of the first commit.
job_steps() {
    sed -n 's/^ *\(- \)\{0,1\}\(examples\/ci\/steps.sh .*\)/\2/p' "$1" |
        sed "s/\${{ github.event.pull_request.base.sha }}/$(git rev-parse HEAD~1)/"
}

# run_job FILE: its steps one after the other, as a job would.
run_job() {
    local line
    git worktree prune
    export CI_MERGE_REQUEST_DIFF_BASE_SHA
    CI_MERGE_REQUEST_DIFF_BASE_SHA=$(git rev-parse HEAD~1)
    make -s build/tinyjit
    while read -r line; do
        bash -ec "$line" </dev/null || return
    done <<<"$(job_steps "$1")"
}

@test "both jobs build the base, compare in turns, write report and summary, and then fail for what is slower" {
    local job jobs="github-actions gitlab-ci"
    [ -z "${BRIEF:-}" ] || jobs=gitlab-ci
    for job in $jobs; do
        rm -rf ci
        [ "$(job_steps examples/ci/$job.yml | wc -l)" = 2 ] || complain "$job"
        run run_job examples/ci/$job.yml
        [ "$status" = 4 ] || complain "$job: $status: $output"
        grep -q '^slower: +' ci/out/report.txt
        head -1 ci/out/summary.md | grep -q '^### slower: +'
        grep -Eq ' slower .* tj::count  benchmark.tj$' ci/out/report.txt
        head -3 ci/out/report.txt | grep -q '^by: tj::count  benchmark.tj +'
        grep -q '| slower | <code>tj&#58;&#58;count  benchmark.tj</code> |$' ci/out/comment.md
        cmp ci/out/summary.md ci/out/comment.md
        jq -e '.total.verdict == "slower"' ci/out/report.json >/dev/null
        grep -q '</html>' ci/out/report.html
        perfjit diff ci/out/perfjit.bench | grep -q '^slower: +'
    done
}

# bats test_tags=all
@test "the same locally in one word: of the commit before, and of the same one, which is no failure" {
    rm -rf build
    run examples/ci/steps.sh all HEAD~1
    [ "$status" = 4 ] || complain "$output"
    [ -s build/ci/summary.md ]
    rm -rf build
    SLOWER_BY=20% examples/ci/steps.sh all HEAD 2>said || complain "$(cat said)"
    run examples/ci/steps.sh
    [ "$status" = 2 ]
    [[ "$output" == *"steps.sh all"* ]]
}

@test "no verdict of a step is lost: a program that fails ends the job with 1, before any report" {
    rm -rf build
    make -s build/tinyjit
    mkdir -p broken/examples/ci broken/build
    cp build/tinyjit broken/build
    echo 'fn main() { return' >broken/examples/ci/benchmark.tj
    run examples/ci/steps.sh compare "$PWD/broken" "$PWD" out
    [ "$status" = 1 ]
    [[ "$output" == *"ended with status"* ]]
    [ ! -e out/report.txt ]
}
