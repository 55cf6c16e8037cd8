// The as-of join of whole tables (`as_of_join.py`): merges of both by time, and the nearest partners.
#pragma once

#include "loop.hpp"

namespace splitjoin {

// 1 if a is below b, or with `equal` at most it. Without a branch.
inline int64_t is_below(int64_t a, int64_t b, int64_t equal) { return (a < b) | (equal & (a == b)); }

// The number of values of `ordered`, which ascends, below `wanted`, or with `equal` at most it.
inline int64_t count_below(Rows ordered, int64_t wanted, int64_t equal) {
    int64_t low = 0, high = ordered.size;
    while (low < high) {
        const int64_t middle = (low + high) >> 1;
        if (is_below(ordered[middle], wanted, equal))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// As `merged_counts`. No branch depends on which of two numbers is less, as that cannot be foreseen; and the sixths of
// `wanted` take turns, as a step waits for the one before it, but not for those of other sixths.
template <int64_t equal>
inline void merge(Rows ordered, Rows wanted, RowsOut counts) {
    constexpr int64_t parts = 6;
    const int64_t last = ordered.size;
    int64_t i[parts], end[parts], at[parts];
    for (int64_t k = 0; k < parts; k++) {
        i[k] = wanted.size * k / parts;
        end[k] = wanted.size * (k + 1) / parts;
        at[k] = i[k] < end[k] ? count_below(ordered, wanted[i[k]], equal) : last;
    }
    for (;;) {
        int64_t steps = last;  // after which no sixth is behind an end
        for (int64_t k = 0; k < parts; k++) {
            const int64_t mine = end[k] - i[k] < last - at[k] ? end[k] - i[k] : last - at[k];
            steps = mine < steps ? mine : steps;
        }
        if (steps <= 0) break;
        for (; steps; steps--)
            for (int64_t k = 0; k < parts; k++) {
                counts[i[k]] = at[k];
                const int64_t below = is_below(ordered[at[k]], wanted[i[k]], equal);
                at[k] += below;
                i[k] += 1 - below;
            }
    }
    for (int64_t k = 0; k < parts; k++) {
        while (i[k] < end[k] && at[k] < last) {
            counts[i[k]] = at[k];
            const int64_t below = is_below(ordered[at[k]], wanted[i[k]], equal);
            at[k] += below;
            i[k] += 1 - below;
        }
        for (; i[k] < end[k]; i[k]++) counts[i[k]] = last;
    }
}

// For each of `wanted` how many of `ordered` are below it, or with `equal` not above it; both rise.
inline void merged_counts(Rows ordered, Rows wanted, int64_t equal, RowsOut counts) {
    if (equal) merge<1>(ordered, wanted, counts);
    else merge<0>(ordered, wanted, counts);
}

// The positions `of` rows from `first` on, with `times`, when they are merged with `others`, of which those at the same
// time come first if `equal`; and in the merged order the `stream` of each.
inline void merge_positions(Rows times, Rows others, int64_t equal, int64_t first, int64_t side, RowsOut of,
                            BytesOut stream) {
    merged_counts(others, times, equal, of);
    for (int64_t i = 0; i < times.size; i++) {
        of[i] += first + i;
        stream[of[i]] = static_cast<uint8_t>(side);
    }
}

// For each tuple of R the last row of S of its group before row `upto`, which rises, and from `floor` on, if that is not
// empty; -1 for none. `last`: for each group its last row before row `seen`.
inline void last_of_group(Rows upto, Rows floor, Rows groups_r, Rows groups_s, int64_t seen, RowsOut last,
                          RowsOut partner) {
    int64_t at = seen;
    for (int64_t i = 0; i < upto.size; i++) {
        for (; at < upto[i]; at++)
            if (groups_s[at] >= 0) last[groups_s[at]] = at;
        const int64_t row = groups_r[i] >= 0 ? last[groups_r[i]] : -1;
        partner[i] = floor.size == 0 || row >= floor[i] ? row : -1;
    }
}

// For each tuple of R the first row of S of its group from row `start` on, which rises, and before `ceiling`, if that is
// not empty; -1 for none. `first`: for each group its first row from row `seen` on.
inline void first_of_group(Rows start, Rows ceiling, Rows groups_r, Rows groups_s, int64_t seen, RowsOut first,
                           RowsOut partner) {
    int64_t at = seen;
    for (int64_t i = start.size - 1; i >= 0; i--) {
        while (at > start[i]) {
            at--;
            if (groups_s[at] >= 0) first[groups_s[at]] = at;
        }
        const int64_t row = groups_r[i] >= 0 ? first[groups_r[i]] : -1;
        partner[i] = ceiling.size == 0 || row < ceiling[i] ? row : -1;
    }
}

// Note in `rows` for each group its last row, or with `step` -1 its first one; rows begin at `begin`.
inline void note_rows(Rows groups_s, int64_t begin, int64_t step, RowsOut rows) {
    for (int64_t k = 0; k < groups_s.size; k++) {
        const int64_t i = step > 0 ? k : groups_s.size - 1 - k;
        if (groups_s[i] >= 0) rows[groups_s[i]] = begin + i;
    }
}

// Of the rows `back`, not after each of `times`, and `fore`, not before it, the nearer that is at most so much `earlier`
// or `later`, -1 if none is; of equally near ones the former. Rows of `fore` that are not there are none; without rows
// `back`, these are the ones before `fore`. As unsigned numbers, since the difference of two times may not fit 64 bits
// with a sign.
inline void nearer(Rows times, Rows times_s, Rows back, Rows fore, uint64_t earlier, uint64_t later, RowsOut partner) {
    for (int64_t i = 0; i < times.size; i++) {
        const int64_t f = fore[i], b = back.size ? back[i] : f - 1;
        const bool is_back = b >= 0, is_fore = f >= 0 && f < times_s.size;
        const uint64_t time = word(times[i]);
        const uint64_t before = is_back ? time - word(times_s[b]) : 0, behind = is_fore ? word(times_s[f]) - time : 0;
        const int64_t has_back = is_back & (before <= earlier), has_fore = is_fore & (behind <= later);
        const int64_t takes_back = has_back & ~(has_fore & (behind < before)), takes_fore = has_fore & ~takes_back;
        // Without a branch, as which of both is nearer cannot be foreseen.
        partner[i] = (b & -takes_back) | (f & -takes_fore) | (takes_back + takes_fore - 1);
    }
}

// Twice the time, from `base` on, behind which the choice of each of `rows` for its nearest `partner` is decided, or at
// which it is by the partner itself, as of `order_by_times`; nothing overflows. Returns 1 if `rows` are decided in their
// order. If `when` is empty, it ends at the first one that is not.
inline int64_t decision_times(Rows times, Rows times_s, Rows rows, Rows partner, int64_t base, int64_t most,
                              RowsOut when) {
    int64_t last = -1, at = 0, in_order = 1;
    for (int64_t i = 0; i < rows.size && (in_order || when.size); i++) {
        const int64_t time = times[rows[i]], mate = times_s[partner[i]], apart = time - mate - 1;
        const int64_t itself = -static_cast<int64_t>(mate > time);  // all bits, as a branch could not be foreseen
        const int64_t waits = apart < 0 ? 0 : apart < most ? apart : most;
        const int64_t until = (mate & itself) | ((time + waits) & ~itself);
        const int64_t now = (until - base) * 2 + 1 + itself, turn = partner[i] & itself;
        in_order &= (now > last) | ((now == last) & (turn >= at));
        last = now;
        at = turn;
        if (when.size) when[i] = now;
    }
    return in_order;
}

// Have no `partner` that is more than so much `earlier` or `later` than `times`.
inline void drop_far(Rows times, Rows times_s, uint64_t earlier, uint64_t later, RowsOut partner) {
    for (int64_t i = 0; i < times.size; i++) {
        if (partner[i] < 0) continue;
        const int64_t time_s = times_s[partner[i]];
        const uint64_t a = word(times[i]), b = word(time_s);
        if (time_s < times[i] ? a - b > earlier : b - a > later) partner[i] = -1;
    }
}

}  // namespace splitjoin
