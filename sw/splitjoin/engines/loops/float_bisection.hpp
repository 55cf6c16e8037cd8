// Bounds of float expressions over both streams, by bisection, exact to the last bit (`codes.py`).
#pragma once

#include "loop.hpp"

namespace splitjoin {

// Order-preserving code of a float, the same for both zeros; `nan` for NaN.
template <typename Real>
inline uint64_t float_code(Real value, uint64_t nan) {
    using Code = typename Width<sizeof(Real)>::Code;
    constexpr Code top = Code{1} << (8 * sizeof(Real) - 1);
    const Code bits = __builtin_bit_cast(Code, value + Real(0));
    return value == value ? (bits & top ? static_cast<Code>(~bits) : bits | top) : nan;
}
// The float of a code.
template <typename Real, typename Code = typename Width<sizeof(Real)>::Code>
inline Real float_of(Code code) {
    constexpr Code top = Code{1} << (8 * sizeof(Real) - 1);
    return __builtin_bit_cast(Real, code & top ? static_cast<Code>(code & ~top) : static_cast<Code>(~code));
}

// The bounds on keys of `bits` from code `least` to `most`, that `halves` conditions ask: the last of `steps` is at most
// `limit`, or with `above` = 1 is not, which NaN never is. Step n makes value n + 2 of values 0, the probe's, and 1, the key:
// `a op b`, `-a` or a constant. Floats of 32 bits are rounded doubles, which are the same. The condition is true from the
// bottom up to some key, from the next one to the top, everywhere or nowhere. Real arithmetic has the key where it changes
// near `(near - mine * probe) / theirs`; with `falls` = 1 it is mostly true above.
struct FloatBounds {
    static constexpr int64_t block = 256, most_steps = 32;
    int64_t halves, bits;
    uint64_t least, most, nan;
    struct Step {
        int64_t op, a, b, narrow;
        double constant;
    };
    struct Half {
        uint64_t above, falls, is_sum;
        int64_t steps;
        double limit, near, mine, theirs;
        const Step *first() const { return reinterpret_cast<const Step *>(this + 1); }
        uint64_t met(double value) const { return uint64_t{value <= limit} ^ above; }
    };
    using Values = double[most_steps + 1][block];
    const Half *first() const { return reinterpret_cast<const Half *>(this + 1); }
    static const Half *after(const Half *half) { return reinterpret_cast<const Half *>(half->first() + half->steps); }

    // The last of the steps for `n` probes and codes of keys. `values`: of the steps.
    const double *last(const Half &half, int64_t n, const double *probes, const uint64_t *keys, Values &values) const {
        const auto of = [&](int64_t number) { return number ? values[number - 1] : probes; };
        for (int64_t i = 0; i < n; i++) values[0][i] = bits == 32 ? float_of<float>(static_cast<uint32_t>(keys[i])) : float_of<double>(keys[i]);
        for (int64_t step = 0; step < half.steps; step++) {
            const auto [op, left, right, narrow, constant] = half.first()[step];
            const double *a = of(left), *b = of(right);
            double *to = values[step + 1];
            switch (op) {
                case '+': for (int64_t i = 0; i < n; i++) to[i] = a[i] + b[i]; break;
                case '-': for (int64_t i = 0; i < n; i++) to[i] = a[i] - b[i]; break;
                case '*': for (int64_t i = 0; i < n; i++) to[i] = a[i] * b[i]; break;
                case '~': for (int64_t i = 0; i < n; i++) to[i] = -a[i]; break;
                default: for (int64_t i = 0; i < n; i++) to[i] = constant;
            }
            for (int64_t i = 0; narrow && i < n; i++) to[i] = static_cast<float>(to[i]);
        }
        return values[half.steps];
    }

    // The code near which the condition of a probe changes; and the one beside it on whose other side it is not so.
    template <typename Real, typename Code = typename Width<sizeof(Real)>::Code>
    Code near_to(double key) const {
        const Code code = static_cast<Code>(float_code(static_cast<Real>(key), nan));
        return least_of(greatest_of(code, static_cast<Code>(least)), static_cast<Code>(most));
    }
    template <typename Code>
    Code beside(const Half &half, Code near, bool met) const {
        return met == half.falls ? near - (near > static_cast<Code>(least)) : near + (near < static_cast<Code>(most));
    }
    // Narrow the bounds `low` to `high` if the condition is `met` at `near` and not beside it, or the other way round.
    // Returns true if neither.
    template <typename Code>
    bool narrowed(Code near, Code beside, bool met, bool other, uint64_t &low, uint64_t &high) const {
        const bool same = met == other, below = near < beside ? met : other;
        const uint64_t from = below ? least : greatest_of(near, beside), to = below ? least_of(near, beside) : most;
        low = same ? low : greatest_of(low, from);
        high = same ? high : least_of(high, to);
        return same;
    }

