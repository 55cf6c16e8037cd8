// The hash joins of whole tables (`hash_join.py`): which tuples of R have a partner in S, by equal keys, by one
// inequality, or by both, and which of them have an earlier one; and the pairs by equal keys.
//
// A key less `least` is the number of a group, if it is from 0 to before `count`; empty keys stand for group 0. A value
// of R has a partner if it is less than one of its group in S, or with `equal` not above it; `flip`, -1 in place of 0,
// turns all values around.
#pragma once

#include "loop.hpp"

namespace splitjoin {

struct Groups {
    Rows keys;
    int64_t least, count;

    // The group of a row, and 1 if it has one; else 0 and 0. Without a branch.
    struct Group {
        int64_t number, has;
    };
    Group of(int64_t row) const {
        const uint64_t group = keys.size ? word(keys[row]) - word(least) : 0;
        const int64_t has = group < word(count);
        return {static_cast<int64_t>(group) & -has, has};
    }
};

// The greatest value of each group, and 1 for groups that are seen.
struct Greatest {
    RowsOut best;
    BytesOut seen;

    // Have a row of S in the greatest value of its group. Returns true if this has risen.
    bool rises(int64_t row, Groups groups, Rows values, int64_t flip) const {
        const auto [group, has] = groups.of(row);
        if (!has) return false;
        const int64_t value = values[row] ^ flip;
        if (seen[group] && value <= best[group]) return false;
        best[group] = value;
        seen[group] = 1;
        return true;
    }
};

// 1 if a row of R has a partner by `best` and `seen`. No branch depends on it, as that cannot be foreseen.
template <typename B, typename S>
inline int64_t meets(int64_t row, Groups groups, Rows values, int64_t flip, int64_t equal, Array<B> best,
                     Array<S> seen) {
    const auto [group, has] = groups.of(row);
    const int64_t value = values[row] ^ flip, bound = best[group];
    return has & seen[group] & ((value < bound) | (equal & (value == bound)));
}

// The greatest value of each group in `best` (count), and 1 in `seen` for groups with one.
inline void fold_greatest(Rows keys, int64_t least, int64_t count, Rows values, int64_t flip, RowsOut best,
                          BytesOut seen) {
    const Groups groups{keys, least, count};
    const Greatest greatest{best, seen};
    for (int64_t row = 0; row < values.size; row++) greatest.rises(row, groups, values, flip);
}

// As `fold_greatest`, in the order of arrival, by times if there are some and by turns otherwise; and in `met` 2 for
// tuples of R with an earlier partner. `risen` gets the rows that raised the greatest value of their group; returns how
// many these are.
inline int64_t mark_met(Rows keys_r, Rows keys_s, int64_t least, int64_t count, Rows values_r, Rows values_s,
                        int64_t flip, int64_t equal, Rows times_r, Rows times_s, RowsOut best, BytesOut seen,
                        BytesOut met, RowsOut risen) {
    const Groups r{keys_r, least, count}, s{keys_s, least, count};
    const Greatest greatest{best, seen};
    const bool timed = times_r.size > 0;
    int64_t at = 0, n = 0;
    const auto note = [&] {
        if (greatest.rises(at, s, values_s, flip)) risen[n++] = at;
        at++;
    };
    for (int64_t i = 0; i < met.size; i++) {
        while (at < values_s.size && (timed ? times_s[at] < times_r[i] : at < i)) note();
        met[i] = static_cast<uint8_t>(2 * meets(i, r, values_r, flip, equal, best, seen));
    }
    while (at < values_s.size) note();
    return n;
}

// Write 1 to `met` for tuples of R that have a partner at all, and 0 there. Returns how many are not 0.
inline int64_t mark_late(Rows keys, int64_t least, int64_t count, Rows values, int64_t flip, int64_t equal, Rows best,
                         Bytes seen, BytesOut met) {
    const Groups groups{keys, least, count};
    int64_t n = 0;
    for (int64_t i = 0; i < met.size; i++) {
        const int64_t has = meets(i, groups, values, flip, equal, best, seen);
        met[i] = greatest_of(met[i], static_cast<uint8_t>(has));
        n += has;
    }
    return n;
}

// The first `partner` of each of `rows` of R, which have one: a row of S. `risen`: rows of S by group, of rising
// values, from `begins` (count + 1) on.
inline void first_beyond(Rows rows, Rows keys, int64_t least, Rows values, int64_t flip, int64_t equal, Rows begins,
                         Rows risen, Rows values_s, RowsOut partner) {
    for (int64_t i = 0; i < rows.size; i++) {
        const int64_t row = rows[i], group = keys.size ? keys[row] - least : 0, value = values[row] ^ flip;
        int64_t low = begins[group], high = begins[group + 1] - 1;
        while (low < high) {
            const int64_t middle = (low + high) >> 1, bound = values_s[risen[middle]] ^ flip;
            if (value < bound || (equal && value == bound))
                high = middle;
            else
                low = middle + 1;
        }
        partner[i] = risen[low];
    }
}

// The `first` row of S of each group (count), which keeps what it has for groups without one.
inline void first_rows(Rows keys, int64_t least, int64_t count, RowsOut first) {
    for (int64_t row = keys.size - 1; row >= 0; row--) {
        const uint64_t group = word(keys[row]) - word(least);
        if (group < word(count)) first[group] = row;
    }
}

// Write 2 to `met` for tuples of R whose group has its `first` row of S before row `upto`, or by turns, if that is
// empty, before their own, which begin at `offset`; 1 if only later; 0 if it has none, and is `rows_s`, as the last of
// `first` (count + 1) is. Returns how many are not 0.
inline int64_t mark_equal(Rows keys, int64_t least, int64_t count, Rows first, int64_t rows_s, int64_t offset,
                          Rows upto, BytesOut met) {
    int64_t n = 0;
    for (int64_t i = 0; i < met.size; i++) {
        const uint64_t group = word(keys[i]) - word(least);
        const int64_t row = first[group < word(count) ? group : word(count)];
        // Signs of differences: the compiler would make branches of comparisons, which wait for `row`.
        const int64_t found = (row - rows_s) >> 63;
        const int64_t before = upto.size ? upto[i] : least_of(i + offset, rows_s);
        met[i] = static_cast<uint8_t>(-found - ((row - before) >> 63));
        n -= found;
    }
    return n;
}

// The order of arrival of both streams: by times if there are some, R's first at equal ones, and by turns otherwise.
template <typename R, typename S>
inline void in_order(int64_t rows_r, int64_t rows_s, Rows times_r, Rows times_s, R arrives_r, S arrives_s) {
    const bool timed = times_r.size > 0;
    int64_t j = 0;
    for (int64_t i = 0; i < rows_r; i++) {
        while (j < rows_s && (timed ? times_s[j] < times_r[i] : j < i)) arrives_s(j++);
        arrives_r(i);
    }
    while (j < rows_s) arrives_s(j++);
}

// Have a row wait for others with its key: note whom it meets, and whom those that come later meet behind it. Returns
// how many it meets. No branch depends on keys, so that reads of several rows overlap.
inline int64_t waiting(int64_t row, Groups groups, RowsOut heads, int64_t side, RowsOut met, RowsOut before) {
    const auto [group, has] = groups.of(row);
    const int64_t slot = 2 * (group + (1 - has) * groups.count);  // the last one is that of no group
    const int64_t others = heads[slot + 1 - side] & -has, mine = heads[slot + side];
    met[row] = others;
    before[row] = mine;
    heads[slot + side] = ((row + 1) << 32) | ((mine & 0xFFFFFFFF) + 1);
    return others & 0xFFFFFFFF;
}

// Whom each row meets of those with its key that arrive earlier (`in_order`). Returns how many pairs there are.
//
// `heads` (2 · count + 2), which are 0: for each group of R and of S one more than the last row, and in the low 32 bits
// how many there are. `met_r`, `met_s` get the heads of the other stream that each row meets, 0 for none, and
// `before_r`, `before_s` those of its own before it.
inline int64_t count_in_order(Rows keys_r, Rows keys_s, int64_t least, int64_t count, Rows times_r, Rows times_s,
                              RowsOut heads, RowsOut met_r, RowsOut met_s, RowsOut before_r, RowsOut before_s) {
    const Groups r{keys_r, least, count}, s{keys_s, least, count};
    int64_t total = 0;
    in_order(keys_r.size, keys_s.size, times_r, times_s,
             [&](int64_t i) { total += waiting(i, r, heads, 0, met_r, before_r); },
             [&](int64_t j) { total += waiting(j, s, heads, 1, met_s, before_s); });
    return total;
}

// Write the pairs of a row from `at` on, from the last to the first. Returns their end.
inline int64_t paired(int64_t row, Rows met, Rows before, int64_t at, RowsOut mine, RowsOut theirs) {
    const int64_t n = met[row] & 0xFFFFFFFF;
    int64_t other = met[row] >> 32;
    for (int64_t k = 0; k < n; k++) {
        const int64_t place = at + n - 1 - k;
        mine[place] = row;
        theirs[place] = other - 1;
        if (k + 1 < n) other = before[other - 1] >> 32;
    }
    return at + n;
}

// The pairs that `count_in_order` has counted, in order of arrival.
inline void pairs_in_order(Rows times_r, Rows times_s, Rows met_r, Rows met_s, Rows before_r, Rows before_s, RowsOut r,
                           RowsOut s) {
    int64_t at = 0;
    in_order(met_r.size, met_s.size, times_r, times_s,
             [&](int64_t i) { at = paired(i, met_r, before_s, at, r, s); },
             [&](int64_t j) { at = paired(j, met_s, before_r, at, s, r); });
}

// Write the pairs of a row from `at` on, as far as there is room. Returns their end.
inline int64_t paired_in_time(int64_t row, int64_t time, int64_t other, RowsOut before, Rows times, uint64_t length,
                              int64_t at, RowsOut mine, RowsOut theirs) {
    int64_t first = at;
    while (other && at < mine.size &&
           word(time) - word(times[other - 1]) <= length) {
        mine[at] = row;
        theirs[at++] = other - 1;
        other = before[other - 1];
    }
    for (int64_t last = at - 1; first < last; first++, last--) {  // they were found from the last to the first
        const int64_t kept = theirs[first];
        theirs[first] = theirs[last];
        theirs[last] = kept;
    }
    return at;
}

// The pairs with equal keys in order of arrival, of which the tuple of S comes at most `early` ticks earlier than that
// of R, or at most `late` ticks later. Returns how many there are; if `r` and `s` have no more room than for these,
// there may be more.
//
// `heads` (2 · count), which are 0: for each group of R and of S one more than the last row. `before_r` and `before_s`
// get one more than the row of the same group before each row, 0 for none.
inline int64_t pairs_in_time(Rows keys_r, Rows keys_s, int64_t least, int64_t count, Rows times_r, Rows times_s,
                             uint64_t early, uint64_t late, RowsOut heads, RowsOut before_r, RowsOut before_s,
                             RowsOut r, RowsOut s) {
    const Groups groups_r{keys_r, least, count}, groups_s{keys_s, least, count};
    int64_t at = 0, j = 0;
    for (int64_t i = 0; i <= times_r.size; i++) {
        for (; j < times_s.size && (i == times_r.size || times_s[j] < times_r[i]); j++) {
            const auto [group, has] = groups_s.of(j);
            if (!has) continue;
            at = paired_in_time(j, times_s[j], heads[2 * group], before_r, times_r, late, at, s, r);
            before_s[j] = heads[2 * group + 1];
            heads[2 * group + 1] = j + 1;
        }
        if (i < times_r.size) {
            const auto [group, has] = groups_r.of(i);
            if (has) {
                at = paired_in_time(i, times_r[i], heads[2 * group + 1], before_s, times_s, early, at, r, s);
                before_r[i] = heads[2 * group];
                heads[2 * group] = i + 1;
            }
        }
        if (at == r.size) return at;
    }
    return at;
}

// Add for each group its rows of S to `counts`, and of their `values`, if that is not empty, the low 32 bits to `lows`
// and the others to `highs`.
inline void group_sums(Rows keys, int64_t least, int64_t count, Rows values, RowsOut counts, RowsOut lows,
                       RowsOut highs) {
    const Groups groups{keys, least, count};
    for (int64_t row = 0; row < keys.size; row++) {
        const auto [group, has] = groups.of(row);
        counts[group] += has;
        if (values.size) {
            lows[group] += (values[row] & 0xFFFFFFFF) & -has;
            highs[group] += (values[row] >> 32) & -has;
        }
    }
}

}  // namespace splitjoin
