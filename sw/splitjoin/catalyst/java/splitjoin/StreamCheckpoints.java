package splitjoin;

import java.util.Collections;
import java.util.Set;
import java.util.WeakHashMap;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.streaming.StreamingQueryListener;
import org.slf4j.LoggerFactory;

/**
 * Tells the tasks of each streaming query of a session where the query's checkpoint is, below which joins keep their
 * state.
 *
 * <p>Spark calls a listener in the query's own thread before its first micro-batch, and plans of the query can read the
 * settings of its own session. The same in Python: splitjoin.spark.streaming.checkpoint.
 */
final class StreamCheckpoints extends StreamingQueryListener {
  /** The setting of a query's own session that has the place. */
  static final String SETTING = "spark.splitjoin.checkpointRoot";
  private static final Set<SparkSession> SESSIONS = Collections.synchronizedSet(
      Collections.newSetFromMap(new WeakHashMap<>()));

  /** Adds the listener to a session in which a streaming plan is analysed. */
  static final class Told extends Rule<LogicalPlan> {
    private final SparkSession session;

    Told(SparkSession session) {
      this.session = session;
    }

    @Override
    public LogicalPlan apply(LogicalPlan plan) {
      if (plan.isStreaming() && SESSIONS.add(session)) {
        session.streams().addListener(new StreamCheckpoints(session));
      }
      return plan;
    }
  }

  private final transient SparkSession session;

  private StreamCheckpoints(SparkSession session) {
    this.session = session;
  }

  @Override
  public void onQueryStarted(QueryStartedEvent event) {
    try {
      Object execution = Scala.value(session.streams().get(event.id()), "streamingQuery");
      SparkSession own = (SparkSession) Scala.value(execution, "sparkSessionForStream");
      own.conf().set(SETTING, (String) Scala.value(execution, "resolvedCheckpointRoot"));
    } catch (ReflectiveOperationException | RuntimeException e) {
      // The tasks of a join say that they do not know the place; other queries need it not.
      LoggerFactory.getLogger(SplitJoinExtensions.class).warn("splitjoin: this Spark does not tell the checkpoint", e);
    }
  }

  @Override
  public void onQueryProgress(QueryProgressEvent event) {}

  @Override
  public void onQueryTerminated(QueryTerminatedEvent event) {}
}
