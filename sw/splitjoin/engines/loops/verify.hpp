// The interval tests of a condition, on candidates: pairs of stored tuples and probes, column by column.
#pragma once

#include "loop.hpp"

namespace splitjoin {

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
