// The interval tests of a condition: on one stored tuple or 64 of them at once, or on pairs, column by column.
#pragma once

#include <stdlib.h>

#include "loop.hpp"

namespace splitjoin {

// Memory for a loop's own use, of `size` elements that are not filled; null if there is no more.
template <typename T>
struct Memory {
    T *data;

    explicit Memory(int64_t size) : data(static_cast<T *>(malloc(word(size + 1) * sizeof(T)))) {}
    ~Memory() { free(data); }
    Memory(const Memory &) = delete;
    Memory &operator=(const Memory &) = delete;
    T &operator[](int64_t at) const { return data[at]; }
};

constexpr int64_t block = 64;    // tuples that are compared at once: a bit of a word each, the lowest the first
constexpr int64_t chunk = 2048;  // tuples whose keys fill half a first-level cache

// A word with the bits from `first` to `last`, both included.
constexpr uint64_t bits_of(int64_t first, int64_t last) {
    return (~uint64_t{0} << first) & (~uint64_t{0} >> (block - 1 - last));
}

// Call `use` with the number of each bit of `bits`.
template <typename F>
inline void each_bit(uint64_t bits, F use) {
    for (; bits; bits &= bits - 1) use(static_cast<int64_t>(__builtin_ctzll(bits)));
}

// With AVX-512, vectors as wide as it has them; else what is written out at length is there once for each type.
#if defined(__AVX512BW__) && defined(__clang__)
#define SPLITJOIN_WIDE inline __attribute__((min_vector_width(512)))
#else
#define SPLITJOIN_WIDE __attribute__((noinline))
#endif

// Which of 64 keys lie within `width` above `low`, modulo the width of their type.
template <typename K>
SPLITJOIN_WIDE uint64_t mask_within(const K *keys, K low, K width) {
#ifdef __clang__
    using Keys = K __attribute__((ext_vector_type(block)));
    using Bits = bool __attribute__((ext_vector_type(block)));
    Keys of;
    __builtin_memcpy(&of, keys, sizeof of);
    return __builtin_bit_cast(uint64_t, __builtin_convertvector(of - low <= width, Bits));
#else
    uint64_t found = 0;
#ifdef __SSE2__  // GCC has no vectors of bits, and makes words one key at a time: of few bytes, a vector has many keys
    if constexpr (sizeof(K) <= 2) {
        constexpr int64_t some = 16;
        typedef K Keys __attribute__((vector_size(some * sizeof(K))));
        typedef char Bytes __attribute__((vector_size(some)));
        for (int64_t i = 0; i < block; i += some) {
            Keys of;
            __builtin_memcpy(&of, keys + i, sizeof of);
            const Bytes met = __builtin_convertvector(of - low <= width, Bytes);
            found |= word(__builtin_ia32_pmovmskb128(met)) << i;
        }
        return found;
    }
#endif
    for (int64_t i = 0; i < block; i++) found |= uint64_t{static_cast<K>(keys[i] - low) <= width} << i;
    return found;
#endif
}

// Call `use` with a null pointer of the type of keys of 4 or of 8 bytes.
template <typename F>
inline auto by_key(int64_t bytes, F use) {
    return bytes == 4 ? use(static_cast<const uint32_t *>(nullptr)) : use(static_cast<const uint64_t *>(nullptr));
}

// Codes of 1, 2, 4 or 8 bytes.
struct Lane {
    const void *data;
    int64_t bytes;

    template <typename F>
    auto typed(F use) const {
        switch (bytes) {
            case 1: return use(static_cast<const uint8_t *>(data));
            case 2: return use(static_cast<const uint16_t *>(data));
            case 4: return use(static_cast<const uint32_t *>(data));
            default: return use(static_cast<const uint64_t *>(data));
        }
    }
    uint64_t operator[](int64_t at) const {
        return typed([=](auto codes) { return static_cast<uint64_t>(codes[at]); });
    }
    // As `mask_within`, from position `at` on.
    uint64_t within(int64_t at, uint64_t low, uint64_t width) const {
        return typed([=]<typename K>(const K *codes) {
            return mask_within(codes + at, static_cast<K>(low), static_cast<K>(width));
        });
    }
};

// An interval test: keys of stored tuples, and the least and the greatest key that each probe meets. As the words of an
// array it is three addresses and the bytes of a code.
struct Test {
    const void *of_keys, *of_lows, *of_highs;
    int64_t bytes;

