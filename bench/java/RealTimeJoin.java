import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import org.apache.spark.api.java.function.MapFunction;
import org.apache.spark.sql.*;
import org.apache.spark.sql.streaming.*;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A band join of two streams within a window of event time, row by row: what {@code bench.spark_realtime} tries in
 * Spark's Real-time Mode. The state store has all rows; an index of them in memory is made anew with each micro-batch.
 */
public final class RealTimeJoin extends StatefulProcessor<Integer, Row, Row> {
  private static final StructType IN = new StructType().add("side", "int").add("ts", "long").add("x", "long");
  private static final StructType OUT = new StructType().add("ts_r", "long").add("x", "long").add("ts_s", "long")
      .add("a", "long");

  private final long window;
  private final long band;
  private transient List<ListState<Row>> state;
  private transient List<TreeMap<Long, ArrayDeque<Long>>> times;

  private RealTimeJoin(long window, long band) {
    this.window = window;
    this.band = band;
  }

  /** The pairs of rows (side, ts, x) of R (side 0) and S (side 1) at most so many microseconds and values apart. */
  public static Dataset<Row> of(Dataset<Row> r, Dataset<Row> s, long window, long band) {
    return r.union(s).groupByKey((MapFunction<Row, Integer>) row -> 0, Encoders.INT())
        .transformWithState(new RealTimeJoin(window, band), TimeMode.None(), OutputMode.Update(), Encoders.row(OUT));
  }

  @Override
  public void init(OutputMode outputMode, TimeMode timeMode) {
    state = new ArrayList<>();
    for (int side = 0; side < 2; side++) {
      state.add(getHandle().getListState("side" + side, Encoders.row(IN), TTLConfig.NONE()));
    }
  }

  @Override
  public scala.collection.Iterator<Row> handleInputRows(Integer key, scala.collection.Iterator<Row> rows,
      TimerValues timers) {
    if (times == null) {
      times = List.of(new TreeMap<>(), new TreeMap<>());
      for (ListState<Row> stored : state) {
        CollectionConverters.asJava(stored.get()).forEachRemaining(this::index);
      }
    }
    List<Row> pairs = new ArrayList<>();
    while (rows.hasNext()) {
      Row row = rows.next();
      int side = row.getInt(0);
      long ts = row.getLong(1);
      long x = row.getLong(2);
      times.get(1 - side).subMap(x - band, true, x + band, true).forEach((other, found) -> {
        while (!found.isEmpty() && found.peekFirst() < ts - window) {
          found.removeFirst();
        }
        for (long at : found) {
          pairs.add(side == 0 ? RowFactory.create(ts, x, at, other) : RowFactory.create(at, other, ts, x));
        }
      });
      index(row);
      state.get(side).appendValue(row);
    }
    return CollectionConverters.asScala(pairs.iterator());
  }

  private void index(Row row) {
    times.get(row.getInt(0)).computeIfAbsent(row.getLong(2), x -> new ArrayDeque<>()).add(row.getLong(1));
  }
}
