// Loops over ranges of rows that lie in an order: the positions of groups, order statistics, and the most frequent values.
#pragma once

#include "loop.hpp"

namespace splitjoin {

// The rows of groups 0, 1, … one group behind the other; rows of group -1 are left out. `next`: where each group begins;
// becomes where it ends.
inline void order_groups(Rows groups, RowsOut next, RowsOut order) {
    for (int64_t row = 0; row < groups.size; row++)
        if (groups[row] >= 0) order[next[groups[row]]++] = row;
}

// For each tuple of R where in `order_groups` of S the rows of its group from row `upto`, which rises, on begin; 0
// without a group. `next`: where each group begins.
inline void places_in_groups(Rows upto, Rows groups_r, Rows groups_s, RowsOut next, RowsOut places) {
    int64_t row = 0;
    for (int64_t i = 0; i < upto.size; i++) {
        for (; row < upto[i]; row++)
            if (groups_s[row] >= 0) next[groups_s[row]]++;
        places[i] = groups_r[i] >= 0 ? next[groups_r[i]] : 0;
    }
}

// A wavelet matrix (Claude, Navarro and Ordóñez, The wavelet matrix, 2015) of numbers of so many `bits`: level by level,
// from the highest bit, for each 64 places how many ones are before them, and the bits of the level there. `zeros`: of
// each level. Overwrites both arrays of numbers.
inline void wavelet_levels(RowsOut numbers, RowsOut spare, int64_t bits, CodesOut nodes, RowsOut zeros) {
    const int64_t n = numbers.size, blocks = n / 64 + 1;
    RowsOut from = numbers, to = spare;
    for (int64_t level = 0; level < bits; level++) {
        uint64_t *node = &nodes[2 * level * blocks];
        const int64_t shift = bits - 1 - level;
        int64_t ones = 0, below = 0;
        for (int64_t i = 0; i <= n; i++) {
            if (i % 64 == 0) {
                node[i / 64 * 2] = word(ones);
                node[i / 64 * 2 + 1] = 0;
            }
            if (i == n) break;
            const uint64_t bit = word(from[i]) >> shift & 1;
            node[i / 64 * 2 + 1] |= bit << (i % 64);
            ones += static_cast<int64_t>(bit);
        }
        zeros[level] = n - ones;
        for (int64_t i = 0, above = n - ones; i < n; i++) {
            const int64_t number = from[i];
            to[word(number) >> shift & 1 ? above++ : below++] = number;
        }
        const RowsOut last = from;
        from = to;
        to = last;
    }
}

// In each range of the numbers of a wavelet matrix the one that `places` others, of those sorted, are before; 0 of none.
inline void wavelet_select(Codes nodes, Rows zeros, int64_t bits, Rows start, Rows end, Rows places, RowsOut found) {
    const int64_t blocks = bits ? nodes.size / 2 / bits : 0;
    for (int64_t i = 0; i < start.size; i++) {
        int64_t low = start[i], high = end[i], place = places[i], number = 0;
        for (int64_t level = 0; level < bits && low < high; level++) {
            const uint64_t *node = &nodes[2 * level * blocks];
            const auto ones = [node](int64_t at) {
                const uint64_t below = (uint64_t{1} << (at % 64)) - 1;
                return static_cast<int64_t>(node[at / 64 * 2]) + __builtin_popcountll(node[at / 64 * 2 + 1] & below);
            };
            const int64_t before = ones(low), upto = ones(high), small = high - low - (upto - before);
            number *= 2;
            if (place < small) {
                low -= before;
                high -= upto;
            } else {
                place -= small;
                low = zeros[level] + before;
                high = zeros[level] + upto;
                number++;
            }
        }
        found[i] = number;
    }
}

// The values of a range that grows: how many differ, and the first row of the most frequent one.
struct Frequencies {
    Rows codes, rows;
    RowsOut counts, firsts;
    int64_t different = 0, most = 0, first = -1;

    void add(int64_t at) {
        const int64_t code = codes[at], row = rows[at], count = ++counts[code];
        different += count == 1;
        firsts[code] = count == 1 ? row : least_of(firsts[code], row);
        if (count > most || (count == most && firsts[code] < first)) {
            most = count;
            first = firsts[code];
        }
    }
};

// The number of different values in each range, and the row of the first one of the most frequent value, of several the
// one with the first row; -1 without any. `codes`: numbers of the values; `rows`: at each position. Ranges come in the
// order `by`: by the block of so many positions in which they start, then by their ends. So the end of what is counted
// moves forward once for each block, and what is before the block's end is added and taken back (Mo's algorithm without
// deletion). `counts` (codes), 0; `firsts` (codes); `spare` (block).
inline void range_frequencies(Rows codes, Rows rows, Rows start, Rows end, Rows by, int64_t block, RowsOut counts,
                              RowsOut firsts, RowsOut spare, RowsOut different, RowsOut mode) {
    Frequencies values{codes, rows, counts, firsts};
    int64_t cut = -1, upto = 0;
    const auto forget = [&](int64_t from, int64_t to) {
        for (int64_t at = from; at < to; at++) counts[codes[at]] = 0;
        values = Frequencies{codes, rows, counts, firsts};
    };
    for (int64_t n = 0; n < by.size; n++) {
        const int64_t i = by[n], next = (start[i] / block + 1) * block;
        if (next != cut) {
            if (cut >= 0) forget(cut, upto);
            cut = upto = next;
        }
        if (end[i] <= cut) {  // the range is within the block, so nothing behind it is counted yet
            for (int64_t at = start[i]; at < end[i]; at++) values.add(at);
            different[i] = values.different;
            mode[i] = values.first;
            forget(start[i], end[i]);
            continue;
        }
        for (; upto < end[i]; upto++) values.add(upto);
        const Frequencies before = values;
        for (int64_t at = cut - 1; at >= start[i]; at--) {
            spare[cut - 1 - at] = firsts[codes[at]];
            values.add(at);
        }
        different[i] = values.different;
        mode[i] = values.first;
        for (int64_t at = start[i]; at < cut; at++) {
            counts[codes[at]]--;
            firsts[codes[at]] = spare[cut - 1 - at];
        }
        values = before;
    }
    if (cut >= 0) forget(cut, upto);
}

}  // namespace splitjoin
