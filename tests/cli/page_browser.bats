#!/usr/bin/env bats
# The page of perfjit flamegraph in a real browser, by keys and mouse: find, zoom, filters, ranges of time, the address.
# bats file_tags=live
load helper

setup_file() {
    require_perf || return 0
    cd "$BATS_FILE_TMPDIR" || return
    [ "$(node -e 'console.log(require(process.argv[1]).findBrowser() ? 1 : 0)' "$here/browser.js")" = 1 ] || return 0
    write_work
    PERFJIT=dump JITDUMPDIR=$PWD record any -g "$BUILD/tinyjit" work.tj
    perfjit flamegraph -q -o any.html any
    # The page with a profile that is known: what the tests expect can be counted by hand.
    node - <<'END'
const fs = require("fs"), strings = [""], text = (word) => strings.includes(word) ? strings.indexOf(word) : strings.push(word) - 1;
const frames = { name: [], module: [], file: [], line: [], column: [], tier: [], rank: [], kind: [], inlined: [] }, ranks = { bytecode: 1, TurboFan: 4 };
const frame = (name, { module = "", file = "", line = 0, tier = "", kind = 0, inlined = 0 } = {}) => {
    for (const [column, value] of Object.entries({ name: text(name), module: text(module), file: text(file), line, column: 0, tier: text(tier), rank: ranks[tier] || 0, kind, inlined })) frames[column].push(value);
    return frames.name.length - 1;
};
const start = frame("uv_run", { module: "node", kind: 2 }), enter = frame("Builtin:JSEntry"), http = frame("parserOnIncoming", { file: "node:_http_server", line: 9, tier: "TurboFan" });
const route = frame("routeHandler", { file: "/app/node_modules/fastify/route.js", line: 5, tier: "TurboFan" });
const own = frame("answer", { file: "/app/server.js", line: 7, tier: "TurboFan" }), ownSlow = frame("answer", { file: "/app/server.js", line: 7, tier: "bytecode", kind: 1 });
const walk = frame("walk", { file: "/app/server.js", line: 20, tier: "TurboFan" }), visit = frame("visit", { file: "/app/server.js", line: 30, tier: "TurboFan", inlined: 1 });
const hostile = frame("<img src=x onerror=alert(1)></script><script>alert(2)</script>", { file: "/app/\"'><b>.js", line: 1 });
const page_fault = frame("asm_exc_page_fault", { module: "[kernel]", kind: 3 }), long = frame("void com.example.deeply.nested.packages.Thing.method(com.example.Argument, int)", { file: "Thing.java", line: 3 });
const nodes = { parent: [0], frame: [0] }, known = new Map(), absolute = [0];
const stack = (...list) => list.reduce((node, number) => {
    const key = node + "." + number;
    if (!known.has(key)) {
        known.set(key, absolute.push(node) - 1);
        nodes.parent.push(absolute.length - 1 - node);
        nodes.frame.push(number);
    }
    return known.get(key);
}, 0);
const samples = { node: [], thread: [], weight: [], time: [] };
let last = 0;
const add = (ms, thread, ...list) => {
    samples.node.push(stack(...list));
    samples.thread.push(thread);
    samples.weight.push(1000000);
    samples.time.push(ms * 1000 - last);
    last = ms * 1000;
};
const head = [start, enter, http, route];
for (let ms = 0; ms < 1000; ms++) {
    if (ms < 300) add(ms, 0, ...head, ownSlow);
    else if (ms < 600) add(ms, 0, ...head, own);
    else if (ms < 700) add(ms, 0, ...head, own, page_fault);
    else if (ms < 900) add(ms, 0, ...head, walk, visit, walk, visit, walk);
    else if (ms < 950) add(ms, 0, ...head, hostile);
    else add(ms, 0, start);
    if (ms >= 200 && ms < 300) add(ms, 1, long);
}
const waiting = { node: [stack(...head, own), stack(long)], thread: [0, 1], weight: [300000000, 700000000], time: [100000, 400000] };
const data = { unit: "ns", strings, frames, nodes, threads: { pid: [10, 10], tid: [10, 11], name: [text("main"), text("worker")], process: [text("main"), text("main")] }, samples,
    start: Date.UTC(2026, 0, 2, 3, 4, 5, 250), waiting,
    moments: { kind: [0], at: [300000], to: [300000], thread: [0], before: [ownSlow], frame: [own], reason: [0], place: [0] },
    activities: samples.node.map((node, i) => samples.thread[i] ? 3 : [0, 1, 4, 5, 6][frames.kind[nodes.frame[node]]]).join("") };
const write = (file, data) => {
    const packed = require("zlib").deflateSync(JSON.stringify(data)).toString("base64");
    fs.writeFileSync(file, fs.readFileSync("any.html", "utf8").replace(/(id="data">\n)[^]*?(<\/script>)/, (_, begin, end) => begin + packed + "\n" + end));
};
write("page.html", data);
// A stack of sixty calls.
write("deep.html", { ...data, waiting: undefined, activities: undefined, moments: undefined, nodes: { parent: [0, ...new Array(60).fill(1)], frame: [0, ...Array.from({ length: 60 }, (_, i) => i % 2 ? visit : walk)] },
    samples: { node: [60, 60], thread: [0, 0], weight: [1000000, 1000000], time: [0, 1000] } });
// The same with a deopt that the runtime told of.
const told = { kind: 1, at: 700500, to: 700500, thread: 0, before: walk, frame: -1, reason: text("wrong map"), place: text("/app/server.js:21:7") };
const collection = { kind: 2, at: 800000, to: 850000, thread: -1, before: -1, frame: -1, reason: 0, place: 0 };
write("deopt.html", { ...data, moments: Object.fromEntries(Object.keys(told).map((column) => [column, [data.moments[column][0], told[column], collection[column]]])) });
// The same with two sides, of which the new one has twice the time of walk and visit.
const base = nodes.frame.map(() => 0), now = nodes.frame.map(() => 0);
samples.node.forEach((node) => { base[node] += 1000000, now[node] += nodes.frame[node] === walk ? 2000000 : 1000000; });
for (let i = base.length - 1; i > 0; i--) base[i - nodes.parent[i]] += base[i], now[i - nodes.parent[i]] += now[i];
const difference = { base, new: now, verdict: now.map((value, i) => value > base[i] * 1.01 ? 0 : 2) };
const sides = [1, 2].map((times) => ({ runs: 1, node: samples.node, time: samples.time, weight: samples.weight.map((weight, i) => nodes.frame[samples.node[i]] === walk ? times * weight : weight) }));
write("sides.html", { ...data, waiting: undefined, activities: undefined, moments: undefined, samples: { node: [0], thread: [0], weight: [1], time: [0] }, difference, sides });
write("diff.html", { ...data, waiting: undefined, activities: undefined, moments: undefined, difference });
END
}

setup() {
    require_perf
    cd "$BATS_FILE_TMPDIR" || return
    [ -e page.html ] || unavailable "a browser: chromium-headless-shell"
}

