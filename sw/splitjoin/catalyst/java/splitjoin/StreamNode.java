package splitjoin;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;

/** A node of a streaming plan for which this jar makes the physical one. */
public final class StreamNode extends LogicalPlan {
  /** Makes the physical node from those of the children. */
  interface Planner {
    SparkPlan plan(List<SparkPlan> children);
  }

  /** All but the children: it stays the same when rules exchange these. */
  static final class Work {
    private final String name;
    private final List<Attribute> output;
    private final Planner planner;

    Work(String name, List<Attribute> output, Planner planner) {
      this.name = name;
      this.output = output;
      this.planner = planner;
    }

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
      if (!(plan instanceof StreamNode)) {
        return Scala.<SparkPlan>seq();
      }
      List<SparkPlan> made = new ArrayList<>();
      for (LogicalPlan child : Scala.<LogicalPlan>list(plan.children())) {
        made.add(planLater(child));
      }
      return Scala.<SparkPlan>seq(((StreamNode) plan).work.planner.plan(made));
    }
  }
}
