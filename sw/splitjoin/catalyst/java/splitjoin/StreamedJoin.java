package splitjoin;

import java.time.ZoneId;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.analysis.StreamingJoinHelper;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.CalendarInterval;

/**
 * The plan of a join of two streams in splitjoin: the rows of each side packed for the groups that get them, one
 * exchange, and the groups, as of {@code splitjoin.spark.stream_join}.
 *
 * <p>For Spark, the plan has no state; a group keeps its own below the query's checkpoint. So the watermarks of the
 * inputs are lowered by the length of the windows: the joined rows' times are above them, as those of the operators
 * that Spark runs on them must be.
 */
final class StreamedJoin {
  /** What is known of the joins of a streaming query so far, those below others first. */
  static final class Query {
    /** The number of joins, by which their states are named. */
    private int joins;
    /** How far columns of joined rows lie behind their greatest value, in µs, by the ids of the columns. */
    private final Map<ExprId, Long> delays = new HashMap<>();
    /** Other columns with a watermark, which do not say when the joined rows come. */
    private final Set<ExprId> undelayed = new HashSet<>();
  }

  private static final long SECOND = 1_000_000;
  private static final long DAY = 86_400 * SECOND;
  private static final String DELAY = "spark.watermarkDelayMs";
  /** What {@code splitjoin.spark.streaming.spread} gives; the time of the micro-batch counts for idle streams alone. */
  private static final StructType PACKED = new StructType().add("group", IntegerType$.MODULE$)
      .add("stream", IntegerType$.MODULE$).add("tuples", LongType$.MODULE$).add("greatest", LongType$.MODULE$)
      .add("timeless", BooleanType$.MODULE$).add("rows", BinaryType$.MODULE$);
  /** Operators whose rows come long after those that they are made of, by no delay that a rule knows. */
  private static final Set<String> DELAYING = Set.of("Aggregate", "FlatMapGroupsWithState", "TransformWithState",
      "FlatMapGroupsInPandasWithState", "TransformWithStateInPandas", "TransformWithStateInPySpark");

  private final TranslatedJoin of;
  private final Attribute left;
  private final Attribute right;
  /** How far a row's time may lie behind that of a partner, in µs. */
  private final long leftBehind;
  private final long rightBehind;
  private final Query query;

  /** Raises {@code Untranslated} for a join without a bound of time on both sides. */
  StreamedJoin(TranslatedJoin of, Query query) throws ConditionWriter.Untranslated {
    this.of = of;
    this.query = query;
    Join join = of.join;
    checkTimely(join.left());
    checkTimely(join.right());
    List<Attribute> lefts = times(join.left(), "left");
    List<Attribute> rights = times(join.right(), "right");
    for (Attribute l : lefts) {
      for (Attribute r : rights) {
        Long back = behind(l, r);
        Long forth = behind(r, l);
        if (back != null && forth != null) {
          checkUnmatched(l, r);
          left = l;
          right = r;
          leftBehind = back;
          rightBehind = forth;
          return;
        }
      }
    }
    Attribute l = lefts.get(0);
    Attribute r = rights.get(0);
    boolean lacksLeft = behind(l, r) == null;
    throw new ConditionWriter.Untranslated("its condition does not bound the time by which a row of "
        + (lacksLeft ? "the left stream" : "the right stream") + " may be before its partner; add "
        + (lacksLeft ? l.sql() + " >= " + r.sql() : r.sql() + " >= " + l.sql()) + " - INTERVAL … to it");
  }

  /** The event times of a stream: its columns with a watermark. */
  private List<Attribute> times(LogicalPlan side, String name) throws ConditionWriter.Untranslated {
    List<Attribute> found = new ArrayList<>();
    String other = "";
    for (Attribute a : Scala.<Attribute>list(side.output())) {
      if (a.metadata().contains(DELAY) && a.dataType() instanceof TimestampType) {
        if (query.undelayed.contains(a.exprId())) {
          other = a.sql();
        } else {
          found.add(a);
        }
      }
    }
    if (found.isEmpty() && !other.isEmpty()) {
      throw new ConditionWriter.Untranslated("the " + name + " stream is joined rows, which were joined by another time "
          + "than " + other + "; bound that one");
    }
    String marked = marked(side);
    if (found.isEmpty() && marked != null) { // nothing reads it, so Spark has left it out
      throw new ConditionWriter.Untranslated("the condition does not bound " + marked + ", the event time of the " + name
          + " stream, from both sides by times of the other one");
    }
    if (found.isEmpty()) {
      throw new ConditionWriter.Untranslated("the " + name + " stream has no watermark; call withWatermark for its "
          + "event time, and bound it in the condition");
    }
    return found;
  }

