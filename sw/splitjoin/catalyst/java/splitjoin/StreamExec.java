package splitjoin;

import java.util.List;
import java.util.function.Function;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.execution.SparkPlan;

/** The physical node of a {@link StreamNode}: a function gives its rows. */
public final class StreamExec extends SparkPlan {
  /**
   * All but the children; {@code partitioning} is null for unknown, {@code execution} gives the rows of a node, of its
   * children as they are then.
   */
  record Work(String name, List<Attribute> output, Partitioning partitioning,
      Function<StreamExec, RDD<InternalRow>> execution) {
    @Override
    public String toString() {
      return name;
    }
  }

  private final scala.collection.immutable.Seq<SparkPlan> children;
  private final transient Work work;

  /** Public for Spark's {@code makeCopy}. */
  public StreamExec(scala.collection.immutable.Seq<SparkPlan> children, Work work) {
    this.children = children;
    this.work = work;
  }

  @Override
  public RDD<InternalRow> doExecute() {
    return work.execution.apply(this);
  }

  @Override
  public scala.collection.immutable.Seq<SparkPlan> children() {
    return children;
  }

  SparkPlan child() {
    return children.apply(0);
  }

  @Override
  public scala.collection.immutable.Seq<Attribute> output() {
    return Scala.seq(work.output);
  }

  @Override
  public Partitioning outputPartitioning() {
    return work.partitioning == null ? super.outputPartitioning() : work.partitioning;
  }

  /** Of Scala 2.13; the next one is of 2.12. */
  public SparkPlan withNewChildrenInternal(scala.collection.immutable.IndexedSeq<SparkPlan> made) {
    return new StreamExec(made, work);
  }

  public SparkPlan withNewChildrenInternal(scala.collection.IndexedSeq<SparkPlan> made) {
    return new StreamExec(Scala.seq(Scala.<SparkPlan>list(made)), work);
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
    return other instanceof StreamExec;
  }
}
