package splitjoin;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.CaseWhen;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.PreciseTimestampConversion;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.expressions.TimeZoneAwareExpression;
import org.apache.spark.sql.catalyst.expressions.TryEval;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Writes a join's condition as JSON for {@code splitjoin.catalyst.condition}: exactly, or not at all.
 *
 * <p>Each part that reads one side alone becomes a key, a column that Spark computes itself before the join; so only
 * what is computed of both sides is translated. A key that may raise an error is a struct, which is NULL for the rows
 * that raise one: the error is raised by the pairs that Spark itself would raise it for.
 */
final class ConditionWriter {
  /** The condition is left to Spark, for the reason in the message. */
  static final class Untranslated extends Exception {
    Untranslated(String reason) {
      super(reason, null, false, false);
    }
  }

  private static final Map<String, String> COMPARISONS = Map.of("EqualTo", "=", "EqualNullSafe", "<=>", "LessThan", "<",
      "LessThanOrEqual", "<=", "GreaterThan", ">", "GreaterThanOrEqual", ">=");
  private static final Map<String, String> ARITHMETIC = Map.of("Add", "+", "Subtract", "-", "Multiply", "*");
  private static final Map<String, String> OTHERS = Map.ofEntries(Map.entry("And", "and"), Map.entry("Or", "or"),
      Map.entry("Not", "not"), Map.entry("IsNull", "isnull"), Map.entry("IsNotNull", "isnotnull"),
      Map.entry("Greatest", "greatest"), Map.entry("Least", "least"), Map.entry("Coalesce", "coalesce"),
      Map.entry("If", "if"), Map.entry("In", "in"), Map.entry("Sqrt", "sqrt"), Map.entry("DateDiff", "datediff"));
  private static final Set<String> OF_ONE_TYPE = Set.of("If", "Greatest", "Least", "Coalesce", "In");
  private static final Map<String, String> QUOTIENTS =
      Map.of("IntegralDivide", "div", "Remainder", "mod", "Pmod", "pmod");
  private static final Map<String, String> BITS = Map.of("BitwiseAnd", "&", "BitwiseOr", "|", "BitwiseXor", "^");

  /** Expressions that raise no error whatever their operands are; further ones depend on types and settings. */
  private static final Set<String> SAFE = Set.of("AttributeReference", "Literal", "Alias", "EqualTo", "EqualNullSafe",
      "LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual", "And", "Or", "Not", "IsNull", "IsNotNull",
      "In", "InSet", "Coalesce", "If", "CaseWhen", "Greatest", "Least", "Upper", "Lower", "Length", "Substring",
      "Concat",
      "StartsWith", "EndsWith", "Contains", "DateAdd", "DateSub", "DateDiff", "Year", "Month", "DayOfMonth", "Sqrt",
      "KnownNotNull", "KnownFloatingPointNormalized", "NormalizeNaNAndZero", "PreciseTimestampConversion",
      "CollationKey", "GetStructField", "UnixSeconds", "UnixMillis", "UnixMicros");
  private static final String COLLATION_KEY = "org.apache.spark.sql.catalyst.expressions.CollationKey";

  private final AttributeSet left;
  private final AttributeSet right;
  private final boolean tries;
  /** The keys of both sides, in the order in which the JSON names them. */
  final List<Expression> leftKeys = new ArrayList<>();
  final List<Expression> rightKeys = new ArrayList<>();
  /** The text of each key that may raise an error, or "". */
  final List<String> leftErrors = new ArrayList<>();
  final List<String> rightErrors = new ArrayList<>();

  /** {@code tries}: true if a key that may raise an error is a struct; else Spark raises it wherever a row has it. */
  ConditionWriter(AttributeSet left, AttributeSet right, boolean tries) {
    this.left = left;
    this.right = right;
    this.tries = tries;
  }

  String write(Expression condition) throws Untranslated {
    if (!condition.deterministic()) {
      throw new Untranslated("the condition is not deterministic");
    }
    if (has(condition, PlanExpression.class)) {
      throw new Untranslated("the condition has a subquery");
    }
    if (has(condition, PythonUDF.class)) {
      throw new Untranslated("the condition has a Python function of both sides");
    }
    return node(condition);
  }

  static boolean has(Expression e, Class<?> kind) {
    return e.exists(x -> kind.isInstance(x));
  }

