package splitjoin;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.time.Instant;
import java.time.ZoneId;
import java.time.zone.ZoneOffsetTransition;
import java.time.zone.ZoneRules;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.CalendarInterval;

/**
 * How far the event times of a pair may be apart for a condition to be true, however it is written.
 *
 * <p>An expression is taken for a linear one of both times whose error has bounds: seconds of a time are the time less
 * up to a second, in units of a second. So bounds may be wider than the condition, which decides each pair itself.
 */
final class TimeBounds {
  /** The least and the greatest difference of left's time less right's in µs; null for none. */
  record Range(BigDecimal low, BigDecimal high) {
    private Range and(Range other) {
      return new Range(low == null ? other.low : other.low == null ? low : low.max(other.low),
          high == null ? other.high : other.high == null ? high : high.min(other.high));
    }

    private Range or(Range other) {
      return new Range(low == null || other.low == null ? null : low.min(other.low),
          high == null || other.high == null ? null : high.max(other.high));
    }
  }

  /** A value v with v · unit = left · left's time + right · right's time + an error from low to high, in µs. */
  private record Linear(BigDecimal left, BigDecimal right, BigDecimal low, BigDecimal high, BigDecimal unit) {
    /** True for a number, which has no unit of its own. */
    private boolean isNumber() {
      return unit == null;
    }

    private Linear in(BigDecimal other) {
      return isNumber() ? new Linear(left, right, low.multiply(other), high.multiply(other), other) : this;
    }

    private Linear times(BigDecimal by) {
      BigDecimal a = low.multiply(by);
      BigDecimal b = high.multiply(by);
      return new Linear(left.multiply(by), right.multiply(by), a.min(b), a.max(b), unit);
    }

    private Linear plus(long least, long most) {
      return new Linear(left, right, low.add(number(least)), high.add(number(most)), unit);
    }

    private Linear of(long another) {
      return new Linear(left, right, low, high, number(another));
    }

    /** The sum, null for values of two units. */
    private Linear plus(Linear other) {
      Linear a = isNumber() && !other.isNumber() ? in(other.unit) : this;
      Linear b = other.isNumber() && !isNumber() ? other.in(unit) : other;
      boolean isSame = a.isNumber() ? b.isNumber() : !b.isNumber() && a.unit.compareTo(b.unit) == 0;
      return isSame ? new Linear(a.left.add(b.left), a.right.add(b.right), a.low.add(b.low), a.high.add(b.high), a.unit)
          : null;
    }
  }

  static final long SECOND = 1_000_000;
  static final long DAY = 86_400 * SECOND;
  /** The most by which a double is beside a time, in µs: 2^63 / 2^53. */
  private static final long ROUNDED = 1024;
  /** The units of whole µs, by their names in functions. */
  static final Map<String, Long> UNITS = Map.of("MICROSECOND", 1L, "MILLISECOND", 1000L, "SECOND", SECOND, "MINUTE",
      60 * SECOND, "HOUR", 3600 * SECOND, "DAY", DAY, "DAYOFYEAR", DAY, "WEEK", 7 * DAY);
  /** The most days of others, and months of these. */
  private static final Map<String, Integer> MONTHS = Map.of("MONTH", 1, "MON", 1, "MM", 1, "QUARTER", 3, "YEAR", 12,
      "YYYY", 12, "YY", 12);
  private static final Range ALL = new Range(null, null);
  private static final Map<String, String> MIRRORED = Map.of("LessThan", "GreaterThanOrEqual", "LessThanOrEqual",
      "GreaterThan", "GreaterThan", "LessThanOrEqual", "GreaterThanOrEqual", "LessThan");

  private final ExprId left;
  private final ExprId right;
  private final Map<ExprId, Expression> definitions = new HashMap<>();
  private final Map<String, Expression> common = new HashMap<>();
  /** The least and the greatest offset of the session's zone from UTC since 1970, as earlier rows are late. */
  private final long leastOffset;
  private final long mostOffset;

