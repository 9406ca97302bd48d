// Colours by kind, and by tier's rank within JIT code; the same for one function in every view.
const rankHues = [null, 36, 58, 80, 104, 132]; // by how much a compiler has done: frames.rank, 0 if it is not known
const kindHues = { jit: 166, interpreter: 32, native: 208, kernel: 6, unknown: 0 };

function hash(text) {
    let value = 7;
    for (let i = 0; i < text.length; i++) value = (value * 31 + text.charCodeAt(i)) >>> 0;
    return value;
}

function isDark() {
    const theme = document.documentElement.dataset.theme;
    return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

// The colours of all frames, for one theme.
function frameColours(profile, dark) {
    return profile.frames.name.map((_, frame) => {
        const kind = kinds[profile.frames.kind[frame]], known = rankHues[profile.frames.rank[frame]];
        const jitter = hash(frameName(profile, frame)) % 16 - 8;
        const saturation = kind === "unknown" ? 0 : kind === "native" ? 38 : 52;
        const light = (dark ? 36 : 74) + (profile.frames.inlined[frame] ? (dark ? -8 : 9) : 0) + jitter / 3;
        return `hsl(${(known || kindHues[kind]) + jitter / 2} ${saturation}% ${light}%)`;
    });
}

// ---- Differences: red is slower, blue is faster, grey is what noise would show as well ----

const differenceHues = [8, 214];

// Full colour where the change is a tenth of all, or more.
function differenceColour(difference, node, dark) {
    const hue = differenceHues[difference.verdict[node]];
    if (hue === undefined) return dark ? "hsl(40 3% 30%)" : "hsl(40 8% 85%)";
    const share = Math.min(Math.abs(difference.new[node] - difference.base[node]) / (difference.base[0] * 0.1 || 1), 1);
    return dark ? `hsl(${hue} ${40 + 30 * share}% ${30 + 14 * share}%)` : `hsl(${hue} ${55 + 35 * share}% ${88 - 26 * share}%)`;
}

// What is on one side alone has a frame.
function differenceOutline(difference, node, dark) {
    const isAlone = !difference.base[node] || !difference.new[node];
    if (!isAlone || differenceHues[difference.verdict[node]] === undefined) return null;
    return difference.new[node] ? (dark ? "#ffb4a2" : "#8c1d0c") : (dark ? "#a9c7ff" : "#123f8c");
}

function differenceWord(difference, node) {
    const [base, now] = [difference.base[node], difference.new[node]];
    const words = difference.isRange ? ["more in this time", "less in this time"] : ["slower", "faster"];
    const word = words[difference.verdict[node]] || (difference.isRange ? "the same in this time" : "no change that noise would not show");
    return word + (!now && base ? ", vanished" : !base && now ? ", new" : "");
}

function differenceLegend(dark, isRange) {
    const example = { base: [10, 0, 1, 0], new: [10, 1, 0, 0], verdict: [2, 0, 1, 2] };
    const words = isRange ? ["more (framed: new)", "less (framed: vanished)", "the same"] : ["slower (framed: new)", "faster (framed: vanished)", "no more than noise"];
    return words.map((word, i) => [word, i + 1]).map(([text, node]) => [text, differenceColour(example, node, dark)]);
}

// What the legend shows: the kinds and tiers that there are.
function legendOf(profile, colours) {
    const items = new Map();
    for (let frame = 0; frame < profile.frames.name.length; frame++) {
        const title = frameKind(profile, frame);
        if (!items.has(title)) items.set(title, colours[frame]);
    }
    return [...items].sort();
}
