package splitjoin;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.analysis.StreamingJoinHelper;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys;
import org.apache.spark.sql.catalyst.plans.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.*;

/**
 * The plan of a join of two streams in splitjoin: the rows of each side packed for the groups that get them, one
 * exchange, and the groups, as of {@code splitjoin.spark.stream_join}.
 *
 * <p>A group keeps its state below the query's checkpoint; Spark's own operator keeps the watermarks
 * ({@link SparkWatermarks}), so that rows are late, come and go as in Spark's own joins.
 */
final class StreamedJoin {
  /** What is known of the joins of a streaming query so far, those below others first. */
  static final class Query {
    /** The number of joins, by which their states are named. */
    private int joins;
    /** Columns with a watermark that joins have not used, which do not say when the joined rows come. */
    private final Set<ExprId> undelayed = new HashSet<>();
  }

  private static final String DELAY = "spark.watermarkDelayMs";
  /** The columns that {@code splitjoin.spark.streaming.spread} gives. */
  private static final StructType PACKED = new StructType().add("group", IntegerType$.MODULE$)
      .add("stream", IntegerType$.MODULE$).add("tuples", LongType$.MODULE$).add("greatest", LongType$.MODULE$)
      .add("timeless", BooleanType$.MODULE$).add("rows", BinaryType$.MODULE$);

  private final TranslatedJoin of;
  private final Attribute left;
  private final Attribute right;
  /** How far a row's time may lie behind that of a partner, in µs. */
  private final long leftBehind;
  private final long rightBehind;
  /** How far below the watermark the times end at which Spark evicts rows, in µs. */
  private final long leftKept;
  private final long rightKept;
  private final Query query;

  /** Raises {@code Untranslated} for a join without a bound of time on both sides. */
  StreamedJoin(TranslatedJoin of, Query query) throws ConditionWriter.Untranslated {
    this.of = of;
    this.query = query;
    Join join = of.join;
    List<Attribute> lefts = times(join.left(), "left");
    List<Attribute> rights = times(join.right(), "right");
    for (Attribute l : lefts) {
      for (Attribute r : rights) {
        Long back = kept(l, r);
        Long forth = kept(r, l);
        if (back != null && forth != null) {
          boolean isKey = isKey(l, r);
          left = l;
          right = r;
          TimeBounds.Range range = new TimeBounds(l, r, List.of(join.left(), join.right())).of(join.condition().get());
          back = bound(back, range.low() == null ? null : range.low().negate());
          forth = bound(forth, range.high());
          leftBehind = Math.max(0, back);
          rightBehind = Math.max(0, forth);
          leftKept = isKey ? 0 : back;
          rightKept = isKey ? 0 : forth;
          return;
        }
      }
    }
    Attribute l = lefts.get(0);
    Attribute r = rights.get(0);
    boolean lacksLeft = kept(l, r) == null;
    throw new ConditionWriter.Untranslated("its condition does not bound the time by which a row of "
        + (lacksLeft ? "the left stream" : "the right stream") + " may be before its partner; add "
        + (lacksLeft ? l.sql() + " >= " + r.sql() : r.sql() + " >= " + l.sql()) + " - INTERVAL … to it");
  }