  /** {@code sides}: the plans of both streams, in which columns may be computed. */
  TimeBounds(Attribute left, Attribute right, List<LogicalPlan> sides) {
    this.left = left.exprId();
    this.right = right.exprId();
    for (LogicalPlan side : sides) {
      side.foreach(node -> {
        if (node instanceof Project project) {
          for (NamedExpression named : Scala.<NamedExpression>list(project.projectList())) {
            if (named instanceof Alias alias && alias.child().deterministic()) {
              definitions.put(named.exprId(), alias.child());
            }
          }
        }
        return null;
      });
    }
    ZoneRules rules = ZoneId.of(SQLConf.get().sessionLocalTimeZone(), ZoneId.SHORT_IDS).getRules();
    long least = rules.getOffset(Instant.EPOCH).getTotalSeconds();
    long most = least;
    Instant end = Instant.ofEpochSecond(130L * 366 * 86_400); // the rules of 2100 go on for ever
    for (ZoneOffsetTransition next = rules.nextTransition(Instant.EPOCH); next != null
        && next.getInstant().isBefore(end); next = rules.nextTransition(next.getInstant())) {
      least = Math.min(least, next.getOffsetAfter().getTotalSeconds());
      most = Math.max(most, next.getOffsetAfter().getTotalSeconds());
    }
    leastOffset = least * SECOND;
    mostOffset = most * SECOND;
  }

  /** The most by which a clock of the zone has ever been put back or forward. */
  long spread() {
    return mostOffset - leastOffset;
  }

  private static BigDecimal number(long value) {
    return BigDecimal.valueOf(value);
  }

  Range of(Expression e) {
    List<Expression> parts = Scala.list(e.children());
    String name = e.getClass().getSimpleName();
    if (e instanceof RuntimeReplaceable other) {
      return of(other.replacement());
    }
    return switch (name) {
      case "With" -> of(shared(parts)); // expressions that are computed once
      case "And" -> of(parts.get(0)).and(of(parts.get(1)));
      case "Or" -> of(parts.get(0)).or(of(parts.get(1)));
      case "Not" -> {
        String inner = parts.get(0).getClass().getSimpleName();
        List<Expression> compared = Scala.list(parts.get(0).children());
        yield MIRRORED.containsKey(inner) ? compared(MIRRORED.get(inner), compared.get(0), compared.get(1)) : ALL;
      }
      case "In" -> parts.subList(1, parts.size()).stream().map(item -> compared("EqualTo", parts.get(0), item))
          .reduce(Range::or).orElse(ALL);
      default -> name.equals("EqualTo") || MIRRORED.containsKey(name)
          ? compared(name, parts.get(0), parts.get(1)) : ALL;
    };
  }

  /** The expression that reads shared ones, which come behind it. */
  private Expression shared(List<Expression> parts) {
    for (Expression definition : parts.subList(1, parts.size())) {
      common.put(Scala.text(definition, "id"), Scala.<Expression>list(definition.children()).get(0));
    }
    return parts.get(0);
  }

  private Range compared(String op, Expression a, Expression b) {
    boolean isBelow = !op.startsWith("Greater"); // "EqualTo" is both
    boolean isAbove = !op.startsWith("Less");
    Expression magnitude = magnitude(a);
    Linear other = magnitude == null ? null : linear(b);
    if (other != null) {
      return isBelow ? compared(linear(magnitude), other, true, false)
          .and(compared(negative(linear(magnitude)), other, true, false)) : ALL;
    }
    Expression greater = magnitude(b);
    if (greater != null) {
      return isAbove ? compared(linear(greater), linear(a), true, false)
          .and(compared(negative(linear(greater)), linear(a), true, false)) : ALL;
    }
    return compared(linear(a), linear(b), isBelow, isAbove);
  }

  /** The operand of an absolute value, else null. */
  private Expression magnitude(Expression e) {
    if (e instanceof Cast cast && Cast.canUpCast(cast.child().dataType(), e.dataType())) {
      return magnitude(cast.child());
    }
    return e.getClass().getSimpleName().equals("Abs") ? Scala.<Expression>list(e.children()).get(0) : null;
  }

  private static Linear negative(Linear a) {
    return a == null ? null : a.times(number(-1));
  }

  private static Range compared(Linear a, Linear b, boolean isBelow, boolean isAbove) {
    Linear apart = a == null || b == null ? null : a.plus(negative(b));
    if (apart == null || apart.left.signum() == 0 || apart.left.add(apart.right).signum() != 0) {
      return ALL;
    }
    boolean isRising = apart.left.signum() > 0;
    // left · (left's time - right's) <= -low, and >= -high
    BigDecimal most = isBelow ? bound(apart.low, apart.left, isRising) : null;
    BigDecimal least = isAbove ? bound(apart.high, apart.left, !isRising) : null;
    return isRising ? new Range(least, most) : new Range(most, least);
  }

