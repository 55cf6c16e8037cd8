package splitjoin;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;

/** A node of a streaming plan for which this jar makes the physical one. */
public final class StreamNode extends LogicalPlan {
  /**
   * All but the children: it stays the same when rules exchange these; {@code planner} makes the physical node from
   * those of the children.
   */
  record Work(String name, List<Attribute> output, Function<List<SparkPlan>, SparkPlan> planner) {
    @Override
    public String toString() {
      return name;
    }
  }

  private final scala.collection.immutable.Seq<LogicalPlan> children;
  private final Work work;

  /** Public for Spark's {@code makeCopy}. */
  public StreamNode(scala.collection.immutable.Seq<LogicalPlan> children, Work work) {
    this.children = children;
    this.work = work;
  }

  @Override
  public scala.collection.immutable.Seq<LogicalPlan> children() {
    return children;
  }

  @Override
  public scala.collection.immutable.Seq<Attribute> output() {
    return Scala.seq(work.output);
  }

  /** All columns of the children, so that Spark prunes none. */
  @Override
  public AttributeSet references() {
    return inputSet();
  }

  /** Of Scala 2.13; the next one is of 2.12. */
  public LogicalPlan withNewChildrenInternal(scala.collection.immutable.IndexedSeq<LogicalPlan> made) {
    return new StreamNode(made, work);
  }

  public LogicalPlan withNewChildrenInternal(scala.collection.IndexedSeq<LogicalPlan> made) {
    return new StreamNode(Scala.seq(Scala.<LogicalPlan>list(made)), work);
  }

  @Override
  public String nodeName() {
    return work.name;
  }

  @Override
  public int productArity() {
    return 2;
  }

  @Override
  public Object productElement(int n) {
    return n == 0 ? children : work;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof StreamNode;
  }

  /** Plans the nodes. */
  static final class Strategy extends SparkStrategy {
    @Override
    public scala.collection.immutable.Seq<SparkPlan> apply(LogicalPlan plan) {
      if (!(plan instanceof StreamNode node)) {
        return Scala.<SparkPlan>seq();
      }
      List<SparkPlan> made = new ArrayList<>();
      for (LogicalPlan child : Scala.<LogicalPlan>list(plan.children())) {
        made.add(planLater(child));
      }
      return Scala.<SparkPlan>seq(node.work.planner.apply(made));
    }
  }
}
