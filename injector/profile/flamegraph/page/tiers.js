// Which tiers a function ran in, and when it moved from one to another. A frame is a function in one tier; a function is a name and a
// place.

// The number of each frame's function.
function functionsOf(profile) {
    if (profile.functions) return profile.functions;
    const numbers = new Map();
    profile.functions = Uint32Array.from(profile.frames.name, (_, frame) => {
        const key = frameName(profile, frame) + "\n" + framePlace(profile, frame) + "\n" + profile.strings[profile.frames.module[frame]];
        if (!numbers.has(key)) numbers.set(key, numbers.size);
        return numbers.get(key);
    });
    return profile.functions;
}

// What each frame's function had as that frame, with all that it calls: an interpreted function has hardly anything itself. Where it
// calls itself, the outermost counts. In steps, since a tree may have a million nodes.
function* frameTotalSteps(profile, tree) {
    const outermost = profile.outermost = profile.outermost || (yield* outermostSteps(profile)), totals = new Float64Array(profile.frames.name.length);
    for (let node = 1; node < tree.count; node++) {
        if (outermost[node]) totals[tree.frame[node]] += tree.total[node];
        if (node % 65536 === 0) yield;
    }
    return totals;
}

// What each frame has itself: what is hidden below it, too.
function frameSelfs(profile, tree) {
    const selfs = new Float64Array(profile.frames.name.length);
    for (let node = 1; node < tree.count; node++) selfs[tree.frame[node]] += tree.self[node];
    return selfs;
}

// By node: 1 if its function is in none of its callers.
function* outermostSteps(profile) {
    const { parent, frame } = profile.nodes, { begin, list } = childrenIn(profile), functions = functionsOf(profile);
    const outermost = new Uint8Array(parent.length), within = new Uint32Array(functions.length), next = begin.slice();
    for (let node = 0, visited = 0; node >= 0;) {
        if (next[node] < begin[node + 1]) {
            node = list[next[node]++];
            if (within[functions[frame[node]]]++ === 0) outermost[node] = 1;
            if (++visited % 16384 === 0) yield;
        } else {
            if (node > 0) within[functions[frame[node]]]--;
            node = parent[node];
        }
    }
    return outermost;
}

// The frames of FRAME's function, one a kind.
function framesLike(profile, frame) {
    const functions = functionsOf(profile), kinds = new Map();
    functions.forEach((number, other) => {
        if (number !== functions[frame]) return;
        const kind = frameKind(profile, other);
        kinds.set(kind, [...kinds.get(kind) || [], other]);
    });
    return kinds;
}

// As what FRAME's function ran: the kinds with their sums, the largest first.
function tiersIn(profile, totals, frame) {
    return [...framesLike(profile, frame)].map(([kind, frames]) => [kind, frames.reduce((sum, other) => sum + totals[other], 0)])
        .filter(([, weight]) => weight > 0).sort((a, b) => b[1] - a[1]);
}

// Both are of one function, and it was compiled anew, or its code was given up, in between.
function tierChanged(profile, before, now) {
    const tier = profile.frames.tier;
    return before !== undefined && tier[before] && tier[now] && tier[before] !== tier[now];
}

// By frame: whether its function has frames of several tiers.
function framesOfSeveralTiers(profile) {
    if (profile.several) return profile.several;
    const functions = functionsOf(profile), first = new Map(), several = new Set();
    functions.forEach((number, frame) => {
        if (!profile.frames.tier[frame]) return;
        if (!first.has(number)) first.set(number, frame);
        if (tierChanged(profile, first.get(number), frame)) several.add(number);
    });
    profile.several = functions.map((number) => several.has(number) ? 1 : 0);
    return profile.several;
}
