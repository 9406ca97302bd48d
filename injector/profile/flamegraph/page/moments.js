// Moments: when a function was first seen in a higher tier than before (tier), when its code was given up (deopt), and when garbage was
// collected (gc). perfjit has found them; at and to are in us.

const momentKinds = ["tier", "deopt", "gc"];
const momentNames = { tier: "tier-up", deopt: "deoptimised", gc: "garbage collection" };

// All of PROFILE's, by time. before and frame, what ran before and then, and thread: -1 for none. reason, place: what the runtime told of a
// deopt; else "".
function momentsOf({ moments, strings }) {
    return moments ? moments.at.map((at, i) => ({ kind: momentKinds[moments.kind[i]], at, to: moments.to[i], thread: moments.thread[i],
        before: moments.before[i], frame: moments.frame[i], reason: strings[moments.reason[i]], place: strings[moments.place[i]] })) : [];
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

// The frame that a moment is of; -1: of none.
function momentFrame({ before, frame }) {
    return frame < 0 ? before : frame;
}

function momentText(profile, moment) {
    const { kind, at, to, before, frame, reason, place } = moment;
    const time = secondsText(at, 1000) + (profile.start === undefined ? "" : "  " + clockText(profile.start, at, 1000)) + "  ";
    if (kind === "gc") return time + momentNames.gc + ", " + ((to - at) / 1000).toFixed(1) + " ms";
    return time + frameName(profile, momentFrame(moment)) + ": " + momentNames[kind] + ", from " + frameKind(profile, before) +
        (frame < 0 ? "" : " to " + frameKind(profile, frame)) + (reason ? ": " + reason + (place ? ", " + place : "") : "");
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
