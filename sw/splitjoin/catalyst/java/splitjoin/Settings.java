package splitjoin;

import org.apache.spark.sql.internal.SQLConf;

/** The settings of a session, which Spark takes with any value: a wrong one fails the query by name. */
final class Settings {
  static final String ENABLED = "spark.splitjoin.sql.enabled";
  static final String EXPLAIN_ONLY = "spark.splitjoin.sql.explainOnly";
  static final String MIN_COMPARISONS = "spark.splitjoin.sql.minComparisons";
  static final String ROWS_PER_TASK = "spark.splitjoin.sql.rowsPerTask";
  static final String GROUPS = "spark.splitjoin.sql.groups";
  /**
   * Spark compares 170 to 400 million pairs in a second of CPU time, and splitjoin takes a tenth to a fifth of a second
   * for what is not comparing; two new workers need two seconds more. With so many pairs none of 53 joins of
   * {@code bench.spark_sql} is slower, in workers that are there.
   */
  private static final String DEFAULT_MIN = "200000000";
  /** A task with fewer rows takes more time to start and end than to join them. */
  private static final String DEFAULT_ROWS = "100000";
  private static final int MOST_GROUPS = 1 << 15;

  private Settings() {}

  static boolean isEnabled() {
    return flag(ENABLED, "true");
  }

  static boolean isExplainOnly() {
    return flag(EXPLAIN_ONLY, "false");
  }

  /** The least product of both sides' rows. */
  static double minComparisons() {
    return number(MIN_COMPARISONS, DEFAULT_MIN, 0);
  }

  static double rowsPerTask() {
    return number(ROWS_PER_TASK, DEFAULT_ROWS, 1);
  }

  /** The number of groups of a join of two streams, {@code otherwise} if it is not set; 32,768 slots at most. */
  static int groups(int otherwise) {
    double found = number(GROUPS, Integer.toString(Math.max(1, Math.min(otherwise, MOST_GROUPS))), 1);
    if (found > MOST_GROUPS || found != Math.rint(found)) {
      throw new IllegalArgumentException(String.format("%s must be a whole number from 1 to %d, not %s", GROUPS,
          MOST_GROUPS, SQLConf.get().getConfString(GROUPS, "").trim()));
    }
    return (int) found;
  }

  private static boolean flag(String name, String otherwise) {
    String value = SQLConf.get().getConfString(name, otherwise).trim();
    if (!value.equalsIgnoreCase("true") && !value.equalsIgnoreCase("false")) {
      throw new IllegalArgumentException(name + " must be true or false, not " + value);
    }
    return value.equalsIgnoreCase("true");
  }

  private static double number(String name, String otherwise, double least) {
    String value = SQLConf.get().getConfString(name, otherwise).trim();
    double found;
    try {
      found = Double.parseDouble(value);
    } catch (NumberFormatException e) {
      found = Double.NaN;
    }
    if (!(found >= least)) {
      throw new IllegalArgumentException(String.format("%s must be a number of at least %.0f, not %s", name, least, value));
    }
    return found;
  }
}
