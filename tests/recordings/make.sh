#!/usr/bin/env bash
# make recordings: record anew what tests/recordings/ holds, by the commands that the tests in tests/cli/ give to `recording`.
#
#     tests/recordings/make.sh BUILD_DIR [FILE.bats...]       # of these files alone, default: of all that call `recording`
#     FILTER=REGEX tests/recordings/make.sh BUILD_DIR FILE.bats      # of the tests whose names match
#
# Recorded is in a place of its own, so that a recording names nothing of the machine: namespaces of pids, mounts and host name, in
# which the source tree is /opt/perfjit and the programs are static.  The pids are the highest that Linux knows, so that no process has
# them where the recording is read.  Needs root, perf events, and the runtimes (make setup-live).
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(realpath "${1:?usage: tests/recordings/make.sh BUILD_DIR [FILE.bats...]}")
shift
[ $# -gt 0 ] && everything= || everything=yes
[ $# -gt 0 ] || set -- $(grep -lE '(^|[ (])(sound_)?recording [a-z"$]' tests/cli/*.bats tests/cli/*.bash | sed -n 's,.*/\(.*\.bats\)$,\1,p')

# The programs whose own functions stand in stacks that are unwound, or are named.
programs="tinyjit producers/address_churn producers/process_lives producers/unwind_shapes producers/interpreted producers/inlined_children
    producers/short_frames minimal"

# Without debug information, so that the same sources make the same build-ids in whatever folder.  perf unwinds a static program by
# .eh_frame_hdr, which gcc leaves out there.
build_programs() {
    local all
    all=$(ls tests/producers/*.c | grep -vE '/(aarch64|riscv64)_|/fail_nth.c' | sed -E "s,tests/(.*)\.c,$build/recorded/\1,")
    make --no-print-directory -j"$(nproc)" BUILD="$build/recorded" CFLAGS=-O2 LDFLAGS="-static -Wl,--eh-frame-hdr" "$build/recorded/tinyjit" "$build/recorded/minimal" $all
    # perfjit and the judges stand beside them.
    cp "$build/perfjit" "$build/recorded/"
    ln -sfn ../sanitized "$build/recorded/sanitized"
    ln -sfn ../fail_nth.so "$build/recorded/fail_nth.so"
}

pack_programs() {
    local packed program
    packed=$(mktemp -d)
    for program in $programs; do
        install -D "$build/recorded/$program" "$packed/opt/perfjit/build/recorded/$program"
        touch -d @0 "$packed/opt/perfjit/build/recorded/$program"
    done
    (cd "$packed" && tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -cf - opt | xz -9e) >"$build/recorded/programs.tar.xz"
    rm -rf "$packed"
    cp "$build/recorded/programs.tar.xz" tests/recordings/
}

# Where some recordings stay, what is recorded are the programs that those have.
unpack_programs() {
    tar -xJf tests/recordings/programs.tar.xz --touch --strip-components=3 -C "$build"
}

if [ -z "${IN_PLACE:-}" ]; then
    build_programs
    if [ -n "$everything" ]; then pack_programs; else unpack_programs; fi
    new=$(mktemp -d "$build/recordings.XXXXXX")
    status=0
    RECORDINGS_DIR=$new IN_PLACE=yes unshare --mount --pid --fork --uts --mount-proc --kill-child "$0" "$build" "$@" || status=$?
    # Those that no test uses any more go.
    [ -z "$everything" ] || [ $status -ne 0 ] || rm -rf tests/recordings/*/
    for folder in "$new"/*; do
        [ -d "$folder" ] || continue
        mkdir -p "tests/recordings/${folder##*/}"
        for recording in "$folder"/*; do
            [ -e "$recording/files.tar.xz" ] || continue
            rm -rf "tests/recordings/${folder##*/}/${recording##*/}"
            mv "$recording" "tests/recordings/${folder##*/}/"
        done
    done
    rm -rf "$new"
    du -sh --apparent-size tests/recordings
    exit $status
fi

hostname recorded
# So many pids are left that they do not come round to the lowest ones.
echo 4000000 >/proc/sys/kernel/ns_last_pid
mount -t tmpfs none /opt
mkdir -p /opt/perfjit /opt/new
mount --bind . /opt/perfjit
mount --bind "$RECORDINGS_DIR" /opt/new
mount --bind "$build" /opt/perfjit/build
cd /opt/perfjit/tests/cli
export RECORDINGS=anew RECORDINGS_DIR=/opt/new BUILD=/opt/perfjit/build/recorded TMPDIR=/tmp HOME=/tmp/home
failed=0
# Each file has a /tmp of its own: what a recording finds there becomes part of it.
printf '%s\n' "$@" | xargs -P "${JOBS:-$(nproc)}" -n 1 unshare --mount sh -c '
    mount -t tmpfs none /tmp
    mkdir "$HOME"
    file=${1##*/}
    bats --tap ${FILTER:+-f "$FILTER"} --filter-tags "!live,!all" "$file" >/opt/new/$file.log 2>&1 || status=1
    grep "^not ok" -A12 /opt/new/$file.log
    echo "$file: $(grep -c "^ok" /opt/new/$file.log) ok, $(grep -c "^not ok" /opt/new/$file.log) not ok"
    exit ${status:-0}' sh || failed=1
exit $failed
