<?php // fib takes a third of the time, mix the most.
function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }
function mix($n) {
    $x = 1;
    for ($i = 0; $i < $n; $i++) $x = ($x * 1103515245 + $i) & 0x7fffffff;
    return $x;
}
function ran_ms() { // its own time, however busy the machine is
    $used = getrusage();
    return $used['ru_utime.tv_sec'] * 1000 + $used['ru_utime.tv_usec'] / 1000;
}
$sum = 0;
while (ran_ms() < $argv[1]) $sum = ($sum + fib(16) + mix(40000)) & 0xffff;
echo "true\n";