  private static BigDecimal bound(BigDecimal error, BigDecimal factor, boolean isGreatest) {
    return error.negate().divide(factor, 0, isGreatest ? RoundingMode.CEILING : RoundingMode.FLOOR);
  }

  /** The linear form of {@code e}, or null. */
  private Linear linear(Expression e) {
    Linear made = form(e);
    boolean isRounded = made != null && !made.isNumber() && e.dataType() instanceof DoubleType;
    return isRounded ? made.plus(-ROUNDED, ROUNDED) : e.dataType() instanceof FloatType ? null : made;
  }

  private Linear form(Expression e) {
    if (e instanceof RuntimeReplaceable other) {
      return linear(other.replacement());
    }
    if (e.foldable()) {
      return constant(e);
    }
    if (e instanceof Attribute column) {
      ExprId id = column.exprId();
      if (id.equals(left) || id.equals(right)) {
        return new Linear(number(id.equals(left) ? 1 : 0), number(id.equals(left) ? 0 : 1), number(0), number(0),
            number(1));
      }
      return definitions.containsKey(id) ? linear(definitions.get(id)) : null;
    }
    List<Expression> parts = Scala.list(e.children());
    if (e instanceof Cast) {
      return cast(linear(parts.get(0)), parts.get(0).dataType(), e.dataType());
    }
    switch (e.getClass().getSimpleName()) {
      case "With":
        return linear(shared(parts));
      case "CommonExpressionRef":
        return linear(common.get(Scala.text(e, "id")));
      case "KnownNotNull", "PreciseTimestampConversion", "TryEval", "UnixDate", "UnixMicros":
        return linear(parts.get(0));
      case "GetStructField":
        int ordinal = Integer.parseInt(Scala.text(e, "ordinal"));
        Expression whole = parts.get(0) instanceof Attribute column ? definitions.get(column.exprId()) : parts.get(0);
        return whole instanceof CreateNamedStruct
            ? linear(Scala.<Expression>list(whole.children()).get(2 * ordinal + 1)) : null;
      case "UnaryMinus":
        return negative(linear(parts.get(0)));
      case "Add", "DateAdd":
        return sum(linear(parts.get(0)), linear(parts.get(1)));
      case "Subtract", "DateDiff", "DateSub":
        return sum(linear(parts.get(0)), negative(linear(parts.get(1))));
      case "Multiply":
        Linear constant = linear(parts.get(0));
        return constant != null && constant.isNumber() ? product(linear(parts.get(1)), constant)
            : product(linear(parts.get(0)), linear(parts.get(1)));
      case "Divide", "IntegralDivide":
        return quotient(linear(parts.get(0)), linear(parts.get(1)), e instanceof IntegralDivide);
      case "Remainder", "Pmod":
        return remainder(linear(parts.get(0)), linear(parts.get(1)));
      case "Floor":
        return rounded(linear(parts.get(0)), -1, 0);
      case "Ceil":
        return rounded(linear(parts.get(0)), 0, 1);
      case "SubtractTimestamps":
        return e.dataType() instanceof DayTimeIntervalType
            ? sum(local(parts.get(0)), negative(local(parts.get(1)))) : null;
      case "TimestampDiff":
        Long unit = UNITS.get(unit(e));
        Linear apart = unit == null ? null : sum(local(parts.get(1)), negative(local(parts.get(0))));
        return apart == null ? null : apart.plus(1 - unit, unit - 1).of(unit);
      case "SubtractDates":
        Linear days = sum(linear(parts.get(0)), negative(linear(parts.get(1))));
        return days == null || !(e.dataType() instanceof DayTimeIntervalType) ? null : days.of(1);
      case "TimestampAddInterval", "TimeAdd", "TimestampAddYMInterval", "DateAddYMInterval":
        Linear moved = linear(parts.get(0));
        Linear by = linear(parts.get(1));
        return moved == null || by == null ? null : clocked(new Linear(moved.left.add(by.left), moved.right.add(
            by.right), moved.low.add(by.low), moved.high.add(by.high), moved.unit), by);
      case "AddMonths":
        Linear count = linear(parts.get(1));
        return count == null || !count.isNumber() ? null : plus(linear(parts.get(0)), months(count.low));
      case "TimestampAdd":
        Linear number = linear(parts.get(0));
        if (number == null || !number.isNumber()) {
          return null;
        }
        Linear amount = MONTHS.containsKey(unit(e))
            ? months(number.low.multiply(number(MONTHS.get(unit(e)))))
            : UNITS.containsKey(unit(e)) ? number.in(number(UNITS.get(unit(e)))).of(1) : null;
        return amount == null ? null : clocked(plus(linear(parts.get(1)), amount), amount);
      case "UnixTimestamp", "ToUnixTimestamp":
        return parts.get(0).dataType() instanceof TimestampType ? epoch(linear(parts.get(0)), SECOND) : null;
      case "UnixSeconds":
        return epoch(linear(parts.get(0)), SECOND);
      case "UnixMillis":
        return epoch(linear(parts.get(0)), 1000);
      case "TruncTimestamp":
        return truncated(linear(parts.get(1)), parts.get(0));
      case "TruncDate":
        return truncated(linear(parts.get(0)), parts.get(1));
      case "ExtractANSIIntervalDays":
        Linear interval = linear(parts.get(0));
        return interval == null ? null : interval.plus(-DAY, DAY).of(DAY);
      case "CaseWhen":
        Linear hull = null;
        for (int n = 1; n < parts.size() + parts.size() % 2; n += 2) {
          hull = hull(n == 1, hull, linear(parts.get(Math.min(n, parts.size() - 1))));
        }
        return hull;
      case "If":
        return hull(false, linear(parts.get(1)), linear(parts.get(2)));
      default:
        return null;
    }
  }

