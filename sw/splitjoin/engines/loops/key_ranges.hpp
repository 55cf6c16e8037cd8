// The partitioned range join of whole tables (`key_ranges.py`, which says what fine buckets, partitions and directories
// are), the order of its pairs (`pair_order.py`), and the numbers of groups of equal keys (`key_groups.py`).
//
// An empty array of group numbers stands for one group of all rows; -1 is a row without a group.
#pragma once

#include "loop.hpp"

namespace splitjoin {

constexpr int64_t steps = 8;  // tuples that are compared one by one before a directory is asked for the end of a range
constexpr int64_t few = 24;   // numbers up to which insertion sorts fastest

// Count the tuples of each fine bucket.
inline void stored_counts(Rows numbers, Codes keys, uint64_t least, uint64_t stride, uint64_t shift, RowsOut counts) {
    for (int64_t i = 0; i < keys.size; i++) {
        uint64_t place = keys[i] - least;
        if (numbers.size) {
            if (numbers[i] < 0) continue;
            place += word(numbers[i]) * stride;
        }
        counts[place >> shift]++;
    }
}

// Write the tuples, whose rows begin at `first`, into their partitions, from `offsets` on, which move.
inline void stored_scatter(Rows numbers, Codes keys, uint64_t least, uint64_t stride, uint64_t shift, Rows parts,
                           int64_t first, RowsOut offsets, CodesOut places, RowsOut rows) {
    for (int64_t i = 0; i < keys.size; i++) {
        uint64_t place = keys[i] - least;
        if (numbers.size) {
            if (numbers[i] < 0) continue;
            place += word(numbers[i]) * stride;
        }
        const int64_t at = offsets[parts[place >> shift]]++;
        places[at] = place;
        rows[at] = first + i;
    }
}

// Count the probes of each fine bucket, which is that of the low end of their interval, or of the high end where the
// low one is below all keys.
inline void probe_counts(Rows numbers, Codes low, Codes high, uint64_t least, uint64_t most, uint64_t stride,
                         uint64_t shift, RowsOut counts) {
    for (int64_t i = 0; i < low.size; i++) {
        if (low[i] > high[i] || low[i] > most || high[i] < least) continue;
        uint64_t place = (low[i] > least ? low[i] : least_of(high[i], most)) - least;
        if (numbers.size) {
            if (numbers[i] < 0) continue;
            place += word(numbers[i]) * stride;
        }
        counts[place >> shift]++;
    }
}

// Write the probes, whose rows begin at `first`, into their partitions, as `stored_scatter`.
inline void probe_scatter(Rows numbers, Codes low, Codes high, uint64_t least, uint64_t most, uint64_t stride,
                          uint64_t shift, Rows parts, int64_t first, RowsOut offsets, CodesOut lows, CodesOut highs,
                          RowsOut rows) {
    for (int64_t i = 0; i < low.size; i++) {
        if (low[i] > high[i] || low[i] > most || high[i] < least) continue;
        uint64_t base = 0;
        if (numbers.size) {
            if (numbers[i] < 0) continue;
            base = word(numbers[i]) * stride;
        }
        const uint64_t place = base + (greatest_of(low[i], least) - least);
        const uint64_t end = base + (least_of(high[i], most) - least);
        const int64_t at = offsets[parts[(low[i] > least ? place : end) >> shift]]++;
        lows[at] = place;
        highs[at] = end;
        rows[at] = first + i;
    }
}

// Sort `places` in place, equal ones as they come, and `rows` with them: by bytes, from the lowest that differs (radix
// sort; Knuth, The Art of Computer Programming 3, section 5.2.5). `x` and `y` are written over, and `counts` (2048),
// which are 0 before.
inline void sort_places(CodesOut places, RowsOut rows, CodesOut x, RowsOut y, RowsOut counts) {
    const int64_t n = places.size;
    uint64_t differs = 0;
    bool rises = true;
    for (int64_t i = 1; i < n; i++) {
        differs |= places[i] ^ places[0];
        rises &= places[i] >= places[i - 1];
    }
    if (rises) return;
    if (n <= few) {
        for (int64_t i = 1; i < n; i++) {
            const uint64_t place = places[i];
            const int64_t row = rows[i];
            int64_t at = i;
            for (; at && places[at - 1] > place; at--) places[at] = places[at - 1], rows[at] = rows[at - 1];
            places[at] = place;
            rows[at] = row;
        }
        return;
    }
    CodesOut a = places;
    RowsOut b = rows;
    bool swapped = false;
    for (int byte = 0; byte < 8; byte++) {
        const int shift = 8 * byte;
        if (!(differs >> shift & 255)) continue;
        int64_t *begins = counts.data + 256 * byte, total = 0;
        for (int64_t i = 0; i < n; i++) begins[a[i] >> shift & 255]++;
        for (int digit = 0; digit < 256; digit++) {
            const int64_t count = begins[digit];
            begins[digit] = total;
            total += count;
        }
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = begins[a[i] >> shift & 255]++;
            x[at] = a[i];
            y[at] = b[i];
        }
        const CodesOut codes = a;
        const RowsOut numbers = b;
        a = x, b = y, x = codes, y = numbers, swapped = !swapped;
    }
    for (int64_t i = 0; swapped && i < n; i++) x[i] = a[i], y[i] = b[i];
}

