// A tree to draw: columns by number, node 0 the root. Parents have lower numbers than their children. Of a large profile hardly any of it
// is seen, so a node gets its children when they are asked for (expand): they hang together by first and next, the heaviest first, so that
// drawing stops at the first one that is too thin.

// Of the stacks in SCOPE, the outermost frame at the top: the profile's own nodes, with their sums. below is how many rows there are under
// a node.
function* flameTreeSteps(profile, scope) {
    const { frame, parent } = profile.nodes, count = frame.length;
    const self = new Float64Array(count), total = new Float64Array(count), below = new Uint32Array(count);
    addWeights(profile, scope, (i, weight) => { self[profile.samples.node[i]] += weight; });
    yield;
    for (let i = count - 1; i > 0; i--) {
        const sum = total[i] += self[i], outer = parent[i];
        if (sum) {
            total[outer] += sum;
            if (below[i] >= below[outer]) below[outer] = below[i] + 1;
        }
        if (i % 65536 === 0) yield;
    }
    total[0] += self[0];
    const children = childrenIn(profile), isExpanded = new Uint8Array(count);
    yield;
    const tree = { frame, parent, depth: profile.depths, total, self, below, count, isExpanded,
        start: new Float64Array(count), first: new Int32Array(count), next: new Int32Array(count) };
    tree.expand = (node) => {
        if (isExpanded[node]) return;
        isExpanded[node] = 1;
        const own = [];
        for (let at = children.begin[node]; at < children.begin[node + 1]; at++) if (total[children.list[at]]) own.push(children.list[at]);
        placeChildren(tree, node, own);
    };
    return tree;
}

function flameTree(profile, scope) {
    return finish(flameTreeSteps(profile, scope));
}

// Take STEPS to their end. Returns what they return.
function finish(steps) {
    for (;;) {
        const step = steps.next();
        if (step.done) return step.value;
    }
}

function childrenOf(tree, node) {
    const children = [];
    for (let child = tree.first[node]; child; child = tree.next[child]) children.push(child);
    return children;
}

// Put the CHILDREN of NODE in order, and side by side.
function placeChildren(tree, node, children) {
    if (!children.length) return;
    if (children.length > 1) children.sort((a, b) => tree.total[b] - tree.total[a] || a - b);
    let start = tree.start[node];
    tree.first[node] = children[0];
    for (let i = 0; i < children.length; i++) {
        const child = children[i];
        tree.next[child] = children[i + 1] || 0;
        tree.start[child] = start;
        start += tree.total[child];
    }
}

// ADD is told each sample of SCOPE, which may have a range of time.
function addWeights(profile, scope, add) {
    const wanted = Uint8Array.from(profile.threads.pid, (_, thread) => scope.has(thread));
    const { thread, weight } = profile.samples, [from, to] = scope.range || [-Infinity, Infinity], { times } = profile;
    if (profile.waits && scope.range) return addWaits(profile, wanted, scope.range, add);
    for (let i = 0; i < times.length; i++) if (wanted[thread[i]] && times[i] >= from && times[i] < to) add(i, weight[i]);
}

// The stacks from the innermost frame on, or from the innermost call of a function on (scope.callers): who called it, and who called that. Until a node is expanded it keeps its stacks: those FROM up
// to TO, of each the profile's node that comes next and what it weighs. Children have parts of their parent's, so that hardly anything is
// allocated: a browser that collects garbage draws nothing.
function* invertedTreeSteps(profile, scope) {
    const tree = { frame: [-1], parent: [-1], total: [0], self: [0], start: [0], depth: [0], first: [0], next: [0], isExpanded: [0], count: 1, isInverted: true };
    const sums = new Float64Array(profile.nodes.parent.length), from = scope.callers >= 0 ? callsOf(profile, scope.callers) : null;
    addWeights(profile, scope, (i, weight) => {
        const node = profile.samples.node[i];
        sums[from ? from[node] : node] += weight;
    });
    if (from) sums[0] = 0; // it is not in their stacks
    yield;
    let count = 0;
    for (const sum of sums) if (sum) count++;
    const next = new Int32Array(count), weight = new Float64Array(count);
    for (let node = 0, at = 0; node < sums.length; node++)
        if (sums[node]) {
            next[at] = node;
            weight[at++] = sums[node];
            tree.total[0] += sums[node];
        }
    yield;
    tree.stacks = { next, weight, from: [0], to: [count] };
    const room = { next: new Int32Array(count), weight: new Float64Array(count), group: new Int32Array(profile.frames.name.length).fill(-1) };
    tree.expand = (node) => expand(profile, tree, node, room);
    return tree;
}

// By node: the innermost call of FRAME's function in its stack, or 0.
function callsOf(profile, frame) {
    const functions = functionsOf(profile), { nodes } = profile, calls = new Int32Array(nodes.parent.length);
    for (let node = 1; node < calls.length; node++) calls[node] = functions[nodes.frame[node]] === functions[frame] ? node : calls[nodes.parent[node]];
    return calls;
}

