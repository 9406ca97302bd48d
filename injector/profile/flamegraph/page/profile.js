// The profile as the page has it: strings, frames, nodes and samples by columns.
// Parents are told by how much lower their numbers are.
// Nodes' columns are texts (numbersOf).
// data: { unit, strings, frames: {name, module, file, line, column, tier, rank, kind, inlined}, nodes: {parent, frame},
//         threads: {pid, tid, name, process}, samples: {node, thread, weight, time} (time in us since the recording's first sample, each
//         less the one before), waiting: the same of off-CPU time, in ns (may be missing), start (the clock at that sample, ms; may be missing),
//         length (from it to the recording's last sample, of whatever event, us; may be missing), activities: a digit for each sample (may be missing),
//         spans: {name, from, to (us since that sample), pid, tid (0: all)} (may be missing),
//         moments: {kind, at, to (us since that sample), thread, before, frame (-1: none), reason, place} (may be missing),
//         difference, sides: of a differential page (difference.js),
//         waits: the samples themselves are of off-CPU time (may be missing) }
function openProfile(data) {
    const samples = samplesOf(data.samples), times = timesOf(data.samples);
    const parent = numbersOf(data.nodes.parent).map((less, i) => i - less), frame = numbersOf(data.nodes.frame);
    frame[0] = parent[0] = -1;
    let first = Infinity, last = 0;
    for (const time of times) {
        first = Math.min(first, time);
        last = Math.max(last, time);
    }
    const profile = { ...data, samples, nodes: { parent, frame }, times, first: Math.min(first, last), last: last + 1, depths: depthsOf(parent) };
    if (data.waiting && data.waiting.node.length) profile.waiting = { ...profile, unit: "ns", samples: samplesOf(data.waiting), times: timesOf(data.waiting), waiting: null, waits: true };
    else profile.waiting = null;
    return profile;
}

function samplesOf({ node, thread, weight }) {
    return { node: Int32Array.from(node), thread: Int32Array.from(thread), weight: Float64Array.from(weight) };
}

// A column of numbers: a list, or a text with digits of five bits, the lowest first, and 32 more in each that another one follows.
function numbersOf(column) {
    if (typeof column !== "string") return Int32Array.from(column);
    const numbers = new Int32Array(column.length), digits = new Uint8Array(128);
    [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"].forEach((letter, digit) => { digits[letter.charCodeAt(0)] = digit; });
    let count = 0, number = 0, shift = 0;
    for (let i = 0; i < column.length; i++) {
        const digit = digits[column.charCodeAt(i)];
        number |= (digit & 31) << shift;
        shift += 5;
        if (digit & 32) continue;
        numbers[count++] = number;
        number = shift = 0;
    }
    return numbers.slice(0, count);
}

function timesOf(samples) {
    const times = Float64Array.from(samples.time);
    for (let i = 1; i < times.length; i++) times[i] += times[i - 1];
    return times;
}

function depthsOf(parents) {
    const depths = new Uint32Array(parents.length);
    for (let i = 1; i < parents.length; i++) depths[i] = depths[parents[i]] + 1;
    return depths;
}

// The children of each node: those of node n are LIST from BEGIN[n] up to BEGIN[n + 1].
function childrenIn(profile) {
    if (profile.children) return profile.children;
    const { parent } = profile.nodes, begin = new Int32Array(parent.length + 1), list = new Int32Array(parent.length);
    for (let i = 1; i < parent.length; i++) begin[parent[i] + 1]++;
    for (let i = 0; i < parent.length; i++) begin[i + 1] += begin[i];
    const next = begin.slice();
    for (let i = 1; i < parent.length; i++) list[next[parent[i]]++] = i;
    profile.children = { begin, list };
    return profile.children;
}

function frameName(profile, frame) {
    return profile.strings[profile.frames.name[frame]];
}

// Whether the samples have times: something ran after something else.
function hasTimes(profile) {
    return profile.last > profile.first + 1;
}

function framePlace(profile, frame) {
    const file = profile.strings[profile.frames.file[frame]];
    const place = [file, profile.frames.line[frame], profile.frames.column[frame]];
    return file ? place.filter((part) => part).join(":") : profile.strings[profile.frames.module[frame]];
}

// The place as it is in a box: the file without its directories.
function shortPlace(profile, frame) {
    const file = profile.strings[profile.frames.file[frame]], line = profile.frames.line[frame];
    return file ? file.slice(file.lastIndexOf("/") + 1) + (line ? ":" + line : "") : "";
}

// What a frame is: the tier, or the kind, and whether it was inlined.
function frameKind(profile, frame) {
    const tier = profile.strings[profile.frames.tier[frame]];
    const kind = kinds[profile.frames.kind[frame]];
    if (profile.isMerged && framesOfSeveralTiers(profile)[frame]) return kind + ", all tiers";
    return (tier ? kind + ", " + tier : kind) + (profile.frames.inlined[frame] ? ", inlined" : "");
}

const kinds = ["jit", "interpreter", "native", "kernel", "unknown"];

// The choices of what is shown: all, each process, each thread.
function scopesOf(profile) {
    const scopes = [{ id: "all", title: "all threads", has: () => true }];
    const seen = new Set();
    const threads = profile.threads;
    const used = new Uint8Array(threads.pid.length); // not those of another event or process
    for (const list of [profile, profile.waiting]) if (list) for (const thread of list.samples.thread) used[thread] = 1;
    for (let i = 0; i < threads.pid.length; i++) {
        if (!used[i]) continue;
        const pid = threads.pid[i];
        if (seen.has("p" + pid)) continue;
        seen.add("p" + pid);
        scopes.push({ id: "p" + pid, title: profile.strings[threads.process[i]] + " " + pid, has: (t) => threads.pid[t] === pid });
    }
    const firstThread = scopes.length;
    for (let i = threads.pid.length - 1; i >= 0; i--) { // a thread's last name is the one that people know
        if (!used[i]) continue;
        const [pid, tid] = [threads.pid[i], threads.tid[i]];
        const id = "t" + pid + "." + tid;
        if (seen.has(id)) continue;
        seen.add(id);
        scopes.splice(firstThread, 0, { id, title: profile.strings[threads.name[i]] + " " + pid + "/" + tid, has: (t) => threads.pid[t] === pid && threads.tid[t] === tid });
    }
    return scopes;
}