# in_browser FILE: the script on standard input, with the page as PAGE.
in_browser() {
    {
        echo "const { openPage } = require('$here/browser.js');"
        cat <<'END'
const check = (what, got, wanted) => {
    if (wanted instanceof RegExp ? !wanted.test(got) : JSON.stringify(got) !== JSON.stringify(wanted)) throw new Error(what + ": " + JSON.stringify(got) + ", not " + (wanted instanceof RegExp ? wanted : JSON.stringify(wanted)));
};
const later = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const near = (what, hash, name, from, to, within) => {
    const found = new RegExp(name + "=([\\d.]+)-([\\d.]+)").exec(hash);
    if (!found || Math.abs(found[1] - from) > within || Math.abs(found[2] - to) > within) throw new Error(what + ": " + hash + ", not " + from + " to " + to);
};
(async () => {
END
        echo "const page = await openPage('$1');"
        echo 'try {'
        cat
        cat <<'END'
        check("errors, dialogs", page.problems, []);
        check("requests", page.requests.filter((url) => !url.startsWith("file:")), []);
    } finally { await page.close(); }
})().catch((error) => { console.error(error.stack); process.exit(1); });
END
    } >script.js
    PAGE_TIMEZONE=UTC node script.js
}

@test "find lists functions by share, and steps through matches by key and by button" {
    in_browser page.html <<'END'
await page.press("/");
await page.type("app/");
check("share", await page.text("#matched"), "86.36 % matched");
const list = () => page.evaluate("[...document.querySelectorAll('#found button')].map((button) => button.textContent.replace(/ +/g, ' '))");
check("the first", (await list())[0], "86.36 %routeHandler /app/node_modules/fastify/route.js:5");
check("the second: both tiers", (await list())[1], "63.64 %answer /app/server.js:7");
await page.evaluate("document.getElementById('search').select()");
await page.type("visit");
check("the list follows", await list(), ["18.18 %visit /app/server.js:30"]);
await page.press("Enter");
check("first match", await page.text("#matched"), /^1 of 1, 18\.18 % matched$/);
check("it is described", await page.text("#details"), /^visit\njit, TurboFan, inlined/);
await page.evaluate("document.getElementById('search').select()");
await page.type("answer");
await page.press("Enter");
check("the heaviest", await page.text("#details"), /^answer\njit, TurboFan/);
await page.press("Escape", "n");
check("n: the next", await page.text("#details"), /^answer\ninterpreter, bytecode/);
await page.press("N");
check("N: back", await page.text("#details"), /^answer\njit, TurboFan/);
await page.clickOn("#next");
check("a button", await page.text("#matched"), /^2 of 2/);
await page.evaluate("document.getElementById('search').select()");
await page.type("/(/");
check("what is no expression", [await page.text("#matched"), await page.evaluate("search.getAttribute('aria-invalid')")], ["no expression", "true"]);
await page.evaluate("document.getElementById('search').select()");
await page.type("/^(walk|visit)$/");
check("what is one", [await page.text("#matched"), await page.evaluate("search.getAttribute('aria-invalid')")], ["18.18 % matched", "false"]);
await page.press("Escape");
await page.evaluate("(document.getElementById('search').value = 'hostile', 0)");
await page.clickOn("#search");
await page.evaluate("document.getElementById('search').select()");
await page.type("onerror");
await page.clickOn("#found button");
check("what a name says is text", await page.text("#details"), /^<img src=x onerror=alert\(1\)><\/script>/);
check("no element is made of it", await page.evaluate("document.querySelectorAll('img, b:not(#found b)').length"), 0);
END
}

@test "zooming puts the frame at the top, and its callers in a row of crumbs that lead back" {
    in_browser page.html <<'END'
const [, , left, top] = await page.at("#stage");
await page.click(left + 100, top + 5 * 20 + 8);
check("zoomed", (await page.hash()).split(".").length, 5);
check("crumbs", await page.evaluate("[...document.querySelectorAll('#crumbs button')].map((button) => button.textContent)"), ["all threads", "uv_run", "Builtin:JSEntry", "parserOnIncoming", "routeHandler"]);
await page.mouse("mouseMoved", left + 100, (await page.at("#stage"))[3] + 8);
check("at the top", await page.text("#tip"), /^answer\n/);
check("scrolled to it", await page.evaluate("document.getElementById('stage').scrollTop"), 0);
await page.clickOn("#crumbs button:nth-child(3)");
check("a crumb", (await page.hash()).split(".").length, 2);
await page.press("Escape", "Escape");
check("out", await page.hash(), "");
check("no crumbs", await page.evaluate("document.querySelectorAll('#crumbs button').length"), 0);
END
}

@test "what is higher than its room is seen and pointed at wherever it is scrolled to, in each view" {
    in_browser deep.html <<'END'
for (const [hash, last, up] of [["", /^visit\n/, 10], ["#view=inverted", /^walk\n/, 10], ["#view=time", /^visit\n/, 30]]) {
    await page.evaluate(`location.hash = "${hash}"`);
    await page.settle();
    for (const share of [0.5, 1]) {
        await page.evaluate(`(stage.scrollTop = ${share} * (stage.scrollHeight - stage.clientHeight), stage.scrollIntoView(), 0)`);
        await page.settle();
        const { fits, x, y, drawn } = await page.evaluate(`(() => { const { left, top, height } = stage.getBoundingClientRect(), picture = canvas.getBoundingClientRect(), y = stage.clientHeight - ${up}; return { fits: [picture.top - top - 1, picture.height - stage.clientHeight], x: left + 300, y: top + y, drawn: canvas.getContext('2d').getImageData(300, y, 1, 1).data[3] }; })()`);
        check("the picture fills its room: " + hash, fits, [0, 0]);
        check("with boxes: " + hash, drawn, 255);
        await page.mouse("mouseMoved", x, y);
        await page.settle();
        check("that tell what they are: " + hash, await page.text("#tip"), share === 1 ? last : /^(walk|visit)\n/);
    }
}
END
}

@test "filters charge the time to the caller, say how much is hidden, and stay in the address" {
    in_browser page.html <<'END'
const row = async (y, x = 100) => {
    const [, , left, top] = await page.at("#stage");
    await page.mouse("mouseMoved", left + x, top + y * 20 + 8);
    return page.evaluate("tip.hidden ? '' : tip.textContent");
};
await page.clickOn("#hide button:nth-of-type(1)");
check("kernel", await page.hash(), "#hide=kernel");
check("kernel's share", await page.text("#hidden"), /^9\.09 % .*: kernel 9\.09 %\.$/);
await page.press("/");
await page.type("answer");
await page.press("Enter");
check("its time is the caller's", await page.text("#details"), /self 400\.00 ms/);
await page.press("Escape", "r");
await page.press("m");
check("my code", await page.hash(), "#hide=others");
check("only that is left", [(await row(1)).split("\n")[0], (await row(2)).slice(0, 5)], ["answer", ""]);
check("the sum stays", await row(0), /^all threads\n1\.100 s/);
check("what is hidden", await page.text("#hidden"), /^13\.64 % /);
check("its button", await page.evaluate("document.querySelector('#hide button:last-of-type').getAttribute('aria-pressed')"), "true");
await page.press("m");
await page.clickOn("#fold button:nth-of-type(1)");
await page.press("/");
await page.type("/^(walk|visit)$/");
await page.press("Enter");
check("recursion", await page.text("#details"), /^walk\n.*\ntotal 200\.00 ms .*self 200\.00 ms/);
await page.press("Escape", "r");
await page.clickOn("#fold button:nth-of-type(2)");
check("tiers in the address", await page.hash(), "#fold=tiers");
await page.press("/");
await page.type("answer");
await page.press("Enter");
check("tiers are one", [await page.text("#matched"), await page.text("#details")].join(), /^1 of 1, 63\.64 % matched,answer\n\w+, all tiers.*\ntotal 700\.00 ms/);
for (const hide of ["kernel", "native", "runtime", "libraries", "others", "kernel.native.runtime.libraries.others"]) for (const fold of ["", "recursion", "tiers", "recursion.tiers"]) {
    await page.evaluate(`location.hash = "#hide=${hide}&fold=${fold}"`);
    await page.settle();
    check("the sum with " + hide + " " + fold, await page.text("#details"), /^all threads\n1\.100 s/);
}
END
}