  private static String unit(Expression e) {
    return Scala.text(e, "unit").toUpperCase(Locale.ROOT);
  }

  /** A constant; null for NULL, and for what has no place on the line of time. */
  private Linear constant(Expression e) {
    Object value;
    try {
      value = e.eval(null);
    } catch (RuntimeException x) { // Spark itself raises it, or wants a rule for it first
      return null;
    }
    DataType type = e.dataType();
    if (value instanceof CalendarInterval c) {
      BigDecimal rest = number(c.days).multiply(number(DAY)).add(number(c.microseconds));
      return plus(months(number(c.months)), new Linear(number(0), number(0), rest, rest, number(1)));
    }
    if (type instanceof YearMonthIntervalType && value != null) {
      return months(number((Integer) value));
    }
    if (value instanceof Double && !Double.isFinite((Double) value)) {
      return null;
    }
    BigDecimal number = value instanceof Decimal ? ((Decimal) value).toJavaBigDecimal()
        : value instanceof Double ? BigDecimal.valueOf((Double) value)
        : value instanceof Long || value instanceof Integer || value instanceof Short || value instanceof Byte
            ? number(((Number) value).longValue()) : null;
    if (number == null) {
      return null;
    }
    Linear made = new Linear(number(0), number(0), number, number, null);
    boolean isTime = type instanceof TimestampType || type instanceof TimestampNTZType
        || type instanceof DayTimeIntervalType;
    return isTime ? made.in(number(1)) : type instanceof DateType ? made.in(number(DAY)) : made;
  }

  /** So many months, of 28 to 31 days. */
  private static Linear months(BigDecimal months) {
    BigDecimal a = months.multiply(number(28 * DAY));
    BigDecimal b = months.multiply(number(31 * DAY));
    return new Linear(number(0), number(0), a.min(b), a.max(b), number(1));
  }

  /** A sum of moments: {@code by} is in µs, whatever the unit of {@code a}. */
  private static Linear plus(Linear a, Linear by) {
    return a == null ? null : new Linear(a.left, a.right, a.low.add(by.low), a.high.add(by.high), a.unit);
  }

  private static Linear sum(Linear a, Linear b) {
    return a == null || b == null ? null : a.plus(b);
  }

  /** {@code moved} by days of a local clock, if {@code by} has any. */
  private Linear clocked(Linear moved, Linear by) {
    boolean isShort = by.left.signum() == 0 && by.right.signum() == 0
        && by.low.abs().max(by.high.abs()).compareTo(number(DAY)) < 0;
    return moved == null || isShort ? moved : moved.plus(-spread(), spread());
  }

