// Exact sums of floats, rounded once.
#pragma once

#include "loop.hpp"

namespace splitjoin {

using Floats = Array<const double>;
using FloatsOut = Array<double>;

inline bool is_finite(double x) { return x - x == 0.0; }

// A sum as doubles that do not overlap, by increasing magnitude (Shewchuk, Adaptive Precision Floating-Point
// Arithmetic, 1997, GROW-EXPANSION).
struct Expansion {
    // More than there can be: 2,098 bits lie between the smallest and the largest double.
    double partials[2200];
    int64_t size = 0;

    // Returns false if the sum is too large.
    bool add(double x) {
        int64_t kept = 0;
        for (int64_t j = 0; j < size; j++) {
            double y = partials[j];
            if (__builtin_fabs(x) < __builtin_fabs(y)) {
                const double smaller = x;
                x = y;
                y = smaller;
            }
            const double high = x + y, low = y - (high - x);
            if (low != 0.0) partials[kept++] = low;
            x = high;
        }
        const bool fits = is_finite(x);
        if (fits && x != 0.0) partials[kept++] = x;
        size = kept;
        return fits;
    }

    // The sum to the nearest double, ties to even: from the greatest on. Forgets the sum.
    double rounded() {
        double total = 0.0, low = 0.0;
        while (size > 0 && low == 0.0) {
            const double x = total, y = partials[--size];
            total = x + y;
            low = y - (total - x);
        }
        // Half-way cases round by the sign of what is left.
        if (size > 0 && ((low < 0.0 && partials[size - 1] < 0.0) || (low > 0.0 && partials[size - 1] > 0.0))) {
            const double twice = low * 2.0, next = total + twice;
            if (twice == next - total) total = next;
        }
        size = 0;
        return total;
    }
};

// The sum of each group of `values`, which lie one after the other, of `lengths`; and in `overflowed` 1 where it, or a
// part of it, is too large. NaN, or infinities of both signs, give NaN, and other infinities themselves.
inline void float_sums(Floats values, Rows lengths, FloatsOut sums, BytesOut overflowed) {
    Expansion sum;
    int64_t at = 0;
    for (int64_t group = 0; group < lengths.size; group++) {
        double special = 0.0;
        bool is_special = false, fits = true;
        for (const int64_t end = at + lengths[group]; at < end; at++) {
            if (is_finite(values[at])) {
                fits &= sum.add(values[at]);
            } else {
                special += values[at];
                is_special = true;
            }
        }
        const double total = sum.rounded();
        sums[group] = is_special ? special : total;
        overflowed[group] = !is_special && !(fits && is_finite(total));
    }
}

}  // namespace splitjoin