  /** A column below with a watermark, or null. */
  private static String marked(LogicalPlan plan) {
    if (plan instanceof EventTimeWatermark) {
      return ((EventTimeWatermark) plan).eventTime().sql();
    }
    return Scala.<LogicalPlan>list(plan.children()).stream().map(StreamedJoin::marked).filter(m -> m != null).findFirst()
        .orElse(null);
  }

  /** Rows that met nothing wait for the watermark, and that of joined rows may stand still while Spark's goes on. */
  private void checkUnmatched(Attribute l, Attribute r) throws ConditionWriter.Untranslated {
    boolean waits = !of.kind.equals("inner") && !of.kind.equals("semi");
    if (waits && (query.delays.containsKey(l.exprId()) || query.delays.containsKey(r.exprId()))) {
      throw new ConditionWriter.Untranslated("it is a join of the kind " + of.kind + " of joined rows, whose rows that "
          + "meet nothing might come when the operators behind it have closed their time; only inner and semi joins "
          + "may follow another join");
    }
  }

  private static void checkTimely(LogicalPlan side) throws ConditionWriter.Untranslated {
    if (side.isStreaming() && (DELAYING.contains(side.getClass().getSimpleName()) || side instanceof Join
        && Scala.<LogicalPlan>list(side.children()).stream().allMatch(LogicalPlan::isStreaming))) {
      throw new ConditionWriter.Untranslated("it reads what Spark's " + side.nodeName() + " of streams gives, whose "
          + "delay is not known");
    }
    for (LogicalPlan child : Scala.<LogicalPlan>list(side.children())) {
      checkTimely(child);
    }
  }

  /** How far {@code time} may lie behind {@code other} in a pair, in µs, by Spark's own analysis; null without bound. */
  private Long behind(Attribute time, Attribute other) {
    scala.Option<Object> found = StreamingJoinHelper.getStateValueWatermark(
        AttributeSet.fromAttributeSets(Scala.seq(time.references())),
        AttributeSet.fromAttributeSets(Scala.seq(other.references())), of.join.condition(),
        scala.Option.apply((Object) 0L));
    if (found.isEmpty()) {
      return null;
    }
    long behind = -1000 * (Long) found.get(); // in milliseconds, rounded up
    boolean isFixed = ZoneId.of(SQLConf.get().sessionLocalTimeZone(), ZoneId.SHORT_IDS).getRules().isFixedOffset();
    // A day of an INTERVAL may have some hours more or less than 24.
    return Math.max(0, Math.abs(behind) >= DAY / 2 && !isFixed ? behind + DAY : behind);
  }

  private long delay(Attribute time) {
    Long known = query.delays.get(time.exprId());
    return known != null ? known : 1000 * time.metadata().getLong(DELAY);
  }

  LogicalPlan plan(SparkContext context, PythonWorker worker) {
    SQLConf conf = SQLConf.get();
    int leftTime = TranslatedJoin.place(of.left, left);
    int rightTime = TranslatedJoin.place(of.right, right);
    // Rows of the right stream that meet nothing are known where all pairs are.
    boolean isAlone = of.kind.equals("right") || of.kind.equals("full");
    int groups = isAlone ? 1 : Math.max(1, Math.min(context.defaultParallelism(), 1 << 15));
    String join = "{\"kind\":\"" + of.kind + "\",\"on\":" + of.condition + ",\"left\":" + TranslatedJoin.numbered(of.left).json() + ",\"right\":"
        + TranslatedJoin.numbered(of.right).json() + ",\"left_keys\":" + of.leftKeys + ",\"right_keys\":"
        + of.rightKeys + ",\"time\":[" + leftTime + "," + rightTime + "],\"window\":[" + leftBehind + ","
        + rightBehind + "],\"delay\":[" + delay(left) + "," + delay(right) + "],\"policy\":\""
        + conf.getConfString("spark.sql.streaming.multipleWatermarkPolicy", "min").toLowerCase() + "\",\"groups\":"
        + groups + ",\"output\":" + of.sources + ",\"name\":\"sql-" + query.joins++ + "\",\"retained\":"
        + conf.getConfString("spark.sql.streaming.minBatchesToRetain", "100") + "}";
    long length = Math.max(leftBehind, rightBehind);
    LogicalPlan packed = new Union(Scala.seq(
        packed(lowered(of.join.left(), length), of.left, "r", context, worker, join, groups),
        packed(lowered(of.join.right(), length), of.right, "s", context, worker, join, groups)), false, false);
    List<Attribute> given = Scala.list(packed.output());
    LogicalPlan grouped = Nodes.partitioned(given.get(given.size() - 1), groups, packed);
    StructType type = of.type();
    noteDelays(length);
    return Nodes.mapInArrow("splitjoin[stream, " + of.kind + ", left " + leftBehind / 1e6 + " s and right " + rightBehind / 1e6
        + " s back, " + groups + " groups, " + of.text() + "]", function(context, worker, "join", join, type), type,
        of.output, grouped);
  }

