// What is left of a profile when frames are hidden or folded. The time of a hidden frame is its caller's, so that all sums stay.

// Whose code a frame is: one bit for each, of which a frame may have several.
const hideable = ["kernel", "native", "runtime", "libraries", "others"];
const foldable = ["recursion", "tiers"];
const titles = { kernel: "kernel", native: "native", runtime: "runtime", libraries: "libraries", others: "my code", recursion: "recursion", tiers: "tiers" };
const explanations = { kernel: "Hide the kernel's functions", native: "Hide programs and libraries in machine code",
    runtime: "Hide what belongs to the runtime: node:internal, V8's builtins, the JVM, libuv, the loop of an interpreter",
    libraries: "Hide what is in node_modules, site-packages, vendor, /usr, the JDK", others: "Show my code alone: hide all that the other buttons hide",
    recursion: "A function stands once in a stack", tiers: "All tiers and bodies of a function are one" };

// The first is what perfjit record has node read in front of a program.
const runtimeFiles = /(^|\/)perfjit-\w{6}\/settings\/|^(node:|internal\/|<?native |ext:|bun:|deno:)/;
const runtimeModules = /^(libjvm|libpython|libruby|libnode|libv8|libuv|libcoreclr|libclrjit|libmono|libjavascriptcoregtk|opcache|libluajit)[^/]*\.so|^(node|beam\.smp|php[\d.]*|python[\d.]*|luajit|bun|deno|ruby)$/;
const runtimeNames = /^(Builtin:|RegExp:|Builtins_|BytecodeHandler:|StubRoutines|call_stub$|I2C\/C2I|vtable stub|itable stub|AdapterBlob|[\w ]+([Ss]tub|Blob)$|\w+_arraycopy\w*$|\w+_barrier_slow$|_\w+_Java$|resolve_\w+_call$|Interpreter$|v8::|node::|uv_|uv__|_?Py[A-Z_]|execute_ex$|zend_|JSC::|WTF::|llint_|erts_|global::|beam_|process_main$|init:|proc_lib:|erl_|JavaCalls|vm_exec|mono_|[~\w]*[Tt]rampoline)/;
const libraryFiles = /(^|\/)(node_modules|site-packages|dist-packages|gems|vendor)\/|^\/(usr|opt|lib)\/|^file:\/\/\/usr\/|^(java|javax|jdk|sun)\//;
const libraryNames = new RegExp("^([\\w.$<>[\\], ]+ )?(java|javax|jdk|sun)\\.[^\\s(:]*([(:]|$)|" + // behind its return type, if it has one; Erlang's OTP:
    "^(lists|maps|dict|sets|gb_\\w+|ord\\w+|ets|string|binary|re|io\\w*|file\\w*|gen\\w*|supervisor|proc_lib|sys|timer|unicode|rand|queue|erl_\\w+|erlang|init|code\\w*|" +
    "application\\w*|error_\\w+|logger\\w*|prim_\\w+|beam_\\w+|epp|compile):\\S+/\\d+$");

