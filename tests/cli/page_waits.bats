#!/usr/bin/env bats
# The page of a recording with context switches and spans, in a real browser: sums of ranges are those of perfjit report.
# bats file_tags=live
load helper

setup() {
    require_perf
    cd "$BATS_TEST_TMPDIR" || return
    PERFJIT=dump JITDUMPDIR=$PWD perf record -q -k mono -g --switch-events -e cpu-clock/freq=1000/ -e context-switches/period=1/ -o perf.data "$BUILD/producers/waits"
    perfjit flamegraph -q -o page.html perf.data
    [ "$(node -e 'console.log(require(process.argv[1]).findBrowser() ? 1 : 0)' "$here/browser.js")" = 1 ] || unavailable "a browser: chromium-headless-shell"
}

# in_page: the script on standard input, with the page as PAGE; words are ARGUMENTS.
in_page() {
    {
        echo "const { openPage } = require('$here/browser.js'), words = process.argv.slice(2);"
        cat <<'END'
const check = (what, got, wanted) => {
    if (wanted instanceof RegExp ? !wanted.test(got) : JSON.stringify(got) !== JSON.stringify(wanted)) throw new Error(what + ": " + JSON.stringify(got) + ", not " + (wanted instanceof RegExp ? wanted : JSON.stringify(wanted)));
};
(async () => {
    const page = await openPage("page.html");
    try {
END
        cat
        cat <<'END'
        check("errors, dialogs", page.problems, []);
    } finally { await page.close(); }
})().catch((error) => { console.error(error.stack); process.exit(1); });
END
    } >script.js
    PAGE_TIMEZONE=UTC node script.js "$@"
}

@test "waiting in ranges has the sums of perfjit report" {
    for range in 0-0.05 0.02-0.1 0.05-10; do
        ns=$(perfjit report -q --json --off-cpu --time "$range" perf.data 2>/dev/null | jq .total)
        in_page "$range" "$ns" <<'END'
const [range, ns] = words;
await page.evaluate("location.hash = '#view=waiting&range=" + range + "'");
await page.settle();
const text = await page.text("#details"), [, number, unit] = /\n([\d.]+) (s|ms|µs)/.exec(text);
const shown = number * { s: 1e9, ms: 1e6, "µs": 1e3 }[unit], step = { s: 1e6, ms: 1e4, "µs": 100 }[unit];
if (Math.abs(shown - ns) > step + 20000) throw new Error(text + ", not " + ns); // times in the page are in us
END
    done
}

@test "spans stand above the strip: each tells its name and time, and a click selects it" {
    in_page <<'END'
const box = await page.evaluate("(() => { const { left, top, width, height } = document.getElementById('spans').getBoundingClientRect(); return { left, top, width, height, hidden: document.getElementById('spans').hidden }; })()");
check("it is there", box.hidden, false);
if (box.height < 15 || box.width < 500) throw new Error(JSON.stringify(box));
let found = null;
for (let share = 0.01; share < 1 && !found; share += 0.01) {
    await page.mouse("mouseMoved", box.left + box.width * share, box.top + 7);
    const tip = await page.text("#tip");
    if (/^GET \/a\n/.test(tip)) found = { share, tip };
}
if (!found) throw new Error("no GET /a");
check("what it tells", found.tip, /^GET \/a\n[\d.]+ s to [\d.]+ s: [\d.]+ ms\nthread \d+\/\d+$/);
const [, from, to] = /\n([\d.]+) s to ([\d.]+) s/.exec(found.tip);
await page.click(box.left + box.width * found.share, box.top + 7);
await page.settle();
const [, start, end] = /range=([\d.]+)-([\d.]+)/.exec(await page.hash());
if (Math.abs(start - from) > 0.001 || Math.abs(end - to) > 0.001) throw new Error(await page.hash() + ", not " + found.tip);
check("the view is of that time", await page.text("#details"), new RegExp("^all threads from " + start));
check("and which span it is", await page.text("#details"), /\nGET \/a\n[\d.]+ s to [\d.]+ s: [\d.]+ ms\nthread \d+\/\d+/);
// By key: all of them, and those that are searched for.
const through = async (key) => {
    const seen = [];
    await page.press("a");
    for (let steps = 0; ; steps++) {
        if (steps > 99) throw new Error("no end: " + seen.join());
        await page.press(key);
        const text = await page.text("#details");
        if (/^no span/.test(text)) return seen;
        seen.push((/\n((?:GET|start)[^\n]*)\n/.exec(text) || [])[1]);
    }
};
const all = await through("p");
check("all spans by key", [all.length, all.filter((name) => name === "GET /a").length, all.filter((name) => name === "GET /b").length].join(), /^1[23],6,6$/);
check("no further one", await page.text("#details"), "no span after this");
check("and back", (await through("P")).reverse(), all);
await page.press("/");
await page.type("GET /b");
await page.press("Escape");
check("those that are searched for", await through("p"), new Array(6).fill("GET /b"));
END
}

@test "spans of one time are several: the key goes through each" {
    for file in $(find . -name 'marker-*-*.txt'); do
        awk '{ print; print $1, $2, "twin"; printf "%.0f %.0f near\n", $1 + 300, $2 + 300 }' "$file" >twins && mv twins "$file"
    done
    perfjit flamegraph -q -o page.html perf.data
    in_page <<'END'
const through = async (key) => {
    const seen = {};
    await page.press("a");
    for (let steps = 0; steps < 99; steps++) {
        await page.press(key);
        const text = await page.text("#details"), name = (/\n(GET \/.|twin|near|start)\n/.exec(text) || [])[1];
        if (/^no span/.test(text)) break;
        seen[name] = (seen[name] || 0) + 1;
    }
    return [seen["GET /a"], seen["GET /b"], seen.twin, seen.near];
};
check("forth", await through("p"), [6, 6, 12, 12]);
check("back", await through("P"), [6, 6, 12, 12]);
END
}

@test "a lane of a thread that slept tells in which function of the JIT" {
    in_page <<'END'
const box = await page.evaluate("(() => { const { left, top, width, height } = document.getElementById('strip').getBoundingClientRect(); return { left, top, width, height }; })()");
const tips = new Set();
for (let y = 25; y < box.height; y += 6)
    for (let share = 0.005; share < 1; share += 0.005) {
        await page.mouse("mouseMoved", box.left + box.width * share, box.top + y);
        tips.add((await page.text("#tip")).split("\n")[1]);
    }
const all = [...tips];
if (!all.some((tip) => /: waits [\d.]+ (ms|µs) in naps$/.test(tip))) throw new Error(all.slice(0, 20).join("; "));
END
}
