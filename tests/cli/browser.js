// A real browser for the tests of the page: headless Chromium, by the DevTools protocol over pipes (no port, no library).
const { spawn } = require("child_process"), fs = require("fs"), os = require("os"), path = require("path");

const names = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];

// The path of a browser; NULL: there is none.
function findBrowser() {
    for (const name of names)
        for (const folder of (process.env.PATH || "").split(":"))
            if (fs.existsSync(path.join(folder, name))) return path.join(folder, name);
    return null;
}

// Open FILE with HASH in a window of WIDTH and HEIGHT. Close what is returned, whatever happens.
async function openPage(file, { hash = "", width = 1200, height = 900 } = {}) {
    const home = fs.mkdtempSync(path.join(os.tmpdir(), "perfjit-browser-"));
    const options = ["--remote-debugging-pipe", "--user-data-dir=" + home, "--no-first-run", "--disable-gpu", "--hide-scrollbars", "--no-sandbox", "--headless",
        "--disable-background-networking", "--disable-component-update", "--host-resolver-rules=MAP * ~NOTFOUND", "about:blank"];
    const browser = spawn(findBrowser(), options, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"], env: { ...process.env, HOME: home } });
    const waiting = new Map(), problems = [], requests = [], traced = [];
    let number = 0, rest = "", session, loaded;
    const isLoaded = new Promise((resolve) => { loaded = resolve; });
    browser.stdio[4].on("data", (data) => {
        const messages = (rest + data).split("\0");
        rest = messages.pop();
        for (const message of messages.map((text) => JSON.parse(text))) {
            if (waiting.has(message.id)) waiting.get(message.id)(message);
            else if (message.method === "Page.loadEventFired") loaded();
            else if (message.method === "Tracing.dataCollected") traced.push(...message.params.value);
            else if (message.method === "Tracing.tracingComplete") traced.ended();
            else if (message.method === "Runtime.exceptionThrown") problems.push(message.params.exceptionDetails.exception ? message.params.exceptionDetails.exception.description : message.params.exceptionDetails.text);
            else if (message.method === "Runtime.consoleAPICalled" && message.params.type === "error") problems.push(JSON.stringify(message.params.args));
            else if (message.method === "Page.javascriptDialogOpening") problems.push("a dialog: " + message.params.message);
            else if (message.method === "Network.requestWillBeSent") requests.push(message.params.request.url);
        }
    });
    const send = (method, params = {}) => new Promise((resolve, reject) => {
        const id = ++number;
        waiting.set(id, (message) => {
            waiting.delete(id);
            if (message.error) reject(new Error(method + ": " + message.error.message));
            else resolve(message.result);
        });
        browser.stdio[3].write(JSON.stringify({ id, method, params, sessionId: session }) + "\0");
    });
    const page = {
        problems, requests, send,
        async evaluate(expression) {
            const { result, exceptionDetails } = await send("Runtime.evaluate", { expression, returnByValue: true, awaitPromise: true });
            if (exceptionDetails) throw new Error(expression + ": " + (exceptionDetails.exception ? exceptionDetails.exception.description : exceptionDetails.text));
            return result.value;
        },
        // Until nothing more is drawn.
        async settle() {
            await page.evaluate("new Promise((resolve) => { let n = 0; const wait = () => ++n > 4 ? resolve() : requestAnimationFrame(wait); wait(); })");
            await page.evaluate("new Promise((resolve) => setTimeout(resolve, 60))");
        },
        // KEYS: characters, or names such as Enter.
        async press(...keys) {
            for (const key of keys) {
                const text = key.length === 1 ? key : key === "Enter" ? "\r" : undefined, shift = /^[A-Z<>+]$/.test(key) ? 8 : 0;
                await send("Input.dispatchKeyEvent", { type: "keyDown", key, text, modifiers: shift, windowsVirtualKeyCode: key === "Enter" ? 13 : key === "Escape" ? 27 : 0 });
                await send("Input.dispatchKeyEvent", { type: "keyUp", key, modifiers: shift });
            }
            await page.settle();
        },
        async type(text) {
            await send("Input.insertText", { text });
            await page.settle();
        },
        async mouse(type, x, y, more = {}) {
            await send("Input.dispatchMouseEvent", { type, x, y, button: type === "mouseMoved" || type === "mouseWheel" ? "none" : "left", clickCount: 1, ...more });
        },
        async click(x, y) {
            await page.mouse("mousePressed", x, y);
            await page.mouse("mouseReleased", x, y);
            await page.settle();
        },
        async drag(x, y, toX, toY) {
            await page.mouse("mousePressed", x, y);
            for (let i = 1; i <= 5; i++) await page.mouse("mouseMoved", x + (toX - x) * i / 5, y + (toY - y) * i / 5, { button: "left", buttons: 1 });
            await page.mouse("mouseReleased", toX, toY);
            await page.settle();
        },
        async wheel(x, y, deltaY) {
            await page.mouse("mouseWheel", x, y, { deltaX: 0, deltaY });
            await page.settle();
        },
        // The middle of the element that SELECTOR finds.
        at: (selector) => page.evaluate(`(() => { const box = document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect(); return [box.left + box.width / 2, box.top + box.height / 2, box.left, box.top, box.width, box.height]; })()`),
        async clickOn(selector) {
            const [x, y] = await page.at(selector);
            await page.click(x, y);
        },
        // What ACT costs: the CPU time of each task of the page's main thread in ms, the longest first, which a busy machine changes little,
        // and the times between frames.
        async cost(act) {
            await page.evaluate("(() => { const gaps = window.gaps = []; let last = performance.now(); const frame = () => { const now = performance.now(); gaps.push(now - last); last = now; if (window.gaps === gaps) requestAnimationFrame(frame); }; requestAnimationFrame(frame); })()");
            traced.length = 0;
            const ended = new Promise((resolve) => { traced.ended = resolve; });
            await send("Tracing.start", { categories: "toplevel,__metadata", transferMode: "ReportEvents" });
            await act();
            await send("Tracing.end");
            await ended;
            const frames = await page.evaluate("(() => { const gaps = window.gaps || []; window.gaps = null; return gaps; })()");
            const isTask = (event) => event.ph === "X" && event.tdur && /RunTask/.test(event.name), tasksOf = (thread) => traced.filter((event) => isTask(event) && event.pid === thread.pid && event.tid === thread.tid);
            const [tasks] = traced.filter((event) => event.name === "thread_name" && event.args.name === "CrRendererMain").map(tasksOf).sort((a, b) => b.length - a.length);
            const falling = (list) => list.sort((a, b) => b - a);
            return { tasks: falling(tasks.map((event) => event.tdur / 1000)), frames: falling(frames) };
        },
        text: (selector) => page.evaluate(`document.querySelector(${JSON.stringify(selector)}).textContent`),
        hash: () => page.evaluate("decodeURIComponent(location.hash)"),
        async screenshot(to) {
            const { data } = await send("Page.captureScreenshot", { format: "png" });
            fs.writeFileSync(to, Buffer.from(data, "base64"));
        },
        async close() {
            const ended = new Promise((resolve) => browser.once("exit", resolve));
            session = undefined;
            send("Browser.close").catch(() => {});
            const timer = setTimeout(() => browser.kill("SIGKILL"), 5000);
            await ended;
            clearTimeout(timer);
            fs.rmSync(home, { recursive: true, force: true, maxRetries: 5 });
        },
    };
    try {
        const { targetInfos } = await send("Target.getTargets");
        const { sessionId } = await send("Target.attachToTarget", { targetId: targetInfos.find((target) => target.type === "page").targetId, flatten: true });
        session = sessionId;
        for (const domain of ["Page", "Runtime", "Network"]) await send(domain + ".enable");
        await send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false });
        if (process.env.PAGE_TIMEZONE) await send("Emulation.setTimezoneOverride", { timezoneId: process.env.PAGE_TIMEZONE });
        await send("Page.navigate", { url: "file://" + path.resolve(file) + hash });
        await isLoaded;
        await page.settle();
    } catch (error) {
        await page.close();
        throw error;
    }
    return page;
}

module.exports = { findBrowser, openPage };
