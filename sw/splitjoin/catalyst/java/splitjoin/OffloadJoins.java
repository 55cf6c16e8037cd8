package splitjoin;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.optimizer.RewritePredicateSubquery;
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys;
import org.apache.spark.sql.catalyst.planning.ExtractSingleColumnNullAwareAntiJoin;
import org.apache.spark.sql.catalyst.plans.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StringType$;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Finds the joins without a usable equality, and replaces those by splitjoin's operator that are worth it. */
final class OffloadJoins extends Rule<LogicalPlan> {
  /** Rows in compressed columns for each that Spark would have in as many bytes, at the least of usual tables. */
  private static final double PACKED = 2;
  /** A full join without an equality is one task. */
  private static final double MOST_ROWS_OF_FULL = 4e6;

  /** Of more pairs, rows through Python take longer than all comparisons in Spark. */
  private static final double MOST_SHARE = 0.1;

  /** Of more rows Spark says that there are where it does not know. */
  private static final double UNKNOWN = 1e12;

  /** Spark does not tell how many there are. */
  private static final double ROWS_OF_MICRO_BATCH = 10_000;

  /** The name of the metrics that the progress of a streaming query has. */
  private static final String METRICS = "splitjoin_sql";

  private final SparkContext context;
  /** The number of joins that were replaced. */
  private int taken;

  OffloadJoins(SparkContext context) {
    this.context = context;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (!Settings.isEnabled()) {
      return plan;
    }
    return plan.isStreaming() ? observed(streamed(plan, null, new StreamedJoin.Query())) : replaced(plan, null);
  }

  /** The streaming plan with metrics that tell where its joins run, if splitjoin runs some or says why not. */
  private static LogicalPlan observed(LogicalPlan plan) {
    List<LogicalPlan> joins = new ArrayList<>();
    joins(plan, joins);
    Set<String> reasons = new TreeSet<>();
    int left = 0;
    boolean isOurs = false;
    for (LogicalPlan join : joins) {
      isOurs |= isSplitJoin(join);
      if (join instanceof Join) {
        String reason = SplitJoinHints.reason(((Join) join).hint());
        isOurs |= !reason.isEmpty() && !reason.equals(SplitJoinHints.LEAVE);
        reasons.add(reason.isEmpty() ? "it has an equality" : reason);
        left++;
      }
    }
    if (!isOurs) {
      return plan;
    }
    List<NamedExpression> metrics = List.of(Nodes.named(Nodes.integer(joins.size() - left), "in_splitjoin"),
        Nodes.named(Nodes.integer(left), "in_spark"),
        Nodes.named(Literal.create(String.join("; ", reasons), StringType$.MODULE$), "reasons"));
    return replaced(plan, joins.get(0), new CollectMetrics(METRICS, Scala.seq(metrics), joins.get(0), 0));
  }

  /** Adds the joins in a plan, those above first: Spark's, and the functions that run splitjoin's. */
  private static void joins(LogicalPlan plan, List<LogicalPlan> found) {
    if (plan instanceof Join || isSplitJoin(plan)) {
      found.add(plan);
    }
    Scala.<LogicalPlan>list(plan.children()).forEach(child -> joins(child, found));
  }

  private static LogicalPlan replaced(LogicalPlan plan, LogicalPlan old, LogicalPlan made) {
    return plan == old ? made : (LogicalPlan) plan.mapChildren(child -> replaced((LogicalPlan) child, old, made));
  }

  private static boolean isSplitJoin(LogicalPlan plan) {
    return Scala.<Expression>list(plan.expressions()).stream().anyMatch(
        e -> e instanceof PythonUDF && ((PythonUDF) e).name().startsWith("splitjoin["));
  }

  /** A streaming plan with the joins of two streams replaced that Spark refuses; {@code wanted}: as of `replaced`. */
  private LogicalPlan streamed(LogicalPlan plan, AttributeSet wanted, StreamedJoin.Query query) {
    if (!plan.isStreaming()) {
      return replaced(plan, wanted);
    }
    AttributeSet read = plan instanceof Project ? plan.references() : null;
    LogicalPlan made = (LogicalPlan) plan.mapChildren(child -> streamed((LogicalPlan) child, read, query));
    if (!(made instanceof Join join)) {
      return made;
    }
    if (!join.left().isStreaming() || !join.right().isStreaming()) {
      return decided(join, wanted); // each micro-batch is joined with a table, as a batch is
    }
    String hint = SplitJoinHints.chosen(join.hint());
    boolean hasEquality = ExtractEquiJoinKeys.unapply(join).isDefined();
    if (hint.equals(SplitJoinHints.LEAVE) || hasEquality && !hint.equals(SplitJoinHints.TAKE)
        || Settings.isExplainOnly()) {
      return made;
    }
    try {
      if (join.condition().isEmpty()) {
        throw new ConditionWriter.Untranslated("it has no condition");
      }
      StreamedJoin streamed = new StreamedJoin(new TranslatedJoin(join, some(wanted, join)), query);
      PythonWorker worker = PythonWorker.find(context);
      return streamed.plan(context, worker);
    } catch (ConditionWriter.Untranslated reason) {
      if (hasEquality) {
        return noted(join, SplitJoinHints.LEFT + reason.getMessage());
      }
      throw new UnsupportedOperationException("Spark runs a join of two streams only if its condition has an equality, "
          + "but it is " + (join.condition().isDefined() ? join.condition().get().sql() : "missing")
          + ", and splitjoin cannot run it here: " + reason.getMessage() + "; or call splitjoin.spark.stream_join or "
          + "stream_sql, which run it in windows of event time");
    }
  }