// Sort `places` and with them `rows`, and write for each bucket of 2^shift places from `base` on how many are below it.
// `places_room` and `rows_room` of the same size are written over, and `counts` (2048), which are 0 before.
inline void sort_partition(CodesOut places, RowsOut rows, CodesOut places_room, RowsOut rows_room, RowsOut counts,
                           uint64_t base, uint64_t shift, RowsOut directory) {
    sort_places(places, rows, places_room, rows_room, counts);
    int64_t bucket = 0;
    for (int64_t i = 0; i < places.size; i++) {
        const int64_t of = static_cast<int64_t>((places[i] - base) >> shift);
        while (bucket <= of) directory[bucket++] = i;
    }
    while (bucket < directory.size) directory[bucket++] = places.size;
}

// Sorted places in partitions, each with a directory.
struct Partitions {
    uint64_t shift;
    Rows parts;
    Codes bases, shifts;
    Rows starts, begins, directory;
    Codes places;

    // The position of the first place that is not below `place`.
    int64_t found(uint64_t place) const {
        const int64_t part = parts[place >> shift];
        const uint64_t bucket = word(begins[part]) + ((place - bases[part]) >> shifts[part]);
        int64_t low = starts[part] + directory[bucket], high = starts[part] + directory[bucket + 1];
        while (low < high) {
            const int64_t middle = (low + high) >> 1;
            if (places[middle] < place)
                low = middle + 1;
            else
                high = middle;
        }
        return low;
    }
};

// The positions of `places` from each of `lows` to each of `highs`; returns how many there are in all.
inline int64_t probe_ranges(Codes lows, Codes highs, uint64_t top, uint64_t shift, Rows parts, Codes bases,
                            Codes shifts, Rows starts, Rows begins, Rows directory, Codes places, RowsOut first,
                            RowsOut behind) {
    const Partitions in{shift, parts, bases, shifts, starts, begins, directory, places};
    int64_t total = 0;
    for (int64_t i = 0; i < lows.size; i++) {
        const int64_t start = in.found(lows[i]);
        const uint64_t high = highs[i];
        int64_t end = start;
        while (end < places.size && places[end] <= high) {
            end++;
            if (end == start + steps) {
                end = high == top ? places.size : in.found(high + 1);
                break;
            }
        }
        first[i] = start;
        behind[i] = end;
        total += end - start;
    }
    return total;
}

// All pairs of the probes `rows` with the positions of `order` from `first` to before `behind`.
inline void expand(Rows first, Rows behind, Rows rows, Rows order, RowsOut probe, RowsOut stored) {
    int64_t at = 0;
    for (int64_t i = 0; i < rows.size; i++) {
        for (int64_t position = first[i]; position < behind[i]; position++) {
            probe[at] = rows[i];
            stored[at++] = order[position];
        }
    }
}

// Leave of the pairs that are `met` those whose stored key is from the probe's `low` to its `high`.
inline void within(Rows r, Rows s, Codes keys, Codes low, Codes high, BytesOut met) {
    for (int64_t i = 0; i < r.size; i++) {
        const uint64_t key = keys[s[i]];
        met[i] &= static_cast<uint8_t>(int{low[r[i]] <= key} & int{key <= high[r[i]]});
    }
}

// The same of those whose row of S is from `start` to before `end` of the row of R.
inline void in_windows(Rows r, Rows s, Rows start, Rows end, BytesOut met) {
    for (int64_t i = 0; i < r.size; i++)
        met[i] &= static_cast<uint8_t>(int{start[r[i]] <= s[i]} & int{s[i] < end[r[i]]});
}

