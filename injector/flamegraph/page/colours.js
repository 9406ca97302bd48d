// Colours by kind, and by tier within JIT code; the same for one function in every view.
const tierHues = [["TurboFan", 96], ["Maglev", 76], ["Sparkplug", 56], ["bytecode", 44], ["FTL", 96], ["DFG", 76], ["Baseline", 56],
    ["LLInt", 44], ["tier2", 96], ["tier1", 62], ["Tier1", 96], ["OptimizedTier1", 96]];
const kindHues = { jit: 120, interpreter: 40, native: 208, kernel: 18, unknown: 0 };

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
        const tier = profile.strings[profile.frames.tier[frame]];
        const kind = kinds[profile.frames.kind[frame]];
        const known = tierHues.find(([name]) => tier && tier.includes(name));
        const jitter = hash(frameName(profile, frame)) % 16 - 8;
        const saturation = kind === "unknown" ? 0 : kind === "native" ? 38 : 52;
        const light = (dark ? 36 : 74) + (profile.frames.inlined[frame] ? (dark ? -8 : 9) : 0) + jitter / 3;
        return `hsl(${(known ? known[1] : kindHues[kind]) + jitter / 2} ${saturation}% ${light}%)`;
    });
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
