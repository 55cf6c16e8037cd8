package splitjoin;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.optimizer.NormalizeNaNAndZero;
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.types.*;

/**
 * The plan of a join in splitjoin: both sides' rows, each with the number of the task that joins it, in one exchange
 * before a {@code MapInArrow}; without one if the only task reads few rows itself.
 *
 * <p>A row of a side that is dealt to parts goes to one part by a hash of its values, so that a task that Spark repeats
 * gets the same rows; and from there to each task that joins this part with one of the other side.
 */
final class JoinedPlan {
  private static final Set<String> UNHASHED = Set.of("ArrayType", "StructType", "MapType", "VariantType",
      "CalendarIntervalType", "UserDefinedType");
  /** Bytes and files of a side that one task reads in the time that another task and an exchange take. */
  private static final int SHORT = 4 << 20;
  private static final int FEW_FILES = 8;
  private static final int SEED = 7; // another one than Spark's, by whose hash the rows may be partitioned already

  private final TranslatedJoin of;
  private final List<DataType> slots = new ArrayList<>();

  JoinedPlan(TranslatedJoin of) {
    this.of = of;
  }

  LogicalPlan plan(SparkContext context, PythonWorker worker, int r, int s, boolean isHashed) {
    int[] leftSlots = slots(of.left);
    int[] rightSlots = slots(of.right);
    int[] labels = Nodes.labels(r * s);
    LogicalPlan rows = new Union(Scala.seq(
        side(of.join.left(), 0, of.left, leftSlots, r, s, labels, isHashed),
        side(of.join.right(), 1, of.right, rightSlots, r, s, labels, isHashed)), false, false);
    boolean isShort = r * s == 1 && isShort(of.join.left()) && isShort(of.join.right());
    LogicalPlan tasks = isShort ? new Repartition(1, false, rows)
        : Nodes.partitioned(Scala.<Attribute>list(rows.output()).get(0), r * s, rows);
    StructType type = of.type();
    String spec = "{\"kind\":\"" + of.kind + "\",\"on\":" + of.condition + ",\"left\":" + Arrays.toString(leftSlots)
        + ",\"right\":" + Arrays.toString(rightSlots) + ",\"left_keys\":" + of.leftKeys + ",\"right_keys\":"
        + of.rightKeys + ",\"left_errors\":" + TranslatedJoin.texts(of.leftErrors) + ",\"right_errors\":"
        + TranslatedJoin.texts(of.rightErrors) + ",\"output\":" + of.sources + ",\"type\":" + type.json() + "}";
    String name = "splitjoin[" + of.kind + ", " + r + " x " + s + " parts, " + of.text() + "]";
    return Nodes.mapInArrow(name, worker.function(context, "splitjoin.catalyst.task", spec), type, of.output, tasks);
  }

  /** Whether the plan itself, not those below it, has an expression of this kind. */
  static boolean has(LogicalPlan plan, Class<?> kind) {
    return Scala.<Expression>list(plan.expressions()).stream().anyMatch(e -> ConditionWriter.has(e, kind));
  }

  /** Whether the task that joins the rows reads them sooner than others do, which have to send them. */
  private static boolean isShort(LogicalPlan side) {
    if (side instanceof Project || side instanceof Filter) {
      return !has(side, PythonUDF.class) && isShort(((UnaryNode) side).child());
    }
    if (side.isStreaming() || side.stats().sizeInBytes().compare(scala.math.BigInt.apply(SHORT)) > 0) {
      return false;
    }
    if (!(side instanceof LogicalRelation)) {
      return side instanceof LocalRelation || side instanceof Range;
    }
    BaseRelation relation = ((LogicalRelation) side).relation();
    return relation instanceof HadoopFsRelation && ((HadoopFsRelation) relation).location() instanceof InMemoryFileIndex
        && ((HadoopFsRelation) relation).location().inputFiles().length <= FEW_FILES;
  }

