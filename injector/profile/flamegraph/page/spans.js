// Spans of the program along time, above the strip: in rows, each span in the first one that has room for it.
const spanRow = 15, mostSpanRows = 4;

// By row, the numbers of spans. Those that no row has room for are in none.
function spanRows(profile) {
    if (profile.spanRows) return profile.spanRows;
    const { from, to } = profile.spans, rows = [], ends = [];
    for (let i = 0; i < from.length; i++) {
        let row = 0;
        while (row < rows.length && ends[row] > from[i]) row++;
        if (row === mostSpanRows) continue;
        if (row === rows.length) rows.push([]);
        rows[row].push(i);
        ends[row] = to[i];
    }
    return profile.spanRows = rows;
}

function spanName(profile, span) {
    return profile.strings[profile.spans.name[span]];
}

// Of a name the colour stays, whatever else there is.
function spanColour(name, dark) {
    let hash = 0;
    for (const letter of name) hash = (hash * 31 + letter.codePointAt(0)) % 9973;
    return `hsl(${hash * 137 % 360} 45% ${dark ? 34 : 80}%)`;
}

// Spans closer than a pixel to the last one are not drawn: they would lie upon each other.
function drawSpans(canvas, profile, width, dark, scale) {
    const rows = spanRows(profile), height = rows.length * spanRow, context = canvas.getContext("2d"), { from, to } = profile.spans;
    [canvas.width, canvas.height, canvas.style.height] = [Math.round(width * scale), Math.round(height * scale), height + "px"];
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    const place = (us) => (us - profile.first) / (profile.last - profile.first) * width;
    rows.forEach((row, number) => {
        let end = -1;
        for (const span of row) {
            const left = Math.max(place(from[span]), 0), right = Math.min(Math.max(place(to[span]), left + 1), width);
            if (left > width || right < 0 || right < end + 1) continue;
            end = right;
            context.fillStyle = spanColour(spanName(profile, span), dark);
            context.fillRect(left, number * spanRow, Math.max(right - left - 0.5, 0.5), spanRow - 1);
            if (right - left < 24) continue;
            context.save();
            context.beginPath();
            context.rect(left, number * spanRow, right - left - 2, spanRow);
            context.clip();
            context.fillStyle = dark ? "#f2efe9" : "#1a1917";
            context.fillText(spanName(profile, span), left + 3, number * spanRow + spanRow / 2);
            context.restore();
        }
    });
}

// The span at X and Y of the lane, which is WIDTH wide, or -1.
function spanAt(profile, x, y, width) {
    const row = spanRows(profile)[Math.floor(y / spanRow)] || [], { from, to } = profile.spans, pixel = (profile.last - profile.first) / width;
    const at = profile.first + x * pixel;
    let low = 0, high = row.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (from[row[middle]] <= at) low = middle + 1;
        else high = middle;
    }
    return low && at <= Math.max(to[row[low - 1]], from[row[low - 1]] + pixel) ? row[low - 1] : -1;
}

// The time of SPAN, in us: as long as anything that is selected.
function spanRange(profile, span) {
    const { from, to } = profile.spans;
    return [from[span], Math.max(to[span], from[span] + 1)];
}

function spanText(profile, span) {
    const { from, to, pid, tid } = profile.spans, length = to[span] - from[span];
    const of = tid[span] ? "thread " + pid[span] + "/" + tid[span] : pid[span] ? "process " + pid[span] : "";
    return [spanName(profile, span), secondsText(from[span], 100) + " to " + secondsText(to[span], 100) + ": " + (length / 1000).toFixed(2) + " ms", of].filter(Boolean).join("\n");
}
