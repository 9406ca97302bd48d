# perfjit under valgrind, which sees what sanitizers do not: a byte that was never set and is looked at, or is written to a file.
# bats file_tags=live
load helper

setup() {
    require_perf
    command -v valgrind >/dev/null || skip "there is no valgrind"
    cd "$BATS_TEST_TMPDIR"
    export JITDUMPDIR=$PWD
}

memcheck() {
    run --separate-stderr timeout 60 valgrind -q --error-exitcode=9 --leak-check=full \
        --errors-for-leak-kinds=definite,possible "$BUILD/perfjit" "$@"
    exits 0
}

@test "memcheck has nothing to say about functions in an arena" {
    PERFJIT=dump record a.data "$BUILD/producers/many_functions" -n 20 -s 0.3
    memcheck inject -i a.data -o out.data
    [ -s out.data ]
}

@test "memcheck has nothing to say about every kind of record, with user stacks" {
    PERFJIT=dump record a.data --call-graph dwarf,1024 "$BUILD/producers/every_record" 0.3
    memcheck inject -i a.data -o out.data
    memcheck dump -v "$(dumps_of a.data)"
}

# bats test_tags=all
@test "memcheck has nothing to say about check and repair, of a dump that is damaged and one that is copied" {
    PERFJIT=dump record a.data "$BUILD/producers/every_record" 0.3
    local dump
    dump=$(dumps_of a.data)
    memcheck check a.data "$dump"
    chmod 660 "$dump"
    memcheck inject -i a.data -o out.data
    memcheck check --repair whole.dump "$dump"
    head -c -50 "$dump" >cut.dump
    run --separate-stderr timeout 60 valgrind -q --error-exitcode=9 --leak-check=full "$BUILD/perfjit" check cut.dump
    exits 3
}
