import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs the main methods of Kafka's command-line tools in one JVM, since starting a JVM for each costs seconds.
 *
 * A line on stdin is one command: NUMBER SECONDS CLASS STDIN [ARGUMENT ...], where STDIN and the arguments are '=' and
 * base64. Each is answered on stdout, in the order in which they end, by: NUMBER EXIT_CODE =OUT =ERR. Commands run at
 * the same time. Each tool runs as if it were alone: its classes are loaded again (some keep static state), its standard
 * streams are its own, and its exit unwinds its thread (what it prints meanwhile is dropped); its shutdown hooks run
 * then. EXIT_CODE is "late" if it did not end in SECONDS.
 */
public final class Toolbox {
    private static final InheritableThreadLocal<Run> CURRENT = new InheritableThreadLocal<>();
    private static final PrintStream ANSWERS = System.out;

    /** Unwinds the thread of a tool that exits. */
    private static final class Left extends Error {
        Left() { super("exit", null, false, false); }
    }

    /** One command in progress: its streams, its exit code, its hooks. */
    private static final class Run {
        final ByteArrayOutputStream out = new ByteArrayOutputStream(), err = new ByteArrayOutputStream();
        final List<Runnable> hooks = new ArrayList<>();
        final InputStream in;
        Integer code;
        volatile boolean leaving;

        Run(byte[] stdin) { in = new ByteArrayInputStream(stdin); }

        synchronized void leave(int status) {
            if (code == null) code = status;
            leaving = true;
            throw new Left();
        }
    }

    /** Standard output or error of whichever tool the writing thread belongs to. */
    private static final class Routed extends OutputStream {
        private final boolean error;
        Routed(boolean error) { this.error = error; }

        private OutputStream target() {
            Run run = CURRENT.get();
            return run == null || run.leaving ? OutputStream.nullOutputStream() : error ? run.err : run.out;
        }

        @Override public void write(int b) throws IOException { target().write(b); }
        @Override public void write(byte[] b, int at, int size) throws IOException { target().write(b, at, size); }
    }

    private static final class RoutedIn extends InputStream {
        @Override public int read() throws IOException { return CURRENT.get().in.read(); }
        @Override public int read(byte[] b, int at, int size) throws IOException { return CURRENT.get().in.read(b, at, size); }
        @Override public int available() throws IOException { return CURRENT.get().in.available(); }
    }

    /** Loads the tools' own classes again, and takes everything that they use from the class path. */
    private static final class Anew extends URLClassLoader {
        private static final URL[] JARS = Arrays.stream(System.getProperty("java.class.path").split(":"))
            .filter(path -> path.contains("kafka-tools") || path.contains("/kafka_")).map(Anew::url).toArray(URL[]::new);

        Anew() { super(JARS, Toolbox.class.getClassLoader()); }

        private static URL url(String path) {
            try {
                return java.nio.file.Path.of(path).toUri().toURL();
            } catch (IOException e) {
                throw new IllegalArgumentException(path, e);
            }
        }

        @Override protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.startsWith("org.apache.kafka.tools.") && !name.startsWith("kafka.")) return super.loadClass(name, resolve);
            synchronized (getClassLoadingLock(name)) {
                Class<?> found = findLoadedClass(name);
                try {
                    return found != null ? found : findClass(name);
                } catch (ClassNotFoundException e) {
                    return super.loadClass(name, resolve);
                }
            }
        }
    }

    public static void main(String[] arguments) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        System.setIn(new RoutedIn());
        System.setOut(new PrintStream(new Routed(false), true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(new Routed(true), true, StandardCharsets.UTF_8));
        Exit.setExitProcedure((code, message) -> CURRENT.get().leave(code));
        Exit.setHaltProcedure((code, message) -> CURRENT.get().leave(code));
        Exit.setShutdownHookAdder((name, hook) -> CURRENT.get().hooks.add(hook));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            new Thread(() -> serve(words)).start();
        }
        Runtime.getRuntime().halt(0);
    }

    private static void serve(String[] words) {
        Run run = new Run(bytes(words[3]));
        CURRENT.set(run);
        String[] arguments = Arrays.stream(words).skip(4).map(w -> new String(bytes(w), StandardCharsets.UTF_8)).toArray(String[]::new);
        Thread tool = new Thread(() -> act(run, words[2], arguments));
        tool.setDaemon(true);
        tool.start();
        try {
            tool.join(Long.parseLong(words[1]) * 1000);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        String code = tool.isAlive() ? "late" : String.valueOf(run.code);
        tool.interrupt();
        synchronized (ANSWERS) {
            ANSWERS.println(words[0] + " " + code + " " + text(run.out) + " " + text(run.err));
            ANSWERS.flush();
        }
    }

    private static void act(Run run, String name, String[] arguments) {
        try (Anew loader = new Anew()) {
            Thread.currentThread().setContextClassLoader(loader);
            end(run, () -> loader.loadClass(name).getMethod("main", String[].class).invoke(null, (Object) arguments));
            for (Runnable hook : run.hooks) end(run, () -> { hook.run(); return null; });
        } catch (IOException e) {
            e.printStackTrace();
        }
    }

    private interface Step { Object take() throws Exception; }

    /** What a JVM of its own would do: the exit code, or the uncaught exception's trace and 1. */
    private static void end(Run run, Step step) {
        try {
            step.take();
        } catch (InvocationTargetException e) {
            if (!(e.getCause() instanceof Left)) fail(run, e.getCause());
        } catch (Left e) {
            assert run.leaving;
        } catch (Exception e) {
            fail(run, e);
        }
        if (run.code == null) run.code = 0;
        run.leaving = false;
    }

    private static void fail(Run run, Throwable cause) {
        System.err.println("Exception in thread \"main\" " + cause);
        if (run.code == null) run.code = 1;
    }

    private static byte[] bytes(String word) { return Base64.getDecoder().decode(word.substring(1)); }

    private static String text(ByteArrayOutputStream stream) {
        return "=" + Base64.getEncoder().encodeToString(stream.toByteArray());
    }
}
