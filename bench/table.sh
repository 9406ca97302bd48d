# Sourced by run.sh: print results.md.

. "$here/cells.sh"

ratio_of() {
    awk -v name="$1" '$1 == name { print $2 }' "$work/ratios"
}

# bound TEXT VALUE OPERATOR LIMIT
bound() {
    [ -n "$2" ] || return 0
    awk -v text="$1" -v value="$2" -v op="$3" -v limit="$4" 'BEGIN {
        ok = op == "<=" ? value + 0 <= limit : value + 0 >= limit
        printf "| %s | %s %s | %s | %s |\n", text, op == "<=" ? "at most" : "at least", limit, value, ok ? "yes" : "**no**" }'
}

# The largest or smallest of some ratios of the writer: PATTERN max|min
writer_worst() {
    awk -v pattern="$1" -v which="$2" '$1 ~ pattern { v = which == "max" ? 1 / $2 : $2
        if (!n++ || (which == "max" ? v > worst : v < worst)) worst = v } END { if (n) printf "%.3g", worst }' "$work/ratios"
}

# libjitdump's median as a multiple of the least that stdio took, in CPU time.
writer_against_best() {
    awk '$2 == 256 { if ($1 == "jitdump") ours[$3] = $5; if ($1 == "stdio") best[$3] = $6 }
        END { for (t in ours) if (ours[t] / best[t] > worst) worst = ours[t] / best[t]; if (worst) printf "%.3g", worst }' "$work/writer"
}

# The largest multiple of what writing the call frame information takes: WAY FIELD [LESS], field 4 ns or 5 bytes, LESS subtracted.
registration_worst() {
    awk -v way="$1" -v field="$2" -v less="${3:-}" '$1 == "time" { of[$2, $3] = $field; sizes[$2] }
        END { for (n in sizes) { v = (of[n, way] - (less ? of[n, less] : 0)) / of[n, "write"]; if (v > worst) worst = v } printf "%.3g", worst }' \
        "$work/registration"
}

# Of the ways to add, how much longer a function takes at the largest size than at the smallest.
registration_growth() {
    awk '$1 == "time" && $3 != "write" && $3 != "removed" { if (!($3 in first)) first[$3] = $4; last[$3] = $4 }
        END { for (way in first) if (last[way] / first[way] > worst) worst = last[way] / first[way]; if (worst) printf "%.3g", worst }' \
        "$work/registration"
}

