// fib takes a third of the time, mix the most.
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
function mix(n) {
    let x = 1;
    for (let i = 0; i < n; i++) x = (Math.imul(x, 1103515245) + i) ^ (x >>> 7);
    return x;
}
const ran_ms = () => process.cpuUsage().user / 1000; // its own time, however busy the machine is
let sum = 0;
while (ran_ms() < +process.argv[2]) sum = (sum + fib(24) + mix(2000000)) | 0;
console.log(sum !== 0.5);
