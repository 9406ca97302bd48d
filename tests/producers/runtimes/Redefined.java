import java.lang.instrument.ClassDefinition;
import java.lang.instrument.Instrumentation;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;

/** A class that is redefined again and again, while two old methods of it run on: one of them has the same bytecode in each version.
 * It is its own -javaagent. */
public class Redefined {
    static Instrumentation instrumentation;
    static volatile long sink;
    public static void premain(String a, Instrumentation given) { instrumentation = given; }
    /** The class with another number in each method: its bytecode is not the same. */
    static byte[] changed(byte[] bytes, int round) {
        byte[] other = bytes.clone();
        for (int i = 0; i + 1 < other.length; i++)
            if (other[i] == 0x10 && other[i + 1] == 77) // bipush 77
                other[i + 1] = (byte) (20 + round % 50);
        return other;
    }
    public static void main(String[] a) throws Exception {
        byte[] bytes = Files.readAllBytes(Paths.get(a[1], "Target.class"));
        long end = System.nanoTime() + Long.parseLong(a[0]) * 1000000L;
        long pause_ms = Long.parseLong(a[2]);
        Thread old = new Thread(() -> Target.forever(end));
        old.start();
        Thread equal = new Thread(() -> Target.unchanged(end));
        equal.start();
        Thread.sleep(300); // it is in there
        for (int i = 0; System.nanoTime() < end; i++) {
            instrumentation.redefineClasses(new ClassDefinition(Target.class, changed(bytes, i)));
            long until = System.nanoTime() + pause_ms * 1000000L;
            while (System.nanoTime() < until)
                sink += Target.spin(20000);
        }
        old.join();
        equal.join();
    }
}

class Target {
    static int which() { return 77; }
    static long spin(int n) {
        long s = which() + 77;
        for (int i = 0; i < n; i++)
            s = s * 31 + i;
        return s;
    }
    static void forever(long end) {
        int first = 77;
        long s = first;
        while (System.nanoTime() < end)
            s += more(20000);
        Redefined.sink += s;
    }
    static void unchanged(long end) {
        while (System.nanoTime() < end)
            Redefined.sink += Target.more(20000);
    }
    static long more(int n) {
        long s = 77;
        for (int i = 0; i < n; i++)
            s = s * 31 + i;
        return s;
    }
}