  /** The columns that are read, at least one of the join's. */
  private static AttributeSet some(AttributeSet wanted, Join join) {
    boolean isNone = wanted != null && Scala.<Attribute>list(join.output()).stream().noneMatch(wanted::contains);
    return isNone ? Scala.<Attribute>list(join.output()).get(0).references() : wanted;
  }

  /** The plan with joins replaced; {@code wanted}: the columns that the plan's parent reads, null for all. */
  private LogicalPlan replaced(LogicalPlan plan, AttributeSet wanted) {
    if (plan instanceof Join) {
      Join join = (Join) plan.mapChildren(child -> replaced((LogicalPlan) child, null));
      return unbroadcast(decided(join, wanted));
    }
    if ((plan instanceof Filter || plan instanceof Project)
        && (JoinedPlan.has(plan, Exists.class) || JoinedPlan.has(plan, ListQuery.class))) {
      return unnested((LogicalPlan) plan.mapChildren(child -> replaced((LogicalPlan) child, null)));
    }
    AttributeSet read = plan instanceof Project ? plan.references() : null;
    return (LogicalPlan) plan.mapChildren(child -> replaced((LogicalPlan) child, read));
  }

  /**
   * Spark thinks that the rows of {@code MapInArrow} are about as many as its input, and would send many to all tasks.
   * So a join of such rows gets the hint that there is for it.
   */
  private static LogicalPlan unbroadcast(LogicalPlan plan) {
    if (!(plan instanceof Join join)) {
      return plan;
    }
    scala.Option<HintInfo> left = unbroadcast(join.left(), join.hint().leftHint());
    scala.Option<HintInfo> right = unbroadcast(join.right(), join.hint().rightHint());
    return left == join.hint().leftHint() && right == join.hint().rightHint() ? join
        : new Join(join.left(), join.right(), join.joinType(), join.condition(), new JoinHint(left, right));
  }

  private static scala.Option<HintInfo> unbroadcast(LogicalPlan side, scala.Option<HintInfo> hint) {
    boolean isOurs = hint.isEmpty() && side.exists(OffloadJoins::isSplitJoin);
    return isOurs ? scala.Option.apply(new HintInfo(scala.Option.apply(NO_BROADCAST_HASH$.MODULE$))) : hint;
  }

  /** EXISTS and IN become joins in a late rule of Spark, which this one anticipates for joins that it replaces. */
  private LogicalPlan unnested(LogicalPlan plan) {
    int before = taken;
    LogicalPlan child = Scala.<LogicalPlan>list(plan.children()).get(0);
    LogicalPlan made = replacedAbove(RewritePredicateSubquery.apply(plan), child);
    return taken == before ? plan : made;
  }

  private LogicalPlan replacedAbove(LogicalPlan plan, LogicalPlan end) {
    if (plan == end || !(plan instanceof Join || plan instanceof Filter || plan instanceof Project)) {
      return plan;
    }
    List<LogicalPlan> children = new ArrayList<>(Scala.list(plan.children()));
    LogicalPlan first = replacedAbove(children.get(0), end);
    LogicalPlan made = plan;
    if (first != children.get(0)) {
      children.set(0, first);
      made = (LogicalPlan) plan.withNewChildren(Scala.seq(children));
    }
    return made instanceof Join ? decided((Join) made, null) : made;
  }

  private LogicalPlan decided(Join join, AttributeSet wanted) {
    String hint = SplitJoinHints.chosen(join.hint());
    boolean isHinted = hint.equals(SplitJoinHints.TAKE);
    boolean hasEquality = ExtractEquiJoinKeys.unapply(join).isDefined()
        || ExtractSingleColumnNullAwareAntiJoin.unapply(join).isDefined();
    if (join.condition().isEmpty() || hasEquality && !isHinted || hint.equals(SplitJoinHints.LEAVE)) {
      return join;
    }
    try {
      if (!hint.isEmpty() && !isHinted) {
        throw new ConditionWriter.Untranslated("the query's hint " + hint + " chooses a join of Spark");
      }
      if (!isHinted) {
        checkSize(join); // ahead of what takes longer, as most joins are small
      }
      AttributeSet read = wanted == null ? join.outputSet() : wanted;
      TranslatedJoin made = new TranslatedJoin(TranslatedJoin.computed(join), read);
      if (!isHinted) {
        checkWorth(join);
      }
      PythonWorker worker = PythonWorker.find(context);
      if (Settings.isExplainOnly()) {
        return noted(join, "splitjoin would run it, but " + Settings.EXPLAIN_ONLY + " is true");
      }
      int[] parts = parts(join, hasEquality);
      LogicalPlan plan = new JoinedPlan(made).plan(context, worker, parts[0], parts[1], hasEquality);
      taken++;
      return plan;
    } catch (ConditionWriter.Untranslated reason) {
      return noted(join, SplitJoinHints.LEFT + reason.getMessage());
    }
  }

