#!/usr/bin/env bats
# The page of perfjit flamegraph, its scripts in node: sums, tiers, and what it takes when there is much to show.
# bats file_tags=live
load helper

# All boxes of a row of the time view.
time_boxes='const timeBoxes = (profile, row, from, to) => { const boxes = []; finish(timeBoxSteps(profile, row, from, to, 0, boxes)); return boxes; };'

setup_file() {
    require_perf || return 0
    cd "$BATS_FILE_TMPDIR" || return
    write_work
    export PERFJIT=dump JITDUMPDIR=$PWD
    record stacks -F 1000 --call-graph dwarf,8192 "$BUILD/tinyjit" work.tj
    record node -g node --perf-prof --interpreted-frames-native-stack work.js
    perf record -q -k mono -g --switch-events -e cpu-clock/freq=1000/ -e context-switches/period=1/ -o waits "$BUILD/producers/waits"
    unset PERFJIT JITDUMPDIR
    perfjit inject -q -i stacks -o unwound
}

setup() {
    require_perf
    cd "$BATS_FILE_TMPDIR" || return
}

@test "the page's sums of functions are the report's, in node" {
    for form in node unwound; do
        perfjit flamegraph -q -o own.html $form
        data own.html >own.json
        cat "$here"/../../injector/profile/flamegraph/page/{profile,tree,tiers,search,format}.js "$here"/page_model.js >model.js
        echo "$time_boxes" >>model.js
        cat >>model.js <<'END'
const profile = openProfile(JSON.parse(require("fs").readFileSync("own.json")));
const scopes = scopesOf(profile);
const flame = flameTree(profile, scopes[0]), inverted = invertedTree(profile, scopes[0]), time = timeRows(profile, scopes[0]);
if (flame.total[0] !== inverted.total[0]) throw new Error("the inverted view has another sum");
const inThreads = scopes.filter((scope) => scope.id[0] === "t").map((scope) => flameTree(profile, scope).total[0]).reduce((a, b) => a + b, 0);
if (inThreads !== flame.total[0]) throw new Error("threads have another sum");
const outermost = time.rows.flatMap((row) => timeBoxes(profile, row, time.first, time.last).filter((box) => box.depth === row.top + 1))
    .reduce((sum, box) => sum + box.weight, 0);
const leaves = new Map();
visitTree(inverted, 0, 1e12, 0, (node) => {
    if (inverted.depth[node] === 1) leaves.set(inverted.frame[node], inverted.total[node]);
});
for (const [frame, total] of leaves) {
    let self = 0;
    for (let i = 1; i < flame.count; i++) if (flame.frame[i] === frame) self += flame.self[i];
    if (self !== total) throw new Error("inverted: " + frameName(profile, frame) + " has " + total + ", not " + self);
}
if (outermost !== flame.total[0]) throw new Error("time has another sum: " + outermost + " of " + flame.total[0]);
const matched = matchFrames(profile, "/^(hot|tj::inner)$/");
if (!(matchedWeight(flame, matched) > flame.total[0] / 3)) throw new Error("nothing is found");
for (let i = 0; i < flame.count; i++) flame.expand(i);
for (let i = 1; i < flame.count; i++) if (flame.total[i] && flame.start[i] + flame.total[i] > flame.start[flame.parent[i]] + flame.total[flame.parent[i]])
    throw new Error("a box is outside of its caller's");
const functions = functionsOf(profile), totals = functionTotals(profile, scopes[0]), firsts = functions.map((own, frame) => functions.indexOf(own) === frame ? 1 : 0);
firsts.forEach((isFirst, frame) => {
    const sums = totals.get(functions[frame]);
    if (!isFirst || !sums || frame % 5) return; // the callers of each fifth
    const callers = invertedTree(profile, { ...scopes[0], callers: frame });
    if (callers.total[0] !== sums.total) throw new Error("callers of " + sums.name + ": " + callers.total[0] + ", not " + sums.total);
    callers.expand(0);
    if (childrenOf(callers, 0).some((child) => functions[callers.frame[child]] !== functions[frame])) throw new Error("callers begin with another function");
});
for (const [, sums] of totals) console.log(sums.self + " " + sums.total + " " + sums.name);
END
        node model.js | sort >page
        perfjit report -q --json $form | jq -r '.functions[] | "\(.self) \(.total) \(.name)"' | sort >report
        same page report
    done
}

