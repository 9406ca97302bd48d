# libjitunwind as a guest: a program, producers/unwind_hosts.c, in a world that has something in the way.  No signal ends it, and it
# ends.  Each host with this libc; as with one before glibc 2.35, which does not say in a handler what is loaded; and with musl.
load helper

top=$here/../..
hosts=$BUILD/producers/unwind_hosts

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    cat >plugin.c <<'END'
int plugin(int (*callback)(void))
{
    volatile char room[64];
    room[0] = 1;
    return callback() * room[0];
}
END
    gcc -shared -fPIC -O2 -fomit-frame-pointer -o plugin.so plugin.c
    cat >old_libc.h <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#undef DLFO_STRUCT_HAS_EH_DBASE
END
    gcc -std=gnu11 -O2 -include ./old_libc.h -I"$top" -DJITUNWIND_STATIC -o old_libc "$top/tests/producers/unwind_hosts.c" \
        "$BUILD/dist/jitunwind.c" -pthread -ldl
    run ! grep -c _dl_find_object <(nm -u old_libc)
}

# What make check does not install.
make_for_musl() {
    require_musl
    with_musl -std=gnu11 -D_GNU_SOURCE -O2 "-I$top" -DJITUNWIND_STATIC -fPIE -c \
        "$top/tests/producers/unwind_hosts.c" "$BUILD/dist/jitunwind.c"
    # musl-gcc leaves the search table out.
    musl-gcc -pthread -Wl,--eh-frame-hdr -static -o musl_static unwind_hosts.o jitunwind.o
    musl-gcc -pthread -Wl,--eh-frame-hdr -pie -o musl unwind_hosts.o jitunwind.o
    musl-gcc -shared -fPIC -O2 -fomit-frame-pointer -Wl,--eh-frame-hdr -o musl_plugin.so "$files/plugin.c"
}

setup() {
    cd "$BATS_TEST_TMPDIR"
    files=$BATS_FILE_TMPDIR
}

# fine PROGRAM HOST [ARGUMENT...]: as promised, or this user may not be such a host.
fine() {
    local status=0
    timeout 120 "$@" >said 2>&1 || status=$?
    [ $status = 0 ] || [ $status = 77 ] || complain "$(basename "$1") ${*:2}: status $status: $(cat said)"
}

every_host() {
    local host program=$1
    mkdir -p empty
    for host in hole hole-thread "refused 1" "refused 13" "refused 38" sandboxes alone memory names gone cancels handlers vforks pipe limit terminal closed locked locked-later \
        "chroot $PWD/empty" "user 65534" forks stops; do
        fine "$program" $host
    done
}

@test "holes, sandboxes, limits, closed and broken descriptors, locked memory, other users, forks, stopped threads" {
    every_host "$hosts"
}

@test "... with a libc that does not say in a handler what is loaded" {
    every_host "$files/old_libc"
}

# bats test_tags=live
@test "... with musl, static and shared, and libraries that were loaded later" {
    make_for_musl
    every_host ./musl_static
    every_host ./musl
    fine ./musl late ./musl_plugin.so
    fine ./musl early ./musl_plugin.so
    fine ./musl unload ./musl_plugin.so
}

# plugins NUMBER PLUGIN: so many copies of it.
plugins() {
    local i
    mkdir many
    for ((i = 0; i < $1; i++)); do cp "$2" "many/$i.so"; done
}

@test "libraries that were loaded later are known, and those that were unloaded are not read" {
    for program in "$hosts" "$files/old_libc"; do
        fine "$program" late "$files/plugin.so"
        fine "$program" early "$files/plugin.so"
        fine "$program" unload "$files/plugin.so"
    done
}

@test "600 libraries are known, before the arena is opened and after it" {
    plugins 600 "$files/plugin.so"
    for program in "$hosts" "$files/old_libc"; do
        fine "$program" early many/*.so
        fine "$program" late many/*.so
    done
}
