package splitjoin;

import java.util.List;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.execution.SparkPlan;

/** The physical node of a {@link StreamNode}: a function gives its rows. */
public final class StreamExec extends SparkPlan {
  /** Gives the rows of a node, of its children as they are then. */
  interface Execution {
    RDD<InternalRow> execute(StreamExec node);
  }

  /** All but the children. */
  static final class Work {
    private final String name;
    private final List<Attribute> output;
    /** Null for unknown. */
    private final Partitioning partitioning;
    private final Execution execution;

    Work(String name, List<Attribute> output, Partitioning partitioning, Execution execution) {
      this.name = name;
      this.output = output;
      this.partitioning = partitioning;
      this.execution = execution;
    }

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
    return work.execution.execute(this);
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