@test "with every filter, range, thread and weight the page's sum is the report's, in node" {
    local weight form range thread total sums
    cat "$here"/../../injector/profile/flamegraph/page/{profile,tree,tiers,search,format,filter,strip}.js "$here"/page_model.js >sums.js
    cat >>sums.js <<'END'
const [file, ...asked] = process.argv.slice(2), profile = openProfile(JSON.parse(require("fs").readFileSync(file))), scopes = scopesOf(profile);
if (!asked.length) { // what to ask for: ranges that begin and end at odd places, and at samples
    const at = (share) => ((profile.first + share * (profile.last - profile.first)) / 1e6).toFixed(6), times = [...profile.times].sort((a, b) => a - b);
    const clock = (share) => clockText(profile.start, profile.first + share * (profile.last - profile.first), 1);
    const sample = (share) => (times[Math.floor(times.length * share)] / 1e6).toFixed(6);
    const ranges = ["-", at(0.1) + "-" + at(0.35), at(0.5) + "-", "-" + at(0.77), "12.3%-45.6%", clock(0.2) + "-" + clock(0.71), sample(0.2) + "-" + sample(0.4), sample(0.4) + "-" + sample(0.6)];
    for (const range of ranges) for (const scope of ["all", ...scopes.filter(({ id }) => id[0] === "t").map(({ id }) => id.split(".")[1])]) console.log(range, scope);
} else {
    const [range, thread] = asked, scope = scopes.find(({ id }) => id === "all" ? thread === "all" : id.endsWith("." + thread)), within = readRange(range, profile);
    const sums = new Set();
    for (const hide of [[], ["kernel"], ["native"], ["runtime"], ["libraries"], ["others"], hideable]) for (const fold of [[], ["recursion"], ["tiers"], foldable]) {
        const own = filterProfile(profile, hide, fold), where = within ? { ...scope, range: within } : scope, tree = flameTree(own, where), inverted = invertedTree(own, where);
        const selfs = frameSelfs(own, tree).reduce((sum, self) => sum + self, 0) + tree.self[0];
        for (const sum of [tree.total[0], inverted.total[0], selfs]) sums.add(sum);
    }
    console.log([...sums].join(" "));
}
END
    while read -r weight form; do
        perfjit flamegraph -q --weight $weight -o sums.html $form
        data sums.html >sums.json
        node sums.js sums.json >asked
        [ "$(wc -l <asked)" -ge 6 ]
        while read -r range thread; do
            [ "$range" != - ] || range=0-
            total=$(perfjit report -q --json --weight $weight --time "$range" $([ "$thread" = all ] || echo --thread "$thread") $form 2>/dev/null | jq .total)
            sums=$(node sums.js sums.json "$range" "$thread")
            [ "$sums" = "${total:-0}" ] || complain "$form $weight $range $thread: $sums, not $total" # without a sample it has no report
        done <asked
    done < <(printf '%s\n' "period node" "samples node" "period unwound" "samples unwound" "latency waits")
}

@test "the page shows when a function moved to another tier, and what it had in each" {
    cat >tiers.js <<'END'
function mix(n, o) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + (i ^ o.k)) % 1000003; return s; }
for (let o = { k: 3 }, t = 0; process.cpuUsage().user < 1.5e6;) for (let i = 0; i < 1000; i++) t += mix(200, o);
END
    perf record -q -k mono -e cpu-clock -F 4000 -g -o tiers node --perf-prof --interpreted-frames-native-stack --no-use-osr --no-sparkplug --interrupt-budget=30000000 \
        --interrupt-budget-factor-for-feedback-allocation=4000 --interrupt-budget-for-feedback-allocation=40000000 tiers.js
    perfjit flamegraph -q -o tiers.html tiers
    data tiers.html >tiers.json
    cat "$here"/../../injector/profile/flamegraph/page/{profile,tree,tiers}.js "$here"/page_model.js >model.js
    echo "$time_boxes" >>model.js
    cat >>model.js <<'END'
