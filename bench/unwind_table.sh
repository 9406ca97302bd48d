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
