# The libraries as guests: file systems of every kind, sandboxes, limits, no memory.  A program, producers/guest.c, logs with both
# from two threads.  No signal ends it, and nothing is printed.  Records whose call returned 0 are in the files, once; the others
# are counted.
load helper

guest=$BUILD/producers/guest

setup() {
    apart=${BRIEF:+9} # every ninth step of a sweep
    apart=${apart:-1}
    cd "$BATS_TEST_TMPDIR"
    mkdir dir mnt base
}

# ---- One run, and what it left in dir ----

# The dump's files, body and stage, are of process PID and no other; of any, if the pid is refused (pid_is_refused).
dump_is_its_own() {
    find dir -name "jit-*.dump" | sort >dump_files
    [ -n "${pid_is_refused:-}" ] || ! grep -vxE "dir/jitdump-$pid/(stage/)?jit-$pid\.dump" dump_files ||
        complain "$1: a dump that is not of process $pid"
}

# A line "TYPE NAME" for each record that says something.
records() {
    xargs -r -n 1 "$BUILD/perfjit" dump --json <dump_files 2>>dump.log | awk '
        match($0, /"type":"CODE_(LOAD|MOVE|UNLOAD)"/) {
            line = substr($0, RSTART + 13, RLENGTH - 14)
            if (match($0, /"name":"t[01]_[0-9]+"/)) line = line " " substr($0, RSTART + 8, RLENGTH - 9)
            print line
        }'
}

number_of() {
    grep -c "^$1\b" records || true
}

# as_told CASE: what the guest told (in the file told) is what is there.  Sets the variables that it names.
as_told() {
    local word
    for word in $(cat told); do
        declare -g "$word"
    done
    [ "$status $signal $printed" = "0 0 0" ] || complain "$1: ended or printed: $(cat told)"
    [ "$failed $map_failed" = "$lost $map_lost" ] || complain "$1: not all is counted: $(cat told)"
    dump_is_its_own "$1"
    records >records
    [ "$(number_of LOAD) $(number_of MOVE) $(number_of UNLOAD)" = "$loads $moves $unloads" ] ||
        { [ -n "${close_tells:-}" ] && [ "$dump_close" -lt 0 ] && [ "$(number_of LOAD)" = "$loads" ] &&
            [ "$(number_of MOVE)" -le "$moves" ] && [ "$(number_of UNLOAD)" -le "$unloads" ]; } ||
        complain "$1: the dump has $(number_of LOAD), $(number_of MOVE), $(number_of UNLOAD): $(cat told)"
    [ -z "$(grep ^LOAD records | sort | uniq -d)" ] || complain "$1: twice: $(grep ^LOAD records | sort | uniq -d | head -3)"
    find dir -name "perf-$pid.map" -exec cat {} + >map
    [ "$(wc -l <map)" = "$lines" ] || { [ -n "${close_tells:-}" ] && [ "$map_close" -lt 0 ] && [ "$(wc -l <map)" -lt "$lines" ]; } ||
        complain "$1: the map has $(wc -l <map) lines: $(cat told)"
    # A block that the file system could not write back, as the close says, reads as zeros.
    [ -z "${close_tells:-}" ] || [ "$map_close" -ge 0 ] || { tr '\0' '\n' <map | sed /^$/d >left && mv left map; }
    ! grep -avE '^[0-9a-f]+ [0-9a-f]+ t[01]_[0-9]+$' map || complain "$1: torn: $(cat told)"
}

# Nothing failed; and nothing is missing besides.
all_recorded() {
    [ "$loads $moves $unloads $lines $failed $map_failed" = "1800 600 600 1800 0 0" ] || complain "$1: $(cat told)"
}

# ---- File systems ----

# on MOUNT_COMMAND [GUEST_COMMAND]: a run on the file system mnt, which this run alone sees; then a copy of its files, and the
# check.  The result "not permitted" is accepted only if an ordinary user may have no namespace.
on() {
    local as_root=()
    [ "$(id -u)" = 0 ] || as_root=(--map-root-user)
    # shellcheck disable=SC2016 # for the inner shell
    unshare --mount "${as_root[@]}" bash -c '
        eval "$1" >mount.log 2>&1 || exit 99
        eval "${3:-\$2 mnt}" >told 2>guest.log || exit 98
        rm -f mnt/filler && cp -a mnt/. dir/ && umount mnt' on "$1" "$guest" "${2:-}" 3>&- || {
        [ "$(id -u)" = 0 ] || ! grep -qiE 'permi' mount.log || skip "mounting is not permitted: $(tail -1 mount.log)"
        complain "$1: $(tail -3 mount.log) $(cat guest.log)"
    }
    as_told "$1"
}

ext4='truncate -s 16m disk && mkfs.ext4 -q -F disk && mount -o loop disk mnt'

# bats test_tags=live
@test "tmpfs: all is recorded" {
    on 'mount -t tmpfs none mnt'
    all_recorded tmpfs
}

