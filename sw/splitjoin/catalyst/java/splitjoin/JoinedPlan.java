package splitjoin;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import org.apache.spark.SparkContext;
import org.apache.spark.api.python.PythonFunction;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.optimizer.NormalizeNaNAndZero;
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys;
import org.apache.spark.sql.catalyst.plans.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.*;

/**
 * The plan of a join in splitjoin: both sides' rows, each with the number of the task that joins it, in one exchange
 * before a {@code MapInArrow}.
 *
 * <p>A row of a side that is dealt to parts goes to one part by a hash of its values, so that a task that Spark repeats
 * gets the same rows; and from there to each task that joins this part with one of the other side.
 */
final class JoinedPlan {
  private static final Set<String> UNHASHED = Set.of("ArrayType", "StructType", "MapType", "VariantType",
      "CalendarIntervalType", "UserDefinedType");
  /** Types that Spark does not hand to Python through Arrow in all its versions. */
  private static final Set<String> UNSENT = Set.of("CalendarIntervalType", "YearMonthIntervalType", "ObjectType",
      "VariantType", "GeometryType", "GeographyType");
  private static final int SEED = 7; // another one than Spark's, by whose hash the rows may be partitioned already

  /** {@code PythonEvalType.SQL_MAP_ARROW_ITER_UDF}. */
  private static final int MAP_ARROW = 207;

  private final Join join;
  private final ConditionWriter writer;
  private final String condition;
  private final String kind;
  private final List<Attribute> output = new ArrayList<>();
  private final List<String> sources = new ArrayList<>();
  private final List<Expression> left = new ArrayList<>();
  private final List<Expression> right = new ArrayList<>();
  private final List<DataType> slots = new ArrayList<>();

  JoinedPlan(Join join, AttributeSet wanted) throws ConditionWriter.Untranslated {
    this.join = join;
    JoinType type = join.joinType();
    if (type instanceof InnerLike) {
      kind = "inner";
    } else if (type instanceof LeftOuter$) {
      kind = "left";
    } else if (type instanceof RightOuter$) {
      kind = "right";
    } else if (type instanceof FullOuter$) {
      kind = "full";
    } else if (type instanceof LeftSemi$) {
      kind = "semi";
    } else if (type instanceof LeftAnti$) {
      kind = "anti";
    } else if (type instanceof ExistenceJoin) {
      kind = "existence";
    } else {
      throw new ConditionWriter.Untranslated("a join of the kind " + type.sql());
    }
    writer = new ConditionWriter(join.left().outputSet(), join.right().outputSet());
    condition = writer.write(join.condition().get());
    for (Attribute a : Scala.<Attribute>list(join.output())) {
      if (wanted != null && !wanted.contains(a)) {
        continue;
      }
      checkSent(a.dataType());
      boolean isLeft = join.left().outputSet().contains(a);
      if (!isLeft && !join.right().outputSet().contains(a)) {
        sources.add("[\"matched\",0]");
      } else {
        sources.add("[\"" + (isLeft ? "l" : "r") + "\"," + place(isLeft ? left : right, a) + "]");
      }
      output.add(a);
    }
    if (output.isEmpty()) { // rows that are counted
      output.add(attribute("splitjoin", BooleanType$.MODULE$));
      sources.add("[\"matched\",0]");
    }
  }

  private static void checkSent(DataType type) throws ConditionWriter.Untranslated {
    if (type.existsRecursively(t -> UNSENT.contains(t.getClass().getSimpleName().replace("$", ""))
        || t instanceof UserDefinedType)) {
      throw new ConditionWriter.Untranslated("a column of the type " + type.simpleString());
    }
  }

  private static int place(List<Expression> columns, Expression e) {
    for (int n = 0; n < columns.size(); n++) {
      if (columns.get(n).semanticEquals(e)) {
        return n;
      }
    }
    columns.add(e);
    return columns.size() - 1;
  }

  private static AttributeReference attribute(String name, DataType type) {
    return new AttributeReference(name, type, true, Metadata.empty(), NamedExpression$.MODULE$.newExprId(),
        Scala.<String>seq());
  }

  private static NamedExpression named(Expression e, String name) {
    return new Alias(e, name, NamedExpression$.MODULE$.newExprId(), Scala.<String>seq(), Scala.none(),
        Scala.<String>seq());
  }