@test "each filter, fold and view is chosen by mouse, by Enter and by Space, and the button says so" {
    in_browser page.html <<'END'
const buttons = { kernel: "#hide=kernel", native: "#hide=native", runtime: "#hide=runtime", libraries: "#hide=libraries", "my code": "#hide=others", recursion: "#fold=recursion", tiers: "#fold=tiers" };
const found = await page.evaluate("[...document.querySelectorAll('#hide button, #fold button')].map((button, i) => (button.id = 'filter' + i, button.textContent))");
check("all filters", found, Object.keys(buttons));
const pressed = (i) => page.evaluate(`document.getElementById("filter${i}").getAttribute("aria-pressed")`);
const space = async () => {
    await page.send("Input.dispatchKeyEvent", { type: "keyDown", key: " ", text: " ", windowsVirtualKeyCode: 32 });
    await page.send("Input.dispatchKeyEvent", { type: "keyUp", key: " ", windowsVirtualKeyCode: 32 });
    await page.settle();
};
for (const [i, name] of found.entries()) for (const [how, act] of [["mouse", () => page.clickOn("#filter" + i)], ["Enter", () => page.press("Enter")], ["Space", space]]) {
    await page.evaluate(`(document.getElementById("filter${i}").focus(), 0)`);
    await act();
    check(name + " by " + how, [await page.hash(), await pressed(i)], [buttons[name], "true"]);
    await act();
    check(name + " by " + how + ", and back", [await page.hash(), await pressed(i)], ["", "false"]);
}
for (const [view, title] of Object.entries({ inverted: /^all threads/, time: /^all threads/, waiting: /^waiting: all threads/, flame: /^all threads/ })) {
    await page.evaluate(`(() => { const list = document.getElementById("view"); list.value = "${view}"; list.dispatchEvent(new Event("change")); })()`);
    await page.settle();
    check(view, [await page.hash(), title.test(await page.text("#details"))], [view === "flame" ? "" : "#view=" + view, true]);
}
await page.press("t", "+", "+", ">");
await later(400);
near("later, by key", await page.hash(), "span", 0.4375, 0.6875, 0.005);
await page.press("<", "<");
await later(400);
near("earlier, by key", await page.hash(), "span", 0.3125, 0.5625, 0.005);
END
}

