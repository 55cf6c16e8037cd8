package splitjoin;

import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import scala.Option;
import scala.collection.JavaConverters;

/** Scala's collections from Java, in forms that Scala 2.12 and 2.13 both have. */
@SuppressWarnings({"deprecation", "unchecked"})
final class Scala {
  private Scala() {}

  static <T> scala.collection.immutable.Seq<T> seq(List<? extends T> items) {
    return JavaConverters.asScalaBuffer((List<T>) new ArrayList<>(items)).toList();
  }

  @SafeVarargs
  static <T> scala.collection.immutable.Seq<T> seq(T... items) {
    return seq(Arrays.asList(items));
  }

  static <T> List<T> list(scala.collection.Seq<? extends T> items) {
    return (List<T>) JavaConverters.seqAsJavaListConverter(items).asJava();
  }

  static <T> Option<T> none() {
    return Option.<T>empty();
  }

  /** A new object of the first of the classes {@code names} that this Spark has; null for each argument that is new. */
  static Object make(List<String> names, Object... arguments) {
    for (String name : names) {
      Class<?> found;
      try {
        found = Class.forName(name, true, Scala.class.getClassLoader());
      } catch (ClassNotFoundException e) {
        continue;
      }
      for (Constructor<?> constructor : found.getConstructors()) {
        int wanted = constructor.getParameterCount();
        if (wanted <= arguments.length && wanted >= arguments.length - 1) {
          try {
            return constructor.newInstance(Arrays.copyOf(arguments, wanted));
          } catch (ReflectiveOperationException | IllegalArgumentException e) {
            throw new IllegalStateException("splitjoin: this Spark has another " + name, e);
          }
        }
      }
    }
    throw new IllegalStateException("splitjoin: this Spark has none of " + names);
  }

  /** What the method {@code name} without parameters gives as text, of the first object that has it; else "". */
  static String text(Object of, String... path) {
    Object at = of;
    for (String name : path) {
      try {
        at = value(at, name);
      } catch (ReflectiveOperationException e) {
        return "";
      }
    }
    return String.valueOf(at);
  }

  /** What the method {@code name} without parameters gives, of a class that is elsewhere in other versions of Spark. */
  static Object value(Object of, String name) throws ReflectiveOperationException {
    try {
      return of.getClass().getMethod(name).invoke(of);
    } catch (NoSuchMethodException e) {
      // Spark 3.5 has what later versions make public as a private method of a superclass.
      for (Class<?> at = of.getClass(); at != null; at = at.getSuperclass()) {
        for (Method method : at.getDeclaredMethods()) {
          if (method.getName().equals(name) && method.getParameterCount() == 0) {
            method.setAccessible(true);
            return method.invoke(of);
          }
        }
      }
      throw e;
    }
  }
}
