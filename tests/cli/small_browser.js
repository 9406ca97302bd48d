// What the page of perfjit flamegraph needs of a browser, for node: elements that keep what is set, a canvas that keeps its pixels,
// frames that come when they are asked for.  BOOK.data is the profile.
const book = { data: "", elements: new Map(), windows: {}, frames: [], clock: 0, errors: [] };

class Surface { // fills with opaque colours alone are seen
    constructor(canvas) { this.canvas = canvas; }
    set fillStyle(colour) { this.colour = colour; }
    // Which colour it is does not matter, that it is another does.
    get fillStyle() { return "#" + (0x100000 + hash(String(this.colour)) % 0xe00000).toString(16); }
    setTransform() {}
    strokeRect() {}
    measureText(text) { return { width: text.length * 7 }; }
    drawImage() {}
    fillText(text) { this.canvas.texts.push(text); }
    createImageData(width, height) { return { width, height, data: new Uint8ClampedArray(width * height * 4) }; }
    putImageData(image) { this.canvas.pixels.set(new Uint32Array(image.data.buffer)); }
    clearRect() { this.canvas.pixels.fill(0), this.canvas.texts = []; }
    fillRect(x, y, width, height) {
        const { canvas } = this, left = Math.max(Math.round(x), 0), right = Math.min(Math.round(x + width), canvas.width);
        for (let row = Math.max(Math.round(y), 0); row < Math.min(Math.round(y + height), canvas.height); row++)
            if (right > left) canvas.pixels.fill(hash(String(this.colour)) | 1, row * canvas.width + left, row * canvas.width + right);
    }
}

class Element {
    constructor(id) {
        Object.assign(this, { id, style: {}, dataset: {}, handlers: {}, value: "", textContent: id === "data" ? book.data : "", hidden: false, texts: [],
            clientWidth: 1000, clientHeight: 600, offsetWidth: 10, offsetHeight: 10, scrollTop: 0, sizes: { width: 300, height: 150 }, pixels: new Uint32Array(300 * 150) });
    }
    resize(size) {
        Object.assign(this.sizes, size);
        this.pixels = new Uint32Array(this.sizes.width * this.sizes.height);
    }
    get width() { return this.sizes.width; }
    get height() { return this.sizes.height; }
    set width(width) { this.resize({ width }); }
    set height(height) { this.resize({ height }); }
    getContext() { return this.surface = this.surface || new Surface(this); }
    getBoundingClientRect() { return { left: 0, top: 0 }; }
    get parentElement() { return this.parent = this.parent || new Element(); }
    addEventListener(type, handler) { this.handlers[type] = handler; }
    append() {}
    setAttribute() {}
    remove() {}
    focus() {}
    matches() { return false; }
}

const byName = (id) => book.elements.get(id) || book.elements.set(id, new Element(id)).get(id);
globalThis.document = { getElementById: byName, documentElement: new Element(), createElement: () => new Element(), activeElement: null };
globalThis.Option = class {};
globalThis.location = { hash: "" };
globalThis.history = { pushState: (state, title, hash) => { location.hash = hash; }, replaceState: (state, title, hash) => { location.hash = hash; } };
globalThis.matchMedia = () => ({ matches: false, addEventListener() {} });
globalThis.addEventListener = (type, handler) => { book.windows[type] = handler; };
globalThis.devicePixelRatio = 1;
globalThis.innerWidth = 1000;
globalThis.innerHeight = 800;
globalThis.requestAnimationFrame = (frame) => book.frames.push(frame);
// Each look at the clock takes a tenth of a millisecond, so that what a frame has time for is the same everywhere.
globalThis.performance = { now: () => book.clock += 0.1 };

// Frames until no more are asked for.  Returns how many there were.
function allFrames() {
    let count = 0;
    for (; book.frames.length && count < 10000; count++) {
        book.clock += 16;
        book.frames.shift()();
    }
    return count;
}

const press = (key) => book.windows.keydown({ key, target: new Element(), preventDefault() {} });
const clickAt = (x, y) => byName("canvas").handlers.click({ clientX: x, clientY: y });

// How many pixels of each row of boxes are drawn.
function drawnRows() {
    const { width, height, pixels } = byName("canvas");
    const rows = [];
    for (let y = 5; y < height; y += 20) rows.push(pixels.subarray(y * width, (y + 1) * width).reduce((sum, pixel) => sum + (pixel ? 1 : 0), 0));
    return rows;
}
