// Which tiers a function ran in, and when it moved from one to another. A frame is a function in one tier; a function is a name and a
// place.

// The number of each frame's function.
function functionsOf(profile) {
    if (profile.functions) return profile.functions;
    const numbers = new Map();
    profile.functions = profile.frames.name.map((_, frame) => {
        const key = frameName(profile, frame) + "\n" + framePlace(profile, frame) + "\n" + profile.strings[profile.frames.module[frame]];
        if (!numbers.has(key)) numbers.set(key, numbers.size);
        return numbers.get(key);
    });
    return profile.functions;
}

// What each function had as what, with all that it calls: by function, the frames' kinds with their sums, the largest first. An
// interpreted function has hardly anything itself. Where it calls itself, the outermost counts.
function tierTotals(profile, tree) {
    const functions = functionsOf(profile), totals = new Map(), within = new Map();
    for (let node = 0; node >= 0;) {
        if (node > 0) enter(tree.frame[node], tree.total[node]);
        let next = tree.first[node];
        while (!next && node > 0) {
            leave(tree.frame[node]);
            next = tree.next[node];
            node = tree.parent[node];
        }
        node = next || -1;
    }
    function enter(frame, weight) {
        const number = functions[frame], kind = frameKind(profile, frame), depth = within.get(number) || 0;
        within.set(number, depth + 1);
        if (depth) return;
        if (!totals.has(number)) totals.set(number, new Map());
        totals.get(number).set(kind, (totals.get(number).get(kind) || 0) + weight);
    }
    function leave(frame) {
        within.set(functions[frame], within.get(functions[frame]) - 1);
    }
    for (const [number, kinds] of totals) totals.set(number, [...kinds].sort((a, b) => b[1] - a[1]));
    return totals;
}

// Both are of one function, and it was compiled anew, or its code was given up, in between.
function tierChanged(profile, before, now) {
    const tier = profile.frames.tier;
    return before !== undefined && tier[before] && tier[now] && tier[before] !== tier[now];
}

// Whether some function has frames of several tiers.
function hasTiers(profile) {
    const functions = functionsOf(profile), first = new Map();
    return functions.some((number, frame) => {
        if (!first.has(number)) first.set(number, frame);
        return tierChanged(profile, first.get(number), frame);
    });
}