const profile = openProfile(JSON.parse(require("fs").readFileSync("tiers.json")));
const scope = scopesOf(profile)[0], time = timeRows(profile, scope);
const name = (frame) => frameName(profile, frame), tier = (frame) => profile.strings[profile.frames.tier[frame]];
const moves = time.rows.flatMap((row) => timeBoxes(profile, row, time.first, time.last)).filter((box) => box.before >= 0 && name(box.frame) === "mix");
if (!moves.some((box) => tier(box.before) === "bytecode" && tier(box.frame) === "TurboFan")) throw new Error("no move: " + JSON.stringify(moves));
const frame = profile.frames.name.findIndex((_, frame) => name(frame) === "mix");
const tiers = tiersIn(profile, finish(frameTotalSteps(profile, flameTree(profile, scope))), frame);
if (!["interpreter, bytecode", "jit, TurboFan"].every((wanted) => tiers.some(([kind]) => kind === wanted))) throw new Error(JSON.stringify(tiers));
const all = [...functionTotals(profile, scope).values()].find((sums) => sums.name === "mix").total;
if (tiers.reduce((sum, [, weight]) => sum + weight, 0) !== all) throw new Error("the tiers are not the whole: " + JSON.stringify(tiers) + " " + all);
if (!framesOfSeveralTiers(profile)[frame]) throw new Error("the legend does not tell");
// A caller in another tier than its callee of the same function has not moved.
const smallData = { unit: "ns", strings: ["", "f", "a", "b"], frames: { name: [1, 1], module: [0, 0], file: [0, 0], line: [0, 0], column: [0, 0], tier: [2, 3], kind: [0, 0], inlined: [0, 0] },
    nodes: { parent: [0, 1, 1, 3], frame: [0, 0, 1, 1] }, threads: { pid: [1], tid: [1], name: [0], process: [0] },
    samples: { node: [1, 2, 1, 3, 1], thread: [0, 0, 0, 0, 0], weight: [1, 1, 1, 1, 1], time: [0, 10, 10, 10, 10] } }, small = openProfile(smallData);
const row = timeRows(small, scopesOf(small)[0]).rows[0];
const found = timeBoxes(small, row, 0, 1000).map((box) => [box.depth, box.frame, box.before].join());
if (found.join(" ") !== "1,0,-1 2,1,-1 1,1,0 1,0,1") throw new Error(found.join(" "));
// One of two kinds, of which one alone has a tier, was not compiled anew.
const other = openProfile({ ...smallData, frames: { ...smallData.frames, tier: [0, 3] } });
if (framesOfSeveralTiers(other).join() !== "0,0" || framesOfSeveralTiers(small).join() !== "1,1") throw new Error("tiers: " + framesOfSeveralTiers(other));
END
    node model.js
}

@test "names that are shortened keep their class longer than their arguments, and both longer than a package's beginning" {
    cat "$here"/../../injector/profile/flamegraph/page/format.js >names.js
    cat >>names.js <<'END'
const java = "boolean com.example.tree.Node$Leaf.accept(com.example.tree.Visitor)", cxx = "std::vector<int> app::Server::handle(app::Request const&)";
for (const [name, letters, wanted] of [[java, 99, java], [java, 62, "com.example.tree.Node$Leaf.accept(com.example.tree.Visitor)"], [java, 44, "Node$Leaf.accept(com.example.tree.Visitor)"],
    [java, 36, "com.example.tree.Node$Leaf.accept(…)"], [java, 20, "Node$Leaf.accept(…)"], [java, 12, "accept(…)"], [java, 7, "accept…"], [java, 4, "acc…"],
    [cxx, 40, "app::Server::handle(app::Request const&)"], [cxx, 34, "app::Server::handle(…)"], [cxx, 18, "Server::handle(…)"],
    ["foo(int, long)", 8, "foo(…)"], ["node::Start", 6, "Start"], ["<img src=x onerror=alert(1)>", 9, null], ["walk", 3, "wa…"]]) {
    const got = shortName(name, letters);
    if (wanted === null ? got.length > letters : got !== wanted) throw new Error(name + " in " + letters + ": " + got + ", not " + wanted);
}
END
    node names.js
}

