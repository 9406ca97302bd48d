// Moments: when a function was first seen in a higher tier than before (tier), when it was back in a lower one (deopt), and when garbage
// was collected (gc), as far as samples show it. at and to are in us.

const momentKinds = ["tier", "deopt", "gc"];
const momentNames = { tier: "tier-up", deopt: "deoptimised", gc: "garbage collection" };

// All of PROFILE's, by time, in steps.
function* momentSteps(profile) {
    const moments = [], lanes = lanesOf(profile);
    if (framesOfSeveralTiers(profile).includes(1)) for (const lane of lanes) yield* tierMoments(profile, lane, moments);
    moments.push(...collections(profile, lanes));
    return moments.sort((a, b) => a.at - b.at || momentKinds.indexOf(a.kind) - momentKinds.indexOf(b.kind));
}

// In a thread a function's tier is that of its innermost call. Calls that began before it was compiled anew go on in the lower tier, so
// two samples in that, and none in the higher one between, say that it was given up.
function* tierMoments(profile, lane, moments) {
    const { parent, frame } = profile.nodes, { node } = profile.samples, { rank } = profile.frames, { times } = profile;
    const functions = functionsOf(profile), several = framesOfSeveralTiers(profile), now = new Map();
    let steps = 0;
    for (const sample of lane.samples) {
        const seen = new Set();
        for (let at = node[sample]; at > 0; at = parent[at]) {
            const own = frame[at];
            if (++steps % 4096 === 0) yield;
            if (!several[own] || !rank || !rank[own] || seen.has(functions[own])) continue;
            seen.add(functions[own]);
            const last = now.get(functions[own]);
            if (!last) now.set(functions[own], { frame: own, lower: null });
            else if (rank[own] === rank[last.frame]) last.lower = null;
            else if (rank[own] > rank[last.frame]) moments.push(moved(last, own, sample, "tier"));
            else if (!last.lower) last.lower = { frame: own, sample };
            else moments.push(moved(last, last.lower.frame, last.lower.sample, "deopt"));
        }
    }
    function moved(last, to, sample, kind) {
        const moment = { kind, at: times[sample], to: times[sample], thread: lane.thread, before: last.frame, frame: to };
        last.frame = to;
        last.lower = null;
        return moment;
    }
}

// Samples of collectors in any thread that are no further apart than samples usually are belong to one collection.
function collections(profile, lanes) {
    const { times } = profile, parts = [];
    for (const { samples, usual } of lanes)
        for (const sample of samples) if (activityOf(profile, sample) === 2) parts.push([times[sample], times[sample] + usual, usual]);
    parts.sort((a, b) => a[0] - b[0]);
    const found = [];
    for (const [from, to, usual] of parts) {
        const last = found[found.length - 1];
        if (last && from - last.to <= 2 * usual) last.to = Math.max(last.to, to);
        else found.push({ kind: "gc", at: from, to, thread: -1, frame: -1 });
    }
    return found;
}

// The moments from FROM to TO of those in order.
function momentsWithin(moments, from, to) {
    let low = 0, high = moments.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (moments[middle].at < from) low = middle + 1;
        else high = middle;
    }
    const found = [];
    for (; low < moments.length && moments[low].at <= to; low++) found.push(moments[low]);
    return found;
}

function momentText(profile, { kind, at, to, before, frame }) {
    const time = secondsText(at, 1000) + (profile.start === undefined ? "" : "  " + clockText(profile.start, at, 1000)) + "  ";
    if (kind === "gc") return time + momentNames.gc + ", " + ((to - at) / 1000).toFixed(1) + " ms";
    return time + frameName(profile, frame) + ": " + momentNames[kind] + ", from " + frameKind(profile, before) + " to " + frameKind(profile, frame);
}

function momentColour(kind, dark) {
    return kind === "tier" ? (dark ? "#7bd65c" : "#2c8a12") : kind === "deopt" ? (dark ? "#ff8a75" : "#c9200a") : activityColour(2, dark);
}

// Of HEIGHT, the lower part: tiers point up, deopts down, and a collection is as long as it was.
function drawMoments(context, moments, { from, to, top, height, width, dark }) {
    const at = (us) => (us - from) / (to - from) * width;
    for (const kind of ["gc", "tier", "deopt"]) {
        context.fillStyle = momentColour(kind, dark);
        for (const moment of moments) {
            const x = at(moment.at), end = at(moment.to);
            if (moment.kind !== kind || end < 0 || x > width) continue;
            if (kind === "gc") context.fillRect(x, top + height - 3, Math.max(end - x, 1), 3);
            else for (let row = 0; row < 4; row++) {
                const half = kind === "tier" ? row : 3 - row;
                context.fillRect(x - half / 2 - 0.5, top + height - 11 + row * 2, half + 1, 2);
            }
        }
    }
}
