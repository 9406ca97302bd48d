// What the pictures of README.md and docs/recording.md are of: phases, tiers of one function, a worker. node app.js 10: ten times as long.
const { Worker, isMainThread } = require("worker_threads");

function words(text) { return text.toLowerCase().split(/\W+/).filter((word) => word.length > 2); }
function count(list) { const seen = new Map(); for (const word of list) seen.set(word, (seen.get(word) || 0) + 1); return seen; }
function score(seen) { let sum = 0; for (const [word, n] of seen) for (let i = 0; i < n; i++) sum += (word.length * 31 + i) % 97; return sum; }
function matrix(n) { const rows = []; for (let i = 0; i < n; i++) rows.push(Float64Array.from({ length: n }, (_, j) => Math.sin(i * n + j))); return rows; }
function multiply(a, b) { return a.map((row) => row.map((_, j) => { let sum = 0; for (let k = 0; k < row.length; k++) sum += row[k] * b[k][j]; return sum; })); }
function untilThen(ms, work) { for (const end = Date.now() + ms; Date.now() < end;) work(); }

const longer = Number(process.argv[2] || 1);
const text = "It was the best of times, it was the worst of times, it was the age of wisdom ".repeat(200);
const square = matrix(90);
if (isMainThread) {
    new Worker(__filename, { argv: process.argv.slice(2) });
    untilThen(500 * longer, () => score(count(words(text))));
    untilThen(400 * longer, () => multiply(square, square));
    untilThen(300 * longer, () => JSON.parse(JSON.stringify({ text: words(text) })));
} else {
    setTimeout(() => untilThen(500 * longer, () => multiply(square, square)), 300);
}
