# make install and make uninstall: what is put where, and how programs find it.
load helper

top=$here/../..

setup() {
    cd "$BATS_TEST_TMPDIR"
}

make_here() {
    env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s -C "$top" BUILD="$BUILD" "$@"
}

files_below() {
    (cd "$1" && find . ! -type d | sort)
}

# What install-libraries puts below two directories.
library_files() { # LIBDIR INCLUDEDIR
    local library header version
    version=$(sed -n 's/^VERSION := //p' "$top/Makefile")
    for library in jitdump perfmap jitunwind; do
        printf "$1/%s\n" lib$library.a lib$library.so lib$library.so.0 "lib$library.so.$version" pkgconfig/lib$library.pc pkgconfig/$library.pc
        printf "$2/%s\n" $library.h $library/$library.h
    done
    for header in cfi.h cfi.hpp jitdump.hpp memory.hpp trampoline.h; do
        echo "$2/jitdump/$header"
    done
}

# Java's agent, which is there where a JDK was when it was built.
agent_files() { # LIBDIR
    [ ! -e "$BUILD/libperfjit-java.so" ] || echo "$1/perfjit/libperfjit-java.so"
}

# Pages and completions have tests of their own.
without_pages() {
    grep -v '^\./[^ ]*/share/'
}

@test "make install puts everything in place, and nothing else" {
    make_here install DESTDIR="$PWD/root" PREFIX=/usr
    files_below root | without_pages >installed
    (echo ./usr/bin/perfjit; agent_files ./usr/lib; library_files ./usr/lib ./usr/include) | sort | same installed /dev/stdin
    [ "$(readlink root/usr/lib/libjitdump.so)" = libjitdump.so.0 ]
    find root ! -type d ! -type l ! -perm -444 >unreadable
    same unreadable /dev/null
}

@test "the command and the libraries can be installed alone" {
    make_here install-command DESTDIR="$PWD/command" PREFIX=/usr
    files_below command | without_pages >installed
    (echo ./usr/bin/perfjit; agent_files ./usr/lib) | same installed /dev/stdin
    make_here install-libraries DESTDIR="$PWD/libraries" PREFIX=/usr
    files_below libraries | without_pages >installed
    library_files ./usr/lib ./usr/include | sort | same installed /dev/stdin
}

@test "each directory can be given, spaces and quotes in it too" {
    local at=(PREFIX="/a b" BINDIR="/a b/the bin" LIBDIR="/li'b/x86 64" INCLUDEDIR="/a b/in&clude" MANDIR="/m a n" DATADIR="/d|a")
    make_here install DESTDIR="$PWD/the root" "${at[@]}"
    files_below "the root" | grep -v '^\./\(m a n\|d|a\)/' >installed
    (echo './a b/the bin/perfjit'; agent_files "./li'b/x86 64"; library_files "./li'b/x86 64" './a b/in&clude') | sort | same installed /dev/stdin
    grep -qx "libdir=/li'b/x86 64" "the root/li'b/x86 64/pkgconfig/jitdump.pc"
    grep -qx 'includedir=${prefix}/in&clude' "the root/li'b/x86 64/pkgconfig/jitdump.pc"
    make_here uninstall DESTDIR="$PWD/the root" "${at[@]}"
    files_below "the root" | same /dev/stdin /dev/null
}

@test "make uninstall removes what make install put there, and nothing else" {
    mkdir -p root/usr/{bin,lib/pkgconfig,include/jitdump}
    touch root/usr/bin/perf root/usr/lib/libjitdump2.so root/usr/lib/pkgconfig/zlib.pc root/usr/include/jitdump/own.h
    files_below root >before
    make_here install DESTDIR="$PWD/root" PREFIX=/usr
    [ -e root/usr/include/perfmap/perfmap.h ]
    make_here uninstall DESTDIR="$PWD/root" PREFIX=/usr
    files_below root | same /dev/stdin before
    [ ! -e root/usr/include/perfmap ] && [ ! -e root/usr/include/jitunwind ] # they were made for it alone
    make_here uninstall DESTDIR="$PWD/root" PREFIX=/usr                      # nothing is there any more
}