    Lane keys() const { return {of_keys, bytes}; }
    uint64_t low(int64_t probe) const { return Lane{of_lows, bytes}[probe]; }
    uint64_t high(int64_t probe) const { return Lane{of_highs, bytes}[probe]; }
    // Whether the key `at`, of 4 or 8 bytes, meets `probe`.
    bool holds(int64_t at, int64_t probe) const {
        return by_key(bytes, [=, this]<typename K>(const K *) {
            const K key = static_cast<const K *>(of_keys)[at];
            return (static_cast<const K *>(of_lows)[probe] <= key) & (key <= static_cast<const K *>(of_highs)[probe]);
        });
    }
};

// A part of a condition that is no test: whether its value, the next number behind those of the tests, is that of one
// of two others or of both.
struct Junction {
    int64_t is_or, a, b;
};

// What a probe wants of stored tuples: the `tests`, and the `junctions` of their values, of which the last one decides.
// Without junctions all tests must hold, if there are some. With `wraps`, intervals may go beyond the last key.
struct Condition {
    Array<const Test> tests;
    Array<const Junction> junctions;
    bool wraps;
    struct Bound {
        uint64_t low, width, possible;  // `possible`: all bits, or none where the interval is empty
    };
    Memory<Bound> bounds;
    Memory<uint64_t> values;

    Condition(Rows of_tests, Rows of_junctions, bool wrapping = false)
        : tests{reinterpret_cast<const Test *>(of_tests.data), of_tests.size / 4},
          junctions{reinterpret_cast<const Junction *>(of_junctions.data), of_junctions.size / 3},
          wraps(wrapping), bounds(tests.size), values(tests.size + junctions.size) {}

    explicit operator bool() const { return bounds.data && values.data; }

    // Take the intervals of `probe`. Returns false if it meets no tuple, as one of them is empty.
    bool begin(int64_t probe) const {
        bool possible = true;
        for (int64_t n = 0; n < tests.size; n++) {
            const uint64_t low = tests[n].low(probe), high = tests[n].high(probe);
            const bool some = wraps || low <= high;
            bounds[n] = {low, high - low, word(-int64_t{some})};
            possible &= some;
        }
        return possible || junctions.size;
    }

    // Which of 64 tuples from `at` on meet the probe.
    uint64_t mask(int64_t at) const {
        const auto test = [&](int64_t n) { return tests[n].keys().within(at, bounds[n].low, bounds[n].width); };
        if (junctions.size) return joined([&](int64_t n) { return test(n) & bounds[n].possible; });
        uint64_t found = test(0);
        for (int64_t n = 1; found && n < tests.size; n++) found &= test(n);
        return found;
    }

    // True if one of the tuples from `at` to before `end` meets all of `count` tests, on keys of one type.
    template <typename K, int64_t count>
    __attribute__((noinline)) bool any_of(int64_t at, int64_t end) const {
        const K *keys[count];
        K low[count], width[count], found = 0;
        for (int64_t n = 0; n < count; n++) {
            keys[n] = static_cast<const K *>(tests[n].of_keys);
            low[n] = static_cast<K>(bounds[n].low);
            width[n] = static_cast<K>(bounds[n].width);
        }
        for (int64_t i = at; i < end; i++) {
            K one = 1;
            for (int64_t n = 0; n < count; n++) one &= static_cast<K>(keys[n][i] - low[n]) <= width[n];
            found |= one;
        }
        return found;
    }

    // True if one of the tuples from `at` to before `end` does, at most a chunk; both are multiples of 64.
    bool any(int64_t at, int64_t end) const {
        bool found = false;
        if (junctions.size) {
            for (; at < end && !found; at += block) found = mask(at);
            return found;
        }
#ifndef __AVX512BW__  // narrower vectors make words of comparisons slowly, and none are needed here
        bool alike = tests.size > 1 && tests.size <= 3;
        for (int64_t n = 1; n < tests.size; n++) alike &= tests[n].bytes == tests[0].bytes;
        if (alike)
            return tests[0].keys().typed([&]<typename K>(const K *) {
                return tests.size == 2 ? any_of<K, 2>(at, end) : any_of<K, 3>(at, end);
            });
#endif
        uint64_t left[chunk / block];
        for (int64_t n = 0; n < tests.size && (found || n == 0); n++) {
            tests[n].keys().typed([&]<typename K>(const K *keys) {
                const K low = static_cast<K>(bounds[n].low), width = static_cast<K>(bounds[n].width);
                if (tests.size == 1) {
                    for (int64_t i = at; i < end; i++) found |= static_cast<K>(keys[i] - low) <= width;
                    return;
                }
                uint64_t some = 0;
                for (int64_t i = at; i < end; i += block) {
                    uint64_t &mine = left[(i - at) / block];
                    mine = mask_within(keys + i, low, width) & (n ? mine : ~uint64_t{0});
                    some |= mine;
                }
                found = some;
            });
        }
        return found;
    }

