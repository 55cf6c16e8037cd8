// Sorted runs of stored tuples (`sorted_runs.py`), and the probes that look into them, or go past them.
#pragma once

#include "tests.hpp"

namespace splitjoin {

// Rows up to this number are sorted by insertion. Rows that are at least one in so many of their range are sorted by a
// bitmap of it. A search from a near place looks at blocks at growing distances first, up to so many.
constexpr int64_t few_rows = 32, dense_rows = 512, near_blocks = 64;

// Write the stable order of `keys` to `order`: radix sort by 11 bits at once. Returns false without memory.
template <typename K>
inline bool sort_order(const K *keys, int64_t n, uint32_t *order) {
    const Memory<K> one(n), two(n);
    const Memory<uint32_t> three(n);
    if (!one.data || !two.data || !three.data) return false;
    K differs = 0, *at = one.data, *to = two.data;
    uint32_t *from = order, *into = three.data;
    for (int64_t i = 0; i < n; i++) {
        differs |= keys[i] ^ keys[0];
        at[i] = keys[i];
        order[i] = static_cast<uint32_t>(i);
    }
    for (unsigned shift = 0; shift < 8 * sizeof(K); shift += 11) {
        if (!(differs >> shift & 2047)) continue;
        int64_t counts[2048] = {}, total = 0;
        for (int64_t i = 0; i < n; i++) counts[at[i] >> shift & 2047]++;
        for (int64_t &count : counts) {
            const int64_t mine = count;
            count = total;
            total += mine;
        }
        for (int64_t i = 0; i < n; i++) {
            const int64_t place = counts[at[i] >> shift & 2047]++;
            to[place] = at[i];
            into[place] = from[i];
        }
        K *const keys_before = at;
        uint32_t *const order_before = from;
        at = to, to = keys_before, from = into, into = order_before;
    }
    if (from != order) __builtin_memcpy(order, from, word(n) * sizeof *order);
    return true;
}

// The same of two parts that are sorted, before `middle` and from it on. Without branches on the keys.
template <typename K>
inline void merge_order(const K *keys, int64_t n, int64_t middle, uint32_t *order) {
    int64_t i = 0, j = middle, at = 0;
    while (i < middle && j < n) {
        const int64_t later = keys[j] < keys[i];
        order[at++] = static_cast<uint32_t>(later ? j : i);
        i += 1 - later;
        j += later;
    }
    while (i < middle) order[at++] = static_cast<uint32_t>(i++);
    while (j < n) order[at++] = static_cast<uint32_t>(j++);
}

// Sort the tuples from `begin` to before `end` by the first of their `lanes`, pairs of an address and the bytes of a
// code; or merge those before and from `middle` on, if that lies between. Returns 0 without memory.
inline int64_t sort_run(Rows lanes, int64_t begin, int64_t middle, int64_t end) {
    const int64_t n = end - begin;
    const Memory<uint32_t> order(n);
    const Memory<uint64_t> moved(n);
    if (!order.data || !moved.data) return 0;
    for (int64_t lane = 0; lane < lanes.size; lane += 2) {
        const bool done = by_key(lanes[lane + 1], [&]<typename K>(const K *) {
            K *const of = reinterpret_cast<K *>(lanes[lane]) + begin, *const to = reinterpret_cast<K *>(moved.data);
            if (lane == 0 && begin < middle && middle < end)
                merge_order(of, n, middle - begin, order.data);
            else if (lane == 0 && !sort_order(of, n, order.data))
                return false;
            for (int64_t i = 0; i < n; i++) to[i] = of[order[i]];
            __builtin_memcpy(of, to, word(n) * sizeof(K));
            return true;
        });
        if (!done) return 0;
    }
    return 1;
}

// Write the extremes of all blocks of tuples from `begin` to before `end`, level by level. `lanes`: of each key its
// address, the bytes of a code, and the addresses of the least and of the greatest key of the blocks of each level.
inline void summarize(Rows lanes, int64_t levels, int64_t begin, int64_t end) {
    for (int64_t lane = 0; lane < lanes.size; lane += 2 + 2 * levels) {
        by_key(lanes[lane + 1], [&]<typename K>(const K *) {
            const K *low = reinterpret_cast<const K *>(lanes[lane]), *high = low;
            int64_t a = begin, b = end;
            for (int64_t level = 0; level < levels; level++) {
                K *const least = reinterpret_cast<K *>(lanes[lane + 2 + 2 * level]);
                K *const most = reinterpret_cast<K *>(lanes[lane + 3 + 2 * level]);
                a /= block;
                b = (b + block - 1) / block;
                for (int64_t at = a; at < b; at++) {
                    K first = low[at * block], last = high[at * block];
                    for (int64_t i = at * block + 1; i < (at + 1) * block; i++) {
                        first = least_of(first, low[i]);
                        last = greatest_of(last, high[i]);
                    }
                    least[at] = first;
                    most[at] = last;
                }
                low = least;
                high = most;
            }
        });
    }
}

// The first place from `begin` to `end`, a run, whose key is above `last`; `end` if there is none. `firsts`: the first
// key of each block. `near`: a place of the run that is probably not far before it.
template <typename K>
inline int64_t first_above(const K *keys, const K *firsts, int64_t begin, int64_t end, int64_t near, K last) {
    int64_t at = begin / block, n = (end - begin) / block;
    if (last < firsts[at]) return begin;
    if (firsts[near / block] <= last) {
        n -= near / block - at;
        at = near / block;
        for (int64_t step = 1; step < least_of(n, near_blocks); step *= 2) {
            if (firsts[at + step] > last) {
                n = step;
                break;
            }
            at += step;
            n -= step;
        }
    }
    while (n > 1) {
        const int64_t half = n >> 1;
        at = firsts[at + half] <= last ? at + half : at;
        n -= half;
    }
    return at * block + __builtin_popcountll(mask_within(keys + at * block, K{0}, last));
}

// The first place from `begin` to before `end` of `keys`, which rise, that is `least` or more; `end` if there is none.
inline int64_t first_reaching(const uint64_t *keys, int64_t begin, int64_t end, uint64_t least) {
    while (begin < end) {
        const int64_t middle = (begin + end) >> 1;
        if (keys[middle] < least)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

// Room to sort rows in a range of at most so many: a bit for each, 0 before and after, and one in `dense_rows` of them.
struct SortRoom {
    Memory<uint64_t> bits;
    Memory<int64_t> rows;

    explicit SortRoom(int64_t range) : bits(range / block + 1), rows(range / dense_rows + 1) {
        for (int64_t i = 0; bits.data && i <= range / block; i++) bits[i] = 0;
    }
    explicit operator bool() const { return bits.data && rows.data; }
};

// Sort `n` distinct rows from `first` to before `last`.
inline __attribute__((noinline)) void sort_rows(int64_t *rows, int64_t n, int64_t first, int64_t last, const SortRoom &room) {
    if (n <= few_rows) {
        for (int64_t i = 1; i < n; i++) {
            const int64_t row = rows[i];
            int64_t at = i;
            for (; at && rows[at - 1] > row; at--) rows[at] = rows[at - 1];
            rows[at] = row;
        }
        return;
    }
    if (n * dense_rows >= last - first) {
        for (int64_t i = 0; i < n; i++)
            room.bits[(rows[i] - first) / block] |= uint64_t{1} << (rows[i] - first) % block;
        int64_t at = 0;
        for (int64_t i = 0; i <= (last - first - 1) / block; i++) {
            each_bit(room.bits[i], [&](int64_t bit) { rows[at++] = first + i * block + bit; });
            room.bits[i] = 0;
        }
        return;
    }
    for (int64_t shift = 0; (last - first - 1) >> shift; shift += 8) {
        int64_t counts[256] = {}, total = 0;
        for (int64_t i = 0; i < n; i++) counts[(rows[i] - first) >> shift & 255]++;
        for (int64_t &count : counts) {
            const int64_t mine = count;
            count = total;
            total += mine;
        }
        for (int64_t i = 0; i < n; i++) room.rows[counts[(rows[i] - first) >> shift & 255]++] = rows[i];
        __builtin_memcpy(rows, room.rows.data, word(n) * sizeof *rows);
    }
}

// A key by which probes search: the tests on it are those that `own` names from `begin` to before `end`, and of each
// block of each level there are extremes. `ends`: 1 if probes may bound it below, 2 if above, 3 if both.
struct Slot {
    const void *of_keys;
    int64_t bytes, begin, end, ends;
    struct {
        const void *least, *most;
    } levels[3];

    Lane keys() const { return {of_keys, bytes}; }
};

// The interval of a probe in a slot.
struct Range {
    uint64_t low, high;
};

// What probes search by: the slots, of which runs are sorted by the first.
struct Slots {
    const Slot *slots;
    int64_t count;
    Rows own;
    const Test *tests;

    Slots(Rows words, Rows of_own, Rows of_tests)
        : slots(reinterpret_cast<const Slot *>(words.data)),
          count(words.size * int64_t{sizeof(int64_t)} / int64_t{sizeof(Slot)}), own(of_own),
          tests(reinterpret_cast<const Test *>(of_tests.data)) {}

    // Write the intervals of `probe`. Returns false if one is empty.
    bool ranges(int64_t probe, Range *found) const {
        bool possible = true;
        for (int64_t n = 0; n < count; n++) {
            Range range{0, ~uint64_t{0}};
            for (int64_t i = slots[n].begin; i < slots[n].end; i++) {
                range.low = greatest_of(range.low, tests[own[i]].low(probe));
                range.high = least_of(range.high, tests[own[i]].high(probe));
            }
            found[n] = range;
            possible &= range.low <= range.high;
        }
        return possible;
    }

    // Write the order of `n` probes from `first` on by their low ends in the first slot, or by the high ones if those
    // are all equal, to `order`. Returns false without memory.
    bool sort(int64_t first, int64_t n, uint32_t *order) const {
        const Test &test = tests[own[slots[0].begin]];
        return by_key(test.bytes, [&]<typename K>(const K *) {
            const K *const lows = static_cast<const K *>(test.of_lows) + first;
            bool differ = false;
            for (int64_t i = 1; i < n; i++) differ |= lows[i] != lows[0];
            return sort_order(differ ? lows : static_cast<const K *>(test.of_highs) + first, n, order);
        });
    }
};

// The slots beside the first: one, with keys of type K; or, for uint8_t, any number of them.
template <typename K>
struct Others {
    const Slot *slots;
    int64_t count;

    int64_t end() const { return sizeof(K) != 1 ? 2 : count; }
    static uint64_t within(const void *data, int64_t bytes, int64_t at, uint64_t low, uint64_t width) {
        if constexpr (sizeof(K) != 1)
            return mask_within(static_cast<const K *>(data) + at, static_cast<K>(low), static_cast<K>(width));
        else
            return Lane{data, bytes}.within(at, low, width);
    }
    // Which of 64 blocks of a level may hold a match, and which of 64 tuples do.
    uint64_t reached(int64_t level, int64_t at, const Range *ranges) const {
        uint64_t found = ~uint64_t{0};
        for (int64_t n = 1; n < end(); n++) {
            const auto &of = slots[n].levels[level];
            if (slots[n].ends & 1) found &= within(of.most, slots[n].bytes, at, ranges[n].low, ~ranges[n].low);
            if (slots[n].ends & 2) found &= within(of.least, slots[n].bytes, at, 0, ranges[n].high);
        }
        return found;
    }
    uint64_t met(int64_t at, const Range *ranges) const {
        uint64_t found = ~uint64_t{0};
        for (int64_t n = 1; n < end(); n++)
            found &= within(slots[n].of_keys, slots[n].bytes, at, ranges[n].low, ranges[n].high - ranges[n].low);
        return found;
    }
};

// What parts of probes take: where places begin, and in those the runs, (runs, 2) words, the tail and its end; what
// each probe sees; the arrival place of each tuple.
struct Stored {
    int64_t origin, tail, used;
    Rows start, end, runs;
    Array<const uint32_t> order;

    int64_t count() const { return runs.size / 2; }
};

// PartRows of a part of the probes: as many as there is room for are written, all are counted.
struct PartRows {
    int64_t *rows, size, at = 0;

    void add(int64_t row, bool is_match) {
        if (at < size) rows[at] = row;
        at += is_match;
    }
};

// Of a part: whether its matches have found room, how many there are, the tuples that were compared; the address of the
// rows, of a second array of the same size, and that size.
struct Part {
    int64_t fits, count, compared, rows, others, size;
};

// Call `add` with the places from `i` to before `k`, of a run of so many, where the other slots meet the `ranges` of a
// probe. Returns how many tuples were compared.
template <typename K, typename F>
inline int64_t search_run(const Others<K> &others, const Range *ranges, int64_t size, int64_t i, int64_t k, F add) {
    if (others.end() == 1) {
        for (int64_t place = i; place < k; place++) add(place);
        return k - i;
    }
    int64_t looked = 0;
    const int64_t last = (k - 1) >> 18;
    for (int64_t group = i >> 18; group <= last; group += block) {
        uint64_t top = bits_of(0, least_of(last - group, block - 1));
        if (size > 1 << 18) top &= others.reached(2, group, ranges);
        each_bit(top, [&](int64_t bit) {
            const int64_t x3 = (group + bit) * block;
            uint64_t upper = bits_of(greatest_of((i >> 12) - x3, int64_t{0}),
                                     least_of(((k - 1) >> 12) - x3, block - 1));
            if (size > 1 << 12) upper &= others.reached(1, x3, ranges);
            each_bit(upper, [&](int64_t of_upper) {
                const int64_t x2 = (x3 + of_upper) * block;
                const uint64_t lower = bits_of(greatest_of((i >> 6) - x2, int64_t{0}),
                                               least_of(((k - 1) >> 6) - x2, block - 1));
                each_bit(lower & others.reached(0, x2, ranges), [&](int64_t of_lower) {
                    const int64_t x = (x2 + of_lower) * block, a = greatest_of(i - x, int64_t{0});
                    const int64_t b = least_of(k - 1 - x, block - 1);
                    looked += b - a + 1;
                    each_bit(bits_of(a, b) & others.met(x, ranges), [&](int64_t h) { add(x + h); });
                });
            });
        });
    }
    return looked;
}

// Find the matches of part number `number` of `parts` of the probes. The first array gets places, each probe's behind
// the other's in the order in which they look: that of their bounds if there are `least` or more, so that neighbours
// find the same blocks in the caches; the second one rows, in the order of the probes. `rest` and `junctions`: what the
// slots do not decide, as of `Condition`.
inline int64_t search_part(int64_t number, RowsOut part_words, int64_t parts, int64_t origin, int64_t tail,
                           int64_t used, Rows start, Rows end, Rows runs, Array<const uint32_t> order, int64_t firsts,
                           Rows slot_words, Rows own, Rows tests, Rows rest, Rows junctions, int64_t least,
                           RowsOut counts) {
    Part &part = reinterpret_cast<Part *>(part_words.data)[number];
    const int64_t from = start.size * number / parts, n = start.size * (number + 1) / parts - from;
    const Stored in{origin, tail, used, start, end, runs, order};
    const Slots slots(slot_words, own, tests);
    const Condition condition(rest, junctions);
    const Memory<uint32_t> turns(n);
    const Memory<int64_t> near(in.count()), begins(n);
    const Memory<Range> ranges(slots.count);
    const SortRoom room(used);
    if (!condition || !turns.data || !near.data || !begins.data || !ranges.data || !room) return 0;
    for (int64_t t = 0; t < n; t++) turns[t] = static_cast<uint32_t>(t);
    if (n >= least && !slots.sort(from, n, turns.data)) return 0;
    for (int64_t u = 0; u < in.count(); u++) near[u] = runs[2 * u];
    PartRows out{reinterpret_cast<int64_t *>(part.rows), part.size};
    part.compared = 0;
    const auto search = [&]<typename K, typename Other>(const K *keys, Others<Other> others) {
        const K *const first_keys = reinterpret_cast<const K *>(firsts);
        for (int64_t t = 0; t < n; t++) {
            const int64_t p = from + turns[t], s = start[p] - origin, e = end[p] - origin, before = out.at;
            const auto add = [&](int64_t place) {
                const int64_t row = in.order[place];
                out.add(row, (row >= s) & (row < e) & condition.holds(place, p));
            };
            int64_t looked = 0;
            if (s < e && slots.ranges(p, ranges.data)) {
                const K low = static_cast<K>(ranges[0].low), high = static_cast<K>(ranges[0].high);
                for (int64_t u = 0; u < in.count() && runs[2 * u] < e; u++) {
                    const int64_t begin = runs[2 * u], until = runs[2 * u + 1];
                    if (until <= s) continue;
                    const int64_t i = low ? first_above<K>(keys, first_keys, begin, until, near[u], low - 1) : begin;
                    if (i == until) continue;
                    near[u] = i;
                    const int64_t k = first_above(keys, first_keys, begin, until, i, high);
                    if (i >= k) continue;
                    const int64_t begun = out.at;
                    looked += search_run(others, ranges.data, until - begin, i, k, add);
                    if (out.at <= out.size) sort_rows(out.rows + begun, out.at - begun, begin, until, room);
                }
                for (int64_t x = greatest_of(s, tail) / block * block; x < e; x += block) {
                    const int64_t a = greatest_of(greatest_of(s, tail), x) - x, b = least_of(e - x, block) - 1;
                    const uint64_t found = bits_of(a, b) & mask_within(keys + x, low, static_cast<K>(high - low));
                    looked += b - a + 1;
                    each_bit(found & others.met(x, ranges.data), [&](int64_t bit) { add(x + bit); });
                }
            }
            counts[p] = out.at - before;
            part.compared += least_of(looked, e - s);
        }
    };
    by_key(slots.slots[0].bytes, [&]<typename K>(const K *) {
        const K *const keys = static_cast<const K *>(slots.slots[0].of_keys);
        if (slots.count == 2 && slots.slots[0].bytes == slots.slots[1].bytes)
            search(keys, Others<K>{slots.slots, slots.count});
        else
            search(keys, Others<uint8_t>{slots.slots, slots.count});
    });
    part.count = out.at;
    part.fits = out.at <= out.size;
    int64_t at = 0, *const rows = reinterpret_cast<int64_t *>(part.others);
    for (int64_t t = 0; t < n; t++) {
        begins[turns[t]] = at;
        at += counts[from + turns[t]];
    }
    at = 0;
    for (int64_t p = 0; part.fits && p < n; p++)
        for (int64_t i = begins[p]; i < begins[p] + counts[from + p]; i++) rows[at++] = out.rows[i] + origin;
    return 1;
}

// Write the probes whose intervals are not empty to `chosen`, in the order of their bounds, and the low and the high
// ends of their intervals by slot to `ends` (2 · slots, n). Returns how many there are; -1 if one of these ends is lower
// than that of the probe before, and -2 without memory.
inline int64_t walk_order(Rows slot_words, Rows own, Rows tests, RowsOut chosen, CodesOut ends) {
    const Slots slots(slot_words, own, tests);
    const int64_t size = chosen.size;
    const Memory<uint32_t> turns(size);
    const Memory<Range> ranges(slots.count);
    if (!turns.data || !ranges.data || !slots.sort(0, size, turns.data)) return -2;
    int64_t n = 0;
    bool falls = false;
    for (int64_t t = 0; t < size; t++) {
        if (!slots.ranges(turns[t], ranges.data)) continue;
        for (int64_t m = 0; m < slots.count; m++) {
            uint64_t *const low = ends.data + 2 * m * size + n, *const high = low + size;
            *low = ranges[m].low;
            *high = ranges[m].high;
            falls |= n && (*low < low[-1] || *high < high[-1]);
        }
        chosen[n++] = turns[t];
    }
    return falls ? -1 : n;
}

// Find the matches of part number `number` of the `chosen` probes, whose intervals and numbers both rise: for each
// stored tuple those that meet it. The first array gets the rows, the second one, of 32 bits, the probe of each; `met`
// how many each probe has. `ends` (2 · slots, `stride`) as of `walk_order`.
inline int64_t walk_part(int64_t number, RowsOut part_words, int64_t parts, int64_t origin, int64_t tail, int64_t used,
                         Rows start, Rows end, Rows runs, Array<const uint32_t> order, int64_t firsts, Rows slot_words,
                         Rows own, Rows tests, Rows rest, Rows junctions, Rows chosen, Codes ends, int64_t stride,
                         RowsOut met) {
    Part &part = reinterpret_cast<Part *>(part_words.data)[number];
    const int64_t from = chosen.size * number / parts, n = chosen.size * (number + 1) / parts - from;
    const Stored in{origin, tail, used, start, end, runs, order};
    const Slots slots(slot_words, own, tests);
    const Condition condition(rest, junctions);
    const Memory<uint64_t> keys(slots.count);
    if (!condition || !keys.data) return 0;
    const int64_t *const probes = chosen.data + from;
    uint32_t *const probe_of = reinterpret_cast<uint32_t *>(part.others);
    PartRows out{reinterpret_cast<int64_t *>(part.rows), part.size};
    const auto low = [&](int64_t slot) { return ends.data + 2 * slot * stride + from; };
    const auto high = [&](int64_t slot) { return ends.data + (2 * slot + 1) * stride + from; };
    const int64_t first = start[0] - origin, last = end[end.size - 1] - origin;
    for (int64_t t = 0; t < n; t++) met[from + t] = 0;
    part.compared = 0;
    by_key(slots.slots[0].bytes, [&]<typename K>(const K *) {
        const K *const by = static_cast<const K *>(slots.slots[0].of_keys);
        for (int64_t u = 0; n && u <= in.count(); u++) {
            const bool is_tail = u == in.count();
            int64_t begin = is_tail ? tail : runs[2 * u], until = is_tail ? used : runs[2 * u + 1];
            if (until <= first) begin = until;
            if (begin >= last) until = begin;
            int64_t h = begin, i = 0;
            if (!is_tail && begin < until) {
                const K *const first_keys = reinterpret_cast<const K *>(firsts);
                const K least = static_cast<K>(low(0)[0]), most = static_cast<K>(high(0)[n - 1]);
                if (least) h = first_above<K>(by, first_keys, begin, until, begin, least - 1);
                until = first_above(by, first_keys, begin, until, begin, most);
            }
            for (; h < until; h++) {
                if (is_tail) i = first_reaching(high(0), 0, n, by[h]);  // in arrival order
                while (i < n && high(0)[i] < by[h]) i++;
                if (i == n && !is_tail) break;  // keys rise
                if (!is_tail && h % block == 0) {
                    bool is_beyond = false;
                    for (int64_t m = 1; m < slots.count; m++) {
                        const Slot &slot = slots.slots[m];
                        is_beyond |= Lane{slot.levels[0].most, slot.bytes}[h / block] < low(m)[i] ||
                                     Lane{slot.levels[0].least, slot.bytes}[h / block] > high(m)[n - 1];
                    }
                    if (is_beyond) {
                        h += block - 1;
                        continue;
                    }
                }
                int64_t t = i;
                for (int64_t m = 1; m < slots.count; m++) {
                    keys[m] = slots.slots[m].keys()[h];
                    if (t < n && high(m)[t] < keys[m]) t = first_reaching(high(m), t, n, keys[m]);
                }
                const int64_t row = int64_t{order[h]} + origin;
                for (; t < n; t++) {
                    bool meets = low(0)[t] <= by[h];
                    for (int64_t m = 1; m < slots.count; m++) meets &= low(m)[t] <= keys[m];
                    if (!meets) break;
                    const int64_t p = probes[t];
                    const bool is_seen = row >= start[p] && row < end[p];
                    const bool is_match = is_seen && condition.holds(h, p);
                    if (out.at < out.size) probe_of[out.at] = static_cast<uint32_t>(p);
                    out.add(row, is_match);
                    met[from + t] += is_match;
                    part.compared += is_seen;
                }
            }
        }
    });
    part.count = out.at;
    part.fits = out.at <= out.size;
    return 1;
}

// Write the matches of all parts of the `chosen` probes to `rows`, where each probe has its `place`, and each one's by
// row; `counts`: how many each probe has. `place` moves behind the last one. Returns 0 without memory.
inline int64_t by_probe(Rows chosen, Rows start, Rows end, Rows counts, Rows part_words, RowsOut place, RowsOut rows) {
    const Array<const Part> parts{reinterpret_cast<const Part *>(part_words.data), part_words.size / 6};
    int64_t longest = 0;
    for (int64_t i = 0; i < chosen.size; i++)
        if (counts[chosen[i]] > few_rows) longest = greatest_of(longest, end[chosen[i]] - start[chosen[i]]);
    const SortRoom room(longest);
    if (!room) return 0;
    for (int64_t number = 0; number < parts.size; number++) {
        const int64_t *const found = reinterpret_cast<const int64_t *>(parts[number].rows);
        const uint32_t *const probe_of = reinterpret_cast<const uint32_t *>(parts[number].others);
        for (int64_t i = 0; i < parts[number].count; i++) rows[place[probe_of[i]]++] = found[i];
        const int64_t until = chosen.size * (number + 1) / parts.size;
        for (int64_t i = chosen.size * number / parts.size; i < until; i++) {
            const int64_t p = chosen[i], n = counts[p];
            if (n > 1) sort_rows(rows.data + place[p] - n, n, start[p], end[p], room);
        }
    }
    return 1;
}

}  // namespace splitjoin
