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
@test "no arrow goes back, and no two files include each other" {
    run rooms
    [ "$status" = 0 ] && [ -z "$output" ] || complain "$output"
}

@test "a planted arrow back, circle and room without a floor are found" {
    echo '#include "injector/history/timeline/timeline.h"' >>injector/log/jitdump/jit_dump.h
    run rooms
    [ "$status" = 1 ] && [[ $output == *"arrow back: injector/log/jitdump -> injector/history/timeline"* ]]
    cp "$here/../../injector/log/jitdump/jit_dump.h" injector/log/jitdump/
    echo '#include "injector/inject/layout/image_plan.h"' >>injector/inject/layout/table_space.h
    echo '#include "injector/inject/layout/table_space.h"' >>injector/inject/layout/image_plan.h
    run rooms
    [ "$status" = 1 ] && [[ $output =~ circle\ of\ files:.*(table_space.*image_plan|image_plan.*table_space) ]]
    cp "$here/../../injector/inject/layout/"*.h injector/inject/layout/
    mkdir injector/attic
    echo '#include "injector/log/clock/jit_clock.h"' >injector/attic/1.c
    run rooms
    [ "$status" = 1 ]
    [[ $output == *"no floor in docs/architecture.md for injector/attic"* ]]
}
