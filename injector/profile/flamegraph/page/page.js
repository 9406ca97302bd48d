// The page: what is shown, what is clicked and typed, and the link that holds it.
function startPage() {
    const byId = (id) => document.getElementById(id);
    const whole = openProfile(unpackData(byId("data").textContent));
    let profile = whole; // what the filters leave of it
    const scopes = scopesOf(whole), clock = whole.sides ? sidesAsThreads(whole) : whole; // what the strip shows
    const [stage, canvas, tip, details, strip] = ["stage", "canvas", "tip", "details", "strip"].map(byId);
    const filtered = new Map(); // a profile for each choice of filters
    const ofCallers = ["inverted", "waiting"]; // the views of one function's callers
    let state = readHash();
    let shown = null; // {boxes drawn, what all of them have; of the time view: span}
    let focus = 0;
    let lastTree = {}; // what the focus is a node of: {looks, tree}
    let focusPart = null; // what is in focus of the time view, whose boxes have other numbers whenever they are drawn
    let cache = {}; // what is made of one scope, range and filters: trees by view, and what is known of them
    let making = null; // the tree that is not there yet: {key, steps}
    let lanes = null; // the strip's picture
    let colours = null, isDarkNow = false; // of all frames
    const moments = hasTimes(whole) ? momentsOf(whole) : [];
    let matches = {}; // which frames the text that is searched for matches
    let drag = null; // what the mouse is drawn across: {canvas, from, to} in us
    let isPrinted = false, themeOfScreen;
    let isToBeShown = false; // what the last frame had no time for
    let drawnAt = -Infinity;
    const frameMs = 8, drawMs = 100, mostFound = 40, leastLook = 40, mostSteps = 2000;

    // ---- The address ----

    function readHash() {
        const words = new URLSearchParams(location.hash.slice(1)), list = (name, known) => (words.get(name) || "").split(".").filter((word) => known.includes(word));
        const views = whole.difference ? [] : ["inverted", "time", ...(whole.waiting ? ["waiting"] : [])], view = views.includes(words.get("view")) ? words.get("view") : "flame";
        const callers = words.get("callers"), hasCallers = ofCallers.includes(view) && /^\d+$/.test(callers) && callers < whole.frames.name.length;
        return { callers: hasCallers ? Number(callers) : -1, view, scope: words.get("of") || "all",
            search: words.get("search") || "", path: (words.get("zoom") || "").split(".").filter(Boolean).map(Number),
            span: readRange(words.get("span"), whole) || [], range: readRange(words.get("range"), whole),
            ...Object.fromEntries(sideNames.map((name) => [name, whole.sides ? readRange(words.get(name), clock) : null])),
            hide: list("hide", hideable), fold: list("fold", foldable) };
    }

    function wordsOf(next) {
        const words = new URLSearchParams();
        if (next.view !== "flame") words.set("view", next.view);
        if (next.callers >= 0) words.set("callers", next.callers);
        if (next.scope !== "all") words.set("of", next.scope);
        if (next.range) words.set("range", rangeText(next.range));
        for (const name of sideNames) if (next[name]) words.set(name, rangeText(next[name]));
        if (next.hide.length) words.set("hide", next.hide.join("."));
        if (next.fold.length) words.set("fold", next.fold.join("."));
        if (next.search) words.set("search", next.search);
        if (next.path.length) words.set("zoom", next.path.join("."));
        if (next.span.length === 2) words.set("span", rangeText(next.span));
        return words;
    }

    function go(change, replaces) {
        const next = { ...state, ...change };
        if (whole.difference) [next.view, next.range] = ["flame", null]; // the others have no two sides
        if (!ofCallers.includes(next.view)) next.callers = -1;
        const hash = "#" + wordsOf(next), isNew = hash !== (location.hash || "#");
        history[replaces || !isNew ? "replaceState" : "pushState"](null, "", hash); // Back leads to what was another view
        take(next);
    }

    // The same many times a second, as a wheel does it: a browser takes so many addresses for an attack.
    let addressTimer = 0;
    function goOften(change) {
        clearTimeout(addressTimer);
        addressTimer = setTimeout(() => history.replaceState(null, "", "#" + wordsOf(state)), 300);
        take({ ...state, ...change });
    }

    function take(next) {
        const isElsewhere = next.path.join() !== state.path.join() || next.view !== state.view, ranges = sideRanges();
        state = next;
        if (!ranges !== !sideRanges()) drawLegend();
        drawnAt = -Infinity;
        tip.hidden = true; // what it stood beside is elsewhere now
        if (isElsewhere) stage.scrollTop = 0;
        show();
    }

    // ---- What is shown ----

    function scopeNow() {
        const scope = scopes.find((scope) => scope.id === state.scope) || scopes[0];
        return { ...scope, range: state.range, callers: state.callers };
    }

    // Which ranges of a difference's sides are selected; "": none is.
    function sideRanges() {
        return sideNames.some((name) => state[name]) ? sideNames.map((name) => state[name] ? rangeText(state[name]) : "").join(" ") : "";
    }

    // The profile, or the difference in the ranges that are selected.
    let ranged = null;
    function sidesNow() {
        const key = sideRanges();
        if (!key) return whole;
        if (!ranged || ranged.key !== key) ranged = { key, profile: differenceWithin(whole, sideNames.map((name) => state[name])) };
        return ranged.profile;
    }

    const treeMakers = { flame: flameTreeSteps, inverted: invertedTreeSteps, time: timeRowSteps };

    function treeView() {
        return state.view !== "waiting" ? state.view : state.callers < 0 ? "flame" : "inverted"; // of another profile
    }

    // What the address says is made in steps, and until all of it is there the last picture stays. It is kept as long as it is shown: to
    // make the trees takes longer than to draw them. Returns whether it is there.
    function takeTree(hasTime) {
        const key = [state.view === "waiting", state.hide.join("."), state.fold.join("."), state.scope, state.range || "", state.callers, sideRanges()].join("|"), view = treeView();
        if (cache.key === key && cache.trees[view]) return true;
        if (!making || making.key !== key + view) making = { key: key + view, steps: treeSteps(key, view) };
        do {
            if (!making.steps.next().done) continue;
            making = null;
            return true;
        } while (hasTime());
        return false;
    }

    function* treeSteps(key, view) {
        const source = state.view === "waiting" ? whole.waiting : sidesNow(), { hide, fold } = state, scope = scopeNow(), filters = [source !== whole.waiting, sideRanges(), hide.join("."), fold.join(".")].join("|");
        const own = cache.key === key ? profile : filtered.get(filters) || (yield* filterSteps(source, hide, fold));
        const tree = yield* treeMakers[view](own, scope);
        if (filtered.size > 6) filtered.clear();
        filtered.set(filters, own);
        profile = own;
        if (cache.key !== key) {
            cache = { key, scope, trees: {} };
            makeAhead(cache);
        }
        cache.trees[view] = tree;
        drawnAt = performance.now(); // it is drawn when all in sight is there, or what there is after a while
    }

    function treeNow() {
        takeTree(() => true);
        const tree = cache.trees[treeView()];
        if (lastTree.tree !== tree) {
            const looks = [state.view, state.hide, state.fold].join("|"); // another range, or other threads, have the same frames
            if (lastTree.looks !== looks || state.view === "time") focusOn(null);
            else focus = follow(tree, pathTo(lastTree.tree, focus), true);
            lastTree = { looks, tree };
        }
        return tree;
    }

    // The time view shows all time, and the range in it.
    function treeFor(view) {
        return cache.trees[view] = cache.trees[view] || finish(treeMakers[view](profile, cache.scope));
    }

    // The other views and what a tooltip needs, in pieces, while nobody waits for anything.
    function makeAhead(own) {
        if (whole.difference || state.view === "waiting" || !globalThis.requestIdleCallback) return;
        later(otherViews(), () => {}, () => cache === own);
    }

    // Take STEPS while nobody waits for anything, and then END with what they return.
    function later(steps, end, isWanted = () => true) {
        const wait = globalThis.requestIdleCallback || ((go) => setTimeout(go, 20, { timeRemaining: () => 3 }));
        const go = (idle) => {
            for (let isFirst = true; isWanted() && !making && (isFirst || idle.timeRemaining() > 2); isFirst = false) {
                const step = steps.next();
                if (step.done) return end(step.value);
            }
            if (isWanted()) wait(go);
        };
        wait(go);
    }

    function* ahead(view) {
        const tree = cache.trees[view] || (yield* treeMakers[view](profile, cache.scope));
        return cache.trees[view] = cache.trees[view] || tree;
    }

    function* otherViews() {
        yield* nodesInSight(yield* ahead("inverted"), 0, stage.clientWidth, leastWidth);
        yield* ahead("flame");
        while (!takeTotalStep()) yield;
        const time = yield* ahead("time");
        for (const row of time.rows)
            for (const part = partOf(row, wholeTime(time)); part.steps; takeStep(part)) yield;
    }

    // The node that the frames of the link's path lead to, as far as they are in this range and these threads.
    function zoomed(tree) {
        return follow(tree, state.path);
    }

    // The node that the frames of PATH lead to; if one is not there, the last that is, or the root if all ARE_NEEDED.
    function follow(tree, path, areNeeded = false) {
        let node = 0;
        for (const frame of path) {
            tree.expand(node);
            const next = childrenOf(tree, node).find((child) => tree.frame[child] === frame);
            if (!next) return areNeeded ? 0 : node;
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
        if (colours && isDarkNow === dark) return;
        colours = frameColours(whole, dark);
        isDarkNow = dark;
    }

    function style(frame, matched, node) {
        const dark = isDarkNow;
        const dim = matched && !matched[frame];
        const own = profile.difference ? differenceColour(profile.difference, node, dark) : colours[frame];
        return { fill: dim ? (dark ? "#33343a" : "#e9e6df") : own, text: dark ? "#f2efe9" : "#1a1917",
            inlined: profile.frames.inlined[frame], mark: dim ? null : dark ? "#fff" : "#000", hatch: dark ? "rgba(255,255,255,.55)" : "rgba(0,0,0,.45)",
            outline: matched && matched[frame] ? (dark ? "#d9a5ff" : "#8a2be2") : profile.difference ? differenceOutline(profile.difference, node, dark) : null };
    }

    function show() {
        byId("view").value = state.view;
        byId("scope").value = scopeNow().id;
        if (document.activeElement !== byId("search")) byId("search").value = state.search;
        if (document.activeElement !== byId("range")) byId("range").value = state.range ? rangeText(state.range) : "";
        for (const name of sideNames) if (document.activeElement !== byId(name)) byId(name).value = state[name] ? rangeText(state[name]) : "";
        byId("alltime").hidden = !state.range && !sideRanges();
        showPressed();
        const hasTime = makeBudget();
        if (!takeTree(hasTime)) return;
        const tree = treeNow(), matched = matchedNow();
        takeColours();
        if (state.view === "time") showTime(tree, matched, hasTime);
        else showTree(tree, matched, hasTime);
        showFound(matched, hasTime);
        showHidden();
        showStrip();
        showSpans();
        describe(shown.boxes.find((box) => box.id === focus) || null);
    }

    // What a frame has no time for comes with the next ones.
    function makeBudget() {
        const end = performance.now() + (isPrinted ? Infinity : frameMs);
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
        if (isPrinted) return [-1, mostPrinted];
        return [stage.scrollTop / rowHeight - 1, (stage.scrollTop + Math.max(stage.clientHeight, 60)) / rowHeight];
    }

    function showTree(tree, matched, hasTime) {
        const root = zoomed(tree), above = tree.depth[root], inSight = [], [top, bottom] = rowsInSight();
        const deepest = visitTree(tree, root, stage.clientWidth, leastWidth, (node, x, width) => {
            const row = tree.depth[node] - above;
            if (row >= top && row <= bottom) inSight.push([node, x, width]);
        }, hasTime);
        showCrumbs(tree, root);
        if (canWait()) return;
        const surface = sizeCanvas(canvas, stage, (tree.isInverted ? deepest - above : tree.below[root]) + 1, isPrinted);
        const styles = []; // a frame has many boxes
        shown = { of: cache, view: state.view, boxes: [], all: tree.total[0] };
        for (const [node, x, width] of inSight) put(node, x, width);
        endDrawing(surface);
        function put(node, x, width) {
            const y = (tree.depth[node] - above) * rowHeight - surface.top;
            const box = { id: node, frame: tree.frame[node], x, y, width, total: tree.total[node], self: tree.isInverted ? undefined : tree.self[node] };
            shown.boxes.push(box);
            if (node === 0) drawBox(surface, box, profile.difference ? sidesTitle() : titleNow(), plain());
            else {
                const looks = profile.difference ? node : box.frame; // of a difference each box has its own colour
                const usual = styles[looks] = styles[looks] || style(box.frame, matched, node);
                const isWide = width >= leastText;
                drawBox(surface, box, isWide ? frameName(profile, box.frame) : "", node === focus ? { ...usual, outline: isDarkNow ? "#fff" : "#000" } : usual,
                    isWide ? shortPlace(profile, box.frame) : "");
            }
        }
    }

    // The callers of ROOT in one row: all, and the last of them, as many as there is room for.
    function showCrumbs(tree, root) {
        const callers = [];
        for (let node = tree.parent[root]; node > 0; node = tree.parent[node]) callers.unshift(node);
        const list = root ? [0, ...callers.slice(-6)] : [], key = list.join() + cache.key + state.view;
        if (cache.crumbs === key) return;
        cache.crumbs = key;
        byId("crumbs").textContent = "";
        for (const node of list) {
            const button = document.createElement("button");
            const left = node === list[1] ? callers.length - 6 : 0;
            button.type = "button";
            button.textContent = (left > 0 ? "… " + left + " … " : "") + (node ? shortName(frameName(profile, tree.frame[node]), 34) : scopeNow().title);
            button.title = node ? frameName(profile, tree.frame[node]) + "\n" + framePlace(profile, tree.frame[node]) : "";
            button.addEventListener("click", () => {
                focusOn({ id: node });
                stage.focus({ preventScroll: true }); // this button is gone then
                go({ path: pathTo(tree, node) });
            });
            byId("crumbs").append(button);
        }
    }

    // Of what is no frame: the root, a thread's line.
    function plain() {
        return { fill: isDarkNow ? "#3a3b40" : "#e1ddd4", text: isDarkNow ? "#fff" : "#000" };
    }

    function wholeTime(time) {
        return [time.first, Math.max(time.last, time.first + 1)];
    }

    function spanNow(time) {
        return state.span.length === 2 ? state.span : wholeTime(time);
    }

    // Row 0 is the axis, which stays when the others are scrolled.
    function showTime(time, matched, hasTime) {
        const span = spanNow(time), [from, to] = span;
        const [top, bottom] = rowsInSight(), rows = time.rows.filter((row) => row.top + 1 <= bottom && row.top + row.deepest + 3 >= top);
        for (const row of rows)
            for (const part = partOf(row, span); part.steps && hasTime();) takeStep(part);
        showCrumbs({ parent: [-1] }, 0);
        if (canWait()) return;
        const surface = sizeCanvas(canvas, stage, time.height + 1, isPrinted);
        const scale = surface.width / (to - from);
        const styles = []; // by frame: a frame has many boxes
        shown = { of: cache, view: state.view, boxes: [], all: scopeWeight(), span, titles: [] };
        for (const row of rows) {
            const y = (row.top + 1) * rowHeight - surface.top;
            drawBox(surface, { x: 0, y, width: surface.width }, "", plain());
            shown.titles.push({ y, thread: row.thread });
            partOf(row, span).boxes.forEach(putPart);
        }
        endDrawing(surface);
        const inFocus = boxOfFocus();
        focus = inFocus ? inFocus.id : 0;
        if (inFocus) drawFocus(surface, inFocus, isDarkNow);
        for (const { y, thread } of shown.titles) {
            drawMoments(surface.context, moments.filter((moment) => moment.thread === thread), { from, to, top: y + 3, height: momentsHeight, width: surface.width, dark: isDarkNow });
            drawWide(surface.context, { x: 0, y, width: surface.context.measureText(threadTitle(thread)).width + 12, style: plain() }, threadTitle(thread), "");
        }
        drawAxis(surface.context, whole, { from, to, y: 0, width: surface.width, dark: isDarkNow });
        drawMoments(surface.context, moments.filter(({ thread }) => thread < 0), { from, to, top: 0, height: axisHeight, width: surface.width, dark: isDarkNow });
        shown.titles.unshift({ y: 0, thread: -1 }); // it is above the others
        drawRange(surface.context, drag && drag.canvas === canvas ? [drag.from, drag.to] : state.range, span, surface.width, axisHeight, surface.height);
        function putPart(part) {
            const x = (part.from - from) * scale, width = (part.to - part.from) * scale, y = (part.depth + 1) * rowHeight - surface.top;
            if (x + width < 0 || x > surface.width || part.depth + 1 < top || part.depth + 1 > bottom) return;
            const box = { id: shown.boxes.length + 1, frame: part.frame, x, y, width, total: part.weight, part, moved: part.before >= 0 };
            shown.boxes.push(box);
            styles[part.frame] = styles[part.frame] || style(part.frame, matched);
            drawBox(surface, box, width < leastText ? "" : frameName(profile, part.frame), styles[part.frame], width < leastText ? "" : shortPlace(profile, part.frame));
        }
    }

    // The box that has most of what is in focus: of another part of time, or of more time, there are other ones.
    function boxOfFocus() {
        const common = ({ part }) => part.frame === focusPart.frame && part.depth === focusPart.depth ? Math.min(part.to, focusPart.to) - Math.max(part.from, focusPart.from) : 0;
        return focusPart && shown.boxes.filter((box) => common(box) > 0).sort((a, b) => common(b) - common(a))[0];
    }

    function focusOn(box) {
        [focus, focusPart] = box ? [box.id, box.part || null] : [0, null];
    }

    function threadTitle(thread) {
        return whole.strings[whole.threads.name[thread]] + " " + whole.threads.pid[thread] + "/" + whole.threads.tid[thread];
    }

    // What is not in RANGE is dimmed.
    function drawRange(context, range, [from, to], width, top, bottom, lineTop = 0) {
        if (!range) return;
        const at = (us) => Math.max(0, Math.min(width, (us - from) / (to - from) * width)), [left, right] = range.map(at);
        context.fillStyle = isDarkNow ? "rgba(0,0,0,.55)" : "rgba(255,255,255,.65)";
        context.fillRect(0, top, left, bottom - top);
        context.fillRect(right, top, width - right, bottom - top);
        context.fillStyle = isDarkNow ? "#d9a5ff" : "#8a2be2";
        context.fillRect(left - 1, lineTop, 2, bottom - lineTop);
        context.fillRect(right - 1, lineTop, 2, bottom - lineTop);
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
        if (part.steps && part.steps.next().done) part.steps = null;
    }

    function scopeWeight() {
        if (cache.weight === undefined) {
            cache.weight = 0;
            addWeights(profile, cache.scope, (i, weight) => { cache.weight += weight; });
        }
        return cache.weight;
    }

    // ---- The strip ----

    function showStrip() {
        strip.hidden = !hasTimes(clock) || (!!whole.difference && !whole.sides);
        if (strip.hidden) return;
        const width = Math.max(Math.round(stage.clientWidth), 100), scale = scaleOf(isPrinted, 0), key = [width, scale, isDarkNow, moments.length].join();
        if (!lanes || lanes.key !== key) lanes = { key, picture: drawLanes(clock, moments, width, isDarkNow, scale), looks: "" };
        const dragged = drag && drag.canvas === strip ? [drag.from, drag.to] : null, range = dragged || state.range;
        const ranges = sideNames.map((name, side) => dragged && drag.side === side ? dragged : state[name]);
        const span = state.view === "time" && state.span.length === 2 ? state.span : null, looks = [range || "", span || "", ...ranges].join("|");
        if (lanes.looks === looks) return;
        lanes.looks = looks;
        strip.style.height = lanes.picture.height / scale + "px";
        [strip.width, strip.height] = [lanes.picture.width, lanes.picture.height];
        const context = strip.getContext("2d"), all = [clock.first, clock.last];
        context.drawImage(lanes.picture, 0, 0);
        context.setTransform(scale, 0, 0, scale, 0, 0);
        if (whole.sides) ranges.forEach((own, side) => drawSide(context, side, own, all, width));
        else drawRange(context, range, all, width, 0, lanes.picture.height / scale);
        if (!span) return;
        const [left, right] = span.map((us) => (us - all[0]) / (all[1] - all[0]) * width);
        context.strokeStyle = isDarkNow ? "#fff" : "#000";
        context.strokeRect(left + 0.5, 0.5, Math.max(right - left - 1, 2), lanes.picture.height / scale - 1);
    }

    // A side's lane, by name, and the range in it.
    function drawSide(context, side, range, all, width) {
        const { height } = laneSizes(2), top = axisHeight + side * height;
        drawRange(context, range, all, width, top, top + height, top);
        context.font = "10px system-ui, sans-serif";
        context.textBaseline = "middle";
        context.fillStyle = isDarkNow ? "#1a1b1e" : "#fcfbf9";
        context.fillRect(0, top, context.measureText(sideNames[side]).width + 6, height - 1);
        context.fillStyle = isDarkNow ? "#d6d2ca" : "#3d3a36";
        context.fillText(sideNames[side], 3, top + height / 2);
    }

    function showSpans() {
        const lane = byId("spans");
        lane.hidden = strip.hidden || !whole.spans;
        if (lane.hidden) return;
        const width = Math.max(Math.round(stage.clientWidth), 100), scale = scaleOf(isPrinted, 0), key = [width, scale, isDarkNow].join();
        if (lane.key !== key) drawSpans(lane, whole, width, isDarkNow, scale);
        lane.key = key;
    }

    function spanUnder(event) {
        const area = byId("spans"), box = area.getBoundingClientRect();
        return spanAt(whole, event.clientX - box.left, event.clientY - box.top, area.clientWidth || box.width);
    }

    function timeAt(event, area, [from, to]) {
        const box = area.getBoundingClientRect();
        return Math.max(from, Math.min(to, from + (event.clientX - box.left) / (area.clientWidth || box.width) * (to - from)));
    }

    function spanOf(area) {
        return area === strip ? [clock.first, clock.last] : shown.span;
    }

    function beginDrag(event, area) {
        if (event.button !== 0 || (area === canvas && (state.view !== "time" || !isCurrent()))) return;
        drag = { canvas: area, x: event.clientX, span: spanOf(area), isOne: false, side: sideAt(event) };
        drag.from = drag.to = drag.begin = timeAt(event, area, drag.span);
    }

    // Which side's lane of the strip the mouse is at: above both it is the first.
    function sideAt(event) {
        return Math.min(Math.max(Math.floor((event.clientY - strip.getBoundingClientRect().top - axisHeight) / laneSizes(2).height), 0), 1);
    }

    function moveDrag(event) {
        if (!drag) return;
        const at = timeAt(event, drag.canvas, drag.span);
        drag.isOne = drag.isOne || Math.abs(event.clientX - drag.x) > 4;
        [drag.from, drag.to] = [Math.min(at, drag.begin), Math.max(at, drag.begin)];
        if (!drag.isOne) return;
        drawnAt = -Infinity;
        tip.hidden = true;
        show();
    }

    // A click that ends a drag is none.
    let draggedAt = -Infinity;
    function endDrag(event) {
        const ended = drag;
        drag = null;
        if (!ended) return;
        if (ended.isOne && ended.to > ended.from) {
            draggedAt = performance.now();
            const range = [Math.round(ended.from), Math.max(Math.round(ended.to), Math.round(ended.from) + 1)];
            if (whole.sides) selectSide(ended.side, range);
            else select(range);
        } else if (whole.sides) {
            if (state[sideNames[ended.side]]) selectSide(ended.side, null);
        } else if (ended.canvas === strip) {
            const [moment] = isAboveLanes(event) ? momentsAt(event, strip) : [];
            if (moment) selectFrom(moment);
            else if (state.range) select(null);
        }
    }

    function selectSide(side, range) {
        go({ [sideNames[side]]: range });
    }

    function select(range) {
        go(whole.sides ? { base: null, new: null } : { range });
    }

    // The moments that the mouse is at: of one thread, or of all.
    function momentsAt(event, area, thread) {
        const span = spanOf(area), near = 4 * (span[1] - span[0]) / (area.clientWidth || 1), at = timeAt(event, area, span);
        return momentsWithin(moments, at - near, at + near).filter((moment) => thread === undefined || moment.thread === thread)
            .sort((a, b) => Math.abs(a.at - at) - Math.abs(b.at - at));
    }

    function momentsTip(found) {
        const most = 8, lines = found.slice(0, most).map((moment) => momentText(whole, moment));
        if (found.length > most) lines.push("and " + (found.length - most) + " more");
        return lines.join("\n");
    }

    // What ran from MOMENT on.
    function selectFrom(moment) {
        select([Math.round(moment.at), Math.round(whole.last)]);
    }

    // Of one's own code alone a collection is none.
    function isHidden(moment) {
        const frame = momentFrame(moment);
        return state.hide.length && (frame < 0 || profile.hidden[frame]);
    }

    // To the next moment of what is shown, and of the functions that match if something is searched for.
    function stepMoment(by) {
        if (whole.difference) return;
        const matched = matchedNow(), at = state.range ? state.range[0] : by > 0 ? -Infinity : Infinity;
        const list = moments.filter((moment) => (momentFrame(moment) >= 0 ? !matched || matched[momentFrame(moment)] : !matched) && !isHidden(moment) && (moment.at - at) * by >= 1);
        if (list.length) selectFrom(by > 0 ? list[0] : list[list.length - 1]);
        else details.textContent = "no tier-up, deopt or collection " + (by > 0 ? "after" : "before") + " this" + (matched ? " of what is searched for" : "");
    }

    function selectSpan(span) {
        selectedSpan = span;
        select(spanRange(whole, span));
    }

    // To the next span, of those whose name matches if something is searched for.  Two may begin in the same microsecond.
    function stepSpan(by) {
        if (byId("spans").hidden) return;
        const matches = matcher(state.search), here = spanOfRange(), at = state.range ? state.range[0] : by > 0 ? -Infinity : Infinity;
        const isBeyond = (span) => here < 0 ? (whole.spans.from[span] - at) * by >= 1 : (span - here) * by > 0;
        const list = [...whole.spans.from.keys()].filter((span) => isBeyond(span) && (!matches || matches(spanName(whole, span))));
        if (list.length) selectSpan(by > 0 ? list[0] : list[list.length - 1]);
        else details.textContent = "no span " + (by > 0 ? "after" : "before") + " this" + (matches ? " of what is searched for" : "");
    }

    // What is before the range, or behind it.
    function otherSide() {
        if (!state.range) return;
        const [from, to] = state.range, first = Math.round(whole.first), last = Math.round(whole.last);
        if (from > first) select([first, from]);
        else if (to < last) select([to, last]);
    }

    function isAboveLanes(event) {
        return event.clientY - strip.getBoundingClientRect().top < aboveLanes(moments);
    }

    function laneTip(event) {
        if (whole.sides) return secondsText(timeAt(event, strip, spanOf(strip)), (clock.last - clock.first) / 1000) + "\n" + sideNames[sideAt(event)];
        if (isAboveLanes(event)) {
            const found = momentsAt(event, strip);
            if (found.length) return momentsTip(found);
        }
        const box = strip.getBoundingClientRect(), all = lanesWithWaits(whole), { height, count } = laneSizes(all.length);
        const above = aboveLanes(moments), lane = all[Math.floor((event.clientY - box.top - above) / height)], at = timeAt(event, strip, spanOf(strip));
        const lines = [secondsText(at, (whole.last - whole.first) / 1000)];
        if (whole.start !== undefined) lines[0] += "  " + clockText(whole.start, at, 1000);
        if (lane && event.clientY - box.top >= above) {
            const n = sampleFrom(whole, lane, at + 1) - 1, sample = lane.samples[Math.max(n, 0)];
            const runs = n >= 0 && at - whole.times[sample] <= 4 * lane.usual;
            lines.push(threadTitle(lane.thread) + ": " + (waitText(whole, lane, at) || (runs ? activities[activityOf(whole, sample)] : "does not run")));
        }
        if (count < all.length) lines.push(all.length - count + " threads have no room here");
        return lines.join("\n");
    }

    // ---- Zoom in the time view ----

    function zoomTime(factor, at) {
        const [from, to] = spanNow(treeNow()), [first, last] = wholeTime(treeNow());
        const length = Math.min(Math.max((to - from) * factor, 20), last - first), share = (at - from) / (to - from);
        moveSpan(Math.round(at - share * length), Math.round(length), first, last);
    }

    function moveSpan(from, length, first, last) {
        const begin = Math.max(first, Math.min(from, last - length));
        goOften({ span: length >= last - first ? [] : [begin, begin + length] });
    }

    function panTime(share) {
        const [from, to] = spanNow(treeNow()), [first, last] = wholeTime(treeNow());
        moveSpan(Math.round(from + share * (to - from)), to - from, first, last);
    }

    function middle() {
        const [from, to] = spanNow(treeNow()), box = shown.boxes.find((box) => box.id === focus);
        return box && box.part ? (Math.max(box.part.from, from) + Math.min(box.part.to, to)) / 2 : (from + to) / 2;
    }

    // ---- Find ----

    function matchedNow() {
        if (matches.text !== state.search) matches = { text: state.search, frames: matchFrames(whole, state.search) };
        if (!cache.found || cache.found.text !== state.search) cache.found = { ...matches, at: -1 };
        return cache.found.frames;
    }

    // Of the whole view, whatever is zoomed in to.
    function matchedShare() {
        if (!cache.found.share) {
            const tree = treeFor("flame");
            cache.found.share = percent(matchedWeight(tree, cache.found.frames), tree.total[0]) + " matched";
        }
        return cache.found.share;
    }

    // What is listed: the functions that match, or one's own, or the threads that waited.
    function listWanted(matched) {
        if (matched) return cache.found;
        if (whole.difference) return null;
        return state.hide.includes("others") ? "own" : state.view === "waiting" ? "threads" : null;
    }

    // The list comes when it is known what each has.
    function showFound(matched, hasTime) {
        const { found } = cache, place = found.at >= 0 ? found.at + 1 + " of " + found.nodes.length + ", " : "";
        const isWrong = isExpression(state.search) && !readExpression(state.search);
        byId("search").setAttribute("aria-invalid", String(isWrong));
        byId("matched").textContent = isWrong ? "no expression" : matched ? place + matchedShare() : "";
        byId("previous").hidden = byId("next").hidden = !matched;
        const list = byId("found"), wanted = listWanted(matched);
        if (!wanted) list.hidden = true;
        if (!wanted || (cache.listed === wanted && !list.hidden)) return;
        while (matched && !cache.totals && hasTime()) takeTotalStep();
        if (matched && !cache.totals) return;
        cache.listed = wanted;
        const ofThreads = wanted === "threads", rows = ofThreads ? waitingThreads(profile, cache.scope) : matchedFunctions(profile, matched ? cache.totals : frameSelfs(profile, treeFor("flame")), matched);
        list.textContent = "";
        list.hidden = !rows.length;
        list.setAttribute("aria-label", matched ? "Functions found, by share" : ofThreads ? "Threads, by how long they waited" : "My functions, by their own share and that of hidden functions that they call");
        for (const row of rows.slice(0, mostFound)) addListed(row.total, ofThreads ? threadListed(row) : functionListed(row));
        if (rows.length > mostFound) {
            const item = document.createElement("li");
            item.append("and " + (rows.length - mostFound) + " more");
            list.append(item);
        }
    }

    function addListed(total, { name, place, title, act }) {
        const item = document.createElement("li"), button = document.createElement("button"), share = document.createElement("b"), after = document.createElement("span");
        Object.assign(button, { type: "button", title });
        share.textContent = percent(total, treeFor("flame").total[0]);
        after.textContent = place;
        button.append(share, name + "  ", after);
        button.addEventListener("click", act);
        item.append(button);
        byId("found").append(item);
    }

    function functionListed({ frame }) {
        const name = frameName(profile, frame), place = framePlace(profile, frame);
        return { name: shortName(name, 48), place, title: name + "\n" + place, act: () => lookAtFunction(frame) };
    }

    function threadListed({ id, thread, total, most }) {
        const name = most.frame < 0 ? "" : frameName(profile, most.frame), place = (text) => amount(profile, total) + (text ? ", most in " + text : ""), title = threadTitle(thread);
        const act = () => {
            stage.focus({ preventScroll: true }); // the list is another one then
            go({ scope: "t" + id, path: [], span: [] });
        };
        return { name: title, place: place(shortName(name, 40)), title: title + "\n" + place(name), act };
    }

    // To the next of the places that match, the heaviest first.
    function step(by) {
        const matched = matchedNow(), { found } = cache;
        if (!matched) return;
        const of = state.view + (state.view === "time" ? spanNow(treeNow()) : "");
        if (found.of !== of) Object.assign(found, { of, at: -1, nodes: null, steps: state.view === "time" ? partsFound(treeNow(), matched) : nodesFound(treeNow(), matched) });
        for (const end = performance.now() + frameMs; !found.nodes;) {
            const next = found.steps.next();
            if (next.done) found.nodes = next.value;
            else if (performance.now() > end) return requestAnimationFrame(() => { if (cache.found === found && found.of === of) step(by); });
        }
        if (!found.nodes.length) return;
        found.at = (Math.max(found.at, by > 0 ? -1 : 0) + by + found.nodes.length) % found.nodes.length;
        if (state.view === "time") lookAtPart(found.nodes[found.at]);
        else lookAt(found.nodes[found.at]);
    }

    function* nodesFound(tree, matched) {
        return matchedNodes(tree, matched, mostSteps);
    }

    // What matches in the part of TIME that is shown, of all threads, the longest first: of the busiest threads, if there is a lot.
    function* partsFound(time, matched) {
        const span = spanNow(time), hasMatch = nodesWithin(profile, matched), parts = [];
        for (const row of time.rows) {
            yield;
            if (parts.length >= mostSteps) break;
            if (!rowHasNode(profile, row, span, hasMatch)) continue;
            const part = partOf(row, span);
            for (; part.steps; takeStep(part)) yield;
            parts.push(...outermostBoxes(part.boxes, matched));
        }
        return parts.sort((a, b) => b.weight - a.weight || a.from - b.from).slice(0, mostSteps);
    }

    function lookAtPart(part) {
        focusPart = part;
        drawnAt = -Infinity;
        bringIntoSight((part.depth + 1) * rowHeight);
        show();
    }

    // Scroll to NODE, and zoom so that it is wide enough to be read.
    function lookAt(node) {
        const tree = treeNow(), isWide = (root) => tree.total[node] / (tree.total[root] || 1) * stage.clientWidth >= leastLook;
        let root = zoomed(tree), inner = node;
        while (inner > 0 && inner !== root) inner = tree.parent[inner];
        if (inner !== root || !isWide(root)) {
            for (root = node; root > 0 && isWide(tree.parent[root]);) root = tree.parent[root];
            go({ path: pathTo(tree, root) });
        }
        focusOn({ id: node });
        drawnAt = -Infinity;
        bringIntoSight((tree.depth[node] - tree.depth[root]) * rowHeight);
        show();
    }

    // Returns whether there were rows to scroll to, which are drawn then.
    function scrollRows(rows) {
        const before = stage.scrollTop;
        stage.scrollTop += rows * rowHeight;
        drawnAt = -Infinity;
        show();
        return stage.scrollTop !== before;
    }

    // The row at Y of the picture, in the stage, and with it in the window above the foot.
    function bringIntoSight(y) {
        const head = state.view === "time" ? axisHeight : 0; // which lies upon the first row that is seen
        if (y < stage.scrollTop + head || y + rowHeight > stage.scrollTop + stage.clientHeight) stage.scrollTop = Math.max(0, y - stage.clientHeight / 3);
        const top = stage.getBoundingClientRect().top + y - stage.scrollTop, under = top + rowHeight - byId("foot").getBoundingClientRect().top;
        if (top < 0 || under > 0) scrollBy(0, top < 0 ? top : under);
    }

    function lookAtFunction(frame) {
        if (treeView() !== "flame") go({ view: viewOfAll(), callers: -1, path: [], span: [] });
        const tree = treeNow(), functions = functionsOf(profile);
        let best = 0;
        for (let i = 1; i < tree.count; i++) if (functions[tree.frame[i]] === functions[frame] && (!best || tree.total[i] > tree.total[best])) best = i;
        lookAt(best);
    }

    // ---- Filters ----

    function showPressed() {
        for (const button of filterButtons) button.setAttribute("aria-pressed", String(state[button.kind].includes(button.word)));
    }

    function showHidden() {
        if (cache.hidden === undefined) cache.hidden = hiddenText();
        byId("hidden").textContent = cache.hidden;
        byId("hidden").hidden = !cache.hidden;
    }

    function hiddenText() {
        if (!state.hide.length) return "";
        if (whole.difference) {
            const [base, now] = sideNames.map((name) => percent(...hiddenValue(profile, name)));
            return base + " of the base's time and " + now + " of the new one's is that of hidden functions, and stands with their callers.";
        }
        const { of, all } = hiddenWeight(profile, cache.scope), total = scopeWeight();
        const parts = hideable.map((word, i) => [word === "others" ? "others' code" : word, of[i]]).filter(([, weight]) => weight);
        return percent(all, total) + " of the time is that of hidden functions, and stands with their callers" +
            (parts.length ? ": " + parts.map(([word, weight]) => word + " " + percent(weight, total)).join(", ") : "") + ".";
    }

    const filterButtons = [];
    function addFilters(kind, list) {
        for (const word of list) {
            const button = document.createElement("button");
            Object.assign(button, { type: "button", textContent: titles[word], title: explanations[word], kind, word });
            button.addEventListener("click", () => toggle(kind, word));
            byId(kind).append(" ", button);
            filterButtons.push(button);
        }
    }

    function toggle(kind, word) {
        focusOn(null);
        go({ [kind]: state[kind].includes(word) ? state[kind].filter((other) => other !== word) : [...state[kind], word], path: [] });
    }

    // ---- What is said of a box ----

    function textOf(box) {
        if (profile.difference) return textOfDifference(box);
        if (box.frame < 0) return titleNow() + "\n" + amount(profile, box.total) + (box.self ? "  ·  self " + amount(profile, box.self) : "");
        const lines = [frameName(profile, box.frame), frameKind(profile, box.frame) + "  ·  " + framePlace(profile, box.frame)];
        lines.push("total " + amount(profile, box.total) + " (" + percent(box.total, shown.all) + ")" +
            (box.self === undefined ? "" : "  ·  self " + amount(profile, box.self) + " (" + percent(box.self, shown.all) + ")"));
        if (box.moved) lines.push("moved from " + frameKind(profile, box.part.before) + " to " + frameKind(profile, box.frame));
        const tiers = tiersOf(box.frame);
        if (tiers.length > 1) lines.push("as " + tiers.map(([kind, weight]) => kind + " " + amount(profile, weight)).join("  ·  "));
        if (box.part) lines.push("from " + secondsText(box.part.from, 100) + " to " + secondsText(box.part.to, 100) +
            (whole.start === undefined ? "" : "  ·  " + clockText(whole.start, box.part.from, 1000)));
        return lines.join("\n");
    }

    // What the frame's function had in each tier, in this scope; most have one.
    function tiersOf(frame) {
        if (framesLike(profile, frame).size < 2) return [];
        return tiersIn(profile, totalsNow(), frame);
    }

    // Returns whether cache.totals is there.
    function takeTotalStep() {
        if (cache.totals) return true;
        cache.totalSteps = cache.totalSteps || frameTotalSteps(profile, treeFor("flame"));
        const step = cache.totalSteps.next();
        if (step.done) cache.totals = step.value;
        return !!cache.totals;
    }

    function totalsNow() {
        while (!takeTotalStep());
        return cache.totals;
    }

    function textOfDifference(box) {
        const [base, now] = [profile.difference.base[box.id], profile.difference.new[box.id]];
        const lines = box.frame < 0 ? [sidesTitle()] : [frameName(profile, box.frame), frameKind(profile, box.frame) + "  ·  " + framePlace(profile, box.frame)];
        const change = (now < base ? "−" : "+") + amount(profile, Math.abs(now - base));
        lines.push(amount(profile, base) + ", then " + amount(profile, now) + " a run: " + change + (base ? " (" + percent(now - base, base) + ")" : ""));
        lines.push(differenceWord(profile.difference, box.id) + (profile.difference.isRange ? "; not judged against noise" : ""));
        return lines.join("\n");
    }

    function sidesTitle() {
        return sideRanges() ? sideNames.map((name) => name + (state[name] ? " from " + rangeText(state[name]).replace("-", " to ") + " s" : " all time")).join(", ") : "all";
    }

    function describe(box) {
        byId("callers").disabled = !box || box.frame < 0;
        const text = textOf(box || { id: 0, frame: -1, total: shown.all }) + spanOfRangeText() + momentsOfRange();
        if (details.textContent !== text) details.textContent = text; // a screen reader reads what is set
    }

    // The span that the range is of, or -1: the one that was selected, of several in the same microsecond.  There may be many to look through.
    let selectedSpan = -1, ofRange = { range: null, span: -1 };
    function spanOfRange() {
        if (!state.range || !whole.spans) return -1;
        if (ofRange.range === state.range) return ofRange.span;
        const [from, to] = state.range;
        const isIt = (span) => span >= 0 && Math.abs(whole.spans.from[span] - from) < 1 && Math.abs(spanRange(whole, span)[1] - to) < 1;
        ofRange = { range: state.range, span: isIt(selectedSpan) ? selectedSpan : [...whole.spans.from.keys()].findIndex(isIt) };
        return ofRange.span;
    }

    function spanOfRangeText() {
        const span = spanOfRange();
        return span < 0 ? "" : "\n" + spanText(whole, span);
    }

    // What happened where the range begins or ends.
    function momentsOfRange() {
        if (!state.range) return "";
        const found = state.range.flatMap((us) => momentsWithin(moments, us - 0.5, us + 0.5));
        return found.length ? "\n" + momentsTip(found) : "";
    }

    function titleNow() {
        return (state.view === "waiting" ? "waiting: " : "") + (state.callers >= 0 ? "callers of " + frameName(whole, state.callers) + ": " : "") + scopeNow().title + (state.range ? " from " + rangeText(state.range).replace("-", " to ") + " s" : "");
    }

    // Whether the picture is of what is asked for: its boxes have numbers of a tree. The next one may not be there yet.
    function isCurrent() {
        return !making && shown.of === cache && shown.view === state.view;
    }

    function boxAt(event) {
        if (!isCurrent()) return null;
        const area = canvas.getBoundingClientRect();
        const x = event.clientX - area.left, y = event.clientY - area.top;
        if (state.view === "time" && y < axisHeight) return null;
        for (let i = shown.boxes.length - 1; i >= 0; i--) {
            const box = shown.boxes[i];
            if (x >= box.x && x < box.x + Math.max(box.width, 1) && y >= box.y && y < box.y + rowHeight) return box;
        }
        return null;
    }

    // The thread's line in the time view, or the axis, that the mouse is at.
    function titleAt(event) {
        const y = event.clientY - canvas.getBoundingClientRect().top;
        return (shown.titles || []).find((title) => y >= title.y && y < title.y + rowHeight) || null;
    }

    function zoomTo(box) {
        if (!box || !isCurrent()) return;
        focusOn(box);
        if (state.view === "time") go({ span: [box.part.from, box.part.to] });
        else go({ path: pathTo(treeNow(), box.id) });
    }

    // ---- Events ----

    function showTip(event, text) {
        tip.hidden = !text;
        if (!text) return;
        tip.textContent = text;
        tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)) + "px";
        tip.style.top = (event.clientY + 18 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 10 : event.clientY + 18) + "px";
    }

    canvas.addEventListener("mousemove", (event) => {
        const box = drag && drag.isOne ? null : boxAt(event), title = box ? null : titleAt(event);
        showTip(event, box ? textOf(box) : title && !(drag && drag.isOne) ? momentsTip(momentsAt(event, canvas, title.thread)) : "");
    });
    strip.addEventListener("mousemove", (event) => showTip(event, drag && drag.isOne ? "" : laneTip(event)));
    byId("spans").addEventListener("mousemove", (event) => showTip(event, spanUnder(event) < 0 ? "" : spanText(whole, spanUnder(event))));
    byId("spans").addEventListener("mouseleave", () => { tip.hidden = true; });
    byId("spans").addEventListener("click", (event) => {
        const span = spanUnder(event);
        if (span >= 0) selectSpan(span);
    });
    for (const area of [canvas, strip]) {
        area.addEventListener("mouseleave", () => { tip.hidden = true; });
        area.addEventListener("mousedown", (event) => beginDrag(event, area));
    }
    addEventListener("mousemove", moveDrag);
    addEventListener("mouseup", endDrag);
    canvas.addEventListener("click", (event) => {
        if (performance.now() - draggedAt <= 50) return;
        const title = titleAt(event);
        const [moment] = title ? momentsAt(event, canvas, title.thread) : [];
        if (moment) selectFrom(moment);
        else zoomTo(boxAt(event));
    });
    stage.addEventListener("wheel", (event) => {
        if (state.view !== "time" || event.ctrlKey) return;
        event.preventDefault();
        if (!isCurrent()) return;
        if (event.shiftKey) stage.scrollTop += (event.deltaY || event.deltaX) * (event.deltaMode ? rowHeight : 1); // some browsers turn the wheel then
        else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) panTime(Math.sign(event.deltaX) * 0.1);
        else zoomTime(event.deltaY > 0 ? 1.25 : 0.8, timeAt(event, canvas, shown.span));
    }, { passive: false });
    stage.addEventListener("scroll", () => { tip.hidden = true; requestAnimationFrame(show); });
    addEventListener("beforeprint", () => {
        const { dataset } = document.documentElement;
        themeOfScreen = dataset.theme;
        dataset.theme = "light";
        document.body.style.width = paperWidth + "px";
        print(true);
        cutForPaper(canvas, byId("paper"));
    });
    addEventListener("afterprint", () => {
        const { dataset } = document.documentElement;
        if (themeOfScreen === undefined) delete dataset.theme;
        else dataset.theme = themeOfScreen;
        document.body.style.width = byId("paper").textContent = "";
        print(false);
    });

    function print(begins) {
        isPrinted = begins;
        drawnAt = -Infinity;
        drawLegend();
        show();
    }

    addEventListener("resize", () => requestAnimationFrame(show));
    addEventListener("popstate", () => take(readHash()));
    addEventListener("hashchange", () => take(readHash()));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { drawLegend(); show(); });
    byId("callers").addEventListener("click", () => {
        stage.focus({ preventScroll: true });
        showCallers();
    });
    byId("view").addEventListener("change", (event) => go({ view: event.target.value, callers: -1, path: [], span: [] }));
    byId("scope").addEventListener("change", (event) => go({ scope: event.target.value, path: [], span: [] }));
    byId("range").addEventListener("change", (event) => takeRange(event.target, whole, select));
    sideNames.forEach((name, side) => byId(name).addEventListener("change", (event) => takeRange(event.target, clock, (range) => selectSide(side, range))));
    byId("alltime").addEventListener("click", () => {
        stage.focus({ preventScroll: true });
        select(null);
    });
    byId("search").addEventListener("input", (event) => go({ search: event.target.value }, true));
    byId("previous").addEventListener("click", () => step(-1));
    byId("next").addEventListener("click", () => step(1));
    byId("back").addEventListener("click", () => history.back());
    byId("reset").addEventListener("click", reset);
    byId("theme").addEventListener("change", (event) => {
        if (event.target.value) document.documentElement.dataset.theme = event.target.value;
        else delete document.documentElement.dataset.theme;
        drawLegend();
        show();
    });

    // What is written into FIELD, a range of PROFILE, is told to ACT.
    function takeRange(field, profile, act) {
        const range = readRange(field.value, profile), isWrong = !range && field.value.trim() !== "";
        field.setAttribute("aria-invalid", String(isWrong));
        if (isWrong) details.textContent = "no range of time: " + field.value + "\nwrite 1.2-1.3 (seconds), 10%-20%" + (profile.start === undefined ? "" : ", or " + clockText(profile.start, profile.first, 1e6) + "-" + clockText(profile.start, profile.last, 1e6));
        else act(range);
    }

    function reset() {
        focusOn(null);
        byId("search").value = "";
        go({ view: "flame", scope: "all", search: "", path: [], span: [], range: null, base: null, new: null, hide: [], fold: [], callers: -1 });
    }

    // Who calls the function in focus, whatever it calls itself.
    function showCallers() {
        const box = shown.boxes.find((box) => box.id === focus);
        if (box && box.frame >= 0 && !whole.difference) go({ view: state.view === "waiting" ? "waiting" : "inverted", callers: box.frame, path: [], span: [] });
    }

    // The view in which the function whose callers are shown was in focus.
    function viewOfAll() {
        return state.view === "waiting" ? "waiting" : "flame";
    }

    function outwards() {
        if (state.view === "time") return go({ span: [] });
        const tree = treeNow(), path = pathTo(tree, zoomed(tree)); // of what is shown: the link's may lead further in another range
        if (!path.length && state.callers >= 0) go({ view: viewOfAll(), callers: -1 });
        else go({ path: path.slice(0, -1) });
    }

    // From the box in focus to the one that lies that way: of those in the nearest row, the one beside it, above or below it.
    function move(x, y) {
        const boxes = shown.boxes, now = boxes.find((box) => box.id === focus) || boxes[0];
        if (!now) return;
        const away = (box) => (box.x - now.x) * x + (box.y - now.y) * y, isOver = (box) => box.x < now.x + now.width && box.x + box.width > now.x;
        const found = boxes.filter((box) => away(box) > 0 && (y || box.y === now.y)), over = found.filter(isOver);
        // Threads do not all run at one time: where none does, it is the next one's nearest box.
        const list = x || over.length ? (x ? found : over) : state.view === "time" ? found : [];
        const [best] = list.sort((a, b) => away(a) - away(b) || (over.length ? b.width - a.width : Math.abs(a.x - now.x) - Math.abs(b.x - now.x)));
        if (!best) return state.view === "time" && y && now.id === focus && scrollRows(4 * y) ? move(x, y) : undefined;
        focusOn(best);
        bringIntoSight(best.y + stage.scrollTop);
        show();
    }

    // From FIELD to the graph; what is half written into it is no range.
    function leave(field) {
        if (field === byId("range") || sideNames.some((name) => field === byId(name))) {
            const range = state[field.id];
            field.value = range ? rangeText(range) : "";
            field.setAttribute("aria-invalid", "false");
        }
        stage.focus();
    }

    const inTime = (act) => () => { if (state.view === "time") act(); };
    const keys = {
        ArrowLeft: () => move(-1, 0), ArrowRight: () => move(1, 0), ArrowUp: () => move(0, -1), ArrowDown: () => move(0, 1),
        Enter: () => zoomTo(shown.boxes.find((box) => box.id === focus)), Escape: outwards, "/": () => byId("search").focus(), r: reset,
        i: () => go({ view: state.view === "inverted" ? "flame" : "inverted", callers: -1, path: [], span: [] }), c: showCallers,
        w: () => {
            if (whole.waiting) go({ view: state.view === "waiting" ? "flame" : "waiting", callers: -1, path: [], span: [] });
            else details.textContent = "where threads waited was not recorded";
        },
        t: () => go({ view: state.view === "time" ? "flame" : "time", path: [], span: [] }),
        n: () => step(1), N: () => step(-1), m: () => toggle("hide", "others"), a: () => select(null),
        p: () => stepSpan(1), P: () => stepSpan(-1), ".": () => stepMoment(1), ",": () => stepMoment(-1), o: otherSide,
        "+": inTime(() => zoomTime(0.5, middle())), "=": inTime(() => zoomTime(0.5, middle())), "-": inTime(() => zoomTime(2, middle())),
        "<": inTime(() => panTime(-0.25)), ">": inTime(() => panTime(0.25)), s: inTime(() => select(spanNow(treeNow()).map(Math.round))),
    };
    addEventListener("keydown", (event) => {
        const typing = event.target.matches("input, select");
        if (typing && event.key === "Escape") leave(event.target);
        if (event.target === byId("search") && event.key === "Enter") {
            event.preventDefault();
            step(event.shiftKey ? -1 : 1);
        }
        if (typing || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
        if (event.target.matches("button") && event.key === "Enter") return;
        event.preventDefault();
        keys[event.key]();
    });

    function addLegend(title, colour, name) {
        const item = document.createElement("li"), mark = document.createElement("i");
        if (colour) mark.style.background = colour;
        if (name) mark.className = name;
        item.append(mark, title);
        byId("legend").append(item);
    }

    function drawLegend() {
        byId("legend").textContent = "";
        const dark = isDark();
        for (const [title, colour] of whole.difference ? differenceLegend(dark, !!sideRanges()) : legendOf(whole, frameColours(whole, dark))) addLegend(title, colour);
        if (whole.frames.inlined.includes(1)) addLegend("inlined: bar at the left", "", "inlined");
        if (!whole.difference && framesOfSeveralTiers(whole).includes(1)) addLegend("moved to another tier (time)", "", "moved");
        if (!whole.difference && whole.activities)
            for (const kind of momentKinds.slice(0, 2)) if (moments.some((moment) => moment.kind === kind)) addLegend(momentNames[kind] + (kind === "tier" ? " ▲" : " ▼"), momentColour(kind, dark));
        if (!whole.difference && whole.activities)
            for (const activity of [2, 3]) if (whole.samples.node.some((_, sample) => activityOf(whole, sample) === activity)) addLegend(activities[activity] + " (strip)", activityColour(activity, dark));
        if (whole.waiting) addLegend("waiting (strip)", waitColour(dark));
    }

    if (whole.difference) for (const item of [byId("callers"), byId("view").parentElement, byId("scope").parentElement, byId("views")]) item.hidden = true;
    if (whole.difference || !hasTimes(whole)) byId("ranges").hidden = true;
    for (const name of sideNames) byId(name).parentElement.hidden = !whole.sides;
    if (!whole.waiting) byId("waiting").remove();
    for (const scope of scopes) byId("scope").append(new Option(scope.title || scope.id, scope.id));
    addFilters("hide", hideable);
    addFilters("fold", foldable);
    drawLegend();
    treeNow();
    drawnAt = -Infinity;
    show();
}

if (typeof document !== "undefined") startPage();
