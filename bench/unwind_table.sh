# Sourced by table.sh, and by run.sh for its mode unwind: print the section on libjitunwind.
cat <<END

## libjitunwind

A walk of the process's own stack, 50 frames of JIT code and main's below, CPU time: medians of 21 rounds in which all take turns.
libgcc's backtrace(3) has the functions' tables by __register_frame; libunwind's unw_backtrace has none, and follows frame
pointers; neither may be called in a signal handler that interrupted the loader or malloc, and neither says how it found a frame.

| | frames | ns | ns a frame |
|---|---|---|---|
END
awk '$2 { printf "| %s | %d | %d | %.0f |\n", $1, $2, $3, $3 / $2 }' "$work/self_unwind"
cat <<END

Telling it of functions, all in one arena, CPU time and memory for a function: medians of 9 rounds in which all take turns.
"write" makes the call frame information ($(awk '$3 == "write" { print $5; exit }' "$work/registration") bytes) with libjitdump and copies it.

"libgcc" is with JITUNWIND_EXCEPTIONS, "gdb" with PERFJIT=gdb. Memory is resident memory; the registry's is without names, and gdb's
is what comes on top, with names.

| functions | write, ns | add, ns | libgcc, ns | gdb, ns | both, ns | times write | registry, bytes | gdb, bytes | remove (both), ns |
|---|---|---|---|---|---|---|---|---|---|
END
awk '$1 == "time" { ns[$3] = $4; bytes[$3] = $5 }
     $1 == "time" && $3 == "removed" {
         printf "| %d | %d | %d | %d | %d | %d | %.2f | %d | %d | %d |\n", $2, ns["write"], ns["add"], ns["caught"], ns["shown"],
             ns["both"], ns["both"] / ns["write"], bytes["caught"], bytes["shown"] - bytes["caught"], ns["removed"] }' "$work/registration"
cat <<END

The same in gdb from the start, seconds on the clock: until all are added, then \`bt\` of 50 of their frames, and again after an
instruction. The naive way registers an ELF object for each function.

| functions | way | until added | first bt | bt again | frames named |
|---|---|---|---|---|---|
END
awk '$1 == "gdb" { printf "| %d | %s | %.1f | %.4f | %.4f | %d |\n", $2, $3 == "each" ? "naive" : "libjitunwind", $4, $5, $6, $7 }' "$work/registration"
