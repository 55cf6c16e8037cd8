// Exact sums of floats, rounded once: as whole numbers in fixed point, which may be subtracted.
#pragma once

#include "loop.hpp"

namespace splitjoin {

using Floats = Array<const double>;
using FloatsOut = Array<double>;
using Wide = unsigned __int128;

// The most words of a sum: doubles have 2,098 bits, their squares twice as many, and products with counts some more.
constexpr int64_t most_words = 72;

// A finite double as a whole number of 53 bits, times 2^exponent. Infinities and NaN have exponent `not_finite`.
constexpr int64_t not_finite = 2047 - 1075;
struct Parts {
    uint64_t mantissa;
    int64_t exponent;
    bool negative;

    explicit Parts(double x) {
        uint64_t bits;
        __builtin_memcpy(&bits, &x, sizeof bits);
        const int64_t field = bits >> 52 & 0x7FF;
        mantissa = (bits & ((uint64_t{1} << 52) - 1)) | (field ? uint64_t{1} << 52 : 0);
        exponent = (field ? field : 1) - 1075;
        negative = bits >> 63;
    }
};

// The exponents of the lowest and of the highest bit of all finite `values`, and how many are not finite. 0 and -1 if
// all are zero.
inline void float_extent(Floats values, RowsOut found) {
    int64_t low = 1 << 20, high = -(1 << 20), others = 0;
    for (int64_t i = 0; i < values.size; i++) {
        const Parts x(values[i]);
        if (x.exponent == not_finite) {
            others++;
        } else if (x.mantissa) {
            low = least_of<int64_t>(low, x.exponent + __builtin_ctzll(x.mantissa));
            high = greatest_of<int64_t>(high, x.exponent + 63 - __builtin_clzll(x.mantissa));
        }
    }
    found[0] = low <= high ? low : 0;
    found[1] = low <= high ? high : -1;
    found[2] = others;
}

// A whole number of `size` words in two's complement, the lowest first, in units of 2^low.
struct Fixed {
    uint64_t *words;
    int64_t size, low;

    void clear() {
        for (int64_t i = 0; i < size; i++) words[i] = 0;
    }
    bool negative() const { return words[size - 1] >> 63; }
    void negate() {
        uint64_t carry = 1;
        for (int64_t i = 0; i < size; i++) {
            words[i] = ~words[i] + carry;
            carry = carry && !words[i];
        }
    }
    // Adds `others` as far as they go, or subtracts them.
    void add(const uint64_t *others, int64_t n, int64_t at, bool minus) {
        uint64_t carry = minus;
        for (int64_t i = at; i < size && (i < at + n || carry != minus); i++) {
            const uint64_t other = i < at + n ? others[i - at] : 0;
            const Wide sum = Wide{words[i]} + (minus ? ~other : other) + carry;
            words[i] = static_cast<uint64_t>(sum);
            carry = static_cast<uint64_t>(sum >> 64);
        }
    }
    // Adds a finite value, or its square, or subtracts it; others are passed over.
    void add(double value, bool square, bool minus) {
        const Parts x(value);
        if (x.exponent == not_finite || !x.mantissa) return;
        int64_t shift = x.exponent - (square ? low / 2 : low);
        uint64_t mantissa = x.mantissa;
        if (shift < 0) {  // bits that are 0
            mantissa >>= -shift;
            shift = 0;
        }
        if (!square && size <= 2) {
            Wide sum = words[0] | (size > 1 ? Wide{words[1]} << 64 : 0);
            sum += minus != x.negative ? -(Wide{mantissa} << shift) : Wide{mantissa} << shift;
            words[0] = static_cast<uint64_t>(sum);
            if (size > 1) words[1] = static_cast<uint64_t>(sum >> 64);
            return;
        }
        const Wide whole = square ? Wide{mantissa} * mantissa : mantissa;
        if (square) shift *= 2;
        const uint64_t by = shift & 63, first = static_cast<uint64_t>(whole), second = static_cast<uint64_t>(whole >> 64);
        const uint64_t parts[3] = {first << by, by ? second << by | first >> (64 - by) : second,
                                   by ? second >> (64 - by) : 0};
        add(parts, 3, shift >> 6, minus != (!square && x.negative));
    }
    // The nearest double, ties to even, of this number and a `rest` that is less than its unit. Leaves the magnitude.
    double rounded(bool rest) {
        const bool below = negative();
        if (below) negate();
        int64_t top = size - 1;
        while (top >= 0 && !words[top]) top--;
        if (top < 0) return 0.0;
        const int64_t lead = __builtin_clzll(words[top]);
        uint64_t high = words[top] << lead;
        if (top) {
            high |= lead ? words[top - 1] >> (64 - lead) : 0;
            rest |= words[top - 1] << lead != 0;
        }
        for (int64_t i = 0; i < top - 1 && !rest; i++) rest = words[i] != 0;
        const int64_t place = 64 * top + 63 - lead + low + 1074;  // of the highest bit, in units of the least double
        const int64_t kept = least_of<int64_t>(53, place + 1);
        uint64_t bits = 0;
        if (place - 52 >= 2046) {
            bits = uint64_t{0x7FF} << 52;
        } else if (kept >= 0) {
            const uint64_t half = uint64_t{1} << 63, mantissa = kept ? high >> (64 - kept) : 0, left = high << kept;
            bits = mantissa + (left > half || (left == half && (rest || mantissa & 1)));
            // One too many in the exponent is the highest bit of the mantissa.
            if (place > 52) bits += static_cast<uint64_t>(place - 52) << 52;
        }
        bits |= static_cast<uint64_t>(below) << 63;
        double found;
        __builtin_memcpy(&found, &bits, sizeof found);
        return found;
    }
};

// The sums of all values, or of their squares, before every `step`-th one, as fixed point of so many `words`.
inline void float_prefixes(Floats values, int64_t low, int64_t words, int64_t square, int64_t step, CodesOut prefixes) {
    uint64_t space[most_words];
    Fixed sum{space, words, low};
    sum.clear();
    for (int64_t i = 0; i <= values.size; i++) {
        if (i % step == 0)
            for (int64_t n = 0; n < words; n++) prefixes[i / step * words + n] = space[n];
        if (i < values.size) sum.add(values[i], square, false);
    }
}

// Ranges of positions from each `start` to before each `end`. Those of a base i are number `firsts[i]` to before
// `firsts[i + 1]`, or only number i where `firsts` is empty.
struct Ranges {
    Rows start, end, firsts;