  private static Expression integer(int value) {
    return new Literal(value, IntegerType$.MODULE$);
  }

  LogicalPlan plan(SparkContext context, PythonWorker worker, int r, int s, boolean isHashed) {
    List<Integer> leftKeys = new ArrayList<>();
    List<Integer> rightKeys = new ArrayList<>();
    writer.leftKeys.forEach(key -> leftKeys.add(place(left, key)));
    writer.rightKeys.forEach(key -> rightKeys.add(place(right, key)));
    int[] leftSlots = slots(left);
    int[] rightSlots = slots(right);
    int[] labels = labels(r * s);
    LogicalPlan rows = new Union(Scala.seq(
        side(join.left(), 0, left, leftSlots, r, s, labels, isHashed),
        side(join.right(), 1, right, rightSlots, r, s, labels, isHashed)), false, false);
    LogicalPlan tasks = new RepartitionByExpression(Scala.<Expression>seq(Scala.<Attribute>list(rows.output()).get(0)),
        rows, scala.Option.apply((Object) (r * s)), scala.Option.empty());
    StructType type = new StructType();
    for (int n = 0; n < output.size(); n++) {
      type = type.add("c" + n, output.get(n).dataType(), true);
    }
    String spec = "{\"kind\":\"" + kind + "\",\"on\":" + condition + ",\"left\":" + Arrays.toString(leftSlots)
        + ",\"right\":" + Arrays.toString(rightSlots) + ",\"left_keys\":" + leftKeys + ",\"right_keys\":" + rightKeys
        + ",\"left_errors\":" + texts(writer.leftErrors) + ",\"right_errors\":" + texts(writer.rightErrors)
        + ",\"output\":" + sources + ",\"type\":" + type.json() + "}";
    PythonFunction function = worker.function(context, spec);
    String name = "splitjoin[" + kind + ", " + r + " × " + s + " parts, " + join.condition().get().sql() + "]";
    List<Expression> given = new ArrayList<>(Scala.<Attribute>list(tasks.output()));
    Expression call = new PythonUDF(name, function, type, Scala.<Expression>seq(given), MAP_ARROW, true,
        NamedExpression$.MODULE$.newExprId());
    String logical = "org.apache.spark.sql.catalyst.plans.logical.";
    return (LogicalPlan) Scala.make(List.of(logical + "MapInArrow", logical + "PythonMapInArrow"), call,
        Scala.<Attribute>seq(output), tasks, false, Scala.none());
  }

  private static String texts(List<String> texts) {
    StringBuilder made = new StringBuilder("[");
    for (String text : texts) {
      made.append(made.length() > 1 ? "," : "").append('"');
      for (char c : text.toCharArray()) {
        made.append(c == '"' || c == '\\' ? "\\" + c : c < ' ' ? " " : String.valueOf(c));
      }
      made.append('"');
    }
    return made.append(']').toString();
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

  /** Values whose hash sends them to the first, second, … of so many partitions. */
  private static int[] labels(int partitions) {
    int[] found = new int[partitions];
    boolean[] known = new boolean[partitions];
    int missing = partitions;
    for (int value = 0; missing > 0; value++) {
      int hash = (int) Murmur3HashFunction.hash(value, IntegerType$.MODULE$, 42L);
      int partition = Math.floorMod(hash, partitions);
      if (!known[partition]) {
        known[partition] = true;
        found[partition] = value;
        missing--;
      }
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
    list.add(named(isCopied ? chosen : new GetArrayItem(chosen, integer(0), false), "task"));
    list.add(named(integer(side), "side"));
    for (int slot = 0; slot < slots.size(); slot++) {
      Expression value = new Literal(null, slots.get(slot));
      for (int n = 0; n < mine.length; n++) {
        value = mine[n] == slot ? columns.get(n) : value;
      }
      list.add(named(value, "c" + slot));
    }
    LogicalPlan rows = new Project(Scala.seq(list), child);
    if (!isCopied) {
      return rows;
    }
    Attribute task = attribute("copy", IntegerType$.MODULE$);
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
    scala.Tuple8<?, ?, ?, ?, ?, ?, ?, ?> keys = ExtractEquiJoinKeys.unapply(join).get();
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
      return integer(0);
    }
    return new Pmod(new Murmur3Hash(Scala.seq(hashed), SEED), integer(parts));
  }
}
