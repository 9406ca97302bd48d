// Drawing: boxes of a tree, or of the time view, in the part that is zoomed in to.
const rowHeight = 20, leastWidth = 0.4, leastTime = 1.5, leastText = 30, leastFrame = 6;

// On paper all rows are drawn, as far as a browser makes such a canvas, for a sheet that lies: a page's pixels are a millimetre's quarter.
const mostPrinted = 700, mostSharp = 200, paperWidth = 1040, paperRows = 4;

// Pixels of a canvas with ROWS for each of the page's: those of a printer are smaller.
function scaleOf(isPrinted, rows) {
    return isPrinted ? (rows > mostSharp ? 1 : 2) : devicePixelRatio || 1;
}

// A copy of CANVAS in PAPER, in pieces of a few rows: no browser breaks a picture between rows, and one that is higher than the rest of
// a sheet would leave that empty.
function cutForPaper(canvas, paper) {
    const scale = canvas.width / parseFloat(canvas.style.width), high = Math.round(paperRows * rowHeight * scale);
    for (let top = 0; top < canvas.height; top += high) {
        const piece = document.createElement("canvas");
        [piece.width, piece.height] = [canvas.width, Math.min(high, canvas.height - top)];
        piece.getContext("2d").drawImage(canvas, 0, -top);
        paper.append(piece);
    }
}

// A canvas as wide as STAGE and as high as what is seen of it; rows begin at stage.scrollTop.
function sizeCanvas(canvas, stage, rows, isPrinted) {
    const scale = scaleOf(isPrinted, rows);
    const width = stage.clientWidth;
    const height = Math.max(Math.min(rows * rowHeight, isPrinted ? mostPrinted * rowHeight : stage.clientHeight), 60);
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
    canvas.parentElement.style.height = Math.max(rows * rowHeight, height) + "px"; // all rows: a sticky picture stays within what it stands in
    const pixels = [Math.round(width * scale), Math.round(height * scale)];
    if (canvas.width !== pixels[0] || canvas.height !== pixels[1]) [canvas.width, canvas.height] = pixels;
    const context = canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    return { context, width, height, scale, top: isPrinted ? 0 : stage.scrollTop, thin: [], wide: [] };
}

// PLACE is where the function is, shown if there is room.
function drawBox(surface, box, text, style, place) {
    box.style = style;
    if (box.width < (style.outline ? leastFrame : leastText)) surface.thin.push(box);
    else surface.wide.push([box, text, place]);
}

// What is drawn is seen after endDrawing.
function endDrawing(surface) {
    if (surface.thin.length) fillThin(surface);
    for (const box of surface.thin) drawMarks(surface.context, box);
    for (const [box, text, place] of surface.wide) drawWide(surface.context, box, text, place);
}

// There are tens of thousands of boxes without text, and to have each drawn takes longer than all else: they are put in as pixels.
// Of one that is thinner still than a frame around it, all is frame.
function fillThin({ context, thin, scale }) {
    const { width, height } = context.canvas, image = clearImage(context, width, height);
    const pixels = new Uint32Array(image.data.buffer);
    for (const box of thin) fillPixels(pixels, width, height, box, scale, pixelOf(context, box.style.outline || box.style.fill));
    context.putImageData(image, 0, 0);
}

// An empty image. It is a large one, and kept for the next time.
let kept = null;
function clearImage(context, width, height) {
    if (!kept || kept.width !== width || kept.height !== height) kept = context.createImageData(width, height);
    else kept.data.fill(0);
    return kept;
}

// COLOUR as an image has it; of a difference nearly each box has its own.
const pixelsOf = new Map();
function pixelOf(context, colour) {
    if (!pixelsOf.has(colour)) pixelsOf.set(colour, readPixel(context, colour));
    return pixelsOf.get(colour);
}

function readPixel(context, colour) {
    context.fillStyle = colour; // any colour is read as #rrggbb
    const hex = parseInt(context.fillStyle.slice(1), 16);
    const bytes = new Uint8Array([hex >> 16, hex >> 8, hex, 255]);
    return new Uint32Array(bytes.buffer)[0];
}

// Of boxes that share a pixel the first one has it: the heaviest.
function fillPixels(pixels, width, height, box, scale, pixel) {
    const gap = box.width >= 3 ? 1 : 0;
    const left = Math.max(Math.round(box.x * scale), 0), top = Math.max(Math.round(box.y * scale), 0);
    const right = Math.min(Math.max(Math.round((box.x + box.width) * scale) - gap, left + 1), width);
    const bottom = Math.min(Math.round((box.y + rowHeight - 1) * scale), height);
    let from = left;
    while (from < right && pixels[top * width + from]) from++;
    for (let y = top; y < bottom && from < right; y++)
        for (let at = y * width + from, end = y * width + right; at < end; at++) pixels[at] = pixel;
}

function drawMarks(context, box) {
    const { style } = box;
    if (style.inlined && box.width > 6) {
        context.fillStyle = style.hatch;
        context.fillRect(box.x, box.y, 3, rowHeight - 1);
    }
    if (style.mark && box.moved) { // its function was in another tier before
        context.fillStyle = style.mark;
        context.fillRect(box.x - 1, box.y, 3, rowHeight - 1);
    }
}

// A frame around BOX, which may be too thin for one.
function drawFocus({ context, width }, box, dark) {
    const left = Math.max(box.x, 0), right = Math.min(box.x + box.width, width), room = Math.max(right - left, leastFrame);
    context.strokeStyle = dark ? "#fff" : "#000";
    context.lineWidth = 2;
    context.strokeRect(Math.max(Math.min((left + right - room) / 2, width - room) + 1, 1), box.y + 1, room - 2, rowHeight - 3);
}

function drawWide(context, box, text, place) {
    const { style } = box;
    context.fillStyle = style.fill;
    context.fillRect(box.x, box.y, Math.max(box.width - 0.6, leastWidth), rowHeight - 1);
    drawMarks(context, box);
    if (style.outline) {
        context.strokeStyle = style.outline;
        context.lineWidth = 2;
        context.strokeRect(box.x + 1, box.y + 1, Math.max(box.width - 2.6, 1), rowHeight - 3);
    }
    if (box.width < leastText) return;
    context.fillStyle = style.text;
    const left = Math.max(box.x, 0) + (style.inlined ? 7 : 4);
    const room = box.x + box.width - left - 4;
    const letters = Math.floor(room / 6.7);
    if (letters < 3) return;
    context.fillText(shortName(text, letters), left, box.y + rowHeight / 2, room); // wide letters are drawn closer
    if (!place || text.length + place.length + 4 > letters) return;
    context.globalAlpha = 0.6;
    context.textAlign = "right";
    context.fillText(place, left + room, box.y + rowHeight / 2);
    context.textAlign = "left";
    context.globalAlpha = 1;
}
