# The order of the rooms (docs/architecture.md) is kept, and what breaks it is found.
load helper

setup() {
    cd "$BATS_TEST_TMPDIR"
    cp -r "$here/../../"{injector,jitdump,jitunwind,perfmap,docs} .
}

rooms() {
    TREE=$PWD "$here/../rooms.sh" 2>&1 >/dev/null
}

# bats test_tags=test
@test "no arrow goes back, no two files include each other, no room or file is too large" {
    run rooms
    [ "$status" = 0 ] && [ -z "$output" ] || complain "$output"
}

@test "a planted arrow back, circle, large file, large room and room without a floor are found" {
    echo '#include "injector/timeline/timeline.h"' >>injector/dump/jit_dump.h
    run rooms
    [ "$status" = 1 ] && [[ $output == *"arrow back: injector/dump -> injector/timeline"* ]]
    cp "$here/../../injector/dump/jit_dump.h" injector/dump/
    echo '#include "injector/plan/image_plan.h"' >>injector/plan/table_space.h
    echo '#include "injector/plan/table_space.h"' >>injector/plan/image_plan.h
    run rooms
    [ "$status" = 1 ] && [[ $output =~ circle\ of\ files:.*(table_space.*image_plan|image_plan.*table_space) ]]
    cp "$here/../../injector/plan/"*.h injector/plan/
    yes '/* */' | head -600 >>injector/clock/jit_clock.h
    mkdir injector/attic
    touch injector/attic/{1..21}.c
    echo '#include "injector/clock/jit_clock.h"' >injector/attic/1.c
    run rooms
    [ "$status" = 1 ]
    [[ $output == *"injector/clock/jit_clock.h has "* && $output == *"injector/attic has 21 files"* ]]
    [[ $output == *"no floor in docs/architecture.md for injector/attic"* ]]
}
