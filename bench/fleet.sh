#!/usr/bin/env bash
# What a fleet costs: bytes a run, conversions a second on one processor, and a year of nights, of which a few are played.
#
#     bench/fleet.sh BUILD_DIR [BENCHMARKS [NIGHTS]]        a table; default: 500 benchmarks, 3 nights
#
# A night of a benchmark: ten runs that were kept are there (copies of ten real ones of node), each is converted to pprof, and the
# ten are compared with those of the night before.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(cd "${1:?usage: bench/fleet.sh BUILD_DIR [BENCHMARKS [NIGHTS]]}" && pwd)
benchmarks=${2:-500} nights=${3:-3}
perfjit=$build/perfjit
work=$(mktemp -d "${TMPDIR:-/tmp}/perfjit-fleet.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >work.js <<'END'
function hot(n) { let s = 0; for (let i = 0; i < n; i++) s += (Math.sqrt(i) * i) % 7; return s; }
let all = 0; for (let i = 0; i < 3000; i++) all += hot(20000);
END
"$perfjit" bench -q --runs 10 -o a.bench --new 'node work.js'
"$perfjit" record -q -o whole --keep -- node work.js >/dev/null 2>&1
dump=$(find . "${TMPDIR:-/tmp}" -maxdepth 3 -name 'jit-*.dump' -newer work.js 2>/dev/null | head -1)

bytes() { # FILE...: of one, on average
    cat "$@" | wc -c | awk -v files=$# '{ printf "%.1f", $1 / files / 1024 }'
}
cpu() { # COMMAND...: seconds of processors
    local TIMEFORMAT='%U %S'
    { time "$@" >/dev/null 2>&1; } 2>&1 | awk '{ print $1 + $2 }'
}
rate() { # TIMES SECONDS
    awk -v times="$1" -v seconds="$2" 'BEGIN { printf "%.0f", times / seconds }'
}

export_all() { # TIMES FILE
    local i
    for ((i = 0; i < $1; i++)); do "$perfjit" export -q --format pprof -o one.pb.gz "$2"; done
}
compare_all() { # TIMES
    local i
    for ((i = 0; i < $1; i++)); do "$perfjit" diff -q -o text a.bench b.bench; done
}
play() { # all benchmarks of all nights
    local night number
    for ((night = 1; night <= nights; night++)); do
        for ((number = 1; number <= benchmarks; number++)); do
            mkdir -p "store/$number"
            cp -r a.bench "store/$number/$night.bench"
            for run in a.bench/*.run; do
                "$perfjit" export -q --format pprof -o "store/$number/$night-${run##*/}.pb.gz" "$run"
            done
            [ $night = 1 ] || "$perfjit" diff -q -o "store/$number/$night.txt" "store/$number/$((night - 1)).bench" "store/$number/$night.bench"
        done
    done
}

cp -r a.bench b.bench
export_all 1 a.bench/new-001.run
samples=$(sed -n 's/.*samples=\([0-9]*\).*/\1/p' a.bench/bench.txt | awk '{ sum += $1 } END { printf "%.0f", sum / NR }')
echo "| a run of node, $samples samples | |"
echo "|---|---|"
echo "| recording and dump | $(bytes whole.recording ${dump:+"$dump"} | awk '{ print $1 * 2 }') KiB |"
echo "| kept by perfjit bench | $(bytes a.bench/*.run) KiB |"
echo "| as pprof | $(bytes one.pb.gz) KiB |"
echo "| recording and dump to pprof | $(rate 20 "$(cpu export_all 20 whole.recording)") a second and processor |"
echo "| kept run to pprof | $(rate 200 "$(cpu export_all 200 a.bench/new-001.run)") a second and processor |"
echo "| comparisons of 10 v 10 | $(rate 100 "$(cpu compare_all 100)") a second and processor |"
seconds=$(cpu play)
disk=$(du -sk store | cut -f1)
text=$(find store -name '*.bench' -prune -o -name '*.pb.gz' -print0 | du -ck --files0-from=- | tail -1 | cut -f1)
echo "| $benchmarks benchmarks, $nights nights, played | $seconds s of a processor, $((disk / 1024)) MiB on disk, $((text / 1024)) MiB of them pprof |"
awk -v s="$seconds" -v k="$disk" -v p="$text" -v n="$nights" 'BEGIN {
    printf "| a year of these | %.1f h of a processor (%.0f s a night), %.0f GiB on disk, %.0f GiB of them pprof |\n", s / n * 365 / 3600, s / n, k / n * 365 / 1048576, p / n * 365 / 1048576 }'
rm -f ${dump:+"$dump"}
