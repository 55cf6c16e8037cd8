package splitjoin;

import java.util.List;
import org.apache.spark.api.python.PythonFunction;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.types.*;

/** Nodes of plans, with what Java's callers of Catalyst's constructors need not say. */
final class Nodes {
  /** {@code PythonEvalType.SQL_MAP_ARROW_ITER_UDF}. */
  private static final int MAP_ARROW = 207;

  private Nodes() {}

  static AttributeReference attribute(String name, DataType type) {
    return new AttributeReference(name, type, true, Metadata.empty(), NamedExpression$.MODULE$.newExprId(),
        Scala.<String>seq());
  }

  static NamedExpression named(Expression e, String name) {
    return new Alias(e, name, NamedExpression$.MODULE$.newExprId(), Scala.<String>seq(), Scala.none(),
        Scala.<String>seq());
  }

  static Expression integer(int value) {
    return new Literal(value, IntegerType$.MODULE$);
  }

  /** The rows of {@code child}, those with equal values of the column {@code by} in one of so many partitions. */
  static LogicalPlan partitioned(Attribute by, int partitions, LogicalPlan child) {
    return new RepartitionByExpression(Scala.<Expression>seq(by), child, scala.Option.apply((Object) partitions),
        scala.Option.empty());
  }

  /** The node by which Python's {@code function} gets the rows of {@code child}, and gives rows of {@code output}. */
  static LogicalPlan mapInArrow(String name, PythonFunction function, StructType type, List<Attribute> output,
      LogicalPlan child) {
    Expression call = new PythonUDF(name, function, type, Scala.<Expression>seq(Scala.<Attribute>list(child.output())),
        MAP_ARROW, true, NamedExpression$.MODULE$.newExprId());
    String logical = "org.apache.spark.sql.catalyst.plans.logical.";
    return (LogicalPlan) Scala.make(List.of(logical + "MapInArrow", logical + "PythonMapInArrow"), call,
        Scala.<Attribute>seq(output), child, false, Scala.none());
  }

  /** Values whose hash sends them to the first, second, … of so many partitions. */
  static int[] labels(int partitions) {
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
}