    int64_t first(int64_t base) const { return firsts.size ? firsts[base] : base; }
    uint64_t count(int64_t base) const {
        uint64_t found = 0;
        for (int64_t n = first(base); n < first(base + 1); n++) found += word(end[n] - start[n]);
        return found;
    }
};

// Adds the values from `start` to before `end`, or their squares, to `sum`, which `is_zero` or not: by
// `float_prefixes`, if there are any.
inline void add_range(Fixed sum, Floats values, Codes prefixes, int64_t step, bool square, int64_t start, int64_t end,
                      bool is_zero) {
    if (!prefixes.size) {
        for (int64_t i = start; i < end; i++) sum.add(values[i], square, false);
        return;
    }
    if (is_zero)
        for (int64_t n = 0; n < sum.size; n++) sum.words[n] = prefixes[end / step * sum.size + n];
    else
        sum.add(&prefixes[end / step * sum.size], sum.size, 0, false);
    sum.add(&prefixes[start / step * sum.size], sum.size, 0, true);
    for (int64_t i = end / step * step; i < end; i++) sum.add(values[i], square, false);
    for (int64_t i = start / step * step; i < start; i++) sum.add(values[i], square, true);
}

// Sets `sum` to that of the values, or of their squares, in the ranges of a base.
inline void sum_ranges(Fixed sum, Floats values, Codes prefixes, int64_t step, bool square, const Ranges &ranges,
                       int64_t base) {
    sum.clear();
    const int64_t first = ranges.first(base), behind = ranges.first(base + 1);
    for (int64_t n = first; n < behind; n++)
        add_range(sum, values, prefixes, step, square, ranges.start[n], ranges.end[n], n == first);
}

// The sum of the finite values in the ranges of each base, rounded once.
inline void range_float_sums(Floats values, int64_t low, int64_t words, int64_t step, Codes prefixes, Rows start,
                             Rows end, Rows firsts, FloatsOut sums) {
    uint64_t space[most_words];
    const Fixed sum{space, words, low};
    const Ranges ranges{start, end, firsts};
    for (int64_t i = 0; i < sums.size; i++) {
        sum_ranges(sum, values, prefixes, step, false, ranges, i);
        sums[i] = Fixed(sum).rounded(false);
    }
}

// The sum of the squared distances of the finite values of each base from their average, rounded once: that of the
// squares, of `square_words`, less the square of the sum over the count. A base has fewer than 2^32 values.
inline void range_deviations(Floats values, int64_t low, int64_t words, Codes prefixes, int64_t square_words,
                             Codes square_prefixes, int64_t step, Rows start, Rows end, Rows firsts, FloatsOut found) {
    uint64_t space[most_words], space_of_squares[most_words], space_of_square[2 * most_words];
    Fixed sum{space, words, low}, squares{space_of_squares + 2, square_words, 2 * low};
    Fixed quotient{space_of_squares, square_words + 2, 2 * low - 128};  // whose bits below the units are enough to round
    const Ranges ranges{start, end, firsts};
    for (int64_t i = 0; i < found.size; i++) {
        const uint64_t count = ranges.count(i);
        found[i] = 0.0;
        if (count < 2) continue;
        sum_ranges(sum, values, prefixes, step, false, ranges, i);
        sum_ranges(squares, values, square_prefixes, step, true, ranges, i);
        if (sum.negative()) sum.negate();
        uint64_t carry = 0;
        for (int64_t n = 0; n < square_words; n++) {
            const Wide product = Wide{squares.words[n]} * count + carry;
            squares.words[n] = static_cast<uint64_t>(product);
            carry = static_cast<uint64_t>(product >> 64);
        }
        for (int64_t n = 0; n < 2 * words; n++) space_of_square[n] = 0;
        for (int64_t n = 0; n < words; n++) {
            carry = 0;
            for (int64_t m = 0; m < words; m++) {
                const Wide product = Wide{sum.words[n]} * sum.words[m] + space_of_square[n + m] + carry;
                space_of_square[n + m] = static_cast<uint64_t>(product);
                carry = static_cast<uint64_t>(product >> 64);
            }
            space_of_square[n + words] = carry;
        }
        squares.add(space_of_square, least_of(2 * words, square_words), 0, true);
        space_of_squares[0] = space_of_squares[1] = 0;
        uint64_t rest = 0;
        for (int64_t n = square_words + 1; n >= 0; n--) {
            const uint64_t high = rest << 32 | quotient.words[n] >> 32;
            const uint64_t next = high % count << 32 | (quotient.words[n] & 0xFFFF'FFFF);
            quotient.words[n] = high / count << 32 | next / count;
            rest = next % count;
        }
        found[i] = quotient.rounded(rest != 0);
    }
}

}  // namespace splitjoin