  /** The join with a note for EXPLAIN EXTENDED. */
  private LogicalPlan noted(Join join, String note) {
    Logger log = LoggerFactory.getLogger(SplitJoinExtensions.class);
    if (log.isInfoEnabled()) {
      log.info(note + ": " + join.condition().get().sql());
    }
    // A hint keeps joins from being ordered by cost, so there is none where Spark does that.
    boolean isRightFree = join.hint().rightHint().isEmpty();
    if (!isRightFree && join.hint().leftHint().isDefined() || SQLConf.get().joinReorderEnabled()) {
      return join;
    }
    scala.Option<HintInfo> said = scala.Option.apply(SplitJoinHints.hint(note));
    JoinHint hint = isRightFree ? new JoinHint(join.hint().leftHint(), said)
        : new JoinHint(said, join.hint().rightHint());
    return new Join(join.left(), join.right(), join.joinType(), join.condition(), hint);
  }

  private static double rows(LogicalPlan plan) {
    if (plan.isStreaming()) {
      return ROWS_OF_MICRO_BATCH;
    }
    Statistics stats = plan.stats();
    if (stats.rowCount().isDefined()) {
      return stats.rowCount().get().doubleValue();
    }
    AttributeMap<ColumnStat> none = AttributeMap$.MODULE$.empty();
    boolean isPacked = plan.exists(p -> p instanceof LeafNode && !(p instanceof LocalRelation));
    return (isPacked ? PACKED : 1) * stats.sizeInBytes().doubleValue()
        / EstimationUtils.getSizePerRow(plan.output(), none).doubleValue();
  }

  /** A number of rows in words; Spark's estimate where it knows nothing is the greatest size that there is. */
  private static String said(double rows) {
    return rows > UNKNOWN ? "an unknown number of" : String.format("about %.0f", rows);
  }

  private static void checkSize(Join join) throws ConditionWriter.Untranslated {
    double left = rows(join.left());
    double right = rows(join.right());
    if (left * right < Settings.minComparisons()) {
      throw new ConditionWriter.Untranslated(String.format("%s x %s rows are few (%s is %.0f)", said(left), said(right),
          Settings.MIN_COMPARISONS, Settings.minComparisons()));
    }
  }

  private static void checkWorth(Join join) throws ConditionWriter.Untranslated {
    if (Settings.minComparisons() > 0
        && new ConditionShare(join.left().outputSet(), join.right().outputSet()).of(join.condition().get()) > MOST_SHARE) {
      throw new ConditionWriter.Untranslated("the condition seems to let a large part of all pairs through, of which "
          + "Spark makes rows sooner");
    }
    double left = rows(join.left());
    double right = rows(join.right());
    if (join.joinType() instanceof FullOuter$ && left + right > MOST_ROWS_OF_FULL) {
      throw new ConditionWriter.Untranslated("a full join without an equality would be one task, and it has "
          + said(left + right) + " rows");
    }
  }

  /** The numbers of parts of left and right, as of {@code splitjoin.spark.routes}; tasks and 1 with an equality. */
  private int[] parts(Join join, boolean hasEquality) {
    JoinType type = join.joinType();
    double left = rows(join.left());
    double right = rows(join.right());
    double rowsOfTask = Settings.rowsPerTask();
    int cores = (int) Math.max(1, Math.min(context.defaultParallelism(), Math.ceil((left + right) / rowsOfTask)));
    if (hasEquality) {
      return new int[] {number(left + right, cores), 1};
    }
    boolean isInner = type instanceof InnerLike;
    boolean cutsLeft = !(type instanceof FullOuter$) && !(type instanceof RightOuter$);
    boolean cutsRight = isInner || type instanceof RightOuter$;
    if (!cutsLeft && !cutsRight) {
      return new int[] {1, 1};
    }
    boolean isLeftGreat = cutsLeft && (left >= right || !cutsRight);
    double small = isLeftGreat ? right : left;
    boolean cutsSmall = isLeftGreat ? cutsRight : cutsLeft;
    int few = cutsSmall && small > 1e6 ? (int) Math.min(16, Math.ceil(small / 1e6)) : 1;
    int many = number(isLeftGreat ? left : right, (cores + few - 1) / few);
    return isLeftGreat ? new int[] {many, few} : new int[] {few, many};
  }

  /** Parts of about 250,000 rows; a size that Spark does not know is that of each core twice. */
  private static int number(double rows, int least) {
    return rows > UNKNOWN ? 2 * least : (int) Math.min(256, Math.max(least, Math.ceil(rows / 250_000)));
  }
}