@test "the time view: what is in focus is marked, and stays through zooming and scrolling; arrows and n reach all threads" {
    in_browser page.html <<'END'
await page.send("Emulation.setDeviceMetricsOverride", { width: 1000, height: 300, deviceScaleFactor: 1, mobile: false });
await page.press("t", "/");
await page.type("walk");
await page.press("Enter", "Escape");
check("outermost calls alone", await page.text("#matched"), /^1 of 1,/);
check("the longest", await page.text("#details"), /^walk\n[^]*total 200\.00 ms [^]*from 0\.7000 s to 0\.9000 s/);
const framed = () => page.evaluate("(() => { const { width, height, data } = canvas.getContext('2d').getImageData(0, 20, canvas.width, canvas.height - 20), rows = []; for (let y = 0; y < height; y++) for (let x = 0, run = 0; x < width; x++) { const at = (y * width + x) * 4; run = data[at] + data[at + 1] + data[at + 2] === 0 && data[at + 3] === 255 ? run + 1 : 0; if (run === 40) rows.push(y); } return rows.length; })()");
check("a black frame: two lines, above and below", await framed(), 4);
await page.press("+", "+");
check("zoomed in to it", [(await page.text("#details")).split("\n")[0], await framed()], ["walk", 4]);
await page.press("-", "-", "-");
check("and out", [(await page.text("#details")).split("\n")[0], await framed()], ["walk", 4]);
await page.press("/");
await page.evaluate("document.getElementById('search').select()");
await page.type("answer");
await page.press("Enter", "Escape", "n");
check("the next", [await page.text("#matched"), await page.text("#details")].join(), /^2 of 2, .*,answer\ninterpreter/);
await page.press("/");
await page.evaluate("document.getElementById('search').select()");
await page.type("Thing.method");
await page.press("Enter", "Escape");
check("of a thread that was not in sight", await page.text("#details"), /^void com\.example[^]*from 0\.2000 s to 0\.3000 s/);
const seen = () => page.evaluate("(() => { const y = 13 * 20 - stage.scrollTop; return y >= 20 && y + 20 <= stage.clientHeight; })()");
check("it is now", await seen(), true);
await page.press("ArrowUp");
check("up, to the other thread at that time", await page.text("#details"), /^answer\ninterpreter/);
await page.press("ArrowDown");
check("and back", await page.text("#details"), /^void com\.example/);
await page.press("ArrowUp", "r", "t", "/");
await page.type("visit");
await page.press("Enter", "Escape", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown");
check("down, to a thread that did not run then", [await page.text("#details"), await seen()].join(), /^void com\.example[^]*,true$/);
END
}

@test "the wheel with Shift scrolls the time view, and does not zoom" {
    in_browser page.html <<'END'
await page.send("Emulation.setDeviceMetricsOverride", { width: 1000, height: 300, deviceScaleFactor: 1, mobile: false });
await page.press("t");
await page.evaluate("(stage.scrollIntoView(), 0)");
const [, , left, top] = await page.at("#stage"), scrolled = () => page.evaluate("stage.scrollTop");
check("at first", await scrolled(), 0);
await page.mouse("mouseWheel", left + 500, top + 100, { deltaX: 0, deltaY: 60, modifiers: 8 });
await later(400);
check("down", [await scrolled(), await page.hash()], [60, "#view=time"]);
await page.mouse("mouseWheel", left + 500, top + 100, { deltaX: 0, deltaY: -40, modifiers: 8 });
await later(400);
check("up", [await scrolled(), await page.hash()], [20, "#view=time"]);
END
}

@test "another range keeps what is zoomed in to and in focus, as far as it ran then; what changes nothing is no step of Back" {
    in_browser page.html <<'END'
const range = async (words) => { await page.evaluate(`(() => { const field = document.getElementById("range"); field.value = "${words}"; field.dispatchEvent(new Event("change")); })()`); await page.settle(); };
const crumbs = () => page.evaluate("[...document.querySelectorAll('#crumbs button')].map((button) => button.textContent)");
const [, , left, top] = await page.at("#stage");
await page.click(left + 100, top + 5 * 20 + 8);
const zoom = /zoom=[\d.]+/.exec(await page.hash())[0];
check("in focus", await page.text("#details"), /^answer\njit[^]*total 400\.00 ms/);
await range("0.5-0.65");
check("in a range", [await page.hash(), await page.text("#details")].join(), new RegExp("^#range=0.5-0.65&" + zoom + ",answer\njit[^]*total 150\\.00 ms"));
check("its callers", (await crumbs()).length, 5);
await range("0.7-0.9");
check("where it did not run its caller is at the top", [await page.text("#details"), (await crumbs()).pop()].join(), /^all threads from 0\.7 to 0\.9 s\n200\.00 ms,parserOnIncoming$/);
await page.press("Escape");
check("out of what is shown", (await crumbs()).pop(), "Builtin:JSEntry");
await page.press("Escape", "Escape", "Escape", "Escape");
check("all", await page.hash(), "#range=0.7-0.9");
const before = await page.evaluate("history.length");
await page.press("Escape", "Escape", "Escape");
check("nothing to go back to", await page.evaluate("history.length"), before);
await page.press("a");
await page.click(left + 100, (await page.at("#stage"))[3] + 5 * 20 + 8);
await page.press("t", ".", "t");
check("the time view has no focus of another view", await page.text("#details"), /^all threads from 0\.3/);
END
}

@test "what is written into the picture: names, places in wide boxes, the axis in seconds and by the clock, threads; the legend has what is inlined" {
    in_browser page.html <<'END'
await page.evaluate("(() => { const draw = CanvasRenderingContext2D.prototype.fillText; window.written = []; CanvasRenderingContext2D.prototype.fillText = function (text, ...place) { written.push(text); return draw.call(this, text, ...place); }; })()");
const written = async (...keys) => {
    await page.evaluate("(written.length = 0, 0)");
    await page.press(...keys);
    return page.evaluate("written");
};
const has = (what, texts, wanted) => check(what, wanted.filter((text) => !texts.includes(text)), []);
has("names and places", await written("i", "i"), ["uv_run", "parserOnIncoming", "node:_http_server:9", "routeHandler", "route.js:5", "answer", "server.js:7", "walk", "server.js:20"]);
const time = await written("t");
has("threads by their names", time, ["main 10/10", "worker 10/11"]);
has("seconds and the clock", time, ["0.2 s  03:04:05.4", "0.8 s  03:04:06.0"]);
await page.evaluate("(written.length = 0, location.hash = '#view=time&span=0-0.81', 0)");
await page.settle();
const narrow = [...new Set((await page.evaluate("written")).filter((text) => /^0\.\d s /.test(text)))];
check("no time is cut at the end of the axis", narrow, ["0.0 s  03:04:05.2", "0.2 s  03:04:05.4", "0.4 s  03:04:05.6", "0.6 s  03:04:05.8"]);
check("inlined", await page.text("#legend"), /inlined: bar at the left/);
END
}

@test "a range of time is selected by mouse, by key and by text, and holds in every view" {
    in_browser page.html <<'END'
const [, , left, top, width] = await page.at("#strip");
await page.drag(left + width * 0.3, top + 25, left + width * 0.6, top + 25);
near("by the strip", await page.hash(), "range", 0.3, 0.6, 0.004);
check("its sum", await page.text("#details"), /^all threads from 0\.\d+ to 0\.\d+ s\n(29|30)\d\.00 ms$/);
await page.press("i");
check("inverted", await page.text("#details"), /\n(29|30)\d\.00 ms/);
await page.press("a");
check("all time", await page.text("#details"), /^all threads\n1\.100 s/);
await page.evaluate("document.getElementById('range').focus()");
await page.type("0.2-0.3");
await page.press("Enter");
check("by text", await page.hash(), "#view=inverted&range=0.2-0.3");
check("both threads", await page.text("#details"), /^all threads from 0\.2 to 0\.3 s\n200\.00 ms/);
await page.press("Escape", "t");
const stage = await page.at("#canvas");
await page.drag(stage[2] + stage[4] * 0.5, stage[3] + 30, stage[2] + stage[4] * 0.7, stage[3] + 30);
near("by the time view", await page.hash(), "range", 0.5, 0.7, 0.004);
await page.wheel(stage[2] + stage[4] * 0.5, stage[3] + 60, -100);
await page.press("+");
await later(400);
const span = /span=([\d.]+)-([\d.]+)/.exec(await page.hash());
check("zoomed by wheel and key", span[2] - span[1] > 0.3 && span[2] - span[1] < 0.5, true);
await page.press("-", "-", "-");
await later(400);
check("zoomed out", /span/.test(await page.hash()), false);
await page.press("+", "+", "s");
await later(400);
near("what is shown is selected", await page.hash(), "range", 0.375, 0.625, 0.005);
const lane = (await page.at("#strip"))[3] + 20 + 12 + 14; // the page's head is higher now; the axis and the moments are above
await page.mouse("mouseMoved", left + width * 0.25, lane);
check("a lane says who and what", await page.text("#tip"), /^0\.2\d+ s  03:04:05\.\d+\nworker 10\/11: JIT compilers$/);
await page.mouse("mouseMoved", left + width * 0.8, lane);
check("a lane says who waits, and where", await page.text("#tip"), /worker 10\/11: waits 700\.00 ms in void com\.example/);
await page.mouse("mouseMoved", left + width * 0.1, lane);
check("a lane says who does not run", await page.text("#tip"), /worker 10\/11: does not run$/);
END
}

@test "a tier-up is a moment: by key, by mouse in both pictures, with the time before and after it" {
    in_browser page.html <<'END'
await later(300);
check("legend", await page.text("#legend"), /tier-up ▲/);
await page.press(".");
near("from the tier-up on", await page.hash(), "range", 0.3, 1, 0.002);
check("what it was", await page.text("#details"), /^all threads from 0\.3 to 0\.999001 s\n700\.00 ms[^]*\n0\.300 s  03:04:05\.55\d* +answer: tier-up, from interpreter, bytecode to jit, TurboFan$/);
await page.press("o");
near("before it", await page.hash(), "range", 0, 0.3, 0.0005);
check("its sum", await page.text("#details"), /\n400\.00 ms/);
await page.press("o");
near("and back", await page.hash(), "range", 0.3, 1, 0.002);
await page.press(".");
check("no other", await page.text("#details"), /^no tier-up, deopt or collection after this/);
await page.press("a", ",");
near("from the end", await page.hash(), "range", 0.3, 1, 0.002);
await page.press("a", "/");
await page.type("visit");
await page.press("Escape", ".");
check("of what is searched for", await page.text("#details"), /of what is searched for$/);
await page.press("r");
const [, , left, top, width] = await page.at("#strip");
await page.mouse("mouseMoved", left + width * 0.3, top + 26);
check("its tip", await page.text("#tip"), /^0\.300 s .*answer: tier-up/);
await page.click(left + width * 0.3, top + 26);
near("a click in the strip", await page.hash(), "range", 0.3, 1, 0.002);
await page.press("a", "t");
const [, , stageLeft, stageTop, stageWidth] = await page.at("#canvas");
await page.mouse("mouseMoved", stageLeft + stageWidth * 0.3, stageTop + 30);
check("in the thread's line", await page.text("#tip"), /answer: tier-up/);
await page.click(stageLeft + stageWidth * 0.3, stageTop + 30);
near("a click there", await page.hash(), "range", 0.3, 1, 0.002);
END
}

@test "my code lists its functions by their own share, with that of hidden functions that they call" {
    in_browser page.html <<'END'
const list = () => page.evaluate("document.getElementById('found').hidden ? [] : [...document.querySelectorAll('#found button')].map((button) => button.textContent.replace(/ +/g, ' '))");
check("none", await list(), []);
await page.press("m");
check("all of them, shortened from the left", (await list()).slice(0, 4), ["63.64 %answer /app/server.js:7", "18.18 %walk /app/server.js:20", "9.09 %packages.Thing.method(com.example.Argument, int) Thing.java:3", "4.55 %<img src=x onerror=alert(1)></script><script>al… /app/\"'><b>.js:1"]);
const shares = (await list()).map((text) => parseFloat(text));
check("by share", shares, [63.64, 18.18, 9.09, 4.55]);
check("the sum", shares.reduce((sum, share) => sum + share, 0) > 95.4 && shares.reduce((sum, share) => sum + share, 0) < 95.5, true);
await page.clickOn("#found button");
check("a click shows it", await page.text("#details"), /^answer\n/);
check("full names on hover", await page.evaluate("document.querySelectorAll('#found button')[2].title"), /^void com\.example\.deeply\.nested\.packages\.Thing\.method\(com\.example\.Argument, int\)/);
await page.press("/");
await page.type("walk");
check("what is searched for comes first", await list(), ["18.18 %walk /app/server.js:20"]);
END
}

@test "callers of a function, whatever it calls itself, by key and by button" {
    in_browser page.html <<'END'
check("of nothing", await page.evaluate("document.getElementById('callers').disabled"), true);
await page.press("/");
await page.type("parserOnIncoming");
await page.press("Enter", "Escape", "c");
check("by key", await page.hash(), /^#view=inverted&callers=2&search=/);
check("all of its time", await page.text("#details"), /^callers of parserOnIncoming: all threads\n950\.00 ms/);
const [, , left, top] = await page.at("#stage"), row = async (y) => {
    await page.mouse("mouseMoved", left + 100, top + y * 20 + 8);
    return (await page.text("#tip")).split("\n")[0];
};
check("its callers below it", [await row(1), await row(2), await row(3)], ["parserOnIncoming", "Builtin:JSEntry", "uv_run"]);
const hash = await page.hash();
await page.press("m");
check("hidden, as others' code is", await page.text("#details"), /^callers of parserOnIncoming: all threads\n0\.0/);
await page.press("m", "Escape");
check("out", await page.hash(), "#search=parserOnIncoming");
await page.click(left + 100, top + 2 * 20 + 8);
await page.clickOn("#callers");
check("by button", await page.text("#details"), /^callers of Builtin:JSEntry: all threads/);
await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
await page.settle();
check("the address", await page.text("#details"), /^callers of parserOnIncoming/);
await page.evaluate("location.hash = '#view=inverted&callers=99999'");
await page.settle();
check("a wrong number", await page.text("#details"), /^all threads\n1\.100 s/);
END
}

@test "on paper all rows are there, and keys and roles say what is where" {
    in_browser page.html <<'END'
await page.send("Emulation.setDeviceMetricsOverride", { width: 1200, height: 300, deviceScaleFactor: 1, mobile: false });
await page.press("t");
const before = await page.evaluate("canvas.height");
await page.evaluate("(addEventListener('beforeprint', () => { window.printed = [canvas.height, canvas.getContext('2d').getImageData(canvas.width / 4, 2 * (13 * 20 + 10), 1, 1).data[3]]; }), 0)");
await page.send("Page.printToPDF", {});
await page.settle();
check("all rows, and a box in the last one", await page.evaluate("printed"), [2 * 15 * 20, 255]);
check("less on the screen", [before < 15 * 20 || before, await page.evaluate("canvas.height")], [true, before]);
await page.send("Accessibility.enable");
const { nodes } = await page.send("Accessibility.getFullAXTree");
const named = (role) => nodes.filter((node) => node.role && node.role.value === role && !node.ignored).map((node) => node.name.value);
check("application", named("application").join(), /^Flame graph\. Arrow keys move/);
check("groups", named("group"), ["View", "Filter", "Hide", "Fold"]);
check("boxes to choose from", named("combobox").slice(0, 2), ["View", "Of"]);
check("buttons", named("button").sort().join(), "Back,Callers,Reset,kernel,libraries,my code,native,recursion,runtime,tiers");
check("each field has a name", [...named("textbox"), ...named("searchbox")].every((name) => name), true);
// The focus goes through the head to the graph, and what is in focus is read.
const order = [];
for (let i = 0; i < 16; i++) {
    await page.send("Input.dispatchKeyEvent", { type: "keyDown", key: "Tab", windowsVirtualKeyCode: 9 });
    await page.send("Input.dispatchKeyEvent", { type: "keyUp", key: "Tab", windowsVirtualKeyCode: 9 });
    order.push(await page.evaluate("document.activeElement.id || document.activeElement.textContent"));
}
check("the order of the focus", order.slice(0, 14), ["view", "scope", "range", "search", "kernel", "native", "runtime", "libraries", "my code", "recursion", "tiers", "back", "reset", "theme"]);
check("then the graph", order[14], "stage");
await page.press("t");
await page.evaluate("document.getElementById('stage').focus()");
await page.press("ArrowDown", "ArrowDown");
check("arrows", await page.text("#details"), /^Builtin:JSEntry\n/);
check("read when it changes", await page.evaluate("document.getElementById('details').getAttribute('aria-live')"), "polite");
END
}

@test "on paper the picture is light, whole and cut between rows, without controls, and the screen is as before" {
    in_browser page.html <<'END'
await page.evaluate("(() => { const theme = document.getElementById('theme'); theme.value = 'dark'; theme.dispatchEvent(new Event('change')); })()");
await page.press("ArrowDown");
const screen = () => page.evaluate("[document.documentElement.dataset.theme, document.body.style.width, canvas.width, strip.toDataURL(), canvas.toDataURL(), legend.innerHTML, paper.children.length].join()");
const before = await screen();
await page.evaluate("(addEventListener('beforeprint', () => { const pieces = [...paper.children], at = (canvas, x, y) => [...canvas.getContext('2d').getImageData(x, y, 1, 1).data].slice(0, 3); window.printed = { heights: pieces.map((piece) => piece.height), width: pieces[0].width, whole: canvas.height, same: [30, 90, 190].every((y) => at(canvas, 300, y).join() === at(pieces[Math.floor(y / 160)], 300, y % 160).join()), strip: at(strip, 300, 3), root: at(canvas, canvas.width - 9, 20) }; }), 0)");
await page.send("Page.printToPDF", { preferCSSPageSize: true });
await page.settle();
const printed = await page.evaluate("printed");
check("pieces of four rows", printed.heights.slice(0, -1).every((height) => height === 160), true);
check("all of the picture", printed.heights.reduce((sum, height) => sum + height), printed.whole);
check("the picture", printed.same, true);
check("as wide as the sheet, and sharp", printed.width > 1900 && printed.width <= 2080, true);
check("light", [Math.min(...printed.strip) > 240, Math.min(...printed.root) > 200], [true, true]);
check("the screen", await screen(), before);
await page.evaluate("(dispatchEvent(new Event('beforeprint')), 0)");
await page.send("Emulation.setEmulatedMedia", { media: "print" });
const shown = await page.evaluate("['.bar', '.keys', '#stage', '#tip', '#found', '#paper', '#strip', '#legend', '#details', 'h1'].filter((one) => getComputedStyle(document.querySelector(one)).display !== 'none')");
check("what is on paper", shown, ["#paper", "#strip", "#legend", "#details", "h1"]);
check("colours of the legend", await page.evaluate("getComputedStyle(document.querySelector('#legend i')).printColorAdjust"), "exact");
check("no sheet is left empty by a picture that is too high", await page.evaluate("[...paper.children].every((piece) => piece.getBoundingClientRect().height < 200 && getComputedStyle(piece).breakInside === 'avoid')"), true);
check("as wide as the sheet", await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), true);
END
}

@test "Tab goes through all controls in reading order, seen and without a trap, and no control takes the focus with it" {
    in_browser page.html <<'END'
const tab = async (modifiers = 0) => {
    await page.send("Input.dispatchKeyEvent", { type: "keyDown", key: "Tab", windowsVirtualKeyCode: 9, modifiers });
    await page.send("Input.dispatchKeyEvent", { type: "keyUp", key: "Tab", windowsVirtualKeyCode: 9, modifiers });
    return page.evaluate("(() => { const it = document.activeElement, box = it.getBoundingClientRect(), { outlineStyle, outlineWidth } = getComputedStyle(it), group = it.closest('.bar, ol, nav, main'); return { what: it.id || it.textContent, isBody: it === document.body, group: group ? group.id || group.className || group.tagName : '', top: box.top, left: box.left, bottom: box.bottom, isSeen: outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2 }; })()");
};
await page.press("m", "/");
await page.type("walk");
await page.press("Enter", "Escape");
await page.evaluate("location.hash = '#range=0.1-0.9&search=walk&zoom=0.1.2.3.6.7'");
await page.settle();
await page.press("ArrowDown");
await page.evaluate("(document.getElementById('view').focus(), 0)");
await tab();
const stops = [await tab(8)];
for (let stop = await tab(); !stop.isBody && stops.length < 60; stop = await tab()) stops.push(stop);
check("it ends", stops.length < 60, true);
const has = (what) => stops.some((stop) => stop.what === what);
check("all kinds of controls", ["view", "scope", "range", "alltime", "search", "previous", "next", "kernel", "my code", "tiers", "callers", "reset", "theme", "uv_run", "stage"].map(has).concat(stops.some((stop) => stop.group === "found")), new Array(16).fill(true));
check("all are seen", stops.filter((stop) => !stop.isSeen).map((stop) => stop.what), []);
const order = stops.filter((stop, i) => i && !(stop.top >= stops[i - 1].bottom - 4 || (stop.left > stops[i - 1].left && stop.bottom > stops[i - 1].top)));
check("reading order", order.map((stop) => stop.what), []);
check("back from the end", (await tab(8)).what, "stage");
check("out of the graph", (await tab(8)).isBody, false);
const focused = () => page.evaluate("document.activeElement.id || document.activeElement.tagName");
const use = async (selector) => {
    await page.evaluate(`document.querySelector(${JSON.stringify(selector)}).focus()`);
    await page.press("Enter");
};
await use("#crumbs button:nth-child(2)");
check("a crumb is gone when it was used", await focused(), "stage");
await use("#alltime");
check("and so is All time", [await focused(), /range/.test(await page.hash())], ["stage", false]);
await page.press("ArrowDown");
await use("#callers");
check("and Callers", [await focused(), /callers=/.test(await page.hash())], ["stage", true]);
await page.press("ArrowDown");
check("keys work on", await page.text("#details"), /^[^\n]+\n(jit|native|interp)/);
await page.press("Escape", "r");
for (const id of ["view", "range", "search"]) {
    await page.evaluate(`document.getElementById("${id}").focus()`);
    await page.press("Escape");
    check("Escape leads back from " + id, await focused(), "stage");
}
END
}

@test "From-to takes what --time takes, says what it does not understand, and Escape forgets what is half written" {
    in_browser page.html <<'END'
const write = async (text, ...keys) => {
    await page.evaluate("(document.getElementById('range').focus(), document.getElementById('range').select(), 0)");
    await page.type(text);
    await page.press(...keys);
    const isWrong = await page.evaluate("document.getElementById('range').getAttribute('aria-invalid')");
    return [await page.hash(), isWrong];
};
check("seconds", await write("0.2 - 0.3s", "Enter"), ["#range=0.2-0.3", "false"]);
check("percent", await write("10%-50%", "Enter"), ["#range=0.0999-0.4995", "false"]);
check("the last percent has the last sample", await write("50%-100%", "Enter"), ["#range=0.4995-0.999001", "false"]);
check("the clock", await write("03:04:05.5-03:04:05.75", "Enter"), ["#range=0.25-0.5", "false"]);
check("no range", await write("soon", "Enter"), ["#range=0.25-0.5", "true"]);
check("it is said", await page.text("#details"), "no range of time: soon\nwrite 1.2-1.3 (seconds), 10%-20%, or 03:04:05-03:04:06");
check("the wrong way round", (await write("0.5-0.2", "Enter"))[1], "true");
check("half written", await write("0.7-0", "Escape"), ["#range=0.25-0.5", "false"]);
check("the field", await page.evaluate("document.getElementById('range').value"), "0.25-0.5");
check("nothing is all time", await write(" ", "Enter"), ["", "false"]);
END
}

@test "what is in focus is told in sight, and its box is in sight, in a low window too; lists have no sideways scrolling" {
    in_browser page.html <<'END'
await page.send("Emulation.setDeviceMetricsOverride", { width: 700, height: 520, deviceScaleFactor: 1, mobile: false });
await page.settle();
const inSight = () => page.evaluate("(() => { const box = document.getElementById('details').getBoundingClientRect(); return box.top > 0 && box.bottom <= innerHeight; })()");
check("at first", await inSight(), true);
await page.evaluate("(document.getElementById('stage').focus({ preventScroll: true }), scrollTo(0, 0), 0)");
for (let i = 0; i < 9; i++) await page.press("ArrowDown");
check("a box far below", await page.text("#details"), /^asm_exc_page_fault\n/);
check("what is said of it", await inSight(), true);
const seen = await page.evaluate("(() => { const { top } = stage.getBoundingClientRect(), y = top + 6 * 20 - stage.scrollTop; return [y >= 0, y + 20 <= document.getElementById('foot').getBoundingClientRect().top]; })()");
check("its box", seen, [true, true]);
await page.press("/");
await page.type("a");
check("many are found", await page.evaluate("document.querySelectorAll('#found li').length") > 5, true);
check("the list", await page.evaluate("found.scrollWidth <= found.clientWidth"), true);
check("the page", await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), true);
await page.send("Emulation.setDeviceMetricsOverride", { width: 1280, height: 900, deviceScaleFactor: 1, mobile: false });
await page.settle();
check("the list, in columns", await page.evaluate("found.scrollWidth <= found.clientWidth"), true);
const cut = () => page.evaluate("(() => { const list = document.getElementById('view'), copy = list.cloneNode(true), { width } = list.getBoundingClientRect(); Object.assign(copy.style, { position: 'absolute', maxWidth: 'none' }); document.body.append(copy); const wanted = copy.getBoundingClientRect().width; copy.remove(); return width < wanted; })()");
check("names of views are whole", await cut(), false);
END
}