  private static org.apache.spark.api.python.PythonFunction function(SparkContext context, PythonWorker worker,
      String stage, String join, StructType type) {
    return worker.function(context, "splitjoin.spark.streaming.plain_sql", "{\"stage\":\"" + stage + "\",\"join\":"
        + join + ",\"batch\":" + batch(context) + ",\"type\":" + type.json() + "}");
  }

  /** The micro-batch. Spark plans each in the query's own thread; the threads that compute it may not know it. */
  private static String batch(SparkContext context) {
    return "{\"number\":" + context.getLocalProperty("streaming.sql.batchId") + ",\"query\":"
        + TranslatedJoin.text(context.getLocalProperty("sql.streaming.queryId")) + ",\"checkpoint\":"
        + TranslatedJoin.text(SQLConf.get().getConfString(StreamCheckpoints.SETTING, null)) + "}";
  }

  /** The rows of a side, packed; the last column is the label by which Spark sends them to their group. */
  private static LogicalPlan packed(LogicalPlan side, List<Expression> columns, String stream, SparkContext context,
      PythonWorker worker, String join, int groups) {
    List<NamedExpression> numbered = new ArrayList<>();
    for (int n = 0; n < columns.size(); n++) {
      numbered.add(Nodes.named(columns.get(n), "c" + n));
    }
    List<Attribute> output = new ArrayList<>();
    for (StructField field : PACKED.fields()) {
      output.add(Nodes.attribute(field.name(), field.dataType()));
    }
    LogicalPlan rows = Nodes.mapInArrow("splitjoin_spread_" + stream, function(context, worker, stream, join, PACKED),
        PACKED, output, new Project(Scala.seq(numbered), side));
    List<Object> labels = new ArrayList<>();
    for (int label : Nodes.labels(groups)) {
      labels.add(label);
    }
    Expression label = new GetArrayItem(new Literal(new GenericArrayData(labels.toArray()),
        new ArrayType(IntegerType$.MODULE$, false)), output.get(0), false);
    List<NamedExpression> kept = new ArrayList<>(output);
    kept.add(Nodes.named(new Literal(0L, LongType$.MODULE$), "now"));
    kept.add(Nodes.named(label, "label"));
    return new Project(Scala.seq(kept), rows);
  }

  /** The plan with each watermark so much lower. */
  private static LogicalPlan lowered(LogicalPlan plan, long micros) {
    LogicalPlan made = (LogicalPlan) plan.mapChildren(child -> lowered((LogicalPlan) child, micros));
    if (!(made instanceof EventTimeWatermark)) {
      return made;
    }
    CalendarInterval delay = ((EventTimeWatermark) made).delay();
    CalendarInterval longer = new CalendarInterval(delay.months, delay.days, delay.microseconds + micros);
    Object[] arguments = new Object[made.productArity()];
    for (int n = 0; n < arguments.length; n++) {
      Object argument = made.productElement(n);
      arguments[n] = argument == delay ? longer : argument;
    }
    return (LogicalPlan) made.makeCopy(arguments);
  }

  /**
   * How far the times of joined rows come behind their greatest so far. With W = min(l − delay l, r − delay r) of the
   * greatest l and r so far, a row comes above W − length, and none was above min(l, r + how far right may be behind).
   * So do rows that met nothing: they come when W passes the end of their window, which it had not done before.
   */
  private void noteDelays(long length) {
    long l = delay(left);
    long r = delay(right);
    query.delays.put(left.exprId(), Math.max(l, r + rightBehind) + length);
    query.delays.put(right.exprId(), Math.max(r, l + leftBehind) + length);
    for (Attribute a : Scala.<Attribute>list(of.join.output())) {
      if (a.metadata().contains(DELAY) && !a.exprId().equals(left.exprId()) && !a.exprId().equals(right.exprId())) {
        query.undelayed.add(a.exprId());
      }
    }
  }
}
