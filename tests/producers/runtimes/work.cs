// fib takes a third of the time, mix the most.
using System;
using System.Diagnostics;

class Work {
    static long fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

    static int mix(int n) {
        int x = 1;
        for (int i = 0; i < n; i++) x = (x * 1103515245 + i) ^ (x >> 7);
        return x;
    }

    static void Main(string[] arguments) {
        // Its own time, however busy the machine is.
        double ms = double.Parse(arguments[0]);
        long sum = 0;
        while (Process.GetCurrentProcess().UserProcessorTime.TotalMilliseconds < ms)
            for (int i = 0; i < 10; i++) sum += fib(18) + mix(60000);
        Console.WriteLine("true");
    }
}
