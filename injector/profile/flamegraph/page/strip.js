// Time: the axis, and the strip above all views, which has all threads as lanes from the first sample to the last.
const axisHeight = 20, momentsHeight = 12, leastLane = 2, mostLane = 12, mostLanesHeight = 128;
const activities = ["JIT code", "interpreter", "garbage collector", "JIT compilers", "native code", "kernel", "without a name"];
const activityHues = [[104, 48], [36, 60], [320, 62], [275, 55], [208, 40], [12, 58], [0, 0]];

function activityColour(activity, dark) {
    const [hue, saturation] = activityHues[activity];
    return `hsl(${hue} ${saturation}% ${dark ? 46 : 62}%)`;
}

// The distance of an axis' ticks in us, so that one is at least LEAST pixels wide: 1, 2 or 5 of a power of ten.
function tickDistance(span, width, least) {
    const wanted = Math.max(span * least / width, 1), power = 10 ** Math.floor(Math.log10(wanted));
    return power * [1, 2, 5, 10].find((step) => step * power >= wanted * 0.999999);
}

// US as seconds, as exactly as ticks DISTANCE apart need.
function secondsText(us, distance) {
    return (us / 1e6).toFixed(Math.max(0, Math.min(6, Math.ceil(6 - Math.log10(distance) - 1e-9)))) + " s";
}

// The clock's time, here; START is that of time 0 in ms.
function clockText(start, us, distance) {
    const at = new Date(start + us / 1000), two = (number) => String(number).padStart(2, "0");
    const digits = Math.max(0, Math.min(6, Math.ceil(6 - Math.log10(distance) - 1e-9)));
    const fraction = ((start * 1000 + us) % 1e6 / 1e6).toFixed(6).slice(1, digits ? 2 + digits : 1);
    return two(at.getHours()) + ":" + two(at.getMinutes()) + ":" + two(at.getSeconds()) + fraction;
}

function ticksOf(from, to, width, least) {
    const distance = tickDistance(to - from, width, least), ticks = [];
    for (let n = Math.ceil(from / distance); n * distance <= to && ticks.length < 1000; n++) ticks.push(n * distance);
    return { distance, ticks };
}

function drawAxis(context, profile, { from, to, y, width, dark }) {
    const hasClock = profile.start !== undefined, { distance, ticks } = ticksOf(from, to, width, hasClock ? 170 : 90);
    context.fillStyle = dark ? "#26272b" : "#fffefb";
    context.fillRect(0, y, width, axisHeight);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    for (const tick of ticks) {
        const x = (tick - from) / (to - from) * width;
        context.fillStyle = dark ? "#66676d" : "#b9b3a8";
        context.fillRect(x, y, 1, axisHeight);
        context.fillStyle = dark ? "#d6d2ca" : "#3d3a36";
        const text = secondsText(tick, distance) + (hasClock ? "  " + clockText(profile.start, tick, distance) : "");
        if (x + 4 + context.measureText(text).width <= width) context.fillText(text, x + 4, y + axisHeight / 2); // half a number says another time
    }
}

function activityOf(profile, sample) {
    return profile.activities ? profile.activities.charCodeAt(sample) - 48 : 6;
}

// Which activity a thread had most in each of WIDTH columns; 255: it did not run.
function laneColumns(profile, lane, from, to, width) {
    const sums = new Float64Array(width * 7), scale = width / (to - from), columns = new Uint8Array(width).fill(255);
    for (const sample of lane.samples) {
        const at = Math.min(Math.max(Math.floor((profile.times[sample] - from) * scale), 0), width - 1), activity = activityOf(profile, sample);
        const end = Math.min(Math.floor((profile.times[sample] - from + lane.usual) * scale), width - 1);
        for (let column = at; column <= Math.max(at, end); column++) sums[column * 7 + activity] += profile.samples.weight[sample];
    }
    for (let column = 0; column < width; column++)
        for (let activity = 0, best = 0; activity < 7; activity++)
            if (sums[column * 7 + activity] > best) {
                best = sums[column * 7 + activity];
                columns[column] = activity;
            }
    return columns;
}

// Lane height, and how many lanes there is room for.
function laneSizes(count) {
    const height = Math.max(leastLane, Math.min(mostLane, Math.floor(mostLanesHeight / Math.max(count, 1))));
    return { height, count: Math.min(count, Math.floor(mostLanesHeight / height)) };
}

// What is above the lanes: the axis, and the moments if there are any.
function aboveLanes(moments) {
    return axisHeight + (moments.length ? momentsHeight : 0);
}

// The part of the strip that stays while ranges are selected, as a picture.
function drawLanes(profile, moments, width, dark, scale) {
    const lanes = lanesWithWaits(profile), { height, count } = laneSizes(lanes.length), above = aboveLanes(moments);
    const picture = document.createElement("canvas");
    [picture.width, picture.height] = [Math.round(width * scale), Math.round((above + count * height) * scale)];
    const context = picture.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    drawAxis(context, profile, { from: profile.first, to: profile.last, y: 0, width, dark });
    drawMoments(context, moments, { from: profile.first, to: profile.last, top: axisHeight, height: momentsHeight, width, dark });
    for (let n = 0; n < count; n++) {
        drawWaits(context, profile, lanes[n], { y: above + n * height, height, width, dark });
        const columns = laneColumns(profile, lanes[n], profile.first, profile.last, width);
        for (let from = 0; from < width;) {
            let to = from + 1;
            while (to < width && columns[to] === columns[from]) to++;
            if (columns[from] < 7) {
                context.fillStyle = activityColour(columns[from], dark);
                context.fillRect(from, above + n * height, to - from, height > 3 ? height - 1 : height);
            }
            from = to;
        }
    }
    return picture;
}

// A range as people and the address have it: seconds.
function rangeText([from, to]) {
    const short = (us) => String(+(us / 1e6).toFixed(6));
    return short(from) + "-" + short(to);
}

// FROM-TO of PROFILE, either may be missing, in us; NULL: that is no range.
function readRange(text, profile) {
    const found = /^([^-–]*)[-–]([^-–]*)$/.exec(text || "");
    if (!found || !found.slice(1).some((word) => word.trim())) return null;
    const [from, to] = [[found[1], profile.first], [found[2], profile.last]].map(([word, end]) => word.trim() ? readTime(word.trim(), profile) : end);
    return to > from ? [from, to] : null;
}

// Seconds since the first sample, percent of the time from it to the last, or the clock's time, as perfjit's --time has them. NaN: none.
function readTime(word, { last, length, start }) {
    const number = "(\\d+\\.?\\d*|\\.\\d+)", [, seconds, percents] = new RegExp("^" + number + "\\s*s?$|^" + number + "\\s*%$").exec(word) || [];
    if (seconds) return Math.round(seconds * 1e9) / 1e3; // 1.030879 * 1e6 is more than 1030879, and a sample there is not before it
    if (percents) return percents >= 100 ? last : percents / 100 * (length === undefined ? last - 1 : length); // the last sample is in the last percent
    const [, hour, minute, second] = /^(\d\d?):(\d\d)(?::(\d\d(?:\.\d*)?))?$/.exec(word) || [];
    if (!hour || start === undefined) return NaN;
    const at = new Date(start), begun = at.getHours() * 3600 + at.getMinutes() * 60 + at.getSeconds() + start % 1000 / 1000;
    const since = hour * 3600 + minute * 60 + Number(second || 0) - begun, day = 86400;
    return (since < -day / 2 ? since + day : since > day / 2 ? since - day : since) * 1e6;
}
