// A tree to draw: columns by number, node 0 the root, parents before their children, children side by side by weight.

function makeTree(count) {
    return { frame: new Int32Array(count), parent: new Int32Array(count), total: new Float64Array(count), self: new Float64Array(count),
        start: new Float64Array(count), depth: new Uint32Array(count), count: 0, deepest: 0 };
}

// Of the stacks in SCOPE, the outermost frame below. Tiers of a function are frames of their own.
function flameTree(profile, scope) {
    const nodes = profile.nodes;
    const tree = makeTree(nodes.parent.length);
    tree.count = nodes.parent.length;
    tree.frame.set(nodes.frame);
    tree.parent.set(nodes.parent);
    tree.frame[0] = tree.parent[0] = -1;
    addWeights(profile, scope, (i, weight) => { tree.self[profile.samples.node[i]] += weight; });
    return finishTree(tree);
}

// The same from the innermost frame on: a node for each way that its time was called.
function invertedTree(profile, scope) {
    const weights = new Map();
    addWeights(profile, scope, (i, weight) => {
        const node = profile.samples.node[i];
        weights.set(node, (weights.get(node) || 0) + weight);
    });
    const frame = [-1], parent = [-1], self = [0], children = [new Map()];
    for (const [leaf, weight] of weights) {
        let at = 0;
        for (let node = leaf; node; node = profile.nodes.parent[node]) {
            const own = profile.nodes.frame[node];
            let next = children[at].get(own);
            if (next === undefined) {
                next = frame.length;
                frame.push(own);
                parent.push(at);
                self.push(0);
                children.push(new Map());
                children[at].set(own, next);
            }
            at = next;
        }
        self[at] += weight;
    }
    const tree = makeTree(frame.length);
    tree.count = frame.length;
    tree.frame.set(frame);
    tree.parent.set(parent);
    tree.self.set(self);
    return finishTree(tree);
}

function addWeights(profile, scope, add) {
    const wanted = profile.threads.pid.map((_, thread) => scope.has(thread));
    const { node, thread, weight } = profile.samples;
    for (let i = 0; i < node.length; i++) if (wanted[thread[i]]) add(i, weight[i]);
}

// Totals, depths, and where each node begins: the heaviest child first.
function finishTree(tree) {
    const { parent, total, self, depth, start, count } = tree;
    for (let i = count - 1; i >= 0; i--) {
        total[i] += self[i];
        if (i) total[parent[i]] += total[i];
    }
    const order = childrenByWeight(tree);
    const used = new Float64Array(count);
    for (const i of order) {
        start[i] = start[parent[i]] + used[parent[i]];
        used[parent[i]] += total[i];
        depth[i] = depth[parent[i]] + 1;
        if (depth[i] > tree.deepest) tree.deepest = depth[i];
    }
    return tree;
}

// All nodes with a weight, by depth, and among the children of one by weight.
function childrenByWeight(tree) {
    const depths = depthsOf(tree.parent);
    const order = [];
    for (let i = 1; i < tree.count; i++) if (tree.total[i] > 0) order.push(i);
    return order.sort((a, b) => depths[a] - depths[b] || tree.total[b] - tree.total[a] || a - b);
}

// A row of the time view for each thread of SCOPE: its samples in order of time, those with equal frames at a depth side by side as
// one box, and a gap where it did not run.
function timeTree(profile, scope) {
    const { node, thread } = profile.samples;
    const rows = new Map();
    for (let i = 0; i < node.length; i++)
        if (scope.has(thread[i])) {
            const id = profile.threads.pid[thread[i]] + "." + profile.threads.tid[thread[i]];
            if (!rows.has(id)) rows.set(id, { thread: thread[i], samples: [] });
            rows.get(id).samples.push(i);
        }
    const boxes = [];
    let top = 0, first = Infinity, last = 0;
    for (const row of rows.values()) for (const i of row.samples) {
        first = Math.min(first, profile.times[i]);
        last = Math.max(last, profile.times[i]);
    }
    const threads = [];
    for (const row of [...rows.values()].sort((a, b) => b.samples.length - a.samples.length)) {
        row.samples.sort((a, b) => profile.times[a] - profile.times[b]);
        const deepest = addRow(profile, row, top, boxes);
        threads.push({ thread: row.thread, top, rows: deepest + 1 });
        top += deepest + 2;
    }
    return { boxes, threads, first, last, rows: top };
}

// How long a sample stands for: to the next one, if that comes within four times the usual distance.
function usualGap(profile, samples) {
    const gaps = [];
    for (let i = 1; i < samples.length; i++) gaps.push(profile.times[samples[i]] - profile.times[samples[i - 1]]);
    gaps.sort((a, b) => a - b);
    return gaps.length ? Math.max(gaps[gaps.length >> 1], 1) : 1000;
}

function addRow(profile, row, top, boxes) {
    const usual = usualGap(profile, row.samples);
    let open = [], deepest = 1, end = -Infinity;
    for (let n = 0; n < row.samples.length; n++) {
        const i = row.samples[n];
        const at = profile.times[i];
        const next = n + 1 < row.samples.length ? profile.times[row.samples[n + 1]] : at + usual;
        const stack = stackOf(profile, profile.samples.node[i]);
        if (at > end) open = [];
        end = next - at > 4 * usual ? at + usual : next;
        let same = 0;
        while (same < stack.length && same < open.length && open[same].frame === stack[same]) same++;
        open.length = same;
        for (let depth = same; depth < stack.length; depth++) {
            const box = { frame: stack[depth], depth: top + depth + 1, from: at, to: end, weight: 0 };
            open.push(box);
            boxes.push(box);
        }
        for (const box of open) {
            box.to = end;
            box.weight += profile.samples.weight[i];
        }
        deepest = Math.max(deepest, stack.length);
    }
    return deepest;
}

// The frames of NODE, the outermost first.
function stackOf(profile, node) {
    const stack = [];
    for (; node; node = profile.nodes.parent[node]) stack.push(profile.nodes.frame[node]);
    return stack.reverse();
}

// Self and total time of each function, by name and place: recursion counts once. As perfjit report has them.
function functionTotals(profile, scope) {
    const tree = flameTree(profile, scope);
    const key = (frame) => frameName(profile, frame) + "\n" + framePlace(profile, frame) + "\n" + profile.strings[profile.frames.module[frame]];
    const totals = new Map();
    for (let i = 1; i < tree.count; i++) {
        if (!tree.total[i]) continue;
        const own = key(tree.frame[i]);
        if (!totals.has(own)) totals.set(own, { name: frameName(profile, tree.frame[i]), self: 0, total: 0 });
        const sums = totals.get(own);
        sums.self += tree.self[i];
        let outer = tree.parent[i];
        while (outer > 0 && key(tree.frame[outer]) !== own) outer = tree.parent[outer];
        if (outer <= 0) sums.total += tree.total[i];
    }
    return totals;
}
