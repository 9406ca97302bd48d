# Sourced by run.sh: draw results.svg, time against functions.

for tool in perfjit-image perfjit-function perf-inject new-perf-inject floor; do
    for n in $sizes; do
        value=$(median inject "$tool" "$n" 4)
        [ -z "$value" ] || echo "$n $value"
    done >"$work/$tool.dat"
    [ -s "$work/$tool.dat" ] || echo "NaN NaN" >"$work/$tool.dat"
done
gnuplot <<END
set terminal svg size 720,440 font "sans-serif,13" background "white"
set output "$here/results.svg"
set logscale xy
set format x "%.0s %c"
set xlabel "functions"
set ylabel "seconds"
set key top left
set grid
plot "$work/perf-inject.dat" with linespoints lw 2 title "perf inject 6.1", \
     "$work/new-perf-inject.dat" with linespoints lw 2 title "newer perf inject", \
     "$work/perfjit-function.dat" with linespoints lw 2 title "perfjit, function layout", \
     "$work/perfjit-image.dat" with linespoints lw 2 title "perfjit, image layout", \
     "$work/floor.dat" with linespoints lw 2 dt 2 title "copying the bytes"
END