@test "what people ask of a profile is answered by at most four clicks and keys" {
    in_browser page.html <<END
const { ask } = require("$here/five_questions.js"), answers = await ask(page, [0.65, 0.75]);
check("five", Object.keys(answers).length, 5);
for (const [question, { actions }] of Object.entries(answers)) if (!(actions >= 1 && actions <= 4)) throw new Error(question + " takes " + actions);
const [most, caller, range, waits, tiers] = Object.values(answers).map(({ answer }) => answer);
check("most", most, "63.64 %answer /app/server.js:7");
check("caller", caller, /^callers of answer: all threads none of mine\$/);
check("a range", range, /^all threads from 0\.6[45]\d* to 0\.7[45]\d* s (99|100|101)\.00 ms.*: 50\.00 %answer .*, 50\.00 %walk /);
check("waits", waits, /^70\.00 %worker 10\/11 700\.00 ms, most in Thing\.method\(com\.example\.Argument, int\); its own: waiting: worker 10\/11 700\.00 ms/);
check("tiers", tiers, /answer: tier-up, from interpreter, bytecode to jit, TurboFan: 57\.14 %answer .*; before: 75\.00 %answer /);
END
}

@test "110 000 stacks of 64 threads in ten minutes: at most 5 MB, open in 1.5 s, and no frame costs more than 50 ms, whatever is asked for" {
    [ -e many.html ] || {
        python3 "$here/many_stacks.py" many 110000 64 600
        perfjit flamegraph -q --perf-map 4711:many.map -o many.html many
        rm many
    }
    [ "$(stat -c %s many.html)" -le 5000000 ]
    in_browser many.html <<'END'
await later(1000);
const opened = await page.cost(async () => {
    await page.send("Page.reload");
    await later(3000);
});
const sum = opened.tasks.reduce((all, ms) => all + ms, 0);
check("opens in " + sum + " ms of CPU", sum < 1500, true);
const [, , left, top, width] = await page.at("#strip"), [stageX, stageY, stageLeft, stageTop] = await page.at("#stage");
const range = (from, to) => page.drag(left + width * from, top + 40, left + width * to, top + 40);
const acts = {
    ranges: async () => { for (let i = 0; i < 4; i++) await range(0.1 + i / 20, 0.3 + i / 6); },
    filters: async () => { for (const n of [1, 2, 3, 4]) await page.clickOn(`#hide button:nth-of-type(${n})`); await page.press("m"); },
    "a range of what is filtered": async () => { await range(0.2, 0.6); await range(0.5, 0.9); await page.press("a"); },
    "the list of my functions": async () => { await page.press("m", "m"); },
    folds: async () => { await page.press("r"); await page.clickOn("#fold button:nth-of-type(1)"); await page.clickOn("#fold button:nth-of-type(2)"); },
    reset: () => page.press("r"),
    threads: async () => { for (const n of [5, 6]) { await page.evaluate(`(() => { const list = document.getElementById("scope"); list.selectedIndex = ${n}; list.dispatchEvent(new Event("change")); })()`); await page.settle(); } await page.press("r"); },
    zoom: async () => { for (let i = 0; i < 4; i++) { await page.click(stageLeft + 200, stageTop + 70); await page.press("Escape"); } },
    inverted: async () => { await page.press("i"); for (let i = 0; i < 2; i++) { await page.click(stageLeft + 100, stageTop + 30); await page.press("Escape"); } await range(0.3, 0.8); },
    time: async () => { await page.press("r", "t"); for (let i = 0; i < 5; i++) await page.wheel(stageX, stageY, -100); await page.press(">", "<", "m", "m"); },
    "n in the time view": async () => { await page.press("r", "t", "/"); await page.type("function1234"); await page.press("Enter", "Escape", "n", "+", "n", "ArrowDown", "ArrowUp"); },
    search: async () => { await page.press("r", "/"); for (const letter of "function12") await page.type(letter); await page.press("Enter", "Enter", "Escape"); await page.press("r"); },
};
const tasks = [], frames = [];
for (const [what, act] of Object.entries(acts)) {
    const cost = await page.cost(act);
    check("something ran: " + what, cost.tasks.length > 5, true);
    if (cost.tasks[0] > 50) throw new Error(what + " takes a frame of " + cost.tasks[0] + " ms");
    tasks.push(...cost.tasks);
    frames.push(...cost.frames);
}
frames.sort((a, b) => a - b);
console.log("CPU of the longest tasks:", tasks.sort((a, b) => b - a).slice(0, 5).map((ms) => ms.toFixed(1)).join(" "), "ms; frames:", frames.length, "median", frames[frames.length >> 1].toFixed(1), "99 %", frames[Math.floor(frames.length * 0.99)].toFixed(1), "ms; open", sum.toFixed(0), "ms");
END
}

