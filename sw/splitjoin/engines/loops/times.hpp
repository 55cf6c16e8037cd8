// Loops over whole tables by time: merges of both, and the nearest partners.
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

// As `merged_counts`. No branch depends on which of two numbers is less, as that cannot be foreseen; and the halves of
// `wanted` take turns, as a step waits for the one before it, but not for that of the other half.
inline void merge(Rows ordered, Rows wanted, int64_t equal, RowsOut counts) {
    const int64_t last = ordered.size, half = wanted.size / 2, end = wanted.size;
    if (!end) return;
    int64_t i = 0, j = half;
    int64_t at = count_below(ordered, wanted[i], equal), to = count_below(ordered, wanted[j], equal);
    while (i < half && j < end && to < last) {  // so `at` is not behind the end either
        counts[i] = at;
        counts[j] = to;
        const int64_t first = is_below(ordered[at], wanted[i], equal);
        const int64_t second = is_below(ordered[to], wanted[j], equal);
        at += first;
        i += 1 - first;
        to += second;
        j += 1 - second;
    }
    const auto rest = [&](int64_t n, int64_t until, int64_t count) {
        while (n < until && count < last) {
            counts[n] = count;
            const int64_t below = is_below(ordered[count], wanted[n], equal);
            count += below;
            n += 1 - below;
        }
        for (; n < until; n++) counts[n] = last;
    };
    rest(i, half, at);
    rest(j, end, to);
}

// For each of `wanted` how many of `ordered` are below it, or with `equal` not above it; both rise.
inline void merged_counts(Rows ordered, Rows wanted, int64_t equal, RowsOut counts) {
    merge(ordered, wanted, equal != 0, counts);
}

// The positions `of` rows from `first` on, with `times`, when they are merged with `others`, of which those at the same
// time come first if `equal`; and in the merged order the `stream` of each.
inline void merge_positions(Rows times, Rows others, int64_t equal, int64_t first, int64_t side, RowsOut of,
                            BytesOut stream) {
    merge(others, times, equal != 0, of);
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
// or `later`, -1 if none is; of equally near ones the former. As unsigned numbers, since the difference of two times may
// not fit 64 bits with a sign.
inline void nearer(Rows times, Rows times_s, Rows back, Rows fore, uint64_t earlier, uint64_t later, RowsOut partner) {
    for (int64_t i = 0; i < times.size; i++) {
        const int64_t b = back[i], f = fore[i];
        const uint64_t time = word(times[i]);
        const uint64_t before = b >= 0 ? time - word(times_s[b]) : 0, behind = f >= 0 ? word(times_s[f]) - time : 0;
        const bool has_back = b >= 0 && before <= earlier, has_fore = f >= 0 && behind <= later;
        partner[i] = has_back && !(has_fore && behind < before) ? b : has_fore ? f : -1;
    }
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
