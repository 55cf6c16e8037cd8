package splitjoin;

import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.HintInfo;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.JoinHint;
import org.apache.spark.sql.catalyst.plans.logical.JoinStrategyHint;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ResolvedHint;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.UnaryNode;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedHint;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.slf4j.LoggerFactory;
import scala.Option;

/**
 * Reads the hints SPLITJOIN and NO_SPLITJOIN. With names of relations they are for the joins of these; without, for all
 * joins of the SELECT, or of the DataFrame that has the hint with another.
 */
final class SplitJoinHints extends Rule<LogicalPlan> {
  static final String TAKE = "SPLITJOIN";
  static final String LEAVE = "NO_SPLITJOIN";
  /** The beginning of a note that says why a join stays with Spark. */
  static final String LEFT = "left to Spark by splitjoin: ";

  /** A strategy that Spark's planner does not know, and passes on to the join that it is for. */
  static final class Strategy extends JoinStrategyHint {
    private final String name;

    Strategy(String name) {
      this.name = name;
    }

    @Override
    public String displayName() {
      return name;
    }

    @Override
    @SuppressWarnings("unchecked")
    public scala.collection.immutable.Set<String> hintAliases() {
      return Scala.seq(name).toSet();
    }

    @Override
    public boolean equals(Object other) {
      return other instanceof Strategy && ((Strategy) other).name.equals(name);
    }

    @Override
    public int hashCode() {
      return name.hashCode();
    }
  }

  static HintInfo hint(String name) {
    return new HintInfo(Option.apply((JoinStrategyHint) new Strategy(name)));
  }

  /** Why splitjoin leaves a join to Spark, or {@link #LEAVE} if the query says so; else "". */
  static String reason(JoinHint hint) {
    for (String name : strategies(hint)) {
      if (name.startsWith(LEFT) || name.equals(LEAVE)) {
        return name.equals(LEAVE) ? name : name.substring(LEFT.length());
      }
    }
    return "";
  }

  private static Set<String> strategies(JoinHint hint) {
    Set<String> names = new HashSet<>();
    for (Option<HintInfo> side : List.of(hint.leftHint(), hint.rightHint())) {
      if (side.isDefined() && side.get().strategy().isDefined()) {
        names.add(side.get().strategy().get().displayName());
      }
    }
    return names;
  }

  /** The name of the strategy that the hints of a join choose, "" for none; LEAVE before TAKE. */
  static String chosen(JoinHint hint) {
    Set<String> names = strategies(hint);
    for (String name : List.of(LEAVE, TAKE)) {
      if (names.contains(name)) {
        return name;
      }
    }
    return names.stream().sorted().findFirst().orElse("");
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return resolved(plan, false);
  }

  /** The plan with its hints resolved; {@code joined} if it is, or is in, an operand of a join. */
  private LogicalPlan resolved(LogicalPlan plan, boolean joined) {
    boolean below = plan instanceof Join || joined && plan instanceof UnaryNode;
    LogicalPlan made = (LogicalPlan) plan.mapChildren(child -> resolved((LogicalPlan) child, below));
    if (!(made instanceof UnresolvedHint hint)) {
      return made;
    }
    String name = hint.name().toUpperCase(Locale.ROOT);
    if (!name.equals(TAKE) && !name.equals(LEAVE)) {
      return made;
    }
    Set<String> relations = new HashSet<>();
    for (Object parameter : Scala.<Object>list(hint.parameters())) {
      relations.add(relation(parameter).toLowerCase(Locale.ROOT));
    }
    if (!relations.isEmpty()) {
      Set<String> missing = new HashSet<>(relations);
      LogicalPlan found = named(hint.child(), name, relations, missing);
      if (!missing.isEmpty()) { // as Spark says it of its own hints
        LoggerFactory.getLogger(SplitJoinExtensions.class).warn("the hint " + name + " names "
            + String.join(", ", new TreeSet<>(missing)) + ", but the SELECT has no such table");
      }
      return found;
    }
    LogicalPlan child = joins(hint.child(), name);
    // Spark warns of a hint that is at no operand of a join. That above a statement's SELECT is at none, whose joins
    // have it by now; a DataFrame, whose plan has been analyzed before, may yet be joined.
    boolean done = child != hint.child() && !joined && !hint.child().analyzed();
    return done ? child : new ResolvedHint(child, hint(name));
  }

  private static String relation(Object parameter) {
    Object value = parameter instanceof Literal literal ? literal.value() : parameter;
    return value instanceof UnresolvedAttribute name ? last(Scala.list(name.nameParts())) : String.valueOf(value);
  }

  private static String last(List<String> parts) {
    return parts.get(parts.size() - 1);
  }

  /** The plan with the hint at all joins of this SELECT. */
  private LogicalPlan joins(LogicalPlan plan, String name) {
    if (plan instanceof SubqueryAlias) {
      return plan;
    }
    LogicalPlan made = (LogicalPlan) plan.mapChildren(child -> joins((LogicalPlan) child, name));
    if (!(made instanceof Join join)) {
      return made;
    }
    LogicalPlan left = new ResolvedHint(join.left(), hint(name));
    return new Join(left, join.right(), join.joinType(), join.condition(), join.hint());
  }

  /** The plan with the hint at the relations of these names; those that are there are not {@code missing}. */
  private LogicalPlan named(LogicalPlan plan, String name, Set<String> relations, Set<String> missing) {
    String own = plan instanceof SubqueryAlias alias ? alias.alias() : plan instanceof UnresolvedRelation relation
        ? last(Scala.list(relation.multipartIdentifier())) : null;
    if (own != null) {
      missing.remove(own.toLowerCase(Locale.ROOT));
      return relations.contains(own.toLowerCase(Locale.ROOT)) ? new ResolvedHint(plan, hint(name)) : plan;
    }
    return (LogicalPlan) plan.mapChildren(child -> named((LogicalPlan) child, name, relations, missing));
  }
}