// By frame: the bits of those of hideable that hide it.
function* ownerSteps(profile) {
    const bit = (word) => 1 << hideable.indexOf(word), { kind, module, file } = profile.frames;
    const isCompiled = kind.some((number) => number < 2); // of a program that is native, native code is one's own
    const owners = new Uint8Array(kind.length), isOwn = new Uint8Array(kind.length);
    for (let frame = 0; frame < kind.length; frame++) {
        const number = kind[frame], name = frameName(profile, frame), path = profile.strings[file[frame]], binary = profile.strings[module[frame]];
        let bits = 0;
        if (kinds[number] === "kernel") bits |= bit("kernel");
        if (kinds[number] === "native" || kinds[number] === "unknown") bits |= bit("native");
        if (runtimeFiles.test(path) || (!path && runtimeNames.test(name)) || (kinds[number] === "native" && (runtimeModules.test(binary) || runtimeNames.test(name))) ||
            (kinds[number] === "interpreter" && !path)) bits |= bit("runtime");
        if (libraryFiles.test(path) || (kinds[number] !== "kernel" && libraryNames.test(name))) bits |= bit("libraries");
        isOwn[frame] = isCompiled ? !bits : !(bits & ~bit("native")) && kinds[number] === "native" && !/\.so(\.|$)|^\[/.test(binary);
        owners[frame] = bits;
        if (frame % 512 === 511) yield;
    }
    const isLibrary = !isOwn.includes(1); // where nothing else is one's own, as of npx, a library is what was run
    for (let frame = 0; frame < kind.length; frame++) if (!isOwn[frame] && !(isLibrary && isCompiled && owners[frame] === bit("libraries"))) owners[frame] |= bit("others");
    return owners;
}

// PROFILE without the frames that HIDE names, folded as FOLD says; itself if there is nothing to do. hidden: by frame, what hides it.
function* filterSteps(profile, hide, fold) {
    if (!hide.length && !fold.length) return profile;
    if (hide.length) profile.owners = profile.owners || (yield* ownerSteps(profile));
    const wanted = hide.reduce((bits, word) => bits | 1 << hideable.indexOf(word), 0);
    const hidden = Uint8Array.from(profile.frames.name, (_, number) => wanted ? profile.owners[number] & wanted : 0);
    const functions = functionsOf(profile), isMerged = fold.includes("tiers"), isFolded = fold.includes("recursion");
    yield;
    const firstOf = new Int32Array(functions.length).fill(-1);
    const shownAs = Int32Array.from(functions, (own, number) => {
        if (!isMerged || hidden[number]) return number;
        if (firstOf[own] < 0) firstOf[own] = number;
        return firstOf[own];
    });
    const { parent, frame } = profile.nodes, count = parent.length;
    const to = new Int32Array(count), [parents, frames, depths, child, next] = Array.from({ length: 5 }, () => new Int32Array(count)), further = new Map();
    yield;
    let made = 1;
    const place = (above, number) => { // the node of a frame below another, which is made if there is none
        let seen = 0; // the first 16 children are a list, further ones are in a table
        for (let at = child[above]; at; at = next[at], seen++) if (frames[at] === number) return at;
        const node = made, key = above * functions.length + number;
        if (seen < 16) {
            next[node] = child[above];
            child[above] = node;
        } else if (further.has(key)) return further.get(key);
        else further.set(key, node);
        parents[node] = above;
        frames[node] = number;
        depths[node] = depths[above] + 1;
        made++;
        return node;
    };
    parents[0] = frames[0] = -1;
    for (let i = 1; i < count; i++) {
        const above = to[parent[i]], own = frame[i];
        if (hidden[own]) to[i] = above;
        else {
            let outer = isFolded ? above : 0;
            while (outer && functions[frames[outer]] !== functions[own]) outer = parents[outer];
            to[i] = outer || place(above, shownAs[own]);
        }
        if (i % 4096 === 0) yield;
    }
    const nodes = { parent: parents.slice(0, made), frame: frames.slice(0, made) };
    const difference = profile.difference && foldDifference(profile, to, nodes.parent);
    yield;
    const node = new Int32Array(profile.samples.node.length);
    for (let i = 0; i < node.length; i++) node[i] = to[profile.samples.node[i]];
    return { ...profile, difference, nodes, samples: { ...profile.samples, node }, depths: depths.slice(0, made), children: null, outermost: null, timeRows: null, hidden, isMerged, source: profile };
}

// The values of both sides by the nodes that TO leads to, of which PARENTS are the callers: what each node has itself, added up anew.
// The verdict is that of the largest stack of those that are one.
function foldDifference({ difference, nodes }, to, parents) {
    const largest = new Float64Array(parents.length).fill(-1), verdict = new Int8Array(parents.length);
    for (let i = 0; i < to.length; i++) {
        const most = Math.max(difference.base[i], difference.new[i]);
        if (most > largest[to[i]]) [largest[to[i]], verdict[to[i]]] = [most, difference.verdict[i]];
    }
    return { base: foldValues(difference.base, nodes.parent, to, parents), new: foldValues(difference.new, nodes.parent, to, parents), verdict };
}

function foldValues(values, from, to, parents) {
    const own = ownValues(values, from), folded = new Float64Array(parents.length);
    for (let i = 0; i < own.length; i++) folded[to[i]] += own[i];
    for (let i = folded.length - 1; i > 0; i--) folded[parents[i]] += folded[i];
    return folded;
}

function ownValues(values, parents) {
    const own = Float64Array.from(values);
    for (let i = 1; i < own.length; i++) own[parents[i]] -= values[i];
    return own;
}

// Of a difference's SIDE: the time of hidden frames themselves, and all.
function hiddenValue({ source, hidden }, side) {
    const { parent, frame } = source.nodes, values = source.difference[side];
    return [ownValues(values, parent).reduce((sum, own, node) => sum + (node && hidden[frame[node]] ? own : 0), 0), values[0]];
}

// How much of SCOPE is the time of hidden frames themselves: of each of hideable, and of all.
function hiddenWeight(filtered, scope) {
    const { source, hidden } = filtered, of = hideable.map(() => 0);
    let all = 0;
    if (!source) return { of, all };
    addWeights(source, scope, (i, weight) => {
        const node = source.samples.node[i], bits = node ? hidden[source.nodes.frame[node]] : 0;
        if (!bits) return;
        all += weight;
        of[31 - Math.clz32(bits & -bits)] += weight; // the first that hides it
    });
    return { of, all };
}
