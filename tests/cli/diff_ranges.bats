#!/usr/bin/env bats
# Ranges of time of both sides in the page of perfjit diff: the sums of perfjit report --time.
# bats file_tags=live
load helper

setup() {
    require_perf
    cd "$BATS_TEST_TMPDIR" || return
    printf 'fn leaf(n) { var i = 0; while i < n { i = i + 1; } return i; }\nfn main() { var n = 0; while n < 1500 { leaf(30000); n = n + 1; } return 0; }\n' >work.tj
}

record_run() { # NAME
    PERFJIT=dump JITDUMPDIR=$PWD record "$1" -g "$BUILD/tinyjit" work.tj
}

@test "any two ranges have the sums of the recordings in these ranges, and of several runs their mean" {
    for run in a b c; do record_run $run; done
    perfjit diff -q --html page.html --base a --new b c >/dev/null
    cat "$here"/../../injector/profile/flamegraph/page/{inflate,profile,difference}.js >model.js
    cat >>model.js <<'END'
const fs = require("fs"), text = fs.readFileSync("page.html", "utf8");
const whole = openProfile(unpackData(/id="data">\n([^]*?)<\/script>/.exec(text)[1])), ranges = process.argv.slice(2).map((range) => range === "-" ? null : range.split("-").map((seconds) => seconds * 1e6));
const { base, new: now } = differenceWithin(whole, ranges).difference;
console.log(Math.round(base[0]), Math.round(now[0]));
END
    total() { { perfjit report -q --json "$@" 2>/dev/null || echo '{}'; } | jq -r '.total // 0'; }
    all=$(($(total b) + $(total c)))
    [ "$(node model.js - -)" = "$(total a) $((all / 2))" ] || complain "all time: $(node model.js - -), not $(total a) $((all / 2))"
    for range in "0-0.01 0.005-0.02" "0.01-0.03 0-0.02" "0-0.02 -"; do
        read -r base now <<<"$range"
        times=()
        [ "$now" = - ] || times=(--time "$now")
        wanted="$(total --time "$base" a) $((($(total "${times[@]}" b) + $(total "${times[@]}" c)) / 2))"
        [ "$(node model.js $range)" = "$wanted" ] || complain "$range: $(node model.js $range), not $wanted"
    done
}