@test "my code is neither the JVM's stubs nor what perfjit record has node read, and each tier of a JVM has its colour" {
    cat "$here"/../../injector/profile/flamegraph/page/{profile,tree,tiers,filter,colours}.js "$here"/page_model.js >mine.js
    cat >>mine.js <<'END'
const rows = [["main", "/app/main.js", 1], ["(anonymous)", "/tmp/perfjit-Ab3dE6/settings/node/reach.js", 0], ["f", "/home/perfjit-tests/settings/f.js", 1], ["slow_subtype_check Runtime1 stub", "", 0],
    ["jbyte_disjoint_arraycopy_avx3", "", 0], ["g1_post_barrier_slow", "", 0], ["_new_array_nozero_Java", "", 0], ["int App.work(int)", "App.java", 1],
    ["java.lang.Object App.visit(java.lang.String, int)", "App.java", 1], ["java.util.Map<java.lang.String, App> App.all()", "", 1], ["java.lang.Object java.util.HashMap.get(java.lang.Object)", "", 0],
    ["void java.util.HashMap.<init>(int)", "", 0], ["java.util.HashMap.get", "", 0], ["stub", "/app/stub.js", 1], ["arraycopy", "", 1]];
const none = rows.map(() => 0), strings = ["", ...rows.flat().filter((word) => typeof word === "string" && word)], text = (word) => strings.indexOf(word);
const profile = { strings, frames: { name: rows.map(([name]) => text(name)), file: rows.map(([, file]) => text(file)), module: none, line: none, column: none, tier: none, rank: none, kind: none, inlined: none } };
const owners = ownersOf(profile), others = 1 << hideable.indexOf("others");
rows.forEach(([name, , isMine], i) => { if (!(owners[i] & others) !== !!isMine) throw new Error(name + " is " + (isMine ? "not " : "") + "mine"); });
// By rank: an interpreter's, and those of four compilers; and code of no tier.
const one = { strings: ["", "f"], frames: { name: [1, 1, 1, 1, 1, 1], rank: [1, 2, 3, 4, 5, 0], kind: none, inlined: none, tier: none } };
const hues = frameColours(one, true).map((colour) => parseFloat(colour.slice(4)));
if (hues.some((hue, i) => i && hue - hues[i - 1] < 18)) throw new Error(hues.join());
END
    node mine.js
}

@test "a range may be seconds, percent or the clock's, after midnight too, and nothing else" {
    cat "$here"/../../injector/profile/flamegraph/page/strip.js >ranges.js
    cat >>ranges.js <<'END'
const at = new Date(2026, 0, 2, 23, 59, 59, 500), own = { first: 0, last: 4000001, start: at.getTime() }, without = { ...own, start: undefined };
for (const [text, wanted, profile = own] of [["1-2", [1e6, 2e6]], [" .5 s – 1.25s ", [5e5, 1.25e6]], ["1-", [1e6, 4000001]], ["-50%", [0, 2e6]], ["25%-100%", [1e6, 4000001]], ["23:59:59.75-00:00:01", [25e4, 15e5]], ["0:00-", [5e5, 4000001]],
    ["23:59-0:00:01", [-595e5, 15e5]], ["1-00:00:02.5", [1e6, 3e6]], ["0:00-", null, without], ["", null], ["-", null], [null, null], ["2-1", null], ["1", null], ["a-b", null], ["1-2-3", null], ["1:2:3-", null], ["1e3-2e3", null], ["%-%", null]]) {
    const got = readRange(text, profile);
    if (JSON.stringify(got && got.map(Math.round)) !== JSON.stringify(wanted)) throw new Error(text + ": " + got + ", not " + wanted);
}
for (let us = 1; us < 3e6; us += 997) if (readRange("-" + rangeText([0, us]).slice(2), { first: 0, last: 4e6 })[1] !== us) throw new Error(us + " us is another time as a text");
END
    for TZ in UTC Asia/Kathmandu; do TZ=$TZ node ranges.js; done
}

