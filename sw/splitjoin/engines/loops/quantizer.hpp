// The quantization of codes to small numbers (`quantizer.py`).
#pragma once

#include "loop.hpp"

namespace splitjoin {

// Kinds of maps.
constexpr uint64_t linear_map = 0, float_map = 1, table_map = 2, hash_map = 3, cycle_map = 4;

using Numbers32 = Array<int32_t>;

// A map from codes to levels 0 to `count` - 1, as the interpreter tells it.
struct LevelMap {
    Codes numbers;  // the kind, and four integers
    Array<const double> reals;
    Array<const int32_t> table;
    int64_t count;

    // The number of levels if they are cyclic, else 0.
    int64_t cycle() const { return numbers[0] == cycle_map ? count : 0; }

    // Write the levels of `n` codes. Each kind has its own loop, so that it becomes vector code; floats of 32 bits are
    // precise enough for codes of 32 bits.
    template <typename Code>
    void write(const Code *codes, int64_t n, int32_t *out) const {
        const uint64_t low = numbers[1], span = numbers[2], left = numbers[3], right = numbers[4];
        const int32_t last = static_cast<int32_t>(count - 1);
        if (numbers[0] == linear_map) {
            using Real = typename Width<sizeof(Code)>::Real;
            const Code low_code = static_cast<Code>(low), span_code = static_cast<Code>(span);
            const Real factor = static_cast<Real>(reals[1]);
            for (int64_t i = 0; i < n; i++) {
                const Code above = least_of<Code>(greatest_of(codes[i], low_code) - low_code, span_code);
                out[i] = least_of(static_cast<int32_t>(static_cast<Real>(above) * factor), last);
            }
        } else if (numbers[0] == float_map) {
            using Real = typename Width<sizeof(Code)>::Real;
            constexpr Code top = Code{1} << (8 * sizeof(Code) - 1);
            const Code low_code = static_cast<Code>(low), high_code = static_cast<Code>(span);
            const Real origin = static_cast<Real>(reals[0]), factor = static_cast<Real>(reals[1]);
            for (int64_t i = 0; i < n; i++) {
                const Code bits = least_of(greatest_of(codes[i], low_code), high_code);
                const Real real = __builtin_bit_cast(Real, static_cast<Code>(bits & top ? bits ^ top : ~bits));
                out[i] = least_of(static_cast<int32_t>((real - origin) * factor), last);
            }
        } else if (numbers[0] == hash_map) {
            for (int64_t i = 0; i < n; i++)
                out[i] = right < 64 ? static_cast<int32_t>(codes[i] * 0x9E3779B97F4A7C15u >> right) : 0;
        } else if (numbers[0] == cycle_map) {
            for (int64_t i = 0; i < n; i++) out[i] = static_cast<int32_t>(uint64_t{codes[i]} << left >> right) & last;
        } else {
            for (int64_t i = 0; i < n; i++) {
                const uint64_t above = least_of(greatest_of<uint64_t>(codes[i], low) - low, span);
                const uint64_t scaled = above << left >> right, entry = scaled >> 16;
                const int64_t knot = table[entry], rise = table[entry + 1] - knot;
                out[i] = static_cast<int32_t>(knot + ((static_cast<int64_t>(scaled & 0xFFFF) * rise) >> 16));
            }
        }
    }
};

template <typename Code>
inline void write_levels(Array<const Code> codes, Codes numbers, Array<const double> reals, Array<const int32_t> table,
                         int64_t count, Numbers32 out) {
    LevelMap{numbers, reals, table, count}.write(codes.data, codes.size, out.data);
}

// Make the levels `lows` and `highs` of `n` probes with the bounds `low` to `high` those to look between.
//
// Those of an empty interval get no cell at all: the cell of the last level is the one before the first. Of cyclic
// levels, that of `high` is counted on behind the last one. `cycle`: the number of levels if they are cyclic, of codes
// shifted by `left` and `right`, of which one is 0; else 0.
template <typename Code>
inline void bound(int32_t *lows, int32_t *highs, const Code *low, const Code *high, int64_t n, int64_t cycle,
                  uint64_t left, uint64_t right) {
    const int32_t last = static_cast<int32_t>((cycle >> 8) - 1);
    for (int64_t i = 0; cycle && i < n; i++) {
        const int32_t a = lows[i], b = highs[i];
        // All cells, if the interval could reach any of them twice.
        const uint64_t apart = (uint64_t{high[i]} >> right) - (uint64_t{low[i]} >> right);
        const bool whole = apart >= word(cycle - 256) >> left;
        const int32_t more = whole ? last : ((b >> 8) - (a >> 8)) & last;
        lows[i] = whole ? a & ~255 : a;
        highs[i] = ((a >> 8) + more) << 8 | (whole ? 255 : b & 255);
    }
    for (int64_t i = 0; i < n; i++) highs[i] = low[i] <= high[i] ? highs[i] : (lows[i] & ~255) - 1;
}

template <typename Code>
inline void bound_levels(Numbers32 lows, Numbers32 highs, Array<const Code> low, Array<const Code> high, int64_t cycle,
                         uint64_t left, uint64_t right) {
    bound(lows.data, highs.data, low.data, high.data, low.size, cycle, left, right);
}

}  // namespace splitjoin
