// What is searched for: text in a function's name or place, or /an expression/. NULL: nothing.
function matcher(text) {
    if (!text) return null;
    if (text.length > 2 && text[0] === "/" && text.endsWith("/")) {
        try {
            const expression = new RegExp(text.slice(1, -1), "i");
            return (name) => expression.test(name);
        } catch {
            return () => false;
        }
    }
    const wanted = text.toLowerCase();
    return (name) => name.toLowerCase().includes(wanted);
}

// Which frames match: 1 or 0 for each; NULL: nothing is searched for.
function matchFrames(profile, text) {
    const matches = matcher(text);
    if (!matches) return null;
    return Uint8Array.from(profile.frames.name, (_, frame) => matches(frameName(profile, frame)) || matches(framePlace(profile, frame)) ? 1 : 0);
}

// The weight of all that has a matching frame in its stack, once.
function matchedWeight(tree, matched) {
    const within = new Uint8Array(tree.count);
    let sum = 0;
    for (let i = 1; i < tree.count; i++) {
        const outer = tree.parent[i] > 0 && within[tree.parent[i]];
        within[i] = outer || matched[tree.frame[i]];
        if (within[i] && !outer) sum += tree.total[i];
    }
    return sum;
}

// The functions of which frames match, or all of them, those with most of TOTALS first: a frame of each, and what all of its frames have.
function matchedFunctions(profile, totals, matched) {
    const functions = functionsOf(profile), sums = new Map();
    totals.forEach((total, frame) => {
        if ((matched && !matched[frame]) || !total) return;
        const sum = sums.get(functions[frame]) || { frame, total: 0, most: 0 };
        sum.total += total;
        if (total > sum.most) [sum.most, sum.frame] = [total, frame];
        sums.set(functions[frame], sum);
    });
    return [...sums.values()].sort((a, b) => b.total - a.total);
}

// The outermost nodes that match, the heaviest first, of a tree that is whole or as far as it is expanded.
function matchedNodes(tree, matched, most) {
    const nodes = [], within = new Uint8Array(tree.count);
    for (let i = 1; i < tree.count; i++) {
        const outer = tree.parent[i] > 0 && within[tree.parent[i]];
        within[i] = outer || matched[tree.frame[i]];
        if (within[i] && !outer && tree.total[i]) nodes.push(i);
    }
    return nodes.sort((a, b) => tree.total[b] - tree.total[a] || a - b).slice(0, most);
}