@test "the page unpacks whatever zlib packs, and says so where the data is damaged" {
    cat "$here"/../../injector/profile/flamegraph/page/inflate.js >model.js
    cat >>model.js <<'END'
const zlib = require("zlib"), { Z_FIXED, Z_HUFFMAN_ONLY, Z_RLE, Z_DEFAULT_STRATEGY } = zlib.constants;
let seed = 1;
const random = (below) => (seed = (seed * 48271) % 2147483647) % below;
for (const [bytes, letters] of [[0, 1], [1, 1], [257, 1], [3000, 2], [70000, 1], [70000, 3], [70000, 40], [200000, 256], [400000, 17]])
    for (const strategy of [Z_DEFAULT_STRATEGY, Z_FIXED, Z_HUFFMAN_ONLY, Z_RLE]) for (const level of [0, 1, 6, 9]) {
        const text = JSON.stringify({ "é": Array.from({ length: bytes / 2 }, () => String.fromCharCode(48 + random(letters))).join("") });
        const data = unpackData("\n" + zlib.deflateSync(text, { strategy, level }).toString("base64") + "\n");
        if (JSON.stringify(data) !== text) throw new Error([bytes, letters, strategy, level] + ": another text");
    }
const packed = zlib.deflateSync(JSON.stringify(Array.from({ length: 5000 }, () => random(99)))), damaged = Buffer.from(packed);
damaged.fill(255, packed.length / 2);
for (const bytes of [packed.subarray(0, packed.length / 2), packed.subarray(0, 40), damaged]) {
    let error = null;
    try { unpackData(bytes.toString("base64")); } catch (thrown) { error = thrown; }
    if (!error) throw new Error(bytes.length + " bytes of " + packed.length + ": no error");
}
END
    timeout 60 node model.js
}

# A profile of 3 000 stacks of 20 frames, nearly each of its own, as text of a script.
many_stacks() {
    cat <<'END'
let seed = 1;
const random = (below) => (seed = (seed * 48271) % 2147483647) % below;
const nodes = { parent: [0], frame: [0] }, samples = { node: [], thread: [], weight: [], time: [] }, children = new Map();
for (let stack = 0; stack < 3000; stack++) {
    let node = 0;
    for (let depth = 0; depth < 20; depth++) {
        const frame = random(50), key = node * 50 + frame;
        if (!children.has(key)) {
            children.set(key, nodes.parent.length);
            nodes.frame.push(frame);
            nodes.parent.push(nodes.parent.length - node);
        }
        node = children.get(key);
    }
    samples.node.push(node);
    samples.thread.push(0);
    samples.weight.push(1 + random(3));
    samples.time.push(1000);
}
const fifty = [...Array(50).keys()], none = fifty.map(() => 0);
const many = { unit: "ns", strings: ["", ...fifty.map((i) => "f" + i)], nodes, samples,
    frames: { name: fifty.map((i) => i + 1), module: none, file: none, line: none, column: none, tier: none, rank: none, kind: none, inlined: none },
    threads: { pid: [1], tid: [1], name: [0], process: [0] } };
END
}

@test "what a frame has no time for comes with the next ones, and is the same in the end" {
    cat "$here"/../../injector/profile/flamegraph/page/{profile,tree,tiers}.js "$here"/page_model.js >model.js
    many_stacks >>model.js
    cat >>model.js <<'END'
const profile = openProfile(many), scope = scopesOf(profile)[0];
const look = (tree, hasTime) => {
    const seen = [];
    const deepest = visitTree(tree, 0, 1e6, 0.4, (node, x, width) => seen.push([tree.depth[node], tree.frame[node], x.toFixed(3), width.toFixed(3)].join()), hasTime);
    return { seen, deepest };
};
const whole = look(invertedTree(profile, scope)), sliced = invertedTree(profile, scope);
if (whole.deepest !== 20 || whole.seen.length < 30000) throw new Error(whole.deepest + " " + whole.seen.length);
const none_yet = look(sliced, () => false);
if (none_yet.seen.length !== 1) throw new Error("something was expanded: " + none_yet.seen.length);
let looks = 0, before = 1;
for (;;) {
    let steps = 0, isWhole = true;
    const { seen } = look(sliced, () => steps++ < 1000 || (isWhole = false));
    looks++;
    if (seen.length < before) throw new Error("less than before");
    before = seen.length;
    if (isWhole) break;
}
if (looks < 20) throw new Error("not in slices: " + looks);
const end = look(sliced, () => false);
if (end.seen.sort().join("\n") !== whole.seen.sort().join("\n") || end.deepest !== whole.deepest) throw new Error("another picture");
// Row by row, so that those that come later are further in.
const rows = [];
visitTree(sliced, 0, 1e6, 0.4, (node) => rows.push(sliced.depth[node]));
if (rows.some((row, i) => i && row < rows[i - 1])) throw new Error("not row by row");
END
    node model.js
}

