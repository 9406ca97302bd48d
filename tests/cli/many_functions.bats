# 15000 functions in one arena: the layout that is this project's reason to be.
load helper

setup_file() {
    require_perf || return 0
    cd "$BATS_FILE_TMPDIR" || return
    PERFJIT=dump JITDUMPDIR=$PWD recording many record many.data "$BUILD/producers/many_functions" -n 15000 -b 160 -s 1.5 -t truth
    perfjit inject -v -i many.data -o image.data 2>image.err
    samples image.data >image.samples
    # The function layout takes ten times as long: 15000 files.
    [ "$RECORDINGS" = live ] || return 0
    perfjit inject -i many.data -o function.data --layout function 2>function.err
    samples function.data >function.samples
}

setup() {
    require_perf
    cd "$BATS_FILE_TMPDIR"
}

# number TEXT FILE: the number in front of TEXT.
number() {
    grep -oE "[0-9]+ $1" "$2" | grep -oE '^[0-9]+'
}

check_truth() {
    local score
    score=$("$BUILD/producers/truth_check" truth <"$1.samples")
    echo "# $1 layout: $score" >&3
    read -r _ samples _ right _ <<<"$score"
    [ "$samples" -ge 1000 ]
    [ "$right" -eq "$samples" ]
}

# bats test_tags=both
@test "image layout: every sample in the arena has the right name" {
    check_truth image
}

# bats test_tags=live
@test "function layout: every sample in the arena has the right name" {
    check_truth function
}

# bats test_tags=live
@test "both layouts give every sample the same name" {
    same image.samples function.samples
}

@test "image layout: at most three ELF files" {
    [ "$(number "functions in" image.err)" -eq 15000 ]
    files image.data.dso >"$BATS_TEST_TMPDIR/files"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/files")" -le 3 ]
}

# bats test_tags=live
@test "function layout: an ELF file for each function" {
    [ "$(find function.data.dso -name '*.so' | wc -l)" -eq 15000 ]
}

# They are compiled in one run, so few records do: as many as there were samples meanwhile, not one for each function.
@test "image layout: a record for a run of functions" {
    local maps
    maps=$(number 'of JIT code added' image.err)
    echo "# $maps mappings added" >&3
    [ "$maps" -le 1500 ]
}

@test "image layout: readelf and eu-elflint find nothing to say" {
    readelf -a -W $(elf_files image.data.dso) >/dev/null 2>"$BATS_TEST_TMPDIR/readelf"
    same "$BATS_TEST_TMPDIR/readelf" /dev/null
    run eu-elflint --gnu-ld $(elf_files image.data.dso)
    [ "$output" = "No errors" ]
}