@test "a deopt that the runtime told of has its reason and place, by key, by mouse, and of what is searched for or is one's own" {
    in_browser deopt.html <<'END'
check("legend", await page.text("#legend"), /tier-up ▲[^]*deoptimised ▼/);
await page.press(".", ".");
near("from the deopt on", await page.hash(), "range", 0.7005, 1, 0.002);
const said = /\n0\.701 s  03:04:05\.95\d* +walk: deoptimised, from jit, TurboFan: wrong map, \/app\/server\.js:21:7$/;
check("why", await page.text("#details"), said);
const [, , left, top, width] = await page.at("#strip");
await page.mouse("mouseMoved", left + width * 0.7005, top + 26);
check("its tip", await page.text("#tip"), /^0\.701 s .*walk: deoptimised, .*wrong map/);
await page.press("a", "/");
await page.type("walk");
await page.press("Escape", ".");
near("of what is searched for", await page.hash(), "range", 0.7005, 1, 0.002);
await page.press("r", "m", ",");
near("of one's own functions", await page.hash(), "range", 0.7005, 1, 0.002);
await page.press("r", ",");
near("a collection, by key", await page.hash(), "range", 0.8, 1, 0.002);
check("how long it was", await page.text("#details"), /\n0\.800 s  03:04:06\.05\d* +garbage collection, 50\.0 ms$/);
await page.press("a");
await page.mouse("mouseMoved", left + width * 0.8, (await page.at("#strip"))[3] + 26);
check("its tip", await page.text("#tip"), /garbage collection, 50\.0 ms$/);
await page.click(left + width * 0.8, (await page.at("#strip"))[3] + 26);
near("a collection, by mouse", await page.hash(), "range", 0.8, 1, 0.002);
END
}