@test "what is hidden and folded keeps the sums of all callers, on both sides of a difference" {
    cat "$here"/../../injector/profile/flamegraph/page/{profile,tree,tiers,filter}.js "$here"/page_model.js >model.js
    many_stacks >>model.js
    cat >>model.js <<'END'
const check = (what, isSo) => { if (!isSo) throw new Error(what); };
many.frames.kind = fifty.map((i) => i % 7 === 0 ? 3 : i % 5 === 0 ? 2 : 0);
many.frames.name = fifty.map((i) => i % 20 + 1); // functions that call themselves, in other tiers
many.frames.tier = fifty.map((i) => i > 20 ? 2 : 3);
const profile = openProfile(many), scope = scopesOf(profile)[0], before = flameTree(profile, scope);
profile.difference = { base: [...before.total], new: [...before.total].map((value) => value * 2), verdict: [...before.total].map(() => 0) };
for (const hide of [[], ["kernel"], ["kernel", "native"], ["others"]]) for (const fold of [[], ["recursion"], ["tiers"], ["recursion", "tiers"]]) {
    const filtered = filterProfile(profile, hide, fold), tree = flameTree(filtered, scope), what = hide + " " + fold;
    check(what + ": the sum", tree.total[0] === before.total[0]);
    for (let i = 0; i < tree.count; i++) {
        check(what + ": a side", Math.abs(filtered.difference.base[i] - tree.total[i]) < 1e-6 && Math.abs(filtered.difference.new[i] - 2 * tree.total[i]) < 1e-6);
        if (!i) continue;
        const kind = filtered.frames.kind[tree.frame[i]];
        check(what + ": a hidden frame", !(hide.length && kind === 3) && !((hide.includes("native") || hide.includes("others")) && kind === 2));
        for (let outer = tree.parent[i]; fold.includes("recursion") && outer > 0; outer = tree.parent[outer])
            check(what + ": a function twice", functionsOf(filtered)[tree.frame[outer]] !== functionsOf(filtered)[tree.frame[i]]);
        for (let child = tree.first[i], names = new Set(); fold.includes("tiers") && child; child = tree.next[child]) {
            const name = functionsOf(filtered)[tree.frame[child]];
            check(what + ": two tiers", !names.has(name));
            names.add(name);
        }
    }
    let hidden = 0; // sum of what ends in hidden frames, and stands with a caller
    for (let i = 1; i < before.count; i++) if (ownersOf(profile)[before.frame[i]] & hide.reduce((bits, word) => bits | 1 << hideable.indexOf(word), 0)) hidden += before.self[i];
    const told = hiddenWeight(filtered, scope);
    check(what + ": how much is hidden", told.all === hidden && told.of.reduce((sum, one) => sum + one, 0) === hidden);
}
END
    node model.js
}

