package splitjoin;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.types.*;

/**
 * Spark's own stream-stream join as the bookkeeper of one that splitjoin runs.
 *
 * <p>The operator stands in the plan between both streams and the groups, and is never executed. So Spark gives it the
 * two watermarks of a micro-batch, by which rows are late and by which state is evicted; runs a micro-batch without
 * data where it would for its own join; hands the operators behind the join the watermark that they would have; and
 * shows its metrics, which the groups' counts fill. {@code left} and {@code right} are the columns of both streams, in
 * each of which one alone has a watermark.
 */
record SparkWatermarks(JoinType type, Expression condition, List<Expression> leftKeys, List<Expression> rightKeys,
    List<Attribute> left, List<Attribute> right) {
  private static final String NAME = "splitjoin_watermarks";
  private static final String STREAMING = "org.apache.spark.sql.execution.streaming.";
  private static final String JOIN = "StreamingSymmetricHashJoinExec";
  /** Columns behind those of packed rows: by which watermark rows are late, and by which state is evicted, in ms. */
  static final String LATE = "late";
  static final String EVICTED = "evicted";
  /** The counts of a group, in the last row that it gives; the fields are some of Python's. */
  static final StructType COUNTS = new StructType().add("late_r", LongType$.MODULE$).add("late_s", LongType$.MODULE$)
      .add("stored_rows", LongType$.MODULE$).add("state_bytes", LongType$.MODULE$).add("tuples_r", LongType$.MODULE$)
      .add("tuples_s", LongType$.MODULE$);
  /** The metric of Spark's operator of each field. */
  private static final String[] METRICS = {"numRowsDroppedByWatermark", "numRowsDroppedByWatermark",
      "numTotalStateRows", "stateMemory", "numUpdatedStateRows", "numUpdatedStateRows"};

  /**
   * The packed rows of both streams, each with the watermarks.
   *
   * <p>{@code none}: packed rows without tuples, one for each group; the groups get them where the streams have no
   * partition.
   */
  LogicalPlan of(LogicalPlan packedLeft, LogicalPlan packedRight, List<Object[]> none) {
    List<Attribute> output = new ArrayList<>(Scala.<Attribute>list(packedLeft.output()));
    output.add(Nodes.attribute(LATE, LongType$.MODULE$));
    output.add(Nodes.attribute(EVICTED, LongType$.MODULE$));
    return new StreamNode(Scala.<LogicalPlan>seq(packedLeft, packedRight), new StreamNode.Work(NAME,
        output, children -> planned(children, output, none)));
  }

  private SparkPlan planned(List<SparkPlan> packed, List<Attribute> output, List<Object[]> none) {
    Object join = Scala.make(List.of(STREAMING + "operators.stateful.join." + JOIN, STREAMING + JOIN),
        Scala.<Expression>seq(leftKeys), Scala.<Expression>seq(rightKeys), type, scala.Option.apply(condition), 2,
        side(packed.get(0), left, leftKeys), side(packed.get(1), right, rightKeys));
    return new StreamExec(Scala.<SparkPlan>seq((SparkPlan) join), new StreamExec.Work(NAME, output, null,
        node -> rows(node, none)));
  }

  /** The packed rows of a stream in the guise of its own ones, as Spark's operator looks for their watermark. */
  private static SparkPlan side(SparkPlan packed, List<Attribute> columns, List<Expression> keys) {
    // As Spark would exchange them for the operator, which it need not.
    int partitions = packed.conf().numShufflePartitions();
    return new StreamExec(Scala.<SparkPlan>seq(packed), new StreamExec.Work("splitjoin_packed", columns,
        new HashPartitioning(Scala.<Expression>seq(keys), partitions), node -> node.child().execute()));
  }

  private static RDD<InternalRow> rows(StreamExec node, List<Object[]> none) {
    SparkPlan join = node.child();
    Literal[] watermarks = {watermark(join, "eventTimeWatermarkForLateEvents"),
        watermark(join, "eventTimeWatermarkForEviction")};
    RDD<InternalRow> made = null;
    for (SparkPlan side : Scala.<SparkPlan>list(join.children())) {
      SparkPlan at = side;
      while (!(at instanceof StreamExec)) { // an exchange
        at = Scala.<SparkPlan>list(at.children()).get(0);
      }
      SparkPlan packed = ((StreamExec) at).child();
      List<NamedExpression> list = new ArrayList<>(Scala.<Attribute>list(packed.output()));
      list.add(Nodes.named(watermarks[0], LATE));
      list.add(Nodes.named(watermarks[1], EVICTED));
      RDD<InternalRow> rows = new ProjectExec(Scala.seq(list), packed).execute();
      made = made == null ? rows : made.union(rows);
    }
    if (made.getNumPartitions() > 0) {
      return made;
    }
    List<InternalRow> rows = new ArrayList<>();
    UnsafeProjection projection = UnsafeProjection.create(DataTypes.createStructType(fields(node)));
    for (Object[] row : none) {
      List<Object> values = new ArrayList<>(Arrays.asList(row));
      values.add(watermarks[0].value());
      values.add(watermarks[1].value());
      rows.add(projection.apply(new GenericInternalRow(values.toArray())).copy());
    }
    return JavaSparkContext.fromSparkContext(node.sparkContext()).parallelize(rows, 1).rdd();
  }

  private static List<StructField> fields(SparkPlan node) {
    List<StructField> found = new ArrayList<>();
    for (Attribute a : Scala.<Attribute>list(node.output())) {
      found.add(DataTypes.createStructField(a.name(), a.dataType(), true));
    }
    return found;
  }

  /**
   * Tells Spark that the operators which are never executed have no partitions: it would wait for the state of these,
   * as it checks that each one was written.
   */
  static final class WithoutState extends ColumnarRule {
    @Override
    public Rule<SparkPlan> preColumnarTransitions() {
      return new Rule<SparkPlan>() {
        @Override
        public SparkPlan apply(SparkPlan plan) {
          return withoutState(plan);
        }
      };
    }
  }

  private static SparkPlan withoutState(SparkPlan plan) {
    SparkPlan made = (SparkPlan) plan.mapChildren(child -> withoutState((SparkPlan) child));
    if (!(made instanceof StreamExec) || !made.nodeName().equals(NAME)) {
      return made;
    }
    SparkPlan join = ((StreamExec) made).child();
    Object[] arguments = arguments(join);
    for (int n = 0; n < arguments.length; n++) {
      Object info = arguments[n] instanceof scala.Option && ((scala.Option<?>) arguments[n]).isDefined()
          ? ((scala.Option<?>) arguments[n]).get() : null;
      if (info != null && info.getClass().getSimpleName().equals("StatefulOperatorStateInfo")) {
        Object[] state = arguments((scala.Product) info);
        for (int m = 0; m < state.length; m++) {
          state[m] = state[m] instanceof Integer ? (Object) 0 : state[m];
        }
        arguments[n] = scala.Option.apply(Scala.make(List.of(info.getClass().getName()), state));
      }
    }
    return (SparkPlan) made.withNewChildren(Scala.<SparkPlan>seq((SparkPlan) join.makeCopy(arguments)));
  }

  private static Object[] arguments(scala.Product of) {
    Object[] found = new Object[of.productArity()];
    for (int n = 0; n < found.length; n++) {
      found[n] = of.productElement(n);
    }
    return found;
  }

  private static Literal watermark(SparkPlan join, String name) {
    try {
      return new Literal(((scala.Option<?>) Scala.value(join, name)).get(), LongType$.MODULE$);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("splitjoin: this Spark's stream-stream join has no " + name, e);
    }
  }

  /**
   * The rows of the groups without those whose last column is not NULL: the metrics of Spark's operator get the counts
   * in it.
   */
  static LogicalPlan counted(LogicalPlan rows) {
    List<Attribute> output = Scala.list(rows.output());
    return new StreamNode(Scala.<LogicalPlan>seq(rows), new StreamNode.Work("splitjoin_counts", output,
        children -> new StreamExec(Scala.<SparkPlan>seq(children), new StreamExec.Work("splitjoin_counts", output, null,
            SparkWatermarks::counted))));
  }

  private static RDD<InternalRow> counted(StreamExec node) {
    SparkPlan join = node.child();
    while (!join.getClass().getSimpleName().equals(JOIN)) { // that of the nearest node above the groups' input
      join = Scala.<SparkPlan>list(join.children()).get(0);
    }
    SQLMetric[] metrics = new SQLMetric[METRICS.length];
    for (int n = 0; n < metrics.length; n++) {
      metrics[n] = join.longMetric(METRICS[n]);
    }
    int column = Scala.<Attribute>list(node.output()).size() - 1;
    return node.child().execute().toJavaRDD().filter(row -> {
      if (!row.isNullAt(column)) {
        InternalRow counts = row.getStruct(column, metrics.length);
        for (int n = 0; n < metrics.length; n++) {
          metrics[n].add(counts.getLong(n));
        }
      }
      return row.isNullAt(column);
    }).rdd();
  }
}