    // Of a sum or a difference of probe and key, with factors of 1 and -1.
    template <typename Real>
    uint64_t narrow_sums(const Half &half, int64_t n, const double *probes, uint64_t *lows, uint64_t *highs, uint64_t *near,
                         uint64_t *met) const {
        uint64_t rest = 0;
        const Real mine = static_cast<Real>(half.mine), theirs = static_cast<Real>(half.theirs);
        const Real limit = static_cast<Real>(half.limit);
        for (int64_t i = 0; i < n; i++) {
            const Real probe = mine * static_cast<Real>(probes[i]);
            const auto code = near_to<Real>((half.near - half.mine * probes[i]) * half.theirs);
            const bool here = (probe + theirs * float_of<Real>(code) <= limit) != half.above;
            const auto next = beside(half, code, here);
            const bool there = (probe + theirs * float_of<Real>(next) <= limit) != half.above;
            const uint64_t same = narrowed(code, next, here, there, lows[i], highs[i]);
            near[i] = code;
            met[i] = here | same << 1;
            rest |= same;
        }
        return rest;
    }
    uint64_t narrow_all(const Half &half, int64_t n, const double *probes, uint64_t *lows, uint64_t *highs, uint64_t *near,
                        uint64_t *met, Values &values) const {
        uint64_t next[block], rest = 0;
        for (int64_t i = 0; i < n; i++) {
            const double key = (half.near - half.mine * probes[i]) / half.theirs;
            near[i] = bits == 32 ? uint64_t{near_to<float>(key)} : near_to<double>(key);
        }
        const double *value = last(half, n, probes, near, values);
        for (int64_t i = 0; i < n; i++) {
            met[i] = half.met(value[i]);
            next[i] = beside(half, near[i], met[i]);
        }
        value = last(half, n, probes, next, values);
        for (int64_t i = 0; i < n; i++) {
            const uint64_t same = narrowed(near[i], next[i], met[i], half.met(value[i]), lows[i], highs[i]);
            met[i] |= same << 1;
            rest |= same;
        }
        return rest;
    }

    // Narrow the bounds of `n` probes, at most `block`, to what `half` asks.
    void narrow(const Half &half, int64_t n, const double *probes, uint64_t *lows, uint64_t *highs, Values &values) const {
        uint64_t near[block], met[block];
        if (!half.is_sum ? narrow_all(half, n, probes, lows, highs, near, met, values) :
            bits == 32 ? narrow_sums<float>(half, n, probes, lows, highs, near, met) :
                narrow_sums<double>(half, n, probes, lows, highs, near, met))
            search(half, n, probes, near, met, lows, highs, values);
    }

    // The same for probes with the bit 2 of `met`, which the condition treats alike beside `near`: it changes farther away.
    __attribute__((noinline)) void search(const Half &half, int64_t n, const double *probes, const uint64_t *near,
                                          const uint64_t *met, uint64_t *lows, uint64_t *highs, Values &values) const {
        int64_t at[block], left = 0;
        double of[block];
        uint64_t a[block], b[block], middle[block], low[block], high[block];
        for (int64_t i = 0; i < n; i++) {
            at[left] = i;
            of[left] = probes[i];
            a[left] = b[left] = near[i];
            low[left] = high[left] = met[i] & 1;
            left += static_cast<int64_t>(met[i] >> 1);
        }
        bool open = true;
        for (uint64_t step = 4; open; step = step < uint64_t{1} << 56 ? 16 * step : ~uint64_t{0}) {
            open = false;
            for (int64_t i = 0; i < left; i++) {
                const bool same = low[i] == high[i];
                a[i] = same ? a[i] - least_of(step, a[i] - least) : a[i];
                b[i] = same ? b[i] + least_of(step, most - b[i]) : b[i];
            }
            const double *value = last(half, left, of, a, values);
            for (int64_t i = 0; i < left; i++) low[i] = half.met(value[i]);
            value = last(half, left, of, b, values);
            for (int64_t i = 0; i < left; i++) {
                high[i] = half.met(value[i]);
                open |= low[i] == high[i] && (a[i] > least || b[i] < most);
            }
        }
        for (open = true; open;) {
            open = false;
            for (int64_t i = 0; i < left; i++) middle[i] = a[i] + (b[i] - a[i]) / 2;
            const double *value = last(half, left, of, middle, values);
            for (int64_t i = 0; i < left; i++) {
                const bool changes = low[i] != high[i] && b[i] - a[i] > 1, up = half.met(value[i]) == low[i];
                a[i] = changes && up ? middle[i] : a[i];
                b[i] = changes && !up ? middle[i] : b[i];
                open |= changes && b[i] - a[i] > 1;
            }
        }
        for (int64_t i = 0; i < left; i++) {
            uint64_t &from = lows[at[i]], &to = highs[at[i]];
            const bool some = low[i] || high[i];
            from = some ? greatest_of(from, low[i] ? least : b[i]) : ~uint64_t{0};
            to = some ? least_of(to, high[i] ? most : a[i]) : 0;
        }
    }

    // The bounds of `n` probes, at most `block`.
    void bounds(int64_t n, const double *probes, uint64_t *lows, uint64_t *highs) const {
        Values values;
        for (int64_t i = 0; i < n; i++) {
            lows[i] = least;
            highs[i] = most;
        }
        const Half *half = first();
        for (int64_t j = 0; j < halves; j++, half = after(half)) narrow(*half, n, probes, lows, highs, values);
    }
};

}  // namespace splitjoin