// Move the pairs that are `met` to the beginning of `r` and `s`; returns how many they are.
inline int64_t keep_met(Bytes met, RowsOut r, RowsOut s) {
    int64_t n = 0;
    for (int64_t i = 0; i < met.size; i++) {
        const int64_t of_r = r[i], of_s = s[i], next = n + met[i];
        r[n] = of_r;
        s[n] = of_s;
        n = next;
    }
    return n;
}

// As `expand`, the pairs whose `keys`, by position, are in the interval of the probe: `low` to `high`, by row. `least`,
// `most`: of each aligned run of 16, 64, 256, … keys, level after level, which begin at `begins`. `state` (2): the
// number of the next probe and its position, from which the next call goes on once `probe` is full. Returns how many
// pairs there are; without room, it counts them all.
inline int64_t expand_within(Rows first, Rows behind, Rows rows, Codes low, Codes high, Codes keys, Codes least,
                             Codes most, Rows begins, Rows order, RowsOut state, RowsOut probe, RowsOut stored) {
    int64_t n = 0, at = state[1];
    for (int64_t i = state[0]; i < rows.size; i++, at = 0) {
        const uint64_t lowest = low[rows[i]], highest = high[rows[i]];
        const int64_t end = behind[i];
        at = greatest_of(at, first[i]);
        while (at < end) {
            int64_t level = -1;
            while (level + 1 < begins.size && !(at & ((int64_t{16} << 2 * (level + 1)) - 1))) level++;
            for (; level >= 0; level--) {
                const int64_t run = begins[level] + (at >> (4 + 2 * level));
                if (least[run] > highest || most[run] < lowest) break;
            }
            if (level >= 0) {
                at += int64_t{16} << 2 * level;
                continue;
            }
            const int64_t stop = least_of(end, (at | 15) + 1);
            if (probe.size && n + stop - at > probe.size) {
                state[0] = i;
                state[1] = at;
                return n;
            }
            for (int64_t position = at; position < stop; position++) {
                if (lowest <= keys[position] && keys[position] <= highest) {
                    if (probe.size) {
                        probe[n] = rows[i];
                        stored[n] = order[position];
                    }
                    n++;
                }
            }
            at = stop;
        }
    }
    state[0] = rows.size;
    return n;
}

// For each pair the position in arrival order of its later tuple, and in the low `bits` the row of the other. The
// positions of rows are `of_r` and `of_s`; if these are empty, the streams arrive by turns for `common` rows.
inline void pack(Rows r, Rows s, Rows of_r, Rows of_s, int64_t common, int64_t bits, RowsOut packed) {
    const auto each = [&](auto position_r, auto position_s) {
        int64_t *__restrict to = packed.data;
        for (int64_t i = 0; i < r.size; i++) {
            const int64_t at_r = position_r(r[i]), at_s = position_s(s[i]);
            to[i] = greatest_of(at_r, at_s) << bits | (at_r > at_s ? s[i] : r[i]);
        }
    };
    if (of_r.size || of_s.size)
        each([=](int64_t row) { return of_r[row]; }, [=](int64_t row) { return of_s[row]; });
    else
        each([=](int64_t row) { return row + least_of(row, common); },
             [=](int64_t row) { return row + least_of(row + 1, common); });
}

// Count the pairs of each part of arrival order.
inline void packed_counts(Rows packed, int64_t shift, RowsOut counts) {
    for (int64_t i = 0; i < packed.size; i++) counts[packed[i] >> shift]++;
}

// Write the pairs into their parts of arrival order, from `offsets` on, which move.
inline void packed_scatter(Rows packed, int64_t shift, RowsOut offsets, RowsOut ordered) {
    for (int64_t i = 0; i < packed.size; i++) ordered[offsets[packed[i] >> shift]++] = packed[i];
}

// The rows of each pair and the position of its later tuple, which is of `stream` and has a `number` there; without
// these, the streams arrive by turns for `common` rows, and then S's, if `common_s`, or R's. `at` may be `packed`.
inline void unpack(Rows packed, int64_t bits, Bytes stream, Rows number, int64_t common, int64_t common_s, RowsOut r,
                   RowsOut s, RowsOut at) {
    if (stream.size) {
        for (int64_t i = 0; i < packed.size; i++) {
            const int64_t position = packed[i] >> bits, stored = packed[i] - (position << bits);
            const bool is_s = stream[position] == 1;
            at[i] = position;
            r[i] = is_s ? stored : number[position];
            s[i] = is_s ? number[position] : stored;
        }
        return;
    }
    int64_t *__restrict to_r = r.data, *__restrict to_s = s.data;
    for (int64_t i = 0; i < packed.size; i++) {
        const int64_t position = packed[i] >> bits, stored = packed[i] - (position << bits);
        const bool by_turns = position < 2 * common;
        const bool is_s = by_turns ? position & 1 : common_s == 1;
        const int64_t row = by_turns ? position >> 1 : position - common;
        at[i] = position;
        to_r[i] = is_s ? stored : row;
        to_s[i] = is_s ? row : stored;
    }
}