# bats test_tags=live
@test "ext4: all is recorded" {
    on "$ext4"
    all_recorded ext4
}

# bats test_tags=live
@test "overlayfs: all is recorded" {
    on 'mount -t tmpfs none base && mkdir base/low base/up base/work &&
        mount -t overlay -o lowerdir=base/low,upperdir=base/up,workdir=base/work none mnt'
    all_recorded overlayfs
}

# bats test_tags=live
@test "FUSE: all is recorded" {
    on 'bindfs base mnt'
    all_recorded FUSE
}

# An NFS server and a client on one machine: the client is the kernel's.
# bats test_tags=live
@test "NFS: all is recorded, or this kernel offers no NFS" {
    if ! grep -qw nfs4 /proc/filesystems && ! find "/lib/modules/$(uname -r)" -name 'nfsv4.ko*' 2>/dev/null | grep -q .; then
        run unshare --mount --map-root-user mount -i -t nfs4 -o addr=127.0.0.1,clientaddr=127.0.0.1 127.0.0.1:/ mnt
        [ "$(id -u)" != 0 ] || run mount -i -t nfs4 -o addr=127.0.0.1,clientaddr=127.0.0.1 127.0.0.1:/ mnt
        [[ $output == *"unknown filesystem type"* ]] || complain "the kernel has NFS after all: $output"
        echo "# not offered by this kernel: NFS (no nfs4 in /proc/filesystems, no module, mount knows no such type)" >&3
        return
    fi
    command -v exportfs rpc.nfsd >/dev/null || complain "this kernel has NFS: install nfs-kernel-server"
    exportfs -o rw,no_root_squash,insecure,fsid=0 "127.0.0.1:$PWD/base"
    rpc.nfsd 1
    on 'mount -t nfs4 127.0.0.1:/ mnt'
    all_recorded NFS
    exportfs -u "127.0.0.1:$PWD/base"
}

# bats test_tags=live
@test "full tmpfs: what is missing is counted" {
    local size
    for size in 4k 16k 64k 340k 700k 1200k; do
        rm -rf dir/*
        on "mount -t tmpfs -o size=$size none mnt"
        [ "$((failed + map_failed))" -gt 0 ] || complain "$size was enough: $(cat told)"
    done
}

# bats test_tags=live
@test "full ext4: what is missing is counted" {
    local left
    for left in 4 40 400 1000; do
        rm -rf dir/*
        on "$ext4 && { dd if=/dev/zero of=mnt/filler bs=64k || truncate -s -${left}k mnt/filler; }"
        [ "$((failed + map_failed))" -gt 0 ] || complain "$left KiB were enough: $(cat told)"
    done
}

# Quotas of btrfs bind root too, and not every kernel has others.  There the writer stores into no mapping.
# A move, or a map's line, that would have had to wait for another thread's write is kept until the close, which says that there
# was no room.
# bats test_tags=live
@test "quota: what is missing is counted" {
    local limit close_tells=yes
    for limit in $([ "$apart" != 1 ] || echo 32k 1m) 400k; do
        rm -rf dir/*
        on "truncate -s 128m disk && mkfs.btrfs -q -f disk && mount -o loop disk base && btrfs quota enable base &&
            btrfs subvolume create base/small && btrfs qgroup limit $limit base/small && mount --bind base/small mnt"
        [ "$((failed + map_failed))" -gt 0 ] || complain "$limit was enough: $(cat told)"
    done
}

# bats test_tags=live
@test "read-only: nothing is recorded, all is counted" {
    on 'mount -t tmpfs -o ro none mnt'
    [ "$dump_open $map_open $failed $map_failed" = "-30 -30 1800 1800" ] || complain "$(cat told)"
}

# bats test_tags=live
@test "noexec: no dump, as jitdump_open says, and the whole map" {
    on 'mount -t tmpfs -o noexec none mnt'
    [ "$dump_open $dump_close $map_open $lines" = "-1 -1 0 1800" ] || complain "$(cat told)"
}

# bats test_tags=live
@test "no /proc: all is recorded" {
    on 'mount -t tmpfs none mnt' 'mount -t tmpfs none /proc && $2 mnt && umount /proc'
    all_recorded "no /proc"
}

# ---- Sandboxes, limits, memory ----

# guest_with OPTION...: a run in dir, judged.
guest_with() {
    rm -rf dir
    mkdir dir
    "$guest" "$@" dir >told 2>guest.log || complain "$*: status $?: $(cat told guest.log)"
    as_told "$*"
}

# Numbers and names of what guests call: with all they want, at the file size limit, and without what only starts or ends a program.
system_calls() {
    local others='execve|arch_prctl|set_tid_address|set_robust_list|rseq|access|clone3?|wait4|dup[23]|memfd_create|pause|exit_group'
    strace -qq -f -n -o trace "$guest" dir >told
    strace -qq -f -n -o trace.limit "$guest" -l fsize=1000000 dir >>told
    cat trace trace.limit | sed -nE 's/^[0-9]+ +\[ *([0-9]+)\] ([a-z0-9_]+)\(.*/\1 \2/p' | sort -u | grep -vwE "$others"
}

