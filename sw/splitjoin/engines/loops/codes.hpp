// Keys of stored tuples and bounds of probes, from the values of columns (`codes.py`).
#pragma once

#include "float_bisection.hpp"

namespace splitjoin {

// The values of a column that a loop takes at once, and the codes that it makes of them.
struct Codes64 {
    static constexpr int64_t most = 256;
    int64_t values[most];
    uint64_t keys[most], lows[most], highs[most];
};
constexpr uint64_t no_low = ~uint64_t{0};  // above every key: with a high bound of 0 an empty interval

// -(factor * value + c), of values below NULL modulo 2^64.
inline int64_t moved(int64_t factor, int64_t value, int64_t c) {
    return static_cast<int64_t>(-(word(factor) * word(value) + word(c)));
}

// The keys K with `-mine * value - c_low <= K <= -mine * value - c_high`, between `low` and `high`; the code of K is K +
// `offset` modulo 2^64. No step overflows.
inline void exact_codes(Codes64 &of, int64_t n, const int64_t *c) {
    const int64_t own = c[0], mine = c[1], c_low = c[2], c_high = c[3], low = c[4], high = c[5], offset = c[6];
    for (int64_t i = 0; i < n; i++) {
        const int64_t a = moved(mine, of.values[i], c_low), b = moved(mine, of.values[i], c_high);
        const bool some = uint8_t{a <= high} & uint8_t{b >= low};
        of.keys[i] = word(of.values[i]) + word(own);
        of.lows[i] = some ? word(greatest_of(low, a)) + word(offset) : no_low;
        of.highs[i] = some ? word(least_of(high, b)) + word(offset) : 0;
    }
}

// The same for values and keys of any 64 bits: the keys K with `v - less_low <= K <= v - less_high`, where v is the value,
// or with `flip` = -1 its complement. `ends`: 1 if K has the lower bound alone, 2 the upper one, 3 both.
inline void wide_codes(Codes64 &of, int64_t n, const int64_t *c) {
    const int64_t own = c[0], flip = c[1], less_low = c[3], less_high = c[4], low = c[5], high = c[6], offset = c[7];
    const uint8_t has_low = c[2] & 1, has_high = c[2] >> 1;
    for (int64_t i = 0; i < n; i++) {
        const int64_t v = of.values[i] ^ flip;
        const int64_t lower = static_cast<int64_t>(word(v) - word(less_low));
        const int64_t upper = static_cast<int64_t>(word(v) - word(less_high));
        // A difference beyond 64 bits has wrapped: it is not on its side of v. Then it is beyond all keys.
        const bool low_wraps = (lower < v) != (less_low > 0), high_wraps = (upper < v) != (less_high > 0);
        const int64_t a = low_wraps || !has_low ? low : lower, b = high_wraps || !has_high ? high : upper;
        const bool some = !(low_wraps && less_low < 0) && !(high_wraps && less_high > 0) && a <= high && b >= low;
        of.keys[i] = word(of.values[i]) + word(own);
        of.lows[i] = some ? word(greatest_of(low, a)) + word(offset) : no_low;
        of.highs[i] = some ? word(least_of(high, b)) + word(offset) : 0;
    }
}

// The codes that `code op key` leaves, between `low` and `high`. `op`: -2 for <, -1 for <=, 0 for =, 1 for >=, 2 for >.
struct Ordered {
    int64_t op;
    uint64_t low, high;

    bool bound(uint64_t code, uint64_t &a, uint64_t &b) const {
        a = op >= 0 ? code + (op == 2) : low;
        b = op <= 0 ? code - (op == -2) : high;
        return a <= b && (op != 2 || code < high);
    }
};

// The block of `code_part`: `n` values of a column in `parts`, of the NumPy type `type`: the bytes of one, negative for
// floats, and 16 more for unsigned integers; and what is made of them by the loop `kind`, with its constants `c`.
struct CodeBlock {
    int64_t n, parts, kind, type;
    const void *values;
    int64_t value_count;
    struct {
        void *data;
        int64_t count;
    } of[3];  // keys, lows, highs: in `key_width` and `bound_width` bytes
    int64_t key_width, bound_width, c[8];