  /** The local clock of a moment. */
  private Linear local(Expression e) {
    Linear made = linear(e);
    return made == null || !(e.dataType() instanceof TimestampType) ? made : made.plus(leastOffset, mostOffset);
  }

  /** The whole units of a moment since 1970. */
  private static Linear epoch(Linear a, long unit) {
    return a == null ? null : a.plus(1 - unit, 0).of(unit);
  }

  private static Linear product(Linear a, Linear b) {
    if (a == null || b == null || !b.isNumber() || b.low.compareTo(b.high) != 0) {
      return null;
    }
    // Of a greater factor a product may leave its type.
    return a.isNumber() || b.low.abs().compareTo(a.unit) <= 0 ? a.times(b.low) : null;
  }

  private static Linear quotient(Linear a, Linear b, boolean isWhole) {
    if (a == null || a.isNumber() || b == null || !b.isNumber() || b.low.signum() <= 0) {
      return null;
    }
    BigDecimal unit = a.unit.multiply(b.low);
    BigDecimal error = isWhole ? unit : number(0);
    return new Linear(a.left, a.right, a.low.subtract(error), a.high.add(error), unit);
  }

  private static Linear remainder(Linear a, Linear b) {
    if (a == null || a.isNumber() || b == null || !b.isNumber()) {
      return null;
    }
    BigDecimal most = b.low.abs().multiply(a.unit);
    return new Linear(number(0), number(0), most.negate(), most, a.unit);
  }

  /** Rounded by so many units. */
  private static Linear rounded(Linear a, int least, int most) {
    return a == null || a.isNumber() ? a : new Linear(a.left, a.right, a.low.add(a.unit.multiply(number(least))),
        a.high.add(a.unit.multiply(number(most))), a.unit);
  }

  private Linear truncated(Linear a, Expression format) {
    String name = format.foldable() ? String.valueOf(format.eval(null)).toUpperCase(Locale.ROOT) : "";
    Long unit = name.equals("DD") ? Long.valueOf(DAY) : UNITS.get(name);
    long most = unit != null ? unit : MONTHS.containsKey(name) ? MONTHS.get(name) * 31L * DAY : -1;
    return a == null || most < 0 ? null : a.plus(-most - spread(), spread());
  }

  /** Values of several branches; NULL meets nothing. */
  private static Linear hull(boolean isFirst, Linear a, Linear b) {
    if (isFirst || a == null || b == null) {
      return isFirst ? b : null;
    }
    boolean isSame = a.left.compareTo(b.left) == 0 && a.right.compareTo(b.right) == 0 && !a.isNumber() && !b.isNumber()
        && a.unit.compareTo(b.unit) == 0;
    return isSame ? new Linear(a.left, a.right, a.low.min(b.low), a.high.max(b.high), a.unit) : null;
  }

  private Linear cast(Linear a, DataType from, DataType to) {
    boolean isMoment = from instanceof TimestampType;
    if (a == null) {
      return null;
    }
    if (from.equals(to) || from instanceof DayTimeIntervalType && to instanceof DayTimeIntervalType) {
      return from.equals(to) || TranslatedJoin.hasSeconds(to) ? a : null;
    } else if (isMoment && to instanceof LongType) {
      return epoch(a, SECOND);
    } else if (isMoment && (to instanceof DoubleType || to instanceof DecimalType && ((DecimalType) to).scale() >= 3)) {
      return a.plus(-1000, 1000).of(SECOND);
    } else if (isMoment && to instanceof TimestampNTZType) {
      return a.plus(leastOffset, mostOffset);
    } else if (isMoment && to instanceof DateType) {
      return a.plus(leastOffset - DAY, mostOffset).of(DAY);
    } else if (from instanceof TimestampNTZType && to instanceof DateType) {
      return a.plus(-DAY, 0).of(DAY);
    } else if ((from instanceof TimestampNTZType || from instanceof DateType) && to instanceof TimestampType) {
      return a.of(1).plus(-mostOffset, -leastOffset);
    } else if (from instanceof DateType && to instanceof TimestampNTZType) {
      return a.of(1);
    } else if (from instanceof NumericType && to instanceof NumericType && Cast.canUpCast(from, to)
        && !(to instanceof FloatType)) {
      return a;
    } else if ((from instanceof DoubleType || from instanceof DecimalType) && to instanceof LongType) {
      return rounded(a, -1, 1);
    }
    return null;
  }
}
