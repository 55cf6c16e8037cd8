// Nested loops: each probe is compared with all stored tuples that it sees, 64 at a time.
#pragma once

#include "tests.hpp"

namespace splitjoin {

constexpr int64_t sharing = 256;  // probes that share each chunk of the window, which is in the first-level cache

// Write the stored rows that probes from number `next[0]` on meet to `rows`, one probe's behind the other's, and how
// many each meets to `counts`. Returns how many rows there are, and in `next` the first probe that sees more tuples than
// there was room for; -1 without memory.
//
// `base`: the row of the first stored tuple; behind the keys of the last one there is memory for 64 more. `tests` and
// `junctions` as of `Condition`; `narrow`: tests on copies of keys in 8 or 16 bits, which all matches meet, if any.
inline int64_t nested_loops(int64_t base, Rows start, Rows end, RowsOut counts, Rows tests, Rows junctions, Rows narrow,
                            RowsOut next, RowsOut rows) {
    const Condition exact(tests, junctions), narrowed(narrow, {nullptr, 0}, true);
    const Condition &first = narrow.size ? narrowed : exact;
    if (!exact || !narrowed) return -1;
    const auto begins = [&](int64_t probe) {
        const bool possible = exact.begin(probe);
        return narrow.size ? narrowed.begin(probe) && possible : possible;
    };
    int64_t at = 0;
    for (int64_t p = next[0]; p < start.size;) {
        const int64_t until = least_of(p + sharing, start.size);
        // Chunks begin where loads are aligned.
        const int64_t least = (start[p] - base) / block * block, most = end[until - 1] - base;
        const int64_t chunks = greatest_of((most - least + chunk - 1) / chunk, int64_t{0});
        const Memory<bool> some(sharing * chunks);
        if (!some.data) return -1;
        for (int64_t c = 0; c < chunks; c++) {
            const int64_t origin = least + c * chunk;
            for (int64_t j = p; j < until; j++) {
                // Whole blocks: what lies beside the window is found out in the second pass.
                const int64_t low = greatest_of(start[j] - base, origin) / block * block;
                const int64_t high = (least_of(end[j] - base, origin + chunk) + block - 1) / block * block;
                some[(j - p) * chunks + c] = low < high && begins(j) && first.any(low, high);
            }
        }
        const bool *found = some.data;
        for (; p < until; p++) {
            if (rows.size - at < end[p] - start[p]) {
                next[0] = p;
                return at;
            }
            const int64_t before = at, from = start[p] - base, to = end[p] - base;
            begins(p);
            for (int64_t origin = least; origin < least + chunks * chunk; origin += chunk) {
                if (!*found++) continue;
                const int64_t last = least_of(to, origin + chunk);
                for (int64_t x = greatest_of(from, origin) / block * block; x < last; x += block) {
                    uint64_t bits = first.mask(x);
                    if (bits && narrow.size) bits &= exact.mask(x);
                    bits &= bits_of(greatest_of(from - x, int64_t{0}), least_of(last - x, block) - 1);
                    each_bit(bits, [&](int64_t bit) { rows[at++] = base + x + bit; });
                }
            }
            counts[p] = at - before;
        }
    }
    next[0] = start.size;
    return at;
}

}  // namespace splitjoin