function expand(profile, tree, node, room) {
    if (tree.isExpanded[node]) return;
    tree.isExpanded[node] = 1;
    const { stacks } = tree, from = stacks.from[node], to = leaveOutEnded(tree, node);
    if (to - from === 1) addOnly(profile, tree, node, from);
    else if (to > from) addGroups(profile, tree, node, groupByFrame(profile, stacks, from, to, room));
    for (let i = from; i < to; i++) stacks.next[i] = profile.nodes.parent[stacks.next[i]];
}

// The stacks that end at NODE are its own. Returns where the others end.
function leaveOutEnded(tree, node) {
    const { stacks } = tree, to = stacks.to[node];
    let end = stacks.from[node];
    for (let i = end; i < to; i++)
        if (stacks.next[i]) {
            stacks.next[end] = stacks.next[i];
            stacks.weight[end++] = stacks.weight[i];
        } else tree.self[node] += stacks.weight[i];
    return end;
}

// Most nodes far from the root have one stack, and so one child, which needs no place among others.
function addOnly(profile, tree, node, at) {
    const { stacks } = tree;
    const child = addChild(tree, node, { frame: profile.nodes.frame[stacks.next[at]], total: stacks.weight[at], from: at, to: at + 1 });
    tree.first[node] = child;
    tree.start[child] = tree.start[node];
}

function addGroups(profile, tree, node, groups) {
    placeChildren(tree, node, groups.map((group) => addChild(tree, node, group)));
}

// Put the stacks FROM up to TO in order by the frame that comes next, of which the first one seen comes first. Returns a group a frame.
function groupByFrame(profile, stacks, from, to, room) {
    const groups = [], frameOf = (next) => profile.nodes.frame[next];
    for (let i = from; i < to; i++) {
        const frame = frameOf(stacks.next[i]);
        if (room.group[frame] < 0) room.group[frame] = groups.push({ frame, total: 0, from: 0, to: 0 }) - 1;
        const group = groups[room.group[frame]];
        group.total += stacks.weight[i];
        group.to++;
        room.next[i] = stacks.next[i];
        room.weight[i] = stacks.weight[i];
    }
    let start = from;
    for (const group of groups) {
        group.from = start;
        start += group.to;
        group.to = group.from;
    }
    for (let i = from; i < to; i++) {
        const group = groups[room.group[frameOf(room.next[i])]];
        stacks.next[group.to] = room.next[i];
        stacks.weight[group.to++] = room.weight[i];
    }
    for (const group of groups) room.group[group.frame] = -1;
    return groups;
}

function addChild(tree, node, { frame, total, from, to }) {
    const child = tree.count++;
    tree.frame.push(frame);
    tree.parent.push(node);
    tree.total.push(total);
    tree.self.push(0);
    tree.start.push(0);
    tree.depth.push(tree.depth[node] + 1);
    tree.first.push(0);
    tree.next.push(0);
    tree.isExpanded.push(0);
    tree.stacks.from.push(from);
    tree.stacks.to.push(to);
    return child;
}

// The nodes that can be seen if ROOT is as wide as WIDTH, row by row, each expanded as long as there is time for it.
function* nodesInSight(tree, root, width, least, hasTime = () => true) {
    const scale = width / (tree.total[root] || 1);
    const nodes = [root];
    for (let i = 0; i < nodes.length; i++) {
        const node = nodes[i];
        if (!tree.isExpanded[node] && hasTime()) tree.expand(node);
        yield node;
        for (let child = tree.first[node]; child && tree.total[child] * scale >= least; child = tree.next[child]) nodes.push(child);
    }
}

// VISIT is told each node in sight, with where it stands. Returns the number of the deepest row.
function visitTree(tree, root, width, least, visit, hasTime) {
    const scale = width / (tree.total[root] || 1);
    let deepest = tree.depth[root];
    for (const node of nodesInSight(tree, root, width, least, hasTime)) {
        visit(node, (tree.start[node] - tree.start[root]) * scale, tree.total[node] * scale);
        deepest = Math.max(deepest, tree.depth[node]);
    }
    return deepest;
}

// The samples of each thread in order of time, those of one process together, of all that was recorded.
function lanesOf(profile) {
    if (profile.source) return lanesOf(profile.source);
    if (profile.lanes) return profile.lanes;
    const { pid, tid } = profile.threads, { thread } = profile.samples, { times } = profile, lanes = new Map();
    const laneOf = pid.map((_, i) => { // a thread of several names has one lane
        const id = pid[i] + "." + tid[i];
        if (!lanes.has(id)) lanes.set(id, { pid: pid[i], tid: tid[i], thread: i, samples: [], isSorted: true });
        return lanes.get(id);
    });
    for (let i = 0; i < thread.length; i++) {
        const lane = laneOf[thread[i]], { samples } = lane;
        if (samples.length && times[i] < times[samples[samples.length - 1]]) lane.isSorted = false;
        samples.push(i);
        lane.thread = Math.max(lane.thread, thread[i]); // its last name
    }
    profile.lanes = [...lanes.values()].filter(({ samples }) => samples.length).sort((a, b) => a.pid - b.pid || b.samples.length - a.samples.length);
    for (const { samples, isSorted } of profile.lanes) if (!isSorted) samples.sort((a, b) => times[a] - times[b]);
    setUsualGaps(profile, profile.lanes);
    return profile.lanes;
}