# Time per function at the largest size as a multiple of that at the smallest, by field 4 (clock) or 5 (CPU).
growth() {
    local first=${sizes%% *} last=${sizes##* } a b
    a=$(median inject perfjit-image "$first" "$1") b=$(median inject perfjit-image "$last" "$1")
    [ -n "$a" ] && [ -n "$b" ] || return 0
    awk -v a="$a" -v b="$b" -v m="$first" -v n="$last" 'BEGIN { printf "%.3g", (b / n) / (a / m) }'
}

bytes_per_function() {
    local last=${sizes##* } bytes
    bytes=$(fact "peak_anonymous_$last")
    [ -n "$bytes" ] && awk -v b="$bytes" -v n="$last" 'BEGIN { printf "%.0f", b / n }'
}

inverse() {
    [ -z "$1" ] || awk -v v="$1" 'BEGIN { printf "%.3g", 1 / v }'
}

worst_fact() { # PREFIX
    awk -v prefix="^$1" '$1 ~ prefix && $2 > worst { worst = $2 } END { print worst }' "$work/facts"
}

cat <<END
# How fast it is

Written by \`make bench\` (bench/run.sh). Times are milliseconds, medians; in brackets CPU time, user and system. The tools took turns
in one run, so that a busy machine changes all of them: compare columns, not runs.

* Machine: $(grep -c ^processor /proc/cpuinfo) × $(awk -F': ' '/^model name/ { print $2; exit }' /proc/cpuinfo), Linux $(uname -r | cut -d- -f1), files on $(fact file_system); $(perf --version)
* Input: bench/functions.c, seed 1: half of the functions have 32 to 95 bytes, a quarter twice as many, and so on up to 24 KiB; names of 20 to 60
  characters; sampled as often as perf record does of itself (4000 times a second) while the functions are compiled and for a second more.
* Floor: \`cat\` of perf.data and dump into a new file.

## perfjit inject

| functions | image layout | function layout | floor | perf inject 6.1 | newer perf inject | image layout beside perf (CPU) |
|---|---|---|---|---|---|---|
END
for n in $sizes tinyjit node; do
    [ -n "$(median inject perfjit-image "$n" 4)" ] || continue
    printf '| %s |' "$n"
    times_faster=$(ratio_of "inject_${n}_perfjit-image_vs_perf-inject")
    times_faster_cpu=$(ratio_of "inject_${n}_perfjit-image_vs_perf-inject_cpu")
    printf '%s %s |\n' "$(cells inject "$n" perfjit-image perfjit-function floor perf-inject new-perf-inject)" \
        "${times_faster:+$times_faster × ($times_faster_cpu ×)}"
done
cat <<END

tinyjit is examples/tinyjit's demo (two tiers, lines, inlined calls, unwind tables), node is bench/node_load.js with \`--perf-prof\`.

![time against functions](results.svg)

## Reading what was written

The recording as it was, without a name for any JIT frame, shows what perf takes for all the rest.  node-stripped is read by the newest perf, which
looks up inlined calls in chains of frame pointers (perf 6.1 does so only in stacks that it unwinds), of a node without debug information.

| | on perf inject's output | on perfjit's, image layout | on the recording | times faster (CPU) |
|---|---|---|---|---|
END
for n in $sizes tinyjit node node-stripped; do
    for what in report script script-no-inline; do
        [ -n "$(median $what perfjit-image "$n" 4)" ] || continue
        printf '| perf %s, %s |%s %s × (%s ×) |\n' "${what/-no-inline/ --no-inline}" "$n" "$(cells $what "$n" perf-inject perfjit-image recording)" \
            "$(ratio_of "${what}_${n}_perfjit-image_vs_perf-inject")" "$(ratio_of "${what}_${n}_perfjit-image_vs_perf-inject_cpu")"
    done
done
. "$here/rows_table.sh"
cat <<END

## libjitdump

Nanoseconds a call (CPU time in brackets), opening and closing the file included; medians of nine processes, since what stdio takes depends on the
process: its best (CPU time) stands beside it. stdio: a buffer of 2 MiB under a lock, lost when the process is
killed. What survives a kill: libjitdump, mapped as usual and with JITDUMP_UNMAPPED; stdio flushed after each record; three
write calls a record. The floor writes the same bytes with calls of 64 KiB.

| code bytes | threads | libjitdump | unmapped | stdio 2 MiB | flush per record | three writes | floor | switched off |
|---|---|---|---|---|---|---|---|---|
END
awk '{ key = $2 " | " $3; if (!(key in seen)) { order[++n] = key; seen[key] } cell[key, $1] = sprintf("%.0f (%.0f)", $4, $5)
       if ($1 == "stdio") cell[key, $1] = sprintf("%.0f (%.0f, at best %.0f)", $4, $5, $6)
       if ($1 == "off") cell[key, $1] = sprintf("%.1f (%.1f)", $4, $5) }
    END { for (i = 1; i <= n; i++) { k = order[i]
        printf "| %s | %s | %s | %s | %s | %s | %s | %s |\n", k, cell[k, "jitdump"], cell[k, "unmapped"], cell[k, "stdio"], cell[k, "flush"], cell[k, "writes"], cell[k, "floor"], cell[k, "off"] } }' "$work/writer"
. "$here/unwind_table.sh"
if [ -s "$work/frame_check" ]; then
    printf '\n## Comparing a frame with its code\n\n'
    awk '{ printf "A function of 34 instructions takes %s ns to describe (`jitdump_cfi_frame`, `jitdump_cfi_finish`), and %s ns to compare with its code (`jitdump_cfi_check`): %s times that.\n", $2, $5, $8 }' \
        "$work/frame_check"
fi
if [ -s "$work/trampoline" ]; then
    printf '\n## Interpreted functions as frames\n\n'
    printf 'Nanoseconds of a call by a pointer: of the function itself, of what `jitdump_trampoline` returns where no dump is open, and of a trampoline.\n\n'
    printf '| function | itself | no dump | trampoline | more |\n|---|---|---|---|---|\n'
    awk '$1 == "call" { printf "| %s | %s | %s | %s | %.2f |\n", $2, $3, $4, $5, $5 - $3 }
        $1 == "make" { printf "\nOf 100 000 trampolines each took %s ns to make and %s ns to free, and %s bytes; adding such a function alone takes %s ns.\n", $2, $6, $8, $4 }' \
        "$work/trampoline"
fi
if [ -s "$work/attach" ]; then
    printf '\n## Dumps on request\n\n'
    awk '$1 == "poll" { printf "A `jitdump_poll` takes %s ns with no handle, %s ns while nobody asks, and %s ns while the dump is open.\n\n| functions alive | the poll that opens the dump and logs them, ms | to add them alone, ms | the poll that closes it, ms |\n|---|---|---|---|\n", $2, $3, $4 }
        $1 == "all" { printf "| %s | %s | %s | %s |\n", $2, $3, $4, $5 }' "$work/attach"
fi
cat <<END

## What was promised, and what holds

Peak memory is anonymous memory (RssAnon, looked up every 100 µs): the mapped input is not in it. The output's size is
what it takes on the disk, against perf.data and the dump's names, code and tables.

| | bound | measured | holds |
|---|---|---|---|
END
bound "100 000 functions: image layout, times faster than perf inject 6.1" "$(ratio_of inject_100000_perfjit-image_vs_perf-inject)" ">=" 200
bound "the same in CPU time" "$(ratio_of inject_100000_perfjit-image_vs_perf-inject_cpu)" ">=" 200
bound "100 000 functions: image layout, times the floor" "$(inverse "$(ratio_of inject_100000_perfjit-image_vs_floor)")" "<=" 3
printf '| the same in CPU time | – | %s | |\n' "$(inverse "$(ratio_of inject_100000_perfjit-image_vs_floor_cpu)")"
bound "100 000 functions: function layout, times faster than perf inject 6.1" "$(ratio_of inject_100000_perfjit-function_vs_perf-inject)" ">=" 3
bound "time per function, ${sizes##* } functions against ${sizes%% *}, on the clock" "$(growth 4)" "<=" 1.5
bound "the same in CPU time" "$(growth 5)" "<=" 1.5
bound "peak memory, bytes per function" "$(bytes_per_function)" "<=" 300
bound "perf report, 100 000 functions, times faster" "$(ratio_of report_100000_perfjit-image_vs_perf-inject)" ">=" 4
bound "100 000 bodies of 1 000 names: perf report, times that with --rows body" \
    "$(ratio "$(median rows-report by-name bodies 4)" "$(median rows-report by-body bodies 4)")" "<=" 1.05
bound "newest perf's script of node, which looks up inlined calls, times faster" "$(ratio_of script_node-stripped_perfjit-image_vs_perf-inject)" ">=" 3
bound "perf 6.1's, which looks up none, times faster" "$(ratio_of script_node_perfjit-image_vs_perf-inject)" ">=" 3
bound "libjitdump, 64 to 4096 bytes of code, 1 to 4 threads, times stdio, worst" "$(writer_worst '^writer_.*_vs_stdio$' max)" "<=" 1.1
bound "libjitdump, 256 bytes of code, 1 to 4 threads, times stdio, worst" "$(writer_worst '^writer_256_._vs_stdio$' max)" "<=" 1.25
bound "the same in CPU time" "$(writer_worst '^writer_256_._vs_stdio_cpu$' max)" "<=" 1.25
bound "the same, against stdio's best process" "$(writer_against_best)" "<=" 1.25
bound "the same, times faster than what survives a kill, worst" "$(writer_worst '^writer_256_._vs_(flush|writes)$' min)" ">=" 4
bound "the same in CPU time" "$(writer_worst '^writer_256_._vs_(flush|writes)_cpu$' min)" ">=" 4
bound "switched off, ns of CPU time a call, worst" "$(awk '$1 == "off" && $5 > w { w = $5 } END { print w }' "$work/writer")" "<=" 2
bound "libjitunwind with PERFJIT=gdb: adding a function, times writing its CFI, worst, in CPU time" "$(registration_worst shown 4)" "<=" 3
bound "the same with JITUNWIND_EXCEPTIONS" "$(registration_worst caught 4)" "<=" 3
bound "the same with both" "$(registration_worst both 4)" "<=" 3
bound "adding, ns a function: 1 000 000 against 1 000, worst" "$(registration_growth)" "<=" 1.5
bound "memory of the registry, names apart, times the CFI's, worst" "$(registration_worst caught 5)" "<=" 2
bound "memory for gdb, times the CFI's, worst" "$(registration_worst shown 5 caught)" "<=" 2
for way in libgcc libunwind; do
    bound "jitunwind_backtrace, times faster than $([ $way = libgcc ] && echo 'backtrace(3)' || echo unw_backtrace)" \
        "$(awk -v way=$way '{ ns[$1] = $3 } END { if (ns[way] && ns["jitunwind"]) printf "%.3g", ns[way] / ns["jitunwind"] }' "$work/self_unwind")" ">=" 3
done
bound "40 000 removals, ms of CPU time" "$(awk '$1 == "time" && $2 == 100000 && $3 == "removed" { printf "%.3g", $4 * 40000 / 1e6 }' "$work/registration")" "<=" 50
bound "gdb: bt of 100 000 functions, s" "$(awk '$1 == "gdb" && $2 == 100000 { print $5 }' "$work/registration")" "<=" 1
bound "output's size, times the input's, worst" "$(worst_fact size_ratio_)" "<=" 1.15
bound "ELF files of one process" "$(worst_fact files_)" "<=" 3
