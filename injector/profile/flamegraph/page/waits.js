// Where threads waited: each wait is a sample that lasts, from its time on, for its weight in ns.

// ADD is told each wait of the threads WANTED and how much of it is in the range.
function addWaits(profile, wanted, [from, to], add) {
    const { thread, weight } = profile.samples, { times } = profile;
    for (let i = 0; i < thread.length; i++) {
        const end = times[i] + weight[i] / 1000;
        if (!wanted[thread[i]] || times[i] >= to || end <= from) continue;
        add(i, times[i] >= from && end <= to ? weight[i] : Math.round((Math.min(end, to) - Math.max(times[i], from)) * 1000));
    }
}

// All lanes, each with its waits by time; a thread that never ran has one, too.
function lanesWithWaits(profile) {
    const lanes = lanesOf(profile);
    if (!profile.waiting || profile.waitingLanes) return profile.waitingLanes || lanes;
    const { pid, tid } = profile.threads, { thread } = profile.waiting.samples, { times } = profile.waiting;
    const usual = lanes.length ? lanes[0].usual : 1000, byId = new Map();
    for (const lane of lanes) byId.set(lane.pid + "." + lane.tid, { ...lane, waits: [] });
    for (let i = 0; i < thread.length; i++) {
        const id = pid[thread[i]] + "." + tid[thread[i]];
        if (!byId.has(id)) byId.set(id, { pid: pid[thread[i]], tid: tid[thread[i]], thread: thread[i], samples: [], waits: [], usual });
        byId.get(id).waits.push(i);
    }
    for (const { waits } of byId.values()) waits.sort((a, b) => times[a] - times[b]);
    return profile.waitingLanes = [...byId.values()].sort((a, b) => a.pid - b.pid || b.samples.length - a.samples.length);
}

function waitColour(dark) {
    return dark ? "#4d4637" : "#efe2b8";
}

// The waits of LANE below what ran: the columns of which they have the larger part.
function drawWaits(context, profile, lane, { y, height, width, dark }) {
    if (!lane.waits) return;
    const { times, samples } = profile.waiting, scale = width / (profile.last - profile.first), shares = new Float64Array(width);
    for (const wait of lane.waits) {
        const from = Math.max((times[wait] - profile.first) * scale, 0), to = Math.min((times[wait] - profile.first + samples.weight[wait] / 1000) * scale, width);
        for (let column = Math.floor(from); column < to; column++) shares[column] += Math.min(to, column + 1) - Math.max(from, column);
    }
    context.fillStyle = waitColour(dark);
    for (let from = 0; from < width;) {
        let to = from;
        while (to < width && shares[to] >= 0.5) to++;
        if (to > from) context.fillRect(from, y, to - from, height > 3 ? height - 1 : height);
        from = Math.max(to, from) + 1;
    }
}

// What a wait at the stack LAST was in: the innermost function that is compiled, or interpreted, or else the innermost of the kernel's
// callers.
function waitedIn(profile, last) {
    const { parent, frame } = profile.nodes, kindOf = (node) => kinds[profile.frames.kind[frame[node]]];
    let own = last, native = last;
    while (own && kindOf(own) !== "jit" && kindOf(own) !== "interpreter") own = parent[own];
    while (native && kindOf(native) === "kernel") native = parent[native];
    return own || native || last;
}

// The threads of SCOPE that waited, the longest first: how long, and in which frame (-1: in none) most of it.
function waitingThreads(profile, scope) {
    const { pid, tid } = profile.threads, { thread, node } = profile.samples, { frame } = profile.nodes, threads = new Map(), functions = functionsOf(profile), shown = new Map();
    const frameOf = (last) => {
        if (!shown.has(last)) shown.set(last, last ? frame[waitedIn(profile, last)] : -1);
        return shown.get(last);
    };
    addWeights(profile, scope, (i, weight) => {
        const id = pid[thread[i]] + "." + tid[thread[i]], own = frameOf(node[i]), key = own < 0 ? -1 : functions[own];
        if (!threads.has(id)) threads.set(id, { id, thread: thread[i], total: 0, frames: new Map() });
        const waits = threads.get(id), most = waits.frames.get(key) || { frame: own, total: 0 };
        waits.thread = thread[i]; // its last name
        waits.total += weight;
        most.total += weight;
        waits.frames.set(key, most);
    });
    const falling = (a, b) => b.total - a.total;
    return [...threads.values()].filter(({ total }) => total).sort(falling).map((waits) => ({ ...waits, most: [...waits.frames.values()].sort(falling)[0] }));
}

// What LANE's thread waited in at AT; null: it did not wait.
function waitText(profile, lane, at) {
    const { waiting } = profile, waits = lane.waits || [];
    let low = 0, high = waits.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (waiting.times[waits[middle]] <= at) low = middle + 1;
        else high = middle;
    }
    const wait = waits[low - 1];
    if (wait === undefined || waiting.times[wait] + waiting.samples.weight[wait] / 1000 < at) return null;
    const { frame } = profile.nodes, last = waiting.samples.node[wait], shown = waitedIn(profile, last), why = last && frameName(profile, frame[last]) === "[preempted]" ? "waits for a processor" : "waits";
    return why + " " + amount(profile.waiting, waiting.samples.weight[wait]) + (shown ? " in " + frameName(profile, frame[shown]) : "");
}
