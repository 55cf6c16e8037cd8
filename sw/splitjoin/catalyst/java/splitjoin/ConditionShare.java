package splitjoin;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Expression;

/** The share of all pairs that a condition lets through, about, as far as its form tells. */
record ConditionShare(AttributeSet left, AttributeSet right) {
  /** Of a range or a band, and of what is not known. */
  private static final double FEW = 0.01;

  private static final double EQUAL = 0.001;
  /** Of the rows that meet a condition of their own, where that is one of several. */
  private static final double CHOSEN = 0.1;

  /** True for those whose first operand is the lesser one. */
  private static final Map<String, Boolean> IS_BELOW = Map.of("LessThan", true, "LessThanOrEqual", true, "GreaterThan",
      false, "GreaterThanOrEqual", false);
  /** Functions that rise with their operand, or with their first one and fall with the second. */
  private static final Set<String> RISES = Set.of("Cast", "Add", "DateAdd", "TimestampAddInterval", "TimeAdd",
      "IntegralDivide", "Divide", "KnownNotNull", "KnownFloatingPointNormalized", "NormalizeNaNAndZero");
  private static final Set<String> DIFFERENCES = Set.of("Subtract", "DateDiff", "SubtractTimestamps", "SubtractDates");

  double of(Expression e) {
    return ofAll(conjuncts(e), 1);
  }

  /** Of the conjunction of {@code parts}; {@code alone}: the share of the rows that meet a part of one side. */
  private double ofAll(List<Expression> parts, double alone) {
    for (Expression part : parts) {
      if (part.getClass().getSimpleName().equals("Or") && !isOneSided(part)) {
        double most = 0;
        for (Expression choice : Scala.<Expression>list(part.children())) {
          List<Expression> chosen = new ArrayList<>(parts);
          chosen.remove(part);
          chosen.addAll(conjuncts(choice));
          most = Math.max(most, ofAll(chosen, CHOSEN));
        }
        return most;
      }
    }
    double share = 1;
    boolean above = false;
    boolean below = false;
    for (Expression part : parts) {
      int direction = isOneSided(part) ? 0 : direction(part);
      above |= direction > 0;
      below |= direction < 0;
      share *= isOneSided(part) ? alone : direction != 0 ? 0.5 : ofOne(part);
    }
    return above && below ? Math.min(share, FEW) : share; // inequalities of opposite directions are a range
  }

  private double ofOne(Expression e) {
    return switch (e.getClass().getSimpleName()) {
      case "Not" -> Math.max(FEW, 1 - of(Scala.<Expression>list(e.children()).get(0)));
      case "EqualTo", "EqualNullSafe" -> EQUAL;
      default -> FEW;
    };
  }

  private static List<Expression> conjuncts(Expression e) {
    if (!e.getClass().getSimpleName().equals("And")) {
      return List.of(e);
    }
    List<Expression> found = new ArrayList<>();
    Scala.<Expression>list(e.children()).forEach(child -> found.addAll(conjuncts(child)));
    return found;
  }

  private boolean isOneSided(Expression e) {
    return e.references().subsetOf(left) || e.references().subsetOf(right);
  }

  /** 1 for an inequality that holds if left's value is great, −1 if it is small; 0 for others. */
  private int direction(Expression e) {
    Boolean isBelow = IS_BELOW.get(e.getClass().getSimpleName());
    if (isBelow == null) {
      return 0;
    }
    List<Expression> children = Scala.list(e.children());
    int[] signs = new int[2]; // 1 for rising with left, with right; −1 for falling; 2 for neither
    sign(children.get(0), isBelow ? -1 : 1, signs);
    sign(children.get(1), isBelow ? 1 : -1, signs);
    return Math.abs(signs[0]) == 1 && signs[1] == -signs[0] ? signs[0] : 0;
  }

  private void sign(Expression e, int sign, int[] signs) {
    if (e.references().isEmpty()) {
      return;
    }
    String name = e.getClass().getSimpleName();
    if (isOneSided(e)) {
      int side = e.references().subsetOf(left) ? 0 : 1;
      signs[side] = signs[side] == 0 || signs[side] == sign ? sign : 2;
    } else if (RISES.contains(name)) {
      Scala.<Expression>list(e.children()).forEach(child -> sign(child, sign, signs));
    } else if (DIFFERENCES.contains(name)) {
      sign(Scala.<Expression>list(e.children()).get(0), sign, signs);
      sign(Scala.<Expression>list(e.children()).get(1), -sign, signs);
    } else if (name.equals("TimestampDiff")) { // from the first to the second
      sign(Scala.<Expression>list(e.children()).get(0), -sign, signs);
      sign(Scala.<Expression>list(e.children()).get(1), sign, signs);
    } else if (name.equals("UnaryMinus")) {
      sign(Scala.<Expression>list(e.children()).get(0), -sign, signs);
    } else {
      signs[0] = 2;
    }
  }
}
