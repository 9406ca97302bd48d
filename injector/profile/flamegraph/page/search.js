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
