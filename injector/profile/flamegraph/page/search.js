// What is searched for: text in a function's name or place, or /an expression/. NULL: nothing.
function matcher(text) {
    if (!text) return null;
    if (isExpression(text)) {
        const expression = readExpression(text);
        return (name) => expression !== null && expression.test(name);
    }
    const wanted = text.toLowerCase();
    return (name) => name.toLowerCase().includes(wanted);
}

function isExpression(text) {
    return text.length > 2 && text[0] === "/" && text.endsWith("/");
}

// NULL: it is not a right one.
function readExpression(text) {
    try {
        return new RegExp(text.slice(1, -1), "i");
    } catch {
        return null;
    }
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

// By node: 1 if it or one of its callers matches.
function nodesWithin(profile, matched) {
    const { parent, frame } = profile.nodes, within = new Uint8Array(parent.length);
    for (let i = 1; i < within.length; i++) within[i] = within[parent[i]] | matched[frame[i]];
    return within;
}

// Whether one of ROW's samples from FROM to TO is at a node of WANTED.
function rowHasNode(profile, row, [from, to], wanted) {
    for (let n = sampleFrom(profile, row, from); n < row.samples.length && profile.times[row.samples[n]] < to; n++)
        if (wanted[profile.samples.node[row.samples[n]]]) return true;
    return false;
}

// Of BOXES, a row's of the time view by time, those that match and are in no other one that does.
function outermostBoxes(boxes, matched) {
    let outer = null;
    return boxes.filter((box) => {
        if (!matched[box.frame] || (outer && box.from < outer.to && box.depth > outer.depth)) return false;
        outer = box;
        return true;
    });
}
