// fib takes a third of the time, mix the most.
public class Work {
    static long fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    static int mix(int n) {
        int x = 1;
        for (int i = 0; i < n; i++) x = (x * 1103515245 + i) ^ (x >>> 7);
        return x;
    }
    public static void main(String[] arguments) {
        // Its own time, however busy the machine is, without javac's.
        var own = java.lang.management.ManagementFactory.getThreadMXBean();
        long end = own.getCurrentThreadCpuTime() + Long.parseLong(arguments[0]) * 1000000;
        long sum = 0;
        while (own.getCurrentThreadCpuTime() < end) sum += fib(18) + mix(40000);
        System.out.println("true");
    }
}
