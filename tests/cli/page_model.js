// What the page has no need of, since it makes trees in steps: all of it at once, for tests of the model.

// Self and total time of each function, by name and place: recursion counts once. As perfjit report has them.
function functionTotals(profile, scope) {
    const tree = flameTree(profile, scope), functions = functionsOf(profile);
    const key = (frame) => functions[frame];
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

function invertedTree(profile, scope) {
    return finish(invertedTreeSteps(profile, scope));
}

function ownersOf(profile) {
    return profile.owners = profile.owners || finish(ownerSteps(profile));
}

function filterProfile(profile, hide, fold) {
    return finish(filterSteps(profile, hide, fold));
}
