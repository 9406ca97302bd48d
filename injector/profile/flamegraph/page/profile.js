// The profile as the page has it: strings, frames, nodes and samples by columns.
// Parents are told by how much lower their numbers are.
// data: { unit, strings, frames: {name, module, file, line, column, tier, kind, inlined}, nodes: {parent, frame},
//         threads: {pid, tid, name, process}, samples: {node, thread, weight, time} (time in us, each less the one before) }
function openProfile(data) {
    const times = new Float64Array(data.samples.time.length);
    let now = 0;
    for (let i = 0; i < times.length; i++) times[i] = now += data.samples.time[i];
    const parent = Int32Array.from(data.nodes.parent, (less, i) => i - less);
    return { ...data, nodes: { parent, frame: Int32Array.from(data.nodes.frame) }, times, depths: depthsOf(parent) };
}

function depthsOf(parents) {
    const depths = new Uint32Array(parents.length);
    for (let i = 1; i < parents.length; i++) depths[i] = depths[parents[i]] + 1;
    return depths;
}

function frameName(profile, frame) {
    return profile.strings[profile.frames.name[frame]];
}

function framePlace(profile, frame) {
    const file = profile.strings[profile.frames.file[frame]];
    const place = [file, profile.frames.line[frame], profile.frames.column[frame]];
    return file ? place.filter((part) => part).join(":") : profile.strings[profile.frames.module[frame]];
}

// What a frame is: the tier, or the kind, and whether it was inlined.
function frameKind(profile, frame) {
    const tier = profile.strings[profile.frames.tier[frame]];
    const kind = kinds[profile.frames.kind[frame]];
    return (tier ? kind + ", " + tier : kind) + (profile.frames.inlined[frame] ? ", inlined" : "");
}

const kinds = ["jit", "interpreter", "native", "kernel", "unknown"];

// The choices of what is shown: all, each process, each thread.
function scopesOf(profile) {
    const scopes = [{ id: "all", title: "all threads", has: () => true }];
    const seen = new Set();
    const threads = profile.threads;
    const used = new Uint8Array(threads.pid.length); // not those of another event or process
    for (const thread of profile.samples.thread) used[thread] = 1;
    for (let i = 0; i < threads.pid.length; i++) {
        if (!used[i]) continue;
        const pid = threads.pid[i];
        if (seen.has("p" + pid)) continue;
        seen.add("p" + pid);
        scopes.push({ id: "p" + pid, title: profile.strings[threads.process[i]] + " " + pid, has: (t) => threads.pid[t] === pid });
    }
    for (let i = 0; i < threads.pid.length; i++) {
        if (!used[i]) continue;
        const [pid, tid] = [threads.pid[i], threads.tid[i]];
        const id = "t" + pid + "." + tid;
        if (seen.has(id)) continue;
        seen.add(id);
        scopes.push({ id, title: profile.strings[threads.name[i]] + " " + pid + "/" + tid, has: (t) => threads.pid[t] === pid && threads.tid[t] === tid });
    }
    return scopes;
}
