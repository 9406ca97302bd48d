#!/usr/bin/env bats
# The kernel's names: by perf's copy of the kernel's list and by the list itself.  The judge is perf script.
load helper

setup() {
    require_perf
    cd "$BATS_TEST_TMPDIR"
    [ "$RECORDINGS" != stored ] || return 0
    grep -q ' T _text$' /proc/kallsyms && ! grep -q '^0*0 T _text$' /proc/kallsyms || unavailable "this kernel hides its addresses"
}

# Many system calls, in turns with code of its own.
record_calls() {
    perf record -q -k mono -e cpu-clock -F 4000 "$@" -o perf.data dd if=/dev/zero of=/dev/null bs=512 count=1500000 status=none
}

by_perf() {
    local KERNEL_SYMBOLS=
    perf script -i perf.data -F ip,sym | awk '$1 ~ /^ffff/ { print $2 }' | sort | uniq -c | awk '{ print $1, $2 }' | sort
}

by_perfjit() {
    perfjit export -q -f speedscope --weight samples perf.data | jq -r '.shared.frames as $f | .profiles[] | range(.samples | length) as $i |
        "\(.weights[$i]) \($f[.samples[$i][-1]] | select(.kind == "kernel") | .name)"' |
        awk '{ n[$2] += $1 } END { for (name in n) print n[name], name }' | sort
}

# Functions at one address have more than one name, of which perf may show another.
as_perf_has_them() {
    by_perf >wanted
    by_perfjit >got
    [ "$(wc -l <wanted)" -gt 5 ]
    local different
    different=$(awk '{ by[$2] += NR == FNR ? $1 : -$1; if (NR == FNR) all += $1 } END { for (name in by) sum += by[name] < 0 ? -by[name] : by[name]; print int(100 * sum / all) }' wanted got)
    [ "$different" -le 5 ] || complain "$different % are named otherwise: $(comm -3 wanted got | head -20)"
}

lists_read() {
    rm -f opened.*
    strace -ff -qq -e trace=openat -o opened "$BUILD/perfjit" report -q perf.data >/dev/null # a file for each thread
    cat opened.* | sed -nE 's/^openat\([^"]*"([^"]*kallsyms)", .* = [0-9]+$/\1/p' | sort
}

# few_calls: by_perf has perf's names.  In kept/ is the part of the kernel's list that perf record keeps: the functions with
# samples, the ones behind them, and the bounds of the kernel.
few_calls() {
    local list
    perf record -q -k mono -e cpu-clock -F 4000 -o perf.data dd if=/dev/zero of=/dev/null bs=512 count=400000 status=none
    by_perf >by_perf
    list=$(cd home && echo .debug/\[kernel.kallsyms\]/*/kallsyms)
    mkdir -p "kept/${list%/*}"
    sort -s -k1,1 "home/$list" | awk '
        NR == FNR { has_samples[$2]; next }
        $1 != address { for (i = 0; i < count; i++) if (wanted || behind) print line[i]
                        behind = wanted; wanted = count = 0; address = $1 }
        { line[count++] = $0; wanted = wanted || $3 in has_samples || $3 ~ /^_(text|stext|etext)$/ }' by_perf - >"kept/$list"
}

# alias_of LIST: counts and names from stdin, each name as the first that its address has in LIST.
alias_of() {
    awk 'FILENAME != "-" { if (!($1 in first)) first[$1] = $3; name[$3] = first[$1]; next }
        { n[$2 in name ? name[$2] : $2] += $1 } END { for (x in n) print n[x], x }' "$1" - | sort
}

@test "kernel: names of another machine's recording are perf's, by what perf record kept there" {
    recording few-calls few_calls
    local list
    list=$(echo kept/.debug/\[kernel.kallsyms\]/*/kallsyms)
    [ "$(wc -l <by_perf)" -gt 5 ]
    alias_of "$list" <by_perf >wanted
    HOME=$PWD/kept by_perfjit | alias_of "$list" >got
    same got wanted
}

# bats test_tags=live
@test "kernel: names are perf's, by what perf record kept" {
    record_calls
    export HOME=$BATS_TEST_TMPDIR/home
    [ -s "$HOME"/.debug/\[kernel.kallsyms\]/*/kallsyms ]
    as_perf_has_them
    same <(lists_read) <(ls "$HOME"/.debug/\[kernel.kallsyms\]/*/kallsyms)
}

# bats test_tags=live
@test "kernel: names are perf's, by the kernel's own list where perf kept none, or one without addresses" {
    record_calls -N
    export HOME=$BATS_TEST_TMPDIR/home
    rm -rf "$HOME/.debug"
    as_perf_has_them
    same <(lists_read) <(echo /proc/kallsyms)
    record_calls
    local kept
    kept=$(ls "$HOME"/.debug/\[kernel.kallsyms\]/*/kallsyms)
    sed -i 's/^[0-9a-f]*/0000000000000000/' "$kept"
    by_perfjit | same /dev/stdin <(HOME=/nowhere by_perfjit)
    same <(lists_read) <(printf '%s\n' "$kept" /proc/kallsyms | sort)
}