@test "the differential page has the same search and filters, and keeps both sides" {
    in_browser diff.html <<'END'
check("all", await page.text("#details"), /^all\n1\.100 s, then 1\.300 s a run: \+200\.00 ms \(18\.18 %\)\nslower$/);
await page.press("/");
await page.type("walk");
check("share", await page.text("#matched"), "18.18 % matched");
await page.press("Enter");
check("what was found", await page.text("#details"), /^walk\njit, TurboFan[^]*\n200\.00 ms, then 400\.00 ms a run: \+200\.00 ms \(100\.00 %\)\nslower$/);
await page.press("Escape", "m");
check("my code", await page.hash(), "#hide=others&search=walk");
check("what is hidden of both sides", await page.text("#hidden"), /^13\.64 % of the base's time and 11\.54 % of the new one's is that of hidden functions/);
await page.evaluate("location.hash = '#hide=others'");
await page.settle();
const [, , left, top] = await page.at("#stage"), row = async (y, x) => {
    await page.mouse("mouseMoved", left + x, top + y * 20 + 8);
    return (await page.text("#tip")).split("\n");
};
check("the sum stays", await page.text("#details"), /^all\n1\.100 s, then 1\.300 s/);
check("the heaviest at the left, its two sides", (await row(1, 100)).slice(0, 3).join(), /^answer,.*,400\.00 ms, then 400\.00 ms a run: \+0\.0/);
await page.clickOn("#fold button:nth-of-type(1)");
check("folded", await page.hash(), "#hide=others&fold=recursion");
await page.press("/");
await page.type("walk");
await page.press("Enter");
check("one walk, with all of its time", await page.text("#details"), /\n200\.00 ms, then 400\.00 ms a run/);
await page.press("Escape", "t", "i", "w", "c", ".", "o");
check("no view without two sides", await page.evaluate("[strip.hidden, document.getElementById('ranges').hidden, document.getElementById('callers').hidden, location.hash.includes('view')]"), [true, true, true, false]);
END
}

