import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;

/** Classes that are loaded and unloaded all the time, so that their methods have each other's memory; and a log of which ran when. */
public class Reuse {
    static class Loader extends ClassLoader {
        Class<?> define(byte[] bytes) { return defineClass(null, bytes, 0, bytes.length); }
    }
    /** The bytes of Guest00 as those of another class. */
    static byte[] renamed(byte[] bytes, int number) {
        String name = String.format("Guest%02d", number);
        String text = new String(bytes, StandardCharsets.ISO_8859_1).replace("Guest00", name).replace("first00", "first" + name.substring(5));
        return text.getBytes(StandardCharsets.ISO_8859_1);
    }
    public static void main(String[] a) throws Exception {
        byte[] bytes = Files.readAllBytes(Paths.get(a[1], "Guest00.class"));
        PrintStream truth = new PrintStream("truth");
        long end = System.nanoTime() + Long.parseLong(a[0]) * 1000000L;
        for (int i = 0; System.nanoTime() < end; i++) {
            int number = i * 37 % 100;
            java.lang.reflect.Constructor<?> made = new Loader().define(renamed(bytes, number)).getDeclaredConstructor();
            made.setAccessible(true);
            Runnable guest = (Runnable) made.newInstance();
            made = null;
            long from = System.nanoTime();
            guest.run();
            truth.println(from + " " + System.nanoTime() + " " + String.format("%02d", number));
            guest = null;
            if (i % 4 == 3)
                System.gc();
        }
    }
}

class Guest00 implements Runnable {
    public void run() { first00(200000); }
    static long first00(int n) {
        long s = 0;
        for (int i = 0; i < n; i++)
            s = s * 31 + i;
        return s;
    }
}