// Widen `ends`, the least and the greatest key, by the `keys` whose number is not negative.
inline void extremes(Codes keys, Rows numbers, CodesOut ends) {
    uint64_t least = ends[0], most = ends[1];
    for (int64_t i = 0; i < keys.size; i++) {
        if (numbers[i] >= 0) {
            least = least_of(least, keys[i]);
            most = greatest_of(most, keys[i]);
        }
    }
    ends[0] = least;
    ends[1] = most;
}

// Combine `numbers` with keys from `least` to `most`, of which there may be `count`; -1 for others.
inline void add_dense(Codes keys, uint64_t least, uint64_t most, int64_t count, RowsOut numbers) {
    for (int64_t i = 0; i < keys.size; i++) {
        const uint64_t key = keys[i];
        const int64_t number = numbers[i];
        const bool has = (number >= 0) & (least <= key) & (key <= most);
        numbers[i] = has ? static_cast<int64_t>(word(number) * word(count) + (key - least)) : -1;
    }
}

// The slot of `key` in a hash table with open addressing (Knuth, volume 3, section 6.4, algorithm L): its own, or the
// free one where it belongs. Multiplied by 2^64 over the golden ratio, the key's high bits are mixed most.
template <typename K, typename N>
inline uint64_t slot_of(uint64_t key, Array<K> known, Array<N> taken) {
    const uint64_t mask = word(known.size - 1), mixed = key * 0x9E3779B97F4A7C15;
    uint64_t at = (mixed ^ mixed >> 32) & mask;
    while (taken[at] >= 0 && known[at] != key) at = (at + 1) & mask;
    return at;
}

// Enter the `keys` from row `begin` on whose number is not negative into a hash table: `known` gets the different ones,
// and `taken`, -1 for a free slot, numbers for them, from 0. `count` (1): how many there are. Returns the row before
// which the table became half full, or the number of keys.
inline int64_t fill_table(Codes keys, Rows numbers, int64_t begin, CodesOut known, RowsOut taken, RowsOut count) {
    for (int64_t i = begin; i < keys.size; i++) {
        if (numbers[i] < 0) continue;
        const uint64_t at = slot_of(keys[i], known, taken);
        if (taken[at] >= 0) continue;
        if (2 * count[0] >= known.size) return i;
        known[at] = keys[i];
        taken[at] = count[0]++;
    }
    return keys.size;
}

// Enter the keys of a hash table, with their numbers, into a new one, which is larger.
inline void move_table(Codes known, Rows taken, CodesOut new_known, RowsOut new_taken) {
    for (int64_t k = 0; k < known.size; k++) {
        if (taken[k] < 0) continue;
        const uint64_t at = slot_of(known[k], new_known, new_taken);
        new_known[at] = known[k];
        new_taken[at] = taken[k];
    }
}

// Combine `numbers` with those of `keys` in a hash table of so many; -1 for keys that it does not have.
inline void add_hashed(Codes keys, Codes known, Rows taken, int64_t count, RowsOut numbers) {
    for (int64_t i = 0; i < keys.size; i++) {
        if (numbers[i] < 0) continue;
        const int64_t number = taken[slot_of(keys[i], known, taken)];
        numbers[i] = number >= 0 ? numbers[i] * count + number : -1;
    }
}

// Write the ranges of the probes `rows` to their places.
inline void by_row(Rows rows, Rows first, Rows behind, RowsOut starts, RowsOut ends) {
    for (int64_t i = 0; i < rows.size; i++) {
        starts[rows[i]] = first[i];
        ends[rows[i]] = behind[i];
    }
}

// The least of `order` from each of `first` to before each of `behind`; 0 where that is none.
inline void least_rows(Rows order, Rows first, Rows behind, RowsOut found) {
    for (int64_t i = 0; i < first.size; i++) {
        int64_t least = first[i] < behind[i] ? order[first[i]] : 0;
        for (int64_t position = first[i] + 1; position < behind[i]; position++)
            least = least_of(least, order[position]);
        found[i] = least;
    }
}

}  // namespace splitjoin
