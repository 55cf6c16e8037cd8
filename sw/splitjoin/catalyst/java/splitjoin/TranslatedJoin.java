package splitjoin;

import com.fasterxml.jackson.core.io.JsonStringEncoder;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.*;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.types.*;

/** A join in splitjoin's terms: its kind, its condition, the columns that each side brings, and those of the result. */
final class TranslatedJoin {
  /** Types that Spark does not hand to Python through Arrow in all its versions. */
  private static final Set<String> UNSENT = Set.of("CalendarIntervalType", "YearMonthIntervalType", "ObjectType",
      "VariantType", "GeometryType", "GeographyType");

  private static final Map<String, String> KINDS = Map.of("Inner$", "inner", "Cross$", "inner", "LeftOuter$", "left",
      "RightOuter$", "right", "FullOuter$", "full", "LeftSemi$", "semi", "LeftAnti$", "anti", "ExistenceJoin",
      "existence");

  final Join join;
  final String kind;
  /** The condition as JSON. */
  final String condition;
  /** The columns of the result, and the source of each one as JSON. */
  final List<Attribute> output = new ArrayList<>();
  final List<String> sources = new ArrayList<>();
  /** The columns of each side, and which of them are the condition's keys. */
  final List<Expression> left = new ArrayList<>();
  final List<Expression> right = new ArrayList<>();
  final List<Integer> leftKeys = new ArrayList<>();
  final List<Integer> rightKeys = new ArrayList<>();
  /** The text of each key that may raise an error, or "". */
  final List<String> leftErrors;
  final List<String> rightErrors;

  /** {@code wanted}: the columns of the result that are read, null for all. */
  TranslatedJoin(Join join, AttributeSet wanted) throws ConditionWriter.Untranslated {
    this.join = join;
    kind = kind(join.joinType());
    ConditionWriter writer = new ConditionWriter(join.left().outputSet(), join.right().outputSet(),
        !join.left().isStreaming() || !join.right().isStreaming());
    condition = writer.write(join.condition().get());
    leftErrors = writer.leftErrors;
    rightErrors = writer.rightErrors;
    for (Attribute a : Scala.<Attribute>list(join.output())) {
      if (wanted != null && !wanted.contains(a)) {
        continue;
      }
      checkSent(a.dataType());
      boolean isLeft = join.left().outputSet().contains(a);
      if (!isLeft && !join.right().outputSet().contains(a)) {
        sources.add("[\"matched\",0]");
      } else {
        sources.add("[\"" + (isLeft ? "l" : "r") + "\"," + place(isLeft ? left : right, a) + "]");
      }
      output.add(a);
    }
    if (output.isEmpty()) { // rows that are counted
      output.add(Nodes.attribute("splitjoin", BooleanType$.MODULE$));
      sources.add("[\"matched\",0]");
    }
    writer.leftKeys.forEach(key -> leftKeys.add(place(left, key)));
    writer.rightKeys.forEach(key -> rightKeys.add(place(right, key)));
  }

  /** The join with a column for each of the condition's Python functions of one side: Spark computes these ahead. */
  static Join computed(Join join) {
    List<NamedExpression> lefts = new ArrayList<>(Scala.<Attribute>list(join.left().output()));
    List<NamedExpression> rights = new ArrayList<>(Scala.<Attribute>list(join.right().output()));
    Expression condition = computed(join.condition().get(), join, lefts, rights);
    return new Join(computed(join.left(), lefts), computed(join.right(), rights), join.joinType(),
        scala.Option.apply(condition), join.hint());
  }

  private static Expression computed(Expression e, Join join, List<NamedExpression> lefts,
      List<NamedExpression> rights) {
    boolean isLeft = e.references().subsetOf(join.left().outputSet());
    if (!(e instanceof PythonUDF) || !isLeft && !e.references().subsetOf(join.right().outputSet())) {
      return (Expression) e.mapChildren(child -> computed((Expression) child, join, lefts, rights));
    }
    List<NamedExpression> columns = isLeft ? lefts : rights;
    for (NamedExpression column : columns) {
      if (column instanceof Alias alias && alias.child().semanticEquals(e)) {
        return column.toAttribute();
      }
    }
    columns.add(Nodes.named(e, e.sql()));
    return columns.get(columns.size() - 1).toAttribute();
  }

  private static LogicalPlan computed(LogicalPlan side, List<NamedExpression> columns) {
    return columns.size() == side.output().size() ? side : new Project(Scala.seq(columns), side);
  }

  private static String kind(JoinType type) throws ConditionWriter.Untranslated {
    String kind = KINDS.get(type.getClass().getSimpleName());
    if (kind == null) {
      throw new ConditionWriter.Untranslated("a join of the kind " + type.sql());
    }
    return kind;
  }

  private static void checkSent(DataType type) throws ConditionWriter.Untranslated {
    if (type.existsRecursively(t -> UNSENT.contains(t.getClass().getSimpleName().replace("$", ""))
        || t instanceof UserDefinedType)) {
      throw new ConditionWriter.Untranslated("a column of the type " + type.simpleString());
    }
  }

  /** True for an interval of days and times that keeps seconds. */
  static boolean hasSeconds(DataType type) {
    return type instanceof DayTimeIntervalType
        && ((DayTimeIntervalType) type).endField() == DayTimeIntervalType$.MODULE$.SECOND();
  }

  /** The place of {@code e} in {@code columns}, to which it is added if it is not there. */
  static int place(List<Expression> columns, Expression e) {
    for (int n = 0; n < columns.size(); n++) {
      if (columns.get(n).semanticEquals(e)) {
        return n;
      }
    }
    columns.add(e);
    return columns.size() - 1;
  }

  /** The type of the result's rows, with columns c0, c1, … */
  StructType type() {
    return numbered(output);
  }

  /** The type of rows of these columns, named c0, c1, … */
  static StructType numbered(List<? extends Expression> columns) {
    StructType type = new StructType();
    for (int n = 0; n < columns.size(); n++) {
      type = type.add("c" + n, columns.get(n).dataType(), true);
    }
    return type;
  }

  /** The condition as SQL. */
  String text() {
    return join.condition().get().sql();
  }

  /** Texts as a list in JSON. */
  static String texts(List<String> texts) {
    return texts.stream().map(TranslatedJoin::text).toList().toString();
  }

  /** A text as JSON; null for null. */
  static String text(String text) {
    return text == null ? "null" : '"' + String.valueOf(JsonStringEncoder.getInstance().quoteAsString(text)) + '"';
  }
}