    // True if the tuple `at` meets `probe`.
    bool holds(int64_t at, int64_t probe) const { return !tests.size || all_hold(at, probe); }
    __attribute__((noinline)) bool all_hold(int64_t at, int64_t probe) const {
        if (junctions.size) return joined([&](int64_t n) { return uint64_t{tests[n].holds(at, probe)}; });
        bool found = true;
        for (int64_t n = 0; n < tests.size; n++) found &= tests[n].holds(at, probe);
        return found;
    }

    // The value of the whole from those that `test` gives.
    template <typename F>
    uint64_t joined(F test) const {
        int64_t n = 0;
        for (; n < tests.size; n++) values[n] = test(n);
        for (const Junction *of = junctions.data; of < junctions.data + junctions.size; of++, n++)
            values[n] = of->is_or ? values[of->a] | values[of->b] : values[of->a] & values[of->b];
        return values[n - 1];
    }
};

// A test, as a stream has it: its stored keys, the bounds of its probes on the other stream's keys, and the bytes of
// either.
struct SideTest {
    const void *key;
    int64_t key_count;
    const void *low;
    int64_t low_count;
    const void *high;
    int64_t high_count, key_width, bound_width;
};

// A condition on pairs of a stream's stored tuples and the other one's probes: all tests; or `junctions` of their values,
// three words each: whether its value, the next number behind those of the tests, is that of one of two others or of both.
// The last one decides.
struct PairCondition {
    const SideTest *stored, *probing;
    int64_t tests;
    Rows junctions;

    static constexpr int64_t most = 256;  // pairs that are tested at once

    // Clear `met` (0 or 1 each) of the pairs of which a test does not hold: those of the stored tuples `at` and `probe`.
    template <typename Code>
    static void test(const SideTest &stored, const SideTest &probing, int64_t n, const int64_t *at, const int32_t *probe,
                     uint8_t *met) {
        const Code *keys = static_cast<const Code *>(stored.key);
        const Code *lows = static_cast<const Code *>(probing.low), *highs = static_cast<const Code *>(probing.high);
        for (int64_t i = 0; i < n; i++) {
            const Code key = keys[at[i]];
            met[i] &= uint8_t{key >= lows[probe[i]]} & uint8_t{key <= highs[probe[i]]};
        }
    }
    void test(int64_t j, int64_t n, const int64_t *at, const int32_t *probe, uint8_t *met) const {
        if (stored[j].key_width == 4)
            test<uint32_t>(stored[j], probing[j], n, at, probe, met);
        else
            test<uint64_t>(stored[j], probing[j], n, at, probe, met);
    }

    // Clear `met` of the pairs of which the condition does not hold; of up to `most` pairs. `values`: that many bytes for
    // each test and junction.
    void check(int64_t n, const int64_t *at, const int32_t *probe, uint8_t *met, uint8_t *values) const {
        if (!junctions.size) {
            for (int64_t j = 0; j < tests; j++) test(j, n, at, probe, met);
            return;
        }
        uint8_t *mine = values;
        for (int64_t j = 0; j < tests; j++, mine += most) {
            for (int64_t i = 0; i < n; i++) mine[i] = met[i];
            test(j, n, at, probe, mine);
        }
        for (const int64_t *of = junctions.data; of < junctions.data + junctions.size; of += 3, mine += most) {
            const uint8_t *a = values + of[1] * most, *b = values + of[2] * most;
            if (of[0])
                for (int64_t i = 0; i < n; i++) mine[i] = a[i] | b[i];
            else
                for (int64_t i = 0; i < n; i++) mine[i] = a[i] & b[i];
        }
        for (int64_t i = 0; i < n; i++) met[i] = (mine - most)[i];
    }
};

}  // namespace splitjoin