  private String node(Expression e) throws Untranslated {
    String name = e.getClass().getSimpleName();
    if (e instanceof Literal constant && constant.value() != null) {
      String literal = literal(constant);
      if (literal != null) {
        return literal;
      }
    }
    boolean isLeft = e.references().subsetOf(left);
    if (isLeft || e.references().subsetOf(right)) {
      return isShift(name, e) ? call(ARITHMETIC.get(name), e, Scala.list(e.children())) : key(e, isLeft);
    }
    List<Expression> children = Scala.list(e.children());
    if (COMPARISONS.containsKey(name)) {
      checkSameType(children);
      return call(COMPARISONS.get(name), e, children);
    }
    if (ARITHMETIC.containsKey(name)) {
      checkArithmetic(name, e, children);
      return call(ARITHMETIC.get(name), e, children);
    }
    if (OTHERS.containsKey(name)) {
      if (OF_ONE_TYPE.contains(name)) {
        checkSameType(name.equals("If") ? children.subList(1, 3) : children);
      }
      return call(OTHERS.get(name), e, children);
    }
    DataType type = e.dataType();
    String made = switch (name) {
      case "UnaryMinus", "Abs" -> type instanceof DecimalType || isNumber(type) || type instanceof DayTimeIntervalType
          ? call(name.equals("Abs") ? "abs" : "neg", e, children) : null;
      case "Cast" -> {
        if (isWidening(children.get(0).dataType(), type)) {
          yield call("cast", e, children);
        }
        throw new Untranslated("a cast from " + children.get(0).dataType().simpleString() + " to " + type.simpleString()
            + " of a value of both sides, " + e.sql());
      }
      case "SubtractTimestamps" -> type instanceof DayTimeIntervalType
          ? difference(e, children.get(0), children.get(1), "duration") : null;
      case "TimestampDiff" -> {
        Long unit = TimeBounds.UNITS.get(Scala.text(e, "unit").toUpperCase(Locale.ROOT));
        yield unit == null ? null : part("div", difference(e, children.get(1), children.get(0), "long"), unit);
      }
      case "ExtractANSIIntervalDays" -> part("div", micros(e, children), TimeBounds.DAY);
      case "ExtractANSIIntervalHours" -> part("div", part("mod", micros(e, children), TimeBounds.DAY),
          3600 * TimeBounds.SECOND);
      case "ExtractANSIIntervalMinutes" -> part("div", part("mod", micros(e, children), 3600 * TimeBounds.SECOND),
          60 * TimeBounds.SECOND);
      case "ExtractANSIIntervalSeconds" -> "[\"*\",\"decimal(8,6)\",false,[\"cast\",\"decimal(20,0)\",false,"
          + part("mod", micros(e, children), 60 * TimeBounds.SECOND) + "],[\"lit\",\"decimal(6,6)\",\"0.000001\"]]";
      case "IntegralDivide", "Remainder", "Pmod" -> isPositive(children.get(1))
          && children.get(0).dataType() instanceof IntegralType && !tries(e) ? call(QUOTIENTS.get(name), e, children)
          : null;
      case "Divide" -> type instanceof DoubleType && isPositive(children.get(1)) && !tries(e) ? call("/", e, children)
          : null;
      case "BitwiseAnd", "BitwiseOr", "BitwiseXor" -> isOfBits(e) ? call(BITS.get(name), e, children) : null;
      case "CaseWhen" -> {
        CaseWhen choice = (CaseWhen) e;
        List<Expression> values = new ArrayList<>();
        Scala.<scala.Tuple2<Expression, Expression>>list(choice.branches()).forEach(branch -> values.add(branch._2()));
        if (choice.elseValue().isDefined()) {
          values.add(choice.elseValue().get());
        }
        checkSameType(values);
        yield call("case", e, children);
      }
      default -> null;
    };
    if (made != null) {
      return made;
    }
    throw new Untranslated("the function " + name + " of both sides, " + e.sql());
  }

  private String call(String op, Expression e, List<Expression> children) throws Untranslated {
    StringBuilder made = new StringBuilder("[\"").append(op).append("\",\"").append(type(e.dataType())).append("\",")
        .append(raises(e));
    for (Expression child : children) {
      made.append(',').append(node(child));
    }
    return made.append(']').toString();
  }

  /** The time from {@code start} to {@code end} by the local clock, which Spark finds for each, as µs. */
  private String difference(Expression e, Expression end, Expression start, String type) throws Untranslated {
    StringBuilder made = new StringBuilder("[\"-\",\"").append(type).append("\",true");
    for (Expression time : List.of(end, start)) {
      boolean isLeft = time.references().subsetOf(left);
      if (!isLeft && !time.references().subsetOf(right)) {
        throw new Untranslated("a time that is computed of both sides, " + e.sql());
      }
      Expression local = time.dataType() instanceof TimestampNTZType ? time
          : new Cast(time, TimestampNTZType$.MODULE$, ((TimeZoneAwareExpression) e).timeZoneId());
      made.append(',').append(key(type.equals("duration") ? local : number(local), isLeft));
    }
    return made.append(']').toString();
  }