    template <typename T>
    void read(int64_t at, int64_t count, int64_t *out) const {
        const T *from = static_cast<const T *>(values) + at;
        for (int64_t i = 0; i < count; i++) out[i] = static_cast<int64_t>(from[i]);
    }
    void read_integers(int64_t at, int64_t count, int64_t *out) const {
        switch (type) {
            case 1: return read<int8_t>(at, count, out);
            case 2: return read<int16_t>(at, count, out);
            case 4: return read<int32_t>(at, count, out);
            case 17: return read<uint8_t>(at, count, out);
            case 18: return read<uint16_t>(at, count, out);
            case 20: return read<uint32_t>(at, count, out);
            default: return read<int64_t>(at, count, out);
        }
    }
    void read_floats(int64_t at, int64_t count, double *out) const {
        const float *narrow = static_cast<const float *>(values) + at;
        const double *wide = static_cast<const double *>(values) + at;
        for (int64_t i = 0; type == -4 && i < count; i++) out[i] = narrow[i];
        for (int64_t i = 0; type != -4 && i < count; i++) out[i] = wide[i];
    }
    template <typename Code>
    static void narrow(const uint64_t *from, int64_t count, void *to, int64_t at) {
        for (int64_t i = 0; i < count; i++) (static_cast<Code *>(to) + at)[i] = static_cast<Code>(from[i]);
    }
    void write(int64_t which, const uint64_t *from, int64_t at, int64_t count) const {
        if ((which ? bound_width : key_width) == 4)
            narrow<uint32_t>(from, count, of[which].data, at);
        else
            narrow<uint64_t>(from, count, of[which].data, at);
    }
};

// Write the keys and the bounds of a part of a column: of kind 0 `exact_codes`, 1 `wide_codes`, 2 those of floats that are
// compared, 3 those of the test that is always true, 4 those of `FloatBounds`.
inline int64_t code_part(int64_t part, int64_t block) {
    const CodeBlock &of = *reinterpret_cast<const CodeBlock *>(block);
    const int64_t until = of.n * (part + 1) / of.parts;
    Codes64 made;
    for (int64_t at = of.n * part / of.parts, n; at < until; at += n) {
        n = least_of(Codes64::most, until - at);
        if (of.kind <= 1) {
            of.read_integers(at, n, made.values);
            of.kind ? wide_codes(made, n, of.c) : exact_codes(made, n, of.c);
        } else if (of.kind == 2 || of.kind == 4) {
            double *floats = reinterpret_cast<double *>(made.values);
            of.read_floats(at, n, floats);
            for (int64_t i = 0; i < n; i++)
                made.keys[i] = of.key_width == 4 ? float_code(static_cast<float>(floats[i]), word(of.c[0])) :
                    float_code(floats[i], word(of.c[0]));
            if (of.kind == 4) {
                reinterpret_cast<const FloatBounds *>(of.c[1])->bounds(n, floats, made.lows, made.highs);
            } else {
                const Ordered order{of.c[1], word(of.c[2]), word(of.c[3])};
                for (int64_t i = 0; i < n; i++) {
                    uint64_t a, b;
                    const bool some = order.bound(made.keys[i], a, b);
                    made.lows[i] = some ? a : no_low;
                    made.highs[i] = some ? least_of(b, order.high) : 0;
                }
            }
        } else {
            for (int64_t i = 0; i < n; i++) made.keys[i] = made.lows[i] = made.highs[i] = 1;
        }
        of.write(0, made.keys, at, n);
        of.write(1, made.lows, at, n);
        of.write(2, made.highs, at, n);
    }
    return 1;
}

// Write what NULL has to the keys and bounds of a part: code 0, and no interval. A tuple is NULL where its bit of `values`
// is 0, the first of which is number c[0].
inline int64_t void_part(int64_t part, int64_t block) {
    const CodeBlock &of = *reinterpret_cast<const CodeBlock *>(block);
    const uint8_t *bits = static_cast<const uint8_t *>(of.values);
    const uint64_t none[3] = {0, no_low, 0};
    for (int64_t i = of.n * part / of.parts; i < of.n * (part + 1) / of.parts; i++) {
        const int64_t bit = of.c[0] + i;
        for (int64_t which = 0; which < 3 && !(bits[bit >> 3] >> (bit & 7) & 1); which++) of.write(which, none + which, i, 1);
    }
    return 1;
}

// The keys of integers that may be NULL, where they are not valid.
template <typename Code>
inline void exact_keys(Rows values, Bytes valid, uint64_t offset, Array<Code> keys) {
    for (int64_t i = 0; i < keys.size; i++) keys[i] = valid[i] ? static_cast<Code>(word(values[i]) + offset) : 0;
}
template <typename Real>
inline void float_keys(Array<const Real> values, Bytes valid, uint64_t nan,
                       Array<typename Width<sizeof(Real)>::Code> keys) {
    using Code = typename Width<sizeof(Real)>::Code;
    for (int64_t i = 0; i < keys.size; i++) keys[i] = valid[i] ? static_cast<Code>(float_code(values[i], nan)) : 0;
}

// The bounds of `FloatBounds` for all `values`.
inline void band_bounds(Array<const double> values, Rows bands, CodesOut lows, CodesOut highs) {
    for (int64_t at = 0; at < values.size; at += FloatBounds::block)
        reinterpret_cast<const FloatBounds *>(bands.data)->bounds(
            least_of(FloatBounds::block, values.size - at), values.data + at, lows.data + at, highs.data + at);
}

// Narrow `lows` and `highs` to the codes of keys K with `mine * value + theirs * K + c op 0`, where `op` is -1 for <=, 0
// for =, 1 for >=. K lies between `low` and `high`, its code is K + `offset` modulo 2^64. No step overflows. Where not
// valid, the interval becomes empty.
template <typename Code>
inline void exact_bounds(Rows values, Bytes valid, int64_t mine, int64_t theirs, int64_t c, int64_t op, int64_t low,
                         int64_t high, uint64_t offset, Array<Code> lows, Array<Code> highs) {
    if (theirs < 0) mine = -mine, theirs = -theirs, c = -c, op = -op;
    const auto below = [=](int64_t x) { return theirs == 1 ? x : x / theirs - (x % theirs < 0); };
    for (int64_t i = 0; i < lows.size; i++) {
        const int64_t target = moved(mine, values[i], c), up = static_cast<int64_t>(-word(target));
        const int64_t a = op >= 0 ? greatest_of(low, static_cast<int64_t>(-word(below(up)))) : low;
        const int64_t b = op <= 0 ? least_of(high, below(target)) : high;
        const bool some = valid[i] && a <= b;
        lows[i] = !some ? static_cast<Code>(no_low) : op < 0 ? lows[i] :
            greatest_of(lows[i], static_cast<Code>(word(a) + offset));
        highs[i] = !some ? 0 : op > 0 ? highs[i] : least_of(highs[i], static_cast<Code>(word(b) + offset));
    }
}

// Narrow them to the keys with `key op code`, between `low` and `high` (`Ordered`).
template <typename Own, typename Code>
inline void ordered_bounds(Array<const Own> codes, Bytes valid, int64_t op, uint64_t low, uint64_t high,
                           Array<Code> lows, Array<Code> highs) {
    const Ordered order{op, low, high};
    for (int64_t i = 0; i < lows.size; i++) {
        uint64_t a, b;
        const bool some = order.bound(codes[i], a, b) && valid[i];
        lows[i] = some ? greatest_of(lows[i], static_cast<Code>(a)) : static_cast<Code>(no_low);
        highs[i] = some ? least_of(highs[i], static_cast<Code>(b)) : 0;
    }
}

// The eight bytes of each text from its byte `start` on as a number, the first one highest, 0 where there are none.
// `ends`: where the first text begins in `content`, and where each ends.
inline void text_words(Rows ends, Bytes content, int64_t start, CodesOut words) {
    for (int64_t i = 0; i < words.size; i++) {
        const int64_t at = ends[i] + start, left = ends[i + 1] - at;
        uint64_t found = 0;
        if (left > 0 && at + 8 <= content.size) {
            __builtin_memcpy(&found, &content[at], 8);  // little-endian, as all platforms of the library are
            found = __builtin_bswap64(found);
            if (left < 8) found &= ~(~uint64_t{0} >> (8 * left));
        } else {
            for (int64_t k = 0; k < 8 && k < left; k++) found |= uint64_t{content[at + k]} << (56 - 8 * k);
        }
        words[i] = found;
    }
}

}  // namespace splitjoin