# refuse_each: each of these calls, with EPERM and with ENOSYS.
refuse_each() {
    local number name error after runs=0 pid_is_refused
    while read -r number name; do
        pid_is_refused=$([ "$name" != getpid ] || echo yes)
        for error in 1 38; do
            for after in "" -a; do
                guest_with $after -c "$number:$error"
                runs=$((runs + 1))
            done
        done
    done < <(awk -v apart="$apart" 'NR % apart == 0' calls)
    echo "# $(wc -l <calls) system calls, $runs runs" >&3
}

# bats test_tags=live
@test "each system call that the libraries make is refused, with EPERM and with ENOSYS" {
    system_calls >calls
    [ "$(grep -cwE 'openat|newfstatat|mmap|pwritev|write|fallocate|rt_sigprocmask|flock|prlimit64' calls)" = 9 ] || complain "$(cat calls)"
    refuse_each
}

# The same guest, static, with the libraries' single files.
musl_guest() {
    require_musl
    with_musl -std=gnu11 -D_GNU_SOURCE -O1 -I"$here/../.." -I"$BUILD/dist" -static -pthread -o guest \
        "$here/../producers/guest.c" "$BUILD"/dist/{jitdump,perfmap}.c
    guest=$PWD/guest
}

# bats test_tags=live
@test "... with musl" {
    musl_guest
    system_calls >calls
    [ "$(grep -cwE 'open|openat|fstat|mmap|pwritev|write|fallocate|rt_sigprocmask|flock|prlimit64' calls)" -ge 9 ] || complain "$(cat calls)"
    refuse_each
}

@test "RLIMIT_AS: what is missing is counted" {
    local bytes after
    for bytes in 0 4096 65536 150000 500000 1500000; do
        for after in "" -a; do
            guest_with $after -l "as=$bytes"
        done
    done
    guest_with -l as=0
    [ "$failed" -gt 0 ] || complain "no limit: $(cat told)"
}

@test "RLIMIT_DATA: what is missing is counted" {
    guest_with -l data=0
    [ "$failed" -gt 0 ] || complain "no limit: $(cat told)"
    guest_with -a -l data=0
}

@test "RLIMIT_FSIZE: what is missing is counted, and no SIGXFSZ is raised" {
    local bytes after
    for bytes in 0 1 39 4095 4096 16384 100000 340000 1000000; do
        for after in "" -a; do
            guest_with $after -l "fsize=$bytes"
            [ "$failed" -gt 0 ] || complain "$bytes were enough: $(cat told)"
        done
    done
}

@test "RLIMIT_NOFILE: what is missing is counted" {
    local files
    for files in 0 1 2 3 4 5 6; do
        guest_with -l "nofile=$files"
        [ "$files" -ge 4 ] || [ "$failed $map_failed" = "1800 1800" ] || complain "$files: $(cat told)"
        guest_with -a -l "nofile=$files"
        all_recorded "$files files, afterwards"
    done
}

@test "RLIMIT_STACK of 16 KiB: all is recorded" {
    guest_with -l stack=16384
    all_recorded "16 KiB"
    guest_with -a -l stack=16384
    all_recorded "16 KiB, afterwards"
}

# Where there is no memory at all, musl's open has no handle.
# bats test_tags=live
@test "limits, with musl: what is missing is counted" {
    local limit after
    musl_guest
    for limit in as=0 as=65536 as=150000 as=500000 as=1500000 data=0 fsize={0,39,4096,16384,340000,1000000} nofile={0,1,2,3,4,5,6}; do
        for after in "" -a; do
            guest_with $after -l "$limit"
        done
    done
    guest_with -l stack=16384
    all_recorded "16 KiB"
    guest_with
    all_recorded "no limit"
}

# allocations_fail STEP: one and all from then on, at each so-many-th.
allocations_fail() {
    local n count=1 rest
    for ((n = 0; n <= count; n += n ? $1 : 1)); do
        for rest in "" FAIL_REST=1; do
            rm -rf dir
            mkdir dir
            env FAIL_CALLS=malloc,calloc,realloc FAIL_NTH=$n FAIL_COUNT=count $rest LD_PRELOAD="$BUILD/fail_nth.so" "$guest" dir >told 2>guest.log ||
                complain "allocation $n: status $?"
            [ "$n" != 0 ] || [ -n "$rest" ] || count=$(cat count)
            [ -s told ] && as_told "allocation $n $rest"
        done
    done
    echo "# $count allocations" >&3
    [ "$count" -gt 30 ]
}

@test "an allocation fails, and all from then on" {
    allocations_fail 13
}

# bats test_tags=all
@test "... each allocation" {
    allocations_fail 1
}