// The rows of the time view, whatever range is selected: for each thread of SCOPE its samples, and how long one usually stands for.
// They are kept: another range has the same ones.
function* timeRowSteps(profile, scope) {
    if (profile.timeRows && profile.timeRows.scope === scope.id) return profile.timeRows;
    const { node } = profile.samples, { times, depths } = profile;
    const rows = lanesOf(profile).filter(({ thread }) => scope.has(thread)).map(({ thread, samples }) => ({ thread, samples, deepest: 1 }));
    const time = { scope: scope.id, rows: rows.sort((a, b) => b.samples.length - a.samples.length), first: Infinity, last: 0, height: 0 };
    for (const row of rows) {
        for (const i of row.samples) row.deepest = Math.max(row.deepest, depths[node[i]]);
        row.top = time.height;
        time.height += row.deepest + 2;
        time.first = Math.min(time.first, times[row.samples[0]]);
        yield;
    }
    setUsualGaps(profile, rows);
    for (const row of rows) time.last = Math.max(time.last, times[row.samples[row.samples.length - 1]] + row.usual);
    return profile.timeRows = time;
}

function timeRows(profile, scope) {
    return finish(timeRowSteps(profile, scope));
}

// How long a sample usually stands for: the distance of samples in the thread that has most. One that hardly runs has few, far apart.
function setUsualGaps(profile, rows) {
    const busiest = rows.reduce((most, row) => row.samples.length > most.length ? row.samples : most, []);
    const usual = usualGap(profile, busiest);
    for (const row of rows) row.usual = usual;
}

function usualGap(profile, samples) {
    const gaps = new Float64Array(Math.max(samples.length - 1, 0));
    for (let i = 1; i < samples.length; i++) gaps[i - 1] = profile.times[samples[i]] - profile.times[samples[i - 1]];
    gaps.sort();
    return gaps.length ? Math.max(gaps[gaps.length >> 1], 1) : 1000;
}

// The first of ROW's samples that is not before AT.
function sampleFrom(profile, row, at) {
    let low = 0, high = row.samples.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (profile.times[row.samples[middle]] < at) low = middle + 1;
        else high = middle;
    }
    return low;
}

// What ROW shows from FROM to TO: boxes for frames that stay, a gap where it did not run. Of samples closer than LEAST the heaviest
// stands for all. A box tells which frame its function was in the same depth before, if that was in another tier, or -1.
// Into BOXES, one stack a step.
function* timeBoxSteps(profile, row, from, to, least, boxes) {
    const before = new Map(); // the last frame of a function in one depth
    let open = [], end = -Infinity;
    const last = Math.min(sampleFrom(profile, row, to) + 1, row.samples.length);
    const functions = functionsOf(profile), several = framesOfSeveralTiers(profile);
    const moved = (frame, depth) => {
        if (!several[frame]) return -1;
        const key = functions[frame] * 65536 + depth, last = before.get(key);
        before.set(key, frame);
        return tierChanged(profile, last, frame) ? last : -1;
    };
    for (let n = Math.max(sampleFrom(profile, row, from) - 1, 0); n < last;) {
        const at = profile.times[row.samples[n]];
        let shown = row.samples[n], weight = 0, next = n;
        while (next < last && (next === n || profile.times[row.samples[next]] - at < least)) {
            const i = row.samples[next++];
            weight += profile.samples.weight[i];
            if (profile.samples.weight[i] > profile.samples.weight[shown]) shown = i;
        }
        const after = next < row.samples.length ? profile.times[row.samples[next]] : profile.times[row.samples[next - 1]] + row.usual;
        const before = profile.times[row.samples[next - 1]];
        if (at > end) open = [];
        end = after - before > 4 * row.usual ? before + row.usual : after;
        addStack(boxes, open, stackOf(profile, profile.samples.node[shown]), row.top, at, end, weight, moved);
        n = next;
        yield;
    }
}

// Go on with the boxes in OPEN as far as STACK is the same, and begin others.
function addStack(boxes, open, stack, top, from, to, weight, moved) {
    let same = 0;
    while (same < stack.length && same < open.length && open[same].frame === stack[same]) same++;
    open.length = same;
    for (let depth = same; depth < stack.length; depth++) {
        const box = { frame: stack[depth], depth: top + depth + 1, from, to, weight: 0, before: moved(stack[depth], depth) };
        open.push(box);
        boxes.push(box);
    }
    for (const box of open) {
        box.to = to;
        box.weight += weight;
    }
}

// The frames of NODE, the outermost first.
function stackOf(profile, node) {
    const stack = [];
    for (; node; node = profile.nodes.parent[node]) stack.push(profile.nodes.frame[node]);
    return stack.reverse();
}