  /** The µs of an interval that is the difference of two times. */
  private String micros(Expression e, List<Expression> children) throws Untranslated {
    Expression interval = children.get(0);
    List<Expression> times = Scala.list(interval.children());
    if (!interval.getClass().getSimpleName().equals("SubtractTimestamps")) {
      throw new Untranslated("a part of an interval that is no difference of two times, " + e.sql());
    }
    return difference(interval, times.get(0), times.get(1), "long");
  }

  private static String part(String op, String of, long unit) {
    return "[\"" + op + "\",\"long\",false," + of + ",[\"lit\",\"long\"," + unit + "]]";
  }

  /** The whole number that Spark has for a time. */
  private static Expression number(Expression time) {
    return new PreciseTimestampConversion(time, time.dataType(), LongType$.MODULE$);
  }

  private static boolean isPositive(Expression e) {
    return e instanceof Literal literal && literal.value() instanceof Number n && n.doubleValue() > 0;
  }

  /** True of operations on bits of what Spark computes of one side. */
  private boolean isOfBits(Expression e) {
    return Scala.<Expression>list(e.children()).stream().allMatch(a -> a.references().subsetOf(left)
        || a.references().subsetOf(right) || a.getClass().getSimpleName().startsWith("Bitwise") && isOfBits(a));
  }

  /** True if arithmetic of this node raises an error where its value does not fit its type. */
  private static boolean raises(Expression e) {
    return Scala.text(e, "evalMode").equals("ANSI") || Scala.text(e, "evalContext", "evalMode").equals("ANSI")
        || Scala.text(e, "failOnError").equals("true");
  }

  /** A sum of one column and a constant, which both sides' band may need: Spark need not compute it. */
  private static boolean isShift(String name, Expression e) {
    if (!name.equals("Add") && !name.equals("Subtract")) {
      return false;
    }
    List<Expression> parts = Scala.list(e.children());
    return (e.dataType() instanceof IntegerType || e.dataType() instanceof LongType)
        && !tries(e) && isColumn(parts.get(0)) && parts.get(1) instanceof Literal
        && ((Literal) parts.get(1)).value() != null;
  }

  private static boolean isColumn(Expression e) {
    return e.getClass().getSimpleName().equals("AttributeReference");
  }

  private static boolean tries(Expression e) {
    return Scala.text(e, "evalMode").equals("TRY") || Scala.text(e, "evalContext", "evalMode").equals("TRY");
  }

  private static void checkArithmetic(String name, Expression e, List<Expression> children) throws Untranslated {
    if (tries(e)) {
      throw new Untranslated("a function that gives NULL in place of an error, " + e.sql());
    }
    DataType type = e.dataType();
    if (isNumber(type)) {
      checkSameType(children);
      return;
    }
    DataType a = children.get(0).dataType();
    DataType b = children.get(1).dataType();
    if (type instanceof DecimalType t && a instanceof DecimalType l && b instanceof DecimalType r) {
      int scale = name.equals("Multiply") ? l.scale() + r.scale() : Math.max(l.scale(), r.scale());
      int digits = name.equals("Multiply") ? l.precision() + r.precision() + 1
          : Math.max(l.precision() - l.scale(), r.precision() - r.scale()) + scale + 1;
      if (t.scale() == scale && t.precision() >= digits) {
        return;
      }
      throw new Untranslated("decimals that may be rounded, " + e.sql());
    }
    throw new Untranslated("arithmetic of " + a.simpleString() + " and " + b.simpleString() + ", " + e.sql());
  }

  private static boolean isNumber(DataType type) {
    return type instanceof ByteType || type instanceof ShortType || type instanceof IntegerType
        || type instanceof LongType || type instanceof FloatType || type instanceof DoubleType;
  }

  private static void checkSameType(List<Expression> parts) throws Untranslated {
    for (Expression part : parts) {
      if (!part.dataType().equals(parts.get(0).dataType())) {
        throw new Untranslated("values of the types " + parts.get(0).dataType().simpleString() + " and "
            + part.dataType().simpleString());
      }
    }
  }

