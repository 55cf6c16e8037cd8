// Loops over batches of streams: arrival order, places among what rises, and rows of columns.
#pragma once

#include "loop.hpp"

namespace splitjoin {

// Write the arrival order of tuples of R and S, whose times rise, R's first at equal times: their `stream` and `ts`, and
// the number of S `s_before` each R. Without branches on the times.
inline void merge_times(Rows times_r, Rows times_s, BytesOut stream, RowsOut ts, RowsOut s_before) {
    int64_t r = 0, s = 0, at = 0;
    while (r < times_r.size && s < times_s.size) {
        const int64_t a = times_r[r], b = times_s[s], of_s = b < a;
        stream[at] = static_cast<uint8_t>(of_s);
        ts[at++] = of_s ? b : a;
        s_before[r] = s;
        s += of_s;
        r += 1 - of_s;
    }
    for (; r < times_r.size; r++, at++) {
        stream[at] = 0;
        ts[at] = times_r[r];
        s_before[r] = s;
    }
    for (; s < times_s.size; s++, at++) {
        stream[at] = 1;
        ts[at] = times_s[s];
    }
}

// Write the place of each key among the `values`, which rise: before those that equal it, or behind them if `after`.
// From one key to the next it looks at growing distances, so keys that rise as well take one pass.
inline void find_places(Rows values, Rows keys, int64_t after, RowsOut places) {
    const int64_t n = values.size;
    int64_t place = 0;
    for (int64_t k = 0; k < keys.size; k++) {
        const int64_t key = keys[k];
        const auto precedes = [&](int64_t at) { return values[at] < key || (after && values[at] == key); };
        int64_t low = place, high = n;
        if (place && !precedes(place - 1)) {
            low = 0;
            high = place - 1;
        } else {
            int64_t step = 1;
            while (low < n && precedes(least_of(low + step, n) - 1)) {
                low = least_of(low + step, n);
                step *= 2;
            }
            high = least_of(low + step - 1, n);
        }
        while (low < high) {
            const int64_t middle = (low + high) >> 1;
            if (precedes(middle))
                low = middle + 1;
            else
                high = middle;
        }
        places[k] = place = low;
    }
}

// Write the `values` at `rows` to `out`. Returns 0 if one of these is not there, as after an edited snapshot.
template <typename T>
inline int64_t take_rows(Array<const T> values, Rows rows, Array<T> out) {
    bool all = true;
    for (int64_t i = 0; i < rows.size; i++) {
        const bool is_there = word(rows[i]) < word(values.size);
        out[i] = is_there ? values[rows[i]] : T{0};
        all &= is_there;
    }
    return all;
}

}  // namespace splitjoin
