package splitjoin;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.*;

/**
 * Adds to the condition of a join of two streams, where splitjoin is to run it, the bounds of time that it implies.
 *
 * <p>Spark's own analysis knows event times beside intervals alone. By the bounds, which leave out no pair, it allows
 * outer joins, and evicts state.
 */
final class ImpliedBounds extends Rule<LogicalPlan> {
  /** Of longer intervals sums with times may not fit, in µs. */
  private static final BigDecimal MOST = BigDecimal.valueOf(100_000L * TimeBounds.DAY);

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return Settings.isEnabled() && !Settings.isExplainOnly() ? bounded(plan) : plan;
  }

  private LogicalPlan bounded(LogicalPlan plan) {
    if (!plan.isStreaming()) {
      return plan;
    }
    LogicalPlan made = (LogicalPlan) plan.mapChildren(child -> bounded((LogicalPlan) child));
    if (!(made instanceof Join join) || !made.resolved()) {
      return made;
    }
    boolean isOurs = join.condition().isDefined() && join.left().isStreaming() && join.right().isStreaming()
        && !hasHint(join, SplitJoinHints.LEAVE)
        && (ExtractEquiJoinKeys.unapply(join).isEmpty() || hasHint(join, SplitJoinHints.TAKE));
    return isOurs ? bounded(join) : join;
  }

  private static boolean hasHint(Join join, String name) {
    return List.of(join.left(), join.right()).stream().anyMatch(side -> side.exists(p -> p instanceof ResolvedHint
        && name.equals(((ResolvedHint) p).hints().strategy().map(s -> s.displayName()).getOrElse(() -> ""))));
  }

  private static Join bounded(Join join) {
    for (Attribute left : StreamedJoin.marked(join.left())) {
      for (Attribute right : StreamedJoin.marked(join.right())) {
        boolean isLow = isBounded(join, left, right);
        boolean isHigh = isBounded(join, right, left);
        if (isLow && isHigh) {
          return join;
        }
        TimeBounds bounds = new TimeBounds(left, right, List.of(join.left(), join.right()));
        TimeBounds.Range range = bounds.of(join.condition().get());
        if (range.low() == null || range.high() == null
            || range.low().abs().max(range.high().abs()).compareTo(MOST) > 0) {
          continue;
        }
        List<Expression> parts = new ArrayList<>(List.of(join.condition().get()));
        if (!isLow) {
          parts.add(new GreaterThanOrEqual(left, after(right, range.low().longValueExact(), -bounds.spread())));
        }
        if (!isHigh) {
          parts.add(new LessThanOrEqual(left, after(right, range.high().longValueExact(), bounds.spread())));
        }
        return new Join(join.left(), join.right(), join.joinType(), scala.Option.apply(parts.stream().reduce(
            And::new).get()), join.hint());
      }
    }
    return join;
  }

  private static boolean isBounded(Join join, Attribute time, Attribute other) {
    return StreamedJoin.evicted(join.condition(), time, other).isDefined();
  }

  /** A time and so many µs; a day of an interval may be longer or shorter by the {@code spread} of clocks. */
  private static Expression after(Attribute time, long micros, long spread) {
    long widened = Math.abs(micros) < TimeBounds.DAY - Math.abs(spread) ? micros : micros + spread;
    String expressions = "org.apache.spark.sql.catalyst.expressions.";
    return (Expression) Scala.make(List.of(expressions + "TimestampAddInterval", expressions + "TimeAdd"), time,
        new Literal(widened, new DayTimeIntervalType((byte) 0, (byte) 3)),
        scala.Option.apply(SQLConf.get().sessionLocalTimeZone()));
  }
}