@test "each side of a difference has a range of its own, by text, by mouse and in the address, and with filters" {
    in_browser sides.html <<'END'
check("all", await page.text("#details"), /^all\n1\.100 s, then 1\.300 s a run/);
const type = async (id, text) => { await page.evaluate(`(() => { const field = document.getElementById("${id}"); field.value = "${text}"; field.dispatchEvent(new Event("change")); })()`); await page.settle(); };
await type("base", "0-0.3");
check("the base alone", await page.text("#details"), /^base from 0 to 0\.3 s, new all time\n400\.00 ms, then 1\.300 s a run: \+900\.00 ms \(225\.00 %\)\nmore in this time; not judged against noise$/);
check("in the address", await page.hash(), "#base=0-0.3");
await type("new", "0.7-0.9");
check("both", await page.text("#details"), /^base from 0 to 0\.3 s, new from 0\.7 to 0\.9 s\n400\.00 ms, then 400\.00 ms a run: \+0\.0 µs[^]*\nthe same in this time;/);
await page.press("/");
await page.type("walk");
await page.press("Enter");
check("a function of one side", await page.text("#details"), /^walk\n[^]*\n0\.0 µs, then 400\.00 ms a run: \+400\.00 ms\nmore in this time, new;/);
await page.press("Escape", "m");
check("with a filter", await page.text("#details"), /400\.00 ms, then 400\.00 ms a run|0\.0 µs, then 400\.00 ms a run/);
await page.press("r");
check("reset", [await page.hash(), await page.text("#details")], /"","all\\n1\.100 s, then 1\.300 s/.test(JSON.stringify([await page.hash(), await page.text("#details")])) ? [await page.hash(), await page.text("#details")] : "all time");
const [, , left, top, width] = await page.at("#strip");
await page.drag(left + width * 0.7, top + 20 + 6, left + width * 0.9, top + 20 + 6);
near("the upper lane is the base's", await page.hash(), "base", 0.7, 0.9, 0.003);
await page.drag(left + width * 0.1, top + 20 + 18, left + width * 0.2, top + 20 + 18);
near("the lower one is the new side's", await page.hash(), "new", 0.1, 0.2, 0.003);
await page.mouse("mouseMoved", left + width * 0.5, top + 20 + 18);
check("a lane says which", await page.text("#tip"), /^0\.(49|50)\d* s\nnew$/);
await page.click(left + width * 0.5, top + 20 + 6);
check("a click gives all time back", /base=/.test(await page.hash()), false);
await page.press("a");
check("all time", await page.hash(), "");
END
}

@test "where threads waited is a view of its own, with the same choices" {
    in_browser page.html <<'END'
await page.press("w");
check("by key", [await page.hash(), await page.text("#details")], ["#view=waiting", "waiting: all threads\n1.000 s"]);
await page.press("/");
await page.type("method");
await page.press("Enter");
check("who waited", [await page.text("#matched"), await page.text("#details")].join(), /^1 of 1, 70\.00 % matched,void com\.example[^]*total 700\.00 ms \(70\.00 %\)/);
await page.press("Escape", "r", "w");
await page.evaluate("location.hash = '#view=waiting&range=0.05-0.2'");
await page.settle();
check("a range has its part", await page.text("#details"), "waiting: all threads from 0.05 to 0.2 s\n100.00 ms");
await page.evaluate("location.hash = '#view=waiting&range=0.2-0.6'");
await page.settle();
check("of two waits", await page.text("#details"), "waiting: all threads from 0.2 to 0.6 s\n300.00 ms");
await page.evaluate("location.hash = '#view=waiting&of=t10.11'");
await page.settle();
check("a thread", await page.text("#details"), "waiting: worker 10/11\n700.00 ms");
await page.press("w");
check("back", await page.text("#details"), /^worker 10\/11\n100\.00 ms/);
await page.press("r", "w");
const list = () => page.evaluate("[...document.querySelectorAll('#found button')].map((button) => button.textContent.replace(/ +/g, ' '))");
check("the threads, the longest wait first", await list(), ["70.00 %worker 10/11 700.00 ms, most in Thing.method(com.example.Argument, int)", "30.00 %main 10/10 300.00 ms, most in answer"]);
await page.evaluate("(document.querySelector('#found li:nth-child(2) button').focus(), 0)");
await page.press("Enter");
check("one of them, by key", [await page.hash(), await list()], ["#view=waiting&of=t10.10", ["100.00 %main 10/10 300.00 ms, most in answer"]]);
check("the focus is kept", await page.evaluate("document.activeElement.id"), "stage");
END
}

@test "callers of a function in which threads waited are those of the waits" {
    in_browser page.html <<'END'
await page.press("w", "/");
await page.type("answer");
await page.press("Enter", "Escape", "c");
check("by key", [await page.hash(), await page.text("#details")].join(), /^#view=waiting&callers=4&search=answer,waiting: callers of answer: all threads\n300\.00 ms$/);
const hash = await page.hash(), row = async (y) => {
    const [, , left, top] = await page.at("#stage");
    await page.mouse("mouseMoved", left + 100, top + y * 20 + 8);
    return (await page.text("#tip")).split("\n")[0];
};
check("its callers below it", [await row(1), await row(2), await row(3)], ["answer", "routeHandler", "parserOnIncoming"]);
await page.press("Escape");
check("out", [await page.hash(), (await page.text("#details")).split("\n")[1]], ["#view=waiting&search=answer", "1.000 s"]);
await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
await page.settle();
check("the address", await page.text("#details"), /^waiting: callers of answer: all threads\n300/);
await page.clickOn("#found button");
check("the list leads back to the stacks", [await page.hash(), (await page.text("#details")).split("\n")[0]].join(), /^#view=waiting&search=answer(&zoom=[\d.]+)?,answer$/);
await page.press("c", "w");
check("another view has no callers", [await page.hash(), (await page.text("#details")).split("\n")[0]], ["#search=answer", "all threads"]);
END
}

@test "the address makes the same view again" {
    in_browser page.html <<'END'
for (const hash of ["#view=inverted&of=t10.10&range=0.1-0.7&hide=kernel.runtime&fold=recursion&search=walk", "#view=time&range=0.25-0.5&span=0.2-0.8", "#hide=others&search=answer"]) {
    await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
    await page.settle();
    const first = [await page.text("#details"), await page.text("#matched"), await page.text("#hidden"), await page.evaluate("document.getElementById('canvas').toDataURL()")];
    await page.evaluate("location.hash = ''");
    await page.settle();
    await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
    await page.settle();
    check(hash, [await page.text("#details"), await page.text("#matched"), await page.text("#hidden"), await page.evaluate("document.getElementById('canvas').toDataURL()")], first);
}
for (const hash of ["#range=x", "#range=5-1&hide=nothing.%3Cb%3E&fold=.&zoom=99999.-1", "#view=other&span=nan-inf&of=t1", "#range=0.9999-0.99999", "#zoom=" + "1.".repeat(5000)]) {
    await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
    await page.settle();
    check("wrong: " + hash.slice(0, 40), await page.text("#details"), /^all threads/);
}
END
}