@test "boxes without text are pixels: none is missing, none is outside, and the heaviest of those that share one has it" {
    cat "$here"/../../injector/profile/flamegraph/page/canvas.js >canvas.js
    cat >>canvas.js <<'END'
const width = 200, height = 100, context = { canvas: { width, height },
    createImageData: (width, height) => ({ width, height, data: new Uint8ClampedArray(width * height * 4) }), putImageData: (image) => { context.image = image; },
    set fillStyle(colour) { this.colour = colour; }, get fillStyle() { return this.colour; } };
const draw = (scale, boxes) => {
    const surface = { thin: [], wide: [] };
    for (const [x, y, width, fill, outline] of boxes) drawBox(surface, { x, y, width }, "", { fill, outline });
    if (surface.wide.length) throw new Error("wide: " + JSON.stringify(surface.wide));
    fillThin({ context, scale, thin: surface.thin });
    return (x, y) => "#" + [...context.image.data.slice((y * width + x) * 4, (y * width + x) * 4 + 4)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
};
const nothing = "#00000000";
const check = (what, got, wanted) => { if (got !== wanted) throw new Error(what + ": " + got + ", not " + wanted); };
let at = draw(1, [[10, 20, 5, "#102030"], [15, 20, 0.1, "#ff0000"], [15.2, 20, 0.1, "#00ff00"], [-3, 40, 5, "#0000ff"], [198, 40, 8, "#0000fe"], [50, 90, 4, "#aabbcc"], [60, -10, 4, "#aabbcd"]]);
check("left", at(10, 20), "#102030ff");
check("last row", at(10, 38), "#102030ff");
check("between rows", at(10, 39), nothing);
check("gap", at(14, 20), nothing);
check("a thin one has a pixel", at(15, 20), "#ff0000ff");
check("cut at the left", at(0, 40), "#0000ffff");
check("cut at the right", at(199, 40), "#0000feff");
check("no wrap", at(0, 41) + at(2, 41), "#0000ffff" + nothing);
check("cut at the end", at(50, 99), "#aabbccff");
check("cut at the top", at(60, 0) + at(60, 9), "#aabbcdff" + nothing);
check("framed", draw(1, [[10, 20, 5, "#102030", "#a0b0c0"]])(12, 22), "#a0b0c0ff");
at = draw(2, [[10, 20, 5, "#102030"]]);
check("scaled", at(20, 40) + at(28, 77) + at(29, 40) + at(10, 20), "#102030ff#102030ff" + nothing + nothing);
END
    node canvas.js
}

@test "each view is drawn whole, at once or frame by frame, and so is what is zoomed in to, and back" {
    cat "$here"/small_browser.js >whole.js
    many_stacks >>whole.js
    echo 'book.data = require("zlib").deflateSync(JSON.stringify(many)).toString("base64");' >>whole.js
    cat "$here"/../../injector/profile/flamegraph/page/{inflate,profile,tree,tiers,filter,moments,strip,waits,spans,difference,colours,format,search,canvas,page}.js >>whole.js
    cat >>whole.js <<'END'
const check = (what, isSo) => { if (!isSo) throw new Error(what + ": " + drawnRows().join(" ") + "; " + location.hash + "; " + byName("details").textContent); };
const full = (from, to, least) => drawnRows().slice(from, to).every((count) => count >= least) && drawnRows().slice(from, to).length === to - from;
allFrames();
check("flame graph, the first two rows", full(0, 2, 900));
press("i");
allFrames();
check("inverted, the first two rows", full(0, 2, 900));
clickAt(500, 30);
const sum = () => drawnRows().reduce((all, count) => all + count);
const first = sum(), frames = allFrames();
check(`inverted and zoomed: ${first} pixels first, ${frames} frames`, frames >= 5 && frames < 100 && first < sum() * 0.9);
check("inverted and zoomed: all rows, the frame at the top", full(0, 20, 700) && drawnRows().length === 20);
check("the link", /^#view=inverted&zoom=\d+$/.test(location.hash));
const zoomed = drawnRows().join();
press("t");
// Until its first picture is there the last one stands, and that is none of times.
clickAt(500, 50);
byName("stage").handlers.wheel({ deltaX: 0, deltaY: -100, clientX: 500, preventDefault() {} });
byName("canvas").handlers.mousedown({ button: 0, clientX: 500, clientY: 50 });
book.windows.mouseup({ clientX: 500, clientY: 50 });
check("nothing is zoomed in to before", location.hash === "#view=time");
const timeFrames = allFrames();
check("time: in several frames, not " + timeFrames, timeFrames >= 3 && timeFrames < 100);
check("time: all rows", full(0, 22, 400));
const time = drawnRows().join();
clickAt(500, 50);
allFrames();
check("time, a part", full(0, 22, 900) && /span=\d/.test(location.hash));
press("Escape");
check("time: the whole again, at once", allFrames() === 0 && drawnRows().join() === time);
press("i");
allFrames();
clickAt(500, 30);
check("inverted again: at once, and the same", allFrames() === 0 && drawnRows().join() === zoomed);
byName("search").value = "f7";
byName("search").handlers.input({ target: byName("search") });
check("search, and the list of what is found", allFrames() < 4 && /%\u0020matched$/.test(byName("matched").textContent) && full(0, 20, 900));
press("r");
allFrames();
check("reset", full(0, 2, 900) && location.hash === "#");
END
    node whole.js
}