# What the maker of the pages and completions leaves in the build directory, as it will be.
@test "manual pages and completions go where man and the shells look for them" {
    mkdir -p built/{man,completions/{bash,zsh,fish}}
    cp -r "$BUILD"/{perfjit,lib*} built
    rm -rf built/man/* built/completions/*/*
    touch built/man/{perfjit.1,perfjit-inject.1,jitdump_open.3,perfjit-formats.5,perfjit.7}
    touch built/completions/{bash/perfjit,zsh/_perfjit,fish/perfjit.fish}
    BUILD=$PWD/built make_here install DESTDIR="$PWD/root" PREFIX=/usr -o all -o libraries -o "$PWD/built/perfjit" -o manuals -o library-manuals
    files_below root/usr/share >installed
    sort <<'EOF' | same installed /dev/stdin
./bash-completion/completions/perfjit
./fish/vendor_completions.d/perfjit.fish
./man/man1/perfjit-inject.1
./man/man1/perfjit.1
./man/man3/jitdump_open.3
./man/man5/perfjit-formats.5
./man/man7/perfjit.7
./zsh/site-functions/_perfjit
EOF
}

# The tree is copied, and the first one removed: a .pc file names its directories by its prefix.
@test "programs are compiled and run by what pkg-config says, in a place with spaces, by either name of header and .pc file" {
    cat >hello.c <<'EOF'
#include NAMED
#include <stdio.h>

int main(void)
{
    printf("%s\n", VERSION_OF());
    return 0;
}
EOF
    local version library prefix name header
    version=$(sed -n 's/^VERSION := //p' "$top/Makefile")
    make_here install PREFIX="$PWD/the tree"
    cp -r "the tree" "another tree"
    for prefix in "the tree" "another tree"; do
        for library in jitdump perfmap jitunwind; do
            for name in $library:$library/$library.h lib$library:$library.h; do
                header=${name#*:}
                PKG_CONFIG_LIBDIR="$PWD/$prefix/lib/pkgconfig" pkg-config --define-variable=prefix="$PWD/$prefix" \
                    --cflags --libs "${name%:*}" >flags
                eval "cc -Wall -Wextra -Werror -DNAMED='<$header>' -DVERSION_OF=${library}_version -o hello hello.c $(cat flags)"
                [ "$(LD_LIBRARY_PATH="$PWD/$prefix/lib" ./hello)" = "$version" ]
            done
        done
        rm -rf "the tree"
    done
}

# The build's own flags stay whatever is given.
@test "CPPFLAGS, CFLAGS and LDFLAGS of the command line and the environment are added" {
    make_here -n V=1 BUILD="$PWD/new" CPPFLAGS=-DGIVEN CFLAGS=-O1 LDFLAGS=-Wl,-z,relro "$PWD/new/libperfmap.so.0" >said
    grep -q -- '-I\. -D_GNU_SOURCE .*-DGIVEN .*-fvisibility=hidden .*-O1 .*-c -o' said
    run ! grep -q -- ' -O2' said
    grep -q -- '-shared .*-Wl,-z,relro .*--version-script' said
    CPPFLAGS=-DGIVEN CFLAGS=-O1 LDFLAGS=-Wl,-z,relro make_here -n V=1 BUILD="$PWD/new" "$PWD/new/libperfmap.so.0" >inherited
    same inherited said
    make_here -j2 BUILD="$PWD/new" CPPFLAGS=-DGIVEN CFLAGS='-O1 -flto' LDFLAGS=-Wl,-z,relro "$PWD/new/libperfmap.so.0"
    nm -D new/libperfmap.so.0 | grep -q ' T perfmap_open'
}

@test "the archiver is the compiler's, or the one that is given" {
    printf '#!/bin/sh\n[ "$1" != -print-prog-name=ar ] || echo its-own-ar\n' >compiler
    chmod +x compiler
    make_here -n V=1 BUILD="$PWD/new" CC="$PWD/compiler" "$PWD/new/libperfmap.a" >said
    grep -q '^its-own-ar rcs ' said || complain "$(grep rcs said)"
    make_here -n V=1 BUILD="$PWD/new" CC="$PWD/compiler" AR=another "$PWD/new/libperfmap.a" >said
    grep -q '^another rcs ' said || complain "$(grep rcs said)"
    AR=another make_here -n V=1 BUILD="$PWD/new" CC="$PWD/compiler" "$PWD/new/libperfmap.a" >said
    grep -q '^another rcs ' said || complain "$(grep rcs said)"
}

@test "a folder of sources with spaces is built in; a build folder with spaces is refused in words" {
    mkdir -p "the sources/tests"
    cp -r "$top"/{Makefile,jitdump,perfmap,jitunwind,packaging} "the sources"
    cp "$top/tests/levels" "the sources/tests"
    env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s -C "the sources" -j2 BUILD=built CFLAGS=-O0 built/libperfmap.so.0 built/libperfmap.a
    [ -e "the sources/built/libperfmap.so.0" ]
    run make_here BUILD="$PWD/the build" libraries
    [ "$status" = 2 ]
    [[ $output == *"a folder whose name has spaces"* ]]
}

@test "packages have the Makefile's version" {
    local version
    version=$(sed -n 's/^VERSION := //p' "$top/Makefile")
    sed -n '1s/perfjit (\(.*\)) .*/\1/p' "$top/debian/changelog" >versions
    sed -nE 's/^(Version: *|pkgver=)//p' "$top/packaging/perfjit.spec" "$top/packaging/APKBUILD" "$top/packaging/PKGBUILD" >>versions
    printf "$version\n%.0s" 1 2 3 4 | same versions /dev/stdin
}

@test "make deb names the package that it needs, and leaves what was built before" {
    mkdir -p bin build/deb
    ln -s /usr/bin/* bin/
    rm -f bin/dpkg-buildpackage
    PATH=$PWD/bin run -2 make_here BUILD="$PWD/build" deb
    [[ $output = *'apt-get install build-essential debhelper'* ]] || complain "$output"
    [ -d build/deb ]
}

# What make deb says, and gives to dpkg-buildpackage, where this package is installed.
deb_with() { # PACKAGE PROVIDES
    mkdir dpkg
    printf '%s\n' "Package: $1" "Provides: $2" 'Status: install ok installed' 'Architecture: all' 'Version: 1' \
        'Maintainer: nobody <n@example>' 'Description: a package' >dpkg/status
    DPKG_ADMINDIR=$PWD/dpkg PATH=$PWD/bin:$PATH make_here BUILD="$PWD/build" deb
    rm -r dpkg
}

@test "make deb takes any JDK's package, and says when there is none" {
    mkdir bin
    printf '#!/bin/sh\necho "built: $*"\n' >bin/dpkg-buildpackage
    printf '#!/bin/sh\n' | tee bin/git >bin/tar
    chmod +x bin/*
    deb_with default-jdk-headless '' | same - <(echo 'built: -us -uc')
    deb_with openjdk-17-jdk-headless 'java-compiler, java-sdk-headless (= 17)' | same - <(echo 'built: -us -uc')
    deb_with openjdk-17-jre-headless java-runtime-headless >said
    grep -q 'without the agent for Java: apt-get install default-jdk-headless' said
    grep -qx 'built: -us -uc -Pnojava' said
}

@test "a package that is built without the agent for Java has none, whichever JDK there is" {
    mkdir -p jdk/include
    touch jdk/include/jvmti.h
    export JAVA_HOME=$PWD/jdk
    # That file is of dpkg-dev.
    grep -v '^include ' "$top/debian/rules" >rules
    for profiles in nojava ''; do
        DEB_BUILD_PROFILES=$profiles make_here -f "$PWD/rules" -n override_dh_auto_build override_dh_auto_install >"commands $profiles"
        sed -n 's/^dh_auto_build -- //p' "commands $profiles" >goals
        # shellcheck disable=SC2046 # several words
        make_here BUILD="$PWD/build" -n $(cat goals) >"build $profiles"
    done
    grep -q libperfjit-java.so "commands "
    grep -q libperfjit-java.so "build "
    run ! grep libperfjit-java.so "commands nojava" "build nojava"
}

# bats test_tags=live
@test "the static command is one file of at most 5 MB, and reads recordings where nothing else is" {
    local place
    [ "$(id -u)" = 0 ] || skip "only root can change to a directory without libraries"
    make_here static
    [ "$(stat -c %s "$BUILD/static/perfjit")" -le 5000000 ]
    readelf -ld "$BUILD/static/perfjit" >linked
    run ! grep -E 'INTERP|NEEDED' linked
    read -r place <"$here/../recordings/minimal/minimal/place"
    mkdir -p "box$place"
    tar -xJPf "$here/../recordings/minimal/minimal/files.tar.xz" --transform "s,^here,$PWD/box$place,"
    cp "$BUILD/static/perfjit" box
    chroot box /perfjit inject -q -i "$place/minimal.data" -o /injected.data
    chroot box /perfjit report /injected.data >report
    grep -q ' polynomial (examples/minimal.c)$' report
    mv "box$place"/dumps/*/*.dump box/its.dump
    chroot box /perfjit dump /its.dump >said
    perfjit dump box/its.dump | same said /dev/stdin
}
