package splitjoin;

import org.apache.spark.sql.SparkSessionExtensions;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * Makes Spark run joins without a usable equality in splitjoin.
 *
 * <p>The setting is {@code spark.sql.extensions=splitjoin.SplitJoinExtensions}.
 */
public final class SplitJoinExtensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectResolutionRule(session -> new SplitJoinHints());
    extensions.injectResolutionRule(session -> new StreamCheckpoints.Told(session));
    extensions.injectPostHocResolutionRule(session -> new ImpliedBounds());
    // Behind the rules that push filters into joins, and before those that choose the order of joins by cost.
    extensions.injectPreCBORule(session -> new OffloadJoins(session.sparkContext()));
    extensions.injectPlannerStrategy(session -> new StreamNode.Strategy());
    extensions.injectColumnar(session -> new SparkWatermarks.WithoutState());
    return BoxedUnit.UNIT;
  }
}