  /** The event times of a stream: its columns with a watermark. */
  private List<Attribute> times(LogicalPlan side, String name) throws ConditionWriter.Untranslated {
    List<Attribute> found = new ArrayList<>();
    String other = "";
    for (Attribute a : marked(side)) {
      if (query.undelayed.contains(a.exprId())) {
        other = a.sql();
      } else {
        found.add(a);
      }
    }
    if (found.isEmpty() && !other.isEmpty()) {
      throw new ConditionWriter.Untranslated("the " + name + " stream is joined rows, which were joined by another time "
          + "than " + other + "; bound that one");
    }
    String marked = lost(side);
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

  /** The columns with a watermark. */
  static List<Attribute> marked(LogicalPlan side) {
    List<Attribute> found = new ArrayList<>(Scala.<Attribute>list(side.output()));
    found.removeIf(a -> !a.metadata().contains(DELAY) || !(a.dataType() instanceof TimestampType));
    return found;
  }

  /** A column below with a watermark, or null. */
  private static String lost(LogicalPlan plan) {
    if (plan instanceof EventTimeWatermark watermark) {
      return watermark.eventTime().sql();
    }
    return Scala.<LogicalPlan>list(plan.children()).stream().map(StreamedJoin::lost).filter(m -> m != null).findFirst()
        .orElse(null);
  }

  /**
   * How far the times at which Spark evicts rows lie below the watermark, in µs, by its own analysis of how far
   * {@code time} may be behind {@code other} in a pair; null without bound.
   */
  private Long kept(Attribute time, Attribute other) {
    scala.Option<Object> found = evicted(of.join.condition(), time, other);
    return found.isEmpty() ? null : -1000 * (Long) found.get(); // from milliseconds, rounded up
  }

  /** The times at which Spark evicts rows at the watermark 0, in ms, by its own analysis of a condition. */
  static scala.Option<Object> evicted(scala.Option<Expression> condition, Attribute time, Attribute other) {
    return StreamingJoinHelper.getStateValueWatermark(AttributeSet.fromAttributeSets(Scala.seq(time.references())),
        AttributeSet.fromAttributeSets(Scala.seq(other.references())), condition, scala.Option.apply((Object) 0L));
  }

  /**
   * How far a row may lie behind its partner: Spark takes a cast for its operand, and a day for 24 hours, and so evicts
   * rows that could yet meet one.
   */
  private static long bound(long kept, BigDecimal behind) {
    return Math.max(kept, behind == null ? kept + TimeBounds.DAY : behind.longValueExact());
  }

  /** True if the times are equal in each pair: Spark then evicts rows by them alone. */
  private boolean isKey(Attribute l, Attribute r) throws ConditionWriter.Untranslated {
    List<Expression> lefts = keys(true);
    List<Expression> rights = keys(false);
    for (int n = 0; n < lefts.size(); n++) {
      if (lefts.get(n).semanticEquals(l) && rights.get(n).semanticEquals(r)) {
        return true;
      }
      if (isMarked(lefts.get(n)) || isMarked(rights.get(n))) {
        throw new ConditionWriter.Untranslated("an event time, of " + lefts.get(n).sql() + " = " + rights.get(n).sql()
            + ", is equal to what is none");
      }
    }
    return false;
  }

  private static boolean isMarked(Expression e) {
    return e instanceof Attribute && ((Attribute) e).metadata().contains(DELAY);
  }

  /** The operands of the equalities of a side. */
  private List<Expression> keys(boolean isLeft) {
    scala.Option<scala.Tuple8<JoinType, scala.collection.immutable.Seq<Expression>,
        scala.collection.immutable.Seq<Expression>, ?, ?, ?, ?, ?>> found = (scala.Option) ExtractEquiJoinKeys.unapply(
        of.join);
    if (found.isEmpty()) {
      return List.of(Nodes.integer(0));
    }
    return Scala.list((scala.collection.Seq<Expression>) (isLeft ? found.get()._2() : found.get()._3()));
  }

  /** The columns of a side, of which {@code time} alone is marked as an event time. */
  private static List<Attribute> columns(LogicalPlan side, Attribute time) {
    List<Attribute> found = new ArrayList<>();
    for (Attribute a : Scala.<Attribute>list(side.output())) {
      boolean isOther = a.metadata().contains(DELAY) && !a.exprId().equals(time.exprId());
      found.add(isOther ? a.withMetadata(new MetadataBuilder().withMetadata(a.metadata()).remove(DELAY).build()) : a);
    }
    return found;
  }

  LogicalPlan plan(SparkContext context, PythonWorker worker) {
    SQLConf conf = SQLConf.get();
    int leftTime = TranslatedJoin.place(of.left, left);
    int rightTime = TranslatedJoin.place(of.right, right);
    // Rows of the right stream that meet nothing are known where all pairs are.
    boolean isAlone = of.kind.equals("right") || of.kind.equals("full");
    int chosen = Settings.groups(context.defaultParallelism());
    int groups = isAlone ? 1 : chosen;
    String join = "{\"kind\":\"" + of.kind + "\",\"on\":" + of.condition + ",\"left\":" + TranslatedJoin.numbered(of.left).json() + ",\"right\":"
        + TranslatedJoin.numbered(of.right).json() + ",\"left_keys\":" + of.leftKeys + ",\"right_keys\":"
        + of.rightKeys + ",\"time\":[" + leftTime + "," + rightTime + "],\"window\":[" + leftBehind + ","
        + rightBehind + "],\"kept\":[" + leftKept + "," + rightKept + "],\"groups\":" + groups + ",\"output\":"
        + of.sources + ",\"name\":\"sql-" + query.joins++ + "\",\"retained\":"
        + conf.getConfString("spark.sql.streaming.minBatchesToRetain", "100") + "}";
    JoinType type = of.join.joinType() instanceof LeftAnti$ ? LeftOuter$.MODULE$ : of.join.joinType() instanceof InnerLike
        ? Inner$.MODULE$ : of.join.joinType();
    SparkWatermarks watermarks = new SparkWatermarks(type, of.join.condition().get(), keys(true), keys(false),
        columns(of.join.left(), left), columns(of.join.right(), right));
    int[] labels = Nodes.labels(groups);
    List<Object[]> none = new ArrayList<>();
    for (int group = 0; group < groups; group++) {
      none.add(new Object[] {group, 0, 0L, null, false, new byte[0], labels[group]});
    }
    LogicalPlan packed = watermarks.of(packed(of.join.left(), of.left, "r", context, worker, join, labels),
        packed(of.join.right(), of.right, "s", context, worker, join, labels), none);
    Attribute label = Scala.<Attribute>list(packed.output()).get(PACKED.size());
    List<Attribute> output = new ArrayList<>(of.output);
    output.add(Nodes.attribute("counts", SparkWatermarks.COUNTS));
    StructType given = of.type().add("counts", SparkWatermarks.COUNTS);
    LogicalPlan rows = Nodes.mapInArrow("splitjoin[stream, " + of.kind + ", left " + leftBehind / 1e6 + " s and right "
        + rightBehind / 1e6 + " s back, " + groups + " groups, " + of.text() + "]", function(context, worker, "join",
        join, given), given, output, Nodes.partitioned(label, groups, packed));
    for (Attribute a : Scala.<Attribute>list(of.join.output())) {
      if (isMarked(a) && !a.exprId().equals(left.exprId()) && !a.exprId().equals(right.exprId())) {
        query.undelayed.add(a.exprId());
      }
    }
    return new Project(Scala.<NamedExpression>seq(of.output), SparkWatermarks.counted(rows));
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
      PythonWorker worker, String join, int[] labels) {
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
    Expression label = new GetArrayItem(new Literal(new GenericArrayData(labels),
        new ArrayType(IntegerType$.MODULE$, false)), output.get(0), false);
    List<NamedExpression> kept = new ArrayList<>(output);
    kept.add(Nodes.named(label, "label"));
    return new Project(Scala.seq(kept), rows);
  }
}
