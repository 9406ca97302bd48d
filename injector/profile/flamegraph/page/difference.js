// Ranges of time in a difference. Of its two sides, the base and the new one, the page has the samples if all runs have times:
// sides: [{ runs, node, weight, time (us since the run's first sample, each less the one before) }, ...].

const sideNames = ["base", "new"];

function sidesOf(profile) {
    return profile.opened = profile.opened || profile.sides.map((side) => ({ runs: side.runs, node: Int32Array.from(side.node), weight: Float64Array.from(side.weight), times: timesOf(side) }));
}

// PROFILE, a difference, of the RANGES of its sides alone (NULL: all of the side's time). What differs there is not judged.
function differenceWithin(profile, ranges) {
    const { parent } = profile.nodes, count = parent.length;
    const [base, now] = sidesOf(profile).map(({ runs, node, weight, times }, side) => {
        const own = new Float64Array(count), [from, to] = ranges[side] || [-Infinity, Infinity];
        for (let i = 0; i < node.length; i++) if (times[i] >= from && times[i] < to) own[node[i]] += weight[i] / runs;
        return own;
    });
    const weight = base.map((value, node) => Math.max(value, now[node]));
    for (const values of [base, now]) for (let node = count - 1; node > 0; node--) values[parent[node]] += values[node];
    const verdict = Int8Array.from(base, (value, node) => now[node] > value ? 0 : now[node] < value ? 1 : -1);
    return { ...profile, difference: { base, new: now, verdict, isRange: true }, times: new Float64Array(count),
        samples: { node: Int32Array.from(weight, (_, node) => node), thread: new Int32Array(count), weight } };
}

// Both sides as threads along time, for the strip.
function sidesAsThreads(profile) {
    const opened = sidesOf(profile), joined = (column) => opened.flatMap((side) => Array.from(side[column])), times = joined("times");
    const thread = opened.flatMap(({ node }, side) => new Array(node.length).fill(side));
    const last = times.reduce((most, time) => Math.max(most, time), 0);
    return { ...profile, threads: { pid: [0, 0], tid: [0, 1], name: [0, 0], process: [0, 0] }, waiting: null, activities: undefined, start: undefined, length: undefined, lanes: null, first: 0, last: last + 1, times,
        samples: { node: joined("node"), thread, weight: joined("weight") } };
}