  /** The slots of a side's columns: columns of one type share a slot, as a row is of one side. */
  private int[] slots(List<Expression> columns) {
    int[] found = new int[columns.size()];
    boolean[] taken = new boolean[slots.size() + columns.size()];
    for (int n = 0; n < found.length; n++) {
      int at = 0;
      while (at < slots.size() && (taken[at] || !slots.get(at).equals(columns.get(n).dataType()))) {
        at++;
      }
      if (at == slots.size()) {
        slots.add(columns.get(n).dataType());
      }
      taken[at] = true;
      found[n] = at;
    }
    return found;
  }

  private LogicalPlan side(LogicalPlan child, int side, List<Expression> columns, int[] mine, int r, int s,
      int[] labels, boolean isHashed) {
    Object[] tasks = new Object[isHashed ? r : side == 0 ? r : s];
    for (int part = 0; part < tasks.length; part++) {
      int copies = isHashed ? 1 : side == 0 ? s : r;
      Object[] of = new Object[copies];
      for (int copy = 0; copy < copies; copy++) {
        of[copy] = labels[isHashed ? part : side == 0 ? part * s + copy : copy * s + part];
      }
      tasks[part] = new GenericArrayData(of);
    }
    DataType numbers = new ArrayType(IntegerType$.MODULE$, false);
    Expression chosen = new GetArrayItem(new Literal(new GenericArrayData(tasks), new ArrayType(numbers, false)),
        part(tasks.length, isHashed ? equal(side) : columns), false);
    List<NamedExpression> list = new ArrayList<>();
    boolean isCopied = ((GenericArrayData) tasks[0]).numElements() > 1;
    list.add(Nodes.named(isCopied ? chosen : new GetArrayItem(chosen, Nodes.integer(0), false), "task"));
    list.add(Nodes.named(Nodes.integer(side), "side"));
    for (int slot = 0; slot < slots.size(); slot++) {
      Expression value = new Literal(null, slots.get(slot));
      for (int n = 0; n < mine.length; n++) {
        value = mine[n] == slot ? columns.get(n) : value;
      }
      list.add(Nodes.named(value, "c" + slot));
    }
    LogicalPlan rows = new Project(Scala.seq(list), child);
    if (!isCopied) {
      return rows;
    }
    Attribute task = Nodes.attribute("copy", IntegerType$.MODULE$);
    List<Attribute> given = Scala.list(rows.output());
    LogicalPlan copied = new Generate(new Explode(given.get(0)), Scala.<Object>seq((Object) 0), false, Scala.none(),
        Scala.<Attribute>seq(task), rows);
    List<NamedExpression> kept = new ArrayList<>();
    kept.add(task);
    kept.addAll(given.subList(1, given.size()));
    return new Project(Scala.seq(kept), copied);
  }

  /** The side's operands of the equalities. */
  private List<Expression> equal(int side) {
    scala.Tuple8<?, ?, ?, ?, ?, ?, ?, ?> keys = ExtractEquiJoinKeys.unapply(of.join).get();
    List<Expression> found = new ArrayList<>();
    Object operands = side == 0 ? keys._2() : keys._3();
    for (Expression e : Scala.<Expression>list((scala.collection.Seq<Expression>) operands)) {
      boolean isFloat = e.dataType() instanceof FloatType || e.dataType() instanceof DoubleType;
      found.add(isFloat ? new NormalizeNaNAndZero(e) : e);
    }
    return found;
  }

  /** The part of a row, a number below {@code parts}, by the values {@code of} it. */
  private static Expression part(int parts, List<Expression> of) {
    List<Expression> hashed = new ArrayList<>();
    for (Expression e : of) {
      if (!UNHASHED.contains(e.dataType().getClass().getSimpleName().replace("$", ""))) {
        hashed.add(e);
      }
    }
    if (parts == 1 || hashed.isEmpty()) {
      return Nodes.integer(0);
    }
    return new Pmod(new Murmur3Hash(Scala.seq(hashed), SEED), Nodes.integer(parts));
  }
}
