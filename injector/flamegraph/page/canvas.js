// Drawing: boxes of a tree, or of the time view, in the part that is zoomed in to.
const rowHeight = 20, leastWidth = 0.4, leastTime = 1.5, leastText = 30;

// A canvas as wide as STAGE and as high as what is seen of it; rows begin at stage.scrollTop.
function sizeCanvas(canvas, stage, rows) {
    const scale = devicePixelRatio || 1;
    const width = stage.clientWidth;
    const height = Math.max(Math.min(rows * rowHeight, stage.clientHeight), 60);
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
    canvas.style.marginBottom = Math.max(rows * rowHeight - height, 0) + "px";
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    const context = canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    return { context, width, height, top: stage.scrollTop };
}

function drawBox(surface, box, text, style) {
    const { context } = surface;
    context.fillStyle = style.fill;
    context.fillRect(box.x, box.y, Math.max(box.width - 0.6, leastWidth), rowHeight - 1);
    if (style.inlined && box.width > 6) {
        context.fillStyle = style.hatch;
        context.fillRect(box.x, box.y, 3, rowHeight - 1);
    }
    if (style.outline) {
        context.strokeStyle = style.outline;
        context.lineWidth = 2;
        context.strokeRect(box.x + 1, box.y + 1, Math.max(box.width - 2.6, 1), rowHeight - 3);
    }
    if (style.mark && box.moved) { // its function was in another tier before
        context.fillStyle = style.mark;
        context.fillRect(box.x - 1, box.y, 3, rowHeight - 1);
    }
    if (box.width < leastText) return;
    context.fillStyle = style.text;
    const left = Math.max(box.x, 0) + (style.inlined ? 7 : 4);
    const room = box.x + box.width - left - 4;
    const letters = Math.floor(room / 6.7);
    if (letters < 3) return;
    context.fillText(text.length > letters ? text.slice(0, letters - 1) + "…" : text, left, box.y + rowHeight / 2);
}
