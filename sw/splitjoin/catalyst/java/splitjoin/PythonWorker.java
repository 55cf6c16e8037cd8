package splitjoin;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.SparkContext;
import org.apache.spark.api.python.SimplePythonFunction;
import org.apache.spark.sql.internal.SQLConf;
import org.slf4j.LoggerFactory;
import scala.Tuple2;

/** The Python of Spark's workers, and the function that runs there; no Python need run the driver. */
record PythonWorker(String python, String version, String problem) {
  /** The Python, what it answered, or why it cannot be used. */
  private static final Map<String, PythonWorker> FOUND = new ConcurrentHashMap<>();
  /**
   * Imports nothing from the current folder, which {@code -c} puts first and where a download may lie; {@code -P} would
   * say so only from Python 3.11 on. The folder counts where splitjoin is looked for, as workers look there too.
   */
  private static final String QUESTION = "import sys; here = sys.path[:1]; del sys.path[:1]; import importlib.util as u; "
      + "sys.path[:0] = here; print('\\nsplitjoin: %d.%d' % sys.version_info[:2], u.find_spec('splitjoin') is not None)";
  private static final Pattern ANSWER = Pattern.compile("^splitjoin: ([0-9.]+) (True|False)$", Pattern.MULTILINE);

  /** The workers' Python, which is asked once for its version and for splitjoin. Raises for one that has none. */
  static PythonWorker find(SparkContext context) throws ConditionWriter.Untranslated {
    String python = SQLConf.get().getConfString("spark.sql.execution.pyspark.python", "");
    if (python.isEmpty()) {
      python = context.conf().get("spark.pyspark.python", "");
    }
    if (python.isEmpty()) {
      python = System.getenv().getOrDefault("PYSPARK_PYTHON", "python3");
    }
    Map<String, String> environment = environment(context);
    PythonWorker worker = FOUND.computeIfAbsent(python + environment, key -> {
      PythonWorker found = ask(key.substring(0, key.length() - environment.toString().length()), environment);
      if (found.problem != null) { // a mistake in the configuration, which nobody looks for in plans
        LoggerFactory.getLogger(SplitJoinExtensions.class).warn("splitjoin leaves joins to Spark: " + found.problem);
      }
      return found;
    });
    if (worker.problem != null) {
      throw new ConditionWriter.Untranslated(worker.problem);
    }
    return worker;
  }

  private static PythonWorker ask(String python, Map<String, String> environment) {
    try {
      ProcessBuilder builder = new ProcessBuilder(python, "-c", QUESTION);
      builder.environment().putAll(environment);
      builder.redirectErrorStream(true);
      Process process = builder.start();
      process.getOutputStream().close();
      String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8).trim();
      Matcher answer = ANSWER.matcher(said); // beside which there may be warnings
      boolean isFound = process.waitFor() == 0 && answer.find();
      if (isFound && answer.group(2).equals("True")) {
        return new PythonWorker(python, answer.group(1), null);
      }
      return new PythonWorker(python, "", isFound ? "the workers' Python, " + python
          + ", has no splitjoin; install it there, or set PYSPARK_PYTHON to a Python that has it"
          : "the workers' Python, " + python + ", does not run: " + said);
    } catch (IOException e) {
      return new PythonWorker(python, "", "the workers' Python, " + python + ", does not run: " + e.getMessage());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return new PythonWorker(python, "", "the search for the workers' Python was interrupted");
    }
  }

  /** What PySpark itself sets in the workers' environment, so that they are the same processes. */
  private static Map<String, String> environment(SparkContext context) {
    Map<String, String> found = new HashMap<>();
    for (Tuple2<String, String> setting : context.conf().getAllWithPrefix("spark.executorEnv.")) {
      found.put(setting._1(), setting._2());
    }
    found.put("PYTHONHASHSEED", found.getOrDefault("PYTHONHASHSEED",
        System.getenv().getOrDefault("PYTHONHASHSEED", "0")));
    return found;
  }

  /** The function {@code module.load(spec)} as PySpark sends functions to workers: pickled. */
  SimplePythonFunction function(SparkContext context, String module, String spec) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    byte[] text = spec.getBytes(StandardCharsets.UTF_8);
    bytes.writeBytes(new byte[] {(byte) 0x80, 2, 'c'}); // protocol 2; a function by its name
    bytes.writeBytes((module + "\nload\n").getBytes(StandardCharsets.US_ASCII));
    bytes.write('X'); // a text, its length in four bytes, the lowest first
    for (int shift = 0; shift < 32; shift += 8) {
      bytes.write(text.length >>> shift);
    }
    bytes.writeBytes(text);
    bytes.writeBytes(new byte[] {(byte) 0x85, 'R', '.'}); // a tuple of one, the call, the end
    List<Object> command = new ArrayList<>();
    for (byte b : bytes.toByteArray()) {
      command.add(b);
    }
    return new SimplePythonFunction(Scala.seq(command), environment(context), new ArrayList<>(), python, version,
        new ArrayList<>(), null);
  }
}
