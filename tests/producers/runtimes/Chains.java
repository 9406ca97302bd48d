import java.io.PrintStream;
import java.util.*;
import java.util.function.LongUnaryOperator;

/** Chains of every kind of call down to spin, which logs once who called it. */
public class Chains {
    static final Set<String> seen = Collections.synchronizedSet(new HashSet<>());
    static PrintStream truth;
    static volatile long sink;
    interface Step { long go(Chains c, int depth, long way); }
    static abstract class Base implements Step {
        long pass(Chains c, int depth, long way) {
            return c.next(depth, way);
        }
    }
    static class Derived extends Base {
        @Override public long go(Chains c, int depth, long way) {
            long a = 1;
            a += pass(c, depth, way);
            return a;
        }
    }
    static class Other extends Base {
        @Override public synchronized long go(Chains c, int depth, long way) {
            try {
                return super.pass(c, depth, way) +
                    1;
            } finally {
                sink++;
            }
        }
    }
    final Step[] steps = {new Derived(), new Other(), Chains::direct,
        (c, d, w) -> c.next(d, w), Chains::twice};
    static long direct(Chains c, int depth, long way) { return c.next(depth, way); }
    static long twice(Chains c, int depth, long way) {
        if (depth > 1 && (way & 1) == 0)
            return twice(c, depth - 1,
                way >> 1);
        LongUnaryOperator f = x -> c.next(depth, x);
        return f.applyAsLong(way);
    }
    long next(int depth, long way) {
        if (depth == 0)
            return spin(200000);
        int step = (int) (way % steps.length);
        return steps[step].go(this, depth - 1, way / steps.length);
    }
    long spin(int n) {
        mark();
        long s = 0;
        for (int i = 0; i < n; i++)
            s = s * 31 + i;
        return s;
    }
    static void mark() {
        StackTraceElement[] trace = Thread.currentThread().getStackTrace();
        StringBuilder text = new StringBuilder();
        for (int i = 3; i < trace.length; i++) // getStackTrace, mark, spin
            text.append(trace[i].getClassName().replaceFirst("[./]0x[0-9a-f]+$", "")).append('.')
                .append(trace[i].getMethodName()).append(':').append(Math.max(0, trace[i].getLineNumber())).append(' ');
        if (seen.add(text.toString()))
            truth.println(text.toString().trim());
    }
    static void work(long seed, long end) {
        Random random = new Random(seed);
        Chains c = new Chains();
        while (System.nanoTime() < end)
            sink += c.next(1 + random.nextInt(4), random.nextInt(1 << 20));
    }
    public static void main(String[] a) throws Exception {
        truth = new PrintStream("truth");
        long end = System.nanoTime() + Long.parseLong(a[0]) * 1000000L;
        Thread other = new Thread(() -> work(2, end));
        other.start();
        work(1, end);
        other.join();
        truth.close();
    }
}