  /** True for a cast that keeps each value, or gives the nearest float. */
  private static boolean isWidening(DataType from, DataType to) {
    if (from.equals(to) || from instanceof DayTimeIntervalType && TranslatedJoin.hasSeconds(to)) {
      return true;
    }
    if (isNumber(from) && (to instanceof DoubleType || to instanceof LongType || to instanceof IntegerType
        || to instanceof ShortType)) {
      return !(from instanceof FloatType && !(to instanceof DoubleType)) && Cast.canUpCast(from, to);
    }
    return to instanceof DecimalType && (from instanceof DecimalType || isNumber(from) && !(from instanceof FloatType)
        && !(from instanceof DoubleType)) && Cast.canUpCast(from, to);
  }

  private String key(Expression of, boolean isLeft) throws Untranslated {
    Expression e = of.dataType().getClass().getSimpleName().startsWith("TimeType") ? number(of)
        : isCollated(of.dataType()) ? (Expression) Scala.make(List.of(COLLATION_KEY), of) : of;
    type(e.dataType());
    List<Expression> keys = isLeft ? leftKeys : rightKeys;
    List<String> errors = isLeft ? leftErrors : rightErrors;
    boolean isSafe = !tries || isSafe(e);
    Expression made = isSafe ? e : new TryEval(new CreateNamedStruct(Scala.seq(
        new Literal(UTF8String.fromString("v"), StringType$.MODULE$), e)));
    int at = TranslatedJoin.place(keys, made);
    if (keys.size() > errors.size()) {
      errors.add(isSafe ? "" : e.sql());
    }
    return "[\"" + (isLeft ? "l" : "r") + "\",\"" + type(e.dataType()) + "\"," + at + "]";
  }

  /** True if {@code e} raises no error, whatever the row. */
  private static boolean isSafe(Expression e) {
    String name = e.getClass().getSimpleName();
    boolean isFloat = e.dataType() instanceof FloatType || e.dataType() instanceof DoubleType;
    boolean isArithmetic = ARITHMETIC.containsKey(name) || name.equals("UnaryMinus") || name.equals("Abs");
    boolean mine = SAFE.contains(name)
        || isArithmetic && (isFloat || isNumber(e.dataType()) && !raises(e) && !tries(e));
    if (name.equals("Cast")) {
      DataType from = Scala.<Expression>list(e.children()).get(0).dataType();
      mine = isWidening(from, e.dataType()) || from instanceof DateType && e.dataType() instanceof TimestampType
          || from instanceof TimestampType && e.dataType() instanceof TimestampNTZType
          || !SQLConf.get().ansiEnabled() && isNumber(from) && isNumber(e.dataType()) && !raises(e);
    }
    return mine && Scala.<Expression>list(e.children()).stream().allMatch(ConditionWriter::isSafe);
  }

  /** True of texts whose order is not that of their bytes, for which Spark has keys with that order. */
  private static boolean isCollated(DataType type) {
    return type instanceof StringType && type.getClass().getSimpleName().startsWith("StringType")
        && !type.equals(StringType$.MODULE$);
  }

  private static String literal(Literal e) {
    DataType type = e.dataType();
    Object value = e.value();
    String written;
    if (type instanceof ByteType || type instanceof ShortType || type instanceof IntegerType || type instanceof LongType
        || type instanceof BooleanType || type instanceof DayTimeIntervalType) {
      written = String.valueOf(value);
    } else if (type instanceof DoubleType && Double.isFinite((Double) value)) {
      written = "\"" + Double.toHexString((Double) value) + "\"";
    } else if (type instanceof FloatType && Float.isFinite((Float) value)) {
      written = "\"" + Double.toHexString(((Float) value).doubleValue()) + "\"";
    } else if (type instanceof DecimalType) {
      written = "\"" + ((Decimal) value).toJavaBigDecimal().toPlainString() + "\"";
    } else {
      return null;
    }
    try {
      return "[\"lit\",\"" + type(type) + "\"," + written + "]";
    } catch (Untranslated x) {
      return null;
    }
  }

  /** The name of a type in JSON. */
  static String type(DataType type) throws Untranslated {
    if (type instanceof StringType) {
      String name = type.getClass().getSimpleName();
      if (!type.equals(StringType$.MODULE$) || name.startsWith("Char") || name.startsWith("Varchar")) {
        throw new Untranslated("texts of the type " + type.simpleString());
      }
      return "string";
    }
    if (isNumber(type) || type instanceof BooleanType || type instanceof DateType || type instanceof TimestampType
        || type instanceof TimestampNTZType || type instanceof BinaryType) {
      return type.typeName();
    }
    if (type instanceof DecimalType d) {
      return "decimal(" + d.precision() + "," + d.scale() + ")";
    }
    if (type instanceof DayTimeIntervalType) {
      return "duration";
    }
    throw new Untranslated("values of the type " + type.simpleString());
  }
}
