// The page: what is shown, what is clicked and typed, and the link that holds it.
function startPage() {
    const byId = (id) => document.getElementById(id);
    const profile = openProfile(JSON.parse(byId("data").textContent));
    const scopes = scopesOf(profile);
    const [stage, canvas, tip, details] = ["stage", "canvas", "tip", "details"].map(byId);
    let state = readHash();
    let shown = null; // {tree or time, boxes drawn, colours, matched}
    let focus = 0;
    let cache = {};
    let isToBeShown = false; // what the last frame had no time for
    let drawnAt = -Infinity;
    const frameMs = 8, drawMs = 100;

    function readHash() {
        const words = new URLSearchParams(location.hash.slice(1));
        const view = words.get("view");
        return { view: !profile.difference && ["flame", "inverted", "time"].includes(view) ? view : "flame", scope: words.get("of") || "all",
            search: words.get("search") || "", path: (words.get("zoom") || "").split(".").filter(Boolean).map(Number),
            span: (words.get("span") || "").split("-").map(Number) };
    }

    function go(change, replaces) {
        const next = { ...state, ...change };
        if (profile.difference) next.view = "flame"; // the others have no two sides
        const words = new URLSearchParams();
        if (next.view !== "flame") words.set("view", next.view);
        if (next.scope !== "all") words.set("of", next.scope);
        if (next.search) words.set("search", next.search);
        if (next.path.length) words.set("zoom", next.path.join("."));
        if (next.span.length === 2) words.set("span", next.span.join("-"));
        history[replaces ? "replaceState" : "pushState"](null, "", "#" + words);
        take(next);
    }

    function take(next) {
        state = next;
        drawnAt = -Infinity;
        tip.hidden = true; // what it stood beside is elsewhere now
        show();
    }

    // ---- What is shown ----

    function scopeNow() {
        return scopes.find((scope) => scope.id === state.scope) || scopes[0];
    }

    // What is made of a scope is kept as long as it is shown: to make the trees takes longer than to draw them.
    function treeNow() {
        if (cache.scope !== state.scope) {
            cache = { scope: state.scope, trees: {} };
            makeAhead(cache);
        }
        if (cache.view !== state.view) focus = 0;
        cache.view = state.view;
        return treeFor(state.view);
    }

    function treeFor(view) {
        const make = { flame: flameTree, inverted: invertedTree, time: timeRows }[view];
        return cache.trees[view] = cache.trees[view] || make(profile, scopeNow());
    }

    // The other views and what a tooltip needs, in pieces, while nobody waits for anything.
    function makeAhead(own) {
        if (profile.difference || !globalThis.requestIdleCallback) return;
        const steps = otherViews();
        const go = (idle) => {
            while (cache === own && idle.timeRemaining() > 2) if (steps.next().done) return;
            if (cache === own) requestIdleCallback(go);
        };
        requestIdleCallback(go);
    }

    function* otherViews() {
        yield treeFor("inverted");
        yield* nodesInSight(treeFor("inverted"), 0, stage.clientWidth, leastWidth);
        yield treeFor("flame");
        yield* totalSteps();
        yield treeFor("time");
        for (const row of treeFor("time").rows)
            for (const part = partOf(row, wholeTime(treeFor("time"))); part.steps; takeStep(part)) yield;
    }

    // The node that the frames of the link's path lead to.
    function zoomed(tree) {
        let node = 0;
        for (const frame of state.path) {
            if (tree.expand) tree.expand(node);
            const next = childrenOf(tree, node).find((child) => tree.frame[child] === frame);
            if (!next) break;
            node = next;
        }
        return node;
    }

    function pathTo(tree, node) {
        const path = [];
        for (; node > 0; node = tree.parent[node]) path.push(tree.frame[node]);
        return path.reverse();
    }

    function takeColours() {
        const dark = isDark();
        if (cache.colours && cache.dark === dark) return;
        cache.colours = frameColours(profile, dark);
        cache.dark = dark;
    }

    function style(frame, matched, node) {
        const dark = cache.dark;
        const dim = matched && !matched[frame];
        const own = profile.difference ? differenceColour(profile.difference, node, dark) : cache.colours[frame];
        return { fill: dim ? (dark ? "#33343a" : "#e9e6df") : own, text: dark ? "#f2efe9" : "#1a1917",
            inlined: profile.frames.inlined[frame], mark: dim ? null : dark ? "#fff" : "#000", hatch: dark ? "rgba(255,255,255,.55)" : "rgba(0,0,0,.45)",
            outline: matched && matched[frame] ? (dark ? "#d9a5ff" : "#8a2be2") : profile.difference ? differenceOutline(profile.difference, node, dark) : null };
    }

    function show() {
        byId("view").value = state.view;
        byId("scope").value = scopeNow().id;
        if (document.activeElement !== byId("search")) byId("search").value = state.search;
        const tree = treeNow();
        const matched = matchedNow();
        takeColours();
        const hasTime = makeBudget();
        if (state.view === "time") showTime(tree, matched, hasTime);
        else showTree(tree, matched, hasTime);
        byId("matched").textContent = matched ? matchedShare() : "";
        describe(shown.boxes.find((box) => box.id === focus) || null);
    }

    // What a frame has no time for comes with the next ones.
    function makeBudget() {
        const end = performance.now() + frameMs;
        const hasTime = () => {
            if (performance.now() < end) return true;
            if (!isToBeShown) requestAnimationFrame(() => { isToBeShown = false; show(); });
            isToBeShown = true;
            return false;
        };
        return hasTime;
    }

    // What is not whole need not be drawn in each frame.
    function canWait() {
        if (isToBeShown && performance.now() - drawnAt < drawMs) return true;
        drawnAt = performance.now();
        return false;
    }

    // Numbers of the first and the last one.
    function rowsInSight() {
        return [stage.scrollTop / rowHeight - 1, (stage.scrollTop + Math.max(stage.clientHeight, 60)) / rowHeight];
    }

    function matchedNow() {
        if (!cache.found || cache.found.text !== state.search) cache.found = { text: state.search, frames: matchFrames(profile, state.search) };
        return cache.found.frames;
    }

    // Of the whole view, whatever is zoomed in to.
    function matchedShare() {
        if (!cache.found.share) {
            const whole = treeFor("flame");
            cache.found.share = percent(matchedWeight(whole, cache.found.frames), whole.total[0]) + " matched";
        }
        return cache.found.share;
    }

    function showTree(tree, matched, hasTime) {
        const root = zoomed(tree), inSight = [], [top, bottom] = rowsInSight();
        const deepest = visitTree(tree, root, stage.clientWidth, leastWidth, (node, x, width) => {
            if (tree.depth[node] >= top && tree.depth[node] <= bottom) inSight.push([node, x, width]);
        }, hasTime);
        if (canWait()) return;
        const surface = sizeCanvas(canvas, stage, (tree.expand ? deepest : tree.depth[root] + tree.below[root]) + 1);
        const styles = []; // a frame has many boxes
        shown = { boxes: [], all: tree.total[0] };
        for (let node = tree.parent[root]; node >= 0; node = tree.parent[node]) if (tree.depth[node] >= top) put(node, 0, surface.width);
        for (const [node, x, width] of inSight) put(node, x, width);
        endDrawing(surface);
        function put(node, x, width) {
            const y = tree.depth[node] * rowHeight - surface.top;
            const box = { id: node, frame: tree.frame[node], x, y, width, total: tree.total[node], self: tree.expand ? undefined : tree.self[node] };
            shown.boxes.push(box);
            if (node === 0) drawBox(surface, box, profile.difference ? "all" : scopeNow().title, plain());
            else {
                const looks = profile.difference ? node : box.frame; // of a difference each box has its own colour
                const usual = styles[looks] = styles[looks] || style(box.frame, matched, node);
                drawBox(surface, box, width < leastText ? "" : frameName(profile, box.frame), node === focus ? { ...usual, outline: cache.dark ? "#fff" : "#000" } : usual);
            }
        }
    }

    // Of what is no frame: the root, a thread's line.
    function plain() {
        return { fill: cache.dark ? "#3a3b40" : "#e1ddd4", text: cache.dark ? "#fff" : "#000" };
    }

    function wholeTime(time) {
        return [time.first, Math.max(time.last, time.first + 1)];
    }

    function showTime(time, matched, hasTime) {
        const span = state.span.length === 2 && state.span[1] > state.span[0] ? state.span : wholeTime(time), [from, to] = span;
        const [top, bottom] = rowsInSight(), rows = time.rows.filter((row) => row.top <= bottom && row.top + row.deepest + 2 >= top);
        for (const row of rows)
            for (const part = partOf(row, span); part.steps && hasTime();) takeStep(part);
        if (canWait()) return;
        const surface = sizeCanvas(canvas, stage, time.height);
        const scale = surface.width / (to - from);
        const styles = []; // by frame: a frame has many boxes
        shown = { boxes: [], all: scopeWeight() };
        for (const row of rows) {
            const y = row.top * rowHeight - surface.top;
            const thread = profile.threads;
            drawBox(surface, { x: 0, y, width: surface.width }, profile.strings[thread.name[row.thread]] + " " + thread.pid[row.thread] + "/" + thread.tid[row.thread], plain());
            partOf(row, span).boxes.forEach(putPart);
        }
        endDrawing(surface);
        function putPart(part) {
            const x = (part.from - from) * scale, width = (part.to - part.from) * scale, y = part.depth * rowHeight - surface.top;
            if (x + width < 0 || x > surface.width || part.depth < top || part.depth > bottom) return;
            const box = { id: shown.boxes.length + 1, frame: part.frame, x, y, width, total: part.weight, part, moved: part.before >= 0 };
            shown.boxes.push(box);
            styles[part.frame] = styles[part.frame] || style(part.frame, matched);
            drawBox(surface, box, width < leastText ? "" : frameName(profile, part.frame), styles[part.frame]);
        }
    }

    // ROW's boxes in SPAN as far as they are made, and the steps that make the others. They are kept: keys, a search, scrolling and the
    // way back show the same ones again.
    function partOf(row, [from, to]) {
        const least = leastTime * (to - from) / stage.clientWidth, key = [from, to, least].join();
        if (!row.parts || row.parts.size > 8) row.parts = new Map();
        if (!row.parts.has(key)) {
            const boxes = [];
            row.parts.set(key, { boxes, steps: timeBoxSteps(profile, row, from, to, least, boxes) });
        }
        return row.parts.get(key);
    }

    function takeStep(part) {
        if (part.steps.next().done) part.steps = null;
    }

    function scopeWeight() {
        if (cache.weight === undefined) {
            cache.weight = 0;
            addWeights(profile, scopeNow(), (i, weight) => { cache.weight += weight; });
        }
        return cache.weight;
    }

    // ---- What is said of a box ----

    function textOf(box) {
        if (profile.difference) return textOfDifference(box);
        if (box.frame < 0) return scopeNow().title + "\n" + amount(profile, box.total);
        const lines = [frameName(profile, box.frame), frameKind(profile, box.frame) + "  ·  " + framePlace(profile, box.frame)];
        lines.push("total " + amount(profile, box.total) + " (" + percent(box.total, shown.all) + ")" +
            (box.self === undefined ? "" : "  ·  self " + amount(profile, box.self) + " (" + percent(box.self, shown.all) + ")"));
        if (box.moved) lines.push("moved from " + frameKind(profile, box.part.before) + " to " + frameKind(profile, box.frame));
        const tiers = tiersOf(box.frame);
        if (tiers.length > 1) lines.push("as " + tiers.map(([kind, weight]) => kind + " " + amount(profile, weight)).join("  ·  "));
        if (box.part) lines.push("from " + (box.part.from / 1e6).toFixed(4) + " s to " + (box.part.to / 1e6).toFixed(4) + " s");
        return lines.join("\n");
    }

    // What the frame's function had in each tier, in this scope; most have one.
    function tiersOf(frame) {
        if (framesLike(profile, frame).size < 2) return [];
        return tiersIn(profile, totalsNow(), frame);
    }

    function* totalSteps() {
        const own = cache, tree = treeFor("flame");
        own.totals = own.totals || (yield* frameTotalSteps(profile, tree));
    }

    function totalsNow() {
        finish(totalSteps());
        return cache.totals;
    }

    function textOfDifference(box) {
        const [base, now] = [profile.difference.base[box.id], profile.difference.new[box.id]];
        const lines = box.frame < 0 ? ["all"] : [frameName(profile, box.frame), frameKind(profile, box.frame) + "  ·  " + framePlace(profile, box.frame)];
        const change = (now < base ? "−" : "+") + amount(profile, Math.abs(now - base));
        lines.push(amount(profile, base) + ", then " + amount(profile, now) + " a run: " + change + (base ? " (" + percent(now - base, base) + ")" : ""));
        lines.push(differenceWord(profile.difference, box.id));
        return lines.join("\n");
    }

    function describe(box) {
        if (profile.difference) box = box || { id: 0, frame: -1 };
        details.textContent = box ? textOf(box) : amount(profile, shown.all) + " in " + scopeNow().title;
    }

    function boxAt(event) {
        const area = canvas.getBoundingClientRect();
        const x = event.clientX - area.left, y = event.clientY - area.top;
        for (let i = shown.boxes.length - 1; i >= 0; i--) {
            const box = shown.boxes[i];
            if (x >= box.x && x < box.x + Math.max(box.width, 1) && y >= box.y && y < box.y + rowHeight) return box;
        }
        return null;
    }

    function zoomTo(box) {
        if (!box) return;
        focus = box.id;
        if (state.view === "time") go({ span: [box.part.from, box.part.to] });
        else go({ path: pathTo(treeNow(), box.id) });
    }

    // ---- Events ----

    canvas.addEventListener("mousemove", (event) => {
        const box = boxAt(event);
        tip.hidden = !box;
        if (!box) return;
        tip.textContent = textOf(box);
        tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)) + "px";
        tip.style.top = (event.clientY + 18 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 10 : event.clientY + 18) + "px";
    });
    canvas.addEventListener("mouseleave", () => { tip.hidden = true; });
    canvas.addEventListener("click", (event) => zoomTo(boxAt(event)));
    stage.addEventListener("scroll", () => { tip.hidden = true; requestAnimationFrame(show); });
    addEventListener("resize", () => requestAnimationFrame(show));
    addEventListener("popstate", () => take(readHash()));
    addEventListener("hashchange", () => take(readHash()));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { drawLegend(); show(); });
    byId("view").addEventListener("change", (event) => go({ view: event.target.value, path: [], span: [] }));
    byId("scope").addEventListener("change", (event) => go({ scope: event.target.value, path: [], span: [] }));
    byId("search").addEventListener("input", (event) => go({ search: event.target.value }, true));
    byId("back").addEventListener("click", () => history.back());
    byId("reset").addEventListener("click", reset);
    byId("theme").addEventListener("change", (event) => {
        if (event.target.value) document.documentElement.dataset.theme = event.target.value;
        else delete document.documentElement.dataset.theme;
        drawLegend();
        show();
    });

    function reset() {
        focus = 0;
        byId("search").value = "";
        go({ view: "flame", scope: "all", search: "", path: [], span: [] });
    }

    function outwards() {
        if (state.view === "time") go({ span: [] });
        else go({ path: state.path.slice(0, -1) });
    }

    // From the box in focus to the one that lies that way.
    function move(x, y) {
        const boxes = shown.boxes;
        const now = boxes.find((box) => box.id === focus) || boxes[0];
        if (!now) return;
        let best = null;
        for (const box of boxes) {
            const right = y === 0 ? box.y === now.y && (box.x - now.x) * x > 0 :
                Math.round((box.y - now.y) / rowHeight) === y && box.x < now.x + now.width && box.x + box.width > now.x;
            if (right && (!best || (y === 0 ? Math.abs(box.x - now.x) < Math.abs(best.x - now.x) : box.width > best.width))) best = box;
        }
        if (!best) return;
        focus = best.id;
        if (best.y < 0 || best.y + rowHeight > canvas.clientHeight) stage.scrollTop += best.y - canvas.clientHeight / 2;
        show();
    }

    const keys = {
        ArrowLeft: () => move(-1, 0), ArrowRight: () => move(1, 0), ArrowUp: () => move(0, -1), ArrowDown: () => move(0, 1),
        Enter: () => zoomTo(shown.boxes.find((box) => box.id === focus)), Escape: outwards, "/": () => byId("search").focus(), r: reset,
        i: () => go({ view: state.view === "inverted" ? "flame" : "inverted", path: [], span: [] }),
        t: () => go({ view: state.view === "time" ? "flame" : "time", path: [], span: [] }),
    };
    addEventListener("keydown", (event) => {
        const typing = event.target.matches("input, select");
        if (typing && event.key === "Escape") stage.focus();
        if (typing || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
        if (event.target.matches("button") && event.key === "Enter") return;
        event.preventDefault();
        keys[event.key]();
    });

    function drawLegend() {
        const list = byId("legend");
        list.textContent = "";
        const dark = isDark();
        for (const [title, colour] of profile.difference ? differenceLegend(dark) : legendOf(profile, frameColours(profile, dark))) {
            const item = document.createElement("li"), mark = document.createElement("i");
            mark.style.background = colour;
            item.append(mark, title);
            list.append(item);
        }
        if (!profile.difference && framesOfSeveralTiers(profile).includes(1)) {
            const item = document.createElement("li"), mark = document.createElement("i");
            mark.className = "moved";
            item.append(mark, "moved to another tier (time)");
            list.append(item);
        }
    }

    if (profile.difference) for (const item of [byId("view").parentElement, byId("scope").parentElement, byId("views")]) item.hidden = true;
    for (const scope of scopes) byId("scope").append(new Option(scope.title || scope.id, scope.id));
    drawLegend();
    show();
}

if (typeof document !== "undefined") startPage();
